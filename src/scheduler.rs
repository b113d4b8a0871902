//! The solver thread works on one job at a time, in turns; the checkpoint thread saves what it has proved; the monitor thread tells of
//! progress and ends turns.

use crate::STACK_BYTES;
use crate::engine::{Engine, Running, Stage, Yield, locked};
use crate::jobs::{Job, JobError, State};
use crate::proofs::Asked;
use crate::pulse::Phase;
use crate::report::{Counts, SolveReport, Step, ValueProgress, bounds_of};
use crate::request::Kind;
use crate::units::now_rfc3339;
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use superko_search::{Komi, Limits, Options, Outcome, Stop, solve_with};
use superko_storage::{MappedTable, ProofRecord};

/// How long to wait after a failure of the disk before trying again.
const RETRY: Duration = Duration::from_secs(2);

/// How long the store may refuse writes, with space on the disk, before the daemon gives up.
const STUCK: Duration = Duration::from_secs(10);

/// How often the monitor looks.
const LOOK: Duration = Duration::from_millis(500);

/// A turn is at least so many times as long as it took to prepare the table for it.
const TURN_TO_TABLE: f64 = 10.0;

/// How a run of a job ended.
enum End {
    /// Proved: the report and its proofs.
    Proved(Value, Vec<Value>),
    /// Proved, but the checker rejects a certificate: the report, and what it says.
    Rejected(Value, String),
    /// A limit was hit.
    Limit,
    /// The stop flag: cancelled, or the daemon stops.
    Asked,
    /// A fault of ours.
    Fault(String),
}

impl End {
    /// Whether it changes a job in this state. A job that was paused, or put aside for another, just when its run came to an end has
    /// ended; a rejected certificate must not be lost to a cancel.
    fn belongs_to(&self, state: State) -> bool {
        state.is_open() || state == State::Cancelled && matches!(self, End::Rejected(..))
    }
}

/// Starts the solver thread. It ends once the engine stops.
pub fn spawn_solver(engine: Arc<Engine>) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("solver".to_owned()).stack_size(STACK_BYTES).spawn(move || {
        while !engine.is_stopping() {
            engine.set_problem("campaigns", engine.jobs.advance_campaigns().err().map(|error| error.to_string()));
            match engine.jobs.next_job() {
                Some(job) => run_job(&engine, &job),
                None => {
                    engine.pulse.enter(Phase::Idle);
                    engine.set_recovered();
                    engine.jobs.wait(Duration::from_millis(500));
                }
            }
        }
    })
}

/// Starts the thread that makes a checkpoint every `interval` while there is something to save. It ends once the engine stops.
pub fn spawn_checkpoints(engine: Arc<Engine>, interval: Duration) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("checkpoint".to_owned()).spawn(move || {
        let mut due = Instant::now() + interval;
        let mut stuck_since = None;
        while !engine.is_stopping() {
            engine.pulse.checkpoints();
            engine.jobs.wait(due.saturating_duration_since(Instant::now()).min(Duration::from_millis(500)));
            engine.set_problem("store", engine.store.mark().err().map(|error| error.to_string()));
            engine.set_problem("storage", engine.store.check_space().err().map(|error| error.to_string()));
            stuck_since = if engine.store_is_stuck() { stuck_since.or_else(|| Some(Instant::now())) } else { None };
            if stuck_since.is_some_and(|since| since.elapsed() >= STUCK) {
                engine.give_up(
                    "the store refuses writes although there is space; all that was acknowledged is on disk, start again".to_owned(),
                );
                return;
            }
            if Instant::now() < due || engine.is_stopping() {
                continue;
            }
            let saved = if engine.has_unsaved() { engine.checkpoint().map(drop) } else { Ok(()) };
            due = Instant::now() + if saved.is_ok() { interval } else { interval.min(RETRY) };
        }
    })
}

/// Starts the thread that tells of progress and ends the turn of a job when others wait: at once for one of higher priority, after
/// `turn` for one of the same. It ends once the engine stops.
pub fn spawn_monitor(engine: Arc<Engine>, turn: Duration) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("monitor".to_owned()).spawn(move || {
        let mut last: Option<(u64, u64, Instant)> = None;
        while !engine.is_stopping() {
            std::thread::sleep(LOOK);
            engine.pulse.monitor();
            let Some(running) = engine.running() else { continue };
            end_turn(&engine, &running, turn);
            let expansions = running.control.expansions.load(Relaxed);
            match last {
                Some((serial, before, at)) if serial == running.serial => {
                    let seconds = at.elapsed().as_secs_f64();
                    if seconds < 1.0 || expansions == before {
                        continue;
                    }
                    engine.publish_progress((expansions - before) as f64 / seconds);
                }
                _ => {}
            }
            last = Some((running.serial, expansions, Instant::now()));
        }
    })
}

/// A certificate is begun anew by every run, so nothing but a client's wish or the shutdown interrupts it.
fn end_turn(engine: &Engine, running: &Running, turn: Duration) {
    let Some(job) = engine.jobs.get(running.id).filter(|_| locked(&running.progress).stage == Stage::Search) else { return };
    if let (Some(limit), Some(table)) = (job.request.limits.memory, engine.table())
        && table.occupancy().used_bytes() > limit
    {
        running.yield_to(Yield::Memory);
    }
    // Where the table has to be changed for a turn, the turn must be worth it.
    let turn = turn.max(Duration::from_secs_f64(TURN_TO_TABLE * engine.metrics.recovery_duration.get()));
    let is_over = match engine.jobs.waiting_priority() {
        Some(waiting) if waiting == job.request.priority => running.elapsed() >= turn,
        Some(waiting) => waiting > job.request.priority,
        None => false,
    };
    if is_over && locked(&running.yields).is_none() {
        tracing::debug!(job = job.id, seconds = running.elapsed().as_secs_f64(), "the turn is over");
        running.yield_to(Yield::Turn);
    }
}

fn run_job(engine: &Engine, job: &Arc<Job>) {
    engine.pulse.enter(Phase::Table);
    let table = match engine.use_table(job.request.position.geometry()) {
        Ok(table) => table,
        Err(error) => {
            engine.set_problem("table", Some(error));
            engine.jobs.wait(RETRY);
            return;
        }
    };
    engine.set_problem("table", None);
    engine.set_recovered();
    if engine.is_stopping() {
        return;
    }
    // The record may have changed while the table was opened.
    let Some(job) = engine.jobs.get(job.id).filter(|job| job.data.state.is_runnable()) else { return };
    engine.jobs.take_turn(job.id);
    let running = Arc::new(Running::new(&job));
    // Known as running before the record says so: a cancel that sees the record finds the stop flag.
    engine.set_running(Some(running.clone()));
    if engine.is_stopping() {
        running.control.stop.store(true, Relaxed);
    }
    let mut is_first = false;
    let mut begun = Ok(job.clone());
    for left in engine.jobs.left_running(job.id) {
        // The turn was another's when the daemon stopped.
        let back = engine.jobs.update(left, &[], |job| {
            job.data.state = State::Queued;
            Ok(true)
        });
        begun = begun.and(back);
    }
    let begun = begun.and_then(|_| {
        engine.jobs.update(job.id, &[], |job| match job.data.state {
            State::Queued => {
                job.data.state = State::Running;
                is_first = job.data.started_at.is_none();
                job.data.started_at.get_or_insert_with(now_rfc3339);
                Ok(true)
            }
            State::Running => Ok(false),
            state => Err(JobError::Conflict { what: "job", id: job.id, state, action: "run" }),
        })
    });
    match begun {
        Ok(job) => {
            tracing::info!(job = job.id, board = job.request.position.geometry().name(), kind = job.request.kind.name(), "running");
            if is_first {
                engine.metrics.job_started(&job);
            }
            engine.pulse.enter(Phase::Search);
            let end = catch_unwind(AssertUnwindSafe(|| search(engine, &table, &job, &running))).unwrap_or_else(|panic| {
                let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned()).or_else(|| panic.downcast_ref::<String>().cloned());
                End::Fault(format!("the search panicked: {}", text.unwrap_or_default()))
            });
            // A cancelled or failed run leaves lemmas too; the checkpoint of a finished one comes next.
            engine.set_unsaved();
            engine.pulse.enter(Phase::Store);
            finish(engine, &job, &running, end);
        }
        Err(JobError::Conflict { .. }) => {}
        Err(error) => {
            engine.set_problem("jobs", Some(error.to_string()));
            engine.jobs.wait(RETRY);
        }
    }
    // A job that the shutdown interrupts stays the running one: the last checkpoint records how far it came.
    if !engine.is_stopping() {
        engine.set_running(None);
    }
}

/// Stores how a run ended; until the store has taken that, the job stays running.
fn finish(engine: &Engine, job: &Job, running: &Running, end: End) {
    if let End::Asked = end {
        if engine.jobs.get(job.id).is_some_and(|job| job.data.state == State::Cancelled) {
            engine.remove_certificates(job.id);
        }
        if engine.is_stopping() {
            return;
        }
        // It keeps the bounds it has reached, once the lemmas behind them are in the store. Without a checkpoint its record stays what
        // it was, and the lemmas stay due.
        let saved = engine.checkpoint().is_ok();
        let kept = engine.jobs.update(job.id, &[], |job| {
            if saved {
                job.absorb(&running.live());
            }
            if job.data.state == State::Running {
                job.data.state = State::Queued;
            }
            Ok(true)
        });
        if let Err(error) = kept {
            tracing::error!(job = job.id, %error, "what a job has reached could not be kept");
        }
        return;
    }
    while engine.jobs.get(job.id).is_some_and(|job| end.belongs_to(job.data.state)) {
        // A result is acknowledged only with its lemmas in the store.
        let stored = match &end {
            End::Fault(_) => Ok(()),
            _ => engine.checkpoint().map(drop),
        };
        let stored = stored.and_then(|()| store_end(engine, job, running, &end).map_err(|error| error.to_string()));
        match stored {
            Ok(()) => {
                engine.set_problem("jobs", None);
                return;
            }
            Err(error) => engine.set_problem("jobs", Some(error)),
        }
        if engine.is_stopping() {
            return;
        }
        engine.jobs.wait(RETRY);
    }
}

fn store_end(engine: &Engine, job: &Job, running: &Running, end: &End) -> Result<(), JobError> {
    let board = job.request.position.geometry().name();
    let proofs: Vec<ProofRecord> = match end {
        End::Proved(_, proofs) => proofs.iter().map(|body| ProofRecord { board: board.clone(), job: job.id, body: body.clone() }).collect(),
        _ => Vec::new(),
    };
    let mut changed = false;
    let (limits, limit_start) = (job.request.limits, job.data.limit_start);
    let ended = engine.jobs.update(job.id, &proofs, |job| {
        if !end.belongs_to(job.data.state) {
            return Ok(false);
        }
        changed = true;
        job.absorb(&running.live());
        match end {
            End::Proved(result, _) => {
                job.data.state = State::Succeeded;
                job.set_result(result)?;
                // The result has what was proved. Only a campaign goes on planning by the komi that its jobs went through.
                job.data.step_start = Counts::default();
                if job.data.campaign.is_none() {
                    job.data.steps.clear();
                }
            }
            End::Rejected(result, text) => {
                job.data.state = State::Failed;
                job.set_result(result)?;
                job.data.error = Some(text.clone());
            }
            // It was given other limits while it ran into these.
            End::Limit if (job.request.limits, job.data.limit_start) != (limits, limit_start) => {
                changed = false;
                if job.data.state == State::Running {
                    job.data.state = State::Queued;
                }
            }
            End::Limit => job.data.state = State::Expired,
            End::Fault(text) => {
                job.data.state = State::Failed;
                job.data.error = Some(text.clone());
            }
            End::Asked => return Ok(false),
        }
        Ok(true)
    })?;
    if let End::Fault(text) | End::Rejected(_, text) = end {
        tracing::error!(job = job.id, error = text, "the job failed");
    }
    if changed {
        engine.metrics.job_finished(ended.data.state);
        engine.metrics.job_ran(&ended);
    }
    tracing::info!(job = job.id, state = ended.data.state.name(), "the job ended");
    Ok(())
}

fn search(engine: &Engine, table: &MappedTable, job: &Job, running: &Running) -> End {
    match job.request.kind {
        Kind::Solve => match job.request.komi {
            Some(komi) => search_solve(engine, table, job, running, komi),
            None => End::Fault("a solve without komi is on record".to_owned()),
        },
        Kind::Value => search_value(engine, table, job, running),
    }
}

/// Writes the certificates that the job asks for into the reports of its proofs; what a certificate's rejection says.
fn certify<'a>(
    engine: &Engine,
    table: &MappedTable,
    job: &Job,
    running: &Running,
    proofs: impl IntoIterator<Item = &'a mut SolveReport>,
) -> Result<Option<String>, End> {
    for (index, proof) in proofs.into_iter().enumerate() {
        let limits = limits_left(job, running);
        engine.certify(table, limits, job, running, index + 1, proof).map_err(|Asked| End::Asked)?;
        if let Some(error) = proof.certificate.as_ref().and_then(|certificate| certificate.error.as_ref()) {
            // At once: nothing may come between that would lose it.
            return Ok(Some(format!("the certificate of proof {} was rejected, which must not happen: {error}", index + 1)));
        }
    }
    Ok(None)
}

/// How a run ends that proved what was asked.
fn proved(report: Value, proofs: Vec<Value>, rejected: Option<String>) -> End {
    match rejected {
        None => End::Proved(report, proofs),
        Some(text) => End::Rejected(report, text),
    }
}

/// What is left of the job's limits.
fn limits_left(job: &Job, running: &Running) -> Limits {
    let counts = running.counts().since(&job.data.limit_start);
    let limits = job.request.limits;
    Limits {
        expansions: limits.expansions.map(|limit| limit.saturating_sub(counts.expansions)),
        time: limits.time.map(|limit| limit.saturating_sub(Duration::from_secs_f64(counts.elapsed_seconds))),
    }
}

/// One call of the search, with the report of all that the job's runs have spent on this komi.
fn solve_step(table: &MappedTable, options: Options, job: &Job, running: &Running, komi: Komi) -> Result<(Outcome, SolveReport), End> {
    let step_start = {
        let mut progress = locked(&running.progress);
        progress.komi = Some(komi.as_f64());
        progress.step_start
    };
    let position = &job.request.position;
    let outcome = solve_with(options, table, &position.game, komi, limits_left(job, running), &running.control);
    match outcome.verdict {
        Ok(_) => {
            let counts = running.counts().since(&step_start);
            let report = SolveReport::new(position, komi, &outcome, &counts, &table.occupancy());
            Ok((outcome, report))
        }
        Err(Stop::Asked) if *locked(&running.yields) == Some(Yield::Memory) => Err(End::Limit),
        Err(Stop::Asked) => Err(End::Asked),
        Err(Stop::Expansions | Stop::Time) => Err(End::Limit),
        Err(Stop::Pruned) => Err(End::Fault("a pruned search, which no job asks for".to_owned())),
    }
}

fn search_solve(engine: &Engine, table: &MappedTable, job: &Job, running: &Running, komi: Komi) -> End {
    let (outcome, mut report) = match solve_step(table, engine.options(), job, running, komi) {
        Ok(proved) => proved,
        Err(end) => return end,
    };
    {
        let mut progress = locked(&running.progress);
        progress.bounds = bounds_of(outcome.verdict.ok(), job.request.position.geometry().points());
        if let Ok((_, margin)) = outcome.verdict {
            progress.steps = vec![Step { margin, report: report.clone() }];
        }
    }
    let rejected = match certify(engine, table, job, running, [&mut report]) {
        Ok(rejected) => rejected,
        Err(end) => return end,
    };
    match serde_json::to_value(&report) {
        Ok(report) => proved(report.clone(), vec![report], rejected),
        Err(error) => End::Fault(error.to_string()),
    }
}

fn search_value(engine: &Engine, table: &MappedTable, job: &Job, running: &Running) -> End {
    let position = &job.request.position;
    let mut value = ValueProgress::new(position, &locked(&running.progress).steps);
    while let Some(komi) = value.next_komi() {
        let (outcome, report) = match solve_step(table, engine.options(), job, running, komi) {
            Ok(proved) => proved,
            Err(end) => return end,
        };
        value.record(komi, &outcome, report);
        let mut progress = locked(&running.progress);
        progress.step_start = running.counts();
        progress.steps = value.steps().to_vec();
        progress.bounds = value.bounds();
    }
    let mut report = value.report(position, &running.counts());
    let rejected = match certify(engine, table, job, running, &mut report.proofs) {
        Ok(rejected) => rejected,
        Err(end) => return end,
    };
    let proofs: Result<Vec<Value>, _> = report.proofs.iter().map(serde_json::to_value).collect();
    match serde_json::to_value(&report).and_then(|report| Ok((report, proofs?))) {
        Ok((report, proofs)) => proved(report, proofs, rejected),
        Err(error) => End::Fault(error.to_string()),
    }
}

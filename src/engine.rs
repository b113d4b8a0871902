//! What the daemon's threads share: jobs, store, the mapped table in use, the running search, checkpoints, health.

use crate::campaigns::Campaign;
use crate::config::Settings;
use crate::jobs::{Job, JobError, Jobs, Live, State};
use crate::metrics::Metrics;
use crate::pulse::Pulse;
use crate::report::{Counts, Step};
use crate::request::JobLimits;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::time::{Duration, Instant, SystemTime};
use superko_rules::Geometry;
use superko_search::{Bounds, Control, Options, Prior};
use superko_storage::{CheckpointReport, MappedTable, Store, TableOrigin};

/// The search under way.
#[derive(Debug)]
pub struct Running {
    /// Its job.
    pub id: u64,
    /// Counts the runs of this process, so that metrics can tell one run's counters from the next one's.
    pub serial: u64,
    /// Stop flag and counters of this run.
    pub control: Control,
    /// Records of certificates written or checked, so that others see that it goes on.
    pub records: AtomicU64,
    /// Counts of earlier runs.
    base: Counts,
    started: Instant,
    /// Why it is to stop, when another job has its turn or a limit is reached that the search does not look at itself.
    pub yields: Mutex<Option<Yield>>,
    /// What this run has proved so far.
    pub progress: Mutex<RunProgress>,
}

/// Why a run stops before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yield {
    /// It is another job's turn.
    Turn,
    /// The table is fuller than the job allows.
    Memory,
}

/// What a run is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// To prove something.
    Search,
    /// To write down what was proved.
    Certificate,
    /// To check what was written.
    Verification,
}

impl Stage {
    /// As in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Search => "search",
            Stage::Certificate => "certificate",
            Stage::Verification => "verification",
        }
    }
}

/// What a run has proved so far.
#[derive(Clone, Debug)]
pub struct RunProgress {
    /// What it is about.
    pub stage: Stage,
    /// Counts over all finished steps of the job.
    pub step_start: Counts,
    /// All finished steps of the job.
    pub steps: Vec<Step>,
    /// What is known of Black's margin.
    pub bounds: Bounds,
    /// The komi being solved.
    pub komi: Option<f64>,
}

impl Running {
    /// A run that goes on from what is recorded of `job`.
    pub fn new(job: &Job) -> Running {
        static RUNS: AtomicU64 = AtomicU64::new(1);
        let bounds = Bounds { lower: job.data.bounds.0, upper: job.data.bounds.1 };
        let progress =
            RunProgress { stage: Stage::Search, step_start: job.data.step_start, steps: job.data.steps.clone(), bounds, komi: None };
        Running {
            id: job.id,
            serial: RUNS.fetch_add(1, Relaxed),
            control: Control::default(),
            records: AtomicU64::new(0),
            base: job.data.counts,
            started: Instant::now(),
            yields: Mutex::default(),
            progress: Mutex::new(progress),
        }
    }

    /// Counts over all runs of the job until now.
    pub fn counts(&self) -> Counts {
        self.base.plus(&Counts::of_control(&self.control, self.started.elapsed().as_secs_f64()))
    }

    /// How long it has run.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Stops it at its next safe point.
    pub fn yield_to(&self, reason: Yield) {
        *locked(&self.yields) = Some(reason);
        self.control.stop.store(true, Relaxed);
    }

    /// Everything a client or a checkpoint wants to know.
    pub fn live(&self) -> Live {
        let RunProgress { stage, step_start, steps, bounds, komi } = locked(&self.progress).clone();
        Live { counts: self.counts(), stage, step_start, steps, bounds, komi }
    }
}

/// With so much room a store that refuses writes does so for another reason.
const SPACE_BYTES: u64 = 1 << 20;

/// Shared by all threads of the daemon.
pub struct Engine {
    /// All jobs.
    pub jobs: Jobs,
    /// Everything durable.
    pub store: Arc<Store>,
    /// Counters for `/metrics`.
    pub metrics: Metrics,
    /// Signs of life of the threads.
    pub pulse: Pulse,
    /// Where store and tables lie.
    pub data_dir: PathBuf,
    /// Size of a mapped table.
    pub table_bytes: u64,
    /// Bytes for the lemmas of a certificate that is being written.
    pub certificate_bytes: u64,
    /// Held while a client has a certificate checked.
    pub verifying: Mutex<()>,
    /// Jobs and numbers of proofs whose certificate was rejected since the start, whether that is on record yet or not.
    pub rejected_now: Mutex<BTreeSet<(u64, usize)>>,
    /// Certificate files that have been found to be what the record says, with their size and time of change.
    pub whole_files: Mutex<HashMap<PathBuf, (u64, SystemTime)>>,
    /// Search threads of a job.
    threads: usize,
    prior: &'static Prior,
    table: RwLock<Option<Arc<MappedTable>>>,
    running: RwLock<Option<Arc<Running>>>,
    checkpoint: Mutex<()>,
    /// Lemmas may have been stored since the last checkpoint.
    unsaved: AtomicBool,
    /// How often a table was opened, so that metrics can tell one table's counts from the next one's.
    table_generation: AtomicU64,
    gave_up: Mutex<Option<String>>,
    recovered: AtomicBool,
    stopping: AtomicBool,
    hurry: AtomicBool,
    problems: Mutex<BTreeMap<&'static str, String>>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("data_dir", &self.data_dir).finish_non_exhaustive()
    }
}

/// Locks a mutex whose value is whole even if a holder panicked.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Engine {
    /// An engine over an open store, before recovery.
    pub fn new(store: Arc<Store>, metrics: Metrics, settings: &Settings) -> Result<Engine, JobError> {
        let jobs = Jobs::load(store.clone(), settings.max_queue)?;
        if let Ok(Some(last)) = store.last_checkpoint() {
            metrics.checkpoint_last_success.set(last.unix_seconds as f64);
        }
        metrics.set_checkpoint_interval(settings.checkpoint_interval);
        Ok(Engine {
            jobs,
            store,
            metrics,
            pulse: Pulse::default(),
            data_dir: settings.data_dir.clone(),
            table_bytes: settings.table_bytes,
            certificate_bytes: settings.certificate_bytes,
            verifying: Mutex::default(),
            rejected_now: Mutex::default(),
            whole_files: Mutex::default(),
            threads: settings.threads,
            prior: settings.prior,
            table: RwLock::default(),
            running: RwLock::default(),
            checkpoint: Mutex::default(),
            unsaved: AtomicBool::new(false),
            table_generation: AtomicU64::new(0),
            gave_up: Mutex::default(),
            recovered: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            hurry: AtomicBool::new(false),
            problems: Mutex::default(),
        })
    }

    /// How a job is searched.
    pub fn options(&self) -> Options {
        Options { threads: self.threads, prior: self.prior, ..Options::default() }
    }

    /// The table in use, if any.
    pub fn table(&self) -> Option<Arc<MappedTable>> {
        self.table.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts the tables opened so far.
    pub fn table_generation(&self) -> u64 {
        self.table_generation.load(Relaxed)
    }

    /// The search under way, if any.
    pub fn running(&self) -> Option<Arc<Running>> {
        self.running.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Declares the search under way.
    pub fn set_running(&self, running: Option<Arc<Running>>) {
        // The counters of the run that ends go into the totals before it is forgotten.
        self.metrics.follow_search(self.running().as_deref());
        *self.running.write().unwrap_or_else(PoisonError::into_inner) = running;
    }

    /// What the running search adds to job `id`, if it is the one.
    pub fn live(&self, id: u64) -> Option<Live> {
        self.running().filter(|running| running.id == id).map(|running| running.live())
    }

    /// Whether the store refuses writes for another reason than a full disk, asked by a write.
    pub fn store_is_stuck(&self) -> bool {
        let has_space = || superko_storage::disk_free_bytes(&self.data_dir).is_ok_and(|free| free >= SPACE_BYTES);
        self.store.refuses_writes() && self.store.try_write().is_err() && has_space()
    }

    /// Ends the daemon with an error, for whoever supervises it to start it again.
    pub fn give_up(&self, reason: String) {
        *locked(&self.gave_up) = Some(reason);
    }

    /// Why the daemon must end, if so.
    pub fn gave_up(&self) -> Option<String> {
        locked(&self.gave_up).clone()
    }

    /// Whether recovery is done.
    pub fn is_recovered(&self) -> bool {
        self.recovered.load(Relaxed)
    }

    /// Declares recovery done.
    pub fn set_recovered(&self) {
        self.recovered.store(true, Relaxed);
    }

    /// Whether the daemon is shutting down.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }

    /// Set when the daemon is shutting down.
    pub fn stopping(&self) -> &AtomicBool {
        &self.stopping
    }

    /// Starts the shutdown: no new jobs, the search stops at its next safe point.
    pub fn stop(&self) {
        self.stopping.store(true, Relaxed);
        self.jobs.drain();
        self.jobs.events.close();
        self.stop_search();
    }

    /// Sets the running search's stop flag.
    pub fn stop_search(&self) {
        if let Some(running) = self.running() {
            running.control.stop.store(true, Relaxed);
        }
    }

    /// From now on optional work is left out: the lemmas since the last checkpoint may be lost, never an acknowledged job.
    pub fn hurry(&self) {
        self.hurry.store(true, Relaxed);
    }

    /// Whether optional work is left out.
    pub fn is_hurrying(&self) -> bool {
        self.hurry.load(Relaxed)
    }

    /// Records or clears what keeps the daemon from being ready.
    pub fn set_problem(&self, part: &'static str, problem: Option<String>) {
        let mut problems = locked(&self.problems);
        match problem {
            Some(text) => {
                if problems.get(part) != Some(&text) {
                    tracing::error!(part, problem = %text, "degraded");
                }
                problems.insert(part, text);
            }
            None => {
                if problems.remove(part).is_some() {
                    tracing::info!(part, "healthy again");
                }
            }
        }
    }

    /// Why the daemon is not ready; empty if it is.
    pub fn unready(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        if self.is_stopping() {
            reasons.push("the server is shutting down".to_owned());
        }
        if !self.is_recovered() {
            reasons.push("recovery is under way".to_owned());
        }
        reasons.extend(locked(&self.problems).iter().map(|(part, text)| format!("{part}: {text}")));
        reasons
    }

    /// Whether a checkpoint is being made.
    pub fn is_checkpointing(&self) -> bool {
        matches!(self.checkpoint.try_lock(), Err(TryLockError::WouldBlock))
    }

    /// Declares that lemmas may have been stored since the last checkpoint, by a search that has ended or at an earlier start.
    pub fn set_unsaved(&self) {
        self.unsaved.store(true, Relaxed);
    }

    /// Whether a checkpoint would save anything.
    pub fn has_unsaved(&self) -> bool {
        self.unsaved.load(Relaxed) || self.running().is_some()
    }

    /// Sets the stop flag of the running search if its job is to stop.
    fn stop_if(&self, is_meant: impl Fn(&Job) -> bool) {
        if let Some(running) = self.running()
            && self.jobs.get(running.id).is_some_and(|job| !job.data.state.is_runnable() && is_meant(&job))
        {
            running.control.stop.store(true, Relaxed);
        }
    }

    /// Takes a job out of the solver's hands: `cancelled` or `paused`. One that is so already stays as it is. Blocks on the disk.
    fn take_out(&self, id: u64, to: State) -> Result<Arc<Job>, JobError> {
        let mut was_open = false;
        let job = self.jobs.update(id, &[], |job| match (job.data.state, job.data.campaign) {
            (state, Some(campaign)) if state.is_open() => Err(JobError::PartOfCampaign { id, campaign }),
            (state, _) if state == to => Ok(false),
            (state, _) if state.is_open() => {
                was_open = true;
                if let Some(live) = self.live(id) {
                    // Counts only: steps enter the record with the checkpoint that holds their lemmas.
                    job.data.counts = live.counts;
                }
                job.data.state = to;
                Ok(true)
            }
            (state, _) => Err(JobError::Conflict { what: "job", id, state, action: to.name() }),
        })?;
        if was_open && to == State::Cancelled {
            self.metrics.job_finished(to);
            if job.data.started_at.is_some() {
                self.metrics.job_ran(&job);
            }
        }
        self.stop_if(|job| job.id == id);
        Ok(job)
    }

    /// Cancels an open job; a job that is cancelled already stays as it is. Blocks on the disk.
    pub fn cancel(&self, id: u64) -> Result<Arc<Job>, JobError> {
        self.take_out(id, State::Cancelled)
    }

    /// Puts an open job aside. Blocks on the disk.
    pub fn pause(&self, id: u64) -> Result<Arc<Job>, JobError> {
        self.take_out(id, State::Paused)
    }

    /// Puts a paused or expired job into the queue again, with other limits if given. Blocks on the disk.
    pub fn resume(&self, id: u64, limits: Option<JobLimits>) -> Result<Arc<Job>, JobError> {
        self.jobs.update(id, &[], |job| match (job.data.state, job.data.campaign) {
            (State::Queued | State::Running, _) if limits.is_none() => Ok(false),
            (State::Queued | State::Paused | State::Expired, None) => {
                job.requeue(limits);
                Ok(true)
            }
            (State::Running, None) => Err(JobError::Conflict { what: "job", id, state: State::Running, action: "given other limits" }),
            (state, None) => Err(JobError::Conflict { what: "job", id, state, action: "resumed" }),
            (_, Some(campaign)) => Err(JobError::PartOfCampaign { id, campaign }),
        })
    }

    /// Changes the priority of an open job. Blocks on the disk.
    pub fn set_priority(&self, id: u64, priority: i32, if_match: Option<&dyn Fn(&str) -> bool>) -> Result<Arc<Job>, JobError> {
        self.jobs.update(id, &[], |job| {
            if if_match.is_some_and(|names| !names(&job.tag())) {
                return Err(JobError::Changed { what: "job", id, tag: job.tag() });
            }
            match (job.data.state, job.data.campaign) {
                (_, Some(campaign)) => Err(JobError::PartOfCampaign { id, campaign }),
                (state, _) if !state.is_open() => Err(JobError::Conflict { what: "job", id, state, action: "given another priority" }),
                _ if job.request.priority == priority => Ok(false),
                _ => {
                    job.set_request(|request| request.priority = priority);
                    Ok(true)
                }
            }
        })
    }

    /// Pauses a campaign with its jobs. Blocks on the disk.
    pub fn pause_campaign(&self, id: u64) -> Result<Arc<Campaign>, JobError> {
        let campaign = self.jobs.pause_campaign(id)?;
        self.stop_if(|job| job.data.campaign == Some(id));
        Ok(campaign)
    }

    /// Goes on with a campaign, with other limits if given: a running job of it begins another turn, by these. Blocks on the disk.
    pub fn resume_campaign(&self, id: u64, limits: Option<JobLimits>) -> Result<Arc<Campaign>, JobError> {
        let campaign = self.jobs.resume_campaign(id, limits)?;
        if limits.is_some()
            && let Some(running) = self.running()
            && self.jobs.get(running.id).is_some_and(|job| job.data.campaign == Some(id))
        {
            running.yield_to(Yield::Turn);
        }
        Ok(campaign)
    }

    /// Cancels a campaign with its jobs. Blocks on the disk.
    pub fn cancel_campaign(&self, id: u64) -> Result<Arc<Campaign>, JobError> {
        let campaign = self.jobs.cancel_campaign(id)?;
        self.stop_if(|job| job.data.campaign == Some(id));
        Ok(campaign)
    }

    /// Tells whoever listens how far the running job has come.
    pub fn publish_progress(&self, per_second: f64) {
        let Some(running) = self.running() else { return };
        let Some(job) = self.jobs.get(running.id) else { return };
        let live = running.live();
        let mut progress = serde_json::to_value(job.progress(Some(&live))).unwrap_or_default();
        progress["proof_number"] = running.control.root_phi.load(Relaxed).to_string().into();
        progress["disproof_number"] = running.control.root_delta.load(Relaxed).to_string().into();
        progress["expansions_per_second"] = per_second.into();
        let view = serde_json::json!({
            "job": running.id,
            "campaign": job.data.campaign,
            "progress": progress,
            "bounds": {"lower": live.bounds.lower, "upper": live.bounds.upper},
        });
        self.jobs.events.publish("progress", Some(running.id), job.data.campaign, &view);
    }

    /// Saves the table's lemmas, then in one step the running job's progress and the checkpoint's record. Blocks for seconds on a
    /// large table.
    ///
    /// The order makes the record true whenever the daemon dies: progress is read before the lemmas are copied and written after.
    pub fn checkpoint(&self) -> Result<Option<CheckpointReport>, String> {
        let _one_at_a_time = locked(&self.checkpoint);
        let Some(table) = self.table() else { return Ok(None) };
        let started = Instant::now();
        self.unsaved.store(false, Relaxed);
        let live = self.running().map(|running| (running.id, running.live()));
        let begun = self.store.begin_checkpoint(&table).map_err(|error| error.to_string());
        let saved = begun.and_then(|pending| self.jobs.commit(pending, live.as_ref()).map_err(|error| error.to_string()));
        match &saved {
            Ok(report) => {
                self.metrics.checkpoint_done(report, started.elapsed());
                self.set_problem("checkpoint", None);
                tracing::info!(sequence = report.sequence, lemmas = report.lemmas, seconds = started.elapsed().as_secs_f64(), "checkpoint");
                let job = live.and_then(|(id, _)| self.jobs.get(id));
                let campaign = job.as_ref().and_then(|job| job.data.campaign);
                let view = serde_json::json!({
                    "sequence": report.sequence.to_string(),
                    "lemmas": report.lemmas.to_string(),
                    "checkpoint_bytes": report.bytes.to_string(),
                    "elapsed_seconds": report.seconds,
                });
                self.jobs.events.publish("checkpoint", job.map(|job| job.id), campaign, &view);
            }
            Err(error) => {
                self.unsaved.store(true, Relaxed);
                self.metrics.checkpoint_failures.inc();
                self.set_problem("checkpoint", Some(error.clone()));
            }
        }
        saved.map(Some)
    }

    /// Makes the table of a board size the one in use: mapped from its file if that is whole, else filled from the store.
    pub fn use_table(&self, geometry: &'static Geometry) -> Result<Arc<MappedTable>, String> {
        use superko_search::Table;
        if let Some(table) = self.table().filter(|table| table.geometry() == geometry) {
            return Ok(table);
        }
        let started = Instant::now();
        tracing::info!(board = geometry.name(), "preparing the table");
        let mut still_read = false;
        if self.table().is_some() {
            self.checkpoint()?;
            // The store has its lemmas and the next board takes over its file: there is nothing to write back.
            still_read = self.release_table().is_none();
        }
        let dir = self.data_dir.join("tables");
        std::fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        let name = format!("{}.table", geometry.name());
        take_over_tables(&dir, &name, still_read).map_err(|error| format!("{}: {error}", dir.display()))?;
        let (table, origin) = MappedTable::open(&dir.join(name), geometry, self.table_bytes).map_err(|error| error.to_string())?;
        match origin {
            TableOrigin::Reused => {
                // It may have been closed before the store had all of its lemmas.
                self.set_unsaved();
                tracing::info!(board = geometry.name(), "the table file is whole");
            }
            TableOrigin::Created | TableOrigin::Rebuilt { .. } => {
                if let TableOrigin::Rebuilt { reason } = origin {
                    tracing::info!(board = geometry.name(), reason, "the table file begins anew: the store fills it");
                }
                let report = self.store.restore(&table).map_err(|error| error.to_string())?;
                self.metrics.recovery_refused.inc_by(report.refused);
                tracing::info!(board = geometry.name(), lemmas = report.lemmas, refused = report.refused, "table filled from the store");
            }
        }
        self.metrics.recovery_duration.set(started.elapsed().as_secs_f64());
        let table = Arc::new(table);
        self.table_generation.fetch_add(1, Relaxed);
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = Some(table.clone());
        Ok(table)
    }

    /// Closes the table in use so that its file counts as whole. A reader that holds on to it for long leaves it to be rebuilt.
    pub fn close_table(&self) {
        if let Some(table) = self.release_table()
            && let Err(error) = table.close_clean()
        {
            tracing::error!(%error, "the table file could not be closed, it will be rebuilt from the store");
        }
    }

    /// Takes the table out of use; `None` if there is none, or if a reader holds on to it for more than five seconds.
    fn release_table(&self) -> Option<MappedTable> {
        // A checkpoint reads the table for as long as it takes.
        let _no_checkpoint = locked(&self.checkpoint);
        self.metrics.follow_table(self);
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner).take()?;
        for _ in 0..500 {
            match Arc::try_unwrap(table) {
                Ok(table) => return Some(table),
                Err(shared) => table = shared,
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        tracing::warn!("the table is still being read, its file will be rebuilt from the store");
        None
    }
}

/// Keeps the disk bounded: only the table in use has a file, the store holds the lemmas of all others. The file of another board
/// becomes the wanted one's if that has none, since it is quicker to empty than to free and allocate; not if it is still mapped:
/// its reader would find lemmas of the new board under keys of the old.
fn take_over_tables(dir: &Path, wanted: &str, still_read: bool) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let is_table = path.extension().is_some_and(|extension| extension == "table");
        if !is_table || path.file_name().is_some_and(|name| name == wanted) {
            continue;
        }
        if still_read || dir.join(wanted).exists() {
            std::fs::remove_file(&path)?;
        } else {
            std::fs::rename(&path, dir.join(wanted))?;
        }
    }
    Ok(())
}

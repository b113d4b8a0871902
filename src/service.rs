//! What a service manager is told (`NOTIFY_SOCKET`, systemd's protocol): readiness, what the daemon is at, that it is alive, and that
//! a start or a stop takes its time.

use crate::engine::{Engine, locked};
use crate::pulse::{LONG, Phase, Watch};
use sd_notify::NotifyState;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often to look, if no watchdog asks for more.
const TICK: Duration = Duration::from_secs(1);

/// How often to send a status of which only numbers have changed.
const STATUS: Duration = Duration::from_secs(10);

/// What a start or stop gets from now on while it makes progress.
const EXTENSION: Duration = Duration::from_secs(60);

/// Tells the service manager, if there is one.
pub fn notify(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::warn!(%error, "the service manager could not be notified");
    }
}

/// Whether a service manager wants to know.
fn is_wanted() -> bool {
    std::env::var_os("NOTIFY_SOCKET").is_some()
}

/// The thread that keeps the service manager informed; ends when dropped.
#[derive(Debug)]
pub struct Reporter {
    thread: Option<JoinHandle<()>>,
    end: Arc<(Mutex<bool>, Condvar)>,
}

impl Reporter {
    /// Starts it, after a first report; without a service manager there is nothing to do.
    pub fn start(engine: Arc<Engine>) -> std::io::Result<Reporter> {
        let end: Arc<(Mutex<bool>, Condvar)> = Arc::default();
        let mut thread = None;
        if is_wanted() {
            let mut report = Report::new();
            report.look(&engine, Instant::now());
            let end = end.clone();
            thread = Some(std::thread::Builder::new().name("reporter".to_owned()).spawn(move || report.repeat(&engine, &end))?);
        }
        Ok(Reporter { thread, end })
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        *locked(&self.end.0) = true;
        self.end.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // It panicked if this is an error, which the log tells.
            let _ = thread.join();
        }
    }
}

/// What has been told so far.
#[derive(Debug)]
struct Report {
    watchdog: Option<Duration>,
    /// All threads, as the watchdog wants to see them.
    alive: Watch,
    /// The solver thread, in a start or a stop that may take its time.
    progress: Watch,
    was_silent: bool,
    pinged: Option<Instant>,
    extended: Option<Instant>,
    status: Status,
}

impl Report {
    fn new() -> Report {
        let watchdog = sd_notify::watchdog_enabled();
        Report {
            watchdog,
            // Half of the interval for a sign, and four looks an interval: what is late for one look is still in time for a ping.
            alive: Watch::new(watchdog.map_or(LONG, |interval| interval / 2)),
            progress: Watch::new(LONG),
            was_silent: false,
            pinged: None,
            extended: None,
            status: Status::default(),
        }
    }

    fn repeat(mut self, engine: &Engine, end: &(Mutex<bool>, Condvar)) {
        let tick = self.watchdog.map_or(TICK, |interval| TICK.min(interval / 4));
        let mut ended = locked(&end.0);
        while !*ended {
            (ended, _) = end.1.wait_timeout(ended, tick).unwrap_or_else(PoisonError::into_inner);
            if !*ended {
                self.look(engine, Instant::now());
            }
        }
    }

    /// Looks at the daemon and tells what is due.
    fn look(&mut self, engine: &Engine, now: Instant) {
        let is_due = |last: Option<Instant>, interval: Duration| last.is_none_or(|last| now.duration_since(last) >= interval);
        self.status.send(engine, now);
        let signs = engine.signs();
        // In a start or a stop only the solver thread has signs to give, or who makes the last checkpoint for it.
        let progress = self.progress.silent(now, &signs[..1]);
        let alive = self.alive.silent(now, &signs);
        let is_between = engine.is_stopping() || !engine.is_recovered();
        let silent = if is_between { progress } else { alive };
        if is_between && silent.is_none() && is_due(self.extended, EXTENSION / 12) {
            self.extended = Some(now);
            notify(NotifyState::ExtendTimeoutUsec(EXTENSION.as_micros() as u32));
        }
        let Some(interval) = self.watchdog.filter(|_| engine.is_recovered()) else { return };
        match silent {
            None if is_due(self.pinged, interval / 4) => {
                self.pinged = Some(now);
                notify(NotifyState::Watchdog);
                engine.metrics.watchdog_pinged();
            }
            Some(thread) if !self.was_silent => {
                tracing::error!(thread, "no sign of life for too long: the service manager gets no more pings");
            }
            _ => {}
        }
        self.was_silent = silent.is_some();
    }
}

/// The status last sent.
#[derive(Debug, Default)]
struct Status {
    head: String,
    sent: Option<Instant>,
}

impl Status {
    /// Sends the status if it says something new.
    fn send(&mut self, engine: &Engine, now: Instant) {
        let (head, numbers) = status(engine);
        if head == self.head && self.sent.is_some_and(|sent| numbers.is_empty() || now.duration_since(sent) < STATUS) {
            return;
        }
        // A line each: what follows a line break would be read as another message.
        notify(NotifyState::Status(&format!("{head}{numbers}").replace(char::is_control, " ")));
        *self = Status { head, sent: Some(now) };
    }
}

/// What the daemon is at, in one line, and the numbers that follow.
fn status(engine: &Engine) -> (String, String) {
    if engine.is_stopping() {
        let what = match engine.pulse.phase() {
            Phase::Closing => "the last checkpoint, then the files are closed",
            _ => "the search goes to its next safe point",
        };
        return (format!("stopping: {what}"), String::new());
    }
    if !engine.is_recovered() {
        return ("recovering: the table of the job that ran is made ready".to_owned(), String::new());
    }
    let reasons = engine.unready();
    let trouble = if reasons.is_empty() { String::new() } else { format!("degraded ({}); ", reasons.join("; ")) };
    let queued = engine.jobs.queue().len();
    let waiting = if queued > 0 { format!(", {queued} queued") } else { String::new() };
    match engine.running().and_then(|running| Some((engine.jobs.get(running.id)?, running.live()))) {
        Some((job, live)) => {
            let board = job.request.position.geometry().name();
            let komi = live.komi.map_or(String::new(), |komi| format!(" at komi {komi}"));
            let head = format!("{trouble}job {}: {} of {board}{komi}{waiting}", job.id, live.stage.name());
            (head, format!(", {} expansions", live.counts.expansions))
        }
        None => (format!("{trouble}idle{waiting}"), String::new()),
    }
}

//! Signs of life of the daemon's threads. A service manager is told that all is well only while they show some.

use crate::engine::Engine;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How long a thread may be silent that reads or writes a table or the store: to allocate a large table can take a slow disk a minute a GiB.
pub const LONG: Duration = Duration::from_secs(1200);

/// What the solver thread is at, and so which sign of life to expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// It waits for a job, and looks twice a second whether there is one.
    Idle,
    /// It makes a table ready: filled from the store, record after record.
    Table,
    /// It searches, or writes and checks a certificate.
    Search,
    /// It stores how a run ended.
    Store,
    /// It has ended; the last checkpoint is made and the table closed.
    Closing,
}

impl Phase {
    /// Every phase, in the order of a job's run.
    pub const ALL: [Phase; 5] = [Phase::Idle, Phase::Table, Phase::Search, Phase::Store, Phase::Closing];

    /// As in the metrics.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Idle => "idle",
            Phase::Table => "table",
            Phase::Search => "search",
            Phase::Store => "store",
            Phase::Closing => "closing",
        }
    }

    /// Whether its signs may be far apart.
    fn is_slow(self) -> bool {
        matches!(self, Phase::Table | Phase::Store | Phase::Closing)
    }
}

/// What the threads count up themselves. The search has counters of its own.
#[derive(Debug, Default)]
pub struct Pulse {
    phase: AtomicU8,
    solver: AtomicU64,
    checkpoints: AtomicU64,
    monitor: AtomicU64,
    server: AtomicU64,
}

impl Pulse {
    /// The solver thread enters a phase, or begins it anew.
    pub fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Relaxed);
        self.solver.fetch_add(1, Relaxed);
    }

    /// What the solver thread is at.
    pub fn phase(&self) -> Phase {
        Phase::ALL[usize::from(self.phase.load(Relaxed))]
    }

    /// The checkpoint thread has looked whether one is due.
    pub fn checkpoints(&self) {
        self.checkpoints.fetch_add(1, Relaxed);
    }

    /// The monitor thread has looked whether a turn is over.
    pub fn monitor(&self) {
        self.monitor.fetch_add(1, Relaxed);
    }

    /// The async threads get their turn.
    pub fn server(&self) {
        self.server.fetch_add(1, Relaxed);
    }
}

/// A thread's sign: as long as it lives it becomes another one again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sign {
    /// Which thread.
    pub thread: &'static str,
    /// Grows, or changes in another way.
    pub count: u64,
    /// Whether it may take up to [`LONG`] to change.
    pub slow: bool,
}

impl Engine {
    /// The signs of the solver with its search threads, of the checkpoint and monitor threads and of the HTTP server. Waits for no lock that a
    /// thread holds for long.
    pub fn signs(&self) -> [Sign; 4] {
        let pulse = &self.pulse;
        let (phase, stored) = (pulse.phase(), self.store.progress());
        let work = match phase {
            Phase::Idle => 0,
            Phase::Table | Phase::Store | Phase::Closing => stored,
            Phase::Search => self.running().map_or(0, |running| {
                let of_certificate = running.records.load(Relaxed);
                running.control.expansions.load(Relaxed).wrapping_add(of_certificate)
            }),
        };
        let solver = Sign { thread: "solver", count: pulse.solver.load(Relaxed).wrapping_add(work), slow: phase.is_slow() };
        // Whoever makes a checkpoint, the checkpoint thread may have to wait for it.
        let count = pulse.checkpoints.load(Relaxed).wrapping_add(stored);
        let checkpoints = Sign { thread: "checkpoint", count, slow: self.is_checkpointing() };
        let quick = |thread, count: &AtomicU64| Sign { thread, count: count.load(Relaxed), slow: false };
        [solver, checkpoints, quick("monitor", &pulse.monitor), quick("server", &pulse.server)]
    }
}

/// Watches signs of life over time.
#[derive(Debug)]
pub struct Watch {
    patience: Duration,
    seen: Vec<(Sign, Instant)>,
}

impl Watch {
    /// A watch that lets a thread be silent for `patience`, and a slow one for [`LONG`] if that is more.
    pub fn new(patience: Duration) -> Watch {
        Watch { patience, seen: Vec::new() }
    }

    /// Looks at all signs; the first thread that has been silent for too long.
    pub fn silent(&mut self, now: Instant, signs: &[Sign]) -> Option<&'static str> {
        let mut silent = None;
        for &sign in signs {
            let Some(entry) = self.seen.iter_mut().find(|(old, _)| old.thread == sign.thread) else {
                self.seen.push((sign, now));
                continue;
            };
            if entry.0 != sign {
                *entry = (sign, now);
            }
            let patience = if sign.slow { self.patience.max(LONG) } else { self.patience };
            if now.duration_since(entry.1) > patience {
                silent = silent.or(Some(sign.thread));
            }
        }
        silent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signs(solver: u64, checkpoints: u64, slow: bool) -> [Sign; 2] {
        [Sign { thread: "solver", count: solver, slow: false }, Sign { thread: "checkpoint", count: checkpoints, slow }]
    }

    #[test]
    fn a_thread_that_stands_still_is_found() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut watch = Watch::new(Duration::from_secs(30));
        for seconds in [0, 15, 30, 45] {
            assert_eq!(watch.silent(at(seconds), &signs(seconds, seconds, false)), None);
        }
        assert_eq!(watch.silent(at(60), &signs(45, 60, false)), None, "not for long");
        assert_eq!(watch.silent(at(75), &signs(45, 75, false)), None, "as long as it may");
        assert_eq!(watch.silent(at(90), &signs(45, 90, false)), Some("solver"), "the other thread's signs do not count for it");
        assert_eq!(watch.silent(at(105), &signs(46, 105, false)), None, "it goes on");
        assert_eq!(watch.silent(at(120), &signs(47, 105, false)), None);
        assert_eq!(watch.silent(at(150), &signs(48, 105, false)), Some("checkpoint"));
    }

    #[test]
    fn who_works_on_the_disk_gets_time() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut watch = Watch::new(Duration::from_secs(30));
        assert_eq!(watch.silent(at(0), &signs(0, 0, true)), None);
        assert_eq!(watch.silent(at(LONG.as_secs()), &signs(1, 0, true)), None);
        assert_eq!(watch.silent(at(LONG.as_secs() + 1), &signs(2, 0, true)), Some("checkpoint"), "but not for ever");
        let mut watch = Watch::new(2 * LONG);
        assert_eq!(watch.silent(at(0), &signs(0, 0, true)), None);
        assert_eq!(watch.silent(at(2 * LONG.as_secs()), &signs(1, 0, true)), None, "a greater patience counts");
    }
}

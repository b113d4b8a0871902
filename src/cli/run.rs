//! Running a search in this process: a thread with a deep stack, progress on standard error, Ctrl-C.

use super::Failure;
use crate::STACK_BYTES;
use crate::report::Counts;
use indicatif::{ProgressBar, ProgressDrawTarget};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use superko_search::Control;

/// How often a plain progress line is printed where standard error is no terminal.
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);

/// A live line on a terminal, a plain line every few seconds elsewhere.
pub struct Progress {
    bar: Option<ProgressBar>,
    /// When the next plain line is due.
    due: Instant,
}

impl Progress {
    /// Nothing shown yet; the first plain line comes after a while.
    pub fn new() -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()));
        Progress { bar, due: Instant::now() + PLAIN_INTERVAL }
    }

    /// The same with the first plain line at once, for what is watched.
    pub fn at_once() -> Progress {
        let mut progress = Progress::new();
        progress.due = Instant::now();
        progress
    }

    /// Shows the present state; rate limited by itself.
    pub fn show(&mut self, text: impl FnOnce() -> String) {
        match &self.bar {
            Some(bar) => {
                bar.set_message(text());
                bar.tick();
            }
            None if Instant::now() >= self.due => {
                eprintln!("{}", text());
                self.due = Instant::now() + PLAIN_INTERVAL;
            }
            None => {}
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Runs `work` on a thread with a deep stack while this thread shows `control`'s counters. SIGINT and SIGTERM set its stop flag.
pub fn search<T: Send>(label: &str, control: &Control, work: impl FnOnce() -> T + Send) -> Result<T, Failure> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, interrupted.clone())
            .map_err(|error| Failure::other(format!("cannot watch for signals: {error}")))?;
    }
    let started = Instant::now();
    std::thread::scope(|scope| {
        let (done, waiting) = channel();
        let worker = std::thread::Builder::new()
            .name("solver".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, move || {
                let result = work();
                // The receiver lives until this is received.
                let _ = done.send(());
                result
            })
            .map_err(|error| Failure::other(format!("cannot start the solver thread: {error}")))?;
        let mut progress = Progress::new();
        while let Err(RecvTimeoutError::Timeout) = waiting.recv_timeout(Duration::from_millis(100)) {
            if interrupted.load(Relaxed) {
                control.stop.store(true, Relaxed);
            }
            progress.show(|| {
                let counts = Counts::of_control(control, started.elapsed().as_secs_f64());
                progress_line(label, &counts)
            });
        }
        drop(progress);
        worker.join().map_err(|_| Failure::other("the solver panicked: this is a bug, please report the message above and the command"))
    })
}

/// One line about a running search.
pub fn progress_line(label: &str, counts: &Counts) -> String {
    format!(
        "{label}: {:.0} s, {} expansions ({:.0}/s), {} distinct nodes, revisit factor {:.2}, table hit rate {:.3}",
        counts.elapsed_seconds,
        counts.expansions,
        counts.expansions as f64 / counts.elapsed_seconds.max(0.001),
        counts.distinct_nodes,
        counts.revisit_factor(),
        counts.table_hit_rate()
    )
}

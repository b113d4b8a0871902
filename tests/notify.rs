//! What a service manager hears (`NOTIFY_SOCKET`): a socket of the test's own stands for systemd's. To see what happens when a thread
//! hangs, the test stops single threads of the daemon as a debugger would.

mod common;

use common::{CONFIG, Daemon, skip, wait_for};
use serde_json::json;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::{Duration, Instant};

/// Never a checkpoint by itself, so that its thread has nothing to do but to look whether one is due.
const NO_CHECKPOINTS: &str = "table = \"64MiB\"\ncheckpoint_interval_seconds = 86400\n";

/// The interval of the watchdog that the daemon is told.
const WATCHDOG: Duration = Duration::from_secs(6);

/// The service manager's end.
struct Manager {
    socket: UnixDatagram,
    heard: Vec<(Instant, String)>,
}

impl Manager {
    fn new(dir: &Path) -> Manager {
        let path = dir.join("notify");
        let _ = std::fs::remove_file(&path);
        let socket = UnixDatagram::bind(path).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a time limit");
        Manager { socket, heard: Vec::new() }
    }

    fn start(&self, dir: &Path, config: &str) -> Daemon {
        Daemon::start_changed(dir, config, |command| {
            command.env("NOTIFY_SOCKET", dir.join("notify")).env("WATCHDOG_USEC", WATCHDOG.as_micros().to_string());
        })
    }

    /// Takes in what has been said until now, and what is said within a tenth of a second.
    fn listen(&mut self) {
        let mut buffer = [0; 4096];
        loop {
            match self.socket.recv(&mut buffer) {
                Ok(length) => {
                    let text = std::str::from_utf8(&buffer[..length]).expect("UTF-8");
                    self.heard.extend(text.lines().map(|line| (Instant::now(), line.to_owned())));
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Waits until a message begins so, among those from number `from`; its number.
    fn wait_for(&mut self, from: usize, start: &str) -> usize {
        wait_for(start, 60, || {
            self.listen();
            self.heard.iter().skip(from).position(|(_, text)| text.starts_with(start)).map(|index| from + index)
        })
    }

    /// How many messages are so, heard in this time from now on.
    fn count(&mut self, text: &str, time: Duration) -> usize {
        self.listen();
        let (from, end) = (self.heard.len(), Instant::now() + time);
        while Instant::now() < end {
            self.listen();
        }
        self.heard[from..].iter().filter(|(_, heard)| heard == text).count()
    }
}

/// A thread of another process that stands still until this is dropped, in the thread that made it.
struct Frozen(libc::pid_t);

impl Frozen {
    /// Stops the thread with this name; the reason if that is not allowed here.
    fn new(pid: u32, name: &str) -> Result<Frozen, String> {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("the daemon's threads");
        let is_named = |path: &Path| std::fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm.trim_end() == name);
        let path = tasks.map(|task| task.expect("a thread").path()).find(|path| is_named(path)).expect(name);
        let id: libc::pid_t = path.file_name().and_then(|id| id.to_str()?.parse().ok()).expect("a thread id");
        let none = std::ptr::null_mut::<libc::c_void>();
        // SAFETY: these requests read and write no memory of this process.
        let stopped = unsafe { libc::ptrace(libc::PTRACE_SEIZE, id, none, none) == 0 };
        if !stopped {
            return Err(std::io::Error::last_os_error().to_string());
        }
        let frozen = Frozen(id);
        let mut status = 0;
        // SAFETY: as above; the status is a local number.
        let waited = unsafe {
            assert_eq!(libc::ptrace(libc::PTRACE_INTERRUPT, id, none, none), 0, "{}", std::io::Error::last_os_error());
            libc::waitpid(id, &raw mut status, libc::__WALL)
        };
        assert!(waited == id && libc::WIFSTOPPED(status), "the thread stands still");
        Ok(frozen)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let none = std::ptr::null_mut::<libc::c_void>();
        // SAFETY: this request reads and writes no memory of this process. Should it fail, the thread goes with the daemon.
        unsafe { libc::ptrace(libc::PTRACE_DETACH, self.0, none, none) };
    }
}

#[test]
fn readiness_status_and_pings_are_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut manager = Manager::new(dir.path());
    let mut daemon = manager.start(dir.path(), CONFIG);
    let ready = manager.wait_for(0, "READY=1");
    let idle = manager.wait_for(ready, "STATUS=idle");
    manager.wait_for(idle, "WATCHDOG=1");
    let id = daemon.submit(&json!({"kind": "value", "board": "4x5"}));
    let status = manager.wait_for(idle, &format!("STATUS=job {id}: search of 4x5 at komi"));
    assert!(manager.heard[status].1.contains("expansions"), "{:?}", manager.heard[status]);
    wait_for("lemmas in the store", 60, || (daemon.metric("superko_checkpoints_total") >= 2.0).then_some(()));
    assert!(daemon.metric("superko_watchdog_last_ping_timestamp_seconds") > 0.0);
    // Every message but these is a mistake.
    let known = ["READY=1", "STATUS=", "WATCHDOG=1", "EXTEND_TIMEOUT_USEC=", "STOPPING=1"];
    assert!(manager.heard.iter().all(|(_, text)| known.iter().any(|start| text.starts_with(start))), "{:?}", manager.heard);
    let pings: Vec<Instant> = manager.heard.iter().filter(|(_, text)| text == "WATCHDOG=1").map(|&(at, _)| at).collect();
    assert!(pings.windows(2).all(|pair| pair[1] - pair[0] < WATCHDOG), "systemd would have ended it: {pings:?}");

    daemon.signal("KILL");
    daemon.exit_status(60);
    drop(daemon);
    manager.listen();
    let from = manager.heard.len();
    let daemon = manager.start(dir.path(), CONFIG);
    let ready = manager.wait_for(from, "READY=1");
    let log = daemon.log();
    assert!(log.contains("table filled from the store"), "ready before the job's table is: {log}");
    let before: Vec<&str> = manager.heard[from..ready].iter().map(|(_, text)| text.as_str()).collect();
    assert!(before.iter().any(|text| text.starts_with("STATUS=recovering")), "{before:?}");
    assert!(before.iter().any(|text| text.starts_with("EXTEND_TIMEOUT_USEC=")), "{before:?}");
    assert!(!before.contains(&"WATCHDOG=1"), "{before:?}");
}

#[test]
fn a_thread_that_hangs_ends_the_pings() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut manager = Manager::new(dir.path());
    let daemon = manager.start(dir.path(), NO_CHECKPOINTS);
    daemon.submit(&json!({"kind": "value", "board": "4x5"}));
    wait_for("expansions", 60, || (daemon.metric("superko_search_expansions_total") > 0.0).then_some(()));
    for name in ["solver", "checkpoint"] {
        let heard = manager.heard.len();
        manager.wait_for(heard, "WATCHDOG=1");
        let frozen = match Frozen::new(daemon.pid(), name) {
            Ok(frozen) => frozen,
            Err(reason) => return skip("a_thread_that_hangs_ends_the_pings", &format!("ptrace: {reason}")),
        };
        // For half of the interval it may be silent, a look comes every quarter of it.
        let told = format!("no sign of life for too long: the service manager gets no more pings thread=\"{name}\"");
        wait_for(&told, 60, || daemon.log().contains(&told).then_some(()));
        assert_eq!(manager.count("WATCHDOG=1", WATCHDOG), 0, "pings while {name} stands still");
        assert_eq!(daemon.get("/healthz").0, 200, "the rest of the daemon lives");
        drop(frozen);
        let heard = manager.heard.len();
        manager.wait_for(heard, "WATCHDOG=1");
    }
}

#[test]
fn a_slow_stop_asks_for_time() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut manager = Manager::new(dir.path());
    let mut daemon = manager.start(dir.path(), NO_CHECKPOINTS);
    daemon.submit(&json!({"kind": "value", "board": "4x5"}));
    wait_for("expansions", 60, || (daemon.metric("superko_search_expansions_total") > 0.0).then_some(()));
    let frozen = match Frozen::new(daemon.pid(), "solver") {
        Ok(frozen) => frozen,
        Err(reason) => return skip("a_slow_stop_asks_for_time", &format!("ptrace: {reason}")),
    };
    manager.listen();
    let from = manager.heard.len();
    daemon.terminate();
    let stopping = manager.wait_for(from, "STOPPING=1");
    manager.wait_for(stopping, "STATUS=stopping: the search goes to its next safe point");
    let first = manager.wait_for(stopping, "EXTEND_TIMEOUT_USEC=");
    manager.wait_for(first + 1, "EXTEND_TIMEOUT_USEC=");
    assert_eq!(daemon.ended(), None, "it waits for the search");
    drop(frozen);
    assert_eq!(daemon.exit_status(60).code(), Some(0));
}

//! What the black-box tests share: the program as a process, and a daemon with a data directory of its own.
#![allow(dead_code, missing_docs)]

use serde_json::Value;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

/// Runs the program to its end.
pub fn superko(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_superko")).args(arguments).output().expect("the program starts")
}

/// Standard output as the one JSON line that it must be.
pub fn json_of(output: &Output) -> Value {
    let text = String::from_utf8(output.stdout.clone()).expect("UTF-8");
    assert_eq!(text.lines().count(), 1, "one line on standard output: {text:?}, {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&text).expect("JSON")
}

/// A counter, which travels as a string.
pub fn count(value: &Value) -> u64 {
    value.as_str().expect("a counter is a string").parse().expect("a number")
}

/// Calls `probe` until it gives something.
pub fn wait_for<T>(what: &str, seconds: u64, mut probe: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(seconds);
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(Instant::now() < end, "no {what} within {seconds} s");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A running daemon; killed when dropped.
pub struct Daemon {
    child: Child,
    pub port: u16,
}

impl Daemon {
    /// Starts a daemon on `dir` and waits until it is ready.
    pub fn start(dir: &Path) -> Daemon {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port();
        let config = dir.join("test.toml");
        std::fs::write(&config, "table = \"64MiB\"\ncheckpoint_interval_seconds = 1\nlog = \"warn\"\n").expect("the configuration");
        let child = Command::new(env!("CARGO_BIN_EXE_superko"))
            .args(["serve", "--listen", &format!("127.0.0.1:{port}")])
            .arg("--config")
            .arg(&config)
            .arg("--data")
            .arg(dir.join("data"))
            .stdin(Stdio::null())
            .spawn()
            .expect("the daemon starts");
        let mut daemon = Daemon { child, port };
        wait_for("ready daemon", 60, || {
            assert_eq!(daemon.child.try_wait().expect("wait"), None, "the daemon ended while it started");
            let answer = agent().get(daemon.url("/readyz")).call();
            answer.ok().filter(|answer| answer.status() == 200).map(drop)
        });
        daemon
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Status and JSON of a GET.
    pub fn get(&self, path: &str) -> (u16, Value) {
        let mut answer = agent().get(self.url(path)).call().expect(path);
        (answer.status().as_u16(), answer.body_mut().read_json().expect("JSON"))
    }

    /// Status and JSON of a POST.
    pub fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let mut answer = agent().post(self.url(path)).send_json(body).expect(path);
        (answer.status().as_u16(), answer.body_mut().read_json().expect("JSON"))
    }

    pub fn job(&self, id: u64) -> Value {
        let (status, job) = self.get(&format!("/v1/jobs/{id}"));
        assert_eq!(status, 200, "job {id} is lost: {job}");
        job
    }

    /// Submits a job that must be accepted.
    pub fn submit(&self, body: &Value) -> u64 {
        let (status, job) = self.post("/v1/jobs", body);
        assert_eq!(status, 202, "{job}");
        job["id"].as_u64().expect("an id")
    }

    /// `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().expect("kill");
        self.child.wait().expect("wait");
    }

    pub fn terminate(&self) {
        let sent = Command::new("kill").arg("-TERM").arg(self.child.id().to_string()).status().expect("kill");
        assert!(sent.success());
    }

    pub fn exit_status(&mut self, seconds: u64) -> ExitStatus {
        wait_for("exit", seconds, || self.child.try_wait().expect("wait"))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn agent() -> ureq::Agent {
    ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(Duration::from_secs(30))).build().into()
}

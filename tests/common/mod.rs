//! What the black-box tests share: the program as a process, and a daemon with a data directory of its own.
#![allow(dead_code, missing_docs)]

use serde_json::Value;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
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

/// Says that a test cannot run here, and why: past the harness, which hides what passing tests print, and to `make test`, which counts.
pub fn skip(what: &str, reason: &dyn std::fmt::Display) {
    let line = format!("SKIPPED {what}: {reason}\n");
    std::io::stderr().write_all(line.as_bytes()).expect("standard error");
    if let Some(path) = std::env::var_os("SUPERKO_SKIPPED") {
        let mut file = File::options().append(true).create(true).open(path).expect("the list of skipped tests");
        file.write_all(line.as_bytes()).expect("the list of skipped tests");
    }
}

/// A process that is killed when dropped.
pub struct Guard(pub Child);

impl Guard {
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.0.id().to_string()).status().expect("kill");
        assert!(sent.success());
    }

    pub fn exit_status(&mut self, seconds: u64) -> ExitStatus {
        wait_for("exit", seconds, || self.0.try_wait().expect("wait"))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An answer to a request.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: ureq::http::HeaderMap,
    pub json: Value,
}

impl Answer {
    fn read(mut answer: ureq::http::Response<ureq::Body>) -> Answer {
        let json = answer.body_mut().read_json().expect("JSON");
        let answer = Answer { status: answer.status().as_u16(), headers: answer.headers().clone(), json };
        if answer.status >= 400 {
            // Every error has the one form.
            assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{answer:?}");
            assert_eq!(answer.json["status"], answer.status, "{answer:?}");
            for field in ["type", "title", "detail", "code"] {
                assert!(answer.json[field].as_str().is_some_and(|text| !text.is_empty()), "no {field}: {answer:?}");
            }
            assert_eq!(answer.json["request_id"].as_str(), answer.header("x-request-id"), "{answer:?}");
        }
        answer
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("a header in ASCII"))
    }
}

/// A running daemon; killed when dropped.
pub struct Daemon {
    process: Guard,
    log: PathBuf,
    pub port: u16,
}

/// Settings of the daemons of most tests: little memory, frequent checkpoints.
pub const CONFIG: &str = "table = \"64MiB\"\ncheckpoint_interval_seconds = 1\n";

impl Daemon {
    /// Starts a daemon on `dir` and waits until it is ready.
    pub fn start(dir: &Path) -> Daemon {
        Daemon::start_with(dir, CONFIG)
    }

    /// Starts a daemon with this configuration file.
    pub fn start_with(dir: &Path, config: &str) -> Daemon {
        Daemon::start_on(dir, config, "127.0.0.1:0")
    }

    /// Starts a daemon that listens on this address.
    pub fn start_on(dir: &Path, config: &str, listen: &str) -> Daemon {
        let mut daemon = Daemon::launch(dir, config, listen, |_| ());
        assert!(daemon.is_ready(), "the daemon ended while it started");
        daemon
    }

    /// Starts a daemon whose command is changed before.
    pub fn start_changed(dir: &Path, config: &str, change: impl FnOnce(&mut Command)) -> Daemon {
        let mut daemon = Daemon::launch(dir, config, "127.0.0.1:0", change);
        assert!(daemon.is_ready(), "the daemon ended while it started");
        daemon
    }

    /// Starts a daemon with this configuration file and these environment variables, and does not wait for it.
    pub fn spawn(dir: &Path, config: &str, environment: &[(&str, String)]) -> Daemon {
        Daemon::launch(dir, config, "127.0.0.1:0", |command| {
            command.envs(environment.iter().map(|(name, value)| (name, value)));
        })
    }

    fn launch(dir: &Path, config: &str, listen: &str, change: impl FnOnce(&mut Command)) -> Daemon {
        let (file, log) = (dir.join("test.toml"), dir.join("log"));
        std::fs::write(&file, config).expect("the configuration");
        let mut command = Command::new(env!("CARGO_BIN_EXE_superko"));
        command
            .args(["serve", "--listen", listen, "--config"])
            .arg(&file)
            .arg("--data")
            .arg(dir.join("data"))
            .stdin(Stdio::null())
            .stderr(File::create(&log).expect("the log"));
        change(&mut command);
        Daemon { process: Guard(command.spawn().expect("the daemon starts")), log, port: 0 }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.0.id()
    }

    /// Waits until it is ready; false if it ended before.
    pub fn is_ready(&mut self) -> bool {
        self.is_listening()
            && wait_for("ready daemon", 60, || {
                if self.ended().is_some() {
                    return Some(false);
                }
                let answer = agent().get(self.url("/readyz")).call();
                answer.ok().filter(|answer| answer.status() == 200).map(|_| true)
            })
    }

    /// Waits until it listens; false if it ended before.
    pub fn is_listening(&mut self) -> bool {
        // The system picks a free port, the log says which.
        let port = wait_for("listening daemon", 60, || {
            if self.ended().is_some() {
                return Some(None);
            }
            let log = self.log();
            let address = log.split_once("listening address=")?.1.split_whitespace().next()?;
            address.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).map(Some)
        });
        self.port = port.unwrap_or_default();
        port.is_some()
    }

    /// What the daemon has logged so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).expect("the log")
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// A request of any kind with any body.
    pub fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut request = ureq::http::Request::builder().method(method).uri(self.url(path));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Answer::read(agent().run(request.body(body).expect("a request")).expect(path))
    }

    /// Status and JSON of a GET.
    pub fn get(&self, path: &str) -> (u16, Value) {
        let answer = Answer::read(agent().get(self.url(path)).call().expect(path));
        (answer.status, answer.json)
    }

    /// Status and JSON of a POST.
    pub fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let answer = Answer::read(agent().post(self.url(path)).send_json(body).expect(path));
        (answer.status, answer.json)
    }

    /// The text of `/metrics`.
    pub fn metrics(&self) -> String {
        agent().get(self.url("/metrics")).call().expect("metrics").body_mut().read_to_string().expect("text")
    }

    /// The value of the first series in `/metrics` that begins so.
    pub fn metric(&self, series: &str) -> f64 {
        let text = self.metrics();
        let line = text.lines().find(|line| line.starts_with(series)).unwrap_or_else(|| panic!("no {series}"));
        line.rsplit(' ').next().and_then(|number| number.parse().ok()).expect("a number")
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

    /// Waits until a job is in a state.
    pub fn wait_until(&self, id: u64, state: &str) -> Value {
        wait_for(state, 120, || Some(self.job(id)).filter(|job| job["state"] == state))
    }

    pub fn cancel(&self, id: u64) -> (u16, Value) {
        self.post(&format!("/v1/jobs/{id}/cancel"), &Value::Null)
    }

    /// The exit status, if it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.process.0.try_wait().expect("wait")
    }

    pub fn id(&self) -> u32 {
        self.process.0.id()
    }

    /// `kill -9`.
    pub fn kill(self) {
        drop(self);
    }

    pub fn signal(&self, name: &str) {
        self.process.signal(name);
    }

    pub fn terminate(&self) {
        self.signal("TERM");
    }

    pub fn exit_status(&mut self, seconds: u64) -> ExitStatus {
        self.process.exit_status(seconds)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the daemon's log:\n{}", std::fs::read_to_string(&self.log).unwrap_or_default());
        }
    }
}

pub fn agent() -> ureq::Agent {
    ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(Duration::from_secs(30))).build().into()
}

//! A real Prometheus scrapes the built daemon with the configuration of `dashboards/`, and every panel of the dashboard shows something.

mod common;

use common::{Daemon, Guard, agent, skip, wait_for};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn dashboards(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("dashboards").join(file)
}

/// Whether a program is there; anything else than its absence shows when it is used.
fn is_installed(program: &str, test: &str) -> bool {
    match Command::new(program).arg("--version").output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            skip(test, &format!("{program} is not installed"));
            false
        }
        _ => true,
    }
}

#[test]
fn promtool_accepts_metrics_and_configuration() {
    if !is_installed("promtool", "promtool_accepts_metrics_and_configuration") {
        return;
    }
    let config = Command::new("promtool").args(["check", "config"]).arg(dashboards("prometheus.yml")).output().expect("promtool");
    assert!(config.status.success(), "{config:?}");
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(dir.path());
    daemon.wait_until(daemon.submit(&json!({"kind": "value", "board": "2x3"})), "succeeded");
    let mut lint =
        Command::new("promtool").args(["check", "metrics"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("promtool");
    lint.stdin.take().expect("stdin").write_all(daemon.metrics().as_bytes()).expect("promtool reads");
    let lint = lint.wait_with_output().expect("promtool ends");
    assert!(lint.status.success(), "{}", String::from_utf8_lossy(&lint.stderr));
}

/// A Prometheus that scrapes one daemon every second.
struct Prometheus {
    _process: Guard,
    address: String,
}

impl Prometheus {
    fn start(dir: &Path, daemon: &Daemon) -> Prometheus {
        let mut config = std::fs::read_to_string(dashboards("prometheus.yml")).expect("the scrape configuration");
        for (from, to) in
            [("127.0.0.1:7465", format!("127.0.0.1:{}", daemon.port)), ("scrape_interval: 15s", "scrape_interval: 1s".to_owned())]
        {
            assert_eq!(config.matches(from).count(), 1, "the scrape configuration has {from}");
            config = config.replace(from, &to);
        }
        let (file, log) = (dir.join("prometheus.yml"), dir.join("prometheus.log"));
        std::fs::write(&file, config).expect("the configuration");
        std::fs::copy(dashboards("alerts.yml"), dir.join("alerts.yml")).expect("the alerts");
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", dir.join("prometheus").display()))
            .arg("--web.listen-address=127.0.0.1:0")
            .stdin(Stdio::null())
            .stderr(File::create(&log).expect("the log"))
            .spawn()
            .expect("Prometheus starts");
        let mut process = Guard(child);
        let address = wait_for("listening Prometheus", 60, || {
            let log = std::fs::read_to_string(&log).expect("the log");
            assert_eq!(process.0.try_wait().expect("wait"), None, "Prometheus ended: {log}");
            let line = log.lines().find(|line| line.contains("msg=\"Listening on\""))?;
            line.rsplit_once("address=").map(|(_, address)| address.trim().to_owned())
        });
        wait_for("ready Prometheus", 60, || {
            let answer = agent().get(format!("http://{address}/-/ready")).call();
            answer.ok().filter(|answer| answer.status() == 200).map(drop)
        });
        Prometheus { _process: process, address }
    }

    /// The values of an expression; NaN, which a panel shows as a gap, is left out.
    fn values(&self, expression: &str) -> Vec<f64> {
        let url = format!("http://{}/api/v1/query", self.address);
        let mut answer = agent().get(url).query("query", expression).call().expect("an answer");
        let answer: Value = answer.body_mut().read_json().expect("JSON");
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
        let result = answer["data"]["result"].as_array().expect("a result");
        let values = result.iter().map(|series| series["value"][1].as_str().and_then(|text| text.parse().ok()).expect("a number"));
        values.filter(|value: &f64| !value.is_nan()).collect()
    }
}

#[test]
fn every_panel_shows_data() {
    if !is_installed("prometheus", "every_panel_shows_data") {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(dir.path());
    daemon.submit(&json!({"kind": "value", "board": "4x5"}));
    let prometheus = Prometheus::start(dir.path(), &daemon);
    wait_for("five scrapes", 120, || Some(()).filter(|()| prometheus.values("sum_over_time(up[1m])").first() >= Some(&5.0)));
    assert!(prometheus.values("superko_no_such_metric").is_empty(), "a metric that is not there gives nothing");

    let dashboard = std::fs::read_to_string(dashboards("superko.json")).expect("the dashboard");
    let dashboard: Value = serde_json::from_str(&dashboard).expect("JSON");
    let mut expressions = 0;
    for panel in dashboard["panels"].as_array().expect("panels") {
        for target in panel["targets"].as_array().expect("targets") {
            let expression = target["expr"].as_str().expect("an expression").replace("$__rate_interval", "10s");
            assert!(!expression.contains('$'), "{}: this test does not know a variable in {expression}", panel["title"]);
            let what = format!("data for panel {}, {expression}", panel["title"]);
            wait_for(&what, 60, || Some(()).filter(|()| !prometheus.values(&expression).is_empty()));
            expressions += 1;
        }
    }
    println!("{expressions} expressions give data");
    assert!(!prometheus.values("superko_jobs_with_rejected_certificate").is_empty(), "what the alert looks at is there");
    assert!(prometheus.values("ALERTS").is_empty(), "nothing is wrong");
}

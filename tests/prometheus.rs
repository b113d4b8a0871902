//! A real Prometheus scrapes the built daemon with the configuration of `dashboards/`, and every panel of its dashboards shows something.

mod common;

use common::{Daemon, Guard, agent, skip, wait_for};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
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
fn promtool_accepts_metrics() {
    if !is_installed("promtool", "promtool_accepts_metrics") {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(dir.path());
    let lint = || {
        let mut command = Command::new("promtool");
        let mut lint = command.args(["check", "metrics"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("promtool");
        lint.stdin.take().expect("stdin").write_all(daemon.metrics().as_bytes()).expect("promtool reads");
        let lint = lint.wait_with_output().expect("promtool ends");
        assert!(lint.status.success(), "{}", String::from_utf8_lossy(&lint.stderr));
    };
    lint();
    daemon.wait_until(daemon.submit(&json!({"kind": "value", "board": "2x3"})), "succeeded");
    lint();
    let count = |name: &str| daemon.metric(&format!("superko_job_{name}_seconds_count{{kind=\"value\"}}"));
    assert_eq!((count("wait"), count("run")), (1.0, 1.0));
    assert_eq!(daemon.metric("superko_http_in_flight"), 1.0, "the scrape itself");
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

/// The dashboards, by file name.
const DASHBOARDS: [&str; 4] = ["campaign", "search", "storage", "api"];

fn dashboard(name: &str) -> Value {
    let text = std::fs::read_to_string(dashboards(&format!("{name}.json"))).expect(name);
    serde_json::from_str(&text).expect("a dashboard is JSON")
}

/// The expressions of a dashboard with the titles of their panels.
fn expressions(dashboard: &Value) -> Vec<(String, String)> {
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten().map(move |target| (panel, target)));
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    targets.map(|(panel, target)| (text(&panel["title"]), text(&target["expr"]))).collect()
}

/// The variables that a text uses, without `$` and braces.
fn variables(text: &str) -> Vec<String> {
    let names = text.split('$').skip(1).map(|rest| rest.trim_start_matches('{'));
    names.map(|rest| rest.chars().take_while(|symbol| symbol.is_ascii_alphanumeric() || *symbol == '_').collect()).collect()
}

/// Words of an expression that are metrics of the daemon.
fn metrics_of(expression: &str) -> Vec<String> {
    let words = expression.split(|symbol: char| !symbol.is_ascii_alphanumeric() && symbol != '_' && symbol != ':');
    words.filter(|word| word.starts_with("superko_") || word.starts_with("process_")).map(str::to_owned).collect()
}

#[test]
fn dashboards_are_well_formed() {
    let mut uids = Vec::new();
    let mut panels_in_all = 0;
    for name in DASHBOARDS {
        let dashboard = dashboard(name);
        let uid = dashboard["uid"].as_str().expect("a uid").to_owned();
        assert!(!uid.is_empty() && uid.len() <= 40 && !uids.contains(&uid), "{name}: the uid {uid} is its own");
        uids.push(uid);
        let defined: Vec<&str> = dashboard["templating"]["list"]
            .as_array()
            .expect("variables")
            .iter()
            .map(|variable| variable["name"].as_str().expect("a name"))
            .collect();
        assert_eq!(defined[0], "datasource", "{name}: others are asked of the data source");
        for variable in variables(&dashboard.to_string()) {
            let known = defined.contains(&variable.as_str()) || variable == "__rate_interval" || variable == "__all";
            assert!(known, "{name}: the variable {variable} is not defined");
        }
        let panels = dashboard["panels"].as_array().expect("panels");
        let shown = panels.iter().filter(|panel| panel["type"] != "row").count();
        assert!((10..=25).contains(&shown), "{name}: {shown} panels");
        panels_in_all += shown;
        let (mut ids, mut titles) = (Vec::new(), Vec::new());
        let mut taken: Vec<[u64; 4]> = Vec::new();
        for panel in panels {
            let title = format!("{name}: {}", panel["title"]);
            assert!(!ids.contains(&&panel["id"]), "{title}: an id twice");
            ids.push(&panel["id"]);
            assert!(!titles.contains(&(&panel["title"], &panel["type"])), "{title}: a title twice");
            titles.push((&panel["title"], &panel["type"]));
            let has = |field: &str| panel[field].as_str().is_some_and(|text| !text.is_empty());
            assert!(has("title") && (has("description") || panel["type"] == "row"), "{title}: title and description");
            let [x, y, w, h] = ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_u64().expect("a place"));
            assert!(x + w <= 24, "{title} sticks out");
            let overlaps = |other: &&[u64; 4]| x < other[0] + other[2] && other[0] < x + w && y < other[1] + other[3] && other[1] < y + h;
            assert_eq!(taken.iter().find(overlaps), None, "{title} overlaps another");
            taken.push([x, y, w, h]);
            if panel["type"] == "row" {
                continue;
            }
            assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "{title} has no unit");
            let targets = panel["targets"].as_array().expect("targets");
            assert!(!targets.is_empty(), "{title} shows nothing");
            for source in targets.iter().chain([panel]).map(|place| &place["datasource"]) {
                assert_eq!(source, &json!({"type": "prometheus", "uid": "${datasource}"}), "{title}");
            }
            for target in targets {
                let expression = target["expr"].as_str().expect("an expression");
                let selectors = expression.matches("instance=~\"$instance\"").count();
                assert_eq!(selectors, metrics_of(expression).len(), "{title}: all but the chosen daemons are left out of {expression}");
                assert!(!target["legendFormat"].as_str().expect("a legend").is_empty(), "{title}");
            }
        }
    }
    println!("{panels_in_all} panels");
}

#[test]
fn rules_are_tested_and_what_they_name_exists() {
    let rules = std::fs::read_to_string(dashboards("alerts.yml")).expect("the rules");
    let tests = std::fs::read_to_string(dashboards("alerts_test.yml")).expect("their tests");
    let alerts: Vec<&str> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() > 15);
    // A test says `alertname: NAME` and then, on this line or the next, `exp_alerts:` with nothing but `[]` if it is not to fire.
    for alert in alerts {
        let cases: Vec<&str> = tests.split("alertname: ").filter(|case| case.starts_with(alert)).collect();
        let is_quiet = |case: &&str| case.split("exp_alerts:").nth(1).expect("an expectation").trim_start().starts_with("[]");
        let quiet = cases.iter().filter(|case| is_quiet(case)).count();
        assert!(quiet > 0 && quiet < cases.len(), "{alert}: of {} tests {quiet} say that it does not fire", cases.len());
    }
    if is_installed("promtool", "rules_are_tested_and_what_they_name_exists") {
        for arguments in [["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"], ["check", "config", "prometheus.yml"]] {
            let output = Command::new("promtool").args(arguments).current_dir(dashboards("")).output().expect("promtool");
            assert!(output.status.success(), "{arguments:?}: {output:?}");
        }
    }
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(dir.path());
    let text = daemon.metrics();
    let known: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let base = |name: &str| {
        let base = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix)).filter(|base| known.contains(base));
        base.unwrap_or(name).to_owned()
    };
    // What a rule records under a name with colons is no metric of the daemon.
    let in_rules = rules.lines().filter(|line| !line.trim_start().starts_with('#')).flat_map(metrics_of);
    let in_dashboards =
        DASHBOARDS.into_iter().flat_map(|name| expressions(&dashboard(name))).flat_map(|(_, expression)| metrics_of(&expression));
    let named: BTreeSet<String> = in_rules.chain(in_dashboards).map(|name| base(&name)).collect();
    for name in &named {
        assert!(known.contains(&name.as_str()), "the daemon has no {name}");
    }
    let unshown: Vec<&&str> = known.iter().filter(|name| !named.contains(**name)).collect();
    println!("shown nowhere: {unshown:?}");
    assert!(unshown.iter().all(|name| !name.starts_with("superko_")), "shown nowhere: {unshown:?}");
}

/// Series of one daemon stay few, whatever clients send; what a counter can say is there from the start.
#[test]
fn series_are_bounded_and_start_at_zero() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(dir.path());
    let series = || -> BTreeSet<String> {
        let text = daemon.metrics();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.filter_map(|line| line.rsplit_once(' ').map(|(series, _)| series.to_owned())).collect()
    };
    let before = series();
    assert!(before.contains("superko_worker_panics_total{worker=\"solver\"}"));
    daemon.wait_until(
        daemon.submit(&json!({"kind": "solve", "board": "2x2", "komi": 0.5, "certificate": true, "verify": true})),
        "succeeded",
    );
    for index in 0..50 {
        daemon.get(&format!("/v1/jobs/{index}"));
        daemon.get(&format!("/nothing/{index}"));
        daemon.get(&format!("/v1/positions?board=2x2&komi=0.5&moves=X{index}"));
        // A method that no client library would send.
        let mut stream = TcpStream::connect(("127.0.0.1", daemon.port)).expect("a connection");
        write!(stream, "VERB{index} /v1/jobs/{index} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("it is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
        daemon.post(&format!("/v1/positions?x={index}"), &json!({}));
        daemon.post("/v1/jobs", &json!({"kind": "solve", "board": format!("{index}x0"), "label": format!("label {index}")}));
    }
    let after = series();
    println!("{} series", after.len());
    assert_eq!(after.difference(&before).collect::<Vec<_>>(), Vec::<&String>::new(), "series that were not there at the start");
    assert!(after.len() < 1500, "{} series", after.len());
    assert_eq!(daemon.metric("superko_http_requests_total{method=\"other\",route=\"unmatched\",status=\"4xx\"}"), 50.0);
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

    let mut count = 0;
    for name in DASHBOARDS {
        let dashboard = dashboard(name);
        let of_panels = expressions(&dashboard);
        let annotations = dashboard["annotations"]["list"].as_array().expect("annotations");
        let of_annotations =
            annotations.iter().map(|annotation| ("annotation".to_owned(), annotation["expr"].as_str().expect("expr").to_owned()));
        for (title, expression) in of_panels.into_iter().chain(of_annotations) {
            let expression = expression.replace("$__rate_interval", "10s").replace("$instance", ".*");
            assert!(!expression.contains('$'), "{title}: this test does not know a variable in {expression}");
            let what = format!("data for panel {title} of {name}, {expression}");
            wait_for(&what, 60, || Some(()).filter(|()| !prometheus.values(&expression).is_empty()));
            count += 1;
        }
    }
    println!("{count} expressions give data");
    for recorded in [
        "instance:superko_search_expansions:rate5m",
        "instance:superko_table_hits:ratio_rate5m",
        "instance:superko_http_errors:ratio_rate5m",
        "instance_route:superko_http_request_duration_seconds:p99_rate5m",
    ] {
        wait_for(recorded, 60, || Some(()).filter(|()| !prometheus.values(recorded).is_empty()));
    }
    let firing = "ALERTS{alertstate=\"firing\"}";
    assert!(prometheus.values(firing).is_empty(), "nothing is wrong");
}

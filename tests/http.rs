//! The HTTP API of the built daemon: jobs, look-ups, health, metrics, and one clear problem for every bad request.

mod common;

use common::{Daemon, count, superko, wait_for};
use serde_json::{Value, json};
use std::time::Instant;

fn finished(daemon: &Daemon, id: u64) -> Value {
    wait_for("finished job", 120, || {
        let job = daemon.job(id);
        (!["queued", "running"].contains(&job["state"].as_str().expect("a state"))).then_some(job)
    })
}

#[test]
fn jobs_run_and_positions_are_looked_up() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(dir.path());
    let (status, before) = daemon.get("/v1/positions?board=3x3&komi=8.5");
    assert_eq!((status, &before["verdict"]), (200, &json!("unknown")));
    let id = daemon.submit(&json!({"kind": "value", "board": "3x3", "label": "first"}));
    let job = finished(&daemon, id);
    assert_eq!((&job["state"], &job["result"]["value"]), (&json!("succeeded"), &json!(9)), "{job}");
    assert!(count(&job["progress"]["expansions"]) > 0);
    let (_, after) = daemon.get("/v1/positions?board=3x3&komi=8.5");
    assert_eq!((&after["verdict"], &after["bounds"]), (&json!("black"), &json!({"lower": 9, "upper": 9})));
    // A look-up never starts work.
    let (_, list) = daemon.get("/v1/jobs");
    assert_eq!(list["jobs"].as_array().map(Vec::len), Some(1));
    assert_eq!(daemon.get("/v1/jobs?state=succeeded&label=first").1["jobs"].as_array().map(Vec::len), Some(1));
    assert_eq!(daemon.get("/v1/jobs?state=failed").1["jobs"].as_array().map(Vec::len), Some(0));

    let solve = daemon.submit(&json!({"kind": "solve", "board": "2x2", "komi": 0.5, "moves": ["A1"]}));
    let job = finished(&daemon, solve);
    assert_eq!((&job["result"]["status"], &job["result"]["moves"]), (&json!("proved"), &json!(["A1"])), "{job}");
    let limited = daemon.submit(&json!({"kind": "solve", "board": "4x4", "komi": 1.5, "limits": {"expansions": 500}}));
    let job = finished(&daemon, limited);
    assert_eq!((&job["state"], &job["result"]["winner"]), (&json!("expired"), &Value::Null), "{job}");
}

#[test]
fn a_banned_move_is_shown_as_banned() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(dir.path());
    // White's A1 takes Black's stone on B1 of the 1x2 board; Black's answer at B1 would recreate the board after move 1.
    let (status, look) = daemon.get("/v1/positions?board=1x2&komi=0.5&moves=B1%20A1");
    assert_eq!(status, 200, "{look}");
    let answer = look["next_moves"].as_array().and_then(|moves| moves.iter().find(|entry| entry["move"] == "B1"));
    let answer = answer.unwrap_or_else(|| panic!("{look}"));
    assert_eq!((&answer["legal"], &answer["superko"]), (&json!(false), &json!(true)), "{look}");
    assert!(answer["reason"].as_str().is_some_and(|reason| reason.contains("move 1")), "{look}");
    let setup = json!({"rows": ["X.X.X."], "to_move": "white", "earlier": [["X.XO.."]]});
    let id = daemon.submit(&json!({"kind": "solve", "board": "1x6", "komi": 0.5, "setup": setup}));
    assert_eq!(finished(&daemon, id)["state"], json!("succeeded"));
}

#[test]
fn identical_open_jobs_are_joined_and_cancel_is_quick() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(dir.path());
    let body = json!({"kind": "value", "board": "4x5"});
    let first = daemon.submit(&body);
    assert_eq!(daemon.submit(&body), first);
    let waiting = daemon.submit(&json!({"kind": "value", "board": "3x6"}));
    wait_for("running job", 60, || (daemon.job(first)["state"] == "running").then_some(()));
    assert_eq!(daemon.job(waiting)["queue_position"], json!(1));
    let asked = Instant::now();
    assert_eq!(daemon.post(&format!("/v1/jobs/{first}/cancel"), &json!({})).0, 200);
    wait_for("cancelled job", 60, || (daemon.job(first)["state"] == "cancelled").then_some(()));
    // Within a second, with the slack of a shared machine.
    assert!(asked.elapsed().as_secs() < 10);
    assert_eq!(daemon.post(&format!("/v1/jobs/{first}/cancel"), &json!({})).0, 200, "cancelling twice is the same");
    daemon.post(&format!("/v1/jobs/{waiting}/cancel"), &json!({}));
}

#[test]
fn bad_requests_are_refused_with_a_pointer_and_change_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(dir.path());
    for (body, pointer, word) in [
        (json!({"kind": "solve", "board": "9x9", "komi": 0.5}), "/board", "9x9"),
        (json!({"kind": "solve", "board": "0x3", "komi": 0.5}), "/board", "0x3"),
        (json!({"kind": "solve", "board": "3x3", "komi": 1}), "/komi", "1"),
        (json!({"kind": "solve", "board": "3x3", "komi": "x"}), "/komi", "x"),
        (json!({"kind": "solve", "board": "3x3"}), "/komi", "komi"),
        (json!({"kind": "value", "board": "3x3", "komi": 0.5}), "/komi", "0.5"),
        (json!({"kind": "guess", "board": "3x3"}), "/kind", "guess"),
        (json!({"kind": "value", "board": "3x3", "colour": 1}), "/colour", "colour"),
        (json!({"kind": "value", "board": "3x3", "moves": ["A1", "A1"]}), "/moves/1", "occupied"),
        (json!({"kind": "value", "board": "3x3", "moves": ["I1"]}), "/moves/0", "I1"),
        (json!({"kind": "value", "board": "1x2", "moves": ["A1", "B1", "A1"]}), "/moves/2", "superko"),
        (json!({"kind": "value", "board": "1x3", "setup": {"rows": ["XOX"], "to_move": "black"}}), "/setup/rows/0", "libert"),
        (json!({"kind": "value", "board": "1x3", "setup": {"rows": ["X?."], "to_move": "black"}}), "/setup/rows/0", "X?."),
        (json!({"kind": "value", "board": "1x3", "setup": {"rows": ["X.."], "to_move": "red"}}), "/setup/to_move", "red"),
        (json!({"kind": "value", "board": "1x3", "setup": {"rows": ["X.."], "to_move": "black", "passes": 2}}), "/setup/passes", "2"),
        (json!({"kind": "value", "board": "3x3", "limits": {"expansions": -1}}), "/limits/expansions", "-1"),
    ] {
        let (status, problem) = daemon.post("/v1/jobs", &body);
        assert_eq!(status, 422, "{body}: {problem}");
        let errors = problem["errors"].as_array().unwrap_or_else(|| panic!("{body}: {problem}"));
        let at = errors.iter().find(|error| error["pointer"] == pointer).unwrap_or_else(|| panic!("{body} at {pointer}: {problem}"));
        assert!(at["detail"].as_str().is_some_and(|detail| detail.contains(word)), "{body} says {word}: {problem}");
    }
    assert_eq!(daemon.get("/v1/nothing").0, 404);
    assert_eq!(daemon.get("/v1/jobs/77").0, 404);
    assert_eq!(daemon.post("/healthz", &json!({})).0, 405);
    assert_eq!(daemon.post("/v1/jobs", &json!({"kind": "value", "board": "3x3", "label": "x".repeat(3 << 20)})).0, 413);
    assert_eq!(daemon.get("/v1/jobs").1["jobs"], json!([]), "nothing was stored");

    let data = dir.path().join("data");
    let second = superko(&["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().expect("UTF-8")]);
    let error = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(2), "{error}");
    assert!(error.contains("in use"), "{error}");
    let open = superko(&["serve", "--listen", "0.0.0.0:0", "--data", dir.path().join("other").to_str().expect("UTF-8")]);
    assert_eq!(open.status.code(), Some(2), "a listener outside loopback is refused");
    assert_eq!(daemon.get("/v1/jobs").0, 200, "the first daemon goes on");
}

#[test]
fn health_and_metrics() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(dir.path());
    finished(&daemon, daemon.submit(&json!({"kind": "value", "board": "2x3"})));
    let text = ureq::get(daemon.url("/metrics")).call().expect("metrics").body_mut().read_to_string().expect("text");
    let value = |name: &str| -> f64 {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name}"));
        line.rsplit(' ').next().and_then(|number| number.parse().ok()).expect("a number")
    };
    assert!(value("superko_search_expansions_total") > 0.0);
    assert!(value("superko_checkpoints_total") > 0.0);
    assert_eq!(value("superko_jobs{state=\"succeeded\"}"), 1.0);
    assert_eq!(value("superko_table_torn_total"), 0.0);
    // The linter of Prometheus itself, where it is installed (the set-up script does).
    let mut lint = match std::process::Command::new("promtool").args(["check", "metrics"]).stdin(std::process::Stdio::piped()).spawn() {
        Ok(lint) => lint,
        Err(error) => return println!("SKIPPED promtool check metrics: {error}"),
    };
    std::io::Write::write_all(&mut lint.stdin.take().expect("stdin"), text.as_bytes()).expect("promtool reads");
    assert!(lint.wait().expect("promtool ends").success());
}

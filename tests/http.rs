//! The HTTP API of the built daemon: jobs, look-ups, health, metrics, and one clear problem for every bad request.

mod common;

use common::{CONFIG, Daemon, count, superko, wait_for};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Instant;

const JSON: (&str, &str) = ("content-type", "application/json");

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
    // A won position tells of each of its moves, also of those that no stored lemma is about, such as the pass.
    let (_, lost) = daemon.get("/v1/positions?board=3x3&komi=0.5&moves=B2");
    let moves = lost["next_moves"].as_array().expect("moves");
    assert!(moves.len() == 9 && moves.iter().all(|mv| mv["verdict"] == "loss" && mv["bounds"]["lower"] == 9), "{lost}");
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
fn two_threads_work_on_one_job() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start_with(dir.path(), &format!("{CONFIG}threads = 2\n"));
    let id = daemon.submit(&json!({"kind": "value", "board": "3x4"}));
    let job = finished(&daemon, id);
    assert_eq!((&job["state"], &job["result"]["value"]), (&json!("succeeded"), &json!(4)), "{job}");
    assert!(job["result"]["proofs"].as_array().is_some_and(|proofs| proofs.iter().all(|proof| proof["threads"] == 2)), "{job}");
    // The counters of both threads end up in one place, and a limit is for both together.
    assert_eq!(job["progress"]["expansions"], job["result"]["expansions"], "{job}");
    assert_eq!(daemon.metric("superko_search_expansions_total"), count(&job["result"]["expansions"]) as f64);
    let limited = daemon.submit(&json!({"kind": "solve", "board": "4x4", "komi": 1.5, "limits": {"expansions": 1500}}));
    let job = finished(&daemon, limited);
    assert_eq!((&job["state"], count(&job["progress"]["expansions"])), (&json!("expired"), 1500), "{job}");
    // Cancelling stops both.
    let long = daemon.submit(&json!({"kind": "value", "board": "4x5"}));
    wait_for("expansions", 60, || Some(()).filter(|()| count(&daemon.job(long)["progress"]["expansions"]) > 0));
    let next = daemon.submit(&json!({"kind": "value", "board": "2x2"}));
    let asked = Instant::now();
    assert_eq!(daemon.cancel(long).1["state"], json!("cancelled"));
    daemon.wait_until(next, "succeeded");
    assert!(asked.elapsed().as_secs() < 10, "{:?}", asked.elapsed());
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
fn positions_are_looked_up_in_batches_and_from_a_diagram() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(dir.path());
    let setup = json!({"rows": ["...", ".X.", "..."], "to_move": "white", "passes": 0, "earlier": []});
    let id = daemon.submit(&json!({"kind": "solve", "board": "3x3", "komi": 8.5, "setup": setup}));
    assert_eq!(finished(&daemon, id)["state"], json!("succeeded"));

    let set_up = json!({"board": "3x3", "komi": 8.5, "setup": setup, "moves": ["A1"]});
    let (status, look) = daemon.post("/v1/positions", &set_up);
    assert_eq!((status, &look["verdict"], &look["to_move"]), (200, &json!("black"), &json!("black")), "{look}");
    assert_eq!((&look["rows"], &look["setup"]), (&json!(["...", ".X.", "O.."]), &setup), "{look}");
    // One that is played to has the same answer by either method.
    let played = json!({"board": "3x3", "komi": 8.5, "moves": "B2"});
    let by_get = daemon.get("/v1/positions?board=3x3&komi=8.5&moves=B2");
    assert_eq!(daemon.post("/v1/positions", &played), by_get);
    assert_eq!(by_get.1["rows"], json!(["...", ".X.", "..."]));

    let bad = json!({"board": "3x3", "komi": 8, "moves": ["B2", "B2"], "kmoi": 1});
    let (status, batch) = daemon.post("/v1/positions:batch", &json!({"positions": [played, bad, {"board": "2x2"}, set_up, 5]}));
    assert_eq!(status, 200, "{batch}");
    let results = batch["results"].as_array().expect("results");
    let statuses: Vec<&Value> = results.iter().map(|result| &result["status"]).collect();
    assert_eq!(statuses, [200, 422, 200, 200, 422]);
    assert_eq!((&results[0]["position"], &results[3]["position"]), (&by_get.1, &look));
    assert_eq!((&results[2]["position"]["board"], &results[2]["position"]["verdict"]), (&json!("2x2"), &Value::Null));
    let pointers: Vec<&Value> = results[1]["error"]["errors"].as_array().expect("errors").iter().map(|error| &error["pointer"]).collect();
    assert_eq!(pointers, ["/kmoi", "/komi", "/moves/1"], "{batch}");
    assert_eq!((&results[1]["error"]["status"], &results[1]["error"]["code"]), (&json!(422), &json!("invalid_request")));
    let mut alone = daemon.post("/v1/positions", &bad).1;
    assert!(alone.as_object_mut().and_then(|problem| problem.remove("request_id")).is_some(), "{alone}");
    assert_eq!(alone, results[1]["error"]);

    let many = |number| json!({"positions": vec![json!({"board": "1x1"}); number]});
    assert_eq!(daemon.post("/v1/positions:batch", &many(256)).1["results"].as_array().map(Vec::len), Some(256));
    for (body, pointer) in [
        (many(0), "/positions"),
        (many(257), "/positions"),
        (json!({}), "/positions"),
        (json!({"positions": {}}), "/positions"),
        (json!({"positions": [], "komi": 1}), "/komi"),
        (json!([]), ""),
    ] {
        let (status, problem) = daemon.post("/v1/positions:batch", &body);
        assert_eq!((status, &problem["errors"][0]["pointer"]), (422, &json!(pointer)), "{problem}");
    }
    assert_eq!(daemon.get("/v1/positions:batch").0, 405);
    assert_eq!(daemon.get("/v1/jobs").1["jobs"].as_array().map(Vec::len), Some(1), "a look-up never starts work");
}

#[test]
fn the_page_comes_whole_and_may_do_nothing_else() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(dir.path());
    let fetch = |path: &str, tag: Option<&str>| {
        let request = common::agent().get(daemon.url(path));
        let request = match tag {
            Some(tag) => request.header("if-none-match", tag),
            None => request,
        };
        let mut answer = request.call().expect(path);
        let headers = answer.headers().clone();
        let text = answer.body_mut().read_to_string().expect("text");
        let header = move |name: &str| headers.get(name).map(|value| value.to_str().expect("ASCII").to_owned()).unwrap_or_default();
        (answer.status().as_u16(), text, header)
    };
    // Every file that a file names, from the first one on.
    let mut paths = vec!["/".to_owned()];
    for index in 0.. {
        let Some(path) = paths.get(index).cloned() else { break };
        let (status, text, header) = fetch(&path, None);
        assert_eq!(status, 200, "{path}");
        let kind = match path.rsplit_once('.').map(|(_, kind)| kind) {
            None => "text/html; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            Some(_) => "text/javascript; charset=utf-8",
        };
        assert_eq!(header("content-type"), kind, "{path}");
        let policy = header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(header("x-content-type-options"), "nosniff");
        let tag = header("etag");
        let (status, nothing, again) = fetch(&path, Some(&tag));
        assert_eq!((status, nothing.as_str(), again("etag")), (304, "", tag), "{path}");
        assert!(!text.contains("http://") && !text.contains("https://") || path.ends_with(".svg") || path.ends_with("/dom.js"), "{path}");
        let quoted = text.split('"').filter_map(|word| {
            word.strip_prefix("./").map(|name| format!("/page/{name}")).or(word.starts_with("/page/").then(|| word.to_owned()))
        });
        for found in quoted.collect::<Vec<_>>() {
            if !paths.contains(&found) {
                paths.push(found);
            }
        }
    }
    assert!(paths.len() > 10, "{paths:?}");
    let (status, problem) = daemon.get("/page/nothing.js");
    assert_eq!((status, &problem["code"]), (404, &json!("not_found")));
}

#[test]
fn identical_open_jobs_are_joined_and_cancel_is_quick() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(dir.path());
    let body = json!({"kind": "value", "board": "4x5"});
    let first = daemon.submit(&body);
    assert_eq!(daemon.submit(&body), first);
    let waiting = daemon.submit(&json!({"kind": "value", "board": "3x6"}));
    daemon.wait_until(first, "running");
    wait_for("expansions", 60, || Some(()).filter(|()| count(&daemon.job(first)["progress"]["expansions"]) > 0));
    assert_eq!(daemon.job(waiting)["queue_position"], json!(1));
    // One that waits is cancelled with the answer, and never runs.
    let (status, job) = daemon.cancel(waiting);
    assert_eq!((status, &job["state"], &job["started_at"]), (200, &json!("cancelled"), &Value::Null), "{job}");
    // One that runs leaves the solver to the next within a second; ten are the slack of a shared machine.
    let next = daemon.submit(&json!({"kind": "value", "board": "2x2"}));
    let asked = Instant::now();
    let (status, job) = daemon.cancel(first);
    assert_eq!((status, &job["state"]), (200, &json!("cancelled")), "{job}");
    assert!(count(&job["progress"]["expansions"]) > 0, "what was counted is kept: {job}");
    daemon.wait_until(next, "succeeded");
    assert!(asked.elapsed().as_secs() < 10, "{:?}", asked.elapsed());
    assert_eq!(daemon.cancel(first), (200, daemon.job(first)), "cancelling twice is the same");
    let (status, problem) = daemon.cancel(next);
    assert_eq!((status, &problem["code"]), (409, &json!("job_ended")), "{problem}");
}

#[test]
fn urgent_jobs_go_first() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(dir.path());
    // Long ones, so that each is still there when the test looks.
    let submit =
        |label: &str, priority: i32| daemon.submit(&json!({"kind": "value", "board": "4x5", "label": label, "priority": priority}));
    let running = submit("running", 0);
    daemon.wait_until(running, "running");
    let ids = [submit("late", -1), submit("first", 0), submit("second", 0), submit("urgent", 7)];
    let places = || ids.map(|id| daemon.job(id)["queue_position"].clone());
    assert_eq!(places(), [4, 2, 3, 1]);
    // Whoever joins a job with more urgency moves it.
    assert_eq!(submit("late", 9), ids[0]);
    assert_eq!(submit("second", -5), ids[2], "and with less does not");
    assert_eq!(places(), [1, 3, 4, 2]);
    assert_eq!(daemon.job(running)["state"], "running", "urgency interrupts nothing");
    for id in [running, ids[0], ids[3], ids[1], ids[2]] {
        daemon.wait_until(id, "running");
        assert_eq!(daemon.cancel(id).0, 200);
    }
}

#[test]
fn lists_are_filtered_and_paged() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(dir.path());
    let running = daemon.submit(&json!({"kind": "value", "board": "4x5"}));
    let even: Vec<u64> = (0..7)
        .map(|index| {
            daemon.submit(
                &json!({"kind": "value", "board": format!("3x{}", index + 4), "label": if index % 2 == 0 { "even" } else { "odd & more" }}),
            )
        })
        .step_by(2)
        .collect();
    let page = |query: &str| {
        let (status, page) = daemon.get(&format!("/v1/jobs?{query}"));
        assert_eq!(status, 200, "{page}");
        let ids: Vec<u64> = page["jobs"].as_array().expect("jobs").iter().map(|job| job["id"].as_u64().expect("an id")).collect();
        (ids, page["next"].as_str().map(str::to_owned))
    };
    assert_eq!(page(""), ((running..running + 8).collect(), None));
    assert_eq!(page("label=even"), (even.clone(), None));
    assert_eq!(page("label=odd%20%26%20more").0.len(), 3);
    let (first, next) = page("label=even&limit=3");
    assert_eq!(first, even[..3]);
    assert_eq!(page(&format!("label=even&limit=3&cursor={}", next.expect("a further page"))), (even[3..].to_vec(), None));
    assert_eq!(page("limit=8").1, None, "no further page where nothing is left");
    daemon.cancel(even[1]);
    assert_eq!(page("state=cancelled"), (vec![even[1]], None));
    assert_eq!(page("state=queued&label=even").0, [even[0], even[2], even[3]]);
    daemon.cancel(running);
}

#[test]
fn a_repeated_idempotency_key_is_the_same_job() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(dir.path());
    let submit = |daemon: &Daemon, key: &str, body: &Value| {
        daemon.request("POST", "/v1/jobs", &[JSON, ("idempotency-key", key)], body.to_string().as_bytes())
    };
    let body = json!({"kind": "value", "board": "2x2"});
    let first = submit(&daemon, "a key", &body);
    let id = first.json["id"].as_u64().expect("an id");
    assert_eq!((first.status, first.header("location")), (202, Some(format!("/v1/jobs/{id}").as_str())));
    daemon.wait_until(id, "succeeded");
    assert_ne!(daemon.submit(&body), id, "without a key an ended job is not joined");
    let other = submit(&daemon, "a key", &json!({"kind": "value", "board": "2x3"}));
    assert_eq!((other.status, &other.json["code"]), (422, &json!("idempotency_key_reused")), "{other:?}");
    for bad in ["", &"x".repeat(256)] {
        let refused = submit(&daemon, bad, &body);
        assert_eq!((refused.status, &refused.json["code"]), (400, &json!("invalid_idempotency_key")), "{refused:?}");
    }
    // The key is as durable as the job.
    daemon.kill();
    let daemon = Daemon::start(dir.path());
    let again = submit(&daemon, "a key", &json!({"board": "2X2", "kind": "value", "moves": []}));
    assert_eq!((again.status, again.json["id"].as_u64(), &again.json["state"]), (202, Some(id), &json!("succeeded")), "{again:?}");
    assert_eq!(daemon.get("/v1/jobs").1["jobs"].as_array().map(Vec::len), Some(2));
}

/// Every stored byte, but for RocksDB's log of its own doings.
fn stored(data: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for dir in ["", "store", "tables"] {
        for entry in std::fs::read_dir(data.join(dir)).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            if path.is_file() && !path.ends_with("LOG") {
                files.insert(path.clone(), std::fs::read(path).expect("a file"));
            }
        }
    }
    files
}

#[test]
fn bad_requests_are_refused_with_a_pointer_and_change_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let daemon = Daemon::start(dir.path());
    let before = stored(&data);
    let check = |what: &str, (status, problem): (u16, Value), pointer: &str, word: &str| {
        assert_eq!((status, &problem["code"]), (422, &json!("invalid_request")), "{what}: {problem}");
        let errors = problem["errors"].as_array().unwrap_or_else(|| panic!("{what}: {problem}"));
        let at = errors.iter().find(|error| error["pointer"] == pointer).unwrap_or_else(|| panic!("{what} at {pointer}: {problem}"));
        assert!(at["detail"].as_str().is_some_and(|detail| detail.contains(word)), "{what} says {word}: {problem}");
    };
    for (body, pointer, word) in [
        (json!([]), "", "object"),
        (json!({"kind": "value"}), "/board", "missing"),
        (json!({"kind": "value", "board": 33}), "/board", "33"),
        (json!({"kind": "solve", "board": "9x9", "komi": 0.5}), "/board", "9x9"),
        (json!({"kind": "solve", "board": "0x3", "komi": 0.5}), "/board", "0x3"),
        (json!({"kind": "solve", "board": "3x3", "komi": 1}), "/komi", "1"),
        (json!({"kind": "solve", "board": "3x3", "komi": "x"}), "/komi", "x"),
        (json!({"kind": "solve", "board": "3x3"}), "/komi", "komi"),
        (json!({"kind": "value", "board": "3x3", "komi": 0.5}), "/komi", "0.5"),
        (json!({"board": "3x3"}), "/kind", "missing"),
        (json!({"kind": "value", "board": "3x3", "limits": {"time_seconds": 4e-10}}), "/limits/time_seconds", "4e-10"),
        (json!({"kind": "guess", "board": "3x3"}), "/kind", "guess"),
        (json!({"kind": "value", "board": "3x3", "colour": 1}), "/colour", "colour"),
        (json!({"kind": "value", "board": "3x3", "moves": ["A1", "A1"]}), "/moves/1", "occupied"),
        (json!({"kind": "value", "board": "3x3", "moves": ["I1"]}), "/moves/0", "I1"),
        (json!({"kind": "value", "board": "3x3", "moves": ["pass", "pass", "A1"]}), "/moves/2", "ended"),
        (json!({"kind": "value", "board": "1x2", "moves": ["A1", "B1", "A1"]}), "/moves/2", "superko"),
        (json!({"kind": "value", "board": "1x1", "moves": ["A1"]}), "/moves/0", "suicide"),
        (json!({"kind": "value", "board": "1x3", "setup": {"rows": ["XOX"], "to_move": "black"}}), "/setup/rows/0", "libert"),
        (json!({"kind": "value", "board": "1x3", "setup": {"rows": ["X?."], "to_move": "black"}}), "/setup/rows/0", "X?."),
        (json!({"kind": "value", "board": "1x3", "setup": {"rows": ["X.."], "to_move": "red"}}), "/setup/to_move", "red"),
        (json!({"kind": "value", "board": "1x3", "setup": {"rows": ["X.."], "to_move": "black", "passes": 2}}), "/setup/passes", "2"),
        (
            json!({"kind": "value", "board": "1x3", "setup": {"rows": ["..."], "to_move": "black", "earlier": [["OOO"]]}}),
            "/setup/earlier/0/0",
            "libert",
        ),
        (json!({"kind": "value", "board": "3x3", "limits": {"expansions": -1}}), "/limits/expansions", "-1"),
        (json!({"kind": "value", "board": "3x3", "limits": {"time_seconds": 0}}), "/limits/time_seconds", "0"),
        (json!({"kind": "value", "board": "3x3", "limits": {"nodes": 5}}), "/limits/nodes", "nodes"),
        (json!({"kind": "value", "board": "3x3", "priority": 0.5}), "/priority", "0.5"),
        (json!({"kind": "value", "board": "3x3", "label": 7}), "/label", "7"),
    ] {
        check(&body.to_string(), daemon.post("/v1/jobs", &body), pointer, word);
    }
    for (query, pointer, word) in [
        ("/v1/positions", "/board", "missing"),
        ("/v1/positions?board=9x9", "/board", "9x9"),
        ("/v1/positions?board=2x2&komi=1", "/komi", "1"),
        ("/v1/positions?board=2x2&moves=A1%20A1", "/moves", "occupied"),
        ("/v1/positions?board=2x2&board=2x3", "/board", "twice"),
        ("/v1/positions?board=2x2&size=2", "/size", "size"),
        ("/v1/jobs?state=done", "/state", "done"),
        ("/v1/jobs?limit=0", "/limit", "0"),
        ("/v1/jobs?limit=501", "/limit", "501"),
        ("/v1/jobs?cursor=x", "/cursor", "x"),
        ("/v1/jobs?offset=1", "/offset", "offset"),
    ] {
        check(query, daemon.get(query), pointer, word);
    }
    // Several at once are all named.
    let (_, problem) = daemon.post("/v1/jobs", &json!({"kind": "solve", "board": "9x9", "komi": 1, "label": 1}));
    assert_eq!(problem["errors"].as_array().map(Vec::len), Some(3), "{problem}");

    let good = br#"{"kind": "value", "board": "2x2"}"#;
    let label = json!({"kind": "value", "board": "3x3", "label": "x".repeat(3 << 20)}).to_string();
    let deep = "[".repeat(100_000);
    let text = ("content-type", "text/plain");
    for (method, path, headers, body, status, code) in [
        ("POST", "/v1/jobs", &[][..], &good[..], 415, "unsupported_media_type"),
        ("POST", "/v1/jobs", &[text], good, 415, "unsupported_media_type"),
        ("POST", "/v1/jobs", &[JSON], b"", 400, "malformed_json"),
        ("POST", "/v1/jobs", &[JSON], b"{\"kind\": ", 400, "malformed_json"),
        ("POST", "/v1/jobs", &[JSON], b"{\"kind\":\"solve\",\"board\":\"2x2\",\"komi\":0.5,\"komi\":1.5}", 400, "malformed_json"),
        ("POST", "/v1/jobs", &[JSON], b"{\"kind\": \"\xff\"}", 400, "malformed_json"),
        ("POST", "/v1/jobs", &[JSON], deep.as_bytes(), 400, "malformed_json"),
        ("POST", "/v1/jobs", &[JSON], label.as_bytes(), 413, "body_too_large"),
        ("POST", "/v1/nothing", &[JSON], good, 404, "not_found"),
        ("POST", "/v1/jobs/77/cancel", &[], b"", 404, "job_not_found"),
        ("POST", "/v1/jobs/x/cancel", &[], b"", 404, "job_not_found"),
        ("PUT", "/v1/jobs", &[JSON], good, 405, "method_not_allowed"),
        ("POST", "/healthz", &[JSON], good, 405, "method_not_allowed"),
        ("PUT", "/v1/positions", &[JSON], good, 405, "method_not_allowed"),
    ] {
        let answer = daemon.request(method, path, headers, body);
        let shown = &String::from_utf8_lossy(body)[..body.len().min(40)];
        assert_eq!((answer.status, &answer.json["code"]), (status, &json!(code)), "{method} {path} {headers:?} {shown}: {answer:?}");
        // What is allowed instead belongs to a 405 (RFC 9110, 15.5.6).
        assert_eq!(answer.header("allow").is_some(), status == 405, "{method} {path}: {answer:?}");
    }
    for path in ["/page", "/v1/nothing", "/v1/jobs/77", "/v1/jobs/x", "/v1/jobs/-1", "/v1/jobs/99999999999999999999"] {
        assert_eq!(daemon.get(path).0, 404, "{path}");
    }
    assert_eq!(daemon.get("/v1/jobs").1["jobs"], json!([]), "nothing was stored");
    assert!(stored(&data) == before, "a refused request changed a stored file");

    let second = superko(&["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().expect("UTF-8")]);
    let error = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(2), "{error}");
    assert!(error.contains("in use"), "{error}");
    assert!(stored(&data) == before, "a second daemon changed a stored file");
    assert_eq!(daemon.get("/v1/jobs").0, 200, "the first daemon goes on");
    daemon.submit(&json!({"kind": "value", "board": "2x2"}));
    assert!(stored(&data) != before, "an accepted job does change them");
}

#[test]
fn a_daemon_that_cannot_run_so_touches_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let config = dir.path().join("superko.toml");
    for (text, listen, words) in [
        ("", "0.0.0.0:0", ["0.0.0.0:0", "loopback"]),
        ("", "nowhere", ["nowhere", "ADDRESS:PORT"]),
        ("table = \"900000TiB\"", "127.0.0.1:0", ["table 900000TiB", "memory"]),
        ("table = \"1KiB\"", "127.0.0.1:0", ["table 1KiB", "at least"]),
        ("tabel = \"1GiB\"", "127.0.0.1:0", ["tabel", "unknown field"]),
    ] {
        std::fs::write(&config, text).expect("the configuration");
        let [config, data] = [&config, &data].map(|path| path.to_str().expect("UTF-8"));
        let output = superko(&["serve", "--listen", listen, "--config", config, "--data", data]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text} {listen}: {error}");
        assert!(words.iter().all(|word| error.contains(word)), "{text} {listen}: {error}");
    }
    assert!(!data.exists());
}

/// A page of another origin can make a browser send what needs no permission, such as a POST without a body.
#[test]
fn changes_from_pages_of_other_origins_are_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(dir.path());
    let id = daemon.submit(&json!({"kind": "value", "board": "4x5"}));
    let (own, path) = (daemon.url(""), format!("/v1/jobs/{id}/cancel"));
    let refused = daemon.request("POST", &path, &[("origin", "http://evil.example")], b"");
    assert_eq!((refused.status, &refused.json["code"]), (403, &json!("cross_origin")), "{refused:?}");
    assert_eq!(daemon.request("GET", "/v1/jobs", &[("origin", "http://evil.example")], b"").status, 200);
    assert_ne!(daemon.job(id)["state"], "cancelled");
    assert_eq!(daemon.request("POST", &path, &[("origin", &own)], b"").status, 200);
}

#[test]
fn a_full_queue_asks_to_come_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start_with(dir.path(), "table = \"64MiB\"\nmax_queue = 2\n");
    let submit = |board: &str| {
        let body = json!({"kind": "value", "board": board}).to_string();
        daemon.request("POST", "/v1/jobs", &[JSON], body.as_bytes())
    };
    let first = submit("4x5").json["id"].as_u64().expect("an id");
    assert_eq!(submit("4x6").status, 202);
    let full = submit("4x7");
    assert_eq!((full.status, &full.json["code"]), (503, &json!("queue_full")), "{full:?}");
    assert!(full.header("retry-after").is_some_and(|seconds| seconds.parse::<u32>().is_ok()), "{full:?}");
    assert_eq!(submit("4x6").status, 202, "joining takes no place");
    assert_eq!(daemon.cancel(first).0, 200);
    assert_eq!(submit("4x7").status, 202, "a place is free again");
}

#[test]
fn a_daemon_that_stops_takes_no_job() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut daemon = Daemon::start(dir.path());
    // A request that is under way when the signal comes: its answer is what the shutdown waits for.
    let mut stream = TcpStream::connect(("127.0.0.1", daemon.port)).expect("a connection");
    let body = r#"{"kind": "value", "board": "2x2"}"#;
    let (half, rest) = body.split_at(10);
    let head = format!(
        "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{half}",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("sent");
    wait_for("request under way", 60, || Some(()).filter(|()| daemon.get("/healthz").0 == 200));
    daemon.terminate();
    wait_for("shutdown", 60, || daemon.log().contains("stopping: no new jobs").then_some(()));
    stream.write_all(rest.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("retry-after: ") && answer.contains("\"code\":\"draining\""), "{answer}");
    assert_eq!(daemon.exit_status(60).code(), Some(0));
    drop(daemon);
    let daemon = Daemon::start(dir.path());
    assert_eq!(daemon.get("/v1/jobs").1["jobs"], json!([]));
}

#[test]
fn health_and_metrics() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(dir.path());
    daemon.wait_until(daemon.submit(&json!({"kind": "value", "board": "2x3"})), "succeeded");
    assert_eq!(daemon.get("/healthz").1["status"], "alive");
    assert_eq!(daemon.get("/readyz").1["status"], "ready");
    assert!(daemon.metric("superko_search_expansions_total") > 0.0);
    assert!(daemon.metric("superko_checkpoints_total") > 0.0);
    // The job's own statistics are what its run added to the metrics.
    let statistics = &daemon.job(1)["result"]["statistics"];
    for (series, group, value) in [
        ("superko_static_leaves_total{kind=\"pure_eyes\"}", "static_leaves", "pure_eyes"),
        ("superko_reuse_accepted_total{by=\"cube_and_filter\"}", "reuse_accepted", "cube_and_filter"),
        ("superko_reuse_rejected_total{condition=\"ii_excluded\"}", "reuse_rejected", "ii_excluded"),
        ("superko_lemma_excluded_boards_total{boards=\"0\"}", "excluded_boards", "0"),
    ] {
        let counted = count(&statistics[group][value]);
        assert!(counted > 0 && daemon.metric(series) == counted as f64, "{series}: {statistics}");
    }
    assert_eq!(daemon.metric("superko_jobs{state=\"succeeded\"}"), 1.0);
    for damage in ["superko_table_torn_total", "superko_recovery_refused_total", "superko_store_read_errors_total"] {
        assert_eq!(daemon.metric(damage), 0.0, "{damage}");
    }
}

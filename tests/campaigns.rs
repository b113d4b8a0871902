//! Turns, pausing and resuming, event streams and campaigns of the built daemon.

mod common;

use common::{CONFIG, Daemon, agent, count, superko, wait_for};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

const JSON: (&str, &str) = ("content-type", "application/json");

/// A daemon whose jobs have short turns.
fn start(dir: &Path) -> Daemon {
    Daemon::start_with(dir, &format!("{CONFIG}turn_seconds = 1\n"))
}

fn post(daemon: &Daemon, path: &str) -> (u16, Value) {
    let answer = daemon.request("POST", path, &[], b"");
    (answer.status, answer.json)
}

fn expansions(job: &Value) -> u64 {
    count(&job["progress"]["expansions"])
}

/// A job that takes minutes.
fn long(label: &str) -> Value {
    json!({"kind": "value", "board": "4x5", "label": label})
}

fn has_worked(daemon: &Daemon, id: u64) -> u64 {
    wait_for("expansions", 60, || Some(expansions(&daemon.job(id))).filter(|&count| count > 0))
}

#[test]
fn a_paused_job_stays_paused_across_a_crash_and_goes_on_where_it_was() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = start(dir.path());
    let id = daemon.submit(&long("paused"));
    has_worked(&daemon, id);
    let (status, paused) = post(&daemon, &format!("/v1/jobs/{id}/pause"));
    assert_eq!((status, &paused["state"]), (200, &json!("paused")), "{paused}");
    assert_eq!(post(&daemon, &format!("/v1/jobs/{id}/pause")).1["state"], "paused", "pausing twice is pausing once");
    // The solver is free for others.
    let next = daemon.submit(&json!({"kind": "value", "board": "2x2"}));
    daemon.wait_until(next, "succeeded");
    let kept = wait_for("a record of the pause", 60, || {
        let job = daemon.job(id);
        (job["progress"]["checkpoint_expansions"] == job["progress"]["expansions"]).then(|| expansions(&job))
    });
    daemon.kill();
    let daemon = start(dir.path());
    let job = daemon.job(id);
    assert_eq!((&job["state"], expansions(&job)), (&json!("paused"), kept), "{job}");
    assert_eq!(daemon.get("/v1/jobs?state=paused").1["jobs"].as_array().map(Vec::len), Some(1));
    let (status, resumed) = post(&daemon, &format!("/v1/jobs/{id}/resume"));
    assert_eq!((status, &resumed["state"]), (200, &json!("queued")), "{resumed}");
    wait_for("new expansions", 60, || Some(()).filter(|()| expansions(&daemon.job(id)) > kept));
    // A stop and start at once loses nothing either.
    post(&daemon, &format!("/v1/jobs/{id}/pause"));
    post(&daemon, &format!("/v1/jobs/{id}/resume"));
    daemon.wait_until(id, "running");
    daemon.cancel(id);
    let (status, problem) = post(&daemon, &format!("/v1/jobs/{id}/resume"));
    assert_eq!((status, &problem["code"]), (409, &json!("job_ended")), "{problem}");
    let (status, problem) = post(&daemon, &format!("/v1/jobs/{id}/pause"));
    assert_eq!((status, &problem["code"]), (409, &json!("job_ended")), "{problem}");
    assert_eq!(post(&daemon, "/v1/jobs/99/pause").0, 404);
}

#[test]
fn equal_jobs_take_turns_and_an_urgent_one_goes_first() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = start(dir.path());
    let (one, two) = (daemon.submit(&long("one")), daemon.submit(&json!({"kind": "solve", "board": "4x5", "komi": 18.5, "label": "two"})));
    wait_for("both jobs to have had turns", 120, || {
        let (one, two) = (daemon.job(one), daemon.job(two));
        (expansions(&one) > 0 && expansions(&two) > 0).then_some(())
    });
    // No turn takes away what an earlier one has reached.
    let before = expansions(&daemon.job(one));
    wait_for("a further turn", 120, || Some(()).filter(|()| expansions(&daemon.job(one)) > before));
    let states = [&daemon.job(one)["state"], &daemon.job(two)["state"]].map(Value::clone);
    assert!(states.contains(&json!("running")) || states.contains(&json!("queued")), "{states:?}");
    let urgent = daemon.submit(&json!({"kind": "value", "board": "3x3", "priority": 5}));
    let job = daemon.wait_until(urgent, "succeeded");
    assert_eq!(job["result"]["value"], 9);
    for id in [one, two] {
        assert!(["running", "queued"].contains(&daemon.job(id)["state"].as_str().expect("a state")));
    }
    // A job whose priority is raised goes ahead of the other, and stays there.
    let answer = daemon.request("PATCH", &format!("/v1/jobs/{two}"), &[JSON], br#"{"priority": 3}"#);
    assert_eq!((answer.status, &answer.json["priority"]), (200, &json!(3)));
    daemon.wait_until(two, "running");
    assert_eq!(daemon.job(one)["queue_position"], 1);
    let tag = answer.header("etag").expect("a tag").to_owned();
    let stale = daemon.request("PATCH", &format!("/v1/jobs/{one}"), &[JSON, ("if-match", &tag)], br#"{"priority": 4}"#);
    assert_eq!((stale.status, &stale.json["code"], &daemon.job(one)["priority"]), (412, &json!("precondition_failed"), &json!(0)));
    let now = daemon.request("GET", &format!("/v1/jobs/{one}"), &[], b"").header("etag").expect("a tag").to_owned();
    assert_eq!(daemon.request("PATCH", &format!("/v1/jobs/{one}"), &[JSON, ("if-match", &now)], br#"{"priority": 4}"#).status, 200);
    for (body, pointer) in [(&b"{}"[..], "/priority"), (br#"{"priority": "high"}"#, "/priority"), (br#"{"state": "paused"}"#, "/state")] {
        let refused = daemon.request("PATCH", &format!("/v1/jobs/{one}"), &[JSON], body);
        assert_eq!((refused.status, &refused.json["errors"][0]["pointer"]), (422, &json!(pointer)));
    }
}

#[test]
fn an_expired_job_keeps_what_it_knows_and_can_be_resumed() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = start(dir.path());
    let id = daemon.submit(&json!({"kind": "value", "board": "3x4", "limits": {"expansions": 1000}}));
    let job = daemon.wait_until(id, "expired");
    assert_eq!(expansions(&job), 1000, "{job}");
    // The same limit again, counted from here on.
    assert_eq!(post(&daemon, &format!("/v1/jobs/{id}/resume")).1["state"], "queued");
    let job = wait_for("an end", 60, || Some(daemon.job(id)).filter(|job| expansions(job) > 1000 && job["state"] != "running"));
    assert!(job["finished_at"].is_string() && expansions(&job) <= 2000, "{job}");
    let refused = daemon.request("POST", &format!("/v1/jobs/{id}/resume"), &[JSON], br#"{"limits": {"nodes": 5}}"#);
    assert_eq!((refused.status, &refused.json["errors"][0]["pointer"]), (422, &json!("/limits/nodes")));
    if job["state"] == "expired" {
        let answer = daemon.request("POST", &format!("/v1/jobs/{id}/resume"), &[JSON], br#"{"limits": {"expansions": "1000000"}}"#);
        assert_eq!((answer.status, &answer.json["finished_at"]), (200, &Value::Null), "{answer:?}");
    }
    assert_eq!(daemon.wait_until(id, "succeeded")["result"]["value"], 4);
    // A table that is fuller than the job allows.
    let id = daemon.submit(&json!({"kind": "value", "board": "4x5", "limits": {"memory_bytes": 200_000}}));
    let job = daemon.wait_until(id, "expired");
    assert_eq!((&job["limits"]["memory_bytes"], &job["result"]), (&json!("200000"), &Value::Null), "{job}");
}

/// Reads events until one named `last`; their ids, names and data.
fn events(daemon: &Daemon, path: &str, headers: &[(&str, &str)], last: &str) -> Vec<(String, String, Value)> {
    let mut request = agent().get(daemon.url(path));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut answer = request.call().expect("a stream");
    assert_eq!(answer.status(), 200);
    let mut found = Vec::new();
    let (mut id, mut name) = (String::new(), String::new());
    for line in BufReader::new(answer.body_mut().as_reader()).lines() {
        let line = line.expect("a line");
        if let Some(text) = line.strip_prefix("id: ") {
            id = text.to_owned();
        } else if let Some(text) = line.strip_prefix("event: ") {
            name = text.to_owned();
        } else if let Some(text) = line.strip_prefix("data: ") {
            found.push((id.clone(), name.clone(), serde_json::from_str(text).expect("JSON")));
            if name == last {
                break;
            }
        }
    }
    found
}

#[test]
fn a_stream_tells_a_jobs_story_and_can_be_taken_up_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = start(dir.path());
    let id = daemon.submit(&json!({"kind": "solve", "board": "3x5", "komi": 14.5}));
    let path = format!("/v1/jobs/{id}/events");
    let story = events(&daemon, &path, &[], "result");
    let names: Vec<&str> = story.iter().map(|(_, name, _)| name.as_str()).collect();
    assert_eq!((names.first(), names.last()), (Some(&"state"), Some(&"result")), "{names:?}");
    assert!(names.contains(&"checkpoint"), "{names:?}");
    assert_eq!(story.last().expect("a result").2["result"]["winner"], "black");
    assert!(story.iter().any(|(_, name, data)| name == "state" && data["state"] == "succeeded"));
    // From an event on: what came after it, and nothing else.
    let (middle, rest) = (&story[1].0, &story[2..]);
    assert_eq!(events(&daemon, &path, &[("last-event-id", middle)], "result"), rest);
    // At the end there is nothing more to come; a browser that is told so does not ask again.
    let ended = agent().get(daemon.url(&path)).header("last-event-id", &story.last().expect("a result").0).call().expect("an answer");
    assert_eq!(ended.status(), 204);
    // An id of another run of the daemon: the story as it stands.
    let anew = events(&daemon, &path, &[("last-event-id", "12-3")], "result");
    assert_eq!(anew.iter().map(|(_, name, _)| name.as_str()).collect::<Vec<_>>(), ["state", "result"]);
    let lines = agent().get(daemon.url(&path)).header("accept", "application/x-ndjson").call().expect("lines").body_mut().read_to_string();
    let lines: Vec<Value> = lines.expect("text").lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.iter().map(|line| line["event"].as_str().expect("a name")).collect::<Vec<_>>(), ["state", "result"]);
    assert_eq!(daemon.get("/v1/jobs/99/events").0, 404);
}

#[test]
fn streams_tell_of_progress_and_end_with_the_daemon() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut daemon = start(dir.path());
    let id = daemon.submit(&long("watched"));
    let seen = events(&daemon, "/v1/events", &[], "progress");
    let (_, _, progress) = seen.last().expect("progress");
    assert_eq!(progress["job"], id);
    assert!(
        count(&progress["progress"]["expansions"]) > 0 && progress["progress"]["expansions_per_second"].as_f64() > Some(0.0),
        "{progress}"
    );
    assert!(progress["progress"]["proof_number"].is_string() && progress["bounds"]["lower"].is_i64(), "{progress}");
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| events(&daemon, &format!("/v1/jobs/{id}/events"), &[], "draining"));
        wait_for("a stream", 30, || Some(()).filter(|()| daemon.metric("superko_sse_streams") > 0.0));
        daemon.terminate();
        let seen = watcher.join().expect("the stream ends");
        assert_eq!(seen.last().map(|(_, name, _)| name.as_str()), Some("draining"));
    });
    assert!(daemon.exit_status(60).success());
}

fn campaign(daemon: &Daemon, id: u64) -> Value {
    let (status, campaign) = daemon.get(&format!("/v1/campaigns/{id}"));
    assert_eq!(status, 200, "campaign {id} is lost: {campaign}");
    campaign
}

fn submit(daemon: &Daemon, body: &Value) -> u64 {
    let (status, campaign) = daemon.post("/v1/campaigns", body);
    assert_eq!(status, 202, "{campaign}");
    campaign["id"].as_u64().expect("an id")
}

fn ended(daemon: &Daemon, id: u64) -> Value {
    wait_for("the campaign's end", 120, || Some(campaign(daemon, id)).filter(|campaign| campaign["state"] != "running"))
}

#[test]
fn campaigns_find_the_value_and_the_optimal_moves_however_they_are_split() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = start(dir.path());
    for (board, moves, value, optimal) in [
        ("3x3", json!([]), 9, json!(["B2"])),
        ("2x3", json!([]), 0, Value::Null),
        ("3x3", json!(["B2"]), 9, Value::Null),
        ("1x5", json!([]), 0, Value::Null),
        ("2x2", json!(["A1", "pass", "pass"]), 4, json!([])),
    ] {
        let mut seen = Vec::new();
        for split in 0..=2 {
            let id = submit(&daemon, &json!({"board": board, "moves": moves, "split": split}));
            let done = ended(&daemon, id);
            assert_eq!((&done["state"], &done["value"], &done["stage"]), (&json!("succeeded"), &json!(value), &Value::Null), "{done}");
            assert_eq!(done["bounds"], json!({"lower": value, "upper": value}), "{done}");
            assert!(optimal.is_null() || done["optimal_moves"] == optimal, "{done}");
            // Both proofs, each by a job about the position itself.
            for proof in done["proofs"].as_array().expect("proofs") {
                let (status, proof) = daemon.get(&format!("/v1/proofs/{}", proof.as_str().expect("an id")));
                assert_eq!((status, &proof["moves"], &proof["status"]), (200, &moves, &json!("proved")), "{proof}");
            }
            let jobs = daemon.get(&format!("/v1/jobs?campaign={id}&limit=500")).1;
            assert!(jobs["jobs"].as_array().expect("jobs").iter().all(|job| job["campaign"] == id), "{jobs}");
            seen.push(done["optimal_moves"].clone());
        }
        assert!(seen.iter().all(|moves| *moves == seen[0]), "{board}: {seen:?}");
        // Every first move that is said to be optimal is, and no other but images of them (all these positions are symmetric).
        let mut position = moves.as_array().expect("moves").clone();
        let legal = daemon.get(&format!("/v1/positions?board={board}&moves={}", texts(&position))).1["next_moves"].clone();
        for mv in legal.as_array().expect("moves").iter().filter(|mv| mv["legal"] == true) {
            position.push(mv["move"].clone());
            let after = superko(&["value", "--board", board, "--moves", &texts(&position), "--json"]);
            let after = common::json_of(&after)["value"].as_i64();
            position.pop();
            let named = seen[0].as_array().expect("moves").contains(&mv["move"]);
            assert!(!named || after == Some(value), "{board} {mv}: {after:?}");
            let has_image =
                images(board, mv["move"].as_str().expect("a move")).any(|image| seen[0].as_array().expect("moves").contains(&json!(image)));
            assert!(after != Some(value) || named || has_image, "{board} {mv}");
        }
    }
}

/// The points that a board's symmetries map a point to.
fn images(board: &str, vertex: &str) -> impl Iterator<Item = String> {
    let (rows, cols) = board.split_once('x').map(|(rows, cols)| (rows.parse::<u8>(), cols.parse::<u8>())).expect("a board");
    let (rows, cols) = (rows.expect("rows"), cols.expect("columns"));
    let point = (vertex != "pass").then(|| (vertex.as_bytes()[1] - b'1', vertex.as_bytes()[0] - b'A'));
    let turned = move |(row, col): (u8, u8)| {
        [(row, col), (col, row)]
            .into_iter()
            .take(if rows == cols { 2 } else { 1 })
            .flat_map(move |(row, col)| [(row, col), (rows - 1 - row, col), (row, cols - 1 - col), (rows - 1 - row, cols - 1 - col)])
    };
    point.into_iter().flat_map(turned).map(|(row, col)| format!("{}{}", char::from(b'A' + col), row + 1))
}

fn texts(moves: &[Value]) -> String {
    moves.iter().map(|mv| mv.as_str().expect("a move")).collect::<Vec<_>>().join(",")
}

#[test]
fn a_campaign_survives_crashes_and_does_as_it_is_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut daemon = start(dir.path());
    let body = json!({"board": "3x4", "split": 1, "certificate": true, "verify": true, "label": "crash"});
    let id = submit(&daemon, &body);
    assert_eq!(submit(&daemon, &body), id, "the same open campaign is joined");
    let keyed = daemon.request("POST", "/v1/campaigns", &[JSON, ("idempotency-key", "k")], body.to_string().as_bytes());
    assert_eq!(keyed.json["id"], id);
    let other = daemon.request("POST", "/v1/campaigns", &[JSON, ("idempotency-key", "k")], br#"{"board": "2x2"}"#);
    assert_eq!((other.status, &other.json["code"]), (422, &json!("idempotency_key_reused")));
    // kill -9 again and again: it goes on by itself.
    for _ in 0..4 {
        std::thread::sleep(std::time::Duration::from_millis(300));
        daemon.kill();
        daemon = start(dir.path());
        campaign(&daemon, id);
    }
    let done = ended(&daemon, id);
    assert_eq!((&done["state"], &done["value"]), (&json!("succeeded"), &json!(4)), "{done}");
    let proofs = done["proofs"].as_array().expect("proofs");
    assert_eq!(proofs.len(), 2);
    for proof in proofs {
        let proof = daemon.get(&format!("/v1/proofs/{}", proof.as_str().expect("an id"))).1;
        assert_eq!(proof["certificate"]["verified"], true, "{proof}");
    }
    // Paused, it rests with all of its jobs; so it does after a crash.
    let id = submit(&daemon, &json!({"board": "4x5", "split": 1}));
    let running =
        wait_for("a running job", 60, || daemon.get(&format!("/v1/jobs?campaign={id}&state=running")).1["jobs"][0]["id"].as_u64());
    for action in ["cancel", "pause", "resume"] {
        let (status, problem) = post(&daemon, &format!("/v1/jobs/{running}/{action}"));
        let is_refused = (status, &problem["code"]) == (409, &json!("part_of_campaign"));
        assert!(is_refused || action == "resume" && status == 200, "{action}: {problem}");
    }
    let (status, paused) = post(&daemon, &format!("/v1/campaigns/{id}/pause"));
    assert_eq!((status, &paused["state"]), (200, &json!("paused")), "{paused}");
    daemon.kill();
    let daemon = start(dir.path());
    assert_eq!(campaign(&daemon, id)["state"], "paused");
    assert_eq!(daemon.get(&format!("/v1/jobs?campaign={id}&state=running")).1["jobs"], json!([]));
    let small = daemon.submit(&json!({"kind": "value", "board": "2x2"}));
    daemon.wait_until(small, "succeeded");
    assert_eq!(daemon.get(&format!("/v1/jobs?campaign={id}&state=queued")).1["jobs"], json!([]));
    let answer = daemon.request("PATCH", &format!("/v1/campaigns/{id}"), &[JSON], br#"{"priority": -2}"#);
    assert_eq!((answer.status, &answer.json["priority"]), (200, &json!(-2)));
    assert_eq!(post(&daemon, &format!("/v1/campaigns/{id}/resume")).1["state"], "running");
    let job = wait_for("a running job", 60, || {
        Some(daemon.get(&format!("/v1/jobs?campaign={id}&state=running")).1["jobs"][0].clone()).filter(Value::is_object)
    });
    assert_eq!(job["priority"], -2);
    assert_eq!(post(&daemon, &format!("/v1/campaigns/{id}/cancel")).1["state"], "cancelled");
    for state in ["queued", "running", "paused"] {
        assert_eq!(daemon.get(&format!("/v1/jobs?campaign={id}&state={state}")).1["jobs"], json!([]), "{state}");
    }
    let (status, problem) = post(&daemon, &format!("/v1/campaigns/{id}/resume"));
    assert_eq!((status, &problem["code"]), (409, &json!("campaign_state")));
    assert_eq!(post(&daemon, "/v1/campaigns/99/pause").0, 404);
    let list = daemon.get("/v1/campaigns?state=succeeded").1;
    assert_eq!(list["campaigns"].as_array().map(Vec::len), Some(1), "{list}");
}

#[test]
fn a_campaign_whose_jobs_hit_a_limit_can_be_resumed() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = start(dir.path());
    let id = submit(&daemon, &json!({"board": "3x4", "limits": {"expansions": 300}}));
    let expired = ended(&daemon, id);
    assert_eq!((&expired["state"], &expired["value"]), (&json!("expired"), &Value::Null), "{expired}");
    let answer = daemon.request("POST", &format!("/v1/campaigns/{id}/resume"), &[JSON], br#"{"limits": {"expansions": null}}"#);
    assert_eq!((answer.status, &answer.json["state"], &answer.json["limits"]["expansions"]), (200, &json!("running"), &Value::Null));
    assert_eq!(ended(&daemon, id)["value"], 4);
}

#[test]
fn a_running_job_keeps_to_the_new_limits_of_its_campaign() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = start(dir.path());
    let id = submit(&daemon, &json!({"board": "5x5"}));
    wait_for("a job that runs", 60, || (daemon.get("/v1/jobs?state=running").1["jobs"][0]["state"] == "running").then_some(()));
    let answer = daemon.request("POST", &format!("/v1/campaigns/{id}/resume"), &[JSON], br#"{"limits": {"expansions": 1}}"#);
    assert_eq!((answer.status, &answer.json["state"]), (200, &json!("running")), "{}", answer.json);
    assert_eq!(ended(&daemon, id)["state"], "expired");
}

#[test]
fn the_client_runs_a_campaign() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = start(dir.path());
    let server = daemon.url("");
    let output = |arguments: &[&str]| superko(&[arguments, &["--server", &server]].concat());
    let run = |arguments: &[&str]| {
        let output = output(arguments);
        (output.status.code(), String::from_utf8(output.stdout).expect("UTF-8"))
    };
    let (code, text) = run(&["campaign", "submit", "--board", "3x3", "--split", "1", "--wait"]);
    assert!(code == Some(0) && text.contains("value 9") && text.contains("optimal moves B2"), "{text}");
    assert!(run(&["campaign", "list", "--state", "succeeded"]).1.starts_with("campaign 1 3x3"));
    let (code, text) = run(&["campaign", "show", "1", "--json"]);
    assert!(code == Some(0) && serde_json::from_str::<Value>(&text).expect("JSON")["value"] == 9, "{text}");
    let (code, _) = run(&["job", "submit", "--board", "4x5", "--label", "long"]);
    assert_eq!(code, Some(0));
    let newest = run(&["job", "list", "--newest", "--limit", "1", "--json"]).1;
    let id = serde_json::from_str::<Value>(&newest).expect("JSON")["jobs"][0]["id"].to_string();
    assert!(run(&["job", "pause", &id]).1.contains(": paused"));
    assert!(run(&["job", "priority", &id, "7"]).1.contains(": paused"));
    assert!(run(&["job", "resume", &id, "--expansion-limit", "100"]).1.contains("queued"));
    assert_eq!(run(&["job", "watch", &id]).0, Some(3), "a limit is no verdict");
    // Two jobs of a campaign prove different things at one komi: the list tells them apart.
    let listed = run(&["job", "list", "--limit", "3"]).1;
    assert!(listed.contains(" after ") && listed.contains(", of campaign 1") && listed.contains("; --newest"), "{listed}");
    let refused = output(&["job", "submit", "--board", "3x3", "--label", &"x".repeat(201)]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--label: "), "{refused:?}");
    let long = run(&["campaign", "submit", "--board", "4x5", "--priority", "-3"]).1;
    assert!(long.contains(": running, priority -3"), "{long}");
    assert!(run(&["campaign", "priority", "2", "4"]).1.contains(": running, priority 4"));
    let part = run(&["job", "list", "--newest", "--limit", "1", "--json"]).1;
    let part = serde_json::from_str::<Value>(&part).expect("JSON")["jobs"][0]["id"].to_string();
    assert!(run(&["campaign", "pause", "2"]).1.contains(": paused"));
    assert_eq!(run(&["job", "pause", &part]).0, Some(2), "it is the campaign's");
    // The state comes at once, not after the first interval.
    let watch = Command::new(env!("CARGO_BIN_EXE_superko"))
        .args(["campaign", "watch", "2", "--server", &server])
        .stderr(Stdio::piped())
        .spawn()
        .map(common::Guard);
    let mut line = String::new();
    let mut watch = watch.expect("it starts");
    BufReader::new(watch.0.stderr.take().expect("standard error")).read_line(&mut line).expect("a line");
    assert!(line.contains("campaign 2 4x5: paused"), "{line}");
    assert_eq!(run(&["campaign", "cancel", "7"]).0, Some(2));
}

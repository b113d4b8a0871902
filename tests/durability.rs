//! What was acknowledged survives: SIGTERM, a second SIGTERM, and `kill -9` at random moments, whatever the number of threads.

mod common;

use common::{CONFIG, Daemon, agent, count, wait_for};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use superko_storage::Store;

/// Values of Drange 1998 and of the brute force, for jobs that run long enough to be killed.
const BOARDS: [(&str, i64); 2] = [("2x8", 16), ("3x6", 18)];

/// Submits jobs until the daemon takes no more, says when some have been taken, and returns all that were.
fn submit_until_refused(url: &str, started: &Sender<()>) -> Vec<u64> {
    let mut acknowledged = Vec::new();
    for number in 0.. {
        let body = json!({"kind": "value", "board": "3x6", "label": format!("late {number}")});
        let Ok(mut answer) = agent().post(url).send_json(&body) else { break };
        if answer.status() != 202 {
            break;
        }
        let job: Value = answer.body_mut().read_json().expect("JSON");
        acknowledged.push(job["id"].as_u64().expect("an id"));
        if acknowledged.len() == 5 {
            started.send(()).expect("the test waits");
        }
    }
    acknowledged
}

#[test]
fn a_stop_loses_nothing_that_was_acknowledged() {
    for signals in [&["TERM"][..], &["INT"], &["TERM", "TERM"], &["TERM", "INT", "TERM"]] {
        let dir = tempfile::tempdir().expect("a directory");
        let mut daemon = Daemon::start(dir.path());
        let done = daemon.wait_until(daemon.submit(&json!({"kind": "value", "board": "2x3"})), "succeeded");
        let id = daemon.submit(&json!({"kind": "value", "board": "4x5"}));
        let before = wait_for("checkpoint", 60, || {
            Some(count(&daemon.job(id)["progress"]["checkpoint_expansions"])).filter(|&expansions| expansions > 0)
        });
        let cancelled = daemon.submit(&json!({"kind": "value", "board": "2x8"}));
        daemon.cancel(cancelled);
        let (started, wait) = channel();
        let url = daemon.url("/v1/jobs");
        let submitter = std::thread::spawn(move || submit_until_refused(&url, &started));
        wait.recv_timeout(Duration::from_secs(60)).expect("jobs are taken");
        for signal in signals {
            daemon.signal(signal);
        }
        let acknowledged = submitter.join().expect("the submitter ends");
        assert_eq!(daemon.exit_status(60).code(), Some(0), "{signals:?}");
        drop(daemon);
        let daemon = Daemon::start(dir.path());
        assert_eq!(daemon.job(done["id"].as_u64().expect("an id")), done, "{signals:?}");
        assert_eq!(daemon.job(cancelled)["state"], "cancelled", "{signals:?}");
        let after = daemon.job(id);
        assert!(count(&after["progress"]["expansions"]) >= before, "{signals:?}: {after}");
        assert_eq!(after["state"], "running", "{signals:?}: {after}");
        for id in acknowledged {
            assert_eq!(daemon.job(id)["state"], "queued", "{signals:?}");
        }
    }
}

#[test]
fn a_cancelled_run_leaves_its_lemmas() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut daemon = Daemon::start_with(dir.path(), "table = \"64MiB\"\ncheckpoint_interval_seconds = 86400\n");
    let id = daemon.submit(&json!({"kind": "value", "board": "2x8"}));
    let past = |expansions: u64| {
        wait_for("expansions", 60, || Some(count(&daemon.job(id)["progress"]["expansions"])).filter(|&now| now > expansions))
    };
    past(0);
    let (status, first) = daemon.post("/v1/admin/checkpoint", &Value::Null);
    assert_eq!(status, 200, "{first}");
    past(past(0) + 10_000);
    let bounds = || {
        let bounds = &daemon.job(id)["bounds"];
        (bounds["lower"].as_i64().expect("lower"), bounds["upper"].as_i64().expect("upper"))
    };
    let (lower, upper) = wait_for("bounds", 120, || Some(bounds()).filter(|&now| now != (-16, 16)));
    daemon.cancel(id);
    // They may have become narrower still before the cancel.
    wait_for("bounds of the cancelled job", 60, || Some(bounds()).filter(|now| now.0 >= lower && now.1 <= upper));
    wait_for("end of the search", 60, || (daemon.metric("superko_search_root_proof_number") == 0.0).then_some(()));
    daemon.terminate();
    assert_eq!(daemon.exit_status(60).code(), Some(0));
    let last = Store::open(&dir.path().join("data")).expect("opens").last_checkpoint().expect("readable").expect("a checkpoint");
    assert!(last.sequence > count(&first["sequence"]) && last.lemmas > 0, "{first} is the last but for {last:?}");
}

/// A small file system of its own, unmounted when dropped.
struct Mount(tempfile::TempDir);

impl Mount {
    fn tmpfs(megabytes: u32) -> Result<Mount, String> {
        let dir = tempfile::tempdir().expect("a directory");
        let output = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={megabytes}m"), "tmpfs"])
            .arg(dir.path())
            .output()
            .map_err(|error| error.to_string())?;
        if output.status.success() { Ok(Mount(dir)) } else { Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()) }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

/// While the disk is full the daemon refuses and stays; when there is space again it works on, or ends for its supervisor to start it.
#[test]
fn a_full_disk_loses_nothing_and_passes() {
    let mount = match Mount::tmpfs(64) {
        Ok(mount) => mount,
        Err(reason) => return common::skip("a_full_disk_loses_nothing_and_passes", &format!("cannot mount a tmpfs: {reason}")),
    };
    let dir = mount.0.path();
    let config = "table = \"8MiB\"\ncheckpoint_interval_seconds = 1\nmin_free = \"4MiB\"\n";
    let mut daemon = Daemon::start_with(dir, config);
    let small = |label: String| json!({"kind": "value", "board": "2x2", "label": label});
    let mut acknowledged: Vec<u64> = (0..3).map(|index| daemon.submit(&small(format!("before {index}")))).collect();
    let ended = |daemon: &Daemon, id: u64| (daemon.job(id)["state"] == "succeeded").then_some(());
    for &id in &acknowledged {
        wait_for("result", 60, || ended(&daemon, id));
    }
    let fill = dir.join("fill");
    let mut file = std::fs::File::create(&fill).expect("the filler");
    while file.write_all(&[1; 4096]).is_ok() {}
    let refused = (0..10_000).find_map(|index| match daemon.post("/v1/jobs", &small(format!("during {index}"))) {
        (202, job) => {
            acknowledged.push(job["id"].as_u64().expect("an id"));
            None
        }
        (status, problem) => Some((status, problem)),
    });
    let (status, problem) = refused.expect("a full disk refuses");
    assert_eq!((status, problem["code"].as_str()), (503, Some("storage_full")), "{problem}");
    let reasons = wait_for("a reason", 60, || daemon.get("/readyz").1["detail"].as_str().map(str::to_owned));
    assert!(reasons.contains("storage: "), "{reasons}");
    assert_eq!((daemon.get("/healthz").0, daemon.metric("superko_storage_guard_active")), (200, 1.0));
    drop(file);
    std::fs::remove_file(&fill).expect("the filler goes");
    // In time it either takes jobs again or has ended with an error.
    let restart = wait_for("recovery or end", 300, || match daemon.ended() {
        Some(status) => Some(Some(status)),
        None => {
            let answer = agent().post(daemon.url("/v1/jobs")).send_json(small("after".to_owned())).ok()?;
            (answer.status() == 202).then_some(None)
        }
    });
    if let Some(status) = restart {
        assert_eq!(status.code(), Some(1), "systemd restarts on failure");
        daemon = Daemon::start_with(dir, config);
    }
    for id in acknowledged {
        wait_for("result", 60, || ended(&daemon, id));
    }
}

#[test]
fn kill_9_loses_nothing() {
    let kills: u32 = std::env::var("SUPERKO_KILLS").map_or(30, |text| text.parse().expect("SUPERKO_KILLS is a number"));
    let seed = std::env::var("SUPERKO_SEED").map_or_else(
        |_| SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_nanos() as u64,
        |text| text.parse().expect("SUPERKO_SEED is a number"),
    );
    println!("SUPERKO_SEED={seed}");
    let mut state = seed | 1;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let dir = tempfile::tempdir().expect("a directory");
    let mut daemon = Daemon::start(dir.path());
    let mut jobs: BTreeMap<u64, i64> = BTreeMap::new();
    let mut floors: BTreeMap<u64, u64> = BTreeMap::new();
    let mut finished = BTreeMap::new();
    let (mut done, mut next, mut rises) = (0, 0, 0);
    while done < kills {
        // A kill counts only if it hits a running job, so there is always one, of a label of its own lest it be joined.
        if !jobs.keys().any(|id| ["queued", "running"].contains(&daemon.job(*id)["state"].as_str().expect("a state"))) {
            let (board, value) = BOARDS[next % BOARDS.len()];
            next += 1;
            jobs.insert(daemon.submit(&json!({"kind": "value", "board": board, "label": format!("crash {next}")})), value);
        }
        let end = Instant::now() + Duration::from_millis(random(2500));
        let mut running;
        loop {
            running = false;
            for &id in jobs.keys() {
                let job = daemon.job(id);
                let floor = floors.entry(id).or_insert(0);
                let checkpointed = count(&job["progress"]["checkpoint_expansions"]);
                rises += u32::from(checkpointed > *floor);
                *floor = checkpointed.max(*floor);
                running |= job["state"] == "running";
                if job["state"] == "succeeded" {
                    finished.insert(id, job["result"].clone());
                }
            }
            if Instant::now() >= end {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        daemon.kill();
        done += u32::from(running);
        daemon = Daemon::start_with(dir.path(), &format!("{CONFIG}threads = {}\n", 1 + random(3)));
        for (&id, &floor) in &floors {
            let job = daemon.job(id);
            let now = count(&job["progress"]["expansions"]);
            assert!(now >= floor, "seed {seed}, kill {done}: job {id} fell from the checkpointed {floor} to {now}");
            if let Some(result) = finished.get(&id) {
                assert_eq!(&job["result"], result, "seed {seed}: the result of job {id} changed");
            } else {
                assert!(["queued", "running", "succeeded"].contains(&job["state"].as_str().expect("a state")), "seed {seed}: {job}");
            }
        }
    }
    println!("{done} kills of a running job, {} jobs, {rises} checkpoints seen", jobs.len());
    for (id, value) in jobs {
        let job =
            wait_for("end of the job", 600, || Some(daemon.job(id)).filter(|job| job["state"] != "queued" && job["state"] != "running"));
        assert_eq!((job["state"].as_str(), job["result"]["value"].as_i64()), (Some("succeeded"), Some(value)), "seed {seed}: {job}");
    }
}

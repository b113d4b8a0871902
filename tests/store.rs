//! Backup, restore, verification: the drill that an operator would go through.

mod common;

use common::{CONFIG, Daemon, count, json_of, superko, wait_for};
use serde_json::{Value, json};
use std::path::Path;

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// A command of `superko store` with `--json`; exit code and what it printed.
fn store(arguments: &[&str]) -> (Option<i32>, Value) {
    let output = superko(&[&["store"], arguments, &["--json"]].concat());
    (output.status.code(), json_of(&output))
}

/// A command of `superko store` that must fail without a word on standard output; its exit code and its complaint.
fn refused(arguments: &[&str]) -> (Option<i32>, String) {
    let output = superko(&[&["store"], arguments].concat());
    assert!(output.stdout.is_empty(), "{arguments:?}");
    (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
}

fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).expect("the file");
    bytes[at] ^= 1;
    std::fs::write(path, bytes).expect("written");
}

/// The files of a directory and all below it, with their content.
fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((text(&path).to_owned(), std::fs::read(&path).expect("a file")));
        }
    }
    found.sort();
    found
}

fn largest(directory: &Path, end: &str) -> std::path::PathBuf {
    let paths = std::fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    paths.filter(|path| text(path).ends_with(end)).max_by_key(|path| path.metadata().expect("a file").len()).expect("such a file")
}

#[test]
fn the_drill_brings_everything_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let daemon = Daemon::start(dir.path());
    let certified = json!({"kind": "value", "board": "3x3", "certificate": true, "verify": true});
    let done = daemon.wait_until(daemon.submit(&certified), "succeeded");
    let id = done["id"].as_u64().expect("an id");
    let long = daemon.submit(&json!({"kind": "value", "board": "2x9"}));
    let saved =
        wait_for("a checkpoint", 60, || Some(count(&daemon.job(long)["progress"]["checkpoint_expansions"])).filter(|&count| count > 0));
    let queued = daemon.submit(&json!({"kind": "value", "board": "2x2", "label": "waits"}));
    let look_up = "/v1/positions?board=3x3&komi=8.5&moves=B2";
    let known = daemon.get(look_up);
    // While it works.
    let server = daemon.url("");
    let made = superko(&["store", "backup", "--server", &server, "--name", "monday", "--json"]);
    let report = json_of(&made);
    assert_eq!((made.status.code(), &report["verification"]["damaged"]), (Some(0), &json!(0)), "{report}");
    let backup = data.join("backups/monday");
    assert_eq!(report["directory"], text(&backup));
    assert!(report["verification"]["records"]["lemmas"].as_u64() > Some(0), "{report}");
    for (body, status, code, pointer) in [
        (json!({"name": "monday"}), 409, "backup_exists", None),
        (json!({"name": "../monday"}), 422, "invalid_request", Some("/name")),
        (json!({"name": "a/b"}), 422, "invalid_request", Some("/name")),
        (json!({"name": 7}), 422, "invalid_request", Some("/name")),
        (json!({"nam": "x", "name": "x"}), 422, "invalid_request", Some("/nam")),
        (json!([]), 422, "invalid_request", Some("")),
    ] {
        let (found, problem) = daemon.post("/v1/admin/backup", &body);
        assert_eq!((found, problem["code"].as_str()), (status, Some(code)), "{problem}");
        assert_eq!(problem["errors"][0]["pointer"].as_str(), pointer, "{problem}");
    }
    // Directly it would have to be another program's directory; a look is refused too.
    for command in [&["backup", "--data", text(&data), "--to", text(&dir.path().join("b"))][..], &["verify", "--data", text(&data)]] {
        let (code, complaint) = refused(command);
        assert!(code == Some(2) && complaint.contains("is in use by process"), "{complaint}");
    }
    let after = daemon.submit(&json!({"kind": "value", "board": "2x2", "label": "after the backup"}));
    assert!(after > queued);
    daemon.kill();
    let elsewhere = dir.path().join("elsewhere");
    copy(&backup, &elsewhere);
    std::fs::remove_dir_all(&data).expect("wiped");
    let before = files(&elsewhere);
    let (code, report) = store(&["restore", "--from", text(&elsewhere), "--data", text(&data)]);
    assert_eq!((code, &report["verification"]["damaged"]), (Some(0), &json!(0)), "{report}");
    assert!(before == files(&elsewhere), "a restore changes nothing in the backup");
    let (code, statistics) = store(&["stats", "--data", text(&data)]);
    assert_eq!((code, &statistics["jobs"]["succeeded"], &statistics["damaged"]), (Some(0), &json!(1), &json!(0)), "{statistics}");
    assert!(statistics["lemmas"]["3x3"].as_u64() > Some(0) && statistics["lemmas"]["2x9"].as_u64() > Some(0), "{statistics}");
    assert_eq!(statistics["directories"]["certificates"]["count"], 2 - u64::from(done["proofs"][1].is_null()), "{statistics}");
    let mut daemon = Daemon::start(dir.path());
    assert_eq!(daemon.job(id), done);
    assert_eq!(daemon.get(look_up), known);
    let running = daemon.job(long);
    assert!(running["state"] == "running" && count(&running["progress"]["expansions"]) >= saved, "{running}");
    assert_eq!(daemon.job(queued)["label"], "waits");
    assert_eq!(daemon.get(&format!("/v1/jobs/{after}")).0, 404, "it came after the backup");
    let proof = done["proofs"][0].as_str().expect("a proof");
    let (status, checked) = daemon.post(&format!("/v1/proofs/{proof}/verifications"), &Value::Null);
    assert_eq!((status, &checked["certificate"]["verified"]), (200, &json!(true)), "{checked}");
    daemon.cancel(long);
    daemon.wait_until(queued, "succeeded");
    daemon.terminate();
    assert_eq!(daemon.exit_status(60).code(), Some(0));
    // Directly, now that nothing uses it.
    let second = dir.path().join("second");
    let (code, report) = store(&["backup", "--data", text(&data), "--to", text(&second)]);
    assert_eq!((code, &report["verification"]["damaged"]), (Some(0), &json!(0)), "{report}");
    let (code, verified) = store(&["verify", "--data", text(&data)]);
    assert_eq!((code, &verified["damaged"], verified["records"]["jobs"].as_u64()), (Some(0), &json!(0), Some(3)), "{verified}");
    // The table is made anew where there is none, and what is not empty is left alone.
    let (code, complaint) = refused(&["restore", "--from", text(&second), "--data", text(&data)]);
    assert!(code == Some(2) && complaint.contains("not empty"), "{complaint}");
    let (code, complaint) = refused(&["backup", "--data", text(&data), "--to", text(&second)]);
    assert!(code == Some(2) && complaint.contains("there already"), "{complaint}");
    let (code, complaint) = refused(&["restore", "--from", text(&data), "--data", text(&dir.path().join("third"))]);
    assert!(code == Some(2) && complaint.contains("no backup"), "{complaint}");
    let (code, complaint) = refused(&["verify", "--data", text(&dir.path().join("nowhere"))]);
    assert!(code == Some(2) && complaint.contains("nowhere"), "{complaint}");
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("a directory") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).expect("copied");
        }
    }
}

#[test]
fn a_flipped_bit_is_found_and_not_restored() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let mut daemon = Daemon::start_with(dir.path(), CONFIG);
    let certified = json!({"kind": "solve", "board": "3x3", "komi": 8.5, "certificate": true});
    daemon.wait_until(daemon.submit(&certified), "succeeded");
    daemon.terminate();
    assert_eq!(daemon.exit_status(60).code(), Some(0));
    let backup = dir.path().join("backup");
    assert_eq!(store(&["backup", "--data", text(&data), "--to", text(&backup)]).0, Some(0));
    // In the data directory: in the middle of the lemmas, and of the certificate.
    let copied = dir.path().join("copied");
    copy(&data, &copied);
    let untouched = files(&copied);
    assert_eq!(store(&["verify", "--data", text(&copied)]).0, Some(0));
    assert!(untouched == files(&copied), "a look changes nothing");
    for (place, end, words) in [("store", ".sst", ".sst"), ("certificates", ".sgc", "1-1.sgc")] {
        let path = largest(&copied.join(place), end);
        let middle = path.metadata().expect("a file").len() as usize / 2;
        flip(&path, middle);
        let (code, found) = store(&["verify", "--data", text(&copied)]);
        assert!(code == Some(1) && found["damaged"].as_u64() > Some(0), "{found}");
        assert!(found["first_damaged"].to_string().contains(words), "{found}");
        flip(&path, middle);
    }
    assert_eq!(store(&["verify", "--data", text(&copied)]).0, Some(0));
    // In the backup: anywhere at all; and a file that is gone.
    let list: Value = serde_json::from_slice(&std::fs::read(backup.join("BACKUP.json")).expect("the list")).expect("JSON");
    let target = dir.path().join("target");
    for listed in list["files"].as_array().expect("files") {
        let path = backup.join(listed["path"].as_str().expect("a path"));
        let bytes = path.metadata().expect("a file").len() as usize;
        if bytes == 0 {
            continue;
        }
        for at in [0, bytes / 2, bytes - 1] {
            flip(&path, at);
            // RocksDB refuses some of them as a whole.
            assert_eq!(superko(&["store", "verify", "--data", text(&backup)]).status.code(), Some(1), "{listed} at {at}");
            let (code, complaint) = refused(&["restore", "--from", text(&backup), "--data", text(&target)]);
            assert!(code == Some(2) && complaint.contains(text(&path)) && complaint.contains("damaged"), "{complaint}");
            flip(&path, at);
        }
        let away = dir.path().join("away");
        std::fs::rename(&path, &away).expect("moved");
        assert_eq!(refused(&["restore", "--from", text(&backup), "--data", text(&target)]).0, Some(1), "{listed}");
        std::fs::rename(&away, &path).expect("moved back");
        let left: Vec<String> = files(&target).into_iter().map(|(name, _)| name).collect();
        assert!(left.iter().all(|name| name.ends_with("LOCK.superko")), "nothing half done is left: {left:?}");
    }
    // What a list may not name.
    let good = std::fs::read_to_string(backup.join("BACKUP.json")).expect("the list");
    let first = list["files"][0]["path"].as_str().expect("a path");
    for bad in ["../outside", "/etc/passwd", "store/../../x", "LOCK.superko", "store", "tables/x"] {
        std::fs::write(backup.join("BACKUP.json"), good.replacen(first, bad, 1)).expect("written");
        let (code, complaint) = refused(&["restore", "--from", text(&backup), "--data", text(&target)]);
        assert!(code == Some(2) && complaint.contains(bad), "{complaint}");
    }
    std::fs::write(backup.join("BACKUP.json"), good).expect("written");
    // A restore that was cut short: no daemon begins anew there, and the next restore goes on.
    std::fs::create_dir_all(target.join("restore.part/store")).expect("made");
    std::fs::create_dir_all(target.join("certificates")).expect("made");
    let refused_start = superko(&["serve", "--data", text(&target), "--listen", "127.0.0.1:0"]);
    let complaint = String::from_utf8_lossy(&refused_start.stderr).into_owned();
    assert!(refused_start.status.code() == Some(1) && complaint.contains("cut short"), "{complaint}");
    assert!(!target.join("store").exists());
    assert_eq!(store(&["restore", "--from", text(&backup), "--data", text(&target)]).0, Some(0));
    assert!(!target.join("restore.part").exists());
    assert_eq!(store(&["verify", "--data", text(&target)]).0, Some(0));
}

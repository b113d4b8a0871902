//! Faults at every durable step: the process dies, the power fails, the disk fails or is full, files are damaged or mixed. What was acknowledged is there
//! afterwards, and no value is ever wrong.
//!
//! The steps are system calls, counted and broken by a library that is loaded before the C library (`faults/steps.c`), so that the program itself
//! is the one that users run. `SUPERKO_FAULTS` sets how many steps each test tries (all for a number that is large enough), `SUPERKO_SEED` which.

mod common;

use common::{Daemon, count, skip, superko, wait_for};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const CONFIG: &str = "table = \"1MiB\"\ncertificate_memory = \"4MiB\"\ncheckpoint_interval_seconds = 1\n";

/// Values that are known from elsewhere (Drange 1998, brute force).
const VALUES: [(&str, i64); 5] = [("1x4", 4), ("2x3", 0), ("3x3", 9), ("3x4", 4), ("3x5", 15)];

fn value_of(board: &str) -> i64 {
    VALUES.iter().find(|(name, _)| *name == board).expect("a known board").1
}

/// How many steps a test tries.
fn tries(usual: usize) -> usize {
    std::env::var("SUPERKO_FAULTS").map_or(usual, |text| text.parse().expect("SUPERKO_FAULTS is a number"))
}

struct Random(u64);

impl Random {
    /// A generator whose seed is printed.
    fn new(test: &str) -> Random {
        let seed = std::env::var("SUPERKO_SEED").map_or_else(
            |_| SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_nanos() as u64,
            |text| text.parse().expect("SUPERKO_SEED is a number"),
        );
        println!("{test}: SUPERKO_SEED={seed}");
        Random(seed | 1)
    }

    fn below(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }

    /// At most `count` of `all`, in their order: evenly spread, each from its own stretch.
    fn choose<T: Copy>(&mut self, all: &[T], count: usize) -> Vec<T> {
        if all.len() <= count {
            return all.to_vec();
        }
        (0..count)
            .map(|index| {
                let (from, to) = (index * all.len() / count, (index + 1) * all.len() / count);
                all[from + self.below((to - from) as u64) as usize]
            })
            .collect()
    }
}

/// The library that breaks steps, compiled once.
fn steps_library() -> Result<&'static Path, String> {
    static LIBRARY: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| {
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("steps.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/faults/steps.c");
        let compiled = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]).arg(&library).arg(source).output();
        let compiled = compiled.map_err(|error| format!("cc: {error}"))?;
        if compiled.status.success() { Ok(library) } else { Err(String::from_utf8_lossy(&compiled.stderr).into_owned()) }
    });
    library.as_deref().map_err(Clone::clone)
}

/// The environment of a daemon on `dir` that logs its steps, or has one of them broken.
fn steps(library: &Path, dir: &Path, fault: &str) -> Vec<(&'static str, String)> {
    let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    vec![
        ("LD_PRELOAD", text(library)),
        ("SUPERKO_STEPS_DIR", text(&dir.join("data"))),
        ("SUPERKO_STEPS_LOG", text(&dir.join("steps"))),
        ("SUPERKO_STEPS_FAULT", fault.to_owned()),
    ]
}

/// What the daemon has acknowledged; kept outside of it.
#[derive(Default)]
struct Facts {
    /// Jobs that were accepted, with their boards.
    jobs: BTreeMap<u64, &'static str>,
    /// Those that were seen to end, as they were then.
    ended: BTreeMap<u64, Value>,
    /// What a restart keeps at least of each.
    floors: BTreeMap<u64, u64>,
    /// Backups that were made.
    backups: BTreeSet<String>,
}

impl Facts {
    /// Asks a daemon that may die at any moment; `None` if it has, or refuses.
    fn ask(&mut self, daemon: &Daemon, method: &str, path: &str, body: &Value) -> Option<Value> {
        let quick = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(Duration::from_secs(5))).build();
        let agent: ureq::Agent = quick.into();
        let answer = if method == "GET" { agent.get(daemon.url(path)).call() } else { agent.post(daemon.url(path)).send_json(body) };
        let mut answer = answer.ok().filter(|answer| answer.status().is_success())?;
        answer.body_mut().read_json().ok()
    }

    fn submit(&mut self, daemon: &Daemon, board: &'static str, label: &str) -> Option<u64> {
        let body = json!({"kind": "value", "board": board, "label": label, "certificate": true, "verify": true});
        let id = self.ask(daemon, "POST", "/v1/jobs", &body)?["id"].as_u64()?;
        self.jobs.insert(id, board);
        Some(id)
    }

    /// Looks at every job once.
    fn look(&mut self, daemon: &Daemon) -> Option<()> {
        for id in self.jobs.clone().into_keys() {
            let job = self.ask(daemon, "GET", &format!("/v1/jobs/{id}"), &Value::Null)?;
            let floor = self.floors.entry(id).or_default();
            *floor = count(&job["progress"]["checkpoint_expansions"]).max(*floor);
            if !["queued", "running"].contains(&job["state"].as_str()?) {
                self.ended.insert(id, job);
            }
        }
        Some(())
    }

    fn wait(&mut self, daemon: &Daemon, id: u64, time: Duration) -> Option<()> {
        let end = Instant::now() + time;
        while !self.ended.contains_key(&id) {
            self.look(daemon)?;
            if Instant::now() > end {
                return None;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(())
    }

    /// A short life of a daemon: jobs with certificates, a checkpoint, a backup, an end in order. `None` where it was cut short.
    fn live(&mut self, daemon: &mut Daemon, serial: usize) -> Option<()> {
        let time = Duration::from_secs(5);
        let end = Instant::now() + time;
        while !daemon.is_listening() || self.ask(daemon, "GET", "/readyz", &Value::Null).is_none() {
            if daemon.ended().is_some() || Instant::now() > end {
                return None;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let first = self.submit(daemon, "2x3", &format!("first {serial}"))?;
        self.wait(daemon, first, time)?;
        let second = self.submit(daemon, "3x4", &format!("second {serial}"))?;
        self.ask(daemon, "POST", "/v1/admin/checkpoint", &Value::Null)?;
        let name = format!("backup-{serial}");
        if self.ask(daemon, "POST", "/v1/admin/backup", &json!({"name": name})).is_some() {
            self.backups.insert(name);
        }
        self.wait(daemon, second, time)?;
        self.submit(daemon, "1x4", &format!("third {serial}"))?;
        self.ask(daemon, "POST", "/v1/admin/checkpoint", &Value::Null)?;
        daemon.terminate();
        let end = Instant::now() + Duration::from_secs(60);
        while daemon.ended().is_none() {
            assert!(Instant::now() < end, "the daemon does not stop:\n{}", daemon.log());
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(())
    }

    /// Starts a daemon without faults: everything acknowledged is there and comes to a true end; then reads the directory to the last record.
    fn check(&mut self, dir: &Path, what: &str) {
        let mut daemon = Daemon::spawn(dir, CONFIG, &[]);
        assert!(daemon.is_ready(), "{what}: the daemon does not start:\n{}", daemon.log());
        for (&id, &board) in &self.jobs {
            let (status, job) = daemon.get(&format!("/v1/jobs/{id}"));
            assert_eq!(status, 200, "{what}: job {id} is lost");
            let floor = self.floors.get(&id).copied().unwrap_or_default();
            assert!(count(&job["progress"]["expansions"]) >= floor, "{what}: job {id} fell below {floor}: {job}");
            if let Some(ended) = self.ended.get(&id) {
                assert_eq!(&job, ended, "{what}: job {id} had ended");
            }
            let job = daemon.wait_until(id, "succeeded");
            assert_eq!(job["result"]["value"], value_of(board), "{what}: {job}");
            for (proof, report) in job["proofs"].as_array().expect("ids").iter().zip(job["result"]["proofs"].as_array().expect("proofs")) {
                if report["certificate"]["verified"] == true {
                    let file = dir.join(format!("data/certificates/{}.sgc", proof.as_str().expect("an id")));
                    let checked = superko(&["check", file.to_str().expect("UTF-8")]);
                    assert_eq!(checked.status.code(), Some(0), "{what}: {}", String::from_utf8_lossy(&checked.stderr));
                }
            }
            self.ended.insert(id, job);
        }
        let again = daemon.submit(&json!({"kind": "value", "board": "3x4", "label": format!("again {what}")}));
        assert_eq!(daemon.wait_until(again, "succeeded")["result"]["value"], value_of("3x4"), "{what}");
        daemon.terminate();
        assert_eq!(daemon.exit_status(60).code(), Some(0), "{what}");
        let data = dir.join("data");
        for place in [data.clone()].into_iter().chain(self.backups.iter().map(|name| data.join("backups").join(name))) {
            let verified = superko(&["store", "verify", "--data", place.to_str().expect("UTF-8")]);
            assert_eq!(verified.status.code(), Some(0), "{what}: {}", String::from_utf8_lossy(&verified.stderr));
        }
        for place in ["certificates", "backups"] {
            let entries = std::fs::read_dir(data.join(place)).into_iter().flatten();
            let left: Vec<_> = entries
                .map(|entry| entry.expect("an entry").file_name())
                .filter(|name| name.to_string_lossy().ends_with(".part"))
                .collect();
            assert!(left.is_empty(), "{what}: {left:?} is left in {place}");
        }
    }
}

/// The steps of a life on an empty directory.
fn steps_of_a_life(library: &Path) -> Vec<(usize, String)> {
    let dir = tempfile::tempdir().expect("a directory");
    let mut daemon = Daemon::spawn(dir.path(), CONFIG, &steps(library, dir.path(), ""));
    let mut facts = Facts::default();
    facts.live(&mut daemon, 0).unwrap_or_else(|| panic!("a life without faults comes to its end:\n{}", daemon.log()));
    assert_eq!(facts.backups.len(), 1);
    let log = std::fs::read_to_string(dir.path().join("steps")).expect("the steps");
    log.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.split_once(' ').map(|(_, rest)| rest.to_owned()).expect("a step")))
        .collect()
}

/// Of all steps those that make something durable or change names: what lies between them are writes.
fn decisive(steps: &[(usize, String)]) -> Vec<usize> {
    let is_write = |step: &str| ["write ", "pwrite", "writev "].iter().any(|call| step.starts_with(call));
    steps.iter().filter(|(_, step)| !is_write(step)).map(|(number, _)| *number).collect()
}

#[test]
fn death_at_any_step_loses_nothing() {
    let library = match steps_library() {
        Ok(library) => library,
        Err(reason) => return skip("death_at_any_step_loses_nothing", &reason),
    };
    let mut random = Random::new("death_at_any_step_loses_nothing");
    let all = steps_of_a_life(library);
    for call in ["fdatasync", "fsync", "msync", "rename", "unlink", "link", "pwrite64|write", "mkdir"] {
        assert!(all.iter().any(|(_, step)| call.split('|').any(|call| step.starts_with(call))), "the library sees no {call}: {all:?}");
    }
    let count = tries(16);
    let chosen = if count >= all.len() { all.iter().map(|(number, _)| *number).collect() } else { random.choose(&decisive(&all), count) };
    for &number in &chosen {
        let dir = tempfile::tempdir().expect("a directory");
        let mut daemon = Daemon::spawn(dir.path(), CONFIG, &steps(library, dir.path(), &format!("kill:{number}")));
        let mut facts = Facts::default();
        let lived = facts.live(&mut daemon, number);
        drop(daemon);
        facts.check(dir.path(), &format!("death at step {number} ({}), lived {}", all[number - 1].1, lived.is_some()));
    }
    println!("died at {} of {} steps", chosen.len(), all.len());
}

/// A step that fails once, or from then on, as on a disk that is broken or full.
#[test]
fn a_failing_disk_loses_nothing() {
    let library = match steps_library() {
        Ok(library) => library,
        Err(reason) => return skip("a_failing_disk_loses_nothing", &reason),
    };
    let mut random = Random::new("a_failing_disk_loses_nothing");
    let all = steps_of_a_life(library);
    // The process must be able to start at all: the steps of a start are tried too, but few.
    let numbers: Vec<usize> = (1..=all.len()).collect();
    let chosen = random.choose(&numbers, tries(6));
    let (eio, enospc) = (5, 28);
    for (index, number) in chosen.iter().copied().enumerate() {
        let (kind, error) = [("error", eio), ("errors", enospc), ("errors", eio)][index % 3];
        let dir = tempfile::tempdir().expect("a directory");
        let what = format!("{kind} {error} at step {number} ({})", all[number - 1].1);
        let mut daemon = Daemon::spawn(dir.path(), CONFIG, &steps(library, dir.path(), &format!("{kind}:{number}:{error}")));
        let mut facts = Facts::default();
        let lived = daemon.is_listening() && facts.live(&mut daemon, number).is_some();
        assert!(!daemon.log().contains("panicked"), "{what}:\n{}", daemon.log());
        if let Some(status) = daemon.ended() {
            assert!(status.code().is_some(), "{what}: it ends by itself, not by a signal: {status}");
            assert!(status.success() || daemon.log().contains("error"), "{what}: it says why:\n{}", daemon.log());
        }
        drop(daemon);
        facts.check(dir.path(), &format!("{what}, lived {lived}"));
    }
}

/// A file system of its own for the data directory of a daemon, whose log and configuration lie beside it; unmounted when dropped.
struct Mount {
    image: tempfile::TempDir,
}

impl Mount {
    fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
        let output = Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
        if output.status.success() { Ok(()) } else { Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())) }
    }

    fn ext4(megabytes: u64) -> Result<Mount, String> {
        let image = tempfile::tempdir().expect("a directory");
        let file = std::fs::File::create(image.path().join("image")).expect("the image");
        file.set_len(megabytes << 20).expect("its size");
        std::fs::create_dir(image.path().join("data")).expect("the mount point");
        let mount = Mount { image };
        Mount::run("mkfs.ext4", &["-q", "-F", &mount.path("image")])?;
        mount.mount()?;
        Ok(mount)
    }

    fn path(&self, name: &str) -> String {
        self.image.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    fn mount(&self) -> Result<(), String> {
        Mount::run("mount", &["-o", "loop", &self.path("image"), &self.path("data")])
    }

    fn unmount(&self) -> Result<(), String> {
        Mount::run("umount", &[&self.path("data")])
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path("data")).status();
    }
}

/// The power fails at random steps, recovery included: the file system is cut off with all that was not synced, and mounted again.
#[test]
fn power_cuts_lose_nothing() {
    let mount = steps_library().and_then(|library| Ok((library, Mount::ext4(512)?)));
    let (library, mount) = match mount {
        Ok(both) => both,
        Err(reason) => return skip("power_cuts_lose_nothing", &reason),
    };
    let mut random = Random::new("power_cuts_lose_nothing");
    let all = steps_of_a_life(library).len() as u64;
    let dir = mount.image.path();
    let mut facts = Facts::default();
    let (wanted, mut cuts, mut during_recovery) = (tries(3), 0, 0);
    for serial in 1.. {
        if cuts >= wanted {
            break;
        }
        // The first one always hits; later on every third hits the recovery.
        let number = if serial % 3 == 2 { 1 + random.below(60) } else { 1 + random.below(all) };
        let mut daemon = Daemon::spawn(dir, CONFIG, &steps(library, dir, &format!("power:{number}")));
        let lived = facts.live(&mut daemon, serial);
        let listened = daemon.port != 0;
        assert!(lived.is_some() || !daemon.log().contains("no power cut"), "the file system cannot be cut off");
        let killed = daemon.ended().is_none_or(|status| status.code().is_none());
        drop(daemon);
        if !killed {
            continue;
        }
        cuts += 1;
        during_recovery += u32::from(!listened);
        mount.unmount().expect("unmounted");
        mount.mount().expect("mounted: its journal is replayed");
        // Every other time the next life goes on from here without a look, and may be cut again.
        if serial % 2 == 1 || cuts >= wanted {
            facts.check(dir, &format!("power cut at step {number}, {cuts} so far"));
            facts.backups.clear();
            let _ = std::fs::remove_dir_all(dir.join("data/backups"));
        }
    }
    println!("{cuts} power cuts, {during_recovery} of them before the daemon listened; {} jobs", facts.jobs.len());
}

/// The table's blocks are allocated before it is mapped: where there is no room for it the daemon says so and waits, instead of dying of a hole.
#[test]
fn a_table_without_room_is_no_sigbus() {
    let mount = match Mount::ext4(256) {
        Ok(mount) => mount,
        Err(reason) => return skip("a_table_without_room_is_no_sigbus", &reason),
    };
    let dir = mount.image.path();
    let config = "table = \"32MiB\"\ncheckpoint_interval_seconds = 1\nmin_free = \"1MiB\"\n";
    let mut daemon = Daemon::start_with(dir, config);
    let fill = dir.join("data/fill");
    let free = || superko_storage::disk_free_bytes(&dir.join("data")).expect("the disk");
    let mut file = std::fs::File::create(&fill).expect("the filler");
    while free() > 16 << 20 {
        file.write_all(&[1; 1 << 16]).expect("there is room");
    }
    file.sync_all().expect("synced");
    let id = daemon.submit(&json!({"kind": "value", "board": "3x3"}));
    let reason = wait_for("a reason", 60, || {
        let problem = daemon.get("/readyz").1["detail"].as_str().unwrap_or_default().to_owned();
        problem.contains("table").then_some(problem)
    });
    assert!(reason.contains("free space or choose a smaller table"), "{reason}");
    assert_eq!((daemon.ended(), daemon.job(id)["state"].as_str()), (None, Some("queued")));
    drop(file);
    std::fs::remove_file(&fill).expect("the filler goes");
    assert_eq!(daemon.wait_until(id, "succeeded")["result"]["value"], 9);
    // A table with a hole, as a copy may have: filled before it is used.
    daemon.terminate();
    assert_eq!(daemon.exit_status(60).code(), Some(0));
    let table = dir.join("data/tables/3x3.table");
    let blocks = |path: &Path| std::os::unix::fs::MetadataExt::blocks(&path.metadata().expect("the table")) * 512;
    assert!(blocks(&table) >= 32 << 20, "{} bytes are allocated", blocks(&table));
    let sparse = dir.join("data/sparse");
    Mount::run("cp", &["--sparse=always", table.to_str().expect("UTF-8"), sparse.to_str().expect("UTF-8")]).expect("copied");
    std::fs::rename(&sparse, &table).expect("moved");
    assert!(blocks(&table) < 32 << 20, "the copy has holes");
    let daemon = Daemon::start_with(dir, config);
    let id = daemon.submit(&json!({"kind": "value", "board": "3x3", "label": "again"}));
    assert_eq!(daemon.wait_until(id, "succeeded")["result"]["value"], 9);
    assert!(blocks(&table) >= 32 << 20, "{} bytes are allocated", blocks(&table));
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

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

/// What a directory is about.
struct Work {
    /// Boards whose values are asked for.
    boards: &'static [&'static str],
    /// A position of the last one.
    position: &'static str,
    table: &'static str,
}

const SMALL: Work = Work { boards: &["2x3", "3x3"], position: "board=3x3&komi=8.5&moves=B2", table: "1MiB" };
/// Large enough for lemmas whose prints are records of their own.
const LARGE: Work = Work { boards: &["3x5"], position: "board=3x5&komi=14.5&moves=C2", table: "64MiB" };

impl Work {
    fn board(&self) -> &'static str {
        self.boards[self.boards.len() - 1]
    }

    fn config(&self) -> String {
        CONFIG.replace("1MiB", self.table)
    }

    /// What a daemon without faults knows of a directory: its jobs, and the verdict of every reply to a move.
    fn knowledge(&self, daemon: &Daemon) -> (Value, Value) {
        let jobs = daemon.get("/v1/jobs").1["jobs"].clone();
        (jobs, daemon.get(&format!("/v1/positions?{}", self.position)).1)
    }
}

/// A directory in which the work is done, closed in order or not.
fn solved(dir: &Path, work: &Work, in_order: bool) -> (Value, Value) {
    let mut daemon = Daemon::start_with(dir, &work.config());
    for board in work.boards {
        let id = daemon.submit(&json!({"kind": "value", "board": board, "certificate": true, "verify": true}));
        daemon.wait_until(id, "succeeded");
    }
    let known = work.knowledge(&daemon);
    if in_order {
        // A backup has RocksDB write its tables, which else are in the log alone.
        let (status, made) = daemon.post("/v1/admin/backup", &json!({"name": "flushed"}));
        assert_eq!(status, 201, "{made}");
        std::fs::remove_dir_all(dir.join("data/backups")).expect("it goes");
        daemon.terminate();
        assert_eq!(daemon.exit_status(60).code(), Some(0));
    } else {
        // With a checkpoint goes a mark: from then on damage to what came before is noticed wherever it is.
        assert_eq!(daemon.post("/v1/admin/checkpoint", &Value::Null).0, 200);
        daemon.kill();
    }
    known
}

/// What came of a start on a directory in which something is not as it should be.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// It does not start, and says why.
    Refused,
    /// It starts, works, and knows all that it knew.
    Harmless,
    /// It starts, works, and knows less of positions or says that it cannot read something; nothing that it knows is wrong.
    KnowsLess,
    /// It starts, but cannot work on the board, and says why.
    NotReady,
}

/// Starts a daemon on `dir`. Whatever it says is compared with what was known; a wrong value fails.
fn judge(dir: &Path, work: &Work, known: &(Value, Value), what: &str) -> Outcome {
    let mut daemon = Daemon::spawn(dir, &work.config(), &[]);
    if !daemon.is_listening() || daemon.ended().is_some() {
        let (status, log) = (daemon.exit_status(60), daemon.log());
        assert!(matches!(status.code(), Some(1 | 2)), "{what}: {status}\n{log}");
        assert!(log.lines().last().is_some_and(|line| line.starts_with("error: ")) && !log.contains("panicked"), "{what}:\n{log}");
        return Outcome::Refused;
    }
    let id = daemon.submit(&json!({"kind": "value", "board": work.board(), "label": "after the fault"}));
    let end = Instant::now() + Duration::from_secs(60);
    let job = loop {
        let job = daemon.job(id);
        if job["state"] == "succeeded" {
            break Some(job);
        }
        let reason = daemon.get("/readyz").1["detail"].as_str().unwrap_or_default().to_owned();
        if reason.contains("Corruption") {
            break None;
        }
        assert!(Instant::now() < end, "{what}: {job} {reason}");
        std::thread::sleep(Duration::from_millis(20));
    };
    let (jobs, position) = work.knowledge(&daemon);
    let jobs: Vec<&Value> = jobs.as_array().expect("jobs").iter().filter(|job| job["id"] != id).collect();
    assert_eq!(jobs, known.0.as_array().expect("jobs").iter().collect::<Vec<_>>(), "{what}");
    let mut knows_less = position["verdict"] != known.1["verdict"];
    assert!(!knows_less || position["verdict"] == "unknown", "{what}: {position}");
    for (now, then) in position["next_moves"].as_array().into_iter().flatten().zip(known.1["next_moves"].as_array().expect("moves")) {
        let is_less = now["verdict"] == "unknown" && then["verdict"] != "unknown";
        // A job solved again may know more.
        assert!(is_less || now["verdict"] == then["verdict"] || then["verdict"] == "unknown", "{what}: {now} but {then}");
        knows_less |= is_less;
    }
    assert!(!daemon.log().contains("panicked"), "{what}:\n{}", daemon.log());
    match job {
        Some(job) => {
            assert_eq!(job["result"]["value"], value_of(work.board()), "{what}: {job}");
            if knows_less || daemon.metric("superko_recovery_refused_total") + daemon.metric("superko_store_read_errors_total") > 0.0 {
                Outcome::KnowsLess
            } else {
                Outcome::Harmless
            }
        }
        None => Outcome::NotReady,
    }
}

/// What kind of file it is.
fn kind_of(path: &Path) -> String {
    let name = path.file_name().expect("a name").to_string_lossy().into_owned();
    match name.rsplit_once('.') {
        Some((_, end)) => end.to_owned(),
        None => name.split('-').next().unwrap_or_default().to_owned(),
    }
}

#[test]
fn damage_in_any_file_is_refused_or_does_no_harm() {
    let mut random = Random::new("damage_in_any_file_is_refused_or_does_no_harm");
    let mut outcomes: BTreeMap<(String, Outcome), u32> = BTreeMap::new();
    let rounds = tries(1);
    for (work, in_order) in [(&SMALL, true), (&SMALL, false), (&LARGE, true), (&LARGE, false)] {
        let base = tempfile::tempdir().expect("a directory");
        let known = solved(base.path(), work, in_order);
        let data = base.path().join("data");
        if work.board() == LARGE.board() {
            // Without its table, a daemon reads all that the store has.
            std::fs::remove_dir_all(data.join("tables")).expect("they go");
            let stats = superko(&["store", "stats", "--json", "--data", data.to_str().expect("UTF-8")]);
            let stats: Value = serde_json::from_slice(&stats.stdout).expect("JSON");
            assert!(stats["families"]["prints"]["count"].as_u64().is_some_and(|count| count > 10), "{stats}");
        }
        let mut by_kind: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        for path in files(&data).into_iter().filter(|path| path.metadata().expect("a file").len() > 0 && !path.ends_with("LOG")) {
            by_kind.entry(kind_of(&path)).or_default().push(path);
        }
        let records = if in_order { "sst" } else { "log" };
        if work.board() == LARGE.board() {
            by_kind.retain(|kind, _| kind == records);
        } else {
            for kind in ["CURRENT", "MANIFEST", "sgc", "table", "superko"] {
                assert!(by_kind.contains_key(kind), "no {kind} among {by_kind:?}");
            }
        }
        assert!(by_kind.contains_key(records), "no {records} among {by_kind:?}");
        for (kind, paths) in by_kind {
            for round in 0..rounds {
                let path = &paths[random.below(paths.len() as u64) as usize];
                let dir = tempfile::tempdir().expect("a directory");
                copy(&data, &dir.path().join("data"));
                let target = dir.path().join("data").join(path.strip_prefix(&data).expect("a file there"));
                let mut bytes = std::fs::read(&target).expect("the file");
                let at = random.below(bytes.len() as u64) as usize;
                // A bit most of the time, else a sector of zeros or the end of the file.
                let what = match round % 4 {
                    2 => {
                        let end = bytes.len().min(at + 512);
                        bytes[at..end].fill(0);
                        format!("zeros from byte {at} of {}", path.display())
                    }
                    3 => {
                        bytes.truncate(at);
                        format!("{} cut to {at} bytes", path.display())
                    }
                    _ => {
                        bytes[at] ^= 1 << random.below(8);
                        format!("a bit of byte {at} of {}", path.display())
                    }
                };
                std::fs::write(&target, bytes).expect("damaged");
                let copied = dir.path().join("data");
                let verified = superko(&["store", "verify", "--data", copied.to_str().expect("UTF-8")]);
                let is_found = !verified.status.success();
                assert!(verified.status.code().is_some(), "{what}: {}", verified.status);
                assert!(is_found || kind != "sgc", "{what}: a damaged certificate is found");
                let outcome = judge(dir.path(), work, &known, &what);
                assert!(
                    is_found || !matches!(outcome, Outcome::KnowsLess | Outcome::NotReady),
                    "{what}: {outcome:?}, but verify finds nothing"
                );
                println!("{what}: {outcome:?}, found by verify: {is_found}");
                *outcomes.entry((kind.clone(), outcome)).or_default() += 1;
            }
        }
    }
    println!("{outcomes:?}");
}

/// Table and store of different times: what they say is true, so any mixture of them is.
#[test]
fn old_and_new_files_mix() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let mut daemon = Daemon::start_with(dir.path(), CONFIG);
    let first = daemon.submit(&json!({"kind": "solve", "board": "3x3", "komi": 8.5}));
    daemon.wait_until(first, "succeeded");
    daemon.terminate();
    assert_eq!(daemon.exit_status(60).code(), Some(0));
    let old = dir.path().join("old");
    copy(&data, &old);
    let old_known = {
        let known = solved(dir.path(), &SMALL, true);
        let old_jobs: Vec<Value> = known.0.as_array().expect("jobs").iter().filter(|job| job["id"] == first).cloned().collect();
        (known, Value::from(old_jobs))
    };
    let ((jobs, position), old_jobs) = old_known;
    let new = dir.path().join("new");
    copy(&data, &new);
    for (store, tables, known) in [(&new, &old, (jobs, position.clone())), (&old, &new, (old_jobs, position))] {
        let mixed = tempfile::tempdir().expect("a directory");
        let data = mixed.path().join("data");
        copy(&store.join("store"), &data.join("store"));
        copy(&tables.join("tables"), &data.join("tables"));
        let outcome =
            judge(mixed.path(), &SMALL, &known, &format!("the store of {} with the tables of {}", store.display(), tables.display()));
        assert!(matches!(outcome, Outcome::Harmless | Outcome::KnowsLess), "{outcome:?}");
        let verified = superko(&["store", "stats", "--data", data.to_str().expect("UTF-8")]);
        assert!(verified.status.success() || verified.status.code() == Some(2), "{}", String::from_utf8_lossy(&verified.stderr));
    }
}

#[test]
fn a_second_daemon_on_the_directory_touches_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start_with(dir.path(), CONFIG);
    let id = daemon.submit(&json!({"kind": "value", "board": "2x3"}));
    daemon.wait_until(id, "succeeded");
    let data = dir.path().join("data");
    let second = superko(&["serve", "--data", data.to_str().expect("UTF-8"), "--listen", "127.0.0.1:0"]);
    let complaint = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(2), "{complaint}");
    assert!(complaint.contains("in use by process") && complaint.contains("choose another directory"), "{complaint}");
    let again = daemon.submit(&json!({"kind": "value", "board": "2x3", "label": "again"}));
    assert_eq!(daemon.wait_until(again, "succeeded")["result"]["value"], 0);
}

/// SIGTERM at any moment, also before the daemon listens and twice: it ends without a fault, and the next one goes on.
#[test]
fn a_stop_at_any_moment_is_clean() {
    let mut random = Random::new("a_stop_at_any_moment_is_clean");
    let dir = tempfile::tempdir().expect("a directory");
    let config = format!("{CONFIG}threads = 2\n").replace("1MiB", "8MiB");
    let daemon = Daemon::start_with(dir.path(), &config);
    let id = daemon.submit(&json!({"kind": "value", "board": "2x8"}));
    wait_for("a checkpoint", 60, || (count(&daemon.job(id)["progress"]["checkpoint_expansions"]) > 0).then_some(()));
    // Killed, so that each start has a table to fill, until a stop has closed it in order.
    daemon.kill();
    let (mut before, mut floor) = (0, 0);
    for round in 0..tries(8) {
        let mut daemon = Daemon::spawn(dir.path(), &config, &[]);
        let whole = 100 + random.below(600);
        std::thread::sleep(Duration::from_millis(whole));
        daemon.terminate();
        if round % 2 == 1 {
            std::thread::sleep(Duration::from_millis(random.below(50)));
            // It may have ended by the first.
            let _ = Command::new("kill").arg("-TERM").arg(daemon.id().to_string()).output();
        }
        let status = daemon.exit_status(60);
        let listened = daemon.log().contains("listening address=");
        before += u32::from(!listened);
        // Before it has taken over the signal, it ends by the signal.
        assert!(status.code() == Some(0) || !listened && status.code().is_none(), "round {round}: {status}\n{}", daemon.log());
        if round % 3 == 2 {
            let daemon = Daemon::start_with(dir.path(), &config);
            let now = count(&daemon.job(id)["progress"]["checkpoint_expansions"]);
            assert!(now >= floor, "{now} expansions are kept, {floor} were");
            floor = now;
            daemon.kill();
        }
    }
    println!("{before} stops before the daemon listened");
    let daemon = Daemon::start_with(dir.path(), &config);
    assert_eq!(daemon.wait_until(id, "succeeded")["result"]["value"], 16);
}

/// A solve that is killed again and again ends with the value and the certificate that it would have had.
#[test]
fn a_solve_killed_again_and_again_ends_the_same() {
    let mut random = Random::new("a_solve_killed_again_and_again_ends_the_same");
    let dir = tempfile::tempdir().expect("a directory");
    let config = CONFIG.replace("1MiB", "16MiB").replace("4MiB", "64MiB");
    let mut daemon = Daemon::start_with(dir.path(), &config);
    let id = daemon.submit(&json!({"kind": "value", "board": "3x5", "certificate": true, "verify": true}));
    let mut kills = 0;
    for _ in 0..tries(6) {
        std::thread::sleep(Duration::from_millis(200 + random.below(1000)));
        kills += u32::from(daemon.job(id)["state"] == "running");
        daemon.kill();
        daemon = Daemon::start_with(dir.path(), &config);
    }
    let job = daemon.wait_until(id, "succeeded");
    println!("{kills} kills while it ran");
    assert_eq!(job["result"]["value"], 15, "{job}");
    for (proof, report) in job["proofs"].as_array().expect("ids").iter().zip(job["result"]["proofs"].as_array().expect("proofs")) {
        assert_eq!(report["certificate"]["verified"], true, "{report}");
        let file = dir.path().join(format!("data/certificates/{}.sgc", proof.as_str().expect("an id")));
        let checked = superko(&["check", file.to_str().expect("UTF-8")]);
        assert_eq!(checked.status.code(), Some(0), "{}", String::from_utf8_lossy(&checked.stderr));
    }
}

/// Whatever was known is still so; later programs may say more.
fn assert_holds(now: &Value, known: &Value) {
    match known {
        Value::Object(fields) => fields.iter().for_each(|(field, known)| assert_holds(&now[field], known)),
        Value::Array(values) => {
            assert_eq!(now.as_array().map(Vec::len), Some(values.len()), "{now}, known {known}");
            values.iter().enumerate().for_each(|(index, known)| assert_holds(&now[index], known));
        }
        _ => assert_eq!(now, known),
    }
}

/// A backup that version 0.1.0 wrote is read by every later program: jobs, results, look-ups, certificates. It was made by a daemon that had solved
/// what `known.json` tells, which is what it then answered to `GET /v1/jobs` and to the look-up below.
#[test]
fn what_an_older_program_wrote_is_read() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/backup-0.1.0");
    let known: Value = serde_json::from_slice(&std::fs::read(fixture.join("known.json")).expect("what it knew")).expect("JSON");
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let restored = superko(&["store", "restore", "--from", &text(&fixture), "--data", &text(&data)]);
    assert_eq!(restored.status.code(), Some(0), "{}", String::from_utf8_lossy(&restored.stderr));
    let daemon = Daemon::start_with(dir.path(), CONFIG);
    for job in known["jobs"].as_array().expect("jobs") {
        let now = daemon.job(job["id"].as_u64().expect("an id"));
        assert_holds(&now, job);
        let is_certified = job["certificate"] == true;
        for proof in job["proofs"].as_array().expect("ids").iter().filter(|_| is_certified) {
            let (status, checked) = daemon.post(&format!("/v1/proofs/{}/verifications", proof.as_str().expect("an id")), &Value::Null);
            assert_eq!((status, &checked["certificate"]["verified"]), (200, &json!(true)), "{checked}");
        }
    }
    let position = daemon.get("/v1/positions?board=3x3&komi=8.5&moves=B2").1;
    assert_holds(&position, &known["position"]);
}

/// `superko store …` with one of its steps below `dir` broken.
fn store_command(library: &Path, dir: &Path, fault: &str, arguments: &[&str]) -> std::process::Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_superko"));
    command.arg("store").args(arguments);
    for (name, value) in steps(library, dir, fault) {
        command.env(name, if name == "SUPERKO_STEPS_DIR" { dir.to_str().expect("UTF-8") } else { &value });
    }
    command.output().expect("the program starts")
}

/// A backup is there as a whole or not at all, and so is what is restored, wherever the process dies.
#[test]
fn backup_and_restore_are_whole_or_not_there() {
    let library = match steps_library() {
        Ok(library) => library,
        Err(reason) => return skip("backup_and_restore_are_whole_or_not_there", &reason),
    };
    let mut random = Random::new("backup_and_restore_are_whole_or_not_there");
    let base = tempfile::tempdir().expect("a directory");
    solved(base.path(), &SMALL, true);
    let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let is_whole = |place: &Path| {
        let verified = superko(&["store", "verify", "--json", "--data", &text(place)]);
        let found: Value = serde_json::from_slice(&verified.stdout).unwrap_or_default();
        verified.status.success() && found["records"]["jobs"] == 2
    };
    let (mut tried, mut deaths) = (0, 0);
    for command in ["backup", "restore"] {
        let lifetime = |fault: &str| {
            let dir = tempfile::tempdir().expect("a directory");
            let (data, copied) = (dir.path().join("data"), dir.path().join("copied"));
            let (from, to) = if command == "backup" { (&data, &copied) } else { (&copied, &data) };
            copy(&base.path().join("data"), &data);
            if command == "restore" {
                let made = superko(&["store", "backup", "--data", &text(&data), "--to", &text(&copied)]);
                assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
                std::fs::remove_dir_all(&data).expect("wiped");
            }
            let arguments: [&str; 5] = match command {
                "backup" => ["backup", "--data", &text(from), "--to", &text(to)],
                _ => ["restore", "--from", &text(from), "--data", &text(to)],
            };
            let output = store_command(library, dir.path(), fault, &arguments);
            (dir, from.clone(), to.clone(), output, arguments.map(str::to_owned))
        };
        let (dir, _, to, output, _) = lifetime("");
        assert!(output.status.success() && is_whole(&to), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        let log = std::fs::read_to_string(dir.path().join("steps")).expect("the steps");
        let all: Vec<(usize, String)> =
            log.lines().enumerate().map(|(index, line)| (index + 1, line.split_once(' ').expect("a step").1.to_owned())).collect();
        assert!(all.iter().any(|(_, step)| step.starts_with("rename")), "{command}: {all:?}");
        for number in random.choose(&decisive(&all), tries(12)) {
            for fault in [format!("kill:{number}"), format!("error:{number}:5")] {
                let what = format!("{command}, {fault} ({})", all[number - 1].1);
                let (dir, from, to, output, arguments) = lifetime(&fault);
                tried += 1;
                deaths += u32::from(output.status.code().is_none());
                assert!(is_whole(&from), "{what}: the source has suffered");
                if to.join("store").exists() {
                    assert!(is_whole(&to), "{what}");
                } else if to.join("restore.part").exists() {
                    let started = superko(&["serve", "--data", &text(&to), "--listen", "127.0.0.1:0"]);
                    assert_eq!(
                        started.status.code(),
                        Some(1),
                        "{what}: a daemon begins anew: {}",
                        String::from_utf8_lossy(&started.stderr)
                    );
                }
                let part = dir.path().join("copied.part");
                assert!(!part.exists() || output.status.code().is_none(), "{what}: it cleans up after itself");
                let _ = std::fs::remove_dir_all(part);
                let again = superko(&[&["store"], arguments.each_ref().map(String::as_str).as_slice()].concat());
                assert!(again.status.success() || again.status.code() == Some(2), "{what}: {}", String::from_utf8_lossy(&again.stderr));
                assert!(is_whole(&to), "{what}: then again");
            }
        }
    }
    println!("{deaths} deaths, {} errors", tried - deaths);
}

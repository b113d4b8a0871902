//! Many clients and many jobs: no server error but the deliberate 503, a bounded memory, and the solve goes on.
//!
//! `SUPERKO_LOAD_SECONDS=600 cargo test --release --test load -- --nocapture` (`make load-long`) prints the figures of README.

mod common;

use common::{CONFIG, Daemon, agent, count, wait_for};
use serde_json::{Value, json};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use superko_storage::{JobRecord, Store};

/// Seconds with clients.
fn seconds() -> u64 {
    std::env::var("SUPERKO_LOAD_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(6)
}

/// Numbers that look random and repeat.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Bytes of a process that belong to no file: the table, which fills up in any case, is one.
fn own_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("RssAnon");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

#[derive(Default)]
struct Seen {
    /// Of look-ups, in milliseconds.
    times: Vec<f64>,
    statuses: std::collections::BTreeMap<u16, u64>,
}

/// One client that mixes look-ups, submissions, cancels, lists and event streams, four requests a second.
fn client(daemon: &Daemon, number: u64, ends: &AtomicBool, seen: &Mutex<Seen>) {
    let mut random = Random(number);
    let mut own: Vec<u64> = Vec::new();
    let agent = agent();
    let mut mine = Seen::default();
    while !ends.load(Relaxed) {
        std::thread::sleep(Duration::from_millis(200 + random.below(100)));
        let started = Instant::now();
        let kind = random.below(100);
        let answer = match kind {
            0..70 => {
                let points = ["A1", "B1", "C1", "A2", "B2", "C2", "A3", "B3", "C3"];
                let moves = [points[random.below(9) as usize], points[random.below(9) as usize]].join(",");
                agent.get(daemon.url(&format!("/v1/positions?board=3x3&komi=0.5&moves={moves}"))).call()
            }
            70..80 => {
                let body = json!({"kind": "solve", "board": "2x3", "komi": 0.5, "priority": -1, "label": format!("{number}-{}", random.below(1000))});
                agent.post(daemon.url("/v1/jobs")).send_json(body)
            }
            80..88 => match own.pop() {
                Some(id) => agent.post(daemon.url(&format!("/v1/jobs/{id}/cancel"))).send_empty(),
                None => continue,
            },
            88..94 => agent.get(daemon.url("/v1/jobs?order=newest&limit=20")).call(),
            _ => {
                let mut stream = agent.get(daemon.url("/v1/events")).call().expect("a stream");
                *mine.statuses.entry(stream.status().as_u16()).or_default() += 1;
                // Some read a little, then vanish.
                let mut bytes = [0; 64];
                let _ = stream.body_mut().as_reader().read(&mut bytes);
                continue;
            }
        };
        let mut answer = answer.expect("an answer");
        let json: Value = answer.body_mut().read_json().expect("JSON");
        let status = answer.status().as_u16();
        *mine.statuses.entry(status).or_default() += 1;
        if kind < 70 {
            mine.times.push(started.elapsed().as_secs_f64() * 1000.0);
        }
        if status == 202 {
            own.extend(json["id"].as_u64());
        }
        assert!(status < 500 || status == 503 && json["code"] == "queue_full", "{json}");
    }
    let mut seen = seen.lock().expect("whole");
    seen.times.extend(mine.times);
    for (status, count) in mine.statuses {
        *seen.statuses.entry(status).or_default() += count;
    }
}

/// A daemon that searches with two threads and takes all requests.
fn start(dir: &Path) -> Daemon {
    Daemon::start_with(dir, "threads = 2\nmax_queue = 200\nrate_look_ups_per_minute = 0\nrate_submissions_per_minute = 0\n")
}

/// Many clients while `work` goes on; what they saw.
fn beside_clients(daemon: &Daemon, clients: u64, work: impl FnOnce()) -> Seen {
    let (seen, ends) = (Mutex::new(Seen::default()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for number in 0..clients {
            let (seen, ends) = (&seen, &ends);
            scope.spawn(move || client(daemon, number, ends, seen));
        }
        // A failure must not leave the clients running.
        let worked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        ends.store(true, Relaxed);
        worked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    seen.into_inner().expect("whole")
}

/// A whole solve's expansions per second, an uneven search being compared with nothing but itself, while `beside` is done until it ends.
fn rate(daemon: &Daemon, board: &str, komi: f64, beside: impl FnOnce(&Daemon, &dyn Fn() -> bool)) -> f64 {
    let id = daemon.submit(&json!({"kind": "solve", "board": board, "komi": komi, "priority": 1}));
    beside(daemon, &|| daemon.job(id)["state"] == "succeeded");
    daemon.wait_until(id, "succeeded");
    let result = &daemon.job(id)["result"];
    assert_eq!(result["winner"], "black", "{result}");
    count(&result["expansions"]) as f64 / result["elapsed_seconds"].as_f64().expect("seconds")
}

/// The median of ratios, and all of them for the reader.
fn median(mut ratios: Vec<f64>) -> String {
    ratios.sort_by(f64::total_cmp);
    format!("{} pairs: median {:.3} of {ratios:.3?}", ratios.len(), ratios[ratios.len() / 2])
}

#[test]
fn a_solve_goes_on_beside_clients() {
    let (board, komi, pairs, clients) = if seconds() >= 60 { ("3x6", 17.5, 7, 64) } else { ("3x5", 14.5, 1, 16) };
    let rate = |clients| {
        let dir = tempfile::tempdir().expect("a directory");
        rate(&start(dir.path()), board, komi, |daemon, ended| {
            beside_clients(daemon, clients, || wait_for("the proof", 1200, || ended().then_some(())));
        })
    };
    // In turn, so that what else the machine does meets both.
    let ratios = (0..pairs).map(|_| rate(clients) / rate(0)).collect();
    println!("{board} at {komi}, expansions/s beside {clients} clients over without, {}", median(ratios));
}

/// The thread of this name, in `/proc`.
fn thread(pid: u32, name: &str) -> Option<PathBuf> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    threads
        .flatten()
        .map(|thread| thread.path())
        .find(|path| std::fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm.trim() == name))
}

/// The longest time, in seconds, in which neither of two search threads ran, while both are there.
fn longest_stop(pid: u32, ended: &dyn Fn() -> bool) -> f64 {
    let run = |thread: &PathBuf| -> Option<u64> { std::fs::read_to_string(thread.join("schedstat")).ok()?.split(' ').next()?.parse().ok() };
    let mut longest: f64 = 0.0;
    while !ended() {
        let (Some(one), Some(other)) = (thread(pid, "solver"), thread(pid, "search-1")) else {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        let (mut last, mut at, asked) = (0, Instant::now(), Instant::now());
        while asked.elapsed().as_secs() < 5 {
            std::thread::sleep(Duration::from_millis(5));
            let (Some(one), Some(other)) = (run(&one), run(&other)) else { break };
            if one + other > last {
                // There is no time before the first.
                longest = longest.max(if last == 0 { 0.0 } else { at.elapsed().as_secs_f64() });
                (last, at) = (one + other, Instant::now());
            }
        }
    }
    longest
}

#[test]
fn checkpoints_hardly_slow_the_search_and_never_stop_it() {
    let (board, komi, pairs, table, interval) = if seconds() >= 60 { ("4x5", 19.5, 5, "4GiB", 10) } else { ("3x5", 14.5, 1, "256MiB", 1) };
    let mut stops = Vec::new();
    let mut solve = |interval: u64| {
        let dir = tempfile::tempdir().expect("a directory");
        let daemon =
            Daemon::start_with(dir.path(), &format!("threads = 2\ntable = \"{table}\"\ncheckpoint_interval_seconds = {interval}\n"));
        let rate = rate(&daemon, board, komi, |daemon, ended| stops.push(longest_stop(daemon.pid(), ended)));
        (rate, daemon.metric("superko_checkpoints_total"))
    };
    let mut made = 0.0;
    let ratios = (0..pairs)
        .map(|_| {
            let ((with, checkpoints), (without, _)) = (solve(interval), solve(3600));
            made += checkpoints;
            with / without
        })
        .collect();
    println!(
        "{board} at {komi}, table {table}, {made} checkpoints, one every {interval} s; expansions/s over those with one an hour, {}; longest stop of both threads, in turn: {stops:.3?} s",
        median(ratios)
    );
    assert!(stops.iter().all(|&stop| stop < 1.0), "both search threads stood still: {stops:?} s");
}

#[test]
fn many_clients_do_not_hurt_each_other() {
    let (seconds, clients) = (seconds(), if seconds() >= 60 { 64 } else { 16 });
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = start(dir.path());
    let known = daemon.submit(&json!({"kind": "value", "board": "3x3"}));
    daemon.wait_until(known, "succeeded");
    let solve = daemon.submit(&json!({"kind": "value", "board": "5x5"}));
    let expansions = || count(&daemon.job(solve)["progress"]["expansions"]);
    wait_for("a search under way", 120, || (expansions() > 1000).then_some(()));
    let mut memory = Vec::new();
    let mut seen = beside_clients(&daemon, clients, || {
        for _ in 0..6 {
            std::thread::sleep(Duration::from_secs(seconds) / 6);
            memory.push(own_memory(daemon.pid()) >> 20);
        }
    });
    seen.times.sort_by(f64::total_cmp);
    let share = |part: f64| seen.times.get((seen.times.len() as f64 * part) as usize).copied().unwrap_or(0.0);
    println!(
        "{clients} clients, {seconds} s: {:?}; look-ups: median {:.1} ms, p99 {:.1} ms, most {:.1} ms; MiB without the table in turn: {memory:?}",
        seen.statuses,
        share(0.5),
        share(0.99),
        share(0.9999)
    );
    assert!(seen.statuses.get(&200).is_some_and(|&count| count > 10), "{:?}", seen.statuses);
    // Streams of clients that vanished are noticed.
    wait_for("streams to end", 60, || (daemon.metric("superko_sse_streams") == 0.0).then_some(()));
    assert_eq!(daemon.job(solve)["state"], "running");
}

#[test]
fn thousands_of_jobs_list_filter_and_come_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut daemon = Daemon::start(dir.path());
    let done = daemon.submit(&json!({"kind": "value", "board": "2x2", "label": "done"}));
    daemon.wait_until(done, "succeeded");
    let open = daemon.submit(&json!({"kind": "value", "board": "5x5", "label": "open", "priority": 9}));
    daemon.wait_until(open, "running");
    let waiting = daemon.submit(&json!({"kind": "value", "board": "4x4", "label": "waiting"}));
    daemon.terminate();
    assert!(daemon.exit_status(60).success());
    let (finished, queued) = (10_000, 2_000);
    {
        let store = Store::open(&dir.path().join("data")).expect("the store");
        let jobs = store.jobs().expect("jobs");
        let of = |id: u64| jobs.iter().find(|job| job.id == id).expect("the job").clone();
        assert!(of(done).body.contains("\"steps\":[]"), "what only a running search needs is not kept: {}", of(done).body);
        let copies = (0..finished).map(|_| of(done)).chain((0..queued).map(|_| of(waiting)));
        let records: Vec<JobRecord> = copies.zip(waiting + 1..).map(|(job, id)| JobRecord { id, ..job }).collect();
        store.put(&records, &[], &[]).expect("kept");
        store.close().expect("closed");
    }
    let started = Instant::now();
    let daemon = Daemon::start_with(dir.path(), &format!("{CONFIG}max_queue = 10000\n"));
    let restart = started.elapsed();
    let timed = |path: &str, jobs: usize| {
        let started = Instant::now();
        let (status, page) = daemon.get(path);
        assert_eq!((status, page["jobs"].as_array().map(Vec::len)), (200, Some(jobs)), "{path}");
        (started.elapsed(), page["next"].as_str().map(str::to_owned))
    };
    let (list, next) = timed("/v1/jobs?limit=500", 500);
    let (page, _) = timed(&format!("/v1/jobs?limit=500&cursor={}", next.expect("more")), 500);
    let (filter, _) = timed("/v1/jobs?state=queued&label=waiting&order=newest&limit=500", 500);
    let started = Instant::now();
    let id = daemon.submit(&json!({"kind": "value", "board": "2x2", "priority": 10}));
    daemon.wait_until(id, "succeeded");
    println!(
        "{finished} finished and {queued} queued jobs: restart {restart:.2?}, first page of 500 {list:.2?}, next {page:.2?}, filter {filter:.2?}, a new urgent job {:.2?}",
        started.elapsed()
    );
    assert!(restart < Duration::from_secs(20) && list.max(page).max(filter) < Duration::from_secs(20));
}

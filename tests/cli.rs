//! The command line against the known values, the published JSON keys and the exit codes.

mod common;

use common::{Guard, count, json_of, superko};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

/// Board, value and source: brute force, Drange 1998 or the paper.
const VALUES: [(&str, i64); 22] = [
    ("1x1", 0),
    ("1x2", 0),
    ("1x3", 3),
    ("1x4", 4),
    ("1x5", 0),
    ("1x6", 1),
    ("1x7", 2),
    ("1x8", 3),
    ("1x9", 0),
    ("1x10", 1),
    ("1x11", 2),
    ("1x12", 2),
    ("2x2", 1),
    ("2x3", 0),
    ("2x4", 8),
    ("2x5", 10),
    ("2x6", 12),
    ("2x7", 14),
    ("3x3", 9),
    ("3x4", 4),
    ("3x5", 15),
    ("4x4", 2),
];

const SOLVE_KEYS: [&str; 18] = [
    "board",
    "komi",
    "moves",
    "to_move",
    "status",
    "winner",
    "best_move",
    "expansions",
    "distinct_nodes",
    "revisit_factor",
    "table_hit_rate",
    "elapsed_seconds",
    "threads",
    "table_bytes",
    "sets_new_bytes",
    "sets_rewritten_bytes",
    "principal_variation",
    "statistics",
];

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn values_are_the_known_ones_by_both_proofs() {
    for (board, expected) in VALUES {
        let output = superko(&["value", "--board", board, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{board}");
        let report = json_of(&output);
        assert_eq!(report["value"], expected, "{board}");
        let proofs = report["proofs"].as_array().expect("proofs");
        let points: i64 = board.split('x').map(|side| side.parse::<i64>().expect("a side")).product();
        assert_eq!(proofs.len(), if expected == points { 1 } else { 2 }, "{board}");
        for proof in proofs {
            assert_eq!(keys(proof), SOLVE_KEYS, "{board}");
            let komi = proof["komi"].as_f64().expect("komi");
            let winner = if komi < expected as f64 { "black" } else { "white" };
            assert_eq!((komi - expected as f64).abs(), 0.5, "{board}");
            assert_eq!((proof["winner"].as_str(), proof["status"].as_str()), (Some(winner), Some("proved")), "{board}");
        }
    }
}

#[test]
fn superko_witnesses() {
    let dir = tempfile::tempdir().expect("a directory");
    for (board, json, text, expected) in [
        ("1x6", r#"{"rows": ["X.X.X."], "to_move": "black"}"#, "X.X.X.\nto move: black\n", 1),
        ("2x3", r#"{"rows": ["OOO", ".X."], "to_move": "white"}"#, "OOO\n.X.\nto move: white\n", 0),
    ] {
        for setup in [json, text] {
            let file = dir.path().join("setup");
            std::fs::write(&file, setup).expect("the setup");
            let output = superko(&["value", "--board", board, "--setup", file.to_str().expect("UTF-8"), "--json"]);
            assert_eq!(json_of(&output)["value"], expected, "{setup}");
        }
    }
}

/// Both proofs of a value, each by a `solve` of its own; the second solve is trivial where Black takes the whole board.
#[test]
fn expansions_stay_under_their_ceilings() {
    let mut over = Vec::new();
    for (board, value, full, ceiling) in [
        ("1x9", 0.0, false, 20_000),
        ("1x12", 2.0, false, 600_000),
        ("2x7", 14.0, true, 50_000),
        ("2x8", 16.0, true, 400_000),
        ("3x5", 15.0, true, 50_000),
        ("3x6", 18.0, true, 400_000),
        ("4x4", 2.0, false, 35_000),
    ] {
        let komis = if full { vec![value - 0.5] } else { vec![value - 0.5, value + 0.5] };
        // A limit past the ceiling keeps a miss from running for hours.
        let solves = komis.iter().map(|komi| {
            let limit = (2 * ceiling).to_string();
            json_of(&superko(&["solve", "--board", board, "--komi", &komi.to_string(), "--expansion-limit", &limit, "--json"]))
        });
        let total: u64 = solves.map(|report| count(&report["expansions"])).sum();
        println!("{board}: {total} expansions, ceiling {ceiling}");
        if total > ceiling {
            over.push((board, total, ceiling));
        }
    }
    assert!(over.is_empty(), "over the ceiling: {over:?}");
}

fn sum(group: &Value) -> u64 {
    group.as_object().expect("a group of counters").values().map(count).sum()
}

#[test]
fn statistics_agree_with_each_other() {
    let report = json_of(&superko(&["value", "--board", "3x4", "--json"]));
    let statistics = &report["statistics"];
    let lemmas = sum(&statistics["created_boards"]);
    assert!(lemmas > 0 && lemmas == sum(&statistics["excluded_boards"]), "{statistics}");
    assert_eq!(count(&statistics["lemma_set_bytes"]["created"]), 4 * count(&statistics["lemma_set_boards"]["created"]), "{statistics}");
    for group in ["reuse_accepted", "reuse_rejected", "static_leaves", "moves"] {
        assert!(sum(&statistics[group]) > 0, "{group}: {statistics}");
    }
    let shares: f64 = statistics["phase_share"].as_object().expect("shares").values().filter_map(Value::as_f64).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");
    let of_proofs: u64 = report["proofs"].as_array().expect("proofs").iter().map(|proof| sum(&proof["statistics"]["created_boards"])).sum();
    assert!(of_proofs <= lemmas, "the proofs are among the solves");
}

/// A pruned solve may leave the winner open, also where the pruned side wins (paper, section 4), but never names the wrong one.
#[test]
fn a_pruned_solve_is_right_or_unknown() {
    let mut statuses = Vec::new();
    for (board, komi, prune, winner) in [
        ("3x4", "3.5", "black", "black"),
        ("3x4", "4.5", "white", "white"),
        ("4x4", "2.5", "white", "white"),
        ("1x9", "-0.5", "white", "black"),
    ] {
        let output = superko(&["solve", "--board", board, "--komi", komi, "--prune", prune, "--expansion-limit", "1000000", "--json"]);
        let report = json_of(&output);
        let proved = report["status"] == "proved";
        assert_eq!(output.status.code(), Some(if proved { 0 } else { 3 }), "{board} {komi} {prune}: {report}");
        assert_eq!(report["winner"].as_str(), proved.then_some(winner), "{board} {komi} {prune}");
        assert!(count(&report["statistics"]["moves"]["skipped"]) > 0, "{board} {komi} {prune} skips no move");
        statuses.push(proved);
    }
    assert!(statuses.contains(&true) && statuses.contains(&false), "some pruned sides win, some fail: {statuses:?}");
}

#[test]
fn comparisons_have_a_row_for_each_variant() {
    for (what, rows) in [("ablation", 10), ("numbers", 7)] {
        let output = superko(&["bench", "--compare", what, "--positions", "1", "--expansion-limit", "1000", "--json"]);
        assert_eq!(output.status.code(), Some(0), "{what}");
        let report = json_of(&output);
        assert!(report["rows"].as_array().expect("rows").len() >= rows, "{report}");
        assert_eq!((&report["contradictions"], &report["rows"][0]["expansion_ratio"]["mean"]), (&serde_json::json!([]), &1.0.into()));
        let text = superko(&["bench", "--compare", what, "--positions", "1", "--expansion-limit", "1000"]);
        let text = String::from_utf8(text.stdout).expect("UTF-8");
        for row in report["rows"].as_array().expect("rows") {
            assert!(text.contains(row["variant"].as_str().expect("a name")), "{text}");
        }
    }
}

#[test]
fn the_same_solve_counts_the_same() {
    let run = || {
        let report = json_of(&superko(&["solve", "--board", "3x4", "--komi", "3.5", "--json"]));
        (count(&report["expansions"]), count(&report["distinct_nodes"]), report["principal_variation"].clone())
    };
    assert_eq!(run(), run());
}

#[test]
fn several_threads_find_the_same_values() {
    for (board, value, threads) in [("3x4", 4, 2), ("2x6", 12, 3), ("1x10", 1, 2)] {
        let report = json_of(&superko(&["value", "--board", board, "--threads", &threads.to_string(), "--table", "64MiB", "--json"]));
        assert_eq!((&report["value"], &report["status"]), (&value.into(), &"proved".into()), "{report}");
        let proofs = report["proofs"].as_array().expect("proofs");
        assert!(proofs.iter().all(|proof| proof["threads"] == threads), "{report}");
    }
    let arguments = ["solve", "--board", "4x4", "--komi", "1.5", "--threads", "2", "--expansion-limit", "1000", "--json"];
    let limited = superko(&arguments);
    assert_eq!((limited.status.code(), count(&json_of(&limited)["expansions"])), (Some(3), 1000));
}

#[test]
fn lost_output_is_a_failure() {
    let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_superko"))
        .args(["value", "--board", "1x3", "--table", "1MiB", "--json"])
        .stdout(full)
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("standard output"));
}

#[test]
fn a_client_without_a_server_says_what_to_do() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
    let output = superko(&["job", "list", "--server", &format!("http://127.0.0.1:{port}")]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(&port.to_string()) && text.contains("expected a running superko serve there"), "{text}");
}

#[test]
fn wrong_arguments_say_where_help_is() {
    for (arguments, words) in [
        (vec!["slove"], vec!["'slove'", "'solve'", "--help"]),
        (vec!["solve", "--komi", "0.5"], vec!["--board", "--help"]),
        (vec!["store", "backup"], vec!["--name", "--data", "--to"]),
        (vec!["job", "list", "--server", "https://127.0.0.1:1"], vec!["https://127.0.0.1:1", "no TLS"]),
    ] {
        let output = superko(&arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len(), error.lines().count()), (Some(2), 0, 1), "{arguments:?}: {error}");
        assert!(words.iter().all(|word| error.contains(word)), "{arguments:?}: {error}");
    }
    for (arguments, command) in [(vec![], "campaign"), (vec!["job"], "priority")] {
        let output = superko(&arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}: {error}");
        assert!(error.contains("Usage:") && error.contains(command), "{arguments:?}: {error}");
    }
}

#[test]
fn exit_codes() {
    let unknown = superko(&["solve", "--board", "4x4", "--komi", "1.5", "--expansion-limit", "10", "--json"]);
    assert_eq!(unknown.status.code(), Some(3));
    let report = json_of(&unknown);
    assert_eq!((report["status"].as_str(), report["winner"].is_null()), (Some("unknown"), true));
    for (arguments, words) in [
        (vec!["solve", "--board", "9x9", "--komi", "0.5"], vec!["board", "9x9"]),
        (vec!["solve", "--board", "2x2", "--komi", "1"], vec!["komi", "1"]),
        (vec!["solve", "--board", "2x2", "--komi", "0.5", "--moves", "A1 A1"], vec!["moves", "A1"]),
        (vec!["solve", "--board", "2x2", "--komi", "0.5", "--table", "900000TiB"], vec!["table", "memory"]),
        (vec!["value", "--board", "2x2", "--threads", "0"], vec!["--threads 0", "256"]),
        (vec!["value", "--board", "2x2", "--threads", "257"], vec!["--threads 257", "256"]),
        (vec!["value", "--board", "2x2", "--threads", "-2"], vec!["--threads", "-2"]),
        (vec!["value", "--board", "2x2", "--table", "-1GiB"], vec!["--table", "-1GiB"]),
        (vec!["value", "--board", "2x2", "--time-limit", "-5s"], vec!["--time-limit", "-5s"]),
        (vec!["value", "--board", "2x2", "--expansion-limit", "-5"], vec!["--expansion-limit", "-5"]),
        (vec!["selftest", "--seconds", "-5"], vec!["--seconds", "-5"]),
    ] {
        let output = superko(&arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len(), error.lines().count()), (Some(2), 0, 1), "{arguments:?}: {error}");
        assert!(words.iter().all(|word| error.contains(word)), "{arguments:?}: {error}");
    }
}

#[test]
fn ctrl_c_gives_what_is_known() {
    let commands = [&["solve", "--komi", "24.5"][..], &["value"]].map(|command| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_superko"));
        child.args(command).args(["--board", "5x5", "--table", "64MiB", "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        (command, Guard(child.spawn().expect("it starts")))
    });
    for (command, mut child) in commands {
        let mut errors = BufReader::new(child.0.stderr.take().expect("standard error"));
        let mut progress = String::new();
        errors.read_line(&mut progress).expect("a line");
        assert!(progress.contains("5x5") && progress.contains(" expansions (") && progress.contains(" distinct nodes"), "{progress}");
        child.signal("INT");
        assert_eq!(child.exit_status(10).code(), Some(3), "{command:?}");
        let mut output = String::new();
        child.0.stdout.take().expect("standard output").read_to_string(&mut output).expect("UTF-8");
        assert_eq!(output.lines().count(), 1, "{output}");
        let report: Value = serde_json::from_str(&output).expect("JSON");
        assert_eq!((&report["board"], &report["status"]), (&"5x5".into(), &"unknown".into()), "{report}");
        assert!(report[if command[0] == "solve" { "winner" } else { "value" }].is_null(), "{report}");
        assert!(count(&report["expansions"]) > 0 && count(&report["distinct_nodes"]) > 0, "{report}");
        assert!(report["elapsed_seconds"].as_f64() > Some(0.0), "{report}");
    }
}

/// From samples to a prior that orders a search and changes no verdict.
#[test]
fn priors_are_sampled_fitted_measured_and_used() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = |name: &str| dir.path().join(name).to_str().expect("UTF-8").to_owned();
    let samples = [("2x3", "-0.5", file("a")), ("2x4", "7.5", file("b"))];
    for (board, komi, out) in &samples {
        let output = superko(&["prior", "sample", "--board", board, "--komi", komi, "--prior", "uniform", "--out", out]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
    let prior = file("prior");
    for model in ["logistic", "net"] {
        let output = superko(&["prior", "fit", "--model", model, "--out", &prior, &samples[0].2, &samples[1].2]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let report = json_of(&superko(&["value", "--board", "2x4", "--prior", &prior, "--json"]));
        assert_eq!(report["value"], 8, "{model}");
        let output = superko(&["prior", "evaluate", "--model", model, &samples[0].2, &samples[1].2]);
        assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 4, "{output:?}");
    }
    let mut bytes = std::fs::read(&prior).expect("the prior");
    bytes[100] ^= 1;
    std::fs::write(&prior, bytes).expect("the damaged prior");
    std::fs::write(file("c"), "3x3 1 2 b\n").expect("the damaged samples");
    for (arguments, wanted) in [
        (vec!["solve", "--board", "2x3", "--komi", "0.5", "--prior", &prior], "checksum"),
        (vec!["prior", "evaluate", &samples[0].2], "two or more"),
        (vec!["prior", "fit", "--out", &prior, &file("c")], "line 1"),
        (vec!["prior", "train", "--without", "3x7", "--out", &prior], "--without 3x7: expected one of the training boards"),
        (vec!["prior", "sample", "--board", "2x3", "--data", &file("none"), "--out", &prior], "expected a data directory"),
    ] {
        let output = superko(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(wanted), "{output:?}");
    }
}

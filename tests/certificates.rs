//! Certificates from the outside: what the program writes is accepted by both checkers, and what was tampered with is refused.

mod common;

use common::{CONFIG, Daemon, agent, count, json_of, skip, superko, wait_for};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicU64;
use superko::certificate::{Source, write_verified};
use superko_check::Error;
use superko_rules::{Color, Game, Move, parse_board_size};
use superko_search::{Control, Komi, Limits, Options, Statement, on_large_stack, solve};
use superko_storage::MappedTable;

/// Proofs of small boards, of both players.
const PROOFS: [(&str, &str); 18] = [
    ("1x2", "0.5"),
    ("1x3", "2.5"),
    ("1x4", "3.5"),
    ("1x6", "0.5"),
    ("1x6", "1.5"),
    ("1x9", "-0.5"),
    ("1x9", "0.5"),
    ("1x10", "0.5"),
    ("1x10", "1.5"),
    ("2x2", "0.5"),
    ("2x3", "0.5"),
    ("2x6", "11.5"),
    ("3x3", "8.5"),
    ("3x4", "3.5"),
    ("3x4", "4.5"),
    ("3x5", "14.5"),
    ("4x4", "1.5"),
    ("4x4", "2.5"),
];

fn path_of(dir: &Path, name: &str) -> (PathBuf, String) {
    let path = dir.join(name);
    let text = path.to_str().expect("UTF-8").to_owned();
    (path, text)
}

fn plain(path: &Path) -> Vec<u8> {
    zstd::decode_all(std::fs::File::open(path).expect("the certificate")).expect("zstd")
}

fn rust_checker(bytes: &[u8]) -> Result<superko_check::Report, Error> {
    superko_check::check(bytes, &mut |_| {})
}

/// Exit code of the checker in Python; `None` if there is no Python.
fn python_checker(bytes: &[u8]) -> Option<i32> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/crates/check/py/check.py");
    let mut child =
        Command::new("python3").args([script, "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().ok()?;
    // It may stop reading at the first error.
    let _ = child.stdin.take().expect("a pipe").write_all(bytes);
    let output = child.wait_with_output().expect("it ends");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("Traceback"), "{}", String::from_utf8_lossy(&output.stderr));
    output.status.code()
}

fn winner_of(game: &Game, komi: Komi) -> Color {
    on_large_stack(|| {
        let table = MappedTable::anonymous(game.geometry(), 64 << 20).expect("a table");
        solve(&table, game, komi, Limits::default(), &Control::default()).verdict.expect("proved").0
    })
}

/// The certificate of a game's winner at a komi, uncompressed; `None` if there is nothing to prove.
fn certificate_of(game: &Game, komi: Komi, dir: &Path) -> Option<(Color, Vec<u8>)> {
    let points = game.geometry().points() as i32;
    if !(1 - points..=points).contains(&komi.need(Color::Black)) {
        return None;
    }
    on_large_stack(|| {
        let table = MappedTable::anonymous(game.geometry(), 64 << 20).expect("a table");
        let control = Control::default();
        let (winner, _) = solve(&table, game, komi, Limits::default(), &control).verdict.expect("proved");
        let path = dir.join("one.sgc");
        let statement = Statement { game, komi, winner };
        let (options, limits) = (Options::default(), Limits::default());
        let source = Source { table: &table, memory_bytes: 64 << 20, options, limits, control: &control, records: &AtomicU64::new(0) };
        write_verified(&path, &source, &statement).expect("a certificate");
        Some((winner, plain(&path)))
    })
}

#[test]
fn solves_write_certificates_that_both_checkers_accept() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut python = true;
    for (board, komi) in PROOFS {
        let (path, name) = path_of(dir.path(), &format!("{board}_{komi}.sgc"));
        let solved = superko(&["solve", "--board", board, "--komi", komi, "--table", "64MiB", "--json", "--certificate", &name]);
        assert_eq!(solved.status.code(), Some(0), "{}", String::from_utf8_lossy(&solved.stderr));
        let report = json_of(&solved);
        let (winner, written) = (report["winner"].as_str().expect("a winner"), &report["certificate"]);
        assert_eq!(written["verified"], true);
        assert_eq!(count(&written["bytes"]), std::fs::metadata(&path).expect("the file").len());
        let checked = superko(&["check", &name]);
        let said = String::from_utf8_lossy(&checked.stdout).to_lowercase();
        assert_eq!(checked.status.code(), Some(0), "{board} at {komi}: {said}");
        assert!(said.contains(&format!("{winner} wins")) && said.contains(board), "{said}");
        let bytes = plain(&path);
        assert_eq!(count(&written["uncompressed_bytes"]), bytes.len() as u64);
        match python_checker(&bytes) {
            Some(code) => assert_eq!(code, 0, "{board} at {komi}"),
            None => python = false,
        }
        // The same proof gives the same bytes.
        let again = superko(&["solve", "--board", board, "--komi", komi, "--table", "64MiB", "--json", "--certificate", &name]);
        assert_eq!(json_of(&again)["certificate"]["sha256"], written["sha256"]);
        assert_eq!(std::fs::read_dir(dir.path()).expect("the directory").count(), 1, "nothing else is left there");
        std::fs::remove_file(&path).expect("it is there");
    }
    if !python {
        skip("certificates, the checker in Python", &"there is no python3");
    }
}

/// A small generator of random numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % bound as u64) as usize
    }
}

/// A game that is not over, after some random moves, mostly stones.
fn random_game(random: &mut Random, board: &str) -> Game {
    let mut game = Game::new(parse_board_size(board).expect("a board"));
    for _ in 0..random.below(4 * game.geometry().points()) {
        let moves = game.legal_moves();
        let mv = moves[random.below(moves.len())];
        if mv != Move::Pass || random.below(4) == 0 {
            game.play(mv).expect("legal");
        }
        if game.is_over() {
            game.undo();
            break;
        }
    }
    game
}

/// `SUPERKO_POSITIONS` sets the number of positions.
#[test]
fn positions_with_a_history_are_certified() {
    let positions = std::env::var("SUPERKO_POSITIONS").map_or(60, |text| text.parse().expect("SUPERKO_POSITIONS is a number"));
    let dir = tempfile::tempdir().expect("a directory");
    let mut random = Random(1);
    let mut by_winner = BTreeMap::new();
    for number in 0..positions {
        let board = ["1x5", "1x7", "2x3", "2x4", "3x3", "3x4", "1x9", "4x4"][number % 8];
        let game = random_game(&mut random, board);
        let komi = Komi::below(game.score().clamp(-3, 3) + random.below(5) as i32 - 2);
        let Some((winner, bytes)) = certificate_of(&game, komi, dir.path()) else { continue };
        let report = rust_checker(&bytes).expect("accepted");
        assert_eq!(report.earlier.len() + 1, game.boards().len());
        if let Some(code) = python_checker(&bytes) {
            assert_eq!(code, 0, "position {number} on {board}");
        }
        *by_winner.entry(format!("{winner:?}")).or_insert(0) += 1;
    }
    assert!(by_winner.len() == 2, "both players win some: {by_winner:?}");
}

/// Runs the checker in Python on many inputs at once; their exit codes. `None` if there is no Python.
fn python_checks(inputs: &[&[u8]]) -> Option<Vec<i32>> {
    const DRIVER: &str = "
import struct, sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import check
data, at = sys.stdin.buffer.read(), 0
while at < len(data):
    (length,) = struct.unpack_from('<I', data, at)
    blob, at = data[at + 4 : at + 4 + length], at + 4 + length
    try:
        check.Checker(blob).check()
        print(0)
    except check.Invalid:
        print(1)
    except (check.Unreadable, ValueError):
        print(2)
";
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/crates/check/py");
    let mut child = Command::new("python3").args(["-c", DRIVER, directory]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    let mut data = Vec::new();
    for input in inputs {
        data.extend_from_slice(&(input.len() as u32).to_le_bytes());
        data.extend_from_slice(input);
    }
    child.stdin.take().expect("a pipe").write_all(&data).expect("it reads all");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success());
    Some(String::from_utf8(output.stdout).expect("UTF-8").lines().map(|line| line.parse().expect("a code")).collect())
}

/// Where the records begin.
fn record_starts(bytes: &[u8], game: &Game, winner: Color) -> Vec<usize> {
    let geometry = game.geometry();
    let mask = geometry.points().div_ceil(8);
    let set = |at: usize| bytes[at..at + mask].iter().rev().fold(0u64, |set, &byte| set << 8 | u64::from(byte));
    let varint = |at: usize| bytes[at..].iter().take_while(|&&byte| byte & 0x80 != 0).count() + 1;
    let mut at = bytes.windows(2).position(|pair| pair == b"\n\n").expect("an empty line") + 2;
    let mut starts = Vec::new();
    while at < bytes.len() {
        starts.push(at);
        let kind = bytes[at] & 7;
        if kind == 7 {
            break;
        }
        let board = superko_rules::Board { black: set(at + 1), white: set(at + 1 + mask) };
        let body = at + 1 + 2 * mask;
        at = match kind {
            0 => body,
            1 => body + 2 * mask,
            2 => body + 1 + usize::from(bytes[body]) * (1 + 2 * mask),
            3 => body + 1 + varint(body + 1),
            _ => {
                let loser = winner.opponent();
                let replies = (0..geometry.points()).filter(|&point| board.place(geometry, loser, point).is_ok()).count() + 1;
                (0..replies).fold(body, |at, _| at + varint(at))
            }
        };
    }
    starts
}

/// Everything that can be done to one bit, one byte or one record: what is accepted then still proves the same, and both checkers agree.
#[test]
fn tampered_certificates_are_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let (mut tried, mut accepted) = (0, 0);
    for (board, moves, need) in [("1x3", "", 3), ("2x2", "", 1), ("1x6", "B1 D1 pass C1", 1), ("2x3", "B1 B2", 1), ("3x3", "", 9)] {
        let mut game = Game::new(parse_board_size(board).expect("a board"));
        for vertex in moves.split_whitespace() {
            game.play(Move::parse(game.geometry(), vertex).expect("a vertex")).expect("legal");
        }
        let (winner, bytes) = certificate_of(&game, Komi::below(need), dir.path()).expect("something to prove");
        let told = rust_checker(&bytes).expect("accepted");
        let claim = |report: &superko_check::Report| report.sentence();
        let starts = record_starts(&bytes, &game, winner);
        assert_eq!(starts.len() as u64, told.lemmas() + 1, "with the end");
        let mut mutants: Vec<Vec<u8>> = Vec::new();
        let mut add = |mutant: Vec<u8>| mutants.push(mutant);
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut mutant = bytes.clone();
                mutant[at] ^= 1 << bit;
                add(mutant);
            }
            add(bytes[..at].to_vec());
            add([&bytes[..at], &bytes[at + 1..]].concat());
            add([&bytes[..at], &[bytes[at]], &bytes[at..]].concat());
        }
        for pair in starts.windows(2) {
            let record = &bytes[pair[0]..pair[1]];
            add([&bytes[..pair[0]], &bytes[pair[1]..]].concat());
            add([&bytes[..pair[1]], record, &bytes[pair[1]..]].concat());
        }
        for three in starts.windows(3) {
            let (first, second) = (&bytes[three[0]..three[1]], &bytes[three[1]..three[2]]);
            add([&bytes[..three[0]], second, first, &bytes[three[2]..]].concat());
        }
        add([&bytes[..], b"\0"].concat());
        let codes: Vec<i32> = mutants
            .iter()
            .map(|mutant| match rust_checker(mutant) {
                Ok(report) => {
                    accepted += 1;
                    // Another komi may be proved by the same lemmas: then it is true.
                    if claim(&report) != claim(&told) {
                        assert!(same_but_komi(&report, &told), "{} instead of {}", claim(&report), claim(&told));
                        let komi: Komi = report.komi.parse().expect("a komi");
                        assert_eq!(winner_of(&game, komi), winner, "{}", claim(&report));
                    }
                    0
                }
                Err(Error::Invalid { .. }) => 1,
                Err(Error::Unreadable(_)) => 2,
            })
            .collect();
        tried += mutants.len();
        // The two may differ in what they call unreadable, never in what they accept. All that is accepted, and a share of the many others.
        let share = mutants.len().div_ceil(1500);
        let asked: Vec<usize> = (0..mutants.len()).filter(|&number| codes[number] == 0 || number % share == 0).collect();
        match python_checks(&asked.iter().map(|&number| &mutants[number][..]).collect::<Vec<_>>()) {
            Some(python) => {
                assert_eq!(asked.len(), python.len());
                for (number, python) in asked.into_iter().zip(python) {
                    let rust = codes[number];
                    assert_eq!(rust == 0, python == 0, "mutant {number} of {board}: {rust} in Rust, {python} in Python");
                }
            }
            None => skip("tampered certificates, the checker in Python", &"there is no python3"),
        }
    }
    println!("{tried} mutants, {accepted} accepted");
    assert!(accepted * 50 < tried);
}

fn same_but_komi(one: &superko_check::Report, other: &superko_check::Report) -> bool {
    superko_check::Report { komi: other.komi.clone(), ..one.clone() } == *other
}

#[test]
fn what_cannot_be_written_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let solve = |komi: &str, target: &Path, limit: &str| {
        let target = target.to_str().expect("UTF-8");
        superko(&["solve", "--board", "3x4", "--komi", komi, "--table", "64MiB", "--expansion-limit", limit, "--certificate", target])
    };
    let file = dir.path().join("a.sgc");
    for (komi, target, limit, code, says) in [
        ("3.5", dir.path(), "9999", 2, "something else than a plain file"),
        ("3.5", &dir.path().join("none/a.sgc"), "9999", 2, "No such file"),
        ("12.5", &file, "9999", 2, "nothing to certify"),
        ("4.5", &file, "100", 3, ""),
    ] {
        let output = solve(komi, target, limit);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(says), "{said}");
        assert_eq!(std::fs::read_dir(dir.path()).expect("the directory").count(), 0, "nothing is left there");
    }
    // What is there already stays until there is something better, and garbage is no certificate.
    std::fs::write(&file, b"superko certificate 1\nboard 3x4\n").expect("written");
    assert_eq!(superko(&["check", file.to_str().expect("UTF-8")]).status.code(), Some(2));
    assert_eq!(solve("4.5", &file, "100").status.code(), Some(3));
    assert_eq!(std::fs::metadata(&file).expect("it is there").len(), 32);
    assert_eq!(solve("3.5", &file, "9999").status.code(), Some(0));
    assert_eq!(superko(&["check", file.to_str().expect("UTF-8")]).status.code(), Some(0));
}

/// The lemmas written are kept in as much memory as is given: a little too small and some are written again, far too small and it says so.
#[test]
fn memory_is_bounded() {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |board: &str, need: i32, memory_bytes: u64| {
        let game = Game::new(parse_board_size(board).expect("a board"));
        let komi = Komi::below(need);
        on_large_stack(|| {
            let table = MappedTable::anonymous(game.geometry(), 64 << 20).expect("a table");
            let control = Control::default();
            let (winner, _) = solve(&table, &game, komi, Limits::default(), &control).verdict.expect("proved");
            let (options, limits) = (Options::default(), Limits::default());
            let source = Source { table: &table, memory_bytes, options, limits, control: &control, records: &AtomicU64::new(0) };
            write_verified(&dir.path().join("one.sgc"), &source, &Statement { game: &game, komi, winner })
        })
    };
    let roomy = write("3x5", 15, 64 << 20).expect("a certificate");
    let tight = write("3x5", 15, 4 << 20).expect("a certificate");
    assert_eq!((roomy.verified, tight.verified), (Some(true), Some(true)));
    assert!(tight.lemmas > roomy.lemmas, "{roomy:?} {tight:?}");
    let refused = write("4x4", 3, 1 << 20).expect_err("too many lemmas").to_string();
    assert!(refused.contains("1048576 bytes of memory"), "{refused}");
    assert_eq!(std::fs::read_dir(dir.path()).expect("the directory").count(), 1, "nothing is left of what failed");
}

/// A request for a certificate: status, headers, body.
fn fetch(daemon: &Daemon, proof: &str, headers: &[(&str, &str)]) -> (u16, ureq::http::HeaderMap, Vec<u8>) {
    let mut request = agent().get(daemon.url(&format!("/v1/proofs/{proof}/certificate")));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut answer = request.call().expect("an answer");
    let body = answer.body_mut().read_to_vec().expect("a body");
    (answer.status().as_u16(), answer.headers().clone(), body)
}

fn verify(daemon: &Daemon, proof: &str) -> (u16, Value) {
    daemon.post(&format!("/v1/proofs/{proof}/verifications"), &Value::Null)
}

fn hexadecimal(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_daemon_writes_checks_and_hands_out_certificates() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(dir.path());
    let id = daemon.submit(&json!({"kind": "value", "board": "3x4", "certificate": true, "verify": true}));
    let job = daemon.wait_until(id, "succeeded");
    assert_eq!((&job["certificate"], &job["verify"], &job["proofs"]), (&json!(true), &json!(true), &json!(["1-1", "1-2"])), "{job}");
    for (number, proof) in job["result"]["proofs"].as_array().expect("proofs").iter().enumerate() {
        let certificate = &proof["certificate"];
        assert_eq!((&certificate["verified"], &certificate["checker"]), (&json!(true), &json!("superko-check 0.1.0")), "{job}");
        let name = format!("1-{}", number + 1);
        let (status, shown) = daemon.get(&format!("/v1/proofs/{name}"));
        assert_eq!((status, &shown["id"], &shown["job"], &shown["winner"]), (200, &json!(name), &json!(1), &proof["winner"]), "{shown}");
        assert_eq!(&shown["certificate"], certificate);

        let (status, headers, body) = fetch(&daemon, &name, &[]);
        let tag = headers["etag"].to_str().expect("ASCII").to_owned();
        assert_eq!((status, &tag), (200, &format!("\"{}\"", hexadecimal(&body))));
        assert_eq!(certificate["sha256"], hexadecimal(&body));
        assert_eq!(count(&certificate["bytes"]), body.len() as u64);
        assert_eq!(headers["content-type"], "application/zstd");
        let (file, text) = path_of(dir.path(), "fetched.sgc");
        std::fs::write(&file, &body).expect("written");
        let said = superko(&["check", &text]);
        assert!(said.status.success() && String::from_utf8_lossy(&said.stdout).contains("3x4"), "{said:?}");

        // Parts, and what has not changed.
        let (status, headers, part) = fetch(&daemon, &name, &[("range", "bytes=5-9")]);
        assert_eq!((status, &part[..]), (206, &body[5..10]));
        assert_eq!(headers["content-range"], format!("bytes 5-9/{}", body.len()));
        assert_eq!(headers["etag"], tag);
        let resumed = [("range", "bytes=100-"), ("if-range", &*tag)];
        assert_eq!(fetch(&daemon, &name, &resumed).2, body[100..]);
        let other = [("range", "bytes=100-"), ("if-range", "\"another\"")];
        assert_eq!(fetch(&daemon, &name, &other).2, body);
        let (status, _, problem) = fetch(&daemon, &name, &[("range", "bytes=99999999-")]);
        let problem: Value = serde_json::from_slice(&problem).expect("JSON");
        assert_eq!((status, &problem["code"]), (416, &json!("range_not_satisfiable")));
        for tags in [&*tag, "*", &format!("\"x\", W/{tag}")] {
            let (status, headers, body) = fetch(&daemon, &name, &[("if-none-match", tags)]);
            assert_eq!((status, headers["etag"].to_str().ok(), body.len()), (304, Some(&*tag), 0));
        }
        assert_eq!(fetch(&daemon, &name, &[("if-none-match", "\"x\"")]).0, 200);
        assert_eq!(fetch(&daemon, &name, &[("if-match", "\"x\"")]).0, 412);
        assert_eq!(fetch(&daemon, &name, &[("if-match", &*format!("W/{tag}"))]).0, 412, "weak tags do not match strongly");
        assert_eq!(fetch(&daemon, &name, &[("if-match", &*tag)]).0, 200);
        assert_eq!(fetch(&daemon, &name, &[("range", "lines=1-2")]).2, body);
        assert_eq!(fetch(&daemon, &name, &[("range", "bytes=0-1,5-6")]).2, body);
        let mut head =
            agent().head(daemon.url(&format!("/v1/proofs/{name}/certificate"))).header("range", "bytes=0-1").call().expect("an answer");
        assert_eq!((head.status().as_u16(), head.headers()["content-length"].to_str().ok()), (200, Some(&*body.len().to_string())));
        assert!(head.body_mut().read_to_vec().expect("a body").is_empty());
    }
    assert_eq!(daemon.metric("superko_certificates_total{outcome=\"written\"}"), 2.0);
    assert_eq!(daemon.metric("superko_verifications_total{outcome=\"accepted\"}"), 2.0);

    // The client does the same.
    let server = daemon.url("");
    let (file, text) = path_of(dir.path(), "client.sgc");
    let fetched = superko(&["proof", "certificate", "1-2", &text, "--server", &server]);
    assert!(fetched.status.success(), "{fetched:?}");
    assert_eq!(std::fs::read(&file).expect("the file"), fetch(&daemon, "1-2", &[]).2);
    let shown = superko(&["proof", "verify", "1-2", "--server", &server]);
    assert!(shown.status.success() && String::from_utf8_lossy(&shown.stdout).contains("accepted by superko-check"), "{shown:?}");
    let refused = superko(&["proof", "certificate", "1-3", &text, "--server", &server]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert_eq!(std::fs::read(&file).expect("what was there").len(), fetch(&daemon, "1-2", &[]).2.len());
    let waited = superko(&["job", "submit", "--board", "2x3", "--komi", "0.5", "--certificate", "--verify", "--wait", "--server", &server]);
    assert!(waited.status.success() && String::from_utf8_lossy(&waited.stdout).contains("certificate of"), "{waited:?}");
}

#[test]
fn a_certificate_that_was_changed_is_rejected_out_loud() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(dir.path());
    let id = daemon.submit(&json!({"kind": "solve", "board": "3x3", "komi": 8.5, "certificate": true}));
    let certificate = |job: &Value| job["result"]["certificate"].clone();
    let job = daemon.wait_until(id, "succeeded");
    assert_eq!((&certificate(&job)["verified"], &certificate(&job)["checker"]), (&Value::Null, &Value::Null), "nobody asked: {job}");
    let (status, proof) = verify(&daemon, "1-1");
    assert_eq!((status, &proof["certificate"]["verified"]), (200, &json!(true)), "{proof}");
    assert_eq!(certificate(&daemon.job(id)), proof["certificate"]);

    let file = dir.path().join("data/certificates/1-1.sgc");
    let whole = std::fs::read(&file).expect("the certificate");
    let mut damaged = whole.clone();
    *damaged.last_mut().expect("not empty") ^= 1;
    std::fs::write(&file, &damaged).expect("written");
    let (status, proof) = verify(&daemon, "1-1");
    assert_eq!((status, &proof["certificate"]["verified"]), (200, &json!(false)), "{proof}");
    assert!(proof["certificate"]["error"].as_str().is_some_and(|error| error.contains("changed")), "{proof}");
    let (status, _, problem) = fetch(&daemon, "1-1", &[]);
    assert_eq!(
        (status, String::from_utf8_lossy(&problem).contains("has changed")),
        (500, true),
        "it is not handed out under a tag that is not its own"
    );
    let verified = superko(&["proof", "verify", "1-1", "--server", &daemon.url("")]);
    assert_eq!(verified.status.code(), Some(1), "{verified:?}");
    assert_eq!(daemon.metric("superko_verifications_total{outcome=\"rejected\"}"), 2.0);
    assert!(daemon.log().contains("REJECTED"), "{}", daemon.log());

    // It is on record, and stays so until the certificate is the right one again.
    daemon.kill();
    let daemon = Daemon::start(dir.path());
    assert_eq!(certificate(&daemon.job(id))["verified"], json!(false));
    assert_eq!(daemon.metric("superko_jobs_with_rejected_certificate"), 1.0);
    std::fs::write(&file, &whole).expect("written");
    assert_eq!(verify(&daemon, "1-1").1["certificate"]["verified"], json!(true));
    assert_eq!(daemon.metric("superko_jobs_with_rejected_certificate"), 0.0);
    assert_eq!(certificate(&daemon.job(id))["error"], Value::Null);

    // A valid certificate of something else, and one that is cut short or gone.
    let other = daemon.submit(&json!({"kind": "solve", "board": "2x3", "komi": 0.5, "certificate": true}));
    daemon.wait_until(other, "succeeded");
    std::fs::copy(dir.path().join("data/certificates/2-1.sgc"), &file).expect("copied");
    assert_eq!(verify(&daemon, "1-1").1["certificate"]["verified"], json!(false));
    let (status, _, problem) = fetch(&daemon, "1-1", &[]);
    assert_eq!((status, String::from_utf8_lossy(&problem).contains("certificate_unreadable")), (500, true), "its size is another");
    // What is no plain file might be read for ever: it is refused, and the next check has its turn.
    std::fs::remove_file(&file).expect("removed");
    std::os::unix::fs::symlink("/dev/zero", &file).expect("a link");
    for _ in 0..2 {
        let (status, problem) = verify(&daemon, "1-1");
        assert_eq!((status, &problem["code"]), (500, &json!("certificate_unreadable")), "{problem}");
        assert_eq!(fetch(&daemon, "1-1", &[]).0, 500);
    }
    std::fs::remove_file(&file).expect("removed");
    let (status, problem) = verify(&daemon, "1-1");
    assert_eq!((status, &problem["code"]), (500, &json!("certificate_unreadable")), "{problem}");
    assert_eq!(verify(&daemon, "2-1").0, 200);

    // What was not asked for, and what there is not.
    let plain = daemon.submit(&json!({"kind": "solve", "board": "2x2", "komi": 0.5}));
    daemon.wait_until(plain, "succeeded");
    let (status, problem) = verify(&daemon, "3-1");
    assert_eq!((status, &problem["code"]), (409, &json!("no_certificate")), "{problem}");
    assert_eq!(fetch(&daemon, "3-1", &[]).0, 409);
    assert_eq!(daemon.get("/v1/proofs/3-1").1["certificate"], Value::Null);
    for id in ["3-2", "3-0", "9-1", "03-1", "3", "..%2f3-1", "3-1%00"] {
        let (status, problem) = daemon.get(&format!("/v1/proofs/{id}"));
        assert_eq!((status, &problem["code"]), (404, &json!("proof_not_found")), "{id}: {problem}");
        assert_eq!((verify(&daemon, id).0, fetch(&daemon, id, &[]).0), (404, 404), "{id}");
    }
    let over = daemon.submit(&json!({"kind": "solve", "board": "2x2", "komi": 0.5, "moves": "pass pass", "certificate": true}));
    let job = daemon.wait_until(over, "succeeded");
    assert!(job["result"]["certificate_error"].as_str().is_some_and(|error| error.contains("nothing to certify")), "{job}");
    let server = daemon.url("");
    let arguments =
        ["job", "submit", "--board", "2x2", "--komi", "0.5", "--moves", "pass pass", "--certificate", "--wait", "--server", &server];
    assert_eq!(superko(&arguments).status.code(), Some(3), "it was asked for and is not there");

    // Nobody else's files are touched, and nothing there keeps the daemon from starting.
    daemon.kill();
    let certificates = dir.path().join("data/certificates");
    std::fs::write(certificates.join("backup.part"), "mine").expect("written");
    std::fs::write(certificates.join("2-1.sgc.77-0.part"), "half").expect("written");
    std::fs::create_dir(certificates.join("3-1.sgc.77-0.part")).expect("made");
    let daemon = Daemon::start(dir.path());
    assert_eq!((certificates.join("backup.part").exists(), certificates.join("2-1.sgc.77-0.part").exists()), (true, false));
    assert_eq!(verify(&daemon, "2-1").1["certificate"]["verified"], json!(true));
}

#[test]
fn a_certificate_survives_a_crash_while_it_is_written() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start_with(dir.path(), &format!("{CONFIG}certificate_memory = \"256MiB\"\n"));
    let id = daemon.submit(&json!({"kind": "solve", "board": "2x8", "komi": 15.5, "certificate": true, "verify": true}));
    wait_for("a certificate under way", 300, || (daemon.job(id)["progress"]["stage"] == "certificate").then_some(()));
    let certificates = dir.path().join("data/certificates");
    let names = || -> Vec<String> {
        let entries = std::fs::read_dir(&certificates).expect("the directory");
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect()
    };
    wait_for("a file", 60, || names().first().is_some_and(|name| name.ends_with(".part")).then_some(()));
    daemon.kill();
    assert!(names()[0].ends_with(".part"));
    let daemon = Daemon::start_with(dir.path(), &format!("{CONFIG}certificate_memory = \"256MiB\"\n"));
    let job = wait_for("the certificate", 300, || Some(daemon.job(id)).filter(|job| job["state"] == "succeeded"));
    assert_eq!(job["result"]["certificate"]["verified"], json!(true), "{job}");
    assert_eq!(names(), ["1-1.sgc"]);
    // A limit ends a certificate, not the proof; too little memory does too. The file that is there stays.
    let again = json!({"kind": "solve", "board": "2x8", "komi": 15.5, "certificate": true, "verify": true, "limits": {"expansions": 5}});
    daemon.terminate();
    drop(daemon);
    let daemon = Daemon::start_with(dir.path(), &format!("{CONFIG}certificate_memory = \"1MiB\"\n"));
    std::fs::remove_dir_all(&certificates).expect("removed");
    for (body, says) in [(again, "ended early"), (json!({"kind": "solve", "board": "2x8", "komi": 15.5, "certificate": true}), "memory")] {
        let id = daemon.submit(&body);
        let job = wait_for("the end", 300, || Some(daemon.job(id)).filter(|job| !job["finished_at"].is_null()));
        assert_eq!((&job["state"], &job["result"]["winner"]), (&json!("succeeded"), &json!("black")), "{job}");
        assert!(job["result"]["certificate_error"].as_str().is_some_and(|error| error.contains(says)), "{job}");
        assert!(job["result"]["certificate"].is_null(), "{job}");
        assert_eq!(fetch(&daemon, &format!("{id}-1"), &[]).0, 409);
    }
    assert_eq!(names(), [""; 0]);
    assert_eq!(daemon.metric("superko_certificates_total{outcome=\"failed\"}"), 2.0);
}

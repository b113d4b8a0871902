//! Certificates from the outside: what the program writes is accepted by both checkers, and what was tampered with is refused.

mod common;

use common::{count, json_of, skip, superko};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use superko::certificate::write_certificate;
use superko_check::Error;
use superko_rules::{Color, Game, Move, parse_board_size};
use superko_search::{Control, Komi, Limits, Options, STACK_BYTES, Statement, solve};
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

/// Runs on the deep stack that a search needs.
fn deep<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        thread.spawn_scoped(scope, work).expect("a thread").join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn winner_of(game: &Game, komi: Komi) -> Color {
    deep(|| {
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
    deep(|| {
        let table = MappedTable::anonymous(game.geometry(), 64 << 20).expect("a table");
        let control = Control::default();
        let (winner, _) = solve(&table, game, komi, Limits::default(), &control).verdict.expect("proved");
        let path = dir.join("one.sgc");
        let statement = Statement { game, komi, winner };
        write_certificate(&path, &table, &statement, Options::default(), Limits::default(), &control).expect("a certificate");
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

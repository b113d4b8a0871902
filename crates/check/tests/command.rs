//! The command line and its exit codes.

mod common;

use std::io::Write;
use std::process::{Command, Output, Stdio};

use common::*;

fn run(arguments: &[&str], input: &[u8]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_superko-check"));
    let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A command that ends without reading closes the pipe.
    let _ = child.stdin.take().unwrap().write_all(input);
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    (status.code().unwrap(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

fn claim(t: u64) -> Vec<u8> {
    Writer::new(header("1x3", "0.5", "white", "black", 0, &["X..", ".O."])).eyes(BLACK, 0, ".O.", 2, t).file()
}

#[test]
fn exit_codes() {
    let (code, out, err) = run(&["-"], &claim(5));
    assert!(
        code == 0 && err.is_empty() && out.starts_with("valid: White wins 1x3 at komi 0.5 from .O. with Black to move, "),
        "{out}{err}"
    );
    assert_eq!(run(&["--quiet", "-"], &claim(5)), (0, String::new(), String::new()));
    let (code, out, err) = run(&["-"], &claim(7));
    assert_eq!((code, out.as_str()), (1, ""));
    assert_eq!(err, "superko-check: invalid: lemma 0: check 2, kind 1: T is not a union of regions\n.O.\nblack to move\n");
    assert_eq!(run(&["--quiet", "-"], &claim(7)), (1, String::new(), err));
    for (arguments, words) in [
        (&["-"][..], "unreadable: "),
        (&[], "no file"),
        (&["--fast", "-"], "no option --fast"),
        (&["-", "-"], "more than one file"),
        (&["/nonexistent/certificate"], "/nonexistent/certificate: "),
        (&["--", "--text"], "--text: "),
        (&["--text", "-"], "unreadable: "),
    ] {
        let (code, out, err) = run(arguments, b"superko certificate 2\n");
        assert!(code == 2 && out.is_empty() && err.contains(words), "{arguments:?}: {code} {err}");
    }
    assert!(run(&["--help"], b"").1.starts_with("Usage: superko-check "));
    assert!(run(&["--version"], b"").1.starts_with("superko-check "));
}

#[test]
fn text() {
    let ways = [(2, 0b010110, 0b101001), (3, 0b011010, 0b100101)];
    let header = header("1x6", "-0.5", "white", "white", 0, &["X.....", "....O."]);
    let mut w = Writer::new(header.clone());
    w.end(BLACK, ".O..O.").play(WHITE, 1, ".O..O.", 255, 0, 0).miai(BLACK, 0, ".O..O.", &ways).eyes(WHITE, 0, "......", 1, 0);
    w.replies(BLACK, 0, ".O..O.", 1, &[Some((3, 2)), None]).play(WHITE, 0, "....O.", 1, 2, 0);
    let (code, out, err) = run(&["--text", "-"], &w.file());
    let records = "\
        0: .O..O. black to move after two passes: end\n\
        1: .O..O. white to move after a pass: move pass -> 0\n\
        2: .O..O. black to move: miai C1 A {B1 C1 E1} T {A1 D1 F1}, D1 A {B1 D1 E1} T {A1 C1 F1}\n\
        3: ...... white to move: eyes A {A1} T {}\n\
        4: .O..O. black to move: replies pass -> 1, C1 -> 3s2, D1 -> superko\n\
        5: ....O. white to move: move B1 -> 2\n\
        6 lemmas, root 5\n";
    assert_eq!((code, out, err.as_str()), (0, format!("{header}{records}"), ""));
}

//! What an installation needs besides the binary: completions, manual pages, the systemd unit.

mod common;

use common::{skip, superko};
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// What the program prints for these arguments.
fn printed(arguments: &[&str]) -> String {
    let output = superko(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Runs a program on an input; `None`, and a note, where it is not installed.
fn run(test: &str, program: &str, arguments: &[&str], input: &str) -> Option<Output> {
    let mut command = Command::new(program);
    let child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = match child {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            skip(test, &format!("{program} is not installed"));
            return None;
        }
        child => child.expect(program),
    };
    child.stdin.take().expect("stdin").write_all(input.as_bytes()).expect("the program reads");
    Some(child.wait_with_output().expect("the program ends"))
}

fn assert_silent(what: &str, output: &Output) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{what}: {}\n{stderr}", output.status);
}

#[test]
fn shells_accept_the_completions() {
    let test = "shells_accept_the_completions";
    let bash = printed(&["completions", "bash"]);
    // What a shell would offer after `superko job s`, and after `superko solve --th`.
    for (words, offered) in [("superko job s", "submit"), ("superko solve --th", "--threads"), ("superko completions ", "fish")] {
        let count = words.split(' ').count();
        let array = words.split(' ').map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        let script = format!(
            "{bash}\nCOMP_WORDS=({array}); COMP_CWORD={}; _superko superko '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            count - 1,
            words.rsplit(' ').next().expect("a word"),
            words.rsplit(' ').nth(1).expect("a word"),
        );
        let Some(output) = run(test, "bash", &["--norc", "--noprofile", "-eu", "-s"], &script) else { return };
        assert_silent(words, &output);
        let replies = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(replies.lines().any(|reply| reply == offered), "{words}: {replies}");
    }
    for (shell, start) in [("zsh", "#compdef superko"), ("fish", "# Print an optspec")] {
        let script = printed(&["completions", shell]);
        assert!(script.starts_with(start) && script.contains("certificate"), "{shell}: {}", &script[..80]);
        if let Some(output) = run(test, shell, &["-n"], &script) {
            assert_silent(shell, &output);
        }
    }
    let refused = superko(&["completions", "tcsh"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("tcsh"), "{refused:?}");
}

#[test]
fn manual_pages_render() {
    for (command, words) in [
        (&[][..], &["SUPERKO(1)", "SUBCOMMANDS", "Prove who wins a position at a komi", "Exit codes: 0 proved"][..]),
        (&["serve"], &["superko-serve", "--config"]),
        (&["job", "submit"], &["superko-job-submit", "--idempotency-key"]),
    ] {
        let page = printed(&[&["man"][..], command].concat());
        let Some(output) = run("manual_pages_render", "groff", &["-man", "-Tutf8", "-P-cbou", "-ww"], &page) else { return };
        assert_silent(&format!("{command:?}"), &output);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // Hyphens of a page are typographic ones, and its lines are filled up with spaces.
        let words_of_page = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('\u{2010}', "-").to_lowercase();
        for word in words {
            assert!(words_of_page.contains(&word.to_lowercase()), "{command:?}: {word}\n{text}");
        }
    }
    let refused = superko(&["man", "job", "climb"]);
    assert_eq!(refused.status.code(), Some(2));
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(message.contains("\"climb\"") && message.contains("submit"), "{message}");
}

/// Names of the drop-ins, which are those of their files.
const DROP_INS: [&str; 3] = ["memory", "public-listen", "huge-pages"];

#[test]
fn systemd_accepts_the_unit_and_finds_little_exposed() {
    let dir = tempfile::tempdir().expect("a directory");
    let unit = printed(&["unit"]);
    let source = |file: &str| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd").join(file)).expect(file);
    assert_eq!(unit, source("superko.service"));
    assert!(unit.contains("WatchdogSec=") && unit.contains("LoadCredential=tokens:"));
    // The installed binary need not be there.
    let unit = unit.replace("/usr/local/bin/superko", env!("CARGO_BIN_EXE_superko"));
    let path = dir.path().join("superko.service");
    std::fs::write(&path, unit).expect("the unit");
    let path = path.to_str().expect("UTF-8");
    let drop_ins = dir.path().join("superko.service.d");
    for drop_in in std::iter::once(None).chain(DROP_INS.map(Some)) {
        let _ = std::fs::remove_dir_all(&drop_ins);
        if let Some(name) = drop_in {
            let text = printed(&["unit", "--drop-in", name]);
            assert_eq!(text, source(&format!("superko.service.d/{name}.conf")));
            std::fs::create_dir(&drop_ins).expect("a directory");
            std::fs::write(drop_ins.join(format!("{name}.conf")), text).expect("the drop-in");
        }
        let test = "systemd_accepts_the_unit_and_finds_little_exposed";
        let Some(verified) = run(test, "systemd-analyze", &["verify", "--man=no", "--recursive-errors=yes", path], "") else { return };
        assert_silent(&format!("verify with {drop_in:?}"), &verified);
        // In tenths: 2.0 at most.
        let arguments = ["security", "--offline=true", "--threshold=20", "--no-pager", path];
        let Some(judged) = run(test, "systemd-analyze", &arguments, "") else { return };
        let text = String::from_utf8_lossy(&judged.stdout).into_owned();
        assert!(judged.status.success(), "with {drop_in:?}: {text}");
        println!("with {drop_in:?}: {}", text.lines().last().unwrap_or_default());
    }
    let files = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd/superko.service.d")).expect("drop-ins");
    assert_eq!(files.count(), DROP_INS.len(), "each drop-in has a name");
}

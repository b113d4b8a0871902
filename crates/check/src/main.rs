//! `superko-check`: checks a certificate. Exit codes: 0 valid, 1 invalid, 2 unreadable or bad usage.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{BufWriter, ErrorKind, IsTerminal, Read, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use superko_check::{Error, TextError, VERSION, check, check_in_parallel, write_text};

const USAGE: &str = "\
Usage: superko-check [--text] [--parallel] [--quiet] FILE

Checks a certificate that a player wins a Go position under positional superko.
FILE is a certificate, compressed or not; - is standard input.

  --text     print the certificate as text instead of checking it
  --parallel read on one thread and judge on another
  --quiet    print nothing about a valid certificate, and no progress
  --help     print this
  --version  print the version

Exit codes: 0 valid, 1 invalid, 2 unreadable or bad usage.
";

/// Reports that the certificate cannot be read, or the command not understood.
fn fail(what: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("superko-check: {what}");
    ExitCode::from(2)
}

fn main() -> ExitCode {
    let (mut text, mut parallel, mut quiet, mut file, mut only_files) = (false, false, false, None, false);
    for argument in std::env::args_os().skip(1) {
        match argument.to_str() {
            Some("--") if !only_files => only_files = true,
            Some("--text") if !only_files => text = true,
            Some("--parallel") if !only_files => parallel = true,
            Some("--quiet") if !only_files => quiet = true,
            Some("--help") if !only_files => return print(USAGE),
            Some("--version") if !only_files => return print(&format!("superko-check {VERSION}\n")),
            Some(option) if !only_files && option.starts_with('-') && option != "-" => {
                return fail(&format!("there is no option {option}\n\n{USAGE}"));
            }
            _ if file.is_some() => return fail(&format!("more than one file is given\n\n{USAGE}")),
            _ => file = Some(argument),
        }
    }
    let Some(file) = file else {
        return fail(&format!("no file is given\n\n{USAGE}"));
    };
    let input: Box<dyn Read + Send> = if file == "-" {
        Box::new(std::io::stdin())
    } else {
        match File::open(&file) {
            Ok(opened) => Box::new(opened),
            Err(error) => return fail(&format!("{}: {error}", file.display())),
        }
    };
    if text { print_text(input) } else { judge(input, parallel, quiet) }
}

/// Prints, and does not mind that nobody reads to the end.
fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => fail(&format!("standard output: {error}")),
        _ => ExitCode::SUCCESS,
    }
}

fn print_text(input: Box<dyn Read + Send>) -> ExitCode {
    let mut output = BufWriter::new(std::io::stdout().lock());
    let result = write_text(input, &mut output);
    match result.and(output.flush().map_err(TextError::Output)) {
        Err(TextError::Output(error)) if error.kind() != ErrorKind::BrokenPipe => fail(&format!("standard output: {error}")),
        Err(TextError::Certificate(error)) => fail(&error),
        _ => ExitCode::SUCCESS,
    }
}

fn judge(input: Box<dyn Read + Send>, parallel: bool, quiet: bool) -> ExitCode {
    let start = Instant::now();
    let mut shown = start;
    let show_progress = !quiet && std::io::stderr().is_terminal();
    let mut progress = |lemmas| {
        if show_progress && shown.elapsed() >= Duration::from_secs(1) {
            shown = Instant::now();
            eprint!("\r{lemmas} lemmas checked, {:.0} a second ", lemmas as f64 / start.elapsed().as_secs_f64());
        }
    };
    let result = if parallel { check_in_parallel(input, &mut progress) } else { check(input, &mut progress) };
    if shown != start {
        eprintln!();
    }
    match result {
        Ok(_) if quiet => ExitCode::SUCCESS,
        Ok(report) => print(&format!("{report}; checked in {:.3} s\n", start.elapsed().as_secs_f64())),
        Err(error @ Error::Unreadable(_)) => fail(&error),
        Err(error @ Error::Invalid { .. }) => {
            eprintln!("superko-check: {error}");
            ExitCode::from(1)
        }
    }
}

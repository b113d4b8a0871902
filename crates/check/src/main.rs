//! `superko-check`: checks a certificate. Exit codes: 0 valid, 1 invalid, 2 unreadable or bad usage.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{BufWriter, ErrorKind, IsTerminal, Read, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use superko_check::{Error, TextError, VERSION, check, write_text};

const USAGE: &str = "\
Usage: superko-check [--text] [--quiet] FILE

Checks a certificate that a player wins a Go position under positional superko.
FILE is a certificate, compressed or not; - is standard input.

  --text     print the certificate as text instead of checking it
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
    let (mut text, mut quiet, mut file, mut only_files) = (false, false, None, false);
    for argument in std::env::args_os().skip(1) {
        match argument.to_str() {
            Some("--") if !only_files => only_files = true,
            Some("--text") if !only_files => text = true,
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
    let input: Box<dyn Read> = if file == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        match File::open(&file) {
            Ok(opened) => Box::new(opened),
            Err(error) => return fail(&format!("{}: {error}", file.display())),
        }
    };
    if text { print_text(input) } else { judge(input, quiet) }
}

/// Prints, and does not mind that nobody reads to the end.
fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => fail(&format!("standard output: {error}")),
        _ => ExitCode::SUCCESS,
    }
}

fn print_text(input: Box<dyn Read>) -> ExitCode {
    let mut output = BufWriter::new(std::io::stdout().lock());
    let result = write_text(input, &mut output);
    match result.and(output.flush().map_err(TextError::Output)) {
        Err(TextError::Output(error)) if error.kind() != ErrorKind::BrokenPipe => fail(&format!("standard output: {error}")),
        Err(TextError::Certificate(error)) => fail(&error),
        _ => ExitCode::SUCCESS,
    }
}

fn judge(input: Box<dyn Read>, quiet: bool) -> ExitCode {
    let start = Instant::now();
    let mut shown = start;
    let show_progress = !quiet && std::io::stderr().is_terminal();
    let result = check(input, &mut |lemmas| {
        if show_progress && shown.elapsed() >= Duration::from_secs(1) {
            shown = Instant::now();
            eprint!("\r{lemmas} lemmas checked, {:.0} a second ", lemmas as f64 / start.elapsed().as_secs_f64());
        }
    });
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

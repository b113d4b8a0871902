//! The command line: one file a command.

mod bench;
mod campaign;
mod check;
mod compare;
mod install;
mod job;
mod openapi;
mod prior;
mod proof;
mod run;
mod selftest;
mod serve;
mod solve;
mod store;
mod token;
mod value;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::position::{Position, parse_setup_text};
use crate::units;
use serde_json::{Map, Value};
use std::time::Duration;
use superko_search::Options;

/// Proves who wins small-board Go under positional superko.
#[derive(Debug, Parser)]
#[command(name = "superko", version, after_long_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Prove who wins a position at a komi
    Solve(solve::Arguments),
    /// Find a position's value, with both proofs
    Value(value::Arguments),
    /// Check a certificate by a program that trusts nothing of the solver
    Check(check::Arguments),
    /// Run the proof server
    Serve(serve::Arguments),
    /// Run the fixed bench suite: deterministic counts and a signature
    Bench(bench::Arguments),
    /// Compare the solver with the built-in oracle on random games
    Selftest(selftest::Arguments),
    /// Sample proofs, fit priors to them and measure priors
    #[command(subcommand)]
    Prior(prior::Command),
    /// Jobs of a running server
    #[command(subcommand)]
    Job(job::Command),
    /// Campaigns of a running server: the value of a position by many jobs
    #[command(subcommand)]
    Campaign(campaign::Command),
    /// Proofs of a running server, and their certificates
    #[command(subcommand)]
    Proof(proof::Command),
    /// Back up, restore, verify and measure a data directory
    #[command(subcommand)]
    Store(store::Command),
    /// Access tokens for a server
    #[command(subcommand)]
    Token(token::Command),
    /// Print the OpenAPI description of the HTTP API
    Openapi,
    /// Print the completions of a shell
    Completions(install::Completions),
    /// Print a manual page, for `man -l -`
    Man(install::Man),
    /// Print the systemd unit, or one of its drop-ins
    Unit(install::Unit),
}

/// As the help and the manual page tell.
const EXIT_CODES: &str =
    "Exit codes: 0 proved, or done; 2 bad input; 3 no verdict, because a limit was reached or it was interrupted; 1 anything else.";

/// Exit code: proved, or done.
const PROVED: u8 = 0;
/// Exit code: anything that is neither a result nor the user's mistake.
const FAILED: u8 = 1;
/// Exit code: bad input.
const BAD_INPUT: u8 = 2;
/// Exit code: no verdict (a limit, or interrupted).
const UNKNOWN: u8 = 3;

/// Why a command ended without doing its work: a sentence for standard error, and the exit code.
#[derive(Debug)]
struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    fn bad_input(message: impl Into<String>) -> Failure {
        Failure { code: BAD_INPUT, message: message.into() }
    }

    fn other(message: impl Into<String>) -> Failure {
        Failure { code: FAILED, message: message.into() }
    }
}

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            eprintln!("{}", usage_error(&error));
            return ExitCode::from(BAD_INPUT);
        }
        Err(help) => {
            let _ = help.print();
            return ExitCode::SUCCESS;
        }
    };
    let done = match cli.command {
        Command::Solve(arguments) => solve::run(&arguments),
        Command::Value(arguments) => value::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Selftest(arguments) => selftest::run(&arguments),
        Command::Prior(command) => prior::run(command),
        Command::Campaign(command) => campaign::run(&command),
        Command::Job(command) => job::run(&command),
        Command::Proof(command) => proof::run(&command),
        Command::Store(command) => store::run(&command),
        Command::Token(command) => token::run(&command),
        Command::Openapi => openapi::run(),
        Command::Completions(arguments) => install::completions(&arguments),
        Command::Man(arguments) => install::man(&arguments),
        Command::Unit(arguments) => install::unit(&arguments),
    };
    match done {
        Ok(_) if OUTPUT_LOST.load(Relaxed) => ExitCode::from(FAILED),
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("error: {}", failure.message);
            ExitCode::from(failure.code)
        }
    }
}

/// What is wrong with the arguments in one line, with clap's tip; the whole help where a command is missing.
fn usage_error(error: &clap::Error) -> String {
    let text = error.to_string();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return text.trim_end().to_owned();
    }
    let paragraphs = text.split("\n\n").map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "));
    let said: Vec<String> = paragraphs.filter(|text| text.starts_with("error:") || text.starts_with("tip:")).collect();
    format!("{}; see --help", said.join("; "))
}

/// Set when standard output did not take all that was printed.
static OUTPUT_LOST: AtomicBool = AtomicBool::new(false);

/// Prints one line to standard output.
fn print_line(text: &str) {
    print_text(&format!("{text}\n"));
}

/// Prints to standard output. A closed pipe is no reason to fail; a full disk is one, at the end.
fn print_text(text: &str) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if let Err(error) = printed
        && error.kind() != std::io::ErrorKind::BrokenPipe
        && !OUTPUT_LOST.swap(true, Relaxed)
    {
        eprintln!("error: standard output: {error}: the output is not complete");
    }
}

/// Prints a report as one line of JSON.
fn print_json(report: &impl serde::Serialize) -> Result<(), Failure> {
    print_line(&serde_json::to_string(report).map_err(|error| Failure::other(error.to_string()))?);
    Ok(())
}

/// The flags that describe a position.
#[derive(Debug, Args)]
struct PositionFlags {
    /// Board size, ROWSxCOLUMNS, such as 4x7
    #[arg(long)]
    board: String,
    /// Moves from the start: vertices and `pass`, separated by spaces or commas
    #[arg(long, default_value = "", hide_default_value = true)]
    moves: String,
    /// Start diagram: a file with the JSON of a setup, or rows and a last line `to move: black`
    #[arg(long, value_name = "FILE")]
    setup: Option<PathBuf>,
}

impl PositionFlags {
    /// The flags as the fields of a request.
    fn fields(&self) -> Result<Map<String, Value>, Failure> {
        let mut fields = Map::new();
        fields.insert("board".into(), self.board.clone().into());
        fields.insert("moves".into(), self.moves.clone().into());
        if let Some(path) = &self.setup {
            let text = std::fs::read_to_string(path)
                .map_err(|error| Failure::bad_input(format!("--setup {}: cannot be read: {error}", path.display())))?;
            let setup =
                parse_setup_text(&text).map_err(|error| Failure::bad_input(format!("--setup {}: the file {error}", path.display())))?;
            fields.insert("setup".into(), setup);
        }
        Ok(fields)
    }

    fn position(&self) -> Result<Position, Failure> {
        Position::from_fields(&self.fields()?).map_err(|error| {
            let flag = error.pointer.split('/').nth(1).unwrap_or_default();
            let file = match (&self.setup, flag) {
                (Some(path), "setup") => format!(" {} ({})", path.display(), error.pointer),
                _ => String::new(),
            };
            Failure::bad_input(format!("--{flag}{file}: {}", error.detail))
        })
    }
}

/// The flags of a search in this process.
#[derive(Debug, Args)]
struct SearchFlags {
    /// First numbers of positions: `builtin`, `uniform`, or a file of `superko prior fit`; changes the order of the search, no verdict
    #[arg(long, default_value = "builtin")]
    prior: String,
    /// Search threads, 1 to 256; with more than one, counts do not repeat exactly
    #[arg(long, allow_negative_numbers = true, default_value_t = 1)]
    threads: usize,
    /// Memory for the table of proofs, such as 512MiB or 1GiB
    #[arg(long, allow_hyphen_values = true, default_value = "1GiB")]
    table: String,
    /// Give up after this time, such as 60s, 10m or 2h
    #[arg(long, allow_hyphen_values = true)]
    time_limit: Option<String>,
    /// Give up after so many expansions
    #[arg(long, allow_negative_numbers = true)]
    expansion_limit: Option<u64>,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

/// The search flags, checked.
#[derive(Debug)]
struct SearchSettings {
    options: Options,
    table_bytes: u64,
    time: Option<Duration>,
    expansions: Option<u64>,
}

impl SearchFlags {
    fn settings(&self) -> Result<SearchSettings, Failure> {
        units::check_threads(self.threads).map_err(|error| Failure::bad_input(format!("--{error}")))?;
        if self.expansion_limit == Some(0) {
            return Err(Failure::bad_input("--expansion-limit 0: expected at least 1"));
        }
        let table_bytes = units::parse_size(&self.table)
            .and_then(|bytes| units::check_table_size(bytes).map(|()| bytes))
            .map_err(|error| Failure::bad_input(format!("--table {}: {error}", self.table)))?;
        let time = self.time_limit.as_deref().map(units::parse_time).transpose();
        let time = time.map_err(|error| Failure::bad_input(format!("--time-limit: {error}")))?;
        let options = Options { threads: self.threads, prior: prior::named(&self.prior)?, ..Options::default() };
        Ok(SearchSettings { options, table_bytes, time, expansions: self.expansion_limit })
    }
}

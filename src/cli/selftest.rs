//! `superko selftest`: the solver against the built-in oracle.

use super::run::Progress;
use super::{FAILED, Failure, PROVED, print_line};
use crate::STACK_BYTES;
use clap::Args;
use std::time::Duration;
use superko_rules::{Geometry, parse_board_size};
use superko_search::{SelftestOptions, SelftestReport, Table, selftest};
use superko_storage::MappedTable;

#[derive(Debug, Args)]
pub struct Arguments {
    /// Seed of the first case; case i uses seed + i
    #[arg(long, allow_negative_numbers = true, default_value_t = 1)]
    seed: u64,
    /// How long to run, in seconds
    #[arg(long, allow_negative_numbers = true, default_value_t = 60)]
    seconds: u64,
    /// Stop after so many cases; a mismatch names the seed of its case, so one case reproduces it
    #[arg(long, allow_negative_numbers = true)]
    cases: Option<u64>,
    /// Only this board, ROWSxCOLUMNS; a built-in mix if left out
    #[arg(long)]
    board: Option<String>,
}

/// Threads of the variants that search in parallel.
const PARALLEL: usize = 3;

pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    let board = arguments.board.as_deref().map(parse_board_size).transpose();
    let boards = board.map_err(|error| Failure::bad_input(format!("--board: {error}")))?.into_iter().collect();
    if arguments.cases == Some(0) {
        return Err(Failure::bad_input("--cases 0: expected at least 1"));
    }
    if arguments.seconds == 0 {
        return Err(Failure::bad_input("--seconds 0: expected at least 1"));
    }
    let options = SelftestOptions {
        boards,
        seed: arguments.seed,
        time: Duration::from_secs(arguments.seconds),
        cases: arguments.cases,
        table: Some(mapped_table),
        checker: Some(check_certificate),
        threads: PARALLEL,
    };
    let worker = std::thread::Builder::new().name("selftest".to_owned()).stack_size(STACK_BYTES).spawn(move || {
        let mut progress = Progress::new();
        selftest(&options, &mut |report| progress.show(|| summary(report)))
    });
    let report = worker
        .map_err(|error| Failure::other(format!("cannot start the selftest thread: {error}")))?
        .join()
        .map_err(|_| Failure::other("the selftest panicked, see the message above"))?;
    print_line(&summary(&report));
    for (mechanism, count) in &report.coverage {
        print_line(&format!("  {mechanism}: {count}"));
    }
    for mismatch in &report.mismatches {
        print_line(&format!("MISMATCH {mismatch}"));
    }
    Ok(if report.mismatches.is_empty() { PROVED } else { FAILED })
}

/// The smallest table there is, so that lemmas are displaced and sets overwritten under the oracle's eyes.
fn mapped_table(geometry: &'static Geometry) -> Box<dyn Table> {
    Box::new(MappedTable::anonymous(geometry, 1 << 20).expect("there is memory for a table of 1 MiB"))
}

fn check_certificate(certificate: &[u8]) -> Result<(), String> {
    superko_check::check(certificate, &mut |_| {}).map(|_| ()).map_err(|error| error.to_string())
}

fn summary(report: &SelftestReport) -> String {
    format!(
        "{} positions, {} comparisons, {} skipped, {} mismatches",
        report.positions,
        report.comparisons,
        report.skipped,
        report.mismatches.len()
    )
}

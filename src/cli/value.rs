//! `superko value`: a position's value with both proofs.

use super::solve::{UNFINISHED, text};
use super::{Failure, PROVED, PositionFlags, SearchFlags, UNKNOWN, print_json, print_line, run};
use crate::report::{Counts, SolveReport, ValueProgress};
use clap::Args;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use superko_search::{Control, Limits, solve_with};
use superko_storage::MappedTable;

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    position: PositionFlags,
    #[command(flatten)]
    search: SearchFlags,
}

pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    let settings = arguments.search.settings()?;
    let position = arguments.position.position()?;
    let table = MappedTable::anonymous(position.geometry(), settings.table_bytes)
        .map_err(|error| Failure::other(format!("--table {}: {error}", arguments.search.table)))?;
    let control = Control::default();
    let started = Instant::now();
    let label = format!("value of {}", position.geometry().name());
    let progress = run::search(&label, &control, || {
        let mut progress = ValueProgress::new(&position, &[]);
        while let Some(komi) = progress.next_komi() {
            // The limits count over all solves.
            let limits = Limits {
                expansions: settings.expansions.map(|limit| limit.saturating_sub(control.expansions.load(Relaxed))),
                time: settings.time.map(|limit| limit.saturating_sub(started.elapsed())),
            };
            let begun = Instant::now();
            let outcome = solve_with(settings.options, &table, &position.game, komi, limits, &control);
            let counts = Counts::of_stats(&outcome.stats, begun.elapsed().as_secs_f64());
            let proved = outcome.verdict.is_ok();
            progress.record(komi, &outcome, SolveReport::new(&position, komi, &outcome, &counts, &table.occupancy()));
            if !proved {
                break;
            }
        }
        progress
    })?;
    let report = progress.report(&position, &Counts::of_control(&control, started.elapsed().as_secs_f64()));
    if arguments.search.json {
        print_json(&report)?;
    } else {
        let value = match report.value {
            Some(value) => format!("value {value}"),
            None => format!("value unknown, between {} and {}", report.bounds.lower, report.bounds.upper),
        };
        print_line(&format!(
            "{}: {value} (points for Black)\n{} expansions, {} distinct nodes, {:.2} s",
            report.board, report.expansions, report.distinct_nodes, report.elapsed_seconds
        ));
        for proof in &report.proofs {
            print_line(&text(proof, UNFINISHED));
        }
    }
    Ok(if report.value.is_some() { PROVED } else { UNKNOWN })
}

//! `superko bench`: the fixed suite.

use super::compare::{self, EXPANSION_LIMIT, What};
use super::{Failure, PROVED, print_json, print_line};
use crate::STACK_BYTES;
use crate::statistics::Statistics;
use clap::Args;
use serde_json::json;
use superko_search::{BenchReport, Counter, Counters, Table, bench};
use superko_storage::MappedTable;

/// The table of each position: fixed, because what is evicted changes the counts.
const TABLE_BYTES: u64 = 256 << 20;

#[derive(Debug, Args)]
pub struct Arguments {
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
    /// Instead of the suite, compare the full solver with variants of it on seeded positions: minutes
    #[arg(long, value_enum)]
    compare: Option<What>,
    /// Give up a solve of a comparison after so many expansions
    #[arg(long, allow_negative_numbers = true, requires = "compare", default_value_t = EXPANSION_LIMIT, value_parser = clap::value_parser!(u64).range(1..))]
    expansion_limit: u64,
    /// Take at most so many positions of each suite of a comparison
    #[arg(long, allow_negative_numbers = true, requires = "compare", default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..))]
    positions: u64,
}

pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    if let Some(what) = arguments.compare {
        return compare::run(what, arguments.expansion_limit, arguments.positions.min(1000) as usize, arguments.json);
    }
    let worker = std::thread::Builder::new().name("solver".to_owned()).stack_size(STACK_BYTES).spawn(|| {
        bench(&|geometry| -> Box<dyn Table> {
            Box::new(MappedTable::anonymous(geometry, TABLE_BYTES).unwrap_or_else(|error| panic!("the bench table: {error}")))
        })
    });
    let report = worker
        .map_err(|error| Failure::other(format!("cannot start the solver thread: {error}")))?
        .join()
        .map_err(|_| Failure::other("the bench panicked, see the message above"))?;
    let expansions: u64 = report.rows.iter().map(|row| row.expansions).sum();
    let elapsed: f64 = report.rows.iter().map(|row| row.elapsed_seconds).sum();
    if arguments.json {
        print_json(&json_report(&report, expansions, elapsed))?;
        return Ok(PROVED);
    }
    for row in &report.rows {
        print_line(&format!(
            "{:<28} {:<6} {:>10} expansions {:>10} distinct {:>9} lemmas {:>7.2} s",
            row.name, row.winner, row.expansions, row.distinct_nodes, row.lemmas, row.elapsed_seconds
        ));
    }
    print_line(&format!("total {expansions} expansions, {elapsed:.2} s, {:.0} expansions/s", expansions as f64 / elapsed.max(1e-9)));
    statistics_lines(&report.statistics).iter().for_each(|line| print_line(line));
    print_line(&format!("signature {}", report.signature));
    Ok(PROVED)
}

/// The counters that are not zero, a line a group.
fn statistics_lines(counters: &Counters) -> Vec<String> {
    let counts: Vec<(Counter, u64)> = counters.iter().filter(|&(counter, count)| count > 0 && !counter.is_time()).collect();
    let mut lines: Vec<String> = counts
        .chunk_by(|(a, _), (b, _)| a.group() == b.group())
        .map(|group| {
            let values: Vec<String> = group.iter().map(|(counter, count)| format!("{} {count}", counter.value())).collect();
            format!("{:<17} {}", group[0].0.group().name, values.join(", "))
        })
        .collect();
    let shares: Vec<String> = counters.phase_shares().iter().map(|(phase, share)| format!("{phase} {:.0} %", 100.0 * share)).collect();
    lines.push(format!("{:<17} {} (sampled)", "phase_share", shares.join(", ")));
    lines
}

fn json_report(report: &BenchReport, expansions: u64, elapsed: f64) -> serde_json::Value {
    let rows: Vec<_> = report
        .rows
        .iter()
        .map(|row| {
            json!({"name": row.name, "winner": row.winner, "expansions": row.expansions.to_string(), "distinct_nodes": row.distinct_nodes.to_string(),
                "lemmas": row.lemmas.to_string(), "elapsed_seconds": row.elapsed_seconds})
        })
        .collect();
    json!({"signature": report.signature, "expansions": expansions.to_string(), "elapsed_seconds": elapsed,
        "table_bytes": TABLE_BYTES.to_string(), "threads": 1, "statistics": Statistics(report.statistics), "rows": rows})
}

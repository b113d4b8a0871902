//! `superko bench`: the fixed suite.

use super::{Failure, PROVED, print_json, print_line};
use crate::STACK_BYTES;
use clap::Args;
use serde_json::json;
use superko_search::{BenchReport, Table, bench};
use superko_storage::MappedTable;

/// The table of each position: fixed, because what is evicted changes the counts.
const TABLE_BYTES: u64 = 256 << 20;

#[derive(Debug, Args)]
pub struct Arguments {
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
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
    print_line(&format!("signature {}", report.signature));
    Ok(PROVED)
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
        "table_bytes": TABLE_BYTES.to_string(), "threads": 1, "rows": rows})
}

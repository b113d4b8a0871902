//! `superko bench --compare`: tables of the full solver against variants of it.

use super::{Failure, PROVED, print_json, print_line};
use crate::STACK_BYTES;
use clap::ValueEnum;
use serde_json::{Value, json};
use superko_search::{Comparison, Ratio, Subject, SuiteCounts, VariantRow, compare};

/// What to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// The full solver against itself without one mechanism
    Ablation,
    /// The rules for proof numbers
    Numbers,
}

impl What {
    fn name(self) -> &'static str {
        match self {
            What::Ablation => "ablation",
            What::Numbers => "numbers",
        }
    }
}

/// Expansions of one solve, unless the user says otherwise: minutes in all.
pub const EXPANSION_LIMIT: u64 = 200_000;

pub fn run(what: What, expansion_limit: u64, positions: usize, json: bool) -> Result<u8, Failure> {
    let subject = match what {
        What::Ablation => Subject::Mechanisms,
        What::Numbers => Subject::Numbers,
    };
    let worker = std::thread::Builder::new().name("solver".to_owned()).stack_size(STACK_BYTES).spawn(move || {
        let mut progress = super::run::Progress::new();
        compare(subject, expansion_limit, positions, &mut |text| progress.show(|| text.to_owned()))
    });
    let comparison = worker
        .map_err(|error| Failure::other(format!("cannot start the solver thread: {error}")))?
        .join()
        .map_err(|_| Failure::other("the comparison panicked, see the message above"))?;
    if json {
        print_json(&json_report(what, &comparison))?;
    } else {
        table(&comparison).iter().for_each(|line| print_line(line));
    }
    match comparison.contradictions.as_slice() {
        [] => Ok(PROVED),
        [first, ..] => Err(Failure::other(format!(
            "{} of the solves contradict the full solver, the first: {first}; one of them is wrong, please report it",
            comparison.contradictions.len()
        ))),
    }
}

/// Whether what a variant needs is only known to be at least so much.
fn is_open(suites: &[SuiteCounts]) -> bool {
    suites.iter().any(|suite| suite.unfinished > 0)
}

fn table(comparison: &Comparison) -> Vec<String> {
    let mut lines = vec![
        format!(
            "Ratios to the full solver: geometric mean over all positions (range of the suites' means). At most {} expansions a solve.",
            comparison.expansion_limit
        ),
        ">: some solves reached the limit, the ratio is at least that. f: so many ended because their pruned side failed.".to_owned(),
        format!("{:<34} {:>22} {:>22}  expansions by suite (positions)", "", "expansions", "time"),
    ];
    let heads = comparison.suites.iter().zip(&comparison.rows[0].suites).map(|(name, suite)| format!("{name} ({})", suite.positions));
    let widths: Vec<usize> = heads.clone().map(|head| head.len().max(12)).collect();
    let line = |name: &str, ratios: [String; 2], cells: &mut dyn Iterator<Item = String>| {
        let cells: String = cells.zip(&widths).map(|(cell, &width)| format!(" {cell:>width$}")).collect();
        format!("{name:<34} {:>22} {:>22} {cells}", ratios[0], ratios[1])
    };
    lines.push(line("", Default::default(), &mut heads.clone()));
    for row in &comparison.rows {
        let open = if is_open(&row.suites) { ">" } else { "" };
        let ratio = |ratio: &Ratio| format!("{open}{:.2} ({:.2}-{:.2})", ratio.mean, ratio.least, ratio.greatest);
        lines.push(line(row.name, [ratio(&row.expansions), ratio(&row.time)], &mut row.suites.iter().map(cell)));
    }
    if comparison.left_out > 0 {
        lines.push(format!("{} positions left out: the full solver reached the limit", comparison.left_out));
    }
    lines
}

fn cell(suite: &SuiteCounts) -> String {
    let open = if suite.unfinished > 0 { ">" } else { "" };
    let failed = if suite.failed > 0 { format!(" {}f", suite.failed) } else { String::new() };
    format!("{open}{}{failed}", suite.expansions)
}

fn json_report(what: What, comparison: &Comparison) -> Value {
    let ratio = |ratio: &Ratio| json!({"mean": ratio.mean, "least": ratio.least, "greatest": ratio.greatest});
    let suite = |(name, suite): (&&str, &SuiteCounts)| {
        json!({"suite": name, "positions": suite.positions, "unfinished": suite.unfinished, "pruned_side_failed": suite.failed,
            "expansions": suite.expansions.to_string(), "elapsed_seconds": suite.elapsed_seconds})
    };
    let row = |row: &VariantRow| {
        let suites: Vec<Value> = comparison.suites.iter().zip(&row.suites).map(suite).collect();
        json!({"variant": row.name, "expansion_ratio": ratio(&row.expansions), "time_ratio": ratio(&row.time),
            "at_least": is_open(&row.suites), "suites": suites})
    };
    let rows: Vec<Value> = comparison.rows.iter().map(row).collect();
    json!({"compared": what.name(), "threads": 1, "expansion_limit": comparison.expansion_limit.to_string(), "left_out": comparison.left_out,
        "contradictions": comparison.contradictions, "rows": rows})
}

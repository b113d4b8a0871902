//! The fixed bench suite: deterministic counts, one thread, a signature.

use crate::Table;
use superko_rules::Geometry;

/// One position of the suite.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchRow {
    /// Board, moves and komi, in words.
    pub name: String,
    /// `black` or `white`.
    pub winner: &'static str,
    /// Exact and repeatable.
    pub expansions: u64,
    /// Exact and repeatable.
    pub distinct_nodes: u64,
    /// Lemmas stored, exact and repeatable.
    pub lemmas: u64,
    /// Wall-clock time, not part of the signature.
    pub elapsed_seconds: f64,
}

/// The whole suite.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchReport {
    /// One row a position.
    pub rows: Vec<BenchRow>,
    /// Hash of names, winners and counts, 16 hex digits; changes exactly when the search behaves differently.
    pub signature: String,
}

/// Runs the suite, each position on a fresh table from `new_table`.
pub fn bench(new_table: &dyn Fn(&'static Geometry) -> Box<dyn Table>) -> BenchReport {
    let _ = new_table;
    todo!()
}

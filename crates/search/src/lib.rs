//! Proof search for Go under positional superko: lemmas, their composition and reuse, df-pn, the value search, and the slow
//! oracle that everything is compared with.
#![forbid(unsafe_code)]

mod bench;
mod board_set;
mod komi;
mod lemma;
mod lookup;
mod memory_table;
mod selftest;
mod solver;
mod table;
mod value;

pub use bench::{BenchReport, BenchRow, bench};
pub use board_set::{BoardSet, Cube, Print, bloom_of};
pub use komi::{Komi, KomiError};
pub use lemma::Lemma;
pub use lookup::{Bounds, Lookup, lookup};
pub use memory_table::MemoryTable;
pub use selftest::{SelftestOptions, SelftestReport, selftest};
pub use solver::{Control, Limits, Outcome, SearchStats, Stop, solve};
pub use table::{LemmaHead, LemmaSets, Numbers, PositionKey, SetsHandle, Table, position_key};
pub use value::{Proof, ValueSearch};

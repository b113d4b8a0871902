//! Proof search for Go under positional superko: lemmas, their composition and reuse, df-pn, the value search, and the slow
//! oracle that everything is compared with.
#![forbid(unsafe_code)]

mod ablation;
mod bench;
mod board_set;
mod certificate;
mod compose;
mod dfpn;
mod history;
mod komi;
mod lemma;
mod look_ahead;
mod lookup;
mod memory_table;
pub mod mutation;
mod number_rule;
mod oracle;
mod parallel;
pub mod prior;
mod prune;
mod region_claim;
mod region_game;
mod rng;
mod selftest;
mod solver;
mod static_leaf;
mod statistics;
mod table;
mod transfer;
mod value;

pub use ablation::{Ablated, Comparison, Ratio, Subject, SuiteCounts, VariantRow, compare};
pub use bench::{BenchReport, BenchRow, bench};
pub use board_set::{BoardSet, Cube, Print, SetPart, load_parts, map_prints, merge_prints};
pub use certificate::{ExportError, Exported, Statement, export};
pub use komi::{Komi, KomiError};
pub use lemma::Lemma;
pub use lookup::{Bounds, Lookup, lookup, lookup_all};
pub use memory_table::MemoryTable;
pub use number_rule::NumberRule;
pub use oracle::Oracle;
pub use parallel::MOST_THREADS;
pub use prior::Prior;
pub use region_game::RegionLimits;
pub use selftest::{CheckCertificate, NewTable, SelftestOptions, SelftestReport, selftest};
pub use solver::{Control, Limits, Options, Outcome, STACK_BYTES, SearchStats, Stop, on_large_stack, solve, solve_with};
pub use statistics::{Counter, Counters, Group, SharedCounters};
pub use table::{LemmaHead, LemmaSets, Numbers, PositionKey, SetsHandle, Table, position_key};
pub use value::{Proof, ValueSearch};

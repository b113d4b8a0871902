//! Solving one position at one komi.

use crate::{Komi, Table};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;
use superko_rules::{Color, Game, Move};

/// When to give up. `None` means no limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Expansions in this call.
    pub expansions: Option<u64>,
    /// Wall-clock time of this call.
    pub time: Option<Duration>,
}

/// Shared with the caller's other threads: a stop flag that is read every few hundred expansions, and counters that are flushed
/// there. Counters only ever grow; one `Control` may serve several `solve` calls in turn.
#[derive(Debug, Default)]
pub struct Control {
    /// Set to make the search return [`Stop::Asked`] at its next safe point (well within a second).
    pub stop: AtomicBool,
    /// Calls of the recursive procedure on a node (paper, section 2).
    pub expansions: AtomicU64,
    /// Positions expanded for the first time, as far as the table remembers.
    pub distinct_nodes: AtomicU64,
    /// Look-ups of a position's lemmas.
    pub probes: AtomicU64,
    /// Probes that found a lemma which decided the position under the current history.
    pub hits: AtomicU64,
    /// Probes that found lemmas, all of which failed the reuse test or the komi.
    pub rejected: AtomicU64,
    /// Lemmas stored.
    pub lemmas_stored: AtomicU64,
    /// Root proof number at the last safe point (of the root's side to move).
    pub root_phi: AtomicU64,
    /// Root disproof number at the last safe point.
    pub root_delta: AtomicU64,
}

/// Why a search ended without a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The expansion limit.
    Expansions,
    /// The time limit.
    Time,
    /// The stop flag.
    Asked,
}

/// Counts of one `solve` call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchStats {
    /// See [`Control::expansions`].
    pub expansions: u64,
    /// See [`Control::distinct_nodes`].
    pub distinct_nodes: u64,
    /// See [`Control::probes`].
    pub probes: u64,
    /// See [`Control::hits`].
    pub hits: u64,
    /// See [`Control::rejected`].
    pub rejected: u64,
    /// See [`Control::lemmas_stored`].
    pub lemmas_stored: u64,
}

/// What `solve` found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The winner at the komi asked for, with the margin that the proof achieves for that winner (own area less the other's); or
    /// why there is none.
    pub verdict: Result<(Color, i32), Stop>,
    /// The winner's move if the winner is to move at the root and the game is not over.
    pub best_move: Option<Move>,
    /// A line of best play as far as stored proofs show it; starts with `best_move` where there is one.
    pub principal_variation: Vec<Move>,
    /// Counts of this call.
    pub stats: SearchStats,
}

/// Decides who wins `game` at `komi`, with the table's lemmas and the whole superko history of the game.
///
/// Runs on the calling thread until proved, a limit, or `control.stop`. Deterministic for a given table content.
/// Panics if the table is for another board size.
pub fn solve(table: &dyn Table, game: &Game, komi: Komi, limits: Limits, control: &Control) -> Outcome {
    let _ = (table, game, komi, limits, control);
    todo!()
}

//! The fixed bench suite: deterministic counts, one thread, a signature.

use crate::board_set::mix;
use crate::{Control, Counters, Komi, Limits, Table, solve};
use std::time::Instant;
use superko_rules::{Game, Geometry, parse_board_size, parse_moves};

/// Board, moves from the empty board, and the margin asked of Black: the komi is half a point below it. Lines and rectangles, wins of
/// both sides, a full-board win, positions in the middle of a game with captures behind them; seconds in all.
const SUITE: [(&str, &str, i32); 12] = [
    ("1x9", "", 0),
    ("1x9", "", 1),
    ("1x10", "", 1),
    ("1x11", "", 3),
    ("2x3", "", 0),
    ("2x4", "B2 C1", 8),
    ("2x6", "", 12),
    ("3x3", "B3", 3),
    ("3x4", "", 4),
    ("3x4", "", 5),
    ("3x5", "C2 B2 C3", 15),
    ("4x4", "B2 C3 C2 B3", 3),
];

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
    /// What the searches counted, over all rows.
    pub statistics: Counters,
    /// Hash of names, winners and counts, 16 hex digits; changes exactly when the search behaves differently.
    pub signature: String,
}

/// Runs the suite, each position on a fresh table from `new_table`. Recurses like `solve`: give the thread a large stack.
pub fn bench(new_table: &dyn Fn(&'static Geometry) -> Box<dyn Table>) -> BenchReport {
    let control = Control::default();
    let rows: Vec<BenchRow> = SUITE.iter().map(|&(board, moves, margin)| run(new_table, board, moves, margin, &control)).collect();
    let hash = |state: u64, text: &str| text.bytes().fold(state, |state, byte| mix(state ^ u64::from(byte)).wrapping_add(1));
    let signature = rows.iter().fold(0, |state, row| {
        let state = hash(hash(state, &row.name), row.winner);
        [row.expansions, row.distinct_nodes, row.lemmas].iter().fold(state, |state, &count| mix(state ^ count).wrapping_add(1))
    });
    BenchReport { rows, statistics: control.counters.load(), signature: format!("{signature:016x}") }
}

fn run(new_table: &dyn Fn(&'static Geometry) -> Box<dyn Table>, board: &str, moves: &str, margin: i32, control: &Control) -> BenchRow {
    let geometry = parse_board_size(board).expect("the suite's boards exist");
    let mut game = Game::new(geometry);
    for mv in parse_moves(geometry, moves).expect("the suite's moves are vertices") {
        game.play(mv).expect("the suite's moves are legal");
    }
    let komi = Komi::below(margin);
    let table = new_table(geometry);
    let started = Instant::now();
    let outcome = solve(&*table, &game, komi, Limits::default(), control);
    let (winner, _) = outcome.verdict.expect("there is no limit");
    let name = if moves.is_empty() { format!("{board} komi {komi}") } else { format!("{board} after {moves} komi {komi}") };
    BenchRow {
        name,
        winner: winner.name(),
        expansions: outcome.stats.expansions,
        distinct_nodes: outcome.stats.distinct_nodes,
        lemmas: outcome.stats.lemmas_stored,
        elapsed_seconds: started.elapsed().as_secs_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryTable, Options, Prior, on_large_stack, solve_with};

    #[test]
    fn no_prior_changes_a_winner() {
        // Bad priors search deep.
        on_large_stack(compare_priors);
    }

    fn compare_priors() {
        let mut finished = 0;
        for (board, moves, margin) in SUITE {
            let geometry = parse_board_size(board).unwrap();
            let mut game = Game::new(geometry);
            for mv in parse_moves(geometry, moves).unwrap() {
                game.play(mv).unwrap();
            }
            let winner = |prior, limit| {
                let limits = Limits { expansions: Some(limit), time: None };
                let options = Options { prior, ..Options::default() };
                let table = MemoryTable::new(geometry);
                solve_with(options, &table, &game, Komi::below(margin), limits, &Control::default()).verdict.map(|(winner, _)| winner)
            };
            let expected = winner(Prior::builtin(), u64::MAX);
            // A bad prior can cost any number of expansions.
            for prior in [Prior::uniform(), Prior::random(1), Prior::random(2)] {
                let found = winner(Box::leak(Box::new(prior)), 30_000);
                finished += usize::from(found.is_ok());
                assert!(found.is_err() || found == expected, "{board} after {moves}: {found:?}, expected {expected:?}");
            }
        }
        assert!(finished >= 12, "only {finished} solves finished");
    }

    #[test]
    fn the_suite_repeats_exactly() {
        let run = || bench(&|geometry| Box::new(MemoryTable::new(geometry)));
        let (first, second) = (run(), run());
        assert_eq!(first.signature, second.signature);
        assert!(first.rows.iter().all(|row| row.expansions > 0));
    }
}

//! Fault injection as in section 8.1 of the paper: how often does a wrongly accepted or damaged lemma change a verdict?
//! Run with `cargo test -p superko-search --features mutation --test fault_injection -- --nocapture`; `SUPERKO_FAULT_ROUNDS` (default 4)
//! sets how many solves of each position are made for each fault.
#![cfg(feature = "mutation")]

use superko_rules::{Color, Game, parse_board_size};
use superko_search::mutation::{Fault, inject};
use superko_search::{Control, Komi, Limits, MemoryTable, on_large_stack, solve};

/// Boards with their values (`README.md`): each is solved just below and just above.
const BOARDS: [(&str, i32); 8] = [("1x7", 2), ("1x8", 3), ("1x9", 0), ("2x3", 0), ("2x4", 8), ("2x5", 10), ("3x3", 9), ("3x4", 4)];

struct Rates {
    solves: u32,
    faults: u64,
    /// Solves that ended with the wrong winner.
    wrong: u32,
    /// Solves that did not end: a search led round in circles.
    unfinished: u32,
}

fn rates(fault: Fault, one_in: u64, rounds: u64) -> Rates {
    let mut rates = Rates { solves: 0, faults: 0, wrong: 0, unfinished: 0 };
    for (board, value) in BOARDS {
        let geometry = parse_board_size(board).unwrap();
        let points = geometry.points() as i32;
        for (margin, winner) in [(value, Color::Black), (value + 1, Color::White)] {
            for seed in 0..if margin > points { 0 } else { rounds } {
                inject(Some(fault), one_in, seed);
                let limits = Limits { expansions: Some(300_000), time: None };
                let outcome = solve(&MemoryTable::new(geometry), &Game::new(geometry), Komi::below(margin), limits, &Control::default());
                rates.faults += inject(None, 1, 0);
                rates.solves += 1;
                match outcome.verdict {
                    Ok((said, _)) => rates.wrong += u32::from(said != winner),
                    Err(_) => rates.unfinished += 1,
                }
            }
        }
    }
    rates
}

#[test]
fn how_often_a_fault_changes_a_verdict() {
    let rounds = std::env::var("SUPERKO_FAULT_ROUNDS").map_or(4, |rounds| rounds.parse().expect("SUPERKO_FAULT_ROUNDS is a number"));
    on_large_stack(|| {
        for fault in [Fault::UnsoundReuse, Fault::ReversedWinner, Fault::TornEntry] {
            for one_in in [1, 1000, 100] {
                let Rates { solves, faults, wrong, unfinished } = rates(fault, one_in, if one_in == 1 { 1 } else { rounds });
                println!("{fault:?}, one in {one_in}: {faults} faults in {solves} solves, {wrong} wrong verdicts, {unfinished} unfinished");
                assert!(faults > 0, "{fault:?} never struck");
                // The experiment can tell: where every chance is a fault, verdicts do change.
                assert!(one_in > 1 || fault == Fault::TornEntry || wrong > 0, "{fault:?} everywhere, and no verdict changes");
            }
        }
    });
}

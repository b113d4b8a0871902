//! A solver without one of its soundness conditions writes certificates that the checker refuses, or true ones.
//! Run with `cargo test -p superko-search --features mutation --test certificates`.
#![cfg(feature = "mutation")]

use superko_rules::{Game, parse_board_size};
use superko_search::mutation::{Dropped, drop_condition};
use superko_search::{Control, ExportError, Komi, Limits, MemoryTable, Options, Prior, Statement, export, on_large_stack, solve_with};

/// What became of the certificates of a solver.
#[derive(Debug, Default, PartialEq)]
struct Tally {
    accepted: u32,
    /// Refused, or not to be written since the parts do not fit.
    refused: u32,
    /// Wrong winners, none of them among those accepted.
    wrong: u32,
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// Solves every position of random games on one table without `condition`, and exports what it believes.
fn tally(condition: Option<Dropped>, board: &str, games: u64) -> Tally {
    let geometry = parse_board_size(board).unwrap();
    let prior = Box::leak(Box::new(Prior::uniform()));
    let (options, limits) = (Options { prior, ..Options::default() }, Limits { expansions: Some(20_000), time: None });
    let mut tally = Tally::default();
    for seed in 0..games {
        let mut random = Random(seed);
        let (mut game, table) = (Game::new(geometry), MemoryTable::new(geometry));
        for _ in 0..3 * geometry.points() {
            let moves = game.legal_moves();
            game.play(moves[random.below(moves.len())]).unwrap();
            if game.is_over() {
                game.undo();
            }
            let komi = Komi::below(random.below(2 * geometry.points()) as i32 + 1 - geometry.points() as i32);
            drop_condition(condition);
            let outcome = solve_with(options, &table, &game, komi, limits, &Control::default());
            let Ok((winner, _)) = outcome.verdict else { continue };
            let mut bytes = Vec::new();
            let written = MemoryTable::new(geometry);
            let statement = Statement { game: &game, komi, winner };
            let exported = export(&table, &written, &statement, options, limits, &Control::default(), &mut bytes);
            drop_condition(None);
            let checked = match exported {
                Ok(_) => superko_check::check(&bytes[..], &mut |_| {}).is_ok(),
                Err(ExportError::Stopped(_)) => continue,
                Err(_) => false,
            };
            let truth = solve_with(options, &MemoryTable::new(geometry), &game, komi, Limits::default(), &Control::default());
            let right = truth.verdict.unwrap().0 == winner;
            assert!(
                right || !checked,
                "{condition:?}: a false certificate is accepted: {board}, seed {seed}, komi {komi}, {:?}",
                game.moves()
            );
            tally.accepted += u32::from(checked);
            tally.refused += u32::from(!checked);
            tally.wrong += u32::from(!right);
        }
    }
    tally
}

#[test]
fn a_sound_solver_writes_nothing_else() {
    for board in ["1x5", "1x6", "2x3", "2x4"] {
        let tally = on_large_stack(|| tally(None, board, 20));
        assert!(tally.refused == 0 && tally.wrong == 0 && tally.accepted > 100, "{board}: {tally:?}");
    }
}

#[test]
fn an_unsound_solver_is_found_out() {
    for (condition, board, games) in [
        (Dropped::Created, "2x3", 40),
        (Dropped::Excluded, "2x3", 40),
        (Dropped::Territory, "2x3", 40),
        (Dropped::C1, "2x3", 40),
        (Dropped::C2, "2x3", 40),
        (Dropped::Pureness, "1x6", 40),
        (Dropped::AheadC1, "2x3", 40),
        (Dropped::AheadTerritory, "2x3", 40),
        (Dropped::AheadC2, "2x4", 40),
        (Dropped::AheadAtari, "2x4", 40),
        (Dropped::AheadOccupied, "2x3", 40),
        (Dropped::ComposeExcluded, "1x5", 40),
        (Dropped::ComposeCreated, "1x5", 40),
        (Dropped::ComposeTerritory, "2x4", 40),
        (Dropped::Margin, "1x5", 40),
        (Dropped::PassBack, "1x5", 40),
        (Dropped::Symmetry, "2x3", 40),
    ] {
        let tally = on_large_stack(|| tally(Some(condition), board, games));
        println!("{condition:?} on {board}: {tally:?}");
        assert!(tally.refused > 0, "{condition:?} on {board}: {tally:?}");
    }
}

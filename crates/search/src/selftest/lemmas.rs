//! Lemmas put to the oracle: is what they state true under every history that meets their conditions?

use super::draw::{draw_board, draw_future, draw_near};
use super::{Case, Judged};
use crate::board_set::KnownBoard;
use crate::rng::Rng;
use crate::{Komi, Lemma, MemoryTable, Options, PositionKey, Table};
use superko_rules::{Board, Color, Game, Setup};

/// Lemmas drawn from the table of one case.
const LEMMAS: usize = 12;

/// Histories made for each of them.
const HISTORIES: usize = 3;

/// A condition of reuse that a made-up history may break on purpose.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Broken {
    Nothing,
    /// (i): some boards of `B` are there.
    Created,
    /// (ii): some boards of `X` are not.
    Excluded,
    /// (iii): some boards have winner stones on `T`.
    Territory,
}

impl Case<'_> {
    pub(super) fn check_lemmas(&mut self, table: &MemoryTable, judged: &[Judged]) {
        let mut lemmas = table.all_lemmas();
        // The map's order differs from run to run; a case must not.
        lemmas.sort_by_key(|(key, lemma)| {
            (*key, lemma.winner == Color::White, lemma.margin, lemma.cost, lemma.excluded.clone(), lemma.territory)
        });
        self.rng.shuffle(&mut lemmas);
        // Lemmas with conditions first: they are what can go wrong.
        lemmas.sort_by_key(|(_, lemma)| std::cmp::Reverse(usize::from(!lemma.excluded.is_empty()) + usize::from(lemma.territory != 0)));
        let pool: Vec<Board> = judged.iter().flat_map(|judged| judged.game.boards().iter().copied()).collect();
        let every = (lemmas.len() / LEMMAS).max(1);
        for (key, lemma) in lemmas.iter().step_by(every) {
            for broken in [Broken::Nothing; HISTORIES].into_iter().chain([Broken::Created, Broken::Excluded, Broken::Territory]) {
                self.check_lemma(table, *key, lemma, &pool, broken);
                if self.ends() {
                    return;
                }
            }
        }
    }

    fn check_lemma(&mut self, table: &MemoryTable, key: PositionKey, lemma: &Lemma, pool: &[Board], broken: Broken) {
        let empty_condition = match broken {
            Broken::Nothing => false,
            Broken::Created => lemma.created.prints().is_empty(),
            Broken::Excluded => lemma.excluded.is_empty(),
            Broken::Territory => lemma.territory == 0,
        };
        if empty_condition {
            return;
        }
        let geometry = self.geometry;
        let plain = Setup {
            board: geometry.decode(key / 4),
            to_move: if key & 2 == 0 { Color::Black } else { Color::White },
            passes: (key & 1) as u8,
            earlier: Vec::new(),
        };
        let earlier = history(&mut self.rng, table, &plain, lemma, pool, broken);
        let game = Game::from_setup(geometry, Setup { earlier, ..plain }).expect("boards of play and drawn boards are legal");
        let margin = i32::from(lemma.margin);
        let (komi, wanted) = match lemma.winner {
            Color::Black => (Komi::below(margin), true),
            Color::White => (Komi::below(1 - margin), false),
        };
        let Some(black_wins) = self.oracle.black_wins(&game, komi) else {
            self.report.skipped += 1;
            return;
        };
        let holds = black_wins == wanted;
        // The solver finds the lemma in the table and must judge for itself whether it serves here.
        let points = geometry.points() as i32;
        let need = komi.need(Color::Black);
        let bounds = if black_wins { (need, points) } else { (-points, need - 1) };
        self.compare_bounds("the table of the lemmas, a history made for one of them", Options::default(), table, &game, bounds, komi);
        if broken != Broken::Nothing {
            if !holds {
                self.count(match broken {
                    Broken::Created => "lemmas refuted outside condition (i)",
                    Broken::Excluded => "lemmas refuted outside condition (ii)",
                    _ => "lemmas refuted outside condition (iii)",
                });
            }
            return;
        }
        self.report.comparisons += 1;
        self.count("lemmas checked");
        if !lemma.excluded.is_empty() {
            self.count("lemmas checked, X not empty");
        }
        if lemma.territory != 0 {
            self.count("lemmas checked, T not empty");
        }
        if !holds {
            let what = format!(
                "a stored lemma says {} wins by {margin} (X {:?}, T {:#x}, best {:?}), the history below meets its conditions, and the oracle refutes it",
                lemma.winner.name(),
                lemma.excluded,
                lemma.territory,
                lemma.best,
            );
            self.mismatch(&game, &what);
        }
    }
}

/// Earlier boards that meet the lemma's conditions, or all but one of them: first of all boards that play from here may create, since
/// only those take moves away.
fn history(rng: &mut Rng, table: &MemoryTable, plain: &Setup, lemma: &Lemma, pool: &[Board], broken: Broken) -> Vec<Board> {
    let geometry = table.geometry();
    let mut earlier = lemma.excluded.clone();
    if broken == Broken::Excluded {
        let keep = rng.below(earlier.len());
        rng.shuffle(&mut earlier);
        earlier.truncate(keep);
    }
    let start = Game::from_setup(geometry, Setup { earlier: earlier.clone(), ..plain.clone() }).expect("the boards are legal");
    let creator = if rng.one_in(2) { Some(lemma.winner) } else { None };
    let (lines, depth) = (1 + rng.below(12), 1 + rng.below(2 * geometry.points()));
    let mut drawn = draw_future(rng, &start, creator, lines, depth);
    for _ in 0..rng.below(8) {
        drawn.push(draw_near(rng, geometry, plain.board));
    }
    if rng.one_in(2) {
        drawn.push(draw_board(rng, geometry));
        let sym = rng.below(geometry.symmetries()) as u8;
        drawn.extend(pool.iter().map(|&board| geometry.map_board(sym, board)));
    }
    let keep_one_in = 1 + rng.below(3);
    drawn.retain(|_| rng.one_in(keep_one_in));
    drawn.retain(|&board| {
        let known = KnownBoard::new(board, geometry.canonical(board));
        let created = lemma.created.may_contain(table, &known);
        let stood = board.stones(lemma.winner) & lemma.territory != 0;
        let left_out = broken == Broken::Excluded && lemma.excluded.contains(&board);
        (broken == Broken::Created || !created) && (broken == Broken::Territory || !stood) && !left_out
    });
    earlier.extend(drawn);
    earlier.retain(|&board| board != plain.board);
    earlier
}

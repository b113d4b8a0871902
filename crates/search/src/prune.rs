//! Winner-side pruning (paper, end of section 4 and A.5): moves of the side to be proven that fill its own single-point eyes or play
//! inside its own certified territory are skipped, all but the first at each node.
//!
//! Sound: a win of the pruned side rests on one move of its own at each of its nodes and on every legal move of the other side, which
//! is never pruned. Taking moves from the winner takes proofs away and adds none, so its wins compose as ever and are lemmas.
//!
//! Not complete: a skipped move can be the only winning one (it changes the board, and superko may need just that). A loss of the
//! pruned side at a node where moves were skipped is therefore no proof, and no more is anything composed from it
//! ([`crate::dfpn::Source::Assumed`]). Such a result never enters the shared table and is never a verdict. Within its own search it
//! may be believed: all that follows is that the pruned side gives up there, as if one more of its moves were pruned. So each search
//! keeps its own here, with the conditions of a lemma (a position given up under one history is tried again under another), and
//! forgets them at its end. A loss of the pruned side under which no move was skipped anywhere is a lemma like any other.

use crate::mutation::{Dropped, dropped};
use crate::{Lemma, MemoryTable, PositionKey, Table};
use superko_rules::{Board, Color, Geometry, bits};

/// What the results given up may take; past it they are forgotten together. They come on top of the table, in pruned searches only.
const MOST_BYTES: usize = 64 << 20;

/// Memory of a lemma in a `MemoryTable`, besides its boards.
const LEMMA_BYTES: usize = 384;

/// The pruned side of a search, with what the search has given up.
#[derive(Debug)]
pub(crate) struct Pruning {
    pub side: Color,
    /// Wins of the other side that rest on skipped moves.
    pub given_up: MemoryTable,
    bytes: usize,
}

impl Pruning {
    pub fn new(side: Color, geometry: &'static Geometry) -> Pruning {
        Pruning { side, given_up: MemoryTable::new(geometry), bytes: 0 }
    }

    /// Keeps a result that rests on skipped moves, for this search only. `lemma` is in the canonical frame.
    pub fn give_up(&mut self, key: PositionKey, lemma: &Lemma) {
        debug_assert_eq!(lemma.winner, self.side.opponent(), "wins of the pruned side rest on no skipped move");
        self.bytes += LEMMA_BYTES + size_of_val(lemma.created.prints()) + size_of_val(&lemma.excluded[..]);
        if self.bytes > MOST_BYTES {
            *self = Pruning::new(self.side, self.given_up.geometry());
        }
        self.given_up.store_lemma(key, lemma);
    }
}

/// The points that `side` rarely has reason to play on: its single-point eyes, and the certified `territory`.
pub(crate) fn idle_points(geometry: &Geometry, board: Board, side: Color, territory: u64) -> u64 {
    let empty = geometry.full() & !board.occupied();
    let own = board.stones(side);
    let eyes = bits(empty).filter(|&point| geometry.neighbors(1 << point) & !own == 0).fold(0, |eyes, point| eyes | 1 << point);
    (eyes | territory) & empty
}

/// Whether a node where moves were `skipped` marks its loss as no proof.
pub(crate) fn marks(skipped: bool) -> bool {
    skipped && !dropped(Dropped::PruneSkipped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use superko_rules::{Move, board_from_rows, parse_board_size};

    #[test]
    fn own_eyes_and_certified_territory_are_idle() {
        let geometry = parse_board_size("2x4").unwrap();
        let board = board_from_rows(geometry, &[".XO.", "XX.."]).unwrap();
        let point = |vertex| match Move::parse(geometry, vertex) {
            Ok(Move::Stone(point)) => 1u64 << point,
            other => panic!("{other:?}"),
        };
        assert_eq!(idle_points(geometry, board, Color::Black, 0), point("A2"));
        assert_eq!(idle_points(geometry, board, Color::White, 0), 0);
        let territory = point("C1") | point("C2");
        assert_eq!(idle_points(geometry, board, Color::Black, territory), point("A2") | point("C1"), "only empty points");
    }
}

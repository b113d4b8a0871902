//! Lemmas: the only kind of proven result (theory, Lemma).

use crate::BoardSet;
use superko_rules::{Board, Color, Geometry, Move};

/// "Under every set `H'` of earlier boards that contains the position's own board and satisfies (i) `B ∩ H' = ∅`, (ii) `X ⊆ H'`
/// and (iii) no board of `H'` has a stone of the winner on a point of `T`, the winner wins by at least `margin`."
///
/// A lemma speaks of a position, never of a path; the position itself is the key under which it is kept. `B` and `T` may be
/// larger than the proof needs, never smaller; `X` holds every board the proof relied on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lemma {
    /// `w`.
    pub winner: Color,
    /// `m`: the winner's area less the loser's, in points, that the proof really achieves.
    pub margin: i8,
    /// The winning move if the winner is to move.
    pub best: Option<Move>,
    /// `B`: boards that the winner's stone moves create.
    pub created: BoardSet,
    /// `X`: earlier boards that made a reply of the loser illegal. Sorted, without repetition.
    pub excluded: Vec<Board>,
    /// `T`: points certified as territory at static leaves. No winner stone stands on them.
    pub territory: u64,
    /// Expansions spent on the proof, for replacement in the table.
    pub cost: u64,
    /// Names the lemma for whoever keeps it in a table of their own, below 2^40; 0 in a table of proofs.
    pub number: u64,
}

impl Lemma {
    /// A leaf that needs nothing of the history but `territory`.
    pub(crate) fn leaf(winner: Color, margin: i32, territory: u64) -> Lemma {
        Lemma {
            winner,
            margin: margin as i8,
            best: None,
            created: BoardSet::default(),
            excluded: Vec::new(),
            territory,
            cost: 0,
            number: 0,
        }
    }

    /// The same lemma about the image of its position under `sym`: rules and scores are invariant, so the images of `B`, `X` and
    /// `T` serve (theory, Symmetry).
    pub fn map(mut self, geometry: &Geometry, sym: u8) -> Lemma {
        if sym == 0 {
            return self;
        }
        for board in &mut self.excluded {
            *board = geometry.map_board(sym, *board);
        }
        self.excluded.sort_unstable();
        self.created = self.created.map(geometry, sym);
        self.territory = geometry.map_mask(sym, self.territory);
        self.best = self.best.map(|mv| geometry.map_move(sym, mv));
        self
    }
}

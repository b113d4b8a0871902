//! Finding a position's value by proofs at neighbouring komi.

use crate::{Komi, Outcome};
use superko_rules::{Color, Game};

/// A proof that the value search rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The komi it was made at.
    pub komi: Komi,
    /// What `solve` said.
    pub outcome: Outcome,
}

/// Which komi to ask next, and what is known: Black's margin lies within `[lower, upper]`.
#[derive(Clone, Debug)]
pub struct ValueSearch {
    points: i32,
    lower: i32,
    upper: i32,
    proofs: Vec<Proof>,
}

impl ValueSearch {
    /// Nothing known but the board's size.
    pub fn new(game: &Game) -> Self {
        let points = game.geometry().points() as i32;
        ValueSearch { points, lower: -points, upper: points, proofs: Vec::new() }
    }

    /// `(lower, upper)`: Black's margin under best play lies between them, ends included.
    pub fn bounds(&self) -> (i32, i32) {
        (self.lower, self.upper)
    }

    /// The value, once known.
    pub fn value(&self) -> Option<i32> {
        (self.lower == self.upper).then_some(self.lower)
    }

    /// Bounds known from elsewhere (an earlier run, stored lemmas) narrow the search; the proofs are still made at the end.
    pub fn narrow(&mut self, lower: i32, upper: i32) {
        self.lower = self.lower.max(lower);
        self.upper = self.upper.min(upper);
    }

    /// The komi to solve next; `None` when the value is known and both its proofs are at hand.
    pub fn next_komi(&self) -> Option<Komi> {
        if let Some(value) = self.value() {
            // The proofs at the value itself; where a harder one achieved more than it was asked, its lemma answers at once.
            return self.bounding_komi(value).into_iter().flatten().find(|&komi| self.proof_at(komi).is_none());
        }
        // Ask for the middle: is the value at least half-way up?
        Some(Komi::below(self.lower + (self.upper - self.lower + 1) / 2))
    }

    /// The komi just below and just above `value`; none where no margin lies beyond.
    fn bounding_komi(&self, value: i32) -> [Option<Komi>; 2] {
        [(value > -self.points).then(|| Komi::below(value)), (value < self.points).then(|| Komi::below(value + 1))]
    }

    fn proof_at(&self, komi: Komi) -> Option<&Proof> {
        self.proofs.iter().find(|proof| proof.komi == komi)
    }

    /// Takes in what `solve` said at `komi` (a verdict only; a stopped search changes nothing).
    pub fn record(&mut self, komi: Komi, outcome: Outcome) {
        if let Ok((winner, margin)) = outcome.verdict {
            match winner {
                Color::Black => self.lower = self.lower.max(margin),
                Color::White => self.upper = self.upper.min(-margin),
            }
            self.proofs.push(Proof { komi, outcome });
        }
    }

    /// The proofs of the value: Black's win at value − ½ (absent if the value is the least possible) and White's at value + ½
    /// (absent if it is the whole board).
    pub fn proofs(&self) -> Vec<&Proof> {
        self.value().into_iter().flat_map(|value| self.bounding_komi(value)).flatten().filter_map(|komi| self.proof_at(komi)).collect()
    }
}

//! What is already proven about a position, without any search.

use crate::Table;
use superko_rules::{Game, Illegal, Move};

/// Black's margin under best play lies within `lower..=upper`; nothing known means minus to plus the number of points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Least possible margin, in points.
    pub lower: i32,
    /// Greatest possible margin, in points.
    pub upper: i32,
}

/// What is known of a position and of each move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// Of the position itself.
    pub bounds: Bounds,
    /// For every point that is empty, and the pass: the bounds after the move, or why it is illegal. Empty when the game is over.
    pub moves: Vec<(Move, Result<Bounds, Illegal>)>,
}

/// Looks a game up in the tables' lemmas, under the reuse test against the game's own history.
pub fn lookup(tables: &[&dyn Table], game: &Game) -> Lookup {
    let _ = (tables, game);
    todo!()
}

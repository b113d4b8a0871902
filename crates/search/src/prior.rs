//! First proof and disproof numbers of an unexpanded position: a hand-set logistic guess of who wins. It only orders the search.

use crate::Numbers;
use superko_rules::{Board, Color, Geometry, Position, bits};

/// Scale of the numbers: a sure win starts near 1, an even position near `1 + SCALE * ln 2` (paper, section 5; findings 2 on the scale).
const SCALE: f64 = 512.0;

/// What the guess needs to know of one player's stones.
struct Side {
    /// Stones, and empty points that this player reaches first.
    reach: i32,
    /// Stones in chains with a single liberty.
    atari: i32,
    /// Empty points that only this player's stones touch.
    eyes: i32,
}

fn side(geometry: &Geometry, board: Board, color: Color) -> Side {
    let (own, other) = (board.stones(color), board.stones(color.opponent()));
    let empty = geometry.full() & !board.occupied();
    let (mut near, mut other_near) = (own, other);
    for _ in 0..2 {
        let grown = geometry.neighbors(near) & empty & !other_near;
        let other_grown = geometry.neighbors(other_near) & empty & !near;
        near |= grown & !other_grown;
        other_near |= other_grown & !grown;
    }
    let breathless = |chain: &u64| (geometry.neighbors(*chain) & empty).count_ones() == 1;
    let atari = geometry.components(own).filter(breathless).map(u64::count_ones).sum::<u32>() as i32;
    let touched = geometry.neighbors(other);
    let eyes = bits(empty & !touched).filter(|&point| geometry.neighbors(1 << point) & !own == 0).count() as i32;
    Side { reach: near.count_ones() as i32, atari, eyes }
}

/// The guess for `position` at a komi that asks `need_black` of Black.
pub(crate) fn numbers(geometry: &Geometry, position: Position, need_black: i32) -> Numbers {
    let mover = side(geometry, position.board, position.to_move);
    let other = side(geometry, position.board, position.to_move.opponent());
    let komi = f64::from(need_black) - 0.5;
    let ahead = f64::from(mover.reach - other.reach) - if position.to_move == Color::Black { komi } else { -komi };
    // Weights set by hand, by coordinate steps on the expansions of 1x10, 1x11, 2x6, 3x4, 3x5 and 4x4. Area counts most; the mover
    // may still save a chain in atari, the other side may not.
    let logit =
        0.9 * ahead / f64::from(geometry.points() as u32).sqrt() + 1.2 + 2.0 * f64::from(mover.eyes - other.eyes) + f64::from(other.atari)
            - 0.3 * f64::from(mover.atari);
    let logit = (1.28 * logit).clamp(-12.0, 12.0);
    // -ln p and -ln (1 - p) of the logistic function.
    let minus_ln = |x: f64| (-x).exp().ln_1p();
    Numbers { phi: 1 + (SCALE * minus_ln(logit)) as u32, delta: 1 + (SCALE * minus_ln(-logit)) as u32, cost: 0 }
}

//! First proof and disproof numbers of an unexpanded position: a hand-set logistic guess of who wins. It only orders the search.

use crate::Numbers;
use superko_rules::{Board, Color, Geometry, Position, bits};

/// Scale of the numbers: a sure win starts near 1, an even position near `1 + SCALE * ln 2` (paper, section 5; findings 2 on the scale).
const SCALE: f64 = 256.0;

/// What the guess needs to know of one player's stones.
struct Side {
    /// Stones, and empty points that this player reaches first.
    reach: i32,
    /// Stones in chains with a single liberty, and in chains with two.
    atari: i32,
    thin: i32,
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
    let (mut atari, mut thin) = (0, 0);
    for chain in geometry.components(own) {
        match (geometry.neighbors(chain) & empty).count_ones() {
            1 => atari += chain.count_ones() as i32,
            2 => thin += chain.count_ones() as i32,
            _ => {}
        }
    }
    let touched = geometry.neighbors(other);
    let eyes = bits(empty & !touched).filter(|&point| geometry.neighbors(1 << point) & !own == 0).count() as i32;
    Side { reach: near.count_ones() as i32, atari, thin, eyes }
}

/// The guess for `position` at a komi that asks `need_black` of Black.
pub(crate) fn numbers(geometry: &Geometry, position: Position, need_black: i32) -> Numbers {
    let mover = side(geometry, position.board, position.to_move);
    let other = side(geometry, position.board, position.to_move.opponent());
    let komi = f64::from(need_black) - 0.5;
    let ahead = f64::from(mover.reach - other.reach) - if position.to_move == Color::Black { komi } else { -komi };
    // Weights set by hand: area counts most; the mover may still save a chain in atari, the other side may not.
    let points = geometry.points() as f64;
    let logit = 3.0 * ahead / points.sqrt() / 2.0 + 0.6 + 0.5 * f64::from(mover.eyes - other.eyes) + 0.25 * f64::from(other.atari)
        - 0.1 * f64::from(mover.atari)
        + 0.1 * f64::from(other.thin - mover.thin);
    let logit = (logit / 2.0).clamp(-12.0, 12.0);
    // -ln p and -ln (1 - p) of the logistic function.
    let minus_ln = |x: f64| (-x).exp().ln_1p();
    Numbers { phi: 1 + (SCALE * minus_ln(logit)) as u32, delta: 1 + (SCALE * minus_ln(-logit)) as u32, cost: 0 }
}

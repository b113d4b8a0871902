//! The paper's logistic model of the probability that Black wins (section 5): 14 features, from one pass over the board.

#![allow(clippy::needless_range_loop, reason = "loops over rows and columns of matrices")]

use super::math;
use superko_rules::{Color, Geometry, Position};

pub(super) const FEATURES: usize = 14;

/// A constant, the side to move, the komi; for each player stones, eye points, chains in atari, chains with two liberties, liberties;
/// and White's points that touch no Black stone. Point counts are divided by the points of the board, chain counts by four.
pub(super) fn features(geometry: &Geometry, position: Position, need_black: i32) -> [f64; FEATURES] {
    let board = position.board;
    let empty = geometry.full() & !board.occupied();
    let points = |set: u64| f64::from(set.count_ones()) / geometry.points() as f64;
    let player = |color: Color| {
        let own = board.stones(color);
        let (mut atari, mut two) = (0, 0);
        for chain in geometry.components(own) {
            match (geometry.neighbors(chain) & empty).count_ones() {
                1 => atari += 1,
                2 => two += 1,
                _ => {}
            }
        }
        let eyes = empty & !geometry.neighbors(geometry.full() & !own);
        [points(own), points(eyes), f64::from(atari) / 4.0, f64::from(two) / 4.0, points(geometry.neighbors(own) & empty)]
    };
    let [black, white] = [Color::Black, Color::White].map(player);
    let mover = if position.to_move == Color::Black { 1.0 } else { -1.0 };
    let mut all = [0.0; FEATURES];
    all[..3].copy_from_slice(&[1.0, mover, (f64::from(need_black) - 0.5) / geometry.points() as f64]);
    all[3..8].copy_from_slice(&black);
    all[8..13].copy_from_slice(&white);
    all[13] = points(geometry.full() & !board.black & !geometry.neighbors(board.black));
    all
}

/// The logit that Black wins.
pub(super) fn logit(weights: &[f32], features: &[f64; FEATURES]) -> f64 {
    features.iter().zip(weights).fold(0.0, |sum, (&feature, &weight)| sum + feature * f64::from(weight))
}

/// Weights of least log loss on `(features, whether Black won)`, by Newton's method with a slight pull towards zero, which keeps
/// separable samples finite.
pub(super) fn fit(samples: &[([f64; FEATURES], bool)]) -> [f32; FEATURES] {
    const PULL: f64 = 1e-3;
    let mut weights = [0.0f64; FEATURES];
    for _ in 0..30 {
        let mut slope = weights.map(|weight| PULL * weight);
        let mut curve = [[0.0; FEATURES]; FEATURES];
        for (index, row) in curve.iter_mut().enumerate() {
            row[index] = PULL;
        }
        for (features, won) in samples {
            let logit = features.iter().zip(&weights).fold(0.0, |sum, (&feature, &weight)| sum + feature * weight);
            let p = math::logistic(logit);
            let miss = p - f64::from(u8::from(*won));
            for row in 0..FEATURES {
                slope[row] += miss * features[row];
                for column in 0..FEATURES {
                    curve[row][column] += p * (1.0 - p) * features[row] * features[column];
                }
            }
        }
        let step = solve(curve, slope);
        let longest = step.iter().fold(0.0f64, |most, part| most.max(part.abs()));
        // Full steps overshoot while most samples are still misjudged.
        let scale = (4.0 / longest.max(4.0)).min(1.0);
        for (weight, part) in weights.iter_mut().zip(step) {
            *weight -= scale * part;
        }
        if longest < 1e-9 {
            break;
        }
    }
    weights.map(|weight| weight as f32)
}

/// The solution of a positive definite system, by elimination.
fn solve(mut matrix: [[f64; FEATURES]; FEATURES], mut right: [f64; FEATURES]) -> [f64; FEATURES] {
    for pivot in 0..FEATURES {
        for row in pivot + 1..FEATURES {
            let factor = matrix[row][pivot] / matrix[pivot][pivot];
            for column in pivot..FEATURES {
                matrix[row][column] -= factor * matrix[pivot][column];
            }
            right[row] -= factor * right[pivot];
        }
    }
    for row in (0..FEATURES).rev() {
        for column in row + 1..FEATURES {
            right[row] -= matrix[row][column] * right[column];
        }
        right[row] /= matrix[row][row];
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prior::rng;
    use crate::rng::Rng;

    #[test]
    fn a_planted_model_is_recovered() {
        let mut rng = rng(3);
        let planted: [f64; FEATURES] = std::array::from_fn(|index| if index % 3 == 0 { 1.5 } else { -0.7 * index as f64 / 5.0 });
        let sample = |rng: &mut Rng| {
            let features: [f64; FEATURES] = std::array::from_fn(|index| if index == 0 { 1.0 } else { 2.0 * f64::from(rng.unit()) - 1.0 });
            let logit = features.iter().zip(&planted).fold(0.0, |sum, (x, w)| sum + x * w);
            (features, f64::from(rng.unit()) < math::logistic(logit))
        };
        let samples: Vec<_> = (0..60_000).map(|_| sample(&mut rng)).collect();
        for (found, planted) in fit(&samples).into_iter().zip(planted) {
            assert!((f64::from(found) - planted).abs() < 0.1, "{found} instead of {planted}");
        }
    }
}

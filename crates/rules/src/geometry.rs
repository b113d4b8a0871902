//! The shape of a board: points, neighbours and the symmetry tables, shared as `&'static Geometry`.

use crate::symmetry::SymmetryTables;
use std::sync::OnceLock;

/// Longest side of a board.
pub const MAX_SIDE: usize = 8;

/// A rectangular board of `rows` × `cols` points. Point `row * cols + col` counts rows from the bottom, so point 0 is `A1`.
/// A set of points is a `u64` with one bit a point.
#[derive(Debug)]
pub struct Geometry {
    rows: usize,
    cols: usize,
    points: usize,
    full: u64,
    not_first_col: u64,
    not_last_col: u64,
    pub(crate) symmetry: SymmetryTables,
}

impl Geometry {
    /// The shared geometry of a `rows` × `cols` board, or `None` outside 1×1 to 8×8.
    pub fn get(rows: usize, cols: usize) -> Option<&'static Geometry> {
        static ALL: [[OnceLock<Geometry>; MAX_SIDE]; MAX_SIDE] = [const { [const { OnceLock::new() }; MAX_SIDE] }; MAX_SIDE];
        if !(1..=MAX_SIDE).contains(&rows) || !(1..=MAX_SIDE).contains(&cols) {
            // Linear boards longer than eight points are one row (or column) folded into the same bit-board.
            return Self::linear(rows, cols);
        }
        Some(ALL[rows - 1][cols - 1].get_or_init(|| Geometry::new(rows, cols)))
    }

    /// Boards with a side past [`MAX_SIDE`] that still fit the bit-board: one to three short lines (1×9 … 3×21).
    fn linear(rows: usize, cols: usize) -> Option<&'static Geometry> {
        static LONG: [[OnceLock<Geometry>; 64]; 6] = [const { [const { OnceLock::new() }; 64] }; 6];
        let (short, long) = (rows.min(cols), rows.max(cols));
        if !(1..=3).contains(&short) || long <= MAX_SIDE || short * long > 64 {
            return None;
        }
        let slot = if rows <= cols { short - 1 } else { short + 2 };
        Some(LONG[slot][long - 1].get_or_init(|| Geometry::new(rows, cols)))
    }

    fn new(rows: usize, cols: usize) -> Geometry {
        let points = rows * cols;
        let full = if points == 64 { u64::MAX } else { (1 << points) - 1 };
        let first_col = (0..rows).fold(0, |mask, row| mask | 1u64 << (row * cols));
        let last_col = (0..rows).fold(0, |mask, row| mask | 1u64 << (row * cols + cols - 1));
        Geometry {
            rows,
            cols,
            points,
            full,
            not_first_col: full & !first_col,
            not_last_col: full & !last_col,
            symmetry: SymmetryTables::new(rows, cols),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of points.
    pub fn points(&self) -> usize {
        self.points
    }

    /// The set of all points.
    pub fn full(&self) -> u64 {
        self.full
    }

    /// The board's name, `ROWSxCOLUMNS`.
    pub fn name(&self) -> String {
        format!("{}x{}", self.rows, self.cols)
    }

    /// All points next to a point of `set` (points of `set` itself included where they touch each other).
    #[inline]
    pub fn neighbors(&self, set: u64) -> u64 {
        let sideways = ((set & self.not_last_col) << 1) | ((set & self.not_first_col) >> 1);
        // A single row of 64 points would shift by 64; there is no row above or below it.
        let (up, down) = if self.rows == 1 { (0, 0) } else { (set << self.cols, set >> self.cols) };
        (sideways | up | down) & self.full
    }

    /// The points whose western neighbour lies in `set`; [`west`](Self::west), [`north`](Self::north) and [`south`](Self::south)
    /// shift the set the other ways.
    #[inline]
    pub fn east(&self, set: u64) -> u64 {
        (set & self.not_last_col) << 1
    }

    /// The points whose eastern neighbour lies in `set`.
    #[inline]
    pub fn west(&self, set: u64) -> u64 {
        (set & self.not_first_col) >> 1
    }

    /// The points whose southern neighbour lies in `set`.
    #[inline]
    pub fn north(&self, set: u64) -> u64 {
        if self.rows == 1 { 0 } else { (set << self.cols) & self.full }
    }

    /// The points whose northern neighbour lies in `set`.
    #[inline]
    pub fn south(&self, set: u64) -> u64 {
        if self.rows == 1 { 0 } else { set >> self.cols }
    }

    /// The connected component of `within` that holds the points of `seed` (which lie in `within`).
    #[inline]
    pub fn flood(&self, seed: u64, within: u64) -> u64 {
        let mut set = seed;
        loop {
            let grown = (set | self.neighbors(set)) & within;
            if grown == set {
                return set;
            }
            set = grown;
        }
    }

    /// The connected components of `set`, lowest point first.
    pub fn components(&self, set: u64) -> impl Iterator<Item = u64> + '_ {
        let mut rest = set;
        std::iter::from_fn(move || {
            if rest == 0 {
                return None;
            }
            let component = self.flood(rest & rest.wrapping_neg(), rest);
            rest &= !component;
            Some(component)
        })
    }
}

/// Two geometries are the same board exactly when their sides agree.
impl PartialEq for Geometry {
    fn eq(&self, other: &Self) -> bool {
        (self.rows, self.cols) == (other.rows, other.cols)
    }
}

impl Eq for Geometry {}

/// The points of a set, lowest first.
#[inline]
pub fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if set == 0 {
            return None;
        }
        let point = set.trailing_zeros() as usize;
        set &= set - 1;
        Some(point)
    })
}

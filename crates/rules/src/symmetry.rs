//! Board symmetries, the exact board code and the canonical form.
//!
//! The *code* of a board is its ternary number (0 empty, 1 black, 2 white; point `p` has weight 3^p). Up to 39 points it fits in
//! 62 bits, so four times the code plus side and pass state is an exact 64-bit key (theory, Identity). Wider boards put the
//! points from 32 on into the upper 64 bits, which is exact up to 64 points.

use crate::{Board, Geometry, Move};

/// Boards up to this many points have exact 64-bit keys.
const NARROW_POINTS: usize = 39;

#[derive(Debug)]
pub(crate) struct SymmetryTables {
    count: usize,
    bytes: usize,
    /// `permutation[s][p]`: where symmetry `s` sends point `p`.
    permutations: Vec<Vec<u8>>,
    /// `masks[(s * bytes + byte) * 256 + value]`: image of eight points at once.
    masks: Vec<u64>,
    /// The same layout: summed ternary weights of the image, empty for wide boards.
    narrow: Vec<u64>,
    /// The same for wide boards, empty for narrow ones.
    wide: Vec<u128>,
    /// `product[a][b]`: first `b`, then `a`.
    product: [[u8; 8]; 8],
    inverse: [u8; 8],
}

/// The canonical form of a board under its rectangle's symmetries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Canonical {
    /// Exact code of the canonical board: the least code over all images.
    pub code: u128,
    /// The first symmetry that maps the board to its canonical form.
    pub sym: u8,
    /// All such symmetries, one bit each; more than one exactly when the board is symmetric itself.
    pub syms: u8,
}

impl SymmetryTables {
    pub(crate) fn new(rows: usize, cols: usize) -> Self {
        let points = rows * cols;
        let permutations = permutations(rows, cols);
        let count = permutations.len();
        let bytes = points.div_ceil(8);
        let mut masks = vec![0u64; count * bytes * 256];
        let mut narrow = vec![0u64; if points <= NARROW_POINTS { masks.len() } else { 0 }];
        let mut wide = vec![0u128; if points > NARROW_POINTS { masks.len() } else { 0 }];
        for (sym, permutation) in permutations.iter().enumerate() {
            for byte in 0..bytes {
                for value in 0..256usize {
                    let at = (sym * bytes + byte) * 256 + value;
                    for bit in (0..8).filter(|bit| value >> bit & 1 == 1) {
                        let Some(&image) = permutation.get(byte * 8 + bit) else { continue };
                        masks[at] |= 1 << image;
                        if points <= NARROW_POINTS {
                            narrow[at] += 3u64.pow(image.into());
                        } else {
                            wide[at] += wide_weight(image.into());
                        }
                    }
                }
            }
        }
        let index_of = |wanted: &[u8]| permutations.iter().position(|p| p == wanted).expect("symmetries form a group") as u8;
        let mut product = [[0u8; 8]; 8];
        let mut inverse = [0u8; 8];
        for a in 0..count {
            for b in 0..count {
                let composed: Vec<u8> = permutations[b].iter().map(|&image| permutations[a][image as usize]).collect();
                product[a][b] = index_of(&composed);
                if product[a][b] == 0 {
                    inverse[a] = b as u8;
                }
            }
        }
        SymmetryTables { count, bytes, permutations, masks, narrow, wide, product, inverse }
    }
}

fn wide_weight(point: usize) -> u128 {
    if point < 32 { 3u128.pow(point as u32) } else { 3u128.pow(point as u32 - 32) << 64 }
}

/// The distinct permutations of the rectangle's symmetry group, identity first: 8 for squares, 4 for rectangles, 2 for lines.
fn permutations(rows: usize, cols: usize) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = Vec::new();
    for transpose in [false, true] {
        if transpose && rows != cols {
            continue;
        }
        for (flip_rows, flip_cols) in [(false, false), (true, false), (false, true), (true, true)] {
            let permutation: Vec<u8> = (0..rows * cols)
                .map(|point| {
                    let (mut row, mut col) = (point / cols, point % cols);
                    if flip_rows {
                        row = rows - 1 - row;
                    }
                    if flip_cols {
                        col = cols - 1 - col;
                    }
                    if transpose {
                        std::mem::swap(&mut row, &mut col);
                    }
                    (row * cols + col) as u8
                })
                .collect();
            if !all.contains(&permutation) {
                all.push(permutation);
            }
        }
    }
    all
}

impl Geometry {
    /// Number of symmetries (1, 2, 4 or 8). Symmetry 0 is the identity.
    pub fn symmetries(&self) -> usize {
        self.symmetry.count
    }

    /// Where symmetry `sym` sends `point`.
    pub fn map_point(&self, sym: u8, point: usize) -> usize {
        self.symmetry.permutations[sym as usize][point].into()
    }

    /// The image of a set of points under symmetry `sym`.
    #[inline]
    pub fn map_mask(&self, sym: u8, mask: u64) -> u64 {
        if sym == 0 {
            return mask;
        }
        let tables = &self.symmetry;
        let base = sym as usize * tables.bytes * 256;
        (0..tables.bytes).fold(0, |image, byte| image | tables.masks[base + byte * 256 + (mask >> (8 * byte) & 255) as usize])
    }

    /// The image of a board under symmetry `sym`.
    #[inline]
    pub fn map_board(&self, sym: u8, board: Board) -> Board {
        Board { black: self.map_mask(sym, board.black), white: self.map_mask(sym, board.white) }
    }

    /// The image of a move under symmetry `sym`.
    pub fn map_move(&self, sym: u8, mv: Move) -> Move {
        match mv {
            Move::Pass => Move::Pass,
            Move::Stone(point) => Move::Stone(self.map_point(sym, point.into()) as u8),
        }
    }

    /// The symmetry "first `b`, then `a`".
    #[inline]
    pub fn compose(&self, a: u8, b: u8) -> u8 {
        self.symmetry.product[a as usize][b as usize]
    }

    /// The symmetry that undoes `sym`.
    #[inline]
    pub fn inverse(&self, sym: u8) -> u8 {
        self.symmetry.inverse[sym as usize]
    }

    /// The exact code of the image of `board` under `sym`.
    #[inline]
    fn code_under(&self, sym: u8, board: Board) -> u128 {
        let tables = &self.symmetry;
        let base = sym as usize * tables.bytes * 256;
        let at = |mask: u64, byte: usize| base + byte * 256 + (mask >> (8 * byte) & 255) as usize;
        if tables.wide.is_empty() {
            let code = (0..tables.bytes)
                .fold(0, |sum, byte| sum + tables.narrow[at(board.black, byte)] + 2 * tables.narrow[at(board.white, byte)]);
            code.into()
        } else {
            (0..tables.bytes).fold(0, |sum, byte| sum + tables.wide[at(board.black, byte)] + 2 * tables.wide[at(board.white, byte)])
        }
    }

    /// The exact code of `board`: different boards have different codes. Below 2^62 up to 39 points.
    pub fn code(&self, board: Board) -> u128 {
        self.code_under(0, board)
    }

    /// How the code changes when `color` plays `point` and captures `captured`: `code(after) - code(before)`, wrapping.
    pub fn code_delta(&self, color: crate::Color, point: usize, captured: u64) -> u128 {
        let stone = Board::EMPTY.with(color, 1 << point);
        let taken = Board::EMPTY.with(color.opponent(), captured);
        self.code(stone).wrapping_sub(self.code(taken))
    }

    /// The board that has this code.
    pub fn decode(&self, code: u128) -> Board {
        let mut board = Board::EMPTY;
        let wide = !self.symmetry.wide.is_empty();
        let (mut low, mut high) = if wide { (code as u64, (code >> 64) as u64) } else { (code as u64, 0) };
        for point in 0..self.points() {
            let digits = if wide && point >= 32 { &mut high } else { &mut low };
            match *digits % 3 {
                1 => board.black |= 1 << point,
                2 => board.white |= 1 << point,
                _ => {}
            }
            *digits /= 3;
        }
        board
    }

    /// The canonical form of `board`: the image with the least code.
    #[inline]
    pub fn canonical(&self, board: Board) -> Canonical {
        let mut best = Canonical { code: self.code_under(0, board), sym: 0, syms: 1 };
        for sym in 1..self.symmetry.count as u8 {
            let code = self.code_under(sym, board);
            if code < best.code {
                best = Canonical { code, sym, syms: 1 << sym };
            } else if code == best.code {
                best.syms |= 1 << sym;
            }
        }
        best
    }
}

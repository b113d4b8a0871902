//! Board symmetries, the exact board code and the canonical form.
//!
//! The *code* of a board is its ternary number (0 empty, 1 black, 2 white; point `p` has weight 3^p). Up to 39 points it fits in
//! 62 bits, so four times the code plus side and pass state is an exact 64-bit key (theory, Identity). Wider boards put the
//! points from 32 on into the upper 64 bits, which is exact up to 64 points.

use crate::{Board, Color, Geometry, Move};

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
    /// `weights[p][s]`: ternary weight of the point where symmetry `s` sends point `p`, 0 if there is no such symmetry.
    weights: Vec<[u128; 8]>,
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

/// The codes of a board's images, by symmetry: from them follow those of the boards after a move. Where there is no symmetry the code is zero.
#[derive(Clone, Copy, Debug)]
pub struct Codes(Words);

#[derive(Clone, Copy, Debug)]
enum Words {
    Narrow([u64; 8]),
    Wide([u128; 8]),
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
        let weight = |image: u8| if points <= NARROW_POINTS { 3u128.pow(image.into()) } else { wide_weight(image.into()) };
        let weights = (0..points).map(|point| std::array::from_fn(|sym| permutations.get(sym).map_or(0, |to| weight(to[point])))).collect();
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
        SymmetryTables { count, bytes, permutations, masks, narrow, wide, weights, product, inverse }
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

    /// The codes of all images of `board`.
    #[inline]
    pub fn codes(&self, board: Board) -> Codes {
        let code = |sym: usize| if sym < self.symmetry.count { self.code_under(sym as u8, board) } else { 0 };
        if self.symmetry.wide.is_empty() {
            Codes(Words::Narrow(std::array::from_fn(|sym| code(sym) as u64)))
        } else {
            Codes(Words::Wide(std::array::from_fn(code)))
        }
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
        match self.codes(board).0 {
            Words::Narrow(codes) => least(&codes[..self.symmetry.count]),
            Words::Wide(codes) => least(&codes[..self.symmetry.count]),
        }
    }

    /// The canonical form of the board that arises when `color` plays `point` and captures `captured` on the board that has `codes`: what
    /// [`Geometry::canonical`] says of it, at less cost.
    #[inline]
    pub fn canonical_after(&self, codes: &Codes, color: Color, point: usize, captured: u64) -> Canonical {
        let stone = &self.symmetry.weights[point];
        let taken = (captured != 0).then(|| self.codes(Board::EMPTY.with(color.opponent(), captured)));
        match codes.0 {
            Words::Narrow(mut codes) => {
                for (code, &weight) in codes.iter_mut().zip(stone) {
                    *code = code.wrapping_add((weight as u64) << color as u8);
                }
                if let Some(Codes(Words::Narrow(taken))) = taken {
                    codes.iter_mut().zip(taken).for_each(|(code, taken)| *code = code.wrapping_sub(taken));
                }
                least(&codes[..self.symmetry.count])
            }
            Words::Wide(mut codes) => {
                for (code, &weight) in codes.iter_mut().zip(stone) {
                    *code = code.wrapping_add(weight << color as u8);
                }
                if let Some(Codes(Words::Wide(taken))) = taken {
                    codes.iter_mut().zip(taken).for_each(|(code, taken)| *code = code.wrapping_sub(taken));
                }
                least(&codes[..self.symmetry.count])
            }
        }
    }
}

/// The least of the codes of all images. Without branches on the codes: which is the least cannot be foreseen.
#[inline]
fn least<T: Copy + Ord + Into<u128>>(codes: &[T]) -> Canonical {
    let code = codes.iter().fold(codes[0], |least, &code| least.min(code));
    let syms = codes.iter().rev().fold(0, |set, &other| set << 1 | u8::from(other == code));
    Canonical { code: code.into(), sym: syms.trailing_zeros() as u8, syms }
}

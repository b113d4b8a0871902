//! Stones on a board: placing, capturing, liberties and the area score. No history here.

use crate::Geometry;

/// A player.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Color {
    /// Moves first from the empty board.
    Black,
    /// Receives the komi.
    White,
}

impl Color {
    /// The other player.
    #[inline]
    pub fn opponent(self) -> Color {
        match self {
            Color::Black => Color::White,
            Color::White => Color::Black,
        }
    }

    /// `black` or `white`, as in the JSON of the API.
    pub fn name(self) -> &'static str {
        match self {
            Color::Black => "black",
            Color::White => "white",
        }
    }
}

/// The stones on a board, one bit a point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Board {
    /// Black's stones.
    pub black: u64,
    /// White's stones.
    pub white: u64,
}

/// The result of putting a stone on a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The board after the move and its captures.
    pub board: Board,
    /// Opponent stones taken off.
    pub captured: u64,
}

/// Why a stone cannot be put on a point, whatever the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reject {
    /// A stone stands there.
    Occupied,
    /// The stone's chain would have no liberty.
    Suicide,
}

impl Board {
    /// No stones.
    pub const EMPTY: Board = Board { black: 0, white: 0 };

    /// The stones of `color`.
    #[inline]
    pub fn stones(&self, color: Color) -> u64 {
        match color {
            Color::Black => self.black,
            Color::White => self.white,
        }
    }

    /// All stones.
    #[inline]
    pub fn occupied(&self) -> u64 {
        self.black | self.white
    }

    /// The same board with the stones of `color` replaced.
    #[inline]
    #[must_use]
    pub fn with(self, color: Color, stones: u64) -> Board {
        match color {
            Color::Black => Board { black: stones, ..self },
            Color::White => Board { white: stones, ..self },
        }
    }

    /// Plays `color` on `point`: captures, then refuses suicide (paper, section 2).
    #[inline]
    pub fn place(self, geometry: &Geometry, color: Color, point: usize) -> Result<Placed, Reject> {
        let stone = 1u64 << point;
        if self.occupied() & stone != 0 {
            return Err(Reject::Occupied);
        }
        let own = self.stones(color) | stone;
        let mut other = self.stones(color.opponent());
        let around = geometry.neighbors(stone);
        let mut captured = 0;
        let mut touching = around & other;
        while touching != 0 {
            let chain = geometry.flood(touching & touching.wrapping_neg(), other);
            touching &= !chain;
            if geometry.neighbors(chain) & !(own | other) == 0 {
                captured |= chain;
            }
        }
        other &= !captured;
        if around & !(own | other) == 0 {
            let chain = geometry.flood(stone, own);
            if geometry.neighbors(chain) & !(own | other) == 0 {
                return Err(Reject::Suicide);
            }
        }
        let board = Board::EMPTY.with(color, own).with(color.opponent(), other);
        Ok(Placed { board, captured })
    }

    /// The empty points where a stone of `color` may capture or may be suicide: last liberties of opponent chains, and points without an
    /// empty neighbour.
    pub fn contested(&self, geometry: &Geometry, color: Color) -> u64 {
        let empty = geometry.full() & !self.occupied();
        let liberties = geometry.components(self.stones(color.opponent())).map(|chain| geometry.neighbors(chain) & empty);
        liberties.filter(|free| free.is_power_of_two()).fold(empty & !geometry.neighbors(empty), |set, free| set | free)
    }

    /// [`Board::place`] on an empty point, where `contested` is what [`Board::contested`] says of `color`. Most points are not, and there a
    /// stone is just added: it has a liberty beside it, so it is no suicide, and each opponent chain beside it has another liberty, so
    /// nothing is captured.
    #[inline]
    pub fn place_near(self, geometry: &Geometry, color: Color, point: usize, contested: u64) -> Result<Placed, Reject> {
        debug_assert!(self.occupied() >> point & 1 == 0, "point {point} is not empty");
        if contested >> point & 1 == 1 {
            return self.place(geometry, color, point);
        }
        Ok(Placed { board: self.with(color, self.stones(color) | 1 << point), captured: 0 })
    }

    /// The first chain without a liberty, if any: a board that has one cannot occur in a game.
    pub fn breathless_chain(&self, geometry: &Geometry) -> Option<u64> {
        let empty = geometry.full() & !self.occupied();
        [self.black, self.white]
            .into_iter()
            .flat_map(|stones| geometry.components(stones))
            .find(|&chain| geometry.neighbors(chain) & empty == 0)
    }

    /// Area score: Black's stones and the empty regions that only Black borders, less the same for White.
    pub fn area_score(&self, geometry: &Geometry) -> i32 {
        let empty = geometry.full() & !self.occupied();
        // An empty point belongs to a player exactly when it is reached from that player's stones only.
        let black_reach = geometry.flood(geometry.neighbors(self.black) & empty, empty);
        let white_reach = geometry.flood(geometry.neighbors(self.white) & empty, empty);
        let black = (self.black | (black_reach & !white_reach)).count_ones() as i32;
        let white = (self.white | (white_reach & !black_reach)).count_ones() as i32;
        black - white
    }
}

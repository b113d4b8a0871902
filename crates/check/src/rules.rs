//! The rules of Go that a certificate needs, on boards of at most 62 points. A set of points is a `u64`, point `p` its bit `p`.

/// A player.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Color {
    /// Black, who moves first on the empty board.
    Black,
    /// White, who gets komi.
    White,
}

impl Color {
    /// The other player.
    pub fn opponent(self) -> Color {
        match self {
            Color::Black => Color::White,
            Color::White => Color::Black,
        }
    }
}

/// The stones on a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Board {
    /// The points with a black stone.
    pub black: u64,
    /// The points with a white stone.
    pub white: u64,
}

impl Board {
    /// The stones of one player.
    pub fn of(self, color: Color) -> u64 {
        match color {
            Color::Black => self.black,
            Color::White => self.white,
        }
    }

    /// The board with these stones of one player and these of the opponent.
    pub fn new(color: Color, own: u64, other: u64) -> Board {
        match color {
            Color::Black => Board { black: own, white: other },
            Color::White => Board { black: other, white: own },
        }
    }

    /// All stones.
    pub fn stones(self) -> u64 {
        self.black | self.white
    }
}

/// A board, who is to move, and how many passes came directly before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The stones.
    pub board: Board,
    /// Who is to move.
    pub to_move: Color,
    /// 0, 1, or 2, when the game has ended.
    pub passes: u8,
}

/// The points of a set, in increasing order.
pub fn points(mut set: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let point = (set != 0).then(|| set.trailing_zeros())?;
        set &= set - 1;
        Some(point)
    })
}

/// A size of board: which points are neighbours, and where symmetries take them.
#[derive(Clone, Debug)]
pub struct Grid {
    /// The number of rows.
    pub rows: u32,
    /// The number of columns.
    pub cols: u32,
    /// All points of the board.
    pub all: u64,
    first_col: u64,
    last_col: u64,
    /// For each symmetry and each byte of a mask: the images of the 256 sets that the byte can stand for.
    images: Vec<Vec<[u64; 256]>>,
    /// `undone[a][s]` is a symmetry that does the same as `a` first and then the inverse of `s`.
    undone: Vec<Vec<u8>>,
}

impl Grid {
    /// The board of that many rows and columns. The caller sees to it that both are at least 1 and that there are at most 62 points.
    pub fn new(rows: u32, cols: u32) -> Grid {
        assert!(rows >= 1 && cols >= 1 && rows.saturating_mul(cols) <= 62, "the board is too large or empty");
        let count = rows * cols;
        let column = |c: u32| (0..rows).fold(0, |set, r| set | 1u64 << (r * cols + c));
        let symmetries = if rows == cols { 8 } else { 4 };

        // maps[s][p] is where symmetry s takes point p; the three steps are in the order in which CERTIFICATE.md gives them.
        let image = |s: u8, p: u32| {
            let (mut r, mut c) = (p / cols, p % cols);
            if s & 4 != 0 {
                (r, c) = (c, r);
            }
            if s & 1 != 0 {
                r = rows - 1 - r;
            }
            if s & 2 != 0 {
                c = cols - 1 - c;
            }
            r * cols + c
        };
        let maps: Vec<Vec<u32>> = (0..symmetries).map(|s| (0..count).map(|p| image(s, p)).collect()).collect();

        let images = maps.iter().map(|map| {
            let byte_table = |byte: u32| {
                std::array::from_fn(|value| {
                    points((value as u64) << (8 * byte) & ((1 << count) - 1)).fold(0, |set, p| set | 1u64 << map[p as usize])
                })
            };
            (0..count.div_ceil(8)).map(byte_table).collect()
        });
        let undone = maps.iter().map(|a| {
            // "a, then s backwards" is the symmetry k for which "k, then s" is a.
            let same = |s: &Vec<u32>, k: &Vec<u32>| (0..count as usize).all(|p| s[k[p] as usize] == a[p]);
            let find = |s: &Vec<u32>| maps.iter().position(|k| same(s, k)).expect("the symmetries form a group") as u8;
            maps.iter().map(find).collect()
        });
        Grid {
            rows,
            cols,
            all: (1 << count) - 1,
            first_col: column(0),
            last_col: column(cols - 1),
            images: images.collect(),
            undone: undone.collect(),
        }
    }

    /// The number of points.
    pub fn count(&self) -> u32 {
        self.rows * self.cols
    }

    /// How many symmetries there are: their codes are the numbers below.
    pub fn symmetries(&self) -> u8 {
        self.images.len() as u8
    }

    /// All points next to a point of the set; a point of the set only if it has a neighbour in it.
    pub fn neighbours(&self, set: u64) -> u64 {
        let up = set << self.cols;
        let down = set >> self.cols;
        let left = (set & !self.first_col) >> 1;
        let right = (set & !self.last_col) << 1;
        (up | down | left | right) & self.all
    }

    /// The points of `within` that are connected in `within` to a point of it that is in `from`.
    pub fn flood(&self, from: u64, within: u64) -> u64 {
        let mut found = from & within;
        loop {
            let more = (found | self.neighbours(found)) & within;
            if more == found {
                return found;
            }
            found = more;
        }
    }

    /// The maximal connected sets of points of `set`.
    pub fn parts(&self, mut set: u64) -> impl Iterator<Item = u64> {
        std::iter::from_fn(move || {
            let part = (set != 0).then(|| self.flood(set & set.wrapping_neg(), set))?;
            set &= !part;
            Some(part)
        })
    }

    /// Those of the stones (of one player) whose chain has a liberty.
    pub fn with_liberty(&self, stones: u64, board: Board) -> u64 {
        self.flood(self.neighbours(self.all & !board.stones()), stones)
    }

    /// The board after a stone of `color` on an empty point; `None` if the point is not empty or the move is suicide. Superko is not looked at.
    pub fn play(&self, board: Board, color: Color, point: u32) -> Option<Board> {
        let stone = 1u64 << point;
        if board.stones() & stone != 0 || self.all & stone == 0 {
            return None;
        }
        let own = board.of(color) | stone;
        let other = board.of(color.opponent());
        let other = self.with_liberty(other, Board::new(color, own, other));
        let after = Board::new(color, own, other);
        (self.with_liberty(own, after) & stone != 0).then_some(after)
    }

    /// Black's area less White's.
    pub fn score(&self, board: Board) -> i64 {
        let mut score = i64::from(board.black.count_ones()) - i64::from(board.white.count_ones());
        for region in self.parts(self.all & !board.stones()) {
            let border = self.neighbours(region);
            match (border & board.black != 0, border & board.white != 0) {
                (true, false) => score += i64::from(region.count_ones()),
                (false, true) => score -= i64::from(region.count_ones()),
                _ => {}
            }
        }
        score
    }

    /// Where the symmetry takes the points of the set.
    pub fn image(&self, symmetry: u8, set: u64) -> u64 {
        let tables = &self.images[symmetry as usize];
        tables.iter().zip(set.to_le_bytes()).fold(0, |image, (table, byte)| image | table[byte as usize])
    }

    /// Where the symmetry takes the stones of the board.
    pub fn board_image(&self, symmetry: u8, board: Board) -> Board {
        Board { black: self.image(symmetry, board.black), white: self.image(symmetry, board.white) }
    }

    /// A symmetry that does the same as `first`, and then the inverse of `undo`.
    pub fn undo(&self, first: u8, undo: u8) -> u8 {
        self.undone[first as usize][undo as usize]
    }

    /// The board's rows, the top one first, with `/` between them.
    pub fn draw(&self, board: Board) -> String {
        let char_at = |p: u32| match (board.black >> p & 1, board.white >> p & 1) {
            (1, _) => 'X',
            (_, 1) => 'O',
            _ => '.',
        };
        let row = |r: u32| (r * self.cols..(r + 1) * self.cols).map(char_at).collect::<String>();
        (0..self.rows).rev().map(row).collect::<Vec<_>>().join("/")
    }

    /// The name of a point: a letter for the column (without I), the row from 1 at the bottom.
    pub fn name(&self, point: u32) -> String {
        const LETTERS: &[u8; 25] = b"ABCDEFGHJKLMNOPQRSTUVWXYZ";
        let (row, col) = (point / self.cols, (point % self.cols) as usize);
        let letter = char::from(LETTERS[col % 25]);
        let before = if col < 25 { String::new() } else { char::from(LETTERS[col / 25 - 1]).to_string() };
        format!("{before}{letter}{}", row + 1)
    }
}

//! GTP vertices and move lists.

use crate::Geometry;
use std::fmt;

/// A move: a pass or a stone on a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Move {
    /// Always legal; two in a row end the game.
    Pass,
    /// A stone on this point.
    Stone(u8),
}

/// A move or board size that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoordError {
    /// The offending text.
    pub value: String,
    /// What was expected instead.
    pub expected: String,
}

impl fmt::Display for CoordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not valid: expected {}", self.value, self.expected)
    }
}

impl std::error::Error for CoordError {}

/// Column letters of GTP: no `I`.
const COLUMNS: &[u8] = b"ABCDEFGHJKLMNOPQRSTUVWXYZ";

impl Move {
    /// The GTP vertex, `pass` for a pass. Columns past `Z` (boards wider than 25) are written `AA`, `AB`, ….
    pub fn vertex(self, geometry: &Geometry) -> String {
        match self {
            Move::Pass => "pass".to_owned(),
            Move::Stone(point) => {
                let (row, col) = (point as usize / geometry.cols(), point as usize % geometry.cols());
                format!("{}{}", column_name(col), row + 1)
            }
        }
    }

    /// Reads a GTP vertex or `pass`, in either case.
    pub fn parse(geometry: &Geometry, text: &str) -> Result<Move, CoordError> {
        let expected = || CoordError {
            value: text.to_owned(),
            expected: format!(
                "a point from A1 to {}{} (letters without I, rows from the bottom) or pass",
                column_name(geometry.cols() - 1),
                geometry.rows()
            ),
        };
        if text.eq_ignore_ascii_case("pass") {
            return Ok(Move::Pass);
        }
        let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (column, row) = text.split_at(letters);
        let column = column.to_ascii_uppercase();
        let col = (0..geometry.cols()).find(|&col| column_name(col) == column).ok_or_else(expected)?;
        if row.is_empty() || row.len() > 2 || !row.bytes().all(|byte| byte.is_ascii_digit()) || row.starts_with('0') {
            return Err(expected());
        }
        let row: usize = row.parse().map_err(|_| expected())?;
        if !(1..=geometry.rows()).contains(&row) {
            return Err(expected());
        }
        Ok(Move::Stone(((row - 1) * geometry.cols() + col) as u8))
    }
}

fn column_name(col: usize) -> String {
    let letter = |index: usize| char::from(COLUMNS[index]);
    match col / COLUMNS.len() {
        0 => letter(col).to_string(),
        wrap => format!("{}{}", letter(wrap - 1), letter(col % COLUMNS.len())),
    }
}

/// Reads moves separated by spaces or commas.
pub fn parse_moves(geometry: &Geometry, text: &str) -> Result<Vec<Move>, CoordError> {
    text.split([' ', ',', '\t', '\n', '\r']).filter(|word| !word.is_empty()).map(|word| Move::parse(geometry, word)).collect()
}

/// Reads `ROWSxCOLUMNS`.
pub fn parse_board_size(text: &str) -> Result<&'static Geometry, CoordError> {
    let error = || CoordError {
        value: text.to_owned(),
        expected: "ROWSxCOLUMNS, such as 4x7, from 1x1 to 8x8, or up to three lines of together at most 64 points (1x12, 2x15, 3x10)"
            .to_owned(),
    };
    let side = |text: &str| -> Option<usize> {
        (!text.is_empty() && text.len() <= 2 && text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0'))
            .then(|| text.parse().ok())
            .flatten()
    };
    let (rows, cols) = text.split_once(['x', 'X']).ok_or_else(error)?;
    match (side(rows), side(cols)) {
        (Some(rows), Some(cols)) => Geometry::get(rows, cols).ok_or_else(error),
        _ => Err(error()),
    }
}

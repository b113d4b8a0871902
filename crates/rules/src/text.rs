//! Boards as text: top row first, `X` black, `O` white, `.` empty.

use crate::{Board, Geometry};
use std::fmt;

/// A diagram that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// Index of the offending row, counted from the top, 0 first; `None` if the number of rows is wrong.
    pub row: Option<usize>,
    /// The offending value.
    pub value: String,
    /// What was expected instead.
    pub expected: String,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.row {
            Some(row) => write!(f, "row {} {:?} is not valid: expected {}", row + 1, self.value, self.expected),
            None => write!(f, "{} rows are not valid: expected {}", self.value, self.expected),
        }
    }
}

impl std::error::Error for TextError {}

/// Reads a diagram of one string a row.
pub fn board_from_rows<S: AsRef<str>>(geometry: &Geometry, rows: &[S]) -> Result<Board, TextError> {
    if rows.len() != geometry.rows() {
        return Err(TextError {
            row: None,
            value: rows.len().to_string(),
            expected: format!("{} rows for a {} board", geometry.rows(), geometry.name()),
        });
    }
    let mut board = Board::EMPTY;
    for (index, row) in rows.iter().enumerate() {
        let row = row.as_ref();
        let error = |expected: String| TextError { row: Some(index), value: row.to_owned(), expected };
        if row.chars().count() != geometry.cols() {
            return Err(error(format!("{} characters for a {} board", geometry.cols(), geometry.name())));
        }
        for (col, symbol) in row.chars().enumerate() {
            let stone = 1u64 << ((geometry.rows() - 1 - index) * geometry.cols() + col);
            match symbol {
                'X' => board.black |= stone,
                'O' => board.white |= stone,
                '.' => {}
                other => return Err(error(format!("only X (black), O (white) and . (empty), found {other:?}"))),
            }
        }
    }
    Ok(board)
}

/// The diagram of a board, one string a row, top row first.
pub fn board_rows(geometry: &Geometry, board: Board) -> Vec<String> {
    (0..geometry.rows())
        .rev()
        .map(|row| {
            (0..geometry.cols())
                .map(|col| {
                    let stone = 1u64 << (row * geometry.cols() + col);
                    match (board.black & stone != 0, board.white & stone != 0) {
                        (true, _) => 'X',
                        (_, true) => 'O',
                        _ => '.',
                    }
                })
                .collect()
        })
        .collect()
}

//! Checks a certificate that a player wins a Go position under positional superko.
//!
//! The format, and what is checked, is described in `CERTIFICATE.md`; this crate follows that document and shares no code with the solver. In the order in
//! which to read it: [`rules`] (the rules of Go), [`reader`] (bytes to records), [`eyes`] (stones that cannot be captured), [`created`] (the sets `B`), and
//! [`check()`] (the judgement).

#![forbid(unsafe_code)]

mod check;
pub mod created;
pub mod eyes;
pub mod reader;
pub mod rules;
mod text;

pub use check::{check, check_in_parallel};
pub use text::{TextError, write_text};

/// The version of this checker.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

use reader::Header;
use rules::Color;

/// What a valid certificate proves, and what it is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The board's rows and columns.
    pub size: (u32, u32),
    /// The komi, as the certificate gives it.
    pub komi: String,
    /// Who wins.
    pub winner: Color,
    /// The root's board: rows from the top, `X` black, `O` white, `.` empty.
    pub root: Vec<String>,
    /// Who is to move at the root.
    pub to_move: Color,
    /// Passes directly before the root: 0 or 1.
    pub passes: u8,
    /// The other boards of the history, drawn as rows from the top with `/` between them.
    pub earlier: Vec<String>,
    /// How many lemmas there are of each kind, 0 to 4.
    pub kinds: [u64; 5],
    /// How many different boards, up to symmetry, stones of the winner create.
    pub created: u64,
    /// How many boards the largest `X` of a lemma has.
    pub longest_x: usize,
}

impl Report {
    fn new(header: &Header, kinds: [u64; 5], created: u64, longest_x: usize) -> Report {
        let Header { grid, winner, to_move, passes, history, .. } = header;
        Report {
            size: (grid.rows, grid.cols),
            komi: header.komi(),
            winner: *winner,
            root: grid.draw(header.root()).split('/').map(str::to_owned).collect(),
            to_move: *to_move,
            passes: *passes,
            earlier: history[..history.len() - 1].iter().map(|board| grid.draw(*board)).collect(),
            kinds,
            created,
            longest_x,
        }
    }

    /// How many lemmas there are.
    pub fn lemmas(&self) -> u64 {
        self.kinds.iter().sum()
    }

    /// What was proved, in one sentence.
    pub fn sentence(&self) -> String {
        let name = |color| if color == Color::Black { "Black" } else { "White" };
        let (rows, cols) = self.size;
        let (winner, to_move, komi) = (name(self.winner), name(self.to_move), &self.komi);
        let pass = if self.passes == 1 { " after a pass" } else { "" };
        let history = match self.earlier.len() {
            0 => "when no other board occurred before".into(),
            1 => "when just the other board of the certificate's history occurred before".into(),
            n => format!("when just the other {n} boards of the certificate's history occurred before"),
        };
        format!("{winner} wins {rows}x{cols} at komi {komi} from {} with {to_move} to move{pass}, {history}.", self.root.join("/"))
    }
}

/// What was proved, the earlier boards, and counts, a line each.
impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "valid: {}", self.sentence())?;
        for board in &self.earlier {
            writeln!(f, "earlier: {board}")?;
        }
        let [end, eyes, miai, moves, replies] = self.kinds;
        writeln!(f, "{} lemmas: {end} ends, {eyes} with eyes, {miai} with miai, {moves} moves, {replies} with all replies", self.lemmas())?;
        write!(f, "{} boards created, at most {} required of a history", self.created, self.longest_x)
    }
}

/// Why a certificate was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// It is not a certificate, or a damaged one.
    Unreadable(String),
    /// It proves nothing: a check fails.
    Invalid {
        /// The number of the lemma; `None` if it is the root's conditions that fail.
        lemma: Option<u64>,
        /// The lemma's position (or the root's): rows from the top, separated by `/`, who is to move, and passes.
        position: String,
        /// Which check fails, and how.
        condition: String,
    },
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Unreadable(what) => write!(f, "unreadable: {what}"),
            Error::Invalid { lemma, position, condition } => {
                match lemma {
                    Some(number) => write!(f, "invalid: lemma {number}: {condition}")?,
                    None => write!(f, "invalid: root: {condition}")?,
                }
                let (board, rest) = position.split_once(' ').unwrap_or((position, ""));
                write!(f, "\n{}\n{rest}", board.replace('/', "\n"))
            }
        }
    }
}

impl std::error::Error for Error {}

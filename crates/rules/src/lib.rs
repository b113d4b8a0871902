//! Go on small boards under positional superko: geometry, moves, scoring, symmetry, exact keys and static life.
//!
//! The rules (paper, section 2): Black moves first; opponent chains without liberties are captured; suicide is illegal; a stone
//! move may not recreate any board that occurred earlier in the game, whoever is to move; passes are always legal; two passes
//! in a row end the game, which is scored by area.
#![forbid(unsafe_code)]

mod board;
mod coords;
mod game;
mod geometry;
mod pure_eye;
mod symmetry;
mod text;

pub use board::{Board, Color, Placed, Reject};
pub use coords::{CoordError, Move, parse_board_size, parse_moves};
pub use game::{Game, Illegal, Position, Setup, SetupError};
pub use geometry::{Geometry, MAX_SIDE, bits};
pub use pure_eye::PureEyes;
pub use symmetry::{Canonical, Codes};
pub use text::{TextError, board_from_rows, board_rows};

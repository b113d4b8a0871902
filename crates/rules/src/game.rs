//! A game: position, the boards that may not recur, and legality with its reason.

use crate::{Board, Color, Geometry, Move, Reject};
use std::fmt;

/// What is to be played: a board, the side to move, and how many passes directly precede (0 or 1; 2 ends the game).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Position {
    /// The stones.
    pub board: Board,
    /// Who moves next.
    pub to_move: Color,
    /// Passes directly before, 0 to 2.
    pub passes: u8,
}

/// A start diagram with its superko history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The start board. It counts as an earlier board itself.
    pub board: Board,
    /// Who moves first.
    pub to_move: Color,
    /// Passes directly before the diagram, 0 or 1.
    pub passes: u8,
    /// Further boards that may not recur.
    pub earlier: Vec<Board>,
}

/// Why a diagram cannot start a game.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetupError {
    /// A chain of the board has no liberty; holds one of its points.
    NoLiberty(Move),
    /// A chain of earlier board number `.0` (0 first) has no liberty; holds one of its points.
    EarlierNoLiberty(usize, Move),
    /// `passes` is not 0 or 1.
    Passes(u8),
}

/// Why a move is illegal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Illegal {
    /// A stone stands on the point.
    Occupied,
    /// The move would leave its own chain without a liberty.
    Suicide,
    /// The move recreates the board after move number `.0` (1 first; 0 is the start board).
    RecreatesMove(usize),
    /// The move recreates earlier board number `.0` (0 first) of the set-up.
    RecreatesEarlier(usize),
    /// Two passes ended the game.
    GameOver,
}

impl fmt::Display for Illegal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Illegal::Occupied => write!(f, "the point is occupied"),
            Illegal::Suicide => write!(f, "suicide: the stone's chain would have no liberty"),
            Illegal::RecreatesMove(0) => write!(f, "superko: it recreates the start board"),
            Illegal::RecreatesMove(number) => write!(f, "superko: it recreates the board after move {number}"),
            Illegal::RecreatesEarlier(index) => write!(f, "superko: it recreates earlier board {} of the setup", index + 1),
            Illegal::GameOver => write!(f, "two passes have ended the game"),
        }
    }
}

impl std::error::Error for Illegal {}

/// A game in progress: the position and the whole superko history, with undo.
#[derive(Clone, Debug)]
pub struct Game {
    geometry: &'static Geometry,
    position: Position,
    /// The set-up's further earlier boards, then the start board, then one board a stone move.
    boards: Vec<Board>,
    earlier: usize,
    /// For each entry of `boards` from the start board on: the number of moves played when it arose.
    board_moves: Vec<usize>,
    moves: Vec<Move>,
    undo: Vec<Position>,
}

impl Game {
    /// The empty board, Black to move.
    pub fn new(geometry: &'static Geometry) -> Game {
        Game::start(geometry, Setup { board: Board::EMPTY, to_move: Color::Black, passes: 0, earlier: Vec::new() })
    }

    /// A start diagram; refuses boards with a chain without liberties.
    pub fn from_setup(geometry: &'static Geometry, setup: Setup) -> Result<Game, SetupError> {
        let lowest = |chain: u64| Move::Stone(chain.trailing_zeros() as u8);
        if setup.passes > 1 {
            return Err(SetupError::Passes(setup.passes));
        }
        if let Some(chain) = setup.board.breathless_chain(geometry) {
            return Err(SetupError::NoLiberty(lowest(chain)));
        }
        for (index, board) in setup.earlier.iter().enumerate() {
            if let Some(chain) = board.breathless_chain(geometry) {
                return Err(SetupError::EarlierNoLiberty(index, lowest(chain)));
            }
        }
        Ok(Game::start(geometry, setup))
    }

    fn start(geometry: &'static Geometry, setup: Setup) -> Game {
        let mut boards = setup.earlier;
        let earlier = boards.len();
        boards.push(setup.board);
        let position = Position { board: setup.board, to_move: setup.to_move, passes: setup.passes };
        Game { geometry, position, boards, earlier, board_moves: vec![0], moves: Vec::new(), undo: Vec::new() }
    }

    /// The board's shape.
    pub fn geometry(&self) -> &'static Geometry {
        self.geometry
    }

    /// The current position.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Every board that may not recur, the current one last among the boards that arose in play.
    pub fn boards(&self) -> &[Board] {
        &self.boards
    }

    /// The moves played since the start.
    pub fn moves(&self) -> &[Move] {
        &self.moves
    }

    /// Whether two passes have ended the game.
    pub fn is_over(&self) -> bool {
        self.position.passes >= 2
    }

    /// Black's area less White's on the board as it stands.
    pub fn score(&self) -> i32 {
        self.position.board.area_score(self.geometry)
    }

    /// The position after `mv`, or why it is illegal.
    pub fn check(&self, mv: Move) -> Result<Position, Illegal> {
        if self.is_over() {
            return Err(Illegal::GameOver);
        }
        let Position { board, to_move, passes } = self.position;
        let Move::Stone(point) = mv else {
            return Ok(Position { board, to_move: to_move.opponent(), passes: passes + 1 });
        };
        let placed = board.place(self.geometry, to_move, point.into()).map_err(|reject| match reject {
            Reject::Occupied => Illegal::Occupied,
            Reject::Suicide => Illegal::Suicide,
        })?;
        match self.boards.iter().position(|&earlier| earlier == placed.board) {
            None => Ok(Position { board: placed.board, to_move: to_move.opponent(), passes: 0 }),
            Some(index) if index < self.earlier => Err(Illegal::RecreatesEarlier(index)),
            Some(index) => Err(Illegal::RecreatesMove(self.board_moves[index - self.earlier])),
        }
    }

    /// Plays `mv`; an illegal move changes nothing.
    pub fn play(&mut self, mv: Move) -> Result<(), Illegal> {
        let next = self.check(mv)?;
        self.undo.push(self.position);
        self.moves.push(mv);
        if mv != Move::Pass {
            self.boards.push(next.board);
            self.board_moves.push(self.moves.len());
        }
        self.position = next;
        Ok(())
    }

    /// Takes back the last move; `false` at the start.
    pub fn undo(&mut self) -> bool {
        let (Some(position), Some(mv)) = (self.undo.pop(), self.moves.pop()) else { return false };
        if mv != Move::Pass {
            self.boards.pop();
            self.board_moves.pop();
        }
        self.position = position;
        true
    }

    /// All legal moves, points first, then the pass; none when the game is over.
    pub fn legal_moves(&self) -> Vec<Move> {
        (0..self.geometry.points() as u8).map(Move::Stone).chain([Move::Pass]).filter(|&mv| self.check(mv).is_ok()).collect()
    }
}

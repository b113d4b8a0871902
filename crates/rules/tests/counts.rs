//! The rules pinned by published counts: legal boards, and games under positional superko without suicide.

use superko_rules::{Board, Color, Game, Geometry, bits, parse_board_size};

/// Boards on which every chain has a liberty. Exchanging the colours pairs all but the empty board, so those whose highest stone is
/// black are half of the others.
fn legal_boards(geometry: &Geometry) -> u64 {
    let half: u64 = (0..geometry.points())
        .map(|highest| {
            let mut board = Board { black: 1 << highest, white: 0 };
            let mut count = 0;
            while board.occupied() >> (highest + 1) == 0 && board.black >> highest & 1 == 1 {
                count += u64::from(board.breathless_chain(geometry).is_none());
                increment(&mut board);
            }
            count
        })
        .sum();
    1 + 2 * half
}

/// The board with the next code: adds one to the ternary number.
fn increment(board: &mut Board) {
    let mut point = 1;
    while board.white & point != 0 {
        board.white &= !point;
        point <<= 1;
    }
    if board.black & point == 0 {
        board.black |= point;
    } else {
        board.black &= !point;
        board.white |= point;
    }
}

#[test]
fn legal_boards_of_small_sizes() {
    for (name, count) in [("1x1", 1), ("1x2", 5), ("1x3", 15), ("1x4", 41), ("2x2", 57), ("2x3", 489), ("3x2", 489), ("3x3", 12_675)] {
        assert_eq!(legal_boards(parse_board_size(name).unwrap()), count, "{name}");
    }
}

#[test]
fn legal_boards_of_4x4() {
    assert_eq!(legal_boards(parse_board_size("4x4").unwrap()), 24_318_165);
}

fn games_by_play(game: &mut Game) -> u64 {
    if game.is_over() {
        return 1;
    }
    let mut count = 0;
    for mv in game.legal_moves() {
        game.play(mv).unwrap();
        count += games_by_play(game);
        assert!(game.undo());
    }
    count
}

#[test]
fn games_of_lines_up_to_three_points() {
    for (name, count) in [("1x1", 1), ("1x2", 9), ("1x3", 907), ("2x1", 9), ("3x1", 907)] {
        assert_eq!(games_by_play(&mut Game::new(parse_board_size(name).unwrap())), count, "{name}");
    }
}

/// Counts games on a line of four with the history as a set of bits, one a board: the moves come from `Board::place`.
struct LineOfFour {
    /// `next[color][board]`: boards that a stone of that colour leads to.
    next: [Vec<Vec<u8>>; 2],
}

impl LineOfFour {
    fn new() -> Self {
        let geometry = parse_board_size("1x4").unwrap();
        let next = [Color::Black, Color::White].map(|color| {
            (0..81)
                .map(|code| {
                    let board = geometry.decode(code);
                    let placed = bits(geometry.full()).filter_map(|point| board.place(geometry, color, point).ok());
                    placed.map(|placed| geometry.code(placed.board) as u8).collect()
                })
                .collect()
        });
        LineOfFour { next }
    }

    /// Games from here, `side` to move, no pass directly before: those that go on at once, and those that pass first.
    fn games(&self, board: u8, side: usize, history: u128) -> u64 {
        1 + self.stones(board, side, history) + self.stones(board, 1 - side, history)
    }

    fn stones(&self, board: u8, side: usize, history: u128) -> u64 {
        let fresh = self.next[side][board as usize].iter().filter(|&&next| history >> next & 1 == 0);
        fresh.map(|&next| self.games(next, 1 - side, history | 1 << next)).sum()
    }
}

/// From the empty board the game may begin with either colour (after a pass) and with four points, of which two are the mirror images of
/// the others.
#[test]
fn games_of_1x4() {
    let geometry = parse_board_size("1x4").unwrap();
    let empty = geometry.code(Board::EMPTY);
    let first = |point: usize| {
        let board = Board { black: 1 << point, white: 0 };
        let code = geometry.code(board) as u8;
        LineOfFour::new().games(code, 1, 1 << empty | 1 << code)
    };
    assert_eq!(1 + 2 * 2 * (first(0) + first(1)), 719_178_893);
}

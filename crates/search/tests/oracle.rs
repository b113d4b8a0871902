//! The oracle against known values, and against a search that is plainer still.

use proptest::prelude::*;
use superko_rules::{Board, Color, Game, Geometry, Move, Setup, board_from_rows, parse_board_size};
use superko_search::{Komi, Oracle};

fn setup(size: &str, rows: &[&str], to_move: Color) -> Game {
    let geometry = parse_board_size(size).unwrap();
    let board = board_from_rows(geometry, rows).unwrap();
    Game::from_setup(geometry, Setup { board, to_move, passes: 0, earlier: Vec::new() }).unwrap()
}

#[test]
fn whole_boards_have_their_known_values() {
    for (name, value) in [
        ("1x1", 0),
        ("1x2", 0),
        ("1x3", 3),
        ("1x4", 4),
        ("1x5", 0),
        ("1x6", 1),
        ("1x7", 2),
        ("1x8", 3),
        ("2x2", 1),
        ("2x3", 0),
        ("3x2", 0),
        ("2x4", 8),
        ("3x3", 9),
    ] {
        let game = Game::new(parse_board_size(name).unwrap());
        let mut oracle = Oracle::new(5_000_000);
        assert_eq!(oracle.black_wins(&game, Komi::below(value)), Some(true), "{name}: Black reaches {value}");
        assert_eq!(oracle.black_wins(&game, Komi::below(value + 1)), Some(false), "{name}: Black gets no more than {value}");
    }
}

/// The first moves on 3x3: centre +9, side +3, corner -9.
#[test]
fn first_moves_on_3x3() {
    let geometry = parse_board_size("3x3").unwrap();
    for (first, value) in [("B2", 9), ("B1", 3), ("A1", -9)] {
        let mut game = Game::new(geometry);
        game.play(Move::parse(geometry, first).unwrap()).unwrap();
        assert_eq!(Oracle::new(5_000_000).value(&game), Some(value), "{first}");
    }
}

/// The smallest boards on which positional and situational superko part; situational superko would give +6 and -1.
#[test]
fn superko_is_positional() {
    assert_eq!(Oracle::new(1_000_000).value(&setup("1x6", &["X.X.X."], Color::Black)), Some(1));
    assert_eq!(Oracle::new(1_000_000).value(&setup("2x3", &["OOO", ".X."], Color::White)), Some(0));
}

#[test]
fn the_budget_is_kept() {
    let game = Game::new(parse_board_size("4x4").unwrap());
    let mut oracle = Oracle::new(1000);
    assert_eq!(oracle.black_wins(&game, Komi::below(2)), None);
    assert_eq!(oracle.spent(), 1001);
    let over = {
        let mut game = game;
        game.play(Move::Pass).unwrap();
        game.play(Move::Pass).unwrap();
        game
    };
    assert_eq!(oracle.value(&over), Some(0));
}

/// Black's margin by plain minimax through the rules crate's own `Game`, without memo, ordering or cut-offs beyond the bounds.
fn minimax(game: &mut Game, nodes: &mut u64) -> Option<i32> {
    *nodes += 1;
    if *nodes > 20_000 {
        return None;
    }
    if game.is_over() {
        return Some(game.score());
    }
    let black = game.position().to_move == Color::Black;
    let mut best: Option<i32> = None;
    for mv in game.legal_moves() {
        game.play(mv).unwrap();
        let value = minimax(game, nodes);
        game.undo();
        let value = value?;
        best = Some(best.map_or(value, |best| if black { best.max(value) } else { best.min(value) }));
    }
    best
}

fn arbitrary_game(geometry: &'static Geometry, choices: &[u16]) -> Game {
    let mut game = Game::new(geometry);
    for &choice in choices {
        let moves = game.legal_moves();
        if moves.is_empty() {
            break;
        }
        // The pass comes last and is drawn rarely, lest most games end at once.
        let among = if choice % 7 == 0 || moves.len() == 1 { moves.len() } else { moves.len() - 1 };
        game.play(moves[choice as usize % among]).unwrap();
    }
    game
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_minimax_where_that_finishes(size in 0usize..6, choices in prop::collection::vec(any::<u16>(), 0..40)) {
        let geometry = parse_board_size(["1x3", "1x4", "2x2", "1x5", "2x3", "1x6"][size]).unwrap();
        let mut game = arbitrary_game(geometry, &choices);
        let mut nodes = 0;
        if let Some(value) = minimax(&mut game, &mut nodes) {
            let mut oracle = Oracle::new(1_000_000);
            prop_assert_eq!(oracle.value(&game), Some(value), "{:?}", game.moves());
        }
    }
}

/// Earlier boards of a set-up count: the same stones have another value once the capture that decides them may not be made.
#[test]
fn earlier_boards_decide() {
    let geometry = parse_board_size("1x3").unwrap();
    let free = setup("1x3", &["..."], Color::Black);
    let centre = Board { black: 0b010, white: 0 };
    let banned = Setup { board: Board::EMPTY, to_move: Color::Black, passes: 0, earlier: vec![centre] };
    let banned = Game::from_setup(geometry, banned).unwrap();
    assert_eq!(Oracle::new(10_000).value(&free), Some(3));
    let value = Oracle::new(10_000).value(&banned).unwrap();
    assert!(value < 3, "{value}");
}

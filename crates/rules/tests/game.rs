//! Play: captures, legality with its reason, superko over set-ups, undo, score.

use proptest::prelude::*;
use superko_rules::{
    Board, Color, Game, Illegal, Move, Setup, SetupError, bits, board_from_rows, board_rows, parse_board_size, parse_moves,
};

fn game(size: &str, moves: &str) -> Game {
    let geometry = parse_board_size(size).unwrap();
    let mut game = Game::new(geometry);
    for mv in parse_moves(geometry, moves).unwrap() {
        game.play(mv).unwrap();
    }
    game
}

fn diagram(size: &str, rows: &[&str], to_move: Color, earlier: &[&[&str]]) -> Game {
    let geometry = parse_board_size(size).unwrap();
    let read = |rows: &[&str]| board_from_rows(geometry, rows).unwrap();
    let earlier = earlier.iter().map(|rows| read(rows)).collect();
    Game::from_setup(geometry, Setup { board: read(rows), to_move, passes: 0, earlier }).unwrap()
}

fn check(game: &Game, vertex: &str) -> Result<(), Illegal> {
    game.check(Move::parse(game.geometry(), vertex).unwrap()).map(|_| ())
}

fn rows(game: &Game) -> Vec<String> {
    board_rows(game.geometry(), game.position().board)
}

#[test]
fn captures_come_before_suicide() {
    let mut corner = diagram("2x2", &["OO", ".O"], Color::Black, &[]);
    assert_eq!(check(&corner, "A1"), Ok(()), "the last liberty of all three stones");
    corner.play(Move::Stone(0)).unwrap();
    assert_eq!(rows(&corner), ["..", "X."]);
    let eye = diagram("1x5", &[".X.X."], Color::White, &[]);
    assert_eq!(check(&eye, "C1"), Err(Illegal::Suicide));
    let chain = diagram("2x4", &["OOX.", ".XX."], Color::White, &[]);
    assert_eq!(check(&chain, "A1"), Err(Illegal::Suicide), "suicide of three stones");
    let filled = diagram("1x2", &["X."], Color::Black, &[]);
    assert_eq!(check(&filled, "B1"), Err(Illegal::Suicide), "filling one's own last liberty");
    let several = diagram("5x5", &["..X..", ".XOX.", "XO.OX", ".XOX.", "..X.."], Color::Black, &[]);
    let after = several.check(Move::Stone(12)).unwrap();
    assert_eq!(board_rows(several.geometry(), after.board), ["..X..", ".X.X.", "X.X.X", ".X.X.", "..X.."], "four chains at once");
}

#[test]
fn each_illegal_move_names_its_reason() {
    let start = game("1x3", "B1");
    assert_eq!(check(&start, "B1"), Err(Illegal::Occupied), "the opponent's stone");
    assert_eq!(check(&game("1x3", "B1 pass"), "B1"), Err(Illegal::Occupied), "one's own stone");
    assert_eq!(check(&game("1x3", "B1 pass pass"), "A1"), Err(Illegal::GameOver));
    assert_eq!(check(&game("1x3", "B1 pass pass"), "pass"), Err(Illegal::GameOver));
    // 1: X.  2: XO -> .O  3: X. again
    let two = game("1x2", "A1 B1");
    assert_eq!(rows(&two), [".O"]);
    assert_eq!(check(&two, "A1"), Err(Illegal::RecreatesMove(1)));
    // Move numbers count passes.
    assert_eq!(check(&game("1x2", "pass A1 B1"), "A1"), Err(Illegal::RecreatesMove(2)));
}

#[test]
fn superko_covers_the_whole_history_and_both_sides() {
    // A ko, taken and left for two moves elsewhere, may still not be retaken to the same board.
    let mut ko = diagram("3x4", &[".XO.", "XO.O", ".XO."], Color::Black, &[]);
    ko.play(Move::parse(ko.geometry(), "C2").unwrap()).unwrap();
    assert_eq!(rows(&ko), [".XO.", "X.XO", ".XO."]);
    assert_eq!(check(&ko, "B2"), Err(Illegal::RecreatesMove(0)));
    assert_eq!(check(&ko, "B2").unwrap_err().to_string(), "superko: it recreates the start board");
    ko.play(Move::Pass).unwrap();
    ko.play(Move::parse(ko.geometry(), "A1").unwrap()).unwrap();
    assert_eq!(check(&ko, "B2"), Ok(()), "another stone is on the board");
    assert_eq!(ko.boards().len(), 3, "a pass adds no board");
}

/// A board is banned whoever would be to move after it: here White to move, while the set-up does not say who was.
#[test]
fn superko_is_positional_not_situational() {
    let game = diagram("1x4", &["X..."], Color::White, &[&["XX.."]]);
    let mut passed = game.clone();
    passed.play(Move::Pass).unwrap();
    assert_eq!(check(&passed, "B1"), Err(Illegal::RecreatesEarlier(0)));
    assert_eq!(check(&passed, "C1"), Ok(()));
}

#[test]
fn earlier_boards_are_numbered_from_zero_and_named_from_one() {
    let game = diagram("1x4", &["X..."], Color::Black, &[&["O..."], &["X.X."], &["X..X"], &["X.X."]]);
    assert_eq!(check(&game, "C1"), Err(Illegal::RecreatesEarlier(1)));
    assert_eq!(check(&game, "D1"), Err(Illegal::RecreatesEarlier(2)));
    assert_eq!(check(&game, "D1").unwrap_err().to_string(), "superko: it recreates earlier board 3 of the setup");
    assert_eq!(game.boards().len(), 5);
    assert_eq!(*game.boards().last().unwrap(), game.position().board);
}

#[test]
fn bad_setups_are_refused() {
    let geometry = parse_board_size("1x3").unwrap();
    let read = |row: &str| board_from_rows(geometry, &[row]).unwrap();
    let setup = |board, passes, earlier| Setup { board, to_move: Color::Black, passes, earlier };
    let refused = |setup| Game::from_setup(geometry, setup).unwrap_err();
    assert_eq!(refused(setup(read("XO."), 2, vec![])), SetupError::Passes(2));
    assert_eq!(refused(setup(read("XO."), 0, vec![])), SetupError::NoLiberty(Move::Stone(0)));
    assert_eq!(
        refused(setup(read("..."), 0, vec![read("X.."), read(".XO"), read("XXX")])),
        SetupError::EarlierNoLiberty(1, Move::Stone(2))
    );
    assert!(Game::from_setup(geometry, setup(read("X.O"), 1, vec![read("...")])).is_ok());
}

#[test]
fn a_setup_after_a_pass_ends_with_one_more() {
    let geometry = parse_board_size("1x3").unwrap();
    let board = board_from_rows(geometry, &[".X."]).unwrap();
    let mut game = Game::from_setup(geometry, Setup { board, to_move: Color::White, passes: 1, earlier: vec![] }).unwrap();
    assert!(!game.is_over());
    game.play(Move::Pass).unwrap();
    assert!(game.is_over() && game.legal_moves().is_empty());
    assert_eq!(game.score(), 3);
    assert!(game.undo() && !game.undo());
    assert_eq!(game.position().passes, 1);
}

#[test]
fn area_scores() {
    for (size, rows, score) in [
        ("1x1", vec!["."], 0),
        ("1x3", vec![".X."], 3),
        ("1x3", vec!["X.O"], 0),
        ("1x5", vec![".OO.X"], -2),
        ("3x3", vec!["...", ".X.", "..."], 9),
        ("3x3", vec!["XO.", "XO.", "XO."], -3),
        ("3x3", vec!["...", "...", "..."], 0),
        ("2x4", vec!["X..O", "X..O"], 0),
    ] {
        let geometry = parse_board_size(size).unwrap();
        assert_eq!(board_from_rows(geometry, &rows).unwrap().area_score(geometry), score, "{rows:?}");
    }
    let eight = parse_board_size("8x8").unwrap();
    assert_eq!(Board { black: 1 << 63, white: 0 }.area_score(eight), 64);
    let long = parse_board_size("1x64").unwrap();
    assert_eq!(Board { black: 1, white: 1 << 63 }.area_score(long), 0, "the ends of a line of 64 are not neighbours");
    assert_eq!(Board { black: 1, white: 2 }.area_score(long), -62);
}

/// Area by the definition: point by point, with a walk over empty neighbours.
fn naive_score(game: &Game) -> i32 {
    let geometry = game.geometry();
    let board = game.position().board;
    let owner = |point: usize| {
        let (mut seen, mut open, mut black, mut white) = (0u64, vec![point], false, false);
        while let Some(at) = open.pop() {
            if seen >> at & 1 == 1 {
                continue;
            }
            seen |= 1 << at;
            if board.black >> at & 1 == 1 {
                black = true;
            } else if board.white >> at & 1 == 1 {
                white = true;
            } else {
                let (row, col) = (at / geometry.cols(), at % geometry.cols());
                open.extend((row > 0).then(|| at - geometry.cols()));
                open.extend((row + 1 < geometry.rows()).then(|| at + geometry.cols()));
                open.extend((col > 0).then(|| at - 1));
                open.extend((col + 1 < geometry.cols()).then(|| at + 1));
            }
        }
        i32::from(black && !white) - i32::from(white && !black)
    };
    (0..geometry.points()).map(owner).sum()
}

const SIZES: [&str; 12] = ["1x1", "1x2", "1x5", "2x2", "2x3", "3x3", "3x4", "4x4", "8x8", "1x40", "5x8", "2x32"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Random games, with everything that must hold at each step.
    #[test]
    fn play_and_undo(size in 0..SIZES.len(), choices in prop::collection::vec(any::<u16>(), 0..120)) {
        let geometry = parse_board_size(SIZES[size]).unwrap();
        let mut game = Game::new(geometry);
        let mut before = Vec::new();
        for choice in choices {
            let moves = game.legal_moves();
            if moves.is_empty() {
                prop_assert!(game.is_over());
                break;
            }
            let among = if choice % 11 == 0 || moves.len() == 1 { moves.len() } else { moves.len() - 1 };
            let mv = moves[choice as usize % among];
            before.push((game.position(), game.boards().to_vec(), game.moves().to_vec()));
            let position = game.position();
            prop_assert_eq!(game.check(mv).unwrap().to_move, position.to_move.opponent());
            game.play(mv).unwrap();
            let board = game.position().board;
            prop_assert!(board.breathless_chain(geometry).is_none());
            prop_assert_eq!(board.black & board.white, 0);
            prop_assert_eq!(board.occupied() & !geometry.full(), 0);
            prop_assert_eq!(game.score(), naive_score(&game));
            if let Move::Stone(point) = mv {
                let placed = position.board.place(geometry, position.to_move, point.into()).unwrap();
                let contested = position.board.contested(geometry, position.to_move);
                prop_assert_eq!(position.board.place_near(geometry, position.to_move, point.into(), contested), Ok(placed));
                let codes = geometry.codes(position.board);
                let canonical = geometry.canonical_after(&codes, position.to_move, point.into(), placed.captured);
                prop_assert_eq!(canonical, geometry.canonical(board));
                prop_assert_eq!(placed.captured & !position.board.stones(position.to_move.opponent()), 0);
            } else {
                prop_assert_eq!(board, position.board);
            }
            let mut distinct = game.boards().to_vec();
            distinct.sort();
            distinct.dedup();
            prop_assert_eq!(distinct.len(), game.boards().len(), "no board recurs");
            // An illegal move changes nothing, and its reason is true.
            for point in bits(geometry.full()) {
                let illegal = game.check(Move::Stone(point as u8)).err();
                let occupied = board.occupied() >> point & 1 == 1;
                match illegal {
                    None => prop_assert!(!occupied && !game.is_over()),
                    Some(Illegal::GameOver) => prop_assert!(game.is_over()),
                    Some(Illegal::Occupied) => prop_assert!(occupied),
                    Some(Illegal::Suicide) => {
                        let mover = game.position().to_move;
                        prop_assert!(!occupied);
                        prop_assert!(board.place_near(geometry, mover, point, board.contested(geometry, mover)).is_err());
                    }
                    Some(Illegal::RecreatesEarlier(_)) => prop_assert!(false, "there is no earlier board"),
                    Some(Illegal::RecreatesMove(number)) => {
                        let after = board.place(geometry, game.position().to_move, point).unwrap().board;
                        let mut replay = Game::new(geometry);
                        for &mv in &game.moves()[..number] {
                            replay.play(mv).unwrap();
                        }
                        prop_assert_eq!(replay.position().board, after);
                    }
                }
                if let Some(reason) = illegal {
                    let moves = game.moves().len();
                    prop_assert_eq!(game.play(Move::Stone(point as u8)), Err(reason));
                    prop_assert_eq!(game.moves().len(), moves);
                }
            }
        }
        while let Some((position, boards, moves)) = before.pop() {
            prop_assert!(game.undo());
            prop_assert_eq!(game.position(), position);
            prop_assert_eq!(game.boards(), &boards[..]);
            prop_assert_eq!(game.moves(), &moves[..]);
        }
        prop_assert!(!game.undo());
    }
}

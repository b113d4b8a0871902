//! Lemma 1 of the paper, put to the oracle: what pure eyes claim under C1 and C2 is true, whatever else the history holds.

use superko_rules::{Board, Color, Game, Move, PureEyes, Setup, board_rows, parse_board_size};
use superko_search::{Komi, Oracle};

/// Boards that play from `game` creates, none with a black stone on `territory`: the histories that C1 allows.
fn future(game: &Game, territory: u64, mut draw: impl FnMut(usize) -> usize) -> Vec<Board> {
    let mut boards = Vec::new();
    for _ in 0..6 {
        let mut line = game.clone();
        for _ in 0..8 {
            let moves = line.legal_moves();
            if moves.is_empty() {
                break;
            }
            line.play(moves[draw(moves.len())]).unwrap();
            let board = line.position().board;
            if line.moves().last() != Some(&Move::Pass) && board.black & territory == 0 && draw(4) > 0 {
                boards.push(board);
            }
        }
    }
    boards
}

#[test]
fn claims_hold_under_c1_and_c2() {
    let mut state = 1u64;
    let mut draw = move |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit
    };
    for (name, most_claims) in [("1x5", 4), ("1x6", 6), ("1x7", 10), ("2x3", 62), ("2x4", 298), ("3x3", 1270)] {
        let geometry = parse_board_size(name).unwrap();
        let points = geometry.points() as u32;
        let mut oracle = Oracle::new(20_000);
        let (mut claims, mut asked, mut unknown) = (0, 0, 0);
        for code in 0..3u128.pow(points) {
            let board = geometry.decode(code);
            let eyes = PureEyes::analyze(geometry, board.black);
            if eyes.alive == 0 || board.breathless_chain(geometry).is_some() {
                continue;
            }
            let territory = eyes.territory;
            let margin = 2 * (eyes.alive | territory).count_ones() as i32 - points as i32;
            // C2: White may have passed before Black's move, Black not before White's.
            for (to_move, passes) in [(Color::Black, 0), (Color::White, 0), (Color::Black, 1)] {
                claims += u32::from(passes == 0);
                let plain = Setup { board, to_move, passes, earlier: Vec::new() };
                let game = Game::from_setup(geometry, plain.clone()).unwrap();
                for history in 0..3 {
                    let earlier = if history == 0 { Vec::new() } else { future(&game, territory, &mut draw) };
                    let game = Game::from_setup(geometry, Setup { earlier, ..plain.clone() }).unwrap();
                    asked += 1;
                    match oracle.black_wins(&game, Komi::below(margin)) {
                        Some(holds) => {
                            assert!(holds, "{name} {:?} {to_move:?} claims {margin}: {:?}", board_rows(geometry, board), game.boards())
                        }
                        None => unknown += 1,
                    }
                }
            }
        }
        assert_eq!(claims, most_claims, "{name}: number of positions with a claim");
        assert!(unknown * 10 <= asked, "{name}: the oracle left {unknown} of {asked} open");
    }
}

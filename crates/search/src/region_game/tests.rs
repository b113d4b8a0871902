//! Local games on known shapes, and claims put to the oracle.

use super::*;
use crate::region_claim::claim;
use crate::static_leaf::{LeafKind, StaticWin};
use crate::{Komi, Oracle};
use superko_rules::{Board, Color, Game, Move, Position, PureEyes, Setup, board_rows, parse_board_size};

/// Black's claim of at least `margin`, all conditions on the history left to `stood`.
fn claimed(games: &mut RegionGames, position: Position, winner: Color, margin: i32, stood: u64) -> Option<StaticWin> {
    let geometry = games.geometry;
    let eyes = PureEyes::analyze(geometry, position.board.stones(winner));
    let wanted = (margin + geometry.points() as i32 + 1).div_euclid(2);
    claim(geometry, games, eyes, position, winner, wanted, stood)
}

struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// Boards that random play from `game` creates, none with a stone of `winner` on `territory`: histories that C1 allows.
fn future(game: &Game, winner: Color, territory: u64, draw: &mut Draw) -> Vec<Board> {
    let mut boards = Vec::new();
    for _ in 0..6 {
        let mut line = game.clone();
        for _ in 0..8 {
            let moves = line.legal_moves();
            if moves.is_empty() {
                break;
            }
            line.play(moves[draw.below(moves.len())]).unwrap();
            let board = line.position().board;
            if line.moves().last() != Some(&Move::Pass) && board.stones(winner) & territory == 0 && draw.below(4) > 0 {
                boards.push(board);
            }
        }
    }
    boards
}

/// What a run over many positions saw.
#[derive(Default)]
struct Seen {
    claims: u32,
    with_loose_stones: u32,
    with_first_move: u32,
    asked: u32,
    unknown: u32,
}

/// Puts the strongest claim in `board` that needs a region game to the oracle, for either side to move, with and without earlier boards.
fn check(games: &mut RegionGames, oracle: &mut Oracle, board: Board, winner: Color, draw: &mut Draw, seen: &mut Seen) {
    let geometry = games.geometry;
    let points = geometry.points() as i32;
    let stones = board.stones(winner);
    let eyes = PureEyes::analyze(geometry, stones);
    if eyes.alive == 0 {
        return;
    }
    let loser = winner.opponent();
    for (to_move, passes) in [(loser, 0), (winner, 0), (winner, 1)] {
        let position = Position { board, to_move, passes };
        let Some(win) = (-points..=points).rev().find_map(|margin| claimed(games, position, winner, margin, stones)) else { continue };
        if win.kind != LeafKind::RegionGame {
            continue;
        }
        seen.claims += 1;
        seen.with_loose_stones += u32::from(stones & !eyes.alive != 0);
        seen.with_first_move += u32::from(to_move == winner);
        assert_eq!(win.best.is_some(), to_move == winner);
        assert_eq!(win.territory & stones, 0);
        let plain = Setup { board, to_move, passes, earlier: Vec::new() };
        let plain_game = Game::from_setup(geometry, plain.clone()).unwrap();
        for history in 0..3 {
            let earlier = if history == 0 { Vec::new() } else { future(&plain_game, winner, win.territory, draw) };
            let mut game = Game::from_setup(geometry, Setup { earlier, ..plain.clone() }).unwrap();
            let mut ask = |game: &Game, what: &str| {
                seen.asked += 1;
                let (komi, black) = match winner {
                    Color::Black => (Komi::below(win.margin), true),
                    Color::White => (Komi::below(1 - win.margin), false),
                };
                match oracle.black_wins(game, komi) {
                    Some(black_wins) => assert!(
                        black_wins == black,
                        "{} {:?} {to_move:?} to move, passes {passes}, {winner:?} claims {win:?} {what}: {:?}",
                        geometry.name(),
                        board_rows(geometry, board),
                        game.boards()
                    ),
                    None => seen.unknown += 1,
                }
            };
            ask(&game, "as it stands");
            if let Some(mv) = win.best {
                game.play(mv).expect("C1 makes the strategy's moves legal");
                ask(&game, "after its move");
            }
        }
    }
}

/// Every board of some small sizes, and drawn ones of larger sizes.
#[test]
fn claims_hold_under_c1_and_c2() {
    let mut draw = Draw(1);
    let sizes = std::env::var("SUPERKO_REGION_BOARDS").unwrap_or("2x4 3x3 1x8 1x9 2x5 3x4 2x6 3x5".to_owned());
    let share: f64 = std::env::var("SUPERKO_REGION_SHARE").map_or(1.0, |share| share.parse().unwrap());
    for name in sizes.split(' ') {
        let geometry = parse_board_size(name).unwrap();
        let mut oracle = Oracle::new(20_000);
        let mut games = RegionGames::new(geometry, RegionLimits::default());
        let mut seen = Seen::default();
        let all = 3u128.pow(geometry.points() as u32);
        let most = (60_000.0 * share) as u128;
        let mut one = |code: u128, winner, seen: &mut Seen| {
            let mut board = geometry.decode(code);
            while let Some(chain) = board.breathless_chain(geometry) {
                board = Board { black: board.black & !chain, white: board.white & !chain };
            }
            check(&mut games, &mut oracle, board, winner, &mut draw, seen);
        };
        if all <= most {
            for code in 0..all {
                one(code, Color::Black, &mut seen);
            }
        } else {
            let mut state = 7u64;
            for at in 0..most {
                state = mix(state.wrapping_add(0x9e37_79b9_7f4a_7c15));
                let winner = if at % 2 == 0 { Color::Black } else { Color::White };
                one(u128::from(state) % all, winner, &mut seen);
            }
        }
        println!(
            "{name}: {} claims ({} with loose stones, {} with the winner to move), {} questions, {} left open",
            seen.claims, seen.with_loose_stones, seen.with_first_move, seen.asked, seen.unknown
        );
    }
}

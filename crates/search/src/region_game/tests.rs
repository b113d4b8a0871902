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
    let sizes = std::env::var("SUPERKO_REGION_BOARDS").unwrap_or("2x4 3x3 1x8 2x5 3x4 2x6 3x5".to_owned());
    let share: f64 = std::env::var("SUPERKO_REGION_SHARE").map_or(1.0, |share| share.parse().unwrap());
    for name in sizes.split(' ') {
        let geometry = parse_board_size(name).unwrap();
        let mut oracle = Oracle::new(20_000);
        let mut games = RegionGames::new(geometry, RegionLimits::default());
        let mut seen = Seen::default();
        let all = 3u128.pow(geometry.points() as u32);
        let most = (20_000.0 * share) as u128;
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
        if geometry.points() >= 10 && share >= 1.0 && name != "1x10" {
            assert!(seen.claims > 200 && seen.with_loose_stones > 50 && seen.with_first_move > 50, "{name}: too few claims to mean much");
        }
        assert!(seen.unknown * 50 <= seen.asked, "{name}: the oracle left {} of {} open", seen.unknown, seen.asked);
        println!(
            "{name}: {} claims ({} with loose stones, {} with the winner to move), {} questions, {} left open",
            seen.claims, seen.with_loose_stones, seen.with_first_move, seen.asked, seen.unknown
        );
    }
}

/// A state to start lines of local play from: a drawn region on a drawn board, with stones in it as they may stand in a game.
fn drawn_state(geometry: &'static Geometry, draw: &mut Draw) -> Option<State> {
    let walls = bits(geometry.full()).filter(|_| draw.below(3) == 0).fold(0, |set, point| set | 1 << point);
    let region = geometry.components(geometry.full() & !walls).max_by_key(|region| region.count_ones())?;
    let edge = region & geometry.neighbors(geometry.full() & !region);
    let mut board = Board::default();
    for point in bits(region) {
        match draw.below(5) {
            0 | 1 if edge & 1 << point == 0 => board.black |= 1 << point,
            2 => board.white |= 1 << point,
            _ => {}
        }
    }
    let breathes = |chain: &u64| geometry.neighbors(*chain) & region & !board.occupied() != 0;
    let keep = |stones: u64| geometry.components(stones).filter(breathes).fold(0, |set, chain| set | chain);
    let turn = if draw.below(2) == 0 { Turn::Winner } else { Turn::Loser };
    Some(State { region, winner: keep(board.black), loser: keep(board.white), turn, captures: Captures::None })
}

/// Plays drawn lines of the local game and looks for what its rules exclude: a move of the winner that brings a configuration back, or
/// after which no winner stone stands on `T`. Says how many lines were played until the first fault.
fn fault_in_lines(lines: u32) -> Option<(u32, String)> {
    let mut draw = Draw(5);
    for line in 0..lines {
        let geometry = parse_board_size(["3x3", "2x5", "3x4", "1x7", "2x4"][line as usize % 5]).unwrap();
        let limits = RegionLimits { interior: 64, ..RegionLimits::default() };
        let games = RegionGames::new(geometry, limits);
        let Some(mut state) = drawn_state(geometry, &mut draw) else { continue };
        let territory = state.region & !state.winner;
        let mut seen = vec![(state.winner, state.loser)];
        let start = state;
        for _ in 0..40 {
            let reach = Reach::new(geometry, &state);
            if reach.settled {
                break;
            }
            let empty: Vec<usize> = bits(state.empty()).collect();
            let by_winner = state.turn == Turn::Winner;
            let next: Vec<State> = if by_winner {
                empty.iter().filter_map(|&point| games.winner_option(&state, &reach, point)).collect()
            } else {
                let replies = empty.iter().map(|&point| games.loser_option(&state, state.winner & !reach.anchored, point));
                let stones = replies.filter_map(|reply| if let Reply::Stone(next) = reply { Some(next) } else { None });
                stones.chain([State { turn: Turn::Winner, ..state }]).collect()
            };
            let captures: Vec<State> =
                next.iter().copied().filter(|n| (n.winner | n.loser).count_ones() <= (state.winner | state.loser).count_ones()).collect();
            let among = if captures.is_empty() || draw.below(3) == 0 { &next } else { &captures };
            if among.is_empty() {
                break;
            }
            state = among[draw.below(among.len())];
            let configuration = (state.winner, state.loser);
            if by_winner && (seen.contains(&configuration) || state.winner & territory == 0) {
                return Some((line, format!("{start:?}")));
            }
            seen.push(configuration);
        }
    }
    None
}

#[test]
fn local_play_repeats_nothing() {
    assert_eq!(fault_in_lines(200_000), None);
}

/// Each restriction of loose moves is needed for that.
#[cfg(feature = "mutation")]
#[test]
fn local_play_repeats_without_its_restrictions() {
    for condition in [Dropped::RegionL1, Dropped::RegionL2, Dropped::RegionL3] {
        crate::mutation::drop_condition(Some(condition));
        let fault = fault_in_lines(200_000);
        crate::mutation::drop_condition(None);
        assert!(fault.is_some(), "{condition:?} makes no difference");
    }
}

/// A ko, after two passes of the loser in the stage: the winner may not retake. The stones gained meanwhile make a new record, which the
/// retaken ko does not beat. Without it the retaken ko brings back the board before the loser took.
#[cfg(feature = "mutation")]
#[test]
fn the_record_goes_on_to_grow() {
    let geometry = parse_board_size("3x4").unwrap();
    let games = RegionGames::new(geometry, RegionLimits { interior: 64, ..RegionLimits::default() });
    let (winner, loser) = (1 << 3 | 1 << 10, 1 << 1 | 1 << 6 | 1 << 7);
    let start = State { region: geometry.full() & !(1 << 11), winner, loser, turn: Turn::Loser, captures: Captures::None };
    let play = |state: &State, mv: Option<usize>| {
        let reach = Reach::new(geometry, state);
        match (state.turn, mv) {
            (Turn::Winner, mv) => games.winner_option(state, &reach, mv.expect("the winner does not pass")),
            (Turn::Loser, None) => Some(State { turn: Turn::Winner, ..*state }),
            (Turn::Loser, Some(point)) => match games.loser_option(state, state.winner & !reach.anchored, point) {
                Reply::Stone(next) => Some(next),
                _ => None,
            },
        }
    };
    let retakes = || {
        let mut state = start;
        let mut before = start;
        for mv in [Some(2), Some(8), None, Some(5), None, Some(0), Some(4)] {
            before = state;
            state = play(&state, mv).expect("allowed");
        }
        let after = play(&state, Some(0))?;
        assert_eq!((after.winner, after.loser), (before.winner, before.loser));
        Some(after)
    };
    assert_eq!(retakes(), None);
    crate::mutation::drop_condition(Some(Dropped::RegionRecord));
    let without = retakes();
    crate::mutation::drop_condition(None);
    assert!(without.is_some());
}

/// Reads a shape: `X` winner, `O` loser, `.` empty, `#` wall. Says who wins with the loser and with the winner to move first.
fn shape(rows: &[&str]) -> (bool, bool) {
    let geometry = Geometry::get(rows.len(), rows[0].len()).unwrap();
    let points = |kind: char| {
        let at = |(row, col): (usize, usize)| rows[rows.len() - 1 - row].as_bytes()[col] == kind as u8;
        (0..geometry.points()).filter(|&p| at((p / geometry.cols(), p % geometry.cols()))).fold(0, |set, p| set | 1u64 << p)
    };
    let limits = RegionLimits { region: 64, interior: 64, states: 1_000_000, kept: 1 << 20 };
    let mut games = RegionGames::new(geometry, limits);
    let mut wins = |first| match games.read(geometry.full() & !points('#'), points('X'), points('O'), first) {
        Local::Won(_) => true,
        Local::Lost => false,
        Local::Open => panic!("{rows:?} is too large to read"),
    };
    (wins(false), wins(true))
}

/// Life and death as every player knows it.
#[test]
fn known_shapes() {
    let (alive, dead, unsettled) = ((false, false), (true, true), (false, true));
    for (what, rows, outcome) in [
        ("an empty corner", &["...#", "...#"][..], dead),
        ("a lone stone, dead in truth, but not by the moves that the game allows", &["...#", ".O.#"], unsettled),
        ("two eyes", &[".O.O.#", "OOOO.#"], alive),
        ("eye space of four in a row", &["....O.#", "OOOOO.#"], alive),
        ("eye space of three in a row", &["...O.#", "OOOO.#"], unsettled),
        ("the same with the vital point taken", &[".X.O.#", "OOOO.#"], dead),
        ("eye space of two", &["..O.#", "OOO.#"], dead),
        ("four in a square", &["..O.#", "..O.#", "OOO.#"], dead),
        ("two eyes once the throw-in is taken", &["X.O.#", "OOO.#"], dead),
        ("one eye, the outside open", &[".O.#", "OO.#"], dead),
    ] {
        assert_eq!(shape(rows), outcome, "{what}: won with the loser first, with the winner first");
    }
}

/// Empty points that touch the walls are not enough: the loser's stones, once captured, leave room to come back. (No value within the
/// oracle's reach differs: what this shape refuses is won in truth, by moves that the local game does not allow.)
#[cfg(feature = "mutation")]
#[test]
fn occupied_points_count() {
    let rows = ["OOOOO.#", "OOOOO.#"];
    assert_eq!(shape(&rows), (false, false));
    crate::mutation::drop_condition(Some(Dropped::RegionPure));
    let without = shape(&rows);
    crate::mutation::drop_condition(None);
    assert_eq!(without, (true, true));
}

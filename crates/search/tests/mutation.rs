//! Each soundness condition, switched off, must be noticed; one whose removal no test notices is untested.
//! Run with `cargo test -p superko-search --features mutation --test mutation`.
#![cfg(feature = "mutation")]

use std::time::Duration;
use superko_rules::{Color, Game, Setup, board_from_rows, parse_board_size, parse_moves};
use superko_search::mutation::{Dropped, drop_condition};
use superko_search::{
    Control, Komi, Limits, MemoryTable, Options, Oracle, Prior, SelftestOptions, SelftestReport, on_large_stack, selftest, solve,
    solve_with,
};

/// Cases within which the selftest must notice. The slowest needed 129 when this was written, most needed one.
const CASES: u64 = 1500;

/// Runs the selftest with `condition` off, on a stack that holds its recursion. The switch belongs to that thread.
fn selftest_without(condition: Option<Dropped>, board: &str, seed: u64, cases: u64) -> SelftestReport {
    let boards = vec![parse_board_size(board).unwrap()];
    let options =
        SelftestOptions { boards, seed, time: Duration::from_secs(600), cases: Some(cases), table: None, checker: None, threads: 1 };
    let run = move || {
        drop_condition(condition);
        selftest(&options, &mut |_| {})
    };
    on_large_stack(run)
}

/// The selftest finds the fault, and on the very case that shows it the whole solver is right.
fn noticed_by_selftest(condition: Dropped, board: &str) {
    let report = selftest_without(Some(condition), board, 1, CASES);
    let mismatch = report.mismatches.first().unwrap_or_else(|| panic!("nobody noticed that {condition:?} is off on {board}"));
    let (_, command) = mismatch.split_once("--seed ").expect("a mismatch names its seed");
    let seed: u64 = command.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(selftest_without(Some(condition), board, seed, 1).mismatches.first(), Some(mismatch), "a seed reproduces its case");
    let whole = selftest_without(None, board, seed, 1);
    assert!(whole.mismatches.is_empty() && whole.comparisons > 0, "{:?}", whole.mismatches);
}

macro_rules! noticed {
    ($($name:ident: $condition:ident on $board:literal;)*) => {
        $(#[test] fn $name() { noticed_by_selftest(Dropped::$condition, $board); })*
    };
}

noticed! {
    reuse_i_created_boards: Created on "2x3";
    reuse_ii_excluded_boards: Excluded on "2x3";
    reuse_iii_territory: Territory on "2x3";
    reuse_iii_territory_2x4: Territory on "2x4";
    reuse_margin: Margin on "1x5";
    reuse_symmetry: Symmetry on "2x3";
    pass_back: PassBack on "1x5";
    static_c1: C1 on "2x3";
    static_c1_2x4: C1 on "2x4";
    static_c2: C2 on "2x3";
    look_ahead_c1: AheadC1 on "2x3";
    look_ahead_territory: AheadTerritory on "2x3";
    look_ahead_first_c1: AheadFirstC1 on "2x3";
    look_ahead_first_territory: AheadFirstTerritory on "2x3";
    look_ahead_c2: AheadC2 on "2x4";
    look_ahead_atari: AheadAtari on "2x4";
    look_ahead_occupied: AheadOccupied on "2x3";
    static_pureness: Pureness on "1x6";
    region_c1_2x5: RegionC1 on "2x5";
    compose_excluded: ComposeExcluded on "1x5";
    compose_created: ComposeCreated on "1x5";
    compose_territory: ComposeTerritory on "2x4";
    prune_skipped: PruneSkipped on "2x4";
    prune_win: PruneWin on "2x4";
    prune_loss: PruneLoss on "2x4";
    prune_verdict: PruneVerdict on "2x4";
}

/// The margin that a solver without `condition` reaches for Black, by asking at every komi, each on a fresh table.
fn value_without(condition: Option<Dropped>, options: Options, game: &Game) -> i32 {
    drop_condition(condition);
    let points = game.geometry().points() as i32;
    let wins = |margin: i32| {
        let table = MemoryTable::new(game.geometry());
        let outcome = solve_with(options, &table, game, Komi::below(margin), Limits::default(), &Control::default());
        outcome.verdict.expect("there is no limit").0 == Color::Black
    };
    let value = (-points..=points).rev().find(|&margin| wins(margin)).unwrap_or(-points - 1);
    drop_condition(None);
    value
}

/// The fixture tells the solvers apart: the whole one agrees with the oracle, the one without `condition` does not, in at least one order of
/// the search: a good prior may find the true proof before it meets the false claim.
fn told_apart(condition: Dropped, game: &Game) {
    told_apart_by(Options::default(), condition, game);
}

fn told_apart_by(options: Options, condition: Dropped, game: &Game) {
    let value = Oracle::new(1_000_000).value(game).expect("the fixture is small");
    let priors = [Prior::builtin(), Prior::uniform().leak(), Prior::random(1).leak(), Prior::random(2).leak()];
    let with = |prior: &&'static Prior| Options { prior, ..options };
    on_large_stack(|| {
        assert!(priors.iter().all(|prior| value_without(None, with(prior), game) == value), "the whole solver");
        assert!(
            priors.iter().any(|prior| value_without(Some(condition), with(prior), game) != value),
            "{condition:?} makes no difference here"
        );
    });
}

/// Where look-ahead for the side to move would decide first, before the other side's region game can go wrong.
fn no_look_ahead() -> Options {
    Options { look_ahead: false, ..Options::default() }
}

fn diagram(size: &str, rows: &[&str], to_move: Color, passes: u8) -> Game {
    let geometry = parse_board_size(size).unwrap();
    let board = board_from_rows(geometry, rows).unwrap();
    Game::from_setup(geometry, Setup { board, to_move, passes, earlier: Vec::new() }).unwrap()
}

fn game(size: &str, moves: &str) -> Game {
    let geometry = parse_board_size(size).unwrap();
    let mut game = Game::new(geometry);
    for mv in parse_moves(geometry, moves).unwrap() {
        game.play(mv).unwrap();
    }
    game
}

/// `OOO.X.`: every empty point beside Black's stone touches it, so Benson's classic test sees two eyes and all six points. But Black
/// must capture the three stones some day, which frees two points that do not touch the stone, and White comes back there. Value 1.
#[test]
fn pureness_fixture() {
    for to_move in [Color::Black, Color::White] {
        told_apart(Dropped::Pureness, &diagram("1x6", &["OOO.X."], to_move, 0));
    }
}

/// A real game from the empty board: Black has all of 2x3 but one eye and the corner A1, on which Black stones have been captured.
/// White lives on the captures that superko takes from Black: 3 points instead of the 4 that the eyes promise.
#[test]
fn c1_fixture() {
    told_apart(Dropped::C1, &game("2x3", "C1 A1 A2 C2 B2 pass B1 pass A1"));
}

/// `O..` over `X.X` over `XOX`: two points would each give Black all nine, but they need the chain at A1, whose only liberty is B2:
/// White takes it first.
#[test]
fn look_ahead_atari_fixture() {
    told_apart(Dropped::AheadAtari, &diagram("3x3", &["O..", "X.X", "XOX"], Color::White, 0));
}

/// What `condition` lets the solver say of Black's margin in `game`, which is `value`, at the komi just below.
fn margin_claimed(condition: Option<Dropped>, game: &Game, value: i32) -> i32 {
    assert_eq!(Oracle::new(1_000_000).value(game), Some(value));
    drop_condition(condition);
    let outcome = solve(&MemoryTable::new(game.geometry()), game, Komi::below(value), Limits::default(), &Control::default());
    drop_condition(None);
    let (winner, margin) = outcome.verdict.expect("there is no limit");
    assert_eq!(winner, Color::Black);
    margin
}

/// Black has passed with a white stone still inside the certified territory: White passes, and the stone counts. Black wins by 5 as
/// the board stands, by the 6 of the eyes only if Black may still capture. The fault shows in the margin, which a stored lemma
/// would carry to other komi: at the komi between 5 and 6 White's pass is seen first.
#[test]
fn c2_fixture() {
    let game = diagram("2x4", &["XXX.", ".XXO"], Color::White, 1);
    assert_eq!(margin_claimed(None, &game, 5), 5);
    assert_eq!(margin_claimed(Some(Dropped::C2), &game, 5), 6);
}

/// Black has passed with two points left that would each complete two eyes: White passes as well, and the board counts as it stands.
#[test]
fn look_ahead_c2_fixture() {
    let game = diagram("2x4", &["O...", "XXXX"], Color::White, 1);
    assert_eq!(margin_claimed(None, &game, 3), 3);
    assert_eq!(margin_claimed(Some(Dropped::AheadC2), &game, 3), 6);
}

/// One position with and without one earlier board, on one table: what is proved under one history may not be used under the other.
struct TwoHistories {
    size: &'static str,
    rows: &'static [&'static str],
    to_move: Color,
    earlier: &'static [&'static str],
    /// Black's margin without and with the earlier board.
    values: [i32; 2],
}

/// Black connects at B1 and has all four points, unless `XXX.` has been before.
const CREATED: TwoHistories = TwoHistories { size: "1x4", rows: &["X.X."], to_move: Color::Black, earlier: &["XXX."], values: [4, -4] };

/// White makes two eyes and has all six points. If `.OO` over `OO.` has been before, that two-eyed board may not recur, and white
/// stones have stood on points that the static leaves of the first proof certify as territory: White gets three points less.
const TERRITORY: TwoHistories =
    TwoHistories { size: "2x3", rows: &["..O", ".O."], to_move: Color::Black, earlier: &[".OO", "OO."], values: [-6, -3] };

impl TwoHistories {
    fn game(&self, with_earlier: bool) -> Game {
        let geometry = parse_board_size(self.size).unwrap();
        let board = board_from_rows(geometry, self.rows).unwrap();
        let earlier = if with_earlier { vec![board_from_rows(geometry, self.earlier).unwrap()] } else { Vec::new() };
        Game::from_setup(geometry, Setup { board, to_move: self.to_move, passes: 0, earlier }).unwrap()
    }

    /// Wrong answers over all komi, the history `with_earlier` solved last on the table of the other.
    fn wrong_answers(&self, condition: Option<Dropped>, with_earlier: bool) -> usize {
        drop_condition(condition);
        let table = MemoryTable::new(parse_board_size(self.size).unwrap());
        let mut wrong = 0;
        for with_earlier in [!with_earlier, with_earlier] {
            let game = self.game(with_earlier);
            let value = self.values[usize::from(with_earlier)];
            let points = game.geometry().points() as i32;
            for margin in -points..=points {
                // Look-ahead decides these positions at once, without the lemma that is to be misused.
                let options = Options { look_ahead: false, ..Options::default() };
                let outcome = solve_with(options, &table, &game, Komi::below(margin), Limits::default(), &Control::default());
                wrong += usize::from((outcome.verdict.expect("there is no limit").0 == Color::Black) != (value >= margin));
            }
        }
        drop_condition(None);
        wrong
    }

    fn told_apart(&self, condition: Dropped, with_earlier: bool) {
        for with_earlier in [false, true] {
            let value = Oracle::new(100_000).value(&self.game(with_earlier));
            assert_eq!(value, Some(self.values[usize::from(with_earlier)]), "the fixture itself");
        }
        assert_eq!(self.wrong_answers(None, with_earlier), 0, "the whole solver");
        assert!(self.wrong_answers(Some(condition), with_earlier) > 0, "{condition:?} makes no difference here");
    }
}

#[test]
fn reuse_i_fixture() {
    CREATED.told_apart(Dropped::Created, true);
    CREATED.told_apart(Dropped::ComposeCreated, true);
}

#[test]
fn reuse_ii_fixture() {
    CREATED.told_apart(Dropped::Excluded, false);
    CREATED.told_apart(Dropped::ComposeExcluded, false);
}

#[test]
fn reuse_iii_fixture() {
    TERRITORY.told_apart(Dropped::Territory, true);
    TERRITORY.told_apart(Dropped::ComposeTerritory, true);
    TERRITORY.told_apart(Dropped::C1, true);
}

/// Black claims the corner by a region game, whose first move D1 recreates an earlier board: a black stone has stood on the region.
#[test]
fn region_c1_fixture() {
    let geometry = parse_board_size("2x5").unwrap();
    let board = board_from_rows(geometry, &[".XXOX", "X.X.X"]).unwrap();
    let earlier = vec![board_from_rows(geometry, &[".XX.X", "X.XXX"]).unwrap()];
    let game = Game::from_setup(geometry, Setup { board, to_move: Color::Black, passes: 0, earlier }).unwrap();
    told_apart(Dropped::RegionC1, &game);
}

/// Black has passed with a white stone still to be captured in a region that a local game wins: White passes too.
#[test]
fn region_c2_fixture() {
    let game = diagram("2x5", &[".XX.O", "X.X.."], Color::White, 1);
    let value = Oracle::new(1_000_000).value(&game).expect("the fixture is small");
    assert_eq!(value, 5);
    let verdict = |condition| {
        drop_condition(condition);
        let outcome = solve(&MemoryTable::new(game.geometry()), &game, Komi::below(value), Limits::default(), &Control::default());
        drop_condition(None);
        outcome.verdict
    };
    assert_eq!(verdict(None), Ok((Color::Black, value)));
    assert_eq!(verdict(Some(Dropped::C2)), Ok((Color::Black, 6)));
}

/// White to move lives on the left: Black would win the region with the first move.
#[test]
fn region_tempo_fixture() {
    told_apart(Dropped::RegionTempo, &diagram("2x6", &[".OXXX.", "OX.X.X"], Color::White, 0));
}

/// Black to move kills on the left or on the right of the wall, not on both sides.
#[test]
fn region_one_first_fixture() {
    let game = diagram("3x7", &[".OX.XO.", "OOXXXOO", "..X.X.."], Color::Black, 0);
    let komi = Komi::below(21);
    let winner = |condition, static_knowledge| {
        drop_condition(condition);
        let options = Options { static_knowledge, ..Options::default() };
        let outcome = solve_with(options, &MemoryTable::new(game.geometry()), &game, komi, Limits::default(), &Control::default());
        drop_condition(None);
        outcome.verdict.expect("there is no limit").0
    };
    assert_eq!(winner(None, false), Color::White, "the oracle does not reach so far");
    assert_eq!(winner(None, true), Color::White);
    assert_eq!(winner(Some(Dropped::RegionOneFirst), true), Color::Black);
}

/// Black to move must kill where White could live: the other side can wait.
#[test]
fn region_first_move_is_the_urgent_one() {
    for (rows, columns) in [([".OX.X..", "OOXXX..", "..X.X.."], "AB"), (["..X.XO.", "..XXXOO", "..X.X.."], "FG")] {
        let game = diagram("3x7", &rows, Color::Black, 0);
        let outcome = solve(&MemoryTable::new(game.geometry()), &game, Komi::below(21), Limits::default(), &Control::default());
        assert_eq!(outcome.verdict, Ok((Color::Black, 21)));
        assert_eq!(outcome.stats.expansions, 0, "a claim at the root");
        let vertex = outcome.best_move.unwrap().vertex(game.geometry());
        assert!(columns.contains(&vertex[..1]), "{vertex}");
    }
}

/// Black wins what White starts in the region, but not what Black must start.
#[test]
fn region_pass_fixture() {
    told_apart(Dropped::RegionPass, &diagram("3x5", &[".OXX.", "O..XX", ".O.X."], Color::Black, 0));
}

/// White's chain lives on the left, whatever Black's loose stones and moves next to it touch.
#[test]
fn region_anchor_fixture() {
    told_apart_by(no_look_ahead(), Dropped::RegionAnchor, &diagram("3x4", &["X.X.", "OOXX", ".OX."], Color::White, 0));
}

/// White lives in a region in which Black has no loose stone.
#[test]
fn region_covered_fixture() {
    told_apart_by(no_look_ahead(), Dropped::RegionCovered, &diagram("3x4", &[".OX.", "O.XX", ".OX."], Color::White, 0));
}

/// White has an eye in the region that Black may not fill.
#[test]
fn region_liberty_fixture() {
    told_apart_by(no_look_ahead(), Dropped::RegionLiberty, &diagram("3x4", &[".OX.", "O.XX", ".OX."], Color::White, 0));
}

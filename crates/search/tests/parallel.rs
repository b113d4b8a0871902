//! Several threads on one table: verdicts, limits, stopping, panics. The selftest compares them with the oracle.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use superko_rules::{Color, Game, Geometry, parse_board_size};
use superko_search::{
    Control, Komi, Lemma, LemmaHead, LemmaSets, Limits, MemoryTable, Numbers, Options, Outcome, PositionKey, SetPart, Stop, Table,
    on_large_stack, solve_with,
};

/// Boards with known values (paper, Table 2 and section 6) that take a fraction of a second.
const VALUES: [(&str, i32); 7] = [("1x5", 0), ("2x2", 1), ("2x3", 0), ("2x4", 8), ("3x4", 4), ("1x10", 1), ("1x11", 2)];

fn game_on(board: &str) -> Game {
    Game::new(parse_board_size(board).unwrap())
}

fn solve_by(threads: usize, table: &dyn Table, game: &Game, margin: i32, limits: Limits, control: &Control) -> Outcome {
    let options = Options { threads, ..Options::default() };
    on_large_stack(|| solve_with(options, table, game, Komi::below(margin), limits, control))
}

fn check_value(threads: usize, table: &dyn Table, board: &str, value: i32) {
    let game = game_on(board);
    let points = game.geometry().points() as i32;
    for (margin, winner) in [(value, Color::Black), (value + 1, Color::White)] {
        if margin > points {
            continue;
        }
        let control = Control::default();
        let outcome = solve_by(threads, table, &game, margin, Limits::default(), &control);
        let (found, reached) = outcome.verdict.unwrap();
        assert_eq!(found, winner, "{board} at {}, {threads} threads", Komi::below(margin));
        assert!(reached >= Komi::below(margin).need(winner));
        assert_eq!(outcome.threads, threads);
        assert_eq!(control.expansions.load(Relaxed), outcome.stats.expansions, "the counters are those of all threads");
        assert_eq!(control.lemmas_stored.load(Relaxed), outcome.stats.lemmas_stored);
        let legal = outcome.best_move.is_none_or(|mv| game.check(mv).is_ok());
        assert!(legal && outcome.best_move.is_some() == (winner == Color::Black));
    }
}

#[test]
fn any_number_of_threads_finds_the_known_values() {
    for (board, value) in VALUES {
        for threads in [1, 2, 3, 8] {
            check_value(threads, &MemoryTable::new(parse_board_size(board).unwrap()), board, value);
        }
    }
}

/// Crowded threads on tiny boards: whoever waits for another's numbers without an expansion of its own would hang here.
#[test]
fn a_crowd_on_a_tiny_board_gets_through() {
    for _ in 0..40 {
        for (board, value) in [("1x5", 0), ("2x2", 1), ("2x3", 0)] {
            check_value(16, &MemoryTable::new(parse_board_size(board).unwrap()), board, value);
        }
    }
}

#[test]
fn limits_are_for_all_threads_together() {
    let game = game_on("4x5");
    let (table, control) = (MemoryTable::new(game.geometry()), Control::default());
    let limits = Limits { expansions: Some(5001), time: None };
    let outcome = solve_by(3, &table, &game, 20, limits, &control);
    assert_eq!(outcome.verdict, Err(Stop::Expansions));
    assert_eq!(outcome.stats.expansions, 5001);

    let started = Instant::now();
    let limits = Limits { expansions: None, time: Some(Duration::from_millis(200)) };
    let outcome = solve_by(3, &table, &game, 20, limits, &control);
    assert_eq!(outcome.verdict, Err(Stop::Time));
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn the_stop_flag_stops_all_threads() {
    let game = game_on("4x5");
    let (table, control) = (MemoryTable::new(game.geometry()), Control::default());
    std::thread::scope(|scope| {
        let solver = scope.spawn(|| solve_by(3, &table, &game, 20, Limits::default(), &control));
        while control.expansions.load(Relaxed) < 3000 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let asked = Instant::now();
        control.stop.store(true, Relaxed);
        assert_eq!(solver.join().unwrap().verdict, Err(Stop::Asked));
        assert!(asked.elapsed() < Duration::from_secs(2));
    });
}

/// Passes calls on; panics at the given store of a lemma, and answers for numbers as `numbers` says.
struct Meddling {
    table: MemoryTable,
    stores_left: AtomicU64,
    draws: AtomicU64,
    lies: bool,
}

impl Meddling {
    fn new(board: &str, stores_left: u64, lies: bool) -> Meddling {
        let table = MemoryTable::new(parse_board_size(board).unwrap());
        Meddling { table, stores_left: AtomicU64::new(stores_left), draws: AtomicU64::new(1), lies }
    }
}

impl Table for Meddling {
    fn lemmas(&self, key: PositionKey, heads: &mut Vec<LemmaHead>) {
        self.table.lemmas(key, heads);
    }

    fn sets(&self, key: PositionKey, head: &LemmaHead, sets: &mut LemmaSets) -> bool {
        self.table.sets(key, head, sets)
    }

    fn store_lemma(&self, key: PositionKey, lemma: &Lemma) -> Vec<SetPart> {
        assert!(self.stores_left.fetch_sub(1, Relaxed) != 1, "the table gave up");
        self.table.store_lemma(key, lemma)
    }

    fn numbers(&self, key: u64) -> Option<Numbers> {
        if !self.lies {
            return self.table.numbers(key);
        }
        // From "won" to "as good as lost", whatever the position.
        let draw = self.draws.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let number = |bits: u64| [0, 1, 100, 10_000, u32::MAX][(bits % 5) as usize];
        (draw >> 60 != 0).then(|| Numbers { phi: number(draw >> 32), delta: number(draw >> 48), cost: 1 })
    }

    fn store_numbers(&self, key: u64, numbers: Numbers) {
        self.table.store_numbers(key, numbers);
    }

    fn geometry(&self) -> &'static Geometry {
        self.table.geometry()
    }
}

#[test]
fn a_panic_in_one_thread_ends_all_and_surfaces() {
    let game = game_on("4x5");
    for threads in [1, 4] {
        for stores in [1, 300] {
            let table = Meddling::new("4x5", stores, false);
            let options = Options { threads, ..Options::default() };
            let solve = || solve_with(options, &table, &game, Komi::below(20), Limits::default(), &Control::default());
            let panic = catch_unwind(AssertUnwindSafe(|| on_large_stack(solve))).unwrap_err();
            assert_eq!(panic.downcast_ref::<&str>(), Some(&"the table gave up"));
        }
    }
}

/// Numbers steer and prove nothing: with any numbers at all the verdicts are the same.
#[test]
fn numbers_prove_nothing() {
    for (board, value) in [("1x5", 0), ("2x2", 1), ("2x3", 0), ("2x4", 8)] {
        for threads in [1, 3] {
            check_value(threads, &Meddling::new(board, u64::MAX, true), board, value);
        }
    }
}

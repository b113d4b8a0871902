//! The differential selftest: random games with real superko histories, solver against oracle.
//!
//! A case is one game. The oracle finds the value of its late prefixes; the solver must agree at komi around that value, around what
//! pure eyes and region games claim, and at random, on a fresh table, on one table for all prefixes, siblings and mirror images, on a
//! table that forgets, and without static knowledge. Then lemmas are drawn from the shared table and put to the oracle under histories made
//! to their conditions: this tests what a lemma states, not only how it was used. The same goes for several threads on one table.

pub(crate) mod draw;
mod forgetful;
mod lemmas;
mod regions;

use crate::region_game::RegionGames;
use crate::rng::Rng;
use crate::{
    Bounds, Control, Counter, ExportError, Komi, Limits, MemoryTable, NumberRule, Options, Oracle, Prior, RegionLimits, Statement, Stop,
    Table, export, lookup, solve_with,
};
use forgetful::ForgetfulTable;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use superko_rules::{Color, Game, Geometry, Illegal, Move, PureEyes, board_rows, parse_board_size};

/// Makes an empty table for boards of one size.
pub type NewTable = fn(&'static Geometry) -> Box<dyn Table>;

/// Checks a certificate; what is wrong with it if it is refused.
pub type CheckCertificate = fn(&[u8]) -> Result<(), String>;

/// What to run.
#[derive(Clone, Debug)]
pub struct SelftestOptions {
    /// Boards to draw from, in turn; empty means a built-in mix.
    pub boards: Vec<&'static Geometry>,
    /// First seed; case `i` uses seed `seed + i`.
    pub seed: u64,
    /// How long to run.
    pub time: Duration,
    /// Stop after so many cases, if given.
    pub cases: Option<u64>,
    /// Makes a further table to compare on, one a case; the production table is in a crate above this one.
    pub table: Option<NewTable>,
    /// The checker of certificates, which knows nothing of this crate; without it none are written.
    pub checker: Option<CheckCertificate>,
    /// Threads of the variants that search in parallel. Up to 1 leaves them out: a seed then reproduces every count.
    pub threads: usize,
}

/// What was compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelftestReport {
    /// Positions on which solver and oracle were compared.
    pub positions: u64,
    /// Single comparisons (solver variants times komi).
    pub comparisons: u64,
    /// Positions left out because the oracle did not finish within its budget.
    pub skipped: u64,
    /// How often the compared solves drew on each mechanism: (name, count). Zero counts show an empty test.
    pub coverage: Vec<(String, u64)>,
    /// A description of each mismatch: board, moves, komi, what each side said, the command that reproduces it.
    pub mismatches: Vec<String>,
}

/// Boards of the built-in mix: those the oracle finishes from early on, and larger ones where it sees late positions only.
const MIX: [&str; 13] = ["1x6", "2x3", "2x4", "3x3", "1x5", "2x2", "1x7", "2x5", "3x4", "2x6", "1x8", "4x4", "3x5"];

/// Expansions of the oracle on one question. Late positions of boards up to 3x3 mostly need far less.
const ORACLE_BUDGET: u64 = 30_000;

/// Expansions of the solver on one question; past them the comparison is left out and counted. Random priors and plain sums lead some
/// searches round in circles.
const SOLVER_BUDGET: u64 = 60_000;

/// Prefixes of one game that are compared.
const MOST_PREFIXES: usize = 8;

/// What the report counts, in its order.
const COVERAGE: [&str; 27] = [
    "positions after captures",
    "positions with a superko ban",
    "positions from a diagram",
    "pure-eye claims",
    "pure-eye claims that a past capture refutes",
    "region-game claims",
    "region-game claims that the history refutes",
    "solves with a random prior",
    "solves with lemma hits",
    "solves with rejected lemmas",
    "solves with static leaves",
    "solves with region games",
    "solves with look-ahead leaves",
    "solves with banned replies",
    "solves with path-only proofs",
    "solves with skipped moves",
    "solves whose pruned side fails",
    "solves that hit the limit",
    "solves with several threads",
    "certificates checked",
    "look-ups that know the value",
    "lemmas checked",
    "lemmas checked, X not empty",
    "lemmas checked, T not empty",
    "lemmas refuted outside condition (i)",
    "lemmas refuted outside condition (ii)",
    "lemmas refuted outside condition (iii)",
];

/// Runs the selftest; `progress` is called about once a second. Stops at the first mismatch.
///
/// Needs a large stack on larger boards, as [`crate::solve`] does.
pub fn selftest(options: &SelftestOptions, progress: &mut dyn FnMut(&SelftestReport)) -> SelftestReport {
    let boards = if options.boards.is_empty() {
        MIX.iter().map(|name| parse_board_size(name).expect("the mix holds valid sizes")).collect()
    } else {
        options.boards.clone()
    };
    let started = Instant::now();
    let mut told = started;
    let mut report = SelftestReport::default();
    let mut counts: BTreeMap<&'static str, u64> = COVERAGE.iter().map(|&name| (name, 0)).collect();
    for case in 0.. {
        if started.elapsed() >= options.time || options.cases.is_some_and(|cases| case >= cases) || !report.mismatches.is_empty() {
            break;
        }
        let seed = options.seed.wrapping_add(case);
        let geometry = boards[(case % boards.len() as u64) as usize];
        let deadline = started + options.time;
        let mut run = Case {
            deadline,
            geometry,
            prior: draw_prior(seed),
            seed,
            rng: Rng::new(seed),
            oracle: Oracle::new(ORACLE_BUDGET),
            games: RegionGames::new(geometry, RegionLimits::default()),
            report: &mut report,
            counts: &mut counts,
            threads: options.threads,
            checker: options.checker,
        };
        run.play(options.table.map(|make| make(geometry)).as_deref());
        report.coverage = COVERAGE.iter().map(|&name| (name.to_owned(), counts[name])).collect();
        if told.elapsed() >= Duration::from_secs(1) {
            told = Instant::now();
            progress(&report);
        }
    }
    report.coverage = COVERAGE.iter().map(|&name| (name.to_owned(), counts[name])).collect();
    report
}

/// The built-in prior, or in every other case a net of random weights: no prior may change a verdict.
fn draw_prior(seed: u64) -> &'static Prior {
    static RANDOM: [OnceLock<Prior>; 4] = [const { OnceLock::new() }; 4];
    match seed % 8 {
        odd @ (1 | 3 | 5 | 7) => RANDOM[odd as usize / 2].get_or_init(|| Prior::random(odd)),
        _ => Prior::builtin(),
    }
}

/// A position with its value.
struct Judged {
    game: Game,
    value: i32,
}

/// One game and all that is done with it. Everything follows from board and seed.
struct Case<'a> {
    /// A solve under way ends here: on large boards a case would run far past the time asked for.
    deadline: Instant,
    geometry: &'static Geometry,
    prior: &'static Prior,
    seed: u64,
    rng: Rng,
    oracle: Oracle,
    games: RegionGames,
    report: &'a mut SelftestReport,
    counts: &'a mut BTreeMap<&'static str, u64>,
    threads: usize,
    checker: Option<CheckCertificate>,
}

impl Case<'_> {
    fn count(&mut self, name: &'static str) {
        *self.counts.get_mut(name).expect("the name is listed in COVERAGE") += 1;
    }

    /// Whether the case ends here: a mismatch was found, or the time is over.
    fn ends(&self) -> bool {
        !self.report.mismatches.is_empty() || Instant::now() >= self.deadline
    }

    fn play(&mut self, given: Option<&dyn Table>) {
        let mut judged = self.judge_prefixes();
        self.rng.shuffle(&mut judged);
        let shared = MemoryTable::new(self.geometry);
        let forgetful = ForgetfulTable::new(self.geometry, self.seed, 1 + self.seed % 6);
        for Judged { game, value } in &judged {
            self.report.positions += 1;
            self.note(game, *value);
            let mut komi = vec![Komi::below(*value), Komi::below(*value + 1)];
            komi.extend(self.claimed_komi(game));
            let points = self.geometry.points();
            komi.push(Komi::below(self.rng.below(2 * points + 1) as i32 - points as i32));
            self.rng.shuffle(&mut komi);
            for &komi in &komi {
                // Before the others on the same table: what a pruned solve leaves there must serve them.
                let prune = Some(if self.rng.one_in(2) { Color::Black } else { Color::White });
                let pruned = Options { prune, ..Options::default() };
                self.compare("one side pruned, one table for all prefixes", pruned, &shared, game, *value, komi);
                if let Some(table) = given {
                    self.compare("one side pruned, the production table", pruned, table, game, *value, komi);
                }
                let numbers = Some(NumberRule::ALL[self.rng.below(NumberRule::ALL.len())]);
                let plain = Options { static_knowledge: false, numbers, ..Options::default() };
                let eyes_only = Options { look_ahead: false, ..Options::default() };
                self.compare("one table for all prefixes", Options::default(), &shared, game, *value, komi);
                if let Some(table) = given {
                    self.compare("the production table for all prefixes", Options::default(), table, game, *value, komi);
                }
                self.compare("a fresh table", Options::default(), &MemoryTable::new(self.geometry), game, *value, komi);
                self.compare("a fresh table, no look-ahead", eyes_only, &MemoryTable::new(self.geometry), game, *value, komi);
                self.compare("a table that forgets", Options::default(), &forgetful, game, *value, komi);
                self.compare(
                    "a fresh table, no static knowledge, any number rule",
                    plain,
                    &MemoryTable::new(self.geometry),
                    game,
                    *value,
                    komi,
                );
                if self.geometry.points() >= 10 && self.rng.one_in(2) {
                    let eyes = Options { region_games: RegionLimits::OFF, ..Options::default() };
                    self.compare("one table for all prefixes, no region games", eyes, &shared, game, *value, komi);
                }
                if self.ends() {
                    return;
                }
            }
            self.certify(given.unwrap_or(&shared), game, *value, komi[0]);
            self.look_up(&shared, game, *value);
            if let Some(table) = given {
                self.look_up(table, game, *value);
            }
            if self.ends() {
                return;
            }
            if game.is_over() {
                continue; // no set-up starts after two passes
            }
            // The same game in a mirror and with colours exchanged, on the same table.
            let (sym, swap) = (self.rng.below(self.geometry.symmetries()) as u8, self.rng.one_in(2));
            let image = draw::image(game, sym, swap);
            let value = if swap { -value } else { *value };
            for komi in [Komi::below(value), Komi::below(value + 1)] {
                self.compare("one table for all prefixes, mirrored", Options::default(), &shared, &image, value, komi);
                if let Some(table) = given {
                    self.compare("the production table for all prefixes, mirrored", Options::default(), table, &image, value, komi);
                }
            }
            if self.ends() {
                return;
            }
        }
        self.check_lemmas(&shared, &judged);
        if !self.ends() {
            self.probe_regions(&shared);
        }
        if self.threads > 1 && !self.ends() {
            self.play_in_parallel(&judged, given);
        }
    }

    /// Writes a certificate of what the oracle says, from the lemmas of a table that may have forgotten many, and has it checked.
    fn certify(&mut self, table: &dyn Table, game: &Game, value: i32, komi: Komi) {
        let Some(checker) = self.checker else { return };
        let winner = if value >= komi.need(Color::Black) { Color::Black } else { Color::White };
        let statement = Statement { game, komi, winner };
        let time = Some(self.deadline.saturating_duration_since(Instant::now()));
        let limits = Limits { expansions: Some(SOLVER_BUDGET), time };
        let options = Options { prior: self.prior, ..Options::default() };
        let mut certificate = Vec::new();
        // Every other one forgets what it has written.
        let forgetful = (self.seed ^ self.counts["certificates checked"]) & 1 == 0;
        let written: &dyn Table =
            if forgetful { &ForgetfulTable::new(self.geometry, self.seed, 1) } else { &MemoryTable::new(self.geometry) };
        let what = match export(table, written, &statement, options, limits, &Control::default(), &mut certificate) {
            Ok(_) => match checker(&certificate) {
                Ok(()) => return self.count("certificates checked"),
                Err(error) => format!("the checker refuses the certificate that {winner:?} wins at komi {komi}: {error}"),
            },
            Err(ExportError::Decided | ExportError::Stopped(_)) => return,
            Err(error) => format!("no certificate that {winner:?} wins at komi {komi}: {error}"),
        };
        self.mismatch(game, &what);
    }

    /// Several threads on tables of their own, so that all else repeats exactly: one for all prefixes, one that forgets what another
    /// thread has just found to apply, and the production table. What the threads' lemmas state is put to the oracle too.
    fn play_in_parallel(&mut self, judged: &[Judged], given: Option<&dyn Table>) {
        let shared = MemoryTable::new(self.geometry);
        let forgetful = ForgetfulTable::new(self.geometry, self.seed, 1 + self.seed % 6);
        let options = Options { threads: self.threads, ..Options::default() };
        for Judged { game, value } in judged {
            for komi in [Komi::below(*value + 1), Komi::below(*value)] {
                self.compare("several threads, one table for all prefixes", options, &shared, game, *value, komi);
                self.compare("several threads, a table that forgets", options, &forgetful, game, *value, komi);
                if let Some(table) = given {
                    self.compare("several threads, the production table", options, table, game, *value, komi);
                }
                if self.ends() {
                    return;
                }
            }
        }
        self.check_lemmas(&shared, judged);
    }

    /// Values of the latest prefixes that the oracle can judge, and of some of their siblings.
    fn judge_prefixes(&mut self) -> Vec<Judged> {
        let mut game = draw::draw_game(&mut self.rng, self.geometry);
        // Play on until the oracle can see the end.
        for _ in 0..6 {
            if self.oracle.black_wins(&game, Komi::below(game.score())).is_some() {
                break;
            }
            draw::play_on(&mut self.rng, &mut game, self.geometry.points().div_ceil(2));
        }
        let mut judged = Vec::new();
        let mut prefix = game;
        while judged.len() < MOST_PREFIXES {
            let Some(value) = self.oracle.value(&prefix) else {
                self.report.skipped += 1;
                break;
            };
            judged.push(Judged { game: prefix.clone(), value });
            let mut sibling = prefix.clone();
            if !prefix.undo() {
                break;
            }
            sibling.undo();
            if self.rng.one_in(3) {
                draw::play_on(&mut self.rng, &mut sibling, 1);
                if let Some(value) = self.oracle.value(&sibling) {
                    judged.push(Judged { game: sibling, value });
                }
            }
        }
        judged
    }

    /// Counts what the position brings with it.
    fn note(&mut self, game: &Game, value: i32) {
        let position = game.position();
        let stood = game.boards().iter().fold((0, 0), |set, board| (set.0 | board.black, set.1 | board.white));
        if (stood.0 & !position.board.black) | (stood.1 & !position.board.white) != 0 {
            self.count("positions after captures");
        }
        if game.boards()[0] != superko_rules::Board::EMPTY {
            self.count("positions from a diagram");
        }
        let superko = |mv| matches!(game.check(mv), Err(Illegal::RecreatesMove(_) | Illegal::RecreatesEarlier(_)));
        if (0..self.geometry.points() as u8).any(|point| superko(Move::Stone(point))) {
            self.count("positions with a superko ban");
        }
        let holds = |(winner, margin): (Color, i32)| if winner == Color::Black { value >= margin } else { -value >= margin };
        for claim in self.claims(game) {
            self.count("pure-eye claims");
            if !holds(claim) {
                self.count("pure-eye claims that a past capture refutes");
            }
        }
    }

    /// What pure-eye analysis would claim for each player, with neither C1 nor C2 asked.
    fn claims(&self, game: &Game) -> Vec<(Color, i32)> {
        let margin = |winner: Color| {
            let eyes = PureEyes::analyze(self.geometry, game.position().board.stones(winner));
            (eyes.alive != 0).then_some((winner, 2 * eyes.points() as i32 - self.geometry.points() as i32))
        };
        [Color::Black, Color::White].into_iter().filter_map(margin).collect()
    }

    /// Komi at which a claim just suffices and just fails.
    fn claimed_komi(&self, game: &Game) -> Vec<Komi> {
        let around = |(winner, margin)| match winner {
            Color::Black => [Komi::below(margin), Komi::below(margin + 1)],
            Color::White => [Komi::below(-margin + 1), Komi::below(-margin)],
        };
        self.claims(game).into_iter().flat_map(around).collect()
    }

    /// Solves `game` at `komi` and holds the answer against its value.
    fn compare(&mut self, variant: &str, options: Options, table: &dyn Table, game: &Game, value: i32, komi: Komi) {
        self.compare_bounds(variant, options, table, game, (value, value), komi);
    }

    /// The same where the oracle knows only that Black's margin lies within `bounds`, which do not straddle the komi.
    fn compare_bounds(&mut self, variant: &str, options: Options, table: &dyn Table, game: &Game, bounds: (i32, i32), komi: Komi) {
        let options = Options { prior: self.prior, ..options };
        if !std::ptr::eq(self.prior, Prior::builtin()) {
            self.count("solves with a random prior");
        }
        let limits = Limits { expansions: Some(SOLVER_BUDGET), time: Some(self.deadline.saturating_duration_since(Instant::now())) };
        let outcome = solve_with(options, table, game, komi, limits, &Control::default());
        let stats = outcome.stats;
        for (name, number) in [
            ("solves with lemma hits", stats.hits),
            ("solves with rejected lemmas", stats.rejected),
            ("solves with static leaves", stats.static_leaves),
            ("solves with region games", stats.counters.get(Counter::LeafRegionGame)),
            (
                "solves with look-ahead leaves",
                [Counter::LeafOneMove, Counter::LeafMiai, Counter::LeafMoveToMiai].map(|kind| stats.counters.get(kind)).iter().sum(),
            ),
            ("solves with banned replies", stats.banned_replies),
            ("solves with path-only proofs", stats.path_only),
            ("solves with skipped moves", stats.counters.get(Counter::MoveSkipped)),
            ("solves with several threads", u64::from(outcome.threads > 1)),
        ] {
            if number > 0 {
                self.count(name);
            }
        }
        let (winner, margin) = match outcome.verdict {
            Ok(verdict) => verdict,
            Err(stop) => {
                self.count(if stop == Stop::Pruned { "solves whose pruned side fails" } else { "solves that hit the limit" });
                return;
            }
        };
        self.report.comparisons += 1;
        let (lower, upper) = bounds;
        let black_wins = lower >= komi.need(Color::Black);
        // The margin is a claim of its own: the winner really gets so much.
        let reached = if winner == Color::Black { upper >= margin } else { -lower >= margin };
        let moves_right = match outcome.best_move {
            Some(mv) => game.check(mv).is_ok(),
            None => winner != game.position().to_move || game.is_over(),
        };
        if (winner == Color::Black) != black_wins || !reached || margin < komi.need(winner) || !moves_right {
            let what = format!(
                "at komi {komi} the solver ({variant}) says {} by {margin}, best move {:?}; the oracle says Black's margin is {lower} to {upper}",
                winner.name(),
                outcome.best_move.map(|mv| mv.vertex(self.geometry)),
            );
            self.mismatch(game, &what);
        }
    }

    /// What a look-up says of the position and of each move may leave the value open, but not contradict it.
    fn look_up(&mut self, table: &dyn Table, game: &Game, value: i32) {
        let found = lookup(&[table], game);
        self.report.comparisons += 1;
        let Bounds { lower, upper } = found.bounds;
        if lower == upper {
            self.count("look-ups that know the value");
        }
        // No move of Black's is better than the value, none of White's worse for Black.
        let too_good = found.moves.iter().find(|(_, after)| match (after, game.position().to_move) {
            (Ok(after), Color::Black) => after.lower > value,
            (Ok(after), Color::White) => after.upper < value,
            (Err(_), _) => false,
        });
        if !(lower..=upper).contains(&value) || too_good.is_some() {
            let what = format!("the look-up says {lower} to {upper}, a move {too_good:?}; the oracle says Black's margin is {value}");
            self.mismatch(game, &what);
        }
    }

    fn mismatch(&mut self, game: &Game, what: &str) {
        let geometry = self.geometry;
        let name = geometry.name();
        let moves: Vec<String> = game.moves().iter().map(|mv| mv.vertex(geometry)).collect();
        let position = game.position();
        let boards: Vec<String> = game.boards().iter().map(|&board| board_rows(geometry, board).join("/")).collect();
        self.report.mismatches.push(format!(
            "{name}: {what}\n  position {} with {} to move, {} passes before\n  boards that may not recur: {}\n  moves: {}\n  reproduce: superko selftest --board {name} --seed {} --cases 1",
            board_rows(geometry, position.board).join("/"),
            position.to_move.name(),
            position.passes,
            boards.join(" "),
            moves.join(" "),
            self.seed,
        ));
    }
}

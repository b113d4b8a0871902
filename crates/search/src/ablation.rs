//! Comparisons: each mechanism switched off, the rules for proof numbers against each other (paper, section 6.3 and Table 3).
//!
//! A suite is a set of positions fixed by a seed; each is solved on a fresh table of its own by the full solver and by each variant,
//! on one thread, up to a limit of expansions. All counts repeat exactly.

use crate::history::History;
use crate::rng::Rng;
use crate::{
    Control, Komi, Lemma, LemmaHead, LemmaSets, Limits, MemoryTable, NumberRule, Numbers, Options, PositionKey, Prior, RegionLimits,
    SetPart, Table, solve_with,
};
use std::sync::OnceLock;
use std::time::Instant;
use superko_rules::{Board, Canonical, Codes, Color, Game, Geometry, Move, parse_board_size};

/// Parts of the reuse of lemmas that can be switched off on a table of their own, where nothing else is kept. The default is nothing
/// off; other values are made by [`compare`] only, since a table filled under them serves no other search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ablated {
    /// Lemmas serve in the identical superko game only: same position, same set of earlier boards.
    pub(crate) transfer: bool,
    /// Positions and boards stand for themselves, not for their images.
    symmetry: bool,
    /// One lemma a position, the latest.
    alternatives: bool,
    /// Lemmas with `X ≠ ∅` serve in the composition at hand and are not kept.
    excluded: bool,
    /// `B` is known by its filter only.
    prints: bool,
    /// Every board of the history is looked up in the prints, without cube and filter before them.
    pub(crate) filter: bool,
}

impl Ablated {
    /// The form under which a board is known.
    #[inline]
    pub(crate) fn canonical(self, geometry: &Geometry, board: Board) -> Canonical {
        if self.symmetry { Canonical { code: geometry.code(board), sym: 0, syms: 1 } } else { geometry.canonical(board) }
    }

    /// What such forms of the boards after a move on `board` follow from; nothing where they are no canonical forms.
    pub(crate) fn codes(self, geometry: &Geometry, board: Board) -> Option<Codes> {
        (!self.symmetry).then(|| geometry.codes(board))
    }

    /// A key for lemmas about a position in one superko game. The position is in it exactly; should two sets of earlier boards share
    /// their hash, the test of reuse still stands before the lemma.
    pub(crate) fn in_game(key: PositionKey, history: &History) -> PositionKey {
        key << 64 | PositionKey::from(history.signature())
    }
}

/// A table that has some of its powers taken away.
struct WeakerTable {
    table: MemoryTable,
    ablated: Ablated,
}

impl Table for WeakerTable {
    fn lemmas(&self, key: PositionKey, heads: &mut Vec<LemmaHead>) {
        let before = heads.len();
        self.table.lemmas(key, heads);
        if self.ablated.alternatives && heads.len() > before + 1 {
            heads.drain(before..heads.len() - 1);
        }
    }

    fn sets(&self, key: PositionKey, head: &LemmaHead, sets: &mut LemmaSets) -> bool {
        let found = self.table.sets(key, head, sets);
        if self.ablated.prints {
            sets.prints.clear();
            sets.bloom = head.bloom;
        }
        found
    }

    fn store_lemma(&self, key: PositionKey, lemma: &Lemma) -> Vec<SetPart> {
        if lemma.excluded.is_empty() || !self.ablated.excluded { self.table.store_lemma(key, lemma) } else { Vec::new() }
    }

    fn numbers(&self, key: u64) -> Option<Numbers> {
        self.table.numbers(key)
    }

    fn store_numbers(&self, key: u64, numbers: Numbers) {
        self.table.store_numbers(key, numbers);
    }

    fn geometry(&self) -> &'static Geometry {
        self.table.geometry()
    }
}

/// What to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The full solver against itself without one mechanism.
    Mechanisms,
    /// The rules for proof numbers.
    Numbers,
}

/// A variant's name, and what it changes; the colour is the winner that the full solver found.
type Variant = (&'static str, fn(&mut Options, Color));

/// One line a mechanism.
const MECHANISMS: &[Variant] = &[
    ("no transfer: identical game only", |options, _| options.ablated.transfer = true),
    ("no symmetry", |options, _| options.ablated.symmetry = true),
    ("one lemma a position", |options, _| options.ablated.alternatives = true),
    ("lemmas with X = ∅ only", |options, _| options.ablated.excluded = true),
    ("B by 256-bit filter only", |options, _| options.ablated.prints = true),
    ("no cube and filter before B", |options, _| options.ablated.filter = true),
    ("no static knowledge", |options, _| options.static_knowledge = false),
    ("no region games", |options, _| options.region_games = RegionLimits::OFF),
    ("no killer order", |options, _| options.killer_order = false),
    ("no look-ahead", |options, _| options.look_ahead = false),
    ("uniform first numbers", |options, _| options.prior = kept(&UNIFORM, Prior::uniform)),
    ("first numbers without effort", |options, _| options.prior = kept(&EFFORTLESS, || Prior::builtin().clone().without_effort())),
    ("plain sums of numbers", |options, _| options.numbers = Some(NumberRule::Sum)),
    ("with the winner's side pruned", |options, winner| options.prune = Some(winner)),
];

static UNIFORM: OnceLock<Prior> = OnceLock::new();
static EFFORTLESS: OnceLock<Prior> = OnceLock::new();

/// A prior for comparison, made once.
fn kept(prior: &'static OnceLock<Prior>, make: fn() -> Prior) -> &'static Prior {
    prior.get_or_init(make)
}

const NUMBERS: &[Variant] = &[
    ("sum", |options, _| options.numbers = Some(NumberRule::Sum)),
    ("sum, controlled", |options, _| options.numbers = Some(NumberRule::SumControlled)),
    ("weak", |options, _| options.numbers = Some(NumberRule::Weak)),
    ("mixed", |options, _| options.numbers = Some(NumberRule::Mixed)),
    ("limited", |options, _| options.numbers = Some(NumberRule::Limited)),
    ("limited, controlled", |options, _| options.numbers = Some(NumberRule::LimitedControlled)),
];

/// Board, positions, random moves before each, and the margins that Black is asked for in turn (the komi is half a point below): those
/// around the value of the empty board.
type Suite = (&'static str, usize, usize, [i32; 2]);

const MECHANISM_SUITES: &[Suite] =
    &[("3x4", 16, 2, [4, 5]), ("3x5", 16, 4, [15, 9]), ("4x4", 16, 4, [2, 3]), ("1x10", 16, 3, [1, 2]), ("2x6", 16, 2, [12, 6])];

/// The linear boards thrash, so they weigh more here; whole boards at both their komi, then random positions.
const NUMBER_SUITES: &[Suite] = &[
    ("1x9", 2, 0, [0, 1]),
    ("1x10", 2, 0, [1, 2]),
    ("1x11", 2, 0, [2, 3]),
    ("1x12", 2, 0, [2, 3]),
    ("2x6", 1, 0, [12, 12]),
    ("2x7", 1, 0, [14, 14]),
    ("3x4", 2, 0, [4, 5]),
    ("3x5", 1, 0, [15, 15]),
    ("4x4", 2, 0, [2, 3]),
    ("1x11 openings", 12, 3, [2, 3]),
    ("3x5 openings", 12, 4, [15, 9]),
    ("4x4 openings", 12, 4, [2, 3]),
];

const SEED: u64 = 1;

impl Subject {
    fn variants(self) -> &'static [Variant] {
        match self {
            Subject::Mechanisms => MECHANISMS,
            Subject::Numbers => NUMBERS,
        }
    }

    fn suites(self) -> &'static [Suite] {
        match self {
            Subject::Mechanisms => MECHANISM_SUITES,
            Subject::Numbers => NUMBER_SUITES,
        }
    }
}

/// Ratios to the full solver: above 1 the variant needs more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Geometric mean over all positions.
    pub mean: f64,
    /// Least geometric mean of a suite.
    pub least: f64,
    /// Greatest geometric mean of a suite.
    pub greatest: f64,
}

/// A variant on one suite, over the positions that the full solver decides.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SuiteCounts {
    /// Positions counted.
    pub positions: u64,
    /// Those on which the variant reached the limit: its counts are at least what is given.
    pub unfinished: u64,
    /// Those on which the variant ended without a verdict because its pruned side failed.
    pub failed: u64,
    /// Expansions, exact and repeatable.
    pub expansions: u64,
    /// Wall-clock time.
    pub elapsed_seconds: f64,
    /// Sums of the logarithms of the ratios of expansions and of times.
    log_ratios: [f64; 2],
}

/// A variant on all suites.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantRow {
    /// What is different.
    pub name: &'static str,
    /// Ratio of expansions, exact and repeatable.
    pub expansions: Ratio,
    /// Ratio of times.
    pub time: Ratio,
    /// In the order of [`Comparison::suites`].
    pub suites: Vec<SuiteCounts>,
}

/// A table of variants.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Names of the suites.
    pub suites: Vec<&'static str>,
    /// Expansions allowed to each solve.
    pub expansion_limit: u64,
    /// The full solver first; its ratios are 1.
    pub rows: Vec<VariantRow>,
    /// Positions left out because the full solver reached the limit.
    pub left_out: u64,
    /// Where a variant's winner differs from the full solver's: a fault in one of them. Empty unless there is a fault.
    pub contradictions: Vec<String>,
}

/// Compares; `tell` hears of each position solved. Recurses like `solve`: give the thread a large stack. `positions` is the most that
/// are taken of a suite.
pub fn compare(subject: Subject, expansion_limit: u64, positions: usize, tell: &mut dyn FnMut(&str)) -> Comparison {
    let (variants, suites) = (subject.variants(), subject.suites());
    let names = std::iter::once("full solver").chain(variants.iter().map(|&(name, _)| name));
    let mut counts: Vec<Vec<SuiteCounts>> = vec![vec![SuiteCounts::default(); suites.len()]; 1 + variants.len()];
    let (mut left_out, mut contradictions) = (0, Vec::new());
    for (at, &suite) in suites.iter().enumerate() {
        let (name, most, ..) = suite;
        for index in 0..most.min(positions) {
            let (game, komi) = position(suite, index);
            tell(&format!("{name}, position {}", index + 1));
            let full = run(Options::default(), &game, komi, expansion_limit);
            let Some(winner) = full.winner else {
                left_out += 1;
                continue;
            };
            let mut solved = Vec::new();
            for (row, &(variant, change)) in variants.iter().enumerate() {
                let mut options = Options::default();
                change(&mut options, winner);
                // The same search again would only measure the clock.
                let outcome = if options == Options::default() { full } else { run(options, &game, komi, expansion_limit) };
                solved.push((row + 1, options == Options::default(), outcome));
                if outcome.winner.is_some_and(|other| other != winner) {
                    contradictions.push(format!("{name} position {} at komi {komi}: {variant}", index + 1));
                }
            }
            // The first solve of a position finds caches and allocator cold, so the full solver's time is taken anew.
            let full = Solved { elapsed_seconds: run(Options::default(), &game, komi, expansion_limit).elapsed_seconds, ..full };
            counts[0][at].add(&full, &full);
            for (row, is_full, outcome) in solved {
                counts[row][at].add(if is_full { &full } else { &outcome }, &full);
            }
        }
    }
    let rows = names.zip(counts).map(|(name, suites)| VariantRow { name, expansions: ratio(&suites, 0), time: ratio(&suites, 1), suites });
    Comparison { suites: suites.iter().map(|suite| suite.0).collect(), expansion_limit, rows: rows.collect(), left_out, contradictions }
}

/// Position `index` of a suite: random stones from the empty board, and a komi.
fn position((name, _, moves, margins): Suite, index: usize) -> (Game, Komi) {
    let board = name.split(' ').next().unwrap_or(name);
    let mut game = Game::new(parse_board_size(board).expect("the suites' boards exist"));
    let mut rng = Rng::new(SEED.wrapping_add(index as u64));
    for _ in 0..moves {
        let stones: Vec<Move> = game.legal_moves().into_iter().filter(|&mv| mv != Move::Pass).collect();
        game.play(stones[rng.below(stones.len())]).expect("the move is legal");
    }
    (game, Komi::below(margins[index % 2]))
}

#[derive(Clone, Copy)]
struct Solved {
    winner: Option<Color>,
    stop: Option<crate::Stop>,
    expansions: u64,
    elapsed_seconds: f64,
}

fn run(options: Options, game: &Game, komi: Komi, limit: u64) -> Solved {
    let table = WeakerTable { table: MemoryTable::new(game.geometry()), ablated: options.ablated };
    let limits = Limits { expansions: Some(limit), time: None };
    let started = Instant::now();
    let outcome = solve_with(options, &table, game, komi, limits, &Control::default());
    Solved {
        winner: outcome.verdict.ok().map(|(winner, _)| winner),
        stop: outcome.verdict.err(),
        expansions: outcome.stats.expansions,
        elapsed_seconds: started.elapsed().as_secs_f64(),
    }
}

impl SuiteCounts {
    fn add(&mut self, solved: &Solved, full: &Solved) {
        self.positions += 1;
        match solved.stop {
            Some(crate::Stop::Pruned) => self.failed += 1,
            Some(_) => self.unfinished += 1,
            None => {}
        }
        self.expansions += solved.expansions;
        self.elapsed_seconds += solved.elapsed_seconds;
        // A position that is decided without search counts as one expansion.
        let expansions = |solved: &Solved| solved.expansions.max(1) as f64;
        self.log_ratios[0] += (expansions(solved) / expansions(full)).ln();
        self.log_ratios[1] += (solved.elapsed_seconds.max(1e-9) / full.elapsed_seconds.max(1e-9)).ln();
    }
}

/// Geometric means of ratio `which`.
fn ratio(suites: &[SuiteCounts], which: usize) -> Ratio {
    let counted = || suites.iter().filter(|suite| suite.positions > 0);
    let means = || counted().map(|suite| (suite.log_ratios[which] / suite.positions as f64).exp());
    let (sum, positions) = counted().fold((0.0, 0), |(sum, positions), suite| (sum + suite.log_ratios[which], positions + suite.positions));
    Ratio {
        mean: (sum / positions.max(1) as f64).exp(),
        least: means().reduce(f64::min).unwrap_or(1.0),
        greatest: means().reduce(f64::max).unwrap_or(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::on_large_stack;

    #[test]
    fn every_variant_agrees_with_the_full_solver_and_repeats() {
        for subject in [Subject::Mechanisms, Subject::Numbers] {
            let run = move || compare(subject, 3_000, 2, &mut |_| {});
            let (first, second) = (on_large_stack(run), on_large_stack(run));
            assert_eq!(first.contradictions, [""; 0]);
            assert_eq!(first.rows.len(), 1 + subject.variants().len());
            assert_eq!(first.rows[0].expansions, Ratio { mean: 1.0, least: 1.0, greatest: 1.0 });
            assert!(first.rows[0].suites.iter().any(|suite| suite.expansions > 0));
            for (a, b) in first.rows.iter().zip(&second.rows) {
                assert_eq!(a.expansions, b.expansions, "{}", a.name);
            }
            // What changes nothing is not switched off; cube and filter save time only, and some need longer solves than these.
            let same = first.rows[1..]
                .iter()
                .filter(|row| row.suites.iter().zip(&first.rows[0].suites).all(|(a, b)| a.expansions == b.expansions));
            let same: Vec<&str> = same.map(|row| row.name).collect();
            assert!(
                same.iter().all(|name| [
                    "one lemma a position",
                    "B by 256-bit filter only",
                    "no cube and filter before B",
                    "plain sums of numbers",
                    "sum",
                    "limited"
                ]
                .contains(name)),
                "{same:?}"
            );
        }
    }
}

//! Samples for training: proven positions with the winner and the expansions spent.

use super::Prior;
use crate::prior::rng;
use crate::rng::Rng;
use crate::{Control, Komi, Lemma, LemmaHead, LemmaSets, Limits, MemoryTable, Numbers, Options, Outcome, PositionKey, Print, Table};
use crate::{SetPart, ValueSearch, solve_with};
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Mutex;
use superko_rules::{Board, Color, Game, Geometry, Move, Position, parse_board_size};

/// A proven position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The board's shape.
    pub geometry: &'static Geometry,
    /// The position, as a rule in canonical form.
    pub position: Position,
    /// The margin that was asked of the side to move.
    pub need: i32,
    /// Whether the side to move wins.
    pub won: bool,
    /// Expansions spent on the position.
    pub cost: u64,
}

impl Sample {
    /// The sample that a stored lemma gives. The komi that was asked is not on record: the lemma counts for the margin it proves, the
    /// sharpest question that it answers.
    pub fn of_lemma(geometry: &'static Geometry, key: PositionKey, lemma: &Lemma) -> Sample {
        let position = position_of(geometry, key);
        let won = lemma.winner == position.to_move;
        let margin = i32::from(lemma.margin);
        Sample { geometry, position, need: if won { margin } else { 1 - margin }, won, cost: lemma.cost }
    }
}

/// One line: board, Black's and White's stones in hexadecimal, `b` or `w` to move, passes, margin asked, `win` or `loss`, expansions.
impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sample { geometry, position: Position { board, to_move, passes }, need, won, cost } = self;
        let (to_move, won) = (if *to_move == Color::Black { 'b' } else { 'w' }, if *won { "win" } else { "loss" });
        write!(f, "{} {:x} {:x} {to_move} {passes} {need} {won} {cost}", geometry.name(), board.black, board.white)
    }
}

/// A line that is no sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleError(String);

impl fmt::Display for SampleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A line may be anything, of any length.
        let shown: String = self.0.chars().take(80).collect();
        write!(f, "{shown:?} is no sample: expected board, stones of Black and of White in hexadecimal, b or w, ")?;
        write!(f, "passes (0 or 1), margin, win or loss, expansions, such as \"3x3 10 0 w 0 -9 loss 12\"")
    }
}

impl std::error::Error for SampleError {}

impl FromStr for Sample {
    type Err = SampleError;

    fn from_str(line: &str) -> Result<Sample, SampleError> {
        let parse = || {
            let [board, black, white, to_move, passes, need, won, cost] = line.split(' ').collect::<Vec<_>>().try_into().ok()?;
            let geometry = parse_board_size(board).ok()?;
            let stones = |text| u64::from_str_radix(text, 16).ok().filter(|set| set & !geometry.full() == 0);
            let board = Board { black: stones(black)?, white: stones(white)? };
            let to_move = match to_move {
                "b" => Color::Black,
                "w" => Color::White,
                _ => return None,
            };
            let passes = passes.parse().ok().filter(|&passes| passes <= 1)?;
            let need = need.parse().ok().filter(|need: &i32| need.abs() <= 65)?;
            let won = match won {
                "win" => true,
                "loss" => false,
                _ => return None,
            };
            let legal = board.black & board.white == 0 && board.breathless_chain(geometry).is_none();
            legal.then_some(Sample { geometry, position: Position { board, to_move, passes }, need, won, cost: cost.parse().ok()? })
        };
        parse().ok_or_else(|| SampleError(line.to_owned()))
    }
}

/// A table that notes every lemma on its way into another table, as a sample of the komi that is being solved.
#[expect(missing_debug_implementations, reason = "tables have none")]
pub struct SamplingTable<'a> {
    table: &'a dyn Table,
    komi: Komi,
    found: Mutex<HashMap<PositionKey, (Color, u64)>>,
}

impl<'a> SamplingTable<'a> {
    /// Notes lemmas that a solve at `komi` stores in `table`.
    pub fn new(table: &'a dyn Table, komi: Komi) -> Self {
        SamplingTable { table, komi, found: Mutex::default() }
    }

    /// One sample a position, in the order of their keys.
    pub fn into_samples(self) -> Vec<Sample> {
        let geometry = self.table.geometry();
        let mut found: Vec<_> = self.found.into_inner().expect("no holder panics").into_iter().collect();
        found.sort_unstable_by_key(|&(key, _)| key);
        let sample = |(key, (winner, cost))| {
            let position = position_of(geometry, key);
            Sample { geometry, position, need: self.komi.need(position.to_move), won: winner == position.to_move, cost }
        };
        found.into_iter().map(sample).collect()
    }
}

/// The position that has this key on boards of this shape.
fn position_of(geometry: &Geometry, key: PositionKey) -> Position {
    let to_move = if key & 2 == 0 { Color::Black } else { Color::White };
    Position { board: geometry.decode(key >> 2), to_move, passes: (key & 1) as u8 }
}

impl Table for SamplingTable<'_> {
    fn prefetch(&self, key: PositionKey, number_key: u64) {
        self.table.prefetch(key, number_key);
    }

    fn lemmas(&self, key: PositionKey, heads: &mut Vec<LemmaHead>) {
        self.table.lemmas(key, heads);
    }

    fn sets(&self, key: PositionKey, head: &LemmaHead, sets: &mut LemmaSets) -> bool {
        self.table.sets(key, head, sets)
    }

    fn extras(&self, key: PositionKey, head: &LemmaHead, sets: &mut LemmaSets) -> bool {
        self.table.extras(key, head, sets)
    }

    fn holds_any(&self, key: PositionKey, head: &LemmaHead, prints: &[Print], sets: &mut LemmaSets) -> Option<bool> {
        self.table.holds_any(key, head, prints, sets)
    }

    fn parts(&self, key: PositionKey, head: &LemmaHead, sets: &mut LemmaSets) -> bool {
        self.table.parts(key, head, sets)
    }

    fn part_prints(&self, part: &SetPart, prints: &mut Vec<Print>) -> bool {
        self.table.part_prints(part, prints)
    }

    fn part_holds_any(&self, part: &SetPart, prints: &[Print]) -> Option<bool> {
        self.table.part_holds_any(part, prints)
    }

    fn store_lemma(&self, key: PositionKey, lemma: &Lemma) -> Vec<SetPart> {
        self.found.lock().expect("no holder panics").insert(key, (lemma.winner, lemma.cost));
        self.table.store_lemma(key, lemma)
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

/// How a board is sampled. Limits count expansions, so that samples repeat exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SamplePlan {
    /// Limit of each solve of the empty board on the way to its value, and of both proofs; a quarter of it at komi one to three
    /// points off.
    pub root_expansions: u64,
    /// Limit of each solve of a random position.
    pub random_expansions: u64,
    /// Expansions on random positions in all.
    pub random_total: u64,
    /// Most samples of the empty board's solves; beyond, a random choice is kept.
    pub most: usize,
    /// Most samples of random positions, for each point of the board: small boards have little to tell.
    pub random_most: usize,
    /// Seed of random positions and choices.
    pub seed: u64,
}

impl Default for SamplePlan {
    fn default() -> Self {
        SamplePlan { root_expansions: 400_000, random_expansions: 4_000, random_total: 400_000, most: 80_000, random_most: 6_000, seed: 1 }
    }
}

/// Solves `game` at `komi` on a fresh table and returns the samples of what was proved on the way.
pub fn sample_solve(prior: &'static Prior, game: &Game, komi: Komi, expansions: u64) -> (Vec<Sample>, Outcome) {
    let table = MemoryTable::new(game.geometry());
    let sampling = SamplingTable::new(&table, komi);
    let limits = Limits { expansions: Some(expansions), time: None };
    let outcome = solve_with(Options { prior, ..Options::default() }, &sampling, game, komi, limits, &Control::default());
    (sampling.into_samples(), outcome)
}

/// Samples of one board: solves of the empty board at komi around its value, and of random positions from the first half of games.
/// Recurses like [`crate::solve`]: give the thread a large stack.
pub fn sample_board(prior: &'static Prior, geometry: &'static Geometry, plan: &SamplePlan) -> Vec<Sample> {
    let mut rng = rng(plan.seed);
    let mut roots = Vec::new();
    let game = Game::new(geometry);
    let search = sample_value(prior, &game, plan.root_expansions, &mut roots);
    let (lower, upper) = search.bounds();
    let points = geometry.points() as i32;
    for margin in [lower - 2, lower - 1, upper + 2, upper + 3] {
        if margin > -points && margin <= points {
            roots.extend(sample_solve(prior, &game, Komi::below(margin), plan.root_expansions / 4).0);
        }
    }
    keep(&mut rng, &mut roots, plan.most);

    let random_most = plan.random_most * geometry.points();
    let mut random = Vec::new();
    let mut spent = 0;
    while spent < plan.random_total && random.len() < random_most {
        let Some(game) = random_game(&mut rng, geometry) else { continue };
        let search = sample_value(prior, &game, plan.random_expansions, &mut random);
        spent += 1 + search.proofs().iter().map(|proof| proof.outcome.stats.expansions).sum::<u64>();
    }
    keep(&mut rng, &mut random, random_most);
    roots.extend(random);
    roots
}

fn keep(rng: &mut Rng, samples: &mut Vec<Sample>, most: usize) {
    if samples.len() > most {
        rng.shuffle(samples);
        samples.truncate(most);
    }
}

/// Halves the interval of values until the value is known or a solve meets its limit.
fn sample_value(prior: &'static Prior, game: &Game, expansions: u64, samples: &mut Vec<Sample>) -> ValueSearch {
    let mut search = ValueSearch::new(game);
    while let Some(komi) = search.next_komi() {
        let (found, outcome) = sample_solve(prior, game, komi, expansions);
        samples.extend(found);
        if outcome.verdict.is_err() {
            break;
        }
        search.record(komi, outcome);
    }
    search
}

/// A game of random moves, few of them passes; none if it ended early.
fn random_game(rng: &mut Rng, geometry: &'static Geometry) -> Option<Game> {
    let mut game = Game::new(geometry);
    for _ in 0..=rng.below(geometry.points() * 2 / 3) {
        let mut moves = game.legal_moves();
        if rng.below(20) != 0 {
            moves.retain(|&mv| mv != Move::Pass);
        }
        let &mv = moves.get(rng.below(moves.len().max(1)))?;
        game.play(mv).expect("the move is legal");
        if game.is_over() {
            return None;
        }
    }
    Some(game)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_read_back_and_sampling_repeats() {
        let plan = SamplePlan { root_expansions: 2_000, random_expansions: 200, random_total: 3_000, most: 500, random_most: 50, seed: 4 };
        let prior: &'static Prior = Box::leak(Box::new(Prior::uniform()));
        let sample = || sample_board(prior, parse_board_size("2x3").unwrap(), &plan);
        let samples = sample();
        assert_eq!(samples, sample());
        assert!(samples.iter().any(|sample| sample.won) && samples.iter().any(|sample| !sample.won));
        for sample in samples {
            assert_eq!(sample.to_string().parse(), Ok(sample));
        }
        for bad in [
            "",
            "3x3",
            "3x3 1 1 b 0 1 win 1",
            "3x3 1 2 b 2 1 win 1",
            "3x3 ffff 0 b 0 1 win 1",
            "3x3 1 2 x 0 1 win 1",
            "3x3 1 2 b 0 1 win 1 ",
        ] {
            assert!(bad.parse::<Sample>().is_err(), "{bad}");
        }
    }
}

//! Priors: first proof and disproof numbers of unexpanded positions, from a guess of who wins and at what effort (paper, section 5;
//! findings 7.2). A prior orders the search and decides nothing; its numbers are never 0 or infinite.

mod features;
mod file;
mod fit;
mod logistic;
mod math;
mod net;
mod sample;
mod train;

pub use file::PriorError;
pub use fit::{Losses, NetFit, evaluate, fit_logistic, fit_net};
pub use sample::{Sample, SampleError, SamplePlan, SamplingTable, sample_board, sample_solve};
pub use train::{LeftOut, ModelKind, TRAINING_BOARDS, Training, cross_validate, train, training_boards};

use crate::Numbers;
use crate::board_set::mix;
use crate::look_ahead::{LookAhead, Outlook};
use crate::rng::Rng;
use crate::static_leaf::StaticLeaves;
use net::{BoardNet, Sums};
use std::fmt;
use std::sync::OnceLock;
use superko_rules::{Color, Geometry, Position};

/// A model that gives first numbers. Loaded priors live as long as the process.
///
/// With p the probability that the side to move wins, the numbers are `1 + S * -ln(p) * 2^(e - 4)` and
/// `1 + S * -ln(1 - p) * 2^(e - 4)`, where e is the expected log2 of the expansions that the proof takes; without an effort, e is 4.
#[derive(Clone)]
pub struct Prior {
    model: Model,
    /// `S`.
    scale: f32,
    /// Factor of the model's logit.
    temper: f32,
    /// Whether the net's efforts enter.
    effort: bool,
    /// Made at the first use.
    tables: OnceLock<NumberTables>,
}

#[derive(Clone, PartialEq)]
enum Model {
    /// Every position is even.
    Uniform,
    /// Weights of [`logistic::features`].
    Logistic(Vec<f32>),
    /// Weights as laid out in [`net`].
    Net(Vec<f32>),
}

impl PartialEq for Prior {
    fn eq(&self, other: &Prior) -> bool {
        (&self.model, self.scale, self.temper, self.effort) == (&other.model, other.scale, other.temper, other.effort)
    }
}

/// Weights are finite, so equality is an equivalence.
impl Eq for Prior {}

impl fmt::Debug for Prior {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, weights): (&str, &[f32]) = match &self.model {
            Model::Uniform => ("uniform", &[]),
            Model::Logistic(weights) => ("logistic", weights),
            Model::Net(weights) => ("net", weights),
        };
        let Prior { scale, temper, effort, .. } = self;
        write!(f, "Prior({kind}, {} weights, scale {scale}, temper {temper}, effort {effort})", weights.len())
    }
}

/// Scale of nets: with efforts a typical position at the rim of a search starts at a few hundred (findings 7.2).
const NET_SCALE: f32 = 2000.0;
/// Scale of models without efforts (findings 2: larger than the paper's 64).
const PLAIN_SCALE: f32 = 500.0;
/// A net is surer than it should be of positions unlike its samples (findings 7.2).
const NET_TEMPER: f32 = 0.35;

impl Prior {
    /// Takes every position for even: what training starts from.
    pub fn uniform() -> Prior {
        Prior { model: Model::Uniform, scale: PLAIN_SCALE, temper: 1.0, effort: false, tables: OnceLock::new() }
    }

    /// The prior that comes with the program, trained by `make prior`.
    pub fn builtin() -> &'static Prior {
        static BUILTIN: OnceLock<&'static Prior> = OnceLock::new();
        BUILTIN.get_or_init(|| Prior::from_bytes(include_bytes!("builtin.prior")).expect("the built-in prior is valid"))
    }

    /// A net with random weights: no better than chance, for tests that no prior changes a verdict.
    pub fn random(seed: u64) -> Prior {
        let mut rng = rng(seed);
        Prior::of_net((0..net::WEIGHTS).map(|_| 2.0 * rng.unit() - 1.0).collect())
    }

    /// Keeps the prior for as long as the process lives, as a search needs it.
    pub fn leak(self) -> &'static Prior {
        Box::leak(Box::new(self))
    }

    fn of_net(weights: Vec<f32>) -> Prior {
        Prior { model: Model::Net(weights), scale: NET_SCALE, temper: NET_TEMPER, effort: true, ..Prior::uniform() }
    }

    fn of_logistic(weights: Vec<f32>) -> Prior {
        Prior { model: Model::Logistic(weights), ..Prior::uniform() }
    }

    /// The same guess of the winner, without the expected effort.
    pub(crate) fn without_effort(self) -> Prior {
        Prior { effort: false, tables: OnceLock::new(), ..self }
    }

    /// The same model with other numbers made of it, for comparison.
    #[must_use]
    pub fn with_numbers(self, scale: f32, temper: f32, effort: bool) -> Prior {
        Prior { scale, temper, effort, tables: OnceLock::new(), ..self }
    }
}

/// The generator of sampling and training, with a stream of its own.
fn rng(seed: u64) -> Rng {
    Rng::new(seed ^ 0x7072_3770_0c24)
}

/// Largest first number.
const MOST: f64 = (1u32 << 30) as f64;

/// First numbers for each probability and effort, from tables: the logit in steps of 1/64, the effort in steps of 1/16.
#[derive(Clone)]
struct NumberTables {
    /// `S * -ln` of the logistic function.
    minus_ln: Vec<f64>,
    /// The logistic function in 256ths.
    probability: Vec<i64>,
    /// `2^(e - 4)`.
    power: Vec<f64>,
}

const LOGIT_STEPS: i32 = 64;
const MIDDLE: i32 = 20 * LOGIT_STEPS;
const EFFORT_STEPS: i32 = 16;
const MOST_EFFORT: i32 = 24 * EFFORT_STEPS;

impl NumberTables {
    fn new(prior: &Prior) -> NumberTables {
        let (scale, temper) = (f64::from(prior.scale), f64::from(prior.temper));
        let logits = || (-MIDDLE..=MIDDLE).map(|step| f64::from(step) / f64::from(LOGIT_STEPS) * temper);
        let power = |step: i32| math::exp((f64::from(step) / f64::from(EFFORT_STEPS) - 4.0) * std::f64::consts::LN_2);
        NumberTables {
            minus_ln: logits().map(|logit| scale * math::minus_ln_logistic(logit)).collect(),
            probability: logits().map(|logit| (256.0 * math::logistic(logit)) as i64).collect(),
            power: (0..=MOST_EFFORT).map(|step| if prior.effort { power(step) } else { 1.0 }).collect(),
        }
    }

    /// `logit` in steps; efforts in steps, for a win and for a loss of the side to move.
    fn numbers(&self, logit: i32, win: i32, loss: i32) -> Numbers {
        let at = (logit.clamp(-MIDDLE, MIDDLE) + MIDDLE) as usize;
        let p = self.probability[at];
        let effort = (p * i64::from(win) + (256 - p) * i64::from(loss)) >> 8;
        let power = self.power[effort.clamp(0, MOST_EFFORT.into()) as usize];
        let number = |at: usize| (1.0 + self.minus_ln[at] * power).min(MOST) as u32;
        Numbers { phi: number(at), delta: number(2 * MIDDLE as usize - at), cost: 0 }
    }
}

/// Stone sets whose part of the net's first layer is kept.
const CACHE_SLOTS: usize = 1 << 13;

/// A player's stones, what they might become, and what they add to the sums of the net's first layer.
#[derive(Clone)]
struct CachedSide {
    stones: u64,
    outlook: Outlook,
    /// As the mover's, as the other's.
    sums: [Sums; 2],
}

struct NetState {
    net: BoardNet,
    cache: Vec<CachedSide>,
}

enum Ready {
    Uniform,
    Logistic(&'static [f32]),
    Net(Box<NetState>),
}

/// First numbers kept.
const GIVEN_SLOTS: usize = 1 << 16;

/// A prior made ready for one board and komi.
pub(crate) struct Evaluator {
    prior: &'static Prior,
    geometry: &'static Geometry,
    need_black: i32,
    /// Made at the first use: many solves are decided at the root.
    ready: Option<Ready>,
    /// First numbers already given, by the key under which the search keeps numbers. A child that was never the best one has no numbers
    /// in the table and is asked for again at each visit of its parents.
    given: Vec<(u64, Numbers)>,
}

impl Evaluator {
    pub fn new(prior: &'static Prior, geometry: &'static Geometry, need_black: i32) -> Evaluator {
        Evaluator { prior, geometry, need_black, ready: None, given: Vec::new() }
    }

    /// The first numbers of `position`, whose numbers the search keeps under `key`.
    pub fn numbers(&mut self, leaves: &mut StaticLeaves, look_ahead: &LookAhead, key: u64, position: Position) -> Numbers {
        if self.given.is_empty() {
            self.given = vec![(0, Numbers { phi: 0, delta: 0, cost: 0 }); GIVEN_SLOTS];
        }
        let slot = key as usize & (GIVEN_SLOTS - 1);
        let (given, numbers) = self.given[slot];
        if given == key && numbers.phi > 0 {
            return numbers;
        }
        let numbers = self.guess(leaves, look_ahead, position);
        self.given[slot] = (key, numbers);
        numbers
    }

    fn guess(&mut self, leaves: &mut StaticLeaves, look_ahead: &LookAhead, position: Position) -> Numbers {
        let &mut Evaluator { prior, geometry, need_black, .. } = self;
        let tables = prior.tables.get_or_init(|| NumberTables::new(prior));
        match self.ready.get_or_insert_with(|| Ready::new(prior, geometry, need_black)) {
            Ready::Uniform => tables.numbers(0, 0, 0),
            Ready::Logistic(weights) => {
                let logit = logistic::logit(weights, &logistic::features(geometry, position, need_black));
                let logit = if position.to_move == Color::Black { logit } else { -logit };
                tables.numbers((logit.clamp(-1e4, 1e4) * f64::from(LOGIT_STEPS)) as i32, 0, 0)
            }
            Ready::Net(state) => {
                let black = position.to_move == Color::Black;
                let need = if black { need_black } else { 1 - need_black };
                let colors = [position.to_move, position.to_move.opponent()];
                let [own, other] = colors.map(|color| state.side(geometry, leaves, look_ahead, color, position.board.stones(color)));
                let (own, other) = (&state.cache[own], &state.cache[other]);
                let counts = features::mixed(geometry, [own.stones, other.stones], [&own.outlook, &other.outlook], need);
                let [logit, win, loss] = state.net.outputs(&own.sums[0], &other.sums[1], &counts, black, position.passes);
                tables.numbers(logit >> (net::OUTPUT_PLACES - 6), win >> (net::OUTPUT_PLACES - 4), loss >> (net::OUTPUT_PLACES - 4))
            }
        }
    }
}

impl Ready {
    fn new(prior: &'static Prior, geometry: &'static Geometry, need_black: i32) -> Ready {
        match &prior.model {
            Model::Uniform => Ready::Uniform,
            Model::Logistic(weights) => Ready::Logistic(weights),
            Model::Net(weights) => {
                let net = BoardNet::new(weights, geometry, need_black);
                let nothing = CachedSide { stones: u64::MAX, outlook: Outlook::default(), sums: [Sums::default(); 2] };
                Ready::Net(Box::new(NetState { net, cache: vec![nothing; CACHE_SLOTS] }))
            }
        }
    }
}

impl NetState {
    /// The slot of the cache that holds the player `color` with `stones`. The two players of a position never share a slot.
    fn side(&mut self, geometry: &Geometry, leaves: &mut StaticLeaves, look_ahead: &LookAhead, color: Color, stones: u64) -> usize {
        let black = color == Color::Black;
        let slot = (mix(stones) as usize & (CACHE_SLOTS / 2 - 1)) * 2 + usize::from(black);
        let cached = &mut self.cache[slot];
        if cached.stones != stones {
            let outlook = look_ahead.outlook(leaves, color, stones);
            *cached = CachedSide { stones, outlook, sums: self.net.side(&features::side(geometry, stones, &outlook)) };
        }
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, RegionLimits};
    use superko_rules::{Game, Move, parse_board_size};

    /// A position from a random game.
    fn draw(rng: &mut Rng, geometry: &'static Geometry) -> Position {
        let mut game = Game::new(geometry);
        for _ in 0..rng.below(geometry.points()) {
            let mut moves = game.legal_moves();
            moves.retain(|&mv| mv != Move::Pass);
            if moves.is_empty() {
                break;
            }
            game.play(moves[rng.below(moves.len())]).unwrap();
        }
        game.position()
    }

    #[test]
    fn images_and_exchanged_colours_have_the_same_numbers() {
        let mut rng = rng(1);
        for name in ["1x7", "2x5", "3x4", "4x4"] {
            let geometry = parse_board_size(name).unwrap();
            let numbers = |need_black, position| {
                let mut leaves = StaticLeaves::new(geometry, RegionLimits::OFF);
                let ahead = LookAhead::new(geometry, need_black, 1 - need_black);
                Evaluator::new(Options::default().prior, geometry, need_black).numbers(&mut leaves, &ahead, 1, position)
            };
            for _ in 0..20 {
                let need = rng.below(7) as i32 - 3;
                let position = draw(&mut rng, geometry);
                let expected = numbers(need, position);
                let sym = rng.below(geometry.symmetries()) as u8;
                let board = geometry.map_board(sym, position.board);
                let swapped = superko_rules::Board { black: board.white, white: board.black };
                assert_eq!(numbers(need, Position { board, ..position }), expected);
                let exchanged = Position { board: swapped, to_move: position.to_move.opponent(), ..position };
                assert_eq!(numbers(1 - need, exchanged), expected);
                assert!((1..=1 << 30).contains(&expected.phi) && (1..=1 << 30).contains(&expected.delta));
            }
        }
    }

    #[test]
    fn numbers_stay_within_their_bounds() {
        for prior in [Prior::uniform(), Prior::random(1).with_numbers(1e6, 10.0, true)] {
            let tables = NumberTables::new(&prior);
            for logit in [i32::MIN, -4000, -1, 0, 1, 4000, i32::MAX] {
                for effort in [i32::MIN, -5, 0, 90, i32::MAX] {
                    let Numbers { phi, delta, .. } = tables.numbers(logit, effort, effort);
                    assert!((1..=1 << 30).contains(&phi) && (1..=1 << 30).contains(&delta), "{logit} {effort}: {phi} {delta}");
                }
            }
        }
    }
}

//! Priors: first proof and disproof numbers of unexpanded positions, from a guess of who wins and at what effort (paper, section 5;
//! findings 7.2). A prior orders the search and decides nothing; its numbers are never 0 or infinite.

mod features;
mod file;
mod fit;
mod logistic;
mod math;
mod net;
mod rng;
mod sample;

pub use file::PriorError;
pub use fit::{Losses, NetFit, evaluate, fit_logistic, fit_net};
pub use sample::{Sample, SampleError, SamplePlan, SamplingTable, sample_board, sample_solve};

use crate::Numbers;
use crate::board_set::mix;
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
const NET_TEMPER: f32 = 0.5;

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
        let mut rng = rng::Rng::new(seed);
        Prior::of_net((0..net::WEIGHTS).map(|_| 2.0 * rng.unit() - 1.0).collect())
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
const CACHE_SLOTS: usize = 1 << 12;

#[derive(Clone)]
struct CachedSide {
    stones: u64,
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

/// A prior made ready for one board and komi.
pub(crate) struct Evaluator {
    prior: &'static Prior,
    geometry: &'static Geometry,
    need_black: i32,
    /// Made at the first use: many solves are decided at the root.
    ready: Option<Ready>,
}

impl Evaluator {
    pub fn new(prior: &'static Prior, geometry: &'static Geometry, need_black: i32) -> Evaluator {
        Evaluator { prior, geometry, need_black, ready: None }
    }

    /// The first numbers of `position`.
    pub fn numbers(&mut self, position: Position) -> Numbers {
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
                let (own, other) = (position.board.stones(position.to_move), position.board.stones(position.to_move.opponent()));
                let counts = features::mixed(geometry, own, other, need);
                let own = state.side(geometry, own)[0];
                let other = state.side(geometry, other)[1];
                let [logit, win, loss] = state.net.outputs(&own, &other, &counts, black, position.passes);
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
                let empty = CachedSide { stones: 0, sums: net.side(&features::side(geometry, 0)) };
                Ready::Net(Box::new(NetState { net, cache: vec![empty; CACHE_SLOTS] }))
            }
        }
    }
}

impl NetState {
    fn side(&mut self, geometry: &Geometry, stones: u64) -> &[Sums; 2] {
        let cached = &mut self.cache[mix(stones) as usize & (CACHE_SLOTS - 1)];
        if cached.stones != stones {
            *cached = CachedSide { stones, sums: self.net.side(&features::side(geometry, stones)) };
        }
        &cached.sums
    }
}

//! Fitting models to samples. Deterministic: fixed seeds, one thread, a fixed order of operations, no platform functions.

#![allow(clippy::needless_range_loop, reason = "loops over rows and columns of matrices")]

use super::features::{self, INPUTS, MIXED, SIDE};
use super::logistic;
use super::math;
use super::net::{CAP, FIRST, OUTPUT_AT, OUTPUTS, SECOND, SECOND_AT, WEIGHTS};
use super::sample::Sample;
use super::{Model, Prior};
use crate::look_ahead::LookAhead;
use crate::prior::rng;
use crate::static_leaf::StaticLeaves;
use std::collections::HashMap;
use superko_rules::{Color, Geometry};

/// Samples turned into the counts of the net's inputs.
struct Inputs {
    counts: Vec<[u8; 2 * SIDE + MIXED]>,
    need: Vec<i8>,
    passes: Vec<u8>,
    geometry: Vec<&'static Geometry>,
    won: Vec<bool>,
    effort: Vec<f32>,
}

impl Inputs {
    /// Computes the features of all samples.
    fn new(samples: &[Sample]) -> Inputs {
        // Look-ahead depends on board and komi.
        let mut asked: HashMap<(String, i32), (StaticLeaves, LookAhead)> = HashMap::new();
        let counts = samples.iter().map(|sample| {
            let Sample { geometry, position, need, .. } = *sample;
            let colors = [position.to_move, position.to_move.opponent()];
            let need_black = if position.to_move == Color::Black { need } else { 1 - need };
            let (leaves, look_ahead) = asked.entry((geometry.name(), need_black)).or_insert_with(|| {
                (StaticLeaves::new(geometry, crate::RegionLimits::OFF), LookAhead::new(geometry, need_black, 1 - need_black))
            });
            let stones = colors.map(|color| position.board.stones(color));
            let [own, other] = colors.map(|color| look_ahead.outlook(leaves, color, position.board.stones(color)));
            let mut counts = [0; 2 * SIDE + MIXED];
            counts[..SIDE].copy_from_slice(&features::side(geometry, stones[0], &own));
            counts[SIDE..2 * SIDE].copy_from_slice(&features::side(geometry, stones[1], &other));
            counts[2 * SIDE..].copy_from_slice(&features::mixed(geometry, stones, [&own, &other], need));
            counts
        });
        Inputs {
            counts: counts.collect(),
            need: samples.iter().map(|sample| sample.need as i8).collect(),
            passes: samples.iter().map(|sample| sample.position.passes).collect(),
            geometry: samples.iter().map(|sample| sample.geometry).collect(),
            won: samples.iter().map(|sample| sample.won).collect(),
            effort: samples.iter().map(|sample| log2(sample.cost)).collect(),
        }
    }

    fn fill(&self, at: usize, norms: &Norms, input: &mut [f32; INPUTS]) {
        let geometry = self.geometry[at];
        let norms = norms.get(geometry);
        for index in 0..2 * SIDE + MIXED {
            input[index] = f32::from(self.counts[at][index]) * norms[index];
        }
        input[2 * SIDE + MIXED..].copy_from_slice(&features::question(geometry, self.need[at].into(), self.passes[at]));
    }
}

/// Log2 of a count, exact at powers of two and linear between them.
pub(super) fn log2(count: u64) -> f32 {
    let count = count.max(1);
    let whole = count.ilog2();
    whole as f32 + (count as f32 / (1u64 << whole) as f32 - 1.0)
}

struct Norms(Vec<(&'static Geometry, [f32; 2 * SIDE + MIXED])>);

impl Norms {
    fn new(inputs: &Inputs) -> Norms {
        let mut all: Vec<(&'static Geometry, [f32; 2 * SIDE + MIXED])> = Vec::new();
        for &geometry in &inputs.geometry {
            if !all.iter().any(|(known, _)| std::ptr::eq(*known, geometry)) {
                let (side, mixed) = features::norms(geometry);
                let mut norms = [0.0; 2 * SIDE + MIXED];
                norms[..SIDE].copy_from_slice(&side);
                norms[SIDE..2 * SIDE].copy_from_slice(&side);
                norms[2 * SIDE..].copy_from_slice(&mixed);
                all.push((geometry, norms));
            }
        }
        Norms(all)
    }

    fn get(&self, geometry: &'static Geometry) -> &[f32; 2 * SIDE + MIXED] {
        &self.0.iter().find(|(known, _)| std::ptr::eq(*known, geometry)).expect("all geometries were seen").1
    }
}

/// How to fit a net.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NetFit {
    /// Passes over the samples.
    pub epochs: usize,
    /// First step size; falls linearly to a hundredth.
    pub rate: f32,
    /// Weight of the squared error of the effort.
    pub effort_weight: f32,
    /// Decay of the weights per step, times the step size.
    pub decay: f32,
    /// Seed of first weights and of the order of samples.
    pub seed: u64,
}

impl Default for NetFit {
    fn default() -> Self {
        NetFit { epochs: 6, rate: 2e-3, effort_weight: 0.03, decay: 1e-3, seed: 1 }
    }
}

const BATCH: usize = 256;

struct Forward {
    input: [f32; INPUTS],
    /// Inputs that are not zero: the first `live_count` of `live`.
    live: [u8; INPUTS],
    live_count: usize,
    first: [f32; FIRST],
    second: [f32; SECOND],
    output: [f32; OUTPUTS],
}

impl Forward {
    fn new() -> Forward {
        Forward {
            input: [0.0; INPUTS],
            live: [0; INPUTS],
            live_count: 0,
            first: [0.0; FIRST],
            second: [0.0; SECOND],
            output: [0.0; OUTPUTS],
        }
    }

    /// Log loss, the error of the effort, and the effort's output, which is the winner's.
    fn miss(&self, won: bool, effort: f32) -> (f64, f32, usize) {
        let logit = f64::from(self.output[0]);
        let head = if won { 1 } else { 2 };
        (math::minus_ln_logistic(if won { logit } else { -logit }), self.output[head] - effort, head)
    }
}

fn forward(weights: &[f32], state: &mut Forward) {
    // About half of the inputs are zero, in no order that a processor would foresee.
    state.live_count = 0;
    for (at, &input) in state.input.iter().enumerate() {
        state.live[state.live_count] = at as u8;
        state.live_count += usize::from(input != 0.0);
    }
    let mut sums: [f32; FIRST] = weights[INPUTS * FIRST..][..FIRST].try_into().expect("FIRST biases");
    for at in state.live[..state.live_count].iter().map(|&at| usize::from(at)) {
        let input = state.input[at];
        let row: &[f32; FIRST] = weights[at * FIRST..][..FIRST].try_into().expect("a row");
        for unit in 0..FIRST {
            sums[unit] += input * row[unit];
        }
    }
    state.first = sums.map(|sum| sum.clamp(0.0, CAP));
    let mut sums: [f32; SECOND] = weights[SECOND_AT + FIRST * SECOND..][..SECOND].try_into().expect("SECOND biases");
    for (&input, row) in state.first.iter().zip(weights[SECOND_AT..].chunks_exact(SECOND)) {
        if input != 0.0 {
            for unit in 0..SECOND {
                sums[unit] += input * row[unit];
            }
        }
    }
    state.second = sums.map(|sum| sum.clamp(0.0, CAP));
    state.output = weights[OUTPUT_AT + SECOND * OUTPUTS..][..OUTPUTS].try_into().expect("OUTPUTS biases");
    for (&input, row) in state.second.iter().zip(weights[OUTPUT_AT..].chunks_exact(OUTPUTS)) {
        for unit in 0..OUTPUTS {
            state.output[unit] += input * row[unit];
        }
    }
}

fn backward(weights: &[f32], state: &Forward, slope: [f32; OUTPUTS], gradient: &mut [f32]) {
    let mut second_slope = [0.0; SECOND];
    for input in 0..SECOND {
        let value = state.second[input];
        let at = OUTPUT_AT + input * OUTPUTS;
        let mut back = 0.0;
        for unit in 0..OUTPUTS {
            gradient[at + unit] += value * slope[unit];
            back += weights[at + unit] * slope[unit];
        }
        second_slope[input] = if value > 0.0 && value < CAP { back } else { 0.0 };
    }
    for unit in 0..OUTPUTS {
        gradient[OUTPUT_AT + SECOND * OUTPUTS + unit] += slope[unit];
    }
    let mut first_slope = [0.0; FIRST];
    for input in 0..FIRST {
        let value = state.first[input];
        if value <= 0.0 {
            continue;
        }
        let at = SECOND_AT + input * SECOND;
        let row: &[f32; SECOND] = weights[at..][..SECOND].try_into().expect("a row");
        let into: &mut [f32; SECOND] = (&mut gradient[at..][..SECOND]).try_into().expect("a row");
        let mut lanes = [0.0f32; 4];
        for unit in 0..SECOND {
            into[unit] += value * second_slope[unit];
            lanes[unit % 4] += row[unit] * second_slope[unit];
        }
        first_slope[input] = if value < CAP { (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]) } else { 0.0 };
    }
    for unit in 0..SECOND {
        gradient[SECOND_AT + FIRST * SECOND + unit] += second_slope[unit];
    }
    for at in state.live[..state.live_count].iter().map(|&at| usize::from(at)) {
        let input = state.input[at];
        let row: &mut [f32; FIRST] = (&mut gradient[at * FIRST..][..FIRST]).try_into().expect("a row");
        for unit in 0..FIRST {
            row[unit] += input * first_slope[unit];
        }
    }
    for unit in 0..FIRST {
        gradient[INPUTS * FIRST + unit] += first_slope[unit];
    }
}

/// Mean log loss of the win head and mean squared error of the effort heads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Losses {
    /// Log loss in nats.
    pub log_loss: f64,
    /// In (log2 expansions)^2.
    pub effort_error: f64,
}

/// Fits a net by Adam; `progress` hears of each pass over the samples. Panics if there are none.
pub fn fit_net(samples: &[Sample], options: NetFit, progress: &mut dyn FnMut(usize, Losses)) -> Prior {
    assert!(!samples.is_empty(), "a fit needs samples");
    let inputs = &Inputs::new(samples);
    let norms = Norms::new(inputs);
    let mut rng = rng(options.seed);
    let mut weights = vec![0.0f32; WEIGHTS];
    let mut layer = |from: usize, inputs: usize, units: usize, gain: f32| {
        // He's uniform initialisation.
        let bound = gain * (6.0 / inputs as f32).sqrt();
        for weight in &mut weights[from..from + inputs * units] {
            *weight = (2.0 * rng.unit() - 1.0) * bound;
        }
    };
    layer(0, INPUTS, FIRST, 1.0);
    layer(SECOND_AT, FIRST, SECOND, 1.0);
    layer(OUTPUT_AT, SECOND, OUTPUTS, 0.5);
    let (mut mean, mut square) = (vec![0.0f32; WEIGHTS], vec![0.0f32; WEIGHTS]);
    let mut gradient = vec![0.0f32; WEIGHTS];
    let mut order: Vec<u32> = (0..inputs.counts.len() as u32).collect();
    let steps = (options.epochs * order.len().div_ceil(BATCH)) as f32;
    let (mut step, mut decay1, mut decay2) = (0.0f32, 1.0f32, 1.0f32);
    let mut state = Forward::new();
    for epoch in 0..options.epochs {
        rng.shuffle(&mut order);
        let (mut log_loss, mut effort_error) = (0.0f64, 0.0f64);
        for batch in order.chunks(BATCH) {
            gradient.fill(0.0);
            for &at in batch {
                let at = at as usize;
                inputs.fill(at, &norms, &mut state.input);
                forward(&weights, &mut state);
                let won = inputs.won[at];
                let (log, miss, head) = state.miss(won, inputs.effort[at]);
                log_loss += log;
                effort_error += f64::from(miss * miss);
                let mut slope = [0.0; OUTPUTS];
                slope[0] = math::logistic(state.output[0].into()) as f32 - f32::from(u8::from(won));
                slope[head] = 2.0 * options.effort_weight * miss;
                backward(&weights, &state, slope, &mut gradient);
            }
            // Adam (Kingma and Ba 2015) with decoupled weight decay.
            let scale = 1.0 / batch.len() as f32;
            step += 1.0;
            decay1 *= 0.9;
            decay2 *= 0.999;
            let rate = options.rate * (1.0 - 0.99 * step / steps);
            for at in 0..WEIGHTS {
                let slope = gradient[at] * scale;
                mean[at] = 0.9 * mean[at] + 0.1 * slope;
                square[at] = 0.999 * square[at] + 0.001 * slope * slope;
                let moved = (mean[at] / (1.0 - decay1)) / ((square[at] / (1.0 - decay2)).sqrt() + 1e-8);
                weights[at] -= rate * (moved + options.decay * weights[at]);
            }
        }
        let count = inputs.counts.len() as f64;
        progress(epoch, Losses { log_loss: log_loss / count, effort_error: effort_error / count });
    }
    Prior::of_net(weights)
}

/// Fits the logistic model by Newton's method. Panics if there are no samples.
pub fn fit_logistic(samples: &[Sample]) -> Prior {
    assert!(!samples.is_empty(), "a fit needs samples");
    let rows: Vec<_> = samples.iter().map(|sample| (logistic_features(sample), black_won(sample))).collect();
    Prior::of_logistic(logistic::fit(&rows).to_vec())
}

fn logistic_features(sample: &Sample) -> [f64; logistic::FEATURES] {
    let black = sample.position.to_move == Color::Black;
    logistic::features(sample.geometry, sample.position, if black { sample.need } else { 1 - sample.need })
}

fn black_won(sample: &Sample) -> bool {
    sample.won == (sample.position.to_move == Color::Black)
}

/// What `prior` misses on samples, its logits taken as they are. Panics if there are none.
pub fn evaluate(prior: &Prior, samples: &[Sample]) -> Losses {
    assert!(!samples.is_empty(), "an evaluation needs samples");
    let (mut log_loss, mut effort_error) = (0.0f64, 0.0f64);
    match &prior.model {
        Model::Uniform => log_loss = std::f64::consts::LN_2 * samples.len() as f64,
        Model::Logistic(weights) => {
            for sample in samples {
                let logit = logistic::logit(weights, &logistic_features(sample));
                log_loss += math::minus_ln_logistic(if black_won(sample) { logit } else { -logit });
            }
        }
        Model::Net(weights) => {
            let inputs = Inputs::new(samples);
            let norms = Norms::new(&inputs);
            let mut state = Forward::new();
            for at in 0..samples.len() {
                inputs.fill(at, &norms, &mut state.input);
                forward(weights, &mut state);
                let (log, effort, _) = state.miss(inputs.won[at], inputs.effort[at]);
                log_loss += log;
                effort_error += f64::from(effort * effort);
            }
        }
    }
    let count = samples.len() as f64;
    Losses { log_loss: log_loss / count, effort_error: effort_error / count }
}

#[cfg(test)]
mod tests {
    use super::super::net::{BoardNet, OUTPUT_PLACES};
    use super::super::sample::{SamplePlan, sample_board};
    use super::*;
    use superko_rules::parse_board_size;

    #[test]
    fn the_net_in_integers_is_the_net_that_was_fitted() {
        let plan = SamplePlan { root_expansions: 2_000, random_expansions: 200, random_total: 3_000, most: 300, random_most: 50, seed: 2 };
        let samples = sample_board(Prior::builtin(), parse_board_size("3x4").unwrap(), &plan);
        let Model::Net(weights) = &Prior::builtin().model else { panic!("the built-in prior is a net") };
        let inputs = Inputs::new(&samples);
        let norms = Norms::new(&inputs);
        let mut state = Forward::new();
        for (at, sample) in samples.iter().enumerate() {
            inputs.fill(at, &norms, &mut state.input);
            forward(weights, &mut state);
            let black = sample.position.to_move == Color::Black;
            let net = BoardNet::new(weights, sample.geometry, if black { sample.need } else { 1 - sample.need });
            let part = |from: usize| net.side(inputs.counts[at][from..from + SIDE].try_into().unwrap());
            let mixed = inputs.counts[at][2 * SIDE..].try_into().unwrap();
            let found = net.outputs(&part(0)[0], &part(SIDE)[1], mixed, black, sample.position.passes);
            for (found, expected) in found.into_iter().zip(state.output) {
                let found = found as f32 / (1u32 << OUTPUT_PLACES) as f32;
                assert!((found - expected).abs() < 0.05 + 0.02 * expected.abs(), "{found} instead of {expected}, {sample}");
            }
        }
    }
}

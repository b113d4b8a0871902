//! The net: an input layer, a hidden layer, three outputs; trained in `f32`, used in integers.

use super::features::{self, INPUTS, MIXED, MixedCounts, QUESTION, SIDE, SideCounts};
use superko_rules::Geometry;

/// Units of the two hidden layers, rectified and cut off at [`CAP`].
pub(crate) const FIRST: usize = 40;
pub(crate) const SECOND: usize = 24;
/// Outputs: the logit that the side to move wins; log2 of the expansions spent if it wins, and if it loses.
pub(crate) const OUTPUTS: usize = 3;
/// Where the layers begin among the weights: the first layer input by input, then its biases; the others likewise.
pub(crate) const SECOND_AT: usize = FIRST * (INPUTS + 1);
pub(crate) const OUTPUT_AT: usize = SECOND_AT + SECOND * (FIRST + 1);
/// Number of weights.
pub(crate) const WEIGHTS: usize = OUTPUT_AT + OUTPUTS * (SECOND + 1);
/// Largest value of a hidden unit.
pub(crate) const CAP: f32 = 15.99;

/// Binary places of first-layer sums, hidden values, the later layers' weights, and outputs.
const SUM_PLACES: u32 = 12;
const UNIT_PLACES: u32 = 8;
const WEIGHT_PLACES: u32 = 10;
pub(crate) const OUTPUT_PLACES: u32 = UNIT_PLACES + WEIGHT_PLACES;
/// [`CAP`] with [`UNIT_PLACES`].
const CAP_UNITS: i32 = 4095;

/// Sums of the first layer.
pub(crate) type Sums = [i32; FIRST];
/// The output units and one to spare, for units come in groups of four.
const OUTPUT_UNITS: usize = OUTPUTS.next_multiple_of(4);

/// A net made ready for one board and komi: norms are multiplied in, the question is summed into the biases. All in integers, so
/// that results are the same on every machine and in whatever order sums are made. Sums wrap, but do not in any sensible net.
pub(crate) struct BoardNet {
    own: Vec<i16>,
    other: Vec<i16>,
    mixed: Vec<i16>,
    /// `bias[black to move][passes]`.
    bias: [[Sums; 2]; 2],
    second: Vec<i16>,
    second_bias: [i32; SECOND],
    output: Vec<i16>,
    output_bias: [i32; OUTPUT_UNITS],
}

/// The weights of a layer, quantised: for each pair of inputs, unit by unit, the weights of the two.
fn pairs(inputs: usize, units: usize, places: u32, weight: impl Fn(usize, usize) -> f32) -> Vec<i16> {
    let quantised = |input: usize, unit: usize| {
        let value = if input < inputs { weight(input, unit) } else { 0.0 };
        (value * (1u32 << places) as f32).round().clamp(-32767.0, 32767.0) as i16
    };
    let pair = |first: usize| (0..2 * units).map(move |at| (first + at % 2, at / 2));
    (0..inputs).step_by(2).flat_map(pair).map(|(input, unit)| quantised(input, unit)).collect()
}

fn biases<const UNITS: usize>(places: u32, bias: impl Fn(usize) -> f32) -> [i32; UNITS] {
    std::array::from_fn(|unit| (bias(unit) * (1u32 << places) as f32).round().clamp(-2e8, 2e8) as i32)
}

impl BoardNet {
    /// `need_black`: the margin asked of Black.
    pub fn new(weights: &[f32], geometry: &Geometry, need_black: i32) -> BoardNet {
        let (side_norms, mixed_norms) = features::norms(geometry);
        let first = |input: usize, unit: usize| weights[input * FIRST + unit];
        let scaled = |at: usize, norms: &[f32]| pairs(norms.len(), FIRST, SUM_PLACES, |input, unit| first(at + input, unit) * norms[input]);
        let bias = [false, true].map(|black| {
            [0u8, 1].map(|passes| {
                let question = features::question(geometry, if black { need_black } else { 1 - need_black }, passes);
                let input = |unit: usize, index: usize| question[index] * first(2 * SIDE + MIXED + index, unit);
                biases(SUM_PLACES, |unit| (0..QUESTION).fold(first(INPUTS, unit), |sum, index| sum + input(unit, index)))
            })
        });
        // The last group of outputs has a unit to spare.
        let output = |input: usize, unit: usize| if unit < OUTPUTS { weights[OUTPUT_AT + input * OUTPUTS + unit] } else { 0.0 };
        let second = |input: usize, unit: usize| weights[SECOND_AT + input * SECOND + unit];
        BoardNet {
            own: scaled(0, &side_norms),
            other: scaled(SIDE, &side_norms),
            mixed: scaled(2 * SIDE, &mixed_norms),
            bias,
            second: pairs(FIRST, SECOND, WEIGHT_PLACES, second),
            second_bias: biases(OUTPUT_PLACES, |unit| second(FIRST, unit)),
            output: pairs(SECOND, OUTPUT_UNITS, WEIGHT_PLACES, output),
            output_bias: biases(OUTPUT_PLACES, |unit| output(SECOND, unit)),
        }
    }

    /// The parts of the first layer's sums that one player's stones give: as the mover's, and as the other's.
    pub fn side(&self, counts: &SideCounts) -> [Sums; 2] {
        [&self.own, &self.other].map(|rows| {
            let mut sums = [0; FIRST];
            accumulate(&mut sums, &counted::<SIDE, { SIDE.next_multiple_of(2) }>(counts), rows);
            sums
        })
    }

    /// The outputs, with [`OUTPUT_PLACES`].
    pub fn outputs(&self, own: &Sums, other: &Sums, counts: &MixedCounts, black: bool, passes: u8) -> [i32; OUTPUTS] {
        let mut sums = self.bias[usize::from(black)][usize::from(passes.min(1))];
        for (sum, (own, other)) in sums.iter_mut().zip(own.iter().zip(other)) {
            *sum = sum.wrapping_add(*own).wrapping_add(*other);
        }
        accumulate(&mut sums, &counted::<MIXED, { MIXED.next_multiple_of(2) }>(counts), &self.mixed);
        let mut hidden = self.second_bias;
        accumulate(&mut hidden, &rectified(&sums, SUM_PLACES - UNIT_PLACES), &self.second);
        let mut outputs = self.output_bias;
        accumulate(&mut outputs, &rectified(&hidden, WEIGHT_PLACES), &self.output);
        let [logit, win, loss, _] = outputs;
        [logit, win, loss]
    }
}

/// Counts as inputs; an odd one out is paired with zero.
fn counted<const COUNTS: usize, const INPUTS: usize>(counts: &[u8; COUNTS]) -> [i16; INPUTS] {
    std::array::from_fn(|index| counts.get(index).copied().unwrap_or(0).into())
}

/// Hidden values from sums with `drop` more binary places.
fn rectified<const UNITS: usize>(sums: &[i32; UNITS], drop: u32) -> [i16; UNITS] {
    sums.map(|sum| (sum >> drop).clamp(0, CAP_UNITS) as i16)
}

/// Adds what inputs give to the sums of units, whose number is a multiple of four: four units and two inputs at a time is the form in which a
/// compiler makes eight products and four sums one instruction of plain x86-64 (`pmaddwd`).
#[inline(never)]
fn accumulate<const UNITS: usize>(sums: &mut [i32; UNITS], inputs: &[i16], weights: &[i16]) {
    for (pair, row) in inputs.chunks_exact(2).zip(weights.chunks_exact(2 * UNITS)) {
        let (a, b) = (pair[0], pair[1]);
        if a | b == 0 {
            continue;
        }
        let inputs = [a, b, a, b, a, b, a, b];
        for (sums, weights) in sums.chunks_exact_mut(4).zip(row.chunks_exact(8)) {
            for at in 0..4 {
                let first = i32::from(weights[2 * at]) * i32::from(inputs[2 * at]);
                let second = i32::from(weights[2 * at + 1]) * i32::from(inputs[2 * at + 1]);
                sums[at] = sums[at].wrapping_add(first.wrapping_add(second));
            }
        }
    }
}

//! The net: one input layer, one hidden layer, three outputs; trained in `f32`, used in integers.

use super::features::{self, INPUTS, MIXED, MixedCounts, QUESTION, SIDE, SideCounts};
use superko_rules::Geometry;

/// Units of the two hidden layers, rectified and cut off at [`CAP`].
pub(crate) const FIRST: usize = 40;
pub(crate) const SECOND: usize = 24;
/// Outputs: the logit that the side to move wins; log2 of the expansions spent if it wins, and if it loses.
pub(crate) const OUTPUTS: usize = 3;
/// Number of weights.
pub(crate) const WEIGHTS: usize = FIRST * (INPUTS + 1) + SECOND * (FIRST + 1) + OUTPUTS * (SECOND + 1);
/// Largest value of a hidden unit.
pub(crate) const CAP: f32 = 15.99;

/// Where the layers begin among the weights: the first layer input by input, then its biases; the others likewise.
pub(crate) const SECOND_AT: usize = FIRST * (INPUTS + 1);
pub(crate) const OUTPUT_AT: usize = SECOND_AT + SECOND * (FIRST + 1);

/// Binary places of first-layer sums, hidden values and the later layers' weights.
const SUM_PLACES: u32 = 12;
const UNIT_PLACES: u32 = 8;
const WEIGHT_PLACES: u32 = 10;
/// Binary places of the outputs.
pub(crate) const OUTPUT_PLACES: u32 = UNIT_PLACES + WEIGHT_PLACES;

/// Sums of the first layer.
pub(crate) type Sums = [i32; FIRST];

/// A net made ready for one board and komi: norms are multiplied in, the question is summed into the biases. All in integers, so
/// that results are the same on every machine and in whatever order sums are made.
#[derive(Debug)]
pub(crate) struct BoardNet {
    own: Box<[[i16; FIRST]; SIDE]>,
    other: Box<[[i16; FIRST]; SIDE]>,
    mixed: Box<[[i16; FIRST]; MIXED]>,
    /// `bias[black to move][passes]`.
    bias: [[Sums; 2]; 2],
    second: Box<[[i16; FIRST]; SECOND]>,
    second_bias: [i32; SECOND],
    output: [[i16; SECOND]; OUTPUTS],
    output_bias: [i32; OUTPUTS],
}

fn quantised(value: f32, places: u32) -> i16 {
    (value * (1u32 << places) as f32).round().clamp(-32767.0, 32767.0) as i16
}

fn quantised_bias(value: f32, places: u32) -> i32 {
    (value * (1u32 << places) as f32).round().clamp(-2e8, 2e8) as i32
}

impl BoardNet {
    /// `need`: the margin asked of Black.
    pub fn new(weights: &[f32], geometry: &Geometry, need_black: i32) -> BoardNet {
        let (side_norms, mixed_norms) = features::norms(geometry);
        let row = |input: usize| &weights[input * FIRST..][..FIRST];
        let rows = |first: usize, norms: &[f32]| -> Vec<[i16; FIRST]> {
            let scaled = |(index, &norm): (usize, &f32)| std::array::from_fn(|unit| quantised(row(first + index)[unit] * norm, SUM_PLACES));
            norms.iter().enumerate().map(scaled).collect()
        };
        let boxed = |rows: Vec<[i16; FIRST]>| -> Box<[[i16; FIRST]; SIDE]> { rows.try_into().expect("one row a feature") };
        let bias = [false, true].map(|black| {
            [0u8, 1].map(|passes| {
                let question = features::question(geometry, if black { need_black } else { 1 - need_black }, passes);
                std::array::from_fn(|unit| {
                    let inputs = (0..QUESTION).map(|index| question[index] * row(2 * SIDE + MIXED + index)[unit]);
                    quantised_bias(inputs.fold(row(INPUTS)[unit], |sum, term| sum + term), SUM_PLACES)
                })
            })
        });
        let second = |unit: usize| std::array::from_fn(|input| quantised(weights[SECOND_AT + input * SECOND + unit], WEIGHT_PLACES));
        let output = |unit: usize| std::array::from_fn(|input| quantised(weights[OUTPUT_AT + input * OUTPUTS + unit], WEIGHT_PLACES));
        let second: Vec<[i16; FIRST]> = (0..SECOND).map(second).collect();
        BoardNet {
            own: boxed(rows(0, &side_norms)),
            other: boxed(rows(SIDE, &side_norms)),
            mixed: rows(2 * SIDE, &mixed_norms).try_into().expect("one row a feature"),
            bias,
            second: second.try_into().expect("one row a unit"),
            second_bias: std::array::from_fn(|unit| {
                quantised_bias(weights[SECOND_AT + FIRST * SECOND + unit], WEIGHT_PLACES + UNIT_PLACES)
            }),
            output: std::array::from_fn(output),
            output_bias: std::array::from_fn(|unit| {
                quantised_bias(weights[OUTPUT_AT + SECOND * OUTPUTS + unit], WEIGHT_PLACES + UNIT_PLACES)
            }),
        }
    }

    /// The parts of the first layer's sums that one player's stones give: as the mover's, and as the other's.
    pub fn side(&self, counts: &SideCounts) -> [Sums; 2] {
        let mut sums = [[0; FIRST]; 2];
        accumulate(&mut sums[0], counts, &*self.own);
        accumulate(&mut sums[1], counts, &*self.other);
        sums
    }

    /// The outputs, with [`OUTPUT_PLACES`].
    pub fn outputs(&self, own: &Sums, other: &Sums, counts: &MixedCounts, black: bool, passes: u8) -> [i32; OUTPUTS] {
        let mut sums = self.bias[usize::from(black)][usize::from(passes.min(1))];
        for unit in 0..FIRST {
            sums[unit] = sums[unit].wrapping_add(own[unit]).wrapping_add(other[unit]);
        }
        accumulate(&mut sums, counts, &*self.mixed);
        let first: [i16; FIRST] = std::array::from_fn(|unit| (sums[unit] >> (SUM_PLACES - UNIT_PLACES)).clamp(0, 4095) as i16);
        let second: [i16; SECOND] = std::array::from_fn(|unit| {
            let sum = dot(&first, &self.second[unit]).wrapping_add(self.second_bias[unit]);
            (sum >> WEIGHT_PLACES).clamp(0, 4095) as i16
        });
        std::array::from_fn(|unit| dot(&second, &self.output[unit]).wrapping_add(self.output_bias[unit]))
    }
}

#[inline]
fn accumulate(sums: &mut Sums, counts: &[u8], rows: &[[i16; FIRST]]) {
    for (&count, row) in counts.iter().zip(rows) {
        if count == 0 {
            continue;
        }
        for unit in 0..FIRST {
            sums[unit] = sums[unit].wrapping_add(i32::from(row[unit]).wrapping_mul(i32::from(count)));
        }
    }
}

#[inline]
fn dot<const N: usize>(values: &[i16; N], weights: &[i16; N]) -> i32 {
    values.iter().zip(weights).fold(0i32, |sum, (&value, &weight)| sum.wrapping_add(i32::from(value).wrapping_mul(i32::from(weight))))
}

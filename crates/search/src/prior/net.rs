//! The net: an input layer, a hidden layer, three outputs; trained in `f32`, used in integers.

use super::features::{self, INPUTS, MIXED, MixedCounts, QUESTION, SIDE, SideCounts};
use multiversion::multiversion;
use superko_rules::Geometry;
use wide::{i16x8, i32x4};

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

/// Units come in groups of four; the outputs have one to spare.
const FIRST_GROUPS: usize = FIRST / 4;
const SECOND_GROUPS: usize = SECOND / 4;
const OUTPUT_GROUPS: usize = 1;
/// Sums of the first layer.
pub(crate) type Sums = [i32x4; FIRST_GROUPS];
/// The weights of two inputs: group by group and unit by unit, those of the two.
type Row<const GROUPS: usize> = [i16x8; GROUPS];

/// A net made ready for one board and komi: norms are multiplied in, the question is summed into the biases. All in integers, so
/// that results are the same on every machine and in whatever order sums are made. Sums wrap, but do not in any sensible net.
pub(crate) struct BoardNet {
    own: Vec<Row<FIRST_GROUPS>>,
    other: Vec<Row<FIRST_GROUPS>>,
    mixed: Vec<Row<FIRST_GROUPS>>,
    /// `bias[black to move][passes]`.
    bias: [[Sums; 2]; 2],
    second: Vec<Row<SECOND_GROUPS>>,
    second_bias: [i32x4; SECOND_GROUPS],
    output: Vec<Row<OUTPUT_GROUPS>>,
    output_bias: [i32x4; OUTPUT_GROUPS],
}

/// The weights of a layer, quantised.
fn rows<const GROUPS: usize>(inputs: usize, places: u32, weight: impl Fn(usize, usize) -> f32) -> Vec<Row<GROUPS>> {
    let quantised = |input: usize, unit: usize| {
        let value = if input < inputs { weight(input, unit) } else { 0.0 };
        (value * (1u32 << places) as f32).round().clamp(-32767.0, 32767.0) as i16
    };
    let row =
        |first: usize| std::array::from_fn(|group| i16x8::new(std::array::from_fn(|at| quantised(first + at % 2, 4 * group + at / 2))));
    (0..inputs).step_by(2).map(row).collect()
}

fn biases<const GROUPS: usize>(places: u32, bias: impl Fn(usize) -> f32) -> [i32x4; GROUPS] {
    let quantised = |unit: usize| (bias(unit) * (1u32 << places) as f32).round().clamp(-2e8, 2e8) as i32;
    std::array::from_fn(|group| i32x4::new(std::array::from_fn(|at| quantised(4 * group + at))))
}

impl BoardNet {
    /// `need_black`: the margin asked of Black.
    pub fn new(weights: &[f32], geometry: &Geometry, need_black: i32) -> BoardNet {
        let (side_norms, mixed_norms) = features::norms(geometry);
        let first = |input: usize, unit: usize| weights[input * FIRST + unit];
        let scaled = |at: usize, norms: &[f32]| rows(norms.len(), SUM_PLACES, |input, unit| first(at + input, unit) * norms[input]);
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
            second: rows(FIRST, WEIGHT_PLACES, second),
            second_bias: biases(OUTPUT_PLACES, |unit| second(FIRST, unit)),
            output: rows(SECOND, WEIGHT_PLACES, output),
            output_bias: biases(OUTPUT_PLACES, |unit| output(SECOND, unit)),
        }
    }

    /// The parts of the first layer's sums that one player's stones give: as the mover's, and as the other's.
    pub fn side(&self, counts: &SideCounts) -> [Sums; 2] {
        side(self, counts)
    }

    /// The outputs, with [`OUTPUT_PLACES`].
    pub fn outputs(&self, own: &Sums, other: &Sums, counts: &MixedCounts, black: bool, passes: u8) -> [i32; OUTPUTS] {
        outputs(self, own, other, counts, &self.bias[usize::from(black)][usize::from(passes.min(1))])
    }
}

#[multiversion(targets("x86_64+avx2"))]
fn side(net: &BoardNet, counts: &SideCounts) -> [Sums; 2] {
    let inputs = counted::<SIDE, { SIDE / 2 }>(counts);
    [accumulate(Sums::default(), &inputs, &net.own), accumulate(Sums::default(), &inputs, &net.other)]
}

#[multiversion(targets("x86_64+avx2"))]
fn outputs(net: &BoardNet, own: &Sums, other: &Sums, counts: &MixedCounts, bias: &Sums) -> [i32; OUTPUTS] {
    let mut sums = *bias;
    for at in 0..FIRST_GROUPS {
        sums[at] += own[at] + other[at];
    }
    let sums = accumulate(sums, &counted::<MIXED, { MIXED.div_ceil(2) }>(counts), &net.mixed);
    let inputs = rectified::<FIRST_GROUPS, { FIRST / 2 }, { SUM_PLACES - UNIT_PLACES }>(&sums);
    let hidden = accumulate(net.second_bias, &inputs, &net.second);
    let inputs = rectified::<SECOND_GROUPS, { SECOND / 2 }, WEIGHT_PLACES>(&hidden);
    let [outputs] = accumulate(net.output_bias, &inputs, &net.output);
    let [logit, win, loss, _] = outputs.to_array();
    [logit, win, loss]
}

/// Counts as pairs of inputs; an odd one out is paired with zero.
#[inline(always)]
fn counted<const COUNTS: usize, const PAIRS: usize>(counts: &[u8; COUNTS]) -> [[i16; 2]; PAIRS] {
    const { assert!(COUNTS.div_ceil(2) == PAIRS) };
    let mut inputs = [[0; 2]; PAIRS];
    for (input, &count) in inputs.as_flattened_mut().iter_mut().zip(counts) {
        *input = count.into();
    }
    inputs
}

/// Hidden values from sums with `DROP` more binary places, as pairs of inputs.
#[inline(always)]
fn rectified<const GROUPS: usize, const PAIRS: usize, const DROP: u32>(sums: &[i32x4; GROUPS]) -> [[i16; 2]; PAIRS] {
    const { assert!(2 * GROUPS == PAIRS) };
    let mut values = [[0; 2]; PAIRS];
    for (values, &sums) in values.chunks_exact_mut(2).zip(sums) {
        let [a, b, c, d] = (sums >> DROP).max(i32x4::ZERO).min(i32x4::splat(CAP_UNITS)).to_array().map(|value| value as i16);
        (values[0], values[1]) = ([a, b], [c, d]);
    }
    values
}

/// Adds what inputs give to the sums of units, two inputs and four units at a time (`pmaddwd` of plain x86-64). The number of units is fixed so that
/// the sums stay in registers. Inputs of zero are not left out: the branches would cost more than the products.
#[inline(always)]
fn accumulate<const GROUPS: usize>(mut sums: [i32x4; GROUPS], inputs: &[[i16; 2]], weights: &[Row<GROUPS>]) -> [i32x4; GROUPS] {
    for (&[a, b], row) in inputs.iter().zip(weights) {
        let inputs = i16x8::new([a, b, a, b, a, b, a, b]);
        for (sums, &weights) in sums.iter_mut().zip(row) {
            *sums += weights.dot(inputs);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// A layer one product at a time.
    fn plain<const GROUPS: usize>(sums: &[i32x4; GROUPS], inputs: &[i16], weights: &[Row<GROUPS>]) -> Vec<i32> {
        let mut sums: Vec<i32> = sums.iter().flat_map(|sums| sums.to_array()).collect();
        for (input, &value) in inputs.iter().enumerate() {
            for (unit, sum) in sums.iter_mut().enumerate() {
                let weight = weights[input / 2][unit / 4].to_array()[2 * (unit % 4) + input % 2];
                *sum = sum.wrapping_add(i32::from(value) * i32::from(weight));
            }
        }
        sums
    }

    #[test]
    fn outputs_are_those_of_plain_arithmetic() {
        let mut rng = Rng::new(1);
        let geometry = Geometry::get(3, 4).unwrap();
        for round in 0..50 {
            // From all units in their range to most of them at its ends.
            let scale = [0.1, 1.0, 10.0][round % 3];
            let weights: Vec<f32> = (0..WEIGHTS).map(|_| scale * (2.0 * rng.unit() - 1.0)).collect();
            let net = BoardNet::new(&weights, geometry, 3);
            let mut counts = |_| if rng.below(3) == 0 { 0 } else { rng.below(128) as u8 };
            let (own, other): (SideCounts, SideCounts) = (std::array::from_fn(&mut counts), std::array::from_fn(&mut counts));
            let mixed: MixedCounts = std::array::from_fn(&mut counts);
            let (black, passes) = (round % 2 == 0, round as u8 / 2 % 2);

            let mut sums = net.bias[usize::from(black)][usize::from(passes)].iter().flat_map(|sums| sums.to_array()).collect::<Vec<_>>();
            for (counts, rows) in [(&own[..], &net.own), (&other, &net.other), (&mixed, &net.mixed)] {
                let inputs: Vec<i16> = counts.iter().map(|&count| count.into()).collect();
                let added = plain(&Sums::default(), &inputs, rows);
                sums.iter_mut().zip(added).for_each(|(sum, added)| *sum = sum.wrapping_add(added));
            }
            let rectified = |sums: &[i32], drop: u32| sums.iter().map(|&sum| (sum >> drop).clamp(0, CAP_UNITS) as i16).collect::<Vec<_>>();
            let hidden = plain(&net.second_bias, &rectified(&sums, SUM_PLACES - UNIT_PLACES), &net.second);
            let expected = plain(&net.output_bias, &rectified(&hidden, WEIGHT_PLACES), &net.output);
            let ([as_own, _], [_, as_other]) = (net.side(&own), net.side(&other));
            assert_eq!(net.outputs(&as_own, &as_other, &mixed, black, passes)[..], expected[..OUTPUTS], "round {round}");
        }
    }
}

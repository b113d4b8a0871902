//! How a node's disproof number comes from its children's proof numbers, and the matching threshold for the child that is searched.
//!
//! The numbers only steer; any rule gives the same verdicts. Every rule here never falls when a child's number rises, so the least
//! number at which a child alone brings its parent to the parent's threshold is well defined: that is the child's threshold.

use crate::dfpn::INFINITE;
use superko_rules::Geometry;

/// A rule for disproof numbers (the proof number is always the least disproof number among the children).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberRule {
    /// The sum over the children (Allis 1994). Keyed by position, sums feed back through transpositions and cycles and explode
    /// (findings 1.1).
    Sum,
    /// The sum, with thresholds controlled as in [`NumberRule::LimitedControlled`].
    SumControlled,
    /// The greatest number among the children, and one unit for each other unsolved child (weak proof-number search, Ueda et al. 2008).
    Weak,
    /// The greatest number, a quarter of the rest, and a small unit for each other unsolved child (findings 1.1).
    Mixed,
    /// The plain sum up to a bound, above it an eighth of the excess (findings 1.1).
    Limited,
    /// `Limited`, and a revisited node whose numbers would stop it at once has its thresholds raised just past them, so that each
    /// visit ends in a node that is expanded for the first time, or in a proof (after the threshold controlling algorithm of
    /// Kishimoto 2010, which asks for a child nearer to the root by another path; the table does not keep distances).
    LimitedControlled,
}

/// Up to here `Limited` adds plainly; above, only an eighth of the excess counts (findings 1, "limited": 10^6 with first numbers of
/// an eighth of our scale).
const PLAIN_SUM: u64 = 8_000_000;
/// What `Weak` adds for a further child: about the first number of an even position.
const WEAK_UNIT: u64 = 355;
/// What `Mixed` adds for a further child.
const MIXED_UNIT: u64 = 16;

/// Proof numbers of a node's children, each for its own side to move; a child won by that side counts nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Replies {
    sum: u64,
    most: u64,
    /// The greatest but one, equal to `most` if two share it.
    second: u64,
    unsolved: u64,
}

impl Replies {
    /// Adds a child to the sum.
    #[inline]
    pub fn add(&mut self, phi: u64) {
        self.sum = (self.sum + phi).min(INFINITE);
    }

    /// Takes a child into the rest, which some rules ask for.
    #[inline]
    pub fn rank(&mut self, phi: u64) {
        self.second = self.second.max(phi.min(self.most));
        self.most = self.most.max(phi);
        self.unsolved += u64::from(phi != 0);
    }

    /// The others' sum and greatest number, without one child that has `phi`.
    fn without(&self, phi: u64) -> (u64, u64) {
        (self.sum - phi, if phi == self.most { self.second } else { self.most })
    }

    fn further(&self, unit: u64) -> u64 {
        self.unsolved.saturating_sub(1) * unit
    }
}

impl NumberRule {
    /// Every rule, in the order of comparison.
    pub const ALL: [NumberRule; 6] = [
        NumberRule::Sum,
        NumberRule::SumControlled,
        NumberRule::Weak,
        NumberRule::Mixed,
        NumberRule::Limited,
        NumberRule::LimitedControlled,
    ];

    /// The best by measurement (`superko bench --compare numbers`): on linear boards, whose game graphs fold back on themselves most, thresholds
    /// are controlled; elsewhere that costs a few per cent.
    pub fn for_board(geometry: &Geometry) -> NumberRule {
        if geometry.rows().min(geometry.cols()) == 1 { NumberRule::LimitedControlled } else { NumberRule::Limited }
    }

    /// As in reports.
    pub fn name(self) -> &'static str {
        match self {
            NumberRule::Sum => "sum",
            NumberRule::SumControlled => "sum, controlled",
            NumberRule::Weak => "weak",
            NumberRule::Mixed => "mixed",
            NumberRule::Limited => "limited",
            NumberRule::LimitedControlled => "limited, controlled",
        }
    }

    /// Whether the rule asks for more than the sum.
    #[inline]
    pub(crate) fn ranks(self) -> bool {
        matches!(self, NumberRule::Weak | NumberRule::Mixed)
    }

    /// Whether a revisited node that would stop at once is searched all the same.
    #[inline]
    pub(crate) fn controls_thresholds(self) -> bool {
        matches!(self, NumberRule::SumControlled | NumberRule::LimitedControlled)
    }

    /// The disproof number. Below [`INFINITE`] whatever the children have, so that no open root ever reaches its thresholds.
    #[inline]
    pub(crate) fn disproof(self, replies: &Replies) -> u64 {
        let Replies { sum, most, .. } = *replies;
        let number = match self {
            NumberRule::Sum | NumberRule::SumControlled => sum,
            NumberRule::Weak => most + replies.further(WEAK_UNIT),
            NumberRule::Mixed => most + (sum - most) / 4 + replies.further(MIXED_UNIT),
            NumberRule::Limited | NumberRule::LimitedControlled if sum <= PLAIN_SUM => sum,
            NumberRule::Limited | NumberRule::LimitedControlled => PLAIN_SUM + (sum - PLAIN_SUM) / 8,
        };
        number.min(INFINITE - 1)
    }

    /// The least proof number of one child, now `phi`, at which the disproof number reaches `threshold`, which it has not reached.
    #[inline]
    pub(crate) fn child_threshold(self, threshold: u64, replies: &Replies, phi: u64) -> u64 {
        let threshold = threshold.min(INFINITE);
        let (sum, most) = replies.without(phi);
        let least = match self {
            NumberRule::Sum | NumberRule::SumControlled => threshold - sum.min(threshold),
            // The others alone stay below the threshold, so this child must become the greatest.
            NumberRule::Weak => threshold.saturating_sub(replies.further(WEAK_UNIT)),
            NumberRule::Mixed => {
                let left = threshold.saturating_sub(replies.further(MIXED_UNIT));
                // As the greatest child, or as one that counts by a quarter.
                let as_greatest = left.saturating_sub(sum / 4);
                if as_greatest > most { as_greatest } else { (4 * left.saturating_sub(most)).saturating_sub(sum.saturating_sub(most)) }
            }
            NumberRule::Limited | NumberRule::LimitedControlled => {
                let plain =
                    if threshold <= PLAIN_SUM { threshold } else { PLAIN_SUM + (threshold - PLAIN_SUM).saturating_mul(8).min(INFINITE) };
                plain.saturating_sub(sum)
            }
        };
        least.clamp(phi + 1, INFINITE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replies(numbers: &[u64]) -> Replies {
        let mut replies = Replies::default();
        numbers.iter().for_each(|&phi| {
            replies.add(phi);
            replies.rank(phi);
        });
        replies
    }

    /// The child's threshold is the least number that brings the parent to its own threshold: one less does not.
    #[test]
    fn a_childs_threshold_is_the_least_that_decides_the_parents() {
        let mut state = 7u64;
        let mut draw = |limit: u64| {
            state = crate::board_set::mix(state.wrapping_add(0x9e37_79b9_7f4a_7c15));
            state % limit
        };
        for round in 0..20_000 {
            let scale = [10, 1_000, 1_000_000, 40_000_000][round % 4];
            let mut numbers: Vec<u64> = (0..1 + draw(6)).map(|_| if draw(4) == 0 { 0 } else { 1 + draw(scale) }).collect();
            let at = draw(numbers.len() as u64) as usize;
            numbers[at] = 1 + draw(scale);
            for rule in NumberRule::ALL {
                let now = rule.disproof(&replies(&numbers));
                let threshold = now + 1 + draw(scale);
                let least = rule.child_threshold(threshold, &replies(&numbers), numbers[at]);
                let with = |phi: u64| {
                    let mut numbers = numbers.clone();
                    numbers[at] = phi;
                    rule.disproof(&replies(&numbers))
                };
                assert!(with(least) >= threshold, "{rule:?} {numbers:?}, child {at}: {least} does not reach {threshold}");
                assert!(with(least - 1) < threshold, "{rule:?} {numbers:?}, child {at}: less than {least} reaches {threshold}");
            }
        }
    }

    #[test]
    fn numbers_past_all_bounds_stay_finite() {
        let huge = replies(&[INFINITE - 1, INFINITE - 1, 5]);
        for rule in NumberRule::ALL {
            assert!(rule.disproof(&huge) < INFINITE);
            let threshold = rule.child_threshold(u64::MAX, &huge, 5);
            assert!((6..=INFINITE).contains(&threshold), "{rule:?} {threshold}");
        }
    }
}

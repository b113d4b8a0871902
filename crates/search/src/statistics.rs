//! Counters of what the search does, for reports and metrics: one line here adds a counter to `--json`, `/metrics` and `bench`.
//!
//! A search counts in its own [`Counters`] and adds them to the shared ones at its safe points; the hot loop has no atomics.

use crate::Print;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use superko_rules::Board;

/// Counters that differ in one label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Key in JSON.
    pub name: &'static str,
    /// Name of the metric; times are shown there in seconds.
    pub metric: &'static str,
    /// Name of the label.
    pub label: &'static str,
    /// What is counted.
    pub help: &'static str,
}

macro_rules! counters {
    ($($name:literal, $metric:literal by $label:literal, $help:literal { $($(#[doc = $doc:literal])* $counter:ident = $value:literal,)* })*) => {
        /// A counter.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Counter {
            $($($(#[doc = $doc])* $counter,)*)*
        }

        impl Counter {
            /// Every counter, those of a group together.
            pub const ALL: &[Counter] = &[$($(Counter::$counter,)*)*];

            /// Its group.
            pub fn group(self) -> Group {
                match self {
                    $($(Counter::$counter)|* => Group { name: $name, metric: $metric, label: $label, help: $help },)*
                }
            }

            /// The value of its group's label.
            pub fn value(self) -> &'static str {
                match self {
                    $($(Counter::$counter => $value,)*)*
                }
            }
        }
    };
}

counters! {
    "reuse_accepted", "superko_reuse_accepted_total" by "by", "Stored lemmas that applied, by what settled condition (i)." {
        /// Cube and Bloom filter alone.
        AcceptedByFilter = "cube_and_filter",
        /// The prints, after a board of the history had passed cube and filter.
        AcceptedByPrints = "prints",
    }
    "reuse_rejected", "superko_reuse_rejected_total" by "condition", "Stored lemmas that did not apply, by the first condition that failed." {
        /// The komi asks for more.
        RejectedMargin = "margin",
        /// (iii): a winner stone stood on `T`.
        RejectedTerritory = "iii_territory",
        /// (i): a board of the history is among the prints.
        RejectedPrints = "i_prints",
        /// (i): a board of the history is in the filter of boards whose prints were given up when the lemma was composed.
        RejectedFilter = "i_filter",
        /// (i): the prints that could tell are gone from the table.
        RejectedPrintsGone = "i_sets_gone",
        /// (ii): a board of `X` is not in the history.
        RejectedExcluded = "ii_excluded",
        /// (ii): `X` is gone from the table.
        RejectedExcludedGone = "ii_sets_gone",
    }
    "static_leaves", "superko_static_leaves_total" by "kind", "Positions decided without search or lemma, by the rule that decided them." {
        /// Pure eyes under C1 and C2.
        LeafPureEyes = "pure_eyes",
        /// Pure eyes and region games.
        LeafRegionGame = "region_game",
        /// Look-ahead l1: the winner completes the eyes with one stone.
        LeafOneMove = "one_move",
        /// Look-ahead l2: the loser cannot stop all completions.
        LeafMiai = "miai",
        /// Look-ahead l3: the winner moves to l2.
        LeafMoveToMiai = "move_to_miai",
    }
    "path_only", "superko_path_only_total" by "reason", "Proofs that hold on their own path only, by the first reason." {
        /// A board created on the way may be in the child's `B`.
        PathCreated = "composition_i",
        /// A winner stone stands on the child's `T`.
        PathTerritory = "composition_iii",
        /// `X` has too many boards.
        PathExcluded = "excluded_too_many",
        /// The table had given up the sets of a child's lemma.
        PathSetsGone = "sets_gone",
        /// A child's proof holds on its path only.
        PathChild = "child",
    }
    "moves", "superko_search_moves_total" by "kind", "Moves that were not searched." {
        /// Replies that superko banned at a lost position.
        MoveBanned = "banned",
        /// Moves that pruning left out.
        MoveSkipped = "skipped",
    }
    "excluded_boards", "superko_lemma_excluded_boards_total" by "boards", "Lemmas stored, by the number of boards in X." {
        /// `X = ∅`.
        Excluded0 = "0",
        /// One board.
        Excluded1 = "1",
        /// Two boards.
        Excluded2 = "2",
        /// Up to four.
        Excluded4 = "3-4",
        /// Up to eight.
        Excluded8 = "5-8",
        /// Up to 16.
        Excluded16 = "9-16",
        /// Up to 32.
        Excluded32 = "17-32",
        /// Up to 64.
        Excluded64 = "33-64",
        /// More.
        ExcludedMore = "65+",
    }
    "created_boards", "superko_lemma_created_boards_total" by "boards", "Lemmas stored, by the number of prints in B." {
        /// None.
        Created0 = "0",
        /// One.
        Created1 = "1",
        /// Up to three.
        Created2 = "2-3",
        /// Up to seven.
        Created4 = "4-7",
        /// Up to 15.
        Created8 = "8-15",
        /// Up to 31.
        Created16 = "16-31",
        /// Up to 63.
        Created32 = "32-63",
        /// Up to 127.
        Created64 = "64-127",
        /// Up to 255.
        Created128 = "128-255",
        /// Up to 511.
        Created256 = "256-511",
        /// Up to 1023.
        Created512 = "512-1023",
        /// More.
        CreatedMore = "1024+",
    }
    "lemma_set_boards", "superko_lemma_set_boards_total" by "set", "Boards in the sets of the lemmas stored." {
        /// Prints of `B`.
        SetCreated = "created",
        /// Boards of `X`.
        SetExcluded = "excluded",
    }
    "lemma_set_bytes", "superko_lemma_set_bytes_total" by "set", "Bytes of the sets of the lemmas stored, without a table's own framing." {
        /// Four bytes a print of `B`.
        BytesCreated = "created",
        /// 16 bytes a board of `X`.
        BytesExcluded = "excluded",
    }
    "phase_nanoseconds", "superko_search_sampled_seconds_total" by "phase", "Time of one expansion in 256, its descendants left out, by phase." {
        /// Making the children.
        PhaseGenerate = "generate",
        /// Static knowledge.
        PhaseStatic = "static",
        /// Looking for lemmas that apply.
        PhaseProbe = "probe",
        /// Numbers from the table or from the prior.
        PhasePrior = "prior",
        /// Choosing the child to search.
        PhaseSelect = "select",
        /// Composing a lemma.
        PhaseCompose = "compose",
        /// Storing lemma and numbers.
        PhaseStore = "store",
    }
}

const COUNT: usize = Counter::ALL.len();

/// The counts of one search. Equality leaves out the sampled times, which never repeat.
#[derive(Clone, Copy, Debug)]
pub struct Counters([u64; COUNT]);

impl Default for Counters {
    fn default() -> Self {
        Counters([0; COUNT])
    }
}

impl PartialEq for Counters {
    fn eq(&self, other: &Self) -> bool {
        let counts = |counter: &&Counter| !counter.is_time();
        Counter::ALL.iter().filter(counts).all(|&counter| self.get(counter) == other.get(counter))
    }
}

impl Eq for Counters {}

impl Counter {
    /// Whether it adds up time: not the same twice.
    pub fn is_time(self) -> bool {
        self.group().name == "phase_nanoseconds"
    }
}

impl Counters {
    /// The count so far.
    pub fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize]
    }

    /// Adds to a count.
    #[inline]
    pub fn add(&mut self, counter: Counter, number: u64) {
        self.0[counter as usize] += number;
    }

    /// Adds one.
    #[inline]
    pub(crate) fn count(&mut self, counter: Counter) {
        self.add(counter, 1);
    }

    /// Every counter with its count, those of a group together.
    pub fn iter(&self) -> impl Iterator<Item = (Counter, u64)> + '_ {
        Counter::ALL.iter().map(|&counter| (counter, self.get(counter)))
    }

    /// Both together.
    #[must_use]
    pub fn plus(&self, other: &Counters) -> Counters {
        Counters(std::array::from_fn(|at| self.0[at] + other.0[at]))
    }

    /// What was added since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Counters) -> Counters {
        Counters(std::array::from_fn(|at| self.0[at].saturating_sub(earlier.0[at])))
    }

    /// The share of each phase in the sampled time, 0 to 1; empty before the first sample.
    pub fn phase_shares(&self) -> Vec<(&'static str, f64)> {
        let times = || self.iter().filter(|(counter, _)| counter.is_time());
        let all: u64 = times().map(|(_, nanoseconds)| nanoseconds).sum();
        if all == 0 {
            return Vec::new();
        }
        times().map(|(counter, nanoseconds)| (counter.value(), nanoseconds as f64 / all as f64)).collect()
    }

    /// Counts a stored lemma's sets, given by their numbers of boards.
    pub(crate) fn stored(&mut self, created: usize, excluded: usize) {
        let log2_up = |number: usize| if number == 0 { 0 } else { 1 + number.next_power_of_two().ilog2() as usize };
        let log2_down = |number: usize| number.checked_ilog2().map_or(0, |log2| 1 + log2 as usize);
        self.0[Counter::Excluded0 as usize + log2_up(excluded).min(8)] += 1;
        self.0[Counter::Created0 as usize + log2_down(created).min(11)] += 1;
        self.add(Counter::SetCreated, created as u64);
        self.add(Counter::SetExcluded, excluded as u64);
        self.add(Counter::BytesCreated, (created * size_of::<Print>()) as u64);
        self.add(Counter::BytesExcluded, (excluded * size_of::<Board>()) as u64);
    }
}

/// Counts that many searches add to.
#[derive(Debug)]
pub struct SharedCounters([AtomicU64; COUNT]);

impl Default for SharedCounters {
    fn default() -> Self {
        SharedCounters(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl SharedCounters {
    /// Adds what one search counted since its last call.
    pub(crate) fn add(&self, growth: &Counters) {
        for (shared, &number) in self.0.iter().zip(&growth.0).filter(|(_, number)| **number != 0) {
            // Counts stand for themselves: nothing is read on the strength of them.
            shared.fetch_add(number, Ordering::Relaxed);
        }
    }

    /// The counts so far.
    pub fn load(&self) -> Counters {
        Counters(std::array::from_fn(|at| self.0[at].load(Ordering::Relaxed)))
    }
}

/// Times one expansion in so many.
const SAMPLED: u64 = 256;

/// The clock of a sampled expansion; it stands still while the expansion's descendants are searched, and between samples.
#[derive(Debug, Default)]
pub(crate) struct PhaseClock(Option<(Counter, Instant)>);

impl PhaseClock {
    /// Whether the expansion of this number is timed: not one of those before which counters are flushed.
    pub fn samples(expansion: u64) -> bool {
        expansion % SAMPLED == SAMPLED / 2
    }

    /// Starts, or goes on after [`PhaseClock::pause`].
    pub fn run(&mut self, phase: Counter) {
        self.0 = Some((phase, Instant::now()));
    }

    /// What follows belongs to `phase`, if this expansion is timed.
    #[inline]
    pub fn enter(&mut self, phase: Counter, counters: &mut Counters) {
        if self.0.is_some() {
            self.change(phase, counters);
        }
    }

    #[cold]
    fn change(&mut self, phase: Counter, counters: &mut Counters) {
        self.stop(counters);
        self.run(phase);
    }

    /// Stops; whether it ran.
    #[inline]
    pub fn pause(&mut self, counters: &mut Counters) -> bool {
        let runs = self.0.is_some();
        if runs {
            self.stop(counters);
        }
        runs
    }

    #[cold]
    fn stop(&mut self, counters: &mut Counters) {
        if let Some((phase, since)) = self.0.take() {
            counters.add(phase, since.elapsed().as_nanos() as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_groups_together() {
        let mut names: Vec<(&str, &str)> = Counter::ALL.iter().map(|counter| (counter.group().name, counter.value())).collect();
        let mut groups: Vec<&str> = names.iter().map(|&(group, _)| group).collect();
        groups.dedup();
        let together = groups.len();
        groups.sort_unstable();
        groups.dedup();
        assert_eq!(groups.len(), together, "a group's counters stand together");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Counter::ALL.len());
    }

    #[test]
    fn sizes_fall_into_the_bins_that_name_them() {
        for size in [0usize, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 64, 65, 255, 256, 1023, 1024, 5000] {
            let mut counters = Counters::default();
            counters.stored(size, size);
            for group in ["excluded_boards", "created_boards"] {
                let mut hit = counters.iter().filter(|(counter, count)| counter.group().name == group && *count > 0);
                let name = hit.next().expect("one bin").0.value();
                assert!(hit.next().is_none());
                let (low, high) = match (name.split_once('-'), name.strip_suffix('+')) {
                    (Some((low, high)), _) => (low, high.parse().unwrap()),
                    (_, Some(low)) => (low, usize::MAX),
                    _ => (name, name.parse().unwrap()),
                };
                assert!((low.parse().unwrap()..=high).contains(&size), "{size} in bin {name} of {group}");
            }
        }
    }

    #[test]
    fn shared_counters_add_up() {
        let (shared, mut counters) = (SharedCounters::default(), Counters::default());
        counters.stored(3, 1);
        shared.add(&counters);
        let before = counters;
        counters.count(Counter::LeafPureEyes);
        shared.add(&counters.since(&before));
        assert_eq!(shared.load(), counters);
        assert_eq!(before.plus(&counters).get(Counter::BytesCreated), 2 * 12);
    }
}

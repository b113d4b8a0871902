//! Parallel search: plain threads from the root on one shared table, held apart by a virtual loss (Kaneko 2010; paper, section 5
//! and A.5 "Parallel search").
//!
//! **Soundness.** Each thread has its own history, buffers and recursion; the threads share the table and the [`Team`], nothing
//! else. A thread takes a position as decided in two ways only: through [`Search::decided`], which puts whatever the table returns
//! to the reuse test under the thread's own history, or through its own recursion. Numbers read from the table are clamped to at
//! least 1 and finite, so they never say "decided"; the team's words only change which child is looked at next. A lemma that was
//! found to apply and is displaced before it is composed leaves a proof for this path only, as with one thread. Hence every lemma
//! that a thread stores satisfies the invariants of a serial search, and parallel soundness is serial soundness.
//!
//! **Progress.** Thresholds are compared with plain numbers, never with virtual ones. A call of the search therefore returns at once
//! only where its numbers, those of other threads included, have really reached a threshold; otherwise it goes down to a new leaf.

use crate::dfpn::Search;
use crate::mutation;
use crate::solver::{Limits, Outcome, STACK_BYTES, SearchStats, Stop, attempt};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::thread::ScopedJoinHandle;
use superko_rules::Position;

/// Most threads of one solve; far below the number that fills [`INSIDE`].
pub const MOST_THREADS: usize = 256;
/// Log2 of the number of busy words: 256 KiB, which stay in the cache. Two nodes that share one only misguide each other.
const BUSY_BITS: u32 = 16;
/// What each thread inside a child adds to the child's number when the next child is chosen: a constant, which is much beside the numbers near
/// the leaves, where threads part, and a tenth of the number, so that in a large subtree too they take different ways where the second best
/// is about as good. Expansions of two threads in relation to one, medians of three, on 3x6 at 17.5 / 4x4 at 1.5 / 4x4 at 2.5 / 2x8
/// at 15.5 / 1x12 at 1.5: by 200 and nothing in proportion 1.38 / 1.33 / 1.43 / 1.32 / 1.15; by 3200 1.27 / 1.31 / 1.18 / 1.11 /
/// 0.97; by a tenth alone 1.25 / 1.09 / 1.00 / 1.47 / 0.83; by 1000 and a tenth 1.19 / 1.08 / 1.09 / 1.27 / 1.15; by 1000 and three
/// tenths 1.69 / 1.04 / 1.07 / 1.28 / 0.98. Single runs differ by a tenth and more.
pub(crate) fn burden(inside: u32, delta: u64) -> u64 {
    u64::from(inside) * (1000 + delta / 10)
}
/// The part of a busy word that counts the threads inside a node; the rest counts how often one has left, modulo 2^20.
const INSIDE: u32 = (1 << 12) - 1;
/// Expansions that a thread takes from a limited budget at a time.
const GRANT: u64 = 64;

/// What the threads of one solve share besides the table. All accesses are relaxed: no word says anything about another word, and
/// nothing that a thread may conclude depends on them (see the module's soundness argument).
#[derive(Debug)]
pub(crate) struct Team {
    /// By the top bits of a node's number key.
    busy: Box<[AtomicU32]>,
    /// Somebody has decided the root, or panicked: the others return at their next safe point.
    over: AtomicBool,
    /// Expansions of the solve's limit that no thread has taken yet.
    budget: AtomicU64,
}

impl Team {
    fn new(limits: &Limits) -> Team {
        let busy = (0..1 << BUSY_BITS).map(|_| AtomicU32::new(0)).collect();
        Team { busy, over: AtomicBool::new(false), budget: AtomicU64::new(limits.expansions.unwrap_or(0)) }
    }

    fn word(&self, number_key: u64) -> &AtomicU32 {
        &self.busy[(number_key >> (64 - BUSY_BITS)) as usize]
    }

    /// This thread goes into the node with these numbers.
    pub fn enter(&self, number_key: u64) {
        self.word(number_key).fetch_add(1, Relaxed);
    }

    /// This thread comes out again; returns how often a thread has left, this time included. Whatever it found is in the table.
    pub fn leave(&self, number_key: u64) -> u32 {
        // One step: a count of departures up, a count of those inside down.
        let before = self.word(number_key).fetch_add(INSIDE, Relaxed);
        before.wrapping_add(INSIDE) & !INSIDE
    }

    /// How many threads are inside the node, and how often one has left.
    pub fn look(&self, number_key: u64) -> (u32, u32) {
        let word = self.word(number_key).load(Relaxed);
        (word & INSIDE, word & !INSIDE)
    }

    /// Ends the solve.
    pub fn end(&self) {
        self.over.store(true, Relaxed);
    }

    /// Whether the solve is over.
    pub fn is_over(&self) -> bool {
        self.over.load(Relaxed)
    }

    /// Takes some of the expansions that the solve's limit leaves; 0 if there are none.
    pub fn grant(&self) -> u64 {
        let take = |left: u64| Some(left - left.min(GRANT));
        self.budget.fetch_update(Relaxed, Relaxed, take).expect("always some").min(GRANT)
    }
}

/// Ends the solve for all threads when a thread panics.
struct OverOnPanic<'a>(&'a Team);

impl Drop for OverOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end();
        }
    }
}

/// Searches `root` with `threads` threads, the calling one among them, each with a search from `new_search`. The first verdict
/// counts; without one, the reason why a thread gave up. Where the system refuses further threads, those that run are enough. A
/// panic of any thread stops the others and goes on in the caller.
pub(crate) fn solve<'a>(threads: usize, limits: Limits, new_search: &(dyn Fn(Limits) -> Search<'a> + Sync), root: Position) -> Outcome {
    let team = Team::new(&limits);
    let switched_off = mutation::current();
    let work = || {
        let _guard = OverOnPanic(&team);
        mutation::drop_condition(switched_off);
        // Every thread has its share of a limited budget granted bit by bit.
        let search = new_search(Limits { expansions: limits.expansions.map(|_| 0), ..limits });
        attempt(&mut search.with_team(&team), root)
    };
    let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
        let start = |number: usize| {
            let thread = std::thread::Builder::new().name(format!("search-{number}")).stack_size(STACK_BYTES);
            thread.spawn_scoped(scope, work).ok()
        };
        let others: Vec<_> = (1..threads.min(MOST_THREADS)).map_while(start).collect();
        let own = work();
        let join = |thread: ScopedJoinHandle<'_, Outcome>| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        std::iter::once(own).chain(others.into_iter().map(join)).collect()
    });
    let mut stats = SearchStats::default();
    for outcome in &outcomes {
        stats += outcome.stats;
    }
    let threads = outcomes.len();
    let mut verdicts = outcomes.iter().filter_map(|outcome| outcome.verdict.ok());
    let winner = verdicts.next().map(|(winner, _)| winner);
    assert!(verdicts.all(|(other, _)| Some(other) == winner), "two threads proved opposite winners: {outcomes:?}");
    // Where a pruned side failed in one thread, that is why the others stopped.
    let at = |wanted: fn(&Outcome) -> bool| outcomes.iter().position(wanted);
    let at = at(|outcome| outcome.verdict.is_ok()).or_else(|| at(|outcome| outcome.verdict == Err(Stop::Pruned))).unwrap_or(0);
    Outcome { stats, threads, ..outcomes.into_iter().nth(at).expect("the calling thread's at least") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_word_counts_who_is_inside_and_who_has_left() {
        let team = Team::new(&Limits::default());
        let key = 0xabcd_0000_0000_0001;
        assert_eq!(team.look(key), (0, 0));
        team.enter(key);
        team.enter(key);
        let (inside, before) = team.look(key);
        assert_eq!((inside, before), (2, 0));
        let left = team.leave(key);
        assert_eq!(team.look(key), (1, left));
        assert_ne!(left, before);
        // The count of departures wraps without touching the other.
        for _ in 0..1 << 20 {
            team.enter(key);
            team.leave(key);
        }
        assert_eq!(team.look(key), (1, left));
        team.leave(key);
        assert_eq!(team.look(key).0, 0);
        assert_eq!(team.look(0), (0, 0));
    }

    #[test]
    fn a_budget_is_granted_to_the_last_expansion() {
        let team = Team::new(&Limits { expansions: Some(2 * GRANT + 3), time: None });
        assert_eq!([team.grant(), team.grant(), team.grant(), team.grant()], [GRANT, GRANT, 3, 0]);
    }
}

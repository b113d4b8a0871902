//! Soundness conditions that a test can switch off, one at a time, to show that the suite notices (testing, Refutation by mutation).
//! Without the feature `mutation` nothing can be switched off and the tests cost nothing.

/// A condition of the search's soundness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// Reuse condition (i): no board of `B` in the history.
    Created,
    /// Reuse condition (ii): every board of `X` in the history.
    Excluded,
    /// Reuse condition (iii): no winner stone of the history on `T`.
    Territory,
    /// C1 of static leaves: no winner stone of the history on the claimed territory.
    C1,
    /// C2 of static leaves: not after the winner's own pass.
    C2,
    /// Look-ahead: no winner stone of the history on the points to be played.
    AheadC1,
    /// Look-ahead: the points to be played enter the lemma's `T`.
    AheadTerritory,
    /// Look-ahead l3: no winner stone of the history on the first point to be played.
    AheadFirstC1,
    /// Look-ahead l3: the first point to be played enters the lemma's `T`.
    AheadFirstTerritory,
    /// Look-ahead l2: not after the winner's own pass.
    AheadC2,
    /// Look-ahead l2: a capture of a chain in atari stops the ways that need it.
    AheadAtari,
    /// Look-ahead l2: the loser may take the point himself.
    AheadOccupied,
    /// Occupied points of an eye must touch the chain as well.
    Pureness,
    /// C1 of region games: no winner stone of the history on the claimed regions.
    RegionC1,
    /// Region games: at most one region may need the winner's first move, and only if the winner is to move.
    RegionTempo,
    /// Region games: of the regions that need the winner's first move, one gets it.
    RegionOneFirst,
    /// Region games: the loser may pass, so the winner needs a good move everywhere.
    RegionPass,
    /// Region games, L1: after a capture by the loser, a loose move of the stage captures only to make the balance a record.
    RegionL1,
    /// Region games, L1: that record counts what the winner gains after the capture, too.
    RegionRecord,
    /// Region games, L2: after a capturing loose move, the loser wins by capturing in the stage.
    RegionL2,
    /// Region games, L3: with nothing anchored, no loose move after a capture by the loser.
    RegionL3,
    /// Region games: only stones in chains that touch a wall count.
    RegionAnchor,
    /// Region games: a settled region's points touch a wall or an anchored stone.
    RegionCovered,
    /// Region games: the same for occupied points alone.
    RegionPure,
    /// Region games: the winner's chain away from walls and anchored stones keeps a liberty.
    RegionLiberty,
    /// A banned reply enters `X` when a loss is composed.
    ComposeExcluded,
    /// The winner's own move enters `B` when a win is composed.
    ComposeCreated,
    /// A child's territory enters `T` when a loss is composed.
    ComposeTerritory,
    /// A lemma serves only komi that its margin covers.
    Margin,
    /// A second pass wins only for the side that may play it.
    PassBack,
    /// A stored lemma is carried to the position through the symmetry that links them.
    Symmetry,
    /// A loss of the pruned side at a node where moves were skipped is no proof.
    PruneSkipped,
    /// A win composed from a result that is no proof is none.
    PruneWin,
    /// A loss composed from a result that is no proof is none.
    PruneLoss,
    /// What is no proof is no verdict.
    PruneVerdict,
}

/// What a hash collision, a corrupted entry or a torn one would do to a search (paper, section 8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A lemma that the reuse test has refused is used.
    UnsoundReuse,
    /// A lemma that applies is read with its winner reversed.
    ReversedWinner,
    /// A lemma that applies is read with the territory and the bounds of another one of its position.
    TornEntry,
}

#[cfg(feature = "mutation")]
mod switch {
    use super::{Dropped, Fault};
    use std::cell::Cell;

    thread_local! {
        static DROPPED: Cell<Option<Dropped>> = const { Cell::new(None) };
        /// The fault, one in how many chances, the state of the generator, and how often it has struck.
        static FAULT: Cell<(Option<Fault>, u64, u64, u64)> = const { Cell::new((None, 1, 0, 0)) };
    }

    /// Makes `fault` strike at one in `one_in` chances on this thread, as `seed` has it; `None` ends it. Returns how often the last one struck.
    pub fn inject(fault: Option<Fault>, one_in: u64, seed: u64) -> u64 {
        FAULT.replace((fault, one_in, seed, 0)).3
    }

    pub(crate) fn strikes(fault: Fault) -> bool {
        let (wanted, one_in, state, count) = FAULT.get();
        if wanted != Some(fault) {
            return false;
        }
        let state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let struck = (state >> 33).is_multiple_of(one_in);
        FAULT.set((wanted, one_in, state, count + u64::from(struck)));
        struck
    }

    /// Switches `condition` off on this thread (`None`: everything on).
    pub fn drop_condition(condition: Option<Dropped>) {
        DROPPED.set(condition);
    }

    /// What is switched off on this thread, for [`drop_condition`] on a thread that helps it.
    pub(crate) fn current() -> Option<Dropped> {
        DROPPED.get()
    }

    pub(crate) fn dropped(condition: Dropped) -> bool {
        DROPPED.get() == Some(condition)
    }
}

#[cfg(feature = "mutation")]
pub(crate) use switch::{current, dropped, strikes};
#[cfg(feature = "mutation")]
pub use switch::{drop_condition, inject};

#[cfg(not(feature = "mutation"))]
#[inline(always)]
pub(crate) fn dropped(_: Dropped) -> bool {
    false
}

#[cfg(not(feature = "mutation"))]
#[inline(always)]
pub(crate) fn strikes(_: Fault) -> bool {
    false
}

#[cfg(not(feature = "mutation"))]
pub(crate) fn current() -> Option<Dropped> {
    None
}

#[cfg(not(feature = "mutation"))]
pub(crate) fn drop_condition(_: Option<Dropped>) {}

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
    /// Occupied points of an eye must touch the chain as well.
    Pureness,
    /// C1 of region games: no winner stone of the history on the claimed regions.
    RegionC1,
    /// Region games: at most one region may need the winner's first move, and only if the winner is to move.
    RegionTempo,
    /// Region games: the loser may pass, so the winner needs a good move everywhere.
    RegionPass,
    /// Region games, L1: after a capture by the loser, a loose move of the stage captures only to make the balance a record.
    RegionL1,
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
}

#[cfg(feature = "mutation")]
mod switch {
    use super::Dropped;
    use std::cell::Cell;

    thread_local! {
        static DROPPED: Cell<Option<Dropped>> = const { Cell::new(None) };
    }

    /// Switches `condition` off on this thread (`None`: everything on).
    pub fn drop_condition(condition: Option<Dropped>) {
        DROPPED.set(condition);
    }

    pub(crate) fn dropped(condition: Dropped) -> bool {
        DROPPED.get() == Some(condition)
    }
}

#[cfg(feature = "mutation")]
pub use switch::drop_condition;
#[cfg(feature = "mutation")]
pub(crate) use switch::dropped;

#[cfg(not(feature = "mutation"))]
#[inline(always)]
pub(crate) fn dropped(_: Dropped) -> bool {
    false
}

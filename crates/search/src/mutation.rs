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

    /// What is switched off on this thread, for [`drop_condition`] on a thread that helps it.
    pub(crate) fn current() -> Option<Dropped> {
        DROPPED.get()
    }

    pub(crate) fn dropped(condition: Dropped) -> bool {
        DROPPED.get() == Some(condition)
    }
}

#[cfg(feature = "mutation")]
pub use switch::drop_condition;
#[cfg(feature = "mutation")]
pub(crate) use switch::{current, dropped};

#[cfg(not(feature = "mutation"))]
#[inline(always)]
pub(crate) fn dropped(_: Dropped) -> bool {
    false
}

#[cfg(not(feature = "mutation"))]
pub(crate) fn current() -> Option<Dropped> {
    None
}

#[cfg(not(feature = "mutation"))]
pub(crate) fn drop_condition(_: Option<Dropped>) {}

//! Composition of lemmas (theory, Composition). Each rule is a local check: it uses the node's own board and its children's lemmas,
//! never the path.

use crate::board_set::KnownBoard;
use crate::mutation::{Dropped, dropped};
use crate::{BoardSet, Counter, Lemma, Print, Table};
use superko_rules::{Board, Color, Move};

/// More boards than this in `X` and the proof is used once and not kept.
const MOST_EXCLUDED: usize = 255;

/// The winner moves `mv` to a child that `child` proves; `created` is the board of a stone move, `None` for a pass.
///
/// Let `H'` contain the node's board `b` and satisfy the result's conditions; `H'' = H' ∪ {r}` is the child's history.
/// The move is legal under `H'`, since `r ∈ B` and (i). (i) for the child: `B_c ⊆ B` misses `H'`, and `r ∉ B_c` is checked.
/// (ii): `X_c ∖ {b} ⊆ X`, and `b ∈ H'`. (iii): `T_c ⊆ T` covers `H'`, and that `r` has no winner stone on `T_c` is checked.
/// The reason if a check fails: an over-approximated set may hold `r`; the proof then stands for its own path only.
/// `table` keeps what is not read of the child's `B`.
pub(crate) fn win(table: &dyn Table, board: Board, mv: Move, created: Option<&KnownBoard>, child: Lemma) -> Result<Lemma, Counter> {
    let mut lemma = Lemma { best: Some(mv), ..child };
    lemma.excluded.retain(|&excluded| excluded != board);
    if let Some(known) = created {
        if lemma.created.may_contain(table, known) {
            return Err(Counter::PathCreated);
        }
        if known.board.stones(lemma.winner) & lemma.territory != 0 {
            return Err(Counter::PathTerritory);
        }
        if !dropped(Dropped::ComposeCreated) {
            lemma.created.insert(table.geometry(), known);
        }
    }
    Ok(lemma)
}

/// The loser is to move and every reply is accounted for by [`Loss::reply`] or [`Loss::banned`].
pub(crate) struct Loss {
    winner: Color,
    board: Board,
    margin: i8,
    created: BoardSet,
    excluded: Vec<Board>,
    territory: u64,
    /// Buffer for unions.
    spare: Vec<Print>,
    /// Why the proof stands for its own path only: the first local check that failed.
    failed: Option<Counter>,
}

impl Loss {
    pub fn new(winner: Color, board: Board) -> Self {
        Loss {
            winner,
            board,
            margin: i8::MAX,
            created: BoardSet::default(),
            excluded: Vec::new(),
            territory: 0,
            spare: Vec::new(),
            failed: None,
        }
    }

    /// A reply that `child` answers; `reached` is the board of a stone move, `None` for the pass.
    ///
    /// With `H'' = H' ∪ {r}`: (i) `B_c ⊆ B` misses `H'`, `r ∉ B_c` is checked; (ii) as for a win; (iii) `T_c ⊆ T` covers `H'`, which
    /// contains `b`, and the winner's stones of `r` are among those of `b`. That `b` has none on `T_c` (none is captured there by
    /// this reply) is checked, so that the result is not vacuous. A reply that is banned here may be answered like any other.
    pub fn reply(&mut self, table: &dyn Table, reached: Option<&KnownBoard>, mut child: Lemma) {
        debug_assert_eq!(child.winner, self.winner);
        self.margin = self.margin.min(child.margin);
        if self.failed.is_some() {
            return;
        }
        if !child.created.load(table) {
            child.created.fold();
        }
        if reached.is_some_and(|known| child.created.may_contain(table, known)) {
            self.path_only(Counter::PathCreated);
        }
        if self.board.stones(self.winner) & child.territory != 0 {
            self.path_only(Counter::PathTerritory);
        }
        self.created.join(&child.created, &mut self.spare);
        self.excluded.extend(child.excluded.iter().filter(|&&board| board != self.board));
        if !dropped(Dropped::ComposeTerritory) {
            self.territory |= child.territory;
        }
    }

    /// A reply that a board of the history forbids: whoever reuses the lemma must have that board in the history too (ii).
    pub fn banned(&mut self, reached: Board) {
        if !dropped(Dropped::ComposeExcluded) {
            self.excluded.push(reached);
        }
    }

    /// The proof stands for its own path only.
    pub fn path_only(&mut self, reason: Counter) {
        self.failed.get_or_insert(reason);
    }

    /// The lemma, or why the proof stands for its own path only.
    pub fn finish(mut self) -> Result<Lemma, Counter> {
        self.excluded.sort_unstable();
        self.excluded.dedup();
        if let Some(reason) = self.failed {
            return Err(reason);
        }
        if self.excluded.len() > MOST_EXCLUDED {
            return Err(Counter::PathExcluded);
        }
        Ok(Lemma {
            winner: self.winner,
            margin: self.margin,
            best: None,
            created: self.created,
            excluded: self.excluded,
            territory: self.territory,
            cost: 0,
            number: 0,
        })
    }
}

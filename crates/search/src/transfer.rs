//! Reuse of stored lemmas under the current history (theory, Reuse; paper, Theorem 1).

use crate::history::History;
use crate::mutation::{Dropped, Fault, dropped, strikes};
use crate::{Counter, Counters, Cube, Lemma, LemmaHead, LemmaSets, PositionKey, Print, Table};
use superko_rules::{Canonical, Color, Geometry, bits};

/// Buffers for reading lemmas, reused from probe to probe.
#[derive(Default)]
pub(crate) struct Transfer {
    heads: Vec<LemmaHead>,
    sets: LemmaSets,
    /// Prints of the boards of the history that pass cube and filter.
    prints: Vec<Print>,
    /// Go by the prints alone (ablation of cube and filter).
    prints_alone: bool,
}

/// A lemma that was found to apply, by reference to the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub key: PositionKey,
    /// Maps the position to the frame the lemma is stored in.
    pub sym: u8,
    pub head: LemmaHead,
}

/// What a probe came to.
pub(crate) enum Probe {
    Miss,
    /// There are lemmas, but none serves here.
    Rejected,
    Hit(Found),
}

impl Transfer {
    pub fn new(prints_alone: bool) -> Transfer {
        Transfer { prints_alone, ..Transfer::default() }
    }

    /// Looks for a lemma about the position `key` that decides it: one whose winner needs at most its margin (`needs`, by winner)
    /// and whose conditions (i) to (iii) hold for `history`, which contains the position's own board.
    pub fn probe(
        &mut self,
        table: &dyn Table,
        key: PositionKey,
        canonical: Canonical,
        history: &History,
        needs: &dyn Fn(Color) -> i32,
        counters: &mut Counters,
    ) -> Probe {
        self.heads.clear();
        table.lemmas(key, &mut self.heads);
        if self.heads.is_empty() {
            return Probe::Miss;
        }
        let geometry = table.geometry();
        for index in 0..self.heads.len() {
            let head = self.heads[index];
            // Komi monotonicity: a win by `margin` is a win at every komi that needs no more.
            if i32::from(head.margin) < needs(head.winner) && !dropped(Dropped::Margin) {
                counters.count(Counter::RejectedMargin);
                continue;
            }
            // A symmetric position has several canonicalising symmetries, and so several images of the lemma; each is a lemma.
            for sym in bits(canonical.syms.into()) {
                let mut found = Found { key, sym: sym as u8, head };
                match self.applies(table, geometry, &found, history) {
                    Ok(accepted) => {
                        counters.count(accepted);
                        if strikes(Fault::ReversedWinner) {
                            found.head.winner = head.winner.opponent();
                        }
                        if self.heads.len() > 1 && strikes(Fault::TornEntry) {
                            let other = self.heads[(index + 1) % self.heads.len()];
                            found.head = LemmaHead { territory: other.territory, cube: other.cube, ..head };
                        }
                        return Probe::Hit(found);
                    }
                    Err(rejected) => counters.count(rejected),
                }
                if strikes(Fault::UnsoundReuse) {
                    return Probe::Hit(found);
                }
            }
        }
        Probe::Rejected
    }

    /// The greatest margin of `winner` among those of `heads`, a table's lemmas about the position `key`, that apply under `history`.
    pub fn greatest_margin(
        &mut self,
        table: &dyn Table,
        key: PositionKey,
        heads: &[LemmaHead],
        canonical: Canonical,
        history: &History,
        winner: Color,
    ) -> Option<i32> {
        let geometry = table.geometry();
        let mut applies = |head| {
            bits(canonical.syms.into()).any(|sym| self.applies(table, geometry, &Found { key, sym: sym as u8, head }, history).is_ok())
        };
        heads.iter().filter(|head| head.winner == winner && applies(**head)).map(|head| i32::from(head.margin)).max()
    }

    /// Conditions (i) to (iii), in the frame of the current history: what settled it.
    fn applies(&mut self, table: &dyn Table, geometry: &Geometry, found: &Found, history: &History) -> Result<Counter, Counter> {
        let Found { key, sym, head } = found;
        let back = if dropped(Dropped::Symmetry) { 0 } else { geometry.inverse(*sym) };
        // (iii) No board of the history has a winner stone on T.
        if geometry.map_mask(back, head.territory) & history.stood(head.winner) != 0 && !dropped(Dropped::Territory) {
            return Err(Counter::RejectedTerritory);
        }
        // (i) B ∩ H' = ∅. Boards that pass cube and filter are settled by the prints; if those are gone, the answer is "maybe".
        let mut extras_read = false;
        self.prints.clear();
        if head.cube.least_stones != u8::MAX && !dropped(Dropped::Created) {
            let cube = Cube {
                black: geometry.map_mask(back, head.cube.black),
                white: geometry.map_mask(back, head.cube.white),
                empty: geometry.map_mask(back, head.cube.empty),
                ..head.cube
            };
            for known in history.boards_by_hash() {
                if !self.prints_alone && (!cube.admits(known.board) || !known.in_bloom(&head.bloom)) {
                    continue;
                }
                extras_read = extras_read || table.extras(*key, head, &mut self.sets);
                if !extras_read {
                    return Err(Counter::RejectedPrintsGone);
                }
                if known.in_bloom(&self.sets.bloom) {
                    return Err(Counter::RejectedFilter);
                }
                self.prints.extend(known.prints(geometry, *sym));
            }
            if !self.prints.is_empty() {
                match table.holds_any(*key, head, &self.prints, &mut self.sets) {
                    None => return Err(Counter::RejectedPrintsGone),
                    Some(true) => return Err(Counter::RejectedPrints),
                    Some(false) => {}
                }
            }
        }
        let accepted = if extras_read { Counter::AcceptedByPrints } else { Counter::AcceptedByFilter };
        // (ii) X ⊆ H'. X is exact; without it the lemma says nothing.
        if head.excluded > 0 && !dropped(Dropped::Excluded) {
            extras_read = extras_read || table.extras(*key, head, &mut self.sets);
            if !extras_read {
                return Err(Counter::RejectedExcludedGone);
            }
            if !self.sets.excluded.iter().all(|&board| history.contains(geometry.map_board(back, board))) {
                return Err(Counter::RejectedExcluded);
            }
        }
        Ok(accepted)
    }

    /// A found lemma in the frame of its position, with `B` by its parts where the table keeps them; `None` if the table has given up
    /// something that it needs.
    pub fn fetch(&mut self, table: &dyn Table, found: &Found) -> Option<Lemma> {
        let geometry = table.geometry();
        let Found { key, sym, head } = found;
        let whole = table.parts(*key, head, &mut self.sets);
        let stored = head.lemma(whole.then(|| std::mem::take(&mut self.sets)))?;
        Some(stored.map(geometry, geometry.inverse(*sym)))
    }

    /// [`Transfer::fetch`] with the prints of `B`; `None` if the table has given up any of them.
    pub fn fetch_whole(&mut self, table: &dyn Table, found: &Found) -> Option<Lemma> {
        let geometry = table.geometry();
        let Found { key, sym, head } = found;
        let sets = table.parts(*key, head, &mut self.sets).then(|| std::mem::take(&mut self.sets))?;
        let mut stored = head.lemma(Some(sets))?;
        let is_whole = stored.created.load(table) && stored.created.bloom() == [0; 4];
        is_whole.then(|| stored.map(geometry, geometry.inverse(*sym)))
    }
}

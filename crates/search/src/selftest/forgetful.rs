//! A table that forgets: the solver may lose by it, never err.

use crate::board_set::mix;
use crate::{Lemma, LemmaHead, LemmaSets, MemoryTable, Numbers, PositionKey, SetPart, Table};
use std::sync::atomic::{AtomicU64, Ordering};
use superko_rules::Geometry;

/// Drops stores and loses sets, each with a fixed probability, in a sequence given by the seed.
#[derive(Debug)]
pub(super) struct ForgetfulTable {
    table: MemoryTable,
    draws: AtomicU64,
    /// Out of 16.
    lost: u64,
}

impl ForgetfulTable {
    pub(super) fn new(geometry: &'static Geometry, seed: u64, lost: u64) -> Self {
        ForgetfulTable { table: MemoryTable::new(geometry), draws: AtomicU64::new(mix(seed)), lost }
    }

    fn forgets(&self) -> bool {
        mix(self.draws.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed)) % 16 < self.lost
    }
}

impl Table for ForgetfulTable {
    fn lemmas(&self, key: PositionKey, heads: &mut Vec<LemmaHead>) {
        if !self.forgets() {
            self.table.lemmas(key, heads);
        }
    }

    fn sets(&self, key: PositionKey, head: &LemmaHead, sets: &mut LemmaSets) -> bool {
        !self.forgets() && self.table.sets(key, head, sets)
    }

    fn store_lemma(&self, key: PositionKey, lemma: &Lemma) -> Vec<SetPart> {
        if self.forgets() { Vec::new() } else { self.table.store_lemma(key, lemma) }
    }

    fn numbers(&self, key: u64) -> Option<Numbers> {
        if self.forgets() { None } else { self.table.numbers(key) }
    }

    fn store_numbers(&self, key: u64, numbers: Numbers) {
        self.table.store_numbers(key, numbers);
    }

    fn geometry(&self) -> &'static Geometry {
        self.table.geometry()
    }
}

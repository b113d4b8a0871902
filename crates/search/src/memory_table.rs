//! An unbounded table on the heap: the reference that the mapped table is compared with, and the table of the search's own tests.

use crate::{Lemma, LemmaHead, LemmaSets, Numbers, PositionKey, Print, SetPart, SetsHandle, Table};
use std::collections::HashMap;
use std::sync::Mutex;
use superko_rules::Geometry;

/// Lemmas kept for one position; a further one takes the place of the cheapest.
const ALTERNATIVES: usize = 6;

/// Keeps everything, behind a mutex. The first word of a lemma's handle tells it from all others.
#[derive(Debug)]
pub struct MemoryTable {
    geometry: &'static Geometry,
    lemmas: Mutex<Kept>,
    numbers: Mutex<HashMap<u64, Numbers>>,
}

#[derive(Debug, Default)]
struct Kept {
    by_position: HashMap<PositionKey, Vec<(LemmaHead, Lemma)>>,
    /// Lemmas stored so far: the handle of the next one.
    stored: u64,
}

impl MemoryTable {
    /// An empty table for one board size.
    pub fn new(geometry: &'static Geometry) -> Self {
        MemoryTable { geometry, lemmas: Mutex::default(), numbers: Mutex::default() }
    }

    /// Every lemma with its key, in no order.
    pub fn all_lemmas(&self) -> Vec<(PositionKey, Lemma)> {
        let lemmas = self.lemmas.lock().expect("no holder panics");
        lemmas.by_position.iter().flat_map(|(&key, list)| list.iter().map(move |(_, lemma)| (key, lemma.clone()))).collect()
    }

    /// Calls `read` with the lemma of a head, if it is still there.
    fn with_lemma<T>(&self, key: PositionKey, head: &LemmaHead, read: impl FnOnce(&Lemma) -> T) -> Option<T> {
        let lemmas = self.lemmas.lock().expect("no holder panics");
        lemmas.by_position.get(&key).into_iter().flatten().find(|(stored, _)| stored.sets == head.sets).map(|(_, lemma)| read(lemma))
    }
}

impl Table for MemoryTable {
    fn lemmas(&self, key: PositionKey, heads: &mut Vec<LemmaHead>) {
        let lemmas = self.lemmas.lock().expect("no holder panics");
        heads.extend(lemmas.by_position.get(&key).into_iter().flatten().map(|(head, _)| *head));
    }

    fn sets(&self, key: PositionKey, head: &LemmaHead, sets: &mut LemmaSets) -> bool {
        sets.prints.clear();
        sets.parts.clear();
        let read = |lemma: &Lemma| {
            sets.prints.extend_from_slice(lemma.created.prints());
            read_extras(lemma, sets);
        };
        self.with_lemma(key, head, read).is_some()
    }

    fn extras(&self, key: PositionKey, head: &LemmaHead, sets: &mut LemmaSets) -> bool {
        self.with_lemma(key, head, |lemma| read_extras(lemma, sets)).is_some()
    }

    fn holds_any(&self, key: PositionKey, head: &LemmaHead, prints: &[Print], _sets: &mut LemmaSets) -> Option<bool> {
        self.with_lemma(key, head, |lemma| prints.iter().any(|print| lemma.created.prints().binary_search(print).is_ok()))
    }

    fn store_lemma(&self, key: PositionKey, lemma: &Lemma) -> Vec<SetPart> {
        let mut lemmas = self.lemmas.lock().expect("no holder panics");
        let serial = lemmas.stored;
        lemmas.stored += 1;
        let list = lemmas.by_position.entry(key).or_default();
        if list.len() >= ALTERNATIVES {
            let cheapest = (0..list.len()).min_by_key(|&at| list[at].1.cost).expect("the list is full");
            list.remove(cheapest);
        }
        let head = LemmaHead::of(lemma, SetsHandle([serial, 0, 0]));
        let mut lemma = lemma.clone();
        lemma.created.forget_parts();
        // Mostly there is one lemma about a position.
        list.reserve_exact(1);
        list.push((head, lemma));
        Vec::new()
    }

    fn numbers(&self, key: u64) -> Option<Numbers> {
        self.numbers.lock().expect("no holder panics").get(&key).copied()
    }

    fn store_numbers(&self, key: u64, numbers: Numbers) {
        self.numbers.lock().expect("no holder panics").insert(key, numbers);
    }

    fn geometry(&self) -> &'static Geometry {
        self.geometry
    }
}

fn read_extras(lemma: &Lemma, sets: &mut LemmaSets) {
    sets.bloom = lemma.created.bloom();
    sets.excluded.clone_from(&lemma.excluded);
}

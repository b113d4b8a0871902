//! The table returns what was stored under that key, or nothing, whatever is done to its words.

use super::*;
use crate::sets::MOST_PARTS;
use std::collections::HashMap;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Mutex;
use superko_rules::Board;
use superko_search::{BoardSet, MemoryTable};

const MIB: u64 = 1 << 20;

fn board(name: (usize, usize)) -> &'static Geometry {
    Geometry::get(name.0, name.1).expect("a board of the tests")
}

fn table() -> MappedTable {
    MappedTable::anonymous(board((3, 3)), MIB).expect("a small table")
}

/// A lemma that key and serial determine, with `prints` prints and `excluded` boards.
pub(crate) fn lemma_of(key: PositionKey, serial: u64, prints: usize, excluded: usize) -> Lemma {
    let mut state = mix(key as u64, serial);
    let mut next = || {
        state = mix(state, 1);
        state
    };
    let mut list: Vec<u32> = (0..prints).map(|_| next() as u32).collect();
    list.sort_unstable();
    list.dedup();
    let mut boards: Vec<Board> = (0..excluded).map(|_| Board { black: next(), white: next() }).collect();
    boards.sort_unstable();
    let cube = Cube { black: serial, white: next(), empty: next(), least_stones: next() as u8 };
    Lemma {
        winner: if next() & 1 == 1 { Color::White } else { Color::Black },
        margin: next() as i8,
        best: [None, Some(Move::Pass), Some(Move::Stone(7))][next() as usize % 3],
        created: BoardSet::new(list, [next(), 0, 0, next()], cube),
        excluded: boards,
        territory: next(),
        cost: 1 << (next() % 40),
        number: 0,
    }
}

pub(crate) fn read(table: &MappedTable, key: PositionKey) -> Vec<Lemma> {
    let (mut heads, mut sets) = (Vec::new(), LemmaSets::default());
    table.lemmas(key, &mut heads);
    heads.iter().filter_map(|head| table.whole_lemma(key, head, &mut sets)).collect()
}

/// The same lemma with its prints known by the filter only.
fn folded(lemma: &Lemma) -> Lemma {
    let mut lemma = lemma.clone();
    lemma.created = BoardSet::new(Vec::new(), lemma.created.filter(), *lemma.created.cube());
    lemma
}

fn is_one_of(found: &Lemma, stored: &[Lemma]) -> bool {
    stored.iter().any(|lemma| lemma == found || folded(lemma) == *found)
}

fn slot_of(table: &MappedTable, key: PositionKey) -> usize {
    table.slots_of(key).next().expect("the lemma is there").0
}

#[test]
fn a_lemma_keeps_its_number() {
    let table = MappedTable::anonymous(Geometry::get(3, 3).expect("a board"), 1 << 20).expect("a table");
    let most = (1 << 40) - 1;
    let lemmas = [0, 1, most].map(|number| Lemma { number, ..lemma_of(7, number, 40, 1) });
    for (key, lemma) in lemmas.iter().enumerate() {
        table.store_lemma(key as PositionKey, lemma);
        let found = read(&table, key as PositionKey);
        assert_eq!((found.len(), found[0].number, found[0].created.count()), (1, lemma.number, 40));
    }
    // The same proof under another number is the same lemma.
    table.store_lemma(2, &Lemma { number: 5, ..lemmas[2].clone() });
    assert_eq!(read(&table, 2).len(), 1);
}

#[test]
fn a_table_with_large_sets_folds_none() {
    let table = || MappedTable::anonymous(Geometry::get(5, 5).expect("a board"), 64 << 20).expect("a table");
    let lemma = lemma_of(1, 1, MOST_PRINTS + 1000, 1);
    for (table, expected) in [(table(), folded(&lemma)), (table().with_large_sets(), lemma.clone())] {
        table.store_lemma(1, &lemma);
        assert_eq!(read(&table, 1), [Lemma { cost: read(&table, 1)[0].cost, ..expected }]);
    }
}

#[test]
fn nothing_comes_back_but_what_was_stored() {
    let (table, reference) = (table(), MemoryTable::new(board((3, 3))));
    let mut keys = Vec::new();
    for round in 0..4000u64 {
        let random = mix(5, round);
        // Keys beyond 64 bits share their low words.
        let key = PositionKey::from(random % 300) << ((random >> 32 & 1) * 64);
        let lemma = lemma_of(key, round, random as usize >> 8 & 63, if random >> 20 & 3 == 0 { random as usize >> 24 & 7 } else { 0 });
        table.store_lemma(key, &lemma);
        keys.push((key, lemma));
    }
    let mut stored: HashMap<PositionKey, Vec<Lemma>> = HashMap::new();
    for (key, lemma) in keys {
        reference.store_lemma(key, &lemma);
        stored.entry(key).or_default().push(lemma);
    }
    let mut found = 0;
    for (key, stored) in &stored {
        for lemma in read(&table, *key) {
            assert!(is_one_of(&lemma, stored), "{key}: {lemma:?}");
            found += 1;
        }
    }
    assert!(found > 500, "only {found}");
    // Few enough to fit: then the mapped table agrees with the reference, sets and all.
    let (table, reference) = (self::table(), MemoryTable::new(board((3, 3))));
    for key in 0..50 {
        let lemma = lemma_of(key, 1, 9, 2);
        table.store_lemma(key, &lemma);
        reference.store_lemma(key, &lemma);
    }
    for (key, lemma) in reference.all_lemmas() {
        assert_eq!(read(&table, key), [lemma]);
    }
    assert!(read(&table, 50).is_empty());
}

#[test]
fn a_changed_word_is_never_believed() {
    let table = table();
    let (key, lemma) = (77, lemma_of(77, 3, 11, 4));
    table.store_lemma(key, &lemma);
    let slot = table.slot(slot_of(&table, key));
    for word in slot {
        for bit in 0..64 {
            word.fetch_xor(1 << bit, Relaxed);
            assert!(read(&table, key).is_empty());
            word.fetch_xor(1 << bit, Relaxed);
        }
    }
    // All nodes of its sets, and nothing else so far.
    let written = table.layout.ring_head(&table.words).load(Relaxed) as usize;
    assert!(written > 15, "{written}");
    for word in &table.sets_region().ring[..written] {
        for bit in 0..64 {
            word.fetch_xor(1 << bit, Relaxed);
            assert!(read(&table, key).is_empty());
            word.fetch_xor(1 << bit, Relaxed);
        }
    }
    assert_eq!(read(&table, key), [lemma]);
    assert!(table.occupancy().torn >= 1000);
}

#[test]
fn changed_numbers_are_never_returned() {
    let table = table();
    let key = 0x1234_5678_9abc_def0;
    let numbers = Numbers { phi: 12, delta: 5_000, cost: 96 };
    table.store_numbers(key, numbers);
    assert_eq!(table.numbers(key), Some(numbers));
    for word in table.number_bucket(key) {
        for bit in 0..64 {
            word.fetch_xor(1 << bit, Relaxed);
            // A changed cost may pass: it weighs nothing but replacement.
            assert!(table.numbers(key).is_none_or(|found| (found.phi, found.delta) == (12, 5_000)));
            word.fetch_xor(1 << bit, Relaxed);
        }
    }
}

#[cfg(test)]
#[test]
fn without_the_seal_a_torn_slot_is_believed() {
    let table = table();
    let lemma = lemma_of(5, 1, 3, 0);
    table.store_lemma(5, &lemma);
    // Half of another write: the territory is another lemma's.
    table.slot(slot_of(&table, 5))[3].store(99, Relaxed);
    assert!(read(&table, 5).is_empty());
    crate::sealed::mutation::SKIP_SEAL.set(true);
    let found = read(&table, 5);
    crate::sealed::mutation::SKIP_SEAL.set(false);
    assert!(found.iter().any(|found| found.territory == 99 && *found != lemma));
}

#[test]
fn threads_never_see_a_mixture() {
    let table = table();
    let (table, keys) = (&table, 5u64);
    let found: u64 = std::thread::scope(|scope| {
        let work = |thread: u64| {
            move || {
                let mut found = 0;
                for round in 0..6000u64 {
                    let random = mix(thread, round);
                    let key = PositionKey::from(random % keys);
                    let serial = random >> 40;
                    table.store_lemma(key, &lemma_of(key, serial, serial as usize % 200, serial as usize % 3));
                    table.store_numbers(random % keys, Numbers { phi: serial as u32 | 1, delta: serial as u32 | 1, cost: 7 });
                    for lemma in read(table, PositionKey::from(random >> 8) % 5) {
                        let key = PositionKey::from(random >> 8) % 5;
                        let serial = lemma.created.cube().black;
                        assert!(is_one_of(&lemma, &[lemma_of(key, serial, serial as usize % 200, serial as usize % 3)]));
                        found += 1;
                    }
                    assert!(table.numbers(random >> 9 & 3).is_none_or(|numbers| numbers.phi == numbers.delta));
                }
                found
            }
        };
        let threads: Vec<_> = (1..=4).map(|thread| scope.spawn(work(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread fails")).sum()
    });
    assert!(found > 1000, "only {found}");
}

/// Writes more sets than the ring holds, under other keys, of lemmas that cost little, but more than the least.
fn overwrite_ring(table: &MappedTable, from: u64) {
    let rounds = table.layout.ring_words as u64 / 500 + 2;
    let cheap = |serial| Lemma { cost: 2, ..lemma_of(1, serial, 1000, 0) };
    (from..from + rounds).for_each(|serial| drop(table.store_lemma(1_000_000 + PositionKey::from(serial), &cheap(serial))));
}

#[test]
fn overwritten_sets_are_gone_and_can_be_stored_again() {
    let table = table();
    let lemma = Lemma { margin: 4, cost: 1, ..lemma_of(9, 1, 20, 3) };
    table.store_lemma(9, &lemma);
    overwrite_ring(&table, 0);
    assert!(read(&table, 9).is_empty(), "a lemma with X must not outlive its sets");
    let evicted = table.occupancy().evicted;
    table.store_lemma(9, &lemma);
    assert_eq!((read(&table, 9), table.slots_of(9).count()), (vec![lemma.clone()], 1));
    // The same conditions with less margin change nothing, with more they take its place.
    table.store_lemma(9, &Lemma { margin: 2, ..lemma.clone() });
    assert_eq!((read(&table, 9), table.slots_of(9).count()), (vec![lemma.clone()], 1));
    table.store_lemma(9, &Lemma { margin: 6, ..lemma.clone() });
    assert_eq!(read(&table, 9), [Lemma { margin: 6, ..lemma }]);
    assert_eq!(table.occupancy().evicted, evicted, "a better lemma evicts nothing");
}

/// The ring turns ten times; without [`MappedTable::keep_sets`] the costly lemma's sets are gone after one turn, as the cheap one's are.
#[test]
fn the_sets_of_costly_lemmas_stay() {
    let table = table();
    let costly = Lemma { cost: 1 << 20, ..lemma_of(9, 1, 700, 3) };
    let cheap = Lemma { cost: 1, ..lemma_of(8, 1, 700, 3) };
    table.store_lemma(9, &costly);
    table.store_lemma(8, &cheap);
    (0..10).for_each(|turn| overwrite_ring(&table, turn * 100_000));
    assert!(read(&table, 8).is_empty());
    assert_eq!(read(&table, 9), [costly]);
    let TableOccupancy { sets_new_bytes, sets_rewritten_bytes, sets_bytes, .. } = table.occupancy();
    assert!(sets_rewritten_bytes > 0 && sets_rewritten_bytes < 2 * sets_new_bytes, "{sets_rewritten_bytes} of {sets_new_bytes}");
    assert!(sets_new_bytes > 9 * sets_bytes);
}

/// Lemmas that cost far more than all others keep their sets wherever their slots are, also while the bound of what is costly is found.
#[test]
fn the_costliest_lemmas_keep_their_sets() {
    for share in [0, 6, 9] {
        let table = table();
        let (words, slots) = (table.layout.ring_words as u64, table.layout.buckets * WAYS);
        let keys: Vec<PositionKey> = (5_000_000..).filter(|&key| table.bucket(key).1 * 10 / slots == share).take(4).collect();
        let costliest = |key| Lemma { cost: 1 << 39, ..lemma_of(key, 1, 300, 3) };
        keys.iter().for_each(|&key| drop(table.store_lemma(key, &costliest(key))));
        for serial in 0.. {
            table.store_lemma(serial.into(), &Lemma { cost: 1 << (14 + serial % 14), ..lemma_of(1, serial, 300, 0) });
            if table.layout.ring_head(&table.words).load(Relaxed) > 6 * words {
                break;
            }
        }
        assert!(keys.iter().all(|&key| read(&table, key) == [costliest(key)]), "slots from {share} tenths of the table on");
    }
}

/// Sessions much shorter than a turn of the ring: the sweep goes on where the last one ended, and so does what it takes for costly.
#[test]
fn costly_sets_outlast_short_sessions() {
    let directory = tempfile::tempdir().expect("a directory");
    let costliest = |key| Lemma { cost: 1 << 39, ..lemma_of(key, 1, 300, 3) };
    for each in [5, 20, 80] {
        let path = directory.path().join(each.to_string());
        let open = || MappedTable::open(&path, board((3, 3)), MIB).expect("a table").0;
        let mut table = open();
        let turn = table.layout.ring_words as u64;
        let keys: Vec<PositionKey> = (5_000_000..5_000_024).collect();
        keys.iter().for_each(|&key| drop(table.store_lemma(key, &costliest(key))));
        for serial in 1u64.. {
            table.store_lemma((serial % 3000).into(), &Lemma { cost: 1 << (14 + serial % 14), ..lemma_of(1, serial, 300, 0) });
            if serial % each == 0 {
                table.close_clean().expect("closes");
                table = open();
            }
            if table.layout.ring_head(&table.words).load(Relaxed) > 4 * turn {
                break;
            }
        }
        let lost = keys.iter().filter(|&&key| read(&table, key) != [costliest(key)]).count();
        assert_eq!(lost, 0, "sessions of {each} lemmas");
    }
}

/// A slot that is being written while a checkpoint looks at it is not taken for checkpointed.
#[test]
fn a_lemma_whose_slot_cannot_be_read_stays_due() {
    let table = table();
    table.store_lemma(5, &lemma_of(5, 1, 3, 0));
    let due = || {
        let mut due = 0;
        table
            .visit_dirty(|_, _| {
                due += 1;
                Ok::<(), ()>(())
            })
            .expect("nothing fails");
        due
    };
    let word = &table.slot(slot_of(&table, 5))[3];
    word.fetch_xor(1, Relaxed);
    assert_eq!(due(), 0);
    word.fetch_xor(1, Relaxed);
    assert_eq!((due(), due()), (1, 0));
}

/// Everything is costly: what is written again stays within its bounds, and some of it survives.
#[test]
fn rewriting_is_bounded() {
    let table = table();
    let words = table.layout.ring_words as u64;
    for serial in 0..words / 40 {
        table.store_lemma(serial.into(), &Lemma { cost: 1 << (10 + serial % 8), ..lemma_of(1, serial, 1000, 0) });
    }
    let TableOccupancy { sets_new_bytes, sets_rewritten_bytes, .. } = table.occupancy();
    assert!(sets_rewritten_bytes <= 2 * sets_new_bytes, "{sets_rewritten_bytes} of {sets_new_bytes}");
    assert!(sets_new_bytes > 8 * 10 * words, "the ring turned only {} times", sets_new_bytes / 8 / words);
}

#[test]
fn equal_parts_of_sets_are_stored_once() {
    let table = table();
    let mut lemma = lemma_of(1, 1, 3_000, 0);
    table.store_lemma(1, &lemma);
    let written = table.occupancy().sets_new_bytes;
    assert!(written > 12_000 && written < 20_000, "{written}");
    let mut prints = lemma.created.prints().to_vec();
    for step in 0..50u32 {
        let print = (step * 0x0310_4321) | 1;
        if let Err(at) = prints.binary_search(&print) {
            prints.insert(at, print);
        }
        lemma.created = BoardSet::new(prints.clone(), lemma.created.bloom(), *lemma.created.cube());
        table.store_lemma(2 + PositionKey::from(step), &lemma);
        assert_eq!(read(&table, 2 + PositionKey::from(step)), std::slice::from_ref(&lemma));
    }
    let each = (table.occupancy().sets_new_bytes - written) / 50;
    assert!(each < 1_000, "{each} bytes for a set of {} prints that differs in one", prints.len());
}

/// Passes everything on, reads back each lemma that is stored, and notes its prints.
struct Checked {
    table: MappedTable,
    /// Whether the search gets parts in place of prints.
    by_parts: bool,
    /// Prints of a lemma that is stored beside each of the search's, to make the ring turn.
    filler: usize,
    fillers: AtomicU64,
    lists: AtomicU64,
    stored: Mutex<Vec<(PositionKey, Vec<Print>)>>,
}

impl Table for Checked {
    fn lemmas(&self, key: PositionKey, heads: &mut Vec<LemmaHead>) {
        self.table.lemmas(key, heads);
    }

    fn sets(&self, key: PositionKey, head: &LemmaHead, sets: &mut LemmaSets) -> bool {
        self.table.sets(key, head, sets)
    }

    fn parts(&self, key: PositionKey, head: &LemmaHead, sets: &mut LemmaSets) -> bool {
        if self.by_parts { self.table.parts(key, head, sets) } else { self.table.sets(key, head, sets) }
    }

    fn part_prints(&self, part: &SetPart, prints: &mut Vec<Print>) -> bool {
        self.table.part_prints(part, prints)
    }

    fn part_holds_any(&self, part: &SetPart, prints: &[Print]) -> Option<bool> {
        self.table.part_holds_any(part, prints)
    }

    fn store_lemma(&self, key: PositionKey, lemma: &Lemma) -> Vec<SetPart> {
        if self.filler > 0 {
            let serial = self.fillers.fetch_add(1, Relaxed);
            self.table.store_lemma(1 << 100 | PositionKey::from(serial), &Lemma { cost: 1, ..lemma_of(1, serial, self.filler, 0) });
        }
        let parts = self.table.store_lemma(key, lemma);
        let mut created = lemma.created.clone();
        if !created.load(&self.table) {
            // A part was gone before: nothing to compare with.
            assert!(self.filler > 0);
            return parts;
        }
        let is_whole = |found: &Lemma| found.created == created && found.excluded == lemma.excluded;
        assert!(read(&self.table, key).iter().any(is_whole), "{key}: {lemma:?}");
        assert!(parts.len() <= MOST_PARTS, "{parts:?}");
        self.lists.fetch_add((parts.len() > 1).into(), Relaxed);
        let mut stored = self.stored.lock().expect("no holder panics");
        stored.push((key, created.prints().to_vec()));
        parts
    }

    fn numbers(&self, key: u64) -> Option<Numbers> {
        self.table.numbers(key)
    }

    fn store_numbers(&self, key: u64, numbers: Numbers) {
        self.table.store_numbers(key, numbers);
    }

    fn geometry(&self) -> &'static Geometry {
        self.table.geometry()
    }
}

/// Real proofs, whose sets grow out of each other through the symmetries of lines, rectangles and squares; and again while the ring turns.
#[test]
fn sets_made_of_parts_of_others_come_back_whole() {
    for (name, komi, least) in
        [((1, 9), "0.5", 100), ((1, 12), "1.5", 2_000), ((2, 6), "11.5", 100), ((3, 4), "3.5", 50), ((4, 4), "1.5", 400)]
    {
        let geometry = board(name);
        let solve = |mib, by_parts, filler| {
            let table = MappedTable::anonymous(geometry, mib * MIB).expect("a table");
            let table = Checked { table, by_parts, filler, fillers: AtomicU64::new(0), lists: AtomicU64::new(0), stored: Mutex::default() };
            let limits = superko_search::Limits { expansions: Some(60_000), time: None };
            let control = superko_search::Control::default();
            let game = superko_rules::Game::new(geometry);
            let outcome = superko_search::solve(&table, &game, komi.parse().expect("a komi"), limits, &control);
            (table, outcome.stats)
        };
        let (by_prints, _) = solve(64, false, 0);
        let lists = by_prints.lists.load(Relaxed);
        assert!(lists > least, "{name:?}: {lists} sets of several parts");
        // Known by parts alone they are the same sets, in the same order.
        let stored = |checked: Checked| checked.stored.into_inner().expect("no holder panicked");
        assert!(stored(solve(64, true, 0).0) == stored(by_prints), "{name:?}");
        for by_parts in [false, true] {
            let (turning, stats) = solve(1, by_parts, 700);
            // Parts that are gone are no reason not to keep a proof: the filter of the whole set is there.
            assert!(stats.path_only * 20 < stats.lemmas_stored, "{name:?}: {} for their path only", stats.path_only);
            let turns = turning.table.sets_region().head.load(Relaxed) / turning.table.layout.ring_words as u64;
            assert!(turns > 1, "{name:?}: {turns} turns");
        }
    }
}

#[test]
fn parts_that_another_table_names_are_not_believed() {
    let tables = [table(), table()];
    let lemmas = [lemma_of(1, 1, 20, 0), lemma_of(1, 2, 20, 0)];
    let parts = [tables[0].store_lemma(1, &lemmas[0]), tables[1].store_lemma(1, &lemmas[1])];
    assert_eq!((parts[0].len(), parts[0][0].node), (1, parts[1][0].node), "the fixture is about one name with two meanings");
    let lemma = Lemma { created: lemmas[0].created.clone().kept_in(parts[0].clone()), ..lemmas[0].clone() };
    tables[1].store_lemma(2, &lemma);
    assert_eq!(read(&tables[1], 2), std::slice::from_ref(&lemma));
    // Its own table has them already.
    let written = tables[0].occupancy().sets_new_bytes;
    tables[0].store_lemma(2, &Lemma { excluded: Vec::new(), ..lemma.clone() });
    assert!(tables[0].occupancy().sets_new_bytes - written < 60);
    assert_eq!(read(&tables[0], 2), [lemma]);
}

#[test]
fn parts_that_will_be_overwritten_soon_are_stored_again() {
    let table = table();
    let lemma = lemma_of(1, 1, 500, 0);
    let parts = table.store_lemma(1, &lemma);
    let lemma = Lemma { created: lemma.created.kept_in(parts), cost: 1, ..lemma };
    let region = table.sets_region();
    for serial in 2.. {
        table.store_lemma(serial.into(), &Lemma { cost: 1, ..lemma_of(1, serial, 50, 0) });
        if region.age(NodeRef(lemma.created.parts().0[0].node)) > table.layout.ring_words as u64 * 3 / 5 {
            break;
        }
    }
    let again = table.store_lemma(2, &lemma);
    assert!(region.oldest(NodeRef(again[0].node)).is_some_and(|oldest| region.is_young(oldest)));
    assert!(read(&table, 2).contains(&lemma));
}

/// Sets of all sizes, and dense ones that agree in many bits.
#[test]
fn a_tree_of_prints_answers_as_the_list_does() {
    let table = MappedTable::anonymous(board((3, 3)), 16 * MIB).expect("a table");
    let region = table.sets_region();
    for (size, mask) in [
        (1usize, u32::MAX),
        (2, u32::MAX),
        (31, 0xff),
        (33, 0x7f),
        (64, 0x3f),
        (500, 0x3ff),
        (513, u32::MAX),
        (5_000, 0x1fff),
        (40_000, u32::MAX),
    ] {
        let mut prints: Vec<Print> = (0..size as u64).map(|at| mix(size as u64, at) as u32 & mask).collect();
        prints.sort_unstable();
        prints.dedup();
        let set = BoardSet::new(prints.clone(), [0; 4], Cube::EMPTY);
        let store = || region.store_set(&set).expect("the prints are here").0;
        let stored = store();
        assert_eq!((store().node, store().written), (stored.node, 0));
        let (mut parts, mut read) = (Vec::new(), Vec::new());
        region.parts(stored.node, size as u32, &mut parts).expect("nothing is gone");
        region.part_prints(&parts[0], &mut read).expect("nothing is gone");
        assert_eq!((parts.len(), read), (1, prints.clone()), "{size}");
        for round in 0..400 {
            let mut asked: Vec<Print> = (0..round % 6).map(|at| mix(round, at) as u32 & mask).collect();
            if round % 3 == 0 {
                asked.push(prints[round as usize % prints.len()] ^ u32::from(round % 2 == 0));
            }
            asked.sort_unstable();
            let expected = asked.iter().any(|print| prints.binary_search(print).is_ok());
            assert_eq!(region.holds_any(stored.node, &asked), Some(expected), "{size} {asked:?}");
        }
    }
}

#[test]
fn the_ring_counts_past_forty_bits() {
    let table = table();
    for start in [1u64 << 40, (1 << 47) - 3] {
        table.layout.ring_head(&table.words).store(start, Relaxed);
        let lemma = lemma_of(start.into(), 1, 30, 2);
        table.store_lemma(start.into(), &lemma);
        assert_eq!(read(&table, start.into()), [lemma]);
    }
}

#[test]
fn long_sets_are_folded_into_the_filter() {
    let table = table();
    let lemma = lemma_of(3, 1, 70_000, 0);
    table.store_lemma(3, &lemma);
    assert_eq!(read(&table, 3), [folded(&lemma)]);
    let with_excluded = lemma_of(4, 1, 70_000, 2);
    table.store_lemma(4, &with_excluded);
    assert_eq!(read(&table, 4), [folded(&with_excluded)]);
}

#[test]
fn the_costliest_numbers_are_kept() {
    let table = table();
    (0..1000u64).for_each(|index| table.store_numbers(mix(1, index), Numbers { phi: 1, delta: 1, cost: 1 << (index % 12) }));
    let all = table.costly_numbers(64, usize::MAX);
    assert!(all.len() > 100 && all.iter().all(|(_, numbers)| numbers.cost >= 64));
    let mut costs: Vec<u32> = all.iter().map(|(_, numbers)| numbers.cost).collect();
    costs.sort_unstable_by(|a, b| b.cmp(a));
    for most in [0, 1, 50, 100] {
        let mut some: Vec<u32> = table.costly_numbers(64, most).iter().map(|(_, numbers)| numbers.cost).collect();
        some.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(some, costs[..most]);
    }
}

#[test]
fn a_closed_table_is_reused_and_what_no_checkpoint_saw_is_due() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("table");
    let open = || MappedTable::open(&path, board((3, 3)), MIB).expect("a table");
    let due = |table: &MappedTable| {
        let mut due = 0;
        let count = |_, _| {
            due += 1;
            Ok::<(), ()>(())
        };
        table.visit_dirty(count).expect("nothing fails");
        due
    };
    let (table, origin) = open();
    assert_eq!(origin, TableOrigin::Created);
    let lemma = lemma_of(8, 1, 5, 1);
    table.store_lemma(8, &lemma);
    table.close_clean().expect("closes");
    let (table, origin) = open();
    assert_eq!((origin, read(&table, 8), table.occupancy().lemmas), (TableOrigin::Reused, vec![lemma], 1));
    assert_eq!(due(&table), 1, "no checkpoint has seen it");
    table.close_clean().expect("closes");
    let (table, _) = open();
    assert_eq!(due(&table), 0, "everything was checkpointed");
    drop(table);
    let (table, origin) = open();
    assert_eq!(origin, TableOrigin::Rebuilt { reason: "it was not closed cleanly".to_owned() });
    assert!(read(&table, 8).is_empty());
}

#[test]
fn a_file_that_disagrees_is_rebuilt_with_a_reason() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("table");
    let change = |word: u64| {
        let file = OpenOptions::new().read(true).write(true).open(&path).expect("the file");
        let mut bytes = [0];
        file.read_exact_at(&mut bytes, word * 8).expect("reads");
        file.write_all_at(&[bytes[0] ^ 1], word * 8).expect("writes");
    };
    let names = [
        "magic",
        "version",
        "byte order",
        "rules",
        "board",
        "size",
        "bucket",
        "number",
        "ring",
        "cleanly",
        "damaged",
        "damaged",
        "damaged",
    ];
    let rebuilt = |shape, bytes, expected: &str| match MappedTable::open(&path, board(shape), bytes) {
        Ok((_, TableOrigin::Rebuilt { reason })) => assert!(reason.contains(expected), "{reason:?} lacks {expected:?}"),
        other => panic!("{expected}: {other:?}"),
    };
    let fresh = || {
        let _ = std::fs::remove_file(&path);
        MappedTable::open(&path, board((3, 3)), MIB).expect("a table").0.close_clean().expect("closes");
    };
    for (word, expected) in names.into_iter().enumerate() {
        fresh();
        change(word as u64);
        rebuilt((3, 3), MIB, expected);
    }
    fresh();
    rebuilt((2, 3), MIB, "board");
    fresh();
    rebuilt((3, 3), 2 * MIB, "size");
    fresh();
    OpenOptions::new().write(true).open(&path).expect("the file").set_len(5000).expect("shrinks");
    rebuilt((3, 3), MIB, "size is 5000 bytes");
}

/// Were the count of words to shrink unnoticed, new nodes would get offsets that old references name.
#[test]
fn a_table_whose_ring_head_was_changed_is_not_believed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("table");
    let open = || MappedTable::open(&path, board((3, 3)), MIB).expect("a table");
    let (table, _) = open();
    (0..50).for_each(|key| drop(table.store_lemma(key, &lemma_of(key, 1, 30, 0))));
    let head = table.layout.ring_head(&table.words).load(Relaxed);
    table.close_clean().expect("closes");
    let file = OpenOptions::new().write(true).open(&path).expect("the file");
    file.write_all_at(&(head / 2).to_ne_bytes(), 64 * 8).expect("writes");
    assert_eq!(open().1, TableOrigin::Rebuilt { reason: "its header is damaged".to_owned() });
}

/// Keys of two boards may be equal; the header keeps their tables apart, and each slot does so again.
#[test]
fn a_slot_of_another_board_is_never_believed() {
    let tables = [(2, 3), (3, 3)].map(|shape| MappedTable::anonymous(board(shape), MIB).expect("a table"));
    let lemma = lemma_of(5, 1, 0, 0);
    tables[0].store_lemma(5, &lemma);
    assert_eq!(read(&tables[0], 5), vec![lemma.clone()]);
    for (from, to) in tables[0].words.all().iter().zip(tables[1].words.all()) {
        to.store(from.load(Relaxed), Relaxed);
    }
    assert!(read(&tables[1], 5).is_empty());
    crate::sealed::mutation::SKIP_SEAL.set(true);
    assert_eq!(read(&tables[1], 5), vec![lemma], "the fixture tells them apart");
    crate::sealed::mutation::SKIP_SEAL.set(false);
}

#[test]
fn the_file_of_another_board_is_emptied_in_place() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("table");
    let (table, _) = MappedTable::open(&path, board((2, 3)), 1 << 20).expect("opens");
    for key in 0..500 {
        table.store_lemma(key, &lemma_of(key, 1, 5, 1));
        table.store_numbers(mix(0, key as u64), Numbers { phi: 3, delta: 4, cost: 5 });
    }
    table.close_clean().expect("closes");
    let blocks = || std::fs::metadata(&path).expect("the file").blocks();
    let before = blocks();
    let (table, origin) = MappedTable::open(&path, board((3, 3)), 1 << 20).expect("opens");
    assert!(matches!(origin, TableOrigin::Rebuilt { reason } if reason.contains("board")));
    let occupancy = table.occupancy();
    assert_eq!((occupancy.lemmas, occupancy.numbers, occupancy.sets_used_bytes), (0, 0, 0));
    assert!((0..500).all(|key| read(&table, key).is_empty() && table.numbers(mix(0, key as u64)).is_none()));
    // A slot that survived would come to life under a tag written over it.
    assert!(table.words.all()[HEADER_WORDS..].iter().all(|word| word.load(Relaxed) == 0));
    assert_eq!(blocks(), before, "no holes: a write to one on a full disk kills the process");
}

#[test]
fn impossible_sizes_are_refused() {
    let small = MappedTable::anonymous(board((3, 3)), MIB - 1).expect_err("too small").to_string();
    assert!(small.contains("1048575") && small.contains("at least"), "{small}");
    let large = MappedTable::anonymous(board((3, 3)), 1 << 50).expect_err("too large").to_string();
    assert!(large.contains("memory"), "{large}");
}

#[test]
fn a_full_disk_is_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let mount = std::process::Command::new("mount").args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"]).arg(directory.path()).output();
    match mount {
        Ok(output) if output.status.success() => {}
        Ok(output) => return println!("SKIPPED: no tmpfs can be mounted: {}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => return println!("SKIPPED: mount cannot be run: {error}"),
    }
    let path = directory.path().join("table");
    let refused = MappedTable::open(&path, board((3, 3)), 16 * MIB);
    let left_behind = path.exists();
    let fits = MappedTable::open(&path, board((3, 3)), 4 * MIB).map(|(table, _)| {
        // Every page is there: no write may kill the process once the disk is full.
        let _ = std::fs::write(directory.path().join("rest"), vec![1; 8 << 20]);
        table.words.all()[table.layout.tags..].iter().for_each(|word| word.store(1, Relaxed));
    });
    let unmounted = std::process::Command::new("umount").arg(directory.path()).status();
    assert!(matches!(refused, Err(TableError::Io { .. })) && !left_behind, "{refused:?}");
    fits.expect("a table that fits");
    assert!(unmounted.is_ok_and(|status| status.success()));
}

/// Lemmas are displaced and sets overwritten while other threads rely on them; the values are those of the paper's Table 2 and of
/// the brute force.
#[test]
fn several_threads_on_the_smallest_table_find_the_known_values() {
    use superko_search::{Control, Komi, Limits, Options, on_large_stack, solve_with};
    let run = || {
        let (mut solved, mut evicted) = (0, 0);
        for round in 0..6 {
            for (rows, cols, value) in [(3, 4, 4), (1, 11, 2), (2, 6, 12), (2, 7, 14)] {
                let game = superko_rules::Game::new(board((rows, cols)));
                let table = MappedTable::anonymous(board((rows, cols)), MIB).expect("a small table");
                for margin in [value, value + 1].into_iter().filter(|&margin| margin <= (rows * cols) as i32) {
                    let options = Options { threads: 3 + round % 2, ..Options::default() };
                    // A table so small may never do.
                    let limits = Limits { expansions: Some(300_000), time: None };
                    let outcome = solve_with(options, &table, &game, Komi::below(margin), limits, &Control::default());
                    if let Ok((winner, _)) = outcome.verdict {
                        assert_eq!(winner == Color::Black, margin == value, "{rows}x{cols} at {}", Komi::below(margin));
                        solved += 1;
                    }
                }
                evicted += table.occupancy().evicted;
            }
        }
        (solved, evicted)
    };
    let (solved, evicted) = on_large_stack(run);
    println!("{solved} solved, {evicted} lemmas displaced");
    assert!(solved >= 15 && evicted > 1000, "{solved} solved, {evicted} lemmas displaced");
}

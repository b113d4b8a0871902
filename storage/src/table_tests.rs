//! The table returns what was stored under that key, or nothing, whatever is done to its words.

use super::*;
use std::collections::HashMap;
use std::os::unix::fs::{FileExt, MetadataExt};
use superko_search::MemoryTable;

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
    let length = (slot[11].load(Relaxed) & 0xffff) as usize;
    for word in table.ring(slot[11].load(Relaxed) >> LENGTH_BITS, length)[0] {
        for bit in 0..64 {
            word.fetch_xor(1 << bit, Relaxed);
            // The lower half after an odd number of prints means nothing.
            assert!(read(&table, key).iter().all(|found| *found == lemma));
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

/// Writes more sets than the ring holds, under other keys.
fn overwrite_ring(table: &MappedTable) {
    let rounds = table.layout.arena_words as u64 / 500 + 2;
    (0..rounds).for_each(|serial| table.store_lemma(1_000_000 + PositionKey::from(serial), &lemma_of(1, serial, 1000, 0)));
}

#[test]
fn overwritten_sets_are_gone_and_can_be_stored_again() {
    let table = table();
    let lemma = Lemma { margin: 4, ..lemma_of(9, 1, 20, 3) };
    table.store_lemma(9, &lemma);
    overwrite_ring(&table);
    assert!(read(&table, 9).is_empty(), "a lemma with X must not outlive its sets");
    // The same conditions with less margin bring the better one back, in the same slot.
    table.store_lemma(9, &Lemma { margin: 2, ..lemma.clone() });
    assert_eq!(read(&table, 9), std::slice::from_ref(&lemma));
    assert_eq!(table.slots_of(9).count(), 1);
    let evicted = table.occupancy().evicted;
    table.store_lemma(9, &Lemma { margin: 6, ..lemma.clone() });
    assert_eq!(read(&table, 9), [Lemma { margin: 6, ..lemma }]);
    assert_eq!(table.occupancy().evicted, evicted, "a better lemma evicts nothing");
}

#[test]
fn the_ring_counts_past_forty_bits() {
    let table = table();
    for start in [1u64 << 40, (1 << 44) - 3] {
        table.layout.arena_head(&table.words).store(start, Relaxed);
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
    let names = ["magic", "version", "byte order", "rules", "board", "size", "bucket", "number", "arena", "cleanly", "damaged", "damaged"];
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
    use superko_search::{Control, Komi, Limits, Options, STACK_BYTES, solve_with};
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
    let (solved, evicted) = std::thread::scope(|scope| {
        std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, run).expect("it starts").join().expect("no thread fails")
    });
    println!("{solved} solved, {evicted} lemmas displaced");
    assert!(solved >= 15 && evicted > 1000, "{solved} solved, {evicted} lemmas displaced");
}

//! What the store acknowledged is there again, and nothing that is damaged or foreign is believed.

use super::*;
use crate::table::tests::{lemma_of, read};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::BufRead;
use std::process::{Command, Stdio};

const CHILD: &str = "SUPERKO_STORE_TEST_CHILD";

fn geometry() -> &'static Geometry {
    Geometry::get(3, 3).expect("a board")
}

fn table() -> MappedTable {
    MappedTable::anonymous(geometry(), 1 << 20).expect("a table")
}

fn job(id: u64) -> JobRecord {
    JobRecord { id, body: json!({"board": "3x3", "text": "x".repeat(300)}).to_string(), open: true }
}

/// The files of a directory but for the lock and RocksDB's own log of its doings.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(directory.join("store")).expect("the store's directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let kept = paths.filter(|path| !path.ends_with("LOCK"));
    kept.map(|path| (path.clone(), std::fs::read(path).expect("a file"))).collect()
}

proptest! {
    #[test]
    fn lemmas_survive_the_codec(key: u64, serial: u64, prints in 0usize..80, excluded in 0usize..20, cut in 1usize..40) {
        let lemma = lemma_of(key.into(), serial, prints, excluded);
        let bytes = codec::encode_lemma(&lemma);
        prop_assert_eq!(codec::decode_lemma(&bytes[..bytes.len() - cut.min(bytes.len())]), None);
        prop_assert_eq!(codec::decode_lemma(&bytes), Some(lemma));
    }

    #[test]
    fn lemmas_survive_their_records(key: u64, serial: u64, prints in 900usize..1200, excluded in 0usize..20, at: prop::sample::Index) {
        let lemma = lemma_of(key.into(), serial, prints, excluded);
        let record = codec::write_lemma(position_prefix(geometry(), key.into()), &lemma);
        prop_assert_eq!(record.prints.is_some(), lemma.created.prints().len() > 1024);
        prop_assert_eq!(codec::has_prints_apart(&record.value), record.prints.is_some());
        let read = codec::read_lemma(&record.key, &record.value, || record.prints.clone());
        prop_assert_eq!(read.as_ref(), Ok(&lemma));
        let head = codec::read_head(&record.key, &record.value).expect("a lemma").expect("a head");
        prop_assert_eq!(head, LemmaHead::of(&lemma, head.sets));
        if let Some(prints) = &record.prints {
            prop_assert!(codec::read_lemma(&record.key, &record.value, || None).is_err());
            // Prints that are sealed under this key, but are others.
            let mut others = codec::open("prints", &record.key, prints).expect("sealed").to_vec();
            let (place, last) = (4 * at.index(others.len() / 4) + 3, others.len());
            let _ = std::mem::replace(&mut others[place], 0x55);
            for others in [&others[..], &others[..last - 4]] {
                let changed = codec::open("prints", &record.key, prints) != Ok(others);
                let read = codec::read_lemma(&record.key, &record.value, || Some(codec::seal("prints", &record.key, others)));
                prop_assert_eq!(read.is_err(), changed);
            }
        }
    }

    #[test]
    fn a_changed_value_key_or_family_is_noticed(payload: Vec<u8>, key in prop::collection::vec(any::<u8>(), 1..30), at: prop::sample::Index, bit in 0u8..8) {
        let value = codec::seal("lemmas", &key, &payload);
        prop_assert_eq!(codec::open("lemmas", &key, &value), Ok(payload.as_slice()));
        let mut changed = value.clone();
        changed[at.index(value.len())] ^= 1 << bit;
        prop_assert!(codec::open("lemmas", &key, &changed).is_err());
        let mut other = key.clone();
        other[at.index(key.len())] ^= 1 << bit;
        prop_assert!(codec::open("lemmas", &other, &value).is_err());
        prop_assert!(codec::open("proofs", &key, &value).is_err());
    }
}

#[test]
fn everything_is_there_after_reopening() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::open(directory.path()).expect("opens");
    store.put(&[job(1)], &[], &[]).expect("kept");
    store.put(&[job(256)], &[], &[]).expect("kept");
    let done = JobRecord { open: false, ..job(1) };
    let proof = ProofRecord { board: "3x3".to_owned(), job: 1, body: json!({"value": 9}) };
    let campaign = CampaignRecord { id: 3, body: json!({"state": "running"}) };
    store.put(std::slice::from_ref(&done), std::slice::from_ref(&proof), std::slice::from_ref(&campaign)).expect("kept");
    store.close().expect("closes");
    let store = Store::open(directory.path()).expect("opens again");
    assert_eq!(store.jobs().expect("readable"), [done.clone(), job(256)]);
    assert_eq!(store.job(1).expect("readable"), Some(done));
    assert_eq!(store.job(2).expect("readable"), None);
    assert_eq!(store.proofs("3x3").expect("readable"), [proof]);
    assert_eq!(store.campaigns().expect("readable"), [campaign]);
    assert!(store.proofs("3x4").expect("readable").is_empty());
}

#[test]
fn a_second_opening_names_the_holder() {
    let directory = tempfile::tempdir().expect("a directory");
    let _store = Store::open(directory.path()).expect("opens");
    match Store::open(directory.path()) {
        Err(StoreError::Locked { holder, .. }) => assert_eq!(holder, std::process::id().to_string()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_damaged_job_is_refused_by_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::open(directory.path()).expect("opens");
    store.put(&[job(7)], &[], &[]).expect("kept");
    store.put(&[job(8)], &[], &[]).expect("kept");
    // An intact value under another key is damage too.
    let value = store.db.get_cf(store.family("jobs"), 8u64.to_be_bytes()).expect("readable").expect("there");
    store.db.put_cf(store.family("jobs"), 7u64.to_be_bytes(), value).expect("written");
    for error in [store.jobs().err(), store.job(7).err()] {
        match error {
            Some(StoreError::Damaged { family: "jobs", key, .. }) => assert_eq!(key, "7"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(store.job(8).expect("readable"), Some(job(8)));
}

#[test]
fn checkpoint_then_restore_gives_the_same_lemmas() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::open(directory.path()).expect("opens");
    let first = table();
    for key in 0..40 {
        first.store_lemma(key, &lemma_of(key, 1, key as usize, key as usize % 4));
    }
    first.store_numbers(1 << 40, Numbers { phi: 3, delta: 4, cost: 128 });
    let report = store.checkpoint(&first, &[job(3)]).expect("a checkpoint");
    assert_eq!((report.sequence, report.lemmas, report.numbers), (1, 40, 1));
    assert_eq!(store.checkpoint(&first, &[]).expect("another").lemmas, 0);
    let second = table();
    let report = store.restore(&second).expect("restores");
    assert_eq!((report.lemmas, report.numbers, report.refused), (40, 1, 0));
    for key in 0..40 {
        assert_eq!(read(&second, key), read(&first, key));
        assert_eq!(read(&second, key).len(), 1);
    }
    assert_eq!(second.numbers(1 << 40), first.numbers(1 << 40));
    assert_eq!(store.job(3).expect("readable"), Some(job(3)));
    // The view reads the same from the store itself.
    let (view, mut heads, mut sets) = (store.lemma_view(geometry()), Vec::new(), LemmaSets::default());
    view.lemmas(5, &mut heads);
    assert_eq!(heads.len(), 1);
    assert!(view.sets(5, &heads[0], &mut sets));
    assert_eq!((sets.prints, sets.excluded), (lemma_of(5, 1, 5, 1).created.prints().to_vec(), lemma_of(5, 1, 5, 1).excluded));
    assert_eq!(store.read_errors(), 0);
}

#[test]
fn a_checkpoint_counts_only_once_committed() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::open(directory.path()).expect("opens");
    let table = table();
    (0..40).for_each(|key| drop(table.store_lemma(key, &lemma_of(key, 1, 4, 0))));
    drop(store.begin_checkpoint(&table).expect("begun"));
    assert_eq!(store.last_checkpoint().expect("readable"), None);
    // The lemmas of the one that was given up are due again, and its number is free.
    let pending = store.begin_checkpoint(&table).expect("begun");
    assert_eq!(store.job(3).expect("readable"), None);
    let report = pending.commit(&[job(3)]).expect("committed");
    assert_eq!((report.sequence, report.lemmas), (1, 40));
    assert_eq!(store.job(3).expect("readable"), Some(job(3)));
    assert_eq!(store.last_checkpoint().expect("readable").map(|record| record.lemmas), Some(40));
    assert_eq!(store.checkpoint(&table, &[]).expect("another").lemmas, 0);
}

#[test]
fn a_damaged_lemma_is_counted_and_not_believed() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::open(directory.path()).expect("opens");
    let first = table();
    (0..3).for_each(|key| drop(first.store_lemma(key, &lemma_of(key, 1, 4, 0))));
    store.checkpoint(&first, &[]).expect("a checkpoint");
    let family = store.family("lemmas");
    let entries: Vec<_> = store.db.iterator_cf(family, IteratorMode::Start).map(|entry| entry.expect("readable")).collect();
    let mut changed = entries[0].1.to_vec();
    changed[9] ^= 4;
    store.db.put_cf(family, &entries[0].0, changed).expect("written");
    store.db.put_cf(family, &entries[1].0, &entries[2].1).expect("written");
    let second = table();
    let report = store.restore(&second).expect("restores");
    assert_eq!((report.lemmas, report.refused), (1, 2));
    assert!(read(&second, 0).is_empty() && read(&second, 1).is_empty());
    let mut heads = Vec::new();
    store.lemma_view(geometry()).lemmas(1, &mut heads);
    assert!(heads.is_empty());
    assert_eq!(store.read_errors(), 1);
}

#[test]
fn a_lemma_with_many_prints_is_looked_up_without_them() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::open(directory.path()).expect("opens");
    let first = table();
    let lemmas = [1, 2, 3].map(|key| lemma_of(key, 1, 3000, 2));
    (1..).zip(&lemmas).for_each(|(key, lemma)| drop(first.store_lemma(key, lemma)));
    first.store_lemma(4, &lemma_of(4, 1, 30, 2));
    store.checkpoint(&first, &[]).expect("a checkpoint");
    let second = table();
    assert_eq!(store.restore(&second).expect("restores").lemmas, 4);
    assert_eq!((1..5).map(|key| read(&second, key)).collect::<Vec<_>>(), (1..5).map(|key| read(&first, key)).collect::<Vec<_>>());

    let family = store.family("prints");
    let keys: Vec<_> = store.db.iterator_cf(family, IteratorMode::Start).map(|entry| entry.expect("readable").0).collect();
    assert_eq!(keys.len(), 3);
    let view = store.lemma_view(geometry());
    let look_up = |key| {
        let (mut heads, mut sets) = (Vec::new(), LemmaSets::default());
        view.lemmas(key, &mut heads);
        let whole = view.sets(key, &heads[0], &mut sets);
        (whole, heads[0].lemma(whole.then_some(sets)), store.read_errors())
    };
    // The costs of heads are rounded.
    let rounded = |key: usize| Lemma { cost: 1 << lemmas[key - 1].cost.ilog2(), ..lemmas[key - 1].clone() };
    assert_eq!(look_up(1), (true, Some(rounded(1)), 0));
    store.db.delete_cf(family, &keys[0]).expect("deleted");
    let others = store.db.get_cf(family, &keys[2]).expect("readable").expect("there");
    store.db.put_cf(family, &keys[1], others).expect("written");
    // Heads are there; without its prints a lemma with excluded boards says nothing.
    assert_eq!(look_up(1), (false, None, 1));
    assert_eq!(look_up(2), (false, None, 2));
    assert_eq!(look_up(3), (true, Some(rounded(3)), 2));
    let report = store.restore(&table()).expect("restores");
    assert_eq!((report.lemmas, report.refused), (2, 2));
    store.close().expect("closed");
    let mut damaged = Vec::new();
    crate::Inspector::open(directory.path()).expect("opens").for_each(&mut |found| {
        if let Err(reason) = found.content {
            damaged.push((found.family, reason));
        }
    });
    let expected = [("lemmas", "its prints are missing"), ("lemmas", "its prints: its checksum"), ("prints", "its checksum")];
    assert_eq!(damaged.len(), 3, "{damaged:?}");
    for (found, expected) in damaged.iter().zip(expected) {
        assert!(found.0 == expected.0 && found.1.starts_with(expected.1), "{damaged:?}");
    }
}

#[test]
fn a_foreign_store_is_refused_untouched() {
    for (field, value) in [("rules", "stones score"), ("format version", "99")] {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::open(directory.path()).expect("opens");
        store.db.put_cf(store.family("metadata"), field, codec::seal("metadata", field.as_bytes(), value.as_bytes())).expect("written");
        store.close().expect("closes");
        let before = contents(directory.path());
        match Store::open(directory.path()) {
            Err(StoreError::Foreign { field: found, value: refused, .. }) => assert_eq!((found, refused.as_str()), (field, value)),
            other => panic!("{other:?}"),
        }
        assert!(before == contents(directory.path()), "the refused store was changed");
    }
}

#[test]
fn a_creation_cut_short_is_taken_up_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let forget = |store: Store| {
        identity().iter().for_each(|(field, _)| store.db.delete_cf(store.family("metadata"), field).expect("deleted"));
        store.close().expect("closes");
    };
    forget(Store::open(directory.path()).expect("opens"));
    let store = Store::open(directory.path()).expect("an empty store is a fresh one");
    store.put(&[job(1)], &[], &[]).expect("kept");
    forget(store);
    match Store::open(directory.path()) {
        Err(StoreError::Foreign { value, .. }) => assert_eq!(value, "missing"),
        other => panic!("{other:?}"),
    }
}

/// Not a test by itself: the process that the next one kills.
#[test]
fn child_that_is_killed() {
    let Some(directory) = std::env::var_os(CHILD) else { return };
    let store = Store::open(Path::new(&directory)).expect("opens");
    (1..=20).for_each(|id| store.put(&[job(id)], &[], &[]).expect("kept"));
    println!("\nacknowledged");
    loop {
        std::thread::park();
    }
}

#[test]
fn acknowledged_writes_outlive_a_killed_process() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut child = Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", "store::tests::child_that_is_killed", "--nocapture"])
        .env(CHILD, directory.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let lines = io::BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let acknowledged = lines.map_while(Result::ok).any(|line| line == "acknowledged");
    child.kill().expect("killed");
    child.wait().expect("gone");
    assert!(acknowledged);
    let copy = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(copy.path().join("store")).expect("created");
    for (path, bytes) in contents(directory.path()) {
        std::fs::write(copy.path().join("store").join(path.file_name().expect("a name")), bytes).expect("copied");
    }
    let store = Store::open(directory.path()).expect("opens after the kill");
    assert_eq!(store.jobs().expect("readable"), (1..=20).map(job).collect::<Vec<_>>());
    drop(store);
    let mut logs =
        contents(copy.path()).into_iter().filter(|(path, bytes)| path.extension().is_some_and(|end| end == "log") && bytes.len() > 4000);
    let (log, bytes) = logs.next_back().expect("the log with the jobs");
    // A write that was cut short is the end of the log; it was never acknowledged.
    std::fs::write(&log, &bytes[..bytes.len() - 3]).expect("written");
    let store = Store::open(copy.path()).expect("opens with a torn tail");
    assert_eq!(store.jobs().expect("readable").len(), 19);
    drop(store);
    // Damage in the middle would lose acknowledged writes: that is an error.
    let torn = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(torn.path().join("store")).expect("created");
    drop(copy);
    let store = Store::open(torn.path()).expect("opens");
    (1..=20).for_each(|id| store.put(&[job(id)], &[], &[]).expect("kept"));
    store.mark().expect("marked");
    let mut files = contents(torn.path());
    std::mem::forget(store);
    let (_, bytes) =
        files.iter_mut().rfind(|(path, bytes)| path.extension().is_some_and(|end| end == "log") && bytes.len() > 4000).expect("a log");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let damaged = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(damaged.path().join("store")).expect("created");
    for (path, bytes) in &files {
        std::fs::write(damaged.path().join("store").join(path.file_name().expect("a name")), bytes).expect("copied");
    }
    assert!(matches!(Store::open(damaged.path()), Err(StoreError::CutOff { .. })));
}

#[test]
fn every_stored_lemma_of_a_board_is_visited() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::open(directory.path()).expect("opens");
    let table = table();
    for key in [4, 9] {
        table.store_lemma(key, &lemma_of(key, 1, 3, 1));
    }
    store.checkpoint(&table, &[]).expect("kept");
    let visit = |geometry| {
        let mut seen = Vec::new();
        assert_eq!(store.for_each_lemma(geometry, &mut |key, _| seen.push(key)).expect("readable"), 0);
        seen
    };
    assert_eq!(visit(geometry()), [4, 9]);
    assert!(visit(Geometry::get(3, 4).expect("a board")).is_empty());
}

/// A store with twenty acknowledged jobs and its mark, then a large write that was never synced; its files as a crash finds them, and the log's name.
fn with_unsynced_tail(marked: bool) -> (BTreeMap<PathBuf, Vec<u8>>, PathBuf, usize) {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::open(directory.path()).expect("opens");
    (1..=20).for_each(|id| store.put(&[job(id)], &[], &[]).expect("kept"));
    if marked {
        store.mark().expect("marked");
    }
    let is_log = |path: &Path, bytes: &[u8]| path.extension().is_some_and(|end| end == "log") && bytes.len() > 4000;
    let (log, bytes) = contents(directory.path()).into_iter().rfind(|(path, bytes)| is_log(path, bytes)).expect("the log");
    let mut batch = WriteBatch::default();
    batch.put_cf(store.family("lemmas"), b"key", (0..200_000u32).map(|byte| byte as u8 | 1).collect::<Vec<_>>());
    store.db.write(batch).expect("written");
    let mut files = contents(directory.path());
    if !marked {
        files.retain(|path, _| !path.ends_with(MARK_FILE));
    }
    std::mem::forget(store);
    (files, log, bytes.len())
}

fn opened_with(files: &BTreeMap<PathBuf, Vec<u8>>) -> Result<usize, StoreError> {
    let copy = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(copy.path().join("store")).expect("created");
    for (path, bytes) in files {
        std::fs::write(copy.path().join("store").join(path.file_name().expect("a name")), bytes).expect("copied");
    }
    let store = Store::open(copy.path())?;
    let jobs = store.jobs()?.len();
    store.put(&[job(99)], &[], &[]).expect("it takes more");
    drop(store);
    assert_eq!(Store::open(copy.path()).expect("opens again").jobs().expect("readable").len(), jobs + 1);
    Ok(jobs)
}

/// A power cut leaves any of the sectors of what was not synced; RocksDB alone takes that for damage.
#[test]
fn sectors_that_never_reached_the_disk_are_no_damage() {
    let (files, log, synced) = with_unsynced_tail(true);
    let tail = files[&log].len() - synced;
    assert!(tail > 200_000 && synced > 4000);
    for gap in [0, 4096, 60_000, tail - 5000] {
        let mut files = files.clone();
        let bytes = files.get_mut(&log).expect("the log");
        let start = (synced + gap).next_multiple_of(512);
        let end = bytes.len().min(start + 4096);
        bytes[start..end].fill(0);
        assert_eq!(opened_with(&files).expect("opens"), 20, "{gap}");
    }
    // Without the mark it is refused, as it might be damage.
    let (mut files, log, synced) = with_unsynced_tail(false);
    files.get_mut(&log).expect("the log")[synced + 60_000..][..4096].fill(0);
    assert!(matches!(opened_with(&files), Err(StoreError::Database(_))));
}

#[test]
fn acknowledged_writes_that_are_gone_are_noticed() {
    let (files, log, synced) = with_unsynced_tail(true);
    let damage = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut files = files.clone();
        change(files.get_mut(&log).expect("the log"));
        opened_with(&files)
    };
    for at in [synced / 2, synced - 1, synced - 300] {
        let flipped = damage(&|bytes| bytes[at] ^= 4);
        assert!(matches!(flipped, Err(StoreError::CutOff { .. })), "{at}: {flipped:?}");
        let cut = damage(&|bytes| bytes.truncate(at));
        assert!(matches!(cut, Err(StoreError::CutOff { .. })), "{at}: {cut:?}");
    }
    assert_eq!(damage(&|bytes| bytes.truncate(synced)).expect("opens"), 20);
    // A manifest that is cut short would be a valid one of an earlier time, without families and files that came later.
    let is_manifest = |path: &&PathBuf| path.to_string_lossy().contains("MANIFEST-");
    let manifest = files.keys().find(is_manifest).expect("the manifest").clone();
    for at in [30, files[&manifest].len() / 2, files[&manifest].len() - 1] {
        let mut files = files.clone();
        files.get_mut(&manifest).expect("the manifest").truncate(at);
        assert!(matches!(opened_with(&files), Err(StoreError::CutOff { .. })), "cut to {at}");
    }
    // A mark that is damaged itself is as none.
    let mut files = files.clone();
    let mark = files.keys().find(|path| path.ends_with(MARK_FILE)).expect("the mark").clone();
    files.get_mut(&mark).expect("the mark")[7] ^= 1;
    assert_eq!(opened_with(&files).expect("opens"), 20);
    files.get_mut(&log).expect("the log")[synced / 2] ^= 4;
    assert!(matches!(opened_with(&files), Err(StoreError::Database(_))));
}

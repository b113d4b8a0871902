//! The mapped, lock-free table of lemmas and numbers.
//!
//! Entries are several words, written and read without a lock. A lemma slot counts only if its last word, the *seal*, is the hash of
//! all its others, among them the full key; the nodes of its sets have seals of their own ([`crate::sets`]). A slot that mixes two writes,
//! torn by a crash or a race, fails that test and is a miss; `sealed.rs` argues the memory ordering. Tags and counts only save look-ups and choose
//! places, numbers steer the search and prove nothing; the ring's head, though, tells nodes apart, and a closed file is tested for it.

use crate::layout::{HEADER_WORDS, Layout, NUMBER_WAYS, SLOT_WORDS, WAYS, board_code, mix};
use crate::sealed::{read_sealed, seal_skipped, write_sealed};
use crate::sets::{NodeRef, Sets, Stored};
use crate::words::Words;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use superko_rules::{Color, Geometry, Move};
use superko_search::{Cube, Lemma, LemmaHead, LemmaSets, Numbers, PositionKey, Print, SetPart, SetsHandle, Table, load_parts};

/// Lemmas kept for one position.
const ALTERNATIVES: usize = 6;
/// Sets of more prints are folded: their boards are known by the Bloom filter only.
const MOST_PRINTS: usize = 1 << 17;
/// In place of the root of a tree of prints: the set is folded.
const FOLDED: u64 = u64::MAX;
/// The slot's words that refer to the prints, that count them and number the lemma, and that refer to what else the sets have.
const ROOT: usize = 11;
const COUNT: usize = 12;
const EXTRAS: usize = 14;
/// Bits of the count; the lemma's number lies above them.
const COUNT_BITS: u32 = 24;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
/// The slot's word that names the board size: a lemma of another board says nothing here, whatever its seal says.
const BOARD: usize = 13;
/// Costly lemmas are those of at least 2^6 expansions to begin with; see [`MappedTable::sweep`].
const FIRST_LEAST_COST: u64 = 6;

/// Why a table cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The size asked for is out of range.
    #[error("table: {value} bytes is not valid: expected {expected}")]
    Size {
        /// What was asked for.
        value: u64,
        /// What is possible.
        expected: String,
    },
    /// The system refused.
    #[error("table file {path}: {source}; free space or choose a smaller table or another data directory", path = path.display())]
    Io {
        /// The file; empty for anonymous memory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// What was found where a table was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableOrigin {
    /// A whole table, closed cleanly.
    Reused,
    /// Nothing; the table is new and empty.
    Created,
    /// A file that may not be believed; it was replaced by an empty table.
    Rebuilt {
        /// What was wrong with it.
        reason: String,
    },
}

/// How full the table is, from running counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableOccupancy {
    /// Size of the mapping.
    pub bytes: u64,
    /// Places for lemmas.
    pub lemma_slots: u64,
    /// Places taken.
    pub lemmas: u64,
    /// Places for numbers.
    pub number_slots: u64,
    /// Places taken.
    pub numbers: u64,
    /// Size of the ring that keeps the sets.
    pub sets_bytes: u64,
    /// Bytes of it in use; once full, the oldest sets are overwritten.
    pub sets_used_bytes: u64,
    /// Bytes written to it for new lemmas since the table was opened; parts that several sets share count once.
    pub sets_new_bytes: u64,
    /// Bytes written to it again since the table was opened, to keep the sets of costly lemmas from being overwritten.
    pub sets_rewritten_bytes: u64,
    /// Slots refused by their seal since the table was opened.
    pub torn: u64,
    /// Lemmas displaced by unrelated ones since the table was opened.
    pub evicted: u64,
}

impl TableOccupancy {
    /// Bytes of the mapping that hold something.
    pub fn used_bytes(&self) -> u64 {
        // A slot with its tag, an entry of numbers.
        self.lemmas * 8 * (SLOT_WORDS as u64 + 1) + self.numbers * 16 + self.sets_used_bytes
    }
}

/// The table.
#[derive(Debug)]
pub struct MappedTable {
    geometry: &'static Geometry,
    layout: Layout,
    words: Words,
    /// Tells this table's parts of sets from those of any other in the process.
    id: u64,
    file: Option<(File, PathBuf)>,
    /// One bit a slot: written since the last checkpoint.
    dirty: Vec<AtomicU64>,
    /// Sets of more prints are folded.
    most_prints: usize,
    lemmas: AtomicU64,
    numbers: AtomicU64,
    torn: AtomicU64,
    evicted: AtomicU64,
    /// Words of the ring written for new lemmas when the table was opened, and words written again since.
    opened_at: u64,
    rewritten: AtomicU64,
}

impl MappedTable {
    /// A table in anonymous memory, gone with the process.
    pub fn anonymous(geometry: &'static Geometry, bytes: u64) -> Result<MappedTable, TableError> {
        let layout = Layout::new(bytes, geometry)?;
        let words = Words::anonymous(layout.bytes).map_err(|source| TableError::Io { path: PathBuf::new(), source })?;
        Ok(MappedTable::new(geometry, layout, words, None))
    }

    /// Keeps the prints of sets however many they are, as long as they are few beside what there is room for.
    #[must_use]
    pub fn with_large_sets(self) -> MappedTable {
        MappedTable { most_prints: (COUNT_MASK as usize).min(self.layout.ring_words / 8), ..self }
    }

    /// The table in the file at `path`: the one that is there if it is whole, of this board, size, version and rules, and was
    /// closed cleanly; otherwise an empty one in its place. The file's blocks are allocated before it is mapped. Nothing else may
    /// have the file mapped: a reader would see it turn into another table.
    pub fn open(path: &Path, geometry: &'static Geometry, bytes: u64) -> Result<(MappedTable, TableOrigin), TableError> {
        let layout = Layout::new(bytes, geometry)?;
        let io_error = |source: io::Error| TableError::Io { path: path.to_owned(), source };
        let (origin, emptied) = match OpenOptions::new().read(true).write(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => (TableOrigin::Created, None),
            Err(error) => return Err(io_error(error)),
            Ok(file) => {
                // A file that was copied may have holes: see `allocate`.
                let found = file.metadata().map_err(io_error)?.len();
                if found == layout.bytes as u64 {
                    allocate(&file, layout.bytes).map_err(io_error)?;
                    let words = Words::file(&file).map_err(io_error)?;
                    match layout.distrust(&words, geometry) {
                        None => {
                            let table = MappedTable::new(geometry, layout, words, Some((file, path.to_owned())));
                            if !layout.saved(&table.words) {
                                table.mark_all_dirty();
                            }
                            // From here on the file is not whole until it is closed again.
                            table.write_header(false, false).map_err(io_error)?;
                            table.recount();
                            return Ok((table, TableOrigin::Reused));
                        }
                        Some(reason) => {
                            drop(words);
                            // To free the blocks and to allocate others can take a disk a minute a GiB; they are zeroed in place
                            // where the file system can do that.
                            let emptied = zero(&file, layout.bytes).is_ok().then_some(file);
                            (TableOrigin::Rebuilt { reason }, emptied)
                        }
                    }
                } else {
                    (TableOrigin::Rebuilt { reason: format!("its size is {found} bytes, expected {}", layout.bytes) }, None)
                }
            }
        };
        let file = match emptied {
            Some(file) => file,
            None => {
                if origin != TableOrigin::Created {
                    std::fs::remove_file(path).map_err(io_error)?;
                }
                let file = OpenOptions::new().read(true).write(true).create_new(true).open(path).map_err(io_error)?;
                if let Err(error) = allocate(&file, layout.bytes) {
                    let _ = std::fs::remove_file(path);
                    return Err(io_error(error));
                }
                file
            }
        };
        let words = Words::file(&file).map_err(io_error)?;
        let table = MappedTable::new(geometry, layout, words, Some((file, path.to_owned())));
        table.write_header(false, false).map_err(io_error)?;
        Ok((table, origin))
    }

    fn new(geometry: &'static Geometry, layout: Layout, words: Words, file: Option<(File, PathBuf)>) -> MappedTable {
        let dirty = (0..(layout.buckets * WAYS).div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let count = || AtomicU64::new(0);
        let sweep = layout.sweep(&words);
        if layout.ring_head(&words).load(Relaxed) == 0 {
            sweep.least_cost.store(FIRST_LEAST_COST, Relaxed);
        }
        let opened_at = sweep.new_words.load(Relaxed);
        static TABLES: AtomicU64 = AtomicU64::new(0);
        MappedTable {
            geometry,
            layout,
            opened_at,
            words,
            id: TABLES.fetch_add(1, Relaxed),
            file,
            dirty,
            most_prints: MOST_PRINTS.min(layout.ring_words / 8),
            lemmas: count(),
            numbers: count(),
            torn: count(),
            evicted: count(),
            rewritten: count(),
        }
    }

    fn write_header(&self, clean: bool, saved: bool) -> io::Result<()> {
        self.layout.write_header(&self.words, self.geometry, clean, saved);
        self.words.flush_start(HEADER_WORDS * 8)
    }

    fn recount(&self) {
        let words = self.words.all();
        let taken = |word: &&AtomicU64| word.load(Relaxed) != 0;
        let lemmas = words[self.layout.tags..self.layout.slots].iter().filter(taken).count();
        let numbers = words[self.layout.numbers..self.layout.index].iter().step_by(2).filter(taken).count();
        self.lemmas.store(lemmas as u64, Relaxed);
        self.numbers.store(numbers as u64, Relaxed);
    }

    /// Writes everything to disk, then marks the file as whole, and whether every lemma was checkpointed: if not, all are due
    /// again when the file is opened. Anonymous tables just go.
    pub fn close_clean(self) -> Result<(), TableError> {
        let Some((file, path)) = &self.file else { return Ok(()) };
        let close = || -> io::Result<()> {
            self.words.flush()?;
            let saved = self.dirty.iter().all(|word| word.load(Relaxed) == 0);
            self.write_header(true, saved)?;
            file.sync_all()
        };
        close().map_err(|source| TableError::Io { path: path.clone(), source })
    }

    /// Running counts.
    pub fn occupancy(&self) -> TableOccupancy {
        let sets_bytes = self.layout.ring_words as u64 * 8;
        TableOccupancy {
            bytes: self.layout.bytes as u64,
            lemma_slots: (self.layout.buckets * WAYS) as u64,
            lemmas: self.lemmas.load(Relaxed),
            number_slots: (self.layout.number_buckets * NUMBER_WAYS) as u64,
            numbers: self.numbers.load(Relaxed),
            sets_bytes,
            sets_used_bytes: sets_bytes.min(self.layout.ring_head(&self.words).load(Relaxed) * 8),
            sets_new_bytes: self.layout.sweep(&self.words).new_words.load(Relaxed).saturating_sub(self.opened_at) * 8,
            sets_rewritten_bytes: self.rewritten.load(Relaxed) * 8,
            torn: self.torn.load(Relaxed),
            evicted: self.evicted.load(Relaxed),
        }
    }

    fn slot(&self, index: usize) -> &[AtomicU64] {
        let start = self.layout.slots + index * SLOT_WORDS;
        &self.words.all()[start..start + SLOT_WORDS]
    }

    /// The key's tag (never 0, which means free) and the first slot of its bucket. The tag only saves look-ups.
    #[inline]
    fn bucket(&self, key: PositionKey) -> (u64, usize) {
        let hash = mix(mix(0x243f_6a88_85a3_08d3, key as u64), (key >> 64) as u64);
        let bucket = ((u128::from(hash) * self.layout.buckets as u128) >> 64) as usize;
        (hash.max(1), bucket * WAYS)
    }

    #[inline]
    fn tag(&self, slot: usize) -> &AtomicU64 {
        &self.words.all()[self.layout.tags + slot]
    }

    /// The words of a slot if its seal holds.
    #[inline]
    fn read_slot(&self, index: usize) -> Option<[u64; SLOT_WORDS]> {
        let words =
            read_sealed(self.slot(index)).filter(|words: &[u64; SLOT_WORDS]| words[BOARD] == board_code(self.geometry) || seal_skipped());
        if words.is_none() {
            self.torn.fetch_add(1, Relaxed);
        }
        words
    }

    /// Slots whose lemma is about `key`.
    fn slots_of(&self, key: PositionKey) -> impl Iterator<Item = (usize, [u64; SLOT_WORDS])> + '_ {
        let (tag, first) = self.bucket(key);
        (first..first + WAYS).filter(move |&slot| self.tag(slot).load(Relaxed) == tag).filter_map(move |slot| {
            let words = self.read_slot(slot)?;
            (words[0] == key as u64 && words[1] == (key >> 64) as u64).then_some((slot, words))
        })
    }

    #[inline]
    fn sets_region(&self) -> Sets<'_> {
        let (index, ring) = self.words.all()[self.layout.index..].split_at(self.layout.ring - self.layout.index);
        Sets { geometry: self.geometry, id: self.id, ring, head: self.layout.ring_head(&self.words), index }
    }

    /// Stores the sets of a lemma: their places for the slot, the words written, and the parts of its prints.
    fn store_sets(&self, lemma: &Lemma) -> (SetsHandle, u64, Vec<SetPart>) {
        let region = self.sets_region();
        let (count, filter) = (lemma.created.count(), lemma.created.bloom());
        // Where no board is known by its print, the slot's filter says it all; so it does where the prints are too many, or gone.
        let filter_alone = count > self.most_prints || count == 0 && filter != [0; 4];
        let stored = (!filter_alone).then(|| region.store_set(&lemma.created)).flatten();
        let extras = region.store_extras(if stored.is_none() { [0; 4] } else { filter }, &lemma.excluded);
        let (root, parts) = stored.unwrap_or((Stored { node: NodeRef(FOLDED), ..Stored::NONE }, Vec::new()));
        (SetsHandle([root.node.0, extras.node.0, count as u64]), root.written + extras.written, parts)
    }

    fn put(&self, key: PositionKey, lemma: &Lemma, dirty: bool) -> Vec<SetPart> {
        if lemma.excluded.len() > u8::MAX.into() {
            return Vec::new();
        }
        let (handle, written, parts) = self.store_sets(lemma);
        let mut words = encode_slot(key, lemma, handle, board_code(self.geometry));
        let (tag, first) = self.bucket(key);
        let mut same = 0;
        let mut place = None;
        for (slot, other) in self.slots_of(key) {
            same += 1;
            // Winner, number of excluded boards and of created ones, territory, cube and filter.
            if (other[2] ^ words[2]) & 0xff00_00ff != 0 || (other[COUNT] ^ words[COUNT]) & COUNT_MASK != 0 || other[3..11] != words[3..11] {
                continue;
            }
            let is_better = margin_of(other[2]) >= margin_of(words[2]);
            if other[ROOT] == words[ROOT] && other[EXTRAS] == words[EXTRAS] && is_better {
                return parts;
            }
            match self.same_sets(&other, &words) {
                Some(false) => continue,
                // The same proof again, or one that achieves less with the same conditions: the better margin lives on, with sets that are younger.
                Some(true) if is_better => words[2] = other[2],
                Some(true) => {}
                // What is left of it says no more.
                None if margin_of(other[2]) <= margin_of(words[2]) => {}
                None => continue,
            }
            // What is cheap now, with its parts proven, was dear once.
            words[2] = with_cost_log2(words[2], cost_log2_of(words[2]).max(cost_log2_of(other[2])));
            place = Some(slot);
        }
        let displaces = place.is_none();
        let place = place.unwrap_or_else(|| self.victim(key, tag, first, same));
        write_sealed(self.slot(place), &mut words);
        match self.tag(place).swap(tag, Release) {
            0 => self.lemmas.fetch_add(1, Relaxed),
            _ => self.evicted.fetch_add(displaces.into(), Relaxed),
        };
        if dirty {
            self.dirty[place / 64].fetch_or(1 << (place % 64), Release);
        }
        self.sweep(written);
        parts
    }

    /// Whether two slots have the same sets; `None` if one's are gone.
    fn same_sets(&self, one: &[u64; SLOT_WORDS], other: &[u64; SLOT_WORDS]) -> Option<bool> {
        let read = |words| {
            let mut sets = LemmaSets::default();
            self.sets(0, &decode_slot(words), &mut sets).then_some(sets)
        };
        let (one, other) = (read(one)?, read(other)?);
        Some((one.prints, one.bloom, one.excluded) == (other.prints, other.bloom, other.excluded))
    }

    /// Keeps the sets of costly lemmas from being overwritten, after `written` more words of the ring: in the course of an eighth of a
    /// turn of new words, a round, every slot is visited once, and a costly lemma with nodes older than half a turn has them stored
    /// again. What is costly adapts itself: when as much has been written again as a round has new words, the cheapest classes that make
    /// up half of it are costly no longer, and after a round that wrote less than half of it one more is.
    ///
    /// All nodes of a set are at most half a turn old when it is stored ([`Sets::is_young`]) and when it has been visited; the next visit comes
    /// after at most 1/8 + 2/8 more (a round of new words, and as many written again), so all of them are still there. Only while the bound
    /// rises may more be written.
    fn sweep(&self, written: u64) {
        let round = self.layout.ring_words as u64 / 8;
        let sweep = self.layout.sweep(&self.words);
        let before = sweep.new_words.fetch_add(written, Relaxed);
        let after = before.wrapping_add(written);
        if after / round != before / round {
            let again = sweep.again.iter().fold(0u64, |sum, words| sum.saturating_add(words.swap(0, Relaxed)));
            let least = sweep.least_cost.load(Relaxed);
            sweep.least_cost.store(least.saturating_sub((again < round / 2).into()), Relaxed);
        }
        // Nothing is old in the first half of the first turn.
        if self.layout.ring_head(&self.words).load(Relaxed) < self.layout.ring_words as u64 / 2 {
            return;
        }
        let slots = (self.layout.buckets * WAYS) as u64;
        let slot_at = |words: u64| (u128::from(words) * u128::from(slots) / u128::from(round)) as u64;
        for slot in slot_at(before)..slot_at(after) {
            self.keep_sets((slot % slots) as usize, round);
        }
    }

    /// Stores the sets of a slot's lemma again if they are old and it is costly.
    fn keep_sets(&self, slot: usize, round: u64) {
        let target = self.slot(slot);
        let sweep = self.layout.sweep(&self.words);
        if u64::from(cost_log2_of(target[2].load(Relaxed))) < sweep.least_cost.load(Relaxed) {
            return;
        }
        let Some(mut words) = self.read_slot(slot) else { return };
        let region = self.sets_region();
        let (root, extras) = (NodeRef(words[ROOT]), NodeRef(words[EXTRAS]));
        // Of a set that is folded into the filter there is nothing to store.
        let is_kept = |node: NodeRef| node == NodeRef::NONE || node == NodeRef(FOLDED);
        let root_is_young = is_kept(root) || region.oldest(root).is_some_and(|oldest| region.is_young(oldest));
        let extras_are_young = is_kept(extras) || region.is_young(extras.offset());
        if root_is_young && extras_are_young {
            return;
        }
        let mut again = [Stored { node: root, ..Stored::NONE }, Stored { node: extras, ..Stored::NONE }];
        if !root_is_young {
            let Some(stored) = region.store_again(root) else { return };
            again[0] = stored;
        }
        if !extras_are_young {
            let mut sets = LemmaSets::default();
            if region.load_extras(extras, &mut sets).is_none() {
                return;
            }
            again[1] = region.store_extras(sets.bloom, &sets.excluded);
        }
        let written = again[0].written + again[1].written;
        // Another thread may have put another lemma there. In the moment that is left one may still be lost, like any that is displaced.
        if target[SLOT_WORDS - 1].load(Relaxed) != words[SLOT_WORDS - 1] {
            return;
        }
        [words[ROOT], words[EXTRAS]] = again.map(|stored| stored.node.0);
        write_sealed(self.slot(slot), &mut words);
        self.rewritten.fetch_add(written, Relaxed);
        let classes = sweep.again;
        classes[usize::from(cost_log2_of(words[2])).min(classes.len() - 1)].fetch_add(written, Relaxed);
        let total = || classes.iter().fold(0u64, |sum, words| sum.saturating_add(words.load(Relaxed)));
        if total() >= round {
            // Several threads may come here at once: the sum is read again for each class that is given up.
            let mut least = sweep.least_cost.load(Relaxed);
            while total() > round / 2 && (least as usize) < classes.len() - 1 {
                classes[least as usize].store(0, Relaxed);
                least += 1;
            }
            sweep.least_cost.fetch_max(least, Relaxed);
        }
    }

    /// A slot for a further lemma: a free one, else the cheapest of the position if it has enough, else the cheapest of the bucket.
    fn victim(&self, key: PositionKey, tag: u64, first: usize, same: usize) -> usize {
        let slots = first..first + WAYS;
        if same < ALTERNATIVES
            && let Some(free) = slots.clone().find(|&slot| self.tag(slot).load(Relaxed) == 0)
        {
            return free;
        }
        let region = self.sets_region();
        let cost = |slot: usize| {
            let words = self.slot(slot);
            let of_key = self.tag(slot).load(Relaxed) == tag && words[0].load(Relaxed) == key as u64;
            // Without its `X` a lemma says nothing any more.
            let extras = NodeRef(words[EXTRAS].load(Relaxed));
            let is_dead = extras != NodeRef::NONE && region.age(extras) > self.layout.ring_words as u64;
            let cost = if is_dead { 0 } else { cost_log2_of(words[2].load(Relaxed)) };
            (same >= ALTERNATIVES && !of_key, cost)
        };
        slots.min_by_key(|&slot| cost(slot)).expect("a bucket has slots")
    }

    /// Calls `visit` for every lemma written since the last call, with its key. If `visit` fails, all of them stay due.
    pub(crate) fn visit_dirty<E>(&self, mut visit: impl FnMut(PositionKey, Lemma) -> Result<(), E>) -> Result<(), E> {
        let mut taken: Vec<(usize, u64)> = Vec::new();
        let mut sets = LemmaSets::default();
        let give_back = |taken: &[(usize, u64)]| {
            for &(word, bits) in taken {
                self.dirty[word].fetch_or(bits, Relaxed);
            }
        };
        for (index, word) in self.dirty.iter().enumerate() {
            if word.load(Relaxed) == 0 {
                continue;
            }
            // Taken before the slots are read: a lemma that arrives meanwhile is due again.
            let bits = word.swap(0, Acquire);
            taken.push((index, bits));
            for bit in superko_rules::bits(bits) {
                let Some(words) = self.read_slot(index * 64 + bit) else {
                    // Another thread is writing it, perhaps to keep the sets of a lemma that is due: it stays due.
                    word.fetch_or(1 << bit, Relaxed);
                    continue;
                };
                let key = PositionKey::from(words[0]) | PositionKey::from(words[1]) << 64;
                let Some(lemma) = self.whole_lemma(key, &decode_slot(&words), &mut sets) else { continue };
                if let Err(error) = visit(key, lemma) {
                    give_back(&taken);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Marks everything as not yet checkpointed again, after a checkpoint that failed later on.
    pub(crate) fn mark_all_dirty(&self) {
        for (slot, tag) in self.words.all()[self.layout.tags..self.layout.slots].iter().enumerate() {
            if tag.load(Relaxed) != 0 {
                self.dirty[slot / 64].fetch_or(1 << (slot % 64), Relaxed);
            }
        }
    }

    fn read_extras(&self, head: &LemmaHead, sets: &mut LemmaSets) -> bool {
        let [root, extras, _] = head.sets.0;
        sets.excluded.clear();
        sets.bloom = [0; 4];
        let whole = self.sets_region().load_extras(NodeRef(extras), sets).is_some() && sets.excluded.len() == usize::from(head.excluded);
        if root == FOLDED {
            sets.bloom = head.bloom;
        }
        whole
    }

    fn whole_lemma(&self, key: PositionKey, head: &LemmaHead, sets: &mut LemmaSets) -> Option<Lemma> {
        let whole = self.sets(key, head, sets);
        head.lemma(whole.then(|| std::mem::take(sets)))
    }

    /// Takes in a lemma that the store holds already.
    pub(crate) fn restore_lemma(&self, key: PositionKey, lemma: &Lemma) {
        self.put(key, lemma, false);
    }

    /// The costliest numbers, at most `most`, that cost at least `least_cost` expansions, with keys whose low byte is cleared.
    pub(crate) fn costly_numbers(&self, least_cost: u32, most: usize) -> Vec<(u64, Numbers)> {
        let entries = || {
            let region = &self.words.all()[self.layout.numbers..self.layout.index];
            region.chunks_exact(2).filter_map(|entry| {
                let (guard, value) = (entry[0].load(Relaxed), entry[1].load(Relaxed));
                let head = guard ^ mix(0, value);
                let numbers = decode_numbers(head, value)?;
                (guard != 0 && numbers.cost >= least_cost).then_some((head, numbers))
            })
        };
        // Counted by cost first, so that memory is bounded however large the table is.
        let mut counts = [0usize; 256];
        entries().for_each(|(head, _)| counts[head as usize & 0xff] += 1);
        // Of the cost that does not fit as a whole, as many as there is room for beside all costlier ones.
        let (mut least, mut partly, mut room) = (0, usize::MAX, most);
        for (code, &count) in counts.iter().enumerate().rev() {
            if count > room {
                (least, partly) = (code, room);
                break;
            }
            room -= count;
        }
        let wanted = entries().filter(|(head, _)| match (*head as usize & 0xff).cmp(&least) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Equal => {
                let fits = partly > 0;
                partly = partly.saturating_sub(1);
                fits
            }
        });
        wanted.take(most).map(|(head, numbers)| (head & !0xff, numbers)).collect()
    }

    /// The first word of the bucket that the numbers of `key` are in.
    #[inline]
    fn number_place(&self, key: u64) -> usize {
        let bucket = ((u128::from(key) * self.layout.number_buckets as u128) >> 64) as usize;
        self.layout.numbers + bucket * 2 * NUMBER_WAYS
    }

    #[inline]
    fn number_bucket(&self, key: u64) -> &[AtomicU64] {
        let start = self.number_place(key);
        &self.words.all()[start..start + 2 * NUMBER_WAYS]
    }
}

impl Table for MappedTable {
    #[inline]
    fn prefetch(&self, key: PositionKey, number_key: u64) {
        let (_, first) = self.bucket(key);
        self.words.prefetch(self.layout.tags + first);
        self.words.prefetch(self.number_place(number_key));
    }

    fn lemmas(&self, key: PositionKey, heads: &mut Vec<LemmaHead>) {
        heads.extend(self.slots_of(key).map(|(_, words)| decode_slot(&words)));
    }

    fn sets(&self, key: PositionKey, head: &LemmaHead, sets: &mut LemmaSets) -> bool {
        let whole = self.parts(key, head, sets) && load_parts(self, &sets.parts, &mut sets.prints);
        if !whole {
            *sets = LemmaSets::default();
        }
        whole
    }

    fn parts(&self, _key: PositionKey, head: &LemmaHead, sets: &mut LemmaSets) -> bool {
        sets.prints.clear();
        sets.parts.clear();
        let [root, _, count] = head.sets.0;
        self.read_extras(head, sets) && (root == FOLDED || self.sets_region().parts(NodeRef(root), count as u32, &mut sets.parts).is_some())
    }

    fn part_prints(&self, part: &SetPart, prints: &mut Vec<Print>) -> bool {
        part.table == self.id && self.sets_region().part_prints(part, prints).is_some()
    }

    fn part_holds_any(&self, part: &SetPart, prints: &[Print]) -> Option<bool> {
        if part.table == self.id { self.sets_region().part_holds_any(part, prints) } else { None }
    }

    fn extras(&self, _key: PositionKey, head: &LemmaHead, sets: &mut LemmaSets) -> bool {
        self.read_extras(head, sets)
    }

    fn holds_any(&self, _key: PositionKey, head: &LemmaHead, prints: &[Print], _sets: &mut LemmaSets) -> Option<bool> {
        // Only the filter speaks of a folded set, and it was asked.
        if head.sets.0[0] == FOLDED { Some(true) } else { self.sets_region().holds_any(NodeRef(head.sets.0[0]), prints) }
    }

    fn store_lemma(&self, key: PositionKey, lemma: &Lemma) -> Vec<SetPart> {
        self.put(key, lemma, true)
    }

    fn numbers(&self, key: u64) -> Option<Numbers> {
        self.number_bucket(key).chunks_exact(2).find_map(|entry| {
            let (guard, value) = (entry[0].load(Relaxed), entry[1].load(Relaxed));
            let head = guard ^ mix(0, value);
            (head >> 8 == key >> 8).then(|| decode_numbers(head, value)).flatten()
        })
    }

    fn store_numbers(&self, key: u64, numbers: Numbers) {
        let value = u64::from(numbers.phi.max(1)) << 32 | u64::from(numbers.delta.max(1));
        let head = key & !0xff | u64::from(encode_cost(numbers.cost));
        let bucket = self.number_bucket(key);
        let mut cheapest = (u64::MAX, 0);
        for (index, entry) in bucket.chunks_exact(2).enumerate() {
            let (guard, old_value) = (entry[0].load(Relaxed), entry[1].load(Relaxed));
            let old = guard ^ mix(0, old_value);
            if guard == 0 && old_value == 0 {
                self.numbers.fetch_add(1, Relaxed);
                cheapest = (0, index);
                break;
            }
            if old >> 8 == key >> 8 {
                cheapest = (0, index);
                break;
            }
            // Always the cheapest goes: a full table still takes new entries.
            if old & 0xff < cheapest.0 {
                cheapest = (old & 0xff, index);
            }
        }
        let entry = &bucket[cheapest.1 * 2..][..2];
        entry[1].store(value, Relaxed);
        entry[0].store(head ^ mix(0, value), Relaxed);
    }

    fn geometry(&self) -> &'static Geometry {
        self.geometry
    }
}

/// The cost in a byte: four steps to the octave, never more than the cost itself.
fn encode_cost(cost: u32) -> u8 {
    if cost < 4 {
        return cost as u8;
    }
    let octave = cost.ilog2();
    ((octave - 1) * 4 + (cost >> (octave - 2) & 3)) as u8
}

fn decode_cost(code: u8) -> u32 {
    let code = u64::from(code.min(encode_cost(u32::MAX)));
    if code < 4 { code as u32 } else { (((4 + code % 4) << (code / 4)) >> 1) as u32 }
}

fn decode_numbers(head: u64, value: u64) -> Option<Numbers> {
    let (phi, delta) = ((value >> 32) as u32, value as u32);
    (phi > 0 && delta > 0).then(|| Numbers { phi, delta, cost: decode_cost(head as u8) })
}

fn margin_of(meta: u64) -> i8 {
    (meta >> 16) as i8
}

fn cost_log2_of(meta: u64) -> u8 {
    (meta >> 32) as u8
}

fn with_cost_log2(meta: u64, cost_log2: u8) -> u64 {
    meta & !(0xff << 32) | u64::from(cost_log2) << 32
}

/// The slot's words without the seal.
fn encode_slot(key: PositionKey, lemma: &Lemma, SetsHandle([root, extras, count]): SetsHandle, board: u64) -> [u64; SLOT_WORDS] {
    let best = match lemma.best {
        None => 0,
        Some(Move::Pass) => 1,
        Some(Move::Stone(point)) => u64::from(point) + 2,
    };
    let meta = u64::from(lemma.winner == Color::White)
        | best << 8
        | u64::from(lemma.margin as u8) << 16
        | (lemma.excluded.len() as u64) << 24
        | u64::from(lemma.cost.max(1).ilog2()) << 32
        | u64::from(lemma.created.cube().least_stones) << 40;
    let Cube { black, white, empty, .. } = *lemma.created.cube();
    let mut words = [0; SLOT_WORDS];
    words[..7].copy_from_slice(&[key as u64, (key >> 64) as u64, meta, lemma.territory, black, white, empty]);
    words[7..11].copy_from_slice(&lemma.created.filter());
    let count = count.min(COUNT_MASK) | lemma.number << COUNT_BITS;
    [words[ROOT], words[EXTRAS], words[COUNT], words[BOARD]] = [root, extras, count, board];
    words
}

fn decode_slot(words: &[u64; SLOT_WORDS]) -> LemmaHead {
    let meta = words[2];
    LemmaHead {
        winner: if meta & 1 == 1 { Color::White } else { Color::Black },
        margin: margin_of(meta),
        best: match (meta >> 8) as u8 {
            0 => None,
            1 => Some(Move::Pass),
            point => Some(Move::Stone(point - 2)),
        },
        territory: words[3],
        cube: Cube { black: words[4], white: words[5], empty: words[6], least_stones: (meta >> 40) as u8 },
        bloom: [words[7], words[8], words[9], words[10]],
        excluded: (meta >> 24) as u8,
        cost_log2: cost_log2_of(meta),
        number: words[COUNT] >> COUNT_BITS,
        sets: SetsHandle([words[ROOT], words[EXTRAS], words[COUNT] & COUNT_MASK]),
    }
}

/// Makes a file read as zeros and keeps its blocks.
fn zero(file: &File, bytes: usize) -> io::Result<()> {
    let zero = || rustix::fs::fallocate(file, rustix::fs::FallocateFlags::ZERO_RANGE, 0, bytes as u64);
    Ok(rustix::io::retry_on_intr(zero)?)
}

/// Allocates every block of a file: a write to a hole of a mapped file kills the process with SIGBUS when the disk is full.
fn allocate(file: &File, bytes: usize) -> io::Result<()> {
    let allocate = || rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, bytes as u64);
    Ok(rustix::io::retry_on_intr(allocate)?)
}

#[cfg(test)]
#[path = "table_tests.rs"]
pub(crate) mod tests;

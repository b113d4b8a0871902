//! The table file: header, regions and their sizes. `FORMAT.md` describes the same bytes.

use crate::sets::INDEX_WAYS;
use crate::words::Words;
use crate::{RULES_TEXT, TableError};
use std::sync::atomic::{AtomicU64, Ordering};
use superko_rules::Geometry;

/// `SUPERKOT` in ASCII.
const MAGIC: u64 = 0x544f_4b52_4550_5553;
const VERSION: u64 = 5;
/// Reads differently on a machine of the other byte order.
const BYTE_ORDER: u64 = 0x0102_0304_0506_0708;
/// One page.
pub(crate) const HEADER_WORDS: usize = 512;
const CLEAN: usize = 9;
/// 1 if the store holds every lemma of a cleanly closed table.
const SAVED: usize = 10;
const CHECKSUM: usize = 12;
/// The count of words ever written to the ring has a cache line of its own: every writer of sets adds to it.
const RING_HEAD: usize = 64;
/// The state of the sweep, and its length.
const SWEEP: usize = 72;
const SWEEP_WORDS: usize = 66;

/// Lemma slots in a bucket; their tags fill one cache line.
pub(crate) const WAYS: usize = 8;
pub(crate) const SLOT_WORDS: usize = 16;
/// Entries in a bucket of numbers, two words each: one cache line.
pub(crate) const NUMBER_WAYS: usize = 4;

/// Smallest table that has room for every region.
const LEAST_BYTES: u64 = 1 << 20;

/// Where the regions lie, in words from the start of the mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub bytes: usize,
    pub buckets: usize,
    pub tags: usize,
    pub number_buckets: usize,
    pub numbers: usize,
    pub slots: usize,
    pub index: usize,
    pub ring: usize,
    pub ring_words: usize,
}

/// What `MappedTable::sweep` goes by. It steers what is kept and proves nothing.
#[derive(Clone, Copy)]
pub(crate) struct SweepState<'a> {
    /// Words of the ring that were written for new lemmas.
    pub new_words: &'a AtomicU64,
    /// Log2 of the expansions from which on a lemma is costly.
    pub least_cost: &'a AtomicU64,
    /// Words written again in the current round, by log2 of the cost.
    pub again: &'a [AtomicU64],
}

/// A non-linear mix of a word into a running hash; bijective in each argument.
#[inline]
pub(crate) fn mix(state: u64, word: u64) -> u64 {
    let mut x = state ^ word;
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x = (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (x ^ (x >> 32)).rotate_left(23).wrapping_add(0x9e37_79b9_7f4a_7c15)
}

/// Rows and columns in one word.
#[inline]
pub(crate) fn board_code(geometry: &Geometry) -> u64 {
    (geometry.rows() as u64) << 8 | geometry.cols() as u64
}

/// Identifies the rules under which the entries were proven.
pub(crate) fn rules_id() -> u64 {
    RULES_TEXT.bytes().fold(1, |state, byte| mix(state, byte.into()))
}

impl Layout {
    /// Splits `bytes`: an eighth for numbers, three eighths for lemma slots with their tags, the rest for sets. Linear boards have few
    /// positions and long fights, whose sets hold a thousand boards in the mean (1x12): there a sixteenth, an eighth and the rest.
    pub fn new(bytes: u64, geometry: &Geometry) -> Result<Layout, TableError> {
        let refuse = |expected: String| TableError::Size { value: bytes, expected };
        if bytes < LEAST_BYTES {
            return Err(refuse(format!("at least {LEAST_BYTES} bytes (1MiB)")));
        }
        if let Some(memory) = memory_bytes()
            && bytes > memory
        {
            return Err(refuse(format!("at most this machine's memory, {memory} bytes")));
        }
        let bytes = usize::try_from(bytes).map_err(|_| refuse("a size that fits the address space".to_owned()))? & !4095;
        let words = bytes / 8 - HEADER_WORDS;
        let (numbers_share, slots_share) = if geometry.rows().min(geometry.cols()) == 1 { (1, 2) } else { (2, 6) };
        let number_buckets = words * numbers_share / 16 / (2 * NUMBER_WAYS);
        let buckets = (words * slots_share / 16 / (WAYS + WAYS * SLOT_WORDS)) & !1;
        let tags = HEADER_WORDS;
        let slots = tags + buckets * WAYS;
        let numbers = slots + buckets * WAYS * SLOT_WORDS;
        let index = numbers + number_buckets * 2 * NUMBER_WAYS;
        // Nodes of the ring have some 5 words, and half a turn of them may be shared; one that the index has forgotten is stored twice.
        let ring = index + (bytes / 8 - index) / 8 / INDEX_WAYS * INDEX_WAYS;
        Ok(Layout { bytes, buckets, tags, number_buckets, numbers, slots, index, ring, ring_words: bytes / 8 - ring })
    }

    fn header(&self, words: &Words, geometry: &Geometry, clean: bool, saved: bool) -> [u64; CHECKSUM + 1] {
        let mut header = [
            MAGIC,
            VERSION,
            BYTE_ORDER,
            rules_id(),
            board_code(geometry),
            self.bytes as u64,
            self.buckets as u64,
            self.number_buckets as u64,
            self.ring_words as u64,
            u64::from(clean),
            u64::from(saved),
            // Were it to shrink unnoticed, nodes of the ring would be taken for others.
            self.ring_head(words).load(Ordering::Acquire),
            0,
        ];
        header[CHECKSUM] = header[..CHECKSUM].iter().fold(0, |state, &word| mix(state, word));
        header
    }

    /// Writes the header; the caller flushes.
    pub fn write_header(&self, words: &Words, geometry: &Geometry, clean: bool, saved: bool) {
        for (word, value) in words.all().iter().zip(self.header(words, geometry, clean, saved)) {
            word.store(value, Ordering::Release);
        }
    }

    /// Why the mapped file may not be believed, if so.
    pub fn distrust(&self, words: &Words, geometry: &Geometry) -> Option<String> {
        let found: Vec<u64> = words.all()[..=CHECKSUM].iter().map(|word| word.load(Ordering::Acquire)).collect();
        let expected = self.header(words, geometry, true, found[SAVED] == 1);
        let names = [
            "magic",
            "format version",
            "byte order",
            "rules id",
            "board",
            "size",
            "bucket count",
            "number bucket count",
            "size of the ring",
        ];
        if let Some(at) = (0..CLEAN).find(|&at| found[at] != expected[at]) {
            return Some(format!("its {} is {:#x}, expected {:#x}", names[at], found[at], expected[at]));
        }
        match found[CLEAN] {
            1 if found[CLEAN..] == expected[CLEAN..] => None,
            0 => Some("it was not closed cleanly".to_owned()),
            _ => Some("its header is damaged".to_owned()),
        }
    }

    /// Whether the header says that the store held every lemma when the table was closed.
    pub fn saved(&self, words: &Words) -> bool {
        words.all()[SAVED].load(Ordering::Acquire) == 1
    }

    /// The state of the sweep over the slots, which goes on where it was when a file is opened again.
    pub fn sweep<'a>(&self, words: &'a Words) -> SweepState<'a> {
        let [new_words, least_cost, again @ ..] = &words.all()[SWEEP..][..SWEEP_WORDS] else { unreachable!("the header is longer") };
        SweepState { new_words, least_cost, again }
    }

    /// The count of words ever written to the ring.
    pub fn ring_head<'a>(&self, words: &'a Words) -> &'a AtomicU64 {
        &words.all()[RING_HEAD]
    }
}

/// Physical memory, if the system tells.
fn memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib: u64 = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

//! The sets of lemmas: a ring of sealed nodes that lemmas share.
//!
//! A set of prints is a tree: up to [`LEAF`] prints are a leaf, more are split by their next bits among 2 to 16 subtrees, as many as
//! make leaves of half [`LEAF`] or more. The split depends on the set alone, so equal parts of two sets are equal nodes, and an
//! index by content finds the node that is there already. The set of a lemma is that of the lemma below and a board, or a
//! union; on long fights most of it is shared (README, Measured).
//!
//! **Why a node is what it says.** A reference names an *offset in words ever written*, and no two nodes ever have the same one. The
//! node's last word, its seal, is the hash of that offset and of its other words as this reader loaded them, so what is read under
//! an offset is what was written under it, whole, or nothing: words overwritten by a later turn of the ring or by half of a write
//! fail the test but for a chance of 2^-64. The references in a node and in a slot are under the seal of that node or slot.
//! The index proves nothing: what it points to is read and tested before it is shared. A leaf is compared word by word; a split
//! carries the hash of all prints below it, of 64 bits like the seals and as unlikely to agree by chance.

use crate::layout::mix;
use crate::sealed::hash_words;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use superko_rules::Board;
use superko_search::{LemmaSets, Print};

/// Most prints in a leaf.
const LEAF: usize = 32;
/// Bits of a print by which one node splits its prints at most.
const WIDEST: u32 = 4;
/// Words of the largest leaf, two prints each, and of the largest split, a content hash and references.
const LEAF_WORDS: usize = LEAF / 2;
const SPLIT_WORDS: usize = 1 + (1 << WIDEST);
/// A reference is the offset of a node above so many bits: the node's length in words without its seal, bits that only the index uses,
/// and whether the node is a leaf.
const OFFSET_AT: u32 = 16;
const LENGTH_BITS: u32 = 10;
const TAG: u64 = 31 << LENGTH_BITS;
const LEAF_FLAG: u64 = 1 << 15;
/// References in a bucket of the index: a cache line.
pub(crate) const INDEX_WAYS: usize = 8;
/// Words of the filter that comes before the excluded boards.
const FILTER_WORDS: usize = 4;

/// Reference to a node; zero is the empty set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeRef(pub u64);

impl NodeRef {
    pub const NONE: NodeRef = NodeRef(0);

    fn new(offset: u64, length: usize, leaf: bool) -> NodeRef {
        NodeRef((offset << OFFSET_AT) | (u64::from(leaf) * LEAF_FLAG) | length as u64)
    }

    fn offset(self) -> u64 {
        self.0 >> OFFSET_AT
    }

    fn length(self) -> usize {
        (self.0 & ((1 << LENGTH_BITS) - 1)) as usize
    }

    fn is_leaf(self) -> bool {
        self.0 & LEAF_FLAG != 0
    }
}

/// The ring, the count of words ever written to it, and the index of its nodes.
#[derive(Clone, Copy)]
pub(crate) struct Sets<'a> {
    pub ring: &'a [AtomicU64],
    pub head: &'a AtomicU64,
    pub index: &'a [AtomicU64],
}

/// What storing a set came to: where it is, a hash of its content alone, and the words that were written for it.
#[derive(Clone, Copy)]
pub(crate) struct Stored {
    pub node: NodeRef,
    pub hash: u64,
    pub written: u64,
}

impl Stored {
    pub const NONE: Stored = Stored { node: NodeRef::NONE, hash: 0, written: 0 };
}

impl<'a> Sets<'a> {
    /// Words written since the node was.
    pub fn age(&self, node: NodeRef) -> u64 {
        self.head.load(Acquire).saturating_sub(node.offset())
    }

    /// A node older than a tenth of a turn is written again rather than shared. A set has five levels at most (of 2^17 prints that spread as
    /// hashes do), and a split may be shared without a look at what is below, so when a set is stored no node of it is older than half a turn.
    fn is_young(&self, node: NodeRef) -> bool {
        self.age(node) <= self.ring.len() as u64 / 10
    }

    /// The words of the ring where a node of `length` words and its seal lie. A node never crosses the ring's end.
    #[inline]
    fn place(&self, offset: u64, length: usize) -> Option<&'a [AtomicU64]> {
        self.ring.get((offset % self.ring.len() as u64) as usize..)?.get(..length + 1)
    }

    /// Reads the words of a node, whose length `words` has; whether they are to be believed.
    ///
    /// Each word is loaded once and the very same value is hashed and returned: a writer may come by at any time.
    #[inline]
    fn read(&self, node: NodeRef, words: &mut [u64]) -> bool {
        // The age only saves the reading; the seal decides.
        if words.is_empty() || self.age(node) > self.ring.len() as u64 {
            return false;
        }
        let Some((seal, sources)) = self.place(node.offset(), words.len()).and_then(<[AtomicU64]>::split_last) else { return false };
        for (word, source) in words.iter_mut().zip(sources) {
            *word = source.load(Relaxed);
        }
        seal.load(Relaxed) == hash_words(node.offset(), words)
    }

    /// The words of a leaf or of a split.
    #[inline]
    fn small<'w>(&self, node: NodeRef, buffer: &'w mut [u64; SPLIT_WORDS]) -> Option<&'w [u64]> {
        let words = buffer.get_mut(..node.length())?;
        self.read(node, words).then_some(words)
    }

    /// The bucket of the index for a content hash, and what its references to nodes of this kind look like below the offset.
    fn bucket(&self, hash: u64, length: usize, leaf: bool) -> (&'a [AtomicU64], u64) {
        let buckets = (self.index.len() / INDEX_WAYS) as u128;
        let first = ((u128::from(hash) * buckets) >> 64) as usize * INDEX_WAYS;
        (&self.index[first..first + INDEX_WAYS], NodeRef::new(0, length, leaf).0 | (hash << LENGTH_BITS & TAG))
    }

    /// The young nodes that the index knows under a content hash.
    fn candidates(&self, hash: u64, length: usize, leaf: bool) -> impl Iterator<Item = NodeRef> + '_ {
        let (bucket, kind) = self.bucket(hash, length, leaf);
        let entries = bucket.iter().map(|entry| entry.load(Acquire)).filter(move |entry| entry & ((1 << OFFSET_AT) - 1) == kind);
        entries.map(|entry| NodeRef(entry & !TAG)).filter(|&node| self.is_young(node))
    }

    /// Writes a new node and enters it in the index in place of the oldest of its bucket.
    fn append(&self, words: &[u64], leaf: bool, hash: u64) -> Stored {
        let (mut written, needed) = (0, words.len() as u64 + 1);
        let (offset, place) = loop {
            let offset = self.head.fetch_add(needed, Relaxed);
            written += needed;
            if let Some(place) = self.place(offset, words.len()) {
                break (offset, place);
            }
        };
        for (target, &word) in place.iter().zip(words) {
            target.store(word, Relaxed);
        }
        place[words.len()].store(hash_words(offset, words), Relaxed);
        let node = NodeRef::new(offset, words.len(), leaf);
        let (bucket, kind) = self.bucket(hash, words.len(), leaf);
        let oldest = bucket.iter().min_by_key(|entry| entry.load(Relaxed) >> OFFSET_AT).expect("a bucket has places");
        // Whoever sees the reference sees the words, or newer ones.
        oldest.store(node.0 | (kind & TAG), Release);
        Stored { node, hash, written }
    }

    /// The node with exactly these words: one that is there, or a new one.
    fn share_words(&self, words: &[u64], leaf: bool, hash: u64) -> Stored {
        let mut buffer = [0; SPLIT_WORDS];
        let mut long = Vec::new();
        let found = self.candidates(hash, words.len(), leaf).find(|&node| {
            let there = match buffer.get_mut(..words.len()) {
                Some(there) => there,
                None => {
                    long.resize(words.len(), 0);
                    &mut long[..]
                }
            };
            self.read(node, there) && there == words
        });
        found.map_or_else(|| self.append(words, leaf, hash), |node| Stored { node, hash, written: 0 })
    }

    /// Stores sorted prints without repetition.
    pub fn store(&self, prints: &[Print]) -> Stored {
        if prints.is_empty() { Stored::NONE } else { self.store_from(prints, 0) }
    }

    /// The prints agree in their first `from` bits.
    fn store_from(&self, prints: &[Print], from: u32) -> Stored {
        let width = width_for(prints.len());
        if width == 0 {
            let mut buffer = [0; LEAF_WORDS];
            let words = leaf_words(prints, &mut buffer);
            return self.share_words(words, true, hash_words(LEAF_SEED, words));
        }
        let hashes = part_hashes(prints, from, width);
        let hash = hash_words(SPLIT_SEED, &hashes[..1 << width]);
        self.shared_split(hash, width).unwrap_or_else(|| {
            let (mut words, mut written) = ([0; SPLIT_WORDS], 0);
            words[0] = hash;
            for (part, own) in parts(prints, from, width).enumerate().filter(|(_, own)| !own.is_empty()) {
                let shared = self.shared_split(hashes[part], width_for(own.len()));
                let child = shared.unwrap_or_else(|| self.store_from(own, from + width));
                words[1 + part] = child.node.0;
                written += child.written;
            }
            let stored = self.append(&words[..1 + (1 << width)], false, hash);
            Stored { written: stored.written + written, ..stored }
        })
    }

    /// The split of this width with these prints below it, if it is there.
    fn shared_split(&self, hash: u64, width: u32) -> Option<Stored> {
        let mut buffer = [0; SPLIT_WORDS];
        let mut splits = self.candidates(hash, 1 + (1 << width), false).filter(|_| width > 0);
        let node = splits.find(|&node| self.small(node, &mut buffer).is_some_and(|words| words[0] == hash))?;
        Some(Stored { node, hash, written: 0 })
    }

    /// Appends the prints of a stored set, sorted; `None` if a part is gone.
    pub fn load(&self, node: NodeRef, prints: &mut Vec<Print>) -> Option<()> {
        if node == NodeRef::NONE {
            return Some(());
        }
        let mut buffer = [0; SPLIT_WORDS];
        let words = self.small(node, &mut buffer)?;
        if !node.is_leaf() {
            return words[1..].iter().try_for_each(|&child| self.load(NodeRef(child), prints));
        }
        prints.extend(words.iter().flat_map(|&pair| [(pair >> 32) as Print, pair as Print]));
        if words.last().is_some_and(|&last| last >> 32 == last & 0xffff_ffff) {
            prints.pop();
        }
        Some(())
    }

    /// Whether a stored set holds one of these prints, which are sorted by hash bits; `None` if a part that would tell is gone.
    pub fn holds_any(&self, root: NodeRef, prints: &[Print]) -> Option<bool> {
        self.holds_any_from(root, prints, 0)
    }

    fn holds_any_from(&self, node: NodeRef, prints: &[Print], from: u32) -> Option<bool> {
        if node == NodeRef::NONE {
            return Some(false);
        }
        let mut buffer = [0; SPLIT_WORDS];
        let words = self.small(node, &mut buffer)?;
        if node.is_leaf() {
            return Some(prints.iter().any(|&print| leaf_holds(words, print)));
        }
        let width = (words.len() - 1).ilog2();
        let mut rest = prints;
        while let Some(&first) = rest.first() {
            let part = branch(first, from, width);
            let own = rest.iter().take_while(|&&print| branch(print, from, width) == part).count();
            if self.holds_any_from(NodeRef(words[1 + part]), &rest[..own], from + width)? {
                return Some(true);
            }
            rest = &rest[own..];
        }
        Some(false)
    }

    /// Stores what a lemma has beside its prints: the filter of boards that are not among them, and `X`.
    pub fn store_extras(&self, filter: [u64; 4], excluded: &[Board]) -> Stored {
        if filter == [0; 4] && excluded.is_empty() {
            return Stored::NONE;
        }
        let words: Vec<u64> = filter.into_iter().chain(excluded.iter().flat_map(|board| [board.black, board.white])).collect();
        self.share_words(&words, false, hash_words(EXTRAS_SEED, &words))
    }

    /// Reads them into `sets`; `None` if they are gone.
    pub fn load_extras(&self, node: NodeRef, sets: &mut LemmaSets) -> Option<()> {
        if node == NodeRef::NONE {
            return Some(());
        }
        let mut words = vec![0; node.length()];
        let (filter, boards) = self.read(node, &mut words).then(|| words.split_first_chunk::<FILTER_WORDS>())??;
        sets.bloom = *filter;
        sets.excluded.extend(boards.chunks_exact(2).map(|pair| Board { black: pair[0], white: pair[1] }));
        Some(())
    }
}

/// What content hashes of leaves, splits and extras start from.
const LEAF_SEED: u64 = 1;
const SPLIT_SEED: u64 = 2;
const EXTRAS_SEED: u64 = 3;

/// Bits by which so many prints are split; zero if they are a leaf. More than [`LEAF`] prints differ before their 28th bit, so no
/// split needs bits beyond a print's.
fn width_for(prints: usize) -> u32 {
    prints.div_ceil(LEAF).next_power_of_two().ilog2().min(WIDEST)
}

/// Which part of a node that splits by `width` bits after the first `from` a print belongs to.
#[inline]
fn branch(print: Print, from: u32, width: u32) -> usize {
    (print << from >> (Print::BITS - width)) as usize
}

/// The parts of sorted prints under a split.
fn parts(prints: &[Print], from: u32, width: u32) -> impl Iterator<Item = &[Print]> {
    let mut rest = prints;
    (0..1 << width).map(move |part| {
        let length = rest.iter().take_while(|&&print| branch(print, from, width) == part).count();
        rest.split_off(..length).expect("it is within the rest")
    })
}

/// The words of a leaf: prints two a word, an odd one twice.
fn leaf_words<'w>(prints: &[Print], buffer: &'w mut [u64; LEAF_WORDS]) -> &'w [u64] {
    for (word, pair) in buffer.iter_mut().zip(prints.chunks(2)) {
        *word = u64::from(pair[0]) << 32 | u64::from(*pair.last().expect("a chunk is not empty"));
    }
    &buffer[..prints.len().div_ceil(2)]
}

fn leaf_holds(words: &[u64], print: Print) -> bool {
    // Without branches, so that the compiler compares several at a time.
    words.iter().fold(false, |holds, &pair| holds | ((pair >> 32) as Print == print) | (pair as Print == print))
}

/// Hash of all prints below a node.
fn content(prints: &[Print], from: u32) -> u64 {
    let width = width_for(prints.len());
    if width == 0 {
        return hash_words(LEAF_SEED, leaf_words(prints, &mut [0; LEAF_WORDS]));
    }
    hash_words(SPLIT_SEED, &part_hashes(prints, from, width)[..1 << width])
}

/// Hashes of the parts under a split, 0 for none.
fn part_hashes(prints: &[Print], from: u32, width: u32) -> [u64; 1 << WIDEST] {
    let mut hashes = [0; 1 << WIDEST];
    for (hash, own) in hashes.iter_mut().zip(parts(prints, from, width)) {
        *hash = if own.is_empty() { 0 } else { content(own, from + width) };
    }
    hashes
}

/// Hash of the content of all sets of a lemma.
pub(crate) fn content_hash(prints: &Stored, extras: &Stored) -> u64 {
    mix(prints.hash, extras.hash)
}

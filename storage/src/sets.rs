//! The sets of lemmas: a ring of sealed nodes that lemmas share.
//!
//! A set is a list of a few *parts*. The set of a lemma is that of a lemma below and a board, or a union, mostly with one lemma below that has
//! most of it: it takes over that one's parts, under the symmetry between the two positions, and adds a part of what is new. A part at most
//! half as large as what comes after it is stored again with it, as in a log-structured merge tree.
//!
//! A part is a tree: up to [`LEAF`] prints are a leaf, more are split by their next bits among 2 to 16 subtrees, as many as
//! make leaves of half [`LEAF`] or more. The split depends on the prints alone, so equal subtrees are equal nodes, and an
//! index by content finds the node that is there already.
//!
//! **Why a node is what it says.** A reference names an *offset in words ever written*, and no two nodes ever have the same one. The
//! node's last word, its seal, is the hash of that offset and of its other words as this reader loaded them, so what is read under
//! an offset is what was written under it, whole, or nothing: words overwritten by a later turn of the ring or by half of a write
//! fail the test but for a chance of 2^-64. The references in a node and in a slot are under the seal of that node or slot.
//! The index proves nothing: what it points to is read and compared word by word before it is shared, a split after all that is below it.
//! No hash stands for a set.
//!
//! **Why no print is lost.** The parts of a [`BoardSet`] and its `rest` are all its prints: a table names parts for prints that it
//! has stored or read whole, and insertion, union and symmetry keep that up ([`BoardSet::parts`]). A part belongs to one table: in another
//! its name would be an offset at which anything may lie.

use crate::sealed::hash_words;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use superko_rules::{Board, Geometry};
use superko_search::{BoardSet, LemmaSets, Print, SetPart, map_prints, merge_prints};

/// Most prints in a leaf.
const LEAF: usize = 32;
/// Most parts of a set. Each is one more place to look at, and more would save little (1x14, White: 29.8 MB written with four, 25.1 MB with six,
/// 23.2 MB with eight).
pub(crate) const MOST_PARTS: usize = 6;
/// Bits of a print by which one node splits its prints at most.
const WIDEST: u32 = 4;
/// Words of the largest leaf, two prints each, and of the largest split: the offset of the oldest node below, and references.
const LEAF_WORDS: usize = LEAF / 2;
const SPLIT_HEAD: usize = 1;
const SPLIT_WORDS: usize = SPLIT_HEAD + (1 << WIDEST);
/// A reference is the offset of a node above so many bits: the node's length in words without its seal, the symmetry that maps a part to
/// its set, whether the node is a list of parts (the index has bits of the content's hash there), and whether it is a leaf.
const OFFSET_AT: u32 = 16;
const LENGTH_BITS: u32 = 10;
const TAG: u64 = 31 << LENGTH_BITS;
const SYM: u64 = 7 << LENGTH_BITS;
const LIST_FLAG: u64 = 8 << LENGTH_BITS;
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

    pub fn offset(self) -> u64 {
        self.0 >> OFFSET_AT
    }

    fn length(self) -> usize {
        (self.0 & ((1 << LENGTH_BITS) - 1)) as usize
    }

    fn is_leaf(self) -> bool {
        self.0 & LEAF_FLAG != 0
    }

    /// The symmetry from the frame of a part to that of its set.
    fn sym(self) -> u8 {
        ((self.0 & SYM) >> LENGTH_BITS) as u8
    }

    fn is_list(self) -> bool {
        self.0 & LIST_FLAG != 0
    }

    fn under(self, sym: u8) -> NodeRef {
        NodeRef(self.0 & !TAG | u64::from(sym) << LENGTH_BITS)
    }
}

/// The ring, the count of words ever written to it, and the index of its nodes.
#[derive(Clone, Copy)]
pub(crate) struct Sets<'a> {
    pub geometry: &'static Geometry,
    /// Tells the table's parts from those of any other.
    pub id: u64,
    pub ring: &'a [AtomicU64],
    pub head: &'a AtomicU64,
    pub index: &'a [AtomicU64],
}

/// What storing came to: where it is, and the words that were written for it.
#[derive(Clone, Copy)]
pub(crate) struct Stored {
    pub node: NodeRef,
    pub written: u64,
    /// The least offset of its nodes.
    pub oldest: u64,
}

impl Stored {
    pub const NONE: Stored = Stored { node: NodeRef::NONE, written: 0, oldest: u64::MAX };
}

impl<'a> Sets<'a> {
    /// Words written since the node was.
    pub fn age(&self, node: NodeRef) -> u64 {
        self.head.load(Acquire).saturating_sub(node.offset())
    }

    /// Whether nodes may be shared of which the oldest has this offset: those that are written again before they are overwritten, see
    /// [`MappedTable::sweep`](crate::MappedTable).
    pub fn is_young(&self, offset: u64) -> bool {
        self.head.load(Acquire).saturating_sub(offset) <= self.ring.len() as u64 / 2
    }

    /// The offset of the oldest node of a set; `None` if a node that tells is gone.
    pub fn oldest(&self, root: NodeRef) -> Option<u64> {
        let mut oldest = root.offset();
        for &part in self.part_nodes(root, &mut [0; SPLIT_WORDS])?.0 {
            let part = NodeRef(part);
            let below = if part.is_leaf() { part.offset() } else { self.small(part, &mut [0; SPLIT_WORDS])?[0] };
            oldest = oldest.min(below);
        }
        Some(oldest)
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
        entries.map(|entry| NodeRef(entry & !TAG)).filter(|&node| self.is_young(node.offset()))
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
        Stored { node, written, oldest: offset }
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
        found.map_or_else(|| self.append(words, leaf, hash), |node| Stored { node, written: 0, oldest: node.offset() })
    }

    /// Stores the prints of a set, and says which parts the set has now. Where a part is gone, all prints are stored as one part; `None` if
    /// they are not at hand.
    pub fn store_set(&self, set: &BoardSet) -> Option<(Stored, Vec<SetPart>)> {
        let (parts, rest) = set.parts();
        if parts.is_empty() && set.prints().is_empty() {
            return Some((Stored::NONE, Vec::new()));
        }
        let whole = || {
            let prints = set.is_loaded().then(|| set.prints())?;
            let stored = self.store_from(prints, 0);
            Some((stored, vec![self.part(stored.node, prints.len())]))
        };
        if parts.is_empty() || parts.iter().any(|part| part.table != self.id) {
            return whole();
        }
        let mut written = 0;
        let mut kept = parts.to_vec();
        let (mut fresh, mut old, mut spare) = (rest.to_vec(), Vec::new(), Vec::new());
        while let Some(&last) = kept.last()
            && (2 * last.prints as usize <= fresh.len() || !fresh.is_empty() && kept.len() >= MOST_PARTS)
        {
            old.clear();
            if self.load_part(NodeRef(last.node), last.sym, &mut old).is_none() {
                return whole();
            }
            merge_prints(&old, &fresh, &mut spare);
            std::mem::swap(&mut fresh, &mut spare);
            kept.pop();
        }
        for part in &mut kept {
            let Some(again) = self.refreshed(NodeRef(part.node)) else { return whole() };
            part.node = again.node.0;
            written += again.written;
        }
        if !fresh.is_empty() {
            let stored = self.store_from(&fresh, 0);
            written += stored.written;
            kept.push(self.part(stored.node, fresh.len()));
        }
        kept.sort_by_key(|part| std::cmp::Reverse(part.prints));
        let nodes: Vec<NodeRef> = kept.iter().map(|part| NodeRef(part.node).under(part.sym)).collect();
        let counts: Vec<u32> = kept.iter().map(|part| part.prints).collect();
        let root = self.list(&nodes, &counts);
        Some((Stored { written: written + root.written, ..root }, kept))
    }

    /// The root of a set with these parts.
    fn list(&self, nodes: &[NodeRef], prints: &[u32]) -> Stored {
        match nodes {
            [] => Stored::NONE,
            &[node] => Stored { node, ..Stored::NONE },
            nodes => {
                let mut words: Vec<u64> = nodes.iter().map(|node| node.0).collect();
                words
                    .extend(prints.chunks(2).map(|pair| u64::from(pair[0]) << 32 | u64::from(*pair.last().expect("a chunk is not empty"))));
                let list = self.share_words(&words, false, hash_words(LIST_SEED, &words));
                Stored { node: NodeRef(list.node.0 | LIST_FLAG), ..list }
            }
        }
    }

    /// A part whose nodes are all young: itself, or one with the same prints that is stored already or now; `None` if it is gone.
    fn refreshed(&self, part: NodeRef) -> Option<Stored> {
        let mut buffer = [0; SPLIT_WORDS];
        let words = self.small(part, &mut buffer)?;
        let oldest = if part.is_leaf() { part.offset() } else { words[0] };
        if self.is_young(oldest) {
            return Some(Stored { node: part, written: 0, oldest });
        }
        let mut prints = Vec::new();
        self.load_from(part, &mut prints)?;
        let again = self.store_from(&prints, 0);
        Some(Stored { node: again.node.under(part.sym()), ..again })
    }

    /// Stores a set again, as far as it is not young, part by part: what sets share they share still. `None` if a part is gone.
    pub fn store_again(&self, root: NodeRef) -> Option<Stored> {
        let mut buffer = [0; SPLIT_WORDS];
        let (nodes, counts) = self.part_nodes(root, &mut buffer)?;
        let again: Vec<Stored> = nodes.iter().map(|&part| self.refreshed(NodeRef(part))).collect::<Option<_>>()?;
        let counts: Vec<u32> = (0..nodes.len()).map(|at| count_at(counts, at)).collect();
        let root = self.list(&again.iter().map(|part| part.node).collect::<Vec<_>>(), &counts);
        Some(Stored { written: again.iter().map(|part| part.written).sum::<u64>() + root.written, ..root })
    }

    /// References to the parts of a set, and the numbers of their prints if they are several.
    fn part_nodes<'w>(&self, root: NodeRef, buffer: &'w mut [u64; SPLIT_WORDS]) -> Option<(&'w [u64], &'w [u64])> {
        if root.is_list() {
            let words = self.small(root, buffer)?;
            // Two words for two prints' counts and one each for the references: of `2 n + n` halves, rounded up, `n` are the nodes.
            return words.split_at_checked(2 * words.len() / 3);
        }
        buffer[0] = root.0;
        Some((&buffer[..usize::from(root != NodeRef::NONE)], &[]))
    }

    fn part(&self, node: NodeRef, prints: usize) -> SetPart {
        SetPart { table: self.id, node: node.under(0).0, sym: node.sym(), prints: prints as u32 }
    }

    /// The prints agree in their first `from` bits.
    fn store_from(&self, prints: &[Print], from: u32) -> Stored {
        let width = width_for(prints.len());
        if width == 0 {
            let mut buffer = [0; LEAF_WORDS];
            let words = leaf_words(prints, &mut buffer);
            return self.share_words(words, true, hash_words(LEAF_SEED, words));
        }
        let (mut words, mut written, mut oldest) = ([0; SPLIT_WORDS], 0, u64::MAX);
        for (part, own) in parts(prints, from, width).enumerate().filter(|(_, own)| !own.is_empty()) {
            let child = self.store_from(own, from + width);
            words[SPLIT_HEAD + part] = child.node.0;
            written += child.written;
            oldest = oldest.min(child.oldest);
        }
        words[0] = oldest;
        let words = &words[..SPLIT_HEAD + (1 << width)];
        let stored = self.share_words(words, false, hash_words(SPLIT_SEED, words));
        Stored { written: stored.written + written, oldest, ..stored }
    }

    /// Names the parts of a stored set with so many prints; `None` if the list is gone.
    pub fn parts(&self, root: NodeRef, count: u32, parts: &mut Vec<SetPart>) -> Option<()> {
        let mut buffer = [0; SPLIT_WORDS];
        let (nodes, counts) = self.part_nodes(root, &mut buffer)?;
        let count_of = |at| if counts.is_empty() { count } else { count_at(counts, at) };
        parts.extend(nodes.iter().enumerate().map(|(at, &node)| self.part(NodeRef(node), count_of(at) as usize)));
        Some(())
    }

    /// Whether a part holds one of these prints, which are sorted by hash bits; `None` if what would tell is gone.
    pub fn part_holds_any(&self, part: &SetPart, prints: &[Print]) -> Option<bool> {
        if part.sym == 0 {
            return self.holds_any_from(NodeRef(part.node), prints, 0);
        }
        let mut images = prints.to_vec();
        map_prints(self.geometry, self.geometry.inverse(part.sym), &mut images);
        self.holds_any_from(NodeRef(part.node), &images, 0)
    }

    /// Appends the prints of a part, sorted; `None` if they are gone.
    pub fn part_prints(&self, part: &SetPart, prints: &mut Vec<Print>) -> Option<()> {
        self.load_part(NodeRef(part.node), part.sym, prints)
    }

    /// Appends the images of a part's prints under `sym`, sorted.
    fn load_part(&self, part: NodeRef, sym: u8, prints: &mut Vec<Print>) -> Option<()> {
        let start = prints.len();
        self.load_from(part, prints)?;
        map_prints(self.geometry, sym, &mut prints[start..]);
        Some(())
    }

    /// Appends the prints below a node.
    fn load_from(&self, node: NodeRef, prints: &mut Vec<Print>) -> Option<()> {
        if node == NodeRef::NONE {
            return Some(());
        }
        let mut buffer = [0; SPLIT_WORDS];
        let words = self.small(node, &mut buffer)?;
        if !node.is_leaf() {
            return words[SPLIT_HEAD..].iter().try_for_each(|&child| self.load_from(NodeRef(child), prints));
        }
        prints.extend(words.iter().flat_map(|&pair| [(pair >> 32) as Print, pair as Print]));
        if words.last().is_some_and(|&last| last >> 32 == last & 0xffff_ffff) {
            prints.pop();
        }
        Some(())
    }

    /// Whether a stored set holds one of these prints, which are sorted by hash bits; `None` if a part that would tell is gone.
    pub fn holds_any(&self, root: NodeRef, prints: &[Print]) -> Option<bool> {
        for &part in self.part_nodes(root, &mut [0; SPLIT_WORDS])?.0 {
            if self.part_holds_any(&self.part(NodeRef(part), 0), prints)? {
                return Some(true);
            }
        }
        Some(false)
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
        let width = split_width(words);
        let mut rest = prints;
        while let Some(&first) = rest.first() {
            let part = branch(first, from, width);
            let own = rest.iter().take_while(|&&print| branch(print, from, width) == part).count();
            if self.holds_any_from(NodeRef(words[SPLIT_HEAD + part]), &rest[..own], from + width)? {
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

/// What the hashes of leaves, splits, extras and lists start from.
const LEAF_SEED: u64 = 1;
const SPLIT_SEED: u64 = 2;
const EXTRAS_SEED: u64 = 3;
const LIST_SEED: u64 = 4;

/// Bits by which a split with these words splits.
fn split_width(words: &[u64]) -> u32 {
    (words.len() - SPLIT_HEAD).ilog2()
}

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

fn leaf_holds(words: &[u64], print: Print) -> bool {
    // Without branches, so that the compiler compares several at a time.
    words.iter().fold(false, |holds, &pair| holds | ((pair >> 32) as Print == print) | (pair as Print == print))
}

/// The words of a leaf: prints two a word, an odd one twice.
fn leaf_words<'w>(prints: &[Print], buffer: &'w mut [u64; LEAF_WORDS]) -> &'w [u64] {
    for (word, pair) in buffer.iter_mut().zip(prints.chunks(2)) {
        *word = u64::from(pair[0]) << 32 | u64::from(*pair.last().expect("a chunk is not empty"));
    }
    &buffer[..prints.len().div_ceil(2)]
}

/// The number at this place of words that hold two each.
fn count_at(words: &[u64], at: usize) -> u32 {
    words.get(at / 2).map_or(0, |&pair| if at.is_multiple_of(2) { (pair >> 32) as u32 } else { pair as u32 })
}

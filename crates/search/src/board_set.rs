//! `B`, the boards that the winner's stone moves create, as an over-approximation without false "absent" (theory, Reuse).
//!
//! A board enters as a 32-bit *print*: 29 hash bits of its canonical code and the symmetry that leads from the canonical board to
//! it. A print can therefore be carried through a symmetry (only the three low bits change), and two boards share a print only if
//! 29 bits of their codes' hashes agree. Sharing makes the set look larger, never smaller, so no proof rests on the hash.
//! In front of the prints stand two cheap tests that need no look-up: the least stone count and the cube.

use crate::Table;
use superko_rules::{Board, Canonical, Geometry};

/// 29 hash bits of a board's canonical code, then three bits naming a symmetry that maps the canonical board to the board.
pub type Print = u32;

/// Which states each point takes among the boards of a set, and the least number of stones. Boards outside are not in the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cube {
    /// Points where some board has a black stone.
    pub black: u64,
    /// Points where some board has a white stone.
    pub white: u64,
    /// Points that some board leaves empty.
    pub empty: u64,
    /// The least number of stones on a board of the set; 255 for the empty set.
    pub least_stones: u8,
}

impl Cube {
    /// The cube of no boards: it contains none.
    pub const EMPTY: Cube = Cube { black: 0, white: 0, empty: 0, least_stones: u8::MAX };

    /// Whether `board` may be in the set.
    #[inline]
    pub fn admits(&self, board: Board) -> bool {
        let occupied = board.black | board.white;
        // `empty` may hold bits past the board's points; such points are empty on every board.
        (board.black & !self.black) | (board.white & !self.white) == 0
            && occupied.count_ones() >= u32::from(self.least_stones)
            && !self.empty & !occupied & self.domain() == 0
    }

    /// Points that any board of the set speaks of.
    #[inline]
    fn domain(&self) -> u64 {
        self.black | self.white | self.empty
    }

    fn add(&mut self, geometry: &Geometry, board: Board) {
        self.black |= board.black;
        self.white |= board.white;
        self.empty |= geometry.full() & !board.occupied();
        self.least_stones = self.least_stones.min(board.occupied().count_ones() as u8);
    }

    fn join(&mut self, other: &Cube) {
        self.black |= other.black;
        self.white |= other.white;
        self.empty |= other.empty;
        self.least_stones = self.least_stones.min(other.least_stones);
    }

    fn map(&self, geometry: &Geometry, sym: u8) -> Cube {
        Cube {
            black: geometry.map_mask(sym, self.black),
            white: geometry.map_mask(sym, self.white),
            empty: geometry.map_mask(sym, self.empty),
            least_stones: self.least_stones,
        }
    }
}

/// Where a table keeps a part of a set's prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetPart {
    /// The table that keeps it: parts mean nothing to any other.
    pub table: u64,
    /// Its name in that table.
    pub node: u64,
    /// The symmetry from its frame to that of the set.
    pub sym: u8,
    /// How many prints it has.
    pub prints: u32,
}

/// The set `B` of a lemma.
///
/// A set that came out of a table may be known by the parts that the table keeps, without its prints: to add a board takes no look at the
/// others. [`load`](BoardSet::load) reads them.
#[derive(Clone, Debug)]
pub struct BoardSet {
    /// Sorted prints, without repetition; none if there are parts and they were not read.
    prints: Vec<Print>,
    /// Boards known only by a Bloom filter of their canonical codes (a stored lemma whose prints were given up); all zero if none.
    bloom: [u64; 4],
    /// The cube of every board in the set, however it is known.
    cube: Cube,
    /// The Bloom filter of the whole set, kept up to date because sets grow by unions.
    filter: [u64; 4],
    /// Parts that a table keeps; none if nothing is known of that.
    parts: Vec<SetPart>,
    /// Where there are parts: sorted prints, all that are in none of them among these.
    rest: Vec<Print>,
}

/// Sets are equal if they have the same boards, wherever a table keeps them.
impl PartialEq for BoardSet {
    fn eq(&self, other: &BoardSet) -> bool {
        debug_assert!(self.is_loaded() && other.is_loaded());
        (&self.prints, self.bloom, self.cube, self.filter) == (&other.prints, other.bloom, other.cube, other.filter)
    }
}

impl Eq for BoardSet {}

/// A bijective mix of 64 bits (the finalizer of SplitMix64).
#[inline]
pub(crate) fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The 29 hash bits of a canonical code, in the upper bits of a print.
#[inline]
fn hash_bits(code: u128) -> Print {
    (mix(code as u64 ^ mix((code >> 64) as u64 ^ 0x5bd1_e995)) as u32) & !7
}

/// The two filter bits of a print. Only its hash bits count, so the filter is the same under every symmetry.
#[inline]
fn bloom_bits(print: Print) -> [u32; 2] {
    let spread = mix(u64::from(print >> 3) | 1 << 40);
    [(spread & 255) as u32, (spread >> 8 & 255) as u32]
}

#[inline]
fn bloom_has(bloom: &[u64; 4], print: Print) -> bool {
    bloom_bits(print).iter().all(|&bit| bloom[bit as usize >> 6] >> (bit & 63) & 1 == 1)
}

/// The Bloom filter of a set of prints, joined with `base`.
fn bloom_of(prints: &[Print], base: [u64; 4]) -> [u64; 4] {
    let mut bloom = base;
    for some in prints.chunks(256) {
        for bit in some.iter().flat_map(|&print| bloom_bits(print)) {
            bloom[bit as usize >> 6] |= 1 << (bit & 63);
        }
        // A full filter stays full.
        if bloom == [u64::MAX; 4] {
            break;
        }
    }
    bloom
}

impl Default for BoardSet {
    fn default() -> Self {
        BoardSet { prints: Vec::new(), bloom: [0; 4], cube: Cube::EMPTY, filter: [0; 4], parts: Vec::new(), rest: Vec::new() }
    }
}

/// A board with what the set tests need of it, computed once when it enters the history.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownBoard {
    pub board: Board,
    pub canonical: Canonical,
    hash: Print,
}

impl KnownBoard {
    #[inline]
    pub fn new(board: Board, canonical: Canonical) -> Self {
        KnownBoard { board, canonical, hash: hash_bits(canonical.code) }
    }

    /// The hash bits of the board's prints.
    pub fn hash(&self) -> Print {
        self.hash
    }

    /// Every print under which this board, carried through `sym`, may have entered a set.
    #[inline]
    pub fn prints<'a>(&self, geometry: &'a Geometry, sym: u8) -> impl Iterator<Item = Print> + use<'a> {
        let hash = self.hash;
        superko_rules::bits(self.canonical.syms.into())
            .map(move |to_canonical| hash | Print::from(geometry.compose(sym, geometry.inverse(to_canonical as u8))))
    }

    /// Whether the filter may hold this board.
    #[inline]
    pub fn in_bloom(&self, bloom: &[u64; 4]) -> bool {
        bloom_has(bloom, self.hash)
    }
}

fn join_bloom(bloom: &mut [u64; 4], other: &[u64; 4]) {
    for (word, &more) in bloom.iter_mut().zip(other) {
        *word |= more;
    }
}

impl BoardSet {
    /// The set with these sorted `prints` and the boards that only `bloom` knows.
    pub fn new(prints: Vec<Print>, bloom: [u64; 4], cube: Cube) -> BoardSet {
        let filter = bloom_of(&prints, bloom);
        BoardSet { prints, bloom, cube, filter, parts: Vec::new(), rest: Vec::new() }
    }

    /// [`BoardSet::new`] where the filter of the whole set is known.
    pub fn with_filter(prints: Vec<Print>, bloom: [u64; 4], cube: Cube, filter: [u64; 4]) -> BoardSet {
        BoardSet { prints, bloom, cube, filter, parts: Vec::new(), rest: Vec::new() }
    }

    /// The set of which a table says that these parts make up its prints. Nothing changes if there are none.
    #[must_use]
    pub fn kept_in(self, parts: Vec<SetPart>) -> BoardSet {
        if parts.is_empty() { self } else { BoardSet { parts, rest: Vec::new(), ..self } }
    }

    /// Forgets the prints if there are parts that stand for them.
    pub(crate) fn unload(&mut self) {
        if !self.parts.is_empty() {
            self.prints = Vec::new();
        }
    }

    /// Goes by the filter alone, which knows all boards of the set: for when parts are gone.
    pub(crate) fn fold(&mut self) {
        *self = BoardSet::with_filter(Vec::new(), self.filter, self.cube, self.filter);
    }

    /// Forgets what tables keep of the prints, which must be here.
    pub(crate) fn forget_parts(&mut self) {
        assert!(self.is_loaded(), "the prints of a set were not read");
        (self.parts, self.rest) = (Vec::new(), Vec::new());
    }

    /// Whether the prints are here.
    pub fn is_loaded(&self) -> bool {
        self.parts.is_empty() || !self.prints.is_empty()
    }

    /// Reads the prints, if they are not here, from the table that keeps the parts; `false` if one is gone.
    pub fn load(&mut self, table: &dyn Table) -> bool {
        if self.is_loaded() {
            return true;
        }
        let mut prints = self.rest.clone();
        let whole = load_parts(table, &self.parts, &mut prints);
        if whole {
            self.prints = prints;
        }
        whole
    }

    /// How many prints there are, at most: parts may overlap.
    pub fn count(&self) -> usize {
        if self.is_loaded() {
            self.prints.len()
        } else {
            self.parts.iter().map(|part| part.prints as usize).sum::<usize>() + self.rest.len()
        }
    }

    /// Where a table keeps parts of the prints, and the sorted prints that are in no part; without parts, nothing is known.
    pub fn parts(&self) -> (&[SetPart], &[Print]) {
        (&self.parts, &self.rest)
    }

    /// Sorted prints, without repetition. They must be here.
    pub fn prints(&self) -> &[Print] {
        assert!(self.is_loaded(), "the prints of a set were not read");
        &self.prints
    }

    /// Bloom filter of the boards that are not among the prints; zero if there are none.
    pub fn bloom(&self) -> [u64; 4] {
        self.bloom
    }

    /// Bloom filter of all boards.
    pub fn filter(&self) -> [u64; 4] {
        self.filter
    }

    /// Bounds on all boards.
    pub fn cube(&self) -> &Cube {
        &self.cube
    }

    /// Whether `board` may be in the set, of which `table` keeps the parts if they were not read. `false` is certain.
    pub(crate) fn may_contain(&self, table: &dyn Table, board: &KnownBoard) -> bool {
        if !self.cube.admits(board.board) || !board.in_bloom(&self.filter) {
            return false;
        }
        let prints: Vec<Print> = board.prints(table.geometry(), 0).collect();
        let among = |list: &[Print]| prints.iter().any(|print| list.binary_search(print).is_ok());
        board.in_bloom(&self.bloom)
            || if self.is_loaded() {
                among(&self.prints)
            } else {
                // Of a part that is gone nothing is certain.
                among(&self.rest) || self.parts.iter().any(|part| table.part_holds_any(part, &prints).unwrap_or(true))
            }
    }

    pub(crate) fn insert(&mut self, geometry: &Geometry, board: &KnownBoard) {
        self.cube.add(geometry, board.board);
        let print = board.prints(geometry, 0).next().expect("a board has a canonicalising symmetry");
        if self.is_loaded() {
            let Err(at) = self.prints.binary_search(&print) else { return };
            self.prints.insert(at, print);
        }
        if !self.parts.is_empty()
            && let Err(at) = self.rest.binary_search(&print)
        {
            self.rest.insert(at, print);
        }
        self.filter = bloom_of(&[print], self.filter);
    }

    /// The union with `other`; `spare` is a buffer to work in. Both must be loaded.
    pub(crate) fn join(&mut self, other: &BoardSet, spare: &mut Vec<Print>) {
        assert!(self.is_loaded() && other.is_loaded(), "the prints of a set were not read");
        self.cube.join(&other.cube);
        join_bloom(&mut self.bloom, &other.bloom);
        join_bloom(&mut self.filter, &other.filter);
        if other.prints.is_empty() {
            return;
        }
        // The parts of the larger set stand for most of the union.
        let other_is_larger = other.prints.len() > self.prints.len();
        let (larger, smaller) = if other_is_larger { (other, &*self) } else { (&*self, other) };
        let mut fresh = Vec::new();
        if !larger.parts.is_empty() {
            prints_without(&smaller.prints, &larger.prints, &mut fresh);
            if !larger.rest.is_empty() {
                let mut rest = Vec::new();
                merge_prints(&larger.rest, &fresh, &mut rest);
                fresh = rest;
            }
        }
        merge_prints(&self.prints, &other.prints, spare);
        std::mem::swap(&mut self.prints, spare);
        self.rest = fresh;
        if other_is_larger {
            self.parts.clone_from(&other.parts);
        }
    }

    /// The set of the images under `sym`.
    pub(crate) fn map(mut self, geometry: &Geometry, sym: u8) -> BoardSet {
        if sym == 0 {
            return self;
        }
        for part in &mut self.parts {
            part.sym = geometry.compose(sym, part.sym);
        }
        map_prints(geometry, sym, &mut self.prints);
        map_prints(geometry, sym, &mut self.rest);
        BoardSet { cube: self.cube.map(geometry, sym), ..self }
    }
}

/// Adds the prints of all `parts` to sorted `prints`; `false` if one is gone.
pub fn load_parts(table: &dyn Table, parts: &[SetPart], prints: &mut Vec<Print>) -> bool {
    let (mut part_prints, mut union) = (Vec::new(), Vec::new());
    // Small ones first: tables name the largest first.
    parts.iter().rev().all(|part| {
        part_prints.clear();
        let found = table.part_prints(part, &mut part_prints);
        if prints.is_empty() {
            std::mem::swap(prints, &mut part_prints);
        } else {
            merge_prints(prints, &part_prints, &mut union);
            std::mem::swap(prints, &mut union);
        }
        found
    })
}

/// Puts the images of sorted prints in their places, sorted.
pub fn map_prints(geometry: &Geometry, sym: u8, prints: &mut [Print]) {
    if sym == 0 {
        return;
    }
    let images: [Print; 8] = std::array::from_fn(|by| if by < geometry.symmetries() { geometry.compose(sym, by as u8).into() } else { 0 });
    for print in prints.iter_mut() {
        *print = *print & !7 | images[(*print & 7) as usize];
    }
    // Only the low bits changed, so a print moves within a run of equal hash bits at most.
    for at in 1..prints.len() {
        let mut at = at;
        while at > 0 && prints[at] < prints[at - 1] {
            prints.swap(at, at - 1);
            at -= 1;
        }
    }
}

/// The union of sorted prints, in place of what `union` held.
pub fn merge_prints(left: &[Print], right: &[Print], union: &mut Vec<Print>) {
    union.clear();
    union.resize(left.len() + right.len(), 0);
    // Without branches on the data: which side is ahead is a coin toss.
    let (mut a, mut b, mut length) = (0, 0, 0);
    while a < left.len() && b < right.len() {
        let (x, y) = (left[a], right[b]);
        union[length] = x.min(y);
        length += 1;
        a += usize::from(x <= y);
        b += usize::from(y <= x);
    }
    union.truncate(length);
    union.extend_from_slice(&left[a..]);
    union.extend_from_slice(&right[b..]);
}

/// The sorted prints that are not among the sorted `others`, in place of what `without` held.
fn prints_without(prints: &[Print], others: &[Print], without: &mut Vec<Print>) {
    without.clear();
    without.resize(prints.len(), 0);
    let (mut a, mut b, mut length) = (0, 0, 0);
    while a < prints.len() && b < others.len() {
        let (x, y) = (prints[a], others[b]);
        without[length] = x;
        length += usize::from(x < y);
        a += usize::from(x <= y);
        b += usize::from(y <= x);
    }
    without.truncate(length);
    without.extend_from_slice(&prints[a..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryTable;

    /// The table of the tests answers for no part, as one does whose parts are gone: a board that cube and filter admit may be in the set.
    #[test]
    fn of_a_set_whose_parts_are_gone_nothing_is_certain() {
        let geometry = superko_rules::parse_board_size("3x3").expect("a board");
        let known = |black| {
            let board = Board { black, white: 0 };
            KnownBoard::new(board, geometry.canonical(board))
        };
        let table = MemoryTable::new(geometry);
        let mut set = BoardSet::default();
        set.insert(geometry, &known(1));
        let mut set = set.kept_in(vec![SetPart { table: 0, node: 1, sym: 0, prints: 1 }]);
        set.unload();
        assert!(set.may_contain(&table, &known(1)));
        assert!(!set.may_contain(&table, &known(3)), "the cube says that it is not");
        // What was added since is known.
        set.insert(geometry, &known(3));
        assert!(set.may_contain(&table, &known(3)) && set.parts().1.len() == 1);
        assert!(!set.load(&table) && !set.is_loaded());
        set.fold();
        assert!(set.is_loaded() && [1, 3].iter().all(|&black| set.may_contain(&table, &known(black))));
    }
}

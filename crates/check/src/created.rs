//! The sets `B`: the boards that stones of the winner create in a lemma and in all that it refers to, directly or not.
//!
//! The sets are not kept, for they are large: a set is a node of a graph, which names the one board that its lemma's own move creates and refers to the sets that
//! are united in it. Whether a board is in a set is found by walking over the references. So that the walk ends early where the board cannot be, each node
//! also has a description of its set that is computed from those of the nodes it refers to. A description may admit boards that are not in the set; it never excludes
//! one that is. Only what it excludes is left out of the walk, and "yes" is said only where a move creates this very board: the answer is exact.

use std::collections::HashMap;

use crate::rules::{Board, Grid};

/// The number of the empty set.
pub const EMPTY: u32 = 0;

/// What all boards of a set have in common.
#[derive(Clone, Copy, Debug, Default)]
struct Description {
    /// The points on which some board has a black stone, a white stone, no stone.
    black: u64,
    white: u64,
    empty: u64,
    /// Bit `n` is set if some board has `n` stones.
    stones: u64,
    /// A Bloom filter of the boards' hashes.
    filter: [u64; 4],
}

impl Description {
    fn of(grid: &Grid, board: Board, hash: u64) -> Description {
        let mut filter = [0; 4];
        for bit in [hash & 255, hash >> 8 & 255] {
            filter[(bit / 64) as usize] |= 1 << (bit % 64);
        }
        let stones = 1 << board.stones().count_ones();
        Description { black: board.black, white: board.white, empty: grid.all & !board.stones(), stones, filter }
    }

    /// Describes the images of the boards too. Numbers of stones and hashes are the same under all symmetries.
    fn add_image(&mut self, grid: &Grid, symmetry: u8, other: &Description) {
        self.black |= grid.image(symmetry, other.black);
        self.white |= grid.image(symmetry, other.white);
        self.empty |= grid.image(symmetry, other.empty);
        self.stones |= other.stones;
        for (mine, theirs) in self.filter.iter_mut().zip(other.filter) {
            *mine |= theirs;
        }
    }

    /// Whether a set of this description may have the one board that `one` describes.
    fn admits(&self, one: &Description) -> bool {
        let excluded = one.stones & !self.stones | one.black & !self.black | one.white & !self.white | one.empty & !self.empty;
        excluded == 0 && one.filter.iter().zip(self.filter).all(|(one, all)| one & !all == 0)
    }
}

#[derive(Debug, Default)]
struct Node {
    description: Description,
    /// The board that the lemma's own move creates.
    created: Option<Board>,
    /// Its references are a slice of [`Created::references`].
    first: u64,
    count: u8,
}

/// All sets.
#[derive(Debug)]
pub struct Created {
    nodes: Vec<Node>,
    /// References to nodes: eight times the number, plus the symmetry.
    references: Vec<u32>,
    /// For the hash of each board that some move creates, the first node whose move does.
    creators: HashMap<u64, u32>,
    /// For each node, the last walk that came to it, times 256, and a bit for each symmetry under which that walk came.
    seen: Vec<u64>,
    walks: u64,
    stack: Vec<(u32, u8)>,
}

impl Created {
    /// Just the empty set.
    pub fn new() -> Created {
        Created {
            nodes: vec![Node::default()],
            references: Vec::new(),
            creators: HashMap::new(),
            seen: vec![0],
            walks: 0,
            stack: Vec::new(),
        }
    }

    /// The union of the images of sets under symmetries, and of a board that a move creates.
    pub fn unite(&mut self, grid: &Grid, sets: impl IntoIterator<Item = (u32, u8)>, created: Option<Board>) -> u32 {
        let mut sets: Vec<u32> =
            sets.into_iter().filter(|set| set.0 != EMPTY).map(|(set, symmetry)| set << 3 | u32::from(symmetry)).collect();
        sets.sort_unstable();
        sets.dedup();
        match (&sets[..], created) {
            ([], None) => return EMPTY,
            // One set under symmetry 0, which changes nothing.
            ([one], None) if one & 7 == 0 => return one >> 3,
            _ => {}
        }

        let number = self.nodes.len() as u32;
        let mut description = match created {
            Some(board) => {
                let hash = hash(grid, board);
                self.creators.entry(hash).or_insert(number);
                Description::of(grid, board, hash)
            }
            None => Description::default(),
        };
        for set in &sets {
            description.add_image(grid, (set & 7) as u8, &self.nodes[(set >> 3) as usize].description);
        }
        self.nodes.push(Node { description, created, first: self.references.len() as u64, count: sets.len() as u8 });
        self.references.extend(sets);
        self.seen.push(0);
        number
    }

    /// Whether the board is in the set.
    pub fn contains(&mut self, grid: &Grid, set: u32, board: Board) -> bool {
        let hash = hash(grid, board);
        // Boards that are images of each other have the same hash. References only go to smaller numbers, so below the first creator there is none either.
        let Some(&first_creator) = self.creators.get(&hash) else {
            return false;
        };
        // The walk carries the board along: at a node it asks for `images[k]`, what the board becomes when all symmetries on the way are undone.
        let images: Vec<Board> = (0..grid.symmetries()).map(|k| grid.board_image(k, board)).collect();
        let descriptions: Vec<Description> = images.iter().map(|image| Description::of(grid, *image, hash)).collect();
        self.walks += 1;
        self.stack.clear();
        self.stack.push((set, 0));
        while let Some((number, k)) = self.stack.pop() {
            if number < first_creator {
                continue;
            }
            let seen = &mut self.seen[number as usize];
            if *seen >> 8 != self.walks {
                *seen = self.walks << 8;
            }
            if *seen >> k & 1 != 0 {
                continue;
            }
            *seen |= 1 << k;
            let node = &self.nodes[number as usize];
            if !node.description.admits(&descriptions[k as usize]) {
                continue;
            }
            if node.created == Some(images[k as usize]) {
                return true;
            }
            let first = node.first as usize;
            for reference in &self.references[first..first + node.count as usize] {
                self.stack.push((reference >> 3, grid.undo(k, (reference & 7) as u8)));
            }
        }
        false
    }

    /// How many different boards, up to symmetry, moves of the winner create.
    pub fn boards(&self) -> usize {
        self.creators.len()
    }
}

impl Default for Created {
    fn default() -> Created {
        Created::new()
    }
}

/// A number that is the same for all images of a board. Different boards may share one: it serves only to tell boards apart that have different ones.
fn hash(grid: &Grid, board: Board) -> u64 {
    (0..grid.symmetries()).map(|symmetry| mix(grid.board_image(symmetry, board))).fold(0, u64::wrapping_add)
}

fn mix(board: Board) -> u64 {
    let mut mixed = board.black.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ board.white.wrapping_mul(0xc2b2_ae3d_27d4_eb4f).rotate_left(32);
    for _ in 0..2 {
        mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    mixed ^ mixed >> 32
}

//! The boards that may not recur on the path being searched, with the tests that lemmas ask of them.

use crate::Print;
use crate::board_set::{KnownBoard, mix};
use superko_rules::{Board, Color};

/// A stack of distinct boards with constant-time membership.
pub(crate) struct History {
    boards: Vec<KnownBoard>,
    /// Hash bits and places of the boards, by hash: the order in which a table looks prints up.
    by_hash: Vec<(Print, u32)>,
    /// `stood[i]`: per colour, the points that hold a stone on one of the first `i` boards.
    stood: Vec<Board>,
    /// Open addressing with linear probing: index into `boards` plus one, 0 for free. Boards leave in reverse order, so clearing
    /// the slot of the last one never breaks another's probe chain.
    slots: Vec<u32>,
    /// The slot of each board.
    slot_of: Vec<usize>,
}

impl History {
    pub fn new() -> Self {
        History { boards: Vec::new(), by_hash: Vec::new(), stood: vec![Board::EMPTY], slots: vec![0; 1024], slot_of: Vec::new() }
    }

    fn find(&self, board: Board) -> Result<usize, usize> {
        let mask = self.slots.len() - 1;
        let mut at = mix(board.black ^ mix(board.white ^ 0x9e37_79b9_7f4a_7c15)) as usize & mask;
        loop {
            match self.slots[at] {
                0 => return Err(at),
                index if self.boards[index as usize - 1].board == board => return Ok(at),
                _ => at = (at + 1) & mask,
            }
        }
    }

    pub fn contains(&self, board: Board) -> bool {
        self.find(board).is_ok()
    }

    /// Adds a board; `false` (and no change) if it is there already.
    pub fn push(&mut self, known: KnownBoard) -> bool {
        let Err(slot) = self.find(known.board) else { return false };
        let before = *self.stood.last().expect("never empty");
        self.stood.push(Board { black: before.black | known.board.black, white: before.white | known.board.white });
        let entry = (known.hash(), self.boards.len() as u32);
        self.by_hash.insert(self.by_hash.partition_point(|&other| other < entry), entry);
        self.boards.push(known);
        self.slots[slot] = self.boards.len() as u32;
        self.slot_of.push(slot);
        if self.boards.len() * 4 > self.slots.len() {
            self.grow();
        }
        true
    }

    pub fn pop(&mut self) {
        let slot = self.slot_of.pop().expect("pop follows push");
        self.slots[slot] = 0;
        let last = self.boards.pop().expect("pop follows push");
        let at = self.by_hash.binary_search(&(last.hash(), self.boards.len() as u32)).expect("every board has its entry");
        self.by_hash.remove(at);
        self.stood.pop();
    }

    fn grow(&mut self) {
        self.slots = vec![0; self.slots.len() * 2];
        for index in 0..self.boards.len() {
            let slot = self.find(self.boards[index].board).expect_err("boards are distinct");
            self.slots[slot] = index as u32 + 1;
            self.slot_of[index] = slot;
        }
    }

    /// Points on which some board of the history has a stone of `color`. A stone that stood on a point which is free of it now was
    /// captured there, so this answers both (iii) and C1 (theory, Lemma).
    pub fn stood(&self, color: Color) -> u64 {
        self.stood.last().expect("never empty").stones(color)
    }

    /// A hash of the set of boards: the same in whatever order they came.
    pub fn signature(&self) -> u64 {
        self.boards.iter().fold(0, |signature, known| signature ^ mix(known.board.black ^ mix(known.board.white ^ 1)))
    }

    /// The boards, by their hash bits.
    pub fn boards_by_hash(&self) -> impl Iterator<Item = &KnownBoard> {
        self.by_hash.iter().map(|&(_, at)| &self.boards[at as usize])
    }
}

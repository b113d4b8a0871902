//! The table that the search reads and writes. `storage` maps it to a file; `MemoryTable` serves tests.

use crate::{BoardSet, Cube, Lemma, Print, SetPart};
use superko_rules::{Board, Color, Geometry, Move, Position};

/// Exact key of a canonical position: no two positions of one board size share it. Below 2^64 up to 39 points.
pub type PositionKey = u128;

/// The key of the position whose canonical board has `code` (theory, Identity): four times the code, plus two if White is to
/// move, plus one after a pass.
#[inline]
pub fn position_key(code: u128, position: Position) -> PositionKey {
    code * 4 + 2 * u128::from(position.to_move == Color::White) + u128::from(position.passes)
}

/// Proof and disproof number of an unproven position, for the side to move. They steer the search and prove nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// Proof number, at least 1.
    pub phi: u32,
    /// Disproof number, at least 1.
    pub delta: u32,
    /// Expansions spent below the position.
    pub cost: u32,
}

/// The fixed part of a stored lemma, in the canonical frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LemmaHead {
    /// `w`.
    pub winner: Color,
    /// `m`, in points.
    pub margin: i8,
    /// The winning move if the winner is to move.
    pub best: Option<Move>,
    /// `T`.
    pub territory: u64,
    /// Bounds on `B`.
    pub cube: Cube,
    /// Bloom filter of the whole of `B`: answers for the prints when they are gone.
    pub bloom: [u64; 4],
    /// Number of boards in `X`; a lemma with `X ≠ ∅` whose sets are gone is of no use.
    pub excluded: u8,
    /// Log2 of the expansions spent, rounded down.
    pub cost_log2: u8,
    /// [`Lemma::number`].
    pub number: u64,
    /// Where the sets are kept.
    pub sets: SetsHandle,
}

impl LemmaHead {
    /// The fixed part of `lemma`, whose sets are kept under `sets`.
    pub fn of(lemma: &Lemma, sets: SetsHandle) -> LemmaHead {
        LemmaHead {
            winner: lemma.winner,
            margin: lemma.margin,
            best: lemma.best,
            territory: lemma.territory,
            cube: *lemma.created.cube(),
            bloom: lemma.created.filter(),
            excluded: lemma.excluded.len() as u8,
            cost_log2: lemma.cost.max(1).ilog2() as u8,
            number: lemma.number,
            sets,
        }
    }

    /// The lemma with this head and these sets. If the sets are gone, `B` is known by the filter only; `None` if `X` was among
    /// them, for without it the lemma says nothing.
    pub fn lemma(&self, sets: Option<LemmaSets>) -> Option<Lemma> {
        let LemmaSets { prints, bloom, excluded, parts } = match sets {
            Some(sets) => sets,
            None if self.excluded == 0 => LemmaSets { bloom: self.bloom, ..LemmaSets::default() },
            None => return None,
        };
        Some(Lemma {
            winner: self.winner,
            margin: self.margin,
            best: self.best,
            created: BoardSet::with_filter(prints, bloom, self.cube, self.bloom).kept_in(parts),
            excluded,
            territory: self.territory,
            cost: 1 << self.cost_log2.min(62),
            number: self.number,
        })
    }
}

/// Names the variable part of a stored lemma inside its table; the table gives it its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetsHandle(pub [u64; 3]);

/// The variable part of a stored lemma, in the canonical frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LemmaSets {
    /// Sorted prints of `B`, as far as boards are known by prints; none if only the parts were asked for.
    pub prints: Vec<Print>,
    /// Filter of the boards of `B` that are not among the prints; zero if there are none.
    pub bloom: [u64; 4],
    /// `X`, sorted.
    pub excluded: Vec<Board>,
    /// Parts that make up the prints, as far as the table says.
    pub parts: Vec<SetPart>,
}

/// Stores a lemma that `sym` leads to the frame of `key`; from then on its `B` is known by the parts that the table keeps.
pub(crate) fn store_in_parts(table: &dyn Table, key: PositionKey, sym: u8, lemma: &mut Lemma) {
    let geometry = table.geometry();
    let mut parts = match sym {
        0 => table.store_lemma(key, lemma),
        sym => table.store_lemma(key, &lemma.clone().map(geometry, sym)),
    };
    for part in &mut parts {
        part.sym = geometry.compose(geometry.inverse(sym), part.sym);
    }
    if parts.is_empty() && !lemma.created.is_loaded() {
        // The table could not keep it either.
        lemma.created.fold();
    }
    lemma.created = std::mem::take(&mut lemma.created).kept_in(parts);
    lemma.created.unload();
}

/// A shared table of lemmas and of proof numbers. All calls may come from any thread at any time.
///
/// A table may forget whatever it likes. What it returns as a lemma must be, word for word, what was stored under that key.
pub trait Table: Sync {
    /// Hints that the position and its numbers will be asked for soon, so that the table's memory can be on its way.
    fn prefetch(&self, _key: PositionKey, _number_key: u64) {}

    /// Appends the heads of all lemmas stored for the position.
    fn lemmas(&self, key: PositionKey, heads: &mut Vec<LemmaHead>);

    /// Reads the variable part of a lemma into `sets`, in place of all that was there; `false` if it is gone.
    fn sets(&self, key: PositionKey, head: &LemmaHead, sets: &mut LemmaSets) -> bool;

    /// Reads the variable part without the prints into `sets`; `false` if it is gone.
    fn extras(&self, key: PositionKey, head: &LemmaHead, sets: &mut LemmaSets) -> bool {
        self.sets(key, head, sets)
    }

    /// Whether one of these prints at least is among those of a lemma, which a table may find out without reading all of them into
    /// the buffer `sets`. `prints` is sorted by hash bits. `None` if that part of the lemma is gone.
    fn holds_any(&self, key: PositionKey, head: &LemmaHead, prints: &[Print], sets: &mut LemmaSets) -> Option<bool> {
        self.sets(key, head, sets).then(|| prints.iter().any(|print| sets.prints.binary_search(print).is_ok()))
    }

    /// Reads the variable part of a lemma into `sets`; where the table keeps the prints in parts, it names the parts and leaves the prints
    /// out. `false` if that much is gone; whether the parts are there shows when they are read.
    fn parts(&self, key: PositionKey, head: &LemmaHead, sets: &mut LemmaSets) -> bool {
        self.sets(key, head, sets)
    }

    /// Appends the prints of a part of a set, sorted; `false` if they are gone. A table answers for parts that it has named.
    fn part_prints(&self, _part: &SetPart, _prints: &mut Vec<Print>) -> bool {
        false
    }

    /// Whether a part of a set holds one of these prints, which are sorted by hash bits; `None` if what would tell is gone.
    fn part_holds_any(&self, _part: &SetPart, _prints: &[Print]) -> Option<bool> {
        None
    }

    /// Keeps a lemma about the canonical position `key`, given in the canonical frame; the parts in which it keeps the prints of `B`, if
    /// it can tell.
    fn store_lemma(&self, key: PositionKey, lemma: &Lemma) -> Vec<SetPart>;

    /// The numbers kept under `key`, a hash of position and komi.
    fn numbers(&self, key: u64) -> Option<Numbers>;

    /// Keeps numbers under `key`.
    fn store_numbers(&self, key: u64, numbers: Numbers);

    /// The shape of the boards this table holds.
    fn geometry(&self) -> &'static Geometry;
}

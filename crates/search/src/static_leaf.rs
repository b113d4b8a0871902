//! Static leaves: pure-eye analysis under C1 and C2, claiming the least territory that the win needs (paper, section 4; findings 1.3),
//! and region games where pure eyes alone fall short.

use crate::Counter;
use crate::board_set::mix;
use crate::mutation::{Dropped, dropped};
use crate::region_game::RegionGames;
use crate::{RegionLimits, region_claim};
use superko_rules::{Board, Color, Geometry, Move, Position, PureEyes, bits};

/// Slots of the direct-mapped cache, as a power of two (64 MiB, of which only what is used is ever touched); pure eyes depend on one
/// player's stones only, which recur far more often than positions.
const CACHE_BITS: usize = 20;

/// The same for a look-up, which sees a few hundred positions and must not pay for fresh memory: 256 KiB, and no briefs.
const SMALL_CACHE_BITS: usize = 12;

pub(crate) struct StaticLeaves {
    geometry: &'static Geometry,
    /// Placed by a hash of the stones. Words, because the allocator hands out zeroed ones without writing them.
    cache: Vec<[u64; 8]>,
    /// The little that is asked most often, for each stone set of a small board; see [`Brief`].
    briefs: Vec<Brief>,
    games: RegionGames,
}

/// Boards up to this many points have a [`Brief`] for each stone set: 64 MiB at most, of which only what is used is ever touched. On 5x5 after
/// C3 a search without them takes 1.4 times as long.
const BRIEF_POINTS: usize = 25;

/// What is mostly the answer, that there is nothing, in two bytes: it stays near where whole cache lines would not. From the lowest bit:
/// how many points pure eyes claim, plus one (0: not computed); then for each set of [`Known`] whether it is computed, and whether it
/// holds anything.
type Brief = u16;

const BRIEF_CLAIM: Brief = 127;

/// What is known of the player who has certain stones; one cache line. The sets of [`crate::look_ahead`] belong to one komi, by the player's
/// colour. All zero is right for the player without stones.
struct Known<'a>(&'a mut [u64; 8]);

/// The words of a [`Known`]: the stones, `X*`, `T*`, and which of the four sets after them have been computed, one bit each.
const STONES: usize = 0;
const ALIVE: usize = 1;
const TERRITORY: usize = 2;
const COMPUTED: usize = 3;
const SETS: usize = 4;

impl Known<'_> {
    fn eyes(&self) -> PureEyes {
        PureEyes { alive: self.0[ALIVE], territory: self.0[TERRITORY] }
    }

    fn set(&self, which: usize) -> Option<u64> {
        (self.0[COMPUTED] >> which & 1 == 1).then(|| self.0[SETS + which])
    }

    fn put(&mut self, which: usize, set: u64) {
        self.0[SETS + which] = set;
        self.0[COMPUTED] |= 1 << which;
    }
}

/// The rule by which a position was decided without search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafKind {
    /// Pure eyes as they stand (paper, section 4).
    PureEyes,
    /// Pure eyes, and the kill of what they enclose ([`crate::region_game`]).
    RegionGame,
    /// The winner plays one point and has the pure eyes ([`crate::look_ahead`], l1).
    OneMove,
    /// The loser is to move and cannot stop all points of that kind (l2).
    Miai,
    /// The winner plays one point after which the loser cannot (l3).
    MoveToMiai,
}

impl LeafKind {
    /// Where leaves of this kind are counted.
    pub(crate) fn counter(self) -> Counter {
        match self {
            LeafKind::PureEyes => Counter::LeafPureEyes,
            LeafKind::RegionGame => Counter::LeafRegionGame,
            LeafKind::OneMove => Counter::LeafOneMove,
            LeafKind::Miai => Counter::LeafMiai,
            LeafKind::MoveToMiai => Counter::LeafMoveToMiai,
        }
    }
}

/// A certified win: `margin` rests on no `winner` stone ever having stood on `territory`, in the history, and on nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StaticWin {
    pub winner: Color,
    pub margin: i32,
    pub territory: u64,
    pub kind: LeafKind,
    /// The point to play if the winner is to move and `kind` names one.
    pub best: Option<Move>,
}

impl StaticLeaves {
    pub fn new(geometry: &'static Geometry, limits: RegionLimits) -> Self {
        let briefs = if geometry.points() <= BRIEF_POINTS { vec![0; 1 << geometry.points()] } else { Vec::new() };
        StaticLeaves { briefs, ..StaticLeaves::with_cache(geometry, limits, CACHE_BITS) }
    }

    /// For a few positions.
    pub fn small(geometry: &'static Geometry, limits: RegionLimits) -> Self {
        StaticLeaves::with_cache(geometry, limits, SMALL_CACHE_BITS)
    }

    fn with_cache(geometry: &'static Geometry, limits: RegionLimits, bits: usize) -> Self {
        let cache = vec![[0; 8]; 1 << geometry.points().min(bits)];
        StaticLeaves { geometry, cache, briefs: Vec::new(), games: RegionGames::new(geometry, limits) }
    }

    #[inline]
    fn slot(&self, stones: u64) -> usize {
        mix(stones) as usize & (self.cache.len() - 1)
    }

    #[inline]
    fn brief(&self, stones: u64) -> Brief {
        self.briefs.get(stones as usize).copied().unwrap_or(0)
    }

    /// The pure eyes of the player who has `stones`.
    #[inline]
    pub fn eyes(&mut self, stones: u64) -> PureEyes {
        if self.points(stones) == 0 { PureEyes::default() } else { self.known(stones).eyes() }
    }

    /// The points that pure eyes claim for `stones`: not zero exactly when there is a chain with pure eyes.
    #[inline]
    pub fn points(&mut self, stones: u64) -> u32 {
        if self.briefs.is_empty() {
            return self.known(stones).eyes().points();
        }
        if self.briefs[stones as usize] & BRIEF_CLAIM == 0 {
            let eyes = PureEyes::analyze(self.geometry, stones);
            self.briefs[stones as usize] |= eyes.points() as Brief + 1;
            if eyes.alive != 0 {
                self.enter(stones, eyes);
            }
        }
        u32::from(self.briefs[stones as usize] & BRIEF_CLAIM) - 1
    }

    /// A set that belongs to the player with `stones`, if it has been computed: 0 and 1 the completions for Black and White, 2 and 3 what
    /// makes two of them.
    #[inline]
    pub fn set(&mut self, stones: u64, which: usize) -> Option<u64> {
        match self.brief(stones) >> (7 + 2 * which) & 3 {
            0 if !self.briefs.is_empty() => None,
            1 => Some(0),
            _ => self.known(stones).set(which),
        }
    }

    /// Whether that set holds anything, if it has been computed.
    #[inline]
    pub fn holds(&mut self, stones: u64, which: usize) -> Option<bool> {
        match self.brief(stones) >> (7 + 2 * which) & 3 {
            0 => self.set(stones, which).map(|set| set != 0),
            brief => Some(brief == 3),
        }
    }

    /// Keeps a set.
    pub fn put(&mut self, stones: u64, which: usize, set: u64) {
        if let Some(brief) = self.briefs.get_mut(stones as usize) {
            *brief |= (1 + 2 * Brief::from(set != 0)) << (7 + 2 * which);
            if set == 0 {
                return;
            }
        }
        self.known(stones).put(which, set);
    }

    /// The cache entry of the player who has `stones`.
    #[inline]
    fn known(&mut self, stones: u64) -> Known<'_> {
        let slot = self.slot(stones);
        if self.cache[slot][STONES] != stones {
            let nothing = self.brief(stones) & BRIEF_CLAIM == 1;
            self.enter(stones, if nothing { PureEyes::default() } else { PureEyes::analyze(self.geometry, stones) });
        }
        Known(&mut self.cache[slot])
    }

    fn enter(&mut self, stones: u64, eyes: PureEyes) {
        let slot = self.slot(stones);
        self.cache[slot] = [stones, eyes.alive, eyes.territory, 0, 0, 0, 0, 0];
    }

    /// Whether pure eyes, alone or with region games, give `winner` a margin of at least `need` in `position`, where `stood` are the points
    /// on which some board of the history has a stone of `winner`.
    ///
    /// Soundness: Lemma 1 of the paper, proved in its A.3 for the whole of `T*`. Its strategy answers only inside the territory it
    /// claims and its invariant (I) never needs an answer in the others, so it holds word for word for any union of `T*`'s
    /// regions; that is why regions may be left out, both those that violate C1 and those that the win does not need.
    /// C1: no board of the history has a winner stone on the claimed territory. It is tested here and becomes the lemma's `T`.
    /// C2: if the last move was the winner's own pass, the loser may end the game before the winner has moved: no claim.
    pub fn win(&mut self, position: Position, winner: Color, need: i32, stood: u64) -> Option<StaticWin> {
        if position.passes > 0 && position.to_move != winner && !dropped(Dropped::C2) {
            return None;
        }
        let stones = position.board.stones(winner);
        #[cfg(feature = "mutation")]
        if dropped(Dropped::Pureness) {
            let eyes = PureEyes::analyze_touching(self.geometry, stones, !position.board.stones(winner.opponent()));
            return claim(self.geometry, eyes, winner, wanted(self.geometry, need), stood);
        }
        let eyes = self.eyes(stones);
        let wanted = wanted(self.geometry, need);
        claim(self.geometry, eyes, winner, wanted, stood)
            .or_else(|| region_claim::claim(self.geometry, &mut self.games, eyes, position, winner, wanted as i32, stood))
    }

    /// The territory of the player with `stones` that C1 allows to be certified.
    pub fn certified(&mut self, stones: u64, stood: u64) -> u64 {
        let geometry = self.geometry;
        self.eyes(stones).regions(geometry).filter(|&region| region & stood == 0).fold(0, |territory, region| territory | region)
    }
}

/// The points that a margin of `need` takes: with `(points + m) / 2` of them the opponent gets no more than the rest.
#[inline]
pub(crate) fn wanted(geometry: &Geometry, need: i32) -> u32 {
    (need + geometry.points() as i32 + 1).div_euclid(2).max(0) as u32
}

/// Claims `wanted` points from `eyes`, if there are so many under C1.
#[inline]
pub(crate) fn claim(geometry: &Geometry, eyes: PureEyes, winner: Color, wanted: u32, stood: u64) -> Option<StaticWin> {
    if eyes.alive == 0 || eyes.points() < wanted {
        return None;
    }
    let mut have = eyes.alive.count_ones();
    let mut territory = 0;
    if have < wanted {
        // Mostly C1 leaves too little even before it is asked of whole regions.
        if have + (eyes.territory & !stood).count_ones() < wanted && !dropped(Dropped::C1) {
            return None;
        }
        // Largest regions first, then drop what turned out to be unnecessary: a small territory is violated by few histories.
        let mut regions: [u64; 32] = [0; 32];
        let mut count = 0;
        for region in eyes.regions(geometry).filter(|region| region & stood == 0 || dropped(Dropped::C1)) {
            regions[count] = region;
            count += 1;
        }
        let regions = &mut regions[..count];
        regions.sort_unstable_by_key(|region| std::cmp::Reverse(region.count_ones()));
        let mut taken = 0;
        while have < wanted {
            let &region = regions.get(taken)?;
            have += region.count_ones();
            territory |= region;
            taken += 1;
        }
        for &region in regions[..taken].iter().rev() {
            let size = region.count_ones();
            if have - size >= wanted {
                have -= size;
                territory &= !region;
            }
        }
    }
    let margin = 2 * have as i32 - geometry.points() as i32;
    Some(StaticWin { winner, margin, territory, kind: LeafKind::PureEyes, best: None })
}

/// The strategy of the paper's Lemma 1: take a liberty of an intruding chain, or pass if there is none.
pub(crate) fn keep_territory(geometry: &Geometry, board: Board, winner: Color, territory: u64, legal: impl Fn(Board) -> bool) -> Move {
    let intruders = board.stones(winner.opponent()) & territory;
    let empty = geometry.full() & !board.occupied();
    bits(geometry.neighbors(intruders) & empty & territory)
        .find(|&point| board.place(geometry, winner, point).is_ok_and(|placed| legal(placed.board)))
        .map_or(Move::Pass, |point| Move::Stone(point as u8))
}

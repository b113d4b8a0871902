//! Static leaves: pure-eye analysis under C1 and C2, claiming the least territory that the win needs (paper, section 4; findings 1.3),
//! and region games where pure eyes alone fall short.

use crate::RegionLimits;
use crate::board_set::mix;
use crate::mutation::{Dropped, dropped};
use crate::region_claim::{self, Question};
use crate::region_game::RegionGames;
use superko_rules::{Color, Geometry, Position, PureEyes};

/// Slots of the direct-mapped cache; pure eyes depend on one player's stones only, which recur far more often than positions.
const CACHE_SLOTS: usize = 1 << 13;

pub(crate) struct StaticLeaves {
    geometry: &'static Geometry,
    /// Placed by a hash of the stones.
    cache: Vec<Cached>,
    games: RegionGames,
}

/// What depends on one player's stones only.
#[derive(Clone, Default)]
struct Cached {
    stones: u64,
    eyes: PureEyes,
    /// Regions beside `X*` and `T*` that are small enough for region games.
    open: Vec<u64>,
}

/// A certified win: `margin` rests on no `winner` stone ever having been captured on `territory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StaticWin {
    pub winner: Color,
    pub margin: i32,
    pub territory: u64,
    /// Whether the claim holds a region won by a local game.
    pub by_region_game: bool,
    /// The move that goes on with such a region, if the winner is to move.
    pub local_move: Option<u8>,
}

impl StaticLeaves {
    pub fn new(geometry: &'static Geometry, limits: RegionLimits) -> Self {
        StaticLeaves { geometry, cache: vec![Cached::default(); CACHE_SLOTS], games: RegionGames::new(geometry, limits) }
    }

    /// Whether pure eyes, alone or with region games, give `winner` a margin of at least `need` in `position`, where `stood` are the points on which some
    /// board of the history has a stone of `winner`.
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
        let points = self.geometry.points() as i32;
        // A margin of m means (points + m) / 2 points at least: the opponent gets no more than the rest.
        let wanted = (need + points + 1).div_euclid(2).max(0);
        let stones = position.board.stones(winner);
        #[cfg(feature = "mutation")]
        if dropped(Dropped::Pureness) {
            let eyes = PureEyes::analyze_touching(self.geometry, stones, !position.board.stones(winner.opponent()));
            return claim(&eyes, winner, wanted, points, stood);
        }
        let slot = mix(stones) as usize & (CACHE_SLOTS - 1);
        let cached = &mut self.cache[slot];
        if cached.stones != stones {
            let eyes = PureEyes::analyze(self.geometry, stones);
            let open = region_claim::open_regions(self.geometry, &eyes, self.games.limits());
            *cached = Cached { stones, eyes, open };
        }
        let Cached { eyes, open, .. } = &*cached;
        claim(eyes, winner, wanted, points, stood)
            .or_else(|| region_claim::claim(&mut self.games, eyes, open, Question { position, winner, wanted, stood }))
    }
}

fn claim(eyes: &PureEyes, winner: Color, wanted: i32, points: i32, stood: u64) -> Option<StaticWin> {
    if eyes.alive == 0 {
        return None;
    }
    let mut have = eyes.alive.count_ones() as i32;
    let mut territory = 0;
    let usable = |region: &&u64| **region & stood == 0 || dropped(Dropped::C1);
    // Largest regions first, then drop what turned out to be unnecessary: a small territory is violated by few histories.
    let mut regions: [u64; 32] = [0; 32];
    let mut count = 0;
    for &region in eyes.regions.iter().filter(usable) {
        regions[count] = region;
        count += 1;
    }
    let regions = &mut regions[..count];
    regions.sort_unstable_by_key(|region| std::cmp::Reverse(region.count_ones()));
    let mut taken = 0;
    while have < wanted {
        let &region = regions.get(taken)?;
        have += region.count_ones() as i32;
        territory |= region;
        taken += 1;
    }
    for &region in regions[..taken].iter().rev() {
        let size = region.count_ones() as i32;
        if have - size >= wanted {
            have -= size;
            territory &= !region;
        }
    }
    Some(StaticWin { winner, margin: 2 * have - points, territory, by_region_game: false, local_move: None })
}

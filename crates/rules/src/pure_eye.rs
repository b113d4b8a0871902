//! Pure-eye analysis: unconditional life that stays sound when the game is played out under superko (paper, section 4 and A.3).

use crate::Geometry;

/// `X*` and `T*` of one player. They depend on that player's stones only: a region is a component of all other points, whatever
/// stands on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PureEyes {
    /// Stones of `X*`: the largest set of chains that each have two pure eyes bordered only by chains of the set.
    pub alive: u64,
    /// `T*`: the regions bordered only by `X*` in which every point is next to an `X*` stone. Each is worth its size.
    pub territory: u64,
}

/// Chains, and regions, of one player on a board of 64 points: an isolated one takes its point and another's beside it.
const MOST: usize = 32;

/// The components of a point set with the points around each, without allocation.
struct Components {
    sets: [(u64, u64); MOST],
    length: usize,
}

impl Components {
    fn of(geometry: &Geometry, points: u64) -> Components {
        let mut list = Components { sets: [(0, 0); MOST], length: 0 };
        for set in geometry.components(points) {
            list.sets[list.length] = (set, geometry.neighbors(set));
            list.length += 1;
        }
        list
    }

    fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.sets[..self.length].iter().copied()
    }
}

impl PureEyes {
    /// Analyses the player who has `stones`.
    ///
    /// Lemma 1 of the paper: if (C1) no stone of this player was ever captured on `T*` and (C2) the last move was not this
    /// player's pass with the opponent to move, then this player keeps at least `|X*| + |T*|` points. The argument needs every
    /// point of an eye, empty or occupied, to touch the chain ("pure"): points freed by a capture must touch it too.
    pub fn analyze(geometry: &Geometry, stones: u64) -> PureEyes {
        PureEyes::analyze_touching(geometry, stones, geometry.full())
    }

    /// The points kept: `|X*| + |T*|`.
    pub fn points(&self) -> u32 {
        (self.alive | self.territory).count_ones()
    }

    /// The regions whose union is `T*`, lowest point first: they are apart, since the player's stones part them.
    pub fn regions<'a>(&self, geometry: &'a Geometry) -> impl Iterator<Item = u64> + use<'a> {
        geometry.components(self.territory)
    }

    /// The analysis in which only the points of `counted` need to touch the chain. Sound only for all points; fewer (the empty ones
    /// give Benson's classic test) let a test show that pureness is needed.
    #[doc(hidden)]
    pub fn analyze_touching(geometry: &Geometry, stones: u64, counted: u64) -> PureEyes {
        // A region with a counted point beside no stone at all is nobody's eye; most stone sets leave nothing else.
        let rest = geometry.full() & !stones;
        let open = geometry.flood(rest & counted & !geometry.neighbors(stones), rest);
        let regions = Components::of(geometry, rest & !open);
        if regions.length < 2 {
            return PureEyes::default(); // no two eyes
        }
        let chains = Components::of(geometry, stones);
        let mut alive = stones;
        // A region whose border is alive and whose counted points all lie in `reach`.
        let owned = |alive: u64, reach: u64| {
            regions.iter().filter(move |&(region, around)| around & stones & !alive == 0 && region & counted & !reach == 0)
        };
        // Benson's fixpoint: drop chains with fewer than two pure eyes bordered by surviving chains only, until none drops.
        loop {
            let two_eyes = |&(chain, edge): &(u64, u64)| chain & alive != 0 && owned(alive, edge).nth(1).is_some();
            let kept = chains.iter().filter(two_eyes).fold(0, |set, (chain, _)| set | chain);
            if kept == alive {
                break;
            }
            alive = kept;
            if alive == 0 {
                return PureEyes::default();
            }
        }
        let territory = owned(alive, geometry.neighbors(alive)).fold(0, |set, (region, _)| set | region);
        PureEyes { alive, territory }
    }
}

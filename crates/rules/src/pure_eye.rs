//! Pure-eye analysis: unconditional life that stays sound when the game is played out under superko (paper, section 4 and A.3).

use crate::Geometry;

/// `X*` and `T*` of one player. They depend on that player's stones only: a region is a component of all other points, whatever
/// stands on them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PureEyes {
    /// Stones of `X*`: the largest set of chains that each have two pure eyes bordered only by chains of the set.
    pub alive: u64,
    /// The regions whose union is `T*`: bordered only by `X*`, every point next to an `X*` stone. Each is worth its size.
    pub regions: Vec<u64>,
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

    /// The analysis in which only the points of `counted` need to touch the chain. Sound only for all points; fewer (the empty ones
    /// give Benson's classic test) let a test show that pureness is needed.
    #[doc(hidden)]
    pub fn analyze_touching(geometry: &Geometry, stones: u64, counted: u64) -> PureEyes {
        let others = geometry.full() & !stones;
        if others & (others - u64::from(others != 0)) == 0 {
            return PureEyes::default(); // fewer than two points outside: no two eyes
        }
        let chains: Vec<u64> = geometry.components(stones).collect();
        let chain_edges: Vec<u64> = chains.iter().map(|&chain| geometry.neighbors(chain)).collect();
        let regions: Vec<(u64, u64)> = geometry.components(others).map(|region| (region, geometry.neighbors(region) & stones)).collect();
        let mut alive = stones;
        // Benson's fixpoint: drop chains with fewer than two pure eyes bordered by surviving chains only, until none drops.
        loop {
            let kept = chains
                .iter()
                .zip(&chain_edges)
                .filter(|&(&chain, &edge)| {
                    chain & alive != 0
                        && regions
                            .iter()
                            .filter(|&&(region, border)| border & !alive == 0 && region & counted & !edge == 0)
                            .nth(1)
                            .is_some()
                })
                .fold(0, |set, (&chain, _)| set | chain);
            if kept == alive {
                break;
            }
            alive = kept;
        }
        if alive == 0 {
            return PureEyes::default();
        }
        let reach = geometry.neighbors(alive);
        let regions = regions
            .into_iter()
            .filter(|&(region, border)| border & !alive == 0 && region & counted & !reach == 0)
            .map(|(region, _)| region);
        PureEyes { alive, regions: regions.collect() }
    }
}

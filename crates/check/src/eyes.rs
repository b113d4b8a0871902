//! Stones that cannot be captured: claims (kind 1) and pairs of ways to a claim (kind 2).

use crate::rules::{Board, Color, Grid, points};

/// The stones `a` that the winner keeps and the points `t` that are his in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Stones with two eyes.
    pub a: u64,
    /// Regions that they enclose.
    pub t: u64,
}

/// A move after which there is a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The point that the winner plays.
    pub point: u32,
    /// The claim that he has then.
    pub claim: Claim,
}

impl Claim {
    /// Whether this is a claim of at least `need` points for the player whose stones are `stones`; else, what is wrong.
    pub fn check(self, grid: &Grid, stones: u64, need: i64) -> Result<(), &'static str> {
        let Claim { a, t } = self;
        if a == 0 {
            return Err("A is empty");
        }
        if a & !stones != 0 || grid.flood(a, stones) != a {
            return Err("A is not a union of chains of the winner");
        }
        let outside = stones & !a;
        let regions = grid.all & !stones;

        for chain in grid.parts(a) {
            let next_to_chain = grid.neighbours(chain);
            let is_eye = |region: &u64| region & !next_to_chain == 0 && grid.neighbours(*region) & outside == 0;
            if grid.parts(regions).filter(is_eye).count() < 2 {
                return Err("a chain of A has fewer than two eyes");
            }
        }

        if t & !regions != 0 || grid.flood(t, regions) != t {
            return Err("T is not a union of regions");
        }
        // The union of some regions is next to a chain only if one of them is.
        if grid.neighbours(t) & outside != 0 {
            return Err("a region of T is adjacent to a chain outside A");
        }
        if t & !grid.neighbours(a) != 0 {
            return Err("a point of T is not adjacent to A");
        }
        if i64::from(a.count_ones() + t.count_ones()) < need {
            return Err("A and T have too few points");
        }
        Ok(())
    }
}

/// Whether the ways are such that the loser, who is to move, cannot stop all of them with one stone; else, what is wrong.
pub fn check_miai(grid: &Grid, board: Board, winner: Color, ways: &[Way], need: i64) -> Result<(), String> {
    let stones = board.of(winner);
    let empty = grid.all & !board.stones();
    if ways.len() < 2 {
        return Err("there are fewer than two ways".into());
    }
    if !ways.is_sorted_by(|one, next| one.point < next.point) {
        return Err("the ways are not in increasing order of their points".into());
    }
    let mut stop_all = grid.all;
    for way in ways {
        let fail = |what: &str| format!("way {}: {what}", grid.name(way.point));
        let stone = 1u64 << way.point;
        if empty & stone == 0 {
            return Err(fail("the point is not empty"));
        }
        way.claim.check(grid, stones | stone, need).map_err(fail)?;
        if way.claim.a & stone == 0 {
            return Err(fail("the point is not in A"));
        }
        // What stops the way: a stone on its point, or one that captures a chain which the claim needs.
        let mut stops = stone;
        for chain in grid.parts(stones).filter(|chain| chain & way.claim.a != 0) {
            let liberties = grid.neighbours(chain) & empty;
            if liberties.count_ones() == 1 {
                stops |= liberties;
            }
        }
        stop_all &= stops;
    }
    match points(stop_all).next() {
        Some(point) => Err(format!("{} stops all ways", grid.name(point))),
        None => Ok(()),
    }
}

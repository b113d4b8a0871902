//! What the net sees of a position, always from the view of the side to move: small counts, so that colour swaps and mirror images
//! of a position have the same features by construction.
//!
//! Features fall into three groups by what they depend on, and that is what makes them cheap: the stones of one player (kept in a
//! cache, for stone sets recur), both players' stones, and the question asked (board, komi, passes), which is fixed for a search.

use crate::look_ahead::Outlook;
use multiversion::multiversion;
use superko_rules::Geometry;

/// Features of one player's stones.
pub(crate) const SIDE: usize = 36;
/// Features of both players' stones together.
pub(crate) const MIXED: usize = 63;
/// Features of the question.
pub(crate) const QUESTION: usize = 16;
/// All inputs in order: mover's side, other side, mixed, question.
pub(crate) const INPUTS: usize = 2 * SIDE + MIXED + QUESTION;

/// Counts of one kind, each times its norm an input of the net.
pub(crate) type SideCounts = [u8; SIDE];
pub(crate) type MixedCounts = [u8; MIXED];

/// By what a count is divided, so that inputs stay comparable between boards.
#[derive(Clone, Copy)]
enum Per {
    /// Points of the board.
    Points,
    /// Points on the edge.
    Edge,
    /// A constant.
    Const(f32),
}

/// Takes features in order.
trait Writer {
    fn put(&mut self, count: u32, per: Per);

    /// The size of a point set.
    fn mask(&mut self, set: u64, per: Per);
}

/// Keeps counts. Most are sizes of point sets, which are counted all at once at the end: the loop over them is the form in which a
/// compiler counts bits several sets at a time.
struct Counts<const N: usize> {
    counts: [u8; N],
    sets: [u64; N],
    at: usize,
}

impl<const N: usize> Counts<N> {
    fn new() -> Self {
        Counts { counts: [0; N], sets: [0; N], at: 0 }
    }

    #[inline(always)]
    fn finish(mut self) -> [u8; N] {
        debug_assert_eq!(self.at, N);
        for (count, set) in self.counts.iter_mut().zip(self.sets) {
            *count |= set.count_ones() as u8;
        }
        self.counts
    }
}

impl<const N: usize> Writer for Counts<N> {
    #[inline(always)]
    fn put(&mut self, count: u32, _: Per) {
        self.counts[self.at] = count.min(127) as u8;
        self.at += 1;
    }

    #[inline(always)]
    fn mask(&mut self, set: u64, _: Per) {
        self.sets[self.at] = set;
        self.at += 1;
    }
}

/// Keeps norms.
struct Norms<const N: usize> {
    norms: [f32; N],
    at: usize,
    per_point: f32,
    per_edge: f32,
}

impl<const N: usize> Norms<N> {
    fn new(geometry: &Geometry) -> Self {
        let per_edge = 1.0 / edge(geometry).count_ones() as f32;
        Norms { norms: [0.0; N], at: 0, per_point: 1.0 / geometry.points() as f32, per_edge }
    }
}

impl<const N: usize> Writer for Norms<N> {
    fn put(&mut self, _: u32, per: Per) {
        self.norms[self.at] = match per {
            Per::Points => self.per_point,
            Per::Edge => self.per_edge,
            Per::Const(divisor) => 1.0 / divisor,
        };
        self.at += 1;
    }

    fn mask(&mut self, _: u64, per: Per) {
        self.put(0, per);
    }
}

fn edge(geometry: &Geometry) -> u64 {
    let full = geometry.full();
    // Points without all four neighbours.
    full & !(geometry.east(full) & geometry.west(full) & geometry.north(full) & geometry.south(full))
}

fn corners(geometry: &Geometry) -> u64 {
    let full = geometry.full();
    let no_sideways = full & !(geometry.east(full) & geometry.west(full));
    let no_upright = full & !(geometry.north(full) & geometry.south(full));
    no_sideways & no_upright
}

/// The norms of the side and mixed counts on a board.
pub(crate) fn norms(geometry: &Geometry) -> ([f32; SIDE], [f32; MIXED]) {
    let (mut side, mut mixed) = (Norms::new(geometry), Norms::new(geometry));
    write_side(geometry, 0, &Outlook::default(), &mut side);
    write_mixed(geometry, [0, 0], [&Outlook::default(); 2], 0, &mut mixed);
    (side.norms, mixed.norms)
}

/// Counts of the player who has `stones`.
#[multiversion(targets("x86_64+popcnt+bmi1+bmi2+lzcnt"))]
pub(crate) fn side(geometry: &Geometry, stones: u64, outlook: &Outlook) -> SideCounts {
    let mut counts = Counts::new();
    write_side(geometry, stones, outlook, &mut counts);
    counts.finish()
}

/// `stones` and `outlooks` of the side to move and of the other; `need`: the margin that the side to move must reach.
#[multiversion(targets("x86_64+popcnt+bmi1+bmi2+lzcnt"))]
pub(crate) fn mixed(geometry: &Geometry, stones: [u64; 2], outlooks: [&Outlook; 2], need: i32) -> MixedCounts {
    let mut counts = Counts::new();
    write_mixed(geometry, stones, outlooks, need, &mut counts);
    counts.finish()
}

#[inline(always)]
fn write_side(geometry: &Geometry, stones: u64, outlook: &Outlook, out: &mut impl Writer) {
    use Per::{Const, Edge, Points};
    let full = geometry.full();
    let rest = full & !stones;
    let eyes = outlook.eyes;
    out.mask(stones, Points);
    out.mask(eyes.alive, Points);
    out.mask(eyes.territory, Points);
    out.put(u32::from(eyes.alive != 0), Const(1.0));
    out.put(outlook.most, Points);
    out.mask(outlook.completions, Const(2.0));
    out.put(u32::from(outlook.completions != 0), Const(1.0));
    out.mask(outlook.makes_two, Const(4.0));
    out.mask(outlook.makes_one, Const(4.0));
    out.mask(outlook.lively, Const(4.0));

    let touched = geometry.neighbors(stones);
    let (mut chains, mut single, mut largest_chain, mut most_eyes, mut all_eyes) = (0, 0, 0, 0, 0);
    let regions: Vec<u64> = geometry.components(rest).collect();
    for chain in geometry.components(stones) {
        let size = chain.count_ones();
        let around = geometry.neighbors(chain);
        chains += 1;
        single += u32::from(size == 1);
        largest_chain = largest_chain.max(size);
        let pure = regions.iter().filter(|&&region| region & !around == 0).count() as u32;
        most_eyes = most_eyes.max(pure.min(2));
        all_eyes += pure;
    }
    out.put(chains, Const(4.0));
    out.put(single, Const(4.0));
    out.put(largest_chain, Points);
    out.put(u32::from(most_eyes >= 1), Const(1.0));
    out.put(u32::from(most_eyes >= 2), Const(1.0));
    out.put(all_eyes, Const(4.0));

    let mut sizes = [0u32; 5];
    let (mut largest, mut second, mut pure_regions, mut pure_points) = (0, 0, 0, 0);
    for &region in &regions {
        let size = region.count_ones();
        let class = match size {
            1 => 0,
            2 => 1,
            3 => 2,
            4 | 5 => 3,
            _ => 4,
        };
        sizes[class] += 1;
        if size > largest {
            second = largest;
            largest = size;
        } else {
            second = second.max(size);
        }
        if region & !touched == 0 {
            pure_regions += 1;
            pure_points += size;
        }
    }
    for count in sizes {
        out.put(count, Const(2.0));
    }
    out.put(largest, Points);
    out.put(second, Points);
    out.put(pure_regions, Const(2.0));
    out.put(pure_points, Points);

    let near = touched & rest;
    out.mask(near, Points);
    out.mask((near | geometry.neighbors(near)) & rest, Points);
    out.mask(stones & edge(geometry), Edge);
    out.mask(stones & corners(geometry), Const(2.0));
    out.mask(rest & !geometry.neighbors(rest), Const(2.0));
    out.put((geometry.east(stones) & stones).count_ones() + (geometry.north(stones) & stones).count_ones(), Points);

    // Blocks of 2x2, named by their south-west point.
    let (a, b, c) = (stones, geometry.west(stones), geometry.south(stones));
    let d = geometry.south(b);
    let blocks = geometry.west(full) & geometry.south(geometry.west(full));
    out.mask(a & b & c & d & blocks, Points);
    out.mask(((a & b & (c ^ d)) | (c & d & (a ^ b))) & blocks, Points);
    out.mask(((a & d & !b & !c) | (b & c & !a & !d)) & blocks, Points);
    out.mask(((a & b & !c & !d) | (c & d & !a & !b) | (a & c & !b & !d) | (b & d & !a & !c)) & blocks, Points);
    // Points with one neighbour that is not the player's: eyes in the making.
    let [e, w, n, s] = directions(geometry, rest);
    let two_or_more = (e & w) | (n & s) | ((e | w) & (n | s));
    out.mask(rest & (e | w | n | s) & !two_or_more, Const(4.0));
}

fn directions(geometry: &Geometry, set: u64) -> [u64; 4] {
    [geometry.east(set), geometry.west(set), geometry.north(set), geometry.south(set)]
}

/// What chains of one player look like to the other.
#[derive(Default)]
struct Liberties {
    chains: [u32; 4],
    stones: [u64; 3],
    /// Chains in atari that gain two liberties or more by extending.
    escapes: u32,
    /// Single stones whose capture is a ko.
    kos: u32,
    /// Points on which chains in atari can be taken.
    takes: u64,
}

#[inline(always)]
fn liberties(geometry: &Geometry, stones: u64, empty: u64) -> Liberties {
    let mut found = Liberties::default();
    for chain in geometry.components(stones) {
        let free = geometry.neighbors(chain) & empty;
        let less_one = free & free.wrapping_sub(1);
        let less_two = less_one & less_one.wrapping_sub(1);
        if less_one == 0 {
            found.chains[0] += 1;
            found.stones[0] |= chain;
            found.takes |= free;
            let around = geometry.neighbors(free);
            let new = around & empty;
            found.escapes += u32::from(new & new.wrapping_sub(1) != 0);
            found.kos += u32::from(chain & chain.wrapping_sub(1) == 0 && around & !(stones) == 0);
        } else if less_two == 0 {
            found.chains[1] += 1;
            found.stones[1] |= chain;
        } else if less_two & less_two.wrapping_sub(1) == 0 {
            found.chains[2] += 1;
            found.stones[2] |= chain;
        } else {
            found.chains[3] += 1;
        }
    }
    found
}

#[inline(always)]
fn write_mixed(geometry: &Geometry, [own, other]: [u64; 2], outlooks: [&Outlook; 2], need: i32, out: &mut impl Writer) {
    use Per::{Const, Edge, Points};
    let full = geometry.full();
    let empty = full & !(own | other);
    let (own_near, other_near) = (geometry.neighbors(own), geometry.neighbors(other));

    out.mask(empty, Points);
    out.mask(empty, Const(16.0));
    for outlook in outlooks {
        out.mask(outlook.completions & empty, Const(1.0));
        out.mask(outlook.makes_two & empty, Const(2.0));
        out.mask(outlook.makes_one & empty, Const(4.0));
    }
    out.mask(own_near & empty & !other_near, Points);
    out.mask(other_near & empty & !own_near, Points);
    out.mask(own_near & other_near & empty, Points);
    for stones in [own, other] {
        let found = liberties(geometry, stones, empty);
        for (count, divisor) in found.chains.into_iter().zip([2.0, 2.0, 2.0, 4.0]) {
            out.put(count, Const(divisor));
        }
        for set in found.stones {
            out.mask(set, Points);
        }
        out.mask(found.takes, Const(2.0));
        out.put(found.escapes, Const(2.0));
        out.put(found.kos, Const(1.0));
    }

    // Empty points that each side reaches first, within two steps and at all.
    let (mut own_reach, mut other_reach) = (own, other);
    let mut within_two = None;
    for step in 0.. {
        if step == 2 {
            within_two = Some((own_reach, other_reach));
        }
        let grown = geometry.neighbors(own_reach) & empty & !other_reach & !own_reach;
        let other_grown = geometry.neighbors(other_reach) & empty & !own_reach & !other_reach;
        if (grown ^ other_grown) == 0 {
            break;
        }
        own_reach |= grown & !other_grown;
        other_reach |= other_grown & !grown;
    }
    let (own_two, other_two) = within_two.unwrap_or((own_reach, other_reach));
    for set in [own_two, other_two, own_reach, other_reach] {
        out.mask(set, Points);
    }

    // Area as it stands.
    let own_flood = geometry.flood(own_near & empty, empty);
    let other_flood = geometry.flood(other_near & empty, empty);
    let (own_area, other_area) = (own | (own_flood & !other_flood), other | (other_flood & !own_flood));
    out.mask(own_area & empty, Points);
    out.mask(other_area & empty, Points);
    out.put(u32::from(own_area.count_ones() as i32 - other_area.count_ones() as i32 >= need), Const(1.0));

    let rest = [full & !own, full & !other];
    let own_eyes = empty & !geometry.neighbors(rest[0]);
    let other_eyes = empty & !geometry.neighbors(rest[1]);
    out.mask(own_eyes, Const(2.0));
    out.mask(other_eyes, Const(2.0));
    for set in rest {
        // Empty points with one neighbour that is not the player's.
        let [e, w, n, s] = directions(geometry, set);
        let two_or_more = (e & w) | (n & s) | ((e | w) & (n | s));
        out.mask(empty & (e | w | n | s) & !two_or_more, Const(4.0));
    }
    out.mask(empty & edge(geometry), Edge);
    out.mask(empty & corners(geometry), Const(2.0));

    let contacts = |set: u64, with: u64| directions(geometry, set).map(|moved| (moved & with).count_ones()).iter().sum::<u32>();
    out.put(contacts(own, other), Points);

    // Blocks of 2x2, named by their south-west point.
    let corner = |set: u64| {
        let west = geometry.west(set);
        [set, west, geometry.south(set), geometry.south(west)]
    };
    let blocks = geometry.west(full) & geometry.south(geometry.west(full));
    let ([a, b, c, d], [e, f, g, h]) = (corner(own), corner(other));
    let three = |a: u64, b: u64, c: u64, d: u64| (a & b & (c ^ d)) | (c & d & (a ^ b));
    let diagonal = |a: u64, b: u64, c: u64, d: u64| (a & d & !b & !c) | (b & c & !a & !d);
    let (any_own, any_other) = (a | b | c | d, e | f | g | h);
    let (own_three, other_three) = (three(a, b, c, d), three(e, f, g, h));
    let (own_diagonal, other_diagonal) = (diagonal(a, b, c, d), diagonal(e, f, g, h));
    let many = |a: u64, b: u64, c: u64, d: u64| (a & b) | (c & d) | ((a | b) & (c | d));
    let (many_own, many_other) = (many(a, b, c, d), many(e, f, g, h));
    for set in [
        own_diagonal & other_diagonal,
        own_three & any_other,
        other_three & any_own,
        own_three & !any_other,
        other_three & !any_own,
        (a & b & g & h) | (c & d & e & f) | (a & c & f & h) | (b & d & e & g),
        own_diagonal & any_other & !many_other,
        other_diagonal & any_own & !many_own,
        own_diagonal & !any_other,
        other_diagonal & !any_own,
        any_own & !many_own & !any_other,
        any_other & !many_other & !any_own,
        !any_own & !any_other,
        many_own & any_other & !own_diagonal & !own_three & !many_other,
        many_other & any_own & !other_diagonal & !other_three & !many_own,
    ] {
        out.mask(set & blocks, Points);
    }
    // Neighbours in a row with one empty point between: `o.o`, `x.x` and `o.x`.
    let between = |set: u64, with: u64| {
        let upright = geometry.north(set) & geometry.south(with) & empty;
        (geometry.east(set) & geometry.west(with) & empty).count_ones() + upright.count_ones()
    };
    out.put(between(own, own), Points);
    out.put(between(other, other), Points);
    out.put(between(own, other) + between(other, own), Points);
}

/// The inputs that depend on board, komi and passes: `need` is the margin that the side to move must reach, `passes` the number of
/// passes just made.
pub(crate) fn question(geometry: &Geometry, need: i32, passes: u8) -> [f32; QUESTION] {
    let points = geometry.points() as i32;
    let wanted = |need: i32| (need + points + 1).div_euclid(2);
    let short = geometry.rows().min(geometry.cols());
    let mut out = [0.0; QUESTION];
    let mut at = 0;
    let mut put = |value: f32| {
        out[at] = value;
        at += 1;
    };
    let flag = |is: bool| f32::from(u8::from(is));
    put(need as f32 / points as f32);
    put(wanted(need) as f32 / 16.0);
    put(wanted(1 - need) as f32 / 16.0);
    for need in [need, 1 - need] {
        let spare = points - wanted(need);
        for limit in 0..4 {
            put(flag(spare <= limit));
        }
    }
    put(flag(short == 1));
    put(flag(short == 2));
    put(8.0 / points as f32);
    put(points as f32 / 16.0);
    put(flag(passes > 0));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_has_a_norm() {
        let geometry = Geometry::get(3, 4).unwrap();
        let (side, mixed) = norms(geometry);
        assert!(side.iter().chain(&mixed).all(|&norm| norm > 0.0 && norm <= 1.0));
    }
}

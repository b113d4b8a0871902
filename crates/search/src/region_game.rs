//! Local region games: the kill of what the winner's walls enclose, read out as a small game (paper, end of section 4 and A.4).
//!
//! # What is claimed
//!
//! Let `w` be the winner, `o` the loser, `A` the stones of `X*` (pure-eye analysis, Lemma 1). A *region* is a component of all other
//! points, whatever stands there. Some regions are territory of `T*` (every point touches `A`); every pure eye of an `X*` chain is one of
//! them, because all of its points touch that chain. Of the other regions some may be won by the *local game* below. Choose any
//! set of regions, each of the first or of the second kind, and call it the claim; `T` is the set of its points that hold no `w` stone.
//!
//! **Lemma.** If (C1) no board of the history has a `w` stone on `T`, (C2) the last move was not a pass by `w` with `o` to move, and
//! every claimed region of the second kind is won with `o` to move first (if `w` is to move: all but at most one, and that one with
//! `w` to move first), then `w` can enforce a final area of at least `|A|` plus the points of the claim. This holds under every
//! history with (C1): as a lemma it has `B = ∅`, `X = ∅` and this `T`.
//!
//! # The local game in a region `R`
//!
//! Its state: the `w` stones `W` and the `o` stones `O` in `R`, and who is to move. `W` may hold stones at the start: chains that are
//! not alive by themselves. A `w` stone in `R` is *anchored* if its chain within `R` touches a wall, that is a point outside `R`. (Every
//! neighbour of `R` outside `R` is a stone of `A`.)
//! - The state is *settled* if all of `W` is anchored and every other point of `R`, empty or occupied, touches a wall or an anchored stone.
//! - `o` may pass, or play any empty point of `R` where the rules allow a stone, superko apart. Anchored chains have liberties outside
//!   `R` and cannot be captured. If the stone captures any `w` stone, `o` wins.
//! - `w` plays an empty point of `R` that touches a wall or an anchored stone; in regions that are small enough also any other empty point
//!   at which the chain keeps a liberty. `w` may not pass.
//! - `w` wins when a settled state is reached, with either side to move.
//!
//! No `w` stone leaves the board except where `o` wins, so every two plies add a stone to `W`: the game is finite and without cycles, and
//! its outcome depends on `(R, W, O, side to move)` only. (Fewer moves for `w`, such as the limit on interior points, or giving up after so
//! many nodes, can only lose wins. The paper asks for a settled state without `o` stones; Lemma 1 captures those that are left.)
//!
//! # The strategy
//!
//! 1. If `o` has just played in a claimed region that is not settled, answer there as the local game says.
//! 2. Otherwise, if some claimed region is not settled, play there, as after a pass of `o` in it. (At the start, with `w` to move, this
//!    is the one region that is won only with `w` to move first, if there is one.)
//! 3. Otherwise σ of Lemma 1 over the claim: if an `o` stone stands in it, take a liberty of its chain; else pass.
//!
//! # Proof
//!
//! *Invariant.* (I) Every `w` chain that contains stones of `A` has two distinct eyes: sets of points without `w` stones, all of which touch
//! the chain, whose other neighbours are such chains, each with an empty point. (II) Every claimed region that is not settled is in a state
//! of its local game that `w` wins with `o` to move (after `o`'s move: `w` wins with `w` to move where `o` has moved, and with `o` to move
//! elsewhere). (III) A settled region stays settled. (IV) No `w` stone that stood in the claim at the start or was played since has been
//! captured.
//!
//! At the start (I) is the definition of `X*`; an eye without an empty point would hold an `o` chain without liberties. The two eyes are
//! regions of the first kind, and `A`, whose stones separate the regions, is never captured as long as (I) holds: so a stone in one region
//! changes the stones, liberties and chains of no other region, save that it may join chains of (I), which keeps (I). What a region's game
//! calls chains, liberties and captures is therefore what the board does: an `o` chain and a `w` chain without stones of `A` lie in one
//! region with all their liberties; an anchored chain is a chain of (I), which has liberties in two eyes.
//!
//! *A move of `o`* at `p` in any region, claimed or not. (I): were `p` the last empty point of an eye `E`, its chain would have no liberty and
//! would capture nothing, since each `w` chain around it keeps a liberty in its other eye: suicide. So `E` keeps an empty point, nothing of
//! `A` is captured, and the chains that can be captured border no eye. Hence no answer is ever urgent outside the unsettled claimed
//! regions. (II): in an unsettled claimed region the move is one of the local game's, which allows every move except suicide; superko only
//! takes some away. It is not one that captures, for `w` has won that state. (III): the settled region has only anchored `w` stones, which are
//! never captured. `o` passing is a pass of the local game in every region at once.
//!
//! *A move of `w`* by 1 or 2 exists in a won state that is not settled, keeps (II) by definition, and is no suicide: an anchored stone joins a
//! chain of (I), another keeps a liberty. It captures only `o` stones of `R`. `R` is not an eye (eyes are of the first kind, or, later, lie in
//! settled parts that σ made smaller). (I) holds: eyes are unchanged and chains only grow. A move by 3 at `q`: every empty point of the claim
//! touches a chain of (I), by the definition of `T*` or of settled, so the stone joins such a chain. If `q` lies in an eye `E`, then `E`
//! without `q` and with what was captured in it still touches the chain everywhere (its points are points of `E`), and holds an empty
//! point: another one, or those of the chain whose last liberty `q` was. (III) holds since anchored stones are only added and every point set
//! free was an occupied point that touched one.
//!
//! *Superko.* Suppose `w`'s stone at `q` recreated an earlier board: it has a `w` stone at `q`. All points that the strategy plays lie in the
//! claim and were empty, so by (IV) no board since the start of the claim had a `w` stone there, and `q` held none at the start: `q ∈ T`.
//! So the board is one of the history, against (C1).
//!
//! *The end.* Every stone move makes a new board, so the game ends, by two passes in a row. One of them is `w`'s, and by (C2) it comes from the
//! strategy: it was made with all claimed regions settled and without `o` stones, and the other pass changes nothing. Then each claimed
//! point is a `w` stone or an empty point whose empty neighbourhood meets `w` stones only. `A` stands as well. ∎
//!
//! A region that is left out, because C1 fails there, its game is lost, or the win does not need it, takes no part in the argument: nothing
//! that `o` does in it captures stones of `A`, and `w` never plays there.

use crate::board_set::mix;
use crate::mutation::{Dropped, dropped};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use superko_rules::{Geometry, bits};

/// How large the local games may be. Smaller limits lose claims, never soundness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionLimits {
    /// Points of the largest region that is read out; 0 switches region games off.
    pub region: usize,
    /// Points of the largest region in which the winner may play away from walls and anchored stones.
    pub interior: usize,
    /// States visited in reading one region; past them the region counts as not won.
    pub states: u32,
    /// Results kept; when there are more, all are dropped.
    pub kept: usize,
}

impl Default for RegionLimits {
    fn default() -> Self {
        RegionLimits { region: 14, interior: 8, states: 4000, kept: 1 << 17 }
    }
}

impl RegionLimits {
    /// No region games.
    pub const OFF: RegionLimits = RegionLimits { region: 0, interior: 0, states: 0, kept: 0 };
}

/// Who is to move in a local game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Turn {
    Winner,
    Loser,
}

/// A state of a local game. The region determines its walls, so nothing else matters: not the colours, not the board around it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    region: u64,
    winner: u64,
    loser: u64,
    turn: Turn,
}

impl std::hash::Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let side = if self.turn == Turn::Winner { 0x9e37_79b9_7f4a_7c15 } else { 0 };
        hasher.write_u64(mix(self.region ^ side).wrapping_add(mix(self.winner.rotate_left(20) ^ mix(self.loser))));
    }
}

/// The state's hash is mixed already; the standard hasher is several times slower here.
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("states hash as one word");
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = mix(word);
    }
}

/// What is known of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Local {
    /// The winner wins; with the winner to move in a state that is not settled, by this move.
    Won(Option<u8>),
    Lost,
    /// Not read to the end within the limit of states.
    Open,
}

/// Reads local games and remembers them.
pub(crate) struct RegionGames {
    geometry: &'static Geometry,
    limits: RegionLimits,
    known: HashMap<State, Local, BuildHasherDefault<Mixed>>,
    /// States that the reading under way may still visit.
    left: u32,
}

impl RegionGames {
    pub fn new(geometry: &'static Geometry, limits: RegionLimits) -> Self {
        RegionGames { geometry, limits, known: HashMap::default(), left: 0 }
    }

    pub fn limits(&self) -> RegionLimits {
        self.limits
    }

    /// The local game in `region` with the stones given, the winner to move first or not.
    pub fn read(&mut self, region: u64, winner: u64, loser: u64, winner_first: bool) -> Local {
        if self.known.len() >= self.limits.kept {
            self.known.clear();
        }
        self.left = self.limits.states;
        let state = State { region, winner, loser, turn: if winner_first { Turn::Winner } else { Turn::Loser } };
        let result = self.outcome(state);
        if result == Local::Open {
            self.known.insert(state, Local::Open); // not worth reading again
        }
        result
    }

    fn outcome(&mut self, state: State) -> Local {
        if let Some(&known) = self.known.get(&state) {
            return known;
        }
        if self.left == 0 {
            return Local::Open;
        }
        self.left -= 1;
        let reach = Reach::new(self.geometry, &state);
        let result = match state.turn {
            _ if reach.settled => Local::Won(None),
            Turn::Winner => self.winner_moves(state, &reach),
            Turn::Loser => self.loser_moves(state),
        };
        if result != Local::Open {
            self.known.insert(state, result);
        }
        result
    }

    fn winner_moves(&mut self, state: State, reach: &Reach) -> Local {
        let empty = state.region & !(state.winner | state.loser);
        let interior = state.region.count_ones() as usize <= self.limits.interior;
        let mut moves = [(0i32, 0u8, 0u64); 64];
        let mut count = 0;
        for point in bits(if interior { empty } else { empty & reach.near }) {
            let stone = 1u64 << point;
            let rest = empty & !stone;
            let around = self.geometry.neighbors(stone);
            let captured = self.breathless(around & state.loser, state.loser, rest);
            if stone & reach.near == 0 && !dropped(Dropped::RegionLiberty) {
                let chain = self.geometry.flood(stone, state.winner | stone);
                if self.geometry.neighbors(chain) & (rest | captured) == 0 {
                    continue;
                }
            }
            // Captures first, then moves that cover much of what is still open.
            let worth =
                4 * captured.count_ones() + (around & state.region & !reach.near).count_ones() + (around & state.loser).count_ones();
            moves[count] = (-(worth as i32), point as u8, captured);
            count += 1;
        }
        let moves = &mut moves[..count];
        moves.sort_unstable();
        let mut result = Local::Lost;
        for &(_, point, captured) in moves.iter() {
            let next = State { winner: state.winner | 1 << point, loser: state.loser & !captured, turn: Turn::Loser, ..state };
            match self.outcome(next) {
                Local::Won(_) => return Local::Won(Some(point)),
                Local::Open => result = Local::Open,
                Local::Lost => {}
            }
            if self.left == 0 {
                return Local::Open;
            }
        }
        result
    }

    fn loser_moves(&mut self, state: State) -> Local {
        let empty = state.region & !(state.winner | state.loser);
        let (edge, anchored) = anchored(self.geometry, &state);
        let loose = state.winner & !anchored;
        // A loose chain in atari: the loser takes it.
        let in_atari = |chain: u64| (self.geometry.neighbors(chain) & empty).is_power_of_two();
        if !dropped(Dropped::RegionCapture) && self.geometry.components(loose).any(in_atari) {
            return Local::Lost;
        }
        // The pass first: where the winner fails even with two moves in a row, no other reply need be read.
        let mut result = Local::Won(None);
        if !dropped(Dropped::RegionPass) {
            result = self.outcome(State { turn: Turn::Winner, ..state });
            if result == Local::Lost {
                return Local::Lost;
            }
        }
        let open = self.geometry.neighbors(empty & !edge);
        for point in bits(empty & open).chain(bits(empty & !open)) {
            let stone = 1u64 << point;
            let rest = empty & !stone;
            let around = self.geometry.neighbors(stone);
            let loser = state.loser | stone;
            if around & rest == 0 && self.geometry.neighbors(self.geometry.flood(stone, loser)) & rest == 0 {
                continue; // suicide: nothing can be captured here
            }
            match self.outcome(State { loser, turn: Turn::Winner, ..state }) {
                Local::Lost => return Local::Lost,
                Local::Open => result = Local::Open,
                Local::Won(_) => {}
            }
            if self.left == 0 {
                return Local::Open;
            }
        }
        match result {
            Local::Won(_) => Local::Won(None),
            other => other,
        }
    }

    /// The chains of `stones` through `touched` without a liberty among the points of `rest`.
    fn breathless(&self, mut touched: u64, stones: u64, rest: u64) -> u64 {
        let mut found = 0;
        while touched != 0 {
            let chain = self.geometry.flood(touched & touched.wrapping_neg(), stones);
            touched &= !chain;
            if self.geometry.neighbors(chain) & rest == 0 {
                found |= chain;
            }
        }
        found
    }
}

/// The points of the region next to its walls, and the winner's stones in chains that touch a wall.
fn anchored(geometry: &Geometry, state: &State) -> (u64, u64) {
    let edge = state.region & geometry.neighbors(geometry.full() & !state.region);
    let seeds = if dropped(Dropped::RegionAnchor) { state.winner } else { state.winner & edge };
    (edge, geometry.flood(seeds, state.winner))
}

/// What the walls and anchored stones of a state touch.
struct Reach {
    near: u64,
    settled: bool,
}

impl Reach {
    fn new(geometry: &Geometry, state: &State) -> Reach {
        let (edge, anchored) = anchored(geometry, state);
        let near = edge | geometry.neighbors(anchored);
        let mut open = state.region & !state.winner & !near;
        if dropped(Dropped::RegionPure) {
            open &= !state.loser;
        }
        if dropped(Dropped::RegionCovered) {
            open = state.loser;
        }
        Reach { near, settled: open == 0 && anchored == state.winner }
    }
}

#[cfg(test)]
mod tests;

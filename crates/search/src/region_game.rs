//! Local region games: the kill of what the winner's walls enclose, read out as a small game (paper, end of section 4 and A.4; this is a
//! wider game than the paper's, in which the winner may lose stones).
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
//! Its configuration: the `w` stones `W` and the `o` stones `O` in `R`. `W` may hold stones at the start: chains that are not alive by
//! themselves. Every neighbour of `R` outside `R`, a *wall*, is a stone of `A`. A `w` stone in `R` is *anchored* if its chain within `R`
//! touches a wall, *loose* otherwise. The configuration is *settled* if all of `W` is anchored and every other point of `R`, empty or
//! occupied, touches a wall or an anchored stone.
//!
//! `o` may pass, or play any empty point of `R` where the rules allow a stone, superko apart. Anchored chains have liberties outside `R`
//! and cannot be captured; loose chains can. `w` may not pass. Its moves are
//! - *anchored*: an empty point that touches a wall or an anchored stone;
//! - *loose*: in regions that are small enough, another empty point at which the chain keeps a liberty.
//!
//! `w` wins when a settled configuration is reached, whoever is to move. Loose moves are restricted so that no move of `w` can bring a
//! configuration back. Let a *stage* last from one anchored move (or the start) to the next, and let the *balance* of a configuration be
//! `|W| - |O|`.
//! - (L1) Once `o` has captured in a stage, a loose move of that stage may capture only if it makes the balance greater than it has been
//!   in the whole stage.
//! - (L2) Once a loose move has captured in a stage, `o` wins by capturing in that stage.
//! - (L3) While no stone is anchored, `w` plays no loose move after a capture by `o`.
//!
//! The state is the configuration, the side to move, and the phase of the stage: 1, nothing captured by `o` or by loose moves; 2, `o` has
//! captured, with the greatest balance of the stage; 3, a loose move has captured. Phases only go up within a stage. In phases 1 and 3
//! `W` only grows, in phase 2 `O` only grows, and `W` while `o` passes; an anchored move adds to the anchored stones, which are never
//! captured. So the game is finite and without cycles, and its outcome depends on `R` and the state alone. (Fewer moves for `w`, such as
//! the limit on loose moves, or giving up after so many states, can only lose wins. The paper has `o` win by any capture, and ends without
//! `o` stones; Lemma 1 captures those that are left.)
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
//! *Invariant.* (I) Every `w` chain that contains stones of `A` has two disjoint eyes: sets of points without `w` stones, all of which
//! touch the chain, whose other neighbours are such chains, each with an empty point. (II) Every claimed region that is not settled is
//! in a state of its local game that `w` wins with `o` to move (after `o`'s move: `w` wins with `w` to move where `o` has moved, and with
//! `o` to move elsewhere). (III) A settled region stays settled.
//!
//! At the start (I) is the definition of `X*`; an eye without an empty point would hold an `o` chain without liberties. The two eyes are
//! regions of the first kind, and `A`, whose stones separate the regions, is never captured as long as (I) holds: so a stone in one region
//! changes the stones, liberties and chains of no other region, save that it may join chains of (I), which keeps (I). What a region's game
//! calls chains, liberties and captures is therefore what the board does: an `o` chain and a `w` chain without stones of `A` lie in one
//! region with all their liberties; an anchored chain is part of a chain of (I), which has liberties in two eyes.
//!
//! *A move of `o`* at `p` in any region, claimed or not. (I): were `p` the last empty point of an eye `E`, its chain would have no liberty and
//! would capture nothing, since each `w` chain around it keeps a liberty in its other eye: suicide. So `E` keeps an empty point, nothing of
//! `A` is captured, and the chains that can be captured border no eye. Hence no answer is ever urgent outside the unsettled claimed
//! regions. (II): in an unsettled claimed region the move is one of the local game's, which allows every move except suicide; superko only
//! takes some away. (III): a settled region holds only anchored `w` stones, which are never captured. A pass of `o` is a pass of the local
//! game in every region at once.
//!
//! *A move of `w`* by 1 or 2 exists in a won state that is not settled, keeps (II) by definition, and is no suicide: an anchored stone joins a
//! chain of (I), another keeps a liberty. It captures only `o` stones of `R`, and `R` is no eye: eyes lie in regions of the first kind.
//! (I) holds: eyes are unchanged and chains only grow. A move by 3 at `q`: every empty point of the claim touches a chain of (I), by the
//! definition of `T*` or of settled, so the stone joins such a chain. If `q` lies in an eye `E`, then `E` without `q` and with what was
//! captured in it still touches the chain everywhere (its points are points of `E`), and holds an empty point: another one, or those of the
//! chain whose last liberty `q` was. (III) holds since anchored stones are only added and every point set free was an occupied point that
//! touched one.
//!
//! *Superko, boards of the continuation.* A stone of `w` in `R` never brings back a configuration that `R` had since the start; hence not
//! a board either. An anchored move makes the set of anchored stones larger than it ever was. So do the moves of σ, in regions of the first
//! kind too (count all `w` stones there as anchored). A loose move could at most bring back a configuration of its stage. In phases 1 and
//! 3 each makes `W` larger than it was before in the phase. In phase 2 `O` has not lost a stone since the stage began (phase 1 has no
//! captures but those of `o`): an equal earlier configuration would have the same `O`, so no stone of `o` came since, so no `w` stone was
//! lost since, and `W` has grown. A move of phase 3 might also bring back a configuration of the phases before; but the balance is greater
//! than any there. It was so, by L1, when phase 3 began after phase 2; or phase 3 began after phase 1, where `W` only grew and goes on to
//! grow. From then on `o` takes one off the balance with a stone, and `w`, who answers each stone, adds at least one.
//!
//! *Superko, boards of the history.* After each stone that the strategy plays, some `w` stone stands on `T`, which by (C1) is so on no board of
//! the history. This is clear where the point played is in `T`. A claimed point that is not in `T` held a `w` stone at the start, in an
//! unsettled region `R`, and `o` has captured it. Some stone of `R` is anchored now: else the move would be loose, against L3, since without an
//! anchored move the first stage lasts (σ plays in `R` only when it is settled, and a settled `R` without anchored stones would have been of
//! the first kind at the start). The first anchored stone of `R` touched a wall when it was played, so its point is in `T`: at the start `w`
//! stones next to `A` belonged to `A`. It stands for good.
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
    /// Points of the largest region in which the winner may play loose moves, away from walls and anchored stones.
    pub interior: usize,
    /// States visited in reading one region; past them the region counts as not won.
    pub states: u32,
    /// Results kept; when there are more, all are dropped.
    pub kept: usize,
}

impl Default for RegionLimits {
    /// Chosen by expansions. With the hand-set prior and no look-ahead 3x6 at 17.5 took 5.7 M without region games, 2.5 M with 4000 states
    /// and 2.0 M with 1000; with net, look-ahead and killer order 529 k with 4000 and 512 k with 1000. Larger interiors mostly cost time.
    fn default() -> Self {
        RegionLimits { region: 14, interior: 10, states: 1000, kept: 1 << 17 }
    }
}

impl RegionLimits {
    /// No region games.
    pub const OFF: RegionLimits = RegionLimits { region: 0, interior: 0, states: 1000, kept: 0 };
}

/// Who is to move in a local game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Turn {
    Winner,
    Loser,
}

/// The phase of a stage: the first, the second and the third.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Captures {
    None,
    /// The loser has captured (L1, L3); the greatest balance of the stage.
    ByLoser(i8),
    /// A loose move of the winner has captured (L2).
    ByLooseMove,
}

/// A state of a local game. The region determines its walls, so nothing else matters: not the colours, not the board around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    region: u64,
    winner: u64,
    loser: u64,
    turn: Turn,
    captures: Captures,
}

impl std::hash::Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let captures = match self.captures {
            Captures::None => 0,
            Captures::ByLooseMove => 1,
            Captures::ByLoser(most) => 2 + most as u8 as u64,
        };
        let rest = (2 * captures + self.turn as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hasher.write_u64(mix(self.region ^ rest).wrapping_add(mix(self.winner.rotate_left(20) ^ mix(self.loser))));
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
        let turn = if winner_first { Turn::Winner } else { Turn::Loser };
        let state = State { region, winner, loser, turn, captures: Captures::None };
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
            Turn::Loser => self.loser_moves(state, &reach),
        };
        if result != Local::Open {
            self.known.insert(state, result);
        }
        result
    }

    fn winner_moves(&mut self, state: State, reach: &Reach) -> Local {
        let mut moves = [(0i16, 0u8); 64];
        let mut count = 0;
        for point in bits(state.empty()) {
            let Some(next) = self.winner_option(&state, reach, point) else { continue };
            // Captures first, then moves that cover much of what is still open.
            let around = self.geometry.neighbors(1 << point) & state.region;
            let captured = (state.loser & !next.loser).count_ones();
            let worth = 4 * captured + (around & !reach.near).count_ones() + (around & state.loser).count_ones();
            moves[count] = (-(worth as i16), point as u8);
            count += 1;
        }
        let moves = &mut moves[..count];
        moves.sort_unstable();
        let mut result = Local::Lost;
        for &(_, point) in moves.iter() {
            let Some(next) = self.winner_option(&state, reach, point.into()) else { continue };
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

    /// The state after the winner's move at an empty point, if the local game allows it.
    fn winner_option(&self, state: &State, reach: &Reach, point: usize) -> Option<State> {
        let stone = 1u64 << point;
        let rest = state.empty() & !stone;
        let captured = self.breathless(self.geometry.neighbors(stone) & state.loser, state.loser, rest);
        let mut captures = Captures::None;
        if stone & reach.near == 0 {
            // A loose move: the stage goes on.
            captures = state.captures;
            if state.region.count_ones() as usize > self.limits.interior {
                return None;
            }
            let chain = self.geometry.flood(stone, state.winner | stone);
            if self.geometry.neighbors(chain) & (rest | captured) == 0 && !dropped(Dropped::RegionLiberty) {
                return None;
            }
            if matches!(captures, Captures::ByLoser(_)) && reach.anchored == 0 && !dropped(Dropped::RegionL3) {
                return None;
            }
        }
        let mut next = State { winner: state.winner | stone, loser: state.loser & !captured, turn: Turn::Loser, captures, ..*state };
        next.captures = match captures {
            Captures::ByLoser(most) if captured == 0 && dropped(Dropped::RegionRecord) => Captures::ByLoser(most),
            Captures::ByLoser(most) if captured == 0 => Captures::ByLoser(most.max(next.balance())),
            Captures::ByLoser(most) if next.balance() <= most && !dropped(Dropped::RegionL1) => return None,
            Captures::None if captured == 0 || stone & reach.near != 0 => Captures::None,
            _ => Captures::ByLooseMove,
        };
        Some(next)
    }

    fn loser_moves(&mut self, state: State, reach: &Reach) -> Local {
        let empty = state.empty();
        // The pass first: where the winner fails even with two moves in a row, no other reply need be read. Then captures.
        let mut result = if dropped(Dropped::RegionPass) { Local::Won(None) } else { self.outcome(State { turn: Turn::Winner, ..state }) };
        let loose = state.winner & !reach.anchored;
        let in_atari =
            self.geometry.components(loose).map(|chain| self.geometry.neighbors(chain) & empty).filter(|air| air.is_power_of_two());
        let captures = in_atari.fold(0, |set, air| set | air);
        let open = self.geometry.neighbors(empty & !reach.near) & !captures;
        for points in [captures, empty & open, empty & !captures & !open] {
            for point in bits(points) {
                if result == Local::Lost || self.left == 0 {
                    return if result == Local::Lost { Local::Lost } else { Local::Open };
                }
                match self.loser_option(&state, loose, point) {
                    Reply::Suicide => {}
                    Reply::Wins => return Local::Lost,
                    Reply::Stone(next) => match self.outcome(next) {
                        Local::Won(_) => {}
                        other => result = other,
                    },
                }
            }
        }
        if let Local::Won(_) = result { Local::Won(None) } else { result }
    }

    /// What the loser's move at an empty point does. `loose` are the winner's stones that are not anchored.
    fn loser_option(&self, state: &State, loose: u64, point: usize) -> Reply {
        let stone = 1u64 << point;
        let rest = state.empty() & !stone;
        let around = self.geometry.neighbors(stone);
        let captured = self.breathless(around & loose, loose, rest);
        let loser = state.loser | stone;
        let mut captures = state.captures;
        if captured != 0 {
            if captures == Captures::ByLooseMove && !dropped(Dropped::RegionL2) {
                return Reply::Wins;
            }
            // In the first phase the balance has never been greater than it is now, before the loser's move.
            if let Captures::None | Captures::ByLooseMove = captures {
                captures = Captures::ByLoser(state.balance());
            }
        } else if around & rest == 0 && self.geometry.neighbors(self.geometry.flood(stone, loser)) & rest == 0 {
            return Reply::Suicide;
        }
        Reply::Stone(State { winner: state.winner & !captured, loser, turn: Turn::Winner, captures, ..*state })
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

impl State {
    fn empty(&self) -> u64 {
        self.region & !(self.winner | self.loser)
    }

    fn balance(&self) -> i8 {
        self.winner.count_ones() as i8 - self.loser.count_ones() as i8
    }
}

/// The effect of a loser's move.
enum Reply {
    Suicide,
    Wins,
    Stone(State),
}

/// What walls and anchored stones reach in a configuration.
struct Reach {
    anchored: u64,
    /// Points that touch a wall or an anchored stone.
    near: u64,
    settled: bool,
}

impl Reach {
    fn new(geometry: &Geometry, state: &State) -> Reach {
        let edge = state.region & geometry.neighbors(geometry.full() & !state.region);
        let seeds = if dropped(Dropped::RegionAnchor) { state.winner } else { state.winner & edge };
        let anchored = geometry.flood(seeds, state.winner);
        let near = edge | geometry.neighbors(anchored);
        let mut open = state.region & !state.winner & !near;
        if dropped(Dropped::RegionPure) {
            open &= !state.loser;
        }
        if dropped(Dropped::RegionCovered) {
            open = 0;
        }
        Reach { anchored, near, settled: open == 0 && anchored == state.winner }
    }
}

#[cfg(test)]
mod tests;

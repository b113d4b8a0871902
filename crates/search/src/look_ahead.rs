//! Static look-ahead: a win by pure eyes that the winner still has to complete with one or two stones (findings 7.1).
//!
//! Write `S` for the winner's stones, `X*(S)` and `T*(S)` for their pure eyes (paper, section 4), and call an empty point `q` a
//! *completion* if, for the stones `S ∪ {q}`, `q` lies in `X*` and pure eyes claim the points wanted: `E(q)` of `X*(S ∪ {q})` and
//! a union `T(q)` of regions of `T*(S ∪ {q})`. Pure eyes depend on the winner's stones only, so completions are a matter of `S`.
//! Every claim below is a lemma with `B = X = ∅`; its `T` is the union of the `T(q)` it uses and the points its winner plays.
//!
//! **Playing a completion is legal and wins.** Let the winner be to move, `q` empty, and no board of the history have a winner
//! stone on `{q} ∪ T(q)`. (a) No suicide: in `S ∪ {q}` the chain of `q` is in `X*` and has two pure eyes. If one holds no empty point
//! once `q` is placed, it is full of loser chains whose neighbours are winner stones or in the eye; they have no liberty, are captured
//! by this move, and the eye has empty points, which touch the chain. (b) Superko: the board it creates has a winner stone on
//! `q`, no earlier one has. (c) Afterwards Lemma 1 applies to `X*(S ∪ {q})` and `T(q)`: the move takes off loser stones only;
//! C1 holds, since the new board has no winner stone on `T(q)`, which is disjoint from `S ∪ {q}`; C2 holds, since the last move was no pass.
//!
//! **l1**, winner to move: there is a completion. `T = {q} ∪ T(q)`.
//!
//! **l2**, loser to move, the last move no pass: there is a set `Q` of completions such that no point stops all of them, where `p` stops
//! `q` if `p = q` or `p` is the only liberty of a winner chain inside `E(q)`. `T` is the union of all `{q} ∪ T(q)`. Whatever the loser
//! plays, some `q ∈ Q` still wins: (d) a pass changes nothing and does not end the game (the last move was no pass). (e) A
//! stone on `p` leaves some `q` that it does not stop. That `q` is empty still (`p ≠ q`, and captures only free points). What
//! winner chains the move captures have `p` as their only liberty, so they lie outside `E(q)`: a chain of `S` lies within one of
//! `S ∪ {q}`, which is in `X*` or not. Let `S'` be the stones left. The regions of `S ∪ {q}` that are eyes of `E(q)` or belong to `T(q)`
//! are bordered by `E(q)` only, so no captured stone was beside them and they are regions of `S' ∪ {q}` too; hence `E(q)` and `T(q)` are
//! claims of pure eyes for `S' ∪ {q}`, and `q` is a completion now. The new board has no winner stone that the old one had not,
//! so the history still has none on `{q} ∪ T(q)`, and the winner plays `q`.
//!
//! **l3**, winner to move: after a stone on `m` that is no suicide, l2 holds with `Q`, and no board of the history has a winner stone
//! on `m`. That stone is superko-legal as in (b), the last move is then no pass, and l2's `T` is disjoint from the stones of
//! the new board. `T` is that of l2 and `m`.
//!
//! Why `q` must lie in `X*`: only (a) needs it. A stone outside `X*` completes nothing new: its chain borders no region that counts, so the
//! same chains and regions are claimed for `S` alone, and the position was a leaf before.

use crate::mutation::{Dropped, dropped};
use crate::static_leaf::{LeafKind, StaticLeaves, StaticWin, claim, wanted};
use superko_rules::{Board, Color, Geometry, Move, Position, PureEyes, bits};

/// The look-ahead for both colours at one komi.
pub(crate) struct LookAhead {
    geometry: &'static Geometry,
    /// Points that Black and White need.
    wanted: [u32; 2],
}

/// One player's side of it.
#[derive(Clone, Copy)]
struct Side {
    geometry: &'static Geometry,
    winner: Color,
    wanted: u32,
}

impl Side {
    /// Whether `stones` touch so many points that pure eyes might claim what is wanted: every point claimed is a stone or beside one.
    fn reaches(&self, stones: u64) -> bool {
        (stones | self.geometry.neighbors(stones)).count_ones() >= self.wanted
    }

    /// Points that complete the claim for `stones`, as far as pure eyes tell: whether they are empty is not asked.
    fn completions(&self, leaves: &mut StaticLeaves, stones: u64) -> u64 {
        let which = self.winner as usize;
        if let Some(known) = leaves.set(stones, which) {
            return known;
        }
        let mut found = 0;
        for point in bits(self.geometry.full() & !stones) {
            let with = stones | 1 << point;
            if self.reaches(with) && leaves.points(with) >= self.wanted && leaves.eyes(with).alive >> point & 1 == 1 {
                found |= 1 << point;
            }
        }
        leaves.put(stones, which, found);
        found
    }

    /// Whether there are any.
    fn has_completion(&self, leaves: &mut StaticLeaves, stones: u64) -> bool {
        leaves.holds(stones, self.winner as usize).unwrap_or_else(|| self.completions(leaves, stones) != 0)
    }

    /// Points after which there are two completions.
    fn makes_two(&self, leaves: &mut StaticLeaves, stones: u64) -> u64 {
        let which = 2 + self.winner as usize;
        if let Some(known) = leaves.set(stones, which) {
            return known;
        }
        let found = bits(self.geometry.full() & !stones)
            .filter(|&point| self.completions(leaves, stones | 1 << point).count_ones() >= 2)
            .fold(0, |set, point| set | 1 << point);
        leaves.put(stones, which, found);
        found
    }
}

/// What one player's stones might become, whatever the other's are: inputs of the prior.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outlook {
    pub eyes: PureEyes,
    /// Points that complete the claim wanted; after which there are two of those; after which there is one.
    pub completions: u64,
    pub makes_two: u64,
    pub makes_one: u64,
    /// Points with which there is a chain with pure eyes, and the most points that one of them brings.
    pub lively: u64,
    pub most: u32,
}

impl LookAhead {
    /// For a komi that asks these margins of Black and of White.
    pub fn new(geometry: &'static Geometry, need_black: i32, need_white: i32) -> LookAhead {
        LookAhead { geometry, wanted: [wanted(geometry, need_black), wanted(geometry, need_white)] }
    }

    /// The outlook of the player `color` with `stones`.
    pub fn outlook(&self, leaves: &mut StaticLeaves, color: Color, stones: u64) -> Outlook {
        let side = Side { geometry: self.geometry, winner: color, wanted: self.wanted[color as usize] };
        let eyes = leaves.eyes(stones);
        let (mut makes_one, mut lively, mut most) = (0, 0, eyes.points());
        for point in bits(self.geometry.full() & !stones) {
            let with = leaves.points(stones | 1 << point);
            lively |= u64::from(with != 0) << point;
            most = most.max(with);
            makes_one |= u64::from(side.has_completion(leaves, stones | 1 << point)) << point;
        }
        Outlook { eyes, completions: side.completions(leaves, stones), makes_two: side.makes_two(leaves, stones), makes_one, lively, most }
    }

    /// The ways behind a claim of l2 for `winner` on `board`, by their points.
    pub fn ways(&self, leaves: &mut StaticLeaves, board: Board, winner: Color, stood: u64) -> Vec<Way> {
        let side = Side { geometry: self.geometry, winner, wanted: self.wanted[winner as usize] };
        side.ways(leaves, board, stood).unwrap_or_default()
    }

    /// Whether `winner` wins `position` by l1, l2 or l3. `stood` are the points on which some board of the history has a stone of `winner`.
    pub fn win(&self, leaves: &mut StaticLeaves, position: Position, winner: Color, stood: u64) -> Option<StaticWin> {
        let geometry = self.geometry;
        let side = Side { geometry, winner, wanted: self.wanted[winner as usize] };
        let board = position.board;
        let empty = geometry.full() & !board.occupied();
        // C1 for the points to be played.
        let fresh = |point: &usize| stood >> point & 1 == 0 || dropped(Dropped::AheadC1);
        let with = |win: StaticWin, kind, point: usize| StaticWin {
            territory: win.territory | if dropped(Dropped::AheadTerritory) { 0 } else { 1 << point },
            kind,
            best: Some(Move::Stone(point as u8)),
            ..win
        };
        if position.to_move != winner {
            return (position.passes == 0 || dropped(Dropped::AheadC2)).then(|| side.miai(leaves, board, stood))?;
        }
        let stones = board.stones(winner);
        let mut ways = bits(side.completions(leaves, stones) & empty).filter(fresh);
        if let Some(win) = ways.find_map(|point| {
            let win = claim(geometry, leaves.eyes(stones | 1 << point), winner, side.wanted, stood)?;
            Some(with(win, LeafKind::OneMove, point))
        }) {
            return Some(win);
        }
        let moves = side.makes_two(leaves, stones) & empty;
        bits(moves).filter(|point| fresh(point) || dropped(Dropped::AheadFirstC1)).find_map(|point| {
            let after = board.place(geometry, winner, point).ok()?.board;
            let win = side.miai(leaves, after, stood)?;
            let territory = win.territory;
            let win = with(win, LeafKind::MoveToMiai, point);
            Some(if dropped(Dropped::AheadFirstTerritory) { StaticWin { territory, ..win } } else { win })
        })
    }
}

/// A completion that C1 allows: the claim that it makes, and the loser's points that stop it.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub point: u8,
    /// `E(q)`, the point itself among it.
    pub alive: u64,
    /// `T(q)` and the point.
    pub territory: u64,
    margin: i32,
    stopped_by: u64,
}

impl Side {
    /// l2: the loser is to move on `board` after a move that was no pass.
    fn miai(&self, leaves: &mut StaticLeaves, board: Board, stood: u64) -> Option<StaticWin> {
        self.ways(leaves, board, stood).map(|ways| join(&ways, self.winner))
    }

    /// Ways that no point stops all of.
    fn ways(&self, leaves: &mut StaticLeaves, board: Board, stood: u64) -> Option<Vec<Way>> {
        let Side { geometry, winner, wanted } = *self;
        let stones = board.stones(winner);
        let empty = geometry.full() & !board.occupied();
        let points = self.completions(leaves, stones) & empty;
        if points.count_ones() < 2 {
            return None;
        }
        // Chains with one liberty, and that liberty.
        let mut atari = [(0, 0); 32];
        let mut in_atari = 0;
        for chain in geometry.components(stones) {
            let liberties = geometry.neighbors(chain) & empty;
            if liberties.is_power_of_two() && !dropped(Dropped::AheadAtari) {
                atari[in_atari] = (chain, liberties);
                in_atari += 1;
            }
        }
        let mut ways: Vec<Way> = Vec::new();
        let mut stop_all = u64::MAX;
        for point in bits(points).filter(|point| stood >> point & 1 == 0 || dropped(Dropped::AheadC1)) {
            let eyes = leaves.eyes(stones | 1 << point);
            let Some(win) = claim(geometry, eyes, winner, wanted, stood) else { continue };
            let itself = if dropped(Dropped::AheadOccupied) { 0 } else { 1 << point };
            let stopped_by =
                atari[..in_atari].iter().filter(|(chain, _)| chain & eyes.alive != 0).fold(itself, |set, (_, liberty)| set | liberty);
            let territory = win.territory | if dropped(Dropped::AheadTerritory) { 0 } else { 1 << point };
            let way = Way { point: point as u8, alive: eyes.alive, territory, margin: win.margin, stopped_by };
            // Two ways that share no stop are the usual case, and need the least territory.
            if let Some(&other) = ways.iter().find(|other| other.stopped_by & stopped_by == 0) {
                return Some(vec![other, way]);
            }
            ways.push(way);
            stop_all &= stopped_by;
        }
        (!ways.is_empty() && stop_all == 0).then_some(ways)
    }
}

fn join(ways: &[Way], winner: Color) -> StaticWin {
    StaticWin {
        winner,
        margin: ways.iter().map(|way| way.margin).min().expect("there is a way"),
        territory: ways.iter().fold(0, |set, way| set | way.territory),
        kind: LeafKind::Miai,
        best: None,
    }
}

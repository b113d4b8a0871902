//! Claims of static territory and of regions won by local games together (the lemma is proved in [`crate::region_game`]).

use crate::mutation::{Dropped, dropped};
use crate::region_game::{Local, RegionGames};
use crate::static_leaf::{LeafKind, StaticWin};
use superko_rules::{Color, Geometry, Move, Position, PureEyes};

/// A region that the claim may hold.
#[derive(Clone, Copy, Default)]
struct Part {
    region: u64,
    /// Points of it without a winner stone: C1 is asked of them.
    territory: u64,
    by_game: bool,
    /// Won only with the winner to move first.
    needs_first_move: bool,
    /// The winner's move there, if the winner is to move.
    local_move: Option<u8>,
}

impl Part {
    fn size(&self) -> i32 {
        self.region.count_ones() as i32
    }
}

/// A claim of at least `wanted` points for `winner` that needs a region game; pure eyes alone are known to fall short. C2 has been
/// tested. `stood` are the points on which some board of the history has a winner stone.
pub(crate) fn claim(
    geometry: &Geometry,
    games: &mut RegionGames,
    eyes: PureEyes,
    position: Position,
    winner: Color,
    wanted: i32,
    stood: u64,
) -> Option<StaticWin> {
    if eyes.alive == 0 || games.limits().region == 0 {
        return None;
    }
    let stones = position.board.stones(winner);
    // Points that are neither alive nor in the settled territory: every region of these has a point that no wall touches.
    let most = games.limits().region;
    let open = || {
        geometry
            .components(geometry.full() & !(eyes.alive | eyes.territory))
            .map(|region| Part { region, territory: region & !stones, by_game: true, ..Part::default() })
            .filter(|part| part.size() as usize <= most)
            .filter(|part| part.territory & stood == 0 || dropped(Dropped::RegionC1))
    };
    let settled = eyes.regions(geometry).filter(|region| region & stood == 0 || dropped(Dropped::C1));
    let settled = settled.map(|region| Part { region, territory: region, ..Part::default() });
    let alive = eyes.alive.count_ones() as i32;
    // Mostly this ends it, before anything is put on the heap.
    let mut possible = eyes.points() as i32 + open().map(|part| part.size()).sum::<i32>();
    if possible < wanted {
        return None;
    }
    let mut parts: Vec<Part> = settled.collect();
    let mut open: Vec<Part> = open().collect();
    let mut have = alive + parts.iter().map(Part::size).sum::<i32>();
    possible = have + open.iter().map(Part::size).sum::<i32>();
    // Small regions first: they are read quickly, and one that is lost often settles the matter.
    open.sort_unstable_by_key(|part| (part.size(), part.region));
    let winner_moves = position.to_move == winner;
    let mut first_move_free = winner_moves;
    for part in &mut open {
        if possible < wanted || have >= wanted {
            break;
        }
        if win_part(games, position, winner, winner_moves, first_move_free, part) {
            first_move_free &= !part.needs_first_move || dropped(Dropped::RegionTempo) || dropped(Dropped::RegionOneFirst);
            have += part.size();
            parts.push(*part);
        } else {
            possible -= part.size();
        }
    }
    if have < wanted {
        return None;
    }
    // Drop what the win does not need: a small territory is violated by few histories.
    parts.sort_unstable_by_key(|part| (part.size(), part.region));
    let points = geometry.points() as i32;
    parts.retain(|part| {
        let spare = have - part.size() >= wanted;
        have -= if spare { part.size() } else { 0 };
        !spare
    });
    // A region that needs the first move gets it; failing that, any that is not settled.
    let local = parts.iter().filter(|part| part.by_game).max_by_key(|part| part.needs_first_move);
    Some(StaticWin {
        winner,
        margin: 2 * have - points,
        territory: parts.iter().fold(0, |set, part| set | part.territory),
        kind: if local.is_some() { LeafKind::RegionGame } else { LeafKind::PureEyes },
        best: local.and_then(|part| part.local_move).map(Move::Stone),
    })
}

/// Whether the local game in `part` is won, the winner moving first there only if `first_move_free`.
fn win_part(
    games: &mut RegionGames,
    position: Position,
    winner: Color,
    winner_moves: bool,
    first_move_free: bool,
    part: &mut Part,
) -> bool {
    let own = position.board.stones(winner) & part.region;
    let other = position.board.stones(winner.opponent()) & part.region;
    if winner_moves || dropped(Dropped::RegionTempo) {
        // Won with the loser to move implies won with the winner to move, since the loser may pass.
        let Local::Won(local_move) = games.read(part.region, own, other, true) else { return false };
        part.local_move = local_move;
    }
    let second = matches!(games.read(part.region, own, other, false), Local::Won(_));
    part.needs_first_move = !second;
    second || first_move_free || dropped(Dropped::RegionTempo)
}

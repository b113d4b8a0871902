//! What is already proven about a position, without any search.

use crate::board_set::KnownBoard;
use crate::dfpn::Node;
use crate::history::History;
use crate::static_leaf::StaticLeaves;
use crate::transfer::Transfer;
use crate::{LemmaHead, PositionKey, RegionLimits, Table};
use std::collections::HashMap;
use superko_rules::{Color, Game, Geometry, Illegal, Move, Position};

/// Black's margin under best play lies within `lower..=upper`; nothing known means minus to plus the number of points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Least possible margin, in points.
    pub lower: i32,
    /// Greatest possible margin, in points.
    pub upper: i32,
}

/// What is known of a position and of each move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// Of the position itself.
    pub bounds: Bounds,
    /// For every point that is empty, and the pass: the bounds after the move, or why it is illegal. Empty when the game is over.
    pub moves: Vec<(Move, Result<Bounds, Illegal>)>,
}

/// Looks a game up in the tables' lemmas, under the reuse test against the game's own history. Static knowledge counts as proven.
/// Panics if a table is for another board size.
pub fn lookup(tables: &[&dyn Table], game: &Game) -> Lookup {
    look_up(&mut Known::new(tables, game.geometry()), game)
}

/// Looks several games up, all on boards of this shape; they share what static analysis costs.
pub fn lookup_all<'a>(tables: &[&dyn Table], geometry: &'static Geometry, games: impl IntoIterator<Item = &'a Game>) -> Vec<Lookup> {
    let mut known = Known::new(tables, geometry);
    games.into_iter().map(|game| look_up(&mut known, game)).collect()
}

fn look_up(known: &mut Known<'_>, game: &Game) -> Lookup {
    let geometry = known.geometry;
    let mut history = History::new();
    for &board in game.boards() {
        history.push(KnownBoard::new(board, geometry.canonical(board)));
    }
    let position = game.position();
    let mut bounds = known.bounds(position, &history);
    if game.is_over() {
        return Lookup { bounds, moves: Vec::new() };
    }
    let points = geometry.points() as u8;
    let mut moves = Vec::new();
    for mv in (0..points).map(Move::Stone).chain([Move::Pass]) {
        let checked = game.check(mv);
        if checked == Err(Illegal::Occupied) {
            continue;
        }
        let after = checked.map(|next| {
            let pushed = mv != Move::Pass && history.push(KnownBoard::new(next.board, geometry.canonical(next.board)));
            let bounds = known.bounds(next, &history);
            if pushed {
                history.pop();
            }
            bounds
        });
        moves.push((mv, after));
    }
    // The side to move takes its best move: the margin is the greatest (for White the least) over all legal moves.
    let legal = || moves.iter().filter_map(|(_, after)| after.as_ref().ok());
    let pick = |ends: &mut dyn Iterator<Item = i32>| match position.to_move {
        Color::Black => ends.max(),
        Color::White => ends.min(),
    };
    if let (Some(lower), Some(upper)) = (pick(&mut legal().map(|b| b.lower)), pick(&mut legal().map(|b| b.upper))) {
        bounds.lower = bounds.lower.max(lower);
        bounds.upper = bounds.upper.min(upper);
    }
    // The position's value is the best over its moves, so no move does better than the position's bound.
    for after in moves.iter_mut().filter_map(|(_, after)| after.as_mut().ok()) {
        match position.to_move {
            Color::Black => after.upper = after.upper.min(bounds.upper),
            Color::White => after.lower = after.lower.max(bounds.lower),
        }
    }
    Lookup { bounds, moves }
}

fn read(table: &dyn Table, key: PositionKey) -> Vec<LemmaHead> {
    let mut heads = Vec::new();
    table.lemmas(key, &mut heads);
    heads
}

struct Known<'a> {
    tables: &'a [&'a dyn Table],
    geometry: &'static Geometry,
    transfer: Transfer,
    static_leaves: StaticLeaves,
    /// The lemmas of the positions met so far, table by table: those of a store are slow to read, and symmetric moves have the same ones.
    heads: HashMap<PositionKey, Vec<Vec<LemmaHead>>>,
}

impl<'a> Known<'a> {
    fn new(tables: &'a [&'a dyn Table], geometry: &'static Geometry) -> Known<'a> {
        let static_leaves = StaticLeaves::small(geometry, RegionLimits::default());
        Known { tables, geometry, transfer: Transfer::default(), static_leaves, heads: HashMap::new() }
    }

    fn bounds(&mut self, position: Position, history: &History) -> Bounds {
        let points = self.geometry.points() as i32;
        if position.passes == 2 {
            let score = position.board.area_score(self.geometry);
            return Bounds { lower: score, upper: score };
        }
        let node = Node::new(self.geometry, position);
        let heads = self.heads.entry(node.key).or_insert_with(|| self.tables.iter().map(|table| read(*table, node.key)).collect());
        // The greatest margin that a winner is known to have, from lemmas and from static knowledge.
        let mut margin = |winner: Color| {
            let read = self.tables.iter().zip(heads.iter());
            let proven =
                read.filter_map(|(&table, heads)| self.transfer.greatest_margin(table, node.key, heads, node.canonical, history, winner));
            let claimed = (-points..=points).rev().find_map(|need| self.static_leaves.win(position, winner, need, history.stood(winner)));
            proven.chain(claimed.map(|win| win.margin)).max().unwrap_or(-points)
        };
        Bounds { lower: margin(Color::Black), upper: -margin(Color::White) }
    }
}

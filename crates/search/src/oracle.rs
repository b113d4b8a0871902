//! The slow oracle: a plain search with no static knowledge, to compare the solver with.
//!
//! It reuses a result only in the identical superko game, that is for the same position, komi and exact set of boards that may not
//! recur. Such states form no cycle (every stone move adds a board), so ordinary proof numbers are exact on them. Boards and sets
//! are interned, and a state is named by their numbers: no identity rests on a hash. It shares nothing with the solver but the
//! rules.

use crate::Komi;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use superko_rules::{Board, Color, Game, Geometry, bits};

/// A proof or disproof number this large is final.
const INFINITE: u32 = u32::MAX;

/// Results and sets are dropped at the start of a question once so many states are kept.
const MOST_STATES: usize = 1_000_000;

/// Mixes small integers; the standard hasher is several times slower here, and nobody chooses the keys to harm us.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(23) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}

type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// Number of an interned board.
type BoardId = u32;
/// Number of an interned set of boards.
type SetId = u32;

/// A superko game in progress.
#[derive(Clone, Copy)]
struct State {
    board: Board,
    id: BoardId,
    set: SetId,
    to_move: Color,
    passes: u8,
}

/// Everything that decides a state's outcome: the set of boards, the current one, and komi, side and passes packed together.
type StateKey = (SetId, BoardId, u32);

/// Proof numbers of the side to move: `phi` to win, `delta` to lose.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    phi: u32,
    delta: u32,
}

const WON: Numbers = Numbers { phi: 0, delta: INFINITE };
const LOST: Numbers = Numbers { phi: INFINITE, delta: 0 };

struct Child {
    /// `None` for a pass.
    board: Option<(Board, BoardId)>,
    /// From the view of the side to move at the child.
    numbers: Numbers,
}

/// Decides games by exhaustive search. Results are kept from one question to the next.
#[derive(Debug)]
pub struct Oracle {
    budget: u64,
    spent: u64,
    geometry: Option<&'static Geometry>,
    board_ids: HashMap<Board, BoardId>,
    set_ids: HashMap<Arc<[BoardId]>, SetId>,
    sets: Vec<Arc<[BoardId]>>,
    /// `(set, board)` to the set with that board added, as far as asked for.
    grown: IdMap<(SetId, BoardId), SetId>,
    known: IdMap<StateKey, Numbers>,
}

impl Oracle {
    /// An oracle that gives a question up after `node_budget` expansions.
    pub fn new(node_budget: u64) -> Oracle {
        Oracle {
            budget: node_budget,
            spent: 0,
            geometry: None,
            board_ids: HashMap::default(),
            set_ids: HashMap::default(),
            sets: Vec::new(),
            grown: IdMap::default(),
            known: IdMap::default(),
        }
    }

    /// Expansions spent on the last question.
    pub fn spent(&self) -> u64 {
        self.spent
    }

    /// Whether Black wins `game` at `komi` under best play; `None` if the budget does not suffice.
    pub fn black_wins(&mut self, game: &Game, komi: Komi) -> Option<bool> {
        if self.geometry != Some(game.geometry()) || self.known.len() > MOST_STATES {
            *self = Oracle { geometry: Some(game.geometry()), ..Oracle::new(self.budget) };
        }
        self.spent = 0;
        let position = game.position();
        if game.is_over() {
            return Some(game.score() >= komi.need(Color::Black));
        }
        let mut ids: Vec<BoardId> = game.boards().iter().map(|&board| self.board_id(board)).collect();
        ids.sort_unstable();
        ids.dedup();
        let set = self.set_id(ids);
        let state =
            State { board: position.board, id: self.board_id(position.board), set, to_move: position.to_move, passes: position.passes };
        let numbers = self.search(game.geometry(), komi, state, INFINITE, INFINITE)?;
        Some((numbers.phi == 0) == (position.to_move == Color::Black))
    }

    /// Black's margin under best play, within the board's points; `None` if the budget does not suffice for one of the questions.
    pub fn value(&mut self, game: &Game) -> Option<i32> {
        let points = game.geometry().points() as i32;
        let (mut lower, mut upper) = (-points, points);
        while lower < upper {
            let middle = (lower + upper + 1).div_euclid(2);
            match self.black_wins(game, Komi::below(middle))? {
                true => lower = middle,
                false => upper = middle - 1,
            }
        }
        Some(lower)
    }

    fn board_id(&mut self, board: Board) -> BoardId {
        let next = self.board_ids.len() as BoardId;
        *self.board_ids.entry(board).or_insert(next)
    }

    fn set_id(&mut self, sorted: Vec<BoardId>) -> SetId {
        let set: Arc<[BoardId]> = sorted.into();
        if let Some(&id) = self.set_ids.get(&set) {
            return id;
        }
        let id = self.sets.len() as SetId;
        self.sets.push(set.clone());
        self.set_ids.insert(set, id);
        id
    }

    /// The set with `board` added.
    fn grow(&mut self, set: SetId, board: BoardId) -> SetId {
        if let Some(&id) = self.grown.get(&(set, board)) {
            return id;
        }
        let old = &self.sets[set as usize];
        let at = old.partition_point(|&id| id < board);
        let mut new = Vec::with_capacity(old.len() + 1);
        new.extend_from_slice(&old[..at]);
        new.push(board);
        new.extend_from_slice(&old[at..]);
        let id = self.set_id(new);
        self.grown.insert((set, board), id);
        id
    }

    fn key(set: SetId, board: BoardId, to_move: Color, passes: u8, komi: Komi) -> StateKey {
        let margin = (komi.need(Color::Black) + 128) as u32;
        (set, board, margin << 2 | u32::from(to_move == Color::White) << 1 | u32::from(passes))
    }

    /// Depth-first proof-number search until `phi` or `delta` reaches its limit; `None` once the budget is spent.
    fn search(&mut self, geometry: &'static Geometry, komi: Komi, state: State, phi_limit: u32, delta_limit: u32) -> Option<Numbers> {
        let key = Self::key(state.set, state.id, state.to_move, state.passes, komi);
        if let Some(&numbers) = self.known.get(&key)
            && (numbers.phi >= phi_limit || numbers.delta >= delta_limit)
        {
            return Some(numbers);
        }
        self.spent += 1;
        if self.spent > self.budget {
            return None;
        }
        let mut children = self.children(geometry, komi, state);
        loop {
            // Negamax form: the node is won as soon as one child is lost for its mover, and lost when every child is won.
            let (mut best, mut first, mut second, mut delta) = (0, INFINITE, INFINITE, 0u32);
            for (at, child) in children.iter().enumerate() {
                let cost = child.numbers.delta;
                if cost < first {
                    (best, second, first) = (at, first, cost);
                } else {
                    second = second.min(cost);
                }
                delta = delta.saturating_add(child.numbers.phi).min(INFINITE - 1);
            }
            let numbers = match first {
                0 => WON,
                INFINITE => LOST,
                phi => Numbers { phi, delta },
            };
            if numbers.phi >= phi_limit || numbers.delta >= delta_limit {
                self.known.insert(key, numbers);
                return Some(numbers);
            }
            let child_phi = children[best].numbers.phi;
            let child_phi_limit = if delta_limit == INFINITE { INFINITE } else { delta_limit - (delta - child_phi) };
            // The 1 + ε rule with ε = 1/2 keeps the search from jumping between siblings of like cost.
            let child_delta_limit = phi_limit.min(second.saturating_add(second / 2).saturating_add(1));
            let next = match children[best].board {
                Some((board, id)) => State { board, id, set: self.grow(state.set, id), to_move: state.to_move.opponent(), passes: 0 },
                None => State { to_move: state.to_move.opponent(), passes: state.passes + 1, ..state },
            };
            match self.search(geometry, komi, next, child_phi_limit, child_delta_limit) {
                Some(numbers) => children[best].numbers = numbers,
                None => return None,
            }
        }
    }

    /// Every legal move with the best numbers at hand, likely ones first. Stops at the first move that is known to win.
    fn children(&mut self, geometry: &'static Geometry, komi: Komi, state: State) -> Vec<Child> {
        let opponent = state.to_move.opponent();
        let mut children = Vec::with_capacity(geometry.points() + 1);
        let score = state.board.area_score(geometry);
        let ahead = (score >= komi.need(Color::Black)) == (state.to_move == Color::Black);
        let pass = if state.passes == 1 {
            if ahead { LOST } else { WON }
        } else if ahead {
            self.numbers_of(Some(state.set), state.id, opponent, 1, komi)
        } else {
            WON // the opponent passes too, and the game ends ahead for the opponent
        };
        children.push(Child { board: None, numbers: pass });
        if pass.delta == 0 {
            return children;
        }
        for point in bits(geometry.full() & !state.board.occupied()) {
            let Ok(placed) = state.board.place(geometry, state.to_move, point) else { continue };
            let id = self.board_id(placed.board);
            if self.sets[state.set as usize].binary_search(&id).is_ok() {
                continue;
            }
            let set = self.grown.get(&(state.set, id)).copied();
            let numbers = self.numbers_of(set, id, opponent, 0, komi);
            let child = Child { board: Some((placed.board, id)), numbers };
            if placed.captured != 0 {
                children.insert(0, child);
            } else {
                children.push(child);
            }
            if numbers.delta == 0 {
                break;
            }
        }
        children
    }

    fn numbers_of(&self, set: Option<SetId>, board: BoardId, to_move: Color, passes: u8, komi: Komi) -> Numbers {
        set.and_then(|set| self.known.get(&Self::key(set, board, to_move, passes, komi))).copied().unwrap_or(Numbers { phi: 1, delta: 1 })
    }
}

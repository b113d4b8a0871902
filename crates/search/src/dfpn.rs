//! Depth-first proof-number search in negamax form (Nagai 2002; thresholds with the 1 + ε rule of Pawlewicz and Lew 2007).
//!
//! The numbers only steer. A node is decided in two ways: by a leaf or lemma that applies under the node's own history, or by its
//! children; both end in a composed lemma ([`crate::compose`]) or, where a local check of the composition fails, in a proof that
//! holds on this path only and is never stored.

use crate::board_set::{KnownBoard, mix};
use crate::compose::{self, Loss};
use crate::history::History;
use crate::mutation::{Dropped, dropped};
use crate::parallel::{BURDEN, Team};
use crate::prior;
use crate::solver::{Control, Limits, Options, SearchStats, Stop};
use crate::static_leaf::{StaticLeaves, StaticWin};
use crate::transfer::{Found, Probe, Transfer};
use crate::{Komi, Lemma, Numbers, PositionKey, Table, position_key};
use std::sync::atomic::Ordering;
use std::time::Instant;
use superko_rules::{Board, Canonical, Color, Game, Geometry, Move, Position};

/// Larger than any sum of numbers.
pub(crate) const INFINITE: u64 = 1 << 60;
/// Up to here proof numbers add up plainly; above, only an eighth of the excess counts. Keyed by position and summed, they feed
/// back through transpositions and cycles and would explode (findings 1, "limited": 10^6 with first numbers of an eighth our scale).
const PLAIN_SUM: u64 = 8_000_000;
/// Safe points: every so many expansions counters are flushed and the stop flag is read.
const SAFE_POINT: u64 = 256;

fn limited(sum: u64) -> u64 {
    if sum <= PLAIN_SUM { sum } else { PLAIN_SUM + (sum - PLAIN_SUM) / 8 }
}

/// The largest plain sum that `limited` keeps at or below `value`.
fn unlimited(value: u64) -> u64 {
    if value <= PLAIN_SUM { value } else { PLAIN_SUM + (value - PLAIN_SUM).saturating_mul(8).min(INFINITE) }
}

/// A position on the search path, with its canonical form.
#[derive(Clone, Copy)]
pub(crate) struct Node {
    pub position: Position,
    pub canonical: Canonical,
    pub key: PositionKey,
}

impl Node {
    pub fn new(geometry: &Geometry, position: Position) -> Node {
        let canonical = geometry.canonical(position.board);
        Node { position, canonical, key: position_key(canonical.code, position) }
    }

    /// The same board after a pass of the side to move.
    fn after_pass(&self) -> Node {
        let position = Position { board: self.position.board, to_move: self.position.to_move.opponent(), passes: self.position.passes + 1 };
        Node { position, canonical: self.canonical, key: position_key(self.canonical.code, position) }
    }
}

/// Why a position is decided without searching it.
pub(crate) enum Source {
    /// Two passes; the margin of the winner.
    Terminal(i32),
    /// The side to move passes a second time and wins by this margin.
    PassBack(i32),
    Static(StaticWin),
    Found(Found),
    Lemma(Box<Lemma>),
    /// Proved by search, but for this path only.
    Path,
}

/// A decided position.
pub(crate) struct Win {
    pub winner: Color,
    pub margin: i32,
    pub best: Option<Move>,
    pub source: Source,
}

pub(crate) enum Value {
    Open { phi: u64, delta: u64 },
    Won(Win),
    Stopped(Stop),
}

struct Child {
    mv: Move,
    node: Node,
    number_key: u64,
    /// The proof and disproof number for the child's side to move. A child won by that side has `phi` 0 and `delta` infinite.
    phi: u64,
    delta: u64,
    /// Lemmas stored in total when the child's lemmas were last looked up.
    probed_at: u64,
    /// Virtual loss: what the threads inside the child add to `delta` when the next child is chosen.
    burden: u64,
    /// How often a thread had left the child when its numbers were last read; see [`Team`].
    left: u32,
    solved: Option<Source>,
}

impl Child {
    /// The board that a stone move creates, which joins the history; none for a pass.
    fn reached(&self) -> Option<KnownBoard> {
        (self.mv != Move::Pass).then(|| KnownBoard::new(self.node.position.board, self.node.canonical))
    }
}

pub(crate) struct Search<'a> {
    pub table: &'a dyn Table,
    pub geometry: &'static Geometry,
    pub options: Options,
    need_black: i32,
    need_white: i32,
    number_salt: u64,
    pub history: History,
    static_leaves: StaticLeaves,
    pub transfer: Transfer,
    limits: Limits,
    started: Instant,
    control: &'a Control,
    /// The threads that search together, this one among them; none if it searches alone.
    team: Option<&'a Team>,
    pub stats: SearchStats,
    flushed: SearchStats,
    spare: Vec<Vec<Child>>,
}

impl<'a> Search<'a> {
    pub fn new(table: &'a dyn Table, game: &Game, komi: Komi, options: Options, limits: Limits, control: &'a Control) -> Self {
        let geometry = game.geometry();
        assert!(table.geometry() == geometry, "the table is for {} boards, the game is on {}", table.geometry().name(), geometry.name());
        let mut history = History::new();
        for &board in game.boards() {
            history.push(KnownBoard::new(board, geometry.canonical(board)));
        }
        Search {
            table,
            geometry,
            options,
            need_black: komi.need(Color::Black),
            need_white: komi.need(Color::White),
            number_salt: mix(komi.need(Color::Black) as u64 ^ 0x6a09_e667_f3bc_c908),
            history,
            static_leaves: StaticLeaves::new(geometry),
            transfer: Transfer::default(),
            limits,
            started: Instant::now(),
            control,
            team: None,
            stats: SearchStats::default(),
            flushed: SearchStats::default(),
            spare: Vec::new(),
        }
    }

    /// Makes this the search of one thread of `team`.
    pub fn with_team(mut self, team: &'a Team) -> Self {
        self.team = Some(team);
        self
    }

    fn need(&self, winner: Color) -> i32 {
        match winner {
            Color::Black => self.need_black,
            Color::White => self.need_white,
        }
    }

    /// Key of a position's numbers. They belong to one komi; a collision only misleads the order of the search.
    fn number_key(&self, key: PositionKey) -> u64 {
        mix((key as u64).wrapping_add(self.number_salt) ^ mix((key >> 64) as u64))
    }

    /// Decides `node` without search if possible. The history contains the node's board.
    pub fn decided(&mut self, node: &Node) -> Option<Win> {
        let position = node.position;
        if position.passes > 0 {
            let score = position.board.area_score(self.geometry);
            let winner = if score >= self.need_black { Color::Black } else { Color::White };
            let margin = if winner == Color::Black { score } else { -score };
            if position.passes == 2 {
                return Some(Win { winner, margin, best: None, source: Source::Terminal(margin) });
            }
            // The second pass ends the game at once: a winner node whose move leads to a won terminal position.
            if winner == position.to_move || dropped(Dropped::PassBack) {
                return Some(Win { winner, margin, best: Some(Move::Pass), source: Source::PassBack(margin) });
            }
        }
        if self.options.static_knowledge {
            for winner in [position.to_move, position.to_move.opponent()] {
                let stood = self.history.stood(winner);
                if let Some(win) = self.static_leaves.win(position, winner, self.need(winner), stood) {
                    self.stats.static_leaves += 1;
                    return Some(Win { winner, margin: win.margin, best: None, source: Source::Static(win) });
                }
            }
        }
        self.stats.probes += 1;
        let (need_black, need_white) = (self.need_black, self.need_white);
        let needs = |winner| if winner == Color::Black { need_black } else { need_white };
        match self.transfer.probe(self.table, node.key, node.canonical, &self.history, &needs) {
            Probe::Miss => None,
            Probe::Rejected => {
                self.stats.rejected += 1;
                None
            }
            Probe::Hit(found) => {
                self.stats.hits += 1;
                let best = found.head.best.map(|mv| self.geometry.map_move(self.geometry.inverse(found.sym), mv));
                Some(Win { winner: found.head.winner, margin: found.head.margin.into(), best, source: Source::Found(found) })
            }
        }
    }

    /// The lemma behind a decided position, in the frame of the search; `None` if it stands for its own path only.
    fn lemma(&mut self, winner: Color, source: Source) -> Option<Lemma> {
        match source {
            Source::Terminal(margin) | Source::PassBack(margin) => Some(Lemma::leaf(winner, margin, 0)),
            Source::Static(win) => Some(Lemma::leaf(winner, win.margin, win.territory)),
            Source::Found(found) => self.transfer.fetch(self.table, &found),
            Source::Lemma(lemma) => Some(*lemma),
            Source::Path => None,
        }
    }

    /// The safe point: flushes counters and says whether to stop.
    fn safe_point(&mut self) -> Option<Stop> {
        let (now, before) = (self.stats, self.flushed);
        let add = |counter: &std::sync::atomic::AtomicU64, now: u64, before: u64| {
            counter.fetch_add(now - before, Ordering::Relaxed);
        };
        add(&self.control.expansions, now.expansions, before.expansions);
        add(&self.control.distinct_nodes, now.distinct_nodes, before.distinct_nodes);
        add(&self.control.probes, now.probes, before.probes);
        add(&self.control.hits, now.hits, before.hits);
        add(&self.control.rejected, now.rejected, before.rejected);
        add(&self.control.lemmas_stored, now.lemmas_stored, before.lemmas_stored);
        self.flushed = now;
        if self.control.stop.load(Ordering::Relaxed) || self.team.is_some_and(Team::is_over) {
            return Some(Stop::Asked);
        }
        self.limits.time.filter(|&limit| self.started.elapsed() >= limit).map(|_| Stop::Time)
    }

    /// Flushes the counters of the last expansions; a verdict ends the search of the other threads.
    pub fn finish(&mut self, has_verdict: bool) {
        self.safe_point();
        if let Some(team) = self.team.filter(|_| has_verdict) {
            team.end();
        }
    }

    /// Whether the expansions are used up; a team grants more as long as there are any.
    fn is_spent(&mut self) -> bool {
        let Some(limit) = self.limits.expansions.as_mut().filter(|limit| self.stats.expansions >= **limit) else { return false };
        let more = self.team.map_or(0, Team::grant);
        *limit += more;
        more == 0
    }

    /// Takes in what other threads have found out about the children, and how many are at work on each.
    fn refresh(&self, team: &Team, children: &mut [Child]) {
        for child in children.iter_mut().filter(|child| child.solved.is_none()) {
            let (inside, left) = team.look(child.number_key);
            if left != child.left
                && let Some(numbers) = self.table.numbers(child.number_key)
            {
                child.phi = numbers.phi.max(1).into();
                child.delta = numbers.delta.max(1).into();
            }
            child.left = left;
            child.burden = u64::from(inside) * BURDEN;
        }
    }

    /// Searches `node`, whose board is in the history and which is not decided, until its numbers reach a threshold.
    pub fn search(&mut self, node: &Node, threshold_phi: u64, threshold_delta: u64, is_root: bool) -> Value {
        if self.stats.expansions.is_multiple_of(SAFE_POINT)
            && let Some(stop) = self.safe_point()
        {
            return Value::Stopped(stop);
        }
        if self.is_spent() {
            return Value::Stopped(Stop::Expansions);
        }
        self.stats.expansions += 1;
        let before = self.stats.expansions - 1;
        let number_key = self.number_key(node.key);
        let known = self.table.numbers(number_key);
        // An expanded position leaves numbers behind, also when it is proven.
        self.stats.distinct_nodes += u64::from(known.is_none());
        let spent_before = known.map_or(0, |numbers| u64::from(numbers.cost));

        let mut children = self.spare.pop().unwrap_or_default();
        let value = self.expand(node, &mut children, threshold_phi, threshold_delta, is_root);
        children.clear();
        self.spare.push(children);

        let cost = spent_before + (self.stats.expansions - before);
        let cap = |number: u64| number.clamp(1, u32::MAX.into()) as u32;
        match value {
            Value::Open { phi, delta } => {
                self.table.store_numbers(number_key, Numbers { phi: cap(phi), delta: cap(delta), cost: cap(cost) });
                Value::Open { phi, delta }
            }
            Value::Won(Win { winner, margin, best, source: Source::Lemma(mut lemma) }) => {
                lemma.cost = cost;
                match node.canonical.sym {
                    0 => self.table.store_lemma(node.key, &lemma),
                    sym => self.table.store_lemma(node.key, &(*lemma).clone().map(self.geometry, sym)),
                }
                self.stats.lemmas_stored += 1;
                // The numbers that led here are about this history. Where the lemma is refused the position starts afresh: left in
                // place, old numbers send the search round in circles on long superko fights (1x12: 0.42 M expansions instead of
                // more than 2 M).
                self.table.store_numbers(number_key, Numbers { phi: 1, delta: 1, cost: cap(cost) });
                Value::Won(Win { winner, margin, best, source: Source::Lemma(lemma) })
            }
            Value::Won(win) => {
                self.stats.path_only += 1;
                Value::Won(win)
            }
            stopped => stopped,
        }
    }

    fn expand(&mut self, node: &Node, children: &mut Vec<Child>, threshold_phi: u64, threshold_delta: u64, is_root: bool) -> Value {
        let mover = node.position.to_move;
        let board = node.position.board;
        let mut banned: Vec<Board> = Vec::new();

        // All children first: their parts of the table arrive from memory while the next ones are made.
        self.add_child(children, Move::Pass, node.after_pass());
        let mut empty = self.geometry.full() & !board.occupied();
        while empty != 0 {
            let point = empty.trailing_zeros() as usize;
            empty &= empty - 1;
            let Ok(placed) = board.place(self.geometry, mover, point) else { continue };
            if self.history.contains(placed.board) {
                banned.push(placed.board);
                continue;
            }
            let child = Node::new(self.geometry, Position { board: placed.board, to_move: mover.opponent(), passes: 0 });
            self.add_child(children, Move::Stone(point as u8), child);
        }
        for child in children.iter_mut() {
            let reached = child.reached();
            if let Some(win) = self.classify(child, reached.as_ref()) {
                return Value::Won(self.compose_win(board, child.mv, reached.as_ref(), win));
            }
        }

        loop {
            // phi = min over children of delta, delta = sum over children of phi (negamax); a solved child adds nothing.
            // Which child is next depends on its delta with the virtual loss; the node's own numbers do not.
            if let Some(team) = self.team {
                self.refresh(team, children);
            }
            let (mut sum, mut phi, mut best, mut least, mut second) = (0u64, INFINITE, usize::MAX, INFINITE, INFINITE);
            for (index, child) in children.iter().enumerate() {
                sum = (sum + child.phi).min(INFINITE);
                phi = phi.min(child.delta);
                let looks = child.delta + child.burden;
                if looks < least {
                    second = least;
                    least = looks;
                    best = index;
                } else if looks < second {
                    second = looks;
                }
            }
            if best == usize::MAX {
                return Value::Won(self.compose_loss(node, children, &banned));
            }
            let delta = limited(sum);
            if is_root {
                self.control.root_phi.store(phi, Ordering::Relaxed);
                self.control.root_delta.store(delta, Ordering::Relaxed);
            }
            if phi >= threshold_phi || delta >= threshold_delta {
                return Value::Open { phi, delta };
            }
            let child = &mut children[best];
            let child_node = child.node;
            let (mv, reached) = (child.mv, child.reached());
            let child_phi_threshold = (unlimited(threshold_delta.min(INFINITE)) - (sum - child.phi)).min(INFINITE);
            // 1 + ε with ε = 0.3 (paper, section 5; findings 7.4).
            let child_delta_threshold = threshold_phi.min(second.saturating_add(second / 10 * 3 + second % 10 * 3 / 10).max(second + 1));
            // With a virtual loss the next child need not be the one with the least delta; it gets something to do all the same.
            let child_delta_threshold = child_delta_threshold.max(child.delta + 1);
            let stored = self.stats.lemmas_stored;
            // Other threads store lemmas all the time.
            let look_again = std::mem::replace(&mut child.probed_at, stored) != stored || self.team.is_some();
            let number_key = child.number_key;
            if let Some(reached) = reached {
                self.history.push(reached);
            }
            let known = if look_again { self.decided(&child_node) } else { None };
            let value = match known {
                Some(win) => Value::Won(win),
                None => {
                    if let Some(team) = self.team {
                        team.enter(number_key);
                    }
                    let value = self.search(&child_node, child_phi_threshold, child_delta_threshold, false);
                    if let Some(team) = self.team {
                        children[best].left = team.leave(number_key);
                    }
                    value
                }
            };
            if reached.is_some() {
                self.history.pop();
            }
            match value {
                Value::Stopped(stop) => return Value::Stopped(stop),
                Value::Won(win) if win.winner == mover => {
                    return Value::Won(self.compose_win(board, mv, reached.as_ref(), win));
                }
                Value::Won(win) => solve_child(&mut children[best], win.source),
                Value::Open { phi, delta } => {
                    children[best].phi = phi;
                    children[best].delta = delta;
                }
            }
        }
    }

    fn add_child(&self, children: &mut Vec<Child>, mv: Move, node: Node) {
        let number_key = self.number_key(node.key);
        self.table.prefetch(node.key, number_key);
        children.push(Child {
            mv,
            node,
            number_key,
            phi: 0,
            delta: INFINITE,
            probed_at: self.stats.lemmas_stored,
            burden: 0,
            left: 0,
            solved: None,
        });
    }

    /// Decides a child or gives it numbers; returns the win if it decides the node for the side that moved there.
    fn classify(&mut self, child: &mut Child, reached: Option<&KnownBoard>) -> Option<Win> {
        // A lemma about the child speaks of histories that contain the child's board.
        if let Some(&reached) = reached {
            self.history.push(reached);
        }
        let decided = self.decided(&child.node);
        if reached.is_some() {
            self.history.pop();
        }
        match decided {
            Some(win) if win.winner == child.node.position.to_move => solve_child(child, win.source),
            Some(win) => return Some(win),
            None => {
                // Before the numbers: what arrives in between is read again.
                child.left = self.team.map_or(0, |team| team.look(child.number_key).1);
                let numbers = self
                    .table
                    .numbers(child.number_key)
                    .unwrap_or_else(|| prior::numbers(self.geometry, child.node.position, self.need_black));
                child.phi = numbers.phi.max(1).into();
                child.delta = numbers.delta.max(1).into();
            }
        }
        None
    }

    fn compose_win(&mut self, board: Board, mv: Move, reached: Option<&KnownBoard>, child: Win) -> Win {
        let Win { winner, margin, source, .. } = child;
        let lemma = self.lemma(winner, source).and_then(|lemma| compose::win(self.geometry, board, mv, reached, lemma));
        Win { winner, margin, best: Some(mv), source: lemma.map_or(Source::Path, |lemma| Source::Lemma(Box::new(lemma))) }
    }

    fn compose_loss(&mut self, node: &Node, children: &mut [Child], banned: &[Board]) -> Win {
        let winner = node.position.to_move.opponent();
        let mut loss = Loss::new(winner, node.position.board);
        for child in children {
            let source = child.solved.take().expect("every child is won by the opponent");
            match self.lemma(winner, source) {
                Some(lemma) => loss.reply(self.geometry, child.reached().as_ref(), &lemma),
                None => loss.path_only(),
            }
        }
        for &board in banned {
            self.stats.banned_replies += 1;
            // A lemma that applies anyway keeps the board out of X (theory, Composition). The board is in the history already.
            let child = Node::new(self.geometry, Position { board, to_move: winner, passes: 0 });
            let cover = self.decided(&child).filter(|win| win.winner == winner).and_then(|win| self.lemma(winner, win.source));
            match cover {
                Some(lemma) => loss.reply(self.geometry, Some(&KnownBoard::new(board, child.canonical)), &lemma),
                None => loss.banned(board),
            }
        }
        let lemma = loss.finish();
        // A path-only loss still wins by what the komi asks.
        let margin = lemma.as_ref().map_or(self.need(winner), |lemma| lemma.margin.into());
        Win { winner, margin, best: None, source: lemma.map_or(Source::Path, |lemma| Source::Lemma(Box::new(lemma))) }
    }
}

fn solve_child(child: &mut Child, source: Source) {
    child.phi = 0;
    child.delta = INFINITE;
    child.burden = 0;
    child.solved = Some(source);
}

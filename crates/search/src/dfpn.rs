//! Depth-first proof-number search in negamax form (Nagai 2002; thresholds with the 1 + ε rule of Pawlewicz and Lew 2007).
//!
//! The numbers only steer. A node is decided in two ways: by a leaf or lemma that applies under the node's own history, or by its
//! children; both end in a composed lemma ([`crate::compose`]) or, where a local check of the composition fails, in a proof that
//! holds on this path only and is never stored.

use crate::board_set::{KnownBoard, mix};
use crate::compose::{self, Loss};
use crate::history::History;
use crate::look_ahead::LookAhead;
use crate::mutation::{Dropped, dropped};
use crate::number_rule::{NumberRule, Replies};
use crate::parallel::{Team, burden};
use crate::prior::Evaluator;
use crate::prune::{self, Pruning};
use crate::solver::{Control, Limits, Options, SearchStats, Stop};
use crate::static_leaf::{StaticLeaves, StaticWin};
use crate::statistics::PhaseClock;
use crate::table::store_in_parts;
use crate::transfer::{Found, Probe, Transfer};
use crate::{Ablated, Counter, Counters, Komi, Lemma, Numbers, PositionKey, Table, position_key};
use std::sync::atomic::Ordering;
use std::time::Instant;
use superko_rules::{Board, Canonical, Color, Game, Geometry, Move, Position};

/// Larger than any sum of numbers.
pub(crate) const INFINITE: u64 = 1 << 60;
/// The disproof number of a reply that has just refuted a sibling of this position is divided by so much (findings 7.3).
const KILLER: u64 = 3;
/// Safe points: every so many expansions counters are flushed and the stop flag is read.
const SAFE_POINT: u64 = 256;

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
    pub fn after_pass(&self) -> Node {
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
    /// Pruning skipped moves of the loser below: no proof, believed within a pruned search only ([`crate::prune`]). With the conditions
    /// of a lemma, if it has any that can be written as such.
    Assumed(Option<Box<Lemma>>),
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
    fn set_numbers(&mut self, numbers: Numbers) {
        self.phi = numbers.phi.max(1).into();
        self.delta = numbers.delta.max(1).into();
    }

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
    prior: Evaluator,
    pub static_leaves: StaticLeaves,
    pub look_ahead: LookAhead,
    pruning: Option<Pruning>,
    pub transfer: Transfer,
    /// Expansions of this thread between two safe points: all threads together reach one after `SAFE_POINT`.
    safe_point: u64,
    limits: Limits,
    started: Instant,
    control: &'a Control,
    clock: PhaseClock,
    /// The threads that search together, this one among them; none if it searches alone.
    team: Option<&'a Team>,
    pub stats: SearchStats,
    flushed: SearchStats,
    spare: Vec<Vec<Child>>,
    /// By ply below the root: the move by which the last position there was won, since its parent was entered.
    killers: Vec<Option<Move>>,
    ply: usize,
}

impl<'a> Search<'a> {
    pub fn new(table: &'a dyn Table, game: &Game, komi: Komi, options: Options, limits: Limits, control: &'a Control) -> Self {
        let geometry = game.geometry();
        assert!(table.geometry() == geometry, "the table is for {} boards, the game is on {}", table.geometry().name(), geometry.name());
        let mut history = History::new();
        for &board in game.boards() {
            history.push(KnownBoard::new(board, options.ablated.canonical(geometry, board)));
        }
        Search {
            table,
            geometry,
            options,
            need_black: komi.need(Color::Black),
            need_white: komi.need(Color::White),
            number_salt: mix(komi.need(Color::Black) as u64 ^ 0x6a09_e667_f3bc_c908) ^ options.prune.map_or(0, |side| 1 + side as u64),
            history,
            prior: Evaluator::new(options.prior, geometry, komi.need(Color::Black)),
            static_leaves: StaticLeaves::new(geometry, options.region_games),
            look_ahead: LookAhead::new(geometry, komi.need(Color::Black), komi.need(Color::White)),
            pruning: options.prune.map(|side| Pruning::new(side, geometry)),
            transfer: Transfer::new(options.ablated.filter),
            safe_point: (SAFE_POINT / options.threads.max(1) as u64).max(1),
            limits,
            started: Instant::now(),
            control,
            clock: PhaseClock::default(),
            team: None,
            stats: SearchStats::default(),
            flushed: SearchStats::default(),
            spare: Vec::new(),
            killers: Vec::new(),
            ply: 0,
        }
    }

    /// The node of a position.
    pub fn node(&self, position: Position) -> Node {
        let canonical = self.options.ablated.canonical(self.geometry, position.board);
        Node { position, canonical, key: position_key(canonical.code, position) }
    }

    /// Where lemmas about a node are kept.
    fn lemma_key(&self, node: &Node) -> PositionKey {
        if self.options.ablated.transfer { Ablated::in_game(node.key, &self.history) } else { node.key }
    }

    /// Makes this the search of one thread of `team`.
    pub fn with_team(mut self, team: &'a Team) -> Self {
        self.team = Some(team);
        self
    }

    pub fn need(&self, winner: Color) -> i32 {
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
        // A komi beyond the board. Every game ends with a margin of Black's from -points to +points, so where Black needs more than all he
        // never gets it, and where he needs -points or less he always does, whatever is played: a pass is as good as any move. The
        // komi is that of the whole search, so to ask at the root is enough.
        let points = self.geometry.points() as i32;
        if self.need_black > points || self.need_black <= -points {
            let winner = if self.need_black > points { Color::White } else { Color::Black };
            let best = (node.position.passes < 2 && node.position.to_move == winner).then_some(Move::Pass);
            return Some(Win { winner, margin: -points, best, source: Source::Terminal(-points) });
        }
        self.decided_with(node, true)
    }

    /// [`Search::decided`], without static knowledge if `statics` is false: a position that has numbers was no leaf when they were made.
    fn decided_with(&mut self, node: &Node, statics: bool) -> Option<Win> {
        if self.pruning.is_none() {
            return self.proven(node, statics);
        }
        self.proven(node, statics).or_else(|| self.given_up(node))
    }

    /// The same by what is proven; never what a pruned search gave up.
    pub fn proven(&mut self, node: &Node, statics: bool) -> Option<Win> {
        self.phase(Counter::PhaseStatic);
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
        if self.options.static_knowledge && statics {
            for winner in [position.to_move, position.to_move.opponent()] {
                let stood = self.history.stood(winner);
                if let Some(win) = self.static_leaves.win(position, winner, self.need(winner), stood) {
                    self.stats.static_leaves += 1;
                    self.stats.counters.count(win.kind.counter());
                    return Some(Win { winner, margin: win.margin, best: win.best, source: Source::Static(win) });
                }
                if self.options.look_ahead
                    && let Some(win) = self.look_ahead.win(&mut self.static_leaves, position, winner, stood)
                {
                    self.stats.counters.count(win.kind.counter());
                    return Some(Win { winner, margin: win.margin, best: win.best, source: Source::Static(win) });
                }
            }
        }
        self.phase(Counter::PhaseProbe);
        self.stats.probes += 1;
        let (need_black, need_white) = (self.need_black, self.need_white);
        let needs = |winner| if winner == Color::Black { need_black } else { need_white };
        match self.transfer.probe(self.table, self.lemma_key(node), node.canonical, &self.history, &needs, &mut self.stats.counters) {
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

    /// A result of this search against the pruned side that serves under the node's history.
    fn given_up(&mut self, node: &Node) -> Option<Win> {
        let Pruning { side, given_up, .. } = self.pruning.as_ref()?;
        let (need, winner) = (self.need(side.opponent()), side.opponent());
        // These are no lemmas, and their tests no reuse.
        let mut unseen = Counters::default();
        let Probe::Hit(found) = self.transfer.probe(given_up, node.key, node.canonical, &self.history, &|_| need, &mut unseen) else {
            return None;
        };
        let lemma = self.transfer.fetch(given_up, &found)?;
        Some(Win { winner, margin: lemma.margin.into(), best: lemma.best, source: Source::Assumed(Some(Box::new(lemma))) })
    }

    /// The lemma behind a decided position, in the frame of the search, or why it stands for its own path only.
    fn lemma(&mut self, winner: Color, source: Source) -> Result<Lemma, Counter> {
        match source {
            Source::Terminal(margin) | Source::PassBack(margin) => Ok(Lemma::leaf(winner, margin, 0)),
            Source::Static(win) => Ok(Lemma { best: win.best, ..Lemma::leaf(winner, win.margin, win.territory) }),
            Source::Found(found) => self.transfer.fetch(self.table, &found).ok_or(Counter::PathSetsGone),
            Source::Lemma(lemma) | Source::Assumed(Some(lemma)) => Ok(*lemma),
            Source::Path | Source::Assumed(None) => Err(Counter::PathChild),
        }
    }

    /// The safe point: flushes counters and says whether to stop.
    pub fn safe_point(&mut self) -> Option<Stop> {
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
        self.control.counters.add(&now.counters.since(&before.counters));
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
                child.set_numbers(numbers);
            }
            child.left = left;
            child.burden = burden(inside, child.delta);
        }
    }

    /// Searches `node`, whose board is in the history and which is not decided, until its numbers reach a threshold.
    pub fn search(&mut self, node: &Node, threshold_phi: u64, threshold_delta: u64, is_root: bool) -> Value {
        if self.stats.expansions.is_multiple_of(self.safe_point)
            && let Some(stop) = self.safe_point()
        {
            return Value::Stopped(stop);
        }
        if self.is_spent() {
            return Value::Stopped(Stop::Expansions);
        }
        self.stats.expansions += 1;
        if PhaseClock::samples(self.stats.expansions) {
            self.clock.run(Counter::PhaseGenerate);
        }
        let before = self.stats.expansions - 1;
        let number_key = self.number_key(node.key);
        let known = self.table.numbers(number_key);
        // An expanded position leaves numbers behind, also when it is proven.
        self.stats.distinct_nodes += u64::from(known.is_none());
        let spent_before = known.map_or(0, |numbers| u64::from(numbers.cost));

        let mut children = self.spare.pop().unwrap_or_default();
        self.ply += 1;
        self.killers.resize(self.killers.len().max(self.ply + 2), None);
        self.killers[self.ply + 1] = None;
        let value = self.expand(node, &mut children, threshold_phi, threshold_delta, known.is_some(), is_root);
        if let Value::Won(win) = &value
            && win.winner == node.position.to_move
        {
            self.killers[self.ply] = win.best;
        }
        self.ply -= 1;
        children.clear();
        self.spare.push(children);
        self.phase(Counter::PhaseStore);

        let cost = spent_before + (self.stats.expansions - before);
        let cap = |number: u64| number.clamp(1, u32::MAX.into()) as u32;
        let value = match value {
            Value::Open { phi, delta } => {
                self.table.store_numbers(number_key, Numbers { phi: cap(phi), delta: cap(delta), cost: cap(cost) });
                Value::Open { phi, delta }
            }
            Value::Won(Win { winner, margin, best, source: Source::Lemma(mut lemma) }) => {
                lemma.cost = cost;
                self.keep(node, &mut lemma);
                // The numbers that led here are about this history. Where the lemma is refused the position starts afresh: left in
                // place, old numbers send the search round in circles on long superko fights (1x12: 0.42 M expansions instead of
                // more than 2 M).
                self.table.store_numbers(number_key, Numbers { phi: 1, delta: 1, cost: cap(cost) });
                Value::Won(Win { winner, margin, best, source: Source::Lemma(lemma) })
            }
            Value::Won(Win { winner, margin, best, source: Source::Assumed(Some(mut lemma)) }) => {
                lemma.cost = cost;
                self.keep_assumed(node, &mut lemma);
                self.table.store_numbers(number_key, Numbers { phi: 1, delta: 1, cost: cap(cost) });
                Value::Won(Win { winner, margin, best, source: Source::Assumed(Some(lemma)) })
            }
            Value::Won(win) => {
                self.stats.path_only += 1;
                Value::Won(win)
            }
            stopped => stopped,
        };
        self.clock.pause(&mut self.stats.counters);
        value
    }

    fn expand(
        &mut self,
        node: &Node,
        children: &mut Vec<Child>,
        threshold_phi: u64,
        threshold_delta: u64,
        revisited: bool,
        is_root: bool,
    ) -> Value {
        let mover = node.position.to_move;
        let board = node.position.board;
        let mut banned: Vec<Board> = Vec::new();

        let idle = self.idle_points(node);
        let (mut tempo, mut skipped) = (false, false);

        // All children first: their parts of the table arrive from memory while the next ones are made.
        self.add_child(children, Move::Pass, node.after_pass());
        let codes = self.options.ablated.codes(self.geometry, board);
        let contested = board.contested(self.geometry, mover);
        let mut empty = self.geometry.full() & !board.occupied();
        while empty != 0 {
            let point = empty.trailing_zeros() as usize;
            empty &= empty - 1;
            let Ok(placed) = board.place_near(self.geometry, mover, point, contested) else { continue };
            if self.history.contains(placed.board) {
                banned.push(placed.board);
                continue;
            }
            // One move of the kind is kept, to gain a tempo.
            if idle >> point & 1 == 1 && std::mem::replace(&mut tempo, true) {
                skipped = true;
                self.stats.counters.count(Counter::MoveSkipped);
                continue;
            }
            let position = Position { board: placed.board, to_move: mover.opponent(), passes: 0 };
            let canonical = match &codes {
                Some(codes) => self.geometry.canonical_after(codes, mover, point, placed.captured),
                None => self.options.ablated.canonical(self.geometry, placed.board),
            };
            let child = Node { position, canonical, key: position_key(canonical.code, position) };
            self.add_child(children, Move::Stone(point as u8), child);
        }
        for child in children.iter_mut() {
            let reached = child.reached();
            if let Some(win) = self.classify(child, reached.as_ref()) {
                return Value::Won(self.compose_win(board, child.mv, reached.as_ref(), win));
            }
        }
        self.phase(Counter::PhasePrior);
        let killer = self.killers[self.ply].filter(|_| self.options.killer_order);
        // First numbers last: often a child has decided the node before they are needed.
        for child in children.iter_mut().filter(|child| child.delta == INFINITE && child.solved.is_none()) {
            child.set_numbers(self.prior.numbers(&mut self.static_leaves, &self.look_ahead, child.number_key, child.node.position));
            if killer == Some(child.mv) {
                child.delta = (child.delta / KILLER).max(1);
            }
        }

        let rule = self.options.numbers.unwrap_or_else(|| NumberRule::for_board(self.geometry));
        let mut goes_on = revisited && rule.controls_thresholds();
        loop {
            self.phase(Counter::PhaseSelect);
            if let Some(team) = self.team {
                self.refresh(team, children);
            }
            // phi = min over children of delta, delta from the children's phi by the number rule (negamax); a solved child adds nothing.
            // Which child is next depends on its delta with the virtual loss; the node's own numbers do not.
            let (mut replies, mut phi, mut best, mut least, mut second) = (Replies::default(), INFINITE, usize::MAX, INFINITE, INFINITE);
            for (index, child) in children.iter().enumerate() {
                replies.add(child.phi);
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
            if rule.ranks() {
                children.iter().for_each(|child| replies.rank(child.phi));
            }
            if best == usize::MAX {
                return Value::Won(self.compose_loss(node, children, &banned, skipped));
            }
            let delta = rule.disproof(&replies);
            if is_root {
                self.control.root_phi.store(phi, Ordering::Relaxed);
                self.control.root_delta.store(delta, Ordering::Relaxed);
            }
            let (mut limit_phi, mut limit_delta) = (threshold_phi, threshold_delta);
            if std::mem::take(&mut goes_on) {
                (limit_phi, limit_delta) = (limit_phi.max(phi + 1), limit_delta.max(delta + 1));
            }
            if phi >= limit_phi || delta >= limit_delta {
                return Value::Open { phi, delta };
            }
            let child = &mut children[best];
            let child_node = child.node;
            let (mv, reached) = (child.mv, child.reached());
            let child_phi_threshold = rule.child_threshold(limit_delta, &replies, child.phi);
            // 1 + ε with ε = 0.3 (paper, section 5; findings 7.4).
            let child_delta_threshold = limit_phi.min(second.saturating_add(second / 10 * 3 + second % 10 * 3 / 10).max(second + 1));
            // With a virtual loss the next child need not be the one with the least delta; it gets something to do all the same.
            let child_delta_threshold = child_delta_threshold.max(child.delta + 1);
            let stored = self.stats.lemmas_stored;
            // Other threads store lemmas all the time.
            let look_again = std::mem::replace(&mut child.probed_at, stored) != stored || self.team.is_some();
            let number_key = child.number_key;
            if let Some(reached) = reached {
                self.history.push(reached);
            }
            let known = if look_again { self.decided_with(&child_node, false) } else { None };
            let value = match known {
                Some(win) => Value::Won(win),
                None => {
                    let timed = self.clock.pause(&mut self.stats.counters);
                    if let Some(team) = self.team {
                        team.enter(number_key);
                    }
                    let value = self.search(&child_node, child_phi_threshold, child_delta_threshold, false);
                    if let Some(team) = self.team {
                        children[best].left = team.leave(number_key);
                    }
                    if timed {
                        self.clock.run(Counter::PhaseSelect);
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

    #[inline]
    fn phase(&mut self, phase: Counter) {
        self.clock.enter(phase, &mut self.stats.counters);
    }

    /// A composed lemma; counts why there is none.
    fn counted(&mut self, lemma: Result<Lemma, Counter>) -> Option<Lemma> {
        lemma.map_err(|reason| self.stats.counters.count(reason)).ok()
    }

    /// Moves that pruning leaves out, all but the first.
    fn idle_points(&mut self, node: &Node) -> u64 {
        let Position { board, to_move, .. } = node.position;
        if self.options.prune != Some(to_move) {
            return 0;
        }
        let territory = self.static_leaves.certified(board.stones(to_move), self.history.stood(to_move));
        prune::idle_points(self.geometry, board, to_move, territory)
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
        // Before the numbers: what arrives in between is read again.
        child.left = self.team.map_or(0, |team| team.look(child.number_key).1);
        let known = self.table.numbers(child.number_key);
        let decided = self.decided_with(&child.node, known.is_none());
        if reached.is_some() {
            self.history.pop();
        }
        match decided {
            Some(win) if win.winner == child.node.position.to_move => solve_child(child, win.source),
            Some(win) => return Some(win),
            None => {
                // Without numbers of its own the child keeps `delta` infinite and `solved` empty until all children are classified.
                if let Some(numbers) = known {
                    child.set_numbers(numbers);
                }
            }
        }
        None
    }

    /// Stores a lemma about the node; from then on its `B` is known by the parts that the table keeps.
    // Out of line like those below, so that the frames of the recursion stay small.
    #[inline(never)]
    fn keep(&mut self, node: &Node, lemma: &mut Lemma) {
        self.stats.lemmas_stored += 1;
        self.stats.counters.stored(lemma.created.count(), lemma.excluded.len());
        store_in_parts(self.table, self.lemma_key(node), node.canonical.sym, lemma);
    }

    /// Keeps what rests on skipped moves, for this search only.
    #[inline(never)]
    fn keep_assumed(&mut self, node: &Node, lemma: &mut Lemma) {
        let pruning = self.pruning.as_mut().expect("only a pruned search assumes anything");
        if !lemma.created.load(self.table) {
            lemma.created.fold();
        }
        pruning.give_up(node.key, &lemma.clone().map(self.geometry, node.canonical.sym));
    }

    #[inline(never)]
    fn compose_win(&mut self, board: Board, mv: Move, reached: Option<&KnownBoard>, child: Win) -> Win {
        let Win { winner, margin, source, .. } = child;
        let assumed = matches!(source, Source::Assumed(_)) && !dropped(Dropped::PruneWin);
        self.phase(Counter::PhaseCompose);
        let lemma = self.lemma(winner, source).and_then(|lemma| compose::win(self.table, board, mv, reached, lemma));
        let lemma = self.counted(lemma);
        Win { winner, margin, best: Some(mv), source: composed(lemma, assumed) }
    }

    #[inline(never)]
    fn compose_loss(&mut self, node: &Node, children: &mut [Child], banned: &[Board], skipped: bool) -> Win {
        self.phase(Counter::PhaseCompose);
        let winner = node.position.to_move.opponent();
        let mut loss = Loss::new(winner, node.position.board);
        let mut assumed = prune::marks(skipped);
        for child in children {
            let source = child.solved.take().expect("every child is won by the opponent");
            assumed |= matches!(source, Source::Assumed(_)) && !dropped(Dropped::PruneLoss);
            match self.lemma(winner, source) {
                Ok(lemma) => loss.reply(self.table, child.reached().as_ref(), lemma),
                Err(reason) => loss.path_only(reason),
            }
        }
        for &board in banned {
            self.stats.banned_replies += 1;
            self.stats.counters.count(Counter::MoveBanned);
            // A lemma that applies anyway keeps the board out of X (theory, Composition). The board is in the history already.
            let child = self.node(Position { board, to_move: winner, passes: 0 });
            let cover = self.proven(&child, true).filter(|win| win.winner == winner).and_then(|win| self.lemma(winner, win.source).ok());
            match cover {
                Some(lemma) => loss.reply(self.table, Some(&KnownBoard::new(board, child.canonical)), lemma),
                None => loss.banned(board),
            }
        }
        self.phase(Counter::PhaseCompose);
        let lemma = self.counted(loss.finish());
        // A path-only loss still wins by what the komi asks.
        let margin = lemma.as_ref().map_or(self.need(winner), |lemma| lemma.margin.into());
        Win { winner, margin, best: None, source: composed(lemma, assumed) }
    }
}

fn solve_child(child: &mut Child, source: Source) {
    child.phi = 0;
    child.delta = INFINITE;
    child.burden = 0;
    child.solved = Some(source);
}

/// What a composed result rests on.
fn composed(lemma: Option<Lemma>, assumed: bool) -> Source {
    match lemma.map(Box::new) {
        lemma if assumed => Source::Assumed(lemma),
        Some(lemma) => Source::Lemma(lemma),
        None => Source::Path,
    }
}

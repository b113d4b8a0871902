//! Solving one position at one komi.

use crate::board_set::KnownBoard;
use crate::dfpn::{INFINITE, Node, Search, Source, Value, Win};
use crate::mutation::{Dropped, dropped};
use crate::static_leaf::keep_territory;
use crate::{Ablated, Counters, Komi, NumberRule, Prior, RegionLimits, SharedCounters, Table, parallel};
use std::ops::AddAssign;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;
use superko_rules::{Color, Game, Move, Position, bits};

/// Stack of a thread that searches: the recursion goes as deep as a game is long. Only touched pages cost memory.
pub const STACK_BYTES: usize = 1 << 30;

/// Runs `work` on a thread of its own with a stack of [`STACK_BYTES`], and waits for it. A panic goes on in the caller, as does the system's refusal
/// of a thread.
pub fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
        thread.expect("a thread").join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// When to give up. `None` means no limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Expansions in this call.
    pub expansions: Option<u64>,
    /// Wall-clock time of this call.
    pub time: Option<Duration>,
}

/// Shared with the caller's other threads: a stop flag that is read every few hundred expansions, and counters that are flushed
/// there. Counters only ever grow; one `Control` may serve several `solve` calls in turn.
#[derive(Debug, Default)]
pub struct Control {
    /// Set to make the search return [`Stop::Asked`] at its next safe point (well within a second).
    pub stop: AtomicBool,
    /// Calls of the recursive procedure on a node (paper, section 2).
    pub expansions: AtomicU64,
    /// Positions expanded for the first time, as far as the table remembers.
    pub distinct_nodes: AtomicU64,
    /// Look-ups of a position's lemmas.
    pub probes: AtomicU64,
    /// Probes that found a lemma which decided the position under the current history.
    pub hits: AtomicU64,
    /// Probes that found lemmas, all of which failed the reuse test or the komi.
    pub rejected: AtomicU64,
    /// Lemmas stored.
    pub lemmas_stored: AtomicU64,
    /// Everything else that is counted.
    pub counters: SharedCounters,
    /// Root proof number as one of the threads last saw it (of the root's side to move).
    pub root_phi: AtomicU64,
    /// Root disproof number likewise.
    pub root_delta: AtomicU64,
}

/// Why a search ended without a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The expansion limit.
    Expansions,
    /// The time limit.
    Time,
    /// The stop flag.
    Asked,
    /// The pruned side did not win without the moves that were skipped; with them it may.
    Pruned,
}

/// Counts of one `solve` call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchStats {
    /// See [`Control::expansions`].
    pub expansions: u64,
    /// See [`Control::distinct_nodes`].
    pub distinct_nodes: u64,
    /// See [`Control::probes`].
    pub probes: u64,
    /// See [`Control::hits`].
    pub hits: u64,
    /// See [`Control::rejected`].
    pub rejected: u64,
    /// See [`Control::lemmas_stored`].
    pub lemmas_stored: u64,
    /// Positions decided by static knowledge: pure-eye analysis, with or without region games.
    pub static_leaves: u64,
    /// Proofs that hold on their own path only and were not stored.
    pub path_only: u64,
    /// Replies that superko banned at a lost position.
    pub banned_replies: u64,
    /// Everything else that is counted.
    pub counters: Counters,
}

impl AddAssign for SearchStats {
    fn add_assign(&mut self, other: SearchStats) {
        // Taken apart, so that no count can be forgotten.
        let SearchStats {
            expansions,
            distinct_nodes,
            probes,
            hits,
            rejected,
            lemmas_stored,
            static_leaves,
            path_only,
            banned_replies,
            counters,
        } = other;
        self.expansions += expansions;
        self.distinct_nodes += distinct_nodes;
        self.probes += probes;
        self.hits += hits;
        self.rejected += rejected;
        self.lemmas_stored += lemmas_stored;
        self.static_leaves += static_leaves;
        self.path_only += path_only;
        self.banned_replies += banned_replies;
        self.counters = self.counters.plus(&counters);
    }
}

/// Mechanisms that may be switched off for comparison, and the number of threads. None changes a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Pure-eye leaves.
    pub static_knowledge: bool,
    /// Region games at those leaves ([`RegionLimits::OFF`]: none).
    pub region_games: RegionLimits,
    /// Static look-ahead, on top of pure eyes.
    pub look_ahead: bool,
    /// What refuted a sibling is tried early.
    pub killer_order: bool,
    /// How disproof numbers come from the children's numbers.
    /// `None`: [`NumberRule::for_board`].
    pub numbers: Option<NumberRule>,
    /// Skip moves of this side that rarely help it (paper, end of section 4); where it fails for that, the result is
    /// [`Stop::Pruned`].
    pub prune: Option<Color>,
    /// What only the ablation command switches off.
    pub ablated: Ablated,
    /// Threads that search together, at most [`crate::MOST_THREADS`]; 0 counts as 1.
    pub threads: usize,
    /// First numbers of unexpanded positions.
    pub prior: &'static Prior,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            static_knowledge: true,
            region_games: RegionLimits::default(),
            look_ahead: true,
            killer_order: true,
            prior: Prior::builtin(),
            numbers: None,
            prune: None,
            ablated: Ablated::default(),
            threads: 1,
        }
    }
}

/// What `solve` found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The winner at the komi asked for, with the margin that the proof achieves for that winner (own area less the other's); or
    /// why there is none.
    pub verdict: Result<(Color, i32), Stop>,
    /// The winner's move if the winner is to move at the root and the game is not over.
    pub best_move: Option<Move>,
    /// A line of best play as far as stored proofs show it; starts with `best_move` where there is one.
    pub principal_variation: Vec<Move>,
    /// Counts of this call, summed over its threads.
    pub stats: SearchStats,
    /// Threads that searched.
    pub threads: usize,
}

/// Decides who wins `game` at `komi`, with the table's lemmas and the whole superko history of the game.
///
/// Runs on the calling thread until proved, a limit, or `control.stop`. Deterministic for a given table content. Recurses once a
/// ply: give the thread a large stack. Panics if the table is for another board size.
pub fn solve(table: &dyn Table, game: &Game, komi: Komi, limits: Limits, control: &Control) -> Outcome {
    solve_with(Options::default(), table, game, komi, limits, control)
}

/// [`solve`] with the mechanisms and the number of threads that `options` asks for. Threads beyond the calling one bring a stack of
/// [`STACK_BYTES`] each; with several, counts do not repeat.
pub fn solve_with(options: Options, table: &dyn Table, game: &Game, komi: Komi, limits: Limits, control: &Control) -> Outcome {
    let new_search = |limits| Search::new(table, game, komi, options, limits, control);
    if options.threads <= 1 {
        return attempt(&mut new_search(limits), game.position());
    }
    parallel::solve(options.threads, limits, &new_search, game.position())
}

/// One thread's search from the root.
pub(crate) fn attempt(search: &mut Search<'_>, position: Position) -> Outcome {
    let root = search.node(position);
    let win = match search.decided(&root) {
        Some(win) => Ok(win),
        None => match search.search(&root, INFINITE, INFINITE, true) {
            Value::Won(win) => Ok(win),
            Value::Stopped(stop) => Err(stop),
            Value::Open { .. } => unreachable!("no sum of numbers reaches the root's thresholds"),
        },
    };
    // What rests on skipped moves is no proof, so it is no verdict either.
    let win = match win {
        Ok(Win { source: Source::Assumed(_), .. }) if !dropped(Dropped::PruneVerdict) => Err(Stop::Pruned),
        win => win,
    };
    search.finish(matches!(win, Ok(_) | Err(Stop::Pruned)));
    let stats = search.stats;
    let (verdict, line) = match win {
        Ok(win) => (Ok((win.winner, win.margin)), principal_variation(search, root, win)),
        Err(stop) => (Err(stop), Vec::new()),
    };
    let winner_moves = verdict.is_ok_and(|(winner, _)| winner == root.position.to_move);
    Outcome { verdict, best_move: line.first().copied().filter(|_| winner_moves), principal_variation: line, stats, threads: 1 }
}

/// Follows stored proofs: the winner's proven move, and for the loser the reply whose refutation cost most.
fn principal_variation(search: &mut Search<'_>, root: Node, win: Win) -> Vec<Move> {
    let winner = win.winner;
    let (mut node, mut win) = (root, Some(win));
    let mut line = Vec::new();
    while let Some(current) = win.take() {
        if node.position.passes == 2 || current.winner != winner {
            break;
        }
        let mv = if node.position.to_move == winner {
            match current.source {
                // A claim that names no move is kept by the strategy of Lemma 1.
                Source::Static(claim) if claim.best.is_none() => {
                    let Position { board, .. } = node.position;
                    Some(keep_territory(search.geometry, board, winner, claim.territory, |next| !search.history.contains(next)))
                }
                _ => current.best,
            }
        } else if matches!(current.source, Source::Static(_)) {
            None
        } else {
            costliest_reply(search, &node)
        };
        let Some(mv) = mv else { break };
        line.push(mv);
        if matches!(current.source, Source::Static(_)) {
            break;
        }
        let Some(next) = step(search, &node, mv) else { break };
        node = next;
        win = search.decided(&node);
    }
    line
}

/// The node after `mv`, its board added to the history; `None` if the move is not legal there.
fn step(search: &mut Search<'_>, node: &Node, mv: Move) -> Option<Node> {
    let Position { board, to_move, passes } = node.position;
    let next = match mv {
        Move::Pass => Position { board, to_move: to_move.opponent(), passes: passes + 1 },
        Move::Stone(point) => {
            let placed = board.place(search.geometry, to_move, point.into()).ok()?;
            Position { board: placed.board, to_move: to_move.opponent(), passes: 0 }
        }
    };
    let next = search.node(next);
    if mv != Move::Pass && !search.history.push(KnownBoard::new(next.position.board, next.canonical)) {
        return None;
    }
    Some(next)
}

fn costliest_reply(search: &mut Search<'_>, node: &Node) -> Option<Move> {
    let mut best: Option<(u8, Move)> = None;
    let empty = search.geometry.full() & !node.position.board.occupied();
    for mv in std::iter::once(Move::Pass).chain(bits(empty).map(|point| Move::Stone(point as u8))) {
        let Some(next) = step(search, node, mv) else { continue };
        let cost = match search.decided(&next).map(|win| win.source) {
            Some(Source::Found(found)) => Some(found.head.cost_log2 + 1),
            Some(_) => Some(0),
            None => None,
        };
        if mv != Move::Pass {
            search.history.pop();
        }
        if let Some(cost) = cost
            && best.is_none_or(|(most, _)| cost > most)
        {
            best = Some((cost, mv));
        }
    }
    best.map(|(_, mv)| mv)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryTable;
    use superko_rules::parse_board_size;

    /// The last komi at which play decides, and the first beyond it, on either side. 3x3 is a win by all nine points.
    #[test]
    fn a_komi_beyond_the_board_is_decided_without_search() {
        let game = Game::new(parse_board_size("3x3").unwrap());
        for (need_black, winner, decided) in [
            (10, Color::White, true),
            (9, Color::Black, false),
            (-8, Color::Black, false),
            (-9, Color::Black, true),
            (-30, Color::Black, true),
        ] {
            let table = MemoryTable::new(game.geometry());
            let outcome = solve(&table, &game, Komi::below(need_black), Limits::default(), &Control::default());
            let (found, margin) = outcome.verdict.unwrap();
            assert_eq!((found, outcome.stats.expansions == 0), (winner, decided), "Black needs {need_black}");
            assert!(margin >= Komi::below(need_black).need(winner));
        }
    }
}

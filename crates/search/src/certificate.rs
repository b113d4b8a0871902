//! Certificates: a proof as lemmas that a program which knows the rules only can check one by one (`crates/check/CERTIFICATE.md`).
//!
//! The proof is built anew below the root, under the real history of each line, from what the table has proven: a position is taken from
//! the lemmas written so far if one applies, else it is decided as the search decides it and its record written after those that it
//! refers to. What the table no longer holds, or rests on region games, which the format does not have, is searched again. Nothing here is
//! trusted: the checker knows neither the table nor this code.

use crate::board_set::KnownBoard;
use crate::compose::{self, Loss};
use crate::dfpn::{INFINITE, Node, Search, Source, Value, Win};
use crate::solver::{Control, Limits, Options, Stop};
use crate::static_leaf::{LeafKind, StaticWin};
use crate::table::store_in_parts;
use crate::transfer::Probe;
use crate::{Counter, Counters, Komi, Lemma, PositionKey, RegionLimits, Table};
use std::fmt;
use std::io::{self, Write};
use superko_rules::{Board, Color, Game, Geometry, Move, Position, bits, board_rows};

/// Kinds of records.
const TERMINAL: u8 = 0;
const EYES: u8 = 1;
const MIAI: u8 = 2;
const MOVE: u8 = 3;
const REPLIES: u8 = 4;
const END: u8 = 7;
/// The most lemmas: a checker packs a number with a symmetry into 32 bits.
const MOST_LEMMAS: u64 = 1 << 29;
/// Every so many lemmas the limits are asked.
const SAFE_POINT: u64 = 256;
/// The byte of a pass.
const PASS: u8 = 255;

/// Why there is no certificate.
#[derive(Debug)]
pub enum ExportError {
    /// The game is over, or the komi lies beyond the board: there is nothing to prove.
    Decided,
    /// Lemmas had to be searched again and the search was stopped: by its limits, or by [`Control::stop`].
    Stopped(Stop),
    /// A part of the proof holds on its own path only, or names no move, which the format cannot express.
    PathOnly,
    /// There are more lemmas than checkers take.
    TooLong,
    /// The search contradicts the winner that was asked for.
    OtherWinner,
    /// Writing failed.
    Io(io::Error),
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExportError::Decided => write!(f, "the game is over or the komi is beyond the board, so there is nothing to certify"),
            ExportError::Stopped(Stop::Asked) => write!(f, "stopped before the certificate was complete"),
            ExportError::Stopped(stop) => write!(f, "parts of the proof had to be searched again, which ended early ({stop:?})"),
            ExportError::PathOnly => write!(f, "a part of the proof holds on its own path only, which a certificate cannot express"),
            ExportError::TooLong => write!(f, "the proof has {MOST_LEMMAS} lemmas or more, which is more than a certificate may have"),
            ExportError::OtherWinner => write!(f, "the search found another winner than the one to be certified"),
            ExportError::Io(error) => write!(f, "writing the certificate: {error}"),
        }
    }
}

impl std::error::Error for ExportError {}

impl From<io::Error> for ExportError {
    fn from(error: io::Error) -> Self {
        ExportError::Io(error)
    }
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Lemmas.
    pub lemmas: u64,
    /// Bytes, uncompressed.
    pub bytes: u64,
    /// Expansions spent on what the table did not have.
    pub expansions: u64,
}

/// What a certificate is to prove: that `winner` wins `game` from where it stands, at `komi`.
#[derive(Clone, Copy, Debug)]
pub struct Statement<'a> {
    /// The position with its history.
    pub game: &'a Game,
    /// Added to White's score.
    pub komi: Komi,
    /// The winner that a search has found.
    pub winner: Color,
}

/// Writes a certificate of `statement`, uncompressed, with the lemmas of `table`. `limits` bound what is searched again.
///
/// Recurses once a ply, like the search. Keeps the lemmas that it has written in `written`, an empty table of the board: what that forgets is
/// written a second time if it is needed again. The same tables give the same bytes.
pub fn export(
    table: &dyn Table,
    written: &dyn Table,
    statement: &Statement<'_>,
    options: Options,
    limits: Limits,
    control: &Control,
    out: &mut dyn Write,
) -> Result<Exported, ExportError> {
    let Statement { game, komi, winner } = *statement;
    let geometry = game.geometry();
    let points = geometry.points() as i32;
    if game.is_over() || komi.need(Color::Black) > points || komi.need(Color::Black) <= -points {
        return Err(ExportError::Decided);
    }
    let options = Options { region_games: RegionLimits::OFF, prune: None, threads: 1, ..options };
    let mut exporter = Exporter {
        search: Search::new(table, game, komi, options, limits, control),
        winner,
        written,
        record: Vec::new(),
        symmetries: symmetry_codes(geometry),
        counts: Exported::default(),
        out,
    };
    exporter.header(game, komi)?;
    let root = exporter.search.node(game.position());
    let (reference, _) = exporter.extract(&root)?;
    exporter.end(reference)?;
    exporter.search.finish(false);
    exporter.counts.expansions = exporter.search.stats.expansions;
    Ok(exporter.counts)
}

/// A lemma that is written, and the symmetry from its frame to that of the position it is used for.
#[derive(Clone, Copy)]
struct Reference {
    lemma: u64,
    sym: u8,
}

struct Exporter<'a> {
    search: Search<'a>,
    winner: Color,
    /// The lemmas written, in canonical frames, each with its number.
    written: &'a dyn Table,
    record: Vec<u8>,
    /// The format's code of each symmetry.
    symmetries: Vec<u8>,
    counts: Exported,
    out: &'a mut dyn Write,
}

/// A lemma in the frame of its position, with where it is written.
type Written = (Reference, Lemma);

impl Exporter<'_> {
    fn header(&mut self, game: &Game, komi: Komi) -> io::Result<()> {
        let Position { to_move, passes, board: root } = game.position();
        let geometry = game.geometry();
        // A set-up may name a board several times; the format wants each once, the root's last.
        let mut boards: Vec<Board> = Vec::new();
        for &board in game.boards() {
            if board != root && !boards.contains(&board) {
                boards.push(board);
            }
        }
        boards.push(root);
        let mut text = format!(
            "superko certificate 1\nboard {}x{}\nkomi {komi}\nwinner {}\nto move {}\npasses {passes}\nhistory {}\n",
            geometry.rows(),
            geometry.cols(),
            name(self.winner),
            name(to_move),
            boards.len()
        );
        for board in boards {
            text += &board_rows(geometry, board).join("/");
            text.push('\n');
        }
        text.push('\n');
        self.write(text.as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.counts.bytes += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    fn end(&mut self, root: Reference) -> io::Result<()> {
        self.record.push(END);
        varint(&mut self.record, self.counts.lemmas);
        self.refer(root, 0);
        let record = std::mem::take(&mut self.record);
        self.write(&record)
    }

    /// A lemma about the node, written before or now. The history contains the node's board.
    fn extract(&mut self, node: &Node) -> Result<Written, ExportError> {
        if let Some(written) = self.existing(node) {
            return Ok(written);
        }
        if self.counts.lemmas.is_multiple_of(SAFE_POINT)
            && let Some(stop) = self.search.safe_point()
        {
            return Err(ExportError::Stopped(stop));
        }
        let win = match self.search.proven(node, true) {
            Some(win) => win,
            None => self.search_again(node)?,
        };
        if win.winner != self.winner {
            return Err(ExportError::OtherWinner);
        }
        match win.source {
            Source::Terminal(margin) => self.keep(node, TERMINAL, Lemma::leaf(self.winner, margin, 0), |_| {}),
            Source::Static(StaticWin { kind: LeafKind::PureEyes, margin, territory, .. }) => {
                let alive = self.search.static_leaves.eyes(node.position.board.stones(self.winner)).alive;
                let lemma = Lemma::leaf(self.winner, margin, territory);
                self.keep(node, EYES, lemma, |exporter| exporter.masks(node, &[alive, territory]))
            }
            Source::Static(win @ StaticWin { kind: LeafKind::Miai, .. }) => self.miai(node, win),
            _ if node.position.to_move == self.winner => self.winner_move(node, win.best),
            _ => self.replies(node),
        }
    }

    /// A lemma written before that applies.
    fn existing(&mut self, node: &Node) -> Option<Written> {
        let need = self.search.need(self.winner);
        let (search, geometry) = (&mut self.search, self.written.geometry());
        let mut unseen = Counters::default();
        let probe = search.transfer.probe(self.written, key(node), node.canonical, &search.history, &|_| need, &mut unseen);
        let Probe::Hit(found) = probe else { return None };
        // Without its prints `B` looks larger, and what is composed of it may fail its checks: better to write the lemma again.
        let lemma = search.transfer.fetch_whole(self.written, &found)?;
        Some((Reference { lemma: found.head.number, sym: geometry.inverse(found.sym) }, lemma))
    }

    #[inline(never)]
    fn search_again(&mut self, node: &Node) -> Result<Win, ExportError> {
        match self.search.search(node, INFINITE, INFINITE, false) {
            Value::Won(win) => Ok(win),
            Value::Stopped(stop) => Err(ExportError::Stopped(stop)),
            Value::Open { .. } => unreachable!("no sum of numbers reaches these thresholds"),
        }
    }

    #[inline(never)]
    fn miai(&mut self, node: &Node, win: StaticWin) -> Result<Written, ExportError> {
        let board = node.position.board;
        let search = &mut self.search;
        let mut ways = search.look_ahead.ways(&mut search.static_leaves, board, self.winner, search.history.stood(self.winner));
        let (geometry, sym) = (search.geometry, node.canonical.sym);
        ways.sort_by_key(|way| geometry.map_point(sym, way.point.into()));
        self.keep(node, MIAI, Lemma::leaf(self.winner, win.margin, win.territory), |exporter| {
            exporter.record.push(ways.len() as u8);
            for way in ways {
                exporter.point(node, Move::Stone(way.point));
                exporter.masks(node, &[way.alive, way.territory & !(1 << way.point)]);
            }
        })
    }

    /// The winner moves: to the smallest lemma that is written already, else by `best`.
    fn winner_move(&mut self, node: &Node, best: Option<Move>) -> Result<Written, ExportError> {
        let (mv, child) = self.known_move(node).map_or_else(
            || {
                let mv = best.ok_or(ExportError::PathOnly)?;
                let (child, reached) = self.child(node, mv).ok_or(ExportError::PathOnly)?;
                Ok::<_, ExportError>((mv, self.below(&child, reached)?))
            },
            Ok,
        )?;
        self.compose_move(node, mv, child)
    }

    #[inline(never)]
    fn known_move(&mut self, node: &Node) -> Option<(Move, Written)> {
        let empty = self.search.geometry.full() & !node.position.board.occupied();
        let mut best: Option<(usize, Move, Written)> = None;
        for mv in std::iter::once(Move::Pass).chain(bits(empty).map(|point| Move::Stone(point as u8))) {
            let Some((child, reached)) = self.child(node, mv) else { continue };
            let Some(written) = self.with(reached, |exporter| exporter.existing(&child)) else { continue };
            let size = written.1.created.count() + written.1.excluded.len();
            if best.as_ref().is_none_or(|(least, ..)| size < *least) {
                best = Some((size, mv, written));
            }
        }
        best.map(|(_, mv, written)| (mv, written))
    }

    #[inline(never)]
    fn compose_move(&mut self, node: &Node, mv: Move, (reference, lemma): Written) -> Result<Written, ExportError> {
        let (_, reached) = self.child(node, mv).ok_or(ExportError::PathOnly)?;
        let lemma = compose::win(self.written, node.position.board, mv, reached.as_ref(), lemma).map_err(path_only)?;
        self.keep(node, MOVE, lemma, |exporter| {
            exporter.point(node, mv);
            exporter.refer(reference, node.canonical.sym);
        })
    }

    /// The loser moves: all replies.
    fn replies(&mut self, node: &Node) -> Result<Written, ExportError> {
        let mut loss = Loss::new(self.winner, node.position.board);
        // By the point in the canonical frame, the pass first.
        let mut replies: Vec<(Option<usize>, Option<Reference>)> = Vec::new();
        let pass = node.after_pass();
        let (reference, lemma) = self.extract(&pass)?;
        loss.reply(self.written, None, lemma);
        replies.push((None, Some(reference)));
        let (geometry, sym) = (self.search.geometry, node.canonical.sym);
        for point in bits(geometry.full() & !node.position.board.occupied()) {
            let Some(child) = self.placed(node, point) else { continue };
            let reached = KnownBoard::new(child.position.board, child.canonical);
            let banned = self.search.history.contains(child.position.board);
            // A banned reply needs no answer; one that is at hand keeps the board out of X (theory, Composition).
            let answer = if banned { self.existing(&child) } else { Some(self.below(&child, Some(reached))?) };
            let at = Some(geometry.map_point(sym, point));
            match answer {
                Some((reference, lemma)) => {
                    loss.reply(self.written, Some(&reached), lemma);
                    replies.push((at, Some(reference)));
                }
                None => {
                    loss.banned(child.position.board);
                    replies.push((at, None));
                }
            }
        }
        self.compose_replies(node, loss, replies)
    }

    #[inline(never)]
    fn compose_replies(
        &mut self,
        node: &Node,
        loss: Loss,
        mut replies: Vec<(Option<usize>, Option<Reference>)>,
    ) -> Result<Written, ExportError> {
        let lemma = loss.finish().map_err(path_only)?;
        replies.sort_by_key(|&(at, _)| at);
        self.keep(node, REPLIES, lemma, |exporter| {
            for (_, reply) in replies {
                match reply {
                    Some(reference) => exporter.refer(reference, node.canonical.sym),
                    None => exporter.record.push(0),
                }
            }
        })
    }

    /// The node after a stone of the side to move, unless it is suicide.
    fn placed(&self, node: &Node, point: usize) -> Option<Node> {
        let Position { board, to_move, .. } = node.position;
        let board = board.place(self.search.geometry, to_move, point).ok()?.board;
        Some(self.search.node(Position { board, to_move: to_move.opponent(), passes: 0 }))
    }

    /// The node after a legal move, with the board that it creates.
    fn child(&self, node: &Node, mv: Move) -> Option<(Node, Option<KnownBoard>)> {
        match mv {
            Move::Pass => Some((node.after_pass(), None)),
            Move::Stone(point) => {
                let child = self.placed(node, point.into())?;
                let reached = KnownBoard::new(child.position.board, child.canonical);
                (!self.search.history.contains(reached.board)).then_some((child, Some(reached)))
            }
        }
    }

    fn below(&mut self, child: &Node, reached: Option<KnownBoard>) -> Result<Written, ExportError> {
        self.with(reached, |exporter| exporter.extract(child))
    }

    /// Looks at what follows a move that creates this board.
    fn with<T>(&mut self, reached: Option<KnownBoard>, look: impl FnOnce(&mut Self) -> T) -> T {
        if let Some(reached) = reached {
            self.search.history.push(reached);
        }
        let result = look(self);
        if reached.is_some() {
            self.search.history.pop();
        }
        result
    }

    /// Writes a record, its content by `content`, and keeps the lemma.
    #[inline(never)]
    fn keep(&mut self, node: &Node, kind: u8, lemma: Lemma, content: impl FnOnce(&mut Self)) -> Result<Written, ExportError> {
        let number = self.counts.lemmas;
        if number == MOST_LEMMAS {
            return Err(ExportError::TooLong);
        }
        let Position { board, to_move, passes } = node.position;
        self.record.clear();
        self.record.push(kind + 8 * u8::from(to_move == Color::White) + 16 * passes);
        self.masks(node, &[board.black, board.white]);
        content(self);
        let record = std::mem::take(&mut self.record);
        self.write(&record)?;
        self.record = record;
        self.record.clear();
        // Of several lemmas about a position the table keeps the latest.
        let mut lemma = Lemma { number, cost: number, ..lemma };
        store_in_parts(self.written, key(node), node.canonical.sym, &mut lemma);
        self.counts.lemmas += 1;
        Ok((Reference { lemma: number, sym: self.search.geometry.inverse(node.canonical.sym) }, lemma))
    }

    /// Sets of points in the node's canonical frame.
    fn masks(&mut self, node: &Node, masks: &[u64]) {
        let geometry = self.search.geometry;
        for &mask in masks {
            let image = geometry.map_mask(node.canonical.sym, mask);
            self.record.extend_from_slice(&image.to_le_bytes()[..geometry.points().div_ceil(8)]);
        }
    }

    fn point(&mut self, node: &Node, mv: Move) {
        self.record.push(match self.search.geometry.map_move(node.canonical.sym, mv) {
            Move::Pass => PASS,
            Move::Stone(point) => point,
        });
    }

    /// A reference in the frame to which `sym` leads.
    fn refer(&mut self, reference: Reference, sym: u8) {
        let sym = self.symmetries[self.search.geometry.compose(sym, reference.sym) as usize];
        varint(&mut self.record, (self.counts.lemmas - reference.lemma) << 3 | u64::from(sym));
    }
}

/// Under which key the lemmas written about a position are kept. The search has no keys for games that are over.
fn key(node: &Node) -> PositionKey {
    node.key | PositionKey::from(node.position.passes == 2) << 127
}

fn path_only(_: Counter) -> ExportError {
    ExportError::PathOnly
}

fn name(color: Color) -> &'static str {
    match color {
        Color::Black => "black",
        Color::White => "white",
    }
}

fn varint(record: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        record.push(number as u8 | 0x80);
        number >>= 7;
    }
    record.push(number as u8);
}

/// The format's code of each symmetry: 4 if rows and columns are exchanged first, then 1 if rows, then 2 if columns are turned round.
fn symmetry_codes(geometry: &Geometry) -> Vec<u8> {
    let (rows, cols) = (geometry.rows(), geometry.cols());
    let image = |code: u8, point: usize| {
        let (mut row, mut col) = (point / cols, point % cols);
        if code & 4 != 0 {
            (row, col) = (col, row);
        }
        let row = if code & 1 != 0 { rows - 1 - row } else { row };
        let col = if code & 2 != 0 { cols - 1 - col } else { col };
        row * cols + col
    };
    let codes = if rows == cols { 0..8 } else { 0..4 };
    let code_of = |sym: usize| {
        let same = |&code: &u8| (0..geometry.points()).all(|point| image(code, point) == geometry.map_point(sym as u8, point));
        codes.clone().find(same).expect("the format names every symmetry of the board")
    };
    (0..geometry.symmetries()).map(code_of).collect()
}

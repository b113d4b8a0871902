//! Checks each lemma as it is read, by the rules and by what is known of earlier lemmas. The numbered checks are those of `CERTIFICATE.md`.

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::rc::Rc;
use std::sync::mpsc::sync_channel;

use crate::created::{Created, EMPTY};
use crate::eyes::check_miai;
use crate::reader::{Header, Reader, Record, Reference, Step};
use crate::rules::{Board, Position};
use crate::{Error, Report};

/// The most boards that a lemma's `X` may have.
const MAX_X: usize = 255;

/// What is kept of a lemma.
#[derive(Debug)]
struct Lemma {
    position: Position,
    /// Points on which no board of the history may have a stone of the winner.
    t: u64,
    /// The number of the set of boards that must be in the history.
    x: u32,
    /// The number of the set of boards that must not be in the history.
    b: u32,
}

/// Sets `X`, each different one kept once; they are few and nearly all empty.
#[derive(Debug)]
struct Sets {
    sets: Vec<Rc<[Board]>>,
    numbers: HashMap<Rc<[Board]>, u32>,
}

impl Sets {
    fn number(&mut self, set: &[Board]) -> u32 {
        if let Some(number) = self.numbers.get(set) {
            return *number;
        }
        let (set, number) = (Rc::<[Board]>::from(set), self.sets.len() as u32);
        self.sets.push(set.clone());
        self.numbers.insert(set, number);
        number
    }
}

struct Checker {
    header: Header,
    need: i64,
    lemmas: Vec<Lemma>,
    created: Created,
    sets: Sets,
    /// How many lemmas there are of each kind.
    kinds: [u64; 5],
}

/// What a lemma takes over from the lemmas that it refers to, and what its own replies add.
#[derive(Default)]
struct Gathered {
    t: u64,
    x: Vec<Board>,
    b: Vec<(u32, u8)>,
}

impl Checker {
    /// Takes over the conditions of an earlier lemma, whose position must be the one that is expected.
    fn gather(&self, gathered: &mut Gathered, reference: Reference, expected: Position) -> Result<(), String> {
        let grid = &self.header.grid;
        let lemma = &self.lemmas[reference.lemma as usize];
        let position = Position { board: grid.board_image(reference.symmetry, lemma.position.board), ..lemma.position };
        if position != expected {
            return Err(format!(
                "leads to {}, but the reference is to {}",
                crate::text::position(grid, expected),
                crate::text::position(grid, position)
            ));
        }
        gathered.t |= grid.image(reference.symmetry, lemma.t);
        gathered.x.extend(self.sets.sets[lemma.x as usize].iter().map(|board| grid.board_image(reference.symmetry, *board)));
        gathered.b.push((lemma.b, reference.symmetry));
        Ok(())
    }

    /// Checks a record and keeps it as the next lemma; or says what is wrong with it.
    fn lemma(&mut self, position: Position, step: &Step) -> Result<(), String> {
        let Header { ref grid, winner, .. } = self.header;
        let Position { board, to_move, passes } = position;
        let loser = winner.opponent();
        let mut gathered = Gathered::default();
        let mut created = None;
        let after_pass = Position { board, to_move: to_move.opponent(), passes: passes + 1 };
        let after_stone = |board| Position { board, to_move: to_move.opponent(), passes: 0 };

        // Checks 1 and 2: the kind fits the position, and its conditions hold.
        let kind = match step {
            Step::End => {
                if passes != 2 {
                    return Err("check 2, kind 0: there were not two passes".into());
                }
                if !self.header.is_won(board) {
                    return Err("check 2, kind 0: the winner has not won the board".into());
                }
                0
            }
            Step::Eyes(claim) => {
                if passes == 2 || passes == 1 && to_move == loser {
                    return Err("check 2, kind 1: the loser could end the game, or it has ended".into());
                }
                claim.check(grid, board.of(winner), self.need).map_err(|what| format!("check 2, kind 1: {what}"))?;
                gathered.t = claim.t;
                1
            }
            Step::Miai(ways) => {
                if passes != 0 {
                    return Err("check 2, kind 2: there was a pass".into());
                }
                if to_move != loser {
                    return Err("check 1, kind 2: the loser is not to move".into());
                }
                check_miai(grid, board, winner, ways, self.need).map_err(|what| format!("check 2, kind 2: {what}"))?;
                gathered.t = ways.iter().fold(0, |t, way| t | way.claim.t | 1 << way.point);
                2
            }
            Step::Move(point, reference) => {
                if to_move != winner {
                    return Err("check 1, kind 3: the winner is not to move".into());
                }
                if passes == 2 {
                    return Err("check 2, kind 3: the game has ended".into());
                }
                let expected = match point {
                    None => after_pass,
                    Some(point) => {
                        created = grid.play(board, winner, *point);
                        after_stone(created.ok_or("check 2, kind 3: the point is not empty, or the move is suicide")?)
                    }
                };
                self.gather(&mut gathered, *reference, expected).map_err(|what| format!("check 2, kind 3: the move {what}"))?;
                3
            }
            Step::Replies(pass, replies) => {
                if to_move != loser {
                    return Err("check 1, kind 4: the loser is not to move".into());
                }
                if passes == 2 {
                    return Err("check 2, kind 4: the game has ended".into());
                }
                self.gather(&mut gathered, *pass, after_pass).map_err(|what| format!("check 2, kind 4: the pass {what}"))?;
                for reply in replies {
                    match reply.answer {
                        Some(reference) => self
                            .gather(&mut gathered, reference, after_stone(reply.board))
                            .map_err(|what| format!("check 2, kind 4: the reply {} {what}", grid.name(reply.point)))?,
                        // The reply is illegal because the board that it creates is in the history.
                        None => gathered.x.push(reply.board),
                    }
                }
                4
            }
        };

        // Check 3: the lemma's own board, which every history has, fulfils its conditions.
        if gathered.t & board.of(winner) != 0 {
            return Err("check 3: a stone of the winner is on a point of T".into());
        }
        let b = self.created.unite(grid, gathered.b, created);
        if b != EMPTY && self.created.contains(grid, b, board) {
            return Err("check 3: the lemma's own board is in B".into());
        }

        // Check 4. That its own board is in the history need not be asked for.
        gathered.x.sort_unstable();
        gathered.x.dedup();
        gathered.x.retain(|required| *required != board);
        if gathered.x.len() > MAX_X {
            return Err(format!("check 4: X has {} boards", gathered.x.len()));
        }
        let x = self.sets.number(&gathered.x);
        self.lemmas.push(Lemma { position, t: gathered.t, x, b });
        self.kinds[kind] += 1;
        Ok(())
    }

    /// Check 5: the last record's lemma is about the root, and its conditions hold in the history.
    fn root(&mut self, reference: Reference) -> Result<(), String> {
        let Header { ref grid, winner, to_move, passes, ref history, .. } = self.header;
        let board = self.header.root();
        for stones in [board.black, board.white] {
            if grid.with_liberty(stones, board) != stones {
                return Err("check 5: a chain has no liberty".into());
            }
        }
        let mut gathered = Gathered::default();
        self.gather(&mut gathered, reference, Position { board, to_move, passes }).map_err(|what| format!("kind 7: the header {what}"))?;

        let set = self.created.unite(grid, gathered.b, None);
        let present: HashSet<Board> = history.iter().copied().collect();
        for board in history {
            if self.created.contains(grid, set, *board) {
                return Err(format!("check 5: {} of the history is in B", grid.draw(*board)));
            }
            if board.of(winner) & gathered.t != 0 {
                return Err(format!("check 5: {} of the history has a stone of the winner on a point of T", grid.draw(*board)));
            }
        }
        match gathered.x.iter().find(|required| !present.contains(required)) {
            Some(required) => Err(format!("check 5: {} is in X and not in the history", grid.draw(*required))),
            None => Ok(()),
        }
    }
}

/// Records that the reading thread hands over at a time, and how many such batches may wait.
const BATCH: usize = 1024;
const WAITING: usize = 8;

/// Checks a certificate in one pass. `progress` is told now and then how many lemmas have been checked.
pub fn check(input: impl Read, progress: &mut dyn FnMut(u64)) -> Result<Report, Error> {
    let (header, mut reader) = Reader::new(input)?;
    let same = header.clone();
    judge(header, std::iter::repeat_with(|| reader.record(&same)), progress)
}

/// [`check`], with a second thread that reads the records.
pub fn check_in_parallel(input: impl Read + Send, progress: &mut dyn FnMut(u64)) -> Result<Report, Error> {
    std::thread::scope(|scope| {
        let (send_header, receive_header) = sync_channel(1);
        let (send, receive) = sync_channel(WAITING);
        scope.spawn(move || {
            let (header, mut reader) = match Reader::new(input) {
                Ok((header, reader)) => (header, reader),
                Err(error) => return drop(send_header.send(Err(error))),
            };
            // Whoever has judged what went before may have gone already.
            let _ = send_header.send(Ok(header.clone()));
            let mut is_last = false;
            while !is_last {
                let mut batch = Vec::with_capacity(BATCH);
                while batch.len() < BATCH && !is_last {
                    let record = reader.record(&header);
                    is_last = !matches!(record, Ok(Record::Lemma(..)));
                    batch.push(record);
                }
                if send.send(batch).is_err() {
                    return;
                }
            }
        });
        let header = receive_header.recv().expect("the reading thread sends the header or an error")?;
        judge(header, receive.into_iter().flatten(), progress)
    })
}

/// Judges the records in their order; the last one is the root or an error.
fn judge(header: Header, records: impl Iterator<Item = Result<Record, Error>>, progress: &mut dyn FnMut(u64)) -> Result<Report, Error> {
    let need = header.need();
    let mut sets = Sets { sets: Vec::new(), numbers: HashMap::new() };
    sets.number(&[]);
    let mut checker = Checker { header, need, lemmas: Vec::new(), created: Created::new(), sets, kinds: [0; 5] };
    for record in records {
        match record? {
            Record::Lemma(position, step) => checker.lemma(position, &step).map_err(|condition| Error::Invalid {
                lemma: Some(checker.lemmas.len() as u64),
                position: crate::text::position(&checker.header.grid, position),
                condition,
            })?,
            Record::Root(reference) => {
                let Header { ref grid, to_move, passes, .. } = checker.header;
                let root = Position { board: checker.header.root(), to_move, passes };
                let position = crate::text::position(grid, root);
                checker.root(reference).map_err(|condition| Error::Invalid { lemma: None, position, condition })?;
                let longest_x = checker.sets.sets.iter().map(|set| set.len()).max().unwrap_or(0);
                let created = checker.created.boards() as u64;
                return Ok(Report::new(&checker.header, checker.kinds, created, longest_x));
            }
        }
        if checker.lemmas.len().is_multiple_of(1024) {
            progress(checker.lemmas.len() as u64);
        }
    }
    unreachable!("the last record is the root or an error")
}

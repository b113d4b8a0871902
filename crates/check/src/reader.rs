//! Reads a certificate: the header, then one record after another. Whatever is found wrong here makes it [unreadable](Error::Unreadable).

use std::collections::HashSet;
use std::io::{BufReader, Cursor, ErrorKind, Read};

use ruzstd::decoding::StreamingDecoder;

use crate::Error;
use crate::eyes::{Claim, Way};
use crate::rules::{Board, Color, Grid, Position, points};

/// The most lemmas that this checker can hold: it packs a number and a symmetry in 32 bits.
const MAX_LEMMAS: u32 = 1 << 29;

/// What the first lines say.
#[derive(Clone, Debug)]
pub struct Header {
    /// The board's size.
    pub grid: Grid,
    /// Twice the komi, which is odd.
    pub twice_komi: i64,
    /// Who is said to win.
    pub winner: Color,
    /// Who is to move at the root.
    pub to_move: Color,
    /// Passes directly before the root: 0 or 1.
    pub passes: u8,
    /// All boards of the game, in order; the last one is the root's.
    pub history: Vec<Board>,
}

impl Header {
    /// The board of the root.
    pub fn root(&self) -> Board {
        *self.history.last().expect("the reader refuses an empty history")
    }

    /// The komi as it is written.
    pub fn komi(&self) -> String {
        format!("{}{}.5", if self.twice_komi < 0 { "-" } else { "" }, self.twice_komi.abs() / 2)
    }

    /// The least number of points that is a win for the winner when the opponent has all others.
    pub fn need(&self) -> i64 {
        // 2k - points > komi, in halves: 4k > 2 * points + 2 * komi.
        let twice_komi = if self.winner == Color::Black { self.twice_komi } else { -self.twice_komi };
        (2 * i64::from(self.grid.count()) + twice_komi).div_euclid(4) + 1
    }

    /// Whether the winner has won this board when the game ends with it.
    pub fn is_won(&self, board: Board) -> bool {
        (2 * self.grid.score(board) > self.twice_komi) == (self.winner == Color::Black)
    }
}

/// An earlier lemma, and the symmetry under which it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The lemma's number.
    pub lemma: u32,
    /// The symmetry's code.
    pub symmetry: u8,
}

/// A stone of the loser that is no suicide, and the answer to it.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    /// Where the stone is played.
    pub point: u32,
    /// The board that it creates.
    pub board: Board,
    /// The lemma that wins; `None` if the move is said to be illegal by superko.
    pub answer: Option<Reference>,
}

/// What a record holds besides its position.
#[derive(Debug)]
pub enum Step {
    /// Kind 0.
    End,
    /// Kind 1.
    Eyes(Claim),
    /// Kind 2.
    Miai(Vec<Way>),
    /// Kind 3: a stone on a point, or a pass.
    Move(Option<u32>, Reference),
    /// Kind 4: the answer to the pass, and the replies with a stone.
    Replies(Reference, Vec<Reply>),
}

/// A record.
#[derive(Debug)]
pub enum Record {
    /// A lemma.
    Lemma(Position, Step),
    /// The end of the file, with the lemma of the root.
    Root(Reference),
}

/// Where the bytes come from.
enum Source<R: Read> {
    Plain(Start<R>),
    Zstd(Box<StreamingDecoder<Start<R>, ruzstd::decoding::FrameDecoder>>),
}

/// The input, with the bytes that were read to tell the two apart put back before it.
type Start<R> = std::io::Chain<Cursor<Vec<u8>>, BufReader<R>>;

/// Reads a certificate record by record.
pub struct Reader<R: Read> {
    source: Source<R>,
    buffer: Box<[u8]>,
    at: usize,
    end: usize,
    /// How many bytes there were before those of the buffer, and in it.
    bytes: u64,
    lemmas: u32,
}

impl<R: Read> std::fmt::Debug for Reader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("lemmas", &self.lemmas).finish_non_exhaustive()
    }
}

fn unreadable<T>(what: impl Into<String>) -> Result<T, Error> {
    Err(Error::Unreadable(what.into()))
}

/// `read` that tries again when a signal came between.
fn read_some(source: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match source.read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

impl<R: Read> Reader<R> {
    /// Reads the header. The input may be a zstd stream of one frame, or plain.
    pub fn new(input: R) -> Result<(Header, Reader<R>), Error> {
        let io = |error: std::io::Error| Error::Unreadable(error.to_string());
        let mut input = BufReader::new(input);
        let mut first = Vec::new();
        input.by_ref().take(5).read_to_end(&mut first).map_err(io)?;
        let is_zstd = first.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
        if is_zstd && first.get(4).is_some_and(|descriptor| descriptor & 8 != 0) {
            return unreadable("zstd: the reserved bit of the frame is set");
        }
        let start = Cursor::new(first).chain(input);
        let source = if is_zstd {
            // The decoder refuses a window of more than 128 MiB, so what it allocates is bounded.
            let decoder = StreamingDecoder::new(start).map_err(|error| Error::Unreadable(format!("zstd: {error}")))?;
            Source::Zstd(Box::new(decoder))
        } else {
            Source::Plain(start)
        };
        let mut reader = Reader { source, buffer: vec![0; 1 << 16].into(), at: 0, end: 0, bytes: 0, lemmas: 0 };
        Ok((reader.header()?, reader))
    }

    /// How many lemmas have been read.
    pub fn lemmas(&self) -> u32 {
        self.lemmas
    }

    /// The next byte, or `None` at the end of the input.
    fn next_byte(&mut self) -> Result<Option<u8>, Error> {
        if self.at == self.end {
            let read = match &mut self.source {
                Source::Plain(source) => read_some(source, &mut self.buffer),
                Source::Zstd(source) => read_some(source, &mut self.buffer),
            };
            (self.at, self.end) = (0, read.map_err(|error| Error::Unreadable(error.to_string()))?);
            self.bytes += self.end as u64;
            if self.end == 0 {
                return Ok(None);
            }
        }
        self.at += 1;
        Ok(Some(self.buffer[self.at - 1]))
    }

    fn byte(&mut self) -> Result<u8, Error> {
        match self.next_byte()? {
            Some(byte) => Ok(byte),
            None => unreadable(format!("the certificate ends too early, after {} lemmas", self.lemmas)),
        }
    }

    /// An error in the record that is being read.
    fn bad<T>(&self, what: &str) -> Result<T, Error> {
        unreadable(format!("record {}: {what}", self.lemmas))
    }

    /// After the last record: nothing follows, and the checksum, if there is one, agrees.
    fn finish(&mut self) -> Result<(), Error> {
        if self.next_byte()?.is_some() {
            return unreadable("something follows the end of the certificate");
        }
        if let Source::Zstd(decoder) = &mut self.source {
            let sum = decoder.decoder.get_checksum_from_data();
            if sum.is_some() && sum != decoder.decoder.get_calculated_checksum() {
                return unreadable("zstd: the checksum is wrong");
            }
            let size = decoder.decoder.content_size();
            if size != 0 && size != self.bytes {
                return unreadable(format!("zstd: the frame holds {} bytes and says {size}", self.bytes));
            }
            if read_some(decoder.get_mut(), &mut [0]).map_err(|error| Error::Unreadable(error.to_string()))? != 0 {
                return unreadable("something follows the zstd frame");
            }
        }
        Ok(())
    }

    fn line(&mut self) -> Result<String, Error> {
        let mut line = String::new();
        loop {
            match self.byte()? {
                b'\n' => return Ok(line),
                byte @ b' '..=b'~' if line.len() < 200 => line.push(byte.into()),
                _ => return unreadable("not a certificate: a line of the header is too long or not plain text"),
            }
        }
    }

    /// The value of a line of the header that starts with `name` and a space.
    fn field(&mut self, name: &str) -> Result<String, Error> {
        let line = self.line()?;
        match line.strip_prefix(name).and_then(|rest| rest.strip_prefix(' ')) {
            Some(value) => Ok(value.into()),
            None => unreadable(format!("header: \"{line}\" stands where \"{name} …\" should")),
        }
    }

    fn color(&mut self, name: &str) -> Result<Color, Error> {
        match self.field(name)?.as_str() {
            "black" => Ok(Color::Black),
            "white" => Ok(Color::White),
            other => unreadable(format!("header: {name} is \"{other}\", neither black nor white")),
        }
    }

    fn header(&mut self) -> Result<Header, Error> {
        if self.line()? != "superko certificate 1" {
            return unreadable("not a certificate of version 1: the first line is another");
        }
        let size = self.field("board")?;
        let grid = match size.split_once('x').map(|(rows, cols)| (number(rows), number(cols))) {
            Some((Some(rows @ 1..=62), Some(cols @ 1..=62))) if rows * cols <= 62 => Grid::new(rows as u32, cols as u32),
            _ => return unreadable(format!("header: the board is \"{size}\", not RxC with 1 to 62 points")),
        };
        let komi = self.field("komi")?;
        let Some(twice_komi) = twice_komi(&komi) else {
            return unreadable(format!("header: the komi is \"{komi}\", not a number that ends in .5 (of at most nine digits before)"));
        };
        let winner = self.color("winner")?;
        let to_move = self.color("to move")?;
        let passes = match self.field("passes")?.as_str() {
            "0" => 0,
            "1" => 1,
            other => return unreadable(format!("header: passes are \"{other}\", neither 0 nor 1")),
        };
        let length = self.field("history")?;
        let Some(length @ 1..) = number(&length) else {
            return unreadable(format!("header: the history's length is \"{length}\""));
        };
        // The length only counts lines; memory grows with the lines that are there.
        let mut history = Vec::new();
        let mut different = HashSet::new();
        for _ in 0..length {
            let rows = self.line()?;
            let Some(board) = board(&grid, &rows) else {
                return unreadable(format!("header: \"{rows}\" is not a {size} board"));
            };
            if !different.insert(board) {
                return unreadable(format!("header: {rows} is twice in the history"));
            }
            history.push(board);
        }
        if !self.line()?.is_empty() {
            return unreadable("header: an empty line should follow the history");
        }
        Ok(Header { grid, twice_komi, winner, to_move, passes, history })
    }

    fn mask(&mut self, grid: &Grid) -> Result<u64, Error> {
        let mut mask = 0;
        for byte in 0..grid.count().div_ceil(8) {
            mask |= u64::from(self.byte()?) << (8 * byte);
        }
        if mask & !grid.all != 0 { self.bad("a mask has points past the board") } else { Ok(mask) }
    }

    fn point(&mut self, grid: &Grid) -> Result<u32, Error> {
        let point = u32::from(self.byte()?);
        if point < grid.count() { Ok(point) } else { self.bad("a point is past the board") }
    }

    fn claim(&mut self, grid: &Grid) -> Result<Claim, Error> {
        Ok(Claim { a: self.mask(grid)?, t: self.mask(grid)? })
    }

    fn varint(&mut self) -> Result<u64, Error> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                return self.bad("a varint has more than 64 bits");
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return if byte == 0 && shift > 0 { self.bad("a varint is longer than it need be") } else { Ok(value) };
            }
        }
        self.bad("a varint has more than 64 bits")
    }

    /// A reference, or `None` for the number 0.
    fn optional_reference(&mut self, grid: &Grid) -> Result<Option<Reference>, Error> {
        let value = self.varint()?;
        let (back, symmetry) = (value >> 3, (value & 7) as u8);
        if value == 0 {
            return Ok(None);
        }
        if back == 0 {
            return self.bad("a reference is to the record itself");
        }
        if back > u64::from(self.lemmas) {
            return self.bad("a reference is to before the first lemma");
        }
        if symmetry >= grid.symmetries() {
            return self.bad("a symmetry exchanges rows and columns of a board that is not square");
        }
        Ok(Some(Reference { lemma: self.lemmas - back as u32, symmetry }))
    }

    fn reference(&mut self, grid: &Grid) -> Result<Reference, Error> {
        match self.optional_reference(grid)? {
            Some(reference) => Ok(reference),
            None => self.bad("0 stands where a reference should"),
        }
    }

    /// The next record. After [`Record::Root`] the whole input has been read.
    pub fn record(&mut self, header: &Header) -> Result<Record, Error> {
        let grid = &header.grid;
        let head = self.byte()?;
        let kind = head & 7;
        if kind == 7 {
            if head != 7 {
                return self.bad("the last record's byte is not 7");
            }
            let count = self.varint()?;
            if count != u64::from(self.lemmas) {
                return self.bad(&format!("the certificate says that it has {count} lemmas"));
            }
            let root = self.reference(grid)?;
            self.finish()?;
            return Ok(Record::Root(root));
        }
        if kind > 4 || head >> 4 > 2 {
            return self.bad(&format!("its first byte is {head}, which stands for nothing"));
        }
        if self.lemmas == MAX_LEMMAS {
            return self.bad("there are more lemmas than this checker can hold");
        }
        let board = Board { black: self.mask(grid)?, white: self.mask(grid)? };
        if board.black & board.white != 0 {
            return self.bad("a point has a black and a white stone");
        }
        let to_move = if head & 8 == 0 { Color::Black } else { Color::White };
        let step = match kind {
            0 => Step::End,
            1 => Step::Eyes(self.claim(grid)?),
            2 => {
                let mut ways = Vec::new();
                for _ in 0..self.byte()? {
                    ways.push(Way { point: self.point(grid)?, claim: self.claim(grid)? });
                }
                Step::Miai(ways)
            }
            3 => match self.byte()? {
                255 => Step::Move(None, self.reference(grid)?),
                point if u32::from(point) < grid.count() => Step::Move(Some(point.into()), self.reference(grid)?),
                _ => return self.bad("a point is past the board"),
            },
            _ => {
                let pass = self.reference(grid)?;
                let mut replies = Vec::new();
                for point in points(grid.all & !board.stones()) {
                    if let Some(created) = grid.play(board, header.winner.opponent(), point) {
                        replies.push(Reply { point, board: created, answer: self.optional_reference(grid)? });
                    }
                }
                Step::Replies(pass, replies)
            }
        };
        self.lemmas += 1;
        Ok(Record::Lemma(Position { board, to_move, passes: head >> 4 }, step))
    }
}

/// A decimal number without sign or zeros before it.
fn number(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !(text.len() > 1 && text.starts_with('0'));
    if plain && text.len() <= 9 { text.parse().ok() } else { None }
}

/// Twice the komi.
fn twice_komi(text: &str) -> Option<i64> {
    let digits = text.strip_suffix(".5")?;
    let (sign, digits) = digits.strip_prefix('-').map_or((1, digits), |rest| (-1, rest));
    Some(sign * (2 * number(digits)? as i64 + 1))
}

/// The board that rows from the top, separated by `/`, show.
fn board(grid: &Grid, text: &str) -> Option<Board> {
    let rows: Vec<&str> = text.split('/').collect();
    if rows.len() != grid.rows as usize || rows.iter().any(|row| row.len() != grid.cols as usize) {
        return None;
    }
    let mut board = Board::default();
    for (point, char) in rows.iter().rev().flat_map(|row| row.bytes()).enumerate() {
        match char {
            b'X' => board.black |= 1 << point,
            b'O' => board.white |= 1 << point,
            b'.' => {}
            _ => return None,
        }
    }
    Some(board)
}

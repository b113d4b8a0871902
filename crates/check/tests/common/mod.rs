//! Writes certificates, right and wrong ones.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::sync::atomic::{AtomicU32, Ordering};
use superko_check::{Error, Report};

pub const BLACK: u8 = 0;
pub const WHITE: u8 = 8;

/// A certificate in the making.
#[derive(Clone)]
pub struct Writer {
    pub header: String,
    pub bytes: Vec<u8>,
    pub lemmas: u64,
    cols: usize,
    mask_bytes: usize,
}

pub fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 128 {
        bytes.push(value as u8 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

pub fn header(size: &str, komi: &str, winner: &str, to_move: &str, passes: u8, history: &[&str]) -> String {
    let boards: String = history.iter().map(|rows| format!("{rows}\n")).collect();
    let length = history.len();
    format!(
        "superko certificate 1\nboard {size}\nkomi {komi}\nwinner {winner}\nto move {to_move}\npasses {passes}\nhistory {length}\n{boards}\n"
    )
}

impl Writer {
    pub fn new(header: String) -> Writer {
        let size = header.lines().nth(1).unwrap().strip_prefix("board ").unwrap();
        let (rows, cols) = size.split_once('x').unwrap();
        let cols: usize = cols.parse().unwrap();
        let mask_bytes = (rows.parse::<usize>().unwrap() * cols).div_ceil(8);
        Writer { header, bytes: Vec::new(), lemmas: 0, cols, mask_bytes }
    }

    pub fn mask(&mut self, mask: u64) -> &mut Self {
        self.bytes.extend(&mask.to_le_bytes()[..self.mask_bytes]);
        self
    }

    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend(bytes);
        self
    }

    /// The beginning of a record; `rows` as in the header.
    pub fn head(&mut self, kind: u8, color: u8, passes: u8, rows: &str) -> &mut Self {
        let (mut black, mut white) = (0, 0);
        for (r, row) in rows.split('/').rev().enumerate() {
            for (c, char) in row.bytes().enumerate() {
                black |= u64::from(char == b'X') << (r * self.cols + c);
                white |= u64::from(char == b'O') << (r * self.cols + c);
            }
        }
        self.lemmas += 1;
        self.raw(&[kind + color + 16 * passes]).mask(black).mask(white)
    }

    pub fn reference_of(&self, lemma: u64, symmetry: u64) -> Vec<u8> {
        varint(8 * (self.lemmas - 1 - lemma) + symmetry)
    }

    pub fn end(&mut self, color: u8, rows: &str) -> &mut Self {
        self.head(0, color, 2, rows)
    }

    pub fn eyes(&mut self, color: u8, passes: u8, rows: &str, a: u64, t: u64) -> &mut Self {
        self.head(1, color, passes, rows).mask(a).mask(t)
    }

    pub fn miai(&mut self, color: u8, passes: u8, rows: &str, ways: &[(u8, u64, u64)]) -> &mut Self {
        self.head(2, color, passes, rows).raw(&[ways.len() as u8]);
        for &(point, a, t) in ways {
            self.raw(&[point]).mask(a).mask(t);
        }
        self
    }

    /// A move of the winner; point 255 is the pass.
    pub fn play(&mut self, color: u8, passes: u8, rows: &str, point: u8, lemma: u64, symmetry: u64) -> &mut Self {
        self.head(3, color, passes, rows);
        let reference = self.reference_of(lemma, symmetry);
        self.raw(&[point]).raw(&reference)
    }

    /// The pass and the other replies of the loser: lemma and symmetry, or `None` for the number 0.
    pub fn replies(&mut self, color: u8, passes: u8, rows: &str, pass: u64, replies: &[Option<(u64, u64)>]) -> &mut Self {
        self.head(4, color, passes, rows);
        let reference = self.reference_of(pass, 0);
        self.raw(&reference);
        for reply in replies {
            let reference = reply.map_or(vec![0], |(lemma, symmetry)| self.reference_of(lemma, symmetry));
            self.raw(&reference);
        }
        self
    }

    /// The file, whose root is the last lemma.
    pub fn file(&self) -> Vec<u8> {
        self.file_with(&[&[7][..], &varint(self.lemmas), &[8]].concat())
    }

    pub fn file_with(&self, last: &[u8]) -> Vec<u8> {
        [self.header.as_bytes(), &self.bytes, last].concat()
    }
}

pub fn check(file: &[u8]) -> Result<Report, Error> {
    let checked = superko_check::check(file, &mut |_| {});
    // Not each time, since a thread takes longer than most of these checks.
    static CHECKS: AtomicU32 = AtomicU32::new(0);
    if CHECKS.fetch_add(1, Ordering::Relaxed).is_multiple_of(32) {
        assert_eq!(superko_check::check_in_parallel(file, &mut |_| {}), checked);
    }
    checked
}

#[track_caller]
pub fn valid(file: &[u8]) -> Report {
    check(file).unwrap_or_else(|error| panic!("refused: {error}"))
}

/// The certificate is refused at this lemma, in words that begin so and hold this.
#[track_caller]
pub fn invalid(file: &[u8], at: Option<u64>, start: &str, words: &str) {
    match check(file) {
        Err(Error::Invalid { lemma, condition, .. }) => {
            assert!(lemma == at && condition.starts_with(start) && condition.contains(words), "lemma {lemma:?}: {condition}");
        }
        other => panic!("not invalid but {other:?}"),
    }
}

#[track_caller]
pub fn unreadable(file: &[u8], words: &str) {
    match check(file) {
        Err(Error::Unreadable(what)) => assert!(what.contains(words), "{what}"),
        other => panic!("not unreadable but {other:?}"),
    }
}

//! Values of the store: a version byte, the payload, and a CRC-32 of family, key and both, so that no value is believed elsewhere
//! than where it was written.

use superko_rules::{Board, Color, Move};
use superko_search::{BoardSet, Cube, Lemma};

const VERSION: u8 = 1;

/// The checksum of a value without its last four bytes. The family's name ends in a zero byte and the key follows its length.
fn checksum(family: &str, key: &[u8], body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for part in [family.as_bytes(), &[0], &(key.len() as u32).to_be_bytes(), key, body] {
        hasher.update(part);
    }
    hasher.finalize()
}

/// Wraps a payload that is to be kept in `family` under `key`.
pub(crate) fn seal(family: &str, key: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(payload.len() + 5);
    value.push(VERSION);
    value.extend_from_slice(payload);
    let crc = checksum(family, key, &value);
    value.extend_from_slice(&crc.to_be_bytes());
    value
}

/// The payload of a value found in `family` under `key`, or what is wrong with it.
pub(crate) fn open<'a>(family: &str, key: &[u8], value: &'a [u8]) -> Result<&'a [u8], String> {
    let (body, crc) = value.split_last_chunk::<4>().ok_or("it is shorter than its checksum")?;
    if checksum(family, key, body) != u32::from_be_bytes(*crc) {
        return Err("its checksum does not agree with its key and value".to_owned());
    }
    match body.split_first() {
        Some((&VERSION, payload)) => Ok(payload),
        Some((version, _)) => Err(format!("its version is {version}, expected {VERSION}")),
        None => Err("it is empty".to_owned()),
    }
}

/// A lemma in the canonical frame, all integers big-endian; see `FORMAT.md`.
pub(crate) fn encode_lemma(lemma: &Lemma) -> Vec<u8> {
    let mut out = Vec::with_capacity(96 + 4 * lemma.created.prints().len() + 16 * lemma.excluded.len());
    out.push(u8::from(lemma.winner == Color::White));
    out.push(lemma.margin as u8);
    out.push(match lemma.best {
        None => 0,
        Some(Move::Pass) => 1,
        Some(Move::Stone(point)) => point + 2,
    });
    let cube = lemma.created.cube();
    out.push(cube.least_stones);
    for word in [lemma.cost, lemma.territory, cube.black, cube.white, cube.empty].into_iter().chain(lemma.created.bloom()) {
        out.extend_from_slice(&word.to_be_bytes());
    }
    out.extend_from_slice(&(lemma.created.prints().len() as u32).to_be_bytes());
    out.extend_from_slice(&(lemma.excluded.len() as u32).to_be_bytes());
    for print in lemma.created.prints() {
        out.extend_from_slice(&print.to_be_bytes());
    }
    for board in &lemma.excluded {
        out.extend_from_slice(&board.black.to_be_bytes());
        out.extend_from_slice(&board.white.to_be_bytes());
    }
    out
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn word(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_be_bytes)
    }
}

/// Reads what [`encode_lemma`] wrote; `None` if it is anything else.
pub(crate) fn decode_lemma(bytes: &[u8]) -> Option<Lemma> {
    let mut input = Reader(bytes);
    let [winner, margin, best, least_stones] = input.bytes()?;
    let (cost, territory) = (input.word()?, input.word()?);
    let cube = Cube { black: input.word()?, white: input.word()?, empty: input.word()?, least_stones };
    let bloom = [input.word()?, input.word()?, input.word()?, input.word()?];
    let prints = u32::from_be_bytes(input.bytes()?) as usize;
    let excluded = u32::from_be_bytes(input.bytes()?) as usize;
    if winner > 1 || input.0.len() != prints.checked_mul(4)?.checked_add(excluded.checked_mul(16)?)? {
        return None;
    }
    let prints: Vec<u32> = (0..prints).map(|_| input.bytes().map(u32::from_be_bytes)).collect::<Option<_>>()?;
    let excluded: Vec<Board> = (0..excluded).map(|_| Some(Board { black: input.word()?, white: input.word()? })).collect::<Option<_>>()?;
    let sorted = prints.is_sorted_by(|a, b| a < b) && excluded.is_sorted_by(|a, b| a < b);
    sorted.then_some(Lemma {
        winner: if winner == 1 { Color::White } else { Color::Black },
        margin: margin as i8,
        best: match best {
            0 => None,
            1 => Some(Move::Pass),
            point => Some(Move::Stone(point - 2)),
        },
        created: BoardSet::new(prints, bloom, cube),
        excluded,
        territory,
        cost,
        number: 0,
    })
}

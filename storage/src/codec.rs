//! Values of the store: a version byte, the payload, and a CRC-32 of family, key and both, so that no value is believed elsewhere
//! than where it was written.

use superko_rules::{Board, Color, Move};
use superko_search::{BoardSet, Cube, Lemma, LemmaHead, SetsHandle};

const VERSION: u8 = 1;
/// The version of a lemma whose prints are a record of their own.
const PRINTS_APART: u8 = 2;
/// Most prints that stay with their lemma. The `B` of a root has millions, and whoever only looks a position up hardly ever needs them.
const MOST_PRINTS: usize = 1024;
/// Bytes of an encoded lemma before its prints.
const FIXED: usize = 84;
/// Bytes of a filter.
const FILTER: usize = 32;
/// Offset of a lemma's identity in its encoding: everything but winner, margin, best move and cost. The key ends in a hash of it and winner
/// and margin, so that the same lemma is written to the same place.
const IDENTITY: usize = 12;
/// Bytes of that end of the key.
pub(crate) const KEY_END: usize = 6;

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
    seal_as(VERSION, family, key, payload)
}

fn seal_as(version: u8, family: &str, key: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(payload.len() + 5);
    value.push(version);
    value.extend_from_slice(payload);
    let crc = checksum(family, key, &value);
    value.extend_from_slice(&crc.to_be_bytes());
    value
}

/// The payload of a value found in `family` under `key`, or what is wrong with it.
pub(crate) fn open<'a>(family: &str, key: &[u8], value: &'a [u8]) -> Result<&'a [u8], String> {
    match open_any(family, key, value)? {
        (VERSION, payload) => Ok(payload),
        (version, _) => Err(format!("its version is {version}, expected {VERSION}")),
    }
}

/// [`open`] for every version, which comes with the payload.
fn open_any<'a>(family: &str, key: &[u8], value: &'a [u8]) -> Result<(u8, &'a [u8]), String> {
    let (body, crc) = value.split_last_chunk::<4>().ok_or("it is shorter than its checksum")?;
    if checksum(family, key, body) != u32::from_be_bytes(*crc) {
        return Err("its checksum does not agree with its key and value".to_owned());
    }
    body.split_first().map(|(version, payload)| (*version, payload)).ok_or_else(|| "it is empty".to_owned())
}

/// What is kept of a lemma.
pub(crate) struct LemmaRecord {
    /// Its key in the family `lemmas`, and in `prints`.
    pub key: Vec<u8>,
    /// Its value in the family `lemmas`.
    pub value: Vec<u8>,
    /// Its value in the family `prints`, if it has one.
    pub prints: Option<Vec<u8>>,
}

/// A lemma as it is kept about the position that `prefix` is the key of.
pub(crate) fn write_lemma(prefix: Vec<u8>, lemma: &Lemma) -> LemmaRecord {
    let payload = encode_lemma(lemma);
    let mut key = prefix;
    key.extend_from_slice(&crc32fast::hash(&payload[IDENTITY..]).to_be_bytes());
    key.extend_from_slice(&payload[..2]);
    let (fixed, rest) = payload.split_at(FIXED);
    let count = lemma.created.prints().len();
    if count <= MOST_PRINTS {
        return LemmaRecord { value: seal("lemmas", &key, &payload), key, prints: None };
    }
    let (prints, excluded) = rest.split_at(4 * count);
    let filter = lemma.created.filter().map(u64::to_be_bytes).concat();
    let value = seal_as(PRINTS_APART, "lemmas", &key, &[fixed, &filter, excluded].concat());
    LemmaRecord { value, prints: Some(seal("prints", &key, prints)), key }
}

/// Reads a lemma that [`write_lemma`] wrote; `prints` gives its value in the family `prints`, if it has one, and is asked only then.
pub(crate) fn read_lemma(key: &[u8], value: &[u8], prints: impl FnOnce() -> Option<Vec<u8>>) -> Result<Lemma, String> {
    let no_lemma = || "it is no lemma".to_owned();
    match open_any("lemmas", key, value)? {
        (PRINTS_APART, payload) => {
            let (fixed, filter, excluded) = parts(payload).ok_or_else(no_lemma)?;
            let prints = prints().ok_or("its prints are missing")?;
            let prints = open("prints", key, &prints).map_err(|reason| format!("its prints: {reason}"))?;
            let payload = [fixed, prints, excluded].concat();
            // Both were written in one step. The key's hash and the filter tell if one of them is another lemma's all the same.
            let is_whole = key.len() >= KEY_END && key[key.len() - KEY_END..][..4] == crc32fast::hash(&payload[IDENTITY..]).to_be_bytes();
            let lemma = decode_lemma(&payload).filter(|lemma| is_whole && lemma.created.filter() == filter);
            lemma.ok_or_else(|| "its prints are not those that it was written with".to_owned())
        }
        (VERSION, payload) => decode_lemma(payload).ok_or_else(no_lemma),
        (version, _) => Err(format!("its version is {version}, expected {VERSION} or {PRINTS_APART}")),
    }
}

/// Whether a record of the family `lemmas` has its prints in the family `prints`. Says nothing of the record's truth.
pub(crate) fn has_prints_apart(value: &[u8]) -> bool {
    value.first() == Some(&PRINTS_APART)
}

/// The head of a stored lemma, without reading the prints if they are apart; its handle is the end of the key. `None` for a lemma that has
/// too many excluded boards for a head.
pub(crate) fn read_head(key: &[u8], value: &[u8]) -> Result<Option<LemmaHead>, String> {
    let lemma = match open_any("lemmas", key, value)? {
        (PRINTS_APART, payload) => {
            let (fixed, filter, excluded) = parts(payload).ok_or("it is no lemma")?;
            let mut fixed = fixed.to_vec();
            fixed[COUNT..COUNT + 4].fill(0);
            let mut lemma = decode_lemma(&[&fixed, excluded].concat()).ok_or("it is no lemma")?;
            lemma.created = BoardSet::with_filter(Vec::new(), lemma.created.bloom(), *lemma.created.cube(), filter);
            lemma
        }
        _ => read_lemma(key, value, || None)?,
    };
    let end = key.last_chunk::<KEY_END>().ok_or("its key is too short")?;
    let mut handle = [0; 8];
    handle[8 - KEY_END..].copy_from_slice(end);
    let fits = lemma.excluded.len() <= u8::MAX.into();
    Ok(fits.then(|| LemmaHead::of(&lemma, SetsHandle([u64::from_be_bytes(handle), 0, 0]))))
}

/// Offset of the number of prints.
const COUNT: usize = FIXED - 8;

/// The parts of a payload without prints: what comes before them, the filter, what comes after them.
fn parts(payload: &[u8]) -> Option<(&[u8], [u64; 4], &[u8])> {
    let (fixed, rest) = payload.split_at_checked(FIXED)?;
    let (filter, excluded) = rest.split_at_checked(FILTER)?;
    let mut words = Reader(filter);
    Some((fixed, [words.word()?, words.word()?, words.word()?, words.word()?], excluded))
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
    // A recovery reads hundreds of millions of prints: not one by one with a check each.
    let (prints, boards) = input.0.split_at(4 * prints);
    let prints: Vec<u32> = prints.as_chunks().0.iter().map(|&bytes| u32::from_be_bytes(bytes)).collect();
    let words = boards.as_chunks().0.iter().map(|&bytes| u64::from_be_bytes(bytes)).collect::<Vec<_>>();
    let excluded: Vec<Board> = words.as_chunks().0.iter().map(|&[black, white]| Board { black, white }).collect();
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

//! Reads a store to its last record and changes nothing: for verification, statistics, and to look at a backup.

use crate::codec;
use crate::store::{
    CampaignRecord, CheckpointRecord, FAMILIES, JobRecord, ProofRecord, Store, StoreError, base_options, check_origin, lock_unchanged,
};
use rocksdb::{DB, IteratorMode, ReadOptions};
use std::fs::File;
use std::path::Path;

/// A record as it was found.
#[derive(Debug)]
pub struct Found<'a> {
    /// The column family.
    pub family: &'static str,
    /// Its key there; empty if the key itself could not be read.
    pub key: &'a [u8],
    /// Bytes of key and value.
    pub bytes: u64,
    /// What it says, or what is wrong with it.
    pub content: Result<Content, String>,
}

/// What a record says, as far as anyone asks.
#[derive(Debug)]
pub enum Content {
    /// A job.
    Job(JobRecord),
    /// A campaign.
    Campaign(CampaignRecord),
    /// A root result.
    Proof(ProofRecord),
    /// A lemma of this board.
    Lemma(String),
    /// A number of this board.
    Number(String),
    /// A checkpoint.
    Checkpoint(CheckpointRecord),
    /// Anything else; its checksum holds.
    Other,
}

impl Found<'_> {
    /// The record's number or name, for people.
    pub fn name(&self) -> String {
        match (self.family, <[u8; 8]>::try_from(self.key)) {
            ("jobs" | "campaigns" | "checkpoints", Ok(number)) => u64::from_be_bytes(number).to_string(),
            ("metadata", _) => String::from_utf8_lossy(self.key).into_owned(),
            _ => match split_board(self.key) {
                Some((board, rest)) => format!("{board} {}", hexadecimal(rest)),
                None => hexadecimal(self.key),
            },
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A store that is only read. While it is open no daemon starts on the data directory.
pub struct Inspector {
    db: DB,
    families: Vec<String>,
    _lock: Option<File>,
}

impl std::fmt::Debug for Inspector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inspector").field("families", &self.families).finish_non_exhaustive()
    }
}

impl Inspector {
    /// Opens the store in a data directory, or in a backup, without writing there. Refuses one that a daemon uses, and one of another program.
    pub fn open(directory: &Path) -> Result<Inspector, StoreError> {
        let lock = lock_unchanged(directory)?;
        let path = directory.join("store");
        std::fs::metadata(path.join("CURRENT")).map_err(|source| StoreError::Io { path: path.join("CURRENT"), source })?;
        let options = base_options(&path);
        check_origin(directory, &path, &options)?;
        let families = DB::list_cf(&options, &path)?;
        let db = DB::open_cf_for_read_only(&options, &path, &families, false)?;
        Ok(Inspector { db, families, _lock: lock })
    }

    /// Calls `each` with every record, family by family. Past what RocksDB itself cannot read it goes on with the next family.
    pub fn for_each(&self, each: &mut dyn FnMut(Found<'_>)) {
        for family in FAMILIES {
            let Some(handle) = self.db.cf_handle(family).filter(|_| self.families.iter().any(|name| name == family)) else { continue };
            let mut reading = ReadOptions::default();
            reading.fill_cache(false);
            reading.set_readahead_size(1 << 20);
            let mut last: Vec<u8> = Vec::new();
            for entry in self.db.iterator_cf_opt(handle, reading, IteratorMode::Start) {
                match entry {
                    Ok((key, value)) => {
                        let content = self.read(family, &key, &value);
                        each(Found { family, key: &key, bytes: (key.len() + value.len()) as u64, content });
                        last = key.into_vec();
                    }
                    Err(error) => {
                        let from =
                            if last.is_empty() { "the first record".to_owned() } else { format!("what follows {}", hexadecimal(&last)) };
                        let content = Err(format!("{from} cannot be read: {error}"));
                        each(Found { family, key: &[], bytes: 0, content });
                    }
                }
            }
        }
    }

    fn read(&self, family: &str, key: &[u8], value: &[u8]) -> Result<Content, String> {
        if family != "lemmas" {
            return codec::open(family, key, value).and_then(|payload| read(family, key, payload));
        }
        let (board, rest) = split_board(key).ok_or(NO_BOARD)?;
        if rest.len() != LEMMA_KEY {
            return Err("its key is not a board, a position, a hash, a winner and a margin".to_owned());
        }
        let prints = || self.db.cf_handle("prints").and_then(|family| self.db.get_cf(family, key).ok().flatten());
        codec::read_lemma(key, value, prints)?;
        Ok(Content::Lemma(board.to_owned()))
    }
}

const NO_BOARD: &str = "its key names no board";
/// Bytes of a lemma's key after the board.
const LEMMA_KEY: usize = 22;

fn split_board(key: &[u8]) -> Option<(&str, &[u8])> {
    let (&length, rest) = key.split_first()?;
    let (board, rest) = rest.split_at_checked(length.into())?;
    let board = std::str::from_utf8(board).ok().filter(|board| board.bytes().all(|byte| byte.is_ascii_digit() || byte == b'x'))?;
    Some((board, rest))
}

fn read(family: &str, key: &[u8], payload: &[u8]) -> Result<Content, String> {
    let board = || split_board(key).ok_or(NO_BOARD);
    let json = |error: serde_json::Error| error.to_string();
    match family {
        "jobs" => Store::parse_job(key, payload).map(Content::Job),
        "campaigns" => {
            let id = u64::from_be_bytes(key.try_into().map_err(|_| "its key is not eight bytes".to_owned())?);
            Ok(Content::Campaign(CampaignRecord { id, body: serde_json::from_slice(payload).map_err(json)? }))
        }
        "proofs" => {
            let (board, rest) = board()?;
            let job = rest.first_chunk::<8>().filter(|_| rest.len() == 12).ok_or("its key is not a board, a job and a number")?;
            let body = serde_json::from_slice(payload).map_err(json)?;
            Ok(Content::Proof(ProofRecord { board: board.to_owned(), job: u64::from_be_bytes(*job), body }))
        }
        "prints" => {
            // The lemma's own record tells whether they are the right ones.
            let (_, rest) = board()?;
            if rest.len() == LEMMA_KEY { Ok(Content::Other) } else { Err("its key is not that of a lemma".to_owned()) }
        }
        "numbers" => {
            let (board, rest) = board()?;
            if rest.len() != 8 || payload.len() != 12 {
                return Err("it is not three numbers of a position".to_owned());
            }
            Ok(Content::Number(board.to_owned()))
        }
        "checkpoints" => serde_json::from_slice(payload).map(Content::Checkpoint).map_err(json),
        _ => Ok(Content::Other),
    }
}

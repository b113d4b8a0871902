//! The durable store: RocksDB with a column family each for jobs, campaigns, proofs, lemmas, their prints, numbers, checkpoints and metadata.
//!
//! Every call blocks; async code goes through `spawn_blocking`. Acknowledged writes are synced; keys are big-endian so that
//! iteration follows their numbers.

use crate::codec;
use crate::table::MappedTable;
use rocksdb::checkpoint::Checkpoint;
use rocksdb::statistics::{StatsLevel, Ticker};
use rocksdb::{
    CStrLike, ColumnFamily, ColumnFamilyDescriptor, DB, Direction, IteratorMode, Options, ReadOptions, WriteBatch, WriteOptions, properties,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use superko_rules::Geometry;
use superko_search::{Lemma, LemmaHead, LemmaSets, Numbers, PositionKey, SetPart, Table};

pub(crate) const FAMILIES: [&str; 8] = ["jobs", "campaigns", "proofs", "lemmas", "prints", "numbers", "checkpoints", "metadata"];
const FORMAT_VERSION: u32 = 1;
/// Held by whoever uses a data directory.
pub const LOCK_FILE: &str = "LOCK.superko";
/// In `store/`: how many writes are known to have reached the disk.
const MARK_FILE: &str = "MARK.superko";
/// What a restore has copied so far lies there, in the data directory, until all of it is whole.
pub const RESTORE_PART: &str = "restore.part";
/// Lemmas are written in batches of about this many bytes, so that a checkpoint's memory is bounded.
const BATCH_BYTES: usize = 4 << 20;
/// Threads that fill a table, at most, and lemmas that one of them takes at a time.
const MOST_RESTORERS: usize = 8;
const RESTORE_BATCH: usize = 256;
/// Numbers that cost less are cheaper to find again than to keep.
const COSTLY_EXPANSIONS: u32 = 64;
/// At most so many numbers are kept, the costliest.
const MOST_NUMBERS: usize = 200_000;

/// Why the store refused.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process uses the directory.
    #[error("data directory {directory} is in use by process {holder}: stop that process or choose another directory", directory = directory.display())]
    Locked {
        /// The directory.
        directory: PathBuf,
        /// Its process id as the lock file tells.
        holder: String,
    },
    /// The directory holds something else or another version.
    #[error("data directory {directory}: its {field} is {value:?}, expected {expected:?}; nothing was changed", directory = directory.display())]
    Foreign {
        /// The directory.
        directory: PathBuf,
        /// Which metadata field disagrees.
        field: &'static str,
        /// What was found.
        value: String,
        /// What this program writes.
        expected: String,
    },
    /// A stored record is damaged.
    #[error("stored record {key} of family {family} is damaged: {reason}; restore the data directory from a backup")]
    Damaged {
        /// The column family.
        family: &'static str,
        /// The record's number or name.
        key: String,
        /// What is wrong.
        reason: String,
    },
    /// A restore of a backup did not come to its end.
    #[error(
        "data directory {directory}: a restore was cut short there (it holds {RESTORE_PART} and no store): run superko store restore again, or \
         remove {RESTORE_PART} and certificates to begin with an empty store",
        directory = directory.display()
    )]
    HalfRestored {
        /// The directory.
        directory: PathBuf,
    },
    /// The file system refused.
    #[error("data directory {path}: {source}", path = path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The free space is kept for what is acknowledged already.
    #[error(
        "the disk of {directory} is nearly full, less than {least} bytes are free (min_free): free space there; until then no jobs are taken and \
         checkpoints wait",
        directory = directory.display()
    )]
    NearlyFull {
        /// The directory.
        directory: PathBuf,
        /// Bytes that must be free.
        least: u64,
    },
    /// What is known to have been on disk is missing or damaged.
    #[error(
        "data directory {directory}: {what}; nothing was changed, restore the data directory from a backup",
        directory = directory.display()
    )]
    CutOff {
        /// The directory.
        directory: PathBuf,
        /// What is missing.
        what: String,
    },
    /// RocksDB refused.
    #[error("store: {0}{advice}", advice = advice(.0))]
    Database(#[from] rocksdb::Error),
}

/// What to do about an error of RocksDB, if anything is known to help.
fn advice(error: &rocksdb::Error) -> &'static str {
    match error.kind() {
        rocksdb::ErrorKind::Corruption => "; the store is damaged, restore the data directory from a backup",
        _ => "",
    }
}

/// A job as the daemon keeps it.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRecord {
    /// Number, ascending in order of creation.
    pub id: u64,
    /// The daemon's own record: JSON, as it is read. Thousands of them as trees of values would take gigabytes.
    pub body: String,
    /// Whether the job is still to be worked on.
    pub open: bool,
}

/// A campaign as the daemon keeps it.
#[derive(Clone, Debug, PartialEq)]
pub struct CampaignRecord {
    /// Number, ascending in order of creation.
    pub id: u64,
    /// The daemon's own record.
    pub body: serde_json::Value,
}

/// A root result.
#[derive(Clone, Debug, PartialEq)]
pub struct ProofRecord {
    /// `ROWSxCOLUMNS`.
    pub board: String,
    /// The job that proved it.
    pub job: u64,
    /// The result as the daemon reports it.
    pub body: serde_json::Value,
}

/// What a checkpoint wrote.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CheckpointReport {
    /// Number of the checkpoint.
    pub sequence: u64,
    /// Lemmas new since the one before.
    pub lemmas: u64,
    /// Numbers of unproven positions.
    pub numbers: u64,
    /// Bytes handed to RocksDB.
    pub bytes: u64,
    /// Time it took.
    pub seconds: f64,
}

/// A checkpoint as recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointRecord {
    /// Number of the checkpoint.
    pub sequence: u64,
    /// When it was completed.
    pub unix_seconds: u64,
    /// `ROWSxCOLUMNS` of the table.
    pub board: String,
    /// Lemmas new in it.
    pub lemmas: u64,
    /// Numbers kept with it.
    pub numbers: u64,
}

/// What a restore read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RestoreReport {
    /// Lemmas taken into the table.
    pub lemmas: u64,
    /// Numbers taken into the table.
    pub numbers: u64,
    /// Damaged records, not believed.
    pub refused: u64,
    /// Time it took.
    pub seconds: f64,
}

/// What RocksDB says of one family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FamilyGauges {
    /// Its name.
    pub name: &'static str,
    /// What RocksDB expects to rewrite until its levels are in order.
    pub pending_compaction_bytes: u64,
    /// Memory of what is not in files yet.
    pub memtable_bytes: u64,
    /// Files of level 0; with many of them writes are slowed down.
    pub level0_files: u64,
    /// Size of its files.
    pub file_bytes: u64,
    /// Flushes and compactions that failed.
    pub background_errors: u64,
}

/// What RocksDB says of itself; counts are since the store was opened.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreGauges {
    /// One for each family.
    pub families: Vec<FamilyGauges>,
    /// Whether writes wait for a compaction right now.
    pub writes_stopped: bool,
    /// Time that writes have waited for flushes and compactions.
    pub stalled: Duration,
    /// Bytes written to the log.
    pub log_bytes: u64,
    /// Bytes written to new files.
    pub flushed_bytes: u64,
    /// Bytes written again by compactions.
    pub compacted_bytes: u64,
    /// Blocks found in memory.
    pub cache_hits: u64,
    /// Blocks read from files.
    pub cache_misses: u64,
}

#[derive(Serialize, Deserialize)]
struct StoredJob {
    open: bool,
    body: Box<RawValue>,
}

/// The open store; holds the data directory's lock.
pub struct Store {
    db: DB,
    /// Kept for its counters.
    options: Options,
    /// Lemmas that views could not read.
    read_errors: AtomicU64,
    /// Grows with every step of checkpoints and restores.
    progress: AtomicU64,
    /// The last write failed.
    refuses_writes: AtomicBool,
    directory: PathBuf,
    /// With less space than this only what finishes acknowledged work is written.
    least_free: AtomicU64,
    /// The file that tells what is known to be on disk, and what it tells.
    mark: Mutex<(Option<File>, Mark)>,
    _lock: File,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("path", &self.db.path()).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens or creates the store in `directory`. Takes the directory's lock first and changes nothing if it cannot have it, or if
    /// the store was written under another format or other rules.
    pub fn open(directory: &Path) -> Result<Store, StoreError> {
        let io_error = |path: &Path| {
            let path = path.to_owned();
            move |source: io::Error| StoreError::Io { path, source }
        };
        std::fs::create_dir_all(directory).map_err(io_error(directory))?;
        let lock = lock_directory(directory)?;
        let path = directory.join("store");
        if directory.join(RESTORE_PART).exists() && !path.exists() {
            return Err(StoreError::HalfRestored { directory: directory.to_owned() });
        }
        let mut options = base_options(&path);
        options.set_compression_type(rocksdb::DBCompressionType::Lz4);
        options.set_max_background_jobs(2);
        options.set_keep_log_file_num(4);
        options.set_max_total_wal_size(256 << 20);
        options.enable_statistics();
        options.set_statistics_level(StatsLevel::ExceptHistogramOrTimers);
        let fresh = !path.join("CURRENT").exists() || check_origin(directory, &path, &options)?;
        options.create_if_missing(true);
        options.create_missing_column_families(true);
        let families = FAMILIES.map(|name| ColumnFamilyDescriptor::new(name, options.clone()));
        let db = DB::open_cf_descriptors(&options, &path, families)?;
        let store = Store {
            db,
            options,
            read_errors: AtomicU64::new(0),
            progress: AtomicU64::new(0),
            refuses_writes: AtomicBool::new(false),
            directory: directory.to_owned(),
            least_free: AtomicU64::new(0),
            mark: Mutex::new((None, marked(&path).unwrap_or_default())),
            _lock: lock,
        };
        if fresh {
            // In one batch: a store has all of its metadata or none.
            store.write(|batch| {
                for (field, value) in identity() {
                    batch.put_cf(store.family("metadata"), field, codec::seal("metadata", field.as_bytes(), value.as_bytes()));
                }
            })?;
        }
        store.mark()?;
        sync_directory(&path).and_then(|()| sync_directory(directory)).map_err(io_error(directory))?;
        Ok(store)
    }

    fn family(&self, name: &str) -> &ColumnFamily {
        self.db.cf_handle(name).expect("every family was opened")
    }

    /// A batch, written in one atomic step and synced to disk.
    fn write(&self, fill: impl FnOnce(&mut WriteBatch)) -> Result<(), StoreError> {
        let mut batch = WriteBatch::default();
        fill(&mut batch);
        let mut options = WriteOptions::default();
        options.set_sync(true);
        self.noted(self.db.write_opt(batch, &options))
    }

    /// Keeps so many bytes of the disk free for what is acknowledged already: with less, new jobs and checkpoints are refused. RocksDB that has met a
    /// full disk may have to be opened anew; one that is only nearly full is as good as ever when there is space again.
    pub fn keep_free(&self, bytes: u64) {
        self.least_free.store(bytes, Relaxed);
    }

    /// Fails while less space is free than is to be kept.
    pub fn check_space(&self) -> Result<(), StoreError> {
        let least = self.least_free.load(Relaxed);
        match disk_free_bytes(&self.directory) {
            Ok(free) if free < least => Err(StoreError::NearlyFull { directory: self.directory.clone(), least }),
            // If the system does not tell, the write will.
            _ => Ok(()),
        }
    }

    /// Takes note of how a write ended.
    fn noted(&self, written: Result<(), rocksdb::Error>) -> Result<(), StoreError> {
        self.refuses_writes.store(written.is_err(), Relaxed);
        Ok(written?)
    }

    /// Whether the last write failed. RocksDB keeps refusing once its log could not be written, also when there is space again; only
    /// opening it anew helps then. [`Store::try_write`] tells.
    pub fn refuses_writes(&self) -> bool {
        self.refuses_writes.load(Relaxed)
    }

    /// Writes nothing, durably: fails as any write would.
    pub fn try_write(&self) -> Result<(), StoreError> {
        self.write(|batch| batch.delete_cf(self.family("metadata"), "nothing"))
    }

    /// Syncs what has been written so far and marks how far that is, if anything was written since the last mark. To be called every now and then.
    ///
    /// After a crash the log may end in a write that was not synced and of which some sectors never reached the disk. RocksDB alone cannot tell that
    /// from damage to writes that were acknowledged. What lies before the mark is damage, and refused; what lies after it, it may drop.
    pub fn mark(&self) -> Result<(), StoreError> {
        let mut mark = self.mark.lock().unwrap_or_else(PoisonError::into_inner);
        let written = self.db.latest_sequence_number();
        let path = self.directory.join("store");
        let (manifest, manifest_bytes) = manifest(&path).map_err(|source| StoreError::Io { path: path.clone(), source })?;
        if (written, manifest, manifest_bytes) == (mark.1.written, mark.1.manifest, mark.1.manifest_bytes) {
            return Ok(());
        }
        self.db.flush_wal(true)?;
        let io_error = |source: io::Error| StoreError::Io { path: path.join(MARK_FILE), source };
        let manifest_crc = manifest_crc(&path, manifest, manifest_bytes).map_err(io_error)?;
        let next = Mark { written, manifest, manifest_bytes, manifest_crc };
        let file = match mark.0.take() {
            Some(file) => file,
            None => OpenOptions::new().write(true).create(true).truncate(false).open(path.join(MARK_FILE)).map_err(io_error)?,
        };
        // Within one sector, in place: there is the old mark or the new one.
        file.write_all_at(&next.to_bytes(), 0).and_then(|()| file.sync_data()).map_err(io_error)?;
        *mark = (Some(file), next);
        Ok(())
    }

    fn read(&self, family: &'static str, key: &[u8], name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(value) = self.db.get_cf(self.family(family), key)? else { return Ok(None) };
        match codec::open(family, key, &value) {
            Ok(payload) => Ok(Some(payload.to_vec())),
            Err(reason) => Err(StoreError::Damaged { family, key: name.to_owned(), reason }),
        }
    }

    fn put_job(&self, batch: &mut WriteBatch, record: &JobRecord) {
        let body = RawValue::from_string(record.body.clone()).expect("a record is JSON");
        let stored = StoredJob { open: record.open, body };
        let json = serde_json::to_vec(&stored).expect("a JSON value is serialisable");
        let key = record.id.to_be_bytes();
        batch.put_cf(self.family("jobs"), key, codec::seal("jobs", &key, &json));
    }

    /// Keeps or replaces records of jobs and campaigns, and root results of one job, in one atomic step; on return all is on disk.
    pub fn put(&self, jobs: &[JobRecord], proofs: &[ProofRecord], campaigns: &[CampaignRecord]) -> Result<(), StoreError> {
        self.write(|batch| {
            for record in jobs {
                self.put_job(batch, record);
            }
            for (index, proof) in proofs.iter().enumerate() {
                let json = serde_json::to_vec(&proof.body).expect("a JSON value is serialisable");
                let mut key = board_prefix(&proof.board);
                key.extend_from_slice(&proof.job.to_be_bytes());
                key.extend_from_slice(&(index as u32).to_be_bytes());
                batch.put_cf(self.family("proofs"), &key, codec::seal("proofs", &key, &json));
            }
            for record in campaigns {
                let json = serde_json::to_vec(&record.body).expect("a JSON value is serialisable");
                let key = record.id.to_be_bytes();
                batch.put_cf(self.family("campaigns"), key, codec::seal("campaigns", &key, &json));
            }
        })
    }

    /// All campaigns, by number.
    pub fn campaigns(&self) -> Result<Vec<CampaignRecord>, StoreError> {
        let mut campaigns = Vec::new();
        for entry in self.db.iterator_cf(self.family("campaigns"), IteratorMode::Start) {
            let (key, value) = entry?;
            let parse = |payload: &[u8]| {
                let id = u64::from_be_bytes(key.as_ref().try_into().map_err(|_| "its key is not eight bytes".to_owned())?);
                Ok(CampaignRecord { id, body: serde_json::from_slice(payload).map_err(|error| error.to_string())? })
            };
            let damaged = |reason| StoreError::Damaged { family: "campaigns", key: format!("{key:x?}"), reason };
            campaigns.push(codec::open("campaigns", &key, &value).and_then(parse).map_err(damaged)?);
        }
        Ok(campaigns)
    }

    pub(crate) fn parse_job(key: &[u8], payload: &[u8]) -> Result<JobRecord, String> {
        let id = u64::from_be_bytes(key.try_into().map_err(|_| "its key is not eight bytes".to_owned())?);
        let StoredJob { open, body } = serde_json::from_slice(payload).map_err(|error| error.to_string())?;
        Ok(JobRecord { id, body: body.get().to_owned(), open })
    }

    /// One job.
    pub fn job(&self, id: u64) -> Result<Option<JobRecord>, StoreError> {
        let key = id.to_be_bytes();
        let Some(payload) = self.read("jobs", &key, &id.to_string())? else { return Ok(None) };
        let damaged = |reason| StoreError::Damaged { family: "jobs", key: id.to_string(), reason };
        Self::parse_job(&key, &payload).map(Some).map_err(damaged)
    }

    /// All jobs, by number.
    pub fn jobs(&self) -> Result<Vec<JobRecord>, StoreError> {
        let mut jobs = Vec::new();
        for entry in self.db.iterator_cf(self.family("jobs"), IteratorMode::Start) {
            let (key, value) = entry?;
            let name = key.as_ref().try_into().map_or(format!("{key:x?}"), |id| u64::from_be_bytes(id).to_string());
            let job = codec::open("jobs", &key, &value).and_then(|payload| Self::parse_job(&key, payload));
            jobs.push(job.map_err(|reason| StoreError::Damaged { family: "jobs", key: name, reason })?);
        }
        Ok(jobs)
    }

    /// Root results for one board, by job.
    pub fn proofs(&self, board: &str) -> Result<Vec<ProofRecord>, StoreError> {
        let prefix = board_prefix(board);
        let mut proofs = Vec::new();
        for entry in self.db.iterator_cf(self.family("proofs"), IteratorMode::From(&prefix, Direction::Forward)) {
            let (key, value) = entry?;
            let Some(rest) = key.strip_prefix(prefix.as_slice()) else { break };
            let damaged = |reason| StoreError::Damaged { family: "proofs", key: format!("{board} {rest:x?}"), reason };
            let payload = codec::open("proofs", &key, &value).map_err(damaged)?;
            let job = rest.first_chunk::<8>().map(|job| u64::from_be_bytes(*job)).ok_or_else(|| damaged("its key is short".to_owned()))?;
            let body = serde_json::from_slice(payload).map_err(|error| damaged(error.to_string()))?;
            proofs.push(ProofRecord { board: board.to_owned(), job, body });
        }
        Ok(proofs)
    }

    /// Copies what the table has proven since the last checkpoint, then records progress; see [`Store::begin_checkpoint`].
    pub fn checkpoint(&self, table: &MappedTable, jobs: &[JobRecord]) -> Result<CheckpointReport, StoreError> {
        self.begin_checkpoint(table)?.commit(jobs)
    }

    /// The long part of a checkpoint: copies what the table has proven since the last one.
    ///
    /// Lemmas go first, in bounded batches: a lemma is true wherever it is, so a part of them does no harm. The jobs' progress, the
    /// costly numbers and the checkpoint's own record follow with [`PendingCheckpoint::commit`] in one synced batch, so that no
    /// progress is ever on record without the lemmas it rests on. Searching threads are never stopped. If it fails or is never
    /// committed, every lemma stays due.
    pub fn begin_checkpoint<'a>(&'a self, table: &'a MappedTable) -> Result<PendingCheckpoint<'a>, StoreError> {
        let started = Instant::now();
        self.check_space()?;
        self.progress.fetch_add(1, Relaxed);
        let geometry = table.geometry();
        let sequence = self.last_checkpoint()?.map_or(1, |record| record.sequence + 1);
        let mut pending = PendingCheckpoint {
            store: self,
            table,
            batch: WriteBatch::default(),
            sequence,
            lemmas: 0,
            numbers: 0,
            bytes: 0,
            started,
            committed: false,
        };
        let (lemmas, prints) = (self.family("lemmas"), self.family("prints"));
        table.visit_dirty(|key, lemma| {
            let record = codec::write_lemma(position_prefix(geometry, key), &lemma);
            // In one batch, so that neither is ever there without the other.
            pending.batch.put_cf(lemmas, &record.key, &record.value);
            if let Some(value) = &record.prints {
                pending.batch.put_cf(prints, &record.key, value);
            }
            pending.lemmas += 1;
            self.progress.fetch_add(1, Relaxed);
            if pending.batch.size_in_bytes() >= BATCH_BYTES {
                pending.bytes += pending.batch.size_in_bytes() as u64;
                self.check_space()?;
                self.noted(self.db.write(std::mem::take(&mut pending.batch)))?;
            }
            Ok::<(), StoreError>(())
        })?;
        let numbers = table.costly_numbers(COSTLY_EXPANSIONS, MOST_NUMBERS);
        let prefix = board_prefix(&geometry.name());
        let mut end = prefix.clone();
        *end.last_mut().expect("a prefix is not empty") += 1;
        let numbers_family = self.family("numbers");
        pending.batch.delete_range_cf(numbers_family, prefix.as_slice(), end.as_slice());
        for (key, numbers) in &numbers {
            let mut full_key = prefix.clone();
            full_key.extend_from_slice(&key.to_be_bytes());
            let words = [numbers.phi, numbers.delta, numbers.cost].map(u32::to_be_bytes).concat();
            pending.batch.put_cf(numbers_family, &full_key, codec::seal("numbers", &full_key, &words));
        }
        pending.numbers = numbers.len() as u64;
        Ok(pending)
    }

    /// The newest checkpoint.
    pub fn last_checkpoint(&self) -> Result<Option<CheckpointRecord>, StoreError> {
        let Some(entry) = self.db.iterator_cf(self.family("checkpoints"), IteratorMode::End).next() else { return Ok(None) };
        let (key, value) = entry?;
        let damaged = |reason| StoreError::Damaged { family: "checkpoints", key: format!("{key:x?}"), reason };
        let payload = codec::open("checkpoints", &key, &value).map_err(damaged)?;
        serde_json::from_slice(payload).map(Some).map_err(|error| damaged(error.to_string()))
    }

    /// Loads every stored lemma and number of the table's board into it. Damaged records are counted, never believed.
    pub fn restore(&self, table: &MappedTable) -> Result<RestoreReport, StoreError> {
        let started = Instant::now();
        let mut report = RestoreReport::default();
        let prefix = board_prefix(&table.geometry().name());
        (report.lemmas, report.refused) = self.restore_lemmas(table, &prefix)?;
        for entry in self.db.iterator_cf(self.family("numbers"), IteratorMode::From(&prefix, Direction::Forward)) {
            let (key, value) = entry?;
            let Some(rest) = key.strip_prefix(prefix.as_slice()) else { break };
            let words = codec::open("numbers", &key, &value).ok().and_then(|payload| <[u8; 12]>::try_from(payload).ok());
            match (<[u8; 8]>::try_from(rest), words) {
                (Ok(key), Some(words)) => {
                    let word = |at: usize| u32::from_be_bytes([words[at], words[at + 1], words[at + 2], words[at + 3]]);
                    table.store_numbers(u64::from_be_bytes(key), Numbers { phi: word(0), delta: word(4), cost: word(8) });
                    report.numbers += 1;
                }
                _ => report.refused += 1,
            }
        }
        report.seconds = started.elapsed().as_secs_f64();
        Ok(report)
    }

    /// The lemmas of [`Store::restore`]: this thread reads, others decode and store, which takes most of the time. How many were taken in, and how many
    /// refused.
    fn restore_lemmas(&self, table: &MappedTable, prefix: &[u8]) -> Result<(u64, u64), StoreError> {
        let workers = std::thread::available_parallelism().map_or(1, |threads| threads.get().min(MOST_RESTORERS));
        let (lemmas, refused) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let (send, receive) = sync_channel::<Vec<StoredLemma>>(2 * workers);
            let receive = Arc::new(Mutex::new(receive));
            for _ in 0..workers {
                let receive = receive.clone();
                let (lemmas, refused) = (&lemmas, &refused);
                scope.spawn(move || {
                    // The lock is held only to take a batch.
                    let next = || receive.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    while let Ok(batch) = next() {
                        for stored in batch {
                            match stored.read(prefix.len()) {
                                Some((position, lemma)) => {
                                    table.restore_lemma(position, &lemma);
                                    lemmas.fetch_add(1, Relaxed);
                                }
                                None => drop(refused.fetch_add(1, Relaxed)),
                            }
                        }
                    }
                });
            }
            // Only the workers hold it now: if all of them have panicked, sending fails.
            drop(receive);
            let mut batch = Vec::with_capacity(RESTORE_BATCH);
            for stored in self.stored_lemmas(prefix) {
                self.progress.fetch_add(1, Relaxed);
                batch.push(stored?);
                if batch.len() == RESTORE_BATCH && send.send(std::mem::replace(&mut batch, Vec::with_capacity(RESTORE_BATCH))).is_err() {
                    break;
                }
            }
            // An error means that all workers have panicked, which the end of the scope passes on.
            let _ = send.send(batch);
            Ok::<(), StoreError>(())
        })?;
        Ok((lemmas.into_inner(), refused.into_inner()))
    }

    /// The lemmas whose keys begin with `prefix`, unread.
    fn stored_lemmas(&self, prefix: &[u8]) -> impl Iterator<Item = Result<StoredLemma, rocksdb::Error>> + use<'_> {
        let entries = |family| {
            let mut reading = ReadOptions::default();
            reading.set_readahead_size(1 << 20);
            self.db.iterator_cf_opt(self.family(family), reading, IteratorMode::From(prefix, Direction::Forward))
        };
        let lemmas = entries("lemmas");
        // Begun after the lemmas, so that the prints of each are among them; both are in the order of their keys.
        let mut prints = entries("prints").peekable();
        let prefix = prefix.to_owned();
        let within = move |entry: &Result<(Box<[u8]>, _), _>| entry.as_ref().map_or(true, |(key, _)| key.starts_with(&prefix));
        lemmas.take_while(within).map(move |entry| {
            let (key, value) = entry?;
            let mut own = None;
            if codec::has_prints_apart(&value) {
                while let Some(entry) = prints.next_if(|entry| entry.as_ref().map_or(true, |(other, _)| other <= &key)) {
                    let (other, value) = entry?;
                    own = (other == key).then_some(value);
                }
            }
            Ok(StoredLemma { key, value, prints: own })
        })
    }

    /// Grows with every record that a checkpoint or a restore handles: while one of them goes on, it changes.
    pub fn progress(&self) -> u64 {
        self.progress.load(Relaxed)
    }

    /// A number that RocksDB keeps of a family; 0 for what it does not know.
    fn property(&self, family: &ColumnFamily, name: impl CStrLike) -> u64 {
        self.db.property_int_value_cf(family, name).ok().flatten().unwrap_or(0)
    }

    /// What RocksDB says of itself. Reads memory only, so that every scrape may ask.
    pub fn gauges(&self) -> StoreGauges {
        let families = FAMILIES.map(|name| {
            let family = self.family(name);
            FamilyGauges {
                name,
                pending_compaction_bytes: self.property(family, properties::ESTIMATE_PENDING_COMPACTION_BYTES),
                memtable_bytes: self.property(family, properties::CUR_SIZE_ALL_MEM_TABLES),
                level0_files: self.property(family, properties::num_files_at_level(0)),
                file_bytes: self.property(family, properties::LIVE_SST_FILES_SIZE),
                background_errors: self.property(family, properties::BACKGROUND_ERRORS),
            }
        });
        let counted = |ticker| self.options.get_ticker_count(ticker);
        StoreGauges {
            families: families.into(),
            writes_stopped: self.property(self.family("metadata"), properties::IS_WRITE_STOPPED) != 0,
            stalled: Duration::from_micros(counted(Ticker::StallMicros)),
            log_bytes: counted(Ticker::WalFileBytes),
            flushed_bytes: counted(Ticker::FlushWriteBytes),
            compacted_bytes: counted(Ticker::CompactWriteBytes),
            cache_hits: counted(Ticker::BlockCacheHit),
            cache_misses: counted(Ticker::BlockCacheMiss),
        }
    }

    /// Lemmas that views could not read since the store was opened, because RocksDB failed or a record is damaged.
    pub fn read_errors(&self) -> u64 {
        self.read_errors.load(Relaxed)
    }

    /// The stored lemmas of one board as a table that takes nothing in.
    pub fn lemma_view(&self, geometry: &'static Geometry) -> StoreTable<'_> {
        StoreTable { store: self, geometry }
    }

    /// Calls `each` with every stored lemma of one board. Returns how many records were damaged and left out.
    pub fn for_each_lemma(&self, geometry: &Geometry, each: &mut dyn FnMut(PositionKey, &Lemma)) -> Result<u64, StoreError> {
        let prefix = board_prefix(&geometry.name());
        let mut damaged = 0;
        for stored in self.stored_lemmas(&prefix) {
            match stored?.read(prefix.len()) {
                Some((position, lemma)) => each(position, &lemma),
                None => damaged += 1,
            }
        }
        Ok(damaged)
    }

    /// Writes the database as it is now into a new directory: a database of its own, of all that was acknowledged before the call. On the same
    /// file system its files share their blocks with the store's (hard links; the store never writes to one again), else they are copies.
    pub fn copy_to(&self, directory: &Path) -> Result<(), StoreError> {
        self.check_space()?;
        Ok(Checkpoint::new(&self.db)?.create_checkpoint(directory)?)
    }

    /// Ends background work and closes the database. Dropping without it is safe for the data.
    pub fn close(self) -> Result<(), StoreError> {
        self.db.flush_wal(true)?;
        self.mark()?;
        self.db.cancel_all_background_work(true);
        Ok(())
    }
}

/// A checkpoint whose lemmas are on their way, before its last, deciding step.
pub struct PendingCheckpoint<'a> {
    store: &'a Store,
    table: &'a MappedTable,
    batch: WriteBatch,
    sequence: u64,
    lemmas: u64,
    numbers: u64,
    bytes: u64,
    started: Instant,
    committed: bool,
}

impl std::fmt::Debug for PendingCheckpoint<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingCheckpoint").field("sequence", &self.sequence).finish_non_exhaustive()
    }
}

impl PendingCheckpoint<'_> {
    /// Records the jobs' progress, the numbers and the checkpoint itself in one synced step.
    pub fn commit(mut self, jobs: &[JobRecord]) -> Result<CheckpointReport, StoreError> {
        let PendingCheckpoint { store, sequence, lemmas, numbers, started, .. } = self;
        let mut batch = std::mem::take(&mut self.batch);
        for job in jobs {
            store.put_job(&mut batch, job);
        }
        let unix_seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs());
        let record = CheckpointRecord { sequence, unix_seconds, board: self.table.geometry().name(), lemmas, numbers };
        let json = serde_json::to_vec(&record).expect("plain fields are serialisable");
        let key = sequence.to_be_bytes();
        batch.put_cf(store.family("checkpoints"), key, codec::seal("checkpoints", &key, &json));
        let bytes = self.bytes + batch.size_in_bytes() as u64;
        let mut options = WriteOptions::default();
        options.set_sync(true);
        store.noted(store.db.write_opt(batch, &options))?;
        store.progress.fetch_add(1, Relaxed);
        self.committed = true;
        // The checkpoint is made, whatever comes of the mark; the next one tells.
        let _ = store.mark();
        Ok(CheckpointReport { sequence, lemmas, numbers, bytes, seconds: started.elapsed().as_secs_f64() })
    }
}

impl Drop for PendingCheckpoint<'_> {
    fn drop(&mut self) {
        if !self.committed {
            // Which of the lemmas have reached the disk is not known.
            self.table.mark_all_dirty();
        }
    }
}

/// A lemma as its records say.
struct StoredLemma {
    key: Box<[u8]>,
    value: Box<[u8]>,
    prints: Option<Box<[u8]>>,
}

impl StoredLemma {
    /// The position and the lemma, unless they are damaged; the board's name takes `prefix` bytes of the key.
    fn read(self, prefix: usize) -> Option<(PositionKey, Lemma)> {
        let position = self.key.get(prefix..)?.first_chunk::<16>()?;
        let lemma = codec::read_lemma(&self.key, &self.value, || self.prints.map(Vec::from)).ok()?;
        Some((PositionKey::from_be_bytes(*position), lemma))
    }
}

/// A length byte, then the name, so that no name is a prefix of another's.
fn board_prefix(board: &str) -> Vec<u8> {
    let mut prefix = vec![board.len() as u8];
    prefix.extend_from_slice(board.as_bytes());
    prefix
}

fn position_prefix(geometry: &Geometry, key: PositionKey) -> Vec<u8> {
    let mut prefix = board_prefix(&geometry.name());
    prefix.extend_from_slice(&key.to_be_bytes());
    prefix
}

/// What the metadata family says of a store that this program may use.
fn identity() -> [(&'static str, String); 2] {
    [("format version", FORMAT_VERSION.to_string()), ("rules", crate::RULES_TEXT.to_owned())]
}

/// How the database at `path` is opened, to write or to read only.
pub(crate) fn base_options(path: &Path) -> Options {
    let mut options = Options::default();
    options.set_paranoid_checks(true);
    // The log ends where it does not read on, which must not be before the mark; see `check_origin`. Without a mark it may end in a write that a crash
    // cut short, and damage before its end is an error, not a silent loss of what follows.
    options.set_wal_recovery_mode(match marked(path) {
        Some(_) => rocksdb::DBRecoveryMode::PointInTime,
        None => rocksdb::DBRecoveryMode::TolerateCorruptedTailRecords,
    });
    options
}

/// What is known to be on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Mark {
    /// RocksDB's number of the last write.
    written: u64,
    /// Number, length and checksum of the manifest: cut short, it would be a valid one of an earlier time.
    manifest: u64,
    manifest_bytes: u64,
    manifest_crc: u32,
}

impl Mark {
    fn to_bytes(self) -> Vec<u8> {
        let words = [self.written, self.manifest, self.manifest_bytes].map(u64::to_be_bytes).concat();
        let body = [words, self.manifest_crc.to_be_bytes().to_vec()].concat();
        let crc = crc32fast::hash(&body);
        [body, crc.to_be_bytes().to_vec()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Mark> {
        let word = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_be_bytes);
        let manifest_crc = u32::from_be_bytes(bytes.get(24..28)?.try_into().ok()?);
        let mark = Mark { written: word(0)?, manifest: word(8)?, manifest_bytes: word(16)?, manifest_crc };
        (mark.to_bytes() == bytes).then_some(mark)
    }
}

/// The mark of the database at `path`; `None` in a backup, in a store of version 0.1.0, or where it is damaged itself.
fn marked(path: &Path) -> Option<Mark> {
    Mark::from_bytes(&std::fs::read(path.join(MARK_FILE)).ok()?)
}

/// Number and length of the manifest in use.
fn manifest(path: &Path) -> io::Result<(u64, u64)> {
    let current = std::fs::read_to_string(path.join("CURRENT"))?;
    let number = current.trim_end().strip_prefix("MANIFEST-").and_then(|number| number.parse().ok());
    let number = number.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "CURRENT names no manifest"))?;
    Ok((number, std::fs::metadata(path.join(format!("MANIFEST-{number:06}")))?.len()))
}

fn manifest_crc(path: &Path, number: u64, bytes: u64) -> io::Result<u32> {
    let mut content = Vec::new();
    File::open(path.join(format!("MANIFEST-{number:06}")))?.take(bytes).read_to_end(&mut content)?;
    Ok(crc32fast::hash(&content))
}

/// Refuses a database whose manifest is not, as far as the mark goes, what it was.
fn check_manifest(directory: &Path, path: &Path, mark: &Mark) -> Result<(), StoreError> {
    let io_error = |source| StoreError::Io { path: path.join("CURRENT"), source };
    let (number, bytes) = manifest(path).map_err(io_error)?;
    // An opening that a crash cut short may have begun another manifest.
    let is_same = number != mark.manifest
        || bytes >= mark.manifest_bytes && manifest_crc(path, number, mark.manifest_bytes).map_err(io_error)? == mark.manifest_crc;
    let what = format!("the manifest of its store, MANIFEST-{number:06}, is damaged or cut off");
    if is_same { Ok(()) } else { Err(StoreError::CutOff { directory: directory.to_owned(), what }) }
}

/// Looks at an existing database without changing it: an error if it is not ours, `true` if it never held anything (its creation
/// was cut short).
pub(crate) fn check_origin(directory: &Path, path: &Path, options: &Options) -> Result<bool, StoreError> {
    let foreign = |field, value, expected| StoreError::Foreign { directory: directory.to_owned(), field, value, expected };
    if let Some(mark) = marked(path) {
        check_manifest(directory, path, &mark)?;
    }
    let found = DB::list_cf(options, path)?;
    if let Some(other) = found.iter().find(|name| *name != "default" && !FAMILIES.contains(&name.as_str())) {
        return Err(foreign("column family", other.clone(), FAMILIES.join(", ")));
    }
    let db = DB::open_cf_for_read_only(options, path, &found, false)?;
    if let Some(mark) = marked(path) {
        let (found, marked) = (db.latest_sequence_number(), mark.written);
        if found < marked {
            let what = format!("its store ends at write {found}, but {marked} writes had reached the disk: its log is damaged or cut off");
            return Err(StoreError::CutOff { directory: directory.to_owned(), what });
        }
    }
    let mut complete = true;
    for (field, expected) in identity() {
        let Some(family) = db.cf_handle("metadata") else {
            complete = false;
            break;
        };
        match db.get_cf(family, field)? {
            Some(value) => {
                let damaged = |reason| StoreError::Damaged { family: "metadata", key: field.to_owned(), reason };
                let value = String::from_utf8_lossy(codec::open("metadata", field.as_bytes(), &value).map_err(damaged)?).into_owned();
                if value != expected {
                    return Err(foreign(field, value, expected));
                }
            }
            None => complete = false,
        }
    }
    if complete {
        return Ok(false);
    }
    for name in found.iter().filter(|name| *name != "metadata") {
        let family = db.cf_handle(name).expect("every listed family was opened");
        if let Some(entry) = db.iterator_cf(family, IteratorMode::Start).next() {
            entry?;
            return Err(foreign("metadata", "missing".to_owned(), format!("{:?}", identity())));
        }
    }
    Ok(true)
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Tries for the lock after the first, 50 ms apart.
const LOCK_TRIES: u32 = 10;

/// Takes the lock of a data directory; it is free again when the file is dropped.
pub fn lock_directory(directory: &Path) -> Result<File, StoreError> {
    let path = directory.join(LOCK_FILE);
    let io_error = |source: io::Error| StoreError::Io { path: path.clone(), source };
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(io_error)?;
    take_lock(directory, &mut file)?;
    file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(io_error)?;
    Ok(file)
}

/// Keeps a process from using the directory while the file is not dropped, without leaving a trace there; `None` if no process ever used it.
pub(crate) fn lock_unchanged(directory: &Path) -> Result<Option<File>, StoreError> {
    let path = directory.join(LOCK_FILE);
    match File::open(&path) {
        Ok(mut file) => take_lock(directory, &mut file).map(|()| Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(StoreError::Io { path, source }),
    }
}

fn take_lock(directory: &Path, file: &mut File) -> Result<(), StoreError> {
    let io_error = |source: io::Error| StoreError::Io { path: directory.join(LOCK_FILE), source };
    let try_lock = || rustix::fs::flock(&*file, rustix::fs::FlockOperation::NonBlockingLockExclusive);
    // A holder that is just ending, or a process forked from it that has not yet started its own program, needs a moment.
    let mut locked = try_lock();
    for _ in 0..LOCK_TRIES {
        if locked != Err(rustix::io::Errno::WOULDBLOCK) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
        locked = try_lock();
    }
    match locked {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let mut holder = String::new();
            file.read_to_string(&mut holder).map_err(io_error)?;
            let holder = if holder.trim().is_empty() { "unknown".to_owned() } else { holder.trim().to_owned() };
            Err(StoreError::Locked { directory: directory.to_owned(), holder })
        }
        Err(error) => Err(io_error(error.into())),
    }
}

/// Free bytes of the file system that holds `path`.
pub fn disk_free_bytes(path: &Path) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(path)?;
    Ok(stat.f_bavail * stat.f_frsize)
}

/// Read-only view of one board's stored lemmas.
#[derive(Debug)]
pub struct StoreTable<'a> {
    store: &'a Store,
    geometry: &'static Geometry,
}

impl StoreTable<'_> {
    /// What was read, or `None` with a note of it if it could not be.
    fn noted<T, E>(&self, read: Result<T, E>) -> Option<T> {
        if read.is_err() {
            self.store.read_errors.fetch_add(1, Relaxed);
        }
        read.ok()
    }
}

impl Table for StoreTable<'_> {
    /// What cannot be read is counted and left out.
    fn lemmas(&self, key: PositionKey, heads: &mut Vec<LemmaHead>) {
        let prefix = position_prefix(self.geometry, key);
        let entries = self.store.db.iterator_cf(self.store.family("lemmas"), IteratorMode::From(&prefix, Direction::Forward));
        let of_position = entries.take_while(|entry| entry.as_ref().map_or(true, |(key, _)| key.starts_with(&prefix)));
        heads.extend(of_position.filter_map(|entry| {
            let (key, value) = self.noted(entry)?;
            self.noted(codec::read_head(&key, &value))?
        }));
    }

    fn sets(&self, key: PositionKey, head: &LemmaHead, sets: &mut LemmaSets) -> bool {
        let mut full_key = position_prefix(self.geometry, key);
        full_key.extend_from_slice(&head.sets.0[0].to_be_bytes()[8 - codec::KEY_END..]);
        let get = |family| self.store.db.get_cf(self.store.family(family), &full_key);
        let Some(value) = self.noted(get("lemmas")).flatten() else { return false };
        let lemma = self.noted(codec::read_lemma(&full_key, &value, || self.noted(get("prints")).flatten()));
        // The handle finds the record, the head's fixed part confirms it: a hash alone must not pair a lemma with another's sets.
        let Some(lemma) = lemma.filter(|lemma| LemmaHead::of(lemma, head.sets) == *head) else { return false };
        *sets = LemmaSets {
            prints: lemma.created.prints().to_vec(),
            bloom: lemma.created.bloom(),
            excluded: lemma.excluded,
            parts: Vec::new(),
        };
        true
    }

    fn store_lemma(&self, _: PositionKey, _: &Lemma) -> Vec<SetPart> {
        Vec::new()
    }

    fn numbers(&self, _: u64) -> Option<Numbers> {
        None
    }

    fn store_numbers(&self, _: u64, _: Numbers) {}

    fn geometry(&self) -> &'static Geometry {
        self.geometry
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;

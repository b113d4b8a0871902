//! Backups of a data directory, their way back, and the check that a store is whole.
//!
//! A backup is a data directory of its own (`store/`, `certificates/`) with a list of its files and their SHA-256. It gets its name when all of
//! it is on disk. The mapped table is left out: it is filled from the store.

use crate::campaigns::Campaign;
use crate::certificate::{open_plain, sha256};
use crate::jobs::{Job, State};
use crate::proofs::ProofId;
use crate::report::{SolveReport, counter};
use crate::units::now_rfc3339;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;
use superko_storage::{Content, Inspector, LOCK_FILE, RESTORE_PART, Store, StoreError, lock_directory};

/// The list of a backup's files.
const LIST: &str = "BACKUP.json";
const LIST_VERSION: u32 = 1;
/// In the data directory: what `POST /v1/admin/backup` makes.
const BACKUPS: &str = "backups";
const CERTIFICATES: &str = "certificates";
/// So many damaged records or files are named.
const MOST_NAMED: usize = 20;

/// Why there is no backup, or no restored directory.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// Something is in the way, or is not what it should be; nothing was changed.
    #[error("{path}: {reason}", path = path.display())]
    Refused {
        /// What.
        path: PathBuf,
        /// What was expected, and what to do.
        reason: String,
    },
    /// Another backup is under way.
    #[error("another backup is being made: try again later")]
    Busy,
    /// The file system refused; what had been written is gone again.
    #[error("{path}: {error}", path = path.display())]
    Io {
        /// What could not be read or written.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn refused(path: &Path, reason: impl Into<String>) -> BackupError {
    BackupError::Refused { path: path.to_owned(), reason: reason.into() }
}

/// Names the path in an error of the system.
fn at<T>(path: &Path, done: io::Result<T>) -> Result<T, BackupError> {
    done.map_err(|error| BackupError::Io { path: path.to_owned(), error })
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Listed {
    /// Relative to the backup.
    path: String,
    bytes: u64,
    sha256: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct List {
    version: u32,
    created_at: String,
    program: String,
    damaged: u64,
    files: Vec<Listed>,
}

/// What was backed up or restored.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct BackupReport {
    /// Where it lies.
    #[schema(value_type = String)]
    pub directory: PathBuf,
    /// When the backup was made, RFC 3339.
    pub created_at: String,
    /// Files.
    pub files: u64,
    /// Their bytes.
    #[serde(with = "counter")]
    #[schema(value_type = crate::schema::Counter)]
    pub bytes: u64,
    /// What was found in it when it was read once more.
    pub verification: Verification,
    /// Time it took.
    pub elapsed_seconds: f64,
}

/// What a verification found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Verification {
    /// Records read, by family.
    pub records: BTreeMap<&'static str, u64>,
    /// Certificate files that were compared with the record of their proof, and other files with the list of a backup.
    pub files: u64,
    /// Records and files that are not what they should be, or are not there.
    pub damaged: u64,
    /// The first of them, each with what is wrong.
    pub first_damaged: Vec<String>,
}

impl Verification {
    fn damage(&mut self, what: impl std::fmt::Display, reason: impl std::fmt::Display) {
        self.damaged += 1;
        if self.first_damaged.len() < MOST_NAMED {
            self.first_damaged.push(format!("{what}: {reason}"));
        }
    }
}

/// What a store holds.
#[derive(Debug, Default, Serialize)]
pub struct Statistics {
    /// Records and their bytes, by family.
    pub families: BTreeMap<&'static str, Size>,
    /// Lemmas by board.
    pub lemmas: BTreeMap<String, u64>,
    /// Numbers by board.
    pub numbers: BTreeMap<String, u64>,
    /// Jobs by state.
    pub jobs: BTreeMap<String, u64>,
    /// Sequence and time of the last checkpoint.
    pub last_checkpoint: Option<superko_storage::CheckpointRecord>,
    /// Files of each directory, on disk.
    pub directories: BTreeMap<&'static str, Size>,
    /// Records that are damaged.
    pub damaged: u64,
}

/// Of a job's record, where it stands.
#[derive(Deserialize)]
struct Stated {
    state: String,
}

/// How many, and how large together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Size {
    /// How many.
    pub count: u64,
    /// Bytes.
    #[serde(with = "counter")]
    pub bytes: u64,
}

/// A directory that is removed again unless it is kept.
struct Part(PathBuf);

impl Drop for Part {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// One backup at a time.
pub fn begin() -> Result<MutexGuard<'static, ()>, BackupError> {
    static RUNNING: Mutex<()> = Mutex::new(());
    match RUNNING.try_lock() {
        Ok(guard) => Ok(guard),
        Err(TryLockError::WouldBlock) => Err(BackupError::Busy),
        // A backup that panicked has left nothing under its name.
        Err(TryLockError::Poisoned(poisoned)) => Ok(PoisonError::into_inner(poisoned)),
    }
}

/// Where the daemon writes the backup of this name; the error says what is wrong with the name.
pub fn place(data_dir: &Path, name: &str) -> Result<PathBuf, String> {
    let is_plain = |symbol: char| symbol.is_ascii_alphanumeric() || matches!(symbol, '-' | '_' | '.');
    let is_good = (1..=64).contains(&name.len()) && name.chars().all(is_plain) && !name.starts_with('.') && !name.ends_with(".part");
    if !is_good {
        return Err(format!(
            "name {name:?} is not valid: expected 1 to 64 letters, digits, '-', '_' and '.', not '.' first and not .part at the end"
        ));
    }
    Ok(data_dir.join(BACKUPS).join(name))
}

/// Removes what a crash left of backups. Called before any is made.
pub fn remove_parts(data_dir: &Path) {
    let Ok(entries) = std::fs::read_dir(data_dir.join(BACKUPS)) else { return };
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "part")) {
        if let Err(error) = std::fs::remove_dir_all(&path) {
            tracing::warn!(directory = %path.display(), %error, "what is left of a backup could not be removed");
        }
    }
}

/// Writes a backup of a store that is open, and of the certificates beside it, to the new directory `to`.
///
/// The store is copied first: a job's record never names a certificate that was not there before. Until all is on disk and has been read once more,
/// it lies under a name with `.part` at its end.
pub fn backup(store: &Store, data_dir: &Path, to: &Path) -> Result<BackupReport, BackupError> {
    let started = Instant::now();
    // A client of the daemon has another working directory.
    let to = &at(to, std::path::absolute(to))?;
    let name = to.file_name().ok_or_else(|| refused(to, "expected the name of a new directory"))?;
    let part = to.with_file_name(format!("{}.part", name.to_string_lossy()));
    for path in [to, &part] {
        if path.symlink_metadata().is_ok() {
            return Err(refused(path, "is there already: choose another name, or remove it if it is not needed"));
        }
    }
    let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    at(parent, std::fs::create_dir_all(parent))?;
    at(&part, std::fs::create_dir(&part))?;
    let part = Part(part);
    store.copy_to(&part.0.join("store"))?;
    let certificates = data_dir.join(CERTIFICATES);
    at(&part.0, std::fs::create_dir(part.0.join(CERTIFICATES)))?;
    for path in plain_files(&certificates)? {
        if is_certificate(&path) {
            let target = part.0.join(CERTIFICATES).join(path.file_name().unwrap_or_default());
            // A certificate is never changed in place, so a link will do.
            at(&path, std::fs::hard_link(&path, &target).or_else(|_| std::fs::copy(&path, &target).map(drop)))?;
        }
    }
    let verification = verify(&part.0)?;
    let mut list = List {
        version: LIST_VERSION,
        created_at: now_rfc3339(),
        program: format!("superko {}", env!("CARGO_PKG_VERSION")),
        damaged: verification.damaged,
        files: Vec::new(),
    };
    for directory in ["store", CERTIFICATES] {
        for path in plain_files(&part.0.join(directory))? {
            let file = at(&path, File::open(&path))?;
            let bytes = at(&path, file.metadata())?.len();
            let sha256 = at(&path, sha256(&file))?;
            at(&path, file.sync_all())?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            list.files.push(Listed { path: format!("{directory}/{name}"), bytes, sha256 });
        }
        at(&part.0, sync(&part.0.join(directory)))?;
    }
    let path = part.0.join(LIST);
    let text = serde_json::to_vec_pretty(&list).map_err(|error| refused(&path, error.to_string()))?;
    at(&path, File::create_new(&path).and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all())))?;
    at(&part.0, sync(&part.0))?;
    at(to, std::fs::rename(&part.0, to))?;
    std::mem::forget(part);
    at(parent, sync(parent))?;
    Ok(report(to, &list, verification, started))
}

/// Puts a backup into an empty or new data directory. Nothing half done is left: until all files have come over and agree with the list, there is
/// no `store/`, and a store without one is not begun anew where a restore was cut short.
pub fn restore(from: &Path, data_dir: &Path) -> Result<BackupReport, BackupError> {
    let started = Instant::now();
    let list = read_list(from)?.ok_or_else(|| refused(from, format!("it is no backup of superko store backup: it has no {LIST}")))?;
    at(data_dir, std::fs::create_dir_all(data_dir))?;
    refuse_used(data_dir)?;
    let _lock = lock_directory(data_dir)?;
    refuse_used(data_dir)?;
    let part = Part(data_dir.join(RESTORE_PART));
    // Of a restore that was cut short.
    for path in [&part.0, &data_dir.join(CERTIFICATES)] {
        if path.exists() {
            at(path, std::fs::remove_dir_all(path))?;
        }
    }
    for directory in ["store", CERTIFICATES] {
        at(&part.0, std::fs::create_dir_all(part.0.join(directory)))?;
    }
    for listed in &list.files {
        let (source, target) = (from.join(&listed.path), part.0.join(&listed.path));
        let mut input = at(&source, open_plain(&source))?;
        let mut output = at(&target, File::create_new(&target))?;
        let mut copying = Copying { input: &mut input, output: &mut output };
        let found = at(&source, sha256(&mut copying))?;
        if found != listed.sha256 {
            return Err(refused(&source, format!("is damaged: its SHA-256 is {found}, expected {}; use another backup", listed.sha256)));
        }
        at(&target, output.sync_all())?;
    }
    let verification = verify(&part.0)?;
    for directory in ["store", CERTIFICATES] {
        at(&part.0, sync(&part.0.join(directory)))?;
    }
    at(&part.0, sync(&part.0).and_then(|()| sync(data_dir)))?;
    // The store last: with it the directory is whole.
    for directory in [CERTIFICATES, "store"] {
        let moved = std::fs::rename(part.0.join(directory), data_dir.join(directory)).and_then(|()| sync(data_dir));
        if moved.is_err() && !data_dir.join("store").exists() {
            let _ = std::fs::remove_dir_all(data_dir.join(CERTIFICATES));
        }
        at(data_dir, moved)?;
    }
    drop(part);
    Ok(report(data_dir, &list, verification, started))
}

/// Refuses a directory that holds anything but a lock, or what a restore that was cut short has left.
fn refuse_used(data_dir: &Path) -> Result<(), BackupError> {
    let was_cut_short = data_dir.join(RESTORE_PART).exists();
    for entry in at(data_dir, std::fs::read_dir(data_dir))? {
        let name = at(data_dir, entry)?.file_name();
        let is_left = was_cut_short && (name == RESTORE_PART || name == CERTIFICATES);
        if name != LOCK_FILE && !is_left {
            let reason = format!("it is not empty, it holds {}: restore into a new directory", name.to_string_lossy());
            return Err(refused(data_dir, reason));
        }
    }
    Ok(())
}

fn report(directory: &Path, list: &List, verification: Verification, started: Instant) -> BackupReport {
    BackupReport {
        directory: directory.to_owned(),
        created_at: list.created_at.clone(),
        files: list.files.len() as u64,
        bytes: list.files.iter().map(|file| file.bytes).sum(),
        verification,
        elapsed_seconds: started.elapsed().as_secs_f64(),
    }
}

/// Reads every record of a data directory or a backup, and every certificate that a job has on record, and compares a backup with its list.
/// Changes nothing. An error means that there is nothing to read.
pub fn verify(directory: &Path) -> Result<Verification, BackupError> {
    let store = open(directory)?;
    let mut verification = Verification::default();
    let mut wanted: Vec<(ProofId, String)> = Vec::new();
    store.for_each(&mut |found| {
        *verification.records.entry(found.family).or_default() += 1;
        let what = || format!("{} {}", found.family, found.name()).trim_end().to_owned();
        match &found.content {
            Err(reason) => verification.damage(what(), reason),
            Ok(Content::Job(record)) => match Job::from_record(record.clone()).and_then(|job| certificates(&job)) {
                Ok(certificates) => wanted.extend(certificates),
                Err(reason) => verification.damage(what(), reason),
            },
            Ok(Content::Campaign(record)) => {
                if let Err(reason) = Campaign::from_record(record.clone()) {
                    verification.damage(what(), reason);
                }
            }
            Ok(Content::Proof(proof)) => {
                if let Err(error) = serde_json::from_value::<SolveReport>(proof.body.clone()) {
                    verification.damage(what(), error);
                }
            }
            Ok(_) => {}
        }
    });
    for (id, sha256) in wanted {
        verify_file(&directory.join(CERTIFICATES).join(format!("{id}.sgc")), &sha256, &mut verification);
    }
    if let Some(list) = read_list(directory)? {
        for listed in list.files {
            verify_file(&directory.join(&listed.path), &listed.sha256, &mut verification);
        }
    }
    Ok(verification)
}

fn open(directory: &Path) -> Result<Inspector, BackupError> {
    if !directory.join("store").is_dir() {
        return Err(refused(directory, "expected a data directory of superko serve, or a backup, with store/ in it"));
    }
    Ok(Inspector::open(directory)?)
}

fn verify_file(path: &Path, expected: &str, verification: &mut Verification) {
    verification.files += 1;
    match open_plain(path).and_then(sha256) {
        Ok(found) if found == expected => {}
        Ok(found) => verification.damage(path.display(), format!("its SHA-256 is {found}, that on record {expected}")),
        Err(error) => verification.damage(path.display(), error),
    }
}

/// The certificates that a job has on record, with their SHA-256.
fn certificates(job: &Job) -> Result<Vec<(ProofId, String)>, String> {
    let mut found = Vec::new();
    for (index, proof) in job.proofs().iter().enumerate() {
        let number = index + 1;
        let proof: SolveReport = serde_json::from_str(proof.get()).map_err(|error| format!("proof {number}: {error}"))?;
        found.extend(proof.certificate.map(|certificate| (ProofId { job: job.id, number }, certificate.sha256)));
    }
    Ok(found)
}

/// Counts what a data directory holds. Changes nothing.
pub fn statistics(directory: &Path) -> Result<Statistics, BackupError> {
    let store = open(directory)?;
    let mut statistics = Statistics::default();
    for state in State::ALL {
        statistics.jobs.insert(state.name().to_owned(), 0);
    }
    store.for_each(&mut |found| {
        let size = statistics.families.entry(found.family).or_default();
        size.count += 1;
        size.bytes += found.bytes;
        match found.content {
            Err(_) => statistics.damaged += 1,
            Ok(Content::Job(record)) => {
                let state = serde_json::from_str(&record.body).map_or("unknown".to_owned(), |Stated { state }| state);
                *statistics.jobs.entry(state).or_default() += 1;
            }
            Ok(Content::Lemma(board)) => *statistics.lemmas.entry(board).or_default() += 1,
            Ok(Content::Number(board)) => *statistics.numbers.entry(board).or_default() += 1,
            // Ascending, so the last one stays.
            Ok(Content::Checkpoint(record)) => statistics.last_checkpoint = Some(record),
            Ok(Content::Campaign(_) | Content::Proof(_) | Content::Other) => {}
        }
    });
    for name in ["store", "tables", CERTIFICATES] {
        let mut size = Size::default();
        for path in plain_files(&directory.join(name))? {
            size.count += 1;
            size.bytes += at(&path, path.metadata())?.len();
        }
        statistics.directories.insert(name, size);
    }
    Ok(statistics)
}

fn read_list(directory: &Path) -> Result<Option<List>, BackupError> {
    let path = directory.join(LIST);
    let bytes = match open_plain(&path).and_then(|mut file| {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map(|_| bytes)
    }) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => at(&path, read)?,
    };
    let list: List = serde_json::from_slice(&bytes).map_err(|error| refused(&path, format!("is damaged: {error}; use another backup")))?;
    if list.version != LIST_VERSION {
        return Err(refused(&path, format!("its version is {}, expected {LIST_VERSION}: use the program that wrote it", list.version)));
    }
    let mut seen = BTreeSet::new();
    for listed in &list.files {
        let parts: Vec<Component<'_>> = Path::new(&listed.path).components().collect();
        let is_ours = matches!(parts[..], [Component::Normal(top), Component::Normal(_)] if top == "store" || top == CERTIFICATES);
        if !is_ours || !seen.insert(&listed.path) {
            return Err(refused(&path, format!("names the file {:?}: expected files in store and {CERTIFICATES}, each once", listed.path)));
        }
    }
    Ok(Some(list))
}

/// Reads from one file and writes all of it to another.
struct Copying<'a> {
    input: &'a mut File,
    output: &'a mut File,
}

impl Read for Copying<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.output.write_all(&buffer[..read])?;
        Ok(read)
    }
}

fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// The plain files of a directory, by name; none if it is not there.
fn plain_files(directory: &Path) -> Result<Vec<PathBuf>, BackupError> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => at(directory, entries)?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = at(directory, entry)?;
        if at(&entry.path(), entry.file_type())?.is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

fn is_certificate(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.strip_suffix(".sgc").is_some_and(|id| id.parse::<ProofId>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_their_directory() {
        let data = Path::new("data");
        assert_eq!(place(data, "monday-1.a_b"), Ok(PathBuf::from("data/backups/monday-1.a_b")));
        for name in ["", ".", "..", "../x", "a/b", "/x", "a\\b", ".hidden", "a.part", "a b", "é", &"x".repeat(65)] {
            let error = place(data, name).expect_err(name);
            assert!(error.contains(&format!("{name:?}")), "{error}");
        }
    }
}

//! Certificate files: written from a finished solve, compressed, and checked.

use crate::report::counter;
use crate::schema::Counter;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use superko_rules::{Board, Color, board_rows};
use superko_search::{Control, ExportError, Limits, Options, Statement, Table, export};
use superko_storage::{MappedTable, TableOccupancy};
use utoipa::ToSchema;

/// Of zstd's 1 to 22. Level 19 takes a tenth less room and ten times as long.
const COMPRESSION: i32 = 9;

/// What is known of a certificate that was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Certificate)]
pub struct CertificateReport {
    /// Lemmas.
    #[serde(with = "counter")]
    #[schema(value_type = Counter)]
    pub lemmas: u64,
    /// Bytes of the file.
    #[serde(with = "counter")]
    #[schema(value_type = Counter)]
    pub bytes: u64,
    /// Bytes before compression.
    #[serde(with = "counter")]
    #[schema(value_type = Counter)]
    pub uncompressed_bytes: u64,
    /// Expansions spent on what the table no longer had.
    #[serde(with = "counter")]
    #[schema(value_type = Counter)]
    pub expansions: u64,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
    /// Whether the checker accepts it as a proof of the statement; null if it was not asked.
    #[schema(required)]
    pub verified: Option<bool>,
    /// The checker that was asked, and its version.
    #[schema(required)]
    pub checker: Option<String>,
    /// Why the certificate was rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Why there is no certificate.
#[derive(Debug)]
pub enum CertificateError {
    /// The proof could not be written down.
    Export(ExportError),
    /// The file could not be written or read.
    Io(PathBuf, io::Error),
    /// What was written is left there, but it does not prove what it should: a bug.
    Rejected(PathBuf, String),
    /// The check was stopped.
    Stopped,
}

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CertificateError::Export(error) => error.fmt(f),
            CertificateError::Io(path, error) => write!(f, "{}: {error}", path.display()),
            CertificateError::Rejected(path, error) => {
                write!(f, "the certificate, left in {}, was rejected: this is a bug, please report it. {error}", path.display())
            }
            CertificateError::Stopped => write!(f, "stopped before the certificate was checked"),
        }
    }
}

impl std::error::Error for CertificateError {}

/// A file on the way to its name; nobody else writes to it. It is removed if it gets none.
#[derive(Debug)]
pub struct NewFile {
    /// To write to.
    pub file: File,
    path: Option<PathBuf>,
}

impl NewFile {
    /// A new file beside `path`, with its name and `.part` at the end.
    pub fn beside(path: &Path) -> io::Result<NewFile> {
        if std::fs::metadata(path).is_ok_and(|there| !there.is_file()) || path.is_symlink() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is something else than a plain file"));
        }
        for number in 0.. {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{}-{number}.part", std::process::id()));
            match File::create_new(&name) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1000 => {}
                created => return Ok(NewFile { file: created?, path: Some(name.into()) }),
            }
        }
        unreachable!("the last try returns")
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        self.path.as_deref().expect("only those who take the file take its path")
    }

    /// Gives the whole file its name, durably, in place of what was there.
    pub fn give_name(mut self, path: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        std::fs::rename(self.path(), path)?;
        self.path = None;
        File::open(path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")))?.sync_all()
    }

    /// Leaves it under the name that it has; which one.
    fn leave(mut self) -> PathBuf {
        self.path.take().expect("only those who take the file take its path")
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Fails as [`write_verified`] would for want of a place to write to.
pub fn check_target(path: &Path) -> io::Result<()> {
    NewFile::beside(path).map(drop)
}

/// Where a certificate's lemmas come from.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// What has been proved.
    pub table: &'a MappedTable,
    /// Bytes of the table that keeps the lemmas written, in anonymous memory.
    pub memory_bytes: u64,
    /// For what has to be searched again.
    pub options: Options,
    /// For what has to be searched again.
    pub limits: Limits,
    /// Counts what is searched again, and stops all.
    pub control: &'a Control,
    /// Grows with the records written and checked.
    pub records: &'a AtomicU64,
}

/// Writes the certificate of `statement` to `path`, durably. Until it is whole there is what was before; a name with `.part` at its end is
/// used on the way.
pub fn write_certificate(path: &Path, source: &Source<'_>, statement: &Statement<'_>) -> Result<CertificateReport, CertificateError> {
    let (new, report) = write_new(path, source, statement)?;
    new.give_name(path).map_err(|error| CertificateError::Io(path.to_owned(), error))?;
    Ok(report)
}

/// [`write_certificate`], and has it checked before it gets its name: under `path` there is a certificate that the checker accepts, or what
/// was there before.
pub fn write_verified(path: &Path, source: &Source<'_>, statement: &Statement<'_>) -> Result<CertificateReport, CertificateError> {
    let (new, mut report) = write_new(path, source, statement)?;
    verify(new.path(), statement, &mut report, &source.control.stop, source.records)?;
    match report.error {
        Some(error) => Err(CertificateError::Rejected(new.leave(), error)),
        None => {
            new.give_name(path).map_err(|error| CertificateError::Io(path.to_owned(), error))?;
            Ok(report)
        }
    }
}

fn write_new(path: &Path, source: &Source<'_>, statement: &Statement<'_>) -> Result<(NewFile, CertificateReport), CertificateError> {
    let new = NewFile::beside(path).map_err(|error| CertificateError::Io(path.to_owned(), error))?;
    match write_to(&new.file, source, statement) {
        Ok(report) => Ok((new, report)),
        Err(ExportError::Io(error)) => Err(CertificateError::Io(path.to_owned(), error)),
        Err(error) => Err(CertificateError::Export(error)),
    }
}

fn write_to(file: &File, source: &Source<'_>, statement: &Statement<'_>) -> Result<CertificateReport, ExportError> {
    let Source { table, memory_bytes, options, limits, control, records } = *source;
    let written = MappedTable::anonymous(table.geometry(), memory_bytes).map_err(io::Error::other)?.with_large_sets();
    let file = Hashing::new(BufWriter::new(file));
    let mut encoder = zstd::Encoder::new(file, COMPRESSION)?;
    encoder.include_checksum(true)?;
    let mut out = Bounded { out: &mut encoder, written: &written, records: 0, progress: records };
    let exported = export(table, &written, statement, options, limits, control, &mut out)?;
    let mut file = encoder.finish()?;
    file.flush()?;
    Ok(CertificateReport {
        lemmas: exported.lemmas,
        bytes: file.bytes,
        uncompressed_bytes: exported.bytes,
        expansions: exported.expansions,
        sha256: hexadecimal(file.hash),
        verified: None,
        checker: None,
        error: None,
    })
}

/// Has the file checked against `statement` and against the SHA-256 of `report`, and records there what came of it. An error means
/// that nothing is known. `records` grows meanwhile.
pub fn verify(
    path: &Path,
    statement: &Statement<'_>,
    report: &mut CertificateReport,
    stop: &AtomicBool,
    records: &AtomicU64,
) -> Result<(), CertificateError> {
    let mut count = |_| {
        records.fetch_add(1, Relaxed);
    };
    let io = |error| CertificateError::Io(path.to_owned(), error);
    let mut file = Hashing::new(Stoppable { file: open_plain(path).map_err(io)?, stop });
    let told = superko_check::check(BufReader::with_capacity(1 << 16, &mut file), &mut count);
    if stop.load(Relaxed) {
        return Err(CertificateError::Stopped);
    }
    // What cannot be read is not known to be bad.
    if let Some(error) = file.failure.take() {
        return Err(io(error));
    }
    // A checker that has seen enough leaves the rest.
    io::copy(&mut file, &mut io::sink()).map_err(io)?;
    let sha256 = hexadecimal(file.hash);
    let error = match told {
        _ if sha256 != report.sha256 => Some(format!("the file has changed: its SHA-256 is {sha256}, that on record {}", report.sha256)),
        Err(error) => Some(format!("the checker refuses it: {error}")),
        Ok(told) if !says(&told, statement) => Some(format!("it proves something else: {}", told.sentence())),
        Ok(_) => None,
    };
    report.verified = Some(error.is_none());
    report.checker = Some(format!("superko-check {}", superko_check::VERSION));
    report.error = error;
    Ok(())
}

/// Opens a plain file: of anything else the end may never come.
pub fn open_plain(path: &Path) -> io::Result<File> {
    let plain = |metadata: std::fs::Metadata| {
        if metadata.is_file() { Ok(()) } else { Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file")) }
    };
    // Before too: to open a pipe waits for a writer.
    std::fs::metadata(path).and_then(plain)?;
    let file = File::open(path)?;
    file.metadata().and_then(plain)?;
    Ok(file)
}

/// SHA-256 of what is read to the end, in hexadecimal.
pub fn sha256(mut input: impl Read) -> io::Result<String> {
    let mut hashing = Hashing::new(io::sink());
    io::copy(&mut input, &mut hashing)?;
    Ok(hexadecimal(hashing.hash))
}

fn hexadecimal(hash: Sha256) -> String {
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Whether what was proved is what was to be proved.
fn says(told: &superko_check::Report, statement: &Statement<'_>) -> bool {
    let Statement { game, komi, winner } = *statement;
    let (geometry, position) = (game.geometry(), game.position());
    let rows = |&board: &Board| board_rows(geometry, board).join("/");
    let side = |color| if color == Color::Black { superko_check::rules::Color::Black } else { superko_check::rules::Color::White };
    let earlier: BTreeSet<String> = game.boards().iter().filter(|&&board| board != position.board).map(rows).collect();
    told.size == (geometry.rows() as u32, geometry.cols() as u32)
        && told.komi == komi.to_string()
        && told.winner == side(winner)
        && told.root.join("/") == rows(&position.board)
        && told.to_move == side(position.to_move)
        && told.passes == position.passes
        && told.earlier.len() == earlier.len()
        && told.earlier.iter().all(|board| earlier.contains(board))
}

/// Counts and hashes what goes through.
struct Hashing<T> {
    inner: T,
    hash: Sha256,
    bytes: u64,
    /// Why a read failed.
    failure: Option<io::Error>,
}

impl<T> Hashing<T> {
    fn new(inner: T) -> Hashing<T> {
        Hashing { inner, hash: Sha256::new(), bytes: 0, failure: None }
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer).inspect_err(|error| {
            if error.kind() != io::ErrorKind::Interrupted {
                self.failure = Some(error.kind().into());
            }
        })?;
        self.hash.update(&buffer[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}

/// A file that fails as soon as somebody wants to stop.
struct Stoppable<'a> {
    file: File,
    stop: &'a AtomicBool,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.load(Relaxed) {
            return Err(io::Error::other("stopped"));
        }
        self.file.read(buffer)
    }
}

/// Fails when the lemmas written no longer fit their memory: to write ever more of them again would take for ever.
struct Bounded<'a, W> {
    out: W,
    written: &'a MappedTable,
    /// Writes so far, one a record.
    records: u64,
    /// The same for others to see.
    progress: &'a AtomicU64,
}

impl<W: Write> Write for Bounded<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let TableOccupancy { bytes: size, lemmas, evicted, lemma_slots, sets_bytes, sets_new_bytes, .. } = self.written.occupancy();
        self.records += 1;
        self.progress.fetch_add(1, Relaxed);
        if evicted > lemma_slots || sets_new_bytes / 4 > sets_bytes || self.records / 4 > lemmas + 1000 {
            return Err(io::Error::new(
                io::ErrorKind::OutOfMemory,
                format!("its lemmas do not fit in {size} bytes of memory: raise certificate_memory of the daemon, --table of solve"),
            ));
        }
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

//! Certificate files: written from a finished solve, compressed, and checked before they get their name.

use crate::report::counter;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use superko_rules::{Board, Color, board_rows};
use superko_search::{Control, ExportError, Limits, Options, Statement, Table, export};

/// Of zstd's 1 to 22. Level 19 takes a tenth less room and ten times as long.
const COMPRESSION: i32 = 9;

/// What is known of a certificate that was written and that the checker accepts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CertificateReport {
    /// Lemmas.
    #[serde(with = "counter")]
    pub lemmas: u64,
    /// Bytes of the file.
    #[serde(with = "counter")]
    pub bytes: u64,
    /// Bytes before compression.
    #[serde(with = "counter")]
    pub uncompressed_bytes: u64,
    /// Expansions spent on what the table no longer had.
    #[serde(with = "counter")]
    pub expansions: u64,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
    /// The checker has accepted it.
    pub verified: bool,
    /// The checker and its version.
    pub checker: String,
}

/// Why there is no certificate.
#[derive(Debug)]
pub enum CertificateError {
    /// The proof could not be written down.
    Export(ExportError),
    /// The file could not be written.
    Io(PathBuf, io::Error),
    /// The checker accepts what was written, but it does not say what it should: a bug. It is left there.
    OtherStatement(PathBuf, String),
    /// The checker refuses what was written, which is left there: a bug.
    Rejected(PathBuf, superko_check::Error),
}

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CertificateError::Export(error) => error.fmt(f),
            CertificateError::Io(path, error) => write!(f, "{}: {error}", path.display()),
            CertificateError::OtherStatement(path, told) => {
                write!(f, "the certificate, left in {}, proves something else: this is a bug, please report it. {told}", path.display())
            }
            CertificateError::Rejected(path, error) => {
                write!(f, "the checker refuses the certificate, left in {}: this is a bug, please report it. {error}", path.display())
            }
        }
    }
}

impl std::error::Error for CertificateError {}

/// A new file beside `path`, with its name; nobody else writes to it.
fn new_part(path: &Path) -> io::Result<(PathBuf, File)> {
    if std::fs::metadata(path).is_ok_and(|there| !there.is_file()) || path.is_symlink() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is something else than a plain file"));
    }
    for number in 0.. {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}-{number}.part", std::process::id()));
        match File::create_new(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1000 => {}
            created => return Ok((name.into(), created?)),
        }
    }
    unreachable!("the last try returns")
}

/// Fails as [`write_certificate`] would for want of a place to write to.
pub fn check_target(path: &Path) -> io::Result<()> {
    let (part, _) = new_part(path)?;
    std::fs::remove_file(part)
}

/// Writes the certificate of `statement` to `path`, with the lemmas of `table`, and has it checked. Under `path` there is
/// a certificate that the checker accepts, or what was there before; a name with `.part` at its end is used on the way.
pub fn write_certificate(
    path: &Path,
    table: &dyn Table,
    statement: &Statement<'_>,
    options: Options,
    limits: Limits,
    control: &Control,
) -> Result<CertificateReport, CertificateError> {
    let (part, file) = new_part(path).map_err(|error| CertificateError::Io(path.to_owned(), error))?;
    let io = |error| CertificateError::Io(part.clone(), error);
    let exported = (|| {
        let file = Hashing { out: BufWriter::new(file), hash: Sha256::new(), bytes: 0 };
        let mut encoder = zstd::Encoder::new(file, COMPRESSION)?;
        encoder.include_checksum(true)?;
        let exported = export(table, statement, options, limits, control, &mut encoder)?;
        let file = encoder.finish()?;
        file.out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        Ok((exported, file.hash.finalize(), file.bytes))
    })();
    let (exported, hash, bytes) = match exported {
        Ok(exported) => exported,
        Err(error) => {
            let _ = std::fs::remove_file(&part);
            return Err(match error {
                ExportError::Io(error) => io(error),
                error => CertificateError::Export(error),
            });
        }
    };
    let input = File::open(&part).map_err(io)?;
    let told = superko_check::check(BufReader::new(input), &mut |_| {}).map_err(|error| CertificateError::Rejected(part.clone(), error))?;
    if !says(&told, statement) {
        return Err(CertificateError::OtherStatement(part, told.sentence()));
    }
    std::fs::rename(&part, path).map_err(io)?;
    Ok(CertificateReport {
        lemmas: exported.lemmas,
        bytes,
        uncompressed_bytes: exported.bytes,
        expansions: exported.expansions,
        sha256: hash.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        }),
        verified: true,
        checker: format!("superko-check {}", superko_check::VERSION),
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
struct Hashing<W> {
    out: W,
    hash: Sha256,
    bytes: u64,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

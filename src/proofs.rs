//! Proofs of finished jobs, and their certificates: one file each in the data directory, written and checked by the solver thread, checked
//! again when a client asks.

use crate::certificate::{CertificateError, CertificateReport, Source, open_plain, sha256, verify, write_certificate};
use crate::engine::{Engine, Running, Stage, locked};
use crate::jobs::{Job, JobError};
use crate::report::SolveReport;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, TryLockError};
use superko_rules::Color;
use superko_search::{Komi, Limits, Statement};
use superko_storage::MappedTable;

/// A value has two.
const MOST_PROOFS: usize = 2;

/// Names a proof: the job that found it, and which of the job's proofs it is, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProofId {
    /// The job.
    pub job: u64,
    /// From 1.
    pub number: usize,
}

impl fmt::Display for ProofId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.job, self.number)
    }
}

impl FromStr for ProofId {
    type Err = ();

    fn from_str(text: &str) -> Result<ProofId, ()> {
        let (job, number) = text.split_once('-').ok_or(())?;
        let id = ProofId { job: job.parse().map_err(|_| ())?, number: number.parse().map_err(|_| ())? };
        // One name for one proof: no signs, no zeros in front.
        if id.to_string() == text { Ok(id) } else { Err(()) }
    }
}

/// Why a proof or its certificate cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ProofError {
    /// No such proof.
    #[error(
        "there is no proof {0:?}: expected the id of a proof of a finished job, such as 7-1; GET /v1/jobs/7 or superko job show 7 names them"
    )]
    NotFound(String),
    /// It was not asked for, or could not be written.
    #[error("proof {id} has no certificate: {reason}")]
    NoCertificate {
        /// The proof.
        id: ProofId,
        /// Why not, and what to do.
        reason: String,
    },
    /// Another check is under way.
    #[error("another certificate is being checked: try again later")]
    Busy,
    /// The daemon stops.
    #[error("the server is shutting down")]
    Stopping,
    /// The file cannot be read.
    #[error("the certificate of proof {id} cannot be read: {error}; restore the file from a backup, or submit the job again")]
    Unreadable {
        /// The proof.
        id: ProofId,
        /// What the system says.
        error: String,
    },
    /// The certificate was rejected, which could not be recorded.
    #[error("the certificate of proof {id} was REJECTED: {rejected}; this could not be recorded: {error}")]
    Unrecorded {
        /// The proof.
        id: ProofId,
        /// What the checker says.
        rejected: String,
        /// What the store says.
        error: JobError,
    },
    /// What came of the check could not be recorded.
    #[error(transparent)]
    Job(#[from] JobError),
}

/// The certificate was given up because the job is to stop.
#[derive(Debug)]
pub struct Asked;

impl Engine {
    /// Where a proof's certificate is kept, if it has one.
    pub fn certificate_path(&self, id: ProofId) -> PathBuf {
        self.data_dir.join("certificates").join(format!("{id}.sgc"))
    }

    /// A proof with the job that found it.
    pub fn proof(&self, text: &str) -> Result<(ProofId, Arc<Job>, SolveReport), ProofError> {
        let not_found = || ProofError::NotFound(text.to_owned());
        let id: ProofId = text.parse().map_err(|()| not_found())?;
        let job = self.jobs.get(id.job).ok_or_else(not_found)?;
        let report = job.proof(id.number).ok_or_else(not_found)?;
        Ok((id, job, report))
    }

    /// The file of a proof's certificate, whose content is what the record says. Hashes it the first time, and when it has changed.
    pub fn whole_file(&self, id: ProofId, certificate: &CertificateReport) -> Result<PathBuf, ProofError> {
        let path = self.certificate_path(id);
        let unreadable = |error: std::io::Error| ProofError::Unreadable { id, error: format!("{}: {error}", path.display()) };
        let file = open_plain(&path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        let state = (metadata.len(), metadata.modified().map_err(unreadable)?);
        if locked(&self.whole_files).get(&path) == Some(&state) {
            return Ok(path);
        }
        let sha256 = sha256(file).map_err(unreadable)?;
        if sha256 != certificate.sha256 {
            let error = format!("{} has changed: its SHA-256 is {sha256}, that on record {}", path.display(), certificate.sha256);
            return Err(ProofError::Unreadable { id, error });
        }
        locked(&self.whole_files).insert(path.clone(), state);
        Ok(path)
    }

    /// Removes the certificates of a job that will have no proofs.
    pub fn remove_certificates(&self, job: u64) {
        for number in 1..=MOST_PROOFS {
            let _ = std::fs::remove_file(self.certificate_path(ProofId { job, number }));
        }
    }

    /// Has the certificate of a proof checked once more, and records what came of it. Blocks for as long as the checker takes.
    pub fn verify_proof(&self, text: &str) -> Result<(ProofId, SolveReport), ProofError> {
        let (id, job, mut proof) = self.proof(text)?;
        let Some(mut certificate) = proof.certificate.take() else { return Err(no_certificate(id, &proof)) };
        let _one_at_a_time = match self.verifying.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::WouldBlock) => return Err(ProofError::Busy),
            // A check that panicked has changed nothing.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        };
        let unreadable = |error: String| ProofError::Unreadable { id, error };
        let (komi, winner) = claim(&proof).ok_or_else(|| unreadable("the record names no winner".to_owned()))?;
        let statement = Statement { game: &job.request.position.game, komi, winner };
        match verify(&self.certificate_path(id), &statement, &mut certificate, self.stopping(), &AtomicU64::new(0)) {
            Ok(()) => self.judged(id, &certificate.error),
            Err(CertificateError::Stopped) => return Err(ProofError::Stopping),
            Err(error) => {
                self.metrics.verification("failed");
                return Err(unreadable(error.to_string()));
            }
        }
        let rejected = certificate.error.clone();
        proof.certificate = Some(certificate);
        match (self.jobs.set_proof(id, &proof), rejected) {
            (Ok(_), _) => Ok((id, proof)),
            (Err(error), Some(rejected)) => Err(ProofError::Unrecorded { id, rejected, error }),
            (Err(error), None) => Err(error.into()),
        }
    }

    /// Counts a judgement of the checker; a rejection is never silent.
    fn judged(&self, id: ProofId, error: &Option<String>) {
        self.metrics.verification(if error.is_some() { "rejected" } else { "accepted" });
        // Known before it is on record, for a disk may be full.
        match error {
            Some(_) => locked(&self.rejected_now).insert((id.job, id.number)),
            None => locked(&self.rejected_now).remove(&(id.job, id.number)),
        };
        if let Some(error) = error {
            let file = self.certificate_path(id);
            tracing::error!(proof = %id, file = %file.display(), error, "a certificate was REJECTED");
        }
    }

    /// Writes the certificate of a proof just found, if the job asks for it, and has it checked. What fails is told in the report.
    pub fn certify(
        &self,
        table: &MappedTable,
        limits: Limits,
        job: &Job,
        running: &Running,
        number: usize,
        report: &mut SolveReport,
    ) -> Result<(), Asked> {
        if !job.request.certificate {
            return Ok(());
        }
        let Some((komi, winner)) = claim(report) else { return Ok(()) };
        let stage = |stage| locked(&running.progress).stage = stage;
        stage(Stage::Certificate);
        let id = ProofId { job: job.id, number };
        let path = self.certificate_path(id);
        let statement = Statement { game: &job.request.position.game, komi, winner };
        let source = Source {
            table,
            memory_bytes: self.certificate_bytes,
            options: self.options(),
            limits,
            control: &running.control,
            records: &running.records,
        };
        let directory = self.data_dir.join("certificates");
        let written = std::fs::create_dir_all(&directory).map_err(|error| CertificateError::Io(directory, error));
        let written = written.and_then(|()| write_certificate(&path, &source, &statement));
        self.metrics.certificate(if written.is_ok() { "written" } else { "failed" });
        let checked = written.and_then(|written| {
            // What cannot be checked is there all the same.
            let certificate = report.certificate.insert(written);
            if job.request.verify {
                stage(Stage::Verification);
                verify(&path, &statement, certificate, &running.control.stop, &running.records)?;
                self.judged(id, &certificate.error);
            }
            Ok(())
        });
        stage(Stage::Search);
        match checked {
            Ok(()) => {}
            // A certificate that is written but not checked is written again when the job goes on.
            Err(_) if running.control.stop.load(Relaxed) => return Err(Asked),
            Err(error) => {
                tracing::warn!(proof = %id, %error, "no certificate, or none that was checked");
                report.certificate_error = Some(error.to_string());
            }
        }
        Ok(())
    }
}

/// Why a proof has no certificate.
pub fn no_certificate(id: ProofId, proof: &SolveReport) -> ProofError {
    let reason = match &proof.certificate_error {
        Some(error) => error.clone(),
        None => {
            "its job did not ask for one; submit the job again with \"certificate\": true (superko job submit --certificate)".to_owned()
        }
    };
    ProofError::NoCertificate { id, reason }
}

/// Who wins at which komi.
fn claim(report: &SolveReport) -> Option<(Komi, Color)> {
    let winner = match report.winner.as_deref()? {
        "black" => Color::Black,
        "white" => Color::White,
        _ => return None,
    };
    Some((Komi::from_f64(report.komi).ok()?, winner))
}

/// Removes what a crash left half written. Called before anything is written.
pub fn remove_parts(data_dir: &Path) {
    let directory = data_dir.join("certificates");
    let Ok(entries) = std::fs::read_dir(&directory) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let is_ours = name.split_once(".sgc.").is_some_and(|(id, rest)| id.parse::<ProofId>().is_ok() && rest.ends_with(".part"));
        if is_ours && let Err(error) = std::fs::remove_file(&path) {
            tracing::warn!(file = %path.display(), %error, "what is left of a certificate could not be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_has_one_name() {
        assert_eq!("12-1".parse(), Ok(ProofId { job: 12, number: 1 }));
        for text in ["", "12", "-1", "12-", "+12-1", "012-1", "12-01", "12-1-1", "../12-1", "12-1/", "1e1-1", "99999999999999999999-1"] {
            assert_eq!(text.parse::<ProofId>(), Err(()), "{text:?}");
        }
    }
}

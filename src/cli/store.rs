//! `superko store`: backup, restore, verification and statistics of a data directory.

use super::job::{Server, text};
use super::{BAD_INPUT, FAILED, Failure, PROVED, print_json, print_line};
use crate::backup::{self, BackupError, BackupReport, Size, Verification};
use clap::{Args, Subcommand};
use serde_json::Value;
use std::path::PathBuf;
use superko_storage::{Store, StoreError};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Back up a data directory: through the server that uses it (--name), or directly if none does (--data, --to)
    Backup(Backup),
    /// Put a backup into a new or empty data directory
    Restore(Restore),
    /// Read every record and certificate of a data directory or a backup; nothing is changed
    Verify(One),
    /// Count what a data directory or a backup holds
    Stats(One),
}

#[derive(Debug, Args)]
pub struct Backup {
    #[command(flatten)]
    server: Server,
    /// Have the server write the backup of this name, to backups/NAME in its data directory
    #[arg(long, conflicts_with = "data")]
    name: Option<String>,
    /// Data directory that no server is using
    #[arg(long, value_name = "DIR", requires = "to")]
    data: Option<PathBuf>,
    /// New directory for the backup
    #[arg(long, value_name = "DIR", requires = "data")]
    to: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Restore {
    /// The backup
    #[arg(long, value_name = "DIR")]
    from: PathBuf,
    /// New or empty data directory
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub struct One {
    /// Data directory that no server is using, or a backup
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

impl From<BackupError> for Failure {
    fn from(error: BackupError) -> Failure {
        let code = match &error {
            BackupError::Refused { .. } | BackupError::Store(StoreError::Locked { .. }) => BAD_INPUT,
            _ => FAILED,
        };
        Failure { code, message: error.to_string() }
    }
}

pub fn run(command: &Command) -> Result<u8, Failure> {
    match command {
        Command::Backup(Backup { server, name, data, to }) => match (name, data, to) {
            (None, Some(data), Some(to)) => {
                // Opening would make a store where there is none.
                if !data.join("store").is_dir() {
                    let message = format!("--data {}: expected a data directory of superko serve, with store/ in it", data.display());
                    return Err(Failure::bad_input(message));
                }
                let store = Store::open(data).map_err(BackupError::from)?;
                let report = backup::backup(&store, data, to)?;
                store.close().map_err(BackupError::from)?;
                show_backup("backup", &report, server.json)
            }
            (None, ..) => Err(Failure::bad_input(
                "expected --name NAME for a backup by the running server, or --data DIR --to DIR where none is running",
            )),
            (name, ..) => {
                let body = serde_json::Map::from_iter([("name".to_owned(), name.clone().into())]);
                let report = server.post_slowly("/v1/admin/backup", Some(&body))?;
                if server.json {
                    print_json(&report)?;
                } else {
                    let (directory, bytes) = (text(&report["directory"]), text(&report["bytes"]));
                    print_line(&format!("backup {directory}: {} files, {bytes} bytes", report["files"]));
                }
                let damaged = report["verification"]["damaged"].as_u64();
                Ok(if damaged == Some(0) { PROVED } else { say_damaged(damaged, &report["verification"]["first_damaged"]) })
            }
        },
        Command::Restore(Restore { from, data, json }) => show_backup("restored", &backup::restore(from, data)?, *json),
        Command::Verify(One { data, json }) => {
            let verification = backup::verify(data)?;
            if *json {
                print_json(&verification)?;
            } else {
                let records: Vec<String> = verification.records.iter().map(|(family, count)| format!("{count} {family}")).collect();
                let found = if verification.damaged == 0 { "no damage" } else { "damaged" };
                let (records, files) = (records.join(", "), verification.files);
                print_line(&format!("{}: {found}; read {records}; compared {files} files with what is on record", data.display()));
            }
            Ok(judge(&verification))
        }
        Command::Stats(One { data, json }) => {
            let statistics = backup::statistics(data)?;
            if *json {
                print_json(&statistics)?;
                return Ok(PROVED);
            }
            let size = |what: &str, name: &str, size: &Size| print_line(&format!("{what} {name}: {}, {} bytes", size.count, size.bytes));
            statistics.families.iter().for_each(|(name, found)| size("records of", name, found));
            for (what, counts) in [("lemmas of", &statistics.lemmas), ("numbers of", &statistics.numbers), ("jobs", &statistics.jobs)] {
                for (name, count) in counts.iter().filter(|(_, count)| **count > 0) {
                    let note = if (what, name.as_str()) == ("jobs", "running") { " (a daemon goes on with it)" } else { "" };
                    print_line(&format!("{what} {name}: {count}{note}"));
                }
            }
            if let Some(last) = &statistics.last_checkpoint {
                print_line(&format!("last checkpoint: number {}, {} lemmas of {}", last.sequence, last.lemmas, last.board));
            }
            statistics.directories.iter().for_each(|(name, found)| size("files in", name, found));
            if statistics.damaged > 0 {
                print_line(&format!("damaged records: {}; superko store verify names the first", statistics.damaged));
            }
            Ok(PROVED)
        }
    }
}

fn show_backup(what: &str, report: &BackupReport, json: bool) -> Result<u8, Failure> {
    if json {
        print_json(report)?;
    } else {
        let BackupReport { directory, created_at, files, bytes, elapsed_seconds, .. } = report;
        print_line(&format!("{what} {}: of {created_at}, {files} files, {bytes} bytes, {elapsed_seconds:.1} s", directory.display()));
    }
    Ok(judge(&report.verification))
}

fn judge(verification: &Verification) -> u8 {
    if verification.damaged == 0 {
        return PROVED;
    }
    say_damaged(Some(verification.damaged), &verification.first_damaged.clone().into())
}

/// Names what is damaged on standard error; the exit code for that.
fn say_damaged(damaged: Option<u64>, first: &Value) -> u8 {
    for one in first.as_array().into_iter().flatten() {
        eprintln!("damaged: {}", text(one));
    }
    eprintln!("error: {} records or files are damaged: restore from a backup made before", damaged.unwrap_or_default());
    FAILED
}

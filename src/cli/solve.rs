//! `superko solve`: who wins a position at a komi.

use super::{Failure, PROVED, PositionFlags, SearchFlags, UNKNOWN, print_json, print_line, run};
use crate::certificate::{CertificateError, CertificateReport, Source, check_target, write_verified};
use crate::report::{Counts, SolveReport};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::time::Instant;
use superko_rules::Color;
use superko_search::{Control, ExportError, Komi, Limits, Options, Statement, Stop, solve_with};
use superko_storage::MappedTable;

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    position: PositionFlags,
    /// Half-integer added to White's score, such as 1.5 or -3.5
    #[arg(long, allow_hyphen_values = true)]
    komi: String,
    /// Skip moves of this side that rarely help it; unknown where it fails without them
    #[arg(long, value_enum, default_value_t = Prune::None)]
    prune: Prune,
    /// Write a certificate of the proof to this file (a file that is there is replaced), and have it checked; see `superko check`
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    #[command(flatten)]
    search: SearchFlags,
}

/// The side whose moves are pruned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Prune {
    Black,
    White,
    None,
}

impl From<Prune> for Option<Color> {
    fn from(prune: Prune) -> Option<Color> {
        match prune {
            Prune::Black => Some(Color::Black),
            Prune::White => Some(Color::White),
            Prune::None => None,
        }
    }
}

pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    let settings = arguments.search.settings()?;
    let komi: Komi = arguments.komi.parse().map_err(|error| Failure::bad_input(format!("--komi: {error}")))?;
    let position = arguments.position.position()?;
    if let Some(path) = &arguments.certificate {
        // Before the work, not after it.
        check_target(path).map_err(|error| Failure::bad_input(format!("--certificate {}: {error}", path.display())))?;
    }
    let table = MappedTable::anonymous(position.geometry(), settings.table_bytes)
        .map_err(|error| Failure::other(format!("--table {}: {error}", arguments.search.table)))?;
    let control = Control::default();
    let options = Options { prune: arguments.prune.into(), ..settings.options };
    let limits = Limits { expansions: settings.expansions, time: settings.time };
    let started = Instant::now();
    let label = format!("{} at komi {komi}", position.geometry().name());
    let outcome = run::search(&label, &control, || solve_with(options, &table, &position.game, komi, limits, &control))?;
    let counts = Counts::of_stats(&outcome.stats, started.elapsed().as_secs_f64());
    let mut report = SolveReport::new(&position, komi, &outcome, &counts, &table.occupancy());
    // The verdict is printed whatever becomes of its certificate.
    let mut failed = None;
    if let (Some(path), Ok((winner, _))) = (&arguments.certificate, outcome.verdict) {
        let expansions = settings.expansions.map(|limit| limit.saturating_sub(outcome.stats.expansions).max(1));
        let limits = Limits { expansions, time: settings.time.map(|limit| limit.saturating_sub(started.elapsed())) };
        let statement = Statement { game: &position.game, komi, winner };
        // Counters of its own, for the progress of the new search.
        let control = Control::default();
        let source = Source {
            table: &table,
            memory_bytes: settings.table_bytes,
            options: settings.options,
            limits,
            control: &control,
            records: &AtomicU64::new(0),
        };
        let write = || write_verified(path, &source, &statement);
        let written = run::search(&format!("certificate of {label}"), &control, write)?;
        match written {
            Ok(written) => report.certificate = Some(written),
            Err(error) => {
                let message = format!("--certificate {}: {error}", path.display());
                failed = Some(match error {
                    CertificateError::Export(ExportError::Decided) => Failure::bad_input(message),
                    CertificateError::Export(ExportError::Stopped(_)) | CertificateError::Stopped => Failure { code: UNKNOWN, message },
                    _ => Failure::other(message),
                });
            }
        }
    }
    if arguments.search.json {
        print_json(&report)?;
    } else {
        let unknown = match outcome.verdict {
            Err(Stop::Pruned) => "unknown (the pruned side failed; without pruning it may win)",
            _ => UNFINISHED,
        };
        print_line(&text(&report, unknown));
    }
    if let Some(failure) = failed {
        return Err(failure);
    }
    Ok(if outcome.verdict.is_ok() { PROVED } else { UNKNOWN })
}

/// What is said where a search ended early.
pub const UNFINISHED: &str = "unknown (limit reached or interrupted)";

/// The report for people; `unknown` says why there is no verdict.
pub fn text(report: &SolveReport, unknown: &str) -> String {
    let verdict = match &report.winner {
        Some(winner) => format!("{winner} wins"),
        None => unknown.to_owned(),
    };
    let best = report.best_move.as_ref().map_or(String::new(), |mv| format!(" with {mv}"));
    let line =
        if report.principal_variation.is_empty() { String::new() } else { format!("\nline: {}", report.principal_variation.join(" ")) };
    let certificate = report.certificate.as_ref().map_or(String::new(), |written| {
        let CertificateReport { lemmas, bytes, checker, sha256, .. } = written;
        let checked = checker.as_ref().map_or(String::new(), |checker| format!(", accepted by {checker}"));
        format!("\ncertificate: {lemmas} lemmas, {bytes} bytes{checked}, SHA-256 {sha256}")
    });
    format!(
        "{} at komi {:.1}, {} to move: {verdict}{best}\n{} expansions, {} distinct nodes, {:.2} s{line}{certificate}",
        report.board, report.komi, report.to_move, report.expansions, report.distinct_nodes, report.elapsed_seconds
    )
}

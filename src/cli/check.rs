//! `superko check`: the independent checker (`crates/check`) on a certificate.

use super::{BAD_INPUT, FAILED, Failure, PROVED, print_line, run::Progress};
use clap::Args;
use std::fs::File;
use std::path::PathBuf;
use std::time::Instant;
use superko_check::{Error, check, check_in_parallel};

#[derive(Debug, Args)]
pub struct Arguments {
    /// A certificate of `superko solve --certificate`, compressed or not
    #[arg(value_name = "CERTIFICATE")]
    file: PathBuf,
    /// Read on one thread and judge on another
    #[arg(long)]
    parallel: bool,
}

pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    let name = arguments.file.display();
    let file = File::open(&arguments.file).map_err(|error| Failure::bad_input(format!("{name}: {error}")))?;
    let started = Instant::now();
    let mut progress = Progress::new();
    let mut show = |lemmas| progress.show(|| format!("{name}: {lemmas} lemmas checked"));
    let checked = if arguments.parallel { check_in_parallel(file, &mut show) } else { check(file, &mut show) };
    drop(progress);
    match checked {
        Ok(report) => {
            print_line(&format!("{report}; checked in {:.2} s", started.elapsed().as_secs_f64()));
            Ok(PROVED)
        }
        Err(error @ Error::Invalid { .. }) => Err(Failure { code: FAILED, message: format!("{name}: {error}") }),
        Err(error @ Error::Unreadable(_)) => Err(Failure { code: BAD_INPUT, message: format!("{name}: {error}") }),
    }
}

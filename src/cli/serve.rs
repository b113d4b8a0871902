//! `superko serve`: the daemon.

use super::{Failure, PROVED};
use crate::config::Config;
use crate::lifecycle::{self, ServeError};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Arguments {
    /// Configuration file; every key has a default
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Directory of everything durable; goes before the file's data_dir
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Address and port, loopback only unless there are tokens; goes before the file's listen
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
}

pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    let mut config = match &arguments.config {
        Some(path) => Config::read(path).map_err(Failure::bad_input)?,
        None => Config::default(),
    };
    if let Some(data) = &arguments.data {
        config.data_dir.clone_from(data);
    }
    if let Some(listen) = &arguments.listen {
        config.listen.clone_from(listen);
    }
    let settings = config.settings().map_err(Failure::bad_input)?;
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_max_level(settings.log)
        .init();
    lifecycle::serve(settings).map_err(|error| match error {
        ServeError::BadInput(message) => Failure::bad_input(message),
        ServeError::Fault(message) => Failure::other(message),
    })?;
    Ok(PROVED)
}

//! `superko token`: access tokens for a server.

use super::{Failure, PROVED, print_json, print_line};
use crate::access::{Scope, check_name, digest};
use clap::{Args, Subcommand};
use rustix::rand::{GetRandomFlags, getrandom};
use serde_json::json;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a token: prints the token, then its line for the server's tokens_file
    New(New),
}

#[derive(Debug, Args)]
pub struct New {
    /// Whose token it is: letters, digits, dots, underscores and hyphens
    #[arg(long)]
    name: String,
    /// What it allows: read, submit or admin, joined by commas; each includes those before it
    #[arg(long, default_value = "read")]
    scopes: String,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

pub fn run(command: &Command) -> Result<u8, Failure> {
    let Command::New(New { name, scopes, json }) = command;
    check_name(name).map_err(|error| Failure::bad_input(format!("--{error}")))?;
    Scope::parse_list(scopes).map_err(|error| Failure::bad_input(format!("--{error}")))?;
    let mut bytes = [0u8; 32];
    // So few bytes come whole or not at all.
    let filled = getrandom(&mut bytes, GetRandomFlags::empty()).map_err(|error| Failure::other(format!("no random bytes: {error}")))?;
    assert_eq!(filled, bytes.len(), "getrandom gives up to 256 bytes at once");
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let token = format!("superko_{hex}");
    let line = format!("{name} {scopes} {}", digest(&token));
    if *json {
        print_json(&json!({"token": token, "line": line}))?;
        return Ok(PROVED);
    }
    print_line(&token);
    print_line(&line);
    eprintln!(
        "the first line is the token: keep it, it is shown only now; the second belongs in the server's tokens_file, then send SIGHUP"
    );
    Ok(PROVED)
}

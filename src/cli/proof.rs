//! `superko proof`: the proofs of a running server and their certificates.

use super::job::{Server, text};
use super::{FAILED, Failure, PROVED, print_json, print_line};
use crate::certificate::{NewFile, sha256};
use clap::{Args, Subcommand};
use serde_json::Value;
use std::fs::File;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show a proof and what is known of its certificate
    Show(One),
    /// Fetch the certificate of a proof
    Certificate(Fetch),
    /// Have the server check the certificate of a proof once more
    Verify(One),
}

#[derive(Debug, Args)]
pub struct One {
    #[command(flatten)]
    server: Server,
    /// The proof's id, such as 7-1: see `proofs` of its job
    id: String,
}

#[derive(Debug, Args)]
pub struct Fetch {
    #[command(flatten)]
    one: One,
    /// Where to write it; a file that is there is replaced
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub fn run(command: &Command) -> Result<u8, Failure> {
    match command {
        Command::Show(one) => {
            show(&one.server, &one.server.get(&one.path(""), &[])?)?;
            Ok(PROVED)
        }
        Command::Verify(one) => {
            let proof = one.server.post_slowly(&one.path("/verifications"), None)?;
            show(&one.server, &proof)?;
            Ok(if proof["certificate"]["verified"] == true { PROVED } else { FAILED })
        }
        Command::Certificate(Fetch { one, file }) => {
            let failed = |error| Failure::other(format!("{}: {error}", file.display()));
            let mut new = NewFile::beside(file).map_err(|error| Failure::bad_input(format!("{}: {error}", file.display())))?;
            let (bytes, tag) = one.server.fetch(&one.path("/certificate"), &mut new.file)?;
            let sha256 = File::open(new.path()).and_then(sha256).map_err(failed)?;
            if tag != format!("\"{sha256}\"") {
                return Err(Failure::other(format!("what came has SHA-256 {sha256}, the server's record says {tag}: have it verified")));
            }
            let proof = one.server.get(&one.path(""), &[])?;
            new.give_name(file).map_err(failed)?;
            if proof["certificate"]["verified"] == false {
                return Err(Failure::other(format!("{}: {}", file.display(), certificate(&proof).unwrap_or_default())));
            }
            print_line(&format!("{}: {bytes} bytes; superko check {} judges it", file.display(), file.display()));
            Ok(PROVED)
        }
    }
}

impl One {
    fn path(&self, rest: &str) -> String {
        // Whatever else an id may hold names no proof.
        let id: String = self.id.chars().map(|symbol| if symbol.is_ascii_alphanumeric() || symbol == '-' { symbol } else { '_' }).collect();
        format!("/v1/proofs/{id}{rest}")
    }
}

fn show(server: &Server, proof: &Value) -> Result<(), Failure> {
    if server.json {
        return print_json(proof);
    }
    print_line(&format!(
        "proof {} {} at komi {}: {} wins; {}",
        text(&proof["id"]),
        text(&proof["board"]),
        proof["komi"],
        text(&proof["winner"]),
        certificate(proof).unwrap_or_else(|| "no certificate".to_owned())
    ));
    Ok(())
}

/// What is known of a proof's certificate, in words.
pub fn certificate(proof: &Value) -> Option<String> {
    if let Some(error) = proof["certificate_error"].as_str() {
        return Some(format!("no certificate: {error}"));
    }
    let certificate = proof["certificate"].as_object()?;
    let judgement = match certificate["verified"].as_bool() {
        None => "not checked".to_owned(),
        Some(true) => format!("accepted by {}", text(&certificate["checker"])),
        Some(false) => format!("REJECTED: {}", certificate.get("error").map(text).unwrap_or_default()),
    };
    Some(format!(
        "certificate of {} lemmas, {} bytes, {judgement}, SHA-256 {}",
        text(&certificate["lemmas"]),
        text(&certificate["bytes"]),
        text(&certificate["sha256"])
    ))
}

//! `superko openapi`: the description of the HTTP API, as a running server sends it.

use super::{Failure, PROVED, print_line};

pub fn run() -> Result<u8, Failure> {
    let text = serde_json::to_string_pretty(&crate::http::document()).map_err(|error| Failure::other(error.to_string()))?;
    print_line(&text);
    Ok(PROVED)
}

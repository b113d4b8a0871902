//! Superko: a proof server for small-board Go under positional superko. The daemon, the command line and the client.
#![forbid(unsafe_code)]

pub mod access;
pub mod backup;
pub mod campaigns;
pub mod certificate;
pub mod cli;
pub mod config;
pub mod engine;
pub mod events;
pub mod http;
pub mod jobs;
pub mod lifecycle;
pub mod metrics;
pub mod position;
pub mod proofs;
pub mod pulse;
pub mod report;
pub mod request;
pub mod scheduler;
pub mod schema;
pub mod service;
pub mod statistics;
pub mod strict_json;
pub mod units;

pub use superko_search::STACK_BYTES;

//! The daemon's configuration: `config/superko.toml`, then the flags of `superko serve`.

use crate::access::{Access, Class, RateLimits, Tokens};
use crate::units;
use axum::http::{HeaderValue, Uri};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use superko_search::Prior;
use tracing::level_filters::LevelFilter;

/// Every key of the configuration file. `config/superko.toml` says what each means and when to change it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Address of the HTTP server; loopback only without tokens.
    pub listen: String,
    /// File of the access tokens.
    pub tokens_file: String,
    /// Whether reading needs no token.
    pub read_open: bool,
    /// Origins of web pages that may use the API.
    pub cors_origins: Vec<String>,
    /// Look-ups of one client.
    pub rate_look_ups_per_minute: u32,
    /// Submissions and changes of one client.
    pub rate_submissions_per_minute: u32,
    /// Certificates fetched or verified by one client.
    pub rate_certificates_per_minute: u32,
    /// Administration by one client.
    pub rate_admin_per_minute: u32,
    /// Most open connections.
    pub max_connections: usize,
    /// Longest time for a request's head, for its body, and between two requests of a connection.
    pub request_timeout_seconds: u64,
    /// Directory of the store and the tables.
    pub data_dir: PathBuf,
    /// Size of the mapped table.
    pub table: String,
    /// Memory for the lemmas of a certificate.
    pub certificate_memory: String,
    /// Search threads of a job.
    pub threads: usize,
    /// First numbers of positions.
    pub prior: String,
    /// Longest time between two checkpoints while a job runs.
    pub checkpoint_interval_seconds: u64,
    /// Free disk space that is kept for what is acknowledged already.
    pub min_free: String,
    /// Longest time that a job is searched while others of its priority wait.
    pub turn_seconds: u64,
    /// Most open jobs.
    pub max_queue: usize,
    /// Largest request body.
    pub max_body_bytes: usize,
    /// Least severity that is logged.
    pub log: String,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            listen: "127.0.0.1:7465".to_owned(),
            tokens_file: String::new(),
            read_open: false,
            cors_origins: Vec::new(),
            rate_look_ups_per_minute: 60_000,
            rate_submissions_per_minute: 12_000,
            rate_certificates_per_minute: 1200,
            rate_admin_per_minute: 600,
            max_connections: 512,
            request_timeout_seconds: 30,
            data_dir: PathBuf::from("data"),
            table: "1GiB".to_owned(),
            certificate_memory: "1GiB".to_owned(),
            threads: 1,
            prior: "builtin".to_owned(),
            checkpoint_interval_seconds: 60,
            min_free: "256MiB".to_owned(),
            turn_seconds: 60,
            max_queue: 1000,
            max_body_bytes: 1 << 20,
            log: "info".to_owned(),
        }
    }
}

/// The configuration, checked and in the types that the daemon works with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Who may do what, and how often.
    pub access: Access,
    /// Origins of web pages that may use the API.
    pub cors_origins: Arc<[HeaderValue]>,
    /// Most open connections.
    pub max_connections: usize,
    /// Longest time for a request's head, for its body, and between two requests of a connection.
    pub request_timeout: Duration,
    /// Where everything durable lies.
    pub data_dir: PathBuf,
    /// Size of the mapped table.
    pub table_bytes: u64,
    /// Bytes for the lemmas of a certificate.
    pub certificate_bytes: u64,
    /// Search threads of a job.
    pub threads: usize,
    /// First numbers of positions.
    pub prior: &'static Prior,
    /// Time between checkpoints.
    pub checkpoint_interval: Duration,
    /// Free disk space that is kept for what is acknowledged already.
    pub min_free_bytes: u64,
    /// Longest turn of a job while others wait.
    pub turn: Duration,
    /// Most open jobs.
    pub max_queue: usize,
    /// Largest request body.
    pub max_body_bytes: usize,
    /// What is logged.
    pub log: LevelFilter,
}

impl Config {
    /// Reads a file; keys that it leaves out keep their defaults, unknown ones are refused.
    pub fn read(path: &Path) -> Result<Config, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("--config {}: cannot be read: {error}", path.display()))?;
        Config::parse(&text).map_err(|error| format!("--config {}: {error}", path.display()))
    }

    fn parse(text: &str) -> Result<Config, String> {
        toml::from_str(text).map_err(|error| error.to_string().trim().to_owned())
    }

    /// Checks every value; the error names the key, the value and what was expected.
    pub fn settings(&self) -> Result<Settings, String> {
        let listen: SocketAddr = self
            .listen
            .parse()
            .map_err(|_| format!("listen {:?} is not valid: expected ADDRESS:PORT such as 127.0.0.1:7465", self.listen))?;
        let tokens = Tokens::new(tokens_path(&self.tokens_file)?, self.read_open)?;
        if !listen.ip().is_loopback() && !tokens.are_asked_for() {
            return Err(format!(
                "listen {listen} is not a loopback address, and there are no access tokens: set tokens_file (superko token new makes a token), \
                 or use 127.0.0.1:7465, which serves this machine only"
            ));
        }
        let cors_origins = self.cors_origins.iter().map(|origin| read_origin(origin)).collect::<Result<_, _>>()?;
        let rates = Class::ALL.map(|class| match class {
            Class::LookUp => self.rate_look_ups_per_minute,
            Class::Submit => self.rate_submissions_per_minute,
            Class::Certificate => self.rate_certificates_per_minute,
            Class::Admin => self.rate_admin_per_minute,
        });
        if self.max_connections == 0 {
            return Err("max_connections 0 is not valid: expected at least 1".to_owned());
        }
        if !(1..=3600).contains(&self.request_timeout_seconds) {
            return Err(format!("request_timeout_seconds {} is not valid: expected 1 to 3600", self.request_timeout_seconds));
        }
        let size = |name: &str, text: &str| {
            let bytes = units::parse_size(text).and_then(|bytes| units::check_table_size(bytes).map(|()| bytes));
            bytes.map_err(|error| format!("{name} {text}: {error}"))
        };
        let table_bytes = size("table", &self.table)?;
        let certificate_bytes = size("certificate_memory", &self.certificate_memory)?;
        units::check_threads(self.threads)?;
        let prior = Prior::named(&self.prior).map_err(|error| format!("prior {:?}: {error}", self.prior))?;
        if !(1..=86_400).contains(&self.checkpoint_interval_seconds) {
            return Err(format!("checkpoint_interval_seconds {} is not valid: expected 1 to 86400", self.checkpoint_interval_seconds));
        }
        let min_free_bytes = units::parse_size(&self.min_free).map_err(|error| format!("min_free: {error}"))?;
        if !(1..=86_400).contains(&self.turn_seconds) {
            return Err(format!("turn_seconds {} is not valid: expected 1 to 86400", self.turn_seconds));
        }
        if self.max_queue == 0 {
            return Err("max_queue 0 is not valid: expected at least 1".to_owned());
        }
        if !(1024..=1 << 30).contains(&self.max_body_bytes) {
            return Err(format!("max_body_bytes {} is not valid: expected 1024 to 1073741824", self.max_body_bytes));
        }
        let log = match self.log.as_str() {
            "error" => LevelFilter::ERROR,
            "warn" => LevelFilter::WARN,
            "info" => LevelFilter::INFO,
            "debug" => LevelFilter::DEBUG,
            "trace" => LevelFilter::TRACE,
            other => return Err(format!("log {other:?} is not valid: expected error, warn, info, debug or trace")),
        };
        Ok(Settings {
            listen,
            access: Access { tokens: Arc::new(tokens), limits: Arc::new(RateLimits::new(rates)) },
            cors_origins,
            max_connections: self.max_connections,
            request_timeout: Duration::from_secs(self.request_timeout_seconds),
            data_dir: self.data_dir.clone(),
            table_bytes,
            certificate_bytes,
            threads: self.threads,
            prior,
            checkpoint_interval: Duration::from_secs(self.checkpoint_interval_seconds),
            min_free_bytes,
            turn: Duration::from_secs(self.turn_seconds),
            max_queue: self.max_queue,
            max_body_bytes: self.max_body_bytes,
            log,
        })
    }
}

/// Path of the tokens file; systemd says in a variable where the credentials of a service are.
fn tokens_path(text: &str) -> Result<Option<PathBuf>, String> {
    const CREDENTIALS: &str = "${CREDENTIALS_DIRECTORY}/";
    let Some(name) = text.strip_prefix(CREDENTIALS) else { return Ok(Some(PathBuf::from(text)).filter(|_| !text.is_empty())) };
    let directory = std::env::var_os("CREDENTIALS_DIRECTORY")
        .ok_or_else(|| format!("tokens_file {text:?}: CREDENTIALS_DIRECTORY is not set: expected a unit with LoadCredential="))?;
    Ok(Some(Path::new(&directory).join(name)))
}

/// An origin as browsers send it.
fn read_origin(text: &str) -> Result<HeaderValue, String> {
    let error =
        || format!("cors_origins {text:?} is not valid: expected the scheme, host and port of a page, such as \"https://go.example:8443\"");
    let uri: Uri = text.parse().map_err(|_| error())?;
    let host = uri.authority().filter(|authority| !authority.as_str().contains('@')).ok_or_else(error)?;
    let origin = format!("{}://{host}", uri.scheme_str().filter(|scheme| ["http", "https"].contains(scheme)).ok_or_else(error)?);
    if origin != text || text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Err(error());
    }
    HeaderValue::from_str(text).map_err(|_| error())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = include_str!("../config/superko.toml");

    #[test]
    fn the_file_holds_every_key_at_its_default() {
        assert_eq!(Config::parse(FILE), Ok(Config::default()));
        let defaults = toml::Table::try_from(Config::default()).expect("plain values");
        let in_file: toml::Table = FILE.parse().expect("TOML");
        assert_eq!(in_file.keys().collect::<Vec<_>>(), defaults.keys().collect::<Vec<_>>());
        for key in defaults.keys() {
            let comment: Vec<&str> = FILE.lines().take_while(|line| !line.starts_with(&format!("{key} ="))).collect();
            let comment = comment.rsplit(|line| line.is_empty()).next().expect("a paragraph").join(" ");
            for word in ["Default:", "Unit:", "Change it"] {
                assert!(comment.contains(word), "{key}: the comment lacks {word:?}");
            }
        }
    }

    #[test]
    fn bad_values_are_named() {
        for (text, words) in [
            ("lisen = \"127.0.0.1:1\"", "lisen"),
            ("max_queue = \"many\"", "max_queue"),
            ("listen = \"0.0.0.0:7465\"", "0.0.0.0:7465 is not a loopback"),
            ("listen = \"0.0.0.0:7465\"\nread_open = true", "tokens_file"),
            ("tokens_file = \"no-such-file\"", "tokens_file no-such-file"),
            ("tokens_file = \"Cargo.toml\"", "tokens_file Cargo.toml: line 1"),
            ("tokens_file = \"${CREDENTIALS_DIRECTORY}/tokens\"", "LoadCredential"),
            ("cors_origins = [\"*\"]", "cors_origins \"*\""),
            ("cors_origins = [\"https://go.example/\"]", "https://go.example/"),
            ("cors_origins = [\"go.example\"]", "go.example"),
            ("cors_origins = [\"https://Go.example\"]", "Go.example"),
            ("rate_look_ups_per_minute = -1", "rate_look_ups_per_minute"),
            ("max_connections = 0", "max_connections 0"),
            ("request_timeout_seconds = 0", "request_timeout_seconds 0"),
            ("listen = \"localhost\"", "localhost"),
            ("table = \"1000GB\"", "1000GB"),
            ("table = \"900000TiB\"", "memory"),
            ("certificate_memory = \"1KiB\"", "certificate_memory 1KiB"),
            ("threads = 0", "threads 0"),
            ("threads = 257", "threads 257"),
            ("prior = \"Cargo.toml\"", "Cargo.toml"),
            ("prior = \"no-such-file\"", "no-such-file"),
            ("checkpoint_interval_seconds = 0", "checkpoint_interval_seconds 0"),
            ("min_free = \"0\"", "min_free: \"0\""),
            ("turn_seconds = 0", "turn_seconds 0"),
            ("max_queue = 0", "max_queue 0"),
            ("max_body_bytes = 1", "max_body_bytes 1"),
            ("log = \"loud\"", "loud"),
        ] {
            let error = Config::parse(text).and_then(|config| config.settings().map(drop)).expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}

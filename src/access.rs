//! Who may do what, and how often: access tokens with scopes, and rate limits by cost class.

use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use sha2::{Digest, Sha256};
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use subtle::ConstantTimeEq;

/// What a request needs, and a token allows. Each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Look at everything.
    Read,
    /// Submit and change jobs, have certificates checked.
    Submit,
    /// What concerns the daemon as a whole.
    Admin,
}

impl Scope {
    /// Every scope, each including those before it.
    pub const ALL: [Scope; 3] = [Scope::Read, Scope::Submit, Scope::Admin];

    /// As in the tokens file.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Submit => "submit",
            Scope::Admin => "admin",
        }
    }

    /// Reads a list such as `read,submit`: the greatest of them, which includes the others.
    pub fn parse_list(text: &str) -> Result<Scope, String> {
        let mut greatest = None;
        for name in text.split(',') {
            let scope = Scope::ALL.into_iter().find(|scope| scope.name() == name);
            let scope = scope.ok_or_else(|| format!("scopes {text:?} are not valid: expected read, submit or admin, joined by commas"))?;
            greatest = greatest.max(Some(scope));
        }
        greatest.ok_or_else(|| "no scope".to_owned())
    }
}

/// Longest name of a token.
const MAX_NAME: usize = 64;

/// Refuses names that would not survive the tokens file or a log line.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_good = |symbol: char| symbol.is_ascii_alphanumeric() || "._-".contains(symbol);
    if (1..=MAX_NAME).contains(&name.len()) && name.chars().all(is_good) {
        return Ok(());
    }
    Err(format!("name {name:?} is not valid: expected 1 to {MAX_NAME} letters, digits, dots, underscores and hyphens"))
}

/// SHA-256 of a token in hexadecimal, as it stands in the tokens file.
pub fn digest(secret: &str) -> String {
    Sha256::digest(secret).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[derive(Debug)]
struct Token {
    name: String,
    scope: Scope,
    /// In hexadecimal. The token itself is nowhere kept.
    digest: String,
}

/// The lines of a tokens file: a name, the scopes, the SHA-256 of the token; empty lines and those that begin with `#` say nothing.
fn parse_tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens: Vec<Token> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let error = |what: String| format!("line {}: {what}", index + 1);
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, scopes, digest) = match words[..] {
            [] => continue,
            [first, ..] if first.starts_with('#') => continue,
            [name, scopes, digest] => (name, scopes, digest),
            _ => return Err(error("expected a name, scopes and a SHA-256, as `superko token new` prints them".to_owned())),
        };
        check_name(name).map_err(error)?;
        let scope = Scope::parse_list(scopes).map_err(error)?;
        if digest.len() != 64 || !digest.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)) {
            // Not shown: it may be a token put there by mistake.
            return Err(error(format!("the third word of {name} is no SHA-256: expected 64 digits 0 to 9 and a to f")));
        }
        if tokens.iter().any(|token| token.name == name || token.digest == digest) {
            return Err(error(format!("{name} or its SHA-256 is there twice: expected one line a token")));
        }
        tokens.push(Token { name: name.to_owned(), scope, digest: digest.to_owned() });
    }
    if tokens.is_empty() {
        return Err("no token in it: add the line that `superko token new` prints".to_owned());
    }
    Ok(tokens)
}

/// The access tokens of the daemon.
#[derive(Debug)]
pub struct Tokens {
    /// None: everyone who can connect may do everything.
    file: Option<PathBuf>,
    tokens: RwLock<Vec<Token>>,
    read_open: bool,
}

/// Why a request may not be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It needs a token and has none.
    NoToken,
    /// What it has is no token of ours.
    UnknownToken,
    /// Its token does not allow it.
    NotEnough,
}

impl Tokens {
    /// Reads `file`; without one no token is asked for. With `read_open` reading needs none.
    pub fn new(file: Option<PathBuf>, read_open: bool) -> Result<Tokens, String> {
        let tokens = Tokens { file, tokens: RwLock::default(), read_open };
        tokens.reload()?;
        Ok(tokens)
    }

    /// Reads the file again; how many tokens there are. If it does not read, the tokens stay as they were.
    pub fn reload(&self) -> Result<usize, String> {
        let Some(file) = &self.file else { return Ok(0) };
        let text = std::fs::read_to_string(file).map_err(|error| error.to_string());
        let tokens = text.and_then(|text| parse_tokens(&text)).map_err(|error| format!("tokens_file {}: {error}", file.display()))?;
        let count = tokens.len();
        *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = tokens;
        Ok(count)
    }

    /// Whether tokens are asked for at all.
    pub fn are_asked_for(&self) -> bool {
        self.file.is_some()
    }

    /// The name and scope of a token. Takes as long for any other text of the same length.
    fn find(&self, secret: &str) -> Option<(String, Scope)> {
        let digest = digest(secret);
        let mut found = None;
        for token in self.tokens.read().unwrap_or_else(PoisonError::into_inner).iter() {
            if token.digest.as_bytes().ct_eq(digest.as_bytes()).into() {
                found = Some((token.name.clone(), token.scope));
            }
        }
        found
    }

    /// Whether a request with this token (or none) may have what needs `scope`: the name of the token, and the verdict.
    pub fn judge(&self, secret: Option<&str>, scope: Scope) -> (Option<String>, Result<(), Refusal>) {
        if !self.are_asked_for() {
            return (None, Ok(()));
        }
        match secret {
            None if self.read_open && scope == Scope::Read => (None, Ok(())),
            None => (None, Err(Refusal::NoToken)),
            Some(secret) => match self.find(secret) {
                None => (None, Err(Refusal::UnknownToken)),
                Some((name, allowed)) => (Some(name), if allowed >= scope { Ok(()) } else { Err(Refusal::NotEnough) }),
            },
        }
    }
}

/// What a request costs. Each class has a limit of its own, so that look-ups do not use up what certificates may take, or the reverse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Reads what is in memory or one record.
    LookUp,
    /// Writes to the store, and may cost days of search.
    Submit,
    /// Reads, hashes or checks a certificate file.
    Certificate,
    /// Stops the solver for a moment.
    Admin,
}

impl Class {
    /// Every class, in the order of the limits given to [`RateLimits::new`].
    pub const ALL: [Class; 4] = [Class::LookUp, Class::Submit, Class::Certificate, Class::Admin];

    /// Name of the limit in answers.
    pub fn name(self) -> &'static str {
        match self {
            Class::LookUp => "look-up",
            Class::Submit => "submit",
            Class::Certificate => "certificate",
            Class::Admin => "admin",
        }
    }

    /// The configuration's key of its limit.
    pub fn key(self) -> &'static str {
        match self {
            Class::LookUp => "rate_look_ups_per_minute",
            Class::Submit => "rate_submissions_per_minute",
            Class::Certificate => "rate_certificates_per_minute",
            Class::Admin => "rate_admin_per_minute",
        }
    }
}

/// Who uses up a limit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Client {
    /// The holder of the token of this name.
    Token(String),
    /// Whoever connects from an address; of IPv6 the network of 64 bits, which is what one customer has.
    Peer(IpAddr),
    /// All addresses that came when there were too many to tell apart.
    Crowd,
}

impl Client {
    /// The client at an address.
    pub fn at(address: IpAddr) -> Client {
        Client::Peer(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
            address => address,
        })
    }
}

impl std::fmt::Display for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Client::Token(name) => write!(f, "token {name}"),
            Client::Peer(IpAddr::V6(address)) if !address.is_loopback() => write!(f, "{address}/64"),
            Client::Peer(address) => write!(f, "{address}"),
            Client::Crowd => f.write_str("all addresses together, as there are too many"),
        }
    }
}

/// Most clients that a limit tells apart; bounds its memory.
const MAX_CLIENTS: usize = 10_000;

type Limiter = RateLimiter<Client, HashMapStateStore<Client>, DefaultClock, StateInformationMiddleware>;

/// A token bucket for each client and cost class: a minute's worth at once, then as it fills again.
#[derive(Debug)]
pub struct RateLimits(Vec<Option<(NonZeroU32, Limiter)>>);

/// What a limit says to a request.
#[derive(Debug)]
pub struct Allowance {
    /// Requests a minute.
    pub per_minute: u32,
    /// How many more may come at once.
    pub remaining: u32,
    /// If it came too soon: when the next may come, and whom the limit is for.
    pub refused: Option<(Duration, Client)>,
}

impl RateLimits {
    /// Requests a minute for each of [`Class::ALL`]; 0 is no limit.
    pub fn new(per_minute: [u32; 4]) -> RateLimits {
        let limiter = |quota| RateLimiter::hashmap(Quota::per_minute(quota)).with_middleware();
        RateLimits(per_minute.map(|number| NonZeroU32::new(number).map(|quota| (quota, limiter(quota)))).into())
    }

    /// Counts a request; `None` if the class has no limit.
    pub fn count(&self, class: Class, client: Client) -> Option<Allowance> {
        let (quota, limiter) = self.0.get(class as usize)?.as_ref()?;
        let client = match client {
            Client::Peer(_) if limiter.len() >= MAX_CLIENTS => {
                // Those whose bucket is full again need not be remembered.
                limiter.retain_recent();
                if limiter.len() >= MAX_CLIENTS { Client::Crowd } else { client }
            }
            client => client,
        };
        let per_minute = quota.get();
        Some(match limiter.check_key(&client) {
            Ok(state) => Allowance { per_minute, remaining: state.remaining_burst_capacity(), refused: None },
            Err(not_until) => {
                let wait = not_until.wait_time_from(DefaultClock::default().now());
                Allowance { per_minute, remaining: 0, refused: Some((wait, client)) }
            }
        })
    }
}

/// Tokens and rate limits together.
#[derive(Clone, Debug)]
pub struct Access {
    /// Who may do what.
    pub tokens: Arc<Tokens>,
    /// How often.
    pub limits: Arc<RateLimits>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tokens_file_is_read_or_refused_by_line() {
        let hash = |text| digest(text);
        let good = format!("# who may\n\nalice read,submit {}\n  bob   admin {}\n", hash("a"), hash("b"));
        let tokens = parse_tokens(&good).expect("good");
        let read: Vec<(&str, Scope)> = tokens.iter().map(|token| (token.name.as_str(), token.scope)).collect();
        assert_eq!(read, [("alice", Scope::Submit), ("bob", Scope::Admin)]);
        for (text, words) in [
            (String::new(), "no token"),
            ("# only this".to_owned(), "no token"),
            (format!("\nalice {}", hash("a")), "line 2: expected a name"),
            (format!("al/ice read {}", hash("a")), "\"al/ice\""),
            (format!("alice write {}", hash("a")), "\"write\""),
            (format!("alice read, {}", hash("a")), "\"read,\""),
            (format!("alice read {}", hash("a").to_uppercase()), "no SHA-256"),
            ("alice read superko_0123".to_owned(), "no SHA-256"),
            (format!("alice read {}\nalice read {}", hash("a"), hash("b")), "line 2: alice"),
            (format!("alice read {0}\nbob read {0}", hash("a")), "line 2: bob"),
        ] {
            let error = parse_tokens(&text).expect_err(&text);
            assert!(error.contains(words) && !error.contains("superko_0123"), "{text}: {error}");
        }
    }

    #[test]
    fn scopes_include_lesser_ones() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("tokens");
        let text = format!("r read {}\ns submit {}\na admin {}\n", digest("r"), digest("s"), digest("a"));
        std::fs::write(&file, text).expect("written");
        let tokens = Tokens::new(Some(file.clone()), false).expect("reads");
        for (secret, allowed) in [("r", 1), ("s", 2), ("a", 3)] {
            for (index, scope) in Scope::ALL.into_iter().enumerate() {
                let verdict = tokens.judge(Some(secret), scope).1;
                assert_eq!(verdict, if index < allowed { Ok(()) } else { Err(Refusal::NotEnough) }, "{secret} {scope:?}");
            }
        }
        assert_eq!(tokens.judge(Some("x"), Scope::Read), (None, Err(Refusal::UnknownToken)));
        assert_eq!(tokens.judge(None, Scope::Read), (None, Err(Refusal::NoToken)));
        let open = Tokens::new(Some(file), true).expect("reads");
        assert_eq!(open.judge(None, Scope::Read), (None, Ok(())));
        assert_eq!(open.judge(Some("x"), Scope::Read).1, Err(Refusal::UnknownToken), "a wrong token is told");
        assert_eq!(open.judge(None, Scope::Submit).1, Err(Refusal::NoToken));
        assert_eq!(Tokens::new(None, false).expect("none").judge(None, Scope::Admin), (None, Ok(())));
    }

    #[test]
    fn buckets_are_apart_and_bounded() {
        let limits = RateLimits::new([2, 1, 0, 1]);
        let client = |number: u32| Client::at(IpAddr::V4(number.into()));
        let refused = |class, client| limits.count(class, client).expect("a limit").refused.is_some();
        assert_eq!([1, 2, 3].map(|_| refused(Class::LookUp, client(1))), [false, false, true]);
        assert!(!refused(Class::LookUp, client(2)), "another client");
        assert!(!refused(Class::LookUp, Client::Token("x".to_owned())), "a token, wherever it comes from");
        assert!(!refused(Class::Submit, client(1)), "another class");
        assert!(limits.count(Class::Certificate, client(1)).is_none(), "0 is no limit");
        let mapped = "::ffff:0.0.0.1".parse().expect("an address");
        assert!(refused(Class::Submit, Client::at(mapped)), "the same address in another form");
        for number in 0..2 * MAX_CLIENTS as u32 {
            limits.count(Class::LookUp, client(number));
        }
        let kept = limits.0[Class::LookUp as usize].as_ref().expect("a limit").1.len();
        assert!(kept <= MAX_CLIENTS + 2, "{kept} clients are kept");
        assert!(refused(Class::LookUp, client(u32::MAX)), "past the bound addresses share one bucket");
    }

    #[test]
    fn one_customer_has_one_bucket() {
        let at = |text: &str| Client::at(text.parse().expect("an address"));
        assert_eq!(at("2001:db8::1"), at("2001:db8::ffff:1"));
        assert_ne!(at("2001:db8::1"), at("2001:db8:0:1::1"));
        assert_eq!(at("2001:db8::1").to_string(), "2001:db8::/64");
    }
}

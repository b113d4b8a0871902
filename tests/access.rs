//! Who may do what, and how often: tokens, rate limits, pages of other origins, slow clients, and the ids of requests.

mod common;

use common::{Answer, CONFIG, Daemon, superko, wait_for};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

const JSON: (&str, &str) = ("content-type", "application/json");

/// A new token: the token and its line for the tokens file.
fn new_token(name: &str, scopes: &str) -> (String, String) {
    let made = superko(&["token", "new", "--name", name, "--scopes", scopes]);
    assert!(made.status.success(), "{made:?}");
    let text = String::from_utf8(made.stdout).expect("UTF-8");
    let [token, line] = text.lines().collect::<Vec<_>>()[..] else { panic!("a token and a line: {text}") };
    assert!(line.starts_with(&format!("{name} {scopes} ")) && !line.contains(token), "{line}");
    (token.to_owned(), line.to_owned())
}

/// Tokens for all three scopes in a file, and the configuration that names it.
struct Tokens {
    read: String,
    submit: String,
    admin: String,
    file: PathBuf,
    config: String,
}

impl Tokens {
    fn new(dir: &Path) -> Tokens {
        let [(read, line_1), (submit, line_2), (admin, line_3)] =
            [("r", "read"), ("s", "read,submit"), ("a", "admin")].map(|(name, scopes)| new_token(name, scopes));
        let file = dir.join("tokens");
        std::fs::write(&file, format!("# for a test\n{line_1}\n{line_2}\n\n{line_3}\n")).expect("the tokens");
        let config = format!("{CONFIG}tokens_file = {:?}\n", file.to_str().expect("UTF-8"));
        Tokens { read, submit, admin, file, config }
    }
}

/// A request with a token.
fn ask(daemon: &Daemon, token: &str, method: &str, path: &str) -> Answer {
    let authorization = format!("Bearer {token}");
    let body: &[u8] = if (method, path) == ("POST", "/v1/jobs") { br#"{"kind":"value","board":"2x2"}"# } else { b"" };
    daemon.request(method, path, &[("authorization", &authorization), JSON], body)
}

fn status(daemon: &Daemon, token: &str, method: &str, path: &str) -> (u16, String) {
    let answer = ask(daemon, token, method, path);
    (answer.status, answer.json["code"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn tokens_allow_what_their_scopes_say() {
    let dir = tempfile::tempdir().expect("a directory");
    let tokens = Tokens::new(dir.path());
    let daemon = Daemon::start_with(dir.path(), &tokens.config);
    let none = daemon.request("GET", "/v1/jobs", &[], b"");
    assert_eq!(
        (none.status, &none.json["code"], none.header("www-authenticate")),
        (401, &json!("token_missing"), Some("Bearer realm=\"superko\""))
    );
    let wrong = ask(&daemon, "superko_0123", "GET", "/v1/jobs");
    assert_eq!((wrong.status, &wrong.json["code"]), (401, &json!("token_unknown")), "{wrong:?}");
    assert!(wrong.header("www-authenticate").is_some_and(|value| value.contains("error=\"invalid_token\"")), "{wrong:?}");
    for headers in [
        &[("authorization", format!("Basic {}", tokens.admin))][..],
        &[("authorization", tokens.admin.clone())],
        &[("authorization", format!("Bearer {}", tokens.admin)), ("authorization", format!("Bearer {}", tokens.admin))],
    ] {
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(daemon.request("GET", "/v1/jobs", &headers, b"").status, 401, "{headers:?}");
    }
    // Never in a query: addresses end up in logs.
    for name in ["token", "access_token", "authorization"] {
        assert_eq!(daemon.request("GET", &format!("/v1/jobs?{name}={}", tokens.admin), &[], b"").status, 401, "{name}");
    }
    let body = br#"{"kind":"value","board":"2x2"}"#;
    assert_eq!(daemon.request("POST", "/v1/jobs", &[JSON], body).status, 401);
    let refused = ask(&daemon, &tokens.read, "POST", "/v1/jobs");
    assert_eq!((refused.status, &refused.json["code"]), (403, &json!("insufficient_scope")), "{refused:?}");
    assert!(refused.header("www-authenticate").is_some_and(|value| value.contains("scope=\"submit\"")), "{refused:?}");
    let jobs = ask(&daemon, &tokens.read, "GET", "/v1/jobs");
    assert_eq!((jobs.status, &jobs.json["jobs"]), (200, &json!([])), "what was refused is not there");

    for (token, method, path, wanted) in [
        (&tokens.read, "GET", "/v1/positions?board=2x2", 200),
        (&tokens.read, "POST", "/v1/positions", 400),
        (&tokens.read, "GET", "/v1/nothing", 404),
        (&tokens.read, "POST", "/v1/proofs/1-1/verifications", 403),
        (&tokens.submit, "POST", "/v1/jobs", 202),
        (&tokens.submit, "GET", "/v1/jobs/1", 200),
        (&tokens.submit, "POST", "/v1/admin/checkpoint", 403),
        (&tokens.read, "POST", "/v1/admin/checkpoint", 403),
        (&tokens.admin, "POST", "/v1/admin/checkpoint", 200),
        (&tokens.admin, "POST", "/v1/jobs", 202),
    ] {
        assert_eq!(status(&daemon, token, method, path).0, wanted, "{method} {path}");
    }
    for path in ["/healthz", "/readyz", "/v1/openapi.json"] {
        assert_eq!(daemon.request("GET", path, &[], b"").status, 200, "{path} is open");
    }
    assert_eq!(daemon.request("GET", "/metrics", &[], b"").status, 401);
    for secret in [&tokens.read, &tokens.submit, &tokens.admin] {
        assert!(!daemon.log().contains(secret.as_str()), "a token is in the log");
    }
}

#[test]
fn reading_may_be_open() {
    let dir = tempfile::tempdir().expect("a directory");
    let tokens = Tokens::new(dir.path());
    // Tokens are what it takes to listen on another address than loopback.
    let daemon = Daemon::start_on(dir.path(), &format!("{}read_open = true\n", tokens.config), "0.0.0.0:0");
    assert_eq!(daemon.get("/v1/jobs").0, 200);
    assert!(daemon.metrics().contains("superko_"));
    assert_eq!(status(&daemon, "superko_0123", "GET", "/v1/jobs"), (401, "token_unknown".to_owned()), "a wrong token is told");
    let (code, problem) = daemon.post("/v1/jobs", &json!({"kind": "value", "board": "2x2"}));
    assert_eq!((code, &problem["code"]), (401, &json!("token_missing")), "{problem}");
    assert_eq!(daemon.request("POST", "/v1/admin/checkpoint", &[], b"").status, 401);
    assert_eq!(status(&daemon, &tokens.submit, "POST", "/v1/jobs").0, 202);
}

#[test]
fn a_hangup_reads_the_tokens_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let tokens = Tokens::new(dir.path());
    let daemon = Daemon::start_with(dir.path(), &tokens.config);
    let hang_up = |text: &str, outcome: &str| {
        let before = daemon.log().matches(outcome).count();
        std::fs::write(&tokens.file, text).expect("the tokens");
        daemon.signal("HUP");
        wait_for(outcome, 60, || (daemon.log().matches(outcome).count() > before).then_some(()));
    };
    let (late, line) = new_token("late", "submit");
    assert_eq!(status(&daemon, &late, "GET", "/v1/jobs").0, 401);
    hang_up(&line, "tokens were read again");
    assert_eq!(status(&daemon, &late, "POST", "/v1/jobs").0, 202);
    assert_eq!(status(&daemon, &tokens.admin, "GET", "/v1/jobs").0, 401, "what is no more in the file counts no more");
    hang_up("late submit", "tokens could not be read");
    assert_eq!(status(&daemon, &late, "GET", "/v1/jobs").0, 200, "a file that does not read changes nothing");
    std::fs::remove_file(&tokens.file).expect("removed");
    daemon.signal("HUP");
    wait_for("second error", 60, || (daemon.log().matches("tokens could not be read").count() > 1).then_some(()));
    assert_eq!(status(&daemon, &late, "GET", "/v1/jobs").0, 200);
}

#[test]
fn the_client_sends_its_token() {
    let dir = tempfile::tempdir().expect("a directory");
    let tokens = Tokens::new(dir.path());
    let daemon = Daemon::start_with(dir.path(), &tokens.config);
    let client = |arguments: &[&str], token: Option<&str>| -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_superko"));
        command.args(arguments).args(["--server", &daemon.url("")]).env_remove("SUPERKO_TOKEN");
        command.envs(token.map(|token| ("SUPERKO_TOKEN", token))).output().expect("the program starts")
    };
    let submit = ["job", "submit", "--board", "2x2", "--komi", "0.5", "--certificate", "--verify", "--wait"];
    let refused = client(&submit, None);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{error}");
    assert!(error.contains("401") && error.contains("SUPERKO_TOKEN"), "{error}");
    assert!(client(&submit, Some(&tokens.submit)).status.success());
    let file = dir.path().join("token");
    std::fs::write(&file, format!("{}\n", tokens.read)).expect("the token");
    let file = file.to_str().expect("UTF-8");
    let out = dir.path().join("x.sgc");
    assert!(client(&["proof", "certificate", "1-1", out.to_str().expect("UTF-8"), "--token-file", file], None).status.success());
    let forbidden = client(&["proof", "verify", "1-1", "--token-file", file], Some(&tokens.admin));
    assert!(String::from_utf8_lossy(&forbidden.stderr).contains("403"), "the file goes before the variable: {forbidden:?}");
    for (arguments, token, words) in [
        (&["job", "list", "--token-file", "no-such-file"][..], None, "no-such-file"),
        (&["job", "list"], Some("two words"), "SUPERKO_TOKEN"),
    ] {
        let bad = client(arguments, token);
        assert_eq!(bad.status.code(), Some(2), "{bad:?}");
        assert!(String::from_utf8_lossy(&bad.stderr).contains(words), "{bad:?}");
    }
    for arguments in [&["--name", "a b"][..], &["--name", "a", "--scopes", "write"], &["--name", "a", "--scopes", ""]] {
        assert_eq!(superko(&[&["token", "new"], arguments].concat()).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn limits_are_told_and_kept_apart() {
    let dir = tempfile::tempdir().expect("a directory");
    let tokens = Tokens::new(dir.path());
    let limits = "rate_look_ups_per_minute = 3\nrate_submissions_per_minute = 1\nrate_certificates_per_minute = 0\nread_open = true\n";
    let daemon = Daemon::start_with(dir.path(), &format!("{}{limits}", tokens.config));
    for left in ["2", "1", "0"] {
        let answer = ask(&daemon, &tokens.read, "GET", "/v1/jobs");
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.header("ratelimit-policy"), Some("\"look-up\";q=3;w=60"));
        assert_eq!(answer.header("ratelimit"), Some(format!("\"look-up\";r={left}").as_str()));
    }
    // A place is free again after 20 s: by then this test is done, or the machine so slow that it proves nothing.
    let started = std::time::Instant::now();
    let refused = ask(&daemon, &tokens.read, "GET", "/v1/positions?board=2x2");
    let others = [
        ask(&daemon, &tokens.submit, "GET", "/v1/jobs").status,
        daemon.request("GET", "/v1/jobs", &[], b"").status,
        ask(&daemon, &tokens.read, "GET", "/v1/proofs/1-1/certificate").status,
        ask(&daemon, &tokens.submit, "POST", "/v1/jobs").status,
        ask(&daemon, &tokens.submit, "POST", "/v1/jobs").status,
        ask(&daemon, &tokens.admin, "POST", "/v1/jobs").status,
        ask(&daemon, &tokens.read, "GET", "/healthz").status,
    ];
    // Guesses at tokens use up the limit of the address, not that of a token.
    let guesses = ["x", "y", "z"].map(|guess| ask(&daemon, guess, "GET", "/v1/jobs").status);
    if started.elapsed() > Duration::from_secs(15) {
        return common::skip("limits_are_told_and_kept_apart", &"the machine is too slow");
    }
    assert_eq!((refused.status, &refused.json["code"]), (429, &json!("rate_limited")), "{refused:?}");
    let detail = refused.json["detail"].as_str().unwrap_or_default();
    assert!(["look-up", "token r", "rate_look_ups_per_minute"].iter().all(|word| detail.contains(word)), "{detail}");
    let seconds: u32 = refused.header("retry-after").and_then(|seconds| seconds.parse().ok()).expect("Retry-After");
    assert!((1..=20).contains(&seconds), "{seconds}");
    assert_eq!(refused.header("ratelimit"), Some(format!("\"look-up\";r=0;t={seconds}").as_str()));
    assert_eq!(others, [200, 200, 404, 202, 429, 202, 200]);
    assert_eq!(guesses, [401, 401, 429]);
}

#[test]
fn only_pages_of_configured_origins_may_ask() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start_with(dir.path(), &format!("{CONFIG}cors_origins = [\"https://go.example\"]\n"));
    let (ours, other) = (("origin", "https://go.example"), ("origin", "https://evil.example"));
    let allowed = |answer: &Answer| answer.header("access-control-allow-origin").map(str::to_owned);
    let read = daemon.request("GET", "/v1/jobs", &[ours], b"");
    assert_eq!((read.status, allowed(&read).as_deref()), (200, Some("https://go.example")), "{read:?}");
    assert!(read.header("access-control-expose-headers").is_some_and(|names| names.contains("x-request-id")), "{read:?}");
    assert_eq!(allowed(&daemon.request("GET", "/v1/jobs", &[other], b"")), None);
    let body = br#"{"kind":"value","board":"2x2"}"#;
    let refused = daemon.request("POST", "/v1/jobs", &[other, JSON], body);
    assert_eq!((refused.status, &refused.json["code"], allowed(&refused)), (403, &json!("cross_origin"), None), "{refused:?}");
    assert_eq!(daemon.request("POST", "/v1/jobs", &[ours, JSON], body).status, 202);
    let before = |origin: (&str, &str)| {
        let request = ureq::http::Request::builder().method("OPTIONS").uri(daemon.url("/v1/jobs"));
        let request = request.header("access-control-request-method", "POST").header("access-control-request-headers", "authorization");
        common::agent().run(request.header(origin.0, origin.1).body(()).expect("a request")).expect("an answer")
    };
    let preflight = before(ours);
    let header = |name: &str| preflight.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    assert_eq!((preflight.status().as_u16(), header("access-control-allow-origin")), (200, "https://go.example".to_owned()));
    assert!(header("access-control-allow-headers").contains("authorization") && header("access-control-allow-methods").contains("POST"));
    assert!(before(other).headers().get("access-control-allow-origin").is_none());
}

#[test]
fn a_name_that_was_made_to_lead_here_leads_nowhere() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start_with(dir.path(), &format!("{CONFIG}cors_origins = [\"https://go.example\"]\n"));
    let get = |daemon: &Daemon, host: &str| daemon.request("GET", "/v1/jobs", &[("host", host)], b"");
    let here = format!("127.0.0.1:{}", daemon.port);
    for (host, status) in [(here.as_str(), 200), ("localhost", 200), ("go.example", 200), ("evil.example", 421), ("go.example:81", 421)] {
        assert_eq!(get(&daemon, host).status, status, "{host}");
    }
    // What its page sends comes, as far as the browser knows, from this server.
    let page = [("host", "evil.example"), ("origin", "http://evil.example"), JSON];
    let refused = daemon.request("POST", "/v1/jobs", &page, br#"{"kind":"value","board":"2x2"}"#);
    assert_eq!((refused.status, &refused.json["code"]), (421, &json!("unknown_host")), "{refused:?}");
    assert!(refused.json["detail"].as_str().is_some_and(|detail| detail.contains("evil.example")), "{refused:?}");
    assert_eq!(daemon.get("/v1/jobs").1["jobs"], json!([]));
    drop(daemon);
    // A server that others reach by its name has tokens, which such a page does not know.
    let daemon = Daemon::start_with(dir.path(), &Tokens::new(dir.path()).config);
    assert_eq!(get(&daemon, "superko.example").status, 401);
}

/// What is still to come on a connection, to its end.
fn rest(mut stream: TcpStream) -> String {
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time-out");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("the daemon closes the connection");
    text
}

#[test]
fn slow_clients_are_cut_off() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start_with(dir.path(), &format!("{CONFIG}request_timeout_seconds = 1\nmax_connections = 2\n"));
    let send = |text: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", daemon.port)).expect("a connection");
        stream.write_all(text.as_bytes()).expect("sent");
        stream
    };
    // A head that does not end takes one of two places; a body that does not end the other.
    let head = send("GET /v1/jobs HTTP/1.1\r\nhost: localhost\r\nx-slow: ");
    let body = send("POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{");
    assert_eq!(daemon.get("/v1/jobs").0, 200, "a place is free again");
    assert!(!rest(head).starts_with("HTTP/1.1 200"));
    let answer = rest(body);
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("\"code\":\"body_too_slow\""), "{answer}");
    // One that drips is no better, and an idle connection ends too.
    let mut drip = send("POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{");
    wait_for("end of a connection that drips", 60, || {
        std::thread::sleep(Duration::from_millis(200));
        drip.write_all(b" ").err()
    });
    let idle = rest(send("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"));
    assert!(idle.starts_with("HTTP/1.1 200") && idle.contains("alive"), "{idle}");
    assert_eq!(daemon.get("/v1/jobs").1["jobs"], json!([]));
}

#[test]
fn every_request_has_an_id() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start_with(dir.path(), &format!("{CONFIG}log = \"debug\"\n"));
    let id = |given: Option<&str>| {
        let headers: Vec<(&str, &str)> = given.iter().map(|id| ("x-request-id", *id)).collect();
        let answer = daemon.request("GET", "/v1/jobs/77", &headers, b"");
        // That problem and header agree is looked at for every answer.
        (answer.json["request_id"].as_str().expect("an id").to_owned(), answer.status)
    };
    assert_eq!(id(Some("mine-1.x_Y")), ("mine-1.x_Y".to_owned(), 404));
    let log = daemon.log();
    let line = log.lines().find(|line| line.contains("mine-1.x_Y") && line.contains("job_not_found"));
    assert!(line.is_some_and(|line| line.contains("/v1/jobs/{id}")), "{log}");
    let bad = "x".repeat(65);
    let made: Vec<String> = [None, Some(""), Some("a b"), Some("a\"b"), Some(bad.as_str())].map(|given| id(given).0).into();
    let mut distinct = made.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), made.len(), "{made:?}");
    assert!(made.iter().all(|id| id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')), "{made:?}");
    let fine = daemon.request("GET", "/healthz", &[("x-request-id", "7")], b"");
    assert_eq!((fine.header("x-request-id"), &fine.json["request_id"]), (Some("7"), &Value::Null));
}

#[test]
fn a_body_may_be_as_large_as_configured_and_no_larger() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start_with(dir.path(), &format!("{CONFIG}max_body_bytes = 1024\n"));
    let submit = |bytes: usize| {
        let body = r#"{"kind":"value","board":"2x2"}"#.to_owned();
        let body = format!("{body}{}", " ".repeat(bytes - body.len()));
        let answer = daemon.request("POST", "/v1/jobs", &[JSON], body.as_bytes());
        (answer.status, answer.json["code"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(submit(1024).0, 202);
    for bytes in [1025, 100_000, 10 << 20] {
        assert_eq!(submit(bytes), (413, "body_too_large".to_owned()), "{bytes}");
    }
}

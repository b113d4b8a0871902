//! The OpenAPI description: on record, complete, and true of the built daemon.
//!
//! `tests/golden/openapi.json` is the description on record, so that a change of the API shows in review. To rewrite it:
//! `cargo build --release && target/release/superko openapi >tests/golden/openapi.json`

mod common;

use common::{CONFIG, Daemon, agent, skip, superko};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

fn description() -> Value {
    let printed = superko(&["openapi"]);
    assert!(printed.status.success(), "{printed:?}");
    serde_json::from_slice(&printed.stdout).expect("JSON")
}

#[test]
fn the_description_is_the_one_on_record() {
    let printed = String::from_utf8(superko(&["openapi"]).stdout).expect("UTF-8");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/openapi.json");
    let golden = std::fs::read_to_string(file).expect("tests/golden/openapi.json");
    let differs = printed.lines().zip(golden.lines()).position(|(printed, golden)| printed != golden);
    assert!(printed == golden, "the API has changed, first at line {differs:?}: look at the change, then rewrite the file (see above)");
}

/// The routes of the router, by its source text: method in lower case, and path.
fn routes() -> BTreeSet<(String, String)> {
    let source = include_str!("../src/http/mod.rs");
    let mut routes = BTreeSet::new();
    for route in source.split(".route(\"").skip(1) {
        let (path, rest) = route.split_once('"').expect("a path");
        let handlers = rest.split("\n        .").next().expect("the handlers");
        for method in ["get", "post", "put", "patch", "delete"] {
            if handlers
                .split(|symbol: char| !symbol.is_alphanumeric() && symbol != '_' && symbol != '(')
                .any(|word| word.starts_with(&format!("{method}(")))
            {
                routes.insert((method.to_owned(), path.to_owned()));
            }
        }
    }
    routes
}

/// Pages for people and what belongs to them are no part of the API.
fn is_api(path: &str) -> bool {
    let is_asset = [".js", ".css"].iter().any(|end| path.ends_with(end));
    ["/healthz", "/readyz", "/metrics"].contains(&path) || path.starts_with("/v1/") && !is_asset
}

fn operations(description: &Value) -> BTreeSet<(String, String)> {
    let paths = description["paths"].as_object().expect("paths");
    let methods = |path: &str, item: &Value| -> Vec<(String, String)> {
        item.as_object().expect("operations").keys().map(|method| (method.clone(), path.to_owned())).collect()
    };
    paths.iter().flat_map(|(path, item)| methods(path, item)).collect()
}

#[test]
fn every_route_is_described_and_the_reverse() {
    let mut routes = routes();
    assert!(routes.len() > 10, "{routes:?}");
    routes.retain(|(_, path)| is_api(path));
    let description = description();
    let operations = operations(&description);
    assert_eq!(routes, operations, "left: the router, right: the description");
    // What is described is there: another method than GET without a body may be refused for many reasons, but not as unknown.
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(dir.path());
    let mut ids = BTreeSet::new();
    for (method, path) in &operations {
        let id = description["paths"][path][method]["operationId"].as_str().expect("an operationId");
        assert!(ids.insert(id.to_owned()), "{id} names two operations");
        if !path.ends_with("/events") {
            let status = raw(&daemon, method, &path.replace("{id}", "77-1"), &[], b"").status;
            assert_ne!(status, 405, "{method} {path}");
        }
    }
}

/// An answer of any kind.
struct Raw {
    status: u16,
    headers: ureq::http::HeaderMap,
    body: Vec<u8>,
}

fn raw(daemon: &Daemon, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Raw {
    let mut request = ureq::http::Request::builder().method(method.to_uppercase().as_str()).uri(daemon.url(path));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut answer = agent().run(request.body(body).expect("a request")).expect(path);
    let body = answer.body_mut().read_to_vec().expect("a body");
    Raw { status: answer.status().as_u16(), headers: answer.headers().clone(), body }
}

/// Whether a value is what a schema of the description says.
fn check_value(description: &Value, schema: &Value, value: &Value, what: &str) {
    let mut root = schema.clone();
    root["components"] = description["components"].clone();
    let validator = jsonschema::draft202012::options().build(&root).expect("a schema");
    let errors: Vec<String> = validator.iter_errors(value).map(|error| format!("{} at {}", error, error.instance_path())).collect();
    assert!(errors.is_empty(), "{what}: {errors:#?}\n{value}");
}

/// The same description, but no object may have a field that is not described. Clients are told to expect such fields; tests are not.
fn strict(description: &Value) -> Value {
    let mut strict = description.clone();
    let schemas = strict["components"]["schemas"].as_object_mut().expect("schemas");
    let parts: Vec<String> = schemas
        .values()
        .flat_map(|schema| schema["allOf"].as_array().into_iter().flatten())
        .filter_map(|part| part["$ref"].as_str().and_then(|name| name.rsplit('/').next()).map(str::to_owned))
        .collect();
    for (name, schema) in schemas {
        let is_closed = schema["allOf"].is_array() || schema["properties"].is_object();
        // What is part of another schema cannot know the other's fields.
        if is_closed && !parts.contains(name) {
            schema["unevaluatedProperties"] = false.into();
        }
    }
    strict
}

/// Asks a daemon and holds its answers against the description.
struct Witness<'a> {
    description: Value,
    daemon: &'a Daemon,
    seen: BTreeSet<(String, String, u16)>,
}

impl<'a> Witness<'a> {
    fn new(description: &Value, daemon: &'a Daemon) -> Witness<'a> {
        Witness { description: strict(description), daemon, seen: BTreeSet::new() }
    }

    /// The JSON of the answer, null if it has none.
    fn ask(&mut self, method: &str, route: &str, path: &str, headers: &[(&str, &str)], body: &[u8], status: u16) -> Value {
        let answer = raw(self.daemon, method, path, headers, body);
        let what = format!("{method} {path} {}: {}", answer.status, String::from_utf8_lossy(&answer.body));
        assert_eq!(answer.status, status, "{what}");
        let described = &self.description["paths"][route][method]["responses"][status.to_string()];
        assert!(described.is_object(), "the status is not described: {what}");
        for name in described["headers"].as_object().expect("headers").keys() {
            assert!(answer.headers.contains_key(name), "no {name}: {what}");
        }
        self.seen.insert((method.to_owned(), route.to_owned(), status));
        let Some(content) = described["content"].as_object() else {
            assert!(answer.body.is_empty(), "a body is not described: {what}");
            return Value::Null;
        };
        let kind = answer.headers.get("content-type").and_then(|kind| kind.to_str().ok()).expect("a Content-Type");
        let media = content.get(kind.split(';').next().unwrap_or_default()).unwrap_or_else(|| panic!("{kind} is not described: {what}"));
        if !kind.contains("json") {
            return Value::Null;
        }
        let json: Value = serde_json::from_slice(&answer.body).expect("JSON");
        check_value(&self.description, &media["schema"], &json, &what);
        if let Some(code) = json["code"].as_str().filter(|_| status >= 400) {
            let codes = described["description"].as_str().expect("a description");
            assert!(codes.contains(&format!("`{code}`")), "the code is not among {codes:?}: {what}");
        }
        json
    }

    fn get(&mut self, route: &str, path: &str, status: u16) -> Value {
        self.ask("get", route, path, &[], b"", status)
    }

    fn submit(&mut self, body: &Value, status: u16) -> Value {
        let json = [("content-type", "application/json")];
        self.ask("post", "/v1/jobs", "/v1/jobs", &json, body.to_string().as_bytes(), status)
    }
}

#[test]
fn answers_are_as_described() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start_with(dir.path(), &format!("{CONFIG}max_queue = 2\n"));
    let description = description();
    let mut witness = Witness::new(&description, &daemon);
    let json = ("content-type", "application/json");

    let solve =
        json!({"kind": "solve", "board": "2x3", "komi": 0.5, "certificate": true, "verify": true, "limits": {"expansions": "100000"}});
    check_value(&description, &json!({"$ref": "#/components/schemas/JobSubmission"}), &solve, "a submission");
    for (id, body) in [
        (1, solve),
        (2, json!({"kind": "value", "board": "2x3", "label": "x"})),
        (
            3,
            json!({"kind": "value", "board": "1x6", "setup": {"rows": ["X.X.X."], "to_move": "black", "earlier": [["X.XO.."]]}, "priority": 1}),
        ),
    ] {
        assert_eq!(witness.submit(&body, 202)["id"], id, "{body}");
        daemon.wait_until(id, "succeeded");
        witness.get("/v1/jobs/{id}", &format!("/v1/jobs/{id}"), 200);
    }
    let limited = witness.submit(&json!({"kind": "solve", "board": "4x4", "komi": 1.5, "limits": {"expansions": 500}}), 202);
    daemon.wait_until(limited["id"].as_u64().expect("an id"), "expired");
    let long = witness.submit(&json!({"kind": "value", "board": "4x5", "moves": "B2, C3 pass", "limits": {"time_seconds": 1000}}), 202);
    let (long, path) = (long["id"].as_u64().expect("an id"), "/v1/jobs/{id}/cancel");
    daemon.wait_until(long, "running");
    witness.get("/v1/jobs/{id}", &format!("/v1/jobs/{long}"), 200);
    witness.submit(&json!({"kind": "value", "board": "4x6"}), 202);
    witness.submit(&json!({"kind": "value", "board": "4x7"}), 503);
    witness.get("/v1/jobs", "/v1/jobs?limit=2", 200);
    witness.get("/v1/jobs", "/v1/jobs?state=queued", 200);
    witness.get("/v1/jobs", "/v1/jobs?state=done", 422);
    witness.get("/v1/jobs/{id}", "/v1/jobs/77", 404);
    witness.ask("post", path, &format!("/v1/jobs/{long}/cancel"), &[], b"", 200);
    witness.ask("post", path, "/v1/jobs/1/cancel", &[], b"", 409);
    witness.ask("post", path, "/v1/jobs/x/cancel", &[], b"", 404);
    witness.ask("post", path, "/v1/jobs/1/cancel", &[("origin", "http://evil.example")], b"", 403);
    witness.submit(&json!({"kind": "guess"}), 422);
    for (headers, body, status) in [
        (&[json][..], &b"{"[..], 400),
        (&[json, ("idempotency-key", "")], b"{}", 400),
        (&[("content-type", "text/plain")], b"{}", 415),
        (&[json], &vec![b' '; 2 << 20], 413),
    ] {
        witness.ask("post", "/v1/jobs", "/v1/jobs", headers, body, status);
    }

    for (action, body, status) in [
        ("pause", &b""[..], 409),
        ("resume", b"{\"limits\":{\"expansions\":600}}", 200),
        ("pause", b"", 200),
        ("resume", b"", 200),
        ("resume", b"{\"limit\":1}", 422),
        ("cancel", b"", 200),
    ] {
        let path = format!("/v1/jobs/4/{action}");
        witness.ask("post", &format!("/v1/jobs/{{id}}/{action}"), &path, &[json], body, status);
    }
    let (job, waiting) = ("/v1/jobs/{id}", "/v1/jobs/6");
    witness.ask("patch", job, waiting, &[json], br#"{"priority": -1}"#, 200);
    witness.ask("patch", job, waiting, &[json, ("if-match", "\"x\"")], br#"{"priority": 2}"#, 412);
    witness.ask("patch", job, waiting, &[json], b"{}", 422);
    witness.ask("patch", job, "/v1/jobs/1", &[json], br#"{"priority": 2}"#, 409);
    witness.get("/v1/jobs", "/v1/jobs?order=newest&campaign=1", 200);
    let events = "/v1/jobs/{id}/events";
    witness.get(events, "/v1/jobs/1/events", 200);
    witness.get(events, "/v1/jobs/77/events", 404);
    let lines = raw(&daemon, "get", "/v1/jobs/1/events", &[("accept", "application/x-ndjson")], b"");
    let lines = String::from_utf8(lines.body).expect("UTF-8");
    assert_eq!(lines.lines().count(), 2, "{lines}");
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        check_value(&witness.description, &json!({"$ref": "#/components/schemas/EventLine"}), &line, "an event");
        check_value(&witness.description, &json!({"$ref": "#/components/schemas/Job"}), &line["data"], "the data of an event");
    }
    daemon.cancel(6);
    let campaigns = ("/v1/campaigns", "/v1/campaigns/{id}");
    witness.ask("post", campaigns.0, campaigns.0, &[json], br#"{"board": "2x2"}"#, 202);
    common::wait_for("end of the campaign", 120, || (daemon.get("/v1/campaigns/1").1["state"] == "succeeded").then_some(()));
    witness.ask("post", campaigns.0, campaigns.0, &[json], br#"{"board": "4x5", "setup": null}"#, 202);
    witness.ask("post", campaigns.0, campaigns.0, &[json], br#"{"board": 1}"#, 422);
    witness.get(campaigns.1, "/v1/campaigns/1", 200);
    witness.get(campaigns.1, "/v1/campaigns/2", 200);
    witness.get(campaigns.1, "/v1/campaigns/77", 404);
    witness.get(campaigns.0, campaigns.0, 200);
    witness.get(campaigns.0, "/v1/campaigns?state=done", 422);
    witness.ask("patch", campaigns.1, "/v1/campaigns/2", &[json], br#"{"priority": 3}"#, 200);
    for (action, id, status) in [("pause", 2, 200), ("resume", 2, 200), ("cancel", 2, 200), ("cancel", 1, 409), ("pause", 77, 404)] {
        let route = format!("/v1/campaigns/{{id}}/{action}");
        witness.ask("post", &route, &format!("/v1/campaigns/{id}/{action}"), &[], b"", status);
    }
    let part = daemon.get("/v1/jobs?campaign=1").1["jobs"][0]["id"].as_u64().expect("a job of the campaign");
    witness.get("/v1/jobs/{id}", &format!("/v1/jobs/{part}"), 200);

    for (query, status) in [
        ("board=2x3&komi=0.5", 200),
        ("board=2x3", 200),
        // White's A1 takes B1, whose answer superko bans.
        ("board=1x2&komi=0.5&moves=B1%20A1", 200),
        ("board=2x2&komi=-0.5&moves=pass,pass", 200),
        ("board=9x9", 422),
    ] {
        witness.get("/v1/positions", &format!("/v1/positions?{query}"), status);
    }
    let (posted, batch) = ("/v1/positions", "/v1/positions:batch");
    let good = br#"{"board": "1x6", "komi": 0.5, "setup": {"rows": ["X.X.X."], "to_move": "black"}}"#;
    witness.ask("post", posted, posted, &[json], good, 200);
    witness.ask("post", posted, posted, &[json], b"{}", 422);
    witness.ask("post", batch, batch, &[json], br#"{"positions": [{"board": "2x3"}, {"board": "9x9"}]}"#, 200);
    witness.ask("post", batch, batch, &[json], br#"{"positions": []}"#, 422);
    let backup = "/v1/admin/backup";
    witness.ask("post", backup, backup, &[json], br#"{"name": "monday"}"#, 201);
    witness.ask("post", backup, backup, &[json], br#"{"name": "monday"}"#, 409);
    witness.ask("post", backup, backup, &[json], br#"{"name": "../x"}"#, 422);
    let (proof, file) = ("/v1/proofs/{id}", "/v1/proofs/{id}/certificate");
    for (id, status) in [("1-1", 200), ("2-1", 200), ("2-2", 200), ("77-1", 404)] {
        witness.get(proof, &format!("/v1/proofs/{id}"), status);
    }
    for (id, headers, status) in [
        ("1-1", &[][..], 200),
        ("1-1", &[("range", "bytes=0-9")], 206),
        ("1-1", &[("if-none-match", "*")], 304),
        ("1-1", &[("if-match", "\"x\"")], 412),
        ("1-1", &[("range", "bytes=999999999-")], 416),
        ("2-1", &[], 409),
        ("77-1", &[], 404),
    ] {
        witness.ask("get", file, &format!("/v1/proofs/{id}/certificate"), headers, b"", status);
    }
    for (id, status) in [("1-1", 200), ("2-1", 409), ("77-1", 404)] {
        let path = format!("/v1/proofs/{id}/verifications");
        witness.ask("post", "/v1/proofs/{id}/verifications", &path, &[], b"", status);
    }
    std::fs::remove_file(dir.path().join("data/certificates/1-1.sgc")).expect("removed");
    witness.get(file, "/v1/proofs/1-1/certificate", 500);
    witness.ask("post", "/v1/admin/checkpoint", "/v1/admin/checkpoint", &[], b"", 200);
    for path in ["/healthz", "/readyz", "/metrics", "/v1/openapi.json", "/v1/docs"] {
        witness.get(path, path, 200);
    }
    assert_eq!(daemon.get("/v1/openapi.json").1, description, "what is served is what is printed");
    let seen = witness.seen;

    // Every operation has been seen to succeed, but those that other tests look at.
    for (method, path) in operations(&description) {
        // Streams that do not end.
        let elsewhere = ["/v1/events", "/v1/campaigns/{id}/events"].contains(&path.as_str());
        let succeeded = seen.iter().any(|(m, p, status)| (m, p) == (&method, &path) && *status < 300);
        assert!(succeeded || elsewhere, "{method} {path} has not been asked");
    }

    let tokens = dir.path().join("tokens");
    let made = superko(&["token", "new", "--name", "x", "--json"]);
    let made: Value = serde_json::from_slice(&made.stdout).expect("JSON");
    std::fs::write(&tokens, made["line"].as_str().expect("a line")).expect("written");
    drop(daemon);
    let config =
        format!("{CONFIG}tokens_file = {:?}\nrate_look_ups_per_minute = 1\nrequest_timeout_seconds = 1\n", tokens.to_str().expect("UTF-8"));
    let daemon = Daemon::start_with(dir.path(), &config);
    let mut witness = Witness::new(&description, &daemon);
    let token = format!("Bearer {}", made["token"].as_str().expect("a token"));
    witness.get("/v1/jobs", "/v1/jobs", 401);
    witness.get("/v1/jobs", "/v1/jobs", 429);
    witness.ask("post", "/v1/jobs", "/v1/jobs", &[("authorization", &token)], b"", 403);
}

#[test]
fn examples_are_as_described() {
    let description = description();
    let mut examples = 0;
    let mut check = |schema: &Value, value: &Value, what: &str| {
        check_value(&description, schema, value, what);
        examples += 1;
    };
    for (name, schema) in description["components"]["schemas"].as_object().expect("schemas") {
        for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
            schema.get("example").into_iter().for_each(|example| check(schema, example, &format!("{name}/{field}")));
        }
        schema.get("example").into_iter().for_each(|example| check(schema, example, name));
    }
    for (method, path) in operations(&description) {
        let operation = &description["paths"][&path][&method];
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let what = format!("{method} {path} {}", parameter["name"]);
            parameter.get("example").into_iter().for_each(|example| check(&parameter["schema"], example, &what));
        }
        for (status, response) in operation["responses"].as_object().expect("responses") {
            for media in response["content"].as_object().into_iter().flat_map(|content| content.values()) {
                let what = format!("{method} {path} {status}");
                media.get("example").into_iter().for_each(|example| check(&media["schema"], example, &what));
            }
        }
    }
    assert!(examples > 20, "{examples} examples");
}

/// A browser shows the page by what it is sent alone.
#[test]
fn the_page_needs_nothing_from_elsewhere() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(dir.path());
    for (path, kind) in [("/v1/docs", "text/html"), ("/v1/docs.js", "text/javascript"), ("/v1/docs.css", "text/css")] {
        let answer = raw(&daemon, "get", path, &[], b"");
        let header = |name: &str| answer.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        assert_eq!(answer.status, 200, "{path}");
        assert!(header("content-type").starts_with(kind), "{path}: {}", header("content-type"));
        let policy = header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe") && !policy.contains("http"), "{policy}");
        let text = String::from_utf8(answer.body).expect("UTF-8");
        assert!(
            !text.contains("://") && !text.contains("<style") && !text.contains("style="),
            "{path} names another address, or is not allowed"
        );
        assert!(text.matches("<script").count() == text.matches("<script src=\"/v1/docs.js\"").count(), "{path} has a script inside");
    }
}

/// schemathesis makes requests from the description, good and bad ones: no undocumented answer, no fault of the server.
#[test]
fn schemathesis_finds_nothing() {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/schemathesis/bin/schemathesis");
    if !program.exists() {
        return skip("schemathesis_finds_nothing", &"schemathesis is not installed (scripts/setup.sh)");
    }
    let dir = tempfile::tempdir().expect("a directory");
    // Queues that do not fill up, and a request to wait on: a deliberate 503 is no fault.
    let daemon = Daemon::start_with(
        dir.path(),
        "table = \"64MiB\"\nmax_queue = 1000000\nrate_look_ups_per_minute = 0\nrate_submissions_per_minute = 0\n",
    );
    daemon.wait_until(daemon.submit(&json!({"kind": "solve", "board": "2x2", "komi": 0.5, "certificate": true})), "succeeded");
    let output = Command::new(program)
        .current_dir(dir.path())
        .args(["run", &daemon.url("/v1/openapi.json"), "--seed", "1", "--no-color", "--continue-on-failure", "--max-examples", "50"])
        .args(["--phases", "examples,coverage,fuzzing,stateful", "--generation-database", "none", "--request-timeout", "20"])
        .args(["--suppress-health-check", "all", "--warnings", "off", "--exclude-path-regex", "events$|/admin/backup"])
        .arg("--checks")
        .arg("not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance")
        .output()
        .expect("schemathesis starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(daemon.get("/healthz").0, 200, "{text}");
    // What it has to say is not only that there was nothing to do.
    let generated = text.lines().find_map(|line| line.trim().split_once(" generated")?.0.parse::<u32>().ok());
    assert!(generated.is_some_and(|cases| cases > 500), "{text}");
}

//! `superko job`: a client for a running server.

use super::proof::certificate;
use super::run::Progress;
use super::{BAD_INPUT, FAILED, Failure, PROVED, PositionFlags, UNKNOWN, print_json, print_line};
use crate::units;
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;
use superko_search::Komi;
use ureq::SendBody;
use ureq::http::{HeaderValue, Request};
use ureq::middleware::MiddlewareNext;

/// Longest time for an answer, unless it may take its time.
const USUAL: Option<Duration> = Some(Duration::from_secs(30));

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Submit a job
    Submit(Submit),
    /// List jobs
    List(List),
    /// Show a job
    Show(One),
    /// Wait for a job to end, with its progress
    Watch(One),
    /// Cancel a job
    Cancel(One),
    /// Put a job aside, until it is resumed; so it stays across restarts
    Pause(One),
    /// Go on with a paused job, or with one that has reached a limit
    Resume(Resume),
    /// Change a job's priority
    Priority(Priority),
}

#[derive(Debug, Args)]
pub struct Resume {
    #[command(flatten)]
    pub one: One,
    #[command(flatten)]
    pub limits: LimitFlags,
}

#[derive(Debug, Args)]
pub struct Priority {
    #[command(flatten)]
    pub one: One,
    /// Higher goes first
    #[arg(allow_negative_numbers = true)]
    pub priority: i32,
}

/// When a job is to give up.
#[derive(Debug, Args)]
pub struct LimitFlags {
    /// Give up after this time, such as 60s, 10m or 2h
    #[arg(long, allow_hyphen_values = true)]
    time_limit: Option<String>,
    /// Give up after so many expansions
    #[arg(long, allow_negative_numbers = true)]
    expansion_limit: Option<u64>,
    /// Give up when so much of the table is in use, such as 512MiB
    #[arg(long, allow_hyphen_values = true)]
    memory_limit: Option<String>,
}

impl LimitFlags {
    /// The `limits` of a request; null without flags.
    pub fn json(&self) -> Result<Value, Failure> {
        let time = self.time_limit.as_deref().map(units::parse_time).transpose();
        let time = time.map_err(|error| Failure::bad_input(format!("--time-limit: {error}")))?;
        let memory =
            self.memory_limit.as_deref().map(|text| units::parse_size(text).map_err(|error| format!("--memory-limit {text}: {error}")));
        let memory = memory.transpose().map_err(Failure::bad_input)?;
        let is_none = time.is_none() && memory.is_none() && self.expansion_limit.is_none();
        let text = |limit: Option<u64>| limit.map(|limit| limit.to_string());
        let limits = json!({
            "expansions": text(self.expansion_limit),
            "time_seconds": time.map(|time| time.as_secs_f64()),
            "memory_bytes": text(memory),
        });
        Ok(if is_none { Value::Null } else { limits })
    }
}

#[derive(Debug, Args)]
pub struct Server {
    /// Address of the server
    #[arg(long, env = "SUPERKO_SERVER", default_value = "http://127.0.0.1:7465", value_name = "URL")]
    server: String,
    /// File that holds the access token; else SUPERKO_TOKEN, if the server asks for one
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Submit {
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    position: PositionFlags,
    /// `solve` (needs --komi) or `value`; taken from whether there is a komi if left out
    #[arg(long)]
    kind: Option<String>,
    /// Half-integer added to White's score, such as 1.5 or -3.5
    #[arg(long, allow_hyphen_values = true)]
    komi: Option<String>,
    /// Text to find the job by
    #[arg(long)]
    label: Option<String>,
    /// Higher goes first
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    priority: i32,
    /// Write certificates of the proofs
    #[arg(long)]
    certificate: bool,
    /// Have the certificates checked
    #[arg(long, requires = "certificate")]
    verify: bool,
    #[command(flatten)]
    limits: LimitFlags,
    /// A submission repeated with the same key is the same job
    #[arg(long)]
    idempotency_key: Option<String>,
    /// Watch the job until it ends
    #[arg(long)]
    wait: bool,
}

#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    server: Server,
    /// Only jobs in this state
    #[arg(long)]
    state: Option<String>,
    /// Only jobs with this label
    #[arg(long)]
    label: Option<String>,
    /// Only jobs of this campaign
    #[arg(long)]
    campaign: Option<u64>,
    /// Newest first
    #[arg(long)]
    newest: bool,
    /// Jobs a page
    #[arg(long)]
    limit: Option<u32>,
    /// Where an earlier page ended
    #[arg(long)]
    cursor: Option<String>,
}

#[derive(Debug, Args)]
pub struct One {
    #[command(flatten)]
    pub server: Server,
    /// Its id
    pub id: u64,
}

pub fn run(command: &Command) -> Result<u8, Failure> {
    match command {
        Command::Submit(arguments) => submit(arguments),
        Command::List(arguments) => list(arguments),
        Command::Show(arguments) => {
            arguments.server.show(&arguments.server.get(&format!("/v1/jobs/{}", arguments.id), &[])?)?;
            Ok(PROVED)
        }
        Command::Watch(arguments) => watch(&arguments.server, arguments.id),
        Command::Cancel(one) => act(one, "cancel", None),
        Command::Pause(one) => act(one, "pause", None),
        Command::Resume(Resume { one, limits }) => act(one, "resume", Some(&fields("limits", limits.json()?))),
        Command::Priority(Priority { one, priority }) => {
            one.server.show(&one.server.patch(&format!("/v1/jobs/{}", one.id), &fields("priority", (*priority).into()))?)?;
            Ok(PROVED)
        }
    }
}

fn act(one: &One, action: &str, body: Option<&Map<String, Value>>) -> Result<u8, Failure> {
    one.server.show(&one.server.post(&format!("/v1/jobs/{}/{action}", one.id), body, None)?)?;
    Ok(PROVED)
}

/// An object of one field.
pub fn fields(name: &str, value: Value) -> Map<String, Value> {
    Map::from_iter([(name.to_owned(), value)])
}

impl Server {
    /// What takes longer than `limit` fails. Every request has the token, if there is one.
    fn agent(&self, limit: Option<Duration>) -> Result<ureq::Agent, Failure> {
        // Without TLS in this client, a connection to port 443 would fail for a reason that says nothing.
        if self.server.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:")) {
            return Err(self.no_address());
        }
        let mut config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(limit);
        if let Some(value) = self.authorization()? {
            config = config.middleware(move |mut request: Request<SendBody<'_>>, next: MiddlewareNext<'_>| {
                request.headers_mut().insert("authorization", value.clone());
                next.handle(request)
            });
        }
        Ok(config.build().into())
    }

    fn authorization(&self) -> Result<Option<HeaderValue>, Failure> {
        let (what, token) = match &self.token_file {
            Some(file) => {
                let what = format!("--token-file {}", file.display());
                let text = std::fs::read_to_string(file).map_err(|error| Failure::bad_input(format!("{what}: cannot be read: {error}")))?;
                (what, text)
            }
            None => match std::env::var("SUPERKO_TOKEN") {
                Ok(text) => ("SUPERKO_TOKEN".to_owned(), text),
                Err(_) => return Ok(None),
            },
        };
        let token = token.trim();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Failure::bad_input(format!("{what}: that is no token: expected what `superko token new` prints first")));
        }
        let mut value =
            HeaderValue::from_str(&format!("Bearer {token}")).map_err(|error| Failure::bad_input(format!("{what}: {error}")))?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    fn no_address(&self) -> Failure {
        Failure::bad_input(format!("--server {}: expected an address such as http://127.0.0.1:7465 (no TLS)", self.server))
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.server.trim_end_matches('/'))
    }

    pub fn get(&self, path: &str, query: &[(&str, String)]) -> Result<Value, Failure> {
        let mut request = self.agent(USUAL)?.get(self.url(path));
        for (name, value) in query {
            request = request.query(name, value);
        }
        self.answer(request.call())
    }

    pub fn post(&self, path: &str, body: Option<&Map<String, Value>>, key: Option<&str>) -> Result<Value, Failure> {
        let mut request = self.agent(USUAL)?.post(self.url(path));
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        self.answer(match body {
            Some(body) => request.send_json(body),
            None => request.send_empty(),
        })
    }

    pub fn patch(&self, path: &str, body: &Map<String, Value>) -> Result<Value, Failure> {
        self.answer(self.agent(USUAL)?.patch(self.url(path)).send_json(body))
    }

    /// Posts what may take its time.
    pub fn post_slowly(&self, path: &str, body: Option<&Map<String, Value>>) -> Result<Value, Failure> {
        let request = self.agent(None)?.post(self.url(path));
        self.answer(match body {
            Some(body) => request.send_json(body),
            None => request.send_empty(),
        })
    }

    /// Copies what is at a path; how many bytes that were, and its entity tag.
    pub fn fetch(&self, path: &str, out: &mut dyn Write) -> Result<(u64, String), Failure> {
        match self.agent(None)?.get(self.url(path)).call() {
            Ok(mut response) if response.status().is_success() => {
                let tag = response.headers().get("etag").and_then(|tag| tag.to_str().ok()).unwrap_or_default().to_owned();
                let copied = std::io::copy(&mut response.body_mut().as_reader(), out);
                copied.map(|bytes| (bytes, tag)).map_err(|error| Failure::other(format!("--server {}{path}: {error}", self.server)))
            }
            refused => self.answer(refused).and_then(|_| Err(Failure::other("the server's answer is neither the file nor an error"))),
        }
    }

    /// The JSON of an answer; an error answer becomes a failure with its sentence.
    fn answer(&self, response: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<Value, Failure> {
        let mut response = response.map_err(|error| match error {
            ureq::Error::BadUri(_) | ureq::Error::Http(_) | ureq::Error::TlsRequired => self.no_address(),
            ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => Failure::other(format!(
                "--server {}: {error}: expected a running superko serve there; start it, or give its address",
                self.server
            )),
            error => Failure::other(format!("--server {}: {error}", self.server)),
        })?;
        let status = response.status();
        let body: Value = response
            .body_mut()
            .read_json()
            .map_err(|error| Failure::other(format!("--server {}: status {status}, and the answer is no JSON: {error}", self.server)))?;
        if status.is_success() {
            return Ok(body);
        }
        let code = if status.is_client_error() { BAD_INPUT } else { FAILED };
        let errors = body["errors"].as_array().into_iter().flatten();
        let fields: Vec<String> = errors.map(|error| format!("{}{}", flag(&text(&error["pointer"])), text(&error["detail"]))).collect();
        let message = if fields.is_empty() { text(&body["detail"]) } else { fields.join("; ") };
        Err(Failure { code, message: format!("the server answered {}: {message}", status.as_u16()) })
    }

    fn show(&self, job: &Value) -> Result<(), Failure> {
        if self.json {
            return print_json(job);
        }
        print_line(&summary(job));
        Ok(())
    }
}

/// The flag that gives the field of a request that an error points at, with a colon; the pointer itself where no flag does.
fn flag(pointer: &str) -> String {
    let mut parts = pointer.split('/').skip(1);
    let (field, below) = (parts.next().unwrap_or_default(), parts.next());
    match (field, below) {
        ("", _) => String::new(),
        ("limits", Some("expansions")) => "--expansion-limit: ".to_owned(),
        ("limits", Some("time_seconds")) => "--time-limit: ".to_owned(),
        ("limits", Some("memory_bytes")) => "--memory-limit: ".to_owned(),
        ("all_moves", None) => "--one-move: ".to_owned(),
        ("moves", Some(_)) => "--moves: ".to_owned(),
        ("setup", Some(_)) => format!("--setup ({pointer}): "),
        (_, None) => format!("--{field}: "),
        _ => format!("{pointer}: "),
    }
}

/// A JSON value without the quotes of a string.
pub fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A job in one line, with what is known of its certificates.
fn summary(job: &Value) -> String {
    let proofs = proofs(job).filter_map(|(id, proof)| certificate(proof).map(|text| format!("; proof {id}: {text}")));
    line(job) + &proofs.collect::<String>()
}

fn line(job: &Value) -> String {
    let mut line = format!("job {} {} {}", job["id"], text(&job["kind"]), text(&job["board"]));
    if job["setup"].is_object() {
        line += " from a diagram";
    }
    let moves = words(&job["moves"]);
    if !moves.is_empty() {
        line += &format!(" after {moves}");
    }
    if !job["komi"].is_null() {
        line += &format!(" komi {}", job["komi"]);
    }
    if let Some(label) = job["label"].as_str() {
        line += &format!(" {label:?}");
    }
    line += &format!(": {}", text(&job["state"]));
    if let Some(place) = job["queue_position"].as_u64() {
        line += &format!(" (place {place} in the queue)");
    }
    if matches!(job["state"].as_str(), Some("queued" | "running" | "paused")) {
        line += &format!(", priority {}", job["priority"]);
    }
    if !job["campaign"].is_null() {
        line += &format!(", of campaign {}", job["campaign"]);
    }
    let (progress, result) = (&job["progress"], &job["result"]);
    if let Some(winner) = result["winner"].as_str() {
        line += &format!(", {winner} wins");
    } else if let Some(value) = result["value"].as_i64() {
        line += &format!(", value {value}");
    } else {
        line += &format!(", between {} and {}", job["bounds"]["lower"], job["bounds"]["upper"]);
    }
    for (id, proof) in proofs(job) {
        let komi = if job["komi"].is_null() { format!(" at komi {}", proof["komi"]) } else { String::new() };
        line += &format!(", proof {id}{komi}");
    }
    if let Some(error) = job["error"].as_str() {
        line += &format!(", {error}");
    }
    line + &format!(", {} expansions, {:.1} s", text(&progress["expansions"]), progress["elapsed_seconds"].as_f64().unwrap_or(0.0))
}

/// The texts of a list, with spaces between.
pub fn words(list: &Value) -> String {
    list.as_array().into_iter().flatten().map(text).collect::<Vec<_>>().join(" ")
}

/// The proofs of a job with their ids.
fn proofs(job: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let result = &job["result"];
    let proofs = result["proofs"].as_array().map_or(std::slice::from_ref(result), Vec::as_slice);
    let ids = job["proofs"].as_array().into_iter().flatten().filter_map(Value::as_str);
    ids.zip(proofs)
}

/// Whether a job has all certificates that it asks for, checked if it asks for that.
fn is_certified(job: &Value) -> bool {
    proofs(job).all(|(_, proof)| {
        let certificate = &proof["certificate"];
        (job["certificate"] != true || certificate.is_object()) && (job["verify"] != true || certificate["verified"] == true)
    })
}

fn submit(arguments: &Submit) -> Result<u8, Failure> {
    let mut fields = arguments.position.fields()?;
    let kind = arguments.kind.as_deref().unwrap_or(if arguments.komi.is_some() { "solve" } else { "value" });
    fields.insert("kind".into(), kind.into());
    if let Some(komi) = &arguments.komi {
        let komi: Komi = komi.parse().map_err(|error| Failure::bad_input(format!("--komi: {error}")))?;
        fields.insert("komi".into(), komi.as_f64().into());
    }
    fields.insert("label".into(), json!(arguments.label));
    fields.insert("priority".into(), arguments.priority.into());
    fields.insert("certificate".into(), arguments.certificate.into());
    fields.insert("verify".into(), arguments.verify.into());
    fields.insert("limits".into(), arguments.limits.json()?);
    let job = arguments.server.post("/v1/jobs", Some(&fields), arguments.idempotency_key.as_deref())?;
    if arguments.wait {
        let id = job["id"].as_u64().ok_or_else(|| Failure::other("the server's answer has no job id"))?;
        return watch(&arguments.server, id);
    }
    arguments.server.show(&job)?;
    Ok(PROVED)
}

fn list(arguments: &List) -> Result<u8, Failure> {
    let given = [
        ("state", arguments.state.clone()),
        ("label", arguments.label.clone()),
        ("campaign", arguments.campaign.map(|campaign| campaign.to_string())),
        ("order", arguments.newest.then(|| "newest".to_owned())),
        ("limit", arguments.limit.map(|limit| limit.to_string())),
        ("cursor", arguments.cursor.clone()),
    ];
    let query: Vec<(&str, String)> = given.into_iter().filter_map(|(name, value)| value.map(|value| (name, value))).collect();
    let page = arguments.server.get("/v1/jobs", &query)?;
    if arguments.server.json {
        print_json(&page)?;
        return Ok(PROVED);
    }
    for job in page["jobs"].as_array().into_iter().flatten() {
        print_line(&line(job));
    }
    if let Some(next) = page["next"].as_str() {
        let hint = if arguments.newest { "" } else { "; --newest begins with the newest" };
        print_line(&format!("more with --cursor {next}{hint}"));
    }
    Ok(PROVED)
}

fn watch(server: &Server, id: u64) -> Result<u8, Failure> {
    let mut progress = Progress::at_once();
    loop {
        let job = server.get(&format!("/v1/jobs/{id}"), &[])?;
        let code = match job["state"].as_str() {
            Some("queued" | "running" | "paused") => {
                progress.show(|| summary(&job));
                std::thread::sleep(Duration::from_secs(1));
                continue;
            }
            Some("succeeded") if is_certified(&job) => PROVED,
            Some("succeeded") => UNKNOWN,
            Some("expired" | "cancelled") => UNKNOWN,
            _ => FAILED,
        };
        drop(progress);
        server.show(&job)?;
        return Ok(code);
    }
}

//! `superko campaign`: campaigns of a running server.

use super::job::{LimitFlags, One, Priority, Resume, Server, fields, text, words};
use super::run::Progress;
use super::{FAILED, Failure, PROVED, PositionFlags, UNKNOWN, print_json, print_line};
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Find the value of a position by many jobs
    Submit(Submit),
    /// List campaigns
    List(List),
    /// Show a campaign
    Show(One),
    /// Wait for a campaign to end, with its progress
    Watch(One),
    /// Cancel a campaign and its jobs
    Cancel(One),
    /// Put a campaign aside, until it is resumed; so it stays across restarts
    Pause(One),
    /// Go on with a paused campaign, or with one whose jobs have reached a limit
    Resume(Resume),
    /// Change the priority of a campaign and its jobs
    Priority(Priority),
}

#[derive(Debug, Args)]
pub struct Submit {
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    position: PositionFlags,
    /// Text to find the campaign and its jobs by
    #[arg(long)]
    label: Option<String>,
    /// Higher goes first
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    priority: i32,
    /// Split each proof into one job for every position after so many moves, 0 to 3
    #[arg(long, default_value_t = 0)]
    split: u32,
    /// Only the optimal moves that the proofs play, not all
    #[arg(long)]
    one_move: bool,
    /// Write certificates of the proofs
    #[arg(long)]
    certificate: bool,
    /// Have the certificates checked
    #[arg(long, requires = "certificate")]
    verify: bool,
    #[command(flatten)]
    limits: LimitFlags,
    /// A submission repeated with the same key is the same campaign
    #[arg(long)]
    idempotency_key: Option<String>,
    /// Watch the campaign until it ends
    #[arg(long)]
    wait: bool,
}

#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    server: Server,
    /// Only campaigns in this state
    #[arg(long)]
    state: Option<String>,
    /// Where an earlier page ended
    #[arg(long)]
    cursor: Option<String>,
}

pub fn run(command: &Command) -> Result<u8, Failure> {
    match command {
        Command::Submit(arguments) => submit(arguments),
        Command::List(arguments) => list(arguments),
        Command::Show(one) => show(&one.server, &one.server.get(&format!("/v1/campaigns/{}", one.id), &[])?),
        Command::Watch(one) => watch(&one.server, one.id),
        Command::Cancel(one) => act(one, "cancel", None),
        Command::Pause(one) => act(one, "pause", None),
        Command::Resume(Resume { one, limits }) => act(one, "resume", Some(&fields("limits", limits.json()?))),
        Command::Priority(Priority { one, priority }) => {
            show(&one.server, &one.server.patch(&format!("/v1/campaigns/{}", one.id), &fields("priority", (*priority).into()))?)
        }
    }
}

fn act(one: &One, action: &str, body: Option<&Map<String, Value>>) -> Result<u8, Failure> {
    show(&one.server, &one.server.post(&format!("/v1/campaigns/{}/{action}", one.id), body, None)?)
}

fn show(server: &Server, campaign: &Value) -> Result<u8, Failure> {
    if server.json {
        print_json(campaign)?;
    } else {
        print_line(&summary(campaign));
    }
    Ok(PROVED)
}

fn summary(campaign: &Value) -> String {
    let mut line = format!("campaign {} {}", campaign["id"], text(&campaign["board"]));
    if campaign["setup"].is_object() {
        line += " from a diagram";
    }
    let moves = words(&campaign["moves"]);
    if !moves.is_empty() {
        line += &format!(" after {moves}");
    }
    if let Some(label) = campaign["label"].as_str() {
        line += &format!(" {label:?}");
    }
    line += &format!(": {}", text(&campaign["state"]));
    if matches!(campaign["state"].as_str(), Some("running" | "paused")) {
        line += &format!(", priority {}", campaign["priority"]);
    }
    if let Some(stage) = campaign["stage"].as_str() {
        line += &format!(" (looks for the {stage})");
    }
    match campaign["value"].as_i64() {
        Some(value) => line += &format!(", value {value}"),
        None => line += &format!(", between {} and {}", campaign["bounds"]["lower"], campaign["bounds"]["upper"]),
    }
    for (name, list) in [("proofs", &campaign["proofs"]), ("optimal moves", &campaign["optimal_moves"])] {
        if list.as_array().is_some_and(|list| !list.is_empty()) {
            line += &format!(", {name} {}", words(list));
        }
    }
    let jobs = campaign["jobs"].as_object().into_iter().flatten().map(|(state, count)| format!("{count} {state}"));
    line += &format!(", jobs: {}", jobs.collect::<Vec<_>>().join(", "));
    if let Some(error) = campaign["error"].as_str() {
        line += &format!(", {error}");
    }
    line + &format!(", {} expansions, {:.1} s", text(&campaign["expansions"]), campaign["elapsed_seconds"].as_f64().unwrap_or(0.0))
}

fn submit(arguments: &Submit) -> Result<u8, Failure> {
    let mut fields = arguments.position.fields()?;
    fields.insert("label".into(), json!(arguments.label));
    fields.insert("priority".into(), arguments.priority.into());
    fields.insert("split".into(), arguments.split.into());
    fields.insert("all_moves".into(), (!arguments.one_move).into());
    fields.insert("certificate".into(), arguments.certificate.into());
    fields.insert("verify".into(), arguments.verify.into());
    fields.insert("limits".into(), arguments.limits.json()?);
    let campaign = arguments.server.post("/v1/campaigns", Some(&fields), arguments.idempotency_key.as_deref())?;
    if arguments.wait {
        let id = campaign["id"].as_u64().ok_or_else(|| Failure::other("the server's answer has no campaign id"))?;
        return watch(&arguments.server, id);
    }
    show(&arguments.server, &campaign)
}

fn list(arguments: &List) -> Result<u8, Failure> {
    let given = [("state", arguments.state.clone()), ("cursor", arguments.cursor.clone())];
    let query: Vec<(&str, String)> = given.into_iter().filter_map(|(name, value)| value.map(|value| (name, value))).collect();
    let page = arguments.server.get("/v1/campaigns", &query)?;
    if arguments.server.json {
        print_json(&page)?;
        return Ok(PROVED);
    }
    for campaign in page["campaigns"].as_array().into_iter().flatten() {
        print_line(&summary(campaign));
    }
    if let Some(next) = page["next"].as_str() {
        print_line(&format!("more with --cursor {next}"));
    }
    Ok(PROVED)
}

fn watch(server: &Server, id: u64) -> Result<u8, Failure> {
    let mut progress = Progress::at_once();
    loop {
        let campaign = server.get(&format!("/v1/campaigns/{id}"), &[])?;
        let code = match campaign["state"].as_str() {
            Some("running" | "paused") => {
                progress.show(|| summary(&campaign));
                std::thread::sleep(Duration::from_secs(1));
                continue;
            }
            Some("succeeded") => PROVED,
            Some("expired" | "cancelled") => UNKNOWN,
            _ => FAILED,
        };
        drop(progress);
        show(server, &campaign)?;
        return Ok(code);
    }
}

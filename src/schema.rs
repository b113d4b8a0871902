//! Shapes of the API's JSON that the program reads or writes field by field, for its OpenAPI description. Tests hold real answers against
//! them (`tests/openapi.rs`).

use crate::jobs::{JobView, State};
use crate::report::{SolveReport, ValueReport};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A 64-bit counter as a string of digits: JSON readers lose whole numbers past 2^53.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(value_type = String, pattern = "^[0-9]+$", example = "4963")]
pub struct Counter(pub String);

/// Counters by group and name, and the shares of time by phase: see the README.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Statistics(pub BTreeMap<String, BTreeMap<String, Amount>>);

/// A counter, or a share from 0 to 1.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Amount {
    /// Of events, bytes or nanoseconds.
    Count(Counter),
    /// Of time.
    Share(f64),
}

/// Black's margin lies within these, ends included.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Bounds {
    /// Points that Black has at least.
    pub lower: i32,
    /// Points that Black has at most.
    pub upper: i32,
}

/// A side.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Color {
    /// `X` in diagrams.
    Black,
    /// `O` in diagrams.
    White,
}

/// A start diagram.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// The board, one string a row, top row first: `X` black, `O` white, `.` empty.
    #[schema(example = json!(["X.X.X."]))]
    pub rows: Vec<String>,
    /// Who is to move.
    pub to_move: Color,
    /// 1 if a pass directly precedes the diagram.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1)]
    pub passes: u8,
    /// Boards that occurred before and may not recur, besides the diagram itself.
    #[serde(default)]
    pub earlier: Vec<Vec<String>>,
}

/// Moves from the start: vertices such as `B2`, and `pass`.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
#[schema(example = json!(["B2", "C3", "pass"]))]
pub enum Moves {
    /// One string a move.
    List(Vec<String>),
    /// All in one string, separated by spaces or commas.
    Text(String),
}

/// When a job gives up, over all its runs; null is no limit.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitsRequest {
    /// Expansions, 1 or more, as a number or a string of digits.
    pub expansions: Option<Count>,
    /// Search time.
    #[schema(minimum = 0.001, maximum = 1e9)]
    pub time_seconds: Option<f64>,
    /// Bytes in use of the table, 1 or more, as a number or a string of digits.
    pub memory_bytes: Option<Count>,
}

/// A count as clients may send it.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Count {
    /// A whole number.
    Number(u64),
    /// A string of digits.
    Text(Counter),
}

/// When a job gives up, over all its runs; null is no limit.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Limits {
    /// Expansions.
    #[schema(required)]
    pub expansions: Option<Counter>,
    /// Search time.
    #[schema(required)]
    pub time_seconds: Option<f64>,
    /// Bytes in use of the table.
    #[schema(required)]
    pub memory_bytes: Option<Counter>,
}

/// What can be changed of a job or campaign.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PriorityChange {
    /// Higher goes first.
    #[schema(example = 5)]
    pub priority: i32,
}

/// How a job or campaign goes on.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Resumption {
    /// New limits, which count from here; those from before if left out.
    pub limits: Option<LimitsRequest>,
}

/// In which order jobs are listed.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// In the order of their ids.
    Oldest,
    /// The reverse.
    Newest,
}

/// What a campaign is about.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum CampaignStage {
    /// To find the value.
    Value,
    /// To write the certificates of its proofs.
    Certificates,
    /// To find all optimal first moves.
    Moves,
}

/// A campaign.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Campaign)]
pub struct CampaignReport {
    /// Names the campaign in the API.
    pub id: u64,
    /// `ROWSxCOLUMNS`.
    pub board: String,
    /// The start diagram, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<Setup>,
    /// Vertices from the start.
    pub moves: Vec<String>,
    /// Who is to move.
    pub to_move: Color,
    /// Where it stands; never `queued`.
    pub state: State,
    /// What it is about; null unless it is open.
    #[schema(required)]
    pub stage: Option<CampaignStage>,
    /// Free text of the client.
    #[schema(required)]
    pub label: Option<String>,
    /// Of its jobs: higher goes first.
    pub priority: i32,
    /// After how many moves a proof is split into jobs.
    pub split: u8,
    /// When each of its jobs gives up.
    pub limits: Limits,
    /// Whether the value's proofs are to be written as certificates.
    pub certificate: bool,
    /// Whether the checker is to judge the certificates.
    pub verify: bool,
    /// Whether all optimal first moves are to be found.
    pub all_moves: bool,
    /// RFC 3339, UTC.
    pub created_at: String,
    /// When it ended.
    #[schema(required)]
    pub finished_at: Option<String>,
    /// What is known of Black's margin.
    pub bounds: Bounds,
    /// Black's margin under best play; null while unknown.
    #[schema(required)]
    pub value: Option<i32>,
    /// Ids of the value's proofs.
    pub proofs: Vec<String>,
    /// The first moves that reach the value; null while unknown.
    #[schema(required)]
    pub optimal_moves: Option<Vec<String>>,
    /// First moves of which something is known.
    pub moves_known: Vec<MoveBounds>,
    /// How many jobs it has in each state.
    pub jobs: BTreeMap<String, u32>,
    /// Over all its jobs.
    pub expansions: Counter,
    /// Search time over all its jobs.
    pub elapsed_seconds: f64,
    /// Counts its changes, but for progress; part of its entity tag.
    pub revision: u64,
    /// What went wrong, if it failed.
    #[schema(required)]
    pub error: Option<String>,
}

/// What is known of a first move.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct MoveBounds {
    /// A vertex or `pass`.
    #[serde(rename = "move")]
    #[schema(example = "B2")]
    pub mv: String,
    /// Black's margin after it.
    pub bounds: Bounds,
}

/// A page of campaigns.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct CampaignPage {
    /// Those of this page.
    pub campaigns: Vec<CampaignReport>,
    /// The `cursor` of the following page; null on the last.
    #[schema(required)]
    pub next: Option<String>,
}

/// An event as a line.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct EventLine {
    /// For `Last-Event-ID`.
    pub id: String,
    /// `state` and `result` (data: the job), `progress`, `checkpoint`, `campaign` (data: the campaign), `draining`, or `reset`: read anew.
    #[schema(pattern = "^(state|progress|checkpoint|result|campaign|draining|reset)$")]
    pub event: String,
    /// What the event is about.
    pub data: serde_json::Value,
}

/// What `superko solve --json` or `superko value --json` prints, by the job's kind.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum JobResult {
    /// Of a solve.
    Solve(Box<SolveReport>),
    /// Of a value.
    Value(Box<ValueReport>),
}

/// A page of jobs.
#[derive(Debug, Serialize, ToSchema)]
pub struct JobPage<'a> {
    /// Those of this page.
    pub jobs: Vec<JobView<'a>>,
    /// The `cursor` of the following page; null on the last.
    #[schema(required)]
    pub next: Option<String>,
}

/// A proof of a finished job, as in the job's result.
#[derive(Debug, Serialize, ToSchema)]
pub struct Proof {
    /// Names the proof: its job and a number.
    #[schema(example = "7-1")]
    pub id: String,
    /// The job that found it.
    pub job: u64,
    /// The report of the job.
    #[serde(flatten)]
    pub report: SolveReport,
}

/// Who is proven to win a position, at a komi.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Black wins.
    Black,
    /// White wins.
    White,
    /// Nothing stored decides it.
    Unknown,
}

/// What a move is for the side that makes it, at a komi.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MoveVerdict {
    /// It wins.
    Win,
    /// It loses.
    Loss,
    /// Nothing stored decides it.
    Unknown,
}

/// What is proven of a position.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct PositionReport {
    /// `ROWSxCOLUMNS`.
    pub board: String,
    /// As asked; null without one.
    #[schema(required)]
    pub komi: Option<f64>,
    /// Vertices from the start.
    pub moves: Vec<String>,
    /// The start diagram, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<Setup>,
    /// The stones, one string a row, top row first.
    pub rows: Vec<String>,
    /// Who is to move.
    pub to_move: Color,
    /// Whether two passes have ended the game.
    pub over: bool,
    /// Who wins; null without komi.
    #[schema(required)]
    pub verdict: Option<Verdict>,
    /// Black's margin.
    pub bounds: Bounds,
    /// The moves on empty points, and the pass.
    pub next_moves: Vec<MoveReport>,
}

/// A position to look up.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"board": "3x3", "komi": 8.5, "moves": ["B2"]}))]
pub struct PositionRequest {
    /// `ROWSxCOLUMNS`.
    #[schema(pattern = "^[1-9][0-9]?[xX][1-9][0-9]?$", example = "3x3")]
    pub board: String,
    /// A half-integer; without it there are bounds, but no verdicts.
    #[schema(multiple_of = 0.5, example = 0.5)]
    pub komi: Option<f64>,
    /// From the start, or from the diagram.
    pub moves: Option<Moves>,
    /// To start from a diagram.
    pub setup: Option<Setup>,
}

/// Positions to look up.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PositionBatch {
    /// In any order; those on boards of one size are cheaper side by side.
    #[schema(min_items = 1, max_items = 256)]
    pub positions: Vec<PositionRequest>,
}

/// What is proven of each position of a batch, in order.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct PositionReports {
    /// One each.
    pub results: Vec<PositionResult>,
}

/// What came of a position of a batch.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct PositionResult {
    /// 200, or 422 with `error`.
    pub status: u16,
    /// What is proven of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<PositionReport>,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Problem>,
}

/// A backup to make.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BackupRequest {
    /// Its name, and that of its directory in `backups/` of the data directory.
    #[schema(example = "monday")]
    pub name: String,
}

/// What is proven of a move.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct MoveReport {
    /// A vertex or `pass`.
    #[serde(rename = "move")]
    #[schema(example = "B2")]
    pub mv: String,
    /// Whether it may be played.
    pub legal: bool,
    /// Null without komi, and for an illegal move.
    #[schema(required)]
    pub verdict: Option<MoveVerdict>,
    /// Black's margin after it; null for an illegal move.
    #[schema(required)]
    pub bounds: Option<Bounds>,
    /// Whether it is illegal because its board occurred before.
    pub superko: bool,
    /// Why it is illegal.
    #[schema(required)]
    pub reason: Option<String>,
}

/// What a checkpoint wrote.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Checkpoint {
    /// Counts up; null if there was nothing to write.
    #[schema(required)]
    pub sequence: Option<Counter>,
    /// Lemmas written.
    pub lemmas: Counter,
    /// Proof numbers written.
    pub numbers: Counter,
    /// Bytes written.
    pub checkpoint_bytes: Counter,
    /// How long it took.
    pub elapsed_seconds: f64,
}

/// The daemon is there.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// Always `alive`.
    pub status: String,
    /// Of the program.
    pub version: String,
}

/// The daemon takes jobs.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Ready {
    /// Always `ready`.
    pub status: String,
}

/// An error (RFC 9457).
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "type": "about:blank",
    "title": "Unprocessable Entity",
    "status": 422,
    "detail": "move 2, A1, is illegal: the point is occupied",
    "code": "invalid_request",
    "request_id": "6443ac3c05fe7-1",
    "errors": [{"pointer": "/moves/1", "detail": "move 2, A1, is illegal: the point is occupied"}]
}))]
pub struct Problem {
    /// `about:blank`: `code` tells errors apart.
    #[serde(rename = "type")]
    pub kind: String,
    /// What the status means.
    pub title: String,
    /// As in the answer's first line.
    pub status: u16,
    /// What is wrong, and what to do.
    pub detail: String,
    /// Names the error for programs; does not change.
    #[schema(pattern = "^[a-z_]+$")]
    pub code: String,
    /// The header X-Request-Id of the answer, which is also in the server's log; left out where the problem is a part of an answer.
    #[serde(default)]
    #[schema(value_type = String)]
    pub request_id: Option<String>,
    /// The fields at fault, where there are some.
    #[serde(default)]
    pub errors: Vec<FieldProblem>,
}

/// What is wrong with a field.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct FieldProblem {
    /// JSON pointer to the field in the body, or `/NAME` of a query parameter.
    #[schema(example = "/moves/3")]
    pub pointer: String,
    /// The value, and what was expected.
    pub detail: String,
}

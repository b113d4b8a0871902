//! Campaigns: the value of a position by many jobs, split by first moves if wanted.
//!
//! A campaign decides nothing itself. Every verdict is a job's; what follows for a position from those of its successors only steers which
//! job comes next: the root is always proved by a job about the root, which finds the lemmas of the other jobs. What to do next is
//! worked out anew from the campaign's jobs whenever one of them ends, so there is no progress to lose.

use crate::jobs::{Change, Job, JobError, Jobs, Live, State, Writer, locked};
use crate::position::{FieldError, Position, escape, shown, vertices};
use crate::proofs::ProofId;
use crate::report::{Counts, Step, ValueProgress, bounds_of, winner_within};
use crate::request::{JobLimits, JobRequest, Kind, limits_json, read_flag, read_label, read_limits, read_priority};
use crate::schema::{self, CampaignStage};
use crate::units::now_rfc3339;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError};
use superko_rules::{Color, Game, Geometry, Move};
use superko_search::{Bounds, Komi};
use superko_storage::CampaignRecord;
use utoipa::ToSchema;

/// Version of the campaign body in the store.
const BODY_VERSION: u32 = 1;

/// Most positions that a campaign may be split into.
const MAX_LINES: usize = 500;

/// Greatest number of moves after which a campaign may be split.
const MAX_SPLIT: usize = 3;

const FIELDS: [&str; 10] = ["board", "moves", "setup", "priority", "limits", "label", "split", "certificate", "verify", "all_moves"];

/// A campaign as a client asks for it.
// For the description of the API; `CampaignRequest::from_json` reads the body, with better errors than serde's.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"board": "3x3", "split": 1, "label": "first"}))]
pub struct CampaignSubmission {
    /// `ROWSxCOLUMNS`, to 8x8, and lines and two or three rows of up to 64 points.
    #[schema(pattern = "^[1-9][0-9]?[xX][1-9][0-9]?$", example = "3x3")]
    pub board: String,
    /// From the start, or from the diagram.
    pub moves: Option<schema::Moves>,
    /// To start from a diagram.
    pub setup: Option<schema::Setup>,
    /// Of its jobs: higher goes first; 0 if left out.
    pub priority: Option<i32>,
    /// When each of its jobs gives up.
    pub limits: Option<schema::LimitsRequest>,
    /// Free text to find it by.
    #[schema(max_length = 200)]
    pub label: Option<String>,
    /// After how many moves a proof is split into jobs; 0 if left out, for not at all.
    #[schema(minimum = 0, maximum = 3)]
    pub split: Option<u8>,
    /// Whether to write the value's proofs as certificates.
    pub certificate: Option<bool>,
    /// Whether to have the certificates checked; needs `certificate`.
    pub verify: Option<bool>,
    /// Whether to find all optimal first moves; true if left out.
    pub all_moves: Option<bool>,
}

/// A validated campaign request.
#[derive(Clone, Debug)]
pub struct CampaignRequest {
    /// Whose value is wanted.
    pub position: Position,
    /// Of its jobs.
    pub priority: i32,
    /// Of each of its jobs.
    pub limits: JobLimits,
    /// Free text.
    pub label: Option<String>,
    /// After how many moves a proof is split into jobs; 0 for not at all.
    pub split: usize,
    /// Whether the value's proofs are to be written as certificates.
    pub certificate: bool,
    /// Whether the checker is to judge them.
    pub verify: bool,
    /// Whether to find all optimal first moves, not only the proofs' own.
    pub all_moves: bool,
}

impl CampaignRequest {
    /// Reads a request body; reports one error a field.
    pub fn from_json(body: &Value) -> Result<CampaignRequest, Vec<FieldError>> {
        let Value::Object(fields) = body else {
            return Err(vec![FieldError::new("", format!("{} is not an object: expected {{\"board\": …}}", shown(body)))]);
        };
        let unknown = |name: &String| {
            FieldError::new(format!("/{}", escape(name)), format!("unknown field {name:?}: a campaign has {}", FIELDS.join(", ")))
        };
        let mut errors: Vec<FieldError> = fields.keys().filter(|name| !FIELDS.contains(&name.as_str())).map(unknown).collect();
        let mut keep = |error: FieldError| errors.push(error);
        let position = Position::from_fields(fields).map_err(&mut keep).ok();
        let priority = read_priority(fields.get("priority")).map_err(&mut keep).ok();
        let limits = read_limits(fields.get("limits")).map_err(&mut keep).ok();
        let label = read_label(fields.get("label")).map_err(&mut keep).ok();
        let split = read_split(fields.get("split")).map_err(&mut keep).ok();
        let certificate = read_flag("certificate", fields).map_err(&mut keep).ok();
        let verify = read_flag("verify", fields).map_err(&mut keep).ok();
        let some_moves = fields.get("all_moves").is_some_and(|value| !value.is_null());
        let all_moves = if some_moves { read_flag("all_moves", fields).map_err(&mut keep).ok() } else { Some(true) };
        if (certificate, verify) == (Some(false), Some(true)) {
            keep(FieldError::new("/verify", "verify true needs certificate true: there is nothing else to verify"));
        }
        match (position, priority.zip(limits), label.zip(split), certificate.zip(verify), all_moves) {
            (Some(position), Some((priority, limits)), Some((label, split)), Some((certificate, verify)), Some(all_moves))
                if errors.is_empty() =>
            {
                let lines = Line::count(&position.game, split, MAX_LINES + 1);
                if lines > MAX_LINES {
                    let detail = format!("split {split} makes more than {MAX_LINES} positions here: expected a smaller number of moves");
                    return Err(vec![FieldError::new("/split", detail)]);
                }
                Ok(CampaignRequest { position, priority, limits, label, split, certificate, verify, all_moves })
            }
            _ => Err(errors),
        }
    }

    /// The request in one fixed form, which reads back as the same request.
    pub fn canonical(&self) -> Map<String, Value> {
        let mut fields = position_fields(&self.position, &[]);
        fields.insert("priority".into(), self.priority.into());
        fields.insert("limits".into(), limits_json(&self.limits));
        fields.insert("label".into(), json!(self.label));
        fields.insert("split".into(), self.split.into());
        for (name, flag) in [("certificate", self.certificate), ("verify", self.verify), ("all_moves", self.all_moves)] {
            fields.insert(name.into(), flag.into());
        }
        fields
    }

    fn identity(&self) -> Map<String, Value> {
        let mut fields = self.canonical();
        fields.remove("priority");
        fields
    }
}

fn read_split(value: Option<&Value>) -> Result<usize, FieldError> {
    match value {
        None | Some(Value::Null) => Ok(0),
        Some(value) => value.as_u64().filter(|&split| split <= MAX_SPLIT as u64).map(|split| split as usize).ok_or_else(|| {
            FieldError::new("/split", format!("split {} is not valid: expected a number of moves from 0 to {MAX_SPLIT}", shown(value)))
        }),
    }
}

/// `board`, `setup` and `moves` of the position that `line` leads to.
fn position_fields(position: &Position, line: &[Move]) -> Map<String, Value> {
    let geometry = position.geometry();
    let mut moves = position.moves();
    moves.extend(vertices(geometry, line));
    let mut fields = Map::new();
    fields.insert("board".into(), geometry.name().into());
    fields.insert("moves".into(), moves.into());
    if let Some(setup) = position.setup() {
        fields.insert("setup".into(), setup);
    }
    fields
}

/// What the store keeps of a campaign besides its request and its jobs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CampaignData {
    version: u32,
    request: Map<String, Value>,
    /// `running`, `paused` or how it ended.
    pub state: State,
    /// RFC 3339, UTC.
    pub created_at: String,
    /// When it reached its last state.
    pub finished_at: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
    /// Keys under which it was submitted.
    keys: Vec<String>,
    /// Counts its changes; part of its entity tag.
    pub revision: u64,
}

/// A campaign.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// Counts up from 1.
    pub id: u64,
    /// What was asked.
    pub request: Arc<CampaignRequest>,
    /// Where it stands.
    pub data: CampaignData,
}

impl Campaign {
    pub(crate) fn record(&self) -> Result<CampaignRecord, JobError> {
        let body = serde_json::to_value(&self.data).map_err(|error| JobError::Store(error.to_string()))?;
        Ok(CampaignRecord { id: self.id, body })
    }

    pub(crate) fn from_record(record: CampaignRecord) -> Result<Campaign, String> {
        let data: CampaignData = serde_json::from_value(record.body).map_err(|error| error.to_string())?;
        if data.version != BODY_VERSION {
            return Err(format!("body version {} is not known, expected {BODY_VERSION}", data.version));
        }
        let request = CampaignRequest::from_json(&Value::Object(data.request.clone()))
            .map_err(|errors| errors.iter().map(|error| format!("{}: {}", error.pointer, error.detail)).collect::<Vec<_>>().join("; "))?;
        Ok(Campaign { id: record.id, request: Arc::new(request), data })
    }

    /// The entity tag of what clients can change.
    pub fn tag(&self) -> String {
        format!("\"campaign-{}-{}\"", self.id, self.data.revision)
    }

    fn set_state(&mut self, state: State) {
        self.data.state = state;
        self.data.revision += 1;
        self.data.finished_at = if state.is_open() { None } else { Some(now_rfc3339()) };
    }
}

/// A position that a few moves from the campaign's root lead to, with those below it.
#[derive(Debug)]
struct Line {
    moves: Vec<Move>,
    to_move: Color,
    /// What the jobs about this position and about those below it say of Black's margin.
    bounds: Bounds,
    /// One for each legal move, but for symmetric ones; none below the depth looked at, or when the game is over.
    next: Vec<Line>,
}

/// The legal moves, the centre first and the pass last; of several that a symmetry of the whole game maps to each other, the first.
///
/// A symmetry that maps every board of the history to itself maps the game to itself, hence a move's value to that of its image.
fn distinct_moves(game: &Game) -> Vec<Move> {
    let geometry = game.geometry();
    let keeps_all = |&sym: &u8| game.boards().iter().all(|&board| geometry.map_board(sym, board) == board);
    let symmetries: Vec<u8> = (0..geometry.symmetries() as u8).filter(keeps_all).collect();
    let mut moves = game.legal_moves();
    moves.sort_by_key(|&mv| from_centre(geometry, mv));
    let mut distinct: Vec<Move> = Vec::new();
    for mv in moves {
        if !symmetries.iter().any(|&sym| distinct.contains(&geometry.map_move(sym, mv))) {
            distinct.push(mv);
        }
    }
    distinct
}

fn from_centre(geometry: &Geometry, mv: Move) -> usize {
    match mv {
        Move::Pass => usize::MAX,
        Move::Stone(point) => {
            let off = |place: usize, length: usize| (2 * place + 1).abs_diff(length);
            let (row, col) = (usize::from(point) / geometry.cols(), usize::from(point) % geometry.cols());
            off(row, geometry.rows()).pow(2) + off(col, geometry.cols()).pow(2)
        }
    }
}

impl Line {
    /// The positions after `depth` moves, counted up to `most`.
    fn count(game: &Game, depth: usize, most: usize) -> usize {
        if depth == 0 {
            return 1;
        }
        let mut count = 0;
        for mv in distinct_moves(game) {
            if count >= most {
                break;
            }
            let mut next = game.clone();
            if next.play(mv).is_ok() {
                count += Line::count(&next, depth - 1, most - count);
            }
        }
        count
    }

    /// The position that `moves` have led to, and those up to `depth` moves below; `known` has what jobs say.
    fn new(game: &Game, moves: Vec<Move>, depth: usize, known: &HashMap<Vec<Move>, Bounds>) -> Line {
        let points = game.geometry().points() as i32;
        let to_move = game.position().to_move;
        let mut bounds = known.get(&moves).copied().unwrap_or(Bounds { lower: -points, upper: points });
        let mut next = Vec::new();
        if game.is_over() {
            bounds = Bounds { lower: game.score(), upper: game.score() };
        } else if depth > 0 {
            for mv in distinct_moves(game) {
                let (mut after, mut line) = (game.clone(), moves.clone());
                if after.play(mv).is_ok() {
                    line.push(mv);
                    next.push(Line::new(&after, line, depth - 1, known));
                }
            }
            // Black to move gets the most of what its moves lead to, White the least.
            let of = |choose: fn(i32, i32) -> i32| {
                let ends = next.iter().map(|line| (line.bounds.lower, line.bounds.upper));
                ends.reduce(|(a, b), (c, d)| (choose(a, c), choose(b, d)))
            };
            if let Some((lower, upper)) = of(if to_move == Color::Black { i32::max } else { i32::min }) {
                bounds = Bounds { lower: bounds.lower.max(lower), upper: bounds.upper.min(upper) };
            }
        }
        Line { moves, to_move, bounds, next }
    }

    /// The positions `depth` moves below that still matter to who wins here at `komi`.
    fn open<'a>(&'a self, depth: usize, komi: Komi, found: &mut Vec<&'a Line>) {
        if winner_within(self.bounds, komi).is_some() {
            return;
        }
        if depth == 0 {
            found.push(self);
        }
        for line in self.next.iter().filter(|_| depth > 0) {
            line.open(depth - 1, komi, found);
        }
    }
}

/// A job that a campaign wants.
#[derive(Clone, Debug, PartialEq)]
struct Wanted {
    line: Vec<Move>,
    komi: Komi,
    certificate: bool,
}

/// What is to be done next, and what is known.
#[derive(Debug)]
struct Plan {
    wanted: Vec<Wanted>,
    root: Line,
    value: Option<i32>,
    proofs: Vec<String>,
    optimal_moves: Option<Vec<Move>>,
    /// About which part of the task `wanted` is; none when nothing is wanted.
    stage: Option<CampaignStage>,
}

/// The moves from the campaign's root to a job's position.
fn line_of<'a>(campaign: &CampaignRequest, job: &'a Job) -> &'a [Move] {
    &job.request.position.game.moves()[campaign.position.game.moves().len()..]
}

fn plan(request: &CampaignRequest, jobs: &[Arc<Job>], live: Option<&(u64, Live)>) -> Plan {
    let points = request.position.geometry().points();
    let mut known: HashMap<Vec<Move>, Bounds> = HashMap::new();
    let mut learn = |line: &[Move], bounds: Bounds| {
        let entry = known.entry(line.to_vec()).or_insert(bounds_of(None, points));
        *entry = Bounds { lower: entry.lower.max(bounds.lower), upper: entry.upper.min(bounds.upper) };
    };
    // What each job has proved; a job without a verdict has the whole range.
    for job in jobs {
        learn(line_of(request, job), Bounds { lower: job.data.bounds.0, upper: job.data.bounds.1 });
        if let Some((_, live)) = live.filter(|(id, _)| *id == job.id) {
            learn(line_of(request, job), live.bounds);
        }
    }
    let root = Line::new(&request.position.game, Vec::new(), request.split.max(1), &known);
    let at_root: Vec<&Arc<Job>> =
        jobs.iter().filter(|job| job.data.state == State::Succeeded && line_of(request, job).is_empty()).collect();
    let steps: Vec<Step> = at_root.iter().flat_map(|job| job.data.steps.clone()).collect();
    let progress = ValueProgress::new(&request.position, &steps);
    let mut plan =
        Plan { wanted: Vec::new(), root, value: None, proofs: Vec::new(), optimal_moves: None, stage: Some(CampaignStage::Value) };
    let wanted = |line: &[Move], komi, certificate| Wanted { line: line.to_vec(), komi, certificate };
    if let Some(komi) = progress.next_komi() {
        let mut open = Vec::new();
        plan.root.open(request.split, komi, &mut open);
        plan.wanted = open.iter().map(|line| wanted(&line.moves, komi, false)).collect();
        if plan.wanted.is_empty() {
            // The lemmas of the other jobs decide it: the job about the root puts them together.
            plan.wanted.push(wanted(&[], komi, false));
        }
        return plan;
    }
    let report = progress.report(&request.position, &Counts::default());
    let Some(value) = report.value else { return plan };
    plan.value = Some(value);
    for proof in &report.proofs {
        let Ok(komi) = Komi::from_f64(proof.komi) else { continue };
        let proves = |job: &&&Arc<Job>| job.request.komi == Some(komi) && job.request.certificate == request.certificate;
        match at_root.iter().find(proves) {
            Some(job) => plan.proofs.push(ProofId { job: job.id, number: 1 }.to_string()),
            None => plan.wanted.push(wanted(&[], komi, true)),
        }
    }
    if !plan.wanted.is_empty() {
        plan.stage = Some(CampaignStage::Certificates);
        return plan;
    }
    plan.stage = None;
    let mover = plan.root.to_move;
    if !request.all_moves {
        // Those that the mover's proof plays.
        let best = report.proofs.iter().filter(|proof| proof.winner.as_deref() == Some(mover.name()));
        let best = best.filter_map(|proof| Move::parse(request.position.geometry(), proof.best_move.as_ref()?).ok());
        plan.optimal_moves = Some(best.collect());
        return plan;
    }
    // A move is optimal if the mover wins after it whatever the value lets it win: at the komi just beyond the value.
    let komi = if mover == Color::Black { Komi::below(value) } else { Komi::below(value + 1) };
    let open = plan.root.next.iter().filter(|line| winner_within(line.bounds, komi).is_none());
    plan.wanted = open.map(|line| wanted(&line.moves, komi, false)).collect();
    if !plan.wanted.is_empty() {
        plan.stage = Some(CampaignStage::Moves);
        return plan;
    }
    let best = plan.root.next.iter().filter(|line| winner_within(line.bounds, komi) == Some(mover));
    plan.optimal_moves = Some(best.filter_map(|line| line.moves.last().copied()).collect());
    plan
}

impl Wanted {
    fn is_for(&self, request: &CampaignRequest, job: &Job) -> bool {
        job.request.komi == Some(self.komi) && job.request.certificate == self.certificate && line_of(request, job) == self.line
    }

    fn request(&self, campaign: &CampaignRequest) -> Result<JobRequest, JobError> {
        let position = Position::from_fields(&position_fields(&campaign.position, &self.line));
        Ok(JobRequest {
            kind: Kind::Solve,
            position: position.map_err(|error| JobError::Store(error.detail))?,
            komi: Some(self.komi),
            priority: campaign.priority,
            limits: campaign.limits,
            label: campaign.label.clone(),
            certificate: self.certificate,
            verify: self.certificate && campaign.verify,
        })
    }
}

impl Jobs {
    /// A campaign as it stands.
    pub fn campaign(&self, id: u64) -> Result<Arc<Campaign>, JobError> {
        self.campaigns.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned().ok_or(JobError::NoCampaign(id))
    }

    /// The campaigns with an id above `after` that `keep` wants, oldest first, at most `limit`.
    pub fn list_campaigns(&self, after: u64, limit: usize, keep: impl Fn(&Campaign) -> bool) -> Vec<Arc<Campaign>> {
        let map = self.campaigns.read().unwrap_or_else(PoisonError::into_inner);
        map.range(after.saturating_add(1)..).map(|(_, campaign)| campaign).filter(|campaign| keep(campaign)).take(limit).cloned().collect()
    }

    /// The jobs of a campaign, oldest first.
    fn jobs_of(&self, campaign: u64) -> Vec<Arc<Job>> {
        self.list(0..u64::MAX, false, usize::MAX, |job| job.data.campaign == Some(campaign))
    }

    /// Stores a new campaign with its first jobs, or joins the open one that asks the same. Blocks on the disk.
    pub fn submit_campaign(&self, request: CampaignRequest, key: Option<String>) -> Result<Arc<Campaign>, JobError> {
        let mut writer = locked(&self.writer);
        if writer.draining {
            return Err(JobError::Draining);
        }
        let all = self.list_campaigns(0, usize::MAX, |_| true);
        let canonical = request.canonical();
        if let Some(key) = &key
            && let Some(campaign) = all.iter().find(|campaign| campaign.data.keys.contains(key))
        {
            let same = campaign.request.identity() == request.identity();
            return if same { Ok(campaign.clone()) } else { Err(JobError::CampaignKeyReused { key: key.clone(), id: campaign.id }) };
        }
        let is_twin = |campaign: &&Arc<Campaign>| campaign.data.state.is_open() && campaign.request.identity() == request.identity();
        if let Some(twin) = all.iter().find(is_twin) {
            let Some(key) = key else { return Ok(twin.clone()) };
            let mut campaign = Campaign::clone(twin);
            campaign.data.keys.push(key);
            self.apply(Change { campaigns: vec![campaign], ..Change::default() })?;
            return self.campaign(twin.id);
        }
        self.check_room()?;
        let id = writer.next_campaign;
        let data = CampaignData {
            version: BODY_VERSION,
            request: canonical,
            state: State::Running,
            created_at: now_rfc3339(),
            finished_at: None,
            error: None,
            keys: key.into_iter().collect(),
            revision: 1,
        };
        let campaign = Campaign { id, request: Arc::new(request), data };
        // What is acknowledged must come back after a restart.
        Campaign::from_record(campaign.record()?).map_err(|error| JobError::UnreadableCampaign { id, error })?;
        let change = next_step(&mut writer, campaign.clone(), &[])?.unwrap_or(Change { campaigns: vec![campaign], ..Change::default() });
        self.apply(change)?;
        writer.next_campaign += 1;
        self.campaign(id)
    }

    /// Looks at what the jobs of the running campaigns have brought, and does what follows. Blocks on the disk.
    pub fn advance_campaigns(&self) -> Result<(), JobError> {
        let mut writer = locked(&self.writer);
        for campaign in self.list_campaigns(0, usize::MAX, |campaign| campaign.data.state == State::Running) {
            let jobs = self.jobs_of(campaign.id);
            if let Some(change) = next_step(&mut writer, Campaign::clone(&campaign), &jobs)? {
                self.apply(change)?;
            }
        }
        Ok(())
    }

    /// Changes a campaign and its open or expired jobs in one step. `change` answers whether there is anything to store.
    fn change_campaign(
        &self,
        id: u64,
        if_match: Option<&dyn Fn(&str) -> bool>,
        change: impl FnOnce(&mut Campaign) -> Result<bool, JobError>,
        each: impl Fn(&mut Job),
    ) -> Result<Arc<Campaign>, JobError> {
        let _writer = locked(&self.writer);
        let old = self.campaign(id)?;
        if if_match.is_some_and(|names| !names(&old.tag())) {
            return Err(JobError::Changed { what: "campaign", id, tag: old.tag() });
        }
        let mut campaign = Campaign::clone(&old);
        if !change(&mut campaign)? {
            return Ok(old);
        }
        let mut jobs = Vec::new();
        for old in self.jobs_of(id).into_iter().filter(|job| job.data.state.is_open() || job.data.state == State::Expired) {
            let mut job = Job::clone(&old);
            each(&mut job);
            job.touched(&old);
            jobs.push(job);
        }
        self.apply(Change { jobs, campaigns: vec![campaign], ..Change::default() })?;
        self.campaign(id)
    }

    /// Puts a campaign and its jobs aside; the caller stops the one that runs.
    pub fn pause_campaign(&self, id: u64) -> Result<Arc<Campaign>, JobError> {
        let pause = |campaign: &mut Campaign| match campaign.data.state {
            State::Paused => Ok(false),
            State::Running => {
                campaign.set_state(State::Paused);
                Ok(true)
            }
            state => Err(JobError::Conflict { what: "campaign", id, state, action: "paused" }),
        };
        self.change_campaign(id, None, pause, |job| {
            if job.data.state.is_open() {
                job.data.state = State::Paused;
            }
        })
    }

    /// Goes on with a paused campaign, or with one whose jobs have reached their limits: these count anew, or are replaced by `limits`.
    pub fn resume_campaign(&self, id: u64, limits: Option<JobLimits>) -> Result<Arc<Campaign>, JobError> {
        let resume = |campaign: &mut Campaign| match campaign.data.state {
            State::Running if limits.is_none() => Ok(false),
            State::Running | State::Paused | State::Expired => {
                campaign.set_state(State::Running);
                if let Some(limits) = limits {
                    campaign.set_request(|request| request.limits = limits);
                }
                Ok(true)
            }
            state => Err(JobError::Conflict { what: "campaign", id, state, action: "resumed" }),
        };
        self.change_campaign(id, None, resume, |job| match job.data.state {
            State::Paused | State::Expired => job.requeue(limits),
            _ => {
                if let Some(limits) = limits {
                    job.data.limit_start = job.data.counts;
                    job.set_request(|request| request.limits = limits);
                }
            }
        })
    }

    /// Ends a campaign and its jobs; the caller stops the one that runs.
    pub fn cancel_campaign(&self, id: u64) -> Result<Arc<Campaign>, JobError> {
        let cancel = |campaign: &mut Campaign| match campaign.data.state {
            State::Cancelled => Ok(false),
            State::Running | State::Paused | State::Expired => {
                campaign.set_state(State::Cancelled);
                Ok(true)
            }
            state => Err(JobError::Conflict { what: "campaign", id, state, action: "cancelled" }),
        };
        self.change_campaign(id, None, cancel, |job| {
            if job.data.state.is_open() {
                job.data.state = State::Cancelled;
            }
        })
    }

    /// Changes the priority of a campaign and its jobs.
    pub fn set_campaign_priority(
        &self,
        id: u64,
        priority: i32,
        if_match: Option<&dyn Fn(&str) -> bool>,
    ) -> Result<Arc<Campaign>, JobError> {
        let set = |campaign: &mut Campaign| {
            let state = campaign.data.state;
            if !state.is_open() {
                return Err(JobError::Conflict { what: "campaign", id, state, action: "given another priority" });
            }
            let changes = campaign.request.priority != priority;
            if changes {
                campaign.data.revision += 1;
                campaign.set_request(|request| request.priority = priority);
            }
            Ok(changes)
        };
        self.change_campaign(id, if_match, set, |job| job.set_request(|request| request.priority = priority))
    }

    /// A campaign as clients see it.
    pub fn campaign_view(&self, id: u64, live: Option<&(u64, Live)>) -> Option<Value> {
        let campaign = self.campaign(id).ok()?;
        let (request, data) = (&campaign.request, &campaign.data);
        let jobs = self.jobs_of(id);
        let plan = plan(request, &jobs, live);
        let geometry = request.position.geometry();
        let (mut states, mut expansions, mut seconds) = (BTreeMap::new(), 0, 0.0);
        for job in &jobs {
            let counts = live.filter(|(id, _)| *id == job.id).map_or(job.data.counts, |(_, live)| live.counts);
            *states.entry(job.data.state.name()).or_insert(0) += 1;
            expansions += counts.expansions;
            seconds += counts.elapsed_seconds;
        }
        let points = geometry.points() as i32;
        let is_known = |line: &&Line| line.bounds.lower > -points || line.bounds.upper < points;
        let moves_known: Vec<Value> = plan
            .root
            .next
            .iter()
            .filter(is_known)
            .map(|line| {
                let mv = line.moves.last().map(|mv| mv.vertex(geometry));
                json!({"move": mv, "bounds": {"lower": line.bounds.lower, "upper": line.bounds.upper}})
            })
            .collect();
        let mut view = json!({
            "id": id,
            "board": geometry.name(),
            "moves": request.position.moves(),
            "to_move": request.position.to_move().name(),
            "state": data.state.name(),
            "stage": plan.stage.filter(|_| data.state.is_open()),
            "label": request.label,
            "priority": request.priority,
            "split": request.split,
            "limits": limits_json(&request.limits),
            "certificate": request.certificate,
            "verify": request.verify,
            "all_moves": request.all_moves,
            "created_at": data.created_at,
            "finished_at": data.finished_at,
            "bounds": {"lower": plan.root.bounds.lower, "upper": plan.root.bounds.upper},
            "value": plan.value,
            "proofs": plan.proofs,
            "optimal_moves": plan.optimal_moves.map(|moves| vertices(geometry, &moves)),
            "moves_known": moves_known,
            "jobs": states,
            "expansions": expansions.to_string(),
            "elapsed_seconds": seconds,
            "revision": data.revision,
            "error": data.error,
        });
        if let Some(setup) = request.position.setup() {
            view["setup"] = setup;
        }
        Some(view)
    }
}

impl Campaign {
    fn set_request(&mut self, change: impl FnOnce(&mut CampaignRequest)) {
        let mut request = CampaignRequest::clone(&self.request);
        change(&mut request);
        self.data.request = request.canonical();
        self.request = Arc::new(request);
    }
}

/// What a running campaign does, given its jobs: new jobs, jobs that no longer matter, or its end; `None` if it waits for its jobs.
fn next_step(writer: &mut Writer, mut campaign: Campaign, jobs: &[Arc<Job>]) -> Result<Option<Change>, JobError> {
    let request = campaign.request.clone();
    let plan = plan(&request, jobs, None);
    let mut change = Change::default();
    let mut waits = false;
    let mut expired = Vec::new();
    let mut failed = None;
    for wanted in &plan.wanted {
        // One that was cancelled for not mattering may matter again.
        let is_it = |job: &&Arc<Job>| wanted.is_for(&request, job) && job.data.state != State::Cancelled;
        match jobs.iter().rfind(is_it) {
            Some(job) if job.data.state == State::Expired => expired.push(job.id),
            Some(job) if job.data.state == State::Failed => failed = Some(job.clone()),
            Some(_) => waits = true,
            None => {
                let job = Job::new(Jobs::next_id(writer), wanted.request(&request)?, Some(campaign.id), None);
                change.jobs.push(job);
                waits = true;
            }
        }
    }
    let end = match failed {
        Some(job) => {
            campaign.data.error =
                Some(format!("job {} failed: {}", job.id, job.data.error.as_deref().unwrap_or("for no reason on record")));
            Some(State::Failed)
        }
        None if plan.wanted.is_empty() => Some(State::Succeeded),
        None if !waits && !expired.is_empty() => Some(State::Expired),
        None => None,
    };
    let is_over = end.is_some_and(|state| state != State::Expired);
    for old in jobs.iter().filter(|job| job.data.state.is_open()) {
        if is_over || !plan.wanted.iter().any(|wanted| wanted.is_for(&request, old)) {
            let mut job = Job::clone(old);
            job.data.state = State::Cancelled;
            job.touched(old);
            change.jobs.push(job);
        }
    }
    if let Some(state) = end {
        if is_over {
            // Jobs of another outcome that were just made are not.
            change.jobs.retain(|job| job.data.state != State::Queued);
        }
        campaign.set_state(state);
    }
    let changes = !change.jobs.is_empty() || end.is_some();
    change.campaigns.push(campaign);
    Ok(changes.then_some(change))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(body: Value) -> CampaignRequest {
        CampaignRequest::from_json(&body).expect("a good request")
    }

    /// A job of the campaign that has proved what `winner` gets.
    fn proved(request: &CampaignRequest, id: u64, wanted: &Wanted, winner: Color, margin: i32) -> Arc<Job> {
        let mut job = Job::new(id, wanted.request(request).expect("a job"), Some(1), None);
        job.data.state = State::Succeeded;
        let bounds = bounds_of(Some((winner, margin)), request.position.geometry().points());
        job.data.bounds = (bounds.lower, bounds.upper);
        Arc::new(job)
    }

    #[test]
    fn the_description_has_every_field() {
        let body: CampaignSubmission = serde_json::from_value(json!({"board": "2x2"})).expect("the least that is needed");
        let described = serde_json::to_value(body).expect("JSON");
        assert_eq!(described.as_object().expect("an object").keys().collect::<Vec<_>>(), FIELDS);
    }

    #[test]
    fn symmetric_first_moves_count_once_and_history_can_break_symmetry() {
        let names = |game: &Game| vertices(game.geometry(), &distinct_moves(game));
        let whole = request(json!({"board": "3x3"}));
        assert_eq!(names(&whole.position.game), ["B2", "B1", "A1", "pass"]);
        let wide = request(json!({"board": "2x3"}));
        assert_eq!(names(&wide.position.game), ["B1", "A1", "pass"]);
        // The board is symmetric again, but an earlier one is not: the left side may be banned where the right one is not.
        let setup = json!({"rows": ["...", "..."], "to_move": "black", "earlier": [["...", "X.."]]});
        let broken = request(json!({"board": "2x3", "setup": setup}));
        assert_eq!(names(&broken.position.game), ["B1", "B2", "C1", "A2", "C2", "pass"]);
    }

    #[test]
    fn a_split_proof_asks_for_what_still_matters_only() {
        let request = request(json!({"board": "2x3", "split": 1}));
        let first = plan(&request, &[], None);
        let moves = |plan: &Plan| plan.wanted.iter().map(|wanted| vertices(request.position.geometry(), &wanted.line)).collect::<Vec<_>>();
        assert_eq!(moves(&first), [vec!["B1"], vec!["A1"], vec!["pass"]]);
        let points = 6;
        let [b1, a1, pass] = &first.wanted[..] else { panic!("three moves") };
        // One lost move decides nothing.
        let lost = proved(&request, 1, a1, Color::White, points);
        let second = plan(&request, std::slice::from_ref(&lost), None);
        assert_eq!(moves(&second), [vec!["B1"], vec!["pass"]]);
        assert_eq!((second.root.bounds.lower, second.root.bounds.upper), (-points, points));
        // A winning one does: the rest no longer matters, the root is to be proved.
        let won = proved(&request, 2, b1, Color::Black, 4);
        let third = plan(&request, &[lost.clone(), won], None);
        assert_eq!(third.wanted, [Wanted { line: Vec::new(), komi: b1.komi, certificate: false }]);
        assert_eq!((third.root.bounds.lower, third.root.bounds.upper), (4, points));
        // All moves lost: so is the root.
        let jobs = [lost, proved(&request, 3, b1, Color::White, 2), proved(&request, 4, pass, Color::White, 3)];
        let fourth = plan(&request, &jobs, None);
        assert_eq!(fourth.wanted, [Wanted { line: Vec::new(), komi: b1.komi, certificate: false }]);
        assert_eq!((fourth.root.bounds.lower, fourth.root.bounds.upper), (-points, -2));
    }

    #[test]
    fn errors_point_at_the_field() {
        for (field, value, pointer) in [
            ("split", json!(4), "/split"),
            ("split", json!(-1), "/split"),
            ("komi", json!(0.5), "/komi"),
            ("all_moves", json!("yes"), "/all_moves"),
            ("verify", json!(true), "/verify"),
            ("moves", json!(["A1", "A1"]), "/moves/1"),
        ] {
            let mut body = json!({"board": "3x3"});
            body[field] = value;
            let errors = CampaignRequest::from_json(&body).expect_err(&body.to_string());
            assert_eq!(errors.iter().map(|error| error.pointer.as_str()).collect::<Vec<_>>(), [pointer], "{body}");
        }
        let errors = CampaignRequest::from_json(&json!({"board": "6x6", "split": 3})).expect_err("thousands of positions");
        assert_eq!(errors[0].pointer, "/split");
    }

    #[test]
    fn a_request_reads_back_from_its_canonical_form() {
        let request =
            request(json!({"board": "2x3", "moves": "b1", "split": 2, "priority": 4, "limits": {"expansions": "5"}, "all_moves": false}));
        let again = CampaignRequest::from_json(&Value::Object(request.canonical())).expect("canonical");
        assert_eq!(again.canonical(), request.canonical());
        assert_eq!((again.split, again.priority, again.all_moves), (2, 4, false));
    }
}

//! Jobs: their record in the store, the copy in memory, and (with `campaigns.rs`) the only place where their state changes.
//!
//! Every change is written and synced before anyone can see it. The copy in memory serves all reads.

use crate::campaigns::Campaign;
use crate::engine::Stage;
use crate::events::Events;
use crate::proofs::ProofId;
use crate::report::{Counts, SolveReport, Step, counter, serialize_bounds};
use crate::request::{JobLimits, JobRequest, Kind, limits_json};
use crate::schema;
use crate::units::now_rfc3339;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;
use superko_search::Bounds;
use superko_storage::{CampaignRecord, CheckpointReport, JobRecord, PendingCheckpoint, ProofRecord, Store};
use utoipa::ToSchema;

/// Version of the job body in the store.
const BODY_VERSION: u32 = 1;

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = JobState)]
pub enum State {
    /// Waiting for the solver.
    Queued,
    /// Being solved; stays so across restarts.
    Running,
    /// Put aside by a client, until one resumes it.
    Paused,
    /// Proved.
    Succeeded,
    /// Gave up for a fault of ours.
    Failed,
    /// Stopped by a client.
    Cancelled,
    /// A limit was hit; the bounds are kept, and it can be resumed.
    Expired,
}

impl State {
    /// Every state, in the order of a job's life.
    pub const ALL: [State; 7] =
        [State::Queued, State::Running, State::Paused, State::Succeeded, State::Failed, State::Cancelled, State::Expired];

    /// As in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            State::Queued => "queued",
            State::Running => "running",
            State::Paused => "paused",
            State::Succeeded => "succeeded",
            State::Failed => "failed",
            State::Cancelled => "cancelled",
            State::Expired => "expired",
        }
    }

    /// Whether work is left.
    pub fn is_open(self) -> bool {
        matches!(self, State::Queued | State::Running | State::Paused)
    }

    /// Whether the solver may take it up.
    pub fn is_runnable(self) -> bool {
        matches!(self, State::Queued | State::Running)
    }
}

/// A client's key. The request it stands for is the job's but for the priority: only such requests join a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Idempotency {
    key: String,
    #[serde(default)]
    priority: i32,
}

/// What the store keeps of a job besides its request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobData {
    version: u32,
    request: Map<String, Value>,
    /// Where it stands.
    pub state: State,
    /// RFC 3339, UTC.
    pub created_at: String,
    /// First start of its search.
    pub started_at: Option<String>,
    /// When it reached its last state.
    pub finished_at: Option<String>,
    /// Counts over all runs, up to the last checkpoint.
    pub counts: Counts,
    /// The part of `counts` that belongs to finished steps.
    #[serde(default, skip_serializing_if = "Counts::is_zero")]
    pub step_start: Counts,
    /// The komi proved so far (value jobs), up to the last checkpoint.
    pub steps: Vec<Step>,
    /// Least and greatest margin known.
    pub bounds: (i32, i32),
    /// The report of `solve --json` or `value --json`, as text: as a tree of values it would take many times the memory.
    pub result: Option<Box<RawValue>>,
    /// Whether one of the result's certificates was rejected.
    #[serde(skip)]
    is_rejected: bool,
    /// What went wrong.
    pub error: Option<String>,
    idempotency: Vec<Idempotency>,
    /// The campaign that it is a part of.
    #[serde(default)]
    pub campaign: Option<u64>,
    /// The part of `counts` that its limits do not count: what was spent before it was resumed.
    #[serde(default, skip_serializing_if = "Counts::is_zero")]
    pub limit_start: Counts,
    /// Counts the changes that clients can make or see: all but progress.
    #[serde(default)]
    pub revision: u64,
}

/// A job.
#[derive(Clone, Debug)]
pub struct Job {
    /// Counts up from 1.
    pub id: u64,
    /// What was asked.
    pub request: Arc<JobRequest>,
    /// Where it stands.
    pub data: JobData,
}

impl Job {
    pub(crate) fn record(&self) -> Result<JobRecord, JobError> {
        let body = serde_json::to_string(&self.data).map_err(|error| JobError::Store(error.to_string()))?;
        Ok(JobRecord { id: self.id, body, open: self.data.state.is_open() })
    }

    /// A job from its record; what is wrong with it otherwise.
    pub fn from_record(record: JobRecord) -> Result<Job, String> {
        let mut data: JobData = serde_json::from_str(&record.body).map_err(|error| error.to_string())?;
        if data.version != BODY_VERSION {
            return Err(format!("body version {} is not known, expected {BODY_VERSION}", data.version));
        }
        let request = JobRequest::from_json(&Value::Object(data.request.clone()))
            .map_err(|errors| errors.iter().map(|error| format!("{}: {}", error.pointer, error.detail)).collect::<Vec<_>>().join("; "))?;
        data.is_rejected = data.result.as_deref().is_some_and(is_rejected);
        Ok(Job { id: record.id, request: Arc::new(request), data })
    }
}

/// Whether a result has a certificate that was rejected. Results are written without spaces, and within strings the quotes are escaped.
fn is_rejected(result: &RawValue) -> bool {
    result.get().contains("\"verified\":false")
}

/// Why a job request was not taken.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// Too many open jobs.
    #[error("the queue is full: {0} jobs are open")]
    QueueFull(usize),
    /// The daemon is shutting down.
    #[error("the server is shutting down")]
    Draining,
    /// An idempotency key came back with another request.
    #[error("the Idempotency-Key {key:?} was used for job {id} with another request: use a new key")]
    KeyReused {
        /// The key.
        key: String,
        /// The job it stands for.
        id: u64,
    },
    /// The same for a campaign.
    #[error("the Idempotency-Key {key:?} was used for campaign {id} with another request: use a new key")]
    CampaignKeyReused {
        /// The key.
        key: String,
        /// The campaign it stands for.
        id: u64,
    },
    /// No such job.
    #[error("there is no job {0}")]
    NotFound(u64),
    /// The job, or campaign, is in a state that does not allow this.
    #[error("{what} {id} is {}: it cannot be {action} any more", .state.name())]
    Conflict {
        /// `job` or `campaign`.
        what: &'static str,
        /// Its number.
        id: u64,
        /// Where it stands.
        state: State,
        /// What was asked, such as `cancelled`.
        action: &'static str,
    },
    /// The job is a campaign's.
    #[error("job {id} is a part of campaign {campaign}: change the campaign instead")]
    PartOfCampaign {
        /// The job.
        id: u64,
        /// Its campaign.
        campaign: u64,
    },
    /// No such campaign.
    #[error("there is no campaign {0}")]
    NoCampaign(u64),
    /// What a client wanted to change has changed meanwhile.
    #[error("{what} {id} has the entity tag {tag}, which If-Match does not name: read it again")]
    Changed {
        /// `job` or `campaign`.
        what: &'static str,
        /// Its number.
        id: u64,
        /// Its tag as it stands.
        tag: String,
    },
    /// A record is not what this program writes, or would write.
    #[error("the record of job {id} does not read: {error}; use the program that wrote it, or restore the data directory from a backup")]
    Unreadable {
        /// The job.
        id: u64,
        /// What is wrong with it.
        error: String,
    },
    /// The disk is nearly full; nothing changed.
    #[error("{0}")]
    NearlyFull(String),
    /// A campaign's record likewise.
    #[error(
        "the record of campaign {id} does not read: {error}; use the program that wrote it, or restore the data directory from a backup"
    )]
    UnreadableCampaign {
        /// The campaign.
        id: u64,
        /// What is wrong with it.
        error: String,
    },
    /// The store did not take the write; nothing changed.
    #[error("the store failed: {0}")]
    Store(String),
}

#[derive(Debug, Default)]
pub(crate) struct Writer {
    next_id: u64,
    pub(crate) next_campaign: u64,
    keys: HashMap<String, u64>,
    pub(crate) draining: bool,
}

/// Changes that are stored and become visible together.
#[derive(Debug, Default)]
pub(crate) struct Change {
    pub jobs: Vec<Job>,
    /// Of one job.
    pub proofs: Vec<ProofRecord>,
    pub campaigns: Vec<Campaign>,
}

/// All jobs and campaigns.
pub struct Jobs {
    store: Arc<Store>,
    /// Where changes are told.
    pub events: Arc<Events>,
    map: RwLock<BTreeMap<u64, Arc<Job>>>,
    pub(crate) campaigns: RwLock<BTreeMap<u64, Arc<Campaign>>>,
    /// When a job was last worked on, counted in turns of this run of the daemon.
    turns: RwLock<HashMap<u64, u64>>,
    /// Held during every change, so that changes reach store and memory in the same order.
    pub(crate) writer: Mutex<Writer>,
    changed: Condvar,
    max_queue: usize,
}

impl std::fmt::Debug for Jobs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Jobs").field("max_queue", &self.max_queue).finish_non_exhaustive()
    }
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A holder that panicked has changed nothing in memory before the store: the value is whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Jobs {
    /// Reads every job and campaign from the store. A record that does not read is an error: its job was acknowledged and must not vanish.
    pub fn load(store: Arc<Store>, max_queue: usize) -> Result<Jobs, JobError> {
        let mut map = BTreeMap::new();
        let mut writer = Writer { next_id: 1, next_campaign: 1, ..Writer::default() };
        for record in store.jobs().map_err(|error| JobError::Store(error.to_string()))? {
            let id = record.id;
            writer.next_id = writer.next_id.max(id + 1);
            let job = Job::from_record(record).map_err(|error| JobError::Unreadable { id, error })?;
            writer.keys.extend(job.data.idempotency.iter().map(|entry| (entry.key.clone(), id)));
            map.insert(id, Arc::new(job));
        }
        let mut campaigns = BTreeMap::new();
        for record in store.campaigns().map_err(|error| JobError::Store(error.to_string()))? {
            let id = record.id;
            writer.next_campaign = writer.next_campaign.max(id + 1);
            let campaign = Campaign::from_record(record).map_err(|error| JobError::UnreadableCampaign { id, error })?;
            campaigns.insert(id, Arc::new(campaign));
        }
        Ok(Jobs {
            store,
            events: Arc::default(),
            map: RwLock::new(map),
            campaigns: RwLock::new(campaigns),
            turns: RwLock::default(),
            writer: Mutex::new(writer),
            changed: Condvar::new(),
            max_queue,
        })
    }

    /// A job as it stands.
    pub fn get(&self, id: u64) -> Option<Arc<Job>> {
        self.read().get(&id).cloned()
    }

    /// The jobs with ids in `range` that `keep` wants, oldest first, or newest first if `newest`; at most `limit`.
    pub fn list(&self, range: std::ops::Range<u64>, newest: bool, limit: usize, keep: impl Fn(&Job) -> bool) -> Vec<Arc<Job>> {
        let map = self.read();
        if range.is_empty() {
            return Vec::new();
        }
        let jobs = map.range(range).map(|(_, job)| job);
        if newest {
            jobs.rev().filter(|job| keep(job)).take(limit).cloned().collect()
        } else {
            jobs.filter(|job| keep(job)).take(limit).cloned().collect()
        }
    }

    /// How many jobs are in each state of [`State::ALL`].
    pub fn counts(&self) -> [usize; State::ALL.len()] {
        let mut counts = [0; State::ALL.len()];
        for job in self.read().values() {
            counts[job.data.state as usize] += 1;
        }
        counts
    }

    /// The ids of the queued jobs, next one first.
    pub fn queue(&self) -> Vec<u64> {
        let mut queued: Vec<_> =
            self.read().values().filter(|job| job.data.state == State::Queued).map(|job| (self.rank(job), job.id)).collect();
        queued.sort_unstable();
        queued.into_iter().map(|(_, id)| id).collect()
    }

    /// Jobs are worked on in this order: the higher priority, then whose last turn is longest ago, then what was running when the
    /// daemon stopped, then the older.
    fn rank(&self, job: &Job) -> (Reverse<i32>, u64, bool, u64) {
        let turn = self.turns.read().unwrap_or_else(PoisonError::into_inner).get(&job.id).copied().unwrap_or(0);
        (Reverse(job.request.priority), turn, job.data.state != State::Running, job.id)
    }

    /// The job to work on next.
    pub fn next_job(&self) -> Option<Arc<Job>> {
        self.read().values().filter(|job| job.data.state.is_runnable()).min_by_key(|job| self.rank(job)).cloned()
    }

    /// Notes that a job has its turn now.
    pub fn take_turn(&self, id: u64) {
        // Before the other lock: whoever ranks jobs holds them in the other order.
        let open: BTreeSet<u64> = self.read().values().filter(|job| job.data.state.is_open()).map(|job| job.id).collect();
        let mut turns = self.turns.write().unwrap_or_else(PoisonError::into_inner);
        let last = turns.values().max().copied().unwrap_or(0);
        turns.retain(|id, _| open.contains(id));
        turns.insert(id, last + 1);
    }

    /// The greatest priority among the jobs that wait.
    pub fn waiting_priority(&self) -> Option<i32> {
        self.read().values().filter(|job| job.data.state == State::Queued).map(|job| job.request.priority).max()
    }

    /// Jobs that say they run but are not `id`: another had its turn, or they ran when the daemon stopped.
    pub fn left_running(&self, id: u64) -> Vec<u64> {
        self.read().values().filter(|job| job.data.state == State::Running && job.id != id).map(|job| job.id).collect()
    }

    /// Waits for a change, or for `time`.
    pub fn wait(&self, time: Duration) {
        let writer = locked(&self.writer);
        drop(self.changed.wait_timeout(writer, time).unwrap_or_else(PoisonError::into_inner));
    }

    /// Wakes whoever waits.
    pub fn wake(&self) {
        self.changed.notify_all();
    }

    /// Refuses new jobs from now on.
    pub fn drain(&self) {
        locked(&self.writer).draining = true;
        self.wake();
    }

    /// Stores a new job, or joins the open one that asks the same. Blocks on the disk.
    pub fn submit(&self, request: JobRequest, key: Option<String>) -> Result<Arc<Job>, JobError> {
        let mut writer = locked(&self.writer);
        if writer.draining {
            return Err(JobError::Draining);
        }
        let canonical = request.canonical();
        if let Some(key) = &key
            && let Some(job) = writer.keys.get(key).and_then(|&id| self.get(id))
        {
            let same = job.request.identity() == request.identity()
                && job.data.idempotency.iter().any(|entry| entry.key == *key && entry.priority == request.priority);
            return if same { Ok(job) } else { Err(JobError::KeyReused { key: key.clone(), id: job.id }) };
        }
        let entry = key.clone().map(|key| Idempotency { key, priority: request.priority });
        let identity = request.identity();
        let is_twin = |job: &&Arc<Job>| job.data.state.is_open() && job.data.campaign.is_none() && job.request.identity() == identity;
        let twin = self.read().values().find(is_twin).cloned();
        let job = match twin {
            Some(twin) if entry.is_none() && request.priority <= twin.request.priority => return Ok(twin),
            Some(twin) => {
                // The joined job goes as early as the more urgent of its askers wants.
                let mut job = Job::clone(&twin);
                if request.priority > job.request.priority {
                    job.data.request = canonical;
                    job.request = Arc::new(request);
                }
                job.data.idempotency.extend(entry);
                job.data.revision += 1;
                job
            }
            None => {
                self.check_room()?;
                let job = Job::new(writer.next_id, request, None, entry);
                // What is acknowledged must come back after a restart.
                Job::from_record(job.record()?).map_err(|error| JobError::Unreadable { id: job.id, error })?;
                writer.next_id += 1;
                job
            }
        };
        let id = job.id;
        self.apply(Change { jobs: vec![job], ..Change::default() })?;
        if let Some(key) = key {
            writer.keys.insert(key, id);
        }
        self.get(id).ok_or(JobError::NotFound(id))
    }

    /// Refuses when the queue or the disk is full.
    pub(crate) fn check_room(&self) -> Result<(), JobError> {
        self.store.check_space().map_err(|error| JobError::NearlyFull(error.to_string()))?;
        let open = self.read().values().filter(|job| job.data.state.is_open()).count();
        if open >= self.max_queue { Err(JobError::QueueFull(open)) } else { Ok(()) }
    }

    /// The id of a job that is about to be made.
    pub(crate) fn next_id(writer: &mut Writer) -> u64 {
        writer.next_id += 1;
        writer.next_id - 1
    }

    /// Stores changes in one step, then shows them. The caller holds the writer's lock. Blocks on the disk.
    pub(crate) fn apply(&self, change: Change) -> Result<(), JobError> {
        let jobs: Vec<JobRecord> = change.jobs.iter().map(Job::record).collect::<Result<_, _>>()?;
        let campaigns: Vec<CampaignRecord> = change.campaigns.iter().map(Campaign::record).collect::<Result<_, _>>()?;
        self.store.put(&jobs, &change.proofs, &campaigns).map_err(|error| JobError::Store(error.to_string()))?;
        self.publish(change);
        Ok(())
    }

    /// Changes a job and stores it with `proofs` in one step. `change` answers whether there is anything to store; returns the job
    /// as it then stands. Blocks on the disk.
    pub fn update(
        &self,
        id: u64,
        proofs: &[ProofRecord],
        change: impl FnOnce(&mut Job) -> Result<bool, JobError>,
    ) -> Result<Arc<Job>, JobError> {
        let _writer = locked(&self.writer);
        let old = self.get(id).ok_or(JobError::NotFound(id))?;
        let mut job = Job::clone(&old);
        if !change(&mut job)? {
            return Ok(old);
        }
        job.touched(&old);
        self.apply(Change { jobs: vec![job], proofs: proofs.to_vec(), ..Change::default() })?;
        self.get(id).ok_or(JobError::NotFound(id))
    }

    /// Replaces the record of a proof, in its job's result too. Blocks on the disk.
    pub fn set_proof(&self, id: ProofId, report: &SolveReport) -> Result<Arc<Job>, JobError> {
        let body = serde_json::to_value(report).map_err(|error| JobError::Store(error.to_string()))?;
        let job = self.get(id.job).ok_or(JobError::NotFound(id.job))?;
        let result = job.data.result.as_ref().ok_or(JobError::NotFound(id.job))?;
        let mut result: Value = serde_json::from_str(result.get()).map_err(|error| JobError::Store(error.to_string()))?;
        let mut proofs: Vec<Value> = match job.request.kind {
            Kind::Solve => vec![result.clone()],
            Kind::Value => result["proofs"].as_array().cloned().unwrap_or_default(),
        };
        let place = id.number.checked_sub(1).and_then(|index| proofs.get_mut(index)).ok_or(JobError::NotFound(id.job))?;
        place.clone_from(&body);
        match job.request.kind {
            Kind::Solve => result = body,
            Kind::Value => result["proofs"] = proofs.clone().into(),
        }
        // What failed has a result to look at, but no proof on record.
        let board = job.request.position.geometry().name();
        let record = |body| ProofRecord { board: board.clone(), job: id.job, body };
        let is_on_record = job.data.state == State::Succeeded;
        let records: Vec<ProofRecord> = proofs.into_iter().filter(|_| is_on_record).map(record).collect();
        self.update(id.job, &records, |job| {
            job.set_result(&result)?;
            Ok(true)
        })
    }

    /// The jobs with a certificate that was rejected.
    pub fn rejected(&self) -> BTreeSet<u64> {
        self.read().values().filter(|job| job.data.is_rejected).map(|job| job.id).collect()
    }

    /// Ends a checkpoint; if the job that `live` tells of still runs, its progress is part of the same step. Blocks on the disk.
    pub fn commit(&self, checkpoint: PendingCheckpoint<'_>, live: Option<&(u64, Live)>) -> Result<CheckpointReport, JobError> {
        let _writer = locked(&self.writer);
        // A job that was cancelled or finished while the lemmas were copied stays as it is.
        let job = live.and_then(|(id, live)| {
            let mut job = Job::clone(&*self.get(*id).filter(|job| job.data.state == State::Running)?);
            job.absorb(live);
            Some(job)
        });
        let record = job.as_ref().map(Job::record).transpose()?;
        let report = checkpoint.commit(record.as_slice()).map_err(|error| JobError::Store(error.to_string()))?;
        self.publish(Change { jobs: job.into_iter().collect(), ..Change::default() });
        Ok(report)
    }

    fn publish(&self, change: Change) {
        let mut told = Vec::new();
        for job in change.jobs {
            let job = Arc::new(job);
            let old = self.map.write().unwrap_or_else(PoisonError::into_inner).insert(job.id, job.clone());
            if old.as_ref().is_none_or(|old| old.data.revision != job.data.revision) {
                told.push((old, job));
            }
        }
        let changed: Vec<u64> = change.campaigns.iter().map(|campaign| campaign.id).collect();
        for campaign in change.campaigns {
            self.campaigns.write().unwrap_or_else(PoisonError::into_inner).insert(campaign.id, Arc::new(campaign));
        }
        if !told.is_empty() {
            let queue = self.queue();
            for (old, job) in &told {
                let view = serde_json::to_value(job.view(&queue, None)).unwrap_or_default();
                self.events.publish("state", Some(job.id), job.data.campaign, &view);
                if !job.data.state.is_open() && old.as_ref().is_none_or(|old| old.data.state.is_open()) {
                    self.events.publish("result", Some(job.id), job.data.campaign, &view);
                }
            }
        }
        let touched: BTreeSet<u64> = told.iter().filter_map(|(_, job)| job.data.campaign).chain(changed).collect();
        for id in touched {
            if let Some(view) = self.campaign_view(id, None) {
                self.events.publish("campaign", None, Some(id), &view);
            }
        }
        self.wake();
    }

    pub(crate) fn read(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<u64, Arc<Job>>> {
        self.map.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Progress of a job as clients see it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Progress)]
pub struct ProgressView {
    /// Over all runs.
    #[serde(with = "counter")]
    #[schema(value_type = schema::Counter)]
    pub expansions: u64,
    /// Over all runs.
    #[serde(with = "counter")]
    #[schema(value_type = schema::Counter)]
    pub distinct_nodes: u64,
    /// Expansions for each distinct node.
    pub revisit_factor: f64,
    /// Share of the table probes that decided a position.
    pub table_hit_rate: f64,
    /// Search time over all runs.
    pub elapsed_seconds: f64,
    /// What of `expansions` a restart keeps at least.
    #[serde(with = "counter")]
    #[schema(value_type = schema::Counter)]
    pub checkpoint_expansions: u64,
    /// The komi being solved right now.
    #[schema(required)]
    pub current_komi: Option<f64>,
    /// What the job is about right now; null unless it runs.
    #[schema(required)]
    pub stage: Option<Stage>,
}

/// A job as clients see it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Job)]
pub struct JobView<'a> {
    /// Names the job in the API.
    pub id: u64,
    /// `solve` or `value`.
    #[schema(value_type = Kind)]
    pub kind: &'static str,
    /// `ROWSxCOLUMNS`.
    pub board: String,
    /// Null for a value job.
    #[schema(required)]
    pub komi: Option<f64>,
    /// The start diagram, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Setup>)]
    pub setup: Option<Value>,
    /// Vertices from the start.
    pub moves: Vec<String>,
    /// Where it stands.
    pub state: State,
    /// Free text of the client.
    #[schema(value_type = Option<String>, required)]
    pub label: &'a Option<String>,
    /// Higher goes first.
    pub priority: i32,
    /// When to give up.
    #[schema(value_type = schema::Limits)]
    pub limits: Value,
    /// Whether its proofs are to be written as certificates.
    pub certificate: bool,
    /// Whether the checker is to judge the certificates.
    pub verify: bool,
    /// RFC 3339, UTC.
    #[schema(value_type = String)]
    pub created_at: &'a str,
    /// First start of the search.
    #[schema(value_type = Option<String>, required)]
    pub started_at: &'a Option<String>,
    /// When it ended.
    #[schema(value_type = Option<String>, required)]
    pub finished_at: &'a Option<String>,
    /// 1 is next; null unless queued.
    #[schema(required)]
    pub queue_position: Option<usize>,
    /// Counts so far.
    pub progress: ProgressView,
    /// What is known of Black's margin.
    #[serde(serialize_with = "serialize_bounds")]
    #[schema(value_type = schema::Bounds)]
    pub bounds: Bounds,
    /// The report, once proved.
    #[schema(value_type = Option<schema::JobResult>, required)]
    pub result: &'a Option<Box<RawValue>>,
    /// Ids of its proofs.
    pub proofs: Vec<String>,
    /// The campaign that it is a part of.
    #[schema(required)]
    pub campaign: Option<u64>,
    /// Counts its changes, but for progress; part of its entity tag.
    pub revision: u64,
    /// What went wrong, if it failed.
    #[schema(value_type = Option<String>, required)]
    pub error: &'a Option<String>,
}

/// What the running search adds to a job's record.
#[derive(Clone, Debug)]
pub struct Live {
    /// Counts over all runs until now.
    pub counts: Counts,
    /// What it is about.
    pub stage: Stage,
    /// Counts over all finished steps.
    pub step_start: Counts,
    /// Steps until now.
    pub steps: Vec<Step>,
    /// Bounds until now.
    pub bounds: Bounds,
    /// The komi being solved.
    pub komi: Option<f64>,
}

impl Job {
    /// A job that waits for the solver.
    pub(crate) fn new(id: u64, request: JobRequest, campaign: Option<u64>, idempotency: Option<Idempotency>) -> Job {
        let points = request.position.geometry().points() as i32;
        let data = JobData {
            version: BODY_VERSION,
            request: request.canonical(),
            state: State::Queued,
            created_at: now_rfc3339(),
            started_at: None,
            finished_at: None,
            counts: Counts::default(),
            step_start: Counts::default(),
            steps: Vec::new(),
            bounds: (-points, points),
            result: None,
            is_rejected: false,
            error: None,
            idempotency: idempotency.into_iter().collect(),
            campaign,
            limit_start: Counts::default(),
            revision: 1,
        };
        Job { id, request: Arc::new(request), data }
    }

    /// Takes note of a change since `old`.
    pub(crate) fn touched(&mut self, old: &Job) {
        self.data.revision += 1;
        match (old.data.state.is_open(), self.data.state.is_open()) {
            (true, false) => self.data.finished_at = Some(now_rfc3339()),
            (_, true) => self.data.finished_at = None,
            (false, false) => {}
        }
    }

    /// Changes what was asked.
    pub(crate) fn set_request(&mut self, change: impl FnOnce(&mut JobRequest)) {
        let mut request = JobRequest::clone(&self.request);
        change(&mut request);
        self.data.request = request.canonical();
        self.request = Arc::new(request);
    }

    /// Puts it into the queue again: a paused job, or an expired one, whose limits then count from here on, as do new limits.
    pub(crate) fn requeue(&mut self, limits: Option<JobLimits>) {
        if limits.is_some() || self.data.state == State::Expired {
            self.data.limit_start = self.data.counts;
        }
        if let Some(limits) = limits {
            self.set_request(|request| request.limits = limits);
        }
        self.data.state = State::Queued;
    }

    /// The entity tag of what clients can change.
    pub fn tag(&self) -> String {
        format!("\"job-{}-{}\"", self.id, self.data.revision)
    }

    /// The job as clients see it.
    pub fn view(&self, queue: &[u64], live: Option<&Live>) -> JobView<'_> {
        let (request, data) = (&self.request, &self.data);
        let bounds = live.map_or(Bounds { lower: data.bounds.0, upper: data.bounds.1 }, |live| live.bounds);
        JobView {
            id: self.id,
            kind: request.kind.name(),
            board: request.position.geometry().name(),
            komi: request.komi.map(superko_search::Komi::as_f64),
            setup: request.position.setup(),
            moves: request.position.moves(),
            state: data.state,
            label: &request.label,
            priority: request.priority,
            limits: limits_json(&request.limits),
            certificate: request.certificate,
            verify: request.verify,
            created_at: &data.created_at,
            started_at: &data.started_at,
            finished_at: &data.finished_at,
            queue_position: queue.iter().position(|&id| id == self.id).map(|index| index + 1),
            progress: self.progress(live),
            bounds,
            result: &data.result,
            proofs: (1..=self.proofs().len()).map(|number| ProofId { job: self.id, number }.to_string()).collect(),
            campaign: data.campaign,
            revision: data.revision,
            error: &data.error,
        }
    }

    /// How far it has come.
    pub fn progress(&self, live: Option<&Live>) -> ProgressView {
        let counts = live.map_or(self.data.counts, |live| live.counts);
        ProgressView {
            expansions: counts.expansions,
            distinct_nodes: counts.distinct_nodes,
            revisit_factor: counts.revisit_factor(),
            table_hit_rate: counts.table_hit_rate(),
            elapsed_seconds: counts.elapsed_seconds,
            checkpoint_expansions: self.data.counts.expansions,
            current_komi: live.and_then(|live| live.komi),
            stage: live.map(|live| live.stage),
        }
    }

    /// Its proofs, as they stand in the result.
    pub fn proofs(&self) -> Vec<&RawValue> {
        #[derive(Deserialize)]
        struct Value<'a> {
            #[serde(borrow)]
            proofs: Vec<&'a RawValue>,
        }
        let Some(result) = &self.data.result else { return Vec::new() };
        match self.request.kind {
            Kind::Solve => vec![result],
            Kind::Value => serde_json::from_str(result.get()).map_or(Vec::new(), |Value { proofs }| proofs),
        }
    }

    /// One of its proofs, by number from 1.
    pub fn proof(&self, number: usize) -> Option<SolveReport> {
        let proofs = self.proofs();
        serde_json::from_str(proofs.get(number.checked_sub(1)?)?.get()).ok()
    }

    /// Takes in the report of what was proved.
    pub fn set_result(&mut self, report: &Value) -> Result<(), JobError> {
        let result = serde_json::value::to_raw_value(report).map_err(|error| JobError::Store(error.to_string()))?;
        self.data.is_rejected = is_rejected(&result);
        self.data.result = Some(result);
        Ok(())
    }

    /// Takes over what a running search has reached.
    pub fn absorb(&mut self, live: &Live) {
        self.data.counts = live.counts;
        self.data.step_start = live.step_start;
        self.data.steps.clone_from(&live.steps);
        self.data.bounds = (live.bounds.lower, live.bounds.upper);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use superko_rules::Geometry;
    use superko_storage::MappedTable;

    #[test]
    fn a_record_that_does_not_read_is_an_error() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Arc::new(Store::open(dir.path()).expect("a store"));
        store.put(&[JobRecord { id: 7, open: true, body: json!({"version": 1}).to_string() }], &[], &[]).expect("stored");
        let error = Jobs::load(store, 9).expect_err("an acknowledged job must not vanish").to_string();
        assert!(error.contains("job 7") && error.contains("backup"), "{error}");
    }

    #[test]
    fn a_checkpoint_takes_progress_along_but_not_over_a_cancel() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Arc::new(Store::open(dir.path()).expect("opens"));
        let jobs = Jobs::load(store.clone(), 10).expect("no jobs");
        let request = JobRequest::from_json(&json!({"kind": "value", "board": "2x2"})).expect("good");
        let id = jobs.submit(request, None).expect("taken").id;
        let set = |state| {
            let change = |job: &mut Job| {
                job.data.state = state;
                Ok(true)
            };
            jobs.update(id, &[], change).expect("stored");
        };
        let table = MappedTable::anonymous(Geometry::get(2, 2).expect("a board"), 1 << 20).expect("a table");
        let live = |expansions| {
            let counts = Counts { expansions, ..Counts::default() };
            let (stage, bounds) = (Stage::Search, Bounds { lower: 0, upper: 2 });
            (id, Live { counts, stage, step_start: Counts::default(), steps: Vec::new(), bounds, komi: None })
        };
        let as_stored = || Job::from_record(store.job(id).expect("readable").expect("there")).expect("reads").data;
        set(State::Running);
        let report = jobs.commit(store.begin_checkpoint(&table).expect("begun"), Some(&live(7))).expect("committed");
        assert_eq!(report.sequence, 1);
        for data in [as_stored(), jobs.get(id).expect("there").data.clone()] {
            assert_eq!((data.state, data.counts.expansions, data.bounds), (State::Running, 7, (0, 2)));
        }
        let pending = store.begin_checkpoint(&table).expect("begun");
        set(State::Cancelled);
        assert_eq!(jobs.commit(pending, Some(&live(9))).expect("committed").sequence, 2);
        for data in [as_stored(), jobs.get(id).expect("there").data.clone()] {
            assert_eq!((data.state, data.counts.expansions), (State::Cancelled, 7));
        }
    }
}

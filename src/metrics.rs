//! Everything that `/metrics` shows. The search only counts in its own [`Control`]; the counts come here when a scrape asks.

use crate::engine::{Engine, Running, locked};
use crate::jobs::{Job, State};
use crate::pulse::Phase;
use crate::request::Kind;
use crate::units::unix_seconds;
use prometheus::core::Collector;
use prometheus::{
    CounterVec, Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts, Registry, TextEncoder,
    exponential_buckets,
};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use superko_search::{Control, Counter, Counters, Group};
use superko_storage::CheckpointReport;

/// Routes with their methods, as `/metrics` names them.
pub const ROUTES: &[(&str, &str)] = &[
    ("POST", "/v1/jobs"),
    ("GET", "/v1/jobs"),
    ("GET", "/v1/jobs/{id}"),
    ("PATCH", "/v1/jobs/{id}"),
    ("POST", "/v1/jobs/{id}/cancel"),
    ("POST", "/v1/jobs/{id}/pause"),
    ("POST", "/v1/jobs/{id}/resume"),
    ("GET", "/v1/jobs/{id}/events"),
    ("GET", "/v1/events"),
    ("POST", "/v1/campaigns"),
    ("GET", "/v1/campaigns"),
    ("GET", "/v1/campaigns/{id}"),
    ("PATCH", "/v1/campaigns/{id}"),
    ("POST", "/v1/campaigns/{id}/cancel"),
    ("POST", "/v1/campaigns/{id}/pause"),
    ("POST", "/v1/campaigns/{id}/resume"),
    ("GET", "/v1/campaigns/{id}/events"),
    ("GET", "/v1/positions"),
    ("POST", "/v1/positions"),
    ("POST", "/v1/positions:batch"),
    ("GET", "/v1/proofs/{id}"),
    ("GET", "/v1/proofs/{id}/certificate"),
    ("POST", "/v1/proofs/{id}/verifications"),
    ("POST", "/v1/admin/checkpoint"),
    ("POST", "/v1/admin/backup"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
];

/// Methods with series of their own.
const METHODS: [&str; 3] = ["GET", "POST", "PATCH"];

/// Status classes.
const CLASSES: [&str; 3] = ["2xx", "4xx", "5xx"];

/// Threads that may panic, as `/metrics` names them.
const WORKERS: [&str; 6] = ["solver", "search", "checkpoint", "monitor", "http", "other"];

/// Panics of each of [`WORKERS`].
static PANICS: [AtomicU64; WORKERS.len()] = [const { AtomicU64::new(0) }; WORKERS.len()];

/// Counts the panics of this process from now on, besides what is done about them already.
pub fn count_panics() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let thread = std::thread::current();
        let worker = match thread.name() {
            Some("solver") => "solver",
            Some("checkpoint") => "checkpoint",
            Some("monitor") => "monitor",
            Some(name) if name.starts_with("search-") => "search",
            Some(name) if name.starts_with("tokio") => "http",
            _ => "other",
        };
        for (name, count) in WORKERS.iter().zip(&PANICS) {
            count.fetch_add(u64::from(*name == worker), Relaxed);
        }
        hook(panic);
    }));
}

/// Seconds since the epoch.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// What of a source's growing counts is in the totals already.
#[derive(Debug)]
struct Seen<const N: usize> {
    serial: u64,
    counts: [u64; N],
}

impl<const N: usize> Default for Seen<N> {
    fn default() -> Self {
        Seen { serial: 0, counts: [0; N] }
    }
}

impl<const N: usize> Seen<N> {
    /// The growth since the last call for the source number `serial`; sources with a lower number are settled.
    fn growth(&mut self, serial: u64, counts: [u64; N]) -> [u64; N] {
        if serial < self.serial {
            return [0; N];
        }
        if serial > self.serial {
            *self = Seen { serial, counts: [0; N] };
        }
        let mut growth = [0; N];
        for index in 0..N {
            growth[index] = counts[index].saturating_sub(self.counts[index]);
            self.counts[index] = self.counts[index].max(counts[index]);
        }
        growth
    }
}

/// The registry with everything in it.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    expansions: IntCounter,
    distinct_nodes: IntCounter,
    revisit_factor: Gauge,
    streams: Gauge,
    probes: IntCounterVec,
    occupancy: GaugeVec,
    table_bytes: Gauge,
    torn: IntCounter,
    evictions: IntCounter,
    set_bytes: IntCounterVec,
    checkpoint_duration: Histogram,
    /// Unix time of the last checkpoint, 0 before the first.
    pub checkpoint_last_success: Gauge,
    /// Checkpoints that failed.
    pub checkpoint_failures: IntCounter,
    checkpoints: IntCounter,
    checkpoint_lemmas: Gauge,
    checkpoint_bytes: IntCounter,
    checkpoint_last_bytes: Gauge,
    checkpoint_interval: Gauge,
    /// Time that opening the table in use took, with restoring it.
    pub recovery_duration: Gauge,
    /// Stored records that were refused as damaged.
    pub recovery_refused: IntCounter,
    read_errors: IntCounter,
    jobs: GaugeVec,
    campaigns: GaugeVec,
    jobs_finished: IntCounterVec,
    job_wait: HistogramVec,
    job_run: HistogramVec,
    queue_depth: IntGauge,
    queue_oldest: Gauge,
    solver_state: GaugeVec,
    panics: IntCounterVec,
    watchdog_ping: Gauge,
    certificates: IntCounterVec,
    verifications: IntCounterVec,
    rejected_jobs: IntGauge,
    root_proof: Gauge,
    root_disproof: Gauge,
    bound: GaugeVec,
    search_elapsed: Gauge,
    http_requests: IntCounterVec,
    http_duration: HistogramVec,
    /// Requests that are being answered.
    pub http_in_flight: IntGauge,
    storage_free: Gauge,
    storage_size: Gauge,
    storage_guard: IntGauge,
    store_refuses: Gauge,
    rocksdb: Rocksdb,
    statistics: Vec<(Counter, Series)>,
    seen_search: Mutex<Seen<5>>,
    seen_statistics: Mutex<(u64, Counters)>,
    seen_table: Mutex<Seen<4>>,
    seen_store: Mutex<Seen<8>>,
    seen_panics: Mutex<Seen<{ WORKERS.len() }>>,
}

/// What RocksDB says of itself.
#[derive(Debug)]
struct Rocksdb {
    pending_compaction: GaugeVec,
    memtables: GaugeVec,
    level0_files: GaugeVec,
    files: GaugeVec,
    background_errors: IntCounter,
    writes_stopped: Gauge,
    stall: prometheus::Counter,
    written: IntCounterVec,
    blocks: IntCounterVec,
}

impl Rocksdb {
    fn new(registry: &Registry) -> prometheus::Result<Rocksdb> {
        let gauges = |name: &str, help: &str| add(registry, GaugeVec::new(Opts::new(name, help), &["family"]));
        let counters = |name: &str, help: &str, label: &str| add(registry, IntCounterVec::new(Opts::new(name, help), &[label]));
        Ok(Rocksdb {
            pending_compaction: gauges(
                "superko_rocksdb_pending_compaction_bytes",
                "Bytes that RocksDB expects to rewrite until its levels are in order, by column family.",
            )?,
            memtables: gauges("superko_rocksdb_memtable_bytes", "Memory of what is not in RocksDB's files yet, by column family.")?,
            level0_files: gauges("superko_rocksdb_level0_files", "Files of level 0, by column family; many slow writes down.")?,
            files: gauges("superko_rocksdb_file_bytes", "Size of RocksDB's files, by column family.")?,
            background_errors: add(
                registry,
                IntCounter::new("superko_rocksdb_background_errors_total", "Flushes and compactions of RocksDB that failed."),
            )?,
            writes_stopped: add(registry, Gauge::new("superko_rocksdb_writes_stopped", "1 while writes wait for a compaction, else 0."))?,
            stall: add(
                registry,
                prometheus::Counter::new(
                    "superko_rocksdb_stall_seconds_total",
                    "Time that writes have waited for flushes and compactions.",
                ),
            )?,
            written: counters(
                "superko_rocksdb_written_bytes_total",
                "Bytes that RocksDB wrote: to its log, to new files, and again when it compacted them.",
                "to",
            )?,
            blocks: counters(
                "superko_rocksdb_block_reads_total",
                "Blocks that reads found in memory, or had to fetch from files.",
                "from",
            )?,
        })
    }
}

/// One counter of the search.
#[derive(Debug)]
enum Series {
    Count(IntCounter),
    Seconds(prometheus::Counter),
}

impl Series {
    fn add(&self, number: u64) {
        match self {
            Series::Count(counter) => counter.inc_by(number),
            Series::Seconds(counter) => counter.inc_by(number as f64 / 1e9),
        }
    }
}

/// A metric for each group of the search's counters, with every label value at zero.
fn statistics(registry: &Registry) -> prometheus::Result<Vec<(Counter, Series)>> {
    let mut list = Vec::new();
    for counters in Counter::ALL.chunk_by(|a, b| a.group() == b.group()) {
        let Some(Group { metric, label, help, .. }) = counters.first().map(|counter| counter.group()) else { continue };
        if counters[0].is_time() {
            let metric = add(registry, CounterVec::new(Opts::new(metric, help), &[label]))?;
            list.extend(counters.iter().map(|&counter| (counter, Series::Seconds(metric.with_label_values(&[counter.value()])))));
        } else {
            let metric = add(registry, IntCounterVec::new(Opts::new(metric, help), &[label]))?;
            list.extend(counters.iter().map(|&counter| (counter, Series::Count(metric.with_label_values(&[counter.value()])))));
        }
    }
    Ok(list)
}

/// Registers a metric; names are fixed, so a failure is a mistake in this file that every start shows.
fn add<M: Collector + Clone + 'static>(registry: &Registry, metric: prometheus::Result<M>) -> prometheus::Result<M> {
    let metric = metric?;
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

impl Metrics {
    /// All metrics at zero, every label value present.
    pub fn new() -> prometheus::Result<Metrics> {
        let r = Registry::new();
        let counter = |name: &str, help: &str| add(&r, IntCounter::new(name, help));
        let counters = |name: &str, help: &str, labels: &[&str]| add(&r, IntCounterVec::new(Opts::new(name, help), labels));
        let gauge = |name: &str, help: &str| add(&r, Gauge::new(name, help));
        let gauges = |name: &str, help: &str, labels: &[&str]| add(&r, GaugeVec::new(Opts::new(name, help), labels));
        // From seconds to a month, each bucket four times the one before.
        let histograms = |name: &str, help: &str, first: f64| {
            let options = HistogramOpts::new(name, help).buckets(exponential_buckets(first, 4.0, 12)?);
            add(&r, HistogramVec::new(options, &["kind"]))
        };
        r.register(Box::new(prometheus::process_collector::ProcessCollector::for_self()))?;
        let build = gauges("superko_build_info", "Always 1; the version runs as a label.", &["version"])?;
        build.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1.0);
        let metrics = Metrics {
            expansions: counter("superko_search_expansions_total", "Calls of the search on a node, all jobs since the start.")?,
            distinct_nodes: counter(
                "superko_search_distinct_nodes_total",
                "Positions expanded for the first time, all jobs since the start.",
            )?,
            streams: gauge("superko_sse_streams", "Event streams that are open.")?,
            revisit_factor: gauge("superko_search_revisit_factor", "Expansions for each distinct node of the running job; 0 without one.")?,
            probes: counters(
                "superko_table_probes_total",
                "Look-ups of a position's lemmas: decided it, found none that applied, found none.",
                &["outcome"],
            )?,
            occupancy: gauges("superko_table_occupancy_ratio", "Used share of each part of the table in use, 0 to 1.", &["part"])?,
            table_bytes: gauge("superko_table_bytes", "Size of the table in use; 0 without one.")?,
            torn: counter("superko_table_torn_total", "Table entries refused because their seal did not fit.")?,
            evictions: counter("superko_table_evictions_total", "Table entries that gave way to others.")?,
            set_bytes: counters(
                "superko_table_set_bytes_total",
                "Bytes written for the sets of lemmas: of new ones, and again to keep those of costly lemmas.",
                &["written"],
            )?,
            checkpoint_duration: add(
                &r,
                Histogram::with_opts(
                    HistogramOpts::new("superko_checkpoint_duration_seconds", "Time to make a checkpoint.")
                        .buckets(exponential_buckets(0.01, 2.0, 16)?),
                ),
            )?,
            checkpoint_last_success: gauge(
                "superko_checkpoint_last_success_timestamp_seconds",
                "Unix time of the last checkpoint; 0 before the first.",
            )?,
            checkpoint_failures: counter("superko_checkpoint_failures_total", "Checkpoints that failed.")?,
            checkpoints: counter("superko_checkpoints_total", "Checkpoints that succeeded.")?,
            checkpoint_lemmas: gauge("superko_checkpoint_lemmas", "Lemmas that the last checkpoint wrote.")?,
            checkpoint_bytes: counter("superko_checkpoint_bytes_total", "Bytes that checkpoints handed to the store.")?,
            checkpoint_last_bytes: gauge("superko_checkpoint_last_size_bytes", "Bytes that the last checkpoint handed to the store.")?,
            checkpoint_interval: gauge(
                "superko_checkpoint_interval_seconds",
                "Longest time between two checkpoints while a job runs, as configured.",
            )?,
            recovery_duration: gauge(
                "superko_recovery_duration_seconds",
                "Time to open the table in use and to fill it from the store where needed.",
            )?,
            recovery_refused: counter("superko_recovery_refused_total", "Stored records refused as damaged.")?,
            read_errors: counter(
                "superko_store_read_errors_total",
                "Stored lemmas that a look-up could not read: damaged, or the disk failed.",
            )?,
            campaigns: gauges("superko_campaigns", "Campaigns by state.", &["state"])?,
            jobs: gauges("superko_jobs", "Jobs by state.", &["state"])?,
            jobs_finished: counters("superko_jobs_finished_total", "Jobs that ended since the start, by their last state.", &["state"])?,
            job_wait: histograms("superko_job_wait_seconds", "Time from the submission of a job to the first start of its search.", 1.0)?,
            job_run: histograms("superko_job_run_seconds", "Time that the search of a job took, over all its runs.", 0.1)?,
            queue_oldest: gauge("superko_queue_oldest_age_seconds", "Age of the oldest job that waits for its first turn; 0 without one.")?,
            solver_state: gauges("superko_solver_state", "1 for what the solver thread is at, else 0.", &["state"])?,
            panics: counters("superko_worker_panics_total", "Panics, by the thread that had one.", &["worker"])?,
            watchdog_ping: gauge(
                "superko_watchdog_last_ping_timestamp_seconds",
                "Unix time of the last sign of life to the service manager; 0 without one that asks for it.",
            )?,
            queue_depth: add(&r, IntGauge::new("superko_queue_depth", "Jobs that wait for the solver."))?,
            certificates: counters("superko_certificates_total", "Certificates that jobs asked for, by what came of them.", &["outcome"])?,
            verifications: counters("superko_verifications_total", "Checks of certificates, by what came of them.", &["outcome"])?,
            rejected_jobs: add(
                &r,
                IntGauge::new(
                    "superko_jobs_with_rejected_certificate",
                    "Jobs with a certificate that the checker has rejected, and not accepted since.",
                ),
            )?,
            root_proof: gauge("superko_search_root_proof_number", "Proof number at the root of the running search; 0 without one.")?,
            root_disproof: gauge(
                "superko_search_root_disproof_number",
                "Disproof number at the root of the running search; 0 without one.",
            )?,
            bound: gauges(
                "superko_search_bound_points",
                "Bounds of Black's margin that are proved for the running job; 0 without one.",
                &["bound"],
            )?,
            search_elapsed: gauge("superko_search_elapsed_seconds", "Time that the running job has been searched, over all its runs.")?,
            http_requests: counters(
                "superko_http_requests_total",
                "HTTP requests by method, route and status class.",
                &["method", "route", "status"],
            )?,
            http_duration: add(
                &r,
                HistogramVec::new(
                    HistogramOpts::new("superko_http_request_duration_seconds", "Time to answer an HTTP request.")
                        .buckets(vec![0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0]),
                    &["method", "route"],
                ),
            )?,
            http_in_flight: add(&r, IntGauge::new("superko_http_in_flight", "HTTP requests that are being answered."))?,
            storage_guard: add(
                &r,
                IntGauge::new(
                    "superko_storage_guard_active",
                    "1 while less than min_free is free: submissions are refused, checkpoints wait.",
                ),
            )?,
            storage_size: gauge("superko_storage_size_bytes", "Size of the file system where the data directory lies.")?,
            store_refuses: gauge("superko_store_refuses_writes", "1 while the last write of the store has failed, else 0.")?,
            rocksdb: Rocksdb::new(&r)?,
            storage_free: gauge("superko_storage_free_bytes", "Free space where the data directory lies.")?,
            statistics: statistics(&r)?,
            seen_search: Mutex::default(),
            seen_statistics: Mutex::default(),
            seen_table: Mutex::default(),
            seen_store: Mutex::default(),
            seen_panics: Mutex::default(),
            registry: r.clone(),
        };
        metrics.set_zero();
        Ok(metrics)
    }

    fn set_zero(&self) {
        for outcome in ["hit", "rejected", "miss"] {
            self.probes.with_label_values(&[outcome]);
        }
        for outcome in ["written", "failed"] {
            self.certificates.with_label_values(&[outcome]);
        }
        for outcome in ["accepted", "rejected", "failed"] {
            self.verifications.with_label_values(&[outcome]);
        }
        for written in ["new", "again"] {
            self.set_bytes.with_label_values(&[written]);
        }
        for part in ["lemmas", "numbers", "sets"] {
            self.occupancy.with_label_values(&[part]);
        }
        for bound in ["lower", "upper"] {
            self.bound.with_label_values(&[bound]);
        }
        for kind in [Kind::Solve, Kind::Value] {
            self.job_wait.with_label_values(&[kind.name()]);
            self.job_run.with_label_values(&[kind.name()]);
        }
        for worker in WORKERS {
            self.panics.with_label_values(&[worker]);
        }
        for to in ["log", "files", "compacted"] {
            self.rocksdb.written.with_label_values(&[to]);
        }
        for from in ["memory", "files"] {
            self.rocksdb.blocks.with_label_values(&[from]);
        }
        for state in State::ALL {
            self.jobs.with_label_values(&[state.name()]);
            if state != State::Queued {
                self.campaigns.with_label_values(&[state.name()]);
            }
            if !state.is_open() {
                self.jobs_finished.with_label_values(&[state.name()]);
            }
        }
        for (method, route) in ROUTES.iter().copied().chain(METHODS.into_iter().chain(["other"]).map(|method| (method, "unmatched"))) {
            self.http_duration.with_label_values(&[method, route]);
            for class in CLASSES {
                self.http_requests.with_label_values(&[method, route, class]);
            }
        }
    }

    /// Counts a job that reached its last state.
    pub fn job_finished(&self, state: State) {
        self.jobs_finished.with_label_values(&[state.name()]).inc();
    }

    /// Notes how long a job has waited whose search begins.
    pub fn job_started(&self, job: &Job) {
        let started = job.data.started_at.as_deref().and_then(unix_seconds);
        if let Some((started, created)) = started.zip(unix_seconds(&job.data.created_at)) {
            self.job_wait.with_label_values(&[job.request.kind.name()]).observe((started - created).max(0.0));
        }
    }

    /// Notes how long a job has run that ended.
    pub fn job_ran(&self, job: &Job) {
        self.job_run.with_label_values(&[job.request.kind.name()]).observe(job.data.counts.elapsed_seconds);
    }

    /// Notes the configured time between checkpoints.
    pub fn set_checkpoint_interval(&self, interval: Duration) {
        self.checkpoint_interval.set(interval.as_secs_f64());
    }

    /// Notes a sign of life to the service manager.
    pub fn watchdog_pinged(&self) {
        self.watchdog_ping.set(now());
    }

    /// Counts a certificate that was `written` or `failed`.
    pub fn certificate(&self, outcome: &str) {
        self.certificates.with_label_values(&[outcome]).inc();
    }

    /// Counts a check of a certificate that `accepted`, `rejected` or `failed`.
    pub fn verification(&self, outcome: &str) {
        self.verifications.with_label_values(&[outcome]).inc();
    }

    /// Counts a checkpoint.
    pub fn checkpoint_done(&self, report: &CheckpointReport, took: Duration) {
        self.checkpoint_duration.observe(took.as_secs_f64());
        self.checkpoints.inc();
        self.checkpoint_lemmas.set(report.lemmas as f64);
        self.checkpoint_bytes.inc_by(report.bytes);
        self.checkpoint_last_bytes.set(report.bytes as f64);
        self.checkpoint_last_success.set(now().floor());
    }

    /// Counts an answered request.
    pub fn http(&self, method: &str, route: &str, status: u16, took: Duration) {
        let method = if method == "HEAD" { "GET" } else { method };
        // Anyone can invent a method: only those that have routes get series of their own, and only on the routes that take them.
        let (method, route) = match METHODS.contains(&method) {
            true if status == 405 => (method, "unmatched"),
            true => (method, route),
            false => ("other", "unmatched"),
        };
        let class = match status {
            ..400 => "2xx",
            400..500 => "4xx",
            _ => "5xx",
        };
        self.http_requests.with_label_values(&[method, route, class]).inc();
        self.http_duration.with_label_values(&[method, route]).observe(took.as_secs_f64());
    }

    /// Takes over what a run has counted since the last call.
    pub fn follow_search(&self, running: Option<&Running>) {
        let Some(running) = running else { return };
        let Control { expansions, distinct_nodes, probes, hits, rejected, .. } = &running.control;
        let counts = [expansions, distinct_nodes, probes, hits, rejected].map(|counter| counter.load(Relaxed));
        let [expansions, distinct_nodes, probes, hits, rejected] = locked(&self.seen_search).growth(running.serial, counts);
        self.expansions.inc_by(expansions);
        self.distinct_nodes.inc_by(distinct_nodes);
        self.probes.with_label_values(&["hit"]).inc_by(hits);
        self.probes.with_label_values(&["rejected"]).inc_by(rejected);
        self.probes.with_label_values(&["miss"]).inc_by(probes.saturating_sub(hits + rejected));
        self.follow_statistics(running);
    }

    fn follow_statistics(&self, running: &Running) {
        let mut seen = locked(&self.seen_statistics);
        if running.serial < seen.0 {
            return;
        }
        if running.serial > seen.0 {
            *seen = (running.serial, Counters::default());
        }
        // Read under the lock: counts only grow, so a later reader never has less.
        let now = running.control.counters.load();
        let growth = now.since(&seen.1);
        seen.1 = now;
        for (counter, series) in &self.statistics {
            series.add(growth.get(*counter));
        }
    }

    /// Takes over what the table in use has counted since the last call, and its occupancy.
    pub fn follow_table(&self, engine: &Engine) {
        let generation = engine.table_generation();
        let Some(table) = engine.table() else {
            self.table_bytes.set(0.0);
            return;
        };
        let occupancy = table.occupancy();
        let counts = [occupancy.torn, occupancy.evicted, occupancy.sets_new_bytes, occupancy.sets_rewritten_bytes];
        let [torn, evicted, new, again] = locked(&self.seen_table).growth(generation, counts);
        self.torn.inc_by(torn);
        self.evictions.inc_by(evicted);
        self.set_bytes.with_label_values(&["new"]).inc_by(new);
        self.set_bytes.with_label_values(&["again"]).inc_by(again);
        self.table_bytes.set(occupancy.bytes as f64);
        for (part, used, all) in [
            ("lemmas", occupancy.lemmas, occupancy.lemma_slots),
            ("numbers", occupancy.numbers, occupancy.number_slots),
            ("sets", occupancy.sets_used_bytes, occupancy.sets_bytes),
        ] {
            self.occupancy.with_label_values(&[part]).set(used as f64 / all.max(1) as f64);
        }
    }

    /// Takes over what the store and RocksDB have counted since the last call.
    fn follow_store(&self, engine: &Engine) {
        let gauges = engine.store.gauges();
        self.store_refuses.set(f64::from(engine.store.refuses_writes()));
        let rocksdb = &self.rocksdb;
        for family in &gauges.families {
            let label = &[family.name];
            rocksdb.pending_compaction.with_label_values(label).set(family.pending_compaction_bytes as f64);
            rocksdb.memtables.with_label_values(label).set(family.memtable_bytes as f64);
            rocksdb.level0_files.with_label_values(label).set(family.level0_files as f64);
            rocksdb.files.with_label_values(label).set(family.file_bytes as f64);
        }
        rocksdb.writes_stopped.set(f64::from(gauges.writes_stopped));
        let counts = [
            engine.store.read_errors(),
            gauges.families.iter().map(|family| family.background_errors).sum(),
            gauges.stalled.as_micros() as u64,
            gauges.log_bytes,
            gauges.flushed_bytes,
            gauges.compacted_bytes,
            gauges.cache_hits,
            gauges.cache_misses,
        ];
        let [read_errors, background_errors, stalled, log, files, compacted, hits, misses] = locked(&self.seen_store).growth(1, counts);
        self.read_errors.inc_by(read_errors);
        rocksdb.background_errors.inc_by(background_errors);
        rocksdb.stall.inc_by(stalled as f64 / 1e6);
        for (to, bytes) in [("log", log), ("files", files), ("compacted", compacted)] {
            rocksdb.written.with_label_values(&[to]).inc_by(bytes);
        }
        for (from, blocks) in [("memory", hits), ("files", misses)] {
            rocksdb.blocks.with_label_values(&[from]).inc_by(blocks);
        }
    }

    /// Takes over the panics since the last call.
    fn follow_panics(&self) {
        let counts = std::array::from_fn(|index| PANICS[index].load(Relaxed));
        for (worker, count) in WORKERS.into_iter().zip(locked(&self.seen_panics).growth(1, counts)) {
            self.panics.with_label_values(&[worker]).inc_by(count);
        }
    }

    /// The text that a scrape gets.
    pub fn render(&self, engine: &Engine) -> prometheus::Result<String> {
        let running = engine.running();
        self.follow_search(running.as_deref());
        self.follow_table(engine);
        self.follow_store(engine);
        self.follow_panics();
        self.streams.set(engine.jobs.events.streams() as f64);
        self.revisit_factor.set(running.as_ref().map_or(0.0, |running| running.counts().revisit_factor()));
        self.root_proof.set(running.as_ref().map_or(0.0, |running| running.control.root_phi.load(Relaxed) as f64));
        self.root_disproof.set(running.as_ref().map_or(0.0, |running| running.control.root_delta.load(Relaxed) as f64));
        let live = running.as_ref().map(|running| running.live());
        let bounds = live.as_ref().map_or((0, 0), |live| (live.bounds.lower, live.bounds.upper));
        for (bound, points) in [("lower", bounds.0), ("upper", bounds.1)] {
            self.bound.with_label_values(&[bound]).set(f64::from(points));
        }
        self.search_elapsed.set(live.as_ref().map_or(0.0, |live| live.counts.elapsed_seconds));
        let stage = live.map(|live| live.stage.name());
        let phase = engine.pulse.phase();
        let state = if phase == Phase::Search { stage.unwrap_or(phase.name()) } else { phase.name() };
        for name in Phase::ALL.map(Phase::name).into_iter().chain(["certificate", "verification"]) {
            self.solver_state.with_label_values(&[name]).set(f64::from(name == state));
        }
        let waiting = engine.jobs.queue().into_iter().filter_map(|id| engine.jobs.get(id));
        let oldest = waiting.filter(|job| job.data.started_at.is_none()).min_by_key(|job| job.id);
        let created = oldest.and_then(|job| unix_seconds(&job.data.created_at));
        self.queue_oldest.set(created.map_or(0.0, |created| (now() - created).max(0.0)));
        let campaigns = engine.jobs.list_campaigns(0, usize::MAX, |_| true);
        for state in State::ALL.into_iter().filter(|&state| state != State::Queued) {
            let count = campaigns.iter().filter(|campaign| campaign.data.state == state).count();
            self.campaigns.with_label_values(&[state.name()]).set(count as f64);
        }
        for (state, count) in State::ALL.into_iter().zip(engine.jobs.counts()) {
            self.jobs.with_label_values(&[state.name()]).set(count as f64);
            if state == State::Queued {
                self.queue_depth.set(count as i64);
            }
        }
        let mut rejected = engine.jobs.rejected();
        rejected.extend(locked(&engine.rejected_now).iter().map(|&(job, _)| job));
        self.rejected_jobs.set(rejected.len() as i64);
        if let Ok(disk) = rustix::fs::statvfs(&engine.data_dir) {
            self.storage_free.set(disk.f_bavail.saturating_mul(disk.f_frsize) as f64);
            self.storage_size.set(disk.f_blocks.saturating_mul(disk.f_frsize) as f64);
        }
        self.storage_guard.set(engine.store.check_space().is_err().into());
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_grow_over_many_runs_and_never_count_twice() {
        let mut seen = Seen::<1>::default();
        assert_eq!(seen.growth(1, [5]), [5]);
        assert_eq!(seen.growth(1, [8]), [3]);
        assert_eq!(seen.growth(1, [7]), [0], "a late reader");
        assert_eq!(seen.growth(2, [4]), [4]);
        assert_eq!(seen.growth(1, [9]), [0], "an earlier run is settled");
    }

    #[test]
    fn panics_are_counted_by_thread() {
        count_panics();
        let metrics = Metrics::new().expect("metrics");
        metrics.follow_panics();
        let count = |worker: &str| metrics.panics.with_label_values(&[worker]).get();
        let before = WORKERS.map(count);
        let panics = || std::panic::panic_any("on purpose");
        for name in ["solver", "search-1", "search-2"] {
            let thread = std::thread::Builder::new().name(name.to_owned()).spawn(panics).expect("a thread");
            assert!(thread.join().is_err());
        }
        metrics.follow_panics();
        metrics.follow_panics();
        let after = WORKERS.map(count);
        assert_eq!(after[..3].iter().zip(&before).map(|(after, before)| after - before).collect::<Vec<_>>(), [1, 2, 0]);
    }
}

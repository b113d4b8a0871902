//! The JSON objects that the command line prints and that a job's `result` holds.

use crate::certificate::CertificateReport;
use crate::position::{Position, vertices};
use crate::schema;
use crate::statistics::Statistics;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use std::sync::atomic::Ordering::Relaxed;
use superko_rules::{Color, Geometry, Move};
use superko_search::{Bounds, Control, Komi, Outcome, SearchStats, ValueSearch};
use superko_storage::TableOccupancy;
use utoipa::ToSchema;

/// 64-bit counters travel as strings: JSON readers lose whole numbers past 2^53.
pub mod counter {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// Writes the number as a string.
    pub fn serialize<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(number)
    }

    /// Reads the string back.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// Black's margin lies within these, ends included.
pub fn serialize_bounds<S: Serializer>(bounds: &Bounds, serializer: S) -> Result<S::Ok, S::Error> {
    serde_json::json!({"lower": bounds.lower, "upper": bounds.upper}).serialize(serializer)
}

/// Search counts and time, of a step or of a whole job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// Expansions (see [`Control::expansions`]).
    #[serde(with = "counter")]
    pub expansions: u64,
    /// Positions expanded for the first time.
    #[serde(with = "counter")]
    pub distinct_nodes: u64,
    /// Look-ups of a position's lemmas.
    #[serde(with = "counter")]
    pub probes: u64,
    /// Look-ups that decided the position.
    #[serde(with = "counter")]
    pub hits: u64,
    /// Wall-clock time of the search.
    pub elapsed_seconds: f64,
    /// Everything else that is counted.
    #[serde(default)]
    pub statistics: Statistics,
}

impl Counts {
    /// Whether nothing was counted.
    pub fn is_zero(&self) -> bool {
        *self == Counts::default()
    }

    /// The counters of a running search.
    pub fn of_control(control: &Control, elapsed_seconds: f64) -> Counts {
        Counts {
            expansions: control.expansions.load(Relaxed),
            distinct_nodes: control.distinct_nodes.load(Relaxed),
            probes: control.probes.load(Relaxed),
            hits: control.hits.load(Relaxed),
            elapsed_seconds,
            statistics: Statistics(control.counters.load()),
        }
    }

    /// The counters of a finished `solve` call.
    pub fn of_stats(stats: &SearchStats, elapsed_seconds: f64) -> Counts {
        Counts {
            expansions: stats.expansions,
            distinct_nodes: stats.distinct_nodes,
            probes: stats.probes,
            hits: stats.hits,
            elapsed_seconds,
            statistics: Statistics(stats.counters),
        }
    }

    /// Both together.
    #[must_use]
    pub fn plus(&self, other: &Counts) -> Counts {
        Counts {
            expansions: self.expansions + other.expansions,
            distinct_nodes: self.distinct_nodes + other.distinct_nodes,
            probes: self.probes + other.probes,
            hits: self.hits + other.hits,
            elapsed_seconds: self.elapsed_seconds + other.elapsed_seconds,
            statistics: Statistics(self.statistics.0.plus(&other.statistics.0)),
        }
    }

    /// What was added since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Counts) -> Counts {
        Counts {
            expansions: self.expansions.saturating_sub(earlier.expansions),
            distinct_nodes: self.distinct_nodes.saturating_sub(earlier.distinct_nodes),
            probes: self.probes.saturating_sub(earlier.probes),
            hits: self.hits.saturating_sub(earlier.hits),
            elapsed_seconds: (self.elapsed_seconds - earlier.elapsed_seconds).max(0.0),
            statistics: Statistics(self.statistics.0.since(&earlier.statistics.0)),
        }
    }

    /// Expansions for each distinct node; 1 before the first.
    pub fn revisit_factor(&self) -> f64 {
        if self.distinct_nodes == 0 { 1.0 } else { self.expansions as f64 / self.distinct_nodes as f64 }
    }

    /// Share of the probes that decided the position; 0 before the first.
    pub fn table_hit_rate(&self) -> f64 {
        if self.probes == 0 { 0.0 } else { self.hits as f64 / self.probes as f64 }
    }
}

/// What `superko solve --json` prints.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SolveReport {
    /// `ROWSxCOLUMNS`.
    pub board: String,
    /// The start diagram, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Setup>)]
    pub setup: Option<Value>,
    /// Added to White's score.
    pub komi: f64,
    /// Vertices from the start to the position solved.
    pub moves: Vec<String>,
    /// `black` or `white`.
    #[schema(value_type = schema::Color)]
    pub to_move: String,
    /// `proved` or `unknown`.
    #[schema(pattern = "^(proved|unknown)$")]
    pub status: String,
    /// `black` or `white`, null if unknown.
    #[schema(value_type = Option<schema::Color>, required)]
    pub winner: Option<String>,
    /// The winner's move if the winner is to move.
    #[schema(required)]
    pub best_move: Option<String>,
    /// Calls of the recursive procedure.
    #[serde(with = "counter")]
    #[schema(value_type = schema::Counter)]
    pub expansions: u64,
    /// Positions expanded for the first time.
    #[serde(with = "counter")]
    #[schema(value_type = schema::Counter)]
    pub distinct_nodes: u64,
    /// Expansions for each distinct node.
    pub revisit_factor: f64,
    /// Share of the table probes that decided a position, 0 to 1.
    pub table_hit_rate: f64,
    /// Wall-clock time of the search.
    pub elapsed_seconds: f64,
    /// Threads that searched.
    pub threads: usize,
    /// Size of the table.
    #[serde(with = "counter")]
    #[schema(value_type = schema::Counter)]
    pub table_bytes: u64,
    /// Bytes written for the sets of lemmas since the table was opened; parts that several lemmas share count once.
    #[serde(default, with = "counter")]
    #[schema(value_type = schema::Counter)]
    pub sets_new_bytes: u64,
    /// Bytes written again, to keep the sets of costly lemmas in a table that is full.
    #[serde(default, with = "counter")]
    #[schema(value_type = schema::Counter)]
    pub sets_rewritten_bytes: u64,
    /// A line of best play as far as the stored proofs show it.
    pub principal_variation: Vec<String>,
    /// The certificate that was asked for and written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateReport>,
    /// Why there is none, though it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_error: Option<String>,
    /// Everything else that is counted.
    #[serde(default)]
    #[schema(value_type = schema::Statistics)]
    pub statistics: Statistics,
}

impl SolveReport {
    /// Describes what `solve` said about `position`, with counts that may span several runs.
    pub fn new(position: &Position, komi: Komi, outcome: &Outcome, counts: &Counts, table: &TableOccupancy) -> SolveReport {
        let geometry = position.geometry();
        SolveReport {
            board: geometry.name(),
            setup: position.setup(),
            komi: komi.as_f64(),
            moves: position.moves(),
            to_move: position.to_move().name().to_owned(),
            status: if outcome.verdict.is_ok() { "proved" } else { "unknown" }.to_owned(),
            winner: outcome.verdict.ok().map(|(winner, _)| winner.name().to_owned()),
            best_move: outcome.best_move.map(|mv| mv.vertex(geometry)),
            expansions: counts.expansions,
            distinct_nodes: counts.distinct_nodes,
            revisit_factor: counts.revisit_factor(),
            table_hit_rate: counts.table_hit_rate(),
            elapsed_seconds: counts.elapsed_seconds,
            threads: outcome.threads,
            table_bytes: table.bytes,
            sets_new_bytes: table.sets_new_bytes,
            sets_rewritten_bytes: table.sets_rewritten_bytes,
            principal_variation: vertices(geometry, &outcome.principal_variation),
            certificate: None,
            certificate_error: None,
            statistics: counts.statistics,
        }
    }
}

/// What `superko value --json` prints.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ValueReport {
    /// `ROWSxCOLUMNS`.
    pub board: String,
    /// The start diagram, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Setup>)]
    pub setup: Option<Value>,
    /// Vertices from the start.
    pub moves: Vec<String>,
    /// Black's margin under best play, null if unknown.
    #[schema(required)]
    pub value: Option<i32>,
    /// `proved` or `unknown`.
    #[schema(pattern = "^(proved|unknown)$")]
    pub status: String,
    /// What is known of the value.
    #[serde(serialize_with = "serialize_bounds")]
    #[schema(value_type = schema::Bounds)]
    pub bounds: Bounds,
    /// Black's win at value − ½ and White's at value + ½; one of them where the other is trivial; none while unknown.
    pub proofs: Vec<SolveReport>,
    /// Over all proofs and attempts.
    #[serde(with = "counter")]
    #[schema(value_type = schema::Counter)]
    pub expansions: u64,
    /// Over all proofs and attempts.
    #[serde(with = "counter")]
    #[schema(value_type = schema::Counter)]
    pub distinct_nodes: u64,
    /// Over all proofs and attempts.
    pub elapsed_seconds: f64,
    /// Over all proofs and attempts.
    #[schema(value_type = schema::Statistics)]
    pub statistics: Statistics,
}

/// A solved komi on the way to a value, complete enough to go on from after a restart.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Step {
    /// The margin that the proof achieves for its winner, in points.
    pub margin: i32,
    /// The proof.
    pub report: SolveReport,
}

impl Step {
    /// The step back as the search's own type; `None` if the record does not read.
    fn outcome(&self, geometry: &Geometry) -> Option<(Komi, Outcome)> {
        let winner = match self.report.winner.as_deref()? {
            "black" => Color::Black,
            "white" => Color::White,
            _ => return None,
        };
        let read = |text: &String| Move::parse(geometry, text).ok();
        let stats =
            SearchStats { expansions: self.report.expansions, distinct_nodes: self.report.distinct_nodes, ..SearchStats::default() };
        let outcome = Outcome {
            verdict: Ok((winner, self.margin)),
            best_move: self.report.best_move.as_ref().and_then(read),
            principal_variation: self.report.principal_variation.iter().map_while(read).collect(),
            stats,
            threads: self.report.threads,
        };
        Some((Komi::from_f64(self.report.komi).ok()?, outcome))
    }
}

/// The value search of a position together with the reports of its proofs.
#[derive(Clone, Debug)]
pub struct ValueProgress {
    search: ValueSearch,
    steps: Vec<Step>,
}

impl ValueProgress {
    /// Starts from recorded steps (none for a new search). A step that does not read is left out, to be proved again.
    pub fn new(position: &Position, steps: &[Step]) -> ValueProgress {
        let mut progress = ValueProgress { search: ValueSearch::new(&position.game), steps: Vec::new() };
        for step in steps {
            if let Some((komi, outcome)) = step.outcome(position.geometry()) {
                progress.search.record(komi, outcome);
                progress.steps.push(step.clone());
            }
        }
        progress
    }

    /// The komi to solve next; `None` when the value is known with its proofs.
    pub fn next_komi(&self) -> Option<Komi> {
        self.search.next_komi()
    }

    /// Takes in a verdict; an outcome without one changes nothing.
    pub fn record(&mut self, komi: Komi, outcome: &Outcome, report: SolveReport) {
        if let Ok((_, margin)) = outcome.verdict {
            self.search.record(komi, outcome.clone());
            self.steps.push(Step { margin, report });
        }
    }

    /// The steps so far.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Black's margin lies within these.
    pub fn bounds(&self) -> Bounds {
        let (lower, upper) = self.search.bounds();
        Bounds { lower, upper }
    }

    /// The report as things stand.
    pub fn report(&self, position: &Position, counts: &Counts) -> ValueReport {
        let proved = self.search.next_komi().is_none();
        let proofs = if proved { self.search.proofs() } else { Vec::new() };
        let proofs = proofs
            .into_iter()
            .filter_map(|proof| self.steps.iter().find(|step| step.report.komi == proof.komi.as_f64()))
            .map(|step| step.report.clone())
            .collect();
        ValueReport {
            board: position.geometry().name(),
            setup: position.setup(),
            moves: position.moves(),
            value: if proved { self.search.value() } else { None },
            status: if proved { "proved" } else { "unknown" }.to_owned(),
            bounds: self.bounds(),
            proofs,
            expansions: counts.expansions,
            distinct_nodes: counts.distinct_nodes,
            elapsed_seconds: counts.elapsed_seconds,
            statistics: counts.statistics,
        }
    }
}

/// The winner at `komi`, if what is known of Black's margin decides it.
pub fn winner_within(bounds: Bounds, komi: Komi) -> Option<Color> {
    if bounds.lower >= komi.need(Color::Black) {
        Some(Color::Black)
    } else if -bounds.upper >= komi.need(Color::White) {
        Some(Color::White)
    } else {
        None
    }
}

/// What a verdict at one komi says about Black's margin on a board of `points` points.
pub fn bounds_of(verdict: Option<(Color, i32)>, points: usize) -> Bounds {
    let points = points as i32;
    match verdict {
        None => Bounds { lower: -points, upper: points },
        Some((Color::Black, margin)) => Bounds { lower: margin, upper: points },
        Some((Color::White, margin)) => Bounds { lower: -points, upper: -margin },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_decide_a_komi_or_leave_it_open() {
        let komi = |number: f64| Komi::from_f64(number).expect("a half-integer");
        let bounds = Bounds { lower: 1, upper: 3 };
        assert_eq!(winner_within(bounds, komi(0.5)), Some(Color::Black));
        assert_eq!(winner_within(bounds, komi(1.5)), None);
        assert_eq!(winner_within(bounds, komi(3.5)), Some(Color::White));
    }
}

//! A job as a client asks for it: every field read and checked, unknown ones refused.

use crate::position::{FieldError, Position, escape, read_komi, shown};
use crate::schema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::time::Duration;
use superko_search::Komi;
use utoipa::ToSchema;

/// What a job is to find out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = JobKind)]
pub enum Kind {
    /// Who wins at one komi.
    Solve,
    /// Black's margin, with both proofs.
    Value,
}

impl Kind {
    /// As in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Solve => "solve",
            Kind::Value => "value",
        }
    }
}

/// When a job gives up; counted over all its runs since it was last resumed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct JobLimits {
    /// Expansions.
    pub expansions: Option<u64>,
    /// Search time.
    pub time: Option<Duration>,
    /// Bytes in use of the table that it works in, which holds the lemmas of other jobs about such boards too.
    pub memory: Option<u64>,
}

/// A validated job request.
#[derive(Clone, Debug)]
pub struct JobRequest {
    /// What to find out.
    pub kind: Kind,
    /// About which position.
    pub position: Position,
    /// For a solve; a value job has none.
    pub komi: Option<Komi>,
    /// Higher goes first.
    pub priority: i32,
    /// When to give up.
    pub limits: JobLimits,
    /// Free text to find the job by.
    pub label: Option<String>,
    /// Whether its proofs are to be written as certificates.
    pub certificate: bool,
    /// Whether the checker is to judge the certificates.
    pub verify: bool,
}

const FIELDS: [&str; 10] = ["kind", "board", "komi", "moves", "setup", "priority", "limits", "label", "certificate", "verify"];

/// The fields of `limits`, for messages.
const LIMITS: &str = "expansions, time_seconds and memory_bytes";

/// Longest label, in characters.
const MAX_LABEL: usize = 200;

/// A job as a client asks for it.
// For the description of the API; `JobRequest::from_json` reads the body, with better errors than serde's.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"kind": "value", "board": "3x3", "label": "first"}))]
pub struct JobSubmission {
    /// What to find out.
    pub kind: Kind,
    /// `ROWSxCOLUMNS`, to 8x8, and lines and two or three rows of up to 64 points.
    #[schema(pattern = "^[1-9][0-9]?[xX][1-9][0-9]?$", example = "3x3")]
    pub board: String,
    /// A half-integer, added to White's score; a solve needs it, a value has none.
    #[schema(multiple_of = 0.5, example = 0.5)]
    pub komi: Option<f64>,
    /// From the start, or from the diagram.
    pub moves: Option<schema::Moves>,
    /// To start from a diagram.
    pub setup: Option<schema::Setup>,
    /// Higher goes first; 0 if left out.
    pub priority: Option<i32>,
    /// When to give up.
    pub limits: Option<schema::LimitsRequest>,
    /// Free text to find the job by.
    #[schema(max_length = 200)]
    pub label: Option<String>,
    /// Whether to write the proofs as certificates.
    pub certificate: Option<bool>,
    /// Whether to have the certificates checked; needs `certificate`.
    pub verify: Option<bool>,
}

impl JobRequest {
    /// Reads a request body; reports one error a field.
    pub fn from_json(body: &Value) -> Result<JobRequest, Vec<FieldError>> {
        let Value::Object(fields) = body else {
            return Err(vec![FieldError::new("", format!("{} is not an object: expected {{\"board\": …, \"kind\": …}}", shown(body)))]);
        };
        let mut errors: Vec<FieldError> = fields
            .keys()
            .filter(|name| !FIELDS.contains(&name.as_str()))
            .map(|name| FieldError::new(format!("/{}", escape(name)), format!("unknown field {name:?}: a job has {}", FIELDS.join(", "))))
            .collect();
        let mut keep = |error: FieldError| errors.push(error);
        let kind = read_kind(fields.get("kind")).map_err(&mut keep).ok();
        let komi = kind.and_then(|kind| read_job_komi(kind, fields.get("komi")).map_err(&mut keep).ok());
        let position = Position::from_fields(fields).map_err(&mut keep).ok();
        let priority = read_priority(fields.get("priority")).map_err(&mut keep).ok();
        let limits = read_limits(fields.get("limits")).map_err(&mut keep).ok();
        let label = read_label(fields.get("label")).map_err(&mut keep).ok();
        let certificate = read_flag("certificate", fields).map_err(&mut keep).ok();
        let verify = read_flag("verify", fields).map_err(&mut keep).ok();
        if (certificate, verify) == (Some(false), Some(true)) {
            keep(FieldError::new("/verify", "verify true needs certificate true: there is nothing else to verify"));
        }
        match (kind, komi, position, priority, limits, label, certificate.zip(verify)) {
            (Some(kind), Some(komi), Some(position), Some(priority), Some(limits), Some(label), Some((certificate, verify)))
                if errors.is_empty() =>
            {
                Ok(JobRequest { kind, position, komi, priority, limits, label, certificate, verify })
            }
            _ => Err(errors),
        }
    }

    /// The request in one fixed form, which reads back as the same request.
    pub fn canonical(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert("kind".into(), self.kind.name().into());
        fields.insert("board".into(), self.position.geometry().name().into());
        if let Some(komi) = self.komi {
            fields.insert("komi".into(), komi.as_f64().into());
        }
        fields.insert("moves".into(), self.position.moves().into());
        if let Some(setup) = self.position.setup() {
            fields.insert("setup".into(), setup);
        }
        fields.insert("priority".into(), self.priority.into());
        fields.insert("limits".into(), limits_json(&self.limits));
        fields.insert("label".into(), json!(self.label));
        for (name, flag) in [("certificate", self.certificate), ("verify", self.verify)] {
            if flag {
                fields.insert(name.into(), true.into());
            }
        }
        fields
    }

    /// What two requests must share to be one job: everything but the priority.
    pub fn identity(&self) -> Map<String, Value> {
        let mut fields = self.canonical();
        fields.remove("priority");
        fields
    }
}

/// `{"expansions": "1000" or null, "time_seconds": 60.0 or null, "memory_bytes": "1048576" or null}`.
pub fn limits_json(limits: &JobLimits) -> Value {
    let text = |limit: Option<u64>| limit.map(|limit| limit.to_string());
    json!({
        "expansions": text(limits.expansions),
        "time_seconds": limits.time.map(|time| time.as_secs_f64()),
        "memory_bytes": text(limits.memory),
    })
}

fn read_kind(value: Option<&Value>) -> Result<Kind, FieldError> {
    match value.map(Value::as_str) {
        Some(Some("solve")) => Ok(Kind::Solve),
        Some(Some("value")) => Ok(Kind::Value),
        None => Err(FieldError::new("/kind", "kind is missing: expected \"solve\" or \"value\"")),
        Some(_) => Err(FieldError::new(
            "/kind",
            format!("kind {} is not valid: expected \"solve\" or \"value\"", value.map(shown).unwrap_or_default()),
        )),
    }
}

fn read_job_komi(kind: Kind, value: Option<&Value>) -> Result<Option<Komi>, FieldError> {
    match (kind, value.filter(|value| !value.is_null())) {
        (Kind::Solve, None) => Err(FieldError::new("/komi", "komi is missing: a solve needs a half-integer such as -3.5 or 0.5")),
        (Kind::Solve, Some(value)) => read_komi(value).map(Some),
        (Kind::Value, None) => Ok(None),
        (Kind::Value, Some(value)) => Err(FieldError::new(
            "/komi",
            format!("komi {} does not belong to a value job, which finds the value at every komi: leave it out", shown(value)),
        )),
    }
}

pub(crate) fn read_priority(value: Option<&Value>) -> Result<i32, FieldError> {
    match value {
        None | Some(Value::Null) => Ok(0),
        Some(value) => value.as_i64().and_then(|number| i32::try_from(number).ok()).ok_or_else(|| {
            FieldError::new(
                "/priority",
                format!("priority {} is not valid: expected a whole 32-bit number, higher goes first", shown(value)),
            )
        }),
    }
}

pub(crate) fn read_limits(value: Option<&Value>) -> Result<JobLimits, FieldError> {
    let fields = match value {
        None | Some(Value::Null) => return Ok(JobLimits::default()),
        Some(Value::Object(fields)) => fields,
        Some(other) => {
            return Err(FieldError::new("/limits", format!("limits {} is not an object: expected {LIMITS}", shown(other))));
        }
    };
    let mut limits = JobLimits::default();
    for (name, value) in fields {
        let error = |expected: &str| {
            FieldError::new(format!("/limits/{}", escape(name)), format!("{name} {} is not valid: expected {expected}", shown(value)))
        };
        match (name.as_str(), value) {
            ("expansions" | "time_seconds" | "memory_bytes", Value::Null) => {}
            ("expansions" | "memory_bytes", _) => {
                let number = value.as_u64().or_else(|| value.as_str().and_then(|text| text.parse().ok()));
                let number = number.filter(|&number| number > 0).ok_or_else(|| error("a whole number from 1, as a number or a string"))?;
                *(if name == "expansions" { &mut limits.expansions } else { &mut limits.memory }) = Some(number);
            }
            ("time_seconds", _) => {
                // Far above a nanosecond: the stored request must read back.
                let seconds = value.as_f64().filter(|seconds| (0.001..=1e9).contains(seconds));
                limits.time = Some(Duration::from_secs_f64(seconds.ok_or_else(|| error("a number of seconds from 0.001 to 1e9"))?));
            }
            _ => {
                return Err(FieldError::new(format!("/limits/{}", escape(name)), format!("unknown field {name:?}: limits has {LIMITS}")));
            }
        }
    }
    Ok(limits)
}

pub(crate) fn read_flag(name: &str, fields: &Map<String, Value>) -> Result<bool, FieldError> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(other) => Err(FieldError::new(format!("/{name}"), format!("{name} {} is not valid: expected true or false", shown(other)))),
    }
}

pub(crate) fn read_label(value: Option<&Value>) -> Result<Option<String>, FieldError> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(label)) if label.chars().count() <= MAX_LABEL => Ok(Some(label.clone())),
        Some(other) => Err(FieldError::new(
            "/label",
            format!("label {} is not valid: expected a string of at most {MAX_LABEL} characters", shown(other)),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_point_at_the_field() {
        let good = json!({"kind": "solve", "board": "2x2", "komi": 0.5});
        assert!(JobRequest::from_json(&good).is_ok());
        for (name, value, pointer) in [
            ("kind", json!("prove"), "/kind"),
            ("kind", json!(null), "/kind"),
            ("komi", json!(1), "/komi"),
            ("komi", json!(null), "/komi"),
            ("komi", json!("0.5"), "/komi"),
            ("board", json!("0x3"), "/board"),
            ("moves", json!(["A1", "A1"]), "/moves/1"),
            ("setup", json!({"rows": ["..", "O?"], "to_move": "black"}), "/setup/rows/1"),
            ("priority", json!(1.5), "/priority"),
            ("label", json!(7), "/label"),
            ("certificate", json!("yes"), "/certificate"),
            ("verify", json!(1), "/verify"),
            ("verify", json!(true), "/verify"),
            ("label", json!("x".repeat(201)), "/label"),
            ("limits", json!([]), "/limits"),
            ("limits", json!({"expansions": 0}), "/limits/expansions"),
            ("limits", json!({"expansions": "many"}), "/limits/expansions"),
            ("limits", json!({"time_seconds": -1}), "/limits/time_seconds"),
            ("limits", json!({"nodes": 1}), "/limits/nodes"),
            ("kmoi", json!(1), "/kmoi"),
            ("a/b~", json!(1), "/a~1b~0"),
        ] {
            let mut body = good.clone();
            body[name] = value;
            let errors = JobRequest::from_json(&body).expect_err(&body.to_string());
            assert_eq!(errors.iter().map(|error| error.pointer.as_str()).collect::<Vec<_>>(), [pointer], "{body}");
        }
        let errors = JobRequest::from_json(&json!({"kind": "value", "board": "2x2", "komi": 0.5})).expect_err("komi of a value job");
        assert_eq!(errors[0].pointer, "/komi");
        assert_eq!(JobRequest::from_json(&json!([1])).expect_err("an array")[0].pointer, "");
    }

    #[test]
    fn the_description_has_every_field() {
        let body: JobSubmission = serde_json::from_value(json!({"kind": "value", "board": "2x2"})).expect("the least that is needed");
        let described = serde_json::to_value(body).expect("JSON");
        assert_eq!(described.as_object().expect("an object").keys().collect::<Vec<_>>(), FIELDS);
    }

    #[test]
    fn a_request_reads_back_from_its_canonical_form() {
        let body = json!({"board": "2X3", "kind": "solve", "komi": -1.5, "moves": "b1 PASS", "priority": 3, "label": "x", "limits": {"expansions": "5"}, "certificate": true});
        let request = JobRequest::from_json(&body).expect("good");
        let canonical = request.canonical();
        let again = JobRequest::from_json(&Value::Object(canonical.clone())).expect("canonical");
        assert_eq!(again.canonical(), canonical);
        assert_eq!(canonical["moves"], json!(["B1", "pass"]));
        assert_eq!((again.limits.expansions, again.certificate, again.verify), (Some(5), true, false));
    }
}

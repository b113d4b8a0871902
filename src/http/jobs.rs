//! `/v1/jobs`.

use super::problem::Problem;
use super::{blocking, names, read_query};
use crate::engine::Engine;
use crate::jobs::{Job, JobError, JobView, State as JobState};
use crate::position::{FieldError, escape, shown};
use crate::request::{JobLimits, JobRequest, JobSubmission, read_limits, read_priority};
use crate::schema::{JobPage, Order, PriorityChange, Resumption};
use crate::strict_json::StrictJson;
use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Jobs a page, unless asked otherwise, and at most.
const PAGE: (usize, usize) = (50, 500);

/// Longest `Idempotency-Key`, in characters.
const MAX_KEY: usize = 255;

pub(super) type Pairs = Result<Query<Vec<(String, String)>>, QueryRejection>;
pub(super) type Id = Result<Path<String>, PathRejection>;

/// A job as it stands, with what its run adds.
pub(super) fn job_json(engine: &Engine, job: &Job, queue: &[u64]) -> Result<Value, Problem> {
    let live = if job.data.state == JobState::Running { engine.live(job.id) } else { None };
    serde_json::to_value(job.view(queue, live.as_ref())).map_err(|error| Problem::internal(&error))
}

/// An answer with a job, its entity tag, and no caching: progress moves on without a new tag.
fn job_response(engine: &Engine, job: &Job) -> Result<Response, Problem> {
    let json = job_json(engine, job, &engine.jobs.queue())?;
    Ok(([(header::ETAG, job.tag()), (header::CACHE_CONTROL, "no-store".to_owned())], Json(json)).into_response())
}

/// `POST /v1/jobs`: 202 with the job, new or joined.
#[utoipa::path(post, path = "/v1/jobs", operation_id = "submitJob", tag = "jobs", summary = "Submit a job",
    description = "An open job that asks the same, but for the priority, is joined.",
    params(("Idempotency-Key" = Option<String>, Header, description = "The same request with the same key is the same job, even an ended one",
        min_length = 1, max_length = 255, pattern = "^[ -~]*$")),
    request_body = JobSubmission,
    responses(
        (status = 202, description = "The job, new or joined", body = JobView,
            headers(("Location" = String, description = "Its path"), ("ETag" = String, description = "For If-Match"))),
        (status = 400, description = "`malformed_json`, `invalid_idempotency_key`"),
        (status = 415, description = "`unsupported_media_type`"),
        (status = 422, description = "`invalid_request`: `errors` has each field at fault, `idempotency_key_reused`"),
        (status = 503, description = "`queue_full`, `draining`, `storage_full`, `store_failed`")
    ))]
pub async fn submit(
    State(engine): State<Arc<Engine>>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
    max_body_bytes: usize,
) -> Result<Response, Problem> {
    let body = read_body(&headers, body, max_body_bytes)?;
    let key = read_key(&headers)?;
    let (job, response) = blocking(move || -> Result<_, Problem> {
        let request = JobRequest::from_json(&body).map_err(Problem::invalid)?;
        let job = engine.jobs.submit(request, key)?;
        tracing::debug!(job = job.id, "accepted");
        let response = job_response(&engine, &job)?;
        Ok((job, response))
    })
    .await??;
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, format!("/v1/jobs/{}", job.id))], response).into_response())
}

/// The JSON of a request.
pub(super) fn read_body(headers: &HeaderMap, body: Result<Bytes, BytesRejection>, max_body_bytes: usize) -> Result<Value, Problem> {
    let too_large = || {
        let detail = format!(
            "the body is larger than max_body_bytes, {max_body_bytes} bytes: send a smaller one, or raise the limit in the configuration"
        );
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
    };
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !content_type.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json") {
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            format!("Content-Type {content_type:?} is not supported: expected application/json"),
        ));
    }
    let body = body.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => too_large(),
        status => Problem::new(status, "unreadable_body", rejection.body_text()),
    })?;
    if body.len() > max_body_bytes {
        return Err(too_large());
    }
    serde_json::from_slice(&body)
        .map(|StrictJson(value)| value)
        .map_err(|error| Problem::new(StatusCode::BAD_REQUEST, "malformed_json", format!("the body is not valid JSON: {error}")))
}

pub(super) fn read_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    match value.to_str() {
        Ok(key) if (1..=MAX_KEY).contains(&key.len()) => Ok(Some(key.to_owned())),
        _ => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "invalid_idempotency_key",
            format!("Idempotency-Key {value:?} is not valid: expected 1 to {MAX_KEY} visible ASCII characters"),
        )),
    }
}

/// The number of a `what` (`job` or `campaign`) in a path.
pub(super) fn read_id(what: &str, path: Id) -> Result<u64, Problem> {
    let missing = |detail: String| {
        let code = if what == "job" { "job_not_found" } else { "campaign_not_found" };
        Problem::new(StatusCode::NOT_FOUND, code, detail)
    };
    let Path(text) = path.map_err(|rejection| missing(format!("there is no such {what}: {}", rejection.body_text())))?;
    text.parse().map_err(|_| missing(format!("there is no {what} {text:?}: {what} ids are whole numbers")))
}

/// The body of a request that may have none: the fields of an object, all of them known.
pub(super) fn read_fields(
    headers: &HeaderMap,
    body: Result<Bytes, BytesRejection>,
    max_body_bytes: usize,
    known: &str,
) -> Result<Map<String, Value>, Problem> {
    if body.as_ref().is_ok_and(Bytes::is_empty) {
        return Ok(Map::new());
    }
    let fields = match read_body(headers, body, max_body_bytes)? {
        Value::Object(fields) => fields,
        other => {
            let detail = format!("{} is not an object: expected {{{known:?}: …}}", shown(&other));
            return Err(Problem::invalid(vec![FieldError::new("", detail)]));
        }
    };
    match fields.keys().find(|name| *name != known) {
        Some(name) => {
            let detail = format!("unknown field {name:?}: expected {known}");
            Err(Problem::invalid(vec![FieldError::new(format!("/{}", escape(name)), detail)]))
        }
        None => Ok(fields),
    }
}

/// The `limits` of a resume, if it gives any.
pub(super) fn read_new_limits(fields: &Map<String, Value>) -> Result<Option<JobLimits>, Problem> {
    let limits = fields.get("limits").filter(|limits| !limits.is_null());
    limits.map(|limits| read_limits(Some(limits))).transpose().map_err(|error| Problem::invalid(vec![error]))
}

/// The `priority` of a PATCH.
pub(super) fn read_new_priority(fields: &Map<String, Value>) -> Result<i32, Problem> {
    let missing = || FieldError::new("/priority", "priority is missing: it is what can be changed; expected a whole number");
    fields.get("priority").ok_or_else(missing).and_then(|value| read_priority(Some(value))).map_err(|error| Problem::invalid(vec![error]))
}

/// `GET /v1/jobs/{id}`.
#[utoipa::path(get, path = "/v1/jobs/{id}", operation_id = "showJob", tag = "jobs", summary = "A job",
    params(("id" = u64, Path, description = "The job's id", example = 7)),
    responses((status = 200, description = "As it stands", body = JobView, headers(("ETag" = String, description = "For If-Match"))), (status = 404, description = "`job_not_found`")))]
pub async fn show(State(engine): State<Arc<Engine>>, path: Id) -> Result<Response, Problem> {
    let id = read_id("job", path)?;
    let job = engine.jobs.get(id).ok_or(JobError::NotFound(id))?;
    job_response(&engine, &job)
}

/// `PATCH /v1/jobs/{id}`: another priority.
#[utoipa::path(patch, path = "/v1/jobs/{id}", operation_id = "changeJob", tag = "jobs", summary = "Give a job another priority",
    params(
        ("id" = u64, Path, description = "The job's id", example = 7),
        ("If-Match" = Option<String>, Header, description = "The ETag of the job that the client has seen")
    ),
    request_body = PriorityChange,
    responses(
        (status = 200, description = "The job", body = JobView, headers(("ETag" = String, description = "For If-Match"))),
        (status = 400, description = "`malformed_json`"),
        (status = 404, description = "`job_not_found`"),
        (status = 409, description = "`job_ended`, `part_of_campaign`"),
        (status = 412, description = "`precondition_failed`: the job has changed"),
        (status = 415, description = "`unsupported_media_type`"),
        (status = 422, description = "`invalid_request`: `errors` has each field at fault"),
        (status = 503, description = "`storage_full`, `store_failed`")
    ))]
pub async fn change(
    State(engine): State<Arc<Engine>>,
    path: Id,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
    max_body_bytes: usize,
) -> Result<Response, Problem> {
    let id = read_id("job", path)?;
    let priority = read_new_priority(&read_fields(&headers, body, max_body_bytes, "priority")?)?;
    blocking(move || {
        let named = |tag: &str| names(&headers, header::IF_MATCH, tag, false) != Some(false);
        let job = engine.set_priority(id, priority, Some(&named))?;
        job_response(&engine, &job)
    })
    .await?
}

/// `POST /v1/jobs/{id}/pause`: the job, put aside.
#[utoipa::path(post, path = "/v1/jobs/{id}/pause", operation_id = "pauseJob", tag = "jobs", summary = "Put a job aside",
    description = "It stays so across restarts; pausing twice is the same.",
    params(("id" = u64, Path, description = "The job's id", example = 7)),
    responses(
        (status = 200, description = "The job, paused", body = JobView, headers(("ETag" = String, description = "For If-Match"))),
        (status = 404, description = "`job_not_found`"),
        (status = 409, description = "`job_ended`, `job_state`, `part_of_campaign`"),
        (status = 503, description = "`storage_full`, `store_failed`")
    ))]
pub async fn pause(State(engine): State<Arc<Engine>>, path: Id) -> Result<Response, Problem> {
    let id = read_id("job", path)?;
    blocking(move || {
        let job = engine.pause(id)?;
        job_response(&engine, &job)
    })
    .await?
}

/// `POST /v1/jobs/{id}/resume`: the job, in the queue again.
#[utoipa::path(post, path = "/v1/jobs/{id}/resume", operation_id = "resumeJob", tag = "jobs", summary = "Put a paused or expired job into the queue again",
    description = "The limits of an expired job, or new ones, count from here.",
    params(("id" = u64, Path, description = "The job's id", example = 7)),
    request_body = Option<Resumption>,
    responses(
        (status = 200, description = "The job, queued", body = JobView, headers(("ETag" = String, description = "For If-Match"))),
        (status = 400, description = "`malformed_json`"),
        (status = 404, description = "`job_not_found`"),
        (status = 409, description = "`job_ended`, `job_state`, `part_of_campaign`"),
        (status = 415, description = "`unsupported_media_type`"),
        (status = 422, description = "`invalid_request`: `errors` has each field at fault"),
        (status = 503, description = "`storage_full`, `store_failed`")
    ))]
pub async fn resume(
    State(engine): State<Arc<Engine>>,
    path: Id,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
    max_body_bytes: usize,
) -> Result<Response, Problem> {
    let id = read_id("job", path)?;
    let limits = read_new_limits(&read_fields(&headers, body, max_body_bytes, "limits")?)?;
    blocking(move || {
        let job = engine.resume(id, limits)?;
        job_response(&engine, &job)
    })
    .await?
}

/// `POST /v1/jobs/{id}/cancel`: the job, cancelled.
#[utoipa::path(post, path = "/v1/jobs/{id}/cancel", operation_id = "cancelJob", tag = "jobs", summary = "Cancel a job",
    description = "It stops within a second; cancelling twice is the same.",
    params(("id" = u64, Path, description = "The job's id", example = 7)),
    responses(
        (status = 200, description = "The job, cancelled", body = JobView, headers(("ETag" = String, description = "For If-Match"))),
        (status = 404, description = "`job_not_found`"),
        (status = 409, description = "`job_ended`, `part_of_campaign`"),
        (status = 503, description = "`storage_full`, `store_failed`")
    ))]
pub async fn cancel(State(engine): State<Arc<Engine>>, path: Id) -> Result<Response, Problem> {
    let id = read_id("job", path)?;
    blocking(move || {
        let job = engine.cancel(id)?;
        job_response(&engine, &job)
    })
    .await?
}

/// `GET /v1/jobs`: oldest first, or newest first; `next` is the cursor of the following page.
#[utoipa::path(get, path = "/v1/jobs", operation_id = "listJobs", tag = "jobs", summary = "Jobs",
    params(
        ("state" = Option<JobState>, Query, description = "Only jobs in this state"),
        ("label" = Option<String>, Query, description = "Only jobs with this label"),
        ("campaign" = Option<u64>, Query, description = "Only jobs of this campaign"),
        ("order" = Option<Order>, Query, description = "Oldest first, if left out"),
        ("limit" = Option<usize>, Query, description = "Jobs a page; 50 if left out", minimum = 1, maximum = 500),
        ("cursor" = Option<String>, Query, description = "The `next` of an earlier page", pattern = "^[0-9]{1,19}$")
    ),
    responses(
        (status = 200, description = "A page of jobs", body = JobPage),
        (status = 400, description = "`malformed_query`"),
        (status = 422, description = "`invalid_request`: `errors` has each parameter at fault")
    ))]
pub async fn list(State(engine): State<Arc<Engine>>, query: Pairs) -> Result<Response, Problem> {
    let Query(pairs) = query.map_err(|rejection| Problem::new(StatusCode::BAD_REQUEST, "malformed_query", rejection.body_text()))?;
    let (mut state, mut label, mut campaign, mut limit, mut cursor, mut newest) = (None, None, None, PAGE.0, None, false);
    for (name, value) in read_query(&pairs, &["state", "label", "campaign", "limit", "cursor", "order"])? {
        let error = |expected: String| {
            Problem::invalid(vec![FieldError::new(format!("/{name}"), format!("{name} {value:?} is not valid: expected {expected}"))])
        };
        match name {
            "state" => {
                let known = JobState::ALL.into_iter().find(|known| known.name() == value);
                state = Some(known.ok_or_else(|| error(JobState::ALL.map(JobState::name).join(", ")))?);
            }
            "label" => label = Some(value),
            "campaign" => campaign = Some(value.parse().map_err(|_| error("the number of a campaign".to_owned()))?),
            "order" => {
                newest = match value {
                    "oldest" => false,
                    "newest" => true,
                    _ => return Err(error("oldest or newest".to_owned())),
                };
            }
            "limit" => {
                let number = value.parse().ok().filter(|number| (1..=PAGE.1).contains(number));
                limit = number.ok_or_else(|| error(format!("a whole number from 1 to {}", PAGE.1)))?;
            }
            _ => cursor = Some(value.parse().map_err(|_| error("the `next` of an earlier page".to_owned()))?),
        }
    }
    let keep = |job: &Job| {
        state.is_none_or(|state| job.data.state == state)
            && label.is_none_or(|label| job.request.label.as_deref() == Some(label))
            && campaign.is_none_or(|campaign| job.data.campaign == Some(campaign))
    };
    let range = match (newest, cursor) {
        (false, after) => after.map_or(0, |after: u64| after.saturating_add(1))..u64::MAX,
        (true, before) => 0..before.unwrap_or(u64::MAX),
    };
    let mut jobs = engine.jobs.list(range, newest, limit + 1, keep);
    let more = jobs.len() > limit;
    jobs.truncate(limit);
    let next = jobs.last().filter(|_| more).map(|job| job.id.to_string());
    let queue = engine.jobs.queue();
    let jobs: Vec<Value> = jobs.iter().map(|job| job_json(&engine, job, &queue)).collect::<Result<_, _>>()?;
    Ok(Json(json!({"jobs": jobs, "next": next})).into_response())
}

//! `/v1/jobs`.

use super::problem::Problem;
use super::{blocking, read_query};
use crate::engine::Engine;
use crate::jobs::{Job, JobError, JobView, State as JobState};
use crate::position::FieldError;
use crate::request::{JobRequest, JobSubmission};
use crate::schema::JobPage;
use crate::strict_json::StrictJson;
use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::sync::Arc;

/// Jobs a page, unless asked otherwise, and at most.
const PAGE: (usize, usize) = (50, 500);

/// Longest `Idempotency-Key`, in characters.
const MAX_KEY: usize = 255;

type Pairs = Result<Query<Vec<(String, String)>>, QueryRejection>;

fn job_json(engine: &Engine, job: &Job, queue: &[u64]) -> Result<Value, Problem> {
    let live = if job.data.state == JobState::Running { engine.live(job.id) } else { None };
    serde_json::to_value(job.view(queue, live.as_ref())).map_err(|error| Problem::internal(&error))
}

/// `POST /v1/jobs`: 202 with the job, new or joined.
#[utoipa::path(post, path = "/v1/jobs", operation_id = "submitJob", tag = "jobs", summary = "Submit a job",
    description = "An open job that asks the same, but for the priority, is joined.",
    params(("Idempotency-Key" = Option<String>, Header, description = "The same request with the same key is the same job, even an ended one",
        min_length = 1, max_length = 255, pattern = "^[ -~]*$")),
    request_body = JobSubmission,
    responses(
        (status = 202, description = "The job, new or joined", body = JobView, headers(("Location" = String, description = "Its path"))),
        (status = 400, description = "`malformed_json`, `invalid_idempotency_key`"),
        (status = 415, description = "`unsupported_media_type`"),
        (status = 422, description = "`invalid_request`: `errors` has each field at fault, `idempotency_key_reused`"),
        (status = 503, description = "`queue_full`, `draining`, `store_failed`")
    ))]
pub async fn submit(
    State(engine): State<Arc<Engine>>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
    max_body_bytes: usize,
) -> Result<Response, Problem> {
    let body = read_body(&headers, body, max_body_bytes)?;
    let key = read_key(&headers)?;
    let (job, json) = blocking(move || -> Result<_, Problem> {
        let request = JobRequest::from_json(&body).map_err(Problem::invalid)?;
        let job = engine.jobs.submit(request, key)?;
        tracing::debug!(job = job.id, "accepted");
        let json = job_json(&engine, &job, &engine.jobs.queue())?;
        Ok((job, json))
    })
    .await??;
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, format!("/v1/jobs/{}", job.id))], Json(json)).into_response())
}

fn read_body(headers: &HeaderMap, body: Result<Bytes, BytesRejection>, max_body_bytes: usize) -> Result<Value, Problem> {
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

fn read_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
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

fn read_id(path: Result<Path<String>, PathRejection>) -> Result<u64, Problem> {
    let text = path.map(|Path(text)| text);
    let text = text.map_err(|rejection| {
        Problem::new(StatusCode::NOT_FOUND, "job_not_found", format!("there is no such job: {}", rejection.body_text()))
    })?;
    text.parse()
        .map_err(|_| Problem::new(StatusCode::NOT_FOUND, "job_not_found", format!("there is no job {text:?}: job ids are whole numbers")))
}

/// `GET /v1/jobs/{id}`.
#[utoipa::path(get, path = "/v1/jobs/{id}", operation_id = "showJob", tag = "jobs", summary = "A job",
    params(("id" = u64, Path, description = "The job's id", example = 7)),
    responses((status = 200, description = "As it stands", body = JobView), (status = 404, description = "`job_not_found`")))]
pub async fn show(State(engine): State<Arc<Engine>>, path: Result<Path<String>, PathRejection>) -> Result<Response, Problem> {
    let id = read_id(path)?;
    let job = engine.jobs.get(id).ok_or(JobError::NotFound(id))?;
    Ok(Json(job_json(&engine, &job, &engine.jobs.queue())?).into_response())
}

/// `POST /v1/jobs/{id}/cancel`: the job, cancelled.
#[utoipa::path(post, path = "/v1/jobs/{id}/cancel", operation_id = "cancelJob", tag = "jobs", summary = "Cancel a job",
    description = "It stops within a second; cancelling twice is the same.",
    params(("id" = u64, Path, description = "The job's id", example = 7)),
    responses(
        (status = 200, description = "The job, cancelled", body = JobView),
        (status = 404, description = "`job_not_found`"),
        (status = 409, description = "`job_ended`"),
        (status = 503, description = "`store_failed`")
    ))]
pub async fn cancel(State(engine): State<Arc<Engine>>, path: Result<Path<String>, PathRejection>) -> Result<Response, Problem> {
    let id = read_id(path)?;
    let json = blocking(move || -> Result<_, Problem> {
        let job = engine.cancel(id)?;
        job_json(&engine, &job, &engine.jobs.queue())
    })
    .await??;
    Ok(Json(json).into_response())
}

/// `GET /v1/jobs`: oldest first; `next` is the cursor of the following page.
#[utoipa::path(get, path = "/v1/jobs", operation_id = "listJobs", tag = "jobs", summary = "Jobs, oldest first",
    params(
        ("state" = Option<JobState>, Query, description = "Only jobs in this state"),
        ("label" = Option<String>, Query, description = "Only jobs with this label"),
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
    let (mut state, mut label, mut limit, mut after) = (None, None, PAGE.0, 0);
    for (name, value) in read_query(&pairs, &["state", "label", "limit", "cursor"])? {
        let error = |expected: String| {
            Problem::invalid(vec![FieldError::new(format!("/{name}"), format!("{name} {value:?} is not valid: expected {expected}"))])
        };
        match name {
            "state" => {
                let known = JobState::ALL.into_iter().find(|known| known.name() == value);
                state = Some(known.ok_or_else(|| error(JobState::ALL.map(JobState::name).join(", ")))?);
            }
            "label" => label = Some(value),
            "limit" => {
                let number = value.parse().ok().filter(|number| (1..=PAGE.1).contains(number));
                limit = number.ok_or_else(|| error(format!("a whole number from 1 to {}", PAGE.1)))?;
            }
            _ => after = value.parse().map_err(|_| error("the `next` of an earlier page".to_owned()))?,
        }
    }
    let keep = |job: &Job| {
        state.is_none_or(|state| job.data.state == state) && label.is_none_or(|label| job.request.label.as_deref() == Some(label))
    };
    let mut jobs = engine.jobs.list(after, limit + 1, keep);
    let more = jobs.len() > limit;
    jobs.truncate(limit);
    let next = jobs.last().filter(|_| more).map(|job| job.id.to_string());
    let queue = engine.jobs.queue();
    let jobs: Vec<Value> = jobs.iter().map(|job| job_json(&engine, job, &queue)).collect::<Result<_, _>>()?;
    Ok(Json(json!({"jobs": jobs, "next": next})).into_response())
}

//! Streams of events: server-sent events, or a line of JSON each.
//!
//! A stream is read from the ring as the client takes it, so a client that is slow or gone holds up nobody and costs nothing.

use super::blocking;
use super::jobs::{Id, job_json, read_id};
use super::problem::Problem;
use crate::engine::Engine;
use crate::events::{Event, Place, Scope};
use crate::jobs::JobError;
use crate::schema::EventLine;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How often a stream says that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Events read from the ring at a time.
const BATCH: usize = 64;

/// `GET /v1/events`: everything from now on, or from `Last-Event-ID`.
#[utoipa::path(get, path = "/v1/events", operation_id = "watch", tag = "jobs", summary = "What happens to all jobs and campaigns",
    description = "Server-sent events; with Accept: application/x-ndjson a line of JSON each. A comment or an empty line every 15 s says that \
                   the stream is alive. `draining` ends every stream when the daemon stops.",
    params(("Last-Event-ID" = Option<String>, Header, description = "The id of the last event seen: the stream goes on after it")),
    responses(
        (status = 200, description = "Events, as they happen", content((String = "text/event-stream"), (EventLine = "application/x-ndjson"))),
        (status = 503, description = "`too_many_streams`")
    ))]
pub async fn of_all(State(engine): State<Arc<Engine>>, headers: HeaderMap) -> Result<Response, Problem> {
    stream(engine, Scope::All, &headers).await
}

/// `GET /v1/jobs/{id}/events`: the job as it stands and what happens to it, until it has ended.
#[utoipa::path(get, path = "/v1/jobs/{id}/events", operation_id = "watchJob", tag = "jobs", summary = "What happens to a job, until it has ended",
    description = "Server-sent events; with Accept: application/x-ndjson a line of JSON each. A comment or an empty line every 15 s says that \
                   the stream is alive. `draining` ends every stream when the daemon stops.",
    params(
        ("id" = u64, Path, description = "The job's id", example = 7),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event seen: the stream goes on after it")),
    responses(
        (status = 200, description = "Events, as they happen", content((String = "text/event-stream"), (EventLine = "application/x-ndjson"))),
        (status = 204, description = "The job has ended, and the client has seen all of it"),
        (status = 404, description = "`job_not_found`"),
        (status = 503, description = "`too_many_streams`")
    ))]
pub async fn of_job(State(engine): State<Arc<Engine>>, path: Id, headers: HeaderMap) -> Result<Response, Problem> {
    let id = read_id("job", path)?;
    engine.jobs.get(id).ok_or(JobError::NotFound(id))?;
    stream(engine, Scope::Job(id), &headers).await
}

/// `GET /v1/campaigns/{id}/events`: the campaign as it stands, and what happens to it and its jobs.
#[utoipa::path(get, path = "/v1/campaigns/{id}/events", operation_id = "watchCampaign", tag = "campaigns", summary = "What happens to a campaign and its jobs",
    description = "Server-sent events; with Accept: application/x-ndjson a line of JSON each. A comment or an empty line every 15 s says that \
                   the stream is alive. `draining` ends every stream when the daemon stops.",
    params(
        ("id" = u64, Path, description = "The campaign's id", example = 1),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event seen: the stream goes on after it")),
    responses(
        (status = 200, description = "Events, as they happen", content((String = "text/event-stream"), (EventLine = "application/x-ndjson"))),
        (status = 404, description = "`campaign_not_found`"),
        (status = 503, description = "`too_many_streams`")
    ))]
pub async fn of_campaign(State(engine): State<Arc<Engine>>, path: Id, headers: HeaderMap) -> Result<Response, Problem> {
    let id = read_id("campaign", path)?;
    engine.jobs.campaign(id)?;
    stream(engine, Scope::Campaign(id), &headers).await
}

struct Stream {
    engine: Arc<Engine>,
    scope: Scope,
    as_lines: bool,
    /// The number of the last event that was taken from the ring; none before the snapshot.
    cursor: Option<u64>,
    ready: VecDeque<String>,
    is_over: bool,
    newest: watch::Receiver<u64>,
    closed: watch::Receiver<bool>,
    _place: Place,
}

async fn stream(engine: Arc<Engine>, scope: Scope, headers: &HeaderMap) -> Result<Response, Problem> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let as_lines = text("accept").split(',').any(|kind| kind.trim().starts_with("application/x-ndjson"));
    let events = &engine.jobs.events;
    let Some(place) = events.place() else {
        return Err(Problem::unavailable(
            "too_many_streams",
            "too many event streams are open: close some, or ask for the state instead",
            10,
        ));
    };
    // An id of another run, or one that is no longer kept, is answered by a snapshot.
    let cursor = events.number(text("last-event-id")).filter(|&cursor| events.since(cursor, scope, 1).is_some());
    if let (Some(cursor), Scope::Job(id)) = (cursor, scope)
        && engine.jobs.get(id).is_some_and(|job| !job.data.state.is_open())
        && events.since(cursor, scope, 1).is_some_and(|(missed, _)| missed.is_empty())
    {
        // This tells a browser not to come back.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let (newest, closed) = (events.wake(), events.closed());
    let mut ready = VecDeque::new();
    if !as_lines {
        ready.push_back("retry: 3000\n\n".to_owned());
    }
    let stream = Stream { engine: engine.clone(), scope, as_lines, cursor, ready, is_over: false, newest, closed, _place: place };
    let frames = futures_util::stream::unfold(stream, |mut stream| async move {
        let frame = stream.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(frame)), stream))
    });
    let kind = if as_lines { "application/x-ndjson" } else { "text/event-stream" };
    let headers = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-store"), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];
    Ok((headers, Body::from_stream(frames)).into_response())
}

impl Stream {
    /// The next piece of the answer.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Some(frame);
            }
            if self.is_over {
                return None;
            }
            // What comes after the look at the ring wakes this again.
            self.newest.mark_unchanged();
            self.collect().await;
            if !self.ready.is_empty() || self.is_over {
                continue;
            }
            let is_closed = tokio::select! {
                _ = self.newest.changed() => false,
                _ = self.closed.wait_for(|closed| *closed) => true,
                () = tokio::time::sleep(HEARTBEAT) => return Some(if self.as_lines { "\n" } else { ": alive\n\n" }.to_owned()),
            };
            if is_closed {
                let newest = self.engine.jobs.events.newest();
                self.push(newest, "draining", "{}");
                self.is_over = true;
            }
        }
    }

    fn push(&mut self, number: u64, name: &str, data: &str) {
        let id = self.engine.jobs.events.id(number);
        self.ready.push_back(if self.as_lines {
            format!("{{\"id\":\"{id}\",\"event\":\"{name}\",\"data\":{data}}}\n")
        } else {
            format!("id: {id}\nevent: {name}\ndata: {data}\n\n")
        });
    }

    async fn collect(&mut self) {
        let events = self.engine.jobs.events.clone();
        let found = self.cursor.and_then(|cursor| events.since(cursor, self.scope, BATCH));
        let Some((found, reached)) = found else { return self.snapshot().await };
        self.cursor = Some(reached);
        for Event { number, name, data, .. } in found {
            self.push(number, name, &data);
            if name == "result" && matches!(self.scope, Scope::Job(_)) {
                self.is_over = true;
            }
        }
    }

    /// How things stand, for a stream that begins or has fallen behind. What happens meanwhile is told afterwards, at worst twice.
    async fn snapshot(&mut self) {
        let fell_behind = self.cursor.is_some();
        let newest = self.engine.jobs.events.newest();
        self.cursor = Some(newest);
        let (engine, scope) = (self.engine.clone(), self.scope);
        let seen = blocking(move || match scope {
            Scope::All => None,
            Scope::Job(id) => {
                let job = engine.jobs.get(id)?;
                Some((job_json(&engine, &job, &engine.jobs.queue()).ok()?, !job.data.state.is_open()))
            }
            Scope::Campaign(id) => Some((engine.jobs.campaign_view(id, None)?, false)),
        });
        match (seen.await, scope) {
            // A client that watches everything reads anew what it shows.
            (_, Scope::All) => {
                if fell_behind {
                    self.push(newest, "reset", "{}");
                }
            }
            (Ok(Some((view, has_ended))), _) => {
                let view: String = Value::to_string(&view);
                self.push(newest, if matches!(scope, Scope::Job(_)) { "state" } else { "campaign" }, &view);
                if has_ended {
                    self.push(newest, "result", &view);
                    self.is_over = true;
                }
            }
            _ => self.is_over = true,
        }
    }
}

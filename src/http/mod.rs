//! The HTTP API: routes, and what is common to all of them.

mod backup;
mod campaigns;
mod events;
mod jobs;
mod page;
mod positions;
mod problem;
mod proofs;

use crate::engine::Engine;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use problem::Problem;
use prometheus::IntGauge;
use serde_json::json;
use std::any::Any;
use std::sync::Arc;
use std::time::Instant;
use tower_http::catch_panic::CatchPanicLayer;

/// How much of a body that is too large is still read: a client that is cut off while it sends does not see the answer.
const OVERSHOOT_BYTES: usize = 16 << 20;

/// All routes; requests with a body past `max_body_bytes` are refused.
pub fn router(engine: Arc<Engine>, max_body_bytes: usize) -> Router {
    let look_up = move |state, headers, body| positions::show_posted(state, headers, body, max_body_bytes);
    let batch = move |state, headers, body| positions::batch(state, headers, body, max_body_bytes);
    let submit = move |state, headers, body| jobs::submit(state, headers, body, max_body_bytes);
    let change_job = move |state, path, headers, body| jobs::change(state, path, headers, body, max_body_bytes);
    let resume_job = move |state, path, headers, body| jobs::resume(state, path, headers, body, max_body_bytes);
    let submit_campaign = move |state, headers, body| campaigns::submit(state, headers, body, max_body_bytes);
    let change_campaign = move |state, path, headers, body| campaigns::change(state, path, headers, body, max_body_bytes);
    let resume_campaign = move |state, path, headers, body| campaigns::resume(state, path, headers, body, max_body_bytes);
    Router::new()
        .route("/", get(page::index))
        .route("/page/{file}", get(page::file))
        .route("/v1/jobs", post(submit).get(jobs::list))
        .route("/v1/jobs/{id}", get(jobs::show).patch(change_job))
        .route("/v1/jobs/{id}/cancel", post(jobs::cancel))
        .route("/v1/jobs/{id}/pause", post(jobs::pause))
        .route("/v1/jobs/{id}/resume", post(resume_job))
        .route("/v1/jobs/{id}/events", get(events::of_job))
        .route("/v1/events", get(events::of_all))
        .route("/v1/campaigns", post(submit_campaign).get(campaigns::list))
        .route("/v1/campaigns/{id}", get(campaigns::show).patch(change_campaign))
        .route("/v1/campaigns/{id}/cancel", post(campaigns::cancel))
        .route("/v1/campaigns/{id}/pause", post(campaigns::pause))
        .route("/v1/campaigns/{id}/resume", post(resume_campaign))
        .route("/v1/campaigns/{id}/events", get(events::of_campaign))
        .route("/v1/positions", get(positions::show))
        .route("/v1/proofs/{id}", get(proofs::show))
        .route("/v1/proofs/{id}/certificate", get(proofs::certificate))
        .route("/v1/proofs/{id}/verifications", post(proofs::verify))
        .route("/v1/positions", post(look_up))
        .route("/v1/positions:batch", post(batch))
        .route("/v1/admin/checkpoint", post(checkpoint))
        .route("/v1/admin/backup", post(move |state, headers, body| backup::create(state, headers, body, max_body_bytes)))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .fallback(|uri: Uri| async move { Problem::no_route(uri.path()) })
        .method_not_allowed_fallback(|method: Method, uri: Uri| async move {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", format!("{} does not take {method}", uri.path()))
        })
        .layer(DefaultBodyLimit::max(max_body_bytes + OVERSHOOT_BYTES))
        .layer(CatchPanicLayer::custom(|_: Box<dyn Any + Send>| Problem::internal(&"a handler panicked").into_response()))
        .layer(axum::middleware::from_fn(same_origin))
        .layer(axum::middleware::from_fn_with_state(engine.clone(), observe))
        .with_state(engine)
}

/// Counts and times every request under its route's name.
async fn observe(State(engine): State<Arc<Engine>>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let in_flight = InFlight::of(&engine.metrics.http_in_flight);
    let response = next.run(request).await;
    drop(in_flight);
    let route = route.as_deref().unwrap_or("unmatched");
    engine.metrics.http(method.as_str(), route, response.status().as_u16(), started.elapsed());
    response
}

/// One in a gauge for as long as it lives: a client that goes away ends a handler in the middle.
struct InFlight(IntGauge);

impl InFlight {
    fn of(gauge: &IntGauge) -> InFlight {
        gauge.inc();
        InFlight(gauge.clone())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Refuses changes that a web page of another origin sends through a browser on this machine: some need no permission to be sent.
async fn same_origin(request: Request, next: Next) -> Response {
    match foreign_origin(&request) {
        Some(origin) => {
            let detail = format!("Origin {origin:?} is not this server: expected its own address, or no Origin at all");
            Problem::new(StatusCode::FORBIDDEN, "cross_origin", detail).into_response()
        }
        None => next.run(request).await,
    }
}

fn foreign_origin(request: &Request) -> Option<String> {
    let header = |name| request.headers().get(name).map(|value| value.to_str().unwrap_or_default());
    let is_ours = |origin: &str| origin.split_once("://").map(|(_, host)| host) == header(header::HOST);
    header(header::ORIGIN).filter(|origin| !request.method().is_safe() && !is_ours(origin)).map(str::to_owned)
}

/// Runs what may wait for the disk or a lock outside the async threads.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Problem::internal(&error))
}

/// The query as names and values; refuses unknown and repeated names.
fn read_query<'a>(pairs: &'a [(String, String)], known: &[&str]) -> Result<Vec<(&'a str, &'a str)>, Problem> {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (name, value) in pairs {
        let pointer = format!("/{}", crate::position::escape(name));
        if !known.contains(&name.as_str()) {
            let detail = format!("unknown query parameter {name:?}: expected {}", known.join(", "));
            return Err(Problem::invalid(vec![crate::position::FieldError::new(pointer, detail)]));
        }
        if seen.iter().any(|(other, _)| other == name) {
            let detail = format!("query parameter {name:?} is given twice");
            return Err(Problem::invalid(vec![crate::position::FieldError::new(pointer, detail)]));
        }
        seen.push((name, value));
    }
    Ok(seen)
}

/// Whether a header of entity tags names `tag`, or any; `None` without the header. A weak tag may stand for the strong one if `weakly`.
fn names(headers: &HeaderMap, name: HeaderName, tag: &str, weakly: bool) -> Option<bool> {
    let mut values = headers.get_all(name).iter().peekable();
    values.peek()?;
    let tags = |value: &axum::http::HeaderValue| {
        let text = value.to_str().unwrap_or_default().trim();
        let strong = |one: &str| one.strip_prefix("W/").filter(|_| weakly).unwrap_or(one) == tag;
        text == "*" || text.split(',').any(|one| strong(one.trim()))
    };
    Some(values.any(tags))
}

async fn healthz() -> Response {
    Json(json!({"status": "alive", "version": env!("CARGO_PKG_VERSION")})).into_response()
}

async fn readyz(State(engine): State<Arc<Engine>>) -> Response {
    let reasons = engine.unready();
    if reasons.is_empty() {
        Json(json!({"status": "ready"})).into_response()
    } else {
        Problem::unavailable("not_ready", reasons.join("; "), 5).into_response()
    }
}

async fn metrics(State(engine): State<Arc<Engine>>) -> Result<Response, Problem> {
    let text = blocking(move || engine.metrics.render(&engine)).await?.map_err(|error| Problem::internal(&error))?;
    Ok(([(header::CONTENT_TYPE, prometheus::TEXT_FORMAT)], text).into_response())
}

async fn checkpoint(State(engine): State<Arc<Engine>>) -> Result<Response, Problem> {
    let report = blocking(move || engine.checkpoint()).await?.map_err(|error| Problem::unavailable("store_failed", error, 30))?;
    Ok(match report {
        Some(report) => Json(json!({
            "sequence": report.sequence.to_string(),
            "lemmas": report.lemmas.to_string(),
            "numbers": report.numbers.to_string(),
            "checkpoint_bytes": report.bytes.to_string(),
            "elapsed_seconds": report.seconds,
        }))
        .into_response(),
        // No table is in use, so nothing has been proved since the start.
        None => {
            Json(json!({"sequence": null, "lemmas": "0", "numbers": "0", "checkpoint_bytes": "0", "elapsed_seconds": 0.0})).into_response()
        }
    })
}

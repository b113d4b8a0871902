//! The HTTP API: routes, and what is common to all of them.

mod access;
mod backup;
mod campaigns;
mod events;
mod jobs;
mod openapi;
mod page;
mod positions;
mod problem;
mod proofs;
mod serve;

use crate::access::Access;
use crate::config::Settings;
use crate::engine::Engine;
use crate::schema::{Checkpoint, Health, Ready};
use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use problem::Problem;
use prometheus::IntGauge;
use serde_json::json;
use std::any::Any;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant, SystemTime};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::CorsLayer;
use tracing::Instrument;

pub use openapi::document;
pub use serve::serve;

/// All routes, which `openapi.rs` describes; requests with a body past `max_body_bytes` are refused.
pub fn router(engine: Arc<Engine>, settings: &Settings) -> Router {
    let max_body_bytes = settings.max_body_bytes;
    let body_limits = access::BodyLimits { bytes: max_body_bytes, time: settings.request_timeout };
    let look_up = move |state, headers, body| positions::show_posted(state, headers, body, max_body_bytes);
    let batch = move |state, headers, body| positions::batch(state, headers, body, max_body_bytes);
    let submit = move |state, headers, body| jobs::submit(state, headers, body, max_body_bytes);
    let change_job = move |state, path, headers, body| jobs::change(state, path, headers, body, max_body_bytes);
    let resume_job = move |state, path, headers, body| jobs::resume(state, path, headers, body, max_body_bytes);
    let submit_campaign = move |state, headers, body| campaigns::submit(state, headers, body, max_body_bytes);
    let change_campaign = move |state, path, headers, body| campaigns::change(state, path, headers, body, max_body_bytes);
    let resume_campaign = move |state, path, headers, body| campaigns::resume(state, path, headers, body, max_body_bytes);
    let router = Router::new()
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
        .route("/v1/openapi.json", get(openapi::description))
        .route("/v1/docs", get(openapi::page))
        .route("/v1/docs.js", get(openapi::script))
        .route("/v1/docs.css", get(openapi::style))
        .fallback(|uri: Uri| async move { Problem::no_route(uri.path()) })
        .method_not_allowed_fallback(|method: Method, uri: Uri| async move {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", format!("{} does not take {method}", uri.path()))
        })
        .layer(DefaultBodyLimit::disable())
        .layer(axum::middleware::from_fn_with_state(body_limits, access::whole_body))
        .layer(axum::middleware::from_fn_with_state((settings.cors_origins.clone(), settings.access.clone()), our_pages))
        .layer(axum::middleware::from_fn_with_state(settings.access.clone(), access::guard))
        .layer(CatchPanicLayer::custom(|_: Box<dyn Any + Send>| Problem::internal(&"a handler panicked").into_response()));
    // Without any origin nothing is allowed, and OPTIONS is answered like any method that a route does not take.
    let router = if settings.cors_origins.is_empty() { router } else { router.layer(cors(&settings.cors_origins)) };
    router.layer(axum::middleware::from_fn_with_state(engine.clone(), observe)).with_state(engine)
}

/// What pages of the configured origins may ask for, and see of an answer.
fn cors(origins: &[HeaderValue]) -> CorsLayer {
    let requests =
        ["authorization", "content-type", "idempotency-key", "if-match", "if-none-match", "last-event-id", "range", "x-request-id"];
    let answers = ["etag", "link", "location", "ratelimit", "ratelimit-policy", "retry-after", "www-authenticate", "x-request-id"];
    CorsLayer::new()
        .allow_origin(origins.to_vec())
        .allow_methods([Method::GET, Method::POST, Method::PATCH])
        .allow_headers(requests.map(HeaderName::from_static))
        .expose_headers(answers.map(HeaderName::from_static))
        .max_age(Duration::from_secs(3600))
}

tokio::task_local! {
    static REQUEST_ID: String;
}

/// The id of the request being answered.
fn request_id() -> Option<String> {
    REQUEST_ID.try_with(String::clone).ok()
}

/// The client's own `X-Request-Id` where that is harmless in a log, else a new one that no other run of the daemon gives.
fn choose_id(request: &Request) -> String {
    static RUN: LazyLock<u64> =
        LazyLock::new(|| SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_micros() as u64));
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let is_sane = |id: &&str| (1..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    let given = request.headers().get(X_REQUEST_ID).and_then(|id| id.to_str().ok()).filter(is_sane);
    given.map_or_else(|| format!("{:x}-{}", *RUN, NEXT.fetch_add(1, Relaxed)), str::to_owned)
}

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Names every request, and counts and times it under its route's name.
async fn observe(State(engine): State<Arc<Engine>>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let in_flight = InFlight::of(&engine.metrics.http_in_flight);
    let route = route.as_deref().unwrap_or("unmatched");
    let id = choose_id(&request);
    let header = HeaderValue::from_str(&id);
    let span = tracing::error_span!("request", id, %method, route);
    let mut response = REQUEST_ID.scope(id, next.run(request)).instrument(span.clone()).await;
    drop(in_flight);
    let (status, elapsed) = (response.status().as_u16(), started.elapsed());
    engine.metrics.http(method.as_str(), route, status, elapsed);
    span.in_scope(|| tracing::debug!(status, elapsed_seconds = elapsed.as_secs_f64(), "answered"));
    if let Ok(header) = header {
        response.headers_mut().insert(X_REQUEST_ID, header);
    }
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

/// Refuses what a web page that is neither this server's nor configured sends through a browser on this machine: changes, some of which
/// need no permission to be sent; and everything where the page has had its own host name resolved to this machine ("DNS rebinding"), which
/// makes it one of this server's as far as the browser can tell. Where tokens are asked for, such a page has none.
async fn our_pages(State((others, access)): State<(Arc<[HeaderValue]>, Access)>, request: Request, next: Next) -> Response {
    match foreign(&request, &others, access.tokens.are_asked_for()) {
        Some(problem) => problem.into_response(),
        None => next.run(request).await,
    }
}

/// What [`our_pages`] has against a request.
fn foreign(request: &Request, others: &[HeaderValue], has_tokens: bool) -> Option<Problem> {
    let header = |name| request.headers().get(name).map(|value| value.to_str().unwrap_or_default());
    let host = header(header::HOST);
    let is_known = |host: &str| is_local(host) || others.iter().any(|origin| host_of(origin) == Some(host));
    if let Some(host) = host.filter(|host| !has_tokens && !is_known(host)) {
        let detail = format!(
            "Host {host:?} is none of this server's names: expected an address, localhost, or the host of one of cors_origins; a server with tokens \
             (tokens_file) may have any name"
        );
        return Some(Problem::new(StatusCode::MISDIRECTED_REQUEST, "unknown_host", detail));
    }
    let is_ours = |origin: &str| origin.split_once("://").map(|(_, host)| host) == host || others.iter().any(|other| other == origin);
    let origin = header(header::ORIGIN).filter(|origin| !request.method().is_safe() && !is_ours(origin))?;
    let detail = format!("Origin {origin:?} is not this server: expected its own address, one of cors_origins, or no Origin at all");
    Some(Problem::new(StatusCode::FORBIDDEN, "cross_origin", detail))
}

fn host_of(origin: &HeaderValue) -> Option<&str> {
    origin.to_str().ok()?.split_once("://").map(|(_, host)| host)
}

/// Whether a Host is an address or a name that no name server is asked for.
fn is_local(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host().to_ascii_lowercase();
    let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(&name);
    name == "localhost" || name.ends_with(".localhost") || address.parse::<IpAddr>().is_ok()
}

/// Runs what may wait for the disk or a lock outside the async threads.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
    let span = tracing::Span::current();
    tokio::task::spawn_blocking(move || span.in_scope(work)).await.map_err(|error| Problem::internal(&error))
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

#[utoipa::path(get, path = "/healthz", operation_id = "health", tag = "daemon", summary = "Whether the daemon is alive",
    responses((status = 200, description = "It is", body = Health)))]
async fn healthz() -> Response {
    Json(json!({"status": "alive", "version": env!("CARGO_PKG_VERSION")})).into_response()
}

#[utoipa::path(get, path = "/readyz", operation_id = "readiness", tag = "daemon", summary = "Whether the daemon takes jobs",
    responses((status = 200, description = "It does", body = Ready), (status = 503, description = "`not_ready`: the detail says why")))]
async fn readyz(State(engine): State<Arc<Engine>>) -> Response {
    let reasons = engine.unready();
    if reasons.is_empty() {
        Json(json!({"status": "ready"})).into_response()
    } else {
        Problem::unavailable("not_ready", reasons.join("; "), 5).into_response()
    }
}

#[utoipa::path(get, path = "/metrics", operation_id = "metrics", tag = "daemon", summary = "Metrics for Prometheus",
    responses((status = 200, description = "The text format of Prometheus", content_type = "text/plain", body = String)))]
async fn metrics(State(engine): State<Arc<Engine>>) -> Result<Response, Problem> {
    let text = blocking(move || engine.metrics.render(&engine)).await?.map_err(|error| Problem::internal(&error))?;
    Ok(([(header::CONTENT_TYPE, prometheus::TEXT_FORMAT)], text).into_response())
}

#[utoipa::path(post, path = "/v1/admin/checkpoint", operation_id = "checkpoint", tag = "daemon", summary = "Checkpoint now",
    responses((status = 200, description = "It is on disk", body = Checkpoint), (status = 503, description = "`store_failed`")))]
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

#[cfg(test)]
mod tests {
    use super::is_local;

    #[test]
    fn names_that_a_name_server_is_asked_for_are_not_local() {
        for host in ["localhost", "LOCALHOST:80", "a.localhost:7465", "127.0.0.1", "127.0.0.1:7465", "[::1]:7465", "[::1]", "192.0.2.1:1"] {
            assert!(is_local(host), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:7465",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "xlocalhost",
            "",
            "::1",
            "a b",
            "127.0.0.1@evil.example",
        ] {
            assert!(!is_local(host), "{host}");
        }
    }
}

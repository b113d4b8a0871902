//! What every request passes before its handler: tokens, rate limits, the deadline for its body.

use super::problem::Problem;
use crate::access::{Access, Allowance, Class, Client, Refusal, Scope};
use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use std::net::SocketAddr;
use std::time::Duration;

/// How much of a body that is too large is still read.
const OVERSHOOT_BYTES: usize = 16 << 20;

/// The address that a request comes from.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

/// What a route needs and costs; `None` is open to all. Routes that are not named here are judged by method and path, so that a new one
/// is never more open than it should be.
pub fn rule(method: &Method, path: &str) -> Option<(Scope, Class)> {
    let is_api = path.starts_with("/v1/") || path == "/metrics";
    // The description of the API, and the pages: a browser that opens a page sends no token.
    let is_description = path == "/v1/openapi.json" || ["/v1/docs", "/v1/docs.js", "/v1/docs.css"].contains(&path);
    if !is_api || is_description {
        return None;
    }
    Some(match path {
        path if path.starts_with("/v1/admin/") => (Scope::Admin, Class::Admin),
        "/v1/proofs/{id}/certificate" => (Scope::Read, Class::Certificate),
        "/v1/proofs/{id}/verifications" => (Scope::Submit, Class::Certificate),
        // Look-ups whose position does not fit a query.
        path if path.starts_with("/v1/positions") => (Scope::Read, Class::LookUp),
        _ if method.is_safe() => (Scope::Read, Class::LookUp),
        _ => (Scope::Submit, Class::Submit),
    })
}

/// Refuses what the caller may not do, or does too often.
pub async fn guard(State(access): State<Access>, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map_or(request.uri().path(), MatchedPath::as_str);
    let Some((scope, class)) = rule(request.method(), path) else { return next.run(request).await };
    let (name, verdict) = match bearer(request.headers()) {
        Ok(secret) => access.tokens.judge(secret, scope),
        Err(()) if access.tokens.are_asked_for() => (None, Err(Refusal::UnknownToken)),
        Err(()) => (None, Ok(())),
    };
    // Whoever guesses tokens uses up the limit of the address.
    let peer = request.extensions().get::<Peer>().map(|Peer(address)| Client::at(address.ip()));
    let client = name.map(Client::Token).or(peer).unwrap_or(Client::Crowd);
    let allowance = access.limits.count(class, client);
    let refused = allowance.as_ref().and_then(|allowance| allowance.refused.as_ref());
    let mut response = match (refused, verdict) {
        (Some((wait, client)), _) => too_many(class, *wait, client),
        (None, Err(refusal)) => refuse(refusal, scope),
        (None, Ok(())) => next.run(request).await,
    };
    if let Some(allowance) = &allowance {
        tell(response.headers_mut(), class, allowance);
    }
    response
}

/// The token of a request. An error: what is there is no bearer token, or there are two.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, ()> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let (scheme, secret) = value.to_str().map_err(|_| ())?.split_once(' ').ok_or(())?;
    let is_good = values.next().is_none() && scheme.eq_ignore_ascii_case("bearer");
    if is_good { Ok(Some(secret.trim())) } else { Err(()) }
}

fn refuse(refusal: Refusal, scope: Scope) -> Response {
    let scope = scope.name();
    let (status, code, detail, challenge) = match refusal {
        Refusal::NoToken => (
            StatusCode::UNAUTHORIZED,
            "token_missing",
            format!("this needs a token with the scope {scope}: send it as Authorization: Bearer TOKEN (the client: SUPERKO_TOKEN)"),
            "Bearer realm=\"superko\"".to_owned(),
        ),
        Refusal::UnknownToken => (
            StatusCode::UNAUTHORIZED,
            "token_unknown",
            "the token in Authorization is none of this server's: expected Bearer and a token whose line is in its tokens_file".to_owned(),
            "Bearer realm=\"superko\", error=\"invalid_token\"".to_owned(),
        ),
        Refusal::NotEnough => (
            StatusCode::FORBIDDEN,
            "insufficient_scope",
            format!("the token does not allow this: it needs the scope {scope}"),
            format!("Bearer realm=\"superko\", error=\"insufficient_scope\", scope=\"{scope}\""),
        ),
    };
    ([(header::WWW_AUTHENTICATE, challenge)], Problem::new(status, code, detail)).into_response()
}

fn too_many(class: Class, wait: Duration, client: &Client) -> Response {
    let seconds = u32::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u32::MAX).max(1);
    let detail = format!(
        "the limit {:?} of {client} is used up: wait {seconds} s before the next request; {} in the server's configuration sets it",
        class.name(),
        class.key()
    );
    Problem::too_many(detail, seconds).into_response()
}

/// The headers of draft-ietf-httpapi-ratelimit-headers-10.
fn tell(headers: &mut HeaderMap, class: Class, allowance: &Allowance) {
    let name = class.name();
    let wait = allowance.refused.as_ref().map_or(String::new(), |(wait, _)| format!(";t={}", wait.as_millis().div_ceil(1000).max(1)));
    for (header, value) in [
        ("ratelimit-policy", format!("\"{name}\";q={};w=60", allowance.per_minute)),
        ("ratelimit", format!("\"{name}\";r={}{wait}", allowance.remaining)),
    ] {
        // Names and numbers are always a header's value.
        let Ok(value) = HeaderValue::from_str(&value) else { continue };
        headers.insert(HeaderName::from_static(header), value);
    }
}

/// How bodies are read.
#[derive(Clone, Copy, Debug)]
pub struct BodyLimits {
    /// Most bytes.
    pub bytes: usize,
    /// Longest time.
    pub time: Duration,
}

/// Has the whole body before the handler begins, so that none waits for a slow client.
pub async fn whole_body(State(limits): State<BodyLimits>, request: Request, next: Next) -> Response {
    if request.method().is_safe() {
        // No handler looks at it.
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    match tokio::time::timeout(limits.time, read(body, limits.bytes)).await {
        Ok(Ok(body)) => next.run(Request::from_parts(parts, Body::from(body))).await,
        Ok(Err(problem)) => problem.into_response(),
        Err(_) => {
            let detail = format!(
                "the body did not come within request_timeout_seconds, {} s: send it faster, or raise the limit in the configuration",
                limits.time.as_secs()
            );
            Problem::new(StatusCode::REQUEST_TIMEOUT, "body_too_slow", detail).into_response()
        }
    }
}

/// A body of up to `most` bytes. Some more is read and dropped: a client that is cut off while it sends does not see the answer.
async fn read(body: Body, most: usize) -> Result<Vec<u8>, Problem> {
    let (mut whole, mut seen) = (Vec::new(), 0);
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| Problem::new(StatusCode::BAD_REQUEST, "unreadable_body", error.to_string()))?;
        seen += chunk.len();
        if seen <= most {
            whole.extend_from_slice(&chunk);
        } else if seen <= most + OVERSHOOT_BYTES {
            whole = Vec::new();
        } else {
            break;
        }
    }
    if seen > most {
        let detail =
            format!("the body is larger than max_body_bytes, {most} bytes: send a smaller one, or raise the limit in the configuration");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail));
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_that_nobody_thought_of_is_not_open() {
        for (method, path, scope) in [
            (Method::GET, "/v1/jobs", Some(Scope::Read)),
            (Method::HEAD, "/v1/jobs/{id}", Some(Scope::Read)),
            (Method::GET, "/metrics", Some(Scope::Read)),
            (Method::POST, "/v1/jobs", Some(Scope::Submit)),
            (Method::PATCH, "/v1/new/{id}", Some(Scope::Submit)),
            (Method::POST, "/v1/positions", Some(Scope::Read)),
            (Method::POST, "/v1/positions:batch", Some(Scope::Read)),
            (Method::POST, "/v1/proofs/{id}/verifications", Some(Scope::Submit)),
            (Method::GET, "/v1/admin/new", Some(Scope::Admin)),
            (Method::GET, "/v1/openapi.json", None),
            (Method::GET, "/healthz", None),
            (Method::GET, "/", None),
        ] {
            assert_eq!(rule(&method, path).map(|(scope, _)| scope), scope, "{method} {path}");
        }
    }

    #[test]
    fn one_bearer_token_or_none() {
        let read = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::AUTHORIZATION, value.parse().expect("a value"));
            }
            bearer(&headers).map(|secret| secret.map(str::to_owned))
        };
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&["Bearer abc"]), Ok(Some("abc".to_owned())));
        assert_eq!(read(&["bearer  abc "]), Ok(Some("abc".to_owned())));
        for bad in [&["Bearer"][..], &["Basic abc"], &["Bearer a", "Bearer a"], &[""]] {
            assert_eq!(read(bad), Err(()), "{bad:?}");
        }
    }
}

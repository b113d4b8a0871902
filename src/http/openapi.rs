//! The OpenAPI description of the API, made from the handlers' attributes, and a page that shows it.
//!
//! To add a route: put `#[utoipa::path(…)]` on its handler, name the handler in `paths(…)` below, derive `ToSchema` for what it answers (or
//! add the shape to `schema.rs`), and write the new `tests/golden/openapi.json`, as that directory's test says. An answer of 400 or more
//! needs no body: it is a problem, whose codes its description names in backticks. What every route has in common is added by
//! [`document`]. A test refuses a route that is not described.

use super::access::rule;
use crate::schema::Problem;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use std::sync::LazyLock;
use utoipa::OpenApi;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Superko",
        description = "A proof server for small-board Go under positional superko. Boards are ROWSxCOLUMNS, points are letters without I and \
                       rows counted from the bottom (B2), komi is a half-integer, margins and values are Black's. Clients should ignore \
                       fields that they do not know: new ones may come."
    ),
    tags(
        (name = "jobs", description = "Work for the solver"),
        (name = "campaigns", description = "Values of positions by many jobs"),
        (name = "positions", description = "What is proven already; never starts work"),
        (name = "proofs", description = "Proofs of finished jobs, and their certificates"),
        (name = "daemon", description = "The daemon itself")
    ),
    paths(
        super::jobs::submit,
        super::jobs::list,
        super::jobs::show,
        super::jobs::change,
        super::jobs::cancel,
        super::jobs::pause,
        super::jobs::resume,
        super::events::of_job,
        super::events::of_all,
        super::campaigns::submit,
        super::campaigns::list,
        super::campaigns::show,
        super::campaigns::change,
        super::campaigns::cancel,
        super::campaigns::pause,
        super::campaigns::resume,
        super::events::of_campaign,
        super::positions::show,
        super::positions::show_posted,
        super::positions::batch,
        super::proofs::show,
        super::proofs::certificate,
        super::proofs::verify,
        super::checkpoint,
        super::backup::create,
        super::healthz,
        super::readyz,
        super::metrics,
        description,
        page
    ),
    components(schemas(Problem))
)]
struct Api;

/// The description, in the order in which routes and fields are written down.
pub fn document() -> Value {
    // The types of utoipa always serialize.
    let mut document = serde_json::to_value(Api::openapi()).unwrap_or_default();
    for (path, item) in document["paths"].as_object_mut().into_iter().flatten() {
        for (name, operation) in item.as_object_mut().into_iter().flatten() {
            if let Ok(method) = Method::from_bytes(name.to_uppercase().as_bytes()) {
                complete(&method, path, operation);
            }
        }
    }
    document["components"]["headers"] = HEADERS
        .into_iter()
        .map(|(name, kind, text)| (name.to_owned(), json!({"schema": {"type": kind}, "description": text})))
        .collect::<Map<String, Value>>()
        .into();
    document["components"]["securitySchemes"] = json!({"token": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token from `superko token new`, with the scopes read, submit or admin, each including those before it. A server \
                        without tokens_file asks for none."
    }});
    document
}

/// Headers that many answers have: name, type, meaning.
const HEADERS: [(&str, &str, &str); 5] = [
    ("X-Request-Id", "string", "Names the request in the server's log; the client's own where it sent a sane one"),
    ("RateLimit-Policy", "string", "Name, quota and window in seconds of the limit that the request counts for, if there is one"),
    ("RateLimit", "string", "What is left of it"),
    ("Retry-After", "integer", "Seconds until it is worth trying again"),
    ("WWW-Authenticate", "string", "How to authenticate"),
];

/// Adds what every operation has in common, and the body of every problem.
fn complete(method: &Method, path: &str, operation: &mut Value) {
    // A body that may be left out is not null either.
    for media in operation.pointer_mut("/requestBody/content").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
        if let Some(schema) = media.get_mut("schema") {
            without_null(schema);
        }
    }
    for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(schema) = parameter.get_mut("schema") {
            without_null(schema);
        }
    }
    let rule = rule(method, path);
    let mut common = vec![
        (StatusCode::INTERNAL_SERVER_ERROR, "`internal`: a fault of the server, which its log names"),
        (StatusCode::MISDIRECTED_REQUEST, "`unknown_host`: a server without tokens was called by a name that is not localhost"),
    ];
    if let Some((scope, _)) = rule {
        common.extend([
            (StatusCode::UNAUTHORIZED, "`token_missing`, `token_unknown`"),
            (StatusCode::FORBIDDEN, "`insufficient_scope`"),
            (StatusCode::TOO_MANY_REQUESTS, "`rate_limited`: try again after Retry-After seconds"),
        ]);
        if !method.is_safe() {
            common.extend([
                (StatusCode::FORBIDDEN, "`cross_origin`: sent by a web page of another origin that is not in cors_origins"),
                (StatusCode::BAD_REQUEST, "`unreadable_body`"),
                (StatusCode::REQUEST_TIMEOUT, "`body_too_slow`"),
                (StatusCode::PAYLOAD_TOO_LARGE, "`body_too_large`"),
            ]);
        }
        // The empty one: a server may ask for no token.
        operation["security"] = json!([{}, {"token": [scope.name()]}]);
    }
    let Some(responses) = operation["responses"].as_object_mut() else { return };
    for (status, codes) in common {
        let response = responses.entry(status.as_str()).or_insert_with(|| json!({"description": ""}));
        let before = response["description"].as_str().unwrap_or_default();
        response["description"] = if before.is_empty() { codes.to_owned() } else { format!("{before}; {codes}") }.into();
    }
    responses.sort_keys();
    for (status, response) in responses {
        let Some(status) = status.parse().ok().and_then(|status| StatusCode::from_u16(status).ok()) else { continue };
        let waits = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        let has = |name: &str| match name {
            "RateLimit-Policy" | "RateLimit" => rule.is_some(),
            "Retry-After" => waits,
            "WWW-Authenticate" => status == StatusCode::UNAUTHORIZED,
            _ => true,
        };
        let names = HEADERS.into_iter().map(|(name, ..)| name).filter(|name| has(name));
        let mut headers: Map<String, Value> =
            names.map(|name| (name.to_owned(), json!({"$ref": format!("#/components/headers/{name}")}))).collect();
        headers.extend(response["headers"].as_object().cloned().unwrap_or_default());
        response["headers"] = headers.into();
        if status.is_client_error() || status.is_server_error() {
            response["content"] = json!({"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}});
        }
    }
}

/// A parameter may be left out, but it is never null.
fn without_null(schema: &mut Value) {
    let is_null = |value: &Value| value == "null" || value["type"] == "null";
    for key in ["type", "oneOf"] {
        let Some(options) = schema.get_mut(key).and_then(Value::as_array_mut) else { continue };
        options.retain(|option| !is_null(option));
        if let [only] = &options[..] {
            let only = only.clone();
            match key {
                "type" => schema["type"] = only,
                _ => *schema = only,
            }
        }
    }
}

/// The description as it is sent.
static TEXT: LazyLock<String> = LazyLock::new(|| document().to_string());

#[utoipa::path(get, path = "/v1/openapi.json", operation_id = "describe", tag = "daemon", summary = "This description",
    responses((status = 200, description = "An OpenAPI 3.1 document", body = Object)))]
pub async fn description() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], TEXT.as_str()).into_response()
}

/// Only what this server sends, and nothing inside the page itself.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

fn asset(content_type: &'static str, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, text).into_response()
}

#[utoipa::path(get, path = "/v1/docs", operation_id = "browse", tag = "daemon", summary = "This description as a page",
    responses((status = 200, description = "HTML that needs no network", content_type = "text/html", body = String)))]
pub async fn page() -> Response {
    asset("text/html; charset=utf-8", include_str!("docs/docs.html"))
}

/// The page's script.
pub async fn script() -> Response {
    asset("text/javascript; charset=utf-8", include_str!("docs/docs.js"))
}

/// The page's looks.
pub async fn style() -> Response {
    asset("text/css; charset=utf-8", include_str!("docs/docs.css"))
}

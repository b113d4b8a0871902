//! The web page: files built into the program, so that it needs nothing but the server.

use super::names;
use super::problem::Problem;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// A file of the page.
struct Asset {
    name: &'static str,
    content: &'static str,
    tag: String,
}

macro_rules! assets {
    ($($name:literal),*) => { [$(($name, include_str!(concat!("../page/", $name)))),*] };
}

static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let files = assets![
        "index.html",
        "style.css",
        "icon.svg",
        "app.js",
        "api.js",
        "board.js",
        "charts.js",
        "dom.js",
        "explorer.js",
        "job.js",
        "position.js",
        "queue.js",
        "setup.js",
        "state.js"
    ];
    let asset = |(name, content): (_, &'static str)| Asset { name, content, tag: format!("\"{:x}\"", Sha256::digest(content)) };
    files.into_iter().map(asset).collect()
});

/// What the page may do: nothing but its own files and this server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// `GET /`.
pub async fn index(headers: HeaderMap) -> Result<Response, Problem> {
    send("index.html", &headers, "/")
}

/// `GET /page/{file}`.
pub async fn file(path: Result<Path<String>, PathRejection>, headers: HeaderMap) -> Result<Response, Problem> {
    let Path(name) = path.map_err(|rejection| Problem::new(StatusCode::NOT_FOUND, "not_found", rejection.body_text()))?;
    send(&name, &headers, &format!("/page/{name}"))
}

fn send(name: &str, headers: &HeaderMap, path: &str) -> Result<Response, Problem> {
    let asset = ASSETS.iter().find(|asset| asset.name == name).ok_or_else(|| Problem::no_route(path))?;
    let kind = match name.rsplit_once('.') {
        Some((_, "html")) => "text/html; charset=utf-8",
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "svg")) => "image/svg+xml",
        _ => "text/javascript; charset=utf-8",
    };
    let tag = HeaderValue::from_str(&asset.tag).map_err(|error| Problem::internal(&error))?;
    let kept = names(headers, header::IF_NONE_MATCH, &asset.tag, true) == Some(true);
    let content = if kept { StatusCode::NOT_MODIFIED.into_response() } else { asset.content.into_response() };
    let fixed = [
        (header::CONTENT_TYPE, kind),
        // The next version of the program has other files under the same names.
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    Ok(([(header::ETAG, tag)], fixed, content).into_response())
}

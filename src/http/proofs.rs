//! `/v1/proofs`: what finished jobs have proved, and the certificates.

use super::problem::Problem;
use super::{blocking, names};
use crate::engine::Engine;
use crate::proofs::{ProofError, ProofId, no_certificate};
use crate::report::SolveReport;
use crate::schema::Proof;
use axum::Json;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::sync::Arc;
use tower_http::services::ServeFile;

type Id = Result<Path<String>, PathRejection>;

fn read_id(path: Id) -> Result<String, Problem> {
    path.map(|Path(text)| text).map_err(|rejection| ProofError::NotFound(rejection.body_text()).into())
}

fn proof_json(id: ProofId, report: &SolveReport) -> Result<Value, Problem> {
    let mut json = json!({"id": id.to_string(), "job": id.job});
    let report = serde_json::to_value(report).map_err(|error| Problem::internal(&error))?;
    if let (Value::Object(fields), Value::Object(report)) = (&mut json, report) {
        fields.extend(report);
        fields.entry("certificate").or_insert(Value::Null);
    }
    Ok(json)
}

/// `GET /v1/proofs/{id}`.
#[utoipa::path(get, path = "/v1/proofs/{id}", operation_id = "showProof", tag = "proofs", summary = "A proof of a finished job",
    params(("id" = String, Path, description = "As in `proofs` of its job", example = "7-1")),
    responses((status = 200, description = "With what is known of its certificate", body = Proof), (status = 404, description = "`proof_not_found`")))]
pub async fn show(State(engine): State<Arc<Engine>>, path: Id) -> Result<Response, Problem> {
    let (id, _, report) = engine.proof(&read_id(path)?)?;
    Ok(Json(proof_json(id, &report)?).into_response())
}

/// `GET /v1/proofs/{id}/certificate`: the file, whole or in part. Its entity tag is the SHA-256 of the content.
#[utoipa::path(get, path = "/v1/proofs/{id}/certificate", operation_id = "fetchCertificate", tag = "proofs", summary = "The certificate of a proof",
    params(
        ("id" = String, Path, description = "As in `proofs` of its job", example = "7-1"),
        ("Range" = Option<String>, Header, description = "A part of the file", example = "bytes=0-99"),
        ("If-None-Match" = Option<String>, Header, description = "The ETag of the file that the client has"),
        ("If-Match" = Option<String>, Header, description = "The ETag of the file that the client wants"),
        ("If-Range" = Option<String>, Header, description = "The ETag of the file that the client has a part of")
    ),
    responses(
        (status = 200, description = "The file; `superko check` judges it", content_type = "application/zstd", body = [u8],
            headers(("ETag" = String, description = "SHA-256 of the file"), ("Content-Disposition" = String, description = "A name for it"))),
        (status = 206, description = "The part asked for", content_type = "application/zstd", body = [u8],
            headers(("ETag" = String, description = "SHA-256 of the file"), ("Content-Range" = String, description = "Which part"))),
        (status = 304, description = "The client has the file"),
        (status = 404, description = "`proof_not_found`"),
        (status = 409, description = "`no_certificate`: the detail says why"),
        (status = 412, description = "`precondition_failed`: If-Match names another file"),
        (status = 416, description = "`range_not_satisfiable`"),
        (status = 500, description = "`certificate_unreadable`: the file is gone or has changed")
    ))]
pub async fn certificate(State(engine): State<Arc<Engine>>, path: Id, mut request: Request) -> Result<Response, Problem> {
    let (id, _, proof) = engine.proof(&read_id(path)?)?;
    let Some(certificate) = &proof.certificate else { return Err(no_certificate(id, &proof).into()) };
    let tag = format!("\"{}\"", certificate.sha256);
    let tag_header = HeaderValue::from_str(&tag).map_err(|error| Problem::internal(&error))?;
    let is_get = request.method() == Method::GET;
    let headers = request.headers_mut();
    // In the order of RFC 9110, 13.2.2.
    if names(headers, header::IF_MATCH, &tag, false) == Some(false) {
        let detail = format!("the entity tag of the certificate is {tag}, which If-Match does not name");
        return Err(Problem::new(StatusCode::PRECONDITION_FAILED, "precondition_failed", detail));
    }
    if names(headers, header::IF_NONE_MATCH, &tag, true) == Some(true) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag_header)]).into_response());
    }
    // A part of another file than the client has begun with would be of no use to it: then it gets the whole.
    let is_other = headers.get(header::IF_RANGE).is_some_and(|value| value.as_bytes() != tag.as_bytes());
    let is_unknown = headers.get(header::RANGE).is_some_and(|value| !value.as_bytes().starts_with(b"bytes="));
    if is_other || is_unknown || !is_get {
        headers.remove(header::RANGE);
    }
    // The service that sends the file has tags of its own.
    for condition in [header::IF_NONE_MATCH, header::IF_MATCH, header::IF_RANGE, header::IF_MODIFIED_SINCE, header::IF_UNMODIFIED_SINCE] {
        headers.remove(condition);
    }
    let record = certificate.clone();
    let file = blocking(move || engine.whole_file(id, &record)).await??;
    let unreadable = |error: String| Problem::from(ProofError::Unreadable { id, error });
    let sent = ServeFile::new(&file).ignore_multi_range_requests(true).try_call(request).await;
    let mut sent = sent.map_err(|error| unreadable(error.to_string()))?.map(Body::new);
    match sent.status() {
        StatusCode::OK | StatusCode::PARTIAL_CONTENT => {}
        StatusCode::RANGE_NOT_SATISFIABLE => {
            let bytes = certificate.bytes;
            let detail = format!("the Range is not within the certificate's {bytes} bytes, or none");
            let problem = Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, "range_not_satisfiable", detail);
            return Ok(([(header::CONTENT_RANGE, format!("bytes */{bytes}"))], problem).into_response());
        }
        status => return Err(unreadable(format!("{}: status {status}", file.display()))),
    }
    let winner = proof.winner.as_deref().unwrap_or("unknown");
    let name = format!("attachment; filename=\"{}_{:.1}_{winner}_{id}.sgc\"", proof.board, proof.komi);
    let headers = sent.headers_mut();
    headers.remove(header::LAST_MODIFIED);
    headers.insert(header::ETAG, tag_header);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/zstd"));
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_str(&name).map_err(|error| Problem::internal(&error))?);
    Ok(sent)
}

/// `POST /v1/proofs/{id}/verifications`: has the certificate checked now; the proof, with what came of it.
#[utoipa::path(post, path = "/v1/proofs/{id}/verifications", operation_id = "verifyProof", tag = "proofs", summary = "Have a certificate checked now",
    description = "The independent checker reads the server's file once more; the answer comes when it is done. One check at a time.",
    params(("id" = String, Path, description = "As in `proofs` of its job", example = "7-1")),
    responses(
        (status = 200, description = "The proof, with the judgement in `certificate`", body = Proof),
        (status = 404, description = "`proof_not_found`"),
        (status = 409, description = "`no_certificate`: the detail says why"),
        (status = 500, description = "`certificate_unreadable`: the file is gone or has changed"),
        (status = 503, description = "`verification_busy`, `draining`, `store_failed`")
    ))]
pub async fn verify(State(engine): State<Arc<Engine>>, path: Id) -> Result<Response, Problem> {
    let text = read_id(path)?;
    let (id, report) = blocking(move || engine.verify_proof(&text)).await??;
    Ok(Json(proof_json(id, &report)?).into_response())
}

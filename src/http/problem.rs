//! Errors as `application/problem+json` (RFC 9457), each with the level at which it is logged.

use crate::jobs::JobError;
use crate::position::FieldError;
use crate::proofs::ProofError;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// An error answer.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    errors: Vec<FieldError>,
    retry_after_seconds: Option<u32>,
}

impl Problem {
    /// An error with a stable code (`snake_case`) and a sentence.
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Problem {
        Problem { status, code, detail: detail.into(), errors: Vec::new(), retry_after_seconds: None }
    }

    /// 422 with one entry a field.
    pub fn invalid(errors: Vec<FieldError>) -> Problem {
        let detail = errors.iter().map(|error| error.detail.as_str()).collect::<Vec<_>>().join("; ");
        Problem { errors, ..Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_request", detail) }
    }

    /// 404 for a path that is no route.
    pub fn no_route(path: &str) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, "not_found", format!("there is nothing at {path}"))
    }

    /// 500 for a fault of ours; what went wrong goes to the log.
    pub fn internal(error: &dyn std::fmt::Display) -> Problem {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", error.to_string())
    }

    /// The body of the answer.
    pub fn json(&self) -> Value {
        let mut body = json!({
            "type": "about:blank",
            "title": self.status.canonical_reason().unwrap_or("Error"),
            "status": self.status.as_u16(),
            "detail": self.detail,
            "code": self.code,
        });
        if !self.errors.is_empty() {
            body["errors"] = self.errors.iter().map(|error| json!({"pointer": error.pointer, "detail": error.detail})).collect();
        }
        body
    }

    /// 503 with `Retry-After`.
    pub fn unavailable(code: &'static str, detail: impl Into<String>, retry_after_seconds: u32) -> Problem {
        Problem { retry_after_seconds: Some(retry_after_seconds), ..Problem::new(StatusCode::SERVICE_UNAVAILABLE, code, detail) }
    }

    /// 429 with `Retry-After`.
    pub fn too_many(detail: impl Into<String>, retry_after_seconds: u32) -> Problem {
        Problem { retry_after_seconds: Some(retry_after_seconds), ..Problem::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", detail) }
    }
}

impl From<JobError> for Problem {
    fn from(error: JobError) -> Problem {
        let detail = error.to_string();
        match error {
            JobError::QueueFull(_) => Problem::unavailable("queue_full", detail, 60),
            JobError::Draining => Problem::unavailable("draining", detail, 10),
            JobError::KeyReused { .. } => Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_key_reused", detail),
            JobError::NotFound(_) => Problem::new(StatusCode::NOT_FOUND, "job_not_found", detail),
            JobError::CampaignKeyReused { .. } => Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_key_reused", detail),
            JobError::NoCampaign(_) => Problem::new(StatusCode::NOT_FOUND, "campaign_not_found", detail),
            JobError::Conflict { what: "campaign", .. } => Problem::new(StatusCode::CONFLICT, "campaign_state", detail),
            JobError::Conflict { state, .. } if state.is_open() => Problem::new(StatusCode::CONFLICT, "job_state", detail),
            JobError::Conflict { .. } => Problem::new(StatusCode::CONFLICT, "job_ended", detail),
            JobError::NearlyFull(_) => Problem::unavailable("storage_full", detail, 60),
            JobError::PartOfCampaign { .. } => Problem::new(StatusCode::CONFLICT, "part_of_campaign", detail),
            JobError::Changed { .. } => Problem::new(StatusCode::PRECONDITION_FAILED, "precondition_failed", detail),
            JobError::Unreadable { .. } | JobError::UnreadableCampaign { .. } => Problem::internal(&detail),
            JobError::Store(_) => Problem::unavailable("store_failed", detail, 30),
        }
    }
}

impl From<ProofError> for Problem {
    fn from(error: ProofError) -> Problem {
        let detail = error.to_string();
        match error {
            ProofError::NotFound(_) => Problem::new(StatusCode::NOT_FOUND, "proof_not_found", detail),
            ProofError::NoCertificate { .. } => Problem::new(StatusCode::CONFLICT, "no_certificate", detail),
            ProofError::Busy => Problem::unavailable("verification_busy", detail, 10),
            ProofError::Stopping => Problem::unavailable("draining", detail, 10),
            ProofError::Unreadable { .. } => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "certificate_unreadable", detail),
            ProofError::Unrecorded { .. } => Problem::unavailable("store_failed", detail, 30),
            ProofError::Job(error) => error.into(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        if self.status.is_server_error() {
            let ours = !matches!(
                self.code,
                "queue_full" | "draining" | "too_many_streams" | "not_ready" | "verification_busy" | "backup_busy" | "storage_full"
            );
            if ours {
                tracing::error!(code = self.code, detail = self.detail, "request failed");
            }
        } else {
            tracing::debug!(status = self.status.as_u16(), code = self.code, detail = self.detail, "request refused");
        }
        let mut body = self.json();
        // The same id is in the log and in the header X-Request-Id.
        if let Some(id) = super::request_id() {
            body["request_id"] = id.into();
        }
        let mut response = (self.status, [(header::CONTENT_TYPE, "application/problem+json")], body.to_string()).into_response();
        if let Some(seconds) = self.retry_after_seconds {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

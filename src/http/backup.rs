//! `/v1/admin/backup`.

use super::blocking;
use super::jobs::read_body;
use super::problem::Problem;
use crate::backup::{self, BackupError, BackupReport};
use crate::engine::Engine;
use crate::position::FieldError;
use crate::schema::BackupRequest;
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use std::sync::Arc;
use superko_storage::StoreError;

/// `POST /v1/admin/backup`: makes a checkpoint, then a backup of that name in the data directory; 201 with where it lies and what is in it.
#[utoipa::path(post, path = "/v1/admin/backup", operation_id = "backup", tag = "daemon", summary = "Make a backup in the data directory",
    request_body = BackupRequest,
    responses(
        (status = 201, description = "Where it lies, and what reading it once more found", body = BackupReport),
        (status = 400, description = "`malformed_json`"),
        (status = 409, description = "`backup_exists`"),
        (status = 415, description = "`unsupported_media_type`"),
        (status = 422, description = "`invalid_request`: `errors` has each field at fault"),
        (status = 503, description = "`backup_busy`, `storage_full`, `backup_failed`, `store_failed`")
    ))]
pub async fn create(
    State(engine): State<Arc<Engine>>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
    max_body_bytes: usize,
) -> Result<Response, Problem> {
    let name = read_name(&read_body(&headers, body, max_body_bytes)?)?;
    let report = blocking(move || -> Result<_, Problem> {
        let to =
            backup::place(&engine.data_dir, &name).map_err(|detail| Problem::invalid(vec![FieldError::new("/name".to_owned(), detail)]))?;
        let _one_at_a_time = backup::begin()?;
        // What is proved by now is in the backup too.
        engine.checkpoint().map_err(|error| Problem::unavailable("store_failed", error, 30))?;
        let report = backup::backup(&engine.store, &engine.data_dir, &to)?;
        tracing::info!(directory = %to.display(), files = report.files, seconds = report.elapsed_seconds, "backup");
        Ok(report)
    })
    .await??;
    Ok((StatusCode::CREATED, Json(report)).into_response())
}

fn read_name(body: &Value) -> Result<String, Problem> {
    let invalid = |pointer: String, detail: String| Problem::invalid(vec![FieldError::new(pointer, detail)]);
    let Some(fields) = body.as_object() else {
        return Err(invalid(String::new(), format!("the body is {body}: expected an object such as {{\"name\": \"monday\"}}")));
    };
    if let Some(unknown) = fields.keys().find(|name| *name != "name") {
        return Err(invalid(format!("/{}", crate::position::escape(unknown)), format!("unknown field {unknown:?}: expected name")));
    }
    match fields.get("name").and_then(Value::as_str) {
        Some(name) => Ok(name.to_owned()),
        None => Err(invalid(
            "/name".to_owned(),
            "name is missing or no text: expected the name of the new backup, such as \"monday\"".to_owned(),
        )),
    }
}

impl From<BackupError> for Problem {
    fn from(error: BackupError) -> Problem {
        let detail = error.to_string();
        match error {
            BackupError::Refused { .. } => Problem::new(StatusCode::CONFLICT, "backup_exists", detail),
            BackupError::Busy => Problem::unavailable("backup_busy", detail, 10),
            BackupError::Store(StoreError::NearlyFull { .. }) => Problem::unavailable("storage_full", detail, 60),
            BackupError::Io { .. } | BackupError::Store(_) => Problem::unavailable("backup_failed", detail, 30),
        }
    }
}

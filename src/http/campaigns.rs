//! `/v1/campaigns`.

use super::jobs::{Id, Pairs, read_body, read_fields, read_id, read_key, read_new_limits, read_new_priority};
use super::problem::Problem;
use super::{blocking, names, read_query};
use crate::campaigns::{Campaign, CampaignRequest, CampaignSubmission};
use crate::engine::Engine;
use crate::jobs::State as JobState;
use crate::position::FieldError;
use crate::schema::{CampaignPage, CampaignReport, PriorityChange, Resumption};
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::sync::Arc;

/// Campaigns a page.
const PAGE: usize = 100;

fn campaign_json(engine: &Engine, id: u64) -> Result<Value, Problem> {
    let live = engine.running().map(|running| (running.id, running.live()));
    engine.jobs.campaign_view(id, live.as_ref()).ok_or_else(|| crate::jobs::JobError::NoCampaign(id).into())
}

fn response(engine: &Engine, campaign: &Campaign) -> Result<Response, Problem> {
    let json = campaign_json(engine, campaign.id)?;
    Ok(([(header::ETAG, campaign.tag()), (header::CACHE_CONTROL, "no-store".to_owned())], Json(json)).into_response())
}

/// `POST /v1/campaigns`: 202 with the campaign, new or joined.
#[utoipa::path(post, path = "/v1/campaigns", operation_id = "submitCampaign", tag = "campaigns", summary = "Submit a campaign",
    description = "An open campaign that asks the same, but for the priority, is joined.",
    params(("Idempotency-Key" = Option<String>, Header, description = "The same request with the same key is the same campaign, even an ended one",
        min_length = 1, max_length = 255, pattern = "^[ -~]*$")),
    request_body = CampaignSubmission,
    responses(
        (status = 202, description = "The campaign, new or joined", body = CampaignReport,
            headers(("Location" = String, description = "Its path"), ("ETag" = String, description = "For If-Match"))),
        (status = 400, description = "`malformed_json`, `invalid_idempotency_key`"),
        (status = 415, description = "`unsupported_media_type`"),
        (status = 422, description = "`invalid_request`: `errors` has each field at fault, `idempotency_key_reused`"),
        (status = 503, description = "`queue_full`, `draining`, `storage_full`, `store_failed`")
    ))]
pub async fn submit(
    State(engine): State<Arc<Engine>>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
    max_body_bytes: usize,
) -> Result<Response, Problem> {
    let body = read_body(&headers, body, max_body_bytes)?;
    let key = read_key(&headers)?;
    let (id, response) = blocking(move || -> Result<_, Problem> {
        let request = CampaignRequest::from_json(&body).map_err(Problem::invalid)?;
        let campaign = engine.jobs.submit_campaign(request, key)?;
        Ok((campaign.id, response(&engine, &campaign)?))
    })
    .await??;
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, format!("/v1/campaigns/{id}"))], response).into_response())
}

/// `GET /v1/campaigns/{id}`.
#[utoipa::path(get, path = "/v1/campaigns/{id}", operation_id = "showCampaign", tag = "campaigns", summary = "A campaign",
    params(("id" = u64, Path, description = "The campaign's id", example = 1)),
    responses(
        (status = 200, description = "As it stands", body = CampaignReport, headers(("ETag" = String, description = "For If-Match"))),
        (status = 404, description = "`campaign_not_found`")
    ))]
pub async fn show(State(engine): State<Arc<Engine>>, path: Id) -> Result<Response, Problem> {
    let id = read_id("campaign", path)?;
    blocking(move || response(&engine, &*engine.jobs.campaign(id)?)).await?
}

/// `GET /v1/campaigns`: oldest first; `next` is the cursor of the following page.
#[utoipa::path(get, path = "/v1/campaigns", operation_id = "listCampaigns", tag = "campaigns", summary = "Campaigns, oldest first",
    params(
        ("state" = Option<JobState>, Query, description = "Only campaigns in this state"),
        ("cursor" = Option<String>, Query, description = "The `next` of an earlier page", pattern = "^[0-9]{1,19}$")
    ),
    responses(
        (status = 200, description = "A page of campaigns", body = CampaignPage),
        (status = 400, description = "`malformed_query`"),
        (status = 422, description = "`invalid_request`: `errors` has each parameter at fault")
    ))]
pub async fn list(State(engine): State<Arc<Engine>>, query: Pairs) -> Result<Response, Problem> {
    let pairs = query.map_err(|rejection| Problem::new(StatusCode::BAD_REQUEST, "malformed_query", rejection.body_text()))?;
    let (mut state, mut after) = (None, 0);
    for (name, value) in read_query(&pairs, &["state", "cursor"])? {
        let error = |expected: String| {
            Problem::invalid(vec![FieldError::new(format!("/{name}"), format!("{name} {value:?} is not valid: expected {expected}"))])
        };
        if name == "state" {
            let known = JobState::ALL.into_iter().find(|known| known.name() == value);
            state = Some(known.ok_or_else(|| error(JobState::ALL.map(JobState::name).join(", ")))?);
        } else {
            after = value.parse().map_err(|_| error("the `next` of an earlier page".to_owned()))?;
        }
    }
    blocking(move || {
        let mut found = engine.jobs.list_campaigns(after, PAGE + 1, |campaign| state.is_none_or(|state| campaign.data.state == state));
        let more = found.len() > PAGE;
        found.truncate(PAGE);
        let next = found.last().filter(|_| more).map(|campaign| campaign.id.to_string());
        let campaigns: Vec<Value> = found.iter().map(|campaign| campaign_json(&engine, campaign.id)).collect::<Result<_, _>>()?;
        Ok(Json(json!({"campaigns": campaigns, "next": next})).into_response())
    })
    .await?
}

/// `PATCH /v1/campaigns/{id}`: another priority.
#[utoipa::path(patch, path = "/v1/campaigns/{id}", operation_id = "changeCampaign", tag = "campaigns", summary = "Give a campaign another priority",
    params(
        ("id" = u64, Path, description = "The campaign's id", example = 1),
        ("If-Match" = Option<String>, Header, description = "The ETag of the campaign that the client has seen")
    ),
    request_body = PriorityChange,
    responses(
        (status = 200, description = "The campaign", body = CampaignReport, headers(("ETag" = String, description = "For If-Match"))),
        (status = 400, description = "`malformed_json`"),
        (status = 404, description = "`campaign_not_found`"),
        (status = 409, description = "`campaign_state`"),
        (status = 412, description = "`precondition_failed`: the campaign has changed"),
        (status = 415, description = "`unsupported_media_type`"),
        (status = 422, description = "`invalid_request`: `errors` has each field at fault"),
        (status = 503, description = "`storage_full`, `store_failed`")
    ))]
pub async fn change(
    State(engine): State<Arc<Engine>>,
    path: Id,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
    max_body_bytes: usize,
) -> Result<Response, Problem> {
    let id = read_id("campaign", path)?;
    let priority = read_new_priority(&read_fields(&headers, body, max_body_bytes, "priority")?)?;
    blocking(move || {
        let named = |tag: &str| names(&headers, header::IF_MATCH, tag, false) != Some(false);
        response(&engine, &*engine.jobs.set_campaign_priority(id, priority, Some(&named))?)
    })
    .await?
}

/// `POST /v1/campaigns/{id}/pause`.
#[utoipa::path(post, path = "/v1/campaigns/{id}/pause", operation_id = "pauseCampaign", tag = "campaigns", summary = "Put a campaign aside, with its jobs",
    params(("id" = u64, Path, description = "The campaign's id", example = 1)),
    responses(
        (status = 200, description = "The campaign, paused", body = CampaignReport, headers(("ETag" = String, description = "For If-Match"))),
        (status = 404, description = "`campaign_not_found`"),
        (status = 409, description = "`campaign_state`"),
        (status = 503, description = "`storage_full`, `store_failed`")
    ))]
pub async fn pause(State(engine): State<Arc<Engine>>, path: Id) -> Result<Response, Problem> {
    let id = read_id("campaign", path)?;
    blocking(move || response(&engine, &*engine.pause_campaign(id)?)).await?
}

/// `POST /v1/campaigns/{id}/resume`.
#[utoipa::path(post, path = "/v1/campaigns/{id}/resume", operation_id = "resumeCampaign", tag = "campaigns", summary = "Go on with a paused or expired campaign",
    params(("id" = u64, Path, description = "The campaign's id", example = 1)),
    request_body = Option<Resumption>,
    responses(
        (status = 200, description = "The campaign, running", body = CampaignReport, headers(("ETag" = String, description = "For If-Match"))),
        (status = 400, description = "`malformed_json`"),
        (status = 415, description = "`unsupported_media_type`"),
        (status = 422, description = "`invalid_request`: `errors` has each field at fault"),
        (status = 404, description = "`campaign_not_found`"),
        (status = 409, description = "`campaign_state`"),
        (status = 503, description = "`storage_full`, `store_failed`")
    ))]
pub async fn resume(
    State(engine): State<Arc<Engine>>,
    path: Id,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
    max_body_bytes: usize,
) -> Result<Response, Problem> {
    let id = read_id("campaign", path)?;
    let limits = read_new_limits(&read_fields(&headers, body, max_body_bytes, "limits")?)?;
    blocking(move || response(&engine, &*engine.resume_campaign(id, limits)?)).await?
}

/// `POST /v1/campaigns/{id}/cancel`.
#[utoipa::path(post, path = "/v1/campaigns/{id}/cancel", operation_id = "cancelCampaign", tag = "campaigns", summary = "Cancel a campaign, with its jobs",
    params(("id" = u64, Path, description = "The campaign's id", example = 1)),
    responses(
        (status = 200, description = "The campaign, cancelled", body = CampaignReport, headers(("ETag" = String, description = "For If-Match"))),
        (status = 404, description = "`campaign_not_found`"),
        (status = 409, description = "`campaign_state`"),
        (status = 503, description = "`storage_full`, `store_failed`")
    ))]
pub async fn cancel(State(engine): State<Arc<Engine>>, path: Id) -> Result<Response, Problem> {
    let id = read_id("campaign", path)?;
    blocking(move || response(&engine, &*engine.cancel_campaign(id)?)).await?
}

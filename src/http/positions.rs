//! `/v1/positions`: what is already proven; never starts work.

use super::jobs::read_body;
use super::problem::Problem;
use super::{blocking, read_query};
use crate::engine::Engine;
use crate::position::{FieldError, Position, escape, read_komi, shown};
use crate::report::winner_within;
use crate::schema::{PositionBatch, PositionReport, PositionReports, PositionRequest};
use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use superko_rules::{Color, Illegal, board_rows};
use superko_search::{Bounds, Komi, KomiError, Lookup, Table, lookup_all};
use tokio::sync::Semaphore;

/// Most positions of a batch.
const MAX_BATCH: usize = 256;

/// One batch at a time: look-ups must leave the processors to the search.
static BATCHES: Semaphore = Semaphore::const_new(1);

/// A position with the komi that it is looked up at, if any.
type Asked = (Position, Option<Komi>);

type Pairs = Result<Query<Vec<(String, String)>>, QueryRejection>;

/// The position's verdict and bounds, and those of every move on an empty point and of the pass.
#[utoipa::path(get, path = "/v1/positions", operation_id = "lookUp", tag = "positions", summary = "What is proven of a position",
    params(
        ("board" = String, Query, description = "ROWSxCOLUMNS", pattern = "^[1-9][0-9]?[xX][1-9][0-9]?$", example = "3x3"),
        ("komi" = Option<f64>, Query, description = "A half-integer; without it there are bounds, but no verdicts", multiple_of = 0.5),
        ("moves" = Option<String>, Query, description = "From the empty board, separated by spaces or commas", example = "B2 pass")
    ),
    responses(
        (status = 200, description = "The position, and every move on an empty point and the pass", body = PositionReport),
        (status = 400, description = "`malformed_query`"),
        (status = 422, description = "`invalid_request`: `errors` has each parameter at fault")
    ))]
pub async fn show(State(engine): State<Arc<Engine>>, query: Pairs) -> Result<Response, Problem> {
    let Query(pairs) = query.map_err(|rejection| Problem::new(StatusCode::BAD_REQUEST, "malformed_query", rejection.body_text()))?;
    let mut fields = Map::new();
    let mut komi = None;
    for (name, value) in read_query(&pairs, &["board", "komi", "moves"])? {
        if name == "komi" {
            let read =
                value.parse().map_err(|error: KomiError| Problem::invalid(vec![FieldError::new("/komi", format!("komi {error}"))]))?;
            komi = Some(read);
        } else {
            fields.insert(name.to_owned(), value.into());
        }
    }
    let json = blocking(move || -> Result<_, Problem> {
        let position = Position::from_fields(&fields).map_err(|error| Problem::invalid(vec![error]))?;
        one(look_up(&engine, &[&(position, komi)]))
    })
    .await??;
    Ok(Json(json).into_response())
}

/// `POST /v1/positions`: the same for one `{board, komi, moves, setup}`.
#[utoipa::path(post, path = "/v1/positions", operation_id = "lookUpPosted", tag = "positions", summary = "What is proven of a position, set up or not",
    request_body = PositionRequest,
    responses(
        (status = 200, description = "The position, and every move on an empty point and the pass", body = PositionReport),
        (status = 400, description = "`malformed_json`"),
        (status = 415, description = "`unsupported_media_type`"),
        (status = 422, description = "`invalid_request`: `errors` has each field at fault")
    ))]
pub async fn show_posted(
    State(engine): State<Arc<Engine>>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
    max_body_bytes: usize,
) -> Result<Response, Problem> {
    let body = read_body(&headers, body, max_body_bytes)?;
    let json = blocking(move || -> Result<_, Problem> { one(look_up(&engine, &[&read_asked(&body)?])) }).await??;
    Ok(Json(json).into_response())
}

/// `POST /v1/positions:batch`: an answer for each position, in order. The pointers of an error begin at its own position.
#[utoipa::path(post, path = "/v1/positions:batch", operation_id = "lookUpBatch", tag = "positions", summary = "What is proven of many positions",
    request_body = PositionBatch,
    responses(
        (status = 200, description = "An answer for each position, in order", body = PositionReports),
        (status = 400, description = "`malformed_json`"),
        (status = 415, description = "`unsupported_media_type`"),
        (status = 422, description = "`invalid_request`: `errors` has each field at fault")
    ))]
pub async fn batch(
    State(engine): State<Arc<Engine>>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
    max_body_bytes: usize,
) -> Result<Response, Problem> {
    let body = read_body(&headers, body, max_body_bytes)?;
    let _one_at_a_time = BATCHES.acquire().await.map_err(|error| Problem::internal(&error))?;
    let json = blocking(move || -> Result<_, Problem> {
        let asked: Vec<Result<Asked, Problem>> = read_batch(&body)?.iter().map(read_asked).collect();
        let good: Vec<&Asked> = asked.iter().flatten().collect();
        let mut answers = good.chunk_by(|one, next| one.0.geometry() == next.0.geometry()).flat_map(|run| look_up(&engine, run));
        let results = asked.iter().map(|one| match one {
            Ok(_) => json!({"status": 200, "position": answers.next()}),
            Err(problem) => json!({"status": 422, "error": problem.json()}),
        });
        Ok(json!({"results": results.collect::<Vec<_>>()}))
    })
    .await??;
    Ok(Json(json).into_response())
}

fn read_batch(body: &Value) -> Result<&[Value], Problem> {
    let invalid = |pointer: &str, detail: String| Err(Problem::invalid(vec![FieldError::new(pointer, detail)]));
    let expected = format!("expected an array of 1 to {MAX_BATCH} objects with board, komi and moves or setup");
    let Value::Object(fields) = body else {
        return invalid("", format!("{} is not an object: expected {{\"positions\": [{{\"board\": …}}, …]}}", shown(body)));
    };
    if let Some(name) = fields.keys().find(|name| *name != "positions") {
        return invalid(&format!("/{}", escape(name)), format!("unknown field {name:?}: a batch has positions"));
    }
    match fields.get("positions") {
        None => invalid("/positions", format!("positions are missing: {expected}")),
        Some(Value::Array(positions)) if (1..=MAX_BATCH).contains(&positions.len()) => Ok(positions),
        Some(Value::Array(positions)) => invalid("/positions", format!("{} positions are not valid: {expected}", positions.len())),
        Some(other) => invalid("/positions", format!("positions {} are not valid: {expected}", shown(other))),
    }
}

fn read_asked(value: &Value) -> Result<Asked, Problem> {
    const FIELDS: [&str; 4] = ["board", "komi", "moves", "setup"];
    let Value::Object(fields) = value else {
        let detail = format!("{} is not an object: expected {{\"board\": …, \"komi\": …, \"moves\": …}}", shown(value));
        return Err(Problem::invalid(vec![FieldError::new("", detail)]));
    };
    let unknown = fields.keys().filter(|name| !FIELDS.contains(&name.as_str()));
    let mut errors: Vec<FieldError> = unknown
        .map(|name| FieldError::new(format!("/{}", escape(name)), format!("unknown field {name:?}: a position has {}", FIELDS.join(", "))))
        .collect();
    let komi = fields.get("komi").filter(|komi| !komi.is_null()).map(read_komi).transpose().map_err(|error| errors.push(error));
    let position = Position::from_fields(fields).map_err(|error| errors.push(error));
    match (position, komi) {
        (Ok(position), Ok(komi)) if errors.is_empty() => Ok((position, komi)),
        _ => Err(Problem::invalid(errors)),
    }
}

fn one(mut answers: Vec<Value>) -> Result<Value, Problem> {
    answers.pop().ok_or_else(|| Problem::internal(&"a look-up without an answer"))
}

/// Looks up positions that are all on boards of one shape.
fn look_up(engine: &Engine, asked: &[&Asked]) -> Vec<Value> {
    let Some((first, _)) = asked.first() else { return Vec::new() };
    let geometry = first.geometry();
    let table = engine.table().filter(|table| table.geometry() == geometry);
    let stored = engine.store.lemma_view(geometry);
    let mut tables: Vec<&dyn Table> = Vec::new();
    if let Some(table) = &table {
        tables.push(&**table);
    }
    tables.push(&stored);
    let unread = engine.store.read_errors();
    let found = lookup_all(&tables, geometry, asked.iter().map(|(position, _)| &position.game));
    let unread = engine.store.read_errors() - unread;
    if unread > 0 {
        // What could not be read counts as not proven; the answer stays true.
        tracing::error!(
            board = geometry.name(),
            unread,
            "stored lemmas could not be read: check the disk, restore the data directory from a backup"
        );
    }
    asked.iter().zip(&found).map(|((position, komi), found)| position_json(position, *komi, found)).collect()
}

fn position_json(position: &Position, komi: Option<Komi>, found: &Lookup) -> Value {
    let geometry = position.geometry();
    let mover = position.to_move();
    let next_moves: Vec<Value> = found
        .moves
        .iter()
        .map(|(mv, after)| match after {
            Ok(bounds) => {
                let verdict = komi.map(|komi| match winner_within(*bounds, komi) {
                    None => "unknown",
                    Some(winner) if winner == mover => "win",
                    Some(_) => "loss",
                });
                json!({"move": mv.vertex(geometry), "legal": true, "verdict": verdict, "bounds": bounds_json(*bounds), "superko": false, "reason": null})
            }
            Err(reason) => {
                let superko = matches!(reason, Illegal::RecreatesMove(_) | Illegal::RecreatesEarlier(_));
                json!({"move": mv.vertex(geometry), "legal": false, "verdict": null, "bounds": null, "superko": superko, "reason": reason.to_string()})
            }
        })
        .collect();
    let mut json = json!({
        "board": geometry.name(),
        "komi": komi.map(Komi::as_f64),
        "moves": position.moves(),
        "rows": board_rows(geometry, position.game.position().board),
        "to_move": mover.name(),
        "over": position.game.is_over(),
        "verdict": komi.map(|komi| winner_within(found.bounds, komi).map_or("unknown", Color::name)),
        "bounds": bounds_json(found.bounds),
        "next_moves": next_moves,
    });
    if let Some(setup) = position.setup() {
        json["setup"] = setup;
    }
    json
}

fn bounds_json(bounds: Bounds) -> Value {
    json!({"lower": bounds.lower, "upper": bounds.upper})
}

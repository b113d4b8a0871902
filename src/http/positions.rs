//! `GET /v1/positions`: what is already proven; never starts work.

use super::problem::Problem;
use super::{blocking, read_query};
use crate::engine::Engine;
use crate::position::{FieldError, Position};
use crate::report::winner_within;
use crate::schema::PositionReport;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use superko_rules::{Color, Illegal};
use superko_search::{Bounds, Komi, KomiError, Table, lookup};

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
        Ok(look_up(&engine, &position, komi))
    })
    .await??;
    Ok(Json(json).into_response())
}

fn look_up(engine: &Engine, position: &Position, komi: Option<Komi>) -> Value {
    let geometry = position.geometry();
    let table = engine.table().filter(|table| table.geometry() == geometry);
    let stored = engine.store.lemma_view(geometry);
    let mut tables: Vec<&dyn Table> = Vec::new();
    if let Some(table) = &table {
        tables.push(&**table);
    }
    tables.push(&stored);
    let unread = engine.store.read_errors();
    let found = lookup(&tables, &position.game);
    let unread = engine.store.read_errors() - unread;
    if unread > 0 {
        // What could not be read counts as not proven; the answer stays true.
        tracing::error!(
            board = geometry.name(),
            unread,
            "stored lemmas could not be read: check the disk, restore the data directory from a backup"
        );
    }
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
    json!({
        "board": geometry.name(),
        "komi": komi.map(Komi::as_f64),
        "moves": position.moves(),
        "to_move": mover.name(),
        "over": position.game.is_over(),
        "verdict": komi.map(|komi| winner_within(found.bounds, komi).map_or("unknown", Color::name)),
        "bounds": bounds_json(found.bounds),
        "next_moves": next_moves,
    })
}

fn bounds_json(bounds: Bounds) -> Value {
    json!({"lower": bounds.lower, "upper": bounds.upper})
}

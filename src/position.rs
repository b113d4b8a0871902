//! A position as users give it (board, start diagram, moves), read once for the command line and for HTTP, with errors that
//! name the field by its JSON pointer.

use crate::strict_json::StrictJson;
use serde_json::{Map, Value, json};
use superko_rules::{Board, Color, Game, Geometry, Move, Setup, SetupError, board_from_rows, board_rows, parse_board_size};
use superko_search::Komi;

/// One thing that is wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// JSON pointer (RFC 6901) to the offending field; `/moves/3` is the fourth move.
    pub pointer: String,
    /// What is wrong: the value and what was expected.
    pub detail: String,
}

impl FieldError {
    /// An error at `pointer`.
    pub fn new(pointer: impl Into<String>, detail: impl Into<String>) -> FieldError {
        FieldError { pointer: pointer.into(), detail: detail.into() }
    }
}

/// A validated position with its whole superko history.
#[derive(Clone, Debug)]
pub struct Position {
    /// The game: board, history, side to move.
    pub game: Game,
    setup: Option<Setup>,
}

/// Text of a JSON value in an error, cut to a bearable length.
pub fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

impl Position {
    /// Reads `board`, `setup` and `moves` as they stand in a request; the other fields are not looked at.
    pub fn from_fields(fields: &Map<String, Value>) -> Result<Position, FieldError> {
        let board = match fields.get("board") {
            Some(Value::String(text)) => text,
            Some(other) => {
                return Err(FieldError::new("/board", format!("{} is not a string: expected ROWSxCOLUMNS, such as \"4x7\"", shown(other))));
            }
            None => return Err(FieldError::new("/board", "board is missing: expected ROWSxCOLUMNS, such as \"4x7\"")),
        };
        let geometry = parse_board_size(board).map_err(|error| FieldError::new("/board", format!("board {error}")))?;
        let setup = match fields.get("setup") {
            None | Some(Value::Null) => None,
            Some(value) => Some(read_setup(geometry, value)?),
        };
        let mut game = match &setup {
            None => Game::new(geometry),
            Some(setup) => Game::from_setup(geometry, setup.clone()).map_err(|error| setup_error(geometry, setup, &error))?,
        };
        for (index, (pointer, text)) in read_moves(fields.get("moves"))?.into_iter().enumerate() {
            let mv = Move::parse(geometry, &text).map_err(|error| FieldError::new(&pointer, format!("move {}: {error}", index + 1)))?;
            game.play(mv).map_err(|reason| {
                FieldError::new(&pointer, format!("move {}, {}, is illegal: {reason}", index + 1, mv.vertex(geometry)))
            })?;
        }
        Ok(Position { game, setup })
    }

    /// The board's shape.
    pub fn geometry(&self) -> &'static Geometry {
        self.game.geometry()
    }

    /// The moves played from the start, as vertices.
    pub fn moves(&self) -> Vec<String> {
        vertices(self.geometry(), self.game.moves())
    }

    /// The start diagram in the form in which it is read, if there was one.
    pub fn setup(&self) -> Option<Value> {
        let geometry = self.geometry();
        self.setup.as_ref().map(|setup| {
            let earlier: Vec<_> = setup.earlier.iter().map(|&board| board_rows(geometry, board)).collect();
            json!({"rows": board_rows(geometry, setup.board), "to_move": setup.to_move.name(), "passes": setup.passes, "earlier": earlier})
        })
    }

    /// Who is to move.
    pub fn to_move(&self) -> Color {
        self.game.position().to_move
    }
}

/// Moves as GTP vertices.
pub fn vertices(geometry: &Geometry, moves: &[Move]) -> Vec<String> {
    moves.iter().map(|mv| mv.vertex(geometry)).collect()
}

/// A komi given as a JSON number.
pub fn read_komi(value: &Value) -> Result<Komi, FieldError> {
    let number = value.as_f64().ok_or_else(|| {
        FieldError::new("/komi", format!("komi {} is not a number: expected a half-integer such as -3.5 or 0.5", shown(value)))
    })?;
    Komi::from_f64(number).map_err(|error| FieldError::new("/komi", format!("komi {error}")))
}

/// Each move with its pointer: an array of vertices, or one string with spaces or commas.
fn read_moves(value: Option<&Value>) -> Result<Vec<(String, String)>, FieldError> {
    let expected = "expected vertices and passes, as an array of strings or as one string such as \"B2 C3 pass\"";
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        // Inside one string there is nothing to point at; the text names the number of the move.
        Some(Value::String(text)) => {
            let words = text.split([' ', ',', '\t', '\n', '\r']).filter(|word| !word.is_empty());
            Ok(words.map(|word| ("/moves".to_owned(), word.to_owned())).collect())
        }
        Some(Value::Array(items)) => items
            .iter()
            .enumerate()
            .map(|(index, item)| {
                let pointer = format!("/moves/{index}");
                match item {
                    Value::String(text) => Ok((pointer, text.clone())),
                    other => Err(FieldError::new(pointer, format!("move {}: {} is not a string: {expected}", index + 1, shown(other)))),
                }
            })
            .collect(),
        Some(other) => Err(FieldError::new("/moves", format!("moves {} are not valid: {expected}", shown(other)))),
    }
}

fn read_setup(geometry: &Geometry, value: &Value) -> Result<Setup, FieldError> {
    let Value::Object(fields) = value else {
        return Err(FieldError::new(
            "/setup",
            format!("setup {} is not an object: expected {{\"rows\": […], \"to_move\": \"black\"}}", shown(value)),
        ));
    };
    if let Some(name) = fields.keys().find(|name| !["rows", "to_move", "passes", "earlier"].contains(&name.as_str())) {
        return Err(FieldError::new(
            format!("/setup/{}", escape(name)),
            format!("unknown field {name:?}: a setup has rows, to_move, passes and earlier"),
        ));
    }
    let rows = fields
        .get("rows")
        .ok_or_else(|| FieldError::new("/setup/rows", "rows are missing: expected the diagram, one string a row, top row first"))?;
    let board = read_rows(geometry, rows, "/setup/rows")?;
    let to_move = match fields.get("to_move").map(Value::as_str) {
        Some(Some("black")) => Color::Black,
        Some(Some("white")) => Color::White,
        Some(_) => {
            return Err(FieldError::new(
                "/setup/to_move",
                format!("to_move {} is not valid: expected \"black\" or \"white\"", shown(&fields["to_move"])),
            ));
        }
        None => return Err(FieldError::new("/setup/to_move", "to_move is missing: expected \"black\" or \"white\"")),
    };
    let passes = match fields.get("passes") {
        None => 0,
        Some(value) => match value.as_u64() {
            Some(passes @ (0 | 1)) => passes as u8,
            _ => {
                return Err(FieldError::new(
                    "/setup/passes",
                    format!(
                        "passes {} is not valid: expected 0, or 1 if a pass directly precedes the diagram (two passes end the game)",
                        shown(value)
                    ),
                ));
            }
        },
    };
    let earlier = match fields.get("earlier") {
        None => Vec::new(),
        Some(Value::Array(boards)) => boards
            .iter()
            .enumerate()
            .map(|(index, rows)| read_rows(geometry, rows, &format!("/setup/earlier/{index}")))
            .collect::<Result<_, _>>()?,
        Some(other) => return Err(FieldError::new("/setup/earlier", format!("earlier {} is not an array of diagrams", shown(other)))),
    };
    Ok(Setup { board, to_move, passes, earlier })
}

fn read_rows(geometry: &Geometry, value: &Value, pointer: &str) -> Result<Board, FieldError> {
    let Value::Array(items) = value else {
        return Err(FieldError::new(pointer, format!("{} is not an array: expected one string a row, top row first", shown(value))));
    };
    let mut rows = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let row = item
            .as_str()
            .ok_or_else(|| FieldError::new(format!("{pointer}/{index}"), format!("row {}: {} is not a string", index + 1, shown(item))))?;
        rows.push(row);
    }
    board_from_rows(geometry, &rows).map_err(|error| {
        let pointer = error.row.map_or_else(|| pointer.to_owned(), |row| format!("{pointer}/{row}"));
        FieldError::new(pointer, error.to_string())
    })
}

fn setup_error(geometry: &Geometry, setup: &Setup, error: &SetupError) -> FieldError {
    let without_liberty = |pointer: String, board: Board, at: Move| {
        let row = match at {
            Move::Stone(point) => geometry.rows() - 1 - usize::from(point) / geometry.cols(),
            Move::Pass => 0,
        };
        let rows = board_rows(geometry, board);
        FieldError::new(
            format!("{pointer}/{row}"),
            format!("row {} {:?}: the chain at {} has no liberty, such a board cannot occur", row + 1, rows[row], at.vertex(geometry)),
        )
    };
    match *error {
        SetupError::NoLiberty(at) => without_liberty("/setup/rows".to_owned(), setup.board, at),
        SetupError::EarlierNoLiberty(index, at) => without_liberty(format!("/setup/earlier/{index}"), setup.earlier[index], at),
        SetupError::Passes(passes) => FieldError::new("/setup/passes", format!("passes {passes} is not valid: expected 0 or 1")),
    }
}

/// Reads a setup file: the JSON of `setup`, or rows and a last line `to move: black`.
pub fn parse_setup_text(text: &str) -> Result<Value, String> {
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map(|StrictJson(value)| value).map_err(|error| format!("is not valid JSON: {error}"));
    }
    let mut rows: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = rows.pop().ok_or("is empty: expected the board's rows and a last line \"to move: black\" or \"to move: white\"")?;
    let to_move = last
        .to_ascii_lowercase()
        .strip_prefix("to move:")
        .map(|color| color.trim().to_owned())
        .ok_or_else(|| format!("has the last line {last:?}: expected \"to move: black\" or \"to move: white\""))?;
    Ok(json!({"rows": rows, "to_move": to_move}))
}

/// A field name as part of a JSON pointer.
pub fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fields: Value) -> Result<Position, FieldError> {
        Position::from_fields(fields.as_object().expect("an object"))
    }

    #[test]
    fn errors_point_at_the_field_and_name_the_value() {
        for (fields, pointer, words) in [
            (json!({}), "/board", "missing"),
            (json!({"board": 4}), "/board", "4"),
            (json!({"board": "9x9"}), "/board", "\"9x9\""),
            (json!({"board": "2x2", "moves": 3}), "/moves", "3"),
            (json!({"board": "2x2", "moves": ["A1", 7]}), "/moves/1", "7"),
            (json!({"board": "2x2", "moves": ["A1", "C9"]}), "/moves/1", "\"C9\""),
            (json!({"board": "2x2", "moves": ["A1", "A1"]}), "/moves/1", "occupied"),
            (json!({"board": "2x2", "moves": "A1 B2 A1"}), "/moves", "move 3, A1"),
            (json!({"board": "1x2", "moves": ["A1", "B1", "A1"]}), "/moves/2", "superko: it recreates the board after move 1"),
            (json!({"board": "1x2", "moves": ["pass", "pass", "A1"]}), "/moves/2", "ended the game"),
            (json!({"board": "1x1", "moves": ["A1"]}), "/moves/0", "suicide"),
            (json!({"board": "1x3", "setup": 5}), "/setup", "5"),
            (json!({"board": "1x3", "setup": {"to_move": "black"}}), "/setup/rows", "missing"),
            (json!({"board": "1x3", "setup": {"rows": ["..."]}}), "/setup/to_move", "missing"),
            (json!({"board": "1x3", "setup": {"rows": ["..."], "to_move": "red"}}), "/setup/to_move", "red"),
            (json!({"board": "1x3", "setup": {"rows": ["..."], "to_move": "black", "ko": 1}}), "/setup/ko", "ko"),
            (json!({"board": "1x3", "setup": {"rows": ["..."], "to_move": "black", "passes": 2}}), "/setup/passes", "2"),
            (json!({"board": "1x3", "setup": {"rows": ["...", "..."], "to_move": "black"}}), "/setup/rows", "2 rows"),
            (json!({"board": "2x3", "setup": {"rows": ["...", ".."], "to_move": "black"}}), "/setup/rows/1", ".."),
            (json!({"board": "2x3", "setup": {"rows": ["...", ".?."], "to_move": "black"}}), "/setup/rows/1", "'?'"),
            (json!({"board": "2x3", "setup": {"rows": ["OX.", "X.."], "to_move": "black"}}), "/setup/rows/0", "A2"),
            (json!({"board": "1x3", "setup": {"rows": ["..."], "to_move": "black", "earlier": [["XXX"]]}}), "/setup/earlier/0/0", "A1"),
            (
                json!({"board": "1x3", "setup": {"rows": ["..."], "to_move": "black", "earlier": [["X.."]]}, "moves": ["A1"]}),
                "/moves/0",
                "earlier board 1",
            ),
        ] {
            let error = read(fields.clone()).expect_err(&fields.to_string());
            assert_eq!(error.pointer, pointer, "{fields}: {}", error.detail);
            assert!(error.detail.contains(words), "{fields}: {}", error.detail);
        }
    }

    #[test]
    fn a_position_reads_back_from_its_own_json() {
        let setup = json!({"rows": [".O.", "X.."], "to_move": "white", "passes": 1, "earlier": [["X..", "..."]]});
        let position = read(json!({"board": "2x3", "setup": setup, "moves": "c1,B1"})).expect("legal");
        assert_eq!(position.moves(), ["C1", "B1"]);
        assert_eq!(position.setup(), Some(setup));
        assert_eq!(position.to_move(), Color::White);
    }

    #[test]
    fn setup_files_are_json_or_rows() {
        let rows = parse_setup_text(".X.\n...\n\nTo move: White\n").expect("rows");
        assert_eq!(rows, json!({"rows": [".X.", "..."], "to_move": "white"}));
        assert_eq!(parse_setup_text(&rows.to_string()), Ok(rows));
        for bad in ["", "X..", "{", "X..\nmove: black"] {
            assert!(parse_setup_text(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn komi_is_a_half_integer() {
        assert_eq!(read_komi(&json!(1.5)).map(Komi::as_f64), Ok(1.5));
        for bad in [json!(1), json!(0.25), json!("1.5"), json!(65.5), json!(null)] {
            assert_eq!(read_komi(&bad).expect_err("no half-integer").pointer, "/komi");
        }
    }
}

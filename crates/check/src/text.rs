//! Certificates and positions as text, for reading.

use std::io::{Read, Write};

use crate::Error;
use crate::eyes::Claim;
use crate::reader::{Header, Reader, Record, Reference, Step};
use crate::rules::{Color, Grid, Position, points};

/// The name of a player.
pub(crate) fn color(color: Color) -> &'static str {
    match color {
        Color::Black => "black",
        Color::White => "white",
    }
}

/// A position in one line.
pub(crate) fn position(grid: &Grid, Position { board, to_move, passes }: Position) -> String {
    let passes = ["", " after a pass", " after two passes"].get(passes as usize).unwrap_or(&" after passes");
    format!("{} {} to move{passes}", grid.draw(board), color(to_move))
}

/// The header as it stands in the file, with the empty line after it.
fn header(header: &Header) -> String {
    let Header { grid, winner, to_move, passes, history, .. } = header;
    let boards: String = history.iter().map(|board| grid.draw(*board) + "\n").collect();
    format!(
        "superko certificate 1\nboard {}x{}\nkomi {}\nwinner {}\nto move {}\npasses {passes}\nhistory {}\n{boards}\n",
        grid.rows,
        grid.cols,
        header.komi(),
        color(*winner),
        color(*to_move),
        history.len()
    )
}

fn reference(Reference { lemma, symmetry }: Reference) -> String {
    if symmetry == 0 { format!("{lemma}") } else { format!("{lemma}s{symmetry}") }
}

fn claim(grid: &Grid, Claim { a, t }: Claim) -> String {
    let set = |set| points(set).map(|p| grid.name(p)).collect::<Vec<_>>().join(" ");
    format!("A {{{}}} T {{{}}}", set(a), set(t))
}

fn step(grid: &Grid, content: &Step) -> String {
    match content {
        Step::End => "end".into(),
        Step::Eyes(eyes) => format!("eyes {}", claim(grid, *eyes)),
        Step::Miai(ways) => {
            let ways: Vec<_> = ways.iter().map(|way| format!("{} {}", grid.name(way.point), claim(grid, way.claim))).collect();
            format!("miai {}", ways.join(", "))
        }
        Step::Move(point, child) => format!("move {} -> {}", point.map_or("pass".into(), |p| grid.name(p)), reference(*child)),
        Step::Replies(pass, replies) => {
            let mut line = format!("replies pass -> {}", reference(*pass));
            for reply in replies {
                line += &format!(", {} -> {}", grid.name(reply.point), reply.answer.map_or("superko".into(), reference));
            }
            line
        }
    }
}

/// Why a certificate was not written as text.
#[derive(Debug)]
pub enum TextError {
    /// The certificate cannot be read.
    Certificate(Error),
    /// The text cannot be written.
    Output(std::io::Error),
}

impl From<Error> for TextError {
    fn from(error: Error) -> TextError {
        TextError::Certificate(error)
    }
}

impl From<std::io::Error> for TextError {
    fn from(error: std::io::Error) -> TextError {
        TextError::Output(error)
    }
}

/// Writes the header and a line for each record, and judges nothing but whether it can be read.
pub fn write_text(input: impl Read, output: &mut dyn Write) -> Result<(), TextError> {
    let (head, mut reader) = Reader::new(input)?;
    output.write_all(header(&head).as_bytes())?;
    loop {
        let number = reader.lemmas();
        match reader.record(&head)? {
            Record::Lemma(at, content) => writeln!(output, "{number}: {}: {}", position(&head.grid, at), step(&head.grid, &content))?,
            Record::Root(root) => {
                writeln!(output, "{number} lemmas, root {}", reference(root))?;
                return Ok(());
            }
        }
    }
}

//! Any bytes: no panic, both ways of checking agree, and what is accepted about a board of at most three points is true by all lines of play.
#![no_main]

use libfuzzer_sys::fuzz_target;
use superko_check::rules::{Board, Color, Grid};
use superko_check::{Report, check, check_in_parallel, write_text};

fuzz_target!(|bytes: &[u8]| {
    let checked = check(bytes, &mut |_| {});
    // A thread for each input would slow the fuzzer down.
    if bytes.len() % 64 == 0 {
        assert_eq!(check_in_parallel(bytes, &mut |_| {}), checked);
        let _ = write_text(bytes, &mut std::io::sink());
    }
    if let Ok(report) = checked
        && report.size.0 * report.size.1 <= 3
    {
        assert!(is_true(&report), "accepted, but false: {}", report.sentence());
    }
});

fn is_true(report: &Report) -> bool {
    let grid = Grid::new(report.size.0, report.size.1);
    let root = read(&grid, &report.root.join("/"));
    let mut history: Vec<Board> = report.earlier.iter().map(|board| read(&grid, board)).collect();
    history.push(root);
    let komi: f64 = report.komi.parse().expect("a komi");
    wins(&grid, report.winner, komi, root, report.to_move, report.passes, &mut history)
}

/// Point 0 is the leftmost one of the lowest row.
fn read(grid: &Grid, text: &str) -> Board {
    let mut board = Board::default();
    for (point, stone) in text.split('/').rev().flat_map(str::chars).enumerate() {
        match stone {
            'X' => board.black |= 1 << point,
            'O' => board.white |= 1 << point,
            _ => {}
        }
    }
    assert_eq!(grid.draw(board), text);
    board
}

/// Whether `winner` wins when both play as well as they can; every line is played to its end.
fn wins(grid: &Grid, winner: Color, komi: f64, board: Board, to_move: Color, passes: u8, history: &mut Vec<Board>) -> bool {
    if passes == 2 {
        return (grid.score(board) as f64 > komi) == (winner == Color::Black);
    }
    let mut results = Vec::new();
    results.push(wins(grid, winner, komi, board, to_move.opponent(), passes + 1, history));
    for point in (0..grid.count()).filter(|point| board.stones() >> point & 1 == 0) {
        let Some(next) = grid.play(board, to_move, point) else { continue };
        if !history.contains(&next) {
            history.push(next);
            results.push(wins(grid, winner, komi, next, to_move.opponent(), 0, history));
            history.pop();
        }
    }
    if to_move == winner { results.contains(&true) } else { !results.contains(&false) }
}

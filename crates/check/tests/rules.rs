//! The rules.

use superko_check::rules::{Board, Color, Grid};

fn board(grid: &Grid, rows: &str) -> Board {
    let mut board = Board::default();
    for (r, row) in rows.split('/').rev().enumerate() {
        for (c, char) in row.chars().enumerate() {
            let point = 1 << (r * grid.cols as usize + c);
            match char {
                'X' => board.black |= point,
                'O' => board.white |= point,
                _ => {}
            }
        }
    }
    assert_eq!(grid.draw(board), rows);
    board
}

#[test]
fn captures_and_suicide() {
    for (rows, cols, before, color, point, after) in [
        (1, 3, "X.X", Color::White, 1, Some(".O.")),
        (1, 3, "XX.", Color::White, 2, Some("..O")),
        (1, 3, "XX.", Color::Black, 2, None),
        (1, 3, "X..", Color::Black, 0, None),
        (1, 1, ".", Color::Black, 0, None),
        (2, 2, "XX/X.", Color::Black, 1, None),
        (2, 2, "XX/X.", Color::White, 1, Some("../.O")),
        (2, 3, "XO./.XO", Color::White, 0, Some(".O./O.O")),
        (2, 3, "XO./.XO", Color::Black, 0, None),
        (3, 3, ".X./XOX/...", Color::Black, 1, Some(".X./X.X/.X.")),
        (3, 3, ".X./X.X/.X.", Color::White, 4, None),
        // Stones in column 0 and in the last column of the row below are not neighbours.
        (2, 3, "X../..O", Color::White, 4, Some("XO./..O")),
        (3, 3, "..O/X.X/OO.", Color::Black, 2, Some("..O/X.X/OOX")),
    ] {
        let grid = Grid::new(rows, cols);
        let played = grid.play(board(&grid, before), color, point);
        assert_eq!(played, after.map(|after| board(&grid, after)), "{before} {color:?} {point}");
    }
}

#[test]
fn scores() {
    for (rows, cols, position, score) in [
        (1, 1, ".", 0),
        (1, 3, ".X.", 3),
        (1, 3, "X.O", 0),
        (1, 4, "XX.O", 1),
        (2, 3, ".O./.O.", -6),
        (3, 3, ".XO/XX./.XO", 3 + 2 + 2 - 2 - 1 + 1 - 1),
        (8, 7, "......./......./......./......./......./......./......./X......", 56),
    ] {
        let grid = Grid::new(rows, cols);
        assert_eq!(grid.score(board(&grid, position)), score, "{position}");
    }
}

#[test]
fn symmetries_move_points_as_the_document_says() {
    let square = Grid::new(3, 3);
    let one = board(&square, ".../.../.X.");
    let images =
        ["/.../.../.X.", "/.X./.../...", "/.../.../.X.", "/.X./.../...", "/.../X../...", "/.../X../...", "/.../..X/...", "/.../..X/..."];
    for (s, rows) in images.iter().enumerate() {
        assert_eq!(square.draw(square.board_image(s as u8, one)), rows[1..], "symmetry {s}");
    }
    let corner = board(&square, ".../.../.XX");
    assert_eq!(square.draw(square.board_image(5, corner)), ".../X../X..", "rows and columns exchanged, then rows reversed");
    for grid in [Grid::new(1, 5), Grid::new(2, 3), Grid::new(3, 3), Grid::new(7, 8), Grid::new(1, 62)] {
        let set = 0x9abc_def0_f0e1_1234 & grid.all;
        for a in 0..grid.symmetries() {
            assert_eq!(grid.image(a, grid.all), grid.all);
            assert_eq!(grid.image(a, grid.neighbours(set)), grid.neighbours(grid.image(a, set)));
            for s in 0..grid.symmetries() {
                // Undone by s, and then s again, is a.
                assert_eq!(grid.image(s, grid.image(grid.undo(a, s), set)), grid.image(a, set));
            }
        }
    }
}

#[test]
fn counts_of_legal_boards_are_the_known_ones() {
    // Tromp and Farnebäck, "Combinatorics of Go", 2007: boards on which every chain has a liberty.
    for (rows, cols, legal) in [(1, 1, 1), (1, 2, 5), (2, 2, 57), (2, 3, 489), (3, 3, 12675)] {
        let grid = Grid::new(rows, cols);
        let n = grid.count();
        let is_legal = |code: &u32| {
            let stones = |color| (0..n).filter(|p| code / 3u32.pow(*p) % 3 == color).fold(0, |set, p| set | 1u64 << p);
            let board = Board { black: stones(1), white: stones(2) };
            grid.with_liberty(board.black, board) == board.black && grid.with_liberty(board.white, board) == board.white
        };
        assert_eq!((0..3u32.pow(n)).filter(is_legal).count(), legal, "{rows}x{cols}");
    }
}

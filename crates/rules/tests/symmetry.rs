//! Symmetries, exact codes and canonical forms, and that rules and analyses commute with symmetry and with exchanging the colours.

use proptest::prelude::*;
use std::collections::HashSet;
use superko_rules::{Board, Color, Geometry, PureEyes, bits, parse_board_size};

const SIZES: [&str; 16] =
    ["1x1", "1x2", "2x1", "1x7", "2x2", "2x3", "3x3", "3x5", "4x4", "6x6", "5x7", "3x13", "8x8", "1x40", "5x8", "7x1"];

fn draw_board(geometry: &Geometry, black: u64, white: u64) -> Board {
    let mut board = Board { black: black & geometry.full(), white: white & !black & geometry.full() };
    while let Some(chain) = board.breathless_chain(geometry) {
        board.black &= !chain;
        board.white &= !chain;
    }
    board
}

fn swapped(board: Board) -> Board {
    Board { black: board.white, white: board.black }
}

#[test]
fn symmetries_form_a_group() {
    for (name, count) in
        [("1x1", 1), ("1x2", 2), ("2x1", 2), ("1x9", 2), ("64x1", 2), ("2x2", 8), ("2x3", 4), ("3x3", 8), ("8x8", 8), ("3x21", 4)]
    {
        let geometry = parse_board_size(name).unwrap();
        assert_eq!(geometry.symmetries(), count, "{name}");
        for a in 0..count as u8 {
            assert_eq!(geometry.compose(a, geometry.inverse(a)), 0, "{name}");
            assert_eq!(geometry.compose(geometry.inverse(a), a), 0, "{name}");
            assert_eq!((geometry.compose(a, 0), geometry.compose(0, a)), (a, a), "{name}");
            let images: HashSet<usize> = (0..geometry.points()).map(|point| geometry.map_point(a, point)).collect();
            assert_eq!(images.len(), geometry.points(), "{name}: a symmetry is a bijection");
            for point in 0..geometry.points() {
                assert_eq!(geometry.map_mask(a, 1 << point), 1 << geometry.map_point(a, point), "{name}");
                let neighbors = geometry.map_mask(a, geometry.neighbors(1 << point));
                assert_eq!(neighbors, geometry.neighbors(geometry.map_mask(a, 1 << point)), "{name}: neighbours stay neighbours");
            }
            for b in 0..count as u8 {
                let ab = geometry.compose(a, b);
                for point in 0..geometry.points() {
                    assert_eq!(
                        geometry.map_point(ab, point),
                        geometry.map_point(a, geometry.map_point(b, point)),
                        "{name}: first b, then a"
                    );
                }
                for c in 0..count as u8 {
                    assert_eq!(geometry.compose(ab, c), geometry.compose(a, geometry.compose(b, c)), "{name}");
                }
            }
        }
    }
}

#[test]
fn small_codes_are_exactly_the_ternary_numbers() {
    for name in ["1x1", "1x6", "2x3", "3x3"] {
        let geometry = parse_board_size(name).unwrap();
        for code in 0..3u128.pow(geometry.points() as u32) {
            assert_eq!(geometry.code(geometry.decode(code)), code, "{name}");
        }
    }
}

#[test]
fn neighbours_are_the_points_one_step_away() {
    for rows in 1..=64 {
        for cols in 1..=64 {
            let Some(geometry) = Geometry::get(rows, cols) else { continue };
            for point in 0..rows * cols {
                let (row, col) = (point / cols, point % cols);
                let next_to = |other: usize| (other / cols).abs_diff(row) + (other % cols).abs_diff(col) == 1;
                let expected = (0..rows * cols).filter(|&other| next_to(other)).fold(0u64, |set, other| set | 1 << other);
                assert_eq!(geometry.neighbors(1 << point), expected, "{rows}x{cols} point {point}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn codes_are_exact(size in 0..SIZES.len(), a in any::<[u64; 2]>(), b in any::<[u64; 2]>()) {
        let geometry = parse_board_size(SIZES[size]).unwrap();
        let (a, b) = (draw_board(geometry, a[0], a[1]), draw_board(geometry, b[0], b[1]));
        prop_assert_eq!(geometry.decode(geometry.code(a)), a);
        prop_assert_eq!(a == b, geometry.code(a) == geometry.code(b));
        if geometry.points() <= 39 {
            prop_assert!(geometry.code(a) < 1 << 62, "four times the code fits in 64 bits");
        }
    }

    #[test]
    fn the_canonical_form_is_invariant(size in 0..SIZES.len(), masks in any::<[u64; 2]>(), mirror in any::<bool>(), sym in any::<u8>()) {
        let geometry = parse_board_size(SIZES[size]).unwrap();
        let mut board = draw_board(geometry, masks[0], masks[1]);
        let count = geometry.symmetries() as u8;
        let sym = sym % count;
        if mirror {
            // A board that some symmetry maps to itself.
            let image = geometry.map_board(sym, board);
            board = draw_board(geometry, board.black | image.black, board.white | image.white);
        }
        let canonical = geometry.canonical(board);
        prop_assert_eq!(geometry.canonical(geometry.map_board(sym, board)).code, canonical.code);
        let reaches = (0..count).filter(|&sym| geometry.code(geometry.map_board(sym, board)) == canonical.code);
        prop_assert_eq!(reaches.clone().fold(0u8, |set, sym| set | 1 << sym), canonical.syms, "exactly the symmetries that reach it");
        prop_assert_eq!(reaches.min(), Some(canonical.sym));
        prop_assert_eq!(geometry.code(geometry.map_board(canonical.sym, board)), canonical.code);
        prop_assert!((0..count).all(|sym| geometry.code(geometry.map_board(sym, board)) >= canonical.code));
    }

    #[test]
    fn play_score_and_eyes_commute(size in 0..SIZES.len(), masks in any::<[u64; 2]>(), sym in any::<u8>(), thin in any::<u64>()) {
        let geometry = parse_board_size(SIZES[size]).unwrap();
        let sym = sym % geometry.symmetries() as u8;
        let board = draw_board(geometry, masks[0], masks[1] & thin);
        let image = geometry.map_board(sym, board);
        prop_assert_eq!(image.area_score(geometry), board.area_score(geometry));
        prop_assert_eq!(swapped(board).area_score(geometry), -board.area_score(geometry));
        for point in bits(geometry.full()) {
            for color in [Color::Black, Color::White] {
                let placed = board.place(geometry, color, point);
                let there = image.place(geometry, color, geometry.map_point(sym, point));
                prop_assert_eq!(placed.map(|placed| geometry.map_board(sym, placed.board)), there.map(|placed| placed.board));
                prop_assert_eq!(placed.map(|placed| geometry.map_mask(sym, placed.captured)), there.map(|placed| placed.captured));
                let other = swapped(board).place(geometry, color.opponent(), point);
                prop_assert_eq!(placed.map(|placed| (swapped(placed.board), placed.captured)), other.map(|placed| (placed.board, placed.captured)));
            }
        }
        let eyes = PureEyes::analyze(geometry, board.black);
        let mapped = PureEyes { alive: geometry.map_mask(sym, eyes.alive), territory: geometry.map_mask(sym, eyes.territory) };
        prop_assert_eq!(PureEyes::analyze(geometry, image.black), mapped);
    }
}

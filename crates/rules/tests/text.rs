//! Board sizes, GTP vertices and diagrams as text.

use proptest::prelude::*;
use superko_rules::{Board, Geometry, Move, board_from_rows, board_rows, parse_board_size, parse_moves};

#[test]
fn board_sizes() {
    for name in ["1x1", "4x7", "8x8", "1x64", "64x1", "2x32", "3x21", "21x3", "1x9"] {
        assert_eq!(parse_board_size(name).unwrap().name(), name);
    }
    assert_eq!(parse_board_size("4X7").unwrap().name(), "4x7");
    for bad in [
        "", "x", "4", "4x", "x4", "0x4", "4x0", "9x9", "4x9", "1x65", "2x33", "3x22", "04x4", "+4x4", "4x4x4", " 4x4", "-1x4", "4×4",
        "100x1",
    ] {
        let error = parse_board_size(bad).unwrap_err();
        assert_eq!(error.value, bad);
        assert!(error.to_string().contains("ROWSxCOLUMNS"), "{error}");
    }
}

#[test]
fn vertices() {
    let geometry = parse_board_size("4x7").unwrap();
    assert_eq!(Move::parse(geometry, "A1"), Ok(Move::Stone(0)));
    assert_eq!(Move::parse(geometry, "g4"), Ok(Move::Stone(27)));
    assert_eq!(Move::parse(geometry, "B2"), Ok(Move::Stone(8)));
    assert_eq!(Move::parse(geometry, "PASS"), Ok(Move::Pass));
    for bad in ["", "A", "1", "A0", "A5", "H1", "I1", "A01", "A1x", "AA1", "A-1", "É1", "A٣", "pas", "A1 ", "A+1", "A999999999999999999999"]
    {
        let error = Move::parse(geometry, bad).unwrap_err();
        assert_eq!(error.value, bad);
        assert!(error.to_string().contains("A1 to G4"), "{error}");
    }
    let wide = parse_board_size("1x64").unwrap();
    let names: Vec<String> = (0..64).map(|point| Move::Stone(point).vertex(wide)).collect();
    assert_eq!((&*names[7], &*names[8], &*names[24], &*names[25], &*names[50], &*names[63]), ("H1", "J1", "Z1", "AA1", "BA1", "BO1"));
}

#[test]
fn move_lists() {
    let geometry = parse_board_size("2x2").unwrap();
    let moves = vec![Move::Stone(0), Move::Pass, Move::Stone(3)];
    assert_eq!(parse_moves(geometry, "A1 pass B2"), Ok(moves.clone()));
    assert_eq!(parse_moves(geometry, " a1,pass,\n\tb2 "), Ok(moves));
    assert_eq!(parse_moves(geometry, ""), Ok(Vec::new()));
    assert_eq!(parse_moves(geometry, "A1 C1 B2").unwrap_err().value, "C1", "the offending word is named");
}

#[test]
fn diagrams() {
    let geometry = parse_board_size("2x3").unwrap();
    let board = board_from_rows(geometry, &["OOO", ".X."]).unwrap();
    assert_eq!(board, Board { black: 0b000_010, white: 0b111_000 }, "the top row comes first");
    assert_eq!(board_rows(geometry, board), ["OOO", ".X."]);
    let wrong_count = board_from_rows(geometry, &["OOO"]).unwrap_err();
    assert_eq!((wrong_count.row, &*wrong_count.value), (None, "1"));
    assert!(wrong_count.to_string().contains("2 rows for a 2x3 board"), "{wrong_count}");
    let wrong_width = board_from_rows(geometry, &["...", "...."]).unwrap_err();
    assert_eq!((wrong_width.row, &*wrong_width.value), (Some(1), "...."));
    assert!(wrong_width.to_string().contains("row 2"), "{wrong_width}");
    let wrong_symbol = board_from_rows(geometry, &["x..", "..."]).unwrap_err();
    assert_eq!(wrong_symbol.row, Some(0));
    assert!(wrong_symbol.expected.contains("'x'"), "{wrong_symbol}");
    assert!(board_from_rows(geometry, &["é..", "..."]).is_err(), "characters are counted, not bytes");
}

fn sizes() -> impl Strategy<Value = &'static Geometry> {
    (1usize..=64, 1usize..=64).prop_filter_map("a board that exists", |(rows, cols)| Geometry::get(rows, cols))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn everything_written_reads_back(geometry in sizes(), black in any::<u64>(), white in any::<u64>()) {
        prop_assert_eq!(parse_board_size(&geometry.name()).unwrap(), geometry);
        for point in 0..geometry.points() as u8 {
            let vertex = Move::Stone(point).vertex(geometry);
            prop_assert!(!vertex.contains('I'));
            prop_assert_eq!(Move::parse(geometry, &vertex), Ok(Move::Stone(point)));
            prop_assert_eq!(Move::parse(geometry, &vertex.to_lowercase()), Ok(Move::Stone(point)));
        }
        let board = Board { black: black & geometry.full(), white: white & !black & geometry.full() };
        prop_assert_eq!(board_from_rows(geometry, &board_rows(geometry, board)), Ok(board));
    }

    #[test]
    fn no_text_makes_a_reader_panic(geometry in sizes(), text in "\\PC{0,12}", rows in prop::collection::vec("[XO.x ]{0,5}", 0..5)) {
        let _ = parse_board_size(&text);
        let _ = Move::parse(geometry, &text);
        let _ = parse_moves(geometry, &text);
        let _ = board_from_rows(geometry, &rows);
    }
}

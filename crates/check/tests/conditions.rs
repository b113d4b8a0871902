//! For each condition of CERTIFICATE.md: a certificate that is refused because of it alone.

mod common;

use common::*;

fn writer(size: &str, komi: &str, to_move: &str, passes: u8, history: &[&str]) -> Writer {
    Writer::new(header(size, komi, "white", to_move, passes, history))
}

/// White wins 1x1 by passing.
fn passes_1x1() -> Writer {
    let mut w = writer("1x1", "0.5", "black", 0, &["."]);
    w.end(BLACK, ".").play(WHITE, 1, ".", 255, 0, 0).replies(BLACK, 0, ".", 1, &[]);
    w
}

/// White, to move on a 1x2 board with a black stone, captures it; that Black may not capture back is known from the history.
fn capture_1x2(to_move: &str, history: &[&str]) -> Writer {
    let mut w = writer("1x2", "0.5", to_move, 0, history);
    w.end(BLACK, ".O").play(WHITE, 1, ".O", 255, 0, 0).replies(BLACK, 0, ".O", 1, &[None]);
    w
}

fn one_claim(size: &str, rows: &str, a: u64, t: u64) -> Vec<u8> {
    writer(size, "0.5", "black", 0, &[rows]).eyes(BLACK, 0, rows, a, t).file()
}

#[test]
fn valid_ones_say_what_they_prove() {
    let report = valid(&passes_1x1().file());
    assert_eq!(report.sentence(), "White wins 1x1 at komi 0.5 from . with Black to move, when no other board occurred before.");
    assert_eq!((report.lemmas(), report.kinds), (3, [1, 0, 0, 1, 1]));

    let mut capture = capture_1x2("white", &["X."]);
    let report = valid(&capture.play(WHITE, 0, "X.", 1, 2, 0).file());
    assert_eq!((report.created, report.longest_x), (1, 1));

    let report = valid(&capture_1x2("black", &["..", "X.", ".O"]).file());
    assert!(report.sentence().ends_with("when just the other 2 boards of the certificate's history occurred before."));

    let mut black = Writer::new(header("1x3", "2.5", "black", "white", 1, &[".X."]));
    black.eyes(BLACK, 0, ".X.", 2, 5).eyes(BLACK, 1, ".X.", 2, 5).play(BLACK, 0, ".X.", 255, 0, 0);
    invalid(&black.file(), Some(2), "check 2, kind 3", "the reference is to");
}

#[test]
fn kinds_fit_the_player_to_move_and_the_passes() {
    let mut w = writer("1x3", "0.5", "black", 0, &[".O."]);
    invalid(&w.clone().head(0, BLACK, 1, ".O.").file(), Some(0), "check 2, kind 0", "two passes");
    invalid(&w.clone().end(BLACK, ".X.").file(), Some(0), "check 2, kind 0", "not won");
    invalid(&w.clone().eyes(BLACK, 1, ".O.", 2, 5).file(), Some(0), "check 2, kind 1", "end the game");
    invalid(&w.clone().eyes(WHITE, 2, ".O.", 2, 5).file(), Some(0), "check 2, kind 1", "end the game");
    valid(&w.eyes(WHITE, 1, ".O.", 2, 5).eyes(BLACK, 0, ".O.", 2, 5).file());
    invalid(&w.clone().play(BLACK, 0, ".O.", 255, 0, 0).file(), Some(2), "check 1, kind 3", "");
    invalid(&w.clone().play(WHITE, 2, ".O.", 255, 0, 0).file(), Some(2), "check 2, kind 3", "has ended");
    invalid(&w.clone().replies(WHITE, 0, ".O.", 0, &[]).file(), Some(2), "check 1, kind 4", "");
    invalid(&w.clone().replies(BLACK, 2, ".O.", 0, &[]).file(), Some(2), "check 2, kind 4", "has ended");

    let ways = [(2, 0b010110, 0b101001), (3, 0b011010, 0b100101)];
    let w = writer("1x6", "0.5", "black", 0, &[".O..O."]);
    valid(&w.clone().miai(BLACK, 0, ".O..O.", &ways).file());
    invalid(&w.clone().miai(WHITE, 0, ".O..O.", &ways).file(), Some(0), "check 1, kind 2", "");
    invalid(&w.clone().miai(BLACK, 1, ".O..O.", &ways).file(), Some(0), "check 2, kind 2", "pass");
}

#[test]
fn moves_are_legal_and_lead_to_the_reference() {
    let with_move = |rows: &str, point, symmetry| {
        let mut w = writer("1x3", "0.5", "white", 0, &[rows]);
        w.eyes(BLACK, 0, ".O.", 2, 5).play(WHITE, 0, rows, point, 0, symmetry).file()
    };
    valid(&with_move("...", 1, 0));
    valid(&with_move("...", 1, 2));
    valid(&with_move("X..", 1, 3));
    valid(&with_move("X.X", 1, 0));
    invalid(&with_move("...", 0, 0), Some(1), "check 2, kind 3", "the reference is to");
    invalid(&with_move("..O", 1, 0), Some(1), "check 2, kind 3", "leads to .OO black to move, but the reference is to .O. black");
    invalid(&with_move(".X.", 1, 0), Some(1), "check 2, kind 3", "not empty");
    invalid(&with_move("...", 255, 0), Some(1), "check 2, kind 3", "after a pass, but the reference");

    let mut w = writer("1x5", "0.5", "white", 0, &[".X.X."]);
    w.eyes(BLACK, 0, ".O.O.", 10, 21).play(WHITE, 0, ".X.X.", 2, 0, 0);
    invalid(&w.file(), Some(1), "check 2, kind 3", "suicide");
}

#[test]
fn all_replies_are_answered() {
    // The pass may not be left out, and does not lead to another board, player or number of passes.
    let mut w = writer("1x2", "0.5", "black", 0, &["X.", ".O"]);
    w.end(BLACK, ".O").play(WHITE, 1, ".O", 255, 0, 0);
    valid(&w.clone().replies(BLACK, 0, ".O", 1, &[None]).file());
    invalid(&w.clone().replies(BLACK, 0, ".O", 0, &[None]).file(), Some(2), "check 2, kind 4", "the pass");
    unreadable(&w.clone().head(4, BLACK, 0, ".O").raw(&[0, 0]).file(), "0 stands where a reference should");
    // A reply left out moves all that follows, and a reply to a wrong place is seen.
    assert!(check(&w.clone().replies(BLACK, 0, ".O", 1, &[]).file()).is_err());
    invalid(&w.clone().replies(BLACK, 0, ".O", 1, &[Some((0, 0))]).file(), Some(2), "check 2, kind 4", "the reply A1");
}

#[test]
fn own_board_is_not_in_b() {
    let mut w = capture_1x2("black", &["X.", ".O"]);
    valid(&w.file());
    w.play(WHITE, 0, "X.", 1, 2, 0);
    valid(&w.clone().replies(BLACK, 0, ".O", 1, &[None]).file());
    // Now the capture is answered by capturing back, which makes the board again.
    invalid(&w.clone().replies(BLACK, 0, ".O", 1, &[Some((3, 0))]).file(), Some(4), "check 3", "in B");
    // The same with the mirror image of the answer.
    let mut w = capture_1x2("black", &["X.", ".O"]);
    w.play(WHITE, 0, ".X", 0, 2, 2);
    invalid(&w.clone().replies(BLACK, 0, ".O", 1, &[Some((3, 2))]).file(), Some(4), "check 3", "in B");
}

#[test]
fn no_own_stone_is_on_t() {
    let mut w = writer("1x5", "0.5", "black", 0, &["OO..."]);
    w.eyes(BLACK, 0, ".O.O.", 10, 21).play(WHITE, 1, ".OX..", 3, 0, 0);
    w.replies(BLACK, 0, ".OX..", 1, &[None, None, None]).play(WHITE, 0, "..X..", 1, 2, 0);
    w.end(BLACK, "OO...").play(WHITE, 1, "OO...", 255, 4, 0);
    invalid(&w.clone().replies(BLACK, 0, "OO...", 5, &[Some((3, 0)), None, None]).file(), Some(6), "check 3", "on a point of T");
    // Without that answer the lemma holds, and only the history lacks what it requires.
    invalid(&w.clone().replies(BLACK, 0, "OO...", 5, &[None, None, None]).file(), None, "check 5", "in X");
}

#[test]
fn x_has_at_most_255_boards() {
    let chain = |first: usize| {
        let rows = |stones: usize| format!("{}{}", "O".repeat(stones), ".".repeat(62 - stones));
        let last = first + 4;
        let mut w = writer("1x62", "99.5", "black", 0, &[&rows(first)]);
        w.end(BLACK, &rows(last)).play(WHITE, 1, &rows(last), 255, 0, 0);
        for stones in (first..=last).rev() {
            w.replies(BLACK, 0, &rows(stones), w.lemmas - 1, &vec![None; 62 - stones]);
            if stones > first {
                w.play(WHITE, 1, &rows(stones - 1), stones as u8 - 1, w.lemmas - 1, 0);
            }
        }
        w
    };
    invalid(&chain(9).file(), None, "check 5", "in X and not in the history");
    invalid(&chain(8).file(), Some(10), "check 4", "260 boards");
}

#[test]
fn root_fits_the_history() {
    // (i) No board of the history is in B.
    let root = |history: &[&str]| capture_1x2("white", history).play(WHITE, 0, "X.", 1, 2, 0).file();
    valid(&root(&["..", "X."]));
    invalid(&root(&[".O", "X."]), None, "check 5", "in B");
    // (ii) All boards of X are in the history.
    valid(&capture_1x2("black", &["X.", ".O"]).file());
    invalid(&capture_1x2("black", &["..", ".O"]).file(), None, "check 5", "in X");
    // (iii) No board of the history has a stone of the winner on T.
    let root = |history: &[&str]| writer("1x3", "0.5", "black", 0, history).eyes(BLACK, 0, ".O.", 2, 5).file();
    valid(&root(&["X..", ".O."]));
    invalid(&root(&["O..", ".O."]), None, "check 5", "on a point of T");
    // The position is the root's.
    invalid(&writer("1x3", "0.5", "white", 0, &[".O."]).eyes(BLACK, 0, ".O.", 2, 5).file(), None, "kind 7", "the reference is to");
    invalid(&writer("1x3", "0.5", "white", 0, &[".O."]).eyes(WHITE, 1, ".O.", 2, 5).file(), None, "kind 7", "the reference is to");
    invalid(&writer("1x3", "0.5", "black", 0, &["..."]).eyes(BLACK, 0, ".O.", 2, 5).file(), None, "kind 7", "the reference is to");
    // Every chain has a liberty.
    invalid(&one_claim("1x7", ".O.OXXO", 0b10, 0b101), Some(0), "check 2, kind 1", "two eyes");
    let mut w = writer("1x2", "99.5", "black", 1, &["XO"]);
    w.end(WHITE, "XO").replies(BLACK, 1, "XO", 0, &[]);
    invalid(&w.file(), None, "check 5", "liberty");
}

#[test]
fn claims() {
    const KIND: &str = "check 2, kind 1";
    valid(&one_claim("1x3", ".O.", 2, 5));
    invalid(&one_claim("1x3", ".O.", 0, 5), Some(0), KIND, "A is empty");
    invalid(&one_claim("1x3", ".O.", 3, 4), Some(0), KIND, "not a union of chains");
    invalid(&one_claim("1x3", "OO.", 1, 4), Some(0), KIND, "not a union of chains");
    invalid(&one_claim("1x3", "OO.", 3, 4), Some(0), KIND, "fewer than two eyes");
    // A region with a point that is not next to the chain is no eye; a black stone in a region changes nothing.
    invalid(&one_claim("1x4", "..O.", 4, 8), Some(0), KIND, "fewer than two eyes");
    valid(&one_claim("2x3", ".O./XO.", 0b010010, 0b101101));
    // A region between two chains is an eye of both, if both are in A.
    valid(&one_claim("1x5", ".O.O.", 10, 21));
    invalid(&one_claim("1x5", ".O.O.", 2, 1), Some(0), KIND, "fewer than two eyes");
    valid(&one_claim("2x3", ".O./.O.", 0b010010, 0b101101));
    invalid(&one_claim("2x3", ".O./.O.", 0b010010, 0b100101), Some(0), KIND, "T is not a union of regions");
    invalid(&one_claim("2x3", ".O./.O.", 0b010010, 0b111111), Some(0), KIND, "T is not a union of regions");
    // To the right of A there is another chain, or nothing.
    let (a, c0, b2, c4, c5) = (0b001110_001010, 0b000001_000001, 0b000100, 0b010000_010000, 0b100000_100000);
    valid(&one_claim("2x6", ".OOO.O/.O.O.O", a, c0 | b2));
    invalid(&one_claim("2x6", ".OOO.O/.O.O.O", a, c0 | b2 | c4), Some(0), KIND, "adjacent to a chain outside A");
    invalid(&one_claim("2x6", ".OOO../.O.O..", a, c0 | b2 | c4 | c5), Some(0), KIND, "not adjacent to A");
    // 2x6 needs 6 points at komi 0.5.
    valid(&one_claim("2x6", ".OOO../.O.O..", a, b2));
    invalid(&one_claim("2x6", ".OOO../.O.O..", a, 0), Some(0), KIND, "too few points");
    // How many are needed: White 2 of 3 at komi 0.5 and 3 at -2.5; Black 3 at komi 2.5.
    let three = |winner: &str, rows: &str, komi: &str, t| {
        let to_move = if winner == "white" { (BLACK, "black") } else { (WHITE, "white") };
        Writer::new(header("1x3", komi, winner, to_move.1, 0, &[rows])).eyes(to_move.0, 0, rows, 2, t).file()
    };
    for (komi, need) in [("0.5", 2), ("1.5", 1), ("-0.5", 2), ("-1.5", 3), ("-2.5", 3), ("-3.5", 4), ("9.5", 0)] {
        for (t, size) in [(0, 1), (1, 2), (5, 3)] {
            assert_eq!(check(&three("white", ".O.", komi, t)).is_ok(), size >= need, "White, komi {komi}, {size} points");
            let komi = if let Some(komi) = komi.strip_prefix('-') { komi.into() } else { format!("-{komi}") };
            assert_eq!(check(&three("black", ".X.", &komi, t)).is_ok(), size >= need, "Black, komi {komi}, {size} points");
        }
    }
}

#[test]
fn ways() {
    const KIND: &str = "check 2, kind 2";
    let refused = |rows: &str, ways: &[_], words: &str| {
        let file = writer("1x6", "0.5", "black", 0, &[rows]).miai(BLACK, 0, rows, ways).file();
        invalid(&file, Some(0), KIND, words);
    };
    let (two, three) = ((2, 0b010110, 0b101001), (3, 0b011010, 0b100101));
    valid(&writer("1x6", "0.5", "black", 0, &[".O..O."]).miai(BLACK, 0, ".O..O.", &[two, three]).file());
    refused(".O..O.", &[], "fewer than two");
    refused(".O..O.", &[two], "fewer than two");
    refused(".O..O.", &[three, two], "increasing order");
    refused(".O..O.", &[two, two], "increasing order");
    refused(".O..O.", &[(1, 0b010010, 0), two, three], "B1: the point is not empty");
    refused(".OX.O.", &[two, three], "C1: the point is not empty");
    refused(".O..O.", &[two, (3, 0b011010, 0b100100 | 8)], "D1: T is not");
    refused(".O..O.", &[two, (3, 0, 0b100101)], "D1: A is empty");
    refused(".O..O.", &[two, (5, 0b110010, 0b1)], "F1: a chain of A has fewer");
    // A claim that is there without the point.
    let rows = ".OOO../.O.O..";
    let (a, t) = (0b001110_001010, 0b000001_000101);
    let file = writer("2x6", "0.5", "black", 0, &[rows]).miai(BLACK, 0, rows, &[(5, a, t), (11, a, t)]).file();
    invalid(&file, Some(0), KIND, "the point is not in A");
    // B1 has one liberty, C1: a stone there stops both ways.
    refused("XO..O.", &[two, three], "C1 stops all ways");
    // So does C1 if it is the only liberty of E1.
    refused(".O..OX", &[two, three], "D1 stops all ways");
    // The points of the ways are in T: a history in which White had one is refused.
    let file = writer("1x6", "0.5", "black", 0, &["..O...", ".O..O."]).miai(BLACK, 0, ".O..O.", &[two, three]).file();
    invalid(&file, None, "check 5", "on a point of T");
}

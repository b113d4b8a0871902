//! Damaged files: each is refused in a clear way, and none makes the checker panic.

mod common;

use common::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// A certificate with a record of each kind.
fn all_kinds() -> Writer {
    let ways = [(2, 0b010110, 0b101001), (3, 0b011010, 0b100101)];
    let mut w = Writer::new(header("1x6", "0.5", "white", "white", 0, &["X.....", "....O."]));
    w.end(BLACK, ".O..O.").play(WHITE, 1, ".O..O.", 255, 0, 0);
    w.eyes(WHITE, 0, ".O.OO.", 0b011010, 0b100101).eyes(BLACK, 0, ".O.OO.", 0b011010, 0b100101);
    w.play(WHITE, 0, ".OX.O.", 3, 3, 0).miai(BLACK, 0, ".O..O.", &ways);
    w.replies(BLACK, 0, ".O..O.", 1, &[Some((4, 0)), Some((4, 2))]).play(WHITE, 0, "....O.", 1, 6, 0);
    w
}

#[test]
fn plain_and_compressed_are_the_same() {
    let file = all_kinds().file();
    let report = valid(&file);
    assert_eq!(report.kinds, [1, 2, 1, 3, 1]);
    for level in [CompressionLevel::Fastest, CompressionLevel::Uncompressed] {
        let compressed = compress_to_vec(&file[..], level);
        assert_eq!(valid(&compressed), report);
        unreadable(&[&compressed[..], &[0]].concat(), "follows the zstd frame");
        unreadable(&[&compressed[..], &compressed[..]].concat(), "follows the zstd frame");
        unreadable(&compress_to_vec(&[&file[..], &[0]].concat()[..], level), "follows the end");
        let mut reserved = compressed.clone();
        reserved[4] |= 8;
        unreadable(&reserved, "reserved bit");
        for length in 0..compressed.len() {
            assert!(matches!(check(&compressed[..length]), Err(superko_check::Error::Unreadable(_))), "{length} bytes");
        }
        for bit in 0..8 * compressed.len() {
            let mut flipped = compressed.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let _ = check(&flipped);
        }
    }
}

#[test]
fn a_frame_that_names_another_size() {
    let file = all_kinds().file();
    assert!(file.len() < 256);
    // A single segment with one size byte, one last raw block.
    let frame = |size: u8| {
        let block = (file.len() as u32) << 3 | 1;
        [&[0x28, 0xb5, 0x2f, 0xfd, 0x20, size][..], &block.to_le_bytes()[..3], &file].concat()
    };
    valid(&frame(file.len() as u8));
    unreadable(&frame(file.len() as u8 + 1), "bytes and says");
    unreadable(&frame(file.len() as u8 - 1), "");
}

#[test]
fn truncated_anywhere() {
    let file = all_kinds().file();
    for length in 0..file.len() {
        unreadable(&file[..length], "");
    }
    unreadable(&[&file[..], &[7]].concat(), "follows the end");
    unreadable(&[&file[..], &file[..]].concat(), "follows the end");
}

#[test]
fn every_changed_byte() {
    let writer = all_kinds();
    let file = writer.file();
    let mut accepted = Vec::new();
    for at in 0..file.len() {
        for value in 0..=255 {
            let mut changed = file.clone();
            changed[at] = value;
            let text = superko_check::write_text(&changed[..], &mut Vec::new());
            match check(&changed) {
                Ok(_) if value != file[at] => accepted.push((at, value)),
                Ok(_) => {}
                Err(superko_check::Error::Unreadable(_)) => assert!(text.is_err()),
                Err(superko_check::Error::Invalid { .. }) => {}
            }
        }
    }
    // What is accepted proves something true all the same: at another komi, with another earlier board, by another symmetry of a symmetric board, by an
    // equal lemma, with a smaller T, with black stones in eyes, or with a lemma that is not used.
    let start = writer.header.len();
    for (at, value) in accepted.iter().filter(|(at, _)| *at < start) {
        let char = char::from(*value);
        assert!(char.is_ascii_digit() || "XO.".contains(char), "byte {at}: {char}");
    }
    let in_records = accepted.iter().filter(|(at, _)| *at >= start).count();
    assert_eq!(in_records, 54, "{accepted:?}");
}

#[test]
fn pieces_cut_out_doubled_and_exchanged() {
    let file = all_kinds().file();
    for from in 0..file.len() {
        for to in from + 1..file.len().min(from + 40) {
            let _ = check(&[&file[..from], &file[to..]].concat());
            let _ = check(&[&file[..to], &file[from..]].concat());
            let mut turned = file.clone();
            turned[from..to].reverse();
            let _ = check(&turned);
        }
    }
}

#[test]
fn random_bytes() {
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as u8
    };
    for round in 0..20_000 {
        let size = ["1x6", "3x3", "7x8", "1x62"][round % 4];
        let (rows, cols): (usize, usize) = size.split_once('x').map(|(r, c)| (r.parse().unwrap(), c.parse().unwrap())).unwrap();
        let mut file = header(size, "0.5", "white", "black", 0, &[&vec![".".repeat(cols); rows].join("/")]).into_bytes();
        if round % 7 == 0 {
            file = vec![0x28, 0xb5, 0x2f, 0xfd];
        }
        // Mostly zeros and ones, so that some records are read.
        file.extend((0..200).map(|_| if random() < 60 { random() } else { random() & 1 }));
        assert!(check(&file).is_err());
    }
}

#[test]
fn header_fields() {
    let good = header("1x3", "0.5", "white", "black", 0, &["...", ".O."]);
    let with = |from: &str, to: &str| {
        assert!(good.contains(from));
        let mut w = Writer::new(good.clone());
        w.eyes(BLACK, 0, ".O.", 2, 5);
        w.header = good.replacen(from, to, 1);
        w.file()
    };
    valid(&with("", ""));
    for (from, to) in [
        ("certificate 1", "certificate 2"),
        ("superko", "Superko"),
        ("1x3", "3"),
        ("1x3", "0x3"),
        ("1x3", "1x03"),
        ("1x3", "1X3"),
        ("1x3", "1x63"),
        ("1x3", "8x8"),
        ("1x3", "4294967297x3"),
        ("1x3", "1x3 "),
        ("0.5", "0"),
        ("0.5", ".5"),
        ("0.5", "0.50"),
        ("0.5", "1.0"),
        ("0.5", "+0.5"),
        ("0.5", "--0.5"),
        ("0.5", "00.5"),
        ("0.5", "1e3.5"),
        ("0.5", "99999999999999999999.5"),
        ("winner white", "winner White"),
        ("winner white", "winner"),
        ("to move black", "to move red"),
        ("passes 0", "passes 2"),
        ("passes 0", "passes -1"),
        ("history 2", "history 0"),
        ("history 2", "history 1"),
        ("history 2", "history 3"),
        ("history 2", "history 999999999"),
        ("history 2", "history 18446744073709551616"),
        ("...\n", ".O.\n"),
        ("...\n", "..\n"),
        ("...\n", ".../...\n"),
        ("...\n", "..x\n"),
        ("...\n", "...\r\n"),
        ("...\n", "..\u{e9}\n"),
        ("komi 0.5\n", ""),
        ("\n\n", "\n"),
        ("\n\n", "\n\n\n"),
    ] {
        let file = with(from, to);
        assert!(matches!(check(&file), Err(superko_check::Error::Unreadable(_))), "{from:?} to {to:?}: {:?}", check(&file));
    }
    unreadable(&[b'x'; 1000], "too long");
    unreadable(b"", "too early");
}

#[test]
fn records() {
    let w = Writer::new(header("1x3", "0.5", "white", "black", 0, &[".O."]));
    let eyes = w.clone().eyes(BLACK, 0, ".O.", 2, 5).clone();
    valid(&eyes.file());
    for head in [5, 6, 0x40, 0x80, 0x30, 0x31, 0x15, 0x1e] {
        unreadable(&w.clone().raw(&[head, 0, 2, 2, 5]).file(), "stands for nothing");
    }
    unreadable(&w.clone().raw(&[1, 0, 8 + 2, 2, 5]).file(), "past the board");
    unreadable(&w.clone().raw(&[1, 8, 2, 2, 5]).file(), "past the board");
    unreadable(&w.clone().raw(&[1, 0, 2, 2, 8]).file(), "past the board");
    unreadable(&w.clone().raw(&[1, 0, 2, 2 + 128, 5]).file(), "past the board");
    unreadable(&w.clone().raw(&[1, 2, 2, 2, 5]).file(), "a black and a white stone");
    unreadable(&w.clone().raw(&[2, 0, 2, 2, 3]).file(), "past the board");
    unreadable(&w.clone().raw(&[2, 0, 2, 255, 0, 0]).file(), "");
    for point in [3, 100, 254] {
        unreadable(&eyes.clone().raw(&[3 + 8, 0, 0, point, 8]).file(), "past the board");
    }
    for (reference, words) in [
        (&[0][..], "0 stands"),
        (&[3], "the record itself"),
        (&[16], "before the first"),
        (&[8 + 4], "not square"),
        (&[8 + 7], "not square"),
        (&[0x88, 0x00], "longer than it need be"),
        (&[0x80, 0x00], "longer than it need be"),
        (&[0xff; 10], "more than 64 bits"),
        (&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2], "more than 64 bits"),
        (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], "before the first"),
    ] {
        unreadable(&eyes.clone().raw(&[3 + 8, 0, 0, 1]).raw(reference).file(), words);
    }
    // The end: the byte, the number of lemmas, the reference, nothing after it.
    valid(&eyes.file_with(&[7, 1, 8]));
    valid(&eyes.file_with(&[7, 1, 8 + 3]));
    for (last, words) in [
        (&[7, 0, 8][..], "says that it has 0"),
        (&[7, 2, 8], "says that it has 2"),
        (&[7, 1, 0], "0 stands"),
        (&[7, 1, 16], "before the first"),
        (&[7, 1, 8 + 4], "not square"),
        (&[7 + 8, 1, 8], "not 7"),
        (&[7 + 16, 1, 8], "not 7"),
        (&[7, 1, 8, 0], "follows the end"),
        (&[7, 0x81, 0, 8], "longer"),
        (&[], "too early"),
    ] {
        unreadable(&eyes.file_with(last), words);
    }
    unreadable(&w.file_with(&[7, 0, 8]), "before the first");
    unreadable(&w.file_with(&[7, 0, 0]), "0 stands");
}

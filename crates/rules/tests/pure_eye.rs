//! Pure eyes: fixtures, and the definition checked point by point.

use proptest::prelude::*;
use superko_rules::{Board, Geometry, PureEyes, board_from_rows, parse_board_size};

fn read(size: &str, rows: &[&str]) -> (&'static Geometry, Board) {
    let geometry = parse_board_size(size).unwrap();
    (geometry, board_from_rows(geometry, rows).unwrap())
}

/// Points of `X*` and of `T*` for Black.
fn black(size: &str, rows: &[&str]) -> (u32, u32) {
    let (geometry, board) = read(size, rows);
    let eyes = PureEyes::analyze(geometry, board.black);
    (eyes.alive.count_ones(), eyes.territory.count_ones())
}

#[test]
fn two_eyes_live_one_does_not() {
    assert_eq!(black("1x5", &[".X.X."]), (2, 3), "the stones share an eye and have one more each");
    assert_eq!(black("1x5", &[".XXX."]), (3, 2));
    assert_eq!(black("1x5", &["..XX."]), (0, 0), "the far point of the large region touches no stone");
    assert_eq!(black("1x4", &["XXX."]), (0, 0));
    assert_eq!(black("2x3", &["XX.", ".XX"]), (4, 2));
    assert_eq!(black("3x3", &["XXX", "X.X", "XXX"]), (0, 0));
    assert_eq!(black("3x3", &["...", "...", "..."]), (0, 0));
    assert_eq!(black("3x3", &["XXX", ".X.", "XXX"]), (7, 2));
    assert_eq!(black("3x3", &["...", "XXX", "..."]), (3, 6), "two regions of three points, each next to the chain");
}

#[test]
fn enemy_stones_inside_count_as_points() {
    assert_eq!(black("3x3", &["OO.", "XXX", ".O."]), (3, 6));
    assert_eq!(black("2x4", &["XXX.", ".XXO"]), (5, 3));
    let (geometry, board) = read("3x3", &["OO.", "XXX", ".O."]);
    let without = PureEyes::analyze(geometry, board.black);
    let (_, other) = read("3x3", &["...", "XXX", "OOO"]);
    assert_eq!(PureEyes::analyze(geometry, other.black), without, "only the player's own stones matter");
}

/// Chains live together when their common eyes border no chain that dies.
#[test]
fn chains_may_share_eyes() {
    assert_eq!(black("3x4", &[".X.X", "X.XX", "XXX."]), (8, 4), "the corner stone's region is shared");
    // The left chain needs the eye that borders a chain with one eye only: neither lives.
    assert_eq!(black("1x7", &[".XX.X.."]), (0, 0));
}

/// A region may be territory without being an eye of one chain: two living chains cover it together.
#[test]
fn territory_may_touch_several_chains() {
    assert_eq!(black("2x8", &[".XX..XX.", "X.X..X.X"]), (8, 8));
    assert_eq!(black("2x9", &[".XX...XX.", "X.X...X.X"]), (8, 4), "the middle of three columns touches neither");
}

/// The region of the white stones passes Benson's classic test, since its empty points touch Black's stone, but it is not a pure eye:
/// a capture frees points that do not (paper, Figure 3b and 3c, on the smallest line).
#[test]
fn classic_eyes_need_not_be_pure() {
    for (size, rows) in [("1x5", ["O.X.O"]), ("1x6", ["OOO.X."]), ("1x7", ["OO.X.OO"])] {
        let (geometry, board) = read(size, &rows);
        let classic = PureEyes::analyze_touching(geometry, board.black, !board.white);
        assert_eq!(classic.alive, board.black, "{rows:?}: the fixture tells the two apart");
        assert_eq!(PureEyes::analyze(geometry, board.black).alive, 0, "{rows:?}");
    }
}

#[test]
fn as_many_regions_as_a_board_can_have() {
    // Every second point of a line of 63: 31 stones, 32 single points.
    let geometry = parse_board_size("1x63").unwrap();
    let stones = (0..31).fold(0u64, |set, pair| set | 2 << (2 * pair));
    let eyes = PureEyes::analyze(geometry, stones);
    assert_eq!((eyes.alive, eyes.regions(geometry).count()), (stones, 32));
}

fn touches(geometry: &Geometry, point: usize, set: u64) -> bool {
    geometry.neighbors(1 << point) & set != 0
}

/// Whether `alive` meets the definition: every chain has two pure eyes bordered by `alive` only.
fn is_alive(geometry: &Geometry, stones: u64, alive: u64) -> bool {
    geometry.components(stones).filter(|chain| chain & alive != 0).all(|chain| {
        let eyes = geometry.components(geometry.full() & !stones).filter(|&region| {
            geometry.neighbors(region) & stones & !alive == 0
                && (0..geometry.points()).filter(|p| region >> p & 1 == 1).all(|p| touches(geometry, p, chain))
        });
        chain & !alive == 0 && eyes.count() >= 2
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    /// `X*` is the largest union of chains that meets the definition, found here by trying all unions.
    #[test]
    fn the_definition_is_met(size in 0usize..6, draw in any::<[u64; 2]>()) {
        let geometry = parse_board_size(["1x7", "2x4", "3x3", "3x4", "2x6", "4x4"][size]).unwrap();
        let stones = (draw[0] | draw[1]) & geometry.full();
        let chains: Vec<u64> = geometry.components(stones).collect();
        let unions = (0..1usize << chains.len().min(10)).map(|pick| {
            chains.iter().enumerate().filter(|(at, _)| pick >> at & 1 == 1).fold(0, |set, (_, chain)| set | chain)
        });
        let largest = unions.filter(|&union| is_alive(geometry, stones, union)).max_by_key(|union| union.count_ones()).unwrap();
        let eyes = PureEyes::analyze(geometry, stones);
        prop_assert_eq!(eyes.alive, largest);
        let expected = geometry
            .components(geometry.full() & !stones)
            .filter(|&region| largest != 0 && geometry.neighbors(region) & stones & !largest == 0)
            .filter(|&region| (0..geometry.points()).filter(|p| region >> p & 1 == 1).all(|p| touches(geometry, p, largest)))
            .fold(0, |set, region| set | region);
        prop_assert_eq!(eyes.territory, expected);
    }
}

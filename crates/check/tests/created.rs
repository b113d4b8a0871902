//! The sets of created boards, against sets that are kept in full.

use std::collections::HashSet;

use superko_check::created::{Created, EMPTY};
use superko_check::rules::{Board, Grid};

#[test]
fn a_walk_finds_what_is_in_the_set() {
    let mut state = 7u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % below
    };
    let (mut found, mut absent) = (0, 0);
    for (rows, cols) in [(1, 4), (2, 2), (2, 3), (3, 3)] {
        let grid = Grid::new(rows, cols);
        for _ in 0..30 {
            let mut created = Created::new();
            let mut sets = vec![(EMPTY, HashSet::new())];
            let board = |random: &mut dyn FnMut(usize) -> usize| {
                let (black, stones) = (random(1 << 9) as u64 & grid.all, random(1 << 9) as u64 & grid.all);
                Board { black: black & stones, white: stones & !black }
            };
            for _ in 0..60 {
                let made = (random(2) == 0).then(|| board(&mut random));
                let mut full: HashSet<Board> = made.into_iter().collect();
                let mut children = Vec::new();
                for _ in 0..random(4) {
                    let (number, set) = &sets[random(sets.len())];
                    let symmetry = random(grid.symmetries() as usize) as u8;
                    children.push((*number, symmetry));
                    full.extend(set.iter().map(|board| grid.board_image(symmetry, *board)));
                }
                let number = created.unite(&grid, children, made);
                assert_eq!(number == EMPTY, full.is_empty());
                // Boards of this set under symmetries, of other sets, and others.
                for set in [&full, &sets[random(sets.len())].1] {
                    for (i, other) in set.iter().take(40).enumerate() {
                        let other = grid.board_image(i as u8 % grid.symmetries(), *other);
                        let is_in = created.contains(&grid, number, other);
                        assert_eq!(is_in, full.contains(&other));
                        *if is_in { &mut found } else { &mut absent } += 1;
                    }
                }
                let other = board(&mut random);
                assert_eq!(created.contains(&grid, number, other), full.contains(&other));
                sets.push((number, full));
            }
        }
    }
    assert!(found > 10_000 && absent > 10_000, "{found} found, {absent} absent");
}

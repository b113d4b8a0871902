//! Threshold probes of region games: komi at which a claim just suffices, on boards drawn so that there are such claims.

use super::{Case, draw};
use crate::static_leaf::LeafKind;
use crate::{Komi, MemoryTable, Options, region_claim};
use superko_rules::{Color, Game, PureEyes};

/// Walled boards drawn in one case.
const WALLED: usize = 12;

impl Case<'_> {
    /// Draws walled boards and compares solver and oracle at the komi that their claims decide. Smaller boards have no room for
    /// anything beside two eyes.
    pub(super) fn probe_regions(&mut self, table: &MemoryTable) {
        if self.geometry.points() < 10 {
            return;
        }
        for _ in 0..WALLED {
            let Some(game) = draw::draw_walled_game(&mut self.rng, self.geometry) else { continue };
            for (winner, margin) in self.region_claims(&game) {
                self.count("region-game claims");
                self.probe_claim(table, &game, winner, margin);
                if self.ends() {
                    return;
                }
            }
        }
    }

    fn probe_claim(&mut self, table: &MemoryTable, game: &Game, winner: Color, margin: i32) {
        let komi = match winner {
            Color::Black => Komi::below(margin),
            Color::White => Komi::below(1 - margin),
        };
        let Some(black_wins) = self.oracle.black_wins(game, komi) else {
            self.report.skipped += 1;
            return;
        };
        if black_wins != (winner == Color::Black) {
            self.count("region-game claims that the history refutes");
        }
        let points = self.geometry.points() as i32;
        let need = komi.need(Color::Black);
        let bounds = if black_wins { (need, points) } else { (-points, need - 1) };
        self.compare_bounds("komi of a region game, one table", Options::default(), table, game, bounds, komi);
        let fresh = MemoryTable::new(self.geometry);
        self.compare_bounds("komi of a region game, a fresh table", Options::default(), &fresh, game, bounds, komi);
    }

    /// The greatest claim with region games for each player, where it goes beyond pure eyes, with neither C1 nor C2 asked.
    fn region_claims(&mut self, game: &Game) -> Vec<(Color, i32)> {
        let position = game.position();
        let mut greatest = |winner: Color| {
            let stones = position.board.stones(winner);
            let eyes = PureEyes::analyze(self.geometry, stones);
            let claimed = |wanted| region_claim::claim(self.geometry, &mut self.games, eyes, position, winner, wanted, stones);
            let claim = (0..=self.geometry.points() as i32).rev().find_map(claimed)?;
            (claim.kind == LeafKind::RegionGame).then_some((winner, claim.margin))
        };
        [Color::Black, Color::White].into_iter().filter_map(&mut greatest).collect()
    }
}

//! From nothing to weights: solve, fit, solve again with the fit. And how well models fitted to some boards do on another.

use super::Prior;
use super::fit::{Losses, NetFit, evaluate, fit_logistic, fit_net};
use super::sample::{Sample, SamplePlan, sample_board};
use crate::prior::rng;
use superko_rules::parse_board_size;

/// Boards whose solves the built-in weights come from. No board on which the search is measured as unseen is among them (issue: 4x4,
/// 2x8, 3x6, 2x9, 4x5, 3x7).
pub const TRAINING_BOARDS: [&str; 13] = ["1x8", "1x9", "1x10", "1x11", "1x12", "2x3", "2x4", "2x5", "2x6", "2x7", "3x3", "3x4", "3x5"];

/// A kind of model that can be fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelKind {
    /// The paper's 14 features (section 5).
    Logistic,
    /// Who wins and at what effort (findings 7.2).
    Net,
}

impl ModelKind {
    /// Fits a model of this kind. Panics if there are no samples.
    pub fn fit(self, samples: &[Sample], options: NetFit, progress: &mut dyn FnMut(usize, Losses)) -> Prior {
        match self {
            ModelKind::Logistic => fit_logistic(samples),
            ModelKind::Net => fit_net(samples, options, progress),
        }
    }
}

/// A training from nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Training {
    /// Rounds of sampling and fitting; the first samples with the uniform prior, each further one with the fit before it.
    pub rounds: u64,
    /// How each board is sampled; every round has a seed of its own.
    pub plan: SamplePlan,
    /// Samples of its round that a fit uses at most; beyond, a random choice.
    pub most: usize,
    /// How a net is fitted.
    pub fit: NetFit,
}

impl Default for Training {
    fn default() -> Self {
        Training { rounds: 3, plan: SamplePlan::default(), most: 1_300_000, fit: NetFit::default() }
    }
}

/// Trains a net from nothing on [`TRAINING_BOARDS`]; `progress` hears a line now and then. The result follows from `training` alone,
/// down to the last bit. Recurses like [`crate::solve`]: give the thread a large stack.
pub fn train(training: &Training, progress: &mut dyn FnMut(String)) -> Prior {
    let mut prior: &'static Prior = Prior::uniform().leak();
    for round in 0..training.rounds {
        let mut samples = Vec::new();
        for board in TRAINING_BOARDS {
            let geometry = parse_board_size(board).expect("the training boards exist");
            let plan = SamplePlan { seed: training.plan.seed.wrapping_mul(1000) + round, ..training.plan };
            let found = sample_board(prior, geometry, &plan);
            progress(format!("round {}: {board}, {} samples", round + 1, found.len()));
            samples.extend(found);
        }
        rng(training.plan.seed ^ round << 32).shuffle(&mut samples);
        samples.truncate(training.most);
        // The fits on the way only order the next round of solves.
        let last = round + 1 == training.rounds;
        let fit = NetFit { epochs: if last { training.fit.epochs } else { training.fit.epochs.div_ceil(3) }, ..training.fit };
        let fitted = fit_net(&samples, fit, &mut |epoch, losses| {
            let Losses { log_loss, effort_error } = losses;
            progress(format!("round {}: pass {}, log loss {log_loss:.4}, error of the effort {effort_error:.3}", round + 1, epoch + 1));
        });
        prior = fitted.leak();
    }
    prior.clone()
}

/// How a model fitted to the other boards does on one board.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut {
    /// The board's name.
    pub board: String,
    /// Its samples.
    pub samples: usize,
    /// What the model misses on them.
    pub losses: Losses,
    /// Log loss of the constant model of these samples: the share of wins among them.
    pub constant: f64,
}

/// Leaves one board out at a time, boards in the order in which they appear. With fewer than two boards there is nothing to fit to.
pub fn cross_validate(samples: &[Sample], kind: ModelKind, options: NetFit, progress: &mut dyn FnMut(&LeftOut)) -> Vec<LeftOut> {
    let mut boards: Vec<String> = Vec::new();
    for sample in samples {
        let name = sample.geometry.name();
        if !boards.contains(&name) {
            boards.push(name);
        }
    }
    if boards.len() < 2 {
        return Vec::new();
    }
    let leave_out = |board: String| {
        let (own, others): (Vec<Sample>, Vec<Sample>) = samples.iter().partition(|sample| sample.geometry.name() == board);
        let prior = kind.fit(&others, options, &mut |_, _| {});
        let share = own.iter().filter(|sample| sample.won).count() as f64 / own.len() as f64;
        let entropy = |p: f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
        let row = LeftOut { board, samples: own.len(), losses: evaluate(&prior, &own), constant: entropy(share) + entropy(1.0 - share) };
        progress(&row);
        row
    };
    boards.into_iter().map(leave_out).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn training_repeats_and_learns() {
        let plan = SamplePlan { root_expansions: 3_000, random_expansions: 200, random_total: 3_000, most: 400, random_most: 60, seed: 4 };
        let samples: Vec<Sample> = ["1x6", "2x3", "2x4"]
            .iter()
            .flat_map(|board| sample_board(Prior::uniform().leak(), parse_board_size(board).unwrap(), &plan))
            .collect();
        let fit = NetFit { epochs: 30, ..NetFit::default() };
        for kind in [ModelKind::Logistic, ModelKind::Net] {
            let rows = cross_validate(&samples, kind, fit, &mut |_| {});
            assert_eq!(rows, cross_validate(&samples, kind, fit, &mut |_| {}), "{kind:?}");
            assert_eq!(rows.iter().map(|row| row.board.as_str()).collect::<Vec<_>>(), ["1x6", "2x3", "2x4"]);
            let all = evaluate(&kind.fit(&samples, fit, &mut |_, _| {}), &samples).log_loss;
            assert!(all < 0.6 * evaluate(&Prior::uniform(), &samples).log_loss, "{kind:?}: {all}");
        }
    }
}

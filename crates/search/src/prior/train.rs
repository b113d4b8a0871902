//! From nothing to weights: solve, fit, solve again with the fit. And how well models fitted to some boards do on another.

use super::Prior;
use super::fit::{Losses, NetFit, evaluate, fit_logistic, fit_net, log2};
use super::sample::{Sample, SamplePlan, sample_board};
use crate::prior::rng;
use crate::{Control, Komi, Limits, MemoryTable, Options, solve_with};
use superko_rules::{Color, Game, Geometry, parse_board_size};

/// Boards that priors are trained on. 2x9, 3x7 and larger boards are left to be measured unseen; 2x8, 3x6, 4x4 and 4x5 are too in the
/// training of the built-in weights (`make prior`), which leaves them out.
pub const TRAINING_BOARDS: [&str; 17] =
    ["1x8", "1x9", "1x10", "1x11", "1x12", "2x3", "2x4", "2x5", "2x6", "2x7", "2x8", "3x3", "3x4", "3x5", "3x6", "4x4", "4x5"];

/// Training boards, with their values, on whose proofs fits are compared.
const COMPARED: [(&str, i32); 8] = [("1x11", 2), ("1x12", 2), ("2x7", 14), ("2x8", 16), ("3x4", 4), ("3x5", 15), ("3x6", 18), ("4x4", 2)];

/// The training boards but those named in `without`. Errors: the first name that is none of [`TRAINING_BOARDS`].
pub fn training_boards(without: &[String]) -> Result<Vec<&'static Geometry>, &str> {
    if let Some(stranger) = without.iter().find(|name| !TRAINING_BOARDS.contains(&name.as_str())) {
        return Err(stranger);
    }
    let kept = TRAINING_BOARDS.iter().filter(|&&board| !without.iter().any(|name| name == board));
    Ok(kept.map(|board| parse_board_size(board).expect("the training boards exist")).collect())
}

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
    /// Rounds of sampling and fitting; the first samples with the uniform prior, each further one with the fit before it, and fits are to
    /// the samples of all rounds so far.
    pub rounds: u64,
    /// How each board is sampled; every round has a seed of its own.
    pub plan: SamplePlan,
    /// Samples that a fit uses at most; beyond, a random choice.
    pub most: usize,
    /// How a net is fitted at the end; on the way there are a third as many passes.
    pub fit: NetFit,
    /// Fits at the end, each with a seed of its own: the one with the fewest expansions on training boards is kept.
    pub fits: u64,
    /// Limit of each solve by which fits are compared.
    pub compared_expansions: u64,
}

impl Default for Training {
    fn default() -> Self {
        Training {
            rounds: 3,
            plan: SamplePlan::default(),
            most: 3_000_000,
            fit: NetFit::default(),
            fits: 4,
            compared_expansions: 1_000_000,
        }
    }
}

/// Trains a net from nothing on `boards`; `progress` hears a line now and then. The result follows from the arguments alone, down to
/// the last bit. Recurses like [`crate::solve`]: give the thread a large stack. Panics if nothing is proved on the boards, or there
/// are no rounds or fits.
pub fn train(training: &Training, boards: &[&'static Geometry], progress: &mut dyn FnMut(String)) -> Prior {
    let mut prior: &'static Prior = Prior::uniform().leak();
    let mut samples = Vec::new();
    for round in 0..training.rounds {
        for board in boards {
            // Rounds before the last serve to order it: each is half as long as the next.
            let shorter = training.rounds - 1 - round;
            let SamplePlan { root_expansions, random_total, .. } = training.plan;
            let plan = SamplePlan {
                root_expansions: (root_expansions >> shorter).max(1),
                random_total: random_total >> shorter,
                seed: training.plan.seed.wrapping_mul(1000) + round,
                ..training.plan
            };
            let found = sample_board(prior, board, &plan);
            progress(format!("round {}: {}, {} samples", round + 1, board.name(), found.len()));
            samples.extend(found);
        }
        pool(&mut samples);
        progress(format!("round {}: {} positions in all", round + 1, samples.len()));
        let mut used = samples.clone();
        rng(training.plan.seed ^ round << 32).shuffle(&mut used);
        used.truncate(training.most);
        // The fits on the way only order the next round of solves.
        let last = round + 1 == training.rounds;
        let (fits, epochs) = if last { (training.fits, training.fit.epochs) } else { (1, training.fit.epochs.div_ceil(3)) };
        let mut best: Option<(f32, Prior)> = None;
        for seed in training.fit.seed..training.fit.seed + fits {
            let fitted = fit_net(&used, NetFit { epochs, seed, ..training.fit }, &mut |epoch, losses| {
                let Losses { log_loss, effort_error } = losses;
                progress(format!("round {}: pass {}, log loss {log_loss:.4}, error of the effort {effort_error:.3}", round + 1, epoch + 1));
            });
            let mut effort = 0.0;
            if fits > 1 {
                effort = mean_effort(fitted.clone().leak(), boards, training.compared_expansions);
                progress(format!("round {}: fit {seed} needs 2^{effort:.2} expansions in the mean", round + 1));
            }
            if best.as_ref().is_none_or(|(least, _)| effort < *least) {
                best = Some((effort, fitted));
            }
        }
        prior = best.expect("there are fits").1.leak();
    }
    prior.clone()
}

/// Keeps one sample of each question. Of several the cheapest: its cost is nearest to what the proof takes, the others have searched
/// more beside it.
fn pool(samples: &mut Vec<Sample>) {
    let question = |sample: &Sample| {
        let Sample { geometry, position, need, .. } = *sample;
        (
            geometry.rows(),
            geometry.cols(),
            position.board.black,
            position.board.white,
            position.to_move == Color::Black,
            position.passes,
            need,
        )
    };
    samples.sort_unstable_by_key(|sample| (question(sample), sample.cost, sample.won));
    samples.dedup_by_key(|sample| question(sample));
}

/// Mean log2 of the expansions that both proofs of a compared board's value take.
fn mean_effort(prior: &'static Prior, boards: &[&'static Geometry], limit: u64) -> f32 {
    let options = Options { prior, ..Options::default() };
    let (mut sum, mut count) = (0.0, 0.0);
    for (board, value) in COMPARED {
        let Some(geometry) = boards.iter().find(|geometry| geometry.name() == board) else { continue };
        let mut expansions = 0;
        for margin in [value, value + 1].into_iter().filter(|&margin| margin <= geometry.points() as i32) {
            let limits = Limits { expansions: Some(limit), time: None };
            let table = MemoryTable::new(geometry);
            let outcome = solve_with(options, &table, &Game::new(geometry), Komi::below(margin), limits, &Control::default());
            expansions += outcome.stats.expansions;
        }
        sum += log2(expansions);
        count += 1.0;
    }
    sum / count
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
    fn boards_are_left_out_by_name() {
        let names = |without: &[&str]| {
            let without: Vec<String> = without.iter().map(|&name| name.to_owned()).collect();
            training_boards(&without).map(|boards| boards.iter().map(|board| board.name()).collect::<Vec<_>>()).map_err(str::to_owned)
        };
        assert_eq!(names(&[]).unwrap(), TRAINING_BOARDS);
        let some = names(&["3x6", "4x4", "3x6"]).unwrap();
        assert_eq!(some.len(), TRAINING_BOARDS.len() - 2);
        assert!(!some.contains(&"3x6".to_owned()) && !some.contains(&"4x4".to_owned()));
        assert_eq!(names(&["4x4", "6x3"]), Err("6x3".to_owned()));
        assert!(COMPARED.iter().all(|(board, _)| TRAINING_BOARDS.contains(board)));
    }

    #[test]
    fn rounds_of_training_repeat() {
        let plan = SamplePlan { root_expansions: 2_000, random_expansions: 200, random_total: 2_000, most: 400, random_most: 60, seed: 4 };
        let training =
            Training { rounds: 2, plan, most: 700, fit: NetFit { epochs: 3, ..NetFit::default() }, fits: 2, ..Training::default() };
        let boards = ["2x3", "3x4"].map(|board| parse_board_size(board).unwrap());
        let mut lines = Vec::new();
        let prior = train(&training, &boards, &mut |line| lines.push(line));
        assert_eq!(prior, train(&training, &boards, &mut |_| {}));
        let efforts: Vec<&String> = lines.iter().filter(|line| line.contains("in the mean")).collect();
        assert_eq!(efforts.len(), 2, "{lines:?}");
    }

    #[test]
    fn of_several_samples_of_a_question_the_cheapest_is_kept() {
        let sample = |text: &str| text.parse::<Sample>().unwrap();
        let mut samples = vec![
            sample("3x3 10 0 w 0 -9 loss 12"),
            sample("3x3 10 0 w 0 -9 loss 7"),
            sample("3x3 10 0 w 0 -8 loss 30"),
            sample("3x4 10 0 w 0 -9 loss 40"),
            sample("3x3 10 0 b 0 -9 win 50"),
        ];
        pool(&mut samples);
        let mut costs: Vec<u64> = samples.iter().map(|sample| sample.cost).collect();
        costs.sort_unstable();
        assert_eq!(costs, [7, 30, 40, 50]);
    }

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

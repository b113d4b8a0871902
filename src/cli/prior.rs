//! `superko prior`: sampling proofs, fitting priors to them, and measuring priors.

use super::{BAD_INPUT, FAILED, Failure, PROVED, print_line};
use crate::STACK_BYTES;
use clap::{Args, Subcommand, ValueEnum};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use superko_rules::{Game, parse_board_size, parse_moves};
use superko_search::prior::{
    LeftOut, Losses, ModelKind, NetFit, Prior, Sample, SamplePlan, TRAINING_BOARDS, Training, cross_validate, evaluate, sample_board,
    sample_solve, train, training_boards,
};
use superko_search::{Control, Komi, Limits, Options, solve_with};
use superko_storage::{MappedTable, Store};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write samples: proven positions with their winner and the expansions spent, a line each
    Sample(SampleArguments),
    /// Fit a prior to samples and write its file
    Fit(FitArguments),
    /// Measure models on samples, leaving out one board at a time, or a prior by the expansions of a suite
    Evaluate(EvaluateArguments),
    /// Train a prior from nothing, as the built-in prior was: a quarter of an hour
    Train(TrainArguments),
}

#[derive(Debug, Args)]
pub struct SampleArguments {
    /// Board size, ROWSxCOLUMNS
    #[arg(long)]
    board: String,
    /// Solve at this komi only; without it at several around the value, and random positions too
    #[arg(long, allow_negative_numbers = true)]
    komi: Option<Komi>,
    /// With --komi: moves from the empty board
    #[arg(long, default_value = "", requires = "komi")]
    moves: String,
    /// Take the proofs of this data directory instead of solving; no server may be using it
    #[arg(long, value_name = "DIR", conflicts_with_all = ["komi", "expansions", "prior", "seed"])]
    data: Option<PathBuf>,
    /// Limit of each solve of the empty board
    #[arg(long, default_value_t = SamplePlan::default().root_expansions, value_parser = clap::value_parser!(u64).range(1..))]
    expansions: u64,
    /// Prior that orders the solves: `builtin`, `uniform` or a file
    #[arg(long, default_value = "builtin")]
    prior: String,
    /// Seed of the random positions
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// File to write
    #[arg(long)]
    out: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Model {
    /// The paper's 14 features
    Logistic,
    /// Who wins and at what effort
    Net,
}

impl Model {
    fn kind(self) -> ModelKind {
        match self {
            Model::Logistic => ModelKind::Logistic,
            Model::Net => ModelKind::Net,
        }
    }
}

#[derive(Debug, Args)]
pub struct NetFlags {
    /// Passes over the samples
    #[arg(long, default_value_t = NetFit::default().epochs as u64, value_parser = clap::value_parser!(u64).range(1..=1000))]
    passes: u64,
    /// Seed of a net's first weights
    #[arg(long, default_value_t = NetFit::default().seed)]
    seed: u64,
}

impl NetFlags {
    fn fit(&self) -> NetFit {
        NetFit { epochs: self.passes as usize, seed: self.seed, ..NetFit::default() }
    }
}

#[derive(Debug, Args)]
pub struct FitArguments {
    /// Kind of model
    #[arg(long, value_enum, default_value = "net")]
    model: Model,
    #[command(flatten)]
    net: NetFlags,
    /// File to write
    #[arg(long)]
    out: PathBuf,
    /// Files of samples
    #[arg(required = true)]
    samples: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct EvaluateArguments {
    /// Count the expansions of this prior on a suite: `builtin`, `uniform` or a file
    #[arg(long, conflicts_with = "samples", required_unless_present = "samples")]
    prior: Option<String>,
    /// Limit of each solve of the suite
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    expansions: u64,
    /// Kind of model
    #[arg(long, value_enum, default_value = "net")]
    model: Model,
    #[command(flatten)]
    net: NetFlags,
    /// Files of samples of two boards or more
    samples: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct TrainArguments {
    /// Leave this training board out, so that it can be measured unseen; may be given again for further boards
    #[arg(long, value_name = "BOARD")]
    without: Vec<String>,
    /// File to write
    #[arg(long)]
    out: PathBuf,
}

pub fn run(command: Command) -> Result<u8, Failure> {
    let worker = std::thread::Builder::new().name("prior".to_owned()).stack_size(STACK_BYTES).spawn(move || match &command {
        Command::Sample(arguments) => sample(arguments),
        Command::Fit(arguments) => fit(arguments),
        Command::Evaluate(arguments) => evaluate_command(arguments),
        Command::Train(arguments) => train_command(arguments),
    });
    worker
        .map_err(|error| Failure::other(format!("cannot start the training thread: {error}")))?
        .join()
        .map_err(|_| Failure::other("the command panicked, see the message above"))??;
    Ok(PROVED)
}

/// The prior that `--prior` names.
pub fn named(name: &str) -> Result<&'static Prior, Failure> {
    Prior::named(name).map_err(|error| Failure::bad_input(format!("--prior: {error}")))
}

/// Refuses a file that cannot be written before the work for it is done; what it holds stays.
fn writable(path: &Path) -> Result<(), Failure> {
    let opened = std::fs::OpenOptions::new().append(true).create(true).open(path);
    opened.map(|_| ()).map_err(|error| Failure::other(format!("--out {}: {error}", path.display())))
}

fn write(path: &Path, content: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, content).map_err(|error| Failure::other(format!("--out {}: {error}", path.display())))
}

fn sample(arguments: &SampleArguments) -> Result<(), Failure> {
    let geometry = parse_board_size(&arguments.board).map_err(|error| Failure::bad_input(format!("--board: {error}")))?;
    let prior = named(&arguments.prior)?;
    if let Some(data) = arguments.data.as_ref().filter(|data| !data.join("store").is_dir()) {
        let message = format!("--data {}: expected a data directory of superko serve, with store/ in it", data.display());
        return Err(Failure { code: BAD_INPUT, message });
    }
    writable(&arguments.out)?;
    let mut samples = Vec::new();
    if let Some(data) = &arguments.data {
        let refused = |error| Failure { code: FAILED, message: format!("--data {}: {error}", data.display()) };
        let store = Store::open(data).map_err(refused)?;
        let damaged =
            store.for_each_lemma(geometry, &mut |key, lemma| samples.push(Sample::of_lemma(geometry, key, lemma))).map_err(refused)?;
        if damaged > 0 {
            eprintln!("{damaged} damaged records left out");
        }
        store.close().map_err(refused)?;
    } else if let Some(komi) = arguments.komi {
        let mut game = Game::new(geometry);
        let moves = parse_moves(geometry, &arguments.moves).map_err(|error| Failure::bad_input(format!("--moves: {error}")))?;
        for mv in moves {
            game.play(mv).map_err(|error| Failure::bad_input(format!("--moves {}: {error}", arguments.moves)))?;
        }
        samples = sample_solve(prior, &game, komi, arguments.expansions).0;
    } else {
        let plan = SamplePlan { root_expansions: arguments.expansions, seed: arguments.seed, ..SamplePlan::default() };
        samples = sample_board(prior, geometry, &plan);
    }
    let text = samples.iter().fold(String::new(), |mut text, sample| {
        let _ = writeln!(text, "{sample}");
        text
    });
    write(&arguments.out, text.as_bytes())?;
    print_line(&format!("{} samples of {}", samples.len(), geometry.name()));
    Ok(())
}

fn train_command(arguments: &TrainArguments) -> Result<(), Failure> {
    let boards = training_boards(&arguments.without).map_err(|board| {
        let boards = TRAINING_BOARDS.join(", ");
        Failure::bad_input(format!("--without {board}: expected one of the training boards {boards}; no other board is trained on"))
    })?;
    if boards.is_empty() {
        return Err(Failure::bad_input("--without leaves no board to train on: leave out fewer"));
    }
    writable(&arguments.out)?;
    let prior = train(&Training::default(), &boards, &mut |line| eprintln!("{line}"));
    write(&arguments.out, &prior.to_bytes())
}

fn read(paths: &[PathBuf]) -> Result<Vec<Sample>, Failure> {
    let mut samples = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(path).map_err(|error| Failure::bad_input(format!("{}: {error}", path.display())))?;
        for (number, line) in text.lines().enumerate() {
            let sample = line.parse().map_err(|error| Failure::bad_input(format!("{} line {}: {error}", path.display(), number + 1)))?;
            samples.push(sample);
        }
    }
    if samples.is_empty() {
        return Err(Failure::bad_input("the files hold no samples: write some with \"superko prior sample\""));
    }
    Ok(samples)
}

fn fit(arguments: &FitArguments) -> Result<(), Failure> {
    let samples = read(&arguments.samples)?;
    writable(&arguments.out)?;
    let prior = arguments.model.kind().fit(&samples, arguments.net.fit(), &mut |pass, losses| {
        eprintln!("pass {}: log loss {:.4}, error of the effort {:.3}", pass + 1, losses.log_loss, losses.effort_error);
    });
    write(&arguments.out, &prior.to_bytes())?;
    let Losses { log_loss, .. } = evaluate(&prior, &samples);
    print_line(&format!("{} samples, log loss {log_loss:.4}, written to {}", samples.len(), arguments.out.display()));
    Ok(())
}

/// Boards and values of the suite: training boards first, then boards that the built-in prior has not seen.
const SUITE: [(&str, i32); 9] =
    [("1x10", 1), ("1x11", 2), ("2x6", 12), ("2x7", 14), ("3x4", 4), ("3x5", 15), ("4x4", 2), ("2x8", 16), ("3x6", 18)];

fn evaluate_command(arguments: &EvaluateArguments) -> Result<(), Failure> {
    let Some(name) = &arguments.prior else {
        let samples = read(&arguments.samples)?;
        print_line(&format!("{:<8} {:>9} {:>9} {:>9} {:>9}", "board", "samples", "log loss", "constant", "effort"));
        let rows = cross_validate(&samples, arguments.model.kind(), arguments.net.fit(), &mut |row| {
            let LeftOut { board, samples, losses, constant } = row;
            let Losses { log_loss, effort_error } = losses;
            print_line(&format!("{board:<8} {samples:>9} {log_loss:>9.4} {constant:>9.4} {effort_error:>9.3}"));
        });
        if rows.is_empty() {
            return Err(Failure::bad_input("the samples are of one board: expected two or more, so that one can be left out"));
        }
        let mean = |of: fn(&LeftOut) -> f64| rows.iter().map(of).sum::<f64>() / rows.len() as f64;
        print_line(&format!("{:<18} {:>9.4} {:>9.4}", "mean", mean(|row| row.losses.log_loss), mean(|row| row.constant)));
        return Ok(());
    };
    let options = Options { prior: named(name)?, ..Options::default() };
    for (board, value) in SUITE {
        let geometry = parse_board_size(board).expect("the suite's boards exist");
        let table = MappedTable::anonymous(geometry, 256 << 20).map_err(|error| Failure::other(format!("the table: {error}")))?;
        for margin in [value, value + 1].into_iter().filter(|&margin| margin <= geometry.points() as i32) {
            let limits = Limits { expansions: Some(arguments.expansions), time: None };
            let outcome = solve_with(options, &table, &Game::new(geometry), Komi::below(margin), limits, &Control::default());
            let winner = outcome.verdict.map_or("unknown", |(winner, _)| winner.name());
            print_line(&format!("{board:<6} komi {:>5} {winner:<8} {:>10} expansions", Komi::below(margin), outcome.stats.expansions));
        }
    }
    Ok(())
}

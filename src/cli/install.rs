//! What an installation needs besides the binary: shell completions, manual pages, the systemd unit with its drop-ins.

use super::{Cli, Failure, PROVED, print_text};
use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::Shell;

#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Supported,
}

/// Shells with completions.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Supported {
    Bash,
    Zsh,
    Fish,
}

pub fn completions(arguments: &Completions) -> Result<u8, Failure> {
    let shell = match arguments.shell {
        Supported::Bash => Shell::Bash,
        Supported::Zsh => Shell::Zsh,
        Supported::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "superko", &mut script);
    print_text(&String::from_utf8_lossy(&script));
    Ok(PROVED)
}

#[derive(Debug, Args)]
pub struct Man {
    /// The command whose page is wanted, such as `job submit`; the program's own if left out
    command: Vec<String>,
}

pub fn man(arguments: &Man) -> Result<u8, Failure> {
    let mut program = Cli::command().disable_help_subcommand(true);
    // Gives every command the name of its page, such as superko-job-submit.
    program.build();
    let mut page = &program;
    for name in &arguments.command {
        page = page.find_subcommand(name).ok_or_else(|| {
            let known: Vec<&str> = page.get_subcommands().map(clap::Command::get_name).collect();
            let known = if known.is_empty() { "nothing more".to_owned() } else { known.join(", ") };
            Failure::bad_input(format!("{name:?} is not a command of {}: expected {known}", page.get_bin_name().unwrap_or("superko")))
        })?;
    }
    let mut text = Vec::new();
    let name = page.get_display_name().unwrap_or("superko").to_owned();
    let rendered = clap_mangen::Man::new(page.clone()).title(name.to_uppercase()).render(&mut text);
    rendered.map_err(|error| Failure::other(error.to_string()))?;
    print_text(&String::from_utf8_lossy(&text));
    Ok(PROVED)
}

#[derive(Debug, Args)]
pub struct Unit {
    /// Print a drop-in instead of the unit
    #[arg(long, value_enum, value_name = "NAME")]
    drop_in: Option<DropIn>,
}

/// Drop-ins of the unit.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum DropIn {
    /// Limits of memory for the default table
    Memory,
    /// Lets other machines in; needs tokens
    PublicListen,
    /// The table in huge pages
    HugePages,
}

pub fn unit(arguments: &Unit) -> Result<u8, Failure> {
    print_text(match arguments.drop_in {
        None => include_str!("../../systemd/superko.service"),
        Some(DropIn::Memory) => include_str!("../../systemd/superko.service.d/memory.conf"),
        Some(DropIn::PublicListen) => include_str!("../../systemd/superko.service.d/public-listen.conf"),
        Some(DropIn::HugePages) => include_str!("../../systemd/superko.service.d/huge-pages.conf"),
    });
    Ok(PROVED)
}

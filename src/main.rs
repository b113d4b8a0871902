//! The `superko` binary.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    superko::cli::main()
}

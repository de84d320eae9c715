//! Arguments in, exit code out.

use clap::Parser;
use iotop_plus::{cli::Cli, commands};
use std::process::ExitCode;

fn main() -> ExitCode {
    commands::run(Cli::parse())
}

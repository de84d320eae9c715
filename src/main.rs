//! Arguments in, exit code out.

use clap::Parser;
use iotop_plus::{cli::Cli, commands};
use std::process::ExitCode;

fn main() -> ExitCode {
    match Cli::try_parse() {
        Ok(cli) => commands::run(cli),
        Err(err) => commands::print_usage_error(&err),
    }
}

//! Arguments in, exit code out.

use clap::Parser;
use iotop_plus::cli::{self, Cli};
use std::process::ExitCode;

fn main() -> ExitCode {
    match Cli::try_parse() {
        Ok(cli) => cli::run(cli),
        Err(err) => cli::print_usage_error(&err),
    }
}

//! Arguments in, exit code out.

use iotop_plus::cli::{self, Cli};
use std::process::ExitCode;

fn main() -> ExitCode {
    match Cli::parse_line(std::env::args_os()) {
        Ok(cli) => cli::run(cli),
        Err(err) => cli::print_usage_error(&err),
    }
}

//! One file per subcommand. Each returns its exit code.

mod batch;
mod bench;
mod capture;
mod docs;
mod doctor;
mod experiment;
mod follow;
mod gather;
mod output;
mod picture;
mod printer;
mod record;
mod replay;
#[cfg(test)]
mod replay_tests;
mod report;
mod snapshot;
mod top;
mod tune;

use crate::cli::{Cli, Command};
use crate::root::Root;
use std::process::ExitCode;

/// Everything went well.
pub const FINE: u8 = 0;
/// It did not work.
pub const FAILED: u8 = 1;
/// The command line or the config file is wrong.
pub const USAGE: u8 = 2;
/// Refused for safety.
pub const REFUSED: u8 = 3;
/// A privilege is missing.
pub const PRIVILEGE: u8 = 4;

/// `doctor` found something that will go wrong or costs speed.
pub const WARNINGS: u8 = 10;
/// `doctor` found work standing still or data at risk.
pub const CRITICAL: u8 = 11;

/// Runs what the command line asks for. Errors go to stderr, cleaned.
pub fn run(cli: Cli) -> ExitCode {
    crate::heap::use_single_arena();
    crate::tui::terminal::install_panic_hook();
    let root = cli.root.as_ref().map_or_else(Root::live, Root::at);
    let tracing = !cli.no_tracing;
    let result = match cli.command {
        None if cli.top.batch => batch::run(&root, &cli.top),
        None => top::run(root, cli.top, tracing),
        Some(Command::Man) => docs::man(),
        Some(Command::Completions { shell }) => docs::completions(shell),
        Some(Command::Record(args)) => record::run(&root, &args, tracing),
        Some(Command::RecordIo) => crate::record::file_worker::worker_main().map(|()| FINE),
        Some(Command::Replay(args)) => replay::run(root, args),
        Some(Command::Bench(what)) => bench::run(root, what),
        Some(Command::BenchChild) => bench::child(root),
        Some(Command::Experiment(what)) => experiment::run(root, *what),
        Some(Command::ExperimentChild { sync }) => experiment::child(root, sync),
        Some(Command::Tune(action)) => tune::run(&root, action),
        Some(Command::Tuner { io: true, .. }) => crate::tune::child::main(&root).map(|()| FINE),
        Some(Command::Tuner { io: false, kill }) => tune::tuner(&root, kill.as_deref()),
        Some(Command::Worker) => crate::worker::child::main(&root).map(|()| FINE),
        Some(Command::Doctor(args)) => doctor::run(&root, &args, tracing),
        Some(Command::Report(args)) => report::run(&root, &args, tracing),
        Some(Command::Snapshot(args)) => snapshot::run(&root, &args, tracing),
        Some(Command::Capture(args)) => capture::run(&root, &args),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(err) if is_broken_pipe(&err) => ExitCode::from(FINE),
        Err(err) => {
            complain(&format!("{err:#}"));
            ExitCode::from(FAILED)
        }
    }
}

/// Help and version as they are; a usage error cleaned, because it quotes what was typed or pasted.
pub fn usage(err: &clap::Error) -> ExitCode {
    use std::io::Write;
    if !err.use_stderr() {
        let _ = err.print();
        return ExitCode::from(FINE);
    }
    for line in err.render().to_string().lines() {
        let _ = writeln!(std::io::stderr(), "{}", crate::text::sanitize(line));
    }
    ExitCode::from(USAGE)
}

/// One line to stderr, with nothing in it that a terminal would obey.
pub fn complain(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "iotop-plus: {}", crate::text::sanitize(text));
}

/// The reader of our output went away: that is its right.
fn is_broken_pipe(err: &anyhow::Error) -> bool {
    err.chain()
        .filter_map(|e| e.downcast_ref::<std::io::Error>())
        .any(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}

//! Runs the subcommand selected on the command line.

use super::exit::{EXIT_OK, EXIT_USAGE, print_final_error};
use super::parser::{Cli, CliCommand};
use super::{
    batch, bench, docs, doctor, experiment, export, fleet, full_screen, record, replay, replay_history, report,
    snapshot, tune,
};
use crate::collect::processes::{user_names, user_resolver};
use crate::root::Root;
use crate::subprocess::{fork_server, helper, resident};
use crate::tuning::tuner;
use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

/// Runs the selected subcommand. Errors are printed to stderr, sanitized.
pub fn run(cli: Cli) -> ExitCode {
    crate::allocator::use_single_arena();
    crate::tui::terminal::install_panic_hook();
    ExitCode::from(run_subcommand(cli))
}

/// Prepares a process that must go on when the disk its program lies on hangs. Where the system has no process left
/// for that, it runs as well as any other program.
fn survive_hung_root(keeps_pages: bool) {
    if keeps_pages {
        resident::copy_writable_data();
    }
    let _ = fork_server::start(|args| Cli::try_parse_from(args).map_or(EXIT_USAGE, run_subcommand));
    if keeps_pages {
        let _ = resident::keep_resident();
    }
}

fn run_subcommand(cli: Cli) -> u8 {
    match &cli.command {
        // These run for long, and draw, record or change the machine.
        None | Some(CliCommand::Record(_)) => survive_hung_root(true),
        Some(CliCommand::Export(args)) if !args.is_replay() => survive_hung_root(true),
        Some(CliCommand::Replay(args)) if args.format.is_none() => survive_hung_root(true),
        Some(CliCommand::Fleet(args)) if args.format.is_none() => survive_hung_root(true),
        Some(CliCommand::Tuner { io: false, .. }) => {
            tuner::detach_process();
            survive_hung_root(true);
        }
        // Children that start children; their pages are those of the program that started them.
        Some(CliCommand::BenchChild | CliCommand::ExperimentChild { sync: None }) => survive_hung_root(false),
        _ => {}
    }
    let root = cli.root.as_ref().map_or_else(Root::live, Root::at);
    let tracing = !cli.no_tracing;
    let result = match cli.command {
        None if cli.top.batch => batch::run(&root, &cli.top),
        None => full_screen::run(root, cli.top, tracing),
        Some(CliCommand::Man { dir: None }) => docs::print_man_page(),
        Some(CliCommand::Man { dir: Some(dir) }) => docs::write_man_pages(&dir),
        Some(CliCommand::Completions { shell }) => docs::print_completions(shell),
        Some(CliCommand::Record(args)) => record::run(&root, &args, tracing),
        Some(CliCommand::RecordIo) => crate::recording::file_worker::worker_main().map(|()| EXIT_OK),
        Some(CliCommand::Replay(args)) => match &args.from_prometheus {
            Some(url) => replay_history::run(&root, &args, url),
            None => replay::run(root, *args),
        },
        Some(CliCommand::Bench(what)) => bench::run(root, what),
        Some(CliCommand::BenchChild) => bench::run_child(root),
        Some(CliCommand::Experiment(what)) => experiment::run(root, *what),
        Some(CliCommand::ExperimentChild { sync }) => experiment::run_child(root, sync),
        Some(CliCommand::Tune(action)) => tune::run(&root, action),
        Some(CliCommand::Tuner { io: true, .. }) => crate::tuning::child_io::run_child_process(&root).map(|()| EXIT_OK),
        Some(CliCommand::Tuner { io: false, kill }) => tune::run_tuner(&root, kill.as_deref()),
        Some(CliCommand::UserNames { resolve: false }) => user_names::run_child_process(&root).map(|()| EXIT_OK),
        Some(CliCommand::UserNames { resolve: true }) => user_resolver::run_child_process().map(|()| EXIT_OK),
        Some(CliCommand::Worker) => crate::jobs::child_main(&root).map(|()| EXIT_OK),
        Some(CliCommand::Doctor(args)) => doctor::run(&root, &args, tracing),
        Some(CliCommand::Export(args)) => export::run(&root, &args, tracing),
        Some(CliCommand::Fleet(args)) => fleet::run(root, *args),
        Some(CliCommand::Report(args)) => report::run(&root, &args, tracing),
        Some(CliCommand::Snapshot(args)) => snapshot::run(&root, &args, tracing),
    };
    let code = result.unwrap_or_else(|error| print_final_error(&error));
    let helpers: Vec<_> = [fork_server::helper(), resident::helper()].into_iter().flatten().collect();
    helper::end(&helpers);
    code
}

/// Prints help and version unchanged, and usage errors sanitized, because they quote the input.
pub fn print_usage_error(err: &clap::Error) -> ExitCode {
    if !err.use_stderr() {
        let _ = err.print();
        return ExitCode::from(EXIT_OK);
    }
    for line in err.render().to_string().lines() {
        let _ = writeln!(std::io::stderr(), "{}", crate::sanitize::sanitize(line));
    }
    ExitCode::from(EXIT_USAGE)
}

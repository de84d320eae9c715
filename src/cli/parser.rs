//! The command line: options, subcommands and their help. The man page and the completions come from it.

use super::bench::BenchCommand;
use super::capture::CaptureArgs;
use super::doctor::DoctorArgs;
use super::experiment::ExperimentArgs;
use super::full_screen::TopArgs;
use super::record::RecordArgs;
use super::replay::ReplayArgs;
use super::report::ReportArgs;
use super::snapshot::SnapshotArgs;
use super::tune::TuneCommand;
use clap::{Parser, Subcommand};
use clap_complete::Shell;
use std::path::PathBuf;

/// From "this box feels slow" to proof: live storage counters, per-process I/O, the kernel's own words.
#[derive(Debug, Parser)]
#[command(
    name = "iotop-plus",
    version,
    about,
    max_term_width = 100,
    after_help = "Examples:\n  iotop-plus                       the full screen; ? shows the keys\n  \
                  iotop-plus --path /var/lib/db    which device is this directory on\n  \
                  iotop-plus -b -o -n 3            three batch reports of tasks that do I/O\n  \
                  iotop-plus snapshot --format json -d 5\n\n\
                  Exit codes: 0 fine, 1 failed, 2 wrong usage, 3 refused for safety, 4 needs a privilege;\n\
                  doctor: 10 warnings, 11 something critical."
)]
pub struct Cli {
    /// What to do; without it: the full screen.
    #[command(subcommand)]
    pub command: Option<CliCommand>,
    /// Options of the full screen and of batch mode.
    #[command(flatten)]
    pub top: TopArgs,
    /// Read another tree's proc, sys and dev instead of the machine's.
    #[arg(long, global = true, hide = true, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Load no programs into the kernel: no latencies, nobody told to be throttled or in reclaim, tasks read from files.
    #[arg(long, global = true)]
    pub no_tracing: bool,
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Print what the screen would show, once or several times.
    Snapshot(SnapshotArgs),
    /// Keep what the collectors see in a file, to be looked at later.
    Record(RecordArgs),
    /// Look at a recording: the whole program over it, or its figures as text, JSON or CSV.
    Replay(ReplayArgs),
    /// Say what is wrong, why, on which figures, and what to try.
    Doctor(DoctorArgs),
    /// One Markdown or HTML file for a ticket: findings, figures, graphs, kernel warnings, changed settings.
    Report(ReportArgs),
    /// Measure storage: list what can be measured, run it, compare results.
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Print the man page.
    #[command(after_help = "Example:\n  iotop-plus man > /usr/local/share/man/man8/iotop-plus.8")]
    Man,
    /// Print a shell's completions.
    #[command(after_help = "Example:\n  iotop-plus completions bash > /etc/bash_completion.d/iotop-plus")]
    Completions {
        /// Which shell.
        shell: Shell,
    },
    /// Show and change the kernel's storage and memory settings, with a way back.
    #[command(subcommand)]
    Tune(TuneCommand),
    /// Does a change of settings help? A workload under the old values and the new in turn, with a verdict.
    #[command(
        after_help = "Examples:\n  iotop-plus experiment --workload txlog --dir /data --set vm.dirty_background_ratio=50 vm.dirty_ratio=80\n  \
                            iotop-plus experiment --workload txlog --dir /data --control --base vm.dirty_background_bytes=16M \\\n    \
                            vm.dirty_bytes=256M --set vm.dirty_background_ratio=50 vm.dirty_ratio=80\n  \
                            iotop-plus experiment --workload randread --dir /data --set scheduler@vda=none --then lease=10m\n  \
                            iotop-plus experiment show 1 --format markdown\n\n\
                            Rounds go A B B A ...; before each, dirty pages are drained, after each the old values are put\n\
                            back. Ctrl-C ends it with the figures up to then; the old values come back however it ends."
    )]
    Experiment(Box<ExperimentArgs>),
    /// Do one piece of work that may block, for the program itself.
    #[command(hide = true)]
    Worker,
    /// Write or read a recording's file, for the program itself.
    #[command(hide = true)]
    RecordIo,
    /// Measure, for the program itself: a plan on standard input, messages on standard output.
    #[command(hide = true)]
    BenchChild,
    /// Conduct an experiment, for the program itself: a spec on standard input, messages on standard output.
    #[command(hide = true)]
    ExperimentChild {
        /// Only sync this directory's file system, or all.
        #[arg(long, value_name = "DIR", num_args = 0..=1)]
        sync: Option<Option<PathBuf>>,
    },
    /// Write a tree that `--root` reads, without names and addresses: for tests and bug reports.
    #[command(hide = true)]
    Capture(CaptureArgs),
    /// Make a change and hold its lease, for the program itself.
    #[command(hide = true)]
    Tuner {
        /// Only read and write knobs.
        #[arg(long)]
        io: bool,
        /// For tests: kill at a step, `STEP[:PID[:own]]`.
        #[arg(long, value_name = "PLAN")]
        kill: Option<String>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn clap_accepts_the_definition() {
        Cli::command().debug_assert();
    }

    #[test]
    fn invalid_arguments_are_refused() {
        for args in [
            vec!["-d", "0"],
            vec!["-d", "1e9"],
            vec!["-d", "nan"],
            vec!["-n", "3"],
            vec!["-b", "-n", "0"],
            vec!["--bogus"],
            vec!["snapshot", "--pane", "nowhere"],
            vec!["snapshot", "--format", "pdf"],
            vec!["snapshot", "--format", "svg", "--size", "20x10"],
            vec!["snapshot", "--format", "svg", "--size", "120"],
            vec!["snapshot", "--format", "svg", "--view", "bench"],
            vec!["snapshot", "--format", "svg", "--view", "devices", "--pane", "devices"],
            vec!["report", "--for", "0"],
            vec!["report", "--format", "pdf"],
            vec!["doctor", "-d", "1"],
            vec!["doctor", "-d", "soon"],
            vec!["bench"],
            vec!["bench", "run"],
            vec!["bench", "run", "randrw", "/tmp", "--direct", "--buffered"],
            vec!["tune"],
            vec!["tune", "set"],
            vec!["tune", "set", "vm.swappiness=1", "--for", "0"],
            vec!["tune", "set", "vm.swappiness=1", "--for", "25h"],
            vec!["tune", "set", "vm.swappiness=1", "--for", "99999999999999999999h"],
            vec!["tune", "set", "vm.swappiness=1", "--for", "2m", "--keep"],
            vec!["tune", "undo", "x"],
            vec!["tune", "renew", "--for", "0"],
            vec!["tune", "preset", "--dry-run"],
            vec!["tune", "preset", "database", "--keep", "--for", "2m"],
            vec!["record"],
            vec!["record", "f", "-d", "0"],
            vec!["record", "f", "--for", "0"],
            vec!["record", "f", "--for", "2y"],
            vec!["record", "f", "--rotate", "3"],
            vec!["record", "f", "--max-size", "1M", "--rotate", "0"],
            vec!["replay"],
            vec!["replay", "f", "--pane", "devices"],
            vec!["replay", "f", "--format", "xml"],
            vec!["replay", "f", "--format", "json", "-n", "0"],
            vec!["replay", "f", "--from", "03:00"],
            vec!["experiment"],
            vec!["experiment", "--workload", "txlog"],
            vec!["experiment", "--set", "vm.swappiness=1"],
            vec!["experiment", "--workload", "fork", "--set", "vm.swappiness=1", "--rounds", "0"],
            vec!["experiment", "--workload", "fork", "--set", "vm.swappiness=1", "--rounds", "51"],
            vec!["experiment", "--workload", "fork", "--set", "vm.swappiness=1", "--then", "lease=0"],
            vec!["experiment", "--workload", "fork", "--set", "vm.swappiness=1", "--then", "hope"],
            vec!["experiment", "show"],
        ] {
            let all = ["iotop-plus"].into_iter().chain(args.iter().copied());
            assert!(Cli::try_parse_from(all).is_err(), "{args:?}");
        }
    }
}

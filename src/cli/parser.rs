//! The command line: options, subcommands and their help. The man page and the completions come from it.

use super::bench::BenchCommand;
use super::doctor::DoctorArgs;
use super::experiment::ExperimentArgs;
use super::export::ExportArgs;
use super::fleet::FleetArgs;
use super::full_screen::TopArgs;
use super::record::RecordArgs;
use super::replay::ReplayArgs;
use super::report::ReportArgs;
use super::snapshot::SnapshotArgs;
use super::tune::TuneCommand;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use std::ffi::OsString;
use std::path::PathBuf;

/// Find out why storage is slow: live counters, per-process I/O and the kernel log.
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
    /// The subcommand; by default the full screen.
    #[command(subcommand)]
    pub(super) command: Option<CliCommand>,
    #[command(flatten)]
    pub(super) top: TopArgs,
    /// In a container, the directory at which the host's root directory is mounted, such as /host: mounts, users, containers
    /// and pods are then the host's. Also a captured tree.
    #[arg(long, global = true, value_name = "DIR")]
    pub(super) root: Option<PathBuf>,
    /// Load no BPF programs: no latencies, no throttling or reclaim per process, and tasks are read from files. Tracing takes
    /// 0.2 to 0.4 µs of CPU time for each request.
    #[arg(long, global = true)]
    pub(super) no_tracing: bool,
}

impl Cli {
    /// Parses a command line, the program's name first. Options of the full screen before a subcommand are an error: the
    /// subcommand has its own, or none.
    pub fn parse_line(line: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<Self, clap::Error> {
        let mut command = Self::command();
        let matches = command.try_get_matches_from_mut(line)?;
        if let Some(subcommand) = matches.subcommand_name() {
            let is_given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
            let misplaced = command.get_arguments().find(|arg| !arg.is_global_set() && is_given(arg.get_id().as_str()));
            if let Some(option) = misplaced.and_then(|arg| arg.get_long()) {
                let why = format!(
                    "--{option} before `{subcommand}` is for the full screen without a subcommand; \
                                   what `{subcommand}` takes comes after it: iotop-plus {subcommand} --help"
                );
                return Err(command.error(ErrorKind::ArgumentConflict, why));
            }
        }
        Self::from_arg_matches(&matches)
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum CliCommand {
    /// Print what the screen shows, once or repeatedly.
    Snapshot(SnapshotArgs),
    /// Record samples to a file for later analysis.
    Record(RecordArgs),
    /// Replay a recording on the full screen, or print it as text, JSON or CSV.
    Replay(Box<ReplayArgs>),
    /// Report what is wrong, why, with which evidence, and what to try.
    Doctor(DoctorArgs),
    /// Export metrics for Prometheus.
    Export(ExportArgs),
    /// Show many hosts on one screen, from what `export` wrote to Prometheus.
    Fleet(Box<FleetArgs>),
    /// Write a Markdown or HTML report for a ticket: findings, figures, graphs, kernel warnings, changed settings.
    Report(ReportArgs),
    /// Benchmark storage: list profiles, run them, compare results.
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Print the man page.
    #[command(after_help = "Examples:\n  iotop-plus man > /usr/local/share/man/man8/iotop-plus.8\n  \
                            iotop-plus man --dir /usr/local/share/man/man8")]
    Man {
        /// Write the main page and one page per subcommand to this directory instead.
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Print shell completions.
    #[command(after_help = "Example:\n  iotop-plus completions bash > /etc/bash_completion.d/iotop-plus")]
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Show and change kernel settings for storage and memory, and restore them.
    #[command(subcommand)]
    Tune(TuneCommand),
    /// Test whether changed settings help: runs a workload under old and new values in turn and gives a verdict.
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
    /// Internal: read the names of users.
    #[command(hide = true)]
    UserNames {
        /// Ask the system's resolver instead of reading the file.
        #[arg(long)]
        resolve: bool,
    },
    /// Internal: run a job that may block.
    #[command(hide = true)]
    Worker,
    /// Internal: write or read a recording's file.
    #[command(hide = true)]
    RecordIo,
    /// Internal: run a benchmark from a plan on standard input.
    #[command(hide = true)]
    BenchChild,
    /// Internal: run an experiment from a spec on standard input.
    #[command(hide = true)]
    ExperimentChild {
        /// Only sync the file system of this directory, or all.
        #[arg(long, value_name = "DIR", num_args = 0..=1)]
        sync: Option<Option<PathBuf>>,
    },
    /// Internal: make a change and hold its lease.
    #[command(hide = true)]
    Tuner {
        /// Only read and write knobs.
        #[arg(long)]
        io: bool,
        /// For tests: kill at a point, `STEP[:PID[:own]]`, or stop there, `STEP:stop`.
        #[arg(long, value_name = "PLAN")]
        kill: Option<String>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

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
            vec!["export", "--every", "5"],
            vec!["export", "--format", "json"],
            vec!["export", "--listen", "localhost"],
            vec!["export", "--listen", "127.0.0.1:1", "--textfile", "x"],
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
            assert_refused(&args);
        }
    }

    #[test]
    fn options_of_the_full_screen_before_a_subcommand_are_refused() {
        let parse = |line: &str| Cli::parse_line(line.split(' ')).map_err(|err| err.to_string());
        for option in ["--theme light", "--ascii", "-d 2", "--config f"] {
            let why = parse(&format!("iotop-plus {option} replay f")).unwrap_err();
            assert!(why.contains("before `replay` is for the full screen"), "{why}");
        }
        for line in ["--root /host doctor", "--no-tracing doctor", "replay f --theme light", "--theme light", ""] {
            assert!(parse(format!("iotop-plus {line}").trim()).is_ok(), "{line}");
        }
    }

    #[test]
    fn invalid_arguments_for_prometheus_are_refused() {
        for args in [
            vec!["fleet"],
            vec!["fleet", "--prometheus", "localhost:9090"],
            vec!["fleet", "--prometheus", "ftp://localhost"],
            vec!["fleet", "--prometheus", "http://h", "--user", "u"],
            vec!["fleet", "--prometheus", "http://h", "--token-file", "t", "--user", "u", "--password-file", "p"],
            vec!["fleet", "--prometheus", "http://h", "--timeout", "0"],
            vec!["fleet", "--prometheus", "http://h", "--match", "job=\"x\"}"],
            vec!["replay", "f", "--from-prometheus", "http://h", "--host", "x"],
            vec!["replay", "--from-prometheus", "http://h"],
            vec!["fleet", "--recordings", "d", "--prometheus", "http://h"],
            vec!["fleet", "--recordings", "d", "--window", "30"],
            vec!["fleet", "--recordings", "d", "--ca-file", "c"],
        ] {
            assert_refused(&args);
        }
    }

    fn assert_refused(args: &[&str]) {
        let all = ["iotop-plus"].into_iter().chain(args.iter().copied());
        assert!(Cli::try_parse_from(all).is_err(), "{args:?}");
    }
}

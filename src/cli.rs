//! The whole command line in one place: parser, help, man page and completions come from it.

pub mod experiment;
pub mod record;
pub mod report;
pub mod snapshot;
pub mod tune;

use clap::{Args, Parser, Subcommand, ValueEnum};
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

/// Options without a subcommand.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// Print lines instead of taking the screen, as iotop does.
    #[arg(short, long)]
    pub batch: bool,
    /// Reports to print in batch mode; without it: until interrupted.
    #[arg(short = 'n', long = "iter", value_name = "N", requires = "batch",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Seconds between samples, 0.1 to 3600.
    #[arg(short, long, value_name = "S", value_parser = parse_seconds)]
    pub delay: Option<f64>,
    /// Only tasks that do I/O.
    #[arg(short, long)]
    pub only: bool,
    /// Sums since the start instead of rates.
    #[arg(short, long)]
    pub accumulated: bool,
    /// Processes instead of threads (the full screen shows processes unless told otherwise by `p`).
    #[arg(short = 'P', long)]
    pub processes: bool,
    /// Show which device this directory is on, down to the disk.
    #[arg(long, value_name = "DIR", conflicts_with = "batch")]
    pub path: Option<PathBuf>,
    /// Theme: dark, light, mono, high-contrast.
    #[arg(long, value_name = "NAME", conflicts_with = "batch", value_parser = ["dark", "light", "mono", "high-contrast"])]
    pub theme: Option<String>,
    /// Leave the mouse to the terminal.
    #[arg(long, conflicts_with = "batch")]
    pub no_mouse: bool,
    /// Another config file; `none` reads no file.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Print what the screen would show, once or several times.
    Snapshot(snapshot::SnapshotArgs),
    /// Keep what the collectors see in a file, to be looked at later.
    Record(record::RecordArgs),
    /// Look at a recording: the whole program over it, or its figures as text, JSON or CSV.
    Replay(record::ReplayArgs),
    /// Say what is wrong, why, on which figures, and what to try.
    Doctor(DoctorArgs),
    /// One Markdown or HTML file for a ticket: findings, figures, graphs, kernel warnings, changed settings.
    Report(report::ReportArgs),
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
    Tune(tune::TuneCommand),
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
    Experiment(Box<experiment::ExperimentArgs>),
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

/// Options of `capture`.
#[derive(Debug, Args)]
pub struct CaptureArgs {
    /// Where the moments go, as t0, t1, ...
    pub dir: PathBuf,
    /// Moments.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1)]
    pub count: u32,
    /// Seconds between them.
    #[arg(short, long, value_name = "S", default_value = "1", value_parser = parse_seconds)]
    pub delay: f64,
    /// Processes kept, the busiest.
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub processes: usize,
}

/// Options of `doctor`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  iotop-plus doctor\n  iotop-plus doctor -d 30 --json | jq -r '.stories[].title'\n\n\
                        Exit codes: 0 nothing wrong (notes at most), 10 warnings, 11 something critical;\n\
                        1 failed, 2 wrong usage. What could not be judged is said, with the reason."
)]
pub struct DoctorArgs {
    /// Seconds to look, 5 to 3600; most findings need 5 to 10.
    #[arg(short, long, value_name = "S", default_value = "12", value_parser = parse_doctor_seconds)]
    pub delay: f64,
    /// One JSON object, documented in the README.
    #[arg(long)]
    pub json: bool,
}

/// Subcommands of `bench`.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Profiles, and the results that are kept.
    #[command(after_help = "Example:\n  iotop-plus bench list")]
    List,
    /// Run a profile in a directory, or a fio job file.
    #[command(after_help = "Examples:\n  iotop-plus bench run randrw /var/lib/db\n  \
                            iotop-plus bench run fsync /var/lib/etcd --time 60 --format json\n  \
                            iotop-plus bench run randread /data --dry-run\n  \
                            iotop-plus bench run txlog /data --set transactions=10 --set min=1000 --set max=5000\n\n\
                            It works on a nameless file of its own, never on an existing one, and leaves nothing\n\
                            behind. Ctrl-C ends it with the figures up to then.")]
    Run(Box<BenchRunArgs>),
    /// A kept result again.
    #[command(after_help = "Example:\n  iotop-plus bench show 1 --format markdown")]
    Show {
        /// Its name, or its number in `bench list`.
        result: String,
        /// How it is written.
        #[arg(long, value_name = "FORMAT", default_value = "text", value_enum)]
        format: BenchFormat,
    },
    /// Two kept results side by side.
    #[command(after_help = "Example:\n  iotop-plus bench compare 2 1")]
    Compare {
        /// The one before: name, or number in `bench list`.
        a: String,
        /// The one after.
        b: String,
    },
}

/// Options of `bench run`. What is left out is the profile's own.
#[derive(Debug, Args)]
pub struct BenchRunArgs {
    /// A profile from `bench list`, or a fio job file (its name ends in .fio).
    pub profile: String,
    /// Directory on the storage to measure.
    pub directory: Option<PathBuf>,
    /// The work itself.
    #[command(flatten)]
    pub load: WorkloadArgs,
    /// txlog: transactions=N, min=N, max=N (records of a transaction); may be given several times.
    #[arg(long, value_name = "KEY=N")]
    pub set: Vec<String>,
    /// How the result is written.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_enum)]
    pub format: BenchFormat,
    /// Only say what would be done.
    #[arg(long)]
    pub dry_run: bool,
    /// Print the fio job file that does the same work, and do nothing.
    #[arg(long)]
    pub fio_job: bool,
    /// Do not keep the result.
    #[arg(long)]
    pub no_keep: bool,
    /// No progress on stderr.
    #[arg(short, long)]
    pub quiet: bool,
}

/// What a workload does, for `bench run` and `experiment`.
#[derive(Debug, Args)]
pub struct WorkloadArgs {
    /// The directory once more, if it is on a network mount and that is meant.
    #[arg(long, value_name = "DIR")]
    pub network: Option<PathBuf>,
    /// Size of the file (or of the memory, for `fork`): 512M, 4G.
    #[arg(long, value_name = "SIZE")]
    pub size: Option<String>,
    /// Size of one operation, record or piece: 4k, 1M.
    #[arg(long, value_name = "SIZE")]
    pub block: Option<String>,
    /// Operations in flight per job.
    #[arg(long, value_name = "N")]
    pub depth: Option<String>,
    /// Worker threads.
    #[arg(long, value_name = "N")]
    pub jobs: Option<String>,
    /// Reads among 100 operations.
    #[arg(long, value_name = "PCT")]
    pub read_pct: Option<String>,
    /// Through the page cache.
    #[arg(long, conflicts_with = "direct")]
    pub buffered: bool,
    /// Past the page cache (O_DIRECT).
    #[arg(long)]
    pub direct: bool,
    /// sweep: the sequential series with the disk's read-ahead off and on; needs root, and gives it back.
    #[arg(long, conflicts_with = "direct")]
    pub readahead: bool,
    /// fdatasync after so many writes.
    #[arg(long, value_name = "N")]
    pub fsync: Option<String>,
    /// At most so many operations a second, 0 for no cap.
    #[arg(long, value_name = "IOPS")]
    pub rate: Option<String>,
    /// At most so many bytes a second, 0 for no cap.
    #[arg(long, value_name = "SIZE")]
    pub rate_bytes: Option<String>,
    /// Fresh random data for every write, for stores that compress or deduplicate.
    #[arg(long)]
    pub refill: bool,
    /// Seconds to count (of every step, where there are several); 0 for no limit.
    #[arg(long, value_name = "S")]
    pub time: Option<String>,
    /// Seconds of ramp-up that are not counted.
    #[arg(long, value_name = "S")]
    pub ramp: Option<String>,
    /// End after so many bytes.
    #[arg(long, value_name = "SIZE")]
    pub io_size: Option<String>,
    /// Give up when nothing has moved for so many seconds.
    #[arg(long, value_name = "S")]
    pub stall_limit: Option<String>,
    /// Idle I/O priority: served only when nobody else wants the disk.
    #[arg(long)]
    pub idle: bool,
    /// How operations reach the kernel.
    #[arg(long, value_name = "ENGINE", value_enum)]
    pub engine: Option<EngineName>,
    /// io_uring with a submitting kernel thread, which costs a core of its own.
    #[arg(long)]
    pub sqpoll: bool,
    /// io_uring with polled completions; the device needs polling queues.
    #[arg(long)]
    pub iopoll: bool,
    /// Seed of positions and data.
    #[arg(long, value_name = "N")]
    pub seed: Option<String>,
    /// txlog: how the store lies in the page cache at the start.
    #[arg(long, value_name = "LAYOUT", value_enum)]
    pub layout: Option<StoreLayoutName>,
    /// txlog: the store by pread and pwrite.
    #[arg(long)]
    pub no_mmap: bool,
    /// txlog: do not sync the log.
    #[arg(long)]
    pub nosync: bool,
    /// txlog: do not write the log.
    #[arg(long)]
    pub nowritelog: bool,
    /// txlog: do not write the records back.
    #[arg(long)]
    pub nowritestore: bool,
    /// txlog: do not read the records first.
    #[arg(long)]
    pub noread: bool,
}

/// Engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    /// io_uring, or threads where it is refused.
    Auto,
    /// io_uring or nothing.
    Uring,
    /// pread and pwrite on a pool of threads.
    Threads,
}

/// How txlog's store lies in the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StoreLayoutName {
    /// Written in 4 KiB pieces and pinned there: a record makes 4 KiB dirty.
    Small,
    /// Written in 1 MiB pieces and pinned there: a record makes up to 1 MiB dirty where there are large folios.
    Large,
    /// Dropped: records are read from the device.
    Cold,
}

/// Written forms of a benchmark's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BenchFormat {
    /// For people.
    Text,
    /// One object with everything.
    Json,
    /// The structure of fio's JSON.
    Fio,
    /// Tables for a ticket.
    Markdown,
}

/// As long as rules need to look, at least.
fn parse_doctor_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(s) if (5.0..=3600.0).contains(&s) => Ok(s),
        Ok(_) => Err("must be 5 to 3600 seconds".into()),
        Err(_) => Err("is not a number of seconds".into()),
    }
}

/// A delay within what the program can keep.
fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(s) if (0.1..=3600.0).contains(&s) => Ok(s),
        Ok(_) => Err("must be 0.1 to 3600 seconds".into()),
        Err(_) => Err("is not a number of seconds".into()),
    }
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

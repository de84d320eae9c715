//! The whole command line in one place: parser, help, man page and completions come from it.

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
                  Exit codes: 0 fine, 1 failed, 2 wrong usage, 3 refused for safety, 4 needs a privilege."
)]
pub struct Cli {
    /// What to do; without it: the full screen.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of the full screen and of batch mode.
    #[command(flatten)]
    pub top: Top,
    /// Read another tree's proc, sys and dev instead of the machine's.
    #[arg(long, global = true, hide = true, value_name = "DIR")]
    pub root: Option<PathBuf>,
}

/// Options without a subcommand.
#[derive(Debug, Args)]
pub struct Top {
    /// Print lines instead of taking the screen, as iotop does.
    #[arg(short, long)]
    pub batch: bool,
    /// Reports to print in batch mode; without it: until interrupted.
    #[arg(short = 'n', long = "iter", value_name = "N", requires = "batch",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Seconds between samples, 0.1 to 3600.
    #[arg(short, long, value_name = "S", value_parser = seconds)]
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
pub enum Command {
    /// Print what the screen would show, once or several times.
    Snapshot(Snapshot),
    /// Print the man page.
    #[command(after_help = "Example:\n  iotop-plus man > /usr/local/share/man/man8/iotop-plus.8")]
    Man,
    /// Print a shell's completions.
    #[command(after_help = "Example:\n  iotop-plus completions bash > /etc/bash_completion.d/iotop-plus")]
    Completions {
        /// Which shell.
        shell: Shell,
    },
    /// Do one piece of work that may block, for the program itself.
    #[command(hide = true)]
    Worker,
    /// Write a tree that `--root` reads, without names and addresses: for tests and bug reports.
    #[command(hide = true)]
    Capture(Capture),
}

/// Options of `capture`.
#[derive(Debug, Args)]
pub struct Capture {
    /// Where the moments go, as t0, t1, ...
    pub dir: PathBuf,
    /// Moments.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1)]
    pub count: u32,
    /// Seconds between them.
    #[arg(short, long, value_name = "S", default_value = "1", value_parser = seconds)]
    pub delay: f64,
    /// Processes kept, the busiest.
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub processes: usize,
}

/// Options of `snapshot`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  iotop-plus snapshot -d 5 --format json | jq .devices")]
pub struct Snapshot {
    /// Seconds a sample covers, 0.1 to 3600.
    #[arg(short, long, value_name = "S", default_value = "1", value_parser = seconds)]
    pub delay: f64,
    /// Samples; each covers the delay, the first one too.
    #[arg(short = 'n', long = "count", value_name = "N", default_value = "1",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub count: u64,
    /// Only this pane; may be given several times.
    #[arg(long, value_name = "PANE", value_enum)]
    pub pane: Vec<PaneName>,
    /// How it is written.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_enum)]
    pub format: Format,
    /// Write to this file instead of standard output; an existing file is not replaced.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Panes a snapshot can be cut down to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PaneName {
    /// Block devices and network file systems.
    Devices,
    /// Tasks.
    Processes,
    /// Dirty pages, swap, pressure.
    Memory,
    /// The kernel log.
    Kernel,
}

/// Written forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned columns.
    Text,
    /// Tables for a ticket.
    Markdown,
    /// One object a sample and line, documented in the README; with panes chosen, without the others' keys.
    Json,
}

/// A delay within what the program can keep.
fn seconds(text: &str) -> Result<f64, String> {
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
    fn the_definition_holds() {
        Cli::command().debug_assert();
    }

    #[test]
    fn wrong_usage_is_refused() {
        for args in [
            vec!["-d", "0"],
            vec!["-d", "1e9"],
            vec!["-d", "nan"],
            vec!["-n", "3"],
            vec!["-b", "-n", "0"],
            vec!["--bogus"],
            vec!["snapshot", "--pane", "nowhere"],
            vec!["snapshot", "--format", "pdf"],
        ] {
            let all = ["iotop-plus"].into_iter().chain(args.iter().copied());
            assert!(Cli::try_parse_from(all).is_err(), "{args:?}");
        }
    }
}

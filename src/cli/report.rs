//! The command line of `report`.

use super::record::parse_duration_secs;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Options of `report`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  iotop-plus report -o ticket.md\n  \
                        iotop-plus report --for 5m --scrub -o ticket.html\n  \
                        iotop-plus report --bench 1 --experiment 1 > ticket.md\n\n\
                        Ctrl-C ends the look; the report is made of what was seen by then. Of a recording:\n\
                        iotop-plus replay FILE --format report")]
pub struct ReportArgs {
    /// Write to this file instead of standard output; an existing file is not replaced.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Look for so long: 30, 5m, 1h; most findings need 5 to 10 seconds.
    #[arg(long = "for", value_name = "T", default_value = "30", value_parser = parse_duration_secs)]
    pub time: u64,
    /// How it is written; without it as the file's ending says, else markdown.
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub format: Option<ReportFormat>,
    /// A kept result of `bench` to put in, by name or number; may be given several times.
    #[arg(long, value_name = "ID")]
    pub bench: Vec<String>,
    /// A kept experiment to put in, by name or number; may be given several times.
    #[arg(long, value_name = "ID")]
    pub experiment: Vec<String>,
    /// Replace names of hosts, people, home directories, network mounts, and addresses.
    #[arg(long)]
    pub scrub: bool,
}

/// Written forms of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// For tickets that render it.
    Markdown,
    /// One file, nothing fetched.
    Html,
}

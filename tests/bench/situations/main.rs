//! Whether the program names the right culprit, victim, device and file: `cargo bench --bench situations`, as root; about 20 s
//! a situation. Each situation is made with disks of its own and processes with names of their own, so that the truth is
//! known; `iotop-plus doctor` looks at it, and what it says is compared with the truth. Three run at a time, some alone, and
//! some in a guest of tests/kernels/boot. What was not right is run again, alone, at the end.
//!
//! `cargo bench --bench situations -- sync` runs those with `sync` in their name, `--list` lists all, `--write` writes
//! docs/situations.md after a run of all, `--record DIR` also keeps a small recording of each that was right, for
//! tests/situations.rs. Situations that need what this machine lacks are skipped by name. `--healthy MINUTES` instead watches
//! healthy loads for so long each and lists what was said above a note.

mod guest;
mod health;
#[path = "../interrupt.rs"]
#[allow(dead_code)]
mod interrupt;
mod judge;
mod layers;
mod list;
mod load;
mod program;
mod recording;
mod report;
mod run;
mod served_disk;
#[allow(dead_code)]
mod stage;
#[path = "../../fixture/trimmed.rs"]
mod trimmed;

use clap::Parser;
use list::Situation;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Set in the mount namespace of the benchmark.
const NAMESPACE_ENV: &str = "IOTOP_PLUS_SITUATIONS";

/// Compares findings with situations whose truth is known.
#[derive(Parser)]
struct Args {
    /// Only situations with one of these in their names.
    filters: Vec<String>,
    /// List the situations.
    #[arg(long)]
    list: bool,
    /// Write docs/situations.md.
    #[arg(long)]
    write: bool,
    /// Also keep recordings of those that were right in this directory, each with its truth.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Watch healthy loads for so long each instead.
    #[arg(long, value_name = "MINUTES")]
    healthy: Option<f64>,
    /// Situations at a time.
    #[arg(long, value_name = "N", default_value_t = 3)]
    lanes: usize,
    /// Print all that was said.
    #[arg(short, long)]
    verbose: bool,
    /// Set by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    if let Some(dir) = std::env::var_os(served_disk::SERVE_ENV) {
        served_disk::serve(Path::new(&dir));
    }
    if let Ok(words) = std::env::var(load::LOAD_ENV) {
        load::run(&words);
        return ExitCode::SUCCESS;
    }
    if let Some(code) = trimmed::run_file_worker() {
        return code;
    }
    let args = Args::parse();
    // A guest is told the whole names.
    let fits = |s: &Situation, f: &String| if guest::is_here() { s.name == f } else { s.name.contains(&**f) };
    let is_wanted = |s: &&Situation| args.filters.is_empty() || args.filters.iter().any(|f| fits(s, f));
    let wanted: Vec<&'static Situation> = list::all().filter(is_wanted).collect();
    if args.list {
        wanted.iter().for_each(|situation| println!("{:<32} {}", situation.name, situation.about));
        return ExitCode::SUCCESS;
    }
    if !rustix::process::geteuid().is_root() {
        println!("skipped: needs root");
        return ExitCode::SUCCESS;
    }
    if std::env::var_os(NAMESPACE_ENV).is_none() {
        return run_in_mount_namespace();
    }
    interrupt::catch();
    if let Some(minutes) = args.healthy {
        return health::watch(&wanted, minutes);
    }
    if guest::is_here() {
        guest::answer(&wanted);
        return ExitCode::SUCCESS;
    }
    let outcomes = run::all(&wanted, &args);
    println!("\n{}", report::summary(&outcomes));
    if args.write && !interrupt::is_over() {
        report::write(&outcomes);
    }
    ExitCode::SUCCESS
}

/// Mounts that hang are seen by nobody else.
fn run_in_mount_namespace() -> ExitCode {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private"]).arg(std::env::current_exe().expect("this program"));
    let status = command.args(std::env::args_os().skip(1)).env(NAMESPACE_ENV, "1").status();
    if status.expect("unshare").success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

//! Whether the program names the right culprit, victim, device and file: `cargo bench --bench situations`, as root; about 20 s
//! a situation. Each situation is made with disks of its own and processes with names of their own, so that the truth is
//! known; `iotop-plus doctor` looks at it, and what it says is compared with the truth.
//!
//! `cargo bench --bench situations -- sync` runs those with `sync` in their name, `--list` lists all, `--write` writes
//! docs/situations.md after a run of all, `--keep-recordings DIR` also records each. Situations that need what this machine
//! lacks are skipped by name.

#[path = "../interrupt.rs"]
#[allow(dead_code)]
mod interrupt;
mod judge;
mod list;
mod load;
mod report;
mod served_disk;
#[allow(dead_code)]
mod stage;

use clap::Parser;
use judge::{Said, Scene, Score, Truth, judge};
use list::Situation;
use serde_json::Value;
use stage::Stage;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

/// Environment variable with the program to judge, instead of the one built with this.
const BINARY_ENV: &str = "IOTOP_PLUS_SITUATIONS_BINARY";
/// Set in the mount namespace of the benchmark.
const NAMESPACE_ENV: &str = "IOTOP_PLUS_SITUATIONS";
/// Set in a guest, which nobody else uses.
const GUEST_ENV: &str = "IOTOP_PLUS_SITUATIONS_GUEST";
/// How long a load runs before the program looks at it.
const WARM_UP: Duration = Duration::from_secs(2);

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
    /// Also record each situation into this directory.
    #[arg(long, value_name = "DIR")]
    keep_recordings: Option<PathBuf>,
    /// Print all that was said.
    #[arg(short, long)]
    verbose: bool,
    /// Set by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A situation and its result.
struct Outcome {
    situation: &'static Situation,
    /// Why it was skipped, else truth and score.
    result: Result<(Truth, Score), String>,
}

fn main() -> ExitCode {
    if let Some(dir) = std::env::var_os(served_disk::SERVE_ENV) {
        served_disk::serve(Path::new(&dir));
    }
    if let Ok(words) = std::env::var(load::LOAD_ENV) {
        load::run(&words);
        return ExitCode::SUCCESS;
    }
    let args = Args::parse();
    let is_wanted = |s: &&Situation| args.filters.is_empty() || args.filters.iter().any(|f| s.name.contains(&**f));
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
    let before = findings_before();
    let mut outcomes = Vec::new();
    for situation in wanted {
        if interrupt::is_over() {
            break;
        }
        let outcome = Outcome { situation, result: run_situation(situation, &before, &args) };
        report::print(&outcome, args.verbose);
        outcomes.push(outcome);
    }
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

/// Rules and subjects that this machine has without any situation.
fn findings_before() -> Vec<(String, String)> {
    let doctor = look(8.0).unwrap_or_default();
    let stories = doctor["stories"].as_array().cloned().unwrap_or_default();
    let findings = stories.iter().flat_map(|story| story["findings"].as_array().cloned().unwrap_or_default());
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    findings.map(|f| (text(&f["rule"]), text(&f["subject"]["name"]))).collect()
}

fn program() -> Command {
    Command::new(std::env::var_os(BINARY_ENV).unwrap_or_else(|| env!("CARGO_BIN_EXE_iotop-plus").into()))
}

fn look(secs: f64) -> Result<Value, String> {
    let out = program().args(["doctor", "--json", "-d", &secs.to_string()]).stdin(Stdio::null()).output();
    let out = out.map_err(|err| err.to_string())?;
    serde_json::from_slice(&out.stdout).map_err(|err| format!("{err}: {}", String::from_utf8_lossy(&out.stderr)))
}

fn run_situation(situation: &Situation, before: &[(String, String)], args: &Args) -> Result<(Truth, Score), String> {
    let mut stage = Stage::new()?;
    let truth = (situation.make)(&mut stage)?;
    std::thread::sleep(WARM_UP);
    let mut names = stage.names();
    let recording = args.keep_recordings.as_ref().map(|dir| {
        let file = dir.join(format!("{}.iotop", situation.name));
        let secs = format!("{}s", situation.secs.ceil());
        let mut command = program();
        command.args(["record", "--syncs", "--files", "-q", "--replace", "--for", &secs]).arg(file);
        command.stdin(Stdio::null()).spawn().expect("the program")
    });
    let doctor = look(situation.secs)?;
    if let Some(mut recording) = recording {
        let _ = recording.wait();
    }
    let disks = stage.disks.clone();
    drop(stage);
    names.extend(disks.iter().cloned());
    let is_alone = std::env::var_os(GUEST_ENV).is_some();
    let scene = Scene { names, disks, is_alone, before: before.to_vec() };
    Ok((truth.clone(), judge(&truth, &Said::all(&doctor), &scene)))
}

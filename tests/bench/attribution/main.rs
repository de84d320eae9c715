//! Whether what tracing attributes to tasks and files is what happened: `cargo bench --bench attribution`, as root.
//!
//! `dump`: tasks work on slow and fast disks while the block tracepoints are written to a file by tracefs. Requests and
//! times by task and device, computed from that file alone, are compared with the program's, and both with the device's own
//! counters.
//!
//! `bytes`: fio writes and reads files with each of its engines, through the page cache and directly. The bytes of each file
//! are compared with fio's own.
//!
//! `delays`: ten pairs of tasks on a slow disk, of which one delays the other. What the program predicts that the delayed
//! task would gain without the other is compared with what it gains when the other is stopped.
//!
//! Without a word all three run. Needs root, /dev/fuse, losetup, fio; file systems whose mkfs is missing are skipped.

mod bytes;
mod delays;
mod dump;
#[path = "../situations/load.rs"]
mod load;
#[path = "../situations/served_disk.rs"]
mod served_disk;
#[path = "../situations/stage.rs"]
#[allow(dead_code)]
mod stage;
mod trace_file;
mod traced;

use std::path::Path;
use std::process::{Command, ExitCode};

/// A word of the command line, and what it runs; whether that is right.
type Part = (&'static str, fn() -> bool);

/// Set in the mount namespace of the benchmark.
const NAMESPACE_ENV: &str = "IOTOP_PLUS_ATTRIBUTION";

fn main() -> ExitCode {
    if let Some(dir) = std::env::var_os(served_disk::SERVE_ENV) {
        served_disk::serve(Path::new(&dir));
    }
    if let Ok(words) = std::env::var(load::LOAD_ENV) {
        load::run(&words);
        return ExitCode::SUCCESS;
    }
    if !rustix::process::geteuid().is_root() {
        println!("skipped: needs root");
        return ExitCode::SUCCESS;
    }
    if std::env::var_os(NAMESPACE_ENV).is_none() {
        return run_in_mount_namespace();
    }
    let words: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let parts: [Part; 3] = [("dump", dump::run), ("bytes", bytes::run), ("delays", delays::run)];
    let wanted = parts.iter().filter(|(name, _)| words.is_empty() || words.iter().any(|w| w == name));
    // All of them, also after one has failed.
    match wanted.filter(|(_, part)| !part()).count() {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// The disks and tracefs are mounted for this process alone.
fn run_in_mount_namespace() -> ExitCode {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private"]).arg(std::env::current_exe().expect("this program"));
    let status = command.args(std::env::args_os().skip(1)).env(NAMESPACE_ENV, "1").status();
    if status.expect("unshare").success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

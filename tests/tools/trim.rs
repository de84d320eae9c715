//! Trims a recording for the tests: only chosen programs, devices and log lines stay, and the host has another name.
//!
//! `cargo run --example trim -- IN OUT DEVICE PROGRAM... [--rename FROM=TO]...` keeps a device, the processes whose names are
//! given, and kernel threads. A program given as `NAME=TEXT` has a command line with that text. `--rename` replaces a text in
//! command lines and names of control groups.

#[path = "../fixture/trimmed.rs"]
mod trimmed;

use std::path::Path;
use std::process::ExitCode;
use trimmed::{Kept, run_file_worker, trim};

fn main() -> ExitCode {
    if let Some(code) = run_file_worker() {
        return code;
    }
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let mut renames = Vec::new();
    while let Some(at) = args.iter().position(|arg| arg == "--rename").filter(|at| at + 1 < args.len()) {
        args.remove(at);
        let pair = args.remove(at);
        renames.extend(pair.split_once('=').map(|(from, to)| (from.to_owned(), to.to_owned())));
    }
    let [from, to, device, programs @ ..] = args.as_slice() else {
        eprintln!("usage: trim IN OUT DEVICE PROGRAM... [--rename FROM=TO]...");
        return ExitCode::from(2);
    };
    let kept = Kept {
        devices: vec![device.clone()],
        programs: programs.to_vec(),
        mounts: vec!["/srv/".into()],
        renames,
        only_new_log: true,
        facts: false,
    };
    match trim(Path::new(from), Path::new(to), kept) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

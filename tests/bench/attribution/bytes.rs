//! Bytes of files by fio's engine, beside fio's own count and the device's.
//!
//! btrfs reads a part again when a page of the buffer was not there yet: fio's first blocks with each buffer, unless the
//! buffers are registered. There the device's count is what is right.

use crate::stage::{Result, Stage, run as run_program};
use crate::traced;
use iotop_plus::bpf::Tracer;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const MIB: u64 = 32;
/// Percent.
const MOST_OFF: f64 = 1.0;
const ATTEMPTS: usize = 3;
const ENGINES: [(&str, &[&str]); 10] = [
    ("psync", &["--ioengine=psync"]),
    ("psync, direct", &["--ioengine=psync", "--direct=1"]),
    ("pvsync2", &["--ioengine=pvsync2"]),
    ("pvsync2, direct", &["--ioengine=pvsync2", "--direct=1"]),
    ("mmap", &["--ioengine=mmap"]),
    ("io_uring", &["--ioengine=io_uring", "--iodepth=8"]),
    ("io_uring, direct", &["--ioengine=io_uring", "--iodepth=8", "--direct=1"]),
    ("io_uring, direct, registered", &["--ioengine=io_uring", "--iodepth=8", "--direct=1", "--fixedbufs"]),
    ("libaio, direct", &["--ioengine=libaio", "--iodepth=8", "--direct=1"]),
    ("posixaio, direct", &["--ioengine=posixaio", "--iodepth=8", "--direct=1"]),
];

/// Runs all engines on each file system; whether all agree.
pub fn run() -> bool {
    println!("\n| file system | engine | written: fio, program | read: fio, program, device |\n|---|---|---|---|");
    ["ext4", "xfs", "btrfs"].iter().fold(true, |is_right, fs| match check_file_system(fs) {
        Ok(is_same) => is_right && is_same,
        Err(why) => {
            println!("skipped {fs}: {why}");
            is_right
        }
    })
}

fn check_file_system(fs: &str) -> Result<bool> {
    let mut stage = Stage::new()?;
    let (disk, at) = stage.fast(fs, 640)?;
    let tracer = traced::load_tracer(true)?;
    let mut is_right = true;
    for (number, (engine, options)) in ENGINES.iter().enumerate() {
        let mut is_same = false;
        for attempt in 0..ATTEMPTS {
            // With data, because fio writes files of some engines twice otherwise.
            let [log, table] = ["written", "read"].map(|name| format!("{name}-{number}-{attempt}"));
            let (log, table) = (stage.file(&at, &log, MIB)?, stage.file(&at, &table, MIB)?);
            let written = measure(&tracer, &log, "write", options)?;
            let device = device_reads(&disk.name)?;
            let read = measure(&tracer, &table, "read", options)?;
            let device = device_reads(&disk.name)? - device;
            println!("| {fs} | {engine} | {} | {}, {device} |", show(written), show(read));
            let is_read_right = [(read.0, read.1), (device, read.1)].iter().any(|pair| off(*pair).abs() <= MOST_OFF);
            is_same = off(written).abs() <= MOST_OFF && is_read_right;
            remove(&[log, table])?;
            if is_same {
                break;
            }
        }
        is_right &= is_same;
    }
    Ok(is_right)
}

fn remove(files: &[PathBuf]) -> Result<()> {
    files.iter().try_for_each(|file| std::fs::remove_file(file).map_err(|err| format!("{}: {err}", file.display())))
}

/// Bytes that a device has read.
fn device_reads(name: &str) -> Result<u64> {
    let path = format!("/sys/block/{name}/stat");
    let text = std::fs::read_to_string(&path).map_err(|err| format!("{path}: {err}"))?;
    let sectors = text.split_whitespace().nth(2).and_then(|n| n.parse::<u64>().ok());
    Ok(sectors.ok_or_else(|| format!("{path}: no sectors"))? * 512)
}

fn off((fio, program): (u64, u64)) -> f64 {
    (program as f64 / fio.max(1) as f64 - 1.0) * 100.0
}

fn show(pair: (u64, u64)) -> String {
    format!("{}, {} ({:+.2} %)", pair.0, pair.1, off(pair))
}

/// Bytes as fio and as the program count them, while fio reads or writes the file once.
fn measure(tracer: &Tracer, file: &Path, rw: &str, options: &[&str]) -> Result<(u64, u64)> {
    let is_write = rw == "write";
    run_program("sync", &[])?;
    let before = traced::file_bytes(tracer, file)[usize::from(is_write)];
    let mut command = Command::new("fio");
    command.args(["--name=t", "--bs=64k", "--output-format=json", "--invalidate=1", "--end_fsync=1"]);
    command.arg(format!("--size={MIB}M")).arg(format!("--rw={rw}")).arg(format!("--filename={}", file.display()));
    let out = command.args(options).stdin(Stdio::null()).output().map_err(|err| format!("needs fio: {err}"))?;
    let text = String::from_utf8_lossy(&out.stdout);
    let json = text.find('{').and_then(|at| serde_json::from_str::<Value>(&text[at..]).ok());
    let json = json.ok_or_else(|| format!("fio: {}", String::from_utf8_lossy(&out.stderr).trim()))?;
    let fio = json["jobs"][0][rw]["io_bytes"].as_u64().unwrap_or(0);
    run_program("sync", &[])?;
    Ok((fio, traced::file_bytes(tracer, file)[usize::from(is_write)] - before))
}

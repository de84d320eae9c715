//! Bytes of files by fio's engine, beside fio's own count and the device's.
//!
//! btrfs reads directly with page faults disabled. A buffer whose first page was never touched makes it read through the
//! page cache instead, with readahead: the device then reads more than fio asks for. fio touches its buffers beforehand only
//! in jobs that may write, so the reads that are held against fio's count are a mix of reads and writes with 100 % reads.
//! Plain reads, whose first blocks go into untouched buffers, are held against the device's count.

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
const WRITE: &[&str] = &["--rw=write"];
const READ: &[&str] = &["--rw=read"];
/// Reads only, in a job that may write: fio fills its buffers before it starts.
const READ_INTO_TOUCHED: &[&str] = &["--rw=rw", "--rwmixread=100"];
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
    println!(
        "\n| file system | engine | written: fio, program | read: fio, program | into new buffers: device, program, fio |"
    );
    println!("|---|---|---|---|---|");
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
            let written = measure(&tracer, &log, "write", WRITE, options)?;
            let read = measure(&tracer, &table, "read", READ_INTO_TOUCHED, options)?;
            let device = device_reads(&disk.name)?;
            let plain = measure(&tracer, &table, "read", READ, options)?;
            let fresh = (device_reads(&disk.name)? - device, plain.1);
            println!("| {fs} | {engine} | {} | {} | {}, {} |", show(written), show(read), show(fresh), plain.0);
            is_same = [written, read, fresh].iter().all(|pair| off(*pair).abs() <= MOST_OFF);
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

/// How far the program is off, percent.
fn off((right, program): (u64, u64)) -> f64 {
    (program as f64 / right.max(1) as f64 - 1.0) * 100.0
}

fn show(pair: (u64, u64)) -> String {
    format!("{}, {} ({:+.2} %)", pair.0, pair.1, off(pair))
}

/// Bytes as fio and as the program count them, while fio reads or writes the file once. `rw` is the direction in fio's report.
fn measure(tracer: &Tracer, file: &Path, rw: &str, job: &[&str], options: &[&str]) -> Result<(u64, u64)> {
    let is_write = rw == "write";
    run_program("sync", &[])?;
    let before = traced::file_bytes(tracer, file)[usize::from(is_write)];
    let mut command = Command::new("fio");
    command.args(["--name=t", "--bs=64k", "--output-format=json", "--invalidate=1", "--end_fsync=1"]);
    command.arg(format!("--size={MIB}M")).arg(format!("--filename={}", file.display()));
    let out =
        command.args(job).args(options).stdin(Stdio::null()).output().map_err(|err| format!("needs fio: {err}"))?;
    let text = String::from_utf8_lossy(&out.stdout);
    let json = text.find('{').and_then(|at| serde_json::from_str::<Value>(&text[at..]).ok());
    let json = json.ok_or_else(|| format!("fio: {}", String::from_utf8_lossy(&out.stderr).trim()))?;
    let fio = json["jobs"][0][rw]["io_bytes"].as_u64().unwrap_or(0);
    run_program("sync", &[])?;
    Ok((fio, traced::file_bytes(tracer, file)[usize::from(is_write)] - before))
}

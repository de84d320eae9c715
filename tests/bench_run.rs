//! `bench` as a person meets it: the real binary in a real directory. What needs root, a loop device or
//! fsfreeze says so and passes where they are missing.

#[path = "bench_run/examples.rs"]
mod examples;
#[path = "bench_run/fio.rs"]
mod fio;
#[path = "bench_run/fio_jobs.rs"]
mod fio_jobs;
#[path = "bench_run/fio_machine.rs"]
mod fio_machine;
#[path = "bench_run/fio_tools.rs"]
mod fio_tools;
#[path = "bench_run/lab.rs"]
mod lab;
#[path = "bench_run/network.rs"]
mod network;
#[path = "bench_run/outputs.rs"]
mod outputs;
#[path = "bench_run/readahead.rs"]
mod readahead;
#[path = "bench_run/trouble.rs"]
mod trouble;
#[path = "bench_run/verdicts.rs"]
mod verdicts;

use lab::{BIN, BenchDir, LongRun, LoopDevice};
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn every_file_profile_runs_and_leaves_no_files() {
    let Some(place) = BenchDir::new() else { return };
    let time = ["--time", "0.2"];
    for (profile, args) in [
        ("randrw", &time[..]),
        ("randread", &["--time", "0.2", "--buffered", "--engine", "threads", "--depth", "4"]),
        ("randwrite", &["--io-size", "1M", "--time", "0", "--fsync", "10", "--jobs", "2"]),
        ("seqread", &time[..]),
        ("seqwrite", &["--io-size", "16M", "--refill"]),
        ("sweep", &["--time", "0.01"]),
        ("fsync", &time[..]),
        ("append", &time[..]),
        ("chunks", &[]),
        ("txlog", &["--set", "transactions=3"]),
        ("cached", &[]),
        ("depth", &["--time", "0.1", "--depth", "4"]),
        ("mix", &["--time", "0.1"]),
        ("steady", &["--time", "0.05"]),
    ] {
        let report = place.json(profile, args);
        assert_eq!(report["end"], "complete", "{profile}");
        let parts = report["parts"].as_array().unwrap();
        assert!(!parts.is_empty(), "{profile}");
        let counted =
            |p: &Value| ["read", "write", "sync"].iter().map(|k| p[*k]["ios"].as_u64().unwrap()).sum::<u64>() > 0;
        assert!(parts.iter().any(counted), "{profile}: nothing counted");
    }
    let left: Vec<_> = std::fs::read_dir(place.path()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["state"]);
    let list = String::from_utf8(place.run(&["bench", "list"]).stdout).unwrap();
    assert_eq!(list.matches(" IOPS, ").count(), 14, "{list}");
    let compared = place.run(&["bench", "compare", "1", "1"]);
    assert!(String::from_utf8_lossy(&compared.stdout).contains("No difference shown"));
}

#[test]
fn io_size_limit_is_exact() {
    let Some(place) = BenchDir::new() else { return };
    let report = place.json("randwrite", &["--io-size", "1M", "--time", "0", "--fsync", "16"]);
    let part = &report["parts"][0];
    assert_eq!(part["write"]["bytes"], 1 << 20);
    assert_eq!(part["write"]["ios"], 256);
    assert_eq!(part["sync"]["ios"], 15);
}

#[test]
fn dangerous_targets_are_refused_with_exit_code_3() {
    let Some(place) = BenchDir::new() else { return };
    let file = place.path().join("precious");
    std::fs::write(&file, b"precious").unwrap();
    let dangling = place.path().join("dangling");
    std::os::unix::fs::symlink("nowhere", &dangling).unwrap();
    let device = place.path().join("device");
    std::os::unix::fs::symlink("/dev/null", &device).unwrap();
    let code = |args: &[&str]| {
        let mut all = vec!["bench", "run"];
        all.extend(args);
        let out = place.run(&all);
        assert!(out.stdout.is_empty(), "{args:?}");
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    for dir in
        [file.as_path(), &dangling, &device, Path::new("/proc"), Path::new("/nonexistent"), Path::new("/dev/null")]
    {
        let (code, why) = code(&["randrw", dir.to_str().unwrap(), "-q"]);
        assert_eq!(code, Some(3), "{}: {why}", dir.display());
        assert!(why.contains("refused: "), "{why}");
    }
    let here = place.path().to_str().unwrap();
    assert_eq!(code(&["randrw", here, "-q", "--size", "900000G"]).0, Some(3));
    for wrong in [
        &["randrw"][..],
        &["nothing", here],
        &["randrw", here, "--depth", "0"],
        &["randrw", here, "--depth", "1000000"],
        &["randrw", here, "--block", "4095"],
        &["randread", here, "--read-pct", "50"],
        &["fork", here],
        &["fsync", here, "--set", "min=1"],
        &["missing.fio", here],
    ] {
        assert_eq!(code(wrong).0, Some(2), "{wrong:?}");
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"precious");
}

#[test]
fn cancel_sigterm_and_a_closed_pipe_give_a_partial_report() {
    let Some(place) = BenchDir::new() else { return };
    for how in ["cancel", "terminate", "close"] {
        let mut long = LongRun::start(place.path());
        match how {
            "cancel" => writeln!(long.child.stdin.as_mut().unwrap(), "\"cancel\"").unwrap(),
            "close" => drop(long.child.stdin.take()),
            _ => {
                let pid = rustix::process::Pid::from_child(&long.child);
                rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
            }
        }
        let report = long.wait_for_report();
        assert_eq!(report["end"], "cancelled", "{how}");
        assert!(report["parts"][0]["read"]["ios"].as_u64() > Some(0), "{how}");
        assert!(report["parts"][0]["read"]["lat"]["histogram"]["buckets"].as_array().is_some_and(|b| !b.is_empty()));
    }
}

#[test]
fn a_killed_child_leaves_no_files() {
    let Some(place) = BenchDir::new() else { return };
    for _ in 0..3 {
        let mut long = LongRun::start(place.path());
        long.child.kill().unwrap();
        long.child.wait().unwrap();
    }
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn an_invalid_plan_gets_a_failed_message() {
    for plan in ["{}x", "{\"profile\":\"nothing\"}", "{\"depth\":0}"] {
        let mut child =
            Command::new(BIN).arg("bench-child").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        writeln!(child.stdin.as_mut().unwrap(), "{plan}").unwrap();
        let out = child.wait_with_output().unwrap();
        assert!(String::from_utf8_lossy(&out.stdout).starts_with("{\"failed\":"), "{plan}");
    }
}

#[test]
fn a_frozen_file_system_ends_the_run_at_the_stall_limit() {
    let (Some(lab), Some(place)) = (LoopDevice::mounted(), BenchDir::new()) else { return };
    if !lab.freeze("-f") {
        return println!("skipped: fsfreeze does not work here");
    }
    let mnt = lab.mount_point();
    let out =
        place.run(&["bench", "run", "randrw", mnt.to_str().unwrap(), "--size", "16M", "-q", "--stall-limit", "1"]);
    assert_eq!(out.status.code(), Some(1));
    let why = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(why.contains("nothing has moved") && why.contains("frozen"), "{why}");
}

#[test]
fn a_read_only_and_a_full_file_system_are_refused() {
    let (Some(lab), Some(place)) = (LoopDevice::mounted(), BenchDir::new()) else { return };
    let mnt = lab.mount_point();
    let run = || {
        let out = place.run(&["bench", "run", "randrw", mnt.to_str().unwrap(), "--size", "16M", "-q", "--time", "0.1"]);
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let fill = std::fs::File::create(mnt.join("fill")).unwrap();
    rustix::fs::fallocate(&fill, rustix::fs::FallocateFlags::empty(), 0, 2 << 30).unwrap();
    let (code, why) = run();
    assert!(code == Some(3) && why.contains("reserve"), "{code:?} {why}");
    drop(fill);
    let remount = Command::new("mount").args(["-o", "remount,ro"]).arg(&mnt).status().unwrap();
    assert!(remount.success());
    let (code, why) = run();
    assert!(code == Some(3) && why.contains("read-only"), "{code:?} {why}");
}

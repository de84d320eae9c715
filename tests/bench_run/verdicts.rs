//! What a run concludes when something other than the storage decided its figures: a frozen file system, a stopped
//! process, a neighbour on the disk, Ctrl-C.

use crate::lab::{BenchDir, LongRun, LoopDevice, skip};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn warnings(report: &Value) -> String {
    report["warnings"].to_string()
}

fn causes(part: &Value) -> Vec<&str> {
    part["disturbances"].as_array().into_iter().flatten().filter_map(|d| d["cause"].as_str()).collect()
}

#[test]
fn a_freeze_is_named_and_is_no_exhausted_credit() {
    let Some(lab) = LoopDevice::mounted() else { return };
    let plan = json!({
        "profile": "randwrite", "read_pct": 0, "directory": lab.mount_point(), "size": 16 << 20, "ramp_ms": 0,
        "time_ms": 10_000,
    });
    let long = LongRun::start_with(&plan);
    std::thread::sleep(Duration::from_millis(4500));
    if !lab.freeze("-f") {
        return skip("fsfreeze does not work here");
    }
    std::thread::sleep(Duration::from_millis(5000));
    lab.freeze("-u");
    let report = long.wait_for_report();
    assert_eq!(report["end"], "complete");
    let part = &report["parts"][0];
    assert!(causes(part).contains(&"frozen"), "{}", part["disturbances"]);
    let said = warnings(&report);
    assert!(said.contains("the file system was frozen (fsfreeze) for"), "{said}");
    assert!(!said.contains("used up"), "{said}");
    assert_eq!(report["ruler"]["class"], Value::Null, "{}", report["ruler"]);
}

#[test]
fn a_stopped_run_goes_on_and_says_that_it_was_stopped() {
    let Some(place) = BenchDir::new() else { return };
    let plan = json!({
        "profile": "randread", "read_pct": 100, "directory": place.path(), "size": 16 << 20, "ramp_ms": 0,
        "time_ms": 6000, "stall_limit_ms": 1000,
    });
    let long = LongRun::start_with(&plan);
    let pid = Pid::from_child(&long.child);
    std::thread::sleep(Duration::from_millis(1000));
    kill_process(pid, Signal::STOP).unwrap();
    std::thread::sleep(Duration::from_millis(3000));
    kill_process(pid, Signal::CONT).unwrap();
    let report = long.wait_for_report();
    assert_eq!(report["end"], "complete", "the pause is no stall of the storage");
    assert_eq!(causes(&report["parts"][0]), ["stopped"], "{}", report["parts"][0]["disturbances"]);
    assert!(warnings(&report).contains("this program was stopped (SIGSTOP) for"), "{}", warnings(&report));
}

/// Reads a file of the same disk past the cache until told to end.
fn read_beside(file: &Path, done: &AtomicBool) {
    while !done.load(Ordering::Relaxed) {
        let input = format!("if={}", file.display());
        let words = [&input, "of=/dev/null", "bs=1M", "iflag=direct"];
        let done = Command::new("dd").args(words).stderr(Stdio::null()).status().unwrap();
        assert!(done.success());
    }
}

#[test]
fn neighbours_are_noticed_also_beside_logs() {
    let (Some(lab), Some(place)) = (LoopDevice::mounted(), BenchDir::new()) else { return };
    let mnt = lab.mount_point();
    let dir = mnt.to_str().unwrap();
    let other = mnt.join("other");
    std::fs::write(&other, vec![7u8; 64 << 20]).unwrap();
    let run = |profile: &str| place.json_in(dir, profile, &["--time", "2"]);
    let loud = |report: &Value| {
        let parts = report["parts"].as_array().unwrap().iter();
        parts.map(|p| p["foreign_pct"].as_f64().unwrap_or(0.0)).fold(0.0, f64::max)
    };
    for profile in ["randread", "fsync", "append"] {
        let alone = run(profile);
        assert!(loud(&alone) < 10.0, "{profile} alone: {} %", loud(&alone));
        let done = AtomicBool::new(false);
        let beside = std::thread::scope(|scope| {
            scope.spawn(|| read_beside(&other, &done));
            let report = run(profile);
            done.store(true, Ordering::Relaxed);
            report
        });
        assert!(loud(&beside) > 10.0, "{profile}: {}", beside["parts"]);
        assert!(warnings(&beside).contains("not this run's"), "{profile}: {}", warnings(&beside));
    }
}

#[test]
fn a_cancelled_run_says_so_in_every_format_and_in_its_exit_code() {
    let Some(place) = BenchDir::new() else { return };
    let cancelled = |format: &str| {
        let dir = place.path().to_str().unwrap();
        let args = ["bench", "run", "randread", dir, "--size", "16M", "--ramp", "0", "--time", "60", "-q", "--format"];
        let mut command = place.command(&[&args[..], &[format]].concat());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_child(&child);
        std::thread::sleep(Duration::from_millis(2500));
        kill_process(pid, Signal::INT).unwrap();
        let out = child.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(130), "{format}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    assert!(cancelled("text").contains("cancelled: the figures are those up to then"));
    assert!(cancelled("markdown").contains("Ended: cancelled"));
    let report: Value = serde_json::from_str(&cancelled("json")).unwrap();
    assert_eq!(report["end"], "cancelled");
    let fio: Value = serde_json::from_str(&cancelled("fio")).unwrap();
    assert_eq!(fio["jobs"][0]["error"], libc::ECANCELED);
}

#[test]
fn a_page_cache_that_answers_is_named() {
    let Some(place) = BenchDir::new() else { return };
    let engine = ["--buffered", "--depth", "4", "--time", "2"];
    let report = place.json("randread", &engine);
    if report["parts"][0]["device"].is_null() {
        return skip("no device of its own here");
    }
    assert_eq!(report["parts"][0]["from_cache"], true, "{}", report["parts"][0]["device"]);
    assert!(warnings(&report).contains("the page cache answered, not the device"), "{}", warnings(&report));
    let direct = place.json("randread", &["--time", "1"]);
    assert_eq!(direct["parts"][0]["from_cache"], Value::Null);
}

/// Anonymous memory of a process on huge pages, KiB.
fn huge_kib(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = text.lines().find(|l| l.starts_with("AnonHugePages:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn buffers_are_on_ordinary_pages_unless_huge_ones_are_asked_for() {
    let Some(place) = BenchDir::new() else { return };
    let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if !setting.contains("[madvise]") {
        return skip("this machine gives huge pages to all or to none");
    }
    let plan = |huge: bool| {
        json!({
            "profile": "seqwrite", "read_pct": 0, "block": 1 << 20, "depth": 32, "directory": place.path(),
            "size": 64 << 20, "ramp_ms": 0, "time_ms": 60_000, "huge_pages": huge,
        })
    };
    for (huge, name) in [(false, "ordinary pages"), (true, "huge pages")] {
        let mut long = LongRun::start_with(&plan(huge));
        let kib = huge_kib(long.child.id());
        drop(long.child.stdin.take());
        let engine = long.wait_for_report()["parts"][0]["engine"].as_str().unwrap().to_owned();
        assert!(engine.contains(&format!(", {name})")), "{engine}");
        assert_eq!(kib > 16 << 10, huge, "{kib} KiB on huge pages");
    }
    let dir = place.path().to_str().unwrap();
    let said = |more: &str| {
        String::from_utf8(place.run(&["bench", "run", "seqwrite", dir, "--huge-pages", more]).stdout).unwrap()
    };
    assert!(said("--dry-run").contains("buffers on huge pages"), "{}", said("--dry-run"));
    assert!(said("--fio-job").contains("mem=mmaphuge"), "{}", said("--fio-job"));
}

#[test]
fn a_group_s_directory_is_allowed_with_a_word_and_a_stranger_s_refused() {
    use std::os::unix::fs::PermissionsExt;
    let Some(place) = BenchDir::new() else { return };
    if !rustix::process::geteuid().is_root() {
        return skip("needs root to be somebody else");
    }
    let dir = place.path().join("shared");
    std::fs::create_dir(&dir).unwrap();
    std::os::unix::fs::chown(&dir, Some(0), Some(54_321)).unwrap();
    // The temporary directory itself is its owner's alone.
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let run = |mode: u32| {
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(mode)).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "54320", "--regid", "54321", "--clear-groups", crate::lab::BIN, "bench", "run"]);
        command.args([
            "randread",
            dir.to_str().unwrap(),
            "--size",
            "16M",
            "--time",
            "0.2",
            "--ramp",
            "0",
            "-q",
            "--no-keep",
        ]);
        let out = command.output().unwrap();
        let text = [out.stdout, out.stderr].concat();
        (out.status.code(), String::from_utf8_lossy(&text).into_owned())
    };
    let (code, text) = run(0o770);
    if code == Some(126) || code == Some(127) {
        return skip("another user cannot run this binary here");
    }
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("belongs to user 0 and may be written by its group 54321"), "{text}");
    let (code, text) = run(0o755);
    assert!(code == Some(4) && text.contains("you may not write there"), "{code:?} {text}");
}

/// Bytes that the program read and that the device read meanwhile.
fn bytes_read(part: &Value) -> (f64, f64) {
    let device = part["device"]["read_mb_per_s"].as_f64().unwrap_or(0.0) * 1_048_576.0;
    (part["read"]["bytes"].as_f64().unwrap(), device * part["device_ns"].as_f64().unwrap() / 1e9)
}

#[test]
fn cold_passes_are_read_from_the_device_and_others_are_not() {
    let Some(lab) = LoopDevice::mounted() else { return };
    let Some(place) = BenchDir::new() else { return };
    let dir = lab.mount_point();
    let run = |profile: &str, more: &[&str]| {
        let mut args = vec!["--time", "2", "--block", "64k", "--depth", "1"];
        args.extend(more);
        let report = place.json_in(dir.to_str().unwrap(), profile, &args);
        let (own, device) = bytes_read(&report["parts"][0]);
        assert!(own > f64::from(3 * (16 << 20)), "{profile}: several passes over 16 MiB, not {own} bytes");
        device / own
    };
    for profile in ["seqread", "randread"] {
        let (warm, cold) = (run(profile, &["--buffered"]), run(profile, &["--cold"]));
        // In a random pass some blocks are read more than once.
        let least = if profile == "seqread" { 0.8 } else { 0.4 };
        assert!(warm < 0.2 && cold > least, "{profile}: the device read {warm} of it, and {cold} with --cold");
    }
    let report = {
        let args =
            ["bench", "run", "cached", dir.to_str().unwrap(), "--size", "16M", "--cold", "-q", "--format", "json"];
        serde_json::from_slice::<Value>(&place.run(&args).stdout).expect("JSON")
    };
    for part in report["parts"].as_array().unwrap() {
        let (own, device) = bytes_read(part);
        assert!(device > 0.8 * own, "{}: the device read {device} of {own} bytes", part["label"]);
    }
}

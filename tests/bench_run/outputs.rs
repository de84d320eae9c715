//! What a result can be written as, and whether fio's own tools take it; progress without a terminal.

use crate::lab::{BenchDir, skip};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const RUN: [&str; 10] = ["--size", "16M", "--ramp", "0", "--time", "2", "--depth", "8", "--block", "4k"];

fn run(place: &BenchDir, more: &[&str]) -> String {
    let dir = place.path().to_str().unwrap();
    let out = place.run(&[&["bench", "run", "randrw", dir], &RUN[..], more].concat());
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// A tool of fio's, unpacked into `dir` if it is in the documentation.
fn fio_tool(dir: &Path, name: &str) -> Option<PathBuf> {
    let installed = Path::new("/usr/bin").join(name);
    if installed.exists() {
        return Some(installed);
    }
    let packed = Path::new("/usr/share/doc/fio").join(format!("{name}.gz"));
    let text = Command::new("zcat").arg(&packed).stderr(Stdio::null()).output().ok().filter(|o| o.status.success())?;
    let path = dir.join(name);
    std::fs::write(&path, text.stdout).ok()?;
    Some(path)
}

/// Its output; `None` if it, Python or a module is missing here.
fn run_tool(dir: &Path, name: &str, args: &[&str]) -> Option<String> {
    let Some(tool) = fio_tool(dir, name) else {
        skip(&format!("no {name} here"));
        return None;
    };
    let out = Command::new("python3").arg(tool).args(args).current_dir(dir).output().ok()?;
    let why = String::from_utf8_lossy(&out.stderr).into_owned();
    if why.contains("No module named") {
        skip(&format!("{name}: {why}"));
        return None;
    }
    assert!(out.status.success(), "{name}: {why}");
    Some(String::from_utf8_lossy(&out.stdout).into_owned())
}

#[test]
fn fio_s_tools_read_our_logs_and_json_plus() {
    let Some(place) = BenchDir::new() else { return };
    let dir = place.path();
    let (prefix, json) = (dir.join("log"), dir.join("plus.json"));
    let (prefix, json) = (prefix.to_str().unwrap(), json.to_str().unwrap());
    run(&place, &["-q", "--fio-logs", prefix, "--format", "fio+", "--output", json]);
    let report: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    let bins = report["jobs"][0]["read"]["clat_ns"]["bins"].as_object().expect("bins");
    let counted: u64 = bins.values().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(counted, report["jobs"][0]["read"]["total_ios"].as_u64().unwrap());
    for kind in ["bw", "iops", "lat", "clat", "slat", "clat_hist"] {
        let text = std::fs::read_to_string(format!("{prefix}_{kind}.1.log")).unwrap();
        assert!(text.lines().count() >= 4, "{kind}: {text}");
    }
    // The histograms of the intervals hold every read of the last interval but the ones after it.
    let histograms = std::fs::read_to_string(format!("{prefix}_clat_hist.1.log")).unwrap();
    let reads = histograms.lines().map(|l| l.split(", ").map(|n| n.parse::<u64>().unwrap()).collect::<Vec<_>>());
    let logged: u64 = reads.filter(|l| l[1] == 0).map(|l| l[3..].iter().sum::<u64>()).sum();
    assert!(logged > counted / 2 && logged <= counted, "{logged} of {counted}");
    if run_tool(dir, "fio_jsonplus_clat2csv", &[json, "plus.csv"]).is_some() {
        assert!(
            run_tool(dir, "fio_jsonplus_clat2csv", &[json, "plus.csv", "--validate"]).unwrap().contains("validated")
        );
    }
    if let Some(said) = run_tool(dir, "fiologparser.py", &["-i", "500", &format!("{prefix}_lat.1.log")]) {
        let values: Vec<f64> = said.split([',', '\n']).filter_map(|n| n.trim().parse().ok()).collect();
        assert!(values.iter().any(|v| *v > 0.0), "{said}");
    }
    let args = ["--time-quantum", "1", "--bucket-groups", "29", "--bucket-bits", "6", "--percentiles", "50", "99"];
    let log = format!("{prefix}_clat_hist.1.log");
    if let Some(said) = run_tool(dir, "fio-histo-log-pctiles.py", &[&args[..], &["--", &log]].concat()) {
        assert!(said.lines().count() > 2 && said.contains("50"), "{said}");
    }
}

#[test]
fn a_result_is_written_as_csv_charts_and_a_page_and_never_over_a_file() {
    let Some(place) = BenchDir::new() else { return };
    let csv = run(&place, &["-q", "--format", "csv"]);
    let columns = csv.lines().next().unwrap().split(',').count();
    assert!(csv.lines().count() == 3 && csv.lines().all(|l| l.split(',').count() == columns), "{csv}");
    let show = |format: &str, file: &str| {
        let path = place.path().join(file);
        let out = place.run(&["bench", "show", "1", "--format", format, "-o", path.to_str().unwrap()]);
        (out.status.code(), std::fs::read(path).unwrap_or_default())
    };
    let svg = show("svg", "a.svg").1;
    assert!(String::from_utf8_lossy(&svg).matches("<polyline").count() >= 4);
    assert!(String::from_utf8_lossy(&show("html", "a.html").1).contains("<pre>randrw on"));
    assert!(show("png", "a.png").1.starts_with(b"\x89PNG"));
    assert_ne!(show("svg", "a.html").0, Some(0), "an existing file");
}

#[test]
fn progress_goes_to_stderr_without_a_terminal_and_is_silent_on_request() {
    let Some(place) = BenchDir::new() else { return };
    let dir = place.path().to_str().unwrap();
    let said = |more: &[&str]| {
        let out = place.run(&[&["bench", "run", "randread", dir, "--no-keep"], &RUN[..], more].concat());
        String::from_utf8(out.stderr).unwrap()
    };
    let lines = said(&[]);
    assert!(lines.contains("iotop-plus: randread ") && !lines.contains('\r'), "{lines}");
    assert_eq!(said(&["-q"]), "");
}

#[test]
fn many_results_are_compared_in_groups() {
    let Some(place) = BenchDir::new() else { return };
    for depth in ["1", "1", "4", "4"] {
        let args = ["bench", "run", "randread", place.path().to_str().unwrap(), "--size", "16M", "--ramp", "0"];
        let out = place.run(&[&args[..], &["--time", "0.3", "-q", "--depth", depth]].concat());
        assert!(out.status.success());
    }
    let out = place.run(&["bench", "compare", "4", "3", "2", "1"]);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(text.contains("group 2: ") && text.contains("depth x jobs: 1 x 1 against 4 x 1"), "{text}");
    let out = place.run(&["bench", "compare", "4", "3", "--against", "2", "1"]);
    assert!(String::from_utf8_lossy(&out.stdout).contains("against group 1"));
    std::io::stdout().flush().unwrap();
}

#[test]
fn series_profiles_end_with_a_conclusion() {
    let Some(place) = BenchDir::new() else { return };
    for (profile, args, said) in [
        ("depth", &["--time", "0.5", "--depth", "16", "--latency-target", "1000000"][..], "The knee is at depth"),
        ("mix", &["--time", "0.5", "--latency-target", "5000000"], "at any write load"),
        ("steady", &["--time", "0.2"], "teady "),
        ("fsync", &["--time", "1"], "etcd's rule is"),
        ("txlog", &["--set", "transactions=3"], "transactions a second"),
        ("seqread", &["--time", "1"], "/s: "),
    ] {
        let report = place.json(profile, args);
        let conclusion = report["conclusion"].as_str().unwrap_or_default();
        // Others on this machine may disturb a run, which is then what it says.
        let is_disturbed =
            ["No conclusion", "says nothing about", "Left out"].iter().any(|word| conclusion.contains(word));
        assert!(conclusion.contains(said) || is_disturbed, "{profile}: {conclusion:?}");
    }
}

#[test]
fn iocost_prints_a_line_that_the_kernel_takes() {
    let Some(place) = BenchDir::new() else { return };
    let dir = place.path().to_str().unwrap();
    let out = place.run(&["bench", "run", "iocost", dir, "--size", "64M", "--time", "1", "--ramp", "0", "-q"]);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let Some(line) = text.lines().find(|l| l.contains("ctrl=user model=linear rbps=")) else {
        assert!(text.contains("No coefficients: ") || text.contains("not on one disk"), "{text}");
        return skip("others worked on the disk");
    };
    let model = Path::new("/sys/fs/cgroup/io.cost.model");
    if !rustix::process::geteuid().is_root() || !model.exists() {
        return skip("needs root and blk-iocost");
    }
    let number = line.split_whitespace().next().unwrap().to_owned();
    let before = std::fs::read_to_string(model).unwrap_or_default();
    std::fs::write(model, line.trim()).unwrap();
    let taken = std::fs::read_to_string(model).unwrap();
    let ours = taken.lines().find(|l| l.starts_with(&number)).unwrap_or_default().to_owned();
    let own = before.lines().find(|l| l.starts_with(&number)).unwrap_or_default();
    std::fs::write(model, if own.contains("ctrl=user") { own.to_owned() } else { format!("{number} ctrl=auto") })
        .unwrap();
    assert!(ours.contains("ctrl=user model=linear rbps="), "{taken}");
}

//! The tools that read fio's output read ours: those of fio's package, and fio-plot (in `PATH`, or named by `FIO_PLOT`).

use crate::lab::{BenchDir, skip};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where Debian's package has the tools that are not in `PATH`.
const PACKAGE_DOC: &str = "/usr/share/doc/fio";

/// A run's JSON in fio's format with histograms, beside its log files, which have its name without `.json` as prefix.
fn run(place: &BenchDir, profile: &str, json: &str, more: &[&str]) -> Value {
    let (dir, json) = (place.path(), place.path().join(json));
    let logs = json.with_extension("");
    let mut args =
        vec!["bench", "run", profile, dir.to_str().unwrap(), "--size", "16M", "--ramp", "0", "-q", "--no-keep"];
    args.extend(["--format", "fio+", "--output", json.to_str().unwrap(), "--fio-logs", logs.to_str().unwrap()]);
    args.extend(more);
    let out = place.run(&args);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap()
}

fn total_ios(document: &Value) -> f64 {
    let of = |direction: &str| document["jobs"][0][direction]["total_ios"].as_f64().unwrap();
    of("read") + of("write")
}

/// What a tool prints; `None`: it is not here, or its own needs are not met.
fn output(place: &BenchDir, name: &str, line: &[&str]) -> Option<String> {
    let out = Command::new(line[0]).args(&line[1..]).current_dir(place.path()).output();
    let Ok(out) = out else {
        skip(&format!("no {name} here"));
        return None;
    };
    let wrong = String::from_utf8_lossy(&out.stderr);
    if wrong.contains("ModuleNotFoundError") {
        skip(&format!("{name}: {}", wrong.lines().last().unwrap_or_default()));
        return None;
    }
    assert!(out.status.success(), "{name}: {wrong}");
    Some(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// A Python tool of fio's package, unpacked.
fn unpacked(place: &BenchDir, name: &str) -> Option<String> {
    let packed = Path::new(PACKAGE_DOC).join(format!("{name}.py.gz"));
    let Some(text) = Command::new("zcat").arg(&packed).output().ok().filter(|out| out.status.success()) else {
        skip(&format!("no {} here", packed.display()));
        return None;
    };
    let script = place.path().join(format!("{name}.py"));
    std::fs::write(&script, text.stdout).unwrap();
    Some(script.to_str().unwrap().to_owned())
}

/// The Python that has the modules of `FIO_PLOT`, if it is in a virtual environment.
fn python() -> String {
    let beside = std::env::var_os("FIO_PLOT").map(|tool| PathBuf::from(tool).with_file_name("python3"));
    beside.filter(|path| path.exists()).map_or("python3".into(), |path| path.to_str().unwrap().to_owned())
}

#[test]
fn clat2csv_counts_every_operation() {
    let Some(place) = BenchDir::new() else { return };
    let document = run(&place, "randrw", "plus.json", &["--time", "1"]);
    if output(&place, "fio_jsonplus_clat2csv", &["fio_jsonplus_clat2csv", "plus.json", "plus.csv"]).is_none() {
        return;
    }
    let csv = std::fs::read_to_string(place.path().join("plus_job0.csv")).unwrap();
    let mut lines = csv.lines().map(|line| line.split(", ").map(str::trim).collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let column = |name: &str| header.iter().position(|title| *title == name).unwrap();
    let columns = [column("read_clat_ns_count"), column("write_clat_ns_count")];
    let counts = lines.flat_map(|line| columns.map(|n| line.get(n).and_then(|text| text.parse::<f64>().ok())));
    assert_eq!(counts.flatten().sum::<f64>(), total_ios(&document));
}

#[test]
fn histogram_and_latency_logs_are_read() {
    let Some(place) = BenchDir::new() else { return };
    let document = run(&place, "randrw", "plus.json", &["--time", "3"]);
    if let Some(script) = unpacked(&place, "fio-histo-log-pctiles") {
        let line = [&python(), &script, "--time-quantum", "1", "plus_clat_hist.1.log"];
        if let Some(text) = output(&place, "fio-histo-log-pctiles", &line) {
            let rows = text.lines().skip_while(|line| !line.starts_with("msec-since-start")).skip(1);
            let samples: f64 = rows.filter_map(|row| row.split(',').nth(1)?.trim().parse::<f64>().ok()).sum();
            let all = total_ios(&document);
            // It spreads histograms over its own intervals and leaves out what is beyond the last.
            assert!((samples / all - 1.0).abs() < 0.1, "{samples} of {all}: {text}");
        }
    }
    if let Some(script) = unpacked(&place, "fiologparser") {
        let line = ["python3", &script, "-a", "-i", "1000", "plus_iops.1.log"];
        if let Some(text) = output(&place, "fiologparser", &line) {
            let rates: Vec<f64> = text.lines().filter_map(|row| row.split_once(", ")?.1.parse().ok()).collect();
            let log = std::fs::read_to_string(place.path().join("plus_iops.1.log")).unwrap();
            let logged: Vec<f64> = log.lines().map(|line| line.split(", ").nth(1).unwrap().parse().unwrap()).collect();
            let (least, most) = logged.iter().fold((f64::MAX, 0.0f64), |(a, b), n| (a.min(*n), b.max(*n)));
            assert!(rates.len() >= 3 && rates.iter().all(|rate| (least..=most).contains(rate)), "{text}");
        }
    }
}

#[test]
fn fio_plot_draws_its_charts() {
    let Some(place) = BenchDir::new() else { return };
    let tool = std::env::var("FIO_PLOT").unwrap_or("fio-plot".into());
    if Command::new(&tool).arg("--help").output().is_err() {
        return skip("no fio-plot here; FIO_PLOT names it");
    }
    for set in ["first", "second"] {
        std::fs::create_dir(place.path().join(set)).unwrap();
        for (depth, jobs) in [("1", "1"), ("1", "2"), ("4", "1"), ("4", "2")] {
            let json = format!("{set}/randread-{depth}-{jobs}.json");
            run(&place, "randread", &json, &["--time", "0.6", "--depth", depth, "--jobs", jobs]);
        }
    }
    let logs = place.path().join("logs");
    std::fs::create_dir(&logs).unwrap();
    for kind in ["bw", "iops", "lat", "clat", "slat"] {
        let log = place.path().join(format!("second/randread-4-2_{kind}.1.log"));
        std::fs::copy(log, logs.join(format!("randread-iodepth-4-numjobs-2_{kind}.1.log"))).unwrap();
    }
    for chart in [
        "-i first -l -d 1 4 -n 1",
        "-i first -N -d 4 -n 1 2",
        "-i first -H -d 4 -n 1",
        "-i first -L -t iops",
        "-i first -L -t lat",
        "-i first second -C -d 4 -n 1",
        "-i logs -g -d 4 -n 2 -t iops lat bw",
    ] {
        let picture = place.path().join("chart.png");
        let mut line = vec![tool.as_str(), "-T", "title", "-r", "randread", "-o", "chart.png"];
        line.extend(chart.split(' '));
        let text = output(&place, "fio-plot", &line).expect("it is here");
        let bytes = std::fs::read(&picture).unwrap_or_else(|_| panic!("{chart}: no picture: {text}"));
        assert!(bytes.starts_with(b"\x89PNG"), "{chart}");
        std::fs::remove_file(&picture).unwrap();
    }
}

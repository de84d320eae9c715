//! fio's JSON: our keys and types against those fio itself writes, kept in a list.

use crate::lab::BenchDir;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// `fio --output-format=json` (3.33) of the job file below: `TYPE<tab>PATH`, lists by their first element.
const FIO_PATHS: &str = include_str!("../fixtures/fio/json-3.33.txt");

fn json_type(v: &Value) -> &'static str {
    match v {
        Value::Number(n) if n.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::Bool(_) => "bool",
        Value::Null => "null",
    }
}

/// Every path with its type. The job's options are whatever the job has.
fn collect_paths(v: &Value, at: &str, out: &mut BTreeMap<String, String>) {
    if !at.is_empty() {
        out.insert(at.to_owned(), json_type(v).to_owned());
    }
    match v {
        _ if at.ends_with("options") => {}
        Value::Object(map) => map.iter().for_each(|(k, x)| collect_paths(x, &format!("{at}/{k}"), out)),
        Value::Array(list) => list.iter().take(1).for_each(|x| collect_paths(x, &format!("{at}/0"), out)),
        _ => {}
    }
}

fn list_paths(v: &Value) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    collect_paths(v, "", &mut all);
    all
}

const RUN_ARGS: [&str; 13] =
    ["bench", "run", "randrw", "DIR", "--size", "16M", "-q", "--time", "0.3", "--ramp", "0", "--fsync", "64"];

fn run(place: &BenchDir, more: &[&str]) -> std::process::Output {
    let dir = place.path().to_str().unwrap();
    let args: Vec<&str> =
        RUN_ARGS.iter().map(|w| if *w == "DIR" { dir } else { w }).chain(more.iter().copied()).collect();
    let out = place.run(&args);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    out
}

#[test]
fn fio_json_has_the_keys_and_types_of_fio() {
    let Some(place) = BenchDir::new() else { return };
    let ours: Value = serde_json::from_slice(&run(&place, &["--format", "fio"]).stdout).unwrap();
    let mut have = list_paths(&ours);
    // fio has it only where the job file has a [global] section; scripts index it all the same.
    assert_eq!(have.remove("/global options").as_deref(), Some("object"));
    let kept: BTreeMap<String, String> =
        FIO_PATHS.lines().filter_map(|l| l.split_once('\t')).map(|(k, p)| (p.into(), k.into())).collect();
    assert!(kept.len() > 300, "{}", kept.len());
    if !have.contains_key("/disk_util/0") {
        println!("skipped in part: no device of its own below {}", place.path().display());
        return;
    }
    assert_eq!(have, kept);
}

#[test]
fn fio_json_has_the_counted_values() {
    let Some(place) = BenchDir::new() else { return };
    let ours: Value = serde_json::from_slice(&run(&place, &["--format", "fio"]).stdout).unwrap();
    let job = &ours["jobs"][0];
    let number = |v: &Value| v.as_f64().unwrap();
    let sum = |key: &str| job[key].as_object().unwrap().values().map(number).sum::<f64>();
    for key in ["iodepth_level", "iodepth_submit", "iodepth_complete"] {
        assert!((sum(key) - 100.0).abs() < 1e-6, "{key}: {}", job[key]);
    }
    // 64 are kept in flight and handed over 16 at a time: nothing of it is the plan's figure repeated.
    assert_eq!(job["iodepth_submit"][">=64"], 0.0, "{}", job["iodepth_submit"]);
    let spread = sum("latency_ns") + sum("latency_us") + sum("latency_ms");
    assert!((spread - 100.0).abs() < 0.5, "{spread}");
    assert!(job["ctx"].as_u64() > Some(0) && job["sync"]["total_ios"].as_u64() > Some(0));
    assert_eq!(job["trim"]["total_ios"], 0);
    assert_eq!(job["job options"]["rw"], "randrw");
    let threads = run(&place, &["--format", "fio", "--engine", "threads", "--depth", "2"]);
    let threads: Value = serde_json::from_slice(&threads.stdout).unwrap();
    assert_eq!(threads["global options"]["ioengine"], "psync");
    assert_eq!(threads["jobs"][0]["iodepth_level"]["1"], 100.0);
}

#[test]
fn installed_fio_runs_our_job_file_and_has_no_other_keys() {
    let Some(place) = BenchDir::new() else { return };
    let dir = place.path().to_str().unwrap();
    let job = place.path().join("job.fio");
    std::fs::write(&job, run(&place, &["--fio-job"]).stdout).unwrap();
    // The job file we printed runs as it is, with us
    let again = place.run(&["bench", "run", job.to_str().unwrap(), "-q", "--no-keep", "--format", "fio"]);
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    let ours = list_paths(&serde_json::from_slice(&again.stdout).unwrap());
    // and with fio.
    let Ok(out) = Command::new("fio").arg("--output-format=json").arg(&job).current_dir(dir).output() else {
        return println!("skipped: no fio here to compare with");
    };
    let text = String::from_utf8_lossy(&out.stdout);
    let theirs: Value = serde_json::from_str(&text[text.find('{').unwrap_or(0)..]).expect("fio takes our job file");
    let missing: Vec<String> = list_paths(&theirs).into_keys().filter(|k| !ours.contains_key(k)).collect();
    assert_eq!(missing, Vec::<String>::new());
}

//! `iotop-plus doctor` on captured trees: findings, output, exit codes.
//!
//! The counters of a tree do not change, so findings come from the kernel log, the settings and the tasks.

#[path = "fixture/tree.rs"]
mod tree;

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use tree::{captured, copy_over, unpack_captured, write_file};

/// The column of /proc/diskstats that counts requests in flight.
const IN_FLIGHT: usize = 11;

/// An idle machine without problems: the captured one without its tasks and its kernel log.
fn healthy_tree() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    unpack_captured("busy-vm/t1", dir.path());
    for entry in std::fs::read_dir(dir.path().join("proc")).unwrap().flatten() {
        if entry.file_name().to_string_lossy().parse::<u32>().is_ok() {
            std::fs::remove_dir_all(entry.path()).unwrap();
        }
    }
    write_file(dir.path(), "dev/kmsg", "");
    write_file(dir.path(), "proc/sys/kernel/hung_task_warnings", "10\n");
    // Requests in flight that never complete are a stalled device.
    let disks = std::fs::read_to_string(dir.path().join("proc/diskstats")).unwrap();
    let quiet = |line: &str| {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        words[IN_FLIGHT] = "0";
        words.join(" ") + "\n"
    };
    write_file(dir.path(), "proc/diskstats", disks.lines().map(quiet).collect::<String>());
    dir
}

/// A server that forks for snapshots, while huge pages are `always`.
fn tree_with_forking_server() -> tempfile::TempDir {
    let dir = healthy_tree();
    let process_dir = dir.path().join("proc/6391");
    copy_over(&captured("busy-vm/t1").join("proc/6391"), &process_dir);
    for file in ["stat", "status", "comm"] {
        let Ok(text) = std::fs::read_to_string(process_dir.join(file)) else { continue };
        write_file(&process_dir, file, text.replace("ledgerd", "redis-server"));
    }
    write_file(dir.path(), "sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
    dir
}

/// A disk that fails: the record is of the future, which counts as now.
fn tree_with_io_errors() -> tempfile::TempDir {
    let dir = healthy_tree();
    let line = "3,7,9999999999999,-;I/O error, dev vda, sector 81239 op 0x0:(READ) flags 0x0 \\x1b[2J\n";
    write_file(dir.path(), "dev/kmsg", line);
    dir
}

fn run_doctor(root: &Path, more: &[&str]) -> Output {
    let mut args = vec!["doctor", "-d", "5", "--root", root.to_str().unwrap()];
    args.extend(more);
    Command::new(env!("CARGO_BIN_EXE_iotop-plus")).args(args).output().unwrap()
}

fn json(out: &Output) -> Value {
    serde_json::from_slice(&out.stdout).unwrap_or_else(|err| panic!("{err}: {out:?}"))
}

fn rule_names(v: &Value) -> Vec<&str> {
    let stories = v["stories"].as_array().unwrap().iter();
    stories.flat_map(|s| s["findings"].as_array().unwrap()).map(|f| f["rule"].as_str().unwrap()).collect()
}

#[test]
fn exit_code_json_and_text_follow_the_worst_finding() {
    let (calm, server, errors) = (healthy_tree(), tree_with_forking_server(), tree_with_io_errors());
    let [fine, warned, critical, told] = std::thread::scope(|s| {
        let runs = [
            s.spawn(|| run_doctor(calm.path(), &["--json"])),
            s.spawn(|| run_doctor(server.path(), &["--json"])),
            s.spawn(|| run_doctor(errors.path(), &["--json"])),
            s.spawn(|| run_doctor(errors.path(), &[])),
        ];
        runs.map(|run| run.join().unwrap())
    });
    let v = json(&fine);
    assert_eq!((fine.status.code(), v["verdict"].as_str()), (Some(0), Some("fine")), "{v}");
    assert_eq!(v["stories"].as_array().unwrap().len(), 0, "{v}");
    // A tree has no file systems to ask: that is said, not passed over.
    assert!(v["not_judged"].as_array().unwrap().iter().any(|u| u["rule"] == "filesystem-full"), "{v}");

    let v = json(&warned);
    assert_eq!((warned.status.code(), v["exit"].as_u64()), (Some(10), Some(10)), "{v}");
    assert!(rule_names(&v).contains(&"thp-always"), "{v}");
    let thp = v["stories"].as_array().unwrap().iter().find(|s| s["findings"][0]["rule"] == "thp-always").unwrap();
    assert_eq!(thp["findings"][0]["subject"]["kind"], "task");
    assert_eq!(thp["findings"][0]["try"][0]["knob"], "transparent_hugepage.enabled");

    let v = json(&critical);
    assert_eq!((critical.status.code(), v["verdict"].as_str()), (Some(11), Some("critical")), "{v}");
    assert_eq!(rule_names(&v)[0], "io-error");
    assert_eq!(v["stories"][0]["findings"][0]["subject"]["name"], "vda");

    assert_eq!(told.status.code(), Some(11));
    let text = String::from_utf8(told.stdout).unwrap();
    assert!(text.contains("I/O errors on vda") && text.contains("costs:") && text.contains("why"), "{text}");
    assert!(text.chars().all(|c| c == '\n' || iotop_plus::sanitize::is_safe(c)), "{text:?}");
    assert!(text.lines().skip(1).all(|l| unicode_width::UnicodeWidthStr::width(l) <= 120), "{text}");
}

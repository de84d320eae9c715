//! The binary without a terminal: closed pipes, full disks, signals, hostile names, an unprivileged user, a task whose
//! files block.

#[path = "fixture/tree.rs"]
mod tree;

use iotop_plus::sanitize::is_safe;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const BIN: &str = env!("CARGO_BIN_EXE_iotop-plus");

fn run(args: &[&str]) -> Output {
    Command::new(BIN).args(args).output().unwrap()
}

fn as_utf8(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

fn parse_json(out: &Output) -> Value {
    assert!(out.status.success(), "{out:?}");
    serde_json::from_slice(&out.stdout).unwrap()
}

/// Runs `body` while a thread of this process writes to a disk; `None`, with a message, if the temporary directory is
/// not on a disk.
fn while_writing<T>(test: &str, body: impl FnOnce() -> T) -> Option<T> {
    let written = || {
        let io = std::fs::read_to_string("/proc/self/io").ok()?;
        io.lines().find_map(|l| l.strip_prefix("write_bytes: "))?.parse::<u64>().ok()
    };
    let stop = Arc::new(AtomicBool::new(false));
    let writer = std::thread::spawn({
        let stop = stop.clone();
        move || {
            let mut file = tempfile::tempfile().unwrap();
            while !stop.load(Ordering::Relaxed) {
                use std::io::Seek;
                file.rewind().unwrap();
                file.write_all(&[7; 65_536]).unwrap();
                file.sync_data().unwrap();
            }
        }
    });
    let before = written();
    let result = body();
    let grew = written() > before;
    stop.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    if before.is_none() || !grew {
        eprintln!("SKIP {test}: writing to the temporary directory is not counted (tmpfs?)");
        return None;
    }
    Some(result)
}

#[test]
fn a_closed_pipe_ends_the_program_quietly() {
    for args in [&["-b", "-d", "0.1"][..], &["snapshot", "-n", "1000000", "-d", "0.1", "--format", "json"]] {
        let mut child = Command::new(BIN).args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        assert!(!first.is_empty());
        let out = child.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(0), "{args:?}: {out:?}");
        assert!(!as_utf8(&out.stderr).contains("pipe"), "{}", as_utf8(&out.stderr));
    }
}

#[test]
fn a_closed_pipe_is_noticed_between_reports() {
    let mut child =
        Command::new(BIN).args(["-b", "-d", "3600"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_full_disk_is_reported_and_fails() {
    for args in [&["-b", "-n", "1", "-d", "0.1"][..], &["snapshot", "-d", "0.1"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let out = Command::new(BIN).args(args).stdout(full).output().unwrap();
        assert_eq!(out.status.code(), Some(1), "{args:?}");
        assert!(as_utf8(&out.stderr).contains("standard output: no space left on device"), "{out:?}");
    }
}

#[test]
fn a_signal_ends_the_output_with_a_complete_line() {
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        let mut child =
            Command::new(BIN).args(["-b", "-d", "0.1"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut pipe = BufReader::new(child.stdout.take().unwrap());
        let mut printed = String::new();
        pipe.read_line(&mut printed).unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, signal).unwrap();
        pipe.read_to_string(&mut printed).unwrap();
        let status = child.wait().unwrap();
        assert_eq!((status.code(), status.signal()), (Some(0), None));
        assert!(printed.ends_with('\n'));
    }
}

#[test]
fn the_first_report_covers_its_interval() {
    let test = "the_first_report_covers_its_interval";
    let me = std::process::id();
    let Some((snap, batch)) = while_writing(test, || {
        let snap = run(&["snapshot", "--format", "json", "-d", "0.5"]);
        (snap, run(&["-b", "-P", "-n", "1", "-d", "0.5"]))
    }) else {
        return;
    };
    let snap = parse_json(&snap);
    let mine = snap["processes"].as_array().unwrap().iter().find(|p| p["pid"] == me).unwrap();
    assert!(mine["write_bytes_per_s"].as_f64().unwrap() > 0.0, "{mine}");
    assert!(snap["interval_s"].as_f64().unwrap() > 0.0);
    let batch = as_utf8(&batch.stdout);
    let row = batch.lines().find(|l| l.split_whitespace().next() == Some(&me.to_string())).unwrap();
    let words: Vec<_> = row.split_whitespace().collect();
    assert!(words[5].parse::<f64>().unwrap() > 0.0, "{row}");
    assert!(batch.starts_with("Total DISK READ:") && !batch.lines().next().unwrap().contains("WRITE:         0.00"));
}

#[test]
fn batch_lists_threads_by_default_and_processes_on_request() {
    let threads = run(&["-b", "-n", "1", "-d", "0.1"]);
    let processes = run(&["-b", "-P", "-n", "1", "-d", "0.1"]);
    let head = |out: &Output| as_utf8(&out.stdout).lines().nth(2).unwrap().trim_start()[..3].to_owned();
    assert_eq!((head(&threads), head(&processes)), ("TID".into(), "PID".into()));
    let words = |l: &str| l.split_whitespace().count();
    let short = as_utf8(&processes.stdout).lines().skip(3).find(|l| words(l) < 14).map(str::to_owned);
    assert_eq!(short, None, "every row has all its words");
}

#[test]
fn snapshots_are_json_lines_and_never_overwrite_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("snap.json");
    let args = ["snapshot", "-n", "2", "-d", "0.1", "--format", "json", "-o", path.to_str().unwrap()];
    let out = run(&args);
    assert!(out.status.success() && out.stdout.is_empty(), "{out:?}");
    let written = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = written.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0]["time"].as_str() < lines[1]["time"].as_str());
    let again = run(&args);
    assert_eq!(again.status.code(), Some(1));
    assert!(as_utf8(&again.stderr).contains("exists already"), "{again:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), written);
}

#[test]
fn hostile_names_leave_no_control_byte() {
    let dir = tempfile::tempdir().unwrap();
    let name = std::ffi::OsStr::from_bytes(b"e\x1b[2J\xe2\x80\xae\xff\r\n");
    let program = dir.path().join(name);
    let sleep = ["/bin/sleep", "/usr/bin/sleep"].into_iter().map(Path::new).find(|p| p.exists());
    let Some(sleep) = sleep else {
        return eprintln!("SKIP hostile_names_leave_no_control_byte: no sleep(1)");
    };
    std::fs::copy(sleep, &program).unwrap();
    let mut child =
        Command::new(&program).arg0(std::ffi::OsStr::from_bytes(b"\x1b]0;t\x07\xc2\x9b31m")).arg("60").spawn().unwrap();
    let pid = child.id();
    let outs = [
        run(&["-b", "-P", "-n", "1", "-d", "0.1"]),
        run(&["snapshot", "-d", "0.1"]),
        run(&["snapshot", "-d", "0.1", "--format", "markdown"]),
        run(&["snapshot", "-d", "0.1", "--format", "json"]),
    ];
    child.kill().unwrap();
    child.wait().unwrap();
    for out in &outs {
        for stream in [&out.stdout, &out.stderr] {
            assert!(as_utf8(stream).chars().all(|c| c == '\n' || is_safe(c)), "{stream:?}");
        }
    }
    let json = parse_json(&outs[3]);
    let hostile = json["processes"].as_array().unwrap().iter().find(|p| p["pid"] == pid).unwrap();
    assert_eq!(hostile["comm"], "e\\x1b[2J\\u{202e}\\xff\\r\\n");
    assert!(as_utf8(&outs[0].stdout).lines().any(|l| l.trim_start().starts_with(&pid.to_string())));
}

#[test]
fn an_unprivileged_user_sees_null_not_zero() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let bin = dir.path().join("iotop-plus");
    std::fs::copy(BIN, &bin).unwrap();
    let mut command = Command::new(&bin);
    command.args(["snapshot", "--format", "json", "-d", "0.1"]).current_dir("/");
    if rustix::process::geteuid().is_root() {
        command.uid(65_534).gid(65_534);
    }
    let snap = match command.output() {
        Ok(out) => parse_json(&out),
        Err(err) => return eprintln!("SKIP an_ordinary_user_sees_gaps_not_zeros: {err}"),
    };
    let processes = snap["processes"].as_array().unwrap();
    let denied = |p: &&Value| p["read_bytes_total"].is_null();
    let hidden = processes.iter().filter(denied).count();
    if hidden == 0 {
        return eprintln!("SKIP an_ordinary_user_sees_gaps_not_zeros: nobody else's process in sight");
    }
    assert!(processes.iter().filter(denied).all(|p| p["write_bytes_per_s"].is_null()));
    let gaps = snap["unavailable"].as_array().unwrap();
    let reason = |g: &Value| g["source"] == "processes" && g["reason"].as_str().unwrap().contains("hidden");
    assert!(gaps.iter().any(reason), "{gaps:?}");
}

#[test]
fn a_task_with_a_blocked_file_is_named_and_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    tree::unpack_captured("busy-host/t1", dir.path());
    let io = dir.path().join("proc/101/io");
    std::fs::remove_file(&io).unwrap();
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &io, fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    let root = dir.path().to_str().unwrap();
    let snap = parse_json(&run(&["--root", root, "snapshot", "--format", "json", "-d", "0.1"]));
    let gaps = snap["unavailable"].as_array().unwrap();
    let named = |g: &Value| g["reason"].as_str().unwrap().starts_with("task 101: blocked");
    assert!(gaps.iter().any(named), "{gaps:?}");
    let others = snap["processes"].as_array().unwrap();
    assert!(others.iter().any(|p| p["pid"] == 102 && p["read_bytes_total"] == 495_616), "{others:?}");
    assert!(others.iter().all(|p| p["pid"] != 101 || p["write_bytes_per_s"].is_null()));
    assert_eq!(snap["host"], "node02");
}

#[test]
fn images_need_no_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("devices.png");
    let args = ["snapshot", "-n", "2", "-d", "0.1", "--format", "png", "--pane", "devices", "--size", "80x24", "-o"];
    let out = run(&[&args[..], &[path.to_str().unwrap()]].concat());
    assert!(out.status.success() && out.stdout.is_empty(), "{out:?}");
    let reader = png::Decoder::new(std::io::BufReader::new(std::fs::File::open(&path).unwrap())).read_info();
    assert_eq!(reader.unwrap().info().size(), (80 * 12 + 16, 24 * 24 + 16));
    let page = run(&["snapshot", "-d", "0.1", "--format", "html", "--view", "memory"]);
    assert!(as_utf8(&page.stdout).contains("Dirty pages") && as_utf8(&page.stdout).ends_with("</html>\n"));
    let colours = run(&["snapshot", "-n", "3", "-d", "0.1", "--format", "ansi", "--size", "60x14"]);
    assert_eq!(as_utf8(&colours.stdout).lines().count(), 14, "one picture, whatever -n");
    let wrong = run(&["snapshot", "-d", "0.1", "--size", "60x14"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(as_utf8(&wrong.stderr).contains("--size is for pictures"), "{wrong:?}");
}

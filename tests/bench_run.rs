//! `bench` as a person meets it: the real binary in a real directory. What needs root, a loop device or
//! fsfreeze says so and passes where they are missing.

use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const BIN: &str = env!("CARGO_BIN_EXE_iotop-plus");

/// A directory the benchmark accepts: on a disk with room, not on tmpfs.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Option<Self> {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).ok()?;
        let stat = rustix::fs::statvfs(dir.path()).ok()?;
        let reserve = (stat.f_blocks * stat.f_frsize / 20).max(2 << 30);
        if stat.f_bavail * stat.f_frsize < reserve + (256 << 20) {
            println!("skipped: no room for a benchmark's file");
            return None;
        }
        Some(Self(dir))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut c = Command::new(BIN);
        c.args(args).env("XDG_STATE_HOME", self.path().join("state")).stdin(Stdio::null());
        c
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the program starts")
    }

    /// `bench run PROFILE DIR --size 16M --quiet ARGS` as JSON.
    fn json(&self, profile: &str, args: &[&str]) -> Value {
        let dir = self.path().to_str().unwrap();
        let mut all =
            vec!["bench", "run", profile, dir, "--size", "16M", "-q", "--ramp", "0", "--format", "json"];
        all.extend(args);
        let out = self.run(&all);
        assert!(out.status.success(), "{profile}: {}", String::from_utf8_lossy(&out.stderr));
        serde_json::from_slice(&out.stdout).expect("JSON")
    }
}

#[test]
fn every_profile_with_a_file_runs_and_leaves_nothing() {
    let Some(place) = Place::new() else { return };
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
    ] {
        let report = place.json(profile, args);
        assert_eq!(report["end"], "complete", "{profile}");
        let parts = report["parts"].as_array().unwrap();
        assert!(!parts.is_empty(), "{profile}");
        let counted = |p: &Value| {
            ["read", "write", "sync"].iter().map(|k| p[*k]["ios"].as_u64().unwrap()).sum::<u64>() > 0
        };
        assert!(parts.iter().any(counted), "{profile}: nothing counted");
    }
    let left: Vec<_> = std::fs::read_dir(place.path()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["state"]);
    let list = String::from_utf8(place.run(&["bench", "list"]).stdout).unwrap();
    assert_eq!(list.matches(" IOPS, ").count(), 11, "{list}");
    let compared = place.run(&["bench", "compare", "1", "1"]);
    assert!(String::from_utf8_lossy(&compared.stdout).contains("No difference shown"));
}

#[test]
fn a_size_limit_is_kept_to_the_byte() {
    let Some(place) = Place::new() else { return };
    let report = place.json("randwrite", &["--io-size", "1M", "--time", "0", "--fsync", "16"]);
    let part = &report["parts"][0];
    assert_eq!(part["write"]["bytes"], 1 << 20);
    assert_eq!(part["write"]["ios"], 256);
    assert_eq!(part["sync"]["ios"], 15);
}

#[test]
fn what_is_dangerous_is_refused_with_its_own_exit_code() {
    let Some(place) = Place::new() else { return };
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
    for dir in [
        file.as_path(),
        &dangling,
        &device,
        Path::new("/proc"),
        Path::new("/nonexistent"),
        Path::new("/dev/null"),
    ] {
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

/// A run that would take a minute, its child, and the lines the child sends.
struct Long {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Long {
    /// Starts the child as the program does, and waits for the first counted operation.
    #[expect(clippy::zombie_processes, reason = "waited for by those who end it; a failed test ends it all")]
    fn start(dir: &Path) -> Self {
        let mut child = Command::new(BIN)
            .arg("bench-child")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let plan = serde_json::json!({
            "profile": "randrw", "directory": dir, "size": 16 << 20, "ramp_ms": 0, "time_ms": 60_000,
        });
        writeln!(child.stdin.as_mut().unwrap(), "{plan}").unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        loop {
            let line = lines.next().expect("messages go on").unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            let progress = message.get("progress").unwrap_or_else(|| panic!("{line}"));
            if progress["part"] == 0 && progress["counts"][0].as_u64() > Some(0) {
                return Self { child, lines };
            }
        }
    }

    fn report(mut self) -> Value {
        let last = self.lines.by_ref().map_while(Result::ok).last().expect("a last message");
        self.child.wait().unwrap();
        serde_json::from_str::<Value>(&last).unwrap()["report"].clone()
    }
}

#[test]
fn cancel_terminate_and_a_closed_pipe_give_a_partial_report() {
    let Some(place) = Place::new() else { return };
    for how in ["cancel", "terminate", "close"] {
        let mut long = Long::start(place.path());
        match how {
            "cancel" => writeln!(long.child.stdin.as_mut().unwrap(), "\"cancel\"").unwrap(),
            "close" => drop(long.child.stdin.take()),
            _ => {
                let pid = rustix::process::Pid::from_child(&long.child);
                rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
            }
        }
        let report = long.report();
        assert_eq!(report["end"], "cancelled", "{how}");
        assert!(report["parts"][0]["read"]["ios"].as_u64() > Some(0), "{how}");
        assert!(
            report["parts"][0]["read"]["lat"]["histogram"]["buckets"]
                .as_array()
                .is_some_and(|b| !b.is_empty())
        );
    }
}

#[test]
fn a_killed_child_leaves_no_byte() {
    let Some(place) = Place::new() else { return };
    for _ in 0..3 {
        let mut long = Long::start(place.path());
        long.child.kill().unwrap();
        long.child.wait().unwrap();
    }
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn a_nonsense_plan_is_answered() {
    for plan in ["{}x", "{\"profile\":\"nothing\"}", "{\"depth\":0}"] {
        let mut child = Command::new(BIN)
            .arg("bench-child")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        writeln!(child.stdin.as_mut().unwrap(), "{plan}").unwrap();
        let out = child.wait_with_output().unwrap();
        assert!(String::from_utf8_lossy(&out.stdout).starts_with("{\"failed\":"), "{plan}");
    }
}

/// ext4 on a loop device, taken down whatever the test says.
struct Loop {
    dir: tempfile::TempDir,
    device: String,
}

impl Loop {
    fn up() -> Option<Self> {
        let skip = |why: &str| println!("skipped: {why}");
        if !rustix::process::geteuid().is_root() {
            skip("needs root for a loop device");
            return None;
        }
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).ok()?;
        let (image, mnt) = (dir.path().join("img"), dir.path().join("mnt"));
        std::fs::create_dir(&mnt).ok()?;
        std::fs::File::create(&image).ok()?.set_len(4 << 30).ok()?;
        let run = |line: &[&str]| {
            let out = Command::new(line[0]).args(&line[1..]).output().ok().filter(|o| o.status.success());
            if out.is_none() {
                skip(&format!("{} does not work here", line[0]));
            }
            out.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
        };
        run(&["mkfs.ext4", "-q", "-F", image.to_str()?])?;
        let device = run(&["losetup", "-f", "--show", image.to_str()?])?;
        let lab = Self { dir, device };
        run(&["mount", &lab.device, lab.mnt().to_str()?])?;
        Some(lab)
    }

    fn mnt(&self) -> PathBuf {
        self.dir.path().join("mnt")
    }

    fn freeze(&self, how: &str) -> bool {
        Command::new("fsfreeze")
            .arg(how)
            .arg(self.mnt())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|s| s.success())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = self.freeze("-u");
        let _ = Command::new("umount").arg("-l").arg(self.mnt()).status();
        let _ = Command::new("losetup").args(["-d", &self.device]).status();
    }
}

#[test]
fn a_frozen_file_system_ends_the_run_at_the_stall_limit() {
    let (Some(lab), Some(place)) = (Loop::up(), Place::new()) else { return };
    if !lab.freeze("-f") {
        return println!("skipped: fsfreeze does not work here");
    }
    let mnt = lab.mnt();
    let out = place.run(&[
        "bench",
        "run",
        "randrw",
        mnt.to_str().unwrap(),
        "--size",
        "16M",
        "-q",
        "--stall-limit",
        "1",
    ]);
    assert_eq!(out.status.code(), Some(1));
    let why = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(why.contains("nothing has moved") && why.contains("frozen"), "{why}");
}

#[test]
fn a_read_only_and_a_full_file_system_are_refused() {
    let (Some(lab), Some(place)) = (Loop::up(), Place::new()) else { return };
    let mnt = lab.mnt();
    let run = || {
        let out = place.run(&[
            "bench",
            "run",
            "randrw",
            mnt.to_str().unwrap(),
            "--size",
            "16M",
            "-q",
            "--time",
            "0.1",
        ]);
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

/// Keys of the object at `path`, sorted.
fn keys(v: &Value) -> Vec<String> {
    let mut all: Vec<_> = v.as_object().map(|o| o.keys().cloned().collect()).unwrap_or_default();
    all.sort();
    all
}

#[test]
fn fios_json_has_fios_fields() {
    let Some(place) = Place::new() else { return };
    let dir = place.path().to_str().unwrap();
    let base = ["bench", "run", "randrw", dir, "--size", "16M", "-q", "--time", "0.3", "--ramp", "0"];
    let out = place.run(&[&base[..], &["--format", "fio"]].concat());
    let ours: Value = serde_json::from_slice(&out.stdout).unwrap();
    let job = place.path().join("job.fio");
    std::fs::write(&job, place.run(&[&base[..], &["--fio-job"]].concat()).stdout).unwrap();
    let Ok(out) = Command::new("fio").arg("--output-format=json").arg(&job).current_dir(dir).output() else {
        return println!("skipped: no fio here to compare with");
    };
    let text = String::from_utf8_lossy(&out.stdout);
    let theirs: Value =
        serde_json::from_str(&text[text.find('{').unwrap_or(0)..]).expect("fio takes our job file");
    let missing = |path: &str| -> Vec<String> {
        let (a, b) = (keys(ours.pointer(path).unwrap()), keys(theirs.pointer(path).unwrap()));
        b.into_iter().filter(|k| !a.contains(k)).collect()
    };
    assert_eq!(missing("/jobs/0"), Vec::<String>::new());
    for side in ["read", "write", "trim"] {
        assert_eq!(missing(&format!("/jobs/0/{side}")), Vec::<String>::new(), "{side}");
    }
    for path in ["/jobs/0/read/slat_ns", "/jobs/0/read/lat_ns", "/jobs/0/sync/lat_ns", "/jobs/0/latency_us"] {
        assert_eq!(missing(path), Vec::<String>::new(), "{path}");
    }
    assert_eq!(missing("/jobs/0/read/lat_ns/percentile"), Vec::<String>::new());
    assert_eq!(
        missing("").into_iter().filter(|k| k != "client_stats").collect::<Vec<_>>(),
        Vec::<String>::new()
    );
    // And back: the job file we printed runs as it is.
    let again = place.run(&["bench", "run", job.to_str().unwrap(), "-q", "--no-keep"]);
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
}

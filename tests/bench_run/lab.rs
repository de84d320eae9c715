//! The places where a benchmark is tried out: a directory with room, a disk made for the purpose, a long run.

use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

pub const BIN: &str = env!("CARGO_BIN_EXE_iotop-plus");

/// A directory the benchmark accepts: on a disk with room, not on tmpfs.
pub struct BenchDir(tempfile::TempDir);

impl BenchDir {
    pub fn new() -> Option<Self> {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).ok()?;
        let stat = rustix::fs::statvfs(dir.path()).ok()?;
        let reserve = (stat.f_blocks * stat.f_frsize / 20).max(2 << 30);
        if stat.f_bavail * stat.f_frsize < reserve + (256 << 20) {
            println!("skipped: no room for a benchmark's file");
            return None;
        }
        Some(Self(dir))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut c = Command::new(BIN);
        c.args(args).env("XDG_STATE_HOME", self.path().join("state")).stdin(Stdio::null());
        c
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the program starts")
    }

    /// `bench run PROFILE DIR --size 16M --quiet ARGS` as JSON.
    pub fn json(&self, profile: &str, args: &[&str]) -> Value {
        self.json_in(self.path().to_str().unwrap(), profile, args)
    }

    /// The same in another directory.
    pub fn json_in(&self, dir: &str, profile: &str, args: &[&str]) -> Value {
        let mut all = vec!["bench", "run", profile, dir, "--size", "16M", "-q", "--ramp", "0", "--format", "json"];
        all.extend(args);
        let out = self.run(&all);
        assert!(out.status.success(), "{profile}: {}", String::from_utf8_lossy(&out.stderr));
        serde_json::from_slice(&out.stdout).expect("JSON")
    }
}

/// A run that would take a minute, its child, and the lines the child sends.
pub struct LongRun {
    pub child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl LongRun {
    /// [`Long::start_with`] for the usual job.
    pub fn start(dir: &Path) -> Self {
        Self::start_with(&serde_json::json!({
            "profile": "randrw", "directory": dir, "size": 16 << 20, "ramp_ms": 0, "time_ms": 60_000,
        }))
    }

    /// [`Long::start_in`] on the machine itself.
    pub fn start_with(plan: &Value) -> Self {
        Self::start_in(Path::new("/"), plan)
    }

    /// Starts the child as the program does, and waits for the first counted operation.
    #[expect(clippy::zombie_processes, reason = "waited for by those who end it; a failed test ends it all")]
    pub fn start_in(root: &Path, plan: &Value) -> Self {
        let mut child = Command::new(BIN)
            .arg("bench-child")
            .arg("--root")
            .arg(root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        writeln!(child.stdin.as_mut().unwrap(), "{plan}").unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        loop {
            let line = lines.next().expect("messages go on").unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            let progress = message.get("progress").unwrap_or_else(|| panic!("{line}"));
            let counted = |n: usize| progress["counts"][n].as_u64() > Some(0);
            if progress["part"] == 0 && (counted(0) || counted(1)) {
                return Self { child, lines };
            }
        }
    }

    /// The last message, which is a report. The child may be stuck in the kernel after it.
    pub fn last_report(&mut self) -> Value {
        let messages = self.lines.by_ref().map_while(Result::ok);
        let mut messages = messages.map(|l| serde_json::from_str::<Value>(&l).expect("JSON"));
        let last = messages.find(|m| m.get("progress").is_none() && m.get("note").is_none());
        last.expect("a last message")["report"].clone()
    }

    /// The same of a child that ends.
    pub fn wait_for_report(mut self) -> Value {
        let report = self.last_report();
        self.child.wait().unwrap();
        report
    }
}

/// Says why something is not tested here.
pub fn skip(why: &str) {
    println!("skipped: {why}");
}

/// ext4 on a loop device, taken down whatever the test says.
pub struct LoopDevice {
    dir: tempfile::TempDir,
    device: String,
}

impl LoopDevice {
    /// Mounted.
    pub fn mounted() -> Option<Self> {
        Self::create_mounted(&[])
    }

    /// Mounted, and past the page cache down to the image: what happens to that is seen at once.
    pub fn mounted_direct_io() -> Option<Self> {
        Self::create_mounted(&["--direct-io=on"])
    }

    fn create_mounted(options: &[&str]) -> Option<Self> {
        let lab = Self::attach(options)?;
        // Without lazy initialisation, with which the kernel writes to the disk for minutes.
        let whole = "lazy_itable_init=0,lazy_journal_init=0";
        Self::run(&["mkfs.ext4", "-q", "-F", "-E", whole, lab.device()])?;
        Self::run(&["mount", lab.device(), lab.mount_point().to_str()?])?;
        Some(lab)
    }

    /// The device alone, and a directory to mount it on.
    pub fn unmounted() -> Option<Self> {
        Self::attach(&[])
    }

    fn attach(options: &[&str]) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skip("needs root for a loop device");
            return None;
        }
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).ok()?;
        std::fs::create_dir(dir.path().join("mnt")).ok()?;
        let image = dir.path().join("img");
        std::fs::File::create(&image).ok()?.set_len(4 << 30).ok()?;
        let words = [&["losetup", "-f", "--show"], options, &[image.to_str()?]].concat();
        let device = Self::run(&words)?;
        Some(Self { dir, device })
    }

    fn run(line: &[&str]) -> Option<String> {
        let out = Command::new(line[0]).args(&line[1..]).output().ok().filter(|o| o.status.success());
        if out.is_none() {
            skip(&format!("{} does not work here", line[0]));
        }
        out.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
    }

    pub fn device(&self) -> &str {
        &self.device
    }

    pub fn image(&self) -> PathBuf {
        self.dir.path().join("img")
    }

    pub fn mount_point(&self) -> PathBuf {
        self.dir.path().join("mnt")
    }

    pub fn freeze(&self, how: &str) -> bool {
        Command::new("fsfreeze")
            .arg(how)
            .arg(self.mount_point())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|s| s.success())
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = self.freeze("-u");
        let _ = Command::new("umount").arg("-l").arg(self.mount_point()).status();
        let _ = Command::new("losetup").args(["-d", &self.device]).status();
    }
}

//! The program beside dead file systems: a frozen ext4 with a writer stuck on it, and a FUSE mount whose
//! server takes every request and answers none, so that even SIGKILL does not end who waits there.
//!
//! Needs root, loop devices, util-linux and e2fsprogs; says so and passes where they are missing. All of it
//! lives in a mount namespace of its own: nobody else's `df` hangs. Bounds are loose, figures are printed.

mod term;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::{FdFlags, fcntl_setfd};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use term::{Start, Terminal};

const LAB: &str = "IOTOP_PLUS_HANG_LAB";
/// Children that may be left behind, see `worker::MAX_CHILDREN`.
const CHILDREN: usize = iotop_plus::worker::MAX_CHILDREN;

#[test]
fn dead_file_systems_hang_nothing() {
    if let Some(missing) = missing() {
        eprintln!("SKIPPED dead_file_systems_hang_nothing: {missing}");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let out = Command::new("unshare")
        .args(["--mount", "--propagation", "private"])
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "inside", "--nocapture"])
        .env(LAB, dir.path())
        .output()
        .unwrap();
    let (said, err) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    if err.contains("SKIPPED") || !said.contains("running 1 test") {
        eprintln!("SKIPPED dead_file_systems_hang_nothing: the mounts could not be made: {err}");
        return;
    }
    println!("{said}");
    assert!(out.status.success() && said.contains("1 passed"), "{said}\n{err}");
}

fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("needs root to mount".into());
    }
    if !Path::new("/dev/fuse").exists() || !Path::new("/dev/loop-control").exists() {
        return Some("needs /dev/fuse and loop devices".into());
    }
    let has = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    ["unshare", "mount", "fsfreeze", "mkfs.ext4"].into_iter().find(|t| !has(t)).map(|t| format!("needs {t}"))
}

fn run(program: &str, args: &[&str]) -> Result<(), String> {
    let out = Command::new(program).args(args).output().map_err(|e| format!("{program}: {e}"))?;
    match out.status.success() {
        true => Ok(()),
        false => Err(format!("{program} {args:?}: {}", String::from_utf8_lossy(&out.stderr))),
    }
}

/// A frozen ext4 with a writer in state D.
struct Frozen {
    at: PathBuf,
    writer: Option<Child>,
}

impl Frozen {
    fn up(dir: &Path) -> Result<Self, String> {
        let (image, at) = (dir.join("frozen.img"), dir.join("frozen"));
        std::fs::create_dir(&at).map_err(|e| e.to_string())?;
        let text = |p: &Path| p.to_str().unwrap().to_owned();
        run("truncate", &["-s", "32M", &text(&image)])?;
        run("mkfs.ext4", &["-qF", &text(&image)])?;
        run("mount", &["-o", "loop", &text(&image), &text(&at)])?;
        let mut frozen = Self { at: at.clone(), writer: None };
        run("fsfreeze", &["-f", &text(&at)])?;
        let out = format!("of={}", at.join("x").display());
        let mut writer = Command::new("dd");
        writer.args(["if=/dev/zero", &out, "bs=4k", "count=1"]).stderr(Stdio::null());
        frozen.writer = Some(writer.spawn().map_err(|e| e.to_string())?);
        Ok(frozen)
    }

    fn writer(&self) -> u32 {
        self.writer.as_ref().unwrap().id()
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let at = self.at.to_str().unwrap();
        let _ = run("fsfreeze", &["-u", at]);
        if let Some(mut writer) = self.writer.take() {
            let _ = writer.wait();
        }
        let _ = run("umount", &[at]);
    }
}

/// A FUSE file system that has died after it was mounted.
struct Dead {
    at: PathBuf,
}

impl Dead {
    fn up(dir: &Path) -> Result<Self, String> {
        let at = dir.join("dead");
        std::fs::create_dir(&at).map_err(|e| e.to_string())?;
        let fuse =
            rustix::fs::openat(CWD, "/dev/fuse", OFlags::RDWR, Mode::empty()).map_err(|e| e.to_string())?;
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", fuse.as_raw_fd());
        run("mount", &["-i", "-t", "fuse", "-o", &options, "dead", at.to_str().unwrap()])?;
        let _ = fcntl_setfd(&fuse, FdFlags::CLOEXEC);
        let fuse = Arc::new(fuse);
        std::thread::spawn(move || serve(&fuse));
        Ok(Self { at })
    }
}

/// Answers FUSE_INIT (include/uapi/linux/fuse.h), takes everything else and says nothing.
fn serve(fuse: &OwnedFd) {
    let mut request = vec![0; 128 * 1024];
    while let Ok(n) = rustix::io::read(fuse, &mut request[..]) {
        let word = |at: usize| u32::from_ne_bytes(request[at..at + 4].try_into().unwrap());
        const INIT: u32 = 26;
        if n < 40 || word(4) != INIT {
            continue;
        }
        // out header: len, error, unique; then fuse_init_out of 64 bytes: major, minor, ...
        let mut reply = vec![0; 80];
        reply[..4].copy_from_slice(&80u32.to_ne_bytes());
        reply[8..16].copy_from_slice(&request[8..16]);
        reply[16..20].copy_from_slice(&7u32.to_ne_bytes());
        reply[20..24].copy_from_slice(&31u32.to_ne_bytes());
        reply[36..40].copy_from_slice(&65536u32.to_ne_bytes());
        reply[40..44].copy_from_slice(&1u32.to_ne_bytes());
        if rustix::io::write(fuse, &reply).is_err() {
            return;
        }
    }
}

impl Drop for Dead {
    fn drop(&mut self) {
        // MNT_FORCE ends the connection and with it every wait.
        let _ = run("umount", &["-f", self.at.to_str().unwrap()]);
        let _ = run("umount", &["-l", self.at.to_str().unwrap()]);
    }
}

/// The state of a process, and its parent.
fn state(pid: u32) -> Option<(char, u32)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

fn children(of: u32) -> Vec<u32> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    pids.filter_map(|e| e.file_name().to_str()?.parse().ok())
        .filter(|pid| state(*pid).is_some_and(|(_, parent)| parent == of))
        .collect()
}

/// Figures as a person compares them.
fn figures(name: &str, mut all: Vec<Duration>) -> Duration {
    all.sort();
    let at = |p: usize| all[(all.len() - 1) * p / 100];
    println!("{name}: {} of them, p50 {:?}, p99 {:?}, max {:?}", all.len(), at(50), at(99), at(100));
    at(100)
}

/// Switches views and takes the time until each is seen.
fn keys(t: &mut Terminal, rounds: usize) -> Vec<Duration> {
    let mut out = Vec::new();
    for i in 0..rounds {
        let (key, text) = [("4", "Pressure"), ("2", "recent past"), ("3", "READ/s")][i % 3];
        let start = Instant::now();
        t.send(key);
        t.shows(text);
        out.push(start.elapsed());
    }
    out
}

#[test]
#[ignore = "run by dead_file_systems_hang_nothing in a mount namespace of its own"]
fn inside() {
    let lab = PathBuf::from(std::env::var(LAB).expect("set by dead_file_systems_hang_nothing"));
    let made = Frozen::up(&lab).and_then(|frozen| Ok((frozen, Dead::up(&lab)?)));
    let (frozen, dead) = match made {
        Ok(made) => made,
        Err(why) => {
            eprintln!("SKIPPED {why}");
            return;
        }
    };
    let start = Instant::now();
    while state(frozen.writer()).is_some_and(|s| s.0 != 'D') {
        assert!(start.elapsed() < term::PATIENCE, "the writer does not block");
    }
    beside(&frozen, &dead);
    config_on(&dead);
}

/// A day beside both.
fn beside(frozen: &Frozen, dead: &Dead) {
    let config = frozen.at.join("config.toml");
    let mut t = Terminal::start(Start {
        args: vec!["-d", "0.1", "--config", config.to_str().unwrap(), "--path", dead.at.to_str().unwrap()],
        size: (200, 50),
        ..Default::default()
    });
    let start = Instant::now();
    t.shows("q quit");
    println!("first frame {:?}", start.elapsed());
    t.shows("does not answer");
    t.shows("BLOCKED");
    println!("said to be blocked after {:?}", start.elapsed());
    // Saving there blocks another child; it must not block anything else.
    t.send("1W");
    // More paths than children may be out: the rest is refused.
    for i in 0..CHILDREN + 4 {
        t.send(format!(":path {}/{i}\r", dead.at.display()));
    }
    t.shows("children are stuck already");
    assert!(children(t.pid()).len() <= CHILDREN, "{:?}", children(t.pid()));
    pace(&mut t);
    t.send(format!("3/{}\r", frozen.writer()));
    t.shows("[D ");
    t.send("5");
    t.until("the writer called stuck", |s| s.contents().contains("stuck: dd"));
    leave(&mut t);
}

/// Frames and keys go on.
fn pace(t: &mut Terminal) {
    t.times();
    let slowest = figures("key to screen", keys(t, 60));
    assert!(slowest < Duration::from_secs(3));
    t.times();
    t.until_seen("frames", |seen| seen.times.len() > 50);
    let gaps = t.times().windows(2).map(|w| w[1] - w[0]).collect();
    assert!(figures("between frames, samples at 0.1 s", gaps) < Duration::from_secs(3));
}

/// The shell is back at once, whatever children are stuck.
fn leave(t: &mut Terminal) {
    let left = children(t.pid());
    let start = Instant::now();
    t.send("q");
    let status = t.ended();
    println!("ended {:?} after q, {} children were out", start.elapsed(), left.len());
    assert_eq!(status.exit_code(), 0);
    assert!(start.elapsed() < Duration::from_secs(3));
    t.given_back(1);
    let stuck = left.iter().filter(|pid| state(**pid).is_some_and(|s| s.0 != 'Z')).count();
    println!("{stuck} children left behind");
    assert!(stuck <= CHILDREN);
}

/// The same figures beside trouble made by other means.
#[test]
#[ignore = "by hand: IOTOP_PLUS_BESIDE names paths on what does not answer, with colons between"]
fn by_hand() {
    let Ok(paths) = std::env::var("IOTOP_PLUS_BESIDE") else { return };
    let mut t = Terminal::start(Start { args: vec!["-d", "0.1"], size: (200, 50), ..Default::default() });
    t.shows("q quit");
    for path in paths.split(':') {
        t.send(format!(":path {path}\r"));
        t.shows(&format!("Path {path}"));
    }
    pace(&mut t);
    t.send("1");
    t.shows("Writeback");
    println!("{}", t.contents());
    leave(&mut t);
}

/// A home directory on a dead server.
fn config_on(dead: &Dead) {
    let config = dead.at.join("config.toml");
    let start = Instant::now();
    let mut t = Terminal::with(&["--config", config.to_str().unwrap()]);
    t.shows("q quit");
    println!("first frame {:?} with a config file that does not answer", start.elapsed());
    t.send("q");
    assert_eq!(t.ended().exit_code(), 0);
}

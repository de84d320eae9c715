//! What a situation is made of: disks, file systems and loads. All of it is removed when the stage is dropped.

use crate::load::{LOAD_ENV, NAME_ENV};
use crate::served_disk::{DATA, SERVE_ENV, SERVED};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Why a situation cannot be made here.
pub type Result<T> = std::result::Result<T, String>;

/// Loop devices of situations have numbers of their own, each used once: the kernel log still names those of before.
static NEXT_LOOP: AtomicU32 = AtomicU32::new(1100);

/// Runs a program to its end.
pub fn run(program: &str, args: &[&str]) -> Result<String> {
    let out = Command::new(program).args(args).stdin(Stdio::null()).output();
    let out = out.map_err(|err| format!("needs {program}: {err}"))?;
    match out.status.success() {
        true => Ok(String::from_utf8_lossy(&out.stdout).into_owned()),
        false => Err(format!("{program} {}: {}", args.join(" "), String::from_utf8_lossy(&out.stderr).trim())),
    }
}

/// A block device.
#[derive(Clone)]
pub struct Disk {
    /// As `loop1101`.
    pub name: String,
    pub path: String,
    /// Where the behaviour of a served disk is changed, by index in the stage.
    server: Option<usize>,
}

/// The devices, mounts and processes of one situation.
pub struct Stage {
    dir: tempfile::TempDir,
    servers: Vec<Child>,
    /// Mount points of served files, removed last.
    served: Vec<PathBuf>,
    loops: Vec<String>,
    mounts: Vec<PathBuf>,
    frozen: Vec<PathBuf>,
    loads: Vec<(String, Child)>,
    /// Names of all disks of the stage.
    pub disks: Vec<String>,
}

impl Stage {
    pub fn new() -> Result<Self> {
        // In memory, so that the disks of this machine play no part.
        let dir = tempfile::tempdir_in("/dev/shm").map_err(|err| format!("no directory in memory: {err}"))?;
        let (servers, served, loops, mounts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Ok(Self { dir, servers, served, loops, mounts, frozen: Vec::new(), loads: Vec::new(), disks: Vec::new() })
    }

    fn new_data(&self, mb: u64) -> Result<PathBuf> {
        let dir = self.dir.path().join(format!("disk{}", self.disks.len()));
        fs::create_dir(&dir).map_err(|err| err.to_string())?;
        let file = fs::File::create(dir.join(DATA)).map_err(|err| err.to_string())?;
        file.set_len(mb << 20).map_err(|err| err.to_string())?;
        Ok(dir)
    }

    /// A loop device on a file or device.
    pub fn loop_on(&mut self, file: &Path, direct_io: bool) -> Result<Disk> {
        let number = NEXT_LOOP.fetch_add(1, Relaxed);
        let (name, path) = (format!("loop{number}"), format!("/dev/loop{number}"));
        let direct = format!("--direct-io={}", if direct_io { "on" } else { "off" });
        run("losetup", &[&direct, &path, &file.to_string_lossy()])?;
        self.loops.push(path.clone());
        self.disks.push(name.clone());
        Ok(Disk { name, path, server: None })
    }

    /// A disk as fast as memory.
    pub fn fast_disk(&mut self, mb: u64) -> Result<Disk> {
        let data = self.new_data(mb)?.join(DATA);
        self.loop_on(&data, false)
    }

    /// A disk that behaves as the words say ([`crate::served_disk`]), at full speed until [`Stage::begin`].
    pub fn served_disk(&mut self, mb: u64) -> Result<Disk> {
        let dir = self.new_data(mb)?;
        let mut command = Command::new(std::env::current_exe().map_err(|err| err.to_string())?);
        command.env(SERVE_ENV, &dir).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = command.spawn().map_err(|err| format!("no server of a disk: {err}"))?;
        let mut line = String::new();
        let stdout = server.stdout.take().ok_or("no output of the server")?;
        BufReader::new(stdout).read_line(&mut line).map_err(|err| err.to_string())?;
        self.servers.push(server);
        if line.trim() != "ready" {
            return Err("needs /dev/fuse and the program mount".into());
        }
        let served = dir.join(SERVED);
        self.served.push(served.clone());
        let disk = self.loop_on(&served, true)?;
        let disk = Disk { server: Some(self.servers.len() - 1), ..disk };
        self.behave(&disk, "slots=32");
        Ok(disk)
    }

    /// Changes how a served disk behaves.
    pub fn behave(&mut self, disk: &Disk, words: &str) {
        let server = disk.server.and_then(|at| self.servers.get_mut(at)).and_then(|server| server.stdin.as_mut());
        let stdin = server.expect("a served disk");
        let _ = writeln!(stdin, "{words}");
    }

    /// Formats and mounts a disk.
    pub fn mount(&mut self, disk: &Disk, mkfs: &[&str], options: &str) -> Result<PathBuf> {
        run(mkfs[0], &[&mkfs[1..], &[&disk.path]].concat())?;
        let at = self.dir.path().join(format!("mnt-{}", disk.name));
        fs::create_dir(&at).map_err(|err| err.to_string())?;
        run("mount", &["-o", options, &disk.path, &at.to_string_lossy()])?;
        self.mounts.push(at.clone());
        Ok(at)
    }

    pub fn ext4(&mut self, disk: &Disk) -> Result<PathBuf> {
        let mkfs = ["mkfs.ext4", "-qF", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"];
        self.mount(disk, &mkfs, "noatime")
    }

    pub fn xfs(&mut self, disk: &Disk) -> Result<PathBuf> {
        self.mount(disk, &["mkfs.xfs", "-qfK"], "noatime")
    }

    pub fn btrfs(&mut self, disk: &Disk) -> Result<PathBuf> {
        self.mount(disk, &["mkfs.btrfs", "-qfK"], "noatime")
    }

    /// Creates a file with data, which is on the disk afterwards and not in memory.
    pub fn file(&mut self, path: PathBuf, mb: u64) -> Result<PathBuf> {
        let text = |err: std::io::Error| format!("{}: {err}", path.display());
        fs::write(&path, vec![5; (mb << 20) as usize]).map_err(text)?;
        let file = fs::File::open(&path).map_err(text)?;
        file.sync_all().map_err(text)?;
        rustix::fs::syncfs(&file).map_err(|err| err.to_string())?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).map_err(|err| err.to_string())?;
        Ok(path)
    }

    /// Starts a process with this name that does what the words say ([`crate::load`]).
    pub fn load(&mut self, name: &str, words: &str) -> Result<()> {
        let mut command = Command::new(std::env::current_exe().map_err(|err| err.to_string())?);
        command.arg0(name).env(LOAD_ENV, words).env(NAME_ENV, name).stdin(Stdio::null());
        // Its children end with it.
        command.process_group(0);
        let child = command.spawn().map_err(|err| format!("no load {name}: {err}"))?;
        self.loads.push((name.to_owned(), child));
        Ok(())
    }

    /// Ends the load with this name and waits for it.
    pub fn end_load(&mut self, name: &str) {
        for (_, child) in self.loads.iter_mut().filter(|(own, _)| own == name) {
            kill_group(child);
            let _ = child.wait();
        }
        self.loads.retain(|(own, _)| own != name);
    }

    /// Freezes a file system until the stage is dropped.
    pub fn freeze(&mut self, mount: &Path) -> Result<()> {
        run("fsfreeze", &["-f", &mount.to_string_lossy()])?;
        self.frozen.push(mount.to_owned());
        Ok(())
    }

    /// Whether a name belongs to a process of the stage.
    pub fn names(&self) -> Vec<String> {
        self.loads.iter().map(|(name, _)| name.clone()).collect()
    }
}

fn kill_group(child: &Child) {
    if let Some(group) = rustix::process::Pid::from_raw(child.id() as i32) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for server in &mut self.servers {
            if let Some(stdin) = server.stdin.as_mut() {
                let words = "read=0 write=0 flush=0 discard=0 mb_per_s=0 nth=0 stall=0 hang=0 fail=0 slots=32";
                let _ = writeln!(stdin, "{words}");
            }
        }
        for mount in &self.frozen {
            let _ = run("fsfreeze", &["-u", &mount.to_string_lossy()]);
        }
        for (_, child) in &mut self.loads {
            kill_group(child);
        }
        for (_, child) in &mut self.loads {
            let _ = child.wait();
        }
        for mount in self.mounts.iter().rev() {
            let _ = run("umount", &[&mount.to_string_lossy()])
                .or_else(|_| run("umount", &["-l", &mount.to_string_lossy()]));
        }
        for path in self.loops.iter().rev() {
            let _ = run("losetup", &["-d", path]);
        }
        for served in &self.served {
            let _ = run("umount", &["-l", &served.to_string_lossy()]);
        }
        for server in &mut self.servers {
            drop(server.stdin.take());
            let _ = server.wait();
        }
        self.loops.iter().for_each(|path| remove_loop(path));
    }
}

/// Removes a loop device that has no file any more.
#[allow(unsafe_code)]
fn remove_loop(path: &str) {
    const LOOP_CTL_REMOVE: libc::c_ulong = 0x4C81;
    let number: libc::c_long = path.trim_start_matches("/dev/loop").parse().unwrap_or(-1);
    if let Ok(control) = fs::File::open("/dev/loop-control") {
        // SAFETY: the call takes a number.
        unsafe { libc::ioctl(std::os::fd::AsRawFd::as_raw_fd(&control), LOOP_CTL_REMOVE as _, number) };
    }
}

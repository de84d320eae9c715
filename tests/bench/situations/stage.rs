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
static LOOPS: AtomicU32 = AtomicU32::new(0);
/// From here on, by process.
const FIRST_LOOP: u32 = 1000;

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
    /// Commands that end a hang, run before anything else is removed.
    thaws: Vec<Vec<String>>,
    /// Commands that remove what lies between mounts and loop devices, run in reverse order.
    removals: Vec<Vec<String>>,
    loads: Vec<(String, Child)>,
    cgroups: Vec<PathBuf>,
    /// Numbers of zram devices.
    zrams: Vec<String>,
    /// Names of all disks of the stage.
    pub disks: Vec<String>,
}

impl Stage {
    pub fn new() -> Result<Self> {
        // In memory, so that the disks of this machine play no part.
        let dir = tempfile::tempdir_in("/dev/shm").map_err(|err| format!("no directory in memory: {err}"))?;
        Ok(Self {
            dir,
            servers: Vec::new(),
            served: Vec::new(),
            loops: Vec::new(),
            mounts: Vec::new(),
            thaws: Vec::new(),
            removals: Vec::new(),
            loads: Vec::new(),
            cgroups: Vec::new(),
            zrams: Vec::new(),
            disks: Vec::new(),
        })
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
        let number = FIRST_LOOP * (1 + std::process::id() % 900) + LOOPS.fetch_add(1, Relaxed);
        let (name, path) = (format!("loop{number}"), format!("/dev/loop{number}"));
        let direct = format!("--direct-io={}", if direct_io { "on" } else { "off" });
        run("losetup", &["--partscan", &direct, &path, &file.to_string_lossy()])?;
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
        // A loop device takes the size that the kernel last heard of.
        fs::metadata(&served).map_err(|err| err.to_string())?;
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

    /// A served disk with a file system, and where it is mounted.
    pub fn served(&mut self, fs: &str, mb: u64) -> Result<(Disk, PathBuf)> {
        let disk = self.served_disk(mb)?;
        self.format(fs, &disk).map(|at| (disk, at))
    }

    /// A disk as fast as memory with a file system, and where it is mounted.
    pub fn fast(&mut self, fs: &str, mb: u64) -> Result<(Disk, PathBuf)> {
        let disk = self.fast_disk(mb)?;
        self.format(fs, &disk).map(|at| (disk, at))
    }

    /// Formats and mounts a disk.
    pub fn format(&mut self, fs: &str, disk: &Disk) -> Result<PathBuf> {
        let mkfs: &[&str] = match fs {
            "ext4" => &["mkfs.ext4", "-qF", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"],
            "xfs" => &["mkfs.xfs", "-qfK"],
            _ => &["mkfs.btrfs", "-qfK"],
        };
        self.mount(disk, mkfs, "noatime")
    }

    /// Formats and mounts a disk with this program, whose last argument is the disk.
    pub fn mount(&mut self, disk: &Disk, mkfs: &[&str], options: &str) -> Result<PathBuf> {
        run(mkfs[0], &[&mkfs[1..], &[&disk.path]].concat())?;
        let at = self.dir.path().join(format!("mnt-{}", disk.name));
        fs::create_dir(&at).map_err(|err| err.to_string())?;
        self.mount_again(disk, &at, options)?;
        Ok(at)
    }

    /// Mounts a formatted disk.
    pub fn mount_again(&mut self, disk: &Disk, at: &Path, options: &str) -> Result<()> {
        run("mount", &["-o", options, &disk.path, &at.to_string_lossy()])?;
        self.mounts.push(at.to_owned());
        Ok(())
    }

    /// A mount that the stage has made by itself, on top of those before.
    pub fn add_mount(&mut self, at: &Path) {
        self.mounts.push(at.to_owned());
    }

    pub fn unmount(&mut self, at: &Path) -> Result<()> {
        run("umount", &[&at.to_string_lossy()])?;
        self.mounts.retain(|mount| mount != at);
        Ok(())
    }

    /// The mount that has a file of this name.
    pub fn mounted(&self, file: &str) -> Option<PathBuf> {
        self.mounts.iter().find(|at| at.join(file).exists()).cloned()
    }

    /// Takes the file of a loop device away from it.
    pub fn detach(&mut self, disk: &Disk) -> Result<()> {
        self.loops.retain(|path| *path != disk.path);
        run("losetup", &["-d", &disk.path])?;
        run("btrfs", &["device", "scan", "--forget"]).map(drop)
    }

    /// Overwrites bytes of a disk, below its file system.
    pub fn damage(&self, disk: &Disk, from: u64, bytes: u64) -> Result<()> {
        let file = fs::File::options().write(true).open(&disk.path).map_err(|err| err.to_string())?;
        std::os::unix::fs::FileExt::write_all_at(&file, &vec![0xA5; bytes as usize], from)
            .map_err(|err| err.to_string())?;
        file.sync_all().map_err(|err| err.to_string())
    }

    /// Stops the process that serves a disk, until the stage is dropped.
    pub fn stop_server(&mut self, disk: &Disk) -> Result<()> {
        let server = disk.server.and_then(|at| self.servers.get(at)).ok_or("no served disk")?;
        signal(server, rustix::process::Signal::STOP);
        Ok(())
    }

    /// A compressed device in memory that holds `mb` MiB and may take `limit_mb`, with ext4.
    pub fn zram(&mut self, mb: u64, limit_mb: u64) -> Result<(Disk, PathBuf)> {
        let text = |err: std::io::Error| format!("needs zram: {err}");
        let _ = run("modprobe", &["zram"]);
        let number = fs::read_to_string("/sys/class/zram-control/hot_add").map_err(text)?.trim().to_owned();
        let name = format!("zram{number}");
        let disk = Disk { path: format!("/dev/{name}"), name, server: None };
        self.zrams.push(number);
        self.disks.push(disk.name.clone());
        let queue = |file: &str| format!("/sys/block/{}/{file}", disk.name);
        fs::write(queue("disksize"), format!("{mb}M")).map_err(text)?;
        fs::write(queue("mem_limit"), format!("{limit_mb}M")).map_err(text)?;
        let at = self.format("ext4", &disk)?;
        Ok((disk, at))
    }

    /// A control group with these settings.
    pub fn cgroup(&mut self, parent: &str, name: &str, settings: &[(&str, String)]) -> Result<PathBuf> {
        let path = Path::new(parent).join(format!("situation-{name}"));
        fs::create_dir(&path).map_err(|err| format!("needs control groups at {parent}: {err}"))?;
        self.cgroups.push(path.clone());
        for (file, value) in settings {
            fs::write(path.join(file), value).map_err(|err| format!("{file}={value}: {err}"))?;
        }
        Ok(path)
    }

    /// Creates a file with data, which is on the disk afterwards and not in memory.
    pub fn file(&mut self, dir: &Path, name: &str, mb: u64) -> Result<PathBuf> {
        let path = dir.join(name);
        let text = |err: std::io::Error| format!("{}: {err}", path.display());
        let mut file = fs::File::create(&path).map_err(text)?;
        (0..mb).try_for_each(|_| file.write_all(&[5; 1 << 20])).map_err(text)?;
        file.sync_all().map_err(text)?;
        rustix::fs::syncfs(&file).map_err(|err| err.to_string())?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).map_err(|err| err.to_string())?;
        Ok(path)
    }

    /// Waits until a load has written so much to a file, at most 20 s.
    pub fn wait_for_size(&self, file: &Path, mb: u64) -> Result<()> {
        for _ in 0..200 {
            if fs::metadata(file).is_ok_and(|it| it.len() >= mb << 20) {
                return Ok(());
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        Err(format!("{} has not {mb} MiB after 20 s", file.display()))
    }

    /// Starts a load on a file or directory.
    pub fn load_on(&mut self, name: &str, path: &Path, words: &str) -> Result<()> {
        self.load(name, &format!("{words} path={}", path.display()))
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

    /// Stops the load with this name until it is ended.
    pub fn stop_load(&self, name: &str) {
        self.loads
            .iter()
            .filter(|(own, _)| own == name)
            .for_each(|(_, child)| signal(child, rustix::process::Signal::STOP));
    }

    /// The process of a load.
    pub fn pid(&self, name: &str) -> Result<u32> {
        let found = self.loads.iter().find(|(own, _)| own == name);
        found.map(|(_, child)| child.id()).ok_or_else(|| format!("no load {name}"))
    }

    /// Freezes a file system until the stage is dropped.
    pub fn freeze(&mut self, mount: &Path) -> Result<()> {
        run("fsfreeze", &["-f", &mount.to_string_lossy()])?;
        self.thaw_by(&["fsfreeze", "-u", &mount.to_string_lossy()]);
        Ok(())
    }

    /// A command that ends a hang.
    pub fn thaw_by(&mut self, command: &[&str]) {
        self.thaws.push(command.iter().map(|&word| word.to_owned()).collect());
    }

    /// A command that removes what was just made between mounts and loop devices.
    pub fn remove_by(&mut self, command: &[&str]) {
        self.removals.push(command.iter().map(|&word| word.to_owned()).collect());
    }

    /// A device that the stage has made and removes by itself.
    pub fn add_disk(&mut self, name: &str, path: &str) -> Disk {
        self.disks.push(name.to_owned());
        Disk { name: name.to_owned(), path: path.to_owned(), server: None }
    }

    /// A directory of the stage.
    pub fn new_dir(&self, name: &str) -> Result<PathBuf> {
        let path = self.dir.path().join(name);
        fs::create_dir(&path).map_err(|err| err.to_string())?;
        Ok(path)
    }

    /// Names of the processes of the stage.
    pub fn names(&self) -> Vec<String> {
        self.loads.iter().map(|(name, _)| name.clone()).collect()
    }
}

/// Runs a command whose failure changes nothing.
fn run_words(command: &[String]) {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let _ = run(words[0], &words[1..]);
}

fn kill_group(child: &Child) {
    if let Some(group) = rustix::process::Pid::from_raw(child.id() as i32) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

fn signal(child: &Child, signal: rustix::process::Signal) {
    if let Some(pid) = rustix::process::Pid::from_raw(child.id() as i32) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for server in &mut self.servers {
            signal(server, rustix::process::Signal::CONT);
            if let Some(stdin) = server.stdin.as_mut() {
                let words = "read=0 write=0 flush=0 discard=0 mb_per_s=0 nth=0 stall=0 hang=0 fail=0 slots=32";
                let _ = writeln!(stdin, "{words}");
            }
        }
        self.thaws.iter().for_each(|command| run_words(command));
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
        self.removals.iter().rev().for_each(|command| run_words(command));
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
        for number in &self.zrams {
            let _ = fs::write("/sys/class/zram-control/hot_remove", number);
        }
        for cgroup in &self.cgroups {
            let _ = fs::remove_dir(cgroup);
        }
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

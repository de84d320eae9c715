//! The program on a root file system whose disk hangs: its binary, its libraries, `/etc`, `/usr`, the home directory and
//! `/run` lie on a disk where every read and write waits. Its page cache is dropped before: what the program needs from
//! then on must have been locked in memory.
//!
//! Needs root, FUSE, loop devices, util-linux and e2fsprogs; otherwise the test prints that it is skipped.

mod hung_fs;
mod pty_harness;

use hung_fs::hanging_disk::{HangingDisk, drop_page_cache};
use hung_fs::{child_pids, missing_requirement, run_command, run_in_mount_namespace};
use pty_harness::{BINARY, TIMEOUT, Terminal, TerminalOptions};
use rustix::process::{Pid, Signal, kill_process};
use std::cell::Cell;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// File systems that the program finds below its root. Not what is mounted below them: it may hang.
const SHARED: [&str; 5] = ["proc", "sys", "dev", "dev/pts", "tmp"];
const UNREAD_FILE: &str = "unread";
/// What a test does on the root file system; each has an environment variable of its own that selects it.
type Scenario = (&'static str, fn(&RootDisk));
const HANGING: Scenario = ("IOTOP_PLUS_HUNG_ROOT", |disk| use_the_screen(disk, 0));
const SLOW: Scenario = ("IOTOP_PLUS_SLOW_ROOT", |disk| use_the_screen(disk, 1));
const RECORDING: Scenario = ("IOTOP_PLUS_HUNG_ROOT_RECORD", record);
const BATCH: Scenario = ("IOTOP_PLUS_HUNG_ROOT_BATCH", print_batches);

fn run_scenario(test: &str, (lab_env, _): Scenario) {
    // One at a time: what one test drops from the caches of file systems may have to be written to the other's disk.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(missing) = missing_requirement(&["unshare", "losetup", "mkfs.ext4", "chroot"]) {
        eprintln!("SKIPPED {test}: {missing}");
        return;
    }
    run_in_mount_namespace(test, lab_env);
}

#[test]
fn the_program_goes_on_when_its_own_disk_hangs() {
    run_scenario("the_program_goes_on_when_its_own_disk_hangs", HANGING);
}

#[test]
fn the_program_goes_on_when_its_own_disk_reads_a_byte_a_second() {
    run_scenario("the_program_goes_on_when_its_own_disk_reads_a_byte_a_second", SLOW);
}

#[test]
fn a_recording_goes_on_when_the_root_disk_hangs() {
    run_scenario("a_recording_goes_on_when_the_root_disk_hangs", RECORDING);
}

#[test]
fn batch_output_goes_on_when_the_root_disk_hangs() {
    run_scenario("batch_output_goes_on_when_the_root_disk_hangs", BATCH);
}

/// A root file system with the program on a device of its own.
struct RootDisk {
    mount_point: PathBuf,
    disk: HangingDisk,
    /// Reads a file of the disk, for as long as it takes.
    reader: Cell<Option<JoinHandle<()>>>,
}

impl RootDisk {
    fn mount(dir: &Path) -> Result<Self, String> {
        let (disk, mount_point) = (HangingDisk::create(dir, 512 << 20)?, dir.join("root"));
        std::fs::create_dir(&mount_point).map_err(|e| e.to_string())?;
        // Whoever initializes the tables later holds a lock of the file system while it waits for the disk.
        run_command("mkfs.ext4", &["-qF", "-E", "lazy_itable_init=0,lazy_journal_init=0", &disk.device])?;
        run_command("mount", &["-o", "noatime", &disk.device, mount_point.to_str().unwrap()])?;
        let disk = Self { mount_point, disk, reader: Cell::default() };
        disk.fill().map_err(|e| e.to_string())?;
        for shared in SHARED {
            let to = disk.mount_point.join(shared);
            run_command("mount", &["--bind", &format!("/{shared}"), to.to_str().unwrap()])?;
        }
        Ok(disk)
    }

    /// Copies the program with its libraries, and what of `/etc` it reads.
    fn fill(&self) -> std::io::Result<()> {
        for dir in ["proc", "sys", "dev", "tmp", "etc", "run", "root", "usr/bin"] {
            std::fs::create_dir_all(self.mount_point.join(dir))?;
        }
        // Nobody has read it when the disk begins to hang.
        std::fs::write(self.mount_point.join(UNREAD_FILE), vec![1; 1 << 20])?;
        std::fs::copy(BINARY, self.mount_point.join("usr/bin/iotop-plus"))?;
        let listed = Command::new("ldd").arg(BINARY).output()?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let libraries = listed.split_whitespace().filter(|word| word.starts_with('/'));
        for file in libraries.chain(["/etc/passwd", "/etc/localtime"]) {
            let to = self.mount_point.join(&file[1..]);
            std::fs::create_dir_all(to.parent().unwrap())?;
            std::fs::copy(file, to)?;
        }
        Ok(())
    }

    /// Drops what the page cache has of this disk. `/proc/sys/vm/drop_caches` would wait for every other file system that
    /// hangs on the machine.
    fn drop_caches(&self) -> std::io::Result<()> {
        let device = std::fs::metadata(&self.mount_point)?.dev();
        let mut dirs = vec![self.mount_point.clone()];
        while let Some(dir) = dirs.pop() {
            for entry in std::fs::read_dir(dir)? {
                let path = entry?.path();
                let file = std::fs::symlink_metadata(&path)?;
                match file.dev() == device {
                    true if file.is_dir() => dirs.push(path),
                    true if file.is_file() => drop_page_cache(&path)?,
                    _ => {}
                }
            }
        }
        // Directories and inodes, and the blocks that they are read from.
        std::fs::write("/proc/sys/vm/drop_caches", "2")?;
        self.disk.drop_page_cache()
    }

    /// From now on every read and write of the disk takes its time; at 0 bytes a second it never ends.
    fn slow_down(&self, bytes_per_second: u64) {
        run_command("sync", &["-f", self.mount_point.to_str().unwrap()]).unwrap();
        let mut unread = std::fs::File::open(self.mount_point.join(UNREAD_FILE)).unwrap();
        self.drop_caches().unwrap();
        self.disk.set_speed(bytes_per_second);
        let (read, has_read) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            let _ = read.send(unread.read_to_end(&mut Vec::new()).is_ok());
        });
        self.reader.set(Some(reader));
        let answer = has_read.recv_timeout(Duration::from_millis(300));
        assert_eq!(answer, Err(RecvTimeoutError::Timeout), "the disk is as fast as before");
    }
}

impl Drop for RootDisk {
    /// Waits until nothing uses the disk: with the end of this process nobody serves it, and its users would hang for ever.
    fn drop(&mut self) {
        self.disk.hang(false);
        drop(self.reader.take().map(JoinHandle::join));
        let start = Instant::now();
        for mounted in SHARED.iter().rev().chain(&[""]) {
            let mount_point = self.mount_point.join(mounted);
            while let Err(why) = run_command("umount", &[mount_point.to_str().unwrap()]) {
                if start.elapsed() > TIMEOUT {
                    eprintln!("{why}");
                    return;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

#[test]
#[ignore = "run by the tests above in a mount namespace of its own"]
fn in_mount_namespace() {
    let scenarios = [HANGING, SLOW, RECORDING, BATCH];
    let selected = scenarios.into_iter().find_map(|(env, run)| Some((std::env::var_os(env)?, run)));
    let (lab, run) = selected.expect("set by the tests above");
    match RootDisk::mount(Path::new(&lab)) {
        Ok(disk) => run(&disk),
        Err(why) => eprintln!("SKIPPED {why}"),
    }
}

/// Uses the full screen while the disk has this speed.
fn use_the_screen(disk: &RootDisk, bytes_per_second: u64) {
    let root = disk.mount_point.to_str().unwrap();
    let mut t = Terminal::start(TerminalOptions {
        program: Path::new("/usr/sbin/chroot"),
        args: vec![root, "/usr/bin/iotop-plus", "-d", "0.2"],
        env: vec![("HOME", "/root")],
        size: (160, 45),
    });
    t.wait_for_text("q quit");
    // It says so once everything has been read.
    t.send("?\x1b[F");
    t.wait_for_text("locked in memory:");
    t.send("\x1b");
    disk.slow_down(bytes_per_second);
    use_every_view(&mut t);
    t.send("q");
    assert_eq!(t.wait_for_exit().exit_code(), 0);
    t.assert_restored(1);
}

/// The program with output in a directory that is not on the hanging disk, killed when dropped.
struct Headless {
    child: Child,
    dir: tempfile::TempDir,
}

impl Headless {
    /// Starts it on the root file system, and waits until its pages are locked and `file` in its directory grows.
    fn start(disk: &RootDisk, args: &[&str], file: &str) -> Self {
        let dir = tempfile::tempdir_in("/tmp").unwrap();
        let output = |name: &str| std::fs::File::create(dir.path().join(name)).unwrap();
        let child = Command::new("chroot")
            .arg(&disk.mount_point)
            .arg("/usr/bin/iotop-plus")
            .args(args.iter().map(|arg| arg.replace("DIR", dir.path().to_str().unwrap())))
            .stdin(Stdio::null())
            .stdout(output("stdout"))
            .stderr(output("stderr"))
            .spawn()
            .unwrap();
        let program = Self { child, dir };
        program.wait_until("pages are locked", || program.are_pages_held());
        program.wait_for_growth(file);
        program
    }

    /// Whether the process that locks the pages has done so: it waits for its socket.
    fn are_pages_held(&self) -> bool {
        let is_holder = |pid: &u32| {
            std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "iotop-pages")
        };
        let Some(holder) = child_pids(self.child.id()).into_iter().find(is_holder) else { return false };
        let call = std::fs::read_to_string(format!("/proc/{holder}/syscall")).unwrap_or_default();
        call.starts_with(&format!("{} ", libc::SYS_recvfrom))
    }

    fn wait_until(&self, what: &str, is: impl Fn() -> bool) {
        let start = Instant::now();
        while !is() {
            assert!(start.elapsed() < TIMEOUT, "never: {what}; {}", self.read("stderr"));
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn read(&self, file: &str) -> String {
        String::from_utf8_lossy(&std::fs::read(self.dir.path().join(file)).unwrap_or_default()).into_owned()
    }

    /// Waits until a file has grown five times.
    fn wait_for_growth(&self, file: &str) {
        let size = || std::fs::metadata(self.dir.path().join(file)).map_or(0, |file| file.len());
        for _ in 0..5 {
            let before = size();
            self.wait_until("the output grows", || size() > before);
        }
    }

    /// Ends it by SIGINT.
    fn interrupt(&mut self) {
        kill_process(Pid::from_raw(self.child.id() as i32).unwrap(), Signal::INT).unwrap();
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < TIMEOUT, "does not end; {}", self.read("stderr"));
            std::thread::sleep(Duration::from_millis(10));
        };
        assert_eq!(status.code(), Some(0), "{}", self.read("stderr"));
    }
}

impl Drop for Headless {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn record(disk: &RootDisk) {
    let mut program = Headless::start(disk, &["record", "-d", "0.2", "DIR/file.iotop"], "file.iotop");
    disk.slow_down(0);
    program.wait_for_growth("file.iotop");
    program.interrupt();
    let file = program.dir.path().join("file.iotop");
    let replay =
        Command::new(BINARY).args(["replay", "--format", "csv", "--pane", "devices"]).arg(file).output().unwrap();
    assert!(replay.status.success(), "{}", String::from_utf8_lossy(&replay.stderr));
}

fn print_batches(disk: &RootDisk) {
    let mut program = Headless::start(disk, &["-b", "-d", "0.2"], "stdout");
    disk.slow_down(0);
    program.wait_for_growth("stdout");
    program.interrupt();
}

/// Shows every view for the first time, while nothing can be read from the disk.
fn use_every_view(t: &mut Terminal) {
    let views = [
        ("2", "recent past"),
        ("3", "READ/s"),
        ("4", "Pressure"),
        ("5", "Kernel log"),
        ("b", "Bench"),
        ("7", "Tune"),
        ("f", "Findings"),
        ("?", "Help: keys"),
    ];
    for (key, text) in views {
        t.send(key);
        t.wait_for_text(text);
    }
    t.send("\x1b");
    t.wait_until("the help to close", |screen| !screen.contents().contains("Help: keys"));
    t.send("1");
    t.wait_for_text("Writeback");
    // Children start: the settings come from one, and so does what is known of a path.
    t.send("7");
    t.wait_for_text("vm.dirty_ratio");
    t.send(":path /usr/bin\r");
    t.wait_for_text("mounted at");
    t.take_frame_times();
    t.wait_for_output("frames", |seen| seen.frame_times.len() > 10);
}

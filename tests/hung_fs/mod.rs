//! File systems that do not answer, and tasks stuck on them.

#![allow(dead_code)]

pub mod hanging_disk;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

/// Environment variable with the file that the task stuck in a page fault maps.
pub const FAULT_ENV: &str = "IOTOP_PLUS_FAULT";
/// Name of a file on the frozen file system.
const MAPPED_FILE: &str = "mapped";

pub fn run_command(program: &str, args: &[&str]) -> Result<(), String> {
    let out = Command::new(program).args(args).output().map_err(|e| format!("{program}: {e}"))?;
    match out.status.success() {
        true => Ok(()),
        false => Err(format!("{program} {args:?}: {}", String::from_utf8_lossy(&out.stderr))),
    }
}

/// What of root, FUSE, loop devices and `tools` is not here.
pub fn missing_requirement(tools: &[&str]) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("needs root to mount".into());
    }
    if !Path::new("/dev/fuse").exists() || !Path::new("/dev/loop-control").exists() {
        return Some("needs /dev/fuse and loop devices".into());
    }
    let has = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    tools.iter().find(|tool| !has(tool)).map(|tool| format!("needs {tool}"))
}

/// Runs the ignored test `in_mount_namespace` of this test program in a mount namespace of its own, where mounts that
/// hang are seen by nobody else. `lab_env` names a directory for it. `test` is the name to report it as skipped.
pub fn run_in_mount_namespace(test: &str, lab_env: &str) {
    let dir = tempfile::tempdir().unwrap();
    let out = Command::new("unshare")
        .args(["--mount", "--propagation", "private"])
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "in_mount_namespace", "--nocapture"])
        .env(lab_env, dir.path())
        .output()
        .unwrap();
    let (said, err) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    if err.contains("SKIPPED") || !said.contains("running 1 test") {
        eprintln!("SKIPPED {test}: the mounts could not be made: {err}");
        return;
    }
    println!("{said}");
    assert!(out.status.success() && said.contains("1 passed"), "{said}\n{err}");
}

/// A frozen ext4 file system with a writer in state D.
pub struct FrozenFs {
    /// Mount point.
    pub mount_point: PathBuf,
    /// Tasks that no signal ends until the file system is thawed; the writer is the first.
    stuck_children: Vec<Child>,
}

impl FrozenFs {
    /// Creates and mounts it below `dir`.
    pub fn mount(dir: &Path) -> Result<Self, String> {
        let (image, at) = (dir.join("frozen.img"), dir.join("frozen"));
        std::fs::create_dir(&at).map_err(|e| e.to_string())?;
        let text = |p: &Path| p.to_str().unwrap().to_owned();
        run_command("truncate", &["-s", "32M", &text(&image)])?;
        run_command("mkfs.ext4", &["-qF", &text(&image)])?;
        run_command("mount", &["-o", "loop", &text(&image), &text(&at)])?;
        let mut frozen = Self { mount_point: at.clone(), stuck_children: Vec::new() };
        std::fs::write(at.join(MAPPED_FILE), [0; 4096]).map_err(|e| e.to_string())?;
        run_command("fsfreeze", &["-f", &text(&at)])?;
        let out = format!("of={}", at.join("x").display());
        let mut writer = Command::new("dd");
        writer.args(["if=/dev/zero", &out, "bs=4k", "count=1"]).stderr(Stdio::null());
        frozen.stuck_children.push(writer.spawn().map_err(|e| e.to_string())?);
        Ok(frozen)
    }

    /// PID of the writer.
    pub fn writer_pid(&self) -> u32 {
        self.stuck_children[0].id()
    }
}

impl Drop for FrozenFs {
    fn drop(&mut self) {
        let at = self.mount_point.to_str().unwrap();
        let _ = run_command("fsfreeze", &["-u", at]);
        for stuck in &mut self.stuck_children {
            let _ = stuck.kill();
            let _ = stuck.wait();
        }
        let _ = run_command("umount", &[at]);
    }
}

/// A FUSE file system whose server no longer answers.
pub struct DeadFuse {
    /// Mount point.
    pub mount_point: PathBuf,
}

impl DeadFuse {
    /// Mounts it below `dir`.
    pub fn mount(dir: &Path) -> Result<Self, String> {
        let at = dir.join("dead");
        std::fs::create_dir(&at).map_err(|e| e.to_string())?;
        let fuse = rustix::fs::openat(CWD, "/dev/fuse", OFlags::RDWR, Mode::empty()).map_err(|e| e.to_string())?;
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", fuse.as_raw_fd());
        run_command("mount", &["-i", "-t", "fuse", "-o", &options, "dead", at.to_str().unwrap()])?;
        let _ = fcntl_setfd(&fuse, FdFlags::CLOEXEC);
        let fuse = Arc::new(fuse);
        std::thread::spawn(move || serve_fuse_init(&fuse));
        Ok(Self { mount_point: at })
    }
}

/// Answers FUSE_INIT (include/uapi/linux/fuse.h), reads all other requests and never replies.
fn serve_fuse_init(fuse: &OwnedFd) {
    let mut request = vec![0; 128 * 1024];
    while let Ok(n) = rustix::io::read(fuse, &mut request[..]) {
        let word = |at: usize| u32::from_ne_bytes(request[at..at + 4].try_into().unwrap());
        const INIT: u32 = 26;
        if n < 40 || word(4) != INIT {
            continue;
        }
        // fuse_out_header: len, error, unique; then fuse_init_out of 64 bytes: major, minor, ...
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

impl Drop for DeadFuse {
    fn drop(&mut self) {
        // MNT_FORCE aborts the connection, which ends every wait.
        let _ = run_command("umount", &["-f", self.mount_point.to_str().unwrap()]);
        let _ = run_command("umount", &["-l", self.mount_point.to_str().unwrap()]);
    }
}

/// A process with a thread stuck in a page fault, and one stuck in exec.
pub struct StuckProcesses {
    /// PID of the process whose mappings and command line cannot be read.
    pub fault_pid: u32,
    /// PID of the process whose I/O counters cannot be read.
    pub exec_pid: u32,
}

impl StuckProcesses {
    /// Starts them and waits until they are stuck; thawing `frozen` ends them.
    pub fn start(frozen: &mut FrozenFs) -> Self {
        let fault = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "hang_in_a_page_fault", "--nocapture"])
            .env(FAULT_ENV, frozen.mount_point.join(MAPPED_FILE))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let pid = fault.id();
        frozen.stuck_children.push(fault);
        let start = std::time::Instant::now();
        loop {
            if let Some(exec) = child_of(pid)
                && read_hangs(&PathBuf::from(format!("/proc/{exec}/io")))
                && read_hangs(&PathBuf::from(format!("/proc/{pid}/cmdline")))
            {
                return Self { fault_pid: pid, exec_pid: exec };
            }
            assert!(start.elapsed() < super::pty_harness::TIMEOUT, "{:?} {:?}", process_state(pid), child_of(pid));
        }
    }
}

/// First child of any thread of a process.
fn child_of(pid: u32) -> Option<u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let lists = threads.filter_map(|t| std::fs::read_to_string(t.path().join("children")).ok());
    lists.filter_map(|list| list.split_whitespace().next()?.parse().ok()).next()
}

/// Whether reading this file takes more than 0.2 s; a child process tries it and is killed.
pub fn read_hangs(path: &Path) -> bool {
    let mut cat = Command::new("cat");
    let mut cat = cat.arg(path).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(200));
    let hangs = cat.try_wait().unwrap().is_none();
    let _ = cat.kill();
    hangs
}

/// Gets stuck: one thread in a page fault on a mapping, another in changing that mapping, which holds the lock of all
/// mappings, and a process that shares the mappings in exec, which waits for that lock while it holds its own.
#[allow(unsafe_code)]
pub fn hang_in_page_fault(path: &Path) {
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let (all, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    let stack = Box::leak(vec![0u8; 64 * 1024].into_boxed_slice()).as_mut_ptr_range().end;
    // SAFETY: the child has its own stack, sleeps and execs another program.
    let child = unsafe { libc::clone(exec_later, stack.cast(), libc::CLONE_VM | libc::SIGCHLD, std::ptr::null_mut()) };
    assert!(child > 0);
    // SAFETY: a new mapping at an address chosen by the kernel, never unmapped, of a file nobody truncates.
    let page = unsafe { rustix::mm::mmap(std::ptr::null_mut(), 4096, all, shared, &file, 0) }.unwrap() as usize;
    let writer = std::thread::spawn(move || {
        // SAFETY: the first byte of the mapping above.
        unsafe { (page as *mut u8).write_volatile(1) }
    });
    // Wait until the writer is in its fault; then mprotect waits for it.
    std::thread::sleep(std::time::Duration::from_millis(200));
    // SAFETY: the mapping above; its writer is stuck or fails, and nothing else uses it.
    let _ = unsafe { rustix::mm::mprotect(page as *mut _, 4096, MprotectFlags::READ) };
    let _ = writer.join();
}

/// Sleeps until the others are stuck, then execs `true`.
#[allow(unsafe_code)]
extern "C" fn exec_later(_: *mut libc::c_void) -> libc::c_int {
    let program = c"/bin/true";
    let args = [program.as_ptr(), std::ptr::null()];
    // SAFETY: no allocation takes place; program and arguments are C strings with static lifetime.
    unsafe {
        // Calls that fail map the pages that the real exec needs: a page fault after the sleep would wait before it.
        libc::access(program.as_ptr(), libc::F_OK);
        libc::execve(c"".as_ptr(), args.as_ptr(), args[1..].as_ptr());
        libc::usleep(500_000);
        libc::execve(program.as_ptr(), args.as_ptr(), args[1..].as_ptr());
        libc::_exit(1)
    }
}

/// State and parent of a process, from a file whose reading never blocks.
pub fn process_state(pid: u32) -> Option<(char, u32)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name: &str| text.lines().find_map(|l| Some(l.strip_prefix(name)?.trim()));
    Some((field("State:")?.chars().next()?, field("PPid:")?.parse().ok()?))
}

/// Children of a process.
pub fn child_pids(of: u32) -> Vec<u32> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    pids.filter_map(|e| e.file_name().to_str()?.parse().ok())
        .filter(|pid| process_state(*pid).is_some_and(|(_, parent)| parent == of))
        .collect()
}

//! Lists every path that the drawing process opens or asks for once it has the terminal, and compares it with those
//! that cannot hang. A thread that waits for a dead file system would keep the program from ending.
//!
//! Needs strace; otherwise the test prints that it is skipped.

mod pty_harness;

use pty_harness::{BINARY, Terminal, TerminalOptions};
use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::process::Command;

/// What may be opened: files that the kernel makes up, and the journal, which lies in memory. Names without a slash at
/// the beginning are relative to an open directory of `/proc`.
const ALLOWED: &[&str] = &[
    "/proc",
    "/sys/block",
    "/sys/class/block",
    "/sys/devices/system/cpu/possible",
    "/sys/fs/cgroup",
    "/sys/kernel/debug/tracing",
    "/sys/kernel/btf/vmlinux",
    "/sys/kernel/mm/transparent_hugepage",
    "/sys/kernel/security/lockdown",
    "/sys/kernel/tracing",
    "/dev/kmsg",
    "/dev/tty",
    "/dev/shm/iotop-plus",
];
/// What may not, although it lies below one of those: queue settings wait for the requests of a hung device.
const FORBIDDEN: &[&str] = &["/queue"];
/// The program opens this when it takes the terminal. Before that it is started like any other program.
const TERMINAL: &str = "/dev/tty";

/// The absolute paths in the log of `strace -f` that threads of the first process named after [`TERMINAL`].
fn paths_of_main_process(log: &str) -> BTreeSet<String> {
    let (mut threads, mut starting, mut paths) = (HashSet::new(), HashSet::new(), BTreeSet::new());
    let mut has_terminal = false;
    for line in log.lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        if threads.is_empty() {
            threads.insert(thread);
        }
        if !threads.contains(thread) {
            continue;
        }
        // A clone that was interrupted by other lines ends in a line without its flags.
        let is_thread_start = call.contains("CLONE_THREAD") || call.contains("resumed") && starting.remove(thread);
        if call.contains("clone") && is_thread_start {
            match call.rsplit_once("= ").filter(|(_, new)| new.bytes().all(|b| b.is_ascii_digit())) {
                Some((_, new)) => drop(threads.insert(new)),
                None => drop(starting.insert(thread)),
            }
        }
        let quoted = call.split('"').skip(1).step_by(2).filter(|path| path.starts_with('/'));
        for path in quoted.filter(|_| !call.trim_start().starts_with("getcwd")) {
            has_terminal |= path == TERMINAL;
            if has_terminal {
                paths.insert(path.to_owned());
            }
        }
    }
    paths
}

fn may_be_opened(path: &str) -> bool {
    let is_below = |dir: &&str| path.strip_prefix(*dir).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    ALLOWED.iter().any(is_below) && !FORBIDDEN.iter().any(|part| path.contains(part))
        || path == "/run/iotop-plus" && is_in_memory("/run")
        // In which the devices of mounts are found, without leaving it.
        || path == "/dev"
}

fn is_in_memory(mount_point: &str) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    mounts.lines().any(|line| line.split(' ').nth(1) == Some(mount_point) && line.contains(" tmpfs "))
}

#[test]
fn the_drawing_process_opens_nothing_that_can_hang() {
    if Command::new("strace").arg("-V").output().is_err() {
        eprintln!("SKIPPED the_drawing_process_opens_nothing_that_can_hang: needs strace");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let args = vec!["-f", "-o", log.to_str().unwrap(), "-e", "trace=%file,clone,clone3", BINARY, "-d", "0.5"];
    let program = Path::new("/usr/bin/strace");
    let mut t = Terminal::start(TerminalOptions { program, args, size: (160, 45), ..Default::default() });
    t.wait_for_text("q quit");
    let views =
        [("2", "recent past"), ("3", "READ/s"), ("4", "Pressure"), ("5", "Kernel log"), ("b", "Bench"), ("F", "Syncs")];
    for (key, text) in views {
        t.send(key);
        t.wait_for_text(text);
    }
    // A page of a process, one of a device, a path, settings, findings, and saving the config.
    t.send(format!("3/{}\r", t.pid()));
    t.wait_until("strace in the table", |screen| screen.contents().contains("strace"));
    t.send("\r");
    t.wait_for_text("open files");
    // Reading smaps stops the process: only on this key, and in a child.
    assert!(!std::fs::read_to_string(&log).unwrap().contains("smaps"));
    t.send("v");
    let reads_mappings = || std::fs::read_to_string(&log).unwrap().contains("/smaps");
    t.wait_until("mappings", |_| reads_mappings());
    t.send("2\r");
    t.wait_for_text("scheduler");
    t.send(":path /usr\r");
    t.wait_for_text("mounted at");
    t.send("7");
    t.wait_for_text("vm.dirty_ratio");
    t.send("fW");
    t.wait_for_text("written: ");
    t.send("1q");
    t.wait_for_exit();
    let paths = paths_of_main_process(&std::fs::read_to_string(log).unwrap());
    println!("{paths:#?}");
    assert!(paths.contains("/proc/diskstats"), "the log has what the program reads");
    let other: Vec<_> = paths.iter().filter(|path| !may_be_opened(path)).collect();
    assert!(other.is_empty(), "{other:#?}");
}

#[test]
fn threads_are_told_from_children() {
    let log = "7 openat(AT_FDCWD, \"/etc/ld.so.cache\", O_RDONLY) = 3\n\
               7 openat(AT_FDCWD, \"/dev/tty\", O_RDWR) = 3\n\
               7 clone(child_stack=NULL, flags=SIGCHLD) = 8\n\
               8 openat(AT_FDCWD, \"/child\", O_RDONLY) = 3\n\
               7 clone3({flags=CLONE_VM|CLONE_THREAD}, 88) = 9\n\
               9 clone3({flags=CLONE_VM|CLONE_THREAD} <unfinished ...>\n\
               9 <... clone3 resumed> => {parent_tid=[10]}, 88) = 10\n\
               10 statx(AT_FDCWD, \"/thread\", 0) = -1 ENOENT (No such file or directory)\n";
    let expected: BTreeSet<String> = ["/dev/tty", "/thread"].map(str::to_owned).into();
    assert_eq!(paths_of_main_process(log), expected);
}

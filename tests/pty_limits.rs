//! Limits the program keeps and limits it meets, in a pseudo-terminal: frames a second, descriptors, helper processes
//! that do not answer.

mod pty_harness;

use pty_harness::{BINARY, TIMEOUT, Terminal, TerminalOptions};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// Does `one` every 2 ms for 600 times; the frames drawn meanwhile are at most ten a second. The two extra are those a
/// rested program may draw at once.
fn assert_ten_frames_a_second(t: &mut Terminal, mut one: impl FnMut(&mut Terminal, usize)) {
    t.wait_for_text("q quit");
    t.take_frame_times();
    let start = Instant::now();
    for i in 0..600 {
        one(t, i);
        std::thread::sleep(Duration::from_millis(2));
    }
    let (frames, elapsed) = (t.take_frame_times().len(), start.elapsed());
    assert!(frames > 2, "nothing was drawn");
    assert!(frames as f64 <= elapsed.as_secs_f64() * 10.0 + 2.0, "{frames} frames in {elapsed:?}");
}

#[test]
fn keys_draw_at_most_ten_frames_a_second() {
    let mut t = Terminal::with_args(&["-d", "60"]);
    assert_ten_frames_a_second(&mut t, |t, i| t.send(["2", "3", "4"][i % 3]));
}

#[test]
fn a_flood_in_the_kernel_log_draws_at_most_ten_frames_a_second() {
    let name = "a_flood_in_the_kernel_log_draws_at_most_ten_frames_a_second";
    const LIMIT: &str = "/proc/sys/kernel/printk_devkmsg";
    struct RestoreLimit(String);
    impl Drop for RestoreLimit {
        fn drop(&mut self) {
            std::fs::write(LIMIT, &self.0).unwrap();
        }
    }
    let before = std::fs::read_to_string(LIMIT).unwrap_or_default();
    let restore = std::fs::write(LIMIT, "on\n").map(|()| RestoreLimit(before));
    let log = std::fs::OpenOptions::new().write(true).open("/dev/kmsg");
    let (Ok(_), Ok(mut log)) = (&restore, log) else {
        return println!("skipped {name}: needs root, and kernel.printk_devkmsg that can be changed");
    };
    // Samples ask for frames as well.
    let mut t = Terminal::with_args(&["-d", "0.1"]);
    t.wait_for_text("q quit");
    t.send("5");
    assert_ten_frames_a_second(&mut t, |_, i| log.write_all(format!("<4>flood test, line {i}\n").as_bytes()).unwrap());
    // All lines are read, however few frames were drawn.
    t.wait_for_text("line 599");
}

#[test]
fn too_few_descriptors_end_the_program_with_the_reason() {
    for limit in [16, 17] {
        let command = format!("ulimit -n {limit}; exec {BINARY}");
        let program = Path::new("/bin/sh");
        let mut t = Terminal::start(TerminalOptions { program, args: vec!["-c", &command], ..Default::default() });
        assert_eq!(t.wait_for_exit().exit_code(), 1, "{limit} descriptors: {}", t.contents());
        t.wait_for_text("ulimit -n");
        assert_eq!(t.modes(), t.initial_modes());
    }
}

/// The helper process of that name which `parent` has started: its number and state.
fn find_helper(parent: u32, name: &str) -> Option<(u32, char)> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.into_iter().find_map(|pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (before, after) = stat.rsplit_once(") ")?;
        let mut fields = after.split(' ');
        let state = fields.next()?.chars().next()?;
        let is_it = before.ends_with(&format!("({name}")) && fields.next()? == parent.to_string();
        is_it.then_some((pid, state))
    })
}

fn wait_until(what: &str, is: impl Fn() -> bool) {
    let start = Instant::now();
    while !is() {
        assert!(start.elapsed() < TIMEOUT, "never came: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn helpers_that_do_not_answer_hinder_neither_work_nor_quitting() {
    let mut t = Terminal::with_args(&["-d", "0.5"]);
    t.wait_for_text("q quit");
    let helpers = ["iotop-fork", "iotop-pages"].map(|name| {
        wait_until(name, || find_helper(t.pid(), name).is_some());
        let (pid, _) = find_helper(t.pid(), name).unwrap();
        kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::STOP).unwrap();
        wait_until("stopped", || find_helper(t.pid(), name).is_some_and(|(_, state)| state == 'T'));
        pid
    });
    // The settings come from a child, and so does what is known of a path.
    t.send("7");
    t.wait_for_text("vm.dirty_ratio");
    t.send(":path /usr\r");
    t.wait_for_text("mounted at");
    t.send("q");
    assert_eq!(t.wait_for_exit().exit_code(), 0);
    t.assert_restored(1);
    for pid in helpers {
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "{pid} is left");
    }
}

/// Of `su -c`: no controlling terminal, and no permission to open the terminal again.
#[test]
fn the_program_runs_on_a_terminal_that_it_may_not_open() {
    use std::os::unix::fs::PermissionsExt;
    let name = "the_program_runs_on_a_terminal_that_it_may_not_open";
    if !rustix::process::geteuid().is_root() || !Path::new("/bin/su").exists() {
        return println!("skipped {name}: needs root and su");
    }
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("iotop-plus");
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::copy(BINARY, &program).unwrap();
    let command = format!("su nobody -s /bin/sh -c {}; grep flags /proc/self/fdinfo/1", program.display());
    let shell = Path::new("/bin/sh");
    let mut t = Terminal::start(TerminalOptions { program: shell, args: vec!["-c", &command], ..Default::default() });
    t.wait_for_text("q quit");
    t.send("3");
    t.wait_for_text("Process");
    assert_follows_size(&t);
    t.send("q");
    assert_eq!(t.wait_for_exit().exit_code(), 0);
    t.assert_restored(1);
    t.wait_for_text("flags:");
    let screen = t.contents();
    let flags = screen.lines().find_map(|line| line.strip_prefix("flags:")).unwrap().trim().to_owned();
    assert_eq!(u32::from_str_radix(&flags, 8).unwrap() & 0o4000, 0, "O_NONBLOCK is left: {flags}");
}

/// No SIGWINCH comes: that is only sent for the controlling terminal.
fn assert_follows_size(t: &Terminal) {
    t.resize(150, 40);
    let is_wide = |s: &vt100::Screen| s.contents().lines().filter(|line| line.chars().count() == 150).count() > 30;
    t.wait_until("frames of 150 columns", is_wide);
}

/// A session of its own, as a program started by a service manager or `setsid` has, without a controlling terminal.
#[test]
fn the_program_runs_without_a_controlling_terminal() {
    let name = "the_program_runs_without_a_controlling_terminal";
    if !Path::new("/usr/bin/setsid").exists() {
        return println!("skipped {name}: needs setsid");
    }
    for redirection in ["", " >/dev/tty"] {
        let command = format!("setsid --wait {BINARY} --config none -d 0.2{redirection}; echo status $?");
        let shell = Path::new("/bin/sh");
        let mut t =
            Terminal::start(TerminalOptions { program: shell, args: vec!["-c", &command], ..Default::default() });
        t.wait_for_text("q quit");
        t.send("3");
        t.wait_for_text("READ/s");
        assert_follows_size(&t);
        t.send("?");
        t.wait_for_text("Help: keys");
        t.send("\x1b");
        t.wait_until("the help closed", |s| !s.contents().contains("Help: keys"));
        t.send("q");
        t.wait_for_text("status 0");
        assert_eq!(t.wait_for_exit().exit_code(), 0);
        t.assert_restored(1);
    }
}

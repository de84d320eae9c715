//! Limits the program keeps and limits it meets, in a pseudo-terminal: frames a second, descriptors.

mod pty_harness;

use pty_harness::{BINARY, Terminal, TerminalOptions};
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
    let mut t = Terminal::with_args(&["-d", "60"]);
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

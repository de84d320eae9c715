//! Large screens while nothing is wrong: they say what was looked at, and leave no large part empty.

use super::fixture::press;
use super::situations::play_file;
use super::snapshot::assert_snapshot;
use super::{render, text};
use std::path::Path;

fn shown(name: &str, keys: &str, size: (u16, u16)) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/doctor/{name}.iotop"));
    let mut app = play_file(&file, size);
    press(&mut app, keys);
    text(&render(&app))
}

/// Most rows one after the other that have nothing between the borders.
fn longest_gap(screen: &str) -> usize {
    let is_blank = |line: &str| line.chars().all(|c| c == ' ' || c == '│');
    let blank: Vec<bool> = screen.lines().map(is_blank).collect();
    blank.split(|is_blank| !is_blank).map(<[bool]>::len).max().unwrap_or(0)
}

#[test]
fn findings_say_what_was_judged_by_which_limits() {
    for size in [(80, 24), (160, 45), (200, 50)] {
        let screen = shown("healthy-database", "8", size);
        assert!(screen.contains("nothing wrong found, ") && screen.contains(" rules judged"), "{screen}");
        assert!(screen.contains("a finding from 50 ms/s, for 3 s"), "{screen}");
        assert_snapshot(&format!("quiet_findings_{}x{}", size.0, size.1), screen);
    }
}

#[test]
fn syncs_show_the_flushes_of_devices() {
    for name in ["healthy-database", "healthy-idle"] {
        let screen = shown(name, "9", (160, 45));
        assert!(screen.contains("Flushes of devices, in which syncs end"), "{screen}");
        assert_snapshot(&format!("quiet_syncs_{name}_160x45"), screen);
    }
}

#[test]
fn a_quiet_overview_has_no_large_gap() {
    for size in [(160, 45), (200, 50)] {
        let screen = shown("healthy-database", "1", size);
        assert!(longest_gap(&screen) <= 9, "{screen}");
        assert_snapshot(&format!("quiet_overview_{}x{}", size.0, size.1), screen);
    }
}

//! The Overview in six situations recorded on a machine in trouble. A person who sees only the first screen can say which
//! device it is about, who causes the trouble, and who suffers.
//!
//! The recordings are in `tests/fixtures/situations`; `cargo run --example trim` made them small and nameless.

use super::fixture::press;
use super::snapshot::assert_snapshot;
use super::{render, text};
use iotop_plus::model::system_state::SystemState;
use iotop_plus::recording::reader::RecordingReader;
use iotop_plus::tui::app::{App, update};
use iotop_plus::tui::event::Event;
use iotop_plus::tui::settings::Settings;
use std::fs::File;
use std::path::Path;

/// The name of a recording, and how the line below the worst finding names device, culprit and victim.
type Situation = (&'static str, &'static str, &'static str, &'static str);

const SITUATIONS: [Situation; 6] = [
    ("slow-disk", "device loop1", "culprit the device itself", "victim fio ("),
    ("dirty-storm", "device loop1", "culprit and victim dd (", "dd ("),
    ("swap-pressure", "device loop1", "culprit and victim python3 (", "python3 ("),
    ("hung-task", "device loop1", "culprit the device itself", "victim dd ("),
    ("io-error", "device loop1", "culprit the device itself", "victim file system (read-only)"),
    ("fsync-victim", "device loop1", "culprit streamer (", "victim database ("),
];

/// The screen at the end of a recording, as it was live.
pub fn play(name: &str, size: (u16, u16)) -> App {
    play_file(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/situations").join(format!("{name}.iotop")),
        size,
    )
}

/// The screen at the end of the recording in a file, as it was live.
pub fn play_file(path: &Path, size: (u16, u16)) -> App {
    let mut reader = RecordingReader::open(File::open(path).unwrap()).unwrap();
    let system = SystemState::new(reader.header.host(), reader.header.log_clock());
    let mut app = App::new(system, size, &Settings::default());
    while let Some(tick) = reader.next_tick().unwrap() {
        for observation in tick.full_state.into_iter().flatten().chain(tick.observations) {
            update(&mut app, Event::Observed(observation));
        }
    }
    assert_eq!(reader.unreadable_frames, 0);
    app
}

/// The screen, and the line about the worst finding on it.
fn overview(name: &str, size: (u16, u16)) -> (String, String) {
    let shown = text(&render(&play(name, size)));
    let line = shown.lines().find(|line| line.contains("device loop1")).unwrap_or_default().to_owned();
    (shown, line)
}

/// Stalled tasks are in a section above the busy ones, each with how long it waits.
fn assert_sections(name: &str, shown: &str) {
    let at = |heading: &str| shown.lines().position(|line| line.starts_with(heading));
    let (stalled, busy) = (at("│Stalled PID "), at("│Busy    PID "));
    // Nobody waits for the disk with errors any more.
    assert_eq!(stalled.is_some(), name != "io-error", "{name}:\n{shown}");
    let Some((stalled, busy)) = stalled.zip(busy) else { return };
    for row in shown.lines().skip(stalled + 1).take(busy - stalled - 1) {
        let waits = row.split_whitespace().any(|word| word.ends_with('%') || word.ends_with('s') && word.len() <= 4);
        assert!(waits, "{name}: how long? {row}");
    }
}

#[test]
fn device_culprit_and_victim_are_on_the_first_screen() {
    for (name, device, culprit, victim) in SITUATIONS {
        for size in [(80, 24), (120, 40)] {
            let (shown, line) = overview(name, size);
            for part in [device, culprit, victim] {
                assert!(line.contains(part), "{name} {size:?}: no {part:?} in\n{shown}");
            }
            assert_sections(name, &shown);
            assert_snapshot(&format!("situation_{}_{}x{}", name.replace('-', "_"), size.0, size.1), shown);
        }
    }
}

#[test]
fn the_column_of_waits_is_folded_while_none_waits() {
    let shown = |name: &str| {
        let mut app = play(name, (160, 45));
        press(&mut app, "3o");
        text(&render(&app))
    };
    let (waiting, quiet) = (shown("dirty-storm"), shown("io-error"));
    assert!(waiting.contains(" WAITS "), "{waiting}");
    assert!(!quiet.contains(" WAITS ") && quiet.contains(", WAITS, ") && quiet.contains("(e says why)"), "{quiet}");
}

#[test]
fn findings_draws_the_recent_past_of_what_it_is_about() {
    for (name, past) in [
        ("slow-disk", "waits and use of loop1"),
        ("dirty-storm", "dirty pages, and waits of loop1"),
        ("swap-pressure", "swap in and out"),
    ] {
        let mut app = play(name, (160, 45));
        press(&mut app, "8");
        let shown = text(&render(&app));
        let heading = shown.lines().position(|line| line.contains(past));
        let below = heading.map(|at| shown.lines().skip(at).collect::<String>()).unwrap_or_default();
        let is_braille = |c: char| ('\u{2801}'..='\u{28ff}').contains(&c);
        assert!(below.contains(is_braille), "{name}: no graph of {past} in\n{shown}");
    }
}

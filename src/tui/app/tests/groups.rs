//! The control groups, in place of the processes: opened and left by keys, read only while they are shown.

use super::fixture::{app, press};
use super::{SIZE, draw_screen, state_summary};
use crate::model::control_groups::{ControlGroupRaw, ControlGroupsRaw, GroupDeviceIo};
use crate::model::disk::DevId;
use crate::model::observation::Observation;
use crate::model::reading::Reading;
use crate::model::slow_facts::{CgroupFacts, CgroupIoLimit};
use crate::tui::app::{App, update};
use crate::tui::view::{Effect, Event, PaneId};
use std::sync::Arc;

const MIB: u64 = 1 << 20;

fn group(path: &str, device: DevId, written: u64) -> ControlGroupRaw {
    let limit = CgroupIoLimit { device, write_bytes_per_s: Some(10 * MIB), ..CgroupIoLimit::default() };
    ControlGroupRaw {
        limits: CgroupFacts {
            path: path.into(),
            io: if path.ends_with("slow") { vec![limit] } else { Vec::new() },
            memory_max: Some(400 * MIB),
            ..CgroupFacts::default()
        },
        io: Some(vec![GroupDeviceIo { device, counts: [0, written, 0, written / 4096] }]),
        io_stall_us: Some(written / 20),
        memory: Some(100 * MIB),
        dirty: Some(3 * MIB),
        ..ControlGroupRaw::default()
    }
}

/// Sends a tick, a second after the one before, in which `/app.slice/slow` wrote 9 MiB and others little.
fn tick(app: &mut App) {
    let mut sample = app.shared.system.last_sample.clone().unwrap();
    sample.seq += 1;
    sample.time.boot_ns += 1_000_000_000;
    sample.time.wall_ns += 1_000_000_000;
    let disk = sample.disks.ok().unwrap()[0].id;
    let written = sample.seq * 9 * MIB;
    let groups = vec![
        group("/app.slice", disk, written + 5),
        group("/system.slice", disk, 0),
        group("/app.slice/quick", disk, 5),
        group("/app.slice/slow", disk, written),
    ];
    sample.control_groups = Reading::Ok(Arc::new(ControlGroupsRaw { groups, left_out: 2 }));
    update(app, Event::Observed(Observation::Sample(Box::new(sample))));
}

fn with_groups(keys: &str) -> App {
    let mut app = app(SIZE);
    press(&mut app, keys);
    tick(&mut app);
    tick(&mut app);
    app
}

fn shown(app: &App) -> String {
    crate::export::screenshot::to_text(&draw_screen(app))
}

fn requests(app: &mut App, keys: &str) -> Vec<bool> {
    let told = |e| match e {
        Effect::ReadGroups(is_wanted) => Some(is_wanted),
        _ => None,
    };
    press(app, keys).into_iter().filter_map(told).collect()
}

#[test]
fn groups_are_read_only_while_they_are_shown() {
    for (keys, want) in [
        ("123456789F0", vec![]),
        ("3Z", vec![true]),
        ("1Z", vec![true]),
        ("3ZZ", vec![true, false]),
        ("3Z2", vec![true, false]),
        ("3Z33", vec![true, false]),
    ] {
        assert_eq!(requests(&mut app(SIZE), keys), want, "{keys}");
    }
}

#[test]
fn the_tree_has_the_busiest_first_and_says_how_near_its_limits_are() {
    let app = with_groups("3Z");
    assert_eq!(state_summary(&app), "Processes/ControlGroups");
    let text = shown(&app);
    let line = |name: &str| {
        let found = text.lines().enumerate().find(|(_, line)| line.contains(name));
        found.unwrap_or_else(|| panic!("no {name}: {text}"))
    };
    let (parent, _) = line(" app.slice");
    let ((slow, row), (quick, _), (system, _)) = (line("  slow"), line("  quick"), line(" system.slice"));
    assert!(parent < slow && slow < quick && quick < system, "{text}");
    let cells: Vec<&str> = row.split_whitespace().collect();
    // read/s, write/s, of io.max, waiting for I/O, memory, of the limit, dirty
    assert_eq!(cells[1..8], ["·", "9.00M", "90", "47.2", "100M", "25", "3.00M"], "{row}");
    assert!(text.contains("2 more groups are not read"), "{text}");
}

#[test]
fn the_page_shows_devices_with_their_limits_and_enter_goes_to_the_processes() {
    let mut app = with_groups("3Z");
    press(&mut app, "<down>");
    let text = shown(&app);
    assert!(text.contains("write 9.00M/s (90 % of 10.0M)") && text.contains("25 % of memory.max 400M"), "{text}");
    press(&mut app, "<enter>");
    assert_eq!(state_summary(&app), "Processes/Processes");
    let filter = app.with_view(PaneId::Processes, |view, _| view.filter(PaneId::Processes).to_owned());
    assert_eq!(filter.as_deref(), Some("cgroup=/app.slice/slow"));
}

#[test]
fn a_filter_keeps_what_is_above_and_a_missing_tree_is_explained() {
    let mut app = with_groups("3Z");
    press(&mut app, "\\slow<enter>");
    let text = shown(&app);
    assert!(text.contains(" app.slice") && text.contains("slow") && !text.contains("quick"), "{text}");
    let mut sample = app.shared.system.last_sample.clone().unwrap();
    sample.control_groups = Reading::Absent("control groups are read while their list is open".into());
    sample.seq += 1;
    sample.time.boot_ns += 1_000_000_000;
    update(&mut app, Event::Observed(Observation::Sample(Box::new(sample))));
    assert!(shown(&app).contains("control groups are read while"), "{}", shown(&app));
}

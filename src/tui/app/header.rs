//! The line at the top: host, time, what changes the meaning of all figures, CPU and pressure.

use crate::model::memory_stalls::THROTTLE;
use crate::model::pressure::ResourcePressure;
use crate::model::reading::blocked_time;
use crate::model::snapshot::Snapshot;
use crate::recording::writer::RecorderStatus;
use crate::sanitize::{fit_width, sanitize};
use crate::tui::shared::ReplayUi;
use crate::tui::view::Shared;
use crate::tui::widgets::{CellBuffer, Rect, Style, Theme, draw_text};
use crate::units::{format_bytes, format_duration, write_age};
use unicode_width::UnicodeWidthStr;

type HeaderPart = (String, Style);

/// From this width on the line also has what is seldom looked at.
const ROOMY_WIDTH: u16 = 100;

/// Draws the line; a narrow screen cuts off its end.
pub(super) fn draw_header(shared: &Shared, theme: &Theme, area: Rect, buf: &mut CellBuffer) {
    let snapshot = shared.snapshot();
    let host = &shared.system.host;
    let time = shared.format_time_of_day(snapshot.time.wall_ns);
    let mut parts = vec![(format!(" {}  {time}", host.name), theme.title)];
    // What changes the meaning of all figures comes first.
    push_status(shared, theme, area.width, &mut parts);
    let mode = mode_text(shared, snapshot);
    let room = area.right().saturating_sub(mode.len() as u16);
    push_figures(snapshot, theme, area.width, &mut parts);
    let used: usize = parts.iter().map(|(text, _)| UnicodeWidthStr::width(&**text)).sum();
    let end = end_parts(shared, theme, usize::from(room - area.x).saturating_sub(used));
    parts.extend(end);
    let mut x = area.x;
    for (text, style) in parts {
        x += draw_text(buf, x, area.y, &text, room.saturating_sub(x), style);
    }
    let style = if shared.frozen_seq.is_some() { theme.crit } else { theme.dim };
    draw_text(buf, room, area.y, &mode, mode.len() as u16, style);
}

/// Replay, recording, leases, blocked reads, benchmark or experiment.
fn push_status(shared: &Shared, theme: &Theme, width: u16, out: &mut Vec<HeaderPart>) {
    let gap = || ("  ".to_owned(), theme.text);
    if shared.frozen_seq.is_some() {
        out.push(("  FROZEN".into(), theme.crit));
    }
    if let Some(replay) = &shared.replay {
        out.extend([gap(), (replay_status_text(replay), if replay.is_playing { theme.changed } else { theme.crit })]);
        if replay.damaged > 0 || replay.is_partial {
            let what = if replay.is_partial { "idle tasks missing" } else { "damaged" };
            out.push((format!("  {what}"), theme.warn));
        }
    }
    if let Some(status) = &shared.recording_status {
        let has_lost = status.is_stuck || status.frames_dropped > 0;
        out.extend([gap(), (recording_status_text(status), if has_lost { theme.crit } else { theme.changed })]);
    }
    if let Some(lease) = shared.knobs.leases.last() {
        let text = format!("change #{} reverts in {}:{:02}", lease.id, lease.secs_left / 60, lease.secs_left % 60);
        out.extend([gap(), (text, if lease.secs_left <= 15 { theme.crit } else { theme.changed })]);
    }
    if let Some(read) = shared.system.blocked_reads.first() {
        let time = blocked_time(read.since_boot_ns, shared.system.now().boot_ns);
        let (on, _) = fit_width(&read.waiting_on, usize::from(width / 3));
        out.push((format!("  BLOCKED {time}: {}", sanitize(on)), theme.crit));
    }
    out.extend(shared.running.iter().map(|running| (format!("  {}", running.status), theme.warn)));
}

/// What stalls tasks comes first, what the CPUs do last. In `width` cells.
fn push_figures(snapshot: &Snapshot, theme: &Theme, width: u16, out: &mut Vec<HeaderPart>) {
    let alert = |is_high| if is_high { theme.crit } else { theme.text };
    if let Some(p) = snapshot.pressure.ok() {
        let some = |p: ResourcePressure| p.some.map_or("-".into(), |s| format!("{:.0}%", s.avg10));
        let style = |p: ResourcePressure| alert(p.full.is_some_and(|s| s.avg10 >= 10.0));
        out.extend([
            (format!("  IO stall {}", some(p.io)), style(p.io)),
            (format!(" mem {}", some(p.memory)), style(p.memory)),
        ]);
        if width >= ROOMY_WIDTH {
            out.push((" (10s)".into(), theme.dim));
        }
    }
    let cpu = snapshot.cpu.ok();
    if let Some(cpu) = cpu {
        out.push((format!("  iowait {:.0}%", cpu.iowait_pct), alert(cpu.iowait_pct >= 20.0)));
    }
    if let Some(blocked) = snapshot.tasks_blocked.filter(|n| *n > 0) {
        out.push((format!("  D {blocked}"), theme.warn));
    }
    if snapshot.memory_stalls.ok().is_some_and(|stalls| stalls.has_stalls(THROTTLE)) {
        out.push(("  THROTTLED".into(), theme.warn));
    }
    if cpu.is_none() {
        out.push(("  cpu -".into(), theme.dim));
    }
}

/// The times of the CPUs, the kernel version and the uptime: the longest form of them that fits into `room` cells.
fn end_parts(shared: &Shared, theme: &Theme, room: usize) -> Vec<HeaderPart> {
    let (snapshot, kernel) = (shared.snapshot(), &shared.system.host.kernel);
    let cpu = snapshot.cpu.ok().map_or(String::new(), |c| {
        format!("  us {:.0} sy {:.0} st {:.0} id {:.0}", c.user_pct, c.system_pct, c.steal_pct, c.idle_pct)
    });
    let uptime = snapshot.time.uptime_secs() as u64;
    let mut age = String::new();
    write_age(&mut age, uptime);
    let version = kernel.split_once('-').map_or(&**kernel, |(version, _)| version);
    let long = format!("  {kernel}  up {}", format_duration(uptime));
    let short = format!("  {version}  up {}", age.trim_start());
    let none = String::new();
    let forms = [(&cpu, &long), (&cpu, &short), (&none, &short), (&cpu, &none)];
    let fits = |(cpu, end): &(&String, &String)| cpu.len() + end.len() <= room;
    let (cpu, end) = forms.into_iter().find(fits).unwrap_or((&none, &none));
    vec![(cpu.clone(), theme.text), (end.clone(), theme.dim)]
}

/// At the right edge: the date of a recording, what a frozen tick covers, or the interval.
fn mode_text(shared: &Shared, snapshot: &Snapshot) -> String {
    match (shared.frozen_seq, &shared.replay) {
        // The date, because a recording is of another day.
        (_, Some(_)) => {
            let local_ns = snapshot.time.wall_ns.saturating_add(shared.utc_offset_secs.saturating_mul(1_000_000_000));
            format!(" {:.10} ", crate::units::format_rfc3339(local_ns))
        }
        (Some(_), _) => format!(" {} ", shared.interval_text()),
        _ => {
            let secs = shared.interval.as_secs_f64();
            if secs >= 10.0 { format!(" live {secs:.0}s ") } else { format!(" live {secs:.1}s ") }
        }
    }
}

fn replay_status_text(replay: &ReplayUi) -> String {
    let position = |number: u32| number.saturating_sub(replay.span.first_number) + 1;
    let place = format!("{}/{}", position(replay.tick_number), position(replay.span.last_number));
    if replay.is_searching {
        return format!("REPLAY {place} searching");
    }
    match (replay.is_playing, replay.speed()) {
        (false, _) => format!("REPLAY {place} paused"),
        (true, 1) => format!("REPLAY {place}"),
        (true, n) => format!("REPLAY {place} {n}x"),
    }
}

/// State of the recorder: size written, dropped samples, a disk that hangs.
fn recording_status_text(status: &RecorderStatus) -> String {
    let size = format_bytes(status.bytes_sent);
    match (status.is_stuck, status.frames_dropped) {
        (true, 0) => {
            let waiting = format_bytes(status.bytes_sent.saturating_sub(status.bytes_written));
            format!("REC stuck: its disk takes nothing, {waiting} wait")
        }
        (true, n) => format!("REC stuck: its disk takes nothing, {n} samples dropped"),
        (false, 0) => format!("REC {size}"),
        (false, n) => format!("REC {size}, {n} samples dropped"),
    }
}

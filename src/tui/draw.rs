//! Draws the whole screen. Reads only the state: no clock, no kernel.

use super::action::{Action, ViewId};
use super::keymap::{self, BINDINGS, KeyBinding, KeyContext};
use super::layout::{self, ScreenLayout};
use super::panes;
use super::screen::Confirmation;
use super::shared::ReplayUi;
use super::state::{App, Dialog, Overlay, PendingChange, Prompt, PromptPurpose};
use super::update::{refusal_reason, shot_label};
use super::view::{Context, PaneId};
use super::views::replay::SPEEDS;
use super::widgets::cell_buffer::{CellBuffer, content_hash};
use super::widgets::dialog::{draw_input, draw_popup, wrap};
use super::widgets::text::{clear_area, draw_text, patch_style};
use super::widgets::theme::Theme;
use crate::recording::writer::RecorderStatus;
use crate::units::format_duration;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Draws the screen.
pub fn draw(app: &App, buf: &mut CellBuffer) {
    let theme = app.shared.theme();
    if layout::is_too_small(app.screen.size) {
        let (w, h) = layout::MIN_SIZE;
        draw_text(buf, 0, 0, &format!("iotop-plus needs {w}x{h} cells; q quits"), app.screen.size.0, theme.warn);
        return;
    }
    let arranged = layout::compute_layout(app);
    draw_header(app, &theme, arranged.header, buf);
    let look = (app.shared.theme_name, app.shared.no_color);
    let cx = Context { shared: &app.shared, screen: &app.screen, layout: &arranged, focused: app.focused_pane() };
    for (i, (id, area)) in arranged.panes.iter().enumerate() {
        let focused = arranged.panes.len() == 1 || i == app.screen.focus;
        if let Some(view) = app.views.of_pane(*id) {
            let render = |buf: &mut CellBuffer| view.render(*id, &cx, *area, buf);
            match view.content_hash(*id, &cx) {
                Some(seen) => buf.draw_cached(*area, content_hash(&(seen, *id, focused, look)), render),
                None => render(buf),
            }
            continue;
        }
        let pane = panes::pane_by_id(*id);
        let render = |buf: &mut CellBuffer| (pane.render)(app, &theme, *area, buf, focused);
        match (pane.content_hash)(app) {
            Some(seen) => buf.draw_cached(*area, content_hash(&(seen, *id, focused, look)), render),
            None => render(buf),
        }
    }
    let word = app.screen.message.as_ref().map(|m| (&m.text, m.is_error));
    let seen = (app.screen.view, active_key_contexts(app), word, app.shared.replay.is_some(), look);
    buf.draw_cached(arranged.footer, content_hash(&seen), |buf| draw_footer(app, &theme, &arranged, buf));
    if app.screen.overlay.is_some() {
        buf.forget_regions();
    }
    match &app.screen.overlay {
        Some(Overlay::Help(scroll)) => draw_help(*scroll, &theme, buf),
        Some(Overlay::Dialog(d)) => draw_dialog(d, &theme, buf),
        Some(Overlay::Prompt(p)) if p.purpose == PromptPurpose::KnobValue => {
            crate::tui::views::tune::value_prompt::render(app, p, &theme, buf);
        }
        // The view draws these prompts in place.
        Some(Overlay::Prompt(Prompt { purpose: PromptPurpose::FormLine(..), .. })) => {}
        Some(Overlay::Prompt(p)) => draw_prompt(app, p, &theme, arranged.footer, buf),
        None => {}
    }
}

/// Draws the screen into a ratatui buffer, for screenshots.
pub fn render_to_buffer(app: &App) -> Buffer {
    let mut canvas = CellBuffer::new(Rect::new(0, 0, app.screen.size.0, app.screen.size.1));
    draw(app, &mut canvas);
    canvas.to_buffer()
}

fn draw_header(app: &App, theme: &Theme, area: Rect, buf: &mut CellBuffer) {
    let snap = app.shared.snapshot();
    let mut x = area.x;
    let mut part = |buf: &mut CellBuffer, text: &str, style| {
        x += draw_text(buf, x, area.y, text, area.right().saturating_sub(x), style);
    };
    let wide = area.width >= 100;
    let host = &app.shared.system.host;
    part(buf, &format!(" {}  {}", host.name, app.shared.format_time_of_day(snap.time.wall_ns)), theme.title);
    // What changes the meaning of all figures comes first: a narrow screen cuts off the end.
    if app.shared.frozen_seq.is_some() {
        part(buf, "  FROZEN", theme.crit);
    }
    if let Some(replay) = &app.shared.replay {
        part(buf, "  ", theme.text);
        part(buf, &replay_status_text(replay), if replay.is_playing { theme.changed } else { theme.crit });
        if replay.damaged > 0 || replay.is_partial {
            let what = if replay.is_partial { "idle tasks missing" } else { "damaged" };
            part(buf, &format!("  {what}"), theme.warn);
        }
    }
    if let Some(status) = &app.shared.recording_status {
        part(buf, "  ", theme.text);
        let lost = status.is_stuck || status.frames_dropped > 0;
        part(buf, &recording_status_text(status), if lost { theme.crit } else { theme.changed });
    }
    if let Some(lease) = app.views.tune.leases.last() {
        let style = if lease.secs_left <= 15 { theme.crit } else { theme.changed };
        part(buf, "  ", theme.text);
        part(
            buf,
            &format!("change #{} reverts in {}:{:02}", lease.id, lease.secs_left / 60, lease.secs_left % 60),
            style,
        );
    }
    for b in app.shared.system.blocked_reads.iter().take(1) {
        let secs = app.shared.system.now().boot_ns.saturating_sub(b.since_boot_ns) / 1_000_000_000;
        let (on, _) = crate::sanitize::fit_width(&b.waiting_on, usize::from(area.width / 3));
        part(buf, &format!("  BLOCKED {secs} s: {}", crate::sanitize::sanitize(on)), theme.crit);
    }
    if let Some(word) = app.shared.running.as_ref().map(|running| &running.status) {
        part(buf, &format!("  {word}"), theme.warn);
    }
    if wide {
        part(buf, &format!("  up {}  {}", format_duration(snap.time.uptime_secs() as u64), host.kernel), theme.dim);
    }
    match snap.cpu.ok() {
        Some(c) => {
            part(buf, &format!("  us {:.0} sy {:.0} ", c.user_pct, c.system_pct), theme.text);
            let high = c.iowait_pct >= 20.0;
            part(buf, &format!("wa {:.0}", c.iowait_pct), if high { theme.crit } else { theme.text });
            part(buf, &format!(" st {:.0} id {:.0}", c.steal_pct, c.idle_pct), theme.text);
        }
        None => part(buf, "  cpu -", theme.dim),
    }
    if let Some(blocked) = snap.tasks_blocked.filter(|n| *n > 0) {
        part(buf, &format!(" blk {blocked}"), theme.warn);
    }
    if let Some(p) = snap.pressure.ok() {
        let some =
            |p: crate::model::pressure::ResourcePressure| p.some.map_or("-".into(), |s| format!("{:.0}%", s.avg10));
        let high = |p: crate::model::pressure::ResourcePressure| p.full.is_some_and(|s| s.avg10 >= 10.0);
        part(buf, &format!("  IO stall {}", some(p.io)), if high(p.io) { theme.crit } else { theme.text });
        part(buf, &format!(" mem {}", some(p.memory)), if high(p.memory) { theme.crit } else { theme.text });
        part(buf, " (10s)", theme.dim);
    }
    let live = match (app.shared.frozen_seq, &app.shared.replay) {
        (_, Some(_)) => format!(" {} ", format_date(snap.time.wall_ns, app.shared.utc_offset_secs)),
        (Some(_), _) => format!(" {} ", app.shared.interval_text()),
        _ => format!(" live {}s ", format_seconds(app.shared.interval.as_secs_f64())),
    };
    let width = live.len() as u16;
    if x + width < area.right() {
        let style = if app.shared.frozen_seq.is_some() { theme.crit } else { theme.dim };
        draw_text(buf, area.right() - width, area.y, &live, width, style);
    }
}

/// State of the replay.
fn replay_status_text(replay: &ReplayUi) -> String {
    let span = replay.span;
    let place = format!(
        "{}/{}",
        replay.tick_number.saturating_sub(span.first_number) + 1,
        span.last_number.saturating_sub(span.first_number) + 1
    );
    if replay.is_searching {
        return format!("REPLAY {place} searching");
    }
    match (replay.is_playing, SPEEDS.get(replay.speed_index).copied().unwrap_or(1)) {
        (false, _) => format!("REPLAY {place} paused"),
        (true, 1) => format!("REPLAY {place}"),
        (true, n) => format!("REPLAY {place} {n}x"),
    }
}

/// The date, shown because a recording is of another day.
fn format_date(wall_ns: i64, offset_secs: i64) -> String {
    let local = wall_ns.saturating_add(offset_secs.saturating_mul(1_000_000_000));
    crate::units::format_rfc3339(local).chars().take(10).collect()
}

/// State of the recorder: size written, dropped samples, a disk that hangs.
fn recording_status_text(status: &RecorderStatus) -> String {
    let size = crate::units::format_bytes(status.bytes_sent);
    match (status.is_stuck, status.frames_dropped) {
        (true, 0) => {
            let waiting = crate::units::format_bytes(status.bytes_sent.saturating_sub(status.bytes_written));
            format!("REC stuck: its disk takes nothing, {waiting} wait")
        }
        (true, n) => format!("REC stuck: its disk takes nothing, {n} samples dropped"),
        (false, 0) => format!("REC {size}"),
        (false, n) => format!("REC {size}, {n} samples dropped"),
    }
}

fn format_seconds(s: f64) -> String {
    if s >= 10.0 { format!("{s:.0}") } else { format!("{s:.1}") }
}

/// Tabs and keys of the footer with their x and width; drawing and mouse use the same list.
pub fn footer_items(app: &App, area: Rect) -> Vec<(u16, u16, FooterItem)> {
    let mut out = Vec::new();
    let mut x = area.x + 1;
    let short = area.width < 110;
    let possible = |action| refusal_reason(app, action).is_none();
    for view in ViewId::ALL.into_iter().filter(|v| possible(Action::ShowView(*v))) {
        let title = view.title();
        let width = 2 + if short { 4.min(title.len()) } else { title.len() } as u16;
        out.push((x, width, FooterItem::Tab(view)));
        x += width + 1;
    }
    x += 1;
    let width = |b: &KeyBinding| keymap::key_name(b).chars().count() as u16 + 1 + b.footer.len() as u16;
    let mut all = keymap::footer_bindings(&active_key_contexts(app));
    all.retain(|b| possible(b.action));
    // Help and quit are always shown.
    let stays = |b: &KeyBinding| matches!(b.action, Action::Help | Action::Quit);
    let reserved: u16 = all.iter().filter(|b| stays(b)).map(|b| width(b) + 2).sum();
    let mut put = |b: &'static KeyBinding, width, x: &mut u16| {
        out.push((*x, width, FooterItem::Key(b)));
        *x += width + 2;
    };
    for b in all.iter().filter(|b| !stays(b)) {
        let width = width(b);
        if x + width + reserved >= area.right() {
            break;
        }
        put(b, width, &mut x);
    }
    for b in all.iter().filter(|b| stays(b)) {
        put(b, width(b), &mut x);
    }
    out
}

/// An item of the footer, which can be clicked.
#[derive(Clone, Copy)]
pub enum FooterItem {
    /// A view.
    Tab(ViewId),
    /// A key.
    Key(&'static KeyBinding),
}

fn draw_footer(app: &App, theme: &Theme, arranged: &ScreenLayout, buf: &mut CellBuffer) {
    let area = arranged.footer;
    if let Some(m) = &app.screen.message {
        draw_text(
            buf,
            area.x + 1,
            area.y,
            &m.text,
            area.width.saturating_sub(1),
            if m.is_error { theme.crit } else { theme.title },
        );
        return;
    }
    for (x, width, part) in footer_items(app, area) {
        match part {
            FooterItem::Tab(view) => {
                let at = ViewId::ALL.iter().position(|v| *v == view).unwrap_or(0);
                draw_text(buf, x, area.y, &"123456789"[at..=at], 1, theme.key);
                draw_text(buf, x + 2, area.y, view.title(), width - 2, theme.text);
                if view == app.screen.view {
                    patch_style(buf, x, area.y, width, theme.selected);
                }
            }
            FooterItem::Key(b) => {
                let used = draw_text(buf, x, area.y, &keymap::key_name(b), width, theme.key);
                draw_text(buf, x + used + 1, area.y, b.footer, width - used - 1, theme.dim);
            }
        }
    }
}

/// The key contexts in force, most specific first.
pub fn active_key_contexts(app: &App) -> Vec<KeyContext> {
    match &app.screen.overlay {
        Some(Overlay::Help(_)) => return vec![KeyContext::Help, KeyContext::Scroll, KeyContext::Global],
        Some(Overlay::Dialog(d)) if d.on_confirm == PendingChange::Tune(Confirmation::Quit) => {
            return vec![KeyContext::TuneLeave, KeyContext::Scroll];
        }
        Some(Overlay::Dialog(_)) => return vec![KeyContext::Dialog, KeyContext::Scroll],
        Some(Overlay::Prompt(_)) => return Vec::new(),
        None => {}
    }
    let mut out = Vec::new();
    if app.shared.replay.is_some() {
        out.push(KeyContext::Replay);
    }
    out.extend(panes::key_contexts(app, app.focused_pane()));
    out.push(KeyContext::Global);
    out
}

/// Headings and keys of the help, made from the key table.
pub fn help_lines() -> Vec<(String, String)> {
    let order = [
        KeyContext::Global,
        KeyContext::Replay,
        KeyContext::Scroll,
        KeyContext::List,
        KeyContext::Devices,
        KeyContext::Processes,
        KeyContext::Kernel,
        KeyContext::Bench,
        KeyContext::Tune,
        KeyContext::Experiment,
        KeyContext::TuneLeave,
        KeyContext::Findings,
        KeyContext::Detail,
        KeyContext::DeviceDetail,
        KeyContext::ProcessDetail,
        KeyContext::KernelDetail,
        KeyContext::Dialog,
    ];
    let mut out = Vec::new();
    for context in order {
        out.push((String::new(), context.title().to_owned()));
        let mut last = None;
        for b in BINDINGS.iter().filter(|b| b.context == context) {
            // Keys with the same action share a line.
            if last == Some(b.action)
                && let Some((names, _)) = out.last_mut()
            {
                names.push(' ');
                names.push_str(&keymap::key_name(b));
                continue;
            }
            last = Some(b.action);
            out.push((keymap::key_name(b).into_owned(), b.help.to_owned()));
        }
    }
    out
}

/// Number of help lines on screen.
pub fn visible_help_lines(size: (u16, u16)) -> u16 {
    size.1.saturating_sub(4)
}

fn draw_help(scroll: u16, theme: &Theme, buf: &mut CellBuffer) {
    let area = buf.area;
    let inner =
        draw_popup(buf, area, "Help: keys (Esc closes, arrows scroll)", 96, area.height.saturating_sub(2), theme);
    let lines = help_lines();
    let last = lines.len().saturating_sub(usize::from(inner.height));
    for (i, (names, text)) in
        lines.iter().skip(usize::from(scroll).min(last)).take(usize::from(inner.height)).enumerate()
    {
        let y = inner.y + i as u16;
        if names.is_empty() {
            draw_text(buf, inner.x, y, text, inner.width, theme.header);
        } else {
            draw_text(buf, inner.x + 1, y, names, 13, theme.key);
            draw_text(buf, inner.x + 15, y, text, inner.width.saturating_sub(15), theme.text);
        }
    }
}

/// Width of a dialog and its wrapped lines.
fn dialog_lines(d: &Dialog, size: (u16, u16)) -> (u16, Vec<String>) {
    let width =
        size.0.min(if matches!(d.on_confirm, PendingChange::Tune(_) | PendingChange::Start(PaneId::ExperimentPage)) {
            96
        } else {
            76
        });
    (width, wrap(&d.text, usize::from(width.saturating_sub(4))))
}

/// Number of lines that do not fit into a dialog.
pub fn hidden_dialog_lines(d: &Dialog, size: (u16, u16)) -> u16 {
    (dialog_lines(d, size).1.len() as u16 + 3).saturating_sub(size.1)
}

fn draw_dialog(d: &Dialog, theme: &Theme, buf: &mut CellBuffer) {
    let area = buf.area;
    let size = (area.width, area.height);
    let (width, lines) = dialog_lines(d, size);
    let inner = draw_popup(buf, area, &d.title, width, lines.len() as u16 + 4, theme);
    let room = inner.width.saturating_sub(1);
    let shown = usize::from(inner.height.saturating_sub(1));
    let skip = usize::from(d.scroll.min(hidden_dialog_lines(d, size)));
    for (i, line) in lines.iter().skip(skip).take(shown).enumerate() {
        draw_text(buf, inner.x + 1, inner.y + i as u16, line, room, theme.text);
    }
    let answers = match &d.on_confirm {
        PendingChange::IoPrio(..) | PendingChange::Start(_) => "y Yes   n No",
        PendingChange::Tune(ask) => ask.key_hints(),
    };
    let more = if lines.len() > skip + shown { "   ↓ more" } else { "" };
    draw_text(buf, inner.x + 1, inner.bottom().saturating_sub(1), &format!("{answers}{more}"), room, theme.key);
}

/// The label of a prompt.
fn prompt_label(app: &App, what: PromptPurpose) -> String {
    match what {
        PromptPurpose::Search => "search: ".into(),
        PromptPurpose::Filter => "filter: ".into(),
        PromptPurpose::UserFilter => "user (name or number, empty: all): ".into(),
        PromptPurpose::Interval => {
            format!("interval in seconds (0.1 to 3600, now {}): ", app.shared.interval.as_secs_f64())
        }
        PromptPurpose::Command => ":".into(),
        PromptPurpose::KnobValue => String::new(),
        PromptPurpose::Lease => {
            format!("lease in seconds (1 to 86400, now {}): ", app.views.tune.lease_secs)
        }
        PromptPurpose::Include => "show only kernel lines matching: ".into(),
        PromptPurpose::Exclude => "hide kernel lines matching: ".into(),
        PromptPurpose::FormLine(..) => String::new(),
        PromptPurpose::ExperimentReportPath => "write the report to (.md, .json, else text; a new file): ".into(),
        PromptPurpose::ScreenshotPath => shot_label(app),
        PromptPurpose::RecordingPath => "record to: ".into(),
        PromptPurpose::ReplayTime => "jump to (14:35, 14:35:12, +90 after the start, -10m before the end): ".into(),
        PromptPurpose::Ionice(key) => {
            let now = app.shared.system.processes.get(&key).and_then(|row| row.ionice());
            format!("class and level (rt/0..7, be/0..7, idle; now {}): ", now.as_deref().unwrap_or("-"))
        }
    }
}

fn draw_prompt(app: &App, p: &Prompt, theme: &Theme, area: Rect, buf: &mut CellBuffer) {
    draw_input(buf, area, &prompt_label(app, p.purpose), &p.text, p.cursor, theme);
    if let Some(err) = &p.error {
        let above = Rect { y: area.y.saturating_sub(1), ..area };
        clear_area(buf, Rect { height: 1, ..above });
        draw_text(buf, above.x, above.y, err, above.width, theme.crit);
    }
}

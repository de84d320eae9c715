//! The whole screen from the state. Pure: no clock, no kernel, no change of state.

use super::action::{Action, View};
use super::keys::{self, BINDINGS, Binding, Context};
use super::layout::{self, Arranged};
use super::panes::{self, when};
use super::replay::{ReplayUi, SPEEDS};
use super::state::{App, Change, Dialog, Overlay, Prompt, PromptFor};
use super::tuning::Ask;
use super::update::{refuses, shot_label};
use super::widgets::canvas::{Canvas, stamp};
use super::widgets::dialog::{input, popup, wrap};
use super::widgets::put::{put, tint, wipe};
use super::widgets::theme::Theme;
use crate::record::writer::RecorderStatus;
use crate::units::format_duration;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Draws everything.
pub fn draw(app: &App, buf: &mut Canvas) {
    let theme = app.ui.theme();
    if layout::too_small(app.ui.size) {
        let (w, h) = layout::LEAST;
        put(buf, 0, 0, &format!("iotop-plus needs {w}x{h} cells; q quits"), app.ui.size.0, theme.warn);
        return;
    }
    let arranged = layout::arrange(app);
    header(app, &theme, arranged.header, buf);
    let look = (app.ui.theme_name, app.ui.no_color);
    for (i, (id, area)) in arranged.panes.iter().enumerate() {
        let focused = arranged.panes.len() == 1 || i == app.ui.focus;
        let pane = panes::pane(*id);
        let render = |buf: &mut Canvas| (pane.render)(app, &theme, *area, buf, focused);
        match (pane.stamp)(app) {
            Some(seen) => buf.part(*area, stamp(&(seen, *id, focused, look)), render),
            None => render(buf),
        }
    }
    let word = app.ui.message.as_ref().map(|m| (&m.text, m.bad));
    let seen = (app.ui.view, contexts(app), word, app.ui.replay.is_some(), look);
    buf.part(arranged.footer, stamp(&seen), |buf| footer(app, &theme, &arranged, buf));
    if app.ui.overlay.is_some() {
        buf.forget();
    }
    match &app.ui.overlay {
        Some(Overlay::Help(scroll)) => help(*scroll, &theme, buf),
        Some(Overlay::Dialog(d)) => dialog(d, &theme, buf),
        Some(Overlay::Prompt(p)) if p.what == PromptFor::Knob => {
            panes::tune::edit::render(app, p, &theme, buf);
        }
        // Typed where it stands.
        Some(Overlay::Prompt(Prompt { what: PromptFor::Bench(_) | PromptFor::Experiment(_), .. })) => {}
        Some(Overlay::Prompt(p)) => prompt(app, p, &theme, arranged.footer, buf),
        None => {}
    }
}

/// The whole screen as a buffer of ratatui's, for pictures of it.
pub fn picture(app: &App) -> Buffer {
    let mut canvas = Canvas::new(Rect::new(0, 0, app.ui.size.0, app.ui.size.1));
    draw(app, &mut canvas);
    canvas.picture()
}

fn header(app: &App, theme: &Theme, area: Rect, buf: &mut Canvas) {
    let snap = app.snap();
    let mut x = area.x;
    let mut part = |buf: &mut Canvas, text: &str, style| {
        x += put(buf, x, area.y, text, area.right().saturating_sub(x), style);
    };
    let wide = area.width >= 100;
    let host = &app.world.host;
    part(buf, &format!(" {}  {}", host.name, app.clock_text(snap.time.wall_ns)), theme.title);
    // What changes the meaning of everything else comes before it: narrow screens cut off the end.
    if app.ui.frozen.is_some() {
        part(buf, "  FROZEN", theme.crit);
    }
    if let Some(replay) = &app.ui.replay {
        part(buf, "  ", theme.text);
        part(buf, &replay_word(replay), if replay.playing { theme.changed } else { theme.crit });
        if replay.damaged > 0 || replay.partial {
            let what = if replay.partial { "idle tasks missing" } else { "damaged" };
            part(buf, &format!("  {what}"), theme.warn);
        }
    }
    if let Some(status) = &app.ui.recording {
        part(buf, "  ", theme.text);
        let lost = status.is_stuck || status.frames_dropped > 0;
        part(buf, &recording_word(status), if lost { theme.crit } else { theme.changed });
    }
    if let Some(lease) = app.ui.tune.leases.last() {
        let style = if lease.left <= 15 { theme.crit } else { theme.changed };
        part(buf, "  ", theme.text);
        part(buf, &format!("LEASE {} {}", lease.id, format_duration(lease.left)), style);
    }
    for b in app.world.blocked_reads.iter().take(1) {
        let secs = app.world.now().boot_ns.saturating_sub(b.since_boot_ns) / 1_000_000_000;
        let (on, _) = crate::text::fit_width(&b.waiting_on, usize::from(area.width / 3));
        part(buf, &format!("  BLOCKED {secs} s: {}", crate::text::sanitize(on)), theme.crit);
    }
    if let Some(word) = app.ui.bench.word().or(app.ui.experiment.word()) {
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
        let two = |p: crate::model::pressure::ResourcePressure| {
            let part = |s: Option<crate::model::pressure::PsiAverages>| {
                s.map_or("-".into(), |s| format!("{:.1}", s.avg10))
            };
            format!("{}/{}", part(p.some), part(p.full))
        };
        let high = |p: crate::model::pressure::ResourcePressure| p.full.is_some_and(|s| s.avg10 >= 10.0);
        part(buf, "  psi", theme.dim);
        part(buf, &format!(" io {}", two(p.io)), if high(p.io) { theme.crit } else { theme.text });
        part(buf, &format!(" mem {}", two(p.memory)), if high(p.memory) { theme.crit } else { theme.text });
    }
    let live = match (app.ui.frozen, &app.ui.replay) {
        (_, Some(_)) => format!(" {} ", day(snap.time.wall_ns, app.ui.utc_offset_secs)),
        (Some(_), _) => format!(" {} ", when(app)),
        _ => format!(" live {}s ", seconds(app.ui.interval.as_secs_f64())),
    };
    let width = live.len() as u16;
    if x + width < area.right() {
        let style = if app.ui.frozen.is_some() { theme.crit } else { theme.dim };
        put(buf, area.right() - width, area.y, &live, width, style);
    }
}

/// How a recording runs.
fn replay_word(replay: &ReplayUi) -> String {
    let span = replay.span;
    let place = format!(
        "{}/{}",
        replay.number.saturating_sub(span.first_number) + 1,
        span.last_number.saturating_sub(span.first_number) + 1
    );
    if replay.searching {
        return format!("REPLAY {place} searching");
    }
    match (replay.playing, SPEEDS.get(replay.speed).copied().unwrap_or(1)) {
        (false, _) => format!("REPLAY {place} paused"),
        (true, 1) => format!("REPLAY {place}"),
        (true, n) => format!("REPLAY {place} {n}x"),
    }
}

/// The date: a recording is of another day.
fn day(wall_ns: i64, offset_secs: i64) -> String {
    let local = wall_ns.saturating_add(offset_secs.saturating_mul(1_000_000_000));
    crate::units::format_rfc3339(local).chars().take(10).collect()
}

/// How far the recorder is, and whether the disk takes it.
fn recording_word(status: &RecorderStatus) -> String {
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

fn seconds(s: f64) -> String {
    if s >= 10.0 { format!("{s:.0}") } else { format!("{s:.1}") }
}

/// The tabs and keys of the footer with their places: drawing and the mouse read the same list.
pub fn footer_parts(app: &App, area: Rect) -> Vec<(u16, u16, FooterPart)> {
    let mut out = Vec::new();
    let mut x = area.x + 1;
    let short = area.width < 110;
    let possible = |action| refuses(app, action).is_none();
    for view in View::ALL.into_iter().filter(|v| possible(Action::View(*v))) {
        let title = view.title();
        let width = 2 + if short { 4.min(title.len()) } else { title.len() } as u16;
        out.push((x, width, FooterPart::Tab(view)));
        x += width + 1;
    }
    x += 1;
    let width = |b: &Binding| keys::name(b).chars().count() as u16 + 1 + b.footer.len() as u16;
    let mut all = keys::footer(&contexts(app));
    all.retain(|b| possible(b.action));
    // Help and the way out stay, whatever else has no room.
    let stays = |b: &Binding| matches!(b.action, Action::Help | Action::Quit);
    let reserved: u16 = all.iter().filter(|b| stays(b)).map(|b| width(b) + 2).sum();
    let mut put = |b: &'static Binding, width, x: &mut u16| {
        out.push((*x, width, FooterPart::Key(b)));
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

/// A clickable part of the footer.
#[derive(Clone, Copy)]
pub enum FooterPart {
    /// A view.
    Tab(View),
    /// A key.
    Key(&'static Binding),
}

fn footer(app: &App, theme: &Theme, arranged: &Arranged, buf: &mut Canvas) {
    let area = arranged.footer;
    if let Some(m) = &app.ui.message {
        put(
            buf,
            area.x + 1,
            area.y,
            &m.text,
            area.width.saturating_sub(1),
            if m.bad { theme.crit } else { theme.title },
        );
        return;
    }
    for (x, width, part) in footer_parts(app, area) {
        match part {
            FooterPart::Tab(view) => {
                let at = View::ALL.iter().position(|v| *v == view).unwrap_or(0);
                put(buf, x, area.y, &"123456789"[at..=at], 1, theme.key);
                put(buf, x + 2, area.y, view.title(), width - 2, theme.text);
                if view == app.ui.view {
                    tint(buf, x, area.y, width, theme.selected);
                }
            }
            FooterPart::Key(b) => {
                let used = put(buf, x, area.y, &keys::name(b), width, theme.key);
                put(buf, x + used + 1, area.y, b.footer, width - used - 1, theme.dim);
            }
        }
    }
}

/// The contexts whose keys act now, most specific first.
pub fn contexts(app: &App) -> Vec<Context> {
    match &app.ui.overlay {
        Some(Overlay::Help(_)) => return vec![Context::Help, Context::Scroll, Context::Global],
        Some(Overlay::Dialog(d)) if d.change == Change::Tune(Ask::Leave) => {
            return vec![Context::TuneLeave, Context::Scroll];
        }
        Some(Overlay::Dialog(_)) => return vec![Context::Dialog, Context::Scroll],
        Some(Overlay::Prompt(_)) => return Vec::new(),
        None => {}
    }
    let mut out = Vec::new();
    if app.ui.replay.is_some() {
        out.push(Context::Replay);
    }
    out.extend(panes::pane(app.focused()).contexts);
    out.push(Context::Global);
    out
}

/// The help's lines: headings and keys, all from the table.
pub fn help_lines() -> Vec<(String, String)> {
    let order = [
        Context::Global,
        Context::Replay,
        Context::Scroll,
        Context::List,
        Context::Devices,
        Context::Processes,
        Context::Kernel,
        Context::Bench,
        Context::Tune,
        Context::Experiment,
        Context::TuneLeave,
        Context::Findings,
        Context::Detail,
        Context::DeviceDetail,
        Context::ProcessDetail,
        Context::KernelDetail,
        Context::Dialog,
    ];
    let mut out = Vec::new();
    for context in order {
        out.push((String::new(), context.title().to_owned()));
        let mut last = None;
        for b in BINDINGS.iter().filter(|b| b.context == context) {
            // Keys of one meaning share a line.
            if last == Some(b.action)
                && let Some((names, _)) = out.last_mut()
            {
                names.push(' ');
                names.push_str(&keys::name(b));
                continue;
            }
            last = Some(b.action);
            out.push((keys::name(b).into_owned(), b.help.to_owned()));
        }
    }
    out
}

/// Lines of the help on screen at once.
pub fn help_height(size: (u16, u16)) -> u16 {
    size.1.saturating_sub(4)
}

fn help(scroll: u16, theme: &Theme, buf: &mut Canvas) {
    let area = buf.area;
    let inner =
        popup(buf, area, "Help: keys (Esc closes, arrows scroll)", 96, area.height.saturating_sub(2), theme);
    let lines = help_lines();
    let last = lines.len().saturating_sub(usize::from(inner.height));
    for (i, (names, text)) in
        lines.iter().skip(usize::from(scroll).min(last)).take(usize::from(inner.height)).enumerate()
    {
        let y = inner.y + i as u16;
        if names.is_empty() {
            put(buf, inner.x, y, text, inner.width, theme.head);
        } else {
            put(buf, inner.x + 1, y, names, 13, theme.key);
            put(buf, inner.x + 15, y, text, inner.width.saturating_sub(15), theme.text);
        }
    }
}

/// Width of a question's box, and its lines.
fn dialog_lines(d: &Dialog, size: (u16, u16)) -> (u16, Vec<String>) {
    let width = size.0.min(if matches!(d.change, Change::Tune(_) | Change::Experiment(_)) { 96 } else { 76 });
    (width, wrap(&d.text, usize::from(width.saturating_sub(4))))
}

/// Lines of a question that its box has no room for.
pub fn dialog_overhang(d: &Dialog, size: (u16, u16)) -> u16 {
    (dialog_lines(d, size).1.len() as u16 + 3).saturating_sub(size.1)
}

fn dialog(d: &Dialog, theme: &Theme, buf: &mut Canvas) {
    let area = buf.area;
    let size = (area.width, area.height);
    let (width, lines) = dialog_lines(d, size);
    let inner = popup(buf, area, &d.title, width, lines.len() as u16 + 4, theme);
    let room = inner.width.saturating_sub(1);
    let shown = usize::from(inner.height.saturating_sub(1));
    let skip = usize::from(d.scroll.min(dialog_overhang(d, size)));
    for (i, line) in lines.iter().skip(skip).take(shown).enumerate() {
        put(buf, inner.x + 1, inner.y + i as u16, line, room, theme.text);
    }
    let answers = match &d.change {
        Change::IoPrio(..) | Change::Bench(_) | Change::Experiment(_) => "y do it   n leave it",
        Change::Tune(ask) => ask.answers(),
    };
    let more = if lines.len() > skip + shown { "   ↓ more" } else { "" };
    put(buf, inner.x + 1, inner.bottom().saturating_sub(1), &format!("{answers}{more}"), room, theme.key);
}

/// The words before a line of input.
fn prompt_label(app: &App, what: PromptFor) -> String {
    match what {
        PromptFor::Search => "search: ".into(),
        PromptFor::Filter => "filter: ".into(),
        PromptFor::User => "user (name or number, empty: all): ".into(),
        PromptFor::Delay => {
            format!("interval in seconds (0.1 to 3600, now {}): ", app.ui.interval.as_secs_f64())
        }
        PromptFor::Command => ":".into(),
        PromptFor::Knob => String::new(),
        PromptFor::Lease => {
            format!("lease in seconds (1 to 86400, now {}): ", app.ui.tune.lease_secs)
        }
        PromptFor::Include => "show only kernel lines matching: ".into(),
        PromptFor::Exclude => "hide kernel lines matching: ".into(),
        PromptFor::Bench(_) | PromptFor::Experiment(_) => String::new(),
        PromptFor::ExperimentFile => "write the report to (.md, .json, else text; a new file): ".into(),
        PromptFor::Shot => shot_label(app),
        PromptFor::Record => "record to: ".into(),
        PromptFor::Jump => "jump to (14:35, 14:35:12, +90 after the start, -10m before the end): ".into(),
        PromptFor::Ionice(key) => {
            let now = app.world.processes.get(&key).and_then(|row| row.ionice);
            format!("class and level (rt/0..7, be/0..7, idle; now {}): ", now.as_deref().unwrap_or("-"))
        }
    }
}

fn prompt(app: &App, p: &Prompt, theme: &Theme, area: Rect, buf: &mut Canvas) {
    input(buf, area, &prompt_label(app, p.what), &p.text, p.cursor, theme);
    if let Some(err) = &p.error {
        let above = Rect { y: area.y.saturating_sub(1), ..area };
        wipe(buf, Rect { height: 1, ..above });
        put(buf, above.x, above.y, err, above.width, theme.crit);
    }
}

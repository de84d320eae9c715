//! The changes of this boot, and the measurements before and after the selected one.

use super::TuneView;
use crate::export::table::Table;
use crate::model::change_impact::{
    ChangeImpact, ChangeTimes, ImpactRow, ImpactUnit, ImpactWindow, MIN_WINDOW_SECS, MIN_WINDOW_TICKS, Quartiles,
    compare,
};
use crate::model::disk::DevId;
use crate::sanitize::sanitize;
use crate::tui::knob_snapshot::{ChangeRow, ChangeStatus, change_texts, device_of};
use crate::tui::view::{Action, Context, PaneId, Shared, TuneAction};
use crate::tui::widgets::{
    CellBuffer, Rect, Style, Theme, area_below, draw_reason, draw_text, draw_wrapped, highlight_row, wrap,
};
use crate::tuning::journal_record::{KnobChange, RestoreOutcome};
use crate::tuning::knob::KnobGroup;
use crate::units::{format_duration, write_bytes};

impl TuneView {
    /// The periods to compare for a change; `None` if its time is not known.
    fn comparison_window(&self, change: &ChangeRow) -> Option<ChangeTimes> {
        let at_ns = change.boot_ns?;
        // For a change that ended unobserved it is not known how long it was in effect.
        if matches!(change.status, ChangeStatus::Closed(_)) && !self.ended_boot_ns.contains_key(&change.id) {
            return None;
        }
        Some(ChangeTimes {
            earliest_ns: self.change_times().filter(|t| *t < at_ns).max().unwrap_or(0),
            changed_ns: at_ns,
            latest_ns: self.change_times().filter(|t| *t > at_ns).min().unwrap_or(u64::MAX),
        })
    }

    /// Compares the measurements before and after a change, of the devices it names, else of all hardware devices.
    pub(in crate::tui) fn compare_change(&self, change: &ChangeRow, shared: &Shared) -> Option<ChangeImpact> {
        let times = self.comparison_window(change)?;
        let mut devices: Vec<DevId> = Vec::new();
        if let Some(topology) = shared.system.topology.ok() {
            let named = change.members.iter().filter_map(|m| topology.by_name(device_of(&m.knob)?));
            devices.extend(named.map(|d| d.id));
            if devices.is_empty() {
                devices.extend(topology.devices.iter().filter(|d| d.is_hardware()).map(|d| d.id));
            }
        }
        Some(compare(shared.history_to_shown().map(|f| &*f.snapshot), times, &devices))
    }

    /// Status of a change, and whether it needs attention.
    fn change_status(&self, change: &ChangeRow) -> (String, bool) {
        match &change.status {
            ChangeStatus::Leased(secs) => {
                // The countdown of this screen's own leases is exact to the second.
                let lease = self.knobs.leases.iter().find(|l| l.id == change.id);
                (format!("lease {}", format_duration(lease.map_or(*secs, |l| l.secs_left))), false)
            }
            ChangeStatus::TunerSilent => ("tuner does not answer".into(), true),
            ChangeStatus::Applying => ("applying".into(), false),
            ChangeStatus::Orphaned => ("ORPHANED".into(), true),
            ChangeStatus::Kept => ("kept".into(), false),
            ChangeStatus::Closed(how) => (how.clone(), how == "CONFLICT"),
        }
    }

    pub(super) fn render_changes(&self, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        let (theme, focused) = (&cx.theme, cx.is_focused(PaneId::ChangeHistory));
        let [undo, keep, renew] =
            [TuneAction::Undo, TuneAction::Keep, TuneAction::Renew].map(|action| cx.shared.key(Action::Tune(action)));
        let note = format!("{undo} Undo  {keep} Keep  {renew} Restart lease");
        let inner = cx.draw_frame(buf, PaneId::ChangeHistory, area, "Changes of this boot", &note);
        if let Some(why) = self.knobs.snapshot.as_ref().and_then(|s| s.changes_error.as_deref()) {
            return draw_reason(buf, inner, why, theme.dim);
        }
        let all = self.knobs.changes();
        if all.is_empty() {
            draw_text(buf, inner.x, inner.y, "none", inner.width, theme.dim);
            return;
        }
        // A third of the height for the list, the rest for the comparison; where little fits, only the selected change.
        let listed = (inner.height / 3).clamp(1, 8).min(all.len() as u16);
        for (change, y, selected) in self.changes_scroll.visible(all, Rect { height: listed, ..inner }) {
            self.draw_change(cx, Rect { y, height: 1, ..inner }, buf, change);
            if selected && (focused || all.len() > 1) {
                highlight_row(buf, inner, y, theme);
            }
        }
        if let Some(change) = self.selected_change() {
            let rest = draw_members(theme, area_below(inner, listed), buf, change);
            self.draw_comparison(cx, rest, buf, change);
        }
    }

    fn draw_change(&self, cx: &Context, area: Rect, buf: &mut CellBuffer, change: &ChangeRow) {
        let theme = &cx.theme;
        let (how, attention) = self.change_status(change);
        let when = if change.wall_ns > 0 { cx.shared.format_time_of_day(change.wall_ns) } else { "-".into() };
        let mut x = area.x;
        x += draw_text(buf, x, area.y, &format!("{:>3} {when} ", change.id), area.width, theme.dim);
        let style = match change.status {
            _ if attention => theme.crit,
            ChangeStatus::Leased(_) => theme.changed,
            ChangeStatus::Closed(_) => theme.dim,
            _ => theme.text,
        };
        x += draw_text(buf, x, area.y, &how, area.right().saturating_sub(x), style);
        draw_text(buf, x + 1, area.y, &change_summary(change), area.right().saturating_sub(x + 1), theme.text);
    }

    fn draw_comparison(&self, cx: &Context, area: Rect, buf: &mut CellBuffer, change: &ChangeRow) {
        let theme = &cx.theme;
        if area.height == 0 {
            return;
        }
        let Some(c) = self.compare_change(change, cx.shared) else {
            return draw_reason(buf, area, "time of the change or of its end not known: nothing to compare", theme.dim);
        };
        if c.rows.is_empty() {
            draw_wrapped(buf, area, &insufficient_data_text(&c), theme.dim);
            return;
        }
        // Name, each side, difference.
        let side = (area.width.saturating_sub(13 + 16) / 2).clamp(7, 24);
        let wide = side >= QUARTILES_WIDTH;
        let draw_cells = |buf: &mut CellBuffer, y: u16, cells: [(&str, Style); 4]| {
            let mut x = area.x;
            for ((text, style), width) in cells.into_iter().zip([13, side, side, 17]) {
                draw_text(buf, x, y, text, (width - 1).min(area.right().saturating_sub(x)), style);
                x += width;
            }
        };
        let length = |word: &str, w: &ImpactWindow| match wide {
            true => format!("{word} {:.0} s, {} ticks", w.secs, w.ticks),
            false => format!("{word} {:.0} s", w.secs),
        };
        let heads = ["", &length("before", &c.before), &length("since", &c.after), "difference"];
        draw_cells(buf, area.y, heads.map(|head| (head, theme.header)));
        // Leave out what was not measured on either side, then what changed least.
        let mut rows: Vec<&ImpactRow> = c.rows.iter().filter(|l| l.before.is_some() || l.after.is_some()).collect();
        let note = self.comparison_note(change, &c);
        let room = usize::from(area.height - 1);
        let notes = wrap(&note, usize::from(area.width)).len();
        let room = if room > rows.len().min(4) + notes { room - notes } else { room };
        if rows.len() > room {
            rows.sort_by_key(|l| !l.differs());
            rows.truncate(room);
        }
        for (row, y) in rows.iter().zip(area.y + 1..) {
            let style = if row.differs() { theme.changed } else { theme.dim };
            let [before, after] = [row.before, row.after].map(|side| format_summary(side, row.unit, wide));
            let difference = format_difference(row);
            let cells = [row.name, &before, &after].map(|text| (text, theme.text));
            draw_cells(buf, y, [cells[0], cells[1], cells[2], (&difference, style)]);
        }
        draw_wrapped(buf, area_below(area, rows.len() as u16 + 1), &note, theme.dim);
    }

    /// What to know when reading the comparison.
    fn comparison_note(&self, change: &ChangeRow, c: &ChangeImpact) -> String {
        let mut text = String::from("Medians (quartiles). * quartiles do not overlap; other load can cause that, too.");
        let buffered = change.members.iter().any(|m| m.knob.definition().group == KnobGroup::Writeback);
        let expire = self.knobs.knob("vm.dirty_expire_centisecs").and_then(|row| row.reading.as_ref().ok());
        let expire = expire.and_then(|reading| Some(reading.value.parse::<f64>().ok()? / 100.0));
        if let Some(expire) = expire.filter(|secs| buffered && c.after.secs < *secs) {
            text +=
                &format!(" The period since is shorter than dirty_expire ({expire:.0} s): no page has expired yet.");
        }
        text
    }

    pub(super) fn changes_table(&self, shared: &Shared) -> Table {
        let title = shared.table_title("Changes");
        let heads = ["", "when", "state", "what", "before", "since", "difference"];
        let mut sheet = Table::new(title, &heads.map(|h| (h, false)));
        for c in self.knobs.changes() {
            let (how, _) = self.change_status(c);
            for m in &c.members {
                let when = crate::units::format_rfc3339(c.wall_ns);
                let cells = [c.id.to_string(), when, how.clone(), member_text(m)];
                sheet.rows.push(cells.into_iter().chain(vec![String::new(); 3]).collect());
            }
        }
        let Some(change) = self.selected_change() else { return sheet };
        for row in self.compare_change(change, shared).iter().flat_map(|c| &c.rows) {
            let [before, after] = [row.before, row.after].map(|side| format_summary(side, row.unit, true));
            let (id, none) = (change.id.to_string(), String::new());
            sheet.rows.push([id, none.clone(), none, row.name.into(), before, after, format_difference(row)].into());
        }
        sheet
    }
}

/// `vm.swappiness 60 -> 10`.
fn member_text(m: &KnobChange) -> String {
    let [name, old, new] = change_texts(m);
    format!("{name} {old} -> {new}")
}

fn change_summary(c: &ChangeRow) -> String {
    let mut members = c.members.iter();
    let first = members.next().map_or("-".into(), member_text);
    match members.count() {
        0 => first,
        n => format!("{first} +{n}"),
    }
}

/// Draws the knobs of a change that has several, or an outcome to show; returns the area below.
fn draw_members(theme: &Theme, area: Rect, buf: &mut CellBuffer, change: &ChangeRow) -> Rect {
    let is_told = |m: &KnobChange| m.outcome.as_ref().is_some_and(|outcome| *outcome != RestoreOutcome::Restored);
    if change.members.len() == 1 && !is_told(&change.members[0]) || change.members.is_empty() || area.height < 12 {
        return area;
    }
    let room = (area.height - 10).min(6);
    let shown = change.members.iter().zip(area.y..area.y + room);
    let below = area_below(area, shown.len() as u16);
    for (m, y) in shown {
        let end = m.outcome.as_ref().map_or(String::new(), |outcome| sanitize(format!(": {outcome}")));
        draw_text(buf, area.x + 1, y, &(member_text(m) + &end), area.width - 1, theme.dim);
    }
    below
}

/// Width from which a column has room for the quartiles.
const QUARTILES_WIDTH: u16 = 20;

/// Why there is no comparison yet.
fn insufficient_data_text(c: &ChangeImpact) -> String {
    let wants = |name: &str, w: &ImpactWindow| match (w.is_enough(), w.secs < MIN_WINDOW_SECS) {
        (true, _) => None,
        (false, true) => Some(format!("{name} {:.0} of {MIN_WINDOW_SECS} s", w.secs)),
        (false, false) => Some(format!("{name} {} of {MIN_WINDOW_TICKS} ticks", w.ticks)),
    };
    let missing: Vec<String> = [wants("before", &c.before), wants("since", &c.after)].into_iter().flatten().collect();
    format!("Too little to compare: {}.", missing.join(", "))
}

/// Median and quartiles, `93.4M (80.1M..120M)`.
fn format_summary(s: Option<Quartiles>, unit: ImpactUnit, wide: bool) -> String {
    let Some(s) = s else { return "-".into() };
    let median = format_amount(s.median, unit);
    let [q1, q3] = [s.q1, s.q3].map(|n| format_amount(n, unit));
    if wide { format!("{median} ({q1}..{q3})") } else { median }
}

fn format_amount(n: f64, unit: ImpactUnit) -> String {
    let mut out = String::new();
    match unit {
        ImpactUnit::Bytes | ImpactUnit::BytesPerSec => write_bytes(&mut out, n),
        ImpactUnit::MibPerSec => out = format!("{n:.1}"),
        ImpactUnit::Millis => out = format!("{n:.2}"),
        ImpactUnit::Percent => out = format!("{n:.1}"),
    }
    out
}

/// Difference of the medians, `-81.4M  -87 % *`. The star means that the quartiles do not overlap.
fn format_difference(line: &ImpactRow) -> String {
    let (Some(d), Some(before)) = (line.difference(), line.before) else { return "-".into() };
    let shown = format_amount(d, line.unit);
    if shown.chars().all(|c| matches!(c, '-' | '0' | '.')) {
        return if line.differs() { "0 *".into() } else { "0".into() };
    }
    let sign = if d > 0.0 { "+" } else { "" };
    let pct = d * 100.0 / before.median;
    let share = if before.median.abs() > 1e-9 { format!(" {pct:+.0} %") } else { String::new() };
    let star = if line.differs() { " *" } else { "" };
    format!("{sign}{shown}{share}{star}")
}

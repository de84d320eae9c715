//! The changes of this boot, and the measurements before and after the selected one.

use super::TuneView;
use crate::export::table::Table;
use crate::model::change_impact::{
    ChangeImpact, ImpactRow, ImpactUnit, ImpactWindow, MIN_WINDOW_SECS, MIN_WINDOW_TICKS, Quartiles,
};
use crate::tui::knob_snapshot::{ChangeRow, ChangeStatus};
use crate::tui::view::{Context, PaneId, Shared};
use crate::tui::widgets::{
    CellBuffer, Rect, Theme, draw_frame, draw_reason, draw_text, draw_truncated, patch_style, wrap,
};
use crate::units::{format_duration, write_bytes};

impl TuneView {
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
        let (theme, focused) = (&cx.theme(), cx.is_focused(PaneId::ChangeHistory));
        let inner = draw_frame(buf, area, "Changes of this boot", "u Undo  K Keep  R Restart lease", focused, theme);
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
        let mut scroll = self.changes_scroll;
        scroll.scroll_into_view(all.len(), usize::from(listed));
        let shown = all.iter().enumerate().skip(scroll.offset).take(usize::from(listed));
        for ((i, change), y) in shown.zip(inner.y..) {
            self.draw_change(cx.shared, theme, Rect { y, height: 1, ..inner }, buf, change);
            if i == scroll.selected && (focused || all.len() > 1) {
                patch_style(buf, inner.x, y, inner.width, theme.selected);
            }
        }
        let rest = Rect { y: inner.y + listed, height: inner.height.saturating_sub(listed), ..inner };
        if let Some(change) = self.selected_change() {
            let rest = draw_members(theme, rest, buf, change);
            self.draw_comparison(cx.shared, theme, rest, buf, change);
        }
    }

    fn draw_change(&self, shared: &Shared, theme: &Theme, area: Rect, buf: &mut CellBuffer, change: &ChangeRow) {
        let (how, attention) = self.change_status(change);
        let when = if change.wall_ns > 0 { shared.format_time_of_day(change.wall_ns) } else { "-".into() };
        let mut x = area.x;
        x += draw_text(buf, x, area.y, &format!("{:>3} {when} ", change.id), area.width, theme.dim);
        let style = match change.status {
            _ if attention => theme.crit,
            ChangeStatus::Leased(_) => theme.changed,
            ChangeStatus::Closed(_) => theme.dim,
            _ => theme.text,
        };
        x += draw_text(buf, x, area.y, &how, area.right().saturating_sub(x), style);
        draw_truncated(buf, x + 1, area.y, &change_summary(change), area.right().saturating_sub(x + 1), theme.text);
    }

    fn draw_comparison(&self, shared: &Shared, theme: &Theme, area: Rect, buf: &mut CellBuffer, change: &ChangeRow) {
        if area.height == 0 {
            return;
        }
        let Some(c) = self.compare_change(change, shared) else {
            return draw_reason(buf, area, "time of the change or of its end not known: nothing to compare", theme.dim);
        };
        if c.rows.is_empty() {
            let lines = wrap(&insufficient_data_text(&c), usize::from(area.width));
            for (line, y) in lines.iter().zip(area.y..area.bottom()) {
                draw_text(buf, area.x, y, line, area.width, theme.dim);
            }
            return;
        }
        let mut y = area.y;
        let columns = column_widths(area.width);
        draw_headings(theme, area, buf, &c, columns);
        y += 1;
        // Leave out what was not measured on either side, then what changed least.
        let mut rows: Vec<&ImpactRow> = c.rows.iter().filter(|l| l.before.is_some() || l.after.is_some()).collect();
        let note = self.comparison_note(change, &c);
        let room = usize::from(area.bottom().saturating_sub(y));
        let notes = wrap(&note, usize::from(area.width));
        let room = if room > rows.len().min(4) + notes.len() { room - notes.len() } else { room };
        if rows.len() > room {
            rows.sort_by_key(|l| !l.differs());
            rows.truncate(room);
        }
        for line in rows {
            draw_comparison_line(theme, Rect { y, height: 1, ..area }, buf, line, columns);
            y += 1;
        }
        for (line, y) in notes.iter().zip(y..area.bottom()) {
            draw_text(buf, area.x, y, line, area.width, theme.dim);
        }
    }

    /// What to know when reading the comparison.
    fn comparison_note(&self, change: &ChangeRow, c: &ChangeImpact) -> String {
        let mut text = String::from("Medians (quartiles). * quartiles do not overlap; other load can cause that, too.");
        let buffered = change.members.iter().any(|m| m.is_writeback_knob);
        if let Some(expire) = self.dirty_expire_secs().filter(|e| buffered && c.after.secs < *e) {
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
                let what = format!("{} {} -> {}", m.display_name, m.old_value, m.new_value);
                let id = c.id.to_string();
                let when = crate::units::format_rfc3339(c.wall_ns);
                sheet
                    .rows
                    .push([id, when, how.clone(), what].into_iter().chain([(); 3].map(|()| String::new())).collect());
            }
        }
        let Some(change) = self.selected_change() else { return sheet };
        for line in self.compare_change(change, shared).iter().flat_map(|c| &c.rows) {
            let sides = [
                format_summary(line.before, line.unit, true),
                format_summary(line.after, line.unit, true),
                format_difference(line),
            ];
            let head = [change.id.to_string(), String::new(), String::new(), line.name.to_owned()];
            sheet.rows.push(head.into_iter().chain(sides).collect());
        }
        sheet
    }
}

/// What it changed, in one line.
fn change_summary(c: &ChangeRow) -> String {
    let mut members = c.members.iter();
    let first = members.next().map_or("-".into(), |m| format!("{} {} -> {}", m.display_name, m.old_value, m.new_value));
    match members.count() {
        0 => first,
        n => format!("{first} +{n}"),
    }
}

/// The knobs of a change that has several, or an outcome to show.
fn draw_members(theme: &Theme, area: Rect, buf: &mut CellBuffer, change: &ChangeRow) -> Rect {
    let told = |closed: &Option<String>| closed.as_ref().is_some_and(|c| c != "restored");
    let worth = change.members.len() > 1 || change.members.iter().any(|m| told(&m.outcome));
    if !worth || area.height < 12 {
        return area;
    }
    let room = (area.height - 10).min(6);
    let mut y = area.y;
    for m in change.members.iter().take(usize::from(room)) {
        let end = m.outcome.as_ref().map(|c| format!(": {c}")).unwrap_or_default();
        draw_truncated(
            buf,
            area.x + 1,
            y,
            &format!("{} {} -> {}{end}", m.display_name, m.old_value, m.new_value),
            area.width - 1,
            theme.dim,
        );
        y += 1;
    }
    Rect { y, height: area.bottom() - y, ..area }
}

/// Headings with the lengths of both periods.
fn draw_headings(theme: &Theme, area: Rect, buf: &mut CellBuffer, c: &ChangeImpact, [name, side, last]: [u16; 3]) {
    let one = |word: &str, w: &ImpactWindow| match side >= QUARTILES_WIDTH {
        true => format!("{word} {:.0} s, {} ticks", w.secs, w.ticks),
        false => format!("{word} {:.0} s", w.secs),
    };
    let x = area.x + name;
    draw_truncated(buf, x, area.y, &one("before", &c.before), side - 1, theme.header);
    draw_truncated(buf, x + side, area.y, &one("since", &c.after), side - 1, theme.header);
    let at = x + 2 * side;
    draw_truncated(buf, at, area.y, "difference", last.min(area.right().saturating_sub(at)), theme.header);
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

/// Widths of the columns: name, each side, difference.
fn column_widths(width: u16) -> [u16; 3] {
    let side = (width.saturating_sub(13 + 16) / 2).clamp(7, 24);
    [13, side, 16]
}

fn draw_comparison_line(
    theme: &Theme,
    area: Rect,
    buf: &mut CellBuffer,
    line: &ImpactRow,
    [name, side, last]: [u16; 3],
) {
    let wide = side >= QUARTILES_WIDTH;
    draw_text(buf, area.x, area.y, line.name, name, theme.text);
    draw_truncated(buf, area.x + name, area.y, &format_summary(line.before, line.unit, wide), side - 1, theme.text);
    draw_truncated(
        buf,
        area.x + name + side,
        area.y,
        &format_summary(line.after, line.unit, wide),
        side - 1,
        theme.text,
    );
    let x = area.x + name + 2 * side;
    let style = if line.differs() { theme.changed } else { theme.dim };
    draw_truncated(buf, x, area.y, &format_difference(line), last.min(area.right().saturating_sub(x)), style);
}

/// Median and quartiles, `93.4M (80.1M..120M)`.
fn format_summary(s: Option<Quartiles>, unit: ImpactUnit, wide: bool) -> String {
    let Some(s) = s else { return "-".into() };
    let median = format_amount(s.median, unit);
    match wide {
        true => format!("{median} ({}..{})", format_amount(s.q1, unit), format_amount(s.q3, unit)),
        false => median,
    }
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
    let share = match before.median.abs() > 1e-9 {
        true => format!(" {:+.0} %", d * 100.0 / before.median),
        false => String::new(),
    };
    let star = if line.differs() { " *" } else { "" };
    format!("{sign}{shown}{share}{star}")
}

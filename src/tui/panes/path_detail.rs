//! The answer to `:path DIR`: file system, options, the devices below it, free space.

use super::kernel_detail::{draw_lines, inside, stops};
use super::{Pane, PaneId};
use crate::export::table::Table;
use crate::text::sanitize;
use crate::tui::keys::Context;
use crate::tui::state::{App, Detail};
use crate::tui::widgets::canvas::Canvas;
use crate::tui::widgets::dialog::{frame, wrap};
use crate::tui::widgets::theme::Theme;
use crate::worker::job::{Job, Reply};
use ratatui::layout::Rect;

/// The pane.
pub const PANE: Pane = Pane {
    id: PaneId::PathDetail,
    contexts: &[Context::Detail, Context::Scroll],
    render,
    stamp: |_| None,
    sheet,
    rows: |app| stops(text(app).len(), inside(app).height),
};

fn text(app: &App) -> Vec<(String, bool)> {
    let Some(Detail::Path(path)) = &app.ui.detail else { return Vec::new() };
    let width = usize::from(app.ui.size.0.saturating_sub(4)).max(20);
    match &path.reply {
        None => vec![(waiting(app, &path.path), true)],
        Some(Reply::Path(report)) => crate::export::path_report::path_report_lines(report),
        Some(Reply::Failed(why)) => wrap(&sanitize(why), width).into_iter().map(|l| (l, true)).collect(),
        Some(_) => vec![("no answer".into(), true)],
    }
}

/// What a child that does not answer is waiting for.
fn waiting(app: &App, path: &str) -> String {
    let now = app.world.now().boot_ns;
    // Others may be stuck for longer; this one counts.
    let own = Job::Path { path: path.to_owned() }.key();
    let blocked = app.world.blocked_reads.iter().find(|b| b.waiting_on.starts_with(&own));
    let secs = blocked.map_or(0, |b| now.saturating_sub(b.since_boot_ns) / 1_000_000_000);
    match secs {
        0..2 => format!("asking about {} …", sanitize(path)),
        _ => format!("{}: blocked for {secs} s; the file system does not answer", sanitize(path)),
    }
}

fn render(app: &App, theme: &Theme, area: Rect, buf: &mut Canvas, focused: bool) {
    let Some(Detail::Path(path)) = &app.ui.detail else { return };
    let inner = frame(buf, area, &format!("Path {}", sanitize(&path.path)), "Esc: back", focused, theme);
    draw_lines(app, theme, inner, buf, &text(app));
}

fn sheet(app: &App) -> Table {
    let title = match &app.ui.detail {
        Some(Detail::Path(p)) => {
            format!("Path {} on {}, {}", sanitize(&p.path), app.world.host.name, app.stamp())
        }
        _ => String::new(),
    };
    let mut sheet = Table::new(title, &[("", false)]);
    sheet.rows.extend(text(app).into_iter().map(|l| vec![l.0]));
    sheet
}

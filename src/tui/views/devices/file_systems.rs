//! How full the mounted file systems are, in rows that the list of devices leaves free.

use crate::model::path::FilesystemSpace;
use crate::model::slow_facts::MountSpace;
use crate::tui::view::Shared;
use crate::tui::widgets::{CellBuffer, Rect, Theme, draw_bar, draw_path, draw_text, draw_text_right, fill_area};
use crate::units::format_bytes;

/// A blank row and the headings.
const ROWS_ABOVE: u16 = 2;
const BAR_WIDTH: u16 = 20;
/// ` 71 %   68.8G free of  256G`.
const FIGURES_WIDTH: u16 = 28;
const LONG_HEADING: &str = "File system, as of the last minute";
const MIN_WIDTH: u16 = BAR_WIDTH + FIGURES_WIDTH + 12;

/// Draws the local file systems, the fullest first, as many as there is room for; none without a row for one.
pub(super) fn draw_file_systems(shared: &Shared, area: Rect, buf: &mut CellBuffer, theme: &Theme) {
    let mounts = file_systems(shared);
    if mounts.is_empty() || area.height <= ROWS_ABOVE || area.width < MIN_WIDTH {
        return;
    }
    let name_width = area.width - BAR_WIDTH - FIGURES_WIDTH - 2;
    let figures = Rect { x: area.right() - FIGURES_WIDTH, width: FIGURES_WIDTH, ..area };
    let heading = if usize::from(name_width) > LONG_HEADING.len() { LONG_HEADING } else { "File system" };
    draw_text(buf, area.x, area.y + 1, heading, name_width, theme.header);
    draw_text_right(buf, figures.x, area.y + 1, "used", 5, theme.header);
    for ((point, space), y) in mounts.iter().zip(area.y + ROWS_ABOVE..area.bottom()) {
        draw_path(buf, area.x, y, point, name_width, theme.text);
        let pct = space.used_pct();
        let bar = Rect { x: figures.x - BAR_WIDTH - 1, y, width: BAR_WIDTH, height: 1 };
        fill_area(buf, bar, "·", theme.dim);
        let filled = (pct / 100.0 * f64::from(BAR_WIDTH)).ceil().min(f64::from(BAR_WIDTH)) as u16;
        draw_bar(buf, Rect { width: filled, ..bar }, pct, pct_of_cells(filled), &[], theme.graph, theme.dim);
        let [free, total] = [space.available_bytes, space.total_bytes].map(format_bytes);
        let text = format!("{pct:>3.0} %  {free:>6} free of {total:>6}");
        draw_text(buf, figures.x, y, &text, FIGURES_WIDTH, theme.text);
    }
}

/// The share that so many cells of the bar stand for, in per cent.
fn pct_of_cells(cells: u16) -> f64 {
    f64::from(cells) * 100.0 / f64::from(BAR_WIDTH)
}

/// Mount points, sanitized, and the space of each, the fullest first; a file system that is mounted twice once.
fn file_systems(shared: &Shared) -> Vec<(String, &FilesystemSpace)> {
    let mounts = shared.system.slow_facts.local_space.iter().flat_map(|report| &report.mounts);
    let known = |mount: &'_ MountSpace| mount.space.ok().is_some_and(|space| space.total_bytes > 0);
    let mut out: Vec<(String, &FilesystemSpace)> = Vec::new();
    for mount in mounts.filter(|mount| known(mount)) {
        let Some(space) = mount.space.ok() else { continue };
        if !out.iter().any(|(_, other)| *other == space) {
            out.push((mount.mount_point.sanitized(), space));
        }
    }
    out.sort_by(|a, b| b.1.used_pct().total_cmp(&a.1.used_pct()));
    out
}

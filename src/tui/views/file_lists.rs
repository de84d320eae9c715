//! The busiest files, for the pages of a task and of a device.

use super::detail::DetailText;
use crate::export::files::{HEADERS, format_row};
use crate::model::file_io::list::{self, FileQuery};
use crate::sanitize::fit_width;
use crate::tui::view::Shared;

const MAX_FILES: usize = 8;
const COLUMN_WIDTHS: [usize; 4] = [7, 8, 8, 8];

/// Appends the busiest files that the query selects, while files are traced. `has_process`: name the process of each.
pub(super) fn push_files(shared: &Shared, query: &FileQuery<'_>, has_process: bool, out: &mut DetailText) {
    let Some(files) = shared.snapshot().files.ok() else { return };
    let line = |cells: [String; 5], path: &str| {
        let figures: String = cells.iter().zip(COLUMN_WIDTHS).map(|(c, width)| format!("{c:>width$}")).collect();
        let process = match has_process {
            true => format!("{}  ", pad(&cells[4], 18)),
            false => String::new(),
        };
        format!("  {figures}  {process}{path}")
    };
    out.section("Files at the devices");
    out.line(line(HEADERS.map(str::to_owned), "path"));
    let rows = list::file_rows(files, shared.system.topology.ok(), query);
    for row in rows.iter().take(MAX_FILES) {
        out.line(line(format_row(row), &row.path));
    }
    match rows.len() {
        0 => out.line("  none in the interval"),
        n if n > MAX_FILES => out.line(format!("  {} more with less time", n - MAX_FILES)),
        _ => {}
    }
}

fn pad(text: &str, width: usize) -> String {
    let (text, used) = fit_width(text, width);
    format!("{text}{}", " ".repeat(width.saturating_sub(used)))
}

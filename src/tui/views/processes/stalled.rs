//! The upper section of the task pane on the Overview: stalled tasks with what they wait for, how long, and on which file
//! and device. The other tasks follow in a section of their own.

use super::ProcessesView;
use super::sections::INDENT;
use crate::model::column::{CellValue, ColumnSpec};
use crate::model::columns::process::{ProcessColumn, ProcessTexts};
use crate::model::columns::stalls::{self, WaitTime};
use crate::model::disk::DevId;
use crate::model::process::ProcessRow;
use crate::model::syncs::list::device_name;
use crate::model::waited_for::WaitedFor;
use crate::tui::view::Shared;
use crate::tui::widgets::table::{self, Priority};
use crate::tui::widgets::{CellBuffer, FittedColumns, Rect, Theme, draw_text};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StalledColumn {
    Pid,
    User,
    Wait,
    Time,
    Io,
    Device,
    File,
    Swap,
    Command,
}
use StalledColumn as Col;

static COLUMNS: [ColumnSpec<StalledColumn, ()>; 9] = [
    ColumnSpec::right(Col::Pid, "PID", 7, (), ""),
    ColumnSpec::left(Col::User, "USER", 8, (), ""),
    ColumnSpec::left(Col::Wait, "WAITS IN", 13, (), ""),
    ColumnSpec::right(Col::Time, "FOR", 5, (), ""),
    ColumnSpec::right(Col::Io, "IO/s", 7, (), ""),
    ColumnSpec::left(Col::Device, "DEV", 8, (), ""),
    ColumnSpec::path(Col::File, "FILE", MIN_FILE_WIDTH, (), ""),
    ColumnSpec::right(Col::Swap, "SWAP", 6, (), ""),
    ColumnSpec::left(Col::Command, "COMMAND", 0, (), ""),
];

const MIN_FILE_WIDTH: u16 = 14;
const MAX_FILE_WIDTH: u16 = 40;
/// The command keeps this much before files get more than the least.
const COMMAND_WIDTH: u16 = 30;

/// What a stalled task works on, by names; `None` if unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct WaitedForNames {
    /// Sanitized.
    device: Option<String>,
    /// Path, sanitized.
    file: Option<String>,
}

/// A row of the section.
struct StalledLine<'a> {
    texts: ProcessTexts<'a>,
    wait: &'a str,
    time: String,
    on: WaitedForNames,
}

impl ProcessesView {
    /// Whether stalled and busy tasks are apart: on the Overview, in the default order.
    pub(super) fn has_sections(&self) -> bool {
        self.is_folded && !self.show_tree && !self.reverse && self.task_query(0, 0).sort_by == ProcessColumn::Stalled
    }

    /// Counts the rows of the window that are stalled: they come first.
    pub(super) fn count_stalled(&self, shared: &Shared) -> usize {
        if !self.has_sections() {
            return 0;
        }
        let tasks = shared.tasks();
        self.window.rows.iter().take_while(|row| stalls::is_stalled(&tasks.row(**row))).count()
    }

    /// Draws heading and rows of the section.
    pub(super) fn render_stalled(&self, shared: &Shared, area: Rect, buf: &mut CellBuffer, theme: &Theme) {
        let tasks = shared.tasks();
        let rows = self.window.rows[..self.stalled_rows].iter().map(|row| tasks.row(*row));
        let lines: Vec<StalledLine<'_>> = rows.map(|row| stalled_line(shared, &row)).collect();
        let fitted = fit(area.width, lines.iter().any(|line| line.on.file.is_some()));
        table::draw_header(buf, Rect { height: 1, ..area }, &fitted.0, &fitted.1, None, theme);
        draw_text(buf, area.x - INDENT, area.y, "Stalled", 7, theme.warn);
        let mut scratch = String::new();
        for (line, y) in lines.iter().zip(area.y + 1..area.bottom()) {
            let style = |c: &ColumnSpec<Col, ()>, value: &CellValue<'_>| match c.id {
                Col::Wait => theme.warn,
                Col::Time if line.time.ends_with('%') => theme.warn,
                Col::Time => theme.crit,
                _ if matches!(value, CellValue::Missing) || value.is_zero() => theme.dim,
                _ => theme.text,
            };
            table::draw_row(buf, area, y, &fitted.0, &fitted.1, |c| cell(line, c.id), style, &mut scratch);
        }
    }
}

/// The columns for a width, that of files as wide as there is room, or not there if no file is known.
fn fit(width: u16, has_files: bool) -> (Vec<ColumnSpec<Col, ()>>, FittedColumns) {
    let fixed: u16 = COLUMNS.iter().filter(|c| c.width > 0 && c.id != Col::File).map(|c| c.width + 1).sum();
    let for_file = width.saturating_sub(fixed + COMMAND_WIDTH).clamp(MIN_FILE_WIDTH, MAX_FILE_WIDTH);
    let widened = COLUMNS.iter().map(|c| if c.id == Col::File { ColumnSpec { width: for_file, ..*c } } else { *c });
    let columns: Vec<_> = widened.collect();
    let priority = |i: usize| match columns[i].id {
        Col::File if !has_files => Priority::Hidden,
        Col::Pid | Col::Wait | Col::Time | Col::Command => Priority::Kept,
        Col::Device => Priority::Rank(80),
        Col::Io => Priority::Rank(70),
        Col::File => Priority::Rank(60),
        Col::Swap => Priority::Rank(40),
        Col::User => Priority::Rank(20),
    };
    let fitted = table::fit_columns(&columns, width, 14, 0, priority);
    (columns, fitted)
}

fn stalled_line<'a>(shared: &Shared, row: &ProcessRow<'a>) -> StalledLine<'a> {
    let (wait, time) = stalls::wait(row).unwrap_or(("state D", WaitTime::Brief));
    StalledLine { texts: ProcessTexts::for_screen(row), wait, time: time.text(), on: waited_for(shared, row) }
}

fn cell<'a>(line: &'a StalledLine<'_>, column: Col) -> CellValue<'a> {
    let of_process = |column: ProcessColumn| column.spec().cell(&line.texts);
    match column {
        Col::Pid => of_process(ProcessColumn::Pid),
        Col::User => of_process(ProcessColumn::User),
        Col::Wait => CellValue::Text(line.wait),
        Col::Time => CellValue::Text(&line.time),
        Col::Io => of_process(ProcessColumn::Io),
        Col::Device => CellValue::text(line.on.device.as_deref()),
        Col::File => CellValue::text(line.on.file.as_deref()),
        Col::Swap => of_process(ProcessColumn::Swap),
        Col::Command => of_process(ProcessColumn::Command),
    }
}

/// What it waits for, or the device of a finding that names it.
fn waited_for(shared: &Shared, row: &ProcessRow<'_>) -> WaitedForNames {
    let on = WaitedFor::find(&shared.system, shared.snapshot(), row);
    let name = |id: DevId| match row.main_device_name().filter(|_| row.main_device() == Some(id)) {
        Some(name) => name.to_owned(),
        None => device_name(Some(id), shared.system.topology.ok()),
    };
    WaitedForNames { device: on.device.map(name).or_else(|| device_of_finding(shared, row)), file: on.file }
}

/// The device of the worst finding that names it.
fn device_of_finding(shared: &Shared, row: &ProcessRow<'_>) -> Option<String> {
    let label = row.label();
    let findings = shared.findings.incidents.iter().flat_map(|incident| &incident.findings);
    let names_it = |finding: &&crate::doctor::finding::Finding| {
        finding.victims.iter().chain(&finding.culprits).any(|task| task.name == label)
    };
    let device: DevId = *findings.filter(names_it).find_map(|finding| finding.devices.first())?;
    Some(device_name(Some(device), shared.system.topology.ok()))
}

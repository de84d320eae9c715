//! The page of a profile: its parameters, which are edited in place, and what a run would do.

use crate::bench::description::describe_writes;
use crate::bench::params::BenchParam;
use crate::bench::plan::BenchPlan;
use crate::bench::target::checks::reserved_bytes;
use crate::bench::target_info::TargetInfo;
use crate::bench::workloads::{WORKLOADS, Workload};
use crate::export::table::Table;
use crate::model::disk::DiskRate;
use crate::model::process::{ProcessColumn, ProcessFilter, ProcessQuery};
use crate::sanitize::sanitize;
use crate::tui::panes::PaneId;
use crate::tui::panes::focused_pane_inner;
use crate::tui::state::{App, Overlay, Prompt, PromptPurpose};
use crate::tui::views::bench::BenchParamLine;
use crate::tui::views::bench::render::draw_text_below_form;
use crate::tui::widgets::cell_buffer::CellBuffer;
use crate::tui::widgets::dialog::{draw_frame, draw_input};
use crate::tui::widgets::form_layout::{FormLayout, form_layout};
use crate::tui::widgets::styled_lines::{StyledLine, TextStyle, wrap_lines};
use crate::tui::widgets::table::highlight_row;
use crate::tui::widgets::text::draw_text;
use crate::tui::widgets::theme::Theme;
use crate::units::{format_bytes_exact, format_bytes_long};
use ratatui::layout::Rect;

/// Width of a parameter's name.
pub const NAME_WIDTH: u16 = 13;
/// Utilization from which a device's other load distorts a measurement, per cent.
const BUSY_PCT: f64 = 10.0;

/// Why the profile cannot be started now, and what to do.
pub fn start_refusal(app: &App, at: usize) -> Option<String> {
    let (workload, plan) = app.views.bench.plan(at);
    if let Err(why) = plan.check().and_then(|()| workload.check(&plan)) {
        return Some(why);
    }
    directory_refusal(app, workload, &plan, workload.footprint(&plan))
}

/// Why a workload that needs this many bytes cannot run in the directory.
pub fn directory_refusal(app: &App, workload: &dyn Workload, plan: &BenchPlan, bytes: u64) -> Option<String> {
    if !workload.needs_directory() {
        return None;
    }
    let dir = sanitize(plan.directory.as_os_str().as_encoded_bytes());
    if !plan.directory.is_absolute() {
        return Some("no directory: choose one on the storage to measure (e)".into());
    }
    match app.views.bench.look() {
        None => Some(format!("{dir} has not answered: its file system may be blocked; choose another directory (e)")),
        Some(Err(why)) => Some(sanitize(why)),
        Some(Ok(look)) => {
            let refused = look.refusal_for_size(bytes)?;
            let next = if refused.needs_privilege { "; its owner or root may" } else { "" };
            Some(format!("refused: {}{next}", refused.reason))
        }
    }
}

/// What a run would do, and the state of the target.
fn plan_lines(app: &App, at: usize) -> Vec<StyledLine> {
    let (workload, plan) = app.views.bench.plan(at);
    let mut out: Vec<StyledLine> = Vec::new();
    if let Some(why) = start_refusal(app, at) {
        out.push((format!("Cannot start: {why}"), TextStyle::Crit));
    }
    out.push((workload.about().to_owned(), TextStyle::Dim));
    let look = app.views.bench.look().and_then(|l| l.as_ref().ok()).filter(|_| workload.needs_directory());
    let place = look.and_then(|l| l.info.as_ref());
    if let Some(place) = place {
        push_target(place, &mut out);
    }
    out.push((describe_writes(workload, &plan), TextStyle::Plain));
    out.extend(workload.describe(&plan).into_iter().map(|l| (format!("- {l}"), TextStyle::Plain)));
    if let Some(place) = place {
        push_disk_space(place, workload.footprint(&plan), &mut out);
    }
    if let Some(look) = look {
        out.extend(look.warnings(plan.direct).into_iter().map(|w| (format!("! {w}"), TextStyle::Warn)));
    }
    if let Some(place) = place {
        push_competing_load(app, place, &mut out);
    }
    out
}

/// File system, and devices down to the disk, in one line.
fn push_target(place: &TargetInfo, out: &mut Vec<StyledLine>) {
    let mount =
        if place.mount_point.is_empty() { String::new() } else { format!(", mounted on {}", place.mount_point) };
    let chain: Vec<String> = place
        .chain
        .iter()
        .map(|d| {
            let model = d.model.as_ref().map_or(String::new(), |m| format!(" {}", sanitize(m)));
            let size = d.size_bytes.map_or(String::new(), |n| format!(", {}", format_bytes_long(n)));
            format!("{}{model} ({}{size})", sanitize(&d.name), d.kind.name())
        })
        .collect();
    let below = if chain.is_empty() { String::new() } else { format!("; on {}", chain.join(" > ")) };
    out.push((format!("{} from {}{mount}{below}", place.filesystem, place.source), TextStyle::Plain));
}

fn push_disk_space(place: &TargetInfo, bytes: u64, out: &mut Vec<StyledLine>) {
    let line = match place.free.checked_sub(bytes) {
        Some(left) => format!(
            "Free: {} now and afterwards, {} during the run; {} is always left free",
            format_bytes_long(place.free),
            format_bytes_long(left),
            format_bytes_long(reserved_bytes(place.size))
        ),
        None => format!("Free: {}", format_bytes_long(place.free)),
    };
    out.push((line, TextStyle::Plain));
}

/// Current rates of a device, named as in iostat(1).
pub fn format_device_rates(r: &DiskRate) -> String {
    let stalled = if r.stalled { format!(", STALLED with {} in flight", r.in_flight) } else { String::new() };
    format!(
        "{}: {:.0} tps, {:.1} MB_read/s, {:.1} MB_wrtn/s, await {:.1} ms, aqu-sz {:.1}, util {:.0} %{stalled}",
        sanitize(&*r.name),
        r.tps,
        r.read_mb_per_s,
        r.write_mb_per_s,
        r.await_ms,
        r.queue_size,
        r.util_pct
    )
}

/// Other load on the target device.
fn push_competing_load(app: &App, place: &TargetInfo, out: &mut Vec<StyledLine>) {
    let mut ids: Vec<_> = place.chain.iter().filter(|d| d.is_physical).map(|d| d.id).collect();
    if ids.is_empty() {
        ids.extend(place.device);
    }
    let mut busy = false;
    for rate in ids.iter().filter_map(|id| app.shared.snapshot().device(*id)) {
        let much = rate.util_pct >= BUSY_PCT || rate.stalled;
        busy |= much;
        let line = format!("Now on {}", format_device_rates(rate));
        out.push((line, if much { TextStyle::Warn } else { TextStyle::Plain }));
    }
    if let Some(task) = busiest_task_text(app) {
        out.push((task, TextStyle::Plain));
    }
    if busy {
        out.push((
            "! other load on this device: it would distort the results and be slowed by the run".into(),
            TextStyle::Warn,
        ));
    }
}

fn busiest_task_text(app: &App) -> Option<String> {
    let filter = ProcessFilter { only_active: true, ..ProcessFilter::default() };
    let query = ProcessQuery { sort_by: ProcessColumn::Io, reverse: false, filter, offset: 0, height: 1 };
    let at = *app.shared.system.processes.window(&query).rows.first()?;
    let row = app.shared.system.processes.row(at);
    let rate = |n: Option<f64>| n.map_or("-".into(), |n| format!("{}/s", format_bytes_long(n as u64)));
    Some(format!(
        "Busiest task, on any device: {} {}, reads {}, writes {}",
        row.pid,
        row.comm,
        rate(row.read_bytes_per_s),
        rate(row.write_bytes_per_s)
    ))
}

/// Value of a parameter as displayed.
fn field_value(app: &App, at: usize, line: BenchParamLine) -> String {
    let (_, plan) = app.views.bench.plan(at);
    match line {
        BenchParamLine::Directory => sanitize(plan.directory.as_os_str().as_encoded_bytes()),
        BenchParamLine::Param(p) => format_param(p, &plan),
    }
}

/// Value with its unit, or the meaning of zero, such as `no cap`.
pub fn format_param(p: &BenchParam, plan: &BenchPlan) -> String {
    let text = (p.get)(plan);
    // A range reads like `0 (no cap) or more`.
    let zero_meaning = p.range.strip_prefix("0 (").and_then(|r| r.split_once(')')).filter(|_| text == "0");
    match (zero_meaning, p.unit) {
        (Some((meaning, _)), _) => meaning.into(),
        (None, "") => text,
        (None, unit) => format!("{text} {unit}"),
    }
}

/// While the list is focused, the plan's text comes before the parameters.
fn page_layout(app: &App, at: usize, inner: Rect) -> (FormLayout, Vec<StyledLine>) {
    let bench = &app.views.bench;
    let lines = bench.param_lines(at);
    let text = wrap_lines(plan_lines(app, at), inner.width.into());
    let wide = usize::from(matches!(lines.first(), Some(BenchParamLine::Directory)));
    let least = usize::from(inner.height / 3);
    let needed = if app.focused_pane() == PaneId::BenchPage { text.len().min(least) } else { text.len() };
    (form_layout(inner, lines.len(), wide, bench.params_scroll.selected, needed), text)
}

/// The parameter at a position of the screen.
pub fn field_at(app: &App, inner: Rect, x: u16, y: u16) -> Option<usize> {
    let at = app.views.bench.selected_profile().filter(|_| app.views.bench.is_planning())?;
    let (grid, _) = page_layout(app, at, inner);
    grid.cells.into_iter().find(|(_, r)| y == r.y && x >= r.x && x < r.right()).map(|(line, _)| line)
}

/// The prompt, while a parameter is typed.
fn field_prompt(app: &App) -> Option<(usize, &Prompt)> {
    match &app.screen.overlay {
        Some(Overlay::Prompt(p)) => match p.purpose {
            PromptPurpose::BenchField(at) => Some((at, p)),
            _ => None,
        },
        _ => None,
    }
}

/// Draws the page.
pub fn render(app: &App, theme: &Theme, area: Rect, buf: &mut CellBuffer, focused: bool, at: usize) {
    let bench = &app.views.bench;
    let title = format!("Plan: {}", WORKLOADS[at].name());
    let note = if focused { "Enter: change, r: run" } else { "e: change, r: run" };
    let inner = draw_frame(buf, area, &title, note, focused, theme);
    let (grid, text) = page_layout(app, at, inner);
    let lines = bench.param_lines(at);
    let typed = field_prompt(app);
    for (i, cell) in &grid.cells {
        let line = lines[*i];
        let changed = matches!(line, BenchParamLine::Param(p) if bench.is_param_changed(at, p));
        draw_text(buf, cell.x, cell.y, line.name(), NAME_WIDTH.min(cell.width), theme.header);
        let field = Rect { x: cell.x + NAME_WIDTH, width: cell.width.saturating_sub(NAME_WIDTH), ..*cell };
        if let Some((_, prompt)) = typed.filter(|(at, _)| at == i) {
            draw_input(buf, field, "", &prompt.text, prompt.cursor, theme);
            continue;
        }
        let mark = if changed { " *" } else { "" };
        let shown = format!("{}{mark}", field_value(app, at, line));
        draw_text(buf, field.x, field.y, &shown, field.width, if changed { theme.warn } else { theme.text });
        if focused && *i == bench.params_scroll.selected {
            highlight_row(buf, *cell, cell.y, theme);
        }
    }
    draw_field_hint(app, theme, &grid, buf, at, focused);
    draw_text_below_form(theme, area, grid.rest, buf, &text, bench.text_offset, focused);
}

/// Number of lines of the plan that do not fit.
pub fn hidden_plan_lines(app: &App) -> usize {
    let Some(at) = app.views.bench.selected_profile().filter(|_| app.views.bench.is_planning()) else { return 0 };
    let (grid, text) = page_layout(app, at, focused_pane_inner(app));
    text.len().saturating_sub(grid.rest.height.into())
}

/// Valid values, or what was wrong with the text.
fn draw_field_hint(app: &App, theme: &Theme, grid: &FormLayout, buf: &mut CellBuffer, at: usize, focused: bool) {
    let area = grid.hint;
    if let Some(why) = field_prompt(app).and_then(|(_, p)| p.error.as_ref()) {
        draw_text(buf, area.x, area.y, why, area.width, theme.crit);
        return;
    }
    let hidden = match grid.hidden {
        (0, 0) => String::new(),
        (before, after) => format!("({} more parameters) ", before + after),
    };
    let lines = app.views.bench.param_lines(at);
    let text = match lines.get(app.views.bench.params_scroll.selected).filter(|_| focused) {
        Some(BenchParamLine::Directory) => "on the storage to measure".to_owned(),
        Some(BenchParamLine::Param(p)) => format!("{}; {}", p.about, p.range),
        None if lines
            .iter()
            .any(|l| matches!(l, BenchParamLine::Param(p) if app.views.bench.is_param_changed(at, p))) =>
        {
            "* differs from the profile".to_owned()
        }
        None => String::new(),
    };
    draw_text(buf, area.x, area.y, &format!("{hidden}{text}"), area.width, theme.dim);
}

/// The plan as a table for export.
pub fn build_table(app: &App, at: usize) -> Table {
    let (workload, plan) = app.views.bench.plan(at);
    let title = format!("Plan of {} on {}, {}", workload.name(), app.shared.system.host.name, app.shared.timestamp());
    let mut sheet = Table::new(title, &[("parameter", false), ("value", false)]);
    for line in app.views.bench.param_lines(at) {
        sheet.rows.push(vec![line.name().into(), field_value(app, at, line)]);
    }
    sheet.rows.push(vec!["space".into(), format_bytes_exact(workload.footprint(&plan))]);
    sheet.notes.extend(plan_lines(app, at).into_iter().map(|l| l.0));
    sheet
}

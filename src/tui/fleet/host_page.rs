//! The page of a host: its findings, devices and memory over time, and what was not exported.

use super::screen::{FleetScreen, HostPageState};
use crate::fleet::history::{FindingSpan, HistoryGroup, HistorySeries, HostHistory, history_of, history_request};
use crate::fleet::host::{FleetHost, FleetHostId};
use crate::fleet::range::{RangeAnswers, RangeRequest};
use crate::fleet::text::wall_ns;
use crate::tui::widgets::{
    CellBuffer, Rect, Style, Theme, draw_columns, draw_text, draw_text_right, patch_style, wrap,
};

/// What a page shows at first, seconds.
const SPAN_SECS: f64 = 3600.0;
/// Values of each figure, at least and at most; else as many as there is room for.
const VALUES: (usize, usize) = (60, 240);
/// Cells of the names and of the values.
const NAME_WIDTH: u16 = 32;
const VALUE_WIDTH: u16 = 11;
/// The page is asked for again this often, and a request without answer given up after this, seconds.
const INTERVAL_SECS: f64 = 15.0;
const GIVEN_UP_SECS: f64 = 120.0;

/// A line of the page.
enum PageLine<'a> {
    Heading(String),
    Text(String, Style),
    Finding(&'a FindingSpan),
    Figure(&'a HistorySeries),
}

impl HostPageState {
    pub(super) fn new(host: FleetHost, fixed_span: Option<(f64, f64)>) -> Self {
        Self { host, fixed_span, asked: None, asked_at: 0.0, history: None, error: None, back: 0, scroll: 0 }
    }
}

impl FleetScreen {
    /// The same with nothing but the history of this host between two times, seconds since 1970.
    pub fn with_history(mut self, id: &FleetHostId, span: (f64, f64)) -> Self {
        let name = crate::sanitize::sanitize(&id.instance);
        let host = FleetHost { name: name.clone(), address: name, id: id.clone(), ..FleetHost::default() };
        self.page = Some(HostPageState::new(host, Some(span)));
        self
    }

    /// The request for the page, unless it is there and new, or asked for.
    pub(super) fn page_request(&mut self) -> Option<Box<RangeRequest>> {
        let end = self.shown_at();
        let page = self.page.as_ref()?;
        let is_recent = |secs: f64| self.now - page.asked_at < secs;
        let is_done = page.history.is_some() && (page.fixed_span.is_some() || self.state.shown_time.is_some());
        if page.asked.is_some() && is_recent(GIVEN_UP_SECS)
            || page.asked.is_none() && page.history.is_some() && (is_done || is_recent(INTERVAL_SECS))
        {
            return None;
        }
        let span = page.fixed_span.unwrap_or((end - SPAN_SECS, end));
        let request =
            Box::new(history_request(&self.scope, &page.host.id, span, self.value_count(), self.next_request));
        self.next_request += 1;
        let now = self.now;
        if let Some(page) = &mut self.page {
            (page.asked, page.asked_at) = (Some(request.clone()), now);
        }
        Some(request)
    }

    /// Takes the answer to a request for the page.
    pub(super) fn take_history(&mut self, request: &RangeRequest, answers: RangeAnswers) -> bool {
        let Some(page) = &mut self.page else { return false };
        page.asked = None;
        // If nothing was answered, what is there stays, and is said to be old.
        let first_error = answers.iter().find_map(|answer| answer.as_ref().err()).map(ToString::to_string);
        if answers.iter().all(Result::is_err) {
            page.error = first_error;
        } else {
            (page.history, page.error) = (Some(history_of(request, answers)), None);
        }
        true
    }

    fn page_lines<'a>(&self, page: &'a HostPageState, width: u16, theme: &Theme) -> Vec<PageLine<'a>> {
        let mut lines = Vec::new();
        let Some(history) = &page.history else { return lines };
        lines.push(PageLine::Heading("Findings".into()));
        lines.extend(history.findings.iter().map(PageLine::Finding));
        if history.findings.is_empty() {
            lines.push(PageLine::Text("none in this time".into(), theme.dim));
        }
        for group in [
            HistoryGroup::Machine,
            HistoryGroup::Devices,
            HistoryGroup::Memory,
            HistoryGroup::Syncs,
            HistoryGroup::KernelLog,
        ] {
            let series = history.group(group);
            if !series.is_empty() {
                lines.push(PageLine::Heading(<&str>::from(group).to_owned()));
                lines.extend(series.into_iter().map(PageLine::Figure));
            }
        }
        lines.push(PageLine::Heading("Not here".into()));
        for text in history.missing() {
            let wrapped = wrap(&text, usize::from(width.saturating_sub(2)));
            lines.extend(wrapped.into_iter().map(|line| PageLine::Text(line, theme.dim)));
        }
        lines
    }

    pub(super) fn draw_host_page(&self, page: &HostPageState, area: Rect, buf: &mut CellBuffer) {
        let theme = &self.themes.theme();
        let title = format!("Host {}", page.host.name);
        let note = match &page.history {
            Some(history) => {
                let at = history.time_at(history.count.saturating_sub(page.back + 1));
                format!("values at {}", self.time_of_day(at))
            }
            None => String::new(),
        };
        let inner = self.draw_pane(area, &title, &note, buf);
        let mut top = inner.y;
        if let Some(why) = &page.error {
            let old = if page.history.is_some() { "; the figures are those of before" } else { "" };
            let line = Rect { height: 1, ..inner };
            self.draw_line(line, &format!("no answer: {why}{old}"), theme.crit, buf);
            top += 1;
        }
        let Some(history) = &page.history else {
            if page.error.is_none() {
                self.draw_line(inner, "asking for its history", theme.dim, buf);
            }
            return;
        };
        self.draw_span(history, Rect { y: top, ..inner }, buf);
        top += 1;
        let lines = self.page_lines(page, inner.width, theme);
        let height = usize::from(inner.bottom().saturating_sub(top));
        let first = page.scroll.min(lines.len().saturating_sub(height));
        for (line, y) in lines.iter().skip(first).zip(top..inner.bottom()) {
            self.draw_page_line(line, page.back, Rect { y, height: 1, ..inner }, buf);
        }
    }

    fn graph_area(line: Rect) -> Rect {
        let used = NAME_WIDTH + VALUE_WIDTH + 2;
        Rect { x: line.x + used.min(line.width), width: line.width.saturating_sub(used), height: 1, ..line }
    }

    /// As many values as the graphs have room for.
    fn value_count(&self) -> usize {
        let width = Self::graph_area(Rect::new(0, 0, self.size.0.saturating_sub(2), 1)).width;
        (usize::from(width) * self.symbols.samples_per_cell()).clamp(VALUES.0, VALUES.1)
    }

    fn draw_span(&self, history: &HostHistory, line: Rect, buf: &mut CellBuffer) {
        let (count, start) = (history.count, history.start);
        let end = history.time_at(count.saturating_sub(1));
        let theme = &self.themes.theme();
        let graph = Self::graph_area(line);
        let date = crate::units::format_rfc3339_in(wall_ns(end), self.utc_offset_secs);
        draw_text(buf, line.x, line.y, date.split('.').next().unwrap_or_default(), NAME_WIDTH, theme.dim);
        // The graph shows the newest values that have room.
        let per_cell = buf.symbols.samples_per_cell();
        let cells = count.div_ceil(per_cell).min(graph.width.into()) as u16;
        let shown = count.min(usize::from(cells) * per_cell).saturating_sub(1);
        let from = end - (end - start) * shown as f64 / count.saturating_sub(1).max(1) as f64;
        draw_text(buf, graph.right() - cells, line.y, &self.time_of_day(from), graph.width, theme.dim);
        draw_text_right(buf, graph.x, line.y, &self.time_of_day(end), graph.width, theme.dim);
    }

    fn draw_page_line(&self, line: &PageLine<'_>, back: usize, area: Rect, buf: &mut CellBuffer) {
        let theme = &self.themes.theme();
        let graph = Self::graph_area(area);
        let value_x = area.x + NAME_WIDTH + 1;
        match line {
            PageLine::Heading(text) => self.draw_line(area, text, theme.header, buf),
            PageLine::Text(text, style) => self.draw_line(Rect { x: area.x + 1, ..area }, text, *style, buf),
            PageLine::Finding(span) => {
                use crate::doctor::finding::Severity;
                let (style, graph_style) = match span.finding.severity {
                    Severity::Critical => (theme.crit, theme.graph_crit),
                    Severity::Warn => (theme.warn, theme.graph_warn),
                    Severity::Note => (theme.text, theme.graph),
                };
                let text = format!("{} {}", span.finding.severity.symbol(), span.finding.text());
                draw_text(buf, area.x + 1, area.y, &text, NAME_WIDTH - 1, style);
                let there = span.present.iter().rev().nth(back).copied().flatten();
                let word = there.map_or("-", |is_there| if is_there { "yes" } else { "no" });
                draw_text_right(buf, value_x, area.y, word, VALUE_WIDTH, theme.text);
                let values = span.present.iter().map(|present| present.map(|is_there| f64::from(u8::from(is_there))));
                draw_columns(buf, graph, values, 1.0, |_| graph_style);
            }
            PageLine::Figure(series) => {
                draw_text(buf, area.x + 1, area.y, &series.name, NAME_WIDTH - 1, theme.text);
                let value = series.values.iter().rev().nth(back).copied().flatten();
                let text = value.map_or("-".into(), |value| series.unit.format(value));
                draw_text_right(buf, value_x, area.y, &text, VALUE_WIDTH, theme.text);
                let max = series.values.iter().flatten().copied().fold(0.0, f64::max);
                draw_columns(buf, graph, series.values.iter().copied(), max, |_| theme.graph);
            }
        }
        let column = back / buf.symbols.samples_per_cell();
        if matches!(line, PageLine::Finding(_) | PageLine::Figure(_)) && back > 0 && column < usize::from(graph.width) {
            patch_style(buf, graph.right() - 1 - column as u16, area.y, 1, theme.selected);
        }
    }
}

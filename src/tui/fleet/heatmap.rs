//! The heat map: hosts over time.

use super::screen::FleetScreen;
use crate::fleet::heat::{heat_request, heat_values};
use crate::fleet::host::FleetHost;
use crate::fleet::range::{RangeAnswers, RangeRequest};
use crate::fleet::rank::{Urgency, urgency};
use crate::tui::widgets::{CellBuffer, Rect, draw_heat_cell, draw_text, draw_text_right, highlight_row};

/// Times that a heat map can show, seconds.
pub(super) const SPANS_SECS: [f64; 5] = [900.0, 3600.0, 21_600.0, 86_400.0, 604_800.0];
/// Cells of the names.
const NAME_WIDTH: u16 = 20;
/// A request that has no answer after this is given up, seconds.
const GIVEN_UP_SECS: f64 = 60.0;
/// The map is asked for at most this often, seconds.
const MIN_INTERVAL_SECS: f64 = 5.0;

impl FleetScreen {
    fn heat_area(&self) -> (usize, usize) {
        let columns = self.size.0.saturating_sub(NAME_WIDTH + 3).max(2);
        (usize::from(columns), usize::from(self.size.1.saturating_sub(6)).max(1))
    }

    /// The hosts on screen: those of the list, in its order.
    fn heat_hosts(&self) -> Vec<&FleetHost> {
        let rows = self.host_rows();
        let mut scroll = self.hosts.scroll;
        let (_, height) = self.heat_area();
        scroll.scroll_into_view(rows.len(), height);
        rows.iter().skip(scroll.offset).take(height).map(|row| row.host).collect()
    }

    /// The request for the map, unless it is there and new, or asked for.
    pub(super) fn heat_request(&mut self) -> Option<Box<RangeRequest>> {
        if self.state.is_recorded {
            return None;
        }
        let span = SPANS_SECS[self.heatmap.span];
        let columns = self.heat_area().0;
        let step = (span / columns as f64).max(1.0);
        // Times that are multiples of the step, so that columns stay where they are from one request to the next.
        let end = (self.shown_at() / step).floor() * step;
        let hosts = self.heat_hosts();
        if hosts.is_empty() {
            return None;
        }
        let mut request =
            heat_request(&self.scope, self.heatmap.quantity, &hosts, (end - span, end), columns, self.next_request);
        let map = &self.heatmap;
        let is_same = |other: &RangeRequest| other.expressions == request.expressions && other.step == request.step;
        let is_new = |other: &RangeRequest| is_same(other) && other.end >= request.end;
        let is_recent = |secs: f64| self.now - map.asked_at < secs;
        let is_answered = map.answered.as_deref().is_some_and(is_new);
        let is_asked = map.asked.as_deref().is_some_and(|asked| is_same(asked) && is_recent(GIVEN_UP_SECS));
        let is_fresh = map.answered.as_deref().is_some_and(is_same) && is_recent(MIN_INTERVAL_SECS);
        if is_answered || is_asked || is_fresh {
            return None;
        }
        request.id = self.next_request;
        self.next_request += 1;
        let request = Box::new(request);
        self.heatmap.asked = Some(request.clone());
        self.heatmap.asked_at = self.now;
        Some(request)
    }

    /// Takes the answer to a request for the map or the page; says whether it is one that was asked for.
    pub(super) fn take_series(&mut self, request: Box<RangeRequest>, mut answers: RangeAnswers) -> bool {
        if self.page.as_ref().is_some_and(|page| page.asked.as_ref().is_some_and(|asked| asked.id == request.id)) {
            return self.take_history(&request, answers);
        }
        let map = &mut self.heatmap;
        if map.asked.take_if(|asked| asked.id == request.id).is_none() {
            return false;
        }
        match answers.pop() {
            Some(Ok(series)) => {
                map.values = heat_values(&request, map.quantity, &series, &self.state.hosts);
                (map.answered, map.error) = (Some(request), None);
            }
            Some(Err(why)) => {
                (map.answered, map.error) = (Some(request), Some(why.to_string()));
                map.values.clear();
            }
            None => {}
        }
        true
    }

    pub(super) fn draw_heatmap(&self, area: Rect, buf: &mut CellBuffer) {
        let theme = &self.themes.theme();
        let map = &self.heatmap;
        let span = crate::units::format_duration(SPANS_SECS[map.span] as u64);
        let title = crate::tui::widgets::title_with_filter(
            format!("Heat map of {span}: {}", map.quantity.title()),
            &self.hosts.filter,
        );
        let inner = self.draw_pane(area, &title, "", buf);
        if self.state.is_recorded {
            let text = "not over recordings: each has a timeline of its own in the replay";
            return self.draw_line(inner, text, theme.dim, buf);
        }
        let hosts = self.heat_hosts();
        if hosts.is_empty() {
            return self.draw_line(inner, &self.empty_text(), theme.dim, buf);
        }
        let selected = self.hosts.scroll.selected.saturating_sub(self.heat_offset());
        for (at, (host, y)) in hosts.iter().zip(inner.y + 1..inner.bottom()).enumerate() {
            let style = match urgency(host) {
                Urgency::Critical => theme.crit,
                Urgency::Silent | Urgency::Warn => theme.warn,
                _ => theme.text,
            };
            draw_text(buf, inner.x, y, &host.name, NAME_WIDTH - 1, style);
            if at == selected {
                highlight_row(buf, Rect { width: NAME_WIDTH - 1, ..inner }, y, theme);
            }
            let cells = map.values.get(&host.id).map_or(&[][..], Vec::as_slice);
            for (back, value) in cells.iter().rev().take(usize::from(inner.width - NAME_WIDTH)).enumerate() {
                let x = inner.right() - 1 - back as u16;
                match value {
                    Some(share) if *share > 0.0 => draw_heat_cell(buf, x, y, *share, theme),
                    // There were figures, and they were 0.
                    Some(_) => _ = draw_text(buf, x, y, " ", 1, theme.text),
                    None => _ = draw_text(buf, x, y, "·", 1, theme.dim),
                }
            }
        }
        self.draw_heat_times(inner, buf);
    }

    fn heat_offset(&self) -> usize {
        let mut scroll = self.hosts.scroll;
        scroll.scroll_into_view(self.host_rows().len(), self.heat_area().1);
        scroll.offset
    }

    /// The line above the map: from when to when, or why there is none.
    fn draw_heat_times(&self, inner: Rect, buf: &mut CellBuffer) {
        let theme = &self.themes.theme();
        let map = &self.heatmap;
        let line = Rect { x: inner.x + NAME_WIDTH, width: inner.width - NAME_WIDTH, ..inner };
        match (&map.error, &map.answered) {
            (Some(why), _) => self.draw_line(line, &format!("no answer: {why}"), theme.crit, buf),
            (None, Some(request)) => {
                self.draw_line(line, &self.time_of_day(request.start), theme.dim, buf);
                draw_text_right(buf, line.x, line.y, &self.time_of_day(request.end), line.width, theme.dim);
            }
            (None, None) => self.draw_line(line, "asking", theme.dim, buf),
        }
    }
}

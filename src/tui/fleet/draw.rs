//! Draws the screen: header, what is wrong with the answers, the list or page, tabs, footer.

use super::screen::{FleetScreen, FleetTab};
use crate::fleet::rank::{Urgency, urgency};
use crate::tui::action::Action;
use crate::tui::app::help::draw_keys;
use crate::tui::app::layout::{MIN_SIZE, is_too_small};
use crate::tui::keymap::KeyContext;
use crate::tui::widgets::{CellBuffer, Rect, clear_area, draw_input, draw_text, patch_style};

/// Lines about the answers, at most.
const MAX_PROBLEM_LINES: usize = 3;

impl FleetScreen {
    /// Draws the screen.
    pub fn draw(&self, buf: &mut CellBuffer) {
        buf.symbols = self.symbols;
        let theme = &self.themes.theme();
        let (width, height) = self.size;
        if is_too_small(self.size) {
            let (w, h) = MIN_SIZE;
            let text = format!("iotop-plus needs {w}x{h} cells; {} quits", self.key(Action::Quit));
            draw_text(buf, 0, 0, &text, width, theme.warn);
            return;
        }
        self.draw_header(Rect::new(0, 0, width, 1), buf);
        let problems = self.state.problems(|secs| self.time_of_day(secs));
        let shown = problems.len().min(MAX_PROBLEM_LINES).min(usize::from(height / 4));
        for (line, y) in problems.iter().take(shown).zip(1..) {
            let style = if self.state.outage.is_some() { theme.crit } else { theme.warn };
            draw_text(buf, 1, y, line, width.saturating_sub(1), style);
        }
        let top = 1 + shown as u16;
        let body = Rect::new(0, top, width, height.saturating_sub(top + 1));
        match (&self.page, self.tab) {
            (Some(page), _) => self.draw_host_page(page, body, buf),
            (None, FleetTab::Hosts) => self.draw_hosts(body, buf),
            (None, FleetTab::Devices) => self.draw_devices(body, buf),
            (None, FleetTab::Heatmap) => self.draw_heatmap(body, buf),
        }
        if self.page.is_none() {
            self.draw_tabs(Rect { y: body.bottom().saturating_sub(1), height: 1, ..body }, buf);
        }
        let footer = Rect::new(0, height.saturating_sub(1), width, 1);
        self.draw_footer(footer, buf);
        if let Some(help) = &self.help {
            let contexts =
                [KeyContext::Fleet, KeyContext::Columns, KeyContext::List, KeyContext::Scroll, KeyContext::Detail];
            draw_keys(help, &self.keymap, &contexts, theme, buf);
        }
    }

    fn draw_header(&self, area: Rect, buf: &mut CellBuffer) {
        let theme = &self.themes.theme();
        let at = self.state.evaluated_at.or(self.state.shown_time);
        let time = at.map_or("no answer yet".into(), |at| self.time_of_day(at));
        let mut parts = vec![(format!(" {}  {time}", self.source_name), theme.title)];
        if let Some(shown) = self.state.shown_time {
            let ago = (self.now - shown).max(0.0) as u64;
            parts.push((format!("  PAST, {} ago", crate::units::format_duration(ago)), theme.changed));
        }
        if let Some(age) = self.state.answer_age(self.now).filter(|_| self.state.outage.is_some()) {
            parts.push((format!("  OLD by {}", crate::units::format_duration(age as u64)), theme.crit));
        }
        let count = |wanted: Urgency| self.state.hosts.iter().filter(|host| urgency(host) == wanted).count();
        parts.push((format!("  {} hosts", self.state.hosts.len()), theme.text));
        for (wanted, word, style) in [
            (Urgency::Critical, "critical", theme.crit),
            (Urgency::Silent, "silent", theme.warn),
            (Urgency::Warn, "with warnings", theme.warn),
            (Urgency::Unknown, "without findings known", theme.dim),
        ] {
            let n = count(wanted);
            if n > 0 {
                parts.push((format!("  {n} {word}"), style));
            }
        }
        let slow = self.state.devices.iter().filter(|device| device.verdict.is_some()).count();
        if slow > 0 {
            let word = if slow == 1 { "slow device" } else { "slow devices" };
            parts.push((format!("  {slow} {word}"), theme.warn));
        }
        let mut x = area.x;
        for (text, style) in parts {
            x += draw_text(buf, x, area.y, &text, area.right().saturating_sub(x), style);
        }
    }

    fn draw_tabs(&self, area: Rect, buf: &mut CellBuffer) {
        let theme = &self.themes.theme();
        let mut x = area.x + 2;
        for (number, (tab, title)) in FleetTab::ALL.into_iter().enumerate() {
            let from = x;
            x += draw_text(buf, x - 1, area.y, " ", 1, theme.text) - 1;
            x += draw_text(buf, x, area.y, &(number + 1).to_string(), 1, theme.key);
            x += draw_text(buf, x, area.y, &format!(" {title}"), area.right().saturating_sub(x), theme.text);
            draw_text(buf, x, area.y, " ", 1, theme.text);
            if tab == self.tab {
                patch_style(buf, from, area.y, x - from, theme.selected);
            }
            x += 2;
        }
    }

    fn draw_footer(&self, area: Rect, buf: &mut CellBuffer) {
        let theme = &self.themes.theme();
        if let Some(prompt) = &self.prompt {
            draw_input(buf, area, &prompt.label, &prompt.text, prompt.cursor, theme);
            if let Some(error) = &prompt.error {
                let above = Rect { y: area.y.saturating_sub(1), ..area };
                clear_area(buf, above);
                draw_text(buf, above.x, above.y, error, above.width, theme.crit);
            }
            return;
        }
        if let Some(message) = &self.message {
            let style = if message.is_error { theme.crit } else { theme.title };
            draw_text(buf, area.x + 1, area.y, &message.text, area.width.saturating_sub(1), style);
            return;
        }
        let mut x = area.x + 1;
        for binding in self.keymap.footer_bindings(&self.contexts()) {
            if !self.supports(binding.action) {
                continue;
            }
            let width = binding.name.chars().count() as u16 + 1 + binding.footer.len() as u16;
            if x + width >= area.right() {
                break;
            }
            let used = draw_text(buf, x, area.y, &binding.name, width, theme.key);
            draw_text(buf, x + used + 1, area.y, binding.footer, width - used - 1, theme.dim);
            x += width + 2;
        }
    }
}

//! Draws the whole screen. Reads only the state: no clock, no kernel.

use super::footer::{draw_footer, draw_tabs};
use super::header::draw_header;
use super::help::draw_help;
use super::layout;
use super::state::App;
use super::timeline::draw_timeline;
use crate::export::table::Table;
use crate::tui::view::{Action, Confirmation, Context, Dialog, KeyContext, Overlay, PaneId, PendingChange, Prompt};
use crate::tui::widgets::{CellBuffer, Rect, Theme, clear_area, draw_border, draw_input, draw_popup, draw_text, wrap};
use ratatui::buffer::Buffer;

/// Draws the screen.
pub fn draw(app: &App, buf: &mut CellBuffer) {
    let theme = app.shared.theme();
    buf.symbols = app.shared.symbols;
    if layout::is_too_small(app.screen.size) {
        let (w, h) = layout::MIN_SIZE;
        let text = format!("iotop-plus needs {w}x{h} cells; {} quits", app.shared.key(Action::Quit));
        draw_text(buf, 0, 0, &text, app.screen.size.0, theme.warn);
        return;
    }
    let (layout, focused) = app.arrange();
    draw_header(&app.shared, &theme, layout.header, buf);
    draw_timeline(&app.shared, &theme, layout.timeline, buf);
    let cx = Context::new(&app.shared, &app.screen, &layout, focused);
    // The focused one last: its colour is on the lines that it shares.
    let (focused_panes, others): (Vec<_>, Vec<_>) = layout.panes.iter().partition(|(pane, _)| cx.is_focused(*pane));
    for (panes, style) in [(others, theme.border), (focused_panes, theme.border_focused)] {
        panes.iter().for_each(|(_, area)| draw_border(buf, *area, style));
    }
    for (pane, area) in &layout.panes {
        if let Some(view) = app.views.of_pane(*pane) {
            view.render(*pane, &cx, *area, buf);
        }
    }
    draw_tabs(app, &theme, layout.tabs, buf);
    draw_footer(app, &theme, layout.footer, buf);
    match &app.screen.overlay {
        Some(Overlay::Help(help)) => draw_help(help, &app.view_contexts(), &app.shared, &theme, buf),
        Some(Overlay::Dialog(dialog)) => draw_dialog(dialog, &theme, buf),
        Some(Overlay::Prompt(prompt)) => draw_prompt(app, &cx, prompt, &theme, buf),
        None => {}
    }
}

/// Draws the screen into a ratatui buffer, for screenshots.
pub fn render_to_buffer(app: &App) -> Buffer {
    let mut buf = CellBuffer::new(Rect::new(0, 0, app.screen.size.0, app.screen.size.1));
    draw(app, &mut buf);
    buf.to_buffer()
}

impl App {
    /// The key contexts in force, most specific first.
    pub(super) fn key_contexts(&self) -> Vec<KeyContext> {
        match &self.screen.overlay {
            Some(Overlay::Help(help)) if help.is_typing => return Vec::new(),
            Some(Overlay::Help(_)) => return vec![KeyContext::Help, KeyContext::Scroll, KeyContext::Global],
            Some(Overlay::Dialog(d)) if d.on_confirm == PendingChange::Tune(Confirmation::Quit) => {
                return vec![KeyContext::TuneLeave, KeyContext::Scroll];
            }
            Some(Overlay::Dialog(_)) => return vec![KeyContext::Dialog, KeyContext::Scroll],
            Some(Overlay::Prompt(_)) => return Vec::new(),
            None => {}
        }
        self.view_contexts()
    }

    /// The key contexts of what lies below any overlay, most specific first.
    pub(super) fn view_contexts(&self) -> Vec<KeyContext> {
        let mut out = Vec::new();
        if self.shared.replay.is_some() {
            out.push(KeyContext::Replay);
        }
        let pane = self.focused_pane();
        out.extend(self.views.pane_spec(pane).iter().flat_map(|(_, _, contexts)| *contexts));
        out.push(KeyContext::Global);
        out
    }

    pub(super) fn table(&self, pane: PaneId) -> Table {
        self.with_view(pane, |view, cx| view.table(pane, cx)).unwrap_or_default()
    }
}

fn dialog_lines(d: &Dialog, size: (u16, u16)) -> (u16, Vec<String>) {
    let is_wide = matches!(d.on_confirm, PendingChange::Tune(_) | PendingChange::Start(PaneId::ExperimentPage));
    let width = size.0.min(if is_wide { 96 } else { 76 });
    (width, wrap(&d.text, usize::from(width.saturating_sub(4))))
}

/// Number of lines that do not fit into a dialog.
pub(super) fn hidden_dialog_lines(d: &Dialog, size: (u16, u16)) -> u16 {
    (dialog_lines(d, size).1.len() as u16 + 3).saturating_sub(size.1)
}

fn draw_dialog(d: &Dialog, theme: &Theme, buf: &mut CellBuffer) {
    let size = (buf.area.width, buf.area.height);
    let (width, lines) = dialog_lines(d, size);
    let inner = draw_popup(buf, &d.title, width, lines.len() as u16 + 4, theme);
    let room = inner.width.saturating_sub(1);
    let shown = usize::from(inner.height.saturating_sub(1));
    let skip = usize::from(d.scroll.min(hidden_dialog_lines(d, size)));
    for (i, line) in lines.iter().skip(skip).take(shown).enumerate() {
        draw_text(buf, inner.x + 1, inner.y + i as u16, line, room, theme.text);
    }
    let answers = d.on_confirm.key_hints();
    let more = if lines.len() > skip + shown { "   ↓ more" } else { "" };
    draw_text(buf, inner.x + 1, inner.bottom().saturating_sub(1), &format!("{answers}{more}"), room, theme.key);
}

/// Draws a prompt where its view wants it, else in the footer.
fn draw_prompt(app: &App, cx: &Context, prompt: &Prompt, theme: &Theme, buf: &mut CellBuffer) {
    let owner = app.screen.overlay_owner.and_then(|pane| app.views.of_pane(pane));
    if owner.is_some_and(|view| view.draw_prompt(prompt, cx, buf)) {
        return;
    }
    let area = cx.layout.footer;
    app.draw_choices(prompt, theme, area, buf);
    draw_input(buf, area, &prompt.label, &prompt.text, prompt.cursor, theme);
    if let Some(error) = &prompt.error {
        let above = Rect { y: area.y.saturating_sub(1), ..area };
        clear_area(buf, Rect { height: 1, ..above });
        draw_text(buf, above.x, above.y, error, above.width, theme.crit);
    }
}

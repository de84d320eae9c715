//! The titles of the views in the lowest border, and the line at the bottom: keys, or a message.

use super::state::App;
use crate::tui::keymap::KeyBinding;
use crate::tui::view::{Action, ViewId};
use crate::tui::widgets::{CellBuffer, Rect, Theme, draw_text, patch_style};

/// The title of a view, which can be clicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tab {
    pub(super) view: ViewId,
    pub(super) x: u16,
    pub(super) width: u16,
    /// Beside the number; empty: there is no room.
    title: &'static str,
}

impl App {
    /// The titles of the views, with their places; drawing and mouse use the same list.
    pub(super) fn tabs(&self, area: Rect) -> Vec<Tab> {
        let views = ViewId::ALL.into_iter().filter(|v| self.refusal_reason(Action::ShowView(*v)).is_none());
        let mut x = area.x + 2;
        let titles = titles(&views.collect::<Vec<_>>(), self.screen.view, area.width.saturating_sub(4));
        let tabs = titles.into_iter().map(|(view, title)| {
            let width = if title.is_empty() { 1 } else { 2 + title.len() as u16 };
            x += width + 1;
            Tab { view, x: x - width - 1, width, title }
        });
        tabs.collect()
    }

    /// The keys of the footer with their x and width; drawing and mouse use the same list.
    pub(super) fn footer_keys(&self, area: Rect) -> Vec<(u16, u16, &KeyBinding)> {
        let width = |b: &KeyBinding| b.name.chars().count() as u16 + 1 + b.footer.len() as u16;
        let mut all = self.shared.keymap.footer_bindings(&self.key_contexts());
        let panes = self.arrange().0.panes.len();
        all.retain(|b| match b.action {
            Action::NextPane => panes > 1,
            Action::Zoom => panes > 1 || self.screen.zoomed,
            action => self.refusal_reason(action).is_none(),
        });
        // The menu of columns is wanted least.
        all.sort_by_key(|b| b.action == Action::ChooseColumns);
        // Help and quit are always shown.
        let (stay, others): (Vec<&KeyBinding>, Vec<&KeyBinding>) =
            all.into_iter().partition(|b| matches!(b.action, Action::Help | Action::Quit));
        let reserved: u16 = stay.iter().map(|b| width(b) + 2).sum();
        let (mut out, mut x) = (Vec::new(), area.x + 1);
        let fits = |b: &KeyBinding, x: u16| x + width(b) + reserved < area.right();
        for b in others {
            if fits(b, x) {
                out.push((x, width(b), b));
                x += width(b) + 2;
            }
        }
        for b in stay {
            out.push((x, width(b), b));
            x += width(b) + 2;
        }
        out
    }
}

/// The titles that fit in this width beside the numbers: all whole; else all short but the current one; else the current
/// one, then those from the left.
fn titles(views: &[ViewId], current: ViewId, width: u16) -> Vec<(ViewId, &'static str)> {
    let short = |view: ViewId| if view == current { view.title() } else { view.short_title() };
    let room = width.saturating_sub((2 * views.len() as u16).saturating_sub(1));
    let cells = |title: fn(ViewId) -> &'static str| views.iter().map(|v| 1 + title(*v).len() as u16).sum::<u16>();
    if cells(ViewId::title) <= room {
        return views.iter().map(|view| (*view, view.title())).collect();
    }
    let mut free = room;
    let mut take = |view: ViewId| {
        let more = 1 + short(view).len() as u16;
        let fits = more <= free;
        free -= if fits { more } else { 0 };
        if fits { short(view) } else { "" }
    };
    let of_current = take(current);
    views.iter().map(|view| (*view, if *view == current { of_current } else { take(*view) })).collect()
}

/// Draws the titles of the views over the border.
pub(super) fn draw_tabs(app: &App, theme: &Theme, area: Rect, buf: &mut CellBuffer) {
    for tab in app.tabs(area) {
        let at = ViewId::ALL.iter().position(|v| *v == tab.view).unwrap_or(0);
        draw_text(buf, tab.x - 1, area.y, " ", 1, theme.text);
        draw_text(buf, tab.x + 1, area.y, " ", 1, theme.text);
        draw_text(buf, tab.x, area.y, &"1234567890"[at..=at], 1, theme.key);
        draw_text(buf, tab.x + 2, area.y, tab.title, tab.width.saturating_sub(2), theme.text);
        draw_text(buf, tab.x + tab.width, area.y, " ", 1, theme.text);
        if tab.view == app.screen.view {
            patch_style(buf, tab.x, area.y, tab.width, theme.selected);
        }
    }
}

pub(super) fn draw_footer(app: &App, theme: &Theme, area: Rect, buf: &mut CellBuffer) {
    if let Some(m) = &app.screen.message {
        let style = if m.is_error { theme.crit } else { theme.title };
        draw_text(buf, area.x + 1, area.y, &m.text, area.width.saturating_sub(1), style);
        return;
    }
    for (x, width, key) in app.footer_keys(area) {
        let used = draw_text(buf, x, area.y, &key.name, width, theme.key);
        draw_text(buf, x + used + 1, area.y, key.footer, width - used - 1, theme.dim);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_short_before_they_are_left_out() {
        let shown = |width| titles(&ViewId::ALL, ViewId::Processes, width).into_iter().map(|t| t.1).collect::<Vec<_>>();
        assert!(shown(120).iter().zip(ViewId::ALL).all(|(title, view)| *title == view.title()));
        let narrow = shown(76);
        assert_eq!((narrow[1], narrow[2], narrow[9]), ("Dev", "Processes", "File"));
        assert_eq!(shown(40), ["Over", "Dev", "Processes", "", "", "", "", "", "", ""]);
    }
}

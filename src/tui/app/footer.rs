//! The line at the bottom: tabs and keys, or a message.

use super::state::App;
use crate::tui::keymap::{self, KeyBinding};
use crate::tui::view::{Action, ViewId};
use crate::tui::widgets::{CellBuffer, Rect, Theme, draw_text, patch_style};

/// Keys of the view that are shown even where that leaves tabs without a title.
const MIN_KEYS: usize = 1;

/// An item of the footer, which can be clicked.
#[derive(Clone, Copy)]
pub(super) enum FooterItem {
    Tab(ViewId),
    Key(&'static KeyBinding),
}

impl App {
    /// Tabs and keys of the footer with their x and width; drawing and mouse use the same list.
    pub(super) fn footer_items(&self, area: Rect) -> Vec<(u16, u16, FooterItem)> {
        let mut out = Vec::new();
        let mut x = area.x + 1;
        let possible = |action| self.refusal_reason(action).is_none();
        let width = |b: &KeyBinding| b.name.chars().count() as u16 + 1 + b.footer.len() as u16;
        let mut all = keymap::footer_bindings(&self.key_contexts());
        all.retain(|b| possible(b.action));
        // Help and quit are always shown.
        let stays = |b: &KeyBinding| matches!(b.action, Action::Help | Action::Quit);
        let reserved: u16 = all.iter().filter(|b| stays(b)).map(|b| width(b) + 2).sum();
        let tabs: Vec<ViewId> = ViewId::ALL.into_iter().filter(|v| possible(Action::ShowView(*v))).collect();
        let keys: u16 = all.iter().filter(|b| !stays(b)).take(MIN_KEYS).map(|b| width(b) + 2).sum();
        let room = area.width.saturating_sub(reserved + keys + 2);
        for (view, is_titled) in titled_tabs(&tabs, self.screen.view, room) {
            let width = if is_titled { 2 + view.title().len() as u16 } else { 1 };
            out.push((x, width, FooterItem::Tab(view)));
            x += width + 1;
        }
        x += 1;
        let mut put = |b: &'static KeyBinding, width, x: &mut u16| {
            out.push((*x, width, FooterItem::Key(b)));
            *x += width + 2;
        };
        for b in all.iter().filter(|b| !stays(b)) {
            let width = width(b);
            if x + width + reserved >= area.right() {
                break;
            }
            put(b, width, &mut x);
        }
        for b in all.iter().filter(|b| stays(b)) {
            put(b, width(b), &mut x);
        }
        out
    }
}

/// The tabs, each with whether its title fits beside its number in this width: that of the current one first, then those
/// from the left.
fn titled_tabs(tabs: &[ViewId], current: ViewId, width: u16) -> Vec<(ViewId, bool)> {
    let mut free = width.saturating_sub(2 * tabs.len() as u16);
    let mut take = |view: &ViewId| {
        let more = 1 + view.title().len() as u16;
        let fits = more <= free;
        free -= if fits { more } else { free };
        fits
    };
    let is_current_titled = take(&current);
    tabs.iter().map(|view| (*view, if *view == current { is_current_titled } else { take(view) })).collect()
}

pub(super) fn draw_footer(app: &App, theme: &Theme, area: Rect, buf: &mut CellBuffer) {
    if let Some(m) = &app.screen.message {
        let style = if m.is_error { theme.crit } else { theme.title };
        draw_text(buf, area.x + 1, area.y, &m.text, area.width.saturating_sub(1), style);
        return;
    }
    for (x, width, part) in app.footer_items(area) {
        match part {
            FooterItem::Tab(view) => {
                let at = ViewId::ALL.iter().position(|v| *v == view).unwrap_or(0);
                draw_text(buf, x, area.y, &"1234567890"[at..=at], 1, theme.key);
                draw_text(buf, x + 2, area.y, view.title(), width.saturating_sub(2), theme.text);
                if view == app.screen.view {
                    patch_style(buf, x, area.y, width, theme.selected);
                }
            }
            FooterItem::Key(b) => {
                let used = draw_text(buf, x, area.y, b.name, width, theme.key);
                draw_text(buf, x + used + 1, area.y, b.footer, width - used - 1, theme.dim);
            }
        }
    }
}

//! What each action does.

use super::help;
use super::state::App;
use crate::tui::settings::INTERVAL_SECS_RANGE;
use crate::tui::view::{Action, Effect, HelpState, Overlay, PaneId, Prompt, PromptPurpose, Target, ViewId};
use std::time::Duration;

impl App {
    /// Performs an action: the focused view's, the one of another view, or the program's own.
    pub(super) fn apply_action(&mut self, action: Action, effects: &mut Vec<Effect>) {
        if let Some(why) = self.refusal_reason(action) {
            return self.screen.error(why);
        }
        if self.offer_action(action, effects) {
            return;
        }
        match action {
            Action::Quit => self.quit(effects),
            Action::Suspend => effects.push(Effect::Suspend),
            Action::Redraw => effects.push(Effect::Redraw),
            Action::Help => {
                let is_open = matches!(self.screen.overlay, Some(Overlay::Help(_)));
                self.screen.overlay = (!is_open).then(|| Overlay::Help(HelpState::default()));
            }
            Action::ShowView(tab) => self.navigate(Target::Tab(tab), effects),
            Action::NextView => {
                self.navigate(Target::Tab(self.next_tab()), effects);
                self.screen.passed_at_seq = Some(self.shared.system.snapshot.seq);
            }
            Action::NextPane if !self.screen.zoomed => {
                self.screen.focus = (self.screen.focus + 1) % self.arrange().0.panes.len().max(1);
            }
            Action::Zoom => self.screen.zoomed = !self.screen.zoomed,
            Action::Back => self.close_topmost(effects),
            Action::MoveSelection(by) => self.move_selection(by.into(), effects),
            Action::MovePage(by) => self.move_selection(isize::from(by) * self.page_height(), effects),
            Action::MoveToFirst => self.move_selection(isize::MIN / 2, effects),
            Action::MoveToLast | Action::Freeze if self.shared.frozen_seq.is_some() => self.shared.frozen_seq = None,
            Action::MoveToLast => self.move_selection(isize::MAX / 2, effects),
            Action::Freeze => self.freeze_tick(0),
            Action::StepBack => self.freeze_tick(-1),
            Action::StepForward => self.freeze_tick(1),
            Action::Confirm => self.confirm_dialog(effects),
            Action::Replay(action) => self.apply_replay_action(action, effects),
            Action::ToggleRecording => self.toggle_recording(effects),
            _ => self.apply_setting(action, effects),
        }
    }

    /// Lets the focused view handle an action, else the view that defines the action. Returns whether one has.
    fn offer_action(&mut self, action: Action, effects: &mut Vec<Effect>) -> bool {
        let owner = matches!(action, Action::Tune(_)).then_some(PaneId::TuneKnobs);
        if owner.is_some() && matches!(self.screen.overlay, Some(Overlay::Dialog(_))) {
            // It answers the dialog.
            self.screen.overlay = None;
        } else if self.screen.overlay.is_some() || action == Action::Back {
            return false;
        }
        let focused = Some(self.focused_pane());
        [focused, owner].into_iter().flatten().any(|pane| {
            self.update_view(pane, effects, |view, cx, out| view.on_action(cx.focused, action, cx, out)) == Some(true)
        })
    }

    /// Actions that change what is listed and how.
    fn apply_setting(&mut self, action: Action, effects: &mut Vec<Effect>) {
        let interval = self.shared.interval.as_secs_f64();
        match action {
            Action::SearchNext => self.search(1, effects),
            Action::SearchPrevious => self.search(-1, effects),
            Action::ShorterInterval => self.round_and_set_interval(interval - 0.5, effects),
            Action::LongerInterval => self.round_and_set_interval(interval + 0.5, effects),
            Action::ResetCounters => {
                let now = self.shared.system.now();
                self.shared.system.processes.reset_counters(now);
                self.screen.info("sums count from now");
            }
            Action::SaveConfig => effects.push(Effect::SaveSettings(Box::new(self.settings()))),
            Action::Screenshot => self.begin_capture(),
            Action::CopyPane => {
                let table = self.table(self.focused_pane());
                effects.push(Effect::CopyToClipboard(table.to_markdown()));
                self.screen.info("pane sent to the terminal's clipboard (OSC 52), if it allows that");
            }
            Action::NextTheme => {
                self.shared.themes.select_next();
                self.screen.info(self.shared.themes.describe());
            }
            Action::Search if matches!(self.screen.overlay, Some(Overlay::Help(_))) => {
                if let Some(Overlay::Help(help)) = &mut self.screen.overlay {
                    help.is_typing = true;
                }
            }
            Action::Search => self.open_prompt(PromptPurpose::Search, "search: ", String::new()),
            Action::Filter => {
                let pane = self.focused_pane();
                let filter = self.with_view(pane, |view, _| view.filter(pane).to_owned());
                self.open_prompt(PromptPurpose::Filter, "filter: ", filter.unwrap_or_default());
            }
            Action::SetInterval => {
                let label = format!("interval in seconds (0.1 to 3600, now {interval}): ");
                self.open_prompt(PromptPurpose::Interval, &label, String::new());
            }
            Action::Command => self.open_prompt(PromptPurpose::Command, ":", String::new()),
            Action::SortMenu => self.open_columns(PromptPurpose::Sort, "sort by: ", None),
            Action::ChooseColumns => self.open_column_choice(),
            Action::Explain => self.open_columns(PromptPurpose::Explain, "explain: ", None),
            _ => {}
        }
    }

    pub(super) fn open_prompt(&mut self, purpose: PromptPurpose, label: &str, text: String) {
        self.open_overlay(Overlay::Prompt(Prompt::new(purpose, label, text)), None);
    }

    /// Ends the program, unless a view asks first.
    pub(super) fn quit(&mut self, effects: &mut Vec<Effect>) {
        let asks = self.visit_views(effects, |view, cx, out| view.on_quit(cx, out).then_some(()));
        if asks.is_none() {
            effects.push(Effect::Quit);
        }
    }

    fn next_tab(&self) -> ViewId {
        let is_allowed = |tab: &ViewId| self.refusal_reason(Action::ShowView(*tab)).is_none();
        let tabs: Vec<ViewId> = ViewId::ALL.into_iter().filter(is_allowed).collect();
        let at = tabs.iter().position(|tab| *tab == self.screen.view).unwrap_or(0);
        tabs[(at + 1) % tabs.len()]
    }

    /// Undoes the topmost thing: overlay, detail page, what the view has open, zoom, frozen tick, filters.
    fn close_topmost(&mut self, effects: &mut Vec<Effect>) {
        if self.screen.overlay.take().is_some()
            || self.stop_search_for_finding(effects)
            || self.screen.detail.take().is_some()
        {
            return;
        }
        let pane = self.focused_pane();
        let is_closed = self.update_view(pane, effects, |view, cx, out| view.on_action(pane, Action::Back, cx, out));
        if is_closed == Some(true) {
        } else if self.screen.zoomed {
            self.screen.zoomed = false;
        } else if self.shared.frozen_seq.take().is_none() {
            self.update_view(pane, effects, |view, cx, _| view.clear_filter(pane, cx));
        }
    }

    /// Rows that a page key moves by.
    fn page_height(&self) -> isize {
        let rows = match self.screen.overlay {
            Some(Overlay::Help(_)) => help::visible_lines(self.screen.size),
            Some(Overlay::Dialog(_)) => self.screen.size.1.saturating_sub(6),
            _ => {
                let (arranged, focused) = self.arrange();
                arranged.pane_area(focused).map_or(0, |area| area.height).saturating_sub(3)
            }
        };
        rows.max(1) as isize
    }

    fn move_selection(&mut self, by: isize, effects: &mut Vec<Effect>) {
        let scroll_by = |offset: &mut u16, last: isize| {
            *offset = (*offset as isize).saturating_add(by).clamp(0, last) as u16;
        };
        match &mut self.screen.overlay {
            Some(Overlay::Dialog(dialog)) => {
                let last = super::draw::hidden_dialog_lines(dialog, self.screen.size);
                return scroll_by(&mut dialog.scroll, last as isize);
            }
            Some(Overlay::Help(help)) => {
                let last = help::last_offset(help, &self.shared.keymap, self.screen.size);
                return scroll_by(&mut help.scroll, last);
            }
            _ => {}
        }
        let pane = self.focused_pane();
        if self.screen.detail.is_some() {
            let rows = self.with_view(pane, |view, cx| view.row_count(pane, cx));
            return self.screen.detail_scroll.move_selection(by, rows.unwrap_or_default());
        }
        self.update_view(pane, effects, |view, cx, _| view.move_selection(pane, by, cx));
    }

    /// Freezes the tick `by` steps from the one on screen.
    fn freeze_tick(&mut self, by: isize) {
        let now = self.shared.frozen_seq.unwrap_or(self.shared.snapshot().seq);
        match self.shared.system.history.step_from(now, by) {
            Some(seq) => self.shared.frozen_seq = Some(seq),
            None => self.screen.error("nothing to hold yet"),
        }
    }

    fn round_and_set_interval(&mut self, secs: f64, effects: &mut Vec<Effect>) {
        // Steps of half a second land on whole halves; below one second, on tenths.
        let secs = if secs < 0.5 { secs } else { (secs * 2.0).round() / 2.0 };
        self.set_interval(secs.clamp(*INTERVAL_SECS_RANGE.start(), *INTERVAL_SECS_RANGE.end()), effects);
    }

    /// Sets the interval; the caller has checked the range.
    pub(super) fn set_interval(&mut self, secs: f64, effects: &mut Vec<Effect>) {
        self.shared.interval = Duration::from_secs_f64(secs);
        self.screen.info(format!("interval {secs} s"));
        effects.push(Effect::SetInterval(self.shared.interval));
    }

    fn confirm_dialog(&mut self, effects: &mut Vec<Effect>) {
        let Some(Overlay::Dialog(dialog)) = self.screen.overlay.take() else { return };
        let mut change = Some(dialog.on_confirm);
        if let Some(owner) = self.screen.overlay_owner {
            self.update_view(owner, effects, |view, cx, out| {
                change.take().into_iter().for_each(|change| view.on_confirm(change, cx, out));
            });
        }
    }
}

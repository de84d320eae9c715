//! What keys and reports do. Reads no file, clock or network; returns what the event loop is to do.

use super::screen::{FleetScreen, FleetTab, HostPageState};
use crate::fleet::host::{FleetHost, FleetHostId};
use crate::fleet::poller::{FleetEvent, PollCommand};
use crate::tui::action::{Action, FleetAction, ReplayAction};
use crate::tui::app::prompt::edit_text;
use crate::tui::screen::{HelpState, Prompt, PromptPurpose};
use crate::tui::widgets::RowSearch;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::path::PathBuf;

/// What the event loop is to do.
#[derive(Debug)]
pub enum FleetEffect {
    Quit,
    Suspend,
    Redraw,
    /// To the terminal's clipboard.
    Copy(String),
    /// To the poller.
    Send(PollCommand),
    /// Show a recording at a time, seconds since 1970, and come back.
    Replay {
        file: PathBuf,
        at: f64,
    },
}

impl FleetScreen {
    /// Handles a key.
    pub fn on_key(&mut self, key: KeyEvent) -> Vec<FleetEffect> {
        let mut effects = Vec::new();
        if key.kind == KeyEventKind::Release {
            return effects;
        }
        if self.prompt.is_some() {
            self.on_prompt_key(key, &mut effects);
        } else if let Some(action) = self.keymap.lookup_action(&self.contexts(), &key) {
            self.message = None;
            self.apply(action, &mut effects);
        }
        self.request_series(&mut effects);
        effects
    }

    /// Handles a report; returns what to do and whether the picture changes.
    pub fn on_report(&mut self, event: FleetEvent) -> (Vec<FleetEffect>, bool) {
        let is_shown = match event {
            FleetEvent::Range(request, answers) => self.take_series(request, answers),
            event => self.state.apply(event, self.now),
        };
        let mut effects = Vec::new();
        self.request_series(&mut effects);
        (effects, is_shown)
    }

    /// Asks for series over time that the picture needs and that are not there or are old.
    pub fn request_series(&mut self, effects: &mut Vec<FleetEffect>) {
        let request = match (&self.page, self.tab) {
            (Some(_), _) => self.page_request(),
            (None, FleetTab::Heatmap) => self.heat_request(),
            _ => None,
        };
        effects.extend(request.map(|request| FleetEffect::Send(PollCommand::Range(request))));
    }

    /// Whether an action does something here.
    pub(super) fn supports(&self, action: Action) -> bool {
        match action {
            Action::Quit | Action::Suspend | Action::Redraw | Action::Help | Action::Back | Action::NextTheme => true,
            Action::NextView | Action::Fleet(_) | Action::Replay(_) => true,
            Action::MoveSelection(_) | Action::MovePage(_) | Action::MoveToFirst | Action::MoveToLast => true,
            Action::StepBack | Action::StepForward => self.page.is_some(),
            Action::Open => self.page.is_none(),
            Action::NextGraph => self.tab == FleetTab::Heatmap && self.page.is_none(),
            Action::LongerInterval | Action::ShorterInterval => self.tab == FleetTab::Heatmap && self.page.is_none(),
            Action::Search | Action::SearchNext | Action::SearchPrevious | Action::Filter => self.page.is_none(),
            Action::ToggleActiveOnly => self.page.is_none(),
            Action::SortLeft | Action::SortRight | Action::ColumnsLeft | Action::ColumnsRight | Action::ReverseSort => {
                self.page.is_none() && self.tab != FleetTab::Heatmap
            }
            _ => false,
        }
    }

    fn apply(&mut self, action: Action, effects: &mut Vec<FleetEffect>) {
        if self.help.is_some() {
            return self.apply_in_help(action, effects);
        }
        if !self.supports(action) {
            let name = crate::tui::action_name::action_name(action);
            return self.error(format!("{name}: not on the screen of many hosts; run iotop-plus on the host"));
        }
        match action {
            Action::Quit => effects.push(FleetEffect::Quit),
            Action::Suspend => effects.push(FleetEffect::Suspend),
            Action::Redraw => effects.push(FleetEffect::Redraw),
            Action::Help => self.help = Some(HelpState::default()),
            Action::Back => self.go_back(effects),
            Action::NextTheme => {
                self.themes.select_next();
                let name = format!("theme {}", self.themes.name());
                self.info(name);
            }
            Action::NextView => {
                let at = FleetTab::ALL.iter().position(|(tab, _)| *tab == self.tab).unwrap_or(0);
                (self.tab, self.page) = (FleetTab::ALL[(at + 1) % FleetTab::ALL.len()].0, None);
            }
            Action::Fleet(FleetAction::CopyCommand) => self.copy_command(effects),
            Action::Fleet(action) => {
                self.tab = FleetTab::of_action(action).unwrap_or_default();
                self.page = None;
            }
            Action::Replay(action) => self.on_time_action(action, effects),
            Action::StepBack => self.step_page(1),
            Action::StepForward => self.step_page(-1),
            Action::Open => self.open_host(effects),
            Action::MoveSelection(by) => self.move_selection(by.into()),
            Action::MovePage(by) => self.move_selection(isize::from(by) * self.page_height()),
            Action::MoveToFirst => self.move_selection(isize::MIN / 2),
            Action::MoveToLast => self.move_selection(isize::MAX / 2),
            _ => self.apply_to_list(action),
        }
    }

    fn apply_in_help(&mut self, action: Action, effects: &mut Vec<FleetEffect>) {
        let height = self.page_height();
        let Some(help) = &mut self.help else { return };
        let scroll = |help: &mut HelpState, by: isize| {
            help.scroll = (help.scroll as isize).saturating_add(by).clamp(0, 500) as u16;
        };
        match action {
            Action::Quit => effects.push(FleetEffect::Quit),
            Action::Back | Action::Help => self.help = None,
            Action::MoveSelection(by) => scroll(help, by.into()),
            Action::MovePage(by) => scroll(help, isize::from(by) * height),
            Action::MoveToFirst => help.scroll = 0,
            _ => {}
        }
    }

    fn apply_to_list(&mut self, action: Action) {
        let count = self.column_count();
        let list = self.list_mut();
        match action {
            Action::ToggleActiveOnly => {
                list.only_active = !list.only_active;
                let is_on = list.only_active;
                let what = if self.tab == FleetTab::Devices { "devices in use" } else { "hosts with something wrong" };
                self.info(format!("{} {what}", if is_on { "only" } else { "not only" }));
            }
            Action::NextGraph => self.heatmap.quantity = self.heatmap.quantity.next(),
            Action::LongerInterval => self.change_span(1),
            Action::ShorterInterval => self.change_span(-1),
            Action::Filter => {
                let text = list.filter.clone();
                self.prompt = Some(Prompt::new(PromptPurpose::Filter, "filter: ", text));
            }
            Action::Search => self.prompt = Some(Prompt::new(PromptPurpose::Search, "search: ", "")),
            Action::SearchNext => self.find(1),
            Action::SearchPrevious => self.find(-1),
            _ => _ = crate::tui::view::change_columns(&mut list.columns, action, count),
        }
    }

    fn find(&mut self, step: isize) {
        let needle = self.search.to_lowercase();
        if needle.is_empty() {
            return;
        }
        let rows = self.rows_with(&needle);
        let search = RowSearch { needle, step };
        if !search.select(rows.into_iter(), &mut self.list_mut().scroll.selected) {
            self.error("no match");
        }
    }

    fn on_prompt_key(&mut self, key: KeyEvent, effects: &mut Vec<FleetEffect>) {
        let Some(mut prompt) = self.prompt.take() else { return };
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let is_filter = prompt.purpose == PromptPurpose::Filter;
        match key.code {
            KeyCode::Esc => {
                if is_filter {
                    self.list_mut().filter = prompt.original;
                }
                return;
            }
            KeyCode::Char('c' | 'g') if ctrl => return,
            KeyCode::Enter => match self.submit(prompt.purpose, prompt.text.trim().to_owned(), effects) {
                Ok(()) => return,
                Err(why) => prompt.error = Some(crate::sanitize::sanitize(why)),
            },
            _ => {
                edit_text(&mut prompt, key, ctrl);
                if is_filter {
                    self.list_mut().filter = prompt.text.trim().to_owned();
                }
            }
        }
        self.prompt = Some(prompt);
    }

    fn submit(&mut self, purpose: PromptPurpose, text: String, effects: &mut Vec<FleetEffect>) -> Result<(), String> {
        match purpose {
            PromptPurpose::Filter => self.list_mut().filter = text,
            PromptPurpose::Search => {
                self.search = text;
                self.find(0);
            }
            PromptPurpose::ReplayTime if !text.is_empty() => {
                let time = crate::fleet::text::parse_time(&text, self.shown_at(), self.utc_offset_secs)?;
                self.choose_time(Some(time), effects);
            }
            _ => {}
        }
        Ok(())
    }

    /// Closes what is on top: a page, a filter, the past.
    fn go_back(&mut self, effects: &mut Vec<FleetEffect>) {
        if self.page.as_ref().is_some_and(|page| page.fixed_span.is_none()) {
            self.page = None;
        } else if !self.list().filter.is_empty() {
            self.list_mut().filter.clear();
        } else if self.list().only_active {
            self.list_mut().only_active = false;
        } else if self.state.shown_time.is_some() && self.page.is_none() {
            self.choose_time(None, effects);
        }
    }

    fn on_time_action(&mut self, action: ReplayAction, effects: &mut Vec<FleetEffect>) {
        if self.page.as_ref().is_some_and(|page| page.fixed_span.is_some()) {
            return self.error("the time is that of --from and --to");
        }
        match action {
            ReplayAction::SkipSecs(by) => {
                let now = self.now + self.state.clock_offset().unwrap_or(0.0);
                let time = self.shown_at() + f64::from(by);
                // Beyond the present there is nothing; of recordings only their files say where they end.
                self.choose_time((time < now || self.state.is_recorded).then_some(time), effects);
            }
            ReplayAction::JumpToTime => {
                let label = "time (14:35, 2026-11-21T14:35, -10m): ";
                self.prompt = Some(Prompt::new(PromptPurpose::ReplayTime, label, ""));
            }
            ReplayAction::Last => self.choose_time(None, effects),
            _ => {}
        }
    }

    fn choose_time(&mut self, time: Option<f64>, effects: &mut Vec<FleetEffect>) {
        if time.is_none() && self.state.shown_time.is_none() {
            return;
        }
        let generation = self.state.choose_time(time);
        self.heatmap.answered = None;
        if let Some(page) = &mut self.page {
            (page.asked, page.history, page.back) = (None, None, 0);
        }
        effects.push(FleetEffect::Send(PollCommand::ChooseTime { time, generation }));
    }

    fn selected_host(&self) -> Option<FleetHost> {
        if let Some(page) = &self.page {
            return Some(page.host.clone());
        }
        match self.tab {
            FleetTab::Devices => {
                let rows = self.device_rows();
                let id: &FleetHostId = &rows.get(self.devices.scroll.selected)?.device.host;
                self.state.hosts.iter().find(|host| host.id == *id).cloned()
            }
            _ => Some(self.host_rows().get(self.hosts.scroll.selected)?.host.clone()),
        }
    }

    fn open_host(&mut self, effects: &mut Vec<FleetEffect>) {
        let Some(host) = self.selected_host() else { return };
        if self.state.is_recorded {
            return effects.push(FleetEffect::Replay { file: host.id.instance.into(), at: self.shown_at() });
        }
        self.page = Some(HostPageState::new(host, None));
    }

    /// Copies the line that leads to the host: ssh, or the replay of its recording.
    fn copy_command(&mut self, effects: &mut Vec<FleetEffect>) {
        let Some(host) = self.selected_host() else { return self.error("no host is selected") };
        let command = match self.state.is_recorded {
            true => {
                let at = crate::units::format_rfc3339(crate::fleet::text::wall_ns(self.shown_at()));
                let at = format!("{}Z", at.split('.').next().unwrap_or_default());
                shlex::try_join(["iotop-plus", "replay", &host.id.instance, "--at", &at])
            }
            // Two hyphens: a name must not become an option.
            false => shlex::try_join(["ssh", "-t", "--", host.ssh_target(), "iotop-plus"]),
        };
        match command {
            Ok(command) => {
                self.info(format!("copied: {command}"));
                effects.push(FleetEffect::Copy(command));
            }
            Err(_) => self.error("the name of this host cannot be written on a command line"),
        }
    }

    fn page_height(&self) -> isize {
        usize::from(self.size.1.saturating_sub(5)).max(1) as isize
    }

    fn move_selection(&mut self, by: isize) {
        if let Some(page) = &mut self.page {
            page.scroll = page.scroll.saturating_add_signed(by.clamp(-10_000, 10_000)).min(1000);
            return;
        }
        let len = self.row_count();
        self.list_mut().scroll.move_selection(by, len);
    }

    fn step_page(&mut self, by: isize) {
        if let Some(page) = &mut self.page {
            let count = page.history.as_ref().map_or(0, |history| history.count);
            page.back = page.back.saturating_add_signed(by).min(count.saturating_sub(1));
        }
    }

    fn change_span(&mut self, by: isize) {
        let last = super::heatmap::SPANS_SECS.len() - 1;
        self.heatmap.span = self.heatmap.span.saturating_add_signed(by).min(last);
    }
}

//! The state of the screen.

use crate::fleet::heat::HeatQuantity;
use crate::fleet::history::HostHistory;
use crate::fleet::host::{FleetHost, FleetHostId};
use crate::fleet::plan::QueryScope;
use crate::fleet::range::RangeRequest;
use crate::fleet::state::FleetState;
use crate::tui::action::{Action, FleetAction};
use crate::tui::key_config::Keymap;
use crate::tui::keymap::KeyContext;
use crate::tui::screen::{HelpState, Prompt, StatusMessage};
use crate::tui::settings::Settings;
use crate::tui::themes::ThemeList;
use crate::tui::widgets::{ColorDepth, ColumnState, Scroll, SymbolSet};
use std::collections::HashMap;

/// What fills the screen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum FleetTab {
    #[default]
    Hosts,
    Devices,
    Heatmap,
}

impl FleetTab {
    pub(super) const ALL: [(Self, &'static str); 3] =
        [(Self::Hosts, "Hosts"), (Self::Devices, "Devices by model"), (Self::Heatmap, "Heat map")];

    pub(super) fn of_action(action: FleetAction) -> Option<Self> {
        match action {
            FleetAction::ShowHosts => Some(Self::Hosts),
            FleetAction::ShowDevices => Some(Self::Devices),
            FleetAction::ShowHeatmap => Some(Self::Heatmap),
            FleetAction::CopyCommand => None,
        }
    }
}

/// A list: what is selected, sorted and filtered.
#[derive(Debug, Clone, Default)]
pub(super) struct FleetList {
    pub(super) scroll: Scroll,
    pub(super) columns: ColumnState,
    pub(super) filter: String,
    /// Without hosts that are fine, or devices that are idle.
    pub(super) only_active: bool,
}

/// The heat map: values by host and time.
#[derive(Debug, Clone, Default)]
pub(super) struct HeatmapState {
    pub(super) quantity: HeatQuantity,
    /// Index in [`super::heatmap::SPANS_SECS`].
    pub(super) span: usize,
    /// The request whose answer is shown.
    pub(super) answered: Option<Box<RangeRequest>>,
    /// The newest request, if it has no answer yet.
    pub(super) asked: Option<Box<RangeRequest>>,
    /// When it was asked, seconds of the local clock.
    pub(super) asked_at: f64,
    pub(super) values: HashMap<FleetHostId, Vec<Option<f64>>>,
    pub(super) error: Option<String>,
}

/// The page of a host.
#[derive(Debug, Clone)]
pub(super) struct HostPageState {
    pub(super) host: FleetHost,
    /// From and to, seconds since 1970; `None`: the hour up to the time shown.
    pub(super) fixed_span: Option<(f64, f64)>,
    pub(super) asked: Option<Box<RangeRequest>>,
    pub(super) asked_at: f64,
    pub(super) history: Option<HostHistory>,
    pub(super) error: Option<String>,
    /// Samples before the newest at which figures are read.
    pub(super) back: usize,
    /// Lines scrolled past.
    pub(super) scroll: usize,
}

/// The whole state.
pub struct FleetScreen {
    /// What is known of the hosts.
    pub state: FleetState,
    /// Where that comes from, for the header.
    pub source_name: String,
    pub(super) scope: QueryScope,
    pub(super) tab: FleetTab,
    pub(super) hosts: FleetList,
    pub(super) devices: FleetList,
    pub(super) heatmap: HeatmapState,
    pub(super) page: Option<HostPageState>,
    pub(super) prompt: Option<Prompt>,
    pub(super) help: Option<HelpState>,
    pub(super) search: String,
    pub(super) message: Option<StatusMessage>,
    pub(super) keymap: Keymap,
    pub(super) themes: ThemeList,
    pub(super) symbols: SymbolSet,
    pub(super) size: (u16, u16),
    /// The local clock, seconds since 1970; set before each update and frame.
    pub(super) now: f64,
    pub(super) utc_offset_secs: i64,
    pub(super) next_request: u64,
}

impl FleetScreen {
    /// The state at start.
    pub fn new(source_name: &str, settings: &Settings, themes: ThemeList, size: (u16, u16)) -> Self {
        Self {
            state: FleetState::default(),
            source_name: crate::sanitize::sanitize(source_name),
            scope: QueryScope::default(),
            tab: FleetTab::default(),
            hosts: FleetList::default(),
            devices: FleetList::default(),
            heatmap: HeatmapState::default(),
            page: None,
            prompt: None,
            help: None,
            search: String::new(),
            message: None,
            // Keys that are wrong were refused when the settings were read.
            keymap: Keymap::new(&settings.keys).unwrap_or_default(),
            themes,
            symbols: settings.symbols,
            size,
            now: 0.0,
            utc_offset_secs: 0,
            next_request: 1,
        }
    }

    /// The same over recordings.
    pub fn over_recordings(mut self) -> Self {
        self.state.is_recorded = true;
        self
    }

    /// The same with what all queries have in common, for the requests of the screen itself.
    pub fn with_scope(self, scope: &QueryScope) -> Self {
        Self { scope: scope.clone(), ..self }
    }

    /// Shows the theme in the colours and characters of this terminal.
    pub fn adapt_to_terminal(&mut self, no_color: bool) {
        let [term, colorterm] = ["TERM", "COLORTERM"].map(|name| std::env::var(name).ok());
        self.symbols = self.symbols.for_terminal(term.as_deref());
        self.themes.adapt_to(no_color, ColorDepth::of_terminal(colorterm.as_deref(), term.as_deref()));
    }

    /// Local time of day of seconds since 1970.
    pub(super) fn time_of_day(&self, secs: f64) -> String {
        crate::units::format_time_of_day(crate::fleet::text::wall_ns(secs), self.utc_offset_secs)
    }

    /// The time shown, seconds since 1970: one in the past, or that of the source now.
    pub(super) fn shown_at(&self) -> f64 {
        let now = match self.state.evaluated_at {
            // Recordings have no present.
            Some(newest) if self.state.is_recorded => newest,
            _ => self.now + self.state.clock_offset().unwrap_or(0.0),
        };
        self.state.shown_time.unwrap_or(now)
    }

    /// The key contexts in force, most specific first.
    pub(super) fn contexts(&self) -> Vec<KeyContext> {
        if self.help.is_some() {
            return vec![KeyContext::Help, KeyContext::Scroll, KeyContext::Global];
        }
        match (&self.page, self.tab) {
            (Some(_), _) => vec![KeyContext::Fleet, KeyContext::Detail, KeyContext::Scroll, KeyContext::Global],
            (None, FleetTab::Heatmap) => {
                vec![KeyContext::Fleet, KeyContext::List, KeyContext::Scroll, KeyContext::Global]
            }
            (None, _) => {
                vec![KeyContext::Fleet, KeyContext::Columns, KeyContext::List, KeyContext::Scroll, KeyContext::Global]
            }
        }
    }

    /// The key of an action, for a hint.
    pub(super) fn key(&self, action: Action) -> &str {
        self.keymap.key_of(action)
    }

    pub(super) fn info(&mut self, text: impl AsRef<str>) {
        let text = crate::sanitize::sanitize(text.as_ref());
        self.message = Some(StatusMessage { text, is_error: false, ticks_left: 4 });
    }

    pub(super) fn error(&mut self, text: impl AsRef<str>) {
        let text = crate::sanitize::sanitize(text.as_ref());
        self.message = Some(StatusMessage { text, is_error: true, ticks_left: 8 });
    }

    /// Counts a second towards the end of the message.
    pub fn on_clock(&mut self) {
        self.message = self.message.take().filter(|message| message.ticks_left > 1);
        if let Some(message) = &mut self.message {
            message.ticks_left -= 1;
        }
    }

    pub(super) fn list_mut(&mut self) -> &mut FleetList {
        if self.tab == FleetTab::Devices { &mut self.devices } else { &mut self.hosts }
    }

    pub(super) fn list(&self) -> &FleetList {
        if self.tab == FleetTab::Devices { &self.devices } else { &self.hosts }
    }
}

//! What all views read, and nothing of any one of them.

#![expect(missing_docs, reason = "the names say what needs no comment")]

use super::action::Action;
use super::bench_target::BenchTarget;
use super::key_config::Keymap;
use super::knob_snapshot::KnobState;
use super::replay_timeline::ReplayTimeline;
use super::themes::ThemeList;
use super::widgets::theme::Theme;
use super::widgets::{ColorDepth, SymbolSet};
use crate::doctor::RuleEngine;
use crate::model::history::HistoryFrame;
use crate::model::kernel_log::LogClock;
use crate::model::process::ProcessTable;
use crate::model::snapshot::Snapshot;
use crate::model::system_state::{HostInfo, SystemState};
use crate::recording::reader::RecordingSpan;
use std::time::Duration;

/// The state shared by all views. Views read it; only the program above them writes it.
pub struct Shared {
    pub system: SystemState,
    pub findings: RuleEngine,
    /// Number of the tick frozen on screen; `None`: live.
    pub frozen_seq: Option<u64>,
    pub interval: Duration,
    pub themes: ThemeList,
    /// What this terminal is drawn with, and the setting for it.
    pub symbols: SymbolSet,
    pub symbols_setting: SymbolSet,
    /// Whether the program's own pages are locked in memory; `None` while that is not known.
    pub pages_locked: Option<bool>,
    pub tracing: bool,
    pub keymap: Keymap,
    pub replay: Option<ReplayUi>,
    /// State of the recorder, while it runs.
    pub recording_status: Option<crate::recording::writer::RecorderStatus>,
    /// Offset of the local time zone from UTC, seconds east.
    pub utc_offset_secs: i64,
    /// Knobs, changes and leases, from the Tune view.
    pub knobs: KnobState,
    /// When knobs were changed or restored, CLOCK_BOOTTIME in ns.
    pub knob_change_times: Vec<u64>,
    /// The clocks at the newest batch of kernel log records.
    pub log_clock: LogClock,
    pub target: BenchTarget,
    pub running: Option<Running>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    pub is_experiment: bool,
    pub profile: String,
    /// For the header: `bench randrw 42 %`.
    pub status: String,
}

impl Shared {
    /// `no device matches (Esc)`: nothing in a list passes its filter, and the key that drops it.
    pub(crate) fn no_match_text(&self, what: &str) -> String {
        format!("no {what} matches ({})", self.key(Action::Back))
    }

    /// The key that an action has now, for a hint; a dash if it has none.
    pub(crate) fn key(&self, action: Action) -> &str {
        self.keymap.key_of(action)
    }

    /// A machine of which nothing has been sampled yet.
    pub fn new(system: SystemState) -> Self {
        Self {
            system,
            findings: RuleEngine::default(),
            frozen_seq: None,
            interval: Duration::default(),
            themes: ThemeList::default(),
            symbols: SymbolSet::default(),
            symbols_setting: SymbolSet::default(),
            pages_locked: None,
            tracing: false,
            keymap: Keymap::default(),
            replay: None,
            recording_status: None,
            utc_offset_secs: 0,
            knobs: KnobState::default(),
            knob_change_times: Vec::new(),
            log_clock: LogClock::default(),
            target: BenchTarget::default(),
            running: None,
        }
    }

    /// Takes themes, and shows them in the colours and characters of this terminal.
    pub fn adapt_to_terminal(&mut self, themes: ThemeList, no_color: bool) {
        let [term, colorterm] = ["TERM", "COLORTERM"].map(|name| std::env::var(name).ok());
        self.symbols = self.symbols_setting.for_terminal(term.as_deref());
        self.themes = themes;
        self.themes.adapt_to(no_color, ColorDepth::of_terminal(colorterm.as_deref(), term.as_deref()));
    }

    pub fn theme(&self) -> Theme {
        self.themes.theme()
    }

    /// The tick on screen: the newest, or the frozen one.
    pub fn snapshot(&self) -> &Snapshot {
        match self.frozen_seq.and_then(|seq| self.system.history.nearest(seq)) {
            Some(frame) => &frame.snapshot,
            None => &self.system.snapshot,
        }
    }

    /// The tasks on screen: those of the newest scan, or the busiest ones of the frozen tick, which keeps no others.
    pub fn tasks(&self) -> &ProcessTable {
        match self.frozen_seq.and_then(|seq| self.system.history.nearest(seq)) {
            Some(frame) => &frame.tasks,
            None => &self.system.processes,
        }
    }

    /// The ticks up to the one on screen, oldest first.
    pub fn history_to_shown(&self) -> impl DoubleEndedIterator<Item = &HistoryFrame> + ExactSizeIterator + Clone {
        self.system.history.up_to(self.snapshot().seq)
    }

    /// Number of samples that a graph of this width shows.
    pub fn graph_samples(&self, width: u16) -> usize {
        usize::from(width) * self.symbols.samples_per_cell()
    }

    /// Places after the newest sample at the right end of a graph: a cell of two samples begins with an even tick, so that a
    /// graph moves, and all its cells are sent to the terminal, only with every second tick.
    pub fn open_graph_places(&self) -> usize {
        usize::from(self.symbols.samples_per_cell() == 2 && self.snapshot().seq.is_multiple_of(2))
    }

    /// The values of a graph, oldest first, with those places after the newest.
    pub fn graph_values<T: Clone>(
        &self,
        values: impl DoubleEndedIterator<Item = Option<T>> + Clone,
    ) -> impl DoubleEndedIterator<Item = Option<T>> + Clone {
        values.chain(std::iter::repeat_n(None, self.open_graph_places()))
    }

    /// [`Shared::change_marks`] as places of a graph, counted from its right end.
    pub fn graph_marks(&self, width: usize) -> Vec<usize> {
        let open = self.open_graph_places();
        self.change_marks(width).into_iter().map(|at| at + open).collect()
    }

    /// How long before the tick on screen a sample is, counted from the newest: `now`, `40s`, `1m20s`.
    pub fn sample_age(&self, back: usize) -> Option<String> {
        let taken = self.history_to_shown().nth_back(back)?.snapshot.time.boot_ns;
        let age_ns = self.snapshot().time.boot_ns.saturating_sub(taken);
        let secs = (age_ns + 500_000_000) / 1_000_000_000;
        Some(if secs == 0 { "now".into() } else { crate::units::format_duration(secs) })
    }

    /// The samples, counted from the newest, at which a graph of `width` samples marks that a knob changed.
    pub fn change_marks(&self, width: usize) -> Vec<usize> {
        let history = self.history_to_shown();
        let Some(first) = history.clone().nth_back(width.min(history.len().saturating_sub(1))) else {
            return Vec::new();
        };
        // The change lies in the first tick that ends after it.
        let column =
            |time: &u64| history.clone().rev().take_while(|f| f.snapshot.time.boot_ns >= *time).count().checked_sub(1);
        let shown = self.knob_change_times.iter().filter(|time| **time > first.snapshot.time.boot_ns);
        let mut columns: Vec<usize> = shown.filter_map(column).collect();
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// Local time of day: `14:02:11`.
    pub fn format_time_of_day(&self, wall_ns: i64) -> String {
        crate::units::format_time_of_day(wall_ns, self.utc_offset_secs)
    }

    /// The title of a table: `Knobs on node02, 2026-01-31T14:02:11Z`.
    pub fn table_title(&self, subject: &str) -> String {
        format!("{subject} on {}, {}", self.system.host.name, self.timestamp())
    }

    /// Date and time of the tick on screen, for exports.
    pub fn timestamp(&self) -> String {
        crate::units::format_rfc3339(self.snapshot().time.wall_ns)
    }

    /// What the rates on screen cover: `1.0 s`, `mean since boot`, `held at 14:02:11`.
    pub fn interval_text(&self) -> String {
        let snapshot = self.snapshot();
        if self.frozen_seq.is_some() {
            return format!("held at {}", self.format_time_of_day(snapshot.time.wall_ns));
        }
        if snapshot.is_since_boot { "mean since boot".into() } else { format!("{:.1} s", snapshot.interval_secs) }
    }

    /// Why processes cannot be shown; `None`: they can.
    pub fn processes_unavailable_reason(&self) -> Option<String> {
        self.system.processes_status.unavailable_reason(self.system.now().boot_ns)
    }

    /// Why the kernel log cannot be shown; `None`: it can.
    pub fn kernel_log_unavailable_reason(&self) -> Option<String> {
        self.system.kernel_log_status.unavailable_reason(self.system.now().boot_ns)
    }
}

/// Why much is unavailable in a replay.
pub const NOT_IN_REPLAY: &str = "not available in a replay";
/// Playback speeds, as multiples of the recorded pace.
pub const SPEEDS: [u16; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

#[derive(Debug, Clone, Default)]
pub struct ReplayUi {
    /// Name of the file, sanitized.
    pub file: String,
    pub host: HostInfo,
    /// The kernel log's clock at the start.
    pub log_clock: LogClock,
    pub span: RecordingSpan,
    pub tick_number: u32,
    pub is_playing: bool,
    /// Index in [`SPEEDS`].
    pub speed_index: usize,
    /// Number of frames that could not be read so far, and bytes that belong to none.
    pub damaged: u64,
    /// Whether idle tasks are missing, because a key frame could not be read.
    pub is_partial: bool,
    pub is_searching: bool,
    /// When findings were there.
    pub timeline: ReplayTimeline,
}

impl ReplayUi {
    /// At the start of a recording, playing.
    pub fn new(file: &str, host: HostInfo, log_clock: LogClock, span: RecordingSpan) -> Self {
        let file = crate::sanitize::sanitize(file);
        let timeline = ReplayTimeline::new(span.first_ns, span.last_ns, span.ticks);
        let damaged = span.damaged_bytes;
        Self { file, host, log_clock, span, is_playing: true, damaged, timeline, ..Self::default() }
    }

    /// The speed chosen, as a multiple of the recorded pace.
    pub fn speed(&self) -> u16 {
        SPEEDS[self.speed_index]
    }
}

//! The whole state of the program: what all views share, what is on screen, and every view.

use super::capture::ScreenshotState;
use crate::model::kernel_log::LogPatterns;
use crate::model::process::ProcessColumn;
use crate::model::system_state::SystemState;
use crate::tui::key_config::Keymap;
use crate::tui::settings::Settings;
use crate::tui::view::{PaneId, PaneSpec, ScreenState, Shared, View, ViewId};
use crate::tui::views::{
    bench::BenchView,
    devices::DevicesView,
    experiments::ExperimentsView,
    files::FilesView,
    findings::FindingsView,
    groups::GroupsView,
    kernel_log::KernelLogView,
    memory::MemoryView,
    path::PathView,
    processes::{ChosenColumns, ProcessesView},
    syncs::SyncsView,
    tune::TuneView,
};
use std::time::Duration;

/// The state of the full-screen program.
pub struct App {
    /// What all views read: the machine, the findings, the clock, settings.
    pub shared: Shared,
    /// What is on screen, whichever view owns it.
    pub screen: ScreenState,
    /// The views, each with its own state.
    pub views: Views,
    /// Facts that the rules are waiting for.
    pub(super) fact_requests: FactRequests,
    /// Screenshots.
    pub screenshot: ScreenshotState,
}

/// Jobs for the rules: facts that are slow to read.
#[derive(Debug, Default)]
pub(super) struct FactRequests {
    /// CLOCK_BOOTTIME of the newest request, ns.
    pub(super) requested_at_ns: Option<u64>,
    /// Settings and limits are being read.
    pub(super) facts: bool,
    /// Free space is being read: on local file systems, on those of the network.
    pub(super) disk_space: [bool; 2],
}

#[derive(Default)]
#[expect(missing_docs, reason = "each field is the view of its name")]
pub struct Views {
    pub devices: DevicesView,
    pub processes: ProcessesView,
    pub kernel_log: KernelLogView,
    pub bench: BenchView,
    pub tune: TuneView,
    /// Shown in place of the Tune view.
    pub experiments: ExperimentsView,
    pub findings: FindingsView,
    pub memory: MemoryView,
    pub path: PathView,
    pub syncs: SyncsView,
    pub files: FilesView,
    /// Shown in place of the Processes view.
    pub groups: GroupsView,
}

impl Views {
    fn all(&self) -> [&dyn View; 12] {
        let Self {
            devices,
            processes,
            kernel_log,
            findings,
            syncs,
            files,
            groups,
            memory,
            path,
            experiments,
            tune,
            bench,
        } = self;
        [devices, processes, kernel_log, findings, syncs, files, groups, memory, path, experiments, tune, bench]
    }

    pub(super) fn all_mut(&mut self) -> [&mut dyn View; 12] {
        let Self {
            devices,
            processes,
            kernel_log,
            findings,
            syncs,
            files,
            groups,
            memory,
            path,
            experiments,
            tune,
            bench,
        } = self;
        [devices, processes, kernel_log, findings, syncs, files, groups, memory, path, experiments, tune, bench]
    }

    /// The view that owns a pane.
    pub(super) fn of_pane(&self, pane: PaneId) -> Option<&dyn View> {
        self.all().into_iter().find(|view| view.panes().iter().any(|p| p.0 == pane))
    }

    pub(super) fn pane_spec(&self, pane: PaneId) -> Option<&'static PaneSpec> {
        self.all().into_iter().flat_map(|view| view.panes()).find(|p| p.0 == pane)
    }

    /// The view that lays out a tab; the Overview has none of its own.
    pub(super) fn of_tab(&self, tab: ViewId) -> Option<&dyn View> {
        match tab {
            ViewId::Devices => Some(&self.devices),
            ViewId::Processes if self.groups.is_open => Some(&self.groups),
            ViewId::Processes => Some(&self.processes),
            ViewId::Memory => Some(&self.memory),
            ViewId::Kernel => Some(&self.kernel_log),
            ViewId::Findings => Some(&self.findings),
            ViewId::Syncs => Some(&self.syncs),
            ViewId::Files => Some(&self.files),
            ViewId::Bench => Some(&self.bench),
            ViewId::Tune if self.experiments.is_open => Some(&self.experiments),
            ViewId::Tune => Some(&self.tune),
            ViewId::Overview => None,
        }
    }

    /// Writes what views read of each other.
    pub(super) fn publish(&self, shared: &mut Shared) {
        self.all().into_iter().for_each(|view| view.publish(shared));
    }
}

impl App {
    /// The state at start, with these settings.
    pub fn new(system: SystemState, size: (u16, u16), settings: &Settings) -> Self {
        let mut app = Self {
            shared: Shared::new(system),
            screen: ScreenState { size, ..ScreenState::default() },
            views: Views::default(),
            fact_requests: FactRequests::default(),
            screenshot: ScreenshotState::default(),
        };
        app.apply_settings(settings);
        app
    }

    /// Applies settings.
    pub fn apply_settings(&mut self, s: &Settings) {
        let (shared, screen, views) = (&mut self.shared, &mut self.screen, &mut self.views);
        shared.interval = Duration::from_secs_f64(s.interval);
        // A theme that is not there was refused when the settings were read.
        _ = shared.themes.select(&s.theme);
        shared.symbols_setting = s.symbols;
        shared.symbols = s.symbols;
        shared.tracing = s.tracing;
        screen.view = s.view;
        screen.mouse = s.mouse;
        self.screenshot.select_format(&s.screenshot.format);
        self.screenshot.directory.clone_from(&s.screenshot.directory);
        shared.target.directory = s.bench.directory.clone().into();
        // Keys and columns that are wrong were refused when the settings were read.
        shared.keymap = Keymap::new(&s.keys).unwrap_or_default();
        views.devices.choose_columns(&s.devices.columns);
        views.processes.chosen = ChosenColumns::new(&s.processes.columns);
        views.devices.extended = s.devices.extended;
        views.devices.only_active = s.devices.only_active;
        views.processes.sort_column = ProcessColumn::by_name(&s.processes.sort).unwrap_or_default();
        views.processes.reverse = s.processes.reverse;
        views.processes.filter.only_active = s.processes.only_active;
        views.processes.show_totals = s.processes.accumulated;
        views.processes.show_threads = s.processes.threads;
        views.processes.show_tree = s.processes.tree;
        views.tune.knobs.lease_secs = s.tune.lease;
        views.syncs.threshold_ms = s.syncs.threshold_ms;
        views.kernel_log.include.clone_from(&s.kernel.include);
        views.kernel_log.exclude.clone_from(&s.kernel.exclude);
        // Settings::parse has compiled the patterns already.
        views.kernel_log.patterns =
            LogPatterns::new(s.kernel.include.as_deref(), s.kernel.exclude.as_deref()).unwrap_or_default();
        views.publish(shared);
    }

    /// The settings in force.
    pub fn settings(&self) -> Settings {
        let (shared, screen, views) = (&self.shared, &self.screen, &self.views);
        let mut s = Settings {
            interval: shared.interval.as_secs_f64(),
            theme: shared.themes.name().to_owned(),
            symbols: shared.symbols_setting,
            view: screen.view,
            mouse: screen.mouse,
            tracing: shared.tracing,
            ..Settings::default()
        };
        s.screenshot.format = self.screenshot.format().name.into();
        s.screenshot.directory.clone_from(&self.screenshot.directory);
        s.bench.directory = shared.target.setting();
        s.keys = shared.keymap.settings().clone();
        s.devices.columns = views.devices.chosen.iter().map(|c| c.header.to_owned()).collect();
        s.processes.columns = views.processes.chosen.headers();
        s.devices.extended = views.devices.extended;
        s.devices.only_active = views.devices.only_active;
        s.processes.sort = views.processes.sort_column.spec().value.name.into();
        s.processes.reverse = views.processes.reverse;
        s.processes.only_active = views.processes.filter.only_active;
        s.processes.accumulated = views.processes.show_totals;
        s.processes.threads = views.processes.show_threads;
        s.processes.tree = views.processes.show_tree;
        s.tune.lease = views.tune.knobs.lease_secs;
        s.syncs.threshold_ms = views.syncs.threshold_ms;
        s.kernel.include.clone_from(&views.kernel_log.include);
        s.kernel.exclude.clone_from(&views.kernel_log.exclude);
        s
    }
}

//! What the person sees and did: everything about the screen that is not about the machine.

use super::action::ViewId;
use super::effect::Effect;
pub use super::screen::*;
use super::settings::Settings;
use super::shared::Shared;
use super::view::{Context, Outbox, PaneId, View};
use super::views::{
    devices::DevicesView, findings::FindingsView, kernel_log::KernelLogView, memory::MemoryView, path::PathView,
    processes::ProcessesView, syncs::SyncsView,
};
use crate::model::kernel_log::LogPatterns;
use crate::model::system_state::SystemState;
use std::time::Duration;

/// The whole state of the full-screen program.
pub struct App {
    /// What all views read: the machine, the findings, the clock, settings.
    pub shared: Shared,
    /// What is on screen, whichever view owns it.
    pub screen: ScreenState,
    /// The views, each with its own state.
    pub views: Views,
    /// Facts that the rules are waiting for.
    pub fact_requests: FactRequests,
}

/// Every view.
#[derive(Default)]
pub struct Views {
    /// Block devices and network file systems.
    pub devices: DevicesView,
    /// Processes and threads.
    pub processes: ProcessesView,
    /// The kernel log.
    pub kernel_log: KernelLogView,
    /// Benchmarks.
    pub bench: super::views::bench::BenchView,
    /// Kernel settings.
    pub tune: super::views::tune::TuneUi,
    /// Experiments, shown in place of the Tune view.
    pub experiments: super::views::experiments::ExperimentsView,
    /// Findings.
    pub findings: FindingsView,
    /// Memory.
    pub memory: MemoryView,
    /// The page of a directory.
    pub path: PathView,
    /// Syncs.
    pub syncs: SyncsView,
}

/// Jobs for the rules: facts that are slow to read.
#[derive(Debug, Default)]
pub struct FactRequests {
    /// CLOCK_BOOTTIME of the newest request, ns.
    pub requested_at_ns: Option<u64>,
    /// Settings and limits.
    pub facts: bool,
    /// Room on local file systems.
    pub local_disk_space: bool,
    /// Room on those of the network.
    pub network_disk_space: bool,
}

impl App {
    /// The state at start, with these settings.
    pub fn new(system: SystemState, size: (u16, u16), settings: &Settings, no_color: bool) -> Self {
        let mut app = Self {
            shared: Shared::new(system, no_color),
            screen: ScreenState { size, ..ScreenState::default() },
            views: Views::default(),
            fact_requests: FactRequests::default(),
        };
        app.apply_settings(settings);
        app
    }

    /// Applies settings.
    pub fn apply_settings(&mut self, s: &Settings) {
        let (shared, screen, views) = (&mut self.shared, &mut self.screen, &mut self.views);
        shared.interval = Duration::from_secs_f64(s.interval);
        shared.theme_name = s.theme;
        shared.tracing = s.tracing;
        screen.view = s.view;
        screen.mouse = s.mouse;
        screen.screenshot.select_format(&s.screenshot.format);
        screen.screenshot.directory = s.screenshot.directory.clone();
        shared.target.directory = s.bench.directory.clone().into();
        views.devices.extended = s.devices.extended;
        views.devices.only_active = s.devices.only_active;
        views.processes.sort_column =
            crate::model::process::ProcessColumn::by_name(&s.processes.sort).unwrap_or_default();
        views.processes.reverse = s.processes.reverse;
        views.processes.filter.only_active = s.processes.only_active;
        views.processes.show_totals = s.processes.accumulated;
        views.processes.show_threads = s.processes.threads;
        views.tune.lease_secs = s.tune.lease;
        views.syncs.threshold_ms = s.syncs.threshold_ms;
        views.kernel_log.include = s.kernel.include.clone();
        views.kernel_log.exclude = s.kernel.exclude.clone();
        // Settings::parse has compiled the patterns already.
        views.kernel_log.patterns =
            LogPatterns::new(s.kernel.include.as_deref(), s.kernel.exclude.as_deref()).unwrap_or_default();
    }

    /// The settings in force.
    pub fn settings(&self) -> Settings {
        let (shared, screen, views) = (&self.shared, &self.screen, &self.views);
        let mut s = Settings {
            interval: shared.interval.as_secs_f64(),
            theme: shared.theme_name,
            view: screen.view,
            mouse: screen.mouse,
            tracing: shared.tracing,
            ..Settings::default()
        };
        s.screenshot.format = screen.screenshot.format().name.into();
        s.screenshot.directory = screen.screenshot.directory.clone();
        s.bench.directory = shared.target.setting();
        s.devices.extended = views.devices.extended;
        s.devices.only_active = views.devices.only_active;
        s.processes.sort = views.processes.sort_column.spec().value.name.into();
        s.processes.reverse = views.processes.reverse;
        s.processes.only_active = views.processes.filter.only_active;
        s.processes.accumulated = views.processes.show_totals;
        s.processes.threads = views.processes.show_threads;
        s.tune.lease = views.tune.lease_secs;
        s.syncs.threshold_ms = views.syncs.threshold_ms;
        s.kernel.include = views.kernel_log.include.clone();
        s.kernel.exclude = views.kernel_log.exclude.clone();
        s
    }

    /// The focused pane.
    pub fn focused_pane(&self) -> PaneId {
        let panes = super::layout::visible_panes(self);
        panes.get(self.screen.focus.min(panes.len().saturating_sub(1))).copied().unwrap_or(PaneId::Devices)
    }
}

impl Views {
    /// Lets every view write what the others read of it.
    pub fn publish(&self, shared: &mut Shared) {
        self.all().into_iter().for_each(|view| view.publish(shared));
    }

    /// Every view.
    fn all(&self) -> [&dyn View; 9] {
        let Self { devices, processes, kernel_log, findings, syncs, memory, path, bench, experiments, .. } = self;
        [devices, processes, kernel_log, findings, syncs, memory, path, bench, experiments]
    }

    fn all_mut(&mut self) -> [&mut dyn View; 9] {
        let Self { devices, processes, kernel_log, findings, syncs, memory, path, bench, experiments, .. } = self;
        [devices, processes, kernel_log, findings, syncs, memory, path, bench, experiments]
    }

    /// The view that owns a pane.
    pub fn of_pane(&self, pane: PaneId) -> Option<&dyn View> {
        self.all().into_iter().find(|view| view.panes().iter().any(|p| p.id == pane))
    }

    /// The same, to be changed.
    pub fn of_pane_mut(&mut self, pane: PaneId) -> Option<&mut dyn View> {
        self.all_mut().into_iter().find(|view| view.panes().iter().any(|p| p.id == pane))
    }

    /// The view that lays out a tab.
    pub fn of_tab(&self, tab: ViewId) -> Option<&dyn View> {
        match tab {
            ViewId::Devices => Some(&self.devices),
            ViewId::Processes => Some(&self.processes),
            ViewId::Memory => Some(&self.memory),
            ViewId::Kernel => Some(&self.kernel_log),
            ViewId::Findings => Some(&self.findings),
            ViewId::Syncs => Some(&self.syncs),
            ViewId::Bench => Some(&self.bench),
            ViewId::Tune if self.experiments.is_open => Some(&self.experiments),
            ViewId::Overview | ViewId::Tune => None,
        }
    }
}

impl App {
    /// Reads the view that owns a pane.
    pub fn with_view<R>(&self, pane: PaneId, read: impl FnOnce(&dyn View, &Context) -> R) -> Option<R> {
        let layout = super::layout::compute_layout(self);
        let (shared, screen, focused) = (&self.shared, &self.screen, self.focused_pane());
        let cx = Context { shared, screen, layout: &layout, focused };
        Some(read(self.views.of_pane(pane)?, &cx))
    }

    /// Lets the view that owns a pane change itself, and does what it asks for.
    pub fn update_view<R>(
        &mut self,
        pane: PaneId,
        effects: &mut Vec<Effect>,
        change: impl FnOnce(&mut dyn View, &Context, &mut Outbox) -> R,
    ) -> Option<R> {
        let (layout, focused) = (super::layout::compute_layout(self), self.focused_pane());
        let (cx, mut out) =
            (Context { shared: &self.shared, screen: &self.screen, layout: &layout, focused }, Outbox::default());
        let result = change(self.views.of_pane_mut(pane)?, &cx, &mut out);
        super::update::handle_outbox(self, out, effects);
        Some(result)
    }

    /// Lets every view follow a change of what it shows.
    pub fn refresh_views(&mut self, effects: &mut Vec<Effect>) {
        let (layout, focused) = (super::layout::compute_layout(self), self.focused_pane());
        let cx = Context { shared: &self.shared, screen: &self.screen, layout: &layout, focused };
        let mut out = Outbox::default();
        self.views.all_mut().into_iter().for_each(|view| view.refresh(&cx, &mut out));
        super::update::handle_outbox(self, out, effects);
    }
}

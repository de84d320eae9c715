//! One file per pane, and the list [`PANES`]. Rendering is pure: state in, cells out.

pub mod bench;
pub mod charge;
pub mod device_detail;
pub mod device_graphs;
pub mod device_latency;
pub mod device_requests;
pub mod devices;
pub mod experiment;
pub mod findings;
pub mod kernel;
pub mod kernel_detail;
pub mod memory;
pub mod path_detail;
pub mod process_detail;
pub mod processes;
pub mod syncs;
pub mod tune;
pub mod writeback;

use super::keys::Context;
use super::state::App;
use super::widgets::theme::Theme;
use crate::export::table::Table;
use crate::tui::widgets::canvas::Canvas;
use ratatui::layout::Rect;

/// Which pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum PaneId {
    Devices,
    DeviceGraphs,
    Processes,
    Writeback,
    Memory,
    Kernel,
    BenchList,
    Bench,
    Tune,
    TuneKnob,
    TuneChanges,
    ExperimentList,
    Experiment,
    Findings,
    FindingPage,
    FindingsStrip,
    DeviceDetail,
    ProcessDetail,
    KernelDetail,
    PathDetail,
    Syncs,
    SlowSyncs,
}

impl PaneId {
    /// A word for it, in lower case: in the name of a file.
    pub fn name(self) -> &'static str {
        match self {
            PaneId::Devices => "devices",
            PaneId::DeviceGraphs => "device-graphs",
            PaneId::Processes => "processes",
            PaneId::Writeback => "writeback",
            PaneId::Memory => "memory",
            PaneId::Kernel => "kernel",
            PaneId::BenchList => "profiles",
            PaneId::Bench => "bench",
            PaneId::Tune => "knobs",
            PaneId::TuneKnob => "knob",
            PaneId::TuneChanges => "changes",
            PaneId::ExperimentList => "experiments",
            PaneId::Experiment => "experiment",
            PaneId::Findings | PaneId::FindingsStrip => "findings",
            PaneId::FindingPage => "finding",
            PaneId::DeviceDetail => "device",
            PaneId::ProcessDetail => "process",
            PaneId::KernelDetail => "message",
            PaneId::PathDetail => "path",
            PaneId::Syncs => "syncs",
            PaneId::SlowSyncs => "slow-syncs",
        }
    }
}

/// A pane: who it is, which keys act in it, how it looks on screen and on paper.
pub struct Pane {
    /// Which.
    pub id: PaneId,
    /// Contexts of its keys, most specific first; `Global` is always behind them.
    pub contexts: &'static [Context],
    /// Draws it.
    pub render: fn(&App, &Theme, Rect, &mut Canvas, bool),
    /// For one that hardly ever changes: a number that is another one whenever what it draws in the same place looks
    /// different, so that most frames take it over from the one before. `None`: draw it.
    pub stamp: fn(&App) -> Option<u64>,
    /// The same as a table to keep.
    pub sheet: fn(&App) -> Table,
    /// Rows the selection can move among.
    pub rows: fn(&App) -> usize,
}

/// All panes.
pub const PANES: &[Pane] = &[
    devices::PANE,
    device_graphs::PANE,
    processes::PANE,
    writeback::PANE,
    memory::PANE,
    kernel::PANE,
    bench::list::PANE,
    bench::PANE,
    tune::PANE,
    tune::knob::PANE,
    tune::changes::PANE,
    experiment::list::PANE,
    experiment::PANE,
    findings::PANE,
    findings::page::PANE,
    findings::strip::PANE,
    device_detail::PANE,
    process_detail::PANE,
    kernel_detail::PANE,
    path_detail::PANE,
    syncs::PANE,
    syncs::slow::PANE,
];

/// The pane of that name.
pub fn pane(id: PaneId) -> &'static Pane {
    PANES.iter().find(|p| p.id == id).unwrap_or(&PANES[0])
}

/// `live 1.0s`, `since boot`, `held at 14:02:11`: what the rates on screen cover.
pub fn when(app: &App) -> String {
    let snap = app.snap();
    if app.ui.frozen.is_some() {
        return format!("held at {}", app.clock_text(snap.time.wall_ns));
    }
    if snap.is_since_boot { "mean since boot".into() } else { format!("{:.1} s", snap.interval_secs) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pane_is_listed_once() {
        for p in PANES {
            assert_eq!(PANES.iter().filter(|other| other.id == p.id).count(), 1, "{:?}", p.id);
            assert_eq!(pane(p.id).id, p.id);
        }
    }
}

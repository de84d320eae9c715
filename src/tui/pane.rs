//! The panes.

/// A pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum PaneId {
    Devices,
    DeviceGraphs,
    Processes,
    Writeback,
    Memory,
    KernelLog,
    BenchResults,
    BenchPage,
    TuneKnobs,
    KnobPage,
    ChangeHistory,
    ExperimentList,
    ExperimentPage,
    Findings,
    IncidentPage,
    FindingsSummary,
    DeviceDetail,
    ProcessDetail,
    KernelLogDetail,
    PathDetail,
    Syncs,
    SlowSyncs,
}

impl PaneId {
    /// Its name in the file name of a screenshot.
    pub fn file_name_part(self) -> &'static str {
        match self {
            PaneId::Devices => "devices",
            PaneId::DeviceGraphs => "device-graphs",
            PaneId::Processes => "processes",
            PaneId::Writeback => "writeback",
            PaneId::Memory => "memory",
            PaneId::KernelLog => "kernel",
            PaneId::BenchResults => "profiles",
            PaneId::BenchPage => "bench",
            PaneId::TuneKnobs => "knobs",
            PaneId::KnobPage => "knob",
            PaneId::ChangeHistory => "changes",
            PaneId::ExperimentList => "experiments",
            PaneId::ExperimentPage => "experiment",
            PaneId::Findings | PaneId::FindingsSummary => "findings",
            PaneId::IncidentPage => "finding",
            PaneId::DeviceDetail => "device",
            PaneId::ProcessDetail => "process",
            PaneId::KernelLogDetail => "message",
            PaneId::PathDetail => "path",
            PaneId::Syncs => "syncs",
            PaneId::SlowSyncs => "slow-syncs",
        }
    }
}

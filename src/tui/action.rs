//! Tabs and actions. Keys, mouse and commands all come down to an action.

#![expect(missing_docs, reason = "titles and the table of keys say it")]

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// The views, in the order of their number keys; Files has the key `0`. Images can show those with a help text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize, ValueEnum, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
pub enum ViewId {
    /// All panes that fit.
    #[default]
    Overview,
    /// Block devices and network file systems, with graphs.
    Devices,
    /// Processes.
    Processes,
    /// Dirty pages, swap, pressure.
    Memory,
    /// The kernel log.
    Kernel,
    #[value(skip)]
    Bench,
    #[value(skip)]
    Tune,
    /// Findings: problems and their causes.
    Findings,
    /// Sync calls: which process waits, on which file. Traced only on request.
    Syncs,
    /// Files: which file and directory the I/O at the devices is for. Traced only on request.
    Files,
}

impl ViewId {
    /// All views in the order of their keys, `1` to `9` and `0`.
    pub const ALL: [ViewId; 10] = [
        ViewId::Overview,
        ViewId::Devices,
        ViewId::Processes,
        ViewId::Memory,
        ViewId::Kernel,
        ViewId::Bench,
        ViewId::Tune,
        ViewId::Findings,
        ViewId::Syncs,
        ViewId::Files,
    ];

    /// Its name in the line of views.
    pub fn title(self) -> &'static str {
        self.into()
    }

    /// Its name there where room is short.
    pub fn short_title(self) -> &'static str {
        match self {
            ViewId::Overview => "Over",
            ViewId::Devices => "Dev",
            ViewId::Processes => "Proc",
            ViewId::Memory => "Mem",
            ViewId::Kernel => "Log",
            ViewId::Findings => "Find",
            ViewId::Syncs => "Sync",
            ViewId::Files => "File",
            ViewId::Bench | ViewId::Tune => self.title(),
        }
    }
}

/// A request of the user; the table of keys says what each does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
pub enum Action {
    Quit,
    Suspend,
    Help,
    Redraw,
    ShowView(ViewId),
    NextView,
    NextPane,
    Zoom,
    Open,
    Back,
    MoveSelection(i16),
    MovePage(i16),
    MoveToFirst,
    MoveToLast,
    Freeze,
    StepBack,
    StepForward,
    SortLeft,
    SortRight,
    ColumnsLeft,
    ColumnsRight,
    ReverseSort,
    SortMenu,
    ChooseColumns,
    Explain,
    Search,
    SearchNext,
    SearchPrevious,
    Filter,
    UserFilter,
    ToggleActiveOnly,
    ToggleTotals,
    ToggleThreads,
    ToggleTree,
    ToggleGroups,
    ToggleFold,
    Ionice,
    Kill,
    ToggleExtendedColumns,
    NextGraph,
    ShorterInterval,
    LongerInterval,
    SetInterval,
    ResetCounters,
    SaveConfig,
    Screenshot,
    CopyPane,
    Command,
    NextTheme,
    IncludePattern,
    ExcludePattern,
    LoadMappings,
    TaskKnobs,
    Confirm,
    Run(RunAction),
    Experiment(ExperimentAction),
    Tune(TuneAction),
    Replay(ReplayAction),
    ToggleRecording,
    Fleet(FleetAction),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
pub enum FleetAction {
    ShowHosts,
    ShowDevices,
    ShowHeatmap,
    CopyCommand,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
pub enum RunAction {
    Start,
    Cancel,
    Edit,
    Reset,
    Mark,
    Compare,
    FocusList,
    FocusPage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
pub enum TuneAction {
    Apply,
    Presets,
    Discard,
    Keep,
    Undo,
    Renew,
    Lease,
    Persist,
    Graph,
    Changes,
    KnobPage,
    QuitUndo,
    QuitKeep,
    QuitDetach,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
pub enum ExperimentAction {
    TryPending,
    Reopen,
    Export,
    Apply,
    Keep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
pub enum ReplayAction {
    TogglePlay,
    StepTicks(i8),
    SkipSecs(i16),
    Faster,
    Slower,
    JumpToTime,
    Last,
    First,
    JumpToFinding { forward: bool },
}

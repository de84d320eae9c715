//! What a person can mean. Keys, mouse and commands all come down to one of these.

/// The views, in the order of their number keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ViewId {
    /// Everything that fits.
    #[default]
    Overview,
    /// Block devices and network file systems.
    Devices,
    /// Processes and threads.
    Processes,
    /// Dirty pages, writeback, swap, pressure.
    Memory,
    /// The kernel log.
    Kernel,
    /// Measuring.
    Bench,
    /// Settings of the kernel.
    Tune,
    /// What is wrong, and why.
    Findings,
    /// Who waits for syncs, on which file. Without a number: it is asked for by its own key.
    Syncs,
}

impl ViewId {
    /// All views with a number; the first has the key `1`.
    pub const ALL: [ViewId; 8] = [
        ViewId::Overview,
        ViewId::Devices,
        ViewId::Processes,
        ViewId::Memory,
        ViewId::Kernel,
        ViewId::Bench,
        ViewId::Tune,
        ViewId::Findings,
    ];

    /// Its name in the footer.
    pub fn title(self) -> &'static str {
        match self {
            ViewId::Overview => "Overview",
            ViewId::Devices => "Devices",
            ViewId::Processes => "Processes",
            ViewId::Memory => "Memory",
            ViewId::Kernel => "Kernel",
            ViewId::Bench => "Bench",
            ViewId::Tune => "Tune",
            ViewId::Findings => "Findings",
            ViewId::Syncs => "Syncs",
        }
    }
}

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Leave the program.
    Quit,
    /// Stop the program, back to the shell until `fg`.
    Suspend,
    /// Show or hide the help.
    Help,
    /// Draw everything anew.
    Redraw,
    /// Go to a view.
    ShowView(ViewId),
    /// Go to the next view.
    NextView,
    /// Go to the view before.
    PreviousView,
    /// Give the keys to the next pane of the view.
    NextPane,
    /// Show the focused pane alone, or all again.
    Zoom,
    /// Open the detail of the selected row.
    Open,
    /// Close what is on top.
    Back,
    /// Move the selection by that many rows.
    MoveSelection(i16),
    /// Move the selection by that many screens.
    MovePage(i16),
    /// To the first row.
    MoveToFirst,
    /// To the last row, or live again when frozen.
    MoveToLast,
    /// Hold the picture; sampling goes on.
    Freeze,
    /// Show the tick before.
    StepBack,
    /// Show the tick after.
    StepForward,
    /// Sort by the column to the left.
    SortLeft,
    /// Sort by the column to the right.
    SortRight,
    /// Bring columns at the left back into sight.
    ColumnsLeft,
    /// Bring columns at the right into sight.
    ColumnsRight,
    /// Turn the order round.
    ReverseSort,
    /// Ask for a text to search.
    Search,
    /// To the next hit.
    SearchNext,
    /// To the hit before.
    SearchPrevious,
    /// Ask for a text rows must contain.
    Filter,
    /// Ask for a user.
    UserFilter,
    /// Only rows that do I/O.
    ToggleActiveOnly,
    /// Sums since the start instead of rates.
    ToggleTotals,
    /// Processes or threads.
    ToggleThreads,
    /// Fold or unfold the threads of the selected process, or an entry's trace.
    ToggleFold,
    /// Ask for a new I/O priority of the selected task.
    Ionice,
    /// More columns.
    ToggleExtendedColumns,
    /// Another quantity in the graph.
    NextGraph,
    /// A shorter interval.
    ShorterInterval,
    /// A longer interval.
    LongerInterval,
    /// Ask for an interval.
    SetInterval,
    /// Count the sums from now.
    ResetCounters,
    /// Write the settings to the config file.
    SaveConfig,
    /// Ask what of the screen goes to which file.
    Screenshot,
    /// Copy the focused pane as Markdown to the local clipboard.
    CopyPane,
    /// Ask for a command.
    Command,
    /// Another theme.
    NextTheme,
    /// Ask for a pattern lines must match.
    IncludePattern,
    /// Ask for a pattern lines must not match.
    ExcludePattern,
    /// Load the mappings of the process shown.
    LoadMappings,
    /// Do what the dialog asks about.
    Confirm,
    /// Something of the Bench view.
    Bench(super::views::bench::BenchAction),
    /// Something of the experiments.
    Experiment(super::views::experiments::ExperimentAction),
    /// Something of the Tune view.
    Tune(super::views::tune::TuneAction),
    /// Something of a replay.
    Replay(super::views::replay::ReplayAction),
    /// Begin to record, or end it.
    ToggleRecording,
}

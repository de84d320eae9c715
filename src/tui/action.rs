//! Tabs and actions. Keys, mouse and commands all come down to an action.

/// The views, in the order of their number keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ViewId {
    /// The most important panes at once.
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
    /// Benchmarks.
    Bench,
    /// Settings of the kernel.
    Tune,
    /// What is wrong, and why.
    Findings,
    /// Who waits for syncs, on which file. It has a key of its own instead of a number.
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

/// A request of the user; the table of keys says what each does.
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
    /// Focus the next pane.
    NextPane,
    /// Show the focused pane alone, or all again.
    Zoom,
    /// Open the detail of the selected row.
    Open,
    /// Close what is on top.
    Back,
    /// By rows.
    MoveSelection(i16),
    /// By screens.
    MovePage(i16),
    /// To the first row.
    MoveToFirst,
    /// To the last row; when frozen, show live data again.
    MoveToLast,
    /// Freeze the screen; sampling goes on.
    Freeze,
    /// Show the tick before.
    StepBack,
    /// Show the tick after.
    StepForward,
    /// Sort by the column to the left.
    SortLeft,
    /// Sort by the column to the right.
    SortRight,
    /// Scroll the columns to the left.
    ColumnsLeft,
    /// Scroll the columns to the right.
    ColumnsRight,
    /// Reverse the order.
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
    /// Show the knobs of the process whose page is open.
    TaskKnobs,
    /// Do what the dialog asks about.
    Confirm,
    /// Something of the Bench view or of the experiments.
    Run(RunAction),
    /// Something of the experiments only.
    Experiment(ExperimentAction),
    /// Something of the Tune view.
    Tune(TuneAction),
    /// Something of a replay.
    Replay(ReplayAction),
    /// Begin to record, or end it.
    ToggleRecording,
}

/// An action on benchmarks or experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunAction {
    /// Ask to start the selected form.
    Start,
    /// End the run; a second time: kill it.
    Cancel,
    /// Edit the selected line of the form.
    Edit,
    /// Reset the selected line to its default.
    Reset,
    /// Mark the selected result.
    Mark,
    /// Compare the marked result with the selected one.
    Compare,
    /// Focus the list.
    FocusList,
    /// Focus the page beside the list.
    FocusPage,
}

/// An action in the Tune view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TuneAction {
    /// Ask to apply the pending values.
    Apply,
    /// Open or close the list of presets.
    Presets,
    /// Discard all pending values.
    Discard,
    /// Keep a leased change.
    Keep,
    /// Ask to revert a change.
    Undo,
    /// Restart a lease.
    Renew,
    /// Ask for the length of leases.
    Lease,
    /// Ask to persist a value across boots.
    Persist,
    /// Go to the graph of what the knob affects.
    Graph,
    /// Go to the changes.
    Changes,
    /// Go to the knob's page.
    KnobPage,
    /// Quit and revert leased changes.
    QuitUndo,
    /// Quit and keep leased changes.
    QuitKeep,
    /// Quit and let the leases run out.
    QuitDetach,
}

/// An action on experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExperimentAction {
    /// From the knobs: try the pending values, the preset, or the selected knob.
    TryPending,
    /// From the knobs: show the experiments again.
    Reopen,
    /// Write the report shown to a file.
    Export,
    /// Ask to apply the setting of the result shown.
    Apply,
    /// Keep the setting of the result shown.
    Keep,
}

/// An action in a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayAction {
    /// Play or pause.
    TogglePlay,
    /// Go this many ticks forward, or back.
    StepTicks(i8),
    /// Go this many seconds forward, or back.
    SkipSecs(i16),
    /// Play faster.
    Faster,
    /// Play slower.
    Slower,
    /// Ask for a time to go to.
    JumpToTime,
    /// Go to the last tick.
    Last,
    /// Go to the first tick.
    First,
    /// Go to the next or the previous finding.
    JumpToFinding {
        /// Whether to the next one.
        forward: bool,
    },
}

//! The one table of keys: look-up, footer, help screen, docs and the test against doubles all read it.

use super::action::{
    Action, Action as A, ExperimentAction as E, FleetAction as H, ReplayAction as P, RunAction as R, TuneAction as T,
    ViewId,
};
use KeyContext::{
    Bench, Columns, Detail, DeviceDetail, Devices, Dialog, Experiment, Figures, Findings, Fleet, Global, Groups, Help,
    Kernel, KernelDetail, List, ProcessDetail, Processes, Replay, Scroll, Tune, TuneLeave,
};
use crossterm::event::KeyCode;
use std::borrow::Cow;
use std::sync::LazyLock;

/// Where a key acts, with its heading in the help. A more specific context wins over a more general one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[expect(missing_docs, reason = "their headings say it")]
pub enum KeyContext {
    #[strum(serialize = "Everywhere")]
    Global,
    #[strum(serialize = "Moving")]
    Scroll,
    #[strum(serialize = "In lists")]
    List,
    #[strum(serialize = "In lists with columns")]
    Columns,
    Devices,
    Processes,
    #[strum(serialize = "Control groups, in place of the processes")]
    Groups,
    #[strum(serialize = "Kernel log")]
    Kernel,
    Bench,
    Tune,
    #[strum(serialize = "Experiments, a page of Tune")]
    Experiment,
    Findings,
    #[strum(serialize = "Leaving with a change on lease")]
    TuneLeave,
    #[strum(serialize = "In a detail")]
    Detail,
    #[strum(serialize = "Where there are figures")]
    Figures,
    #[strum(serialize = "Detail of a device")]
    DeviceDetail,
    #[strum(serialize = "Detail of a process")]
    ProcessDetail,
    #[strum(serialize = "Detail of a kernel message")]
    KernelDetail,
    #[strum(serialize = "In a recording")]
    Replay,
    #[strum(serialize = "Many hosts (iotop-plus fleet)")]
    Fleet,
    #[strum(serialize = "In this help")]
    Help,
    #[strum(serialize = "In a question")]
    Dialog,
}

#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the names say what needs no comment")]
pub struct KeyBinding {
    pub context: KeyContext,
    /// How it is written: `q`, `Space`, `^L`, `PgDn`.
    pub name: Cow<'static, str>,
    pub code: KeyCode,
    pub ctrl: bool,
    pub action: Action,
    /// Word in the footer; empty: not there.
    pub footer: &'static str,
    pub help: &'static str,
}

/// Every key, in the order of the help.
pub static BINDINGS: LazyLock<Vec<KeyBinding>> = LazyLock::new(|| {
    let bindings = KEYS.iter().flat_map(|&(context, names, action, footer, help)| {
        names.split(' ').map(move |name| {
            let (code, ctrl) = parse_key(name);
            KeyBinding { context, name: name.into(), code, ctrl, action, footer, help }
        })
    });
    bindings.collect()
});

/// Context, keys, action, word in the footer, line in the help.
type KeyRow = (KeyContext, &'static str, Action, &'static str, &'static str);

const KEYS: &[KeyRow] = &[
    (Global, "? h F1", A::Help, "help", "this help"),
    (Global, "1", A::ShowView(ViewId::Overview), "", "Overview"),
    (Global, "2", A::ShowView(ViewId::Devices), "", "Devices"),
    (Global, "3", A::ShowView(ViewId::Processes), "", "Processes"),
    (Global, "4", A::ShowView(ViewId::Memory), "", "Memory"),
    (Global, "5", A::ShowView(ViewId::Kernel), "", "Kernel log"),
    (Global, "6", A::ShowView(ViewId::Bench), "", "Bench"),
    (Global, "b", A::ShowView(ViewId::Bench), "", "Bench: measure storage"),
    (Global, "7", A::ShowView(ViewId::Tune), "", "Tune: settings of the kernel, with a way back"),
    (Global, "8", A::ShowView(ViewId::Findings), "", "Findings: what is wrong, why, and what to try"),
    (Global, "Tab", A::NextView, "", "next view"),
    (Global, "S-Tab", A::NextPane, "", "next pane of the view"),
    (Global, "w", A::NextPane, "pane", "next pane of the view"),
    (Global, "z", A::Zoom, "zoom", "the focused pane alone, or all again"),
    (Global, "0", A::ShowView(ViewId::Files), "", "Files: which file and directory the I/O is for"),
    (Global, "9 F", A::ShowView(ViewId::Syncs), "", "Syncs: who waits for them, on which file"),
    (Global, "Esc", A::Back, "", "close, unzoom, drop the filter, live again"),
    (Global, "Space", A::Freeze, "freeze", "freeze the picture; sampling goes on"),
    (Global, ",", A::StepBack, "", "the tick before (freezes)"),
    (Global, ".", A::StepForward, "", "the tick after"),
    (Global, "End G", A::MoveToLast, "", "live again; in a list that is live, its end"),
    (Global, "+", A::LongerInterval, "", "a longer interval"),
    (Global, "-", A::ShorterInterval, "", "a shorter interval"),
    (Global, "d", A::SetInterval, "", "ask for the interval in seconds"),
    (Global, "D", A::ResetCounters, "", "count sums from now"),
    (
        Global,
        ": ^P",
        A::Command,
        "",
        "all commands, found by typing; also path DIR, tune KNOB[=VALUE], syncs MS, theme NAME, interval S, include RE, exclude RE, q",
    ),
    (Global, "y", A::CopyPane, "", "copy the focused pane as Markdown to the local clipboard (OSC 52)"),
    (Global, "s", A::Screenshot, "shot", "the screen or the pane to a file: picture, page, tables, text"),
    (Global, "R", A::ToggleRecording, "", "record what the collectors see into a file, or end the recording"),
    (Global, "T", A::NextTheme, "", "next theme"),
    (Global, "W", A::SaveConfig, "", "write the settings to the config file"),
    (Global, "^L", A::Redraw, "", "redraw the screen"),
    (Global, "^Z", A::Suspend, "", "back to the shell; `fg` returns"),
    (Global, "^C", A::Quit, "", "quit"),
    (Global, "q F10", A::Quit, "quit", "quit"),
    (Replay, "Space", A::Replay(P::TogglePlay), "play", "play or pause"),
    (Replay, ",", A::Replay(P::StepTicks(-1)), "", "the sample before (pauses)"),
    (Replay, ".", A::Replay(P::StepTicks(1)), "step", "the sample after (pauses)"),
    (Replay, "[", A::Replay(P::SkipSecs(-60)), "", "a minute back"),
    (Replay, "]", A::Replay(P::SkipSecs(60)), "", "a minute on"),
    (Replay, "{", A::Replay(P::SkipSecs(-600)), "", "ten minutes back"),
    (Replay, "}", A::Replay(P::SkipSecs(600)), "", "ten minutes on"),
    (Replay, "+", A::Replay(P::Faster), "", "twice as fast, up to 256 times the recording's pace"),
    (Replay, "-", A::Replay(P::Slower), "", "half as fast"),
    (Replay, "J", A::Replay(P::JumpToTime), "jump", "ask for a time to jump to"),
    (
        Replay,
        ")",
        A::Replay(P::JumpToFinding { forward: true }),
        "finding",
        "to the next finding: where one begins or gets worse (pauses)",
    ),
    (Replay, "(", A::Replay(P::JumpToFinding { forward: false }), "", "to the finding before (pauses)"),
    (Replay, "^", A::Replay(P::First), "", "to the first sample"),
    (Replay, "End G", A::Replay(P::Last), "", "to the last sample"),
    (Scroll, "↑", A::MoveSelection(-1), "", "selection up"),
    (Scroll, "↓", A::MoveSelection(1), "", "selection down"),
    (Scroll, "k", A::MoveSelection(-1), "", "selection up"),
    (Scroll, "j", A::MoveSelection(1), "", "selection down"),
    (Scroll, "PgUp", A::MovePage(-1), "", "one screen up"),
    (Scroll, "PgDn", A::MovePage(1), "", "one screen down"),
    (Scroll, "Home", A::MoveToFirst, "", "to the first row"),
    (List, "Enter", A::Open, "detail", "detail of the selected row"),
    (List, "e", A::Explain, "", "explain a column: meaning, unit, source, and why a cell is -; also the right button"),
    (List, "/ F3", A::Search, "search", "search"),
    (List, "n", A::SearchNext, "", "next hit"),
    (List, "N", A::SearchPrevious, "", "hit before"),
    (
        List,
        "\\ F4",
        A::Filter,
        "filter",
        "show only rows that contain a text; tasks also by state=D dev=sda user=x unit=y pod=z swap>0",
    ),
    (Columns, "←", A::SortLeft, "", "sort by the column to the left"),
    (Columns, "→", A::SortRight, "sort", "sort by the column to the right"),
    (Columns, "F6", A::SortMenu, "", "sort by a column chosen from a list"),
    (Columns, "<", A::ColumnsLeft, "", "columns back to the left"),
    (Columns, ">", A::ColumnsRight, "", "further columns, where the screen is too narrow for all"),
    (Columns, "r", A::ReverseSort, "", "reverse the order"),
    (Devices, "o", A::ToggleActiveOnly, "active", "hide or show idle devices"),
    (Devices, "x", A::ToggleExtendedColumns, "columns", "the columns of iostat -x"),
    (Devices, "F2", A::ChooseColumns, "", "choose the columns and their order"),
    (Devices, "g", A::NextGraph, "graph", "another quantity in the graphs"),
    (Processes, "o", A::ToggleActiveOnly, "active", "hide or show idle tasks"),
    (
        Processes,
        "a",
        A::ToggleTotals,
        "sums",
        "sums since the start, or since the counters were reset, instead of rates",
    ),
    (Processes, "p", A::ToggleThreads, "threads", "processes or threads"),
    (Processes, "t F5", A::ToggleTree, "tree", "tree: processes below their parents, the busiest subtree first"),
    (
        Processes,
        "f",
        A::ToggleFold,
        "",
        "fold or unfold the threads of the selected process; in the tree, all below it",
    ),
    (Processes, "Z", A::ToggleGroups, "", "control groups: I/O, pressure, memory and limits of each, as a tree"),
    (Processes, "i F7 F8", A::Ionice, "ionice", "I/O class and priority of the selected task (asks first)"),
    (Processes, "F2", A::ChooseColumns, "columns", "choose the columns and their order"),
    (Processes, "F9", A::Kill, "", "signals are not sent from here: says how to send one"),
    (Processes, "u", A::UserFilter, "", "only one user's tasks"),
    (Groups, "Enter", A::Open, "processes", "the processes of the selected group"),
    (Groups, "Z", A::ToggleGroups, "back", "back to the processes"),
    (Kernel, "f", A::ToggleFold, "fold", "fold or unfold traces"),
    (Kernel, "I", A::IncludePattern, "include", "only lines that match a pattern"),
    (Kernel, "X", A::ExcludePattern, "exclude", "hide lines that match a pattern"),
    (Bench, "Enter", A::Open, "go", "start a profile (asks first), show a result, change a parameter"),
    (Bench, "S", A::Run(R::Start), "start", "start the selected profile (asks first)"),
    (Bench, "F2", A::Run(R::Edit), "edit", "change the parameters"),
    (Bench, "Delete", A::Run(R::Reset), "", "the selected parameter as the profile has it"),
    (Bench, "C", A::Run(R::Cancel), "cancel", "end the run, with the figures up to now; again: kill it"),
    (Bench, "m", A::Run(R::Mark), "mark", "mark a kept result to compare others with"),
    (
        Bench,
        "c",
        A::Run(R::Compare),
        "compare",
        "the selected result beside the marked one, else beside the newest of its profile",
    ),
    (Bench, "→", A::Run(R::FocusPage), "", "to the page beside the list"),
    (Bench, "←", A::Run(R::FocusList), "", "back to the list"),
    (Tune, "Enter", A::Open, "edit", "edit the selected knob; in the presets: propose this one"),
    (Tune, "A", A::Tune(T::Apply), "apply", "apply what is proposed, all or none (asks first)"),
    (Tune, "l", A::Tune(T::Presets), "presets", "list of presets: settings for a kind of work"),
    (
        Tune,
        "B",
        A::Experiment(E::TryPending),
        "try",
        "experiment: does it help? B is what is proposed, the preset, or the selected knob",
    ),
    (Tune, "E", A::Experiment(E::Reopen), "", "the experiments: under way, next, kept"),
    (Tune, "C", A::Tune(T::Discard), "", "discard all pending values"),
    (Tune, "K", A::Tune(T::Keep), "keep", "keep a change on lease until the machine boots"),
    (Tune, "U", A::Tune(T::Undo), "undo", "revert the selected change, else the newest (asks first)"),
    (Tune, "M", A::Tune(T::Renew), "more time", "more time: restart the lease"),
    (Tune, "L", A::Tune(T::Lease), "", "how long a lease lasts, in seconds"),
    (Tune, "P", A::Tune(T::Persist), "", "make the value last over a boot, or no longer (asks first)"),
    (Tune, "g", A::Tune(T::Graph), "graph", "to the graphs of what the knob steers; changes are marked there"),
    (Tune, "H", A::Tune(T::Changes), "changes", "to the changes, and the figures before and since"),
    (Tune, "e", A::Tune(T::KnobPage), "", "explain the knob: what it does and costs"),
    (Tune, "/ F3", A::Search, "", "search"),
    (Tune, "n", A::SearchNext, "", "next hit"),
    (Tune, "N", A::SearchPrevious, "", "hit before"),
    (Tune, "\\ F4", A::Filter, "", "show only knobs that contain a text"),
    (Experiment, "Enter", A::Open, "go", "change a line of the next experiment, show a kept one"),
    (Experiment, "S", A::Run(R::Start), "start", "start the next experiment (asks first)"),
    (Experiment, "C", A::Run(R::Cancel), "cancel", "end it, with a report of the rounds that are over; again: kill it"),
    (Experiment, "A", A::Experiment(E::Apply), "set B", "set the B of the report, on a lease (asks first)"),
    (
        Experiment,
        "K",
        A::Experiment(E::Keep),
        "keep B",
        "keep the B of the report until the machine boots; sets it if need be (asks first)",
    ),
    (Experiment, "U", A::Tune(T::Undo), "undo", "revert the newest change (asks first)"),
    (Experiment, "M", A::Tune(T::Renew), "", "more time: restart the lease of B"),
    (Experiment, "F2", A::Run(R::Edit), "edit", "to the form of the next experiment; change a line"),
    (Experiment, "Delete", A::Run(R::Reset), "", "the selected line as it is by itself"),
    (Experiment, "m", A::Run(R::Mark), "mark", "mark a kept experiment to compare others with"),
    (
        Experiment,
        "c",
        A::Run(R::Compare),
        "compare",
        "the selected experiment beside the marked one, else beside the newest of its workload",
    ),
    (
        Experiment,
        "O",
        A::Experiment(E::Export),
        "file",
        "write the report to a file: Markdown, JSON or text, by its ending",
    ),
    (Experiment, "→", A::Run(R::FocusPage), "", "to the page beside the list"),
    (Experiment, "←", A::Run(R::FocusList), "", "back to the list"),
    (TuneLeave, "u", A::Tune(T::QuitUndo), "undo", "revert the change now, and quit"),
    (TuneLeave, "k", A::Tune(T::QuitKeep), "keep", "keep the change, and quit"),
    (TuneLeave, "l", A::Tune(T::QuitDetach), "lease", "quit; the change reverts when its lease ends"),
    (TuneLeave, "Esc n q", A::Back, "stay", "do not quit"),
    (TuneLeave, "^C", A::Tune(T::QuitUndo), "", "revert the change now, and quit"),
    (
        Findings,
        "Enter",
        A::Open,
        "go there",
        "to the knob, the benchmark, the device or the task that the finding points to",
    ),
    (Findings, "→ ←", A::NextPane, "links", "to the page of the finding and its links, and back"),
    (Detail, "Esc Backspace", A::Back, "back", "back to the list"),
    (
        Figures,
        "e",
        A::Explain,
        "explain",
        "explain a figure: meaning, unit, source, and why it is -; also the right button",
    ),
    (DeviceDetail, "g", A::NextGraph, "graph", "another quantity in the graphs"),
    (ProcessDetail, "7", A::TaskKnobs, "tune", "its limit of open files and I/O priority in the Tune view"),
    (ProcessDetail, "i F7 F8", A::Ionice, "ionice", "its I/O class and priority (asks first)"),
    (ProcessDetail, "v", A::LoadMappings, "mappings", "read Size, Rss and Swap of its mappings; walks its page tables"),
    (KernelDetail, "Enter", A::Open, "task or device", "detail of the task it names, else of the device"),
    (Fleet, "1", A::Fleet(H::ShowHosts), "", "the hosts, the worst first"),
    (Fleet, "2", A::Fleet(H::ShowDevices), "", "the devices, those of a model beside each other"),
    (Fleet, "3", A::Fleet(H::ShowHeatmap), "", "heat map: hosts over time"),
    (Fleet, "Enter", A::Open, "host", "the history of the selected host"),
    (
        Fleet,
        "y",
        A::Fleet(H::CopyCommand),
        "ssh",
        "copy the ssh line to the host; of a recording, the line that replays it",
    ),
    (Fleet, "[", A::Replay(P::SkipSecs(-60)), "back", "a minute back"),
    (Fleet, "]", A::Replay(P::SkipSecs(60)), "", "a minute on"),
    (Fleet, "{", A::Replay(P::SkipSecs(-600)), "", "ten minutes back"),
    (Fleet, "}", A::Replay(P::SkipSecs(600)), "", "ten minutes on"),
    (Fleet, "J", A::Replay(P::JumpToTime), "jump", "ask for a time to jump to"),
    (Fleet, "End G", A::Replay(P::Last), "now", "back to the present"),
    (Fleet, "o", A::ToggleActiveOnly, "active", "only hosts with something wrong, or devices in use"),
    (Fleet, "g", A::NextGraph, "quantity", "another quantity in the heat map"),
    (Fleet, "+", A::LongerInterval, "", "a longer time in the heat map"),
    (Fleet, "-", A::ShorterInterval, "", "a shorter time in the heat map"),
    (Fleet, ",", A::StepBack, "", "on the page of a host: the values before"),
    (Fleet, ".", A::StepForward, "", "on the page of a host: the values after"),
    (Dialog, "y", A::Confirm, "yes", "yes"),
    (Dialog, "s", A::Screenshot, "", "the screen, question and all, to a file"),
    (Dialog, "Enter", A::Confirm, "", "yes"),
    (Dialog, "n Esc q", A::Back, "no", "no"),
    (Help, "/ F3", A::Search, "search", "show only lines that contain a text"),
    (Help, "Esc q", A::Back, "close", "close the help"),
];

/// `F6` is function key 6.
fn function_key(name: &str) -> Option<u8> {
    name.strip_prefix('F')?.parse().ok()
}

/// The key of a name, and whether it is pressed with the control key.
pub(super) fn parse_key(name: &str) -> (KeyCode, bool) {
    let code = match name {
        "Space" => KeyCode::Char(' '),
        "Enter" => KeyCode::Enter,
        "Esc" => KeyCode::Esc,
        "Tab" => KeyCode::Tab,
        "S-Tab" => KeyCode::BackTab,
        "Backspace" => KeyCode::Backspace,
        "Delete" => KeyCode::Delete,
        "Home" => KeyCode::Home,
        "End" => KeyCode::End,
        "PgUp" => KeyCode::PageUp,
        "PgDn" => KeyCode::PageDown,
        "↑" => KeyCode::Up,
        "↓" => KeyCode::Down,
        "←" => KeyCode::Left,
        "→" => KeyCode::Right,
        _ if let Some(n) = function_key(name) => KeyCode::F(n),
        _ => match name.strip_prefix('^').and_then(|rest| rest.chars().next()) {
            Some(letter) => return (KeyCode::Char(letter.to_ascii_lowercase()), true),
            None => KeyCode::Char(name.chars().next().unwrap_or(' ')),
        },
    };
    (code, false)
}

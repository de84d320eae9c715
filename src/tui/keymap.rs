//! The one table of keys: look-up, footer, help screen and the test against doubles all read it.

use super::action::{Action, ExperimentAction as E, ReplayAction as P, RunAction as R, TuneAction as T, ViewId};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::borrow::Cow;
use std::sync::LazyLock;

/// Where a key acts. A more specific context wins over a more general one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyContext {
    /// Everywhere but in a line of input or a dialog.
    Global,
    /// Whatever scrolls: lists, details, the help.
    Scroll,
    /// Any list.
    List,
    /// The Devices pane.
    Devices,
    /// The Processes pane.
    Processes,
    /// The Kernel pane.
    Kernel,
    /// The Bench view.
    Bench,
    /// The Tune view.
    Tune,
    /// The experiments of the Tune view.
    Experiment,
    /// The Findings view.
    Findings,
    /// The question about leases when leaving.
    TuneLeave,
    /// A detail page.
    Detail,
    /// The detail page of a device.
    DeviceDetail,
    /// The detail page of a process.
    ProcessDetail,
    /// The detail page of a kernel message.
    KernelDetail,
    /// While a recording is on the screen.
    Replay,
    /// The help screen.
    Help,
    /// A question.
    Dialog,
}

impl KeyContext {
    /// Its heading in the help.
    pub fn title(self) -> &'static str {
        match self {
            KeyContext::Global => "Everywhere",
            KeyContext::Scroll => "Moving",
            KeyContext::List => "In lists",
            KeyContext::Devices => "Devices",
            KeyContext::Processes => "Processes",
            KeyContext::Kernel => "Kernel log",
            KeyContext::Bench => "Bench",
            KeyContext::Tune => "Tune",
            KeyContext::Experiment => "Experiments, a page of Tune",
            KeyContext::Findings => "Findings",
            KeyContext::TuneLeave => "Leaving with a change on lease",
            KeyContext::Detail => "In a detail",
            KeyContext::DeviceDetail => "Detail of a device",
            KeyContext::ProcessDetail => "Detail of a process",
            KeyContext::KernelDetail => "Detail of a kernel message",
            KeyContext::Replay => "In a recording",
            KeyContext::Help => "In this help",
            KeyContext::Dialog => "In a question",
        }
    }
}

/// One key in one context.
#[derive(Debug, Clone, Copy)]
pub struct KeyBinding {
    /// Where.
    pub context: KeyContext,
    /// Key.
    pub code: KeyCode,
    /// With the control key.
    pub ctrl: bool,
    /// Meaning.
    pub action: Action,
    /// Word in the footer; empty: not there.
    pub footer: &'static str,
    /// Line in the help.
    pub help: &'static str,
}

const fn key(
    context: KeyContext,
    code: KeyCode,
    action: Action,
    footer: &'static str,
    help: &'static str,
) -> KeyBinding {
    KeyBinding { context, code, ctrl: false, action, footer, help }
}

const fn char_key(
    context: KeyContext,
    c: char,
    action: Action,
    footer: &'static str,
    help: &'static str,
) -> KeyBinding {
    key(context, KeyCode::Char(c), action, footer, help)
}

const fn ctrl_key(c: char, action: Action, help: &'static str) -> KeyBinding {
    KeyBinding { context: KeyContext::Global, code: KeyCode::Char(c), ctrl: true, action, footer: "", help }
}

use KeyContext::{
    Bench, Detail, DeviceDetail, Devices, Dialog, Experiment, Findings, Global, Help, Kernel, KernelDetail, List,
    ProcessDetail, Processes, Replay, Scroll, Tune, TuneLeave,
};

/// Every key there is.
pub const BINDINGS: &[KeyBinding] = &[
    char_key(Dialog, 'y', Action::Confirm, "yes", "do it"),
    char_key(Dialog, 's', Action::Screenshot, "", "the screen, question and all, to a file"),
    key(Dialog, KeyCode::Enter, Action::Confirm, "", "do it"),
    char_key(Dialog, 'n', Action::Back, "no", "leave it"),
    key(Dialog, KeyCode::Esc, Action::Back, "", "leave it"),
    char_key(Dialog, 'q', Action::Back, "", "leave it"),
    key(Help, KeyCode::Esc, Action::Back, "close", "close the help"),
    char_key(Help, 'q', Action::Back, "", "close the help"),
    char_key(DeviceDetail, 'g', Action::NextGraph, "graph", "another quantity in the graphs"),
    char_key(
        ProcessDetail,
        't',
        Action::TaskKnobs,
        "tune",
        "its limit of open files and I/O priority in the Tune view",
    ),
    char_key(
        ProcessDetail,
        'm',
        Action::LoadMappings,
        "mappings",
        "read Size, Rss and Swap of its mappings; walks its page tables",
    ),
    key(
        KernelDetail,
        KeyCode::Enter,
        Action::Open,
        "task or device",
        "detail of the task it names, else of the device",
    ),
    key(Detail, KeyCode::Esc, Action::Back, "back", "back to the list"),
    key(Detail, KeyCode::Backspace, Action::Back, "", "back to the list"),
    char_key(Processes, 'o', Action::ToggleActiveOnly, "active", "only tasks that do I/O"),
    char_key(Processes, 'a', Action::ToggleTotals, "sums", "sums since the start (or since D) instead of rates"),
    char_key(Processes, 'p', Action::ToggleThreads, "threads", "processes or threads"),
    char_key(Processes, 'f', Action::ToggleFold, "", "fold or unfold the threads of the selected process"),
    char_key(Processes, 'i', Action::Ionice, "ionice", "I/O class and priority of the selected task (asks first)"),
    char_key(Processes, 'u', Action::UserFilter, "user", "only one user's tasks"),
    char_key(Devices, 'o', Action::ToggleActiveOnly, "active", "only devices that do I/O"),
    char_key(Devices, 'x', Action::ToggleExtendedColumns, "columns", "the columns of iostat -x"),
    char_key(Devices, 'g', Action::NextGraph, "graph", "another quantity in the graphs"),
    char_key(Kernel, 'f', Action::ToggleFold, "fold", "fold or unfold traces"),
    char_key(Kernel, 'I', Action::IncludePattern, "include", "only lines that match a pattern"),
    char_key(Kernel, 'X', Action::ExcludePattern, "exclude", "hide lines that match a pattern"),
    key(Tune, KeyCode::Enter, Action::Open, "edit", "edit the selected knob; in the presets: propose this one"),
    char_key(Tune, 'a', Action::Tune(T::Apply), "apply", "apply what is proposed, all or none (asks first)"),
    char_key(Tune, 'p', Action::Tune(T::Presets), "presets", "presets: settings for a kind of work"),
    char_key(
        Tune,
        'e',
        Action::Experiment(E::TryPending),
        "try",
        "experiment: does it help? B is what is proposed, the preset, or the selected knob",
    ),
    char_key(Tune, 'E', Action::Experiment(E::Reopen), "", "the experiments: under way, next, kept"),
    char_key(Tune, 'x', Action::Tune(T::Discard), "", "drop every proposal; Esc drops that of the selected knob"),
    char_key(Tune, 'K', Action::Tune(T::Keep), "keep", "let a change on lease stay until the machine boots"),
    char_key(Tune, 'u', Action::Tune(T::Undo), "undo", "take back the selected change, else the newest (asks first)"),
    char_key(Tune, 'R', Action::Tune(T::Renew), "renew", "start the lease anew"),
    char_key(Tune, 'L', Action::Tune(T::Lease), "", "how long a lease lasts, in seconds"),
    char_key(Tune, 'P', Action::Tune(T::Persist), "", "make the value last over a boot, or no longer (asks first)"),
    char_key(
        Tune,
        'g',
        Action::Tune(T::Graph),
        "graph",
        "to the graphs of what the knob steers; changes are marked there",
    ),
    char_key(Tune, 'c', Action::Tune(T::Changes), "changes", "to the changes, and the figures before and since"),
    char_key(Tune, 'i', Action::Tune(T::KnobPage), "", "to what the knob does and costs"),
    char_key(Tune, '/', Action::Search, "", "search; n and N go on"),
    char_key(Tune, 'n', Action::SearchNext, "", "next hit"),
    char_key(Tune, 'N', Action::SearchPrevious, "", "hit before"),
    char_key(Tune, '\\', Action::Filter, "", "show only knobs that contain a text"),
    key(Experiment, KeyCode::Enter, Action::Open, "go", "change a line of the next experiment, show a kept one"),
    char_key(Experiment, 'r', Action::Run(R::Start), "run", "start the next experiment (asks first)"),
    char_key(
        Experiment,
        'x',
        Action::Run(R::Cancel),
        "cancel",
        "end it, with a report of the rounds that are over; again: kill it",
    ),
    char_key(
        Experiment,
        'a',
        Action::Experiment(E::Apply),
        "set B",
        "set the B of the report, on a lease (asks first)",
    ),
    char_key(
        Experiment,
        'K',
        Action::Experiment(E::Keep),
        "keep B",
        "let the B of the report stay until the machine boots; sets it if need be (asks first)",
    ),
    char_key(Experiment, 'u', Action::Tune(T::Undo), "undo", "take back the newest change (asks first)"),
    char_key(Experiment, 'R', Action::Tune(T::Renew), "", "start the lease of B anew"),
    char_key(Experiment, 'e', Action::Run(R::Edit), "edit", "to the form of the next experiment; change a line"),
    key(Experiment, KeyCode::Delete, Action::Run(R::Reset), "", "the selected line as it is by itself"),
    char_key(Experiment, 'm', Action::Run(R::Mark), "mark", "mark a kept experiment to compare others with"),
    char_key(
        Experiment,
        'c',
        Action::Run(R::Compare),
        "compare",
        "the marked experiment and the selected one side by side",
    ),
    char_key(
        Experiment,
        'o',
        Action::Experiment(E::Export),
        "file",
        "write the report to a file: Markdown, JSON or text, by its ending",
    ),
    key(Experiment, KeyCode::Right, Action::Run(R::FocusPage), "", "to the page beside the list"),
    key(Experiment, KeyCode::Left, Action::Run(R::FocusList), "", "back to the list"),
    char_key(TuneLeave, 'u', Action::Tune(T::QuitUndo), "undo", "take the change back now, and leave"),
    char_key(TuneLeave, 'k', Action::Tune(T::QuitKeep), "keep", "let the change stay, and leave"),
    char_key(
        TuneLeave,
        'l',
        Action::Tune(T::QuitDetach),
        "lease",
        "leave; the change takes itself back when its time is over",
    ),
    key(TuneLeave, KeyCode::Esc, Action::Back, "stay", "do not leave"),
    char_key(TuneLeave, 'n', Action::Back, "", "do not leave"),
    char_key(TuneLeave, 'q', Action::Back, "", "do not leave"),
    KeyBinding {
        context: TuneLeave,
        code: KeyCode::Char('c'),
        ctrl: true,
        action: Action::Tune(T::QuitUndo),
        footer: "",
        help: "take the change back now, and leave",
    },
    key(Bench, KeyCode::Enter, Action::Open, "go", "start a profile (asks first), show a result, change a parameter"),
    char_key(Bench, 'r', Action::Run(R::Start), "run", "start the selected profile (asks first)"),
    char_key(Bench, 'e', Action::Run(R::Edit), "edit", "change the parameters"),
    char_key(Bench, 'u', Action::Run(R::Reset), "", "the selected parameter as the profile has it"),
    char_key(Bench, 'x', Action::Run(R::Cancel), "cancel", "end the run, with the figures up to now; again: kill it"),
    char_key(Bench, 'm', Action::Run(R::Mark), "mark", "mark a kept result to compare others with"),
    char_key(Bench, 'c', Action::Run(R::Compare), "compare", "the marked result and the selected one side by side"),
    key(Bench, KeyCode::Right, Action::Run(R::FocusPage), "", "to the page beside the list"),
    key(Bench, KeyCode::Left, Action::Run(R::FocusList), "", "back to the list"),
    key(
        Findings,
        KeyCode::Enter,
        Action::Open,
        "go there",
        "to the knob, the benchmark, the device or the task that the finding points to",
    ),
    key(Findings, KeyCode::Right, Action::NextPane, "ways on", "to the page of the story and its ways on, and back"),
    key(Findings, KeyCode::Left, Action::NextPane, "", "to the page of the story and its ways on, and back"),
    key(Scroll, KeyCode::Up, Action::MoveSelection(-1), "", "selection up"),
    key(Scroll, KeyCode::Down, Action::MoveSelection(1), "", "selection down"),
    char_key(Scroll, 'k', Action::MoveSelection(-1), "", "selection up"),
    char_key(Scroll, 'j', Action::MoveSelection(1), "", "selection down"),
    key(Scroll, KeyCode::PageUp, Action::MovePage(-1), "", "one screen up"),
    key(Scroll, KeyCode::PageDown, Action::MovePage(1), "", "one screen down"),
    key(Scroll, KeyCode::Home, Action::MoveToFirst, "", "to the first row"),
    key(List, KeyCode::Enter, Action::Open, "detail", "detail of the selected row"),
    key(List, KeyCode::Left, Action::SortLeft, "", "sort by the column to the left"),
    key(List, KeyCode::Right, Action::SortRight, "sort", "sort by the column to the right"),
    char_key(List, '<', Action::ColumnsLeft, "", "columns back to the left"),
    char_key(List, '>', Action::ColumnsRight, "", "further columns, where the screen is too narrow for all"),
    char_key(List, 'r', Action::ReverseSort, "", "reverse the order"),
    char_key(List, '/', Action::Search, "search", "search; n and N go on"),
    char_key(List, 'n', Action::SearchNext, "", "next hit"),
    char_key(List, 'N', Action::SearchPrevious, "", "hit before"),
    char_key(List, '\\', Action::Filter, "filter", "show only rows that contain a text"),
    char_key(Replay, ' ', Action::Replay(P::TogglePlay), "play", "play or pause"),
    char_key(Replay, ',', Action::Replay(P::StepTicks(-1)), "", "the sample before (pauses)"),
    char_key(Replay, '.', Action::Replay(P::StepTicks(1)), "step", "the sample after (pauses)"),
    char_key(Replay, '[', Action::Replay(P::SkipSecs(-60)), "", "a minute back"),
    char_key(Replay, ']', Action::Replay(P::SkipSecs(60)), "", "a minute on"),
    char_key(Replay, '{', Action::Replay(P::SkipSecs(-600)), "", "ten minutes back"),
    char_key(Replay, '}', Action::Replay(P::SkipSecs(600)), "", "ten minutes on"),
    char_key(Replay, '+', Action::Replay(P::Faster), "", "twice as fast, up to 256 times the recording's pace"),
    char_key(Replay, '-', Action::Replay(P::Slower), "", "half as fast"),
    char_key(Replay, 'J', Action::Replay(P::JumpToTime), "jump", "ask for a time to jump to"),
    char_key(
        Replay,
        ')',
        Action::Replay(P::JumpToFinding { forward: true }),
        "finding",
        "to the next finding: where one begins or gets worse (pauses; Esc ends the search)",
    ),
    char_key(Replay, '(', Action::Replay(P::JumpToFinding { forward: false }), "", "to the finding before (pauses)"),
    char_key(Replay, '^', Action::Replay(P::First), "", "to the first sample"),
    key(Replay, KeyCode::End, Action::Replay(P::Last), "", "to the last sample"),
    char_key(Replay, 'G', Action::Replay(P::Last), "", "to the last sample"),
    char_key(Global, '?', Action::Help, "help", "this help"),
    char_key(Global, 'h', Action::Help, "", "this help"),
    key(Global, KeyCode::F(1), Action::Help, "", "this help"),
    char_key(Global, '1', Action::ShowView(ViewId::Overview), "", "Overview"),
    char_key(Global, '2', Action::ShowView(ViewId::Devices), "", "Devices"),
    char_key(Global, '3', Action::ShowView(ViewId::Processes), "", "Processes"),
    char_key(Global, '4', Action::ShowView(ViewId::Memory), "", "Memory"),
    char_key(Global, '5', Action::ShowView(ViewId::Kernel), "", "Kernel log"),
    char_key(Global, '6', Action::ShowView(ViewId::Bench), "", "Bench"),
    char_key(Global, 'b', Action::ShowView(ViewId::Bench), "", "Bench: measure storage"),
    char_key(Global, '7', Action::ShowView(ViewId::Tune), "", "Tune"),
    char_key(Global, '8', Action::ShowView(ViewId::Findings), "", "Findings: what is wrong, why, and what to try"),
    char_key(Global, 't', Action::ShowView(ViewId::Tune), "", "Tune: settings of the kernel, with a way back"),
    key(Global, KeyCode::Tab, Action::NextView, "", "next view"),
    key(Global, KeyCode::BackTab, Action::NextPane, "", "next pane of the view"),
    char_key(Global, 'w', Action::NextPane, "pane", "next pane of the view"),
    char_key(Global, 'z', Action::Zoom, "zoom", "the focused pane alone, or all again"),
    char_key(Global, 'F', Action::ShowView(ViewId::Syncs), "syncs", "Syncs: who waits for them, on which file"),
    key(Global, KeyCode::Esc, Action::Back, "", "close, unzoom, drop the filter, live again"),
    char_key(Global, ' ', Action::Freeze, "freeze", "hold the picture; sampling goes on"),
    char_key(Global, ',', Action::StepBack, "", "the tick before (freezes)"),
    char_key(Global, '.', Action::StepForward, "", "the tick after"),
    key(Global, KeyCode::End, Action::MoveToLast, "", "live again; in a list that is live, its end"),
    char_key(Global, 'G', Action::MoveToLast, "", "live again; in a list that is live, its end"),
    char_key(Global, '+', Action::LongerInterval, "", "a longer interval"),
    char_key(Global, '-', Action::ShorterInterval, "", "a shorter interval"),
    char_key(Global, 'd', Action::SetInterval, "", "ask for the interval in seconds"),
    char_key(Global, 'D', Action::ResetCounters, "", "count sums from now"),
    char_key(
        Global,
        ':',
        Action::Command,
        "",
        "command: path DIR, tune KNOB, syncs MS, theme NAME, interval S, include RE, exclude RE, q",
    ),
    char_key(Global, 'y', Action::CopyPane, "", "copy the focused pane as Markdown to the local clipboard (OSC 52)"),
    char_key(Global, 's', Action::Screenshot, "shot", "the screen or the pane to a file: picture, page, tables, text"),
    char_key(
        Global,
        'R',
        Action::ToggleRecording,
        "",
        "record what the collectors see into a file, or end the recording",
    ),
    char_key(Global, 'T', Action::NextTheme, "", "next theme"),
    char_key(Global, 'W', Action::SaveConfig, "", "write these settings to the config file"),
    ctrl_key('l', Action::Redraw, "draw everything anew"),
    ctrl_key('z', Action::Suspend, "back to the shell; `fg` returns"),
    ctrl_key('c', Action::Quit, "quit"),
    char_key(Global, 'q', Action::Quit, "quit", "quit"),
];

/// What a key means; `contexts` from the most specific to the most general.
pub fn lookup_action(contexts: &[KeyContext], event: &KeyEvent) -> Option<Action> {
    let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
    if event.modifiers.contains(KeyModifiers::ALT) {
        return None;
    }
    contexts.iter().find_map(|context| {
        BINDINGS.iter().find(|b| b.context == *context && b.code == event.code && b.ctrl == ctrl).map(|b| b.action)
    })
}

/// How a key is written: `q`, `Space`, `^L`, `PgDn`.
pub fn key_name(binding: &KeyBinding) -> Cow<'static, str> {
    const PRINTABLE: &str =
        "!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~";
    let name = match binding.code {
        KeyCode::Char(' ') => "Space",
        KeyCode::Char(c) if binding.ctrl => return format!("^{}", c.to_ascii_uppercase()).into(),
        KeyCode::Char(c @ '!'..='~') => {
            let at = c as usize - '!' as usize;
            &PRINTABLE[at..=at]
        }
        KeyCode::Char(c) => return c.to_string().into(),
        KeyCode::Up => "↑",
        KeyCode::Down => "↓",
        KeyCode::Left => "←",
        KeyCode::Right => "→",
        KeyCode::PageUp => "PgUp",
        KeyCode::PageDown => "PgDn",
        KeyCode::BackTab => "S-Tab",
        KeyCode::F(n) => return format!("F{n}").into(),
        other => return format!("{other:?}").into(),
    };
    name.into()
}

/// The keys that the footer may show: a small part of the table, which is looked through at every frame.
static FOOTER_BINDINGS: LazyLock<Vec<&KeyBinding>> =
    LazyLock::new(|| BINDINGS.iter().filter(|b| !b.footer.is_empty()).collect());

/// The keys of the footer for these contexts, most specific first, one for each action.
pub fn footer_bindings(contexts: &[KeyContext]) -> Vec<&'static KeyBinding> {
    let mut out: Vec<&KeyBinding> = Vec::new();
    for context in contexts {
        for b in FOOTER_BINDINGS.iter().filter(|b| b.context == *context) {
            if !out.iter().any(|o| o.action == b.action || (o.code == b.code && o.ctrl == b.ctrl)) {
                out.push(b);
            }
        }
    }
    out
}

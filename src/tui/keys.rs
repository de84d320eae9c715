//! The one table of keys: look-up, footer, help screen and the test against doubles all read it.

use super::action::{Action, View};
use super::replay::ReplayAction;
use super::tuning::TuneAction;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::borrow::Cow;
use std::sync::LazyLock;

/// Where a key acts. A more specific context wins over a more general one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Context {
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

impl Context {
    /// Its heading in the help.
    pub fn title(self) -> &'static str {
        match self {
            Context::Global => "Everywhere",
            Context::Scroll => "Moving",
            Context::List => "In lists",
            Context::Devices => "Devices",
            Context::Processes => "Processes",
            Context::Kernel => "Kernel log",
            Context::Bench => "Bench",
            Context::Tune => "Tune",
            Context::Experiment => "Experiments, a page of Tune",
            Context::Findings => "Findings",
            Context::TuneLeave => "Leaving with a change on lease",
            Context::Detail => "In a detail",
            Context::DeviceDetail => "Detail of a device",
            Context::ProcessDetail => "Detail of a process",
            Context::KernelDetail => "Detail of a kernel message",
            Context::Replay => "In a recording",
            Context::Help => "In this help",
            Context::Dialog => "In a question",
        }
    }
}

/// One key in one context.
#[derive(Debug, Clone, Copy)]
pub struct Binding {
    /// Where.
    pub context: Context,
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
    context: Context,
    code: KeyCode,
    action: Action,
    footer: &'static str,
    help: &'static str,
) -> Binding {
    Binding { context, code, ctrl: false, action, footer, help }
}

const fn ch(context: Context, c: char, action: Action, footer: &'static str, help: &'static str) -> Binding {
    key(context, KeyCode::Char(c), action, footer, help)
}

const fn ctrl(c: char, action: Action, help: &'static str) -> Binding {
    Binding { context: Context::Global, code: KeyCode::Char(c), ctrl: true, action, footer: "", help }
}

use super::bench::BenchAction;
use super::experiment::ExperimentAction as E;
use Context::{
    Bench, Detail, DeviceDetail, Devices, Dialog, Experiment, Findings, Global, Help, Kernel, KernelDetail,
    List, ProcessDetail, Processes, Replay, Scroll, Tune, TuneLeave,
};
use ReplayAction as P;
use TuneAction as T;

/// Every key there is.
pub const BINDINGS: &[Binding] = &[
    ch(Dialog, 'y', Action::Confirm, "yes", "do it"),
    ch(Dialog, 's', Action::Screenshot, "", "the screen, question and all, to a file"),
    key(Dialog, KeyCode::Enter, Action::Confirm, "", "do it"),
    ch(Dialog, 'n', Action::Back, "no", "leave it"),
    key(Dialog, KeyCode::Esc, Action::Back, "", "leave it"),
    ch(Dialog, 'q', Action::Back, "", "leave it"),
    key(Help, KeyCode::Esc, Action::Back, "close", "close the help"),
    ch(Help, 'q', Action::Back, "", "close the help"),
    ch(DeviceDetail, 'g', Action::Graph, "graph", "another quantity in the graphs"),
    ch(
        ProcessDetail,
        't',
        Action::Tune(T::OfTask),
        "tune",
        "its limit of open files and I/O priority in the Tune view",
    ),
    ch(
        ProcessDetail,
        'm',
        Action::Mappings,
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
    ch(Processes, 'o', Action::OnlyActive, "active", "only tasks that do I/O"),
    ch(Processes, 'a', Action::Accumulated, "sums", "sums since the start (or since D) instead of rates"),
    ch(Processes, 'p', Action::Threads, "threads", "processes or threads"),
    ch(Processes, 'f', Action::Fold, "", "fold or unfold the threads of the selected process"),
    ch(Processes, 'i', Action::Ionice, "ionice", "I/O class and priority of the selected task (asks first)"),
    ch(Processes, 'u', Action::UserFilter, "user", "only one user's tasks"),
    ch(Devices, 'o', Action::OnlyActive, "active", "only devices that do I/O"),
    ch(Devices, 'x', Action::Extended, "columns", "the columns of iostat -x"),
    ch(Devices, 'g', Action::Graph, "graph", "another quantity in the graphs"),
    ch(Kernel, 'f', Action::Fold, "fold", "fold or unfold traces"),
    ch(Kernel, 'I', Action::Include, "include", "only lines that match a pattern"),
    ch(Kernel, 'X', Action::Exclude, "exclude", "hide lines that match a pattern"),
    key(
        Tune,
        KeyCode::Enter,
        Action::Open,
        "edit",
        "edit the selected knob; in the presets: propose this one",
    ),
    ch(Tune, 'a', Action::Tune(T::Apply), "apply", "apply what is proposed, all or none (asks first)"),
    ch(Tune, 'p', Action::Tune(T::Presets), "presets", "presets: settings for a kind of work"),
    ch(
        Tune,
        'e',
        Action::Experiment(E::Try),
        "try",
        "experiment: does it help? B is what is proposed, the preset, or the selected knob",
    ),
    ch(Tune, 'E', Action::Experiment(E::Return), "", "the experiments: under way, next, kept"),
    ch(Tune, 'x', Action::Tune(T::Drop), "", "drop every proposal; Esc drops that of the selected knob"),
    ch(Tune, 'K', Action::Tune(T::Keep), "keep", "let a change on lease stay until the machine boots"),
    ch(
        Tune,
        'u',
        Action::Tune(T::Undo),
        "undo",
        "take back the selected change, else the newest (asks first)",
    ),
    ch(Tune, 'R', Action::Tune(T::Renew), "renew", "start the lease anew"),
    ch(Tune, 'L', Action::Tune(T::Lease), "", "how long a lease lasts, in seconds"),
    ch(Tune, 'P', Action::Tune(T::Persist), "", "make the value last over a boot, or no longer (asks first)"),
    ch(
        Tune,
        'g',
        Action::Tune(T::Graph),
        "graph",
        "to the graphs of what the knob steers; changes are marked there",
    ),
    ch(Tune, 'c', Action::Tune(T::Changes), "changes", "to the changes, and the figures before and since"),
    ch(Tune, 'i', Action::Tune(T::About), "", "to what the knob does and costs"),
    ch(Tune, '/', Action::Search, "", "search; n and N go on"),
    ch(Tune, 'n', Action::SearchNext, "", "next hit"),
    ch(Tune, 'N', Action::SearchPrevious, "", "hit before"),
    ch(Tune, '\\', Action::Filter, "", "show only knobs that contain a text"),
    key(
        Experiment,
        KeyCode::Enter,
        Action::Open,
        "go",
        "change a line of the next experiment, show a kept one",
    ),
    ch(Experiment, 'r', Action::Experiment(E::Start), "run", "start the next experiment (asks first)"),
    ch(
        Experiment,
        'x',
        Action::Experiment(E::Cancel),
        "cancel",
        "end it, with a report of the rounds that are over; again: kill it",
    ),
    ch(
        Experiment,
        'a',
        Action::Experiment(E::Apply),
        "set B",
        "set the B of the report, on a lease (asks first)",
    ),
    ch(
        Experiment,
        'K',
        Action::Experiment(E::Keep),
        "keep B",
        "let the B of the report stay until the machine boots; sets it if need be (asks first)",
    ),
    ch(Experiment, 'u', Action::Tune(T::Undo), "undo", "take back the newest change (asks first)"),
    ch(Experiment, 'R', Action::Tune(T::Renew), "", "start the lease of B anew"),
    ch(
        Experiment,
        'e',
        Action::Experiment(E::Edit),
        "edit",
        "to the form of the next experiment; change a line",
    ),
    key(
        Experiment,
        KeyCode::Delete,
        Action::Experiment(E::Reset),
        "",
        "the selected line as it is by itself",
    ),
    ch(Experiment, 'm', Action::Experiment(E::Mark), "mark", "mark a kept experiment to compare others with"),
    ch(
        Experiment,
        'c',
        Action::Experiment(E::Compare),
        "compare",
        "the marked experiment and the selected one side by side",
    ),
    ch(
        Experiment,
        'o',
        Action::Experiment(E::Export),
        "file",
        "write the report to a file: Markdown, JSON or text, by its ending",
    ),
    key(Experiment, KeyCode::Right, Action::Experiment(E::ToPage), "", "to the page beside the list"),
    key(Experiment, KeyCode::Left, Action::Experiment(E::ToList), "", "back to the list"),
    ch(TuneLeave, 'u', Action::Tune(T::LeaveUndo), "undo", "take the change back now, and leave"),
    ch(TuneLeave, 'k', Action::Tune(T::LeaveKeep), "keep", "let the change stay, and leave"),
    ch(
        TuneLeave,
        'l',
        Action::Tune(T::LeaveLease),
        "lease",
        "leave; the change takes itself back when its time is over",
    ),
    key(TuneLeave, KeyCode::Esc, Action::Back, "stay", "do not leave"),
    ch(TuneLeave, 'n', Action::Back, "", "do not leave"),
    ch(TuneLeave, 'q', Action::Back, "", "do not leave"),
    Binding {
        context: TuneLeave,
        code: KeyCode::Char('c'),
        ctrl: true,
        action: Action::Tune(T::LeaveUndo),
        footer: "",
        help: "take the change back now, and leave",
    },
    key(
        Bench,
        KeyCode::Enter,
        Action::Open,
        "go",
        "start a profile (asks first), show a result, change a parameter",
    ),
    ch(Bench, 'r', Action::Bench(BenchAction::Run), "run", "start the selected profile (asks first)"),
    ch(Bench, 'e', Action::Bench(BenchAction::Edit), "edit", "change the parameters"),
    ch(Bench, 'u', Action::Bench(BenchAction::Reset), "", "the selected parameter as the profile has it"),
    ch(
        Bench,
        'x',
        Action::Bench(BenchAction::Cancel),
        "cancel",
        "end the run, with the figures up to now; again: kill it",
    ),
    ch(Bench, 'm', Action::Bench(BenchAction::Mark), "mark", "mark a kept result to compare others with"),
    ch(
        Bench,
        'c',
        Action::Bench(BenchAction::Compare),
        "compare",
        "the marked result and the selected one side by side",
    ),
    key(Bench, KeyCode::Right, Action::Bench(BenchAction::ToPage), "", "to the page beside the list"),
    key(Bench, KeyCode::Left, Action::Bench(BenchAction::ToList), "", "back to the list"),
    key(
        Findings,
        KeyCode::Enter,
        Action::Open,
        "go there",
        "to the knob, the benchmark, the device or the task that the finding points to",
    ),
    key(
        Findings,
        KeyCode::Right,
        Action::NextPane,
        "ways on",
        "to the page of the story and its ways on, and back",
    ),
    key(Findings, KeyCode::Left, Action::NextPane, "", "to the page of the story and its ways on, and back"),
    key(Scroll, KeyCode::Up, Action::Move(-1), "", "selection up"),
    key(Scroll, KeyCode::Down, Action::Move(1), "", "selection down"),
    ch(Scroll, 'k', Action::Move(-1), "", "selection up"),
    ch(Scroll, 'j', Action::Move(1), "", "selection down"),
    key(Scroll, KeyCode::PageUp, Action::Page(-1), "", "one screen up"),
    key(Scroll, KeyCode::PageDown, Action::Page(1), "", "one screen down"),
    key(Scroll, KeyCode::Home, Action::First, "", "to the first row"),
    key(List, KeyCode::Enter, Action::Open, "detail", "detail of the selected row"),
    key(List, KeyCode::Left, Action::SortLeft, "", "sort by the column to the left"),
    key(List, KeyCode::Right, Action::SortRight, "sort", "sort by the column to the right"),
    ch(List, '<', Action::ColumnsLeft, "", "columns back to the left"),
    ch(List, '>', Action::ColumnsRight, "", "further columns, where the screen is too narrow for all"),
    ch(List, 'r', Action::Reverse, "", "reverse the order"),
    ch(List, '/', Action::Search, "search", "search; n and N go on"),
    ch(List, 'n', Action::SearchNext, "", "next hit"),
    ch(List, 'N', Action::SearchPrevious, "", "hit before"),
    ch(List, '\\', Action::Filter, "filter", "show only rows that contain a text"),
    ch(Replay, ' ', Action::Replay(P::Play), "play", "play or pause"),
    ch(Replay, ',', Action::Replay(P::Step(-1)), "", "the sample before (pauses)"),
    ch(Replay, '.', Action::Replay(P::Step(1)), "step", "the sample after (pauses)"),
    ch(Replay, '[', Action::Replay(P::Skip(-60)), "", "a minute back"),
    ch(Replay, ']', Action::Replay(P::Skip(60)), "", "a minute on"),
    ch(Replay, '{', Action::Replay(P::Skip(-600)), "", "ten minutes back"),
    ch(Replay, '}', Action::Replay(P::Skip(600)), "", "ten minutes on"),
    ch(Replay, '+', Action::Replay(P::Faster), "", "twice as fast, up to 256 times the recording's pace"),
    ch(Replay, '-', Action::Replay(P::Slower), "", "half as fast"),
    ch(Replay, 'J', Action::Replay(P::Jump), "jump", "ask for a time to jump to"),
    ch(
        Replay,
        ')',
        Action::Replay(P::Finding { forward: true }),
        "finding",
        "to the next finding: where one begins or gets worse (pauses; Esc ends the search)",
    ),
    ch(Replay, '(', Action::Replay(P::Finding { forward: false }), "", "to the finding before (pauses)"),
    ch(Replay, '^', Action::Replay(P::First), "", "to the first sample"),
    key(Replay, KeyCode::End, Action::Replay(P::Last), "", "to the last sample"),
    ch(Replay, 'G', Action::Replay(P::Last), "", "to the last sample"),
    ch(Global, '?', Action::Help, "help", "this help"),
    ch(Global, 'h', Action::Help, "", "this help"),
    key(Global, KeyCode::F(1), Action::Help, "", "this help"),
    ch(Global, '1', Action::View(View::Overview), "", "Overview"),
    ch(Global, '2', Action::View(View::Devices), "", "Devices"),
    ch(Global, '3', Action::View(View::Processes), "", "Processes"),
    ch(Global, '4', Action::View(View::Memory), "", "Memory"),
    ch(Global, '5', Action::View(View::Kernel), "", "Kernel log"),
    ch(Global, '6', Action::View(View::Bench), "", "Bench"),
    ch(Global, 'b', Action::View(View::Bench), "", "Bench: measure storage"),
    ch(Global, '7', Action::View(View::Tune), "", "Tune"),
    ch(Global, '8', Action::View(View::Findings), "", "Findings: what is wrong, why, and what to try"),
    ch(Global, 't', Action::View(View::Tune), "", "Tune: settings of the kernel, with a way back"),
    key(Global, KeyCode::Tab, Action::NextView, "", "next view"),
    key(Global, KeyCode::BackTab, Action::NextPane, "", "next pane of the view"),
    ch(Global, 'w', Action::NextPane, "pane", "next pane of the view"),
    ch(Global, 'z', Action::Zoom, "zoom", "the focused pane alone, or all again"),
    ch(Global, 'F', Action::View(View::Syncs), "syncs", "Syncs: who waits for them, on which file"),
    key(Global, KeyCode::Esc, Action::Back, "", "close, unzoom, drop the filter, live again"),
    ch(Global, ' ', Action::Freeze, "freeze", "hold the picture; sampling goes on"),
    ch(Global, ',', Action::StepBack, "", "the tick before (freezes)"),
    ch(Global, '.', Action::StepForward, "", "the tick after"),
    key(Global, KeyCode::End, Action::End, "", "live again; in a list that is live, its end"),
    ch(Global, 'G', Action::End, "", "live again; in a list that is live, its end"),
    ch(Global, '+', Action::Slower, "", "a longer interval"),
    ch(Global, '-', Action::Faster, "", "a shorter interval"),
    ch(Global, 'd', Action::Delay, "", "ask for the interval in seconds"),
    ch(Global, 'D', Action::ResetCounters, "", "count sums from now"),
    ch(
        Global,
        ':',
        Action::Command,
        "",
        "command: path DIR, tune KNOB, syncs MS, theme NAME, interval S, include RE, exclude RE, q",
    ),
    ch(Global, 'y', Action::Yank, "", "copy the focused pane as Markdown to the local clipboard (OSC 52)"),
    ch(
        Global,
        's',
        Action::Screenshot,
        "shot",
        "the screen or the pane to a file: picture, page, tables, text",
    ),
    ch(Global, 'R', Action::Record, "", "record what the collectors see into a file, or end the recording"),
    ch(Global, 'T', Action::Theme, "", "next theme"),
    ch(Global, 'W', Action::SaveConfig, "", "write these settings to the config file"),
    ctrl('l', Action::Redraw, "draw everything anew"),
    ctrl('z', Action::Suspend, "back to the shell; `fg` returns"),
    ctrl('c', Action::Quit, "quit"),
    ch(Global, 'q', Action::Quit, "quit", "quit"),
];

/// What a key means; `contexts` from the most specific to the most general.
pub fn lookup(contexts: &[Context], event: &KeyEvent) -> Option<Action> {
    let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
    if event.modifiers.contains(KeyModifiers::ALT) {
        return None;
    }
    contexts.iter().find_map(|context| {
        BINDINGS
            .iter()
            .find(|b| b.context == *context && b.code == event.code && b.ctrl == ctrl)
            .map(|b| b.action)
    })
}

/// How a key is written: `q`, `Space`, `^L`, `PgDn`.
pub fn name(binding: &Binding) -> Cow<'static, str> {
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
static IN_FOOTER: LazyLock<Vec<&Binding>> =
    LazyLock::new(|| BINDINGS.iter().filter(|b| !b.footer.is_empty()).collect());

/// The keys of the footer for these contexts, most specific first, one for each action.
pub fn footer(contexts: &[Context]) -> Vec<&'static Binding> {
    let mut out: Vec<&Binding> = Vec::new();
    for context in contexts {
        for b in IN_FOOTER.iter().filter(|b| b.context == *context) {
            if !out.iter().any(|o| o.action == b.action || (o.code == b.code && o.ctrl == b.ctrl)) {
                out.push(b);
            }
        }
    }
    out
}

//! The page of a task: counters, limits, delays, and on request its mappings.

use super::super::detail::{DetailText, detail_table, draw_detail_lines};
use super::super::file_lists::push_files;
use super::super::io_accounting::push_process_io;
use super::super::memory::{format_optional_bytes, level};
use super::super::task_waits::push_waits;
use super::written_files::WrittenFilesPage;
use super::{ProcessesView, TaskPage};
use crate::export::table::Table;
use crate::jobs::job::WorkerReply;
use crate::model::containers::SHORT_ID;
use crate::model::file_io::list::FileQuery;
use crate::model::history::HistoryFrame;
use crate::model::io_accounting::IoRates;
use crate::model::memory_stalls::{RECLAIM, THROTTLE};
use crate::model::process::{IoBytes, ProcessRow, TaskKey};
use crate::model::reading::Reading;
use crate::sanitize::sanitize;
use crate::tui::view::{Action, Context, PaneId, Shared};
use crate::tui::widgets::{CellBuffer, Rect, columns_text, draw_column};
use crate::units::{format_bytes, format_duration};

/// Facts and mappings are drawn side by side from this width on.
const SIDE_BY_SIDE_WIDTH: u16 = 150;

impl TaskPage {
    pub(super) fn new(key: TaskKey) -> Self {
        Self {
            key,
            last_values: Vec::new(),
            written_files: WrittenFilesPage::default(),
            facts: None,
            mappings: None,
            mappings_requested: false,
        }
    }

    /// Keeps the counters of the task, for when it has ended: a zombie has lost its command line, memory and files.
    pub(super) fn keep_last_values(&mut self, shared: &Shared) {
        if let Some(row) = shared.system.processes.get(&self.key).filter(|row| !row.has_exited() && row.state() != 'Z')
        {
            let mut out = DetailText::default();
            push_counters(shared, &row, &mut out);
            self.last_values = out.0;
        }
    }
}

impl ProcessesView {
    pub(super) fn detail_lines(&self, cx: &Context) -> Vec<(String, bool)> {
        let Some(p) = &self.page else { return Vec::new() };
        let mut out = counters_and_facts(cx.shared, p);
        out.line("");
        out.0.extend(mapping_lines(p, cx.shared));
        out.0
    }

    /// Number of lines that scroll in a pane of that inner area: where facts stand beside the mappings, only the mappings.
    pub(super) fn scrolled_lines(&self, cx: &Context, inner: Rect) -> usize {
        match &self.page {
            Some(p) if inner.width >= SIDE_BY_SIDE_WIDTH => mapping_lines(p, cx.shared).len(),
            _ => self.detail_lines(cx).len(),
        }
    }

    pub(super) fn render_detail(&self, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        let Some(p) = &self.page else { return };
        let (title, interval) = (format!("Task {}", p.key.tid), cx.shared.interval_text());
        let inner = cx.draw_frame(buf, PaneId::ProcessDetail, area, &title, &interval);
        if inner.width < SIDE_BY_SIDE_WIDTH {
            return draw_detail_lines(cx, inner, buf, &self.detail_lines(cx));
        }
        // Side by side; only the mappings scroll, the facts are few.
        let half = inner.width / 2;
        let facts = counters_and_facts(cx.shared, p).0.into_iter();
        let facts = facts.map(|(line, strong)| (line, if strong { cx.theme.title } else { cx.theme.text }));
        draw_column(buf, Rect { width: half - 1, ..inner }, facts);
        let right = Rect { x: inner.x + half, width: inner.width - half, ..inner };
        draw_detail_lines(cx, right, buf, &mapping_lines(p, cx.shared));
    }

    pub(super) fn detail_table(&self, cx: &Context) -> Table {
        let tid = self.page.as_ref().map_or(0, |page| page.key.tid);
        detail_table(&format!("Task {tid}"), cx, self.detail_lines(cx))
    }
}

fn counters_and_facts(shared: &Shared, p: &TaskPage) -> DetailText {
    let mut out = DetailText::default();
    match shared.system.processes.get(&p.key) {
        Some(row) => {
            push_counters(shared, &row, &mut out);
            push_process_io(shared, row.pid(), row.cgroup(), &mut out);
            let files = FileQuery { pid: Some(row.pid()), ..FileQuery::default() };
            push_files(shared, &files, false, &mut out);
        }
        None => {
            out.strong("this task has ended; its last values:");
            out.0.extend(p.last_values.iter().cloned());
            push_process_io(shared, p.key.pid, None, &mut out);
        }
    }
    p.written_files.push(shared.system.topology.ok(), shared.system.now().boot_ns, &mut out);
    out.line("");
    push_facts(p, shared.system.now().boot_ns, &mut out);
    out
}

fn push_counters(shared: &Shared, row: &ProcessRow<'_>, out: &mut DetailText) {
    let pct = |n: Option<f64>| n.map_or("-".into(), |n| format!("{n:.1} %"));
    out.strong(row.command().unwrap_or_else(|| row.comm()).into_owned());
    let kind = if row.raw.kernel_thread { "kernel thread" } else { "program" };
    let exited = if row.has_exited() { ", ENDED" } else { "" };
    let thread = if row.tid() == row.pid() { String::new() } else { format!("TID {}, ", row.tid()) };
    out.fact("task", format!("{thread}PID {}, PPID {}, {kind}{exited}", row.pid(), row.raw.ppid));
    out.fact("name", row.comm());
    out.fact("user", row.user().as_deref().unwrap_or("-"));
    let wait = row.wait_channel().map_or(String::new(), |w| format!(", waits in {}", sanitize(w)));
    let since = shared.system.now().boot_ns.saturating_sub(row.state_since_ns()) / 1_000_000_000;
    out.fact("state", format!("{} for {}{wait}", row.state(), format_duration(since)));
    push_waits(shared, row.pid(), out);
    out.fact("threads", row.raw.num_threads);
    out.fact("io priority", row.ionice().as_deref().unwrap_or("-"));
    let children = row.children_io();
    let [read, written] =
        [(|b| b.read) as fn(&IoBytes) -> u64, |b| b.write].map(|of| total_text(row, of, of(&children)));
    out.fact("read", format!("{}/s, {read}", format_optional_bytes(row.rates().read_bytes_per_s)));
    out.fact("written", format!("{}/s, {written}", format_optional_bytes(row.rates().write_bytes_per_s)));
    push_history(shared, row.pid(), out);
    out.fact("cancelled", format!("{}/s", format_optional_bytes(row.rates().cancelled_bytes_per_s)));
    out.fact("I/O delay", pct(row.rates().io_delay_pct));
    out.fact("swapin delay", pct(row.rates().swapin_delay_pct));
    out.fact("throttled", stall_text(shared, row, row.throttled_pct(), THROTTLE));
    out.fact("reclaim", stall_text(shared, row, row.reclaim_pct(), RECLAIM));
    let [rss, swap] = [format_bytes(row.raw.rss_bytes), level(row.raw.swap_bytes)];
    out.fact("memory", format!("{rss} resident, {swap} in swap (VmSwap; shared memory not counted)"));
    out.fact("major faults", row.rates().major_faults_per_s.map_or("-".into(), |n| format!("{n:.1}/s")));
    out.fact("cgroup", row.cgroup().map_or("-".into(), sanitize));
    if let Some(container) = row.container() {
        let id = row.known_container().map_or(String::new(), |known| format!(" ({})", &known.container.id[..SHORT_ID]));
        out.fact("container", sanitize(container) + &id);
    }
}

/// Cells of the history of I/O.
const HISTORY_WIDTH: u16 = 40;

/// Appends the recent I/O of a process as a row of columns, with its peak. By tracing, else by its counters where it was
/// among the busiest.
fn push_history(shared: &Shared, pid: u32, out: &mut DetailText) {
    let samples = shared.graph_samples(HISTORY_WIDTH);
    let frames: Vec<&HistoryFrame> = shared.history_to_shown().rev().take(samples).collect();
    let values: Vec<f64> = frames.iter().rev().map(|frame| process_bytes_per_s(frame, pid)).collect();
    let peak = values.iter().copied().fold(0.0, f64::max);
    let timed = frames.iter().filter(|frame| !frame.snapshot.is_since_boot);
    let secs: f64 = timed.map(|frame| frame.snapshot.interval_secs).sum();
    if peak > 0.0 {
        let columns = columns_text(&values, peak, HISTORY_WIDTH, shared.symbols);
        out.fact(
            "history",
            format!("{columns}  peak {}/s in {}", format_bytes(peak as u64), format_duration(secs as u64)),
        );
    }
}

fn process_bytes_per_s(frame: &HistoryFrame, pid: u32) -> f64 {
    if let Some(attribution) = frame.snapshot.io_attribution.ok() {
        let rates = attribution.process(pid).map_or(IoRates::default(), |io| io.total);
        return rates.read_bytes_per_s + rates.write_bytes_per_s.max(rates.writeback_bytes_per_s);
    }
    let row = frame.tasks.iter().find(|row| row.pid() == pid);
    let rates = row.map(|row| row.rates());
    rates.map_or(0.0, |r| r.read_bytes_per_s.unwrap_or(0.0) + r.write_bytes_per_s.unwrap_or(0.0))
}

/// `30.0M in all, 29.0M of it by children that ended`: the kernel adds what a child did to its parent's counters.
fn total_text(row: &ProcessRow<'_>, of: fn(&IoBytes) -> u64, by_children: u64) -> String {
    let total = level(row.raw.io.bytes().as_ref().map(of));
    match by_children {
        0 => format!("{total} in all"),
        n => format!("{total} in all, {} of it by children that ended", format_bytes(n)),
    }
}

/// Stalls of one kind: their share of time, and their number and longest duration in the interval on screen.
fn stall_text(shared: &Shared, row: &ProcessRow<'_>, pct: Option<f64>, kind: usize) -> String {
    let snap = shared.snapshot();
    let Some(pct) = pct else {
        let of_threads = shared.system.processes.rows_are_threads;
        let why = snap.memory_stalls.unavailable_reason(shared.system.now().boot_ns);
        let why = why.or_else(|| of_threads.then(|| "counted for whole processes only".into()));
        return format!("- {}", why.unwrap_or_default());
    };
    let task = snap.memory_stalls.ok().and_then(|s| s.processes.iter().find(|t| t.key == row.key()));
    let times = task.map(|t| t.rates[kind]).filter(|k| k.count > 0);
    let times = times.map_or(String::new(), |k| format!(", {} times, longest {:.1} ms", k.count, k.max_ms));
    format!("{pct:.1} %{times}")
}

/// Why a reply has nothing to show.
fn missing_text<T>(reply: &WorkerReply, reading: Option<&Reading<T>>, now_boot_ns: u64) -> Option<String> {
    let why = match reply {
        WorkerReply::Failed(why) => sanitize(why),
        _ => reading?.unavailable_reason(now_boot_ns)?,
    };
    Some(format!("- {why}"))
}

/// Appends limits, ancestors and delays, which a child process reads.
fn push_facts(p: &TaskPage, now_boot_ns: u64, out: &mut DetailText) {
    let Some(reply) = &p.facts else { return out.line("asking for its limits …") };
    let reading = if let WorkerReply::TaskDetails(reading) = reply { Some(reading) } else { None };
    let Some(Reading::Ok(detail)) = reading else {
        return missing_text(reply, reading, now_boot_ns).into_iter().for_each(|why| out.strong(why));
    };
    let limit = |n: Option<u64>| n.map_or("unlimited".into(), |n| n.to_string());
    let files = detail.open_files_limit().map_or_else(
        || format!("- {}", detail.limits.unavailable_reason(now_boot_ns).unwrap_or_default()),
        |l| format!("{} soft, {} hard", limit(l.soft), limit(l.hard)),
    );
    out.fact("open files", files);
    for l in detail.limits.ok().into_iter().flatten() {
        if let "Max locked memory" | "Max processes" = l.name.as_str() {
            let text = format!("{} soft, {} hard {}", limit(l.soft), limit(l.hard), sanitize(&l.unit));
            out.fact(&l.name["Max ".len()..], text);
        }
    }
    let parents: Vec<String> = detail.parents.iter().map(|(pid, name)| format!("{name}({pid})")).collect();
    if let Some(pid) = detail.namespace_pid {
        out.fact("in container", format!("process {pid}"));
    }
    out.fact("started by", if parents.is_empty() { "-".into() } else { parents.join(" ← ") });
    let [score, adjusted] = [detail.oom_score, detail.oom_score_adj].map(|n| n.map_or("-".into(), |n| n.to_string()));
    out.fact("OOM score", format!("{score}, adjusted by {adjusted}"));
    let secs = |ns: u64| format!("{:.2} s", ns as f64 / 1e9);
    let waited = match &detail.delays {
        Reading::Ok(d) => {
            let swapin = d.swapin_ns.map_or("-".into(), secs);
            format!("{} for block I/O, {swapin} for swap, in all its life", secs(d.blkio_ns))
        }
        other => format!("- {}", other.unavailable_reason(now_boot_ns).unwrap_or_default()),
    };
    out.fact("waited", waited);
}

/// The mappings, or how to load them and what that costs.
fn mapping_lines(p: &TaskPage, shared: &Shared) -> Vec<(String, bool)> {
    let now_boot_ns = shared.system.now().boot_ns;
    let mut out = DetailText::default();
    let Some(reply) = &p.mappings else {
        if p.mappings_requested {
            out.strong("reading its mappings …");
        } else {
            let read = shared.key(Action::LoadMappings);
            out.strong(format!("{read} reads its mappings with Size, Rss, Pss and Swap of each"));
            out.line("(walks its page tables: seconds for hundreds of GB, during which it may wait)");
        }
        return out.0;
    };
    let reading = if let WorkerReply::Mappings(reading) = reply { Some(reading) } else { None };
    let Some(Reading::Ok(m)) = reading else {
        return missing_text(reply, reading, now_boot_ns).into_iter().map(|why| (why, true)).collect();
    };
    let columns = |[size, rss, pss, swap]: [&str; 4]| format!("{size:>7} {rss:>7} {pss:>7} {swap:>7}");
    let sizes =
        |size, rss, pss, swap| columns([Some(size), Some(rss), pss, swap].map(level).each_ref().map(String::as_str));
    out.strong(columns(["Size", "Rss", "Pss", "Swap"]) + "  perms mapping");
    out.line(format!("{}  all {}", sizes(m.size, m.rss, m.pss, m.swap), m.count));
    for map in &m.largest {
        let name = if map.name.is_empty() { format!("anonymous {:x}", map.start) } else { sanitize(&map.name) };
        let text = format!("{}  {}  {name}", sizes(map.size, map.rss, map.pss, map.swap), map.perms);
        out.0.push((text, map.swap.is_some_and(|s| s > 0)));
    }
    if m.largest.len() < m.count {
        out.line(format!("… {} smaller ones", m.count - m.largest.len()));
    }
    out.0
}

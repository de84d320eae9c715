//! The page of a task: counters, limits, delays, and on request its mappings.

use super::super::detail::{detail_table, draw_detail_lines};
use super::{ProcessesView, TaskPage};
use crate::export::table::Table;
use crate::jobs::job::WorkerReply;
use crate::model::memory_stalls::{RECLAIM, THROTTLE};
use crate::model::process::ProcessRow;
use crate::model::reading::Reading;
use crate::sanitize::sanitize;
use crate::tui::view::{Context, Shared};
use crate::tui::widgets::{CellBuffer, Rect, Theme, draw_frame, draw_text};
use crate::units::{format_bytes, format_duration};

impl ProcessesView {
    pub(super) fn detail_lines(&self, cx: &Context) -> Vec<(String, bool)> {
        let Some(p) = &self.page else { return Vec::new() };
        let mut out = Vec::new();
        push_counters_and_facts(cx.shared, p, &mut out);
        out.push((String::new(), false));
        out.extend(mapping_lines(p, cx.shared.system.now().boot_ns));
        out
    }

    /// Number of lines that scroll in a pane of that inner area: where facts stand beside the mappings, only the mappings.
    pub(super) fn scrolled_lines(&self, cx: &Context, inner: Rect) -> usize {
        match &self.page {
            Some(page) if inner.width >= SIDE_BY_SIDE_WIDTH => {
                mapping_lines(page, cx.shared.system.now().boot_ns).len()
            }
            _ => self.detail_lines(cx).len(),
        }
    }

    pub(super) fn render_detail(&self, cx: &Context, theme: &Theme, area: Rect, buf: &mut CellBuffer, focused: bool) {
        let Some(p) = &self.page else { return };
        let inner = draw_frame(buf, area, &format!("Task {}", p.key.tid), &cx.shared.interval_text(), focused, theme);
        if inner.width < SIDE_BY_SIDE_WIDTH {
            return draw_detail_lines(cx, theme, inner, buf, &self.detail_lines(cx));
        }
        // Side by side; only the mappings scroll, the facts are few.
        let half = inner.width / 2;
        let mut left = Vec::new();
        push_counters_and_facts(cx.shared, p, &mut left);
        for (i, (line, strong)) in left.iter().take(usize::from(inner.height)).enumerate() {
            let style = if *strong { theme.title } else { theme.text };
            draw_text(buf, inner.x, inner.y + i as u16, line, half - 1, style);
        }
        let right = Rect { x: inner.x + half, width: inner.width - half, ..inner };
        draw_detail_lines(cx, theme, right, buf, &mapping_lines(p, cx.shared.system.now().boot_ns));
    }

    pub(super) fn detail_table(&self, cx: &Context) -> Table {
        let tid = self.page.as_ref().map_or(0, |page| page.key.tid);
        detail_table(&format!("Task {tid}"), cx, self.detail_lines(cx))
    }
}

/// Appends counters and facts.
fn push_counters_and_facts(shared: &Shared, p: &TaskPage, out: &mut Vec<(String, bool)>) {
    match shared.system.processes.get(&p.key) {
        Some(row) => {
            push_counters(shared, &row, out);
            super::super::io_accounting::push_process_io(shared, row.pid(), row.cgroup(), out);
            out.push((String::new(), false));
        }
        None => {
            out.push(("this task has ended".into(), true));
            super::super::io_accounting::push_process_io(shared, p.key.pid, None, out);
            out.push((String::new(), false));
        }
    }
    push_facts(p, shared.system.now().boot_ns, out);
}

fn push_counters(shared: &Shared, row: &ProcessRow<'_>, out: &mut Vec<(String, bool)>) {
    let rate = |n: Option<f64>| super::super::memory::format_optional_bytes(n);
    let level = |n: Option<u64>| n.map_or("-".into(), format_bytes);
    let pct = |n: Option<f64>| n.map_or("-".into(), |n| format!("{n:.1} %"));
    let now = shared.system.now().boot_ns;
    out.push((row.command().map_or_else(|| row.comm().to_string(), |c| c.to_string()), true));
    let mut fact = |name: &str, value: String| out.push((format!("{name:<12} {value}"), false));
    let kind = if row.raw.kernel_thread { "kernel thread" } else { "program" };
    let exited = if row.has_exited() { ", ENDED" } else { "" };
    let thread = if row.tid() == row.pid() { String::new() } else { format!("TID {}, ", row.tid()) };
    fact("task", format!("{thread}PID {}, PPID {}, {kind}{exited}", row.pid(), row.raw.ppid));
    fact("name", row.comm().to_string());
    fact("user", row.user().as_deref().unwrap_or("-").into());
    let wait = row.wait_channel().map_or(String::new(), |w| format!(", waits in {}", sanitize(w)));
    let since = format_duration(now.saturating_sub(row.state_since_ns()) / 1_000_000_000);
    fact("state", format!("{} for {since}{wait}", row.state()));
    fact("threads", row.raw.num_threads.to_string());
    fact("io priority", row.ionice().as_deref().unwrap_or("-").into());
    fact("read", format!("{}/s, {} in all", rate(row.read_bytes_per_s()), level(row.raw.io.bytes().map(|b| b.read))));
    fact(
        "written",
        format!("{}/s, {} in all", rate(row.write_bytes_per_s()), level(row.raw.io.bytes().map(|b| b.write))),
    );
    fact("cancelled", format!("{}/s", rate(row.cancelled_bytes_per_s())));
    fact("I/O delay", pct(row.io_delay_pct()));
    fact("swapin delay", pct(row.swapin_delay_pct()));
    fact("throttled", stall_text(shared, row, row.throttled_pct(), THROTTLE));
    fact("reclaim", stall_text(shared, row, row.reclaim_pct(), RECLAIM));
    fact(
        "memory",
        format!(
            "{} resident, {} in swap (VmSwap; shared memory not counted)",
            format_bytes(row.raw.rss_bytes),
            level(row.raw.swap_bytes)
        ),
    );
    fact("major faults", row.major_faults_per_s().map_or("-".into(), |n| format!("{n:.1}/s")));
    fact("cgroup", row.cgroup().map_or("-".into(), sanitize));
    if let Some(container) = row.container() {
        fact("container", sanitize(container));
    }
}

/// Stalls of one kind: their share of time, and their number and longest duration in the interval on screen.
fn stall_text(shared: &Shared, row: &ProcessRow<'_>, pct: Option<f64>, kind: usize) -> String {
    let snap = shared.snapshot();
    let Some(pct) = pct else {
        let why = snap.memory_stalls.unavailable_reason(shared.system.now().boot_ns);
        let whole = "counted for whole processes only".to_owned();
        return format!(
            "- {}",
            why.unwrap_or(if shared.system.processes.rows_are_threads() { whole } else { String::new() })
        );
    };
    let task = snap.memory_stalls.ok().and_then(|s| s.processes.iter().find(|t| t.key == row.key()));
    let times = task.map(|t| t.rates[kind]).filter(|k| k.count > 0);
    let times = times.map_or(String::new(), |k| format!(", {} times, longest {:.1} ms", k.count, k.max_ms));
    format!("{pct:.1} %{times}")
}

/// Appends limits, ancestors and delays, which a child process reads.
fn push_facts(p: &TaskPage, now_boot_ns: u64, out: &mut Vec<(String, bool)>) {
    let detail = match &p.facts {
        None => return out.push(("asking for its limits …".into(), false)),
        Some(WorkerReply::TaskDetails(Reading::Ok(detail))) => detail,
        Some(WorkerReply::TaskDetails(other)) => {
            return out.push((format!("- {}", other.unavailable_reason(now_boot_ns).unwrap_or_default()), true));
        }
        Some(WorkerReply::Failed(why)) => return out.push((format!("- {}", sanitize(why)), true)),
        Some(_) => return,
    };
    let mut fact = |name: &str, value: String| out.push((format!("{name:<12} {value}"), false));
    let limit = |n: Option<u64>| n.map_or("unlimited".into(), |n| n.to_string());
    let files = detail.open_files_limit().map_or_else(
        || format!("- {}", detail.limits.unavailable_reason(now_boot_ns).unwrap_or_default()),
        |l| format!("{} soft, {} hard", limit(l.soft), limit(l.hard)),
    );
    fact("open files", files);
    for l in detail.limits.ok().into_iter().flatten() {
        if matches!(l.name.as_str(), "Max locked memory" | "Max processes") {
            fact(
                &l.name["Max ".len()..],
                format!("{} soft, {} hard {}", limit(l.soft), limit(l.hard), sanitize(&l.unit)),
            );
        }
    }
    let parents: Vec<String> = detail.parents.iter().map(|(pid, name)| format!("{name}({pid})")).collect();
    fact("started by", if parents.is_empty() { "-".into() } else { parents.join(" ← ") });
    let score = |n: Option<i64>| n.map_or("-".into(), |n| n.to_string());
    fact("OOM score", format!("{}, adjusted by {}", score(detail.oom_score), score(detail.oom_score_adj)));
    match &detail.delays {
        Reading::Ok(d) => {
            let secs = |ns: u64| format!("{:.2} s", ns as f64 / 1e9);
            let swapin = d.swapin_ns.map_or("-".into(), secs);
            fact("waited", format!("{} for block I/O, {swapin} for swap, in all its life", secs(d.blkio_ns)));
        }
        other => fact("waited", format!("- {}", other.unavailable_reason(now_boot_ns).unwrap_or_default())),
    }
}

/// The mappings, or how to load them and what that costs.
fn mapping_lines(p: &TaskPage, now_boot_ns: u64) -> Vec<(String, bool)> {
    let note = |text: &str| vec![(text.to_owned(), true)];
    let m = match &p.mappings {
        None if p.mappings_requested => return note("reading its mappings …"),
        None => {
            return vec![
                ("m reads its mappings with Size, Rss, Pss and Swap of each".into(), true),
                ("(walks its page tables: seconds for hundreds of GB, during which it may wait)".into(), false),
            ];
        }
        Some(WorkerReply::Mappings(Reading::Ok(m))) => m,
        Some(WorkerReply::Mappings(other)) => {
            return note(&format!("- {}", other.unavailable_reason(now_boot_ns).unwrap_or_default()));
        }
        Some(WorkerReply::Failed(why)) => return note(&format!("- {}", sanitize(why))),
        Some(_) => return Vec::new(),
    };
    let n = |n: Option<u64>| n.map_or("-".into(), format_bytes);
    let mut out = vec![(format!("{:>7} {:>7} {:>7} {:>7}  perms mapping", "Size", "Rss", "Pss", "Swap"), true)];
    let totals = format!(
        "{:>7} {:>7} {:>7} {:>7}  all {}",
        format_bytes(m.size),
        format_bytes(m.rss),
        n(m.pss),
        n(m.swap),
        m.count
    );
    out.push((totals, false));
    for map in &m.largest {
        let name = if map.name.is_empty() { format!("anonymous {:x}", map.start) } else { sanitize(&map.name) };
        let cells = format!(
            "{:>7} {:>7} {:>7} {:>7}  {}  ",
            format_bytes(map.size),
            format_bytes(map.rss),
            n(map.pss),
            n(map.swap),
            map.perms
        );
        out.push((cells + &name, map.swap.is_some_and(|s| s > 0)));
    }
    if m.largest.len() < m.count {
        out.push((format!("… {} smaller ones", m.count - m.largest.len()), false));
    }
    out
}

/// Facts and mappings are drawn side by side from this width on.
const SIDE_BY_SIDE_WIDTH: u16 = 150;

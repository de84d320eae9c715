//! The page of a kernel log entry: its whole text, its trace, the device and the task it names.

use super::super::detail::draw_detail_lines;
use super::KernelLogView;
use super::log::class_label;
use crate::model::kernel_log::LogEntry;
use crate::model::process::FoundTask;
use crate::sanitize::sanitize;
use crate::tui::view::{Context, PaneId, Shared, Target};
use crate::tui::widgets::{CellBuffer, Rect, wrap};

impl KernelLogView {
    /// The task that the entry names if it still exists, else the device.
    pub fn link_target(&self, cx: &Context) -> Option<Target> {
        let e = self.shown_entry(cx)?;
        let task = e.pid.and_then(|pid| cx.shared.system.processes.find_by_pid(pid)).map(|row| Target::Task(row.key()));
        task.or_else(|| {
            // `loop0-8` and `sda1` in a message may be a journal's or a partition's name.
            let name = e.device.as_deref()?;
            let rates = cx.shared.snapshot().devices.ok()?;
            let rate = rates.iter().find(|r| &*r.name == name || name.split('-').next() == Some(&*r.name));
            rate.map(|r| Target::Device(r.id))
        })
    }

    fn shown_entry<'a>(&self, cx: &Context<'a>) -> Option<&'a LogEntry> {
        let index = *self.visible_entries.iter().rev().nth(self.page)?;
        cx.shared.system.kernel_log.entries().nth(index as usize)
    }

    pub(super) fn detail_lines(&self, cx: &Context) -> Vec<(String, bool)> {
        let width = usize::from(cx.screen.size.0.saturating_sub(4)).max(20);
        let Some(e) = self.shown_entry(cx) else { return vec![("this entry is no longer kept".into(), true)] };
        let mut out = Vec::new();
        let mut fact = |name: &str, value: String| out.push((format!("{name:<10} {value}"), false));
        fact("time", format!("{} ({} s after boot)", crate::units::format_rfc3339(e.wall_ns), e.boot_us / 1_000_000));
        let program = e.is_from_program().then_some("written by a program, not the kernel");
        fact("class", program.unwrap_or(class_label(e.class)).into());
        fact("level", e.level.to_string());
        if e.count > 1 {
            fact("count", format!("{} since {}", e.count, crate::units::format_rfc3339(e.first_wall_ns)));
        }
        if e.suppressed > 0 {
            fact("limited", format!("{} more lines dropped by the kernel's rate limit", e.suppressed));
        }
        if let Some(device) = &e.device {
            fact("device", format!("{}{}", sanitize(device), device_status_text(cx.shared, device)));
        }
        if let Some(pid) = e.pid {
            let name = e.comm.as_deref().map_or(String::new(), sanitize);
            fact("task", format!("{pid} {name}{}", task_status_text(cx.shared, pid)));
        }
        out.push((String::new(), false));
        out.extend(wrap(&sanitize(&e.message), width).into_iter().map(|l| (l, true)));
        out.extend(e.folded.iter().map(|l| (format!("  {}", sanitize(l)), false)));
        if e.folded_dropped > 0 {
            out.push((format!("  … {} more lines not kept", e.folded_dropped), false));
        }
        out
    }

    pub(super) fn render_detail(&self, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        let note = "Enter: its task or device";
        let inner = cx.draw_frame(buf, PaneId::KernelLogDetail, area, "Kernel log entry", note);
        draw_detail_lines(cx, inner, buf, &self.detail_lines(cx));
    }
}

fn device_status_text(shared: &Shared, name: &str) -> String {
    let rate = shared.snapshot().devices.ok().and_then(|d| d.iter().find(|d| &*d.name == name));
    match rate {
        Some(r) if r.stalled => format!("  now STALLED with {} in flight", r.in_flight),
        Some(r) => format!("  now {:.1} tps, await {:.2} ms, util {:.0} %", r.tps, r.await_ms, r.util_pct),
        None => String::new(),
    }
}

fn task_status_text(shared: &Shared, pid: u32) -> String {
    let now = |state: char, wait: Option<&str>| {
        format!("  now in state {state}{}", wait.map_or(String::new(), |wait| format!(" in {wait}")))
    };
    match shared.system.processes.find_task(pid) {
        FoundTask::Row(row) => now(row.state(), row.wait_channel()),
        FoundTask::UninterruptibleThread(thread) => now('D', thread.wait_channel.as_deref()),
        FoundTask::Exited => "  no longer there".into(),
        FoundTask::RanOrExited => "  not in state D, or no longer there".into(),
        FoundTask::Unknown => "  no process has this number; not all threads are read".into(),
    }
}

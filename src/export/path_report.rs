//! A path report as lines, for the screen and the command line.

use crate::model::path::{AtimePolicy, FilesystemSpace, PathReport, ReadOnlyReason};
use crate::model::reading::Reading;
use crate::sanitize::sanitize;
use crate::units::format_bytes_long;

/// Levels of the chain of devices that are indented: a damaged reply may claim any depth.
const MAX_DEPTH: usize = 32;

/// The report; `true` marks emphasised lines.
pub(crate) fn path_report_lines(r: &PathReport) -> Vec<(String, bool)> {
    let bind = if r.is_bind { ", a bind mount or a part of the file system" } else { "" };
    let mut out = vec![
        (r.canonical.sanitized(), true),
        (format!("mounted at  {}{bind}", r.mount.mount_point.sanitized()), false),
        (format!("type        {} from {}", r.mount.fs_type.sanitized(), r.mount.source.sanitized()), false),
        (format!("options     {}", r.mount.options.sanitized()), false),
        (format!("fs options  {}", r.mount.super_options.sanitized()), false),
        (format!("atime       {}", format_atime(r)), false),
    ];
    out.extend(r.read_only.map(|why| (format!("READ-ONLY   {}", format_read_only(why)), true)));
    out.push((format!("stored      {}", r.note), false));
    out.push((format_space(&r.space), false));
    if !r.chain.is_empty() {
        out.extend([(String::new(), false), ("Devices, down to the disk".into(), true)]);
    }
    for dev in &r.chain {
        let label = dev.label.as_ref().map_or(String::new(), |l| format!(" {}", l.sanitized()));
        let model = dev.model.as_ref().map_or(String::new(), |m| format!(", {m}"));
        let size = dev.size_bytes.map_or(String::new(), |b| format!(", {}", format_bytes_long(b)));
        let indent = "  ".repeat(dev.depth.min(MAX_DEPTH) + 1);
        let name = sanitize(&dev.name);
        out.push((format!("{indent}{name}{label} ({}{size}{model})", dev.kind.name()), dev.depth == 0));
        if let Some(q) = &dev.queue {
            let spins = q.rotational.map_or("-", |r| if r { "yes" } else { "no" });
            let ahead = q.read_ahead_kb.map_or("-".into(), |n| format!("{n} KiB"));
            let sched = q.scheduler.as_deref().map_or("-".into(), sanitize);
            out.push((format!("{indent}  scheduler {sched}, read-ahead {ahead}, rotational {spins}"), false));
        }
    }
    out
}

fn format_atime(r: &PathReport) -> String {
    let policy = match r.atime {
        AtimePolicy::Strict => "strictatime: every read also writes the access time",
        AtimePolicy::Relatime => "relatime: written at most once a day per file",
        AtimePolicy::Noatime => "noatime: never written",
    };
    let more = [(r.nodiratime, ", nodiratime"), (r.lazytime, ", lazytime")];
    more.iter().filter(|(is_set, _)| *is_set).fold(policy.to_owned(), |text, (_, option)| text + option)
}

fn format_read_only(why: ReadOnlyReason) -> &'static str {
    match why {
        ReadOnlyReason::Emergency => {
            "the file system stopped writing after an error; see the kernel log, then check it"
        }
        ReadOnlyReason::Filesystem => "the file system is mounted read-only",
        ReadOnlyReason::Mount => "this mount is read-only",
        ReadOnlyReason::Device => "the device below refuses writes",
    }
}

fn format_space(space: &Reading<FilesystemSpace>) -> String {
    match space {
        Reading::Ok(s) => {
            let inodes = match (s.inodes_free, s.inodes_total) {
                (Some(free), Some(total)) => format!(", inodes {free} of {total} free"),
                _ => String::new(),
            };
            let [available, total, free] = [s.available_bytes, s.total_bytes, s.free_bytes].map(format_bytes_long);
            format!("space       {available} available of {total} ({free} free){inodes}")
        }
        other => format!("space       - {}", other.unavailable_reason(0).unwrap_or_default()),
    }
}

//! The files that a task has open for writing, on its page.

use super::super::detail::DetailText;
use crate::jobs::job::WorkerReply;
use crate::model::process::{WrittenFile, WrittenFiles};
use crate::model::reading::Reading;
use crate::model::syncs::list::device_name;
use crate::model::topology::Topology;
use crate::sanitize::sanitize;
use crate::units::format_bytes;

/// Nanoseconds between two readings while the page is open.
const INTERVAL_NS: u64 = 1_000_000_000;
const MAX_FILES: usize = 12;

/// The last two readings, for rates, and when the next one is due.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct WrittenFilesPage {
    now: Option<Reading<WrittenFiles>>,
    before: Option<WrittenFiles>,
    failure: Option<String>,
    /// CLOCK_BOOTTIME of the request that has not been answered, ns.
    requested_ns: Option<u64>,
    asked_ns: u64,
}

impl WrittenFilesPage {
    /// Never asks, for a recording.
    pub(super) fn unavailable(why: &str) -> Self {
        Self { failure: Some(why.to_owned()), ..Self::default() }
    }

    /// Whether to ask again. A reading that hangs is asked for once.
    pub(super) fn is_due(&mut self, now_ns: u64) -> bool {
        let is_due = self.failure.is_none()
            && self.requested_ns.is_none()
            && (self.now.is_none() || now_ns.saturating_sub(self.asked_ns) >= INTERVAL_NS);
        if is_due {
            (self.requested_ns, self.asked_ns) = (Some(now_ns), now_ns);
        }
        is_due
    }

    pub(super) fn receive(&mut self, reply: WorkerReply) {
        self.requested_ns = None;
        match reply {
            // The last reading of a task that has ended stays.
            WorkerReply::WrittenFiles(Reading::Absent(_)) if matches!(self.now, Some(Reading::Ok(_))) => {}
            WorkerReply::WrittenFiles(reading) => {
                if let Some(Reading::Ok(old)) = self.now.replace(reading) {
                    self.before = Some(old);
                }
            }
            WorkerReply::Failed(why) => self.failure = Some(why),
            _ => {}
        }
    }

    /// Appends the fastest growing files first.
    pub(super) fn push(&self, topology: Option<&Topology>, now_boot_ns: u64, out: &mut DetailText) {
        out.section("Files open for writing");
        if let Some(why) = &self.failure {
            return out.line(format!("  - {}", sanitize(why)));
        }
        let secs = self.requested_ns.map_or(0, |since| now_boot_ns.saturating_sub(since) / 1_000_000_000);
        if secs >= 2 {
            out.line(format!("  no answer for {secs} s: a file system does not say how large a file is"));
        }
        let files = match &self.now {
            None => return out.line("  asking for them …"),
            Some(Reading::Ok(files)) => files,
            Some(other) => {
                return out.line(format!("  - {}", other.unavailable_reason(now_boot_ns).unwrap_or_default()));
            }
        };
        out.line(line(["fd", "size", "grows/s", "offset/s"].map(str::to_owned), "device", "path"));
        let mut rows: Vec<_> = files.files.iter().map(|f| (f, files.growth(self.before.as_ref(), f))).collect();
        let rate = |growth: Option<(f64, f64)>| growth.map_or(0.0, |(size, offset)| size.abs().max(offset.abs()));
        rows.sort_by(|a, b| rate(b.1).total_cmp(&rate(a.1)));
        for (file, growth) in rows.iter().take(MAX_FILES) {
            let [grows, moves] = [growth.map(|g| g.0), growth.map(|g| g.1)].map(signed_bytes);
            let cells = [file.fd.to_string(), format_bytes(file.size), grows, moves];
            out.line(line(cells, &device_of(file, topology), &file.path.sanitized()));
        }
        match files.files.len() {
            0 => out.line("  none"),
            n if n > MAX_FILES => out.line(format!("  {} more that grow less", n - MAX_FILES)),
            _ => {}
        }
        if files.skipped > 0 {
            out.line(format!("  {} descriptors with higher numbers were not looked at", files.skipped));
        }
    }
}

fn line(cells: [String; 4], device: &str, path: &str) -> String {
    let [fd, size, grows, moves] = cells;
    format!("  {fd:>4} {size:>7} {grows:>8} {moves:>8}  {device:<8} {path}")
}

/// `-` while unknown, `·` for none.
fn signed_bytes(per_s: Option<f64>) -> String {
    match per_s {
        None => "-".into(),
        Some(n) if n.abs() < 0.5 => "·".into(),
        Some(n) if n < 0.0 => format!("-{}", format_bytes(-n as u64)),
        Some(n) => format_bytes(n as u64),
    }
}

/// By the mount, because btrfs and overlay have numbers of their own; else by the number.
fn device_of(file: &WrittenFile, topology: Option<&Topology>) -> String {
    let devices = topology.map_or(&[][..], |topology| &topology.devices);
    let by_number = devices.iter().find(|device| device.id == file.device);
    let by_mount = || devices.iter().find(|device| device.mounts.iter().any(|mount| mount.id == file.mount_id));
    match by_number.or_else(by_mount) {
        Some(device) => device.display_name().into_owned(),
        None => device_name(None, topology),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(read_ns: u64, size: u64) -> WorkerReply {
        let file = |fd, path: &str, size| WrittenFile { fd, path: path.into(), size, ..Default::default() };
        let files = vec![file(1, "/var/log/still", 10), file(4, "/srv/\u{1b}wal", size)];
        WorkerReply::WrittenFiles(Reading::Ok(WrittenFiles { read_ns, files, skipped: 0 }))
    }

    fn text(page: &WrittenFilesPage, now_ns: u64) -> Vec<String> {
        let mut out = DetailText::default();
        page.push(None, now_ns, &mut out);
        out.0.into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn the_fastest_growing_file_comes_first_with_its_rate() {
        let mut page = WrittenFilesPage::default();
        assert!(page.is_due(5) && !page.is_due(6), "one request at a time");
        page.receive(reply(1_000_000_000, 1 << 20));
        assert!(text(&page, 0)[3].contains("still") && text(&page, 0)[4].contains(" - "), "{:?}", text(&page, 0));
        assert!(!page.is_due(1_000_000_000) && page.is_due(1_000_000_005));
        page.receive(reply(3_000_000_000, 5 << 20));
        let shown = text(&page, 0);
        assert!(shown[3].contains("2.00M") && shown[3].contains("\\x1bwal"), "{shown:?}");
        page.receive(WorkerReply::WrittenFiles(Reading::Absent("process 4 has ended".into())));
        assert_eq!(text(&page, 0), shown, "the last values stay");
    }

    #[test]
    fn a_reading_that_hangs_is_named_and_not_repeated() {
        let mut page = WrittenFilesPage::default();
        assert!(page.is_due(1_000_000_000));
        assert!(!page.is_due(9_000_000_000));
        assert!(text(&page, 8_000_000_000)[2].contains("no answer for 7 s"), "{:?}", text(&page, 8_000_000_000));
        page.receive(WorkerReply::Failed("the child was killed".into()));
        assert!(text(&page, 0)[2].contains("the child was killed") && !page.is_due(99_000_000_000));
        assert!(!WrittenFilesPage::unavailable("not in a recording").is_due(1));
    }
}

//! The kernel log: a bounded list of entries with folded traces, and counts by class.
//!
//! When it is full, the oldest unclassified lines go first, until they take a quarter of the entries. A flood of
//! unclassified lines therefore does not push out I/O errors.

use super::classify::{Classification, classify, parse_suppressed};
use super::dedup;
use super::recent_counts::RecentCounts;
use super::rules::MessageRole;
use super::trace_folder::{OpenTrace, TraceFolder, is_cut_here};
use super::{DeviceTag, KernelLogClass, KmsgRecord, LogClock, LogEntry, LogOrigin, LogPatterns};
use crate::model::device_id::DevId;
use std::collections::{BTreeMap, HashMap};
use strum::VariantArray as _;

/// Limits of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelLogLimits {
    /// Number of entries.
    pub entries: usize,
    /// Approximate bytes of all entries.
    pub bytes: usize,
    /// Unclassified lines are stored up to this level (4: warnings and worse); classified lines at any level.
    pub level: u8,
}

impl Default for KernelLogLimits {
    fn default() -> Self {
        Self { entries: 2_000, bytes: 1 << 20, level: 4 }
    }
}

/// Lines folded under one entry, and bytes of each.
const MAX_FOLDED_LINES: usize = 128;
const MAX_FOLDED_LINE_BYTES: usize = 240;
/// Bytes of a message; the kernel's own limit is about 1 KiB.
const MAX_MESSAGE_BYTES: usize = 2_048;
/// Devices for which the time of the last medium change is stored.
const MAX_ATTACHED: usize = 256;
/// A message repeated within this time (us) is counted in the existing entry.
const REPEAT_WINDOW_US: u64 = 600 * 1_000_000;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClassCount {
    /// Since the program started.
    pub since_start: u64,
    /// Within the last ten minutes, to the minute.
    pub last_10min: u64,
    /// Since the oldest record in the ring buffer.
    pub total: u64,
    /// Rate-limited lines in total; the true counts are higher by these.
    pub suppressed: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct ClassCounter {
    count: ClassCount,
    recent: RecentCounts,
}

/// The device of a line like `loop0: detected capacity change from 0 to 409600` (block/genhd.c).
fn attached_device(message: &[u8]) -> Option<String> {
    let message = std::str::from_utf8(message).ok()?;
    let (device, _) = message.split_once(": detected capacity change from 0 to ")?;
    let is_name = device.len() <= 32 && !device.is_empty() && device.bytes().all(|b| b.is_ascii_graphic());
    is_name.then(|| device.to_owned())
}

#[derive(Debug)]
struct StoredEntry {
    entry: LogEntry,
    /// Equal for repetitions of one message; `None`: later messages are not counted with it.
    dedup_key: Option<u64>,
}

impl StoredEntry {
    fn heap_bytes(&self) -> usize {
        let e = &self.entry;
        let names = e.device.as_ref().map_or(0, String::len) + e.comm.as_ref().map_or(0, String::len);
        let folded: usize = e.folded.iter().map(|l| l.len() + size_of::<String>()).sum();
        size_of::<StoredEntry>() + 96 + names + e.message.len() + folded
    }
}

/// All records since the oldest one in the ring buffer at the start, within limits.
#[derive(Debug, Default)]
pub struct KernelLog {
    limits: KernelLogLimits,
    started_us: u64,
    /// By order of the newest occurrence.
    stored: BTreeMap<u64, StoredEntry>,
    bytes: usize,
    next_order: u64,
    media_attached: HashMap<String, i64>,
    traces: TraceFolder,
    counters: [ClassCounter; KernelLogClass::VARIANTS.len()],
    next_seq: Option<u64>,
    /// Records that the kernel overwrote before they were read.
    pub dropped: u64,
    /// Changes whenever an entry does.
    pub(crate) revision: u64,
}

impl KernelLog {
    /// An empty log; `start` is the current time, from which "since start" counts.
    pub fn new(start: LogClock, limits: KernelLogLimits) -> Self {
        Self { limits, started_us: start.boot_us(), ..Self::default() }
    }

    /// Adds a record. `clock` is the current time, which dates the record. Records that were added before are ignored,
    /// so the ring buffer may be read again.
    pub fn push(&mut self, record: &KmsgRecord, clock: LogClock) {
        if let Some(next) = self.next_seq {
            if record.seq < next {
                return;
            }
            if record.seq > next {
                self.dropped += record.seq - next;
                self.revision += 1;
            }
        }
        self.next_seq = Some(record.seq.saturating_add(1));
        let mut verdict = classify(record);
        if record.facility == 0 {
            self.record_attached_medium(record, clock);
            if self.try_fold(record, &verdict) {
                return;
            }
            if verdict.role == MessageRole::RoutineContinuation {
                verdict = Classification::UNKNOWN;
            }
        }
        if verdict.class == KernelLogClass::Other && record.level > self.limits.level {
            return;
        }
        self.revision += 1;
        self.add_entry(record, &verdict, clock);
        self.evict();
    }

    /// The entries, newest last.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &LogEntry> + ExactSizeIterator {
        self.stored.values().map(|s| &s.entry)
    }

    /// The entries that the patterns show, newest last. This runs the patterns on every entry: cache the result while
    /// `revision` and the patterns stay the same.
    pub fn visible<'a>(&'a self, patterns: &'a LogPatterns) -> impl DoubleEndedIterator<Item = &'a LogEntry> {
        self.entries().filter(|e| patterns.shows(e))
    }

    /// The kernel's newest report that this task hangs.
    pub fn latest_hung_task(&self, pid: u32) -> Option<&LogEntry> {
        self.entries().rev().find(|e| e.class == KernelLogClass::HungTask && e.pid == Some(pid))
    }

    /// Number of messages of a class, as of `now`.
    pub fn count(&self, class: KernelLogClass, now: LogClock) -> ClassCount {
        let counter = &self.counters[class as usize];
        ClassCount { last_10min: counter.recent.sum(now.boot_us()), ..counter.count }
    }

    /// Wall clock (ns) at which a new medium or backing file appeared behind this device name, if the kernel reported
    /// it. Older messages concern another medium.
    pub fn attached_at(&self, device: &str) -> Option<i64> {
        self.media_attached.get(device).copied()
    }

    fn record_attached_medium(&mut self, record: &KmsgRecord, clock: LogClock) {
        let Some(name) = attached_device(&record.message) else { return };
        // Later messages are not counted with those about the old medium.
        for slot in self.stored.values_mut().filter(|s| s.entry.device.as_deref() == Some(&*name)) {
            slot.dedup_key = None;
        }
        if self.media_attached.len() >= MAX_ATTACHED {
            let oldest = self.media_attached.iter().min_by_key(|(_, at)| **at).map(|(name, _)| name.clone());
            oldest.and_then(|name| self.media_attached.remove(&name));
        }
        self.media_attached.insert(name, clock.wall_ns_at(record.boot_us));
        self.revision += 1;
    }

    /// Number of entries, and their bytes.
    #[cfg(test)]
    pub fn size(&self) -> (usize, usize) {
        (self.stored.len(), self.bytes)
    }

    /// Folds a record under an open entry, or adds a count of rate-limited lines. Whether it did either.
    fn try_fold(&mut self, record: &KmsgRecord, verdict: &Classification<'_>) -> bool {
        if let Some((class, count)) = parse_suppressed(&record.message)
            && class != KernelLogClass::Other
            && self.add_suppressed(class, count, record.boot_us)
        {
            return true;
        }
        let (caller, now_us) = (record.caller.as_deref(), record.boot_us);
        let device = verdict.device.map(escape_invalid_utf8);
        let under = match verdict.role {
            MessageRole::Continuation | MessageRole::RoutineContinuation => {
                self.traces.find_for_continuation(verdict.class, device.as_deref(), caller, now_us)
            }
            MessageRole::Single if verdict.class == KernelLogClass::Other && is_cut_here(&record.message) => {
                return true;
            }
            MessageRole::Single if verdict.class == KernelLogClass::Other => {
                self.traces.find_for_trace_line(&record.message, record.level, caller, now_us)
            }
            _ => None,
        };
        let Some(slot) = under.and_then(|order| self.stored.get_mut(&order)) else { return false };
        self.bytes -= slot.heap_bytes();
        fold_lines(&mut slot.entry, &escape_invalid_utf8(&record.message));
        self.bytes += slot.heap_bytes();
        self.revision += 1;
        self.evict();
        true
    }

    /// Adds rate-limited lines to the newest entry of their class; whether there is one.
    fn add_suppressed(&mut self, class: KernelLogClass, count: u64, boot_us: u64) -> bool {
        let total = &mut self.counters[class as usize].count.suppressed;
        *total = total.saturating_add(count);
        let newest = self.stored.values_mut().rev().find(|s| s.entry.class == class && !s.entry.is_from_program());
        let Some(slot) = newest else { return false };
        slot.entry.suppressed = slot.entry.suppressed.saturating_add(count);
        slot.entry.recent_suppressed.add(boot_us, count);
        self.revision += 1;
        true
    }

    /// Adds an entry for a record, or counts it in an entry with the same message.
    fn add_entry(&mut self, record: &KmsgRecord, verdict: &Classification<'_>, clock: LogClock) {
        let key = Some(dedup::dedup_key(&record.message, verdict, record.facility != 0));
        let mut entry = new_entry(record, verdict, clock);
        let caller = record.caller.as_deref();
        let mut counts = record.facility == 0;
        if verdict.role == MessageRole::Summary
            && let Some(head) = self.traces.take_open(verdict.class, caller, record.boot_us)
            && let Some(slot) = self.remove(head)
        {
            counts = false;
            entry.folded.insert(0, truncate_text(slot.entry.message, MAX_FOLDED_LINE_BYTES));
            entry.folded.extend(slot.entry.folded);
            entry.folded_dropped =
                slot.entry.folded_dropped + entry.folded.len().saturating_sub(MAX_FOLDED_LINES) as u32;
            entry.folded.truncate(MAX_FOLDED_LINES);
        }
        if counts {
            self.count_message(verdict.class, record.boot_us);
        }
        let same = self.stored.iter().rev().find(|(_, slot)| slot.dedup_key == key);
        let same = same.filter(|(_, s)| record.boot_us.saturating_sub(s.entry.boot_us) <= REPEAT_WINDOW_US);
        if let Some(slot) = same.map(|(order, _)| *order).and_then(|order| self.remove(order)) {
            let older = slot.entry;
            entry.count += older.count;
            entry.suppressed = older.suppressed;
            entry.recent = older.recent;
            entry.recent.add(record.boot_us, 1);
            entry.recent_suppressed = older.recent_suppressed;
            entry.first_wall_ns = older.first_wall_ns;
            entry.level = entry.level.min(older.level);
        }
        let (class, device) = (entry.class, entry.device.clone());
        let entry_id = self.insert(StoredEntry { entry, dedup_key: key });
        if record.facility != 0 {
            return;
        }
        let trace = OpenTrace { entry_id, class, device, caller: record.caller.clone(), last_us: record.boot_us };
        match verdict.role {
            MessageRole::Head | MessageRole::Summary => self.traces.open_trace(trace),
            _ => self.traces.set_last_single_line(trace),
        }
    }

    fn count_message(&mut self, class: KernelLogClass, boot_us: u64) {
        let counter = &mut self.counters[class as usize];
        counter.count.total += 1;
        counter.count.since_start += u64::from(boot_us >= self.started_us);
        counter.recent.add(boot_us, 1);
    }

    fn insert(&mut self, slot: StoredEntry) -> u64 {
        let order = self.next_order;
        self.next_order += 1;
        self.bytes += slot.heap_bytes();
        self.stored.insert(order, slot);
        order
    }

    fn remove(&mut self, order: u64) -> Option<StoredEntry> {
        let slot = self.stored.remove(&order)?;
        self.bytes -= slot.heap_bytes();
        self.traces.close(order);
        Some(slot)
    }

    fn evict(&mut self) {
        while self.stored.len() > self.limits.entries || (self.bytes > self.limits.bytes && self.stored.len() > 1) {
            let mut unclassified = self.stored.iter().filter(|(_, slot)| slot.entry.class == KernelLogClass::Other);
            let oldest = unclassified.next().filter(|_| unclassified.count() >= self.limits.entries / 4);
            let Some(order) = oldest.or(self.stored.iter().next()).map(|(order, _)| *order) else { return };
            self.remove(order);
        }
    }
}

fn new_entry(record: &KmsgRecord, verdict: &Classification<'_>, clock: LogClock) -> LogEntry {
    let time = clock.wall_ns_at(record.boot_us);
    let whole = escape_invalid_utf8(&record.message);
    let comm = verdict.comm.map(escape_invalid_utf8);
    // A record of several lines is a head with folded lines, unless the line break is part of a task's name.
    let (head, rest) = match whole.split_once('\n') {
        Some((head, rest)) if !comm.as_ref().is_some_and(|c| c.contains('\n')) => (head.to_owned(), Some(rest)),
        _ => (whole.clone(), None),
    };
    let mut entry = LogEntry {
        wall_ns: time,
        first_wall_ns: time,
        boot_us: record.boot_us,
        seq: Some(record.seq),
        level: record.level,
        class: verdict.class,
        device: verdict.device.map(escape_invalid_utf8),
        devno: match record.device {
            Some(DeviceTag::Block(major, minor)) => Some((major, minor)),
            _ => verdict.device.and_then(DevId::parse).map(|id| (id.major, id.minor)),
        },
        pid: verdict.pid,
        comm,
        count: 1,
        message: truncate_text(head, MAX_MESSAGE_BYTES),
        origin: if record.facility == 0 { LogOrigin::Kernel } else { LogOrigin::User },
        ..LogEntry::default()
    };
    entry.recent.add(record.boot_us, 1);
    if let Some(rest) = rest {
        fold_lines(&mut entry, rest);
    }
    entry
}

fn fold_lines(entry: &mut LogEntry, lines: &str) {
    for line in lines.split('\n') {
        if entry.folded.len() < MAX_FOLDED_LINES {
            entry.folded.push(truncate_text(line.to_owned(), MAX_FOLDED_LINE_BYTES));
        } else {
            entry.folded_dropped += 1;
        }
    }
}

/// Raw bytes as text; bytes that are not UTF-8 become `\xNN`. Control characters stay: sanitize before display.
fn escape_invalid_utf8(raw: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(raw.len());
    for chunk in raw.utf8_chunks() {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

fn truncate_text(mut text: String, bytes: usize) -> String {
    if text.len() > bytes {
        let end = (0..=bytes).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
        text.shrink_to_fit();
    }
    text
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;

//! The log itself: bounded, folded, counted.
//!
//! It never grows beyond its limits, whoever floods it: when full, the oldest unknown lines go first, down
//! to a quarter of the room, so a chatty driver or program does not push out the I/O errors.

use super::classify::{Verdict, classify, suppressed};
use super::fold::{Stories, is_cut_here};
use super::repeat;
use super::rules::Role;
use super::{Class, DeviceTag, LogClock, LogEntry, Origin, Patterns, Record};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Entries.
    pub entries: usize,
    /// Bytes of their texts and bookkeeping, about.
    pub bytes: usize,
    /// Lines that no rule knows are kept up to this level (4: warnings and worse); others at any level.
    pub level: u8,
}

impl Default for Limits {
    fn default() -> Self {
        Self { entries: 2_000, bytes: 1 << 20, level: 4 }
    }
}

/// Lines folded under one entry, and bytes of each.
const FOLDED_MAX: usize = 128;
const FOLDED_BYTES: usize = 240;
/// Bytes of a message; the kernel's own limit is about 1 KiB.
const MESSAGE_BYTES: usize = 2_048;
/// Devices whose newest medium is remembered.
const ATTACHED_MAX: usize = 256;
/// A line that comes again within this (us) is counted, not shown again.
const REPEAT_US: u64 = 600 * 1_000_000;
const MINUTE_US: u64 = 60 * 1_000_000;
/// Ten whole minutes and the one that has begun.
const MINUTES: usize = 11;

/// How often a class came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClassCount {
    /// Since the program started.
    pub since_start: u64,
    /// Within the last ten minutes, to the minute.
    pub last_10min: u64,
    /// All that was in the ring buffer, since boot at the most.
    pub total: u64,
    /// Lines the kernel's rate limit kept back, of all: true counts are higher by these.
    pub suppressed: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counter {
    count: ClassCount,
    /// (minute of the log clock, how many).
    minutes: [(u64, u64); MINUTES],
}

/// The device of a line like `loop0: detected capacity change from 0 to 409600` (block/genhd.c).
fn attached_device(message: &[u8]) -> Option<String> {
    let message = std::str::from_utf8(message).ok()?;
    let (device, _) = message.split_once(": detected capacity change from 0 to ")?;
    let is_name = device.len() <= 32 && !device.is_empty() && device.bytes().all(|b| b.is_ascii_graphic());
    is_name.then(|| device.to_owned())
}

#[derive(Debug)]
struct Slot {
    entry: LogEntry,
    key: u64,
}

impl Slot {
    fn bytes(&self) -> usize {
        let e = &self.entry;
        let names = e.device.as_ref().map_or(0, String::len) + e.comm.as_ref().map_or(0, String::len);
        let folded: usize = e.folded.iter().map(|l| l.len() + size_of::<String>()).sum();
        size_of::<Slot>() + 96 + names + e.message.len() + folded
    }
}

/// The kernel log of this program: what was in the ring buffer at its start and all since, within limits.
#[derive(Debug)]
pub struct KernLog {
    limits: Limits,
    started_us: u64,
    /// By order of their newest occurrence.
    slots: BTreeMap<u64, Slot>,
    by_key: HashMap<u64, u64>,
    unknown: BTreeSet<u64>,
    bytes: usize,
    next_order: u64,
    attached: HashMap<String, i64>,
    stories: Stories,
    counters: [Counter; Class::ALL.len()],
    next_seq: Option<u64>,
    lost: u64,
    revision: u64,
}

impl KernLog {
    /// An empty log; `start` is now, from which on "since start" counts.
    pub fn new(start: LogClock, limits: Limits) -> Self {
        Self {
            limits,
            started_us: start.boot_us(),
            slots: BTreeMap::new(),
            by_key: HashMap::new(),
            unknown: BTreeSet::new(),
            bytes: 0,
            next_order: 0,
            attached: HashMap::new(),
            stories: Stories::default(),
            counters: Default::default(),
            next_seq: None,
            lost: 0,
            revision: 0,
        }
    }

    /// Takes a record. `clock` is now: it dates the record. A record already seen is passed over, so a
    /// ring buffer may be read again.
    pub fn push(&mut self, record: &Record, clock: LogClock) {
        if let Some(next) = self.next_seq {
            if record.seq < next {
                return;
            }
            if record.seq > next {
                self.lost += record.seq - next;
                self.revision += 1;
            }
        }
        self.next_seq = Some(record.seq.saturating_add(1));
        let mut verdict = classify(record);
        if record.facility == 0 {
            self.attach(record, clock);
            if self.belongs_elsewhere(record, &verdict) {
                return;
            }
            if verdict.role == Role::Detail {
                verdict = Verdict::OTHER;
            }
        }
        if verdict.class == Class::Other && record.level > self.limits.level {
            return;
        }
        self.revision += 1;
        self.enter(record, &verdict, clock);
        self.evict();
    }

    /// The entries, newest last.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &LogEntry> + ExactSizeIterator {
        self.slots.values().map(|s| &s.entry)
    }

    /// The entries that the patterns show, newest last. Runs the patterns anew each time: keep the result
    /// while [`revision`](Self::revision) and the patterns stay the same.
    pub fn visible<'a>(&'a self, patterns: &'a Patterns) -> impl DoubleEndedIterator<Item = &'a LogEntry> {
        self.entries().filter(|e| patterns.shows(e))
    }

    /// The kernel's own newest report that this task hangs, so that it need not be told twice.
    pub fn hung_task(&self, pid: u32) -> Option<&LogEntry> {
        self.entries().rev().find(|e| e.class == Class::HungTask && e.pid == Some(pid))
    }

    /// Changes whenever an entry does.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Records that the kernel overwrote before they could be read.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// How often the kernel spoke of this, as of `now`.
    pub fn count(&self, class: Class, now: LogClock) -> ClassCount {
        let counter = &self.counters[class as usize];
        let oldest = (now.boot_us() / MINUTE_US + 1).saturating_sub(MINUTES as u64);
        let last_10min = counter.minutes.iter().filter(|(minute, _)| *minute >= oldest).map(|(_, n)| n).sum();
        ClassCount { last_10min, ..counter.count }
    }

    /// Wall clock (ns) at which a medium or a file came to be behind this device name, as far as the kernel said
    /// so: what was said of the name before is about another one.
    pub fn attached(&self, device: &str) -> Option<i64> {
        self.attached.get(device).copied()
    }

    fn attach(&mut self, record: &Record, clock: LogClock) {
        let Some(name) = attached_device(&record.message) else { return };
        // Nothing that is said from now on is counted with what was said before.
        let slots = &self.slots;
        let other = |order: &u64| slots.get(order).is_none_or(|s| s.entry.device.as_deref() != Some(&*name));
        self.by_key.retain(|_, order| other(order));
        if self.attached.len() >= ATTACHED_MAX {
            let oldest = self.attached.iter().min_by_key(|(_, at)| **at).map(|(name, _)| name.clone());
            oldest.and_then(|name| self.attached.remove(&name));
        }
        self.attached.insert(name, clock.wall_of(record.boot_us));
        self.revision += 1;
    }

    /// Entries and bytes held.
    pub fn size(&self) -> (usize, usize) {
        (self.slots.len(), self.bytes)
    }

    /// Whether a record was folded under another line, or only told of lines kept back.
    fn belongs_elsewhere(&mut self, record: &Record, verdict: &Verdict<'_>) -> bool {
        if let Some((class, count)) = suppressed(&record.message)
            && class != Class::Other
            && self.add_suppressed(class, count)
        {
            return true;
        }
        let (caller, now_us) = (record.caller.as_deref(), record.boot_us);
        let device = verdict.device.map(text);
        let under = match verdict.role {
            Role::Follow | Role::Detail => {
                self.stories.takes_follow(verdict.class, device.as_deref(), caller, now_us)
            }
            Role::Line if verdict.class == Class::Other && is_cut_here(&record.message) => return true,
            Role::Line if verdict.class == Class::Other => {
                self.stories.takes_trace(&record.message, record.level, caller, now_us)
            }
            _ => None,
        };
        let Some(slot) = under.and_then(|order| self.slots.get_mut(&order)) else { return false };
        self.bytes -= slot.bytes();
        fold_lines(&mut slot.entry, &text(&record.message));
        self.bytes += slot.bytes();
        self.revision += 1;
        self.evict();
        true
    }

    /// Adds lines kept back to the newest entry of their class; whether there is one.
    fn add_suppressed(&mut self, class: Class, count: u64) -> bool {
        let total = &mut self.counters[class as usize].count.suppressed;
        *total = total.saturating_add(count);
        let newest = self.slots.values_mut().rev().find(|s| s.entry.class == class && !s.entry.user());
        let Some(slot) = newest else { return false };
        slot.entry.suppressed = slot.entry.suppressed.saturating_add(count);
        self.revision += 1;
        true
    }

    /// Makes an entry of a record, or counts it in the one that says the same.
    fn enter(&mut self, record: &Record, verdict: &Verdict<'_>, clock: LogClock) {
        let key = repeat::key(&record.message, verdict, record.facility != 0);
        let mut entry = entry_of(record, verdict, clock);
        let caller = record.caller.as_deref();
        let mut counts = record.facility == 0;
        if verdict.role == Role::Summary
            && let Some(head) = self.stories.take_over(verdict.class, caller, record.boot_us)
            && let Some(slot) = self.remove(head)
        {
            counts = false;
            entry.folded.insert(0, cut(slot.entry.message, FOLDED_BYTES));
            entry.folded.extend(slot.entry.folded);
            entry.folded_dropped =
                slot.entry.folded_dropped + entry.folded.len().saturating_sub(FOLDED_MAX) as u32;
            entry.folded.truncate(FOLDED_MAX);
        }
        if counts {
            self.tally(verdict.class, record.boot_us);
        }
        let same = self.by_key.get(&key).copied().filter(|order| {
            self.slots.get(order).is_some_and(|s| record.boot_us.saturating_sub(s.entry.boot_us) <= REPEAT_US)
        });
        if let Some(slot) = same.and_then(|order| self.remove(order)) {
            let older = slot.entry;
            entry.count += older.count;
            entry.suppressed = older.suppressed;
            entry.first_time = older.first_time;
            entry.level = entry.level.min(older.level);
        }
        let (class, device) = (entry.class, entry.device.clone());
        let order = self.insert(Slot { entry, key });
        if record.facility != 0 {
            return;
        }
        match verdict.role {
            Role::Head | Role::Summary => {
                self.stories.begin(order, class, device.as_deref(), caller, record.boot_us);
            }
            _ => self.stories.remember(order, class, caller, record.boot_us),
        }
    }

    fn tally(&mut self, class: Class, boot_us: u64) {
        let counter = &mut self.counters[class as usize];
        counter.count.total += 1;
        counter.count.since_start += u64::from(boot_us >= self.started_us);
        let minute = boot_us / MINUTE_US;
        let cell = &mut counter.minutes[(minute % MINUTES as u64) as usize];
        match minute.cmp(&cell.0) {
            std::cmp::Ordering::Equal => cell.1 += 1,
            std::cmp::Ordering::Greater => *cell = (minute, 1),
            std::cmp::Ordering::Less => {}
        }
    }

    fn insert(&mut self, slot: Slot) -> u64 {
        let order = self.next_order;
        self.next_order += 1;
        self.bytes += slot.bytes();
        self.by_key.insert(slot.key, order);
        if slot.entry.class == Class::Other {
            self.unknown.insert(order);
        }
        self.slots.insert(order, slot);
        order
    }

    fn remove(&mut self, order: u64) -> Option<Slot> {
        let slot = self.slots.remove(&order)?;
        self.bytes -= slot.bytes();
        self.unknown.remove(&order);
        if self.by_key.get(&slot.key) == Some(&order) {
            self.by_key.remove(&slot.key);
        }
        self.stories.end(order);
        Some(slot)
    }

    fn evict(&mut self) {
        while self.slots.len() > self.limits.entries
            || (self.bytes > self.limits.bytes && self.slots.len() > 1)
        {
            let unknown =
                self.unknown.first().copied().filter(|_| self.unknown.len() > self.limits.entries / 4);
            let Some(order) = unknown.or_else(|| self.slots.keys().next().copied()) else { return };
            self.remove(order);
        }
    }
}

fn entry_of(record: &Record, verdict: &Verdict<'_>, clock: LogClock) -> LogEntry {
    let time = clock.wall_of(record.boot_us);
    let whole = text(&record.message);
    let comm = verdict.comm.map(text);
    // A record of several lines is a head and its story, unless the break is part of a task's name.
    let (head, rest) = match whole.split_once('\n') {
        Some((head, rest)) if !comm.as_ref().is_some_and(|c| c.contains('\n')) => {
            (head.to_owned(), Some(rest))
        }
        _ => (whole.clone(), None),
    };
    let mut entry = LogEntry {
        time,
        first_time: time,
        boot_us: record.boot_us,
        seq: Some(record.seq),
        level: record.level,
        class: verdict.class,
        device: verdict.device.map(text),
        devno: match record.device {
            Some(DeviceTag::Block(major, minor)) => Some((major, minor)),
            _ => verdict.device.and_then(number_pair),
        },
        pid: verdict.pid,
        comm,
        count: 1,
        message: cut(head, MESSAGE_BYTES),
        folded: Vec::new(),
        folded_dropped: 0,
        origin: if record.facility == 0 { Origin::Kernel } else { Origin::User },
        suppressed: 0,
    };
    if let Some(rest) = rest {
        fold_lines(&mut entry, rest);
    }
    entry
}

/// `8:16`, as multipath and swap name a device.
fn number_pair(name: &[u8]) -> Option<(u32, u32)> {
    let (major, minor) = std::str::from_utf8(name).ok()?.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn fold_lines(entry: &mut LogEntry, lines: &str) {
    for line in lines.split('\n') {
        if entry.folded.len() < FOLDED_MAX {
            entry.folded.push(cut(line.to_owned(), FOLDED_BYTES));
        } else {
            entry.folded_dropped += 1;
        }
    }
}

/// Raw bytes as text: what is not UTF-8 is written `\xNN`. Control characters stay; sinks clean them.
fn text(raw: &[u8]) -> String {
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

fn cut(mut text: String, bytes: usize) -> String {
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

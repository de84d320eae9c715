//! Columns of the Processes table, with iotop's meanings. Adding one is a variant and a row of [`COLUMNS`]: screen,
//! sorting, exports, JSON and the config file take everything from there.

use super::stalls::{stalled_pct, stalled_then_io, waits_text};
use crate::model::column::{CellValue, ColumnSpec, split_into_sets};
use crate::model::io_accounting::rates::is_beyond_buckets;
use crate::model::process::ProcessRow;
use serde::ser::SerializeMap;
use std::borrow::Cow;
use std::sync::LazyLock;

/// A column of the Processes table, or only a sort key; [`COLUMNS`] says what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum ProcessColumn {
    #[default]
    Io,
    Stalled,
    AccIo,
    Tid,
    Pid,
    Ionice,
    User,
    State,
    Read,
    Write,
    AccRead,
    AccWrite,
    Writeback,
    Iops,
    IoLatency,
    Device,
    IoDelay,
    SwapinDelay,
    Swap,
    Throttled,
    Reclaim,
    MajorFaults,
    Rss,
    Cancelled,
    Threads,
    Cgroup,
    Waits,
    Command,
}
use ProcessColumn as Col;

/// A column of the Processes table.
pub type ProcessColumnSpec = ColumnSpec<ProcessColumn, ProcessValue>;

/// What a column of the Processes table adds to its layout.
#[derive(Debug, Clone, Copy)]
pub struct ProcessValue {
    /// Name in the config file.
    pub name: &'static str,
    /// Key in the JSON output.
    pub json: Option<&'static str>,
    flags: u8,
    kind: ValueKind,
}

/// The smallest value or A comes first, unless reversed.
const ASCENDING: u8 = 1;
/// 0 and unknown are dimmed.
const DIM: u8 = 2;

type Text = &'static str;
type Get<T> = fn(&ProcessRow<'_>) -> T;
type GetCell = for<'a> fn(&'a ProcessTexts<'_>) -> CellValue<'a>;
type GetKey = for<'a> fn(&ProcessRow<'a>) -> SortKey<'a>;

#[derive(Debug, Clone, Copy)]
enum ValueKind {
    Number(Unit, Get<Option<f64>>),
    Whole(Get<u32>),
    Bytes(Get<Option<u64>>),
    /// A text, and what to sort by.
    Text(GetCell, GetKey),
}

#[derive(Debug, Clone, Copy)]
enum Unit {
    BytesPerSecond,
    Percent,
    Millis,
    PerSecond,
}

/// The sets of columns. Narrower panes drop columns from the end, so the least important ones are just before COMMAND.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ProcessColumnSet {
    Compact,
    CompactTotals,
    /// Narrow, while sorted by a stall.
    CompactStalls,
    Full,
    /// With tracing of I/O by process.
    FullTraced,
    FullTotals,
    Threads,
    FullThreads,
    ThreadTotals,
    FullThreadTotals,
    /// Fits 100 columns beside a short command.
    TextExport,
    TracedTextExport,
}
const SET_COUNT: usize = 12;

impl ProcessColumnSet {
    /// Its columns in display order.
    pub fn columns(self) -> &'static [ProcessColumnSpec] {
        static SETS: LazyLock<[Vec<ProcessColumnSpec>; SET_COUNT]> = LazyLock::new(|| split_into_sets(COLUMNS));
        &SETS[self as usize]
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

use ProcessColumnSet as Set;
const ALL: u16 = (1 << SET_COUNT) - 1;
const TOTALS: u16 =
    Set::CompactTotals.bit() | Set::FullTotals.bit() | Set::ThreadTotals.bit() | Set::FullThreadTotals.bit();
const RATES: u16 = ALL & !TOTALS;
const NARROW_THREADS: u16 = Set::Threads.bit() | Set::ThreadTotals.bit();
const WIDE_THREADS: u16 = Set::FullThreads.bit() | Set::FullThreadTotals.bit();
const WIDE_PROCESSES: u16 = Set::Full.bit() | Set::FullTraced.bit() | Set::FullTotals.bit();
const WIDE: u16 = WIDE_PROCESSES | WIDE_THREADS;
const STALLS: u16 = Set::CompactStalls.bit();
const EXPORT: u16 = Set::TextExport.bit();
const TRACED_EXPORT: u16 = Set::TracedTextExport.bit();
const TRACED: u16 = Set::FullTraced.bit() | TRACED_EXPORT;

/// Every column, in display order.
pub static COLUMNS: &[ProcessColumnSpec] = &[
    rate(Col::Io, "io", "IO/s", 7, |r| Some(r.rates().read_bytes_per_s? + r.rates().write_bytes_per_s?)).with(
        0,
        0,
        "bytes read and written per second",
    ),
    text(Col::Stalled, "stalled", "", 0, |_| CellValue::Missing, |r| SortKey::number(stalled_then_io(r))).with(
        0,
        0,
        "tasks that are stalled for a fifth of their time or stuck in state D first, then by bytes read and written",
    ),
    bytes(Col::AccIo, "io_sum", "IO", 7, |r| r.accumulated().map(|a| a.read + a.write)).with(
        0,
        0,
        "bytes read and written since the start, or since a reset with D",
    ),
    whole(Col::Tid, "tid", "TID", 7, |r| r.tid())
        .with(NARROW_THREADS | WIDE_THREADS, ASCENDING, "thread id")
        .json("tid"),
    whole(Col::Pid, "pid", "PID", 7, |r| r.pid()).with(ALL & !NARROW_THREADS, ASCENDING, "process id").json("pid"),
    text(Col::Ionice, "prio", "PRIO", 5, |t| CellValue::text(t.ionice.as_deref()), io_priority_key)
        .with(WIDE | EXPORT, ASCENDING, "I/O class and level: rt/0 (highest) to be/7, or idle")
        .json("ionice"),
    text(Col::User, "user", "USER", 8, |t| CellValue::text(t.user.as_deref()), user_key)
        .with(ALL, ASCENDING, "owner")
        .json("user"),
    text(Col::State, "state", "S", 1, |t| CellValue::Letter(t.row.state()), state_key)
        .with(ALL, 0, "state; D: uninterruptible, usually waiting for I/O")
        .json("state"),
    rate(Col::Read, "read", "READ/s", 7, |r| r.rates().read_bytes_per_s)
        .with(RATES, DIM, "bytes fetched from storage per second")
        .json("read_bytes_per_s"),
    rate(Col::Write, "write", "WRITE/s", 7, |r| r.rates().write_bytes_per_s)
        .with(RATES, DIM, "bytes dirtied per second, by the process that dirtied them, not the flusher")
        .json("write_bytes_per_s"),
    bytes(Col::AccRead, "read_sum", "READ", 7, |r| r.accumulated().map(|a| a.read)).with(
        TOTALS,
        0,
        "bytes fetched since the start, or since a reset with D",
    ),
    bytes(Col::AccWrite, "write_sum", "WRITE", 7, |r| r.accumulated().map(|a| a.write)).with(
        TOTALS,
        0,
        "bytes dirtied since the start, or since a reset with D",
    ),
    rate(Col::Writeback, "writeback", "WBACK/s", 7, |r| r.attributed_io().map(|io| io.writeback_bytes_per_s))
        .with(TRACED, DIM, "bytes per second of page cache that it dirtied and that was written back, from tracing")
        .json("writeback_bytes_per_s"),
    number(Col::Iops, "iops", "IOPS", 6, Unit::PerSecond, |r| r.attributed_io().map(|io| io.iops())).with(
        TRACED,
        DIM,
        "reads and writes submitted by it and completed per second, from tracing",
    ),
    number(Col::IoLatency, "p99", "P99ms", 7, Unit::Millis, |r| Some(r.attributed_io()?.p99_us? / 1e3)).with(
        TRACED,
        0,
        "99th percentile of their latency in milliseconds, from tracing; above 6.4 s only as a lower bound",
    ),
    text(Col::Device, "device", "DEV", 8, |t| CellValue::text(t.row.main_device_name()), device_key).with(
        Set::Compact.bit() | Set::FullTraced.bit(),
        DIM,
        "the disk that most of its I/O goes to, its writeback included, from tracing; dm, md and zram are left out",
    ),
    number(Col::IoDelay, "io_delay", "IO%", 6, Unit::Percent, |r| r.rates().io_delay_pct)
        .with(ALL & !STALLS, DIM, "percent of time waiting for block I/O (needs delay accounting)")
        .thresholds(50.0, f64::INFINITY)
        .json("io_delay_pct"),
    number(Col::SwapinDelay, "swapin", "SWAPIN%", 7, Unit::Percent, |r| r.rates().swapin_delay_pct)
        .with(WIDE | EXPORT, DIM, "percent of time waiting for pages from swap (needs delay accounting)")
        .json("swapin_delay_pct"),
    bytes(Col::Swap, "swap", "SWAP", 6, |r| r.raw.swap_bytes)
        .with(ALL & !STALLS, DIM, "VmSwap: bytes of private memory in swap, without shared memory")
        .json("swap_bytes"),
    number(Col::Throttled, "throttled", "THROT%", 6, Unit::Percent, |r| r.throttled_pct())
        .with(
            WIDE_PROCESSES | STALLS,
            DIM,
            "percent of time throttled for too many dirty pages, over all threads, from tracing",
        )
        .thresholds(20.0, f64::INFINITY),
    number(Col::Reclaim, "reclaim", "RECL%", 6, Unit::Percent, |r| r.reclaim_pct())
        .with(WIDE_PROCESSES | STALLS, DIM, "percent of time in direct reclaim, over all threads, from tracing")
        .thresholds(20.0, f64::INFINITY),
    number(Col::MajorFaults, "majflt", "MAJF/s", 6, Unit::PerSecond, |r| r.rates().major_faults_per_s)
        .with(WIDE | EXPORT | TRACED_EXPORT, DIM, "page faults that needed I/O, per second")
        .json("major_faults_per_s"),
    bytes(Col::Rss, "rss", "RSS", 6, |r| Some(r.raw.rss_bytes))
        .with(WIDE | EXPORT, 0, "resident memory, bytes")
        .json("rss_bytes"),
    rate(Col::Cancelled, "cancelled", "CANC/s", 6, |r| r.rates().cancelled_bytes_per_s)
        .with(WIDE, DIM, "bytes dirtied and truncated before they were written, per second")
        .json("cancelled_bytes_per_s"),
    whole(Col::Threads, "threads", "THR", 4, |r| r.raw.num_threads).with(WIDE_PROCESSES, 0, "number of threads of the process"),
    text(Col::Cgroup, "cgroup", "CGROUP", 20, |t| CellValue::text(t.row.container().or(t.row.cgroup())), cgroup_key)
        .with(WIDE, ASCENDING, "container or control group"),
    text(Col::Waits, "waits", "WAITS", 14, |t| CellValue::Text(&t.waits), |r| SortKey::number(stalled_pct(r))).with(
        ALL,
        0,
        "what it waits for in state D, from 2 s on with the time, or what stalls it most and for which share of its time",
    ),
    text(Col::Command, "command", "COMMAND", 0, |t| CellValue::Text(&t.command), |r| SortKey::text(r.raw_cmdline()))
        .with(
            ALL,
            ASCENDING,
            "command line, on screen without the directory of the program; [name] for kernel threads",
        ),
];

const fn column(id: Col, name: Text, header: Text, width: u16, kind: ValueKind) -> ProcessColumnSpec {
    let value = ProcessValue { name, json: None, flags: 0, kind };
    match kind {
        ValueKind::Text(..) => ColumnSpec::left(id, header, width, value, ""),
        _ => ColumnSpec::right(id, header, width, value, ""),
    }
}

const fn number(id: Col, name: Text, head: Text, width: u16, unit: Unit, get: Get<Option<f64>>) -> ProcessColumnSpec {
    column(id, name, head, width, ValueKind::Number(unit, get))
}

const fn rate(id: Col, name: Text, head: Text, width: u16, get: Get<Option<f64>>) -> ProcessColumnSpec {
    column(id, name, head, width, ValueKind::Number(Unit::BytesPerSecond, get))
}

const fn bytes(id: Col, name: Text, head: Text, width: u16, get: Get<Option<u64>>) -> ProcessColumnSpec {
    column(id, name, head, width, ValueKind::Bytes(get))
}

const fn whole(id: Col, name: Text, head: Text, width: u16, get: Get<u32>) -> ProcessColumnSpec {
    column(id, name, head, width, ValueKind::Whole(get))
}

const fn text(id: Col, name: Text, head: Text, width: u16, cell: GetCell, key: GetKey) -> ProcessColumnSpec {
    column(id, name, head, width, ValueKind::Text(cell, key))
}

impl ProcessColumnSpec {
    const fn with(self, sets: u16, flags: u8, help: &'static str) -> Self {
        let ascending = flags & ASCENDING != 0;
        Self { sets, help, ascending, value: ProcessValue { flags, ..self.value }, ..self }
    }

    const fn json(self, key: &'static str) -> Self {
        Self { value: ProcessValue { json: Some(key), ..self.value }, ..self }
    }

    /// Whether 0 and unknown values are dimmed.
    pub fn is_dim_when_zero(&self) -> bool {
        self.value.flags & DIM != 0
    }

    /// The cell of a row.
    pub fn cell<'a>(&self, texts: &'a ProcessTexts<'_>) -> CellValue<'a> {
        let row = &texts.row;
        match self.value.kind {
            ValueKind::Number(unit, get) => get(row).map_or(CellValue::Missing, |n| match unit {
                Unit::BytesPerSecond => CellValue::Bytes(n),
                Unit::Percent => CellValue::Fixed(n, 1),
                Unit::Millis if is_beyond_buckets(n * 1e3) => CellValue::MillisAbove(n),
                Unit::Millis => CellValue::Fixed(n, 2),
                Unit::PerSecond => CellValue::Count(n),
            }),
            ValueKind::Whole(get) => CellValue::Int(get(row).into()),
            ValueKind::Bytes(get) => CellValue::bytes(get(row).map(|n| n as f64)),
            ValueKind::Text(cell, _) => cell(texts),
        }
    }

    /// Adds the value of a row to a JSON object, if the column has a key there.
    ///
    /// # Errors
    /// As of `map`.
    pub fn serialize_entry<M: SerializeMap>(&self, map: &mut M, texts: &ProcessTexts<'_>) -> Result<(), M::Error> {
        let Some(key) = self.value.json else { return Ok(()) };
        match self.value.kind {
            ValueKind::Number(_, get) => map.serialize_entry(key, &get(&texts.row)),
            ValueKind::Whole(get) => map.serialize_entry(key, &get(&texts.row)),
            ValueKind::Bytes(get) => map.serialize_entry(key, &get(&texts.row)),
            ValueKind::Text(cell, _) => match cell(texts) {
                CellValue::Text(text) => map.serialize_entry(key, text),
                CellValue::Letter(letter) => map.serialize_entry(key, &letter),
                _ => map.serialize_entry(key, &()),
            },
        }
    }

    pub fn sort_key<'a>(&self, row: &ProcessRow<'a>) -> SortKey<'a> {
        let key = match self.value.kind {
            ValueKind::Number(_, get) => SortKey::number(get(row)),
            ValueKind::Whole(get) => SortKey::number(Some(get(row).into())),
            ValueKind::Bytes(get) => SortKey::number(get(row).map(|n| n as f64)),
            ValueKind::Text(_, key) => key(row),
        };
        if self.ascending { SortKey { number: -key.number, ..key } } else { key }
    }
}

impl ProcessColumn {
    /// Its description.
    pub fn spec(self) -> &'static ProcessColumnSpec {
        &COLUMNS[self as usize]
    }

    /// The columns to choose from. Those of threads and of sums take the place of others by themselves.
    pub fn choices() -> impl Iterator<Item = &'static ProcessColumnSpec> {
        let is_own = |c: &&ProcessColumnSpec| c.sets != 0 && !matches!(c.id, Col::Tid | Col::AccRead | Col::AccWrite);
        COLUMNS.iter().filter(is_own)
    }

    /// By its name in the config file.
    pub fn by_name(name: &str) -> Option<Self> {
        COLUMNS.iter().find(|c| c.value.name == name).map(|c| c.id)
    }
}

/// What a row is sorted by: the number, largest first, then the text, A first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SortKey<'a> {
    /// NaN if it is unknown, which comes last.
    pub number: f64,
    /// `None` comes first.
    pub text: Option<&'a [u8]>,
}

impl<'a> SortKey<'a> {
    fn number(n: Option<f64>) -> Self {
        Self { number: n.unwrap_or(f64::NAN), text: None }
    }

    fn text(text: Option<&'a [u8]>) -> Self {
        Self { number: 0.0, text }
    }
}

/// Users without a name come first, by their number.
fn user_key<'a>(row: &ProcessRow<'a>) -> SortKey<'a> {
    let number = if row.user_name().is_some() { f64::INFINITY } else { row.raw.uid.map_or(-1.0, f64::from) };
    SortKey { number, text: row.user_name().map(str::as_bytes) }
}

fn device_key<'a>(row: &ProcessRow<'a>) -> SortKey<'a> {
    SortKey::number(row.main_device().map(|id| -f64::from(id.major) * 1e7 - f64::from(id.minor)))
}

/// The highest priority comes first.
fn io_priority_key<'a>(row: &ProcessRow<'a>) -> SortKey<'a> {
    SortKey::number(row.raw.ioprio.map(|p| f64::from(p.class) * 8.0 + f64::from(p.level)))
}

fn cgroup_key<'a>(row: &ProcessRow<'a>) -> SortKey<'a> {
    SortKey::text(row.cgroup().map(str::as_bytes))
}

/// D comes first.
fn state_key<'a>(row: &ProcessRow<'a>) -> SortKey<'a> {
    let order = ["I", "S", "Tt", "Z", "R", "D"];
    SortKey::number(Some(order.iter().position(|letters| letters.contains(row.state())).map_or(-1.0, |at| at as f64)))
}

/// A row with its formatted texts, made once for all its cells.
pub struct ProcessTexts<'a> {
    row: ProcessRow<'a>,
    user: Option<Cow<'a, str>>,
    ionice: Option<String>,
    command: String,
    waits: Cow<'a, str>,
}

impl<'a> ProcessTexts<'a> {
    /// The texts of a row.
    pub fn new(row: &ProcessRow<'a>) -> Self {
        let command = tree_lines(row) + &command_text(row);
        Self { row: *row, user: row.user(), ionice: row.ionice(), command, waits: waits_text(row) }
    }

    /// The texts of a row where room is short: commands begin with the name of the program.
    pub fn for_screen(row: &ProcessRow<'a>) -> Self {
        let mut command = tree_lines(row) + &thread_name(row);
        match row.command() {
            Some(line) => command.push_str(without_directory(&line)),
            None => command.push_str(&row.comm()),
        }
        Self { row: *row, user: row.user(), ionice: row.ionice(), command, waits: waits_text(row) }
    }
}

/// The text of the command column: the thread's name if it has one of its own, then the command line.
pub fn command_text(row: &ProcessRow<'_>) -> String {
    thread_name(row) + &row.command().unwrap_or_else(|| row.comm())
}

/// The lines of the tree before a command.
pub(crate) fn tree_lines(row: &ProcessRow<'_>) -> String {
    let mut out = String::new();
    if let Some(position) = row.tree_position() {
        position.write(&mut out);
    }
    out
}

/// `{name} ` of a thread that is not its process' first.
fn thread_name(row: &ProcessRow<'_>) -> String {
    match row.tid() != row.pid() && !row.raw.kernel_thread {
        true => format!("{{{}}} ", row.comm()),
        false => String::new(),
    }
}

/// A command line without the directory of its program; the name of a kernel thread as it is.
fn without_directory(command: &str) -> &str {
    if command.starts_with('[') {
        return command;
    }
    let end = command.find(' ').unwrap_or(command.len());
    command[..end].rfind('/').map_or(command, |slash| &command[slash + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_in_the_order_of_their_enum_and_have_unique_names() {
        assert!(
            COLUMNS
                .iter()
                .enumerate()
                .all(|(at, c)| c.id as usize == at && ProcessColumn::by_name(c.value.name) == Some(c.id))
        );
        assert!((ProcessColumnSet::TracedTextExport as usize) < SET_COUNT);
    }
}

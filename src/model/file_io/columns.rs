//! The columns of the list of files, and of the list of directories.

use super::{FileClass, FileId, FileIoRates};
use crate::model::column::CellValue::{self, Fixed, Text};
use crate::model::column::{ColumnSource, ColumnSpec};
use crate::model::disk::DevId;
use crate::model::io_accounting::rates::is_beyond_buckets;

/// A file, or a directory with all files in it. Text is sanitized.
#[derive(Debug, Clone, PartialEq)]
pub struct FileRow {
    /// The whole device.
    pub device_id: DevId,
    /// Its name.
    pub device: String,
    /// What it is for.
    pub class: FileClass,
    /// The file; the default one for a directory, and where there is no file.
    pub id: FileId,
    /// Its path; in parentheses what it is if it is no file.
    pub path: String,
    /// The directory that it is in, if that is known.
    pub directory: Option<String>,
    /// The process with most bytes; 0 if unknown.
    pub pid: u32,
    /// Its name, and how many others there are.
    pub process: String,
    /// Reads.
    pub reads: FileIoRates,
    /// Writes.
    pub writes: FileIoRates,
    /// 99th percentile of the times, in microseconds; at most 25 % off.
    pub p99_us: Option<f64>,
}

/// A column of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FileColumn {
    Device,
    Class,
    Reads,
    Writes,
    ReadBytes,
    WriteBytes,
    Time,
    P99,
    Process,
    Path,
}
use FileColumn as Col;

/// A column of the files.
pub type FileColumnSpec = ColumnSpec<FileColumn, FileValue>;
type FileValue = for<'a> fn(&'a FileRow) -> CellValue<'a>;

const fn right(id: Col, header: &'static str, width: u16, value: FileValue, help: &'static str) -> FileColumnSpec {
    ColumnSpec::right(id, header, width, value, help)
}

/// What all columns are read from.
pub static SOURCE: ColumnSource = ColumnSource::new(
    "tracing of block requests and the pages in them, while this view, or the page of a process, device or control group, is open",
    "where the file, the process or the device is unknown",
);

/// In display order. Narrow panes drop columns from the end, but never the path.
pub static FILE_COLUMNS: &[FileColumnSpec] = &[
    ColumnSpec::left(Col::Device, "DEVICE", 8, |f| Text(&f.device), "the device that did the I/O"),
    right(
        Col::Time,
        "time%",
        7,
        |f| Fixed(f.time_pct(), 1),
        "time of its requests in percent of the interval; 100: one in flight all the time",
    ),
    right(
        Col::ReadBytes,
        "read/s",
        7,
        |f| CellValue::Bytes(f.reads.bytes_per_s),
        "bytes read from the device per second",
    ),
    right(
        Col::WriteBytes,
        "write/s",
        8,
        |f| CellValue::Bytes(f.writes.bytes_per_s),
        "bytes written to the device per second",
    ),
    right(Col::Reads, "r/s", 7, |f| Fixed(f.reads.requests_per_s, 0), "read requests completed per second"),
    right(Col::Writes, "w/s", 7, |f| Fixed(f.writes.requests_per_s, 0), "write requests completed per second"),
    right(
        Col::P99,
        "p99 ms",
        8,
        |f| p99(f.p99_us),
        "99th percentile of the times of its requests, milliseconds, within 25 %",
    ),
    ColumnSpec::left(Col::Process, "PROCESS", 18, |f| Text(&f.process), "the process with most bytes of it"),
    ColumnSpec::left(
        Col::Class,
        "KIND",
        9,
        |f| Text(f.class.name()),
        "file, metadata, journal, swap, device (no file system on it), flush or unknown",
    ),
    ColumnSpec::path(Col::Path, "PATH", 0, |f| Text(&f.path), "the file"),
];

impl FileRow {
    /// Time of its requests in percent of the interval.
    pub fn time_pct(&self) -> f64 {
        (self.reads.in_flight + self.writes.in_flight) * 100.0
    }

    /// The value that a column is sorted by.
    pub fn sort_value(&self, column: FileColumn) -> CellValue<'_> {
        FILE_COLUMNS.iter().find(|c| c.id == column).map_or(CellValue::Missing, |c| (c.value)(self))
    }
}
/// A percentile in milliseconds; `>6.4 s` where it is only a lower bound.
fn p99<'a>(us: Option<f64>) -> CellValue<'a> {
    match us {
        Some(us) if is_beyond_buckets(us) => CellValue::MillisAbove(us / 1e3),
        us => CellValue::fixed(us.map(|us| us / 1e3), 2),
    }
}

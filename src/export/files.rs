//! The tables of files and of directories.

use super::table::Table;
use crate::model::file_io::FileRow;
use crate::model::file_io::columns::{FILE_COLUMNS, FileColumn};
use crate::model::file_io::list::{self, FileQuery};
use crate::model::snapshot::Snapshot;
use crate::model::topology::Topology;

/// I/O by file at the devices. The notes say what it is for and what is missing.
pub(crate) fn build_table(
    title: String,
    snapshot: &Snapshot,
    topology: Option<&Topology>,
    query: &FileQuery<'_>,
) -> Table {
    let mut table = Table::with_columns(title, FILE_COLUMNS);
    let Some(files) = snapshot.files.ok() else {
        table.notes.extend(snapshot.files.unavailable_reason(snapshot.time.boot_ns));
        return table;
    };
    push_rows(&mut table, &list::file_rows(files, topology, query));
    table.notes = list::notes(files, snapshot);
    table
}

/// I/O by directory; `None` where files are not traced, which the other table explains.
pub(crate) fn build_directory_table(
    title: String,
    snapshot: &Snapshot,
    topology: Option<&Topology>,
    query: &FileQuery<'_>,
) -> Option<Table> {
    let mut table = Table::with_columns(title, FILE_COLUMNS);
    push_rows(&mut table, &list::directory_rows(snapshot.files.ok()?, topology, query));
    Some(table)
}

fn push_rows(table: &mut Table, rows: &[FileRow]) {
    for row in rows {
        table.push_values(FILE_COLUMNS, |column| (column.value)(row));
    }
}

/// Headers of [`format_row`].
pub(crate) const HEADERS: [&str; 5] = ["time%", "read/s", "write/s", "p99 ms", "process"];

/// The figures of a file for a list on a page, as [`HEADERS`].
pub(crate) fn format_row(row: &FileRow) -> [String; 5] {
    let columns =
        [FileColumn::Time, FileColumn::ReadBytes, FileColumn::WriteBytes, FileColumn::P99, FileColumn::Process];
    columns.map(|column| {
        let mut text = String::new();
        row.sort_value(column).write(&mut text);
        text
    })
}

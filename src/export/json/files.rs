//! `files[]`: I/O by file at the devices.

use crate::model::file_io::FileRow;
use crate::model::file_io::list::{self, FileQuery};
use crate::model::system_state::SystemState;
use serde_json::{Value, json};

/// Files, most time first; `null` where they are not traced.
pub(super) fn files(system: &SystemState) -> Option<Vec<Value>> {
    let files = system.snapshot.files.ok()?;
    let one = |row: FileRow| {
        let fs = row.id.file_system;
        let has_file = row.id.ino > 0;
        json!({
            "device": row.device,
            "kind": row.class.name(),
            "path": has_file.then_some(&row.path),
            "directory": row.directory,
            "file_system": has_file.then(|| format!("{}:{}", fs.major, fs.minor)),
            "inode": has_file.then_some(row.id.ino),
            "pid": (row.pid > 0).then_some(row.pid),
            "command": files.process_name(row.pid),
            "reads_per_s": row.reads.requests_per_s,
            "writes_per_s": row.writes.requests_per_s,
            "read_bytes_per_s": row.reads.bytes_per_s,
            "write_bytes_per_s": row.writes.bytes_per_s,
            "reads_in_flight": row.reads.in_flight,
            "writes_in_flight": row.writes.in_flight,
            "p99_us": row.p99_us,
        })
    };
    let rows = list::file_rows(files, system.topology.ok(), &FileQuery::default());
    Some(rows.into_iter().map(one).collect())
}

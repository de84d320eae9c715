//! One task's figures, names and hindrances as bytes.

use super::super::codec::{ByteReader, DecodeError, put_blob, put_optional_blob, put_signed_varint, put_varint};
use crate::model::process::{BlockedTask, IoBytes, IoPrio, TaskDelays, TaskIoRaw, TaskKey, TaskNames, TaskRaw};
use crate::sanitize::sanitize;
use std::sync::Arc;

/// Figures of a row.
pub const COLUMNS: usize = 20;

/// The row of a task.
pub fn to_row(raw: &TaskRaw) -> [u64; COLUMNS] {
    let io = raw.io.bytes().unwrap_or_default();
    let kind = match raw.io {
        TaskIoRaw::Read(_) => 0,
        TaskIoRaw::Denied => 1,
        TaskIoRaw::Blocked => 2,
        TaskIoRaw::Absent => 3,
    };
    let (delays, prio) = (raw.delays, raw.ioprio);
    let swapin = delays.and_then(|d| d.swapin_ns);
    let bits = u64::from(raw.kernel_thread)
        | u64::from(prio.is_some()) << 1
        | u64::from(raw.uid.is_some()) << 2
        | u64::from(raw.swap_bytes.is_some()) << 3
        | u64::from(delays.is_some()) << 4
        | u64::from(swapin.is_some()) << 5
        | kind << 6;
    let half = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| raw.comm[at + i]));
    [
        raw.timeslices,
        raw.cpu_ticks,
        delays.map_or(0, |d| d.blkio_ns),
        io.write,
        io.read,
        // In pages where they fill some: fewer bytes.
        raw.rss_bytes.rotate_right(12),
        u64::from(raw.state),
        raw.majflt,
        io.cancelled,
        swapin.unwrap_or_default(),
        raw.swap_bytes.unwrap_or_default(),
        u64::from(raw.num_threads),
        bits,
        prio.map_or(0, |p| u64::from(p.to_raw())),
        u64::from(raw.ppid),
        raw.uid.map_or(0, u64::from),
        half(0),
        half(8),
        // The key: it differs only where a number means another task now.
        u64::from(raw.key.pid),
        raw.key.starttime,
    ]
}

/// The task of a row.
pub fn from_row(tid: u32, c: &[u64; COLUMNS]) -> Result<TaskRaw, DecodeError> {
    let narrow = |n: u64| u32::try_from(n).map_err(|_| DecodeError("a number of more than 32 bits"));
    let bit = |n: u32| c[12] >> n & 1 == 1;
    let mut comm = [0; 16];
    comm[..8].copy_from_slice(&c[16].to_le_bytes());
    comm[8..].copy_from_slice(&c[17].to_le_bytes());
    let state = c[6] as u8;
    Ok(TaskRaw {
        key: TaskKey { pid: narrow(c[18])?, tid, starttime: c[19] },
        comm,
        // It is shown as a letter, whoever wrote the file.
        state: if state.is_ascii_alphabetic() { state } else { b'?' },
        kernel_thread: bit(0),
        ioprio: bit(1).then(|| IoPrio::from_raw(c[13] as u32)),
        ppid: narrow(c[14])?,
        uid: if bit(2) { Some(narrow(c[15])?) } else { None },
        num_threads: narrow(c[11])?,
        majflt: c[7],
        cpu_ticks: c[1],
        timeslices: c[0],
        rss_bytes: c[5].rotate_left(12),
        swap_bytes: bit(3).then_some(c[10]),
        io: match c[12] >> 6 & 3 {
            0 => TaskIoRaw::Read(IoBytes { read: c[4], write: c[3], cancelled: c[8] }),
            1 => TaskIoRaw::Denied,
            2 => TaskIoRaw::Blocked,
            _ => TaskIoRaw::Absent,
        },
        delays: bit(4).then_some(TaskDelays { blkio_ns: c[2], swapin_ns: bit(5).then_some(c[9]) }),
    })
}

/// Appends a number near the one before.
pub fn put_delta(out: &mut Vec<u8>, last: &mut u64, n: u64) {
    put_signed_varint(out, n.wrapping_sub(*last) as i64);
    *last = n;
}

/// What [`put_near`] wrote.
pub fn get_delta(inp: &mut ByteReader, last: &mut u64) -> Result<u64, DecodeError> {
    *last = last.wrapping_add(inp.signed_varint()? as u64);
    Ok(*last)
}

/// The same for a task's number.
pub fn get_tid_delta(inp: &mut ByteReader, last: &mut u64) -> Result<u32, DecodeError> {
    u32::try_from(get_delta(inp, last)?).map_err(|_| DecodeError("a task number of more than 32 bits"))
}

/// Appends who.
pub fn put_key(out: &mut Vec<u8>, key: &TaskKey) {
    put_varint(out, u64::from(key.tid));
    put_varint(out, u64::from(key.pid));
    put_varint(out, key.starttime);
}

/// What [`put_key`] wrote.
pub fn get_key(inp: &mut ByteReader) -> Result<TaskKey, DecodeError> {
    Ok(TaskKey { tid: inp.varint_u32()?, pid: inp.varint_u32()?, starttime: inp.varint()? })
}

/// Appends names.
pub fn put_names(out: &mut Vec<u8>, names: &TaskNames) {
    put_optional_blob(out, names.cmdline.as_deref());
    put_blob(out, names.cgroup.as_bytes());
    put_optional_blob(out, names.container.as_deref().map(str::as_bytes));
}

/// What [`put_names`] wrote. What is only ever shown is cleaned here.
pub fn get_names(inp: &mut ByteReader) -> Result<Arc<TaskNames>, DecodeError> {
    let cmdline = inp.optional_blob()?.map(Box::from);
    let cgroup = sanitize(inp.blob()?).into();
    Ok(Arc::new(TaskNames { cmdline, cgroup, container: inp.optional_blob()?.map(|c| sanitize(c).into()) }))
}

/// Appends the tasks with a read that does not return.
pub fn put_blocked(out: &mut Vec<u8>, list: &[BlockedTask]) {
    put_varint(out, list.len() as u64);
    for b in list {
        put_key(out, &b.key);
        put_varint(out, b.since_boot_ns);
        put_blob(out, b.waiting_on.as_bytes());
        out.push(u8::from(b.counters_readable));
    }
}

/// What [`put_blocked`] wrote.
pub fn get_blocked(inp: &mut ByteReader) -> Result<Vec<BlockedTask>, DecodeError> {
    let one = |inp: &mut ByteReader| {
        Ok(BlockedTask {
            key: get_key(inp)?,
            since_boot_ns: inp.varint()?,
            waiting_on: sanitize(inp.blob()?),
            counters_readable: inp.byte()? != 0,
        })
    };
    (0..inp.count()?).map(|_| one(inp)).collect()
}

/// Appends words for a person.
pub fn put_notes(out: &mut Vec<u8>, notes: &[String]) {
    put_varint(out, notes.len() as u64);
    notes.iter().for_each(|note| put_blob(out, note.as_bytes()));
}

/// What [`put_notes`] wrote.
pub fn get_notes(inp: &mut ByteReader) -> Result<Vec<String>, DecodeError> {
    (0..inp.count()?).map(|_| inp.blob().map(sanitize)).collect()
}

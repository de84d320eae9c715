//! Looks at the tasks as differences to the look before, and the whole table for a frame that stands by itself.
//!
//! Writer and reader keep the same table ([`Tasks`]) and change it in the same way, so a row costs a few
//! bytes. Which row is told by its task number; a number that means another task now comes with its whole key.

mod keyframe;
mod row;

use super::codec::{ByteReader, DecodeError, put_blob, put_row_delta, put_signed_varint, put_varint};
use super::sample::{get_clock, get_outcome, put_clock, put_outcome};
use crate::model::process::{ProcessUpdate, TaskChange, TaskKey, TaskNames, TaskRaw};
use crate::model::reading::Reading;
use crate::sanitize::sanitize;
use row::{
    COLUMNS, from_row, get_blocked, get_delta, get_key, get_names, get_notes, get_tid_delta, put_blocked, put_delta,
    put_key, put_names, put_notes, to_row,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Tasks of one machine: beyond it a recording is not believed, and a recorder leaves the rest out.
const MAX_TASKS: usize = 131_072;

/// One task as both sides know it.
#[derive(Debug, Clone, PartialEq)]
struct RecordedTask {
    raw: TaskRaw,
    /// When its counters were read last.
    at_ns: u64,
    /// Since when it is in its state.
    state_since_ns: u64,
    names: Option<Arc<TaskNames>>,
}

/// The table as of the newest look.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordedTasks {
    rows: BTreeMap<u32, RecordedTask>,
    users: BTreeMap<u32, Arc<str>>,
    wait_channels: BTreeMap<u32, Arc<str>>,
    /// The newest look without its rows.
    last_update: ProcessUpdate,
    /// Why there is no newest look.
    unavailable: Option<Reading<()>>,
    /// Rows changed since [`Tasks::mark`], and whether their names did; what ended since then.
    changed_since_key: BTreeMap<u32, bool>,
    ended_since_key: BTreeSet<TaskKey>,
}

const FLAG_THREADS: u64 = 1;
const FLAG_RESET: u64 = 2;
const FLAG_HAS_PREV: u64 = 4;
const FLAG_PREV_IS_LAST: u64 = 8;
const FLAG_SAME_DELAYS: u64 = 16;
const FLAG_SAME_NOTES: u64 = 32;
const FLAG_BLOCKED: u64 = 64;

/// How many of something that a task has at most one of.
fn bounded_count(inp: &mut ByteReader) -> Result<usize, DecodeError> {
    match inp.count()? {
        n if n > MAX_TASKS => Err(DecodeError("more tasks than any machine has")),
        n => Ok(n),
    }
}

impl RecordedTasks {
    /// From now on counts what [`Tasks::put_base`] writes when it is not to be complete.
    pub fn mark_key_frame(&mut self) {
        self.changed_since_key.clear();
        self.ended_since_key.clear();
    }

    /// Appends a look, and takes it in.
    pub fn encode(&mut self, out: &mut Vec<u8>, look: &Reading<ProcessUpdate>) {
        if !put_outcome(out, look) {
            self.unavailable = Some(look.clone().map(|_| ()));
            return;
        }
        let Some(update) = look.ok() else { return };
        self.put_head(out, update);
        self.put_changed(out, update);
        put_varint(out, update.exited.len() as u64);
        for key in &update.exited {
            put_key(out, key);
            self.remove(key);
        }
        let names: Vec<_> = update.names.iter().filter(|(key, _)| self.contains(key)).collect();
        put_varint(out, names.len() as u64);
        let mut tid = 0;
        for (key, names) in names {
            put_delta(out, &mut tid, u64::from(key.tid));
            put_names(out, names);
            self.set_names(key.tid, names.clone());
        }
        put_varint(out, update.users.len() as u64);
        for (uid, name) in &update.users {
            put_varint(out, u64::from(*uid));
            put_blob(out, name.as_bytes());
            self.users.insert(*uid, name.clone());
        }
        let waits: Vec<_> = update.wait_channels.iter().filter(|(key, _)| self.contains(key)).collect();
        put_varint(out, waits.len() as u64);
        tid = 0;
        for (key, wait) in waits {
            put_delta(out, &mut tid, u64::from(key.tid));
            put_blob(out, wait.as_bytes());
            self.wait_channels.insert(key.tid, wait.clone());
        }
        if !update.blocked.is_empty() {
            put_blocked(out, &update.blocked);
        }
    }

    fn put_head(&mut self, out: &mut Vec<u8>, update: &ProcessUpdate) {
        let head = &self.last_update;
        let mut bits = 0;
        for (bit, on) in [
            (FLAG_THREADS, update.rows_are_threads),
            (FLAG_RESET, update.reset),
            (FLAG_HAS_PREV, update.previous_time.is_some()),
            (FLAG_PREV_IS_LAST, update.previous_time == Some(head.time)),
            (FLAG_SAME_DELAYS, update.delays == head.delays),
            (FLAG_SAME_NOTES, update.notes == head.notes),
            (FLAG_BLOCKED, !update.blocked.is_empty()),
        ] {
            bits |= if on { bit } else { 0 };
        }
        put_varint(out, bits);
        put_clock(out, head.seq, head.time, update.seq, update.time);
        if let Some(prev) = update.previous_time.filter(|p| *p != head.time) {
            put_clock(out, 0, head.time, 0, prev);
        }
        put_varint(out, update.duration_ns);
        put_signed_varint(out, (update.total as i64).wrapping_sub(head.total as i64));
        put_signed_varint(out, (update.hidden_count as i64).wrapping_sub(head.hidden_count as i64));
        if bits & FLAG_SAME_DELAYS == 0 {
            put_outcome(out, &update.delays);
        }
        if bits & FLAG_SAME_NOTES == 0 {
            put_notes(out, &update.notes);
        }
        self.apply_head(update);
    }

    /// Takes in what a look says of itself.
    fn apply_head(&mut self, update: &ProcessUpdate) {
        if update.reset {
            self.ended_since_key.extend(self.rows.values().map(|row| row.raw.key));
            self.rows.clear();
            self.wait_channels.clear();
            self.changed_since_key.clear();
        }
        self.unavailable = None;
        self.last_update = ProcessUpdate {
            delays: update.delays.clone(),
            notes: update.notes.clone(),
            blocked: update.blocked.clone(),
            changed: Vec::new(),
            exited: Vec::new(),
            names: Vec::new(),
            users: Vec::new(),
            wait_channels: Vec::new(),
            ..*update
        };
    }

    fn put_changed(&mut self, out: &mut Vec<u8>, update: &ProcessUpdate) {
        let room = MAX_TASKS.saturating_sub(self.rows.len());
        let fits = update.changed.len() <= room;
        let changed: Vec<&TaskChange> =
            update.changed.iter().filter(|c| fits || self.rows.contains_key(&c.raw.key.tid)).collect();
        put_varint(out, changed.len() as u64);
        let (mut tid, mut at, mut since) = (0, update.time.boot_ns, update.time.boot_ns);
        for change in changed {
            let row = self.rows.get(&change.raw.key.tid);
            put_delta(out, &mut tid, u64::from(change.raw.key.tid) << 1 | u64::from(row.is_some()));
            put_row_delta(out, &row.map_or([0; COLUMNS], |row| to_row(&row.raw)), &to_row(&change.raw));
            put_delta(out, &mut at, change.scanned_ns);
            // Mostly the time of its own last change, or that of all which did not run.
            match row.is_some_and(|row| row.at_ns == change.previous_scan_ns) {
                true => put_varint(out, 1),
                false => {
                    let by = change.previous_scan_ns.wrapping_sub(since) as i64;
                    put_varint(out, (((by << 1) ^ (by >> 63)) as u64) << 1);
                    since = change.previous_scan_ns;
                }
            }
            self.apply_change(change);
        }
    }

    /// What [`Tasks::put`] wrote, taken in likewise.
    pub fn decode(&mut self, inp: &mut ByteReader) -> Result<Reading<ProcessUpdate>, DecodeError> {
        match get_outcome(inp)? {
            Reading::Ok(()) => {}
            Reading::Denied(why) => return Ok(self.set_unavailable(Reading::Denied(why))),
            Reading::Absent(why) => return Ok(self.set_unavailable(Reading::Absent(why))),
            Reading::Blocked(b) => return Ok(self.set_unavailable(Reading::Blocked(b))),
        }
        let (mut update, blocked) = self.get_head(inp)?;
        self.apply_head(&update);
        update.changed = self.get_changed(inp, &update)?;
        for _ in 0..bounded_count(inp)? {
            let key = get_key(inp)?;
            self.remove(&key);
            update.exited.push(key);
        }
        let mut tid = 0;
        for _ in 0..bounded_count(inp)? {
            let tid = get_tid_delta(inp, &mut tid)?;
            let names = get_names(inp)?;
            if let Some(key) = self.key_of(tid) {
                self.set_names(tid, names.clone());
                update.names.push((key, names));
            }
        }
        for _ in 0..bounded_count(inp)? {
            let (uid, name) = (inp.varint_u32()?, Arc::<str>::from(inp.string()?));
            self.users.insert(uid, name.clone());
            update.users.push((uid, name));
        }
        let mut tid = 0;
        for _ in 0..bounded_count(inp)? {
            let (tid, wait) = (get_tid_delta(inp, &mut tid)?, Arc::<str>::from(sanitize(inp.blob()?)));
            if let Some(key) = self.key_of(tid) {
                self.wait_channels.insert(tid, wait.clone());
                update.wait_channels.push((key, wait));
            }
        }
        if blocked {
            update.blocked = get_blocked(inp)?;
            self.last_update.blocked = update.blocked.clone();
        }
        Ok(Reading::Ok(update))
    }

    fn set_unavailable(&mut self, why: Reading<()>) -> Reading<ProcessUpdate> {
        self.unavailable = Some(why.clone());
        why.map(|()| ProcessUpdate::default())
    }

    fn get_head(&self, inp: &mut ByteReader) -> Result<(ProcessUpdate, bool), DecodeError> {
        let head = &self.last_update;
        let bits = inp.varint()?;
        let (seq, at) = get_clock(inp, head.seq, head.time)?;
        let mut update = ProcessUpdate { seq, time: at, ..ProcessUpdate::default() };
        if bits & FLAG_HAS_PREV != 0 {
            let last = bits & FLAG_PREV_IS_LAST != 0;
            update.previous_time = Some(if last { head.time } else { get_clock(inp, 0, head.time)?.1 });
        }
        update.duration_ns = inp.varint()?;
        let near = |before: usize, by: i64| (before as i64).wrapping_add(by).max(0) as usize;
        update.total = near(head.total, inp.signed_varint()?);
        update.hidden_count = near(head.hidden_count, inp.signed_varint()?);
        update.rows_are_threads = bits & FLAG_THREADS != 0;
        update.reset = bits & FLAG_RESET != 0;
        update.delays = if bits & FLAG_SAME_DELAYS != 0 { head.delays.clone() } else { get_outcome(inp)? };
        update.notes = if bits & FLAG_SAME_NOTES != 0 { head.notes.clone() } else { get_notes(inp)? };
        // Room is made for so many rows by whoever takes it.
        update.total = update.total.min(MAX_TASKS);
        Ok((update, bits & FLAG_BLOCKED != 0))
    }

    fn get_changed(&mut self, inp: &mut ByteReader, update: &ProcessUpdate) -> Result<Vec<TaskChange>, DecodeError> {
        let n = bounded_count(inp)?;
        let mut changed = Vec::new();
        let (mut tid, mut at, mut since) = (0, update.time.boot_ns, update.time.boot_ns);
        for _ in 0..n {
            let word = get_delta(inp, &mut tid)?;
            let tid = u32::try_from(word >> 1).map_err(|_| DecodeError("a task number of more than 32 bits"))?;
            let known = word & 1 == 1;
            let row = self.rows.get(&tid).filter(|_| known);
            let mut figures = row.map_or([0; COLUMNS], |row| to_row(&row.raw));
            let own = row.map_or(0, |row| row.at_ns);
            inp.apply_row_delta(&mut figures)?;
            let at_ns = get_delta(inp, &mut at)?;
            let since_ns = match inp.varint()? {
                n if n & 1 == 1 => own,
                n => {
                    let n = n >> 1;
                    since = since.wrapping_add(((n >> 1) as i64 ^ -((n & 1) as i64)) as u64);
                    since
                }
            };
            if known && row.is_none() {
                // Known to the writer, not to us: what it did is told, not who it is. A key frame is missing.
                continue;
            }
            let change = TaskChange { raw: from_row(tid, &figures)?, scanned_ns: at_ns, previous_scan_ns: since_ns };
            if self.rows.len() >= MAX_TASKS && !known {
                return Err(DecodeError("more tasks than any machine has"));
            }
            self.apply_change(&change);
            changed.push(change);
        }
        Ok(changed)
    }

    fn key_of(&self, tid: u32) -> Option<TaskKey> {
        self.rows.get(&tid).map(|row| row.raw.key)
    }

    fn contains(&self, key: &TaskKey) -> bool {
        self.key_of(key.tid) == Some(*key)
    }

    fn apply_change(&mut self, change: &TaskChange) {
        let key = change.raw.key;
        self.wait_channels.remove(&key.tid);
        let touched = self.changed_since_key.entry(key.tid).or_default();
        match self.rows.get_mut(&key.tid) {
            Some(row) if row.raw.key == key => {
                if (row.raw.state, row.raw.timeslices) != (change.raw.state, change.raw.timeslices) {
                    row.state_since_ns = change.scanned_ns;
                }
                (row.raw, row.at_ns) = (change.raw, change.scanned_ns);
            }
            _ => {
                *touched = true;
                let row = RecordedTask {
                    raw: change.raw,
                    at_ns: change.scanned_ns,
                    state_since_ns: change.scanned_ns,
                    names: None,
                };
                if let Some(old) = self.rows.insert(key.tid, row) {
                    self.ended_since_key.insert(old.raw.key);
                }
            }
        }
    }

    fn remove(&mut self, key: &TaskKey) {
        if self.contains(key) {
            self.rows.remove(&key.tid);
            self.wait_channels.remove(&key.tid);
            self.changed_since_key.remove(&key.tid);
            self.ended_since_key.insert(*key);
        }
    }

    fn set_names(&mut self, tid: u32, names: Arc<TaskNames>) {
        if let Some(row) = self.rows.get_mut(&tid) {
            row.names = Some(names);
            self.changed_since_key.insert(tid, true);
        }
    }

    /// Rows known.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

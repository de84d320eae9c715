//! Process updates as differences to the update before, and the whole table for a frame that stands by itself.
//!
//! Writer and reader keep the same table ([`RecordedTasks`]) and change it in the same way, so a row costs a few bytes.
//! A row is identified by its task number; a number that has been reused comes with the whole key.

mod keyframe;
mod row;

use super::codec::{Coded, DecodeError, Wire, unzigzag, zigzag};
use super::counter_row::code_row;
use crate::model::process::{ProcessUpdate, TaskChange, TaskKey, TaskNames, TaskRaw};
use crate::model::reading::Reading;
use row::{EMPTY, TID_TOO_LARGE, blocked_task, chained_tid, task_key, task_names, thread_states, user_name};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Tasks of one machine at most: a reader refuses more, a writer leaves them out.
const MAX_TASKS: usize = 131_072;
/// Users with a name, blocked tasks and notes of one machine at most.
const MAX_USERS: usize = 65_536;
const MAX_BLOCKED: usize = 16_384;
const MAX_NOTES: usize = 64;
const TOO_MANY_TASKS: DecodeError = DecodeError("there are more tasks than a machine can have");

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

/// The table as of the newest update.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RecordedTasks {
    rows: BTreeMap<u32, RecordedTask>,
    users: BTreeMap<u32, Arc<str>>,
    wait_channels: BTreeMap<u32, Arc<str>>,
    /// The newest update without its rows.
    last_update: ProcessUpdate,
    /// Why there is no newest update.
    unavailable: Option<Reading<()>>,
    /// Rows changed since the key frame, and whether their names did.
    changed_since_key: BTreeMap<u32, bool>,
    ended_since_key: BTreeSet<TaskKey>,
    /// Rows at most, for a reader.
    row_limit: Option<usize>,
}

/// The last values of the columns that are coded as differences from row to row.
struct Cursor {
    tid: u64,
    scanned_ns: u64,
    previous_scan_ns: u64,
}

impl RecordedTasks {
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Sets how many tasks a reader takes at most.
    pub(crate) fn set_row_limit(&mut self, limit: Option<usize>) {
        self.row_limit = limit;
    }

    fn max_rows(&self) -> usize {
        self.row_limit.unwrap_or(MAX_TASKS).min(MAX_TASKS)
    }

    fn add_users(&mut self, users: &[(u32, Arc<str>)]) {
        for (uid, name) in users {
            if self.users.len() < MAX_USERS || self.users.contains_key(uid) {
                self.users.insert(*uid, name.clone());
            }
        }
    }

    /// A key frame has been written: from now on an incomplete base holds what changes after it.
    pub(crate) fn mark_key_frame(&mut self) {
        self.changed_since_key.clear();
        self.ended_since_key.clear();
    }

    /// An update, which the table takes over. When writing, what a table cannot hold is removed from it.
    pub(crate) fn code(&mut self, w: &mut Wire, reading: &mut Reading<ProcessUpdate>) -> Coded {
        w.outcome(reading)?;
        let Reading::Ok(update) = reading else {
            self.unavailable = Some(reading.clone().map(|_| ()));
            return Ok(());
        };
        let has_blocked = self.code_head(w, update)?;
        self.apply_head(update);
        self.code_changes(w, update)?;
        w.list(MAX_TASKS, &mut update.exited, |w, key| {
            task_key(w, key)?;
            self.remove(key);
            Ok(())
        })?;
        update.names.retain(|(key, _)| self.contains(key));
        let mut last = 0;
        w.list(MAX_TASKS, &mut update.names, |w, (key, names)| {
            chained_tid(w, &mut last, &mut key.tid)?;
            task_names(w, Arc::make_mut(names))?;
            *key = self.key_of(key.tid).unwrap_or(*key);
            self.set_names(key.tid, names.clone());
            Ok(())
        })?;
        w.list(MAX_TASKS, &mut update.users, user_name)?;
        self.add_users(&update.users);
        update.wait_channels.retain(|(key, _)| self.contains(key));
        last = 0;
        w.list(MAX_TASKS, &mut update.wait_channels, |w, (key, wait)| {
            chained_tid(w, &mut last, &mut key.tid)?;
            w.shown_text(wait)?;
            if let Some(known) = self.key_of(key.tid) {
                *key = known;
                self.wait_channels.insert(key.tid, wait.clone());
            }
            Ok(())
        })?;
        // Tasks that only the writer knows, because a key frame could not be read.
        update.names.retain(|(key, _)| self.contains(key));
        update.wait_channels.retain(|(key, _)| self.contains(key));
        if has_blocked {
            w.list(MAX_BLOCKED, &mut update.blocked, blocked_task)?;
            self.last_update.blocked.clone_from(&update.blocked);
        }
        thread_states(w, update)?;
        self.last_update.uninterruptible_threads.clone_from(&update.uninterruptible_threads);
        self.last_update.all_threads_known = update.all_threads_known;
        if w.is_read() {
            // Only a writer needs to know what changed.
            self.mark_key_frame();
        }
        Ok(())
    }

    /// What an update says about itself; returns whether it has blocked tasks.
    fn code_head(&self, w: &mut Wire, update: &mut ProcessUpdate) -> Result<bool, DecodeError> {
        let head = &self.last_update;
        let flags = [
            update.rows_are_threads,
            update.reset,
            update.previous_time.is_some(),
            update.previous_time == Some(head.time),
            update.delays == head.delays,
            update.notes == head.notes,
            !update.blocked.is_empty(),
        ];
        let mut bits = flags.iter().rev().fold(0u64, |bits, flag| bits << 1 | u64::from(*flag));
        w.num(&mut bits)?;
        let flags: [bool; 7] = std::array::from_fn(|n| bits >> n & 1 == 1);
        let [are_threads, is_reset, has_previous, previous_is_last, same_delays, same_notes, has_blocked] = flags;
        (update.rows_are_threads, update.reset) = (are_threads, is_reset);
        w.clock((head.seq, head.time), &mut update.seq, &mut update.time)?;
        update.previous_time = match (has_previous, previous_is_last) {
            (false, _) => None,
            (true, true) => Some(head.time),
            (true, false) => {
                let mut previous = update.previous_time.unwrap_or_default();
                w.clock((0, head.time), &mut 0, &mut previous)?;
                Some(previous)
            }
        };
        w.num(&mut update.duration_ns)?;
        for (base, size) in [(head.total, &mut update.total), (head.hidden_count, &mut update.hidden_count)] {
            let mut by = (*size as i64).wrapping_sub(base as i64);
            w.signed(&mut by)?;
            *size = (base as i64).wrapping_add(by).max(0) as usize;
        }
        // Whoever takes the update may reserve as much memory.
        update.total = if w.is_read() { update.total.min(MAX_TASKS) } else { update.total };
        match same_delays {
            true => update.delays = head.delays.clone(),
            false => w.outcome(&mut update.delays)?,
        }
        match same_notes {
            true => update.notes.clone_from(&head.notes),
            false => w.list(MAX_NOTES, &mut update.notes, |w, note| w.shown_text(note))?,
        }
        Ok(has_blocked)
    }

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
            uninterruptible_threads: Vec::new(),
            ..*update
        };
    }

    fn code_changes(&mut self, w: &mut Wire, update: &mut ProcessUpdate) -> Coded {
        if !w.is_read() && update.changed.len() > MAX_TASKS.saturating_sub(self.rows.len()) {
            update.changed.retain(|change| self.rows.contains_key(&change.raw.key.tid));
        }
        let boot_ns = update.time.boot_ns;
        let mut cursor = Cursor { tid: 0, scanned_ns: boot_ns, previous_scan_ns: boot_ns };
        let blank = TaskChange { raw: *EMPTY, ..TaskChange::default() };
        for mut change in w.items(MAX_TASKS, std::mem::take(&mut update.changed), blank)? {
            if self.code_change(w, &mut cursor, &mut change)? {
                self.apply_change(&change);
                update.changed.push(change);
            }
        }
        Ok(())
    }

    /// One changed row; false if it is of a task that only the writer knows: its identity was in a lost key frame.
    fn code_change(&self, w: &mut Wire, cursor: &mut Cursor, change: &mut TaskChange) -> Result<bool, DecodeError> {
        let tid = change.raw.key.tid;
        let mut word = u64::from(tid) << 1 | u64::from(self.rows.contains_key(&tid));
        w.chained(&mut cursor.tid, &mut word)?;
        let tid = u32::try_from(word >> 1).map_err(|_| TID_TOO_LARGE)?;
        let is_known = word & 1 == 1;
        let row = self.rows.get(&tid).filter(|_| is_known);
        let is_unknown = is_known && row.is_none();
        match is_unknown {
            // Differences to values that are not known may not fit.
            true => w.row(&[], &mut [])?,
            false => code_row(w, row.map_or(&*EMPTY, |row| &row.raw), &mut change.raw)?,
        }
        change.raw.key.tid = tid;
        w.chained(&mut cursor.scanned_ns, &mut change.scanned_ns)?;
        // Usually the time of the row's own last scan (1), or the one of all rows that did not run.
        let own = row.map(|row| row.at_ns);
        let by = change.previous_scan_ns.wrapping_sub(cursor.previous_scan_ns) as i64;
        let mut n = if own == Some(change.previous_scan_ns) { 1 } else { zigzag(by) << 1 };
        w.num(&mut n)?;
        if n & 1 == 1 {
            change.previous_scan_ns = own.unwrap_or_default();
        } else {
            cursor.previous_scan_ns = cursor.previous_scan_ns.wrapping_add(unzigzag(n >> 1) as u64);
            change.previous_scan_ns = cursor.previous_scan_ns;
        }
        match !is_known && self.rows.len() >= self.max_rows() {
            true => Err(TOO_MANY_TASKS),
            false => Ok(!is_unknown),
        }
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
}

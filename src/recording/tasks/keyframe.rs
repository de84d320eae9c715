//! The whole table of tasks, for frames that stand by themselves and for a reader that starts at one.

use super::row::{EMPTY, blocked_task, chained_tid, task_key, task_names, thread_states, user_name};
use super::{MAX_BLOCKED, MAX_NOTES, MAX_TASKS, RecordedTask, RecordedTasks, TOO_MANY_TASKS};
use crate::model::process::{ProcessUpdate, TaskChange};
use crate::model::reading::Reading;
use crate::model::timestamp::Timestamp;
use crate::recording::codec::{Coded, Wire};
use crate::recording::counter_row::code_row;
use std::sync::Arc;

impl RecordedTasks {
    /// The table: all of it, or (not `is_complete`) what changed since the key frame. Reading a complete table
    /// replaces this one, reading the other kind corrects it.
    pub(crate) fn code_base(&mut self, w: &mut Wire, mut is_complete: bool) -> Coded {
        w.flag(&mut is_complete)?;
        if w.is_read() && is_complete {
            *self = Self { row_limit: self.row_limit, ..Self::default() };
        }
        self.code_base_head(w)?;
        let mut users: Vec<_> = self.users.iter().map(|(uid, name)| (*uid, name.clone())).collect();
        w.list(MAX_TASKS, &mut users, user_name)?;
        let mut ended: Vec<_> = self.ended_since_key.iter().filter(|_| !is_complete).copied().collect();
        w.list(MAX_TASKS, &mut ended, task_key)?;
        if w.is_read() {
            self.add_users(&users);
            ended.iter().for_each(|key| self.remove(key));
        }
        self.code_base_rows(w, is_complete)?;
        let mut waits: Vec<_> = self.wait_channels.iter().map(|(tid, wait)| (*tid, wait.clone())).collect();
        let mut last = 0;
        w.list(MAX_TASKS, &mut waits, |w, (tid, wait): &mut (u32, Arc<str>)| {
            chained_tid(w, &mut last, tid)?;
            w.shown_text(wait)
        })?;
        self.wait_channels = waits.into_iter().collect();
        thread_states(w, &mut self.last_update)
    }

    fn code_base_head(&mut self, w: &mut Wire) -> Coded {
        let mut outcome = self.unavailable.clone().unwrap_or(Reading::Ok(()));
        w.outcome(&mut outcome)?;
        self.unavailable = Some(outcome).filter(|outcome| outcome.ok().is_none());
        let mut head = match w.is_read() {
            true => ProcessUpdate::default(),
            false => std::mem::take(&mut self.last_update),
        };
        w.clock((0, Timestamp::default()), &mut head.seq, &mut head.time)?;
        for size in [&mut head.total, &mut head.hidden_count] {
            let mut n = *size as u64;
            w.num(&mut n)?;
            *size = n.min(MAX_TASKS as u64) as usize;
        }
        w.flag(&mut head.rows_are_threads)?;
        w.num(&mut head.duration_ns)?;
        w.outcome(&mut head.delays)?;
        w.list(MAX_NOTES, &mut head.notes, |w, note| w.shown_text(note))?;
        w.list(MAX_BLOCKED, &mut head.blocked, blocked_task)?;
        self.last_update = head;
        Ok(())
    }

    fn code_base_rows(&mut self, w: &mut Wire, is_complete: bool) -> Coded {
        let mut rows: Vec<RecordedTask> = Vec::new();
        if !w.is_read() {
            let is_written = |tid| is_complete || self.changed_since_key.contains_key(tid);
            rows.extend(self.rows.iter().filter(|(tid, _)| is_written(tid)).map(|(_, row)| row.clone()));
        }
        let boot_ns = self.last_update.time.boot_ns;
        let (mut last, mut scanned, mut since) = (0, boot_ns, boot_ns);
        let blank = RecordedTask { raw: *EMPTY, at_ns: 0, state_since_ns: 0, names: None };
        for mut row in w.items(MAX_TASKS, rows, blank)? {
            chained_tid(w, &mut last, &mut row.raw.key.tid)?;
            code_row(w, &*EMPTY, &mut row.raw)?;
            w.chained(&mut scanned, &mut row.at_ns)?;
            w.chained(&mut since, &mut row.state_since_ns)?;
            let tid = row.raw.key.tid;
            let mut has_names = row.names.is_some() && (is_complete || self.changed_since_key.get(&tid) == Some(&true));
            w.flag(&mut has_names)?;
            if has_names {
                task_names(w, Arc::make_mut(row.names.get_or_insert_default()))?;
            }
            if w.is_read() {
                if let Some(old) = self.rows.get(&tid).filter(|old| old.raw.key == row.raw.key) {
                    row.names = row.names.or_else(|| old.names.clone());
                }
                if self.rows.len() >= self.max_rows() && !self.rows.contains_key(&tid) {
                    return Err(TOO_MANY_TASKS);
                }
                self.rows.insert(tid, row);
            }
        }
        Ok(())
    }

    /// The table as one update that reports every task, for a consumer that knows none; `None` before the first scan.
    pub(crate) fn full_update(&self) -> Option<Reading<ProcessUpdate>> {
        if let Some(why) = &self.unavailable
            && self.rows.is_empty()
        {
            return Some(why.clone().map(|()| ProcessUpdate::default()));
        }
        if self.last_update.seq == 0 && self.rows.is_empty() {
            return None;
        }
        // A table takes the time of a row's first scan as the start of its state.
        let change =
            |row: &RecordedTask| TaskChange { raw: row.raw, scanned_ns: row.state_since_ns, previous_scan_ns: 0 };
        let waits = self.wait_channels.iter().filter_map(|(tid, wait)| Some((self.key_of(*tid)?, wait.clone())));
        Some(Reading::Ok(ProcessUpdate {
            previous_time: None,
            reset: true,
            changed: self.rows.values().map(change).collect(),
            names: self.rows.values().filter_map(|r| Some((r.raw.key, r.names.clone()?))).collect(),
            users: self.users.iter().map(|(uid, name)| (*uid, name.clone())).collect(),
            wait_channels: waits.collect(),
            total: self.rows.len(),
            ..self.last_update.clone()
        }))
    }
}

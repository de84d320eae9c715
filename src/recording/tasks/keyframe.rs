//! The whole table of tasks, for a frame that stands by itself and for a listener who knows nothing.

use super::super::codec::{ByteReader, DecodeError, put_blob, put_row_delta, put_varint};
use super::super::sample::{get_clock, get_outcome, put_clock, put_outcome};
use super::row::{
    COLUMNS, from_row, get_blocked, get_delta, get_key, get_names, get_notes, get_tid_delta, put_blocked, put_delta,
    put_key, put_names, put_notes, to_row,
};
use super::{MAX_TASKS, RecordedTask, RecordedTasks, bounded_count};
use crate::model::process::{ProcessUpdate, TaskChange};
use crate::model::reading::Reading;
use crate::model::timestamp::Timestamp;
use crate::sanitize::sanitize;

impl RecordedTasks {
    /// Appends the table: all of it, or what changed since [`Tasks::mark`].
    pub fn put_base(&self, out: &mut Vec<u8>, complete: bool) {
        out.push(u8::from(complete));
        match &self.unavailable {
            None => out.push(0),
            Some(why) => drop(put_outcome(out, why)),
        }
        let head = &self.last_update;
        put_clock(out, 0, Timestamp::default(), head.seq, head.time);
        for n in [head.total as u64, head.hidden_count as u64, u64::from(head.rows_are_threads), head.duration_ns] {
            put_varint(out, n);
        }
        put_outcome(out, &head.delays);
        put_notes(out, &head.notes);
        put_blocked(out, &head.blocked);
        put_varint(out, self.users.len() as u64);
        for (uid, name) in &self.users {
            put_varint(out, u64::from(*uid));
            put_blob(out, name.as_bytes());
        }
        let gone = self.ended_since_key.iter().filter(|_| !complete);
        put_varint(out, gone.clone().count() as u64);
        gone.for_each(|key| put_key(out, key));
        let rows = self.rows.iter().filter(|(tid, _)| complete || self.changed_since_key.contains_key(tid));
        put_varint(out, rows.clone().count() as u64);
        let (mut last, mut at, mut since) = (0, head.time.boot_ns, head.time.boot_ns);
        for (tid, row) in rows {
            put_delta(out, &mut last, u64::from(*tid));
            put_row_delta(out, &[0; COLUMNS], &to_row(&row.raw));
            put_delta(out, &mut at, row.at_ns);
            put_delta(out, &mut since, row.state_since_ns);
            let names = row.names.as_ref().filter(|_| complete || self.changed_since_key.get(tid) == Some(&true));
            out.push(u8::from(names.is_some()));
            if let Some(names) = names {
                put_names(out, names);
            }
        }
        put_varint(out, self.wait_channels.len() as u64);
        last = 0;
        for (tid, wait) in &self.wait_channels {
            put_delta(out, &mut last, u64::from(*tid));
            put_blob(out, wait.as_bytes());
        }
    }

    /// What [`Tasks::put_base`] wrote: a complete table replaces what is here, the other kind corrects it.
    pub fn get_base(&mut self, inp: &mut ByteReader) -> Result<(), DecodeError> {
        let complete = inp.byte()? != 0;
        if complete {
            *self = Self::default();
        }
        self.unavailable = match get_outcome(inp)? {
            Reading::Ok(()) => None,
            why => Some(why),
        };
        let (seq, at) = get_clock(inp, 0, Timestamp::default())?;
        let most = |n: u64| n.min(MAX_TASKS as u64) as usize;
        self.last_update = ProcessUpdate {
            seq,
            time: at,
            total: most(inp.varint()?),
            hidden_count: most(inp.varint()?),
            rows_are_threads: inp.varint()? != 0,
            duration_ns: inp.varint()?,
            delays: get_outcome(inp)?,
            notes: get_notes(inp)?,
            blocked: get_blocked(inp)?,
            ..ProcessUpdate::default()
        };
        for _ in 0..bounded_count(inp)? {
            let uid = inp.varint_u32()?;
            self.users.insert(uid, inp.string()?.into());
        }
        for _ in 0..bounded_count(inp)? {
            let key = get_key(inp)?;
            self.remove(&key);
        }
        let (mut last, mut at, mut since) = (0, at.boot_ns, at.boot_ns);
        for _ in 0..bounded_count(inp)? {
            let tid = get_tid_delta(inp, &mut last)?;
            let mut figures = [0; COLUMNS];
            inp.apply_row_delta(&mut figures)?;
            let raw = from_row(tid, &figures)?;
            let (at_ns, state_since_ns) = (get_delta(inp, &mut at)?, get_delta(inp, &mut since)?);
            let mut names = if inp.byte()? != 0 { Some(get_names(inp)?) } else { None };
            if let Some(old) = self.rows.get(&tid).filter(|old| old.raw.key == raw.key) {
                names = names.or(old.names.clone());
            }
            if self.rows.len() >= MAX_TASKS && !self.rows.contains_key(&tid) {
                return Err(DecodeError("more tasks than any machine has"));
            }
            self.rows.insert(tid, RecordedTask { raw, at_ns, state_since_ns, names });
        }
        self.wait_channels.clear();
        last = 0;
        for _ in 0..bounded_count(inp)? {
            let tid = get_tid_delta(inp, &mut last)?;
            self.wait_channels.insert(tid, sanitize(inp.blob()?).into());
        }
        Ok(())
    }

    /// The table as one look that tells everything, for a listener who knows nothing; `None` before the first.
    pub fn full_update(&self) -> Option<Reading<ProcessUpdate>> {
        if let Some(why) = &self.unavailable
            && self.rows.is_empty()
        {
            return Some(why.clone().map(|()| ProcessUpdate::default()));
        }
        if self.last_update.seq == 0 && self.rows.is_empty() {
            return None;
        }
        let key = |tid: &u32| self.key_of(*tid);
        Some(Reading::Ok(ProcessUpdate {
            previous_time: None,
            reset: true,
            // Its state began then, which is what the table makes of a row it sees for the first time.
            changed: self
                .rows
                .values()
                .map(|row| TaskChange { raw: row.raw, scanned_ns: row.state_since_ns, previous_scan_ns: 0 })
                .collect(),
            names: self.rows.values().filter_map(|r| Some((r.raw.key, r.names.clone()?))).collect(),
            users: self.users.iter().map(|(uid, name)| (*uid, name.clone())).collect(),
            wait_channels: self
                .wait_channels
                .iter()
                .filter_map(|(tid, wait)| Some((key(tid)?, wait.clone())))
                .collect(),
            total: self.rows.len(),
            ..self.last_update.clone()
        }))
    }
}

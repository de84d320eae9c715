//! The whole table of tasks, for a frame that stands by itself and for a listener who knows nothing.

use super::super::sample::{get_clock, get_outcome, put_clock, put_outcome};
use super::super::wire::{Bad, In, put_blob, put_num, put_row};
use super::row::{
    LEN, cells, from_cells, get_blocked, get_key, get_names, get_near, get_notes, get_tid, put_blocked,
    put_key, put_names, put_near, put_notes,
};
use super::{MOST_TASKS, Row, Tasks, few};
use crate::model::clock::Clock;
use crate::model::process::{Change, ProcUpdate};
use crate::model::section::Section;
use crate::text::clean;

impl Tasks {
    /// Appends the table: all of it, or what changed since [`Tasks::mark`].
    pub fn put_base(&self, out: &mut Vec<u8>, complete: bool) {
        out.push(u8::from(complete));
        match &self.missing {
            None => out.push(0),
            Some(why) => drop(put_outcome(out, why)),
        }
        let head = &self.head;
        put_clock(out, 0, Clock::default(), head.seq, head.at);
        for n in [head.total as u64, head.hidden as u64, u64::from(head.threads), head.took_ns] {
            put_num(out, n);
        }
        put_outcome(out, &head.delays);
        put_notes(out, &head.notes);
        put_blocked(out, &head.blocked);
        put_num(out, self.users.len() as u64);
        for (uid, name) in &self.users {
            put_num(out, u64::from(*uid));
            put_blob(out, name.as_bytes());
        }
        let gone = self.gone.iter().filter(|_| !complete);
        put_num(out, gone.clone().count() as u64);
        gone.for_each(|key| put_key(out, key));
        let rows = self.rows.iter().filter(|(tid, _)| complete || self.touched.contains_key(tid));
        put_num(out, rows.clone().count() as u64);
        let (mut last, mut at, mut since) = (0, head.at.boot_ns, head.at.boot_ns);
        for (tid, row) in rows {
            put_near(out, &mut last, u64::from(*tid));
            put_row(out, &[0; LEN], &cells(&row.raw));
            put_near(out, &mut at, row.at_ns);
            put_near(out, &mut since, row.state_since_ns);
            let names = row.names.as_ref().filter(|_| complete || self.touched.get(tid) == Some(&true));
            out.push(u8::from(names.is_some()));
            if let Some(names) = names {
                put_names(out, names);
            }
        }
        put_num(out, self.waits.len() as u64);
        last = 0;
        for (tid, wait) in &self.waits {
            put_near(out, &mut last, u64::from(*tid));
            put_blob(out, wait.as_bytes());
        }
    }

    /// What [`Tasks::put_base`] wrote: a complete table replaces what is here, the other kind corrects it.
    pub fn get_base(&mut self, inp: &mut In) -> Result<(), Bad> {
        let complete = inp.byte()? != 0;
        if complete {
            *self = Self::default();
        }
        self.missing = match get_outcome(inp)? {
            Section::Ok(()) => None,
            why => Some(why),
        };
        let (seq, at) = get_clock(inp, 0, Clock::default())?;
        let most = |n: u64| n.min(MOST_TASKS as u64) as usize;
        self.head = ProcUpdate {
            seq,
            at,
            total: most(inp.num()?),
            hidden: most(inp.num()?),
            threads: inp.num()? != 0,
            took_ns: inp.num()?,
            delays: get_outcome(inp)?,
            notes: get_notes(inp)?,
            blocked: get_blocked(inp)?,
            ..ProcUpdate::default()
        };
        for _ in 0..few(inp)? {
            let uid = inp.num32()?;
            self.users.insert(uid, inp.text()?.into());
        }
        for _ in 0..few(inp)? {
            let key = get_key(inp)?;
            self.end(&key);
        }
        let (mut last, mut at, mut since) = (0, at.boot_ns, at.boot_ns);
        for _ in 0..few(inp)? {
            let tid = get_tid(inp, &mut last)?;
            let mut figures = [0; LEN];
            inp.row(&mut figures)?;
            let raw = from_cells(tid, &figures)?;
            let (at_ns, state_since_ns) = (get_near(inp, &mut at)?, get_near(inp, &mut since)?);
            let mut names = if inp.byte()? != 0 { Some(get_names(inp)?) } else { None };
            if let Some(old) = self.rows.get(&tid).filter(|old| old.raw.key == raw.key) {
                names = names.or(old.names.clone());
            }
            if self.rows.len() >= MOST_TASKS && !self.rows.contains_key(&tid) {
                return Err(Bad("more tasks than any machine has"));
            }
            self.rows.insert(tid, Row { raw, at_ns, state_since_ns, names });
        }
        self.waits.clear();
        last = 0;
        for _ in 0..few(inp)? {
            let tid = get_tid(inp, &mut last)?;
            self.waits.insert(tid, clean(inp.blob()?).into());
        }
        Ok(())
    }

    /// The table as one look that tells everything, for a listener who knows nothing; `None` before the first.
    pub fn told_anew(&self) -> Option<Section<ProcUpdate>> {
        if let Some(why) = &self.missing
            && self.rows.is_empty()
        {
            return Some(why.clone().map(|()| ProcUpdate::default()));
        }
        if self.head.seq == 0 && self.rows.is_empty() {
            return None;
        }
        let key = |tid: &u32| self.key(*tid);
        Some(Section::Ok(ProcUpdate {
            prev: None,
            reset: true,
            // Its state began then, which is what the table makes of a row it sees for the first time.
            changed: self
                .rows
                .values()
                .map(|row| Change { raw: row.raw, at_ns: row.state_since_ns, since_ns: 0 })
                .collect(),
            names: self.rows.values().filter_map(|r| Some((r.raw.key, r.names.clone()?))).collect(),
            users: self.users.iter().map(|(uid, name)| (*uid, name.clone())).collect(),
            waits: self.waits.iter().filter_map(|(tid, wait)| Some((key(tid)?, wait.clone()))).collect(),
            total: self.rows.len(),
            ..self.head.clone()
        }))
    }
}

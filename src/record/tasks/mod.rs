//! Looks at the tasks as differences to the look before, and the whole table for a frame that stands by itself.
//!
//! Writer and reader keep the same table ([`Tasks`]) and change it in the same way, so a row costs a few
//! bytes. Which row is told by its task number; a number that means another task now comes with its whole key.

mod base;
mod row;

use super::sample::{get_clock, get_outcome, put_clock, put_outcome};
use super::wire::{Bad, In, put_blob, put_num, put_row, put_signed};
use crate::model::process::{Change, Names, ProcUpdate, TaskKey, TaskRaw};
use crate::model::section::Section;
use crate::text::clean;
use row::{
    LEN, cells, from_cells, get_blocked, get_key, get_names, get_near, get_notes, get_tid, put_blocked,
    put_key, put_names, put_near, put_notes,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Tasks of one machine: beyond it a recording is not believed, and a recorder leaves the rest out.
const MOST_TASKS: usize = 131_072;

/// One task as both sides know it.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    raw: TaskRaw,
    /// When its counters were read last.
    at_ns: u64,
    /// Since when it is in its state.
    state_since_ns: u64,
    names: Option<Arc<Names>>,
}

/// The table as of the newest look.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tasks {
    rows: BTreeMap<u32, Row>,
    users: BTreeMap<u32, Arc<str>>,
    waits: BTreeMap<u32, Arc<str>>,
    /// The newest look without its rows.
    head: ProcUpdate,
    /// Why there is no newest look.
    missing: Option<Section<()>>,
    /// Rows changed since [`Tasks::mark`], and whether their names did; what ended since then.
    touched: BTreeMap<u32, bool>,
    gone: BTreeSet<TaskKey>,
}

const THREADS: u64 = 1;
const RESET: u64 = 2;
const PREV: u64 = 4;
const PREV_IS_LAST: u64 = 8;
const SAME_DELAYS: u64 = 16;
const SAME_NOTES: u64 = 32;
const BLOCKED: u64 = 64;

/// How many of something that a task has at most one of.
fn few(inp: &mut In) -> Result<usize, Bad> {
    match inp.count()? {
        n if n > MOST_TASKS => Err(Bad("more tasks than any machine has")),
        n => Ok(n),
    }
}

impl Tasks {
    /// From now on counts what [`Tasks::put_base`] writes when it is not to be complete.
    pub fn mark(&mut self) {
        self.touched.clear();
        self.gone.clear();
    }

    /// Appends a look, and takes it in.
    pub fn put(&mut self, out: &mut Vec<u8>, look: &Section<ProcUpdate>) {
        if !put_outcome(out, look) {
            self.missing = Some(look.clone().map(|_| ()));
            return;
        }
        let Some(update) = look.ok() else { return };
        self.put_head(out, update);
        self.put_changed(out, update);
        put_num(out, update.gone.len() as u64);
        for key in &update.gone {
            put_key(out, key);
            self.end(key);
        }
        let names: Vec<_> = update.names.iter().filter(|(key, _)| self.has(key)).collect();
        put_num(out, names.len() as u64);
        let mut tid = 0;
        for (key, names) in names {
            put_near(out, &mut tid, u64::from(key.tid));
            put_names(out, names);
            self.name(key.tid, names.clone());
        }
        put_num(out, update.users.len() as u64);
        for (uid, name) in &update.users {
            put_num(out, u64::from(*uid));
            put_blob(out, name.as_bytes());
            self.users.insert(*uid, name.clone());
        }
        let waits: Vec<_> = update.waits.iter().filter(|(key, _)| self.has(key)).collect();
        put_num(out, waits.len() as u64);
        tid = 0;
        for (key, wait) in waits {
            put_near(out, &mut tid, u64::from(key.tid));
            put_blob(out, wait.as_bytes());
            self.waits.insert(key.tid, wait.clone());
        }
        if !update.blocked.is_empty() {
            put_blocked(out, &update.blocked);
        }
    }

    fn put_head(&mut self, out: &mut Vec<u8>, update: &ProcUpdate) {
        let head = &self.head;
        let mut bits = 0;
        for (bit, on) in [
            (THREADS, update.threads),
            (RESET, update.reset),
            (PREV, update.prev.is_some()),
            (PREV_IS_LAST, update.prev == Some(head.at)),
            (SAME_DELAYS, update.delays == head.delays),
            (SAME_NOTES, update.notes == head.notes),
            (BLOCKED, !update.blocked.is_empty()),
        ] {
            bits |= if on { bit } else { 0 };
        }
        put_num(out, bits);
        put_clock(out, head.seq, head.at, update.seq, update.at);
        if let Some(prev) = update.prev.filter(|p| *p != head.at) {
            put_clock(out, 0, head.at, 0, prev);
        }
        put_num(out, update.took_ns);
        put_signed(out, (update.total as i64).wrapping_sub(head.total as i64));
        put_signed(out, (update.hidden as i64).wrapping_sub(head.hidden as i64));
        if bits & SAME_DELAYS == 0 {
            put_outcome(out, &update.delays);
        }
        if bits & SAME_NOTES == 0 {
            put_notes(out, &update.notes);
        }
        self.adopt(update);
    }

    /// Takes in what a look says of itself.
    fn adopt(&mut self, update: &ProcUpdate) {
        if update.reset {
            self.gone.extend(self.rows.values().map(|row| row.raw.key));
            self.rows.clear();
            self.waits.clear();
            self.touched.clear();
        }
        self.missing = None;
        self.head = ProcUpdate {
            delays: update.delays.clone(),
            notes: update.notes.clone(),
            blocked: update.blocked.clone(),
            changed: Vec::new(),
            gone: Vec::new(),
            names: Vec::new(),
            users: Vec::new(),
            waits: Vec::new(),
            ..*update
        };
    }

    fn put_changed(&mut self, out: &mut Vec<u8>, update: &ProcUpdate) {
        let room = MOST_TASKS.saturating_sub(self.rows.len());
        let fits = update.changed.len() <= room;
        let changed: Vec<&Change> =
            update.changed.iter().filter(|c| fits || self.rows.contains_key(&c.raw.key.tid)).collect();
        put_num(out, changed.len() as u64);
        let (mut tid, mut at, mut since) = (0, update.at.boot_ns, update.at.boot_ns);
        for change in changed {
            let row = self.rows.get(&change.raw.key.tid);
            put_near(out, &mut tid, u64::from(change.raw.key.tid) << 1 | u64::from(row.is_some()));
            put_row(out, &row.map_or([0; LEN], |row| cells(&row.raw)), &cells(&change.raw));
            put_near(out, &mut at, change.at_ns);
            // Mostly the time of its own last change, or that of all which did not run.
            match row.is_some_and(|row| row.at_ns == change.since_ns) {
                true => put_num(out, 1),
                false => {
                    let by = change.since_ns.wrapping_sub(since) as i64;
                    put_num(out, (((by << 1) ^ (by >> 63)) as u64) << 1);
                    since = change.since_ns;
                }
            }
            self.change(change);
        }
    }

    /// What [`Tasks::put`] wrote, taken in likewise.
    pub fn get(&mut self, inp: &mut In) -> Result<Section<ProcUpdate>, Bad> {
        match get_outcome(inp)? {
            Section::Ok(()) => {}
            Section::Denied(why) => return Ok(self.without(Section::Denied(why))),
            Section::Absent(why) => return Ok(self.without(Section::Absent(why))),
            Section::Blocked(b) => return Ok(self.without(Section::Blocked(b))),
        }
        let (mut update, blocked) = self.get_head(inp)?;
        self.adopt(&update);
        update.changed = self.get_changed(inp, &update)?;
        for _ in 0..few(inp)? {
            let key = get_key(inp)?;
            self.end(&key);
            update.gone.push(key);
        }
        let mut tid = 0;
        for _ in 0..few(inp)? {
            let tid = get_tid(inp, &mut tid)?;
            let names = get_names(inp)?;
            if let Some(key) = self.key(tid) {
                self.name(tid, names.clone());
                update.names.push((key, names));
            }
        }
        for _ in 0..few(inp)? {
            let (uid, name) = (inp.num32()?, Arc::<str>::from(inp.text()?));
            self.users.insert(uid, name.clone());
            update.users.push((uid, name));
        }
        let mut tid = 0;
        for _ in 0..few(inp)? {
            let (tid, wait) = (get_tid(inp, &mut tid)?, Arc::<str>::from(clean(inp.blob()?)));
            if let Some(key) = self.key(tid) {
                self.waits.insert(tid, wait.clone());
                update.waits.push((key, wait));
            }
        }
        if blocked {
            update.blocked = get_blocked(inp)?;
            self.head.blocked = update.blocked.clone();
        }
        Ok(Section::Ok(update))
    }

    fn without(&mut self, why: Section<()>) -> Section<ProcUpdate> {
        self.missing = Some(why.clone());
        why.map(|()| ProcUpdate::default())
    }

    fn get_head(&self, inp: &mut In) -> Result<(ProcUpdate, bool), Bad> {
        let head = &self.head;
        let bits = inp.num()?;
        let (seq, at) = get_clock(inp, head.seq, head.at)?;
        let mut update = ProcUpdate { seq, at, ..ProcUpdate::default() };
        if bits & PREV != 0 {
            let last = bits & PREV_IS_LAST != 0;
            update.prev = Some(if last { head.at } else { get_clock(inp, 0, head.at)?.1 });
        }
        update.took_ns = inp.num()?;
        let near = |before: usize, by: i64| (before as i64).wrapping_add(by).max(0) as usize;
        update.total = near(head.total, inp.signed()?);
        update.hidden = near(head.hidden, inp.signed()?);
        update.threads = bits & THREADS != 0;
        update.reset = bits & RESET != 0;
        update.delays = if bits & SAME_DELAYS != 0 { head.delays.clone() } else { get_outcome(inp)? };
        update.notes = if bits & SAME_NOTES != 0 { head.notes.clone() } else { get_notes(inp)? };
        // Room is made for so many rows by whoever takes it.
        update.total = update.total.min(MOST_TASKS);
        Ok((update, bits & BLOCKED != 0))
    }

    fn get_changed(&mut self, inp: &mut In, update: &ProcUpdate) -> Result<Vec<Change>, Bad> {
        let n = few(inp)?;
        let mut changed = Vec::new();
        let (mut tid, mut at, mut since) = (0, update.at.boot_ns, update.at.boot_ns);
        for _ in 0..n {
            let word = get_near(inp, &mut tid)?;
            let tid = u32::try_from(word >> 1).map_err(|_| Bad("a task number of more than 32 bits"))?;
            let known = word & 1 == 1;
            let row = self.rows.get(&tid).filter(|_| known);
            let mut figures = row.map_or([0; LEN], |row| cells(&row.raw));
            let own = row.map_or(0, |row| row.at_ns);
            inp.row(&mut figures)?;
            let at_ns = get_near(inp, &mut at)?;
            let since_ns = match inp.num()? {
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
            let change = Change { raw: from_cells(tid, &figures)?, at_ns, since_ns };
            if self.rows.len() >= MOST_TASKS && !known {
                return Err(Bad("more tasks than any machine has"));
            }
            self.change(&change);
            changed.push(change);
        }
        Ok(changed)
    }

    fn key(&self, tid: u32) -> Option<TaskKey> {
        self.rows.get(&tid).map(|row| row.raw.key)
    }

    fn has(&self, key: &TaskKey) -> bool {
        self.key(key.tid) == Some(*key)
    }

    fn change(&mut self, change: &Change) {
        let key = change.raw.key;
        self.waits.remove(&key.tid);
        let touched = self.touched.entry(key.tid).or_default();
        match self.rows.get_mut(&key.tid) {
            Some(row) if row.raw.key == key => {
                if (row.raw.state, row.raw.runs) != (change.raw.state, change.raw.runs) {
                    row.state_since_ns = change.at_ns;
                }
                (row.raw, row.at_ns) = (change.raw, change.at_ns);
            }
            _ => {
                *touched = true;
                let row =
                    Row { raw: change.raw, at_ns: change.at_ns, state_since_ns: change.at_ns, names: None };
                if let Some(old) = self.rows.insert(key.tid, row) {
                    self.gone.insert(old.raw.key);
                }
            }
        }
    }

    fn end(&mut self, key: &TaskKey) {
        if self.has(key) {
            self.rows.remove(&key.tid);
            self.waits.remove(&key.tid);
            self.touched.remove(&key.tid);
            self.gone.insert(*key);
        }
    }

    fn name(&mut self, tid: u32, names: Arc<Names>) {
        if let Some(row) = self.rows.get_mut(&tid) {
            row.names = Some(names);
            self.touched.insert(tid, true);
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

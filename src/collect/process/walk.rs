//! A look at all tasks by the kernel's own list of them ([`crate::trace::tasks`]) instead of by their files.
//!
//! What changes from look to look comes with it; from files comes what changes seldom or cannot be told there:
//! command lines, names of groups, wait channels, exact swap. No lock of a task is taken on the way, so none can hold
//! it up.
//!
//! A kernel may keep tasks out of its list that it shows in `/proc`. So `/proc` is listed before the first walk and
//! now and then, and what no walk tells is read as ever.

use super::crowd::Crowd;
use super::entry::{Delays, Entry};
use super::pass::{HOT, WARY, tell};
use super::reader::{ReadJob, What};
use super::stage::Pass;
use super::tasks::Tasks;
use crate::collect::clock::boot_ns;
use crate::model::section::describe;
use crate::trace::Part;
use crate::trace::tasks::{Record, Tasks as Traced, Told, Turn, Walks};
use std::io;
use std::ops::Range;

/// Looks between two listings of `/proc`.
const LIST: u64 = 60;

/// Looks between two in which threads of the kernel that did nothing are told whole: others may have changed their
/// I/O priority or their group.
const WHOLE: u64 = 5;

/// Looks in which each task is looked at once more, for what is not told: a few at a time, at most so many.
const ROUND: usize = 200;
const MOST_DUE: usize = 100;

/// What a way through all tasks needs, kept from look to look.
#[derive(Default)]
pub struct Walker {
    /// Gives the iterator, once it is there.
    pub part: Option<Part<Traced>>,
    buf: Vec<u8>,
    crowd: Crowd,
    /// The last look was one.
    on: bool,
    /// The last way, with what was asked of delays then. `None`: all have to be told.
    turn: Option<(Turn, Delays)>,
}

/// The tasks whose turn it is, of so many.
fn due(tasks: usize, look: usize) -> Range<usize> {
    let looks = ROUND.max(tasks.div_ceil(MOST_DUE));
    let look = look % looks;
    tasks * look / looks..tasks * (look + 1) / looks
}

/// Where the walk stands in the list of entries.
struct Along {
    /// Entries known before; those behind them are new, and not in order.
    known: usize,
    /// Tasks come nearly in the order of the entries.
    next: usize,
}

/// Where a task stands among entries in order; it is likely the `next` one.
fn find(entries: &[Entry], next: usize, key: (u32, u32)) -> Result<usize, usize> {
    let of = |entry: &Entry| (entry.raw.key.pid, entry.raw.key.tid);
    match entries.get(next) {
        Some(entry) if of(entry) == key => Ok(next),
        _ => entries.binary_search_by_key(&key, of),
    }
}

impl Tasks {
    /// Looks by the iterator whenever it is there.
    pub fn traced(mut self, part: Part<Traced>) -> Self {
        self.walker.part = Some(part);
        self
    }

    /// The iterator, if it is there and its tasks are those of this `/proc`.
    pub(super) fn walks(&self) -> Option<Walks> {
        self.walker.part.as_ref().filter(|_| self.live)?.read().ok().cloned()
    }

    /// Has the kernel tell all tasks; false where that fails: then their files tell the rest, and it is said why.
    pub(super) fn walked(&mut self, walks: &Walks, pass: &mut Pass) -> bool {
        let first = !std::mem::replace(&mut self.walker.on, true);
        pass.born = first || pass.update.reset || self.seq.is_multiple_of(LIST);
        if pass.born || self.seq.is_multiple_of(WHOLE) {
            self.walker.turn = None;
        }
        let listed = if pass.born { self.list_processes().map_err(io::Error::from) } else { Ok(()) };
        match listed.and_then(|()| self.walk(walks, pass)) {
            Ok(()) => {
                self.plan_files(pass.wants.waits);
                true
            }
            Err(err) => {
                let why = describe(&err);
                pass.update
                    .notes
                    .push(format!("the iterator of tasks failed ({why}): files are read instead"));
                false
            }
        }
    }

    /// The look is taken by files: what is known of walks is out of date at the next one.
    pub(super) fn not_walked(&mut self) {
        if !std::mem::take(&mut self.walker.on) {
            return;
        }
        for entry in &mut self.entries {
            entry.untold = false;
        }
    }

    fn walk(&mut self, walks: &Walks, pass: &mut Pass) -> io::Result<()> {
        let mut along = Along { known: self.entries.len(), next: 0 };
        let mut walker = std::mem::take(&mut self.walker);
        let walked = self.take_all(walks, &mut walker, &mut along, pass);
        self.walker = walker;
        if self.entries.len() > along.known {
            self.sort();
        }
        walked?;
        for entry in &mut self.entries {
            if entry.seen != self.seq {
                entry.untold |= pass.born;
                entry.gone |= !entry.untold;
            }
        }
        Ok(())
    }

    fn take_all(
        &mut self,
        walks: &Walks,
        walker: &mut Walker,
        along: &mut Along,
        pass: &mut Pass,
    ) -> io::Result<()> {
        let after = walker.turn.take().filter(|(_, delays)| *delays == pass.delays);
        let mut walk = walks.walk(self.threads, after.map(|(turn, _)| turn))?;
        let mut all_known = true;
        walker.crowd.clear();
        loop {
            let now = boot_ns();
            let Some(records) = walk.next(&mut walker.buf)? else { break };
            for record in records {
                match record.ok_or_else(|| io::Error::other("a record that is not understood"))? {
                    Told::Calm(tid) => all_known &= self.take_calm(tid, now, along),
                    Told::Task(record) if self.threads || record.threads == 1 => {
                        self.take_told(&record, true, now, along, pass);
                    }
                    Told::Task(record) => walker.crowd.add(&record, now),
                }
            }
        }
        walker.turn = (all_known && !self.threads).then(|| (walk.turn(), pass.delays));
        for process in walker.crowd.processes() {
            self.take_told(&process.record, process.is_whole(), process.at_ns, along, pass);
        }
        Ok(())
    }

    /// A thread of the kernel is as it was told last. False if that was not to us: then it is read as one that
    /// walks leave out, until the next one tells all.
    fn take_calm(&mut self, tid: u32, now: u64, along: &mut Along) -> bool {
        let known = &mut self.entries[..along.known];
        match find(known, along.next, (tid, tid)) {
            Ok(at) => {
                let entry = &mut known[at];
                along.next = at + 1;
                entry.untold = entry.exec.is_none() || entry.seen + 1 != self.seq;
                entry.seen = self.seq;
                entry.gone = false;
                entry.looked_ns = if entry.untold { entry.looked_ns } else { now };
                !entry.untold
            }
            Err(_) => {
                let untold = Entry { untold: true, seen: self.seq, ..Entry::new(tid, tid, false) };
                self.entries.push(untold);
                false
            }
        }
    }

    fn take_told(&mut self, told: &Record, whole: bool, now: u64, along: &mut Along, pass: &mut Pass) {
        let at = self.place_of(told, along, pass);
        let entry = &mut self.entries[at];
        entry.seen = self.seq;
        entry.gone = false;
        entry.untold = false;
        entry.doubtful = !whole;
        if !whole {
            return;
        }
        let since_ns = entry.looked_ns;
        let changes = entry.merge_told(told, pass.delays, self.page_size);
        entry.looked_ns = now;
        pass.update.gone.extend(changes.replaced);
        if changes.row {
            let since_ns = if changes.first { 0 } else { since_ns };
            tell(entry, &mut pass.update.changed, now, since_ns);
        }
    }

    /// The entry of a task, made if there is none.
    fn place_of(&mut self, told: &Record, along: &mut Along, pass: &Pass) -> usize {
        let found = find(&self.entries[..along.known], along.next, (told.pid, told.tid));
        match found {
            Ok(at) => {
                along.next = at + 1;
                at
            }
            Err(_) => {
                let mut entry = Entry::new(told.pid, told.tid, self.threads);
                entry.focus = pass.wants.everyone;
                self.entries.push(entry);
                self.entries.len() - 1
            }
        }
    }

    /// What to read of whom after a walk.
    pub(super) fn plan_files(&mut self, waits: bool) {
        let moved = self.swap.moved();
        let used = self.swap.is_used();
        let len = self.entries.len();
        let due = due(len, self.round);
        self.round = self.round.wrapping_add(1);
        let mut budget = due.len().max(1);
        let old_groups = self.groups.has_old();
        let (wary, seq) = (self.hanging >= WARY, self.seq);
        self.jobs.clear();
        for (at, entry) in self.entries.iter_mut().enumerate() {
            if entry.gone || entry.stuck {
                continue;
            }
            let due = due.contains(&at);
            let mut what = What::default();
            let by_files = entry.doubtful || entry.untold;
            entry.streak = if by_files { entry.streak.saturating_add(1) } else { 0 };
            if by_files {
                let prio = entry.raw.ioprio.is_none() || seq.is_multiple_of(5);
                what = What { stat: true, io: !entry.io_denied, prio, wary, ..what };
                what.status = entry.raw.uid.is_none();
            }
            what.wchan = !entry.wait_told && (entry.raw.state == b'D' || entry.focus && waits);
            if used && !entry.is_side_thread() && entry.swap_told.is_some() && !entry.swap_exact {
                what.status |= (entry.focus || due) && (moved || entry.swap_off.is_none());
            }
            // New ones have their names fetched, and the group with them.
            if !entry.names_wanted && !entry.raw.kernel_thread && !entry.is_side_thread() {
                what.cgroup = due && old_groups;
                if entry.group_wanted && (entry.focus || budget > 0) {
                    budget = budget.saturating_sub(1);
                    what.cgroup = true;
                }
            }
            if what != What::default() {
                let hot = entry.streak >= HOT;
                self.jobs.push(ReadJob { hot, ..ReadJob::once(at, entry.place(), what) });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Wants;
    use super::*;
    use crate::root::Root;

    #[test]
    fn everyone_has_a_turn_in_a_round() {
        for (tasks, looks) in [(0, 200), (1, 200), (70, 200), (201, 200), (20_000, 200), (100_001, 1001)] {
            let turns: Vec<_> = (0..looks).map(|look| due(tasks, look)).collect();
            assert!(turns.iter().cloned().flatten().eq(0..tasks), "{tasks}");
            assert!(turns.iter().all(|turn| turn.len() <= MOST_DUE) && due(tasks, looks) == turns[0]);
        }
    }

    #[test]
    fn a_walk_that_fails_says_so_and_leaves_the_files() {
        let mut tasks = Tasks::new(&Root::live());
        assert!(tasks.walks().is_none(), "no tracer");
        tasks.begin(Wants::default()).unwrap();
        let mut pass = tasks.pass.take().unwrap();
        assert!(!tasks.walked(&Walks::default(), &mut pass));
        let notes = &pass.update.notes;
        assert!(
            notes[0].contains("iterator of tasks failed") && notes[0].ends_with("files are read instead")
        );
        assert!(tasks.entries.iter().any(|e| e.raw.key.pid == std::process::id() && !e.gone));
    }

    #[test]
    fn who_is_told_in_short_without_being_known_is_read_from_files() {
        let mut tasks = Tasks::new(&Root::live());
        tasks.seq = 9;
        let told = |tid, seen| Entry { exec: Some(0), seen, ..Entry::new(tid, tid, false) };
        // The look before told the first one, an earlier look the second, none the third.
        tasks.entries = vec![told(7, 8), told(8, 6)];
        let mut along = Along { known: 2, next: 0 };
        assert_eq!([7, 8, 9].map(|tid| tasks.take_calm(tid, 5, &mut along)), [true, false, false]);
        let taken: Vec<_> = tasks.entries.iter().map(|e| (e.untold, e.seen, e.looked_ns)).collect();
        assert_eq!(taken, [(false, 9, 5), (true, 9, 0), (true, 9, 0)]);
    }
}

//! The steps of a look at all tasks: list, probe, read, tell.

use super::entry::{Delays, Entry};
use super::guard::MAX_STUCK;
use super::probe::Probed;
use super::reader::{ReadJob, Reading, What};
use super::stage::Pass;
use super::stuck::is_runnable;
use super::tasks::Tasks;
use super::{Wants, list};
use crate::model::process::{Change, IoRaw, Names, ProcUpdate, TaskKey};
use crate::model::section::Section;
use rustix::io::Errno;
use std::os::fd::AsFd;
use std::sync::Arc;

/// Looks between two tries at a task of which everything was refused.
const RETRY: u64 = 60;

/// Looks in a row at which a task was found to have run, from which on it is read with kept descriptors.
pub(super) const HOT: u8 = 3;

/// Stuck threads from which on tasks in state D are not touched any more.
pub(super) const WARY: usize = MAX_STUCK - 2;

impl Tasks {
    /// Where waiting times come from this time, told in the update.
    pub(super) fn delays(&mut self, wants: &Wants, walks: bool, update: &mut ProcUpdate) -> Delays {
        let switch = self.delayacct.read(&mut self.buf).ok().map(|text| text.trim_ascii() != b"0");
        let off = switch == Some(false);
        if off {
            update.delays = Section::Absent(super::detail::NO_DELAYACCT.into());
            return Delays::Off;
        }
        if !wants.delays {
            update.delays = Section::Absent("waiting times were not asked for".into());
            return Delays::Off;
        }
        update.delays = Section::Ok(());
        if self.prober.taskstats.ok().is_some() || walks && switch.is_some() {
            return Delays::Taskstats;
        }
        if switch.is_none() {
            update.delays = self.prober.taskstats.clone();
            return Delays::Off;
        }
        if let Some(why) = self.prober.taskstats.why(update.at.boot_ns) {
            update.notes.push(format!("no swap-in delays, I/O delays in steps of 10 ms: {why}"));
        }
        Delays::Ticks
    }

    pub(super) fn forget_returned(&mut self) {
        for job in std::mem::take(&mut self.returned) {
            self.stuck.retain(|stuck| stuck.place != job.place);
            if let Some(entry) = find(&mut self.entries, job.place.pid, job.place.tid) {
                entry.ran |= entry.stuck;
                entry.stuck = false;
                entry.names_wanted |= entry.names_stuck;
                entry.names_stuck = false;
            }
        }
    }

    pub(super) fn list_processes(&mut self) -> Result<(), Errno> {
        let Some(proc) = self.proc.clone() else { return Ok(()) };
        list::numbers(proc.as_fd(), &mut self.dir_buf, &mut self.ids)?;
        let (known, mut at) = (self.entries.len(), 0);
        for n in 0..self.ids.len() {
            let pid = self.ids[n];
            while at < known && self.entries[at].raw.key.pid < pid {
                at += 1;
            }
            if at == known || self.entries[at].raw.key.pid != pid {
                self.entries.push(Entry::new(pid, pid, self.threads));
            }
        }
        if self.entries.len() > known {
            sort(&mut self.entries);
        }
        Ok(())
    }

    /// Adds the threads of processes with several, of those only that walks leave out if there was one; tells
    /// whether there were new ones.
    pub(super) fn list_threads(&mut self, walked: bool) -> bool {
        let Some(proc) = self.proc.clone() else { return false };
        let known = self.entries.len();
        for at in 0..known {
            let entry = &self.entries[at];
            let pid = entry.raw.key.pid;
            if entry.is_side_thread() || entry.gone || entry.raw.num_threads < 2 || walked && !entry.untold {
                continue;
            }
            if list::threads(proc.as_fd(), pid, &mut self.dir_buf, &mut self.ids).is_err() {
                continue;
            }
            for n in 0..self.ids.len() {
                let tid = self.ids[n];
                if find(&mut self.entries[..known], pid, tid).is_none() {
                    self.entries.push(Entry { untold: walked, ..Entry::new(pid, tid, true) });
                }
            }
        }
        if self.entries.len() > known {
            sort(&mut self.entries);
        }
        self.entries.len() > known
    }

    pub(super) fn sort(&mut self) {
        sort(&mut self.entries);
    }

    pub(super) fn mark_focus(&mut self, wants: &Wants) {
        for entry in &mut self.entries {
            entry.focus = wants.everyone;
            entry.told = u32::MAX;
        }
        for key in &wants.focus {
            if let Some(entry) = find(&mut self.entries, key.pid, key.tid) {
                entry.focus = true;
            }
        }
    }

    /// Who is to be probed; `unknown` restricts it to tasks never read.
    pub(super) fn list_places(&mut self, unknown: bool) {
        self.places.clear();
        self.probed.clear();
        for (n, entry) in self.entries.iter().enumerate() {
            if !(entry.gone || unknown && entry.known) {
                self.places.push(entry.place());
                self.probed.push(n as u32);
            }
        }
    }

    /// Takes in what the probe says of a place.
    pub(super) fn apply_probe(&mut self, place: usize, probed: Probed, delays: Delays, now: u64) {
        apply_probe(&mut self.entries[self.probed[place] as usize], probed, delays, now);
    }

    /// What to read of whom.
    pub(super) fn plan(&mut self, seq: u64, waits: bool) {
        let moved = self.swap.moved();
        let wary = self.hanging >= WARY;
        let len = self.entries.len();
        let budget = if moved { (len / 10).clamp(50, 2_000) } else { (len / 200).clamp(1, 100) };
        let round = self.round % len.max(1);
        self.round = round + budget;
        self.jobs.clear();
        for (at, entry) in self.entries.iter_mut().enumerate() {
            entry.streak = if entry.ran { entry.streak.saturating_add(1) } else { 0 };
            if entry.gone || entry.denied && !seq.is_multiple_of(RETRY) {
                continue;
            }
            let due = at.wrapping_sub(round) < budget || at + len - round < budget;
            let mut what = What { wary, ..What::default() };
            if entry.stuck {
                what.unblockable = true;
            } else if entry.ran || entry.doubtful {
                what.stat = true;
                what.io = !entry.io_denied;
                what.prio = entry.raw.ioprio.is_none() || seq.is_multiple_of(5);
                what.wchan = entry.focus && waits;
                what.status = entry.focus && moved;
            }
            if !entry.stuck && entry.known && !entry.is_side_thread() && !entry.raw.kernel_thread {
                // Swap moves with the machine's swap counters, or when the task itself runs and lets go of memory.
                what.status |= due || entry.focus && (moved || entry.ran && seq.is_multiple_of(5));
                what.cgroup = due;
            }
            if entry.focus && entry.known && !entry.stuck {
                // Somebody else may change it, but not every second.
                what.prio |= entry.raw.ioprio.is_none() || seq.is_multiple_of(5);
                what.wchan |= waits && !entry.wait_told;
            }
            if what != (What { wary, ..What::default() }) {
                let unless_io = (entry.doubtful && !entry.ran && what.io).then_some(entry.io_hash);
                let (place, hot) = (entry.place(), entry.streak >= HOT);
                self.jobs.push(ReadJob { at: at as u32, place, what, unless_io, hot });
            }
        }
    }

    pub(super) fn plan_unknown(&mut self) {
        self.jobs.clear();
        let what = What { stat: true, io: true, prio: true, ..What::default() };
        for (at, entry) in self.entries.iter().enumerate() {
            if !(entry.known || entry.gone || entry.denied || entry.stuck) {
                self.jobs.push(ReadJob::once(at, entry.place(), what));
            }
        }
    }

    /// Names, uid and swap of tasks that are new or exec'd; visible ones first.
    pub(super) fn plan_names(&mut self, most: usize, walked: bool) {
        self.jobs.clear();
        // The command line by itself, since it may hang where the rest does not.
        let cmdline = What { cmdline: true, ..What::default() };
        for focus in [true, false] {
            for (at, entry) in self.entries.iter_mut().enumerate() {
                let wanted =
                    entry.names_wanted && entry.known && !(entry.gone || entry.stuck || entry.names_stuck);
                if !wanted || entry.focus != focus || entry.is_side_thread() || self.jobs.len() / 2 >= most {
                    continue;
                }
                if entry.raw.kernel_thread {
                    entry.names_wanted = false;
                    continue;
                }
                let safe = What { status: !walked || entry.untold, cgroup: true, ..What::default() };
                self.jobs.push(ReadJob::once(at, entry.place(), safe));
                self.jobs.push(ReadJob::once(at, entry.place(), cmdline));
            }
        }
    }

    /// Takes in what was read of a task.
    pub(super) fn take(&mut self, job: &ReadJob, got: Reading, pass: &mut Pass) {
        let (delays, update) = (pass.delays, &mut pass.update);
        let entry = &mut self.entries[job.at as usize];
        entry.gone |= got.gone;
        entry.denied = got.denied;
        if got.gone || got.denied {
            return;
        }
        let since_ns = entry.looked_ns;
        let changes = entry.merge(&got, delays, self.page_size);
        update.gone.extend(changes.replaced);
        if got.io.is_some() || got.stat.is_some() {
            entry.looked_ns = got.at_ns;
        }
        if changes.row {
            let since_ns = if changes.first { 0 } else { since_ns };
            tell(entry, &mut update.changed, got.at_ns, since_ns);
        }
        if got.stat.is_some() || job.what.wchan {
            entry.wait_told = job.what.wchan || got.wchan.is_some();
        }
        let entry = &self.entries[job.at as usize];
        if let Some(wait) = &got.wchan {
            let wait = match self.waits.get(&**wait) {
                Some(known) => known.clone(),
                None => {
                    let wait: Arc<str> = Arc::from(&**wait);
                    self.waits.insert(wait.clone());
                    wait
                }
            };
            update.waits.push((entry.raw.key, wait));
        }
        if got.cmdline.is_some() || got.cgroup.is_some() {
            self.take_names(job, got, update);
        }
    }

    fn take_names(&mut self, job: &ReadJob, got: Reading, update: &mut ProcUpdate) {
        let entry = &mut self.entries[job.at as usize];
        let mut names = entry.names.as_deref().cloned().unwrap_or_default();
        if let Some(text) = &got.cgroup {
            let group = self.groups.of(text);
            names.cgroup = group.path;
            names.container = group.container;
            entry.group_wanted = false;
        }
        if let Some(cmdline) = got.cmdline {
            names.cmdline = Some(cmdline);
            entry.names_wanted = false;
        }
        if entry.names.as_deref() != Some(&names) {
            let names: Arc<Names> = Arc::new(names);
            entry.names = Some(names.clone());
            // Group and command line come as two readings: told together.
            match update.names.last_mut().filter(|(key, _)| *key == entry.raw.key) {
                Some(last) => last.1 = names,
                None => update.names.push((entry.raw.key, names)),
            }
        }
    }

    /// Threads take names, uid and swap from their process.
    pub(super) fn borrow_names(&mut self, update: &mut ProcUpdate) {
        if !self.threads {
            return;
        }
        for at in 0..self.entries.len() {
            let entry = &self.entries[at];
            if !entry.is_side_thread() || !entry.names_wanted || !entry.known || entry.gone {
                continue;
            }
            let pid = entry.raw.key.pid;
            let Some(main) = find(&mut self.entries, pid, pid).filter(|main| main.names.is_some()) else {
                continue;
            };
            let (names, uid, swap) = (main.names.clone(), main.raw.uid, main.raw.swap_bytes);
            let entry = &mut self.entries[at];
            entry.names_wanted = false;
            entry.raw.uid = uid;
            entry.raw.swap_bytes = swap;
            let at_ns = entry.looked_ns;
            tell(entry, &mut update.changed, at_ns, at_ns);
            update.names.extend(names.clone().map(|names| (entry.raw.key, names)));
            entry.names = names;
        }
    }

    /// Ends, sums, and what a new listener needs.
    pub(super) fn finish(&mut self, wants: &Wants, walked: bool, update: &mut ProcUpdate) {
        let mut ended = false;
        for entry in &self.entries {
            ended |= entry.gone;
            match entry.gone {
                true if entry.known => update.gone.push(entry.raw.key),
                true => {}
                false => {
                    update.total += usize::from(entry.known);
                    update.hidden += usize::from(entry.denied || entry.raw.io == IoRaw::Denied);
                }
            }
        }
        if ended {
            self.entries.retain(|entry| !entry.gone);
            let entries = &mut self.entries;
            self.stuck.retain(|stuck| find(entries, stuck.place.pid, stuck.place.tid).is_some());
        }
        if wants.full {
            update.changed.clear();
            update.names.clear();
            for entry in self.entries.iter().filter(|entry| entry.known) {
                let raw = entry.raw;
                update.changed.push(Change { raw, at_ns: entry.looked_ns, since_ns: 0 });
                update.names.extend(entry.names.iter().map(|names| (raw.key, names.clone())));
            }
        }
        let mut uids: Vec<u32> = update.changed.iter().filter_map(|change| change.raw.uid).collect();
        uids.sort_unstable();
        uids.dedup();
        uids.retain(|uid| !self.users.knows(*uid));
        update.users = self.users.tell(&uids, is_runnable);
        for stuck in &self.stuck {
            let key = find(&mut self.entries, stuck.place.pid, stuck.place.tid).map(|entry| entry.raw.key);
            let unknown = TaskKey { pid: stuck.place.pid, tid: stuck.place.tid, starttime: 0 };
            let mut task = stuck.tell(key.unwrap_or(unknown));
            task.counters_readable |= walked;
            update.blocked.push(task);
        }
    }
}

fn apply_probe(entry: &mut Entry, probed: Probed, delays: Delays, now: u64) {
    entry.doubtful = false;
    match probed {
        Probed::Gone => entry.gone = true,
        Probed::Unknown => entry.ran = true,
        Probed::Runs { runs, delays: waited, whole } => {
            entry.doubtful = !whole && entry.raw.num_threads > 1;
            if delays == Delays::Taskstats {
                entry.raw.delays = waited;
            }
            if runs != entry.runs {
                entry.runs = runs;
                entry.ran = true;
                entry.wait_told = false;
            } else if !entry.ran && !entry.doubtful && entry.known {
                entry.looked_ns = now;
            }
        }
    }
}

/// Puts the row into the update. A task read twice in one look is told once: with what is known last,
/// and with the interval of the reading that brought its counters.
pub(super) fn tell(entry: &mut Entry, changed: &mut Vec<Change>, at_ns: u64, since_ns: u64) {
    if let Some(told) = changed.get_mut(entry.told as usize) {
        told.raw = entry.raw;
        return;
    }
    entry.told = changed.len() as u32;
    changed.push(Change { raw: entry.raw, at_ns, since_ns });
}

fn sort(entries: &mut [Entry]) {
    entries.sort_by_key(|entry| (entry.raw.key.pid, entry.raw.key.tid));
}

fn find(entries: &mut [Entry], pid: u32, tid: u32) -> Option<&mut Entry> {
    let at = entries.binary_search_by_key(&(pid, tid), |e| (e.raw.key.pid, e.raw.key.tid)).ok()?;
    Some(&mut entries[at])
}

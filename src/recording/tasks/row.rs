//! One task's counters, names and blocked reads.

use super::super::codec::{Coded, DecodeError, Wire};
use super::super::counter_row::{Cells, CounterRow};
use crate::model::process::{
    BlockedTask, IoBytes, IoPrio, ProcessUpdate, TaskDelays, TaskIoRaw, TaskKey, TaskNames, TaskRaw,
};
use std::sync::{Arc, LazyLock};

/// Threads in D state of one update at most.
const MAX_THREADS: usize = 4_096;
pub(super) const TID_TOO_LARGE: DecodeError = DecodeError("a task number has more than 32 bits");

/// What a new task is compared with: every cell is 0.
pub(super) static EMPTY: LazyLock<TaskRaw> =
    LazyLock::new(|| TaskRaw { io: TaskIoRaw::Read(IoBytes::default()), ..TaskRaw::default() });

impl CounterRow for TaskRaw {
    const FLAGS: usize = 12;

    fn cells(&mut self, c: &mut Cells) {
        let mut io = self.io.bytes().unwrap_or_default();
        let mut delays = self.delays.unwrap_or(TaskDelays { blkio_ns: 0, swapin_ns: None });
        // In pages, if it is whole pages: fewer bytes.
        let mut rss = self.rss_bytes.rotate_right(12);
        c.nums([
            &mut self.timeslices,
            &mut self.cpu_ticks,
            &mut delays.blkio_ns,
            &mut io.write,
            &mut io.read,
            &mut rss,
        ]);
        c.num(&mut self.state);
        if c.is_read() && !self.state.is_ascii_alphabetic() {
            // It is shown as a letter, whoever wrote the file.
            self.state = b'?';
        }
        c.nums([&mut self.majflt, &mut io.cancelled]);
        c.option(5, &mut delays.swapin_ns);
        c.option(3, &mut self.swap_bytes);
        c.num(&mut self.num_threads);
        c.flags();
        let mut priority = self.ioprio.map_or(0, IoPrio::to_raw);
        c.num(&mut priority);
        c.num(&mut self.ppid);
        c.option(2, &mut self.uid);
        let (low, high) = self.comm.split_at_mut(8);
        for half in [low, high] {
            let mut cell = u64::from_le_bytes(std::array::from_fn(|i| half[i]));
            c.num(&mut cell);
            half.copy_from_slice(&cell.to_le_bytes());
        }
        // The key differs only where the task number has been reused.
        c.num(&mut self.key.pid);
        c.num(&mut self.key.starttime);

        c.flag(0, &mut self.kernel_thread);
        c.present(1, &mut self.ioprio, IoPrio::from_raw(priority));
        c.present(4, &mut self.delays, delays);
        let outcome = match self.io {
            TaskIoRaw::Read(_) => 0,
            TaskIoRaw::Denied => 1,
            TaskIoRaw::Blocked => 2,
            TaskIoRaw::Absent => 3,
        };
        let (mut low, mut high) = (outcome & 1 != 0, outcome & 2 != 0);
        c.flag(6, &mut low);
        c.flag(7, &mut high);
        self.io = match (high, low) {
            (false, false) => TaskIoRaw::Read(io),
            (false, true) => TaskIoRaw::Denied,
            (true, false) => TaskIoRaw::Blocked,
            (true, true) => TaskIoRaw::Absent,
        };
        self.rss_bytes = rss.rotate_left(12);
    }
}

pub(super) fn task_key(w: &mut Wire, key: &mut TaskKey) -> Coded {
    w.nums([&mut key.tid, &mut key.pid])?;
    w.num(&mut key.starttime)
}

/// A task number as the difference to the one before it.
pub(super) fn chained_tid(w: &mut Wire, last: &mut u64, tid: &mut u32) -> Coded {
    let mut n = u64::from(*tid);
    w.chained(last, &mut n)?;
    *tid = u32::try_from(n).map_err(|_| TID_TOO_LARGE)?;
    Ok(())
}

/// Names; those that are only ever shown are sanitized when they are read.
pub(super) fn task_names(w: &mut Wire, names: &mut TaskNames) -> Coded {
    w.optional_blob(&mut names.cmdline)?;
    w.shown_text(&mut names.cgroup)?;
    w.optional_shown_text(&mut names.container)
}

pub(super) fn user_name(w: &mut Wire, (uid, name): &mut (u32, Arc<str>)) -> Coded {
    w.num(uid)?;
    w.text(name)
}

/// Threads in D state, at the end of the layout: absent where nothing is known of them, and in files of earlier versions.
pub(super) fn thread_states(w: &mut Wire, update: &mut ProcessUpdate) -> Coded {
    let has_any = update.all_threads_known || !update.uninterruptible_threads.is_empty();
    let is_absent = if w.is_read() { w.is_at_end() } else { !has_any };
    if is_absent {
        return Ok(());
    }
    w.flag(&mut update.all_threads_known)?;
    w.list(MAX_THREADS, &mut update.uninterruptible_threads, |w, thread| {
        task_key(w, &mut thread.key)?;
        let mut comm = thread.comm().to_vec();
        w.blob(&mut comm)?;
        comm.resize(thread.comm.len(), 0);
        thread.comm.copy_from_slice(&comm);
        w.num(&mut thread.timeslices)?;
        w.optional_shown_text(&mut thread.wait_channel)
    })
}

pub(super) fn blocked_task(w: &mut Wire, task: &mut BlockedTask) -> Coded {
    task_key(w, &mut task.key)?;
    w.num(&mut task.since_boot_ns)?;
    w.shown_text(&mut task.waiting_on)?;
    w.flag(&mut task.counters_readable)
}

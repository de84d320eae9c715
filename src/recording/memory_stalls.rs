//! Stalls as differences to the tick before: which processes there are, if that changed, then the figures of those
//! that were held up again.

use super::codec::{ByteReader, DecodeError, get_reasons, put_blob, put_reasons, put_row_delta, put_varint};
use super::sample::{get_outcome, put_outcome};
use crate::model::memory_stalls::{MemoryStallsRaw, TaskStallCounters};
use crate::model::reading::Reading;

/// Processes of one sample at most.
const MAX_PROCESSES: usize = 65_536;
/// Figures of a process: times, ns and the longest one of each kind.
const COLUMNS: usize = 6;

fn to_row(task: &TaskStallCounters) -> [u64; COLUMNS] {
    let [a, b] = task.counters;
    [a.count, a.total_ns, a.max_ns, b.count, b.total_ns, b.max_ns]
}

/// Appends a reading as it differs from `prev`.
pub fn encode(out: &mut Vec<u8>, prev: &Reading<MemoryStallsRaw>, cur: &Reading<MemoryStallsRaw>) {
    if !put_outcome(out, cur) {
        return;
    }
    let (none, Reading::Ok(now)) = (MemoryStallsRaw::default(), cur) else { return };
    let old = prev.ok().unwrap_or(&none);
    put_varint(out, now.dropped);
    put_varint(out, u64::from(now.is_counted[0]) | u64::from(now.is_counted[1]) << 1);
    put_reasons(out, &now.unavailable);
    let labels = |t: &TaskStallCounters| (t.pid, t.starttime, t.comm.clone(), t.bdi.clone());
    let same =
        old.tasks.len() == now.tasks.len() && old.tasks.iter().zip(&now.tasks).all(|(a, b)| labels(a) == labels(b));
    put_varint(out, u64::from(!same));
    if !same {
        put_varint(out, now.tasks.len() as u64);
        for t in &now.tasks {
            put_varint(out, u64::from(t.pid));
            put_varint(out, t.starttime);
            put_blob(out, &t.comm);
            put_blob(out, &t.bdi);
        }
    }
    let mut last = 0;
    for (at, task) in now.tasks.iter().enumerate() {
        let before = if same { to_row(&old.tasks[at]) } else { [0; COLUMNS] };
        let cells = to_row(task);
        if before != cells {
            put_varint(out, (at - last) as u64);
            put_row_delta(out, &before, &cells);
            last = at;
        }
    }
}

/// What [`put`] wrote.
pub fn decode(inp: &mut ByteReader, prev: &Reading<MemoryStallsRaw>) -> Result<Reading<MemoryStallsRaw>, DecodeError> {
    if let other @ (Reading::Denied(_) | Reading::Absent(_) | Reading::Blocked(_)) = get_outcome(inp)? {
        return Ok(other.map(|()| MemoryStallsRaw::default()));
    }
    let lost = inp.varint()?;
    let counted = inp.varint()?;
    let without = get_reasons(inp)?;
    let mut tasks = match inp.varint()? {
        0 => prev.ok().map(|p| p.tasks.clone()).unwrap_or_default(),
        _ => get_tasks(inp)?,
    };
    let mut at = 0usize;
    while !inp.is_empty() {
        at = at.saturating_add(inp.varint()? as usize);
        let task = tasks.get_mut(at).ok_or(DecodeError("a process that is not there"))?;
        let mut row = to_row(task);
        inp.apply_row_delta(&mut row)?;
        for (kind, cells) in task.counters.iter_mut().zip(row.chunks_exact(3)) {
            (kind.count, kind.total_ns, kind.max_ns) = (cells[0], cells[1], cells[2]);
        }
    }
    Ok(Reading::Ok(MemoryStallsRaw {
        tasks,
        is_counted: [counted & 1 != 0, counted & 2 != 0],
        dropped: lost,
        unavailable: without,
    }))
}

fn get_tasks(inp: &mut ByteReader) -> Result<Vec<TaskStallCounters>, DecodeError> {
    let n = inp.count()?;
    if n > MAX_PROCESSES {
        return Err(DecodeError("more processes than any machine has"));
    }
    let mut tasks: Vec<TaskStallCounters> = Vec::new();
    for _ in 0..n {
        let (pid, starttime) = (inp.varint_u32()?, inp.varint()?);
        let (comm, bdi) = (inp.blob()?.to_vec(), inp.blob()?.to_vec());
        let task = TaskStallCounters { pid, starttime, comm, bdi, ..TaskStallCounters::default() };
        // They are looked up by it.
        if tasks.last().is_some_and(|last| last.key() >= task.key()) {
            return Err(DecodeError("processes that are not in order"));
        }
        tasks.push(task);
    }
    Ok(tasks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::memory_stalls::StallCounter;
    use crate::model::reading::BlockedRead;
    use proptest::prelude::*;

    fn round_trip(prev: &Reading<MemoryStallsRaw>, cur: &Reading<MemoryStallsRaw>) -> Reading<MemoryStallsRaw> {
        let mut out = Vec::new();
        encode(&mut out, prev, cur);
        decode(&mut ByteReader(&out), prev).unwrap()
    }

    fn any_reading() -> impl Strategy<Value = Reading<MemoryStallsRaw>> {
        let kind = || {
            any::<(u64, u64, u64)>().prop_map(|(count, ns, longest_ns)| StallCounter {
                count,
                total_ns: ns,
                max_ns: longest_ns,
            })
        };
        let name = || proptest::collection::vec(any::<u8>(), 0..4);
        let task =
            (0..9u32, 0..2u64, name(), name(), [kind(), kind()]).prop_map(|(pid, starttime, comm, bdi, kinds)| {
                TaskStallCounters { pid, starttime, comm, bdi, counters: kinds }
            });
        let tasks = proptest::collection::vec(task, 0..5).prop_map(|mut tasks| {
            tasks.sort_by_key(TaskStallCounters::key);
            tasks.dedup_by_key(|t| t.key());
            tasks
        });
        (tasks, any::<[bool; 2]>(), any::<u64>(), proptest::collection::vec("[a-z]{0,9}", 0..2)).prop_map(
            |(tasks, counted, lost, without)| {
                Reading::Ok(MemoryStallsRaw { tasks, is_counted: counted, dropped: lost, unavailable: without })
            },
        )
    }

    #[test]
    fn unavailable_readings_round_trip() {
        let no = Reading::Denied("no".into());
        let stuck = Reading::Blocked(BlockedRead { since_boot_ns: 7, waiting_on: "tracing".into() });
        let some =
            Reading::Ok(MemoryStallsRaw { unavailable: vec!["reclaim: no".into()], ..MemoryStallsRaw::default() });
        for (a, b) in [(&no, &some), (&some, &no), (&some, &stuck), (&some, &some)] {
            assert_eq!(round_trip(a, b), *b);
        }
    }

    #[test]
    fn an_unchanged_process_takes_no_bytes() {
        let task = |pid| TaskStallCounters { pid, comm: b"dd".to_vec(), ..TaskStallCounters::default() };
        let mut now = MemoryStallsRaw { tasks: (0..100).map(task).collect(), ..MemoryStallsRaw::default() };
        let before = Reading::Ok(now.clone());
        now.tasks[50].counters[0].count += 1;
        let mut out = Vec::new();
        encode(&mut out, &before, &Reading::Ok(now));
        assert!(out.len() < 10, "{out:?}");
    }

    proptest! {
        #[test]
        fn readings_come_back_as_differences(a in any_reading(), b in any_reading()) {
            prop_assert_eq!(round_trip(&a, &b), b.clone());
            prop_assert_eq!(round_trip(&Reading::default(), &b), b);
        }

        #[test]
        fn damage_is_refused_or_read(
            a in any_reading(), b in any_reading(), at in any::<proptest::sample::Index>(), to in any::<u8>(),
        ) {
            let mut out = Vec::new();
            encode(&mut out, &a, &b);
            let at = at.index(out.len());
            out[at] = to;
            let _ = decode(&mut ByteReader(&out), &a);
            let _ = decode(&mut ByteReader(&out[..at]), &a);
        }
    }
}

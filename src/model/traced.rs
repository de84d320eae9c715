//! What tracing counted between two samples. Tracing often begins within the interval: its figures are those of the part that it
//! covered then, and say so.

use super::coverage::SinceStart;
use super::disk::{DevId, DiskRate};
use super::file_io::FileActivity;
use super::io_accounting::IoAttribution;
use super::latency::{DeviceHistograms, DeviceLatency, LatencyRaw, TracingStatus};
use super::memory_stalls::MemoryStalls;
use super::reading::{Reading, rates_of};
use super::sample::Sample;
use super::syncs::SyncActivity;
use super::task_waits::TaskWaits;
use crate::sanitize::sanitize;
use std::sync::Arc;

/// Devices that are named where their first requests were not counted.
const MAX_NAMED: usize = 3;

/// Whether a traced source could be read, or was not loaded and began to count since.
fn is_countable<T>(reading: &Reading<T>) -> bool {
    !matches!(reading, Reading::Denied(_) | Reading::Blocked(_))
}

/// Latency of a device, if it is traced. Histograms that the earlier sample does not have began to count since.
pub(super) fn latency(prev: Option<&Sample>, cur: &Sample, rate: &DiskRate) -> Option<Arc<DeviceLatency>> {
    let now = device_histograms(cur, rate.id).filter(|_| prev.is_none_or(|p| is_countable(&p.latency)))?;
    let before = prev.and_then(|p| device_histograms(p, rate.id));
    let mut latency = DeviceLatency::derive(before, now);
    // Also where a device lacks the histogram of a kind, because the kernel had no memory for it.
    if before.is_none() || cur.latency.ok().is_some_and(|raw| !raw.unavailable.is_empty()) {
        let flushes = rate.flushes_per_s.unwrap_or_default();
        latency.mark_unmeasured([rate.reads_per_s, rate.writes_per_s, flushes].map(|per_s| per_s > 0.0));
    }
    Some(Arc::new(latency))
}

fn device_histograms(s: &Sample, id: DevId) -> Option<&DeviceHistograms> {
    let devices = &s.latency.ok()?.devices;
    devices.binary_search_by_key(&id, |d| d.id).ok().map(|at| &devices[at])
}

/// Whether latencies are traced, and what is missing from them.
pub(super) fn status(prev: Option<&Sample>, cur: &Sample, secs: f64) -> Reading<TracingStatus> {
    let before = prev.and_then(|p| p.latency.ok());
    rates_of("tracing", prev.is_none_or(|p| is_countable(&p.latency)), &cur.latency, |now| {
        let mut unavailable = now.unavailable.clone();
        match before {
            None => unavailable.push(since_start(cur, now.tracing_started_ns, secs).note()),
            Some(before) => unavailable.extend(new_devices_note(before, now, cur)),
        }
        TracingStatus { dropped: now.dropped.saturating_sub(before.map_or(0, |b| b.dropped)), unavailable }
    })
}

/// Devices are traced from their first request on, which is not counted itself, nor are others before the next reading.
fn new_devices_note(before: &LatencyRaw, now: &LatencyRaw, cur: &Sample) -> Option<String> {
    let is_new = |id: DevId| before.devices.binary_search_by_key(&id, |d| d.id).is_err();
    let name = |id: DevId| {
        let named = cur.disks.ok().and_then(|disks| disks.iter().find(|disk| disk.id == id));
        named.map_or_else(|| id.to_string(), |disk| sanitize(disk.name.as_bytes()))
    };
    let mut names: Vec<String> = now.devices.iter().map(|d| d.id).filter(|id| is_new(*id)).map(name).collect();
    let others = names.len().saturating_sub(MAX_NAMED);
    names.truncate(MAX_NAMED);
    if others > 0 {
        names.push(format!("{others} more"));
    }
    (!names.is_empty())
        .then(|| format!("requests of {} are counted from the end of this interval on", names.join(", ")))
}

/// Why there are no rates where tracing began after the time of the sample, while its sources were read: nobody knows how long
/// they would cover.
fn began_while_read<T>(cur: &Sample, started_ns: u64) -> Option<Reading<T>> {
    (started_ns > 0 && started_ns >= cur.time.boot_ns)
        .then(|| Reading::Absent("tracing began while this sample was read".into()))
}

fn since_start(cur: &Sample, started_ns: u64, interval_secs: f64) -> SinceStart {
    SinceStart { started_ns, read_ns: cur.time.boot_ns, interval_secs }
}

/// Rates since boot would be meaningless.
pub(super) fn memory_stalls(prev: Option<&Sample>, cur: &Sample, secs: f64) -> Reading<Arc<MemoryStalls>> {
    let before = prev.and_then(|p| p.memory_stalls.ok());
    let has_earlier = prev.is_some_and(|p| is_countable(&p.memory_stalls));
    if let (None, Reading::Ok(now)) = (before, &cur.memory_stalls)
        && let Some(absent) = began_while_read(cur, now.tracing_started_ns)
    {
        return absent;
    }
    rates_of("tracing of stalls", has_earlier, &cur.memory_stalls, |now| {
        let covers = since_start(cur, now.tracing_started_ns, secs);
        let mut stalls = MemoryStalls::derive(before, now, if before.is_some() { secs } else { covers.covered_secs() });
        stalls.unavailable.extend(before.is_none().then(|| covers.note()));
        Arc::new(stalls)
    })
}

/// Counts begin with tracing, so no earlier reading is needed; after a failed one the rates cover a longer time.
pub(super) fn files(prev: Option<&Sample>, cur: &Sample, secs: f64) -> Reading<Arc<FileActivity>> {
    let before = prev.and_then(|p| p.file_io.ok()).map(|p| &**p);
    cur.file_io.as_ref().map(|now| {
        let before = before.filter(|b| b.tracing_started_ns == now.tracing_started_ns);
        let mut files = FileActivity::derive(before, now, secs);
        files.unavailable.extend(before.is_none().then(|| now.since_start(secs).note()));
        Arc::new(files)
    })
}

/// As with files; the interval is that between the readings.
pub(super) fn task_waits(prev: Option<&Sample>, cur: &Sample, secs: f64) -> Reading<Arc<TaskWaits>> {
    let before = prev.and_then(|p| p.task_waits.ok()).map(|p| &**p);
    cur.task_waits.as_ref().map(|now| {
        let before = before.filter(|b| b.tracing_started_ns == now.tracing_started_ns);
        let mut waits = TaskWaits::derive(before, now);
        let covers = SinceStart { started_ns: now.tracing_started_ns, read_ns: now.read_ns, interval_secs: secs };
        waits.unavailable.extend(before.is_none().then(|| covers.note()));
        Arc::new(waits)
    })
}

pub(super) fn syncs(prev: Option<&Sample>, cur: &Sample, secs: f64) -> Reading<Arc<SyncActivity>> {
    let before = prev.and_then(|p| p.syncs.ok());
    cur.syncs.as_ref().map(|now| {
        let before = before.filter(|b| b.tracing_started_ns == now.tracing_started_ns);
        let mut syncs = SyncActivity::derive(before, now, secs);
        syncs.unavailable.extend(before.is_none().then(|| now.since_start(secs).note()));
        Arc::new(syncs)
    })
}

/// Accounts that the earlier sample does not have began to count since.
pub(super) fn io_attribution(prev: Option<&Sample>, cur: &Sample, secs: f64) -> Reading<Arc<IoAttribution>> {
    let before = prev.and_then(|p| p.io_accounts.ok()).map(|p| &**p);
    if let (None, Reading::Ok(now)) = (before, &cur.io_accounts)
        && let Some(absent) = began_while_read(cur, now.tracing_started_ns)
    {
        return absent;
    }
    rates_of("tracing by process", prev.is_none_or(|p| is_countable(&p.io_accounts)), &cur.io_accounts, |now| {
        let covers = since_start(cur, now.tracing_started_ns, secs);
        let mut rates = IoAttribution::derive(before, now, if before.is_some() { secs } else { covers.covered_secs() });
        rates.unavailable.extend(before.is_none().then(|| covers.note()));
        let disks = cur.disks.ok().map(Vec::as_slice).unwrap_or_default();
        rates.name_devices(disks.iter().map(|disk| (disk.id, &disk.name)));
        Arc::new(rates)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::disk::{DiskOpRaw, DiskRaw};
    use crate::model::io_accounting::IoAccountsRaw;
    use crate::model::memory_stalls::MemoryStallsRaw;
    use crate::model::snapshot::Snapshot;
    use crate::model::timestamp::Timestamp;

    const SDA: DevId = DevId { major: 8, minor: 0 };

    /// Without tracing.
    fn sample(boot_s: u64, reads: u64) -> Sample {
        let read = DiskOpRaw { ios: reads, ..DiskOpRaw::default() };
        Sample {
            time: Timestamp { boot_ns: boot_s * 1_000_000_000, wall_ns: 0 },
            disks: Reading::Ok(vec![DiskRaw { id: SDA, name: "sda".into(), read, ..DiskRaw::default() }]),
            ..Sample::default()
        }
    }

    fn latency_raw(tracing_started_ns: u64, devices: &[DevId], reads: u32) -> Reading<Arc<LatencyRaw>> {
        use crate::model::latency::{RequestHistograms, SparseHistogram};
        let read = RequestHistograms { total: SparseHistogram::from_sparse([(100, reads)]), ..Default::default() };
        let kinds = [read, RequestHistograms::default(), RequestHistograms::default()];
        let devices = devices.iter().map(|id| DeviceHistograms { id: *id, kinds: kinds.clone() }).collect();
        Reading::Ok(Arc::new(LatencyRaw { tracing_started_ns, devices, ..LatencyRaw::default() }))
    }

    /// Whether reads and writes are unmeasured, and what is said of it.
    fn unmeasured(before: Option<Sample>, now: Sample) -> (Vec<bool>, Vec<String>) {
        let snap = Snapshot::derive(before.as_ref(), &now);
        let kinds = snap.device(SDA).unwrap().latency.clone().unwrap();
        (
            kinds.kinds[..2].iter().map(|kind| kind.is_unmeasured).collect(),
            snap.tracing.ok().unwrap().unavailable.clone(),
        )
    }

    #[test]
    fn what_completed_before_tracing_began_is_not_measured() {
        let at = |boot_s, reads, latency| Sample { latency, ..sample(boot_s, reads) };
        let loading = || at(100, 500, Reading::Absent("tracing is being loaded".into()));
        let began = |counted| latency_raw(101_600_000_000, &[SDA], counted);
        let (kinds, why) = unmeasured(Some(loading()), at(102, 520, began(0)));
        assert_eq!(kinds, [true, false], "reads completed, writes did not");
        assert_eq!(why, ["counted for the last 400 ms of the interval of 2.0 s: tracing began then"]);
        let (kinds, why) = unmeasured(Some(loading()), at(102, 520, began(3)));
        assert_eq!((kinds, why.len()), (vec![false, false], 1), "some were traced");
        let (kinds, why) = unmeasured(None, at(102, 520, began(0)));
        assert_eq!((kinds, why.len()), (vec![true, false], 1), "since boot");
        let (kinds, why) = unmeasured(Some(at(100, 520, began(0))), at(102, 520, began(0)));
        assert_eq!((kinds, why.len()), (vec![false, false], 0), "nothing happened in a traced interval");
    }

    #[test]
    fn the_first_requests_of_a_new_device_are_not_measured() {
        let at =
            |boot_s, reads, devices: &[DevId]| Sample { latency: latency_raw(1, devices, 0), ..sample(boot_s, reads) };
        let (kinds, why) = unmeasured(Some(at(100, 0, &[])), at(102, 20, &[SDA]));
        assert_eq!(kinds, [true, false]);
        assert_eq!(why, ["requests of sda are counted from the end of this interval on"]);
    }

    #[test]
    fn what_covers_a_part_of_the_interval_says_so() {
        use crate::model::{file_io::FileIoRaw, syncs::SyncsRaw, task_waits::TaskWaitsRaw};
        let (tracing_started_ns, read_ns) = (101_600_000_000, 102_000_000_000);
        let traced = |boot_s| Sample {
            file_io: Reading::Ok(Arc::new(FileIoRaw { tracing_started_ns, read_ns, ..FileIoRaw::default() })),
            task_waits: Reading::Ok(Arc::new(TaskWaitsRaw { tracing_started_ns, read_ns, ..TaskWaitsRaw::default() })),
            syncs: Reading::Ok(SyncsRaw { tracing_started_ns, read_ns, ..SyncsRaw::default() }),
            io_accounts: Reading::Ok(Arc::new(IoAccountsRaw { tracing_started_ns, ..IoAccountsRaw::default() })),
            memory_stalls: Reading::Ok(MemoryStallsRaw { tracing_started_ns, ..MemoryStallsRaw::default() }),
            ..sample(boot_s, 1)
        };
        let notes = |before: &Sample, now: &Sample| -> Vec<String> {
            let snap = Snapshot::derive(Some(before), now);
            let all = [
                &snap.files.ok().unwrap().unavailable,
                &snap.task_waits.ok().unwrap().unavailable,
                &snap.syncs.ok().unwrap().unavailable,
                &snap.io_attribution.ok().unwrap().unavailable,
                &snap.memory_stalls.ok().unwrap().unavailable,
            ];
            all.into_iter().flatten().cloned().collect()
        };
        let part = "counted for the last 400 ms of the interval of 2.0 s: tracing began then";
        assert_eq!(notes(&sample(100, 0), &traced(102)), [part; 5]);
        assert!(notes(&traced(102), &traced(104)).is_empty());
        let late = Snapshot::derive(Some(&sample(99, 0)), &traced(101));
        assert!(late.io_attribution.ok().is_none() && late.memory_stalls.ok().is_none(), "it began after the sample");
    }

    #[test]
    fn latencies_cover_the_traced_part_of_the_interval() {
        use crate::model::latency::{RequestHistograms, SparseHistogram};
        let counted = |n: u32| {
            let read =
                RequestHistograms { total: SparseHistogram::from_sparse([(100, n)]), ..RequestHistograms::default() };
            let kinds = [read, RequestHistograms::default(), RequestHistograms::default()];
            let devices = vec![DeviceHistograms { id: DevId { major: 8, minor: 0 }, kinds }];
            Reading::Ok(Arc::new(LatencyRaw { devices, dropped: u64::from(n) / 10, ..LatencyRaw::default() }))
        };
        let at = |boot_s, latency| Sample { latency, ..sample(boot_s, 500) };
        let loading = Reading::Absent("being loaded".into());
        let blocked = Reading::Blocked(crate::model::reading::BlockedRead { since_boot_ns: 1, waiting_on: "x".into() });
        for (before, samples) in [(counted(10), Some(20)), (loading, Some(30)), (blocked, None)] {
            let snap = Snapshot::derive(Some(&at(100, before)), &at(101, counted(30)));
            let latency = snap.device(DevId { major: 8, minor: 0 }).unwrap().latency.clone();
            assert_eq!(latency.map(|l| l.kinds[0].total.unwrap().samples), samples);
            assert_eq!(snap.tracing.ok().is_some(), samples.is_some());
        }
        let snap = Snapshot::derive(Some(&at(100, counted(10))), &at(101, counted(30)));
        assert_eq!(snap.tracing.ok().unwrap().dropped, 2);
    }

    #[test]
    fn the_first_rates_by_process_are_those_of_the_time_that_tracing_covered() {
        use crate::model::io_accounting::{AccountKey, IoAccount};
        let counted = |requests, tracing_started_ns| {
            let key = AccountKey { pid: 7, ..AccountKey::default() };
            let accounts = vec![IoAccount { key, requests, ..IoAccount::default() }];
            Reading::Ok(Arc::new(IoAccountsRaw { accounts, tracing_started_ns, ..IoAccountsRaw::default() }))
        };
        let at = |boot_s, io_accounts| Sample { io_accounts, ..sample(boot_s, 500) };
        let loading = || at(100, Reading::Absent("being loaded".into()));
        let rate = |before: Sample, now| {
            let snap = Snapshot::derive(Some(&before), &at(102, now));
            snap.io_attribution.ok().unwrap().process(7).unwrap().total.reads_per_s
        };
        assert_eq!(rate(loading(), counted(50, 101_500_000_000)), 100.0, "half a second");
        assert_eq!(rate(loading(), counted(50, 0)), 25.0, "a recording that does not say when tracing began");
        assert_eq!(rate(at(100, counted(10, 50_000_000_000)), counted(50, 50_000_000_000)), 20.0);
    }

    #[test]
    fn stalls_cover_the_traced_part_of_the_interval() {
        use crate::model::memory_stalls::TaskStallCounters;
        let counted = |n: u64| {
            let mut task = TaskStallCounters { pid: 7, ..TaskStallCounters::default() };
            task.counters[0].count = n;
            Reading::Ok(MemoryStallsRaw { tasks: vec![task], is_counted: [true; 2], ..MemoryStallsRaw::default() })
        };
        let at = |boot_s, stalls| Sample { memory_stalls: stalls, ..sample(boot_s, 500) };
        let count = |before: Option<Reading<MemoryStallsRaw>>| {
            let prev = before.map(|b| at(100, b));
            let snap = Snapshot::derive(prev.as_ref(), &at(101, counted(30)));
            snap.memory_stalls.ok().map(|s| s.totals[0].unwrap().count)
        };
        assert_eq!(count(Some(counted(10))), Some(20));
        assert_eq!(count(Some(Reading::Absent("being loaded".into()))), Some(30));
        assert_eq!((count(Some(Reading::Denied("no".into()))), count(None)), (None, None));
    }
}

//! Devices that are slow in one direction or for a few requests, full journals, and machines that only look like it.

use super::firing::{FiringCase, firing_case};
use super::quiet::QuietCase as Case;
use super::test_machine::*;
use crate::doctor::finding::Severity::{Critical, Note, Warn};
use crate::model::disk::DiskRate;
use crate::model::latency::{
    BUCKETS, DeviceHistograms, DeviceLatency, RequestHistograms, SparseHistogram, bucket_index,
};
use crate::model::process::TaskRaw;
use crate::model::reading::Reading;
use std::sync::Arc;

/// Reads and writes, each as number per second and mean time in ms.
fn both(reads: (f64, f64), writes: (f64, f64)) -> DiskRate {
    let (tps, queue) = (reads.0 + writes.0, (reads.0 * reads.1 + writes.0 * writes.1) / 1e3);
    DiskRate {
        reads_per_s: reads.0,
        writes_per_s: writes.0,
        read_await_ms: reads.1,
        write_await_ms: writes.1,
        ..busy_device(VDA, "vda", (tps, queue * 1e3 / tps, queue, 4.0, 0.5))
    }
}

/// Small writes that wait for flushes: flushes per second and their time in ms.
pub fn flushing(per_s: f64, ms: f64, writes_per_s: f64) -> DiskRate {
    let rate = both((0.0, 0.0), (writes_per_s, ms));
    DiskRate { flushes_per_s: Some(per_s), flush_await_ms: Some(ms), queue_size: 4.5, ..rate }
}

pub fn discarding(per_s: f64, ms: f64, reads: (f64, f64)) -> DiskRate {
    let rate = both(reads, (0.5, 1.0));
    let queue_size = rate.queue_size + per_s * ms / 1e3;
    DiskRate { discards_per_s: Some(per_s), discard_await_ms: Some(ms), queue_size, ..rate }
}

/// Reads with these times, each as count and ms.
fn traced_reads(rate: DiskRate, times: &[(u32, f64)]) -> DiskRate {
    let mut dense = vec![0; BUCKETS];
    times.iter().for_each(|(count, ms)| dense[usize::from(bucket_index((ms * 1e6) as u64))] += count);
    let mut histograms = DeviceHistograms { id: rate.id, ..DeviceHistograms::default() };
    histograms.kinds[0] =
        RequestHistograms { total: SparseHistogram::from_dense(dense), ..RequestHistograms::default() };
    DiskRate { latency: Some(Arc::new(DeviceLatency::derive(None, &histograms))), ..rate }
}

/// A loop device with reads of 300 ms in twice four ticks with this CPU pressure, and none in the last 20 s.
fn stalls_then_quiet(machine: &mut TestMachine, cpu_pct: f64) {
    for times in [&[(200, 0.5)][..], &[(150, 0.5), (2, 300.0)], &[(200, 0.5)], &[(150, 0.5), (2, 300.0)]] {
        machine.ticks(4, |t| {
            t.tracing = Reading::Ok(Default::default());
            let is_slow = times.len() > 1;
            Arc::make_mut(t.pressure.ok_mut().unwrap()).cpu = pressure(if is_slow { cpu_pct } else { 0.0 }, 0.0);
            let rate = DiskRate { queue_size: 0.5, ..both((200.0, 0.8), (0.5, 1.0)) };
            set_device(t, traced_reads(DiskRate { id: LOOP0, name: "loop0".into(), ..rate }, times));
        });
    }
    machine.ticks(20, |t| {
        t.tracing = Reading::Ok(Default::default());
        let rate = DiskRate { queue_size: 0.5, ..both((200.0, 0.8), (0.5, 1.0)) };
        set_device(t, traced_reads(DiskRate { id: LOOP0, name: "loop0".into(), ..rate }, &[(200, 0.5)]));
    });
}

/// Adds ticks in which these reads were traced.
fn reads_for(machine: &mut TestMachine, ticks: usize, queue: f64, times: &[(u32, f64)]) {
    machine.ticks(ticks, |t| {
        t.tracing = Reading::Ok(Default::default());
        let rate = DiskRate { queue_size: queue, ..both((200.0, 0.8), (0.5, 1.0)) };
        set_device(t, traced_reads(rate, times));
    });
}

pub const FIRING: &[FiringCase] = &[
    firing_case(
        "slow-direction",
        "slow writes beside many fast reads",
        Warn,
        "writes on vda take 101 ms with few in flight, reads 0.70 ms",
        |s| {
            s.ticks(8, |t| set_device(t, both((900.0, 0.7), (9.0, 101.0))));
        },
    ),
    firing_case("slow-direction", "very slow reads beside writes", Critical, "reads on vda take 310 ms", |s| {
        s.ticks(8, |t| set_device(t, both((3.0, 310.0), (400.0, 0.4))));
    }),
    firing_case("slow-flush", "a quarter of a second", Critical, "vda is slow to flush its write cache: 250 ms", |s| {
        s.ticks(8, |t| set_device(t, flushing(3.5, 250.0, 7.0)));
    }),
    firing_case("slow-flush", "47 ms for each synchronous write", Warn, "vda is slow to flush its write cache", |s| {
        s.ticks(8, |t| set_device(t, flushing(21.0, 47.0, 21.0)));
    }),
    firing_case("slow-discards", "reads wait behind them", Warn, "300 ms each; reads take 80.0 ms behind them", |s| {
        s.ticks(8, |t| set_device(t, discarding(12.0, 300.0, (20.0, 80.0))));
    }),
    firing_case("slow-discards", "nobody waits", Note, "vda is busy with discards", |s| {
        s.ticks(8, |t| set_device(t, discarding(12.0, 300.0, (20.0, 0.8))));
    }),
    firing_case("slow-tail", "one read in a hundred", Warn, "some reads on vda take up to", |s| {
        reads_for(s, 30, 0.5, &[(198, 0.5), (2, 400.0)]);
    }),
    firing_case("slow-tail", "stalls every ten seconds", Warn, "vda stalls about every 10s: reads take up to", |s| {
        for _ in 0..4 {
            reads_for(s, 9, 0.5, &[(200, 0.5)]);
            reads_for(s, 1, 1.0, &[(150, 0.5), (1, 1500.0)]);
        }
    }),
    firing_case("slow-tail", "a loop device on processors that were busy then", Note, "loop0 stalls", |s| {
        stalls_then_quiet(s, 90.0);
    }),
    firing_case("slow-tail", "a loop device on processors that were free", Warn, "loop0 stalls", |s| {
        stalls_then_quiet(s, 20.0);
    }),
    firing_case("slow-tail", "stalls of a busy device", Warn, "vda stalls about every 10s: reads take up to", |s| {
        for _ in 0..4 {
            reads_for(s, 9, 5.0, &[(200, 0.5)]);
            reads_for(s, 1, 10.0, &[(150, 0.5), (4, 1500.0)]);
        }
    }),
    firing_case(
        "journal-full",
        "a small journal",
        Warn,
        "tar (930) waits for the ext4 journal on sda1: seen in 8 of 8 samples",
        |s| wait_beside_journal(s, "do_get_write_access"),
    ),
];

/// Adds a task that waits in this function, while a journal is written.
fn wait_beside_journal(machine: &mut TestMachine, function: &str) {
    let journal = TaskRaw { kernel_thread: true, state: b'D', ..task_counters(40, "jbd2/sda1-8") };
    machine.scan(vec![journal], false);
    machine.add_hung_task(930, "tar", function, 10);
}

pub const QUIET: &[Case] = &[
    Case::new("slow-direction", "writes queue behind each other", |s| {
        s.ticks(8, |t| set_device(t, both((900.0, 0.7), (200.0, 101.0))));
    }),
    Case::new("slow-direction", "both are slow: the device is", |s| {
        s.ticks(8, |t| set_device(t, both((9.0, 90.0), (9.0, 101.0))));
    }),
    Case::new("slow-flush", "fast flushes", |s| {
        s.ticks(8, |t| set_device(t, flushing(400.0, 2.0, 400.0)));
    }),
    Case::new("slow-flush", "flushes wait behind a stream of large writes", |s| {
        let stream = DiskRate { write_request_kb: 380.0, ..flushing(22.0, 25.0, 69.0) };
        s.ticks(8, |t| set_device(t, stream.clone()));
    }),
    Case::new("slow-flush", "writes queue by themselves", |s| {
        s.ticks(8, |t| set_device(t, flushing(3.5, 250.0, 400.0)));
    }),
    Case::new("device-saturated", "flushes set the pace", |s| {
        s.ticks(8, |t| set_device(t, flushing(3.5, 250.0, 7.0)));
    }),
    Case::new("device-saturated", "discards set the pace", |s| {
        s.ticks(8, |t| set_device(t, discarding(12.0, 300.0, (20.0, 80.0))));
    }),
    Case::new("slow-device", "flushes set the pace", |s| {
        s.ticks(8, |t| set_device(t, DiskRate { queue_size: 1.5, ..flushing(3.5, 250.0, 7.0) }));
    }),
    Case::new("slow-discards", "fast discards", |s| {
        s.ticks(8, |t| set_device(t, discarding(12.0, 1.0, (20.0, 0.8))));
    }),
    Case::new("slow-tail", "too few slow requests", |s| {
        reads_for(s, 29, 0.5, &[(200, 0.5)]);
        reads_for(s, 1, 0.5, &[(200, 0.5), (2, 400.0)]);
    }),
    Case::new("slow-tail", "slow behind a queue", |s| {
        reads_for(s, 30, 16.0, &[(198, 0.5), (2, 400.0)]);
    }),
    Case::new("slow-tail", "most are slow", |s| {
        reads_for(s, 30, 0.5, &[(20, 0.5), (20, 400.0)]);
    }),
    Case::new("slow-tail", "a few seconds", |s| {
        reads_for(s, 5, 0.5, &[(198, 0.5), (2, 400.0)]);
    })
    .needs_more_data(),
    Case::new("slow-tail", "no tracing", |s| {
        s.ticks(30, |t| t.tracing = Reading::Absent("not loaded".into()));
    })
    .unavailable(),
    Case::new("journal-full", "a wait for the device", |s| wait_beside_journal(s, "submit_bio_wait")),
    Case::new("journal-full", "a sync on ext4", |s| wait_beside_journal(s, "jbd2_log_wait_commit")),
    Case::new("journal-full", "a sync on XFS", |s| wait_beside_journal(s, "xlog_wait_on_iclog")),
    Case::new("journal-full", "an idle machine is judged", |s| {
        s.idle_ticks(20);
    })
    .result(|result| result.is_ok()),
    Case::new("journal-full", "a short wait", |s| {
        s.add_hung_task(930, "tar", "wait_transaction_locked", 2);
        s.scan(vec![task_counters(930, "tar")], false);
        s.idle_ticks(10);
    }),
];

//! A database's write test. Per transaction, n random records are read from a mapped store,
//! appended to a log, the log is synced, and the records are written back to their places in order. The store
//! itself is never synced: the kernel writes it back, as the dirty thresholds demand.

use super::buffered::{
    BUFFERED, RateLimiter, check_one_call, end_of_time, one_call_plan, record_call, record_fdatasync,
};
use super::workload::{PlannedWrites, Workload, higher_is_better};
use crate::bench::engine::monotonic_ns;
use crate::bench::measure::recorder::{OpKind, OpRecorder};
use crate::bench::plan::{BenchPlan, CacheLayout, PlanError, TxLogParams, require};
use crate::bench::report::Measurement;
use crate::bench::report::interpretation;
use crate::bench::rng::Rng;
use crate::bench::session::{BenchSession, MIB, RunError};
use crate::bench::syscalls::MappedMemory;
use crate::bench::target::{BenchFile, TargetDirectory};
use crate::units::format_bytes_long;
use std::os::unix::fs::FileExt;

pub(super) const TXLOG: Workload = Workload {
    name: "txlog",
    brief: "database log",
    about: "a database's write test: mapped store, synced log, records written back (dirty thresholds matter)",
    params: "size block transactions min max layout time mmap readrecords writelog synclog writestore idle stall-limit \
             seed",
    plan: || BenchPlan { block: 33, ..one_call_plan() },
    check,
    footprint: |plan| plan.size.saturating_add(max_log_bytes(plan)),
    planned_writes: |plan| {
        let times = u64::from(plan.txlog.write_log) + u64::from(plan.txlog.write_store);
        PlannedWrites { guaranteed: plan.size, additional: Some(max_log_bytes(plan).saturating_mul(times)) }
    },
    describe,
    metric: higher_is_better("tx/s", "", |r| r.measurements.first()?.metric("tx/s")),
    conclude: interpretation::interpret_txlog,
    run,
    ..BUFFERED
};

/// Size after which the log of a run limited by time starts again, as databases rotate theirs.
const LOG_ROTATE_BYTES: u64 = 256 << 20;

/// The store, through its mapping or by system calls. The mapping stays in both cases, as it pins the pages.
struct RecordStore<'f> {
    map: MappedMemory,
    file: &'f BenchFile,
    is_mapped: bool,
}

impl RecordStore<'_> {
    fn read(&mut self, at: u64, record: &mut [u8]) -> Result<(), RunError> {
        if self.is_mapped {
            record.copy_from_slice(self.map.slice(at as usize, record.len()));
            return Ok(());
        }
        let read = self.file.buffered().read_at(record, at);
        read.map(drop).map_err(|e| RunError::from_errno("reading the store", e))
    }

    fn write(&mut self, at: u64, record: &[u8]) -> Result<(), RunError> {
        if self.is_mapped {
            self.map.slice(at as usize, record.len()).copy_from_slice(record);
            return Ok(());
        }
        let written = self.file.buffered().write_at(record, at);
        written.map(drop).map_err(|e| RunError::from_errno("writing the store", e))
    }
}

#[derive(Default)]
struct TransactionTotals {
    transactions: u64,
    records: u64,
    syncs: u64,
    bytes_read: u64,
    bytes_written: u64,
}

fn run_transactions(
    session: &BenchSession,
    recorder: &OpRecorder,
    store: &mut RecordStore<'_>,
    log: &BenchFile,
    tally: &mut TransactionTotals,
) -> Result<(), RunError> {
    let (plan, p) = (&session.plan, session.plan.txlog.clone());
    let size = plan.block as usize;
    let count = plan.size / plan.block as u64;
    let mut rng = Rng::new(plan.seed, 0);
    let mut positions: Vec<u64> = Vec::with_capacity(p.max_records as usize);
    let mut records = vec![0u8; p.max_records as usize * size];
    rng.fill_bytes(&mut records);
    let mut log_at = 0;
    let end = end_of_time(plan);
    while (p.transactions == 0 || tally.transactions < p.transactions) && monotonic_ns() < end {
        session.check_cancelled()?;
        let n = p.min_records + rng.below(p.max_records - p.min_records);
        positions.clear();
        positions.extend((0..n).map(|_| rng.below(count) * size as u64));
        let records = &mut records[..n as usize * size];
        if p.read {
            for (at, record) in positions.iter().zip(records.chunks_exact_mut(size)) {
                store.read(*at, record)?;
            }
            tally.bytes_read += records.len() as u64;
        }
        if p.write_log {
            if p.transactions == 0 && log_at + records.len() as u64 > LOG_ROTATE_BYTES {
                log.buffered().set_len(0).map_err(|e| RunError::from_errno("restarting the log", e))?;
                log_at = 0;
            }
            let start = monotonic_ns();
            let call = log.buffered().write_all_at(records, log_at).map(|()| records.len());
            log_at += record_call(recorder, OpKind::Write, start, "writing", call)?.0;
            tally.bytes_written += records.len() as u64;
        }
        if p.sync {
            record_fdatasync(recorder, log, "fdatasync of the log")?;
            tally.syncs += 1;
        }
        if p.write_store {
            positions.sort_unstable();
            for (at, record) in positions.iter().zip(records.chunks_exact(size)) {
                store.write(*at, record)?;
            }
            tally.bytes_written += records.len() as u64;
        }
        tally.transactions += 1;
        tally.records += n;
        recorder.record_completion_time(monotonic_ns());
    }
    Ok(())
}

fn map_store(session: &BenchSession, file: &BenchFile) -> Result<MappedMemory, RunError> {
    MappedMemory::of_file(file.buffered(), session.plan.size as usize)
        .map_err(|e| RunError::from_errno("mapping the store", e))
}

/// The store in the page cache, in folios of at most `piece` bytes, clean and pinned: under memory pressure,
/// records would otherwise be read from the device.
fn create_pinned_store(
    session: &BenchSession,
    place: &TargetDirectory,
    piece: u32,
) -> Result<(BenchFile, MappedMemory), RunError> {
    session.begin_preparation("writing the store's data");
    let (plan, file) = (&session.plan, place.create(session.plan.size)?);
    let map = map_store(session, &file)?;
    // Faults read single pages: read-ahead creates large folios, even for blocks that are not written yet.
    map.advise(rustix::mm::Advice::Random).map_err(|e| RunError::from_errno("mapping the store", e))?;
    let mut pace = RateLimiter::new(plan, MIB);
    let mut data = vec![0; MIB as usize];
    let mut rng = Rng::new(plan.seed, u64::MAX);
    let (mut at, mut refused) = (0u64, None);
    while at < plan.size {
        session.check_cancelled()?;
        pace.wait_for_turn();
        rng.fill_bytes(&mut data);
        let now = &data[..(plan.size - at).min(MIB.into()) as usize];
        for (n, chunk) in (0u64..).zip(now.chunks(piece as usize)) {
            let written = file.buffered().write_all_at(chunk, at + n * u64::from(piece));
            written.map_err(|e| RunError::from_errno("writing", e))?;
        }
        // Pin it at once, while it is still cached.
        if let (None, Err(e)) = (&refused, map.lock_range(at as usize, now.len())) {
            refused = Some(e);
        }
        at += now.len() as u64;
        if at.is_multiple_of(32 << 20) || at == plan.size {
            // In steps: a single sync on a slow disk may exceed the stall limit.
            file.buffered().sync_data().map_err(|e| RunError::from_errno("writing the store back", e))?;
        }
        session.progress.heartbeat(monotonic_ns());
    }
    if let Some(e) = refused {
        session.progress.add_note(format!(
            "the store could not be pinned in memory ({}): pages of it may leave the cache and be read from the device. \
             Run as root to have it pinned",
            crate::model::reading::describe_io_error(&e)
        ));
    }
    Ok((file, map))
}

/// The metrics of the original program, under its names.
fn add_totals(part: &mut Measurement, t: &TransactionTotals, ns: u64) {
    let per_s = |n: u64| n as f64 / (ns as f64 / 1e9).max(1e-9);
    for (name, value, unit) in [
        ("tx_count", t.transactions as f64, ""),
        ("records", t.records as f64, ""),
        ("fdatasyncs", t.syncs as f64, ""),
        ("read", t.bytes_read as f64 / 1_048_576.0, "MB"),
        ("wrote", t.bytes_written as f64 / 1_048_576.0, "MB"),
        ("tx/s", per_s(t.transactions), ""),
        ("records/s", per_s(t.records), ""),
        ("fdatasyncs/s", per_s(t.syncs), ""),
        ("read rate", per_s(t.bytes_read) / 1024.0, "kB/s"),
        ("write rate", per_s(t.bytes_written) / 1024.0, "kB/s"),
    ] {
        part.add_metric(name, value, unit);
    }
}

fn max_log_bytes(plan: &BenchPlan) -> u64 {
    let TxLogParams { transactions, max_records, .. } = plan.txlog;
    if transactions == 0 {
        return LOG_ROTATE_BYTES;
    }
    transactions.saturating_mul(max_records).saturating_mul(plan.block.into())
}

fn check(plan: &BenchPlan) -> Result<(), PlanError> {
    check_one_call(plan)?;
    let most_at_once = plan.txlog.max_records * u64::from(plan.block);
    require(most_at_once <= 64 << 20, "txlog: max records x record size at most 64 MiB")?;
    require(max_log_bytes(plan) <= 1 << 44, "txlog: transactions x max records x record size at most 16 TiB of log")
}

fn describe(plan: &BenchPlan) -> Vec<String> {
    let t = &plan.txlog;
    let stages = [
        (t.read, "reading the records"),
        (t.write_log, "writing the log"),
        (t.sync, "syncing the log"),
        (t.write_store, "writing the records back"),
    ];
    let left_out: Vec<_> = stages.iter().filter(|(on, _)| !on).map(|(_, what)| *what).collect();
    let layout = match t.layout {
        CacheLayout::Small => "in 4 KiB writes and pinned in the page cache (folios of 4 KiB)",
        CacheLayout::Large => {
            "in 1 MiB writes and pinned in the page cache (large folios, where the file system has them: a record then \
             makes up to 1 MiB dirty)"
        }
        CacheLayout::Cold => "in 1 MiB writes and dropped from the page cache (records are read from the device)",
    };
    let work = match (t.transactions, plan.time_ms) {
        (0, ms) => format!("transactions for {} s", ms as f64 / 1e3),
        (n, 0) => format!("{n} transactions"),
        (n, ms) => format!("{n} transactions, at most {} s,", ms as f64 / 1e3),
    };
    let (least, most, block) = (t.min_records, t.max_records, plan.block);
    let way = if t.mmap { "through a memory mapping" } else { "by pread and pwrite" };
    let [store, log] = [plan.size, max_log_bytes(plan)].map(format_bytes_long);
    let mut lines = vec![
        format!("a nameless store of {store}, filled with random data {layout}; a log of at most {log}"),
        format!("{work} of {least} to {most} records of {block} bytes; the store {way}"),
    ];
    if !left_out.is_empty() {
        lines.push(format!("without {}", left_out.join(", ")));
    }
    lines
}

fn run(session: &mut BenchSession) -> Result<(), RunError> {
    let place = session.open_target()?;
    place.check_space((TXLOG.footprint)(&session.plan))?;
    let (file, map) = match session.plan.txlog.layout {
        CacheLayout::Small => create_pinned_store(session, &place, 4096)?,
        CacheLayout::Large => create_pinned_store(session, &place, MIB)?,
        CacheLayout::Cold => {
            let file = session.lay_out_file(&place, session.plan.size)?;
            let map = map_store(session, &file)?;
            (file, map)
        }
    };
    let log = place.create(0)?;
    let mapped = session.plan.txlog.mmap;
    // Dropped before `file`, which is truncated then and must not be mapped any more.
    let mut store = RecordStore { map, file: &file, is_mapped: mapped };
    let engine = if mapped { "mmap, pwrite, fdatasync" } else { "pread, pwrite, fdatasync" };
    let part = session.new_measurement("transactions", engine);
    let goal = (session.plan.time_ms * 1_000_000, 0);
    session.measure_custom(part, goal, |session, recorder, part| {
        let mut tally = TransactionTotals::default();
        let begin = monotonic_ns();
        let ended = run_transactions(session, recorder, &mut store, &log, &mut tally);
        add_totals(part, &tally, monotonic_ns() - begin);
        ended
    })?;
    session.finish_measuring();
    Ok(())
}

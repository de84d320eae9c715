//! Case 15: a database's write test. Per transaction: n random records are read from a mapped store,
//! appended to a log, the log is synced, the records are written back to their places, in order. The store
//! itself is never synced: the kernel's writeback has to, which is what the dirty thresholds are about.

use super::append::Pace;
use super::{Workload, Written};
use crate::bench::engine::monotonic_ns;
use crate::bench::measure::recorder::{Kind, Recorder};
use crate::bench::plan::{Layout, Plan, TxLog};
use crate::bench::report::Part;
use crate::bench::rng::Rng;
use crate::bench::session::{MIB, Session, Stop};
use crate::bench::sys::Mapping;
use crate::bench::target::{File, Place};
use crate::units::format_bytes_long;

/// See the module.
pub struct TxLogTest;

/// With time for a limit the log has none: it begins anew after so many bytes, as databases rotate theirs.
const LOG_TURN: u64 = 256 << 20;

/// The store, through a mapping or by system calls.
enum Store<'f> {
    Mapped(Mapping),
    /// The mapping only pins its pages.
    File(&'f File, #[expect(dead_code, reason = "held for what dropping it does")] Mapping),
}

impl Store<'_> {
    fn read(&mut self, at: u64, record: &mut [u8]) -> Result<(), Stop> {
        match self {
            Store::Mapped(map) => {
                let at = at as usize;
                record.copy_from_slice(&map.bytes()[at..at + record.len()]);
                Ok(())
            }
            Store::File(file, _) => rustix::io::pread(file.buffered(), record, at)
                .map(drop)
                .map_err(|e| Stop::from_errno("reading the store", e)),
        }
    }

    fn write(&mut self, at: u64, record: &[u8]) -> Result<(), Stop> {
        match self {
            Store::Mapped(map) => {
                let at = at as usize;
                map.bytes()[at..at + record.len()].copy_from_slice(record);
                Ok(())
            }
            Store::File(file, _) => rustix::io::pwrite(file.buffered(), record, at)
                .map(drop)
                .map_err(|e| Stop::from_errno("writing the store", e)),
        }
    }
}

/// What was done.
#[derive(Default)]
struct Tally {
    transactions: u64,
    records: u64,
    syncs: u64,
    read: u64,
    written: u64,
}

fn work(
    session: &Session,
    recorder: &Recorder,
    store: &mut Store<'_>,
    log: &File,
    tally: &mut Tally,
) -> Result<(), Stop> {
    let (plan, p) = (&session.plan, session.plan.txlog.clone());
    let size = plan.block as usize;
    let count = plan.size / plan.block as u64;
    let mut rng = Rng::new(plan.seed, 0);
    let mut positions: Vec<u64> = Vec::with_capacity(p.max_records as usize);
    let mut records = vec![0u8; p.max_records as usize * size];
    rng.fill(&mut records);
    let mut log_at = 0;
    let end = if plan.time_ms == 0 { u64::MAX } else { monotonic_ns() + plan.time_ms * 1_000_000 };
    while (p.transactions == 0 || tally.transactions < p.transactions) && monotonic_ns() < end {
        session.check()?;
        let n = p.min_records + rng.below(p.max_records - p.min_records);
        positions.clear();
        positions.extend((0..n).map(|_| rng.below(count) * size as u64));
        let records = &mut records[..n as usize * size];
        if p.read {
            for (at, record) in positions.iter().zip(records.chunks_exact_mut(size)) {
                store.read(*at, record)?;
            }
            tally.read += records.len() as u64;
        }
        if p.write_log {
            if p.transactions == 0 && log_at + records.len() as u64 > LOG_TURN {
                rustix::fs::ftruncate(log.buffered(), 0)
                    .map_err(|e| Stop::from_errno("beginning the log anew", e))?;
                log_at = 0;
            }
            let start = monotonic_ns();
            write_all(log, records, log_at)?;
            log_at += records.len() as u64;
            recorder.add(Kind::Write, records.len() as u64, start, start, monotonic_ns());
            tally.written += records.len() as u64;
        }
        if p.sync {
            let start = monotonic_ns();
            rustix::fs::fdatasync(log.buffered()).map_err(|e| Stop::from_errno("fdatasync of the log", e))?;
            recorder.add(Kind::Sync, 0, start, start, monotonic_ns());
            tally.syncs += 1;
        }
        if p.write_store {
            positions.sort_unstable();
            for (at, record) in positions.iter().zip(records.chunks_exact(size)) {
                store.write(*at, record)?;
            }
            tally.written += records.len() as u64;
        }
        tally.transactions += 1;
        tally.records += n;
        recorder.seen(monotonic_ns());
    }
    Ok(())
}

fn mapping(session: &Session, file: &File) -> Result<Mapping, Stop> {
    Mapping::new(file.buffered(), session.plan.size as usize)
        .map_err(|e| Stop::from_errno("mapping the store", e))
}

/// The store in the page cache, in folios of at most `piece` bytes, clean, and kept there: a machine under pressure,
/// or one that pages out whatever is not hot, would otherwise have records read from the device.
fn pinned(session: &Session, place: &Place, piece: u32) -> Result<(File, Mapping), Stop> {
    session.prepare("writing the store's data");
    let (plan, file) = (&session.plan, place.create(session.plan.size)?);
    let map = mapping(session, &file)?;
    map.without_read_ahead().map_err(|e| Stop::from_errno("mapping the store", e))?;
    let mut pace = Pace::new(&Plan { block: MIB, ..plan.clone() }, monotonic_ns());
    let mut data = vec![0; MIB as usize];
    let mut rng = Rng::new(plan.seed, u64::MAX);
    let (mut at, mut refused) = (0, None);
    while at < plan.size {
        session.check()?;
        pace.wait();
        rng.fill(&mut data);
        let now = &data[..(plan.size - at).min(MIB.into()) as usize];
        for (n, chunk) in (0u64..).zip(now.chunks(piece as usize)) {
            write_all(&file, chunk, at + n * u64::from(piece))?;
        }
        // At once, while it is surely there.
        if let (None, Err(e)) = (&refused, map.lock(at as usize, now.len())) {
            refused = Some(e);
        }
        at += now.len() as u64;
        if at.is_multiple_of(32 << 20) || at == plan.size {
            // Bit by bit: a slow disk would need longer for all of it than a run may be silent.
            rustix::fs::fdatasync(file.buffered())
                .map_err(|e| Stop::from_errno("writing the store back", e))?;
        }
        session.watch.pulse(monotonic_ns());
    }
    if let Some(e) = refused {
        session.watch.note(format!(
            "the store could not be pinned in memory ({}): pages of it may leave the cache and be read from the device. \
             Run as root to have it pinned",
            crate::model::reading::describe_io_error(&e)
        ));
    }
    Ok((file, map))
}

fn write_all(file: &File, mut data: &[u8], mut at: u64) -> Result<(), Stop> {
    while !data.is_empty() {
        let n = rustix::io::pwrite(file.buffered(), data, at).map_err(|e| Stop::from_errno("writing", e))?;
        at += n as u64;
        data = &data[n..];
    }
    Ok(())
}

/// The output figures of the original, under its names.
fn say(part: &mut Part, t: &Tally, ns: u64) {
    let s = (ns as f64 / 1e9).max(1e-9);
    part.say("tx_count", t.transactions as f64, "");
    part.say("records", t.records as f64, "");
    part.say("fdatasyncs", t.syncs as f64, "");
    part.say("read", t.read as f64 / 1_048_576.0, "MB");
    part.say("wrote", t.written as f64 / 1_048_576.0, "MB");
    part.say("tx/s", t.transactions as f64 / s, "");
    part.say("records/s", t.records as f64 / s, "");
    part.say("fdatasyncs/s", t.syncs as f64 / s, "");
    part.say("read rate", t.read as f64 / 1024.0 / s, "kB/s");
    part.say("write rate", t.written as f64 / 1024.0 / s, "kB/s");
}

/// Most bytes the log can come to.
fn log_bytes(plan: &Plan) -> u64 {
    let TxLog { transactions, max_records, .. } = plan.txlog;
    if transactions == 0 {
        return LOG_TURN;
    }
    transactions.saturating_mul(max_records).saturating_mul(plan.block.into())
}

impl Workload for TxLogTest {
    fn name(&self) -> &'static str {
        "txlog"
    }

    fn about(&self) -> &'static str {
        "a database's write test: mapped store, synced log, records written back (dirty thresholds matter)"
    }

    fn defaults(&self) -> Plan {
        Plan {
            profile: "txlog".into(),
            block: 33,
            depth: 1,
            direct: false,
            ramp_ms: 0,
            time_ms: 0,
            ..Plan::default()
        }
    }

    fn takes(&self) -> &'static [&'static str] {
        &[
            "size",
            "block",
            "transactions",
            "min",
            "max",
            "layout",
            "time",
            "mmap",
            "readrecords",
            "writelog",
            "synclog",
            "writestore",
            "idle",
            "stall-limit",
            "seed",
        ]
    }

    fn writes(&self, plan: &Plan) -> Written {
        let t = &plan.txlog;
        let times = u64::from(t.write_log) + u64::from(t.write_store);
        Written { certain: plan.size, further: Some(log_bytes(plan).saturating_mul(times)) }
    }

    fn check(&self, plan: &Plan) -> Result<(), String> {
        super::append::buffered_and_single(self.name(), plan)?;
        if plan.txlog.max_records * u64::from(plan.block) > 64 << 20 {
            return Err("txlog: max records x record size at most 64 MiB".into());
        }
        if log_bytes(plan) > 1 << 44 {
            return Err("txlog: transactions x max records x record size at most 16 TiB of log".into());
        }
        Ok(())
    }

    fn footprint(&self, plan: &Plan) -> u64 {
        plan.size.saturating_add(log_bytes(plan))
    }

    fn describe(&self, plan: &Plan) -> Vec<String> {
        let t = &plan.txlog;
        let off = |on: bool, what: &'static str| (!on).then_some(what);
        let left_out: Vec<_> = [
            off(t.read, "reading the records"),
            off(t.write_log, "writing the log"),
            off(t.sync, "syncing the log"),
            off(t.write_store, "writing the records back"),
        ]
        .into_iter()
        .flatten()
        .collect();
        let mut lines = vec![
            format!(
                "a nameless store of {}, filled with random data {}; a log of at most {}",
                format_bytes_long(plan.size),
                match t.layout {
                    Layout::Small => "in 4 KiB writes and pinned in the page cache (folios of 4 KiB)",
                    Layout::Large => {
                        "in 1 MiB writes and pinned in the page cache (large folios, where the file system has them: a \
                         record then makes up to 1 MiB dirty)"
                    }
                    Layout::Cold =>
                        "in 1 MiB writes and dropped from the page cache (records are read from the device)",
                },
                format_bytes_long(log_bytes(plan))
            ),
            format!(
                "{} of {} to {} records of {} bytes; the store {}",
                match (t.transactions, plan.time_ms) {
                    (0, ms) => format!("transactions for {} s", ms as f64 / 1e3),
                    (n, 0) => format!("{n} transactions"),
                    (n, ms) => format!("{n} transactions, at most {} s,", ms as f64 / 1e3),
                },
                t.min_records,
                t.max_records,
                plan.block,
                if t.mmap { "through a memory mapping" } else { "by pread and pwrite" }
            ),
        ];
        if !left_out.is_empty() {
            lines.push(format!("without {}", left_out.join(", ")));
        }
        lines
    }

    fn run(&self, session: &mut Session) -> Result<(), Stop> {
        let place = session.place()?;
        place.room_for(self.footprint(&session.plan))?;
        let (file, map) = match session.plan.txlog.layout {
            Layout::Small => pinned(session, &place, 4096)?,
            Layout::Large => pinned(session, &place, MIB)?,
            Layout::Cold => {
                let file = session.laid_out(&place, session.plan.size)?;
                let map = mapping(session, &file)?;
                (file, map)
            }
        };
        let log = place.create(0)?;
        let mapped = session.plan.txlog.mmap;
        // The mapping stays either way: it pins the pages.
        let mut store = if mapped { Store::Mapped(map) } else { Store::File(&file, map) };
        let part = Part {
            label: "transactions".into(),
            engine: if mapped { "mmap, pwrite, fdatasync" } else { "pread, pwrite, fdatasync" }.into(),
            block: session.plan.block,
            ..Part::default()
        };
        let goal = (session.plan.time_ms * 1_000_000, 0);
        session.measure_with(part, goal, |session, recorder, part| {
            let mut tally = Tally::default();
            let begin = monotonic_ns();
            let ended = work(session, recorder, &mut store, &log, &mut tally);
            say(part, &tally, monotonic_ns() - begin);
            ended
        })?;
        session.measured();
        // The file is emptied when it goes: nothing may be mapped of it then.
        drop(store);
        Ok(())
    }
}

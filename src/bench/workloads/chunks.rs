//! Case 19: a big file written in 6 MiB pieces, synced after each piece or once at the end, and what that
//! does to somebody else's small syncs on the same file system.

use super::{Workload, Written};
use crate::bench::engine::monotonic_ns;
use crate::bench::measure::latency::Latency;
use crate::bench::measure::recorder::{Kind, Recorder};
use crate::bench::plan::Plan;
use crate::bench::report::Part;
use crate::bench::rng::Rng;
use crate::bench::session::{Session, Stop};
use crate::bench::target::{File, Place};
use crate::units::format_bytes_long;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// See the module.
pub struct Chunks;

/// The bystander's records, and the pause between two.
const RECORD: usize = 512;
const PAUSE: Duration = Duration::from_millis(10);
/// The bystander alone, for comparison.
const CALM_NS: u64 = 2_000_000_000;

/// Appends and syncs small records until `done`; the syncs' times come out.
fn bystander(file: &File, done: &AtomicBool) -> Result<Latency, Stop> {
    let recorder = Recorder::new();
    recorder.begin(monotonic_ns());
    let mut at = 0;
    while !done.load(Ordering::Relaxed) {
        rustix::io::pwrite(file.buffered(), &[7; RECORD], at)
            .map_err(|e| Stop::from_errno("the bystander's write", e))?;
        let start = monotonic_ns();
        rustix::fs::fdatasync(file.buffered())
            .map_err(|e| Stop::from_errno("the bystander's fdatasync", e))?;
        recorder.add(Kind::Sync, 0, start, start, monotonic_ns());
        at = (at + RECORD as u64) % (1 << 20);
        std::thread::sleep(PAUSE);
    }
    Ok(recorder.sync().lat)
}

/// Runs `work` beside a bystander whose sync times come out too.
fn beside<T: Send>(
    place: &Place,
    work: impl FnOnce() -> Result<T, Stop>,
) -> Result<(Latency, Result<T, Stop>), Stop> {
    let file = place.create(1 << 20)?;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| bystander(&file, &done));
        let worked = work();
        done.store(true, Ordering::Relaxed);
        let syncs = other.join().unwrap_or_else(|_| Err(Stop::Failed("the bystander broke off".into())))?;
        Ok((syncs, worked))
    })
}

fn say(part: &mut Part, syncs: &Latency) {
    let ms = |ns: u64| ns as f64 / 1e6;
    part.say("bystander: syncs", syncs.n as f64, "");
    part.say("bystander: median sync", ms(syncs.percentile(50.0).unwrap_or(0)), "ms");
    // Of fewer syncs a 99th percentile is the longest one under another name.
    if let Some(p99) = syncs.percentile(99.0).filter(|_| syncs.n >= 100) {
        part.say("bystander: p99 sync", ms(p99), "ms");
    }
    part.say("bystander: longest sync", ms(syncs.max_ns), "ms");
}

/// Writes the file; the time of a last sync comes out in ns.
fn write(session: &Session, recorder: &Recorder, file: &File, each: bool) -> Result<u64, Stop> {
    let plan = &session.plan;
    let mut rng = Rng::new(plan.seed, 0);
    let mut piece = vec![0; plan.block as usize];
    rng.fill(&mut piece);
    let mut pace = super::append::Pace::new(plan, monotonic_ns());
    let mut at = 0;
    while at < plan.size {
        session.check()?;
        let start = pace.wait();
        piece[..8].copy_from_slice(&rng.bits().to_le_bytes());
        let end = at + u64::from(plan.block).min(plan.size - at);
        while at < end {
            let rest = &piece[..(end - at) as usize];
            at += rustix::io::pwrite(file.buffered(), rest, at).map_err(|e| Stop::from_errno("write", e))?
                as u64;
        }
        let mut now = monotonic_ns();
        recorder.add(Kind::Write, u64::from(plan.block), start, start, now);
        if each {
            let between = now;
            rustix::fs::fsync(file.buffered()).map_err(|e| Stop::from_errno("fsync", e))?;
            now = monotonic_ns();
            recorder.add(Kind::Sync, 0, between, between, now);
        }
        recorder.seen(now);
    }
    let start = monotonic_ns();
    rustix::fs::fsync(file.buffered()).map_err(|e| Stop::from_errno("fsync", e))?;
    let now = monotonic_ns();
    recorder.add(Kind::Sync, 0, start, start, now);
    recorder.seen(now);
    Ok(now - start)
}

impl Workload for Chunks {
    fn name(&self) -> &'static str {
        "chunks"
    }

    fn about(&self) -> &'static str {
        "a big file in 6 MiB pieces: sync each or once at the end, and how long others' syncs stall meanwhile"
    }

    fn defaults(&self) -> Plan {
        Plan {
            profile: "chunks".into(),
            size: 1 << 30,
            block: 6 << 20,
            depth: 1,
            read_pct: 0,
            direct: false,
            ramp_ms: 0,
            time_ms: 0,
            ..Plan::default()
        }
    }

    fn takes(&self) -> &'static [&'static str] {
        &["size", "block", "rate", "rate-bytes", "idle", "stall-limit", "seed"]
    }

    fn writes(&self, plan: &Plan) -> Written {
        // The bystander's few bytes are as many as the time allows, and nothing against the pieces.
        Written { certain: plan.size.saturating_mul(2), further: Some(1 << 20) }
    }

    fn check(&self, plan: &Plan) -> Result<(), String> {
        super::append::buffered_and_single(self.name(), plan)
    }

    fn footprint(&self, plan: &Plan) -> u64 {
        plan.size + (1 << 20)
    }

    fn describe(&self, plan: &Plan) -> Vec<String> {
        let (size, piece) = (format_bytes_long(plan.size), format_bytes_long(plan.block.into()));
        vec![
            format!("two nameless files, one after the other, of {size} in pieces of {piece}"),
            "the first synced (fsync) after every piece, the second once at its end".into(),
            format!("meanwhile a bystander appends {RECORD} bytes and syncs them, every 10 ms"),
        ]
    }

    fn run(&self, session: &mut Session) -> Result<(), Stop> {
        let place = session.place()?;
        place.room_for(self.footprint(&session.plan))?;
        let part = Part { label: "bystander alone".into(), ..Part::default() };
        session.measure_with(part, (CALM_NS, 0), |session, recorder, part| {
            let (syncs, calm) = beside(&place, || {
                let end = monotonic_ns() + CALM_NS;
                while monotonic_ns() < end {
                    session.check()?;
                    std::thread::sleep(Duration::from_millis(20));
                    recorder.alive(monotonic_ns());
                }
                Ok(())
            })?;
            say(part, &syncs);
            calm
        })?;
        for (each, label) in [(true, "sync after each piece"), (false, "sync once at the end")] {
            session.prepare("making the next file");
            let file = place.create(0)?;
            let part = Part {
                label: label.into(),
                engine: "pwrite, fsync".into(),
                block: session.plan.block,
                ..Part::default()
            };
            session.measure_with(part, (0, session.plan.size), |session, recorder, part| {
                let (syncs, written) = beside(&place, || write(session, recorder, &file, each))?;
                let last = written?;
                part.say("longest piece", recorder.direction(Kind::Write).lat.max_ns as f64 / 1e6, "ms");
                part.say("final sync", last as f64 / 1e6, "ms");
                say(part, &syncs);
                Ok(())
            })?;
        }
        Ok(())
    }
}

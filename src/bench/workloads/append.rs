//! Case 10: an append-only log under its three policies: sync always, every second in a second thread,
//! never. A write that waits while a sync is running is the stall to look for.

use super::{Workload, Written};
use crate::bench::engine::monotonic_ns;
use crate::bench::measure::recorder::{Kind, Recorder};
use crate::bench::plan::Plan;
use crate::bench::report::Part;
use crate::bench::rng::Rng;
use crate::bench::session::{Session, Stop};
use crate::bench::target::File;
use crate::units::format_bytes_long;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// See the module.
pub struct Append;

/// Keeps a rate cap by sleeping.
pub struct Pace {
    gap_ns: u64,
    due: u64,
}

impl Pace {
    /// The plan's cap, from `now` on.
    pub fn new(plan: &Plan, now: u64) -> Self {
        Self { gap_ns: plan.gap_ns(plan.block), due: now }
    }

    /// Waits until the next operation may begin; returns the time then.
    pub fn wait(&mut self) -> u64 {
        let mut now = monotonic_ns();
        if self.gap_ns > 0 {
            if now < self.due {
                std::thread::sleep(Duration::from_nanos(self.due - now));
                now = monotonic_ns();
            }
            self.due += self.gap_ns;
        }
        now
    }
}

/// For workloads that make one system call after the other through the page cache.
pub fn buffered_and_single(name: &str, plan: &Plan) -> Result<(), String> {
    if plan.direct {
        return Err(format!("{name} works through the page cache: leave out --direct"));
    }
    if plan.depth != 1 || plan.jobs != 1 {
        return Err(format!("{name} makes one call at a time: leave out --depth and --jobs"));
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq)]
enum Policy {
    Always,
    EverySecond,
    Never,
}

const POLICIES: [(Policy, &str); 3] = [
    (Policy::Always, "sync always"),
    (Policy::EverySecond, "sync every second, in a second thread"),
    (Policy::Never, "sync never"),
];

/// Appends until time or size are used up. Syncs of a second thread come out in `second`.
fn work(
    session: &Session,
    recorder: &Recorder,
    file: &File,
    policy: Policy,
    done: &AtomicBool,
) -> Result<(), Stop> {
    let plan = &session.plan;
    let fd = file.buffered();
    let mut record = vec![0; plan.block as usize];
    Rng::new(plan.seed, 0).fill(&mut record);
    let begin = monotonic_ns();
    let end = if plan.time_ms == 0 { u64::MAX } else { begin + plan.time_ms * 1_000_000 };
    let mut pace = Pace::new(plan, begin);
    let mut at = 0u64;
    while !done.load(Ordering::Relaxed) {
        session.check()?;
        let start = pace.wait();
        let used_up = plan.io_bytes > 0 && at >= plan.io_bytes;
        if start >= end || used_up || at + u64::from(plan.block) > plan.size {
            return Ok(());
        }
        let n = rustix::io::pwrite(fd, &record, at).map_err(|e| Stop::from_errno("write", e))?;
        at += n as u64;
        let mut now = monotonic_ns();
        recorder.add(Kind::Write, n as u64, start, start, now);
        if policy == Policy::Always {
            let between = now;
            rustix::fs::fdatasync(fd).map_err(|e| Stop::from_errno("fdatasync", e))?;
            now = monotonic_ns();
            recorder.add(Kind::Sync, 0, between, between, now);
        }
        recorder.seen(now);
    }
    Ok(())
}

/// Syncs once a second until `done`, looking up often enough to end soon.
fn sync_every_second(
    session: &Session,
    file: &File,
    done: &AtomicBool,
    recorder: &Recorder,
) -> Result<(), Stop> {
    let mut due = monotonic_ns() + 1_000_000_000;
    while !done.load(Ordering::Relaxed) && session.check().is_ok() {
        let now = monotonic_ns();
        if now < due {
            std::thread::sleep(Duration::from_nanos((due - now).min(50_000_000)));
            continue;
        }
        rustix::fs::fdatasync(file.buffered()).map_err(|e| Stop::from_errno("fdatasync", e))?;
        recorder.add(Kind::Sync, 0, now, now, monotonic_ns());
        due = now + 1_000_000_000;
    }
    Ok(())
}

impl Workload for Append {
    fn name(&self) -> &'static str {
        "append"
    }

    fn about(&self) -> &'static str {
        "an append-only log: sync always, every second in a second thread, never, side by side"
    }

    fn defaults(&self) -> Plan {
        Plan {
            profile: "append".into(),
            size: 2 << 30,
            block: 512,
            depth: 1,
            read_pct: 0,
            direct: false,
            ramp_ms: 0,
            time_ms: 10_000,
            // A log that is written as fast as memory allows is no log: 20,000 records a second is busy.
            rate_iops: 20_000,
            ..Plan::default()
        }
    }

    fn takes(&self) -> &'static [&'static str] {
        &["size", "block", "time", "rate", "rate-bytes", "io-size", "idle", "stall-limit", "seed"]
    }

    fn writes(&self, plan: &Plan) -> Written {
        let times = POLICIES.len() as u64;
        let whole = plan.size.saturating_mul(times);
        let timed = Written::timed(plan, 0, 100, times);
        Written { further: Some(timed.further.map_or(whole, |n| n.min(whole))), ..timed }
    }

    fn check(&self, plan: &Plan) -> Result<(), String> {
        buffered_and_single(self.name(), plan)
    }

    fn describe(&self, plan: &Plan) -> Vec<String> {
        vec![
            format!(
                "three nameless files, one after the other, appended to, {} at most each",
                format_bytes_long(plan.size)
            ),
            format!(
                "records of {} bytes, at most {} a second: the same for each policy",
                plan.block,
                if plan.rate_iops == 0 { "any number".into() } else { plan.rate_iops.to_string() }
            ),
            super::span_line(plan),
        ]
    }

    fn run(&self, session: &mut Session) -> Result<(), Stop> {
        let place = session.place()?;
        for (policy, label) in POLICIES {
            session.prepare("making the next file");
            session.check()?;
            // Room is checked for all of it, but a log grows: nothing is allocated beforehand.
            place.room_for(session.plan.size)?;
            let file = place.create(0)?;
            let part = Part {
                label: label.into(),
                engine: if policy == Policy::Never { "pwrite".into() } else { "pwrite, fdatasync".into() },
                block: session.plan.block,
                ..Part::default()
            };
            let goal = (session.plan.time_ms * 1_000_000, session.plan.io_bytes);
            session.measure_with(part, goal, |session, recorder, part| {
                let done = AtomicBool::new(false);
                let second = Recorder::new();
                second.begin(monotonic_ns());
                let failed = Mutex::new(None);
                let ended = std::thread::scope(|scope| {
                    if policy == Policy::EverySecond {
                        scope.spawn(|| {
                            if let Err(stop) = sync_every_second(session, &file, &done, &second) {
                                *failed.lock().unwrap_or_else(|e| e.into_inner()) = Some(stop);
                                done.store(true, Ordering::Relaxed);
                            }
                        });
                    }
                    let ended = work(session, recorder, &file, policy, &done);
                    done.store(true, Ordering::Relaxed);
                    ended
                });
                if policy == Policy::EverySecond {
                    part.sync = second.sync();
                }
                let longest = recorder.direction(Kind::Write).lat.max_ns;
                part.say("longest write", longest as f64 / 1e6, "ms");
                match failed.into_inner().unwrap_or_else(|e| e.into_inner()) {
                    Some(stop) => Err(stop),
                    None => ended,
                }
            })?;
        }
        session.measured();
        Ok(())
    }
}

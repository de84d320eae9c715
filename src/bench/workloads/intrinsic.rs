//! Case 5: the machine's own latency. A fixed computation of a few microseconds, without any system call,
//! over and over: whenever it takes longer, this task was not run (redis-cli's --intrinsic-latency).

use super::{Workload, Written};
use crate::bench::engine::monotonic_ns;
use crate::bench::measure::recorder::{Kind, Recorder};
use crate::bench::plan::Plan;
use crate::bench::report::Part;
use crate::bench::session::{Session, Stop};

/// See the module.
pub struct Intrinsic;

/// Rounds of the computation: two to three microseconds on the machines of the day.
const ROUNDS: u32 = 1024;

/// The runs that took so long or longer are counted, in us: how often it happens, beside how bad it gets.
const OVER_US: [u64; 4] = [100, 1_000, 10_000, 100_000];

/// The fixed computation: cannot be optimised away, touches no memory.
fn compute(mut x: u64) -> u64 {
    for _ in 0..ROUNDS {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    std::hint::black_box(x)
}

fn work(session: &Session, recorder: &Recorder, part: &mut Part) {
    let begin = monotonic_ns();
    let end = begin + session.plan.time_ms * 1_000_000;
    let (mut x, mut before, mut runs, mut worst) = (1, begin, 0u64, 0);
    let mut over = [0u64; OVER_US.len()];
    // clock_gettime stays in user space (vDSO): reading it is no system call.
    while before < end && session.check().is_ok() {
        x = compute(x);
        let now = monotonic_ns();
        recorder.add(Kind::Sync, 0, before, before, now);
        recorder.seen(now);
        let took = now - before;
        if took > worst {
            worst = took;
        }
        // Hardly ever: the first limit is far above a run.
        if took >= OVER_US[0] * 1000 {
            for (count, limit) in over.iter_mut().zip(OVER_US) {
                *count += u64::from(took >= limit * 1000);
            }
        }
        runs += 1;
        before = now;
    }
    let average = (before - begin) as f64 / runs.max(1) as f64;
    part.say("runs", runs as f64, "");
    part.say("average run", average / 1e3, "us");
    part.say("worst run", worst as f64 / 1e3, "us");
    part.say("worst / average", worst as f64 / average.max(1.0), "");
    for (count, limit) in over.into_iter().zip(OVER_US) {
        part.say(&format!("runs of {} ms or more", limit as f64 / 1e3), count as f64, "");
    }
}

impl Workload for Intrinsic {
    fn name(&self) -> &'static str {
        "intrinsic"
    }

    fn about(&self) -> &'static str {
        "the machine's own latency: how long a task that only computes is not run"
    }

    fn needs_directory(&self) -> bool {
        false
    }

    fn defaults(&self) -> Plan {
        Plan {
            profile: "intrinsic".into(),
            depth: 1,
            read_pct: 100,
            direct: false,
            ramp_ms: 0,
            time_ms: 30_000,
            ..Plan::default()
        }
    }

    fn takes(&self) -> &'static [&'static str] {
        &["time"]
    }

    fn writes(&self, _plan: &Plan) -> Written {
        Written { certain: 0, further: Some(0) }
    }

    fn check(&self, plan: &Plan) -> Result<(), String> {
        if plan.time_ms == 0 { Err("intrinsic: needs a time".into()) } else { Ok(()) }
    }

    fn footprint(&self, _plan: &Plan) -> u64 {
        0
    }

    fn describe(&self, plan: &Plan) -> Vec<String> {
        vec![format!("keeps one core busy for {} s; touches no file", plan.time_ms as f64 / 1e3)]
    }

    fn run(&self, session: &mut Session) -> Result<(), Stop> {
        let part =
            Part { label: "computing without system calls".into(), verb: "run".into(), ..Part::default() };
        session.measure_with(part, (session.plan.time_ms * 1_000_000, 0), |session, recorder, part| {
            work(session, recorder, part);
            session.check()
        })?;
        Ok(())
    }
}

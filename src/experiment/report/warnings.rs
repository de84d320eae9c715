//! Conditions that distort an experiment.

use super::super::dirty_pages::MIN_COUNTED_MS;
use super::super::spec::Arm;
use super::super::stats::MIN_ROUNDS;
use super::data::{ExperimentReport, Round, RunEnd, Trial};
use crate::units::format_bytes_long;

/// Throughput of other processes on the device above which there is a warning, bytes per second.
const FOREIGN_BYTES_PER_S: f64 = 1_048_576.0;
/// CPU use of other processes above which there is a warning, percent.
const BUSY_CPU_PCT: f64 = 25.0;

/// All warnings about `report`.
pub fn warnings_for(report: &ExperimentReport) -> Vec<String> {
    let mut all = Vec::new();
    let rounds = report.spec.rounds as usize;
    if rounds < MIN_ROUNDS {
        all.push(format!("{rounds} rounds of each arm: fewer than {MIN_ROUNDS} can show nothing"));
    }
    for trial in &report.trials {
        let name = if trial.is_control { "control: " } else { "" };
        let mut say = |what: String| all.push(format!("{name}{what}"));
        let (done, planned) = (trial.rounds.iter().filter(|r| r.is_comparable()).count(), 2 * rounds);
        if done < planned && report.end != RunEnd::Complete {
            say(format!("only {done} of {planned} rounds came to their end; the verdict is about those"));
        }
        add_foreign_load_warnings(report, trial, &mut say);
        short_rounds_warning(trial).into_iter().for_each(&mut say);
        // A workload without a file dirties no pages.
        if !trial.is_control && report.only_page_cache && report.target().is_some() {
            add_page_cache_warnings(report, trial, &mut say);
        }
        repeated_bench_warnings(trial).into_iter().for_each(&mut say);
    }
    all
}

/// Warnings about thresholds and ages, for knobs of the page cache.
fn add_page_cache_warnings(report: &ExperimentReport, trial: &Trial, say: &mut impl FnMut(String)) {
    if trial.plan.direct {
        return say("this workload passes the page cache (direct I/O): settings of dirty pages cannot act on it".into());
    }
    let shortest = trial.rounds.iter().filter(|r| r.is_comparable()).map(|r| r.counted_secs()).reduce(f64::min);
    let expire = report.memory.expire_centisecs.map(|c| c as f64 / 100.0);
    if let (Some(secs), Some(expire)) = (shortest, expire)
        && secs < expire
    {
        say(format!(
            "the shortest round counted for {secs:.1} s, less than the {expire:.0} s of vm.dirty_expire_centisecs: \
             writing by age is not in these figures, and B may cost later what it saves now"
        ));
    }
    let (size, shown) = (trial.plan.size, format_bytes_long(trial.plan.size));
    let beyond = |arm: Arm| report.thresholds[arm.index()].background.filter(|b| *b > size);
    match (beyond(Arm::A), beyond(Arm::B)) {
        (Some(_), Some(_)) => say(format!(
            "neither arm's background threshold can be reached with a file of {shown}: both write by age only"
        )),
        (Some(b), None) => say(format!(
            "A's background threshold ({}) is above the file's {shown}: A writes by age only",
            format_bytes_long(b)
        )),
        _ => {}
    }
}

fn short_rounds_warning(trial: &Trial) -> Option<String> {
    let seen = |r: &Round| r.dirty_points.last().map_or(0, |p| p.at_ms);
    let short = |r: &&Round| {
        r.dirtied_bytes.is_none() && seen(r) < MIN_COUNTED_MS && r.counted_secs() * 1e3 < 2.0 * MIN_COUNTED_MS as f64
    };
    let n = trial.rounds.iter().filter(short).count();
    (n > 0).then(|| {
        format!(
            "{n} of {} rounds counted for less than {} s: pages made dirty and written back are not reported, because \
             the kernel adds them up once a second only (vm.stat_interval)",
            trial.rounds.len(),
            MIN_COUNTED_MS / 1000
        )
    })
}

fn add_foreign_load_warnings(report: &ExperimentReport, trial: &Trial, say: &mut impl FnMut(String)) {
    let n = trial.rounds.len();
    let device = report.target().and_then(|t| t.device.clone());
    // In how many rounds it was above a limit, and the highest value.
    let above = |limit: f64, of: &dyn Fn(&Round) -> Option<f64>| -> Option<(usize, f64)> {
        let high: Vec<f64> = trial.rounds.iter().filter_map(of).filter(|value| *value > limit).collect();
        Some((high.len(), high.iter().copied().reduce(f64::max)?))
    };
    let moved = |r: &Round| Some(r.baseline.disks.iter().find(|(d, _)| Some(d) == device.as_ref())?.1);
    if let Some((rounds, most)) = above(FOREIGN_BYTES_PER_S, &moved) {
        let most = format_bytes_long(most as u64);
        say(format!("others worked on the device before {rounds} of {n} rounds, up to {most}/s"));
    }
    if let Some((rounds, most)) = above(BUSY_CPU_PCT, &|r| r.baseline.cpu_pct) {
        say(format!("the processors were busy with other work before {rounds} of {n} rounds, up to {most:.0} %"));
    }
    if trial.rounds.iter().any(|r| r.baseline.sync_timed_out) {
        say("another file system did not finish its sync: its dirty pages count towards the thresholds".into());
    }
}

fn repeated_bench_warnings(trial: &Trial) -> Vec<String> {
    let Some((first, rest)) = trial.rounds.split_first() else { return Vec::new() };
    let always = |w: &&String| rest.iter().all(|r| r.bench.warnings.contains(w));
    first.bench.warnings.iter().filter(always).map(|w| format!("every round: {w}")).collect()
}

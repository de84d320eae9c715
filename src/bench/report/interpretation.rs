//! What a result means: one sentence for the profiles that the reference classes of random I/O do not cover.

use super::data::BenchReport;
use super::format::format_latency;
use crate::units::format_bytes_long;

/// A task that only computes and gets less of a core than this has to share it.
const FULL_CORE_PCT: f64 = 95.0;

pub(crate) fn interpret(r: &BenchReport) -> Option<String> {
    match r.plan.profile.as_str() {
        "fork" => interpret_fork(r),
        "intrinsic" => interpret_intrinsic(r),
        "append" => interpret_append(r),
        "cached" => interpret_cached(r),
        "chunks" => interpret_chunks(r),
        _ => None,
    }
}

/// Reference values, ms per GiB: physical and VMware 9 to 13, HVM 10, KVM 23, old Xen 239 to 424.
fn interpret_fork(r: &BenchReport) -> Option<String> {
    let each = r.measurements.first()?.metric("fork per GiB")?;
    let like = match each {
        x if x < 7.0 => "less than physical machines and VMware (9 to 13)",
        x if x <= 16.0 => "about what physical machines, VMware and HVM guests take (9 to 13)",
        x if x <= 60.0 => "nearest to KVM guests (23)",
        x if x <= 180.0 => "between KVM guests (23) and Xen paravirtual ones (239 to 424)",
        _ => "nearest to old Xen guests (239 to 424)",
    };
    Some(format!(
        "{each:.1} ms per GiB: {like}. A process of 24 GiB would stand still for {:.2} s at each fork.",
        each * 0.024
    ))
}

/// Reference values: bare metal 0.115 ms, a small virtual machine 9.7 ms, up to 40 ms seen.
fn interpret_intrinsic(r: &BenchReport) -> Option<String> {
    let worst = r.measurements.first()?.metric("worst run")? / 1e3;
    let like = match worst {
        x if x < 1.0 => "as on bare metal (0.115)",
        x if x < 20.0 => "as in a small virtual machine (9.7)",
        _ => "more than a small virtual machine's 9.7; 40 has been seen",
    };
    let core = r.measurements.first()?.cpu.map(|c| c.user_pct + c.system_pct).filter(|pct| *pct < FULL_CORE_PCT);
    let shared = core.map_or(String::new(), |pct| {
        format!(
            " It had a core for {pct:.0} % of the time only: other tasks or the hypervisor ran meanwhile. On an idle \
             machine it would tell of the machine alone."
        )
    });
    Some(format!(
        "The longest time this task was not run is {worst:.3} ms: {like}. No program here can promise to answer \
         faster.{shared}"
    ))
}

fn interpret_append(r: &BenchReport) -> Option<String> {
    let policies = [r.find("sync always")?, r.find("sync every second")?, r.find("sync never")?];
    let longest = policies.map(|p| format_latency(p.write.lat.max_ns as f64)).join(", ");
    let [always, second, never] = policies.map(|p| p.rate_of(p.write.ios));
    let capped = match r.plan.rate_iops {
        0 => String::new(),
        cap => format!(" (the cap is {cap})"),
    };
    Some(format!(
        "Records a second: {always:.0} synced always, {second:.0} every second, {never:.0} never{capped}. Longest \
         write: {longest}; where a sync in a second thread makes it longer, write() waited for the sync."
    ))
}

fn interpret_cached(r: &BenchReport) -> Option<String> {
    let [first, .., third] = &r.measurements[..] else { return None };
    let (a, b) = (first.bytes_per_s(), third.bytes_per_s());
    let memory = r.target.as_ref().is_some_and(|t| t.is_memory);
    if memory || a <= 0.0 || super::warnings::is_from_cache(first) {
        return None;
    }
    let times = b / a;
    let [a, b] = [a, b].map(|rate| format_bytes_long(rate as u64));
    Some(format!(
        "{a}/s is the storage's, {b}/s the page cache's: {times:.1} times. A benchmark that reads a file twice measures \
         the second."
    ))
}

fn interpret_chunks(r: &BenchReport) -> Option<String> {
    let longest = |label| r.find(label)?.metric("bystander: longest sync");
    let (alone, each, once) = (longest("bystander alone")?, longest("sync after each")?, longest("sync once")?);
    let last = r.find("sync once")?.metric("final sync")?;
    Some(format!(
        "Somebody else's longest sync: {alone:.1} ms alone, {each:.1} ms with a sync after each piece, {once:.1} ms with \
         one at the end, which itself took {last:.1} ms."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::measure::latency::DirectionStats;
    use crate::bench::report::{CpuUsage, Measurement};
    use crate::bench::store::tests::empty_report;

    fn report_with(profile: &str, figures: &[(&str, &str, f64)]) -> BenchReport {
        let mut r = empty_report("1-randrw");
        r.plan.profile = profile.into();
        r.measurements.clear();
        for (label, figure, value) in figures {
            if r.measurements.last().is_none_or(|p: &Measurement| p.label != *label) {
                r.measurements.push(Measurement { label: (*label).into(), ..Measurement::default() });
            }
            if let Some(p) = r.measurements.last_mut() {
                p.add_metric(figure, *value, "");
            }
        }
        r
    }

    #[test]
    fn fork_is_compared_with_known_machines() {
        let said =
            |ms| interpret(&report_with("fork", &[("fork with 1.00 GiB", "fork per GiB", ms)])).unwrap_or_default();
        assert!(said(12.1).starts_with("12.1 ms per GiB: about what physical machines"), "{}", said(12.1));
        assert!(said(23.0).contains("KVM") && said(300.0).contains("old Xen") && said(3.0).contains("less than"));
        assert!(said(10.0).contains("0.24 s"));
    }

    #[test]
    fn intrinsic_latency_is_compared_with_known_machines() {
        let said = |worst| interpret(&report_with("intrinsic", &[("x", "worst run", worst)])).unwrap_or_default();
        assert!(said(115.0).contains("0.115 ms: as on bare metal"), "{}", said(115.0));
        let mut r = report_with("intrinsic", &[("x", "worst run", 9700.0)]);
        r.measurements[0].cpu = Some(CpuUsage { user_pct: 42.0, ..CpuUsage::default() });
        assert!(interpret(&r).unwrap().contains("42 % of the time only"), "{:?}", interpret(&r));
        assert!(said(9700.0).contains("small virtual machine") && said(40_000.0).contains("40 has been seen"));
    }

    #[test]
    fn incomplete_runs_are_not_interpreted() {
        for profile in ["fork", "intrinsic", "append", "cached", "chunks", "randrw"] {
            assert_eq!(interpret(&report_with(profile, &[("sync always", "x", 1.0)])), None, "{profile}");
        }
    }

    #[test]
    fn bystander_syncs_are_compared() {
        let said = interpret(&report_with(
            "chunks",
            &[
                ("bystander alone", "bystander: longest sync", 5.0),
                ("sync after each piece", "bystander: longest sync", 25.0),
                ("sync once at the end", "bystander: longest sync", 900.0),
                ("sync once at the end", "final sync", 1200.0),
            ],
        ))
        .unwrap();
        assert!(said.contains("5.0 ms alone, 25.0 ms with") && said.contains("1200.0 ms"), "{said:?}");
    }

    #[test]
    fn cached_reads_are_compared_with_the_storage_only_outside_memory() {
        let mut r = report_with("cached", &[("a", "x", 0.0), ("b", "x", 0.0), ("c", "x", 0.0)]);
        for (part, mib) in r.measurements.iter_mut().zip([27u64, 688, 1400]) {
            part.elapsed_ns = 1_000_000_000;
            part.read = DirectionStats { ios: mib, bytes: mib << 20, ..DirectionStats::default() };
        }
        assert!(interpret(&r).unwrap_or_default().contains("51.9 times"), "{:?}", interpret(&r));
        r.target.get_or_insert_default().is_memory = true;
        assert_eq!(interpret(&r), None);
    }
}

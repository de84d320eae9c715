//! What a result means, in a sentence or two: the conclusions that workloads name in [`crate::bench::workloads`].

use super::data::BenchReport;
use super::format::format_latency;
use crate::units::format_bytes_long;

/// A task that only computes and gets less of a core than this has to share it.
const FULL_CORE_PCT: f64 = 95.0;

/// Reference values, ms per GiB: physical and VMware 9 to 13, HVM 10, KVM 23, old Xen 239 to 424.
pub(crate) fn interpret_fork(r: &BenchReport) -> Option<String> {
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
pub(crate) fn interpret_intrinsic(r: &BenchReport) -> Option<String> {
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

pub(crate) fn interpret_append(r: &BenchReport) -> Option<String> {
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

pub(crate) fn interpret_cached(r: &BenchReport) -> Option<String> {
    let [first, .., third] = &r.measurements[..] else { return None };
    let (a, b) = (first.bytes_per_s(), third.bytes_per_s());
    let memory = r.target.as_ref().is_some_and(|t| t.is_memory);
    if memory || a <= 0.0 || super::cache::is_from_cache(first) {
        return None;
    }
    let times = b / a;
    let [a, b] = [a, b].map(|rate| format_bytes_long(rate as u64));
    Some(format!(
        "{a}/s is the storage's, {b}/s the page cache's: {times:.1} times. A benchmark that reads a file twice measures \
         the second."
    ))
}

pub(crate) fn interpret_chunks(r: &BenchReport) -> Option<String> {
    let longest = |label| r.find(label)?.metric("bystander: longest sync");
    let (alone, each, once) = (longest("bystander alone")?, longest("sync after each")?, longest("sync once")?);
    let last = r.find("sync once")?.metric("final sync")?;
    Some(format!(
        "Somebody else's longest sync: {alone:.1} ms alone, {each:.1} ms with a sync after each piece, {once:.1} ms with \
         one at the end, which itself took {last:.1} ms."
    ))
}

/// What etcd asks of fdatasync, ms.
const ETCD_LIMIT_MS: f64 = 10.0;

pub(crate) fn interpret_fsync(r: &BenchReport) -> Option<String> {
    let p99 = r.measurements.first()?.metric("fdatasync p99")?;
    let (verdict, asks) = if p99 < ETCD_LIMIT_MS { ("met", "less than 10") } else { ("not met", "less than 10") };
    Some(format!("etcd's rule is {verdict}: p99 of fdatasync {p99:.1} ms, etcd asks for {asks}."))
}

/// Reference values: 100 transactions of 100 to 500 records of 33 bytes: 20.1 tx/s on a laptop's disk, 1.54 on a cloud
/// disk with default dirty thresholds and 14.75 with raised ones.
pub(crate) fn interpret_txlog(r: &BenchReport) -> Option<String> {
    let part = r.measurements.first()?;
    let rate = part.metric("tx/s").filter(|rate| *rate > 0.0)?;
    let like = match rate {
        x if x < 4.8 => "as on a disk whose writers wait for writeback (1.5 seen)",
        x if x < 17.0 => "as on a disk of about 66 IOPS with raised dirty thresholds (14.8 seen)",
        x if x < 60.0 => "as on a laptop's disk (20 seen)",
        _ => "more than the disks this test is known from (1.5 to 20)",
    };
    let synced = part.sync.lat.mean_ns * part.sync.ios as f64;
    let share = (part.elapsed_ns > 0 && synced > 0.0).then(|| synced / part.elapsed_ns as f64 * 100.0);
    let waited = share.map_or(String::new(), |pct| {
        let p99 =
            part.sync.lat.percentile(99.0).map_or(String::new(), |ns| format!(", p99 {}", format_latency(ns as f64)));
        format!(" {:.0} % of the time went by in syncs of the log{p99}.", pct.min(100.0))
    });
    Some(format!("{rate:.1} transactions a second: {like}.{waited}"))
}

/// Reference values, bytes per second, largest first.
const BANDWIDTHS: [(f64, &str); 6] = [
    (3.0e9, "a local NVMe drive (3 GB/s)"),
    (1.1e9, "a 10 Gbit network (1.1 GB/s)"),
    (5.5e8, "a SATA SSD (550 MB/s)"),
    (1.8e8, "a disk (180 MB/s)"),
    (1.17e8, "a 1 Gbit network (117 MB/s)"),
    (1.17e7, "a 100 Mbit network (11.7 MB/s)"),
];

pub(crate) fn interpret_sequential(r: &BenchReport) -> Option<String> {
    let part = r.measurements.first().filter(|part| part.bytes() > 0)?;
    let rate = part.bytes_per_s();
    let said = format!("{}/s", format_bytes_long(rate as u64));
    if r.target.as_ref().is_some_and(|t| t.is_memory) || part.from_cache {
        return Some(format!("{said}, of memory and not of the storage."));
    }
    if let Some(reason) = super::foreign::no_conclusion_reason(part) {
        return Some(format!("{said}, which says nothing about the storage: {reason}."));
    }
    let distance = |usual: f64| (rate.max(1.0) / usual).ln().abs();
    let (usual, name) = BANDWIDTHS.into_iter().min_by(|a, b| distance(a.0).total_cmp(&distance(b.0)))?;
    Some(match rate / usual {
        ratio if (0.7..=1.4).contains(&ratio) => format!("{said}: about what {name} gives."),
        ratio => format!("{said}: {ratio:.1} times {name}."),
    })
}

/// Latency and what it comes from, by Little's law.
pub(crate) fn interpret_random(r: &BenchReport) -> Option<String> {
    let part = r.measurements.first().filter(|part| part.ios() > 0)?;
    let lat = part.combined_lat();
    let [p50, p99] = [50.0, 99.0].map(|p| lat.percentile(p).map(|ns| ns as f64));
    let (p50, p99) = (p50?, p99?);
    let tail = match p99 / p50.max(1.0) {
        x if x < 3.0 => "an even latency",
        x if x < 10.0 => "a tail as queues have it",
        _ => "a long tail: some operations wait far longer than most",
    };
    Some(format!(
        "Half of the operations took at most {}, 99 of 100 at most {}: {tail}. With {} in flight that makes {:.0} IOPS.",
        format_latency(p50),
        format_latency(p99),
        part.depth * part.jobs.max(1),
        part.iops()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::measure::latency::DirectionStats;
    use crate::bench::report::{CpuUsage, Measurement};
    use crate::bench::store::tests::empty_report;

    fn interpret(r: &BenchReport) -> Option<String> {
        match r.plan.profile.as_str() {
            "fork" => interpret_fork(r),
            "intrinsic" => interpret_intrinsic(r),
            "append" => interpret_append(r),
            "cached" => interpret_cached(r),
            "chunks" => interpret_chunks(r),
            "fsync" => interpret_fsync(r),
            "txlog" => interpret_txlog(r),
            "seqread" => interpret_sequential(r),
            _ => interpret_random(r),
        }
    }

    #[test]
    fn fsync_and_txlog_are_judged_in_words() {
        let said = |p99| interpret(&report_with("fsync", &[("x", "fdatasync p99", p99)])).unwrap();
        assert_eq!(said(10.7), "etcd's rule is not met: p99 of fdatasync 10.7 ms, etcd asks for less than 10.");
        assert!(said(3.12).starts_with("etcd's rule is met: p99 of fdatasync 3.1 ms"));
        let mut r = report_with("txlog", &[("x", "tx/s", 1.54)]);
        let part = &mut r.measurements[0];
        (part.elapsed_ns, part.sync.ios, part.sync.lat.mean_ns) = (10_000_000_000, 50, 1e8);
        assert!(
            interpret(&r).unwrap().contains("wait for writeback")
                && interpret(&r).unwrap().contains("50 % of the time")
        );
    }

    #[test]
    fn bandwidth_is_compared_unless_a_cache_or_a_freeze_made_it() {
        let mut r = report_with("seqread", &[("x", "y", 0.0)]);
        let part = &mut r.measurements[0];
        (part.elapsed_ns, part.read.ios, part.read.bytes) = (1_000_000_000, 500, 500_000_000);
        assert!(interpret(&r).unwrap().contains("about what a SATA SSD"), "{:?}", interpret(&r));
        r.measurements[0].from_cache = true;
        assert!(interpret(&r).unwrap().contains("of memory"));
    }

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
        for profile in ["fork", "intrinsic", "append", "cached", "chunks", "randrw", "fsync", "txlog", "seqread"] {
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

//! The coefficients of blk-iocost's linear model, as `io.cost.model` and systemd's hwdb take them
//! (Documentation/admin-guide/cgroup-v2.rst, IO Interface Files; systemd's hwdb.d/90-iocost.hwdb).

use super::data::{BenchReport, Measurement};
use super::foreign::no_conclusion_reason;
use crate::sanitize::sanitize;

/// The steps, in order: the names of the coefficients.
pub(crate) const LABELS: [&str; 6] = ["rbps", "rseqiops", "rrandiops", "wbps", "wseqiops", "wrandiops"];

fn coefficient(p: &Measurement) -> u64 {
    let rate = if p.label.ends_with("bps") { p.bytes_per_s() } else { p.iops() };
    rate.round() as u64
}

pub(crate) fn conclude(r: &BenchReport) -> Option<String> {
    if r.measurements.len() < LABELS.len() {
        return None;
    }
    if let Some(reason) = r.measurements.iter().find_map(no_conclusion_reason) {
        return Some(format!("No coefficients: {reason}."));
    }
    let model: Vec<String> = r.measurements.iter().map(|p| format!("{}={}", p.label, coefficient(p))).collect();
    let model = model.join(" ");
    let first = r.measurements.first()?;
    let Some(disk) = first.whole_disk.as_ref().or(first.device.as_ref()) else {
        return Some(format!("The coefficients: {model}. The directory is not on one disk, so they are of no device."));
    };
    let name = r.target.as_ref().and_then(|t| t.model.clone());
    let shown = name.as_deref().map_or("MODEL".into(), |name| sanitize(name).replace(' ', "_"));
    Some(format!(
        "For /sys/fs/cgroup/io.cost.model, which the kernel takes with CONFIG_BLK_CGROUP_IOCOST:\n  {} ctrl=user model=linear \
         {model}\nFor systemd, in /etc/udev/hwdb.d/90-iocost.hwdb{}:\n  block:*:name:{shown}:fwver:*:\n    \
         IOCOST_SOLUTIONS=naive\n    IOCOST_MODEL_NAIVE={model}\nTargets of latency (IOCOST_QOS_NAIVE) are not measured here.",
        disk.id,
        if name.is_some() { "" } else { ", with the model of the disk, which the kernel does not know here" },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::measure::latency::DirectionStats;
    use crate::bench::report::ReportTarget;
    use crate::bench::store::tests::empty_report;
    use crate::model::disk::{DevId, DiskRate};

    #[test]
    fn both_forms_have_the_measured_coefficients() {
        let mut r = empty_report("1-iocost");
        r.target = Some(ReportTarget { model: Some("FAST 990".into()), ..ReportTarget::default() });
        for (label, ios) in LABELS.into_iter().zip([10, 2000, 3000, 5, 1500, 1000]) {
            r.measurements.push(Measurement {
                label: label.into(),
                elapsed_ns: 2_000_000_000,
                read: DirectionStats { ios, bytes: ios << 20, ..DirectionStats::default() },
                device: Some(DiskRate { id: DevId { major: 259, minor: 3 }, ..DiskRate::default() }),
                ..Measurement::default()
            });
        }
        let said = conclude(&r).unwrap();
        let model = "rbps=5242880 rseqiops=1000 rrandiops=1500 wbps=2621440 wseqiops=750 wrandiops=500";
        assert!(said.contains(&format!("\n  259:3 ctrl=user model=linear {model}\n")), "{said}");
        assert!(
            said.contains(&format!(
                "\n  block:*:name:FAST_990:fwver:*:\n    IOCOST_SOLUTIONS=naive\n    IOCOST_MODEL_NAIVE={model}\n"
            )),
            "{said}"
        );
        r.measurements[0].foreign_pct = Some(50.0);
        assert!(conclude(&r).unwrap().starts_with("No coefficients: 50 %"));
    }
}

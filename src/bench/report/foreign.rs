//! What others did on the disk meanwhile, and why a measurement allows no conclusion about its storage.

use super::data::{Measurement, ReportTarget};
use crate::bench::disturbance::describe_disturbances;

/// Share of others in the disk's bytes above which no conclusion is drawn, percent.
const FOREIGN_LIMIT_PCT: f64 = 10.0;
/// Less than this is never called somebody's load, bytes.
const MIN_FOREIGN_BYTES: f64 = 1_048_576.0;
/// File systems that write more than they are given: trees of checksums and copies of metadata.
const AMPLIFYING: [&str; 5] = ["btrfs", "bcachefs", "f2fs", "nilfs2", "zfs"];

/// Percent of the disk's bytes beyond `own`, the most that this run can have caused it to read and write.
pub(crate) fn foreign_pct(part: &Measurement, own: [u64; 2], target: Option<&ReportTarget>) -> Option<f64> {
    let disk = part.whole_disk.as_ref().or(part.device.as_ref())?;
    let bytes = |mb_per_s: f64| mb_per_s * 1_048_576.0 * part.device_ns as f64 / 1e9;
    let [read, written] = [disk.read_mb_per_s, disk.write_mb_per_s].map(bytes);
    let amplifies = part.write.ios > 0 && target.is_some_and(|t| AMPLIFYING.contains(&t.filesystem.as_str()));
    let more_written = if amplifies { 0.0 } else { (written - own[1] as f64).max(0.0) };
    let foreign = (read - own[0] as f64).max(0.0) + more_written;
    (read + written > 0.0).then(|| if foreign < MIN_FOREIGN_BYTES { 0.0 } else { foreign / (read + written) * 100.0 })
}

/// Whether others moved so much that the figures are not the storage's alone.
pub(crate) fn has_foreign_load(part: &Measurement) -> bool {
    part.foreign_pct.is_some_and(|pct| pct > FOREIGN_LIMIT_PCT)
}

/// Why the rates of a measurement allow no conclusion about its storage; `None`: nothing disturbed it.
pub(crate) fn no_conclusion_reason(part: &Measurement) -> Option<String> {
    let mut all = describe_disturbances(&part.disturbances);
    if let Some(pct) = part.foreign_pct.filter(|_| has_foreign_load(part)) {
        all.push(format!("{pct:.0} % of what the disk moved was not this run's"));
    }
    (!all.is_empty()).then(|| all.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::disk::DiskRate;

    fn measurement(read_mb: f64, write_mb: f64) -> Measurement {
        let rate = DiskRate { read_mb_per_s: read_mb, write_mb_per_s: write_mb, ..DiskRate::default() };
        Measurement { device_ns: 1_000_000_000, device: Some(rate), ..Measurement::default() }
    }

    #[test]
    fn only_bytes_beyond_our_own_are_foreign_each_direction_apart() {
        let pct = |read_mb, write_mb, own| foreign_pct(&measurement(read_mb, write_mb), own, None).unwrap();
        assert_eq!(pct(50.0, 50.0, [50 << 20, 50 << 20]), 0.0);
        assert_eq!(pct(50.0, 50.0, [0, 100 << 20]), 50.0);
        assert_eq!(pct(0.5, 0.0, [0, 0]), 0.0, "half a MiB is nobody's load");
        assert_eq!(foreign_pct(&Measurement::default(), [0, 0], None), None);
    }

    #[test]
    fn the_whole_disk_counts_where_the_device_is_a_partition() {
        let neighbour = DiskRate { write_mb_per_s: 100.0, ..DiskRate::default() };
        let part = Measurement { whole_disk: Some(neighbour), ..measurement(0.0, 10.0) };
        assert_eq!(foreign_pct(&part, [0, 10 << 20], None), Some(90.0));
    }

    #[test]
    fn what_btrfs_writes_beyond_the_data_is_not_foreign() {
        let mut part = measurement(0.0, 100.0);
        part.write.ios = 1;
        let target = ReportTarget { filesystem: "btrfs".into(), ..ReportTarget::default() };
        assert_eq!(foreign_pct(&part, [0, 10 << 20], Some(&target)), Some(0.0));
    }
}

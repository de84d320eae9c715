//! Counters of the machine during an experiment: dirty pages during a round, and activity of others before it.

use super::report::{Baseline, DirtyPagesPoint};
use crate::bench::bounded_series::{BoundedSeries, Merge};
use crate::bench::message::BenchProgress;
use crate::collect::{self, Source};
use crate::model::cpu::CpuRate;
use crate::model::disk::{DiskRaw, SECTOR_BYTES};
use crate::model::memory::VmRaw;
use crate::model::sample::Sample;
use crate::root::Root;
use std::time::Instant;

pub(crate) const MAX_POINTS: usize = 960;
/// A device with less throughput is idle, bytes per second.
const IDLE_BYTES_PER_S: f64 = 64.0 * 1024.0;

/// Reads files that never block; what cannot be read is missing.
pub(crate) struct SystemCounters(Vec<Source>);

impl SystemCounters {
    /// `wanted` names the files.
    pub(crate) fn new(root: &Root, wanted: &[&str]) -> Self {
        Self(collect::sources(root).into_iter().filter(|s| wanted.contains(&s.name)).collect())
    }

    pub(crate) fn read(&mut self) -> Sample {
        let mut sample = Sample::default();
        for source in &mut self.0 {
            source.read(&mut sample);
        }
        sample
    }
}

/// The activity between two samples, `secs` apart.
pub(crate) fn baseline_between(before: &Sample, after: &Sample, secs: f64) -> Baseline {
    let cpu = before.cpu.ok().zip(after.cpu.ok()).and_then(|(a, b)| CpuRate::derive(a, b));
    let mut disks = Vec::new();
    for disk in after.disks.ok().into_iter().flatten() {
        let Some(old) = before.disks.ok().and_then(|all| all.iter().find(|d| d.id == disk.id)) else { continue };
        let sectors = |d: &DiskRaw| d.read.sectors.wrapping_add(d.write.sectors);
        let moved = sectors(disk).saturating_sub(sectors(old)) as f64 * SECTOR_BYTES as f64 / secs.max(1e-3);
        if moved >= IDLE_BYTES_PER_S {
            disks.push((disk.id.to_string(), moved));
        }
    }
    Baseline { cpu_pct: cpu.map(|c| c.user_pct + c.system_pct + c.steal_pct), disks, sync_timed_out: false }
}

/// The shortest time over which pages are counted, ms. Each processor adds its own count to the kernel's
/// once a second (`vm.stat_interval`; `refresh_cpu_vm_stats` in mm/vmstat.c), so shorter times are not reliable.
pub(crate) const MIN_COUNTED_MS: u64 = 2_000;

impl Merge for DirtyPagesPoint {
    fn merge(points: &[Self]) -> Self {
        points.first().copied().unwrap_or_default()
    }
}

#[derive(Debug, Default)]
pub(crate) struct DirtyPagesMonitor {
    pub points: BoundedSeries<DirtyPagesPoint, MAX_POINTS>,
    first: Option<(Instant, VmRaw)>,
    last: Option<(Instant, VmRaw)>,
}

impl DirtyPagesMonitor {
    pub(crate) fn sample_if_counting(
        &mut self,
        progress: &BenchProgress,
        counters: &mut SystemCounters,
    ) -> Option<DirtyPagesPoint> {
        if progress.measurement_index.is_none() || progress.is_ramping {
            return None;
        }
        let vm = counters.read().vm;
        self.add_sample(Instant::now(), vm.ok().copied().unwrap_or_default())
    }

    fn add_sample(&mut self, at: Instant, vm: VmRaw) -> Option<DirtyPagesPoint> {
        let (begun, _) = *self.first.get_or_insert((at, vm));
        self.last = Some((at, vm));
        let point = DirtyPagesPoint {
            at_ms: at.duration_since(begun).as_millis() as u64,
            dirty_bytes: vm.nr_dirty? * vm.page_size,
            writeback_bytes: vm.nr_writeback.unwrap_or(0) * vm.page_size,
        };
        self.points.push(point);
        Some(point)
    }

    /// Bytes made dirty and written back since counting began; `None` also after less than [`MIN_COUNTED_MS`].
    pub(crate) fn dirtied_and_written(&self) -> (Option<u64>, Option<u64>) {
        let (Some((begun, first)), Some((at, last))) = (&self.first, &self.last) else { return (None, None) };
        if at.duration_since(*begun).as_millis() < MIN_COUNTED_MS.into() {
            return (None, None);
        }
        let since = |new: Option<u64>, old: Option<u64>| Some(new?.saturating_sub(old?) * first.page_size);
        (since(last.nr_dirtied, first.nr_dirtied), since(last.nr_written, first.nr_written))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::reading::Reading;
    use std::time::Duration;

    fn vm(dirty: u64, dirtied: u64) -> VmRaw {
        VmRaw { page_size: 4096, nr_dirty: Some(dirty), nr_dirtied: Some(dirtied), ..VmRaw::default() }
    }

    #[test]
    fn points_are_samples_in_order() {
        let (mut watch, start) = (DirtyPagesMonitor::default(), Instant::now());
        for n in 0..10_000u64 {
            watch.add_sample(start + Duration::from_millis(250 * n), vm(n, 100 + n));
        }
        assert!(watch.points.points.is_sorted_by_key(|p| p.at_ms));
        assert!(watch.points.points.iter().all(|p| p.dirty_bytes == p.at_ms / 250 * 4096));
        assert_eq!(watch.dirtied_and_written(), (Some(9_999 * 4096), None));
    }

    #[test]
    fn short_rounds_have_no_totals() {
        let (mut watch, start) = (DirtyPagesMonitor::default(), Instant::now());
        watch.add_sample(start, vm(1, 100));
        watch.add_sample(start + Duration::from_millis(MIN_COUNTED_MS - 1), vm(1, 100));
        assert_eq!(watch.dirtied_and_written(), (None, None), "not 0 bytes");
        watch.add_sample(start + Duration::from_millis(MIN_COUNTED_MS), vm(1, 107));
        assert_eq!(watch.dirtied_and_written(), (Some(7 * 4096), None));
    }

    #[test]
    fn nothing_is_sampled_before_counting_begins() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("proc")).unwrap();
        std::fs::write(dir.path().join("proc/vmstat"), "nr_dirty 3\nnr_writeback 1\nnr_dirtied 7\n").unwrap();
        let mut counters = SystemCounters::new(&Root::at(dir.path()), &["/proc/vmstat"]);
        let mut watch = DirtyPagesMonitor::default();
        assert_eq!(watch.sample_if_counting(&BenchProgress::default(), &mut counters), None);
        assert_eq!(
            watch.sample_if_counting(
                &BenchProgress { measurement_index: Some(0), is_ramping: true, ..BenchProgress::default() },
                &mut counters
            ),
            None
        );
        let got = watch
            .sample_if_counting(
                &BenchProgress { measurement_index: Some(0), ..BenchProgress::default() },
                &mut counters,
            )
            .unwrap();
        let page = rustix::param::page_size() as u64;
        assert_eq!((got.at_ms, got.dirty_bytes, got.writeback_bytes), (0, 3 * page, page));
    }

    #[test]
    fn busy_devices_are_listed_and_idle_ones_are_not() {
        let disk = |minor, sectors| DiskRaw {
            id: crate::model::disk::DevId { major: 7, minor },
            write: crate::model::disk::DiskOpRaw { sectors, ..Default::default() },
            ..DiskRaw::default()
        };
        let sample = |disks| Sample { disks: Reading::Ok(disks), ..Sample::default() };
        let (before, after) = (vec![disk(0, 10), disk(1, 10)], vec![disk(0, 10 + 4096), disk(1, 12)]);
        let got = baseline_between(&sample(before), &sample(after), 2.0);
        assert_eq!(got, Baseline { disks: vec![("7:0".into(), 1_048_576.0)], ..Baseline::default() });
    }
}

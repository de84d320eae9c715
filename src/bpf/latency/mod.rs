//! Latency histograms of block requests by device, counted in the kernel (`assets/trace/requests.bpf.c`).
//!
//! The same programs count the I/O of processes ([`super::io_accounting`]).

pub(super) mod histogram_maps;

use super::bpf_sys::clock_ns;
use super::io_accounting::{OwnerPrograms, count_losses};
use super::kernel_info::{KernelInfo, check_pid_namespace};
use super::layout::pack_device;
use super::loader::{self, attach_all};
use super::packed_object::{PackedObject, packed_object};
use super::probe::Probe;
use super::reading_cache::{ChangeMaps, ReadingCache};
use super::unavailable::{ProbeUnavailable, note_missing};
use crate::model::disk::DevId;
use crate::model::latency::LatencyRaw;
use crate::root::Root;
use aya::Ebpf;
use histogram_maps::{HistogramKey, HistogramMaps};
use rustix::time::ClockId;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The compiled programs; `assets/trace/build.sh` rebuilds them.
static BPF_OBJECT: PackedObject = packed_object!("requests");

/// Readings after which the maps are read even if nothing changed.
const MAX_CACHED_READS: u32 = 60;

pub struct LatencyProbe {
    _programs: Arc<Mutex<Ebpf>>,
    histograms: HistogramMaps,
    changes: ChangeMaps,
    began_ns: u64,
    cache: ReadingCache<Arc<LatencyRaw>>,
    unavailable: Vec<String>,
    root: Root,
    reads: u32,
}

impl Probe for LatencyProbe {
    type Output = Arc<LatencyRaw>;
    const READING: &'static str = "reading latency histograms";

    fn load(kernel: &KernelInfo) -> Result<Self, ProbeUnavailable> {
        let with_accounts = check_pid_namespace(&kernel.root).and_then(|()| Self::load_with(kernel, true));
        let (probe, accounts) = match with_accounts {
            Ok((probe, programs)) => (Ok(probe), Ok(programs)),
            Err(why) => (Self::load_with(kernel, false).map(|(probe, _)| probe), Err(why)),
        };
        let accounts = accounts.map(|programs| Arc::downgrade(&programs));
        *kernel.requests.lock().unwrap_or_else(PoisonError::into_inner) = accounts;
        probe
    }

    fn read(&mut self) -> io::Result<Arc<LatencyRaw>> {
        self.reads += 1;
        let is_dirty = self.changes.take_dirty_flag()?;
        if let Some(same) = self.cache.get(is_dirty || self.histograms.lacks_memory(), MAX_CACHED_READS) {
            return Ok(same);
        }
        if self.reads >= MAX_CACHED_READS {
            self.reads = 0;
            self.histograms.retain_devices(&list_devices(&self.root).iter().map(|d| pack_device(d.id)).collect())?;
        }
        self.histograms.add_requested()?;
        let devices = self.histograms.read()?;
        let unavailable = self.unavailable.iter().cloned().chain(self.histograms.capacity_note()).collect();
        let (tracing_started_ns, dropped) = (self.began_ns, self.changes.dropped()?);
        let read = Arc::new(LatencyRaw { tracing_started_ns, devices, dropped, unavailable });
        self.cache.store(&read);
        Ok(read)
    }
}

impl LatencyProbe {
    /// Loads the programs, with the part that counts the I/O of processes or without it.
    fn load_with(kernel: &KernelInfo, has_accounts: bool) -> Result<(Self, Arc<Mutex<Ebpf>>), ProbeUnavailable> {
        let mut programs = loader::open_object(kernel, BPF_OBJECT, &settings(kernel, has_accounts))?;
        let mut histograms = HistogramMaps::open(&programs, kernel.cpus)?;
        let changes = ChangeMaps::open(&programs, kernel.cpus)?;
        let devices = list_devices(&kernel.root);
        let added = histograms.add_all(&initial_histograms(&devices));
        added.map_err(|err| ProbeUnavailable::from_io_error("creating latency histograms", &err))?;
        let requests = [("rq_issue", "block_rq_issue"), ("rq_complete", "block_rq_complete")];
        attach_all(&mut programs, &kernel.btf, &requests)?;
        let began_ns = clock_ns(ClockId::Boottime);
        let bios = [("bio_queue", "block_bio_queue"), ("bio_complete", "block_bio_complete")];
        let mut unavailable = Vec::new();
        // These run for every bio of every device, so they are attached only where a device needs them.
        if devices.iter().any(|d| d.is_bio_based) {
            let attached = attach_all(&mut programs, &kernel.btf, &bios);
            note_missing(&mut unavailable, "bio-based devices (zram, md, dm)", &attached);
        }
        if !has_accounts {
            count_losses(&programs)?;
        }
        let (programs, cache, root) = (Arc::new(Mutex::new(programs)), ReadingCache::default(), kernel.root.clone());
        let kept = programs.clone();
        Ok((Self { _programs: kept, histograms, changes, began_ns, cache, unavailable, root, reads: 0 }, programs))
    }
}

/// The constants of the programs.
fn settings(kernel: &KernelInfo, has_accounts: bool) -> Vec<(&'static str, bool)> {
    let owners = OwnerPrograms::new(kernel);
    let is_queue_first = kernel.tracepoints.argument_count("block_bio_queue") == Some(2);
    let own = [
        ("BIO_QUEUE_QUEUE", is_queue_first),
        ("WITH_ACCOUNTS", has_accounts),
        ("RQF_ENUM", kernel.has_request_flag_enum),
        ("SUBMITTED_AT_ISSUE", !owners.has_io_start()),
    ];
    own.into_iter().chain(owners.settings).collect()
}

/// A block device that may do I/O.
struct TracedDevice {
    id: DevId,
    /// It takes bios and has no requests.
    is_bio_based: bool,
    /// It has read, written, flushed since boot.
    has_done: [bool; 3],
}

/// Lists devices with a size; one that cannot be read has none.
fn list_devices(root: &Root) -> Vec<TracedDevice> {
    let Ok(dir) = std::fs::read_dir(root.sys("block")) else { return Vec::new() };
    dir.flatten().filter_map(|entry| read_device(&entry.path())).collect()
}

fn read_device(dir: &Path) -> Option<TracedDevice> {
    let text = |name: &str| std::fs::read_to_string(dir.join(name)).ok();
    let number = |t: &str| t.parse::<u64>().ok();
    if number(text("size")?.trim())? == 0 {
        return None;
    }
    let id = DevId::parse(text("dev")?.as_bytes())?;
    let stat = text("stat")?;
    let counts: Vec<u64> = stat.split_whitespace().filter_map(number).collect();
    // Fields 1, 5 and 16 (Documentation/block/stat.rst).
    let used = [0, 4, 15].map(|at| counts.get(at).is_some_and(|n| *n > 0));
    Some(TracedDevice { id, is_bio_based: !dir.join("mq").exists(), has_done: used })
}

/// Returns the histograms to create at the start: first those of operations that were used, then the others. More are
/// created on request.
fn initial_histograms(devices: &[TracedDevice]) -> Vec<HistogramKey> {
    let of = |used: bool| {
        devices.iter().flat_map(move |d| {
            (0..3u32).zip(d.has_done).filter(move |(_, was)| *was == used).map(|(kind, _)| (pack_device(d.id), kind))
        })
    };
    of(true).chain(of(false)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(devices: &[(&str, &str, &str, &str, bool)]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        for (name, dev, size, stat, mq) in devices {
            let at = root.sys("block").join(name);
            std::fs::create_dir_all(&at).unwrap();
            for (file, text) in [("dev", dev), ("size", size), ("stat", stat)] {
                std::fs::write(at.join(file), format!("{text}\n")).unwrap();
            }
            if *mq {
                std::fs::create_dir(at.join("mq")).unwrap();
            }
        }
        (dir, root)
    }

    #[test]
    fn histograms_of_used_devices_are_created_first() {
        let (_dir, root) = tree(&[
            ("loop0", "7:0", "0", "0 0 0 0", true),
            ("sda", "8:0", "99", "5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 3 1", true),
            ("zram0", "252:3", "8", "0 0 0 0 7 0 0 0 0 0 0", false),
        ]);
        let mut devices = list_devices(&root);
        devices.sort_by_key(|d| d.id);
        assert_eq!(devices.iter().map(|d| d.is_bio_based).collect::<Vec<_>>(), [false, true]);
        let (sda, zram) = (8 << 20, 252 << 20 | 3);
        assert_eq!(initial_histograms(&devices), [(sda, 0), (sda, 2), (zram, 1), (sda, 1), (zram, 0), (zram, 2)]);
    }
}

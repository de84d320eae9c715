//! How long requests of each device take: histograms counted in the kernel (`assets/trace/latency.bpf.c`).

mod maps;

use super::ground::Ground;
use super::kernel::{Unchanged, sum_of_cpus, take_news};
use super::object::{self, attach};
use super::{Probe, Without};
use crate::model::disk::DevId;
use crate::model::latency::LatencyRaw;
use crate::model::section::Section;
use crate::root::Root;
use aya::maps::MapData;
use aya::{Ebpf, include_bytes_aligned};
use maps::{Histograms, Key, pack};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

/// The programs, compiled; `assets/trace/build.sh` makes it anew.
static OBJECT: &[u8] = include_bytes_aligned!("../../../assets/trace/latency.bpf.o");

/// Read all the same after so many readings without news.
const IDLE: u32 = 60;

/// Programs that count, as long as this lives.
pub struct Latency {
    /// Holds the programs and what attaches them.
    _programs: Ebpf,
    histograms: MapData,
    unknown: MapData,
    lost: MapData,
    news: MapData,
    known: Histograms,
    unchanged: Unchanged<Arc<LatencyRaw>>,
    cpus: usize,
    without: Vec<String>,
}

impl Probe for Latency {
    type Read = Arc<LatencyRaw>;

    fn load(ground: &Ground) -> Result<Self, Without> {
        load(ground)
    }

    /// All histograms.
    fn read(&mut self) -> Section<Arc<LatencyRaw>> {
        match self.all() {
            Ok(read) => Section::Ok(read),
            Err(err) => Section::from_io("reading the histograms", &err),
        }
    }
}

impl Latency {
    /// As long as nothing is counted, the reading before.
    fn all(&mut self) -> io::Result<Arc<LatencyRaw>> {
        let news = take_news(self.news.fd().as_fd())?;
        if let Some(same) = self.unchanged.get(news, IDLE) {
            return Ok(same);
        }
        let fd = self.histograms.fd().as_fd();
        self.known.add_unknown(fd, self.unknown.fd().as_fd())?;
        let devices = self.known.read(fd)?;
        let lost = sum_of_cpus(self.lost.fd().as_fd(), self.cpus)?;
        let without = self.without.iter().cloned().chain(self.known.missing()).collect();
        let read = Arc::new(LatencyRaw { devices, lost, without });
        self.unchanged.keep(&read);
        Ok(read)
    }
}

/// Brings in what can be brought in.
fn load(ground: &Ground) -> Result<Latency, Without> {
    let queue_first = |point: &str| ground.points.arguments(point) == Some(2);
    let settings = [
        ("RQ_ISSUE_QUEUE", queue_first("block_rq_issue")),
        ("BIO_QUEUE_QUEUE", queue_first("block_bio_queue")),
    ];
    let mut programs = object::open(ground, OBJECT, &settings)?;
    let mut map = |name| object::take_map(&mut programs, name);
    let (histograms, unknown, lost) = (map("histograms")?, map("unknown")?, map("lost")?);
    let news = map(object::GLOBALS)?;
    let mut known = Histograms::new(ground.cpus);
    let devices = devices(&ground.root);
    for key in wanted(&devices) {
        let added = known.add(histograms.fd().as_fd(), key);
        added.map_err(|err| Without::from_io("making the histograms", &err))?;
    }
    let requests = [("rq_issue", "block_rq_issue"), ("rq_complete", "block_rq_complete")];
    attach(&mut programs, &ground.btf, &requests)?;
    let bios = [("bio_queue", "block_bio_queue"), ("bio_complete", "block_bio_complete")];
    let mut without = Vec::new();
    // They are asked for every bio of every device: only where some device needs it.
    if devices.iter().any(|d| d.bios)
        && let Err(Without::Absent(why) | Without::Denied(why)) = attach(&mut programs, &ground.btf, &bios)
    {
        without.push(format!("devices that work without requests (zram, md, dm): {why}"));
    }
    Ok(Latency {
        _programs: programs,
        histograms,
        unknown,
        lost,
        news,
        known,
        unchanged: Unchanged::default(),
        cpus: ground.cpus,
        without,
    })
}

/// A block device that may do I/O.
struct Device {
    id: DevId,
    /// It takes bios; it has no requests.
    bios: bool,
    /// It has read, written, flushed before.
    used: [bool; 3],
}

/// Devices that have a size. One that cannot be read has none.
fn devices(root: &Root) -> Vec<Device> {
    let Ok(dir) = std::fs::read_dir(root.sys("block")) else { return Vec::new() };
    dir.flatten().filter_map(|entry| device(&entry.path())).collect()
}

fn device(dir: &Path) -> Option<Device> {
    let text = |name: &str| std::fs::read_to_string(dir.join(name)).ok();
    let number = |t: &str| t.parse::<u64>().ok();
    if number(text("size")?.trim())? == 0 {
        return None;
    }
    let dev = text("dev")?;
    let (major, minor) = dev.trim().split_once(':')?;
    let id = DevId { major: major.parse().ok()?, minor: minor.parse().ok()? };
    let stat = text("stat")?;
    let counts: Vec<u64> = stat.split_whitespace().filter_map(number).collect();
    // Documentation/block/stat.rst: the 1st, 5th and 16th field.
    let used = [0, 4, 15].map(|at| counts.get(at).is_some_and(|n| *n > 0));
    Some(Device { id, bios: !dir.join("mq").exists(), used })
}

/// The histograms to begin with: first of what has been used, then of what may be. The rest is made when a request
/// asks for it.
fn wanted(devices: &[Device]) -> Vec<Key> {
    let of = |used: bool| {
        devices.iter().flat_map(move |d| {
            (0..3u32).zip(d.used).filter(move |(_, was)| *was == used).map(|(kind, _)| (pack(d.id), kind))
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
    fn histograms_are_made_of_what_is_used_first() {
        let (_dir, root) = tree(&[
            ("loop0", "7:0", "0", "0 0 0 0", true),
            ("sda", "8:0", "99", "5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 3 1", true),
            ("zram0", "252:3", "8", "0 0 0 0 7 0 0 0 0 0 0", false),
        ]);
        let mut devices = devices(&root);
        devices.sort_by_key(|d| d.id);
        assert_eq!(devices.iter().map(|d| d.bios).collect::<Vec<_>>(), [false, true]);
        let (sda, zram) = (8 << 20, 252 << 20 | 3);
        assert_eq!(wanted(&devices), [(sda, 0), (sda, 2), (zram, 1), (sda, 1), (zram, 0), (zram, 2)]);
    }
}

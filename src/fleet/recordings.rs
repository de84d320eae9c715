//! A directory of recordings as the source: each is a host, at any time that it has.

use super::host::{FleetDevice, FleetFinding, FleetHost, FleetHostId, HostPresence};
use super::source::{DevicesReport, HostsReport};
use crate::doctor::RuleEngine;
use crate::doctor::finding::Severity;
use crate::model::disk::DiskRate;
use crate::model::memory_stalls::THROTTLE;
use crate::model::observation::Change;
use crate::model::system_state::SystemState;
use crate::recording::file_worker::RemoteFile;
use crate::recording::reader::RecordingReader;
use crate::root::Root;
use crate::sanitize::sanitize;
use std::path::{Path, PathBuf};

/// Files that are read of a directory.
const MAX_RECORDINGS: usize = 1000;
/// Samples decoded before the one shown, so that slow detectors have their history.
const WARM_UP_SAMPLES: u32 = 30;
/// A recording that ended longer before than this is gone, seconds.
const GONE_AFTER_SECS: f64 = 60.0;

/// The recordings of a directory.
pub struct RecordingsSource {
    root: Root,
    files: Vec<PathBuf>,
}

/// A host and its devices at a time, or why its file cannot be read.
type HostAt = Result<Option<(FleetHost, Vec<FleetDevice>)>, String>;

impl RecordingsSource {
    /// The recordings of a directory: its files that end in `.iotop`, also rotated ones (`.iotop.1`).
    ///
    /// # Errors
    /// The directory cannot be read, or has none.
    pub fn open(root: &Root, dir: &Path) -> Result<Self, String> {
        let shown = dir.display();
        let entries = std::fs::read_dir(dir)
            .map_err(|err| format!("cannot read {shown}: {}", crate::model::reading::describe_io_error(&err)))?;
        let is_recording = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').ends_with(".iotop") && path.is_file()
        };
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_recording).collect();
        files.sort();
        files.truncate(MAX_RECORDINGS);
        if files.is_empty() {
            return Err(format!("{shown}: no file ends in .iotop; iotop-plus record NAME.iotop writes one"));
        }
        let files = files.into_iter().map(|file| std::path::absolute(&file).unwrap_or(file)).collect();
        Ok(Self { root: root.clone(), files })
    }

    fn reader(&self, file: &Path) -> Result<RecordingReader<RemoteFile>, String> {
        let opened = RemoteFile::open(&self.root, file).map_err(|why| why.to_string())?;
        RecordingReader::open(opened).map_err(|why| format!("{}: {why}", file.display()))
    }

    /// The newest time that any recording has, ns since 1970.
    fn newest_ns(&self) -> Option<i64> {
        self.files.iter().filter_map(|file| Some(self.reader(file).ok()?.span.last_ns)).max()
    }

    /// The hosts and devices at a time, seconds since 1970, by default the newest one.
    pub fn read(&self, time: Option<f64>) -> (HostsReport, DevicesReport) {
        let at_ns = time.map(super::text::wall_ns).or_else(|| self.newest_ns());
        let (mut hosts, mut devices) = (HostsReport::default(), DevicesReport::default());
        hosts.evaluated_at = at_ns.map(|ns| ns as f64 / 1e9);
        for file in &self.files {
            match at_ns.map_or(Ok(None), |at_ns| self.host_at(file, at_ns)) {
                Ok(None) => {}
                Ok(Some((host, of_host))) => {
                    hosts.hosts.push(host);
                    devices.devices.extend(of_host);
                }
                Err(why) => hosts.notes.push(sanitize(why)),
            }
        }
        mark_duplicates(&mut hosts.hosts);
        (hosts, devices)
    }

    /// A recording at a time; `Ok(None)`: it begins later.
    fn host_at(&self, file: &Path, at_ns: i64) -> HostAt {
        let mut reader = self.reader(file)?;
        let describe =
            |err: std::io::Error| format!("{}: {}", file.display(), crate::model::reading::describe_io_error(&err));
        if reader.span.first_ns > at_ns {
            return Ok(None);
        }
        let id = FleetHostId { job: String::new(), instance: file.to_string_lossy().into_owned() };
        let host = FleetHost { id, name: reader.header.host().name, ..FleetHost::default() };
        let late_secs = (at_ns - reader.span.last_ns) as f64 / 1e9;
        if late_secs > GONE_AFTER_SECS {
            let presence = HostPresence::GoneSince(reader.span.last_ns as f64 / 1e9);
            return Ok(Some((FleetHost { presence, ..host }, Vec::new())));
        }
        let (mut system, mut engine) =
            (SystemState::new(reader.header.host(), reader.header.log_clock()), RuleEngine::default());
        let number = reader.tick_number_at(at_ns).map_err(describe)?;
        let first = number.saturating_sub(WARM_UP_SAMPLES).max(reader.span.first_number);
        for observation in reader.seek(first).map_err(describe)? {
            system.apply(observation);
        }
        while let Some(tick) = reader.next_tick().map_err(describe)? {
            let (number_now, wall_ns) = (tick.number, tick.wall_ns);
            if wall_ns > at_ns && system.now().wall_ns > 0 {
                break;
            }
            for observation in tick.full_state.into_iter().flatten().chain(tick.observations) {
                if system.apply(observation) == Change::Tasks {
                    engine.evaluate(&system);
                }
            }
            engine.evaluate(&system);
            if number_now >= number {
                break;
            }
        }
        let devices = devices_of_system(&host, &system);
        Ok(Some((host_of_system(host, &system, &engine, at_ns), devices)))
    }
}

fn host_of_system(host: FleetHost, system: &SystemState, engine: &RuleEngine, at_ns: i64) -> FleetHost {
    let snapshot = &*system.snapshot;
    let findings = engine.incidents.iter().flat_map(|incident| &incident.findings);
    let mut findings: Vec<FleetFinding> = findings
        .filter(|finding| finding.severity > Severity::Note)
        .map(|f| FleetFinding { severity: f.severity, rule: f.rule.to_owned(), subject: f.subject.name() })
        .collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let writeback = snapshot.writeback.ok();
    let limit = writeback.and_then(|w| w.dirty_threshold_bytes).filter(|limit| *limit > 0);
    let unwritten = writeback.and_then(|w| w.unwritten_bytes());
    let devices = snapshot.devices.ok();
    FleetHost {
        findings: (engine.evaluated_at_ns > 0).then_some(findings),
        io_pressure_pct: snapshot.pressure.ok().and_then(|p| p.io.some).map(|some| some.avg10),
        stalled_devices: devices.map(|devices| devices.iter().filter(|device| device.stalled).count() as u64),
        dirty_bytes: writeback.and_then(|w| w.dirty_bytes).map(|bytes| bytes as f64),
        dirty_pct: unwritten.zip(limit).map(|(unwritten, limit)| unwritten as f64 / limit as f64 * 100.0),
        throttled: snapshot
            .memory_stalls
            .ok()
            .and_then(|stalls| stalls.totals[THROTTLE].as_ref())
            .map(|rate| rate.ms_per_s / 1e3),
        hung_tasks: system.processes_status.ok().map(|_| system.hung_tasks.len() as u64),
        age_secs: Some(((at_ns - system.now().wall_ns) as f64 / 1e9).max(0.0)),
        ..host
    }
}

fn devices_of_system(host: &FleetHost, system: &SystemState) -> Vec<FleetDevice> {
    let topology = system.topology.ok();
    let is_whole = |rate: &DiskRate| {
        let device = topology.and_then(|t| t.get(rate.id));
        device.is_none_or(|d| d.kind != crate::model::topology::DeviceKind::Partition)
    };
    let p99 = |rate: &DiskRate| {
        let kinds = rate.latency.as_ref()?.kinds.iter();
        kinds.filter_map(|kind| Some(kind.total?.p99 / 1e6)).reduce(f64::max)
    };
    let device = |rate: &DiskRate| FleetDevice {
        host: host.id.clone(),
        host_name: host.name.clone(),
        device: sanitize(&*rate.name),
        model: topology.and_then(|t| t.get(rate.id)?.model.clone()).filter(|model| !model.is_empty()),
        requests_per_sec: Some(rate.tps),
        bytes_per_sec: Some((rate.read_mb_per_s + rate.write_mb_per_s) * 1_048_576.0),
        mean_secs: Some(rate.await_ms / 1e3).filter(|_| rate.tps > 0.0),
        p99_secs: p99(rate),
        is_stalled: rate.stalled,
        verdict: None,
    };
    system.snapshot.devices.ok().into_iter().flatten().filter(|rate| is_whole(rate)).map(|rate| device(rate)).collect()
}

/// Hosts of one name have the file's name beside it.
fn mark_duplicates(hosts: &mut [FleetHost]) {
    let names: Vec<String> = hosts.iter().map(|host| host.name.clone()).collect();
    for host in hosts.iter_mut().filter(|host| names.iter().filter(|name| **name == host.name).count() > 1) {
        let file = Path::new(&host.id.instance).file_name().unwrap_or_default().to_string_lossy().into_owned();
        (host.name, host.is_duplicate) = (format!("{} {}", host.name, sanitize(file)), true);
    }
}

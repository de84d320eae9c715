//! Recordings of hosts: copies of healthy ones and of some in trouble, each with its own name.

use clap::Parser;
use iotop_plus::cli::{self, Cli};
use iotop_plus::model::latency::{DeviceHistograms, LatencyRaw, SparseHistogram};
use iotop_plus::model::observation::Observation;
use iotop_plus::model::reading::Reading;
use iotop_plus::recording::reader::RecordingReader;
use iotop_plus::recording::writer::{RecorderOptions, RecorderState, RecordingWriter};
use iotop_plus::root::Root;
use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Hosts without trouble, below `tests/fixtures`. Half of them are databases, siblings of the one that is slow.
const HEALTHY: [&str; 6] = [
    DATABASE,
    "doctor/healthy-compile.iotop",
    DATABASE,
    "doctor/healthy-idle.iotop",
    DATABASE,
    "doctor/healthy-backup-idle-class.iotop",
];
const DATABASE: &str = "doctor/healthy-database.iotop";
/// The hosts in trouble: number, what is wrong, and the recording.
pub const TROUBLES: [(usize, &str, &str); 4] = [
    (17, "a slow disk", "situations/slow-disk.iotop"),
    (42, "a storm of dirty pages", "situations/dirty-storm.iotop"),
    (63, FAIL_SLOW, DATABASE),
    (88, "I/O errors", "situations/io-error.iotop"),
];
const FAIL_SLOW: &str = "a device that takes eight times as long as its siblings";
/// Buckets of a histogram of latency for eight times as long: three powers of two.
const EIGHT_TIMES: u16 = 3 * 16;

/// The child that writes a recording is a process of this program: its exit code, if this is it.
pub fn run_file_worker() -> Option<ExitCode> {
    std::env::args().any(|arg| arg == "record-io").then(|| match Cli::try_parse() {
        Ok(cli) => cli::run(cli),
        Err(err) => cli::print_usage_error(&err),
    })
}

/// Writes a recording for each host. Returns the files in the order of the hosts.
pub fn write_recordings(dir: &Path, hosts: usize) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let write = |at: usize| {
        let trouble = TROUBLES.iter().find(|(host, ..)| host % hosts == at);
        let from = fixtures.join(trouble.map_or(HEALTHY[at % HEALTHY.len()], |(.., file)| file));
        let to = dir.join(format!("host-{at:03}.iotop"));
        copy(&from, &to, at, trouble.is_some_and(|(_, what, _)| *what == FAIL_SLOW))?;
        Ok(to)
    };
    (0..hosts).map(write).collect()
}

fn copy(from: &Path, to: &Path, number: usize, is_fail_slow: bool) -> Result<(), Box<dyn Error>> {
    let mut reader = RecordingReader::open(File::open(from)?)?;
    let mut header = reader.header.clone();
    header.host = format!("host-{number:03}");
    let options = RecorderOptions { path: to.into(), replace: true, max_size: None, rotate: None };
    let mut writer = RecordingWriter::start(&Root::live(), options, header)?;
    while let Some(tick) = reader.next_tick()? {
        let all = tick.full_state.into_iter().flatten().chain(tick.observations);
        writer.record_tick(all.map(|one| if is_fail_slow { slowed(one) } else { one }).collect(), tick.wall_ns);
    }
    writer.finish();
    while writer.status().state == RecorderState::Running {
        std::thread::sleep(Duration::from_millis(5));
    }
    match writer.status().state {
        RecorderState::Done => Ok(()),
        other => Err(format!("{}: {other:?}", to.display()).into()),
    }
}

/// The same work of the devices, of which each request took eight times as long.
fn slowed(observation: Observation) -> Observation {
    let Observation::Sample(mut sample) = observation else { return observation };
    if let Reading::Ok(disks) = &mut sample.disks {
        for disk in disks {
            disk.read.ms *= 8;
            disk.write.ms *= 8;
        }
    }
    if let Reading::Ok(latency) = &mut sample.latency {
        *latency = Arc::new(slowed_latency(latency));
    }
    Observation::Sample(sample)
}

fn slowed_latency(latency: &LatencyRaw) -> LatencyRaw {
    let shift = |histogram: &SparseHistogram| {
        SparseHistogram::from_sparse(histogram.buckets().iter().map(|(bucket, n)| (bucket + EIGHT_TIMES, *n)))
    };
    let slowed = |device: &DeviceHistograms| {
        let mut device = device.clone();
        for kind in &mut device.kinds {
            (kind.total, kind.service) = (shift(&kind.total), shift(&kind.service));
        }
        device
    };
    LatencyRaw { devices: latency.devices.iter().map(slowed).collect(), ..latency.clone() }
}

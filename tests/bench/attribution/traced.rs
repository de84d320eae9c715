//! What the program has counted.

use crate::stage::Disk;
use iotop_plus::bpf::Tracer;
use iotop_plus::model::device_id::DevId;
use iotop_plus::model::file_io::{FileClass, FileIoRaw};
use iotop_plus::model::io_accounting::AccountKind;
use iotop_plus::root::Root;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// Longer than loading takes.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Read,
    Write,
    Flush,
}

/// Requests, and their times from the allocation to the completion.
#[derive(Debug, Clone, Copy, Default)]
pub struct Times {
    pub requests: u64,
    pub ns: u64,
}

impl Times {
    pub fn add(&mut self, other: Times) {
        *self = Times { requests: self.requests + other.requests, ns: self.ns + other.ns };
    }

    pub fn ms(&self) -> f64 {
        self.ns as f64 / 1e6
    }

    pub fn mean_ms(&self) -> f64 {
        self.ms() / self.requests.max(1) as f64
    }
}

/// By process and kind.
pub type ByTask = BTreeMap<(u32, Kind), Times>;

pub fn load_tracer(has_files: bool) -> Result<Tracer, String> {
    let tracer = Tracer::new(&Root::live());
    tracer.request_files(has_files);
    tracer.start();
    let began = Instant::now();
    while tracer.io_accounting.read().ok().is_none() || (has_files && tracer.files.read().ok().is_none()) {
        if began.elapsed() > TIMEOUT {
            return Err(format!("{:?}, {:?}", tracer.io_accounting.read(), tracer.files.read()));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(tracer)
}

pub fn device_id(disk: &Disk) -> DevId {
    let device = rustix::fs::stat(disk.path.as_str()).expect("the disk").st_rdev;
    DevId { major: rustix::fs::major(device), minor: rustix::fs::minor(device) }
}

/// What tasks have done on a device since tracing began.
pub fn read_tasks(tracer: &Tracer, device: DevId) -> ByTask {
    let read = tracer.io_accounting.read();
    let raw = read.ok().expect("accounts");
    let mut out = ByTask::new();
    for account in raw.accounts.iter().filter(|a| a.key.device == device) {
        let kind = match account.key.kind {
            AccountKind::Read => Kind::Read,
            AccountKind::Write => Kind::Write,
            AccountKind::Flush => Kind::Flush,
            _ => continue,
        };
        let times = Times { requests: account.requests, ns: account.total_ns };
        out.entry((account.key.pid, kind)).or_default().add(times);
    }
    out
}

/// What was done since a reading.
pub fn since(now: &ByTask, before: &ByTask) -> ByTask {
    let minus = |key, now: &Times| {
        let before: Times = before.get(key).copied().unwrap_or_default();
        Times { requests: now.requests - before.requests, ns: now.ns - before.ns }
    };
    now.iter().map(|(key, now)| (*key, minus(key, now))).filter(|(_, times)| times.requests > 0).collect()
}

/// Bytes of a file that were read from and written to the device.
pub fn file_bytes(tracer: &Tracer, path: &Path) -> [u64; 2] {
    use std::os::unix::fs::MetadataExt as _;
    let ino = std::fs::metadata(path).expect("the file").ino();
    let read = tracer.files.read();
    let raw: &FileIoRaw = read.ok().expect("files");
    let mut bytes = [0; 2];
    for account in raw.accounts.iter().filter(|a| a.key.class == FileClass::File && a.key.file.ino == ino) {
        bytes[usize::from(account.key.is_write)] += account.bytes;
    }
    bytes
}

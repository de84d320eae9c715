//! Access to knobs: the trait, which tests implement with a simulated kernel, and the implementation for the real
//! one.

pub use super::knob::KnobReading;
use super::knob::{AllowedValues, KnobLocation};
use super::knob_id::KnobId;
use super::syscalls::{ioprio_get, ioprio_set, mount_setattr};
use super::value::{is_plausible, parse_file_limit, parse_io_prio};
use crate::model::reading::describe_io_error;
use crate::parse::{bracketed_choice, mountinfo, task};
use crate::root::Root;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::process::{Pid, Resource, Rlimit};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Why a knob could not be read or written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub enum KnobError {
    /// This kernel, device, mount or process does not have the knob.
    Absent(String),
    /// A privilege is missing.
    Denied(String),
    /// The kernel rejects the value, or its own value is not understood.
    Invalid(String),
    /// The access did not return in time; it may still take effect.
    Blocked(String),
}

impl KnobError {
    fn from_io(knob_id: &KnobId, err: &io::Error) -> Self {
        let text = format!("{knob_id}: {}", describe_io_error(err));
        match err.raw_os_error() {
            Some(libc::EACCES | libc::EPERM | libc::EROFS) => KnobError::Denied(text),
            Some(libc::ENOENT | libc::ESRCH | libc::ENODEV | libc::ENOTDIR | libc::ENXIO | libc::ENOSYS) => {
                KnobError::Absent(text)
            }
            _ => KnobError::Invalid(text),
        }
    }
}

/// Reads and writes knobs.
pub trait KnobIo {
    /// The current value.
    fn read(&mut self, knob_id: &KnobId) -> Result<KnobReading, KnobError>;
    /// Writes a value in the kernel's notation.
    fn write(&mut self, knob_id: &KnobId, value: &str) -> Result<(), KnobError>;
    /// Distinguishes the device, mount or process from a later one of the same name.
    fn identity(&mut self, knob_id: &KnobId) -> Result<String, KnobError>;

    /// Reads several knobs.
    fn read_all(&mut self, all: &[KnobId]) -> Vec<Result<KnobReading, KnobError>> {
        all.iter().map(|knob_id| self.read(knob_id)).collect()
    }
}

/// Accesses knobs in this process. Access to knobs of devices and mounts may block.
#[derive(Debug, Clone)]
pub struct DirectKnobIo {
    root: Root,
    /// The mounts as last read, and when: reading the options of thousands must not read the table as often.
    mounts: Option<(Instant, Mounts)>,
}

/// Identity and options of the topmost mount at each mount point.
type Mounts = HashMap<Vec<u8>, (String, String)>;

/// How long options of a mount are taken from the table read last.
const MOUNTS_AGE: Duration = Duration::from_millis(100);

impl DirectKnobIo {
    /// For the machine or tree at `root`.
    pub fn new(root: Root) -> Self {
        Self { root, mounts: None }
    }

    fn require_live(&self, knob_id: &KnobId) -> Result<(), KnobError> {
        match self.root.is_live() {
            true => Ok(()),
            false => Err(KnobError::Absent(format!("{knob_id}: only on the running machine"))),
        }
    }

    /// The topmost mount at the knob's mount point: its identity and its options.
    fn find_mount(&mut self, knob_id: &KnobId, oldest: Duration) -> Result<&(String, String), KnobError> {
        let is_recent = |(read_at, _): &(Instant, Mounts)| read_at.elapsed() < oldest;
        if !self.mounts.as_ref().is_some_and(is_recent) {
            let table =
                std::fs::read(self.root.mount_table("mountinfo")).map_err(|e| KnobError::from_io(knob_id, &e))?;
            let mounts = mountinfo::parse(&table).map(|mount| {
                let options = String::from_utf8_lossy(mount.options.as_bytes()).into_owned();
                (mount.mount_point.as_bytes().to_vec(), (format!("{} {}", mount.id, mount.device), options))
            });
            // Of several mounts at one point the last one counts.
            self.mounts = Some((Instant::now(), mounts.collect()));
        }
        let found = self.mounts.as_ref().and_then(|(_, mounts)| mounts.get(knob_id.instance().as_bytes()));
        found.ok_or_else(|| KnobError::Absent(format!("{knob_id}: nothing is mounted there")))
    }

    /// A file of `/proc/PID`.
    fn read_process_file(&self, knob_id: &KnobId, file: &str) -> Result<String, KnobError> {
        let path = self.root.proc(&format!("{}/{file}", knob_id.instance()));
        read_text(&path).map_err(|e| KnobError::from_io(knob_id, &e))
    }

    /// The threads whose I/O priority is set: all threads of a process, or a single thread.
    fn thread_ids(&self, knob_id: &KnobId) -> Result<Vec<u32>, KnobError> {
        let status = self.read_process_file(knob_id, "status")?;
        let leader = status.lines().find_map(|l| l.strip_prefix("Tgid:")).map(str::trim);
        if leader != Some(knob_id.instance()) {
            return Ok(knob_id.instance().parse().into_iter().collect());
        }
        let dir = std::fs::read_dir(self.root.proc(&format!("{}/task", knob_id.instance())));
        let dir = dir.map_err(|e| KnobError::from_io(knob_id, &e))?;
        Ok(dir.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).collect())
    }

    /// What `call` returns for each thread; those that have ended meanwhile are left out.
    fn for_each_thread<T>(&self, knob_id: &KnobId, call: impl Fn(u32) -> io::Result<T>) -> Result<Vec<T>, KnobError> {
        let results = self.thread_ids(knob_id)?.into_iter().map(call);
        let is_ended =
            |result: &io::Result<T>| result.as_ref().is_err_and(|err| err.raw_os_error() == Some(libc::ESRCH));
        results.filter(|r| !is_ended(r)).map(|r| r.map_err(|err| KnobError::from_io(knob_id, &err))).collect()
    }

    fn read_io_prio(&self, knob_id: &KnobId) -> Result<String, KnobError> {
        self.require_live(knob_id)?;
        let all = self.for_each_thread(knob_id, ioprio_get)?;
        let first = all.first().ok_or_else(|| KnobError::Absent(format!("{knob_id}: no such process")))?;
        match all.iter().all(|other| other == first) {
            true => Ok(first.to_string()),
            false => Err(KnobError::Invalid(format!("{knob_id}: its threads differ; name one thread instead"))),
        }
    }

    fn write_io_prio(&self, knob_id: &KnobId, value: &str) -> Result<(), KnobError> {
        let invalid = || KnobError::Invalid(format!("{knob_id}: {value} is no I/O priority"));
        let priority = parse_io_prio(value).ok_or_else(invalid)?;
        self.for_each_thread(knob_id, |tid| ioprio_set(tid, priority)).map(drop)
    }

    fn read_nofile(&self, knob_id: &KnobId) -> Result<String, KnobError> {
        let limits = self.read_process_file(knob_id, "limits")?;
        let line = limits.lines().find_map(|l| l.strip_prefix("Max open files"));
        let mut words = line.unwrap_or_default().split_ascii_whitespace();
        match (words.next(), words.next()) {
            (Some(soft), Some(hard)) => Ok(format!("{soft}:{hard}")),
            _ => Err(KnobError::Absent(format!("{knob_id}: its limit of open files cannot be read"))),
        }
    }

    fn write_nofile(&self, knob_id: &KnobId, value: &str) -> Result<(), KnobError> {
        let invalid = || KnobError::Invalid(format!("{knob_id}: {value} is no limit"));
        let (soft, hard) = value.split_once(':').ok_or_else(invalid)?;
        let limit = |text| parse_file_limit(text).ok_or_else(invalid);
        let pid = knob_id.instance().parse().ok().and_then(Pid::from_raw).ok_or_else(invalid)?;
        let new = Rlimit { current: limit(soft)?, maximum: limit(hard)? };
        let done = rustix::process::prlimit(Some(pid), Resource::Nofile, new);
        done.map(drop).map_err(|e| KnobError::from_io(knob_id, &e.into()))
    }

    fn write_atime(&self, knob_id: &KnobId, value: &str) -> Result<(), KnobError> {
        // linux/mount.h: MOUNT_ATTR__ATIME, _NOATIME, _STRICTATIME, _NODIRATIME; relatime is 0.
        const ATIME: u64 = 0x70;
        const NODIRATIME: u64 = 0x80;
        let mut set = 0;
        for word in value.split(',') {
            set |= match word {
                "noatime" => 0x10,
                "strictatime" => 0x20,
                "nodiratime" => NODIRATIME,
                _ => 0,
            };
        }
        if self.root.is_of_host() {
            // The kernel changes only mounts of the caller's mount namespace, and the container's mounts are others.
            let why = "a mount of the host is changed on the host, not from a container";
            return Err(KnobError::Absent(format!("{knob_id}: {why}")));
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mount = rustix::fs::openat(CWD, knob_id.instance(), flags, Mode::empty()).map_err(io::Error::from);
        let done = mount.and_then(|fd| mount_setattr(fd.as_fd(), set, ATIME | NODIRATIME));
        done.map_err(|e| match e.raw_os_error() {
            Some(libc::ENOSYS) => KnobError::Absent(format!("{knob_id}: needs Linux 5.12 (mount_setattr)")),
            _ => KnobError::from_io(knob_id, &e),
        })
    }
}

impl KnobIo for DirectKnobIo {
    fn read(&mut self, knob_id: &KnobId) -> Result<KnobReading, KnobError> {
        let bare = |value: String| KnobReading { value, ..KnobReading::default() };
        let Some(path) = knob_id.path(&self.root) else {
            return match knob_id.definition().location {
                KnobLocation::Atime => {
                    self.find_mount(knob_id, MOUNTS_AGE).map(|(_, options)| bare(parse_atime_options(options)))
                }
                KnobLocation::Nofile => self.read_nofile(knob_id).map(bare),
                _ => self.read_io_prio(knob_id).map(bare),
            };
        };
        let text = read_text(&path).map_err(|e| KnobError::from_io(knob_id, &e))?;
        let text = text.trim();
        let (value, choices) = match knob_id.definition().values {
            AllowedValues::Listed => {
                let (active, all) = bracketed_choice(text);
                (active.unwrap_or_default().to_owned(), all.into_iter().map(str::to_owned).collect())
            }
            _ => (text.to_owned(), Vec::new()),
        };
        if !is_plausible(knob_id.definition(), &value) {
            return Err(KnobError::Invalid(format!("{knob_id}: not understood: {:?}", text.get(..60).unwrap_or(text))));
        }
        let max = (knob_id.definition().name == "max_sectors_kb")
            .then(|| read_text(&path.with_file_name("max_hw_sectors_kb")).ok()?.trim().parse().ok())
            .flatten();
        Ok(KnobReading { value, choices, max })
    }

    fn write(&mut self, knob_id: &KnobId, value: &str) -> Result<(), KnobError> {
        self.mounts = None;
        let Some(path) = knob_id.path(&self.root) else {
            self.require_live(knob_id)?;
            return match knob_id.definition().location {
                KnobLocation::Atime => self.write_atime(knob_id, value),
                KnobLocation::Nofile => self.write_nofile(knob_id, value),
                _ => self.write_io_prio(knob_id, value),
            };
        };
        let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NOCTTY;
        // A captured tree holds regular files, whose old content must be truncated.
        let flags = if self.root.is_live() { flags } else { flags | OFlags::TRUNC };
        let line = format!("{value}\n");
        // A single write call: what the kernel did not take of a value it would take for another one.
        let done = rustix::fs::openat(CWD, &path, flags, Mode::empty())
            .and_then(|fd| rustix::io::retry_on_intr(|| rustix::io::write(&fd, line.as_bytes())));
        match done.map_err(|err| KnobError::from_io(knob_id, &err.into()))? {
            taken if taken == line.len() => Ok(()),
            taken => {
                let len = line.len();
                Err(KnobError::Invalid(format!("{knob_id}: the kernel took {taken} of the {len} bytes of {value}")))
            }
        }
    }

    fn identity(&mut self, knob_id: &KnobId) -> Result<String, KnobError> {
        match knob_id.definition().location {
            KnobLocation::Sysctl | KnobLocation::Sys(_) => Ok(String::new()),
            KnobLocation::Queue | KnobLocation::Bdi => {
                let dir = self.root.sys(&format!("block/{}", knob_id.instance()));
                if !dir.is_dir() {
                    return Err(KnobError::Absent(format!(
                        "{knob_id}: no such disk (a partition has no queue of its own)"
                    )));
                }
                // diskseq (Linux 5.15) is unique; older kernels only have the device number.
                let one = |file: &str| read_text(&dir.join(file)).map(|t| t.trim().to_owned());
                Ok(one("diskseq").or_else(|_| one("dev")).unwrap_or_default())
            }
            KnobLocation::Atime => self.find_mount(knob_id, Duration::ZERO).map(|(id, _)| id.clone()),
            KnobLocation::Nofile | KnobLocation::IoPrio => {
                let stat = self.read_process_file(knob_id, "stat")?;
                Ok(task::stat(stat.as_bytes()).map(|stat| stat.starttime.to_string()).unwrap_or_default())
            }
        }
    }
}

fn parse_atime_options(options: &str) -> String {
    let has = |name: &str| options.split(',').any(|o| o == name);
    let mode = match (has("noatime"), has("relatime")) {
        (true, _) => "noatime",
        (_, true) => "relatime",
        _ => "strictatime",
    };
    format!("{mode}{}", if has("nodiratime") { ",nodiratime" } else { "" })
}

/// Reads a kernel file, at most 1 MiB; invalid UTF-8 becomes replacement characters.
fn read_text(path: &std::path::Path) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let fd = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
    let mut bytes = Vec::new();
    std::fs::File::from(fd).take(1 << 20).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knob_id(text: &str) -> KnobId {
        KnobId::parse(text).unwrap()
    }

    #[test]
    fn a_captured_tree_is_read_and_written() {
        let dir = tempfile::tempdir().unwrap();
        let queue = dir.path().join("sys/block/vda/queue");
        std::fs::create_dir_all(&queue).unwrap();
        std::fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        std::fs::write(queue.join("scheduler"), "none [mq-deadline] bfq\n").unwrap();
        std::fs::write(queue.join("max_sectors_kb"), "1280\n").unwrap();
        std::fs::write(queue.join("max_hw_sectors_kb"), "2048\n").unwrap();
        std::fs::write(dir.path().join("sys/block/vda/diskseq"), "9\n").unwrap();
        std::fs::write(
            dir.path().join("proc/self/mountinfo"),
            "21 1 8:1 / /a\\040b rw,relatime - ext4 /dev/x rw\n22 1 8:2 / /a\\040b rw,noatime - ext4 /dev/y rw\n",
        )
        .unwrap();
        let mut io = DirectKnobIo::new(Root::at(dir.path()));
        let got = io.read(&knob_id("scheduler@vda")).unwrap();
        assert_eq!((got.value.as_str(), got.choices.len()), ("mq-deadline", 3));
        assert_eq!(io.read(&knob_id("max_sectors_kb@vda")).unwrap().max, Some(2048));
        io.write(&knob_id("max_sectors_kb@vda"), "64").unwrap();
        assert_eq!(io.read(&knob_id("max_sectors_kb@vda")).unwrap().value, "64");
        assert_eq!(io.identity(&knob_id("scheduler@vda")).unwrap(), "9");
        assert_eq!(io.read(&knob_id("atime@/a b")).unwrap().value, "noatime", "the topmost mount");
        assert_eq!(io.identity(&knob_id("atime@/a b")).unwrap(), "22 8:2");
        assert!(matches!(io.identity(&knob_id("scheduler@vdz")), Err(KnobError::Absent(_))));
        assert!(matches!(io.read(&knob_id("atime@/c")), Err(KnobError::Absent(_))));
        assert!(matches!(io.write(&knob_id("nofile@1"), "16:16"), Err(KnobError::Absent(_))));
    }

    #[test]
    fn junk_is_refused_as_invalid() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc/sys/vm")).unwrap();
        let mut io = DirectKnobIo::new(Root::at(dir.path()));
        for junk in ["", "\x1b[2J", "12 13", "ééééééééééééééééééééééééééééééééééééé"]
        {
            std::fs::write(dir.path().join("proc/sys/vm/swappiness"), junk).unwrap();
            assert!(matches!(io.read(&knob_id("vm.swappiness")), Err(KnobError::Invalid(_))), "{junk}");
        }
    }
}

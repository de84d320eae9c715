//! Tasks stalled on purpose: a writer on a device with a low dirty limit, a reader in a control group with little
//! memory. Settings of the whole machine are not changed.

use crate::machine::{LoopDevice, check_tracing};
use crate::poll_until;
use iotop_plus::bpf::Tracer;
use iotop_plus::model::memory_stalls::{MemoryStallsRaw, RECLAIM, StallCounter, THROTTLE, TaskStallCounters};
use iotop_plus::model::reading::Reading;
use iotop_plus::root::Root;
use rustix::fs::{Advice, fadvise};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

fn load_tracer() -> Tracer {
    let tracer = Tracer::new(&Root::live());
    tracer.start();
    poll_until("the programs", || tracer.stalls.read().ok().map(drop));
    tracer
}

fn read_stalls(tracer: &Tracer) -> MemoryStallsRaw {
    match tracer.stalls.read() {
        Reading::Ok(raw) => raw,
        other => panic!("{other:?}"),
    }
}

/// A child process, killed and reaped when this is dropped.
struct ChildTask(Child);

impl ChildTask {
    fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// Waits until it stalled in that way; returns its counters and the longest stall seen.
    fn wait_until_stalled(&self, tracer: &Tracer, kind: usize) -> (TaskStallCounters, u64) {
        let mut longest = 0;
        let found = poll_until("the task to be held up", || {
            let raw = read_stalls(tracer);
            let task = raw.tasks.into_iter().find(|t| t.pid == self.0.id())?;
            longest = longest.max(task.counters[kind].max_ns);
            (task.counters[kind].count >= 3).then_some(task)
        });
        (found, longest)
    }
}

impl Drop for ChildTask {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A device whose own dirty limits throttle writers (Linux 6.2). The limits outlive the file of a loop device, so they
/// are restored.
struct ThrottledDevice {
    device: LoopDevice,
    bdi: PathBuf,
    saved_limits: Vec<(&'static str, String)>,
}

impl ThrottledDevice {
    fn new(device: LoopDevice) -> Result<Self, String> {
        let bdi = Root::live().sys(&format!("class/bdi/{}:{}", device.id.0, device.id.1));
        let mut throttled = Self { device, bdi, saved_limits: Vec::new() };
        // The kernel stores the limit as a share of the machine's limit, so it is restored as that.
        for (name, value, share) in [("max_bytes", "1048576", "max_ratio"), ("strict_limit", "1", "strict_limit")] {
            let failed = |err: std::io::Error| format!("{name} of its bdi: {err}");
            throttled.saved_limits.push((share, std::fs::read_to_string(throttled.bdi.join(share)).map_err(failed)?));
            std::fs::write(throttled.bdi.join(name), value).map_err(failed)?;
        }
        Ok(throttled)
    }
}

impl Drop for ThrottledDevice {
    fn drop(&mut self) {
        for (name, value) in &self.saved_limits {
            let _ = std::fs::write(self.bdi.join(name), value);
        }
    }
}

#[test]
fn a_throttled_writer_is_reported_with_its_pauses() {
    let device = check_tracing().and_then(|()| LoopDevice::new(512 << 20));
    let throttled = match device.and_then(ThrottledDevice::new) {
        Ok(throttled) => throttled,
        Err(why) => return println!("skipped a_throttled_writer_is_named_with_its_pauses: {why}"),
    };
    let device = &throttled.device;
    let (tracer, rare) = (load_tracer(), load_tracer());
    let mut write = Command::new("dd");
    write.args(["if=/dev/zero", "bs=64k", "count=1000000"]).arg(format!("of={}", device.path.display()));
    // It is killed after it was stalled; its counters outlive it.
    let mut writer = ChildTask::start(&mut write);
    let (task, longest) = writer.wait_until_stalled(&tracer, THROTTLE);
    println!("{task:?}, longest {longest} ns");
    let counted = task.counters[THROTTLE];
    assert_eq!((&*task.comm, &*task.bdi), (&b"dd"[..], format!("{}:{}", device.id.0, device.id.1).as_bytes()));
    // A pause is at least a tick and at most 200 ms: MAX_PAUSE in mm/page-writeback.c.
    assert!(
        counted.total_ns >= counted.count * 1_000_000 && counted.total_ns <= counted.count * 200_000_000,
        "{counted:?}"
    );
    assert!((1_000_000..=200_000_000).contains(&longest), "{longest}");
    assert_eq!(task.starttime, starttime(task.pid));
    writer.0.kill().unwrap();
    writer.0.wait().unwrap();
    // A tracer that reads only now sees everything in one period.
    let of = |tracer: &Tracer| {
        read_stalls(tracer).tasks.into_iter().find(|t| t.pid == task.pid).map(|t| t.counters[THROTTLE])
    };
    let (all, seen) = (of(&rare).expect("the writer"), of(&tracer).expect("the writer"));
    assert_eq!((all.count, all.total_ns), (seen.count, seen.total_ns));
    assert!(all.count >= counted.count && all.max_ns >= longest, "{all:?}");
    let quiet = StallCounter { max_ns: 0, ..all };
    assert_eq!((of(&rare), of(&rare)), (Some(quiet), Some(quiet)), "nothing came since");
}

/// Returns the start time, as in the process table.
fn starttime(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(Root::live().proc(&format!("{pid}/stat"))).unwrap();
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap()
}

/// A control group with limited memory; removed when this is dropped.
struct MemoryCgroup(PathBuf);

impl MemoryCgroup {
    fn new(bytes: u64) -> Result<Self, String> {
        let cgroups = Root::live().sys("fs/cgroup");
        let places = [(cgroups.clone(), "memory.max"), (cgroups.join("memory"), "memory.limit_in_bytes")];
        let mut why = String::from("no control groups of memory");
        for (at, limit) in places {
            let dir = at.join(format!("iotop-plus-test-{}", std::process::id()));
            if !at.join("cgroup.procs").exists() || std::fs::create_dir(&dir).is_err() {
                continue;
            }
            let group = Self(dir);
            match std::fs::write(group.0.join(limit), bytes.to_string()) {
                Ok(()) => return Ok(group),
                Err(err) => why = format!("{limit}: {err}"),
            }
        }
        Err(why)
    }
}

impl Drop for MemoryCgroup {
    fn drop(&mut self) {
        poll_until("the control group to be empty", || std::fs::remove_dir(&self.0).ok());
    }
}

/// Creates a file that is not in the page cache.
fn uncached_file(bytes: usize) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new_in(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap();
    std::fs::write(file.path(), vec![7; bytes]).unwrap();
    rustix::fs::fsync(file.as_file()).unwrap();
    fadvise(file.as_file(), 0, None, Advice::DontNeed).unwrap();
    file
}

#[test]
fn a_reader_in_direct_reclaim_is_reported() {
    let group = match check_tracing().and_then(|()| MemoryCgroup::new(8 << 20)) {
        Ok(group) => group,
        Err(why) => return println!("skipped a_reader_that_has_to_make_room_itself_is_named: {why}"),
    };
    let tracer = load_tracer();
    let file = uncached_file(96 << 20);
    let mut reader = Command::new("sh");
    reader.arg("-c").arg(r#"echo $$ > "$1/cgroup.procs" && cat "$2" && exec sleep 1000"#);
    let reader = ChildTask::start(reader.arg("sh").arg(&group.0).arg(file.path()));
    let (cat, ns) = poll_until("a reader to be held up", || {
        let raw = read_stalls(&tracer);
        let cat = raw.tasks.into_iter().find(|t| t.comm == b"cat" && t.counters[RECLAIM].count >= 3)?;
        let ns = cat.counters[RECLAIM].total_ns;
        Some((cat, ns))
    });
    println!("{cat:?}");
    assert!(ns > 0 && cat.counters[THROTTLE].count == 0, "{cat:?}");
    // The reader must leave the group before it can be removed.
    drop(reader);
    drop(group);
}

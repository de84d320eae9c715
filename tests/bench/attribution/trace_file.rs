//! Block requests as tracefs writes them: an instance of its own with the events of one device.

use crate::stage::{Result, run};
use crate::traced::{ByTask, Kind, Times};
use iotop_plus::model::device_id::DevId;
use rustix::fs::{Mode, OFlags};
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

/// A request begins, and ends.
const EVENTS: [&str; 2] = ["block_io_start", "block_rq_complete"];

/// The events of a device, written until [`TraceFile::finish`].
pub struct TraceFile {
    /// Where tracefs is mounted.
    mount: tempfile::TempDir,
    instance: PathBuf,
    is_over: Arc<AtomicBool>,
    reader: Option<JoinHandle<Vec<u8>>>,
}

impl TraceFile {
    pub fn start(device: DevId) -> Result<Self> {
        let mount = tempfile::tempdir().map_err(|err| err.to_string())?;
        run("mount", &["-t", "tracefs", "tracefs", &mount.path().to_string_lossy()])?;
        let instance = mount.path().join("instances").join(format!("attribution-{}", std::process::id()));
        let mut out = Self { mount, instance, is_over: Arc::default(), reader: None };
        fs::create_dir(&out.instance).map_err(|err| format!("needs an instance of tracefs: {err}"))?;
        out.set("trace_clock", "mono")?;
        out.set("buffer_size_kb", "32768")?;
        for event in EVENTS {
            let filter = format!("dev == {}", u64::from(device.major) << 20 | u64::from(device.minor));
            out.set(&format!("events/block/{event}/filter"), &filter)?;
            out.set(&format!("events/block/{event}/enable"), "1")?;
        }
        let pipe = rustix::fs::open(out.instance.join("trace_pipe"), OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty());
        let (pipe, is_over) = (pipe.map_err(|err| format!("trace_pipe: {err}"))?, out.is_over.clone());
        out.reader = Some(std::thread::spawn(move || {
            let (mut text, mut buf) = (Vec::new(), vec![0; 1 << 16]);
            loop {
                let was_over = is_over.load(Relaxed);
                match rustix::io::read(&pipe, &mut buf) {
                    Ok(n) if n > 0 => text.extend_from_slice(&buf[..n]),
                    _ if was_over => return text,
                    _ => std::thread::sleep(Duration::from_millis(5)),
                }
            }
        }));
        Ok(out)
    }

    fn set(&self, file: &str, value: &str) -> Result<()> {
        fs::write(self.instance.join(file), value).map_err(|err| format!("tracefs {file}={value}: {err}"))
    }

    /// Ends tracing. Returns the events as text.
    /// Errors: events were lost.
    pub fn finish(mut self) -> Result<String> {
        self.set("tracing_on", "0")?;
        self.is_over.store(true, Relaxed);
        let text = self.reader.take().and_then(|reader| reader.join().ok()).ok_or("the reader of the events")?;
        let text = String::from_utf8_lossy(&text).into_owned();
        match text.lines().find(|line| line.contains("LOST")) {
            Some(line) => Err(format!("events were lost: {line}")),
            None => Ok(text),
        }
    }
}

impl Drop for TraceFile {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        let _ = fs::remove_dir(&self.instance);
        let _ = run("umount", &[&self.mount.path().to_string_lossy()]);
    }
}

/// An event: `dd-77 [001] ..... 12.345678: block_io_start: 7,0 WS 4096 () 8 + 8 none,0,0 [dd]`.
struct Event<'a> {
    thread: u32,
    us: u64,
    what: &'a str,
    /// As `WS`, `R`, `FWFS`.
    flags: &'a str,
    sector: u64,
    sectors: u64,
}

fn parse(line: &str) -> Option<Event<'_>> {
    let (head, rest) = line.split_once(": block_")?;
    let (task, at) = head.split_once(" [")?;
    let (seconds, micros) = at.split_whitespace().last()?.split_once('.')?;
    let (what, rest) = rest.split_once(": ")?;
    let plus = rest.find(" + ")?;
    Some(Event {
        thread: task.rsplit_once('-')?.1.trim().parse().ok()?,
        us: seconds.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?,
        what,
        flags: rest.split_whitespace().nth(1)?,
        sector: rest[..plus].rsplit(' ').next()?.parse().ok()?,
        sectors: rest[plus + 3..].split_whitespace().next()?.parse().ok()?,
    })
}

impl<'a> Event<'a> {
    /// The operation, as `R` or `W`, without the flags before it; of the kernel's own flushes it is empty.
    fn operation(&self) -> &'a str {
        self.flags.trim_start_matches('F').get(..1).unwrap_or_default()
    }

    fn kind(&self) -> Option<Kind> {
        match self.operation() {
            "R" => Some(Kind::Read),
            "W" if self.sectors == 0 => Some(Kind::Flush),
            "W" => Some(Kind::Write),
            _ => None,
        }
    }

    /// Whether it flushes before or after its data. The kernel takes these flags away where it sends flushes of its own.
    fn has_flush(&self) -> bool {
        self.flags.contains('F')
    }
}

/// What the events say.
#[derive(Default)]
pub struct Dump {
    /// By thread, from the start to the end of each request.
    pub tasks: ByTask,
    /// Ends whose start is not known.
    pub unmatched: u64,
}

/// A request that has begun.
#[derive(Clone, Copy)]
struct Begun {
    thread: u32,
    kind: Kind,
    us: u64,
    has_flush: bool,
}

/// Requests that have begun, by operation and sector, first ones first.
type Pending<'a> = BTreeMap<(&'a str, u64), VecDeque<Begun>>;

/// Computes requests and times from the events alone.
pub fn evaluate(text: &str) -> Dump {
    let (mut out, mut begun) = (Dump::default(), Pending::new());
    // Writes whose data is written and that may be followed by a flush of the kernel's.
    let mut flushing = Pending::new();
    for event in text.lines().filter_map(parse) {
        let operation = event.operation();
        let at = (operation, event.sector);
        let Some(kind) = event.kind() else { continue };
        if event.what == "io_start" {
            let new = Begun { thread: event.thread, kind, us: event.us, has_flush: event.has_flush() };
            begun.entry(at).or_default().push_back(new);
            continue;
        }
        let ends_sequence = event.sectors == 0 && flushing.get(&at).is_some_and(|all| !all.is_empty());
        let from = if ends_sequence { &mut flushing } else { &mut begun };
        let Some(request) = from.get_mut(&at).and_then(VecDeque::pop_front) else {
            out.unmatched += 1;
            continue;
        };
        let times = Times { requests: u64::from(!ends_sequence), ns: (event.us - request.us) * 1000 };
        out.tasks.entry((request.thread, request.kind)).or_default().add(times);
        if request.has_flush && event.sectors > 0 {
            flushing.entry(at).or_default().push_back(Begun { us: event.us, ..request });
        }
    }
    out
}

/// Processes of the threads that live now.
pub fn processes_of_threads() -> BTreeMap<u32, u32> {
    let numbers = |dir: &Path| -> Vec<u32> {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect()
    };
    let threads = |pid: u32| numbers(Path::new(&format!("/proc/{pid}/task"))).into_iter().map(move |tid| (tid, pid));
    numbers(Path::new("/proc")).into_iter().flat_map(threads).collect()
}

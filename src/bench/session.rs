//! One run, seen from its workload: makes the file, runs measurements one after the other, keeps parts.

use super::drive::{Ended, drive};
use super::engine::monotonic_ns;
use super::engine::threads::Threads;
use super::engine::uring::{Ask, Uring};
use super::measure::depth::Depths;
use super::measure::recorder::Recorder;
use super::plan::{EngineChoice, Plan};
use super::report::{CpuUse, Part, Target};
use super::spec::{IoSpec, Limits};
use super::sys::Cpu;
use super::target::filesystem::Filesystem;
use super::target::refuse::Refused;
use super::target::{File, Place, sizes};
use super::watch::{Phase, Watch, gather};
use crate::model::disk::{DevId, DiskRate, DiskRaw};
use crate::model::reading::describe_io_error;
use crate::root::Root;
use crate::text::sanitize;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

/// Pieces files are written in before counting begins.
pub const MIB: u32 = 1 << 20;

/// Reads the devices' counters: given by the caller, who knows how.
pub type Counters = Arc<dyn Fn() -> Vec<DiskRaw> + Send + Sync>;

/// Why a workload ends before its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// Somebody said so.
    Cancelled,
    /// Not to be done here.
    Refused(Refused),
    /// It went wrong.
    Failed(String),
}

impl From<Refused> for Stop {
    fn from(refused: Refused) -> Self {
        Stop::Refused(refused)
    }
}

impl Stop {
    /// A failed system call; `what` says which.
    pub fn from_errno(what: &str, err: impl Into<std::io::Error>) -> Self {
        Stop::Failed(format!("{what}: {}", describe_io_error(&err.into())))
    }
}

/// The state of a run in its measuring thread.
pub struct Session {
    /// What to do.
    pub plan: Plan,
    /// The machine.
    pub root: Root,
    /// What others see of it.
    pub watch: Arc<Watch>,
    counters: Counters,
    device: Option<DevId>,
    filesystem: Option<Filesystem>,
    threads_instead: bool,
}

/// A measurement's counters at its two ends.
#[derive(Default)]
struct Ends {
    cpu: Cpu,
    disks: Vec<DiskRaw>,
    at: u64,
}

impl Ends {
    fn take(counters: &Counters) -> Self {
        Self { cpu: Cpu::now(), disks: counters(), at: monotonic_ns() }
    }
}

impl Session {
    /// For `plan`.
    pub fn new(plan: Plan, root: Root, watch: Arc<Watch>, counters: Counters) -> Self {
        let threads_instead = plan.engine == EngineChoice::Threads;
        Self { plan, root, watch, counters, device: None, filesystem: None, threads_instead }
    }

    /// One system call per operation, as `dd` does it, unless an engine was named.
    pub fn one_by_one(&mut self) {
        self.threads_instead |= self.plan.engine == EngineChoice::Auto;
    }

    /// Whether to end now.
    pub fn check(&self) -> Result<(), Stop> {
        if self.watch.stop.load(Ordering::Relaxed) { Err(Stop::Cancelled) } else { Ok(()) }
    }

    /// The plan's directory, after every refusal that concerns it.
    pub fn place(&mut self) -> Result<Place, Stop> {
        self.prepare("checking the directory");
        let twice = self.plan.network.as_ref() == Some(&self.plan.directory);
        let place = Place::check(&self.root, &self.plan.directory, twice)?;
        let fs = &place.filesystem;
        self.device = fs.device;
        self.watch.aim(Target {
            directory: sanitize(self.plan.directory.as_os_str().as_encoded_bytes()),
            filesystem: sanitize(&fs.kind),
            source: sanitize(&fs.source),
            mount: sanitize(&fs.point),
            options: sanitize(&fs.options),
            device: fs.device.map(|d| d.to_string()),
            alignment: 0,
            memory: fs.is_memory(),
            network: fs.is_network(),
            stacked: fs.is_stacked(),
            sizes: fs.device.map(|d| sizes::known(&self.root, d)).unwrap_or_default(),
        });
        self.filesystem = Some(fs.clone());
        Ok(place)
    }

    /// After the last measurement: whether the directory is what it was.
    pub fn look_again(&self) {
        if let Some(fs) = self.filesystem.as_ref().filter(|fs| fs.is_gone(&self.root)) {
            self.watch.note(format!(
                "{} was unmounted during the run (umount -l); the figures are of the file system that was there",
                sanitize(&fs.point)
            ));
        }
    }

    /// A nameless file of `bytes` with real data in it: holes and unwritten extents give fantasy figures.
    pub fn laid_out(&mut self, place: &Place, bytes: u64) -> Result<File, Stop> {
        self.prepare("allocating the file");
        let mut file = place.create(bytes)?;
        let (_, alignment) = file.alignment();
        if self.plan.direct {
            file.open_direct(&self.root)?;
            if !self.plan.block.is_multiple_of(alignment) {
                return Err(Stop::Failed(format!(
                    "block size {}: direct I/O here needs a multiple of {alignment}; or add --buffered",
                    self.plan.block
                )));
            }
        }
        self.write_data(&file, bytes, MIB)?;
        self.prepare("writing it back");
        file.forget().map_err(|e| Stop::from_errno("writing the file back", e))?;
        Ok(file)
    }

    fn write_data(&mut self, file: &File, bytes: u64, piece: u32) -> Result<(), Stop> {
        let mut spec = IoSpec::layout(bytes, piece, 4, self.plan.seed);
        // A cap is there because somebody else needs the disk: it holds for the layout as well.
        spec.gap_ns = self.plan.gap_ns(piece) / u64::from(self.plan.jobs.max(1));
        let part = Part { label: "writing the file's data".into(), ..Part::default() };
        self.run(part, None, file.fd(), vec![spec], Limits::default())?.1
    }

    /// A step that counts nothing.
    pub fn prepare(&self, what: &str) {
        let part = Part { label: what.into(), ..Part::default() };
        self.watch.begin(Phase { part, ..Phase::default() }, monotonic_ns());
    }

    /// All is measured. The kernel takes a file with dirty pages away only after what it is writing of it now,
    /// which a slow device makes long: that is no stall of the run.
    pub fn measured(&self) {
        self.prepare("giving the file back");
        self.watch.measured.store(true, Ordering::Relaxed);
    }

    /// Runs `specs`, one worker thread each, as the next measurement. It is kept in the report even if it
    /// ends early; the part comes back for looking at, without being kept twice.
    pub fn measure(
        &mut self,
        label: &str,
        file: BorrowedFd<'_>,
        specs: Vec<IoSpec>,
        limits: Limits,
    ) -> Result<Part, Stop> {
        let part = Part { label: label.into(), ..Part::default() };
        let number = self.watch.finished();
        let (part, ended) = self.run(part, Some(number), file, specs, limits)?;
        self.watch.keep(part.clone());
        ended.map(|()| part)
    }

    /// Runs `work` on this thread as the next measurement, for workloads that make their own system calls:
    /// it counts in the recorder it is given and calls `begin` on it first. `figures` may be added to the part.
    pub fn measure_with(
        &mut self,
        mut part: Part,
        goal: (u64, u64),
        work: impl FnOnce(&Session, &Recorder, &mut Part) -> Result<(), Stop>,
    ) -> Result<Part, Stop> {
        let recorder = Arc::new(Recorder::new());
        let recorders = vec![recorder.clone()];
        part.jobs = part.jobs.max(1);
        part.depth = part.depth.max(1);
        let number = Some(self.watch.finished());
        self.watch
            .begin(Phase { part: part.clone(), number, goal, recorders: recorders.clone() }, monotonic_ns());
        let before = Ends::take(&self.counters);
        recorder.begin(before.at);
        let ended = work(self, &recorder, &mut part);
        let after = Ends::take(&self.counters);
        let mut part = self.finish(gather(part, &recorders), &before, &after);
        if part.elapsed_ns == 0 {
            part.elapsed_ns = after.at - before.at;
        }
        part.depths = Depths::one_by_one(part.read.ios + part.write.ios + part.sync.ios);
        self.watch.keep(part.clone());
        ended.map(|()| part)
    }

    fn run(
        &mut self,
        mut part: Part,
        number: Option<u32>,
        file: BorrowedFd<'_>,
        specs: Vec<IoSpec>,
        limits: Limits,
    ) -> Result<(Part, Result<(), Stop>), Stop> {
        self.check()?;
        if let Some(first) = specs.first() {
            (part.block, part.depth, part.jobs) = (first.block, first.depth, specs.len() as u32);
        }
        if !self.threads_instead {
            match self.attempt_uring(part.clone(), number, file, &specs, limits) {
                Ok(done) => return Ok(done),
                Err(why) if self.plan.engine == EngineChoice::Uring => return Err(Stop::Failed(why)),
                // Preparation needs other buffers than measuring: its refusal decides nothing for that.
                Err(_) if number.is_none() => {}
                Err(why) if !self.plan.fits_threads() => {
                    return Err(Stop::Failed(format!("{why}. Too deep for threads instead: use --depth 64")));
                }
                Err(why) => {
                    self.watch.note(format!("{why}. Running on a pool of threads instead"));
                    self.threads_instead = true;
                }
            }
        }
        let specs: Vec<_> = specs.iter().flat_map(one_deep).collect();
        let most = specs.iter().map(|s| s.block).max().unwrap_or(0) as usize;
        part.engine = "threads (pread, pwrite)".into();
        let make = |_: &IoSpec| Threads::new(file, most).map_err(|e| format!("buffers: {}", describe_io_error(&e)));
        self.attempt(part, number, &specs, limits, make).map_err(Stop::Failed)
    }

    fn attempt_uring(
        &mut self,
        mut part: Part,
        number: Option<u32>,
        file: BorrowedFd<'_>,
        specs: &[IoSpec],
        limits: Limits,
    ) -> Result<(Part, Result<(), Stop>), String> {
        let ask = Ask { sqpoll: self.plan.sqpoll, iopoll: self.plan.iopoll && number.is_some() };
        let ring = |s: &IoSpec| Uring::new(file, s.depth, s.block as usize, ask).map_err(|refusal| refusal.0);
        // A trial ring tells whether this machine grants one, and with which flags.
        let trial = ring(specs.first().ok_or("nothing to do")?)?;
        part.engine = format!("io_uring ({})", trial.features().describe());
        drop(trial);
        self.attempt(part, number, specs, limits, ring)
    }

    /// Starts one worker per spec; they begin together once every engine stands. `Err`: an engine was
    /// refused and nothing was run.
    fn attempt<E: super::engine::Engine>(
        &mut self,
        part: Part,
        number: Option<u32>,
        specs: &[IoSpec],
        limits: Limits,
        make: impl Fn(&IoSpec) -> Result<E, String> + Sync,
    ) -> Result<(Part, Result<(), Stop>), String> {
        let recorders: Vec<_> = specs.iter().map(|_| Arc::new(Recorder::new())).collect();
        let goal = (limits.time_ns, specs.iter().map(|s| s.bytes).sum());
        let phase = Phase { part: part.clone(), number, goal, recorders: recorders.clone() };
        self.watch.begin(phase, monotonic_ns());
        let before: Mutex<Option<Ends>> = Mutex::new(None);
        let standing = std::sync::Barrier::new(specs.len());
        let refused: Mutex<Option<String>> = Mutex::new(None);
        let (watch, counters) = (&self.watch, &self.counters);
        let lock = |m: &Mutex<Option<String>>| m.lock().unwrap_or_else(|e| e.into_inner()).clone();
        let work = |spec: &IoSpec, recorder: &Recorder| {
            let engine = make(spec);
            if let Err(why) = &engine {
                *refused.lock().unwrap_or_else(|e| e.into_inner()) = Some(why.clone());
            }
            if spec.gap_ns > 0 {
                // The usual 50 us by which the kernel may wake us late would show in the pace.
                let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
            }
            standing.wait();
            let (Ok(mut engine), None) = (engine, lock(&refused)) else { return Ended::Stopped };
            let mut begin = || {
                let mut before = before.lock().unwrap_or_else(|e| e.into_inner());
                before.get_or_insert_with(|| Ends::take(counters));
            };
            let ended = drive(&mut engine, spec, limits, recorder, &watch.stop, &mut begin);
            if matches!(ended, Ended::Failed { .. }) {
                // The others have nothing to measure any more.
                watch.stop.store(true, Ordering::Relaxed);
            }
            ended
        };
        let work = &work;
        let ends: Vec<Ended> = std::thread::scope(|scope| {
            let workers: Vec<_> = specs
                .iter()
                .zip(&recorders)
                .map(|(spec, recorder)| scope.spawn(move || work(spec, recorder)))
                .collect();
            workers.into_iter().map(|w| w.join().unwrap_or(Ended::Stopped)).collect()
        });
        if let Some(why) = lock(&refused) {
            return Err(why);
        }
        let after = Ends::take(&self.counters);
        let before = before.into_inner().unwrap_or_else(|e| e.into_inner()).unwrap_or_default();
        let part = self.finish(gather(part, &recorders), &before, &after);
        Ok((part, outcome(&ends)))
    }

    /// Adds what concerns the whole: CPU, device, course.
    fn finish(&self, mut part: Part, before: &Ends, after: &Ends) -> Part {
        part.series = self.watch.end();
        let ns = after.at.saturating_sub(before.at);
        if before.at == 0 || ns == 0 {
            return part;
        }
        let used = after.cpu.since(&before.cpu);
        let ios = part.read.ios + part.write.ios + part.sync.ios;
        part.cpu = Some(CpuUse {
            user_pct: used.user_ns as f64 / ns as f64 * 100.0,
            system_pct: used.system_ns as f64 / ns as f64 * 100.0,
            ns_per_io: if ios > 0 { (used.user_ns + used.system_ns) as f64 / ios as f64 } else { 0.0 },
            switches: used.switches + used.preempted,
            major_faults: used.major_faults,
            minor_faults: used.minor_faults,
        });
        part.device_ns = ns;
        part.device = self.device.and_then(|id| {
            let of = |ends: &Ends| ends.disks.iter().find(|d| d.id == id).cloned();
            Some(DiskRate::derive(Some(&of(before)?), &of(after)?, ns as f64 / 1e9))
        });
        part
    }
}

/// A deep spec as many of depth 1, for engines that do one operation at a time.
fn one_deep(spec: &IoSpec) -> Vec<IoSpec> {
    let n = u64::from(spec.depth.max(1)).min(spec.len / u64::from(spec.block).max(1)).max(1);
    (0..n)
        .map(|i| {
            let mut one = IoSpec { depth: 1, gap_ns: spec.gap_ns * n, ..spec.clone() };
            one.bytes = spec.bytes.div_ceil(n);
            one.seed.1 = spec.seed.1.wrapping_mul(4096).wrapping_add(i);
            if spec.order == super::spec::Order::Sequential {
                let share = (spec.len / n).next_multiple_of(u64::from(spec.block));
                one.start = spec.start + (share * i).min(spec.len);
                one.len = share.min(spec.len - (share * i).min(spec.len));
                if spec.bytes == spec.len {
                    one.bytes = one.len; // once through stays once through
                }
            }
            one
        })
        .filter(|s| s.len > 0)
        .collect()
}

/// The workers' ends as one.
fn outcome(ends: &[Ended]) -> Result<(), Stop> {
    for end in ends {
        if let Ended::Failed { op, errno } = end {
            let what = match op {
                Some(op) => {
                    format!("{:?} of {} bytes at offset {}", op.kind, op.len, op.offset).to_lowercase()
                }
                None => "handing operations to the kernel".into(),
            };
            let why = match *errno {
                0 => "came up short".into(),
                libc::ENOSPC => "no space left on the device: choose a smaller --size".into(),
                libc::EIO => "the device reports an error (EIO); the kernel log says more".into(),
                libc::EINVAL => "refused as invalid: block size or offset not aligned for direct I/O?".into(),
                libc::EOPNOTSUPP => "not supported here; --iopoll needs a device with polling queues".into(),
                n => describe_io_error(&std::io::Error::from_raw_os_error(n)),
            };
            return Err(Stop::Failed(format!("{what}: {why}")));
        }
    }
    if ends.contains(&Ended::Stopped) { Err(Stop::Cancelled) } else { Ok(()) }
}

//! Runs the jobs of a job file: files first, then every job as a thread of its own, in fio's order.

mod dispatch;
mod thread_setup;

use self::dispatch::{CloneRun, Dispatcher};
use self::thread_setup::set_up_thread;
use super::flow::{FlowGroup, FlowShare};
use super::job::{Amount, FioEngine, FioJob, Preallocation};
use super::layout::FileLayout;
use super::source::FioSource;
use crate::bench::engine::monotonic_ns;
use crate::bench::engine::threads::{FileCalls, ThreadEngine};
use crate::bench::engine::uring::{UringEngine, UringOptions};
use crate::bench::report::Measurement;
use crate::bench::run_progress::merge_recorders;
use crate::bench::session::{BenchSession, CounterSnapshot, RunError};
use crate::bench::syscalls::MappedMemory;
use crate::bench::target::BenchFile;
use crate::bench::worker_loop::{WorkerTimes, run_source};
use crate::model::reading::describe_io_error;
use rustix::fs::{Advice, OFlags};
use std::collections::HashMap;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How often the dispatcher looks at what runs.
const DISPATCH_INTERVAL: Duration = Duration::from_millis(20);

/// What all clones of a run share.
struct RunContext<'a> {
    session: &'a BenchSession,
    files: &'a [BenchFile],
    flows: HashMap<u32, Arc<FlowGroup>>,
    begun: OnceLock<CounterSnapshot>,
}

/// Runs the plan's job file.
pub(crate) fn run_job_file(session: &mut BenchSession) -> Result<(), RunError> {
    let job_file = session.plan.job_file.clone().ok_or_else(|| RunError::Failed("no job file".into()))?;
    let jobs = &job_file.jobs;
    let layout = FileLayout::new(jobs).map_err(|(_, why)| RunError::Failed(why))?;
    job_file.notes.iter().for_each(|note| session.progress.add_note(note.clone()));
    let place = session.open_target()?;
    session.begin_preparation("allocating the files");
    place.check_space(layout.total_bytes())?;
    let files: Vec<BenchFile> = layout.files.iter().map(|_| place.create(0)).collect::<Result<_, _>>()?;
    for step in &layout.steps {
        let file = &files[step.file];
        match step.preallocation {
            Preallocation::Allocate => file.allocate(step.size, false)?,
            Preallocation::KeepSize => file.allocate(step.size, true)?,
            Preallocation::None => {}
        }
        if step.writes_data {
            session.write_range(file, step.from, step.size)?;
        }
    }
    session.begin_preparation("writing the files back");
    for file in &files {
        file.evict_page_cache().map_err(|e| RunError::from_errno("writing a file back", e))?;
    }
    let mut flows: HashMap<u32, Arc<FlowGroup>> = HashMap::new();
    for job in jobs.iter().filter(|job| job.flow > 0) {
        flows.entry(job.flow_id).or_default();
    }
    for segment in segments(jobs) {
        let context = RunContext { session, files: &files, flows: flows.clone(), begun: OnceLock::new() };
        if Segment::new(&context, jobs, &layout, segment).run()? {
            break;
        }
    }
    session.finish_measuring();
    Ok(())
}

/// Jobs that may run at the same time: those between two stonewalls.
fn segments(jobs: &[FioJob]) -> Vec<Range<usize>> {
    let mut starts: Vec<usize> = (1..jobs.len()).filter(|n| jobs[*n].stonewall).collect();
    starts.insert(0, 0);
    let ends = starts.iter().skip(1).copied().chain([jobs.len()]);
    starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect()
}

struct Segment<'a> {
    context: &'a RunContext<'a>,
    jobs: &'a [FioJob],
    range: Range<usize>,
    clones: Vec<CloneRun<'a>>,
    /// fio's reporting group of each job.
    groups: Vec<usize>,
}

type CloneEnd = (usize, Result<(), RunError>);

impl<'a> Segment<'a> {
    fn new(context: &'a RunContext<'a>, jobs: &'a [FioJob], layout: &'a FileLayout, range: Range<usize>) -> Self {
        let mut group = 0;
        let groups = jobs.iter().enumerate().map(|(n, job)| {
            group += usize::from(n > 0 && (job.stonewall || job.new_group));
            group
        });
        let clones = (0u64..).zip(&layout.clones).filter(|(_, files)| range.contains(&files.job));
        let clones = clones.map(|(number, files)| CloneRun {
            job: &jobs[files.job],
            index: files.job,
            files,
            number,
            recorder: Arc::default(),
            stop: AtomicBool::new(false),
            is_released: AtomicBool::new(false),
            latency_depth: OnceLock::new(),
            is_steady: OnceLock::new(),
        });
        Self { context, jobs, groups: groups.collect(), clones: clones.collect(), range }
    }

    /// Runs its jobs and adds a measurement for each. Returns whether no further job is to run.
    fn run(&self) -> Result<bool, RunError> {
        let session = self.context.session;
        session.check_cancelled()?;
        let names: Vec<&str> = self.jobs[self.range.clone()].iter().map(|job| job.name.as_str()).collect();
        let mut label = names.join(", ");
        if label.chars().count() > 60 {
            label = format!("{} and {} more jobs", names[0], names.len() - 1);
        }
        let recorders: Vec<_> = self.clones.iter().map(|clone| clone.recorder.clone()).collect();
        let phase = Measurement { label: crate::sanitize::sanitize(label.as_bytes()), ..Measurement::default() };
        session.progress.begin_phase(&phase, true, self.goal(), &recorders);
        let (ended, stops_all) = std::thread::scope(|scope| {
            let (sender, receiver) = channel::<CloneEnd>();
            let mut dispatcher = Dispatcher::new(&self.clones, self.jobs, &self.groups, &session.progress);
            loop {
                // All shares exist before the first of the jobs begins.
                let ready: Vec<_> = dispatcher
                    .start_ready()
                    .into_iter()
                    .map(|n| (n, self.context.flow_of(self.clones[n].job)))
                    .collect();
                for (clone, flow) in ready {
                    let (sender, segment) = (sender.clone(), self);
                    scope.spawn(move || segment.run_clone(clone, flow, &sender));
                }
                if dispatcher.is_finished() {
                    return (dispatcher.result(), dispatcher.stops_all);
                }
                if let Ok((clone, end)) = receiver.recv_timeout(DISPATCH_INTERVAL) {
                    dispatcher.clone_ended(clone, end);
                }
                dispatcher.supervise();
            }
        });
        self.add_measurements();
        ended.map(|()| stops_all)
    }

    /// Time and bytes of the job that takes longest, for the progress.
    fn goal(&self) -> (u64, u64) {
        let time = self.clones.iter().map(|c| c.job.startdelay_us.1 + c.job.runtime_us).max().unwrap_or(0);
        let bytes = self.clones.iter().map(|c| match c.job.io_size {
            Amount::Bytes(n) if n > 0 => n,
            _ => c.files.size,
        });
        let is_timed = self.clones.iter().all(|c| c.job.time_based);
        if is_timed { (time * 1000, 0) } else { (0, bytes.fold(0, u64::saturating_add)) }
    }

    fn add_measurements(&self) {
        let session = self.context.session;
        let after = session.read_counters();
        let before = self.context.begun.get().cloned().unwrap_or_default();
        let is_alone = self.range.len() == 1;
        if !is_alone {
            // The series is of all of them together.
            session.progress.end_phase();
        }
        for index in self.range.clone() {
            let job = &self.jobs[index];
            let clones: Vec<_> = self.clones.iter().filter(|clone| clone.index == index).collect();
            if clones.iter().all(|clone| clone.recorder.counting_since().is_none()) {
                session
                    .progress
                    .add_note(format!("{}: was not started", crate::sanitize::sanitize(job.name.as_bytes())));
                continue;
            }
            let recorders: Vec<_> = clones.iter().map(|clone| clone.recorder.clone()).collect();
            let part = Measurement {
                label: crate::sanitize::sanitize(job.name.as_bytes()),
                engine: engine_name(job).into(),
                block: job.directions().map(|d| job.block_range(d).0).min().unwrap_or(0) as u32,
                depth: job.depth(),
                jobs: job.numjobs,
                ..Measurement::default()
            };
            let mut part = merge_recorders(part, &recorders);
            if let Some(depth) = clones.iter().filter_map(|clone| clone.latency_depth.get()).min() {
                part.add_metric("depth within latency_target", (*depth).into(), "");
            }
            if job.steady.is_some() {
                let is_steady = clones.iter().all(|clone| clone.is_steady.get().is_some());
                part.add_metric("steady state reached", if is_steady { 1.0 } else { 0.0 }, "");
            }
            // CPU time and the device's counters are of all jobs that ran at the time.
            let part = if is_alone { session.complete_measurement(part, &before, &after) } else { part };
            session.progress.add_measurement(part);
        }
    }

    fn run_clone(&self, number: usize, flow: Option<FlowShare>, sender: &Sender<CloneEnd>) {
        let clone = &self.clones[number];
        let mut end = self.context.work(clone, flow);
        if clone.is_released.load(Relaxed) && end == Err(RunError::Cancelled) {
            end = Ok(());
        }
        let _ = sender.send((number, end));
    }
}

fn engine_name(job: &FioJob) -> &'static str {
    match job.engine {
        FioEngine::Mmap => "threads (mmap)",
        FioEngine::Falloc => "threads (fallocate)",
        FioEngine::Ftruncate => "threads (ftruncate)",
        FioEngine::Null => "none",
        engine if engine.is_synchronous() => "threads (pread, pwrite)",
        _ => "io_uring (one ring each)",
    }
}

/// What a synchronous engine calls; its files are mapped as a whole.
fn file_calls(clone: &CloneRun<'_>, files: &[BorrowedFd<'_>]) -> Result<FileCalls, RunError> {
    let job = clone.job;
    match job.engine {
        FioEngine::Falloc => return Ok(FileCalls::Fallocate),
        FioEngine::Ftruncate => return Ok(FileCalls::Truncate),
        FioEngine::Null => return Ok(FileCalls::Nothing),
        FioEngine::Mmap => {}
        _ => return Ok(FileCalls::ReadWrite),
    }
    let mut maps = Vec::new();
    for (file, range) in files.iter().zip(&clone.files.ranges) {
        let map = MappedMemory::of_file(file, range.file_size as usize);
        let map = map.map_err(|e| RunError::Failed(format!("mmap: {}", describe_io_error(&e))))?;
        if job.fadvise_hint {
            use rustix::mm::Advice::{Random, Sequential};
            let _ = map.advise(if job.rw.random { Random } else { Sequential });
        }
        maps.push(map);
    }
    // fio maps the files of jobs that only read for reading, and there msync(2) does nothing.
    Ok(FileCalls::Mapped { maps, syncs_each: job.direct && job.rw.writes })
}

impl RunContext<'_> {
    fn flow_of(&self, job: &FioJob) -> Option<FlowShare> {
        self.flows.get(&job.flow_id).filter(|_| job.flow > 0).map(|flow| FlowShare::new(flow, job.flow))
    }

    /// All of one clone, on its own thread.
    fn work(&self, clone: &CloneRun<'_>, flow: Option<FlowShare>) -> Result<(), RunError> {
        let job = clone.job;
        wait_for_start(clone)?;
        set_up_thread(self.session, clone)?;
        let fds =
            clone.files.ranges.iter().map(|range| self.open_file(job, range.file)).collect::<Result<Vec<_>, _>>()?;
        let files: Vec<BorrowedFd<'_>> = fds.iter().map(OwnedFd::as_fd).collect();
        self.prepare_cache(clone, &files)?;
        let drop_cache = Box::new(|file: u16| {
            let _ = rustix::fs::fadvise(files[usize::from(file)], 0, None, Advice::DontNeed);
        });
        let seed = match (job.randseed, job.randrepeat) {
            (Some(seed), _) => seed,
            (None, true) => self.session.plan.seed,
            (None, false) => monotonic_ns(),
        };
        let ranges = &clone.files.ranges;
        let mut source = FioSource::new(job, ranges, clone.files.size, (seed, clone.number), drop_cache, flow);
        self.run_engine(clone, &files, &mut source)?;
        if let Some(depth) = source.latency_depth() {
            let _ = clone.latency_depth.set(depth);
        }
        source.verdict().map_err(RunError::Failed)
    }

    fn run_engine(
        &self,
        clone: &CloneRun<'_>,
        files: &[BorrowedFd<'_>],
        source: &mut FioSource<'_>,
    ) -> Result<(), RunError> {
        let job = clone.job;
        let times = WorkerTimes { ramp_ns: job.ramp_us * 1000, time_ns: job.runtime_us * 1000 };
        let slot_bytes = job.max_block() as usize;
        let (recorder, stop) = (&*clone.recorder, &clone.stop);
        let mut on_begin = || {
            self.begun.get_or_init(|| self.session.read_counters());
        };
        if job.engine.is_synchronous() {
            let calls = file_calls(clone, files)?;
            let engine = ThreadEngine::with_calls(files, slot_bytes, job.huge_pages, calls);
            let mut engine = engine.map_err(|e| RunError::Failed(format!("buffers: {}", describe_io_error(&e))))?;
            return run_source(&mut engine, source, times, recorder, stop, &mut on_begin);
        }
        let ask = UringOptions {
            sqpoll: job.sqthread_poll,
            iopoll: job.hipri,
            collects_all: job.engine != FioEngine::IoUring || job.batch_complete_min == 0,
            huge_pages: job.huge_pages,
            pages: self.session.buffer_pages(job.huge_pages),
        };
        let engine = UringEngine::new(files, job.depth(), slot_bytes, ask);
        let mut engine =
            engine.map_err(|why| RunError::Failed(format!("{}; ioengine=psync needs no io_uring", why.0)))?;
        run_source(&mut engine, source, times, recorder, stop, &mut on_begin)
    }

    fn open_file(&self, job: &FioJob, file: usize) -> Result<OwnedFd, RunError> {
        let mut flags = OFlags::empty();
        flags.set(OFlags::DIRECT, job.direct);
        flags.set(OFlags::SYNC, job.sync_writes);
        flags.set(OFlags::DSYNC, job.data_sync_writes);
        Ok(self.files[file].reopen(&self.session.root, flags)?)
    }

    fn prepare_cache(&self, clone: &CloneRun<'_>, files: &[BorrowedFd<'_>]) -> Result<(), RunError> {
        let job = clone.job;
        for (file, range) in files.iter().zip(&clone.files.ranges) {
            let len = std::num::NonZeroU64::new(range.len);
            let advise = |advice| rustix::fs::fadvise(*file, range.start, len, advice);
            if job.invalidate && !job.pre_read {
                let _ = advise(Advice::DontNeed);
            }
            if job.fadvise_hint && !job.direct {
                let _ = advise(if job.rw.random { Advice::Random } else { Advice::Sequential });
            }
            if job.pre_read {
                let mut buffer = vec![0u8; 1 << 20];
                let mut at = range.start;
                while at < range.start + range.len {
                    let read = rustix::io::pread(self.files[range.file].buffered(), &mut buffer, at);
                    match read.map_err(|e| RunError::from_errno("pre_read", std::io::Error::from(e)))? {
                        0 => break,
                        n => at += n as u64,
                    }
                    clone.recorder.heartbeat(monotonic_ns());
                }
            }
        }
        Ok(())
    }
}

/// Waits for `startdelay`.
fn wait_for_start(clone: &CloneRun<'_>) -> Result<(), RunError> {
    let (low, high) = clone.job.startdelay_us;
    let delay = low + crate::bench::rng::Rng::new(1, clone.number).below(high.saturating_sub(low) + 1);
    let due = monotonic_ns() + delay * 1000;
    loop {
        let now = monotonic_ns();
        if clone.stop.load(Relaxed) {
            return Err(RunError::Cancelled);
        }
        if now >= due {
            return Ok(());
        }
        clone.recorder.heartbeat(now);
        std::thread::sleep(Duration::from_nanos((due - now).min(50_000_000)));
    }
}

//! A run as its workload uses it: creates the file, runs measurements one after the other, stores their results.

use super::engine::threads::ThreadEngine;
use super::engine::uring::{UringEngine, UringOptions};
use super::engine::{EngineUnavailable, monotonic_ns};
use super::io_spec::IoSpec;
use super::measure::depth::DepthCounts;
use super::measure::recorder::OpRecorder;
use super::plan::{BenchPlan, EngineChoice};
use super::report::{CpuUsage, Measurement, ReportTarget};
use super::run_progress::{RunProgress, merge_recorders};
use super::syscalls::ResourceUsage;
use super::target::filesystem::TargetFilesystem;
pub use super::target::refusal::RunError;
use super::target::{BenchFile, TargetDirectory, checks, size_hints};
use super::worker_loop::run_worker_loop;
use crate::model::disk::{DevId, DiskRate, DiskRaw};
use crate::model::reading::describe_io_error;
use crate::root::Root;
use crate::sanitize::sanitize;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier, OnceLock};

/// Block size of file layout.
pub const MIB: u32 = 1 << 20;

/// Reads the counters of all block devices.
pub type DiskCounterReader = Arc<dyn Fn() -> Vec<DiskRaw> + Send + Sync>;

/// The state of a run.
pub struct BenchSession {
    /// What it does; workloads may change it for a while.
    pub plan: BenchPlan,
    /// The machine it runs on.
    pub root: Root,
    /// Shared progress.
    pub progress: Arc<RunProgress>,
    counters: DiskCounterReader,
    filesystem: Option<TargetFilesystem>,
    /// The disk below the directory, of a partition the whole one.
    disk: Option<DevId>,
    use_threads: bool,
}

/// A measurement to be made by worker threads, or preparation.
#[derive(Clone)]
struct SpecRun<'f> {
    measurement: Measurement,
    is_measured: bool,
    file: BorrowedFd<'f>,
}

type Measured = (Measurement, Result<(), RunError>);

/// CPU time and the counters of all block devices at one time.
#[derive(Clone, Default)]
pub(crate) struct CounterSnapshot {
    cpu: ResourceUsage,
    disks: Vec<DiskRaw>,
    at_ns: u64,
}

impl CounterSnapshot {
    fn read(counters: &DiskCounterReader) -> Self {
        Self { cpu: ResourceUsage::of_self(), disks: counters(), at_ns: monotonic_ns() }
    }
}

impl BenchSession {
    /// A session for `plan`.
    pub fn new(plan: BenchPlan, root: Root, progress: Arc<RunProgress>, counters: DiskCounterReader) -> Self {
        let use_threads = plan.engine == EngineChoice::Threads;
        Self { plan, root, progress, counters, filesystem: None, disk: None, use_threads }
    }

    /// Uses one system call per operation, as `dd` does, unless the plan names an engine.
    pub(crate) fn prefer_threads(&mut self) {
        self.use_threads |= self.plan.engine == EngineChoice::Auto;
    }

    pub(crate) fn check_cancelled(&self) -> Result<(), RunError> {
        if self.progress.stop_requested.load(Ordering::Relaxed) { Err(RunError::Cancelled) } else { Ok(()) }
    }

    /// Checks and opens the plan's directory.
    pub fn open_target(&mut self) -> Result<TargetDirectory, RunError> {
        self.begin_preparation("checking the directory");
        let twice = self.plan.network.as_ref() == Some(&self.plan.directory);
        let place = TargetDirectory::open_checked(&self.root, &self.plan.directory, twice)?;
        place.notes.iter().for_each(|note| self.progress.add_note(note.clone()));
        let fs = &place.filesystem;
        if let (true, Some(device)) = (self.plan.iopoll, fs.device) {
            checks::check_polling(&self.root, device)?;
        }
        let report = ReportTarget {
            directory: sanitize(self.plan.directory.as_os_str().as_encoded_bytes()),
            size_hints: fs.device.map(|d| size_hints::read_size_hints(&self.root, d)).unwrap_or_default(),
            model: fs.device.and_then(|d| size_hints::disk_model(&self.root, d)),
            ..fs.report.clone()
        };
        self.disk = fs.device.map(|d| size_hints::disk_id(&self.root, d).unwrap_or(d));
        self.progress.set_target(report, self.disk);
        self.filesystem = Some(fs.clone());
        Ok(place)
    }

    /// What buffers are made of: huge pages if `are_huge`, as far as this machine gives them.
    pub(crate) fn buffer_pages(&self, are_huge: bool) -> &'static str {
        let setting = std::fs::read_to_string(self.root.sys("kernel/mm/transparent_hugepage/enabled"));
        let has = |word: &str| setting.as_ref().is_ok_and(|text| text.contains(word));
        match are_huge {
            true if has("[never]") => "ordinary pages: huge ones are switched off (transparent_hugepage/enabled)",
            true => "huge pages",
            false if has("[always]") => {
                "pages as every program gets them: huge where possible (transparent_hugepage/enabled)"
            }
            false => "ordinary pages",
        }
    }

    /// Notes if the directory was unmounted during the run.
    pub(crate) fn recheck_target(&self) {
        if let Some(fs) = self.filesystem.as_ref().filter(|fs| fs.is_unmounted(&self.root)) {
            self.progress.add_note(format!(
                "{} was unmounted during the run (umount -l); the figures are of the file system that was there",
                fs.report.mount
            ));
        }
    }

    /// Creates an unlinked file of `bytes` filled with data: holes and unwritten extents are not read from the device.
    pub fn lay_out_file(&mut self, place: &TargetDirectory, bytes: u64) -> Result<BenchFile, RunError> {
        self.begin_preparation("allocating the file");
        let mut file = place.create(bytes)?;
        let (_, alignment) = file.alignment();
        if self.plan.direct {
            file.open_direct_io(&self.root)?;
            if !self.plan.block.is_multiple_of(alignment) {
                return Err(RunError::Failed(format!(
                    "block size {}: direct I/O here needs a multiple of {alignment}; or add --buffered",
                    self.plan.block
                )));
            }
        }
        self.write_data(&file, bytes)?;
        self.begin_preparation("writing it back");
        file.evict_page_cache().map_err(|e| RunError::from_errno("writing the file back", e))?;
        Ok(file)
    }

    fn write_data(&mut self, file: &BenchFile, bytes: u64) -> Result<(), RunError> {
        self.write_range(file, 0, bytes)
    }

    /// Fills a file with random data from `from` up to `end`.
    pub(crate) fn write_range(&mut self, file: &BenchFile, from: u64, end: u64) -> Result<(), RunError> {
        let mut spec = IoSpec { start: from, ..IoSpec::for_layout(end - from, MIB, 4, self.plan.seed) };
        // A rate limit protects other users of the disk, so it applies to the layout, too.
        spec.op_interval_ns = self.plan.op_interval_ns(MIB) / u64::from(self.plan.jobs.max(1));
        let measurement = Measurement { label: "writing the file's data".into(), ..Measurement::default() };
        let run = SpecRun { measurement, is_measured: false, file: file.io_fd() };
        self.run_specs(run, &[spec])?.1
    }

    /// The counters now.
    pub(crate) fn read_counters(&self) -> CounterSnapshot {
        CounterSnapshot::read(&self.counters)
    }

    pub(crate) fn new_measurement(&self, label: &str, engine: &str) -> Measurement {
        Measurement { label: label.into(), engine: engine.into(), block: self.plan.block, ..Measurement::default() }
    }

    /// Starts a preparation phase, which counts nothing.
    pub(crate) fn begin_preparation(&self, what: &str) {
        let part = Measurement { label: what.into(), ..Measurement::default() };
        self.progress.begin_phase(&part, false, (0, 0), &[]);
    }

    /// Marks all measurements as done. The kernel frees a file with dirty pages only after the writeback in progress,
    /// which takes long on a slow device; that is not a stall of the run.
    pub(crate) fn finish_measuring(&self) {
        self.begin_preparation("giving the file back");
        self.progress.is_measured.store(true, Ordering::Relaxed);
    }

    /// Runs `specs`, one worker thread each, as the next measurement, which is in the report even if it ends early.
    pub fn measure(&mut self, label: &str, file: BorrowedFd<'_>, specs: &[IoSpec]) -> Result<Measurement, RunError> {
        if self.plan.cold {
            self.begin_preparation("emptying the cache");
            rustix::fs::fsync(file).map_err(|e| RunError::from_errno("emptying the cache", e))?;
            drop_from_cache(file);
        }
        let measurement = Measurement { label: label.into(), ..Measurement::default() };
        let (part, ended) = self.run_specs(SpecRun { measurement, is_measured: true, file }, specs)?;
        self.progress.add_measurement(part.clone());
        ended.map(|()| part)
    }

    /// Runs `work` on this thread as the next measurement, for workloads that make their own system calls. `work`
    /// counts in the recorder and may add metrics to the measurement.
    pub(crate) fn measure_custom(
        &mut self,
        mut part: Measurement,
        goal: (u64, u64),
        work: impl FnOnce(&BenchSession, &OpRecorder, &mut Measurement) -> Result<(), RunError>,
    ) -> Result<Measurement, RunError> {
        let recorder = Arc::<OpRecorder>::default();
        let recorders = [recorder.clone()];
        part.jobs = part.jobs.max(1);
        part.depth = part.depth.max(1);
        self.progress.begin_phase(&part, true, goal, &recorders);
        let before = CounterSnapshot::read(&self.counters);
        recorder.start_counting(before.at_ns);
        let ended = work(self, &recorder, &mut part);
        let after = CounterSnapshot::read(&self.counters);
        let mut part = self.complete_measurement(merge_recorders(part, &recorders), &before, &after);
        if part.elapsed_ns == 0 {
            part.elapsed_ns = after.at_ns - before.at_ns;
        }
        part.depths = DepthCounts::sequential(part.ios() + part.sync.ios);
        self.progress.add_measurement(part.clone());
        ended.map(|()| part)
    }

    fn run_specs(&mut self, mut run: SpecRun<'_>, specs: &[IoSpec]) -> Result<Measured, RunError> {
        self.check_cancelled()?;
        if let Some(first) = specs.first() {
            let part = &mut run.measurement;
            (part.block, part.depth, part.jobs) = (first.block, first.depth, specs.len() as u32);
        }
        if !self.use_threads {
            let why = match self.run_on_uring(run.clone(), specs) {
                Ok(done) => return Ok(done),
                Err(EngineUnavailable(why)) => why,
            };
            if self.plan.engine == EngineChoice::Uring {
                return Err(RunError::Failed(why));
            }
            // Preparation uses other buffers than measuring, so its refusal says nothing about measuring.
            if run.is_measured {
                if !self.plan.fits_threads() {
                    return Err(RunError::Failed(format!("{why}. Too deep for threads instead: use --depth 64")));
                }
                self.progress.add_note(format!("{why}. Running on a pool of threads instead"));
                self.use_threads = true;
            }
        }
        let specs: Vec<_> = specs.iter().flat_map(split_to_depth_one).collect();
        let most = specs.iter().map(|s| s.block).max().unwrap_or(0) as usize;
        let huge = self.plan.huge_pages;
        let pages = self.buffer_pages(huge);
        run.measurement.engine = format!("threads (pread, pwrite, {pages})");
        let unavailable = |e| EngineUnavailable(format!("buffers: {}", describe_io_error(&e)));
        let file = run.file;
        let make = |_: &IoSpec| ThreadEngine::new(&[file], most, huge).map_err(unavailable);
        self.run_workers(run, &specs, make).map_err(|why| RunError::Failed(why.0))
    }

    fn run_on_uring(&self, mut run: SpecRun<'_>, specs: &[IoSpec]) -> Result<Measured, EngineUnavailable> {
        let BenchPlan { sqpoll, iopoll, huge_pages, .. } = self.plan;
        let ask = UringOptions {
            sqpoll,
            iopoll: iopoll && run.is_measured,
            collects_all: false,
            huge_pages,
            pages: self.buffer_pages(huge_pages),
        };
        let file = run.file;
        let ring = |s: &IoSpec| UringEngine::new(&[file], s.depth, s.block as usize, ask);
        // A trial ring shows whether the kernel grants one, and with which flags.
        let trial = ring(specs.first().ok_or_else(|| EngineUnavailable("nothing to do".into()))?)?;
        run.measurement.engine = format!("io_uring ({})", trial.describe());
        drop(trial);
        self.run_workers(run, specs, ring)
    }

    /// Starts one worker per spec, together once every engine is set up. `Err`: an engine was refused, nothing was run.
    fn run_workers<E: super::engine::IoEngine>(
        &self,
        run: SpecRun<'_>,
        specs: &[IoSpec],
        make: impl Fn(&IoSpec) -> Result<E, EngineUnavailable> + Sync,
    ) -> Result<Measured, EngineUnavailable> {
        let recorders: Vec<_> = specs.iter().map(|_| Arc::<OpRecorder>::default()).collect();
        let (part, file) = (run.measurement, run.file);
        let time_ns = specs.first().map_or(0, |s| s.time_ns);
        let goal = (time_ns, specs.iter().map(|s| s.byte_limit).sum());
        self.progress.begin_phase(&part, run.is_measured, goal, &recorders);
        let (before, refused) = (OnceLock::new(), OnceLock::new());
        let all_set_up = Barrier::new(specs.len());
        let (progress, counters) = (&self.progress, &self.counters);
        let work = |spec: &IoSpec, recorder: &OpRecorder| {
            let engine = make(spec).map_err(|why| refused.set(why));
            if spec.op_interval_ns > 0 {
                // The default timer slack of 50 us would show in rate-limited runs.
                let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
            }
            all_set_up.wait();
            let (Ok(mut engine), None) = (engine, refused.get()) else { return Err(RunError::Cancelled) };
            let mut begin = || {
                before.get_or_init(|| CounterSnapshot::read(counters));
            };
            let (stop, mut drop_cache) = (&progress.stop_requested, || drop_from_cache(file));
            let ended = run_worker_loop(&mut engine, spec, recorder, stop, &mut begin, &mut drop_cache);
            if matches!(ended, Err(RunError::Failed(_))) {
                // Stop the other workers.
                progress.stop_requested.store(true, Ordering::Relaxed);
            }
            ended
        };
        let work = &work;
        let ends: Vec<Result<(), RunError>> = std::thread::scope(|scope| {
            let pairs = specs.iter().zip(&recorders);
            let workers: Vec<_> = pairs.map(|(spec, recorder)| scope.spawn(move || work(spec, recorder))).collect();
            workers.into_iter().map(|w| w.join().unwrap_or(Err(RunError::Cancelled))).collect()
        });
        if let Some(why) = refused.into_inner() {
            return Err(why);
        }
        let after = CounterSnapshot::read(&self.counters);
        let before = before.into_inner().unwrap_or_default();
        let part = self.complete_measurement(merge_recorders(part, &recorders), &before, &after);
        // A failure stops the other workers, so it comes first.
        let failed = ends.iter().find(|end| matches!(end, Err(RunError::Failed(_))));
        let ended = failed.cloned().unwrap_or_else(|| ends.into_iter().collect());
        Ok((part, ended))
    }

    /// Adds what the counters of `before` and `after` say.
    pub(crate) fn complete_measurement(
        &self,
        mut part: Measurement,
        before: &CounterSnapshot,
        after: &CounterSnapshot,
    ) -> Measurement {
        (part.series, part.histograms) = self.progress.end_phase();
        let ns = after.at_ns.saturating_sub(before.at_ns);
        if before.at_ns == 0 || ns == 0 {
            return part;
        }
        let gain = |of: fn(&ResourceUsage) -> u64| of(&after.cpu).saturating_sub(of(&before.cpu));
        let (user_ns, system_ns) = (gain(|u| u.user_ns) as f64, gain(|u| u.system_ns) as f64);
        let ios = part.ios() + part.sync.ios;
        part.cpu = Some(CpuUsage {
            user_pct: user_ns / ns as f64 * 100.0,
            system_pct: system_ns / ns as f64 * 100.0,
            ns_per_io: if ios > 0 { (user_ns + system_ns) / ios as f64 } else { 0.0 },
            switches: gain(|u| u.switches),
            major_faults: gain(|u| u.major_faults),
            minor_faults: gain(|u| u.minor_faults),
        });
        part.device_ns = ns;
        let rate_of = |id: DevId| {
            let of = |ends: &CounterSnapshot| ends.disks.iter().find(|d| d.id == id).cloned();
            Some(DiskRate::derive(Some(&of(before)?), &of(after)?, ns as f64 / 1e9))
        };
        let device = self.filesystem.as_ref().and_then(|fs| fs.device);
        part.device = device.and_then(rate_of);
        part.whole_disk = self.disk.filter(|disk| Some(*disk) != device).and_then(rate_of);
        part
    }
}

/// Drops the clean pages of a file from the page cache. The kernel may ignore it.
fn drop_from_cache(file: BorrowedFd<'_>) {
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
}

/// Splits a spec into several of depth 1, for engines that do one operation at a time.
fn split_to_depth_one(spec: &IoSpec) -> Vec<IoSpec> {
    let n = u64::from(spec.depth.max(1)).min(spec.len / u64::from(spec.block).max(1)).max(1);
    (0..n)
        .map(|i| {
            let mut one = IoSpec { depth: 1, op_interval_ns: spec.op_interval_ns * n, ..spec.clone() };
            one.byte_limit = spec.byte_limit.div_ceil(n);
            one.pass_bytes = spec.pass_bytes.div_ceil(n);
            one.seed.1 = spec.seed.1.wrapping_mul(4096).wrapping_add(i);
            if spec.order == super::io_spec::AccessOrder::Sequential {
                let share = (spec.len / n).next_multiple_of(u64::from(spec.block));
                one.start = spec.start + (share * i).min(spec.len);
                one.len = share.min(spec.len - (share * i).min(spec.len));
                if spec.byte_limit == spec.len {
                    one.byte_limit = one.len; // once through stays once through
                }
            }
            one
        })
        .filter(|s| s.len > 0)
        .collect()
}

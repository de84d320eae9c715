//! The plan of a run: everything it will do, shown before the start, sent to the child and stored with the result.

use super::fio::job::JobFile;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What is wrong with a plan, a parameter, a job file or an experiment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(pub String);

impl<T: Into<String>> From<T> for PlanError {
    fn from(why: T) -> Self {
        Self(why.into())
    }
}

/// The error `otherwise` if a condition is not met.
pub(crate) fn require(is_met: bool, otherwise: impl Into<PlanError>) -> Result<(), PlanError> {
    if is_met { Ok(()) } else { Err(otherwise.into()) }
}

/// How operations are submitted to the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum EngineChoice {
    /// io_uring, or threads where io_uring is unavailable.
    #[default]
    Auto,
    /// Only io_uring.
    Uring,
    /// pread and pwrite on a thread pool.
    Threads,
}

/// What a run does. A workload ignores the fields that are not among its parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BenchPlan {
    /// The workload's name.
    pub profile: String,
    /// Directory of the file.
    pub directory: PathBuf,
    /// The same directory again, which allows a network mount.
    pub network: Option<PathBuf>,
    /// Bytes of the file.
    pub size: u64,
    /// Bytes of one operation (of one append, record or piece).
    pub block: u32,
    /// Operations in flight per job.
    pub depth: u32,
    /// Worker threads, each with `depth` operations in flight.
    pub jobs: u32,
    /// Percentage of reads.
    pub read_pct: u8,
    /// O_DIRECT; otherwise through the page cache.
    pub direct: bool,
    /// Drops the file from the page cache before each pass, so that reads go to the device.
    pub cold: bool,
    /// Writes between two fdatasync calls; 0: none.
    pub fsync_every: u64,
    /// Operations per second, all jobs together; 0: no cap.
    pub rate_iops: u64,
    /// Bytes per second, all jobs together; 0: no cap.
    pub rate_bytes: u64,
    /// New random data for every write.
    pub refill: bool,
    /// Ramp-up before each measurement, ms.
    pub ramp_ms: u64,
    /// Counted time of each measurement, ms; 0: until `io_bytes` or the end of the work.
    pub time_ms: u64,
    /// Counted bytes, all jobs together; 0: no limit.
    pub io_bytes: u64,
    /// Time without any progress after which the run is abandoned, ms.
    pub stall_limit_ms: u64,
    /// Idle I/O class: served only when no other process uses the disk.
    pub idle: bool,
    /// How operations are submitted to the kernel.
    pub engine: EngineChoice,
    /// A kernel thread takes submissions.
    pub sqpoll: bool,
    /// Polled completions.
    pub iopoll: bool,
    /// Buffers on huge pages: a device then takes larger requests than from the buffers of most programs.
    pub huge_pages: bool,
    /// Seed of offsets and data.
    pub seed: u64,
    /// Of `sweep`: measures sequential reads with the device's read-ahead off and on.
    pub readahead: bool,
    /// Keeps a histogram of every interval, for fio's histogram logs.
    pub interval_histograms: bool,
    /// Of `depth` and `mix`: the 99th percentile of latency that is asked for, us; 0: none.
    pub latency_target_us: u64,
    /// `txlog` only.
    pub txlog: TxLogParams,
    /// `fio` only: the jobs of a fio job file, which then say everything but the directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_file: Option<JobFile>,
}

/// State of txlog's store in the page cache when counting begins. It decides how much memory the write of one record
/// makes dirty: at least a folio.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum CacheLayout {
    /// Written in 4 KiB chunks and locked in memory: a record dirties 4 KiB.
    #[default]
    Small,
    /// Written in 1 MiB chunks and locked in memory: a record dirties up to 1 MiB where there are large folios.
    Large,
    /// Dropped from the cache: records are read from the device.
    Cold,
}

/// Parameters of the database write test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TxLogParams {
    /// Transactions; 0: as many as fit in the plan's time.
    pub transactions: u64,
    /// Fewest records of a transaction.
    pub min_records: u64,
    /// Most records of a transaction; the same as `min_records` for a fixed number.
    pub max_records: u64,
    /// State of the store in the page cache at the start.
    pub layout: CacheLayout,
    /// Access the store through a memory mapping.
    pub mmap: bool,
    /// Sync the log after each transaction.
    pub sync: bool,
    /// Append the records to the log.
    pub write_log: bool,
    /// Write the records back to the store.
    pub write_store: bool,
    /// Read the records first.
    pub read: bool,
}

impl Default for TxLogParams {
    fn default() -> Self {
        Self {
            transactions: 100,
            min_records: 100,
            max_records: 500,
            layout: CacheLayout::default(),
            mmap: true,
            sync: true,
            write_log: true,
            write_store: true,
            read: true,
        }
    }
}

impl Default for BenchPlan {
    /// 4 KiB random I/O, half reads and half writes, depth 64, direct, on 1 GiB, for 30 s.
    fn default() -> Self {
        Self {
            profile: "randrw".into(),
            directory: PathBuf::new(),
            network: None,
            size: 1 << 30,
            block: 4096,
            depth: 64,
            jobs: 1,
            read_pct: 50,
            direct: true,
            cold: false,
            fsync_every: 0,
            rate_iops: 0,
            rate_bytes: 0,
            refill: false,
            ramp_ms: 1000,
            time_ms: 30_000,
            io_bytes: 0,
            stall_limit_ms: 30_000,
            idle: false,
            engine: EngineChoice::Auto,
            sqpoll: false,
            iopoll: false,
            huge_pages: false,
            seed: 0x1075_06ca_11ed,
            readahead: false,
            interval_histograms: false,
            latency_target_us: 0,
            txlog: TxLogParams::default(),
            job_file: None,
        }
    }
}

const MAX_DEPTH: u32 = 4096;
const MAX_JOBS: u32 = 64;
pub(crate) const MAX_BLOCK: u32 = 64 << 20;
const MAX_BUFFER_BYTES: u64 = 512 << 20;
const MAX_THREADS: u32 = 1024;

impl BenchPlan {
    /// Checks the values against their limits and each other, whatever the machine.
    pub fn check(&self) -> Result<(), PlanError> {
        let within = |what: &str, n: u64, least: u64, most: u64| {
            require((least..=most).contains(&n), format!("{what} {n}: must be {least} to {most}"))
        };
        let Self { size, block, depth, jobs, .. } = *self;
        let bytes_in_flight = u64::from(depth) * u64::from(jobs) * u64::from(block);
        within("depth", depth.into(), 1, MAX_DEPTH.into())?;
        within("jobs", jobs.into(), 1, MAX_JOBS.into())?;
        within("block size", block.into(), 1, MAX_BLOCK.into())?;
        within("read share", self.read_pct.into(), 0, 100)?;
        within("stall limit (ms)", self.stall_limit_ms, 1000, 3_600_000)?;
        within("time (ms)", self.time_ms, 0, 7 * 86_400_000)?;
        within("ramp-up (ms)", self.ramp_ms, 0, 3_600_000)?;
        require(size >= block.into(), format!("size {size} is less than one block of {block}"))?;
        require(
            size / u64::from(jobs) >= block.into(),
            format!("size {size} leaves {jobs} jobs less than one block each"),
        )?;
        require(size <= 1 << 50, format!("size {size}: at most 1 PiB"))?;
        let (needed, most) = (bytes_in_flight >> 20, MAX_BUFFER_BYTES >> 20);
        require(
            bytes_in_flight <= MAX_BUFFER_BYTES,
            format!("depth {depth} x jobs {jobs} x block size {block} needs {needed} MiB of buffers, at most {most}"),
        )?;
        require(
            self.engine != EngineChoice::Threads || self.fits_threads(),
            format!("depth x jobs would be {} threads, at most {MAX_THREADS}", depth * jobs),
        )?;
        require(!self.cold || !self.direct, "--cold: direct I/O has no cache to drop; leave out --direct")?;
        require(self.direct || !self.iopoll, "--iopoll works with direct I/O only")?;
        require(
            !self.direct || block.is_multiple_of(512),
            format!(
                "block size {block}: direct I/O needs a multiple of the device's block, 512 at least; or add --buffered"
            ),
        )?;
        require(
            !self.readahead || (self.profile == "sweep" && !self.direct && self.read_pct == 100),
            "--readahead: only for sweep, which then only reads, through the page cache",
        )?;
        let t = &self.txlog;
        let has_end = t.transactions > 0 || self.time_ms > 0;
        require(
            has_end && (1..=t.max_records).contains(&t.min_records) && t.max_records <= 1_000_000,
            "txlog: transactions >= 1 (0 with a time) and 1 <= min records <= max records <= 1000000",
        )
    }

    pub(crate) fn fits_threads(&self) -> bool {
        self.depth * self.jobs <= MAX_THREADS
    }

    /// Time between two operations of one job under the rate limits, for operations of `block` bytes, ns; 0: no limit.
    pub(crate) fn op_interval_ns(&self, block: u32) -> u64 {
        let share = u64::from(self.jobs) * 1_000_000_000;
        let by_iops = share.checked_div(self.rate_iops).unwrap_or(0);
        let bytes = u128::from(share) * u128::from(block);
        let by_bytes = bytes.checked_div(self.rate_bytes.into()).unwrap_or(0);
        by_iops.max(u64::try_from(by_bytes).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_values_are_rejected_by_name() {
        assert_eq!(BenchPlan::default().check(), Ok(()));
        let why = |change: fn(&mut BenchPlan)| {
            let mut plan = BenchPlan::default();
            change(&mut plan);
            plan.check().expect_err("accepted").0
        };
        assert!(why(|p| p.depth = 0).contains("depth 0"));
        assert!(why(|p| p.depth = 1_000_000).contains("4096"));
        assert!(why(|p| p.block = 4095).contains("direct"));
        assert!(why(|p| p.size = 100).contains("less than one block"));
        assert!(why(|p| p.read_pct = 101).contains("read share"));
        assert!(
            why(|p| {
                p.block = 64 << 20;
                p.depth = 4096
            })
            .contains("buffers")
        );
        assert!(
            why(|p| {
                p.direct = false;
                p.iopoll = true
            })
            .contains("iopoll")
        );
        assert!(why(|p| p.readahead = true).contains("--readahead"));
        assert!(why(|p| p.txlog.max_records = 1).contains("txlog"));
    }

    #[test]
    fn rate_caps_become_intervals_between_operations() {
        let gap = |rate_iops, rate_bytes, jobs| {
            BenchPlan { rate_iops, rate_bytes, jobs, ..BenchPlan::default() }.op_interval_ns(4096)
        };
        assert_eq!(gap(0, 0, 1), 0);
        assert_eq!(gap(1000, 0, 1), 1_000_000);
        assert_eq!(gap(1000, 0, 2), 2_000_000);
        assert_eq!(gap(0, 4096 * 100, 1), 10_000_000);
        assert_eq!(gap(1000, 4096 * 100, 1), 10_000_000);
    }

    #[test]
    fn unknown_plan_fields_are_rejected() {
        assert!(serde_json::from_str::<BenchPlan>(r#"{"profile":"randrw","shell":"rm"}"#).is_err());
        let plan = BenchPlan::default();
        assert_eq!(serde_json::from_str::<BenchPlan>(&serde_json::to_string(&plan).unwrap()).unwrap(), plan);
    }
}

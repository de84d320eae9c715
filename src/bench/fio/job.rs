//! What a section of a fio job file says, after all options are read: fio's options with fio's defaults.
//!
//! Names, units and defaults are those of fio's HOWTO. Lists of three are for reads, writes and trims.

use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;
use std::path::{Path, PathBuf};

/// Index of reads in lists of three.
pub(crate) const READ: usize = 0;
/// Index of writes.
pub(crate) const WRITE: usize = 1;
/// Index of trims.
pub(crate) const TRIM: usize = 2;

/// A number of bytes, or a share of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Amount {
    /// Bytes.
    Bytes(u64),
    /// Percent of the file, 1 to 100.
    Percent(u8),
}

impl Default for Amount {
    fn default() -> Self {
        Self::Bytes(0)
    }
}

impl Amount {
    /// Bytes of it in a file of `whole` bytes.
    pub(crate) fn of(self, whole: u64) -> u64 {
        match self {
            Self::Bytes(n) => n,
            Self::Percent(p) => (u128::from(whole) * u128::from(p) / 100) as u64,
        }
    }
}

/// `rw`: what is done, in which order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AccessPattern {
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    pub(crate) trims: bool,
    pub(crate) random: bool,
    /// Random patterns: a new random offset after so many operations (`rw=randread:8`); 0: each.
    pub(crate) run_length: u64,
    /// Sequential patterns: added to each offset (`rw=write:4k`, `rw=read:-8k`).
    pub(crate) stride: i64,
    /// `rw_sequencer=identical`.
    pub(crate) repeats_offset: bool,
}

impl AccessPattern {
    /// Reads and writes mixed.
    pub(crate) fn is_mixed(&self) -> bool {
        self.reads && self.writes
    }

    /// Each block trimmed, then written.
    pub(crate) fn is_trim_write(&self) -> bool {
        self.trims && self.writes
    }
}

/// `ioengine`, as the file names it.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, strum::EnumString, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub(crate) enum FioEngine {
    #[default]
    Psync,
    Sync,
    Vsync,
    Pvsync,
    Pvsync2,
    Libaio,
    Posixaio,
    IoUring,
    /// Copies from and to a mapping of the file.
    Mmap,
    /// No I/O.
    Null,
    /// Allocates ranges instead of writing them.
    Falloc,
    /// Sets the length of the file to the offset of each write.
    Ftruncate,
}

impl FioEngine {
    /// Whether it does one operation at a time, whatever `iodepth` says.
    pub(crate) fn is_synchronous(self) -> bool {
        !matches!(self, Self::Libaio | Self::Posixaio | Self::IoUring)
    }
}

/// `random_distribution`. Fractions are in millionths.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Distribution {
    #[default]
    Uniform,
    /// Theta and, if given, the centre (share of the file).
    Zipf(u64, Option<u64>),
    /// Power and centre.
    Pareto(u64, Option<u64>),
    /// Deviation in percent and centre.
    Normal(u64, Option<u64>),
    /// Percent of the accesses to the next percent of the file, for each direction.
    Zoned([Vec<(u8, u8)>; 3]),
    /// Percent of the accesses to the next bytes of the file.
    ZonedBytes([Vec<(u8, u64)>; 3]),
}

/// `random_generator`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RandomGenerator {
    #[default]
    Tausworthe,
    /// Every block once a pass without a map.
    Lfsr,
}

/// `fallocate`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Preallocation {
    /// fallocate(2), `native` and `posix`.
    #[default]
    Allocate,
    /// `keep`.
    KeepSize,
    /// `none` and `truncate`.
    None,
}

/// `file_service_type`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FileService {
    #[default]
    RoundRobin,
    Sequential,
    Random,
}

/// `verify`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum VerifyMethod {
    Crc32c,
    Sha256,
    /// `pattern`: the whole block is `verify_pattern`, without a header.
    Pattern,
}

/// What `steadystate` watches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SteadyMetric {
    #[default]
    Iops,
    Bandwidth,
    Latency,
}

/// `steadystate`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SteadyState {
    pub(crate) metric: SteadyMetric,
    /// Least-squares slope; otherwise the largest deviation from the mean.
    pub(crate) slope: bool,
    /// In millionths of the unit or, with `percent`, of a percent.
    pub(crate) limit_millionths: u64,
    pub(crate) percent: bool,
}

/// Operations of a job with a priority of their own: those of one size, or all. From `cmdprio_*`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommandPriority {
    /// 0: of any size.
    pub(crate) block: u64,
    pub(crate) percent: u8,
    /// Class (`None`: that of `cmdprio_class`), level and hint.
    pub(crate) priority: Option<(u8, u8, u8)>,
}

/// `numa_mem_policy`: a mode of set_mempolicy(2), and nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemoryPolicy {
    pub(crate) mode: i32,
    pub(crate) nodes: Vec<usize>,
}

/// `exit_what`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExitScope {
    /// The jobs of its group.
    #[default]
    Group,
    /// All that run, up to the next stonewall.
    Stonewall,
    /// All jobs of the file.
    All,
}

/// What write buffers hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BufferContent {
    /// Random data, changed a little for each write (`scramble_buffers`).
    #[default]
    Scramble,
    /// Random data, the same for each write of a slot (`scramble_buffers=0`).
    Fixed,
    /// New random data for each write (`refill_buffers`).
    Refill,
    /// `zero_buffers`.
    Zero,
    /// `buffer_pattern`.
    Pattern(Vec<u8>),
}

/// `dedupe_mode`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DedupeMode {
    /// A block repeats the unique one before it.
    #[default]
    Repeat,
    /// A block repeats one of a set.
    WorkingSet,
}

/// The options of one job. Times are in microseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct FioJob {
    /// Name of the section.
    pub(crate) name: String,
    /// Line of the section.
    pub(crate) line: usize,
    #[default(AccessPattern { reads: true, ..AccessPattern::default() })]
    pub(crate) rw: AccessPattern,
    pub(crate) engine: FioEngine,
    #[default = 1]
    pub(crate) iodepth: u32,
    #[default = 1]
    pub(crate) iodepth_batch: u32,
    #[default = 1]
    pub(crate) batch_complete_min: u32,
    #[default = 0]
    pub(crate) batch_complete_max: u32,
    /// 0: as `iodepth`.
    pub(crate) iodepth_low: u32,
    pub(crate) sqthread_poll: bool,
    pub(crate) hipri: bool,
    /// Buffers on huge pages.
    pub(crate) huge_pages: bool,
    pub(crate) size: Amount,
    pub(crate) io_size: Amount,
    /// Smallest and largest size of a file.
    pub(crate) filesize: Option<(u64, u64)>,
    pub(crate) offset: Amount,
    pub(crate) offset_align: u64,
    pub(crate) offset_increment: Amount,
    #[default([4096; 3])]
    pub(crate) bs: [u64; 3],
    /// `bsrange`: smallest and largest.
    pub(crate) bsrange: [Option<(u64, u64)>; 3],
    /// Sizes with their percentages.
    pub(crate) bssplit: [Vec<(u64, u8)>; 3],
    /// 0: as the smallest block.
    pub(crate) blockalign: [u64; 3],
    pub(crate) bs_unaligned: bool,
    pub(crate) bs_is_seq_rand: bool,
    #[default = 1]
    pub(crate) nrfiles: u32,
    pub(crate) filename: Vec<String>,
    /// Names of files if there is no `filename`.
    #[default = "$jobname.$jobnum.$filenum"]
    pub(crate) filename_format: String,
    pub(crate) directory: Vec<String>,
    /// Files open at a time; 0: all.
    pub(crate) openfiles: u32,
    /// Writes go on to the end of the file.
    pub(crate) fill_device: bool,
    pub(crate) file_service: FileService,
    /// Operations before the next file is taken.
    #[default = 1]
    pub(crate) file_service_run: u32,
    #[default = 1]
    pub(crate) numjobs: u32,
    #[default = 1]
    pub(crate) loops: u64,
    pub(crate) number_ios: u64,
    pub(crate) runtime_us: u64,
    pub(crate) ramp_us: u64,
    /// Shortest and longest delay of the start.
    pub(crate) startdelay_us: (u64, u64),
    pub(crate) time_based: bool,
    pub(crate) direct: bool,
    /// `sync`: O_SYNC or O_DSYNC.
    pub(crate) sync_writes: bool,
    pub(crate) data_sync_writes: bool,
    #[default = true]
    pub(crate) invalidate: bool,
    #[default = true]
    pub(crate) fadvise_hint: bool,
    pub(crate) fallocate: Preallocation,
    pub(crate) overwrite: bool,
    pub(crate) pre_read: bool,
    #[default = 50]
    pub(crate) rwmixread: u8,
    #[default([100; 3])]
    pub(crate) percentage_random: [u8; 3],
    pub(crate) norandommap: bool,
    pub(crate) generator: RandomGenerator,
    pub(crate) distribution: Distribution,
    pub(crate) randseed: Option<u64>,
    #[default = true]
    pub(crate) randrepeat: bool,
    pub(crate) fsync: u64,
    pub(crate) fdatasync: u64,
    pub(crate) end_fsync: bool,
    pub(crate) rate: [u64; 3],
    pub(crate) rate_iops: [u64; 3],
    pub(crate) rate_min: [u64; 3],
    pub(crate) rate_iops_min: [u64; 3],
    /// `rate_process=poisson`.
    pub(crate) poisson: bool,
    #[default = 1_000_000]
    pub(crate) rate_cycle_us: u64,
    pub(crate) rate_ignore_thinktime: bool,
    pub(crate) thinktime_us: u64,
    pub(crate) thinktime_spin_us: u64,
    /// 0: one.
    pub(crate) thinktime_blocks: u64,
    /// Blocks are counted when issued; otherwise when complete.
    pub(crate) thinktime_counts_issued: bool,
    pub(crate) thinktime_iotime_us: u64,
    pub(crate) verify: Option<VerifyMethod>,
    #[default = true]
    pub(crate) do_verify: bool,
    /// 0: as the block.
    pub(crate) verify_interval: u64,
    pub(crate) verify_backlog: u64,
    pub(crate) verify_backlog_batch: u64,
    pub(crate) verify_fatal: bool,
    /// Data of verified blocks; empty: random.
    pub(crate) verify_pattern: Vec<u8>,
    pub(crate) latency_target_us: u64,
    pub(crate) latency_window_us: u64,
    #[default = 100_000_000]
    pub(crate) latency_percent_millionths: u64,
    pub(crate) latency_run: bool,
    pub(crate) max_latency_us: [u64; 3],
    pub(crate) steady: Option<SteadyState>,
    pub(crate) steady_duration_us: u64,
    pub(crate) steady_ramp_us: u64,
    #[default = 1_000_000]
    pub(crate) steady_interval_us: u64,
    /// Processors, and whether each clone gets one of them.
    pub(crate) cpus: Vec<usize>,
    pub(crate) cpus_split: bool,
    pub(crate) nice: i32,
    /// Class (1 to 3; 0: none given) and level (0 to 7) of the I/O priority.
    pub(crate) io_priority: (u8, u8),
    /// `cmdprio_percentage`, `cmdprio_bssplit`, `cmdprio_class`, `cmdprio`, for each direction.
    pub(crate) cmdprio: [Vec<CommandPriority>; 3],
    pub(crate) cmdprio_class: [u8; 3],
    pub(crate) cmdprio_level: [u8; 3],
    pub(crate) numa_nodes: Vec<usize>,
    pub(crate) memory_policy: Option<MemoryPolicy>,
    pub(crate) stonewall: bool,
    pub(crate) new_group: bool,
    pub(crate) group_reporting: bool,
    pub(crate) wait_for: String,
    pub(crate) exitall: bool,
    pub(crate) exit_what: ExitScope,
    pub(crate) content: BufferContent,
    /// Percent of each chunk that compresses.
    pub(crate) compress_percent: u8,
    #[default = 512]
    pub(crate) compress_chunk: u64,
    /// Percent of the blocks that repeat others.
    pub(crate) dedupe_percent: u8,
    pub(crate) dedupe_mode: DedupeMode,
    #[default = 5]
    pub(crate) dedupe_set_percent: u8,
    pub(crate) dedupe_global: bool,
    /// `zonemode=strided`: bytes of I/O a zone, its range, the gap; 0: no zones.
    pub(crate) zone_size: u64,
    pub(crate) zone_range: u64,
    pub(crate) zone_skip: u64,
    pub(crate) flow: u32,
    pub(crate) flow_id: u32,
    pub(crate) flow_sleep_us: u64,
}

impl FioJob {
    /// Smallest and largest block of a direction.
    pub(crate) fn block_range(&self, direction: usize) -> (u64, u64) {
        let split = &self.bssplit[direction];
        let sizes = || split.iter().map(|(size, _)| *size);
        match (sizes().min(), sizes().max()) {
            (Some(least), Some(most)) => (least, most),
            _ => self.bsrange[direction].unwrap_or((self.bs[direction], self.bs[direction])),
        }
    }

    /// The directions the job works in.
    pub(crate) fn directions(&self) -> impl Iterator<Item = usize> {
        let used = [self.rw.reads, self.rw.writes, self.rw.trims];
        (0..3).filter(move |d| used[*d])
    }

    /// Smallest block of all directions, used or not, as fio's `td_min_bs` has it.
    pub(crate) fn min_block(&self) -> u64 {
        (0..3).map(|d| self.block_range(d).0).min().unwrap_or(4096)
    }

    /// Largest block of all directions.
    pub(crate) fn max_block(&self) -> u64 {
        (0..3).map(|d| self.block_range(d).1).max().unwrap_or(4096)
    }

    /// Alignment of random offsets.
    pub(crate) fn alignment(&self, direction: usize) -> u64 {
        match self.blockalign[direction] {
            n if n > 0 && self.rw.random => n,
            _ => self.block_range(direction).0,
        }
    }

    /// Whether blocks may be visited again before all were: `norandommap`, and what implies it.
    pub(crate) fn skips_random_map(&self) -> bool {
        let is_aligned = (0..3).all(|d| self.alignment(d) == self.block_range(d).0);
        self.norandommap || !is_aligned || self.distribution != Distribution::Uniform
    }

    /// Whether a map sees to it that each block is visited once a pass.
    pub(crate) fn has_random_map(&self) -> bool {
        self.rw.random && !self.skips_random_map() && self.generator == RandomGenerator::Tausworthe
    }

    /// The directories it names, with those of files named by their whole path. Devices are in none.
    pub(crate) fn directories(&self) -> Vec<PathBuf> {
        let of_files = self.filename.iter().filter(|name| !name.starts_with("/dev/"));
        let of_files = of_files.filter_map(|name| Path::new(name).parent().filter(|dir| dir.is_absolute()));
        of_files.map(Path::to_owned).chain(self.directory.iter().map(PathBuf::from)).collect()
    }

    /// Operations in flight.
    pub(crate) fn depth(&self) -> u32 {
        if self.engine.is_synchronous() { 1 } else { self.iodepth.max(1) }
    }
}

/// The jobs of a file, in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JobFile {
    pub(crate) jobs: Vec<FioJob>,
    /// What is done otherwise than the file says, and options that have no effect here.
    pub(crate) notes: Vec<String>,
}

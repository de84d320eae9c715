//! The options of fio job files that do not change the work here, or cannot be honoured.

use super::option_rule::FioOption;
use super::option_rule::OptionRule::{NoEffect, Output, Refused, Replaced};

const OFF: &[&str] = &["0", "none"];
const OWN_FILES: &str = "files here are nameless and gone with the run";
pub(super) const NO_LOG: &str = "use --fio-logs PREFIX; --format json has the time series, too";
pub(super) const DEVICES: &str = "it is for zoned devices, and benchmarks here only use files of their own";
const TRACES: &str = "replaying traces is not supported; describe the load with rw, bs and rate";
const OTHER_USERS: &str = "start the program itself in that group or as that user";

pub(super) const ENGINES: &str =
    "psync, sync, vsync, pvsync, pvsync2, libaio, posixaio, io_uring, mmap, falloc, ftruncate, null";

/// Engines of fio that are refused, and why.
pub(super) const OTHER_ENGINES: &[(&str, &str)] = &[
    (
        "filecreate filestat filedelete dircreate dirstat dirdelete",
        "it names files, which a killed run would leave behind",
    ),
    ("cpuio", "it does no I/O"),
    ("exec cpp_null", "a job file starts no programs here"),
    ("e4defrag page_fault", "it measures the memory or blocks of a file, not its I/O"),
    (
        "net netsplice rdma http rados rbd gfapi gfapi_async nfs nbd libhdfs libiscsi dfs ime_psync ime_psyncv ime_aio",
        "it needs a server, and storage here is a directory",
    ),
    (
        "sg io_uring_cmd xnvme libzbc mtd dev-dax libpmem pmemblk libblkio libcufile libhipfile",
        "it needs a device of its own, and storage here is a directory",
    ),
    ("splice", "its copy through a pipe is not what programs do with files; use psync"),
];

/// All other options.
pub(super) const OTHERS: &[FioOption] = &[
    FioOption("name", NoEffect("the section's name is used")),
    FioOption("description", Output),
    FioOption("thread threads", NoEffect("every job is a thread")),
    FioOption("kb_base", NoEffect("applied to the sizes of its section")),
    FioOption("unit_base", Output),
    FioOption("clocksource", NoEffect("the clock is CLOCK_MONOTONIC")),
    FioOption("gtod_reduce", NoEffect("times are read once a batch")),
    FioOption("gtod_cpu", NoEffect("times are read by the job's own thread")),
    FioOption("disable_lat disable_clat disable_slat disable_bw_measurement disable_bw", Output),
    FioOption("clat_percentiles lat_percentiles slat_percentiles percentile_list", Output),
    FioOption("significant_figures disk_util unified_rw_reporting stats error_dump block_error_percentiles", Output),
    FioOption("write_bw_log write_lat_log write_iops_log write_hist_log per_job_logs", NoEffect(NO_LOG)),
    FioOption(
        "log_avg_msec log_hist_msec log_hist_coarseness log_max_value log_window_value log_offset log_prio log_entries",
        NoEffect(NO_LOG),
    ),
    FioOption("log_compression log_compression_cpus log_store_compressed log_issue_time", NoEffect(NO_LOG)),
    FioOption("log_unix_epoch log_alternate_epoch log_alternate_epoch_clock_id job_start_clock_id", NoEffect(NO_LOG)),
    FioOption("bwavgtime iopsavgtime", Output),
    FioOption("verify_dump", NoEffect("the bad block's offset and both checksums are reported")),
    FioOption("verify_async verify_async_cpus", NoEffect("checksums are verified by the job's own thread")),
    FioOption(
        "verify_write_sequence verify_header_seed",
        NoEffect("every block's header has its offset and its number"),
    ),
    FioOption("verify_state_save", NoEffect(OWN_FILES)),
    FioOption("registerfiles fixedbufs", NoEffect("io_uring always has its files and buffers registered")),
    FioOption("nonvectored", NoEffect("operations have one buffer each")),
    FioOption("sqthread_poll_cpu", Replaced(&[], "the kernel chooses the processor of the submitting thread")),
    FioOption("userspace_reap", NoEffect("completions are taken in user space")),
    FioOption("iomem_align mem_align hugepage-size", NoEffect("buffers are aligned to pages")),
    FioOption("lockmem", Refused(OFF, "remove it: nothing else is locked in memory")),
    FioOption(
        "create_serialize create_fsync create_on_open allow_file_create",
        NoEffect("files are made before the run, one after the other"),
    ),
    FioOption("unlink unique_filename", NoEffect(OWN_FILES)),
    FioOption(
        "unlink_each_loop",
        Replaced(OFF, "the file of the first pass is used again: it is nameless and gone with the run"),
    ),
    FioOption("opendir", Refused(&[], "name files with filename or nrfiles: no existing file is opened")),
    FioOption("allow_mounted_write", NoEffect("devices are never written to")),
    FioOption("lockfile", Refused(OFF, "remove it: files are the run's own")),
    FioOption("create_only", Refused(OFF, "remove it: files do not outlive a run")),
    FioOption("file_append", Refused(OFF, "use offset instead: files are new")),
    FioOption("softrandommap", NoEffect("a map is always made, or the file is refused")),
    FioOption("serialize_overlap", Refused(OFF, "remove it, or keep blocks apart with a random map")),
    FioOption("io_submit_mode", Replaced(&["inline"], "the job's own thread submits, as with io_submit_mode=inline")),
    FioOption("atomic", Refused(OFF, "remove it: RWF_ATOMIC needs a device with atomic writes")),
    FioOption("nowait uncached force_async", Refused(OFF, "remove it: operations have no flags of their own")),
    FioOption("hipri_percentage", Refused(OFF, "use hipri for all operations or for none")),
    FioOption("write_hint", Refused(&["none"], "remove it: write lifetimes are not passed on")),
    FioOption("write_barrier", Refused(OFF, "use fdatasync")),
    FioOption("sync_file_range", Refused(OFF, "use fdatasync: sync_file_range(2) gives no guarantee")),
    FioOption("end_syncfs", Refused(OFF, "use end_fsync: syncfs writes the files of others, too")),
    FioOption("verify_offset", Refused(&["0"], "remove it: a header begins its block")),
    FioOption("experimental_verify", Refused(OFF, "remove it: what was written is remembered")),
    FioOption("verify_only verify_state_load", Refused(OFF, "write and verify in one job: files do not outlive a run")),
    FioOption(
        "trim_percentage trim_verify_zero trim_backlog trim_backlog_batch num_range",
        Refused(OFF, "use rw=trim, rw=randtrim or rw=trimwrite"),
    ),
    FioOption(
        "continue_on_error ignore_error",
        Refused(OFF, "remove it: an error ends the run, with the figures so far"),
    ),
    FioOption("exitall_on_error", NoEffect("an error always ends the whole run")),
    FioOption(
        "read_iolog read_iolog_chunked replay_no_stall replay_redirect replay_scale replay_align replay_time_scale replay_skip",
        Refused(&[], TRACES),
    ),
    FioOption("merge_blktrace_file merge_blktrace_scalars merge_blktrace_iters", Refused(&[], TRACES)),
    FioOption(
        "write_iolog",
        Refused(&[], "remove it; `strace -f -e trace=io_uring_enter,pread64,pwrite64` shows the operations"),
    ),
    FioOption("exec_prerun exec_postrun", Refused(&[], "run it yourself: a job file starts no programs here")),
    FioOption("ioscheduler", Refused(&[], "set it with `iotop-plus tune`, which restores it")),
    FioOption(
        "zonecapacity read_beyond_wp max_open_zones job_max_open_zones ignore_zone_limits",
        Refused(&[], DEVICES),
    ),
    FioOption(
        "zone_reset_threshold zone_reset_frequency recover_zbd_write_error write_zone_remainder",
        Refused(&[], DEVICES),
    ),
    FioOption("cgroup cgroup_weight cgroup_nodelete uid gid", Refused(&[], OTHER_USERS)),
    FioOption("profile", Refused(&[], "write its jobs out")),
    FioOption("thinkcycles", Refused(OFF, "use thinktime_spin")),
    FioOption(
        "sprandom spr_op spr_num_regions spr_cs",
        Refused(OFF, "overwrite twice at random: sprandom needs the whole device"),
    ),
    FioOption("random_sequence random_sequence_stride", Refused(&[], "use rw, bs and random_distribution")),
    FioOption(
        "fdp fdp_pli fdp_pli_select dataplacement data_placement plid_select plids dp_scheme",
        Refused(OFF, "it needs an NVMe device with data placement"),
    ),
    FioOption(
        "cmd_type md_per_io_size pi_act pi_chk apptag apptag_mask write_mode verify_mode readfua writefua",
        Refused(&[], "it needs a device of its own"),
    ),
    FioOption(
        "percentage_sequential verifysort verifysort_nr rwmixcycle flow_watermark",
        NoEffect("fio ignores it, too"),
    ),
];

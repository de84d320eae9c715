//! The options of fio job files, one row each: its names, and what becomes of it.

use super::job::{
    AccessPattern, BufferContent, CommandPriority, DedupeMode, ExitScope, FileService, FioEngine, FioJob,
    Preallocation, RandomGenerator, VerifyMethod,
};
use super::option_rule::{FioOption, OptionRule};
use super::other_options::{DEVICES, ENGINES, OTHER_ENGINES, OTHERS};
use super::value::{OptionValue, millionths};
use OptionRule::Honoured;

const SECOND: u64 = 1_000_000;

/// Options that change the work.
pub(super) const HONOURED: &[FioOption] = &[
    FioOption("rw readwrite", Honoured(|o, v| pattern(v).map(|rw| set_pattern(o, rw)))),
    FioOption(
        "rw_sequencer",
        Honoured(|o, v| choose(v, &[("sequential", false), ("identical", true)]).map(|is| o.rw.repeats_offset = is)),
    ),
    FioOption("ioengine", Honoured(|o, v| engine(v).map(|e| o.engine = e))),
    FioOption("iodepth", Honoured(|o, v| at_least_1(v).map(|n| o.iodepth = n))),
    FioOption("iodepth_batch iodepth_batch_submit", Honoured(|o, v| v.count().map(|n| o.iodepth_batch = n))),
    FioOption(
        "iodepth_batch_complete_min iodepth_batch_complete",
        Honoured(|o, v| v.count().map(|n| o.batch_complete_min = n)),
    ),
    FioOption("iodepth_batch_complete_max", Honoured(|o, v| v.count().map(|n| o.batch_complete_max = n))),
    FioOption("iodepth_low", Honoured(|o, v| v.count().map(|n| o.iodepth_low = n))),
    FioOption("sqthread_poll", Honoured(|o, v| v.flag().map(|on| o.sqthread_poll = on))),
    FioOption("hipri", Honoured(|o, v| v.flag().map(|on| o.hipri = on))),
    FioOption(
        "mem iomem",
        Honoured(|o, v| {
            let choices = [("malloc", false), ("mmap", false), ("shm", false), ("mmaphuge", true), ("shmhuge", true)];
            choose(v, &choices).map(|huge| o.huge_pages = huge)
        }),
    ),
    FioOption("size", Honoured(|o, v| v.amount().map(|n| o.size = n))),
    FioOption("io_size io_limit", Honoured(|o, v| v.amount().map(|n| o.io_size = n))),
    FioOption("filesize", Honoured(|o, v| v.byte_range().map(|range| o.filesize = Some(range)))),
    FioOption("offset fileoffset", Honoured(|o, v| v.amount().map(|n| o.offset = n))),
    FioOption("offset_align", Honoured(|o, v| v.bytes().map(|n| o.offset_align = n))),
    FioOption("offset_increment", Honoured(|o, v| v.amount().map(|n| o.offset_increment = n))),
    FioOption("bs blocksize", Honoured(|o, v| v.per_direction(&mut o.bs, |v| block(v.bytes()?)))),
    FioOption(
        "bsrange blocksize_range",
        Honoured(|o, v| v.per_direction(&mut o.bsrange, |v| block_range(v).map(Some))),
    ),
    FioOption("bssplit", Honoured(|o, v| v.per_direction(&mut o.bssplit, |v| v.block_split()))),
    FioOption("ba blockalign", Honoured(|o, v| v.per_direction(&mut o.blockalign, |v| v.bytes()))),
    FioOption("bs_unaligned blocksize_unaligned", Honoured(|o, v| v.flag().map(|on| o.bs_unaligned = on))),
    FioOption("bs_is_seq_rand", Honoured(|o, v| v.flag().map(|on| o.bs_is_seq_rand = on))),
    FioOption("nrfiles nr_files", Honoured(|o, v| at_least_1(v).map(|n| o.nrfiles = n))),
    FioOption("openfiles", Honoured(|o, v| v.count().map(|n| o.openfiles = n))),
    FioOption("fill_device fill_fs", Honoured(|o, v| v.flag().map(|on| o.fill_device = on))),
    FioOption("filename", Honoured(|o, v| names(v).map(|all| o.filename = all))),
    FioOption("filename_format", Honoured(filename_format)),
    FioOption("directory", Honoured(|o, v| names(v).map(|all| o.directory = all))),
    FioOption("file_service_type", Honoured(file_service)),
    FioOption("numjobs", Honoured(|o, v| at_least_1(v).map(|n| o.numjobs = n))),
    FioOption("loops", Honoured(|o, v| at_least_1(v).map(|n| o.loops = n.into()))),
    FioOption("number_ios", Honoured(|o, v| v.number().map(|n| o.number_ios = n))),
    FioOption("runtime timeout", Honoured(|o, v| v.micros(SECOND).map(|us| o.runtime_us = us))),
    FioOption("ramp_time", Honoured(|o, v| v.micros(SECOND).map(|us| o.ramp_us = us))),
    FioOption(
        "startdelay",
        Honoured(|o, v| {
            v.range(|_, text| OptionValue { text, kb_base: 1024 }.micros(SECOND)).map(|us| o.startdelay_us = us)
        }),
    ),
    FioOption("time_based", Honoured(|o, v| v.flag().map(|on| o.time_based = on))),
    FioOption("direct", Honoured(|o, v| v.flag().map(|on| o.direct = on))),
    FioOption("buffered", Honoured(|o, v| v.flag().map(|on| o.direct = !on))),
    FioOption(
        "sync",
        Honoured(|o, v| {
            let modes = [
                ("0", (false, false)),
                ("none", (false, false)),
                ("1", (true, false)),
                ("sync", (true, false)),
                ("dsync", (false, true)),
            ];
            choose(v, &modes).map(|mode| (o.sync_writes, o.data_sync_writes) = mode)
        }),
    ),
    FioOption("invalidate", Honoured(|o, v| v.flag().map(|on| o.invalidate = on))),
    FioOption(
        "fadvise_hint",
        Honoured(|o, v| choose(v, &[("none", false), ("0", false), ("1", true)]).map(|on| o.fadvise_hint = on)),
    ),
    FioOption(
        "fallocate",
        Honoured(|o, v| {
            use Preallocation::{Allocate, KeepSize, None};
            let modes = [
                ("native", Allocate),
                ("posix", Allocate),
                ("1", Allocate),
                ("keep", KeepSize),
                ("none", None),
                ("0", None),
                ("truncate", None),
            ];
            choose(v, &modes).map(|mode| o.fallocate = mode)
        }),
    ),
    FioOption("overwrite", Honoured(|o, v| v.flag().map(|on| o.overwrite = on))),
    FioOption("pre_read", Honoured(|o, v| v.flag().map(|on| o.pre_read = on))),
    FioOption("rwmixread", Honoured(|o, v| v.percent().map(|n| o.rwmixread = n))),
    FioOption("rwmixwrite", Honoured(|o, v| v.percent().map(|n| o.rwmixread = 100 - n))),
    FioOption("percentage_random", Honoured(|o, v| v.per_direction(&mut o.percentage_random, |v| v.percent()))),
    FioOption("norandommap", Honoured(|o, v| v.flag().map(|on| o.norandommap = on))),
    FioOption(
        "random_generator",
        Honoured(|o, v| {
            let all = [
                ("tausworthe", RandomGenerator::Tausworthe),
                ("tausworthe64", RandomGenerator::Tausworthe),
                ("lfsr", RandomGenerator::Lfsr),
            ];
            choose(v, &all).map(|g| o.generator = g)
        }),
    ),
    FioOption("random_distribution", Honoured(|o, v| v.distribution().map(|d| o.distribution = d))),
    FioOption("randseed", Honoured(|o, v| v.number().map(|n| o.randseed = Some(n)))),
    FioOption("randrepeat allrandrepeat", Honoured(|o, v| v.flag().map(|on| o.randrepeat = on))),
    FioOption("fsync", Honoured(|o, v| v.number().map(|n| o.fsync = n))),
    FioOption("fdatasync", Honoured(|o, v| v.number().map(|n| o.fdatasync = n))),
    FioOption("end_fsync", Honoured(|o, v| v.flag().map(|on| o.end_fsync |= on))),
    FioOption("fsync_on_close", Honoured(|o, v| v.flag().map(|on| o.end_fsync |= on))),
    FioOption("rate", Honoured(|o, v| v.per_direction(&mut o.rate, |v| v.bytes()))),
    FioOption("rate_iops", Honoured(|o, v| v.per_direction(&mut o.rate_iops, |v| v.number()))),
    FioOption("rate_min ratemin", Honoured(|o, v| v.per_direction(&mut o.rate_min, |v| v.bytes()))),
    FioOption("rate_iops_min", Honoured(|o, v| v.per_direction(&mut o.rate_iops_min, |v| v.number()))),
    FioOption("rate_cycle ratecycle", Honoured(|o, v| v.micros(1000).map(|us| o.rate_cycle_us = us))),
    FioOption(
        "rate_process",
        Honoured(|o, v| choose(v, &[("linear", false), ("poisson", true)]).map(|is| o.poisson = is)),
    ),
    FioOption("rate_ignore_thinktime", Honoured(|o, v| v.flag().map(|on| o.rate_ignore_thinktime = on))),
    FioOption("thinktime", Honoured(|o, v| v.micros(1).map(|us| o.thinktime_us = us))),
    FioOption("thinktime_spin", Honoured(|o, v| v.micros(1).map(|us| o.thinktime_spin_us = us))),
    FioOption("thinktime_blocks", Honoured(|o, v| v.number().map(|n| o.thinktime_blocks = n))),
    FioOption(
        "thinktime_blocks_type",
        Honoured(|o, v| choose(v, &[("complete", false), ("issue", true)]).map(|is| o.thinktime_counts_issued = is)),
    ),
    FioOption("thinktime_iotime", Honoured(|o, v| v.micros(SECOND).map(|us| o.thinktime_iotime_us = us))),
    FioOption("verify", Honoured(verify)),
    FioOption("do_verify", Honoured(|o, v| v.flag().map(|on| o.do_verify = on))),
    FioOption("verify_interval", Honoured(|o, v| v.bytes().map(|n| o.verify_interval = n))),
    FioOption("verify_backlog", Honoured(|o, v| v.number().map(|n| o.verify_backlog = n))),
    FioOption("verify_backlog_batch", Honoured(|o, v| v.number().map(|n| o.verify_backlog_batch = n))),
    FioOption("verify_fatal", Honoured(|o, v| v.flag().map(|on| o.verify_fatal = on))),
    FioOption("verify_pattern", Honoured(|o, v| v.pattern().map(|bytes| o.verify_pattern = bytes))),
    FioOption("latency_target", Honoured(|o, v| v.micros(1).map(|us| o.latency_target_us = us))),
    FioOption("latency_window", Honoured(|o, v| v.micros(1).map(|us| o.latency_window_us = us))),
    FioOption(
        "latency_percentile",
        Honoured(|o, v| millionths(v.text).map(|n| o.latency_percent_millionths = n.min(100_000_000))),
    ),
    FioOption("latency_run", Honoured(|o, v| v.flag().map(|on| o.latency_run = on))),
    FioOption("max_latency", Honoured(|o, v| v.per_direction(&mut o.max_latency_us, |v| v.micros(1)))),
    FioOption("steadystate ss", Honoured(|o, v| v.steady_state().map(|s| o.steady = Some(s)))),
    FioOption("steadystate_duration ss_dur", Honoured(|o, v| v.micros(SECOND).map(|us| o.steady_duration_us = us))),
    FioOption("steadystate_ramp_time ss_ramp", Honoured(|o, v| v.micros(SECOND).map(|us| o.steady_ramp_us = us))),
    FioOption(
        "steadystate_check_interval ss_interval",
        Honoured(|o, v| v.micros(SECOND).map(|us| o.steady_interval_us = us.max(SECOND))),
    ),
    FioOption("cpus_allowed", Honoured(|o, v| v.processors().map(|all| o.cpus = all))),
    FioOption(
        "cpumask",
        Honoured(|o, v| v.number().map(|mask| o.cpus = (0..64).filter(|n| mask >> n & 1 == 1).collect())),
    ),
    FioOption(
        "cpus_allowed_policy",
        Honoured(|o, v| choose(v, &[("shared", false), ("split", true)]).map(|is| o.cpus_split = is)),
    ),
    FioOption(
        "nice",
        Honoured(|o, v| {
            v.text.parse().ok().filter(|n| (-20..20).contains(n)).map(|n| o.nice = n).ok_or("-20 to 19".into())
        }),
    ),
    FioOption("prioclass", Honoured(|o, v| v.count().and_then(|n| small(n, 3)).map(|n| o.io_priority.0 = n))),
    FioOption(
        "prio",
        Honoured(|o, v| v.count().and_then(|n| small(n, 7)).map(|n| o.io_priority = (o.io_priority.0.max(2), n))),
    ),
    FioOption(
        "cmdprio_percentage",
        Honoured(|o, v| {
            v.per_direction(&mut o.cmdprio, |v| {
                Ok(vec![CommandPriority { percent: v.percent()?, ..CommandPriority::default() }])
            })
        }),
    ),
    FioOption(
        "cmdprio_bssplit cmdprio_split",
        Honoured(|o, v| v.per_direction(&mut o.cmdprio, |v| v.priority_split())),
    ),
    FioOption(
        "cmdprio_class",
        Honoured(|o, v| v.per_direction(&mut o.cmdprio_class, |v| v.count().and_then(|n| small(n, 3)))),
    ),
    FioOption(
        "cmdprio",
        Honoured(|o, v| v.per_direction(&mut o.cmdprio_level, |v| v.count().and_then(|n| small(n, 7)))),
    ),
    FioOption("numa_cpu_nodes", Honoured(|o, v| v.processors().map(|all| o.numa_nodes = all))),
    FioOption("numa_mem_policy", Honoured(|o, v| v.memory_policy().map(|p| o.memory_policy = Some(p)))),
    FioOption("stonewall wait_for_previous", Honoured(|o, v| v.flag().map(|on| o.stonewall = on))),
    FioOption("new_group", Honoured(|o, v| v.flag().map(|on| o.new_group = on))),
    FioOption("group_reporting", Honoured(|o, v| v.flag().map(|on| o.group_reporting = on))),
    FioOption(
        "wait_for",
        Honoured(|o, v| {
            o.wait_for = v.text.into();
            Ok(())
        }),
    ),
    FioOption("exitall", Honoured(|o, v| v.flag().map(|on| o.exitall = on))),
    FioOption(
        "exit_what",
        Honoured(|o, v| {
            choose(v, &[("group", ExitScope::Group), ("stonewall", ExitScope::Stonewall), ("all", ExitScope::All)])
                .map(|s| o.exit_what = s)
        }),
    ),
    FioOption("zero_buffers", Honoured(|o, v| v.flag().map(|on| set_content(o, on, BufferContent::Zero)))),
    FioOption("refill_buffers", Honoured(|o, v| v.flag().map(|on| set_content(o, on, BufferContent::Refill)))),
    FioOption("scramble_buffers", Honoured(|o, v| v.flag().map(|on| set_content(o, !on, BufferContent::Fixed)))),
    FioOption("buffer_pattern", Honoured(|o, v| v.pattern().map(|bytes| o.content = BufferContent::Pattern(bytes)))),
    FioOption("buffer_compress_percentage", Honoured(|o, v| v.percent().map(|n| o.compress_percent = n))),
    FioOption("buffer_compress_chunk", Honoured(|o, v| v.bytes().map(|n| o.compress_chunk = n.max(1)))),
    FioOption("dedupe_percentage", Honoured(|o, v| v.percent().map(|n| o.dedupe_percent = n))),
    FioOption(
        "dedupe_mode",
        Honoured(|o, v| {
            choose(v, &[("repeat", DedupeMode::Repeat), ("working_set", DedupeMode::WorkingSet)])
                .map(|mode| o.dedupe_mode = mode)
        }),
    ),
    FioOption("dedupe_working_set_percentage", Honoured(|o, v| v.percent().map(|n| o.dedupe_set_percent = n))),
    FioOption("dedupe_global", Honoured(|o, v| v.flag().map(|on| o.dedupe_global = on))),
    FioOption("zonemode", Honoured(|_, v| choose(v, &[("none", ()), ("strided", ())]).map_err(|_| DEVICES.into()))),
    FioOption("zonesize", Honoured(|o, v| v.bytes().map(|n| o.zone_size = n))),
    FioOption("zonerange", Honoured(|o, v| v.bytes().map(|n| o.zone_range = n))),
    FioOption("zoneskip", Honoured(|o, v| v.bytes().map(|n| o.zone_skip = n))),
    FioOption("flow", Honoured(|o, v| v.count().map(|n| o.flow = n))),
    FioOption("flow_id", Honoured(|o, v| v.count().map(|n| o.flow_id = n))),
    FioOption("flow_sleep", Honoured(|o, v| v.micros(1).map(|us| o.flow_sleep_us = us))),
];

/// The row of an option; `None`: fio has no such option for files.
pub(super) fn find_option(key: &str) -> Option<&'static FioOption> {
    HONOURED.iter().chain(OTHERS).find(|FioOption(names, _)| names.split(' ').any(|name| name == key))
}

fn choose<T: Clone>(value: &OptionValue<'_>, all: &[(&str, T)]) -> Result<T, String> {
    let found = all.iter().find(|(name, _)| *name == value.text).map(|(_, choice)| choice.clone());
    found.ok_or_else(|| all.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "))
}

fn at_least_1(value: &OptionValue<'_>) -> Result<u32, String> {
    value.count().and_then(|n| if n > 0 { Ok(n) } else { Err("1 or more".into()) })
}

fn small(n: u32, most: u8) -> Result<u8, String> {
    u8::try_from(n).ok().filter(|n| *n <= most).ok_or_else(|| format!("0 to {most}"))
}

fn block(bytes: u64) -> Result<u64, String> {
    if (1..=u64::from(crate::bench::plan::MAX_BLOCK)).contains(&bytes) {
        Ok(bytes)
    } else {
        Err("1 byte to 64 MiB".into())
    }
}

fn block_range(value: &OptionValue<'_>) -> Result<(u64, u64), String> {
    let (low, high) = value.byte_range()?;
    Ok((block(low)?, block(high)?))
}

fn names(value: &OptionValue<'_>) -> Result<Vec<String>, String> {
    let all: Vec<String> = value.text.split(':').map(str::to_owned).collect();
    if all.iter().any(|name| name.is_empty() || name == "-") { Err("names, separated by :".into()) } else { Ok(all) }
}

fn filename_format(job: &mut FioJob, value: &OptionValue<'_>) -> Result<(), String> {
    if value.text.contains("$clientuid") {
        return Err("$jobname, $jobnum and $filenum; there are no clients".into());
    }
    if !value.text.is_empty() {
        job.filename_format = value.text.into();
    }
    Ok(())
}

fn pattern(value: &OptionValue<'_>) -> Result<AccessPattern, String> {
    let (kind, more) = value.text.split_once(':').map_or((value.text, None), |(kind, more)| (kind, Some(more)));
    let (random, what) = kind.strip_prefix("rand").map_or((false, kind), |what| (true, what));
    let (reads, writes, trims) = match what {
        "read" => (true, false, false),
        "write" => (false, true, false),
        "trim" => (false, false, true),
        "rw" => (true, true, false),
        "readwrite" if !random => (true, true, false),
        "trimwrite" => (false, true, true),
        _ => return Err("read, write, rw, trim, trimwrite, or those with rand before them".into()),
    };
    let mut rw = AccessPattern { reads, writes, trims, random, ..AccessPattern::default() };
    match more {
        Some(more) if random => rw.run_length = OptionValue { text: more, kb_base: 1024 }.number()?,
        Some(more) => {
            let (sign, text) = more.strip_prefix('-').map_or((1, more), |text| (-1, text));
            let bytes = OptionValue { text, kb_base: value.kb_base }.bytes()?;
            rw.stride = i64::try_from(bytes).map_err(|_| "too large")? * sign;
        }
        None => {}
    }
    Ok(rw)
}

fn set_pattern(job: &mut FioJob, rw: AccessPattern) {
    job.rw = AccessPattern { repeats_offset: job.rw.repeats_offset, ..rw };
}

fn engine(value: &OptionValue<'_>) -> Result<FioEngine, String> {
    value.text.parse().map_err(|_| {
        let known = OTHER_ENGINES.iter().find(|(names, _)| names.split(' ').any(|name| name == value.text));
        let why = known.map_or("this engine is not supported", |(_, why)| why);
        format!("{why}; engines here: {ENGINES}")
    })
}

fn file_service(job: &mut FioJob, value: &OptionValue<'_>) -> Result<(), String> {
    let (kind, run) = value.text.split_once(':').unwrap_or((value.text, "1"));
    let all = [
        ("roundrobin", FileService::RoundRobin),
        ("sequential", FileService::Sequential),
        ("random", FileService::Random),
    ];
    job.file_service = choose(&OptionValue { text: kind, kb_base: 1024 }, &all)?;
    job.file_service_run = at_least_1(&OptionValue { text: run, kb_base: 1024 })?;
    Ok(())
}

/// Checksums of fio in place of which CRC-32C is used.
pub(super) const OTHER_CHECKSUMS: &[&str] = &[
    "md5",
    "crc64",
    "crc32",
    "crc16",
    "crc7",
    "xxhash",
    "sha1",
    "sha512",
    "sha3-224",
    "sha3-256",
    "sha3-384",
    "sha3-512",
    "meta",
    "pattern_hdr",
];

fn verify(job: &mut FioJob, value: &OptionValue<'_>) -> Result<(), String> {
    job.verify = match value.text {
        "0" | "none" => None,
        "crc32c" | "crc32c-intel" => Some(VerifyMethod::Crc32c),
        "sha256" => Some(VerifyMethod::Sha256),
        "pattern" => Some(VerifyMethod::Pattern),
        other if OTHER_CHECKSUMS.contains(&other) => Some(VerifyMethod::Crc32c),
        _ => return Err("crc32c, sha256 or pattern: each finds any changed byte".into()),
    };
    Ok(())
}

fn set_content(job: &mut FioJob, is_set: bool, content: BufferContent) {
    if is_set {
        job.content = content;
    } else if job.content == content {
        job.content = BufferContent::Scramble;
    }
}

/// `true` if the option's value asks for nothing unusual.
pub(super) fn is_listed(value: &str, listed: &[&str]) -> bool {
    !value.is_empty() && listed.contains(&value)
}

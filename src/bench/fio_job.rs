//! fio job files: written from a plan that fio can run as well, and parsed into a plan if they use only
//! supported options. Any other option is an error with its line: a job that ran differently than written
//! would mislead.

use super::plan::{BenchPlan, EngineChoice, PlanError, require};
use crate::units::parse_bytes;
use std::path::PathBuf;

/// fio's `rw`, the profile that does the same, its share of reads if that is fixed.
const PATTERNS: [(&str, &str, Option<u8>); 5] = [
    ("randread", "randread", Some(100)),
    ("randwrite", "randwrite", Some(0)),
    ("randrw", "randrw", None),
    ("read", "seqread", Some(100)),
    ("write", "seqwrite", Some(0)),
];

/// The job file that does the work of `plan`. An error for workloads that fio does not have.
pub(crate) fn to_job_file(plan: &BenchPlan) -> Result<String, PlanError> {
    let profile = match (plan.profile.as_str(), plan.read_pct) {
        ("randrw", 100) => "randread",
        ("randrw", 0) => "randwrite",
        (profile, _) => profile,
    };
    let (rw, ..) = PATTERNS
        .into_iter()
        .find(|(_, name, _)| *name == profile)
        .ok_or_else(|| format!("{profile}: fio has no job that does the same"))?;
    let directory = plan.directory.to_str().filter(|p| !p.contains(['\n', '\r', ':']));
    let directory = directory.ok_or("directory: fio cannot take this name")?;
    let (is_mixed, is_uring) = (rw == "randrw", plan.engine != EngineChoice::Threads);
    let jobs = u64::from(plan.jobs.max(1));
    let on = |set: bool| set.then(|| "1".to_owned());
    let above_0 = |n: u64| (n > 0).then(|| n.to_string());
    let uring = |value: String| is_uring.then_some(value);
    let timed = |value: String| (plan.time_ms > 0).then_some(value);
    // fio limits each direction of each job.
    let rate = |n: u64| {
        let reads = (u128::from(n / jobs) * u128::from(plan.read_pct) / 100) as u64;
        let each = if is_mixed { format!("{reads},{}", n / jobs - reads) } else { (n / jobs).to_string() };
        (n > 0).then_some(each)
    };
    let options = [
        ("directory", Some(directory.to_owned())),
        ("rw", Some(rw.to_owned())),
        ("rwmixread", is_mixed.then(|| plan.read_pct.to_string())),
        ("bs", Some(plan.block.to_string())),
        ("iodepth", Some(plan.depth.to_string())),
        ("numjobs", Some(plan.jobs.to_string())),
        ("size", Some(plan.size.to_string())),
        ("direct", Some(u8::from(plan.direct).to_string())),
        ("ioengine", Some(if is_uring { "io_uring" } else { "psync" }.to_owned())),
        ("registerfiles", on(is_uring)),
        ("fixedbufs", on(is_uring)),
        ("iodepth_batch_submit", uring((plan.depth / 4).max(1).to_string())),
        ("iodepth_batch_complete_min", uring((plan.depth / 8).max(1).to_string())),
        ("iodepth_batch_complete_max", uring(plan.depth.to_string())),
        ("mem", plan.huge_pages.then(|| "mmaphuge".to_owned())),
        ("sqthread_poll", on(is_uring && plan.sqpoll)),
        ("hipri", on(is_uring && plan.iopoll)),
        ("fdatasync", above_0(plan.fsync_every)),
        ("rate_iops", rate(plan.rate_iops)),
        ("rate", rate(plan.rate_bytes)),
        ("refill_buffers", on(plan.refill)),
        ("norandommap", on(true)),
        ("randseed", Some(plan.seed.to_string())),
        ("time_based", timed("1".into())),
        ("runtime", timed(format!("{}ms", plan.time_ms))),
        ("ramp_time", timed(format!("{}ms", plan.ramp_ms))),
        ("io_size", above_0(plan.io_bytes.div_ceil(jobs))),
        ("overwrite", on(true)),
        ("group_reporting", on(true)),
        ("lat_percentiles", on(true)),
    ];
    let lines = options.into_iter().filter_map(|(key, value)| Some(format!("{key}={}\n", value?)));
    let head = format!("; the same work as iotop-plus, made by `bench run --fio-job`\n[{}]\n", plan.profile);
    Ok(head + &lines.collect::<String>())
}

#[derive(Default)]
struct JobOptions {
    plan: BenchPlan,
    rw: Option<(String, usize)>,
    time_based: bool,
    /// Operations and bytes per second, for one direction or both.
    rates: [Vec<u64>; 2],
    io_size: Option<u64>,
    has_job_section: bool,
}

/// The plan of a job file with one job.
pub(crate) fn parse_job_file(text: &str) -> Result<BenchPlan, PlanError> {
    let plan = BenchPlan { depth: 1, direct: false, time_ms: 0, ramp_ms: 0, ..BenchPlan::default() };
    let mut job = JobOptions { plan, ..JobOptions::default() };
    let mut inside = false;
    let is_used = |line: &str| !line.is_empty() && !line.starts_with(['#', ';']);
    for (at, line) in (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| is_used(line)) {
        if let Some(section) = line.strip_prefix('[') {
            let name = section.strip_suffix(']').ok_or(format!("line {at}: a section needs a closing ]"))?;
            inside = true;
            let is_second = name != "global" && std::mem::replace(&mut job.has_job_section, true);
            require(!is_second, format!("line {at}: a second job; one job a file is supported"))?;
            continue;
        }
        require(inside, format!("line {at}: an option outside of any section"))?;
        let (key, value) = line.split_once('=').map_or((line, "1"), |(k, v)| (k.trim(), v.trim()));
        apply_option(&mut job, key, value, at)
            .map_err(|why| format!("line {at}: {}", crate::sanitize::sanitize(why.0)))?;
    }
    require(job.has_job_section, "no job section")?;
    into_plan(job)
}

fn apply_option(job: &mut JobOptions, key: &str, value: &str, at: usize) -> Result<(), PlanError> {
    let invalid = |what: &str| format!("{key}={value}: {what}");
    let flag = || match value {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(PlanError(invalid("0 or 1"))),
    };
    let number = |text: &str| text.parse::<u64>().map_err(|_| invalid("not a number"));
    let narrow = |n: u64| u32::try_from(n).map_err(|_| invalid("too large"));
    let percent = || value.parse().ok().filter(|n| *n <= 100).ok_or_else(|| invalid("0 to 100"));
    let size = |text: &str| parse_size(text).ok_or_else(|| format!("{key}={text}: not a size"));
    let duration = || parse_duration_ms(value).ok_or_else(|| invalid("not a time"));
    let pair = |one: &dyn Fn(&str) -> Result<u64, String>| -> Result<Vec<u64>, PlanError> {
        let all = value.split(',').filter(|v| !v.is_empty()).map(|v| one(v.trim())).collect::<Result<Vec<u64>, _>>()?;
        if matches!(all.len(), 1 | 2) { Ok(all) } else { Err(format!("{value}: one value or two").into()) }
    };
    let plan = &mut job.plan;
    match key {
        "rw" | "readwrite" => job.rw = Some((value.into(), at)),
        "bs" | "blocksize" => plan.block = narrow(size(value)?)?,
        "iodepth" => plan.depth = narrow(number(value)?)?,
        "numjobs" => plan.jobs = narrow(number(value)?)?,
        "size" | "filesize" => plan.size = size(value)?,
        "io_size" => job.io_size = Some(size(value)?),
        "directory" => plan.directory = PathBuf::from(value),
        "direct" => plan.direct = flag()?,
        "buffered" => plan.direct = !flag()?,
        "rwmixread" => plan.read_pct = percent()?,
        "rwmixwrite" => plan.read_pct = 100 - percent()?,
        "fdatasync" => plan.fsync_every = number(value)?,
        "refill_buffers" => plan.refill = flag()?,
        "randseed" => plan.seed = number(value)?,
        "sqthread_poll" => plan.sqpoll = flag()?,
        "hipri" => plan.iopoll = flag()?,
        "time_based" => job.time_based = flag()?,
        "runtime" | "timeout" => plan.time_ms = duration()?,
        "ramp_time" => plan.ramp_ms = duration()?,
        "rate_iops" => job.rates[0] = pair(&|v| v.parse().map_err(|_| invalid("not numbers")))?,
        "rate" => job.rates[1] = pair(&size)?,
        "ioengine" => {
            plan.engine = match value {
                "io_uring" => EngineChoice::Uring,
                "psync" | "sync" | "pvsync" | "pvsync2" => EngineChoice::Threads,
                _ => return Err(invalid("io_uring, or psync for the pool of threads").into()),
            }
        }
        "mem" | "iomem" => plan.huge_pages = matches!(value, "mmaphuge" | "shmhuge"),
        "filename" => {
            return Err("filename: existing files and devices are never worked on; use directory".into());
        }
        "fsync" => return Err("fsync: fdatasync=N is supported".into()),
        // Without an effect on the work here.
        "group_reporting" | "thread" | "norandommap" | "registerfiles" | "fixedbufs" | "lat_percentiles"
        | "clat_percentiles" | "iodepth_batch" | "overwrite" | "stonewall" | "randrepeat" | "invalidate"
        | "scramble_buffers" => {}
        "iodepth_batch_submit" | "iodepth_batch_complete_min" | "iodepth_batch_complete_max" => {}
        _ => return Err(format!("{key}: not supported").into()),
    }
    Ok(())
}

fn into_plan(job: JobOptions) -> Result<BenchPlan, PlanError> {
    let mut plan = job.plan;
    let (rw, at) = job.rw.ok_or("rw is missing")?;
    let unknown = || format!("line {at}: rw={}: not supported", crate::sanitize::sanitize(&rw));
    let (_, profile, fixed_pct) = PATTERNS.into_iter().find(|(name, ..)| *name == rw).ok_or_else(unknown)?;
    plan.profile = profile.into();
    plan.read_pct = fixed_pct.unwrap_or(plan.read_pct);
    let jobs = u64::from(plan.jobs.max(1));
    let directions = if profile == "randrw" { 2 } else { 1 };
    let [rate_iops, rate_bytes] = job.rates.map(|rates| match rates[..] {
        [one] => one.saturating_mul(directions).saturating_mul(jobs),
        _ => rates.iter().fold(0, |sum: u64, rate| sum.saturating_add(*rate)).saturating_mul(jobs),
    });
    (plan.rate_iops, plan.rate_bytes) = (rate_iops, rate_bytes);
    require(!job.time_based || plan.time_ms > 0, "time_based needs a runtime")?;
    if let Some(bytes) = job.io_size {
        plan.io_bytes = bytes.saturating_mul(jobs);
    } else if !job.time_based {
        plan.io_bytes = plan.size.saturating_mul(jobs);
    }
    if plan.engine == EngineChoice::Threads {
        // As in fio, a synchronous engine has one operation in flight.
        plan.depth = plan.depth.min(1);
    }
    Ok(plan)
}

/// fio's sizes: powers of 1024 for k, m, g, t with or without `iB`.
fn parse_size(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    parse_bytes(lower.strip_suffix("ib").unwrap_or(&lower).trim_end_matches('b')).ok()
}

/// fio's times in ms: seconds, or with a unit.
fn parse_duration_ms(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let ms = match &text[digits.len()..] {
        "" | "s" => 1000.0,
        "ms" => 1.0,
        "m" => 60_000.0,
        "h" => 3_600_000.0,
        _ => return None,
    };
    let n: f64 = digits.parse().ok()?;
    (0.0..1e9).contains(&n).then_some((n * ms) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::workloads;
    use proptest::prelude::*;

    #[test]
    fn emitted_job_files_parse_back() {
        for name in ["randrw", "randread", "randwrite", "seqread", "seqwrite"] {
            let mut plan = workloads::find_workload(name).unwrap().defaults();
            plan.directory = "/data".into();
            plan.engine = EngineChoice::Uring;
            (plan.rate_iops, plan.jobs, plan.fsync_every) = (1000, 2, 7);
            assert_eq!(parse_job_file(&to_job_file(&plan).unwrap()).unwrap(), plan, "{name}");
        }
        assert!(to_job_file(&workloads::find_workload("fork").unwrap().defaults()).is_err());
    }

    #[test]
    fn a_plain_job_file_is_parsed() {
        let text = "[global]\n; comment\nioengine=io_uring\ndirect=1\n[job]\nrw=randrw\nbs=4k\niodepth=64\nsize=1g\n\
                    runtime=30\ntime_based\ndirectory=/data\n";
        let plan = parse_job_file(text).unwrap();
        assert_eq!((plan.profile.as_str(), plan.read_pct, plan.block, plan.depth), ("randrw", 50, 4096, 64));
        assert_eq!((plan.size, plan.time_ms, plan.io_bytes), (1 << 30, 30_000, 0));
    }

    #[test]
    fn errors_name_the_line() {
        let why = |text: &str| parse_job_file(text).expect_err("accepted").0;
        assert!(why("[j]\nrw=randread\nverify=md5\n").starts_with("line 3: verify"));
        assert!(why("[j]\nrw=randread\nfilename=/dev/sda\n").contains("line 3: filename"));
        assert!(why("[j]\nrw=trim\n").starts_with("line 2: rw=trim"));
        assert!(why("rw=read\n").contains("line 1"));
        assert!(why("[a]\nrw=read\n[b]\n").contains("line 3: a second job"));
        assert!(why("[a]\nrw=read\nbs=4q\n").contains("line 3: bs=4q"));
        assert!(why("[a]\n\u{1b}[2Jx=1\n").contains("\\x1b"));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(\\[[a-z]{0,3}\\]?\n|[a-z_]{0,10}=?[0-9a-zA-Z,.]{0,8}\n){0,12}") {
            let _ = parse_job_file(&text);
        }
    }
}

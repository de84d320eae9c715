//! fio job files: written from a plan that fio can run as well, and parsed into a plan if they use only
//! supported options. Any other option is an error with its line: a job that ran differently than written
//! would mislead.

use super::plan::{BenchPlan, EngineChoice};
use std::fmt::Write as _;
use std::path::PathBuf;

/// The job file that does the work of `plan`. An error for workloads that fio does not have.
pub fn to_job_file(plan: &BenchPlan) -> Result<String, String> {
    let (rw, mixed) = match (plan.profile.as_str(), plan.read_pct) {
        ("randread" | "randrw", 100) => ("randread", false),
        ("randwrite" | "randrw", 0) => ("randwrite", false),
        ("randrw", _) => ("randrw", true),
        ("seqread", _) => ("read", false),
        ("seqwrite", _) => ("write", false),
        (other, _) => return Err(format!("{other}: fio has no job that does the same")),
    };
    let mut out = String::from("; the same work as iotop-plus, made by `bench run --fio-job`\n[");
    let _ = writeln!(out, "{}]", plan.profile);
    let mut put = |key: &str, value: &dyn std::fmt::Display| {
        let _ = writeln!(out, "{key}={value}");
    };
    let path = plan
        .directory
        .to_str()
        .filter(|p| !p.contains(['\n', '\r', ':']))
        .ok_or("directory: fio cannot take this name")?;
    put("directory", &path);
    put("rw", &rw);
    if mixed {
        put("rwmixread", &plan.read_pct);
    }
    put("bs", &plan.block);
    put("iodepth", &plan.depth);
    put("numjobs", &plan.jobs);
    put("size", &plan.size);
    put("direct", &u8::from(plan.direct));
    if plan.engine == EngineChoice::Threads {
        put("ioengine", &"psync");
    } else {
        put("ioengine", &"io_uring");
        for flag in ["registerfiles", "fixedbufs"] {
            put(flag, &1);
        }
        put("iodepth_batch_submit", &(plan.depth / 4).max(1));
        put("iodepth_batch_complete_min", &(plan.depth / 8).max(1));
        put("iodepth_batch_complete_max", &plan.depth);
        for (on, flag) in [(plan.sqpoll, "sqthread_poll"), (plan.iopoll, "hipri")] {
            if on {
                put(flag, &1);
            }
        }
    }
    if plan.fsync_every > 0 {
        put("fdatasync", &plan.fsync_every);
    }
    let jobs = u64::from(plan.jobs);
    for (key, n) in [("rate_iops", plan.rate_iops), ("rate", plan.rate_bytes)] {
        if n > 0 {
            // fio limits each direction of each job.
            let reads = n / jobs * u64::from(plan.read_pct) / 100;
            let writes = n / jobs - reads;
            put(key, &if mixed { format!("{reads},{writes}") } else { (n / jobs).to_string() });
        }
    }
    if plan.refill {
        put("refill_buffers", &1);
    }
    put("norandommap", &1);
    put("randseed", &plan.seed);
    if plan.time_ms > 0 {
        put("time_based", &1);
        put("runtime", &format!("{}ms", plan.time_ms));
        put("ramp_time", &format!("{}ms", plan.ramp_ms));
    }
    if plan.io_bytes > 0 {
        put("io_size", &plan.io_bytes.div_ceil(jobs));
    }
    put("overwrite", &1);
    put("group_reporting", &1);
    put("lat_percentiles", &1);
    Ok(out)
}

/// Options without an effect on the work here.
const IGNORED_OPTIONS: [&str; 16] = [
    "group_reporting",
    "thread",
    "norandommap",
    "registerfiles",
    "fixedbufs",
    "lat_percentiles",
    "clat_percentiles",
    "iodepth_batch_submit",
    "iodepth_batch",
    "iodepth_batch_complete_min",
    "iodepth_batch_complete_max",
    "overwrite",
    "stonewall",
    "randrepeat",
    "invalidate",
    "scramble_buffers",
];

/// Options collected before the plan is made.
#[derive(Default)]
struct JobOptions {
    plan: BenchPlan,
    rw: Option<(String, usize)>,
    runtime_ms: u64,
    time_based: bool,
    ramp_ms: u64,
    rates: [Option<Vec<u64>>; 2],
    io_size: Option<u64>,
    has_job_section: bool,
}

/// The plan of a job file with one job.
pub fn parse_job_file(text: &str) -> Result<BenchPlan, String> {
    let mut job =
        JobOptions { plan: BenchPlan { depth: 1, direct: false, ..BenchPlan::default() }, ..JobOptions::default() };
    let mut inside = false;
    for (n, line) in text.lines().enumerate() {
        let at = n + 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(section) = line.strip_prefix('[') {
            let name = section.strip_suffix(']').ok_or(format!("line {at}: a section needs a closing ]"))?;
            inside = true;
            if name != "global" {
                if job.has_job_section {
                    return Err(format!("line {at}: a second job; one job a file is supported"));
                }
                job.has_job_section = true;
            }
            continue;
        }
        if !inside {
            return Err(format!("line {at}: an option outside of any section"));
        }
        let (key, value) = line.split_once('=').map_or((line, "1"), |(k, v)| (k.trim(), v.trim()));
        apply_option(&mut job, key, value, at)
            .map_err(|why| format!("line {at}: {}", crate::sanitize::sanitize(&why)))?;
    }
    if !job.has_job_section {
        return Err("no job section".into());
    }
    into_plan(job)
}

fn apply_option(job: &mut JobOptions, key: &str, value: &str, at: usize) -> Result<(), String> {
    let flag = || match value {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(format!("{key}={value}: 0 or 1")),
    };
    let number = || value.parse::<u64>().map_err(|_| format!("{key}={value}: not a number"));
    let narrow = || number().and_then(|n| u32::try_from(n).map_err(|_| format!("{key}={value}: too large")));
    let plan = &mut job.plan;
    match key {
        "rw" | "readwrite" => job.rw = Some((value.into(), at)),
        "bs" | "blocksize" => {
            plan.block = u32::try_from(parse_size(key, value)?).map_err(|_| format!("{key}={value}: too large"))?;
        }
        "iodepth" => plan.depth = narrow()?,
        "numjobs" => plan.jobs = narrow()?,
        "size" | "filesize" => plan.size = parse_size(key, value)?,
        "io_size" => job.io_size = Some(parse_size(key, value)?),
        "directory" => plan.directory = PathBuf::from(value),
        "direct" => plan.direct = flag()?,
        "buffered" => plan.direct = !flag()?,
        "rwmixread" => plan.read_pct = parse_percent(key, value)?,
        "rwmixwrite" => plan.read_pct = 100 - parse_percent(key, value)?,
        "fdatasync" => plan.fsync_every = number()?,
        "refill_buffers" => plan.refill = flag()?,
        "randseed" => plan.seed = number()?,
        "sqthread_poll" => plan.sqpoll = flag()?,
        "hipri" => plan.iopoll = flag()?,
        "time_based" => job.time_based = flag()?,
        "runtime" | "timeout" => job.runtime_ms = parse_duration_ms(key, value)?,
        "ramp_time" => job.ramp_ms = parse_duration_ms(key, value)?,
        "rate_iops" => {
            job.rates[0] = Some(parse_pair(value, |v| v.parse().map_err(|_| format!("{key}={value}: not numbers")))?)
        }
        "rate" => job.rates[1] = Some(parse_pair(value, |v| parse_size(key, v))?),
        "ioengine" => {
            plan.engine = match value {
                "io_uring" => EngineChoice::Uring,
                "psync" | "sync" | "pvsync" | "pvsync2" => EngineChoice::Threads,
                _ => return Err(format!("ioengine={value}: io_uring, or psync for the pool of threads")),
            }
        }
        "filename" => {
            return Err("filename: existing files and devices are never worked on; use directory".into());
        }
        "fsync" => return Err("fsync: fdatasync=N is supported".into()),
        _ if IGNORED_OPTIONS.contains(&key) => {}
        _ => return Err(format!("{key}: not supported")),
    }
    Ok(())
}

fn into_plan(job: JobOptions) -> Result<BenchPlan, String> {
    let mut plan = job.plan;
    let (rw, at) = job.rw.ok_or("rw is missing")?;
    let (profile, pct) = match rw.as_str() {
        "randread" => ("randread", Some(100)),
        "randwrite" => ("randwrite", Some(0)),
        "randrw" => ("randrw", None),
        "read" => ("seqread", Some(100)),
        "write" => ("seqwrite", Some(0)),
        _ => return Err(format!("line {at}: rw={}: not supported", crate::sanitize::sanitize(&rw))),
    };
    plan.profile = profile.into();
    plan.read_pct = pct.unwrap_or(plan.read_pct);
    let jobs = u64::from(plan.jobs.max(1));
    let directions = if profile == "randrw" { 2 } else { 1 };
    let total = |rates: &Option<Vec<u64>>| {
        let rates = rates.as_deref().unwrap_or_default();
        let both = match rates {
            [one] => one.saturating_mul(directions),
            several => several.iter().sum(),
        };
        both.saturating_mul(jobs)
    };
    plan.rate_iops = total(&job.rates[0]);
    plan.rate_bytes = total(&job.rates[1]);
    plan.ramp_ms = job.ramp_ms;
    plan.time_ms = job.runtime_ms;
    if job.time_based && job.runtime_ms == 0 {
        return Err("time_based needs a runtime".into());
    }
    if let Some(bytes) = job.io_size {
        plan.io_bytes = bytes.saturating_mul(jobs);
    } else if !job.time_based {
        plan.io_bytes = plan.size.saturating_mul(jobs);
    }
    if plan.engine == EngineChoice::Threads && plan.depth > 1 {
        // As in fio, a synchronous engine has one operation in flight.
        plan.depth = 1;
    }
    Ok(plan)
}

fn parse_percent(key: &str, value: &str) -> Result<u8, String> {
    value.parse().ok().filter(|n| *n <= 100).ok_or_else(|| format!("{key}={value}: 0 to 100"))
}

fn parse_pair(value: &str, one: impl Fn(&str) -> Result<u64, String>) -> Result<Vec<u64>, String> {
    let all: Vec<u64> = value.split(',').filter(|v| !v.is_empty()).map(|v| one(v.trim())).collect::<Result<_, _>>()?;
    if all.is_empty() || all.len() > 2 { Err(format!("{value}: one value or two")) } else { Ok(all) }
}

/// fio's sizes: powers of 1024 for k, m, g, t with or without `iB`.
fn parse_size(key: &str, value: &str) -> Result<u64, String> {
    let bad = || format!("{key}={value}: not a size");
    let lower = value.to_ascii_lowercase();
    let text = lower.strip_suffix("ib").or(lower.strip_suffix('b')).unwrap_or(&lower);
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return Err(bad()),
    };
    digits.parse::<u64>().ok().and_then(|n| n.checked_mul(1 << shift)).ok_or_else(bad)
}

/// fio's times in ms: seconds, or with a unit.
fn parse_duration_ms(key: &str, value: &str) -> Result<u64, String> {
    let bad = || format!("{key}={value}: not a time");
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let ms = match &value[digits.len()..] {
        "" | "s" => 1000.0,
        "ms" => 1.0,
        "m" => 60_000.0,
        "h" => 3_600_000.0,
        _ => return Err(bad()),
    };
    let n: f64 = digits.parse().map_err(|_| bad())?;
    if (0.0..1e9).contains(&n) { Ok((n * ms) as u64) } else { Err(bad()) }
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
        let why = |text: &str| parse_job_file(text).expect_err("accepted");
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

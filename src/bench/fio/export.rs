//! The fio job file that does the work of a plan, and the options of a job in fio's words.

use super::job::{Amount, FioJob};
use crate::bench::plan::{BenchPlan, EngineChoice, PlanError, require};

/// fio's `rw` and the profile that does the same.
const PATTERNS: [(&str, &str); 5] = [
    ("randread", "randread"),
    ("randwrite", "randwrite"),
    ("randrw", "randrw"),
    ("read", "seqread"),
    ("write", "seqwrite"),
];

/// The job file that does the work of `plan`. An error for workloads that fio does not have.
pub(crate) fn to_job_file(plan: &BenchPlan) -> Result<String, PlanError> {
    let profile = match (plan.profile.as_str(), plan.read_pct) {
        ("randrw", 100) => "randread",
        ("randrw", 0) => "randwrite",
        (profile, _) => profile,
    };
    let found = PATTERNS.into_iter().find(|(_, name)| *name == profile);
    let (rw, _) = found.ok_or_else(|| format!("{profile}: fio has no job that does the same"))?;
    let directory = plan.directory.to_str().filter(|p| !p.contains(['\n', '\r', ':', ';', '#']));
    let directory = directory.ok_or("directory: fio cannot take this name")?;
    let (is_mixed, is_random) = (rw == "randrw", rw.starts_with("rand"));
    let is_uring = plan.engine != EngineChoice::Threads;
    // The pool of threads does one operation at a time in each.
    let clones = u64::from(plan.jobs.max(1)) * if is_uring { 1 } else { u64::from(plan.depth.max(1)) };
    let part = plan.size / clones / u64::from(plan.block) * u64::from(plan.block);
    require(
        is_uring || is_random || part * clones == plan.size,
        format!("{profile}: fio's jobs need a size that is a multiple of depth x jobs x block"),
    )?;
    let shape = Shape { rw, is_random, is_mixed, is_uring, clones, part };
    let options = file_options(plan, directory, &shape).into_iter().chain(load_options(plan, &shape));
    let lines = options.filter_map(|(key, value)| Some(format!("{key}={}\n", value?)));
    let left = if clones > 1 { "; fio leaves the file iotop-plus.dat behind: remove it\n" } else { "" };
    let head = format!("; the same work as iotop-plus, made by `bench run --fio-job`\n{left}[{}]\n", plan.profile);
    Ok(head + &lines.collect::<String>())
}

/// What follows from a plan for a job.
struct Shape {
    rw: &'static str,
    is_random: bool,
    is_mixed: bool,
    is_uring: bool,
    clones: u64,
    /// Bytes of a clone of a sequential job.
    part: u64,
}

type JobOption = (&'static str, Option<String>);

fn on(set: bool) -> Option<String> {
    set.then(|| "1".to_owned())
}

fn above_0(n: u64) -> Option<String> {
    (n > 0).then(|| n.to_string())
}

/// One file for all clones: random ones work on all of it, sequential ones on a part each.
fn file_options(plan: &BenchPlan, directory: &str, shape: &Shape) -> Vec<JobOption> {
    vec![
        ("directory", Some(directory.to_owned())),
        ("filename", Some("iotop-plus.dat".to_owned())),
        // The first clone that ends would remove the file before others have opened it.
        ("unlink", on(shape.clones == 1)),
        ("numjobs", Some(shape.clones.to_string())),
        ("size", Some(if shape.is_random { plan.size } else { shape.part }.to_string())),
        ("offset_increment", (!shape.is_random && shape.clones > 1).then(|| shape.part.to_string())),
        ("overwrite", on(true)),
        ("direct", Some(u8::from(plan.direct).to_string())),
        ("invalidate", (!plan.direct).then(|| "0".to_owned())),
        ("refill_buffers", on(plan.refill)),
        ("group_reporting", on(true)),
        ("lat_percentiles", on(true)),
    ]
}

fn load_options(plan: &BenchPlan, shape: &Shape) -> Vec<JobOption> {
    let &Shape { is_mixed, is_uring, clones, .. } = shape;
    let uring = |value: String| is_uring.then_some(value);
    let timed = |value: String| (plan.time_ms > 0).then_some(value);
    // fio limits each direction of each job.
    let rate = |n: u64| {
        let reads = (u128::from(n / clones) * u128::from(plan.read_pct) / 100) as u64;
        let each = if is_mixed { format!("{reads},{}", n / clones - reads) } else { (n / clones).to_string() };
        (n > 0).then_some(each)
    };
    let batch = (plan.depth / 8).max(1).to_string();
    vec![
        ("rw", Some(shape.rw.to_owned())),
        ("rwmixread", is_mixed.then(|| plan.read_pct.to_string())),
        ("bs", Some(plan.block.to_string())),
        ("iodepth", Some(if is_uring { plan.depth } else { 1 }.to_string())),
        ("ioengine", Some(if is_uring { "io_uring" } else { "psync" }.to_owned())),
        ("registerfiles", on(is_uring)),
        ("fixedbufs", on(is_uring)),
        ("iodepth_batch_submit", uring(batch.clone())),
        ("iodepth_batch_complete_min", uring(batch)),
        ("iodepth_batch_complete_max", uring(plan.depth.to_string())),
        ("mem", plan.huge_pages.then(|| "mmaphuge".to_owned())),
        ("sqthread_poll", on(is_uring && plan.sqpoll)),
        ("hipri", on(is_uring && plan.iopoll)),
        ("fdatasync", above_0(plan.fsync_every)),
        ("rate_iops", rate(plan.rate_iops)),
        ("rate", rate(plan.rate_bytes)),
        ("norandommap", on(shape.is_random)),
        ("randseed", Some(plan.seed.to_string())),
        ("time_based", timed("1".into())),
        ("runtime", timed(format!("{}ms", plan.time_ms))),
        ("ramp_time", (plan.ramp_ms > 0).then(|| format!("{}ms", plan.ramp_ms))),
        ("io_size", above_0(plan.io_bytes.div_ceil(clones))),
    ]
}

/// fio's `rw` of a job.
pub(crate) fn pattern_name(job: &FioJob) -> String {
    let rw = &job.rw;
    let what = match (rw.reads, rw.writes, rw.trims) {
        (true, true, _) => "rw",
        (_, true, true) => "trimwrite",
        (true, ..) => "read",
        (_, true, _) => "write",
        _ => "trim",
    };
    format!("{}{what}", if rw.random { "rand" } else { "" })
}

/// The main options of a job as pairs of key and value.
pub(crate) fn main_options(job: &FioJob) -> Vec<(&'static str, String)> {
    let mut all = vec![("rw", pattern_name(job)), ("bs", block_text(job)), ("iodepth", job.iodepth.to_string())];
    let engine: &str = job.engine.into();
    all.push(("ioengine", engine.to_owned()));
    all.push(("direct", u8::from(job.direct).to_string()));
    all.push(("numjobs", job.numjobs.to_string()));
    match job.size {
        Amount::Bytes(0) => {}
        Amount::Bytes(n) => all.push(("size", n.to_string())),
        Amount::Percent(n) => all.push(("size", format!("{n}%"))),
    }
    if job.time_based {
        all.push(("time_based", "1".into()));
    }
    if job.runtime_us > 0 {
        all.push(("runtime", format!("{}us", job.runtime_us)));
    }
    all
}

/// The sizes of its blocks: one, or the smallest and the largest.
pub(crate) fn block_text(job: &FioJob) -> String {
    let ranges: Vec<_> = job.directions().map(|d| job.block_range(d)).collect();
    let text = |(low, high): &(u64, u64)| if low == high { low.to_string() } else { format!("{low}-{high}") };
    let mut texts: Vec<_> = ranges.iter().map(text).collect();
    texts.dedup();
    texts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fio::parse::{ParseOptions, parse_job_file};
    use crate::bench::fio::text::JobFileContext;
    use crate::bench::workloads;

    #[test]
    fn job_files_of_plans_are_read_as_their_work() {
        let context =
            JobFileContext { read: &|_| Err(String::new()), variable: &|_| None, keywords: [("$ncpus", 1); 3] };
        for name in ["randrw", "randread", "randwrite", "seqread", "seqwrite"] {
            let mut plan = workloads::find_workload(name).unwrap().defaults();
            plan.directory = "/data".into();
            plan.engine = EngineChoice::Uring;
            (plan.rate_iops, plan.jobs, plan.fsync_every) = (1000, 4, 7);
            let text = to_job_file(&plan).unwrap();
            let strict = ParseOptions { strict: true, ..ParseOptions::default() };
            let parsed = parse_job_file(&text, &context, &strict).unwrap();
            let job = &parsed.jobs[0];
            assert_eq!((job.iodepth, job.numjobs, job.fdatasync), (plan.depth, 4, 7), "{name}");
            assert_eq!(job.rate_iops[1], if name == "randrw" { 125 } else { 250 });
            let parts = job.size == Amount::Bytes(plan.size / 4);
            assert_eq!((parts, job.rw.random), (name.starts_with("seq"), name.starts_with("rand")));
        }
        assert!(to_job_file(&workloads::find_workload("fork").unwrap().defaults()).is_err());
    }
}

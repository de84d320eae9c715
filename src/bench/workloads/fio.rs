//! The jobs of a fio job file.

use super::workload::{PlannedWrites, Workload, higher_is_better};
use crate::bench::fio::export::{block_text, pattern_name};
use crate::bench::fio::job::{Amount, FioJob};
use crate::bench::fio::layout::FileLayout;
use crate::bench::fio::run::run_job_file;
use crate::bench::plan::{BenchPlan, PlanError, require};
use crate::bench::report::BenchReport;
use crate::sanitize::sanitize;
use crate::units::format_bytes_long;

pub(super) const FIO: Workload = Workload {
    name: "fio",
    brief: "a fio job",
    about: "the jobs of a fio job file",
    needs_directory: true,
    params: "",
    plan: BenchPlan::default,
    check: |plan| {
        let has_jobs = plan.job_file.as_ref().is_some_and(|file| !file.jobs.is_empty());
        require(has_jobs, "a job file is needed: its name ends in .fio")?;
        layout(plan).map(drop)
    },
    footprint: |plan| layout(plan).map_or(0, |layout| layout.total_bytes()),
    own_bytes: |_, _| None,
    // A job file may well be about the page cache.
    expects_device: |_| false,
    planned_writes,
    describe,
    has_reference_classes: |_| false,
    metric: higher_is_better("IOPS", "", total_iops),
    conclude: |_| None,
    run: run_job_file,
};

fn jobs(plan: &BenchPlan) -> &[FioJob] {
    plan.job_file.as_ref().map_or(&[], |file| &file.jobs)
}

fn layout(plan: &BenchPlan) -> Result<FileLayout, PlanError> {
    FileLayout::new(jobs(plan)).map_err(|(_, why)| PlanError(why))
}

/// Operations of all jobs, each over its own time.
fn total_iops(report: &BenchReport) -> Option<f64> {
    let all: f64 = report.measurements.iter().map(|part| part.iops()).sum();
    (!report.measurements.is_empty()).then_some(all)
}

fn planned_writes(plan: &BenchPlan) -> PlannedWrites {
    let Ok(layout) = layout(plan) else { return PlannedWrites::NONE };
    let mut most = Some(0u64);
    for clone in &layout.clones {
        let job = &jobs(plan)[clone.job];
        if !job.rw.writes {
            continue;
        }
        let bytes = match job.io_size {
            Amount::Bytes(n) if n > 0 => n,
            _ => clone.size,
        };
        let all = (!job.time_based).then(|| bytes.saturating_mul(job.loops));
        most = most.zip(all).map(|(sum, n)| sum.saturating_add(n));
    }
    PlannedWrites { guaranteed: layout.laid_out_bytes(), additional: most }
}

fn describe(plan: &BenchPlan) -> Vec<String> {
    let Ok(layout) = layout(plan) else { return Vec::new() };
    let (n, size) = (layout.files.len(), format_bytes_long(layout.total_bytes()));
    let files = if n == 1 { "a nameless file".into() } else { format!("{n} nameless files") };
    let data = match layout.laid_out_bytes() {
        0 => "not filled first".into(),
        bytes => format!("{} filled with random data first", format_bytes_long(bytes)),
    };
    let mut lines = vec![format!("{files} of {size} together, {data}")];
    for (index, job) in jobs(plan).iter().enumerate() {
        if index > 0 && job.stonewall {
            lines.push("then".into());
        }
        lines.push(describe_job(job, layout.clones.iter().find(|c| c.job == index).map_or(0, |c| c.size)));
    }
    lines.extend(plan.job_file.iter().flat_map(|file| &file.notes).map(|note| format!("note: {note}")));
    lines
}

/// `[name] randread of 4096 bytes, depth 16, 4 clones of 1 GiB each, direct I/O, for 30 s`.
fn describe_job(job: &FioJob, size: u64) -> String {
    let (name, rw, depth) = (sanitize(job.name.as_bytes()), pattern_name(job), job.depth());
    let way = if job.direct { "direct I/O" } else { "through the page cache" };
    let clones = if job.numjobs == 1 { String::new() } else { format!(", {} clones", job.numjobs) };
    let secs = job.runtime_us as f64 / 1e6;
    let bytes = format_bytes_long(match job.io_size {
        Amount::Bytes(n) if n > 0 => n,
        _ => size,
    });
    let until = match (job.time_based, job.runtime_us) {
        (true, _) => format!("for {secs} s"),
        (false, 0) => format!("{bytes} each"),
        (false, _) => format!("{bytes} each, at most {secs} s"),
    };
    let wait = match job.wait_for.as_str() {
        "" => String::new(),
        other => format!(", after {}", sanitize(other.as_bytes())),
    };
    format!("[{name}] {rw} of {} bytes, depth {depth}{clones}, {way}, {until}{wait}", block_text(job))
}

//! fio job files on the command line: reading them with what they include, and the plan they make.

use super::exit::print_error;
use crate::bench::fio::job::JobFile;
use crate::bench::fio::parse::{ParseOptions, describe_error, parse_job_file};
use crate::bench::fio::text::JobFileContext;
use crate::bench::plan::{BenchPlan, PlanError};
use crate::model::reading::describe_io_error;
use std::path::{Path, PathBuf};

/// The plan of the job file at `path`. Its directory is empty if the file names none, or several.
pub(super) fn plan_of_job_file(path: &str, how: &ParseOptions) -> Result<BenchPlan, PlanError> {
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|e| describe_io_error(&e));
    let text = read(Path::new(path)).map_err(|why| format!("{path}: {why}"))?;
    let beside = Path::new(path).parent().map(Path::to_owned).unwrap_or_default();
    let memory = rustix::system::sysinfo();
    let context = JobFileContext {
        // As in fio: from the working directory, else beside the job file.
        read: &|name| read(Path::new(name)).or_else(|_| read(&beside.join(name))),
        variable: &|name| std::env::var(name).ok(),
        keywords: [
            ("$pagesize", rustix::param::page_size() as u64),
            ("$mb_memory", (memory.totalram as u64 * u64::from(memory.mem_unit)) >> 20),
            ("$ncpus", std::thread::available_parallelism().map_or(1, |n| n.get() as u64)),
        ],
    };
    let job_file = parse_job_file(&text, &context, how).map_err(|errors| {
        let n = errors.len();
        let count = if n == 1 { "1 option".to_owned() } else { format!("{n} options") };
        errors.iter().for_each(|error| print_error(&format!("{path}: {}", describe_error(error))));
        format!("{path}: {count} cannot be honoured")
    })?;
    let directory = directory_of(&job_file).unwrap_or_default();
    Ok(BenchPlan { profile: "fio".into(), directory, job_file: Some(job_file), ..BenchPlan::default() })
}

/// The directory that all jobs name.
fn directory_of(file: &JobFile) -> Option<PathBuf> {
    let mut all: Vec<PathBuf> = file.jobs.iter().flat_map(|job| job.directories()).collect();
    all.sort();
    all.dedup();
    if all.len() == 1 { all.pop() } else { None }
}

//! A job file's text to its jobs. All problems of a file are found at once.

use super::job::{Amount, CommandPriority, FioEngine, FioJob, JobFile, VerifyMethod};
use super::layout::FileLayout;
use super::option_rule::{FioOption, OptionRule};
use super::options::{OTHER_CHECKSUMS, find_option, is_listed};
use super::other_options::NO_LOG;
use super::text::{JobFileContext, JobFileError, OptionLine, Section, read_sections};
use super::value::OptionValue;
use crate::sanitize::sanitize;
use std::collections::HashMap;

/// Threads of one file.
const MAX_CLONES: u64 = 512;
/// Bytes of the buffers of all jobs that run at the same time.
const MAX_BUFFER_BYTES: u64 = 1 << 30;
const MAX_DEPTH: u32 = 4096;
/// Blocks of a random map: 128 MiB of memory for one file.
const MAX_MAP_BLOCKS: u64 = 1 << 30;

/// How a job file is read.
#[derive(Default)]
pub(crate) struct ParseOptions {
    /// Nothing is done otherwise than the file says; what cannot be is an error.
    pub strict: bool,
    /// Size of files for which the file gives none: they exist already, where fio is to run.
    pub existing_size: Option<u64>,
}

/// The jobs of a file, or everything that is wrong with it.
pub(crate) fn parse_job_file(
    text: &str,
    context: &JobFileContext<'_>,
    how: &ParseOptions,
) -> Result<JobFile, Vec<JobFileError>> {
    let (sections, errors) = read_sections(text, context);
    let mut parser = Parser { how, errors, notes: Vec::new() };
    let mut global = FioJob::default();
    let mut global_base = 1024;
    let mut jobs = Vec::new();
    let mut places = Vec::new();
    for section in &sections {
        if section.name.starts_with("global") {
            parser.apply(&mut global, section, &mut global_base);
        } else {
            let mut job = FioJob { name: section.name.clone(), line: section.line, ..global.clone() };
            parser.apply(&mut job, section, &mut { global_base });
            jobs.push(job);
            places.push(section.place.clone());
        }
    }
    if jobs.is_empty() && parser.errors.is_empty() {
        parser.offend("line 1".into(), "no job: a section [name] is missing".into());
    }
    for (job, place) in jobs.iter_mut().zip(&places) {
        parser.check_job(job, place);
    }
    parser.check_together(&jobs, &places);
    if parser.errors.is_empty() { Ok(JobFile { jobs, notes: parser.notes }) } else { Err(parser.errors) }
}

/// An error as a line of text, without control characters.
pub(crate) fn describe_error(error: &JobFileError) -> String {
    format!("{}: {}", sanitize(error.place.as_bytes()), sanitize(error.why.as_bytes()))
}

struct Parser<'a> {
    how: &'a ParseOptions,
    errors: Vec<JobFileError>,
    notes: Vec<String>,
}

impl Parser<'_> {
    fn offend(&mut self, place: String, why: String) {
        self.errors.push(JobFileError { place, why });
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Something else is done, which is noted; an error if nothing may differ.
    fn differ(&mut self, place: &str, what: String) {
        if self.how.strict {
            self.offend(place.into(), format!("{what} (--strict)"));
        } else {
            self.note(sanitize(what.as_bytes()));
        }
    }

    fn apply(&mut self, job: &mut FioJob, section: &Section, kb_base: &mut u64) {
        // As in fio, kb_base holds for all sizes of its section, wherever it stands.
        for option in section.options.iter().filter(|option| option.key == "kb_base") {
            match option.value.as_str() {
                "1000" => *kb_base = 1000,
                "1024" => *kb_base = 1024,
                _ => self.offend(option.place.clone(), "kb_base: 1000 or 1024".into()),
            }
        }
        for option in &section.options {
            self.apply_option(job, option, *kb_base);
        }
    }

    fn apply_option(&mut self, job: &mut FioJob, option: &OptionLine, kb_base: u64) {
        let OptionLine { place, key, value } = option;
        let shown = if value.is_empty() { key.clone() } else { format!("{key}={value}") };
        let Some(FioOption(_, rule)) = find_option(key) else {
            let why = "fio has no such option for files; check its spelling";
            return self.offend(place.clone(), format!("{shown}: {why}"));
        };
        match rule {
            OptionRule::Honoured(set) => {
                let typed = OptionValue { text: value, kb_base };
                if let Err(why) = set(job, &typed) {
                    self.offend(place.clone(), format!("{shown}: {why}"));
                } else if key == "verify" && OTHER_CHECKSUMS.contains(&value.as_str()) {
                    self.differ(place, format!("{shown}: crc32c is used, which finds any changed byte, too"));
                }
            }
            OptionRule::Output => {}
            OptionRule::NoEffect(why) if *why == NO_LOG => self.note(format!("{}: {why}", sanitize(key.as_bytes()))),
            OptionRule::NoEffect(_) => {}
            OptionRule::Replaced(usual, what) if !is_listed(value, usual) => {
                self.differ(place, format!("{shown}: {what}"));
            }
            OptionRule::Refused(usual, why) if !is_listed(value, usual) => {
                self.offend(place.clone(), format!("{shown}: {why}"));
            }
            OptionRule::Replaced(..) | OptionRule::Refused(..) => {}
        }
    }

    fn check_job(&mut self, job: &mut FioJob, place: &str) {
        let name = job.name.clone();
        let mut wrong = |is_wrong: bool, why: &str| {
            if is_wrong {
                self.errors.push(JobFileError { place: place.into(), why: format!("[{name}] {why}") });
            }
        };
        let has_size = job.size != Amount::default() || job.filesize.is_some();
        let is_share = matches!(job.size, Amount::Percent(_)) && job.filesize.is_none();
        if (!has_size || is_share)
            && let Some(size) = self.how.existing_size
        {
            (job.filesize, job.overwrite) = (Some((size, size)), true);
        }
        // The blocks of a device exist before they are written.
        job.overwrite |= job.filename.iter().any(|name| name.starts_with("/dev/"));
        wrong(
            !has_size && self.how.existing_size.is_none() && job.filename.is_empty(),
            "size is missing; add size=1g to the file, or --size 1G to the command",
        );
        wrong(job.time_based && job.runtime_us == 0, "time_based needs a runtime");
        wrong(job.iodepth > MAX_DEPTH, "iodepth: at most 4096");
        let rates = |all: [u64; 3]| all.iter().any(|n| *n > 0);
        wrong(rates(job.rate) && rates(job.rate_iops), "rate and rate_iops exclude each other");
        wrong(rates(job.rate_min) && rates(job.rate_iops_min), "rate_min and rate_iops_min exclude each other");
        let has_rate = (0..3).all(|d| job.rate_iops[d] == 0 || job.rate_iops[d] >= job.rate_iops_min[d]);
        wrong(!has_rate, "rate_iops_min is above rate_iops");
        let too_slow = (0..3).any(|d| job.poisson && job.rate[d] > 0 && job.rate[d] < job.block_range(d).0);
        wrong(too_slow, "rate_process=poisson needs a rate of one block a second or more");
        let blocks = || job.directions().map(|d| (job.block_range(d), job.alignment(d)));
        let is_aligned = |n: u64| n.is_multiple_of(512);
        wrong(
            job.direct
                && !blocks().all(|((low, high), align)| is_aligned(low) && is_aligned(high) && is_aligned(align)),
            "direct=1 needs blocks that are multiples of 512, as the device's blocks; or use direct=0",
        );
        wrong(job.direct && !is_aligned(job.rw.stride.unsigned_abs()), "direct=1 needs a step of a multiple of 512");
        check_verify(job, &mut wrong);
        wrong(job.steady.is_some() && job.steady_duration_us == 0, "steadystate needs steadystate_duration");
        wrong(job.hipri && !job.direct, "hipri needs direct=1");
        wrong(job.zone_range > 0 && job.zone_size == 0, "zonerange needs zonesize");
        wrong(!job.cpus.is_empty() && !job.numa_nodes.is_empty(), "cpus_allowed and numa_cpu_nodes exclude each other");
        wrong(
            job.fill_device && !has_size && self.how.existing_size.is_none(),
            "fill_device: filling a file system harms everything else on it; give --size to the command: that much is \
             written, as to a device of that size",
        );
        check_engine(job, &mut wrong);
        self.note_differences(job, place);
    }

    fn note_differences(&mut self, job: &FioJob, place: &str) {
        let engine: &str = job.engine.into();
        match job.engine {
            FioEngine::Libaio if !job.direct => self.differ(
                place,
                "ioengine=libaio: io_uring is used; with direct=0 libaio would do one operation after the other".into(),
            ),
            FioEngine::Libaio | FioEngine::Posixaio => {
                self.differ(place, format!("ioengine={engine}: io_uring is used"))
            }
            FioEngine::Sync | FioEngine::Vsync | FioEngine::Pvsync | FioEngine::Pvsync2 => {
                self.differ(place, format!("ioengine={engine}: pread and pwrite are used, as with psync"));
            }
            _ => {}
        }
        if job.engine.is_synchronous() && job.iodepth > 1 {
            self.note(format!("ioengine={engine}: does one operation at a time whatever iodepth says, as in fio"));
        }
        if job.rw.trims && !matches!(job.engine, FioEngine::Falloc | FioEngine::Null) {
            self.differ(place, "trims: holes are punched in the file; fio trims devices only".into());
        }
        // With a size it says only that a full device is no error.
        if job.fill_device && job.size == Amount::default() {
            self.differ(place, "fill_device: the size given to the command is written, not the whole device".into());
        }
        for name in job.filename.iter().filter(|name| name.starts_with("/dev/")) {
            self.differ(place, format!("filename={name}: a nameless file of that size in the directory is used"));
        }
    }

    fn check_together(&mut self, jobs: &[FioJob], places: &[String]) {
        let clones: u64 = jobs.iter().map(|job| u64::from(job.numjobs)).sum();
        if clones > MAX_CLONES {
            return self.offend("line 1".into(), format!("{clones} jobs with their clones; at most {MAX_CLONES}"));
        }
        let mut before: HashMap<&str, usize> = HashMap::new();
        let mut buffers = 0u64;
        for (job, place) in jobs.iter().zip(places) {
            if !job.wait_for.is_empty() && !before.contains_key(job.wait_for.as_str()) {
                self.offend(place.clone(), format!("wait_for={}: no job of that name before this one", job.wait_for));
            }
            *before.entry(&job.name).or_default() += 1;
            buffers = if job.stonewall { 0 } else { buffers };
            buffers += u64::from(job.depth()) * u64::from(job.numjobs) * job.max_block();
            if buffers > MAX_BUFFER_BYTES {
                let needed = buffers >> 20;
                self.offend(
                    place.clone(),
                    format!("[{}] iodepth x numjobs x bs needs {needed} MiB of buffers, at most 1024", job.name),
                );
                return;
            }
        }
        if !self.errors.is_empty() {
            return;
        }
        match FileLayout::new(jobs) {
            Err((job, why)) => {
                let hint = if jobs[job].size == Amount::default() {
                    "; add size=1g to the file, or --size 1G to the command"
                } else {
                    ""
                };
                self.offend(places[job].clone(), format!("[{}] {why}{hint}", jobs[job].name));
            }
            Ok(layout) => {
                let too_large = layout.clones.iter().find(|clone| {
                    let job = &jobs[clone.job];
                    job.has_random_map() && clone.ranges.iter().any(|r| r.len / job.min_block() > MAX_MAP_BLOCKS)
                });
                if let Some(clone) = too_large {
                    let why = format!(
                        "[{}] the map of its blocks needs too much memory; add norandommap",
                        jobs[clone.job].name
                    );
                    self.offend(places[clone.job].clone(), why);
                }
            }
        }
    }
}

/// Percent of the operations of a size that have a priority of their own.
fn share_of(all: &[CommandPriority], block: u64) -> u32 {
    all.iter().filter(|p| p.block == block).map(|p| u32::from(p.percent)).sum()
}

fn check_verify(job: &FioJob, wrong: &mut impl FnMut(bool, &str)) {
    let (low, _) = job.block_range(super::job::WRITE);
    let header = super::verify::HEADER_BYTES as u64;
    let has_header = job.verify.is_some_and(|method| method != VerifyMethod::Pattern);
    wrong(has_header && low < header, "verify needs blocks of 56 bytes or more");
    wrong(
        job.verify == Some(VerifyMethod::Pattern) && job.verify_pattern.is_empty(),
        "verify=pattern needs verify_pattern",
    );
    wrong(job.verify.is_some() && job.rw.trims, "verify and trims exclude each other");
}

/// What an engine cannot do.
fn check_engine(job: &FioJob, wrong: &mut impl FnMut(bool, &str)) {
    let has_priorities = job.cmdprio.iter().flatten().any(|p| p.percent > 0);
    wrong(
        has_priorities && !matches!(job.engine, FioEngine::Libaio | FioEngine::IoUring),
        "cmdprio_percentage and cmdprio_bssplit need ioengine=libaio or io_uring",
    );
    let over = job.cmdprio.iter().any(|all| all.iter().any(|p| share_of(all, p.block) > 100));
    wrong(over, "cmdprio_bssplit: more than 100 percent of one block size");
    let (rw, engine) = (&job.rw, job.engine);
    let only_writes = rw.writes && !rw.reads && !rw.trims;
    wrong(engine == FioEngine::Ftruncate && !only_writes, "ioengine=ftruncate can only write");
    wrong(engine == FioEngine::Mmap && rw.trims, "ioengine=mmap cannot trim");
    let moves_data = !matches!(engine, FioEngine::Null | FioEngine::Falloc | FioEngine::Ftruncate);
    wrong(job.verify.is_some() && !moves_data, "verify needs an engine that writes data");
    let page = |n: u64| n.is_multiple_of(4096);
    let (low, _) = job.block_range(if rw.writes { super::job::WRITE } else { super::job::READ });
    let syncs = job.direct || job.fsync > 0 || job.fdatasync > 0;
    wrong(engine == FioEngine::Mmap && syncs && !page(low), "ioengine=mmap with direct or syncs needs blocks of 4k");
}

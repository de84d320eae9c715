//! The files of a job file: their sizes, and the part of each that a job works on (`setup_files`, filesetup.c).

use super::job::{Amount, FioEngine, FioJob, Preallocation};
use super::positions::FileRange;
use crate::bench::rng::Rng;
use std::collections::HashMap;

/// A file of the run, which has no name there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PlannedFile {
    /// How the job file calls it.
    pub label: String,
    pub size: u64,
    has_data: bool,
}

/// How a file is made or extended before the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LayoutStep {
    pub file: usize,
    /// Data is written from here on, if at all.
    pub from: u64,
    /// Size of the file after it.
    pub size: u64,
    pub writes_data: bool,
    pub preallocation: Preallocation,
}

/// A clone of a job with its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CloneFiles {
    /// Index of the job.
    pub job: usize,
    /// Number among its clones.
    pub clone: u32,
    pub ranges: Vec<FileRange>,
    /// Bytes of one pass.
    pub size: u64,
}

/// Everything about files that the jobs say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FileLayout {
    pub files: Vec<PlannedFile>,
    pub steps: Vec<LayoutStep>,
    pub clones: Vec<CloneFiles>,
    by_label: HashMap<String, usize>,
}

impl FileLayout {
    /// Bytes of all files.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum: u64, file| sum.saturating_add(file.size))
    }

    /// Bytes written before the run.
    pub(crate) fn laid_out_bytes(&self) -> u64 {
        let written = self.steps.iter().filter(|step| step.writes_data);
        written.fold(0, |sum: u64, step| sum.saturating_add(step.size - step.from))
    }

    /// The files of all clones of all jobs. The error has the index of its job.
    pub(crate) fn new(jobs: &[FioJob]) -> Result<Self, (usize, String)> {
        let mut layout = Self::default();
        for (index, job) in jobs.iter().enumerate() {
            for clone in 0..job.numjobs {
                layout.add_clone(job, index, clone).map_err(|why| (index, why))?;
            }
        }
        Ok(layout)
    }

    fn add_clone(&mut self, job: &FioJob, index: usize, clone: u32) -> Result<(), String> {
        let labels = file_labels(job, clone);
        let (n, block) = (labels.len() as u64, job.min_block());
        let size = match job.size {
            Amount::Bytes(size) => size,
            Amount::Percent(_) => 0,
        };
        let each = size / n;
        let mut larger = (size - each * n) / block;
        let mut rng = Rng::new(job.randseed.unwrap_or(1), u64::from(clone) << 16 | index as u64);
        let (mut ranges, mut total) = (Vec::new(), 0u64);
        for label in labels {
            let file = self.file_of(&label);
            let present = self.files[file].size;
            let start = start_offset(job, clone, present);
            let is_larger = larger > 0;
            larger = larger.saturating_sub(1);
            let wanted = each + if is_larger { block } else { 0 };
            let mut len = range_length(job, present, start, wanted, &mut rng)?;
            if let Amount::Percent(share) = job.size
                && share != 100
            {
                len = Amount::Percent(share).of(len + start).min(len);
                len -= len % block;
            }
            total = total.saturating_add(match job.io_size {
                Amount::Percent(share) if share != 100 => Amount::Percent(share).of(len),
                _ => len,
            });
            let end = start.checked_add(len).filter(|end| *end <= 1 << 50).ok_or("a file of more than 1 PiB")?;
            // Without I/O a file needs no space.
            if end > present && job.engine != FioEngine::Null {
                self.extend(job, file, end);
            }
            ranges.push(FileRange { file, start, len, file_size: end.max(present) });
        }
        let size = if size == 0 || size > total { total } else { size };
        if size < block {
            return Err(format!("its files have {size} bytes, less than one block of {block}"));
        }
        self.clones.push(CloneFiles { job: index, clone, ranges, size });
        Ok(())
    }

    fn file_of(&mut self, label: &str) -> usize {
        if let Some(file) = self.by_label.get(label) {
            return *file;
        }
        self.files.push(PlannedFile { label: label.to_owned(), ..PlannedFile::default() });
        self.by_label.insert(label.to_owned(), self.files.len() - 1);
        self.files.len() - 1
    }

    fn extend(&mut self, job: &FioJob, file: usize, size: u64) {
        let planned = &mut self.files[file];
        let writes_data = job.rw.reads || job.overwrite || job.engine == FioEngine::Mmap;
        let from = if planned.has_data { planned.size } else { 0 };
        planned.size = size;
        planned.has_data |= writes_data;
        self.steps.push(LayoutStep { file, from, size, writes_data, preallocation: job.fallocate });
    }
}

/// The names of a clone's files: those of `filename`, which all clones share, or those that `filename_format` gives. Jobs
/// of the same name share their files, as in fio (`make_filename`, init.c).
fn file_labels(job: &FioJob, clone: u32) -> Vec<String> {
    let directories = &job.directory;
    let within = |directory: Option<&String>, name: &str| match directory {
        Some(directory) if !name.starts_with('/') => format!("{directory}/{name}"),
        _ => name.to_owned(),
    };
    let directory = (!directories.is_empty()).then(|| &directories[clone as usize % directories.len()]);
    if !job.filename.is_empty() {
        return job.filename.iter().map(|name| within(directory, name)).collect();
    }
    let own = |n: u32| {
        let name = job.filename_format.replace("$jobname", &job.name).replace("$jobnum", &clone.to_string());
        name.replace("$filenum", &n.to_string())
    };
    (0..job.nrfiles).map(|n| within(directory, &own(n))).collect()
}

fn start_offset(job: &FioJob, clone: u32, file_size: u64) -> u64 {
    let increment = job.offset_increment.of(file_size).saturating_mul(clone.into());
    let offset = job.offset.of(file_size).saturating_add(increment);
    let is_share = matches!(job.offset, Amount::Percent(_)) || matches!(job.offset_increment, Amount::Percent(_));
    if !is_share {
        return offset;
    }
    let align = if job.offset_align > 0 { job.offset_align } else { job.min_block() };
    offset.checked_next_multiple_of(align).unwrap_or(offset)
}

/// Bytes of a file that a job works on.
fn range_length(job: &FioJob, present: u64, start: u64, wanted: u64, rng: &mut Rng) -> Result<u64, String> {
    let beyond = || format!("offset {start} is beyond the end of its file");
    match job.filesize {
        None if wanted > 0 => Ok(wanted),
        Some((low, high)) if present < low || present > high => {
            let size = if low == high { low } else { low + rng.below(high - low) };
            let size = if low == high { size } else { size - size % job.min_block() };
            size.checked_sub(start).ok_or_else(beyond)
        }
        _ => present.checked_sub(start).filter(|len| *len > 0).ok_or_else(beyond),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fio::job::AccessPattern;

    fn job(change: impl FnOnce(&mut FioJob)) -> FioJob {
        let mut job = FioJob { size: Amount::Bytes(1 << 20), ..FioJob::default() };
        change(&mut job);
        job
    }

    fn layout(jobs: &[FioJob]) -> FileLayout {
        FileLayout::new(jobs).expect("laid out")
    }

    #[test]
    fn clones_have_files_of_their_own_unless_a_name_is_given() {
        let four = layout(&[job(|j| j.numjobs = 4)]);
        assert_eq!((four.files.len(), four.total_bytes(), four.clones.len()), (4, 4 << 20, 4));
        let shared = layout(&[job(|j| (j.numjobs, j.filename) = (4, vec!["x".into()]))]);
        assert_eq!((shared.files.len(), shared.total_bytes()), (1, 1 << 20));
        let apart = job(|j| {
            (j.numjobs, j.filename) = (4, vec!["x".into()]);
            j.offset_increment = Amount::Bytes(1 << 20);
        });
        let apart = layout(&[apart]);
        assert_eq!((apart.total_bytes(), apart.clones[3].ranges[0].start), (4 << 20, 3 << 20));
    }

    #[test]
    fn files_are_shared_by_the_names_that_fio_gives_them() {
        let named = |name: &str| {
            job(|j| {
                j.name = name.into();
                j.rw = AccessPattern { writes: true, ..AccessPattern::default() };
            })
        };
        let of_clone_0 = job(|j| j.filename = vec!["a.0.0".into()]);
        assert_eq!(layout(&[named("a"), named("a"), named("b"), of_clone_0]).files.len(), 2);
        let format = |text: &str| FioJob { numjobs: 3, filename_format: text.into(), ..named("a") };
        assert_eq!(layout(&[format("x.$filenum")]).files.len(), 1);
        assert_eq!(layout(&[format("$jobname-$jobnum")]).files[2].label, "a-2");
    }

    #[test]
    fn data_is_written_only_for_reads_and_overwrite() {
        let writes = AccessPattern { writes: true, ..AccessPattern::default() };
        assert_eq!(layout(&[job(|j| j.rw = writes)]).laid_out_bytes(), 0);
        assert_eq!(layout(&[job(|j| (j.rw, j.overwrite) = (writes, true))]).laid_out_bytes(), 1 << 20);
        let name = |j: &mut FioJob| j.filename = vec!["x".into()];
        let reader_second = layout(&[
            job(|j| {
                name(j);
                j.rw = writes;
            }),
            job(name),
        ]);
        assert_eq!(reader_second.laid_out_bytes(), 0, "the second job finds the file of the first");
    }

    #[test]
    fn filesize_size_and_percentages_are_fios() {
        let of = |change: fn(&mut FioJob)| {
            let all = layout(&[job(change)]);
            (all.total_bytes(), all.clones[0].ranges[0].len, all.clones[0].size)
        };
        assert_eq!(of(|j| j.filesize = Some((4 << 20, 4 << 20))), (4 << 20, 4 << 20, 1 << 20));
        assert_eq!(of(|j| j.filesize = Some((1 << 18, 1 << 18))), (1 << 18, 1 << 18, 1 << 18));
        assert_eq!(of(|j| j.nrfiles = 4), (1 << 20, 1 << 18, 1 << 20));
        assert_eq!(of(|j| j.offset = Amount::Bytes(1 << 20)), (2 << 20, 1 << 20, 1 << 20));
        let half = layout(&[job(|j| j.filename = vec!["x".into()]), {
            job(|j| {
                j.filename = vec!["x".into()];
                (j.size, j.offset) = (Amount::Percent(50), Amount::Percent(25));
            })
        }]);
        let range = half.clones[1].ranges[0];
        assert_eq!((range.start, range.len), (1 << 18, 1 << 19));
        assert!(FileLayout::new(&[job(|j| j.size = Amount::Percent(50))]).is_err());
    }
}

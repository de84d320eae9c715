//! Job files run by fio and by this program: operations, bytes, blocks, depths and files are the same.
//!
//! The system calls of both are traced where the engine makes one for each operation (psync).

use crate::lab::BenchDir;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// What one program did.
#[derive(Debug, Default, PartialEq)]
struct Work {
    /// Operations and bytes: reads, writes.
    reads: (u64, u64),
    writes: (u64, u64),
    syncs: u64,
    /// Percent of the operations by depth.
    depths: BTreeMap<String, u64>,
    /// Traced: file, offset and length of all reads and writes, in order.
    read_ranges: Vec<(String, u64, u64)>,
    written_ranges: Vec<(String, u64, u64)>,
    fsyncs: u64,
    fdatasyncs: u64,
    /// Whether data was written to the files before the run.
    is_laid_out: bool,
    dropped_cache: u64,
}

impl Work {
    /// Distinct blocks of 512 bytes, whatever file they are in.
    fn blocks(ranges: &[(String, u64, u64)]) -> BTreeSet<(String, u64)> {
        ranges.iter().flat_map(|(file, at, len)| (at / 512..(at + len) / 512).map(move |b| (file.clone(), b))).collect()
    }

    fn offsets(ranges: &[(String, u64, u64)]) -> Vec<(u64, u64)> {
        ranges.iter().map(|(_, at, len)| (*at, *len)).collect()
    }

    fn files(&self) -> usize {
        self.read_ranges.iter().chain(&self.written_ranges).map(|(file, ..)| file).collect::<BTreeSet<_>>().len()
    }
}

fn sum_jobs(document: &Value) -> Work {
    let mut work = Work::default();
    for job in document["jobs"].as_array().unwrap() {
        let of = |direction: &str, key: &str| job[direction][key].as_u64().unwrap();
        work.reads = (work.reads.0 + of("read", "total_ios"), work.reads.1 + of("read", "io_bytes"));
        work.writes = (work.writes.0 + of("write", "total_ios"), work.writes.1 + of("write", "io_bytes"));
        work.syncs += of("sync", "total_ios");
        for (level, share) in job["iodepth_level"].as_object().unwrap() {
            let share = share.as_f64().unwrap().round() as u64;
            if share > 0 {
                work.depths.insert(level.clone(), share);
            }
        }
    }
    work
}

/// Adds what the traces (one file for each thread) show of the files below `directory`.
fn add_traces(work: &mut Work, traces: &Path, directory: &Path) {
    let marker = format!("<{}", directory.display());
    for entry in std::fs::read_dir(traces).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for line in text.lines() {
            let call = line.split('(').next().unwrap_or_default();
            work.is_laid_out |= call == "io_uring_enter" && !line.contains("= -1");
            let Some((_, rest)) = line.split_once(&marker) else { continue };
            let file = rest.split('>').next().unwrap_or_default().to_owned();
            let arguments = rest.rsplit_once(')').unwrap_or_default().0;
            let last = |n: usize| arguments.rsplit(", ").nth(n).and_then(|word| word.parse::<u64>().ok());
            match call {
                "pread64" => work.read_ranges.push((file, last(0).unwrap(), last(1).unwrap())),
                "pwrite64" => work.written_ranges.push((file, last(0).unwrap(), last(1).unwrap())),
                "fsync" => work.fsyncs += 1,
                "fdatasync" => work.fdatasyncs += 1,
                "write" => work.is_laid_out = true,
                "fadvise64" => work.dropped_cache += u64::from(line.contains("DONTNEED")),
                _ => {}
            }
        }
    }
}

/// Runs one program, traced if asked for, in a new directory for the files.
fn run_one(place: &BenchDir, is_fio: bool, job: &Path, traced: bool) -> Option<Work> {
    let name = if is_fio { "fio" } else { "own" };
    let (files, traces) = (place.path().join(format!("{name}-files")), place.path().join(format!("{name}-traces")));
    for dir in [&files, &traces] {
        std::fs::create_dir_all(dir).unwrap();
    }
    let job = job.to_str().unwrap();
    let dir = files.to_str().unwrap();
    let line: Vec<&str> = if is_fio {
        vec!["fio", "--output-format=json", "--eta=never", "--directory", dir, job]
    } else {
        vec![crate::lab::BIN, "bench", "run", job, dir, "-q", "--no-keep", "--format", "fio"]
    };
    let prefix = traces.join("t");
    let calls = "trace=pread64,pwrite64,write,fsync,fdatasync,fadvise64,io_uring_enter";
    let tracer = ["strace", "-ff", "-y", "-s", "0", "-e", calls, "-o", prefix.to_str().unwrap()];
    let all: Vec<&str> = if traced { tracer.into_iter().chain(line).collect() } else { line };
    let Ok(out) = Command::new(all[0]).args(&all[1..]).current_dir(&files).output() else {
        println!("skipped: no {} here to compare with", all[0]);
        return None;
    };
    let text = String::from_utf8_lossy(&out.stdout);
    let document = text.find('{').and_then(|at| serde_json::from_str(&text[at..]).ok());
    let Some(document) = document else { panic!("{all:?}: {text} {}", String::from_utf8_lossy(&out.stderr)) };
    let mut work = sum_jobs(&document);
    add_traces(&mut work, &traces, &files);
    std::fs::remove_dir_all(&files).unwrap();
    std::fs::remove_dir_all(&traces).unwrap();
    Some(work)
}

/// fio's work and ours on the same job; `None`: a program is missing.
fn run_both(text: &str, traced: bool) -> Option<(Work, Work)> {
    let place = BenchDir::new()?;
    let job = place.path().join("job.fio");
    std::fs::write(&job, text).unwrap();
    let fio = run_one(&place, true, &job, traced)?;
    Some((fio, run_one(&place, false, &job, traced)?))
}

fn assert_close(fio: usize, own: usize, percent: usize, what: &str) {
    assert!(fio.abs_diff(own) * 100 <= fio.max(1) * percent, "{what}: fio {fio}, ours {own}");
}

#[test]
fn without_options_a_job_is_fios_with_psync_and_depth_1() {
    let Some((fio, own)) = run_both("[a]\nsize=256k\n", true) else { return };
    assert_eq!((fio.reads, &fio.depths), ((64, 256 << 10), &BTreeMap::from([("1".to_owned(), 100)])));
    assert_eq!((own.reads, &own.depths), (fio.reads, &fio.depths));
    assert_eq!(Work::offsets(&own.read_ranges), Work::offsets(&fio.read_ranges));
}

#[test]
fn sequential_jobs_have_fios_offsets() {
    for text in [
        "[a]\nsize=256k\nrw=write\nbs=16k\n",
        "[a]\nsize=256k\nrw=read:8k\n",
        "[a]\nsize=256k\nrw=read:-8k\n",
        "[a]\nsize=256k\noffset=128k\nrw=read\n",
        "[a]\nsize=10k\nrw=read\n",
        "[a]\nsize=256k\nio_size=600k\nrw=write\n",
        "[a]\nsize=256k\nio_size=600k\nrw=read\n",
        "[a]\nsize=256k\nloops=3\nrw=read\n",
        "[a]\nsize=400KiB\nbs=4KiB\nrw=write\n",
        "[a]\nkb_base=1000\nsize=400k\nbs=4k\nrw=write\n",
        "[a]\nsize=1m\nnrfiles=4\nrw=read\nfile_service_type=sequential\n",
        "[a]\nsize=1m\nnrfiles=4\nrw=read\n",
        "[a]\nsize=4m\nrw=read\nzonemode=strided\nzonesize=64k\nzoneskip=192k\nio_size=256k\n",
        "[a]\nsize=1m\nfilename=x\nrw=write\n[b]\nstonewall\nfilename=x\nsize=50%\noffset=25%\nrw=read\n",
        "[global]\nsize=64k\n[a]\nrw=write\n[global]\nbs=8k\n[b]\nstonewall\nrw=read\n",
    ] {
        let Some((fio, own)) = run_both(text, true) else { return };
        assert_eq!((own.reads, own.writes), (fio.reads, fio.writes), "{text}");
        assert_eq!(Work::offsets(&own.read_ranges), Work::offsets(&fio.read_ranges), "{text}");
        assert_eq!(Work::offsets(&own.written_ranges), Work::offsets(&fio.written_ranges), "{text}");
        assert_eq!(own.files(), fio.files(), "{text}");
    }
}

#[test]
fn random_jobs_touch_each_block_once_unless_there_is_no_map() {
    for (text, is_mapped) in [
        ("[a]\nsize=1m\nrw=randread\n", true),
        ("[a]\nsize=1m\nrw=randwrite\nloops=2\n", true),
        ("[a]\nsize=1m\nio_size=2560k\nrw=randwrite\n", true),
        ("[a]\nsize=1m\nrw=randread\nrandom_generator=lfsr\n", true),
        ("[a]\nsize=1m\nrw=randread\nbssplit=4k/50:16k/50\n", true),
        ("[a]\nsize=1m\nrw=randwrite\nbsrange=4k-32k\n", true),
        ("[a]\nsize=8m\nrw=randread\nnorandommap\n", false),
        ("[a]\nsize=8m\nrw=randread\npercentage_random=30\n", false),
        ("[a]\nsize=8m\nrw=randread:8\n", false),
        ("[a]\nsize=8m\nrw=randread\nbs=8k\nblockalign=4k\n", false),
        ("[a]\nsize=8m\nrw=randread\nrandom_distribution=zipf:1.2\n", false),
        ("[a]\nsize=8m\nrw=randread\nrandom_distribution=pareto:0.2\n", false),
        ("[a]\nsize=8m\nrw=randread\nrandom_distribution=normal:5\n", false),
        ("[a]\nsize=8m\nrw=randread\nrandom_distribution=zoned:50/5:30/15:20/\n", false),
    ] {
        let Some((fio, own)) = run_both(text, true) else { return };
        let touched = |work: &Work| {
            let all: Vec<_> = work.read_ranges.iter().chain(&work.written_ranges).cloned().collect();
            Work::blocks(&all).len()
        };
        assert_eq!((own.reads.1, own.writes.1), (fio.reads.1, fio.writes.1), "{text}");
        let percent = if is_mapped { 0 } else { 15 };
        assert_close(touched(&fio), touched(&own), percent, text);
        let operations = |work: &Work| (work.reads.0 + work.writes.0) as usize;
        assert_close(operations(&fio), operations(&own), if text.contains("bs") { 25 } else { 0 }, text);
    }
}

#[test]
fn mixes_and_syncs_are_fios() {
    for text in ["[a]\nsize=4m\nrw=randrw\n", "[a]\nsize=4m\nrw=randrw\nrwmixread=80\n", "[a]\nsize=4m\nrw=rw\n"] {
        let Some((fio, own)) = run_both(text, false) else { return };
        assert_eq!(own.reads.0 + own.writes.0, fio.reads.0 + fio.writes.0, "{text}");
        assert_close(fio.reads.0 as usize, own.reads.0 as usize, 15, text);
    }
    for (text, own_layout) in [
        ("[a]\nsize=1m\nrw=write\nfsync=10\n", 1),
        ("[a]\nsize=1m\nrw=write\nfdatasync=10\n", 1),
        ("[a]\nsize=1m\nrw=write\nend_fsync=1\n", 1),
        ("[a]\nsize=1m\nrw=write\nfsync=7\nend_fsync=1\n", 1),
    ] {
        let Some((fio, own)) = run_both(text, true) else { return };
        // We sync the new file once before the run.
        assert_eq!((own.fsyncs - own_layout, own.fdatasyncs), (fio.fsyncs, fio.fdatasyncs), "{text}");
        assert_eq!(own.written_ranges.len(), fio.written_ranges.len(), "{text}");
    }
}

#[test]
fn rates_hold_for_each_direction() {
    for text in [
        "[a]\nsize=64m\nrw=randrw\nrate_iops=100,400\nnumber_ios=500\n",
        "[a]\nsize=64m\nrw=randrw\nrate_iops=400,100\nnumber_ios=500\n",
        "[a]\nsize=64m\nrw=randrw\nrwmixread=80\nrate_iops=200\nnumber_ios=300\n",
        "[a]\nsize=64m\nrw=randrw\nrate=1600k,400k\nnumber_ios=400\n",
    ] {
        let Some((fio, own)) = run_both(text, false) else { return };
        assert_eq!(own.reads.0 + own.writes.0, fio.reads.0 + fio.writes.0, "{text}");
        assert_close(fio.reads.0 as usize, own.reads.0 as usize, 3, text);
    }
    // Only writes are limited: reads go on meanwhile.
    let Some((fio, own)) = run_both("[a]\nsize=64m\nrw=randrw\nrate=,400k\nnumber_ios=2000\n", false) else { return };
    assert!(fio.reads.0 > 10 * fio.writes.0 && own.reads.0 > 10 * own.writes.0, "{fio:?} {own:?}");
}

#[test]
fn clones_and_sizes_of_files_are_fios() {
    for (text, files) in [
        ("[a]\nsize=256k\nrw=write\nnumjobs=4\n", 4),
        ("[a]\nsize=256k\nrw=randread\nnumjobs=3\nfilename=x\n", 1),
        ("[a]\nsize=256k\noffset_increment=256k\nnumjobs=3\nfilename=x\nrw=read\n", 1),
        ("[a]\nsize=1m\nfilesize=4m\nrw=randread\n", 1),
        ("[a]\nsize=4m\nfilesize=1m\nrw=read\n", 1),
        ("[a]\nsize=1m\nnrfiles=4\nrw=randread\n", 4),
        ("[a]\nsize=256k\nrw=write\n[a]\nstonewall\nsize=256k\nrw=read\n", 1),
        ("[a]\nsize=256k\nrw=write\n[b]\nstonewall\nfilename=a.0.0\nrw=read\n", 1),
    ] {
        let Some((fio, own)) = run_both(text, true) else { return };
        assert_eq!((own.reads, own.writes), (fio.reads, fio.writes), "{text}");
        assert_eq!((fio.files(), own.files()), (files, files), "{text}");
        let highest = |w: &Work| w.read_ranges.iter().chain(&w.written_ranges).map(|(_, at, _)| *at).max();
        if !text.contains("filesize=4m") {
            assert_eq!(highest(&own), highest(&fio), "{text}");
        }
    }
}

#[test]
fn only_jobs_that_read_or_overwrite_have_data_first() {
    for (text, laid_out) in [
        ("[a]\nsize=1m\nrw=write\n", false),
        ("[a]\nsize=1m\nrw=randwrite\n", false),
        ("[a]\nsize=1m\nrw=write\noverwrite=1\n", true),
        ("[a]\nsize=1m\nrw=read\n", true),
        ("[a]\nsize=1m\nrw=write\nfilename=x\n[b]\nsize=1m\nstonewall\nrw=read\nfilename=x\n", false),
    ] {
        let Some((fio, own)) = run_both(text, true) else { return };
        assert_eq!((fio.is_laid_out, own.is_laid_out), (laid_out, laid_out), "{text}");
    }
}

#[test]
fn timed_reads_drop_the_cache_in_each_pass_and_ignore_io_size() {
    let text = "[a]\nsize=1m\nbs=64k\nrw=read\ntime_based\nruntime=1\nio_size=256k\n";
    let Some((fio, own)) = run_both(text, true) else { return };
    for work in [fio, own] {
        let passes = work.reads.0 / 16;
        assert!(passes > 4 && work.dropped_cache >= passes - 1, "{passes} passes, {} drops", work.dropped_cache);
    }
}

#[test]
fn a_ramp_up_is_part_of_the_size() {
    let text = "[a]\nsize=2m\nrw=read\nrate=1m\nramp_time=1\n";
    let Some((fio, own)) = run_both(text, false) else { return };
    assert!(fio.reads.0 < 400 && own.reads.0 < 400, "{} {}", fio.reads.0, own.reads.0);
}

#[test]
fn asynchronous_jobs_have_fios_depths() {
    let direct = "direct=1\nioengine=libaio\niodepth=16\n";
    for text in ["rw=randread\n", "rw=randwrite\niodepth_low=4\n"] {
        let Some((fio, own)) = run_both(&format!("[a]\nsize=8m\n{direct}{text}"), false) else { return };
        assert_eq!((own.reads, own.writes), (fio.reads, fio.writes), "{text}");
        for level in ["4", "8", "16"] {
            let of = |work: &Work| work.depths.get(level).copied().unwrap_or(0);
            assert!(of(&fio).abs_diff(of(&own)) <= 12, "{text} {level}: fio {:?}, ours {:?}", fio.depths, own.depths);
        }
    }
}

/// Where so many completions are taken as were asked for, the depths of both are the same. Otherwise it depends on the
/// device how many have completed, so the shares are only close, and of small batches only the work is compared.
#[test]
fn jobs_in_batches_have_fios_depths() {
    for (engine, batches, allowed) in [
        ("libaio", "iodepth_batch=16\niodepth_low=4\n", 3),
        ("io_uring", "iodepth_batch=16\niodepth_low=4\n", 3),
        ("libaio", "iodepth_batch=8\niodepth_batch_complete_min=0\n", 3),
        ("libaio", "iodepth_batch=16\niodepth_batch_complete=16\n", 3),
        ("io_uring", "iodepth_batch=8\niodepth_batch_complete=8\niodepth_low=8\n", 3),
        ("libaio", "iodepth_batch=4\niodepth_batch_complete=4\niodepth_low=2\n", 3),
        ("libaio", "iodepth_batch=8\niodepth_batch_complete_min=4\niodepth_batch_complete_max=8\n", 100),
    ] {
        let text = format!("[a]\nsize=16m\ndirect=1\nioengine={engine}\niodepth=16\nrw=randread\n{batches}");
        let Some((fio, own)) = run_both(&text, false) else { return };
        assert_eq!((own.reads, own.writes), (fio.reads, fio.writes), "{text}");
        for level in ["1", "2", "4", "8", "16"] {
            let of = |work: &Work| work.depths.get(level).copied().unwrap_or(0);
            let differ = of(&fio).abs_diff(of(&own));
            assert!(differ <= allowed, "{text} {level}: fio {:?}, ours {:?}", fio.depths, own.depths);
        }
    }
}

#[test]
fn jobs_of_other_engines_and_open_files_are_fios() {
    for text in [
        "[a]\nioengine=null\nsize=100g\nio_size=64m\nrw=randread\nnorandommap\n",
        "[a]\nioengine=null\nsize=64m\nrw=write\niodepth=16\n",
        "[a]\nioengine=mmap\nsize=2m\nrw=randwrite\nfsync=100\n",
        "[a]\nioengine=mmap\nsize=2m\nrw=read\ndirect=1\n",
        "[a]\nioengine=falloc\nsize=2m\nrw=write\n",
        "[a]\nioengine=falloc\nsize=2m\nrw=trim\n",
        "[a]\nioengine=ftruncate\nsize=2m\nrw=randwrite\n",
        "[a]\nsize=2m\nrw=write\nverify=pattern\nverify_pattern=0xaa55\n",
        "[a]\nsize=2m\nrw=randwrite\nverify=crc32c\nverify_pattern=\"abcd\"\n",
        "[a]\nsize=2m\nrw=randwrite\nbuffer_compress_percentage=50\ndedupe_percentage=30\n",
    ] {
        let Some((fio, own)) = run_both(text, false) else { return };
        assert_eq!((own.reads, own.writes), (fio.reads, fio.writes), "{text}");
        // fio counts syncs as operations there.
        let share = |work: &Work| work.depths.get("1").map(|share| *share.min(&100));
        assert_eq!((share(&own), share(&fio)), (Some(100), Some(100)), "{text}");
    }
    // Files in the order in which they were first touched, for each operation.
    let order = |work: &Work| {
        let mut seen = Vec::new();
        let number = |(file, at, _): &(String, u64, u64)| {
            let at_file = seen.iter().position(|known| known == file).unwrap_or_else(|| {
                seen.push(file.clone());
                seen.len() - 1
            });
            (at_file, *at)
        };
        work.read_ranges.iter().map(number).collect::<Vec<_>>()
    };
    for more in
        ["openfiles=2", "openfiles=1", "openfiles=3\nfile_service_type=sequential", "file_service_type=roundrobin:3"]
    {
        let text = format!("[a]\nsize=192k\nnrfiles=6\nrw=read\n{more}\n");
        let Some((fio, own)) = run_both(&text, true) else { return };
        assert_eq!(order(&own), order(&fio), "{text}");
    }
}

#[test]
fn verified_jobs_read_what_they_wrote() {
    for text in [
        "[a]\nsize=512k\nrw=randwrite\nverify=crc32c\n",
        "[a]\nsize=512k\nrw=write\nverify=sha256\nbs=16k\n",
        "[a]\nsize=512k\nrw=randwrite\nverify=crc32c\nverify_backlog=16\n",
        "[a]\nsize=512k\nrw=randwrite\nverify=crc32c\ndo_verify=0\n",
        "[a]\nsize=2m\nrw=randwrite\nverify=crc32c\ndirect=1\nioengine=libaio\niodepth=16\n",
    ] {
        let Some((fio, own)) = run_both(text, false) else { return };
        assert_eq!((own.reads, own.writes), (fio.reads, fio.writes), "{text}");
    }
}

#[test]
fn written_job_files_are_the_same_work() {
    let Some(place) = BenchDir::new() else { return };
    let dir = place.path().to_str().unwrap();
    for (profile, more) in [
        ("randread", &["--jobs", "4", "--depth", "4"][..]),
        ("seqwrite", &["--jobs", "4", "--block", "64k"]),
        ("randwrite", &["--fsync", "8", "--depth", "1"]),
        // Each clone ends before the last one has begun.
        ("randread", &["--jobs", "4", "--depth", "4", "--io-size", "64k"]),
    ] {
        let mut args = vec!["bench", "run", profile, dir, "--size", "16M", "--time", "0", "--ramp", "0"];
        args.extend(more);
        if !more.contains(&"--io-size") {
            args.extend(["--io-size", "8M"]);
        }
        args.extend(["-q", "--no-keep", "--format", "fio"]);
        let out = place.run(&args);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let plan = sum_jobs(&serde_json::from_slice(&out.stdout).unwrap());
        args.push("--fio-job");
        let job = place.path().join("written.fio");
        std::fs::write(&job, place.run(&args).stdout).unwrap();
        let Some(fio) = run_one(&place, true, &job, false) else { return };
        let again = run_one(&place, false, &job, false).unwrap();
        assert_eq!((plan.reads, plan.writes), (fio.reads, fio.writes), "{profile} {more:?}");
        assert_eq!((again.reads, again.writes), (fio.reads, fio.writes), "{profile} {more:?}");
    }
}

#[test]
fn all_errors_are_listed_and_strict_refuses_replacements() {
    let Some(place) = BenchDir::new() else { return };
    let job = place.path().join("job.fio");
    let run = |text: &str, more: &[&str]| {
        std::fs::write(&job, text).unwrap();
        let mut args = vec!["bench", "run", job.to_str().unwrap(), place.path().to_str().unwrap(), "--dry-run"];
        args.extend(more);
        let out = place.run(&args);
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let (code, why) = run("[global]\nioengine=rbd\nbs=4q\n[a]\nsize=1m\nread_iolog=x\nbogus=1\n", &[]);
    assert_eq!(code, Some(2));
    for (line, what) in [(2, "ioengine=rbd"), (3, "bs=4q"), (6, "read_iolog=x"), (7, "bogus=1")] {
        assert!(why.contains(&format!("line {line}: {what}")), "{why}");
    }
    let libaio = "[a]\nsize=1m\nioengine=libaio\ndirect=1\n";
    assert_eq!(run(libaio, &[]).0, Some(0));
    let (code, why) = run(libaio, &["--strict"]);
    assert!(code == Some(2) && why.contains("io_uring is used (--strict)"), "{why}");
    assert!(run("[a]\nrw=read\n", &[]).1.contains("--size 1G"));
    assert_eq!(run("[a]\nrw=read\nfilename=/dev/nvme9n9\n", &["--size", "1M"]).0, Some(0));
}

#[test]
fn an_existing_file_of_the_jobs_name_is_left_alone() {
    let Some(place) = BenchDir::new() else { return };
    let file = place.path().join("precious");
    std::fs::write(&file, b"precious").unwrap();
    let job = place.path().join("job.fio");
    std::fs::write(&job, format!("[a]\nsize=1m\nrw=write\nfilename={}\n", file.display())).unwrap();
    let out = place.run(&["bench", "run", job.to_str().unwrap(), "-q", "--no-keep"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(std::fs::read(&file).unwrap(), b"precious");
}

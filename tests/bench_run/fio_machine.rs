//! Job files that concern the machine: trims of a device, processors, priorities, and limits that fail a job. The system
//! calls of fio and of this program are compared.

use crate::lab::{BIN, BenchDir, LoopDevice, skip};
use std::process::{Command, Output};

/// Runs a job file in both programs under strace; the calls of all threads, in order within each.
fn traced(place: &BenchDir, text: &str, is_fio: bool, calls: &str) -> Option<(Output, Vec<String>)> {
    let traces = tempfile::tempdir_in(place.path()).unwrap();
    let files = tempfile::tempdir_in(place.path()).unwrap();
    let job = place.path().join("job.fio");
    std::fs::write(&job, text).unwrap();
    let mut command = Command::new("strace");
    command.args(["-ff", "-y", "-s", "0", "-e"]).arg(format!("trace={calls}")).arg("-o").arg(traces.path().join("t"));
    match is_fio {
        // A directory would be put before the path of a device, too; files go into the present one.
        true => command.args(["fio", "--output-format=json", "--eta=never"]).arg(&job),
        false => {
            command.args([BIN, "bench", "run"]).arg(&job).arg(files.path()).args(["-q", "--no-keep", "--size", "4M"])
        }
    };
    let Ok(out) = command.current_dir(files.path()).output() else {
        skip("no strace here");
        return None;
    };
    let mut lines = Vec::new();
    for entry in std::fs::read_dir(traces.path()).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        lines.extend(text.lines().map(str::to_owned));
    }
    Some((out, lines))
}

fn numbers(text: &str) -> Vec<u64> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect()
}

/// Offset and length of each trim: BLKDISCARD of a device, a hole punched in a file.
fn trims(calls: &[String]) -> Vec<(u64, u64)> {
    let of = |line: &String| {
        let last = line.rsplit_once(')').map_or("", |(call, _)| call);
        let two =
            if line.contains("BLKDISCARD") { last.rsplit_once('[')?.1 } else { last.rsplit_once("PUNCH_HOLE, ")?.1 };
        let [at, len] = numbers(two)[..] else { return None };
        Some((at, len))
    };
    calls.iter().filter_map(of).collect()
}

#[test]
fn trims_are_those_of_fio_on_a_device() {
    let Some(place) = BenchDir::new() else { return };
    let Some(disk) = LoopDevice::unmounted() else { return };
    for rw in ["trim", "randtrim", "trimwrite"] {
        let head = "size=1m\nbs=16k\n";
        let on_device = format!("[a]\nfilename={}\nallow_file_create=0\n{head}rw={rw}\n", disk.device());
        let in_file = format!("[a]\n{head}rw={rw}\n");
        let calls = "ioctl,fallocate,pwrite64";
        let Some((out, fio)) = traced(&place, &on_device, true, calls) else { return };
        assert!(out.status.success(), "{rw}: {}", String::from_utf8_lossy(&out.stderr));
        let Some((out, own)) = traced(&place, &in_file, false, calls) else { return };
        assert!(out.status.success(), "{rw}: {}", String::from_utf8_lossy(&out.stderr));
        let (mut fio_trims, mut own_trims) = (trims(&fio), trims(&own));
        assert_eq!(fio_trims.len(), 64, "{rw}: {fio:?}");
        if rw == "randtrim" {
            assert_ne!(own_trims, fio_trims, "each has its own random order");
            fio_trims.sort_unstable();
            own_trims.sort_unstable();
        }
        assert_eq!(own_trims, fio_trims, "{rw}");
        let writes = |calls: &[String]| calls.iter().filter(|call| call.starts_with("pwrite64")).count();
        assert_eq!(writes(&own), writes(&fio), "{rw}");
    }
}

#[test]
fn processors_and_priorities_are_set_as_by_fio() {
    let Some(place) = BenchDir::new() else { return };
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return skip("needs two processors");
    }
    let job = "[a]\nsize=64k\ncpus_allowed=1\nprioclass=2\nprio=6\nnice=3\nthread\n\
               [b]\nsize=64k\nnumjobs=2\ncpus_allowed=0-1\ncpus_allowed_policy=split\nthread\n";
    let calls = "sched_setaffinity,ioprio_set,setpriority";
    let Some((out, fio)) = traced(&place, job, true, calls) else { return };
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let Some((out, own)) = traced(&place, job, false, calls) else { return };
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let masks = |calls: &[String]| {
        let all = calls.iter().filter(|call| call.starts_with("sched_setaffinity"));
        let mut all: Vec<Vec<u64>> =
            all.filter_map(|c| Some(numbers(c.split_once('[')?.1.split_once(']')?.0))).collect();
        all.sort();
        all
    };
    assert_eq!(masks(&own), [vec![0], vec![1], vec![1]]);
    // fio also binds threads to each processor in turn, to try its clock.
    let of_fio = masks(&fio);
    let count = |all: &[Vec<u64>], mask: &[u64]| all.iter().filter(|m| *m == mask).count();
    for mask in [[0], [1]] {
        assert!(count(&of_fio, &mask) >= count(&masks(&own), &mask), "{of_fio:?}");
    }
    let priority = |calls: &[String]| {
        let found = calls.iter().find(|call| call.starts_with("ioprio_set") && call.contains("CLASS_BE, 6"));
        found.map(|call| call.rsplit_once("IOPRIO_PRIO_VALUE").unwrap().1.to_owned())
    };
    assert!(priority(&own).is_some() && priority(&own) == priority(&fio), "{fio:?} {own:?}");
}

fn fails(place: &BenchDir, text: &str, is_fio: bool) -> Option<String> {
    let (out, _) = traced(place, text, is_fio, "none")?;
    assert!(!out.status.success(), "it goes on: {text}");
    Some(String::from_utf8_lossy(&out.stderr).into_owned() + &String::from_utf8_lossy(&out.stdout))
}

#[test]
fn jobs_fail_where_they_fail_in_fio() {
    let Some(place) = BenchDir::new() else { return };
    let slow = "size=1m\nrw=read\nrate_iops=100\nthinktime=20000\ntime_based\nruntime=8\n";
    for (text, fio_says, own_says) in [
        (
            "[a]\nsize=1m\nrw=randread\ndirect=1\nmax_latency=1us\n".to_owned(),
            "max latency",
            "max_latency of 1 us is exceeded",
        ),
        (format!("[a]\n{slow}rate_iops_min=90\n"), "rate_min", "rate_iops_min=90 was not met"),
        (format!("[a]\n{slow}rate_min=300k\n"), "rate_min", "rate_min=307200 was not met"),
        ("[a]\nsize=1m\ncpus_allowed=4000\n".to_owned(), "cpus_allowed", "none of the processors [4000] can be used"),
    ] {
        let (Some(fio), Some(own)) = (fails(&place, &text, true), fails(&place, &text, false)) else { return };
        assert!(own.contains(own_says), "{text}: {own}");
        println!("fio: {}", fio.lines().find(|line| line.contains(fio_says)).unwrap_or(&fio));
    }
    // A rate above the minimum goes on to its end, in both.
    let enough = "[a]\nsize=1m\nrw=read\nrate_iops=100\nrate_iops_min=50\ntime_based\nruntime=4\n";
    for is_fio in [true, false] {
        let Some((out, _)) = traced(&place, enough, is_fio, "none") else { return };
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }
}

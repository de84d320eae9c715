//! Requests and times by task and device: the program's, those of the events that tracefs wrote, and the device's own.

use crate::stage::{Disk, Result, Stage, run as run_program};
use crate::trace_file::{self, Dump, TraceFile};
use crate::traced::{self, ByTask, Times};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const SECONDS: u64 = 8;
/// Requests, and a device's time, percent.
const MOST_OFF: f64 = 1.0;
/// Sum of the tasks beside the device's own counters, percent.
const MOST_OFF_DEVICE: f64 = 3.0;
/// Events and programs do not look at the clock at the same moment, which matters only on a fast disk: the kernel notes the
/// start of a request after it has called what is attached to block_io_start (`blk_account_io_start`, block/blk-mq.c).
const BETWEEN_US: f64 = 2.0;
/// The kernel adds a request to the device's counters this long after it has completed it.
const ACCOUNTED_LATER_US: f64 = 6.0;
/// Linux 6.18 does not call the programs of a tracepoint for a few events while another process attaches to it or detaches.
const ATTEMPTS: usize = 3;

/// A disk, and where it is mounted, if it is.
type Place = (Disk, Option<PathBuf>);

/// Where tasks work.
struct Scene {
    name: &'static str,
    make: fn(&mut Stage) -> Result<Place>,
    /// Names of tasks, and what they do; `PATH` is the mount point or the disk.
    loads: &'static [(&'static str, &'static str)],
    /// Options of fio.
    fio: &'static [&'static str],
}

const SCENES: [Scene; 4] = [
    Scene {
        name: "slow disk, directly",
        make: |stage| {
            let disk = stage.served_disk(256)?;
            stage.behave(&disk, "read=3 write=5 slots=4");
            Ok((disk, None))
        },
        loads: &[
            ("reader", "op=randread direct=1 path=PATH"),
            ("scanner", "op=read direct=1 bs=65536 threads=3 path=PATH"),
            ("writer", "op=randwrite direct=1 bs=8192 threads=2 mb=64 path=PATH"),
        ],
        fio: &["--ioengine=libaio", "--iodepth=4", "--rw=randrw", "--direct=1", "--bs=4k", "--filename=PATH"],
    },
    Scene { name: "slow disk, ext4", make: |stage| slow(stage, "ext4"), loads: FILE_LOADS, fio: FILE_FIO },
    Scene { name: "slow disk, xfs", make: |stage| slow(stage, "xfs"), loads: FILE_LOADS, fio: FILE_FIO },
    Scene {
        name: "disk in memory, ext4",
        make: |stage| {
            let (disk, at) = stage.fast("ext4", 512)?;
            stage.file(&at, "table", 64)?;
            Ok((disk, Some(at)))
        },
        loads: FILE_LOADS,
        fio: &[
            "--ioengine=io_uring",
            "--iodepth=8",
            "--rw=randread",
            "--direct=1",
            "--bs=4k",
            "--rate_iops=3000",
            "--filename=PATH/table",
        ],
    },
];

const FILE_LOADS: &[(&str, &str)] = &[
    ("reader", "op=randread direct=1 rate=1000 path=PATH/table"),
    ("journal", "op=write fsync=1 bs=4096 rate=40 mb=8 path=PATH/journal"),
    ("dump", "op=write fsync=64 bs=65536 rate=80 mb=32 path=PATH/dump"),
    ("ledger", "op=randwrite direct=1 dsync=1 rate=40 mb=8 path=PATH/ledger"),
];
const FILE_FIO: &[&str] =
    &["--ioengine=io_uring", "--iodepth=4", "--rw=randread", "--direct=1", "--bs=4k", "--filename=PATH/table"];

fn slow(stage: &mut Stage, fs: &str) -> Result<Place> {
    let (disk, at) = stage.served(fs, 512)?;
    stage.file(&at, "table", 64)?;
    stage.behave(&disk, "read=2 write=3 flush=8 slots=4");
    Ok((disk, Some(at)))
}

/// Runs all scenes; whether all agree.
pub fn run() -> bool {
    println!("| scene | task | requests: dump, program | time, ms: dump, program |");
    println!("|---|---|---|---|");
    let mut is_right = true;
    for scene in &SCENES {
        let mut why = Vec::new();
        for _ in 0..ATTEMPTS {
            match check(scene) {
                Err(skipped) => {
                    println!("skipped {}: {skipped}", scene.name);
                    why.clear();
                }
                Ok((rows, wrong)) => {
                    why = wrong;
                    rows.iter().for_each(|row| println!("{row}"));
                }
            }
            if why.is_empty() {
                break;
            }
            println!("again: {}", why.join("; "));
        }
        is_right &= why.is_empty();
    }
    is_right
}

/// What was counted in a scene.
struct Counted {
    dump: Dump,
    program: ByTask,
    /// Requests and ms of the device's own counters.
    device: (u64, u64),
    names: BTreeMap<u32, String>,
}

/// Returns the rows of the table, and what is wrong.
fn check(scene: &Scene) -> Result<(Vec<String>, Vec<String>)> {
    let counted = count(scene)?;
    let (mut rows, mut wrong) = (Vec::new(), Vec::new());
    let mut row = |name: &str, dump: Times, program: Times| {
        let counts = percent(program.requests as f64, dump.requests as f64);
        let times = percent(program.ms(), dump.ms());
        rows.push(format!(
            "| {} | {name} | {}, {} ({counts:+.2} %) | {:.1}, {:.1} ({times:+.2} %) |",
            scene.name,
            dump.requests,
            program.requests,
            dump.ms(),
            program.ms()
        ));
        if dump.requests.abs_diff(program.requests) > 1 && counts.abs() > MOST_OFF {
            wrong.push(format!("{name}: requests {counts:+.2} %"));
        }
        let slack_ms = 1.0 + BETWEEN_US * dump.requests as f64 / 1e3;
        if times.abs() > MOST_OFF && (program.ms() - dump.ms()).abs() > slack_ms {
            wrong.push(format!("{name}: time {times:+.2} %"));
        }
    };
    let keys: std::collections::BTreeSet<_> = counted.dump.tasks.keys().chain(counted.program.keys()).collect();
    let (mut dumped, mut programs) = (Times::default(), Times::default());
    for key in keys {
        let times = |all: &ByTask| all.get(key).copied().unwrap_or_default();
        let (dump, program) = (times(&counted.dump.tasks), times(&counted.program));
        dumped.add(dump);
        programs.add(program);
        let kind = format!("{:?}", key.1).to_lowercase();
        row(&format!("{} {kind}", counted.names.get(&key.0).map_or("?", |n| n)), dump, program);
    }
    row("all", dumped, programs);
    let own = Times { requests: counted.device.0, ns: counted.device.1 * 1_000_000 };
    let off = percent(programs.ms(), own.ms());
    rows.push(format!(
        "| {} | the device's own counters | {}, {} ({:+.2} %) | {:.0}, {:.1} ({off:+.2} %) |",
        scene.name,
        own.requests,
        programs.requests,
        percent(programs.requests as f64, own.requests as f64),
        own.ms(),
        programs.ms()
    ));
    // The counters are in ms, of each kind and CPU.
    let slack_ms = 4.0 + ACCOUNTED_LATER_US * programs.requests as f64 / 1e3;
    if off.abs() > MOST_OFF_DEVICE && (programs.ms() - own.ms()).abs() > slack_ms {
        wrong.push(format!("sum of the tasks: {off:+.2} % of the device's own time"));
    }
    if counted.dump.unmatched * 100 > dumped.requests {
        wrong.push(format!("{} ends without a start in the dump", counted.dump.unmatched));
    }
    Ok((rows, wrong))
}

fn percent(now: f64, before: f64) -> f64 {
    if now == before { 0.0 } else { (now / before - 1.0) * 100.0 }
}

fn count(scene: &Scene) -> Result<Counted> {
    let mut stage = Stage::new()?;
    let (disk, mount) = (scene.make)(&mut stage)?;
    let path = mount.map_or_else(|| disk.path.clone(), |at| at.to_string_lossy().into_owned());
    // udev looks at a new disk.
    std::thread::sleep(Duration::from_secs(1));
    run_program("sync", &[])?;
    // What is attached to a tracepoint runs in the order of attaching. The events look at the clock first, so that the time
    // the programs take at the end of a request is not in the events' times.
    let device = traced::device_id(&disk);
    let trace = TraceFile::start(device)?;
    let tracer = traced::load_tracer(false)?;
    let (before, own) = (traced::read_tasks(&tracer, device), device_counters(&disk));
    for (name, words) in scene.loads {
        stage.load(name, &words.replace("PATH", &path))?;
    }
    let fio = start_fio(scene.fio, &path)?;
    std::thread::sleep(Duration::from_secs(SECONDS));
    let processes = trace_file::processes_of_threads();
    let names = processes.values().map(|pid| (*pid, name_of(*pid))).collect();
    finish_fio(fio);
    stage.names().iter().for_each(|name| stage.end_load(name));
    run_program("sync", &[])?;
    std::thread::sleep(Duration::from_millis(500));
    let program = traced::since(&traced::read_tasks(&tracer, device), &before);
    let now = device_counters(&disk);
    let mut dump = trace_file::evaluate(&trace.finish()?);
    let mut by_process = ByTask::new();
    for ((thread, kind), times) in &dump.tasks {
        let process = processes.get(thread).copied().unwrap_or(*thread);
        by_process.entry((process, *kind)).or_default().add(*times);
    }
    dump.tasks = by_process;
    Ok(Counted { dump, program, device: (now.0 - own.0, now.1 - own.1), names })
}

fn name_of(pid: u32) -> String {
    let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    // A worker's name changes with what it works on.
    comm.trim().split(['/', '-']).next().unwrap_or_default().to_owned()
}

/// Requests and their ms: reads, writes, and flushes that the kernel issues for writes are in none of them.
fn device_counters(disk: &Disk) -> (u64, u64) {
    let text = std::fs::read_to_string(format!("/sys/block/{}/stat", disk.name)).expect("counters");
    let n: Vec<u64> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    (n[0] + n[4], n[3] + n[7])
}

/// A fio that ends by itself, after the others were started and before they are ended.
fn start_fio(options: &[&str], path: &str) -> Result<Child> {
    let mut command = Command::new("fio");
    command.args(["--name=fio", "--time_based", "--size=48M", "--randrepeat=1", "--output=/dev/null"]);
    command.arg(format!("--runtime={}", SECONDS + 1));
    command.args(options.iter().map(|option| option.replace("PATH", path)));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map_err(|err| format!("needs fio: {err}"))
}

fn finish_fio(mut fio: Child) {
    let _ = fio.wait();
}

//! The BPF task iterator compared with `/proc` on the running machine: tasks that did nothing meanwhile must agree.
//!
//! Needs root and BTF; skipped by name elsewhere.

use super::super::*;
use super::process_collector::ProcessCollector;
use crate::bpf::Tracer;
use crate::model::process::{TaskKey, TaskNames, TaskRaw};
use crate::model::reading::Reading;
use crate::root::Root;
use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;

/// Rows and names of one scan.
struct ScanResult {
    rows: HashMap<TaskKey, TaskRaw>,
    names: HashMap<TaskKey, Arc<TaskNames>>,
}

fn scan(collector: &mut ProcessCollector, threads: bool) -> ScanResult {
    let options = ScanOptions { threads, all_names: true, full_update: true, delays: true, ..ScanOptions::default() };
    match collector.scan(&options) {
        Reading::Ok(update) => {
            assert!(update.notes.iter().all(|note| !note.contains("iterator")), "{:?}", update.notes);
            let rows = update.changed.iter().map(|c| (c.raw.key, c.raw)).collect();
            ScanResult { rows, names: update.names.into_iter().collect() }
        }
        other => panic!("{other:?}"),
    }
}

/// Returns a tracer with the iterator loaded, or why there is none.
fn load_tracer() -> Result<Tracer, String> {
    let tracer = Tracer::new(&Root::live());
    tracer.start();
    wait_until_loaded(&tracer).map(|()| tracer)
}

pub(super) fn wait_until_loaded(tracer: &Tracer) -> Result<(), String> {
    loop {
        match tracer.tasks.read() {
            Reading::Ok(_) => return Ok(()),
            Reading::Absent(why) if why.contains("being loaded") => std::thread::yield_now(),
            other => return Err(format!("{:?}", other.map(|_| ()))),
        }
    }
}

/// A child process, killed when this is dropped.
struct TestProcess(Child);

impl TestProcess {
    fn spawn(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap())
    }

    fn send_line(&mut self, line: &str) {
        writeln!(self.0.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    fn wait_for_line(&mut self, line: &str) {
        let lines = BufReader::new(self.0.stdout.as_mut().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|l| l.ends_with(line)), "it ended");
    }

    /// Waits until all its threads sleep, one of them on its standard input.
    fn wait_until_asleep(&self) {
        let tasks = Root::live().proc(&format!("{}/task", self.0.id()));
        let sleeps = |task: std::io::Result<std::fs::DirEntry>| {
            let stat = std::fs::read(task.unwrap().path().join("stat")).unwrap();
            crate::parse::task::stat(&stat).unwrap().state == b'S'
        };
        while !std::fs::read_dir(&tasks).unwrap().all(sleeps) {
            std::thread::yield_now();
        }
    }

    fn key(&self, reported: &ScanResult) -> TaskKey {
        *reported.rows.keys().find(|key| key.tid == self.0.id()).expect("it has a row")
    }
}

impl Drop for TestProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs as a child of another test: writes from threads that exit, then stays with three that wait.
#[test]
fn run_as_process_with_many_threads() {
    let Some(dir) = std::env::var_os("TEST_PROCESS_DIR") else { return };
    let write = |n: usize| std::fs::write(Path::new(&dir).join(n.to_string()), vec![1; 8192 * n]).unwrap();
    std::thread::scope(|scope| {
        for n in 1..=3 {
            scope.spawn(move || write(n)).join().unwrap();
        }
        let (tell, reported) = channel();
        for n in 4..=6 {
            let tell = tell.clone();
            scope.spawn(move || {
                write(n);
                tell.send(()).unwrap();
                loop {
                    std::thread::park();
                }
            });
        }
        (4..=6).for_each(|_| reported.recv().unwrap());
        println!("\nready");
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).unwrap();
        std::process::exit(0);
    });
}

fn spawn_many_threads(dir: &Path) -> TestProcess {
    let module = module_path!().split_once("::").unwrap().1;
    let test = format!("{module}::run_as_process_with_many_threads");
    let mut subject = TestProcess::spawn(
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &test, "--nocapture", "--test-threads", "1"])
            .env("TEST_PROCESS_DIR", dir),
    );
    subject.wait_for_line("ready");
    subject.wait_until_asleep();
    subject
}

/// Starts a program with a name that could forge a line of `stat`.
fn spawn_hostile_name(dir: &Path) -> TestProcess {
    let path = dir.join(") R 1 (\n\x1b[2J");
    let cat = ["/bin/cat", "/usr/bin/cat"].into_iter().find(|p| Path::new(p).exists()).unwrap();
    std::fs::copy(cat, &path).unwrap();
    let subject = TestProcess::spawn(&mut Command::new(&path));
    subject.wait_until_asleep();
    subject
}

/// What the kernel may hold back of a page count: percpu_counter_batch per CPU.
fn percpu_counter_lag() -> u64 {
    let cpus = std::thread::available_parallelism().unwrap().get() as u64;
    let counters = 3;
    counters * cpus * (2 * cpus).max(32) * rustix::param::page_size() as u64
}

/// Compares the values that files showed both before and after; returns how many are alike, and which are not.
fn compare_unchanged(
    before: &TaskRaw,
    reported: &TaskRaw,
    after: &TaskRaw,
    is_own_child: bool,
) -> (usize, Vec<&'static str>) {
    let (mut alike, mut different) = (0, Vec::new());
    let mut compare = |name, is_alike| if is_alike { alike += 1 } else { different.push(name) };
    macro_rules! same {
        ($($field:ident)*) => {$(
            if before.$field == after.$field {
                compare(stringify!($field), reported.$field == before.$field);
            }
        )*};
    }
    same!(key kernel_thread ioprio ppid uid majflt io);
    // In others a thread can end and another one start in between.
    if is_own_child {
        same!(num_threads);
    }
    // A task can wake up before it is given a CPU.
    let slept = before.timeslices == after.timeslices && !matches!(before.state, b'R' | b'D');
    if slept {
        same!(comm state);
    }
    // The run count of a process is that of its main thread: others may have run meanwhile.
    if slept && (before.num_threads == 1 || is_own_child) {
        compare("delays", reported.delays == before.delays);
        compare("cpu_ticks", reported.cpu_ticks.abs_diff(before.cpu_ticks) <= 1);
        compare("rss_bytes", reported.rss_bytes.abs_diff(before.rss_bytes) <= percpu_counter_lag());
        let swap = |raw: &TaskRaw| raw.swap_bytes.unwrap_or(0);
        compare("swap_bytes", swap(reported).abs_diff(swap(before)) <= percpu_counter_lag());
    }
    (alike, different)
}

/// Each task as files show it, as the iterator reports it, and as files show it then.
struct Comparison([ScanResult; 3]);

impl Comparison {
    fn make(tracer: &Tracer, threads: bool) -> Self {
        let root = Root::live();
        let before = scan(&mut ProcessCollector::new(&root), threads);
        let mut traced = ProcessCollector::with_tracer(&root, tracer);
        let reported = scan(&mut traced, threads);
        assert!(traced.threads.tasks_from_iter() * 2 > reported.rows.len(), "by files");
        let after = scan(&mut ProcessCollector::new(&root), threads);
        Self([before, reported, after])
    }

    /// What differs of tasks that are not this test's, with how many values are alike.
    fn compare_others(&self) -> (usize, HashSet<(TaskKey, &'static str)>) {
        let [before, reported, after] = &self.0;
        let (mut alike, mut different) = (0, HashSet::new());
        // Other tests of this process start and end threads.
        for (key, before) in before.rows.iter().filter(|(key, _)| key.pid != std::process::id()) {
            match (reported.rows.get(key), after.rows.get(key)) {
                (_, None) => {}
                (None, Some(_)) => drop(different.insert((*key, "the whole row"))),
                (Some(reported), Some(after)) => {
                    let (n, fields) = compare_unchanged(before, reported, after, false);
                    alike += n;
                    different.extend(fields.into_iter().map(|field| (*key, field)));
                }
            }
        }
        (alike, different)
    }
}

#[test]
fn the_iterator_agrees_with_proc_files() {
    let tracer = match load_tracer() {
        Ok(tracer) => tracer,
        Err(why) => return println!("skipped the_iterator_tells_what_the_files_tell: {why}"),
    };
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let subjects = [
        spawn_many_threads(dir.path()),
        spawn_hostile_name(dir.path()),
        TestProcess::spawn(Command::new("true").arg("zombie")),
    ];
    rustix::process::waitid(
        rustix::process::WaitId::Pid(rustix::process::Pid::from_child(&subjects[2].0)),
        rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT,
    )
    .unwrap();
    for threads in [false, true] {
        let first = Comparison::make(&tracer, threads);
        let [before, reported, after] = &first.0;
        for subject in &subjects {
            let key = subject.key(before);
            let rows = [&before.rows[&key], &reported.rows[&key], &after.rows[&key]];
            assert_eq!(compare_unchanged(rows[0], rows[1], rows[2], true), (14, Vec::new()), "{rows:#?}");
            assert_eq!(reported.names.get(&key), before.names.get(&key), "names of {key:?}");
        }
        let [many, hostile, zombie] = subjects.each_ref().map(|s| &reported.rows[&s.key(reported)]);
        let written = many.io.bytes().unwrap().write;
        assert!(threads || written >= (1..=6).map(|n| 8192 * n).sum(), "{written}");
        assert_eq!((hostile.comm(), zombie.state), (&b") R 1 (\n\x1b[2J"[..], b'Z'));

        // Another task can change and change back between two readings; what is read wrongly differs each time.
        let (alike, mut different) = first.compare_others();
        for _ in 0..5 {
            if different.is_empty() {
                break;
            }
            let again = Comparison::make(&tracer, threads).compare_others().1;
            different.retain(|wrong| again.contains(wrong));
        }
        assert!(different.is_empty(), "{different:?}");
        println!("threads {threads}: {alike} figures of {} tasks alike", before.rows.len());
    }
}

/// Returns the kernel threads as shown by files.
fn kernel_threads() -> HashMap<TaskKey, TaskRaw> {
    let mut rows = scan(&mut ProcessCollector::new(&Root::live()), false).rows;
    rows.retain(|_, raw| raw.kernel_thread);
    rows
}

#[test]
fn kernel_threads_stay_correct_from_scan_to_scan() {
    let name = "kernel_threads_stay_correct_from_scan_to_scan";
    let tracer = match load_tracer() {
        Ok(tracer) => tracer,
        Err(why) => return println!("skipped {name}: {why}"),
    };
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let mut traced = ProcessCollector::with_tracer(&Root::live(), &tracer);
    let mut reported = scan(&mut traced, false).rows;
    let (mut compared, mut ran) = (0, 0);
    for round in 0..12 {
        // Makes some kernel threads work.
        let mut file = std::fs::File::create(dir.path().join("f")).unwrap();
        file.write_all(&[round; 8192]).unwrap();
        file.sync_all().unwrap();
        let before = kernel_threads();
        let options = ScanOptions { delays: true, ..ScanOptions::default() };
        let Reading::Ok(update) = traced.scan(&options) else { panic!("the scan failed") };
        for key in &update.exited {
            reported.remove(key);
        }
        reported.extend(update.changed.iter().map(|c| (c.raw.key, c.raw)));
        ran += update.changed.iter().filter(|c| c.raw.kernel_thread).count();
        let after = kernel_threads();
        for (key, before) in &before {
            let Some(after) = after.get(key) else { continue };
            let reported = reported.get(key).unwrap_or_else(|| panic!("no {before:?}"));
            let (alike, different) = compare_unchanged(before, reported, after, true);
            assert!(different.is_empty(), "{different:?}: {before:?}\n{reported:?}");
            compared += alike;
        }
    }
    assert!(ran > 0 && compared > 0, "{ran} {compared}");
    println!("{compared} figures alike, {ran} changes");
}

/// Returns where cgroup v2 is mounted.
fn cgroup2_mount() -> Option<PathBuf> {
    let mounts = std::fs::read_to_string(Root::live().proc("self/mounts")).unwrap();
    let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    mounts.find(|words| words[2] == "cgroup2").map(|words| words[1].into())
}

#[test]
fn the_iterator_detects_exec_and_cgroup_moves() {
    let name = "another_program_or_group_is_noticed_by_the_iterator";
    let tracer = match load_tracer() {
        Ok(tracer) => tracer,
        Err(why) => return println!("skipped {name}: {why}"),
    };
    let mut traced = ProcessCollector::with_tracer(&Root::live(), &tracer);
    let mut shell = TestProcess::spawn(Command::new("sh").args(["-s", "first"]));
    shell.send_line("echo ready");
    shell.wait_for_line("ready");
    let reported = scan(&mut traced, false);
    let key = shell.key(&reported);
    assert_eq!(reported.names[&key].cmdline.as_deref(), Some(&b"sh -s first"[..]));
    // Same name, same pid: only the kernel's exec counter differs.
    shell.send_line("exec sh -s second");
    let cmdline = Root::live().proc(&format!("{}/cmdline", shell.0.id()));
    while std::fs::read(&cmdline).unwrap() != b"sh\0-s\0second\0" {
        std::thread::yield_now();
    }
    shell.send_line("echo again");
    shell.wait_for_line("again");
    assert_eq!(scan(&mut traced, false).names[&key].cmdline.as_deref(), Some(&b"sh -s second"[..]));

    let Some(group) = cgroup2_mount().map(|dir| dir.join(format!("iotop-plus-test-{}", std::process::id()))) else {
        return println!("skipped the second part of {name}: control groups of version 2 are not mounted");
    };
    if let Err(err) = std::fs::create_dir(&group) {
        return println!("skipped the second part of {name}: {}: {err}", group.display());
    }
    let moved = std::fs::write(group.join("cgroup.procs"), shell.0.id().to_string());
    let names = scan(&mut traced, false).names;
    drop(shell);
    while std::fs::remove_dir(&group).is_err_and(|err| err.raw_os_error() == Some(libc::EBUSY)) {
        std::thread::yield_now();
    }
    match moved {
        Ok(()) => assert_eq!(&*names[&key].cgroup, format!("/iotop-plus-test-{}", std::process::id())),
        Err(err) => println!("skipped the second part of {name}: {err}"),
    }
}

#[test]
fn files_are_read_when_tracing_is_disabled() {
    let tracer = Tracer::new(&Root::live());
    tracer.disable();
    let mut collector = ProcessCollector::with_tracer(&Root::live(), &tracer);
    let reported = scan(&mut collector, false);
    assert!(reported.rows.keys().any(|key| key.pid == std::process::id()));
    assert_eq!(collector.threads.tasks_from_iter(), 0);
}

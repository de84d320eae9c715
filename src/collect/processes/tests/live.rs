//! Scans of the running machine, with child processes.

use super::super::activity_filter::ActivityFilter;
use super::super::task_scanner::TaskScanner;
use super::super::*;
use super::process_collector::ProcessCollector;
use crate::model::process::ProcessTable;
use crate::model::process::ProcessUpdate;
use crate::model::reading::Reading;
use crate::root::Root;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

fn scan(collector: &mut ProcessCollector, options: &ScanOptions) -> ProcessUpdate {
    match collector.scan(options) {
        Reading::Ok(update) => update,
        other => panic!("{other:?}"),
    }
}

/// A shell that runs one line of standard input at a time and answers each with a line.
struct Shell(Child, BufReader<std::process::ChildStdout>);

impl Shell {
    fn new() -> Self {
        let mut child = Command::new("sh").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self(child, out)
    }

    fn run(&mut self, line: &str) {
        writeln!(self.0.stdin.as_mut().unwrap(), "{line}; echo done").unwrap();
        let mut answer = String::new();
        self.1.read_line(&mut answer).unwrap();
        assert_eq!(answer, "done\n");
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.1.read_to_end(&mut Vec::new());
        let _ = self.0.wait();
    }
}

fn collectors() -> [ProcessCollector; 2] {
    [
        ProcessCollector::new(&Root::live()),
        ProcessCollector::from_scanner(TaskScanner::with_filter(&Root::live(), ActivityFilter::new(false))),
    ]
}

#[test]
fn written_bytes_match_the_kernel() {
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    for mut collector in collectors() {
        let mut shell = Shell::new();
        let pid = shell.0.id();
        let mut table = ProcessTable::new();
        table.apply(&scan(&mut collector, &ScanOptions::default()));
        let row = table.iter().find(|row| row.pid() == pid).expect("the child is there").key();
        let before = table.get(&row).unwrap().raw.io.bytes().map(|b| b.write);
        let Some(before) = before else {
            eprintln!("skipped: io of a child is not readable here");
            return;
        };
        // The shell itself writes: a child of it would add its counters when it exits.
        let file = dir.path().join("f");
        shell.run(&format!("printf %65536s x > {}", file.display()));
        table.apply(&scan(&mut collector, &ScanOptions::default()));
        let after = table.get(&row).unwrap();
        if after.raw.io.bytes().map(|b| b.write) == Some(before) {
            eprintln!("skipped: the file system of {} counts no writes", dir.path().display());
            return;
        }
        // Directory and bitmap pages may be added to the 65,536 bytes: `io` is the reference.
        let io = std::fs::read(Root::live().proc(&format!("{pid}/io"))).unwrap();
        let kernel = crate::parse::task::io(&io).unwrap();
        assert_eq!(after.raw.io.bytes().map(|b| b.write), Some(kernel.write));
        assert_eq!(after.accumulated().unwrap().write, kernel.write - before);
        assert!((65_536..65_536 + 32_768).contains(&(kernel.write - before)));
        assert!(after.rates().write_bytes_per_s.unwrap() > 0.0);
        table.apply(&scan(&mut collector, &ScanOptions::default()));
        assert_eq!(table.get(&row).unwrap().rates().write_bytes_per_s, Some(0.0));
    }
}

#[test]
fn a_child_process_appears_and_exits() {
    for mut collector in collectors() {
        let mut table = ProcessTable::new();
        // With very many processes, names would otherwise be complete only after several scans.
        let options = ScanOptions { all_names: true, ..ScanOptions::default() };
        table.apply(&scan(&mut collector, &options));
        let mut shell = Shell::new();
        shell.run(":");
        let pid = shell.0.id();
        table.apply(&scan(&mut collector, &options));
        let row = table.iter().find(|row| row.pid() == pid).expect("seen in the next scan");
        assert_eq!((&*row.comm(), row.command().map(|c| c.to_string()).as_deref()), ("sh", Some("sh")));
        assert_eq!(row.raw.ppid, std::process::id());
        assert!(row.ionice().is_some());
        let key = row.key();
        assert!(
            row.raw.io.bytes().map(|b| b.read).is_none() || row.rates().read_bytes_per_s.is_some(),
            "born since: has a rate"
        );
        drop(shell);
        table.apply(&scan(&mut collector, &options));
        assert!(table.get(&key).unwrap().has_exited());
        table.apply(&scan(&mut collector, &ScanOptions::default()));
        assert!(table.get(&key).is_none());
    }
}

#[test]
fn own_threads_have_rows() {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = std::thread::Builder::new().name("row-of-mine".into());
    let thread = thread.spawn(move || {
        sender.send(rustix::thread::gettid().as_raw_nonzero().get() as u32).unwrap();
        let _ = wait.recv();
    });
    let tid = receiver.recv().unwrap();
    for mut collector in collectors() {
        let update = scan(&mut collector, &ScanOptions { threads: true, ..ScanOptions::default() });
        let mut table = ProcessTable::new();
        table.apply(&update);
        let row = table.iter().find(|row| row.tid() == tid).expect("the thread is a row");
        assert_eq!((&*row.comm(), row.pid()), ("row-of-mine", std::process::id()));
    }
    drop(go);
    thread.unwrap().join().unwrap();
}

#[test]
fn kernel_threads_are_recognised() {
    let update = scan(&mut ProcessCollector::new(&Root::live()), &ScanOptions::default());
    let own = update.changed.iter().find(|c| c.raw.key.pid == std::process::id()).unwrap();
    assert!(!own.raw.kernel_thread);
    match update.changed.iter().find(|c| c.raw.comm() == b"kthreadd") {
        Some(kthreadd) => assert!(kthreadd.raw.kernel_thread && kthreadd.raw.swap_bytes.is_none()),
        None => eprintln!("skipped: no kernel threads in this pid namespace"),
    }
}

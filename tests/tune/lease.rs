//! Expired leases, closed terminals, and privileges.

use crate::machine::{BIN, LiveMachine, output_text, read_knob, read_vm_knobs, write_knob, write_knobs};
use iotop_plus::root::Root;
use iotop_plus::tuning::protocol::{TunerReply, TunerRequest};
use iotop_plus::tuning::tuner_client::LeaseHandle;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::TryRecvError;

/// Waits for the process that `set` named; a lease of 1 s must end within 6 s.
fn wait_for_tuner(said: &str) {
    let pid = tuner_pid(said);
    // It may have exited already.
    let Ok(fd) = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()) else { return };
    let within = Timespec { tv_sec: 6, tv_nsec: 0 };
    let ended = poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&within)).unwrap();
    assert_eq!(ended, 1, "the tuner lives 5 s after the end of its lease");
}

#[test]
fn an_expired_lease_restores_unless_kept() {
    let Some(m) = LiveMachine::acquire("a_lease_that_runs_out_restores_unless_kept") else { return };
    let (was, new) = (read_knob("page-cluster"), if read_knob("page-cluster") == "2" { "1" } else { "2" });
    let said = output_text(&m.tune(&["set", "--for", "1s", &format!("vm.page-cluster={new}")]));
    assert_eq!(read_knob("page-cluster"), new);
    wait_for_tuner(&said);
    assert_eq!(read_knob("page-cluster"), was);

    let said = output_text(&m.tune(&["set", "--for", "1h", &format!("vm.page-cluster={new}")]));
    let kept = m.tune(&["keep"]);
    assert_eq!(kept.status.code(), Some(0), "{}", output_text(&kept));
    wait_for_tuner(&said);
    assert_eq!(read_knob("page-cluster"), new, "kept");
    assert!(output_text(&m.tune(&["status", "vm.page-cluster"])).contains("stays until the boot"));
    let undone = m.tune(&["undo"]);
    assert_eq!(read_knob("page-cluster"), was, "{}", output_text(&undone));
    assert!(output_text(&m.tune(&["status", "vm.page-cluster"])).contains("No change of this boot stands"));
}

/// The process id that `set` names.
fn tuner_pid(said: &str) -> i32 {
    let at = said.find("(process ").unwrap_or_else(|| panic!("{said}")) + "(process ".len();
    said[at..].split_ascii_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn the_tuner_has_a_session_and_closes_inherited_descriptors() {
    let test = "the_tuner_has_a_session_and_closes_inherited_descriptors";
    let Some(m) = LiveMachine::acquire(test) else { return };
    let inherited = m.dir.path().join("inherited");
    let new = if read_knob("page-cluster") == "2" { "1" } else { "2" };
    let set = Command::new("sh")
        .args(["-c", "exec 9>\"$1\"; shift; exec \"$@\"", "sh"])
        .args([inherited.as_os_str(), BIN.as_ref(), "--root".as_ref(), m.dir.path().as_os_str()])
        .args(["tune", "set", "--for", "1h", &format!("vm.page-cluster={new}")])
        .output()
        .unwrap();
    let pid = tuner_pid(&output_text(&set));
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let open: Vec<_> = open.filter_map(|fd| std::fs::read_link(fd.path()).ok()).collect();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let undone = output_text(&m.tune(&["undo"]));
    assert!(!open.is_empty() && !open.contains(&inherited), "{open:?}\n{undone}");
    // Its session, and no terminal.
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().collect();
    assert_eq!(fields[3..5], [&pid.to_string(), "0"], "{stat}");
}

#[test]
fn the_tuner_obeys_renew_keep_undo_signals_and_a_closed_pipe() {
    let Some(m) = LiveMachine::acquire("a_screen_renews_keeps_or_goes_away") else { return };
    let root = Root::at(m.dir.path());
    let start = || {
        let words = vec!["vm.page-cluster=2".to_owned()];
        let (held, reply) = LeaseHandle::start(Path::new(BIN), &root, words, Some(2)).unwrap();
        assert!(matches!(reply, TunerReply::Applied { .. }), "{reply:?}");
        assert_eq!(read_knob("page-cluster"), "2");
        let ended = pidfd_open(Pid::from_raw(held.pid() as i32).unwrap(), PidfdFlags::empty()).unwrap();
        (held, ended)
    };
    let over = |fd: &OwnedFd| {
        let within = Timespec { tv_sec: 6, tv_nsec: 0 };
        assert_eq!(poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&within)).unwrap(), 1);
    };
    let (mut held, ended) = start();
    assert!(matches!(
        held.request(&TunerRequest::Renew { secs: 500 }).unwrap(),
        TunerReply::TimeLeft { secs: 490..=500 }
    ));
    assert!(matches!(held.request(&TunerRequest::Status).unwrap(), TunerReply::TimeLeft { secs: 490..=500 }));
    assert!(matches!(
        held.request(&TunerRequest::Set { assignments: vec![], lease_secs: None }).unwrap(),
        TunerReply::Error(_)
    ));
    drop(held);
    over(&ended);
    assert_eq!(read_vm_knobs(), m.saved, "gone without a word");

    let (mut held, ended) = start();
    assert!(matches!(held.request(&TunerRequest::Undo).unwrap(), TunerReply::Restored(all) if all.len() == 1));
    over(&ended);
    assert_eq!(read_vm_knobs(), m.saved);

    let (held, ended) = start();
    rustix::process::kill_process(Pid::from_raw(held.pid() as i32).unwrap(), Signal::TERM).unwrap();
    over(&ended);
    assert_eq!(read_vm_knobs(), m.saved, "told to end, it takes the change back first");

    let (held, ended) = start();
    over(&ended);
    assert_eq!(read_vm_knobs(), m.saved, "a screen nobody looks at");
    // Its last message may still be on its way when it exits.
    let said = std::iter::repeat_with(|| held.poll_reply()).find(|said| *said != Err(TryRecvError::Empty));
    assert!(matches!(said, Some(Ok(TunerReply::Restored(_)))), "{said:?}");

    let (mut held, ended) = start();
    assert_eq!(held.request(&TunerRequest::Keep).unwrap(), TunerReply::Kept);
    over(&ended);
    drop(held);
    assert_eq!(read_knob("page-cluster"), "2");
}

#[test]
fn an_admins_edit_during_a_lease_survives_its_expiry() {
    let Some(m) = LiveMachine::acquire("an_admins_edit_during_a_lease_survives_its_end") else { return };
    let said = output_text(&m.tune(&["set", "--for", "1s", "vm.page-cluster=2"]));
    write_knob("page-cluster", "1");
    wait_for_tuner(&said);
    let stands = read_knob("page-cluster");
    write_knobs(&m.saved);
    assert_eq!(stands, "1");
    assert!(std::fs::read_to_string(m.journal()).unwrap().contains("Conflict"));
}

/// Whether a tuner answers that it restores while another process holds the lock, which this holds until it has restored.
fn answers_while_it_cannot_restore(m: &LiveMachine) -> bool {
    let said = output_text(&m.tune(&["set", "--for", "1s", "vm.page-cluster=2"]));
    let lock = std::fs::File::open(m.dir.path().join("run/iotop-plus/lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1300));
    let renewed = output_text(&m.tune(&["renew", "--for", "1s"]));
    let start = std::time::Instant::now();
    while read_knob("page-cluster") == "2" {
        assert!(start.elapsed() < std::time::Duration::from_secs(60), "not restored: {said}{renewed}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    wait_for_tuner(&said);
    renewed.contains("the old values are being restored")
}

#[test]
fn a_tuner_answers_while_it_cannot_restore_and_restores_without_the_lock_in_the_end() {
    let Some(m) = LiveMachine::acquire("a_tuner_answers_while_it_cannot_restore") else { return };
    // On a busy machine it may have restored before it is asked.
    assert!((0..5).any(|_| answers_while_it_cannot_restore(&m)));
    assert_eq!(read_vm_knobs(), m.saved);
}

#[test]
fn a_lease_survives_its_closed_terminal_and_still_expires() {
    let Some(m) = LiveMachine::acquire("a_closed_terminal_does_not_end_the_promise") else { return };
    let pair = portable_pty::native_pty_system().openpty(portable_pty::PtySize::default()).unwrap();
    let mut command = portable_pty::CommandBuilder::new(BIN);
    command.arg("--root");
    command.arg(m.dir.path());
    command.args(["tune", "set", "--for", "1s", "vm.page-cluster=2"]);
    let mut child = pair.slave.spawn_command(command).unwrap();
    drop(pair.slave);
    let mut reader = pair.master.try_clone_reader().unwrap();
    let mut said = Vec::new();
    let mut buf = [0; 1024];
    while !String::from_utf8_lossy(&said).contains("tune undo") {
        let n = std::io::Read::read(&mut reader, &mut buf).unwrap();
        assert!(n > 0, "{}", String::from_utf8_lossy(&said));
        said.extend_from_slice(&buf[..n]);
    }
    // Closing the terminal sends SIGHUP to its session.
    drop(reader);
    drop(pair.master);
    let _ = child.wait();
    assert_eq!(read_knob("page-cluster"), "2", "on lease");
    wait_for_tuner(&String::from_utf8_lossy(&said));
    assert_eq!(read_vm_knobs(), m.saved);
}

#[test]
fn a_dry_run_and_invalid_input_change_nothing() {
    let Some(m) = LiveMachine::acquire("a_dry_run_and_wrong_input_change_nothing") else { return };
    let dry = m.tune(&["set", "--dry-run", "vm.swappiness=61", "vm.dirty_bytes=3G", "vm.min_free_kbytes=100M"]);
    assert_eq!(dry.status.code(), Some(0), "{}", output_text(&dry));
    assert!(output_text(&dry).contains("nothing was changed"));
    for bad in ["vm.swappiness=201", "vm.dirty_ratio=0", "vm.bogus=1", "vm.dirty_bytes=1e9", "vm.page-cluster=x"] {
        let got = m.tune(&["set", "vm.vfs_cache_pressure=101", bad]);
        assert_eq!(got.status.code(), Some(2), "{bad}: {}", output_text(&got));
        assert_eq!(read_vm_knobs(), m.saved, "{bad}");
    }
    assert!(!m.dir.path().join("run/iotop-plus").exists(), "not even a journal");
}

/// The first two words of each line: what follows depends on how much memory is dirtyable at that moment.
fn names_and_values(list: &[u8]) -> Vec<[String; 2]> {
    let words = |line: &str| {
        let mut words = line.split_ascii_whitespace().map(str::to_owned);
        std::array::from_fn(|_| words.next().unwrap_or_default())
    };
    String::from_utf8_lossy(list).lines().map(words).collect()
}

#[test]
fn an_unprivileged_user_can_read_but_not_write() {
    let Some(m) = LiveMachine::acquire("nobody_reads_everything_and_writes_nothing") else { return };
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = dir.path().join("iotop-plus");
    std::fs::copy(BIN, &program).unwrap();
    let run = |args: &[&str]| Command::new(&program).arg("tune").args(args).uid(65534).gid(65534).output().unwrap();
    let list = run(&["list", "vm."]);
    assert_eq!(list.status.code(), Some(0));
    let by_root = Command::new(BIN).args(["tune", "list", "vm."]).output().unwrap();
    assert_eq!(names_and_values(&list.stdout), names_and_values(&by_root.stdout));
    assert_eq!(run(&["status"]).status.code(), Some(0));
    assert_eq!(run(&["set", "--dry-run", "vm.swappiness=61"]).status.code(), Some(0));
    for args in [vec!["set", "vm.swappiness=61"], vec!["persist", "vm.swappiness"], vec!["undo"], vec!["keep"]] {
        let got = run(&args);
        assert_eq!(got.status.code(), Some(4), "{args:?}: {}", output_text(&got));
        let line = format!("sudo {} tune {}\n", program.display(), args.join(" "));
        assert!(output_text(&got).contains(&line), "{}", output_text(&got));
    }
    assert_eq!(run(&["set", "vm.swappiness=999"]).status.code(), Some(2), "wrong is wrong for everybody");
    assert_eq!(read_vm_knobs(), m.saved);
}

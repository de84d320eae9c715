//! Servers of network file systems that do not answer, as the kernel log says.

use super::firing::{FiringCase, firing_case};
use super::quiet::QuietCase;
use super::test_machine::*;
use crate::doctor::RuleEngine;
use crate::doctor::finding::Severity::{Critical, Warn};
use crate::model::network::NetFsRaw;
use crate::model::reading::Reading;
use crate::model::sample::Sample;
use crate::model::slow_facts::TaskWait;

const SILENT: &str = "nfs: server nas not responding, still trying";
const TIMED_OUT: &str = "nfs: server nas not responding, timed out";
const ANSWERS: &str = "nfs: server nas OK";

fn say(machine: &mut TestMachine, messages: &[&str]) {
    machine.idle_ticks(2);
    for message in messages {
        machine.kernel_message(message);
    }
}

/// Mounts that directory of that server, this long ago.
fn set_mounts(machine: &mut TestMachine, mounts: &[(&str, &str, u64)]) {
    let mount = |(server, point, age): &(&str, &str, u64)| NetFsRaw {
        server: (*server).into(),
        mount: (*point).into(),
        age_s: Some(*age),
        ..NetFsRaw::default()
    };
    let netfs = Reading::Ok(mounts.iter().map(mount).collect());
    machine.system.last_sample = Some(Sample { netfs, ..Sample::default() });
}

pub const FIRING: &[FiringCase] = &[
    firing_case(
        "server-silent",
        "of a hard mount, for an hour",
        Warn,
        "the NFS server nas does not answer: nfs: server nas not responding, still trying",
        |m| {
            say(m, &[ANSWERS, SILENT]);
            m.skip_secs(3600).idle_ticks(2);
            set_mounts(m, &[("nas:/export", "/mnt/nas", 90_000), ("other:/export", "/mnt/other", 90_000)]);
        },
    ),
    firing_case("server-silent", "of a soft mount", Warn, "the NFS server nas does not answer", |m| {
        say(m, &[TIMED_OUT]);
    }),
    firing_case("server-silent", "of an SMB share", Warn, "the SMB server nas does not answer", |m| {
        say(m, &[r"CIFS: VFS: \\nas has not responded in 180 seconds. Reconnecting..."]);
    }),
    firing_case("server-silent", "of Ceph", Warn, "the Ceph server osd3 does not answer: libceph: osd3 down", |m| {
        say(m, &["libceph: osd3 up", "libceph: osd3 down"]);
    }),
    firing_case(
        "server-silent",
        "a program waits for it",
        Critical,
        "the NFS server nas does not answer, 1 task waits for it: nfs: server nas not",
        |m| {
            m.add_hung_task(930, "shop", "rpc_wait_bit_killable", 10);
            m.kernel_message(SILENT);
        },
    ),
];

pub const QUIET: &[QuietCase] = &[
    QuietCase::new("server-silent", "it answers again", |m| say(m, &[SILENT, ANSWERS])),
    QuietCase::new("server-silent", "a daemon of Ceph is up again", |m| {
        say(m, &["libceph: osd3 down", "libceph: osd3 up"]);
    }),
    QuietCase::new("server-silent", "calls failed an hour ago", |m| {
        say(m, &[TIMED_OUT]);
        m.skip_secs(3600).idle_ticks(2);
    }),
    QuietCase::new("server-silent", "its mount is gone", |m| {
        say(m, &[SILENT]);
        set_mounts(m, &[("other:/export", "/mnt/other", 90_000)]);
    }),
    QuietCase::new("server-silent", "mounted since the message", |m| {
        say(m, &[SILENT]);
        m.skip_secs(100).idle_ticks(2);
        set_mounts(m, &[("nas:/export", "/mnt/nas", 50)]);
    }),
    QuietCase::new("server-silent", "it is slow, which network-slow reports", |m| {
        say(m, &["nfs: server server not responding, still trying"]);
        m.ticks(8, |t| set_network_mount(t, 1.0, None, |fs| fs.rtt_ms = Some(90.0)));
    }),
    QuietCase::new("server-silent", "no kernel log", |m| {
        m.idle_ticks(2);
        m.system.kernel_log_status = Reading::Denied("/dev/kmsg: operation not permitted".into());
    })
    .unavailable(),
];

#[test]
fn a_silent_server_is_the_cause_of_the_tasks_that_hang_on_it() {
    let mut machine = TestMachine::new();
    let key = machine.add_hung_task(930, "shop", "folio_wait_bit_common", 10);
    machine.kernel_message(SILENT).kernel_message("nfs: server other not responding, still trying");
    let is_waiting = |machine: &TestMachine| {
        let found = machine.evaluate_rule("server-silent").0;
        found.into_iter().map(|f| (f.subject.name(), f.victims.len())).collect::<Vec<_>>()
    };
    assert_eq!(is_waiting(&machine), [("other".into(), 0), ("nas".into(), 0)], "its file is not known");
    set_mounts(&mut machine, &[("nas:/e", "/mnt/nas", 90_000), ("other:/e", "/mnt/other", 90_000)]);
    machine.change_facts(|facts| facts.waits.push(TaskWait { key, mount_id: 5, path: "/mnt/nas/table".into() }));
    assert_eq!(is_waiting(&machine), [("other".into(), 0), ("nas".into(), 1)]);
    let mut engine = RuleEngine::default();
    engine.evaluate(&machine.system);
    let rules: Vec<Vec<_>> = engine.incidents.iter().map(|i| i.findings.iter().map(|f| f.rule).collect()).collect();
    assert_eq!(rules, [vec!["server-silent", "hung-task"], vec!["server-silent"]]);
}

#[test]
fn a_server_that_is_silent_again_is_so_since_its_last_answer() {
    let mut machine = TestMachine::new();
    say(&mut machine, &[SILENT]);
    machine.skip_secs(100).idle_ticks(1);
    let answered_ns = machine.now().boot_ns;
    machine.kernel_message(ANSWERS).skip_secs(100).idle_ticks(1);
    machine.kernel_message(SILENT);
    let found = machine.evaluate_rule("server-silent").0.remove(0);
    assert_eq!(found.since_ns, Some(answered_ns));
    assert_eq!(found.last_seen_ns, None, "a hard mount waits");
}

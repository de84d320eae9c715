//! Tests of the kernel log with sequences of printed lines.

use super::*;
use proptest::prelude::*;

const NOW: LogClock = LogClock { mono_ns: 1_000_000_000_000, wall_ns: 1_700_000_000_000_000_000 };

struct FakeKernel {
    log: KernelLog,
    seq: u64,
    us: u64,
}

impl FakeKernel {
    fn new() -> Self {
        Self::with_limits(KernelLogLimits::default())
    }
    fn with_limits(limits: KernelLogLimits) -> Self {
        let start = LogClock { mono_ns: 100_000_000_000, ..NOW };
        Self { log: KernelLog::new(start, limits), seq: 10, us: 500_000_000 }
    }
    fn print(&mut self, level: u8, message: &str) -> &mut Self {
        self.record(KmsgRecord { level, message: message.into(), ..KmsgRecord::default() })
    }
    fn record(&mut self, record: KmsgRecord) -> &mut Self {
        self.us += 10;
        let record = KmsgRecord { seq: self.seq, boot_us: self.us, ..record };
        self.seq += 1;
        self.log.push(&record, NOW);
        self
    }
    fn after_secs(&mut self, secs: u64) -> &mut Self {
        self.us += secs * 1_000_000;
        self
    }
    fn single_entry(&self) -> &LogEntry {
        assert_eq!(self.log.size().0, 1, "{:#?}", self.log.entries().collect::<Vec<_>>());
        self.log.entries().next().unwrap()
    }
}

#[test]
fn a_hung_task_is_one_entry_and_its_trace_is_folded() {
    let mut k = FakeKernel::new();
    k.print(3, "INFO: task dd:11926 blocked for more than 5 seconds.")
        .print(3, "      Not tainted 6.18.44 #1")
        .print(3, "\"echo 0 > hung_task_timeout_secs\" disables this message.")
        .print(6, "task:dd              state:D stack:0     pid:11926")
        .print(6, "Call Trace:")
        .print(6, " __schedule+0x3cc/0xf50")
        .print(3, "INFO: task dd:11926 is blocked on a mutex likely owned by task cat:114.")
        .print(6, "loop0: detected capacity change from 0 to 131072");
    let e = k.single_entry();
    assert_eq!((e.class, e.pid, e.comm.as_deref(), e.count), (KernelLogClass::HungTask, Some(11926), Some("dd"), 1));
    assert_eq!(e.folded.len(), 6);
    assert_eq!(e.folded[4], " __schedule+0x3cc/0xf50");
    assert!(k.log.latest_hung_task(11926).is_some() && k.log.latest_hung_task(1).is_none());
    k.after_secs(120).print(3, "INFO: task dd:11926 blocked for more than 125 seconds.").print(6, " newer+0x1/0x2");
    let e = k.single_entry();
    assert_eq!((e.count, e.folded.clone()), (2, vec![" newer+0x1/0x2".to_owned()]), "the newest trace is the one kept");
    assert!(e.message.contains("125") && e.wall_ns - e.first_wall_ns > 120_000_000_000);
}

#[test]
fn another_error_inside_a_trace_is_its_own_entry() {
    let mut k = FakeKernel::new();
    k.print(3, "INFO: task dd:1 blocked for more than 5 seconds.")
        .print(6, "Call Trace:")
        .print(3, "I/O error, dev sda, sector 8 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2")
        .print(4, "some driver: something odd")
        .print(6, " schedule+0x23/0xa0");
    let got: Vec<_> = k.log.entries().map(|e| (e.class, e.folded.len())).collect();
    assert_eq!(got, [(KernelLogClass::HungTask, 2), (KernelLogClass::IoError, 0), (KernelLogClass::Other, 0)]);
}

#[test]
fn the_oom_kill_line_heads_the_whole_dump() {
    let mut k = FakeKernel::new();
    k.print(4, "stress invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0")
        .print(4, "CPU: 0 PID: 77 Comm: stress Not tainted 6.1 #1")
        .print(6, "memory: usage 524288kB, limit 524288kB, failcnt 123")
        .print(6, "anon 530579456")
        .print(6, "Tasks state (memory values in pages):")
        .print(6, "[  23793]     0 23793   655928   126942  5226496   519670             0 leaker")
        .print(6, "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg=/leaker,task=leaker,pid=23793,uid=0")
        .print(3, "Memory cgroup out of memory: Killed process 23793 (leaker) total-vm:2623712kB, anon-rss:506500kB")
        .print(6, "oom_reaper: reaped process 23793 (leaker), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB");
    let e = k.single_entry();
    assert_eq!((e.class, e.pid, e.comm.as_deref(), e.count), (KernelLogClass::Oom, Some(23793), Some("leaker"), 1));
    assert!(e.folded[0].starts_with("stress invoked"));
    assert_eq!(e.folded.len(), 8);
    assert_eq!(k.log.count(KernelLogClass::Oom, NOW).total, 1);
}

#[test]
fn repeated_lines_are_counted_within_the_window_only() {
    let mut k = FakeKernel::new();
    for sector in 0..10 {
        k.print(3, &format!("Buffer I/O error on dev sda, logical block {sector}, lost async page write"));
    }
    let e = k.single_entry();
    assert_eq!((e.count, e.device.as_deref(), e.seq), (10, Some("sda"), Some(19)));
    k.after_secs(601).print(3, "Buffer I/O error on dev sda, logical block 7, lost async page write");
    assert_eq!(k.log.entries().map(|e| e.count).collect::<Vec<_>>(), [10, 1]);
}

#[test]
fn an_entry_tells_how_often_it_occurred_in_the_last_ten_minutes() {
    let mut k = FakeKernel::new();
    for _ in 0..160 {
        k.after_secs(9 * 60).print(3, "I/O error, dev sda, sector 8");
        k.print(4, "blk_print_req_error: 3 callbacks suppressed");
    }
    let e = k.single_entry();
    assert_eq!((e.count, e.suppressed), (160, 480));
    assert_eq!(e.recent_counts(e.wall_ns), (2, 6));
    assert_eq!(e.recent_counts(e.wall_ns + 5 * 60_000_000_000), (1, 3));
    assert_eq!(e.recent_counts(e.wall_ns + 20 * 60_000_000_000), (0, 0));
}

#[test]
fn the_newest_occurrence_is_last() {
    let mut k = FakeKernel::new();
    k.print(3, "I/O error, dev sda, sector 8")
        .print(3, "I/O error, dev sdb, sector 8")
        .print(3, "I/O error, dev sda, sector 9");
    let got: Vec<_> = k.log.entries().map(|e| (e.device.clone().unwrap(), e.count)).collect();
    assert_eq!(got, [("sdb".to_owned(), 1), ("sda".to_owned(), 2)]);
}

#[test]
fn rate_limited_lines_count_for_their_class() {
    let mut k = FakeKernel::new();
    k.print(3, "I/O error, dev sda, sector 8").print(4, "blk_print_req_error: 48 callbacks suppressed");
    let e = k.single_entry();
    assert_eq!((e.count, e.suppressed), (1, 48));
    assert_eq!(k.log.count(KernelLogClass::IoError, NOW).suppressed, 48);
    k.print(4, "blk_print_req_error: 18446744073709551615 callbacks suppressed");
    assert_eq!(k.single_entry().suppressed, u64::MAX);
    let mut k = FakeKernel::new();
    k.print(4, "net_ratelimit: 7 callbacks suppressed");
    assert_eq!(k.single_entry().class, KernelLogClass::Other);
}

#[test]
fn messages_of_programs_are_marked_and_fold_nothing() {
    let mut k = FakeKernel::new();
    k.print(3, "INFO: task dd:1 blocked for more than 5 seconds.");
    k.record(KmsgRecord { facility: 1, level: 4, message: b"Call Trace:".to_vec(), ..KmsgRecord::default() });
    k.record(KmsgRecord {
        facility: 1,
        level: 3,
        message: b"I/O error, dev sda, sector 1".to_vec(),
        ..KmsgRecord::default()
    });
    let got: Vec<_> = k.log.entries().map(|e| (e.class, e.is_from_program(), e.folded.len())).collect();
    assert_eq!(
        got,
        [(KernelLogClass::HungTask, false, 0), (KernelLogClass::Other, true, 0), (KernelLogClass::Other, true, 0)]
    );
    assert_eq!(k.log.count(KernelLogClass::Other, NOW).total, 0);
}

#[test]
fn a_sequence_gap_counts_as_dropped_and_an_old_record_is_ignored() {
    let mut k = FakeKernel::new();
    k.print(3, "I/O error, dev sda, sector 8");
    k.seq += 5;
    k.print(3, "I/O error, dev sda, sector 8");
    assert_eq!((k.log.dropped, k.single_entry().count), (5, 2));
    let revision = k.log.revision;
    k.seq = 10;
    k.print(3, "I/O error, dev sda, sector 8");
    assert_eq!((k.log.dropped, k.single_entry().count, k.log.revision), (5, 2, revision));
}

#[test]
fn informational_lines_are_ignored_unless_a_rule_matches() {
    let mut k = FakeKernel::new();
    k.print(6, "bash (11697): drop_caches: 3").print(6, "ata1: SATA link up 6.0 Gbps (SStatus 133 SControl 300)");
    assert_eq!(k.log.size().0, 0);
    k.print(6, "BTRFS info (device dm-0 state EA): forced readonly");
    assert_eq!(
        (k.single_entry().class, k.single_entry().device.as_deref()),
        (KernelLogClass::Filesystem, Some("dm-0"))
    );
}

#[test]
fn a_following_stack_folds_under_an_unclassified_line() {
    let mut k = FakeKernel::new();
    k.print(4, "odd driver: this should not happen").print(4, "CPU: 0 PID: 1 Comm: x").print(4, " odd+0x1/0x2");
    assert_eq!(k.single_entry().folded.len(), 2);
}

#[test]
fn a_multi_line_record_is_a_head_and_folded_lines() {
    let mut k = FakeKernel::new();
    k.print(
        2,
        "md/raid1:md0: Disk failure on sdb1, disabling device.\nmd/raid1:md0: Operation continuing on 1 devices.",
    );
    let e = k.single_entry();
    assert_eq!((e.class, e.device.as_deref(), e.folded.len()), (KernelLogClass::IoError, Some("sdb1"), 1));
    assert!(e.message.ends_with("disabling device."));
}

#[test]
fn counts_cover_since_start_and_the_last_ten_minutes() {
    let mut k = FakeKernel::new();
    k.us = 50_000_000;
    k.print(3, "I/O error, dev sda, sector 8");
    k.us = 960_000_000;
    k.print(3, "I/O error, dev sda, sector 8").print(3, "I/O error, dev sdb, sector 8");
    let count = k.log.count(KernelLogClass::IoError, NOW);
    assert_eq!((count.total, count.since_start, count.last_10min), (3, 2, 2));
    let later = LogClock { mono_ns: NOW.mono_ns + 700_000_000_000, ..NOW };
    assert_eq!(k.log.count(KernelLogClass::IoError, later).last_10min, 0);
}

#[test]
fn a_flood_of_unclassified_lines_does_not_evict_classified_ones() {
    let mut k = FakeKernel::with_limits(KernelLogLimits { entries: 40, ..KernelLogLimits::default() });
    k.print(3, "I/O error, dev sda, sector 8");
    let letters = |i: usize| format!("{}{}", (b'a' + (i / 26 % 26) as u8) as char, (b'a' + (i % 26) as u8) as char);
    for i in 0..500 {
        k.record(KmsgRecord { facility: 1, level: 3, message: letters(i).into_bytes(), ..KmsgRecord::default() });
    }
    assert!(k.log.size().0 <= 40);
    assert!(k.log.entries().any(|e| e.class == KernelLogClass::IoError));
}

#[test]
fn visible_entries_follow_the_patterns() {
    let mut k = FakeKernel::new();
    k.print(4, "docker0: odd").print(4, "other: odd");
    assert_eq!(k.log.visible(&LogPatterns::default()).count(), 1);
    assert_eq!(k.log.visible(&LogPatterns::new(None, Some("")).unwrap()).count(), 2);
}

proptest! {
    #[test]
    fn limits_hold_and_sizes_add_up(
        lines in proptest::collection::vec((0u8..8, 0u16..2, 0usize..9, "[a-z]{0,3}", 0u64..3_000_000, 0u64..3), 0..200),
    ) {
        let texts = [
            "INFO: task dd:1 blocked for more than 5 seconds.", " schedule+0x23/0xa0", "I/O error, dev sda, sector 8",
            "x invoked oom-killer: y", "Out of memory: Killed process 1 (x) total-vm:1", "ata1.00: exception Emask 0x0",
            "ata1: hard resetting link", "blk_print_req_error: 4 callbacks suppressed", "EXT4-fs error (device sda1): \n\u{1b}[2J\n",
        ];
        let limits = KernelLogLimits { entries: 16, bytes: 8_000, level: 4 };
        let mut k = FakeKernel::with_limits(limits);
        for (level, facility, text, tail, gap, skip) in lines {
            k.us += gap;
            k.seq += skip;
            let message = format!("{}{tail}", texts[text]).into_bytes();
            k.record(KmsgRecord { level, facility, message, ..KmsgRecord::default() });
            let (entries, bytes) = k.log.size();
            prop_assert!(entries <= limits.entries && (bytes <= limits.bytes || entries == 1));
            prop_assert_eq!(bytes, k.log.stored.values().map(StoredEntry::heap_bytes).sum::<usize>());
        }
    }
}

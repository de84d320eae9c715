//! The log's behaviour, told in short conversations with a kernel.

use super::*;
use proptest::prelude::*;

const NOW: LogClock = LogClock { mono_ns: 1_000_000_000_000, wall_ns: 1_700_000_000_000_000_000 };

struct Kernel {
    log: KernLog,
    seq: u64,
    us: u64,
}

impl Kernel {
    fn new() -> Self {
        Self::with(Limits::default())
    }
    fn with(limits: Limits) -> Self {
        let start = LogClock { mono_ns: 100_000_000_000, ..NOW };
        Self { log: KernLog::new(start, limits), seq: 10, us: 500_000_000 }
    }
    fn says(&mut self, level: u8, message: &str) -> &mut Self {
        self.record(Record { level, message: message.into(), ..Record::default() })
    }
    fn record(&mut self, record: Record) -> &mut Self {
        self.us += 10;
        let record = Record { seq: self.seq, boot_us: self.us, ..record };
        self.seq += 1;
        self.log.push(&record, NOW);
        self
    }
    fn after_secs(&mut self, secs: u64) -> &mut Self {
        self.us += secs * 1_000_000;
        self
    }
    fn one(&self) -> &LogEntry {
        assert_eq!(self.log.size().0, 1, "{:#?}", self.log.entries().collect::<Vec<_>>());
        self.log.entries().next().unwrap()
    }
}

#[test]
fn a_hung_task_is_one_entry_and_its_trace_is_folded() {
    let mut k = Kernel::new();
    k.says(3, "INFO: task dd:11926 blocked for more than 5 seconds.")
        .says(3, "      Not tainted 6.18.44 #1")
        .says(3, "\"echo 0 > hung_task_timeout_secs\" disables this message.")
        .says(6, "task:dd              state:D stack:0     pid:11926")
        .says(6, "Call Trace:")
        .says(6, " __schedule+0x3cc/0xf50")
        .says(3, "INFO: task dd:11926 is blocked on a mutex likely owned by task cat:114.")
        .says(6, "loop0: detected capacity change from 0 to 131072");
    let e = k.one();
    assert_eq!((e.class, e.pid, e.comm.as_deref(), e.count), (Class::HungTask, Some(11926), Some("dd"), 1));
    assert_eq!(e.folded.len(), 6);
    assert_eq!(e.folded[4], " __schedule+0x3cc/0xf50");
    assert!(k.log.hung_task(11926).is_some() && k.log.hung_task(1).is_none());
    k.after_secs(120)
        .says(3, "INFO: task dd:11926 blocked for more than 125 seconds.")
        .says(6, " newer+0x1/0x2");
    let e = k.one();
    assert_eq!(
        (e.count, e.folded.clone()),
        (2, vec![" newer+0x1/0x2".to_owned()]),
        "the newest trace is the one kept"
    );
    assert!(e.message.contains("125") && e.time - e.first_time > 120_000_000_000);
}

#[test]
fn another_trouble_amid_a_trace_is_not_swallowed() {
    let mut k = Kernel::new();
    k.says(3, "INFO: task dd:1 blocked for more than 5 seconds.")
        .says(6, "Call Trace:")
        .says(3, "I/O error, dev sda, sector 8 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2")
        .says(4, "some driver: something odd")
        .says(6, " schedule+0x23/0xa0");
    let got: Vec<_> = k.log.entries().map(|e| (e.class, e.folded.len())).collect();
    assert_eq!(got, [(Class::HungTask, 2), (Class::IoError, 0), (Class::Other, 0)]);
}

#[test]
fn the_oom_kill_line_speaks_for_the_whole_dump() {
    let mut k = Kernel::new();
    k.says(4, "stress invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0")
        .says(4, "CPU: 0 PID: 77 Comm: stress Not tainted 6.1 #1")
        .says(6, "memory: usage 524288kB, limit 524288kB, failcnt 123")
        .says(6, "anon 530579456")
        .says(6, "Tasks state (memory values in pages):")
        .says(6, "[  23793]     0 23793   655928   126942  5226496   519670             0 leaker")
        .says(6, "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg=/leaker,task=leaker,pid=23793,uid=0")
        .says(3, "Memory cgroup out of memory: Killed process 23793 (leaker) total-vm:2623712kB, anon-rss:506500kB")
        .says(6, "oom_reaper: reaped process 23793 (leaker), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB");
    let e = k.one();
    assert_eq!((e.class, e.pid, e.comm.as_deref(), e.count), (Class::Oom, Some(23793), Some("leaker"), 1));
    assert!(e.folded[0].starts_with("stress invoked"));
    assert_eq!(e.folded.len(), 8);
    assert_eq!(k.log.count(Class::Oom, NOW).total, 1);
}

#[test]
fn repeated_lines_are_counted_within_the_window_only() {
    let mut k = Kernel::new();
    for sector in 0..10 {
        k.says(3, &format!("Buffer I/O error on dev sda, logical block {sector}, lost async page write"));
    }
    let e = k.one();
    assert_eq!((e.count, e.device.as_deref(), e.seq), (10, Some("sda"), Some(19)));
    k.after_secs(601).says(3, "Buffer I/O error on dev sda, logical block 7, lost async page write");
    assert_eq!(k.log.entries().map(|e| e.count).collect::<Vec<_>>(), [10, 1]);
}

#[test]
fn the_newest_occurrence_is_last() {
    let mut k = Kernel::new();
    k.says(3, "I/O error, dev sda, sector 8")
        .says(3, "I/O error, dev sdb, sector 8")
        .says(3, "I/O error, dev sda, sector 9");
    let got: Vec<_> = k.log.entries().map(|e| (e.device.clone().unwrap(), e.count)).collect();
    assert_eq!(got, [("sdb".to_owned(), 1), ("sda".to_owned(), 2)]);
}

#[test]
fn lines_kept_back_count_towards_what_they_would_have_said() {
    let mut k = Kernel::new();
    k.says(3, "I/O error, dev sda, sector 8").says(4, "blk_print_req_error: 48 callbacks suppressed");
    let e = k.one();
    assert_eq!((e.count, e.suppressed), (1, 48));
    assert_eq!(k.log.count(Class::IoError, NOW).suppressed, 48);
    k.says(4, "blk_print_req_error: 18446744073709551615 callbacks suppressed");
    assert_eq!(k.one().suppressed, u64::MAX);
    let mut k = Kernel::new();
    k.says(4, "net_ratelimit: 7 callbacks suppressed");
    assert_eq!(k.one().class, Class::Other);
}

#[test]
fn programs_are_shown_as_programs_and_fold_nothing() {
    let mut k = Kernel::new();
    k.says(3, "INFO: task dd:1 blocked for more than 5 seconds.");
    k.record(Record { facility: 1, level: 4, message: b"Call Trace:".to_vec(), ..Record::default() });
    k.record(Record {
        facility: 1,
        level: 3,
        message: b"I/O error, dev sda, sector 1".to_vec(),
        ..Record::default()
    });
    let got: Vec<_> = k.log.entries().map(|e| (e.class, e.user(), e.folded.len())).collect();
    assert_eq!(got, [(Class::HungTask, false, 0), (Class::Other, true, 0), (Class::Other, true, 0)]);
    assert_eq!(k.log.count(Class::Other, NOW).total, 0);
}

#[test]
fn a_gap_in_the_numbers_is_a_loss_and_an_old_record_is_not_news() {
    let mut k = Kernel::new();
    k.says(3, "I/O error, dev sda, sector 8");
    k.seq += 5;
    k.says(3, "I/O error, dev sda, sector 8");
    assert_eq!((k.log.lost(), k.one().count), (5, 2));
    let revision = k.log.revision();
    k.seq = 10;
    k.says(3, "I/O error, dev sda, sector 8");
    assert_eq!((k.log.lost(), k.one().count, k.log.revision()), (5, 2, revision));
}

#[test]
fn information_is_passed_over_unless_a_rule_knows_it() {
    let mut k = Kernel::new();
    k.says(6, "bash (11697): drop_caches: 3")
        .says(6, "ata1: SATA link up 6.0 Gbps (SStatus 133 SControl 300)");
    assert_eq!(k.log.size().0, 0);
    k.says(6, "BTRFS info (device dm-0 state EA): forced readonly");
    assert_eq!((k.one().class, k.one().device.as_deref()), (Class::Filesystem, Some("dm-0")));
}

#[test]
fn an_unknown_line_takes_the_stack_that_follows() {
    let mut k = Kernel::new();
    k.says(4, "odd driver: this should not happen").says(4, "CPU: 0 PID: 1 Comm: x").says(4, " odd+0x1/0x2");
    assert_eq!(k.one().folded.len(), 2);
}

#[test]
fn several_lines_in_one_record_are_head_and_story() {
    let mut k = Kernel::new();
    k.says(2, "md/raid1:md0: Disk failure on sdb1, disabling device.\nmd/raid1:md0: Operation continuing on 1 devices.");
    let e = k.one();
    assert_eq!((e.class, e.device.as_deref(), e.folded.len()), (Class::IoError, Some("sdb1"), 1));
    assert!(e.message.ends_with("disabling device."));
}

#[test]
fn counts_know_start_and_minutes() {
    let mut k = Kernel::new();
    k.us = 50_000_000;
    k.says(3, "I/O error, dev sda, sector 8");
    k.us = 960_000_000;
    k.says(3, "I/O error, dev sda, sector 8").says(3, "I/O error, dev sdb, sector 8");
    let count = k.log.count(Class::IoError, NOW);
    assert_eq!((count.total, count.since_start, count.last_10min), (3, 2, 2));
    let later = LogClock { mono_ns: NOW.mono_ns + 700_000_000_000, ..NOW };
    assert_eq!(k.log.count(Class::IoError, later).last_10min, 0);
}

#[test]
fn a_flood_of_unknown_lines_leaves_the_known_ones() {
    let mut k = Kernel::with(Limits { entries: 40, ..Limits::default() });
    k.says(3, "I/O error, dev sda, sector 8");
    let letters =
        |i: usize| format!("{}{}", (b'a' + (i / 26 % 26) as u8) as char, (b'a' + (i % 26) as u8) as char);
    for i in 0..500 {
        k.record(Record { facility: 1, level: 3, message: letters(i).into_bytes(), ..Record::default() });
    }
    assert!(k.log.size().0 <= 40);
    assert!(k.log.entries().any(|e| e.class == Class::IoError));
}

#[test]
fn visible_follows_the_patterns() {
    let mut k = Kernel::new();
    k.says(4, "docker0: odd").says(4, "other: odd");
    assert_eq!(k.log.visible(&Patterns::default()).count(), 1);
    assert_eq!(k.log.visible(&Patterns::none()).count(), 2);
}

proptest! {
    #[test]
    fn limits_hold_and_the_books_balance(
        lines in proptest::collection::vec((0u8..8, 0u16..2, 0usize..9, "[a-z]{0,3}", 0u64..3_000_000, 0u64..3), 0..200),
    ) {
        let texts = [
            "INFO: task dd:1 blocked for more than 5 seconds.", " schedule+0x23/0xa0", "I/O error, dev sda, sector 8",
            "x invoked oom-killer: y", "Out of memory: Killed process 1 (x) total-vm:1", "ata1.00: exception Emask 0x0",
            "ata1: hard resetting link", "blk_print_req_error: 4 callbacks suppressed", "EXT4-fs error (device sda1): \n\u{1b}[2J\n",
        ];
        let limits = Limits { entries: 16, bytes: 8_000, level: 4 };
        let mut k = Kernel::with(limits);
        for (level, facility, text, tail, gap, skip) in lines {
            k.us += gap;
            k.seq += skip;
            let message = format!("{}{tail}", texts[text]).into_bytes();
            k.record(Record { level, facility, message, ..Record::default() });
            let (entries, bytes) = k.log.size();
            prop_assert!(entries <= limits.entries && (bytes <= limits.bytes || entries == 1));
            prop_assert_eq!(bytes, k.log.slots.values().map(Slot::bytes).sum::<usize>());
            prop_assert!(k.log.unknown.iter().all(|o| k.log.slots.contains_key(o)));
            prop_assert!(k.log.by_key.values().all(|o| k.log.slots.contains_key(o)));
        }
    }
}

//! Finds the class, the device and the task of a kernel log line.

use super::rules::{MessageRole, MessageRule, RATE_LIMITED_FUNCTIONS, RULES, SubjectPattern, index_after};
use super::{DeviceTag, KernelLogClass, KmsgRecord};

/// What a line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Classification<'m> {
    /// Class of the message.
    pub class: KernelLogClass,
    /// Its role in a message of several lines.
    pub role: MessageRole,
    /// The device it names.
    pub device: Option<&'m [u8]>,
    /// The task it names.
    pub pid: Option<u32>,
    /// That task's command name.
    pub comm: Option<&'m [u8]>,
}

impl Classification<'_> {
    /// A line that no rule matches.
    pub const UNKNOWN: Classification<'static> =
        Classification { class: KernelLogClass::Other, role: MessageRole::Single, device: None, pid: None, comm: None };
}

/// Longer names are not taken for device or server names.
const MAX_NAME_BYTES: usize = 64;
/// Bytes of a line that are examined; the kernel's own limit is about 1 KiB of text.
const MAX_SCANNED_BYTES: usize = 2048;

/// Classifies a record. Records of programs are always `other`.
pub fn classify(record: &KmsgRecord) -> Classification<'_> {
    if record.facility != 0 {
        return Classification::UNKNOWN;
    }
    let mut verdict = classify_text(&record.message);
    if verdict.device.is_none()
        && let Some(DeviceTag::Named(name)) = &record.device
        && verdict.class != KernelLogClass::Other
    {
        verdict.device = name.split_once(':').map(|(_, name)| name.as_bytes());
    }
    verdict
}

/// Classifies the text of a message that the kernel printed.
pub fn classify_text(message: &[u8]) -> Classification<'_> {
    let message = &message[..message.len().min(MAX_SCANNED_BYTES)];
    let message = message.trim_ascii_start();
    let found = RULES.iter().find_map(|rule| Some((rule, rule.find_in(message)?)));
    let Some((rule, rest)) = found else { return Classification::UNKNOWN };
    let mut verdict = Classification { class: rule.class, role: rule.role, ..Classification::UNKNOWN };
    extract_subject(rule, message, rest, &mut verdict);
    verdict
}

fn extract_subject<'m>(rule: &MessageRule, message: &'m [u8], rest: &'m [u8], verdict: &mut Classification<'m>) {
    let after = |text| index_after(message, text).map(|at| &message[at..]);
    match rule.subject {
        SubjectPattern::Unnamed => {}
        SubjectPattern::WordAfter(text) => verdict.device = after(text).and_then(device_word),
        SubjectPattern::JournalAfter(text) => {
            verdict.device = after(text).and_then(device_word).map(without_journal_inode);
        }
        SubjectPattern::SwapNumber => {
            let number = after("swap-device (").and_then(device_word);
            verdict.device = number.and_then(|n| Some(&n[..n.iter().rposition(|b| *b == b':')?]));
        }
        SubjectPattern::FirstWord => verdict.device = device_word(message),
        SubjectPattern::SecondWord => verdict.device = second_word(message),
        SubjectPattern::InBrackets => {
            verdict.device = after("[").and_then(device_word).or_else(|| second_word(message));
        }
        SubjectPattern::InParentheses => {
            let inside = after("(").map(|inside| inside.strip_prefix(b"device ").unwrap_or(inside));
            verdict.device = inside.and_then(device_word);
        }
        SubjectPattern::TaskCommPid => extract_hung_task(rest, verdict),
        SubjectPattern::ProcessPidComm => extract_oom_process(message, verdict),
        SubjectPattern::Watchdog => {
            // A comm may contain brackets, so the name ends at the last colon before the last bracket.
            let inside = after("[").and_then(|t| Some(&t[..t.iter().rposition(|b| *b == b']')?]));
            extract_comm_pid(inside.unwrap_or_default(), verdict);
        }
        SubjectPattern::CommBefore(text) => {
            verdict.comm = index_after(message, text).map(|end| &message[..end - text.len()]).filter(|c| c.len() <= 32);
        }
        SubjectPattern::Oops => verdict.pid = after("PID: ").and_then(leading_number).map(|(n, _)| n),
    }
    if verdict.comm.is_none() && rule.class == KernelLogClass::Filesystem {
        verdict.comm = after(": comm ").and_then(|rest| {
            let end = index_after(rest, ": ")? - 2;
            (end <= 32).then_some(&rest[..end])
        });
    }
}

/// A word that can be the name of a device or server, without punctuation at its end.
fn device_word(text: &[u8]) -> Option<&[u8]> {
    let end = text
        .iter()
        .position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'/' | b'!' | b':')))
        .unwrap_or(text.len());
    let mut name = &text[..end];
    while let Some((b':' | b'.', rest)) = name.split_last() {
        name = rest;
    }
    let name =
        name.iter().rposition(|b| *b == b'/').filter(|_| name.first() == Some(&b'/')).map_or(name, |i| &name[i + 1..]);
    (!name.is_empty() && name.len() <= MAX_NAME_BYTES).then_some(name)
}

fn second_word(message: &[u8]) -> Option<&[u8]> {
    message.iter().position(|b| *b == b' ').and_then(|i| device_word(&message[i + 1..]))
}

/// jbd2 calls a journal `sda1-8`: device and the journal's inode.
fn without_journal_inode(name: &[u8]) -> &[u8] {
    match name.iter().rposition(|b| *b == b'-') {
        Some(i) if name.len() > i + 1 && name[i + 1..].iter().all(u8::is_ascii_digit) => &name[..i],
        _ => name,
    }
}

/// `COMM:PID blocked for more than ...`. A comm may contain any byte (15 at most, 63 for workers), so find the text
/// that follows first; the last colon before that text ends the comm.
fn extract_hung_task<'m>(rest: &'m [u8], verdict: &mut Classification<'m>) {
    let ends = [" blocked for ", " can't die ", " is blocked on ", " blocked on ", " <"];
    let end = ends.iter().filter_map(|e| index_after(rest, e).map(|i| i - e.len())).min();
    extract_comm_pid(&rest[..end.unwrap_or(0)], verdict);
}

fn extract_comm_pid<'m>(text: &'m [u8], verdict: &mut Classification<'m>) {
    let Some(colon) = text.iter().rposition(|b| *b == b':') else { return };
    let Some((pid, end)) = leading_number(&text[colon + 1..]) else { return };
    if end == text.len() - colon - 1 {
        verdict.comm = Some(&text[..colon]);
        verdict.pid = Some(pid);
    }
}

/// `process 123 (comm)`, older kernels `process 123, UID 0, (comm)`.
fn extract_oom_process<'m>(message: &'m [u8], verdict: &mut Classification<'m>) {
    let Some(at) = index_after(message, "rocess ") else { return };
    let rest = &message[at..];
    let Some((pid, _)) = leading_number(rest) else { return };
    verdict.pid = Some(pid);
    let Some(open) = index_after(rest, "(") else { return };
    let rest = &rest[open..];
    let ends = [") total-vm", ") score", "), now", ", UID", ")"];
    verdict.comm =
        ends.iter().find_map(|e| index_after(rest, e).map(|i| &rest[..i - e.len()])).filter(|c| c.len() <= 64);
}

fn leading_number(text: &[u8]) -> Option<(u32, usize)> {
    let end = text.iter().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    std::str::from_utf8(&text[..end]).ok()?.parse().ok().map(|n| (n, end))
}

/// Parses `NAME: N callbacks suppressed`: the class and the number of rate-limited lines.
pub fn parse_suppressed(message: &[u8]) -> Option<(KernelLogClass, u64)> {
    let head = message.strip_suffix(b" callbacks suppressed")?;
    let colon = head.iter().rposition(|b| *b == b':')?;
    let count = std::str::from_utf8(head[colon + 1..].trim_ascii()).ok()?.parse().ok()?;
    let is_of = |prefixes: &str| prefixes.split('|').any(|prefix| head.starts_with(prefix.as_bytes()));
    let by = RATE_LIMITED_FUNCTIONS.iter().find(|(prefixes, _)| is_of(prefixes));
    Some((by.map_or(KernelLogClass::Other, |(_, class)| *class), count))
}

#[cfg(test)]
mod tests {
    use super::super::rules::TextPosition;
    use super::*;
    use proptest::prelude::*;

    fn classified(message: &str) -> (KernelLogClass, Option<&'static str>, Option<u32>, Option<&'static str>) {
        let v = classify_text(message.as_bytes());
        let text = |t: &'_ [u8]| std::str::from_utf8(t).map(|s| s.to_owned()).unwrap();
        let leak = |t: Option<&[u8]>| t.map(|t| &*Box::leak(text(t).into_boxed_str()));
        (v.class, leak(v.device), v.pid, leak(v.comm))
    }

    #[test]
    fn task_names_may_contain_colons_and_brackets() {
        let hung = "blocked for more than 122 seconds.";
        assert_eq!(classified(&format!("INFO: task kworker/u4:1:11 {hung}")).2, Some(11));
        assert_eq!(classified(&format!("INFO: task kworker/u4:1:11 {hung}")).3, Some("kworker/u4:1"));
        assert_eq!(classified(&format!("INFO: task a) R 1 (x:1:77 {hung}")).3, Some("a) R 1 (x:1"));
        assert_eq!(classified(&format!("INFO: task a\nI/O error:9 {hung}")).0, KernelLogClass::HungTask);
        assert_eq!(classified(&format!("INFO: task x:99999999999999 {hung}")).2, None);
        let (.., pid, comm) = classified("Out of memory: Killed process 918 (a) b(c) total-vm:1kB, anon-rss:2kB");
        assert_eq!((pid, comm), (Some(918), Some("a) b(c")));
        let (.., pid, comm) = classified("watchdog: BUG: soft lockup - CPU#1 stuck for 23s! [Worker [x]:7703]");
        assert_eq!((pid, comm), (Some(7703), Some("Worker [x]")));
    }

    #[test]
    fn a_rule_text_in_mid_line_does_not_match() {
        assert_eq!(classified("usbhid: XFS (looks like) an error").0, KernelLogClass::Other);
        assert_eq!(classified("nothing to see").0, KernelLogClass::Other);
        assert_eq!(classified("md/raid1:md0: active with 2 out of 2 mirrors").0, KernelLogClass::Other);
        assert_eq!(classified("md/raid1:md0: read error corrected").0, KernelLogClass::IoError);
        let full = "device-mapper: thin: 253:0: switching pool to out-of-data-space (queue IO) mode";
        assert_eq!(classified(full).0, KernelLogClass::Filesystem);
        assert_eq!(classified("nvme nvme0: Shutdown timeout set to 10 seconds").0, KernelLogClass::Other);
        assert_eq!(classified("nvme nvme0: I/O 5 QID 1 timeout, aborting").0, KernelLogClass::ResetTimeout);
        assert_eq!(classified("pcieport 0000:00:1c.0: AER: enabled with IRQ 122").0, KernelLogClass::Other);
        assert_eq!(classified("EXT4-fs (sda1): mounted filesystem with ordered data mode").0, KernelLogClass::Other);
        assert_eq!(classified("").0, KernelLogClass::Other);
    }

    #[test]
    fn a_process_named_like_a_file_system_is_none() {
        let names =
            ["EXT4-fs (sda1)", "EXT4-fs error", "EXT4-fs (a): x", "XFS (sda): rror", "BTRFS (a): x", "JBD2: error"];
        for comm in names {
            let class = |rest: &str| classified(&format!("{comm}{rest}"));
            for rest in [
                "[4242]: segfault at 0 ip 000055d0 sp 00007ffc error 4 in a.out[55d0+1000] likely on CPU 3",
                "[4242] trap invalid opcode ip:55d0 sp:7ffc error:0 in a.out[55d0+1000]",
                "[4242] general protection fault ip:55d0 sp:7ffc error:0 in a.out[55d0+1000]",
                "[4242]: unhandled exception: DABT (lower EL), ESR 0x92000046, translation fault, error",
                " (4242): drop_caches: 3 error",
            ] {
                assert_eq!(class(rest).0, KernelLogClass::Other, "{comm}{rest}");
            }
            let killer = class(" invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0");
            assert_eq!((killer.0, killer.3), (KernelLogClass::Oom, Some(comm)));
            let failure = class(": page allocation failure: order:5, mode:0x40dc0(GFP_KERNEL), failed, error");
            assert_eq!((failure.0, failure.3), (KernelLogClass::Oom, Some(comm)));
            let failure = class(": vmalloc error: size 4096, page order 0, failed to allocate pages");
            assert_eq!((failure.0, failure.3), (KernelLogClass::Oom, Some(comm)));
        }
        // Where no text of the list follows, what comes after the parentheses decides.
        assert_eq!(classified("EXT4-fs (sda1)[42] something new: error 4").0, KernelLogClass::Other);
        assert_eq!(classified("EXT4-fs error (42) used greatest stack depth: 9 bytes left").0, KernelLogClass::Other);
        // A name within a message of a file system is not the comm of a process.
        let path = "EXT4-fs error (device sda1): ext4_readdir:222: inode #11: comm ls: path /a invoked oom-killer: b";
        assert_eq!((classified(path).0, classified(path).1), (KernelLogClass::Filesystem, Some("sda1")));
        let in_function = "EXT4-fs error (device sda1) in ext4_evict_inode:249: Journal has aborted";
        assert_eq!((classified(in_function).0, classified(in_function).1), (KernelLogClass::Filesystem, Some("sda1")));
    }

    #[test]
    fn old_records_and_recoveries_are_no_errors() {
        for message in [
            "BTRFS info (device sdb1): bdev /dev/sdb1 errs: wr 0, rd 0, flush 0, corrupt 5, gen 0",
            "EXT4-fs (sda1): error count since last fsck: 3",
            "EXT4-fs (sda1): initial error at time 1700000000: ext4_find_entry:1455: inode 2",
            "EXT4-fs (sda1): last error at time 1700000500: ext4_find_entry:1455: inode 2",
            "device-mapper: multipath: 253:0: Reinstating path 8:16.",
        ] {
            assert_eq!(classified(message).0, KernelLogClass::Other, "{message}");
        }
        let new = "BTRFS error (device sdb1): bdev /dev/sdb1 errs: wr 0, rd 0, flush 0, corrupt 6, gen 0";
        assert_eq!(classified(new).0, KernelLogClass::Filesystem);
        let failing = classified("device-mapper: multipath: 253:0: Failing path 8:16.");
        assert_eq!((failing.0, failing.1), (KernelLogClass::IoError, Some("8:16")));
    }

    #[test]
    fn errors_of_file_systems_are_found_in_each_form() {
        for message in [
            "BTRFS: error (device sda1) in btrfs_finish_ordered_io:3000: errno=-5 IO failure",
            "BTRFS error (device sda1 state EA): parent transid verify failed on logical 30408704 mirror 1",
            "EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm ls: reading directory lblock 0",
            "EXT4-fs error (device sda1) in ext4_reserve_inode_write:5764: Journal has aborted",
            "EXT4-fs (sda1): Remounting filesystem read-only",
            "XFS (sda1): Metadata corruption detected at xfs_agf_verify+0x1/0x2 [xfs], xfs_agf block 0x1",
            "XFS (sda1): log I/O error -5",
            "FAT-fs (sda1): error, invalid access to FAT (entry 0x00000d81)",
            "F2FS-fs (sda1): inconsistent node block, nid:4",
        ] {
            let (class, device) = (classified(message).0, classified(message).1);
            assert_eq!((class, device), (KernelLogClass::Filesystem, Some("sda1")), "{message}");
        }
    }

    #[test]
    fn messages_of_programs_are_never_classified() {
        let record =
            KmsgRecord { facility: 1, message: b"I/O error, dev sda, sector 1".to_vec(), ..KmsgRecord::default() };
        assert_eq!(classify(&record), Classification::UNKNOWN);
    }

    #[test]
    fn the_device_comes_from_the_dictionary_when_the_text_has_none() {
        let record = KmsgRecord {
            message: b"EDAC MC0: 1 CE memory read error".to_vec(),
            device: Some(DeviceTag::Named("scsi:2:0:0:0".into())),
            ..KmsgRecord::default()
        };
        assert_eq!(classify(&record).device, Some(&b"2:0:0:0"[..]));
    }

    #[test]
    fn suppressed_line_counts_are_parsed() {
        let of = |m: &str| parse_suppressed(m.as_bytes());
        assert_eq!(of("blk_print_req_error: 48 callbacks suppressed"), Some((KernelLogClass::IoError, 48)));
        assert_eq!(
            of("btrfs_dev_stat_print_on_error: 774 callbacks suppressed"),
            Some((KernelLogClass::Filesystem, 774))
        );
        assert_eq!(of("net_ratelimit: 3 callbacks suppressed"), Some((KernelLogClass::Other, 3)));
        assert_eq!(of("x: y callbacks suppressed"), None);
        assert_eq!(of("no such thing"), None);
    }

    #[test]
    fn every_rule_is_found_by_its_own_texts() {
        for (rule, text) in RULES.iter().flat_map(|rule| rule.texts.split('|').map(move |text| (rule, text))) {
            let word = rule.requires_any.split('|').next().unwrap();
            let comm = if rule.position == TextPosition::AfterComm { "cat" } else { "" };
            let text = match rule.has_device_first {
                true => format!("{} (sda1): ", text.trim_end_matches([' ', '('])),
                false => format!("{comm}{text}"),
            };
            let line = if word.is_empty() { text } else { format!("{text} x {word} y") };
            assert_eq!(classify_text(line.as_bytes()).class, rule.class, "{line:?} of {rule:?}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(raw in proptest::collection::vec(any::<u8>(), 0..300), rule in 0..RULES.len()) {
            let _ = (classify_text(&raw), parse_suppressed(&raw));
            let mut line = RULES[rule].texts.split('|').next().unwrap().as_bytes().to_vec();
            line.extend(RULES[rule].requires_any.split('|').next().unwrap().as_bytes());
            line.extend_from_slice(&raw);
            let _ = (classify_text(&line), parse_suppressed(&line));
        }
    }
}

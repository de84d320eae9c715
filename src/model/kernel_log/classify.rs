//! Finds the class, the device and the task of a kernel log line.
//!
//! Called for every line the kernel prints. Most lines match no rule, so this is one pass over the bytes: at each start
//! of a word, a table indexed by the first byte gives the rules that could match there.
//! It allocates nothing and runs no regular expression.

use super::rules::{MatchPosition, MessageRole, MessageRule, RATE_LIMITED_FUNCTIONS, RULES, SubjectPattern};
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

const _: () = assert!(RULES.len() <= 192, "widen the masks");
/// For each first byte, a bit mask of the rules whose text begins with it.
static RULES_BY_FIRST_BYTE: [[u64; 3]; 256] = rules_by_first_byte();

const fn rules_by_first_byte() -> [[u64; 3]; 256] {
    let mut table = [[0; 3]; 256];
    let mut i = 0;
    while i < RULES.len() {
        table[RULES[i].text.as_bytes()[0] as usize][i / 64] |= 1 << (i % 64);
        i += 1;
    }
    table
}

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
    let Some((rule, at)) = find_rule(message) else { return Classification::UNKNOWN };
    let mut verdict = Classification { class: rule.class, role: rule.role, ..Classification::UNKNOWN };
    extract_subject(rule, message, at, &mut verdict);
    verdict
}

/// The first matching rule of the table, and the position of its text.
fn find_rule(message: &[u8]) -> Option<(&'static MessageRule, usize)> {
    let mut best = usize::MAX;
    let mut best_at = 0;
    let mut in_word = false;
    for (at, &byte) in message.iter().enumerate() {
        if !in_word {
            for (word, mut mask) in RULES_BY_FIRST_BYTE[byte as usize].into_iter().enumerate() {
                while mask != 0 {
                    let index = word * 64 + mask.trailing_zeros() as usize;
                    mask &= mask - 1;
                    if index < best && rule_matches(&RULES[index], message, at) {
                        (best, best_at) = (index, at);
                    }
                }
            }
        }
        in_word = byte.is_ascii_alphanumeric();
    }
    RULES.get(best).map(|rule| (rule, best_at))
}

fn rule_matches(rule: &MessageRule, message: &[u8], at: usize) -> bool {
    (at == 0 || rule.position == MatchPosition::WordStart)
        && message[at..].starts_with(rule.text.as_bytes())
        && (rule.requires_any.is_empty()
            || rule.requires_any.iter().any(|w| index_after(&message[at + rule.text.len() - 1..], w).is_some()))
}

/// The position after the first `needle` in `text`.
fn index_after(text: &[u8], needle: &str) -> Option<usize> {
    let (first, rest) = needle.as_bytes().split_first()?;
    let last = text.len().checked_sub(rest.len())?;
    (0..last).find(|i| text[*i] == *first && text[i + 1..].starts_with(rest)).map(|i| i + needle.len())
}

fn extract_subject<'m>(rule: &MessageRule, message: &'m [u8], at: usize, verdict: &mut Classification<'m>) {
    match rule.subject {
        SubjectPattern::Unnamed => {}
        SubjectPattern::WordAfter(text) => {
            verdict.device = index_after(message, text).and_then(|i| device_word(&message[i..]))
        }
        SubjectPattern::FirstWord => verdict.device = device_word(message),
        SubjectPattern::SecondWord => verdict.device = second_word(message),
        SubjectPattern::InBrackets => {
            verdict.device =
                index_after(message, "[").and_then(|i| device_word(&message[i..])).or_else(|| second_word(message));
        }
        SubjectPattern::InParentheses => {
            verdict.device = index_after(message, "(").and_then(|i| {
                let inside = &message[i..];
                device_word(inside.strip_prefix(b"device ").unwrap_or(inside))
            });
        }
        SubjectPattern::TaskCommPid => extract_hung_task(&message[at + rule.text.len()..], verdict),
        SubjectPattern::ProcessPidComm => extract_oom_process(message, verdict),
        SubjectPattern::Watchdog => {
            // A comm may contain brackets, so the name ends at the last colon before the last bracket.
            let inside = index_after(message, "[").map(|i| &message[i..]);
            let inside = inside.and_then(|t| t.iter().rposition(|b| *b == b']').map(|end| &t[..end]));
            extract_comm_pid(inside.unwrap_or_default(), verdict);
        }
        SubjectPattern::CommBefore(text) => {
            verdict.comm = index_after(message, text).map(|end| &message[..end - text.len()]).filter(|c| c.len() <= 32);
        }
        SubjectPattern::Oops => {
            verdict.pid = index_after(message, "PID: ").and_then(|i| leading_number(&message[i..])).map(|(n, _)| n);
        }
    }
    if verdict.comm.is_none() && rule.class == KernelLogClass::Filesystem {
        verdict.comm = index_after(message, ": comm ").and_then(|i| {
            let rest = &message[i..];
            rest.windows(2).position(|w| w == b": ").filter(|end| *end <= 32).map(|end| &rest[..end])
        });
    }
    if rule.text == "Aborting journal on device " || rule.text == "JBD2: " {
        verdict.device = verdict.device.map(without_journal_inode);
    }
    if rule.text.ends_with("-error on swap-device ") {
        // `(major:minor:sector)`
        verdict.device = verdict.device.and_then(|d| d.iter().rposition(|b| *b == b':').map(|colon| &d[..colon]));
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
    let by = RATE_LIMITED_FUNCTIONS.iter().find(|(prefix, _)| head.starts_with(prefix.as_bytes()));
    Some((by.map_or(KernelLogClass::Other, |(_, class)| *class), count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn classified(message: &str) -> (KernelLogClass, Option<&str>, Option<u32>, Option<&str>) {
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
        assert_eq!(classified("EXT4-fs (sda1): mounted filesystem with ordered data mode").0, KernelLogClass::Other);
        assert_eq!(classified("").0, KernelLogClass::Other);
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
    fn every_rule_is_found_by_its_own_text() {
        for rule in RULES {
            let line =
                format!("{}{}", rule.text, rule.requires_any.first().map_or(String::new(), |w| format!(" x {w} y")));
            let (found, _) = find_rule(line.as_bytes()).unwrap_or_else(|| panic!("{rule:?} not found in {line:?}"));
            assert_eq!(found.class, rule.class, "{line:?} is taken by {found:?}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(raw in proptest::collection::vec(any::<u8>(), 0..300), rule in 0..RULES.len()) {
            let _ = (classify_text(&raw), parse_suppressed(&raw));
            let mut line = RULES[rule].text.as_bytes().to_vec();
            line.extend(RULES[rule].requires_any.first().map_or(&b""[..], |w| w.as_bytes()));
            line.extend_from_slice(&raw);
            let _ = (classify_text(&line), parse_suppressed(&line));
        }
    }
}

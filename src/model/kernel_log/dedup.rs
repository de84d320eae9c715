//! Recognises repeated messages by their text without its numbers.
//!
//! "I/O error, dev sda, sector 81239" and "... sector 81247" are the same error twice. Device, task and class are
//! compared exactly, so sda and sdb stay separate.

use super::classify::Classification;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Hash of class, device, task and the text without its numbers. Equal keys mean equal messages.
pub(crate) fn dedup_key(message: &[u8], verdict: &Classification<'_>, origin_user: bool) -> u64 {
    let mut hash = DefaultHasher::new();
    (verdict.class, origin_user, verdict.device, verdict.comm, verdict.pid).hash(&mut hash);
    let mut rest = message;
    while let Some(&first) = rest.first() {
        if !first.is_ascii_alphanumeric() {
            hash.write_u8(first);
            rest = &rest[1..];
            continue;
        }
        let end = rest.iter().position(|b| !b.is_ascii_alphanumeric()).unwrap_or(rest.len());
        hash_word(&mut hash, &rest[..end]);
        rest = &rest[end..];
    }
    hash.finish()
}

/// Hashes a word. Decimal numbers, `0x...` and long hexadecimal words (addresses, identifiers) count as one byte each.
fn hash_word(hash: &mut DefaultHasher, word: &[u8]) {
    let hex = |w: &[u8]| w.iter().all(u8::is_ascii_hexdigit) && w.iter().any(u8::is_ascii_digit);
    if word.strip_prefix(b"0x").is_some_and(|w| !w.is_empty() && w.iter().all(u8::is_ascii_hexdigit))
        || (word.len() >= 8 && hex(word))
    {
        return hash.write_u8(b'#');
    }
    let mut in_number = false;
    for &b in word {
        if !b.is_ascii_digit() {
            hash.write_u8(b);
        } else if !in_number {
            hash.write_u8(b'#');
        }
        in_number = b.is_ascii_digit();
    }
}

#[cfg(test)]
mod tests {
    use super::super::classify::classify_text;
    use super::*;

    fn dedup_key_of(message: &str) -> u64 {
        dedup_key(message.as_bytes(), &classify_text(message.as_bytes()), false)
    }

    #[test]
    fn numbers_are_ignored_but_devices_and_tasks_are_not() {
        let read = "op 0x0:(READ) flags 0x8800 phys_seg 16 prio class 2";
        assert_eq!(
            dedup_key_of(&format!("I/O error, dev sda, sector 8 {read}")),
            dedup_key_of("I/O error, dev sda, sector 81239 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2")
        );
        assert_ne!(dedup_key_of("I/O error, dev sda1, sector 8"), dedup_key_of("I/O error, dev sda2, sector 8"));
        assert_ne!(
            dedup_key_of(&format!("I/O error, dev sda, sector 8 {read}")),
            dedup_key_of("I/O error, dev sda, sector 8 op 0x1:(WRITE)")
        );
        assert_ne!(
            dedup_key_of("INFO: task dd:1 blocked for more than 5 seconds."),
            dedup_key_of("INFO: task dd:2 blocked for more than 5 seconds.")
        );
        assert_eq!(
            dedup_key_of("INFO: task dd:1 blocked for more than 5 seconds."),
            dedup_key_of("INFO: task dd:1 blocked for more than 122 seconds.")
        );
        assert_eq!(
            dedup_key_of("attempting task abort! scmd(ffff8814605d2100)"),
            dedup_key_of("attempting task abort! scmd(ffff88146aaaaaaa)")
        );
    }
}

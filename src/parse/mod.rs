//! Parsers of the text formats of `/proc`: bytes in, typed values out, no I/O and no panics.
//!
//! Why not the crate `procfs` everywhere: its parsers read the whole file into `String`s and fail the whole file for one
//! line they do not accept. One mount point, interface or mapped file whose name is not UTF-8 would hide all the others, and so would
//! a field that an older or a newer kernel lacks. The differences, format by format, with procfs-core 0.18:
//!
//! | file | what `procfs-core` does | here |
//! |---|---|---|
//! | mountinfo | needs UTF-8, keeps octal escapes, loses repeated options | [`mountinfo`] |
//! | meminfo, io | need every field the crate knows, or fail | [`key_value`] |
//! | vmstat | a `HashMap<String, i64>` of 150 entries at every refresh; one bad line fails all | [`key_value`] |
//! | smaps | needs UTF-8, loses the spelling of mapped names | `collect` |
//! | status | some 40 fields in a map of strings, for 6 that are used | [`task::status`] |
//! | limits | drops units and limits it does not know | `collect` |
//! | pressure | fails where the `full` line is missing (cpu before Linux 5.13); its parser of one line is used | [`pressure`] |
//! | net/dev, net/route | need UTF-8 names; one bad row fails all | `collect` |
//! | swaps, net/ipv6_route | no parser | [`swaps`], `collect` |
//!
//! [`task`] is also the hottest code of the program: it runs for every task that ran since the last refresh
//! (`cargo bench --bench process`). `cargo bench --bench parts` measures the other files.

pub(crate) mod bytes;
pub(crate) mod cache;
pub mod device_id;
pub(crate) mod dm_raid;
pub(crate) mod mountinfo;
pub(crate) mod pressure;
pub(crate) mod raw_bytes;
pub(crate) mod swaps;
pub(crate) mod task;
pub(crate) mod thin_pool;

use bytes::{lines, parse_u64, words};

/// Splits a line `Key: 12 kB` or `key 12` into its key, without the colon, and its number.
pub(crate) fn key_value(line: &[u8]) -> Option<(&[u8], u64)> {
    let mut words = words(line);
    let key = words.next()?;
    Some((key.strip_suffix(b":").unwrap_or(key), parse_u64(words.next()?)?))
}

/// The number in the line with this name.
pub(crate) fn named_value(text: &[u8], name: &[u8]) -> Option<u64> {
    lines(text).filter_map(key_value).find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// The words of a list such as `none [mq-deadline] kyber`, and the one in brackets; old kernels write a single word
/// without brackets.
pub(crate) fn bracketed_choice(text: &str) -> (Option<&str>, Vec<&str>) {
    let mut active = None;
    let mut all = Vec::new();
    for word in text.split_ascii_whitespace() {
        let inner = word.strip_prefix('[').and_then(|word| word.strip_suffix(']'));
        active = inner.or(active);
        all.push(inner.unwrap_or(word));
    }
    let only = if let [only] = all[..] { Some(only) } else { None };
    (active.or(only), all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_active_choice_is_in_brackets() {
        let names = vec!["none", "mq-deadline", "kyber"];
        assert_eq!(bracketed_choice("none [mq-deadline] kyber\n"), (Some("mq-deadline"), names));
        assert_eq!(bracketed_choice("none"), (Some("none"), vec!["none"]));
        assert_eq!(bracketed_choice(""), (None, vec![]));
    }

    #[test]
    fn keys_lose_their_colon_and_lines_without_a_number_are_skipped() {
        assert_eq!(key_value(b"Active(anon):   12 kB"), Some((&b"Active(anon)"[..], 12)));
        assert_eq!(key_value(b"nr_dirty 7"), Some((&b"nr_dirty"[..], 7)));
        assert_eq!((key_value(b"VmFlags: rd ex"), key_value(b"alone"), key_value(b"")), (None, None, None));
    }
}

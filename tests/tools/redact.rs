//! Replaces names of the host and its users, and network addresses, in captured files.

use iotop_plus::root::Root;
use regex_lite::Regex;
use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;

/// Accounts below this uid belong to services, whose names are kept.
const FIRST_PERSON_UID: u32 = 1000;
const NOBODY_UID: u32 = 65534;

pub(super) struct CaptureRedactor {
    replacements: Vec<(String, String)>,
    redacted_passwd: String,
    ipv4: Regex,
    mac: Regex,
}

impl CaptureRedactor {
    /// Collects the names of the machine at `root` and of its users.
    pub(super) fn from_root(root: &Root) -> Self {
        let host = fs::read_to_string(root.proc("sys/kernel/hostname")).unwrap_or_default();
        let mut words = vec![(host.trim().to_owned(), "host".to_owned())];
        words.extend(host.trim().split_once('.').map(|(short, _)| (short.to_owned(), "host".to_owned())));
        let mut passwd = String::new();
        let mut people = 0;
        for line in fs::read_to_string(root.etc("passwd")).unwrap_or_default().lines() {
            let mut fields = line.split(':');
            let (Some(name), Some(uid)) = (fields.next(), fields.nth(1)) else { continue };
            let mut shown = name.to_owned();
            if uid.parse::<u32>().is_ok_and(|u| u >= FIRST_PERSON_UID && u != NOBODY_UID) {
                people += 1;
                shown = format!("user{people}");
                words.push((name.to_owned(), shown.clone()));
            }
            passwd.push_str(&format!("{shown}:x:{uid}:{uid}:::\n"));
        }
        // Very short or very common names cannot be told from other text.
        words.retain(|(word, _)| word.len() > 2 && !["localhost", "(none)", "user"].contains(&&**word));
        words.sort_by_key(|(word, _)| std::cmp::Reverse(word.len()));
        #[expect(clippy::expect_used, reason = "the patterns are fixed")]
        let fixed = |pattern| Regex::new(pattern).expect("a fixed pattern");
        let ipv4 = fixed(r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b");
        let mac = fixed(r"\b[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}\b");
        Self { replacements: words, redacted_passwd: passwd, ipv4, mac }
    }

    /// The redacted user list, with names and uids only.
    pub(super) fn passwd(&self) -> &str {
        &self.redacted_passwd
    }

    /// Replaces names and addresses in a text. Bytes that are not UTF-8 are kept, because hostile names are worth
    /// testing.
    pub(super) fn redact(&self, raw: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(raw.len());
        for chunk in raw.utf8_chunks() {
            let mut text = self.mac.replace_all(chunk.valid(), "02:00:00:00:00:00").into_owned();
            text = self.ipv4.replace_all(&text, "192.0.2.1").into_owned();
            for (word, instead) in &self.replacements {
                text = text.replace(word, instead);
            }
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(chunk.invalid());
        }
        out
    }

    /// The newest `most` kernel log records; empty if the log cannot be read.
    pub(super) fn redacted_kernel_log(&self, root: &Root, most: usize) -> Vec<u8> {
        let text = read_kernel_log(root);
        let lines: Vec<&[u8]> = text.split_inclusive(|b| *b == b'\n').collect();
        // Lines of a record's dictionary begin with a blank.
        let starts: Vec<usize> = (0..lines.len()).filter(|i| !lines[*i].starts_with(b" ")).collect();
        let from = starts.iter().rev().take(most).next_back().copied().unwrap_or(lines.len());
        self.redact(&lines[from..].concat())
    }
}

/// The whole log, without waiting for more.
fn read_kernel_log(root: &Root) -> Vec<u8> {
    let mut text = Vec::new();
    let mut record = [0; 16 * 1024];
    let opened = fs::File::options().read(true).custom_flags(libc::O_NONBLOCK).open(root.dev("kmsg"));
    let Ok(mut file) = opened else { return text };
    loop {
        match file.read(&mut record) {
            Ok(0) => return text,
            Ok(n) => text.extend_from_slice(&record[..n]),
            // EPIPE: the kernel overwrote records before they were read.
            Err(err) if matches!(err.kind(), ErrorKind::BrokenPipe | ErrorKind::Interrupted) => {}
            Err(_) => return text,
        }
    }
}

/// Keeps the program and plain options of a command line; other arguments might be passwords or file names.
pub(super) fn redact_arguments(cmdline: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (i, arg) in cmdline.split(|b| *b == 0).filter(|a| !a.is_empty()).enumerate() {
        let value = arg.iter().position(|b| *b == b'=');
        match (i, arg.starts_with(b"-"), value) {
            (0, _, _) | (_, true, None) => out.extend_from_slice(arg),
            (_, true, Some(at)) => {
                out.extend_from_slice(&arg[..=at]);
                out.extend_from_slice(b"...");
            }
            _ => out.extend_from_slice(b"..."),
        }
        out.push(0);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_kernel_log_records_are_kept_whole() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        let newest = |most| CaptureRedactor::from_root(&root).redacted_kernel_log(&root, most);
        assert_eq!(newest(9), b"", "there is no log");
        fs::create_dir(root.dev("")).unwrap();
        fs::write(root.dev("kmsg"), "4,1,5,-;a\n SUBSYSTEM=net\n4,2,6,-;b\n DEVICE=n7\n4,3,7,-;c\n").unwrap();
        assert_eq!(newest(2), b"4,2,6,-;b\n DEVICE=n7\n4,3,7,-;c\n");
        assert_eq!(newest(9).len(), 56);
    }
}

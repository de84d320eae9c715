//! Replaces names of the host and its users, and network addresses, in captured files.

use crate::collect::kmsg::{KmsgReader, format_record};
use crate::model::reading::Reading;
use crate::root::Root;
use regex_lite::Regex;
use std::fs;

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
        let Reading::Ok(mut reader) = KmsgReader::open(root) else { return Vec::new() };
        let mut records = Vec::new();
        while let Ok(Some(record)) = reader.next_record() {
            records.push(format_record(&record));
        }
        let from = records.len().saturating_sub(most);
        self.redact(&records[from..].concat())
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

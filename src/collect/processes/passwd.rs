//! The lines of a passwd file, as they are in `/etc/passwd` and as getent(1) prints them.

use crate::parse::bytes::{lines, parse_u64};
use std::collections::HashMap;
use std::sync::Arc;

/// The hidden subcommand that finds the names of users.
pub(super) const SUBCOMMAND: &str = "user-names";

/// Names by uid.
pub(super) type Names = HashMap<u32, Arc<str>>;

/// Parses names by uid; the first line of a uid wins, as in getpwuid(3).
pub(super) fn parse_passwd(text: &[u8]) -> Names {
    let mut names = HashMap::new();
    for line in lines(text) {
        let mut fields = line.split(|b| *b == b':');
        let (Some(name), Some(uid)) = (fields.next(), fields.nth(1).and_then(parse_u64)) else { continue };
        if let Ok(uid) = u32::try_from(uid) {
            names.entry(uid).or_insert_with(|| String::from_utf8_lossy(name).into());
        }
    }
    names
}

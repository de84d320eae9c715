//! Fuzz targets: files below `/proc/PID`, and taskstats. See [`crate::fuzz`].

use super::file_reader::{join_arguments, parse_wchan};
use super::mappings::parse_smaps;
use super::passwd::parse_passwd;
use super::taskstats::NetlinkReply;
use crate::sanitize::assert_safe;

pub(crate) fn files(input: &[u8]) {
    parse_wchan(input).iter().for_each(|name| assert_safe(name));
    assert!(join_arguments(input).len() <= input.len());
    assert!(parse_passwd(input).len() <= input.len());
    if let Ok(mappings) = parse_smaps(input) {
        mappings.iter().for_each(|mapping| assert_safe(&format!("{}{}", mapping.perms, mapping.name)));
    }
}

/// A message of the kernel.
pub(crate) fn taskstats(input: &[u8]) {
    if let Some(reply) = NetlinkReply::parse(input) {
        reply.answer();
    }
}

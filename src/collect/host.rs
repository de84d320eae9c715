//! The names of the host.

use super::kernel_file::read_once;
use crate::model::system_state::HostInfo;
use crate::root::Root;
use crate::sanitize::sanitize;

/// Host name and kernel release, sanitized. They are read from the tree, so that a captured one shows its own.
pub fn read_host(root: &Root) -> HostInfo {
    let mut buf = Vec::new();
    let mut read = |rel: &str| {
        let text = read_once(&root.proc(rel), &mut buf).map(|t| sanitize(t.trim_ascii())).unwrap_or_default();
        if text.is_empty() { "-".to_owned() } else { text }
    };
    HostInfo { name: read("sys/kernel/hostname"), kernel: read("sys/kernel/osrelease") }
}

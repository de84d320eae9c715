//! The names of the host, and the number that this process has there.

use super::kernel_file::read_once;
use crate::model::system_state::HostInfo;
use crate::root::Root;
use crate::sanitize::sanitize;

/// Host name and kernel release, sanitized, and the id of this process. They are read from the tree, so that a captured one
/// shows its own; it knows no process of this program.
pub fn read_host(root: &Root) -> HostInfo {
    let mut buf = Vec::new();
    let mut read = |rel: &str| {
        let text = read_once(&root.proc(rel), &mut buf).map(|t| sanitize(t.trim_ascii())).unwrap_or_default();
        if text.is_empty() { "-".to_owned() } else { text }
    };
    let program_pid = std::fs::read_link(root.proc("self")).ok().and_then(|link| link.to_str()?.parse().ok());
    HostInfo { name: read("sys/kernel/hostname"), kernel: read("sys/kernel/osrelease"), program_pid }
}

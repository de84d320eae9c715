//! Snapshots, reports and screenshots as text, Markdown, HTML, JSON, CSV and images.

pub mod batch;
pub(crate) mod bench_charts;
pub(crate) mod control_groups;
pub mod csv;
pub mod devices;
pub(crate) mod files;
pub mod findings;
pub mod io_attribution;
pub mod json;
pub mod kernel_log;
pub mod memory;
pub mod metrics;
pub mod network;
pub mod path_report;
pub mod processes;
pub mod report;
pub mod screenshot;
pub(crate) mod sgr;
pub mod snapshot;
pub mod syncs;
pub mod table;
pub(crate) mod waits;

/// A text between HTML or XML tags, or in an attribute, without characters that a terminal obeys.
pub(crate) fn escape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars().filter(|c| crate::sanitize::is_safe(*c)) {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

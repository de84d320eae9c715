//! What the kernel counts for us by tracing; see [`crate::bpf`].

use super::source::Source;
use crate::bpf::Tracer;

/// Reads latency histograms, memory stalls, syncs, I/O accounts, files and waits.
pub(super) fn sources(tracer: &Tracer) -> [Source; 6] {
    let [latency, stalls, syncs, accounts, files, waits] = std::array::from_fn(|_| tracer.clone());
    [
        Source::new("tracing of latency", |s| &mut s.latency, move || latency.latency.read()),
        Source::new("tracing of stalls", |s| &mut s.memory_stalls, move || stalls.stalls.read()),
        Source::new("tracing of syncs", |s| &mut s.syncs, move || syncs.syncs.read()),
        Source::new("tracing by process", |s| &mut s.io_accounts, move || accounts.io_accounting.read()),
        Source::new("tracing of files", |s| &mut s.file_io, move || files.files.read()),
        Source::new("tracing of waits", |s| &mut s.task_waits, move || waits.waits.read()),
    ]
}

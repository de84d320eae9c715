//! Fuzz targets: every function that turns bytes of others into values, with what must hold for any bytes.
//!
//! `cargo test fuzz::` runs them with the inputs under `tests/fuzz/corpus` and changed copies of those; `tests/fuzz/` runs them with
//! libFuzzer, guided by coverage (`docs/fuzzing.md`). Nothing of this is part of the program.

// A target panics when it finds something.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used)]

mod files;
mod memory;
mod messages;
#[cfg(test)]
mod random;
mod recordings;
#[cfg(test)]
mod smoke;
mod terminal;

pub(crate) use crate::sanitize::assert_safe;
use crate::{bpf, cli, collect};

/// A fuzz target.
pub struct Target {
    /// Its name, and that of its directory under `tests/fuzz/corpus`.
    pub name: &'static str,
    /// Panics if something does not hold.
    function: fn(&[u8]),
    /// Most memory that one input may need at once, MiB.
    memory_mib: usize,
    /// Longest input, bytes.
    pub longest: usize,
}

const fn target(name: &'static str, function: fn(&[u8]), memory_mib: usize, longest: usize) -> Target {
    Target { name, function, memory_mib, longest }
}

pub const TARGETS: &[Target] = &[
    target("recording_file", recordings::file, 128, 16_384),
    target("recording_payload", recordings::payload, 128, 8_192),
    target("journal", files::journal, 4, 4_096),
    target("fio_job", files::fio_job, 4, 2_048),
    target("config", files::config, 16, 2_048),
    target("web_config", cli::fuzz_web_config, 4, 1_024),
    target("sysctl_d", files::sysctl_d, 4, 2_048),
    target("typed_text", files::typed_text, 4, 256),
    target("names", files::names, 4, 1_024),
    target("proc_task", files::proc_task, 4, 1_024),
    target("proc_mountinfo", files::proc_mountinfo, 4, 2_048),
    target("proc_memory", files::proc_memory, 4, 2_048),
    target("proc_tables", collect::fuzz::tables, 4, 2_048),
    target("network_mounts", collect::fuzz::network_mounts, 4, 2_048),
    target("kernel_log", files::kernel_log, 16, 4_096),
    target("process_files", collect::processes::fuzz::files, 4, 2_048),
    target("taskstats", collect::processes::fuzz::taskstats, 4, 1_024),
    target("bpf_tasks", bpf::fuzz::tasks, 4, 1_024),
    target("bpf_syncs", bpf::fuzz::syncs, 4, 4_096),
    target("bpf_accounts", bpf::fuzz::accounts, 4, 4_096),
    target("bpf_files", bpf::fuzz::files, 4, 4_096),
    target("bpf_latency", bpf::fuzz::latency, 4, 16_384),
    target("bpf_stalls", bpf::fuzz::stalls, 4, 1_024),
    target("bpf_waits", bpf::fuzz::waits, 4, 4_096),
    target("btf", bpf::fuzz::btf, 4, 1_024),
    target("terminal", terminal::events, 64, 24),
    target("worker_replies", messages::worker_replies, 64, 16_384),
    target("run_messages", messages::run_messages, 64, 16_384),
    target("tuner_messages", messages::tuner_messages, 4, 2_048),
];

/// Finds a target by its name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

impl Target {
    /// Runs the target on an input, with no state of earlier inputs; panics if something does not hold, or if it needs too much
    /// memory.
    pub fn run(&self, input: &[u8]) {
        self.restart();
        self.run_next(input);
    }

    /// Forgets the state that earlier inputs left in this thread.
    pub fn restart(&self) {
        terminal::restart();
    }

    /// As [`Target::run`], but continues with the state that earlier inputs left in this thread.
    pub fn run_next(&self, input: &[u8]) {
        memory::reset_peak();
        (self.function)(input);
        let peak = memory::peak();
        assert!(peak <= self.memory_mib << 20, "{} needs {peak} bytes, more than {} MiB", self.name, self.memory_mib);
    }
}

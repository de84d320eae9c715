//! Metrics for Prometheus: what others do not count, in base units. docs/reference/metrics.md lists them.
//!
//! Counters from tracing begin with it, and count each request once: [`Metrics::update`] adds what was counted since
//! the previous sample, [`Metrics::render`] writes the sums. Labels never have the number of a process; their values are
//! bounded. What could not be read is left out.

mod cgroup_io;
mod continued;
mod findings;
mod machine;
mod node_metrics;
mod request_times;
mod requests;
mod stalls;
mod syncs;
#[cfg(test)]
mod tests;
mod text;
mod top_series;

pub use continued::ContinuedCounters;
pub use text::MetricsFormat;

use crate::doctor::RuleEngine;
use crate::model::system_state::SystemState;
use cgroup_io::CgroupMetrics;
use requests::RequestMetrics;
use stalls::StallMetrics;
use syncs::SyncMetrics;
use text::{MetricFamily, MetricsText};

const AGE: MetricFamily = MetricFamily::gauge(
    "sample_age_seconds",
    "seconds",
    "Age of the newest sample: large while something that it needs does not answer.",
);

/// What to write, and how.
#[derive(Debug, Clone, Copy, Default)]
pub struct MetricsOptions {
    /// The format.
    pub format: MetricsFormat,
    /// Also what node_exporter has.
    pub all: bool,
    /// Added to the time of the sample, ns: a replay passes for a machine of today.
    pub clock_offset_ns: i64,
}

/// The metrics of a machine, from its samples.
pub struct Metrics {
    requests: RequestMetrics,
    syncs: SyncMetrics,
    stalls: StallMetrics,
    cgroups: CgroupMetrics,
    seq: u64,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            requests: RequestMetrics::new(),
            syncs: SyncMetrics::new(),
            stalls: StallMetrics::new(),
            cgroups: CgroupMetrics::new(),
            seq: 0,
        }
    }
}

impl Metrics {
    /// Adds what was counted up to the newest sample.
    pub fn update(&mut self, system: &SystemState) {
        if std::mem::replace(&mut self.seq, system.snapshot.seq) == system.snapshot.seq {
            return;
        }
        self.requests.update(system);
        self.syncs.update(system);
        self.stalls.update(system);
        self.cgroups.update(system);
    }

    /// All metrics but the age of the sample, without the end of the text.
    pub fn render(&self, system: &SystemState, engine: &RuleEngine, options: MetricsOptions) -> String {
        let mut text = MetricsText::new(options.format);
        machine::write_sources(system, options.clock_offset_ns, &mut text);
        findings::write(engine, &mut text);
        machine::write_devices(system, &mut text);
        self.requests.write(&mut text);
        self.syncs.write(&mut text);
        self.stalls.write(&mut text);
        self.cgroups.write(&mut text);
        machine::write_writeback(system, &mut text);
        machine::write_kernel_log(system, &mut text);
        if options.all {
            node_metrics::write(system, &mut text);
        }
        text.into_text()
    }
}

/// The end of a text of metrics: the age of the sample in seconds, where the text does not stay in a file.
pub fn render_end(format: MetricsFormat, age_secs: Option<f64>) -> String {
    let mut text = MetricsText::new(format);
    if let Some(age) = age_secs {
        text.begin(&AGE);
        text.sample(&AGE, &[], age);
    }
    text.finish()
}

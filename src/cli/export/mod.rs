//! The subcommand `export`: metrics for Prometheus, to standard output, to a file for node_exporter, or over HTTP.

mod auth;
mod listener;
mod replay;
mod server;
mod textfile;
mod web_config;

#[cfg(any(test, fuzzing))]
pub(crate) use web_config::fuzz as fuzz_web_config;

use super::args::parse_seconds;
use super::exit::{EXIT_OK, print_error, print_text, usage};
use super::printer::{block_on, ending_signals};
use super::sampler::{SLOW_SYNC_THRESHOLD, Sampler, SamplerOptions};
use crate::export::metrics::{Metrics, MetricsFormat, MetricsOptions, render_end};
use crate::root::Root;
use crate::subprocess::child::next_signal;
use anyhow::bail;
use auth::BasicAuth;
use clap::{Args, ValueEnum};
use listener::{ListenAddress, MetricsListener};
use replay::{ReplayOptions, serve_recordings};
use server::{MetricsPage, PagePublisher, start_server};
use std::path::PathBuf;
use std::time::Duration;
use textfile::TextFile;
use tokio::time::{Instant, sleep};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  iotop-plus export -d 5\n  \
                  iotop-plus export --textfile /var/lib/prometheus/node-exporter/iotop-plus.prom --every 15\n  \
                  iotop-plus export --listen 127.0.0.1:9755 -d 5\n  \
                  iotop-plus export --listen 127.0.0.1:9800 --replay hosts/*.iotop --loop\n\n\
                  The metrics and their labels are listed in the book, in reference/metrics.md. Counters begin when it\n\
                  starts: for counters that go on, run it with --every or --listen.")]
pub(super) struct ExportArgs {
    /// Seconds per sample, 0.1 to 3600.
    #[arg(short, long, value_name = "S", default_value = "1", value_parser = parse_seconds)]
    delay: f64,
    /// Write the metrics to this file, for node_exporter's textfile directory; readers never see a part of them.
    #[arg(long, value_name = "FILE")]
    textfile: Option<PathBuf>,
    /// Write the file every so many seconds, 0.1 to 3600, until interrupted.
    #[arg(long, value_name = "S", value_parser = parse_seconds, requires = "textfile")]
    every: Option<f64>,
    /// Serve the metrics at /metrics until interrupted: ADDRESS:PORT, the path of a socket, or systemd for the socket of a
    /// socket unit. Without --web-config anybody who can connect can read
    /// them.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["textfile", "format"])]
    listen: Option<ListenAddress>,
    /// Ask for a password: the users of this file, a web config of Prometheus' exporters with basic_auth_users only. It is
    /// read at the start.
    #[arg(long, value_name = "FILE", requires = "listen")]
    web_config: Option<PathBuf>,
    /// Serve recordings instead of this machine, each in its own time, as if its host were sampled now: a test of
    /// dashboards and alerts. The first one is served at the port of --listen, each further one at the next port.
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "listen", conflicts_with = "delay")]
    replay: Vec<PathBuf>,
    /// When a recording ends, play its second half again and again; counters go on.
    #[arg(long = "loop", requires = "replay")]
    is_loop: bool,
    /// Format; by default openmetrics, for a file prometheus, which is what node_exporter reads.
    #[arg(long, value_name = "FORMAT", value_enum)]
    format: Option<ExportFormat>,
    /// Also export what node_exporter has: counters of block devices, free space, memory, paging, pressure.
    #[arg(long)]
    all: bool,
}

impl ExportArgs {
    /// Whether recordings are exported, not this machine.
    pub(super) fn is_replay(&self) -> bool {
        !self.replay.is_empty()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    /// OpenMetrics 1.0.
    Openmetrics,
    /// The older text format of Prometheus, 0.0.4.
    Prometheus,
}

impl From<ExportFormat> for MetricsFormat {
    fn from(format: ExportFormat) -> Self {
        match format {
            ExportFormat::Openmetrics => MetricsFormat::OpenMetrics,
            ExportFormat::Prometheus => MetricsFormat::Prometheus,
        }
    }
}

/// How often settings and limits are read.
const FACTS_EVERY: Duration = Duration::from_secs(30);
/// Pause after a sample that could not be read.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

pub(super) fn run(root: &Root, args: &ExportArgs, tracing: bool) -> anyhow::Result<u8> {
    let auth = args.web_config.as_deref().map(web_config::read).transpose()?.map(BasicAuth::new);
    let default = if args.textfile.is_some() { MetricsFormat::Prometheus } else { MetricsFormat::OpenMetrics };
    let format = args.format.map_or(default, MetricsFormat::from);
    if args.textfile.is_some() && format == MetricsFormat::OpenMetrics {
        return Err(usage("--format openmetrics: node_exporter reads only the format prometheus from its directory"));
    }
    if let Some(address) = args.listen.as_ref().filter(|_| args.is_replay()) {
        let options = ReplayOptions { all: args.all, is_loop: args.is_loop };
        return serve_recordings(&args.replay, address, options, auth);
    }
    if let Some(address) = &args.listen {
        let publishers = start_server(vec![MetricsListener::bind(address)?], auth)?;
        return serve(root, args, tracing, &publishers);
    }
    let mut file = args.textfile.as_deref().map(|path| TextFile::new(root, path)).transpose()?;
    let text = block_on(async {
        let mut exporter = Exporter::start(root, args, tracing)?;
        let mut signals = ending_signals();
        let mut due = Instant::now();
        loop {
            tokio::select! {
                biased;
                () = next_signal(&mut signals) => return Ok(None),
                sampled = exporter.next_sample() => sampled?,
            }
            let Some(every) = args.every else { return Ok(Some(exporter.render(format))) };
            if let Some(file) = file.as_mut().filter(|_| Instant::now() >= due) {
                file.write_soon(exporter.render(format))?;
                due = Instant::now() + Duration::from_secs_f64(every) - exporter.interval / 2;
            }
        }
    })?;
    match (text, file, args.every) {
        (Some(text), Some(file), _) => file.write(text),
        (Some(text), None, _) => print_text(&text),
        (None, _, Some(_)) => Ok(EXIT_OK),
        (None, ..) => bail!("interrupted before there was a sample; nothing was written"),
    }
}

/// Serves the metrics until a signal arrives. While no sample can be read, the last one is served, with its age.
fn serve(root: &Root, args: &ExportArgs, tracing: bool, publishers: &[PagePublisher]) -> anyhow::Result<u8> {
    block_on(async {
        let mut exporter = Exporter::start(root, args, tracing)?;
        let mut signals = ending_signals();
        let mut has_failed = false;
        loop {
            tokio::select! {
                biased;
                () = next_signal(&mut signals) => return Ok(EXIT_OK),
                sampled = exporter.next_sample() => match sampled {
                    Ok(()) => has_failed = false,
                    Err(why) => {
                        if !std::mem::replace(&mut has_failed, true) {
                            print_error(&format!("{why:#}; the last sample is served"));
                        }
                        sleep(RETRY_INTERVAL).await;
                        continue;
                    }
                },
            }
            for publisher in publishers {
                publisher.publish(MetricsPage {
                    open_metrics: exporter.render_open(MetricsFormat::OpenMetrics),
                    prometheus: exporter.render_open(MetricsFormat::Prometheus),
                    sampled_at: std::time::Instant::now(),
                });
            }
        }
    })
}

/// Takes samples and keeps the sums.
struct Exporter {
    sampler: Sampler,
    metrics: Metrics,
    interval: Duration,
    all: bool,
}

impl Exporter {
    fn start(root: &Root, args: &ExportArgs, tracing: bool) -> anyhow::Result<Self> {
        let interval = Duration::from_secs_f64(args.delay);
        let options = SamplerOptions {
            queue_settings: true,
            kernel_log: true,
            tracing,
            slow_syncs_from: tracing.then_some(SLOW_SYNC_THRESHOLD),
            facts_every: Some(FACTS_EVERY),
            ..SamplerOptions::default()
        };
        let sampler = Sampler::start(root, interval, options)?;
        Ok(Self { sampler, metrics: Metrics::default(), interval, all: args.all })
    }

    /// Waits for the next sample and counts it. Cancel-safe.
    async fn next_sample(&mut self) -> anyhow::Result<()> {
        self.sampler.next_sample().await?;
        self.metrics.update(&self.sampler.state);
        Ok(())
    }

    /// The metrics of the newest sample.
    fn render(&self, format: MetricsFormat) -> String {
        self.render_open(format) + &render_end(format, None)
    }

    /// The same without the end.
    fn render_open(&self, format: MetricsFormat) -> String {
        let Sampler { state, findings, .. } = &self.sampler;
        let options = MetricsOptions { format, all: self.all, clock_offset_ns: 0 };
        self.metrics.render(state, findings, options)
    }
}

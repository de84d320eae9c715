//! Serves recordings as if their hosts were sampled now: hosts for a test of dashboards, alerts and `fleet`.
//!
//! All of them are played on one thread, each tick when it is due. Files are read without a child process: unlike the
//! exporter of this machine it need not survive a disk that hangs.

use super::auth::BasicAuth;
use super::listener::{ListenAddress, MetricsListener};
use super::server::{MetricsPage, PagePublisher, start_server};
use crate::cli::exit::{EXIT_OK, print_error};
use crate::cli::printer::{block_on, ending_signals};
use crate::cli::replay::RecordingPlayer;
use crate::export::metrics::{ContinuedCounters, Metrics, MetricsFormat, MetricsOptions};
use crate::recording::decoder::DecodedTick;
use crate::recording::file_worker;
use crate::recording::reader::RecordingReader;
use crate::subprocess::child::next_signal;
use anyhow::{Context, anyhow};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::{Instant, sleep_until};

/// Shortest and longest time between two ticks, whatever the clock of the recording did.
const MIN_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// How recordings are served.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReplayOptions {
    /// Also what node_exporter has.
    pub(super) all: bool,
    /// Played again when they end.
    pub(super) is_loop: bool,
}

/// Serves the recordings until a signal arrives or, unless they are played again, the last one has ended.
pub(super) fn serve_recordings(
    files: &[PathBuf],
    address: &ListenAddress,
    options: ReplayOptions,
    auth: Option<BasicAuth>,
) -> anyhow::Result<u8> {
    let addresses = address.count_up(files.len())?;
    let listeners = addresses.iter().map(MetricsListener::bind).collect::<anyhow::Result<Vec<_>>>()?;
    let publishers = start_server(listeners, auth)?;
    let hosts = files.iter().zip(publishers);
    let hosts = hosts.map(|(path, page)| ReplayedHost::open(path, page, options.all));
    let mut hosts = hosts.collect::<anyhow::Result<Vec<_>>>()?;
    block_on(async {
        let mut signals = ending_signals();
        loop {
            let playing = hosts.iter_mut().filter(|host| host.next_tick.is_some());
            let Some(host) = playing.min_by_key(|host| host.due) else { return Ok(EXIT_OK) };
            tokio::select! {
                biased;
                () = next_signal(&mut signals) => return Ok(EXIT_OK),
                () = sleep_until(host.due) => host.play_tick(options.is_loop)?,
            }
        }
    })
}

/// The host of a recording.
struct ReplayedHost {
    path: PathBuf,
    reader: RecordingReader<File>,
    player: RecordingPlayer,
    metrics: Metrics,
    /// For each format, what earlier passes counted.
    counters: [ContinuedCounters; 2],
    /// `None` after the end.
    next_tick: Option<DecodedTick>,
    due: Instant,
    all: bool,
    page: PagePublisher,
}

impl ReplayedHost {
    fn open(path: &Path, page: PagePublisher, all: bool) -> anyhow::Result<Self> {
        let file = file_worker::open_recording(path).map_err(|why| anyhow!("{why}"))?;
        let reader = RecordingReader::open(file).with_context(|| path.display().to_string())?;
        let mut host = Self {
            path: path.into(),
            player: RecordingPlayer::new(&reader),
            reader,
            metrics: Metrics::default(),
            counters: Default::default(),
            next_tick: None,
            due: Instant::now(),
            all,
            page,
        };
        host.next_tick = host.read_tick()?;
        Ok(host)
    }

    fn read_tick(&mut self) -> anyhow::Result<Option<DecodedTick>> {
        self.reader.next_tick().with_context(|| self.path.display().to_string())
    }

    /// Serves the tick that is due and reads the next one.
    fn play_tick(&mut self, is_loop: bool) -> anyhow::Result<()> {
        let Some(tick) = self.next_tick.take() else { return Ok(()) };
        let wall_ns = tick.wall_ns;
        self.player.apply_tick(tick);
        self.metrics.update(&self.player.state);
        self.publish();
        self.next_tick = self.read_tick()?;
        let mut pause_ns = self.next_tick.as_ref().map_or(0, |next| next.wall_ns.saturating_sub(wall_ns).max(0) as u64);
        if self.next_tick.is_none() && is_loop {
            pause_ns = self.reader.header.interval_ns;
            self.rewind()?;
        } else if self.next_tick.is_none() {
            print_error(&format!("{}: the recording has ended; its last sample is served", self.path.display()));
        }
        self.due += Duration::from_nanos(pause_ns).clamp(MIN_PAUSE, MAX_PAUSE);
        Ok(())
    }

    /// Begins again, as the same host that goes on. What is served begins in the middle: the first half gives rules their
    /// history, so that what was found stays found.
    fn rewind(&mut self) -> anyhow::Result<()> {
        let span = self.reader.span;
        let log = self.reader.seek(span.first_number).with_context(|| self.path.display().to_string())?;
        (self.player, self.metrics) = (RecordingPlayer::new(&self.reader), Metrics::default());
        log.into_iter().for_each(|records| _ = self.player.apply(records));
        self.counters.iter_mut().for_each(ContinuedCounters::begin_pass);
        let middle = span.first_number + (span.last_number - span.first_number) / 2;
        self.next_tick = self.read_tick()?;
        while let Some(tick) = self.next_tick.take_if(|tick| tick.number < middle) {
            self.player.apply_tick(tick);
            self.metrics.update(&self.player.state);
            self.next_tick = self.read_tick()?;
        }
        Ok(())
    }

    fn publish(&mut self) {
        let (state, findings) = (&self.player.state, &self.player.findings);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64);
        let clock_offset_ns = now.saturating_sub(state.now().wall_ns);
        let mut texts = [MetricsFormat::OpenMetrics, MetricsFormat::Prometheus]
            .into_iter()
            .zip(&mut self.counters)
            .map(|(format, counters)| {
                let options = MetricsOptions { format, all: self.all, clock_offset_ns };
                counters.apply(&self.metrics.render(state, findings, options))
            });
        let [open_metrics, prometheus] = std::array::from_fn(|_| texts.next().unwrap_or_default());
        self.page.publish(MetricsPage { open_metrics, prometheus, sampled_at: std::time::Instant::now() });
    }
}

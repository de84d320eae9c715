//! The subcommand `replay`: shows a recording on the screen, or prints it.

use super::args::{ScreenshotArgs, image_format, parse_pane};
use super::exit::{EXIT_OK, print_error, usage};
use super::full_screen::{Config, is_no_color_set, load_settings};
use super::offscreen::{self, OffscreenScene};
use super::prometheus_args::AccessArgs;
use super::snapshot::scope_of_panes;
use crate::doctor::RuleEngine;
use crate::export::csv;
use crate::export::json::{self, LogSince, UnavailableSource};
use crate::export::report::html::to_html;
use crate::export::report::markdown::to_markdown;
use crate::export::report::{ReportBlock, ReportExtras, WindowFindings, build_report};
use crate::export::screenshot::ScreenshotFormat;
use crate::export::snapshot;
use crate::fleet::url::PrometheusUrl;
use crate::model::kernel_log::LogClock;
use crate::model::observation::{Change, Observation};
use crate::model::system_state::SystemState;
use crate::recording::decoder::DecodedTick;
use crate::recording::file_worker::RemoteFile;
use crate::recording::reader::{ReadAt, RecordingReader};
use crate::recording::{file_worker, time_spec};
use crate::root::Root;
use crate::tui::action::ViewId;
use crate::tui::replay_timeline::ReplayTimeline;
use crate::tui::runtime::{ReplaySource, TuiOptions, run as run_screen};
use crate::tui::shared::ReplayUi;
use crate::tui::widgets::SymbolSet;
use anyhow::anyhow;
use clap::{ArgGroup, Args, ValueEnum};
use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("limited").multiple(true).args(["format", "from_prometheus"]))]
#[command(after_help = "Examples:\n  iotop-plus replay night.iotop --at 03:10\n  \
                        iotop-plus replay night.iotop --format csv --pane devices > devices.csv\n  \
                        iotop-plus replay night.iotop --format report-html --from 03:00 --to 03:30 > ticket.html\n  \
                        iotop-plus replay night.iotop --format json --from 03:00 --to 03:30 | jq .writeback\n  \
                        iotop-plus replay --from-prometheus http://localhost:9090 --host web1 --from -6h --to -2h\n  \
                        iotop-plus replay night.iotop --at 03:10 --format png --view devices > devices.png")]
pub(super) struct ReplayArgs {
    /// The recording.
    #[arg(required_unless_present = "from_prometheus", conflicts_with = "from_prometheus")]
    pub(super) file: Option<PathBuf>,
    /// In place of a recording, the history of a host as far as `export` wrote it to Prometheus: on the full screen, or as
    /// text or json.
    #[arg(long, value_name = "URL", requires = "host", conflicts_with_all = ["at", "pane", "count"])]
    pub(super) from_prometheus: Option<PrometheusUrl>,
    /// The host, by its name, its instance or its instance without the port.
    #[arg(long, value_name = "HOST", requires = "from_prometheus")]
    pub(super) host: Option<String>,
    #[command(flatten)]
    pub(super) access: AccessArgs,
    /// Start time: 14:35, 14:35:12, 2026-11-21T14:35:12Z, +90 (after the start), -10m (before the end).
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, conflicts_with = "from")]
    pub(super) at: Option<String>,
    /// Print instead of using the full screen.
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub(super) format: Option<ReplayFormat>,
    /// Print only this pane; repeatable, except for csv.
    #[arg(long, value_name = "PANE", value_parser = parse_pane(), requires = "format")]
    pub(super) pane: Vec<ViewId>,
    /// Print from this time, in the formats of --at; of a history, an hour before now by default.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, requires = "limited")]
    pub(super) from: Option<String>,
    /// Print up to this time.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, requires = "limited")]
    pub(super) to: Option<String>,
    /// Print at most this many samples.
    #[arg(short = 'n', long = "count", value_name = "N", requires = "format",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) count: Option<u64>,
    #[command(flatten)]
    pub(super) picture: ScreenshotArgs,
    /// Config file; `none` reads no file.
    #[arg(long, value_name = "FILE", conflicts_with = "format")]
    pub(super) config: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ReplayFormat {
    /// Aligned columns.
    Text,
    /// Markdown tables.
    Markdown,
    /// One JSON object per sample and line, as written by `snapshot`.
    Json,
    /// One pane, one line per row.
    Csv,
    /// A report for a ticket about the selected time, as Markdown.
    Report,
    /// The same report as one HTML file.
    ReportHtml,
    /// The screen at the selected time (by default at the end) as a PNG image.
    Png,
    /// The screen as an SVG image with searchable text.
    Svg,
    /// The screen as an HTML page with selectable text.
    Html,
    /// The screen as text with colour escapes.
    Ansi,
}

/// Samples decoded before the first one printed, so that slow detectors (hung tasks) have their history.
const WARM_UP_SAMPLES: u32 = 30;
/// Samples decoded before the one in a picture, whose graphs show the past.
const PICTURE_SAMPLES: u32 = crate::tui::views::replay::HISTORY_TICKS;

impl ReplayArgs {
    fn file(&self) -> &Path {
        self.file.as_deref().unwrap_or(Path::new(""))
    }
}

pub(super) fn run(root: Root, args: ReplayArgs) -> anyhow::Result<u8> {
    if let Some(option) = args.access.given().or(args.host.as_ref().map(|_| "host")) {
        return Err(usage(format!("--{option} is for --from-prometheus")));
    }
    match args.format {
        Some(format) => print_recording(&args, format),
        None => show_on_screen(root, &args),
    }
}

fn show_on_screen(root: Root, args: &ReplayArgs) -> anyhow::Result<u8> {
    let mut config = load_settings(&root, args.config.as_deref(), args.picture.theme.clone())?;
    if args.picture.ascii {
        config.settings.symbols = SymbolSet::Ascii;
    }
    let path = std::path::absolute(args.file())?;
    let reader = open_reader(args, RemoteFile::open(&root, &path))?;
    let at = args.at.as_deref().map(|at| time_spec::parse(at, &reader.span, reader.header.utc_offset_secs));
    let at = at.transpose().map_err(usage)?;
    show_recording(root, config, reader, path, at)
}

/// Shows a recording at a wall clock, ns since 1970.
pub(super) fn show_at(root: Root, path: PathBuf, wall_ns: i64, config: Option<&Path>) -> anyhow::Result<u8> {
    let config = load_settings(&root, config, None)?;
    let file = RemoteFile::open(&root, &path).map_err(|why| anyhow!("{why}"))?;
    let reader = RecordingReader::open(file).map_err(|why| anyhow!("{}: {why}", path.display()))?;
    show_recording(root, config, reader, path, Some(wall_ns))
}

fn show_recording(
    root: Root,
    config: Config,
    reader: RecordingReader<RemoteFile>,
    path: PathBuf,
    start_wall_ns: Option<i64>,
) -> anyhow::Result<u8> {
    let Config { path: config_path, mut settings, themes } = config;
    // Recordings contain nothing for these views.
    if matches!(settings.view, ViewId::Bench | ViewId::Tune) {
        settings.view = ViewId::Overview;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    run_screen(TuiOptions {
        root,
        settings,
        config_path,
        initial_path: None,
        themes,
        no_color: is_no_color_set(),
        replay: Some(ReplaySource { reader, path, name, start_wall_ns }),
    })?;
    Ok(EXIT_OK)
}

fn open_reader<B: ReadAt>(args: &ReplayArgs, file: Result<B, impl Display>) -> anyhow::Result<RecordingReader<B>> {
    let file = file.map_err(|why| anyhow!("{why}"))?;
    RecordingReader::open(file).map_err(|why| anyhow!("{}: {why}", args.file().display()))
}

/// Follows a recording and keeps the system state of the current tick.
pub(super) struct RecordingPlayer {
    pub(super) state: SystemState,
    pub(super) findings: RuleEngine,
    pub(super) gaps: Vec<UnavailableSource>,
    pub(super) since: LogSince,
    last_record: u64,
    observed: WindowFindings,
    tick: u32,
    log_clock: LogClock,
}

impl RecordingPlayer {
    pub(super) fn new<B: ReadAt>(reader: &RecordingReader<B>) -> Self {
        let world = SystemState::new(reader.header.host(), reader.header.log_clock());
        Self {
            state: world,
            findings: RuleEngine::default(),
            gaps: Vec::new(),
            since: LogSince::Time(0),
            last_record: 0,
            observed: WindowFindings::default(),
            tick: 0,
            log_clock: reader.header.log_clock(),
        }
    }

    /// Goes so many samples before `from`: they are applied without being printed.
    fn seek<B: ReadAt>(&mut self, reader: &mut RecordingReader<B>, from: i64, past: u32) -> anyhow::Result<()> {
        let number = reader.tick_number_at(from)?;
        let first = reader.span.first_number;
        for observation in reader.seek(number.saturating_sub(past).max(first))? {
            if self.apply(observation) == Change::Tasks {
                self.findings.evaluate(&self.state);
            }
        }
        Ok(())
    }

    pub(super) fn apply_tick(&mut self, moment: DecodedTick) {
        let told = self.last_record;
        self.tick = moment.number;
        moment.full_state.into_iter().flatten().chain(moment.observations).for_each(|entry| _ = self.apply(entry));
        self.findings.evaluate(&self.state);
        self.observed.update(&self.findings, self.state.now());
        self.since = LogSince::after_record(told, self.state.now().wall_ns);
    }

    pub(super) fn apply(&mut self, entry: Observation) -> Change {
        match &entry {
            Observation::Unavailable(gaps) => {
                self.gaps =
                    gaps.iter().map(|(source, why)| UnavailableSource::new(known_gap_source(source), why)).collect();
            }
            Observation::KernelLog(records, clock) => {
                self.log_clock = *clock;
                let newest = records.iter().map(|r| r.seq).max().unwrap_or(0);
                self.last_record = self.last_record.max(newest);
            }
            _ => {}
        }
        self.state.apply(entry)
    }
}

fn render_screenshot<B: ReadAt>(
    player: RecordingPlayer,
    reader: &RecordingReader<B>,
    args: &ReplayArgs,
    form: &ScreenshotFormat,
) -> Vec<u8> {
    let name = args.file().file_name().unwrap_or_default().to_string_lossy();
    let mut ui = ReplayUi::new(&name, reader.header.host(), reader.header.log_clock(), reader.span);
    (ui.is_playing, ui.tick_number, ui.timeline) = (false, player.tick, ReplayTimeline::default());
    let scene = OffscreenScene {
        args: &args.picture,
        pane: args.pane.first().copied(),
        utc_offset_secs: reader.header.utc_offset_secs,
        log_clock: player.log_clock,
        interval: Duration::from_secs(1),
        replay: Some(ui),
    };
    offscreen::render(player.state, player.findings, scene, form)
}

/// The documented name of a missing source.
fn known_gap_source(source: &str) -> &'static str {
    ["queue_settings", "settings", "room"].into_iter().find(|name| *name == source).unwrap_or("other")
}

fn print_recording(args: &ReplayArgs, format: ReplayFormat) -> anyhow::Result<u8> {
    if format == ReplayFormat::Csv && args.pane.len() != 1 {
        return Err(usage("--format csv: the panes have different columns; choose one with --pane"));
    }
    let image = image_format(format);
    offscreen::check_options(image, &args.picture, &args.pane, true)?;
    let mut reader = open_reader(args, file_worker::open_recording(args.file()))?;
    let (span, offset) = (reader.span, reader.header.utc_offset_secs);
    let time = |text: &Option<String>| text.as_deref().map(|t| time_spec::parse(t, &span, offset)).transpose();
    let from = time(args.from.as_ref().map_or(&args.at, |_| &args.from)).map_err(usage)?;
    let to = time(&args.to).map_err(usage)?;
    let mut player = RecordingPlayer::new(&reader);
    if let Some(from) = from {
        player.seek(&mut reader, from, past_samples(format))?;
    }
    let mut out = std::io::stdout().lock();
    print_samples(&mut reader, &mut player, args, format, (from, to), &mut out)?;
    if let Some(write) = report_writer(format) {
        let gaps = player.gaps.iter().map(|g| format!("{}: {}", g.source, g.reason)).collect();
        let extra = ReportExtras {
            window_findings: player.observed,
            missing_data: gaps,
            utc_offset_secs: offset,
            ..ReportExtras::default()
        };
        out.write_all(write(&build_report(&player.state, &player.findings, &extra)).as_bytes())?;
    } else if let Some(form) = image {
        out.write_all(&render_screenshot(player, &reader, args, form))?;
    }
    out.flush()?;
    if span.damaged_bytes > 0 || reader.unreadable_frames > 0 {
        let (file, frames, bytes) = (args.file().display(), reader.unreadable_frames, span.damaged_bytes);
        print_error(&format!("{file}: damaged; {frames} samples could not be read, {bytes} bytes belong to no sample"));
    }
    Ok(EXIT_OK)
}

/// Samples that are decoded before the first one that is printed or shown.
fn past_samples(format: ReplayFormat) -> u32 {
    if image_format(format).is_some() { PICTURE_SAMPLES } else { WARM_UP_SAMPLES }
}

/// Writes the blocks of a report; `None`: the format is none of a report.
fn report_writer(format: ReplayFormat) -> Option<fn(&[ReportBlock]) -> String> {
    match format {
        ReplayFormat::Report => Some(to_markdown),
        ReplayFormat::ReportHtml => Some(to_html),
        _ => None,
    }
}

/// Prints the samples of the selected time. An image or a report only takes them in.
fn print_samples<B: ReadAt>(
    reader: &mut RecordingReader<B>,
    player: &mut RecordingPlayer,
    args: &ReplayArgs,
    format: ReplayFormat,
    (from, to): (Option<i64>, Option<i64>),
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let (scope, last_ns) = (scope_of_panes(&args.pane), reader.span.last_ns);
    let (mut has_csv_header, mut is_first) = (false, true);
    // An image shows one time: the selected one, or the end.
    let is_single = image_format(format).is_some() && args.at.is_some();
    let mut remaining = args.count.unwrap_or(if is_single { 1 } else { u64::MAX });
    while let Some(tick) = reader.next_tick()?.filter(|_| remaining > 0) {
        let wall_ns = tick.wall_ns;
        player.apply_tick(tick);
        if to.is_some_and(|to| wall_ns > to) {
            break;
        }
        // A time after the end shows the end.
        if from.is_some_and(|from| wall_ns < from) && wall_ns != last_ns {
            continue;
        }
        let blank = if std::mem::take(&mut is_first) { "" } else { "\n" };
        let (state, findings) = (&player.state, &player.findings);
        let text = match format {
            ReplayFormat::Text => blank.to_owned() + &snapshot::text(state, findings, scope),
            ReplayFormat::Markdown => snapshot::markdown(state, findings, scope),
            ReplayFormat::Json => json::snapshot_json(state, findings, scope, player.since, &player.gaps)? + "\n",
            ReplayFormat::Csv => csv::csv_lines(state, findings, scope, player.since, &mut has_csv_header)?,
            _ => String::new(),
        };
        out.write_all(text.as_bytes())?;
        remaining -= 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::snapshot::SnapshotScope;

    #[test]
    fn unknown_gap_sources_become_other() {
        assert_eq!(
            (known_gap_source("settings"), known_gap_source("room"), known_gap_source("\u{1b}")),
            ("settings", "room", "other")
        );
    }

    #[test]
    fn a_picture_has_the_past_before_its_time() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/recordings/v1-invented.iotop");
        let samples = |format| {
            let mut reader = RecordingReader::open(std::fs::File::open(file).unwrap()).unwrap();
            let mut player = RecordingPlayer::new(&reader);
            let last = reader.span.last_ns;
            player.seek(&mut reader, last, past_samples(format)).unwrap();
            while let Some(tick) = reader.next_tick().unwrap() {
                player.apply_tick(tick);
            }
            (player.state.history.len(), reader.span.ticks)
        };
        assert_eq!(samples(ReplayFormat::Png), (45, 45));
        assert!(samples(ReplayFormat::Json).0 < 45);
    }

    #[test]
    fn scope_of_one_pane() {
        assert_eq!(scope_of_panes(&[ViewId::Memory]), SnapshotScope { memory: true, ..empty_scope() });
    }

    fn empty_scope() -> SnapshotScope {
        SnapshotScope {
            devices: false,
            processes: false,
            memory: false,
            kernel_log: false,
            findings: false,
            syncs: false,
            files: false,
            waits: false,
        }
    }
}

//! The subcommand `fleet`: many hosts on one screen, or printed once.

use super::args::parse_seconds;
use super::exit::{EXIT_OK, print_error, print_text, usage};
use super::full_screen::{Config, is_no_color_set, load_settings};
use super::printer::block_on;
use super::prometheus_args::{AccessArgs, wall_secs};
use crate::fleet::host::FleetHostId;
use crate::fleet::judge::SlowDevices;
use crate::fleet::plan::SAMPLE_TIME;
use crate::fleet::poller::{FleetEvent, FleetPoller, FleetSink, ask_once};
use crate::fleet::query_error::QueryError;
use crate::fleet::recordings::RecordingsSource;
use crate::fleet::recordings_poller;
use crate::fleet::source::{DevicesReport, HostsReport, PrometheusSource};
use crate::fleet::state::FleetState;
use crate::fleet::text::{devices_table, fleet_json, hosts_table, parse_time};
use crate::fleet::url::PrometheusUrl;
use crate::root::Root;
use crate::tui::fleet::{FleetExit, FleetOptions, FleetScreen, end_input_reader, run as run_screen};
use crate::tui::settings::Settings;
use crate::tui::themes::ThemeList;
use crate::tui::widgets::SymbolSet;
use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  iotop-plus fleet --prometheus http://localhost:9090\n  \
                        iotop-plus fleet --prometheus http://localhost:9090 --match 'job=\"iotop-plus\",dc=\"fra\"'\n  \
                        iotop-plus fleet --recordings /srv/recordings\n  \
                        iotop-plus fleet --prometheus http://localhost:9090 --format json | jq '.hosts[0]'\n\n\
                        The hosts run `iotop-plus export`. https takes the program openssl of this machine.")]
pub(super) struct FleetArgs {
    /// URL of Prometheus, or of what speaks its query API: http://HOST:PORT or https://HOST with its prefix, if it has one.
    #[arg(long, value_name = "URL", required_unless_present = "recordings")]
    prometheus: Option<PrometheusUrl>,
    /// Directory of recordings, one for each host, in place of Prometheus.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["prometheus", "user", "token_file", "ca_file", "matchers", "host_label", "timeout", "window", "delay"])]
    recordings: Option<PathBuf>,
    #[command(flatten)]
    access: AccessArgs,
    /// Seconds between queries, 0.1 to 3600; longer if they take long.
    #[arg(short, long, value_name = "S", default_value = "5", value_parser = parse_seconds)]
    delay: f64,
    /// Print once instead of using the full screen.
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub(super) format: Option<FleetFormat>,
    /// Print the hosts of this time: 2026-11-21T14:35:12Z, or -10m (before now).
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, requires = "format")]
    at: Option<String>,
    /// Theme: dark, light, slate, color-blind, high-contrast, mono, or one of your own.
    #[arg(long, value_name = "NAME", conflicts_with = "format")]
    theme: Option<String>,
    /// Draw borders, graphs and marks with ASCII characters only.
    #[arg(long, conflicts_with = "format")]
    ascii: bool,
    /// Config file; `none` reads no file.
    #[arg(long, value_name = "FILE", conflicts_with = "format")]
    config: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FleetFormat {
    /// Aligned columns.
    Text,
    /// One JSON object.
    Json,
}

/// Until the terminal says its own.
const DEFAULT_SIZE: (u16, u16) = (80, 24);
/// The list of hosts is not on the screen of a history.
const HISTORY_INTERVAL: Duration = Duration::from_secs(60);
/// Queries of a round, with those that are asked once.
const QUERIES_PER_ROUND: u32 = 18;
/// Where the hosts come from.
enum FleetSource {
    Prometheus(Box<PrometheusSource>, PrometheusUrl),
    Recordings(RecordingsSource, PathBuf),
}

impl FleetSource {
    fn open(root: &Root, args: &FleetArgs) -> anyhow::Result<Self> {
        match (&args.prometheus, &args.recordings) {
            (Some(url), _) => Ok(Self::Prometheus(Box::new(args.access.source(url.clone())?), url.clone())),
            (None, Some(dir)) => {
                let source = RecordingsSource::open(root, dir).map_err(|why| anyhow!(why))?;
                Ok(Self::Recordings(source, dir.clone()))
            }
            (None, None) => Err(usage("give --prometheus or --recordings")),
        }
    }
}

pub(super) fn run(root: Root, args: FleetArgs) -> anyhow::Result<u8> {
    match args.format {
        Some(format) => print_once(&root, &args, format),
        None => show(&root, &args),
    }
}

/// The settings and themes of a screen.
fn screen_config(
    root: &Root,
    config: Option<&Path>,
    theme: Option<String>,
    ascii: bool,
) -> anyhow::Result<(Settings, ThemeList)> {
    let Config { mut settings, themes, .. } = load_settings(root, config, theme)?;
    if ascii {
        settings.symbols = SymbolSet::Ascii;
    }
    Ok((settings, themes))
}

fn show(root: &Root, args: &FleetArgs) -> anyhow::Result<u8> {
    let (settings, themes) = screen_config(root, args.config.as_deref(), args.theme.clone(), args.ascii)?;
    let interval = Duration::from_secs_f64(args.delay);
    let mut screen = match FleetSource::open(root, args)? {
        FleetSource::Prometheus(source, url) => {
            FleetScreen::new(&url.to_string(), &settings, themes, DEFAULT_SIZE).with_scope(&source.scope)
        }
        FleetSource::Recordings(_, dir) => {
            FleetScreen::new(&dir.to_string_lossy(), &settings, themes, DEFAULT_SIZE).over_recordings()
        }
    };
    loop {
        let start: Box<dyn FnOnce(FleetSink) -> anyhow::Result<FleetPoller>> = match FleetSource::open(root, args)? {
            FleetSource::Prometheus(source, _) => {
                Box::new(move |sink| FleetPoller::start(*source, interval, sink).context("no thread for the queries"))
            }
            FleetSource::Recordings(source, _) => {
                Box::new(move |sink| recordings_poller::start(source, sink).context("no thread for the recordings"))
            }
        };
        let options = FleetOptions { screen: &mut screen, start, no_color: is_no_color_set() };
        let FleetExit::Replay(file, at) = run_screen(options)? else { return Ok(EXIT_OK) };
        end_input_reader()?;
        super::replay::show_at(root.clone(), file, (at * 1e9) as i64, args.config.as_deref())?;
        end_input_reader()?;
    }
}

/// Shows the history of a host between two times on the full screen.
pub(super) fn show_history(
    root: &Root,
    (config, theme, ascii): (Option<&Path>, Option<String>, bool),
    source: PrometheusSource,
    url: &PrometheusUrl,
    host: &FleetHostId,
    span: (f64, f64),
) -> anyhow::Result<u8> {
    let (settings, themes) = screen_config(root, config, theme, ascii)?;
    let screen = FleetScreen::new(&url.to_string(), &settings, themes, DEFAULT_SIZE);
    let mut screen = screen.with_scope(&source.scope).with_history(host, span);
    run_screen(FleetOptions {
        screen: &mut screen,
        start: Box::new(move |sink| {
            FleetPoller::start(source, HISTORY_INTERVAL, sink).context("no thread for the queries")
        }),
        no_color: is_no_color_set(),
    })?;
    Ok(EXIT_OK)
}

/// Hosts, devices, and which of them are slow.
type AskedOnce = (HostsReport, DevicesReport, Result<SlowDevices, QueryError>);

/// The reports of a source, asked once.
fn ask(root: &Root, args: &FleetArgs, time: Option<f64>) -> anyhow::Result<AskedOnce> {
    match FleetSource::open(root, args)? {
        FleetSource::Recordings(source, _) => {
            let (hosts, devices) = source.read(time);
            Ok((hosts, devices, Ok(SlowDevices::new())))
        }
        FleetSource::Prometheus(mut source, url) => {
            let deadline = args.access.query_timeout() * QUERIES_PER_ROUND;
            let (hosts, devices, slow) = block_on(async {
                let asked = ask_once(&mut source, time, deadline).await;
                asked.with_context(|| format!("cannot read the hosts from {url}"))
            })?;
            if hosts.hosts.is_empty() {
                let series = source.scope.selector(SAMPLE_TIME, "");
                print_error(&format!("no host: {url} has no series {series}; does it scrape `iotop-plus export`?"));
            }
            Ok((hosts, devices, slow))
        }
    }
}

fn print_once(root: &Root, args: &FleetArgs, format: FleetFormat) -> anyhow::Result<u8> {
    let offset = crate::tui::timezone::utc_offset_secs((wall_secs() * 1e9) as i64);
    let time = args.at.as_deref().map(|at| parse_time(at, wall_secs(), offset)).transpose().map_err(usage)?;
    let (hosts, devices, slow) = ask(root, args, time)?;
    let mut state = FleetState::default();
    state.is_recorded = args.recordings.is_some();
    let generation = state.choose_time(time);
    let now = wall_secs();
    state.apply(FleetEvent::Hosts(generation, Ok(hosts)), now);
    state.apply(FleetEvent::Devices(generation, devices), now);
    state.apply(FleetEvent::Slow(generation, slow), now);
    print_text(&match format {
        FleetFormat::Json => fleet_json(&state, now).to_string() + "\n",
        FleetFormat::Text => hosts_table(&state, now, offset).to_text() + "\n" + &devices_table(&state).to_text(),
    })?;
    Ok(EXIT_OK)
}

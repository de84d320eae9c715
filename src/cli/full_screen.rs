//! The full-screen program, and reading the config file.

use super::args::parse_seconds;
use super::exit::{EXIT_OK, print_error, usage};
use super::worker_job::run_job;
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::root::Root;
use crate::tui::runtime::{TuiOptions, run as run_screen};
use crate::tui::settings::Settings;
use crate::tui::themes::ThemeList;
use crate::tui::widgets::SymbolSet;
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, Args)]
pub(super) struct TopArgs {
    /// Print lines instead of using the full screen, as iotop does.
    #[arg(short, long)]
    pub(super) batch: bool,
    /// Number of reports in batch mode; by default until interrupted.
    #[arg(short = 'n', long = "iter", value_name = "N", requires = "batch",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) count: Option<u64>,
    /// Seconds between samples, 0.1 to 3600.
    #[arg(short, long, value_name = "S", value_parser = parse_seconds)]
    pub(super) delay: Option<f64>,
    /// Only show tasks that do I/O.
    #[arg(short, long)]
    pub(super) only: bool,
    /// Show totals since the start instead of rates.
    #[arg(short, long)]
    pub(super) accumulated: bool,
    /// Show processes instead of threads (on the full screen, `p` switches).
    #[arg(short = 'P', long)]
    pub(super) processes: bool,
    /// Show processes below their parents; the busiest of each parent come first.
    #[arg(long)]
    pub(super) tree: bool,
    /// Show the devices below this directory, down to the disk.
    #[arg(long, value_name = "DIR", conflicts_with = "batch")]
    pub(super) path: Option<PathBuf>,
    /// Theme: dark, light, slate, color-blind, high-contrast, mono, or one of your own.
    #[arg(long, value_name = "NAME", conflicts_with = "batch")]
    pub(super) theme: Option<String>,
    /// Draw borders, graphs and marks with ASCII characters only.
    #[arg(long, conflicts_with = "batch")]
    pub(super) ascii: bool,
    /// Do not capture the mouse.
    #[arg(long, conflicts_with = "batch")]
    pub(super) no_mouse: bool,
    /// Config file; `none` reads no file.
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
}

/// How long reading the config file may take: a home directory may be on a dead server.
const CONFIG_READ_TIMEOUT: Duration = Duration::from_millis(500);

pub(super) fn run(root: Root, top: TopArgs, tracing: bool) -> anyhow::Result<u8> {
    let Config { path: config, mut settings, themes } = load_settings(&root, top.config.as_deref(), top.theme)?;
    if let Some(delay) = top.delay {
        settings.interval = delay;
    }
    if top.ascii {
        settings.symbols = SymbolSet::Ascii;
    }
    settings.mouse &= !top.no_mouse;
    settings.tracing &= tracing;
    settings.processes.only_active |= top.only;
    settings.processes.accumulated |= top.accumulated;
    settings.processes.threads &= !top.processes;
    settings.processes.tree |= top.tree;
    let path = top.path.map(|p| std::path::absolute(&p).unwrap_or(p).to_string_lossy().into_owned());
    run_screen(TuiOptions {
        root,
        settings,
        config_path: config,
        initial_path: path,
        themes,
        no_color: is_no_color_set(),
        replay: None,
    })?;
    Ok(EXIT_OK)
}

/// The file given with `--config`, else `$XDG_CONFIG_HOME/iotop-plus/config.toml`, else `~/.config/...`.
fn config_path(asked: Option<&Path>) -> Option<PathBuf> {
    match asked {
        Some(path) if path == Path::new("none") => None,
        Some(path) => Some(path.to_owned()),
        None => {
            let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
            let base = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|h| h.join(".config")))?;
            Some(base.join("iotop-plus").join("config.toml"))
        }
    }
}

/// Reads the config file and the themes beside it in a child process, with a deadline.
fn read_config(root: &Root, path: &Path) -> anyhow::Result<(Settings, ThemeList)> {
    let shown = path.display();
    match run_job(root, WorkerJob::ReadConfig(path.to_owned()), CONFIG_READ_TIMEOUT).map_err(usage)? {
        Some(WorkerReply::Config { text, themes }) => {
            let settings = text.map_or(Ok(Settings::default()), |text| Settings::parse(&text));
            Ok((settings.map_err(|why| usage(format!("config file {shown}: {why}")))?, ThemeList::new(themes)))
        }
        Some(_) => Ok(Default::default()),
        None => {
            print_error(&format!("config file {shown}: its file system does not answer; going on without"));
            Ok(Default::default())
        }
    }
}

/// The config file used, the settings from it and the themes.
pub(super) struct Config {
    pub(super) path: Option<PathBuf>,
    pub(super) settings: Settings,
    pub(super) themes: ThemeList,
}

/// Reads the config file; `theme` is the one asked for on the command line.
pub(super) fn load_settings(root: &Root, asked: Option<&Path>, theme: Option<String>) -> anyhow::Result<Config> {
    let path = config_path(asked);
    let (mut settings, mut themes) = path.as_deref().map_or(Ok(Default::default()), |path| read_config(root, path))?;
    let place = match (&theme, &path) {
        (None, Some(path)) => format!("config file {}: ", path.display()),
        _ => String::new(),
    };
    settings.theme = theme.unwrap_or(settings.theme);
    themes.select(&settings.theme).map_err(|why| usage(format!("{place}{why}")))?;
    Ok(Config { path, settings, themes })
}

pub(super) fn is_no_color_set() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty())
}

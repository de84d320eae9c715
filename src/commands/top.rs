//! The full screen.

use super::{EXIT_FAILED, EXIT_OK, EXIT_USAGE, print_error};
use crate::cli::TopArgs;
use crate::cli::record::ReplayArgs;
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::jobs::pool::WorkerPool;
use crate::recording::file_worker::RemoteFile;
use crate::recording::reader::RecordingReader;
use crate::recording::time_spec;
use crate::root::Root;
use crate::tui::action::ViewId;
use crate::tui::runtime::{ReplaySource, TuiOptions, run as run_screen};
use crate::tui::settings::Settings;
use crate::tui::widgets::theme::ThemeName;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// How long the config file may take to be read: a home directory can be on a dead server.
const CONFIG_READ_TIMEOUT: Duration = Duration::from_millis(500);

/// Takes the screen until the person leaves.
pub fn run(root: Root, top: TopArgs, tracing: bool) -> anyhow::Result<u8> {
    let (config, mut settings) = match load_settings(&root, top.config.as_deref()) {
        Ok(found) => found,
        Err(why) => {
            print_error(&why);
            return Ok(EXIT_USAGE);
        }
    };
    if let Some(delay) = top.delay {
        settings.interval = delay;
    }
    if let Some(theme) = top.theme.as_deref().and_then(ThemeName::parse) {
        settings.theme = theme;
    }
    settings.mouse &= !top.no_mouse;
    settings.tracing &= tracing;
    settings.processes.only_active |= top.only;
    settings.processes.accumulated |= top.accumulated;
    settings.processes.threads &= !top.processes;
    let path = top.path.map(|p| std::path::absolute(&p).unwrap_or(p).to_string_lossy().into_owned());
    run_screen(TuiOptions {
        root,
        settings,
        config_path: config,
        initial_path: path,
        no_color: is_no_color_set(),
        replay: None,
    })?;
    Ok(EXIT_OK)
}

/// `--config`, else `$XDG_CONFIG_HOME/iotop-plus/config.toml`, else `~/.config/...`.
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

/// Reads the config file in a child. A file that does not answer is not waited for.
fn read_config(root: &Root, path: &Path) -> Result<Settings, String> {
    let (tx, rx) = mpsc::channel();
    let pool = WorkerPool::new(root.clone(), Arc::new(move |_, reply| drop(tx.send(reply))));
    pool.start(WorkerJob::ReadFile { path: path.to_owned() })?;
    match rx.recv_timeout(CONFIG_READ_TIMEOUT) {
        Ok(WorkerReply::File(None)) => Ok(Settings::default()),
        Ok(WorkerReply::File(Some(text))) => {
            Settings::parse(&text).map_err(|why| format!("config file {}: {why}", path.display()))
        }
        Ok(WorkerReply::Failed(why)) => Err(why),
        Ok(_) => Ok(Settings::default()),
        Err(_) => {
            print_error(&format!("config file {}: its file system does not answer; going on without", path.display()));
            Ok(Settings::default())
        }
    }
}

/// A recording on the screen.
pub fn replay(root: Root, args: &ReplayArgs) -> anyhow::Result<u8> {
    let (config, mut settings) = match load_settings(&root, args.config.as_deref()) {
        Ok(found) => found,
        Err(why) => {
            print_error(&why);
            return Ok(EXIT_USAGE);
        }
    };
    if let Some(theme) = args.theme.as_deref().and_then(ThemeName::parse) {
        settings.theme = theme;
    }
    // What the recorder did not see cannot be shown: the start view must be one of a recording.
    if matches!(settings.view, ViewId::Bench | ViewId::Tune) {
        settings.view = ViewId::Overview;
    }
    let path = std::path::absolute(&args.file)?;
    let opened = RemoteFile::open(&root, &path)
        .and_then(|file| RecordingReader::open(file).map_err(|why| format!("{}: {why}", args.file.display())));
    let reader = match opened {
        Ok(reader) => reader,
        Err(why) => {
            print_error(&why);
            return Ok(EXIT_FAILED);
        }
    };
    let at = args.at.as_deref().map(|at| time_spec::parse(at, &reader.span(), reader.header.utc_offset_secs));
    let at = match at.transpose() {
        Ok(at) => at,
        Err(why) => {
            print_error(&why);
            return Ok(EXIT_USAGE);
        }
    };
    let name = args.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let replay = Some(ReplaySource { reader, name, start_wall_ns: at });
    run_screen(TuiOptions {
        root,
        settings,
        config_path: config,
        initial_path: None,
        no_color: is_no_color_set(),
        replay,
    })?;
    Ok(EXIT_OK)
}

/// The config file that counts, and what stands in it; or what is wrong with it.
fn load_settings(root: &Root, asked: Option<&Path>) -> Result<(Option<PathBuf>, Settings), String> {
    let config = config_path(asked);
    let settings = config.as_deref().map_or(Ok(Settings::default()), |path| read_config(root, path))?;
    Ok((config, settings))
}

fn is_no_color_set() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty())
}

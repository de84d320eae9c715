//! Screens that nobody sees: drawn at a size of one's choice, for pictures.

use super::args::{PaneName, ScreenshotArgs, ViewName};
use super::sampler::Sampler;
use super::snapshot::SnapshotArgs;
use crate::collect::clock;
use crate::doctor::RuleEngine;
use crate::export::screenshot::find_format;
use crate::model::kernel_log::LogClock;
use crate::model::system_state::SystemState;
use crate::tui::action::ViewId;
use crate::tui::replay::ReplayUi;
use crate::tui::screenshot::ScreenCapture;
use crate::tui::settings::Settings;
use crate::tui::state::App;
use crate::tui::timezone::utc_offset_secs;
use std::io::IsTerminal;
use std::time::Duration;

/// Columns and rows, unless others are asked for.
const DEFAULT_SIZE: (u16, u16) = (120, 40);

/// Says what cannot be: picture options without a picture, several panes in one, a PNG on a terminal.
pub fn check_options(
    form: Option<&str>,
    wanted: &ScreenshotArgs,
    panes: &[PaneName],
    stdout: bool,
) -> Result<(), String> {
    match (form, wanted.given_option()) {
        (None, Some(option)) => Err(format!("{option} is for pictures: --format png, svg, html or ansi")),
        (Some(_), _) if panes.len() > 1 => Err("a picture shows one --pane, or all of a --view; choose one".into()),
        (Some("png"), _) if stdout && std::io::stdout().is_terminal() => {
            Err("a PNG is nothing for a terminal: write it to a file, with -o FILE or > FILE".into())
        }
        _ => Ok(()),
    }
}

/// What a picture is drawn of, beside the world.
pub struct OffscreenScene<'a> {
    /// View and size.
    pub args: &'a ScreenshotArgs,
    /// One pane alone.
    pub pane: Option<PaneName>,
    /// Seconds east of Greenwich.
    pub utc_offset_secs: i64,
    /// The clocks of the kernel log.
    pub log_clock: LogClock,
    /// Time between samples.
    pub interval: Duration,
    /// The recording it is of.
    pub replay: Option<ReplayUi>,
}

/// The screen in the form of that name.
pub fn render(system: SystemState, findings: RuleEngine, scene: OffscreenScene, name: &str) -> Vec<u8> {
    let mut app = App::new(system, scene.args.size.unwrap_or(DEFAULT_SIZE), &Settings::default(), false);
    let shared = &mut app.shared;
    (shared.findings, shared.utc_offset_secs, shared.log_clock) = (findings, scene.utc_offset_secs, scene.log_clock);
    (shared.interval, shared.replay) = (scene.interval, scene.replay);
    (app.screen.view, app.screen.zoomed) = match (scene.pane, scene.args.view) {
        (Some(pane), _) => (view_of_pane(pane), true),
        (None, view) => (view.map_or(ViewId::Overview, view_of), false),
    };
    app.views.kernel_log.refresh_entries(&app.shared);
    app.refresh_views(&mut Vec::new());
    let shot = ScreenCapture::new(&app).to_screenshot();
    find_format(name).map(|form| (form.write)(&shot)).unwrap_or_default()
}

/// The newest sample of the machine; what is known goes into it.
pub fn render_live(gather: &mut Sampler, args: &SnapshotArgs, name: &str) -> Vec<u8> {
    let empty = SystemState::new(gather.state.host.clone(), clock::now_log_clock());
    let world = std::mem::replace(&mut gather.state, empty);
    let scene = OffscreenScene {
        args: &args.picture,
        pane: args.pane.first().copied(),
        utc_offset_secs: utc_offset_secs(world.now().wall_ns),
        log_clock: clock::now_log_clock(),
        interval: Duration::from_secs_f64(args.delay),
        replay: None,
    };
    render(world, std::mem::take(&mut gather.findings), scene, name)
}

fn view_of(view: ViewName) -> ViewId {
    match view {
        ViewName::Overview => ViewId::Overview,
        ViewName::Devices => ViewId::Devices,
        ViewName::Processes => ViewId::Processes,
        ViewName::Memory => ViewId::Memory,
        ViewName::Kernel => ViewId::Kernel,
        ViewName::Findings => ViewId::Findings,
        ViewName::Syncs => ViewId::Syncs,
    }
}

fn view_of_pane(pane: PaneName) -> ViewId {
    match pane {
        PaneName::Devices => ViewId::Devices,
        PaneName::Processes => ViewId::Processes,
        PaneName::Memory => ViewId::Memory,
        PaneName::Kernel => ViewId::Kernel,
        PaneName::Findings => ViewId::Findings,
        PaneName::Syncs => ViewId::Syncs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_screenshot_options_are_refused() {
        let none = ScreenshotArgs { view: None, size: None };
        let sized = ScreenshotArgs { view: None, size: Some((80, 24)) };
        assert!(check_options(None, &none, &[], true).is_ok() && check_options(Some("svg"), &sized, &[], true).is_ok());
        assert!(check_options(None, &sized, &[], true).unwrap_err().starts_with("--size is for pictures"));
        let two = [PaneName::Devices, PaneName::Memory];
        assert!(check_options(Some("svg"), &none, &two, true).unwrap_err().contains("one --pane"));
        assert!(check_options(None, &none, &two, true).is_ok());
    }
}

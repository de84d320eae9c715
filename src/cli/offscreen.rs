//! Renders screens without a terminal, for images.

use super::args::ScreenshotArgs;
use super::exit::usage;
use super::sampler::Sampler;
use crate::collect::clock;
use crate::doctor::RuleEngine;
use crate::export::screenshot::ScreenshotFormat;
use crate::model::kernel_log::LogClock;
use crate::model::system_state::SystemState;
use crate::tui::action::ViewId;
use crate::tui::app::App;
use crate::tui::settings::Settings;
use crate::tui::shared::ReplayUi;
use crate::tui::themes::ThemeList;
use crate::tui::timezone::utc_offset_secs;
use crate::tui::widgets::SymbolSet;
use std::io::IsTerminal;
use std::time::Duration;

const DEFAULT_SIZE: (u16, u16) = (120, 40);

/// Rejects image options without an image, several panes in one image, and a PNG on a terminal.
pub(super) fn check_options(
    form: Option<&ScreenshotFormat>,
    args: &ScreenshotArgs,
    panes: &[ViewId],
    stdout: bool,
) -> anyhow::Result<()> {
    let image_option = args.view.map(|_| "--view").or(args.size.map(|_| "--size"));
    let image_option = image_option.or(args.theme.as_ref().map(|_| "--theme")).or(args.ascii.then_some("--ascii"));
    if let Some(theme) = &args.theme {
        ThemeList::default().select(theme).map_err(usage)?;
    }
    match (form, image_option) {
        (None, Some(option)) => Err(usage(format!("{option} is for pictures: --format png, svg, html or ansi"))),
        (Some(_), _) if panes.len() > 1 => Err(usage("a picture shows one --pane, or all of a --view; choose one")),
        (Some(form), _) if form.name == "png" && stdout && std::io::stdout().is_terminal() => {
            Err(usage("a PNG is nothing for a terminal: write it to a file, with -o FILE or > FILE"))
        }
        _ => Ok(()),
    }
}

/// What an image shows besides the system state.
pub(super) struct OffscreenScene<'a> {
    pub(super) args: &'a ScreenshotArgs,
    pub(super) pane: Option<ViewId>,
    pub(super) utc_offset_secs: i64,
    pub(super) log_clock: LogClock,
    pub(super) interval: Duration,
    /// The recording being replayed.
    pub(super) replay: Option<ReplayUi>,
}

pub(super) fn render(
    system: SystemState,
    findings: RuleEngine,
    scene: OffscreenScene,
    form: &ScreenshotFormat,
) -> Vec<u8> {
    let symbols = if scene.args.ascii { SymbolSet::Ascii } else { SymbolSet::Braille };
    let theme = scene.args.theme.clone().unwrap_or(Settings::default().theme);
    let settings = Settings { symbols, theme, ..Settings::default() };
    let mut app = App::new(system, scene.args.size.unwrap_or(DEFAULT_SIZE), &settings);
    let shared = &mut app.shared;
    (shared.findings, shared.utc_offset_secs, shared.log_clock) = (findings, scene.utc_offset_secs, scene.log_clock);
    (shared.interval, shared.replay) = (scene.interval, scene.replay);
    (app.screen.view, app.screen.zoomed) = match (scene.pane, scene.args.view) {
        (Some(pane), _) => (pane, true),
        (None, view) => (view.unwrap_or_default(), false),
    };
    app.views.kernel_log.refresh_entries(&app.shared);
    app.refresh_views(&mut Vec::new());
    (form.write)(&app.capture().to_screenshot())
}

/// Renders the sampler's newest sample, and takes its state.
pub(super) fn render_live(
    sampler: &mut Sampler,
    args: &ScreenshotArgs,
    pane: Option<ViewId>,
    interval: Duration,
    form: &ScreenshotFormat,
) -> Vec<u8> {
    let empty = SystemState::new(sampler.state.host.clone(), clock::now_log_clock());
    let state = std::mem::replace(&mut sampler.state, empty);
    let scene = OffscreenScene {
        args,
        pane,
        utc_offset_secs: utc_offset_secs(state.now().wall_ns),
        log_clock: clock::now_log_clock(),
        interval,
        replay: None,
    };
    render(state, std::mem::take(&mut sampler.findings), scene, form)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::screenshot::find_format;

    #[test]
    fn impossible_screenshot_options_are_refused() {
        let none = ScreenshotArgs { view: None, size: None, theme: None, ascii: false };
        let sized = ScreenshotArgs { view: None, size: Some((80, 24)), theme: None, ascii: false };
        assert!(
            check_options(None, &none, &[], true).is_ok()
                && check_options(find_format("svg"), &sized, &[], true).is_ok()
        );
        assert!(check_options(None, &sized, &[], true).unwrap_err().to_string().starts_with("--size is for pictures"));
        let two = [ViewId::Devices, ViewId::Memory];
        assert!(check_options(find_format("svg"), &none, &two, true).unwrap_err().to_string().contains("one --pane"));
        assert!(check_options(None, &none, &two, true).is_ok());
    }
}

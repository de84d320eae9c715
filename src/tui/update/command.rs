//! Commands after `:`.

use super::{actions, prompt};
use crate::jobs::job::WorkerJob;
use crate::tui::effect::Effect;
use crate::tui::state::{App, DetailPage, PathDetail};
use crate::tui::widgets::table::Scroll;
use crate::tui::widgets::theme::ThemeName;

/// Runs a command, or returns what is wrong with it.
pub fn run_command(app: &mut App, text: &str, effects: &mut Vec<Effect>) -> Result<(), String> {
    let (word, rest) = text.split_once(' ').map_or((text, ""), |(w, r)| (w, r.trim()));
    if app.shared.replay.is_some() && matches!(word, "path" | "interval" | "tune" | "syncs") {
        return Err(format!("{word}: {}", crate::tui::views::replay::update::NOT_IN_REPLAY));
    }
    match (word, rest) {
        ("", _) => {}
        ("jump", time) if app.shared.replay.is_some() => {
            crate::tui::views::replay::update::seek_to_typed_time(app, time, effects)?
        }
        ("q" | "quit", "") => crate::tui::views::tune::update::quit_or_ask(app, effects),
        ("tune", knob) => crate::tui::views::tune::update::show_knob(app, knob, effects)?,
        ("path", "") => return Err("path DIR: which directory?".into()),
        ("path", dir) => open_path(app, dir, effects),
        ("syncs", ms) => {
            app.views.syncs.set_threshold(ms)?;
            app.screen.info(format!("syncs that take {} ms are listed one by one", app.views.syncs.threshold_ms));
        }
        ("interval", secs) => actions::set_interval(app, prompt::parse_interval(secs)?, effects),
        ("theme", name) => {
            let names = ThemeName::ALL.map(ThemeName::name).join(", ");
            app.shared.theme_name =
                ThemeName::parse(name).ok_or_else(|| format!("theme \"{name}\": there are {names}"))?;
        }
        ("include", re) => {
            let log = &mut app.views.kernel_log;
            log.set_patterns(Some(re.to_owned()), log.exclude.clone(), &app.shared)?;
        }
        ("exclude", re) => {
            let log = &mut app.views.kernel_log;
            log.set_patterns(log.include.clone(), Some(re.to_owned()), &app.shared)?;
        }
        _ => {
            return Err(format!(
                "\"{text}\" is no command; there are: path DIR, interval S, theme NAME, tune KNOB, syncs MS, include RE, exclude RE, q"
            ));
        }
    }
    Ok(())
}

/// Opens the page of a directory. A child process resolves it, because the file system may hang.
pub fn open_path(app: &mut App, dir: &str, effects: &mut Vec<Effect>) {
    app.screen.detail = Some(DetailPage::Path(Box::new(PathDetail { path: dir.to_owned(), reply: None })));
    app.screen.detail_scroll = Scroll::default();
    effects.push(Effect::RunJob(WorkerJob::ResolvePath { path: dir.to_owned() }));
}

//! A screenshot: what was on the screen when the key was pressed, and the name its file is to get.

use super::draw::render_to_buffer;
use super::layout;
use super::panes::{self, PaneId};
use super::shared::Shared;
use super::state::{App, Overlay};
use super::widgets::theme::ThemeName;
use crate::export::screenshot::colour::{DARK, LIGHT, Palette};
use crate::export::screenshot::{FORMATS, Screenshot, ScreenshotFormat, crop};
use crate::export::table::Table;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Letters of a machine's name that go into a file's.
const MAX_HOST_NAME_LEN: usize = 48;

/// What is to be kept of screenshots, and the one that is being named.
#[derive(Debug, Default)]
pub struct ScreenshotState {
    /// Place in [`FORMS`] of the form chosen last.
    pub format_index: usize,
    /// Where files go; empty: where the program was started.
    pub directory: String,
    /// Taken, and not written yet.
    pub pending: Option<Box<ScreenCapture>>,
}

/// A moment of the screen.
#[derive(Debug, PartialEq)]
pub struct ScreenCapture {
    /// All cells.
    cells: Buffer,
    /// The pane that had the keys, and its place.
    pane: (PaneId, Rect),
    /// The tables of all panes; that of the pane comes first.
    tables: Vec<Table>,
    palette: &'static Palette,
    host: String,
    /// When, for people and for the file's name.
    timestamp: String,
    file_timestamp: String,
    /// Only the pane is wanted.
    pub pane_only: bool,
    /// What lay over the view.
    pub overlay: Option<Overlay>,
}

impl ScreenshotState {
    /// The form chosen last.
    pub fn format(&self) -> &'static ScreenshotFormat {
        &FORMATS[self.format_index.min(FORMATS.len() - 1)]
    }

    /// Takes over a form by its name.
    pub fn select_format(&mut self, name: &str) {
        self.format_index = FORMATS.iter().position(|f| f.name == name).unwrap_or(self.format_index);
    }

    /// A file's name with the directory before it.
    pub fn path_for(&self, name: &str) -> String {
        match self.directory.trim_end_matches('/') {
            "" | "." => name.to_owned(),
            directory => format!("{directory}/{name}"),
        }
    }
}

/// The ground that pictures of this screen stand on.
fn palette_for(shared: &Shared) -> &'static Palette {
    if shared.theme_name == ThemeName::Light && !shared.no_color { &LIGHT } else { &DARK }
}

impl ScreenCapture {
    /// The screen as it is, with whatever lies over it.
    pub fn new(app: &App) -> Self {
        let cells = render_to_buffer(app);
        let (arranged, pane) = (layout::compute_layout(app), app.focused_pane());
        let others = arranged.panes.iter().map(|p| p.0).filter(|id| *id != pane);
        let mut sheets: Vec<Table> = Vec::new();
        for id in std::iter::once(pane).chain(others) {
            let sheet = panes::table(app, id);
            // Graphs have the table of what they show.
            if !sheets.contains(&sheet) {
                sheets.push(sheet);
            }
        }
        let wall_ns = app.shared.snapshot().time.wall_ns;
        let local = wall_ns.saturating_add(app.shared.utc_offset_secs.saturating_mul(1_000_000_000));
        let digits = crate::units::format_rfc3339(local);
        Self {
            pane: (pane, arranged.pane_area(pane).unwrap_or(cells.area)),
            cells,
            tables: sheets,
            palette: palette_for(&app.shared),
            host: app.shared.system.host.name.clone(),
            timestamp: crate::units::format_rfc3339(wall_ns),
            file_timestamp: digits.chars().take(19).filter(|c| !matches!(c, '-' | ':')).collect(),
            pane_only: false,
            overlay: None,
        }
    }

    /// What is wanted, in a word.
    pub fn subject(&self) -> &'static str {
        if self.pane_only { self.pane.0.file_name_part() } else { "screen" }
    }

    /// A name that sorts: machine, pane, time of what is shown.
    pub fn file_name(&self, form: &ScreenshotFormat) -> String {
        format!("{}-{}-{}.{}", sanitize_file_name(&self.host), self.subject(), self.file_timestamp, form.extension)
    }

    /// What is wanted, ready to be written.
    pub fn to_screenshot(&self) -> Screenshot {
        let (cells, sheets) = match self.pane_only {
            true => (crop(&self.cells, self.pane.1), self.tables[..1].to_vec()),
            false => (self.cells.clone(), self.tables.clone()),
        };
        let title = format!("iotop-plus on {}, {}, {}", self.host, self.subject(), self.timestamp);
        Screenshot {
            title: crate::sanitize::sanitize(title),
            cells,
            tables: sheets,
            is_single_pane: self.pane_only,
            palette: self.palette,
        }
    }
}

/// A word for a file's name: nothing a shell or a file system could take amiss.
fn sanitize_file_name(text: &str) -> String {
    let fine = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' };
    let word: String = text.chars().map(fine).take(MAX_HOST_NAME_LEN).collect();
    match word.trim_start_matches(['.', '-']) {
        "" => "host".into(),
        word => word.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_are_sanitized_in_file_names() {
        assert_eq!(sanitize_file_name("node02.example"), "node02.example");
        assert_eq!(sanitize_file_name("../../etc/pass wd\u{1b}[2J"), "_.._etc_pass_wd__2J");
        assert_eq!(
            (sanitize_file_name("--x"), sanitize_file_name(""), sanitize_file_name("写")),
            ("x".into(), "host".into(), "_".into())
        );
        assert_eq!(sanitize_file_name(&"a".repeat(300)).len(), MAX_HOST_NAME_LEN);
    }

    #[test]
    fn configured_directory_precedes_the_file_name() {
        let mut ui = ScreenshotState::default();
        assert_eq!(ui.path_for("a.png"), "a.png");
        ui.directory = "/srv/shots/".into();
        assert_eq!(ui.path_for("a.png"), "/srv/shots/a.png");
        ui.select_format("svg");
        ui.select_format("pdf");
        assert_eq!(ui.format().name, "svg");
    }
}

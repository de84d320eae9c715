//! A screenshot: what was on the screen when the key was pressed, and the name its file is to get.

use super::draw::picture;
use super::layout;
use super::panes::{self, PaneId};
use super::state::{App, Overlay, Ui};
use super::widgets::theme::ThemeName;
use crate::export::table::Table;
use crate::export::screenshot::colour::{DARK, LIGHT, Palette};
use crate::export::screenshot::{FORMATS, ScreenshotFormat, Screenshot, crop};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Letters of a machine's name that go into a file's.
const HOST: usize = 48;

/// What is to be kept of screenshots, and the one that is being named.
#[derive(Debug, Default)]
pub struct ShotUi {
    /// Place in [`FORMS`] of the form chosen last.
    pub form: usize,
    /// Where files go; empty: where the program was started.
    pub directory: String,
    /// Taken, and not written yet.
    pub taken: Option<Box<Taken>>,
}

/// A moment of the screen.
#[derive(Debug, PartialEq)]
pub struct Taken {
    /// All cells.
    cells: Buffer,
    /// The pane that had the keys, and its place.
    pane: (PaneId, Rect),
    /// The tables of all panes; that of the pane comes first.
    sheets: Vec<Table>,
    palette: &'static Palette,
    host: String,
    /// When, for people and for the file's name.
    stamp: String,
    compact: String,
    /// Only the pane is wanted.
    pub alone: bool,
    /// What lay over the view.
    pub over: Option<Overlay>,
}

impl ShotUi {
    /// The form chosen last.
    pub fn form(&self) -> &'static ScreenshotFormat {
        &FORMATS[self.form.min(FORMATS.len() - 1)]
    }

    /// Takes over a form by its name.
    pub fn choose(&mut self, name: &str) {
        self.form = FORMATS.iter().position(|f| f.name == name).unwrap_or(self.form);
    }

    /// A file's name with the directory before it.
    pub fn path(&self, name: &str) -> String {
        match self.directory.trim_end_matches('/') {
            "" | "." => name.to_owned(),
            directory => format!("{directory}/{name}"),
        }
    }
}

/// The ground that pictures of this screen stand on.
fn palette(ui: &Ui) -> &'static Palette {
    if ui.theme_name == ThemeName::Light && !ui.no_color { &LIGHT } else { &DARK }
}

impl Taken {
    /// The screen as it is, with whatever lies over it.
    pub fn of(app: &App) -> Self {
        let cells = picture(app);
        let (arranged, pane) = (layout::arrange(app), app.focused());
        let others = arranged.panes.iter().map(|p| p.0).filter(|id| *id != pane);
        let mut sheets: Vec<Table> = Vec::new();
        for id in std::iter::once(pane).chain(others) {
            let sheet = (panes::pane(id).sheet)(app);
            // Graphs have the table of what they show.
            if !sheets.contains(&sheet) {
                sheets.push(sheet);
            }
        }
        let wall_ns = app.snap().time.wall_ns;
        let local = wall_ns.saturating_add(app.ui.utc_offset_secs.saturating_mul(1_000_000_000));
        let digits = crate::units::format_rfc3339(local);
        Self {
            pane: (pane, arranged.area(pane).unwrap_or(cells.area)),
            cells,
            sheets,
            palette: palette(&app.ui),
            host: app.world.host.name.clone(),
            stamp: crate::units::format_rfc3339(wall_ns),
            compact: digits.chars().take(19).filter(|c| !matches!(c, '-' | ':')).collect(),
            alone: false,
            over: None,
        }
    }

    /// What is wanted, in a word.
    pub fn what(&self) -> &'static str {
        if self.alone { self.pane.0.name() } else { "screen" }
    }

    /// A name that sorts: machine, pane, time of what is shown.
    pub fn name(&self, form: &ScreenshotFormat) -> String {
        format!("{}-{}-{}.{}", file_word(&self.host), self.what(), self.compact, form.extension)
    }

    /// What is wanted, ready to be written.
    pub fn shot(&self) -> Screenshot {
        let (cells, sheets) = match self.alone {
            true => (crop(&self.cells, self.pane.1), self.sheets[..1].to_vec()),
            false => (self.cells.clone(), self.sheets.clone()),
        };
        let title = format!("iotop-plus on {}, {}, {}", self.host, self.what(), self.stamp);
        Screenshot { title: crate::text::sanitize(title), cells, tables: sheets, is_single_pane: self.alone, palette: self.palette }
    }
}

/// A word for a file's name: nothing a shell or a file system could take amiss.
fn file_word(text: &str) -> String {
    let fine = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' };
    let word: String = text.chars().map(fine).take(HOST).collect();
    match word.trim_start_matches(['.', '-']) {
        "" => "host".into(),
        word => word.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_machines_are_harmless_in_file_names() {
        assert_eq!(file_word("node02.example"), "node02.example");
        assert_eq!(file_word("../../etc/pass wd\u{1b}[2J"), "_.._etc_pass_wd__2J");
        assert_eq!(
            (file_word("--x"), file_word(""), file_word("写")),
            ("x".into(), "host".into(), "_".into())
        );
        assert_eq!(file_word(&"a".repeat(300)).len(), HOST);
    }

    #[test]
    fn a_directory_of_ones_own_comes_before_the_name() {
        let mut ui = ShotUi::default();
        assert_eq!(ui.path("a.png"), "a.png");
        ui.directory = "/srv/shots/".into();
        assert_eq!(ui.path("a.png"), "/srv/shots/a.png");
        ui.choose("svg");
        ui.choose("pdf");
        assert_eq!(ui.form().name, "svg");
    }
}

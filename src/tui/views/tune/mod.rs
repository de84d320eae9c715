//! The Tune view: kernel settings and their changes. A thread of the [`runner`] takes each snapshot; the panes only display it.

pub mod cached_knobs;
pub mod change_marks;
pub mod changes;
pub mod knob;
mod lease_thread;
pub mod presets;
pub mod presets_page;
pub mod render;
pub mod runner;
pub mod update;
pub mod value_prompt;

use crate::tui::knob_snapshot::{ActiveLease, ChangeRow, KnobRow, KnobSnapshot};
use crate::tui::widgets::table::Scroll;
use crate::tuning::boot_value::BootValue;
use std::collections::BTreeMap;

use crate::tui::settings::DEFAULT_LEASE_SECS;
/// State of the Tune view.
#[derive(Debug)]
pub struct TuneUi {
    /// The newest snapshot of knobs and changes.
    pub snapshot: Option<KnobSnapshot>,
    /// Whether a snapshot was requested and has not arrived.
    pub is_refreshing: bool,
    /// Ticks since the last request for a snapshot.
    pub ticks_since_refresh: u32,
    /// Values when this program first read them, by knob.
    pub initial_values: BTreeMap<String, String>,
    /// Values after the next boot, by knob.
    pub next_boot: BTreeMap<String, BootValue>,
    /// Notes on what else decides the values after the next boot.
    pub boot_notes: Vec<String>,
    /// Whether the values after the next boot were requested and have not arrived.
    pub is_boot_requested: bool,
    /// Values chosen but not applied, as the kernel takes them, by knob.
    pub pending: BTreeMap<String, String>,
    /// Only knobs that contain this text are listed.
    pub filter: String,
    /// Selection in the list of knobs.
    pub scroll: Scroll,
    /// Selection in the list of changes, newest first.
    pub changes_scroll: Scroll,
    /// Scroll position of the knob's page.
    pub page_scroll: Scroll,
    /// The pane shown beside the list where only one fits.
    pub side_pane: SidePane,
    /// Index of the selected preset while the list of presets is open.
    pub selected_preset: Option<usize>,
    /// The knob being edited.
    pub editing_knob: Option<String>,
    /// A knob to select as soon as it is listed.
    pub knob_to_select: Option<String>,
    /// Assignments being applied, `KNOB=VALUE` each.
    pub applying: Vec<String>,
    /// Meaning of the text typed so far, or why it is invalid.
    pub preview: Result<String, String>,
    /// Why the last request was refused; cleared by the next key.
    pub error: Option<String>,
    /// What the tuner is doing, while it applies a change.
    pub busy_with: Option<String>,
    /// Leased changes of this screen.
    pub leases: Vec<ActiveLease>,
    /// When changes ended, as far as this screen observed it, CLOCK_BOOTTIME in ns.
    pub ended_boot_ns: BTreeMap<u64, u64>,
    /// Length of a lease, seconds.
    pub lease_secs: u64,
    /// Knobs listed on request, beside those always listed.
    pub extra_knobs: Vec<String>,
    /// Whether restoring orphaned changes has been offered.
    pub is_restore_offered: bool,
    /// Whether the program quits once it holds no lease.
    pub is_quitting: bool,
}

impl Default for TuneUi {
    fn default() -> Self {
        Self {
            snapshot: None,
            // The runner takes the first snapshot without being asked.
            is_refreshing: true,
            ticks_since_refresh: 0,
            initial_values: BTreeMap::new(),
            next_boot: BTreeMap::new(),
            boot_notes: Vec::new(),
            is_boot_requested: false,
            pending: BTreeMap::new(),
            filter: String::new(),
            scroll: Scroll::default(),
            changes_scroll: Scroll::default(),
            page_scroll: Scroll::default(),
            side_pane: SidePane::default(),
            selected_preset: None,
            editing_knob: None,
            knob_to_select: None,
            applying: Vec::new(),
            preview: Ok(String::new()),
            error: None,
            busy_with: None,
            leases: Vec::new(),
            ended_boot_ns: BTreeMap::new(),
            lease_secs: DEFAULT_LEASE_SECS,
            extra_knobs: Vec::new(),
            is_restore_offered: false,
            is_quitting: false,
        }
    }
}

/// The pane beside the list where there is room for only one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SidePane {
    /// The selected knob.
    #[default]
    Knob,
    /// The changes.
    Changes,
}

/// A line in the list of knobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnobListLine {
    /// The heading above the row with this index.
    Heading(usize),
    /// The row with this index.
    Knob(usize),
}

impl TuneUi {
    /// All knobs.
    pub fn rows(&self) -> &[KnobRow] {
        self.snapshot.as_ref().map(|s| s.rows.as_slice()).unwrap_or_default()
    }

    /// All changes of this boot, newest first.
    pub fn changes(&self) -> &[ChangeRow] {
        self.snapshot.as_ref().map(|s| s.changes.as_slice()).unwrap_or_default()
    }

    /// Why the changes of this boot could not be read.
    pub fn changes_error(&self) -> Option<&str> {
        self.snapshot.as_ref()?.changes_error.as_deref()
    }

    /// The selected change.
    pub fn selected_change(&self) -> Option<&ChangeRow> {
        let all = self.changes();
        all.get(self.changes_scroll.selected.min(all.len().saturating_sub(1)))
    }

    /// The lines of the list: knobs that match the filter, below their headings.
    pub fn list_lines(&self) -> Vec<KnobListLine> {
        let mut out = Vec::new();
        let mut head = None;
        for (i, row) in self.rows().iter().enumerate() {
            if !row.display_name.contains(&self.filter) && !row.heading.contains(&self.filter) {
                continue;
            }
            if head != Some(&row.heading) {
                head = Some(&row.heading);
                out.push(KnobListLine::Heading(i));
            }
            out.push(KnobListLine::Knob(i));
        }
        out
    }

    /// The selected knob. A heading stands for the first knob below it.
    pub fn selected_knob(&self) -> Option<&KnobRow> {
        let lines = self.list_lines();
        match lines.get(self.scroll.selected.min(lines.len().saturating_sub(1)))? {
            KnobListLine::Heading(i) | KnobListLine::Knob(i) => self.rows().get(*i),
        }
    }

    /// The knob of that name.
    pub fn knob(&self, name: &str) -> Option<&KnobRow> {
        self.rows().iter().find(|r| r.name == name)
    }

    /// The pending assignments, `KNOB=VALUE` each, in the order of the list.
    pub fn pending_assignments(&self) -> Vec<String> {
        let one = |r: &KnobRow| self.pending.get(&r.name).map(|v| format!("{}={v}", r.name));
        self.rows().iter().filter_map(one).collect()
    }

    /// Whether a change that is in effect set this knob.
    pub fn is_changed(&self, name: &str) -> bool {
        self.changes().iter().any(|c| c.members.iter().any(|m| m.outcome.is_none() && m.name == name))
    }
}

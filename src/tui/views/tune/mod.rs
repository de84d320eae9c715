//! State, actions, effects and events of the Tune view.
//!
//! A thread of the [`runner`] takes each [`knob_snapshot`]; the panes only display it.

pub mod cached_knobs;
pub mod change_marks;
pub mod changes;
pub mod knob;
pub mod knob_snapshot;
mod lease_thread;
pub mod presets;
pub mod presets_page;
pub mod render;
pub mod runner;
pub mod update;
pub mod value_prompt;

use crate::tui::widgets::table::Scroll;
use crate::tuning::boot_value::BootValue;
use knob_snapshot::{ChangeRow, KnobRow, KnobSnapshot};
use std::collections::BTreeMap;

/// Default length of a lease, seconds.
pub const DEFAULT_LEASE_SECS: u64 = 120;

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

/// A change of this screen that reverts itself when its lease ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveLease {
    /// Number of the change.
    pub id: u64,
    /// Seconds until it is reverted.
    pub secs_left: u64,
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

/// An action in the Tune view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TuneAction {
    /// Ask to apply the pending values.
    Apply,
    /// Open or close the list of presets.
    Presets,
    /// Discard all pending values.
    Discard,
    /// Keep a leased change.
    Keep,
    /// Ask to revert a change.
    Undo,
    /// Restart a lease.
    Renew,
    /// Ask for the length of leases.
    Lease,
    /// Ask to persist a value across boots.
    Persist,
    /// Go to the graph of what the knob affects.
    Graph,
    /// Go to the changes.
    Changes,
    /// Go to the knob's page.
    KnobPage,
    /// Show the knobs of the process whose page is open.
    TaskKnobs,
    /// Quit and revert leased changes.
    QuitUndo,
    /// Quit and keep leased changes.
    QuitKeep,
    /// Quit and let the leases run out.
    QuitDetach,
}

/// What a dialog of the Tune view asks to confirm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confirmation {
    /// Apply these assignments on a lease.
    Apply(Vec<String>),
    /// Apply these assignments without a lease.
    ApplyPermanent(Vec<String>),
    /// Revert these changes.
    Undo(Vec<u64>),
    /// Write these assignments into the files of this program, or remove them.
    Persist {
        /// `KNOB=VALUE`, or `KNOB` to remove.
        assignments: Vec<String>,
        /// Whether to remove.
        remove: bool,
    },
    /// Copy the command that does it as root.
    CopyCommand(String),
    /// Quit with leased changes; three keys answer.
    Quit,
}

impl Confirmation {
    /// The keys that answer, for the footer of the dialog.
    pub fn key_hints(&self) -> &'static str {
        match self {
            Confirmation::Quit => "u Undo  k Keep  l Let the lease run out  Esc Stay",
            Confirmation::CopyCommand(_) => "y Copy  n No",
            _ => "y Yes  n No",
        }
    }
}

/// Work for the runner of the Tune view.
#[derive(Debug, Clone, PartialEq)]
pub enum TuneEffect {
    /// Take a snapshot of all knobs and of these.
    Refresh(Vec<String>),
    /// Apply a change on a lease.
    Apply {
        /// `KNOB=VALUE` each.
        assignments: Vec<String>,
        /// Length of the lease, seconds.
        lease_secs: u64,
    },
    /// Apply a change without a lease.
    ApplyPermanent(Vec<String>),
    /// Keep changes.
    Keep(Vec<u64>),
    /// Restart a lease.
    Renew {
        /// Number of the change.
        id: u64,
        /// New length from now, seconds.
        secs: u64,
    },
    /// Revert changes.
    Undo(Vec<u64>),
    /// Let leases run on without this program.
    Detach(Vec<u64>),
}

/// An event of the Tune view.
#[derive(Debug)]
pub enum TuneEvent {
    /// A new snapshot.
    Refreshed(KnobSnapshot),
    /// A change was applied.
    Applied {
        /// Number of the change.
        id: u64,
        /// Length of its lease, seconds; `None` if all values were set already.
        lease_secs: Option<u64>,
    },
    /// A change was applied without a lease.
    AppliedPermanently(u64),
    /// A change was refused; says why.
    Refused(String),
    /// Time left of a lease.
    LeaseTime {
        /// Number of the change.
        id: u64,
        /// Seconds left.
        secs_left: u64,
        /// Whether the lease was restarted on request.
        was_renewed: bool,
    },
    /// A change was kept.
    Kept(u64),
    /// A lease runs on without this program.
    Detached(u64),
    /// A change was reverted.
    Undone {
        /// Number of the change.
        id: u64,
        /// Time of the revert, CLOCK_BOOTTIME in ns.
        boot_ns: u64,
        /// Whether the lease ran out.
        was_automatic: bool,
        /// Outcome for each knob, sanitized.
        lines: Vec<String>,
        /// Whether all old values are back.
        is_fully_restored: bool,
        /// Whether nothing is left to revert.
        is_closed: bool,
    },
    /// The tuner of a lease ended without a report.
    TunerLost(u64),
    /// A request about a change failed.
    Failed(String),
}

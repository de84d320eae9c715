//! The Tune view's state, what a person can mean in it, what it wants done and what it is told.
//!
//! Rows are made by [`survey`] on a thread of the [`runner`]; the panes only show them.

pub mod cached_knobs;
pub mod change_marks;
pub mod knob_snapshot;
mod lease_thread;
pub mod presets;
pub mod runner;

use super::widgets::table::Scroll;
use crate::tuning::boot_value::BootValue;
use knob_snapshot::{ChangeRow, KnobRow, KnobSnapshot};
use std::collections::BTreeMap;

/// Seconds of a lease unless the settings say otherwise.
pub const DEFAULT_LEASE_SECS: u64 = 120;

/// State of the Tune view.
#[derive(Debug)]
pub struct TuneUi {
    /// The newest look at knobs and changes.
    pub snapshot: Option<KnobSnapshot>,
    /// A look was asked for and has not come.
    pub is_refreshing: bool,
    /// Ticks since the last look.
    pub ticks_since_refresh: u32,
    /// Values when this program first saw them, by knob.
    pub initial_values: BTreeMap<String, String>,
    /// What the next boot brings, by knob.
    pub next_boot: BTreeMap<String, BootValue>,
    /// What else has a say in that.
    pub boot_notes: Vec<String>,
    /// That was asked for and has not come.
    pub is_boot_requested: bool,
    /// Values the person wants, as the kernel wants them, by knob.
    pub pending: BTreeMap<String, String>,
    /// Knobs must contain this.
    pub filter: String,
    /// Selection among the lines of the list.
    pub scroll: Scroll,
    /// Selection among the changes, newest first.
    pub changes_scroll: Scroll,
    /// Lines of the knob's page that are passed over.
    pub page_scroll: Scroll,
    /// Which pane is there where only one fits beside the list.
    pub side_pane: SidePane,
    /// The list of presets is open, with this one selected.
    pub selected_preset: Option<usize>,
    /// The knob that is edited.
    pub editing_knob: Option<String>,
    /// A knob to select as soon as it is in the list.
    pub knob_to_select: Option<String>,
    /// What was sent to be made, `KNOB=VALUE` each.
    pub applying: Vec<String>,
    /// What the text typed so far comes to.
    pub preview: Result<String, String>,
    /// Why the last request was refused; until the next key.
    pub error: Option<String>,
    /// A change is being made or unmade.
    pub busy_with: Option<String>,
    /// Changes of this screen that are on lease.
    pub leases: Vec<ActiveLease>,
    /// When changes ended as far as this screen saw it, CLOCK_BOOTTIME in ns.
    pub ended_boot_ns: BTreeMap<u64, u64>,
    /// Seconds a lease gets.
    pub lease_secs: u64,
    /// Knobs the person asked for beside those that are always listed.
    pub extra_knobs: Vec<String>,
    /// What was left behind has been offered for restoring.
    pub is_restore_offered: bool,
    /// The program ends as soon as no lease hangs on it.
    pub is_quitting: bool,
}

impl Default for TuneUi {
    fn default() -> Self {
        Self {
            snapshot: None,
            // The runner takes a look by itself when it starts.
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

/// The pane beside the list where there is room for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SidePane {
    /// The selected knob.
    #[default]
    Knob,
    /// The changes.
    Changes,
}

/// A change of this screen that undoes itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveLease {
    /// The change's number.
    pub id: u64,
    /// Seconds until the old values come back.
    pub secs_left: u64,
}

/// A line of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnobListLine {
    /// The heading above the row of that index.
    Heading(usize),
    /// The row of that index.
    Knob(usize),
}

impl TuneUi {
    /// All rows.
    pub fn rows(&self) -> &[KnobRow] {
        self.snapshot.as_ref().map(|s| s.rows.as_slice()).unwrap_or_default()
    }

    /// All changes of this boot, newest first.
    pub fn changes(&self) -> &[ChangeRow] {
        self.snapshot.as_ref().map(|s| s.changes.as_slice()).unwrap_or_default()
    }

    /// Why the changes of this boot are not known.
    pub fn changes_error(&self) -> Option<&str> {
        self.snapshot.as_ref()?.changes_error.as_deref()
    }

    /// The change that is selected.
    pub fn selected_change(&self) -> Option<&ChangeRow> {
        let all = self.changes();
        all.get(self.changes_scroll.selected.min(all.len().saturating_sub(1)))
    }

    /// The list as it is shown: rows that match, under their headings.
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

    /// The knob that is selected. A heading stands for the first knob below it.
    pub fn selected_knob(&self) -> Option<&KnobRow> {
        let lines = self.list_lines();
        match lines.get(self.scroll.selected.min(lines.len().saturating_sub(1)))? {
            KnobListLine::Heading(i) | KnobListLine::Knob(i) => self.rows().get(*i),
        }
    }

    /// The row of that knob.
    pub fn knob(&self, name: &str) -> Option<&KnobRow> {
        self.rows().iter().find(|r| r.name == name)
    }

    /// What is proposed, `KNOB=VALUE` each, in the order of the list.
    pub fn pending_assignments(&self) -> Vec<String> {
        let one = |r: &KnobRow| self.pending.get(&r.name).map(|v| format!("{}={v}", r.name));
        self.rows().iter().filter_map(one).collect()
    }

    /// Whether a change of ours that stands moved this knob.
    pub fn is_changed(&self, name: &str) -> bool {
        self.changes().iter().any(|c| c.members.iter().any(|m| m.outcome.is_none() && m.name == name))
    }
}

/// A request in the Tune view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TuneAction {
    /// Apply what is proposed.
    Apply,
    /// Open or close the list of presets.
    Presets,
    /// Drop every proposal.
    Discard,
    /// Let a change stay.
    Keep,
    /// Take a change back.
    Undo,
    /// Start a lease anew.
    Renew,
    /// Ask how long leases are to be.
    Lease,
    /// Make a value last over a boot.
    Persist,
    /// To the graph of what the knob steers.
    Graph,
    /// To the changes.
    Changes,
    /// To the knob's page.
    KnobPage,
    /// The knobs of the process whose detail is open.
    TaskKnobs,
    /// Leave: take back what is on lease.
    QuitUndo,
    /// Leave: let stay what is on lease.
    QuitKeep,
    /// Leave: the leases go on and run out.
    QuitDetach,
}

/// What a question of the Tune view asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confirmation {
    /// Make this change.
    Apply(Vec<String>),
    /// Make this change, without a lease.
    ApplyPermanent(Vec<String>),
    /// Take these changes back.
    Undo(Vec<u64>),
    /// Write into our files (or take out of them) what these words say.
    Persist {
        /// `KNOB=VALUE`, or `KNOB` to take out.
        assignments: Vec<String>,
        /// Take out.
        remove: bool,
    },
    /// Copy the command that does it as root.
    CopyCommand(String),
    /// Leave while changes are on lease; three keys answer.
    Quit,
}

impl Confirmation {
    /// The keys that answer.
    pub fn key_hints(&self) -> &'static str {
        match self {
            Confirmation::Quit => "u undo it now   k keep it   l let the lease run out   Esc stay",
            Confirmation::CopyCommand(_) => "y copy the line   n leave it",
            _ => "y do it   n leave it",
        }
    }
}

/// What the run loop is to do for the Tune view.
#[derive(Debug, Clone, PartialEq)]
pub enum TuneEffect {
    /// Look at all knobs and these.
    Refresh(Vec<String>),
    /// Make a change.
    Apply {
        /// `KNOB=VALUE` each.
        assignments: Vec<String>,
        /// Seconds until it undoes itself.
        lease_secs: u64,
    },
    /// Make a change that stays.
    ApplyPermanent(Vec<String>),
    /// Let changes stay.
    Keep(Vec<u64>),
    /// Start a lease anew.
    Renew {
        /// Change.
        id: u64,
        /// From now.
        secs: u64,
    },
    /// Take changes back.
    Undo(Vec<u64>),
    /// Let leases go on without this program.
    Detach(Vec<u64>),
}

/// What comes back.
#[derive(Debug)]
pub enum TuneEvent {
    /// A look at everything.
    Refreshed(KnobSnapshot),
    /// A change was made.
    Applied {
        /// Its number.
        id: u64,
        /// Seconds of its lease; `None`: all values stood so already.
        lease_secs: Option<u64>,
    },
    /// A change was made, and stays.
    AppliedPermanently(u64),
    /// A change was not made: why.
    Refused(String),
    /// Seconds a lease has left.
    LeaseTime {
        /// Change.
        id: u64,
        /// Seconds.
        secs_left: u64,
        /// The person asked for it: the lease was started anew.
        was_renewed: bool,
    },
    /// A change stays.
    Kept(u64),
    /// A lease goes on without us.
    Detached(u64),
    /// A change was taken back.
    Undone {
        /// Its number.
        id: u64,
        /// When, CLOCK_BOOTTIME in ns.
        boot_ns: u64,
        /// Nobody asked: the lease was over.
        was_automatic: bool,
        /// What became of each knob, cleaned.
        lines: Vec<String>,
        /// Every old value is back.
        is_fully_restored: bool,
        /// Nothing of it is left to be taken back.
        is_closed: bool,
    },
    /// The process that held a lease is gone without a word.
    TunerLost(u64),
    /// A request about a change failed.
    Failed(String),
}

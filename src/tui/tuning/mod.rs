//! The Tune view's state, what a person can mean in it, what it wants done and what it is told.
//!
//! Rows are made by [`survey`] on a thread of the [`runner`]; the panes only show them.

mod hold;
pub mod known;
pub mod marks;
pub mod presets;
pub mod runner;
pub mod survey;

use super::widgets::table::Scroll;
use crate::tune::at_boot::AtBoot;
use std::collections::BTreeMap;
use survey::{ChangeRow, Row, Survey};

/// Seconds of a lease unless the settings say otherwise.
pub const LEASE: u64 = 120;

/// State of the Tune view.
#[derive(Debug)]
pub struct TuneUi {
    /// The newest look at knobs and changes.
    pub survey: Option<Survey>,
    /// A look was asked for and has not come.
    pub looking: bool,
    /// Ticks since the last look.
    pub ticks: u32,
    /// Values when this program first saw them, by knob.
    pub start: BTreeMap<String, String>,
    /// What the next boot brings, by knob.
    pub boot: BTreeMap<String, AtBoot>,
    /// What else has a say in that.
    pub boot_notes: Vec<String>,
    /// That was asked for and has not come.
    pub boot_asked: bool,
    /// Values the person wants, as the kernel wants them, by knob.
    pub proposed: BTreeMap<String, String>,
    /// Knobs must contain this.
    pub filter: String,
    /// Selection among the lines of the list.
    pub scroll: Scroll,
    /// Selection among the changes, newest first.
    pub changes: Scroll,
    /// Lines of the knob's page that are passed over.
    pub page: Scroll,
    /// Which pane is there where only one fits beside the list.
    pub lower: Lower,
    /// The list of presets is open, with this one selected.
    pub presets: Option<usize>,
    /// The knob that is edited.
    pub editing: Option<String>,
    /// A knob to select as soon as it is in the list.
    pub wanted: Option<String>,
    /// What was sent to be made, `KNOB=VALUE` each.
    pub applying: Vec<String>,
    /// What the text typed so far comes to.
    pub preview: Result<String, String>,
    /// Why the last request was refused; until the next key.
    pub problem: Option<String>,
    /// A change is being made or unmade.
    pub busy: Option<String>,
    /// Changes of this screen that are on lease.
    pub leases: Vec<Lease>,
    /// When changes ended as far as this screen saw it, CLOCK_BOOTTIME in ns.
    pub ended: BTreeMap<u64, u64>,
    /// Seconds a lease gets.
    pub lease_secs: u64,
    /// Knobs the person asked for beside those that are always listed.
    pub extra: Vec<String>,
    /// What was left behind has been offered for restoring.
    pub offered: bool,
    /// The program ends as soon as no lease hangs on it.
    pub leaving: bool,
}

impl Default for TuneUi {
    fn default() -> Self {
        Self {
            survey: None,
            // The runner takes a look by itself when it starts.
            looking: true,
            ticks: 0,
            start: BTreeMap::new(),
            boot: BTreeMap::new(),
            boot_notes: Vec::new(),
            boot_asked: false,
            proposed: BTreeMap::new(),
            filter: String::new(),
            scroll: Scroll::default(),
            changes: Scroll::default(),
            page: Scroll::default(),
            lower: Lower::default(),
            presets: None,
            editing: None,
            wanted: None,
            applying: Vec::new(),
            preview: Ok(String::new()),
            problem: None,
            busy: None,
            leases: Vec::new(),
            ended: BTreeMap::new(),
            lease_secs: LEASE,
            extra: Vec::new(),
            offered: false,
            leaving: false,
        }
    }
}

/// The pane beside the list where there is room for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lower {
    /// The selected knob.
    #[default]
    Knob,
    /// The changes.
    Changes,
}

/// A change of this screen that undoes itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The change's number.
    pub id: u64,
    /// Seconds until the old values come back.
    pub left: u64,
}

/// A line of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// The heading above the row of that index.
    Head(usize),
    /// The row of that index.
    Knob(usize),
}

impl TuneUi {
    /// All rows.
    pub fn rows(&self) -> &[Row] {
        self.survey.as_ref().map(|s| s.rows.as_slice()).unwrap_or_default()
    }

    /// All changes of this boot, newest first.
    pub fn changes(&self) -> &[ChangeRow] {
        self.survey.as_ref().map(|s| s.changes.as_slice()).unwrap_or_default()
    }

    /// Why the changes of this boot are not known.
    pub fn trouble(&self) -> Option<&str> {
        self.survey.as_ref()?.trouble.as_deref()
    }

    /// The change that is selected.
    pub fn selected_change(&self) -> Option<&ChangeRow> {
        let all = self.changes();
        all.get(self.changes.selected.min(all.len().saturating_sub(1)))
    }

    /// The list as it is shown: rows that match, under their headings.
    pub fn lines(&self) -> Vec<Line> {
        let mut out = Vec::new();
        let mut head = None;
        for (i, row) in self.rows().iter().enumerate() {
            if !row.shown.contains(&self.filter) && !row.heading.contains(&self.filter) {
                continue;
            }
            if head != Some(&row.heading) {
                head = Some(&row.heading);
                out.push(Line::Head(i));
            }
            out.push(Line::Knob(i));
        }
        out
    }

    /// The knob that is selected. A heading stands for the first knob below it.
    pub fn selected(&self) -> Option<&Row> {
        let lines = self.lines();
        match lines.get(self.scroll.selected.min(lines.len().saturating_sub(1)))? {
            Line::Head(i) | Line::Knob(i) => self.rows().get(*i),
        }
    }

    /// The row of that knob.
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows().iter().find(|r| r.name == name)
    }

    /// What is proposed, `KNOB=VALUE` each, in the order of the list.
    pub fn proposed_words(&self) -> Vec<String> {
        let one = |r: &Row| self.proposed.get(&r.name).map(|v| format!("{}={v}", r.name));
        self.rows().iter().filter_map(one).collect()
    }

    /// Whether a change of ours that stands moved this knob.
    pub fn is_changed(&self, name: &str) -> bool {
        self.changes().iter().any(|c| c.members.iter().any(|m| m.closed.is_none() && m.name == name))
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
    Drop,
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
    About,
    /// The knobs of the process whose detail is open.
    OfTask,
    /// Leave: take back what is on lease.
    LeaveUndo,
    /// Leave: let stay what is on lease.
    LeaveKeep,
    /// Leave: the leases go on and run out.
    LeaveLease,
}

/// What a question of the Tune view asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// Make this change.
    Apply(Vec<String>),
    /// Make this change, without a lease.
    Settle(Vec<String>),
    /// Take these changes back.
    Undo(Vec<u64>),
    /// Write into our files (or take out of them) what these words say.
    Persist {
        /// `KNOB=VALUE`, or `KNOB` to take out.
        words: Vec<String>,
        /// Take out.
        out: bool,
    },
    /// Copy the command that does it as root.
    Copy(String),
    /// Leave while changes are on lease; three keys answer.
    Leave,
}

impl Ask {
    /// The keys that answer.
    pub fn answers(&self) -> &'static str {
        match self {
            Ask::Leave => "u undo it now   k keep it   l let the lease run out   Esc stay",
            Ask::Copy(_) => "y copy the line   n leave it",
            _ => "y do it   n leave it",
        }
    }
}

/// What the run loop is to do for the Tune view.
#[derive(Debug, Clone, PartialEq)]
pub enum TuneEffect {
    /// Look at all knobs and these.
    Survey(Vec<String>),
    /// Make a change.
    Apply {
        /// `KNOB=VALUE` each.
        words: Vec<String>,
        /// Seconds until it undoes itself.
        lease_secs: u64,
    },
    /// Make a change that stays.
    Settle(Vec<String>),
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
pub enum TuneNews {
    /// A look at everything.
    Survey(Survey),
    /// A change was made.
    Applied {
        /// Its number.
        id: u64,
        /// Seconds of its lease; `None`: all values stood so already.
        lease_secs: Option<u64>,
    },
    /// A change was made, and stays.
    Settled(u64),
    /// A change was not made: why.
    Refused(String),
    /// Seconds a lease has left.
    Left {
        /// Change.
        id: u64,
        /// Seconds.
        secs: u64,
        /// The person asked for it: the lease was started anew.
        renewed: bool,
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
        by_itself: bool,
        /// What became of each knob, cleaned.
        lines: Vec<String>,
        /// Every old value is back.
        clean: bool,
        /// Nothing of it is left to be taken back.
        over: bool,
    },
    /// The process that held a lease is gone without a word.
    Lost(u64),
    /// A request about a change failed.
    Failed(String),
}

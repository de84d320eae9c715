//! Moving within the view and to other views: panes, requested knobs, graphs, experiments.

use super::{KnobListLine, TuneView};
use crate::tui::knob_snapshot::device_of;
use crate::tui::view::{Context, ExperimentArm, Outbox, PaneId, Request, Target, ViewId};
use crate::tui::widgets::Scroll;
use crate::tuning::presets::PRESETS;

const MAX_EXTRA_KNOBS: usize = 32;

impl TuneView {
    /// The panes that fit, in focus order.
    pub(super) fn visible_panes(&self, (width, height): (u16, u16)) -> Vec<PaneId> {
        let side = if self.shows_changes { PaneId::ChangeHistory } else { PaneId::KnobPage };
        match (self.selected_preset, width >= 110 && height >= 28) {
            (Some(_), _) => vec![PaneId::TuneKnobs],
            (None, true) => vec![PaneId::TuneKnobs, PaneId::KnobPage, PaneId::ChangeHistory],
            (None, false) => vec![PaneId::TuneKnobs, side],
        }
    }

    /// Moves the selection off a heading in the direction of the step; at the top, downward.
    pub(super) fn skip_heading(&mut self, by: isize) {
        let lines = self.list_lines();
        if let Some(KnobListLine::Heading(_)) = lines.get(self.scroll.selected) {
            let up = by < 0 && self.scroll.selected > 0;
            self.scroll.move_selection(if up { -1 } else { 1 }, lines.len());
        }
        self.page_scroll = Scroll::default();
    }

    pub(super) fn filter_list(&mut self, text: &str) {
        text.clone_into(&mut self.filter);
        self.scroll = Scroll::default();
        self.skip_heading(1);
    }

    pub(super) fn show_side_pane(&mut self, pane: PaneId, out: &mut Outbox) {
        self.selected_preset = None;
        self.shows_changes = pane == PaneId::ChangeHistory;
        out.request(Request::ShowPane(pane));
    }

    /// Shows the tab with the first of these knobs selected, and adds to the list those not always listed.
    pub(super) fn show_knobs(&mut self, knobs: &[String], out: &mut Outbox) {
        for knob in knobs {
            if self.knobs.knob(knob).is_none() && !self.extra_knobs.contains(knob) {
                self.extra_knobs.push(knob.clone());
                let over = self.extra_knobs.len().saturating_sub(MAX_EXTRA_KNOBS);
                self.extra_knobs.drain(..over);
            }
        }
        self.knob_to_select = knobs.first().cloned();
        self.filter.clear();
        self.selected_preset = None;
        // A snapshot under way does not contain them.
        self.has_snapshot_arrived = true;
        self.select_requested_knob();
        out.navigate(Target::Tab(ViewId::Tune));
    }

    /// Selects the requested knob once it is listed.
    pub(super) fn select_requested_knob(&mut self) {
        let Some(name) = &self.knob_to_select else { return };
        let is_requested =
            |line: &KnobListLine| matches!(line, KnobListLine::Knob(i) if self.knobs.rows()[*i].name == *name);
        if let Some(at) = self.list_lines().iter().position(is_requested) {
            self.scroll.selected = at;
            self.knob_to_select = None;
        }
    }

    /// Goes to the graphs of what the selected knob or change affects.
    pub(super) fn show_graph(&mut self, cx: &Context, out: &mut Outbox) {
        let selected = match cx.focused {
            PaneId::ChangeHistory => self.selected_change().and_then(|c| c.members.first()).map(|m| &m.knob),
            _ => self.selected_knob().map(|row| &row.id),
        };
        let Some(knob) = selected else { return };
        let id = device_of(knob).and_then(|d| Some(cx.shared.system.topology.ok()?.by_name(d)?.id));
        let name = knob.to_string();
        let is_of_process = ["nofile@", "ioprio@"].iter().any(|p| name.starts_with(p));
        if let Some(id) = id {
            // Latency for knobs that order requests, bandwidth for knobs that size them.
            let orders_requests = ["scheduler", "nr_requests", "wbt_lat"].iter().any(|k| name.starts_with(k));
            out.navigate(Target::DeviceGraph(id, if orders_requests { 2 } else { 0 }));
        } else if is_of_process {
            self.error = Some("process limits have no graph".into());
        } else {
            let is_of_mount = name.starts_with("atime@");
            out.navigate(Target::Tab(if is_of_mount { ViewId::Devices } else { ViewId::Memory }));
        }
    }

    /// Opens the form of an experiment with what to try: the pending values, those of the selected preset, or the
    /// selected knob's value to be edited.
    pub(super) fn try_pending(&mut self, out: &mut Outbox) {
        match self.arm_to_try() {
            Ok(arm) => {
                self.selected_preset = None;
                out.navigate(Target::Experiments(Some(arm)));
            }
            Err(why) => out.error(why),
        }
    }

    fn arm_to_try(&self) -> Result<ExperimentArm, String> {
        if let Some(at) = self.selected_preset {
            let changes = self.preset_changes(at).map_err(|why| why.to_string())?;
            let assignments: Vec<String> = changes.into_iter().map(|(knob, value)| format!("{knob}={value}")).collect();
            return match assignments.is_empty() {
                true => Err(format!("{}: all values are set already", PRESETS[at].name)),
                false => Ok(ExperimentArm { assignments, edit: false }),
            };
        }
        let assignments = self.pending_assignments();
        if !assignments.is_empty() {
            return Ok(ExperimentArm { assignments, edit: false });
        }
        let row = self.selected_knob().ok_or("the knobs have not been read yet")?;
        match &row.reading {
            Ok(reading) => {
                Ok(ExperimentArm { assignments: vec![format!("{}={}", row.name, reading.value)], edit: true })
            }
            Err(error) => Err(format!("{}: {error}", row.display_name)),
        }
    }
}

//! The Tune view: kernel settings and their changes. A thread of the [`runner`] takes each snapshot; the panes only
//! display it.

mod apply;
mod cached_knobs;
mod changes;
mod edit;
mod events;
mod knob;
mod lease_thread;
mod list;
mod navigate;
mod presets;
pub(crate) mod runner;

use super::detail::scroll_positions;
use crate::export::table::Table;
use crate::jobs::job::WorkerJob;
use crate::model::observation::Change;
use crate::sanitize::sanitize;
use crate::tui::knob_snapshot::{ChangeRow, KnobRow, KnobState};
use crate::tui::view::{
    Action, Context, Effect, Event, ExperimentAction, KeyContext, Outbox, PaneClick, PaneId, PaneSpec, PendingChange,
    Prompt, PromptPurpose, Request, Shared, Target, TuneAction, TuneEffect, View, ViewId, ViewRequest,
};
use crate::tui::widgets::{CellBuffer, Rect, RowSearch, Scroll};
use crate::tuning::boot_value::BootValue;
use crate::tuning::knob_id::KnobId;
use crate::tuning::presets::PRESETS;
use crossterm::event::KeyCode;
use std::collections::BTreeMap;

const KEYS: &[KeyContext] = &[KeyContext::Tune, KeyContext::Scroll];
/// Ticks between two snapshots while the view is on screen.
const REFRESH_TICKS: u32 = 3;

#[derive(Debug, Default)]
pub struct TuneView {
    /// The newest snapshot and this screen's leases, which other views read in [`Shared`].
    pub knobs: KnobState,
    /// Whether the snapshot requested last has arrived. The runner takes the first one without being asked.
    has_snapshot_arrived: bool,
    ticks_since_refresh: u32,
    /// Values when this program first read them, by knob.
    pub(in crate::tui) initial_values: BTreeMap<String, String>,
    /// Values after the next boot, by knob.
    pub next_boot: BTreeMap<String, BootValue>,
    /// Notes on what else decides the values after the next boot.
    pub boot_notes: Vec<String>,
    /// Whether the values after the next boot were requested and have not arrived.
    is_boot_requested: bool,
    /// Values chosen but not applied, as the kernel takes them, by knob.
    pub pending: BTreeMap<String, String>,
    filter: String,
    pub scroll: Scroll,
    /// Selection in the list of changes, newest first.
    pub changes_scroll: Scroll,
    page_scroll: Scroll,
    /// Where only one pane fits beside the list: whether it is that of the changes, not of the knob.
    shows_changes: bool,
    /// Index of the selected preset while the list of presets is open.
    pub selected_preset: Option<usize>,
    editing_knob: Option<String>,
    /// A knob to select as soon as it is listed.
    pub(in crate::tui) knob_to_select: Option<String>,
    /// An assignment typed as a command; asked about as soon as its knob has been read.
    typed_assignment: Option<String>,
    /// Assignments being applied, `KNOB=VALUE` each.
    applying: Vec<String>,
    /// Why the last request was refused; cleared by the next key.
    pub error: Option<String>,
    /// What the tuner is doing, while it applies a change.
    pub(in crate::tui) busy_with: Option<String>,
    /// When changes ended, as far as this screen observed it, CLOCK_BOOTTIME in ns.
    pub(in crate::tui) ended_boot_ns: BTreeMap<u64, u64>,
    /// Knobs listed on request, beside those always listed.
    extra_knobs: Vec<String>,
    /// Whether restoring orphaned changes has been offered.
    is_restore_offered: bool,
    /// Whether the program quits once it holds no lease.
    is_quitting: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KnobListLine {
    /// The heading above the row with this index.
    Heading(usize),
    Knob(usize),
}

impl TuneView {
    fn selected_change(&self) -> Option<&ChangeRow> {
        let all = self.knobs.changes();
        all.get(self.changes_scroll.selected.min(all.len().saturating_sub(1)))
    }

    /// The lines of the list: knobs that match the filter, below their headings.
    fn list_lines(&self) -> Vec<KnobListLine> {
        let mut out = Vec::new();
        let mut head = None;
        for (i, row) in self.knobs.rows().iter().enumerate() {
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
            KnobListLine::Heading(i) | KnobListLine::Knob(i) => self.knobs.rows().get(*i),
        }
    }

    /// The pending assignments, `KNOB=VALUE` each, in the order of the list.
    fn pending_assignments(&self) -> Vec<String> {
        let one = |r: &KnobRow| self.pending.get(&r.name).map(|v| format!("{}={v}", r.name));
        self.knobs.rows().iter().filter_map(one).collect()
    }

    /// Times at which knobs were changed or changed back, CLOCK_BOOTTIME in ns.
    fn change_times(&self) -> impl Iterator<Item = u64> + '_ {
        self.knobs.changes().iter().filter_map(|c| c.boot_ns).chain(self.ended_boot_ns.values().copied())
    }

    /// Requests a snapshot, unless one is under way.
    fn request_refresh(&mut self, out: &mut Outbox) {
        if std::mem::take(&mut self.has_snapshot_arrived) {
            self.ticks_since_refresh = 0;
            out.push(Effect::Tune(TuneEffect::Refresh(self.extra_knobs.clone())));
        }
    }

    /// Requests a snapshot even if one is under way, which may be older than what has happened.
    fn refresh_now(&mut self, out: &mut Outbox) {
        self.has_snapshot_arrived = true;
        self.request_refresh(out);
    }

    /// Requests the values after the next boot. A child process reads them, because the files may be on a hung disk.
    fn request_boot_values(&mut self, out: &mut Outbox) {
        let knobs: Vec<String> = self.knobs.rows().iter().map(|r| r.name.clone()).collect();
        if !self.is_boot_requested && knobs.iter().any(|k| !self.next_boot.contains_key(k)) {
            self.is_boot_requested = true;
            out.push(Effect::RunJob(WorkerJob::BootValues(knobs)));
        }
    }

    fn apply_action(&mut self, action: TuneAction, cx: &Context, out: &mut Outbox) {
        self.error = None;
        match action {
            TuneAction::Apply => self.ask_apply(cx, out),
            TuneAction::Presets => {
                self.selected_preset = self.selected_preset.is_none().then_some(0);
                out.request(Request::ShowPane(PaneId::TuneKnobs));
            }
            TuneAction::Discard => self.pending.clear(),
            TuneAction::Keep => self.keep_selected(cx, out),
            TuneAction::Undo => self.ask_undo(cx, out),
            TuneAction::Renew => self.renew_selected(cx, out),
            TuneAction::Lease => {
                let label = format!("lease in seconds (1 to 86400, now {}): ", self.knobs.lease_secs);
                out.open_prompt(PromptPurpose::Lease, label, "");
            }
            TuneAction::Persist => self.error = self.ask_persist(out).err().map(sanitize),
            TuneAction::Graph => self.show_graph(cx, out),
            TuneAction::Changes => self.show_side_pane(PaneId::ChangeHistory, out),
            TuneAction::KnobPage => self.show_side_pane(PaneId::KnobPage, out),
            TuneAction::QuitUndo | TuneAction::QuitKeep | TuneAction::QuitDetach => self.quit_with_leases(action, out),
        }
    }

    /// Handles Esc. Returns whether there was something to close.
    fn close_topmost(&mut self, cx: &Context, out: &mut Outbox) -> bool {
        if self.error.take().is_some() || self.selected_preset.take().is_some() {
            return true;
        }
        let selected = self.selected_knob().map(|r| r.name.clone());
        if selected.is_some_and(|name| self.pending.remove(&name).is_some()) {
            return true;
        }
        if cx.screen.focus != 0 && !cx.screen.zoomed {
            out.focus_pane(0);
            return true;
        }
        let was_filtered = !self.filter.is_empty();
        self.filter_list("");
        was_filtered
    }
}

impl View for TuneView {
    fn panes(&self) -> &'static [PaneSpec] {
        &[
            (PaneId::TuneKnobs, "knobs", KEYS),
            (PaneId::KnobPage, "knob", KEYS),
            (PaneId::ChangeHistory, "changes", KEYS),
        ]
    }

    fn layout(&self, cx: &Context, body: Rect) -> Vec<(PaneId, Rect)> {
        Self::layout_panes(body, &self.visible_panes(cx.screen.size))
    }

    fn render(&self, pane: PaneId, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        match (pane, self.selected_preset) {
            (PaneId::TuneKnobs, Some(at)) => self.render_presets(cx, area, buf, at),
            (PaneId::TuneKnobs, None) => self.render_list(cx, area, buf),
            (PaneId::KnobPage, _) => self.render_knob(cx, area, buf),
            _ => self.render_changes(cx, area, buf),
        }
    }

    fn table(&self, pane: PaneId, cx: &Context) -> Table {
        match pane {
            PaneId::TuneKnobs => self.list_table(cx.shared),
            PaneId::KnobPage => self.knob_table(cx.shared),
            _ => self.changes_table(cx.shared),
        }
    }

    fn move_selection(&mut self, pane: PaneId, by: isize, cx: &Context) -> bool {
        self.error = None;
        match (self.selected_preset, pane) {
            (Some(at), _) => self.selected_preset = Some(at.saturating_add_signed(by).min(PRESETS.len() - 1)),
            (None, PaneId::ChangeHistory) => self.changes_scroll.move_selection(by, self.knobs.changes().len()),
            (None, PaneId::KnobPage) => {
                let inner = cx.inner_area(pane);
                let lines = self.page_lines(cx.shared, &cx.theme, inner.width).len();
                self.page_scroll.move_selection(by, scroll_positions(lines, inner.height));
            }
            (None, _) => {
                let lines = self.list_lines().len();
                self.scroll.move_selection(by, lines);
                self.skip_heading(by);
            }
        }
        true
    }

    fn on_action(&mut self, pane: PaneId, action: Action, cx: &Context, out: &mut Outbox) -> bool {
        match action {
            Action::Tune(action) => self.apply_action(action, cx, out),
            Action::Experiment(ExperimentAction::TryPending) => self.try_pending(out),
            Action::Experiment(ExperimentAction::Reopen) => out.navigate(Target::Experiments(None)),
            Action::Open => {
                self.error = None;
                match self.selected_preset {
                    Some(at) => self.ask_apply_preset(at, cx, out),
                    None if pane == PaneId::ChangeHistory => {}
                    None => self.edit_selected(out),
                }
            }
            Action::Back => return self.close_topmost(cx, out),
            _ => return false,
        }
        true
    }

    fn on_click(&mut self, click: PaneClick, _: &Context, _: &mut Outbox) {
        let at = usize::from(click.y - click.inner.y);
        if self.selected_preset.is_some() {
            self.selected_preset = Some(at.min(PRESETS.len() - 1));
        } else if click.pane == PaneId::ChangeHistory {
            let last = self.knobs.changes().len().saturating_sub(1);
            self.changes_scroll.selected = (self.changes_scroll.offset + at).min(last);
        } else if click.pane == PaneId::TuneKnobs && at > 0 {
            let lines = self.list_lines().len();
            let mut scroll = self.scroll;
            scroll.scroll_into_view(lines, usize::from(click.inner.height.saturating_sub(1)));
            self.scroll.selected = (scroll.offset + at - 1).min(lines.saturating_sub(1));
            self.skip_heading(1);
        }
    }

    fn on_tab(&mut self, cx: &Context, out: &mut Outbox) {
        if cx.screen.view == ViewId::Tune {
            self.request_refresh(out);
            // An earlier request may have failed because no child process was free.
            self.is_boot_requested &= !self.next_boot.is_empty();
            self.request_boot_values(out);
            self.offer_restore(cx, out);
        }
    }

    fn on_target(&mut self, target: &Target, cx: &Context, out: &mut Outbox) -> bool {
        match target {
            Target::Knobs(knobs) => match knobs.iter().map(|k| KnobId::parse(k)).collect::<Result<Vec<_>, _>>() {
                Ok(ids) => self.show_knobs(&ids.iter().map(KnobId::to_string).collect::<Vec<_>>(), out),
                Err(why) => out.error(why.to_string()),
            },
            Target::Ask(ViewRequest::ApplyKnobs { assignments, on_lease }) => {
                self.ask_apply_assignments(assignments.clone(), *on_lease, cx, out);
            }
            Target::Ask(ViewRequest::KeepChange(id)) => self.keep_change(*id, out),
            Target::Ask(ViewRequest::OfferRootCommand { what, args }) => {
                Self::offer_root_command(what, args.clone(), out);
            }
            Target::Ask(ViewRequest::RefreshKnobs) => self.refresh_now(out),
            _ => return false,
        }
        true
    }

    fn on_command(&mut self, word: &str, args: &str, cx: &Context, out: &mut Outbox) -> Option<Result<(), String>> {
        (word == "tune").then(|| {
            let (knob, value) = args.split_once('=').map_or((args, None), |(knob, value)| (knob, Some(value)));
            let knob = KnobId::parse(knob).map_err(|error| error.to_string())?.to_string();
            self.typed_assignment = value.map(|value| format!("{knob}={value}"));
            self.show_knobs(&[knob], out);
            self.ask_typed_assignment(cx, out);
            Ok(())
        })
    }

    fn on_change(&mut self, change: Change, cx: &Context, out: &mut Outbox) {
        if change == Change::Counters && cx.shared.replay.is_none() {
            self.ticks_since_refresh += 1;
            if cx.screen.view == ViewId::Tune && self.ticks_since_refresh >= REFRESH_TICKS {
                self.request_refresh(out);
            }
        }
    }

    fn on_event(&mut self, event: Event, cx: &Context, out: &mut Outbox) -> Option<Event> {
        match event {
            Event::Tune(event) => self.on_tune_event(*event, cx, out),
            Event::JobReply(WorkerJob::BootValues(..), reply) => self.on_boot_values(reply, out),
            Event::JobReply(WorkerJob::Persist { .. }, reply) => self.on_persisted(reply, out),
            other => return Some(other),
        }
        None
    }

    fn on_input(&mut self, purpose: PromptPurpose, text: &str, cx: &Context, out: &mut Outbox) -> Result<(), String> {
        match purpose {
            // An empty text changes nothing.
            _ if text.is_empty() => Ok(()),
            PromptPurpose::KnobValue => self.propose_typed(text, out),
            _ => self.set_lease_duration(text, cx, out),
        }
    }

    fn on_prompt_key(&mut self, prompt: &mut Prompt, key: KeyCode) -> bool {
        let cycles = prompt.purpose == PromptPurpose::KnobValue && matches!(key, KeyCode::Up | KeyCode::Down);
        if cycles {
            self.cycle_choice(prompt, key);
        }
        cycles
    }

    fn draw_prompt(&self, prompt: &Prompt, cx: &Context, buf: &mut CellBuffer) -> bool {
        let edits_knob = prompt.purpose == PromptPurpose::KnobValue;
        if edits_knob {
            self.render_value_prompt(prompt, cx, buf);
        }
        edits_knob
    }

    fn on_confirm(&mut self, change: PendingChange, _: &Context, out: &mut Outbox) {
        if let PendingChange::Tune(confirmed) = change {
            self.run_confirmed(confirmed, out);
        }
    }

    fn on_quit(&mut self, _: &Context, out: &mut Outbox) -> bool {
        let is_idle = self.knobs.leases.is_empty() && self.busy_with.is_none();
        let asks = !self.is_quitting && !is_idle;
        if asks {
            self.ask_before_quit(out);
        }
        asks
    }

    fn publish(&self, shared: &mut Shared) {
        shared.knobs.clone_from(&self.knobs);
        shared.knob_change_times = self.change_times().collect();
    }

    fn filter(&self, _: PaneId) -> &str {
        &self.filter
    }

    fn set_filter(&mut self, _: PaneId, text: &str, _: &Context) {
        self.filter_list(text);
    }

    fn find_row(&mut self, _: PaneId, search: &RowSearch, _: &Context) -> bool {
        let rows = self.list_lines().into_iter().map(|line| match line {
            KnobListLine::Heading(_) => false,
            KnobListLine::Knob(i) => search.matches(&self.knobs.rows()[i].display_name),
        });
        search.select(rows, &mut self.scroll.selected)
    }
}

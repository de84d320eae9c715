//! Actions on runs, events of their child processes, and replies of the store.

use super::kind::RunKind;
use super::state::{LIST_FOCUS, OpenedResult, PAGE_FOCUS, Run, RunEnding, RunRow, RunView};
use crate::bench::store::{Storable, StoredReport};
use crate::jobs::bench_jobs::StoreJob;
use crate::jobs::job::WorkerReply;
use crate::subprocess::runner::ChildEvent;
use crate::tui::view::{Action, Context, Dialog, Effect, Outbox, PaneId, PendingChange, RunAction, RunEffect};

impl<R> OpenedResult<R> {
    /// A page of one result, or a comparison of two.
    fn from_loaded(reports: Vec<R>) -> Self {
        match <[R; 2]>::try_from(reports) {
            Ok(both) => Self::Comparison(Box::new(both)),
            Err(mut one) => match one.pop() {
                Some(report) => Self::Result(Box::new(report)),
                None => Self::Failed("the result no longer exists".into()),
            },
        }
    }
}

impl<K: RunKind> RunView<K> {
    pub(super) fn apply_action(&mut self, action: RunAction, cx: &Context, out: &mut Outbox) {
        match action {
            RunAction::Start => self.ask_start(cx, out),
            RunAction::Cancel => self.cancel(out),
            RunAction::Edit => self.edit(cx, out),
            RunAction::Reset => self.reset_line(cx, out),
            RunAction::Mark => self.toggle_mark(cx, out),
            RunAction::Compare => self.compare_marked(cx, out),
            RunAction::FocusList => out.focus_pane(LIST_FOCUS),
            RunAction::FocusPage => out.focus_pane(PAGE_FOCUS),
        }
    }

    pub fn ask_start(&mut self, cx: &Context, out: &mut Outbox) {
        match (self.shown_form(), &cx.shared.running) {
            (None, _) => out.error(K::TEXTS.nothing_to_start),
            (_, Some(running)) if running.is_experiment => out.error(K::TEXTS.experiment_runs),
            (_, Some(running)) => out.error(K::TEXTS.benchmark_runs.replace("{}", &running.profile)),
            (Some(form), None) => K::ask_start(self, form, cx, out),
        }
    }

    /// Asks to confirm that a plan is started.
    pub fn open_start_dialog(&mut self, title: impl Into<String>, text: String, plan: K::Plan, out: &mut Outbox) {
        self.to_start = Some(plan);
        let on_confirm = PendingChange::Start(Self::PAGE);
        out.open_dialog(Dialog { title: title.into(), text, scroll: 0, on_confirm });
    }

    /// Starts what was confirmed; for a network mount it asks once more.
    pub(super) fn start_confirmed(&mut self, cx: &Context, out: &mut Outbox) {
        let Some(mut plan) = self.to_start.take().filter(|_| cx.shared.running.is_none()) else { return };
        let bench_plan = K::bench_plan(&mut plan);
        if let Some(question) = cx.shared.target.network_question(bench_plan) {
            bench_plan.network = Some(bench_plan.directory.clone());
            return self.open_start_dialog("Over the network?", question, plan, out);
        }
        let number = self.run.as_ref().map_or(1, |run| run.number + 1);
        self.run = Some(Run::new(number, plan.clone(), cx.shared.system.now().boot_ns));
        self.show_current_run();
        // The run is selected in the list: the arrow keys go on to other rows while it goes on, Enter to its page.
        out.focus_pane(LIST_FOCUS);
        out.push(K::EFFECT(RunEffect::Start { run: number, plan: Box::new(plan) }));
    }

    pub fn show_current_run(&mut self) {
        (self.selected, self.opened, self.text_offset) = (RunRow::CurrentRun, None, 0);
    }

    /// Shows the form, and focuses the line of that name.
    pub fn show_form(&mut self, line: &str, cx: &Context, out: &mut Outbox) {
        self.select(RunRow::default(), cx);
        let at = self.form.lines(0, cx.shared).iter().position(|l| l.name == line);
        self.form_line = at.unwrap_or(self.form_line);
        out.focus_pane(PAGE_FOCUS);
    }

    /// Ends the run; the second time, kills it without waiting for the report.
    fn cancel(&mut self, out: &mut Outbox) {
        let Some(run) = self.run.as_mut().filter(|run| run.ending.is_none()) else {
            return out.error(format!("no {} is running", K::TEXTS.noun));
        };
        if run.is_stopping {
            run.ending = Some(RunEnding::Failed(K::TEXTS.killed.into()));
            return out.push(K::EFFECT(RunEffect::Kill));
        }
        run.is_stopping = true;
        out.push(K::EFFECT(RunEffect::Cancel));
        out.info(K::TEXTS.stopping);
    }

    pub fn on_child_event(&mut self, number: u64, event: ChildEvent<K::Message>, cx: &Context, out: &mut Outbox) {
        let Some(run) = self.run.as_mut().filter(|run| run.number == number && run.ending.is_none()) else { return };
        run.last_message_ns = cx.shared.system.now().boot_ns;
        match event {
            ChildEvent::Started { pid } => run.pid = Some(pid),
            ChildEvent::Message(message) => K::receive(run, message),
        }
        let Some(ending) = &run.ending else { return };
        let (how, is_bad) = match ending {
            RunEnding::Report(report) => {
                out.push(Effect::RunJob((K::STORE_JOB)(StoreJob::Save(report.clone()))));
                (format!("{}{}", K::end_text(report), K::TEXTS.shown_by), false)
            }
            RunEnding::Refused(why) => (format!("refused: {why}"), true),
            RunEnding::Failed(why) => (why.clone(), true),
        };
        let message = format!("{}{how}", K::TEXTS.announcement.replace("{}", &run.profile));
        if cx.layout.pane_area(Self::PAGE).is_some() && self.shown_run().is_some() {
            self.text_offset = 0;
        } else if is_bad {
            out.error(message);
        } else {
            out.info(message);
        }
        K::on_ended(self, cx, out);
    }

    pub fn on_store_reply(&mut self, job: &StoreJob<K::Report>, reply: WorkerReply, out: &mut Outbox) {
        self.is_listing &= *job != StoreJob::List;
        match (job, reply) {
            (StoreJob::List, WorkerReply::StoredReports(all)) => self.stored = Some(Ok(all)),
            (StoreJob::List, WorkerReply::Failed(why)) => self.stored = Some(Err(why)),
            (StoreJob::Save(report), WorkerReply::Saved(name)) => {
                self.request_list(out);
                self.set_stored(report, Ok(name));
            }
            (StoreJob::Save(report), WorkerReply::Failed(why)) => {
                out.error(format!("{} not saved: {why}", K::TEXTS.stored_noun));
                self.set_stored(report, Err(why));
            }
            (StoreJob::Load(ids), reply) if matches!(&self.opened, Some(OpenedResult::Loading(awaited)) if awaited == ids) => {
                match reply {
                    WorkerReply::Failed(why) => self.open(OpenedResult::Failed(why)),
                    reply => self.open(OpenedResult::from_loaded(K::loaded_reports(reply).unwrap_or_default())),
                }
            }
            _ => {}
        }
    }

    /// Notes whether the report of the run of this session was stored.
    fn set_stored(&mut self, report: &K::Report, outcome: Result<String, String>) {
        let is_same = |run: &&mut Run<K>| matches!(&run.ending, Some(RunEnding::Report(r)) if r.id() == report.id());
        if let Some(run) = self.run.as_mut().filter(is_same) {
            run.stored = Some(outcome);
        }
    }

    fn open(&mut self, result: OpenedResult<K::Report>) {
        (self.opened, self.text_offset) = (Some(result), 0);
    }

    /// Requests the stored results, unless that is under way.
    pub fn request_list(&mut self, out: &mut Outbox) {
        if !std::mem::replace(&mut self.is_listing, true) {
            out.push(Effect::RunJob((K::STORE_JOB)(StoreJob::List)));
        }
    }

    pub(super) fn open_selected(&mut self, pane: PaneId, cx: &Context, out: &mut Outbox) {
        if pane == Self::PAGE {
            return self.edit_line(cx, out);
        }
        match &self.selected {
            RunRow::Form(_) if K::FORMS > 1 => return self.ask_start(cx, out),
            RunRow::Stored(id) => self.show_results(vec![id.clone()], out),
            RunRow::CurrentRun | RunRow::Form(_) => self.opened = None,
        }
        out.focus_pane(PAGE_FOCUS);
    }

    fn show_results(&mut self, ids: Vec<String>, out: &mut Outbox) {
        self.open(OpenedResult::Loading(ids.clone()));
        out.push(Effect::RunJob((K::STORE_JOB)(StoreJob::Load(ids))));
    }

    fn toggle_mark(&mut self, cx: &Context, out: &mut Outbox) {
        match self.selected_result().map(|stored| stored.id.clone()) {
            None => {
                let mark = cx.shared.key(Action::Run(RunAction::Mark));
                out.error(format!("{mark} marks a kept result: select one in the list"));
            }
            selected if selected == self.marked => self.marked = None,
            selected => self.marked = selected,
        }
    }

    fn compare_marked(&mut self, cx: &Context, out: &mut Outbox) {
        match (&self.marked, self.selected_result().map(|stored| stored.id.clone())) {
            (_, None) => out.error("select a kept result to compare the marked one with"),
            (Some(marked), Some(selected)) if *marked != selected => {
                self.show_results(vec![marked.clone(), selected], out);
                out.focus_pane(PAGE_FOCUS);
            }
            (_, Some(selected)) => match self.newest_like(&selected) {
                Some(other) => {
                    self.show_results(vec![other, selected], out);
                    out.focus_pane(PAGE_FOCUS);
                }
                None => {
                    let [mark, compare] = [RunAction::Mark, RunAction::Compare].map(|a| cx.shared.key(Action::Run(a)));
                    let text = "compares the selected one with it";
                    out.error(format!("mark another result first ({mark}), then {compare} {text}"));
                }
            },
        }
    }

    /// The newest other result of the same profile, to compare with where none is marked.
    fn newest_like(&self, id: &str) -> Option<String> {
        let profile = |stored: &StoredReport| stored.profile.clone();
        let of = self.stored_results().iter().find(|stored| stored.id == *id).map(profile)?;
        let others = self.stored_results().iter().filter(|stored| stored.id != *id && profile(stored) == of);
        others.filter(|stored| !stored.is_damaged).min_by_key(|stored| stored.number).map(|stored| stored.id.clone())
    }

    /// Handles Esc: closes the topmost thing. Returns whether there was one.
    pub(super) fn close_topmost(&mut self, cx: &Context, out: &mut Outbox) -> bool {
        if self.opened.take().is_some() {
            self.text_offset = 0;
            out.focus_pane(LIST_FOCUS);
            return true;
        }
        if cx.screen.zoomed {
            return false;
        }
        if cx.screen.focus == PAGE_FOCUS {
            out.focus_pane(LIST_FOCUS);
            return true;
        }
        std::mem::take(&mut self.is_open)
    }

    /// Focuses the page if it shows a run or a report, else the list.
    pub fn restore_focus(&self, out: &mut Outbox) {
        let on_page = self.selected == RunRow::CurrentRun || self.opened.is_some();
        out.focus_pane(if on_page { PAGE_FOCUS } else { LIST_FOCUS });
    }
}

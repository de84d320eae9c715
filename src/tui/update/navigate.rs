//! Sends the user to another place in the program.

use super::actions;
use crate::doctor::finding::NavTarget;
use crate::model::raw_bytes::RawBytes;
use crate::tui::action::ViewId;
use crate::tui::effect::Effect;
use crate::tui::state::{App, DetailPage};
use crate::tui::view::{PaneId, Target, ViewRequest};
use crate::tui::views::tune::update as tune;
use crate::tui::widgets::table::Scroll;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

impl From<NavTarget> for Target {
    fn from(target: NavTarget) -> Self {
        match target {
            NavTarget::Knob(knob) => Self::Knob(knob),
            NavTarget::Bench(name, directory) => Self::Profile { name, directory },
            NavTarget::Device(id) => Self::Device(id),
            NavTarget::Task(key) => Self::Task(key),
            NavTarget::KernelLog(seq) => Self::KernelLogRecord(seq),
            NavTarget::Memory => Self::Tab(ViewId::Memory),
            NavTarget::Processes => Self::Tab(ViewId::Processes),
            NavTarget::Devices => Self::Tab(ViewId::Devices),
            NavTarget::Syncs => Self::Tab(ViewId::Syncs),
        }
    }
}

/// Goes to a target.
pub fn navigate(app: &mut App, target: Target, effects: &mut Vec<Effect>) {
    match target {
        Target::Tab(tab) => actions::open_view(app, tab, effects),
        Target::Device(id) => actions::open_device(app, id),
        Target::Task(key) if app.shared.system.processes.get(&key).is_some() => actions::open_task(app, key, effects),
        Target::Task(key) => app.screen.error(format!("task {} has exited", key.tid)),
        Target::KernelLogRecord(seq) => open_log_record(app, seq, effects),
        Target::KernelLogEntry(row) => open_detail(app, DetailPage::KernelLog(row)),
        Target::Knob(knob) => {
            if let Err(why) = crate::tui::views::tune::update::show_knob(app, &knob, effects) {
                app.screen.error(why);
            }
        }
        Target::Experiments(_) => {
            app.screen.zoomed = false;
            app.update_view(PaneId::ExperimentPage, effects, |view, cx, out| view.on_target(&target, cx, out));
        }
        Target::Profile { name, directory } => open_bench(app, name, directory, effects),
    }
}

/// Opens the Bench tab at a profile and directory; a run in progress stays on screen.
fn open_bench(app: &mut App, name: &'static str, directory: Option<RawBytes>, effects: &mut Vec<Effect>) {
    if app.views.bench.active_run().is_none()
        && let Some(directory) = &directory
    {
        app.shared.target.directory = OsString::from_vec(directory.as_bytes().to_vec()).into();
    }
    let target = Target::Profile { name, directory };
    app.update_view(PaneId::BenchPage, effects, |view, cx, out| view.on_target(&target, cx, out));
    actions::open_view(app, ViewId::Bench, effects);
}

/// Does what one view asks another one to do.
pub fn ask_view(app: &mut App, request: ViewRequest, effects: &mut Vec<Effect>) {
    match request {
        ViewRequest::ApplyKnobs { assignments, on_lease } => tune::ask_apply_assignments(app, assignments, on_lease),
        ViewRequest::KeepChange(id) => tune::keep_change(app, id, effects),
        ViewRequest::OfferRootCommand { what, args } => tune::offer_root_command(app, what, args),
        ViewRequest::RefreshKnobs => tune::refresh_now(app, effects),
        ViewRequest::CheckArms => {
            app.update_view(PaneId::ExperimentPage, effects, |view, cx, out| view.on_request(&request, cx, out));
        }
    }
}

fn open_log_record(app: &mut App, seq: Option<u64>, effects: &mut Vec<Effect>) {
    actions::open_view(app, ViewId::Kernel, effects);
    if let Some(row) = seq.and_then(|seq| app.views.kernel_log.select_record(seq, &app.shared)) {
        open_detail(app, DetailPage::KernelLog(row));
    }
}

fn open_detail(app: &mut App, page: DetailPage) {
    app.screen.detail = Some(page);
    app.screen.detail_scroll = Scroll::default();
}

//! Sends the user to another place in the program.

use super::actions;
use crate::bench::workloads::WORKLOADS;
use crate::doctor::finding::NavTarget;
use crate::model::raw_bytes::RawBytes;
use crate::tui::action::ViewId;
use crate::tui::effect::Effect;
use crate::tui::state::{App, DetailPage};
use crate::tui::view::Target;
use crate::tui::views::bench::BenchRow;
use crate::tui::widgets::table::Scroll;
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
        Target::Experiments(_) => {}
        Target::Profile { name, directory } => open_bench(app, name, directory, effects),
    }
}

/// Opens the Bench tab at a profile and directory; a run in progress stays on screen.
fn open_bench(app: &mut App, profile: &str, dir: Option<RawBytes>, effects: &mut Vec<Effect>) {
    if app.views.bench.active_run().is_none() {
        if let Some(dir) = dir {
            app.views.bench.directory = std::ffi::OsString::from_vec(dir.as_bytes().to_vec()).into();
        }
        if let Some(at) = WORKLOADS.iter().position(|w| w.name() == profile) {
            app.views.bench.selected = BenchRow::Profile(at);
            app.views.bench.opened = None;
        }
    }
    actions::open_view(app, ViewId::Bench, effects);
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

//! The profiles: their plans as edited, and what a run would do.

use crate::bench::description::describe_writes;
use crate::bench::params;
use crate::bench::plan::BenchPlan;
use crate::bench::report::ReportTarget;
use crate::bench::target::checks::reserved_bytes;
use crate::bench::target_info::TargetInfo;
use crate::bench::workloads::{WORKLOADS, Workload};
use crate::model::disk::DiskRate;
use crate::model::process::{ProcessColumn, ProcessFilter, ProcessQuery};
use crate::sanitize::sanitize;
use crate::tui::view::Shared;
use crate::tui::views::runs::{FormLine, RunForms};
use crate::tui::widgets::{StyledLine, TextStyle};
use crate::units::format_bytes_long;
use smart_default::SmartDefault;
use std::path::{Path, PathBuf};

/// Utilization from which a device's other load distorts a measurement, per cent.
const BUSY_PCT: f64 = 10.0;

/// The profiles.
#[derive(SmartDefault)]
pub struct BenchForm {
    /// The plan of each workload as edited, without a directory.
    #[default(WORKLOADS.iter().map(|w| w.defaults()).collect())]
    plans: Vec<BenchPlan>,
}

impl BenchForm {
    /// The workload of a profile and its plan in a directory.
    pub fn plan(&self, form: usize, directory: &Path) -> (&'static Workload, BenchPlan) {
        let workload = WORKLOADS[form];
        let directory = if workload.needs_directory { directory.to_owned() } else { PathBuf::new() };
        (workload, BenchPlan { directory, ..self.plans[form].clone() })
    }

    /// Why the profile cannot be started now, and what to do.
    pub(super) fn start_refusal(&self, form: usize, shared: &Shared) -> Option<String> {
        let (workload, plan) = self.plan(form, &shared.target.directory);
        match check_plan(workload, &plan) {
            Err(why) => Some(why),
            Ok(()) => shared.target.refusal(workload, &plan),
        }
    }
}

fn check_plan(workload: &Workload, plan: &BenchPlan) -> Result<(), String> {
    plan.check().and_then(|()| (workload.check)(plan)).map_err(|err| err.0)
}

impl RunForms for BenchForm {
    fn list_text(&self, form: usize) -> String {
        format!(" {:<9} {}", WORKLOADS[form].name, WORKLOADS[form].brief)
    }

    fn title(&self, form: usize) -> String {
        format!("Plan: {}", WORKLOADS[form].name)
    }

    fn lines(&self, form: usize, shared: &Shared) -> Vec<FormLine> {
        let (workload, plan) = self.plan(form, &shared.target.directory);
        FormLine::directory(workload, &shared.target)
            .into_iter()
            .chain(FormLine::params(workload, &plan, &plan))
            .collect()
    }

    fn set_line(&mut self, form: usize, name: &str, text: &str) -> Result<(), String> {
        let mut plan = self.plans[form].clone();
        params::set_param(&mut plan, name, text).map_err(|err| err.0)?;
        check_plan(WORKLOADS[form], &plan)?;
        self.plans[form] = plan;
        Ok(())
    }

    fn reset_line(&mut self, form: usize, name: &str) -> Result<(), String> {
        let Some(param) = params::find_param(name) else { return Ok(()) };
        self.set_line(form, name, &param.get(&WORKLOADS[form].defaults()))
    }

    fn plan_text(&self, form: usize, shared: &Shared) -> Vec<StyledLine> {
        let (workload, plan) = self.plan(form, &shared.target.directory);
        let mut out: Vec<StyledLine> = Vec::new();
        if let Some(why) = self.start_refusal(form, shared) {
            out.push((format!("Cannot start: {why}"), TextStyle::Crit));
        }
        out.push((workload.about.to_owned(), TextStyle::Dim));
        let inspection = shared.target.inspection().filter(|_| workload.needs_directory);
        let place = inspection.and_then(|found| found.info.as_ref());
        out.extend(place.map(target_line));
        out.push((describe_writes(workload, &plan), TextStyle::Plain));
        out.extend((workload.describe)(&plan).into_iter().map(|l| (format!("- {l}"), TextStyle::Plain)));
        out.extend(place.map(|place| disk_space_line(place, (workload.footprint)(&plan))));
        let warnings = inspection.iter().flat_map(|found| found.warnings(plan.direct));
        out.extend(warnings.map(|w| (format!("! {w}"), TextStyle::Warn)));
        if let Some(place) = place {
            push_competing_load(shared, place, &mut out);
        }
        out
    }
}

/// Describes what would be written where, and for how long.
pub(super) fn confirmation_text(workload: &Workload, plan: &BenchPlan, shared: &Shared) -> String {
    let mut out = describe_writes(workload, plan);
    if let Some(found) = shared.target.inspection().filter(|_| workload.needs_directory) {
        if let Some(place) = &found.info {
            let chain: Vec<_> = place.chain.iter().map(|d| sanitize(&d.name)).collect();
            let on = if chain.is_empty() { place.report.source.clone() } else { chain.join(" > ") };
            out.push_str(&format!("\nThe file system is {} on {on}.", place.report.filesystem));
        }
        for warning in found.warnings(plan.direct) {
            out.push_str(&format!("\n! {warning}"));
        }
    }
    for line in (workload.describe)(plan) {
        out.push_str(&format!("\n- {line}"));
    }
    out
}

/// File system, and devices down to the disk, in one line.
fn target_line(place: &TargetInfo) -> StyledLine {
    let ReportTarget { filesystem, source, mount, .. } = &place.report;
    let mount = if mount.is_empty() { String::new() } else { format!(", mounted on {mount}") };
    let chain: Vec<String> = place
        .chain
        .iter()
        .map(|d| {
            let model = d.model.as_ref().map_or(String::new(), |m| format!(" {}", sanitize(m)));
            let size = d.size_bytes.map_or(String::new(), |n| format!(", {}", format_bytes_long(n)));
            format!("{}{model} ({}{size})", sanitize(&d.name), d.kind.name())
        })
        .collect();
    let below = if chain.is_empty() { String::new() } else { format!("; on {}", chain.join(" > ")) };
    (format!("{filesystem} from {source}{mount}{below}"), TextStyle::Plain)
}

fn disk_space_line(place: &TargetInfo, bytes: u64) -> StyledLine {
    let free = format_bytes_long(place.free);
    let line = match place.free.checked_sub(bytes) {
        Some(left) => {
            let [left, reserved] = [left, reserved_bytes(place.size)].map(format_bytes_long);
            format!("Free: {free} now and afterwards, {left} during the run; {reserved} is always left free")
        }
        None => format!("Free: {free}"),
    };
    (line, TextStyle::Plain)
}

/// Current rates of a device, named as in iostat(1).
pub(super) fn format_device_rates(r: &DiskRate) -> String {
    let stalled = if r.stalled { format!(", STALLED with {} in flight", r.in_flight) } else { String::new() };
    format!(
        "{}: {:.0} tps, {:.1} MB_read/s, {:.1} MB_wrtn/s, await {:.1} ms, aqu-sz {:.1}, util {:.0} %{stalled}",
        sanitize(&*r.name),
        r.tps,
        r.read_mb_per_s,
        r.write_mb_per_s,
        r.await_ms,
        r.queue_size,
        r.util_pct
    )
}

fn push_competing_load(shared: &Shared, place: &TargetInfo, out: &mut Vec<StyledLine>) {
    let mut ids: Vec<_> = place.chain.iter().filter(|d| d.is_physical).map(|d| d.id).collect();
    if ids.is_empty() {
        ids.extend(place.device);
    }
    let mut busy = false;
    for rate in ids.iter().filter_map(|id| shared.snapshot().device(*id)) {
        let much = rate.util_pct >= BUSY_PCT || rate.stalled;
        busy |= much;
        let line = format!("Now on {}", format_device_rates(rate));
        out.push((line, if much { TextStyle::Warn } else { TextStyle::Plain }));
    }
    out.extend(busiest_task_text(shared).map(|task| (task, TextStyle::Plain)));
    if busy {
        let warning = "! other load on this device: it would distort the results and be slowed by the run";
        out.push((warning.into(), TextStyle::Warn));
    }
}

fn busiest_task_text(shared: &Shared) -> Option<String> {
    let filter = ProcessFilter { only_active: true, ..ProcessFilter::default() };
    let query = ProcessQuery { sort_by: ProcessColumn::Io, reverse: false, filter, offset: 0, height: 1 };
    let at = *shared.system.processes.window(&query).rows.first()?;
    let row = shared.system.processes.row(at);
    let rate = |n: Option<f64>| n.map_or("-".into(), |n| format!("{}/s", format_bytes_long(n as u64)));
    let [read, written] = [row.rates().read_bytes_per_s, row.rates().write_bytes_per_s].map(rate);
    Some(format!("Busiest task, on any device: {} {}, reads {read}, writes {written}", row.pid(), row.comm()))
}

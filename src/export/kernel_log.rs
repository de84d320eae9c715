//! The table of the kernel log.

use super::table::Table;
use crate::model::kernel_log::hung_tasks::HungTask;
use crate::model::kernel_log::{KernelLogClass, LogEntry};
use crate::model::reading::Reading;
use crate::model::system_state::SystemState;
use crate::sanitize::sanitize;
use crate::units::{format_duration, format_rfc3339_in};

pub(crate) fn class_label(class: KernelLogClass) -> &'static str {
    match class {
        KernelLogClass::HungTask => "hung task",
        KernelLogClass::IoError => "I/O error",
        KernelLogClass::Filesystem => "filesystem",
        KernelLogClass::ResetTimeout => "reset/timeout",
        KernelLogClass::Oom => "out of memory",
        KernelLogClass::Lockup => "lockup",
        KernelLogClass::MemoryError => "memory error",
        KernelLogClass::NetworkFs => "network fs",
        KernelLogClass::Oops => "oops",
        KernelLogClass::Thermal => "thermal",
        KernelLogClass::Other => "other",
    }
}

/// A hung task in one line; `warnings` is `kernel.hung_task_warnings`.
pub(crate) fn hung_task_text(s: &HungTask, warnings: Option<i64>) -> String {
    let wait = s.wchan.as_deref().map_or(String::new(), |w| format!(" in {}", sanitize(w)));
    let silent = match warnings {
        Some(0) => "; the kernel has gone silent (hung_task_warnings = 0)",
        _ => "",
    };
    let secs = s.duration_ns / 1_000_000_000;
    format!("stuck: {} ({}) in state D for {}{wait}{silent}", sanitize(&s.comm), s.key.tid, format_duration(secs))
}

/// The entries as a table, with the hung tasks as notes; times are in the time zone `utc_offset_secs` east of UTC.
pub(crate) fn build_table<'a>(
    title: String,
    entries: impl Iterator<Item = &'a LogEntry>,
    system: &SystemState,
    utc_offset_secs: i64,
) -> Table {
    let headers =
        [("Time", false), ("Class", false), ("Device", false), ("PID", true), ("Count", true), ("Message", false)];
    let mut table = Table::new(title, &headers);
    for e in entries {
        let class = if e.is_from_program() { "from a program" } else { class_label(e.class) };
        table.rows.push(vec![
            format_rfc3339_in(e.wall_ns, utc_offset_secs),
            class.into(),
            e.device.as_deref().map_or("-".into(), sanitize),
            e.pid.map_or("-".into(), |p| p.to_string()),
            e.count.to_string(),
            sanitize(&e.message),
        ]);
    }
    table.notes.extend(system.hung_tasks.iter().map(|s| hung_task_text(s, system.hung_task_warnings)));
    if let Reading::Ok(()) = system.kernel_log_status
        && table.rows.is_empty()
    {
        table.notes.push("nothing the kernel warns of".into());
    }
    table
}

//! The table of processes or threads, and what is missing from it.

use super::table::Table;
use crate::model::columns::process::{ProcessColumnSpec, ProcessTexts};
use crate::model::process::{ProcessRow, ProcessTable};
use crate::model::reading::{NOT_READ, Reading};
use crate::sanitize::sanitize;

/// One row for each row that `for_each` passes to its callback, in that order.
pub(crate) fn build_table(
    title: String,
    columns: &[ProcessColumnSpec],
    for_each: impl FnOnce(&mut dyn FnMut(&ProcessRow<'_>)),
) -> Table {
    let mut table = Table::with_columns(title, columns);
    for_each(&mut |row| {
        let texts = ProcessTexts::new(row);
        table.push_values(columns, |column| column.cell(&texts));
    });
    table
}

/// How many tasks hide their I/O counters from us, and what would show them.
pub(crate) fn hidden_tasks_note(processes: &ProcessTable) -> Option<String> {
    let count = processes.hidden_count;
    let needs = "needs CAP_SYS_PTRACE + CAP_DAC_READ_SEARCH, and every capability the task has";
    (count > 0).then(|| format!("{count} hidden: {needs}"))
}

pub(crate) fn delays_unavailable(processes: &ProcessTable) -> Option<&str> {
    match &processes.delay_accounting {
        Reading::Absent(why) if why.is_empty() => Some(NOT_READ),
        Reading::Denied(why) | Reading::Absent(why) => Some(why),
        _ => None,
    }
}

pub(crate) fn missing_data_notes(processes: &ProcessTable) -> Vec<String> {
    let blocked = processes.blocked_tasks.len();
    let mut out: Vec<String> = hidden_tasks_note(processes).into_iter().collect();
    out.extend((blocked > 0).then(|| format!("{blocked} blocked")));
    out.extend(delays_unavailable(processes).map(|why| format!("IO%: {why}")));
    out.extend(processes.notes.iter().map(sanitize));
    out
}

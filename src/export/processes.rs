//! Tasks on paper, and what is missing from their rows.

use super::table::Table;
use crate::model::column::{Align, ColumnSpec};
use crate::model::columns::process::{cell_value, command_text};
use crate::model::process::{ProcessColumn as Col, ProcessRow, ProcessTable};
use crate::model::reading::{NOT_READ, Reading};
use crate::sanitize::sanitize;

/// The table of the rows that `each` hands out, in its order.
pub fn build_table(
    title: String,
    set: &[ColumnSpec<Col>],
    each: impl FnOnce(&mut dyn FnMut(&ProcessRow<'_>)),
) -> Table {
    let heads: Vec<_> = set.iter().map(|c| (c.header, c.align == Align::Right)).collect();
    let mut sheet = Table::new(title, &heads);
    each(&mut |row| {
        let text = command_text(row);
        let cell = |c: &ColumnSpec<Col>| {
            let mut s = String::new();
            cell_value(row, c.id, &text).write(&mut s);
            s
        };
        sheet.rows.push(set.iter().map(cell).collect());
    });
    sheet
}

/// Tasks whose traffic the kernel does not show us, in words.
pub fn hidden_tasks_note(procs: &ProcessTable) -> Option<String> {
    (procs.hidden_count() > 0).then(|| {
        format!(
            "{} hidden: needs CAP_SYS_PTRACE + CAP_DAC_READ_SEARCH, and every capability the task has",
            procs.hidden_count()
        )
    })
}

/// Why waiting times are not known, if they are not.
pub fn delays_unavailable(procs: &ProcessTable) -> Option<&str> {
    match procs.delay_accounting() {
        Reading::Absent(why) if why.is_empty() => Some(NOT_READ),
        Reading::Denied(why) | Reading::Absent(why) => Some(why),
        _ => None,
    }
}

/// What is missing from the rows, and why.
pub fn missing_data_notes(procs: &ProcessTable) -> Vec<String> {
    let mut out: Vec<String> = hidden_tasks_note(procs).into_iter().collect();
    if !procs.blocked_tasks().is_empty() {
        out.push(format!("{} blocked", procs.blocked_tasks().len()));
    }
    out.extend(delays_unavailable(procs).map(|why| format!("IO%: {why}")));
    out.extend(procs.notes().iter().map(sanitize));
    out
}

//! Tasks on paper, and what is missing from their rows.

use super::sheet::Sheet;
use crate::model::column::{Align, Column};
use crate::model::columns::process::{command, value};
use crate::model::process::{Column as Col, ProcRow, ProcTable};
use crate::model::section::{NOT_READ, Section};
use crate::text::sanitize;

/// The table of the rows that `each` hands out, in its order.
pub fn sheet(title: String, set: &[Column<Col>], each: impl FnOnce(&mut dyn FnMut(&ProcRow<'_>))) -> Sheet {
    let heads: Vec<_> = set.iter().map(|c| (c.head, c.align == Align::Right)).collect();
    let mut sheet = Sheet::new(title, &heads);
    each(&mut |row| {
        let text = command(row);
        let cell = |c: &Column<Col>| {
            let mut s = String::new();
            value(row, c.id, &text).write(&mut s);
            s
        };
        sheet.rows.push(set.iter().map(cell).collect());
    });
    sheet
}

/// Tasks whose traffic the kernel does not show us, in words.
pub fn hidden(procs: &ProcTable) -> Option<String> {
    (procs.hidden() > 0).then(|| {
        format!(
            "{} hidden: needs CAP_SYS_PTRACE + CAP_DAC_READ_SEARCH, and every capability the task has",
            procs.hidden()
        )
    })
}

/// Why waiting times are not known, if they are not.
pub fn no_delays(procs: &ProcTable) -> Option<&str> {
    match procs.delays() {
        Section::Absent(why) if why.is_empty() => Some(NOT_READ),
        Section::Denied(why) | Section::Absent(why) => Some(why),
        _ => None,
    }
}

/// What is missing from the rows, and why.
pub fn gaps(procs: &ProcTable) -> Vec<String> {
    let mut out: Vec<String> = hidden(procs).into_iter().collect();
    if !procs.blocked().is_empty() {
        out.push(format!("{} blocked", procs.blocked().len()));
    }
    out.extend(no_delays(procs).map(|why| format!("IO%: {why}")));
    out.extend(procs.notes().iter().map(sanitize));
    out
}

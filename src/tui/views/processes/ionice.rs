//! The I/O priority of a task: what can be typed, and the question before it is set.

use crate::model::process::{IoPrio, TaskKey};
use crate::tui::view::{Dialog, PendingChange, Shared};

/// Parses a class and level: `rt/0`, `be/4`, `idle`.
/// Errors: the text is none of these.
pub(crate) fn parse_io_priority(text: &str) -> Result<IoPrio, String> {
    let wrong = || format!("\"{text}\": class and level are rt/0 to rt/7, be/0 to be/7, or idle");
    if text == "idle" {
        return Ok(IoPrio { class: 3, level: 0 });
    }
    let (class, level) = text.split_once('/').ok_or_else(wrong)?;
    let class = match class {
        "rt" => 1,
        "be" => 2,
        _ => return Err(wrong()),
    };
    match level.parse::<u8>() {
        Ok(level @ 0..=7) => Ok(IoPrio { class, level }),
        _ => Err(wrong()),
    }
}

/// The question whether to set the I/O priority of a task.
pub(super) fn confirmation(shared: &Shared, key: TaskKey, prio: IoPrio) -> Dialog {
    let row = shared.system.processes.get(&key);
    let name = row.as_ref().map_or(String::new(), |r| r.comm().to_string());
    let now = row.and_then(|r| r.ionice()).unwrap_or_else(|| "unknown".into());
    let needs = match prio.class {
        1 => {
            "Real-time class: it goes before everything else and can starve the machine. Needs CAP_SYS_ADMIN or CAP_SYS_NICE."
        }
        3 => "Idle class: it is served only when no other task wants the disk.",
        _ => "Needs to be the task's owner, or CAP_SYS_NICE.",
    };
    Dialog {
        title: "Set I/O priority".into(),
        text: format!(
            "ioprio_set(2) on task {} {name}: {now} -> {prio}\n{needs} Only schedulers that know priorities \
             (bfq, mq-deadline) act on it. It lasts until the task ends.",
            key.tid
        ),
        scroll: 0,
        on_confirm: PendingChange::IoPrio(key, prio),
    }
}

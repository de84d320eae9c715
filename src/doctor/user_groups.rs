//! The systemd unit or container that processes which use a device belong to.

use super::finding::InvolvedGroup;
use super::format;
use super::rule_context::RuleContext;
use std::collections::BTreeMap;

/// A group with a smaller share is not named.
const MIN_SHARE: f64 = 0.5;
/// A process with this part of its group's share stands for the group.
const MAIN_PART: f64 = 0.8;
/// Processes considered: looking up one costs a search among all tasks.
const MAX_USERS: usize = 32;

/// `unit backup.service`, `container podman:web`, of a pod `container NAMESPACE/POD/CONTAINER`; `None` in the root group, in
/// the session of a user and in a group of no such name.
pub(super) fn group_of(ctx: &RuleContext<'_>, pid: u32) -> Option<String> {
    let row = ctx.find_by_pid(pid)?;
    if let Some(container) = row.container() {
        return Some(format!("container {container}"));
    }
    let unit = row.unit()?;
    let is_session = unit.starts_with("session-") || unit.starts_with("user@") || unit == "init.scope";
    (!is_session && !unit.ends_with(".slice")).then(|| format!("unit {unit}"))
}

/// What the processes of one group have of a device together.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct UserGroup {
    /// As [`group_of`] names it.
    pub(super) name: String,
    /// 0 to 1.
    pub(super) share: f64,
    /// Processes with a share.
    tasks: usize,
    /// The largest share of one of them.
    largest: f64,
}

impl UserGroup {
    /// The group with most of the device, among its users by process id with their shares; `None` if none has much of it.
    pub(super) fn of(ctx: &RuleContext<'_>, users: impl Iterator<Item = (u32, f64)>) -> Option<Self> {
        let mut groups = BTreeMap::<String, Self>::new();
        for (pid, share) in users.take(MAX_USERS) {
            let Some(name) = group_of(ctx, pid) else { continue };
            let none = Self { name: name.clone(), share: 0.0, tasks: 0, largest: 0.0 };
            let group = groups.entry(name).or_insert(none);
            group.share += share;
            group.tasks += 1;
            group.largest = group.largest.max(share);
        }
        groups.into_values().filter(|group| group.share >= MIN_SHARE).max_by(|a, b| a.share.total_cmp(&b.share))
    }

    /// Whether several processes make its share together.
    pub(super) fn is_of_several(&self) -> bool {
        self.largest < MAIN_PART * self.share
    }

    /// `unit import.service (8 tasks) has 96%`.
    pub(super) fn summary(&self) -> String {
        format!("{} ({} tasks) has {}", self.name, self.tasks, format::percent(self.share * 100.0))
    }

    pub(super) fn involved(&self) -> InvolvedGroup {
        InvolvedGroup { name: self.name.clone(), share_pct: (self.share * 100.0).round().min(100.0) as u8 }
    }
}

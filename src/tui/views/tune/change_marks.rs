//! Places knob changes on graphs of the past, and picks the periods before and after a change to compare.

use crate::model::change_impact::{ChangeImpact, ChangeTimes, compare};
use crate::model::disk::DevId;
use crate::tui::knob_snapshot::{ChangeRow, ChangeStatus};
use crate::tui::state::App;

impl App {
    /// Times at which knobs were changed or changed back, CLOCK_BOOTTIME in ns.
    pub fn change_times(&self) -> impl Iterator<Item = u64> + '_ {
        let tune = &self.views.tune;
        tune.changes().iter().filter_map(|c| c.boot_ns).chain(tune.ended_boot_ns.values().copied())
    }

    /// Returns the periods to compare for a change; `None` if its time is not known.
    pub fn comparison_window(&self, change: &ChangeRow) -> Option<ChangeTimes> {
        let at_ns = change.boot_ns?;
        let before = self.change_times().filter(|t| *t < at_ns).max();
        let after = self.change_times().filter(|t| *t > at_ns).min();
        // For a change that ended unobserved it is not known how long it was in effect.
        let over =
            matches!(change.status, ChangeStatus::Closed(_)) && !self.views.tune.ended_boot_ns.contains_key(&change.id);
        (!over).then_some(ChangeTimes {
            earliest_ns: before.unwrap_or(0),
            changed_ns: at_ns,
            latest_ns: after.unwrap_or(u64::MAX),
        })
    }

    /// Returns the devices to compare for a change: those it names, else all hardware devices.
    fn change_devices(&self, change: &ChangeRow) -> Vec<DevId> {
        let Some(topo) = self.shared.system.topology.ok() else { return Vec::new() };
        let named = change.members.iter().filter_map(|m| m.device.as_deref());
        let own: Vec<DevId> = named.filter_map(|name| topo.by_name(name)).map(|d| d.id).collect();
        match own.is_empty() {
            true => topo.devices.iter().filter(|d| d.is_hardware()).map(|d| d.id).collect(),
            false => own,
        }
    }

    /// Compares the measurements before and after a change.
    pub fn compare_change(&self, change: &ChangeRow) -> Option<ChangeImpact> {
        let when = self.comparison_window(change)?;
        Some(compare(self.shared.history_to_shown().map(|f| &*f.snapshot), when, &self.change_devices(change)))
    }

    /// Seconds after which dirty pages are written back (vm.dirty_expire_centisecs).
    pub fn dirty_expire_secs(&self) -> Option<f64> {
        let row = self.views.tune.knob("vm.dirty_expire_centisecs")?;
        Some(row.reading.as_ref().ok()?.value.parse::<f64>().ok()? / 100.0)
    }
}

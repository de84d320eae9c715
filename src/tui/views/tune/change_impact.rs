//! Picks the periods before and after a knob change to compare, and compares them.

use super::TuneView;
use crate::model::change_impact::{ChangeImpact, ChangeTimes, compare};
use crate::model::disk::DevId;
use crate::tui::knob_snapshot::{ChangeRow, ChangeStatus, device_of};
use crate::tui::view::Shared;

impl TuneView {
    /// The periods to compare for a change; `None` if its time is not known.
    fn comparison_window(&self, change: &ChangeRow) -> Option<ChangeTimes> {
        let at_ns = change.boot_ns?;
        // For a change that ended unobserved it is not known how long it was in effect.
        if matches!(change.status, ChangeStatus::Closed(_)) && !self.ended_boot_ns.contains_key(&change.id) {
            return None;
        }
        Some(ChangeTimes {
            earliest_ns: self.change_times().filter(|t| *t < at_ns).max().unwrap_or(0),
            changed_ns: at_ns,
            latest_ns: self.change_times().filter(|t| *t > at_ns).min().unwrap_or(u64::MAX),
        })
    }

    /// Compares the measurements before and after a change, of the devices it names, else of all hardware devices.
    pub(in crate::tui) fn compare_change(&self, change: &ChangeRow, shared: &Shared) -> Option<ChangeImpact> {
        let times = self.comparison_window(change)?;
        let mut devices: Vec<DevId> = Vec::new();
        if let Some(topology) = shared.system.topology.ok() {
            let named = change.members.iter().filter_map(|m| topology.by_name(device_of(&m.knob)?));
            devices.extend(named.map(|d| d.id));
            if devices.is_empty() {
                devices.extend(topology.devices.iter().filter(|d| d.is_hardware()).map(|d| d.id));
            }
        }
        Some(compare(shared.history_to_shown().map(|f| &*f.snapshot), times, &devices))
    }

    /// Seconds after which dirty pages are written back (vm.dirty_expire_centisecs).
    pub(super) fn dirty_expire_secs(&self) -> Option<f64> {
        let row = self.knobs.knob("vm.dirty_expire_centisecs")?;
        Some(row.reading.as_ref().ok()?.value.parse::<f64>().ok()? / 100.0)
    }
}

//! Pressure stall information (Documentation/accounting/psi.rst).

pub use crate::parse::pressure::PsiAverages;
use serde::{Deserialize, Serialize};

/// Pressure on one resource. `None` where the kernel has no such line (`full` of cpu before 5.13).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ResourcePressure {
    /// At least one task was stalled.
    pub some: Option<PsiAverages>,
    /// All non-idle tasks were stalled at once.
    pub full: Option<PsiAverages>,
}

/// Pressure on the three resources.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct PressureRaw {
    /// `/proc/pressure/cpu`.
    pub cpu: ResourcePressure,
    /// `/proc/pressure/memory`.
    pub memory: ResourcePressure,
    /// `/proc/pressure/io`.
    pub io: ResourcePressure,
}

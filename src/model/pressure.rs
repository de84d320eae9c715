//! Pressure stall information (Documentation/accounting/psi.rst).

use serde::{Deserialize, Serialize};

/// One line of `/proc/pressure/*`: shares of time in percent, total in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct PsiAverages {
    /// Over the last 10 s.
    pub avg10: f64,
    /// Over the last 60 s.
    pub avg60: f64,
    /// Over the last 300 s.
    pub avg300: f64,
    /// Microseconds stalled since boot.
    pub total_us: u64,
}

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

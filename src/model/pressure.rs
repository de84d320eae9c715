//! Pressure stall information (Documentation/accounting/psi.rst).

pub(crate) use crate::parse::pressure::PsiAverages;
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
    pub cpu: ResourcePressure,
    pub memory: ResourcePressure,
    pub io: ResourcePressure,
}

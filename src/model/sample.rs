//! The raw counters of one tick, exactly as the kernel gave them.

use super::charge::ChargeRaw;
use super::clock::Clock;
use super::cpu::CpuRaw;
use super::disk::DiskRaw;
use super::latency::LatencyRaw;
use super::memory::{MemRaw, SwapArea, VmRaw};
use super::network::{NetFsRaw, NicRaw};
use super::pressure::PressureRaw;
use super::section::Section;
use super::stalls::StallsRaw;
use super::syncs::SyncsRaw;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What the counter sources read in one tick. Processes, the kernel log and the block topology have
/// rhythms of their own and arrive apart.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Counts up from 1.
    pub seq: u64,
    /// When the reading began.
    pub at: Clock,
    /// `/proc/stat`: CPU time.
    pub cpu: Section<CpuRaw>,
    /// `/proc/diskstats`, one entry a device, in the kernel's order.
    pub disks: Section<Vec<DiskRaw>>,
    /// `/proc/vmstat`.
    pub vm: Section<VmRaw>,
    /// `/proc/meminfo`.
    pub mem: Section<MemRaw>,
    /// `/proc/swaps`.
    pub swaps: Section<Vec<SwapArea>>,
    /// `/proc/pressure/*`.
    pub pressure: Section<PressureRaw>,
    /// Network interfaces: bytes and link speed.
    pub nics: Section<Vec<NicRaw>>,
    /// NFS and CIFS mounts.
    pub netfs: Section<Vec<NetFsRaw>>,
    /// Histograms of request latency, from tracing.
    pub latency: Section<Arc<LatencyRaw>>,
    /// Who was held up by memory, from tracing.
    pub stalls: Section<StallsRaw>,
    /// Syncs, from tracing; only while somebody wants them.
    pub syncs: Section<SyncsRaw>,
    /// Who does the I/O of the devices, from tracing.
    pub charge: Section<Arc<ChargeRaw>>,
}

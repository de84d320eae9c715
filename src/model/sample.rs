//! The raw counters of one tick, exactly as the kernel gave them.

use super::cpu::CpuRaw;
use super::disk::DiskRaw;
use super::io_accounting::IoAccountsRaw;
use super::latency::LatencyRaw;
use super::memory::{MemRaw, SwapArea, VmRaw};
use super::memory_stalls::MemoryStallsRaw;
use super::network::{NetFsRaw, NicRaw};
use super::pressure::PressureRaw;
use super::reading::Reading;
use super::syncs::SyncsRaw;
use super::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What the counter sources read in one tick. Processes, the kernel log and the block topology have
/// rhythms of their own and arrive apart.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Counts up from 1.
    pub seq: u64,
    /// When the reading began.
    #[serde(rename = "at")]
    pub time: Timestamp,
    /// `/proc/stat`: CPU time.
    pub cpu: Reading<CpuRaw>,
    /// `/proc/diskstats`, one entry a device, in the kernel's order.
    pub disks: Reading<Vec<DiskRaw>>,
    /// `/proc/vmstat`.
    pub vm: Reading<VmRaw>,
    /// `/proc/meminfo`.
    pub mem: Reading<MemRaw>,
    /// `/proc/swaps`.
    #[serde(rename = "swaps")]
    pub swap_areas: Reading<Vec<SwapArea>>,
    /// `/proc/pressure/*`.
    pub pressure: Reading<PressureRaw>,
    /// Network interfaces: bytes and link speed.
    pub nics: Reading<Vec<NicRaw>>,
    /// NFS and CIFS mounts.
    pub netfs: Reading<Vec<NetFsRaw>>,
    /// Histograms of request latency, from tracing.
    pub latency: Reading<Arc<LatencyRaw>>,
    /// Who was held up by memory, from tracing.
    #[serde(rename = "stalls")]
    pub memory_stalls: Reading<MemoryStallsRaw>,
    /// Syncs, from tracing; only while somebody wants them.
    pub syncs: Reading<SyncsRaw>,
    /// Who does the I/O of the devices, from tracing.
    #[serde(rename = "charge")]
    pub io_accounts: Reading<Arc<IoAccountsRaw>>,
}

//! The raw counters of one tick, unchanged from the kernel.

use super::control_groups::ControlGroupsRaw;
use super::cpu::CpuRaw;
use super::disk::DiskRaw;
use super::file_io::FileIoRaw;
use super::io_accounting::IoAccountsRaw;
use super::latency::LatencyRaw;
use super::memory::{MemRaw, SwapArea, VmRaw};
use super::memory_stalls::MemoryStallsRaw;
use super::network::{NetFsRaw, NicRaw};
use super::pressure::PressureRaw;
use super::reading::Reading;
use super::syncs::SyncsRaw;
use super::task_waits::TaskWaitsRaw;
use super::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What the counter sources read in one tick. Processes, the kernel log and the block topology are read at other
/// intervals and arrive separately.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Counts from 1.
    pub seq: u64,
    /// When reading began.
    pub time: Timestamp,
    /// `/proc/stat`: CPU time.
    pub cpu: Reading<CpuRaw>,
    /// `/proc/diskstats`, in the kernel's order.
    pub disks: Reading<Vec<DiskRaw>>,
    /// `/proc/vmstat`.
    pub vm: Reading<VmRaw>,
    /// `/proc/meminfo`.
    pub mem: Reading<MemRaw>,
    /// `/proc/swaps`.
    pub swap_areas: Reading<Vec<SwapArea>>,
    /// `/proc/pressure/*`.
    pub pressure: Reading<PressureRaw>,
    /// Network interfaces: bytes and link speed.
    pub nics: Reading<Vec<NicRaw>>,
    /// NFS and CIFS mounts.
    pub netfs: Reading<Vec<NetFsRaw>>,
    /// Latency histograms of requests, from tracing.
    pub latency: Reading<Arc<LatencyRaw>>,
    /// Stalls by process, from tracing.
    pub memory_stalls: Reading<MemoryStallsRaw>,
    /// Syncs, from tracing; only while requested.
    pub syncs: Reading<SyncsRaw>,
    /// I/O by process and control group, from tracing.
    pub io_accounts: Reading<Arc<IoAccountsRaw>>,
    /// I/O by file, from tracing; only while requested.
    pub file_io: Reading<Arc<FileIoRaw>>,
    /// What tasks wait for, from tracing; only while requested.
    pub task_waits: Reading<Arc<TaskWaitsRaw>>,
    /// Control groups; only while requested. Not recorded.
    pub control_groups: Reading<Arc<ControlGroupsRaw>>,
}

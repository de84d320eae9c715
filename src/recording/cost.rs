//! What decoded frames cost in memory, so that a small file cannot take much of it.
//!
//! The costs are those through the whole program (the reader's state, the observations, the tables and what is shown),
//! estimated from above. A reader's state may cost [`FREE_COST`], and [`COST_PER_BYTE`] for each compressed byte that
//! it was made from. A task of a real machine takes some 70 compressed bytes in a key frame.

use crate::model::latency::SparseHistogram;
use crate::model::reading::Reading;
use crate::model::sample::Sample;

pub(crate) const FREE_COST: usize = 26 << 20;
pub(crate) const COST_PER_BYTE: usize = 80;
/// Bytes for a task.
pub(crate) const TASK_COST: usize = 1_000;
/// Bytes for the queue settings of a device.
pub(crate) const QUEUE_COST: usize = 1024;

/// A device with its rates, or a mount.
const DEVICE_COST: usize = 2_000;
/// A row that only has a few counters.
const ROW_COST: usize = 700;
/// A sync or an account.
const TRACED_COST: usize = 1_500;
const NAME_COST: usize = 300;
/// A bucket of a histogram: the reader, the sample, the one before and the difference have it.
const BUCKET_COST: usize = 4 * size_of::<(u16, u32)>();

/// What JSON becomes when it is parsed: its texts, objects and items, in the state and in the observation.
pub(crate) fn json_cost(body: &[u8]) -> usize {
    let each = |byte: &u8| match byte {
        b'{' => 400,
        b'[' | b',' => 48,
        _ => 2,
    };
    body.iter().map(each).sum()
}

pub(crate) fn sample_cost(sample: &Sample) -> usize {
    fn rows<T>(reading: &Reading<Vec<T>>, cost: usize) -> usize {
        reading.ok().map_or(0, |rows| rows.len() * cost)
    }
    let buckets = |histogram: &SparseHistogram| histogram.buckets().len() * BUCKET_COST;
    let latency = sample.latency.ok().map_or(0, |latency| {
        let kinds = latency.devices.iter().flat_map(|device| &device.kinds);
        let histograms: usize = kinds.map(|kind| buckets(&kind.total) + buckets(&kind.service)).sum();
        latency.devices.len() * DEVICE_COST + histograms
    });
    let syncs = sample.syncs.ok().map_or(0, |syncs| {
        let rows = syncs.files.len() + syncs.slow.len() + syncs.in_flight.len();
        rows * TRACED_COST + syncs.files.iter().map(|file| buckets(&file.histogram)).sum::<usize>()
    });
    let accounts = sample.io_accounts.ok().map_or(0, |raw| {
        let names = (raw.names.len() + raw.cgroups.len()) * NAME_COST;
        names + raw.accounts.iter().map(|account| TRACED_COST + buckets(&account.histogram)).sum::<usize>()
    });
    let files = sample.file_io.ok().map_or(0, |raw| {
        let names = raw.processes.len() * NAME_COST
            + raw.files.iter().map(|file| TRACED_COST + 2 * file.path_tail.as_bytes().len()).sum::<usize>();
        names + raw.accounts.iter().map(|account| TRACED_COST + buckets(&account.histogram)).sum::<usize>()
    });
    let waits = sample.task_waits.ok().map_or(0, |raw| {
        let files = raw.files.iter().map(|file| TRACED_COST + 2 * file.path_tail.as_bytes().len()).sum::<usize>();
        raw.processes.len() * NAME_COST + files + raw.accounts.len() * TRACED_COST
    });
    let stalls = sample.memory_stalls.ok().map_or(0, |stalls| stalls.tasks.len() * ROW_COST);
    rows(&sample.disks, DEVICE_COST)
        + rows(&sample.netfs, DEVICE_COST)
        + rows(&sample.nics, ROW_COST)
        + rows(&sample.swap_areas, ROW_COST)
        + latency
        + syncs
        + accounts
        + files
        + waits
        + stalls
}

//! Whether a cache answered instead of the device.

use super::data::Measurement;
use crate::units::format_bytes_long;

/// Application bytes per device byte above which a cache answered.
const CACHE_RATIO: f64 = 1.5;
/// Less than this says nothing, bytes.
const MIN_BYTES: u64 = 8 << 20;

/// Whether the program read or wrote far more than the device did meanwhile. What the page cache takes and the device has
/// not written yet counts, too.
pub(crate) fn is_from_cache(part: &Measurement) -> bool {
    let Some(device) = &part.device else { return false };
    let bytes = |mb_per_s: f64| mb_per_s * 1_048_576.0 * part.device_ns as f64 / 1e9;
    let [read, written] = [device.read_mb_per_s, device.write_mb_per_s].map(bytes);
    let is_far_above = |app: u64, moved: f64| app > MIN_BYTES && app as f64 > CACHE_RATIO * moved;
    is_far_above(part.read.bytes, read) || is_far_above(part.write.bytes, written)
}

/// The rates of both, if a cache answered.
pub(super) fn describe_cache(part: &Measurement, direct: bool) -> Option<String> {
    let device = part.device.as_ref().filter(|_| part.from_cache)?;
    let moved = (device.read_mb_per_s + device.write_mb_per_s) * 1_048_576.0;
    let [app, device] = [part.bytes_per_s(), moved].map(|rate| format_bytes_long(rate as u64));
    let who = if direct { "a cache" } else { "the page cache" };
    Some(format!("the program moved {app}/s and the device {device}/s: {who} answered, not the device"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::measure::latency::DirectionStats;
    use crate::model::disk::DiskRate;

    fn measurement(read_mib: u64, written_mib: u64, device: [f64; 2]) -> Measurement {
        let of = |mib: u64| DirectionStats { ios: mib * 256, bytes: mib << 20, ..DirectionStats::default() };
        let rate = DiskRate { read_mb_per_s: device[0], write_mb_per_s: device[1], ..DiskRate::default() };
        Measurement {
            device_ns: 1_000_000_000,
            read: of(read_mib),
            write: of(written_mib),
            device: Some(rate),
            ..Measurement::default()
        }
    }

    #[test]
    fn each_direction_is_compared_with_the_device() {
        assert!(is_from_cache(&measurement(2000, 0, [100.0, 0.0])));
        assert!(!is_from_cache(&measurement(2000, 0, [2000.0, 0.0])));
        // What others write does not make up for what was not read.
        assert!(is_from_cache(&measurement(100, 100, [1.0, 500.0])));
        assert!(is_from_cache(&measurement(0, 100, [0.0, 0.0])), "written to the page cache only");
        assert!(!is_from_cache(&Measurement { device: None, ..measurement(2000, 0, [0.0, 0.0]) }));
    }
}

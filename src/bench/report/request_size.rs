//! How many requests the device gets for an operation, and what limits the size of one.

use super::data::{BenchReport, Measurement};
use crate::bench::target::size_hints::{DeviceSizeHint, MAX_SEGMENTS};
use crate::units::format_bytes_long;

/// Fewer operations say nothing.
pub(super) const MIN_OPERATIONS: u64 = 20;
/// Requests of an operation from which on it counts as split.
const SPLIT: f64 = 1.3;

/// Requests the device counted per operation; `None` if they include work of other processes.
pub(super) fn requests_per_operation(p: &Measurement) -> Option<f64> {
    let device = p.device.as_ref()?;
    let ratio = p.app_to_device_ratio()?;
    let counted = (device.reads_per_s + device.writes_per_s) * p.device_ns as f64 / 1e9;
    (p.ios() >= MIN_OPERATIONS && (0.9..=1.1).contains(&ratio)).then(|| counted / p.ios() as f64)
}

/// The limit of the device that lies between the largest size that goes as one request and the one that does not:
/// `, its max_sectors_kb`.
pub(super) fn name_limit(whole: u32, split: u32, sizes: &[DeviceSizeHint], huge_pages: bool) -> String {
    let of = |name: &str| sizes.iter().find(|z| z.name == name).map(|z| z.bytes);
    let lies_there = |n: &u64| (u64::from(whole)..u64::from(split)).contains(n);
    let named = ["max_sectors_kb", "chunk_sectors", "md chunk_size"]
        .into_iter()
        .find(|name| of(name).as_ref().is_some_and(lies_there));
    if let Some(name) = named {
        return format!(", its {name}");
    }
    let segments = of(MAX_SEGMENTS).filter(|n| !huge_pages && lies_there(n));
    if let Some(bytes) = segments {
        let (pages, page) =
            (bytes / rustix::param::page_size() as u64, format_bytes_long(rustix::param::page_size() as u64));
        return format!(
            ", its max_segments: {pages} pages of {page}, of which a buffer on huge pages (--huge-pages) needs fewer"
        );
    }
    of("max_sectors_kb").map_or(String::new(), |n| format!(" (max_sectors_kb would allow {})", format_bytes_long(n)))
}

/// Says that operations are split, if they are, and by which limit.
pub(super) fn describe_split(part: &Measurement, report: &BenchReport) -> Option<String> {
    let each =
        requests_per_operation(part).filter(|each| *each >= SPLIT && report.plan.direct && part.sync.ios == 0)?;
    let sizes = report.target.as_ref().map_or(&[][..], |t| &t.size_hints);
    let limits = [Some("max_sectors_kb"), Some("chunk_sectors"), (!report.plan.huge_pages).then_some(MAX_SEGMENTS)];
    let below = limits.into_iter().flatten().filter_map(|name| sizes.iter().find(|z| z.name == name));
    let least = below.map(|z| z.bytes).filter(|bytes| *bytes < u64::from(part.block)).min()?;
    let limit = name_limit(least as u32, part.block, sizes, report.plan.huge_pages);
    let [block, largest] = [u64::from(part.block), least].map(format_bytes_long);
    Some(format!(
        "the device gets {each:.1} requests for one operation of {block}: {largest} is the most that one takes{limit}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_between_the_two_sizes_is_named() {
        let of = |name: &str, bytes| DeviceSizeHint { name: name.into(), bytes };
        let sizes = [of("max_sectors_kb", 1280 << 10), of(MAX_SEGMENTS, 254 * 4096)];
        let named = |whole: u32, split: u32, huge| name_limit(whole << 10, split << 10, &sizes, huge);
        assert!(named(512, 1024, false).contains("its max_segments: 254 pages of"), "{}", named(512, 1024, false));
        assert_eq!(named(512, 1024, true), " (max_sectors_kb would allow 1.25 MiB)");
        assert_eq!(named(1024, 2048, false), ", its max_sectors_kb");
        assert_eq!(name_limit(4096, 8192, &[], false), "");
    }
}

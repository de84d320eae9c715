//! Sizes of a device's requests in the interval, and how many were sequential (see [`crate::model::request_pattern`]).

use super::super::detail::DetailText;
use crate::model::disk::DevId;
use crate::model::request_pattern::{RequestPattern, bucket_min_bytes};
use crate::tui::view::Shared;

const BAR_WIDTH: usize = 20;
/// Width of a column: a bar and its percentage.
const COLUMN_WIDTH: usize = BAR_WIDTH + 8;

/// Appends bars of reads and writes side by side; nothing where requests are not traced, which the latency table explains.
pub(super) fn push_request_sizes(shared: &Shared, id: DevId, out: &mut DetailText) {
    let Some(latency) = shared.snapshot().device(id).and_then(|d| d.latency.as_ref()) else { return };
    let shapes = [latency.kinds[0].pattern, latency.kinds[1].pattern];
    let used = |at: usize| shapes.iter().any(|s| s.sizes[at] > 0);
    let Some(first) = (0..shapes[0].sizes.len()).find(|at| used(*at)) else { return };
    let last = (first..shapes[0].sizes.len()).rfind(|at| used(*at)).unwrap_or(first);
    let line = |name: &str, [read, write]: [String; 2]| {
        format!("{name:<10}{read:<COLUMN_WIDTH$}{write}").trim_end().to_owned()
    };
    out.section(line("Requests", ["reads", "writes"].map(str::to_owned)));
    out.line(line("", shapes.map(|s| format_access_pattern(&s))));
    for at in first..=last {
        let name = format!("{:>9}", size_range_label(at, shapes[0].sizes.len()));
        out.line(line(&name, shapes.map(|s| share_bar(s.sizes[at], s.request_count()))));
    }
}

fn format_access_pattern(shape: &RequestPattern) -> String {
    match shape.sequential_pct() {
        Some(pct) => format!("{:.0} % seq., {:.0} % random", pct.round(), 100.0 - pct.round()),
        None => "-".into(),
    }
}

/// Label of a size range: `4K-8K`.
fn size_range_label(at: usize, sizes: usize) -> String {
    let short = |at| match bucket_min_bytes(at) {
        n if n >= 1 << 20 => format!("{}M", n >> 20),
        n => format!("{}K", n >> 10),
    };
    match at {
        0 => format!("under {}", short(1)),
        at if at + 1 == sizes => format!("{} up", short(at)),
        at => format!("{}-{}", short(at), short(at + 1)),
    }
}

/// A bar in eighths of a cell with its percentage; empty for zero.
fn share_bar(n: u32, all: u64) -> String {
    const EIGHTHS: [&str; 8] = ["", "\u{258f}", "\u{258e}", "\u{258d}", "\u{258c}", "\u{258b}", "\u{258a}", "\u{2589}"];
    if n == 0 {
        return String::new();
    }
    let part = f64::from(n) / all.max(1) as f64;
    let eighths = ((part * (8 * BAR_WIDTH) as f64).round() as usize).clamp(1, 8 * BAR_WIDTH);
    let bar = format!("{}{}", "\u{2588}".repeat(eighths / 8), EIGHTHS[eighths % 8]);
    let pct = if part < 0.005 { "<1".to_owned() } else { format!("{:.0}", part * 100.0) };
    format!("{bar} {pct} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smallest_share_shows_and_full_share_fills_the_bar() {
        assert_eq!(share_bar(0, 9), "");
        assert_eq!(share_bar(1, 1_000_000), "\u{258f} <1 %");
        assert_eq!(share_bar(7, 7), format!("{} 100 %", "\u{2588}".repeat(BAR_WIDTH)));
        assert!(share_bar(7, 7).chars().count() < COLUMN_WIDTH);
    }

    #[test]
    fn size_ranges_have_short_labels() {
        let names: Vec<String> = [0, 1, 3, 10, 11].map(|at| size_range_label(at, 12)).to_vec();
        assert_eq!(names, ["under 1K", "1K-2K", "4K-8K", "512K-1M", "1M up"]);
    }

    #[test]
    fn access_pattern_shares_sum_to_100_and_unknown_is_a_dash() {
        let shape = RequestPattern { random: 1, sequential: 7, ..RequestPattern::default() };
        assert_eq!(format_access_pattern(&shape), "88 % seq., 12 % random");
        assert_eq!(format_access_pattern(&RequestPattern::default()), "-");
    }
}

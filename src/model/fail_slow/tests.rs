//! Groups of devices with a known law of latency, load that changes, and delays that are put in.

use super::*;
use proptest::prelude::*;

/// Numbers that look random, the same in each run (splitmix64).
struct Noise(u64);

impl Noise {
    /// From 0 to 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) as f64 / u64::MAX as f64
    }

    /// A factor around 1, with a spread of 15 % and sometimes a peak.
    fn factor(&mut self) -> f64 {
        let normal = (0..6).map(|_| self.next()).sum::<f64>() - 3.0;
        let peak = if self.next() > 0.97 { 3.0 } else { 1.0 };
        (0.2 * normal).exp() * peak
    }
}

/// The latency of a healthy device, ms: it rises with the load and the size of the requests.
fn healthy_ms(requests_per_s: f64, request_bytes: f64) -> f64 {
    let use_of_it = (requests_per_s / 4_000.0).min(0.9);
    (0.4 + request_bytes / 400e6 * 1e3) / (1.0 - use_of_it)
}

/// Load of a point: several shapes of a day, at very different levels.
fn load(device: usize, at: usize, noise: &mut Noise) -> (f64, f64) {
    let phase = at as f64 / 17.0 + device as f64;
    let level = 100.0 * 2.0_f64.powi((device % 4) as i32);
    let step = if (at / 23 + device).is_multiple_of(3) { 3.0 } else { 1.0 };
    let size = if (at / 31 + device).is_multiple_of(2) { 4_096.0 } else { 65_536.0 };
    (level * step * (1.3 + phase.sin()) * (0.8 + 0.4 * noise.next()), size)
}

const POINTS: usize = 120;

fn device(at: usize, points: Vec<DevicePoint>) -> DeviceSeries {
    DeviceSeries { host: format!("host-{}", at / 4), device: format!("sd{}", at % 4), group: "model".into(), points }
}

/// Devices whose latency is changed by a function of device and point.
fn group(devices: usize, seed: u64, change: impl Fn(usize, usize, DevicePoint) -> DevicePoint) -> Vec<DeviceSeries> {
    let mut noise = Noise(seed);
    let mut points = |at: usize| {
        let mut point = |n: usize| {
            let (requests_per_s, size) = load(at, n, &mut noise);
            let latency_ms = healthy_ms(requests_per_s, size) * noise.factor();
            let point = DevicePoint {
                at_secs: 15.0 * n as f64,
                latency_ms,
                requests_per_s,
                bytes_per_s: requests_per_s * size,
            };
            change(at, n, point)
        };
        (0..POINTS).map(&mut point).collect()
    };
    (0..devices).map(|at| device(at, points(at))).collect()
}

fn slower(point: DevicePoint, factor: f64) -> DevicePoint {
    DevicePoint { latency_ms: point.latency_ms * factor, ..point }
}

/// A device with a fixed number of requests in flight does fewer of them if they take longer.
fn slower_in_closed_loop(point: DevicePoint, factor: f64) -> DevicePoint {
    let [requests_per_s, bytes_per_s] = [point.requests_per_s, point.bytes_per_s].map(|n| n / factor);
    DevicePoint { requests_per_s, bytes_per_s, ..slower(point, factor) }
}

fn found(series: &[DeviceSeries]) -> Vec<usize> {
    let verdicts = judge(series);
    let is_slow = |at: &usize| matches!(verdicts[*at].judgement, Judgement::FailSlow(_));
    (0..verdicts.len()).filter(is_slow).collect()
}

#[test]
fn no_healthy_device_is_found_whatever_its_load() {
    for seed in 0..20 {
        assert!(found(&group(20, seed, |_, _, point| point)).is_empty(), "{seed}");
    }
}

#[test]
fn a_slow_device_is_found_with_its_slowdown_and_its_start() {
    let series = group(8, 1, |at, n, point| if at == 3 && n >= 60 { slower(point, 4.0) } else { point });
    let verdicts = judge(&series);
    let Judgement::FailSlow(slow) = verdicts[3].judgement else { panic!("{:?}", verdicts[3]) };
    assert!((3.2..5.0).contains(&slow.slowdown), "{slow:?}");
    assert!((840.0..=960.0).contains(&slow.since_secs), "{slow:?}");
    assert!((slow.latency_ms / slow.siblings_ms - slow.slowdown).abs() < 1e-9);
    assert!(slow.bound >= MIN_SLOWDOWN && slow.bound < slow.slowdown);
    assert_eq!((found(&series), verdicts[3].compared), (vec![3], 8));
    let Judgement::Healthy(ratio) = verdicts[2].judgement else { panic!("{:?}", verdicts[2]) };
    assert!((0.7..1.4).contains(&ratio), "{ratio}");
}

#[test]
fn three_of_twenty_do_not_hide_each_other() {
    let is_slow = |at: usize| [2, 9, 17].contains(&at);
    for factor in [2.0, 3.0, 10.0, 50.0] {
        let open = group(20, 7, |at, _, point| if is_slow(at) { slower(point, factor) } else { point });
        let closed =
            group(20, 8, |at, _, point| if is_slow(at) { slower_in_closed_loop(point, factor) } else { point });
        assert_eq!((found(&open), found(&closed)), (vec![2, 9, 17], vec![2, 9, 17]), "factor {factor}");
    }
}

#[test]
fn a_quarter_of_a_small_group_may_be_slow() {
    for (devices, slow) in [(5, vec![0]), (8, vec![0, 1]), (12, vec![0, 1, 2])] {
        for factor in [2.5, 4.0, 30.0] {
            let series =
                group(
                    devices,
                    11,
                    |at, _, point| {
                        if slow.contains(&at) { slower_in_closed_loop(point, factor) } else { point }
                    },
                );
            assert_eq!(found(&series), slow, "{devices} devices, factor {factor}");
        }
    }
}

#[test]
fn a_device_slowed_far_below_the_load_of_busy_siblings_is_compared_with_their_lowest_load() {
    let busy = |n: usize, point: DevicePoint| {
        let requests_per_s = 2_000.0 + 1_600.0 * (n as f64 / 9.0).sin().abs();
        let noise = point.latency_ms / healthy_ms(point.requests_per_s, point.bytes_per_s / point.requests_per_s);
        let latency_ms = healthy_ms(requests_per_s, 4_096.0) * noise;
        DevicePoint { requests_per_s, bytes_per_s: requests_per_s * 4_096.0, latency_ms, ..point }
    };
    let series = group(8, 12, |at, n, point| {
        let point = busy(n, point);
        if at == 5 { slower_in_closed_loop(point, 20.0) } else { point }
    });
    assert_eq!(found(&series), [5]);
}

#[test]
fn a_burst_and_what_has_passed_are_no_fail_slow() {
    let series = group(8, 2, |at, n, point| match (at, n) {
        (1, 20..80) => slower(point, 5.0),
        (2, n) if n + 8 >= POINTS => slower(point, 5.0),
        _ => point,
    });
    assert!(found(&series).is_empty());
}

#[test]
fn an_idle_device_that_must_wake_up_is_not_compared_with_busy_ones() {
    let idle = |point: DevicePoint| DevicePoint { requests_per_s: 2.0, bytes_per_s: 8_192.0, latency_ms: 3.0, ..point };
    let verdicts = judge(&group(8, 3, |at, _, point| if at == 0 { idle(point) } else { point }));
    assert_eq!(verdicts[0].judgement, Judgement::NotJudged(NotJudged::TooFewPoints));
}

#[test]
fn a_device_that_works_more_than_all_others_is_not_judged_there() {
    let busy = |point: DevicePoint| DevicePoint { requests_per_s: 60_000.0, latency_ms: 40.0, ..point };
    let verdicts = judge(&group(8, 4, |at, _, point| if at == 0 { busy(point) } else { point }));
    assert_eq!(verdicts[0].judgement, Judgement::NotJudged(NotJudged::TooFewPoints));
    assert!(verdicts[1..].iter().all(|verdict| matches!(verdict.judgement, Judgement::Healthy(_))));
}

#[test]
fn few_devices_and_other_groups_are_no_siblings() {
    let mut series = group(MIN_DEVICES, 5, |at, _, point| if at == 0 { slower(point, 9.0) } else { point });
    assert_eq!(found(&series), [0]);
    series[4].group = "another model".into();
    let too_few = Judgement::NotJudged(NotJudged::TooFewSiblings);
    assert!(judge(&series).iter().all(|verdict| verdict.judgement == too_few));
    assert!(judge(&[]).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_slow_ones_are_found_and_no_others(
        seed in any::<u64>(), devices in 8..24usize, slow in 0..3usize, factor in 2.5..40.0f64, is_closed in any::<bool>(),
    ) {
        let slow: Vec<usize> = (0..slow.min(devices / 5)).map(|n| n * 3 + 1).collect();
        let delay = if is_closed { slower_in_closed_loop } else { slower };
        let series = group(devices, seed, |at, _, point| if slow.contains(&at) { delay(point, factor) } else { point });
        prop_assert_eq!(found(&series), slow);
    }

    #[test]
    fn order_and_unit_do_not_matter(seed in any::<u64>(), scale in 0.01..100.0f64, turn in 0..10usize) {
        let series = group(10, seed, |at, _, point| if at == 4 { slower(point, 6.0) } else { point });
        let mut turned = series.to_vec();
        turned.iter_mut().flat_map(|one| &mut one.points).for_each(|point| *point = slower(*point, scale));
        turned.rotate_left(turn);
        prop_assert_eq!(found(&series), [4]);
        prop_assert_eq!(found(&turned), [(4 + 10 - turn) % 10]);
    }

    #[test]
    fn any_figures_give_a_verdict_for_each(
        figures in proptest::collection::vec(proptest::collection::vec((any::<f64>(), any::<f64>(), any::<f64>()), 0..80), 0..9),
    ) {
        let point = |(n, (a, b, c)): (usize, (f64, f64, f64))|
            DevicePoint { at_secs: n as f64, latency_ms: a, requests_per_s: b, bytes_per_s: c };
        let series: Vec<_> = figures.into_iter().enumerate()
            .map(|(at, points)| device(at, points.into_iter().enumerate().map(point).collect())).collect();
        prop_assert_eq!(judge(&series).len(), series.len());
    }
}

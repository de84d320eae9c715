//! Sizes and order of requests, as differences to the tick before: a section of its own beside the histograms
//! ([`super::latency`]), whose devices it goes by. Files of earlier programs are without.

use super::codec::{ByteReader, DecodeError, put_row_delta, put_varint};
use crate::model::latency::{DeviceHistograms, LatencyRaw};
use crate::model::reading::Reading;
use crate::model::request_pattern::RequestPattern;
use std::sync::Arc;

fn devices(section: &Reading<Arc<LatencyRaw>>) -> &[DeviceHistograms] {
    section.ok().map(|l| l.devices.as_slice()).unwrap_or_default()
}

/// Appends what differs; nothing if nothing does. What devices had before goes by their place if they are the same.
pub fn encode(out: &mut Vec<u8>, prev: &Reading<Arc<LatencyRaw>>, cur: &Reading<Arc<LatencyRaw>>) {
    let (old, now) = (devices(prev), devices(cur));
    let same = old.len() == now.len() && old.iter().zip(now).all(|(a, b)| a.id == b.id);
    let empty = DeviceHistograms::default();
    let mut last = 0;
    for (at, device) in now.iter().enumerate() {
        let before = if same { &old[at] } else { &empty };
        let pairs = || before.kinds.iter().zip(&device.kinds).map(|(a, b)| (a.pattern, b.pattern));
        if pairs().any(|(a, b)| a != b) {
            put_varint(out, (at - last) as u64);
            last = at;
            pairs().for_each(|(a, b)| put_row_delta(out, &a.to_row(), &b.to_row()));
        }
    }
}

/// Adds what [`put`] wrote to the histograms of the same tick: those that stayed have their former figures still.
pub fn decode(inp: &mut ByteReader, into: &mut Reading<Arc<LatencyRaw>>) -> Result<(), DecodeError> {
    let mut at = 0usize;
    while !inp.is_empty() {
        at = at.saturating_add(inp.varint()? as usize);
        let device = into.ok_mut().and_then(|l| Arc::make_mut(l).devices.get_mut(at));
        let device = device.ok_or(DecodeError("sizes of a device that is not there"))?;
        for kind in &mut device.kinds {
            let mut row = kind.pattern.to_row();
            inp.apply_row_delta(&mut row)?;
            kind.pattern = RequestPattern::from_row(&row);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::latency;
    use super::*;
    use crate::model::disk::DevId;
    use crate::model::latency::{RequestHistograms, SparseHistogram};
    use proptest::prelude::*;

    /// As a tick has them: the histograms, then this.
    fn round_trip(prev: &Reading<Arc<LatencyRaw>>, cur: &Reading<Arc<LatencyRaw>>) -> Reading<Arc<LatencyRaw>> {
        let (mut times, mut shapes) = (Vec::new(), Vec::new());
        latency::encode(&mut times, prev, cur);
        encode(&mut shapes, prev, cur);
        let mut got = latency::decode(&mut ByteReader(&times), prev).unwrap();
        decode(&mut ByteReader(&shapes), &mut got).unwrap();
        got
    }

    fn any_reading() -> impl Strategy<Value = Reading<Arc<LatencyRaw>>> {
        let shape = || {
            any::<([u32; 12], u32, u32)>().prop_map(|(sizes, random, sequential)| RequestPattern {
                sizes,
                random,
                sequential,
            })
        };
        let kind = || {
            (0..3u32, shape()).prop_map(|(n, shape)| RequestHistograms {
                total: SparseHistogram::from_sparse([(7, n)]),
                pattern: shape,
                ..RequestHistograms::default()
            })
        };
        let device = (0..3u32, [kind(), kind(), kind()])
            .prop_map(|(minor, kinds)| DeviceHistograms { id: DevId { major: 8, minor }, kinds });
        proptest::collection::vec(device, 0..4)
            .prop_map(|devices| Reading::Ok(Arc::new(LatencyRaw { devices, ..LatencyRaw::default() })))
    }

    #[test]
    fn an_unchanged_tick_writes_nothing() {
        let some =
            Reading::Ok(Arc::new(LatencyRaw { devices: vec![DeviceHistograms::default()], ..LatencyRaw::default() }));
        let mut out = Vec::new();
        encode(&mut out, &some, &some);
        encode(&mut out, &some, &Reading::Denied("no".into()));
        assert!(out.is_empty());
    }

    proptest! {
        #[test]
        fn figures_come_back_beside_the_histograms(a in any_reading(), b in any_reading()) {
            prop_assert_eq!(round_trip(&a, &b), b.clone());
            prop_assert_eq!(round_trip(&Reading::default(), &b), b);
        }

        #[test]
        fn damage_is_refused_or_read(
            a in any_reading(), b in any_reading(), at in any::<proptest::sample::Index>(), to in any::<u8>(),
        ) {
            let mut out = Vec::new();
            encode(&mut out, &a, &b);
            if !out.is_empty() {
                let at = at.index(out.len());
                out[at] = to;
                let _ = decode(&mut ByteReader(&out), &mut b.clone());
                let _ = decode(&mut ByteReader(&out[..at]), &mut a.clone());
            }
        }
    }
}

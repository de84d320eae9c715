//! Histograms as differences to the tick before: which devices there are, if that changed, then the buckets of
//! those in which something was counted.

use super::codec::{ByteReader, DecodeError, get_reasons, put_reasons, put_varint};
use super::sample::{get_outcome, put_outcome};
use crate::model::disk::DevId;
use crate::model::latency::{BUCKETS, DeviceHistograms, LatencyRaw, SparseHistogram};
use crate::model::reading::Reading;
use std::sync::Arc;

/// Devices of one sample at most.
const MAX_DEVICES: usize = 65_536;

/// Appends a reading as it differs from `prev`.
pub fn encode(out: &mut Vec<u8>, prev: &Reading<Arc<LatencyRaw>>, cur: &Reading<Arc<LatencyRaw>>) {
    if !put_outcome(out, cur) {
        return;
    }
    let (none, Reading::Ok(now)) = (LatencyRaw::default(), cur) else { return };
    let old = prev.ok().map_or(&none, |p| &**p);
    put_varint(out, now.dropped);
    put_reasons(out, &now.unavailable);
    let same =
        old.devices.len() == now.devices.len() && old.devices.iter().zip(&now.devices).all(|(a, b)| a.id == b.id);
    put_varint(out, u64::from(!same));
    if !same {
        put_varint(out, now.devices.len() as u64);
        for d in &now.devices {
            put_varint(out, u64::from(d.id.major));
            put_varint(out, u64::from(d.id.minor));
        }
    }
    let empty = DeviceHistograms::default();
    let mut last = 0;
    for (at, device) in now.devices.iter().enumerate() {
        let before = if same { &old.devices[at] } else { &empty };
        if before.kinds == device.kinds {
            continue;
        }
        put_varint(out, (at - last) as u64);
        last = at;
        for (a, b) in before.kinds.iter().zip(&device.kinds) {
            put_counts(out, &a.total, &b.total);
            put_counts(out, &a.service, &b.service);
        }
    }
}

/// What [`put`] wrote.
pub fn decode(inp: &mut ByteReader, prev: &Reading<Arc<LatencyRaw>>) -> Result<Reading<Arc<LatencyRaw>>, DecodeError> {
    if let other @ (Reading::Denied(_) | Reading::Absent(_) | Reading::Blocked(_)) = get_outcome(inp)? {
        return Ok(other.map(|()| Arc::default()));
    }
    let lost = inp.varint()?;
    let without = get_reasons(inp)?;
    let mut devices = match inp.varint()? {
        0 => prev.ok().map(|p| p.devices.clone()).unwrap_or_default(),
        _ => get_devices(inp)?,
    };
    let mut at = 0usize;
    while !inp.is_empty() {
        at = at.saturating_add(inp.varint()? as usize);
        let device = devices.get_mut(at).ok_or(DecodeError("a device that is not there"))?;
        for kind in &mut device.kinds {
            kind.total = get_counts(inp, &kind.total, BUCKETS)?;
            kind.service = get_counts(inp, &kind.service, BUCKETS)?;
        }
    }
    Ok(Reading::Ok(Arc::new(LatencyRaw { devices, dropped: lost, unavailable: without })))
}

fn get_devices(inp: &mut ByteReader) -> Result<Vec<DeviceHistograms>, DecodeError> {
    let n = inp.count()?;
    if n > MAX_DEVICES {
        return Err(DecodeError("more devices than any machine has"));
    }
    (0..n)
        .map(|_| {
            let id = DevId { major: inp.varint_u32()?, minor: inp.varint_u32()? };
            Ok(DeviceHistograms { id, ..DeviceHistograms::default() })
        })
        .collect()
}

/// Buckets that differ: the distance from the one before, and by how much, wrapping.
pub(super) fn put_counts(out: &mut Vec<u8>, before: &SparseHistogram, now: &SparseHistogram) {
    let gone = before.buckets().iter().filter(|b| now.count_at(b.0) == 0).map(|b| (b.0, 0));
    let mut changed: Vec<(u16, u32)> = now.buckets().iter().copied().chain(gone).collect();
    changed.retain_mut(|(slot, n)| {
        *n = n.wrapping_sub(before.count_at(*slot));
        *n != 0
    });
    changed.sort_unstable_by_key(|c| c.0);
    put_varint(out, changed.len() as u64);
    let mut last = 0;
    for (slot, by) in changed {
        put_varint(out, u64::from(slot - last));
        put_varint(out, u64::from(by));
        last = slot;
    }
}

/// What [`put_counts`] wrote of a histogram of so many buckets.
pub(super) fn get_counts(
    inp: &mut ByteReader,
    before: &SparseHistogram,
    slots: usize,
) -> Result<SparseHistogram, DecodeError> {
    let changed = inp.count()?;
    if changed == 0 {
        return Ok(before.clone());
    }
    let mut dense = [0u32; BUCKETS];
    before.buckets().iter().for_each(|b| dense[usize::from(b.0)] = b.1);
    let mut slot = 0usize;
    for _ in 0..changed {
        slot = slot.saturating_add(inp.varint()? as usize);
        let by = inp.varint_u32()?;
        let cell = dense[..slots].get_mut(slot).ok_or(DecodeError("a bucket that is not there"))?;
        *cell = cell.wrapping_add(by);
    }
    Ok(SparseHistogram::from_dense(dense))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::latency::RequestHistograms;
    use crate::model::reading::BlockedRead;
    use proptest::prelude::*;

    fn round_trip(prev: &Reading<Arc<LatencyRaw>>, cur: &Reading<Arc<LatencyRaw>>) -> Reading<Arc<LatencyRaw>> {
        let mut out = Vec::new();
        encode(&mut out, prev, cur);
        decode(&mut ByteReader(&out), prev).unwrap()
    }

    fn any_reading() -> impl Strategy<Value = Reading<Arc<LatencyRaw>>> {
        let counts = || {
            proptest::collection::btree_map(0..BUCKETS as u16, 1..=u32::MAX, 0..4)
                .prop_map(SparseHistogram::from_sparse)
        };
        let kind = || {
            (counts(), counts()).prop_map(|(total, service)| RequestHistograms {
                total,
                service,
                ..RequestHistograms::default()
            })
        };
        let device = (0..3u32, [kind(), kind(), kind()])
            .prop_map(|(minor, kinds)| DeviceHistograms { id: DevId { major: 8, minor }, kinds });
        (proptest::collection::vec(device, 0..4), any::<u64>(), proptest::collection::vec("[a-z]{0,9}", 0..2)).prop_map(
            |(devices, lost, without)| {
                Reading::Ok(Arc::new(LatencyRaw { devices, dropped: lost, unavailable: without }))
            },
        )
    }

    #[test]
    fn unavailable_readings_round_trip() {
        let no = Reading::Denied("no".into());
        let stuck = Reading::Blocked(BlockedRead { since_boot_ns: 7, waiting_on: "tracing".into() });
        let some = Reading::Ok(Arc::new(LatencyRaw { unavailable: vec!["zram: no".into()], ..LatencyRaw::default() }));
        for (a, b) in [(&no, &some), (&some, &no), (&some, &stuck), (&some, &some)] {
            assert_eq!(round_trip(a, b), *b);
        }
    }

    #[test]
    fn an_unchanged_tick_takes_at_most_four_bytes() {
        let device = DeviceHistograms {
            kinds: std::array::from_fn(|_| RequestHistograms {
                total: SparseHistogram::from_sparse([(9, 5)]),
                ..RequestHistograms::default()
            }),
            ..DeviceHistograms::default()
        };
        let some = Reading::Ok(Arc::new(LatencyRaw { devices: vec![device; 20], ..LatencyRaw::default() }));
        let mut out = Vec::new();
        encode(&mut out, &some, &some);
        assert!(out.len() <= 4, "{out:?}");
    }

    proptest! {
        #[test]
        fn readings_come_back_as_differences(a in any_reading(), b in any_reading()) {
            prop_assert_eq!(round_trip(&a, &b), b.clone());
            prop_assert_eq!(round_trip(&Reading::default(), &b), b);
        }

        #[test]
        fn damage_is_refused_or_read(
            a in any_reading(), b in any_reading(), at in any::<proptest::sample::Index>(), to in any::<u8>(),
        ) {
            let mut out = Vec::new();
            encode(&mut out, &a, &b);
            let at = at.index(out.len());
            out[at] = to;
            let _ = decode(&mut ByteReader(&out), &a);
            let _ = decode(&mut ByteReader(&out[..at]), &a);
        }
    }
}

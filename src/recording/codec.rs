//! The primitives of a frame's payload, each for both directions.
//!
//! A layout is one function over a [`Wire`]: it writes a value, or reads it back into the same place. Writer and
//! reader can therefore not disagree. Every read is bounded and can fail, none can panic; writing cannot fail.

use crate::model::latency::{BUCKETS, SparseHistogram};
use crate::model::reading::{BlockedRead, Reading};
use crate::model::timestamp::Timestamp;
use crate::sanitize::sanitize;

/// Rows of one table at most: no machine has as many devices, mounts or traced files.
pub(crate) const MAX_ROWS: usize = 65_536;
/// The same for rows of many counters.
pub(crate) const MAX_DEVICES: usize = 16_384;
const MAX_REASONS: usize = 64;

/// Why bytes cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct DecodeError(pub &'static str);

/// What a layout returns; only reading can fail.
pub(crate) type Coded = Result<(), DecodeError>;

/// One direction of a payload.
pub(crate) enum Wire<'a> {
    /// Appends to these bytes.
    Write(&'a mut Vec<u8>),
    /// Takes from the front of these bytes.
    Read(&'a [u8]),
}

/// A signed number as an unsigned one that is small if its absolute value is.
pub(crate) fn zigzag(n: i64) -> u64 {
    ((n << 1) ^ (n >> 63)) as u64
}

/// The number that [`zigzag`] was given.
pub(crate) fn unzigzag(n: u64) -> i64 {
    (n >> 1) as i64 ^ -((n & 1) as i64)
}

pub(crate) fn written(layout: impl FnOnce(&mut Wire) -> Coded) -> Vec<u8> {
    let mut out = Vec::new();
    // Only reading can fail.
    let _ = layout(&mut Wire::Write(&mut out));
    out
}

/// Appends a section: tag, length, body. A reader skips tags that it does not know.
pub(crate) fn put_section(out: &mut Vec<u8>, mut tag: u64, body: &[u8]) {
    out.extend(written(|w| w.nums([&mut tag, &mut (body.len() as u64)])));
    out.extend_from_slice(body);
}

/// The next section of `payload`, which is advanced; `None` at its end.
pub(crate) fn next_section<'a>(payload: &mut &'a [u8]) -> Result<Option<(u64, &'a [u8])>, DecodeError> {
    if payload.is_empty() {
        return Ok(None);
    }
    let mut wire = Wire::Read(payload);
    let (mut tag, mut body) = (0, &[][..]);
    wire.num(&mut tag)?;
    wire.blob(&mut body)?;
    if let Wire::Read(rest) = wire {
        *payload = rest;
    }
    Ok(Some((tag, body)))
}

impl<'a> Wire<'a> {
    pub(crate) fn is_read(&self) -> bool {
        matches!(self, Wire::Read(_))
    }

    /// Whether everything has been read.
    pub(crate) fn is_at_end(&self) -> bool {
        matches!(self, Wire::Read([]))
    }

    pub(crate) fn byte(&mut self, value: &mut u8) -> Coded {
        match self {
            Wire::Write(out) => out.push(*value),
            Wire::Read(bytes) => {
                let (first, rest) = bytes.split_first().ok_or(DecodeError("the data ends too early"))?;
                (*value, *bytes) = (*first, rest);
            }
        }
        Ok(())
    }

    /// An unsigned number as LEB128: seven bits a byte, lowest first.
    pub(crate) fn num<T: Copy + Into<u64> + TryFrom<u64>>(&mut self, value: &mut T) -> Coded {
        if let Wire::Write(out) = self {
            let mut n: u64 = (*value).into();
            while n >= 0x80 {
                out.push(n as u8 | 0x80);
                n >>= 7;
            }
            out.push(n as u8);
            return Ok(());
        }
        let (mut n, mut byte) = (0, 0u8);
        for shift in (0..64).step_by(7) {
            self.byte(&mut byte)?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            n |= bits << shift;
            if byte < 0x80 {
                *value = T::try_from(n).map_err(|_| DecodeError("a number is too large for its field"))?;
                return Ok(());
            }
        }
        Err(DecodeError("a number has more than 64 bits"))
    }

    pub(crate) fn nums<T: Copy + Into<u64> + TryFrom<u64>, const N: usize>(&mut self, values: [&mut T; N]) -> Coded {
        values.into_iter().try_for_each(|value| self.num(value))
    }

    /// A signed number, zigzag-encoded.
    pub(crate) fn signed(&mut self, value: &mut i64) -> Coded {
        let mut n = zigzag(*value);
        self.num(&mut n)?;
        *value = unzigzag(n);
        Ok(())
    }

    /// A number as its wrapping difference to `base`.
    pub(crate) fn delta(&mut self, base: u64, value: &mut u64) -> Coded {
        let mut by = value.wrapping_sub(base) as i64;
        self.signed(&mut by)?;
        *value = base.wrapping_add(by as u64);
        Ok(())
    }

    /// A number as the difference to the one before it in a list.
    pub(crate) fn chained(&mut self, last: &mut u64, value: &mut u64) -> Coded {
        self.delta(*last, value)?;
        *last = *value;
        Ok(())
    }

    pub(crate) fn flag(&mut self, value: &mut bool) -> Coded {
        let mut n = u64::from(*value);
        self.num(&mut n)?;
        *value = n != 0;
        Ok(())
    }

    /// The number of items of a list. When reading, never more than `max`, nor than bytes are left: each item takes
    /// at least one.
    pub(crate) fn count(&mut self, len: usize, max: usize) -> Result<usize, DecodeError> {
        let mut n = len as u64;
        self.num(&mut n)?;
        match self {
            Wire::Read(bytes) if n > bytes.len() as u64 || n > max as u64 => {
                Err(DecodeError("a list is longer than it can be"))
            }
            _ => Ok(n as usize),
        }
    }

    fn take(&mut self, n: u64) -> Result<&'a [u8], DecodeError> {
        let Wire::Read(bytes) = self else { return Ok(&[]) };
        let n = usize::try_from(n).ok().filter(|n| *n <= bytes.len()).ok_or(DecodeError("the data ends too early"))?;
        let (taken, rest) = bytes.split_at(n);
        *bytes = rest;
        Ok(taken)
    }

    /// Bytes with their length before them.
    pub(crate) fn blob<T: AsRef<[u8]> + From<&'a [u8]>>(&mut self, value: &mut T) -> Coded {
        let mut n = value.as_ref().len() as u64;
        self.num(&mut n)?;
        match self {
            Wire::Write(out) => out.extend_from_slice(value.as_ref()),
            Wire::Read(_) => *value = self.take(n)?.into(),
        }
        Ok(())
    }

    /// Bytes that may be missing: their length plus one, or 0.
    pub(crate) fn optional_blob<T: AsRef<[u8]> + From<&'a [u8]>>(&mut self, value: &mut Option<T>) -> Coded {
        let mut n = value.as_ref().map_or(0, |bytes| bytes.as_ref().len() as u64 + 1);
        self.num(&mut n)?;
        match self {
            Wire::Write(out) => value.iter().for_each(|bytes| out.extend_from_slice(bytes.as_ref())),
            Wire::Read(_) => *value = n.checked_sub(1).map(|n| self.take(n)).transpose()?.map(Into::into),
        }
        Ok(())
    }

    /// Text as bytes; what is not UTF-8 in it is replaced when it is read.
    pub(crate) fn text<T: AsRef<str> + From<String>>(&mut self, value: &mut T) -> Coded {
        self.converted_text(value, |bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// Text that is only ever shown: sanitized when it is read, because the file may come from anybody.
    pub(crate) fn shown_text<T: AsRef<str> + From<String>>(&mut self, value: &mut T) -> Coded {
        self.converted_text(value, sanitize)
    }

    fn converted_text<T: AsRef<str> + From<String>>(&mut self, value: &mut T, read: fn(&'a [u8]) -> String) -> Coded {
        match self {
            Wire::Write(_) => self.blob(&mut Vec::from(value.as_ref())),
            Wire::Read(_) => {
                let mut bytes = &[][..];
                self.blob(&mut bytes)?;
                *value = read(bytes).into();
                Ok(())
            }
        }
    }

    /// [`Self::shown_text`] that may be missing.
    pub(crate) fn optional_shown_text<T: AsRef<str> + From<String>>(&mut self, value: &mut Option<T>) -> Coded {
        let mut bytes = value.as_ref().map(|text| text.as_ref().as_bytes().to_vec());
        self.optional_blob(&mut bytes)?;
        if self.is_read() {
            *value = bytes.map(|bytes| sanitize(bytes).into());
        }
        Ok(())
    }

    /// A list: its length, then its items. Reading replaces what `items` holds.
    pub(crate) fn list<T: Clone + Default>(
        &mut self,
        max: usize,
        items: &mut Vec<T>,
        mut item: impl FnMut(&mut Self, &mut T) -> Coded,
    ) -> Coded {
        for mut value in self.items(max, std::mem::take(items), T::default())? {
            item(self, &mut value)?;
            items.push(value);
        }
        Ok(())
    }

    /// The length of a list, and its items to be coded: `given` when writing, as many `blank` ones when reading.
    pub(crate) fn items<T: Clone>(
        &mut self,
        max: usize,
        given: Vec<T>,
        blank: T,
    ) -> Result<impl Iterator<Item = T> + use<T>, DecodeError> {
        let n = self.count(given.len(), max)?;
        let given = if self.is_read() { Vec::new() } else { given };
        let missing = n - given.len();
        Ok(given.into_iter().chain(std::iter::repeat_n(blank, missing)))
    }

    /// Texts for people, such as why a part of a reading is missing.
    pub(crate) fn reasons(&mut self, reasons: &mut Vec<String>) -> Coded {
        self.list(MAX_REASONS, reasons, |w, why| w.shown_text(why))
    }

    /// The cells of a row that differ from `base`: a bit mask of at most 64, then the differences. Cells are only ever
    /// added at the end of a row, so that old and new versions understand each other. When reading, `row` starts as
    /// `base`.
    pub(crate) fn row(&mut self, base: &[u64], row: &mut [u64]) -> Coded {
        let pairs = base.iter().zip(row.iter()).enumerate();
        let mut mask = pairs.filter(|(_, (a, b))| a != b).fold(0, |mask, (at, _)| mask | 1u64 << at);
        self.num(&mut mask)?;
        while mask != 0 {
            let at = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            // A cell of a newer version is read and dropped.
            let mut unknown = 0;
            self.delta(base.get(at).copied().unwrap_or_default(), row.get_mut(at).unwrap_or(&mut unknown))?;
        }
        Ok(())
    }

    /// [`Self::row`] of as many cells as there are: `cur` when writing, what is read otherwise.
    pub(crate) fn cells<const N: usize>(&mut self, base: [u64; N], cur: [u64; N]) -> Result<[u64; N], DecodeError> {
        let mut row = if self.is_read() { base } else { cur };
        self.row(&base, &mut row)?;
        Ok(row)
    }

    /// The buckets of a histogram that differ from `base`: the distance from the one before, and the difference.
    pub(crate) fn histogram(&mut self, base: &SparseHistogram, cur: &mut SparseHistogram, buckets: usize) -> Coded {
        let mut changed = Vec::new();
        if !self.is_read() {
            let removed = base.buckets().iter().filter(|b| cur.count_at(b.0) == 0).map(|b| (b.0, 0));
            let all = cur.buckets().iter().copied().chain(removed);
            changed.extend(all.map(|(at, n)| (at, n.wrapping_sub(base.count_at(at)))).filter(|(_, by)| *by != 0));
            changed.sort_unstable_by_key(|c| c.0);
        }
        let n = self.count(changed.len(), usize::MAX)?;
        if n == 0 {
            *cur = base.clone();
            return Ok(());
        }
        let mut dense = [0u32; BUCKETS];
        base.buckets().iter().for_each(|b| dense[usize::from(b.0)] = b.1);
        let mut last = 0usize;
        for i in 0..n {
            let (at, mut by) = changed.get(i).copied().unwrap_or_default();
            let mut gap = u64::from(at).wrapping_sub(last as u64);
            self.num(&mut gap)?;
            self.num(&mut by)?;
            last = last.saturating_add(gap as usize);
            let bucket = dense[..buckets].get_mut(last).ok_or(DecodeError("a histogram has no such bucket"))?;
            *bucket = bucket.wrapping_add(by);
        }
        if self.is_read() {
            *cur = SparseHistogram::from_dense(dense);
        }
        Ok(())
    }

    /// A sequence number and both clocks. The wall clock nearly always advances as the boot clock does.
    pub(crate) fn clock(&mut self, base: (u64, Timestamp), seq: &mut u64, time: &mut Timestamp) -> Coded {
        let mut boot = time.boot_ns.wrapping_sub(base.1.boot_ns) as i64;
        let mut wall = time.wall_ns.wrapping_sub(base.1.wall_ns).wrapping_sub(boot);
        self.delta(base.0, seq)?;
        self.signed(&mut boot)?;
        self.signed(&mut wall)?;
        time.boot_ns = base.1.boot_ns.wrapping_add(boot as u64);
        time.wall_ns = base.1.wall_ns.wrapping_add(boot).wrapping_add(wall);
        Ok(())
    }

    /// Whether there is a value, or why not. Reading makes the value a default one if there was none before.
    pub(crate) fn outcome<T: Default>(&mut self, reading: &mut Reading<T>) -> Coded {
        let mut kind = match reading {
            Reading::Ok(_) => 0,
            Reading::Denied(_) => 1,
            Reading::Absent(_) => 2,
            Reading::Blocked(_) => 3,
        };
        self.byte(&mut kind)?;
        if self.is_read() {
            match kind {
                0 if reading.ok().is_some() => {}
                0 => *reading = Reading::Ok(T::default()),
                1 => *reading = Reading::Denied(String::new()),
                2 => *reading = Reading::Absent(String::new()),
                3 => *reading = Reading::Blocked(BlockedRead { since_boot_ns: 0, waiting_on: String::new() }),
                _ => return Err(DecodeError("a reading has an unknown outcome")),
            }
        }
        match reading {
            Reading::Ok(_) => Ok(()),
            Reading::Denied(why) | Reading::Absent(why) => self.shown_text(why),
            Reading::Blocked(b) => {
                self.num(&mut b.since_boot_ns)?;
                self.shown_text(&mut b.waiting_on)
            }
        }
    }

    /// A reading as the difference to the one before: nothing if they are equal, else the outcome and its value by
    /// `layout`. When reading, `cur` starts as a copy of `base`.
    pub(crate) fn reading<T: Default + PartialEq>(
        &mut self,
        base: &Reading<T>,
        cur: &mut Reading<T>,
        layout: impl FnOnce(&mut Self, &T, &mut T) -> Coded,
    ) -> Coded {
        if !self.is_read() && base == cur {
            return Ok(());
        }
        self.outcome(cur)?;
        match cur {
            Reading::Ok(cur) => layout(self, base.ok().unwrap_or(&T::default()), cur),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn truncated_or_oversized_input_is_rejected() {
        let num = |bytes: &'static [u8]| Wire::Read(bytes).num(&mut 0u64);
        assert!(num(&[]).is_err() && num(&[0x80]).is_err() && num(&[0xff; 11]).is_err());
        assert!(num(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).is_err());
        assert!(Wire::Read(&[5, 1, 2]).blob(&mut Vec::new()).is_err());
        assert!(Wire::Read(&[5, 1, 2]).count(0, 9).is_err());
        assert!(Wire::Read(&[2, 1, 2]).count(0, 1).is_err());
        assert!(Wire::Read(&[0xff, 0xff, 0xff, 0xff, 0x1f]).num(&mut 0u32).is_err());
        assert!(Wire::Read(&[9, 1]).optional_blob(&mut None::<Vec<u8>>).is_err());
    }

    #[test]
    fn rows_of_other_versions_are_understood() {
        let out = written(|w| w.row(&[1, 2, 3], &mut [1, 5, 9]));
        let (mut older, mut newer) = ([1, 2], [1, 2, 3, 77]);
        Wire::Read(&out).row(&[1, 2], &mut older).unwrap();
        Wire::Read(&out).row(&[1, 2, 3, 77], &mut newer).unwrap();
        assert_eq!((older, newer), ([1, 5], [1, 5, 9, 77]));
    }

    proptest! {
        #[test]
        fn values_round_trip(n in any::<u64>(), s in any::<i64>(), b in any::<Option<Vec<u8>>>(), base in any::<u64>()) {
            let out = written(|w| {
                w.num(&mut n.clone())?;
                w.signed(&mut s.clone())?;
                w.optional_blob(&mut b.clone())?;
                w.delta(base, &mut n.clone())
            });
            let mut w = Wire::Read(&out);
            let (mut n2, mut s2, mut b2, mut d2) = (0u64, 0, None, 0);
            w.num(&mut n2)?;
            w.signed(&mut s2)?;
            w.optional_blob(&mut b2)?;
            w.delta(base, &mut d2)?;
            prop_assert_eq!((n2, s2, b2, d2), (n, s, b, n));
            prop_assert!(w.is_at_end());
        }

        #[test]
        fn rows_round_trip(pairs in proptest::collection::vec(any::<(u64, u64)>(), 0..64)) {
            let (base, row): (Vec<u64>, Vec<u64>) = pairs.into_iter().unzip();
            let out = written(|w| w.row(&base, &mut row.clone()));
            let mut read = base.clone();
            Wire::Read(&out).row(&base, &mut read)?;
            prop_assert_eq!(read, row);
        }

        #[test]
        fn histograms_round_trip(a in any_histogram(), b in any_histogram()) {
            let out = written(|w| w.histogram(&a, &mut b.clone(), BUCKETS));
            let mut read = SparseHistogram::default();
            Wire::Read(&out).histogram(&a, &mut read, BUCKETS)?;
            prop_assert_eq!(read, b);
        }
    }

    fn any_histogram() -> impl Strategy<Value = SparseHistogram> {
        proptest::collection::btree_map(0..BUCKETS as u16, 1..=u32::MAX, 0..4).prop_map(SparseHistogram::from_sparse)
    }
}

//! Numbers and texts as bytes, and back: every reading is bounded and can fail, none can panic.

/// What is wrong with bytes that should have been ours, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError(pub &'static str);

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for DecodeError {}

/// Bytes still to be read.
#[derive(Debug, Clone, Copy)]
pub struct ByteReader<'a>(pub &'a [u8]);

impl<'a> ByteReader<'a> {
    /// Nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One byte.
    pub fn byte(&mut self) -> Result<u8, DecodeError> {
        let (first, rest) = self.0.split_first().ok_or(DecodeError("ends too early"))?;
        self.0 = rest;
        Ok(*first)
    }

    /// A number in seven bits a byte, lowest first.
    pub fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut n = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            n |= bits << shift;
            if byte < 0x80 {
                return Ok(n);
            }
        }
        Err(DecodeError("a number of more than 64 bits"))
    }

    /// A number that may be negative.
    pub fn signed_varint(&mut self) -> Result<i64, DecodeError> {
        let n = self.varint()?;
        Ok((n >> 1) as i64 ^ -((n & 1) as i64))
    }

    /// A number of at most 32 bits.
    pub fn varint_u32(&mut self) -> Result<u32, DecodeError> {
        u32::try_from(self.varint()?).map_err(|_| DecodeError("a number of more than 32 bits"))
    }

    /// How many of something follow: never more than could stand in what is left.
    pub fn count(&mut self) -> Result<usize, DecodeError> {
        let n = self.varint()?;
        if n > self.0.len() as u64 { Err(DecodeError("counts more than there is")) } else { Ok(n as usize) }
    }

    /// So many bytes.
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8], DecodeError> {
        if n > self.0.len() {
            return Err(DecodeError("ends too early"));
        }
        let (bytes, rest) = self.0.split_at(n);
        self.0 = rest;
        Ok(bytes)
    }

    /// Bytes with their length before them.
    pub fn blob(&mut self) -> Result<&'a [u8], DecodeError> {
        let n = self.count()?;
        self.bytes(n)
    }

    /// A blob that may not be there.
    pub fn optional_blob(&mut self) -> Result<Option<&'a [u8]>, DecodeError> {
        match self.varint()? {
            0 => Ok(None),
            n if n - 1 > self.0.len() as u64 => Err(DecodeError("ends too early")),
            n => self.bytes(n as usize - 1).map(Some),
        }
    }

    /// A text; what is not UTF-8 in it is replaced.
    pub fn string(&mut self) -> Result<String, DecodeError> {
        Ok(String::from_utf8_lossy(self.blob()?).into_owned())
    }

    /// The figures of a row, as differences to those before; see [`put_row`]. Figures this program does not
    /// know are passed over, those the writer did not know stay as they are.
    pub fn apply_row_delta(&mut self, row: &mut [u64]) -> Result<(), DecodeError> {
        let mut mask = self.varint()?;
        while mask != 0 {
            let at = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            let by = self.signed_varint()?;
            if let Some(cell) = row.get_mut(at) {
                *cell = cell.wrapping_add(by as u64);
            }
        }
        Ok(())
    }
}

/// Appends a number.
pub fn put_varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Appends a number that may be negative.
pub fn put_signed_varint(out: &mut Vec<u8>, n: i64) {
    put_varint(out, ((n << 1) ^ (n >> 63)) as u64);
}

/// Appends bytes, their length first.
pub fn put_blob(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends bytes that may not be there.
pub fn put_optional_blob(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => put_varint(out, 0),
        Some(bytes) => {
            put_varint(out, bytes.len() as u64 + 1);
            out.extend_from_slice(bytes);
        }
    }
}

/// Appends the figures that differ: which ones (a bit each, so at most 64), then by how much. Figures are only
/// ever added at the end of a row, so old and new programs understand each other.
pub fn put_row_delta(out: &mut Vec<u8>, before: &[u64], now: &[u64]) {
    let pairs = || before.iter().zip(now).enumerate().filter(|(_, (a, b))| a != b);
    put_varint(out, pairs().fold(0, |mask, (at, _)| mask | 1 << at));
    for (_, (a, b)) in pairs() {
        put_signed_varint(out, b.wrapping_sub(*a) as i64);
    }
}

/// Reasons of one reading at most.
const MAX_REASONS: usize = 64;

/// Appends what a reading had to do without, and why.
pub fn put_reasons(out: &mut Vec<u8>, reasons: &[String]) {
    put_varint(out, reasons.len() as u64);
    reasons.iter().for_each(|why| put_blob(out, why.as_bytes()));
}

/// What [`put_reasons`] wrote, cleaned: they are only ever shown.
pub fn get_reasons(inp: &mut ByteReader) -> Result<Vec<String>, DecodeError> {
    let reasons = inp.count()?;
    if reasons > MAX_REASONS {
        return Err(DecodeError("more reasons than there can be"));
    }
    (0..reasons).map(|_| inp.blob().map(crate::sanitize::sanitize)).collect()
}

/// Appends a section: what it is, its length, its content. A reader passes over what it does not know.
pub fn put_section(out: &mut Vec<u8>, tag: u64, body: &[u8]) {
    put_varint(out, tag);
    put_blob(out, body);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn truncated_or_oversized_input_is_rejected() {
        assert_eq!(ByteReader(&[]).varint(), Err(DecodeError("ends too early")));
        assert_eq!(ByteReader(&[0x80]).varint(), Err(DecodeError("ends too early")));
        assert!(ByteReader(&[0xff; 11]).varint().is_err());
        assert!(ByteReader(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).varint().is_err());
        assert_eq!(ByteReader(&[5, 1, 2]).blob(), Err(DecodeError("counts more than there is")));
        assert!(ByteReader(&[0xff, 0xff, 0xff, 0xff, 0x1f]).varint_u32().is_err());
        assert!(ByteReader(&[9, 1]).optional_blob().is_err());
    }

    #[test]
    fn rows_of_other_versions_are_understood() {
        let mut out = Vec::new();
        put_row_delta(&mut out, &[1, 2, 3], &[1, 5, 9]);
        let (mut older, mut newer) = ([1, 2], [1, 2, 3, 77]);
        ByteReader(&out).apply_row_delta(&mut older).unwrap();
        ByteReader(&out).apply_row_delta(&mut newer).unwrap();
        assert_eq!((older, newer), ([1, 5], [1, 5, 9, 77]));
    }

    proptest! {
        #[test]
        fn numbers_come_back(n in any::<u64>(), s in any::<i64>(), b in any::<Option<Vec<u8>>>()) {
            let mut out = Vec::new();
            put_varint(&mut out, n);
            put_signed_varint(&mut out, s);
            put_optional_blob(&mut out, b.as_deref());
            let mut inp = ByteReader(&out);
            prop_assert_eq!((inp.varint()?, inp.signed_varint()?), (n, s));
            prop_assert_eq!(inp.optional_blob()?, b.as_deref());
            prop_assert!(inp.is_empty());
        }

        #[test]
        fn rows_come_back(pairs in proptest::collection::vec(any::<(u64, u64)>(), 0..64)) {
            let (mut a, b): (Vec<u64>, Vec<u64>) = pairs.into_iter().unzip();
            let mut out = Vec::new();
            put_row_delta(&mut out, &a, &b);
            ByteReader(&out).apply_row_delta(&mut a)?;
            prop_assert_eq!(a, b);
        }
    }
}

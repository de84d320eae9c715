//! Numbers and texts as bytes, and back: every reading is bounded and can fail, none can panic.

/// What is wrong with bytes that should have been ours, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bad(pub &'static str);

impl std::fmt::Display for Bad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Bad {}

/// Bytes still to be read.
#[derive(Debug, Clone, Copy)]
pub struct In<'a>(pub &'a [u8]);

impl<'a> In<'a> {
    /// Nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One byte.
    pub fn byte(&mut self) -> Result<u8, Bad> {
        let (first, rest) = self.0.split_first().ok_or(Bad("ends too early"))?;
        self.0 = rest;
        Ok(*first)
    }

    /// A number in seven bits a byte, lowest first.
    pub fn num(&mut self) -> Result<u64, Bad> {
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
        Err(Bad("a number of more than 64 bits"))
    }

    /// A number that may be negative.
    pub fn signed(&mut self) -> Result<i64, Bad> {
        let n = self.num()?;
        Ok((n >> 1) as i64 ^ -((n & 1) as i64))
    }

    /// A number of at most 32 bits.
    pub fn num32(&mut self) -> Result<u32, Bad> {
        u32::try_from(self.num()?).map_err(|_| Bad("a number of more than 32 bits"))
    }

    /// How many of something follow: never more than could stand in what is left.
    pub fn count(&mut self) -> Result<usize, Bad> {
        let n = self.num()?;
        if n > self.0.len() as u64 { Err(Bad("counts more than there is")) } else { Ok(n as usize) }
    }

    /// So many bytes.
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8], Bad> {
        if n > self.0.len() {
            return Err(Bad("ends too early"));
        }
        let (bytes, rest) = self.0.split_at(n);
        self.0 = rest;
        Ok(bytes)
    }

    /// Bytes with their length before them.
    pub fn blob(&mut self) -> Result<&'a [u8], Bad> {
        let n = self.count()?;
        self.bytes(n)
    }

    /// A blob that may not be there.
    pub fn maybe_blob(&mut self) -> Result<Option<&'a [u8]>, Bad> {
        match self.num()? {
            0 => Ok(None),
            n if n - 1 > self.0.len() as u64 => Err(Bad("ends too early")),
            n => self.bytes(n as usize - 1).map(Some),
        }
    }

    /// A text; what is not UTF-8 in it is replaced.
    pub fn text(&mut self) -> Result<String, Bad> {
        Ok(String::from_utf8_lossy(self.blob()?).into_owned())
    }

    /// The figures of a row, as differences to those before; see [`put_row`]. Figures this program does not
    /// know are passed over, those the writer did not know stay as they are.
    pub fn row(&mut self, row: &mut [u64]) -> Result<(), Bad> {
        let mut mask = self.num()?;
        while mask != 0 {
            let at = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            let by = self.signed()?;
            if let Some(cell) = row.get_mut(at) {
                *cell = cell.wrapping_add(by as u64);
            }
        }
        Ok(())
    }
}

/// Appends a number.
pub fn put_num(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Appends a number that may be negative.
pub fn put_signed(out: &mut Vec<u8>, n: i64) {
    put_num(out, ((n << 1) ^ (n >> 63)) as u64);
}

/// Appends bytes, their length first.
pub fn put_blob(out: &mut Vec<u8>, bytes: &[u8]) {
    put_num(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends bytes that may not be there.
pub fn put_maybe_blob(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => put_num(out, 0),
        Some(bytes) => {
            put_num(out, bytes.len() as u64 + 1);
            out.extend_from_slice(bytes);
        }
    }
}

/// Appends the figures that differ: which ones (a bit each, so at most 64), then by how much. Figures are only
/// ever added at the end of a row, so old and new programs understand each other.
pub fn put_row(out: &mut Vec<u8>, before: &[u64], now: &[u64]) {
    let pairs = || before.iter().zip(now).enumerate().filter(|(_, (a, b))| a != b);
    put_num(out, pairs().fold(0, |mask, (at, _)| mask | 1 << at));
    for (_, (a, b)) in pairs() {
        put_signed(out, b.wrapping_sub(*a) as i64);
    }
}

/// Reasons of one reading at most.
const MOST_REASONS: usize = 64;

/// Appends what a reading had to do without, and why.
pub fn put_reasons(out: &mut Vec<u8>, reasons: &[String]) {
    put_num(out, reasons.len() as u64);
    reasons.iter().for_each(|why| put_blob(out, why.as_bytes()));
}

/// What [`put_reasons`] wrote, cleaned: they are only ever shown.
pub fn get_reasons(inp: &mut In) -> Result<Vec<String>, Bad> {
    let reasons = inp.count()?;
    if reasons > MOST_REASONS {
        return Err(Bad("more reasons than there can be"));
    }
    (0..reasons).map(|_| inp.blob().map(crate::text::clean)).collect()
}

/// Appends a section: what it is, its length, its content. A reader passes over what it does not know.
pub fn put_section(out: &mut Vec<u8>, tag: u64, body: &[u8]) {
    put_num(out, tag);
    put_blob(out, body);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_cut_off_or_too_large_is_refused() {
        assert_eq!(In(&[]).num(), Err(Bad("ends too early")));
        assert_eq!(In(&[0x80]).num(), Err(Bad("ends too early")));
        assert!(In(&[0xff; 11]).num().is_err());
        assert!(In(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).num().is_err());
        assert_eq!(In(&[5, 1, 2]).blob(), Err(Bad("counts more than there is")));
        assert!(In(&[0xff, 0xff, 0xff, 0xff, 0x1f]).num32().is_err());
        assert!(In(&[9, 1]).maybe_blob().is_err());
    }

    #[test]
    fn rows_of_other_programs_are_understood() {
        let mut out = Vec::new();
        put_row(&mut out, &[1, 2, 3], &[1, 5, 9]);
        let (mut older, mut newer) = ([1, 2], [1, 2, 3, 77]);
        In(&out).row(&mut older).unwrap();
        In(&out).row(&mut newer).unwrap();
        assert_eq!((older, newer), ([1, 5], [1, 5, 9, 77]));
    }

    proptest! {
        #[test]
        fn numbers_come_back(n in any::<u64>(), s in any::<i64>(), b in any::<Option<Vec<u8>>>()) {
            let mut out = Vec::new();
            put_num(&mut out, n);
            put_signed(&mut out, s);
            put_maybe_blob(&mut out, b.as_deref());
            let mut inp = In(&out);
            prop_assert_eq!((inp.num()?, inp.signed()?), (n, s));
            prop_assert_eq!(inp.maybe_blob()?, b.as_deref());
            prop_assert!(inp.is_empty());
        }

        #[test]
        fn rows_come_back(pairs in proptest::collection::vec(any::<(u64, u64)>(), 0..64)) {
            let (mut a, b): (Vec<u64>, Vec<u64>) = pairs.into_iter().unzip();
            let mut out = Vec::new();
            put_row(&mut out, &a, &b);
            In(&out).row(&mut a)?;
            prop_assert_eq!(a, b);
        }
    }
}

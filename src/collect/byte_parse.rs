//! Small parsers for the kernel's text: bytes in, numbers out, no allocation.

/// The lines of a file.
pub fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|b| *b == b'\n').filter(|l| !l.is_empty())
}

/// The blank-separated words of a line.
pub fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|b| matches!(b, b' ' | b'\t' | b'\n')).filter(|w| !w.is_empty())
}

/// A decimal number; `None` for anything else or for overflow.
pub fn parse_u64(word: &[u8]) -> Option<u64> {
    if word.is_empty() {
        return None;
    }
    let mut n: u64 = 0;
    for b in word {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        n = n.checked_mul(10)?.checked_add(digit as u64)?;
    }
    Some(n)
}

/// A decimal number with a sign.
pub fn parse_i64(word: &[u8]) -> Option<i64> {
    match word.strip_prefix(b"-") {
        Some(rest) => parse_u64(rest).and_then(|n| i64::try_from(n).ok()).map(|n| -n),
        None => parse_u64(word).and_then(|n| i64::try_from(n).ok()),
    }
}

/// A decimal fraction such as `12.34`.
pub fn parse_f64(word: &[u8]) -> Option<f64> {
    std::str::from_utf8(word).ok()?.parse().ok().filter(|f: &f64| f.is_finite())
}

pub use crate::model::raw_bytes::unescape_octal;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_exact_or_rejected() {
        assert_eq!(parse_u64(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_u64(b"18446744073709551616"), None);
        assert_eq!(parse_u64(b"12x"), None);
        assert_eq!(parse_u64(b""), None);
        assert_eq!(parse_i64(b"-5"), Some(-5));
        assert_eq!(parse_f64(b"1.50"), Some(1.5));
        assert_eq!(parse_f64(b"nan"), None);
    }

    proptest! {
        #[test]
        fn parsers_never_panic(raw in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = (parse_u64(&raw), parse_i64(&raw), parse_f64(&raw), unescape_octal(&raw));
            let _ = lines(&raw).flat_map(words).count();
        }

        #[test]
        fn every_number_is_read_back(n in any::<u64>()) {
            prop_assert_eq!(parse_u64(n.to_string().as_bytes()), Some(n));
        }
    }
}

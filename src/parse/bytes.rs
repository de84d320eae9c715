//! Lines, words and numbers of kernel text, without allocation.

/// Returns the lines of a file, empty ones left out.
pub(crate) fn lines(text: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    text.split(|b| *b == b'\n').filter(|l| !l.is_empty())
}

/// Returns the words of a line, separated by spaces and tabs.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|b| matches!(b, b' ' | b'\t' | b'\n')).filter(|w| !w.is_empty())
}

/// Parses a decimal number; `None` for anything else and on overflow.
pub(crate) fn parse_u64(word: &[u8]) -> Option<u64> {
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

/// Parses a decimal number that may be negative.
pub(crate) fn parse_i64(word: &[u8]) -> Option<i64> {
    match word.strip_prefix(b"-") {
        Some(rest) => parse_u64(rest).and_then(|n| i64::try_from(n).ok()).map(|n| -n),
        None => parse_u64(word).and_then(|n| i64::try_from(n).ok()),
    }
}

/// Decodes the octal escapes of the kernel's mount and swap tables (`\040`). An incomplete escape is kept as it is.
pub(crate) fn unescape_octal(word: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&first, after)) = rest.split_first() {
        match after {
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..] if first == b'\\' => {
                out.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                rest = after;
            }
            _ => {
                out.push(first);
                rest = after;
            }
        }
    }
    out
}

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
    }

    #[test]
    fn octal_escapes_are_decoded() {
        assert_eq!(unescape_octal(br"/mnt/a\040b\134c"), b"/mnt/a b\\c");
        assert_eq!(unescape_octal(br"\9\04"), br"\9\04");
        assert_eq!(unescape_octal(br"\777"), br"\777", "more than a byte");
    }

    proptest! {
        #[test]
        fn parsers_never_panic(raw in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = (parse_u64(&raw), parse_i64(&raw), unescape_octal(&raw));
            let _ = lines(&raw).flat_map(words).count();
        }

        #[test]
        fn every_number_is_read_back(n in any::<u64>()) {
            prop_assert_eq!(parse_u64(n.to_string().as_bytes()), Some(n));
        }
    }
}

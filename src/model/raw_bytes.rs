//! Text the kernel hands out that anybody may have written, kept byte for byte.
//!
//! Mount points, device-mapper names and backing files may hold any byte. [`Raw`] keeps them exactly and
//! makes whoever shows them say `.clean()`. Serialised it is a plain string in which a backslash and every
//! byte that is not UTF-8 are octal escapes (`\134`, `\377`), as in the kernel's own mount tables, so it
//! survives every text format and back.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt::Write as _;
use std::sync::Arc;

/// Bytes, unescaped and uncleaned. A clone shares them: one mount stands in several places.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RawBytes(Arc<[u8]>);

impl RawBytes {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Fit for a sink: see [`crate::text::clean`].
    pub fn sanitized(&self) -> String {
        crate::sanitize::sanitize(&self.0)
    }

    /// Nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The octal-escaped form described above.
    fn escaped(&self) -> String {
        let mut out = String::with_capacity(self.0.len());
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '\\' => out.push_str("\\134"),
                    c => out.push(c),
                }
            }
            for byte in chunk.invalid() {
                let _ = write!(out, "\\{byte:03o}");
            }
        }
        out
    }
}

impl From<&[u8]> for RawBytes {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl From<Vec<u8>> for RawBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl From<&str> for RawBytes {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().into())
    }
}

impl PartialEq<str> for RawBytes {
    fn eq(&self, other: &str) -> bool {
        *self.0 == *other.as_bytes()
    }
}

impl PartialEq<&str> for RawBytes {
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}

/// Debug output may reach a terminal by way of a panic message, so it is clean too.
impl std::fmt::Debug for RawBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.sanitized())
    }
}

impl Serialize for RawBytes {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.escaped())
    }
}

impl<'de> Deserialize<'de> for RawBytes {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(unescape_octal(String::deserialize(d)?.as_bytes()).into())
    }
}

/// Octal escapes of the kernel's mount and swap tables (`\040`) undone. What is not a whole escape stays.
pub fn unescape_octal(word: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(word.len());
    let mut i = 0;
    while i < word.len() {
        let digits = word.get(i + 1..i + 4).filter(|d| d.iter().all(|b| (b'0'..=b'7').contains(b)));
        match digits {
            Some(d) if word[i] == b'\\' && d[0] <= b'3' => {
                out.push((d[0] - b'0') * 64 + (d[1] - b'0') * 8 + (d[2] - b'0'));
                i += 4;
            }
            _ => {
                out.push(word[i]);
                i += 1;
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
    fn octal_escapes_are_decoded() {
        assert_eq!(unescape_octal(br"/mnt/a\040b\134c"), b"/mnt/a b\\c");
        assert_eq!(unescape_octal(br"\9\04"), br"\9\04");
    }

    #[test]
    fn json_stays_readable_and_debug_is_sanitized() {
        let raw = RawBytes::from("/srv/写\\x\u{1b}[2J");
        assert_eq!(serde_json::to_string(&raw).unwrap(), "\"/srv/写\\\\134x\\u001b[2J\"");
        assert!(!format!("{raw:?}").contains('\u{1b}'));
    }

    proptest! {
        #[test]
        fn every_byte_survives_json(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let raw = RawBytes::from(bytes);
            let json = serde_json::to_string(&raw).unwrap();
            prop_assert_eq!(serde_json::from_str::<RawBytes>(&json).unwrap(), raw);
        }
    }
}

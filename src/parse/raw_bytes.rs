//! Untrusted text from the kernel, byte for byte.
//!
//! Mount points, device-mapper names and backing files may contain any byte. [`RawBytes`] keeps them exactly and
//! requires an explicit `.sanitized()` (in `model`) for display. Serialized it is a string in which a backslash and
//! every byte that is not UTF-8 are octal escapes (`\134`, `\377`), as in the kernel's mount tables, so that it
//! survives every text format.

use super::bytes::unescape_octal;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt::Write as _;
use std::sync::Arc;

/// Unescaped, unsanitized bytes. Clones share them.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RawBytes(Arc<[u8]>);

impl RawBytes {
    /// The bytes as they are: show them only sanitized.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The options in a list such as `rw,noatime`.
    pub(crate) fn options(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(|b| *b == b',')
    }

    /// Whether there are no bytes.
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

impl AsRef<[u8]> for RawBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
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

impl From<String> for RawBytes {
    fn from(text: String) -> Self {
        text.into_bytes().into()
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_byte_survives_json(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let raw = RawBytes::from(bytes);
            let json = serde_json::to_string(&raw).unwrap();
            prop_assert_eq!(serde_json::from_str::<RawBytes>(&json).unwrap(), raw);
        }
    }
}

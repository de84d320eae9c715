//! Identifies a knob and its device, mount or process: `vm.swappiness`, `scheduler@vda`, `atime@/srv`, `nofile@1234`.

use super::knob::{Knob, KnobLocation};
use super::knobs::{KNOBS, find_knob};
use crate::root::Root;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::path::PathBuf;

/// A knob of the machine, or of one device, mount or process.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(into = "String")]
pub struct KnobId {
    name: &'static str,
    instance: Option<String>,
}

/// Why a text is not a knob id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KnobIdError {
    #[error("{0}: no such knob; `iotop-plus tune list` shows them all{1}")]
    Unknown(String, String),
    #[error("{0}: applies to the whole machine, so nothing may follow it")]
    NoInstance(&'static str),
    #[error("{0}: say which: {0}@{1}")]
    MissingInstance(&'static str, &'static str),
    #[error("{0}@{1}: not a valid {2}")]
    InvalidInstance(&'static str, String, &'static str),
}

impl KnobId {
    /// Parses `KNOB` or `KNOB@WHERE`.
    /// Errors: if the knob is unknown or `WHERE` is missing, superfluous or invalid; the text says what to type.
    pub fn parse(text: &str) -> Result<Self, KnobIdError> {
        let (name, instance) = text.split_once('@').map_or((text, None), |(name, instance)| (name, Some(instance)));
        let knob = find_knob(name).ok_or_else(|| KnobIdError::Unknown(name.to_owned(), suggestion(name, instance)))?;
        let instance = match (knob.instance_kind(), instance) {
            (None, None) => None,
            (None, Some(_)) => return Err(KnobIdError::NoInstance(knob.name)),
            (Some(kind), None) => return Err(KnobIdError::MissingInstance(knob.name, kind)),
            (Some(kind), Some(text)) => Some(
                parse_instance(knob, text).ok_or_else(|| KnobIdError::InvalidInstance(knob.name, text.into(), kind))?,
            ),
        };
        Ok(Self { name: knob.name, instance })
    }

    pub fn definition(&self) -> &'static Knob {
        // `name` was taken from KNOBS when the id was made.
        find_knob(self.name).unwrap_or(&KNOBS[0])
    }

    /// The device, mount point or pid; empty for knobs of the machine.
    pub fn instance(&self) -> &str {
        self.instance.as_deref().unwrap_or_default()
    }

    /// The file that holds the value; `None`: system calls get and set it.
    pub fn path(&self, root: &Root) -> Option<PathBuf> {
        let knob = self.definition();
        match knob.location {
            KnobLocation::Sysctl => Some(root.proc(&format!("sys/{}", knob.name.replace('.', "/")))),
            KnobLocation::Sys(file) => Some(root.sys(file)),
            _ => Some(root.sys(&format!("block/{}/{}", self.instance(), knob.device_file()?))),
        }
    }

    /// Another knob of the same device, mount or process, or of the machine.
    pub fn sibling(&self, name: &str) -> Option<KnobId> {
        let knob = find_knob(name)?;
        Some(Self { name: knob.name, instance: knob.instance_kind().and_then(|_| self.instance.clone()) })
    }

    /// This knob and its linked knobs, itself first.
    pub fn with_linked(&self) -> Vec<KnobId> {
        let others = self.definition().linked().iter().filter_map(|name| self.sibling(name));
        std::iter::once(self.clone()).chain(others).collect()
    }
}

impl fmt::Display for KnobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.instance {
            Some(instance) => write!(f, "{}@{instance}", self.name),
            None => f.write_str(self.name),
        }
    }
}

// Not derived: the derive would borrow the static name from the input.
impl<'de> Deserialize<'de> for KnobId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl From<KnobId> for String {
    fn from(id: KnobId) -> String {
        id.to_string()
    }
}

/// Checks what follows `@`; a device name must not lead out of its directory.
fn parse_instance(knob: &Knob, text: &str) -> Option<String> {
    match knob.location {
        KnobLocation::Queue | KnobLocation::Bdi => {
            let dev = std::str::from_utf8(Root::DEV_PREFIX).unwrap_or_default();
            let name = text.strip_prefix(dev).unwrap_or(text).replace('/', "!");
            let is_valid = !name.is_empty() && !name.starts_with('.') && name.len() <= 255 && !name.contains('\0');
            is_valid.then_some(name)
        }
        KnobLocation::Atime => {
            let is_valid = text.starts_with('/') && text.len() <= 4096 && !text.contains('\0');
            let path = if text.len() > 1 { text.trim_end_matches('/') } else { text };
            is_valid.then(|| path.to_owned())
        }
        _ => text.parse::<i32>().ok().filter(|pid| *pid > 0).map(|pid| pid.to_string()),
    }
}

/// Suggests a knob for a name that is almost right, such as `readahead@sda`.
fn suggestion(name: &str, instance: Option<&str>) -> String {
    let letters = |name: &str| {
        let last = name.rsplit(['.', '/']).next().unwrap_or(name);
        last.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
    };
    let typed = letters(name);
    let is_like = |known: &str| known.contains(&typed) || typed.contains(known);
    let hit = KNOBS.iter().find(|k| typed.len() >= 4 && is_like(&letters(k.name)));
    let place = |k: &Knob| match (k.instance_kind(), instance) {
        (Some(_), Some(instance)) => format!("@{instance}"),
        _ => String::new(),
    };
    hit.map(|k| format!(" (did you mean {}{}?)", k.name, place(k))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ids_are_normalized_and_displayed_as_parsed() {
        for (text, shown) in [
            ("vm.dirty_ratio", "vm.dirty_ratio"),
            ("swappiness", "vm.swappiness"),
            ("scheduler@/dev/vda", "scheduler@vda"),
            ("bdi.max_ratio@cciss/c0d0", "bdi.max_ratio@cciss!c0d0"),
            ("atime@/srv/", "atime@/srv"),
            ("atime@/", "atime@/"),
            ("nofile@0042", "nofile@42"),
        ] {
            assert_eq!(KnobId::parse(text).unwrap().to_string(), shown);
        }
        let group = KnobId::parse("scheduler@vda").unwrap().with_linked();
        assert_eq!(group[1].to_string(), "nr_requests@vda");
    }

    #[test]
    fn names_of_other_tools_are_suggested_with_their_device() {
        for (typed, meant) in [
            ("readahead@vda", "read_ahead_kb@vda"),
            ("read-ahead@sda", "read_ahead_kb@sda"),
            ("queue/nr-requests@sda", "nr_requests@sda"),
            ("vm.dirty-ratio", "vm.dirty_ratio"),
            ("Swappiness@sda", "vm.swappiness"),
        ] {
            let said = KnobId::parse(typed).unwrap_err().to_string();
            assert!(said.contains(&format!("did you mean {meant}?")), "{typed}: {said}");
        }
        assert_eq!(KnobId::parse("read_ahead_kb@sda").unwrap().to_string(), "read_ahead_kb@sda");
        assert!(!KnobId::parse("xyz@sda").unwrap_err().to_string().contains("did you mean"));
    }

    #[test]
    fn malformed_and_escaping_ids_are_refused() {
        for text in [
            "",
            "@",
            "vm.bogus",
            "vm.dirty_ratio@vda",
            "scheduler",
            "scheduler@",
            "scheduler@..",
            "scheduler@.",
            "scheduler@../../x\0",
            "atime@srv",
            "nofile@0",
            "nofile@-1",
            "nofile@self",
            "nofile@99999999999",
        ] {
            assert!(KnobId::parse(text).is_err(), "{text:?}");
        }
        assert_eq!(KnobId::parse("scheduler@a/../b").unwrap().instance(), "a!..!b", "slashes are replaced");
    }

    proptest! {
        #[test]
        fn any_text_is_refused_or_round_trips(text in "\\PC{0,40}") {
            if let Ok(a) = KnobId::parse(&text) {
                prop_assert_eq!(KnobId::parse(&a.to_string()).unwrap(), a);
            }
        }
    }
}

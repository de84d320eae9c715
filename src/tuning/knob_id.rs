//! Identifies a knob and its device, mount or process: `vm.swappiness`, `scheduler@vda`, `atime@/srv`, `nofile@1234`.

use super::knob::{Knob, KnobLocation};
use super::knobs::{KNOBS, find_knob};
use crate::root::Root;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// A knob of the machine, or of one device, mount or process.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(into = "String")]
pub struct KnobId {
    name: &'static str,
    instance: Option<String>,
}

impl KnobId {
    /// Parses `KNOB` or `KNOB@WHERE`.
    /// | # Errors
    /// | If the knob is unknown or `WHERE` is missing, superfluous or invalid; the text says what to type.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, at) = match text.split_once('@') {
            Some((name, at)) => (name, Some(at)),
            None => (text, None),
        };
        let knob = find_knob(name).ok_or_else(|| {
            format!("{name}: no such knob; `iotop-plus tune list` shows them all{}", suggestion(name))
        })?;
        match (knob.instance_kind(), at) {
            (None, None) => Ok(Self { name: knob.name, instance: None }),
            (None, Some(_)) => Err(format!("{}: is the machine's, nothing may follow @", knob.name)),
            (Some(what), None) => Err(format!("{}: name which: {}@{what}", knob.name, knob.name)),
            (Some(_), Some(at)) => {
                let at = parse_instance(knob, at).map_err(|why| format!("{}@{at}: {why}", knob.name))?;
                Ok(Self { name: knob.name, instance: Some(at) })
            }
        }
    }

    /// The knob's definition.
    pub fn definition(&self) -> &'static Knob {
        // `name` was taken from KNOBS when the id was made.
        find_knob(self.name).unwrap_or(&KNOBS[0])
    }

    /// The device, mount point or pid; empty for knobs of the machine.
    pub fn instance(&self) -> &str {
        self.instance.as_deref().unwrap_or_default()
    }

    /// Another knob of the same device, mount or process, or of the machine.
    pub fn sibling(&self, name: &str) -> Option<KnobId> {
        let knob = find_knob(name)?;
        Some(Self { name: knob.name, instance: knob.instance_kind().and_then(|_| self.instance.clone()) })
    }

    /// This knob and its linked knobs, itself first.
    pub fn with_linked(&self) -> Vec<KnobId> {
        let others = self.definition().linked().into_iter().filter_map(|name| self.sibling(name));
        std::iter::once(self.clone()).chain(others).collect()
    }
}

impl fmt::Display for KnobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.instance {
            Some(at) => write!(f, "{}@{at}", self.name),
            None => f.write_str(self.name),
        }
    }
}

// Not derived: the derive would borrow the static name from the input.
impl<'de> Deserialize<'de> for KnobId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(from)?).map_err(serde::de::Error::custom)
    }
}

impl From<KnobId> for String {
    fn from(address: KnobId) -> String {
        address.to_string()
    }
}

/// Checks what follows `@`; a device name must not lead out of its directory.
fn parse_instance(knob: &Knob, at: &str) -> Result<String, String> {
    match knob.location {
        KnobLocation::Queue(_) | KnobLocation::Bdi(_) => {
            let dev = std::str::from_utf8(Root::DEV_PREFIX).unwrap_or_default();
            let name = at.strip_prefix(dev).unwrap_or(at).replace('/', "!");
            if name.is_empty() || name.starts_with('.') || name.len() > 255 || name.contains('\0') {
                return Err("is no device name".into());
            }
            Ok(name)
        }
        KnobLocation::Atime => match at.starts_with('/') && at.len() <= 4096 && !at.contains('\0') {
            true if at.len() > 1 => Ok(at.trim_end_matches('/').to_owned()),
            true => Ok(at.to_owned()),
            false => Err("is no absolute mount point".into()),
        },
        _ => match at.parse::<i32>() {
            Ok(pid) if pid > 0 => Ok(pid.to_string()),
            _ => Err("is no process number".into()),
        },
    }
}

/// Suggests a knob for a name that is almost right.
fn suggestion(name: &str) -> String {
    let last = name.rsplit('.').next().unwrap_or(name);
    let hit = KNOBS.iter().find(|k| last.len() >= 4 && (k.name.contains(last) || last.contains(k.name)));
    hit.map(|k| format!(" (did you mean {}?)", k.name)).unwrap_or_default()
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
        assert_eq!(KnobId::parse("scheduler@a/../b").unwrap().instance(), "a!..!b", "a slash never stays");
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

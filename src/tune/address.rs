//! Which knob of which thing: `vm.swappiness`, `scheduler@vda`, `atime@/srv`, `nofile@1234`.

use super::knob::{Knob, Place};
use super::knobs::{KNOBS, find};
use crate::root::Root;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// One knob of one device, mount or process, or of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(into = "String")]
pub struct Address {
    name: &'static str,
    at: Option<String>,
}

impl Address {
    /// Reads `KNOB` or `KNOB@WHERE`; the error says what is known.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, at) = match text.split_once('@') {
            Some((name, at)) => (name, Some(at)),
            None => (text, None),
        };
        let knob = find(name).ok_or_else(|| {
            format!("{name}: no such knob; `iotop-plus tune list` shows them all{}", near(name))
        })?;
        match (knob.instance(), at) {
            (None, None) => Ok(Self { name: knob.name, at: None }),
            (None, Some(_)) => Err(format!("{}: is the machine's, nothing may follow @", knob.name)),
            (Some(what), None) => Err(format!("{}: name which: {}@{what}", knob.name, knob.name)),
            (Some(_), Some(at)) => {
                let at = place_name(knob, at).map_err(|why| format!("{}@{at}: {why}", knob.name))?;
                Ok(Self { name: knob.name, at: Some(at) })
            }
        }
    }

    /// The knob's entry.
    pub fn knob(&self) -> &'static Knob {
        // The name came out of the list when the address was made.
        find(self.name).unwrap_or(&KNOBS[0])
    }

    /// Device, mount point or process number.
    pub fn at(&self) -> &str {
        self.at.as_deref().unwrap_or_default()
    }

    /// Another knob of the same thing, or of the machine.
    pub fn sibling(&self, name: &str) -> Option<Address> {
        let knob = find(name)?;
        Some(Self { name: knob.name, at: knob.instance().and_then(|_| self.at.clone()) })
    }

    /// This and what moves with it, itself first.
    pub fn group(&self) -> Vec<Address> {
        let others = self.knob().linked().into_iter().filter_map(|name| self.sibling(name));
        std::iter::once(self.clone()).chain(others).collect()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.at {
            Some(at) => write!(f, "{}@{at}", self.name),
            None => f.write_str(self.name),
        }
    }
}

// By hand: the derive takes the static name for something borrowed from the input.
impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(from)?).map_err(serde::de::Error::custom)
    }
}

impl From<Address> for String {
    fn from(address: Address) -> String {
        address.to_string()
    }
}

/// Checks what follows `@`: nothing that could lead out of its directory.
fn place_name(knob: &Knob, at: &str) -> Result<String, String> {
    match knob.place {
        Place::Queue(_) | Place::Bdi(_) => {
            let dev = std::str::from_utf8(Root::DEV_PREFIX).unwrap_or_default();
            let name = at.strip_prefix(dev).unwrap_or(at).replace('/', "!");
            if name.is_empty() || name.starts_with('.') || name.len() > 255 || name.contains('\0') {
                return Err("is no device name".into());
            }
            Ok(name)
        }
        Place::Atime => match at.starts_with('/') && at.len() <= 4096 && !at.contains('\0') {
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

/// A hint for a name that is almost one.
fn near(name: &str) -> String {
    let last = name.rsplit('.').next().unwrap_or(name);
    let hit = KNOBS.iter().find(|k| last.len() >= 4 && (k.name.contains(last) || last.contains(k.name)));
    hit.map(|k| format!(" (did you mean {}?)", k.name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spelt_back_as_typed() {
        for (text, shown) in [
            ("vm.dirty_ratio", "vm.dirty_ratio"),
            ("swappiness", "vm.swappiness"),
            ("scheduler@/dev/vda", "scheduler@vda"),
            ("bdi.max_ratio@cciss/c0d0", "bdi.max_ratio@cciss!c0d0"),
            ("atime@/srv/", "atime@/srv"),
            ("atime@/", "atime@/"),
            ("nofile@0042", "nofile@42"),
        ] {
            assert_eq!(Address::parse(text).unwrap().to_string(), shown);
        }
        let group = Address::parse("scheduler@vda").unwrap().group();
        assert_eq!(group[1].to_string(), "nr_requests@vda");
    }

    #[test]
    fn nothing_leads_astray() {
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
            assert!(Address::parse(text).is_err(), "{text:?}");
        }
        assert_eq!(Address::parse("scheduler@a/../b").unwrap().at(), "a!..!b", "a slash never stays");
    }

    proptest! {
        #[test]
        fn any_text_is_refused_or_round_trips(text in "\\PC{0,40}") {
            if let Ok(a) = Address::parse(&text) {
                prop_assert_eq!(Address::parse(&a.to_string()).unwrap(), a);
            }
        }
    }
}

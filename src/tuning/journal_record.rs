//! Journal records and their encoding, which detects torn and altered records.
//!
//! Each record is one line, `CRC32 LENGTH JSON\n`. The JSON contains no newline, so that a reader finds the next
//! record after damage.

use super::knob_id::KnobId;
use super::value::is_plausible;
use serde::{Deserialize, Serialize};

/// The longest record, bytes: enough for several mount points of PATH_MAX.
pub(crate) const MAX_RECORD: usize = 32 * 1024;

pub(crate) type KnobValuePair = (KnobId, String);

/// One knob of a change set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnobChange {
    /// Its position in the change set, from 0.
    #[serde(rename = "n")]
    pub index: u32,
    #[serde(rename = "at")]
    pub knob: KnobId,
    /// Distinguishes the device, mount or process from a later one of the same name.
    #[serde(rename = "ident")]
    pub identity: String,
    /// The values to restore: the knob itself first, then its linked knobs.
    pub before: Vec<KnobValuePair>,
    /// The value to write.
    #[serde(rename = "want")]
    pub target: String,
    /// The values read back; `None` if the tuner died before recording them.
    #[serde(skip)]
    pub after: Option<Vec<KnobValuePair>>,
    /// The values that stood whenever restoring it began, see [`JournalRecord::Restoring`].
    #[serde(skip)]
    pub seen: Vec<Vec<KnobValuePair>>,
    /// How it was closed; `None` while it is open.
    #[serde(skip)]
    pub outcome: Option<RestoreOutcome>,
}

impl KnobChange {
    /// A knob that is about to be written.
    pub fn new(index: u32, knob: KnobId, identity: String, before: Vec<KnobValuePair>, target: String) -> Self {
        Self { index, knob, identity, before, target, after: None, seen: Vec::new(), outcome: None }
    }
}

/// How a knob of a change was closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RestoreOutcome {
    Restored,
    #[serde(rename = "Already")]
    AlreadyRestored,
    /// Somebody else changed the knob in the meantime; their value was kept.
    Conflict {
        #[serde(rename = "now")]
        current: String,
    },
    /// The device, mount or process no longer exists.
    Gone,
    /// A later change of the same knob will restore the old value instead.
    HandedOver {
        #[serde(rename = "to")]
        change_id: u64,
    },
}

/// One step of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum JournalRecord {
    Begin {
        id: u64,
        wall_ns: i64,
        /// The first lease in seconds; `None`: without a lease.
        lease_secs: Option<u64>,
    },
    /// A knob is about to be written.
    Intend {
        id: u64,
        #[serde(flatten)]
        knob: KnobChange,
    },
    /// The knob was written and read back.
    Applied {
        id: u64,
        #[serde(rename = "n")]
        index: u32,
        after: Vec<KnobValuePair>,
    },
    Kept {
        id: u64,
    },
    /// The knob needs no further action.
    Closed {
        id: u64,
        #[serde(rename = "n")]
        index: u32,
        outcome: RestoreOutcome,
    },
    /// The knob and its linked knobs are about to be restored: the kernel recomputes linked knobs, and so overwrites what
    /// somebody else may have written to them.
    Restoring {
        id: u64,
        #[serde(rename = "n")]
        index: u32,
        seen: Vec<KnobValuePair>,
    },
    /// The knob takes over the values that an earlier change would have restored.
    Inherit {
        id: u64,
        #[serde(rename = "n")]
        index: u32,
        before: Vec<KnobValuePair>,
    },
}

impl JournalRecord {
    /// The encoded line, including its newline.
    pub fn encode(&self) -> Result<Vec<u8>, String> {
        let json = serde_json::to_string(self).map_err(|err| err.to_string())?;
        if json.len() > MAX_RECORD {
            return Err(format!("journal record of {} bytes, more than {MAX_RECORD}", json.len()));
        }
        Ok(format!("{}{json}\n", encode_header(json.as_bytes())).into_bytes())
    }

    /// Decodes a line without its newline; `None` unless it is exactly what [`JournalRecord::encode`] writes and its
    /// values are plausible.
    pub fn decode(line: &[u8]) -> Option<Self> {
        if line.len() > MAX_RECORD + HEADER_LEN {
            return None;
        }
        let (head, json) = line.split_at_checked(HEADER_LEN)?;
        if encode_header(json).as_bytes() != head {
            return None;
        }
        let record: JournalRecord = serde_json::from_slice(json).ok()?;
        record.is_valid().then_some(record)
    }

    fn is_valid(&self) -> bool {
        let settings = |all: &[KnobValuePair]| {
            !all.is_empty() && all.len() <= 8 && all.iter().all(|(at, value)| is_plausible(at.definition(), value))
        };
        match self {
            JournalRecord::Intend { knob: change, .. } => {
                settings(&change.before)
                    && change.before[0].0 == change.knob
                    && is_plausible(change.knob.definition(), &change.target)
                    && change.identity.len() <= 64
            }
            JournalRecord::Applied { after: all, .. }
            | JournalRecord::Restoring { seen: all, .. }
            | JournalRecord::Inherit { before: all, .. } => settings(all),
            _ => true,
        }
    }
}

const HEADER_LEN: usize = 8 + 1 + 5 + 1;

fn encode_header(json: &[u8]) -> String {
    format!("{:08x} {:05} ", crc32fast::hash(json), json.len())
}

/// All intact records of a journal, in order, and the number of damaged lines.
pub(crate) fn decode_all(bytes: &[u8]) -> (Vec<JournalRecord>, usize) {
    let (mut records, mut damaged) = (Vec::new(), 0);
    for line in bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
        match JournalRecord::decode(line) {
            Some(record) => records.push(record),
            None => damaged += 1,
        }
    }
    (records, damaged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn change(before: Vec<KnobValuePair>, target: &str) -> KnobChange {
        KnobChange::new(0, KnobId::parse("vm.dirty_ratio").unwrap(), String::new(), before, target.into())
    }

    fn sample_records() -> Vec<JournalRecord> {
        let set = |k: &str, v: &str| (KnobId::parse(k).unwrap(), v.to_owned());
        let before = vec![set("vm.dirty_ratio", "20"), set("vm.dirty_bytes", "0")];
        vec![
            JournalRecord::Begin { id: 1, wall_ns: 1_700_000_000_000_000_000, lease_secs: Some(120) },
            JournalRecord::Intend { id: 1, knob: change(before.clone(), "50") },
            JournalRecord::Applied {
                id: 1,
                index: 0,
                after: vec![set("vm.dirty_ratio", "50"), set("vm.dirty_bytes", "0")],
            },
            JournalRecord::Restoring { id: 1, index: 0, seen: before.clone() },
            JournalRecord::Inherit { id: 1, index: 0, before },
            JournalRecord::Kept { id: 1 },
            JournalRecord::Closed { id: 1, index: 0, outcome: RestoreOutcome::Conflict { current: "33".into() } },
        ]
    }

    fn sample_bytes() -> Vec<u8> {
        sample_records().iter().flat_map(|r| r.encode().unwrap()).collect()
    }

    #[test]
    fn records_are_encoded_as_earlier_versions_did() {
        let pair = |knob: &str, value: &str| (KnobId::parse(knob).unwrap(), value.to_owned());
        let mut knob = change(vec![pair("vm.dirty_ratio", "20"), pair("vm.dirty_bytes", "0")], "50");
        knob.identity = "7".into();
        let intend = "58710c83 00129 {\"Intend\":{\"id\":1,\"n\":0,\"at\":\"vm.dirty_ratio\",\"ident\":\"7\",\"before\":\
                      [[\"vm.dirty_ratio\",\"20\"],[\"vm.dirty_bytes\",\"0\"]],\"want\":\"50\"}}\n";
        let kept = "5dde4a32 00017 {\"Kept\":{\"id\":7}}\n";
        for (record, line) in [(JournalRecord::Intend { id: 1, knob }, intend), (JournalRecord::Kept { id: 7 }, kept)] {
            assert_eq!(String::from_utf8(record.encode().unwrap()).unwrap(), line);
        }
    }

    #[test]
    fn a_journal_cut_at_any_byte_yields_every_intact_record() {
        let (all, whole) = (sample_records(), sample_bytes());
        for cut in 0..=whole.len() {
            let (got, damaged) = decode_all(&whole[..cut]);
            // A record that only lacks its newline is intact.
            let ends: Vec<usize> = whole.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i).collect();
            let intact = ends.iter().filter(|end| **end <= cut).count();
            assert_eq!(got, all[..intact], "cut at {cut}");
            let torn = cut > 0 && !ends.contains(&cut) && whole[cut - 1] != b'\n';
            assert_eq!(damaged, usize::from(torn), "cut at {cut}");
        }
    }

    #[test]
    fn a_bit_flip_loses_only_its_own_record() {
        let (all, whole) = (sample_records(), sample_bytes());
        for bit in 0..whole.len() * 8 {
            let mut bad = whole.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let (got, _) = decode_all(&bad);
            assert!(got.iter().all(|r| all.contains(r)), "bit {bit} made a record up: {got:?}");
            // A flipped newline joins two lines and loses both.
            let lost = if whole[bit / 8] == b'\n' { 2 } else { 1 };
            assert!(got.len() >= all.len() - lost, "bit {bit}: {} of {}", got.len(), all.len());
        }
    }

    #[test]
    fn implausible_values_are_rejected() {
        let at = KnobId::parse("vm.dirty_ratio").unwrap();
        let evil = |before: &str, want: &str| JournalRecord::Intend {
            id: 1,
            knob: change(vec![(at.clone(), before.into())], want),
        };
        for (before, want) in [("20\n", "5"), ("; rm", "5"), ("20", "x"), ("", "5")] {
            let line = evil(before, want).encode().unwrap();
            assert_eq!(JournalRecord::decode(&line[..line.len() - 1]), None, "{before:?} {want:?}");
        }
        let line = evil("20", "5").encode().unwrap();
        assert!(JournalRecord::decode(&line[..line.len() - 1]).is_some());
        let unknown = String::from_utf8(line).unwrap().replace("vm.dirty_ratio", "vm.other_ratio");
        let json = &unknown[HEADER_LEN..unknown.len() - 1];
        assert_eq!(JournalRecord::decode(format!("{}{json}", encode_header(json.as_bytes())).as_bytes()), None);
    }

    proptest! {
        #[test]
        fn any_bytes_at_all(raw in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(decode_all(&raw).0.is_empty());
        }

        #[test]
        fn many_flips_never_make_a_record_up(flips in proptest::collection::vec(any::<(u16, u8)>(), 1..40)) {
            let (all, mut bad) = (sample_records(), sample_bytes());
            for (at, mask) in flips {
                let at = at as usize % bad.len();
                bad[at] ^= mask;
            }
            prop_assert!(decode_all(&bad).0.iter().all(|r| all.contains(r)));
        }
    }
}

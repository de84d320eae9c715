//! What the journal holds, and how a record is written so that a torn or altered one is noticed.
//!
//! One line each: `CRC32 LENGTH JSON\n`. The JSON has no newline in it, so a reader finds the next record
//! after any damage.

use super::knob_id::KnobId;
use super::value::is_plausible;
use serde::{Deserialize, Serialize};

/// Longest record that is written or believed, bytes: a few mount points of PATH_MAX.
pub const MAX_RECORD: usize = 32 * 1024;

/// A knob and a value of it.
pub type KnobValuePair = (KnobId, String);

/// What became of a change that was taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RestoreOutcome {
    /// The old value is back.
    Restored,
    /// It stood at the old value already.
    #[serde(rename = "Already")]
    AlreadyRestored,
    /// Somebody else changed it since; theirs was left.
    Conflict {
        /// What stands there now.
        #[serde(rename = "now")]
        current: String,
    },
    /// The device, mount or process is gone.
    Gone,
    /// A later change of ours stands on it and will restore the old value instead.
    HandedOver {
        /// That change.
        #[serde(rename = "to")]
        change_id: u64,
    },
}

/// One step of one change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum JournalRecord {
    /// A change begins.
    Begin {
        /// Its number, counted up from 1 each boot.
        id: u64,
        /// When, ns since 1970.
        wall_ns: i64,
        /// Seconds of the first lease; `None`: meant to stay.
        lease_secs: Option<u64>,
    },
    /// A knob is about to be written.
    Intend {
        /// Change.
        id: u64,
        /// Which of its members, from 0.
        #[serde(rename = "n")]
        index: u32,
        /// Which knob.
        #[serde(rename = "at")]
        knob: KnobId,
        /// What tells its device, mount or process from a later one.
        #[serde(rename = "ident")]
        identity: String,
        /// Itself first, then what moves with it.
        before: Vec<KnobValuePair>,
        /// What will be written.
        #[serde(rename = "want")]
        target: String,
    },
    /// It was written and read back.
    Applied {
        /// Change.
        id: u64,
        /// Member.
        #[serde(rename = "n")]
        index: u32,
        /// Itself first, then what moves with it.
        after: Vec<KnobValuePair>,
    },
    /// The person wants it to stay.
    Kept {
        /// Change.
        id: u64,
    },
    /// A member is dealt with for good.
    Closed {
        /// Change.
        id: u64,
        /// Member.
        #[serde(rename = "n")]
        index: u32,
        /// How.
        outcome: RestoreOutcome,
    },
    /// A member takes over what an earlier change would have restored.
    Inherit {
        /// Change.
        id: u64,
        /// Member.
        #[serde(rename = "n")]
        index: u32,
        /// The values before the earlier change.
        before: Vec<KnobValuePair>,
    },
}

impl JournalRecord {
    /// The line, newline included.
    pub fn encode(&self) -> Result<Vec<u8>, String> {
        let json = serde_json::to_string(self).map_err(|err| err.to_string())?;
        if json.len() > MAX_RECORD {
            return Err(format!("journal record of {} bytes, more than {MAX_RECORD}", json.len()));
        }
        Ok(format!("{}{json}\n", encode_header(json.as_bytes())).into_bytes())
    }

    /// Reads a line without its newline; `None` if it is not exactly what [`Record::encode`] writes, or
    /// holds values no kernel would have given.
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
            !all.is_empty() && all.len() <= 8 && all.iter().all(|(at, value)| is_plausible(at.knob(), value))
        };
        match self {
            JournalRecord::Intend { knob: at, before, target: want, identity: ident, .. } => {
                settings(before) && before[0].0 == *at && is_plausible(at.knob(), want) && ident.len() <= 64
            }
            JournalRecord::Applied { after: all, .. } | JournalRecord::Inherit { before: all, .. } => settings(all),
            _ => true,
        }
    }
}

const HEADER_LEN: usize = 8 + 1 + 5 + 1;

fn encode_header(json: &[u8]) -> String {
    format!("{:08x} {:05} ", crc32(json), json.len())
}

/// CRC-32 (IEEE 802.3, reflected), bit by bit: records are short and rare.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & 0u32.wrapping_sub(crc & 1));
        }
    }
    !crc
}

/// All intact records of a journal's bytes, in order, and how many lines were damaged.
pub fn decode_all(bytes: &[u8]) -> (Vec<JournalRecord>, usize) {
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

    fn sample_records() -> Vec<JournalRecord> {
        let set = |k: &str, v: &str| (KnobId::parse(k).unwrap(), v.to_owned());
        let before = vec![set("vm.dirty_ratio", "20"), set("vm.dirty_bytes", "0")];
        vec![
            JournalRecord::Begin { id: 1, wall_ns: 1_700_000_000_000_000_000, lease_secs: Some(120) },
            JournalRecord::Intend {
                id: 1,
                index: 0,
                knob: KnobId::parse("vm.dirty_ratio").unwrap(),
                identity: String::new(),
                before: before.clone(),
                target: "50".into(),
            },
            JournalRecord::Applied {
                id: 1,
                index: 0,
                after: vec![set("vm.dirty_ratio", "50"), set("vm.dirty_bytes", "0")],
            },
            JournalRecord::Inherit { id: 1, index: 0, before },
            JournalRecord::Kept { id: 1 },
            JournalRecord::Closed { id: 1, index: 0, outcome: RestoreOutcome::Conflict { current: "33".into() } },
        ]
    }

    fn sample_bytes() -> Vec<u8> {
        sample_records().iter().flat_map(|r| r.encode().unwrap()).collect()
    }

    #[test]
    fn crc32_matches_the_standard_check_value() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn a_journal_cut_at_any_byte_yields_every_intact_record() {
        let (all, whole) = (sample_records(), sample_bytes());
        for cut in 0..=whole.len() {
            let (got, damaged) = decode_all(&whole[..cut]);
            // A record whose newline alone is missing is whole.
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
            // A flipped newline joins two lines: both are lost.
            let lost = if whole[bit / 8] == b'\n' { 2 } else { 1 };
            assert!(got.len() >= all.len() - lost, "bit {bit}: {} of {}", got.len(), all.len());
        }
    }

    #[test]
    fn implausible_values_are_rejected() {
        let at = KnobId::parse("vm.dirty_ratio").unwrap();
        let evil = |before: &str, want: &str| JournalRecord::Intend {
            id: 1,
            index: 0,
            knob: at.clone(),
            identity: String::new(),
            before: vec![(at.clone(), before.into())],
            target: want.into(),
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

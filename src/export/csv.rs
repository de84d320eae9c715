//! One pane of a snapshot as comma-separated values, for spreadsheets and scripts.
//!
//! The columns are the keys of the JSON output in its order, so that each value has one definition. A value that
//! could not be read is an empty field.

use super::json::{self, LogSince};
use super::snapshot::SnapshotScope;
use crate::doctor::RuleEngine;
use crate::model::system_state::SystemState;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// JSON that keeps the order of its keys.
enum JsonTree {
    Map(Vec<(String, JsonTree)>),
    List(Vec<JsonTree>),
    /// A scalar, formatted as a CSV field.
    Leaf(String),
}

impl<'de> Deserialize<'de> for JsonTree {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(JsonTreeVisitor)
    }
}

struct JsonTreeVisitor;

impl<'de> Visitor<'de> for JsonTreeVisitor {
    type Value = JsonTree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, v: bool) -> Result<JsonTree, E> {
        Ok(JsonTree::Leaf(v.to_string()))
    }

    fn visit_u64<E>(self, v: u64) -> Result<JsonTree, E> {
        Ok(JsonTree::Leaf(v.to_string()))
    }

    fn visit_i64<E>(self, v: i64) -> Result<JsonTree, E> {
        Ok(JsonTree::Leaf(v.to_string()))
    }

    fn visit_f64<E>(self, v: f64) -> Result<JsonTree, E> {
        Ok(JsonTree::Leaf(v.to_string()))
    }

    fn visit_str<E>(self, v: &str) -> Result<JsonTree, E> {
        Ok(JsonTree::Leaf(csv_field(v)))
    }

    fn visit_unit<E>(self) -> Result<JsonTree, E> {
        Ok(JsonTree::Leaf(String::new()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<JsonTree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = seq.next_element()? {
            list.push(item);
        }
        Ok(JsonTree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonTree, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(JsonTree::Map(entries))
    }
}

/// A text as a CSV field: quoted where necessary, and never a formula to a spreadsheet.
fn csv_field(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@']);
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// The keys of the JSON object that a pane consists of.
fn json_keys(scope: SnapshotScope) -> &'static [&'static str] {
    match scope {
        SnapshotScope { devices: true, .. } => &["devices"],
        SnapshotScope { processes: true, .. } => &["processes"],
        SnapshotScope { kernel_log: true, .. } => &["kernel_log"],
        SnapshotScope { syncs: true, .. } => &["syncs"],
        SnapshotScope { findings: true, .. } => &["findings"],
        _ => &["writeback", "swap", "pressure", "stalls"],
    }
}

/// The lines of one sample, preceded by the header unless `header_written`. `scope` must be one pane.
pub fn csv_lines(
    system: &SystemState,
    engine: &RuleEngine,
    scope: SnapshotScope,
    since: LogSince,
    header_written: &mut bool,
) -> serde_json::Result<String> {
    let JsonTree::Map(object) = serde_json::from_str(&json::snapshot_json(system, engine, scope, since, &[])?)? else {
        return Ok(String::new());
    };
    let time = crate::units::format_rfc3339(system.now().wall_ns);
    let mut out = String::new();
    let mut row = Vec::new();
    for (name, tree) in object.into_iter().filter(|(name, _)| json_keys(scope).contains(&name.as_str())) {
        match tree {
            JsonTree::List(list) => {
                for item in list {
                    row.clear();
                    flatten("", item, &mut row);
                    // Entries of the kernel log have a time of their own as well.
                    push_line(&mut out, &time, &row, header_written);
                }
                row.clear();
            }
            tree => flatten(&name, tree, &mut row),
        }
    }
    if !row.is_empty() && !scope.devices && !scope.processes && !scope.kernel_log && !scope.findings && !scope.syncs {
        push_line(&mut out, &time, &row, header_written);
    }
    Ok(out)
}

fn push_line(out: &mut String, time: &str, row: &[(String, String)], header_written: &mut bool) {
    if !std::mem::replace(header_written, true) {
        out.push_str("sample_time");
        row.iter().for_each(|(name, _)| {
            out.push(',');
            out.push_str(name);
        });
        out.push('\n');
    }
    out.push_str(time);
    row.iter().for_each(|(_, value)| {
        out.push(',');
        out.push_str(value);
    });
    out.push('\n');
}

/// Nested keys are joined by a dot. A list of texts is one field; a list of findings is their titles.
/// An empty list is an empty field.
fn flatten(name: &str, tree: JsonTree, row: &mut Vec<(String, String)>) {
    match tree {
        JsonTree::Leaf(text) => row.push((name.to_owned(), text)),
        JsonTree::Map(entries) => {
            // Lists of varying length have no columns.
            let list = |inner: &str| matches!((name, inner), ("swap", "devices") | ("stalls", "tasks"));
            for (inner, tree) in entries.into_iter().filter(|(inner, _)| !list(inner)) {
                let joined = if name.is_empty() { inner } else { format!("{name}.{inner}") };
                flatten(&joined, tree, row);
            }
        }
        JsonTree::List(list) => {
            let between = if list.iter().any(|item| matches!(item, JsonTree::Map(_))) { "; " } else { " " };
            let texts: Vec<String> = list.into_iter().filter_map(item_text).collect();
            row.push((name.to_owned(), csv_field(&texts.join(between))));
        }
    }
}

/// A list item as text: a scalar itself, an object's title.
fn item_text(item: JsonTree) -> Option<String> {
    match item {
        // Undo the quoting of a field.
        JsonTree::Leaf(text) => Some(match text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
            Some(quoted) => quoted.replace("\"\"", "\""),
            None => text,
        }),
        JsonTree::Map(entries) => {
            let (_, title) = entries.into_iter().find(|(name, _)| name == "title")?;
            item_text(title)
        }
        JsonTree::List(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::disk::{DevId, DiskOpRaw, DiskRaw};
    use crate::model::kernel_log::LogClock;
    use crate::model::observation::Observation;
    use crate::model::reading::Reading;
    use crate::model::sample::Sample;
    use crate::model::system_state::HostInfo;
    use crate::model::timestamp::Timestamp;

    const NO_PANES: SnapshotScope = SnapshotScope {
        devices: false,
        processes: false,
        memory: false,
        kernel_log: false,
        findings: false,
        syncs: false,
    };

    fn system() -> SystemState {
        let mut system = SystemState::new(HostInfo::default(), LogClock::default());
        let disk = |minor, name: &str| DiskRaw {
            id: DevId { major: 8, minor },
            name: name.into(),
            read: DiskOpRaw { ios: 100, ..DiskOpRaw::default() },
            ..DiskRaw::default()
        };
        system.apply(Observation::Sample(Box::new(Sample {
            time: Timestamp { boot_ns: 10_000_000_000, wall_ns: 0 },
            disks: Reading::Ok(vec![disk(0, "sda"), disk(1, "=cmd,\"x\"")]),
            ..Sample::default()
        })));
        system
    }

    #[test]
    fn header_is_written_once_and_fields_are_quoted() {
        let (system, mut header_written) = (system(), false);
        let scope = SnapshotScope { devices: true, ..NO_PANES };
        let first = csv_lines(&system, &RuleEngine::default(), scope, LogSince::Time(0), &mut header_written).unwrap();
        let second = csv_lines(&system, &RuleEngine::default(), scope, LogSince::Time(0), &mut header_written).unwrap();
        let all: Vec<&str> = first.lines().collect();
        assert!(all[0].starts_with("sample_time,name,kind,parent,mounts,tps,reads_per_s,"), "{}", all[0]);
        assert!(all[1].starts_with("1970-01-01T00:00:00.000Z,sda,,,,10"), "{}", all[1]);
        assert!(all[2].contains(",\"'=cmd,\"\"x\"\"\",,,,10"), "{}", all[2]);
        assert_eq!(second.lines().count(), 2);
    }

    #[test]
    fn an_incident_is_one_line_with_its_finding_titles() {
        let mut system = system();
        let boot = system.now().boot_ns;
        let line = |seq, text: &str| crate::model::kernel_log::KmsgRecord {
            seq,
            boot_us: boot / 1000,
            level: 3,
            message: text.as_bytes().to_vec(),
            ..Default::default()
        };
        let clock = LogClock { mono_ns: boot, wall_ns: 0 };
        let error = line(1, "I/O error, dev sda, sector 81239 op 0x1:(WRITE)");
        let damage = line(2, "EXT4-fs error (device sda): ext4_find_entry:1455: inode #2: comm ls: \"bad\"");
        system.apply(Observation::KernelLog(vec![error, damage], clock));
        let mut engine = RuleEngine::default();
        engine.evaluate(&system);
        let scope = SnapshotScope { findings: true, ..NO_PANES };
        let text = csv_lines(&system, &engine, scope, LogSince::Time(0), &mut false).unwrap();
        let all: Vec<&str> = text.lines().collect();
        assert_eq!(all[0], "sample_time,severity,title,since,findings");
        assert_eq!(all.len(), 2, "{all:?}");
        let titles: Vec<&str> = engine.incidents()[0].findings.iter().map(|f| f.title.as_str()).collect();
        assert!(titles.len() > 1, "{titles:?}");
        let joined = titles.join("; ").replace('"', "\"\"");
        assert!(all[1].ends_with(&format!("{joined}\"")), "{}: {joined}", all[1]);
    }

    #[test]
    fn memory_is_one_line_with_every_column() {
        let text = csv_lines(
            &system(),
            &RuleEngine::default(),
            SnapshotScope { memory: true, ..NO_PANES },
            LogSince::Time(0),
            &mut false,
        )
        .unwrap();
        let all: Vec<&str> = text.lines().collect();
        assert_eq!(all.len(), 2);
        for name in ["writeback.dirty_bytes", "swap.in_bytes_per_s", "pressure.io.full_avg10"] {
            assert!(all[0].split(',').any(|n| n == name), "{name} in {}", all[0]);
        }
        assert_eq!(all[0].split(',').count(), all[1].split(',').count());
        assert!(!all[0].contains("swap.devices"));
    }
}

//! One pane of a snapshot as comma-separated values, for spreadsheets and scripts.
//!
//! The columns are the keys of the JSON output in its order, so that each value has one definition. A value that
//! could not be read is an empty field.

use super::json::{self, LogSince};
use super::snapshot::SnapshotScope;
use crate::doctor::RuleEngine;
use crate::model::system_state::SystemState;
use serde_json::{Map, Value};

type Row = Vec<(String, String)>;

/// A text as a CSV field: quoted where necessary, and never a formula to a spreadsheet.
fn csv_field(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@']);
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// The lines of one sample, preceded by the header unless `header_written`. `scope` must be one pane.
pub(crate) fn csv_lines(
    system: &SystemState,
    engine: &RuleEngine,
    scope: SnapshotScope,
    since: LogSince,
    header_written: &mut bool,
) -> serde_json::Result<String> {
    let mut object: Map<String, Value> =
        serde_json::from_slice(json::snapshot_json(system, engine, scope, since, &[])?.as_bytes())?;
    let lists = ["devices", "processes", "kernel_log", "syncs", "files", "findings"];
    let rows: Vec<Row> = match lists.iter().find_map(|key| object.shift_remove(*key)) {
        Some(Value::Array(items)) => items.iter().map(|item| flattened("", item)).collect(),
        Some(_) => Vec::new(),
        // The pane of memory, whose parts make one line.
        None => {
            let parts = ["writeback", "swap", "pressure", "stalls"].into_iter();
            vec![parts.filter_map(|key| Some(flattened(key, object.get(key)?))).flatten().collect()]
        }
    };
    // Entries of the kernel log have a time of their own as well.
    let time = crate::units::format_rfc3339(system.now().wall_ns);
    let mut out = String::new();
    for row in rows {
        if !std::mem::replace(header_written, true) {
            out.push_str("sample_time");
            row.iter().for_each(|(name, _)| out.extend([",", name]));
            out.push('\n');
        }
        out.push_str(&time);
        row.iter().for_each(|(_, value)| out.extend([",", value]));
        out.push('\n');
    }
    Ok(out)
}

/// Nested keys are joined by a dot. A list of texts is one field; a list of findings is their titles.
/// An empty list is an empty field.
fn flattened(name: &str, value: &Value) -> Row {
    match value {
        Value::Object(entries) => {
            // Lists of varying length have no columns.
            let is_list = |key: &str| matches!((name, key), ("swap", "devices") | ("stalls", "tasks"));
            let entries = entries.iter().filter(|(key, _)| !is_list(key));
            let joined = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
            entries.flat_map(|(key, value)| flattened(&joined(key), value)).collect()
        }
        Value::Array(list) => {
            let between = if list.iter().any(Value::is_object) { "; " } else { " " };
            let text = |item: &Value| scalar_text(item.get("title").unwrap_or(item));
            let texts: Vec<String> = list.iter().filter_map(text).collect();
            vec![(name.to_owned(), csv_field(&texts.join(between)))]
        }
        Value::String(text) => vec![(name.to_owned(), csv_field(text))],
        scalar => vec![(name.to_owned(), scalar_text(scalar).unwrap_or_default())],
    }
}

fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::Number(n) if n.is_f64() => n.as_f64().map(|n| n.to_string()),
        Value::Number(n) => Some(n.to_string()),
        Value::Bool(b) => Some(b.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Array(_) | Value::Object(_) => None,
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
        let scope = SnapshotScope { devices: true, ..SnapshotScope::default() };
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
        let scope = SnapshotScope { findings: true, ..SnapshotScope::default() };
        let text = csv_lines(&system, &engine, scope, LogSince::Time(0), &mut false).unwrap();
        let all: Vec<&str> = text.lines().collect();
        assert_eq!(all[0], "sample_time,severity,title,since,findings");
        assert_eq!(all.len(), 2, "{all:?}");
        let titles: Vec<&str> = engine.incidents[0].findings.iter().map(|f| f.title.as_str()).collect();
        assert!(titles.len() > 1, "{titles:?}");
        let joined = titles.join("; ").replace('"', "\"\"");
        assert!(all[1].ends_with(&format!("{joined}\"")), "{}: {joined}", all[1]);
    }

    #[test]
    fn memory_is_one_line_with_every_column() {
        let text = csv_lines(
            &system(),
            &RuleEngine::default(),
            SnapshotScope { memory: true, ..SnapshotScope::default() },
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

//! Settings: the config file, read once at start and written by `W`.

#![expect(missing_docs, reason = "SETTING_DESCRIPTIONS has them")]

use super::action::ViewId;
use super::key_config::{KeySettings, Keymap};
use super::widgets::SymbolSet;
use crate::export::screenshot::{FORMATS, find_format};
use crate::model::columns::device;
use crate::model::columns::process::COLUMNS;
use crate::model::kernel_log::LogPatterns;
use crate::model::process::ProcessColumn;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

/// The content of the config file. Every field is optional; an unknown one is an error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    #[default = 1.0]
    pub interval: f64,
    #[default = "dark"]
    pub theme: String,
    pub symbols: SymbolSet,
    pub view: ViewId,
    #[default = true]
    pub mouse: bool,
    #[default = true]
    pub tracing: bool,
    pub devices: DeviceSettings,
    pub processes: ProcessSettings,
    pub kernel: KernelSettings,
    pub tune: TuneSettings,
    pub syncs: SyncsSettings,
    pub bench: BenchSettings,
    pub screenshot: ScreenshotSettings,
    #[serde(skip_serializing_if = "KeySettings::is_empty")]
    pub keys: KeySettings,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeviceSettings {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    pub extended: bool,
    pub only_active: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct ProcessSettings {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    #[default = "stalled"]
    pub sort: String,
    pub reverse: bool,
    pub only_active: bool,
    pub accumulated: bool,
    pub threads: bool,
    pub tree: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KernelSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct SyncsSettings {
    #[default(crate::model::syncs::SLOW_THRESHOLD_MS)]
    pub threshold_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct TuneSettings {
    #[default(DEFAULT_LEASE_SECS)]
    pub lease: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct BenchSettings {
    #[default = "."]
    pub directory: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct ScreenshotSettings {
    #[default(FORMATS[0].name.into())]
    pub format: String,
    #[default = "."]
    pub directory: String,
}

/// Every setting by its name in the file, for the man page.
pub const SETTING_DESCRIPTIONS: &[(&str, &str)] = &[
    ("interval", "Seconds between samples, 0.1 to 3600. Default 1.0."),
    (
        "theme",
        "dark, light, slate, color-blind, high-contrast, mono, or one of your own (see docs/reference/themes.md). Default dark.",
    ),
    (
        "symbols",
        "What graphs are drawn with: braille, blocks or ascii, which holds for borders and marks, too. auto is blocks on the Linux console, else braille. Default auto.",
    ),
    (
        "view",
        "The view to start with: overview, devices, processes, memory, kernel, bench, tune, findings, syncs or files. Default overview.",
    ),
    ("mouse", "Whether the mouse is used. Default true."),
    ("tracing", "Whether latencies are measured by programs loaded into the kernel. Default true."),
    (
        "devices.columns",
        "The columns to show and their order, by their headings. Default: as many as there is room for.",
    ),
    ("devices.extended", "The columns of iostat -x. Default false."),
    ("devices.only_active", "Only devices that do I/O. Default false."),
    (
        "processes.columns",
        "The columns to show and their order, by their headings. Default: as many as there is room for.",
    ),
    (
        "processes.sort",
        "Column to sort by; io is reads and writes together, stalled those that are stalled first, then io. Default stalled.",
    ),
    ("processes.reverse", "Smallest first. Default false."),
    ("processes.only_active", "Only tasks that do I/O. Default false."),
    ("processes.accumulated", "Sums since the start instead of rates. Default false."),
    ("processes.threads", "Threads instead of processes. Default false."),
    ("processes.tree", "Processes below their parents. Default false."),
    ("kernel.include", "Only kernel lines that match this regular expression. Default: all."),
    ("bench.directory", "Where to measure; a dot is where the program is started. Default a dot."),
    (
        "kernel.exclude",
        "No kernel lines that match this regular expression. Default: network noise that belongs to no class.",
    ),
    ("screenshot.format", "png, svg, html, markdown, text, ansi or json. Default png."),
    ("screenshot.directory", "Where screenshots go; a dot is where the program is started. Default a dot."),
    ("syncs.threshold_ms", "A sync that takes so many milliseconds is listed by itself, 0 to 3600000. Default 10."),
    (
        "keys.ACTION",
        "The key or keys of an action, in place of its own; docs/reference/keys.md names the actions. Ctrl-C and the keys that answer questions stay.",
    ),
    ("tune.lease", "Seconds after which a change of a setting reverts, 1 to 86400. Default 120."),
];

pub const DEFAULT_LEASE_SECS: u64 = 120;
pub const LEASE_SECS_RANGE: std::ops::RangeInclusive<u64> = 1..=crate::tuning::tuner::MAX_LEASE_SECS;
pub const SYNC_THRESHOLD_MS_RANGE: std::ops::RangeInclusive<u64> = 0..=3_600_000;
pub const INTERVAL_SECS_RANGE: std::ops::RangeInclusive<f64> = 0.1..=3600.0;

impl Settings {
    /// Parses the file's text. The error names the line and what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let settings: Self = crate::toml_file::parse(text)?;
        let Self { interval, tune: TuneSettings { lease }, syncs: SyncsSettings { threshold_ms }, .. } = &settings;
        if !INTERVAL_SECS_RANGE.contains(interval) {
            return Err(format!("interval = {interval}: must be 0.1 to 3600 seconds"));
        }
        if !LEASE_SECS_RANGE.contains(lease) {
            return Err(format!("tune.lease = {lease}: must be 1 to 86400 seconds"));
        }
        if !SYNC_THRESHOLD_MS_RANGE.contains(threshold_ms) {
            return Err(format!("syncs.threshold_ms = {threshold_ms}: must be 0 to 3600000 milliseconds"));
        }
        let (format, sort) = (&settings.screenshot.format, &settings.processes.sort);
        if find_format(format).is_none() {
            return Err(not_one_of("screenshot.format", format, FORMATS.iter().map(|f| f.name)));
        }
        if ProcessColumn::by_name(sort).is_none() {
            return Err(not_one_of("processes.sort", sort, COLUMNS.iter().map(|c| c.value.name)));
        }
        let wrong = |section: &str, setting: &str, why: String| {
            let line = crate::toml_file::line_of_setting(text, section, setting);
            let line = line.map_or(String::new(), |line| format!("line {line}: "));
            format!("{line}{section}.{}: {why}", crate::sanitize::sanitize(setting))
        };
        let devices = device::COLUMNS.iter().map(|c| c.header);
        check_columns(&settings.devices.columns, devices).map_err(|why| wrong("devices", "columns", why))?;
        let processes = ProcessColumn::choices().map(|c| c.header);
        check_columns(&settings.processes.columns, processes).map_err(|why| wrong("processes", "columns", why))?;
        Keymap::new(&settings.keys).map_err(|err| wrong("keys", &err.action, err.problem))?;
        let KernelSettings { include, exclude } = &settings.kernel;
        LogPatterns::new(include.as_deref(), exclude.as_deref()).map_err(|err| err.to_string())?;
        Ok(settings)
    }

    pub fn to_toml(&self) -> String {
        let body = toml::to_string(self).unwrap_or_default();
        format!("# iotop-plus settings, written by iotop-plus.\n{body}")
    }
}

/// Errors: a heading that is none of these, or is there twice.
fn check_columns(headers: &[String], valid: impl Iterator<Item = &'static str>) -> Result<(), String> {
    let mut valid: Vec<&str> = valid.collect();
    for (at, header) in headers.iter().enumerate() {
        let shown = crate::sanitize::sanitize(header);
        if !valid.contains(&header.as_str()) {
            let mut seen = std::collections::HashSet::new();
            valid.retain(|name| seen.insert(*name));
            return Err(format!("no column \"{shown}\"; there are {}", valid.join(", ")));
        }
        if headers[..at].contains(header) {
            return Err(format!("\"{shown}\" is there twice"));
        }
    }
    Ok(())
}

fn not_one_of(setting: &str, value: &str, names: impl Iterator<Item = &'static str>) -> String {
    let (value, names) = (crate::sanitize::sanitize(value), names.collect::<Vec<_>>().join(", "));
    format!("{setting} = \"{value}\": must be one of {names}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::key_config::KeyNames;

    #[test]
    fn settings_round_trip_through_toml() {
        let mut settings = Settings { interval: 2.5, theme: "high-contrast".into(), ..Default::default() };
        settings.kernel.include = Some("sd[ab]".into());
        settings.keys.insert("quit".into(), KeyNames::Several(vec!["Q".into()]));
        settings.devices.columns = vec!["Device".into(), "%util".into()];
        assert_eq!(Settings::parse(&settings.to_toml()).unwrap(), settings);
        assert_eq!(Settings::parse("").unwrap(), Settings::default());
    }

    #[test]
    fn every_setting_is_described_with_its_default() {
        let kernel = KernelSettings { include: Some(String::new()), exclude: Some(String::new()) };
        let mut all = Settings { kernel, ..Settings::default() };
        all.keys.insert("ACTION".into(), KeyNames::One("V".into()));
        (all.devices.columns, all.processes.columns) = (vec!["tps".into()], vec!["PID".into()]);
        let table: toml::Table = toml::from_str(&all.to_toml()).unwrap();
        let mut names = Vec::new();
        for (name, value) in &table {
            let named = |(key, value): (&String, &toml::Value)| (format!("{name}.{key}"), value.clone());
            match value {
                toml::Value::Table(inner) => names.extend(inner.iter().map(named)),
                value => names.push((name.clone(), value.clone())),
            }
        }
        assert_eq!(names.len(), SETTING_DESCRIPTIONS.len());
        for (name, value) in names {
            let help = SETTING_DESCRIPTIONS.iter().find(|h| h.0 == name).unwrap_or_else(|| panic!("{name}")).1;
            let default = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            assert!(
                name.starts_with("kernel.")
                    || name.starts_with("keys.")
                    || name.ends_with(".columns")
                    || name.ends_with(".directory")
                    || help.contains(&format!("Default {default}.")),
                "{name}: {help}"
            );
        }
    }

    #[test]
    fn parse_errors_name_the_line() {
        let err = Settings::parse("interval = 1\n\n[devices]\nextendet = true\n").unwrap_err();
        assert!(err.starts_with("line 4: ") && err.contains("extendet"), "{err}");
        assert!(Settings::parse("view = \"pink\"").unwrap_err().starts_with("line 1: "));
        assert!(Settings::parse("interval = 0").unwrap_err().contains("0.1 to 3600"));
        assert!(Settings::parse("interval = \"\x1b[2J").unwrap_err().chars().all(crate::sanitize::is_safe));
        assert!(Settings::parse("[processes]\nsort = \"x\"").unwrap_err().contains("io"));
        assert!(Settings::parse("[tune]\nlease = 0").unwrap_err().contains("1 to 86400"));
        assert!(Settings::parse("[syncs]\nthreshold_ms = 3600001").unwrap_err().contains("3600000"));
        assert!(Settings::parse("[screenshot]\nformat = \"gif\"").unwrap_err().contains("png"));
        assert!(Settings::parse("[kernel]\nexclude = \"(\"").is_err());
        for (text, line, what) in [
            ("[keys]\nquit = \"Q\"\nbogus = \"V\"\n", 3, "no action \"bogus\"; there are "),
            ("\n[keys]\n\"toggle-tree\" = \"g\"\n", 3, "is the key of next-graph"),
            ("[devices]\n\ncolumns = [\"tps\", \"%use\"]", 3, "no column \"%use\"; there are Device, r/s, "),
            ("[processes]\ncolumns = [\"PID\", \"PID\"]", 2, "twice"),
        ] {
            let err = Settings::parse(text).unwrap_err();
            assert!(err.starts_with(&format!("line {line}: ")) && err.contains(what), "{text}: {err}");
        }
    }
}

//! Files of the kernel and of users.

use super::assert_safe;
use crate::bench::fio::layout::FileLayout;
use crate::bench::fio::parse::{ParseOptions, describe_error, parse_job_file};
use crate::bench::fio::text::JobFileContext;
use crate::collect::kmsg::parse_record;
use crate::collect::limits;
use crate::collect::processes::mappings;
use crate::model::kernel_log::{KernelLog, KernelLogLimits, LogClock};
use crate::parse::{bracketed_choice, bytes, device_id, mountinfo, named_value, pressure, swaps, task};
use crate::recording::reader::RecordingSpan;
use crate::recording::time_spec;
use crate::sanitize::{fit_width, sanitize, wrap};
use crate::tui::settings::Settings;
use crate::tuning::journal_record::{JournalRecord, decode_all};
use crate::tuning::knob_id::KnobId;
use crate::tuning::sysctl::BootSysctls;
use crate::tuning::value::is_plausible;
use crate::units::parse_bytes;
use std::path::Path;

/// Lines of JSON, to which the checksums are added.
pub(super) fn journal(input: &[u8]) {
    decode_all(input);
    let lines = input.split(|b| *b == b'\n');
    let text: Vec<u8> = lines
        .flat_map(|json| [format!("{:08x} {:05} ", crc32fast::hash(json), json.len()).as_bytes(), json, b"\n"].concat())
        .collect();
    let (records, _) = decode_all(&text);
    let again: Vec<u8> = records.iter().flat_map(|record| record.encode().unwrap()).collect();
    assert_eq!(decode_all(&again), (records, 0));
    assert_eq!(JournalRecord::decode(b""), None);
}

pub(super) fn fio_job(input: &[u8]) {
    let context = JobFileContext {
        read: &|name| if name.len() < 3 { Ok("[a]\ninclude a\n".into()) } else { Err("none".into()) },
        variable: &|name| Some(name.to_owned()),
        keywords: [("$pagesize", 4096), ("$mb_memory", 1024), ("$ncpus", 2)],
    };
    match parse_job_file(&String::from_utf8_lossy(input), &context, &ParseOptions::default()) {
        // What is accepted has files, within bounds.
        Ok(file) => assert!(FileLayout::new(&file.jobs).is_ok_and(|layout| layout.clones.len() <= 512)),
        Err(errors) => errors.iter().for_each(|error| assert_safe(&describe_error(error))),
    }
}

pub(super) fn config(input: &[u8]) {
    match Settings::parse(&String::from_utf8_lossy(input)) {
        Ok(settings) => assert_eq!(Settings::parse(&settings.to_toml()), Ok(settings)),
        Err(err) => assert_safe(&err),
    }
}

pub(super) fn sysctl_d(input: &[u8]) {
    let mut boot = BootSysctls::default();
    boot.parse(input, "x.conf", Path::new("x.conf"));
    for knob in ["vm.dirty_ratio", "vm.dirty_background_bytes", "vm.swappiness"] {
        if let Some(line) = boot.effective(&KnobId::parse(knob).unwrap()) {
            assert_safe(&line.value);
        }
    }
}

/// What people type: sizes, times, knobs and their values.
pub(super) fn typed_text(input: &[u8]) {
    let text = &String::from_utf8_lossy(input);
    let _ = parse_bytes(text);
    let span = RecordingSpan { first_ns: 1_700_000_000_000_000_000, last_ns: i64::MAX, ..RecordingSpan::default() };
    let _ = time_spec::parse(text, &span, 3_600);
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    if let Ok(knob) = KnobId::parse(name) {
        assert_eq!(KnobId::parse(&knob.to_string()), Ok(knob.clone()));
        is_plausible(knob.definition(), value);
    }
}

/// Names from anywhere, on their way to the screen.
pub(super) fn names(input: &[u8]) {
    let text = sanitize(input);
    assert_safe(&text);
    let (fitting, cells) = fit_width(&text, 20);
    assert!(text.starts_with(fitting) && cells <= 20);
    wrap(&text, 1 + input.len() % 40).iter().for_each(|line| assert_safe(line));
}

pub(super) fn proc_task(input: &[u8]) {
    if let Some(stat) = task::stat(input) {
        let _ = format!("{stat:?}");
    }
    let _ = (task::io(input), task::status(input), task::schedstat(input));
    assert!(limits::parse(input).count() <= input.len());
    let text = String::from_utf8_lossy(input);
    let (choice, all) = bracketed_choice(&text);
    assert!(choice.is_none_or(|choice| all.contains(&choice)));
}

pub(super) fn proc_mountinfo(input: &[u8]) {
    assert!(mountinfo::parse(input).count() <= input.len());
    for path in ["/", "/home/a/b", ""] {
        mountinfo::find_containing(input, path.as_bytes());
    }
    assert!(bytes::unescape_octal(input).len() <= input.len());
}

pub(super) fn proc_memory(input: &[u8]) {
    let _ = (pressure::parse(input), named_value(input, b"MemTotal"), device_id::DevId::parse(input));
    assert!(swaps::parse(input).count() <= input.len());
    for line in bytes::lines(input) {
        let _ = (mappings::parse_header(line), bytes::words(line).map(bytes::parse_i64).count());
    }
}

/// Records of the kernel log, each after a NUL, into a log that keeps 64 KiB.
pub(super) fn kernel_log(input: &[u8]) {
    let limits = KernelLogLimits::default();
    let mut log = KernelLog::new(LogClock::default(), limits);
    for raw in input.split(|b| *b == 0) {
        let Some(record) = parse_record(raw) else { continue };
        assert!(record.message.len() <= raw.len() && record.level < 8);
        log.push(&record, LogClock { mono_ns: 1 << 40, wall_ns: 1 << 60 });
    }
    assert!(log.entries().len() <= input.len());
    for entry in log.entries() {
        assert_safe(&sanitize(&entry.message));
    }
}

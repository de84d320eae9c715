//! The kernel log of the machine that runs the tests. Needs root; prints what it skips.

use iotop_plus::collect::kmsg::{KmsgReader, read_hung_task_warnings};
use iotop_plus::model::kernel_log::{KernelLog, KernelLogLimits, KmsgRecord, LogClock, LogOrigin};
use iotop_plus::model::reading::Reading;
use iotop_plus::root::Root;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::Write as _;

fn open_or_skip(test: &str) -> Option<KmsgReader> {
    match KmsgReader::open(&Root::live()) {
        Reading::Ok(reader) => Some(reader),
        other => {
            println!("skipped {test}: {:?}", other.unavailable_reason(0));
            None
        }
    }
}

#[test]
fn a_line_written_by_a_program_has_user_origin() {
    let name = "a_line_written_by_a_program_comes_back_as_a_programs";
    let Some(mut reader) = open_or_skip(name) else { return };
    let mut device = match std::fs::OpenOptions::new().write(true).open("/dev/kmsg") {
        Ok(device) => device,
        Err(err) => return println!("skipped {name}: /dev/kmsg is not writable: {err}"),
    };
    let mark = format!("iotop-plus test {} I/O error, dev sda, sector 1 \u{1b}[2J \\ \u{202e}", std::process::id());
    // Without the line break the record stays open for more text, and cannot be read before the next one.
    device.write_all(format!("<4>{mark}\n").as_bytes()).unwrap();
    let found = find_record(&mut reader, |r| r.message == mark.as_bytes()).expect("the line is in the log");
    assert_eq!((found.level, found.facility), (4, 1));
    let mut log = KernelLog::new(LogClock::default(), KernelLogLimits::default());
    log.push(&found, LogClock { mono_ns: found.boot_us * 1000, wall_ns: 5 });
    let entry = log.entries().next().unwrap();
    assert_eq!((entry.origin, entry.device.as_deref(), entry.wall_ns), (LogOrigin::User, None, 5));
}

#[test]
fn an_idle_log_is_not_readable_and_a_new_line_wakes_poll() {
    let name = "a_silent_log_is_not_readable_and_a_new_line_wakes";
    let Some(mut reader) = open_or_skip(name) else { return };
    assert!(reader.is_live());
    while reader.next_record().unwrap().is_some() {}
    let Ok(mut device) = std::fs::OpenOptions::new().write(true).open("/dev/kmsg") else {
        return println!("skipped {name}: /dev/kmsg is not writable");
    };
    device.write_all(format!("<7>iotop-plus wake {}\n", std::process::id()).as_bytes()).unwrap();
    let limit = Timespec { tv_sec: 10, tv_nsec: 0 };
    let ready = poll(&mut [PollFd::new(&reader, PollFlags::IN)], Some(&limit)).unwrap();
    assert_eq!(ready, 1);
    assert!(reader.next_record().unwrap().is_some());
}

#[test]
fn hung_task_warnings_is_readable() {
    match read_hung_task_warnings(&Root::live()) {
        Reading::Ok(n) => assert!(n >= -1),
        other => println!("skipped the_kernels_patience_can_be_read: {:?}", other.unavailable_reason(0)),
    }
}

fn find_record(reader: &mut KmsgReader, wanted: impl Fn(&KmsgRecord) -> bool) -> Option<KmsgRecord> {
    loop {
        match reader.next_record().unwrap() {
            Some(record) if wanted(&record) => return Some(record),
            Some(_) => {}
            None => return None,
        }
    }
}

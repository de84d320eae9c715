//! Parses one record: `prio,seq,usec,flags[,more];message`, then a dictionary of ` KEY=value` lines.
//!
//! Written by `info_print_ext_header`, `msg_add_ext_text` and `msg_add_dict_text` in kernel/printk/printk.c and
//! described in Documentation/ABI/testing/dev-kmsg. Control characters, bytes from DEL on and the backslash are
//! escaped as `\xNN`, so a line break never belongs to the message.

use crate::model::kernel_log::{DeviceTag, KmsgRecord};
use crate::parse::bytes::parse_u64;
use crate::parse::device_id::DevId;

/// Parses a record; `None` if it is malformed. Unknown header fields and dictionary keys are skipped, as the ABI
/// demands.
pub fn parse_record(raw: &[u8]) -> Option<KmsgRecord> {
    let semicolon = raw.iter().position(|b| matches!(b, b';' | b'\n')).filter(|i| raw[*i] == b';')?;
    let mut fields = raw[..semicolon].split(|b| *b == b',');
    let priority = parse_u64(fields.next()?)?;
    let seq = parse_u64(fields.next()?)?;
    let boot_us = parse_u64(fields.next()?)?;
    let caller = fields.find_map(|f| f.strip_prefix(b"caller=")).map(|c| String::from_utf8_lossy(c).into_owned());
    let mut lines = raw[semicolon + 1..].split(|b| *b == b'\n');
    let mut record = KmsgRecord {
        seq,
        boot_us,
        level: (priority & 7) as u8,
        facility: u16::try_from(priority >> 3).unwrap_or(u16::MAX),
        caller,
        message: unescape(lines.next().unwrap_or_default()),
        subsystem: None,
        device: None,
    };
    for line in lines {
        let Some(pair) = line.strip_prefix(b" ") else { continue };
        if let Some(value) = pair.strip_prefix(b"SUBSYSTEM=") {
            record.subsystem = Some(unescape_text(value));
        } else if let Some(value) = pair.strip_prefix(b"DEVICE=") {
            record.device = parse_device_tag(value);
        }
    }
    Some(record)
}

/// The first record of a capture: its first line and the dictionary lines that follow, with line breaks.
pub(super) fn first_record(text: &[u8]) -> &[u8] {
    let mut end = 0;
    loop {
        end = match text[end..].iter().position(|b| *b == b'\n') {
            Some(i) => end + i + 1,
            None => return text,
        };
        if text.get(end) != Some(&b' ') {
            return &text[..end];
        }
    }
}

fn unescape(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.iter().position(|b| *b == b'\\') {
        out.extend_from_slice(&rest[..at]);
        let byte = match &rest[at..] {
            [_, b'x', high, low, ..] => hex_digit(*high).zip(hex_digit(*low)).map(|(h, l)| h * 16 + l),
            _ => None,
        };
        out.push(byte.unwrap_or(b'\\'));
        rest = &rest[at + if byte.is_some() { 4 } else { 1 }..];
    }
    out.extend_from_slice(rest);
    out
}

fn hex_digit(digit: u8) -> Option<u8> {
    (digit as char).to_digit(16).map(|d| d as u8)
}

fn unescape_text(value: &[u8]) -> String {
    String::from_utf8_lossy(&unescape(value)).into_owned()
}

fn parse_device_tag(value: &[u8]) -> Option<DeviceTag> {
    match value.split_first()? {
        (b'b', rest) => DevId::parse(rest).map(|id| DeviceTag::Block(id.major, id.minor)),
        (b'c', rest) => DevId::parse(rest).map(|id| DeviceTag::Char(id.major, id.minor)),
        (b'n', rest) => parse_u64(rest).and_then(|n| u32::try_from(n).ok()).map(DeviceTag::Net),
        (b'+', rest) => Some(DeviceTag::Named(unescape_text(rest))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write as _;

    /// Formats a record as the kernel does.
    fn format_record(record: &KmsgRecord) -> Vec<u8> {
        let mut out = Vec::with_capacity(record.message.len() + 48);
        let priority = u64::from(record.facility) << 3 | u64::from(record.level & 7);
        let _ = write!(out, "{priority},{},{},-", record.seq, record.boot_us);
        if let Some(caller) = &record.caller {
            let _ = write!(out, ",caller={caller}");
        }
        out.push(b';');
        escape_into(&mut out, &record.message);
        out.push(b'\n');
        let device = record.device.as_ref().map(|d| match d {
            DeviceTag::Block(major, minor) => format!("b{major}:{minor}"),
            DeviceTag::Char(major, minor) => format!("c{major}:{minor}"),
            DeviceTag::Net(index) => format!("n{index}"),
            DeviceTag::Named(name) => format!("+{name}"),
        });
        for (key, value) in [("SUBSYSTEM", record.subsystem.as_ref()), ("DEVICE", device.as_ref())] {
            if let Some(value) = value {
                let _ = write!(out, " {key}=");
                escape_into(&mut out, value.as_bytes());
                out.push(b'\n');
            }
        }
        out
    }

    fn escape_into(out: &mut Vec<u8>, raw: &[u8]) {
        for &b in raw {
            if (b' '..127).contains(&b) && b != b'\\' {
                out.push(b);
            } else {
                let _ = write!(out, "\\x{b:02x}");
            }
        }
    }

    #[test]
    fn header_message_and_dictionary_are_parsed() {
        let r = parse_record(
            b"3,1234,5678901,c,caller=T42,new=field;sd 2:0:0:0: [sdb] Stopping\n SUBSYSTEM=scsi\n DEVICE=+scsi:2:0:0:0\n OTHER=x\n",
        )
        .unwrap();
        assert_eq!((r.level, r.facility, r.seq, r.boot_us), (3, 0, 1234, 5_678_901));
        assert_eq!(r.caller.as_deref(), Some("T42"));
        assert_eq!(r.message, b"sd 2:0:0:0: [sdb] Stopping");
        assert_eq!(r.subsystem.as_deref(), Some("scsi"));
        assert_eq!(r.device, Some(DeviceTag::Named("scsi:2:0:0:0".into())));
        let b = parse_record(b"4,1,2,-;x\n DEVICE=b259:3\n").unwrap();
        assert_eq!(b.device, Some(DeviceTag::Block(259, 3)));
        assert_eq!(parse_record(b"4,1,2,-;x\n DEVICE=n7\n").unwrap().device, Some(DeviceTag::Net(7)));
        assert_eq!(parse_record(b"4,1,2,-;x\n DEVICE=b8:\n").unwrap().device, None);
    }

    #[test]
    fn user_facilities_are_distinguished_from_the_kernel() {
        let r = parse_record(b"12,1,2,-;hello").unwrap();
        assert_eq!((r.level, r.facility), (4, 1));
        assert_eq!(parse_record(b"30,1,2,-;systemd[1]: hello").unwrap().facility, 3);
    }

    #[test]
    fn escapes_are_decoded_and_stray_backslashes_kept() {
        let r = parse_record(br"3,1,2,-;a\x0ab\x1b[2J\xff\x5c \q \x4").unwrap();
        assert_eq!(r.message, b"a\nb\x1b[2J\xff\\ \\q \\x4");
    }

    #[test]
    fn malformed_records_are_rejected() {
        for bad in [&b""[..], b";", b"3;x", b"3,1;x", b"3,1,2", b"3,1,x,-;m", b" KEY=value", b"a\nb;c", b"3,1,2,-\n;m"]
        {
            assert_eq!(parse_record(bad), None, "{:?}", String::from_utf8_lossy(bad));
        }
        assert_eq!(parse_record(b"3,1,2,-;").unwrap().message, b"");
    }

    proptest! {
        #[test]
        fn never_panics_and_always_advances(raw in proptest::collection::vec(any::<u8>(), 1..300)) {
            let _ = parse_record(&raw);
            prop_assert!(!first_record(&raw).is_empty());
        }

        #[test]
        fn a_written_record_reads_back(
            seq in any::<u64>(), boot_us in any::<u64>(), level in 0u8..8, facility in 0u16..1000,
            message in proptest::collection::vec(any::<u8>(), 0..200), number in any::<(u32, u32)>(),
            caller in proptest::option::of("[TC][0-9]{1,5}"), subsystem in proptest::option::of("[ -~]{0,20}"),
        ) {
            let record = KmsgRecord { seq, boot_us, level, facility, caller, message, subsystem,
                device: Some(DeviceTag::Block(number.0, number.1)) };
            prop_assert_eq!(parse_record(&format_record(&record)), Some(record));
        }
    }
}

//! Recordings: whole files, and the uncompressed payload of a frame.

use super::assert_safe;
use crate::export::snapshot::{self, SnapshotScope};
use crate::model::kernel_log::LogClock;
use crate::model::observation::Observation;
use crate::model::system_state::{HostInfo, SystemState};
use crate::recording::frame::{FRAME_HEADER_LEN, FRAME_MAGIC, FrameHeader, HEADER_LEN, RecordingHeader};
use crate::recording::reader::{ReadAt, RecordingReader};
use crate::recording::state::CodecState;
use std::io;

/// Ticks read from one file.
const MAX_TICKS: usize = 200;

struct Bytes(Vec<u8>);

impl ReadAt for Bytes {
    fn read_at(&mut self, at: u64, buf: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(at).ok().and_then(|at| self.0.get(at..)).unwrap_or_default();
        let n = rest.len().min(buf.len());
        buf[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }
}

/// A file as it is, or with right checksums: three of four inputs, as most of what is wrong else stops at a checksum.
pub(super) fn file(input: &[u8]) {
    let mut bytes = input.to_vec();
    if !crc32fast::hash(input).is_multiple_of(4) {
        mend_checksums(&mut bytes);
    }
    read(bytes);
}

fn read(bytes: Vec<u8>) {
    let Ok(mut reader) = RecordingReader::open(Bytes(bytes)) else { return };
    let mut ticks = 0;
    while ticks < MAX_TICKS && reader.next_tick().unwrap().is_some() {
        ticks += 1;
    }
    let span = reader.span;
    let mut numbers = [i64::MIN, span.first_ns, span.last_ns, i64::MAX].map(|at| reader.tick_number_at(at).unwrap());
    numbers.sort_unstable();
    for group in numbers.chunk_by(|a, b| a == b) {
        reader.seek(group[0]).unwrap();
        reader.next_tick().unwrap();
    }
}

/// Writes the checksum of the header, and of every frame that follows one after the other.
fn mend_checksums(bytes: &mut [u8]) -> Option<()> {
    let text_len = RecordingHeader::parse_text_len(bytes).ok()?;
    let mut crc = crc32fast::Hasher::new();
    crc.update(&bytes[..16]);
    crc.update(bytes.get(HEADER_LEN..HEADER_LEN + text_len)?);
    bytes[16..20].copy_from_slice(&crc.finalize().to_le_bytes());
    let mut rest = &mut bytes[HEADER_LEN + text_len..];
    while rest.len() >= FRAME_HEADER_LEN && rest.starts_with(FRAME_MAGIC) {
        let len = u32::from_le_bytes([rest[12], rest[13], rest[14], rest[15]]) as usize;
        let (head, packed) = rest.split_at_mut(FRAME_HEADER_LEN);
        let Some((packed, after)) = packed.split_at_mut_checked(len) else { break };
        head[28..32].copy_from_slice(&crc32fast::hash(packed).to_le_bytes());
        let own = crc32fast::hash(&head[..32]);
        head[32..36].copy_from_slice(&own.to_le_bytes());
        let _ = FrameHeader::from_bytes(head);
        rest = after;
    }
    Some(())
}

/// What a frame holds, decoded and shown.
pub(super) fn payload(input: &[u8]) {
    let mut state = CodecState::default();
    let mut shown = SystemState::new(HostInfo::default(), LogClock::default());
    let mut show = |all: Vec<Observation>| {
        all.into_iter().for_each(|observation| _ = shown.apply(observation));
        let engine = crate::doctor::RuleEngine::default();
        assert_safe(&snapshot::text(&shown, &engine, SnapshotScope::ALL));
    };
    if state.get_base(input, false).is_ok() {
        show(state.full_update());
    }
    if let Ok(observations) = state.decode(input) {
        show(observations);
        show(state.full_update());
    }
}

//! `verify`: blocks are written with a header and a checksum, read again and compared.

use super::checksum::{crc32c, sha256};
use super::job::{FioJob, VerifyMethod, WRITE};
use crate::bench::engine::IoOp;
use crate::bench::measure::recorder::OpKind;
use crate::bench::rng::Rng;
use std::collections::{BTreeMap, VecDeque};

const MAGIC: u32 = 0x696f_7470;
/// Bytes of a header: magic, length, offset, number of the write, checksum.
pub(super) const HEADER_BYTES: usize = 56;
/// Bad blocks that are described; the others are counted.
const MAX_DESCRIBED: usize = 5;

/// A written range that has not been verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Written {
    pub file: u16,
    pub offset: u64,
    pub len: u32,
    pub number: u64,
}

impl Written {
    pub(super) fn as_read(&self) -> IoOp {
        IoOp { file: self.file, ..IoOp::new(OpKind::Read, self.offset, self.len) }
    }
}

#[derive(Debug)]
pub(super) struct Verifier {
    method: VerifyMethod,
    interval: usize,
    is_fatal: bool,
    /// Data of the blocks; empty: random.
    pattern: Vec<u8>,
    next_number: u64,
    /// In the order of writing if no range can be written twice in a pass, else sorted by offset.
    in_order: VecDeque<Written>,
    sorted: BTreeMap<(u16, u64), Written>,
    keeps_order: bool,
    /// Ranges being read.
    reading: Vec<Written>,
    pub bad_blocks: Vec<String>,
    pub bad_count: u64,
}

impl Verifier {
    pub(super) fn new(job: &FioJob) -> Option<Self> {
        let (least, most) = job.block_range(if job.rw.writes { WRITE } else { super::job::READ });
        let wanted = if job.verify_interval > 0 { job.verify_interval } else { least };
        let fits = wanted <= least && least % wanted == 0 && most % wanted == 0;
        let interval = if fits { wanted } else { gcd(least, most) };
        job.verify.map(|method| Self {
            method,
            interval: interval as usize,
            is_fatal: job.verify_fatal,
            pattern: job.verify_pattern.clone(),
            next_number: 0,
            in_order: VecDeque::new(),
            sorted: BTreeMap::new(),
            keeps_order: job.has_random_map() || (!job.rw.random && !job.time_based),
            reading: Vec::new(),
            bad_blocks: Vec::new(),
            bad_count: 0,
        })
    }

    /// Whether ranges are being read to verify them.
    pub(super) fn is_reading(&self) -> bool {
        !self.reading.is_empty()
    }

    pub(super) fn pending(&self) -> usize {
        self.in_order.len() + self.sorted.len()
    }

    /// Fills a block that is about to be written, and remembers it.
    pub(super) fn fill(&mut self, file: u16, offset: u64, buffer: &mut [u8], rng: &mut Rng) {
        let number = self.next_number;
        self.next_number += 1;
        let mut at = offset;
        for part in buffer.chunks_mut(self.interval) {
            match self.pattern.is_empty() {
                true => rng.fill_bytes(part),
                false => part.iter_mut().zip(self.pattern.iter().cycle()).for_each(|(byte, wanted)| *byte = *wanted),
            }
            if part.len() >= HEADER_BYTES && self.method != VerifyMethod::Pattern {
                write_header(part, at, number, self.method);
            }
            at += part.len() as u64;
        }
        self.remember(Written { file, offset, len: buffer.len() as u32, number });
    }

    fn remember(&mut self, written: Written) {
        if self.keeps_order {
            return self.in_order.push_back(written);
        }
        let end = written.offset + u64::from(written.len);
        let before = self.sorted.range(..(written.file, end)).rev();
        let overlapping: Vec<_> = before
            .take_while(|((file, _), w)| *file == written.file && w.offset + u64::from(w.len) > written.offset)
            .map(|(key, _)| *key)
            .collect();
        for key in overlapping {
            self.sorted.remove(&key);
        }
        self.sorted.insert((written.file, written.offset), written);
    }

    /// The next range to read and verify.
    pub(super) fn next(&mut self) -> Option<Written> {
        let next = self.in_order.pop_front().or_else(|| self.sorted.pop_first().map(|(_, written)| written))?;
        self.reading.push(next);
        Some(next)
    }

    /// Checks a range that was read. `any_number`: nothing is known of who wrote it. The error ends the run.
    pub(super) fn check(&mut self, file: u16, offset: u64, buffer: &[u8], any_number: bool) -> Result<(), String> {
        let known = self.reading.iter().position(|w| w.file == file && w.offset == offset);
        let number = known.map(|n| self.reading.swap_remove(n).number);
        if number.is_none() && !any_number {
            return Ok(());
        }
        let mut at = offset;
        for part in buffer.chunks(self.interval) {
            if let Err(why) = self.check_part(part, at, number) {
                self.bad_count += 1;
                let text = format!("verify: bad block at offset {at}, length {}: {why}", part.len());
                if self.is_fatal {
                    return Err(text);
                }
                if self.bad_blocks.len() < MAX_DESCRIBED {
                    self.bad_blocks.push(text);
                }
            }
            at += part.len() as u64;
        }
        Ok(())
    }

    fn check_part(&self, part: &[u8], at: u64, number: Option<u64>) -> Result<(), String> {
        if self.method != VerifyMethod::Pattern {
            let has_header = part.len() >= HEADER_BYTES;
            return if has_header { check_header(part, at, number, self.method) } else { Ok(()) };
        }
        let differs = part.iter().zip(self.pattern.iter().cycle()).position(|(byte, wanted)| byte != wanted);
        differs.map_or(Ok(()), |n| {
            let wanted = self.pattern[n % self.pattern.len()];
            Err(format!("byte {n} is 0x{:02x}, not 0x{wanted:02x} of the pattern", part[n]))
        })
    }

    /// The error of a run with bad blocks.
    pub(super) fn verdict(&self) -> Result<(), String> {
        if self.bad_count == 0 {
            return Ok(());
        }
        let more = match self.bad_count - self.bad_blocks.len() as u64 {
            0 => String::new(),
            n => format!("; {n} more bad blocks"),
        };
        Err(self.bad_blocks.join("; ") + &more)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn checksum(data: &[u8], method: VerifyMethod) -> [u8; 32] {
    match method {
        VerifyMethod::Sha256 => sha256(data),
        VerifyMethod::Crc32c | VerifyMethod::Pattern => {
            let mut out = [0; 32];
            out[..4].copy_from_slice(&crc32c(data).to_le_bytes());
            out
        }
    }
}

fn write_header(part: &mut [u8], offset: u64, number: u64, method: VerifyMethod) {
    let len = part.len() as u32;
    let (header, data) = part.split_at_mut(HEADER_BYTES);
    header[..4].copy_from_slice(&MAGIC.to_le_bytes());
    header[4..8].copy_from_slice(&len.to_le_bytes());
    header[8..16].copy_from_slice(&offset.to_le_bytes());
    header[16..24].copy_from_slice(&number.to_le_bytes());
    header[24..].copy_from_slice(&checksum(data, method));
}

fn check_header(part: &[u8], offset: u64, number: Option<u64>, method: VerifyMethod) -> Result<(), String> {
    let (header, data) = part.split_at(HEADER_BYTES);
    let word = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().unwrap_or_default());
    if header[..4] != MAGIC.to_le_bytes() {
        return Err(format!("no header here, but {:02x?}", &header[..4]));
    }
    let (is_offset, is_number, len) = (word(8), word(16), word(0) >> 32);
    if is_offset != offset || len != part.len() as u64 {
        return Err(format!("this is the block of offset {is_offset}, length {len}"));
    }
    if let Some(number) = number.filter(|n| *n != is_number) {
        return Err(format!("this is write {is_number}, not the last one, {number}"));
    }
    let (stored, is) = (&header[24..], checksum(data, method));
    if *stored != is {
        let hex = |bytes: &[u8]| {
            let used = if method == VerifyMethod::Crc32c { 4 } else { 32 };
            bytes[..used].iter().map(|b| format!("{b:02x}")).collect::<String>()
        };
        return Err(format!("checksum {}, not {}", hex(&is), hex(stored)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fio::job::AccessPattern;

    fn verifier(method: VerifyMethod, random: bool) -> Verifier {
        let rw = AccessPattern { writes: true, random, ..AccessPattern::default() };
        Verifier::new(&FioJob { rw, verify: Some(method), norandommap: true, verify_fatal: true, ..FioJob::default() })
            .unwrap()
    }

    #[test]
    fn a_changed_misplaced_or_older_block_is_found() {
        for method in [VerifyMethod::Crc32c, VerifyMethod::Sha256] {
            let mut v = verifier(method, false);
            let mut rng = Rng::new(1, 1);
            let mut block = vec![0; 4096];
            v.fill(0, 8192, &mut block, &mut rng);
            assert_eq!(v.next().map(|w| (w.offset, w.len)), Some((8192, 4096)));
            assert_eq!(v.check(0, 8192, &block, false), Ok(()));
            for at in [0, 60, 4095] {
                let mut bad = block.clone();
                bad[at] ^= 1;
                let why = v.check(0, 8192, &bad, true).unwrap_err();
                assert!(why.contains("offset 8192"), "{why}");
            }
            assert!(v.check(0, 4096, &block, true).unwrap_err().contains("the block of offset 8192"));
            let mut newer = vec![0; 4096];
            v.fill(0, 8192, &mut newer, &mut rng);
            v.next();
            assert!(v.check(0, 8192, &block, false).unwrap_err().contains("write 0, not the last one, 1"));
        }
    }

    #[test]
    fn a_byte_that_is_not_of_the_pattern_is_found() {
        let rw = AccessPattern { writes: true, ..AccessPattern::default() };
        let verify_pattern = vec![0xaa, 0x55];
        let job =
            FioJob { rw, verify: Some(VerifyMethod::Pattern), verify_pattern, verify_fatal: true, ..FioJob::default() };
        let mut v = Verifier::new(&job).unwrap();
        let mut block = vec![0; 4096];
        v.fill(0, 0, &mut block, &mut Rng::new(1, 1));
        assert_eq!((block[0], block[4095]), (0xaa, 0x55));
        assert_eq!(v.check(0, 0, &block, true), Ok(()));
        block[101] = 0;
        assert!(v.check(0, 0, &block, true).unwrap_err().contains("byte 101 is 0x00, not 0x55"));
    }

    #[test]
    fn only_the_last_write_of_a_range_is_expected() {
        let mut v = verifier(VerifyMethod::Crc32c, true);
        let mut rng = Rng::new(1, 1);
        for offset in [4096, 0, 4096, 2048] {
            v.fill(0, offset, &mut [0; 4096], &mut rng);
        }
        let all: Vec<_> = std::iter::from_fn(|| v.next()).map(|w| (w.offset, w.number)).collect();
        assert_eq!(all, [(2048, 3)]);
    }
}

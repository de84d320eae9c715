//! The counters of a sample as rows of numbers, so that one way of writing differences serves all.
//!
//! Each struct lists its cells once, in the order of the file. A cell that may be unknown has a bit in the row's cell
//! of flags. New cells go to the end of a row.

use super::codec::{Coded, DecodeError, MAX_DEVICES, Wire, written};
use super::table::{DeltaRow, TableRow};
use crate::model::cpu::CpuRaw;
use crate::model::disk::DiskRaw;
use crate::model::memory::{MemRaw, SwapArea, VmRaw};
use crate::model::network::{NetFsKind, NetFsRaw, NicRaw};
use crate::model::pressure::PressureRaw;
use crate::model::raw_bytes::RawBytes;

/// Cells of a row at most: a bit mask says which ones changed.
const MAX_CELLS: usize = 64;

/// The cells of one row, filled from a struct or read into it.
pub(crate) struct Cells<'r> {
    row: &'r mut [u64],
    is_read: bool,
    next: usize,
    flags: usize,
    is_out_of_range: bool,
}

impl Cells<'_> {
    /// Whether the struct is filled from the row.
    pub(crate) fn is_read(&self) -> bool {
        self.is_read
    }

    pub(crate) fn num<T: Copy + Into<u64> + TryFrom<u64>>(&mut self, value: &mut T) {
        let cell = &mut self.row[self.next];
        self.next += 1;
        match T::try_from(*cell) {
            _ if !self.is_read => *cell = (*value).into(),
            Ok(read) => *value = read,
            Err(_) => self.is_out_of_range = true,
        }
    }

    pub(crate) fn nums<const N: usize>(&mut self, values: [&mut u64; N]) {
        values.into_iter().for_each(|value| self.num(value));
    }

    /// Skips the cell of flags.
    pub(crate) fn flags(&mut self) {
        self.next += 1;
    }

    pub(crate) fn flag(&mut self, bit: usize, value: &mut bool) {
        let cell = &mut self.row[self.flags];
        match self.is_read {
            true => *value = *cell >> bit & 1 == 1,
            false => *cell |= u64::from(*value) << bit,
        }
    }

    /// Whether there is a value, as a bit of the flags; `value` has been coded already.
    pub(crate) fn present<T>(&mut self, bit: usize, option: &mut Option<T>, value: T) {
        let mut is_some = option.is_some();
        self.flag(bit, &mut is_some);
        if self.is_read {
            *option = is_some.then_some(value);
        }
    }

    /// The next cell, and whether it is known.
    pub(crate) fn option<T: Copy + Default + Into<u64> + TryFrom<u64>>(&mut self, bit: usize, option: &mut Option<T>) {
        let mut value = option.unwrap_or_default();
        let mut is_some = option.is_some();
        self.flag(bit, &mut is_some);
        match self.is_read && !is_some {
            // Whatever stands in an unknown cell need not fit.
            true => self.next += 1,
            false => self.num(&mut value),
        }
        if self.is_read {
            *option = is_some.then_some(value);
        }
    }

    /// The next cells, with the flags from 0 on.
    fn options<const N: usize>(&mut self, options: [&mut Option<u64>; N]) {
        options.into_iter().enumerate().for_each(|(bit, option)| self.option(bit, option));
    }

    /// A percentage: the kernel prints two decimals, so it is twice a whole number of hundredths. Anything else keeps
    /// all its bits but the last, which is set.
    fn percent(&mut self, value: &mut f64) {
        let hundredths = (*value * 100.0).round();
        let mut cell = match (0.0..1e9).contains(&hundredths) && hundredths / 100.0 == *value {
            true => (hundredths as u64) << 1,
            false => value.to_bits() | 1,
        };
        self.num(&mut cell);
        if self.is_read {
            let read = if cell & 1 == 0 { (cell >> 1) as f64 / 100.0 } else { f64::from_bits(cell) };
            *value = if read.is_finite() { read } else { 0.0 };
        }
    }
}

/// A struct of counters that is a row.
pub(crate) trait CounterRow: Clone {
    /// The index of the cell of flags, if there is one.
    const FLAGS: usize = 0;
    const LABELS: usize = 0;

    /// Codes its cells in the order of the file.
    fn cells(&mut self, c: &mut Cells);
    /// Codes its texts, which stand with the list of rows: they say what the row is about.
    fn labels(&mut self, _labels: &mut Labels) -> Coded {
        Ok(())
    }
}

pub(crate) struct Labels<'w, 'b> {
    wire: &'w mut Wire<'b>,
    left: usize,
}

impl Labels<'_, '_> {
    /// The next text; missing in files of versions that did not write it. What is not UTF-8 in it is replaced.
    fn option(&mut self, text: &mut Option<String>) -> Coded {
        let mut bytes = text.take().map(String::into_bytes);
        self.bytes(&mut bytes)?;
        *text = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ok(())
    }

    fn text<T: AsRef<str> + From<String>>(&mut self, text: &mut T) -> Coded {
        let mut option = Some(text.as_ref().to_owned());
        self.option(&mut option)?;
        *text = option.unwrap_or_default().into();
        Ok(())
    }

    fn raw(&mut self, raw: &mut RawBytes) -> Coded {
        let mut bytes = Some(raw.as_bytes().to_vec());
        self.bytes(&mut bytes)?;
        *raw = bytes.unwrap_or_default().into();
        Ok(())
    }

    fn bytes(&mut self, bytes: &mut Option<Vec<u8>>) -> Coded {
        match self.left.checked_sub(1) {
            None => *bytes = None,
            Some(left) => {
                self.left = left;
                self.wire.optional_blob(bytes)?;
            }
        }
        Ok(())
    }
}

/// The cells of `value`, and how many there are.
fn to_row<T: CounterRow>(value: &T) -> ([u64; MAX_CELLS], usize) {
    let mut row = [0; MAX_CELLS];
    let mut cells = Cells { row: &mut row, is_read: false, next: 0, flags: T::FLAGS, is_out_of_range: false };
    value.clone().cells(&mut cells);
    let len = cells.next;
    (row, len)
}

/// Codes the cells of `cur` as differences to those of `base`.
pub(crate) fn code_row<T: CounterRow>(w: &mut Wire, base: &T, cur: &mut T) -> Coded {
    let (before, len) = to_row(base);
    let mut row = if w.is_read() { before } else { to_row(cur).0 };
    let row = &mut row[..len];
    w.row(&before[..len], row)?;
    if w.is_read() {
        let mut cells = Cells { row, is_read: true, next: 0, flags: T::FLAGS, is_out_of_range: false };
        cur.cells(&mut cells);
        if cells.is_out_of_range {
            return Err(DecodeError("a number is too large for its field"));
        }
    }
    Ok(())
}

impl<T: CounterRow> DeltaRow for T {
    fn differs(&self, base: &Self) -> bool {
        to_row(self) != to_row(base)
    }

    fn values(&mut self, base: &Self, w: &mut Wire) -> Coded {
        code_row(w, base, self)
    }
}

impl<T: CounterRow + Default> TableRow for T {
    fn is_same(&self, other: &Self) -> bool {
        let labels = |row: &Self| written(|w| row.clone().labels(&mut Labels { wire: w, left: T::LABELS }));
        labels(self) == labels(other)
    }

    fn identities(rows: &mut Vec<Self>, w: &mut Wire) -> Coded {
        let n = w.count(rows.len(), MAX_DEVICES)?;
        let each = w.count(T::LABELS, usize::MAX)?;
        if w.is_read() {
            *rows = vec![T::default(); n];
        }
        for row in rows {
            let mut labels = Labels { wire: w, left: each };
            row.labels(&mut labels)?;
            // Those of a newer version.
            while labels.left > 0 {
                labels.bytes(&mut None)?;
            }
        }
        Ok(())
    }
}

impl CounterRow for CpuRaw {
    fn cells(&mut self, c: &mut Cells) {
        self.ticks.iter_mut().for_each(|n| c.num(n));
        c.num(&mut self.cpus);
        c.nums([&mut self.forks, &mut self.blocked_tasks]);
    }
}

impl CounterRow for DiskRaw {
    const FLAGS: usize = 17;
    const LABELS: usize = 1;

    fn cells(&mut self, c: &mut Cells) {
        let (mut discard, mut flush) = (self.discard.unwrap_or_default(), self.flush.unwrap_or_default());
        let (r, w, d, f) = (&mut self.read, &mut self.write, &mut discard, &mut flush);
        // What changes on a busy device comes first: its bits fit into fewer bytes.
        c.nums([&mut w.ios, &mut w.sectors, &mut w.ms, &mut self.busy_ms, &mut self.queue_ms, &mut w.merged]);
        c.nums([&mut self.in_flight, &mut r.ios, &mut r.sectors, &mut r.ms, &mut f.0, &mut f.1, &mut r.merged]);
        c.nums([&mut d.ios, &mut d.merged, &mut d.sectors, &mut d.ms]);
        c.present(0, &mut self.discard, discard);
        c.present(1, &mut self.flush, flush);
        c.flags();
        c.num(&mut self.id.major);
        c.num(&mut self.id.minor);
    }

    fn labels(&mut self, labels: &mut Labels) -> Coded {
        labels.text(&mut self.name)
    }
}

impl CounterRow for VmRaw {
    const FLAGS: usize = 16;

    fn cells(&mut self, c: &mut Cells) {
        c.options([
            &mut self.nr_dirty,
            &mut self.nr_writeback,
            &mut self.nr_dirtied,
            &mut self.nr_written,
            &mut self.nr_dirty_threshold,
            &mut self.nr_dirty_background_threshold,
            &mut self.pgpgout,
            &mut self.pgpgin,
            &mut self.pgmajfault,
            &mut self.nr_writeback_temp,
            &mut self.pswpin,
            &mut self.pswpout,
            &mut self.pgscan_kswapd,
            &mut self.pgscan_direct,
            &mut self.allocstall,
            &mut self.oom_kill,
        ]);
        c.flags();
        c.num(&mut self.page_size);
    }
}

impl CounterRow for MemRaw {
    const FLAGS: usize = 12;

    fn cells(&mut self, c: &mut Cells) {
        c.num(&mut self.free);
        c.option(0, &mut self.available);
        c.nums([&mut self.cached, &mut self.dirty]);
        c.option(1, &mut self.anon);
        c.nums([&mut self.writeback, &mut self.buffers]);
        c.option(2, &mut self.shmem);
        c.nums([&mut self.swap_free, &mut self.swap_cached, &mut self.total, &mut self.swap_total]);
        c.flags();
    }
}

impl CounterRow for SwapArea {
    const LABELS: usize = 2;

    fn cells(&mut self, c: &mut Cells) {
        let mut priority = self.priority as u64;
        c.nums([&mut self.used_bytes, &mut self.size_bytes, &mut priority]);
        self.priority = priority as i64;
    }

    fn labels(&mut self, labels: &mut Labels) -> Coded {
        labels.text(&mut self.name)?;
        labels.text(&mut self.kind)
    }
}

impl CounterRow for PressureRaw {
    const FLAGS: usize = 24;

    fn cells(&mut self, c: &mut Cells) {
        let resources = [&mut self.io, &mut self.memory, &mut self.cpu];
        for (bit, line) in resources.into_iter().flat_map(|r| [&mut r.some, &mut r.full]).enumerate() {
            let mut averages = line.unwrap_or_default();
            c.num(&mut averages.total_us);
            [&mut averages.avg10, &mut averages.avg60, &mut averages.avg300].into_iter().for_each(|n| c.percent(n));
            c.present(bit, line, averages);
        }
        c.flags();
    }
}

impl CounterRow for NicRaw {
    const FLAGS: usize = 2;
    const LABELS: usize = 1;

    fn cells(&mut self, c: &mut Cells) {
        c.nums([&mut self.rx_bytes, &mut self.tx_bytes]);
        c.flags();
        c.option(0, &mut self.speed_bits);
    }

    fn labels(&mut self, labels: &mut Labels) -> Coded {
        labels.text(&mut self.name)
    }
}

impl CounterRow for NetFsRaw {
    const FLAGS: usize = 12;
    const LABELS: usize = 5;

    fn cells(&mut self, c: &mut Cells) {
        c.options([
            &mut self.age_s,
            &mut self.read_bytes,
            &mut self.write_bytes,
            &mut self.ops,
            &mut self.read_ops,
            &mut self.write_ops,
            &mut self.rtt_ms,
            &mut self.execute_ms,
            &mut self.queue_ms,
            &mut self.retransmits,
            &mut self.timeouts,
            &mut self.errors,
        ]);
        c.flags();
        let mut is_cifs = u64::from(self.kind == NetFsKind::Cifs);
        c.num(&mut is_cifs);
        self.kind = if is_cifs == 1 { NetFsKind::Cifs } else { NetFsKind::Nfs };
        c.num(&mut self.dev.major);
        c.num(&mut self.dev.minor);
    }

    fn labels(&mut self, labels: &mut Labels) -> Coded {
        labels.raw(&mut self.mount)?;
        labels.raw(&mut self.server)?;
        labels.option(&mut self.version)?;
        labels.option(&mut self.address)?;
        labels.option(&mut self.interface)
    }
}

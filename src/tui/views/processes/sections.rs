//! The parts of the list: sections, lines, and columns without values.

/// Cells at the left of both sections, so that their names have room before the heading of the process id.
pub(super) const INDENT: u16 = 4;

/// A line of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskLine {
    /// The headings of the section of stalled tasks.
    StalledHeading,
    /// The headings of the columns that can be sorted by.
    Heading,
    /// This row of those on screen.
    Row(usize),
}

/// Columns that have been empty for as many samples are not shown.
const EMPTY_TICKS: u8 = 8;

/// For how many samples each column has been empty, by the order of all columns.
#[derive(Debug, Clone, Default)]
pub(super) struct EmptyColumns {
    /// The sample counted last.
    seq: Option<u64>,
    ticks: Vec<u8>,
}

impl EmptyColumns {
    /// Whether a sample has been counted.
    pub(super) fn has_counted(&self, seq: u64) -> bool {
        self.seq == Some(seq)
    }

    /// Counts a sample, by the columns that are empty in it. A column that was always empty needs no more samples.
    pub(super) fn count(&mut self, seq: u64, empty: &[bool]) {
        self.seq = Some(seq);
        self.ticks.resize(empty.len(), EMPTY_TICKS);
        for (ticks, is_empty) in self.ticks.iter_mut().zip(empty) {
            *ticks = if *is_empty { ticks.saturating_add(1) } else { 0 };
        }
    }

    /// Whether a column was empty long enough to be left out.
    pub(super) fn is_lasting(&self, column: usize) -> bool {
        self.ticks.get(column).is_none_or(|ticks| *ticks >= EMPTY_TICKS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_goes_after_eight_samples_and_comes_back_at_once() {
        let mut columns = EmptyColumns::default();
        columns.count(1, &[true]);
        assert!(columns.is_lasting(0), "it was never anything else");
        columns.count(2, &[false]);
        for seq in 3..10 {
            columns.count(seq, &[true]);
            assert!(!columns.is_lasting(0), "{seq}");
        }
        columns.count(10, &[true]);
        assert!(columns.is_lasting(0) && columns.has_counted(10));
    }
}

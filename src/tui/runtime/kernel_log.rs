//! Reads the kernel log in the event loop.

use super::async_fd::register_fd;
use super::shared::SharedRuntime;
use crate::collect::clock;
use crate::collect::kmsg::KmsgReader;
use crate::model::kernel_log::KmsgRecord;
use crate::model::observation::Observation;
use crate::model::reading::Reading;
use crate::root::Root;
use crate::tui::event::Event;
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Time between two reads of the log: in a flood each record would wake the loop. A kernel buffer of 128 KiB, the smallest
/// usual, lasts this long up to 1.3 MB/s; records overwritten before they are read are counted as lost.
const READ_INTERVAL: Duration = Duration::from_millis(100);
/// The most records of one read, so that keys are handled in between. The rest is read after [`READ_INTERVAL`].
const MAX_RECORDS: usize = 4096;

/// Where further kernel log records come from.
pub(super) enum KernelLogSource {
    /// /dev/kmsg, which becomes readable when the kernel logs something.
    Live {
        fd: AsyncFd<KmsgReader>,
        /// When it may be read again.
        next_read: Instant,
    },
    /// A captured file that was read whole, or a log that cannot be read.
    Finished,
}

impl KernelLogSource {
    /// Waits until there are records to read and the last read is [`READ_INTERVAL`] ago.
    pub(super) async fn readable(&self) -> std::io::Result<()> {
        match self {
            KernelLogSource::Live { fd, next_read } => {
                // Dropping the guard keeps the descriptor marked as readable until a read has taken all records.
                drop(fd.readable().await?);
                tokio::time::sleep_until((*next_read).into()).await;
                Ok(())
            }
            KernelLogSource::Finished => std::future::pending().await,
        }
    }

    /// Reads the records there are, and waits for more if the log is live.
    pub(super) fn open(root: &Root, runtime: &SharedRuntime) -> anyhow::Result<Self> {
        let mut reader = match KmsgReader::open(root) {
            Reading::Ok(reader) => reader,
            unavailable => return Self::unavailable(unavailable.map(|_| ()), runtime),
        };
        while !read_records(&mut reader, runtime)? && !reader.is_live() {}
        if !reader.is_live() {
            return Ok(KernelLogSource::Finished);
        }
        match register_fd(reader, Interest::READABLE) {
            Ok(fd) => Ok(KernelLogSource::Live { fd, next_read: Instant::now() }),
            Err(err) => Self::unavailable(Reading::from_io_error("/dev/kmsg", &err), runtime),
        }
    }

    fn unavailable(why: Reading<()>, runtime: &SharedRuntime) -> anyhow::Result<Self> {
        runtime.with(|runtime| runtime.dispatch(Event::Observed(Observation::KernelLogState(why))))?;
        Ok(KernelLogSource::Finished)
    }

    /// Reads new records; after an error the log is not read any more.
    pub(super) fn on_ready(&mut self, ready: std::io::Result<()>, runtime: &SharedRuntime) -> anyhow::Result<()> {
        let KernelLogSource::Live { fd, next_read } = self else { return Ok(()) };
        if let Err(err) = ready {
            *self = Self::unavailable(Reading::from_io_error("/dev/kmsg", &err), runtime)?;
            return Ok(());
        }
        if read_records(fd.get_mut(), runtime)? {
            // Tokio shall wait for the next record.
            let _ = fd.try_io_mut(Interest::READABLE, |_| Err::<(), _>(std::io::ErrorKind::WouldBlock.into()));
        }
        *next_read = Instant::now() + READ_INTERVAL;
        Ok(())
    }
}

/// Reads up to [`MAX_RECORDS`] records; returns whether these were all.
fn read_records(reader: &mut KmsgReader, runtime: &SharedRuntime) -> anyhow::Result<bool> {
    let clock = clock::now_log_clock();
    let records = next_records(reader);
    let was_all = records.len() < MAX_RECORDS;
    runtime.with(|runtime| {
        runtime.schedule_draw(Duration::ZERO);
        runtime.dispatch(Event::Observed(Observation::KernelLog(records, clock)))
    })?;
    Ok(was_all)
}

fn next_records(reader: &mut KmsgReader) -> Vec<KmsgRecord> {
    std::iter::from_fn(|| reader.next_record().ok().flatten()).take(MAX_RECORDS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_read_takes_a_bounded_number_of_records() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        let log: String = (0..=MAX_RECORDS).map(|n| format!("6,{n},{n},-;line {n}\n")).collect();
        std::fs::create_dir(dir.path().join("dev")).unwrap();
        std::fs::write(root.dev("kmsg"), log).unwrap();
        let Reading::Ok(mut reader) = KmsgReader::open(&root) else { panic!("no log") };
        assert_eq!([0; 3].map(|_| next_records(&mut reader).len()), [MAX_RECORDS, 1, 0]);
    }
}

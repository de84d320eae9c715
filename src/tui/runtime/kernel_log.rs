//! Reads the kernel log in the event loop.

use super::EventLoop;
use super::async_fd::register_fd;
use crate::collect::clock;
use crate::collect::kmsg::KmsgReader;
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
        /// The open log.
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
}

impl EventLoop {
    /// Reads the records there are, and waits for more if the log is live.
    pub(super) fn open_kernel_log(&mut self, root: &Root) -> anyhow::Result<()> {
        let mut reader = match KmsgReader::open(root) {
            Reading::Ok(reader) => reader,
            unavailable => return self.report_no_kernel_log(unavailable.map(|_| ())),
        };
        while !self.read_kernel_log(&mut reader)? && !reader.is_live() {}
        if reader.is_live() {
            match register_fd(reader, Interest::READABLE) {
                Ok(fd) => self.kernel_log = KernelLogSource::Live { fd, next_read: Instant::now() },
                Err(err) => self.report_no_kernel_log(Reading::from_io_error("/dev/kmsg", &err))?,
            }
        }
        Ok(())
    }

    /// Reads up to [`MAX_RECORDS`] records; returns whether these were all.
    fn read_kernel_log(&self, reader: &mut KmsgReader) -> anyhow::Result<bool> {
        let clock = clock::now_log_clock();
        let next = || reader.next_record().ok().flatten();
        let records: Vec<_> = std::iter::from_fn(next).take(MAX_RECORDS).collect();
        let was_all = records.len() < MAX_RECORDS;
        self.runtime.with(|runtime| {
            runtime.schedule_draw(Duration::ZERO);
            runtime.dispatch(Event::Observed(Observation::KernelLog(records, clock)))
        })?;
        Ok(was_all)
    }

    fn report_no_kernel_log(&self, why: Reading<()>) -> anyhow::Result<()> {
        self.runtime.with(|runtime| runtime.dispatch(Event::Observed(Observation::KernelLogState(why))))
    }

    /// Reads new records; after an error the log is not read any more.
    pub(super) fn on_kernel_log_ready(&mut self, ready: std::io::Result<()>) -> anyhow::Result<()> {
        let KernelLogSource::Live { mut fd, .. } = std::mem::replace(&mut self.kernel_log, KernelLogSource::Finished)
        else {
            return Ok(());
        };
        if let Err(err) = ready {
            return self.report_no_kernel_log(Reading::from_io_error("/dev/kmsg", &err));
        }
        if self.read_kernel_log(fd.get_mut())? {
            // Tokio shall wait for the next record.
            let _ = fd.try_io_mut(Interest::READABLE, |_| Err::<(), _>(std::io::ErrorKind::WouldBlock.into()));
        }
        self.kernel_log = KernelLogSource::Live { fd, next_read: Instant::now() + READ_INTERVAL };
        Ok(())
    }
}

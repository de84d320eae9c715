//! Reads the kernel log in the event loop.

use super::EventLoop;
use super::async_fd::register_fd;
use crate::collect::clock;
use crate::collect::kmsg::KmsgReader;
use crate::model::observation::Observation;
use crate::model::reading::Reading;
use crate::root::Root;
use crate::tui::event::Event;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Where further kernel log records come from.
pub(super) enum KernelLogSource {
    /// /dev/kmsg, which becomes readable when the kernel logs something.
    Live(AsyncFd<KmsgReader>),
    /// A captured file that was read whole, or a log that cannot be read.
    Finished,
}

impl KernelLogSource {
    /// Waits until there are records to read.
    pub(super) async fn readable(&self) -> std::io::Result<()> {
        match self {
            KernelLogSource::Live(fd) => {
                fd.readable().await?.clear_ready();
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
        self.drain_kernel_log(&mut reader)?;
        if reader.is_live() {
            match register_fd(reader, Interest::READABLE) {
                Ok(fd) => self.kernel_log = KernelLogSource::Live(fd),
                Err(err) => self.report_no_kernel_log(Reading::from_io_error("/dev/kmsg", &err))?,
            }
        }
        Ok(())
    }

    fn drain_kernel_log(&self, reader: &mut KmsgReader) -> anyhow::Result<()> {
        let clock = clock::now_log_clock();
        let records = std::iter::from_fn(|| reader.next_record().ok().flatten()).collect();
        self.runtime.with(|runtime| {
            runtime.schedule_draw(Duration::ZERO);
            runtime.dispatch(Event::Observed(Observation::KernelLog(records, clock)))
        })
    }

    fn report_no_kernel_log(&self, why: Reading<()>) -> anyhow::Result<()> {
        self.runtime.with(|runtime| runtime.dispatch(Event::Observed(Observation::KernelLogState(why))))
    }

    /// Reads new records; after an error the log is not read any more.
    pub(super) fn on_kernel_log_ready(&mut self, ready: std::io::Result<()>) -> anyhow::Result<()> {
        let KernelLogSource::Live(mut fd) = std::mem::replace(&mut self.kernel_log, KernelLogSource::Finished) else {
            return Ok(());
        };
        if let Err(err) = ready {
            return self.report_no_kernel_log(Reading::from_io_error("/dev/kmsg", &err));
        }
        self.drain_kernel_log(fd.get_mut())?;
        self.kernel_log = KernelLogSource::Live(fd);
        Ok(())
    }
}

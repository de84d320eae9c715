//! The loop's side of the kernel log.

use super::super::async_fd::register_fd;
use super::super::event::Event;
use super::EventLoop;
use crate::collect::clock;
use crate::collect::kmsg::KmsgReader;
use crate::model::reading::Reading;
use crate::root::Root;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The kernel log: a device that can be waited for, or a captured file that was read whole.
pub(super) enum KernelLogSource {
    Live(AsyncFd<KmsgReader>),
    Finished,
}

impl KernelLogSource {
    /// Waits for lines.
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
    pub(super) fn open_kernel_log(&mut self, root: &Root) -> anyhow::Result<()> {
        match KmsgReader::open(root) {
            Reading::Ok(mut reader) => {
                self.drain_kernel_log(&mut reader)?;
                if reader.is_live() {
                    match register_fd(reader, Interest::READABLE) {
                        Ok(fd) => self.kernel_log = KernelLogSource::Live(fd),
                        Err(err) => self.report_no_kernel_log(Reading::from_io_error("/dev/kmsg", &err))?,
                    }
                }
                Ok(())
            }
            other => self.report_no_kernel_log(other.map(|_| ())),
        }
    }

    fn drain_kernel_log(&self, reader: &mut KmsgReader) -> anyhow::Result<()> {
        let clock = clock::now_log_clock();
        let mut records = Vec::new();
        while let Ok(Some(record)) = reader.next_record() {
            records.push(record);
        }
        self.runtime.with(|desk| {
            desk.schedule_draw(Duration::ZERO);
            desk.dispatch(Event::KernelLogRecords(records, clock))
        })
    }

    fn report_no_kernel_log(&self, why: Reading<()>) -> anyhow::Result<()> {
        self.runtime.with(|desk| desk.dispatch(Event::KernelLogUnavailable(why)))
    }

    pub(super) fn on_kernel_log_ready(&mut self, ready: std::io::Result<()>) -> anyhow::Result<()> {
        let KernelLogSource::Live(mut fd) = std::mem::replace(&mut self.kernel_log, KernelLogSource::Finished) else {
            return Ok(());
        };
        match ready {
            Ok(()) => {
                self.drain_kernel_log(fd.get_mut())?;
                self.kernel_log = KernelLogSource::Live(fd);
                Ok(())
            }
            Err(err) => self.report_no_kernel_log(Reading::from_io_error("/dev/kmsg", &err)),
        }
    }
}

//! The loop's side of the kernel log.

use super::super::event::Event;
use super::super::async_fd::register_fd;
use super::EventLoop;
use crate::collect::clock;
use crate::collect::kmsg::KmsgReader;
use crate::model::reading::Reading;
use crate::root::Root;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The kernel log: a device that can be waited for, or a captured file that was read whole.
pub(super) enum Kmsg {
    Live(AsyncFd<KmsgReader>),
    Done,
}

impl Kmsg {
    /// Waits for lines.
    pub(super) async fn ready(&self) -> std::io::Result<()> {
        match self {
            Kmsg::Live(fd) => {
                fd.readable().await?.clear_ready();
                Ok(())
            }
            Kmsg::Done => std::future::pending().await,
        }
    }
}

impl EventLoop {
    pub(super) fn open_kmsg(&mut self, root: &Root) -> anyhow::Result<()> {
        match KmsgReader::open(root) {
            Reading::Ok(mut reader) => {
                self.drain_kmsg(&mut reader)?;
                if reader.is_live() {
                    match register_fd(reader, Interest::READABLE) {
                        Ok(fd) => self.kernel_log = Kmsg::Live(fd),
                        Err(err) => self.no_kmsg(Reading::from_io_error("/dev/kmsg", &err))?,
                    }
                }
                Ok(())
            }
            other => self.no_kmsg(other.map(|_| ())),
        }
    }

    fn drain_kmsg(&self, reader: &mut KmsgReader) -> anyhow::Result<()> {
        let clock = clock::now_log_clock();
        let mut records = Vec::new();
        while let Ok(Some(record)) = reader.next_record() {
            records.push(record);
        }
        self.runtime.with(|desk| {
            desk.draw_soon(Duration::ZERO);
            desk.feed_event(Event::KernelLogRecords(records, clock))
        })
    }

    fn no_kmsg(&self, why: Reading<()>) -> anyhow::Result<()> {
        self.runtime.with(|desk| desk.feed_event(Event::KernelLogUnavailable(why)))
    }

    pub(super) fn kernel_said(&mut self, ready: std::io::Result<()>) -> anyhow::Result<()> {
        let Kmsg::Live(mut fd) = std::mem::replace(&mut self.kernel_log, Kmsg::Done) else { return Ok(()) };
        match ready {
            Ok(()) => {
                self.drain_kmsg(fd.get_mut())?;
                self.kernel_log = Kmsg::Live(fd);
                Ok(())
            }
            Err(err) => self.no_kmsg(Reading::from_io_error("/dev/kmsg", &err)),
        }
    }
}

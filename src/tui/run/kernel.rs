//! The loop's side of the kernel log.

use super::super::event::Event;
use super::super::ready::register;
use super::Loop;
use crate::collect::clock;
use crate::collect::kmsg::KmsgReader;
use crate::model::section::Section;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The kernel log: a device that can be waited for, or a captured file that was read whole.
pub(super) enum Kmsg {
    Live(AsyncFd<KmsgReader>),
    Done,
}

impl Loop {
    pub(super) fn open_kmsg(&mut self) {
        match KmsgReader::open(&self.options.root) {
            Section::Ok(mut reader) => {
                self.drain_kmsg(&mut reader);
                if reader.is_live() {
                    match register(reader, Interest::READABLE) {
                        Ok(fd) => self.kmsg = Kmsg::Live(fd),
                        Err(err) => self.no_kmsg(Section::from_io("/dev/kmsg", &err)),
                    }
                }
            }
            other => self.no_kmsg(other.map(|_| ())),
        }
    }

    pub(super) fn drain_kmsg(&mut self, reader: &mut KmsgReader) {
        let clock = clock::log_clock();
        let mut records = Vec::new();
        while let Ok(Some(record)) = reader.next_record() {
            records.push(record);
        }
        // It has no effects.
        let _ = self.feed_event(Event::Records(records, clock));
        self.draw_soon(Duration::ZERO);
    }

    pub(super) fn no_kmsg(&mut self, why: Section<()>) {
        let _ = self.feed_event(Event::NoKernelLog(why));
    }

    pub(super) fn kernel_said(&mut self, ready: std::io::Result<()>) -> anyhow::Result<()> {
        let Kmsg::Live(mut fd) = std::mem::replace(&mut self.kmsg, Kmsg::Done) else { return Ok(()) };
        match ready {
            Ok(()) => {
                self.drain_kmsg(fd.get_mut());
                self.kmsg = Kmsg::Live(fd);
            }
            Err(err) => self.no_kmsg(Section::from_io("/dev/kmsg", &err)),
        }
        Ok(())
    }
}

/// Waits for lines.
pub(super) async fn read_kmsg(kmsg: &Kmsg) -> std::io::Result<()> {
    match kmsg {
        Kmsg::Live(fd) => {
            fd.readable().await?.clear_ready();
            Ok(())
        }
        Kmsg::Done => std::future::pending().await,
    }
}

//! Descriptors of the files of tasks that run all the time, kept from look to look.
//!
//! Opening and closing a file of procfs costs more than reading it. Those few that are read at every look are
//! worth a descriptor; all of them would cost the kernel more memory than this program has.

use super::path::Place;
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// Descriptors kept at most; the kernel holds some 5 KiB for each.
const MOST: usize = 64;

/// Looks after which one that was not used is closed.
const IDLE: u32 = 3;

struct Slot {
    place: Place,
    file: usize,
    used: u32,
    fd: OwnedFd,
}

/// The descriptors.
#[derive(Default)]
pub struct Warm {
    slots: Vec<Slot>,
    look: u32,
}

impl Warm {
    /// A new look begins.
    pub fn begin(&mut self) {
        self.look = self.look.wrapping_add(1);
        let look = self.look;
        self.slots.retain(|slot| look.wrapping_sub(slot.used) <= IDLE);
    }

    /// Reads a file of a task through its kept descriptor, from the start and with one call; `None` if there
    /// is none, or if it is a task's that ended: another one may have its number.
    pub fn read(&mut self, place: Place, file: usize, buf: &mut [u8]) -> Option<Result<usize, Errno>> {
        let at = self.slots.iter().position(|slot| slot.place == place && slot.file == file)?;
        self.slots[at].used = self.look;
        let read = loop {
            match rustix::io::pread(&self.slots[at].fd, &mut *buf, 0) {
                Err(Errno::INTR) => {}
                other => break other,
            }
        };
        if read.is_err() {
            self.slots.swap_remove(at);
        }
        (read != Err(Errno::SRCH)).then_some(read)
    }

    /// Whether there is room for one more.
    pub fn has_room(&self) -> bool {
        self.slots.len() < MOST
    }

    /// Keeps a descriptor.
    pub fn keep(&mut self, place: Place, file: usize, fd: OwnedFd) {
        self.slots.push(Slot { place, file, used: self.look, fd });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn place(pid: u32) -> Place {
        Place { pid, tid: pid, thread: false }
    }

    #[test]
    fn a_descriptor_reads_afresh_and_is_closed_when_it_is_idle() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"one").unwrap();
        let mut warm = Warm::default();
        let mut buf = [0; 8];
        warm.begin();
        warm.keep(place(1), 0, file.try_clone().unwrap().into());
        for _ in 0..10 {
            warm.begin();
            assert_eq!(warm.read(place(1), 0, &mut buf), Some(Ok(3)));
        }
        assert_eq!(&buf[..3], b"one");
        assert_eq!((warm.read(place(1), 1, &mut buf), warm.read(place(2), 0, &mut buf)), (None, None));
        (0..=IDLE).for_each(|_| warm.begin());
        assert_eq!(warm.read(place(1), 0, &mut buf), None);
    }

    #[test]
    fn a_task_that_ended_is_not_taken_for_the_next_of_its_number() {
        let mut child = std::process::Command::new("/proc/self/exe").arg("--list").spawn().unwrap();
        let stat = std::fs::File::open(format!("/proc/{}/stat", child.id())).unwrap();
        child.wait().unwrap();
        let mut warm = Warm::default();
        warm.keep(place(child.id()), 0, stat.into());
        assert_eq!(warm.read(place(child.id()), 0, &mut [0; 64]), None);
        assert!(warm.slots.is_empty());
    }

    #[test]
    fn there_is_an_end_to_what_is_kept() {
        let mut warm = Warm::default();
        let file = tempfile::tempfile().unwrap();
        let mut kept = 0;
        while warm.has_room() {
            warm.keep(place(kept), 0, file.try_clone().unwrap().into());
            kept += 1;
        }
        assert_eq!(kept as usize, MOST);
    }
}

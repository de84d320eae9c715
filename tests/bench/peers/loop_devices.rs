//! Many loop devices, all on one file in memory, removed with their nodes when this is dropped.

use anyhow::Context;
use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// Numbers of the devices start here, where no other program looks for a free one.
const FIRST_NUMBER: u32 = 10_000;
/// Size of each device, bytes.
const DEVICE_LEN: u64 = 1 << 20;
/// A device that another program has open cannot be removed until it is closed.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(10);

const REMOVING_THREADS: usize = 16;

/// Requests of include/uapi/linux/loop.h.
const LOOP_SET_FD: libc::Ioctl = 0x4C00;
const LOOP_CLR_FD: libc::Ioctl = 0x4C01;
const LOOP_CTL_ADD: libc::Ioctl = 0x4C80;
const LOOP_CTL_REMOVE: libc::Ioctl = 0x4C81;

/// Loop devices.
pub struct LoopDevices {
    /// N of each `/dev/loopN`.
    pub numbers: Vec<u32>,
    _backing: Option<OwnedFd>,
}

impl LoopDevices {
    /// Creates `n` devices.
    pub fn create(n: u32) -> anyhow::Result<Self> {
        let mut devices = Self { numbers: Vec::new(), _backing: None };
        if n == 0 {
            return Ok(devices);
        }
        let backing = rustix::fs::memfd_create(c"iotop-plus-bench", rustix::fs::MemfdFlags::CLOEXEC)?;
        rustix::fs::ftruncate(&backing, DEVICE_LEN)?;
        let control = open_control()?;
        let mut number = FIRST_NUMBER;
        while devices.numbers.len() < n as usize {
            match control_ioctl(&control, LOOP_CTL_ADD, number) {
                Ok(()) => {
                    devices.numbers.push(number);
                    let device = open_device(number)?;
                    control_ioctl(&device, LOOP_SET_FD, backing.as_raw_fd() as u32)
                        .with_context(|| format!("LOOP_SET_FD of loop{number}"))?;
                }
                Err(err) if err.raw_os_error() == Some(libc::EEXIST) => {}
                Err(err) => return Err(err).with_context(|| format!("LOOP_CTL_ADD of loop{number}")),
            }
            number += 1;
        }
        devices._backing = Some(backing);
        Ok(devices)
    }
}

impl Drop for LoopDevices {
    fn drop(&mut self) {
        // The kernel waits for each one for some 50 ms.
        let of_thread = self.numbers.len().div_ceil(REMOVING_THREADS).max(1);
        std::thread::scope(|scope| {
            for numbers in self.numbers.chunks(of_thread) {
                scope.spawn(|| numbers.iter().for_each(|number| remove(*number)));
            }
        });
    }
}

fn remove(number: u32) {
    if let Ok(device) = open_device(number) {
        let _ = control_ioctl(&device, LOOP_CLR_FD, 0);
    }
    let Ok(control) = open_control() else { return };
    let start = Instant::now();
    while let Err(err) = control_ioctl(&control, LOOP_CTL_REMOVE, number) {
        if err.raw_os_error() != Some(libc::EBUSY) || start.elapsed() > REMOVE_TIMEOUT {
            eprintln!("loop{number} stays: {err}");
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn open_control() -> anyhow::Result<File> {
    let path = "/dev/loop-control";
    OpenOptions::new().read(true).write(true).open(path).context(path)
}

fn open_device(number: u32) -> anyhow::Result<File> {
    let path = format!("/dev/loop{number}");
    OpenOptions::new().read(true).write(true).open(&path).context(path)
}

#[allow(unsafe_code)]
fn control_ioctl(file: &File, request: libc::Ioctl, argument: u32) -> std::io::Result<()> {
    // SAFETY: these requests take a number, not a pointer.
    match unsafe { libc::ioctl(file.as_raw_fd(), request, libc::c_ulong::from(argument)) } {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}

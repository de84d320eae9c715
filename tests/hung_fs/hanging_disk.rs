//! A disk that can be made slow or to hang: a loop device on a file that this process serves by FUSE, more slowly or not at
//! all.

use super::run_command;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::{FdFlags, fcntl_setfd};
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Bytes of fuse_in_header (include/uapi/linux/fuse.h).
const HEADER: usize = 40;
/// Bytes of fuse_write_in.
const WRITE_HEADER: usize = 40;
const MAX_WRITE: u32 = 128 << 10;
/// Requests, of whose structs the size is at the same place.
const READ: u32 = 15;
const WRITE: u32 = 16;
/// No waiting at all.
const FULL_SPEED: u64 = u64::MAX;

/// Drops what the page cache has of a file and nothing else maps.
pub fn drop_page_cache(file: &Path) -> std::io::Result<()> {
    Ok(rustix::fs::fadvise(File::open(file)?, 0, None, rustix::fs::Advice::DontNeed)?)
}

/// The disk. Dropping it removes it.
pub struct HangingDisk {
    /// Its block device.
    pub device: String,
    served_file: PathBuf,
    speed: Arc<AtomicU64>,
    delay_us: Arc<AtomicU64>,
}

impl HangingDisk {
    /// Creates a disk of `size` bytes with its files in `dir`.
    pub fn create(dir: &Path, size: u64) -> Result<Self, String> {
        let text = |e: std::io::Error| e.to_string();
        let (image, served_file) = (dir.join("disk.img"), dir.join("disk"));
        let storage = File::options().read(true).write(true).create_new(true).open(&image).map_err(text)?;
        storage.set_len(size).map_err(text)?;
        std::fs::write(&served_file, "").map_err(text)?;
        let fuse = rustix::fs::openat(CWD, "/dev/fuse", OFlags::RDWR, Mode::empty()).map_err(|e| e.to_string())?;
        let options = format!("fd={},rootmode=100600,user_id=0,group_id=0", fuse.as_raw_fd());
        run_command("mount", &["-i", "-t", "fuse", "-o", &options, "disk", served_file.to_str().unwrap()])?;
        let _ = fcntl_setfd(&fuse, FdFlags::CLOEXEC);
        let speed = Arc::new(AtomicU64::new(FULL_SPEED));
        let delay_us = Arc::new(AtomicU64::new(0));
        let server = FuseServer { fuse, storage, size, speed: speed.clone(), delay_us: delay_us.clone() };
        std::thread::spawn(move || server.serve());
        let mut disk = Self { device: String::new(), served_file, speed, delay_us };
        let out = Command::new("losetup").args(["-f", "--show"]).arg(&disk.served_file).output().map_err(text)?;
        disk.device = String::from_utf8_lossy(&out.stdout).trim().to_owned();
        match out.status.success() {
            true => Ok(disk),
            false => Err(format!("losetup: {}", String::from_utf8_lossy(&out.stderr))),
        }
    }

    /// Whether reads and writes wait from now on.
    pub fn hang(&self, on: bool) {
        self.set_speed(if on { 0 } else { FULL_SPEED });
    }

    /// Drops what the page cache has of the disk, of its device and of the file behind it.
    pub fn drop_page_cache(&self) -> std::io::Result<()> {
        drop_page_cache(Path::new(&self.device))?;
        drop_page_cache(&self.served_file)
    }

    /// How many bytes a second are read and written from now on. With 0 nothing is answered.
    pub fn set_speed(&self, bytes_per_second: u64) {
        self.speed.store(bytes_per_second, SeqCst);
    }

    /// How long each read and write takes from now on, one after the other.
    pub fn set_delay(&self, delay: Duration) {
        self.delay_us.store(delay.as_micros() as u64, SeqCst);
    }
}

impl Drop for HangingDisk {
    fn drop(&mut self) {
        self.hang(false);
        let _ = run_command("losetup", &["-d", &self.device]);
        let _ = run_command("umount", &["-l", self.served_file.to_str().unwrap()]);
    }
}

/// Serves one file, which is the root of the mount.
struct FuseServer {
    fuse: OwnedFd,
    storage: File,
    size: u64,
    speed: Arc<AtomicU64>,
    delay_us: Arc<AtomicU64>,
}

impl FuseServer {
    fn serve(&self) {
        let mut request = vec![0; 1 << 20];
        while let Ok(n) = rustix::io::read(&self.fuse, &mut request[..]) {
            let (request, mut reply) = (&request[..n], vec![0; 16]);
            self.wait_for_transfer(request);
            let error = match self.answer(request, &mut reply) {
                Some(Ok(())) => 0,
                Some(Err(errno)) => -errno,
                None => continue,
            };
            let len = reply.len() as u32;
            reply[..4].copy_from_slice(&len.to_ne_bytes());
            reply[4..8].copy_from_slice(&error.to_ne_bytes());
            reply[8..16].copy_from_slice(&request[8..16]);
            if rustix::io::write(&self.fuse, &reply).is_err() {
                return;
            }
        }
    }

    /// Takes as long as a disk of this speed would, which may change meanwhile.
    fn wait_for_transfer(&self, request: &[u8]) {
        let u32_at = |at: usize| u32::from_ne_bytes(request[at..at + 4].try_into().unwrap());
        let bytes = match u32_at(4) {
            READ | WRITE => {
                std::thread::sleep(Duration::from_micros(self.delay_us.load(SeqCst)));
                u64::from(u32_at(HEADER + 16))
            }
            _ => 1,
        };
        let (start, is_done) = (Instant::now(), |speed: u64, elapsed: Duration| {
            speed > 0 && elapsed.as_secs_f64() >= bytes as f64 / speed as f64
        });
        loop {
            let speed = self.speed.load(SeqCst);
            if speed == FULL_SPEED || is_done(speed, start.elapsed()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Appends the body of the reply. `None`: no reply is expected.
    fn answer(&self, request: &[u8], reply: &mut Vec<u8>) -> Option<Result<(), i32>> {
        let u32_at = |at: usize| u32::from_ne_bytes(request[at..at + 4].try_into().unwrap());
        let u64_at = |at: usize| u64::from_ne_bytes(request[at..at + 8].try_into().unwrap());
        const FORGET: u32 = 2;
        const BATCH_FORGET: u32 = 42;
        match u32_at(4) {
            FORGET | BATCH_FORGET => return None,
            // GETATTR and SETATTR: fuse_attr_out.
            3 | 4 => {
                let words = [3600, 0, 1, self.size, self.size / 512, 0, 0, 0, 0];
                reply.extend(words.iter().flat_map(|word: &u64| word.to_ne_bytes()));
                let (mode, links) = (0o100_600_u32, 1);
                reply.extend([0, mode, links, 0, 0, 0, 4096, 0].iter().flat_map(|half: &u32| half.to_ne_bytes()));
            }
            // OPEN: fuse_open_out. STATFS: fuse_statfs_out.
            14 => reply.extend([0; 16]),
            17 => reply.extend([0; 80]),
            // READ: fuse_read_in.
            READ => {
                let mut data = vec![0; u32_at(HEADER + 16) as usize];
                let n = self.storage.read_at(&mut data, u64_at(HEADER + 8)).ok();
                reply.extend(&data[..n.unwrap_or(0)]);
            }
            // WRITE: fuse_write_in.
            WRITE => {
                let data = &request[HEADER + WRITE_HEADER..];
                if self.storage.write_all_at(data, u64_at(HEADER + 8)).is_err() {
                    return Some(Err(libc::EIO));
                }
                reply.extend((data.len() as u64).to_ne_bytes());
            }
            // RELEASE, FSYNC, FLUSH.
            18 | 20 | 25 => {}
            // INIT: major, minor, read-ahead, flags, background, max_write, time granularity.
            26 => {
                let words = [7, 31, MAX_WRITE, 0, 0, MAX_WRITE, 1];
                reply.extend(words.iter().flat_map(|word: &u32| word.to_ne_bytes()));
                reply.extend([0; 36]);
            }
            _ => return Some(Err(libc::ENOSYS)),
        }
        Some(Ok(()))
    }
}

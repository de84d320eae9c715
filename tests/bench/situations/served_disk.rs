//! A disk with chosen faults: a loop device on a file that a child process serves by FUSE. The child reads words such as
//! `read=30 write=5 flush=250` from its standard input and follows them at once; it ends when that is closed.
//!
//! It must be a process of its own: the thread that closes the last file of a mount waits for the server.

use rustix::fs::{CWD, Mode, OFlags};
use std::fs::File;
use std::io::{BufRead, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Environment variable with the directory of the disk to serve.
pub const SERVE_ENV: &str = "IOTOP_PLUS_SERVE_DISK";
/// Name of the served file in that directory.
pub const SERVED: &str = "disk";
/// Name of the file with the data.
pub const DATA: &str = "data";
/// Threads, each with one request at a time; `slots` of them work.
const THREADS: usize = 32;
/// Bytes of fuse_in_header (include/uapi/linux/fuse.h), and of fuse_write_in.
const HEADER: usize = 40;
const WRITE_HEADER: usize = 40;
const MAX_WRITE: u32 = 1 << 20;
const READ: u32 = 15;
const WRITE: u32 = 16;
const FSYNC: u32 = 20;
const FALLOCATE: u32 = 43;

/// What the disk does; 0 means without.
#[derive(Default)]
struct Behaviour {
    /// Time of a request of each kind, us.
    read_us: AtomicU64,
    write_us: AtomicU64,
    flush_us: AtomicU64,
    discard_us: AtomicU64,
    /// Bytes per second of all requests together.
    bytes_per_s: AtomicU64,
    /// Requests served at the same time.
    slots: AtomicU64,
    /// Each n-th request of reads and writes takes this long instead, us.
    nth: AtomicU64,
    nth_us: AtomicU64,
    /// All requests wait for `stall_ms` in each `stall_every_ms`.
    stall_every_ms: AtomicU64,
    stall_ms: AtomicU64,
    /// Nothing is answered while this is 1.
    hang: AtomicU64,
    /// Reads and writes fail while this is 1.
    fail: AtomicU64,
}

impl Behaviour {
    /// Follows `read=30 stall=10000:1500`; times are in ms.
    fn set(&self, words: &str) {
        for (name, value) in words.split_whitespace().filter_map(|word| word.split_once('=')) {
            let (first, second) = value.split_once(':').unwrap_or((value, "0"));
            let number = |text: &str| text.parse::<f64>().unwrap_or_else(|err| panic!("{name}={value}: {err}"));
            let us = |text: &str| (number(text) * 1e3) as u64;
            match name {
                "read" => self.read_us.store(us(first), Relaxed),
                "write" => self.write_us.store(us(first), Relaxed),
                "flush" => self.flush_us.store(us(first), Relaxed),
                "discard" => self.discard_us.store(us(first), Relaxed),
                "mb_per_s" => self.bytes_per_s.store((number(first) * 1_048_576.0) as u64, Relaxed),
                "slots" => self.slots.store(number(first) as u64, Relaxed),
                "nth" => {
                    self.nth.store(number(first) as u64, Relaxed);
                    self.nth_us.store(us(second), Relaxed);
                }
                "stall" => {
                    self.stall_every_ms.store(number(first) as u64, Relaxed);
                    self.stall_ms.store(number(second) as u64, Relaxed);
                }
                "hang" => self.hang.store(number(first) as u64, Relaxed),
                "fail" => self.fail.store(number(first) as u64, Relaxed),
                _ => panic!("{name}: a disk knows no such word"),
            }
        }
    }
}

struct DiskServer {
    fuse: OwnedFd,
    data: File,
    size: u64,
    started: Instant,
    behaviour: Behaviour,
    /// Reads and writes so far.
    count: AtomicU64,
    busy: std::sync::Mutex<u64>,
    is_free: std::sync::Condvar,
    /// When the last transfer ends, ns since the start.
    transfer_ends_ns: AtomicU64,
}

/// Serves the disk in `dir` until standard input is closed. Prints `ready` when it is mounted.
pub fn serve(dir: &Path) {
    let data = File::options().read(true).write(true).open(dir.join(DATA)).expect("the data of the disk");
    let size = data.metadata().expect("the data of the disk").len();
    let served = dir.join(SERVED);
    std::fs::write(&served, "").expect("a file to mount on");
    let fuse = rustix::fs::openat(CWD, "/dev/fuse", OFlags::RDWR, Mode::empty()).expect("/dev/fuse");
    let options = format!("fd={},rootmode=100600,user_id=0,group_id=0", fuse.as_raw_fd());
    let status = Command::new("mount").args(["-i", "-t", "fuse", "-o", &options, "disk"]).arg(&served).status();
    assert!(status.is_ok_and(|status| status.success()), "the served file cannot be mounted");
    let server = DiskServer {
        fuse,
        data,
        size,
        started: Instant::now(),
        behaviour: Behaviour::default(),
        count: AtomicU64::new(0),
        busy: std::sync::Mutex::new(0),
        is_free: std::sync::Condvar::new(),
        transfer_ends_ns: AtomicU64::new(0),
    };
    server.behaviour.slots.store(1, Relaxed);
    println!("ready");
    std::io::stdout().flush().expect("standard output");
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| server.answer_requests());
        }
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            server.behaviour.set(&line);
        }
        // Closing /dev/fuse ends all requests with an error; the threads may sleep.
        std::process::exit(0);
    });
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

impl DiskServer {
    fn answer_requests(&self) {
        let mut request = vec![0; (2 << 20) + 4096];
        loop {
            let n = match rustix::io::read(&self.fuse, &mut request[..]) {
                Ok(n) => n,
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN | rustix::io::Errno::NOENT) => continue,
                Err(_) => return,
            };
            let (request, mut reply) = (&request[..n], vec![0; 16]);
            self.wait(request);
            let error = match self.answer(request, &mut reply) {
                Some(Ok(())) => 0,
                Some(Err(errno)) => {
                    reply.truncate(16);
                    -errno
                }
                None => continue,
            };
            let len = reply.len() as u32;
            reply[..4].copy_from_slice(&len.to_ne_bytes());
            reply[4..8].copy_from_slice(&error.to_ne_bytes());
            reply[8..16].copy_from_slice(&request[8..16]);
            let _ = rustix::io::write(&self.fuse, &reply);
        }
    }

    /// Takes as long as the disk would: waits for a slot, for the end of a stall, and for the request's own time.
    fn wait(&self, request: &[u8]) {
        let opcode = u32_at(request, 4);
        if !matches!(opcode, READ | WRITE | FSYNC | FALLOCATE) {
            return;
        }
        let mut busy = self.busy.lock().expect("no panic");
        while *busy >= self.behaviour.slots.load(Relaxed) {
            busy = self.is_free.wait(busy).expect("no panic");
        }
        *busy += 1;
        drop(busy);
        while self.behaviour.hang.load(Relaxed) == 1 {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(self.stall_left());
        let us = Duration::from_micros(self.own_us(opcode));
        let bytes = if matches!(opcode, READ | WRITE) { u64::from(u32_at(request, HEADER + 16)) } else { 0 };
        std::thread::sleep(us.max(self.transfer_time(bytes)));
        *self.busy.lock().expect("no panic") -= 1;
        self.is_free.notify_one();
    }

    fn stall_left(&self) -> Duration {
        let (every, stall) = (self.behaviour.stall_every_ms.load(Relaxed), self.behaviour.stall_ms.load(Relaxed));
        let phase = (self.started.elapsed().as_millis() as u64).checked_rem(every).unwrap_or(u64::MAX);
        Duration::from_millis(stall.saturating_sub(phase))
    }

    fn own_us(&self, opcode: u32) -> u64 {
        let b = &self.behaviour;
        let us = match opcode {
            READ => &b.read_us,
            WRITE => &b.write_us,
            FSYNC => return b.flush_us.load(Relaxed),
            _ => return b.discard_us.load(Relaxed),
        };
        let number = self.count.fetch_add(1, Relaxed);
        let is_nth = number.checked_rem(b.nth.load(Relaxed)) == Some(0);
        if is_nth { b.nth_us.load(Relaxed) } else { us.load(Relaxed) }
    }

    /// Time until the bytes have passed, after those of earlier requests.
    fn transfer_time(&self, bytes: u64) -> Duration {
        let rate = self.behaviour.bytes_per_s.load(Relaxed);
        if rate == 0 || bytes == 0 {
            return Duration::ZERO;
        }
        let now = self.started.elapsed().as_nanos() as u64;
        let own = bytes * 1_000_000_000 / rate;
        let end = self.transfer_ends_ns.fetch_update(Relaxed, Relaxed, |end| Some(end.max(now) + own));
        Duration::from_nanos(end.unwrap_or(0).max(now) + own - now)
    }

    /// Appends the body of the reply. `None`: no reply is expected.
    fn answer(&self, request: &[u8], reply: &mut Vec<u8>) -> Option<Result<(), i32>> {
        let opcode = u32_at(request, 4);
        if matches!(opcode, READ | WRITE) && self.behaviour.fail.load(Relaxed) == 1 {
            return Some(Err(libc::EIO));
        }
        match opcode {
            // FORGET, INTERRUPT, BATCH_FORGET.
            2 | 36 | 42 => return None,
            // GETATTR and SETATTR: fuse_attr_out.
            3 | 4 => {
                let words = [3600, 0, 1, self.size, self.size / 512, 0, 0, 0, 0];
                reply.extend(words.iter().flat_map(|word: &u64| word.to_ne_bytes()));
                let (mode, links) = (0o100_600_u32, 1);
                reply.extend([0, mode, links, 0, 0, 0, 4096, 0].iter().flat_map(|half: &u32| half.to_ne_bytes()));
            }
            // OPEN: fuse_open_out with FOPEN_PARALLEL_DIRECT_WRITES.
            14 => reply.extend([0_u32, 0, 1 << 6, 0].iter().flat_map(|half| half.to_ne_bytes())),
            // STATFS: fuse_statfs_out; the block size is the unit of discards.
            17 => {
                reply.extend([0; 40]);
                reply.extend([4096_u32, 255, 4096, 0].iter().flat_map(|half| half.to_ne_bytes()));
                reply.extend([0; 24]);
            }
            READ => {
                let mut data = vec![0; u32_at(request, HEADER + 16) as usize];
                let n = self.data.read_at(&mut data, u64_at(request, HEADER + 8)).unwrap_or(0);
                reply.extend(&data[..n]);
            }
            WRITE => {
                let data = &request[HEADER + WRITE_HEADER..];
                if self.data.write_all_at(data, u64_at(request, HEADER + 8)).is_err() {
                    return Some(Err(libc::EIO));
                }
                reply.extend((data.len() as u64).to_ne_bytes());
            }
            // RELEASE, FSYNC, FLUSH, FALLOCATE: data stays where it is.
            18 | FSYNC | 25 | FALLOCATE => {}
            // INIT: major, minor, read-ahead, flags (ASYNC_READ, BIG_WRITES, ASYNC_DIO, MAX_PAGES), background and
            // congestion, max_write, time granularity, max_pages.
            26 => {
                let flags = 1 | 1 << 5 | 1 << 15 | 1 << 22;
                let words = [7, 31, MAX_WRITE, flags, 64 | 48 << 16, MAX_WRITE, 1, MAX_WRITE / 4096];
                reply.extend(words.iter().flat_map(|word: &u32| word.to_ne_bytes()));
                reply.extend([0; 32]);
            }
            _ => return Some(Err(libc::ENOSYS)),
        }
        Some(Ok(()))
    }
}

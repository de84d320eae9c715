//! Ways to read and write a file, with the bytes that reach the device.

use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};

const CHUNK: usize = 64 << 10;
const CHUNKS: usize = 64;
/// Bytes of each file.
const LEN: u64 = (CHUNK * CHUNKS) as u64;

/// Bytes read from and written to the device; the error is what the load needs.
type Done = Result<[u64; 2], String>;

/// A way to read or write a file.
pub struct Load {
    pub name: &'static str,
    /// Creates the file where it must exist; synced afterwards.
    pub prepare: fn(&Path),
    /// Bytes that [`Load::prepare`] writes to it.
    pub prepared_bytes: fn(&Path) -> u64,
    pub run: fn(&Path) -> Done,
}

const fn writes(name: &'static str, run: fn(&Path) -> Done) -> Load {
    Load { name, prepare: |_| {}, prepared_bytes: |_| 0, run }
}

const fn reads(name: &'static str, run: fn(&Path) -> Done) -> Load {
    Load { name, prepare: fill, prepared_bytes: |_| LEN, run }
}

pub const LOADS: &[Load] = &[
    writes("buffered-write", |path| {
        fill(path);
        Ok([0, LEN])
    }),
    reads("buffered-read", |path| {
        drop_cache(path);
        std::fs::read(path).unwrap();
        Ok([LEN, 0])
    }),
    writes("direct-write", |path| {
        let (file, buf) = (open(path, OFlags::WRONLY | OFlags::CREATE | OFlags::DIRECT), Buffer::new());
        (0..CHUNKS).for_each(|i| {
            rustix::io::pwrite(&file, buf.bytes(), (i * CHUNK) as u64).unwrap();
        });
        Ok([0, LEN])
    }),
    reads("direct-read", |path| {
        drop_cache(path);
        let (file, mut buf) = (open(path, OFlags::RDONLY | OFlags::DIRECT), Buffer::new());
        (0..CHUNKS).for_each(|i| {
            rustix::io::pread(&file, buf.bytes_mut(), (i * CHUNK) as u64).unwrap();
        });
        Ok([LEN, 0])
    }),
    reads("mmap-write", |path| {
        drop_cache(path);
        std::fs::read(path).unwrap();
        map(path, |bytes| bytes.iter_mut().step_by(4096).for_each(|b| *b = b.wrapping_add(1)));
        Ok([LEN, LEN])
    }),
    reads("mmap-read", |path| {
        drop_cache(path);
        map(path, |bytes| assert!(bytes.iter().step_by(4096).all(|b| *b > 0)));
        Ok([LEN, 0])
    }),
    writes("o-sync-write", |path| {
        let (file, buf) = (open(path, OFlags::WRONLY | OFlags::CREATE | OFlags::DSYNC), Buffer::new());
        (0..CHUNKS).for_each(|i| {
            rustix::io::pwrite(&file, buf.bytes(), (i * CHUNK) as u64).unwrap();
        });
        Ok([0, LEN])
    }),
    writes("io-uring-write", io_uring_write),
    writes("aio-write", aio_write),
    writes("ended-writer", |path| {
        let mut command = Command::new("dd");
        command.arg("if=/dev/zero").arg(format!("of={}", path.display())).args(["bs=64k", "count=64"]);
        let status = command.stdin(Stdio::null()).stderr(Stdio::null()).status();
        assert!(status.map_err(|err| format!("dd: {err}"))?.success());
        Ok([0, LEN])
    }),
];

fn open(path: &Path, flags: OFlags) -> OwnedFd {
    rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::from_raw_mode(0o600)).unwrap()
}

/// Writes the file through the page cache.
fn fill(path: &Path) {
    let mut file = File::create(path).unwrap();
    (0..CHUNKS).for_each(|i| file.write_all(&vec![i as u8 | 1; CHUNK]).unwrap());
}

/// Drops the file's pages, which must be clean.
fn drop_cache(path: &Path) {
    let file = File::open(path).unwrap();
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
}

/// Memory aligned for direct I/O.
struct Buffer(Vec<u8>, usize);

impl Buffer {
    fn new() -> Self {
        let memory = vec![7; CHUNK + 4096];
        let start = memory.as_ptr().align_offset(4096);
        Self(memory, start)
    }

    fn bytes(&self) -> &[u8] {
        &self.0[self.1..self.1 + CHUNK]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0[self.1..self.1 + CHUNK]
    }
}

/// Maps the file, shared, and syncs it afterwards.
#[allow(unsafe_code)]
fn map(path: &Path, with: impl FnOnce(&mut [u8])) {
    let file = open(path, OFlags::RDWR);
    let len = LEN as usize;
    // SAFETY: a new mapping of an open file; nobody else changes the file, and it is unmapped below.
    unsafe {
        let at = libc::mmap(
            std::ptr::null_mut(),
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        );
        assert_ne!(at, libc::MAP_FAILED);
        with(std::slice::from_raw_parts_mut(at.cast(), len));
        assert_eq!(libc::msync(at, len, libc::MS_SYNC), 0);
        assert_eq!(libc::munmap(at, len), 0);
    }
}

#[allow(unsafe_code)]
fn io_uring_write(path: &Path) -> Done {
    let mut ring = io_uring::IoUring::new(8).map_err(|err| format!("io_uring: {err}"))?;
    let (file, buf) = (open(path, OFlags::WRONLY | OFlags::CREATE | OFlags::DIRECT), Buffer::new());
    for i in 0..CHUNKS {
        let fd = io_uring::types::Fd(file.as_raw_fd());
        let write = io_uring::opcode::Write::new(fd, buf.bytes().as_ptr(), CHUNK as u32);
        let write = write.offset((i * CHUNK) as u64).build();
        // SAFETY: the buffer and the file outlive the request, which is awaited.
        unsafe { ring.submission().push(&write).unwrap() };
        ring.submit_and_wait(1).unwrap();
        assert_eq!(ring.completion().next().unwrap().result(), CHUNK as i32);
    }
    Ok([0, LEN])
}

/// `struct iocb` (include/uapi/linux/aio_abi.h).
#[repr(C)]
#[derive(Default)]
struct Iocb {
    data: u64,
    key: u32,
    rw_flags: u32,
    opcode: u16,
    priority: i16,
    fd: u32,
    buf: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_fd: u32,
}

#[allow(unsafe_code)]
fn aio_write(path: &Path) -> Done {
    const PWRITE: u16 = 1;
    let (file, buf) = (open(path, OFlags::WRONLY | OFlags::CREATE | OFlags::DIRECT), Buffer::new());
    let mut context: libc::c_ulong = 0;
    // SAFETY: io_setup(2), io_submit(2), io_getevents(2) and io_destroy(2) with pointers to values that outlive the
    // calls; each request is awaited before the next one.
    unsafe {
        if libc::syscall(libc::SYS_io_setup, 8, &raw mut context) != 0 {
            return Err(format!("AIO: {}", std::io::Error::last_os_error()));
        }
        for i in 0..CHUNKS {
            let mut request = Iocb {
                opcode: PWRITE,
                fd: file.as_raw_fd() as u32,
                buf: buf.bytes().as_ptr() as u64,
                bytes: CHUNK as u64,
                offset: (i * CHUNK) as i64,
                ..Iocb::default()
            };
            let mut list = [&raw mut request];
            assert_eq!(libc::syscall(libc::SYS_io_submit, context, 1, list.as_mut_ptr()), 1);
            let mut event = [0u64; 4];
            let no_timeout = std::ptr::null::<libc::timespec>();
            // What is left of an earlier io_uring of this thread interrupts the wait now and then.
            while libc::syscall(libc::SYS_io_getevents, context, 1, 1, event.as_mut_ptr(), no_timeout) != 1 {
                assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EINTR));
            }
            assert_eq!(event[2], CHUNK as u64);
        }
        libc::syscall(libc::SYS_io_destroy, context);
    }
    Ok([0, LEN])
}

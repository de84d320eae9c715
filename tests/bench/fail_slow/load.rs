//! Work for a device that changes: direct reads and writes at a rate, or as many as there can be.

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Numbers that look random (splitmix64).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[(self.next() % values.len() as u64) as usize]
    }

    /// So many different numbers below `end`.
    pub fn distinct(&mut self, count: usize, end: usize) -> Vec<usize> {
        let mut out = Vec::new();
        while out.len() < count {
            let number = (self.next() % end as u64) as usize;
            if !out.contains(&number) {
                out.push(number);
            }
        }
        out
    }
}

/// Threads of a device: its depth at most.
const MAX_DEPTH: u64 = 3;
const MAX_REQUEST: usize = 64 << 10;
const SPAN: u64 = 48 << 20;

/// What a device is asked for now.
#[derive(Default)]
struct Wish {
    /// Between requests of a thread, us; 0: none.
    pause_us: AtomicU64,
    request_bytes: AtomicU64,
    threads: AtomicU64,
    is_over: AtomicBool,
}

/// The threads that load a device. Dropping it ends them.
pub struct DeviceLoad {
    wish: Arc<Wish>,
    threads: Vec<JoinHandle<()>>,
}

impl DeviceLoad {
    pub fn start(device: &str, seed: u64) -> Self {
        let wish = Arc::new(Wish::default());
        let thread = |at: u64| {
            let (device, wish, random) = (device.to_owned(), wish.clone(), Random::new(seed ^ at));
            std::thread::spawn(move || work(&device, at, &wish, random))
        };
        Self { threads: (0..MAX_DEPTH).map(thread).collect(), wish }
    }

    /// Chooses another load: 10 to 100 requests per second, or, for one in ten, as many as one thread can have.
    pub fn change(&self, random: &mut Random) {
        let threads = random.pick(&[1, 1, 2, MAX_DEPTH]);
        let per_second: u64 = random.pick(&[10, 20, 40, 70, 100]);
        let is_closed = random.next().is_multiple_of(10);
        self.wish.threads.store(if is_closed { 1 } else { threads }, Relaxed);
        self.wish.pause_us.store(if is_closed { 0 } else { 1_000_000 * threads / per_second }, Relaxed);
        self.wish.request_bytes.store(random.pick(&[4 << 10, 16 << 10, 64 << 10]), Relaxed);
    }
}

impl Drop for DeviceLoad {
    fn drop(&mut self) {
        self.wish.is_over.store(true, Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

#[allow(unsafe_code)]
fn work(device: &str, number: u64, wish: &Wish, mut random: Random) {
    let flags = OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC;
    let file = openat(CWD, device, flags, Mode::empty()).expect("the device can be opened");
    // SAFETY: new memory, aligned to a page as direct I/O wants it, that is never unmapped.
    let buffer = unsafe {
        let memory =
            mmap_anonymous(std::ptr::null_mut(), MAX_REQUEST, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        std::slice::from_raw_parts_mut(memory.expect("64 KiB of memory").cast::<u8>(), MAX_REQUEST)
    };
    let mut due = Instant::now();
    while !wish.is_over.load(Relaxed) {
        let size = wish.request_bytes.load(Relaxed).clamp(4 << 10, MAX_REQUEST as u64);
        if number >= wish.threads.load(Relaxed) {
            std::thread::sleep(Duration::from_millis(100));
            due = Instant::now();
            continue;
        }
        let (at, part) = (random.next() % (SPAN / size) * size, &mut buffer[..size as usize]);
        let done = match random.next() % 10 {
            0..7 => rustix::io::pread(&file, part, at),
            _ => rustix::io::pwrite(&file, part, at),
        };
        done.expect("the device answers");
        due += Duration::from_micros(wish.pause_us.load(Relaxed));
        // A device that cannot do as much is not asked for more than one request of each thread at a time.
        due = due.max(Instant::now());
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}

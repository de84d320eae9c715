//! A load of a situation: a child process with a name of its own that reads or writes as its words say, such as
//! `op=randread path=/mnt/table direct=1 bs=4096 threads=4 rate=20`. It runs until it is killed.

use rustix::fs::{Advice, Mode, OFlags, fadvise, fdatasync};
use std::collections::HashMap;
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Environment variables with the words of the load, and with its name.
pub const LOAD_ENV: &str = "IOTOP_PLUS_LOAD";
pub const NAME_ENV: &str = "IOTOP_PLUS_LOAD_NAME";
const ALIGNMENT: usize = 4096;

/// The words of a load, with what they are when they are left out.
#[derive(Clone)]
struct Words(HashMap<String, String>);

impl Words {
    fn parse(text: &str) -> Self {
        let pairs = text.split_whitespace().filter_map(|word| word.split_once('='));
        Self(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    fn number(&self, name: &str, default: u64) -> u64 {
        let value = self.0.get(name);
        value.map_or(default, |text| text.parse().unwrap_or_else(|err| panic!("{name}={text}: {err}")))
    }

    fn is_set(&self, name: &str) -> bool {
        self.number(name, 0) > 0
    }

    fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }
}

/// Does what the environment says.
pub fn run(words: &str) {
    let name = std::env::var(NAME_ENV).expect("the name of the load");
    rustix::thread::set_name(&CString::new(name).expect("a name without NUL")).expect("a name for this process");
    let words = Words::parse(words);
    if !words.text("cgroup").is_empty() {
        std::fs::write(Path::new(words.text("cgroup")).join("cgroup.procs"), "0")
            .expect("the control group of the load");
    }
    if let Some(mb) = words.0.get("prepare") {
        let mb: usize = mb.parse().expect("prepare=MB");
        std::fs::write(words.text("path"), vec![5; mb << 20]).expect("the file of the load");
    }
    if words.is_set("idle") {
        set_idle_class();
    }
    match words.text("op") {
        "script" => run_script(&words),
        "create" => create_files(&words),
        "compile" => compile(&words),
        "mmap" => read_mapped(&words),
        "mapwrite" => write_mapped(&words),
        "program" => run_programs(&words),
        "memory" => use_memory(&words),
        _ if words.number("threads", 1) == 1 => Stream::new(&words, 0).run(),
        _ => std::thread::scope(|scope| {
            for thread in 0..words.number("threads", 1) {
                let words = &words;
                scope.spawn(move || Stream::new(words, thread).run());
            }
        }),
    }
    while !words.is_set("exit") {
        std::thread::sleep(Duration::from_secs(1));
    }
}

#[allow(unsafe_code)]
fn set_idle_class() {
    const PROCESS: libc::c_int = 1;
    const IDLE: libc::c_int = 3 << 13;
    // SAFETY: the call takes three numbers.
    unsafe { libc::syscall(libc::SYS_ioprio_set, PROCESS, 0, IDLE) };
}

/// Calls that follow each other, at a rate.
struct Pace {
    started: Instant,
    calls: u64,
    /// Calls per second; 0: as fast as they go.
    rate: u64,
    /// Pauses of `off_ms` after each `on_ms`.
    on_ms: u64,
    off_ms: u64,
}

impl Pace {
    fn new(words: &Words) -> Self {
        let (on_ms, off_ms) = (words.number("on", 0), words.number("off", 0));
        Self { started: Instant::now(), calls: 0, rate: words.number("rate", 0), on_ms, off_ms }
    }

    fn wait(&mut self) {
        self.calls += 1;
        if let Some(us) = (self.calls * 1_000_000).checked_div(self.rate) {
            let due = Duration::from_micros(us);
            std::thread::sleep(due.saturating_sub(self.started.elapsed()));
        }
        let phase = (self.started.elapsed().as_millis() as u64).checked_rem(self.on_ms + self.off_ms).unwrap_or(0);
        if self.on_ms > 0 && phase >= self.on_ms {
            std::thread::sleep(Duration::from_millis(self.on_ms + self.off_ms - phase));
        }
    }
}

/// Reads or writes of one thread on one file.
struct Stream<'a> {
    words: &'a Words,
    file: OwnedFd,
    is_write: bool,
    is_random: bool,
    bs: usize,
    /// Bytes of the file that are used, from the start.
    size: u64,
    random: u64,
    offset: u64,
}

impl<'a> Stream<'a> {
    fn new(words: &'a Words, thread: u64) -> Self {
        let op = words.text("op");
        let (is_write, is_random) = (op.ends_with("write"), op.starts_with("rand"));
        assert!(is_write || op.ends_with("read"), "op={op}: no such load");
        let mut flags = OFlags::CLOEXEC | if is_write { OFlags::WRONLY | OFlags::CREATE } else { OFlags::RDONLY };
        flags |= if words.is_set("direct") { OFlags::DIRECT } else { OFlags::empty() };
        flags |= if words.is_set("dsync") { OFlags::DSYNC } else { OFlags::empty() };
        let path = Path::new(words.text("path"));
        let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR).expect("the file of the load");
        let bs = words.number("bs", 4096) as usize;
        let size = words.number("mb", 0) << 20;
        let size = if size > 0 { size } else { rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0)).expect("a size") };
        if is_random && !is_write {
            let _ = fadvise(&file, 0, None, Advice::Random);
        }
        let random = 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(thread + 1);
        Self { words, file, is_write, is_random, bs, size: size.max(bs as u64), random, offset: 0 }
    }

    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.random >> 33
    }

    fn next_offset(&mut self) -> u64 {
        let blocks = (self.size / self.bs as u64).max(1);
        if self.is_random {
            return self.next_random() % blocks * self.bs as u64;
        }
        let offset = self.offset;
        self.offset = (offset + self.bs as u64) % (blocks * self.bs as u64);
        offset
    }

    fn run(mut self) {
        let mut memory = vec![7_u8; self.bs + ALIGNMENT];
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        let (count, fsync) = (self.words.number("count", u64::MAX), self.words.number("fsync", 0));
        let mut pace = Pace::new(self.words);
        let secs = Duration::from_secs(self.words.number("secs", u64::MAX >> 1));
        for number in 1..=count {
            if pace.started.elapsed() >= secs {
                return;
            }
            if self.words.is_set("random") {
                memory.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&self.next_random().to_ne_bytes()));
            }
            let offset = self.next_offset();
            let buffer = &mut memory[start..start + self.bs];
            let result = match self.is_write {
                true => rustix::io::pwrite(&self.file, buffer, offset),
                false => rustix::io::pread(&self.file, buffer, offset),
            };
            if result.is_err() {
                std::thread::sleep(Duration::from_millis(100));
            }
            if number.checked_rem(fsync) == Some(0) {
                let _ = fdatasync(&self.file);
            }
            if !self.is_write && !self.words.is_set("direct") && !self.words.is_set("cached") {
                // Otherwise the next read of it would come from memory.
                let _ = fadvise(&self.file, offset, std::num::NonZeroU64::new(self.bs as u64), Advice::DontNeed);
            }
            pace.wait();
        }
    }
}

/// Reads single pages of a mapped file, each from the disk.
#[allow(unsafe_code)]
fn read_mapped(words: &Words) {
    let path = Path::new(words.text("path"));
    let file = rustix::fs::open(path, OFlags::RDONLY, Mode::empty()).expect("the file of the load");
    let size = rustix::fs::fstat(&file).expect("its size").st_size as usize;
    use rustix::mm::{Advice as MapAdvice, MapFlags, ProtFlags};
    // SAFETY: a new mapping; the file keeps its size.
    let memory = unsafe {
        let map = rustix::mm::mmap(std::ptr::null_mut(), size, ProtFlags::READ, MapFlags::SHARED, &file, 0);
        let map = map.expect("a mapping");
        if !words.is_set("around") {
            rustix::mm::madvise(map, size, MapAdvice::Random).expect("advice");
        }
        map.cast::<u8>()
    };
    let (pages, mut random, mut sum, mut pace) = (size / ALIGNMENT, 12345_u64, 0_u64, Pace::new(words));
    loop {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let page = (random >> 33) as usize % pages * ALIGNMENT;
        // SAFETY: within the mapping, which is dropped page by page and read again from the file.
        unsafe {
            sum = sum.wrapping_add(u64::from(memory.add(page).read_volatile()));
            let _ = rustix::mm::madvise(memory.add(page).cast(), ALIGNMENT, MapAdvice::LinuxDontNeed);
        }
        let _ = fadvise(&file, page as u64, std::num::NonZeroU64::new(ALIGNMENT as u64), Advice::DontNeed);
        pace.wait();
        std::hint::black_box(sum);
    }
}

/// Changes pages of a mapped file at random, and syncs it after `sync` of them.
#[allow(unsafe_code)]
fn write_mapped(words: &Words) {
    use rustix::mm::{MapFlags, MsyncFlags, ProtFlags};
    let file = rustix::fs::open(Path::new(words.text("path")), OFlags::RDWR, Mode::empty());
    let file = file.expect("the file of the load");
    let size = rustix::fs::fstat(&file).expect("its size").st_size as usize;
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping; the file keeps its size.
    let map = unsafe {
        rustix::mm::mmap(std::ptr::null_mut(), size, access, MapFlags::SHARED | MapFlags::POPULATE, &file, 0)
    };
    let (map, mut random, mut pace) = (map.expect("a mapping"), 12345_u64, Pace::new(words));
    for number in 1_u64.. {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let page = (random >> 33) as usize % (size / ALIGNMENT) * ALIGNMENT;
        // SAFETY: within the mapping, which nothing else uses.
        unsafe {
            map.cast::<u8>().add(page).write_volatile(number as u8);
            if number.is_multiple_of(words.number("sync", 100)) {
                let _ = rustix::mm::msync(map, size, MsyncFlags::SYNC);
            }
        }
        pace.wait();
    }
}

/// Keeps changing this much memory, page by page at random.
fn use_memory(words: &Words) {
    let mut memory = vec![1_u8; (words.number("mb", 64) << 20) as usize];
    let (pages, mut random, mut pace) = (memory.len() / ALIGNMENT, 99_u64, Pace::new(words));
    loop {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let page = (random >> 33) as usize % pages * ALIGNMENT;
        memory[page] = memory[page].wrapping_add(1);
        pace.wait();
    }
}

/// One short-lived child after the other, as a nightly script starts them.
fn run_script(words: &Words) {
    let child = words.text("child").replace(',', " ").replace(':', "=");
    let mut pace = Pace::new(words);
    loop {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.env(LOAD_ENV, format!("{child} exit=1")).env(NAME_ENV, words.text("name"));
        let _ = command.status();
        pace.wait();
    }
}

/// Creates, fills and removes small files, as tar and rm do.
fn create_files(words: &Words) {
    let dir = PathBuf::from(words.text("path"));
    let mut pace = Pace::new(words);
    for number in 0_u64.. {
        let path = dir.join(format!("f{}", number % 5000));
        let _ = std::fs::remove_file(&path);
        let _ = std::fs::write(&path, vec![1; words.number("bs", 4096) as usize]);
        if words.is_set("fsync")
            && let Ok(file) = std::fs::File::open(&path)
        {
            let _ = file.sync_all();
        }
        pace.wait();
    }
}

/// Works on the processor, and reads and writes small files now and then.
fn compile(words: &Words) {
    let dir = PathBuf::from(words.text("path"));
    for number in 0_u64.. {
        let end = Instant::now() + Duration::from_millis(150);
        while Instant::now() < end {
            std::hint::black_box((0..10_000_u64).sum::<u64>());
        }
        let path = dir.join(format!("unit{}.o", number % 40));
        let _ = std::fs::write(&path, vec![number as u8; 300 << 10]);
        let _ = std::fs::read(&path);
    }
}

/// Runs another program again and again: `run=fstrim,/mnt`.
fn run_programs(words: &Words) {
    let mut pace = Pace::new(words);
    loop {
        let parts: Vec<&str> = words.text("run").split(',').collect();
        let _ = Command::new(parts[0]).args(&parts[1..]).output();
        pace.wait();
    }
}

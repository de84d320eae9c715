//! I/O of files at the device (`assets/trace/files.bpf.c`).
//!
//! It costs some time for every request, so this probe is loaded only on request ([`super::Tracer::request_files`]).

pub(super) mod end_functions;
pub(super) mod tables;

use super::bpf_sys::clock_ns;
use super::chain::Chained;
use super::io_accounting::OwnerPrograms;
use super::kernel_info::{KernelInfo, check_pid_namespace};
use super::loader;
use super::packed_object::{PackedObject, packed_object};
use super::probe::Probe;
use super::reading_cache::{ChangeMaps, ReadingCache};
use super::request_control::RequestedProbe;
use super::unavailable::ProbeUnavailable;
use crate::model::file_io::{FileIoRaw, NOT_REQUESTED};
use aya::Ebpf;
use rustix::time::ClockId;
use std::io;
use std::sync::Arc;
use tables::{FileTables, IDLE_READS};

/// The compiled programs; `assets/trace/build.sh` rebuilds them.
static BPF_OBJECT: PackedObject = packed_object!("files");

pub struct FileIoProbe {
    _chained: Option<Chained>,
    _programs: Ebpf,
    tables: FileTables,
    changes: ChangeMaps,
    cache: ReadingCache<Arc<FileIoRaw>>,
    began_ns: u64,
    unavailable: Vec<String>,
}

impl Probe for FileIoProbe {
    type Output = Arc<FileIoRaw>;
    const READING: &'static str = "reading I/O of files";

    fn load(kernel: &KernelInfo) -> Result<Self, ProbeUnavailable> {
        check_pid_namespace(&kernel.root)?;
        let owners = OwnerPrograms::new(kernel);
        let ends = end_functions::read(&kernel.root);
        let addresses = ends.as_deref().unwrap_or_default();
        let mut programs = loader::open_object_with(kernel, BPF_OBJECT, &owners.settings, addresses)?;
        let (mut unavailable, chained) = owners.attach(&mut programs, kernel)?;
        let tables = FileTables::open(&programs, &kernel.root)?;
        let changes = ChangeMaps::open(&programs, kernel.cpus)?;
        unavailable.extend(ends.err());
        let began_ns = clock_ns(ClockId::Boottime);
        let cache = ReadingCache::default();
        Ok(Self { _chained: chained, _programs: programs, tables, changes, cache, began_ns, unavailable })
    }

    fn read(&mut self) -> io::Result<Arc<FileIoRaw>> {
        let read_ns = clock_ns(ClockId::Boottime);
        // The maps are read at intervals even if nothing changed, to remove idle accounts.
        let is_dirty = self.changes.take_dirty_flag()?;
        if let Some(same) = self.cache.get(is_dirty, IDLE_READS) {
            return Ok(Arc::new(FileIoRaw { read_ns, ..(*same).clone() }));
        }
        let read = Arc::new(FileIoRaw {
            tracing_started_ns: self.began_ns,
            read_ns,
            dropped: self.changes.dropped()?,
            unavailable: self.unavailable.clone(),
            ..self.tables.read(self.cache.reads_since_store())?
        });
        self.cache.store(&read);
        Ok(read)
    }
}

impl RequestedProbe for FileIoProbe {
    type Request = ();
    const NOT_REQUESTED: &'static str = NOT_REQUESTED;
    const LOADING: &'static str = "tracing of files is being loaded";
    const THREAD: &'static str = "tracing-files";

    fn set_request(&mut self, (): ()) -> io::Result<()> {
        Ok(())
    }
}

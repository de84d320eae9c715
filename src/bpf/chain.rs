//! Programs of one object that run after those of another one, instead of as further programs at the same tracepoints, which
//! the kernel calls in a loop by pointers (`after_start` and `after_complete` in `assets/trace/requests.bpf.c`).

use super::bpf_sys::replace_map;
use super::unavailable::ProbeUnavailable;
use aya::maps::{Map, MapData, MapError, ProgramArray};
use aya::programs::{BtfTracePoint, ProgramError};
use aya::{Btf, Ebpf, EbpfError};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The programs for requests of a tracer, or why they count no I/O of processes.
pub(super) type SharedRequests = Arc<Mutex<Result<Weak<Mutex<Ebpf>>, ProbeUnavailable>>>;

/// Returns a place for the programs, without any yet.
pub(super) fn no_requests() -> SharedRequests {
    Arc::new(Mutex::new(Err(ProbeUnavailable::Absent("tracing of requests is not loaded".into()))))
}

/// Returns the programs for requests.
/// Errors: why they count no I/O of processes.
pub(super) fn requests(shared: &SharedRequests) -> Result<Arc<Mutex<Ebpf>>, ProbeUnavailable> {
    let found = shared.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
    found.upgrade().ok_or_else(|| ProbeUnavailable::Absent("tracing of requests was unloaded".into()))
}

/// Programs that are called until this is dropped.
pub(super) struct Chained {
    requests: Weak<Mutex<Ebpf>>,
    places: Vec<&'static str>,
}

impl Chained {
    /// Loads programs and has them called: each with its tracepoint and its place. The `shared` maps, which both objects have, are
    /// those of the first one from then on: open them afterwards.
    /// Errors: one of them could not be; then none is, and all are unloaded.
    pub(super) fn new(
        requests: &Arc<Mutex<Ebpf>>,
        programs: &mut Ebpf,
        btf: &Btf,
        which: &[(&str, &str, &'static str)],
        shared: &[&str],
    ) -> Result<Self, EbpfError> {
        let mut chained = Self { requests: Arc::downgrade(requests), places: Vec::new() };
        let mut first = requests.lock().unwrap_or_else(PoisonError::into_inner);
        for name in shared {
            share_map(&first, programs, name)?;
        }
        let failed = which.iter().find_map(|(name, point, place)| {
            let called = call(&mut first, programs, btf, (name, point, place));
            chained.places.push(place);
            called.err()
        });
        drop(first);
        let Some(err) = failed else { return Ok(chained) };
        drop(chained);
        for (name, ..) in which {
            if let Some(Ok(program)) = programs.program_mut(name).map(<&mut BtfTracePoint>::try_from) {
                let _ = program.unload();
            }
        }
        Err(err)
    }
}

/// Has the programs of the second object, which are not loaded yet, use a map of the first one. They refer to it by the number of
/// its descriptor.
fn share_map(first: &Ebpf, second: &Ebpf, name: &str) -> Result<(), MapError> {
    let (own, shared) = (array_map(second, name)?, array_map(first, name)?);
    Ok(replace_map(own.fd().as_fd(), shared.fd().as_fd())?)
}

fn array_map<'a>(programs: &'a Ebpf, name: &str) -> Result<&'a MapData, MapError> {
    match programs.map(name) {
        Some(Map::Array(map) | Map::PerCpuArray(map)) => Ok(map),
        _ => Err(MapError::InvalidMapType { map_type: 0 }),
    }
}

fn call(
    first: &mut Ebpf,
    programs: &mut Ebpf,
    btf: &Btf,
    (name, point, place): (&str, &str, &str),
) -> Result<(), EbpfError> {
    let program = programs.program_mut(name).ok_or(ProgramError::UnexpectedProgramType)?;
    let program: &mut BtfTracePoint = program.try_into()?;
    program.load(point, btf)?;
    let map = first.map_mut(place).ok_or(MapError::InvalidMapType { map_type: 0 })?;
    ProgramArray::try_from(map)?.set(0, program.fd()?, 0)?;
    Ok(())
}

impl Drop for Chained {
    fn drop(&mut self) {
        let Some(requests) = self.requests.upgrade() else { return };
        let mut requests = requests.lock().unwrap_or_else(PoisonError::into_inner);
        for place in &self.places {
            if let Some(Ok(mut map)) = requests.map_mut(place).map(ProgramArray::try_from) {
                let _ = map.clear_index(&0);
            }
        }
    }
}

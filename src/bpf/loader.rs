//! Loads BPF objects, attaches their programs, and turns failures into one line.

use super::bpf_sys::BpfMap;
use super::kernel_info::KernelInfo;
use super::packed_object::PackedObject;
use super::unavailable::{ProbeUnavailable, THE_MAPS, load_failure};
use aya::maps::Map;
use aya::programs::{BtfTracePoint, ProgramError, TracePoint};
use aya::{Btf, Ebpf, EbpfLoader};
use std::os::fd::AsFd;

/// Creates the maps of an object and sets its constants (`const volatile` of one byte). Its programs are loaded by
/// [`attach_all`] and [`attach_tracefs`].
pub(super) fn open_object(
    kernel: &KernelInfo,
    object: PackedObject,
    settings: &[(&str, bool)],
) -> Result<Ebpf, ProbeUnavailable> {
    open_object_with(kernel, object, settings, &[])
}

/// Like [`open_object`]; sets addresses (`const volatile` of eight bytes) as well.
pub(super) fn open_object_with(
    kernel: &KernelInfo,
    object: PackedObject,
    settings: &[(&str, bool)],
    addresses: &[(&str, u64)],
) -> Result<Ebpf, ProbeUnavailable> {
    let values: Vec<(&str, u8)> = settings.iter().map(|(name, is_set)| (*name, u8::from(*is_set))).collect();
    let mut loader = EbpfLoader::new();
    loader.btf(Some(&kernel.btf));
    for (name, value) in &values {
        loader.override_global(name, value, true);
    }
    for (name, address) in addresses {
        loader.override_global(name, address, true);
    }
    object.with_bytes(|object| loader.load(object).map_err(|err| load_failure(THE_MAPS, &err)))
}

/// Opens a map with keys of `K` bytes. `value_len`: bytes of a value as read by user space. The object keeps its own
/// descriptor of the map, which its programs refer to until they are loaded.
pub(super) fn open_map<const K: usize>(
    programs: &Ebpf,
    name: &str,
    value_len: usize,
) -> Result<BpfMap<K>, ProbeUnavailable> {
    let Some(
        Map::PerCpuHashMap(map) | Map::HashMap(map) | Map::PerCpuArray(map) | Map::Array(map) | Map::StackTraceMap(map),
    ) = programs.map(name)
    else {
        return Err(ProbeUnavailable::Absent(format!("tracing: no map {name}")));
    };
    let fd = map.fd().as_fd().try_clone_to_owned();
    let fd = fd.map_err(|err| ProbeUnavailable::from_io_error("tracing: a map", &err))?;
    Ok(BpfMap { fd, value_len })
}

/// Loads and attaches programs that are useful only together: pairs of program and tracepoint. Attaches all or none.
pub(super) fn attach_all(programs: &mut Ebpf, btf: &Btf, pairs: &[(&str, &str)]) -> Result<(), ProbeUnavailable> {
    let attach_one = |programs: &mut Ebpf, name: &str, point: &str| -> Result<(), ProgramError> {
        let program = programs.program_mut(name).ok_or(ProgramError::UnexpectedProgramType)?;
        let program: &mut BtfTracePoint = program.try_into()?;
        program.load(point, btf)?;
        program.attach().map(drop)
    };
    for (at, (name, point)) in pairs.iter().enumerate() {
        if let Err(err) = attach_one(programs, name, point) {
            for (name, _) in &pairs[..at] {
                if let Some(Ok(program)) = programs.program_mut(name).map(<&mut BtfTracePoint>::try_from) {
                    let _ = program.unload();
                }
            }
            return Err(load_failure(&format!("tracepoint {point}"), &err));
        }
    }
    Ok(())
}

/// Loads a program and attaches it to a tracepoint of tracefs, which must be readable.
pub(super) fn attach_tracefs(
    programs: &mut Ebpf,
    name: &str,
    (group, point): (&str, &str),
) -> Result<(), ProbeUnavailable> {
    let attach_one = |programs: &mut Ebpf| -> Result<(), ProgramError> {
        let program = programs.program_mut(name).ok_or(ProgramError::UnexpectedProgramType)?;
        let program: &mut TracePoint = program.try_into()?;
        program.load()?;
        program.attach(group, point).map(drop)
    };
    attach_one(programs).map_err(|err| {
        let why = load_failure(&format!("tracepoint {point}"), &err);
        // Unload what could not be attached.
        if let Some(Ok(program)) = programs.program_mut(name).map(<&mut TracePoint>::try_from) {
            let _ = program.unload();
        }
        why
    })
}

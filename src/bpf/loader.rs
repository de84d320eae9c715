//! Loads BPF objects, attaches their programs, and turns failures into one line.

use super::kernel_info::KernelInfo;
use super::unavailable::{ProbeUnavailable, load_failure};
use aya::maps::{Map as Kept, MapData};
use aya::programs::{BtfTracePoint, ProgramError, TracePoint};
use aya::{Btf, Ebpf, EbpfLoader};

/// Creates the maps of an object and sets its constants (`const volatile` of one byte). Its programs are loaded by
/// [`attach_all`] and [`attach_tracefs`].
pub fn open_object(kernel: &KernelInfo, object: &[u8], settings: &[(&str, bool)]) -> Result<Ebpf, ProbeUnavailable> {
    let values: Vec<(&str, u8)> = settings.iter().map(|(name, is_set)| (*name, u8::from(*is_set))).collect();
    let mut loader = EbpfLoader::new();
    loader.btf(Some(&kernel.btf));
    for (name, value) in &values {
        loader.override_global(name, value, true);
    }
    loader.load(object).map_err(|err| load_failure("the maps", &err))
}

/// The map of an object's zero-initialised variables.
pub const BSS_MAP: &str = ".bss";

/// Takes a map out of the object by name.
pub fn take_map(programs: &mut Ebpf, name: &str) -> Result<MapData, ProbeUnavailable> {
    match programs.take_map(name) {
        Some(Kept::PerCpuHashMap(map) | Kept::HashMap(map) | Kept::PerCpuArray(map) | Kept::Array(map)) => Ok(map),
        _ => Err(ProbeUnavailable::Absent(format!("tracing: no map {name}"))),
    }
}

/// Loads and attaches programs that are useful only together: pairs of program and tracepoint. Attaches all or none.
pub fn attach_all(programs: &mut Ebpf, btf: &Btf, pairs: &[(&str, &str)]) -> Result<(), ProbeUnavailable> {
    let attach_one = |programs: &mut Ebpf, name: &str, point: &str| -> Result<(), ProgramError> {
        let program = programs.program_mut(name).ok_or(ProgramError::UnexpectedProgramType)?;
        let program: &mut BtfTracePoint = program.try_into()?;
        program.load(point, btf)?;
        program.attach().map(drop)
    };
    for (at, (name, point)) in pairs.iter().enumerate() {
        if let Err(err) = attach_one(programs, name, point) {
            for (name, _) in &pairs[..at] {
                unload_program(programs, name);
            }
            return Err(load_failure(&format!("tracepoint {point}"), &err));
        }
    }
    Ok(())
}

/// Loads a program and attaches it to a tracepoint of tracefs, which must be readable.
pub fn attach_tracefs(programs: &mut Ebpf, name: &str, (group, point): (&str, &str)) -> Result<(), ProbeUnavailable> {
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

/// Removes a program from the kernel.
fn unload_program(programs: &mut Ebpf, name: &str) {
    let program = programs.program_mut(name).and_then(|p| <&mut BtfTracePoint>::try_from(p).ok());
    if let Some(program) = program {
        // Fails if the program is not loaded, which is what we want.
        let _ = program.unload();
    }
}

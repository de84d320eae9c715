//! Loads BPF objects, attaches their programs, and turns failures into one line.

use super::ProbeUnavailable;
use super::kernel_info::KernelInfo;
use crate::model::reading::describe_io_error;
use aya::maps::{Map as Kept, MapData};
use aya::programs::{BtfTracePoint, ProgramError, TracePoint};
use aya::{Btf, Ebpf, EbpfLoader};
use std::io;

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

/// Describes a failure in one line by its root cause, without the verifier log.
pub fn load_failure(what: &str, err: &(dyn std::error::Error + 'static)) -> ProbeUnavailable {
    let mut cause: &(dyn std::error::Error + 'static) = err;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let code = cause.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
    if code == Some(libc::EPERM) {
        return ProbeUnavailable::Denied(format!(
            "tracing: the kernel refused {what}: a container, a seccomp filter or kernel lockdown forbids it"
        ));
    }
    // The verifier rejected the program.
    if code == Some(libc::EACCES) {
        return ProbeUnavailable::Absent(format!("tracing: this kernel does not accept the program for {what}"));
    }
    let why = match cause.downcast_ref::<io::Error>() {
        Some(io) => describe_io_error(io),
        None => cause.to_string().lines().next().unwrap_or_default().to_owned(),
    };
    ProbeUnavailable::Absent(format!("tracing: {what}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An error as the loader returns it: a long log with the kernel's error as its source.
    #[derive(Debug)]
    struct Verifier(io::Error);

    impl std::fmt::Display for Verifier {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("0: (79) r6 = *(u64 *)(r1 +0)\n1: ...\n")
        }
    }

    impl std::error::Error for Verifier {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn a_load_failure_is_one_line_and_keeps_its_kind() {
        let denied = load_failure("the maps", &io::Error::from_raw_os_error(libc::EPERM));
        assert!(matches!(&denied, ProbeUnavailable::Denied(why) if why.contains("lockdown")), "{denied:?}");
        let other = load_failure("tracepoint block_rq_issue", &Verifier(io::Error::from_raw_os_error(libc::EINVAL)));
        assert_eq!(other, ProbeUnavailable::Absent("tracing: tracepoint block_rq_issue: invalid argument".into()));
    }
}

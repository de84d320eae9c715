//! Compiled programs on their way into the kernel: loading an object, attaching its programs, and a refusal told
//! in one line.

use super::ProbeUnavailable;
use super::kernel_info::KernelInfo;
use crate::model::reading::describe_io_error;
use aya::maps::{Map as Kept, MapData};
use aya::programs::{BtfTracePoint, ProgramError, TracePoint};
use aya::{Btf, Ebpf, EbpfLoader};
use std::io;

/// Makes an object's maps, with the values of its settings (`const volatile` of one byte). Its programs are not in
/// the kernel yet: [`attach`] brings them there.
pub fn open_object(ground: &KernelInfo, object: &[u8], settings: &[(&str, bool)]) -> Result<Ebpf, ProbeUnavailable> {
    let values: Vec<(&str, u8)> = settings.iter().map(|(name, on)| (*name, u8::from(*on))).collect();
    let mut loader = EbpfLoader::new();
    loader.btf(Some(&ground.btf));
    for (name, value) in &values {
        loader.override_global(name, value, true);
    }
    loader.load(object).map_err(|err| load_failure("the maps", &err))
}

/// The map of an object's own variables that begin as 0.
pub const BSS_MAP: &str = ".bss";

/// A map of an object, by name, to be read by its descriptor.
pub fn take_map(programs: &mut Ebpf, name: &str) -> Result<MapData, ProbeUnavailable> {
    match programs.take_map(name) {
        Some(Kept::PerCpuHashMap(map) | Kept::HashMap(map) | Kept::PerCpuArray(map) | Kept::Array(map)) => Ok(map),
        _ => Err(ProbeUnavailable::Absent(format!("tracing: no map {name}"))),
    }
}

/// Loads and attaches programs that are worth nothing without each other: each by name and tracepoint.
pub fn attach_all(programs: &mut Ebpf, btf: &Btf, which: &[(&str, &str)]) -> Result<(), ProbeUnavailable> {
    let one = |programs: &mut Ebpf, name: &str, point: &str| -> Result<(), ProgramError> {
        let program = programs.program_mut(name).ok_or(ProgramError::UnexpectedProgramType)?;
        let program: &mut BtfTracePoint = program.try_into()?;
        program.load(point, btf)?;
        program.attach().map(drop)
    };
    for (at, (name, point)) in which.iter().enumerate() {
        if let Err(err) = one(programs, name, point) {
            for (name, _) in &which[..at] {
                unload_program(programs, name);
            }
            return Err(load_failure(&format!("tracepoint {point}"), &err));
        }
    }
    Ok(())
}

/// Loads a program and attaches it to a tracepoint of tracefs, which needs leave to look there.
pub fn attach_tracefs(programs: &mut Ebpf, name: &str, (group, point): (&str, &str)) -> Result<(), ProbeUnavailable> {
    let one = |programs: &mut Ebpf| -> Result<(), ProgramError> {
        let program = programs.program_mut(name).ok_or(ProgramError::UnexpectedProgramType)?;
        let program: &mut TracePoint = program.try_into()?;
        program.load()?;
        program.attach(group, point).map(drop)
    };
    one(programs).map_err(|err| {
        let why = load_failure(&format!("tracepoint {point}"), &err);
        // One that is not attached need not stay loaded.
        if let Some(Ok(program)) = programs.program_mut(name).map(<&mut TracePoint>::try_from) {
            let _ = program.unload();
        }
        why
    })
}

/// Takes a program out of the kernel again.
fn unload_program(programs: &mut Ebpf, name: &str) {
    let program = programs.program_mut(name).and_then(|p| <&mut BtfTracePoint>::try_from(p).ok());
    if let Some(program) = program {
        // One that is not loaded is what is wanted.
        let _ = program.unload();
    }
}

/// A refusal in one line: the deepest cause, never the verifier's log.
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
    // The verifier's answer to a program that it does not follow.
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

    /// As the loader tells it: a long log, the kernel's answer behind it.
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

//! A BPF program that does nothing, at a tracepoint: what the kernel takes to call any (bpf(2), `include/uapi/linux/bpf.h`).
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_RAW_TRACEPOINT_OPEN: libc::c_int = 17;
const BPF_PROG_TYPE_RAW_TRACEPOINT: u32 = 17;

/// `r0 = 0; exit`, as `struct bpf_insn`: the operation in the lowest byte.
const INSTRUCTIONS: [u64; 2] = [0xb7, 0x95];

/// The beginning of `union bpf_attr` for BPF_PROG_LOAD; what follows is 0 to the kernel.
#[repr(C)]
struct LoadAttr {
    program_type: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
}

/// `union bpf_attr` for BPF_RAW_TRACEPOINT_OPEN.
#[repr(C)]
struct OpenAttr {
    name: u64,
    program: u32,
    _pad: u32,
}

/// Attached until this is dropped.
pub struct EmptyProgram {
    _program: OwnedFd,
    _attachment: OwnedFd,
}

impl EmptyProgram {
    pub fn attach(tracepoint: &CStr) -> Self {
        let license = c"GPL";
        let load = LoadAttr {
            program_type: BPF_PROG_TYPE_RAW_TRACEPOINT,
            instruction_count: INSTRUCTIONS.len() as u32,
            instructions: INSTRUCTIONS.as_ptr() as u64,
            license: license.as_ptr() as u64,
            log_level: 0,
            log_size: 0,
            log: 0,
        };
        let program = bpf(BPF_PROG_LOAD, &load).expect("an empty program");
        let open = OpenAttr { name: tracepoint.as_ptr() as u64, program: program.as_raw_fd() as u32, _pad: 0 };
        let attachment = bpf(BPF_RAW_TRACEPOINT_OPEN, &open).expect("the tracepoint");
        Self { _program: program, _attachment: attachment }
    }
}

fn bpf<T>(command: libc::c_int, attr: &T) -> io::Result<OwnedFd> {
    // SAFETY: `attr` has the layout of the kernel's union for the command, and what it points to outlives the call.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attr), size_of::<T>()) };
    // SAFETY: the descriptor is new.
    if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) }) }
}

//! Compresses the BPF objects, which are read once, when tracing starts: a quarter of their 240 KB is left in the file.

use std::path::Path;

const OBJECTS: [&str; 6] = ["files", "requests", "stalls", "syncs", "tasks", "waits"];
/// That of `gzip -9`.
const LEVEL: u8 = 9;

fn main() -> std::io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    let out =
        std::env::var_os("OUT_DIR").ok_or_else(|| std::io::Error::other("OUT_DIR is not set: run it by cargo"))?;
    for name in OBJECTS {
        let path = format!("assets/trace/{name}.bpf.o");
        println!("cargo:rerun-if-changed={path}");
        let object = std::fs::read(&path)?;
        // The number of bytes, to make room for them before they are read.
        let mut packed = u32::try_from(object.len()).map_err(std::io::Error::other)?.to_le_bytes().to_vec();
        packed.extend(miniz_oxide::deflate::compress_to_vec(&object, LEVEL));
        std::fs::write(Path::new(&out).join(format!("{name}.bpf")), packed)?;
    }
    Ok(())
}

//! Runs a fuzz target, named by `FUZZ_TARGET`, with libFuzzer. See docs/fuzzing.md.

#![no_main]

use iotop_plus::fuzz::{self, Target};
use std::sync::LazyLock;

static TARGET: LazyLock<&'static Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    fuzz::find(&name).unwrap_or_else(|| {
        let names: Vec<_> = fuzz::TARGETS.iter().map(|target| target.name).collect();
        eprintln!("FUZZ_TARGET must be one of: {}", names.join(" "));
        std::process::exit(2);
    })
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| TARGET.run(&input[..input.len().min(TARGET.longest)]));

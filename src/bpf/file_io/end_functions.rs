//! Addresses of the kernel functions that end bios. They say what the private data of a bio is, and with that the file of
//! direct I/O.

use crate::root::Root;
use std::io::{BufRead, BufReader};

/// The functions, and the constants in `assets/trace/files.bpf.c` for their addresses. Which ones there are depends on the
/// kernel's version and file systems.
const FUNCTIONS: [(&str, &str); 7] = [
    ("iomap_dio_bio_end_io", "IOMAP_DIO_END"),
    ("dio_bio_end_io", "DIO_END"),
    ("dio_bio_end_aio", "DIO_END_AIO"),
    ("xlog_bio_end_io", "XFS_LOG_END"),
    ("btrfs_simple_end_io", "BTRFS_END"),
    ("btrfs_orig_write_end_io", "BTRFS_FIRST_MIRROR_END"),
    ("btrfs_clone_write_end_io", "BTRFS_MIRROR_END"),
];

/// Returns the constants and their values.
/// Errors: why direct I/O cannot be attributed to files, in one line.
pub(super) fn read(root: &Root) -> Result<Vec<(&'static str, u64)>, String> {
    let why = |why: &str| format!("direct I/O is not attributed to files: /proc/kallsyms {why}");
    let file = std::fs::File::open(root.proc("kallsyms")).map_err(|err| why(&format!("cannot be read: {err}")))?;
    match parse(BufReader::with_capacity(1 << 16, file)) {
        found if found.is_empty() => Err(why("shows no addresses (sysctl kernel.kptr_restrict)")),
        found => Ok(found),
    }
}

/// Parses lines `ffffffff817686b0 T iomap_dio_bio_end_io`, for functions of modules with `\t[module]` at the end.
pub(crate) fn parse(mut text: impl BufRead) -> Vec<(&'static str, u64)> {
    let mut found = Vec::new();
    let mut line = Vec::new();
    while text.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
        found.extend(parse_line(&line));
        line.clear();
    }
    found
}

fn parse_line(line: &[u8]) -> Option<(&'static str, u64)> {
    let mut words = line.splitn(3, |b| *b == b' ');
    let (address, name) = (words.next()?, words.nth(1)?);
    let name = name.split(|b| b.is_ascii_whitespace()).next()?;
    let (_, constant) = FUNCTIONS.iter().find(|(function, _)| function.as_bytes() == name)?;
    let address = u64::from_str_radix(str::from_utf8(address).ok()?, 16).ok()?;
    (address != 0).then_some((*constant, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_kernel_and_of_modules_are_found() {
        let text = b"ffffffff817686b0 T iomap_dio_bio_end_io\nffffffff81000000 t xlog_bio_end_io_more\nbroken\n\
                     ffffffffc0000010 t xlog_bio_end_io\t[xfs]\n";
        assert_eq!(
            parse(text.as_slice()),
            [("IOMAP_DIO_END", 0xffff_ffff_8176_86b0), ("XFS_LOG_END", 0xffff_ffff_c000_0010)]
        );
    }

    #[test]
    fn hidden_addresses_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        std::fs::create_dir_all(root.proc("")).unwrap();
        std::fs::write(root.proc("kallsyms"), "0000000000000000 T iomap_dio_bio_end_io\n").unwrap();
        assert!(read(&root).unwrap_err().contains("kptr_restrict"));
    }
}

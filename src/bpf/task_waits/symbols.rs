//! Names of kernel functions by address, from /proc/kallsyms: a copy of its 100,000 lines or more in 4 MB, made when the
//! probe is loaded, because reading them takes longer than a sample may.

use crate::root::Root;
use std::io::{BufRead, BufReader};

/// No function is longer: an address further behind the start of one belongs to something else, such as a module that was
/// loaded later.
const MAX_FUNCTION_LEN: u64 = 64 << 10;

/// The functions in the order of their addresses.
pub(crate) struct Symbols {
    /// Where each begins, and where its name begins in `names`.
    starts: Vec<(u64, u32)>,
    /// The names, each with a line feed behind it.
    names: Vec<u8>,
}

impl Symbols {
    /// Errors: why waits cannot be distinguished, in one line.
    pub(super) fn load(root: &Root) -> Result<Self, String> {
        let why = |why: &str| format!("what tasks wait for is not known: /proc/kallsyms {why}");
        let file = std::fs::File::open(root.proc("kallsyms")).map_err(|err| why(&format!("cannot be read: {err}")))?;
        match Self::parse(BufReader::with_capacity(1 << 16, file)) {
            symbols if symbols.starts.is_empty() => Err(why("shows no addresses (sysctl kernel.kptr_restrict)")),
            symbols => Ok(symbols),
        }
    }

    /// Parses lines `ffffffff817686b0 T iomap_dio_rw`, for functions of modules with `\t[module]` at the end.
    pub(crate) fn parse(mut text: impl BufRead) -> Self {
        let (mut starts, mut names): (Vec<(u64, u32)>, Vec<u8>) = (Vec::new(), Vec::new());
        let mut line = Vec::new();
        while text.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            if let Some((start, name)) = parse_line(&line)
                && let Ok(at) = u32::try_from(names.len())
            {
                starts.push((start, at));
                names.extend_from_slice(name);
                names.push(b'\n');
            }
            line.clear();
        }
        starts.sort_unstable();
        starts.shrink_to_fit();
        names.shrink_to_fit();
        Self { starts, names }
    }

    /// The name of the function that an address lies in; empty if unknown.
    pub(crate) fn name(&self, address: u64) -> &str {
        let at = self.starts.partition_point(|(start, _)| *start <= address);
        let found = at.checked_sub(1).map(|at| self.starts[at]);
        let Some((_, at)) = found.filter(|(start, _)| address - start < MAX_FUNCTION_LEN) else { return "" };
        let name = self.names[at as usize..].split(|b| *b == b'\n').next().unwrap_or_default();
        str::from_utf8(name).unwrap_or_default()
    }
}

/// Only functions, and only with an address.
fn parse_line(line: &[u8]) -> Option<(u64, &[u8])> {
    let mut words = line.splitn(3, |b| *b == b' ');
    let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
    let name = name.split(|b| b.is_ascii_whitespace()).next()?;
    let address = u64::from_str_radix(str::from_utf8(address).ok()?, 16).ok()?;
    (address > 0 && matches!(kind, b"t" | b"T" | b"w" | b"W")).then_some((address, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"ffffffffc0000010 t of_module\t[xfs]\nffffffff81000000 T first\nffffffff81000100 t second\n\
                          ffffffff81000180 d data\nbroken\n";

    #[test]
    fn addresses_lie_in_the_function_that_starts_last_before_them() {
        let symbols = Symbols::parse(TEXT);
        let cases = [
            (0xffff_ffff_8100_0000, "first"),
            (0xffff_ffff_8100_00ff, "first"),
            (0xffff_ffff_8100_0190, "second"),
            (0xffff_ffff_c000_0020, "of_module"),
            (0xffff_ffff_b000_0020, ""),
            (5, ""),
        ];
        cases.iter().for_each(|(address, name)| assert_eq!(symbols.name(*address), *name, "{address:x}"));
    }

    #[test]
    fn hidden_addresses_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        std::fs::create_dir_all(root.proc("")).unwrap();
        std::fs::write(root.proc("kallsyms"), "0000000000000000 T first\n").unwrap();
        assert!(Symbols::load(&root).err().unwrap().contains("kptr_restrict"));
        std::fs::write(root.proc("kallsyms"), TEXT).unwrap();
        assert_eq!(Symbols::load(&root).map(|symbols| symbols.starts.len()), Ok(3));
    }
}

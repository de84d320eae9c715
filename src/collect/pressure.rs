//! `/proc/pressure/{cpu,memory,io}` (Documentation/accounting/psi.rst).

use super::read::Kept;
use super::scan::{fraction, lines, number, words};
use super::{Patch, Source};
use crate::model::pressure::{Pressure, PressureRaw, Stall};
use crate::model::sample::Sample;
use crate::model::section::{Blocked, Section};
use crate::root::Root;

/// Reads the three pressure files.
pub struct PressureFiles {
    files: [Kept; 3],
    buf: Vec<u8>,
}

impl PressureFiles {
    /// Reads below `root`.
    pub fn new(root: &Root) -> Self {
        let file = |name| Kept::whole(root.proc(&format!("pressure/{name}")));
        Self { files: [file("cpu"), file("memory"), file("io")], buf: Vec::new() }
    }

    fn all(&mut self) -> Section<PressureRaw> {
        let mut got = [Pressure::default(); 3];
        for (file, slot) in self.files.iter_mut().zip(&mut got) {
            match file.read(&mut self.buf) {
                Ok(text) => *slot = parse(text),
                Err(err) if err.kind() == std::io::ErrorKind::NotFound => {
                    return Section::Absent("/proc/pressure: this kernel has no PSI (CONFIG_PSI)".into());
                }
                // Built in but switched off: open works, read says EOPNOTSUPP.
                Err(err) if err.raw_os_error() == Some(rustix::io::Errno::OPNOTSUPP.raw_os_error()) => {
                    return Section::Absent("/proc/pressure: PSI is off (boot with psi=1)".into());
                }
                Err(err) => return Section::from_io("/proc/pressure", &err),
            }
        }
        let [cpu, memory, io] = got;
        Section::Ok(PressureRaw { cpu, memory, io })
    }
}

impl Source for PressureFiles {
    fn name(&self) -> &'static str {
        "/proc/pressure"
    }

    fn blocked(&self) -> fn(&mut Sample, Blocked) {
        |s, why| s.pressure = Section::Blocked(why)
    }

    fn read(&mut self) -> Patch {
        let all = self.all();
        Box::new(move |s| s.pressure = all)
    }
}

fn parse(text: &[u8]) -> Pressure {
    let mut out = Pressure::default();
    for line in lines(text) {
        let mut w = words(line);
        match w.next() {
            Some(b"some") => out.some = stall(w),
            Some(b"full") => out.full = stall(w),
            _ => {}
        }
    }
    out
}

fn stall<'a>(mut w: impl Iterator<Item = &'a [u8]>) -> Option<Stall> {
    let mut value = |name: &str| w.next()?.strip_prefix(name.as_bytes());
    Some(Stall {
        avg10: fraction(value("avg10=")?)?,
        avg60: fraction(value("avg60=")?)?,
        avg300: fraction(value("avg300=")?)?,
        total_us: number(value("total=")?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_missing_on_old_kernels_stay_none() {
        let p = parse(b"some avg10=38.20 avg60=1.00 avg300=0.10 total=123\n");
        assert_eq!(p.some.unwrap().avg10, 38.2);
        assert_eq!(p.some.unwrap().total_us, 123);
        assert_eq!(p.full, None);
        assert_eq!(parse(b"some avg10=x\n"), Pressure::default());
    }
}

//! `/proc/pressure/{cpu,memory,io}` (Documentation/accounting/psi.rst).

use super::byte_parse::{lines, parse_f64, parse_u64, words};
use super::kernel_file::PersistentFile;
use super::{SampleUpdate, Source};
use crate::model::pressure::{PressureRaw, PsiAverages, ResourcePressure};
use crate::model::reading::{BlockedRead, Reading};
use crate::model::sample::Sample;
use crate::root::Root;

/// Reads the three pressure files.
pub struct PressureSource {
    files: [PersistentFile; 3],
    buf: Vec<u8>,
}

impl PressureSource {
    /// Reads below `root`.
    pub fn new(root: &Root) -> Self {
        let file = |name| PersistentFile::whole(root.proc(&format!("pressure/{name}")));
        Self { files: [file("cpu"), file("memory"), file("io")], buf: Vec::new() }
    }

    fn read_all(&mut self) -> Reading<PressureRaw> {
        let mut got = [ResourcePressure::default(); 3];
        for (file, slot) in self.files.iter_mut().zip(&mut got) {
            match file.read(&mut self.buf) {
                Ok(text) => *slot = parse(text),
                Err(err) if err.kind() == std::io::ErrorKind::NotFound => {
                    return Reading::Absent("/proc/pressure: this kernel has no PSI (CONFIG_PSI)".into());
                }
                // Built in but switched off: open works, read says EOPNOTSUPP.
                Err(err) if err.raw_os_error() == Some(rustix::io::Errno::OPNOTSUPP.raw_os_error()) => {
                    return Reading::Absent("/proc/pressure: PSI is off (boot with psi=1)".into());
                }
                Err(err) => return Reading::from_io_error("/proc/pressure", &err),
            }
        }
        let [cpu, memory, io] = got;
        Reading::Ok(PressureRaw { cpu, memory, io })
    }
}

impl Source for PressureSource {
    fn name(&self) -> &'static str {
        "/proc/pressure"
    }

    fn blocked_marker(&self) -> fn(&mut Sample, BlockedRead) {
        |s, why| s.pressure = Reading::Blocked(why)
    }

    fn read(&mut self) -> SampleUpdate {
        let all = self.read_all();
        Box::new(move |s| s.pressure = all)
    }
}

fn parse(text: &[u8]) -> ResourcePressure {
    let mut out = ResourcePressure::default();
    for line in lines(text) {
        let mut w = words(line);
        match w.next() {
            Some(b"some") => out.some = parse_stall(w),
            Some(b"full") => out.full = parse_stall(w),
            _ => {}
        }
    }
    out
}

fn parse_stall<'a>(mut w: impl Iterator<Item = &'a [u8]>) -> Option<PsiAverages> {
    let mut value = |name: &str| w.next()?.strip_prefix(name.as_bytes());
    Some(PsiAverages {
        avg10: parse_f64(value("avg10=")?)?,
        avg60: parse_f64(value("avg60=")?)?,
        avg300: parse_f64(value("avg300=")?)?,
        total_us: parse_u64(value("total=")?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_full_line_is_none() {
        let p = parse(b"some avg10=38.20 avg60=1.00 avg300=0.10 total=123\n");
        assert_eq!(p.some.unwrap().avg10, 38.2);
        assert_eq!(p.some.unwrap().total_us, 123);
        assert_eq!(p.full, None);
        assert_eq!(parse(b"some avg10=x\n"), ResourcePressure::default());
    }
}

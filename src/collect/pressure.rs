//! `/proc/pressure/{cpu,memory,io}` (Documentation/accounting/psi.rst).

use super::kernel_file::PersistentFile;
use super::source::Source;
use crate::model::pressure::{PressureRaw, ResourcePressure};
use crate::model::reading::Reading;
use crate::parse::pressure;
use crate::root::Root;

pub(super) fn source(root: &Root) -> Source {
    let mut files = ["cpu", "memory", "io"].map(|name| PersistentFile::whole(root.proc(&format!("pressure/{name}"))));
    let mut buf = Vec::new();
    Source::new("/proc/pressure", |s| &mut s.pressure, move || read(&mut files, &mut buf))
}

fn read(files: &mut [PersistentFile; 3], buf: &mut Vec<u8>) -> Reading<PressureRaw> {
    let mut got = [ResourcePressure::default(); 3];
    for (file, slot) in files.iter_mut().zip(&mut got) {
        match file.read(buf) {
            Ok(text) => {
                let [some, full] = pressure::parse(text);
                *slot = ResourcePressure { some, full };
            }
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => {
                return Reading::Absent(
                    "/proc/pressure: PSI is off (boot with psi=1), or the kernel was built without CONFIG_PSI".into(),
                );
            }
            // PSI is built in but disabled: open succeeds, read fails with EOPNOTSUPP.
            Err(err) if err.raw_os_error() == Some(rustix::io::Errno::OPNOTSUPP.raw_os_error()) => {
                return Reading::Absent("/proc/pressure: PSI is off (boot with psi=1)".into());
            }
            Err(err) => return Reading::from_io_error("/proc/pressure", &err),
        }
    }
    let [cpu, memory, io] = got;
    Reading::Ok(PressureRaw { cpu, memory, io })
}

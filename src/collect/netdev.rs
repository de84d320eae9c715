//! `/proc/net/dev` (proc_net(5)) and `/sys/class/net/*/speed` (Documentation/ABI/testing/sysfs-class-net).

use super::kernel_file::{PersistentFile, read_number};
use super::source::Source;
use crate::model::network::NicRaw;
use crate::model::reading::Reading;
use crate::parse::bytes::{lines, parse_u64, words};
use crate::root::Root;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Reading the speed takes a lock of the whole network stack, so it is done rarely.
const SPEED_REREAD_INTERVAL: Duration = Duration::from_secs(60);

/// Reads the byte counters of every interface in one system call.
pub(super) fn source(root: &Root, has_network_mounts: Arc<AtomicBool>) -> Source {
    let mut reader = InterfaceReader::new(root, has_network_mounts);
    Source::new("/proc/net/dev", |s| &mut s.nics, move || reader.read_nics())
}

struct InterfaceReader {
    root: Root,
    file: PersistentFile,
    buf: Vec<u8>,
    speeds: HashMap<String, Option<u64>>,
    speeds_read_at: Option<Instant>,
    /// Whether a network file system is mounted: otherwise interfaces are not read.
    has_network_mounts: Arc<AtomicBool>,
}

impl InterfaceReader {
    fn new(root: &Root, has_network_mounts: Arc<AtomicBool>) -> Self {
        Self {
            root: root.clone(),
            file: PersistentFile::new(root.proc("net/dev")),
            buf: Vec::new(),
            speeds: HashMap::new(),
            speeds_read_at: None,
            has_network_mounts,
        }
    }

    fn read_nics(&mut self) -> Reading<Vec<NicRaw>> {
        if !self.has_network_mounts.load(Ordering::Relaxed) {
            return Reading::Ok(Vec::new());
        }
        let mut nics = match self.file.read(&mut self.buf) {
            Ok(text) => parse(text),
            Err(err) => return Reading::from_io_error("/proc/net/dev", &err),
        };
        if self.speeds_read_at.is_none_or(|at| at.elapsed() >= SPEED_REREAD_INTERVAL) {
            self.speeds.clear();
            self.speeds_read_at = Some(Instant::now());
        }
        for nic in &mut nics {
            let read = || read_link_speed(&self.root, &nic.name, &mut self.buf);
            nic.speed_bits = *self.speeds.entry(nic.name.clone()).or_insert_with(read);
        }
        Reading::Ok(nics)
    }
}

/// EINVAL for an interface without speed (loopback, down), -1 for one that does not know it (virtual).
fn read_link_speed(root: &Root, name: &str, buf: &mut Vec<u8>) -> Option<u64> {
    if name.contains('/') || name.starts_with('.') {
        return None;
    }
    let mbit = read_number(&root.sys(&format!("class/net/{name}/speed")), buf)?;
    // SPEED_UNKNOWN is -1, which old kernels wrote unsigned.
    mbit.checked_mul(1_000_000).filter(|_| mbit > 0 && mbit < u32::MAX as u64)
}

/// Two header lines, then `name: rx_bytes 7 more tx_bytes ...`; old kernels omit the blank.
pub(super) fn parse(text: &[u8]) -> Vec<NicRaw> {
    lines(text).filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<NicRaw> {
    // An alias (eth0:1) has a colon of its own.
    let colon = line.iter().rposition(|b| *b == b':')?;
    let name = String::from_utf8_lossy(line[..colon].trim_ascii()).into_owned();
    let mut w = words(&line[colon + 1..]);
    let rx_bytes = parse_u64(w.next()?)?;
    let tx_bytes = parse_u64(w.nth(7)?)?;
    Some(NicRaw { name, rx_bytes, tx_bytes, speed_bits: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn headings_are_skipped_and_both_row_formats_parsed() {
        let nics = parse(
            b"Inter-|   Receive                                                |  Transmit\n \
              face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n    \
              lo:    3193      29    0    0    0     0          0         0     3193      29    0    0    0     0       0          0\n  \
              eth0:152373578    7857    0    0    0     0          0         0   561894    5312    0    0    0     0       0          0\n  cut: 1 2\n",
        );
        let got: Vec<_> = nics.iter().map(|n| (n.name.as_str(), n.rx_bytes, n.tx_bytes)).collect();
        assert_eq!(got, [("lo", 3193, 3193), ("eth0", 152_373_578, 561_894)]);
    }

    #[test]
    fn link_speeds_are_cached_and_unknown_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let put = |rel: &str, text: &str| {
            let path = dir.path().join(rel);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let row = " 1 0 0 0 0 0 0 0 2 0 0 0 0 0 0 0\n";
        put("proc/net/dev", &format!("eth0:{row}veth1:{row}lo:{row}old0:{row}"));
        put("sys/class/net/eth0/speed", "1000\n");
        put("sys/class/net/veth1/speed", "-1\n");
        put("sys/class/net/old0/speed", "4294967295\n");
        let mut source = InterfaceReader::new(&Root::at(dir.path()), Arc::new(AtomicBool::new(true)));
        let speeds =
            |s: &mut InterfaceReader| s.read_nics().ok().unwrap().iter().map(|n| n.speed_bits).collect::<Vec<_>>();
        assert_eq!(speeds(&mut source), [Some(1_000_000_000), None, None, None]);
        put("sys/class/net/eth0/speed", "100\n");
        assert_eq!(speeds(&mut source)[0], Some(1_000_000_000), "asked once a minute");
        source.speeds_read_at = None;
        assert_eq!(speeds(&mut source)[0], Some(100_000_000));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&text);
        }
    }
}

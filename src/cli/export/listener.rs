//! Where the metrics are served: an address, a socket in the file system, or a socket of systemd.

use anyhow::{Context, bail};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where to listen, as `--listen` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ListenAddress {
    Tcp(SocketAddr),
    Unix(PathBuf),
    /// The socket that systemd passes (`LISTEN_FDS`, sd_listen_fds(3)).
    Systemd,
}

impl FromStr for ListenAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(address) => Ok(Self::Tcp(address)),
            Err(_) if text == "systemd" => Ok(Self::Systemd),
            Err(_) if text.starts_with('/') => Ok(Self::Unix(text.into())),
            Err(_) => Err("must be ADDRESS:PORT, the absolute path of a socket, or systemd"),
        }
    }
}

impl ListenAddress {
    /// The addresses of several listeners: from this port upwards.
    pub(super) fn count_up(&self, count: usize) -> anyhow::Result<Vec<Self>> {
        let Self::Tcp(first) = self else {
            if count == 1 {
                return Ok(vec![self.clone()]);
            }
            bail!("--listen: several recordings need ADDRESS:PORT, of which each has a port from this one upwards");
        };
        let at = |n: usize| {
            let port = u16::try_from(n + usize::from(first.port()));
            let port = port.with_context(|| format!("--listen {first}: no ports for {count} recordings above it"))?;
            Ok(Self::Tcp(SocketAddr::new(first.ip(), port)))
        };
        (0..count).map(at).collect()
    }
}

/// A socket that accepts connections and does not block.
#[derive(Debug)]
pub(super) enum MetricsListener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl MetricsListener {
    pub(super) fn bind(address: &ListenAddress) -> anyhow::Result<Self> {
        let listener = match address {
            ListenAddress::Tcp(address) => {
                Self::Tcp(TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?)
            }
            ListenAddress::Unix(path) => {
                remove_stale_socket(path);
                let bound = UnixListener::bind(path);
                Self::Unix(bound.with_context(|| format!("cannot listen on {}", path.display()))?)
            }
            ListenAddress::Systemd => Self::from_systemd()?,
        };
        match &listener {
            Self::Tcp(tcp) => tcp.set_nonblocking(true)?,
            Self::Unix(unix) => unix.set_nonblocking(true)?,
        }
        Ok(listener)
    }

    fn from_systemd() -> anyhow::Result<Self> {
        let variable = |name| std::env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
        if variable("LISTEN_PID") != Some(std::process::id()) || variable("LISTEN_FDS") != Some(1) {
            bail!("--listen systemd: systemd passed no socket, or more than one; start it by its socket unit");
        }
        let socket = inherited_socket();
        rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
        let is_unix = rustix::net::sockopt::socket_domain(&socket)? == rustix::net::AddressFamily::UNIX;
        Ok(if is_unix { Self::Unix(socket.into()) } else { Self::Tcp(socket.into()) })
    }
}

/// The descriptor that systemd passes first.
#[allow(unsafe_code)]
fn inherited_socket() -> OwnedFd {
    use std::os::fd::FromRawFd;
    // SAFETY: sd_listen_fds(3): descriptor 3 is open, and passed to this process, as `LISTEN_PID` says. Nothing else in the
    // program owns it, because it was open before the program started.
    unsafe { OwnedFd::from_raw_fd(3) }
}

/// Removes the socket of a program that has ended; any other file stays, and binding fails.
fn remove_stale_socket(path: &Path) {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    let refused = |err: std::io::Error| err.kind() == std::io::ErrorKind::ConnectionRefused;
    if is_socket && UnixStream::connect(path).is_err_and(refused) {
        let _ = std::fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_tcp_paths_or_systemd() {
        let parse = ListenAddress::from_str;
        assert_eq!(parse("127.0.0.1:9100"), Ok(ListenAddress::Tcp(([127, 0, 0, 1], 9100).into())));
        assert!(matches!(parse("[::1]:9100"), Ok(ListenAddress::Tcp(_))));
        assert_eq!(parse("/run/x.sock"), Ok(ListenAddress::Unix("/run/x.sock".into())));
        assert_eq!(parse("systemd"), Ok(ListenAddress::Systemd));
        assert!(parse("localhost").is_err() && parse(":9100").is_err() && parse("x.sock").is_err());
    }

    #[test]
    fn several_recordings_have_ports_of_their_own() {
        let ports = |text: &str, count| Some(ListenAddress::from_str(text).unwrap().count_up(count).ok()?.len());
        let first = ListenAddress::Tcp(([127, 0, 0, 1], 9800).into());
        assert_eq!(first.count_up(2).unwrap()[1], ListenAddress::Tcp(([127, 0, 0, 1], 9801).into()));
        assert_eq!((ports("127.0.0.1:65535", 1), ports("127.0.0.1:65535", 2)), (Some(1), None));
        assert_eq!((ports("/run/x.sock", 1), ports("/run/x.sock", 2), ports("systemd", 2)), (Some(1), None, None));
    }

    #[test]
    fn only_the_socket_of_an_ended_program_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.sock");
        let bind = || MetricsListener::bind(&ListenAddress::Unix(path.clone()));
        let first = bind().unwrap();
        assert!(bind().is_err(), "another program listens");
        drop(first);
        assert!(bind().is_ok(), "nobody listens on what is left");
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "text").unwrap();
        assert!(bind().is_err() && path.exists(), "no socket");
    }
}

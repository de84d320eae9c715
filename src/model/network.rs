//! Network interfaces and network file systems.

use serde::{Deserialize, Serialize};

/// A network interface (`/proc/net/dev`, `/sys/class/net/*/speed`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NicRaw {
    /// Interface name, raw.
    pub name: String,
    /// Bytes received since it appeared.
    pub rx_bytes: u64,
    /// Bytes sent since it appeared.
    pub tx_bytes: u64,
    /// Link speed in bits per second; `None` where the driver does not say (virtual, down).
    pub speed_bits: Option<u64>,
}

/// Which network file system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetFsKind {
    /// `/proc/self/mountstats`.
    #[default]
    Nfs,
    /// `/proc/fs/cifs/Stats`.
    Cifs,
}

/// One mounted network file system; counters since it was mounted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NetFsRaw {
    /// Kind.
    pub kind: NetFsKind,
    /// Mount point, raw; for CIFS the share where the mount point is not known.
    pub mount: String,
    /// Server and export as mounted, raw.
    pub server: String,
    /// Address of the server, if the kernel tells it.
    pub address: Option<String>,
    /// Interface that routes to the server, if known.
    pub interface: Option<String>,
    /// Bytes read over the wire.
    pub read_bytes: Option<u64>,
    /// Bytes written over the wire.
    pub write_bytes: Option<u64>,
    /// Requests completed, all operations.
    pub ops: Option<u64>,
    /// Requests sent more than once.
    pub retransmits: Option<u64>,
    /// Milliseconds from sending to the reply, all requests added up.
    pub rtt_ms: Option<u64>,
    /// Milliseconds from being queued to done, all requests added up.
    pub execute_ms: Option<u64>,
}

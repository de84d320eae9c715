//! What each kind of kernel message looks like: one table, one row a kind.
//!
//! Texts are those of the kernel's own format strings (kernel/hung_task.c, block/blk-core.c, fs/buffer.c,
//! fs/ext4/super.c, fs/jbd2, fs/xfs/xfs_message.c, fs/btrfs/messages.c, drivers/nvme/host, drivers/ata,
//! drivers/scsi, drivers/md, mm/oom_kill.c, kernel/watchdog.c, kernel/rcu/tree_stall.h, net/sunrpc,
//! fs/smb/client), old wordings included; node-problem-detector's kernel-monitor.json is covered.
//!
//! A row names a literal that has to begin at a word's start; [`super::classify`] finds all literals in
//! one pass over the line. Where several rows fit, the first in the table wins.

use super::Class::{self, *};

/// One kind of message.
#[derive(Debug)]
pub struct Rule {
    /// What it is about.
    pub class: Class,
    /// Where `text` has to be.
    pub at: At,
    /// The literal that gives it away.
    pub text: &'static str,
    /// One of these has to occur too, after `text`; none needed if empty.
    pub with: &'static [&'static str],
    /// Where the device, the task are named.
    pub who: Who,
    /// Whether the line begins, continues or is a story.
    pub role: Role,
}

/// Where a rule's text has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// At the beginning of the message, blanks apart: iSCSI and FC print one before the name.
    Start,
    /// At the beginning of any word.
    Word,
}

/// A line's place in a story of several lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A line of its own.
    Line,
    /// The first of several: stack trace, registers, tables and [`Role::Follow`] lines fold under it.
    Head,
    /// Belongs under an open head of the same class (and device); a line of its own if there is none.
    Follow,
    /// As `Follow`, but routine: means nothing by itself, so without an open head it stays `other`.
    Detail,
    /// As `Head`, but says it better than the head that is open: takes its place and folds it.
    Summary,
}

/// Where a message names what it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// Nowhere.
    Nobody,
    /// The device is the word after this text.
    After(&'static str),
    /// The device is the first word: `ata4.00: ...`, `nvme0n1: ...`.
    First,
    /// The device is the second word: `nvme nvme0: ...`.
    Second,
    /// The device is in square brackets: `sd 0:0:0:0: [sda] ...`; else the second word.
    Bracket,
    /// The device is in the first parentheses, `device ` before it or not: `XFS (sda1): ...`.
    Paren,
    /// `task COMM:PID ` and on, the hung task detector's way.
    Task,
    /// `process PID (COMM)`, the OOM killer's way.
    Process,
    /// `[COMM:PID]`, the watchdog's way.
    Watchdog,
    /// The comm before this text: `COMM invoked oom-killer`, `COMM: page allocation failure`.
    CommBefore(&'static str),
    /// `PID: N Comm: NAME`, the oops' way.
    Oops,
}

const fn rule(class: Class, at: At, text: &'static str, who: Who) -> Rule {
    Rule { class, at, text, with: &[], who, role: Role::Line }
}

impl Rule {
    const fn with(mut self, with: &'static [&'static str]) -> Self {
        self.with = with;
        self
    }
    const fn head(mut self) -> Self {
        self.role = Role::Head;
        self
    }
    const fn follow(mut self) -> Self {
        self.role = Role::Follow;
        self
    }
    const fn detail(mut self) -> Self {
        self.role = Role::Detail;
        self
    }
    const fn summary(mut self) -> Self {
        self.role = Role::Summary;
        self
    }
}

use At::{Start, Word};
use Who::{After, Bracket, CommBefore, First, Nobody, Paren, Process, Second, Task, Watchdog};

const LOST: &[&str] =
    &["error", "rror", "ailed", "orrupt", "annot", "bort", "read-only", "lost", "loss", "nconsistent"];
const XFS: &[&str] = &[
    "rror",
    "orrupt",
    "hutting down",
    "hutdown",
    "failed",
    "nmount and run",
    "deadlock",
    "Filesystem has been shut",
];
const BTRFS: &[&str] = &[
    "rror",
    "critical",
    "forced readonly",
    "csum failed",
    "orrupt",
    "checksum error",
    "checksum verify failed",
    "failed",
];

/// Every kind of message this program knows, in the order of precedence.
pub const RULES: &[Rule] = &[
    // Tasks that hang.
    rule(HungTask, Start, "INFO: task ", Task)
        .with(&[" blocked for more than ", " can't die for more than "])
        .head(),
    rule(HungTask, Start, "INFO: task ", Task).with(&[" blocked on a", " blocked on an"]).follow(),
    rule(HungTask, Start, "Future hung task reports are suppressed", Nobody),
    // CPUs that hang.
    rule(Lockup, Word, "BUG: soft lockup - CPU#", Watchdog).head(),
    rule(Lockup, Word, "BUG: workqueue lockup", Nobody).head(),
    rule(Lockup, Word, "Watchdog detected hard LOCKUP", Nobody).head(),
    rule(Lockup, Word, "hard LOCKUP", Nobody).head(),
    rule(Lockup, Word, "INFO: rcu", Nobody).with(&["stall"]).head(),
    rule(Lockup, Start, "rcu: ", Nobody).with(&["starved", "stall"]).follow(),
    rule(Lockup, Start, "rcu: ", Nobody).detail(),
    rule(Lockup, Word, "workqueue: ", Nobody).with(&["hogged CPU"]),
    // File systems. Before the I/O errors: their lines quote one.
    rule(Other, Start, "EXT4-fs (", Paren).with(&["mounted filesystem", "re-mounted", ": mounting "]),
    rule(Other, Start, "EXT3-fs (", Paren).with(&["mounted filesystem", ": mounting "]),
    rule(Filesystem, Start, "EXT4-fs error", Paren),
    rule(Filesystem, Start, "EXT4-fs warning", Paren),
    rule(Filesystem, Start, "EXT4-fs", Paren).with(LOST),
    rule(Filesystem, Start, "EXT3-fs", Paren).with(LOST),
    rule(Filesystem, Start, "EXT2-fs", Paren).with(LOST),
    rule(Filesystem, Start, "Aborting journal on device ", After("on device ")),
    rule(Filesystem, Start, "JBD2: ", After(" for ")).with(LOST),
    rule(Filesystem, Start, "JBD2: ", After(" on ")).with(&["etected"]),
    rule(Filesystem, Start, "journal commit I/O error", Nobody),
    rule(Filesystem, Start, "XFS (", Paren).with(XFS),
    rule(Filesystem, Start, "XFS: ", Nobody).with(&["deadlock", "rror"]),
    rule(Filesystem, Start, "BTRFS", Paren).with(BTRFS),
    rule(Filesystem, Start, "F2FS-fs", Paren).with(LOST),
    rule(Filesystem, Start, "FAT-fs", Paren).with(LOST),
    rule(Filesystem, Start, "exFAT-fs", Paren).with(LOST),
    rule(Filesystem, Start, "ntfs3: ", After("ntfs3: ")).with(LOST),
    rule(Filesystem, Start, "SQUASHFS error", Nobody),
    rule(Filesystem, Start, "EROFS", Nobody).with(LOST),
    rule(Filesystem, Start, "erofs", Paren).with(LOST),
    rule(Filesystem, Start, "UBIFS error", Nobody),
    rule(Filesystem, Start, "bcachefs", Paren).with(LOST),
    rule(Filesystem, Start, "REISERFS", Nobody).with(LOST),
    rule(Filesystem, Start, "gfs2: ", Nobody).with(&["withdraw", "rror"]),
    rule(Filesystem, Start, "OCFS2: ", Paren).with(LOST),
    rule(Filesystem, Word, "Remounting filesystem read-only", Paren),
    rule(Filesystem, Word, "Remounting file system read-only", Paren),
    // Requests and links that time out; before the I/O errors that they end in.
    rule(ResetTimeout, Start, "nvme nvme", Second).with(&[
        "timeout",
        "Abort status",
        "controller is down",
        "not ready",
        "reset",
        "Removing after probe failure",
        "frozen state",
        "Disabling device",
        "failed to",
        "failed nvme_",
    ]),
    rule(ResetTimeout, Start, "nvme ", Second).with(&["timeout", "controller is down", "AER:"]),
    rule(ResetTimeout, Start, "ata", First).with(&["exception Emask"]).head(),
    rule(ResetTimeout, Start, "ata", First)
        .with(&[
            "failed command",
            "resetting link",
            "revalidation failed",
            "link is slow",
            "limiting SATA link",
            "disable",
            "not ready",
            "softreset failed",
            "hardreset failed",
            "COMRESET failed",
            "qc timeout",
            "timed out",
            "NCQ disabled",
            "failed to IDENTIFY",
        ])
        .follow(),
    rule(ResetTimeout, Start, "ata", First)
        .with(&[
            "SError:",
            "irq_stat",
            ": cmd ",
            "status: {",
            "error: {",
            "EH complete",
            "link down",
            "link up",
            "configured for",
        ])
        .detail(),
    rule(ResetTimeout, Start, "sd ", Bracket).with(&[
        "timing out command",
        "ABORT",
        "bort",
        "RESET",
        "eset",
        "evice offlined",
        "offline device",
        "killing request",
    ]),
    rule(ResetTimeout, Start, "scsi ", Bracket).with(&[
        "timing out",
        "bort",
        "RESET",
        "eset",
        "offlined",
        "offline device",
        "host is dead",
    ]),
    rule(ResetTimeout, Start, "mpt", First).with(&[
        "task abort",
        "evice reset",
        "arget reset",
        "ost reset",
        "us reset",
        "fault_state",
        "diag reset",
        "SMP command timeout",
        "log_info",
        "LogInfo",
    ]),
    rule(ResetTimeout, Start, "megaraid_sas ", Second).with(&[
        "reset",
        "Reset",
        "RESET",
        "timed out",
        "FW in FAULT",
        "waiting for",
    ]),
    rule(ResetTimeout, Start, "megasas", First).with(&["reset", "RESET", "waiting for", "FW"]),
    rule(ResetTimeout, Start, "aacraid", First).with(&["bort", "eset"]),
    rule(ResetTimeout, Start, "hpsa ", Second).with(&["eset", "bort", "lockup"]),
    rule(ResetTimeout, Start, "smartpqi ", Second).with(&["eset", "bort", "offline", "lockup"]),
    rule(ResetTimeout, Start, "mmc", First).with(&["imeout", "rror", "reset"]),
    rule(ResetTimeout, Start, "virtio_blk ", Second).with(&["imeout", "imed out"]),
    rule(ResetTimeout, Start, "xen_blkfront", Nobody).with(&["rror", "imeout"]),
    rule(ResetTimeout, Start, "block ", Second).with(&["imed out", "imeout", "Receive control failed"]),
    rule(ResetTimeout, Start, "nbd", First).with(&[
        "imed out",
        "imeout",
        "shutting down",
        "closed",
        "failed",
    ]),
    rule(ResetTimeout, Start, "usb ", Second).with(&["reset ", "device descriptor read"]),
    rule(ResetTimeout, Start, "rport-", First).with(&["blocked FC remote port time out", "time out"]),
    rule(ResetTimeout, Start, "connection", First).with(&[
        "ping timeout",
        "detected conn error",
        "session recovery timed out",
    ]),
    rule(ResetTimeout, Start, "session", First).with(&["session recovery timed out"]),
    rule(ResetTimeout, Word, "rejecting I/O to offline device", Second),
    rule(ResetTimeout, Word, "rejecting I/O to dead device", Second),
    // Requests that failed.
    rule(IoError, Start, "I/O error, dev ", After("dev ")),
    rule(IoError, Start, "blk_update_request: ", After("dev ")).with(&["error", "timeout"]),
    rule(IoError, Start, "print_req_error: ", After("dev ")).with(&["error", "timeout"]),
    rule(IoError, Start, "end_request: ", After("dev ")).with(&["error", "timeout"]),
    rule(IoError, Start, "Buffer I/O error on dev ", After("dev ")),
    rule(IoError, Start, "Buffer I/O error on device ", After("device ")),
    rule(IoError, Start, "lost page write due to ", After(" on ")),
    rule(IoError, Start, "critical ", After("dev ")).with(&["error, dev "]),
    rule(IoError, Start, "recovered ", After("dev ")).with(&["error, dev "]),
    rule(IoError, Start, "timeout error, dev ", After("dev ")),
    rule(IoError, Start, "device offline error, dev ", After("dev ")),
    rule(IoError, Start, "protection error, dev ", After("dev ")),
    rule(IoError, Start, "reservation conflict error, dev ", After("dev ")),
    rule(IoError, Word, "error, dev ", After("dev ")).with(&[", sector "]),
    rule(IoError, Start, "nvme", First).with(&["I/O Error", "I/O error", "(sct 0x"]),
    rule(Other, Start, "sd ", Bracket).with(&["Asking for cache data failed"]),
    rule(IoError, Start, "sd ", Bracket).with(&["FAILED Result"]).head(),
    rule(IoError, Start, "sd ", Bracket).with(&["Sense Key", "Add. Sense", "CDB:", "Sense:"]).follow(),
    rule(IoError, Start, "sd ", Bracket).with(&[
        "nhandled error",
        "nhandled sense",
        "failed",
        "Media removed",
    ]),
    rule(IoError, Start, "md/", After(" on ")).with(&["Disk failure on", "read error", "uncorrectable"]),
    rule(IoError, Start, "md/", First).with(&["rror", "cannot", "failed", "Too many"]),
    rule(IoError, Start, "md: ", Nobody).with(&["rror", "failed", "kicking", "super_written"]),
    rule(IoError, Start, "raid", Nobody).with(&["Disk failure"]),
    rule(IoError, Start, "device-mapper: ", After("Failing path ")).with(&["Failing path "]),
    rule(IoError, Start, "device-mapper: ", After("Reinstating path ")).with(&["Reinstating path "]),
    rule(IoError, Start, "device-mapper: ", Nobody)
        .with(&["rror", "ailed", "nvalid", "corrupt", "out of", "no free"]),
    rule(IoError, Start, "loop: ", After("at byte offset ")).with(&["rite error"]),
    rule(IoError, Start, "bcache: ", After("on ")).with(&["rror"]),
    rule(IoError, Start, "drbd ", Second).with(&["rror", "ailed"]),
    rule(IoError, Start, "zram", First).with(&["rror", "failed"]),
    rule(IoError, Start, "Read-error on swap-device ", After("swap-device (")),
    rule(IoError, Start, "Write-error on swap-device ", After("swap-device (")),
    rule(IoError, Start, "Direct I/O error", Nobody),
    rule(IoError, Start, "dax: ", Nobody).with(&["rror"]),
    // Memory that runs out.
    rule(Oom, Word, "invoked oom-killer", CommBefore(" invoked oom-killer")).head(),
    rule(Oom, Word, "page allocation failure", CommBefore(": page allocation failure")).head(),
    rule(Oom, Start, "oom-kill:", Nobody).follow(),
    rule(Oom, Start, "Out of memory", Process).with(&["ill process", "illed process"]).summary(),
    rule(Oom, Start, "Memory cgroup out of memory", Process)
        .with(&["ill process", "illed process"])
        .summary(),
    rule(Oom, Start, "Killed process ", Process).follow(),
    rule(Oom, Start, "oom_reaper: ", Process).follow(),
    rule(Oom, Start, "Out of memory", Nobody),
    rule(Oom, Start, "Memory cgroup out of memory", Nobody),
    rule(Oom, Start, "Tasks in ", Nobody).with(&["oom.group"]).follow(),
    rule(Oom, Word, "SLUB: Unable to allocate memory", Nobody).head(),
    // Hardware that reports errors.
    rule(MemoryError, Start, "mce: [Hardware Error]", Nobody).with(&["events logged"]).head(),
    rule(MemoryError, Start, "mce: [Hardware Error]", Nobody).follow(),
    rule(MemoryError, Start, "[Hardware Error]", Nobody).follow(),
    rule(MemoryError, Start, "{", Nobody).with(&["[Hardware Error]"]).follow(),
    rule(MemoryError, Start, "EDAC ", Nobody).with(&[" CE ", " UE "]).head(),
    rule(MemoryError, Start, "EDAC ", Nobody)
        .with(&["HANDLING MCE", "Machine Check Event", "TSC ", "ADDR ", "MISC ", "PROCESSOR ", "rror"])
        .follow(),
    rule(MemoryError, Start, "CE memory ", Nobody).with(&["error"]),
    rule(MemoryError, Start, "Memory failure: ", Nobody),
    rule(MemoryError, Start, "Machine check", Nobody).with(&["rror", "vents logged"]),
    rule(MemoryError, Start, "pcieport ", Second).with(&["AER:", "rror"]),
    // Servers that do not answer.
    rule(NetworkFs, Start, "nfs: server ", After("server ")),
    rule(NetworkFs, Start, "NFS: ", Nobody).with(&["rror", "failed", "timed out", "expired", "lost"]),
    rule(NetworkFs, Start, "NFS4: ", Nobody).with(&["rror", "failed"]),
    rule(NetworkFs, Start, "lockd: server ", After("server ")),
    rule(NetworkFs, Start, "CIFS: ", After("\\\\")).with(&[
        "not responded",
        "rror",
        "Reconnect",
        "Send error",
        "failed",
    ]),
    rule(NetworkFs, Start, "CIFS VFS: ", After("Server ")).with(&[
        "not responded",
        "rror",
        "econnect",
        "failed",
    ]),
    rule(NetworkFs, Start, "ceph: ", Nobody).with(&[
        "rror",
        "failed",
        "reconnect",
        "hung",
        "stale",
        "evicted",
        "blocklisted",
    ]),
    rule(NetworkFs, Start, "libceph: ", Nobody).with(&[
        "down",
        "rror",
        "lost",
        "timeout",
        "socket closed",
        "hunting",
    ]),
    rule(NetworkFs, Start, "rbd: ", After("rbd: ")).with(&["rror", "timed out", "failed"]),
    rule(NetworkFs, Start, "9pnet: ", Nobody).with(&["rror", "failed"]),
    // The kernel itself.
    rule(Oops, Start, "BUG: ", Nobody).head(),
    rule(Oops, Word, "Oops: ", Nobody).follow(),
    rule(Oops, Start, "general protection fault", Nobody).head(),
    rule(Oops, Start, "divide error:", Nobody).head(),
    rule(Oops, Start, "invalid opcode:", Nobody).follow(),
    rule(Oops, Start, "kernel BUG at ", Nobody).head(),
    rule(Oops, Start, "Unable to handle kernel ", Nobody).head(),
    rule(Oops, Start, "Internal error: ", Nobody).follow(),
    rule(Oops, Start, "WARNING: CPU: ", Who::Oops).head(),
    rule(Oops, Start, "WARNING: ", Nobody).with(&[" at "]).head(),
    rule(Oops, Start, "Kernel panic - not syncing", Nobody).head(),
    // Heat.
    rule(Thermal, Word, "temperature above threshold", Nobody),
    rule(Thermal, Word, "clock throttled", Nobody),
    rule(Thermal, Word, "critical temperature reached", Nobody),
];

/// What the kernel's rate limiter calls the functions whose lines it holds back
/// (`NAME: N callbacks suppressed`, lib/ratelimit.c).
pub const LIMITERS: &[(&str, Class)] = &[
    ("blk_update_request", IoError),
    ("print_req_error", IoError),
    ("blk_print_req_error", IoError),
    ("buffer_io_error", IoError),
    ("quiet_error", IoError),
    ("nvme_log_error", IoError),
    ("nvme_log_err_passthru", IoError),
    ("scsi_io_completion", IoError),
    ("sd_", IoError),
    ("swap_", IoError),
    ("EXT4-fs", Filesystem),
    ("ext4", Filesystem),
    ("XFS", Filesystem),
    ("xfs", Filesystem),
    ("BTRFS", Filesystem),
    ("btrfs", Filesystem),
    ("F2FS", Filesystem),
    ("f2fs", Filesystem),
    ("nvme", ResetTimeout),
    ("ata_", ResetTimeout),
    ("mpt3sas", ResetTimeout),
    ("warn_alloc", Oom),
    ("rpc_", NetworkFs),
    ("nfs", NetworkFs),
    ("cifs", NetworkFs),
    ("mce", MemoryError),
    ("edac", MemoryError),
];

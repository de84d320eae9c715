//! The rules that classify kernel messages: one table, one row per kind of message.
//!
//! Texts are the kernel's format strings (kernel/hung_task.c, block/blk-core.c, fs/buffer.c,
//! fs/ext4/super.c, fs/jbd2, fs/xfs/xfs_message.c, fs/btrfs/messages.c, drivers/nvme/host, drivers/ata,
//! drivers/scsi, drivers/md, mm/oom_kill.c, kernel/watchdog.c, kernel/rcu/tree_stall.h, net/sunrpc,
//! fs/smb/client), including older versions; node-problem-detector's kernel-monitor.json is covered.
//!
//! A row has a literal that must start at the start of a word; [`super::classify`] finds all literals in
//! one pass over the line. The first matching row wins.

use super::KernelLogClass::{self, *};

/// One kind of message.
#[derive(Debug)]
pub struct MessageRule {
    /// Class of the message.
    pub class: KernelLogClass,
    /// Where `text` must be.
    pub position: MatchPosition,
    /// The literal that identifies the message.
    pub text: &'static str,
    /// One of these must follow `text`; nothing if empty.
    pub requires_any: &'static [&'static str],
    /// Where the device or the task is named.
    pub subject: SubjectPattern,
    /// Role in a message of several lines.
    pub role: MessageRole,
}

/// Where a rule's text must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchPosition {
    /// At the start of the message, after blanks: iSCSI and FC print one before the name.
    MessageStart,
    /// At the start of any word.
    WordStart,
}

/// Role of a line in a message of several lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageRole {
    /// A single line.
    Single,
    /// The first of several: stack trace, registers, tables and [`MessageRole::Continuation`] lines fold under it.
    Head,
    /// Folds under an open head of the same class (and device); a single line if there is none.
    Continuation,
    /// As `Continuation`, but meaningless by itself: without an open head it stays `other`.
    RoutineContinuation,
    /// As `Head`, but more informative than the open head: replaces it and folds it.
    Summary,
}

/// Where a message names its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubjectPattern {
    /// Nowhere.
    Unnamed,
    /// The device is the word after this text.
    WordAfter(&'static str),
    /// The device is the first word: `ata4.00: ...`, `nvme0n1: ...`.
    FirstWord,
    /// The device is the second word: `nvme nvme0: ...`.
    SecondWord,
    /// The device is in square brackets: `sd 0:0:0:0: [sda] ...`; else the second word.
    InBrackets,
    /// The device is in the first parentheses, `device ` before it or not: `XFS (sda1): ...`.
    InParentheses,
    /// `task COMM:PID ...`, as the hung task detector prints it.
    TaskCommPid,
    /// `process PID (COMM)`, as the OOM killer prints it.
    ProcessPidComm,
    /// `[COMM:PID]`, as the watchdog prints it.
    Watchdog,
    /// The comm before this text: `COMM invoked oom-killer`, `COMM: page allocation failure`.
    CommBefore(&'static str),
    /// `PID: N Comm: NAME`, as an oops prints it.
    Oops,
}

const fn rule(class: KernelLogClass, at: MatchPosition, text: &'static str, who: SubjectPattern) -> MessageRule {
    MessageRule { class, position: at, text, requires_any: &[], subject: who, role: MessageRole::Single }
}

impl MessageRule {
    const fn requiring_any(mut self, with: &'static [&'static str]) -> Self {
        self.requires_any = with;
        self
    }
    const fn with_role(mut self, role: MessageRole) -> Self {
        self.role = role;
        self
    }
}

use MatchPosition::{MessageStart, WordStart};
use SubjectPattern::{
    CommBefore, FirstWord, InBrackets, InParentheses, ProcessPidComm, SecondWord, TaskCommPid, Unnamed, Watchdog,
    WordAfter,
};

const ERROR_WORDS: &[&str] =
    &["error", "rror", "ailed", "orrupt", "annot", "bort", "read-only", "lost", "loss", "nconsistent"];
const XFS_ERROR_WORDS: &[&str] =
    &["rror", "orrupt", "hutting down", "hutdown", "failed", "nmount and run", "deadlock", "Filesystem has been shut"];
const BTRFS_ERROR_WORDS: &[&str] = &[
    "rror",
    "critical",
    "forced readonly",
    "csum failed",
    "orrupt",
    "checksum error",
    "checksum verify failed",
    "failed",
];

/// Every kind of message, in the order of precedence.
pub const RULES: &[MessageRule] = &[
    // Hung tasks.
    rule(HungTask, MessageStart, "INFO: task ", TaskCommPid)
        .requiring_any(&[" blocked for more than ", " can't die for more than "])
        .with_role(MessageRole::Head),
    rule(HungTask, MessageStart, "INFO: task ", TaskCommPid)
        .requiring_any(&[" blocked on a", " blocked on an"])
        .with_role(MessageRole::Continuation),
    rule(HungTask, MessageStart, "Future hung task reports are suppressed", Unnamed),
    // Hung CPUs.
    rule(Lockup, WordStart, "BUG: soft lockup - CPU#", Watchdog).with_role(MessageRole::Head),
    rule(Lockup, WordStart, "BUG: workqueue lockup", Unnamed).with_role(MessageRole::Head),
    rule(Lockup, WordStart, "Watchdog detected hard LOCKUP", Unnamed).with_role(MessageRole::Head),
    rule(Lockup, WordStart, "hard LOCKUP", Unnamed).with_role(MessageRole::Head),
    rule(Lockup, WordStart, "INFO: rcu", Unnamed).requiring_any(&["stall"]).with_role(MessageRole::Head),
    rule(Lockup, MessageStart, "rcu: ", Unnamed)
        .requiring_any(&["starved", "stall"])
        .with_role(MessageRole::Continuation),
    rule(Lockup, MessageStart, "rcu: ", Unnamed).with_role(MessageRole::RoutineContinuation),
    rule(Lockup, WordStart, "workqueue: ", Unnamed).requiring_any(&["hogged CPU"]),
    // File systems. Before the I/O errors, because their lines quote one.
    rule(Other, MessageStart, "EXT4-fs (", InParentheses).requiring_any(&[
        "mounted filesystem",
        "re-mounted",
        ": mounting ",
    ]),
    rule(Other, MessageStart, "EXT3-fs (", InParentheses).requiring_any(&["mounted filesystem", ": mounting "]),
    rule(Filesystem, MessageStart, "EXT4-fs error", InParentheses),
    rule(Filesystem, MessageStart, "EXT4-fs warning", InParentheses),
    rule(Filesystem, MessageStart, "EXT4-fs", InParentheses).requiring_any(ERROR_WORDS),
    rule(Filesystem, MessageStart, "EXT3-fs", InParentheses).requiring_any(ERROR_WORDS),
    rule(Filesystem, MessageStart, "EXT2-fs", InParentheses).requiring_any(ERROR_WORDS),
    rule(Filesystem, MessageStart, "Aborting journal on device ", WordAfter("on device ")),
    rule(Filesystem, MessageStart, "JBD2: ", WordAfter(" for ")).requiring_any(ERROR_WORDS),
    rule(Filesystem, MessageStart, "JBD2: ", WordAfter(" on ")).requiring_any(&["etected"]),
    rule(Filesystem, MessageStart, "journal commit I/O error", Unnamed),
    rule(Filesystem, MessageStart, "XFS (", InParentheses).requiring_any(XFS_ERROR_WORDS),
    rule(Filesystem, MessageStart, "XFS: ", Unnamed).requiring_any(&["deadlock", "rror"]),
    rule(Filesystem, MessageStart, "BTRFS", InParentheses).requiring_any(BTRFS_ERROR_WORDS),
    rule(Filesystem, MessageStart, "F2FS-fs", InParentheses).requiring_any(ERROR_WORDS),
    rule(Filesystem, MessageStart, "FAT-fs", InParentheses).requiring_any(ERROR_WORDS),
    rule(Filesystem, MessageStart, "exFAT-fs", InParentheses).requiring_any(ERROR_WORDS),
    rule(Filesystem, MessageStart, "ntfs3: ", WordAfter("ntfs3: ")).requiring_any(ERROR_WORDS),
    rule(Filesystem, MessageStart, "SQUASHFS error", Unnamed),
    rule(Filesystem, MessageStart, "EROFS", Unnamed).requiring_any(ERROR_WORDS),
    rule(Filesystem, MessageStart, "erofs", InParentheses).requiring_any(ERROR_WORDS),
    rule(Filesystem, MessageStart, "UBIFS error", Unnamed),
    rule(Filesystem, MessageStart, "bcachefs", InParentheses).requiring_any(ERROR_WORDS),
    rule(Filesystem, MessageStart, "REISERFS", Unnamed).requiring_any(ERROR_WORDS),
    rule(Filesystem, MessageStart, "gfs2: ", Unnamed).requiring_any(&["withdraw", "rror"]),
    rule(Filesystem, MessageStart, "OCFS2: ", InParentheses).requiring_any(ERROR_WORDS),
    rule(Filesystem, WordStart, "Remounting filesystem read-only", InParentheses),
    rule(Filesystem, WordStart, "Remounting file system read-only", InParentheses),
    // Timeouts of requests and links; before the I/O errors that they lead to.
    rule(ResetTimeout, MessageStart, "nvme nvme", SecondWord).requiring_any(&[
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
    rule(ResetTimeout, MessageStart, "nvme ", SecondWord).requiring_any(&["timeout", "controller is down", "AER:"]),
    rule(ResetTimeout, MessageStart, "ata", FirstWord).requiring_any(&["exception Emask"]).with_role(MessageRole::Head),
    rule(ResetTimeout, MessageStart, "ata", FirstWord)
        .requiring_any(&[
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
        .with_role(MessageRole::Continuation),
    rule(ResetTimeout, MessageStart, "ata", FirstWord)
        .requiring_any(&[
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
        .with_role(MessageRole::RoutineContinuation),
    rule(ResetTimeout, MessageStart, "sd ", InBrackets).requiring_any(&[
        "timing out command",
        "ABORT",
        "bort",
        "RESET",
        "eset",
        "evice offlined",
        "offline device",
        "killing request",
    ]),
    rule(ResetTimeout, MessageStart, "scsi ", InBrackets).requiring_any(&[
        "timing out",
        "bort",
        "RESET",
        "eset",
        "offlined",
        "offline device",
        "host is dead",
    ]),
    rule(ResetTimeout, MessageStart, "mpt", FirstWord).requiring_any(&[
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
    rule(ResetTimeout, MessageStart, "megaraid_sas ", SecondWord).requiring_any(&[
        "reset",
        "Reset",
        "RESET",
        "timed out",
        "FW in FAULT",
        "waiting for",
    ]),
    rule(ResetTimeout, MessageStart, "megasas", FirstWord).requiring_any(&["reset", "RESET", "waiting for", "FW"]),
    rule(ResetTimeout, MessageStart, "aacraid", FirstWord).requiring_any(&["bort", "eset"]),
    rule(ResetTimeout, MessageStart, "hpsa ", SecondWord).requiring_any(&["eset", "bort", "lockup"]),
    rule(ResetTimeout, MessageStart, "smartpqi ", SecondWord).requiring_any(&["eset", "bort", "offline", "lockup"]),
    rule(ResetTimeout, MessageStart, "mmc", FirstWord).requiring_any(&["imeout", "rror", "reset"]),
    rule(ResetTimeout, MessageStart, "virtio_blk ", SecondWord).requiring_any(&["imeout", "imed out"]),
    rule(ResetTimeout, MessageStart, "xen_blkfront", Unnamed).requiring_any(&["rror", "imeout"]),
    rule(ResetTimeout, MessageStart, "block ", SecondWord).requiring_any(&[
        "imed out",
        "imeout",
        "Receive control failed",
    ]),
    rule(ResetTimeout, MessageStart, "nbd", FirstWord).requiring_any(&[
        "imed out",
        "imeout",
        "shutting down",
        "closed",
        "failed",
    ]),
    rule(ResetTimeout, MessageStart, "usb ", SecondWord).requiring_any(&["reset ", "device descriptor read"]),
    rule(ResetTimeout, MessageStart, "rport-", FirstWord)
        .requiring_any(&["blocked FC remote port time out", "time out"]),
    rule(ResetTimeout, MessageStart, "connection", FirstWord).requiring_any(&[
        "ping timeout",
        "detected conn error",
        "session recovery timed out",
    ]),
    rule(ResetTimeout, MessageStart, "session", FirstWord).requiring_any(&["session recovery timed out"]),
    rule(ResetTimeout, WordStart, "rejecting I/O to offline device", SecondWord),
    rule(ResetTimeout, WordStart, "rejecting I/O to dead device", SecondWord),
    // Failed requests.
    rule(IoError, MessageStart, "I/O error, dev ", WordAfter("dev ")),
    rule(IoError, MessageStart, "blk_update_request: ", WordAfter("dev ")).requiring_any(&["error", "timeout"]),
    rule(IoError, MessageStart, "print_req_error: ", WordAfter("dev ")).requiring_any(&["error", "timeout"]),
    rule(IoError, MessageStart, "end_request: ", WordAfter("dev ")).requiring_any(&["error", "timeout"]),
    rule(IoError, MessageStart, "Buffer I/O error on dev ", WordAfter("dev ")),
    rule(IoError, MessageStart, "Buffer I/O error on device ", WordAfter("device ")),
    rule(IoError, MessageStart, "lost page write due to ", WordAfter(" on ")),
    rule(IoError, MessageStart, "critical ", WordAfter("dev ")).requiring_any(&["error, dev "]),
    rule(IoError, MessageStart, "recovered ", WordAfter("dev ")).requiring_any(&["error, dev "]),
    rule(IoError, MessageStart, "timeout error, dev ", WordAfter("dev ")),
    rule(IoError, MessageStart, "device offline error, dev ", WordAfter("dev ")),
    rule(IoError, MessageStart, "protection error, dev ", WordAfter("dev ")),
    rule(IoError, MessageStart, "reservation conflict error, dev ", WordAfter("dev ")),
    rule(IoError, WordStart, "error, dev ", WordAfter("dev ")).requiring_any(&[", sector "]),
    rule(IoError, MessageStart, "nvme", FirstWord).requiring_any(&["I/O Error", "I/O error", "(sct 0x"]),
    rule(Other, MessageStart, "sd ", InBrackets).requiring_any(&["Asking for cache data failed"]),
    rule(IoError, MessageStart, "sd ", InBrackets).requiring_any(&["FAILED Result"]).with_role(MessageRole::Head),
    rule(IoError, MessageStart, "sd ", InBrackets)
        .requiring_any(&["Sense Key", "Add. Sense", "CDB:", "Sense:"])
        .with_role(MessageRole::Continuation),
    rule(IoError, MessageStart, "sd ", InBrackets).requiring_any(&[
        "nhandled error",
        "nhandled sense",
        "failed",
        "Media removed",
    ]),
    rule(IoError, MessageStart, "md/", WordAfter(" on ")).requiring_any(&[
        "Disk failure on",
        "read error",
        "uncorrectable",
    ]),
    rule(IoError, MessageStart, "md/", FirstWord).requiring_any(&["rror", "cannot", "failed", "Too many"]),
    rule(IoError, MessageStart, "md: ", Unnamed).requiring_any(&["rror", "failed", "kicking", "super_written"]),
    rule(IoError, MessageStart, "raid", Unnamed).requiring_any(&["Disk failure"]),
    rule(IoError, MessageStart, "device-mapper: ", WordAfter("Failing path ")).requiring_any(&["Failing path "]),
    rule(IoError, MessageStart, "device-mapper: ", WordAfter("Reinstating path "))
        .requiring_any(&["Reinstating path "]),
    rule(IoError, MessageStart, "device-mapper: ", Unnamed)
        .requiring_any(&["rror", "ailed", "nvalid", "corrupt", "out of", "no free"]),
    rule(IoError, MessageStart, "loop: ", WordAfter("at byte offset ")).requiring_any(&["rite error"]),
    rule(IoError, MessageStart, "bcache: ", WordAfter("on ")).requiring_any(&["rror"]),
    rule(IoError, MessageStart, "drbd ", SecondWord).requiring_any(&["rror", "ailed"]),
    rule(IoError, MessageStart, "zram", FirstWord).requiring_any(&["rror", "failed"]),
    rule(IoError, MessageStart, "Read-error on swap-device ", WordAfter("swap-device (")),
    rule(IoError, MessageStart, "Write-error on swap-device ", WordAfter("swap-device (")),
    rule(IoError, MessageStart, "Direct I/O error", Unnamed),
    rule(IoError, MessageStart, "dax: ", Unnamed).requiring_any(&["rror"]),
    // Out of memory.
    rule(Oom, WordStart, "invoked oom-killer", CommBefore(" invoked oom-killer")).with_role(MessageRole::Head),
    rule(Oom, WordStart, "page allocation failure", CommBefore(": page allocation failure"))
        .with_role(MessageRole::Head),
    rule(Oom, MessageStart, "oom-kill:", Unnamed).with_role(MessageRole::Continuation),
    rule(Oom, MessageStart, "Out of memory", ProcessPidComm)
        .requiring_any(&["ill process", "illed process"])
        .with_role(MessageRole::Summary),
    rule(Oom, MessageStart, "Memory cgroup out of memory", ProcessPidComm)
        .requiring_any(&["ill process", "illed process"])
        .with_role(MessageRole::Summary),
    rule(Oom, MessageStart, "Killed process ", ProcessPidComm).with_role(MessageRole::Continuation),
    rule(Oom, MessageStart, "oom_reaper: ", ProcessPidComm).with_role(MessageRole::Continuation),
    rule(Oom, MessageStart, "Out of memory", Unnamed),
    rule(Oom, MessageStart, "Memory cgroup out of memory", Unnamed),
    rule(Oom, MessageStart, "Tasks in ", Unnamed).requiring_any(&["oom.group"]).with_role(MessageRole::Continuation),
    rule(Oom, WordStart, "SLUB: Unable to allocate memory", Unnamed).with_role(MessageRole::Head),
    // Hardware errors.
    rule(MemoryError, MessageStart, "mce: [Hardware Error]", Unnamed)
        .requiring_any(&["events logged"])
        .with_role(MessageRole::Head),
    rule(MemoryError, MessageStart, "mce: [Hardware Error]", Unnamed).with_role(MessageRole::Continuation),
    rule(MemoryError, MessageStart, "[Hardware Error]", Unnamed).with_role(MessageRole::Continuation),
    rule(MemoryError, MessageStart, "{", Unnamed)
        .requiring_any(&["[Hardware Error]"])
        .with_role(MessageRole::Continuation),
    rule(MemoryError, MessageStart, "EDAC ", Unnamed).requiring_any(&[" CE ", " UE "]).with_role(MessageRole::Head),
    rule(MemoryError, MessageStart, "EDAC ", Unnamed)
        .requiring_any(&["HANDLING MCE", "Machine Check Event", "TSC ", "ADDR ", "MISC ", "PROCESSOR ", "rror"])
        .with_role(MessageRole::Continuation),
    rule(MemoryError, MessageStart, "CE memory ", Unnamed).requiring_any(&["error"]),
    rule(MemoryError, MessageStart, "Memory failure: ", Unnamed),
    rule(MemoryError, MessageStart, "Machine check", Unnamed).requiring_any(&["rror", "vents logged"]),
    rule(MemoryError, MessageStart, "pcieport ", SecondWord).requiring_any(&["AER:", "rror"]),
    // Servers that do not answer.
    rule(NetworkFs, MessageStart, "nfs: server ", WordAfter("server ")),
    rule(NetworkFs, MessageStart, "NFS: ", Unnamed).requiring_any(&["rror", "failed", "timed out", "expired", "lost"]),
    rule(NetworkFs, MessageStart, "NFS4: ", Unnamed).requiring_any(&["rror", "failed"]),
    rule(NetworkFs, MessageStart, "lockd: server ", WordAfter("server ")),
    rule(NetworkFs, MessageStart, "CIFS: ", WordAfter("\\\\")).requiring_any(&[
        "not responded",
        "rror",
        "Reconnect",
        "Send error",
        "failed",
    ]),
    rule(NetworkFs, MessageStart, "CIFS VFS: ", WordAfter("Server ")).requiring_any(&[
        "not responded",
        "rror",
        "econnect",
        "failed",
    ]),
    rule(NetworkFs, MessageStart, "ceph: ", Unnamed).requiring_any(&[
        "rror",
        "failed",
        "reconnect",
        "hung",
        "stale",
        "evicted",
        "blocklisted",
    ]),
    rule(NetworkFs, MessageStart, "libceph: ", Unnamed).requiring_any(&[
        "down",
        "rror",
        "lost",
        "timeout",
        "socket closed",
        "hunting",
    ]),
    rule(NetworkFs, MessageStart, "rbd: ", WordAfter("rbd: ")).requiring_any(&["rror", "timed out", "failed"]),
    rule(NetworkFs, MessageStart, "9pnet: ", Unnamed).requiring_any(&["rror", "failed"]),
    // Bugs of the kernel.
    rule(Oops, MessageStart, "BUG: ", Unnamed).with_role(MessageRole::Head),
    rule(Oops, WordStart, "Oops: ", Unnamed).with_role(MessageRole::Continuation),
    rule(Oops, MessageStart, "general protection fault", Unnamed).with_role(MessageRole::Head),
    rule(Oops, MessageStart, "divide error:", Unnamed).with_role(MessageRole::Head),
    rule(Oops, MessageStart, "invalid opcode:", Unnamed).with_role(MessageRole::Continuation),
    rule(Oops, MessageStart, "kernel BUG at ", Unnamed).with_role(MessageRole::Head),
    rule(Oops, MessageStart, "Unable to handle kernel ", Unnamed).with_role(MessageRole::Head),
    rule(Oops, MessageStart, "Internal error: ", Unnamed).with_role(MessageRole::Continuation),
    rule(Oops, MessageStart, "WARNING: CPU: ", SubjectPattern::Oops).with_role(MessageRole::Head),
    rule(Oops, MessageStart, "WARNING: ", Unnamed).requiring_any(&[" at "]).with_role(MessageRole::Head),
    rule(Oops, MessageStart, "Kernel panic - not syncing", Unnamed).with_role(MessageRole::Head),
    // Overheating.
    rule(Thermal, WordStart, "temperature above threshold", Unnamed),
    rule(Thermal, WordStart, "clock throttled", Unnamed),
    rule(Thermal, WordStart, "critical temperature reached", Unnamed),
];

/// Names under which the kernel's rate limiter reports suppressed lines
/// (`NAME: N callbacks suppressed`, lib/ratelimit.c).
pub const RATE_LIMITED_FUNCTIONS: &[(&str, KernelLogClass)] = &[
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

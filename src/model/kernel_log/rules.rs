//! The rules that classify kernel messages: one table, one row per kind of message.
//!
//! Texts are the kernel's format strings (kernel/hung_task.c, block/blk-core.c, fs/buffer.c,
//! fs/ext4/super.c, fs/jbd2, fs/xfs/xfs_message.c, fs/btrfs/messages.c, drivers/nvme/host, drivers/ata,
//! drivers/scsi, drivers/md, mm/oom_kill.c, kernel/watchdog.c, kernel/rcu/tree_stall.h, net/sunrpc,
//! fs/smb/client), including older versions; node-problem-detector's kernel-monitor.json is covered.
//!
//! The first matching row wins.

use super::KernelLogClass::{self, *};

/// One kind of message.
#[derive(Debug)]
pub(crate) struct MessageRule {
    pub class: KernelLogClass,
    /// Where its text is in the message.
    pub position: TextPosition,
    /// The texts that identify the message, separated by `|`.
    pub texts: &'static str,
    /// One of these must follow, separated by `|`; nothing if empty.
    pub requires_any: &'static str,
    /// Whether the message has its device in parentheses, and a colon or ` in ` after them. The name of a process may begin
    /// like that of a file system, but then `[PID]: ` or the like follows.
    pub has_device_first: bool,
    /// Where the device or the task is named.
    pub subject: SubjectPattern,
    /// Role in a message of several lines.
    pub role: MessageRole,
}

/// Where the identifying text of a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextPosition {
    /// At the start.
    Start,
    /// After the comm of a process, which may contain any text.
    AfterComm,
    /// At the start of any word.
    AnyWord,
}

/// What may precede a text that follows a comm: `traps: `, 15 bytes of the comm, ` (` or `[`, a process id.
const MAX_COMM_END: usize = 7 + 15 + 2 + 10;

/// Role of a line in a message of several lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageRole {
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
pub(crate) enum SubjectPattern {
    Unnamed,
    /// The device is the word after this text.
    WordAfter(&'static str),
    /// The journal is the word after this text: a device, and the journal's inode.
    JournalAfter(&'static str),
    /// `(major:minor:sector)`, a device number.
    SwapNumber,
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

/// A message that starts with one of these texts, after blanks: iSCSI and FC print one before the name.
const fn start(class: KernelLogClass, texts: &'static str, subject: SubjectPattern) -> MessageRule {
    MessageRule {
        class,
        position: TextPosition::Start,
        texts,
        requires_any: "",
        has_device_first: false,
        subject,
        role: MessageRole::Single,
    }
}

/// A message that starts with the comm of a process, followed by one of these texts.
const fn after_comm(class: KernelLogClass, texts: &'static str, subject: SubjectPattern) -> MessageRule {
    MessageRule { position: TextPosition::AfterComm, ..start(class, texts, subject) }
}

/// A message of a file system that starts with one of these texts and then its device: `XFS (sda1): ...`,
/// `EXT4-fs error (device sda1): ...`, `EXT4-fs error (device sda1) in ...`.
const fn file_system(class: KernelLogClass, texts: &'static str) -> MessageRule {
    MessageRule { has_device_first: true, ..start(class, texts, SubjectPattern::InParentheses) }
}

/// A message with one of these texts at the start of a word.
const fn word(class: KernelLogClass, texts: &'static str, subject: SubjectPattern) -> MessageRule {
    MessageRule { position: TextPosition::AnyWord, ..start(class, texts, subject) }
}

impl MessageRule {
    const fn any(self, requires_any: &'static str) -> Self {
        Self { requires_any, ..self }
    }
    const fn head(self) -> Self {
        Self { role: MessageRole::Head, ..self }
    }
    const fn continuation(self) -> Self {
        Self { role: MessageRole::Continuation, ..self }
    }
    const fn routine(self) -> Self {
        Self { role: MessageRole::RoutineContinuation, ..self }
    }
    const fn summary(self) -> Self {
        Self { role: MessageRole::Summary, ..self }
    }

    /// What follows the identifying text, if the message is of this kind.
    pub(super) fn find_in<'m>(&self, message: &'m [u8]) -> Option<&'m [u8]> {
        let last = match self.position {
            TextPosition::Start => 0,
            TextPosition::AfterComm => message.len().min(MAX_COMM_END),
            TextPosition::AnyWord => message.len(),
        };
        let is_in_word = |at: usize| at.checked_sub(1).is_some_and(|before| message[before].is_ascii_alphanumeric());
        let may_start = |at: &usize| self.position != TextPosition::AnyWord || !is_in_word(*at);
        let has_device = |_: &usize| !self.has_device_first || has_closed_parentheses(message);
        self.texts.split('|').find_map(|text| {
            let found = |at: &usize| message[*at..].starts_with(text.as_bytes());
            // The last byte of the text may be the first of what is required.
            let fits = |at: &usize| self.is_satisfied_by(&message[at + text.len() - 1..]);
            let at = (0..=last).filter(may_start).filter(found).filter(has_device).find(fits)?;
            Some(&message[at + text.len()..])
        })
    }

    fn is_satisfied_by(&self, rest: &[u8]) -> bool {
        self.requires_any.is_empty() || self.requires_any.split('|').any(|word| contains_word(rest, word))
    }
}

/// Whether a word of `text` starts with `needle`, or does so after its first letter: `rror` is in `error` and `Error`,
/// not in `mirror`. A needle that starts with punctuation may be anywhere.
fn contains_word(text: &[u8], needle: &str) -> bool {
    let is_letter = |at: Option<usize>| at.is_some_and(|at| text[at].is_ascii_alphabetic());
    let starts_word = |at: usize| !is_letter(at.checked_sub(1)) || !is_letter(at.checked_sub(2));
    let is_free = !needle.starts_with(|c: char| c.is_ascii_alphabetic());
    let found = text.windows(needle.len()).enumerate().filter(|(_, part)| *part == needle.as_bytes());
    found.into_iter().any(|(at, _)| is_free || starts_word(at))
}

/// Whether `: ` or ` in ` follows the first parentheses, as in `XFS (sda1): ...`; not so in `XFS (sda1)[42]: ...`.
fn has_closed_parentheses(message: &[u8]) -> bool {
    let inside = index_after(message, "(").map(|open| &message[open..]);
    let after = inside.and_then(|inside| Some(&inside[index_after(inside, ")")?..]));
    after.is_some_and(|after| after.starts_with(b": ") || after.starts_with(b" in "))
}

/// The position after the first `needle` in `text`.
pub(super) fn index_after(text: &[u8], needle: &str) -> Option<usize> {
    text.windows(needle.len()).position(|part| part == needle.as_bytes()).map(|at| at + needle.len())
}

use SubjectPattern::{
    CommBefore, FirstWord, InBrackets, InParentheses, JournalAfter, ProcessPidComm, SecondWord, SwapNumber,
    TaskCommPid, Unnamed, Watchdog, WordAfter,
};

const ERROR_WORDS: &str = "error|rror|ailed|orrupt|annot|bort|read-only|lost|loss|nconsistent";
const XFS_ERROR_WORDS: &str =
    "rror|orrupt|hutting down|hutdown|failed|nmount and run|deadlock|Filesystem has been shut";
const BTRFS_ERROR_WORDS: &str =
    "rror|critical|forced readonly|csum failed|orrupt|checksum error|checksum verify failed|failed";

/// Every kind of message, in the order of precedence.
pub(crate) const RULES: &[MessageRule] = &[
    // Hung tasks.
    start(HungTask, "INFO: task ", TaskCommPid).any(" blocked for more than | can't die for more than ").head(),
    start(HungTask, "INFO: task ", TaskCommPid).any(" blocked on a| blocked on an").continuation(),
    start(HungTask, "Future hung task reports are suppressed", Unnamed),
    // What starts with the comm of a process, which may look like the start of any message below: signals that end a
    // process, as the architectures print them, and allocations that fail.
    after_comm(
        Other,
        "]: segfault |] trap |] general protection|]: unhandled signal |]: unhandled exception|]: potentially unexpected \
         fatal signal |: unhandled page fault (|] bad frame in |]: bad frame in |): drop_caches: ",
        Unnamed,
    ),
    after_comm(Oom, " invoked oom-killer", CommBefore(" invoked oom-killer")).head(),
    after_comm(Oom, ": page allocation failure", CommBefore(": page allocation failure")).head(),
    after_comm(Oom, ": vmalloc error", CommBefore(": vmalloc error")).head(),
    // Hung CPUs.
    word(Lockup, "BUG: soft lockup - CPU#", Watchdog).head(),
    word(Lockup, "BUG: workqueue lockup|Watchdog detected hard LOCKUP|hard LOCKUP", Unnamed).head(),
    word(Lockup, "INFO: rcu", Unnamed).any("stall").head(),
    start(Lockup, "rcu: ", Unnamed).any("starved|stall").continuation(),
    start(Lockup, "rcu: ", Unnamed).routine(),
    word(Lockup, "workqueue: ", Unnamed).any("hogged CPU"),
    // File systems. Before the I/O errors, because their lines quote one.
    file_system(Other, "EXT4-fs (").any("mounted filesystem|re-mounted|: mounting "),
    file_system(Other, "EXT3-fs (").any("mounted filesystem|: mounting "),
    // What ext4 says once a day of errors that it recorded before, maybe years ago (print_daily_error_info).
    file_system(Other, "EXT4-fs (").any("error count since last fsck|error count: |initial error at |last error at "),
    file_system(Filesystem, "EXT4-fs error (|EXT4-fs warning (|EXT3-fs error (|EXT2-fs error ("),
    file_system(Filesystem, "EXT4-fs (|EXT3-fs (|EXT2-fs (|EXT3-fs warning (").any(ERROR_WORDS),
    start(Filesystem, "Aborting journal on device ", JournalAfter("on device ")),
    start(Filesystem, "JBD2: ", JournalAfter(" for ")).any(ERROR_WORDS),
    start(Filesystem, "JBD2: ", JournalAfter(" on ")).any("etected"),
    start(Filesystem, "journal commit I/O error", Unnamed),
    file_system(Filesystem, "XFS (").any(XFS_ERROR_WORDS),
    start(Filesystem, "XFS: ", Unnamed).any("deadlock|rror"),
    // The counts of errors of the past, printed at the mount (btrfs_init_dev_stats). New errors are no information.
    file_system(Other, "BTRFS info (").any("errs: wr "),
    file_system(Filesystem, "BTRFS").any(BTRFS_ERROR_WORDS),
    file_system(Filesystem, "F2FS-fs|FAT-fs|exFAT-fs").any(ERROR_WORDS),
    start(Filesystem, "ntfs3: ", WordAfter("ntfs3: ")).any(ERROR_WORDS),
    start(Filesystem, "SQUASHFS error", Unnamed),
    start(Filesystem, "EROFS", Unnamed).any(ERROR_WORDS),
    start(Filesystem, "erofs", InParentheses).any(ERROR_WORDS),
    start(Filesystem, "UBIFS error", Unnamed),
    start(Filesystem, "bcachefs", InParentheses).any(ERROR_WORDS),
    start(Filesystem, "REISERFS", Unnamed).any(ERROR_WORDS),
    start(Filesystem, "gfs2: ", Unnamed).any("withdraw|rror"),
    start(Filesystem, "OCFS2: ", InParentheses).any(ERROR_WORDS),
    // The space of thin pools (drivers/md/dm-thin.c); some of it is logged as information.
    start(Filesystem, "device-mapper: thin: ", Unnamed).any("switching pool|low water mark|growing the "),
    word(Filesystem, "Remounting filesystem read-only|Remounting file system read-only", InParentheses),
    // What drivers print when a healthy device is attached.
    start(Other, "nvme nvme", SecondWord).any("Shutdown timeout set to"),
    start(Other, "sd ", InBrackets).any("Mode Sense: "),
    start(Other, "mpt", FirstWord).any("sending diag reset|diag reset: SUCCESS"),
    start(Other, "pcieport ", SecondWord).any("AER: enabled"),
    // Timeouts of requests and links; before the I/O errors that they lead to.
    start(ResetTimeout, "nvme nvme", SecondWord).any(
        "timeout|Abort status|controller is down|not ready|reset|Removing after probe failure|\
         frozen state|Disabling device|failed to|failed nvme_",
    ),
    start(ResetTimeout, "nvme ", SecondWord).any("timeout|controller is down|AER:"),
    start(ResetTimeout, "ata", FirstWord).any("exception Emask").head(),
    start(ResetTimeout, "ata", FirstWord)
        .any(
            "failed command|resetting link|revalidation failed|link is slow|limiting SATA link|disable|\
         not ready|softreset failed|hardreset failed|COMRESET failed|qc timeout|timed out|NCQ disabled|\
         failed to IDENTIFY",
        )
        .continuation(),
    start(ResetTimeout, "ata", FirstWord)
        .any("SError:|irq_stat|: cmd |status: {|error: {|EH complete|link down|link up|configured for")
        .routine(),
    start(ResetTimeout, "sd ", InBrackets)
        .any("timing out command|ABORT|bort|RESET|eset|evice offlined|offline device|killing request"),
    start(ResetTimeout, "scsi ", InBrackets).any("timing out|bort|RESET|eset|offlined|offline device|host is dead"),
    start(ResetTimeout, "mpt", FirstWord).any(
        "task abort|evice reset|arget reset|ost reset|us reset|fault_state|diag reset|\
         SMP command timeout|log_info|LogInfo",
    ),
    start(ResetTimeout, "megaraid_sas ", SecondWord).any("reset|Reset|RESET|timed out|FW in FAULT|waiting for"),
    start(ResetTimeout, "megasas", FirstWord).any("reset|RESET|waiting for|FW"),
    start(ResetTimeout, "aacraid", FirstWord).any("bort|eset"),
    start(ResetTimeout, "hpsa ", SecondWord).any("eset|bort|lockup"),
    start(ResetTimeout, "smartpqi ", SecondWord).any("eset|bort|offline|lockup"),
    start(ResetTimeout, "mmc", FirstWord).any("imeout|rror|reset"),
    start(ResetTimeout, "virtio_blk ", SecondWord).any("imeout|imed out"),
    start(ResetTimeout, "xen_blkfront", Unnamed).any("rror|imeout"),
    start(ResetTimeout, "block ", SecondWord).any("imed out|imeout|Receive control failed"),
    start(ResetTimeout, "nbd", FirstWord).any("imed out|imeout|shutting down|closed|failed"),
    start(ResetTimeout, "usb ", SecondWord).any("reset |device descriptor read"),
    start(ResetTimeout, "rport-", FirstWord).any("blocked FC remote port time out|time out"),
    start(ResetTimeout, "connection", FirstWord).any("ping timeout|detected conn error|session recovery timed out"),
    start(ResetTimeout, "session", FirstWord).any("session recovery timed out"),
    word(ResetTimeout, "rejecting I/O to offline device|rejecting I/O to dead device", SecondWord),
    // Failed requests.
    start(IoError, "I/O error, dev ", WordAfter("dev ")),
    start(IoError, "blk_update_request: |print_req_error: |end_request: ", WordAfter("dev ")).any("error|timeout"),
    start(IoError, "Buffer I/O error on dev ", WordAfter("dev ")),
    start(IoError, "Buffer I/O error on device ", WordAfter("device ")),
    start(IoError, "lost page write due to ", WordAfter(" on ")),
    start(IoError, "critical |recovered ", WordAfter("dev ")).any("error, dev "),
    start(
        IoError,
        "timeout error, dev |device offline error, dev |protection error, dev |\
         reservation conflict error, dev ",
        WordAfter("dev "),
    ),
    word(IoError, "error, dev ", WordAfter("dev ")).any(", sector "),
    start(IoError, "nvme", FirstWord).any("I/O Error|I/O error|(sct 0x"),
    start(Other, "sd ", InBrackets).any("Asking for cache data failed"),
    start(IoError, "sd ", InBrackets).any("FAILED Result").head(),
    start(IoError, "sd ", InBrackets).any("Sense Key|Add. Sense|CDB:|Sense:").continuation(),
    start(IoError, "sd ", InBrackets).any("nhandled error|nhandled sense|failed|Media removed"),
    start(IoError, "md/", WordAfter(" on ")).any("Disk failure on|read error|uncorrectable"),
    start(IoError, "md/", FirstWord).any("rror|cannot|failed|Too many"),
    start(IoError, "md: ", Unnamed).any("rror|failed|kicking|super_written"),
    start(IoError, "raid", Unnamed).any("Disk failure"),
    start(IoError, "device-mapper: ", WordAfter("Failing path ")).any("Failing path "),
    // The path works again.
    start(Other, "device-mapper: ", WordAfter("Reinstating path ")).any("Reinstating path "),
    start(IoError, "device-mapper: ", Unnamed).any("rror|ailed|nvalid|corrupt|out of|no free"),
    start(IoError, "loop: ", WordAfter("at byte offset ")).any("rite error"),
    start(IoError, "bcache: ", WordAfter("on ")).any("rror"),
    start(IoError, "drbd ", SecondWord).any("rror|ailed"),
    start(IoError, "zram", FirstWord).any("rror|failed"),
    start(IoError, "Read-error on swap-device |Write-error on swap-device ", SwapNumber),
    start(IoError, "Direct I/O error", Unnamed),
    start(IoError, "dax: ", Unnamed).any("rror"),
    // Out of memory.
    start(Oom, "oom-kill:", Unnamed).continuation(),
    start(Oom, "Out of memory|Memory cgroup out of memory", ProcessPidComm).any("ill process|illed process").summary(),
    start(Oom, "Killed process |oom_reaper: ", ProcessPidComm).continuation(),
    start(Oom, "Out of memory|Memory cgroup out of memory", Unnamed),
    start(Oom, "Tasks in ", Unnamed).any("oom.group").continuation(),
    word(Oom, "SLUB: Unable to allocate memory", Unnamed).head(),
    // Hardware errors.
    start(MemoryError, "mce: [Hardware Error]", Unnamed).any("events logged").head(),
    start(MemoryError, "mce: [Hardware Error]|[Hardware Error]", Unnamed).continuation(),
    start(MemoryError, "{", Unnamed).any("[Hardware Error]").continuation(),
    start(MemoryError, "EDAC ", Unnamed).any(" CE | UE ").head(),
    start(MemoryError, "EDAC ", Unnamed)
        .any("HANDLING MCE|Machine Check Event|TSC |ADDR |MISC |PROCESSOR |rror")
        .continuation(),
    start(MemoryError, "CE memory ", Unnamed).any("error"),
    start(MemoryError, "Memory failure: ", Unnamed),
    start(MemoryError, "Machine check", Unnamed).any("rror|vents logged"),
    start(MemoryError, "pcieport ", SecondWord).any("AER:|rror"),
    // Servers that do not answer.
    start(NetworkFs, "nfs: server ", WordAfter("server ")),
    start(NetworkFs, "NFS: ", Unnamed).any("rror|failed|timed out|expired|lost"),
    start(NetworkFs, "NFS4: ", Unnamed).any("rror|failed"),
    start(NetworkFs, "lockd: server ", WordAfter("server ")),
    start(NetworkFs, "CIFS: ", WordAfter("\\\\")).any("not responded|rror|Reconnect|Send error|failed"),
    start(NetworkFs, "CIFS VFS: ", WordAfter("Server ")).any("not responded|rror|econnect|failed"),
    start(NetworkFs, "ceph: ", Unnamed).any("rror|failed|reconnect|hung|came back|stale|evicted|blocklisted"),
    start(NetworkFs, "libceph: osd", Unnamed).any(" up"),
    start(NetworkFs, "libceph: ", Unnamed).any("down|rror|lost|timeout|socket closed|hunting"),
    start(NetworkFs, "rbd: ", WordAfter("rbd: ")).any("rror|timed out|failed"),
    start(NetworkFs, "9pnet: ", Unnamed).any("rror|failed"),
    // Bugs of the kernel.
    start(Oops, "BUG: ", Unnamed).head(),
    word(Oops, "Oops: ", Unnamed).continuation(),
    start(Oops, "general protection fault|divide error:", Unnamed).head(),
    start(Oops, "invalid opcode:", Unnamed).continuation(),
    start(Oops, "kernel BUG at |Unable to handle kernel ", Unnamed).head(),
    start(Oops, "Internal error: ", Unnamed).continuation(),
    start(Oops, "WARNING: CPU: ", SubjectPattern::Oops).head(),
    start(Oops, "WARNING: ", Unnamed).any(" at ").head(),
    start(Oops, "Kernel panic - not syncing", Unnamed).head(),
    // Overheating.
    word(Thermal, "temperature above threshold|clock throttled|critical temperature reached", Unnamed),
];

/// Begins of the names under which the kernel's rate limiter reports suppressed lines
/// (`NAME: N callbacks suppressed`, lib/ratelimit.c).
pub(crate) const RATE_LIMITED_FUNCTIONS: &[(&str, KernelLogClass)] = &[
    ("blk_update_request|print_req_error|blk_print_req_error|buffer_io_error|quiet_error", IoError),
    ("nvme_log_err|scsi_io_completion|sd_|swap_", IoError),
    ("EXT4-fs|ext4|XFS|xfs|BTRFS|btrfs|F2FS|f2fs", Filesystem),
    ("nvme|ata_|mpt3sas", ResetTimeout),
    ("warn_alloc", Oom),
    ("rpc_|nfs|cifs", NetworkFs),
    ("mce|edac", MemoryError),
];

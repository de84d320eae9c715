//! Finds the entry that a line of a trace belongs to.
//!
//! A hung task is one message and some forty lines of stack and registers. The lines carry no common identifier, so a
//! line is recognised by its format ([`is_trace_line`]) or by its rule's [`MessageRole`](super::rules::MessageRole),
//! and it must come soon after the previous line of the trace. Where the kernel records who printed a line (`caller=`),
//! that separates two traces that are printed at once.

use super::KernelLogClass;

/// Maximum time between two lines of a trace (log clock, us); a dump to a serial console is slow.
const MAX_GAP_US: u64 = 2_000_000;
/// Traces that are open at a time; more than a few CPUs do not print at once.
const MAX_OPEN: usize = 4;

/// A head line whose trace may continue.
#[derive(Debug, Clone)]
pub(crate) struct OpenTrace {
    pub entry_id: u64,
    pub class: KernelLogClass,
    pub device: Option<String>,
    /// Who printed it.
    pub caller: Option<String>,
    /// Log clock of its last line, us.
    pub last_us: u64,
}

impl OpenTrace {
    fn accepts(&self, now_us: u64, caller: Option<&str>) -> bool {
        now_us.saturating_sub(self.last_us) <= MAX_GAP_US
            && (caller.is_none() || self.caller.is_none() || self.caller.as_deref() == caller)
    }
}

/// The traces that are open.
#[derive(Debug, Clone, Default)]
pub(crate) struct TraceFolder {
    open_traces: Vec<OpenTrace>,
    /// The last line that is not a head, in case a trace follows it after all.
    last_single_line: Option<OpenTrace>,
}

impl TraceFolder {
    pub(crate) fn open_trace(&mut self, trace: OpenTrace) {
        self.open_traces
            .retain(|o| o.entry_id != trace.entry_id && trace.last_us.saturating_sub(o.last_us) <= MAX_GAP_US);
        if self.open_traces.len() == MAX_OPEN {
            self.open_traces.remove(0);
        }
        self.last_single_line = None;
        self.open_traces.push(trace);
    }

    /// Notes a single line: many drivers print one and then dump the stack.
    pub(crate) fn set_last_single_line(&mut self, line: OpenTrace) {
        self.last_single_line = Some(line);
    }

    /// Closes the trace of an entry that is removed.
    pub(crate) fn close(&mut self, entry: u64) {
        self.open_traces.retain(|o| o.entry_id != entry);
        self.last_single_line.take_if(|o| o.entry_id == entry);
    }

    /// The entry that an unclassified line belongs to, if it looks like a line of a trace.
    pub(crate) fn find_for_trace_line(
        &mut self,
        message: &[u8],
        level: u8,
        caller: Option<&str>,
        now_us: u64,
    ) -> Option<u64> {
        if self.open_traces.is_empty() && self.last_single_line.is_none() {
            return None;
        }
        let trace = is_trace_line(message);
        let story = self
            .find_open(now_us, caller, |o| trace || (o.class == KernelLogClass::Oom && is_oom_table(message, level)));
        if story.is_some() || !trace {
            return story;
        }
        let loose = self.last_single_line.as_mut().filter(|o| o.accepts(now_us, caller))?;
        loose.last_us = now_us;
        Some(loose.entry_id)
    }

    /// The entry that a line of this class and device belongs to.
    pub(crate) fn find_for_continuation(
        &mut self,
        class: KernelLogClass,
        device: Option<&str>,
        caller: Option<&str>,
        now_us: u64,
    ) -> Option<u64> {
        self.find_open(now_us, caller, |o| o.class == class && same_device(o.device.as_deref(), device))
    }

    /// Closes the newest open trace of a class and returns its entry, which a more informative line replaces.
    pub(crate) fn take_open(&mut self, class: KernelLogClass, caller: Option<&str>, now_us: u64) -> Option<u64> {
        let entry = self.find_open(now_us, caller, |o| o.class == class)?;
        self.open_traces.retain(|o| o.entry_id != entry);
        Some(entry)
    }

    fn find_open(&mut self, now_us: u64, caller: Option<&str>, fits: impl Fn(&OpenTrace) -> bool) -> Option<u64> {
        let open = self.open_traces.iter_mut().rev().find(|o| o.accepts(now_us, caller) && fits(o))?;
        open.last_us = now_us;
        Some(open.entry_id)
    }
}

/// Whether two lines are about the same device. `ata4` is the port of `ata4.00`; a missing name matches any.
fn same_device(head: Option<&str>, line: Option<&str>) -> bool {
    match (head, line) {
        (Some(a), Some(b)) => {
            let port = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
            a == b || (a.starts_with("ata") && port(a) == port(b))
        }
        _ => true,
    }
}

/// Whether a text starts with one of these, which are separated by `|`.
fn starts_with_any(text: &[u8], prefixes: &str) -> bool {
    prefixes.split('|').any(|prefix| text.starts_with(prefix.as_bytes()))
}

/// Prefixes of the lines that dump_stack, show_regs, sched_show_task and the oops code print.
const TRACE_LINE_PREFIXES: &str = "Call Trace:|Call trace:|Backtrace:|Stack:|Stack trace:|Modules linked in:|Unloaded tainted modules:|CPU: |\
    Hardware name:|Workqueue: |task:|Tainted: |Not tainted|\"echo 0 >|Blocked by coredump|RIP: |RSP: |EIP: |\
    ESP: |RAX: |RBX: |RDX: |RSI: |RBP: |R08: |R10: |R13: |EAX: |ESI: |FS: |CS: |DS: |CR0: |CR2: |DR0: |DR3: |\
    PKRU: |Code: |EFLAGS: |ORIG_RAX: |pstate: |pc : |lr : |sp : |pmr: |x0 : |x2 : |x3 : |x5 : |x6 : |x8 : |\
    x9 : |NIP |LR |GPR|Kernel Offset:|note: |Stopper: |irq event stamp:|hardirqs last|softirqs last|Sending NMI|\
    NMI backtrace|Task dump for CPU|Mem-Info:|#PF: |PGD |---[ end trace|Dumping ftrace|Showing |Exception stack|\
    Last Breaking-Event|Preemption disabled|pool |workqueue |pending: |in-flight: ";

/// Whether a line looks like a line of a stack trace or register dump.
pub(crate) fn is_trace_line(message: &[u8]) -> bool {
    let text = message.trim_ascii_start();
    if text.is_empty() {
        return true;
    }
    starts_with_any(text, TRACE_LINE_PREFIXES) || is_stack_frame(text) || is_marker(text) || is_held_lock(text)
}

/// `? do_sys_openat2+0x6e/0xd0 [module]`, `[<ffffffff81012940>] (dump_backtrace) from ...`, `__schedule from schedule+0x..`.
fn is_stack_frame(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"? ").unwrap_or(text);
    if text.starts_with(b"[<") {
        return true;
    }
    let symbol = text.iter().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'$')).count();
    if symbol == 0 {
        return false;
    }
    let rest = &text[symbol..];
    if let Some(offset) = rest.strip_prefix(b"+0x") {
        let digits = offset.iter().take_while(|b| b.is_ascii_hexdigit()).count();
        return offset[digits..].starts_with(b"/0x");
    }
    rest.starts_with(b" from ") && rest.windows(3).any(|w| w == b"+0x")
}

/// `<TASK>`, `</IRQ>`.
fn is_marker(text: &[u8]) -> bool {
    text.first() == Some(&b'<') && text.last() == Some(&b'>') && text.len() < 20
}

/// Whether it is the dotted line before a WARNING, which has no information.
pub(crate) fn is_cut_here(message: &[u8]) -> bool {
    message.starts_with(b"------------[ cut here")
}

/// lockdep: `1 lock held by dd/123:`, `#0: ffff88810 (sb_writers#3){.+.+}-{0:0}, at: ...`.
fn is_held_lock(text: &[u8]) -> bool {
    text.windows(8).take(12).any(|w| w == b" held by")
        || (text.starts_with(b"#") && text.windows(5).any(|w| w == b", at:"))
}

/// Prefixes of the lines in the OOM killer's tables (mm/show_mem.c, mm/oom_kill.c, mm/memcontrol.c).
const OOM_TABLE_PREFIXES: &str = "active_anon:|active_file:|unevictable:|slab_reclaimable:|mapped:|kernel_misc_reclaimable:|free:|\
    sec_pagetables:|Node |lowmem_reserve|Swap cache stats:|Free swap|Total swap|Unreclaimable slab|Name |\
    Tasks state|[ |memory: usage|memory+swap: usage|swap: usage|kmem: usage|Memory cgroup stats|Task in |cma |\
    Memory allocations|SLUB: ";

fn is_oom_table(message: &[u8], level: u8) -> bool {
    // Cgroup statistics are `key value` lines, page totals are `123 pages RAM`.
    let number = |w: &[u8]| !w.is_empty() && w.iter().all(u8::is_ascii_digit);
    let mut words = message.split(|b| *b == b' ').filter(|w| !w.is_empty());
    let (first, second, third) = (words.next().unwrap_or_default(), words.next().unwrap_or_default(), words.next());
    (number(second) && third.is_none())
        || (number(first) && matches!(second, b"pages" | b"total"))
        || starts_with_any(message.trim_ascii_start(), OOM_TABLE_PREFIXES)
        || (level >= 6 && message.first() == Some(&b' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(
        entry_id: u64,
        class: KernelLogClass,
        device: Option<&str>,
        caller: Option<&str>,
        last_us: u64,
    ) -> OpenTrace {
        OpenTrace { entry_id, class, device: device.map(Into::into), caller: caller.map(Into::into), last_us }
    }

    #[test]
    fn trace_lines_are_recognised_by_their_format() {
        for line in [
            " ? __pfx_percpu_rwsem_wake_function+0x10/0x10",
            " <TASK>",
            "RIP: 0033:0x7f464f4bf011",
            "",
            "[<80012940>] (dump_backtrace) from [<80012b38>] (show_stack+0x18/0x1c)",
            " xfs_log_commit+0x1/0x2 [xfs]",
            "task:dd              state:D stack:0     pid:11926",
            "      Not tainted 6.18.44 #1",
            " __schedule from schedule+0x20/0xac",
            "1 lock held by khungtaskd/29:",
        ] {
            assert!(is_trace_line(line.as_bytes()), "{line:?}");
        }
        for line in [
            "I/O error, dev sda, sector 1",
            "EXT4-fs (loop0): unmounting filesystem",
            "bash (11697): drop_caches: 3",
            "+0x1/0x2",
            "usb 1-1: new device",
            "<3> something else entirely that is long",
            "nothing from here",
        ] {
            assert!(!is_trace_line(line.as_bytes()), "{line:?}");
        }
    }

    #[test]
    fn a_trace_ends_after_a_gap_and_belongs_to_one_caller() {
        let mut stories = TraceFolder::default();
        stories.open_trace(trace(7, KernelLogClass::HungTask, None, Some("T1"), 1_000));
        assert_eq!(stories.find_for_trace_line(b"Call Trace:", 6, Some("T1"), 2_000), Some(7));
        assert_eq!(stories.find_for_trace_line(b"Call Trace:", 6, Some("T2"), 2_000), None);
        assert_eq!(stories.find_for_trace_line(b"I/O error", 3, Some("T1"), 2_000), None);
        assert_eq!(stories.find_for_trace_line(b"Call Trace:", 6, Some("T1"), 2_000 + MAX_GAP_US), Some(7));
        assert_eq!(stories.find_for_trace_line(b"Call Trace:", 6, Some("T1"), 2_001 + 2 * MAX_GAP_US), None);
    }

    #[test]
    fn a_port_and_its_device_share_a_trace() {
        let mut stories = TraceFolder::default();
        stories.open_trace(trace(1, KernelLogClass::ResetTimeout, Some("ata4.00"), None, 0));
        assert_eq!(stories.find_for_continuation(KernelLogClass::ResetTimeout, Some("ata4"), None, 1), Some(1));
        assert_eq!(stories.find_for_continuation(KernelLogClass::ResetTimeout, Some("ata5"), None, 1), None);
        assert_eq!(stories.find_for_continuation(KernelLogClass::IoError, Some("ata4"), None, 1), None);
    }

    #[test]
    fn the_number_of_open_traces_is_bounded() {
        let mut stories = TraceFolder::default();
        for entry in 0..100 {
            stories.open_trace(trace(entry, KernelLogClass::Oops, None, None, 5));
        }
        assert_eq!(stories.open_traces.len(), MAX_OPEN);
    }
}

//! What a knob is: one kernel setting a person may change, with everything needed to change it safely.

/// Where a knob stands in lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum KnobGroup {
    /// When buffered writes go to disk, and when writers must wait.
    Writeback,
    /// Reclaim, swap and reserves.
    Memory,
    /// Transparent huge pages.
    HugePages,
    /// What the kernel watches and counts.
    Kernel,
    /// The request queue of one block device.
    Device,
    /// A device's share of the dirty limits.
    Bdi,
    /// Options of one mount.
    Mount,
    /// Limits of one process.
    Process,
}

impl KnobGroup {
    /// The heading.
    pub fn title(self) -> &'static str {
        match self {
            KnobGroup::Writeback => "Writeback",
            KnobGroup::Memory => "Memory and swap",
            KnobGroup::HugePages => "Transparent huge pages",
            KnobGroup::Kernel => "Kernel accounting and hung tasks",
            KnobGroup::Device => "Device queues (KNOB@DEVICE)",
            KnobGroup::Bdi => "A device's share of dirty memory (KNOB@DEVICE)",
            KnobGroup::Mount => "Mounts (KNOB@MOUNT_POINT)",
            KnobGroup::Process => "Processes (KNOB@PID)",
        }
    }
}

/// How the kernel counts the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnobUnit {
    /// Percent of something the knob's text names.
    Percent,
    /// Bytes.
    Bytes,
    /// KiB.
    KiB,
    /// Hundredths of a second.
    Centisecs,
    /// Seconds.
    Seconds,
    /// Microseconds.
    Microsecs,
    /// A plain number.
    Count,
    /// Off or on.
    Switch,
    /// A word or a list of words.
    Word,
}

/// A bound of a range, in the knob's unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeBound {
    /// The same everywhere.
    Fixed(i64),
    /// That many pages, in bytes.
    Pages(i64),
    /// A page in KiB.
    PageKb,
    /// All memory, in bytes.
    Memory,
    /// A share of memory in KiB: one part in that many.
    MemoryKb(i64),
    /// What the device's file `max_hw_sectors_kb` says.
    HwSectorsKb,
}

/// What values may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowedValues {
    /// Whole numbers, both ends included.
    Range(RangeBound, RangeBound),
    /// One of the words the kernel's own file lists.
    Listed,
    /// `SOFT` or `SOFT:HARD`.
    Nofile,
    /// `none`, `idle`, `be/0`..`be/7`, `rt/0`..`rt/7`.
    IoPrio,
    /// `noatime`, `relatime` or `strictatime`, and `nodiratime`.
    Atime,
}

/// Where the value lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnobLocation {
    /// A file below `/proc/sys`.
    Sysctl(&'static str),
    /// A file below `/sys`.
    Sys(&'static str),
    /// `/sys/block/DEVICE/queue/FILE`.
    Queue(&'static str),
    /// `/sys/block/DEVICE/bdi/FILE`.
    Bdi(&'static str),
    /// mount_setattr(2) on a mount point; read from mountinfo.
    Atime,
    /// prlimit(2) RLIMIT_NOFILE.
    Nofile,
    /// ioprio_set(2), all threads.
    IoPrio,
}

/// What else moves when this knob is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnobLink {
    /// Nothing.
    Independent,
    /// Two spellings of one setting: writing one zeroes the other.
    Pair(&'static str),
    /// The kernel recomputes these.
    Recomputes(&'static [&'static str]),
}

/// How a value is made to last over a boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PersistMethod {
    /// A line in our file in sysctl.d.
    Sysctl,
    /// A line in our file in tmpfiles.d.
    Tmpfiles,
    /// A line in our udev rules.
    Udev,
    /// Not by us; the text says where it belongs.
    Manual(&'static str),
}

/// One kernel setting.
#[derive(Debug, PartialEq, Eq)]
pub struct Knob {
    /// As the person types it; sysctl's own name where there is one.
    pub name: &'static str,
    /// Heading it stands under.
    pub group: KnobGroup,
    /// Unit of the bare number.
    pub unit: KnobUnit,
    /// What may be written.
    pub values: AllowedValues,
    /// The kernel's own value, as it would be written, where it is the same on every machine.
    pub default: Option<&'static str>,
    /// The kernel's own value in words where it depends on the machine.
    pub default_text: &'static str,
    /// Two sentences: what it does, what it costs.
    pub description: &'static str,
    /// Where that is written.
    pub source: &'static str,
    /// Where it lives.
    pub location: KnobLocation,
    /// What moves with it.
    pub link: KnobLink,
    /// How it lasts.
    pub persist_method: PersistMethod,
    /// What writing needs.
    pub requires: &'static str,
}

impl Knob {
    /// What the part after `@` names; `None`: the knob is the machine's.
    pub fn instance_kind(&self) -> Option<&'static str> {
        match self.location {
            KnobLocation::Sysctl(_) | KnobLocation::Sys(_) => None,
            KnobLocation::Queue(_) | KnobLocation::Bdi(_) => Some("DEVICE"),
            KnobLocation::Atime => Some("MOUNT_POINT"),
            KnobLocation::Nofile | KnobLocation::IoPrio => Some("PID"),
        }
    }

    /// Whether touching it can wait on a device or a file system, so that only a child may do it.
    pub fn may_block(&self) -> bool {
        matches!(self.location, KnobLocation::Queue(_) | KnobLocation::Bdi(_) | KnobLocation::Atime)
    }

    /// Knobs whose values are captured and compared with this one's.
    pub fn linked(&self) -> Vec<&'static str> {
        match self.link {
            KnobLink::Independent => Vec::new(),
            KnobLink::Pair(other) => vec![other],
            KnobLink::Recomputes(others) => others.to_vec(),
        }
    }

    /// The default, written or told.
    pub fn default_display(&self) -> &'static str {
        self.default.unwrap_or(self.default_text)
    }
}

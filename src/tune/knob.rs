//! What a knob is: one kernel setting a person may change, with everything needed to change it safely.

/// Where a knob stands in lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
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

impl Group {
    /// The heading.
    pub fn title(self) -> &'static str {
        match self {
            Group::Writeback => "Writeback",
            Group::Memory => "Memory and swap",
            Group::HugePages => "Transparent huge pages",
            Group::Kernel => "Kernel accounting and hung tasks",
            Group::Device => "Device queues (KNOB@DEVICE)",
            Group::Bdi => "A device's share of dirty memory (KNOB@DEVICE)",
            Group::Mount => "Mounts (KNOB@MOUNT_POINT)",
            Group::Process => "Processes (KNOB@PID)",
        }
    }
}

/// How the kernel counts the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
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
pub enum Bound {
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
pub enum Values {
    /// Whole numbers, both ends included.
    Range(Bound, Bound),
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
pub enum Place {
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
pub enum Link {
    /// Nothing.
    Alone,
    /// Two spellings of one setting: writing one zeroes the other.
    Pair(&'static str),
    /// The kernel recomputes these.
    Moves(&'static [&'static str]),
}

/// How a value is made to last over a boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persist {
    /// A line in our file in sysctl.d.
    Sysctl,
    /// A line in our file in tmpfiles.d.
    Tmpfiles,
    /// A line in our udev rules.
    Udev,
    /// Not by us; the text says where it belongs.
    Elsewhere(&'static str),
}

/// One kernel setting.
#[derive(Debug, PartialEq, Eq)]
pub struct Knob {
    /// As the person types it; sysctl's own name where there is one.
    pub name: &'static str,
    /// Heading it stands under.
    pub group: Group,
    /// Unit of the bare number.
    pub unit: Unit,
    /// What may be written.
    pub values: Values,
    /// The kernel's own value, as it would be written, where it is the same on every machine.
    pub default: Option<&'static str>,
    /// The kernel's own value in words where it depends on the machine.
    pub default_text: &'static str,
    /// Two sentences: what it does, what it costs.
    pub about: &'static str,
    /// Where that is written.
    pub source: &'static str,
    /// Where it lives.
    pub place: Place,
    /// What moves with it.
    pub link: Link,
    /// How it lasts.
    pub persist: Persist,
    /// What writing needs.
    pub needs: &'static str,
}

impl Knob {
    /// What the part after `@` names; `None`: the knob is the machine's.
    pub fn instance(&self) -> Option<&'static str> {
        match self.place {
            Place::Sysctl(_) | Place::Sys(_) => None,
            Place::Queue(_) | Place::Bdi(_) => Some("DEVICE"),
            Place::Atime => Some("MOUNT_POINT"),
            Place::Nofile | Place::IoPrio => Some("PID"),
        }
    }

    /// Whether touching it can wait on a device or a file system, so that only a child may do it.
    pub fn may_block(&self) -> bool {
        matches!(self.place, Place::Queue(_) | Place::Bdi(_) | Place::Atime)
    }

    /// Knobs whose values are captured and compared with this one's.
    pub fn linked(&self) -> Vec<&'static str> {
        match self.link {
            Link::Alone => Vec::new(),
            Link::Pair(other) => vec![other],
            Link::Moves(others) => others.to_vec(),
        }
    }

    /// The default, written or told.
    pub fn default_words(&self) -> &'static str {
        self.default.unwrap_or(self.default_text)
    }
}

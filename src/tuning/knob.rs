//! The definition of a knob: one kernel setting with everything needed to change it safely.

use serde::{Deserialize, Serialize};

/// The heading a knob is listed under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum KnobGroup {
    /// When dirty pages are written back, and when writers are throttled.
    Writeback,
    /// Reclaim, swap and reserves.
    Memory,
    HugePages,
    /// Accounting and hung task detection.
    Kernel,
    Device,
    /// A device's share of the dirty limits.
    Bdi,
    Mount,
    Process,
}

impl KnobGroup {
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

/// The unit of a knob's bare number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnobUnit {
    /// Percent of what the knob's description names.
    Percent,
    Bytes,
    KiB,
    /// Hundredths of a second.
    Centisecs,
    Seconds,
    Microsecs,
    Count,
    Switch,
    Word,
}

/// A bound of a range, in the knob's unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeBound {
    Fixed(i64),
    /// A number of pages, in bytes.
    Pages(i64),
    /// The page size in KiB.
    PageKb,
    Memory,
    /// The size of memory in KiB, divided by this.
    MemoryKb(i64),
    /// The device's `max_hw_sectors_kb`.
    HwSectorsKb,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowedValues {
    /// Whole numbers between both bounds, inclusive.
    Range(RangeBound, RangeBound),
    /// One of the words listed in the knob's file.
    Listed,
    /// `SOFT` or `SOFT:HARD`.
    Nofile,
    /// `none`, `idle`, `be/0`..`be/7`, `rt/0`..`rt/7`.
    IoPrio,
    /// `noatime`, `relatime` or `strictatime`, and `nodiratime`.
    Atime,
}

/// Where the value is read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnobLocation {
    /// The file below `/proc/sys` of the knob's name.
    Sysctl,
    /// A file below `/sys`.
    Sys(&'static str),
    /// `/sys/block/DEVICE/queue/NAME`.
    Queue,
    /// `/sys/block/DEVICE/bdi/NAME`, without the knob's prefix `bdi.`.
    Bdi,
    /// mount_setattr(2) on a mount point; read from mountinfo.
    Atime,
    /// prlimit(2) RLIMIT_NOFILE.
    Nofile,
    /// ioprio_set(2), all threads.
    IoPrio,
}

/// Which other knobs change when this one is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnobLink {
    Independent,
    /// Two forms of one setting: writing one sets the other to 0.
    Pair(&'static str),
    /// The kernel recomputes these knobs.
    Recomputes(&'static [&'static str]),
}

/// How a value is made persistent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PersistMethod {
    Sysctl,
    Tmpfiles,
    Udev,
    /// Not by this program; the text says where the setting belongs.
    Manual(&'static str),
}

#[derive(Debug, PartialEq, Eq)]
pub struct Knob {
    /// The name to type: the sysctl name where there is one.
    pub name: &'static str,
    pub group: KnobGroup,
    pub unit: KnobUnit,
    pub values: AllowedValues,
    /// The kernel's default, as it would be written, if it is the same on every machine.
    pub default: Option<&'static str>,
    /// A description of the default if it depends on the machine.
    pub default_text: &'static str,
    /// Two sentences: what it does and what it costs.
    pub description: &'static str,
    /// The document the description follows.
    pub source: &'static str,
    pub location: KnobLocation,
    pub link: KnobLink,
    pub persist_method: PersistMethod,
    /// The privilege or kernel version that writing requires.
    pub requires: &'static str,
}

impl Knob {
    /// What follows `@` in its id; `None` for knobs of the whole machine.
    pub fn instance_kind(&self) -> Option<&'static str> {
        match self.location {
            KnobLocation::Sysctl | KnobLocation::Sys(_) => None,
            KnobLocation::Queue | KnobLocation::Bdi => Some("DEVICE"),
            KnobLocation::Atime => Some("MOUNT_POINT"),
            KnobLocation::Nofile | KnobLocation::IoPrio => Some("PID"),
        }
    }

    /// Whether it belongs to a block device.
    pub fn is_of_device(&self) -> bool {
        matches!(self.location, KnobLocation::Queue | KnobLocation::Bdi)
    }

    /// Its file below `/sys/block/DEVICE`, if it has one.
    pub(super) fn device_file(&self) -> Option<String> {
        match self.location {
            KnobLocation::Queue => Some(format!("queue/{}", self.name)),
            KnobLocation::Bdi => Some(self.name.replace('.', "/")),
            _ => None,
        }
    }

    /// Whether access can block on a device or file system, and so must happen in a child process.
    pub fn may_block(&self) -> bool {
        self.is_of_device() || self.location == KnobLocation::Atime
    }

    /// The knobs whose values are captured and restored with this one.
    pub fn linked(&self) -> &[&'static str] {
        match &self.link {
            KnobLink::Independent => &[],
            KnobLink::Pair(other) => std::slice::from_ref(other),
            KnobLink::Recomputes(others) => others,
        }
    }

    /// Whether it is one of two forms of one setting.
    pub fn is_pair(&self) -> bool {
        matches!(self.link, KnobLink::Pair(_))
    }

    /// The default value, or its description.
    pub fn default_display(&self) -> &'static str {
        self.default.unwrap_or(self.default_text)
    }
}

/// The current state of a knob.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnobReading {
    /// The value, as it would be written.
    pub value: String,
    /// The words to choose from, if the kernel lists them.
    pub choices: Vec<String>,
    /// The device's upper bound, if it has one.
    pub max: Option<i64>,
}

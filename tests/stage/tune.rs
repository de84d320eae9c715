//! The Tune view over a tree of its own: knobs as files that are really read and written, a journal that real
//! changes were noted in.

use super::{app, press};
use iotop_plus::model::timestamp::Timestamp;
use iotop_plus::root::Root;
use iotop_plus::tui::effect::Effect;
use iotop_plus::tui::event::Event;
use iotop_plus::tui::state::App;
use iotop_plus::tui::tune::TuneEvent;
use iotop_plus::tui::tune::knob_snapshot::{ChangeStatus, KnobSnapshot, take_snapshot};
use iotop_plus::tui::update::update;
use iotop_plus::tuning::apply::{TuningContext, apply};
use iotop_plus::tuning::journal::Journal;
use iotop_plus::tuning::knob_io::DirectKnobIo;
use iotop_plus::tuning::machine_limits::MachineLimits;
use iotop_plus::tuning::plan::plan_writes;
use iotop_plus::tuning::restore::restore_locked;
use iotop_plus::tuning::kill_points::KillPoints;
use iotop_plus::worker::job::WorkerJob;

const SEC: u64 = 1_000_000_000;

/// Files and what is in them.
const FILES: &[(&str, &str)] = &[
    ("proc/sys/vm/dirty_ratio", "20"),
    ("proc/sys/vm/dirty_bytes", "0"),
    ("proc/sys/vm/dirty_background_ratio", "10"),
    ("proc/sys/vm/dirty_background_bytes", "0"),
    ("proc/sys/vm/dirty_expire_centisecs", "3000"),
    ("proc/sys/vm/dirty_writeback_centisecs", "500"),
    ("proc/sys/vm/swappiness", "60"),
    ("proc/sys/vm/page-cluster", "3"),
    ("proc/sys/vm/vfs_cache_pressure", "100"),
    ("proc/sys/vm/min_free_kbytes", "67584"),
    ("proc/sys/vm/watermark_scale_factor", "10"),
    ("proc/sys/kernel/task_delayacct", "0"),
    ("proc/sys/kernel/hung_task_timeout_secs", "120"),
    ("proc/sys/kernel/hung_task_warnings", "10"),
    ("proc/sys/kernel/random/boot_id", "aa-bb"),
    ("proc/sys/fs/nr_open", "1048576"),
    ("proc/meminfo", "MemTotal: 25165824 kB"),
    ("proc/vmstat", "nr_dirty_threshold 1048576\nnr_dirty_background_threshold 524288"),
    ("proc/self/status", "CapEff: 000001ffffffffff"),
    ("proc/self/mountinfo", "21 1 254:0 / / rw,relatime - ext4 /dev/vda rw"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"),
    ("sys/kernel/mm/transparent_hugepage/defrag", "always defer defer+madvise [madvise] never"),
    ("sys/block/vda/diskseq", "9"),
    ("sys/block/vda/stat", "1 0 0 0 2 0 0 0 0 0 0"),
    ("sys/block/vda/inflight", "0 0"),
    ("sys/block/vda/queue/scheduler", "none [mq-deadline] bfq"),
    ("sys/block/vda/queue/read_ahead_kb", "128"),
    ("sys/block/vda/queue/nr_requests", "256"),
    ("sys/block/vda/queue/wbt_lat_usec", "75000"),
    ("sys/block/vda/queue/max_sectors_kb", "1280"),
    ("sys/block/vda/queue/max_hw_sectors_kb", "4096"),
    ("sys/block/vda/bdi/max_ratio", "100"),
    ("sys/block/vda/bdi/min_ratio", "0"),
    ("sys/block/vda/bdi/strict_limit", "0"),
    ("etc/sysctl.d/50-db.conf", "vm.swappiness = 10\nvm.dirty_ratio=40"),
    ("etc/sysctl.conf", "vm.page-cluster=0"),
    ("run/.keep", ""),
];

/// The machine that is tuned.
pub struct Tree {
    pub dir: tempfile::TempDir,
    pub root: Root,
}

impl Tree {
    /// All knobs at their defaults.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in FILES {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{text}\n")).unwrap();
        }
        let root = Root::at(dir.path());
        Self { dir, root }
    }

    /// Makes a change; its number.
    pub fn set(&self, words: &[&str]) -> u64 {
        let mut io = DirectKnobIo::new(self.root.clone());
        let words: Vec<String> = words.iter().map(|w| w.to_string()).collect();
        let planned = plan_writes(&mut io, &MachineLimits::read(&self.root), &words).unwrap();
        let journal = Journal::open(&self.root).unwrap();
        apply(&mut TuningContext { io: &mut io, journal, kill_points: KillPoints::default() }, &planned, Some(120)).unwrap().id
    }

    /// Takes one back.
    pub fn undo(&self, id: u64) {
        let mut io = DirectKnobIo::new(self.root.clone());
        let journal = Journal::open(&self.root).unwrap();
        restore_locked(&mut TuningContext { io: &mut io, journal, kill_points: KillPoints::default() }, id).unwrap();
    }

    /// A look, with changes made so many seconds before `app`'s newest tick (newest change first) and, as no
    /// tuner lives here, standing as told.
    pub fn look(&self, app: &App, extra: &[&str], changes: &[(u64, ChangeStatus)]) -> KnobSnapshot {
        let now = app.system.now();
        let extra: Vec<String> = extra.iter().map(|e| e.to_string()).collect();
        let mut io = DirectKnobIo::new(self.root.clone());
        let mut all = take_snapshot(&self.root, &mut io, &extra, Timestamp::default());
        for (row, (ago, standing)) in all.changes.iter_mut().zip(changes) {
            row.boot_ns = Some(now.boot_ns - ago * SEC);
            row.wall_ns = now.wall_ns - (ago * SEC) as i64;
            row.status = standing.clone();
        }
        all
    }

    /// Tells the screen of it.
    pub fn tell(&self, app: &mut App, changes: &[(u64, ChangeStatus)]) -> Vec<Effect> {
        let look = self.look(app, &[], changes);
        news(app, TuneEvent::Refreshed(look))
    }
}

/// News for the view.
pub fn news(app: &mut App, news: TuneEvent) -> Vec<Effect> {
    update(app, Event::Tune(Box::new(news)))
}

/// The view, with all there is to know about knobs that nobody touched.
pub fn view(size: (u16, u16)) -> (App, Tree) {
    let tree = Tree::new();
    let mut app = app(size);
    press(&mut app, "7");
    tree.tell(&mut app, &[]);
    boot(&mut app, &tree);
    (app, tree)
}

/// Lets the child read what the next boot brings, here.
pub fn boot(app: &mut App, tree: &Tree) {
    let knobs = app.ui.tune.rows().iter().map(|r| r.name.clone()).collect();
    let job = WorkerJob::BootValues { knobs };
    let reply = job.run(&tree.root);
    update(app, Event::JobReply(job, reply));
}

/// A change of this screen on lease.
pub fn on_lease(app: &mut App, tree: &Tree, words: &[&str], ago: u64) -> u64 {
    let id = tree.set(words);
    news(app, TuneEvent::Applied { id, lease_secs: Some(120) });
    let left = 120 - ago.min(119);
    tree.tell(app, &[(ago, ChangeStatus::Leased(left))]);
    news(app, TuneEvent::LeaseTime { id, secs_left: left, was_renewed: false });
    app.ui.message = None;
    id
}

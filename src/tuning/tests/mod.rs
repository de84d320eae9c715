//! Changes against a simulated kernel: atomicity, compare and swap, pairs, and a crash at every byte of the journal.

pub mod fake_knob_io;
mod linked;

use super::apply::{apply, mark_kept};
use super::change_set::{ChangeSet, changes_from_records};
use super::context::TuningContext;
use super::journal::Journal;
use super::kill_points::KillPoints;
use super::machine_limits::MachineLimits;
use super::plan::{PlannedWrite, TuneError, plan_writes};
use super::restore::{RestoreResult, restore_locked};
use crate::root::Root;
use fake_knob_io::{FakeKnobIo, ValueMap};
use std::path::PathBuf;

struct TuningFixture {
    dir: tempfile::TempDir,
    kernel: FakeKnobIo,
}

impl TuningFixture {
    fn new() -> Self {
        // In memory, like /run: every record is synced.
        let shm = std::path::Path::new("/dev/shm");
        let dir = if shm.is_dir() { tempfile::tempdir_in(shm) } else { tempfile::tempdir() }.unwrap();
        std::fs::create_dir_all(dir.path().join("run")).unwrap();
        Self { dir, kernel: FakeKnobIo::new() }
    }

    fn journal(&self) -> PathBuf {
        self.dir.path().join("run/iotop-plus/journal-unknown")
    }

    fn context(&mut self) -> TuningContext<'_> {
        let journal = Journal::open(&Root::at(self.dir.path())).unwrap();
        TuningContext { io: &mut self.kernel, journal, kill_points: KillPoints::default() }
    }

    fn plan(&mut self, words: &[&str]) -> Result<Vec<PlannedWrite>, TuneError> {
        let machine = MachineLimits {
            page_bytes: 4096,
            memory_bytes: Some(24 << 30),
            dirtyable_bytes: Some(20 << 30),
            nr_open: None,
            has_cap_sys_resource: true,
        };
        plan_writes(&mut self.kernel, &machine, &words.iter().map(|w| w.to_string()).collect::<Vec<_>>())
    }

    fn set(&mut self, words: &[&str]) -> Result<ChangeSet, TuneError> {
        let planned = self.plan(words)?;
        apply(&mut self.context(), &planned, Some(120))
    }

    fn undo(&mut self, id: u64) -> Vec<String> {
        let all = restore_locked(&mut self.context(), id).unwrap();
        all.into_iter().map(|(at, u)| format!("{at} {u:?}")).collect()
    }
}

#[test]
fn a_full_journal_does_not_keep_a_knob_from_being_restored() {
    let mut w = TuningFixture::new();
    let old = ["vm.swappiness", "vm.dirty_ratio", "vm.page-cluster"].map(|k| (k, w.kernel.get(k).to_owned()));
    let id = w.set(&["vm.swappiness=7", "vm.dirty_ratio=33", "vm.page-cluster=1"]).unwrap().id;
    let mut journal = std::fs::OpenOptions::new().append(true).open(w.journal()).unwrap();
    std::io::copy(&mut std::io::Read::take(std::io::repeat(b'\n'), 8 << 20), &mut journal).unwrap();
    let results = restore_locked(&mut w.context(), id).unwrap();
    assert_eq!(results.len(), 3);
    for (knob, result) in &results {
        assert!(result.is_restored() && matches!(result, RestoreResult::Unrecorded(..)), "{knob}: {result}");
        assert!(result.to_string().starts_with("restored (not recorded in the journal: "), "{result}");
    }
    old.iter().for_each(|(knob, value)| assert_eq!(w.kernel.get(knob), value));
    // Once there is room again, the next attempt finds the old values and closes the change.
    journal.set_len(journal.metadata().unwrap().len() - (8 << 20)).unwrap();
    assert!(w.undo(id).iter().all(|line| line.contains("AlreadyRestored")));
}

#[test]
fn a_lost_or_damaged_journal_does_not_keep_a_knob_from_being_restored() {
    type Damage = fn(&std::path::Path);
    let damages: [(&str, Damage); 5] = [
        ("removed", |file| std::fs::remove_file(file).unwrap()),
        ("directory removed", |file| std::fs::remove_dir_all(file.parent().unwrap()).unwrap()),
        ("truncated", |file| std::fs::write(file, "").unwrap()),
        ("damaged", |file| std::fs::write(file, vec![b'x'; 5000]).unwrap()),
        // The first record of the knob is lost, the second one is not.
        ("one record lost", |file| {
            let lines = std::fs::read_to_string(file).unwrap();
            let kept: String = lines.split_inclusive('\n').filter(|line| !line.contains("Intend")).collect();
            std::fs::write(file, kept).unwrap();
        }),
    ];
    for (name, damage) in damages {
        let mut w = TuningFixture::new();
        let before = w.kernel.values.clone();
        let planned = w.plan(&["vm.dirty_bytes=4G", "scheduler@sda=none", "vm.swappiness=10"]).unwrap();
        let file = w.journal();
        let mut context = w.context();
        let id = apply(&mut context, &planned, Some(120)).unwrap().id;
        damage(&file);
        let results = restore_locked(&mut context, id).unwrap();
        assert!(results.len() == 3 && results.iter().all(|(_, r)| r.is_restored()), "{name}: {results:?}");
        assert_eq!(w.kernel.values, before, "{name}");
    }
}

#[test]
fn a_change_that_cannot_be_recorded_as_kept_is_taken_back() {
    let mut w = TuningFixture::new();
    let planned = w.plan(&["vm.swappiness=10"]).unwrap();
    apply(&mut w.context(), &planned, None).unwrap();
    // Room for all records but the last one.
    let (most, room) = (8 << 20, std::fs::metadata(w.journal()).unwrap().len() - 1);
    let mut w = TuningFixture::new();
    let before = w.kernel.values.clone();
    let planned = w.plan(&["vm.swappiness=10"]).unwrap();
    drop(w.context());
    std::fs::write(w.journal(), vec![b'\n'; most - room as usize]).unwrap();
    let why = apply(&mut w.context(), &planned, None).unwrap_err().to_string();
    assert!(why.starts_with("that it stays cannot be recorded: ") && why.ends_with("; nothing is changed"), "{why}");
    assert_eq!(w.kernel.values, before);
}

#[test]
fn pairs_are_restored_in_ratio_and_bytes_mode() {
    for (start, change) in [
        (None, "vm.dirty_ratio=50"),
        (None, "vm.dirty_bytes=4G"),
        (None, "vm.dirty_background_bytes=16M"),
        (Some(("vm.dirty_bytes", "5368709120")), "vm.dirty_ratio=50"),
        (Some(("vm.dirty_bytes", "5368709120")), "vm.dirty_ratio=20"),
        (Some(("vm.dirty_bytes", "5368709120")), "vm.dirty_bytes=3G"),
        (Some(("vm.dirty_background_bytes", "4096")), "vm.dirty_background_ratio=10"),
    ] {
        let mut w = TuningFixture::new();
        if let Some((name, value)) = start {
            w.kernel.set_by_admin(name, value);
        }
        let before = w.kernel.values.clone();
        let change = w.set(&[change]).unwrap();
        assert_ne!(w.kernel.values, before);
        assert_eq!(w.undo(change.id).len(), 1);
        assert_eq!(w.kernel.values, before, "{start:?}");
        assert_eq!(w.undo(change.id).len(), 0, "nothing is left to do");
    }
}

#[test]
fn invalid_input_changes_nothing_and_is_not_journalled() {
    let mut w = TuningFixture::new();
    let before = w.kernel.values.clone();
    for bad in [
        "vm.bogus=1",
        "vm.swappiness",
        "vm.swappiness=",
        "vm.swappiness=201",
        "vm.swappiness=-1",
        "vm.dirty_ratio=0",
        "vm.dirty_ratio=text",
        "vm.dirty_ratio=10",
        "vm.dirty_ratio=5",
        "vm.dirty_background_ratio=20",
        "vm.dirty_background_bytes=5G",
        "vm.dirty_bytes=1G",
        "vm.dirty_bytes=18446744073709551616",
        "vm.dirty_bytes=9999999999T",
        "vm.dirty_bytes=16X",
        "vm.dirty_bytes=4096",
        "scheduler@sda=kyber",
        "scheduler@sdz=none",
        "scheduler=none",
        "vm.page-cluster=1",
    ] {
        // The last assignment is valid by itself but sets the knob twice.
        let got = w.set(&["vm.page-cluster=0", bad]);
        assert!(matches!(got, Err(TuneError::Usage(_))), "{bad}: {got:?}");
        assert_eq!(w.kernel.values, before, "{bad}");
    }
    assert!(matches!(w.set(&["vm.dirty_ratio=50", "vm.dirty_bytes=1G"]), Err(TuneError::Usage(_))));
    assert!(!w.journal().exists());
    assert!(w.plan(&["vm.dirty_background_ratio=30", "vm.dirty_ratio=40"]).is_ok(), "together they are fine");
    assert!(w.plan(&["vm.dirty_background_bytes=16M", "vm.dirty_bytes=256M"]).is_ok());
}

#[test]
fn several_knobs_change_atomically() {
    let mut w = TuningFixture::new();
    let before = w.kernel.values.clone();
    w.kernel.failing.push("vm.page-cluster".into());
    let why = w.set(&["vm.dirty_bytes=4G", "scheduler@sda=none", "vm.page-cluster=0"]).unwrap_err();
    assert!(why.to_string().ends_with("broken; nothing is changed"), "{why}");
    assert_eq!(w.kernel.values, before);
}

#[test]
fn a_value_the_kernel_clamps_is_rolled_back() {
    let mut w = TuningFixture::new();
    let before = w.kernel.values.clone();
    w.kernel.clamped.insert("nr_requests@sda".into(), "64".into());
    let why = w.set(&["vm.swappiness=10", "nr_requests@sda=999"]).unwrap_err();
    // The clamp also affects the restore, and the error says so.
    assert!(why.to_string().contains("the kernel made 64 of 999"), "{why}");
    assert!(why.to_string().contains("reverted except nr_requests@sda"), "{why}");
    w.kernel.clamped.clear();
    assert_eq!(w.undo(1), ["nr_requests@sda Closed(Restored)"]);
    assert_eq!(w.kernel.values, before);
}

#[test]
fn an_admins_edit_is_reported_as_conflict() {
    for (change, edit) in [
        ("vm.swappiness=10", ("vm.swappiness", "33")),
        ("vm.dirty_ratio=50", ("vm.dirty_bytes", "5368709120")),
        ("vm.dirty_bytes=4G", ("vm.dirty_ratio", "30")),
        ("scheduler@sda=none", ("scheduler@sda", "bfq")),
    ] {
        let mut w = TuningFixture::new();
        let id = w.set(&[change]).unwrap().id;
        w.kernel.set_by_admin(edit.0, edit.1);
        let theirs = w.kernel.values.clone();
        let told = w.undo(id);
        assert!(told[0].contains("Conflict"), "{told:?}");
        assert_eq!(w.kernel.values, theirs);
    }
}

#[test]
fn recomputed_knobs_are_restored_unless_an_admin_set_them() {
    let mut w = TuningFixture::new();
    w.kernel.set_by_admin("nr_requests@sda", "512");
    w.kernel.set_by_admin("vm.min_free_kbytes", "90000");
    let before = w.kernel.values.clone();
    let change = w.set(&["scheduler@sda=none", "transparent_hugepage.enabled=never"]).unwrap();
    assert_eq!((w.kernel.get("nr_requests@sda"), w.kernel.get("vm.min_free_kbytes")), ("128", "11584"));
    w.undo(change.id);
    assert_eq!(w.kernel.values, before);

    let change = w.set(&["scheduler@sda=none"]).unwrap();
    w.kernel.set_by_admin("nr_requests@sda", "99");
    w.undo(change.id);
    assert_eq!((w.kernel.get("scheduler@sda"), w.kernel.get("nr_requests@sda")), ("mq-deadline", "99"));
}

#[test]
fn stacked_changes_can_be_undone_in_any_order() {
    for order in [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]] {
        let mut w = TuningFixture::new();
        let before = w.kernel.values.clone();
        w.set(&["vm.dirty_ratio=30", "vm.swappiness=10"]).unwrap();
        w.set(&["vm.dirty_bytes=4G"]).unwrap();
        w.set(&["vm.dirty_ratio=40"]).unwrap();
        for id in order {
            w.undo(id);
        }
        assert_eq!(w.kernel.values, before, "{order:?}");
    }
}

#[test]
fn a_different_device_of_the_same_name_is_not_restored() {
    let mut w = TuningFixture::new();
    let id = w.set(&["scheduler@sda=none"]).unwrap().id;
    w.kernel.identities.insert("sda".into(), "8".into());
    assert_eq!(w.undo(id), ["scheduler@sda Closed(Gone)"]);
    assert_eq!(w.kernel.get("scheduler@sda"), "none");
}

#[test]
fn a_hung_task_countdown_by_the_kernel_is_not_a_conflict() {
    for (now, restored) in [("100", true), ("97", true), ("0", true), ("101", false), ("-1", false)] {
        let mut w = TuningFixture::new();
        let id = w.set(&["kernel.hung_task_warnings=100"]).unwrap().id;
        w.kernel.set_by_admin("kernel.hung_task_warnings", now);
        assert_eq!(w.undo(id)[0].contains("Restored"), restored, "{now}");
        assert_eq!(w.kernel.get("kernel.hung_task_warnings"), if restored { "4" } else { now });
    }
}

#[test]
fn a_kept_change_can_still_be_undone() {
    let mut w = TuningFixture::new();
    let id = w.set(&["vm.swappiness=10"]).unwrap().id;
    mark_kept(&mut w.context().journal, &mut KillPoints::default(), id).unwrap();
    let (records, _) = w.context().journal.load().unwrap();
    assert!(changes_from_records(&records)[0].is_kept);
    assert_eq!(w.undo(id), ["vm.swappiness Closed(Restored)"]);
}

/// Cuts the journal at and between the ends of records, with the kernel in every state possible at that length.
/// Undoing what is left must restore every value and report nothing else.
#[test]
fn a_crash_at_any_journal_length_can_be_undone() {
    let mut points = 0;
    for start in [None, Some(("vm.dirty_bytes", "5368709120")), Some(("nr_requests@sda", "96"))] {
        let mut w = TuningFixture::new();
        if let Some((name, value)) = start {
            w.kernel.set_by_admin(name, value);
        }
        let before = w.kernel.values.clone();
        Journal::open(&Root::at(w.dir.path())).unwrap();
        w.kernel.journal_path = Some(w.journal());
        let words = ["vm.dirty_ratio=50", "vm.swappiness=10", "scheduler@sda=none", "vm.dirty_background_bytes=16M"];
        let id = w.set(&words).unwrap().id;
        w.undo(id);
        let whole = std::fs::read(w.journal()).unwrap();
        let log = std::mem::take(&mut w.kernel.write_log);
        assert!(log.len() >= 8, "{}", log.len());
        let near_end = |cut: usize| whole[cut.saturating_sub(2)..(cut + 1).min(whole.len())].contains(&b'\n');
        for cut in (0..=whole.len()).filter(|cut| near_end(*cut) || cut % 40 == 0) {
            // Each write happened at a certain length of the journal: not yet at a shorter one, certainly at a longer
            // one, and possibly at exactly this one.
            let done = log.iter().filter(|(len, _)| *len < cut).count();
            let maybe = log.iter().filter(|(len, _)| *len <= cut).count();
            for n in done..=maybe {
                let state: ValueMap = if n == 0 { before.clone() } else { log[n - 1].1.clone() };
                let mut fresh = TuningFixture::new();
                Journal::open(&Root::at(fresh.dir.path())).unwrap();
                std::fs::write(fresh.journal(), &whole[..cut]).unwrap();
                fresh.kernel.values = state;
                let told = restore_locked(&mut fresh.context(), id).unwrap();
                let fine = |u: &RestoreResult| u.is_restored();
                assert!(told.iter().all(|(_, u)| fine(u)), "cut {cut}, {n} writes: {told:?}");
                assert_eq!(fresh.kernel.values, before, "cut {cut}, {n} writes");
                points += 1;
            }
        }
    }
    assert!(points > 150, "{points}");
}

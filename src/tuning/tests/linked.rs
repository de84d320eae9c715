//! Knobs that the kernel recomputes when another is written, restored after deaths and edits at every point.

use super::TuningFixture;

const NR_REQUESTS: &str = "nr_requests@sda";
const OLD: &str = "96";
const EDIT: &str = "77";

/// A fixture with nr_requests at 96, a changed scheduler, and a tuner that died before it recorded that.
fn died_after_writing(scheduler: &str) -> (TuningFixture, u64) {
    let mut w = TuningFixture::new();
    w.kernel.set_by_admin(NR_REQUESTS, OLD);
    let id = w.set(&[&format!("scheduler@sda={scheduler}")]).unwrap().id;
    let journal = std::fs::read_to_string(w.journal()).unwrap();
    let before_applied = journal.find("\"Applied\"").unwrap();
    let cut = journal[..before_applied].rfind('\n').unwrap() + 1;
    std::fs::write(w.journal(), &journal[..cut]).unwrap();
    (w, id)
}

fn queue(w: &TuningFixture) -> (&str, &str) {
    (w.kernel.get("scheduler@sda"), w.kernel.get(NR_REQUESTS))
}

#[test]
fn a_linked_knob_is_restored_though_its_new_value_was_never_recorded() {
    // bfq and mq-deadline have the same number of requests, none has another.
    for scheduler in ["none", "bfq"] {
        let (mut w, id) = died_after_writing(scheduler);
        w.undo(id);
        assert_eq!(queue(&w), ("mq-deadline", OLD), "{scheduler}");
        let (mut w, id) = died_after_writing(scheduler);
        w.kernel.set_by_admin(NR_REQUESTS, EDIT);
        w.undo(id);
        assert_eq!(queue(&w), ("mq-deadline", EDIT), "{scheduler}");
    }
}

/// The number of writes after which restoring dies; a complete one needs fewer.
const DEATHS: std::ops::Range<usize> = 0..8;

#[test]
fn restoring_a_linked_knob_can_die_at_any_write() {
    for (scheduler, is_recorded) in [("none", true), ("none", false), ("bfq", true), ("bfq", false)] {
        for (first, second) in DEATHS.flat_map(|first| DEATHS.map(move |second| (first, second))) {
            // An admin edits before an attempt.
            for edited_before in [None, Some(0), Some(1), Some(2)] {
                let (mut w, id) = died_after_writing(scheduler);
                if is_recorded {
                    w = TuningFixture::new();
                    w.kernel.set_by_admin(NR_REQUESTS, OLD);
                    w.set(&[&format!("scheduler@sda={scheduler}")]).unwrap();
                }
                let mut is_edited = false;
                for (attempt, writes) in [Some(first), Some(second), None].into_iter().enumerate() {
                    let is_closed = w.kernel.writes_left.is_some_and(|left| left > 0);
                    w.kernel.writes_left = None;
                    if edited_before == Some(attempt) && !is_closed {
                        w.kernel.set_by_admin(NR_REQUESTS, EDIT);
                        is_edited = true;
                    }
                    w.kernel.writes_left = writes;
                    w.undo(id);
                }
                let expected = if is_edited { EDIT } else { OLD };
                let case = format!("{scheduler} {is_recorded} {first} {second} {edited_before:?}");
                assert_eq!(queue(&w), ("mq-deadline", expected), "{case}");
            }
        }
    }
}

#[test]
fn changes_of_linked_knobs_can_be_undone_in_any_order() {
    for order in [[1, 2], [2, 1]] {
        let mut w = TuningFixture::new();
        w.kernel.set_by_admin(NR_REQUESTS, OLD);
        w.set(&["scheduler@sda=none"]).unwrap();
        w.set(&["nr_requests@sda=64"]).unwrap();
        for id in order {
            w.undo(id);
        }
        assert_eq!(queue(&w), ("mq-deadline", OLD), "{order:?}");
    }
}

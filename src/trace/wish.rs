//! What is traced only while somebody wants it: the wish, and the one thread that follows it.
//!
//! Wishes change faster than programs come and go. Whoever wishes only notes it; if no thread is at work one is
//! started, and that works until things are as they were wished last.

use super::ground::Ground;
use super::syncs::Syncs;
use super::{Probe, Tracer, Without};
use crate::model::syncs::UNWANTED;
use std::sync::MutexGuard;
use std::time::Duration;

/// What is wished.
#[derive(Default)]
pub struct Wish {
    /// Tracing has begun; before, and where it is switched off, nothing is loaded.
    allowed: bool,
    /// Syncs are wanted, those that took so long one by one.
    syncs: Option<Duration>,
    /// A thread is at work.
    at_work: bool,
}

impl Tracer {
    fn wish(&self) -> MutexGuard<'_, Wish> {
        self.wish.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(super) fn allow_syncs(&self) {
        self.syncs.set(Err(Without::Absent(UNWANTED.into())));
        let wanted = {
            let mut wish = self.wish();
            wish.allowed = true;
            wish.syncs.is_some()
        };
        if wanted {
            self.follow();
        }
    }

    pub(super) fn forbid_syncs(&self) {
        self.wish().allowed = false;
    }

    pub(super) fn wish_syncs(&self, from: Option<Duration>) {
        self.wish().syncs = from;
        self.follow();
    }

    /// Whether nobody is at work to bring programs in or out.
    pub fn settled(&self) -> bool {
        !self.wish().at_work
    }

    /// Has a thread do what is wished, unless one is at it.
    fn follow(&self) {
        let mut wish = self.wish();
        if !wish.allowed || std::mem::replace(&mut wish.at_work, true) {
            return;
        }
        drop(wish);
        let tracer = self.clone();
        let spawned = std::thread::Builder::new().name("tracing-syncs".into()).spawn(move || {
            let mut done = None;
            while let Some(wanted) = tracer.next_wish(done) {
                tracer.bring(wanted);
                done = Some(wanted);
            }
            crate::heap::trim();
        });
        if let Err(err) = spawned {
            self.wish().at_work = false;
            self.syncs.set(Err(Without::from_io("no thread for tracing", &err)));
        }
    }

    /// What is wished if that is not done yet; else the thread's work is over.
    fn next_wish(&self, done: Option<Option<Duration>>) -> Option<Option<Duration>> {
        let mut wish = self.wish();
        if done == Some(wish.syncs) {
            wish.at_work = false;
            return None;
        }
        Some(wish.syncs)
    }

    fn bring(&self, wanted: Option<Duration>) {
        let Some(from) = wanted else {
            return self.syncs.set(Err(Without::Absent(UNWANTED.into())));
        };
        if !self.syncs.is_there() {
            self.syncs.set(Err(Without::Absent("tracing of syncs is being loaded".into())));
            let loaded = Ground::look(&self.root).and_then(|ground| Syncs::load(&ground));
            self.syncs.set(loaded);
        }
        self.syncs.with(|syncs| syncs.call_long(from));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::section::Section;
    use crate::root::Root;

    fn why(tracer: &Tracer) -> String {
        tracer.syncs.read().why(0).unwrap_or_default()
    }

    #[test]
    fn nothing_is_loaded_before_tracing_begins_or_where_it_is_switched_off() {
        let tracer = Tracer::new(&Root::live());
        tracer.want_syncs(Some(Duration::from_millis(10)));
        assert!(why(&tracer).contains("not begun"), "{}", why(&tracer));
        tracer.leave_off();
        tracer.want_syncs(Some(Duration::from_millis(10)));
        assert!(why(&tracer).contains("--no-tracing") && !tracer.wish().at_work, "{}", why(&tracer));
    }

    #[test]
    fn a_tree_of_files_is_not_traced_and_says_why() {
        let dir = tempfile::tempdir().unwrap();
        let tracer = Tracer::new(&Root::at(dir.path()));
        tracer.want_syncs(Some(Duration::from_millis(10)));
        tracer.allow_syncs();
        while tracer.wish().at_work {
            std::thread::yield_now();
        }
        assert!(matches!(tracer.syncs.read(), Section::Absent(why) if why.contains("BTF")));
        tracer.want_syncs(None);
        while tracer.wish().at_work {
            std::thread::yield_now();
        }
        assert!(why(&tracer).contains("key F"), "{}", why(&tracer));
    }
}

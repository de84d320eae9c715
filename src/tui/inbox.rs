//! What the collectors and the children say, on its way to the loop.

use super::event::Event;
use crate::collect::feed::News;
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;

/// Places in the queue.
pub const QUEUE: usize = 64;

/// Something said.
pub enum Input {
    /// By a child, or about it.
    Event(Box<Event>),
    /// By a collector.
    News(News),
}

/// Hands news over, on the collector's thread; returns false when nobody wants more.
///
/// A full queue means that the drawing side is far behind. A tick of counters may be left out then: the
/// next one goes on from the last that arrived. A look at the tasks holds only what changed since the look
/// before, so it must arrive: its collector waits, and skips ticks.
pub fn deliver(to: &Sender<Input>, news: News) -> bool {
    match news {
        News::Sample(_) => !matches!(to.try_send(Input::News(news)), Err(TrySendError::Closed(_))),
        News::Procs(_) | News::Topology(_) => to.blocking_send(Input::News(news)).is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc::channel;

    #[test]
    fn differences_wait_for_a_place_and_counters_do_not() {
        let (to, mut inbox) = channel(1);
        let procs = || News::Procs(Box::default());
        assert!(deliver(&to, procs()));
        assert!(deliver(&to, News::Sample(Box::default())), "left out, not the end");
        let late = std::thread::spawn(move || {
            let all = deliver(&to, procs()) && deliver(&to, procs());
            (all, to)
        });
        let got: Vec<_> = (0..3).map(|_| inbox.blocking_recv().unwrap()).collect();
        assert!(got.iter().all(|i| matches!(i, Input::News(News::Procs(_)))));
        let (all, to) = late.join().unwrap();
        assert!(all);
        drop(inbox);
        assert!(!deliver(&to, procs()) && !deliver(&to, News::Sample(Box::default())));
    }
}

//! All collectors, handing their news to one sink.
//!
//! A tick of counters starts the look at the processes and at the block topology. At rest most of the cost is
//! in waking up: where looks are quick the thread that read the counters takes the look as well, and hands over
//! both together, and the topology has its thread woken only when there may be something new. A look that is
//! not quick has a thread of its own; if it takes longer than the interval it skips ticks; nothing queues up.

use super::charge::Charge;
use super::lane::{DEADLINE, Lane, STACK};
use super::latency::Latency;
use super::process::Wants;
use super::process::relay::{Client, Guest, Relay};
use super::process::tasks::Tasks;
use super::stalls::Stalls;
use super::syncs::Syncs;
use super::topology::TopologyReader;
use super::{clock, sources};
use crate::model::disk::DevId;
use crate::model::process::ProcUpdate;
use crate::model::sample::Sample;
use crate::model::section::{Blocked, Section};
use crate::model::topology::Topology;
use crate::root::Root;
use crate::trace::Tracer;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Something new.
#[derive(Debug)]
pub enum News {
    /// A tick of counters; its look at the tasks may follow.
    Sample(Box<Sample>),
    /// A tick of counters, with the look at the tasks that was taken right after it.
    Tick(Box<Sample>, Box<Section<ProcUpdate>>),
    /// A look at the tasks.
    Procs(Box<Section<ProcUpdate>>),
    /// Devices or mounts changed.
    Topology(Box<Section<Topology>>),
}

/// Takes news, on the collector's thread; returns false when nobody wants more.
pub type NewsSink = Arc<dyn Fn(News) -> bool + Send + Sync>;

/// A look at the tasks that takes longer is not waited for by its tick.
const QUICK: Duration = Duration::from_millis(15);

/// The collectors, running.
pub struct Feed {
    lane: Lane,
    wants: Arc<Mutex<Wants>>,
    look: SyncSender<()>,
    _tasks: Relay,
    tracer: Tracer,
    /// Boot clock since which the topology is being read; 0: it is not.
    topology_since: Arc<AtomicU64>,
}

impl Feed {
    /// Starts everything; the first news comes at once.
    pub fn start(root: &Root, interval: Duration, wants: Wants, sink: NewsSink) -> io::Result<Self> {
        let wants = Arc::new(Mutex::new(wants));
        let (look, looks) = sync_channel(1);
        let (seen, sights) = sync_channel(1);
        let topology_since = Arc::new(AtomicU64::new(0));
        let looks = Arc::new(TaskLooks {
            asked: Mutex::new(looks),
            wants: wants.clone(),
            sink: sink.clone(),
            slow: AtomicBool::new(true),
            under_way: Mutex::new(None),
        });
        let tracer = Tracer::new(root);
        let tasks = Tasks::new(root).traced(tracer.tasks.clone());
        let mut tasks = Relay::new(tasks, looks.clone());
        tasks.start()?;
        let guest = tasks.guest();
        let topology = Arc::new(Mutex::new(TopologyReader::new(root)));
        spawn("topology", {
            let (topology, sink, since) = (topology.clone(), sink.clone(), topology_since.clone());
            move || look_at_topology(&topology, &sights, &sink, &since)
        })?;
        let tick = look.clone();
        let mut sources = sources(root);
        sources.push(Box::new(Latency(tracer.clone())));
        sources.push(Box::new(Stalls(tracer.clone())));
        sources.push(Box::new(Syncs(tracer.clone())));
        sources.push(Box::new(Charge(tracer.clone())));
        let lane = Lane::start(
            sources,
            interval,
            Arc::new(move |sample: Sample| {
                let ids: Vec<DevId> =
                    sample.disks.ok().map(|d| d.iter().map(|d| d.id).collect()).unwrap_or_default();
                let seq = sample.seq;
                let more = looks.hand_over(Box::new(sample), guest.as_ref(), &tick);
                // Mounts and devices can wait for a second tick.
                if seq % 2 == 1 && topology.try_lock().map_or(true, |mut reader| reader.due(&ids)) {
                    let _ = seen.try_send(ids);
                }
                more
            }),
        )?;
        Ok(Self { lane, wants, look, topology_since, tracer, _tasks: tasks })
    }

    /// Begins to trace, or says that it shall not be done.
    pub fn trace(&self, on: bool) {
        if on { self.tracer.begin() } else { self.tracer.leave_off() }
    }

    /// From which duration on syncs are to be listed, or that nobody wants them any more: then nothing traces them.
    pub fn want_syncs(&self, from: Option<Duration>) {
        self.tracer.want_syncs(from);
    }

    /// Whether what is to be traced on demand is as it was wished.
    pub fn settled(&self) -> bool {
        self.tracer.settled()
    }

    /// Changes the interval.
    pub fn set_interval(&mut self, interval: Duration) {
        self.lane.set_interval(interval);
    }

    /// Changes what is wanted of the tasks, from the next look on.
    pub fn want(&self, change: impl FnOnce(&mut Wants)) {
        change(&mut lock(&self.wants));
    }

    /// Looks at the tasks now.
    pub fn look_now(&self) {
        let _ = self.look.try_send(());
    }

    /// Looks for collectors that do not return; see [`Lane::watch`].
    pub fn watch(&mut self) -> Vec<Blocked> {
        self.lane.watch();
        let since = self.topology_since.load(Ordering::Relaxed);
        let late = since > 0 && clock::now().boot_ns.saturating_sub(since) > 4 * DEADLINE.as_nanos() as u64;
        late.then(|| Blocked { since_boot_ns: since, on: "the block topology".into() }).into_iter().collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.into()).stack_size(STACK).spawn(body).map(drop)
}

/// The looks that ticks ask for.
struct TaskLooks {
    asked: Mutex<Receiver<()>>,
    wants: Arc<Mutex<Wants>>,
    sink: NewsSink,
    /// Looks take long: ticks go ahead. So until the first has shown how long one takes, and while one is
    /// under way on a thread of its own.
    slow: AtomicBool,
    /// The look being taken: since when, and the tick that waits for it.
    under_way: Mutex<Option<(Instant, Option<Box<Sample>>)>>,
}

impl TaskLooks {
    /// Takes the look on this thread and hands over both, or the tick at once.
    fn hand_over(&self, sample: Box<Sample>, guest: Option<&Guest>, look: &SyncSender<()>) -> bool {
        if self.slow.load(Ordering::Acquire) {
            let more = (self.sink)(News::Sample(sample));
            let _ = look.try_send(());
            return more;
        }
        match guest.and_then(|guest| guest.begin(lock(&self.wants).clone())) {
            Some(look) => {
                *lock(&self.under_way) = Some((Instant::now(), Some(sample)));
                look.take()
            }
            None => (self.sink)(News::Sample(sample)),
        }
    }
}

impl Client for TaskLooks {
    fn wants(&self) -> Option<Wants> {
        lock(&self.asked).recv().ok()?;
        Some(lock(&self.wants).clone())
    }

    fn begun(&self) {
        self.slow.store(true, Ordering::Release);
        *lock(&self.under_way) = Some((Instant::now(), None));
    }

    fn looked(&self, procs: Section<ProcUpdate>) -> bool {
        let under_way = lock(&self.under_way).take();
        if let Some((began, _)) = &under_way {
            self.slow.store(began.elapsed() > QUICK, Ordering::Release);
        }
        let procs = Box::new(procs);
        match under_way.and_then(|(_, sample)| sample) {
            Some(sample) => (self.sink)(News::Tick(sample, procs)),
            None => (self.sink)(News::Procs(procs)),
        }
    }
}

fn look_at_topology(
    reader: &Mutex<TopologyReader>,
    sights: &Receiver<Vec<DevId>>,
    sink: &NewsSink,
    since: &AtomicU64,
) {
    while let Ok(ids) = sights.recv() {
        since.store(clock::now().boot_ns, Ordering::Relaxed);
        let news = lock(reader).refresh(&ids);
        since.store(0, Ordering::Relaxed);
        if news.is_some_and(|topo| !sink(News::Topology(Box::new(topo)))) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn the_first_tick_brings_all_three() {
        let (tx, rx) = channel();
        let tx = Mutex::new(tx);
        let sink: NewsSink = Arc::new(move |news| lock(&tx).send(news).is_ok());
        let feed = Feed::start(&Root::live(), Duration::from_secs(3600), Wants::default(), sink).unwrap();
        let mut got = [false; 3];
        for news in rx {
            match news {
                News::Sample(s) => got[0] |= s.disks.ok().is_some() && s.cpu.ok().is_some(),
                News::Procs(p) => got[1] |= p.ok().is_some_and(|p| !p.changed.is_empty()),
                News::Topology(_) => got[2] = true,
                News::Tick(..) => unreachable!("it is not known yet how long a look takes"),
            }
            if got == [true; 3] {
                break;
            }
        }
        drop(feed);
    }
}

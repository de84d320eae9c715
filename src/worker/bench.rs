//! What the Bench view, experiments and the diagnosis ask of a file system: a directory looked at, results kept
//! and read.

use crate::bench::look::{Look, Seen};
use crate::bench::report::warnings::burst;
use crate::bench::report::{End, Report};
use crate::bench::store::{Keepable, Kept, Store};
use crate::bench::target::Place;
use crate::collect::path::inspect_path;
use crate::experiment::kept::{Kept as KeptExperiment, all};
use crate::experiment::report::Report as Experiment;
use crate::model::slow_facts::BenchResultFacts;
use crate::root::Root;
use crate::text::sanitize;
use std::path::Path;

/// Looks at `directory` without writing anything there.
pub fn look(root: &Root, directory: &Path) -> Look {
    let mut look = Look { directory: directory.to_owned(), ..Look::default() };
    // As if it had been named twice: that a network is in between is told, and asked about, by the screen.
    let place = match Place::check(root, directory, true) {
        Ok(place) => place,
        Err(refused) => {
            look.refused = Some(refused);
            return look;
        }
    };
    let fs = &place.filesystem;
    let (size, free) = match place.space() {
        Ok(space) => space,
        Err(refused) => {
            look.refused = Some(refused);
            return look;
        }
    };
    // Where the chain cannot be found the file system is still worth showing.
    let chain = inspect_path(root, directory).map(|r| r.chain).unwrap_or_default();
    look.place = Some(Seen {
        filesystem: sanitize(&fs.kind),
        source: sanitize(&fs.source),
        mount: sanitize(&fs.point),
        options: sanitize(&fs.options),
        device: fs.device,
        chain,
        memory: fs.is_memory(),
        network: fs.is_network(),
        stacked: fs.is_stacked(),
        size,
        free,
    });
    look
}

fn store<T: Keepable>() -> Result<Store, String> {
    Store::of_person_for::<T>()
        .ok_or_else(|| "no home directory of this user: set XDG_STATE_HOME to keep results".into())
}

/// The results of earlier runs, newest first. A person without a home has none.
pub fn kept() -> Result<Vec<Kept>, String> {
    Store::of_person().map_or(Ok(Vec::new()), |store| store.kept())
}

/// The same of experiments.
pub fn experiments() -> Result<Vec<KeptExperiment>, String> {
    Store::of_person_for::<Experiment>().map_or(Ok(Vec::new()), |store| all(&store))
}

/// Keeps a report; the name it got.
pub fn keep<T: Keepable>(report: &T) -> Result<String, String> {
    store::<T>()?.keep(report)
}

/// Kept reports by their names.
pub fn load<T: Keepable>(ids: &[String]) -> Result<Vec<T>, String> {
    let store = store::<T>()?;
    ids.iter().map(|id| store.load(id)).collect()
}

/// The figure of the fork profile that says what a fork costs.
const FORK_COST: &str = "fork per GiB";
/// Newest results looked at for a diagnosis: each is a file to be parsed.
const TOLD: usize = 12;

/// What the newest complete results say of this machine; none where they cannot be read.
pub fn told() -> Vec<BenchResultFacts> {
    let Some(store) = Store::of_person() else { return Vec::new() };
    let kept = store.kept().unwrap_or_default();
    let newest = kept.into_iter().filter(|k| k.complete).take(TOLD);
    newest.filter_map(|k| said(&store.load(&k.id).ok()?)).collect()
}

fn said(report: &Report) -> Option<BenchResultFacts> {
    let burst = report.parts.iter().filter(|_| report.end == End::Complete).find_map(burst);
    let figures = report.parts.iter().flat_map(|p| &p.figures);
    let fork =
        figures.into_iter().find(|f| report.plan.profile == "fork" && f.name == FORK_COST).map(|f| f.value);
    (burst.is_some() || fork.is_some()).then(|| BenchResultFacts {
        id: report.id.clone(),
        profile: report.plan.profile.clone(),
        time: report.time.clone(),
        directory: report.target.as_ref().map_or(String::new(), |t| t.directory.clone()),
        device: report.target.as_ref().and_then(|t| t.device.clone()),
        burst,
        fork_ms_per_gb: fork,
    })
}

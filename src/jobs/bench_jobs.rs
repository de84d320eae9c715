//! Jobs for benchmarks, experiments and diagnosis: inspect a directory, save and load results.

use crate::bench::report::warnings::burst_drop;
use crate::bench::report::{BenchReport, RunEnd};
use crate::bench::store::{ResultStore, Storable};
use crate::bench::target::TargetDirectory;
use crate::bench::target_info::{TargetInfo, TargetInspection};
use crate::collect::path::inspect_path;
use crate::model::slow_facts::BenchResultFacts;
use crate::root::Root;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Inspects `directory` without writing to it.
pub(super) fn inspect_target(root: &Root, directory: &Path) -> TargetInspection {
    // Accept a network mount: the screen asks for confirmation.
    let opened = TargetDirectory::open_checked(root, directory, true)
        .and_then(|place| place.size_and_free().map(|space| (place.filesystem, space)));
    let info = opened.map(|(fs, (size, free))| TargetInfo {
        report: fs.report,
        device: fs.device,
        // The chain of devices is optional.
        chain: inspect_path(root, directory).map(|r| r.chain).unwrap_or_default(),
        size,
        free,
    });
    let directory = directory.to_owned();
    match info {
        Ok(info) => TargetInspection { directory, refusal: None, info: Some(info) },
        Err(refusal) => TargetInspection { directory, refusal: Some(refusal), info: None },
    }
}

/// Work on the stored reports of a kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum StoreJob<R> {
    /// List them, newest first; none without a home directory.
    List,
    /// Save one.
    Save(Box<R>),
    /// Load those of these names.
    Load(Vec<String>),
}

impl<R: Storable> StoreJob<R> {
    pub(super) fn key(&self) -> String {
        match self {
            Self::List => format!("listing the {} reports kept", R::KIND),
            Self::Save(report) => format!("keeping the {} report {}", R::KIND, report.id()),
            Self::Load(ids) => format!("reading the {} report {}", R::KIND, ids.join(" and ")),
        }
    }
}

/// Newest results that diagnosis rules use.
const MAX_DOCTOR_RESULTS: usize = 12;

/// Facts from the newest complete results; none if they cannot be read.
pub(super) fn doctor_results() -> Vec<BenchResultFacts> {
    let Ok(store) = ResultStore::for_user_of::<BenchReport>() else { return Vec::new() };
    let ids = store.ids().unwrap_or_default();
    let complete = ids.iter().filter_map(|id| store.load(id).ok()).filter(|r: &BenchReport| r.end == RunEnd::Complete);
    complete.take(MAX_DOCTOR_RESULTS).filter_map(|report| result_facts(&report)).collect()
}

fn result_facts(report: &BenchReport) -> Option<BenchResultFacts> {
    let burst = report.measurements.iter().filter(|_| report.end == RunEnd::Complete).find_map(burst_drop);
    let fork = report.measurements.iter().filter(|_| report.plan.profile == "fork");
    let fork = fork.filter_map(|p| p.metric("fork per GiB")).next();
    let target = report.target.as_ref();
    (burst.is_some() || fork.is_some()).then(|| BenchResultFacts {
        id: report.id.clone(),
        profile: report.plan.profile.clone(),
        time: report.time.clone(),
        directory: target.map_or(String::new(), |t| t.directory.clone()),
        device: target.and_then(|t| t.device.clone()),
        mount: target.map_or(String::new(), |t| t.mount.clone()),
        model: target.and_then(|t| t.model.clone()),
        burst,
        fork_ms_per_gb: fork,
    })
}

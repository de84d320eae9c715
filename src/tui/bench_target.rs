//! The directory that benchmarks and experiments write to, and what is known about it.

use crate::bench::plan::BenchPlan;
use crate::bench::target_info::TargetInspection;
use crate::bench::workloads::{Workload, find_workload};
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::model::disk::DevId;
use crate::sanitize::sanitize;
use crate::tuning::plan::TuneError;
use std::path::PathBuf;

/// The directory to measure in.
#[derive(Debug, Default)]
pub struct BenchTarget {
    /// Absolute; empty until the working directory is known.
    pub directory: PathBuf,
    /// Working directory of the program, against which typed paths are resolved.
    working_directory: PathBuf,
    /// The directory last inspected, with the result.
    inspection: Option<(PathBuf, Result<TargetInspection, String>)>,
    inspecting: Option<PathBuf>,
}

impl BenchTarget {
    /// Sets the working directory. A relative directory of the settings is resolved against it.
    pub fn set_working_directory(&mut self, dir: PathBuf) {
        // Normalizes a trailing `.`, the default of the settings.
        self.directory = dir.join(&self.directory).components().collect();
        self.working_directory = dir;
    }

    /// The directory as saved in the settings: `.` for the working directory.
    pub fn setting(&self) -> String {
        match self.directory.to_str() {
            Some(dir) if self.directory != self.working_directory && !dir.is_empty() => dir.to_owned(),
            _ => ".".into(),
        }
    }

    pub fn display_name(&self) -> String {
        sanitize(self.directory.as_os_str().as_encoded_bytes())
    }

    /// Resolves a typed path against the working directory.
    pub fn absolute_path(&self, text: &str) -> PathBuf {
        self.working_directory.join(text).components().collect()
    }

    /// What was found in the directory; `None` until it is known.
    pub fn inspection(&self) -> Option<&TargetInspection> {
        self.result()?.as_ref().ok()
    }

    fn result(&self) -> Option<&Result<TargetInspection, String>> {
        self.inspection.as_ref().filter(|(directory, _)| *directory == self.directory).map(|(_, result)| result)
    }

    pub fn device(&self) -> Option<DevId> {
        self.inspection()?.info.as_ref()?.device
    }

    /// The job that inspects the directory again, unless it is under way. The last result stays until its reply.
    pub fn request_inspection(&mut self) -> Option<WorkerJob> {
        if !self.directory.is_absolute() || self.inspecting.as_ref() == Some(&self.directory) {
            return None;
        }
        self.inspecting = Some(self.directory.clone());
        Some(WorkerJob::InspectTarget(self.directory.clone()))
    }

    pub fn on_inspected(&mut self, directory: PathBuf, reply: WorkerReply) {
        if self.inspecting.as_ref() == Some(&directory) {
            self.inspecting = None;
        }
        let result = match reply {
            WorkerReply::TargetInspection(inspection) => Ok(*inspection),
            WorkerReply::Failed(why) => Err(why),
            _ => return,
        };
        if directory == self.directory {
            self.inspection = Some((directory, result));
        }
    }

    /// Why the plan cannot run in the directory, and what to do.
    pub fn refusal(&self, workload: &Workload, plan: &BenchPlan) -> Option<String> {
        if !workload.needs_directory {
            return None;
        }
        if !self.directory.is_absolute() {
            return Some("no directory: choose one on the storage to measure, in the line directory".into());
        }
        match self.result() {
            None => Some(format!(
                "{} has not answered: its file system may be blocked; choose another one in the line directory",
                self.display_name()
            )),
            Some(Err(why)) => Some(sanitize(why)),
            Some(Ok(found)) => {
                let refused = found.refusal_for_size((workload.footprint)(plan))?;
                let next = if matches!(refused, TuneError::Privilege(_)) { "; its owner or root may" } else { "" };
                Some(format!("refused: {refused}{next}"))
            }
        }
    }

    /// What to ask before a plan that nobody has confirmed for the network runs on a network mount.
    pub fn network_question(&self, plan: &BenchPlan) -> Option<String> {
        let place = self.inspection()?.info.as_ref().map(|info| &info.report).filter(|place| place.is_network)?;
        let needs_directory = find_workload(&plan.profile).is_some_and(|w| w.needs_directory);
        if plan.network.is_some() || !needs_directory || plan.directory != self.directory {
            return None;
        }
        Some(format!(
            "{} is on a network mount: {} from {}.\nThe load goes over the network to a server that others use, and \
             slows them down.\nMeasure it anyway?",
            self.display_name(),
            place.filesystem,
            place.source
        ))
    }
}

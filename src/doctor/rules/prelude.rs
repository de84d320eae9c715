//! What most rules use.

pub(super) use crate::doctor::device_files::main_files;
pub(super) use crate::doctor::finding::{
    Finding, FindingSubject, InvolvedTask, NavTarget, RuleSkipped, Severity, knob,
};
pub(super) use crate::doctor::format;
pub(super) use crate::doctor::rule_context::{RuleContext, RuleResult};
pub(super) use crate::doctor::storage_class::StorageClass;
pub(super) use crate::model::disk::{DevId, DiskRate};
pub(super) use crate::model::kernel_log::KernelLogClass;
pub(super) use crate::model::raw_bytes::RawBytes;
pub(super) use crate::model::snapshot::Snapshot;
pub(super) use crate::sanitize::sanitize;

//! Checks the arms of experiments on threads, because knobs may be of devices that do not answer.

use crate::experiment::arm_settings::validate;
use crate::experiment::spec::ExperimentSpec;
use crate::root::Root;
use crate::sanitize::sanitize;
use crate::tui::view::ArmCheck;
use std::sync::Arc;

/// Takes the result of a check; callable from any thread.
pub(crate) type ArmCheckSink = Arc<dyn Fn(ArmCheck) + Send + Sync>;

/// Starts a check. A failure to start is returned as its result.
pub(crate) fn check_arms(root: &Root, spec: ExperimentSpec, sink: ArmCheckSink) -> Option<ArmCheck> {
    let (root, checked) = (root.clone(), spec.clone());
    let thread = std::thread::Builder::new().name("arms".into()).stack_size(512 * 1024);
    let started = thread.spawn(move || {
        let result = validate(&root, &checked).map_err(|why| sanitize(why.to_string()));
        sink(ArmCheck { spec: checked, result });
    });
    let err = started.err()?;
    Some(ArmCheck { spec, result: Err(format!("cannot start the thread that checks the arms: {err}")) })
}

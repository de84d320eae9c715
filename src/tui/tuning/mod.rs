//! The Tune view's state, what a person can mean in it, what it wants done and what it is told.

pub mod runner;

/// State of the Tune view.
#[derive(Debug, Default)]
pub struct TuneUi {}

/// A request in the Tune view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TuneAction {}

/// What the run loop is to do for the Tune view.
#[derive(Debug, Clone, PartialEq)]
pub enum TuneEffect {}

/// What comes back.
#[derive(Debug)]
pub enum TuneNews {}

//! The Bench view's state, what a person can mean in it, what it wants done and what it is told.

pub mod runner;

/// State of the Bench view.
#[derive(Debug, Default)]
pub struct BenchUi {}

/// A request in the Bench view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BenchAction {}

/// What the run loop is to do for the Bench view.
#[derive(Debug, Clone, PartialEq)]
pub enum BenchEffect {}

/// What comes back.
#[derive(Debug)]
pub enum BenchNews {}

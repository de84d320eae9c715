//! The full-screen program.

pub mod widgets;

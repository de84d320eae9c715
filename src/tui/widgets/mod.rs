//! Drawing blocks that know no kernel: a pane hands them text and numbers.

pub mod canvas;
pub mod dialog;
pub mod graph;
pub mod heat;
pub mod put;
pub mod table;
pub mod theme;

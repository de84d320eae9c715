//! Drawing blocks that know no kernel: a pane hands them text and numbers.

pub mod cell_buffer;
pub mod dialog;
pub mod graph;
pub mod heatmap;
pub mod table;
pub mod text;
pub mod theme;

//! Drawing blocks that know no kernel: a pane hands them text and numbers.

pub mod cell_buffer;
pub mod dialog;
pub mod form_layout;
pub mod graph;
pub mod heatmap;
pub mod styled_lines;
pub mod table;
pub mod text;
pub mod theme;

//! Drawing blocks that know no kernel: a pane hands them text and numbers.

mod axes;
mod border;
pub(crate) mod cell_buffer;
mod color_depth;
mod dialog;
mod form_layout;
mod graph;
mod heatmap;
mod styled_lines;
pub(crate) mod symbols;
pub(crate) mod table;
mod text;
pub(crate) mod theme;
mod title_note;

pub(crate) use self::axes::{Axes, axis_number, draw_axes, draw_time_axis};
pub(crate) use self::border::draw_border;
pub use self::cell_buffer::CellBuffer;
pub use self::color_depth::ColorDepth;
pub(crate) use self::dialog::{
    area_below, draw_column, draw_frame, draw_input, draw_popup, draw_popup_above, draw_reason, draw_title,
    draw_wrapped, reason_rows, split_columns, split_rows, title_with_filter, wrap,
};
pub(crate) use self::form_layout::{FormLayout, form_layout};
pub use self::graph::draw_columns;
pub(crate) use self::graph::{
    columns_text, draw_bar, draw_sample_labels, draw_sample_markers, round_up_bytes, round_up_scale,
};
pub(crate) use self::heatmap::{draw_heat_cell, draw_heatmap, heatmap_column_count};
pub(crate) use self::styled_lines::{StyledLine, TextStyle, draw_lines, wrap_lines};
pub use self::symbols::SymbolSet;
pub(crate) use self::table::{ColumnState, FittedColumns, RowSearch, Scroll, highlight_row};
pub(crate) use self::text::{clear_area, draw_path, draw_text, draw_text_right, fill_area, patch_style, path_end};
pub use self::theme::THEME_STYLES;
pub(crate) use self::theme::{Levels, Theme};
pub(crate) use self::title_note::{NotePart, fit_parts, join_parts, text_width, title_note_room};
pub(crate) use ratatui::{layout::Rect, style::Style};

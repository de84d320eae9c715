//! Layout of a form: the first lines span the whole width, the others stand below in columns, then a description of the
//! selected one. Pure, so that drawing and mouse agree.

use ratatui::layout::Rect;

/// Preferred width of a column of parameters.
const COLUMN_WIDTH: u16 = 38;
/// Rows of parameters that stay visible, however long the plan is.
const MIN_ROWS: u16 = 3;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FormLayout {
    /// Index and area of each visible line.
    pub cells: Vec<(usize, Rect)>,
    /// Number of lines that do not fit, before and after the visible ones.
    pub hidden: (usize, usize),
    /// Area for the description of the selected line.
    pub hint: Rect,
    /// Area left for the plan.
    pub rest: Rect,
}

/// Places `count` lines, the first `wide` of them over the whole width, so that `selected` is visible. `needed` rows are
/// left for the plan below, if possible. If several wide lines do not fit, all lines get the same width, one below the
/// other.
pub(crate) fn form_layout(inner: Rect, count: usize, wide: usize, selected: usize, needed: usize) -> FormLayout {
    let tight = wide > 1 && usize::from(inner.height) < wide + usize::from(MIN_ROWS) + 1;
    let columns = if tight { 1 } else { (inner.width / COLUMN_WIDTH).clamp(1, 3) };
    let first = if tight { 0 } else { wide.min(count) };
    let head = (first as u16).min(inner.height);
    let others = count - first;
    let all = others.div_ceil(usize::from(columns)) as u16;
    // One row is for the description of the selected line.
    let room = inner.height.saturating_sub(head + 1);
    let needed = needed.min(usize::from(u16::MAX)) as u16;
    let rows = all.min(room.saturating_sub(needed).max(MIN_ROWS.min(room)));
    let page = usize::from(rows) * usize::from(columns);
    let offset = selected.saturating_sub(first).saturating_sub(page.saturating_sub(1)).min(others);
    let width = inner.width / columns;
    let mut cells = Vec::new();
    cells.extend((0..head).map(|i| (usize::from(i), Rect { y: inner.y + i, height: 1, ..inner })));
    let shown = others.saturating_sub(offset).min(page);
    for i in 0..shown {
        let (column, row) = (i / usize::from(rows), i % usize::from(rows));
        let at = Rect {
            x: inner.x + column as u16 * width,
            y: inner.y + head + row as u16,
            width: width.saturating_sub(2),
            height: 1,
        };
        cells.push((first + offset + i, at));
    }
    let used = (head + rows + 1).min(inner.height);
    FormLayout {
        cells,
        hidden: (offset, others.saturating_sub(offset + shown)),
        hint: Rect { y: inner.y + used.saturating_sub(1), height: 1.min(inner.height), ..inner },
        rest: Rect { y: inner.y + used, height: inner.height - used, ..inner },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selected_field_is_visible_and_fields_do_not_overlap() {
        for (w, h) in [(26, 1), (38, 8), (52, 20), (86, 26), (154, 40)] {
            for (count, wide) in [(20, 1), (1, 0), (13, 1), (18, 4), (9, 3)] {
                for needed in [0, 8, 100] {
                    for selected in 0..count {
                        let inner = Rect::new(3, 5, w, h);
                        let g = form_layout(inner, count, wide, selected, needed);
                        let seen = g.cells.iter().any(|(at, _)| *at == selected);
                        assert!(seen || h < 3, "{w}x{h} {count} {needed} {selected}: {g:?}");
                        for (i, (_, a)) in g.cells.iter().enumerate() {
                            assert_eq!(a.intersection(inner), *a, "{w}x{h} {g:?}");
                            assert!(g.cells[i + 1..].iter().all(|(_, b)| !a.intersects(*b)));
                        }
                        assert_eq!(g.cells.len() + g.hidden.0 + g.hidden.1, count.max(g.cells.len()));
                        assert_eq!(g.rest.bottom(), inner.bottom());
                    }
                }
            }
        }
    }
}

//! The recent past of what a finding is about, below its page: waits and use of a device, dirty pages, or swap.

use super::victims::{DIRTY_PAGE_RULES, MEMORY_RULES};
use crate::doctor::incident::Incident;
use crate::model::disk::DevId;
use crate::tui::view::{Context, Shared};
use crate::tui::views::devices::{AWAIT, DEVICE_USE, GraphQuantity, draw_graph};
use crate::tui::views::memory::{draw_swap_graphs, draw_unwritten_graph};
use crate::tui::widgets::{CellBuffer, Rect, area_below, draw_text, split_columns};

/// Rows that it has at the least, its heading included, and at most.
pub(super) const MIN_ROWS: u16 = 8;
const MAX_ROWS: u16 = 17;
/// With fewer cells there is room for one graph.
const TWO_GRAPHS_WIDTH: u16 = 70;

/// Rules about swap and memory, beside those whose victims are in reclaim.
const OTHER_MEMORY_RULES: &[&str] = &["server-swapped", "swapped-idle", "oom"];

/// What the graphs show.
#[derive(Debug, Clone, Copy, PartialEq)]
enum History {
    /// Waits and use of a device.
    Device(DevId),
    /// Dirty pages, and the waits of the device that they are written to.
    Unwritten(Option<DevId>),
    Swap,
}

fn history_of(shared: &Shared, incident: &Incident) -> Option<History> {
    let device = incident.device().filter(|id| shared.snapshot().device(*id).is_some());
    match incident.cause().rule {
        rule if DIRTY_PAGE_RULES.contains(&rule) => Some(History::Unwritten(device)),
        rule if MEMORY_RULES.contains(&rule) || OTHER_MEMORY_RULES.contains(&rule) => Some(History::Swap),
        _ => device.map(History::Device),
    }
}

/// Rows to be left for the graphs of an incident: none if there is nothing to draw.
pub(super) fn wanted_rows(shared: &Shared, incident: &Incident) -> u16 {
    history_of(shared, incident).map_or(0, |_| MIN_ROWS)
}

/// Draws the graphs at the end of an area, if it is high enough.
pub(super) fn draw_incident_history(cx: &Context, incident: &Incident, area: Rect, buf: &mut CellBuffer) {
    let Some(history) = history_of(cx.shared, incident).filter(|_| area.height >= MIN_ROWS) else { return };
    let height = area.height.min(MAX_ROWS);
    let area = Rect { y: area.bottom() - height, height, ..area };
    let name = |id: DevId| cx.shared.system.described_device(id);
    let what = match history {
        History::Device(id) => format!("waits and use of {}", name(id)),
        History::Unwritten(None) => "dirty pages".into(),
        History::Unwritten(Some(id)) => format!("dirty pages, and waits of {}", name(id)),
        History::Swap => "swap in and out".into(),
    };
    let used = draw_text(buf, area.x, area.y, "recent   ", area.width, cx.theme.header);
    draw_text(buf, area.x + used, area.y, &what, area.width - used, cx.theme.dim);
    let graphs = area_below(area, 1);
    let [left, right] = match graphs.width >= TWO_GRAPHS_WIDTH {
        true => split_columns(graphs, graphs.width / 2),
        false => [graphs, Rect { width: 0, ..graphs }],
    };
    let left = Rect { width: left.width.saturating_sub(1), ..left };
    let mut device = |area: Rect, id: DevId, quantity: &GraphQuantity, style| {
        draw_graph(cx, area, buf, id, quantity, style);
    };
    match history {
        History::Device(id) => {
            device(left, id, &AWAIT, cx.theme.graph);
            device(right, id, &DEVICE_USE, cx.theme.graph_alt);
        }
        History::Unwritten(id) => {
            if let Some(id) = id {
                device(right, id, &AWAIT, cx.theme.graph_alt);
            }
            draw_unwritten_graph(cx, if id.is_some() { left } else { graphs }, buf);
        }
        History::Swap => draw_swap_graphs(cx, graphs, buf),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::RULES;

    #[test]
    fn rules_with_a_history_exist() {
        for name in [DIRTY_PAGE_RULES, MEMORY_RULES, OTHER_MEMORY_RULES].concat() {
            assert!(RULES.iter().any(|rule| rule.name == name), "{name}");
        }
    }
}

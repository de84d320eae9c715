//! The recent past of the selected device: two graphs or heat maps, chosen with `g`.

use super::device_latency::{self, Part};
use super::{Pane, PaneId};
use crate::export::table::Table;
use crate::model::disk::{DevId, DiskRate};
use crate::tui::keys::Context;
use crate::tui::state::App;
use crate::tui::widgets::canvas::Canvas;
use crate::tui::widgets::dialog::frame;
use crate::tui::widgets::graph::{columns, marks, nice_max};
use crate::tui::widgets::put::put;
use crate::tui::widgets::theme::Theme;
use ratatui::layout::Rect;

/// The pane; it takes no keys of its own.
pub const PANE: Pane = Pane {
    id: PaneId::DeviceGraphs,
    contexts: &[crate::tui::keys::Context::Devices, crate::tui::keys::Context::List, Context::Scroll],
    render,
    stamp: |_| None,
    sheet,
    rows: |_| 0,
};

/// A quantity over time.
#[derive(Clone, Copy)]
pub struct Quantity {
    /// Name and unit.
    pub name: &'static str,
    /// Its value.
    pub value: fn(&DiskRate) -> f64,
    /// A fixed top of the scale.
    pub top: Option<f64>,
}

const fn q(name: &'static str, value: fn(&DiskRate) -> f64) -> Quantity {
    Quantity { name, value, top: None }
}

/// Pairs shown one above the other.
pub const PAIRS: &[[Quantity; 2]] = &[
    [q("MB read/s", |r| r.read_mb_per_s), q("MB written/s", |r| r.write_mb_per_s)],
    [q("reads/s", |r| r.reads_per_s), q("writes/s", |r| r.writes_per_s)],
    [q("r_await ms", |r| r.read_await_ms), q("w_await ms", |r| r.write_await_ms)],
    [q("aqu-sz", |r| r.queue_size), Quantity { name: "%util", value: |r| r.util_pct, top: Some(100.0) }],
];

/// Heat maps that follow the pairs.
const HEATS: [Part; 2] = [Part::Total, Part::Service];

/// A device over the frames kept, oldest first; gaps where it was not there.
pub fn series_of(app: &App, id: DevId) -> impl DoubleEndedIterator<Item = Option<&DiskRate>> + Clone {
    app.past().map(move |f| f.snapshot.device(id))
}

/// The values of a device over the frames kept, oldest first.
pub fn series(
    app: &App,
    id: DevId,
    value: fn(&DiskRate) -> f64,
) -> impl DoubleEndedIterator<Item = Option<f64>> {
    series_of(app, id).map(move |d| d.map(value))
}

/// One labelled graph.
pub fn draw(app: &App, theme: &Theme, area: Rect, buf: &mut Canvas, id: DevId, q: &Quantity, second: bool) {
    if area.height < 2 || area.width < 20 {
        return;
    }
    let graph = Rect { y: area.y + 1, height: area.height - 1, ..area };
    let shown = usize::from(area.width);
    let (mut last, mut max) = (None, 0.0f64);
    for value in series(app, id, q.value).rev().take(shown) {
        last = last.or(value);
        max = max.max(value.unwrap_or(0.0));
    }
    let top = q.top.unwrap_or_else(|| nice_max(max));
    let now = last.map_or("-".into(), |v| format!("{v:.2}"));
    let changed = app.change_marks(shown);
    let legend = if changed.is_empty() { "" } else { "  ┊ knob changed" };
    let label = format!("{}  now {now}  max {max:.2}  scale 0..{top}{legend}", q.name);
    put(buf, area.x, area.y, &label, area.width, theme.head);
    let style = if second { theme.graph2 } else { theme.graph };
    columns(buf, graph, series(app, id, q.value), top, style);
    marks(buf, graph, &changed, theme.changed);
}

fn render(app: &App, theme: &Theme, area: Rect, buf: &mut Canvas, focused: bool) {
    let Some(id) = app.selected_device() else {
        frame(buf, area, "No device selected", "", focused, theme);
        return;
    };
    let name = app.snap().device(id).map_or_else(|| id.to_string(), |r| crate::text::sanitize(&*r.name));
    let inner = frame(buf, area, &format!("{name}, recent past"), "g: another quantity", focused, theme);
    let half = inner.height / 2;
    let halves =
        [Rect { height: half, ..inner }, Rect { y: inner.y + half, height: inner.height - half, ..inner }];
    // Heat maps come after the pairs.
    let at = app.ui.devices.graph % (PAIRS.len() + HEATS.len());
    if let Some(pair) = PAIRS.get(at) {
        draw(app, theme, halves[0], buf, id, &pair[0], false);
        draw(app, theme, halves[1], buf, id, &pair[1], true);
        return;
    }
    let part = HEATS[at - PAIRS.len()];
    match device_latency::kinds(app, id, part, inner.width)[..] {
        [] => {
            let mut why = Vec::new();
            device_latency::table(app, id, &mut why);
            for ((line, _), y) in why.iter().skip(1).zip(inner.y..inner.bottom()) {
                put(buf, inner.x, y, line, inner.width, theme.dim);
            }
        }
        [kind] => device_latency::draw(app, theme, inner, buf, id, kind, part),
        // Flushes are few: the detail has them.
        [first, second, ..] => {
            device_latency::draw(app, theme, halves[0], buf, id, first, part);
            device_latency::draw(app, theme, halves[1], buf, id, second, part);
        }
    }
}

fn sheet(app: &App) -> Table {
    (super::devices::PANE.sheet)(app)
}

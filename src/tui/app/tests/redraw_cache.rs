//! Parts of the picture that are taken over from the frame before look as if they were drawn.

use super::fixture::{app, empty, press, send_processes};
use crate::model::kernel_log::{KmsgRecord, LogClock};
use crate::model::observation::Observation;
use crate::tui::app::App;
use crate::tui::app::draw::{draw, render_to_buffer};
use crate::tui::app::update;
use crate::tui::event::Event;
use crate::tui::keymap::BINDINGS;
use crate::tui::widgets::cell_buffer::CellBuffer;
use crossterm::event::{KeyEvent, KeyModifiers};
use proptest::prelude::*;
use ratatui::layout::Rect;

/// Something that happens.
#[derive(Debug, Clone, Copy)]
enum RedrawStep {
    /// A key of the table.
    Key(usize),
    /// Keys that lead about.
    Keys(&'static str),
    /// A tick, so many milliseconds after the one before.
    Tick(u64),
    /// A line of the kernel's.
    KernelLine(u64),
    /// A look at the tasks.
    TaskScan,
}

fn steps() -> impl Strategy<Value = Vec<RedrawStep>> {
    let step = prop_oneof![
        6 => (0..BINDINGS.len()).prop_map(RedrawStep::Key),
        4 => prop_oneof![Just("<tab>"), Just("w"), Just("www"), Just("<esc>1"), Just("<up>"), Just("T")]
            .prop_map(RedrawStep::Keys),
        3 => prop_oneof![Just(1_000), Just(400_000)].prop_map(RedrawStep::Tick),
        2 => (0u64..3).prop_map(RedrawStep::KernelLine),
        1 => Just(RedrawStep::TaskScan),
    ];
    proptest::collection::vec(step, 1..40)
}

fn apply_step(app: &mut App, step: RedrawStep, n: u64) {
    match step {
        RedrawStep::Key(at) => {
            let modifiers = if BINDINGS[at].ctrl { KeyModifiers::CONTROL } else { KeyModifiers::NONE };
            update(app, Event::Key(KeyEvent::new(BINDINGS[at].code, modifiers)));
        }
        RedrawStep::Keys(keys) => drop(press(app, keys)),
        RedrawStep::Tick(ms) => {
            let mut sample = app.shared.system.last_sample.clone().unwrap_or_default();
            sample.seq += 1;
            sample.time.boot_ns += ms * 1_000_000;
            sample.time.wall_ns += ms as i64 * 1_000_000;
            app.shared.log_clock.mono_ns += ms * 1_000_000;
            app.shared.log_clock.wall_ns += ms as i64 * 1_000_000;
            update(app, Event::Observed(Observation::Sample(Box::new(sample))));
        }
        RedrawStep::KernelLine(which) => {
            let clock = app.shared.log_clock;
            let message = ["I/O error, dev sdz, sector 8", "EXT4-fs (sdz1): re-mounted", "\u{202e}写 hello"];
            let record = KmsgRecord {
                seq: 1_000_000 + n,
                level: 3,
                boot_us: clock.mono_ns / 1000,
                message: message[which as usize].into(),
                ..KmsgRecord::default()
            };
            update(app, Event::Observed(Observation::KernelLog(vec![record], LogClock { ..clock })));
        }
        RedrawStep::TaskScan => send_processes(app, true),
    }
}

/// Draws on, and anew.
fn assert_same_as_full_redraw(app: &App, canvas: &mut CellBuffer) -> Result<(), TestCaseError> {
    draw(app, canvas);
    prop_assert_eq!(canvas.to_buffer(), render_to_buffer(app));
    canvas.swap(|_, _, _, _| ());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn what_is_taken_over_is_what_would_be_drawn(
        steps in steps(), busy in any::<bool>(), calm in any::<bool>(), large in any::<bool>(),
        start in prop_oneof![Just(""), Just("5"), Just("8"), Just("2"), Just("5u")]
    ) {
        let size = if large { (140, 44) } else { (80, 24) };
        let mut app = if busy { app(size) } else { empty(size) };
        if calm {
            app.shared.system.hung_tasks.clear();
        }
        press(&mut app, start);
        let mut canvas = CellBuffer::new(Rect::new(0, 0, size.0, size.1));
        assert_same_as_full_redraw(&app, &mut canvas)?;
        for (n, step) in steps.into_iter().enumerate() {
            apply_step(&mut app, step, n as u64);
            assert_same_as_full_redraw(&app, &mut canvas)?;
            assert_same_as_full_redraw(&app, &mut canvas)?;
        }
    }
}

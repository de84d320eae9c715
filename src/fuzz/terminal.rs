//! Terminal input: keys, mouse and sizes, as crossterm reports them, and what the machine does meanwhile.

use super::assert_safe;
use crate::jobs::job::WorkerReply;
use crate::model::kernel_log::LogClock;
use crate::model::observation::Observation;
use crate::model::system_state::{HostInfo, SystemState};
use crate::recording::reader::{ReadAt, RecordingReader};
use crate::tui::app::draw::render_to_buffer;
use crate::tui::app::{App, update};
use crate::tui::effect::Effect;
use crate::tui::event::Event;
use crate::tui::keymap::BINDINGS;
use crate::tui::settings::Settings;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use std::io;

static RECORDING: &[u8] = include_bytes!("../../tests/fixtures/recordings/v1-invented.iotop");

/// Ticks of the recording that are fed.
const TICKS: usize = 4;

struct Fixture;

impl ReadAt for Fixture {
    fn read_at(&mut self, at: u64, buf: &mut [u8]) -> io::Result<usize> {
        let rest = &RECORDING[RECORDING.len().min(at as usize)..];
        let n = rest.len().min(buf.len());
        buf[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }
}

thread_local! {
    static OBSERVED: Vec<Vec<Observation>> = {
        let mut reader = RecordingReader::open(Fixture).unwrap();
        let ticks = std::iter::from_fn(|| reader.next_tick().unwrap()).take(TICKS);
        ticks.map(|tick| [tick.full_state.unwrap_or_default(), tick.observations].concat()).collect()
    };
}

/// The program with two ticks of a recording.
pub(super) fn screen(size: (u16, u16)) -> App {
    let system = SystemState::new(HostInfo::default(), LogClock::default());
    let mut app = App::new(system, size, &Settings::default(), false);
    observe(&mut app, 0);
    observe(&mut app, 1);
    app
}

fn observe(app: &mut App, tick: usize) {
    let observations = OBSERVED.with(|all| all.get(tick).cloned().unwrap_or_default());
    for observation in observations {
        update(app, Event::Observed(observation));
    }
}

pub(super) fn draw(app: &App) {
    for cell in render_to_buffer(app).content() {
        assert_safe(cell.symbol());
    }
}

/// Three bytes an event: its kind and two values.
pub(super) fn events(input: &[u8]) {
    let mut app = screen((100, 30));
    let mut next_tick = 2;
    for event in input.chunks_exact(3) {
        let (kind, a, b) = (event[0] % 8, event[1], event[2]);
        let effects = match kind {
            0..=2 => update(&mut app, Event::Key(bound_key(usize::from(a)))),
            3 => update(&mut app, Event::Key(KeyEvent::new(typed(a, b), KeyModifiers::NONE))),
            4 => update(&mut app, Event::Key(KeyEvent::new(typed(a, 0), KeyModifiers::from_bits_truncate(b)))),
            5 => update(&mut app, Event::Mouse(mouse(event[0], a, b))),
            6 => {
                let effects = update(&mut app, Event::Resize(a.into(), b.into()));
                draw(&app);
                effects
            }
            _ => {
                observe(&mut app, next_tick);
                next_tick += 1;
                Vec::new()
            }
        };
        for effect in effects {
            if let Effect::RunJob(job) = effect {
                update(&mut app, Event::JobReply(job, WorkerReply::Failed("no\x1b[2J".into())));
            }
        }
        if kind < 3 {
            draw(&app);
        }
    }
    draw(&app);
}

fn bound_key(n: usize) -> KeyEvent {
    let key = &BINDINGS[n % BINDINGS.len()];
    KeyEvent::new(key.code, if key.ctrl { KeyModifiers::CONTROL } else { KeyModifiers::NONE })
}

fn typed(a: u8, b: u8) -> KeyCode {
    match (a, b) {
        (0, _) => KeyCode::Backspace,
        (1, _) => KeyCode::Delete,
        (2, _) => KeyCode::Left,
        (3, _) => KeyCode::Right,
        (4, _) => KeyCode::Home,
        (5, _) => KeyCode::End,
        (6, _) => KeyCode::Enter,
        (7, _) => KeyCode::Esc,
        (8, _) => KeyCode::F(b),
        _ => KeyCode::Char(char::from_u32(u32::from(a) | u32::from(b) << 8).unwrap_or('é')),
    }
}

fn mouse(kind: u8, column: u8, row: u8) -> MouseEvent {
    let kind = match kind / 8 % 5 {
        0 => MouseEventKind::Down(MouseButton::Left),
        1 => MouseEventKind::Down(MouseButton::Right),
        2 => MouseEventKind::Drag(MouseButton::Left),
        3 => MouseEventKind::ScrollUp,
        _ => MouseEventKind::ScrollDown,
    };
    MouseEvent { kind, column: column.into(), row: row.into(), modifiers: KeyModifiers::NONE }
}

//! Terminal input: keys, mouse and sizes, as crossterm reports them, and what the machine does meanwhile.

use super::assert_safe;
use crate::jobs::job::WorkerReply;
use crate::model::kernel_log::LogClock;
use crate::model::observation::Observation;
use crate::model::system_state::{HostInfo, SystemState};
use crate::recording::reader::{ReadAt, RecordingReader};
use crate::tui::app::draw::draw;
use crate::tui::app::{App, update};
use crate::tui::effect::Effect;
use crate::tui::event::Event;
use crate::tui::keymap::BINDINGS;
use crate::tui::settings::Settings;
use crate::tui::widgets::{CellBuffer, Rect};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use std::cell::Cell;
use std::io;

static RECORDING: &[u8] = include_bytes!("../../tests/fixtures/recordings/v1-invented.iotop");

/// Ticks of the recording that are fed.
const TICKS: usize = 16;

/// Columns and rows at the start of each input.
const SIZE: (u16, u16) = (90, 26);

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

/// The program with two ticks of a recording, and the frame that was drawn last.
pub(super) struct Session {
    pub(super) app: App,
    buffer: CellBuffer,
    next_tick: usize,
    inputs: u32,
}

thread_local! {
    /// The session of the last input, which the next one continues: a program is built only once for many inputs.
    static SESSION: Cell<Option<Box<Session>>> = const { Cell::new(None) };
}

/// Drops the session, so that the next input starts with a new one.
pub(super) fn restart() {
    SESSION.set(None);
}

/// Continues the session, in which the screen has the usual size again.
pub(super) fn with_session(run: impl FnOnce(&mut Session)) {
    // A panic drops the session.
    let mut session = SESSION.take().unwrap_or_else(|| Box::new(Session::new()));
    session.update(Event::Resize(SIZE.0, SIZE.1));
    run(&mut session);
    SESSION.set(Some(session));
}

impl Session {
    fn new() -> Self {
        let system = SystemState::new(HostInfo::default(), LogClock::default());
        let app = App::new(system, SIZE, &Settings::default());
        let mut session = Self { app, buffer: CellBuffer::new(Rect::default()), next_tick: 0, inputs: 0 };
        session.observe();
        session.observe();
        session
    }

    /// The next tick of the recording, until there are no more.
    fn observe(&mut self) {
        let observations = OBSERVED.with(|all| all.get(self.next_tick).cloned().unwrap_or_default());
        self.next_tick += 1;
        for observation in observations {
            self.update(Event::Observed(observation));
        }
    }

    pub(super) fn update(&mut self, event: Event) -> Vec<Effect> {
        update(&mut self.app, event)
    }

    /// Draws the screen and checks the cells that differ from the frame before.
    pub(super) fn draw(&mut self) {
        let (width, height) = self.app.screen.size;
        let area = Rect::new(0, 0, width, height);
        if self.buffer.area != area || self.buffer.is_full() {
            self.buffer = CellBuffer::new(area);
        }
        draw(&self.app, &mut self.buffer);
        self.buffer.swap(|styles, _, before, now| {
            for (_, cell) in before.iter().zip(now).filter(|(before, now)| before != now) {
                assert_safe(styles.unpack(*cell).symbol());
            }
        });
    }

    /// An event of three bytes: its kind and two values.
    fn apply(&mut self, bits: u8, a: u8, b: u8) {
        let effects = match bits % 8 {
            0..=2 => self.update(Event::Key(bound_key(usize::from(a)))),
            3 => self.update(Event::Key(KeyEvent::new(typed(a, b), KeyModifiers::NONE))),
            4 => self.update(Event::Key(KeyEvent::new(typed(a, 0), KeyModifiers::from_bits_truncate(b)))),
            5 => self.update(Event::Mouse(mouse(bits, a, b))),
            6 => {
                let effects = self.update(resize(bits, a, b));
                if bits & 8 == 0 {
                    self.draw();
                }
                effects
            }
            _ => {
                self.observe();
                Vec::new()
            }
        };
        for effect in effects {
            if let Effect::RunJob(job) = effect {
                self.update(Event::JobReply(job, WorkerReply::Failed("no\x1b[2J".into())));
            }
        }
        if bits < 0x20 && bits % 8 < 3 {
            self.draw();
        }
    }
}

/// Three bytes an event. The screen is drawn after one key in eight, one size in two, and the last event of one input in four:
/// drawing takes longer than all that leads to it, and what was not drawn is drawn with a later input.
pub(super) fn events(input: &[u8]) {
    with_session(|session| {
        for event in input.chunks_exact(3) {
            session.apply(event[0], event[1], event[2]);
        }
        session.inputs += 1;
        if session.inputs % 4 == 1 {
            session.draw();
        }
    });
}

/// One size in eight is up to 255 columns and rows, the others are at most those of a small screen.
fn resize(bits: u8, a: u8, b: u8) -> Event {
    if bits >= 0xe0 { Event::Resize(a.into(), b.into()) } else { Event::Resize(u16::from(a) % 120, u16::from(b) % 32) }
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

//! Bytes a frame sends to the terminal while little happens: a line to a distant machine has little room.

use crate::model::snapshot::Snapshot;
use crate::model::system_state::SystemState;
use crate::recording::reader::RecordingReader;
use crate::tui::app::draw::draw;
use crate::tui::app::{App, update};
use crate::tui::diff_renderer::DiffRenderer;
use crate::tui::settings::Settings;
use crate::tui::view::Event;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// The most that a frame may have on the average.
const MAX_BYTES: usize = 2048;
/// Samples before those that count: enough for the widest graph.
const WARM_UP: u64 = 400;
const COUNTED: u64 = 60;

/// Plays a recording, and then its samples over and over, each as a new one; returns the mean bytes of the last frames.
fn mean_bytes(name: &str, size: (u16, u16)) -> usize {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/doctor/{name}.iotop"));
    let mut reader = RecordingReader::open(File::open(path).unwrap()).unwrap();
    let system = SystemState::new(reader.header.host(), reader.header.log_clock());
    let mut app = App::new(system, size, &Settings::default());
    while let Some(tick) = reader.next_tick().unwrap() {
        for observation in tick.full_state.into_iter().flatten().chain(tick.observations) {
            update(&mut app, Event::Observed(observation));
        }
    }
    let all: Vec<Arc<Snapshot>> = app.shared.system.history.iter().map(|frame| frame.snapshot.clone()).collect();
    let rates: Vec<&Arc<Snapshot>> = all.iter().filter(|snapshot| !snapshot.is_since_boot).collect();
    let last = app.shared.system.snapshot.clone();
    let mut renderer = DiffRenderer::new(size);
    let (mut sizes, mut random) = (Vec::new(), 1u64);
    for n in 1..=WARM_UP + COUNTED {
        // In no order that repeats: the cells of a graph of a pattern that does would be the same after a while.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut snapshot = Snapshot::clone(rates[(random >> 33) as usize % rates.len()]);
        (snapshot.seq, snapshot.time) = (last.seq + n, last.time);
        snapshot.time.boot_ns += n * 1_000_000_000;
        snapshot.time.wall_ns += n as i64 * 1_000_000_000;
        let snapshot = Arc::new(snapshot);
        app.shared.system.history.push(snapshot.clone());
        app.shared.system.snapshot = snapshot;
        if n < WARM_UP {
            continue;
        }
        app.refresh_views(&mut Vec::new());
        let mut bytes = 0;
        renderer
            .draw_frame(
                |buf| draw(&app, buf),
                |frame| {
                    bytes = frame.len();
                    Ok(())
                },
            )
            .unwrap();
        sizes.push(bytes);
    }
    // The first one draws the whole screen.
    sizes[1..].iter().sum::<usize>() / (sizes.len() - 1)
}

#[test]
fn a_frame_at_rest_has_few_bytes_at_every_size() {
    for name in ["healthy-idle", "healthy-database"] {
        for size in [(80, 24), (120, 40), (160, 45), (200, 50)] {
            let mean = mean_bytes(name, size);
            println!("{name} {}x{}: {mean} bytes a frame", size.0, size.1);
            assert!(mean <= MAX_BYTES, "{name} at {size:?}: {mean} bytes a frame");
        }
    }
}

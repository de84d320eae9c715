//! The table of the book that says how few keys answer a question: the keys are pressed, and the answer is on the screen.

use super::bench::{open_bench, send_pair, start_run};
use super::fixture::tune::{change_on_lease, view};
use super::fixture::{app, press};
use super::replay::open_replay;
use super::situations::play;
use super::{render, text};
use iotop_plus::tui::app::App;
use std::path::Path;

const SIZE: (u16, u16) = (120, 40);
/// Keys at most, beside typed text.
const MOST: usize = 3;

/// A row of the table, and the keys in it as `press` takes them.
struct Row {
    what: String,
    keys: String,
    count: usize,
}

fn rows() -> Vec<Row> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guide/three-keys.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| To"));
    rows.map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let mut keys = String::new();
        let mut count = 0;
        // Between backquotes are keys, between asterisks text.
        for (i, part) in cells[1].split(['`', '*']).enumerate().filter(|(i, _)| i % 2 == 1) {
            let is_key = cells[1].split(['`', '*']).take(i).map(|part| part.len() + 1).sum::<usize>();
            let is_key = cells[1].as_bytes()[is_key - 1] == b'`';
            count += usize::from(is_key);
            match part.len() {
                2.. if is_key => keys += &format!("<{}>", part.to_lowercase()),
                _ => keys += part,
            }
        }
        Row { what: cells[0].into(), keys, count: cells[2].parse::<usize>().unwrap().max(count) }
    })
    .collect()
}

fn screen(app: &App) -> String {
    text(&render(app))
}

/// The screen after the keys of the row of this name.
fn answer(what: &str, mut app: App) -> (String, App, usize) {
    let row = rows().into_iter().find(|row| row.what == what).unwrap_or_else(|| panic!("no row {what:?}"));
    let effects = press(&mut app, &row.keys);
    (screen(&app), app, effects.len())
}

#[test]
fn no_answer_needs_more_than_three_keys() {
    let rows = rows();
    assert!(rows.len() >= 9);
    for row in rows {
        let Row { what, keys, count } = row;
        assert!(count <= MOST, "{what}: {keys} are {count}");
    }
}

#[test]
fn the_first_screen_says_who_writes_and_who_waits_for_it() {
    let (shown, ..) = answer("see who writes", play("fsync-victim", SIZE));
    assert!(shown.contains("streamer /srv/data") && shown.contains("WRITE/s"), "{shown}");
    let (shown, ..) = answer("see who is slow, because of whom, on which device", play("fsync-victim", SIZE));
    let line = shown.lines().find(|line| line.contains("culprit streamer")).unwrap_or_default();
    assert!(line.contains("device loop1") && line.contains("victim database"), "{shown}");
}

#[test]
fn memory_lists_the_largest_swappers() {
    let (shown, ..) = answer("see who is swapped", app(SIZE));
    assert!(shown.contains("ledgerd") && shown.contains("183M"), "{shown}");
}

#[test]
fn a_kernel_error_leads_to_its_device() {
    let (shown, ..) = answer("go from a kernel error to its device", play("io-error", SIZE));
    assert!(shown.lines().nth(1).is_some_and(|line| line.contains("loop1")), "{shown}");
}

#[test]
fn a_benchmark_is_started_cancelled_and_compared() {
    let (shown, _, effects) = answer("start a benchmark", open_bench(SIZE));
    assert!(effects > 0 && shown.contains("starting"), "{shown}");
    let (_, _, effects) = answer("cancel it", start_run(SIZE));
    assert!(effects > 0);
    let (_, mut app, _) = answer("compare a result with the newest of its profile", open_bench(SIZE));
    send_pair(&mut app, ["1795276156-randrw", "1795100000-randrw"]);
    let shown = screen(&app);
    assert!(shown.contains("A: ") && shown.contains("B: "), "{shown}");
}

#[test]
fn a_setting_is_changed_seen_and_undone() {
    let (app, _tree) = view(SIZE);
    let (_, app, effects) = answer("change a setting", app);
    assert!(effects > 0 && app.views.tune.error.is_none());
    let (mut app, tree) = view(SIZE);
    change_on_lease(&mut app, &tree, &["vm.swappiness=10"], 30);
    let (shown, app, _) = answer("see the change, and the figures before and since", app);
    assert!(shown.contains("vm.swappiness") && shown.contains("since"), "{shown}");
    let (_, _, effects) = answer("undo it", app);
    assert!(effects > 0);
}

#[test]
fn pictures_and_findings_of_a_replay_are_a_key_away() {
    let (_, _, effects) = answer("write a picture for the ticket", app(SIZE));
    assert!(effects > 0);
    let (_, _, effects) = answer("go to the next finding in a replay", open_replay(SIZE));
    assert!(effects > 0);
}

#[test]
fn lists_are_searched_and_sorted() {
    let (shown, ..) = answer("find a process and open its page", app(SIZE));
    assert!(shown.contains("Task 6405"), "{shown}");
    let (shown, ..) = answer("sort by a column", app(SIZE));
    let row = |name: &str| shown.lines().position(|line| line.contains(name)).unwrap();
    assert!(row("6405 ledger") < row("6408 root"), "{shown}");
    let (shown, ..) = answer("see the tree of processes", app(SIZE));
    assert!(shown.contains("Processes · tree") && shown.contains("└─"), "{shown}");
    let (shown, ..) = answer("see the tree of devices", app(SIZE));
    assert!(shown.contains("vda") && shown.contains("loop0"), "{shown}");
}

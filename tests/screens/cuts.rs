//! No title, total, legend or key is cut without a mark: what a narrow screen shows of one is whole, or ends in `…`.

use super::fixture::{app, press};
use super::situations::play;
use super::{render, text};
use iotop_plus::tui::app::App;
use std::collections::BTreeSet;

/// Keys to every view and to the pages of a device, a task and a finding.
const VIEWS: [&str; 12] = ["", "2", "2<enter>", "3", "3<enter>", "4", "5", "5<enter>", "6", "8", "9", "0"];
const WIDE: u16 = 300;

fn is_border(c: char) -> bool {
    "╭╮╰╯├┤┬┴┼─│".contains(c)
}

/// The texts in borders, in the header and in the footer of a screen.
fn labels(screen: &str) -> BTreeSet<String> {
    let last = screen.lines().count() - 1;
    let mut out = BTreeSet::new();
    for (y, line) in screen.lines().enumerate() {
        let is_title = line.starts_with(['╭', '├', '╰']);
        match y {
            // Parts are two blanks apart.
            0 => out.extend(line.split("  ").map(|part| part.trim().to_owned())),
            y if y == last => out.extend(line.split("  ").map(|part| part.trim().to_owned())),
            _ if is_title => out.extend(line.split(is_border).map(|part| part.trim().to_owned())),
            _ => {}
        }
    }
    out.retain(|label| label.chars().count() > 3);
    out
}

/// The labels that are the beginning of a longer one and of no whole one.
fn cut_labels(narrow: &BTreeSet<String>, wide: &BTreeSet<String>) -> Vec<String> {
    let is_cut = |label: &&String| {
        let is_marked = label.ends_with('…');
        // Parts of a title are left out as wholes, between words.
        let goes_on = |whole: &String| {
            let rest = whole.strip_prefix(label.as_str());
            rest.and_then(|rest| rest.chars().next()).is_some_and(char::is_alphanumeric)
        };
        // The uptime is shorter on a narrow screen.
        let is_uptime = label.starts_with("up ");
        !is_marked && !is_uptime && !wide.contains(*label) && wide.iter().any(goes_on)
    };
    narrow.iter().filter(is_cut).cloned().collect()
}

fn check(name: &str, make: impl Fn((u16, u16)) -> App) {
    let labels_at = |width| labels(&text(&render(&make((width, 40)))));
    let wide = labels_at(WIDE);
    assert!(!wide.is_empty(), "{name}");
    for width in (40..200).step_by(7).chain([80, 120, 160]) {
        let cut = cut_labels(&labels_at(width), &wide);
        assert!(cut.is_empty(), "{name}, {width} columns: {cut:?} of {wide:?}");
    }
}

#[test]
fn labels_are_whole_or_marked_at_every_width() {
    for keys in VIEWS {
        check(keys, |size| {
            let mut app = app(size);
            press(&mut app, keys);
            app
        });
    }
    for name in ["dirty-storm", "io-error"] {
        check(name, |size| play(name, size));
    }
}

#[test]
fn a_cut_label_is_found() {
    let set = |labels: &[&str]| labels.iter().map(|label| (*label).to_owned()).collect::<BTreeSet<_>>();
    let wide = set(&["Kernel log, newest first", "dirty limit 48.0M"]);
    assert_eq!(cut_labels(&set(&["Kernel log, new", "dirty limit 48.0M"]), &wide), ["Kernel log, new"]);
    assert_eq!(cut_labels(&set(&["Kernel log, new…", "dirty limit"]), &wide), [""; 0]);
}

//! The footer lists what acts now, at every width.

use super::figures::open;
use super::fixture::{press, tune};
use super::{draw_screen, visible_effects};
use crate::tui::app::App;
use crate::tui::view::Action;

const PLACES: [&str; 19] =
    ["", "w", "ww", "www", "wwww", "2", "2w", "3", "4", "5", "6", "6w", "7", "8", "8w", "9", "9w", "0", "2<enter>"];

/// A screen with rows to act on.
fn open_place(place: &str) -> App {
    let size = (200, 50);
    if place == "7" {
        return tune::view(size).0;
    }
    open(place, size)
}

fn footer(app: &App) -> Vec<(u16, u16, Action, String, String)> {
    let area = app.arrange().0.footer;
    let keys = app.footer_keys(area).into_iter();
    keys.map(|(x, width, b)| (x, width, b.action, b.name.to_string(), b.footer.to_string())).collect()
}

#[test]
fn the_footer_fits_and_keeps_help_and_quit_at_every_width() {
    for place in PLACES {
        let mut app = open_place(place);
        for width in 40..=200 {
            app.screen.size = (width, 50);
            let keys = footer(&app);
            assert!([Action::Help, Action::Quit].iter().all(|a| keys.iter().any(|k| k.2 == *a)), "{place:?} {width}");
            assert!(keys.iter().all(|(x, cells, ..)| x + cells <= width), "{place:?} {width}: {keys:?}");
            assert!(keys.windows(2).all(|pair| pair[0].0 + pair[0].1 < pair[1].0), "{place:?} {width}: {keys:?}");
        }
    }
}

/// The name of a key as the tests press it.
fn typed(name: &str) -> String {
    match name {
        "→" => "<right>".into(),
        "←" => "<left>".into(),
        "Space" => " ".into(),
        _ if name.chars().count() > 1 => format!("<{}>", name.to_lowercase()),
        _ => name.into(),
    }
}

#[test]
fn every_key_of_the_footer_acts() {
    let mut without_effect = Vec::new();
    for place in PLACES {
        for (.., name, word) in footer(&open_place(place)) {
            let mut app = open_place(place);
            app.screen.message = None;
            let before = draw_screen(&app);
            let effects = visible_effects(press(&mut app, &typed(&name)));
            if effects.is_empty() && draw_screen(&app) == before {
                without_effect.push(format!("{place:?}: {name} {word}"));
            }
        }
    }
    assert!(without_effect.is_empty(), "{without_effect:#?}");
}

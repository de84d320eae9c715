//! Pictures of this program are made by its own exporters, of the captured machine:
//! `MAKE_PICTURES=1 cargo test --test screens pictures` makes that of the README anew, and
//! `PICTURES_TO=DIR cargo test --test screens pictures` writes every view in every form to a directory.

use super::{app, press, render};
use iotop_plus::export::screenshot::colour::DARK;
use iotop_plus::export::screenshot::svg::to_svg;
use iotop_plus::export::screenshot::{FORMATS, find_format};
use std::path::Path;

/// Every view, and the pages that lie over one.
const VIEWS: [(&str, &str); 11] = [
    ("1", "overview"),
    ("2", "devices"),
    ("3", "processes"),
    ("4", "memory"),
    ("5", "kernel"),
    ("6", "bench"),
    ("8", "findings"),
    ("2<enter>", "device"),
    ("3<enter>", "process"),
    ("5<enter>", "message"),
    ("?", "help"),
];

#[test]
fn readme_screenshot_is_current() {
    let made = to_svg(&render(&app((120, 40))), &DARK, "The first screen of iotop-plus, on a machine in trouble");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/screen.svg");
    if std::env::var_os("MAKE_PICTURES").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let stale = std::fs::read_to_string(&path).unwrap() != made;
    assert!(!stale, "{}: stale; MAKE_PICTURES=1 cargo test --test screens pictures", path.display());
}

#[test]
fn every_view_exports_in_every_format() {
    let to = std::env::var_os("PICTURES_TO");
    for (keys, name) in VIEWS {
        let mut app = app((120, 40));
        press(&mut app, keys);
        let shot = app.capture().to_screenshot();
        for form in FORMATS {
            let file = (form.write)(&shot);
            assert!(file.len() > 500, "{name}.{}: {} bytes", form.extension, file.len());
            if let Some(dir) = &to {
                std::fs::write(Path::new(dir).join(format!("{name}.{}", form.extension)), file).unwrap();
            }
        }
        let text = String::from_utf8((find_format("text").unwrap().write)(&shot)).unwrap();
        assert_eq!(text, super::text(&render(&app)), "{name}");
    }
}

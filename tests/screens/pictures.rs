//! The picture in the README is made by the program's own exporter, of the captured machine:
//! `MAKE_PICTURES=1 cargo test --test screens pictures` makes it anew.

use super::{app, picture};
use iotop_plus::export::svg::svg;
use std::path::Path;

#[test]
fn the_picture_is_of_this_program() {
    let made = svg(&picture(&app((120, 40))), "The first screen of iotop-plus, on a machine in trouble");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/screen.svg");
    if std::env::var_os("MAKE_PICTURES").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let stale = std::fs::read_to_string(&path).unwrap() != made;
    assert!(!stale, "{}: stale; MAKE_PICTURES=1 cargo test --test screens pictures", path.display());
}

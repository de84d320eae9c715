//! All forms over one screen, and over hostile ones.

use super::colour::{DARK, LIGHT};
use super::*;
use proptest::prelude::*;
use ratatui::style::{Color, Modifier, Style};

fn shot(cells: Buffer) -> Shot {
    let mut sheet = Sheet::new("Devices", &[("Device", false), ("tps", true)]);
    sheet.rows.push(vec!["a|b".into(), "1.00".into()]);
    Shot { title: "box, now".into(), cells, sheets: vec![sheet], pane: false, palette: &DARK }
}

fn written(name: &str, shot: &Shot) -> Vec<u8> {
    (form(name).unwrap().write)(shot)
}

#[test]
fn names_and_endings_are_one_to_one() {
    for f in FORMS {
        assert_eq!(form(f.name).unwrap().ending, f.ending);
        assert_eq!(form_of_file(&format!("a.b/c.{}", f.ending.to_uppercase())).unwrap().name, f.name);
    }
    assert!(form("pdf").is_none() && form_of_file("shot").is_none() && form_of_file("a.pdf").is_none());
}

#[test]
fn a_pane_as_text_is_its_table_and_a_screen_its_cells() {
    let mut one = shot(Buffer::with_lines(["┌─ Devices"]));
    assert_eq!(written("text", &one), "┌─ Devices\n".as_bytes());
    one.pane = true;
    assert_eq!(written("text", &one), one.sheets[0].text().as_bytes());
    let markdown = String::from_utf8(written("markdown", &one)).unwrap();
    assert!(markdown.contains("| Device | tps |\n| :-- | --: |\n| a\\|b | 1.00 |\n"), "{markdown}");
}

#[test]
fn a_part_of_a_screen_has_its_own_corner() {
    let whole = Buffer::with_lines(["abcdef", "ghijkl", "mnopqr"]);
    assert_eq!(cut(&whole, Rect::new(2, 1, 3, 2)), Buffer::with_lines(["ijk", "opq"]));
    assert_eq!(cut(&whole, Rect::new(4, 2, 30, 30)), Buffer::with_lines(["qr"]));
}

proptest! {
    /// Whatever got into the cells: no control character leaves, and every form can be written.
    #[test]
    fn nothing_unsafe_gets_out(
        symbols in proptest::collection::vec("\\PC|[\u{0}-\u{9f}]|[\u{200b}-\u{202e}]|<|&|写|\u{301}|█", 24),
        fg in any::<u8>(), bits in 0u16..512, light in any::<bool>(),
    ) {
        let mut cells = Buffer::empty(Rect::new(0, 0, 8, 3));
        for (i, symbol) in symbols.iter().enumerate() {
            let style = Style::new().fg(Color::Indexed(fg)).add_modifier(Modifier::from_bits_truncate(bits));
            cells[((i % 8) as u16, (i / 8) as u16)].set_symbol(symbol).set_style(style);
        }
        let mut one = shot(cells);
        one.palette = if light { &LIGHT } else { &DARK };
        for f in FORMS.iter().filter(|f| f.name != "png") {
            let text = String::from_utf8((f.write)(&one)).unwrap();
            // The sequences of ours are the only ones.
            let own = regex_lite::Regex::new("\x1b\\[[0-9;]*m").unwrap();
            let text = if f.name == "ansi" { own.replace_all(&text, "").into_owned() } else { text };
            let bad = text.chars().find(|c| *c != '\n' && !crate::text::is_safe(*c));
            prop_assert!(bad.is_none(), "{}: {bad:?}", f.name);
        }
        prop_assert!(written("png", &one).starts_with(b"\x89PNG"));
    }
}

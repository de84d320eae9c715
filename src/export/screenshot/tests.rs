//! All formats with one screen, and with hostile cells.

use super::colour::{DARK, LIGHT};
use super::*;
use proptest::prelude::*;
use ratatui::style::{Color, Modifier, Style};

fn screenshot(cells: Buffer) -> Screenshot {
    let mut table = Table::new("Devices", &[("Device", false), ("tps", true)]);
    table.rows.push(vec!["a|b".into(), "1.00".into()]);
    Screenshot { title: "box, now".into(), cells, tables: vec![table], is_single_pane: false, palette: &DARK }
}

fn write(name: &str, shot: &Screenshot) -> Vec<u8> {
    (find_format(name).unwrap().write)(shot)
}

#[test]
fn format_names_and_extensions_are_unique() {
    for f in FORMATS {
        assert_eq!(find_format(f.name).unwrap().extension, f.extension);
        assert_eq!(format_of_file(&format!("a.b/c.{}", f.extension.to_uppercase())).unwrap().name, f.name);
    }
    assert!(find_format("pdf").is_none() && format_of_file("shot").is_none() && format_of_file("a.pdf").is_none());
}

#[test]
fn single_pane_text_is_its_table_and_screen_text_its_cells() {
    let mut one = screenshot(Buffer::with_lines(["┌─ Devices"]));
    assert_eq!(write("text", &one), "┌─ Devices\n".as_bytes());
    one.is_single_pane = true;
    assert_eq!(write("text", &one), one.tables[0].to_text().as_bytes());
    let markdown = String::from_utf8(write("markdown", &one)).unwrap();
    assert!(markdown.contains("| Device | tps |\n| :-- | --: |\n| a\\|b | 1.00 |\n"), "{markdown}");
}

#[test]
fn crop_moves_the_area_to_the_origin() {
    let whole = Buffer::with_lines(["abcdef", "ghijkl", "mnopqr"]);
    assert_eq!(crop(&whole, Rect::new(2, 1, 3, 2)), Buffer::with_lines(["ijk", "opq"]));
    assert_eq!(crop(&whole, Rect::new(4, 2, 30, 30)), Buffer::with_lines(["qr"]));
}

proptest! {
    /// No format contains control characters, whatever is in the cells.
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
        let mut one = screenshot(cells);
        one.palette = if light { &LIGHT } else { &DARK };
        for f in FORMATS.iter().filter(|f| f.name != "png") {
            let text = String::from_utf8((f.write)(&one)).unwrap();
            // Except our own SGR sequences.
            let own = regex_lite::Regex::new("\x1b\\[[0-9;]*m").unwrap();
            let text = if f.name == "ansi" { own.replace_all(&text, "").into_owned() } else { text };
            let bad = text.chars().find(|c| *c != '\n' && !crate::sanitize::is_safe(*c));
            prop_assert!(bad.is_none(), "{}: {bad:?}", f.name);
        }
        prop_assert!(write("png", &one).starts_with(b"\x89PNG"));
    }
}

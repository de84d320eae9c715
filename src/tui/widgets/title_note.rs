//! The note at the right of a title: parts that become shorter, and then fewer, where there is no room.

use unicode_width::UnicodeWidthStr;

const SEPARATOR: &str = " · ";

/// A part of a note, with a shorter form of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotePart {
    long: String,
    short: Option<String>,
}

impl NotePart {
    /// A part that has one form.
    pub(crate) fn of(text: String) -> Self {
        Self { long: text, short: None }
    }

    pub(crate) fn new(long: String, short: String) -> Self {
        Self { long, short: Some(short) }
    }
}

/// Cells for the note of a pane of this width beside a title of so many cells.
pub(crate) fn title_note_room(pane_width: u16, title_width: usize) -> u16 {
    usize::from(pane_width).saturating_sub(7 + title_width) as u16
}

/// The cells that a sanitized text takes.
pub(crate) fn text_width(text: &str) -> usize {
    text.width()
}

/// The parts in their long form.
pub(crate) fn join_parts(parts: &[NotePart]) -> String {
    parts.iter().map(|part| part.long.as_str()).collect::<Vec<_>>().join(SEPARATOR)
}

/// The parts in so many cells: where all do not fit, the last ones are shortened first; then those that still do not fit are
/// left out, which a mark says.
pub(crate) fn fit_parts(parts: &[NotePart], room: u16) -> String {
    let room = usize::from(room);
    let join = |shortened_from: usize| {
        let text = |(i, part): (usize, &NotePart)| match &part.short {
            Some(short) if i >= shortened_from => short.clone(),
            _ => part.long.clone(),
        };
        parts.iter().enumerate().map(text).collect::<Vec<_>>()
    };
    let joined = |texts: &[String]| texts.join(SEPARATOR);
    for from in (0..=parts.len()).rev() {
        let text = joined(&join(from));
        if text.width() <= room {
            return text;
        }
    }
    let texts = join(0);
    let cut = |count: usize| joined(&texts[..count]) + SEPARATOR + "…";
    (1..texts.len()).rev().map(cut).find(|text| text.width() <= room).unwrap_or_else(|| joined(&texts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_parts_are_shortened_first_and_whole_parts_are_left_out() {
        let part = |long: &str, short: &str| NotePart::new(long.into(), short.into());
        let parts = [NotePart::of("25".into()), part("read 1M/s", "r 1M"), part("no IO%: off", "no IO%")];
        for (room, expected) in [
            (80, "25 · read 1M/s · no IO%: off"),
            (28, "25 · read 1M/s · no IO%: off"),
            (27, "25 · read 1M/s · no IO%"),
            (22, "25 · r 1M · no IO%"),
            (17, "25 · r 1M · …"),
            (12, "25 · …"),
        ] {
            let text = fit_parts(&parts, room);
            assert_eq!(text, expected, "{room}");
            assert!(text.width() <= room.into(), "{room}");
        }
        assert_eq!(fit_parts(&[], 5), "");
    }
}

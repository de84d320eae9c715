//! Sanitizes hostile text.
//!
//! Anybody can choose process names, command lines, kernel messages, mount points, device and cgroup names. Every
//! output (screen, export, stderr, panic message) passes them through here: no C0, C1 or DEL byte, no bidirectional or
//! zero-width control character and no invalid UTF-8 gets out. They become visible escapes (`\x1b`, `\u{202e}`), so
//! that nobody mistakes the name for another.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Combining marks kept per base character; more are an attack on the screen, not a script.
const MAX_COMBINING_MARKS: usize = 3;

/// Whether a character may be output as it is: it is neither a control (general category Cc), a format character (Cf), a
/// line or paragraph separator (Zl, Zp) nor ignorable by default, which is drawn as nothing or changes how its neighbours
/// are drawn. Source: Unicode 17, `DerivedGeneralCategory.txt` and `DerivedCoreProperties.txt`
/// (Default_Ignorable_Code_Point).
pub fn is_safe(c: char) -> bool {
    !matches!(c,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}'           // C0, DEL, C1
        | '\u{ad}' | '\u{34f}' | '\u{61c}'                // soft hyphen, grapheme joiner, Arabic letter mark
        | '\u{600}'..='\u{605}' | '\u{6dd}' | '\u{70f}'   // Arabic and Syriac signs around numbers
        | '\u{890}'..='\u{891}' | '\u{8e2}'               // Arabic currency and verse signs
        | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' // Hangul fillers
        | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' // Khmer inherent vowels, Mongolian selectors
        | '\u{200b}'..='\u{200f}'                         // zero width space and joiners, LRM, RLM
        | '\u{2028}'..='\u{202e}'                         // line and paragraph separators, bidi embeddings
        | '\u{2060}'..='\u{206f}'                         // word joiner, isolates, deprecated format characters
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'            // variation selectors, byte order mark
        | '\u{fff0}'..='\u{fffb}'                         // unassigned but ignorable, interlinear annotation
        | '\u{110bd}' | '\u{110cd}'                       // Kaithi number signs
        | '\u{13430}'..='\u{1343f}'                       // joiners of Egyptian hieroglyphs
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' // shorthand and musical format characters
        | '\u{e0000}'..='\u{e0fff}') // tags, more variation selectors
}

/// Text of printable ASCII only, which nearly all text is: it needs no change.
fn as_printable_ascii(raw: &[u8]) -> Option<&str> {
    let printable = raw.iter().all(|b| (0x20..0x7f).contains(b));
    if printable { std::str::from_utf8(raw).ok() } else { None }
}

/// Appends `raw` to `out`, sanitized. Invalid UTF-8 bytes become `\xNN`.
pub fn sanitize_into(out: &mut String, raw: &[u8]) {
    if let Some(plain) = as_printable_ascii(raw) {
        out.push_str(plain);
        return;
    }
    let mut marks = 0;
    for chunk in raw.utf8_chunks() {
        for c in chunk.valid().chars() {
            if !is_safe(c) {
                write_escape(out, c);
                marks = 0;
            } else if c.is_ascii() {
                out.push(c);
                marks = 0;
            } else if unicode_width::UnicodeWidthChar::width(c) == Some(0) {
                marks += 1;
                if marks <= MAX_COMBINING_MARKS {
                    out.push(c);
                }
            } else {
                out.push(c);
                marks = 0;
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
            marks = 0;
        }
    }
}

fn write_escape(out: &mut String, c: char) {
    let _ = match c {
        '\n' => out.write_str("\\n"),
        '\t' => out.write_str("\\t"),
        '\r' => out.write_str("\\r"),
        c if (c as u32) < 0x100 => write!(out, "\\x{:02x}", c as u32),
        c => write!(out, "\\u{{{:x}}}", c as u32),
    };
}

/// `raw` sanitized, as a new string.
pub fn sanitize(raw: impl AsRef<[u8]>) -> String {
    let mut out = String::with_capacity(raw.as_ref().len());
    sanitize_into(&mut out, raw.as_ref());
    out
}

/// `raw` sanitized, without a copy if nothing has to be changed.
pub fn sanitize_cow(raw: &[u8]) -> Cow<'_, str> {
    as_printable_ascii(raw).map_or_else(|| Cow::Owned(sanitize(raw)), Cow::Borrowed)
}

/// The longest prefix of `s` that is at most `cells` wide on a terminal, and its width.
pub fn fit_width(s: &str, cells: usize) -> (&str, usize) {
    let mut width = 0;
    for (at, c) in s.char_indices() {
        let w = unicode_width::UnicodeWidthChar::width(c).unwrap_or(0);
        if width + w > cells {
            return (&s[..at], width);
        }
        width += w;
    }
    (s, width)
}

/// Wraps `text` into lines of at most `width` cells, at blanks where possible.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split(' ') {
            let mut word = word;
            loop {
                let gap = usize::from(!line.is_empty());
                let used = unicode_width::UnicodeWidthStr::width(line.as_str());
                let cells = unicode_width::UnicodeWidthStr::width(word);
                if used + gap + cells <= width {
                    if gap == 1 {
                        line.push(' ');
                    }
                    line.push_str(word);
                    break;
                }
                if line.is_empty() {
                    let (head, _) = fit_width(word, width.max(2));
                    let cut = head.len().max(word.chars().next().map_or(1, char::len_utf8));
                    line.push_str(&word[..cut]);
                    word = &word[cut..];
                }
                lines.push(std::mem::take(&mut line));
            }
        }
        lines.push(line);
    }
    lines
}

#[cfg(any(test, fuzzing))]
/// No text for people holds anything that a terminal would act on.
pub(crate) fn assert_safe(text: &str) {
    assert!(text.chars().all(|c| is_safe(c) || c == '\n'), "{text:?}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn control_and_bidi_characters_become_visible_escapes() {
        assert_eq!(sanitize(b"\x1b[2J"), "\\x1b[2J");
        assert_eq!(sanitize("\u{9b}31m".as_bytes()), "\\x9b31m");
        assert_eq!(sanitize(b"\x9b31m"), "\\x9b31m");
        assert_eq!(sanitize("a\nb\tc\rd\u{7f}"), "a\\nb\\tc\\rd\\x7f");
        assert_eq!(sanitize("\u{202e}gpj.exe"), "\\u{202e}gpj.exe");
        assert_eq!(sanitize(b"\xff\xfe\xc3("), "\\xff\\xfe\\xc3(");
        assert_eq!(sanitize("写作 مرحبا"), "写作 مرحبا");
    }

    /// Checked over all of Unicode, so that a new format character of a later version of the standard is noticed.
    #[test]
    fn what_takes_no_room_is_escaped_unless_it_belongs_to_a_syllable() {
        use unicode_properties::{GeneralCategory as G, UnicodeGeneralCategory};
        let mut marks = 0;
        for c in '\u{0}'..=char::MAX {
            let category = c.general_category();
            if matches!(category, G::Control | G::Format | G::LineSeparator | G::ParagraphSeparator) {
                assert!(!is_safe(c), "U+{:X} is {category:?}", u32::from(c));
            } else if is_safe(c) && unicode_width::UnicodeWidthChar::width(c) == Some(0) {
                // Drawn as part of a syllable: Hangul vowels, the Malayalam dot reph, the Devanagari caret.
                let is_part = matches!(category, G::OtherLetter | G::OtherPunctuation);
                let is_mark = matches!(category, G::NonspacingMark | G::EnclosingMark | G::SpacingMark);
                assert!(is_mark || is_part, "U+{:X} is {category:?}", u32::from(c));
                marks += 1;
            }
        }
        assert!(marks > 1000, "{marks}");
        assert_eq!(sanitize("a\u{34f}b\u{180b}c\u{1d173}d\u{1bca0}"), "a\\u{34f}b\\u{180b}c\\u{1d173}d\\u{1bca0}");
    }

    #[test]
    fn stacked_combining_marks_are_limited() {
        let zalgo = format!("e{}x", "\u{301}".repeat(60));
        assert_eq!(sanitize(&zalgo), format!("e{}x", "\u{301}".repeat(3)));
    }

    #[test]
    fn fit_never_splits_a_wide_character() {
        assert_eq!(fit_width("写作", 3), ("写", 2));
        assert_eq!(fit_width("abc", 2), ("ab", 2));
        assert_eq!(fit_width("abc", 9), ("abc", 3));
    }

    #[test]
    fn wrap_breaks_at_blanks_and_splits_long_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh i", 4), ["abcd", "efgh", "i"]);
        assert_eq!(wrap("写作程序", 4), ["写作", "程序"]);
        assert_eq!(wrap("a\n\nb", 9), ["a", "", "b"]);
    }

    proptest! {
        #[test]
        fn nothing_unsafe_gets_through(raw in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(sanitize(&raw).chars().all(is_safe));
            prop_assert_eq!(sanitize_cow(&raw), sanitize(&raw));
        }
    }
}

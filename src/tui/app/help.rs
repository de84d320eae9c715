//! The help, made from the table of keys, and what holds for this run.

use super::prompt::edit_text;
use crate::tui::key_config::Keymap;
use crate::tui::keymap::{BINDINGS, KeyBinding};
use crate::tui::view::{HelpState, KeyContext, Shared};
use crate::tui::widgets::{CellBuffer, Rect, Theme, draw_input, draw_popup, draw_text};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Headings and keys of the help, made from the key table, in its order.
pub fn help_lines() -> Vec<(String, String)> {
    help_lines_for(&BINDINGS, &[])
}

/// Headings and keys of the help; those of the view that is open come first.
fn help_lines_for(bindings: &[KeyBinding], contexts: &[KeyContext]) -> Vec<(String, String)> {
    let place = |b: &&KeyBinding| contexts.iter().position(|c| *c == b.context).unwrap_or(contexts.len());
    let mut bindings: Vec<&KeyBinding> = bindings.iter().filter(|b| b.context != KeyContext::Help).collect();
    bindings.sort_by_key(place);
    let mut out: Vec<(String, String)> = Vec::new();
    let mut previous: Option<&KeyBinding> = None;
    for b in bindings {
        let is_same_section = previous.is_some_and(|p| p.context == b.context);
        if !is_same_section {
            out.push((String::new(), <&str>::from(b.context).to_owned()));
        }
        match out.last_mut() {
            // Keys with the same action share a line.
            Some((names, _)) if is_same_section && previous.is_some_and(|p| p.action == b.action) => {
                names.push(' ');
                names.push_str(&b.name);
            }
            _ => out.push((b.name.to_string(), b.help.to_owned())),
        }
        previous = Some(b);
    }
    out
}

/// The lines below the keys: whether the program depends on the disk it was started from.
fn run_lines(pages_locked: Option<bool>) -> [&'static str; 3] {
    let [first, second] = match pages_locked {
        Some(true) => {
            ["The program and its libraries are locked in memory:", "it runs on if the disk they lie on hangs."]
        }
        Some(false) => {
            ["The program and its libraries are not locked in memory", "(RLIMIT_MEMLOCK): it may hang with their disk."]
        }
        None => ["The program and its libraries are read from disk", "when they are needed."],
    };
    ["This run", first, second]
}

/// From this width on the help has two columns.
const TWO_COLUMNS_FROM: u16 = 150;
const MAX_COLUMN_WIDTH: u16 = 94;

fn column_count(size: (u16, u16)) -> u16 {
    if size.0 >= TWO_COLUMNS_FROM { 2 } else { 1 }
}

/// Number of lines on screen, in all columns.
pub(super) fn visible_lines(size: (u16, u16)) -> u16 {
    size.1.saturating_sub(4) * column_count(size)
}

/// The offset at which the end is on screen.
pub(super) fn last_offset(help: &HelpState, keymap: &Keymap, size: (u16, u16)) -> isize {
    let lines = matching_lines(all_lines(keymap, &[], None), &help.search.text);
    lines.len().saturating_sub(visible_lines(size).into()) as isize
}

/// The keys, those of these contexts first, and what holds for this run.
fn all_lines(keymap: &Keymap, contexts: &[KeyContext], pages_locked: Option<bool>) -> Vec<(String, String)> {
    let mut lines = help_lines_for(keymap.bindings(), contexts);
    let [title, line, next] = run_lines(pages_locked);
    lines.extend([("", title), (" ", line), (" ", next)].map(|(names, text)| (names.to_owned(), text.to_owned())));
    lines
}

/// The lines that contain all words of a text, below their headings; a section whose heading does, as a whole.
fn matching_lines(lines: Vec<(String, String)>, text: &str) -> Vec<(String, String)> {
    let text = text.to_lowercase();
    let contains = |line: &(String, String)| {
        let line = format!("{} {}", line.0, line.1).to_lowercase();
        text.split_whitespace().all(|word| line.contains(word))
    };
    let mut out = Vec::new();
    for section in lines.chunk_by(|_, next| !next.0.is_empty()) {
        let is_whole = contains(&section[0]);
        let hits: Vec<_> = section[1..].iter().filter(|line| is_whole || contains(line)).cloned().collect();
        if !hits.is_empty() {
            out.push(section[0].clone());
            out.extend(hits);
        }
    }
    out
}

/// Handles a key while the text to search for is typed: Enter keeps it, Esc drops it.
pub(super) fn on_search_key(help: &mut HelpState, keymap: &Keymap, key: KeyEvent, size: (u16, u16)) {
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    let page = visible_lines(size) as isize;
    let by = match key.code {
        KeyCode::Up => -1,
        KeyCode::Down => 1,
        KeyCode::PageUp => -page,
        KeyCode::PageDown => page,
        _ => 0,
    };
    match key.code {
        KeyCode::Enter => help.is_typing = false,
        KeyCode::Esc => *help = HelpState::default(),
        KeyCode::Char('c' | 'g') if ctrl => *help = HelpState::default(),
        _ if by != 0 => {}
        _ => {
            edit_text(&mut help.search, key, ctrl);
            help.scroll = 0;
        }
    }
    help.scroll = (help.scroll as isize + by).clamp(0, last_offset(help, keymap, size)) as u16;
}

/// Draws the lines from the scroll position on, and the text searched for over the footer.
pub(super) fn draw_help(
    help: &HelpState,
    contexts: &[KeyContext],
    shared: &Shared,
    theme: &Theme,
    buf: &mut CellBuffer,
) {
    let height = buf.area.height.saturating_sub(2);
    let size = (buf.area.width, buf.area.height);
    let columns = column_count(size);
    let width = columns * (MAX_COLUMN_WIDTH + 1) + 1;
    let search = &help.search;
    let title = match search.text.as_str() {
        "" => "Help: keys (Esc closes, arrows scroll, / searches)".to_owned(),
        text => format!("Help: keys with \"{text}\" (Esc closes, arrows scroll)"),
    };
    let inner = draw_popup(buf, &title, width, height, theme);
    let lines = matching_lines(all_lines(&shared.keymap, contexts, shared.pages_locked), &search.text);
    if lines.is_empty() {
        draw_text(buf, inner.x + 1, inner.y, "no match", inner.width.saturating_sub(1), theme.warn);
    }
    let rows = inner.height.max(1);
    let shown = usize::from(rows * columns);
    let first = usize::from(help.scroll).min(lines.len().saturating_sub(shown));
    let width = inner.width.saturating_sub(columns - 1) / columns;
    for (i, (names, text)) in lines.iter().skip(first).take(shown).enumerate() {
        let (column, row) = (i as u16 / rows, i as u16 % rows);
        let (x, y) = (inner.x + column * (width + 1), inner.y + row);
        if names.is_empty() {
            draw_text(buf, x, y, text, width, theme.header);
        } else {
            draw_text(buf, x + 1, y, names, 13, theme.key);
            draw_text(buf, x + 15, y, text, width.saturating_sub(15), theme.text);
        }
    }
    if help.is_typing {
        let footer = Rect { y: buf.area.bottom().saturating_sub(1), height: 1, ..buf.area };
        draw_input(buf, footer, &search.label, &search.text, search.cursor, theme);
    }
}

/// Draws the keys of these contexts and of every screen, for a screen that has only those.
pub(in crate::tui) fn draw_keys(
    help: &HelpState,
    keymap: &Keymap,
    contexts: &[KeyContext],
    theme: &Theme,
    buf: &mut CellBuffer,
) {
    let bindings = keymap.bindings().iter().filter(|b| contexts.contains(&b.context));
    let lines = help_lines_for(&bindings.cloned().collect::<Vec<_>>(), contexts);
    let (width, height) = (MAX_COLUMN_WIDTH + 1, buf.area.height.saturating_sub(2));
    let inner = draw_popup(buf, "Help: keys (Esc closes, arrows scroll)", width, height, theme);
    let first = usize::from(help.scroll).min(lines.len().saturating_sub(inner.height.into()));
    for ((names, text), y) in lines.iter().skip(first).zip(inner.top()..inner.bottom()) {
        if names.is_empty() {
            draw_text(buf, inner.x, y, text, inner.width, theme.header);
        } else {
            draw_text(buf, inner.x + 1, y, names, 13, theme.key);
            draw_text(buf, inner.x + 15, y, text, inner.width.saturating_sub(15), theme.text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_screen_shows_twice_as_many_lines() {
        let [narrow, wide] = [(TWO_COLUMNS_FROM - 1, 50), (TWO_COLUMNS_FROM, 50)].map(visible_lines);
        assert_eq!((narrow, wide), (46, 92));
        let shared = Shared::new(crate::tui::app::tests::fixture::empty((200, 50)).shared.system);
        let mut buf = CellBuffer::new(ratatui::layout::Rect::new(0, 0, 200, 50));
        draw_help(&HelpState::default(), &[], &shared, &Theme::default(), &mut buf);
        let shown = buf.to_buffer();
        let row = |y: u16| (0..200).map(|x| shown[(x, y)].symbol()).collect::<String>();
        let lines = help_lines();
        let first_of_second_column = &lines[46].1;
        let row = row(2);
        assert!(row.contains("Everywhere") && row.contains(first_of_second_column.as_str()), "{row}");
    }

    #[test]
    fn a_search_keeps_matching_lines_below_their_headings() {
        let found = |text: &str| matching_lines(all_lines(&Keymap::default(), &[], None), text);
        assert_eq!(found("").len(), all_lines(&Keymap::default(), &[], None).len());
        let lines = found("Sort COLUMN");
        assert!(lines.len() >= 4 && lines[0].0.is_empty(), "{lines:?}");
        assert!(lines.iter().all(|(names, text)| names.is_empty() || text.contains("sort")), "{lines:?}");
        assert!(found("kernel log").iter().any(|(names, _)| names == "X"), "a whole section");
        assert!(found("F10").iter().any(|(names, _)| names.contains("F10")), "by key");
        assert!(found("no such words").is_empty());
    }
}

//! Texts use the words of the field: those of the kernel, iostat, fio and ratatui. Private words that were renamed stay
//! out of comments, messages, screens and documents.

use super::program_sources;
use std::fs;
use std::path::{Path, PathBuf};

/// Whole words, in lower case.
const WORDS: &[&str] = &[
    "asker",
    "beforeafter",
    "crowd",
    "crowds",
    "desk",
    "desks",
    "dress",
    "dressed",
    "feed",
    "feeds",
    "lane",
    "lanes",
    "mover",
    "movers",
    "newborn",
    "newborns",
    "news",
    "prober",
    "purse",
    "relay",
    "relays",
    "seat",
    "seats",
    "slurp",
    "slurped",
    "tidings",
    "told",
    "unjudged",
    "wish",
    "wished",
    "wishes",
];
/// Anywhere, in lower case.
const PHRASES: &[&str] = &[
    "charged to whom",
    "dear where",
    "tries, esc drops",
    "faster files that waited",
    "for want of",
    "held up, ms",
    "in the midst",
    "kept back",
    "kernel's own words",
    "lines lost",
    "n leave it",
    "nobody has synced",
    "nobody told",
    "not to be started",
    "psi io ",
    "taken back",
    "that waited less",
    "throttled from",
    "without more ado",
    "y do it",
];
/// Terms that contain such a word and are those of the field.
const TERMS: &[&str] = &["line feed"];

/// The words and phrases of the lists in a text.
fn private_words(text: &str) -> Vec<&'static str> {
    let mut text = text.to_lowercase();
    for term in TERMS {
        text = text.replace(term, "");
    }
    let is_part = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let has_word = |word: &&&str| text.split(|c| !is_part(c)).any(|part| part == **word);
    let has_phrase = |phrase: &&&str| text.contains(**phrase);
    WORDS.iter().filter(has_word).chain(PHRASES.iter().filter(has_phrase)).copied().collect()
}

/// The comments and string literals of Rust code, by line.
fn texts_of_code(text: &str, literals: impl Iterator<Item = (usize, String)>) -> Vec<(usize, String)> {
    let comments = text.lines().enumerate().filter_map(|(at, line)| {
        let comment = line.trim_start().strip_prefix("//")?;
        Some((at + 1, comment.to_owned()))
    });
    comments.chain(literals).collect()
}

fn files_below(dir: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => files_below(&path, ending, found),
            false if path.extension().is_some_and(|it| it == ending) => found.push(path),
            false => {}
        }
    }
}

/// The book, the documents beside it, and the screens of the tests.
fn documents_and_screens() -> Vec<PathBuf> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found: Vec<PathBuf> =
        ["README.md", "CHANGELOG.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].iter().map(|name| top.join(name)).collect();
    files_below(&top.join("docs"), "md", &mut found);
    files_below(&top.join("tests/snapshots"), "snap", &mut found);
    found
}

#[test]
fn texts_screens_and_documents_have_no_private_words() {
    let mut problems = Vec::new();
    let mut report = |path: &str, line: usize, text: &str| {
        problems.extend(private_words(text).iter().map(|word| format!("{path}:{line}: {word:?} in {}", text.trim())));
    };
    for file in program_sources() {
        let literals = file.code.iter().filter(|token| token.text.contains('"'));
        let literals = literals.map(|token| (token.line, token.text.clone()));
        for (line, text) in texts_of_code(&file.text, literals) {
            report(&file.path, line, &text);
        }
    }
    let documents = documents_and_screens();
    assert!(documents.len() > 100, "only {} found", documents.len());
    for path in documents {
        for (at, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            report(&path.display().to_string(), at + 1, line);
        }
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn private_words_are_found_as_words_and_phrases() {
    assert_eq!(private_words("The Desk is told, without more ado"), ["desk", "told", "without more ado"]);
    assert_eq!(private_words("y do it  n leave it"), ["n leave it", "y do it"]);
    assert!(private_words("each with a line feed behind it; the desktop; seat-belt").is_empty());
    let texts = texts_of_code("let a = 1;\n// a lane\n", [(1, "\"news\"".to_owned())].into_iter());
    let found: Vec<_> =
        texts.iter().flat_map(|(line, text)| private_words(text).into_iter().map(|w| (*line, w))).collect();
    assert_eq!(found, [(2, "lane"), (1, "news")]);
}

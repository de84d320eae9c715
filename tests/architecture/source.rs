//! A Rust source file as tokens, and what the rules ask about it: imports, public types, functions, literals.
//!
//! A small lexer is enough: the rules need names, paths and braces, and a full parser as a dependency would slow
//! every build.

use std::collections::BTreeMap;

/// A token and the line it starts on, counted from 1.
#[derive(Debug, Clone)]
pub struct Token {
    pub text: String,
    pub line: usize,
}

/// A path of a `use` or an expression, from the crate's root: `["tui", "panes", "PaneId"]`.
pub type ItemPath = Vec<String>;

/// One source file.
pub struct SourceFile {
    /// Below the crate: `src/tui/runtime.rs`.
    pub path: String,
    pub text: String,
    /// Without comments and without items under `#[cfg(test)]`.
    pub code: Vec<Token>,
    /// Everything but comments.
    pub all_tokens: Vec<Token>,
}

impl SourceFile {
    pub fn new(path: &str, text: &str) -> Self {
        let all_tokens = tokenize(text);
        let code = without_test_items(&all_tokens);
        Self { path: path.to_owned(), text: text.to_owned(), code, all_tokens }
    }

    /// The module path: `["tui", "runtime"]`.
    pub fn module(&self) -> ItemPath {
        let relative = self.path.trim_start_matches("src/").trim_end_matches(".rs");
        let mut segments: ItemPath = relative.split('/').map(str::to_owned).collect();
        if segments.len() > 1 && segments.last().is_some_and(|last| last == "mod") {
            segments.pop();
        }
        segments
    }

    /// The top-level module it belongs to.
    pub fn area(&self) -> String {
        self.module().swap_remove(0)
    }

    /// Test code may import anything.
    pub fn is_test(&self) -> bool {
        let is_test_module = |m: &String| m == "tests" || m.ends_with("_tests") || m.starts_with("fake_");
        !self.path.starts_with("src/") || self.module().iter().any(is_test_module)
    }

    /// Every path into the crate outside of re-exports. `children` are the modules declared in this file.
    pub fn imports(&self, children: &[String]) -> Vec<ItemPath> {
        self.paths(children).into_iter().filter(|(_, is_reexport)| !is_reexport).map(|(path, _)| path).collect()
    }

    /// What `pub use` makes available here: the name (`*` for a glob) and the path it stands for.
    pub fn reexports(&self, children: &[String]) -> Vec<(String, ItemPath)> {
        let paths = self.paths(children).into_iter().filter(|(_, is_reexport)| *is_reexport);
        paths.map(|(path, _)| (path.last().cloned().unwrap_or_default(), path)).collect()
    }

    fn paths(&self, children: &[String]) -> Vec<(ItemPath, bool)> {
        let tokens = &self.code;
        let mut found = Vec::new();
        let mut reexport_end = 0;
        // Names of inline modules around the current token, with the brace depth they opened at.
        let mut inline: Vec<(String, usize)> = Vec::new();
        let mut depth = 0;
        for i in 0..tokens.len() {
            match tokens[i].text.as_str() {
                "{" => depth += 1,
                "}" => {
                    depth -= 1;
                    inline.retain(|(_, opened)| *opened <= depth);
                }
                "mod" if text_at(tokens, i + 2) == "{" => inline.push((tokens[i + 1].text.clone(), depth + 1)),
                "use" if i > 0 && matches!(tokens[i - 1].text.as_str(), "pub" | ")") => {
                    reexport_end = (i..tokens.len()).find(|j| tokens[*j].text == ";").unwrap_or(i);
                }
                _ => {}
            }
            let is_path_start = text_at(tokens, i + 1) == "::" && (i == 0 || tokens[i - 1].text != "::");
            if !is_path_start {
                continue;
            }
            let mut module = self.module();
            module.extend(inline.iter().map(|(name, _)| name.clone()));
            let (base, start) = match tokens[i].text.as_str() {
                "crate" | "iotop_plus" => (Vec::new(), i + 2),
                "self" => (module, i + 2),
                "super" => {
                    let mut next = i;
                    while text_at(tokens, next) == "super" {
                        module.pop();
                        next += 2;
                    }
                    (module, next)
                }
                name if children.iter().any(|c| c == name) => (module, i),
                _ => continue,
            };
            let mut paths = Vec::new();
            expand_use_tree(tokens, start, &base, &mut paths);
            found.extend(paths.into_iter().map(|path| (path, i < reexport_end)));
        }
        found
    }

    /// Modules declared with `mod name;`.
    pub fn child_modules(&self) -> Vec<String> {
        let named = |w: &[Token]| w[0].text == "mod" && w[2].text == ";";
        self.code.windows(3).filter(|w| named(w)).map(|w| w[1].text.clone()).collect()
    }

    /// Names of items defined in this file.
    pub fn definitions(&self) -> Vec<String> {
        let keywords = ["fn", "struct", "enum", "trait", "type", "const", "static", "union", "macro_rules"];
        let defines = |w: &[Token]| keywords.contains(&w[0].text.as_str()) && is_identifier(&w[1].text);
        self.code.windows(2).filter(|w| defines(w)).map(|w| w[1].text.clone()).collect()
    }

    /// Types that other modules can name.
    pub fn public_types(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut depth = 0;
        for (i, token) in self.code.iter().enumerate() {
            match token.text.as_str() {
                "{" => depth += 1,
                "}" => depth -= 1,
                "struct" | "enum" | "trait" | "type" | "union" if depth == 0 && i > 0 => {
                    let before: Vec<&str> = self.code[i.saturating_sub(4)..i].iter().map(|t| t.text.as_str()).collect();
                    if before.ends_with(&["pub"]) || before.ends_with(&["pub", "(", "crate", ")"]) {
                        names.push(text_at(&self.code, i + 1).to_owned());
                    }
                }
                _ => {}
            }
        }
        names
    }

    /// Every function with a body, its first line and its number of lines, tests included.
    pub fn functions(&self) -> Vec<(String, usize, usize)> {
        let tokens = &self.all_tokens;
        let mut functions = Vec::new();
        for i in 0..tokens.len() {
            if tokens[i].text != "fn" || !is_identifier(text_at(tokens, i + 1)) {
                continue;
            }
            let ends_signature = |j: &usize| matches!(tokens[*j].text.as_str(), "{" | ";");
            let Some(open) = (i..tokens.len()).find(ends_signature).filter(|j| tokens[*j].text == "{") else {
                continue;
            };
            let Some(close) = matching_brace(tokens, open) else { continue };
            let lines = tokens[close].line - tokens[i].line + 1;
            functions.push((tokens[i + 1].text.clone(), tokens[i].line, lines));
        }
        functions
    }
}

/// Names of all modules and the file of each.
pub fn modules(files: &[SourceFile]) -> BTreeMap<ItemPath, usize> {
    files.iter().enumerate().map(|(i, file)| (file.module(), i)).collect()
}

fn text_at(tokens: &[Token], i: usize) -> &str {
    tokens.get(i).map_or("", |t| t.text.as_str())
}

fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// `a::{b, c::d}` as `a::b` and `a::c::d`, appended to `found`. Returns the index after the tree.
fn expand_use_tree(tokens: &[Token], mut i: usize, base: &[String], found: &mut Vec<ItemPath>) -> usize {
    let mut path = base.to_vec();
    loop {
        match text_at(tokens, i) {
            "{" => {
                i += 1;
                while !matches!(text_at(tokens, i), "}" | "") {
                    i = expand_use_tree(tokens, i, &path, found);
                    if text_at(tokens, i) == "," {
                        i += 1;
                    }
                }
                return i + 1;
            }
            "self" => {}
            name if is_identifier(name) || name == "*" => path.push(name.to_owned()),
            _ => {
                found.push(path);
                return i.max(1);
            }
        }
        i += 1;
        if text_at(tokens, i) == "as" {
            i += 2;
        }
        if text_at(tokens, i) != "::" {
            found.push(path);
            return i;
        }
        i += 1;
        if text_at(tokens, i) == "<" {
            found.push(path);
            return i;
        }
    }
}

fn matching_brace(tokens: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0;
    (open..tokens.len()).find(|i| {
        match tokens[*i].text.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        depth == 0
    })
}

/// Drops each item under `#[cfg(test)]` or `#[cfg(any(test, fuzzing))]`, with its other attributes.
fn without_test_items(tokens: &[Token]) -> Vec<Token> {
    let is_test_attribute = |i: usize| {
        let texts: Vec<&str> = (i..i + 12).map(|j| text_at(tokens, j)).collect();
        texts.starts_with(&["#", "[", "cfg", "(", "test", ")", "]"])
            || texts == ["#", "[", "cfg", "(", "any", "(", "test", ",", "fuzzing", ")", ")", "]"]
    };
    let mut kept = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        if !is_test_attribute(i) {
            kept.push(tokens[i].clone());
            i += 1;
            continue;
        }
        let end = (i..tokens.len()).find(|j| matches!(tokens[*j].text.as_str(), "{" | ";")).unwrap_or(i);
        i = if text_at(tokens, end) == "{" { matching_brace(tokens, end).unwrap_or(end) } else { end } + 1;
    }
    kept
}

/// Identifiers, numbers, literals and punctuation; `::` is one token, comments are none.
fn tokenize(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let (mut tokens, mut line, mut i) = (Vec::new(), 1, 0);
    while i < bytes.len() {
        let length = match &bytes[i..] {
            [b'/', b'/', ..] => text[i..].find('\n').unwrap_or(bytes.len() - i),
            [b'/', b'*', ..] => text[i..].find("*/").map_or(bytes.len() - i, |end| end + 2),
            [first, ..] if first.is_ascii_whitespace() => 1,
            rest => {
                let length = token_length(rest);
                tokens.push(Token { text: String::from_utf8_lossy(&rest[..length]).into_owned(), line });
                length
            }
        };
        line += bytes[i..i + length].iter().filter(|b| **b == b'\n').count();
        i += length;
    }
    tokens
}

fn token_length(rest: &[u8]) -> usize {
    let prefix = rest.iter().take_while(|b| matches!(b, b'b' | b'r' | b'c' | b'#')).count();
    if rest[..prefix].contains(&b'r') && rest.get(prefix) == Some(&b'"') {
        let hashes = rest[..prefix].iter().filter(|b| **b == b'#').count();
        let closing = [b"\"".as_slice(), &b"#".repeat(hashes)].concat();
        let body = &rest[prefix + 1..];
        let end = body.windows(closing.len()).position(|w| w == closing).unwrap_or(body.len());
        return (prefix + 1 + end + closing.len()).min(rest.len());
    }
    match rest {
        [b'"', ..] => quoted_length(rest, b'"'),
        [b'b' | b'c', b'"', ..] => 1 + quoted_length(&rest[1..], b'"'),
        [b'b', b'\'', ..] => 1 + quoted_length(&rest[1..], b'\''),
        [b'\'', b'\\', ..] => quoted_length(rest, b'\''),
        // A character literal closes within a few bytes; a lifetime has no closing quote.
        [b'\'', ..] => match rest.iter().skip(2).take(4).position(|b| *b == b'\'') {
            Some(end) if !rest[1].is_ascii_alphanumeric() || end == 0 => end + 3,
            _ => 1,
        },
        [b':', b':', ..] => 2,
        [first, ..] if first.is_ascii_alphanumeric() || *first == b'_' || *first >= 0x80 => {
            rest.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_' || **b >= 0x80).count()
        }
        _ => 1,
    }
}

fn quoted_length(rest: &[u8], quote: u8) -> usize {
    let mut i = 1;
    while i < rest.len() && rest[i] != quote {
        i += if rest[i] == b'\\' { 2 } else { 1 };
    }
    (i + 1).min(rest.len())
}

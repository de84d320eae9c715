//! The text of a job file: sections and their lines, with comments, includes, variables and arithmetic resolved as in fio.

use std::fmt::Write as _;

/// What a job file may refer to.
pub(crate) struct JobFileContext<'a> {
    /// The text of an included file.
    pub read: &'a dyn Fn(&str) -> Result<String, String>,
    /// A variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// `$pagesize`, `$mb_memory`, `$ncpus`.
    pub keywords: [(&'static str, u64); 3],
}

/// A problem of a job file, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JobFileError {
    /// `line 3`, or `common.fio, line 3`.
    pub place: String,
    pub why: String,
}

pub(super) struct Section {
    pub name: String,
    pub line: usize,
    pub place: String,
    pub options: Vec<OptionLine>,
}

pub(super) struct OptionLine {
    pub place: String,
    pub key: String,
    pub value: String,
}

const MAX_INCLUDES: usize = 16;
const MAX_BYTES: usize = 1 << 20;
const MAX_SECTIONS: usize = 1000;

/// Sections in the order of the file, and all problems of its text.
pub(super) fn read_sections(text: &str, context: &JobFileContext<'_>) -> (Vec<Section>, Vec<JobFileError>) {
    let mut reader = Reader { context, sections: Vec::new(), errors: Vec::new(), includes: 0 };
    reader.read(text, "");
    (reader.sections, reader.errors)
}

struct Reader<'a> {
    context: &'a JobFileContext<'a>,
    sections: Vec<Section>,
    errors: Vec<JobFileError>,
    includes: usize,
}

impl Reader<'_> {
    fn read(&mut self, text: &str, file: &str) {
        if text.len() > MAX_BYTES {
            return self.offend("line 1".into(), "a job file of more than 1 MiB");
        }
        for (number, raw) in (1..).zip(text.lines()) {
            let place = if file.is_empty() { format!("line {number}") } else { format!("{file}, line {number}") };
            // fio ends a line at the first ; or #.
            let line = raw.split([';', '#']).next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            if let Some(rest) = line.strip_prefix('[') {
                self.begin_section(rest, number, place);
            } else if let Some(path) = line.strip_prefix("include ") {
                self.include(path.trim(), place);
            } else {
                self.add_option(line, place);
            }
        }
    }

    fn offend(&mut self, place: String, why: impl Into<String>) {
        self.errors.push(JobFileError { place, why: why.into() });
    }

    fn begin_section(&mut self, rest: &str, line: usize, place: String) {
        let Some(name) = rest.strip_suffix(']').filter(|name| !name.is_empty()) else {
            return self.offend(place, "a section is written [name]");
        };
        if self.sections.len() >= MAX_SECTIONS {
            return self.offend(place, format!("more than {MAX_SECTIONS} sections"));
        }
        self.sections.push(Section { name: name.into(), line, place, options: Vec::new() });
    }

    fn include(&mut self, path: &str, place: String) {
        self.includes += 1;
        if self.includes > MAX_INCLUDES {
            return self.offend(place, format!("more than {MAX_INCLUDES} includes"));
        }
        match (self.context.read)(path) {
            Ok(text) => self.read(&text, path),
            Err(why) => self.offend(place, format!("include {path}: {why}")),
        }
    }

    fn add_option(&mut self, line: &str, place: String) {
        let (key, value) = line.split_once('=').map_or((line, ""), |(key, value)| (key.trim(), value.trim()));
        let value = match self.expand(value) {
            Ok(value) => value,
            Err(why) => return self.offend(place, format!("{key}={value}: {why}")),
        };
        match self.sections.last_mut() {
            Some(section) => section.options.push(OptionLine { place, key: key.into(), value }),
            None => self.offend(place, "an option outside of any section; begin with [global] or [job]"),
        }
    }

    /// Replaces `${VARIABLE}` and keywords; a value with a keyword or in parentheses is then evaluated.
    fn expand(&self, value: &str) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = value;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, after)) = after.split_once('}') else { break };
            let Some(text) = (self.context.variable)(name) else {
                return Err(format!("{name} is not set in the environment; set it before the command: {name}=VALUE"));
            };
            let _ = write!(out, "{before}{text}");
            rest = after;
        }
        out.push_str(rest);
        let mut has_keyword = false;
        for (keyword, number) in self.context.keywords {
            if out.contains(keyword) {
                has_keyword = true;
                out = out.replace(keyword, &number.to_string());
            }
        }
        if has_keyword || (out.starts_with('(') && out.ends_with(')')) {
            return evaluate(&out).map(|n| n.to_string());
        }
        Ok(out)
    }
}

/// A whole number from `+ - * / ( )`, evaluated from left to right with the usual precedence.
fn evaluate(text: &str) -> Result<u64, String> {
    let mut parser = Arithmetic { text: text.as_bytes(), at: 0, depth: 0 };
    let value = parser.sum().filter(|_| parser.peek().is_none());
    value.ok_or_else(|| format!("{text}: not an expression of whole numbers with + - * / ( )"))
}

struct Arithmetic<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
}

impl Arithmetic<'_> {
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at) == Some(&b' ') {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn sum(&mut self) -> Option<u64> {
        let mut value = self.product()?;
        while let Some(sign @ (b'+' | b'-')) = self.peek() {
            self.at += 1;
            let next = self.product()?;
            value = if sign == b'+' { value.checked_add(next)? } else { value.checked_sub(next)? };
        }
        Some(value)
    }

    fn product(&mut self) -> Option<u64> {
        let mut value = self.atom()?;
        while let Some(sign @ (b'*' | b'/')) = self.peek() {
            self.at += 1;
            let next = self.atom()?;
            value = if sign == b'*' { value.checked_mul(next)? } else { value.checked_div(next)? };
        }
        Some(value)
    }

    fn atom(&mut self) -> Option<u64> {
        if self.peek()? == b'(' {
            self.depth += 1;
            if self.depth > 32 {
                return None;
            }
            self.at += 1;
            let value = self.sum()?;
            self.depth -= 1;
            let closes = self.peek() == Some(b')');
            self.at += 1;
            return closes.then_some(value);
        }
        let start = self.at;
        while self.text.get(self.at).is_some_and(u8::is_ascii_alphanumeric) {
            self.at += 1;
        }
        super::value::bytes(std::str::from_utf8(&self.text[start..self.at]).ok()?, 1024).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<Section>, Vec<JobFileError>) {
        let context = JobFileContext {
            read: &|path| if path == "other" { Ok("[inner]\nbs=1k\n".into()) } else { Err("not there".into()) },
            variable: &|name| (name == "BS").then(|| "8k".into()),
            keywords: [("$pagesize", 4096), ("$mb_memory", 100), ("$ncpus", 2)],
        };
        read_sections(text, &context)
    }

    #[test]
    fn comments_includes_variables_and_arithmetic_are_resolved() {
        let (sections, errors) =
            read("# a\n[a] ; b\nbs=${BS} # c\nsize=8*$pagesize\nio_size=(2*(3+1)*1k)\nthread\ninclude other\n");
        assert_eq!(errors, []);
        let all: Vec<_> = sections.iter().flat_map(|s| &s.options).map(|o| (o.key.as_str(), &*o.value)).collect();
        assert_eq!(all, [("bs", "8k"), ("size", "32768"), ("io_size", "8192"), ("thread", ""), ("bs", "1k")]);
        assert_eq!((sections[1].name.as_str(), &*sections[1].options[0].place), ("inner", "other, line 2"));
    }

    #[test]
    fn every_problem_is_reported_with_its_line() {
        let (_, errors) = read("bs=4k\n[a\n[b]\nbs=${NONE}\ninclude gone\nsize=1+$ncpus+\n");
        let places: Vec<_> = errors.iter().map(|o| o.place.as_str()).collect();
        assert_eq!(places, ["line 1", "line 2", "line 4", "line 5", "line 6"]);
        assert!(errors[2].why.contains("NONE=VALUE"), "{}", errors[2].why);
    }
}

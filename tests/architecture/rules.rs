//! The rules for a single file. Each is a function from a file to the ways it breaks the rule.

use crate::source::{SourceFile, Token};

/// Areas from top to bottom. An area may import itself and every area below it; areas on one line may not import
/// each other.
pub const LAYERS: &[&[&str]] = &[
    &["main", "lib", "fuzz"],
    &["cli"],
    &["tui"],
    &["fleet"],
    &["export"],
    &["doctor"],
    &["jobs"],
    &["recording"],
    &["experiment"],
    &["collect"],
    &["bpf"],
    &["bench"],
    &["tuning"],
    &["subprocess"],
    &["model"],
    &["parse"],
    &["toml_file"],
    &["root", "units", "sanitize", "allocator"],
];

/// Areas that may import only these of the areas below them.
const RESTRICTED: &[(&str, &[&str])] = &[
    ("model", &["parse", "units", "sanitize"]),
    ("parse", &[]),
    ("root", &[]),
    ("sanitize", &[]),
    ("toml_file", &["sanitize"]),
];

pub const MAX_FILE_LINES: usize = 500;
pub const MAX_FUNCTION_LINES: usize = 60;

pub type Rule = fn(&SourceFile) -> Vec<String>;

pub const RULES: &[Rule] = &[
    imports_run_down,
    tui_imports_run_down,
    widgets_use_no_domain_types,
    kernel_paths_only_in_root,
    programs_only_from_subprocess,
    unsafe_code_only_where_listed,
    texts_use_standard_words,
    types_use_standard_names,
    is_short,
    has_header,
];

/// Words and phrases that no text of the program uses: each has a standard term.
const PRIVATE_WORDS: &[&str] = &[
    "anew",
    "costs: none",
    "crowd",
    "dear",
    "desk",
    "dress",
    "esc drops",
    "for want of",
    "free-run",
    "held up",
    "kept back",
    "kernel's own words",
    "lane",
    "leave it",
    "lines lost",
    "news",
    "nobody",
    "not to be started",
    "psi io",
    "psi mem",
    "purse",
    "seat",
    "story",
    "take back",
    "taken back",
    "takes back",
    "takes itself back",
    "throttled from",
    "told",
    "ways on",
    "whom",
    "wish",
    "without more ado",
    "worst ms",
    "y do it",
];

/// Names of types that say nothing of what a type is, or only to who wrote it.
const PRIVATE_NAMES: &str = "Alarm Anchor Apart Ask Asker Bad Begun Calm Careful Checked Course Crowd Decided Desk Direct Dress \
    Ends Fail Feed Finder Flying Gap Ground Guest Hand Hands Heat Held In InD Jump Kept Keepable Known Lab Lane Launcher Live \
    Look Moved Mover Newborn News OnDevice Part Pass PastTask Patch Place Prober Relay Said Scrub Seat Seen Settle Sheet Shot \
    Showing Sig Spot Spread Standing Step Stories Story Survey SwapSign Taken Tape Then Told Turn Undone Walker Walks Wants Warm \
    Watched Watcher What Who Without Worked World";

/// The rules that hold for test code too.
pub const TEST_RULES: &[Rule] = &[is_short, has_header];

/// Whether `from` may not import `to`.
pub fn is_upward(from: &str, to: &str) -> bool {
    let layer = |area: &str| LAYERS.iter().position(|layer| layer.contains(&area));
    let (Some(own), Some(other)) = (layer(from), layer(to)) else { return false };
    let is_allowed = RESTRICTED.iter().find(|(area, _)| *area == from).is_none_or(|(_, only)| only.contains(&to));
    from != to && own > 0 && (other <= own || !is_allowed)
}

fn imports_run_down(file: &SourceFile) -> Vec<String> {
    let area = file.area();
    if !LAYERS.iter().any(|layer| layer.contains(&area.as_str())) {
        return vec![format!("the area {area} is in no layer: add it to LAYERS")];
    }
    let imported = file.imports(&[]).into_iter().filter_map(|path| path.into_iter().next());
    imported.filter(|to| is_upward(&area, to)).map(|to| format!("{area} may not import {to}")).collect()
}

/// Within `tui` imports run down: widgets, what views share, views, app, runtime, and the screen of many hosts.
fn tui_imports_run_down(file: &SourceFile) -> Vec<String> {
    let path = file.path.strip_prefix("src/tui/").unwrap_or("mod.rs");
    let forbidden: &[&str] = match path.split(['/', '.']).next() {
        Some("mod" | "runtime" | "fleet" | "widgets") | None => &[],
        Some("app") => &["tui::runtime"],
        Some("views") => &["tui::app", "tui::runtime"],
        Some(_) => &["tui::views", "tui::app", "tui::runtime"],
    };
    let breaks = |name: &String| forbidden.iter().any(|prefix| is_within(name, prefix));
    names(file).filter(breaks).map(|name| format!("{path} may not import {name}")).collect()
}

/// Widgets are reusable: they know no type of storage, processes or the kernel.
fn widgets_use_no_domain_types(file: &SourceFile) -> Vec<String> {
    if !file.path.starts_with("src/tui/widgets/") {
        return Vec::new();
    }
    let allowed = ["tui::widgets", "model::column", "sanitize", "toml_file", "units"];
    let breaks = |name: &String| !allowed.iter().any(|prefix| is_within(name, prefix));
    names(file).filter(breaks).map(|name| format!("a widget may not import {name}")).collect()
}

fn names(file: &SourceFile) -> impl Iterator<Item = String> {
    file.imports(&[]).into_iter().map(|path| path.join("::"))
}

fn is_within(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Only these files start programs by exec, with arguments that no shell reads: this program itself, and a program of the system
/// in a child of this one.
const STARTS_PROGRAMS: [&str; 2] = ["src/subprocess/process.rs", "src/subprocess/system_program.rs"];

fn programs_only_from_subprocess(file: &SourceFile) -> Vec<String> {
    let starts = file.code.windows(3).filter(|w| w[0].text == "Command" && w[1].text == "::" && w[2].text == "new");
    let outside = starts.filter(|_| !STARTS_PROGRAMS.contains(&file.path.as_str()));
    outside.map(|w| format!("line {}: a program is started outside {STARTS_PROGRAMS:?}", w[0].line)).collect()
}

/// The files that may contain `unsafe` code: system calls and C functions that no safe library offers.
const UNSAFE_FILES: &[&str] = &[
    "src/allocator.rs",
    "src/bench/engine/uring.rs",
    "src/bench/syscalls.rs",
    "src/bpf/bpf_sys.rs",
    "src/cli/export/listener.rs",
    "src/fuzz/memory.rs",
    "src/subprocess/child.rs",
    "src/subprocess/fork_server.rs",
    "src/subprocess/helper.rs",
    "src/subprocess/resident.rs",
    "src/tui/runtime/async_fd.rs",
    "src/tui/timezone.rs",
    "src/tuning/syscalls.rs",
];

fn unsafe_code_only_where_listed(file: &SourceFile) -> Vec<String> {
    let allowed = file.code.iter().filter(|token| token.text == "unsafe_code");
    let unlisted = allowed.filter(|_| !UNSAFE_FILES.contains(&file.path.as_str()));
    unlisted.map(|token| format!("line {}: unsafe code in a file that is not in UNSAFE_FILES", token.line)).collect()
}

/// Only `root.rs` opens the kernel's directories by name, so that `--root` redirects all of them. Messages may
/// name them.
fn kernel_paths_only_in_root(file: &SourceFile) -> Vec<String> {
    if file.path == "src/root.rs" {
        return Vec::new();
    }
    let is_kernel_path = |text: &str| {
        let path = text.trim_start_matches(['b', 'c']).trim_start_matches('"');
        ["/proc", "/sys", "/dev", "/run", "/etc"].iter().any(|dir| {
            text.ends_with('"') && path.strip_prefix(dir).is_some_and(|rest| rest.starts_with(['/', '"', '{']))
        })
    };
    let literals = (0..file.code.len()).filter(|i| is_kernel_path(&file.code[*i].text));
    let opened = literals.filter_map(|i| called_function(&file.code, i).map(|function| (i, function)));
    opened.map(|(i, function)| format!("{function}({}): a kernel path outside root.rs", file.code[i].text)).collect()
}

/// The function that takes the token as its first argument, if it is one that opens or builds paths; `format!`,
/// references and `CWD` before it are skipped.
fn called_function(tokens: &[Token], argument: usize) -> Option<String> {
    let text = |i: usize| tokens[i].text.as_str();
    let mut i = argument.checked_sub(1)?;
    while matches!(text(i), "(" | "&" | "format" | "!" | "," | "CWD") {
        i = i.checked_sub(1)?;
    }
    let opens_paths =
        ["open", "openat", "read", "read_to_string", "read_once", "read_dir", "readlink", "stat", "statfs"];
    let builds_paths = ["join", "push", "arg"];
    let owners = ["Path", "PathBuf", "PersistentFile", "PolledFile", "fs", "File", "OpenOptions", "Command"];
    let has_owner = i >= 2 && text(i - 1) == "::" && owners.contains(&text(i - 2));
    let is_method = i >= 1 && text(i - 1) == "." && builds_paths.contains(&text(i));
    let is_call = text(i + 1) == "(";
    (is_call && (opens_paths.contains(&text(i)) || has_owner || is_method)).then(|| text(i).to_owned())
}

/// The texts that a user may read are string literals. What stands between braces is code, and an identifier is no text.
fn texts_use_standard_words(file: &SourceFile) -> Vec<String> {
    let mut out = Vec::new();
    for token in file.code.iter().filter(|token| token.text.starts_with('"')) {
        let text = without_braces(&token.text.to_lowercase());
        let is_word = |found: &&&str| {
            let (before, after) = text.split_once(**found).unwrap_or_default();
            let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
            !is_letter(before.chars().next_back()) && !is_letter(after.chars().next())
        };
        if let Some(word) = PRIVATE_WORDS.iter().filter(|word| text.contains(**word)).find(is_word) {
            out.push(format!("{}:{}: \"{word}\" in {}: use the standard term", file.path, token.line, token.text));
        }
    }
    out
}

fn types_use_standard_names(file: &SourceFile) -> Vec<String> {
    let is_private = |name: &str| PRIVATE_NAMES.split_whitespace().any(|private| private == name);
    let declared = file.code.windows(2).filter(|pair| matches!(&*pair[0].text, "struct" | "enum" | "trait"));
    let found = declared.filter(|pair| is_private(&pair[1].text));
    found
        .map(|pair| format!("{}:{}: the type {} needs a standard name", file.path, pair[1].line, pair[1].text))
        .collect()
}

/// A text without what it formats.
fn without_braces(text: &str) -> String {
    let mut depth = 0;
    let keep = |c: &char| {
        depth += i32::from(*c == '{');
        let keeps = depth == 0;
        depth -= i32::from(*c == '}' && depth > 0);
        keeps
    };
    text.chars().filter(keep).collect()
}

fn is_short(file: &SourceFile) -> Vec<String> {
    let lines = file.text.lines().count();
    if lines > MAX_FILE_LINES { vec![format!("{lines} lines, more than {MAX_FILE_LINES}")] } else { Vec::new() }
}

fn has_header(file: &SourceFile) -> Vec<String> {
    let has = file.text.starts_with("//!");
    if has { Vec::new() } else { vec!["does not open with //!, what it is and why it exists".into()] }
}

/// Functions longer than [`MAX_FUNCTION_LINES`].
pub fn long_functions(file: &SourceFile) -> Vec<String> {
    let too_long = file.functions().into_iter().filter(|(_, _, lines)| *lines > MAX_FUNCTION_LINES);
    too_long.map(|(name, line, lines)| format!("{}:{line}: {name} has {lines} lines", file.path)).collect()
}

/// Every way the file breaks a rule.
pub fn check(path: &str, text: &str) -> Vec<String> {
    let file = SourceFile::new(path, text);
    let rules = if file.is_test() { TEST_RULES } else { RULES };
    rules.iter().flat_map(|rule| rule(&file)).map(|problem| format!("{path}: {problem}")).collect()
}

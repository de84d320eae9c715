//! Every declared dependency is used, and every package that is built has a licence that allows distributing the binary.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Licences of SPDX that are compatible with the project's own (MIT).
const ALLOWED: [&str; 9] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Whether an SPDX expression can be satisfied by allowed licences: one side of each OR, both sides of each AND. The
/// older form `MIT/Apache-2.0` means OR. AND binds tighter than OR.
fn is_allowed(expression: &str) -> bool {
    let expression = expression.trim().replace('/', " OR ");
    match outer_operands(&expression, " OR ").as_slice() {
        [_] => {}
        any => return any.iter().any(|side| is_allowed(side)),
    }
    match outer_operands(&expression, " AND ").as_slice() {
        [_] => {}
        all => return all.iter().all(|side| is_allowed(side)),
    }
    match expression.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        Some(inner) => is_allowed(inner),
        None => ALLOWED.contains(&expression.as_str()),
    }
}

/// Splits at an operator outside of parentheses.
fn outer_operands<'a>(expression: &'a str, operator: &str) -> Vec<&'a str> {
    let (mut operands, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, c) in expression.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if depth == 0 && at >= start && expression[at..].starts_with(operator) => {
                operands.push(&expression[start..at]);
                start = at + operator.len();
            }
            _ => {}
        }
    }
    operands.push(&expression[start..]);
    operands
}

/// What `cargo metadata` says about the packages built on this machine.
fn metadata() -> Value {
    let version = Command::new("rustc").arg("-vV").output().expect("rustc runs");
    let version = String::from_utf8(version.stdout).unwrap();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc -vV names the host");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--offline", "--format-version", "1", "--filter-platform", host])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn licence_expressions_are_evaluated() {
    for allowed in ["MIT", "MIT/Apache-2.0", "GPL-3.0 OR MIT", "(MIT OR Apache-2.0) AND Unicode-3.0", "MIT AND Zlib"] {
        assert!(is_allowed(allowed), "{allowed}");
    }
    for refused in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR Zlib) AND GPL-2.0", "", "LGPL-2.1 OR GPL-3.0"] {
        assert!(!is_allowed(refused), "{refused}");
    }
}

#[test]
fn licences_allow_distribution() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 50, "cargo metadata named {} packages", packages.len());
    let refused: Vec<String> = packages
        .iter()
        .filter(|package| !is_allowed(package["license"].as_str().unwrap_or_default()))
        .map(|package| format!("{}: {}", package["name"], package["license"]))
        .collect();
    assert_eq!(refused, Vec::<String>::new());
}

/// `1.88.0` as numbers; the part after the second dot does not matter.
fn rust_version(text: &str) -> (u32, u32) {
    let mut parts = text.split('.').map(|part| part.parse().unwrap());
    (parts.next().unwrap(), parts.next().unwrap_or(0))
}

/// The Rust that Cargo.toml asks for builds all packages in Cargo.lock.
#[test]
fn no_dependency_needs_a_newer_rust() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    let needed = |package: &Value| package["rust_version"].as_str().map(rust_version);
    let own = packages.iter().find(|package| package["name"] == env!("CARGO_PKG_NAME")).and_then(needed).unwrap();
    assert!(rust_version("1.9") < rust_version("1.88.1"));
    let newer = packages.iter().filter(|package| needed(package).is_some_and(|version| version > own));
    let newer: Vec<String> = newer.map(|package| format!("{} {}", package["name"], package["rust_version"])).collect();
    assert_eq!(newer, Vec::<String>::new(), "rust-version is {own:?}");
}

/// Whether a source names a crate: as the first part of a path, or in an attribute or macro of that name.
fn names_crate(source: &str, name: &str) -> bool {
    let is_identifier = |c: char| c.is_alphanumeric() || c == '_';
    source.match_indices(name).any(|(at, _)| {
        !source[..at].ends_with(|c| is_identifier(c) || c == ':') && source[at + name.len()..].starts_with("::")
    })
}

/// The text of all Rust files below a directory.
fn sources(dir: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text += &sources(&path);
        } else if path.extension().is_some_and(|e| e == "rs") {
            text += &std::fs::read_to_string(&path).unwrap();
        }
    }
    text
}

#[test]
fn declared_dependencies_are_used() {
    assert!(names_crate("use toml::Value;", "toml") && !names_crate("use crate::toml::X;", "toml"));
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest: toml::Table = std::fs::read_to_string(top.join("Cargo.toml")).unwrap().parse().unwrap();
    let program = sources(&top.join("src"));
    let with_tests = program.clone() + &sources(&top.join("tests"));
    for (table, used) in [("dependencies", &program), ("dev-dependencies", &with_tests)] {
        for name in manifest[table].as_table().unwrap().keys() {
            assert!(names_crate(used, &name.replace('-', "_")), "no file uses the crate {name} of [{table}]");
        }
    }
}

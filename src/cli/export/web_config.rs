//! The part of the exporter toolkit's web config that is supported: the users of basic auth.
//!
//! Source: "HTTPS and authentication" in Prometheus' documentation. The file is YAML, of which this reads two levels of names
//! with plain or quoted values. What it does not know is an error: nothing that should protect the metrics is passed over.

use anyhow::{Context, bail, ensure};
use std::collections::BTreeMap;
use std::path::Path;

/// Names of users with their bcrypt hashes.
pub(super) type Users = BTreeMap<String, String>;

const USERS: &str = "basic_auth_users";

/// Reads the file.
///
/// # Errors
///
/// If the file cannot be read, has no users, a hash that is none, or anything else in it.
pub(super) fn read(path: &Path) -> anyhow::Result<Users> {
    let name = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("{name}: cannot be read"))?;
    parse(&text).with_context(|| name.to_string())
}

fn parse(text: &str) -> anyhow::Result<Users> {
    let mut users = None;
    for (at, line) in text.lines().enumerate() {
        let number = at + 1;
        let content = without_comment(line);
        if content.trim().is_empty() || content == "---" {
            continue;
        }
        let (key, value) = key_and_value(content.trim())
            .with_context(|| format!("line {number}: must be \"NAME: VALUE\"; only {USERS} is supported"))?;
        match (content.starts_with(' '), &mut users) {
            (false, users) if key == USERS => {
                ensure!(
                    value.is_empty() || value == "{}",
                    "line {number}: {USERS} must have a user on each line below"
                );
                ensure!(users.is_none(), "line {number}: {USERS} is there twice");
                *users = Some(Users::new());
            }
            (false, _) if matches!(&*key, "tls_server_config" | "http_server_config") => bail!(
                "line {number}: {key} is not supported: this program has no TLS; let it listen on loopback and put a reverse \
                 proxy with TLS in front of it"
            ),
            (true, Some(users)) => {
                ensure!(
                    is_bcrypt_hash(&value),
                    "line {number}: the value of {key} is no bcrypt hash, as htpasswd -nB prints"
                );
                ensure!(users.insert(key.clone(), value).is_none(), "line {number}: {key} is there twice");
            }
            _ => bail!("line {number}: {key} is not supported; only {USERS} is"),
        }
    }
    users.filter(|users| !users.is_empty()).with_context(|| format!("has no {USERS}: everybody would be let in"))
}

/// The line without a comment, which begins it or follows a space, outside of quotes.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match (c, quote) {
            ('#', None) if before == ' ' => return line[..at].trim_end(),
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            _ => {}
        }
        before = c;
    }
    line.trim_end()
}

/// The name and the value of a line, without quotes.
fn key_and_value(line: &str) -> Option<(String, String)> {
    let (key, rest) = match line.strip_prefix(['"', '\'']) {
        Some(quoted) => {
            let (key, rest) = quoted.split_once(&line[..1])?;
            (key, rest.trim_start().strip_prefix(':')?)
        }
        None => line.split_once(':')?,
    };
    // In YAML a colon within a word does not end a name.
    let value = rest.strip_prefix(' ').or(rest.is_empty().then_some(""))?.trim();
    let unquoted = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
    let key = key.trim();
    (!key.is_empty()).then(|| (key.to_owned(), unquoted.unwrap_or(value).to_owned()))
}

/// Whether a text is a hash of bcrypt: version, cost, 22 characters of salt and 31 of hash.
fn is_bcrypt_hash(text: &str) -> bool {
    let is_word = |word: &str| word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'/'));
    match *text.split('$').collect::<Vec<_>>() {
        ["", "2a" | "2b" | "2x" | "2y", cost, rest] => {
            cost.len() == 2
                && cost.parse().is_ok_and(|cost: u32| (4..=31).contains(&cost))
                && rest.len() == 53
                && is_word(rest)
        }
        _ => false,
    }
}

/// A fuzz target: what is accepted has users, each with a hash.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzz(input: &[u8]) {
    if let Ok(users) = parse(&String::from_utf8_lossy(input)) {
        assert!(!users.is_empty() && users.iter().all(|(name, hash)| !name.is_empty() && is_bcrypt_hash(hash)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "$2y$10$.MbTIwl1wtvWHpETCmKWpOz7tPXyHgYZL21sCdkHrjrwlpjICQPTS";

    #[test]
    fn users_are_read_as_yaml_has_them() {
        let text = format!("---\n# who\nbasic_auth_users:\n  alice: {HASH} # of today\n  \"b: o\": '{HASH}'\n\n");
        let users = parse(&text).unwrap();
        assert_eq!(users.keys().collect::<Vec<_>>(), ["alice", "b: o"]);
        assert!(users.values().all(|hash| hash == HASH));
    }

    #[test]
    fn what_would_not_protect_is_refused() {
        for (text, said) in [
            ("", "has no basic_auth_users"),
            ("basic_auth_users:\n", "has no basic_auth_users"),
            ("basic_auth_users: {}\n", "has no basic_auth_users"),
            ("basic_auth_users:\n  alice: secret\n", "no bcrypt hash"),
            ("tls_server_config:\n  cert_file: a\n", "reverse proxy"),
            ("rate_limit:\n  burst: 1\n", "not supported"),
            ("  alice: x\n", "not supported"),
            ("basic_auth_users\n", "must be"),
            ("basic_auth_users:\n  \" \": x\n", "must be"),
        ] {
            let why = format!("{:#}", parse(text).unwrap_err());
            assert!(why.contains(said), "{text:?}: {why}");
        }
        let twice = format!("basic_auth_users:\n  a: {HASH}\n  a: {HASH}\n");
        assert!(parse(&twice).unwrap_err().to_string().contains("twice"));
    }
}

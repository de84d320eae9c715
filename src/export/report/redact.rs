//! Replaces names of hosts, users, mounts and networks in a report. Each name gets the same placeholder everywhere, so
//! that related lines can still be recognised.

use regex_lite::Regex;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

/// A shorter name occurs in too many words, so it is replaced only where it is the whole text.
const MIN_SUBSTRING_LEN: usize = 3;
/// Placeholders, followed by a number.
const PLACEHOLDER_KINDS: [&str; 6] = ["host", "user", "mount", "address", "domain", "home"];

/// Names and their placeholders.
pub struct Redactor {
    /// Names in lower case with their placeholders, longest first.
    replacements: Vec<(String, String)>,
    counts: BTreeMap<&'static str, usize>,
    ipv4_regex: Regex,
    mac_regex: Regex,
    home_regex: Regex,
}

impl Default for Redactor {
    fn default() -> Self {
        #[expect(clippy::expect_used, reason = "the patterns are fixed")]
        let fixed = |pattern| Regex::new(pattern).expect("a fixed pattern");
        Self {
            replacements: Vec::new(),
            counts: BTreeMap::new(),
            ipv4_regex: fixed(r"\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}"),
            mac_regex: fixed(r"[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}"),
            home_regex: fixed(r"/home/([^/\s:,;'\x22()\[\]]+)"),
        }
    }
}

impl Redactor {
    /// Adds a host by its full name, with its short name and its domain.
    pub fn add_host(&mut self, name: &str) {
        let name = name.trim_end_matches('.');
        if name.parse::<IpAddr>().is_ok() {
            return self.add_name("address", name);
        }
        if let Some((short, domain)) = name.split_once('.') {
            self.add_name("host", short);
            if domain.contains('.') {
                self.add_name("domain", domain);
            }
            if let Some(known) = self.replacement_of(short).map(str::to_owned) {
                return self.insert(name, known);
            }
        }
        self.add_name("host", name);
    }

    /// Adds a user name.
    pub fn add_user(&mut self, name: &str) {
        self.add_name("user", name);
    }

    pub(crate) fn add_home(&mut self, path: &str) {
        if path.len() > 1 {
            self.add_name("home", path.trim_end_matches('/'));
        }
    }

    /// Adds the source of a network mount: `server:/export`, `//server/share`.
    pub fn add_mount_source(&mut self, source: &str) {
        let bare = source.trim_start_matches('/');
        let server = bare.split(['/', ':']).next().unwrap_or_default();
        if source.starts_with("//") || bare.contains(":/") {
            self.add_host(server);
        }
        self.add_name("mount", source);
    }

    pub(crate) fn collect_from(&mut self, text: &str) {
        let found = |r: &Regex| r.find_iter(text).map(|m| m.as_str().to_owned()).collect::<Vec<_>>();
        for address in found(&self.ipv4_regex).into_iter().chain(found(&self.mac_regex)) {
            self.add_address(&address);
        }
        let token = |c: char| !(c.is_ascii_hexdigit() || c == ':' || c == '.');
        for word in text.split(|c: char| !(c.is_alphanumeric() || c == ':' || c == '.')) {
            let word = word.trim_end_matches(['.', ':']);
            if !word.contains(token) && word.parse::<Ipv6Addr>().is_ok_and(|a| a.segments()[..7] != [0; 7]) {
                self.add_address(word);
            }
        }
        let people: Vec<String> = self.home_regex.captures_iter(text).map(|c| c[1].to_owned()).collect();
        for person in people {
            self.add_user(&person);
        }
    }

    /// Adds an address, except the loopback and the unspecified one.
    fn add_address(&mut self, text: &str) {
        if !text.starts_with("127.") && text != "0.0.0.0" && text != "00:00:00:00:00:00" {
            self.add_name("address", text);
        }
    }

    fn replacement_of(&self, name: &str) -> Option<&str> {
        let name = name.to_ascii_lowercase();
        self.replacements.iter().find(|(word, _)| *word == name).map(|w| w.1.as_str())
    }

    fn add_name(&mut self, kind: &'static str, name: &str) {
        // Common names, and parts of placeholders, identify nobody.
        let common = ["localhost", "(none)", "root"].contains(&name);
        let own = PLACEHOLDER_KINDS.iter().any(|k| k.contains(&name.to_ascii_lowercase()));
        let is_number = name.chars().all(|c| c.is_ascii_digit());
        if common || own || is_number || self.replacement_of(name).is_some() {
            return;
        }
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        let placeholder = format!("{kind}-{count}");
        self.insert(name, placeholder);
    }

    fn insert(&mut self, name: &str, placeholder: String) {
        self.replacements.push((name.to_ascii_lowercase(), placeholder));
        self.replacements.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then(a.0.cmp(&b.0)));
    }

    /// The text with names replaced.
    pub fn redact(&self, text: &str) -> String {
        if let Some(placeholder) = self.replacement_of(text.trim()) {
            return placeholder.to_owned();
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let is_here = |word: &str| word.len() >= MIN_SUBSTRING_LEN && starts_with_ignore_case(rest, word);
            let length = match self.replacements.iter().find(|(word, _)| is_here(word)) {
                Some((name, placeholder)) => {
                    out.push_str(placeholder);
                    name.len()
                }
                None => {
                    out.push(c);
                    c.len_utf8()
                }
            };
            rest = &rest[length..];
        }
        out
    }

    /// The names that must not occur in the document.
    pub fn redacted_names(&self) -> impl Iterator<Item = &str> {
        self.replacements.iter().map(|w| w.0.as_str()).filter(|w| w.len() >= MIN_SUBSTRING_LEN)
    }
}

/// Whether a text starts with a lower-case word, ignoring case.
fn starts_with_ignore_case(text: &str, word: &str) -> bool {
    text.get(..word.len()).is_some_and(|head| head == word || head.to_ascii_lowercase() == *word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn redactor() -> Redactor {
        let mut s = Redactor::default();
        s.add_host("Node02.db.example.com");
        s.add_user("alice");
        s.add_user("bo");
        s.add_mount_source("nas01.example.com:/export/home");
        s.add_mount_source("//fs02/projects");
        s
    }

    #[test]
    fn a_name_gets_the_same_placeholder_everywhere() {
        let mut s = redactor();
        for text in ["from 10.1.2.3 and fe80::1c2:3 via aa:bb:cc:dd:ee:ff", "/home/carol/x"] {
            s.collect_from(text);
        }
        for (text, want) in [
            ("node02 NODE02.DB.example.com db.example.com", "host-1 host-1 domain-1"),
            ("alice's /home/alice/db of malice", "user-1's /home/user-1/db of muser-1"),
            ("nas01.example.com:/export/home on nas01", "mount-1 on host-2"),
            ("//fs02/projects of fs02", "mount-2 of host-3"),
            ("nfs: server 10.1.2.3 [fe80::1c2:3] aa:bb:cc:dd:ee:ff", "nfs: server address-1 [address-3] address-2"),
            ("carol /home/carol", "user-3 /home/user-3"),
            ("bo", "user-2"),
            ("about a bo", "about a bo"),
            ("14:35:12 std::io 6.18.44 8:16 127.0.0.1", "14:35:12 std::io 6.18.44 8:16 127.0.0.1"),
        ] {
            assert_eq!(s.redact(text), want, "{text}");
        }
    }

    #[test]
    fn common_names_are_not_redacted() {
        let mut s = Redactor::default();
        for name in ["root", "localhost", "", "user", "1000"] {
            s.add_user(name);
        }
        assert_eq!(s.redacted_names().count(), 0);
    }

    proptest! {
        /// No name is left, whatever the names and the text.
        #[test]
        fn no_name_remains(
            names in proptest::collection::vec("[a-zA-Z0-9._-]{1,9}|[é写]{1,4}", 1..6),
            glue in proptest::collection::vec("[ /:=._a-z-]{0,4}|host|user", 12),
        ) {
            let mut s = Redactor::default();
            names.iter().for_each(|n| s.add_user(n));
            let text: String = glue.iter().enumerate().map(|(i, g)| format!("{g}{}", names[i % names.len()])).collect();
            let got = s.redact(&text).to_ascii_lowercase();
            // A placeholder and its neighbours may spell a name by chance.
            let bare = PLACEHOLDER_KINDS.iter().fold(got, |t, k| Regex::new(&format!("{k}-\\d+")).unwrap().replace_all(&t, "\u{1}").into_owned());
            for word in s.redacted_names() {
                prop_assert!(!bare.contains(word), "{word} in {bare:?} of {text:?}");
            }
        }
    }
}

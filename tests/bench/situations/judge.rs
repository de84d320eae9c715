//! Compares what the program says with the truth of a situation.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Severities in order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    #[default]
    Nothing,
    Note,
    Warning,
    Critical,
}

impl Level {
    fn of(name: &str) -> Self {
        match name {
            "critical" => Level::Critical,
            "warn" => Level::Warning,
            "note" => Level::Note,
            _ => Level::Nothing,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Level::Nothing => "nothing",
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Critical => "critical",
        }
    }
}

/// What is true of a situation.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Truth {
    /// The worst severity is at least and at most these.
    pub severity: [Level; 2],
    /// Name of the device at fault, or under load.
    pub device: Option<String>,
    /// Disks that may be named as well, such as those above or below it.
    pub other_disks: Vec<String>,
    /// Processes that cause it.
    pub culprits: Vec<String>,
    /// Processes that suffer.
    pub victims: Vec<String>,
    /// Processes that may be named in either role or left out.
    pub others: Vec<String>,
    /// Part of the path of the file it is about.
    pub file: Option<String>,
    /// Rules of which one has to report it; empty: any.
    pub rules: Vec<String>,
    /// Rules that may report besides, of the whole machine.
    pub also: Vec<String>,
    /// Words that a title has to contain.
    pub says: Vec<String>,
    /// Words that no title of a finding above a note may contain.
    pub never: Vec<String>,
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Lists are words with spaces between them.
impl Truth {
    pub fn new(severity: [Level; 2]) -> Self {
        Self { severity, ..Self::default() }
    }

    pub fn culprits(self, names: &str) -> Self {
        Self { culprits: words(names), ..self }
    }

    pub fn victims(self, names: &str) -> Self {
        Self { victims: words(names), ..self }
    }

    pub fn others(self, names: &str) -> Self {
        Self { others: words(names), ..self }
    }

    pub fn file(self, part: &str) -> Self {
        Self { file: Some(part.to_owned()), ..self }
    }

    pub fn rules(self, names: &str) -> Self {
        Self { rules: words(names), ..self }
    }

    pub fn also(self, names: &str) -> Self {
        Self { also: words(names), ..self }
    }

    pub fn says(self, names: &str) -> Self {
        Self { says: words(names), ..self }
    }

    pub fn never(self, names: &str) -> Self {
        Self { never: words(names), ..self }
    }
}

/// A finding as printed by `doctor --json`.
#[derive(Debug, Clone)]
pub struct Said {
    pub rule: String,
    pub level: Level,
    pub title: String,
    subject: String,
    /// `machine`, `device`, `task`, `mount`, `cgroup`, `named`.
    subject_kind: String,
    devices: Vec<String>,
    culprits: Vec<String>,
    victims: Vec<String>,
    files: Vec<String>,
}

/// `fio` of `fio (1234)`.
fn task_name(label: &str) -> String {
    label.rsplit_once(" (").map_or(label, |(name, _)| name).to_owned()
}

impl Said {
    fn of(v: &Value) -> Self {
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        let list = |name: &str| v[name].as_array().cloned().unwrap_or_default();
        let tasks = |name: &str| list(name).iter().map(|task| task_name(&text(&task["name"]))).collect();
        Self {
            rule: text(&v["rule"]),
            level: Level::of(v["severity"].as_str().unwrap_or_default()),
            title: text(&v["title"]),
            subject: text(&v["subject"]["name"]),
            subject_kind: text(&v["subject"]["kind"]),
            devices: list("devices").iter().map(text).collect(),
            culprits: tasks("culprits"),
            victims: tasks("victims"),
            files: list("files").iter().map(text).collect(),
        }
    }

    /// All findings among the incidents of a `doctor --json`.
    pub fn all(incidents: &Value) -> Vec<Self> {
        incidents
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|s| s["findings"].as_array().cloned().unwrap_or_default())
            .map(|f| Self::of(&f))
            .collect()
    }

    /// Whether the title has the word, not as a part of another one.
    fn has_word(&self, word: &str) -> bool {
        let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        self.title.match_indices(word).any(|(at, _)| {
            !is_part(self.title[..at].chars().next_back()) && !is_part(self.title[at + word.len()..].chars().next())
        })
    }

    /// A finding of other disks is not of the situation, even if processes of the same name use them.
    fn concerns(&self, scene: &Scene) -> bool {
        if !self.devices.is_empty() {
            return self.devices.iter().any(|disk| scene.disks.contains(disk));
        }
        let known = |name: &String| scene.names.contains(name);
        self.culprits.iter().chain(&self.victims).any(known)
            || known(&task_name(&self.subject))
            || scene.names.iter().any(|name| self.has_word(name))
    }
}

/// The names that a situation made, and what the machine had before.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Scene {
    /// Disks and processes of the situation.
    pub names: Vec<String>,
    pub disks: Vec<String>,
    /// Whether nobody else uses the machine.
    pub is_alone: bool,
    /// Rules and subjects that were reported without any situation.
    pub before: Vec<(String, String)>,
    /// Disks of situations before this one, of which the kernel log still speaks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub past_disks: Vec<String>,
}

/// How a situation was judged.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Score {
    /// What is missing.
    pub missing: Vec<String>,
    /// False statements.
    pub wrong: Vec<String>,
    /// What was said, most severe first.
    pub said: Vec<String>,
}

impl Score {
    pub fn word(&self) -> &'static str {
        match (self.wrong.is_empty(), self.missing.is_empty()) {
            (false, _) => "wrong",
            (true, true) => "right",
            (true, false) if self.missing.iter().any(|m| m.starts_with("nothing")) => "missed",
            _ => "partial",
        }
    }
}

pub fn judge(truth: &Truth, all: &[Said], scene: &Scene) -> Score {
    let is_past = |said: &Said| {
        let is_past = |disk: &String| scene.past_disks.contains(disk);
        is_past(&said.subject) || (!said.devices.is_empty() && said.devices.iter().all(is_past))
    };
    let is_new = |said: &&Said| !scene.before.contains(&(said.rule.clone(), said.subject.clone())) && !is_past(said);
    // What other programs do with other disks of this machine is no matter of the situation.
    let is_of_machine =
        |said: &Said| said.devices.is_empty() && said.subject_kind == "machine" && said.rule != "hung-task-silent";
    let is_here = |said: &&Said| scene.is_alone || said.concerns(scene) || is_of_machine(said);
    let said: Vec<&Said> = all.iter().filter(is_new).filter(is_here).collect();
    let loud: Vec<&Said> = said.iter().filter(|said| said.level >= Level::Warning).copied().collect();
    let mut score = Score { said: describe(&said), ..Score::default() };
    let worst = said.iter().filter(|said| !truth.also.contains(&said.rule)).map(|said| said.level).max();
    let worst = worst.unwrap_or_default();
    if worst > truth.severity[1] {
        score.wrong.push(format!("{} instead of {}", worst.name(), truth.severity[1].name()));
    }
    if worst < truth.severity[0] {
        let none = if worst == Level::Nothing { "nothing said: " } else { "" };
        score.missing.push(format!("{none}{} instead of {}", worst.name(), truth.severity[0].name()));
    }
    let relevant = if truth.severity[0] >= Level::Warning { &loud } else { &said };
    let has = |get: fn(&Said) -> &Vec<String>, name: &str| relevant.iter().any(|s| get(s).iter().any(|n| n == name));
    if let Some(device) = truth.device.as_deref().filter(|device| !has(|s| &s.devices, device)) {
        score.missing.push(format!("device {device}"));
    }
    for culprit in truth.culprits.iter().filter(|name| !has(|s| &s.culprits, name)) {
        score.missing.push(format!("culprit {culprit}"));
    }
    for victim in truth.victims.iter().filter(|name| !has(|s| &s.victims, name)) {
        score.missing.push(format!("victim {victim}"));
    }
    let has_file = |file: &str| relevant.iter().any(|said| said.files.iter().any(|path| path.contains(file)));
    if let Some(file) = truth.file.as_deref().filter(|file| !has_file(file)) {
        score.missing.push(format!("file {file}"));
    }
    if !truth.rules.is_empty() && !relevant.iter().any(|said| truth.rules.contains(&said.rule)) {
        score.missing.push(format!("one of the rules {}", truth.rules.join(", ")));
    }
    for words in truth.says.iter().filter(|words| !relevant.iter().any(|said| said.title.contains(words.as_str()))) {
        score.missing.push(format!("the words \"{words}\""));
    }
    loud.iter().for_each(|said| score.wrong.extend(false_statements(truth, said, scene)));
    score
}

fn describe(said: &[&Said]) -> Vec<String> {
    let mut sorted: Vec<&&Said> = said.iter().filter(|said| said.level >= Level::Note).collect();
    sorted.sort_by_key(|said| std::cmp::Reverse(said.level));
    let text = |said: &&&Said| {
        let part = |name: &str, all: &[String]| match all.is_empty() {
            true => String::new(),
            false => format!(" [{name} {}]", all.join(", ")),
        };
        format!(
            "{} {}: {}{}{}{}",
            said.level.name(),
            said.rule,
            said.title,
            part("culprits", &said.culprits),
            part("victims", &said.victims),
            part("files", &said.files),
        )
    };
    sorted.iter().map(text).collect()
}

/// What a finding above a note says that is not true.
fn false_statements(truth: &Truth, said: &Said, scene: &Scene) -> Vec<String> {
    let mut out = Vec::new();
    let is_known = |name: &String, role: &[String]| role.contains(name) || truth.others.contains(name);
    for culprit in said.culprits.iter().filter(|name| !is_known(name, &truth.culprits)) {
        out.push(format!("{}: blames {culprit}", said.rule));
    }
    // Who delays others waits as well.
    for victim in said.victims.iter().filter(|n| !is_known(n, &truth.victims) && !is_known(n, &truth.culprits)) {
        out.push(format!("{}: takes {victim} for a victim", said.rule));
    }
    let is_role = |name: &String| is_known(name, &truth.culprits) || is_known(name, &truth.victims);
    let is_disk = |name: &String| scene.disks.contains(name);
    for name in scene.names.iter().filter(|name| !is_disk(name) && !is_role(name) && said.has_word(name)) {
        out.push(format!("{}: names {name}", said.rule));
    }
    let may_be_named = |disk: &&String| truth.device.as_ref() == Some(*disk) || truth.other_disks.contains(disk);
    for disk in scene.disks.iter().filter(|disk| !may_be_named(disk)) {
        if said.devices.first() == Some(disk) || said.has_word(disk) {
            out.push(format!("{}: names {disk}", said.rule));
        }
    }
    for words in truth.never.iter().filter(|words| said.title.contains(words.as_str())) {
        out.push(format!("{}: says \"{words}\"", said.rule));
    }
    let is_about_here = said.concerns(scene);
    if !is_about_here && !truth.also.contains(&said.rule) && !truth.rules.contains(&said.rule) {
        out.push(format!("{}: reported without reason", said.rule));
    }
    out.sort();
    out.dedup();
    out
}

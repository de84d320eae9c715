//! The table of what was expected and what was said.

use crate::judge::Truth;
use crate::run::{Judged, Outcome};
use std::path::Path;

/// In the order of the summary.
const WORDS: [&str; 4] = ["right", "partial", "missed", "wrong"];

pub fn print(outcome: &Outcome, is_verbose: bool) {
    let name = outcome.situation.name;
    match &outcome.result {
        Err(why) => println!("{name:<32} skipped: {why}"),
        Ok(Judged { score, .. }) => {
            let problems: Vec<String> = score
                .wrong
                .iter()
                .map(|text| format!("FALSE {text}"))
                .chain(score.missing.iter().map(|text| format!("missing {text}")))
                .collect();
            println!("{name:<32} {:<8} {}", score.word(), problems.join("; "));
            if is_verbose || score.word() != "right" {
                score.said.iter().for_each(|line| println!("    {line}"));
            }
        }
    }
}

fn count(outcomes: &[Outcome], word: &str) -> usize {
    outcomes.iter().filter(|o| o.result.as_ref().is_ok_and(|judged| judged.score.word() == word)).count()
}

/// `60 situations: 55 right, 5 partial, 0 missed, 0 wrong; 1 skipped`.
pub fn summary(outcomes: &[Outcome]) -> String {
    let skipped = outcomes.iter().filter(|outcome| outcome.result.is_err()).count();
    let counts: Vec<String> = WORDS.iter().map(|word| format!("{} {word}", count(outcomes, word))).collect();
    format!("{} situations: {}; {skipped} skipped", outcomes.len() - skipped, counts.join(", "))
}

/// `loop1, culprit backup, victim database, file table; warning to critical`.
fn expected(truth: &Truth) -> String {
    let [least, most] = truth.severity;
    let mut parts =
        vec![if least == most { least.name().into() } else { format!("{} to {}", least.name(), most.name()) }];
    if truth.device.is_some() {
        parts.push("the disk".into());
    }
    let mut add = |role: &str, names: &[String]| {
        if !names.is_empty() {
            parts.push(format!("{role} {}", names.join(", ")));
        }
    };
    add("culprit", &truth.culprits);
    add("victim", &truth.victims);
    add("file", truth.file.as_slice());
    parts.join("; ")
}

/// Writes docs/situations.md.
pub fn write(outcomes: &[Outcome]) {
    let mut text = String::from(
        "# Situations\n\nWritten by `cargo bench --bench situations -- --write`, as root. Each situation is made with disks and processes of \
         its own, so that\nthe truth is known: `tests/bench/situations`. `iotop-plus doctor` looks at it for the seconds given, and names severity, \
         device,\nculprits, victims and file. *Right*: all of them, and nothing false above a note. *Partial*: something is missing. *Missed*: \
         nothing was\nsaid. *Wrong*: something false was said. What is not right is run once more, alone: the row has the second result and, as \"first run\",\nthe \
         first one. `cargo test --test situations` replays recordings of them, and judges what is said against the same truth.\n\n",
    );
    text.push_str(&format!("{}.\n\n", summary(outcomes)));
    text.push_str("| situation | what happens | expected | result | said |\n|---|---|---|---|---|\n");
    for Outcome { situation, result, first } in outcomes {
        let cell = |text: &str| text.replace('|', "\\|").replace('<', "&lt;");
        let (expected, word, said) = match result {
            Err(why) => (String::new(), "skipped".to_owned(), why.clone()),
            Ok(Judged { truth, score, .. }) => {
                let mut said: Vec<String> = score.said.iter().take(2).cloned().collect();
                said.extend(score.wrong.iter().map(|text| format!("**false:** {text}")));
                said.extend(score.missing.iter().map(|text| format!("**missing:** {text}")));
                let word = match first {
                    Some(first) => format!("{}; first run {}", score.word(), first.word()),
                    None => score.word().to_owned(),
                };
                said.extend(
                    first
                        .iter()
                        .flat_map(|score| score.wrong.iter().chain(&score.missing))
                        .map(|text| format!("first run: {text}")),
                );
                (expected(truth), word, said.join("<br>"))
            }
        };
        let said = cell(&said).replace("&lt;br>", "<br>");
        let about = cell(situation.about);
        text.push_str(&format!(
            "| `{}` | {about} ({} s) | {expected} | {word} | {said} |\n",
            situation.name, situation.secs
        ));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/situations.md");
    std::fs::write(&path, text).expect("docs/situations.md");
    println!("written: docs/situations.md");
}

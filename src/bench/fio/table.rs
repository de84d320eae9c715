//! The options of job files as a Markdown table, for the book.

use super::option_rule::{FioOption, OptionRule};
use super::options::HONOURED;
use super::other_options::OTHERS;

/// Every option with its aliases and what becomes of it.
pub fn options_markdown() -> String {
    let mut page = String::from("| option | here |\n|---|---|\n");
    for FioOption(names, rule) in HONOURED.iter().chain(OTHERS) {
        let names: Vec<String> = names.split(' ').map(|name| format!("`{name}`")).collect();
        let but = |values: &[&str]| match values {
            [] => String::new(),
            _ => format!(" (but `{}`)", values.join("`, `")),
        };
        let text = match rule {
            OptionRule::Honoured(_) => "honoured".to_owned(),
            OptionRule::Output => "ignored: fio's output only".to_owned(),
            OptionRule::NoEffect(why) => format!("ignored: {why}"),
            OptionRule::Replaced(usual, what) => format!("replaced{}: {what}", but(usual)),
            OptionRule::Refused(usual, why) => format!("refused{}: {why}", but(usual)),
        };
        page.push_str(&format!("| {} | {text} |\n", names.join(" ")));
    }
    page
}

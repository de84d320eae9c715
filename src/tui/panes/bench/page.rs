//! Pages of text: how a run ended, a kept result, two of them side by side.

use super::{Tone, Toned, folded};
use crate::bench::compare;
use crate::bench::report::{Report, course, markdown, text};
use crate::export::table::Table;
use crate::text::sanitize;
use crate::tui::bench::run::{Ended, Run};
use crate::tui::bench::{Opened, Row};
use crate::tui::marked::hint;
use crate::tui::state::App;

/// Title of the page, and what can be done on it.
pub fn title(app: &App) -> (String, &'static str) {
    let bench = &app.ui.bench;
    match &bench.opened {
        Some(Opened::Result(r)) => (format!("Result {}", sanitize(&r.id)), "Esc: back"),
        Some(Opened::Compared(_)) => ("Two results".into(), "Esc: back"),
        Some(Opened::Waiting(_) | Opened::Failed(_)) => ("Result".into(), "Esc: back"),
        None => match (&bench.selected, &bench.run) {
            (Row::Now, Some(run)) => (format!("Result of {}", run.plan.profile), ""),
            _ => ("Result".into(), "Enter: show, m: mark, c: compare"),
        },
    }
}

/// The page's lines for a width.
pub fn lines(app: &App, width: u16) -> Vec<Toned> {
    let bench = &app.ui.bench;
    let lines = match &bench.opened {
        Some(Opened::Waiting(ids)) => {
            vec![(format!("reading {} …", sanitize(ids.join(" and "))), Tone::Dim)]
        }
        Some(Opened::Failed(why)) => vec![(sanitize(why), Tone::Crit)],
        Some(Opened::Result(report)) => report_lines(report, width),
        Some(Opened::Compared(both)) => match compare::text_within(&both[0], &both[1], width.into()) {
            Ok(text) => text.lines().map(told).collect(),
            Err(why) => vec![(format!("{why}; mark a result of the same profile"), Tone::Crit)],
        },
        None => match (&bench.selected, &bench.run) {
            (Row::Now, Some(run)) => ended(run, width),
            _ => card(app),
        },
    };
    folded(lines, width.into())
}

/// A line of a report in text form.
pub fn told(line: &str) -> Toned {
    let tone = match line.chars().next() {
        Some('!') => Tone::Warn,
        Some(c) if !c.is_whitespace() => Tone::Strong,
        _ => Tone::Plain,
    };
    (sanitize(line), tone)
}

/// The report as `bench show` prints it, with the course of every part.
fn report_lines(report: &Report, width: u16) -> Vec<Toned> {
    let mut out: Vec<Toned> = Vec::new();
    if let Some(p) = &report.ruler {
        out.extend([(sanitize(&p.sentence), Tone::Strong), (String::new(), Tone::Plain)]);
    }
    out.extend(text::report_within(report, width.into()).lines().map(told));
    let course = course::course(report, usize::from(width).clamp(20, 120) - 2);
    if !course.is_empty() {
        out.push((String::new(), Tone::Plain));
        out.extend(course.into_iter().map(|l| told(&l)));
    }
    out
}

/// How the run of this session ended.
fn ended(run: &Run, width: u16) -> Vec<Toned> {
    match &run.end {
        None => Vec::new(),
        Some(Ended::Report(report)) => {
            let kept = match &run.kept {
                None => ("being kept …".into(), Tone::Dim),
                Some(Ok(id)) => (format!("kept as {}", sanitize(id)), Tone::Dim),
                Some(Err(why)) => (format!("! not kept: {}", sanitize(why)), Tone::Warn),
            };
            let mut out = vec![kept];
            out.extend(report_lines(report, width));
            out
        }
        Some(Ended::Refused(refused)) => vec![
            (format!("refused: {}", sanitize(&refused.why)), Tone::Crit),
            ("Nothing was written. Change the plan and start again.".into(), Tone::Plain),
        ],
        Some(Ended::Failed(why)) => {
            let mut out = vec![(format!("failed: {}", sanitize(why)), Tone::Crit)];
            out.push(("Nothing is left behind: the file went with its process.".into(), Tone::Plain));
            out.extend(run.notes.iter().map(|n| (format!("! {n}"), Tone::Warn)));
            out
        }
    }
}

/// A kept result that is selected and not opened.
fn card(app: &App) -> Vec<Toned> {
    let bench = &app.ui.bench;
    let Some(k) = bench.selected_result() else { return Vec::new() };
    card_of(&k.profile, &k.id, &k.headline(), k.damaged.is_some(), bench.marked.as_ref())
}

/// A kept result in a few lines: its profile and name, what it came to, what can be done with it.
pub fn card_of(
    profile: &str,
    id: &str,
    headline: &str,
    damaged: bool,
    marked: Option<&String>,
) -> Vec<Toned> {
    vec![
        (format!("{} {}", sanitize(profile), sanitize(id)), Tone::Strong),
        (sanitize(headline), if damaged { Tone::Crit } else { Tone::Plain }),
        (String::new(), Tone::Plain),
        ("Enter shows it.".into(), Tone::Dim),
        (hint(marked, id), Tone::Dim),
    ]
}

/// The page as a table to keep.
pub fn sheet(app: &App) -> Table {
    let bench = &app.ui.bench;
    let report = match (&bench.opened, &bench.selected, &bench.run) {
        (Some(Opened::Result(r)), ..) => Some(r),
        (None, Row::Now, Some(Run { end: Some(Ended::Report(r)), .. })) => Some(r),
        _ => None,
    };
    let Some(report) = report else {
        let title = format!("{} on {}, {}", title(app).0, app.world.host.name, app.stamp());
        let mut sheet = Table::new(title, &[("", false)]);
        let text = if super::is_live(app) { live_lines(app) } else { lines(app, u16::MAX) };
        sheet.rows.extend(text.into_iter().map(|l| vec![l.0]));
        return sheet;
    };
    of_report(report)
}

fn live_lines(app: &App) -> Vec<Toned> {
    app.ui
        .bench
        .running()
        .map_or(Vec::new(), |run| super::live::summary(run).into_iter().map(|l| (l, Tone::Plain)).collect())
}

/// A result's table: a row for each part and direction, everything else below it.
fn of_report(report: &Report) -> Table {
    let heads = markdown::HEADS.map(|h| (h, !matches!(h, "part" | "what")));
    let title =
        format!("{} on {}, {}", sanitize(&report.plan.profile), sanitize(&report.host), sanitize(&report.time));
    let mut sheet = Table::new(title, &heads);
    sheet.rows = report.parts.iter().flat_map(markdown::cells).map(|row| row.map(sanitize).to_vec()).collect();
    if let Some(t) = &report.target {
        sheet.notes.push(sanitize(format!(
            "{} on {} ({}), kernel {}",
            t.directory, t.filesystem, t.source, report.kernel
        )));
    }
    sheet.notes.push(sanitize(text::end(&report.end)));
    for (part, f) in report.parts.iter().flat_map(|p| p.figures.iter().map(move |f| (p, f))) {
        sheet.notes.push(sanitize(format!("{}: {} {}", part.label, f.name, text::figure(f.value, &f.unit))));
    }
    sheet.notes.extend(report.ruler.iter().map(|p| sanitize(&p.sentence)));
    sheet.notes.extend(report.warnings.iter().map(sanitize));
    sheet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_lines_are_cleaned_and_warnings_stand_out() {
        assert_eq!(told("! a\x1b[2J"), ("! a\\x1b[2J".into(), Tone::Warn));
        assert_eq!(told("  device x"), ("  device x".into(), Tone::Plain));
        assert_eq!(told("randrw on h"), ("randrw on h".into(), Tone::Strong));
        assert_eq!(told(""), (String::new(), Tone::Plain));
    }
}

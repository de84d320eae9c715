//! An experiment under way: messages of its child process, what hangs, the measurements of the finished rounds, and the
//! dirty pages of both arms on one scale.

use super::ExperimentForm;
use super::form::shell_join;
use crate::bench::bounded_series::BoundedSeries;
use crate::bench::description::progress_line;
use crate::bench::workloads::{self, PrimaryMetric};
use crate::experiment::dirty_pages::MAX_POINTS;
use crate::experiment::message::{ExperimentMessage, ExperimentProgress, RoundPhase};
use crate::experiment::report::graph::{DirtyPagesCurve, LEGEND, draw_arms};
use crate::experiment::report::{DirtyPagesPoint, DirtyThresholds, Round, tables, text, verdict};
use crate::experiment::spec::Arm;
use crate::sanitize::sanitize;
use crate::tui::view::Context;
use crate::tui::views::runs::{Run, RunEnding, RunStatus};
use crate::tui::widgets::{
    CellBuffer, Rect, StyledLine, TextStyle, area_below, draw_column, draw_lines, draw_text, wrap_lines,
};
use crate::units::format_bytes_long;

/// Time without a message after which the child process is shown as hung, ms. It sends several a second, except while
/// dirty pages are written back.
const SILENT_AFTER_MS: u64 = 5000;
/// Minimum rows for the graphs: two headings, axis, legend, and a few rows for each arm.
const MIN_GRAPHS_HEIGHT: usize = 10;

#[derive(Debug, Default)]
pub struct ExperimentFigures {
    last: Option<ExperimentProgress>,
    /// Finished rounds of the experiment and of the control.
    rounds: [Vec<Round>; 2],
    points: BoundedSeries<DirtyPagesPoint, MAX_POINTS>,
    /// Dirty thresholds of both arms, as far as they have been in effect.
    thresholds: [DirtyThresholds; 2],
}

impl ExperimentFigures {
    fn push(&mut self, p: ExperimentProgress) {
        if self.last.as_ref().is_none_or(|last| last.round != p.round) {
            self.points = BoundedSeries::default();
        }
        if p.phase == RoundPhase::Work {
            self.thresholds[p.arm.index()] = p.thresholds;
        }
        p.dirty_point.into_iter().for_each(|point| self.points.push(point));
        self.last = Some(p);
    }

    fn is_control(&self) -> bool {
        self.last.as_ref().is_some_and(|p| p.is_control)
    }

    /// The finished rounds of the current part: the experiment or the control.
    fn finished_rounds(&self) -> &[Round] {
        &self.rounds[usize::from(self.is_control())]
    }

    /// The last progress message, if it is of the workload.
    fn working(&self) -> Option<&ExperimentProgress> {
        self.last.as_ref().filter(|p| p.phase == RoundPhase::Work)
    }

    /// The points to draw for an arm, with a label: those of the current round if it has any, else of the arm's last round.
    fn latest_points(&self, arm: Arm) -> Option<(&[DirtyPagesPoint], String)> {
        let under_way = self.last.as_ref().filter(|p| p.arm == arm && !self.points.points.is_empty());
        if let Some(p) = under_way {
            return Some((&self.points.points, format!("round {}, now", p.round)));
        }
        let last = self.finished_rounds().iter().rev().find(|r| r.arm == arm)?;
        Some((&last.dirty_points, format!("round {}", last.number)))
    }
}

impl RunStatus for ExperimentForm {
    fn receive(run: &mut Run<Self>, message: ExperimentMessage) {
        match message {
            ExperimentMessage::Progress(p) => run.progress.push(p),
            ExperimentMessage::Round(round) => {
                let part = usize::from(run.progress.is_control());
                run.progress.rounds[part].push(*round);
                run.progress.points = BoundedSeries::default();
            }
            ExperimentMessage::Note(note) => run.add_note(note),
            ExperimentMessage::Refused(refusal) => run.ending = Some(RunEnding::Refused(refusal.to_string())),
            ExperimentMessage::Failed(why) => run.ending = Some(RunEnding::Failed(why)),
            ExperimentMessage::Report(report) => run.ending = Some(RunEnding::Report(report)),
        }
    }

    fn status_text(run: &Run<Self>) -> String {
        let name = format!("experiment {}", run.profile);
        let Some(p) = &run.progress.last else { return format!("{name} starting") };
        if run.is_stopping {
            return format!("{name} stopping");
        }
        let done = run.progress.working().and_then(|p| p.bench.as_ref()?.fraction_done);
        let done = done.map_or(String::new(), |d| format!(" {:.0} %", d * 100.0));
        format!("{name} {}/{} {}{done}", p.round, p.total_rounds, p.arm.name())
    }

    fn blocked_text(run: &Run<Self>, now_ns: u64) -> Option<String> {
        let silent = now_ns.saturating_sub(run.last_message_ns) / 1_000_000;
        let last = run.progress.last.as_ref();
        if silent > SILENT_AFTER_MS {
            let limit = run.plan.drain_limit_ms / 1000;
            return Some(match last.is_some_and(|p| p.phase == RoundPhase::Drain) {
                true => format!("writing back dirty pages for {} s; gives up after {limit} s", silent / 1000),
                false => {
                    format!("no message from the experiment process{} for {} s", run.process_text(), silent / 1000)
                }
            });
        }
        let idle = last.and_then(|p| p.bench.as_ref()).map_or(0, |b| b.idle_ms);
        (idle >= 1000).then(|| {
            let limit = run.plan.plan.stall_limit_ms / 1000;
            format!("BLOCKED: no request completed for {} s; gives up after {limit} s", idle / 1000)
        })
    }

    /// The current round and arm, and its phase.
    fn phase_text(run: &Run<Self>) -> String {
        let Some(p) = &run.progress.last else { return "starting the experiment process".into() };
        let what = if p.is_control { " (control)" } else { "" };
        let ending = if run.is_stopping { "; stopping, the report follows" } else { "" };
        format!("round {} of {}{what}, {}: {}{ending}", p.round, p.total_rounds, p.arm.name(), p.phase.description())
    }

    /// Completed share of the whole experiment.
    fn fraction_done(run: &Run<Self>) -> Option<f64> {
        let Some(p) = &run.progress.last else { return Some(0.0) };
        let within = run.progress.working().and_then(|p| p.bench.as_ref());
        let within = within.filter(|b| b.measurement_index.is_some()).and_then(|b| b.fraction_done).unwrap_or(0.0);
        Some((f64::from(p.round.saturating_sub(1)) + within.clamp(0.0, 1.0)) / f64::from(p.total_rounds.max(1)))
    }

    /// What the arms set, and the progress of the current round.
    fn figure_lines(run: &Run<Self>, width: usize) -> Vec<StyledLine> {
        let set = |arm: Arm| match run.plan.assignments(arm) {
            [] => "the current values".into(),
            words => sanitize(shell_join(words)),
        };
        let mut out = vec![(format!("A {}; B {}", set(Arm::A), set(Arm::B)), TextStyle::Dim)];
        if let Some((p, bench)) = run.progress.working().and_then(|p| Some((p, p.bench.as_ref()?))) {
            let dirty = p.dirty_point.map_or(String::new(), |d| {
                let [dirty, writeback] = [d.dirty_bytes, d.writeback_bytes].map(format_bytes_long);
                format!("  dirty {dirty}, writeback {writeback}")
            });
            out.push((sanitize(format!("{}{dirty}", progress_line(bench))), TextStyle::Plain));
        }
        wrap_lines(out, width)
    }

    fn summary_lines(run: &Run<Self>) -> Vec<StyledLine> {
        rounds_by_arm(run)
    }

    /// A table of the finished rounds if it leaves room for the graphs, else a line for each arm; then the graphs.
    fn draw_graphs(run: &Run<Self>, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        let mut lines = rounds_table(run, area.width.into());
        if lines.len() + MIN_GRAPHS_HEIGHT > usize::from(area.height) {
            lines = rounds_by_arm(run);
        }
        let used = (lines.len() as u16).min(area.height);
        draw_lines(&cx.theme, area, buf, &lines, 0);
        draw_dirty_pages(run, cx, area_below(area, used), buf);
    }
}

fn primary_metric(run: &Run<ExperimentForm>) -> Option<PrimaryMetric> {
    let plan = if run.progress.is_control() { run.plan.control_plan() } else { None };
    workloads::primary_metric(&plan.as_ref().unwrap_or(&run.plan.plan).profile)
}

fn rounds_table(run: &Run<ExperimentForm>, width: usize) -> Vec<StyledLine> {
    let Some(metric) = primary_metric(run).filter(|_| !run.progress.finished_rounds().is_empty()) else {
        return Vec::new();
    };
    let mut out = String::new();
    text::write_table(&mut out, &tables::rounds_table_of(&metric, run.progress.finished_rounds()), width);
    let mut lines: Vec<StyledLine> = vec![(String::new(), TextStyle::Plain)];
    let styles = std::iter::once(TextStyle::Strong).chain(std::iter::repeat(TextStyle::Plain));
    lines.extend(out.lines().map(str::to_owned).zip(styles));
    lines.push((String::new(), TextStyle::Plain));
    lines
}

/// The same as a line for each arm, newest round first, so that it is visible at any width.
fn rounds_by_arm(run: &Run<ExperimentForm>) -> Vec<StyledLine> {
    let Some(metric) = primary_metric(run) else { return Vec::new() };
    let of = |arm: Arm| {
        let rounds = run.progress.finished_rounds().iter().rev().filter(|r| r.arm == arm);
        let values = rounds.map(|r| r.value.map_or("-".into(), |v| verdict::format_metric(&metric, v)));
        let values: Vec<String> = values.collect();
        let shown = if values.is_empty() { "no round yet".into() } else { values.join(", ") };
        (format!("{} {}: {shown}", arm.name(), metric.name), TextStyle::Plain)
    };
    vec![of(Arm::A), of(Arm::B)]
}

fn draw_dirty_pages(run: &Run<ExperimentForm>, cx: &Context, area: Rect, buf: &mut CellBuffer) {
    let rows = (area.height.saturating_sub(4) / 2).min(10);
    let curve = |arm: Arm| {
        let (points, about) = run.progress.latest_points(arm).unwrap_or((&[], "no round yet".into()));
        let threshold = run.progress.thresholds[arm.index()].background;
        DirtyPagesCurve { points: points.iter().collect(), threshold, caption: about }
    };
    let lines = draw_arms(&[curve(Arm::A), curve(Arm::B)], area.width.into(), rows.into());
    if lines.is_empty() {
        return;
    }
    let theme = &cx.theme;
    draw_text(buf, area.x, area.y, LEGEND, area.width, theme.dim);
    let half = usize::from(rows) + 1;
    let style = |i: usize| match i {
        _ if i == 0 || i == half => theme.header,
        _ if i < half => theme.graph,
        _ if i < 2 * half => theme.graph_alt,
        _ => theme.dim,
    };
    draw_column(buf, area_below(area, 1), lines.iter().zip((0..).map(style)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::message::BenchProgress;
    use crate::experiment::spec::ExperimentSpec;

    fn progress(round: u32, arm: Arm, phase: RoundPhase, at_ms: u64) -> ExperimentMessage {
        let bench = BenchProgress { measurement_index: Some(0), fraction_done: Some(0.5), ..BenchProgress::default() };
        let point = DirtyPagesPoint { at_ms, dirty_bytes: 1 << 20, writeback_bytes: 0 };
        let work = phase == RoundPhase::Work;
        ExperimentMessage::Progress(ExperimentProgress {
            is_control: false,
            round,
            total_rounds: 8,
            arm,
            phase,
            bench: work.then_some(bench),
            dirty_point: work.then_some(point),
            thresholds: DirtyThresholds { background: work.then_some(7), limit: None },
        })
    }

    fn receive(run: &mut Run<ExperimentForm>, message: ExperimentMessage, now_ns: u64) {
        run.last_message_ns = now_ns;
        ExperimentForm::receive(run, message);
    }

    #[test]
    fn progress_and_the_latest_points_of_each_arm_are_tracked() {
        let mut run = Run::<ExperimentForm>::new(1, ExperimentSpec::default(), 0);
        assert_eq!(ExperimentForm::status_text(&run), "experiment randrw starting");
        receive(&mut run, progress(1, Arm::A, RoundPhase::Drain, 0), 1);
        assert_eq!(
            (ExperimentForm::status_text(&run).as_str(), ExperimentForm::fraction_done(&run)),
            ("experiment randrw 1/8 A", Some(0.0))
        );
        receive(&mut run, progress(1, Arm::A, RoundPhase::Work, 250), 1);
        assert_eq!(
            (ExperimentForm::status_text(&run).as_str(), ExperimentForm::fraction_done(&run)),
            ("experiment randrw 1/8 A 50 %", Some(0.0625))
        );
        assert_eq!(
            run.progress.latest_points(Arm::A).map(|(p, about)| (p.len(), about)),
            Some((1, "round 1, now".into()))
        );
        assert!(run.progress.latest_points(Arm::B).is_none());
        receive(&mut run, progress(2, Arm::B, RoundPhase::Drain, 0), 1);
        assert!(run.progress.points.points.is_empty() && run.progress.thresholds[0].background == Some(7));
        run.is_stopping = true;
        assert_eq!(ExperimentForm::status_text(&run), "experiment randrw stopping");
    }

    #[test]
    fn blocked_text_distinguishes_silence_and_draining() {
        let mut run = Run::<ExperimentForm>::new(1, ExperimentSpec::default(), 0);
        receive(&mut run, progress(1, Arm::A, RoundPhase::Drain, 0), 0);
        assert_eq!(ExperimentForm::blocked_text(&run, 2_000_000_000), None);
        assert!(
            ExperimentForm::blocked_text(&run, 9_000_000_000)
                .unwrap()
                .contains("dirty pages for 9 s; gives up after 300 s")
        );
        receive(&mut run, progress(1, Arm::A, RoundPhase::Work, 0), 9_000_000_000);
        assert!(ExperimentForm::blocked_text(&run, 19_000_000_000).unwrap().contains("for 10 s"));
    }
}

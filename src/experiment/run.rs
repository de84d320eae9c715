//! The order of things: drain, watch, apply, measure, restore; arm after arm. Whatever happens in a round, the old
//! values come back before anything else is done.

use super::lab::{Fail, Lab, Seen, Worked};
use super::message::{Message, Phase, Progress};
use super::report::verdict::{self, Outcome};
use super::report::{Calm, Round, Thresholds, Trial};
use super::spec::{Arm, Spec, Then};
use super::stats::Comparison;
use crate::bench::plan::Plan;
use crate::bench::report::End;
use crate::bench::workloads::{self, headline};
use crate::tune::plan::Refusal;

/// What was conducted.
pub struct Conducted {
    /// The experiment, and the control.
    pub trials: Vec<Trial>,
    /// Of the arms.
    pub thresholds: [Thresholds; 2],
    /// How it ended.
    pub end: End,
    /// What became of the change.
    pub after: String,
}

/// Conducts `spec`; `Err`: refused before the first round was over.
pub fn conduct(spec: &Spec, lab: &mut dyn Lab, say: &mut dyn FnMut(Message)) -> Result<Conducted, Refusal> {
    let mut run = Run { spec, lab, say, thresholds: Default::default(), done: 0, stuck: false };
    let mut trials = Vec::new();
    let mut end = End::Complete;
    let plans = [(false, Some(spec.plan.clone())), (true, spec.control_plan())];
    for (control, plan) in plans {
        let (Some(plan), End::Complete) = (plan, &end) else { continue };
        let (trial, fail) = run.trial(control, plan);
        let begun = trials.iter().chain([&trial]).any(|t: &Trial| !t.rounds.is_empty());
        match fail {
            Some(Fail::Refused(refusal)) if !begun => return Err(refusal),
            Some(Fail::Refused(refusal)) => end = End::Failed(refusal.to_string()),
            Some(Fail::Cancelled) => end = End::Cancelled,
            Some(Fail::Failed(why)) => end = End::Failed(why),
            None => {}
        }
        trials.push(trial);
    }
    let outcome = trials.first().map(|t| t.verdict.outcome);
    let after = run.afterwards(&end, outcome);
    Ok(Conducted { trials, thresholds: run.thresholds, end, after })
}

struct Run<'a> {
    spec: &'a Spec,
    lab: &'a mut dyn Lab,
    say: &'a mut dyn FnMut(Message),
    thresholds: [Thresholds; 2],
    /// Rounds that are over, of all trials.
    done: u32,
    /// Values of a round could not be put back.
    stuck: bool,
}

impl Run<'_> {
    /// The rounds up to the first that fails, and why that did.
    fn trial(&mut self, control: bool, plan: Plan) -> (Trial, Option<Fail>) {
        let mut rounds = Vec::new();
        let mut fail = None;
        for (n, arm) in (1..).zip(self.spec.order()) {
            let done = self.round(control, &plan, n, arm);
            let (round, failed) = match done {
                Ok((round, failed)) => (Some(round), failed),
                Err(failed) => (None, Some(failed)),
            };
            self.done += 1;
            if let Some(round) = round {
                (self.say)(Message::Round(Box::new(round.clone())));
                rounds.push(round);
            }
            fail = failed;
            if fail.is_some() {
                break;
            }
        }
        let workload = workloads::find(&plan.profile);
        let metric = headline::metric(&plan.profile).unwrap_or(headline::Metric {
            name: plan.profile.clone(),
            unit: String::new(),
            higher_is_better: true,
        });
        let mut trial = Trial {
            control,
            work: workload.map(|w| w.describe(&plan)).unwrap_or_default(),
            plan,
            rounds,
            comparison: None,
            verdict: verdict::judge(&metric, None),
            metric,
        };
        trial.comparison = Comparison::of(&trial.values(Arm::A), &trial.values(Arm::B));
        trial.verdict = verdict::judge(&trial.metric, trial.comparison.as_ref());
        (trial, fail)
    }

    /// One round; a round that was measured but cannot be relied on comes with its failure.
    fn round(
        &mut self,
        control: bool,
        plan: &Plan,
        number: u32,
        arm: Arm,
    ) -> Result<(Round, Option<Fail>), Fail> {
        self.tell(control, arm, Phase::Drain);
        let drained_ms = self.lab.drain(plan)?;
        self.tell(control, arm, Phase::Calm);
        let calm = self.lab.calm()?;
        self.tell(control, arm, Phase::Apply);
        let measured = self.lab.apply(self.spec.words(arm)).and_then(|()| {
            let (background, limit) = self.lab.thresholds();
            self.thresholds[arm.index()] = Thresholds { background, limit };
            self.work(control, plan, arm)
        });
        self.tell(control, arm, Phase::Restore);
        // Before anything is made of the round, and whatever became of it.
        let restored = self.lab.restore();
        self.stuck |= restored.is_err();
        let worked = measured.map_err(|fail| both(fail, &restored))?;
        let round = round(number, arm, drained_ms, calm, worked);
        let failed = match &round.bench.end {
            _ if restored.is_err() => restored.err(),
            End::Complete if round.value.is_none() => {
                Some(Fail::Failed(format!("round {number}: nothing was counted")))
            }
            End::Complete => None,
            End::Cancelled => Some(Fail::Cancelled),
            End::Failed(why) | End::Stalled(why) => Some(Fail::Failed(format!("round {number}: {why}"))),
        };
        Ok((round, failed))
    }

    fn work(&mut self, control: bool, plan: &Plan, arm: Arm) -> Result<Worked, Fail> {
        let (round, of) = (self.done + 1, self.spec.all_rounds());
        let thresholds = self.thresholds[arm.index()];
        let say = &mut *self.say;
        self.lab.work(plan, &mut |seen| match seen {
            Seen::Progress(bench, point) => say(Message::Progress(Progress {
                control,
                round,
                of,
                arm,
                phase: Phase::Work,
                bench: Some(bench.clone()),
                point,
                thresholds,
            })),
            Seen::Note(note) => say(Message::Note(note.to_owned())),
        })
    }

    fn tell(&mut self, control: bool, arm: Arm, phase: Phase) {
        let (round, of) = (self.done + 1, self.spec.all_rounds());
        let thresholds = Thresholds::default();
        let (bench, point) = (None, None);
        (self.say)(Message::Progress(Progress { control, round, of, arm, phase, bench, point, thresholds }));
    }

    /// Sets B again if that was asked for and it earned it; in a sentence.
    fn afterwards(&mut self, end: &End, outcome: Option<Outcome>) -> String {
        if self.stuck {
            return "Not all old values are back; `iotop-plus tune status` shows how things stand.".into();
        }
        let lease = match self.spec.then {
            Then::Undo if outcome == Some(Outcome::Better) => {
                return format!(
                    "The old values are back. To set B: iotop-plus tune set {}",
                    crate::text::sanitize(self.spec.set.join(" "))
                );
            }
            Then::Undo => return "The old values are back.".into(),
            Then::Keep => None,
            Then::Lease(secs) => Some(secs),
        };
        if *end != End::Complete || outcome != Some(Outcome::Better) {
            return "The old values are back: B is not shown to be better, so it was not set again.".into();
        }
        match (self.lab.leave(&self.spec.set, lease), lease) {
            (Ok(id), None) => format!(
                "B is set again as change {id} and stays until the machine boots. To take it back: iotop-plus tune undo {id}"
            ),
            (Ok(id), Some(secs)) => format!(
                "B is set again as change {id} on a lease of {}. To let it stay: iotop-plus tune keep {id}    To take it \
                 back: iotop-plus tune undo {id}",
                crate::units::format_duration(secs)
            ),
            (Err(Fail::Cancelled), _) => "The old values are back: stopped before B was set again.".into(),
            (Err(Fail::Refused(why)), _) => {
                format!("The old values are back: B could not be set again: {why}")
            }
            (Err(Fail::Failed(why)), _) => {
                format!("The old values are back: B could not be set again: {why}")
            }
        }
    }
}

fn round(number: u32, arm: Arm, drained_ms: u64, calm: Calm, worked: Worked) -> Round {
    Round {
        number,
        arm,
        value: headline::value(&worked.report),
        drained_ms,
        calm,
        dirtied: worked.dirtied,
        written: worked.written,
        points: worked.points,
        bench: worked.report,
    }
}

/// Both ends of a round that went wrong: that values are not back must not go unsaid.
fn both(measured: Fail, restored: &Result<(), Fail>) -> Fail {
    let words = |fail: &Fail| match fail {
        Fail::Cancelled => "stopped".to_owned(),
        Fail::Refused(refusal) => refusal.to_string(),
        Fail::Failed(why) => why.clone(),
    };
    match restored {
        Ok(()) => measured,
        Err(not_back) => Fail::Failed(format!("{}; {}", words(&measured), words(not_back))),
    }
}

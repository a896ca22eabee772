//! The fold of a journal into what happened unexpectedly.

use std::collections::BTreeMap;

use jiff::Timestamp;
use strum::VariantArray;

use super::{
    ExplainedCost, ExplainedDecider, ExplainedEvent, ExplainedOption, ExplainedResult, ExplainedSubject,
};
use crate::adapt::{PolicyAction, PolicyChoice, ToolForecast, WeighedAction};
use crate::run::{
    Adaptation, ApprovalSubject, Envelope, Event, Fault, FaultClass, Outcome, ProgramStop, RunState, Subject,
    TimerSubject, UNCONFIRMED, UnexpectedSubject, Usage,
};

/// The entries so far, and what later events refer to.
pub(super) struct Entries<'r> {
    pub(super) state: &'r RunState,
    pub(super) with_messages: bool,
    pub(super) entries: Vec<ExplainedEvent>,
    /// The entry about the end of each step, as an index.
    pub(super) of_step: BTreeMap<u32, usize>,
    /// The attempt of each started call.
    attempts: BTreeMap<u32, u32>,
    /// The last entry about each call, as an index.
    of_call: BTreeMap<u32, usize>,
    /// The entry about the outcome of each write, as an index.
    of_outcome: BTreeMap<u32, usize>,
    /// The subject of each question to a model, and what its reply cost.
    questions: BTreeMap<u32, (Subject, Usage, u64)>,
    /// The last entry about each subject, as an index.
    of_subject: BTreeMap<Subject, usize>,
    /// The entry about the call whose place a call takes, as an index.
    replaced: BTreeMap<u32, usize>,
    /// Since when a call waits for its next attempt.
    waits: BTreeMap<u32, Timestamp>,
}

impl<'r> Entries<'r> {
    pub(super) fn new(state: &'r RunState, with_messages: bool) -> Self {
        Self {
            state,
            with_messages,
            entries: Vec::new(),
            of_step: BTreeMap::new(),
            attempts: BTreeMap::new(),
            of_call: BTreeMap::new(),
            of_outcome: BTreeMap::new(),
            questions: BTreeMap::new(),
            of_subject: BTreeMap::new(),
            replaced: BTreeMap::new(),
            waits: BTreeMap::new(),
        }
    }

    pub(super) fn into_entries(mut self) -> Vec<ExplainedEvent> {
        if self.state.status.is_terminal() {
            let pending = self.entries.iter_mut().filter(|entry| entry.then == ExplainedResult::Pending);
            pending.for_each(|entry| entry.then = ExplainedResult::GivenUp);
        }
        self.entries
    }

    pub(super) fn fold(&mut self, envelope: &Envelope<Event>) {
        let at = envelope.at;
        match &envelope.body {
            Event::ToolStarted { call, attempt } => {
                self.attempts.insert(*call, *attempt);
                self.end_wait(*call, at);
                // Rules without a mode repeat a write under its key at once.
                if let Some(entry) = self.call_entry(*call).filter(|entry| entry.chosen.is_none()) {
                    entry.chosen = Some(PolicyAction::Retry.name().to_owned());
                    entry.then = ExplainedResult::Pending;
                }
            }
            Event::ToolCompleted { call, outcome, millis, .. } => self.completed(at, *call, outcome, *millis),
            Event::Unexpected {
                subject: UnexpectedSubject::Call { call, .. },
                weighed,
                chosen,
                unasked,
                options,
                ..
            } => {
                self.decided(*call, weighed, *chosen);
                self.offered(*call, (*unasked, *chosen), options);
            }
            Event::Unexpected { subject, class, code, unasked, .. } => {
                self.step_ended(at, *subject, (*class, code), *unasked);
            }
            Event::Consultation { .. } => self.consulted(&envelope.body),
            Event::Adapted { change } => self.adapted(change),
            Event::BackedOff { call, .. } => {
                self.waits.insert(*call, at);
            }
            Event::TimerFired { timer: TimerSubject::Retry { call, .. } } => self.end_wait(*call, at),
            Event::ApprovalRequired { matter: ApprovalSubject::Outcome { call }, .. } => {
                self.put_to_person(at, *call);
            }
            Event::Decided { matter: ApprovalSubject::Outcome { call }, decision, by, .. } => {
                if let Some(entry) = self.of_outcome.get(call).and_then(|index| self.entries.get_mut(*index))
                {
                    entry.chosen = Some(decision.name().to_owned());
                    entry.by = Some(by.clone());
                    entry.then = ExplainedResult::Decided;
                    entry.cost.waited_ms = millis_between(entry.at, at);
                }
            }
            Event::Forecast { step, tools } => self.told(at, *step, tools),
            _ => self.fold_models(envelope),
        }
    }

    /// What happened to questions to models.
    fn fold_models(&mut self, envelope: &Envelope<Event>) {
        let at = envelope.at;
        match &envelope.body {
            Event::ModelAsked { call, subject, fallback, .. } => {
                self.questions.insert(*call, (*subject, Usage::default(), 0));
                if let Some(entry) =
                    self.of_subject.remove(subject).and_then(|index| self.entries.get_mut(index))
                {
                    let (chosen, then) = match fallback {
                        true => ("embedded_rules", ExplainedResult::EmbeddedRules),
                        false => ("ask_again", ExplainedResult::AskedAgain),
                    };
                    entry.chosen = Some(chosen.to_owned());
                    entry.then = then;
                }
            }
            Event::ModelReplied { call, usage, millis, .. } => {
                if let Some(question) = self.questions.get_mut(call) {
                    (question.1, question.2) = (*usage, *millis);
                }
            }
            Event::ModelFailed { call, error, usage, millis, .. } => {
                let cost = model_cost(*usage, *millis);
                let entry = self.entry(at, ExplainedSubject::Model, error);
                self.push_question(*call, ExplainedEvent { cost, ..entry });
            }
            Event::ReplyRejected { call, problems } => {
                let (_, usage, millis) =
                    self.questions.get(call).copied().unwrap_or((Subject::Answer, Usage::default(), 0));
                let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
                let fault = Fault::new("reply.rejected", messages.join("; ")).classed(FaultClass::BadData);
                let entry = self.entry(at, ExplainedSubject::Reply, &fault);
                self.push_question(*call, ExplainedEvent { cost: model_cost(usage, millis), ..entry });
            }
            Event::ProgramReplied { step, stop: ProgramStop::Fault { fault }, .. } => {
                let fault = Fault::new(&fault.code, &fault.message).classed(FaultClass::BadData);
                let entry = self.entry(at, ExplainedSubject::Program, &fault);
                let (step_number, scene_name) = (Some(*step), self.scene(*step));
                self.of_subject.insert(Subject::Program { step: *step }, self.entries.len());
                self.entries.push(ExplainedEvent {
                    step_number,
                    scene_name,
                    then: ExplainedResult::GivenUp,
                    ..entry
                });
            }
            Event::PlanningFailed { error, .. } => {
                let entry = self.entry(at, ExplainedSubject::Plan, error);
                self.entries.push(ExplainedEvent { then: ExplainedResult::GivenUp, ..entry });
            }
            _ => {}
        }
    }

    fn completed(&mut self, at: Timestamp, call: u32, outcome: &Outcome, millis: u64) {
        let failed = is_unexpected(outcome);
        if let Some(entry) =
            self.call_entry(call).filter(|entry| entry.chosen.as_deref() == Some(PolicyAction::Retry.name()))
        {
            let failed_again = failed || !matches!(outcome, Outcome::Ok { .. });
            entry.then = if failed_again { ExplainedResult::FailedAgain } else { ExplainedResult::Succeeded };
        }
        if let Some(entry) = self.replaced.get(&call).and_then(|index| self.entries.get_mut(*index)) {
            entry.then = match outcome {
                Outcome::Ok { .. } => ExplainedResult::Replaced,
                Outcome::Refused { error } if error.code == UNCONFIRMED => ExplainedResult::PutToUser,
                _ => ExplainedResult::FailedAgain,
            };
        }
        let Some(fault) = outcome.fault().filter(|_| failed) else { return };
        let mut entry = self.entry(at, ExplainedSubject::Call, fault);
        self.describe(&mut entry, call);
        entry.say = outcome.user_text(self.state.language());
        entry.attempt = self.attempts.get(&call).copied();
        entry.cost.took_ms = millis;
        entry.then = match outcome {
            Outcome::Unknown { .. } => ExplainedResult::PutToPerson,
            _ => ExplainedResult::GivenUp,
        };
        self.of_call.insert(call, self.entries.len());
        self.entries.push(entry);
    }

    /// Predefined logic decided about the last failed attempt of the call.
    fn decided(&mut self, call: u32, weighed: &[WeighedAction], chosen: PolicyChoice) {
        let options = self.options(call, weighed, chosen.action());
        let Some(entry) = self.call_entry(call) else { return };
        entry.options = options;
        entry.chosen = Some(chosen.action().name().to_owned());
        entry.decided_by = ExplainedDecider::Policy;
        entry.then = match chosen {
            PolicyChoice::Retry { .. } | PolicyChoice::Alternative { .. } | PolicyChoice::Cached { .. } => {
                ExplainedResult::Pending
            }
            PolicyChoice::Skip => ExplainedResult::LeftOut,
            PolicyChoice::Fail | PolicyChoice::Consult { .. } => entry.then,
        };
    }

    /// All actions that there are: those that were considered, then the others.
    fn options(&self, call: u32, weighed: &[WeighedAction], chosen: PolicyAction) -> Vec<ExplainedOption> {
        let option = |action: PolicyAction, allowed, why: String| ExplainedOption {
            action: action.name().to_owned(),
            allowed,
            why,
        };
        let considered = weighed.iter().map(|weighed| match weighed.refused {
            None => option(weighed.action, true, "chosen".to_owned()),
            Some(refused) => option(weighed.action, false, refused.reason().to_owned()),
        });
        let declared = self.state.calls.get(&call).and_then(|call| call.requested.policies.as_deref());
        let is_declared = |action: PolicyAction| {
            let policies = declared.into_iter().flat_map(|declared| declared.by_class.values());
            policies.flat_map(|policy| policy.actions.iter().flatten()).any(|declared| *declared == action)
        };
        // Whether a model is consulted is listed beside these.
        let others = PolicyAction::VARIANTS
            .iter()
            .filter(|action| **action != PolicyAction::Consult)
            .filter(|action| !weighed.iter().any(|weighed| weighed.action == **action))
            .map(|action| match *action {
                PolicyAction::Fail => {
                    option(*action, true, format!("not needed: {} was possible", chosen.name()))
                }
                action if is_declared(action) => {
                    option(action, false, "not considered: another action came first".to_owned())
                }
                action => option(action, false, "not declared for this kind of failure".to_owned()),
            });
        considered.chain(others).collect()
    }

    fn put_to_person(&mut self, at: Timestamp, call: u32) {
        if let Some(entry) = self.call_entry(call) {
            entry.then = ExplainedResult::PutToPerson;
        }
        // The failed attempt says why; in a run that crashed, there is none.
        let fault = Fault::new("tool.interrupted", "the write was in progress when its process ended");
        let mut entry = match self.call_entry(call).map(|entry| entry.clone()) {
            Some(failed) => {
                ExplainedEvent { at, options: Vec::new(), consultation: None, chosen: None, ..failed }
            }
            None => self.entry(at, ExplainedSubject::Outcome, &fault),
        };
        entry.about = ExplainedSubject::Outcome;
        entry.say = Outcome::Unknown { error: fault }.user_text(self.state.language());
        (entry.then, entry.cost) = (ExplainedResult::Pending, ExplainedCost::default());
        self.describe(&mut entry, call);
        entry.decided_by = ExplainedDecider::Person;
        let choices = [
            ("done", "a person found that it took effect"),
            ("not_done", "a person found that it did not take effect"),
            ("again", "a person orders another attempt"),
        ];
        entry.options = choices
            .map(|(action, why)| ExplainedOption {
                action: action.to_owned(),
                allowed: true,
                why: why.to_owned(),
            })
            .into();
        self.of_outcome.insert(call, self.entries.len());
        self.entries.push(entry);
    }

    /// The user was told that tools do not work at present.
    fn told(&mut self, at: Timestamp, step: u32, tools: &[ToolForecast]) {
        for told in tools {
            let (success, latency) = (told.success_percent, told.latency_ms);
            let message =
                format!("{success} % of its recent calls worked; they took {latency} ms on the average");
            let code = if told.open { "tool.breaker_open" } else { "tool.failing" };
            let fault = Fault::new(code, message).classed(FaultClass::Unavailable);
            let entry = self.entry(at, ExplainedSubject::Forecast, &fault);
            self.entries.push(ExplainedEvent {
                step_number: Some(step),
                scene_name: self.scene(step),
                tool: Some(told.tool.clone()),
                then: ExplainedResult::Told,
                ..entry
            });
        }
    }

    fn push_question(&mut self, question: u32, mut entry: ExplainedEvent) {
        if let Some((subject, _, _)) = self.questions.get(&question) {
            entry.step_number = subject.facts().step;
            entry.scene_name = entry.step_number.and_then(|step| self.scene(step));
            self.of_subject.insert(*subject, self.entries.len());
        }
        self.entries.push(entry);
    }

    fn end_wait(&mut self, call: u32, at: Timestamp) {
        let Some(since) = self.waits.remove(&call) else { return };
        if let Some(entry) = self.call_entry(call) {
            entry.cost.waited_ms = millis_between(since, at);
        }
    }

    /// Returns what the questions about a subject cost.
    pub(super) fn cost_of(&self, consultation: u32) -> (Usage, u64) {
        let (mut cost, mut took) = (Usage::default(), 0);
        for (_, usage, millis) in
            self.questions.values().filter(|question| question.0.consultation() == Some(consultation))
        {
            cost += *usage;
            took += millis;
        }
        (cost, took)
    }

    /// Another call has taken the place of a call, or its data was interpreted.
    fn adapted(&mut self, change: &Adaptation) {
        match change {
            Adaptation::Substituted { call, requested } => {
                if let Some(entry) = self.call_entry(*call) {
                    entry.replaced_by = Some(requested.tool.clone());
                    entry.then = ExplainedResult::Pending;
                }
                if let Some(index) = self.of_call.get(call) {
                    self.replaced.insert(requested.call, *index);
                }
            }
            Adaptation::Interpreted { call, found } => {
                if let Some(entry) = self.call_entry(*call) {
                    entry.then = match found {
                        Some(_) => ExplainedResult::Interpreted,
                        None => ExplainedResult::GivenUp,
                    };
                }
            }
            // The recorded decision about the failure says so.
            Adaptation::Recalled { .. } => {}
        }
    }

    pub(super) fn call_entry(&mut self, call: u32) -> Option<&mut ExplainedEvent> {
        self.of_call.get(&call).and_then(|index| self.entries.get_mut(*index))
    }

    fn describe(&self, entry: &mut ExplainedEvent, call: u32) {
        entry.call = Some(call);
        let Some(known) = self.state.calls.get(&call) else { return };
        entry.step_number = Some(known.step);
        entry.scene_name = Some(known.scene.clone());
        entry.tool = Some(known.requested.tool.clone());
        entry.arguments = Some(known.requested.arguments.clone());
    }

    pub(super) fn scene(&self, step: u32) -> Option<String> {
        self.state.steps.get(&step).map(|step| step.step.label().to_owned())
    }

    pub(super) fn entry(&self, at: Timestamp, about: ExplainedSubject, fault: &Fault) -> ExplainedEvent {
        ExplainedEvent {
            at,
            about,
            step_number: None,
            scene_name: None,
            tool: None,
            call: None,
            arguments: None,
            attempt: None,
            class: fault.class,
            code: fault.code.clone(),
            say: fault.user_text(self.state.language()),
            message: self.with_messages.then(|| fault.message.clone()),
            options: Vec::new(),
            consultation: None,
            chosen: None,
            replaced_by: None,
            decided_by: ExplainedDecider::Rules,
            by: None,
            then: ExplainedResult::Pending,
            cost: ExplainedCost::default(),
        }
    }
}

/// A call that a tool refused for a reason of its own has a result: the refusal.
fn is_unexpected(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Ok { .. } => false,
        Outcome::Refused { error } => error.class != FaultClass::Other,
        Outcome::Failed { .. } | Outcome::Unknown { .. } => true,
    }
}

fn model_cost(usage: Usage, took_ms: u64) -> ExplainedCost {
    ExplainedCost {
        took_ms,
        waited_ms: 0,
        llm_calls: usage.calls,
        cost_usd: usage.cost_nano_usd as f64 / 1e9,
    }
}

fn millis_between(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.duration_since(from).as_millis()).unwrap_or(0)
}

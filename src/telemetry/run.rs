//! Folds one run's events into metrics, spans and log lines. It holds what is in progress and what the
//! completeness of plans needs, and is dropped with the run's last event.
//!
//! A run that is resumed after its end (`run_reopened`) is not a new request: its next end records the
//! plans made since, but not the request, its duration or earlier plans again. Steps, tool calls, model
//! calls and costs are recorded as they occur, including repeated ones.

use std::collections::BTreeMap;

use jiff::Timestamp;
use tracing::Span;

use super::awaited::{Awaited, seconds, took};
use super::kpis::{self, CALL_OUTCOMES, Kpis, RUN_OUTCOMES, STEP_OUTCOMES};
use super::lines;
use super::names::Names;
use super::people::People;
use super::plans::{End, Ended, KIND_SCENE, NOT_MADE, Plan};
use crate::llm::Purpose;
use crate::plan::StepStatus;
use crate::run::{
    Attempt, Effect, Envelope, Event, Outcome, PlanCause, PlanMade, RequestedCall, RunStatus, Subject, Usage,
};

/// Indices on the axis of runs in flight.
const QUEUED: usize = 0;
const RUNNING: usize = 1;
/// Indices on the axis of call outcomes.
const OK: usize = 0;
const SKIPPED: usize = 4;
/// Indices on the axis of step outcomes.
const STEP_COMPLETED: usize = 0;
const STEP_CANCELLED: usize = 4;

/// The destination of metrics, if enabled, and their label names.
#[derive(Clone, Copy)]
pub(super) struct To<'a> {
    pub(super) names: &'a Names,
    pub(super) kpis: Option<&'a Kpis>,
}

/// The fold state of one run.
pub(super) struct Run {
    span: Span,
    queued: Option<Timestamp>,
    started: Option<Timestamp>,
    /// The index on the axis of runs in flight, while it is counted there.
    state: Option<usize>,
    plan_only: bool,
    resumed: bool,
    /// Whether it was resumed after its end, at which the request was counted.
    reopened: bool,
    /// Whether it has ended or waits for a person.
    rests: bool,
    /// When it began to wait for a person, if it does.
    waits: Option<Timestamp>,
    /// Nanoseconds spent waiting for people.
    waited: i128,
    /// Model calls in progress.
    asks: Vec<Ask>,
    calls: BTreeMap<u32, Call>,
    steps: BTreeMap<u32, Step>,
    plans: Vec<Plan>,
    awaited: Awaited,
    people: People,
    usage: Usage,
}

struct Ask {
    call: u32,
    purpose: Purpose,
    at: Timestamp,
    span: Span,
}

struct Call {
    step: u32,
    /// Index on the axis of tools.
    tool: usize,
    writes: bool,
    succeeded: bool,
    under_way: Option<(Timestamp, Span)>,
}

struct Step {
    scene: usize,
    expected: Vec<usize>,
    span: Option<Span>,
    started: Option<Timestamp>,
    succeeded: Vec<usize>,
    /// Index on the axis of step outcomes.
    outcome: Option<usize>,
}

impl Run {
    pub(super) fn new(first: &Envelope<Event>) -> Self {
        let span = match first.run {
            Some(run) => lines::run(run, &first.session, &first.tenant),
            None => Span::none(),
        };
        Self {
            span,
            queued: None,
            started: None,
            state: None,
            plan_only: false,
            resumed: false,
            reopened: false,
            rests: false,
            waits: None,
            waited: 0,
            asks: Vec::new(),
            calls: BTreeMap::new(),
            steps: BTreeMap::new(),
            plans: Vec::new(),
            awaited: Awaited::default(),
            people: People::default(),
            usage: Usage::default(),
        }
    }

    /// Stops tracking the run.
    pub(super) fn leave(&mut self, to: To<'_>) {
        self.move_to(None, to);
    }

    /// Marks the events so far as already recorded by an earlier process.
    pub(super) fn is_restored(&mut self) {
        self.state = None;
    }

    /// Whether no more events are expected for now: the run ended or waits for a person.
    pub(super) fn rests(&self) -> bool {
        self.rests
    }

    /// Ends the wait for a person, if there is one.
    fn goes_on(&mut self, at: Timestamp, to: To<'_>) {
        if let Some(since) = self.waits.take() {
            self.waited += at.as_nanosecond() - since.as_nanosecond();
            self.rests = false;
            self.move_to(Some(RUNNING), to);
        }
    }

    fn move_to(&mut self, state: Option<usize>, to: To<'_>) {
        if let Some(kpis) = to.kpis {
            if let Some(old) = self.state {
                kpis.in_flight.shift([old], -1);
            }
            if let Some(new) = state {
                kpis.in_flight.shift([new], 1);
            }
        }
        self.state = state;
    }

    pub(super) fn observe(&mut self, envelope: &Envelope<Event>, to: To<'_>) {
        let at = envelope.at;
        self.people.observe(&envelope.body, at, to.kpis);
        match &envelope.body {
            Event::RunQueued(queued) => {
                self.queued = Some(at);
                self.plan_only = queued.plan_only;
                self.move_to(Some(QUEUED), to);
                lines::queued(&self.span);
            }
            Event::RunStarted(_) => {
                self.started = Some(at);
                self.move_to(Some(RUNNING), to);
            }
            Event::RunResumed { epoch, .. } => {
                self.resumed = true;
                self.asks.clear();
                self.move_to(Some(RUNNING), to);
                lines::resumed(&self.span, *epoch);
            }
            Event::ModelAsked { call, subject, .. } => self.asked(*call, *subject, at),
            Event::ModelReplied { call, reply, usage, millis, attempts } => {
                self.replied(*call, at, *millis, *usage, attempts, Some(&reply.model), to);
            }
            Event::ModelFailed { call, error, usage, millis, attempts } => {
                if let Some(ask) = self.replied(*call, at, *millis, *usage, attempts, None, to) {
                    lines::model_failed(&ask.span, *call, ask.purpose.name(), *millis, &error.code);
                }
            }
            Event::ReplyRejected { call, problems } => lines::rejected(&self.span, *call, problems.len()),
            Event::PlanCreated(made) => self.planned(made, to),
            Event::Replanned(made) | Event::PlanEdited(made) => {
                // A person's edit resumes a waiting run; nothing else replans it while it waits.
                self.goes_on(at, to);
                if let Some(kpis) = to.kpis {
                    kpis.replans.inc([match made.cause {
                        PlanCause::Request => 0,
                        PlanCause::Continuation => 1,
                        PlanCause::Feedback => 2,
                        PlanCause::Edit => 3,
                    }]);
                }
                if let Some(last) = self.plans.last_mut() {
                    last.replanned = true;
                }
                self.planned(made, to);
            }
            Event::PlanningFailed { version, error } => {
                if let Some(kpis) = to.kpis {
                    kpis.plans.inc([KIND_SCENE, NOT_MADE]);
                }
                lines::not_planned(&self.span, *version, &error.code);
            }
            Event::StepStarted { step } => {
                if let Some(state) = self.steps.get_mut(step) {
                    state.started = Some(at);
                    state.span = Some(lines::step(&self.span, *step, to.names.scene_name(state.scene)));
                }
            }
            Event::SceneReplied { step, calls, .. } | Event::Prepared { step, calls } => {
                for call in calls {
                    self.requested(*step, call, to);
                }
            }
            Event::ToolStarted { call, attempt } => self.tool_started(*call, *attempt, at, to),
            Event::ToolCompleted { call, outcome, millis } => {
                self.tool_ended(*call, outcome, *millis, at, to);
            }
            Event::ToolSkipped { call, first } => self.tool_skipped(*call, *first, to),
            Event::StepCompleted { step, .. } => self.step_ended(*step, STEP_COMPLETED, at, to),
            Event::StepFailed { step, status, .. } => self.step_ended(*step, step_outcome(*status), at, to),
            Event::CancelRequested { deadline, .. } => {
                self.goes_on(at, to);
                lines::cancelling(&self.span, *deadline);
            }
            Event::Compensating { undoes, requested } => {
                let step = self.calls.get(undoes).map_or(0, |call| call.step);
                self.requested(step, requested, to);
            }
            // A waiting run is no longer tracked; a decision restores its tracker.
            Event::RunWaiting {} | Event::RunPutAside { .. } => {
                self.rests = true;
                self.waits = Some(at);
                self.move_to(None, to);
            }
            Event::RunReopened { .. } => {
                self.rests = false;
                self.reopened = true;
                self.resumed = false;
                self.plans.clear();
                self.waits = None;
                self.waited = 0;
                self.awaited = Awaited::default();
                self.queued = Some(at);
                self.started = Some(at);
                self.move_to(Some(RUNNING), to);
            }
            Event::Released { .. }
            | Event::ModificationAsked { .. }
            | Event::Decided { .. }
            | Event::ApprovalLapsed { .. } => self.goes_on(at, to),
            Event::ApprovalRequired { .. } | Event::PlanRefused { .. } => {}
            Event::RunCompleted { status } => self.ended(run_outcome(*status), None, at, to),
            Event::RunFailed { error } => self.ended(3, Some(error.code.clone()), at, to),
            Event::RunCancelled { .. } => self.ended(4, None, at, to),
            Event::Planning { .. } | Event::Continuation { .. } | Event::Answered { .. } => {}
        }
    }

    fn asked(&mut self, call: u32, subject: Subject, at: Timestamp) {
        let (purpose, step) = match subject {
            Subject::Plan { .. } => (Purpose::Plan, None),
            Subject::Scene { step } => (Purpose::Scene, Some(step)),
            Subject::Continuation { .. } => (Purpose::Continuation, None),
            Subject::Answer => (Purpose::Answer, None),
        };
        let span = lines::model(self.parent(step), call, purpose.name());
        self.asks.push(Ask { call, purpose, at, span });
    }

    fn parent(&self, step: Option<u32>) -> &Span {
        step.and_then(|step| self.steps.get(&step)?.span.as_ref()).unwrap_or(&self.span)
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of two events")]
    fn replied(
        &mut self,
        call: u32,
        at: Timestamp,
        millis: u64,
        usage: Usage,
        attempts: &[Attempt],
        replied: Option<&str>,
        to: To<'_>,
    ) -> Option<Ask> {
        self.usage += usage;
        let ask = self.asks.iter().position(|ask| ask.call == call).map(|i| self.asks.swap_remove(i));
        self.awaited.add(at, took(ask.as_ref().map(|ask| ask.at), at, millis));
        let purpose = ask.as_ref().map_or("", |ask| ask.purpose.name());
        if let Some(ask) = &ask
            && replied.is_some()
        {
            lines::model_ended(&ask.span, call, purpose, millis, usage);
        }
        spent(attempts, usage, replied.unwrap_or_default(), purpose, to);
        ask
    }

    fn planned(&mut self, made: &PlanMade, to: To<'_>) {
        for step in &made.plan.steps {
            let tool = |name: &String| to.names.tool(&step.scene_name, name);
            let state = Step {
                scene: to.names.scene(&step.scene_name),
                expected: step.expected_tools.iter().map(tool).collect(),
                span: None,
                started: None,
                succeeded: Vec::new(),
                outcome: None,
            };
            self.steps.insert(step.step_number, state);
        }
        let plan = Plan::of(made);
        lines::planned(&self.span, made.version, plan.kind(), plan.len());
        self.plans.push(plan);
    }

    fn requested(&mut self, step: u32, requested: &RequestedCall, to: To<'_>) {
        let scene = self.scene_of(step, to);
        let call = Call {
            step,
            tool: to.names.tool(scene, &requested.tool),
            writes: requested.effect == Effect::Write,
            succeeded: false,
            under_way: None,
        };
        self.calls.insert(requested.call, call);
    }

    fn scene_of<'a>(&self, step: u32, to: To<'a>) -> &'a str {
        self.steps.get(&step).map_or("", |step| to.names.scene_name(step.scene))
    }

    fn tool_started(&mut self, number: u32, attempt: u32, at: Timestamp, to: To<'_>) {
        let Some(call) = self.calls.get(&number) else { return };
        let (scene, tool) = (self.scene_of(call.step, to), to.names.tool_name(call.tool));
        let span = lines::tool(self.parent(Some(call.step)), number, scene, tool, attempt);
        if let Some(call) = self.calls.get_mut(&number) {
            call.under_way = Some((at, span));
        }
    }

    fn tool_ended(&mut self, number: u32, outcome: &Outcome, millis: u64, at: Timestamp, to: To<'_>) {
        let end = match outcome {
            Outcome::Ok { .. } => OK,
            Outcome::Refused { .. } => 1,
            Outcome::Failed { .. } => 2,
            Outcome::Unknown { .. } => 3,
        };
        let Some(call) = self.calls.get_mut(&number) else {
            // It was requested before this process tracked the run.
            if let Some(kpis) = to.kpis {
                kpis.calls.inc([to.names.tool("", ""), end]);
            }
            return;
        };
        let began = call.under_way.take();
        call.succeeded |= end == OK;
        let (tool, step, writes) = (call.tool, call.step, call.writes);
        let lasted = began.as_ref().map(|(began, _)| took(Some(*began), at, millis));
        if let Some(kpis) = to.kpis {
            kpis.calls.inc([tool, end]);
            if let Some(nanos) = lasted {
                kpis.call_seconds.observe([tool, end], seconds(nanos));
                if writes {
                    kpis.mutations.inc([tool, end]);
                }
            }
        }
        if let Some(nanos) = lasted {
            self.awaited.add(at, nanos);
        }
        if end == OK {
            self.succeeded(step, tool);
        }
        let (scene, name) = (self.scene_of(step, to), to.names.tool_name(tool));
        let span = began.as_ref().map_or_else(|| self.parent(Some(step)), |(_, span)| span);
        lines::tool_ended(span, scene, name, CALL_OUTCOMES[end], millis, writes);
    }

    fn tool_skipped(&mut self, number: u32, first: u32, to: To<'_>) {
        let shared = self.calls.get(&first).is_some_and(|call| call.succeeded);
        let (tool, step) = match self.calls.get(&number) {
            Some(call) => (call.tool, Some(call.step)),
            None => (to.names.tool("", ""), None),
        };
        if let Some(kpis) = to.kpis {
            kpis.calls.inc([tool, SKIPPED]);
        }
        if let Some(step) = step.filter(|_| shared) {
            self.succeeded(step, tool);
        }
    }

    fn succeeded(&mut self, step: u32, tool: usize) {
        if let Some(step) = self.steps.get_mut(&step)
            && !step.succeeded.contains(&tool)
        {
            step.succeeded.push(tool);
        }
    }

    fn step_ended(&mut self, number: u32, outcome: usize, at: Timestamp, to: To<'_>) {
        let Some(step) = self.steps.get_mut(&number) else {
            if let Some(kpis) = to.kpis {
                kpis.steps.inc([to.names.scene(""), outcome]);
            }
            return;
        };
        step.outcome = Some(outcome);
        let lasted = step.started.map(|began| seconds(at.as_nanosecond() - began.as_nanosecond()));
        if let Some(kpis) = to.kpis {
            kpis.steps.inc([step.scene, outcome]);
            if let Some(lasted) = lasted {
                kpis.step_seconds.observe([step.scene, outcome], lasted);
            }
        }
        let span = step.span.take();
        let span = span.as_ref().unwrap_or(&self.span);
        lines::step_ended(span, number, to.names.scene_name(step.scene), STEP_OUTCOMES[outcome], lasted);
    }

    fn ended(&mut self, outcome: usize, code: Option<String>, at: Timestamp, to: To<'_>) {
        let end = match RUN_OUTCOMES[outcome] {
            "cancelled" => End::Cancelled,
            "completed" if self.plan_only => End::Draft,
            _ => End::Ran,
        };
        if end != End::Draft {
            let open: Vec<u32> =
                self.steps.iter().filter(|(_, step)| step.outcome.is_none()).map(|(step, _)| *step).collect();
            for step in open {
                self.step_ended(step, STEP_CANCELLED, at, to);
            }
        }
        // The waits still in progress end with the run.
        let asks = self.asks.drain(..).map(|ask| ask.at);
        let calls = self.calls.values_mut().filter_map(|call| call.under_way.take()).map(|(at, _)| at);
        for began in asks.chain(calls) {
            self.awaited.add(at, at.as_nanosecond() - began.as_nanosecond());
        }
        let since = |began: Timestamp| at.as_nanosecond() - began.as_nanosecond();
        // A person's time is excluded: it has its own metric.
        let lasted = self.queued.map(since).map(|lasted| seconds(lasted - self.waited));
        let away = self.awaited.total() + self.waited;
        let overhead = self.started.map(|began| seconds(since(began) - away));
        if let Some(kpis) = to.kpis {
            if !self.reopened {
                kpis.requests.inc([outcome]);
                if let Some(lasted) = lasted {
                    kpis.request_seconds.observe([outcome], lasted);
                }
                if let Some(overhead) = overhead {
                    kpis.overhead_seconds.observe([], overhead);
                }
            }
            if self.resumed {
                kpis.recovered.inc([outcome]);
            }
            let ended = self.steps.iter().map(|(number, step)| (*number, step.end())).collect();
            for plan in &self.plans {
                plan.count(&ended, end, kpis);
            }
        }
        self.rests = true;
        self.move_to(None, to);
        let seconds = lasted.unwrap_or_default();
        let outcome = RUN_OUTCOMES[outcome];
        lines::run_ended(&self.span, &lines::End { outcome, code, seconds, overhead, usage: self.usage });
    }
}

impl Step {
    fn end(&self) -> Ended {
        let hit = self.expected.iter().any(|tool| self.succeeded.contains(tool));
        Ended {
            completed: self.outcome == Some(STEP_COMPLETED),
            as_expected: hit || self.expected.is_empty(),
        }
    }
}

/// Records the usage of model attempts. Events of older versions have no attempts: their usage then counts
/// for `model` and `purpose`.
pub(super) fn spent(attempts: &[Attempt], usage: Usage, model: &str, purpose: &str, to: To<'_>) {
    let Some(kpis) = to.kpis else { return };
    for attempt in attempts.iter().filter(|attempt| attempt.was_sent()) {
        let (model, purpose) = (to.names.model(&attempt.model), kpis::purpose(&attempt.purpose));
        let at = [model, purpose, kpis::attempt_outcome(&attempt.outcome)];
        kpis.llm_requests.inc(at);
        kpis.llm_seconds.observe(at, attempt.millis as f64 / 1e3);
        if let Some(first) = attempt.first_token_millis {
            kpis.llm_first_token.observe(at, first as f64 / 1e3);
        }
        count(kpis, model, purpose, attempt.usage);
    }
    if attempts.is_empty() && usage != Usage::default() {
        count(kpis, to.names.model(model), kpis::purpose(purpose), usage);
    }
}

fn count(kpis: &Kpis, model: usize, purpose: usize, usage: Usage) {
    let cached = usage.cached_input_tokens.min(usage.input_tokens);
    for (kind, tokens) in [usage.input_tokens - cached, cached, usage.output_tokens].into_iter().enumerate() {
        kpis.llm_tokens.add([model, purpose, kind], tokens);
    }
    kpis.llm_cost.add([model, purpose], usage.cost_nano_usd);
}

fn step_outcome(status: StepStatus) -> usize {
    match status {
        StepStatus::Completed => STEP_COMPLETED,
        StepStatus::NeedsInput => 2,
        StepStatus::Blocked => 3,
        StepStatus::Cancelled => STEP_CANCELLED,
        StepStatus::Failed | StepStatus::Pending | StepStatus::Running => 1,
    }
}

fn run_outcome(status: RunStatus) -> usize {
    match status {
        RunStatus::Partial => 1,
        RunStatus::NeedsInput => 2,
        RunStatus::Failed => 3,
        RunStatus::Cancelled => 4,
        RunStatus::Completed | RunStatus::Queued | RunStatus::Running | RunStatus::Waiting => 0,
    }
}

//! Folds one run's events into metrics, spans and log lines. It holds the work in progress and the data for the
//! completeness of plans, and is dropped with the run's last event.
//!
//! A run that is resumed after its end (`run_reopened`) is not a new request: its next end records the
//! plans made since, but not the request, its duration or earlier plans again. Steps, tool calls, model
//! calls and costs are recorded as they occur, including repeated ones.

mod calls;

use std::collections::BTreeMap;

use jiff::Timestamp;
use tracing::Span;

use self::calls::TrackedCall;
use super::approval_metrics::ApprovalTracker;
use super::labels::{
    ClosedLabel, InFlightState, PlanKind, PlanOutcome, RatingLabel, RunOutcome, StepOutcome,
};
use super::log_lines;
use super::model_usage::record_attempts;
use super::names::LabelNames;
use super::plan_metrics::{PlanEnd, StepEnd, TrackedPlan, scope_of};
use super::run_metrics::RunMetrics;
use super::wait_time::{WaitIntervals, duration_nanos, seconds};
use crate::llm::Purpose;
use crate::run::{Envelope, Event, PlanMade, PlanScore, ProgramStop, Subject, SubjectFacts, TenantId, Usage};

/// The destination of metrics, if enabled, and their label names.
#[derive(Clone, Copy)]
pub(super) struct MetricSink<'a> {
    pub(super) names: &'a LabelNames,
    pub(super) metrics: Option<&'a RunMetrics>,
}

/// The fold state of one run.
pub(super) struct RunTracker {
    span: Span,
    tenant: TenantId,
    queued: Option<Timestamp>,
    started: Option<Timestamp>,
    /// How it is counted among the runs in flight, if it is.
    state: Option<InFlightState>,
    plan_only: bool,
    resumed: bool,
    /// Whether it was resumed after its end, at which the request was counted.
    reopened: bool,
    /// Whether it has ended or waits for a person.
    idle: bool,
    /// When it began to wait for a person, if it does.
    waiting_since: Option<Timestamp>,
    /// Nanoseconds spent waiting for people.
    waited_nanos: i128,
    /// Model calls in progress.
    model_calls: Vec<TrackedAsk>,
    calls: BTreeMap<u32, TrackedCall>,
    steps: BTreeMap<u32, TrackedStep>,
    plans: Vec<TrackedPlan>,
    wait_intervals: WaitIntervals,
    approvals: ApprovalTracker,
    usage: Usage,
}

struct TrackedAsk {
    call: u32,
    purpose: Purpose,
    asked_at: Timestamp,
    span: Span,
}

struct TrackedStep {
    scene: usize,
    expected: Vec<usize>,
    span: Option<Span>,
    started: Option<Timestamp>,
    succeeded: Vec<usize>,
    outcome: Option<StepOutcome>,
    /// For the step of a flow's node: its index on the axis of nodes.
    node: Option<usize>,
}

impl RunTracker {
    pub(super) fn new(first: &Envelope<Event>) -> Self {
        let span = match first.run {
            Some(run) => log_lines::run(run, &first.session, &first.tenant),
            None => Span::none(),
        };
        Self {
            span,
            tenant: first.tenant.clone(),
            queued: None,
            started: None,
            state: None,
            plan_only: false,
            resumed: false,
            reopened: false,
            idle: false,
            waiting_since: None,
            waited_nanos: 0,
            model_calls: Vec::new(),
            calls: BTreeMap::new(),
            steps: BTreeMap::new(),
            plans: Vec::new(),
            wait_intervals: WaitIntervals::default(),
            approvals: ApprovalTracker::default(),
            usage: Usage::default(),
        }
    }

    pub(super) fn stop_tracking(&mut self, to: MetricSink<'_>) {
        self.set_state(None, to);
    }

    /// Counts a restored run as in flight, if it is.
    pub(super) fn count_in_flight(&mut self, to: MetricSink<'_>) {
        let state = self.state.take();
        self.set_state(state, to);
    }

    /// Returns whether no more events are expected for now: the run ended or waits for a person.
    pub(super) fn is_idle(&self) -> bool {
        self.idle
    }

    /// Ends the wait for a person, if there is one.
    fn resume(&mut self, at: Timestamp, to: MetricSink<'_>) {
        if let Some(since) = self.waiting_since.take() {
            self.waited_nanos += at.as_nanosecond() - since.as_nanosecond();
            self.idle = false;
            self.set_state(Some(InFlightState::Running), to);
        }
    }

    fn set_state(&mut self, state: Option<InFlightState>, to: MetricSink<'_>) {
        if let Some(metrics) = to.metrics {
            if let Some(old) = self.state {
                metrics.in_flight.adjust([old as usize], -1);
            }
            if let Some(new) = state {
                metrics.in_flight.adjust([new as usize], 1);
            }
        }
        self.state = state;
    }

    pub(super) fn observe(&mut self, envelope: &Envelope<Event>, to: MetricSink<'_>) {
        let (event, at) = (&envelope.body, envelope.at);
        self.approvals.observe(event, at, to.metrics);
        match event {
            Event::RunQueued(_)
            | Event::RunStarted(_)
            | Event::RunResumed { .. }
            | Event::CancelRequested { .. }
            | Event::RunWaiting {}
            | Event::RunPutAside { .. }
            | Event::RunReopened { .. }
            | Event::Released { .. }
            | Event::ModificationAsked { .. }
            | Event::Decided { .. }
            | Event::ListChangeAsked { .. }
            | Event::ApprovalLapsed { .. }
            | Event::RunCompleted { .. }
            | Event::RunFailed { .. }
            | Event::RunCancelled { .. } => self.observe_run(event, at, to),
            Event::ModelAsked { .. }
            | Event::ModelReplied { .. }
            | Event::ModelFailed { .. }
            | Event::ReplyRejected { .. } => self.observe_question(event, at, to),
            Event::PlanRecalled(_)
            | Event::PathRecalled { .. }
            | Event::PlanRated { .. }
            | Event::PlanCreated(_)
            | Event::Replanned(_)
            | Event::PlanEdited(_)
            | Event::PlanningFailed { .. } => self.observe_planning(event, at, to),
            Event::StepStarted { .. }
            | Event::FlowPlanned { .. }
            | Event::NodeStarted { .. }
            | Event::SceneReplied { .. }
            | Event::Prepared { .. }
            | Event::ProgramReplied { .. }
            | Event::StepCompleted { .. }
            | Event::StepFailed { .. } => self.observe_step(event, at, to),
            Event::ToolStarted { .. }
            | Event::ToolCompleted { .. }
            | Event::ToolSkipped { .. }
            | Event::Adapted { .. }
            | Event::Compensating { .. } => self.observe_call(event, at, to),
            Event::Unexpected { .. }
            | Event::Consultation { .. }
            | Event::BackedOff { .. }
            | Event::TimerFired { .. } => self.observe_failure(event, at, to),
            // Counted by no metric of its own.
            _ => {}
        }
    }

    /// Observes the stages of the run, and decisions of people about it.
    fn observe_run(&mut self, event: &Event, at: Timestamp, to: MetricSink<'_>) {
        match event {
            Event::RunQueued(queued) => {
                self.queued = Some(at);
                self.plan_only = queued.plan_only;
                self.set_state(Some(InFlightState::Queued), to);
                log_lines::queued(&self.span);
            }
            Event::RunStarted(_) => {
                self.started = Some(at);
                self.set_state(Some(InFlightState::Running), to);
            }
            Event::RunResumed { epoch, .. } => {
                self.resumed = true;
                self.model_calls.clear();
                self.set_state(Some(InFlightState::Running), to);
                log_lines::resumed(&self.span, *epoch);
            }
            Event::CancelRequested { deadline, .. } => {
                self.resume(at, to);
                log_lines::cancelling(&self.span, *deadline);
            }
            // A waiting run is no longer tracked; a decision restores its tracker.
            Event::RunWaiting {} | Event::RunPutAside { .. } => {
                self.idle = true;
                self.waiting_since = Some(at);
                self.set_state(None, to);
            }
            Event::RunReopened { .. } => {
                self.idle = false;
                self.reopened = true;
                self.resumed = false;
                self.plans.clear();
                self.waiting_since = None;
                self.waited_nanos = 0;
                self.wait_intervals = WaitIntervals::default();
                self.queued = Some(at);
                self.started = Some(at);
                self.set_state(Some(InFlightState::Running), to);
            }
            Event::Released { .. }
            | Event::ModificationAsked { .. }
            | Event::Decided { .. }
            | Event::ListChangeAsked { .. }
            | Event::ApprovalLapsed { .. } => self.resume(at, to),
            Event::RunCompleted { status } => self.run_ended((*status).into(), None, at, to),
            Event::RunFailed { error } => {
                self.run_ended(RunOutcome::Failed, Some(error.code.clone()), at, to)
            }
            Event::RunCancelled { .. } => self.run_ended(RunOutcome::Cancelled, None, at, to),
            _ => {}
        }
    }

    /// Observes a question to a model, its end, or the rejection of its reply.
    fn observe_question(&mut self, event: &Event, at: Timestamp, to: MetricSink<'_>) {
        match event {
            Event::ModelAsked { call, subject, .. } => self.model_asked(*call, *subject, at),
            Event::ModelReplied { call, reply, usage, millis, attempts } => {
                let ask = self.question_ended(*call, at, *millis, *usage);
                let purpose = ask.as_ref().map_or("", |ask| ask.purpose.name());
                if let Some(ask) = &ask {
                    log_lines::model_ended(&ask.span, *call, purpose, *millis, *usage);
                }
                record_attempts(attempts, *usage, (&self.tenant, &reply.model, purpose), to);
            }
            Event::ModelFailed { call, error, usage, millis, attempts } => {
                let ask = self.question_ended(*call, at, *millis, *usage);
                let purpose = ask.as_ref().map_or("", |ask| ask.purpose.name());
                record_attempts(attempts, *usage, (&self.tenant, "", purpose), to);
                if let Some(ask) = &ask {
                    let span = log_lines::enabled(&ask.span, &self.span);
                    log_lines::model_failed(span, *call, purpose, *millis, &error.code);
                }
            }
            Event::ReplyRejected { call, problems } => log_lines::rejected(&self.span, *call, problems.len()),
            _ => {}
        }
    }

    /// Observes the making of a plan or a path, or its rating.
    fn observe_planning(&mut self, event: &Event, at: Timestamp, to: MetricSink<'_>) {
        match event {
            Event::PlanRecalled(recall) => {
                if let Some(metrics) = to.metrics {
                    metrics.plans.reuse.inc([recall.outcome as usize]);
                }
            }
            Event::PathRecalled { recall, .. } => {
                if let Some(metrics) = to.metrics {
                    metrics.plans.path_reuse.inc([recall.outcome as usize]);
                }
            }
            Event::PlanRated { score, .. } => {
                if let Some(metrics) = to.metrics {
                    let score = if *score == PlanScore::Good { RatingLabel::Good } else { RatingLabel::Bad };
                    metrics.plans.ratings.inc([score as usize]);
                }
            }
            Event::PlanCreated(made) => self.planned(made, to),
            Event::Replanned(made) | Event::PlanEdited(made) => {
                // A person's edit resumes a waiting run; nothing else replans it while it waits.
                self.resume(at, to);
                if let Some(metrics) = to.metrics {
                    metrics.plans.replans.inc([made.cause as usize]);
                }
                if let Some(last) = self.plans.last_mut() {
                    last.replanned = true;
                }
                self.planned(made, to);
            }
            Event::PlanningFailed { version, error } => {
                if let Some(metrics) = to.metrics {
                    metrics.plans.made.inc([PlanKind::Scene as usize, PlanOutcome::NotMade as usize]);
                }
                log_lines::not_planned(&self.span, *version, &error.code);
            }
            _ => {}
        }
    }

    /// Observes a step or a node, and the calls that are requested in it.
    fn observe_step(&mut self, event: &Event, at: Timestamp, to: MetricSink<'_>) {
        match event {
            Event::StepStarted { step } => {
                if let Some(state) = self.steps.get_mut(step) {
                    state.started = Some(at);
                    state.span = Some(log_lines::step(&self.span, *step, to.names.scene_name(state.scene)));
                }
            }
            Event::FlowPlanned { step, maker, .. } => {
                if let (Some(metrics), Some(step)) = (to.metrics, self.steps.get(step)) {
                    metrics.steps.flow_paths.inc([step.scene, *maker as usize]);
                }
            }
            Event::NodeStarted { step, parent, node, scene, .. } => {
                self.node_started(*step, *parent, (scene, node), at, to);
            }
            Event::SceneReplied { step, calls, .. } | Event::Prepared { step, calls, .. } => {
                for call in calls {
                    self.tool_requested(*step, call, to);
                }
            }
            Event::ProgramReplied { step, stop: ProgramStop::Call { requested, .. }, .. } => {
                self.tool_requested(*step, requested, to);
            }
            Event::StepCompleted { step, .. } => self.step_ended(*step, StepOutcome::Completed, at, to),
            Event::StepFailed { step, status, .. } => self.step_ended(*step, (*status).into(), at, to),
            _ => {}
        }
    }

    fn model_asked(&mut self, call: u32, subject: Subject, at: Timestamp) {
        let SubjectFacts { purpose, step, .. } = subject.facts();
        let span = log_lines::model(self.parent(step), call, purpose.name());
        self.model_calls.push(TrackedAsk { call, purpose, asked_at: at, span });
    }

    fn parent(&self, step: Option<u32>) -> &Span {
        step.and_then(|step| self.steps.get(&step)?.span.as_ref()).unwrap_or(&self.span)
    }

    /// Counts what a question cost and how long it was waited for. Returns the question, if its beginning was seen.
    fn question_ended(&mut self, call: u32, at: Timestamp, millis: u64, usage: Usage) -> Option<TrackedAsk> {
        self.usage += usage;
        let ask =
            self.model_calls.iter().position(|ask| ask.call == call).map(|i| self.model_calls.swap_remove(i));
        self.wait_intervals.add(at, duration_nanos(ask.as_ref().map(|ask| ask.asked_at), at, millis));
        ask
    }

    fn planned(&mut self, made: &PlanMade, to: MetricSink<'_>) {
        for step in &made.plan.steps {
            let tool = |name: &String| to.names.tool_index(&step.scene_name, name);
            let state = TrackedStep {
                scene: to.names.scene_index(&step.scene_name),
                expected: step.expected_tools.iter().map(tool).collect(),
                span: None,
                started: None,
                succeeded: Vec::new(),
                outcome: None,
                node: None,
            };
            self.steps.insert(step.step_number, state);
        }
        let plan = TrackedPlan::of(made);
        log_lines::planned(&self.span, made.version, plan.kind.name(), plan.len());
        self.plans.push(plan);
    }

    fn node_started(
        &mut self,
        step: u32,
        parent: u32,
        (scene, node): (&str, &str),
        at: Timestamp,
        to: MetricSink<'_>,
    ) {
        let flow = self.scene_of(parent, to);
        let state = TrackedStep {
            scene: to.names.scene_index(scene),
            expected: Vec::new(),
            // The work of a node is part of the flow's step.
            span: Some(self.parent(Some(parent)).clone()),
            started: Some(at),
            succeeded: Vec::new(),
            outcome: None,
            node: Some(to.names.node_index(flow, node)),
        };
        self.steps.insert(step, state);
    }

    fn scene_of<'a>(&self, step: u32, to: MetricSink<'a>) -> &'a str {
        self.steps.get(&step).map_or("", |step| to.names.scene_name(step.scene))
    }

    fn step_ended(&mut self, number: u32, outcome: StepOutcome, at: Timestamp, to: MetricSink<'_>) {
        let Some(step) = self.steps.get_mut(&number) else {
            if let Some(metrics) = to.metrics {
                metrics.steps.ended.inc([to.names.scene_index(""), outcome as usize]);
            }
            return;
        };
        step.outcome = Some(outcome);
        if let Some(node) = step.node {
            step.span = None;
            if let Some(metrics) = to.metrics {
                metrics.steps.flow_nodes.inc([node, outcome as usize]);
            }
            return;
        }
        let lasted = step.started.map(|began| seconds(at.as_nanosecond() - began.as_nanosecond()));
        if let Some(metrics) = to.metrics {
            metrics.steps.ended.inc([step.scene, outcome as usize]);
            if let Some(lasted) = lasted {
                metrics.steps.seconds.observe([step.scene, outcome as usize], lasted);
            }
        }
        let span = step.span.take();
        let span = span.as_ref().unwrap_or(&self.span);
        log_lines::step_ended(span, number, to.names.scene_name(step.scene), outcome.name(), lasted);
    }

    fn run_ended(&mut self, outcome: RunOutcome, code: Option<String>, at: Timestamp, to: MetricSink<'_>) {
        let end = match outcome {
            RunOutcome::Cancelled => PlanEnd::Cancelled,
            RunOutcome::Completed if self.plan_only => PlanEnd::Draft,
            RunOutcome::NeedsInput => PlanEnd::NeedsInput,
            _ => PlanEnd::Ran,
        };
        if end != PlanEnd::Draft {
            let open: Vec<u32> =
                self.steps.iter().filter(|(_, step)| step.outcome.is_none()).map(|(step, _)| *step).collect();
            for step in open {
                self.step_ended(step, StepOutcome::Cancelled, at, to);
            }
        }
        // The waits still in progress end with the run.
        let asks = self.model_calls.drain(..).map(|ask| ask.asked_at);
        let calls = self.calls.values_mut().flat_map(|call| {
            [call.under_way.take().map(|(at, _)| at), call.backed_off.take()].into_iter().flatten()
        });
        for began in asks.chain(calls) {
            self.wait_intervals.add(at, at.as_nanosecond() - began.as_nanosecond());
        }
        let since = |began: Timestamp| at.as_nanosecond() - began.as_nanosecond();
        // A person's time is excluded: it has its own metric.
        let lasted = self.queued.map(since).map(|lasted| seconds(lasted - self.waited_nanos));
        let away = self.wait_intervals.total() + self.waited_nanos;
        let overhead = self.started.map(|began| seconds(since(began) - away));
        if let Some(metrics) = to.metrics {
            if !self.reopened {
                metrics.requests.ended.inc([outcome as usize]);
                metrics.tenants.count_request(&self.tenant, outcome);
                if let Some(scope) = scope_of(&self.plans) {
                    metrics.requests.scopes.inc([scope as usize]);
                }
                if let Some(lasted) = lasted {
                    metrics.requests.seconds.observe([outcome as usize], lasted);
                }
                if let Some(overhead) = overhead {
                    metrics.requests.overhead_seconds.observe([], overhead);
                }
            }
            if self.resumed {
                metrics.requests.recovered.inc([outcome as usize]);
            }
            let ended = self.steps.iter().map(|(number, step)| (*number, step.end())).collect();
            for plan in &self.plans {
                plan.record(&ended, end, metrics);
            }
        }
        self.idle = true;
        self.set_state(None, to);
        let seconds = lasted.unwrap_or_default();
        let outcome = outcome.name();
        log_lines::run_ended(
            &self.span,
            &log_lines::RunEndLine { outcome, code, seconds, overhead, usage: self.usage },
        );
    }
}

impl TrackedStep {
    fn end(&self) -> StepEnd {
        let hit = self.expected.iter().any(|tool| self.succeeded.contains(tool));
        StepEnd { outcome: self.outcome, as_expected: hit || self.expected.is_empty() }
    }
}

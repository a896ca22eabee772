//! The fold over a run's events that makes its spans.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::content;
use super::model_calls::OpenModelCall;
use super::options::TraceOptions;
use super::span::{AttributeValue, FinishedSpan, OpenSpan, SpanAttribute};
use crate::plan::{StepKind, StepStatus};
use crate::run::{
    Adaptation, ApprovalSubject, Effect, Envelope, Event, Outcome, PlanMade, ProgramStop, RequestedCall,
    RequiredApproval, RunQueued, RunStatus, Subject, UnexpectedSubject, Usage, Verdict,
};
use crate::trace_context::{RunTrace, SpanId, SpanKey};

/// The code of spans that ended without a record, with the process that they were in.
pub(super) const INTERRUPTED: &str = "interrupted";

/// The spans of one run. Each is finished once, whichever processes fold the run's events.
pub struct TraceFold {
    pub(super) options: TraceOptions,
    pub(super) trace: RunTrace,
    pub(super) run: RunLabels,
    /// The span of the request; absent once the run has ended.
    root: Option<OpenSpan>,
    /// Its id, which is the ancestor of all others.
    root_id: SpanId,
    usage: Usage,
    /// The plan that is being made, with its version.
    plan: Option<(u32, OpenSpan)>,
    /// The steps of all plans: their scenes and kinds.
    planned: BTreeMap<u32, (String, StepKind)>,
    steps: BTreeMap<u32, OpenSpan>,
    pub(super) model_calls: BTreeMap<u32, OpenModelCall>,
    calls: BTreeMap<u32, TracedCall>,
    tools: BTreeMap<u32, OpenSpan>,
    waits: BTreeMap<u32, (ApprovalSubject, OpenSpan)>,
    /// The wait of a run without an open decision: its plan is held, or (true) it is quarantined.
    pause: Option<(bool, OpenSpan)>,
    check: Option<OpenSpan>,
    answer: Option<OpenSpan>,
    finished: Vec<FinishedSpan>,
}

/// The attributes of every span of a run.
pub(super) struct RunLabels {
    id: String,
    pub(super) session: String,
    tenant: String,
}

struct TracedCall {
    step: u32,
    scene: String,
    tool: String,
    provider_id: String,
    effect: Effect,
    undoes: Option<u32>,
    arguments: Option<AttributeValue>,
}

impl TraceFold {
    /// The spans of a run by its first event; `None` if the run has none.
    pub fn new(options: &TraceOptions, first: &Envelope<Event>) -> Option<Self> {
        let Event::RunQueued(queued) = &first.body else { return None };
        let run = first.run?;
        let trace = RunTrace::new(run.0, queued.trace_parent, options.sampler);
        if !trace.is_sampled {
            return None;
        }
        let labels = RunLabels {
            id: run.to_string(),
            session: first.session.to_string(),
            tenant: first.tenant.to_string(),
        };
        let mut fold = Self {
            options: options.clone(),
            trace,
            run: labels,
            root: None,
            root_id: trace.span(SpanKey::Event { seq: first.seq, part: 0 }),
            usage: Usage::default(),
            plan: None,
            planned: BTreeMap::new(),
            steps: BTreeMap::new(),
            model_calls: BTreeMap::new(),
            calls: BTreeMap::new(),
            tools: BTreeMap::new(),
            waits: BTreeMap::new(),
            pause: None,
            check: None,
            answer: None,
            finished: Vec::new(),
        };
        let mut root = fold.root_span(first.seq, trace.parent, first.at);
        root.set_remote_parent();
        fold.say_request(&mut root, queued);
        fold.root = Some(root);
        Some(fold)
    }

    /// Folds an event of the run, which has to follow the last one; returns the spans that it ended.
    pub fn observe(&mut self, envelope: &Envelope<Event>) -> Vec<FinishedSpan> {
        let (at, seq) = (envelope.at, envelope.seq);
        match &envelope.body {
            Event::RunStarted(_) => self.note_root(at, "run_started", Vec::new()),
            Event::RunResumed { epoch, .. } => self.resumed(*epoch, at),
            Event::RunReopened { .. } => self.reopened(seq, at),
            Event::Planning { version, .. } | Event::ModificationAsked { version, .. } => {
                self.end_hold(at);
                self.end_waits(at, "changed", |about| matches!(about, ApprovalSubject::Plan { .. }));
                self.begin_plan(*version, seq, at);
            }
            Event::PlanCreated(made) | Event::Replanned(made) => self.planned(made, at),
            Event::PlanEdited(made) => {
                self.end_hold(at);
                self.end_waits(at, "changed", |about| matches!(about, ApprovalSubject::Plan { .. }));
                self.planned(made, at);
            }
            Event::PlanningFailed { version, error } => {
                self.end_plan(*version, at, |span| span.fail(&error.code))
            }
            Event::ModelAsked { call, subject, attempt, .. } => {
                self.model_asked(*call, *subject, *attempt, seq, at);
            }
            Event::ModelReplied { call, reply, usage, attempts, .. } => {
                self.usage += *usage;
                self.model_ended(*call, Ok(reply), *usage, attempts, at);
            }
            Event::ModelFailed { call, error, usage, attempts, .. } => {
                self.usage += *usage;
                self.model_ended(*call, Err(error), *usage, attempts, at);
            }
            Event::StepStarted { step } => self.step_started(*step, seq, at),
            Event::NodeStarted { step, parent, node, scene, .. } => {
                self.node_started(*step, *parent, (node, scene), seq, at);
            }
            Event::StepCompleted { step, .. } => self.end_step(*step, at, "completed", None),
            Event::StepFailed { step, status, error } => {
                let code = (*status == StepStatus::Failed).then_some(error.code.as_str());
                self.end_step(*step, at, status.name(), code);
            }
            Event::RunCompleted { status } => self.ended((*status).into(), None, at),
            Event::RunFailed { error } => self.ended(RunStatus::Failed.into(), Some(&error.code), at),
            Event::RunCancelled { .. } => self.ended(RunStatus::Cancelled.into(), None, at),
            event => self.observe_work(event, seq, at),
        }
        std::mem::take(&mut self.finished)
    }

    /// Folds the events of steps.
    fn observe_work(&mut self, event: &Event, seq: u64, at: Timestamp) {
        match event {
            Event::SceneReplied { step, calls, .. } | Event::Prepared { step, calls, .. } => {
                calls.iter().for_each(|call| self.requested(*step, call));
            }
            Event::ProgramReplied { step, stop: ProgramStop::Call { requested, .. }, .. } => {
                self.requested(*step, requested);
            }
            Event::Adapted { change: Adaptation::Substituted { call, requested } } => {
                let step = self.calls.get(call).map_or(0, |call| call.step);
                self.requested(step, requested);
            }
            Event::Compensating { undoes, requested } => {
                let step = self.calls.get(undoes).map_or(0, |call| call.step);
                self.requested(step, requested);
                if let Some(call) = self.calls.get_mut(&requested.call) {
                    call.undoes = Some(*undoes);
                }
            }
            Event::ToolStarted { call, attempt } => self.tool_started(*call, *attempt, at),
            Event::ToolCompleted { call, outcome, .. } => self.tool_ended(*call, outcome, at),
            Event::ToolSkipped { call, first } => {
                let first = AttributeValue::count((*first).into());
                self.note_call(*call, at, "tool_skipped", vec![("proscenium.first_call", first)]);
            }
            Event::ReplyRejected { call, problems } => {
                let call = ("proscenium.model_call", AttributeValue::count((*call).into()));
                let problems = ("proscenium.problems", AttributeValue::count(problems.len() as u64));
                self.note_root(at, "reply_rejected", vec![call, problems]);
            }
            Event::Unexpected {
                subject: UnexpectedSubject::Call { call, .. }, class, code, chosen, ..
            } => {
                let about = vec![
                    ("error.type", AttributeValue::word(code)),
                    ("proscenium.class", AttributeValue::word(class.name())),
                    ("proscenium.chosen", AttributeValue::word(chosen.action().name())),
                ];
                self.note_call(*call, at, "unexpected", about);
            }
            Event::BackedOff { call, delay_ms, .. } => {
                let delay = vec![("proscenium.delay_ms", AttributeValue::count(*delay_ms))];
                self.note_call(*call, at, "backed_off", delay);
            }
            event => self.observe_people(event, seq, at),
        }
    }

    /// Folds questions to people and their decisions, the check and the answer.
    fn observe_people(&mut self, event: &Event, seq: u64, at: Timestamp) {
        match event {
            Event::ApprovalRequired { approval, matter, needed } => {
                self.begin_wait(*approval, *matter, needed, seq, at);
            }
            Event::Decided { approval, decision, .. } => {
                self.end_hold(at);
                self.end_wait(*approval, at, decision.name());
            }
            Event::ApprovalLapsed { approval, .. } => self.end_wait(*approval, at, "lapsed"),
            Event::RunWaiting {} if self.waits.is_empty() => self.begin_pause("held", None, seq, at),
            Event::RunPutAside { error, .. } => self.begin_pause("quarantined", Some(&error.code), seq, at),
            Event::Released { .. } => self.end_pause(at),
            Event::CancelRequested { deadline, .. } => {
                self.end_pause(at);
                let is_open = |about: &ApprovalSubject| !matches!(about, ApprovalSubject::Outcome { .. });
                self.end_waits(at, "cancelled", is_open);
                let deadline = vec![("proscenium.deadline", AttributeValue::Flag(*deadline))];
                self.note_root(at, "cancel_requested", deadline);
            }
            Event::Continuation { round, verdict, degraded } => {
                self.checked(*round, verdict, *degraded, seq, at);
            }
            Event::Answered { text, degraded, .. } => self.answered(text, *degraded, seq, at),
            // The spans of their subjects cover these events.
            _ => {}
        }
    }

    /// A span that is part of the request, or of another span.
    pub(super) fn span(&self, key: SpanKey, parent: Option<SpanId>, name: String, at: Timestamp) -> OpenSpan {
        let parent = parent.unwrap_or(self.root_id);
        self.labelled(OpenSpan::new(&self.trace, key, Some(parent), name, at))
    }

    fn labelled(&self, mut span: OpenSpan) -> OpenSpan {
        span.set_word("proscenium.run.id", &self.run.id);
        span.set_word("proscenium.tenant", &self.run.tenant);
        span.set_word("gen_ai.conversation.id", &self.run.session);
        span
    }

    pub(super) fn finish(&mut self, span: OpenSpan, at: Timestamp) {
        self.finished.push(span.end(at));
    }

    fn root_span(&self, seq: u64, parent: Option<SpanId>, at: Timestamp) -> OpenSpan {
        let (key, name) =
            (SpanKey::Event { seq, part: 0 }, format!("invoke_workflow {}", self.options.service));
        let mut root = self.labelled(OpenSpan::new(&self.trace, key, parent, name, at));
        root.set_word("gen_ai.operation.name", "invoke_workflow");
        root.set_word("gen_ai.workflow.name", &self.options.service);
        root
    }

    fn say_request(&self, root: &mut OpenSpan, queued: &RunQueued) {
        if queued.plan_only {
            root.set("proscenium.plan_only", AttributeValue::Flag(true));
        }
        if queued.options.dry_run {
            root.set("proscenium.dry_run", AttributeValue::Flag(true));
        }
        if self.options.content {
            root.set("gen_ai.input.messages", content::message("user", &queued.request));
        }
    }

    fn note_root(&mut self, at: Timestamp, name: &'static str, about: Vec<SpanAttribute>) {
        if let Some(root) = &mut self.root {
            root.note(at, name, about);
        }
    }

    /// Adds a note about a call to the span of its step.
    fn note_call(&mut self, call: u32, at: Timestamp, name: &'static str, mut about: Vec<SpanAttribute>) {
        about.push(("proscenium.call", AttributeValue::count(call.into())));
        let traced = self.calls.get(&call);
        if let Some(traced) = traced {
            about.push(("gen_ai.tool.name", AttributeValue::word(&traced.tool)));
        }
        match traced.and_then(|call| self.steps.get_mut(&call.step)) {
            Some(step) => step.note(at, name, about),
            None => self.note_root(at, name, about),
        }
    }

    /// Another process continues the run: the work in progress in the earlier process has ended.
    fn resumed(&mut self, epoch: u32, at: Timestamp) {
        self.end_interrupted(at);
        self.end_pause(at);
        self.note_root(at, "run_resumed", vec![("proscenium.epoch", AttributeValue::count(epoch.into()))]);
    }

    fn end_interrupted(&mut self, at: Timestamp) {
        for (_, mut call) in std::mem::take(&mut self.model_calls) {
            call.span.fail(INTERRUPTED);
            self.finish(call.span, at);
        }
        for (_, mut tool) in std::mem::take(&mut self.tools) {
            tool.fail(INTERRUPTED);
            self.finish(tool, at);
        }
    }

    /// The run continues after its end: this is a separate span, as part of the first one.
    fn reopened(&mut self, seq: u64, at: Timestamp) {
        let mut root = self.root_span(seq, Some(self.root_id), at);
        root.set("proscenium.reopened", AttributeValue::Flag(true));
        self.root_id = root.id();
        self.usage = Usage::default();
        self.root = Some(root);
    }

    fn begin_plan(&mut self, version: u32, seq: u64, at: Timestamp) {
        if self.plan.as_ref().is_some_and(|(known, _)| *known == version) {
            return;
        }
        if let Some((_, earlier)) = self.plan.take() {
            self.finish(earlier, at);
        }
        let mut span = self.span(SpanKey::Event { seq, part: 1 }, None, "plan".to_owned(), at);
        span.set_word("gen_ai.operation.name", "plan");
        span.set("proscenium.plan.version", AttributeValue::count(version.into()));
        self.plan = Some((version, span));
    }

    pub(super) fn end_plan(&mut self, version: u32, at: Timestamp, say: impl FnOnce(&mut OpenSpan)) {
        if let Some((_, mut span)) = self.plan.take_if(|(known, _)| *known == version) {
            say(&mut span);
            self.finish(span, at);
        }
    }

    fn planned(&mut self, made: &PlanMade, at: Timestamp) {
        for step in &made.plan.steps {
            self.planned.insert(step.step_number, (step.scene_name.clone(), step.kind));
        }
        self.end_plan(made.version, at, |span| {
            span.set_word("proscenium.plan.maker", made.maker.into());
            span.set_word("proscenium.plan.cause", made.cause.into());
            span.set("proscenium.plan.steps", AttributeValue::count(made.plan.steps.len() as u64));
        });
    }

    fn step_started(&mut self, step: u32, seq: u64, at: Timestamp) {
        let (scene, kind) = self.planned.get(&step).cloned().unwrap_or_default();
        let mut span = self.span(SpanKey::Event { seq, part: 2 }, None, format!("invoke_agent {scene}"), at);
        span.set_word("gen_ai.operation.name", "invoke_agent");
        span.set_word("gen_ai.agent.name", &scene);
        span.set("proscenium.step", AttributeValue::count(step.into()));
        span.set_word("proscenium.step.kind", kind.into());
        self.steps.insert(step, span);
    }

    fn node_started(&mut self, step: u32, parent: u32, (node, scene): (&str, &str), seq: u64, at: Timestamp) {
        let flow = self.steps.get(&parent).map(OpenSpan::id);
        let mut span = self.span(SpanKey::Event { seq, part: 3 }, flow, format!("node {node}"), at);
        span.set_word("gen_ai.agent.name", scene);
        span.set_word("proscenium.node", node);
        span.set("proscenium.step", AttributeValue::count(step.into()));
        span.set_word("proscenium.step.kind", StepKind::Node.into());
        self.planned.insert(step, (scene.to_owned(), StepKind::Node));
        self.steps.insert(step, span);
    }

    fn end_step(&mut self, step: u32, at: Timestamp, outcome: &str, code: Option<&str>) {
        let Some(mut span) = self.steps.remove(&step) else { return };
        span.set_word("proscenium.outcome", outcome);
        if let Some(code) = code {
            span.fail(code);
        }
        self.finish(span, at);
    }

    fn model_asked(&mut self, call: u32, subject: Subject, attempt: u32, seq: u64, at: Timestamp) {
        if let Subject::Plan { version } = subject {
            self.begin_plan(version, seq, at);
        }
        let key = SpanKey::Event { seq, part: 4 };
        if let (Subject::Continuation { .. }, None) = (subject, &self.check) {
            self.check = Some(self.span(key, None, "check".to_owned(), at));
        }
        if let (Subject::Answer, None) = (subject, &self.answer) {
            self.answer = Some(self.span(key, None, "answer".to_owned(), at));
        }
        let parent = match subject {
            Subject::Plan { .. } | Subject::Ranking => self.plan.as_ref().map(|(_, span)| span.id()),
            Subject::Continuation { .. } => self.check.as_ref().map(OpenSpan::id),
            Subject::Answer => self.answer.as_ref().map(OpenSpan::id),
            _ => subject.facts().step.and_then(|step| self.steps.get(&step)).map(OpenSpan::id),
        };
        let asked = OpenModelCall::begin(self, call, subject, attempt, parent, at);
        self.model_calls.insert(call, asked);
    }

    fn requested(&mut self, step: u32, call: &RequestedCall) {
        let scene = call.scene.clone().or_else(|| Some(self.planned.get(&step)?.0.clone()));
        let traced = TracedCall {
            step,
            scene: scene.unwrap_or_default(),
            // The name that a model invents for a missing tool is the model's text.
            tool: if call.problem.is_some() { "other".to_owned() } else { call.tool.clone() },
            provider_id: call.provider_id.clone(),
            effect: call.effect,
            undoes: None,
            arguments: self.options.content.then(|| content::value(&call.arguments)),
        };
        self.calls.insert(call.call, traced);
    }

    fn tool_started(&mut self, call: u32, attempt: u32, at: Timestamp) {
        let Some(traced) = self.calls.get(&call) else { return };
        let step = self.steps.get(&traced.step).map(OpenSpan::id);
        let name = format!("execute_tool {}", traced.tool);
        let mut span = self.span(SpanKey::ToolCall { call, attempt }, step, name, at);
        span.set_word("gen_ai.operation.name", "execute_tool");
        span.set_word("gen_ai.tool.name", &traced.tool);
        span.set_word("gen_ai.tool.type", "function");
        span.set_word("gen_ai.tool.call.id", &traced.provider_id);
        span.set_word("gen_ai.agent.name", &traced.scene);
        span.set("proscenium.step", AttributeValue::count(traced.step.into()));
        span.set("proscenium.call", AttributeValue::count(call.into()));
        span.set("proscenium.attempt", AttributeValue::count(attempt.into()));
        let effect = if traced.effect == Effect::Write { "write" } else { "read" };
        span.set_word("proscenium.effect", effect);
        if let Some(undone) = traced.undoes {
            span.set("proscenium.undoes", AttributeValue::count(undone.into()));
        }
        if let Some(arguments) = &traced.arguments {
            span.set("gen_ai.tool.call.arguments", arguments.clone());
        }
        self.tools.insert(call, span);
    }

    fn tool_ended(&mut self, call: u32, outcome: &Outcome, at: Timestamp) {
        let (name, code) = match outcome {
            Outcome::Ok { .. } => ("ok", None),
            Outcome::Refused { error } => ("refused", Some(error.code.as_str())),
            Outcome::Failed { error } => ("failed", Some(error.code.as_str())),
            Outcome::Unknown { error } => ("unknown", Some(error.code.as_str())),
        };
        let Some(mut span) = self.tools.remove(&call) else {
            // It ended without having been made.
            let code = code.map(|code| ("error.type", AttributeValue::word(code)));
            let about =
                code.into_iter().chain([("proscenium.outcome", AttributeValue::word(name))]).collect();
            return self.note_call(call, at, "tool_not_called", about);
        };
        span.set_word("proscenium.outcome", name);
        if let Some(code) = code {
            span.fail(code);
        }
        if let (Outcome::Ok { result, .. }, true) = (outcome, self.options.content) {
            span.set("gen_ai.tool.call.result", content::value(result));
        }
        self.finish(span, at);
    }

    fn begin_wait(
        &mut self,
        approval: u32,
        about: ApprovalSubject,
        needed: &RequiredApproval,
        seq: u64,
        at: Timestamp,
    ) {
        let (name, call) = match about {
            ApprovalSubject::Plan { .. } => ("plan", None),
            ApprovalSubject::Call { call } => ("call", Some(call)),
            ApprovalSubject::Outcome { call } => ("outcome", Some(call)),
        };
        let traced = call.and_then(|call| self.calls.get(&call));
        let step = traced.and_then(|call| self.steps.get(&call.step)).map(OpenSpan::id);
        let mut span = self.span(SpanKey::Event { seq, part: 5 }, step, "wait_for_person".to_owned(), at);
        span.set_word("proscenium.wait", name);
        span.set("proscenium.approval", AttributeValue::count(approval.into()));
        span.set("proscenium.by_user", AttributeValue::Flag(needed.by_user));
        if let Some(traced) = traced {
            span.set_word("gen_ai.tool.name", &traced.tool);
            span.set("proscenium.step", AttributeValue::count(traced.step.into()));
        }
        self.waits.insert(approval, (about, span));
    }

    fn end_wait(&mut self, approval: u32, at: Timestamp, decision: &str) {
        if let Some((_, mut span)) = self.waits.remove(&approval) {
            span.set_word("proscenium.decision", decision);
            self.finish(span, at);
        }
    }

    fn end_waits(&mut self, at: Timestamp, decision: &str, ends: impl Fn(&ApprovalSubject) -> bool) {
        let ended = self.waits.iter().filter(|(_, (about, _))| ends(about));
        let ended: Vec<u32> = ended.map(|(approval, _)| *approval).collect();
        ended.into_iter().for_each(|approval| self.end_wait(approval, at, decision));
    }

    fn begin_pause(&mut self, why: &str, code: Option<&str>, seq: u64, at: Timestamp) {
        if self.pause.is_some() {
            return;
        }
        let mut span = self.span(SpanKey::Event { seq, part: 6 }, None, "wait_for_person".to_owned(), at);
        span.set_word("proscenium.wait", why);
        span.set_word("proscenium.code", code.unwrap_or_default());
        self.pause = Some((code.is_some(), span));
    }

    fn end_pause(&mut self, at: Timestamp) {
        if let Some((_, span)) = self.pause.take() {
            self.finish(span, at);
        }
    }

    /// Ends the wait of a held plan, after a decision about it, unless its run is quarantined.
    fn end_hold(&mut self, at: Timestamp) {
        if let Some((_, span)) = self.pause.take_if(|(is_quarantined, _)| !*is_quarantined) {
            self.finish(span, at);
        }
    }

    fn checked(&mut self, round: u32, verdict: &Verdict, degraded: bool, seq: u64, at: Timestamp) {
        let open = self.check.take();
        let mut span =
            open.unwrap_or_else(|| self.span(SpanKey::Event { seq, part: 4 }, None, "check".to_owned(), at));
        span.set("proscenium.round", AttributeValue::count(round.into()));
        span.set("proscenium.should_continue", AttributeValue::Flag(verdict.should_continue));
        span.set("proscenium.can_answer_now", AttributeValue::Flag(verdict.can_answer_now));
        span.set("proscenium.degraded", AttributeValue::Flag(degraded));
        self.finish(span, at);
    }

    fn answered(&mut self, text: &str, degraded: bool, seq: u64, at: Timestamp) {
        let open = self.answer.take();
        let mut span =
            open.unwrap_or_else(|| self.span(SpanKey::Event { seq, part: 4 }, None, "answer".to_owned(), at));
        span.set("proscenium.degraded", AttributeValue::Flag(degraded));
        if self.options.content
            && let Some(root) = &mut self.root
        {
            root.set("gen_ai.output.messages", content::message("assistant", text));
        }
        self.finish(span, at);
    }

    /// The run has ended, and with it everything but the question about the outcome of a write.
    fn ended(&mut self, status: &'static str, code: Option<&str>, at: Timestamp) {
        self.end_interrupted(at);
        self.end_pause(at);
        self.end_waits(at, "ended", |about| !matches!(about, ApprovalSubject::Outcome { .. }));
        for (_, mut step) in std::mem::take(&mut self.steps) {
            step.set_word("proscenium.outcome", StepStatus::Cancelled.name());
            self.finish(step, at);
        }
        let plan = self.plan.take().map(|(_, span)| span);
        for span in [plan, self.check.take(), self.answer.take()].into_iter().flatten() {
            self.finish(span, at);
        }
        let Some(mut root) = self.root.take() else { return };
        root.set_word("proscenium.status", status);
        root.set("proscenium.model_calls", AttributeValue::count(self.usage.calls.into()));
        root.set("proscenium.cost_usd", AttributeValue::Real(usd(self.usage)));
        if let Some(code) = code {
            root.fail(code);
        }
        self.finish(root, at);
    }
}

pub(super) fn usd(usage: Usage) -> f64 {
    usage.cost_nano_usd as f64 / 1e9
}

//! Performs the machine's actions: model calls and tool calls start here and complete in the driver's loop.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::under_way::ActionsUnderWay;
use super::{Driver, FinishedAction, replaced_parts};
use crate::actors::run_documents::run_documents;
use crate::actors::scene;
use crate::actors::tool_healths::ToolKey;
use crate::config::RunOffer;
use crate::conversation::StartingContext;
use crate::llm::{self, Caller, DigestedRequest, Sink};
use crate::planner::{self, AnswerPreview};
use crate::run::{
    Action, Adaptation, Attempt, CallState, Effect, Event, Fault, Outcome, Purpose, QuestionTerms,
    RecalledResult, RunStarted, Settings, Subject, Usage, idempotency_key,
};
use crate::scene::CallEnd;
use crate::store::SwitchKind;
use crate::trace_context::{ModelCallTrace, RunTrace, SpanKey};

/// How long an ending run waits for the cost of its model calls in flight.
const COST_REPORT_TIMEOUT: Duration = Duration::from_secs(5);

impl Driver {
    /// Records what the run is executed with, frozen from here on.
    async fn start_run(&mut self, starting: StartingContext) -> Result<(), Fault> {
        let StartingContext { mut context, listed } = starting;
        self.name_chosen_documents(&mut context, &listed).await;
        let earlier = context.turns.iter().rev().map(|turn| turn.request.as_str());
        let configured = self.shared.settings.language.as_deref();
        let language = crate::language::of_request(self.state.request(), earlier, configured);
        let settings = self.frozen_settings();
        let confirmed = planner::confirmed(&self.state, &settings, &context);
        let levels = planner::scene_levels(&self.shared.catalogue);
        let started = RunStarted {
            now: self.shared.clock.now(),
            language,
            settings,
            catalogue: self.shared.catalogue_hash.to_string(),
            context,
            confirmed,
            levels,
            disabled: self.disabled_tools(),
        };
        self.append(Event::RunStarted(started)).await
    }

    /// The settings of the run, frozen at its start.
    fn frozen_settings(&self) -> Settings {
        let shared = &self.shared;
        let tenant = &self.principal.tenant;
        let of_tenant = shared.tenants.get(tenant.as_str()).cloned().unwrap_or_default();
        let options = self.state.queued.as_ref().map(|queued| queued.options).unwrap_or_default();
        let offer = RunOffer {
            decision_models: shared.gateway.model_names(Purpose::Decision).len(),
            executes_programs: shared.replaced.interpreter.is_some(),
            embeddings_timeout_ms: shared.embeddings_timeout_ms(),
        };
        let approval = shared.approval.policy_of(tenant, &of_tenant.approval);
        of_tenant.run_settings(&shared.settings, approval, options, offer)
    }

    /// Performs an action. What it results in is recorded now, or arrives later as an event of its own.
    pub(super) async fn perform(
        &mut self,
        action: Action,
        context: &mut Option<StartingContext>,
    ) -> Result<(), Fault> {
        let event = match action {
            Action::Start => return self.start_run(context.take().unwrap_or_default()).await,
            Action::Record { event } => return self.record_requested(event).await,
            Action::Execute { step } => {
                self.start_execution(step);
                return Ok(());
            }
            Action::Ask { call, subject, attempt, fallback } => {
                return self.ask(call, subject, attempt, fallback).await;
            }
            Action::Call { call, attempt } => return self.call(call, attempt).await,
            Action::LookUpPlan => self.look_up_plan().await,
            Action::LookUpPath { step } => self.look_up_path(step).await,
            Action::OutlineDocuments { step } => self.outline_documents(step).await,
            Action::Take { version } => planner::supplied_plan(&self.state, &self.shared.catalogue, version),
            Action::Prepare { step } => planner::prepared(&self.state, &self.shared.catalogue, step),
            Action::Substitute { call } => planner::substitute(&self.state, &self.shared.catalogue, call),
            Action::Interpret { call } => planner::interpreted(&self.state, &self.shared.catalogue, call),
            Action::Recall { call } => self.recall(call).await,
            Action::Read { call, subject } => self.read(call, subject).await,
        };
        self.record(event).await
    }

    /// Appends what the state machine decided, with what precedes it.
    async fn record_requested(&mut self, event: Event) -> Result<(), Fault> {
        match event {
            // The loop asks the machine for this action again afterwards.
            event if event.is_terminal() && !self.in_flight.is_empty() => self.cancel_in_flight().await,
            event @ Event::StepStarted { step } => {
                let event = self.check_plan_in_force(step).await.unwrap_or(event);
                if let Some(forecast) = self.forecast(&event) {
                    self.record(forecast).await?;
                }
                self.append(event).await
            }
            event => {
                self.append_machine_event(event).await?;
                self.drop_ended_summaries();
                Ok(())
            }
        }
    }

    /// The last good result of an equal call, if it may be used.
    async fn recall(&mut self, call: u32) -> Event {
        let found = self.last_result(call).await;
        let found = found.filter(|found| {
            self.state.may_recall(call, found.at)
                && planner::is_as_expected(&self.state, &self.shared.catalogue, call, &found.result)
        });
        Event::Adapted { change: Adaptation::Recalled { call, found: found.map(Box::new) } }
    }

    /// What a reply means; whether it was usable decides whether it stays in the cache.
    async fn read(&mut self, call: u32, subject: Subject) -> Event {
        let event = self.reading_of(call, subject).await;
        match self.unparsed.remove(&call) {
            Some(confirm) if planner::is_usable_reading(&event) => confirm.accepted(),
            Some(confirm) => confirm.rejected(),
            None => {}
        }
        event
    }

    /// Begins a call, or ends it at once if its tool is not to be called.
    async fn call(&mut self, call: u32, attempt: u32) -> Result<(), Fault> {
        self.append(Event::ToolStarted { call, attempt }).await?;
        match self.uncalled(call) {
            Some(outcome) => self.end_uncalled(call, outcome),
            None if self.is_summary_tool(call) => {
                let event = self.begin_summary_call(call).await;
                return self.record(event).await;
            }
            None => self.start_tool_call(call, attempt),
        }
        Ok(())
    }

    async fn ask(&mut self, call: u32, subject: Subject, attempt: u32, fallback: bool) -> Result<(), Fault> {
        let request = match self.request_about(subject).await {
            Ok(request) => request,
            Err(event) => return self.record(event).await,
        };
        let request = DigestedRequest::new(request);
        let prompt_hash = request.digest().hex();
        let replaced = self.replaced_part(subject, request.request(), fallback);
        let unfit = planner::unfit_request(&self.state).filter(|_| !fallback);
        let priced = !fallback && replaced.is_none() && unfit.is_none();
        let reserved =
            if priced { self.shared.gateway.reserved(request.request(), subject.voter()) } else { None };
        let asked = Event::ModelAsked { call, subject, attempt, fallback, prompt_hash, reserved };
        self.append(asked).await?;
        if let Some(error) = unfit {
            let (usage, attempts) = (Usage::default(), Vec::new());
            return self.record(Event::ModelFailed { call, error, usage, millis: 0, attempts }).await;
        }
        match subject {
            Subject::Ranking => self.start_ranking(call, request.into_request()),
            _ => self.start_model_call(call, subject, request, fallback, replaced),
        }
        Ok(())
    }

    /// Ends a run that cannot continue. Writes whose outcome is unknown are sent for confirmation.
    pub(super) async fn force_end(&mut self, why: Fault) -> Result<(), Fault> {
        self.cancel_in_flight().await?;
        self.append_together(self.state.forced_end(why)).await
    }

    /// Cancels the model calls in flight and records their cost before the run's last event, so that every
    /// budget charge is in the journal. Also records the outcome of a write that completes meanwhile.
    async fn cancel_in_flight(&mut self) -> Result<(), Fault> {
        self.in_flight.stop();
        let deadline = tokio::time::Instant::now() + COST_REPORT_TIMEOUT;
        while let Ok(Some((event, _))) = tokio::time::timeout_at(deadline, self.in_flight.next()).await {
            if self.state.is_recorded_at_end(&event) && self.state.check(&event).is_ok() {
                self.record(event).await?;
            }
        }
        // The ended run does not need the rest. A reopened run starts with a fresh token.
        self.in_flight = ActionsUnderWay::default();
        Ok(())
    }

    fn start_model_call(
        &mut self,
        call: u32,
        subject: Subject,
        request: DigestedRequest,
        fallback: bool,
        replaced: Option<replaced_parts::PartRequest>,
    ) {
        if let Some(asked) = replaced {
            let stop = self.in_flight.stop_token();
            self.in_flight.start(async move {
                let asked_at = Instant::now();
                let result = asked.answer(&stop).await;
                let (millis, usage) = (elapsed_millis(asked_at), Usage::default());
                let event = match result {
                    Ok(reply) => Event::ModelReplied { call, reply, usage, millis, attempts: Vec::new() },
                    Err(error) => Event::ModelFailed { call, error, usage, millis, attempts: Vec::new() },
                };
                (event, None)
            });
            return;
        }
        let gateway = self.shared.gateway.clone();
        let step = subject.facts().step.and_then(|step| self.state.steps.get(&step));
        let scene = step.and_then(|s| self.shared.scenes.get(&s.step.scene_name)).cloned();
        let stop = self.in_flight.stop_token();
        let QuestionTerms { cache, voter, timeout_ms } = self.state.question_terms(subject);
        let caller = Caller { cache, voter, ..self.caller_of(call) };
        let max_ms = timeout_ms.unwrap_or(u64::MAX);
        let shown = AnswerPreview::of(&self.state, subject);
        let sink = shown.map_or_else(Sink::default, |shown| self.live.feed.sink(shown));
        self.in_flight.start(async move {
            let asked = Instant::now();
            let result = match scene {
                Some(scene) => scene.ask(caller, request, fallback, stop).await,
                None => gateway
                    .complete_in_task(caller, request, fallback, &stop, sink, max_ms)
                    .await
                    .map_err(scene::FailedModelCall::from),
            };
            finished_model_call(call, asked, result)
        });
    }

    fn start_ranking(&mut self, call: u32, request: llm::Request) {
        let (ranking, caller, stop) =
            (self.shared.ranking.clone(), self.caller_of(call), self.in_flight.stop_token());
        let timeout = Duration::from_millis(self.state.settings().embeddings_timeout_ms.into());
        self.in_flight.start(async move {
            let asked = Instant::now();
            let result = ranking.rank(&caller, &request, timeout, &stop).await;
            finished_model_call(call, asked, result)
        });
    }

    /// The tools of the catalogue that are switched off.
    fn disabled_tools(&self) -> Vec<String> {
        let switches = self.shared.switches.load();
        let tools = switches.of(SwitchKind::Tool).map(|row| row.name.clone());
        tools.filter(|name| self.shared.catalogue.has_tool(name)).collect()
    }

    /// The outcome of a call whose tool is not to be called: it has changed, or an operator has switched it off.
    fn uncalled(&self, number: u32) -> Option<Outcome> {
        let call = self.state.calls.get(&number)?;
        let name = format!("{}.{}", call.scene, call.requested.tool);
        let switches = self.shared.switches.load();
        let disabled = switches.get(SwitchKind::Tool, &name).map(|row| Outcome::Failed { error: row.into() });
        disabled
            .or_else(|| planner::changed_tool(&self.state, &self.shared.catalogue, number))
            .or_else(|| self.breaker_refusal(call))
    }

    /// The outcome of a call whose tool's breaker is open.
    fn breaker_refusal(&self, call: &CallState) -> Option<Outcome> {
        if !self.state.obeys_breakers(call) {
            return None;
        }
        let tool = ToolKey::new(&self.principal.tenant, &call.scene, &call.requested.tool);
        let (health, effect) = (&self.shared.health, call.requested.effect);
        let error = health.refusal(&tool, effect, &self.shared.catalogue, Timestamp::now())?;
        Some(Outcome::Failed { error })
    }

    /// The event before a step begins whose tools do not work at present.
    fn forecast(&self, begins: &Event) -> Option<Event> {
        let Event::StepStarted { step } = begins else { return None };
        let scene = &self.state.steps.get(step)?.step.scene_name;
        let expected = self.state.tools_to_forecast(*step).into_iter();
        let tools = self.shared.health.forecast(&self.principal.tenant, scene, expected, Timestamp::now());
        (!tools.is_empty()).then_some(Event::Forecast { step: *step, tools })
    }

    /// Ends an attempt of a call without calling its tool.
    fn end_uncalled(&mut self, call: u32, outcome: Outcome) {
        let event = Event::ToolCompleted { call, outcome, millis: 0, notes: None };
        self.in_flight.start(std::future::ready((event, None)));
    }

    fn start_tool_call(&mut self, number: u32, attempt: u32) {
        let Some(call) = self.state.calls.get(&number) else { return };
        let Some(started) = &self.state.started else { return };
        let handle = self.shared.scenes.get(&call.scene).cloned();
        let writes = call.requested.effect == Effect::Write;
        let documents = run_documents(&self.state, &self.shared.documents, &self.principal);
        let work = scene::SceneCall {
            tool: call.requested.tool.clone(),
            arguments: call.requested.arguments.clone(),
            principal: self.principal.clone(),
            now: started.now.clone(),
            language: started.language.clone(),
            session: self.session.clone(),
            run: self.state.run,
            step: call.step,
            idempotency_key: writes.then(|| idempotency_key(self.state.run, call.step, number)),
            documents: documents.clone(),
            cancelled: self.in_flight.stop_token(),
            trace_parent: self.trace().map(|run| run.parent_of(SpanKey::ToolCall { call: number, attempt })),
            is_judged: self.state.settings().mode.is_some(),
            expected: planner::step_expectations(&self.state, &self.shared.catalogue, call),
        };
        let is_read_of_program = !writes && self.state.is_program(call.step);
        let remember = self.recall_key(number);
        let executor = self.shared.replaced.executor.clone();
        let gateway = self.shared.gateway.clone();
        let name = call.scene.clone();
        self.in_flight.start(async move {
            let asked = Instant::now();
            let end = match (handle, executor) {
                (Some(scene), Some(executor)) => {
                    replaced_parts::execute_with(&gateway, executor, name, scene, work, writes).await
                }
                (Some(scene), None) => scene.call(work).await,
                (None, _) => {
                    let message = format!("the scene {name} is not loaded");
                    Outcome::Failed { error: Fault::new("scene.unknown", message) }.into()
                }
            };
            let end = end.with_documents(documents.looked_at());
            let end = if is_read_of_program { end.whole_or_failed() } else { end };
            let CallEnd { outcome, notes, .. } = end.remembered(remember);
            (Event::ToolCompleted { call: number, outcome, millis: elapsed_millis(asked), notes }, None)
        });
    }

    /// The key under which the result of a call may be found later, if its tool declares that.
    fn recall_key(&self, call: u32) -> Option<String> {
        planner::recall_key(&self.state, &self.shared.catalogue, call, self.principal.tenant.as_str())
    }

    /// Reads the last good result of a call equal to `call`. What cannot be read is not there.
    fn last_result(&self, call: u32) -> impl Future<Output = Option<RecalledResult>> + use<> {
        let (key, journal) = (self.recall_key(call), self.shared.journal.clone());
        let (tenant, run) = (self.principal.tenant.clone(), self.state.run);
        async move {
            let read = journal.last_result(&tenant, &key?).await;
            read.unwrap_or_else(|error| {
                tracing::warn!(%run, code = error.code(), %error, "an earlier result was not read");
                None
            })
        }
    }

    /// The replaced part that answers in place of a model, if any. The offline model cannot be replaced:
    /// it is the fallback when the part fails.
    fn replaced_part(
        &self,
        subject: Subject,
        request: &llm::Request,
        fallback: bool,
    ) -> Option<replaced_parts::PartRequest> {
        let replaced = || replaced_parts::PartRequest::new(&self.shared, &self.state, subject, request);
        (!fallback).then(replaced).flatten()
    }

    pub(super) fn caller(&self) -> Caller {
        Caller {
            tenant: self.principal.tenant.clone(),
            session: self.session.clone(),
            run: Some(self.state.run),
            cache: self.cache,
            voter: None,
            trace: None,
        }
    }

    /// The caller of a question to a model.
    fn caller_of(&self, call: u32) -> Caller {
        Caller { trace: self.trace().map(|run| ModelCallTrace { run, call }), ..self.caller() }
    }

    /// The run's trace, if runs are traced.
    fn trace(&self) -> Option<RunTrace> {
        let sampler = self.shared.tracing?;
        let queued = self.state.queued.as_ref()?;
        Some(RunTrace::new(self.state.run.0, queued.trace_parent, sampler))
    }
}

/// The event for the end of a model call that was begun at `asked`.
fn finished_model_call(
    call: u32,
    asked: Instant,
    result: Result<llm::Replied, scene::FailedModelCall>,
) -> FinishedAction {
    let millis = elapsed_millis(asked);
    match result {
        Ok(done) => {
            let (usage, attempts) = (done.usage, done.attempts);
            let event = Event::ModelReplied { call, reply: done.reply, usage, millis, attempts };
            (event, Some(done.confirm))
        }
        Err(scene::FailedModelCall { fault: error, attempts }) => {
            let usage = Attempt::sum(&attempts);
            (Event::ModelFailed { call, error, usage, millis, attempts }, None)
        }
    }
}

pub(super) fn elapsed_millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

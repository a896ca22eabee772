//! Executes labelled requests: each set by an engine of its own, in a temporary data directory.

use std::time::Duration;

use futures::StreamExt as _;
use jiff::Zoned;
use jiff::civil::Date;
use tempfile::TempDir;
use tokio::sync::Semaphore;

use super::executed::{ExecutedCall, ExecutedRequest, ExecutedStep};
use super::fault::EvalError;
use super::judge::{Judgement, judge};
use super::known;
use super::labels::{EvalSet, LabelledConversation, LabelledRequest, Surroundings};
use super::report::{EvalReport, EvalSubject, JudgedRequest};
use super::rows;
use super::scenes::EvalScenes;
use super::spending::{EvalSpending, SpendingLimits};
use crate::config::{Config, WebhookConfig};
use crate::run::{
    CallStatus, Effect, Envelope, Event, Fault, Outcome, RunId, RunState, RunStatus, SessionId, TenantId,
    Turn, Usage,
};
use crate::scene::{Catalogue, SceneFaults, SceneFolder};
use crate::{Answer, Builder, ChatRequest, Engine, StartError, fold};

/// Maximum number of concurrent engines: an engine executes its runs on one thread.
const ENGINES: usize = 2;
/// How long an answer is waited for, beyond the deadline of its run.
const PATIENCE: Duration = Duration::from_secs(60);

/// How an evaluation is executed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EvalOptions {
    /// How often each request is executed.
    pub repeat: usize,
    /// Maximum number of concurrent conversations.
    pub concurrency: usize,
    /// Most money and model calls.
    pub limits: SpendingLimits,
}

impl Default for EvalOptions {
    fn default() -> Self {
        Self { repeat: 1, concurrency: 8, limits: SpendingLimits::default() }
    }
}

/// An HTTP tool that is called for real, because its scene has no `replies.json`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RealHttpTool {
    /// Its scene.
    pub scene: String,
    /// Its name.
    pub tool: String,
    /// Whether it writes.
    pub writes: bool,
    /// The schemes, hosts and ports that it calls.
    pub address: String,
}

/// Labelled requests with their scenes, whose labels are checked. Nothing was executed yet.
pub struct Evaluation<B> {
    builder: B,
    sets: Vec<PreparedSet>,
    options: EvalOptions,
    spending: EvalSpending,
    real_tools: Vec<RealHttpTool>,
    /// The back end of scenes, until the end.
    _scenes: EvalScenes,
}

/// A set with its configuration.
struct PreparedSet {
    set: EvalSet,
    config: Config,
    folders: Vec<SceneFolder>,
}

/// What the executions of a set came to, by conversation: one per turn, none if it was left out.
type ExecutedTurns = Vec<Option<(ExecutedRequest, Judgement)>>;

impl<B: Fn(Config) -> Builder> Evaluation<B> {
    /// Reads the scenes and checks every label against them. `builder` builds the engine of a configuration; its scenes
    /// and those of the sets are loaded.
    ///
    /// # Errors
    /// All labels that name what does not exist; faults of the scenes; models that nothing limits.
    pub fn prepare(
        sets: Vec<EvalSet>,
        config: &Config,
        options: EvalOptions,
        builder: B,
    ) -> Result<Self, EvalError> {
        let limits = options.limits.within(config);
        limits.check(config)?;
        let sets = with_configured_scenes(sets, config);
        let mut scenes = EvalScenes::read(&sets, &|| builder(config.clone()))?;
        let (mut prepared, mut faults, mut real_tools) = (Vec::new(), Vec::new(), Vec::new());
        for (set, folders) in sets.into_iter().zip(std::mem::take(&mut scenes.folders)) {
            let config = configured(config, &set.surroundings, &scenes);
            let loaded = builder(config.clone()).scene_folders(folders.clone()).load_scenes();
            if loaded.has_errors() {
                return Err(not_started(StartError::Scenes(SceneFaults(loaded.faults))));
            }
            let catalogue = Catalogue::new(loaded.scenes);
            faults.extend(set.requests().flat_map(|request| known::unknown_labels(request, &catalogue)));
            real_tools.extend(real_http_tools(&catalogue, &scenes));
            prepared.push(PreparedSet { set, config, folders });
        }
        if !faults.is_empty() {
            return Err(EvalError::Files(faults));
        }
        real_tools.sort();
        real_tools.dedup();
        let spending = EvalSpending::new(limits);
        Ok(Self { builder, sets: prepared, options, spending, real_tools, _scenes: scenes })
    }

    /// The HTTP tools that are called for real.
    pub fn real_http_tools(&self) -> &[RealHttpTool] {
        &self.real_tools
    }

    /// How many requests there are.
    pub fn count(&self) -> usize {
        self.sets.iter().map(|prepared| prepared.set.requests().count()).sum()
    }

    /// Begins no further request: what is executed by then is in the report, and the rest is left out.
    pub fn stop(&self) {
        self.spending.stop();
    }

    /// Executes all requests. `done` is called after each conversation, with the number of its requests.
    ///
    /// # Errors
    /// Why an engine does not start, or rows that cannot be inserted, if nothing was executed before; else the report says it.
    pub async fn run(&self, done: &dyn Fn(usize)) -> Result<EvalReport, EvalError> {
        let places = Semaphore::new(self.options.concurrency.max(1));
        let shared = SharedLimits { spending: &self.spending, places: &places, done };
        let mut judged: Vec<JudgedRequest> = self.requests().map(JudgedRequest::new).collect();
        let mut failed = None;
        for _ in 0..self.options.repeat {
            let executing = self.sets.iter().map(|prepared| self.execute(prepared, &shared));
            let executed: Vec<Result<ExecutedTurns, EvalError>> =
                futures::stream::iter(executing).buffered(ENGINES).collect().await;
            let mut turns = Vec::new();
            for (of_set, prepared) in executed.into_iter().zip(&self.sets) {
                turns.extend(of_set.unwrap_or_else(|error| {
                    failed.get_or_insert(error);
                    prepared.set.requests().map(|_| None).collect()
                }));
            }
            for (request, turn) in judged.iter_mut().zip(turns) {
                request.repetitions.extend(turn);
            }
            if failed.is_some() {
                break;
            }
        }
        let is_any_executed = judged.iter().any(|request| !request.repetitions.is_empty());
        let ended_early = match failed {
            // What was executed may have cost money: it is reported.
            Some(error) if is_any_executed => Some(error.to_string()),
            Some(error) => return Err(error),
            None => None,
        };
        let subject = EvalSubject {
            models: self.sets.first().map_or_else(Vec::new, |prepared| models(&prepared.config)),
            repeat: self.options.repeat,
            concurrency: self.options.concurrency,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let cut_off_usd = self.spending.cut_off_usd();
        Ok(EvalReport { ended_early, cut_off_usd, ..EvalReport::of(subject, &judged) })
    }

    fn requests(&self) -> impl Iterator<Item = &LabelledRequest> {
        self.sets.iter().flat_map(|prepared| prepared.set.requests())
    }

    /// Executes a set once, with an engine of its own.
    async fn execute(
        &self,
        prepared: &PreparedSet,
        shared: &SharedLimits<'_>,
    ) -> Result<ExecutedTurns, EvalError> {
        let dir = tempfile::Builder::new().prefix("proscenium-eval-").tempdir();
        let dir = dir.map_err(|error| {
            let message = format!("there is no temporary directory for the data: {error}");
            EvalError::new("eval.directory", message, "set TMPDIR to a directory that can be written")
        })?;
        let engine = self.start(prepared, &dir).await?;
        let set = EvaluatedSet::of(&engine, &prepared.config);
        let conversations = &prepared.set.conversations;
        let mut faults = Vec::new();
        for (conversation, number) in conversations.iter().zip(0..) {
            for request in &conversation.turns {
                let tenant = eval_tenant(number)?;
                faults.extend(rows::insert(&engine, &tenant, &set.user, request).await.err());
            }
        }
        let executed: Vec<Result<ExecutedTurns, EvalError>> = if faults.is_empty() {
            let executing = conversations
                .iter()
                .zip(0..)
                .map(|(conversation, number)| set.converse(conversation, number, shared));
            futures::stream::iter(executing).buffered(self.options.concurrency.max(1)).collect().await
        } else {
            vec![Err(EvalError::Files(faults))]
        };
        // The directory is removed whatever the last events came to.
        if let Err(error) = engine.shut_down().await {
            tracing::warn!(code = error.code(), %error, "the journal of an evaluation is incomplete");
        }
        let executed: Result<Vec<ExecutedTurns>, EvalError> = executed.into_iter().collect();
        executed.map(|turns| turns.into_iter().flatten().collect())
    }

    async fn start(&self, prepared: &PreparedSet, dir: &TempDir) -> Result<Engine, EvalError> {
        let mut config = prepared.config.clone();
        config.store.data_dir = dir.path().join("data");
        let mut builder = (self.builder)(config).scene_folders(prepared.folders.clone());
        if let Some(cap) = self.spending.cap() {
            builder = builder.spending_cap(cap);
        }
        builder.start().await.map_err(not_started)
    }
}

/// What all sets share.
struct SharedLimits<'a> {
    spending: &'a EvalSpending,
    places: &'a Semaphore,
    done: &'a dyn Fn(usize),
}

/// A set with its engine.
struct EvaluatedSet<'a> {
    engine: &'a Engine,
    user: String,
    today: Date,
    patience: Duration,
}

impl<'a> EvaluatedSet<'a> {
    fn of(engine: &'a Engine, config: &Config) -> Self {
        let zone = engine.zone();
        let now = config.execution.fixed_now.map_or_else(Zoned::now, |now| now.to_zoned(zone.clone()));
        let today = now.with_time_zone(zone).date();
        let patience = Duration::from_millis(config.execution.run_timeout_ms).saturating_add(PATIENCE);
        let (_, user) = engine.default_principal();
        Self { engine, user, today, patience }
    }

    /// Executes a conversation as a tenant of its own, so that no request finds what another one wrote.
    async fn converse(
        &self,
        conversation: &LabelledConversation,
        number: usize,
        shared: &SharedLimits<'_>,
    ) -> Result<ExecutedTurns, EvalError> {
        let tenant = eval_tenant(number)?;
        // It is never closed.
        let _place = shared.places.acquire().await;
        let (mut session, mut turns) = (None, Vec::new());
        for request in &conversation.turns {
            if !shared.spending.admit().await {
                turns.push(None);
                continue;
            }
            let (executed, continued) = self.ask(request, &tenant, session.clone()).await;
            session = continued.or(session);
            shared.spending.settle(executed.cost_usd, executed.model_calls);
            if shared.spending.is_exhausted() {
                shared.spending.cut_off(executed.cost_usd);
                turns.push(None);
                continue;
            }
            let judgement = judge(request, &executed, self.today);
            turns.push(Some((executed, judgement)));
        }
        (shared.done)(conversation.turns.len());
        Ok(turns)
    }

    /// Executes a request; also returns its session, where the server keeps the conversation.
    async fn ask(
        &self,
        request: &LabelledRequest,
        tenant: &TenantId,
        session: Option<SessionId>,
    ) -> (ExecutedRequest, Option<SessionId>) {
        let is_kept_by_client = request.system.is_some() || !request.history.is_empty();
        let earlier = request.history.iter().map(|turn| Turn {
            run: None,
            request: turn.user.clone(),
            answer: turn.assistant.clone(),
            status: RunStatus::Completed,
            calls: Vec::new(),
        });
        let chat = ChatRequest {
            session,
            instructions: request.system.clone(),
            history: is_kept_by_client.then(|| earlier.collect()),
            ..ChatRequest::new(request.say.as_str(), tenant.clone(), self.user.as_str())
        };
        let silent = || format!("no answer within {} s", self.patience.as_secs());
        let ticket = match tokio::time::timeout(self.patience, self.engine.submit(chat)).await {
            Ok(Ok(ticket)) => ticket,
            Ok(Err(fault)) => return (ExecutedRequest::failed(in_words(&fault)), None),
            Err(_) => return (ExecutedRequest::failed(silent()), None),
        };
        let run = ticket.run;
        let answer = match tokio::time::timeout(self.patience, ticket.answer()).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(fault)) => return (self.unanswered(tenant, run, in_words(&fault)).await, None),
            Err(_) => {
                // What it spends further does not count any more, so it is cancelled.
                if let Err(fault) = self.engine.cancel(tenant, run, &self.user).await {
                    tracing::warn!(%run, code = fault.code.as_str(), "a request that gave no answer cannot be cancelled");
                }
                return (self.unanswered(tenant, run, silent()).await, None);
            }
        };
        let session = Some(answer.session_id.clone()).filter(|_| !is_kept_by_client);
        match self.engine.store().run_events(tenant, run).await {
            Ok(events) => (self.executed(&answer, &events), session),
            Err(error) => (self.unanswered(tenant, run, error.to_string()).await, session),
        }
    }

    /// A request without an answer. What it has spent counts.
    async fn unanswered(&self, tenant: &TenantId, run: RunId, why: String) -> ExecutedRequest {
        let usage = match self.engine.run(tenant, run).await {
            Ok(state) => state.usage,
            Err(_) => Usage::default(),
        };
        ExecutedRequest {
            model_calls: usage.calls,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cost_usd: usage.cost_nano_usd as f64 / 1e9,
            ..ExecutedRequest::failed(why)
        }
    }

    fn executed(&self, answer: &Answer, events: &[Envelope<Event>]) -> ExecutedRequest {
        let state = fold(answer.run_id, events);
        ExecutedRequest {
            status: Some(answer.status),
            answer: answer.answer.clone(),
            steps: executed_steps(&state, events),
            calls: executed_calls(&state, events, &self.engine.catalogue()),
            model_calls: answer.usage.llm_calls,
            input_tokens: answer.usage.input_tokens,
            output_tokens: answer.usage.output_tokens,
            cost_usd: answer.usage.cost_usd,
            ms: answer.timings.total_ms,
        }
    }
}

fn executed_steps(state: &RunState, events: &[Envelope<Event>]) -> Vec<ExecutedStep> {
    let began = |number: u32| {
        events.iter().find(|event| matches!(event.body, Event::StepStarted { step } if step == number))
    };
    let completed = |number: u32| {
        let is_end = |event: &&Envelope<Event>| matches!(event.body, Event::StepCompleted { step, .. } if step == number);
        events.iter().rfind(is_end)
    };
    let steps = state.steps.iter().map(|(number, step)| ExecutedStep {
        scene: step.step.scene_name.clone(),
        began: began(*number).map(|event| event.seq),
        completed: completed(*number).map(|event| event.seq),
    });
    steps.collect()
}

fn executed_calls(state: &RunState, events: &[Envelope<Event>], catalogue: &Catalogue) -> Vec<ExecutedCall> {
    let began = |number: u32| {
        events.iter().find(|event| matches!(event.body, Event::ToolStarted { call, .. } if call == number))
    };
    let ended = |number: u32| {
        let is_end = |event: &&Envelope<Event>| matches!(event.body, Event::ToolCompleted { call, .. } if call == number);
        events.iter().rfind(is_end)
    };
    let made = state.calls.iter().filter(|(_, call)| call.attempts > 0 && call.undoes.is_none());
    let calls = made.map(|(number, call)| {
        let tool = catalogue.get(&call.scene).and_then(|scene| scene.tool(&call.requested.tool));
        ExecutedCall {
            tool: call.requested.tool.clone(),
            arguments: call.requested.arguments.as_object().cloned().unwrap_or_default(),
            writes: call.requested.effect == Effect::Write,
            succeeded: matches!(&call.status, CallStatus::Done { outcome: Outcome::Ok { .. } }),
            began: began(*number).map(|event| event.seq),
            ended: ended(*number).map(|event| event.seq),
            schema: tool.map(|tool| (*tool.parameters).clone()).unwrap_or_default(),
        }
    });
    calls.collect()
}

fn in_words(fault: &Fault) -> String {
    format!("{}: {}", fault.code, fault.message)
}

fn eval_tenant(number: usize) -> Result<TenantId, EvalError> {
    let tenant = TenantId::new(&format!("eval-{number}"));
    tenant.map_err(|error| EvalError::new("eval.tenant", error.to_string(), ""))
}

/// The sets, those that name no scenes with the configured ones: a `replies.json` counts there, too.
fn with_configured_scenes(mut sets: Vec<EvalSet>, config: &Config) -> Vec<EvalSet> {
    for set in sets.iter_mut().filter(|set| set.surroundings.scenes.is_empty()) {
        set.surroundings.scenes.extend(config.scenes.dir.clone());
    }
    sets
}

/// The configuration of a set: nobody is notified, and no traces are sent.
fn configured(config: &Config, surroundings: &Surroundings, scenes: &EvalScenes) -> Config {
    let mut config = config.clone();
    config.approval.webhook = WebhookConfig::default();
    config.telemetry.metrics = false;
    config.telemetry.otlp.endpoint.clear();
    if let Some(clock) = surroundings.clock {
        config.execution.fixed_now = Some(clock);
    }
    if let Some(zone) = &surroundings.time_zone {
        config.execution.time_zone.clone_from(zone);
    }
    if !surroundings.scenes.is_empty() {
        config.scenes.dir = None;
    }
    config.scenes.builtin = surroundings.builtin.unwrap_or(config.scenes.builtin);
    for (scene, settings) in &surroundings.settings {
        config.scenes.settings.retain(|name, _| !name.eq_ignore_ascii_case(scene));
        config.scenes.settings.insert(scene.clone(), settings.clone());
    }
    config.scenes.allow_hosts.extend(scenes.address().map(|address| address.to_string()));
    config
}

fn real_http_tools(catalogue: &Catalogue, scenes: &EvalScenes) -> Vec<RealHttpTool> {
    let tools = catalogue.all().flat_map(|scene| scene.tools.iter().map(move |tool| (scene, tool)));
    let real = tools.filter_map(|(scene, tool)| {
        let addresses = scenes.real_addresses(tool);
        let address = addresses.into_iter().collect::<Vec<_>>().join(", ");
        let writes = tool.effect == Effect::Write;
        let real = RealHttpTool { scene: scene.name.clone(), tool: tool.name.clone(), writes, address };
        Some(real).filter(|real| !real.address.is_empty())
    });
    real.collect()
}

/// The models of a configuration, by name and id.
fn models(config: &Config) -> Vec<String> {
    let named = config.llm.models.iter().map(|model| match model.name == model.id() {
        true => model.name.clone(),
        false => format!("{} ({})", model.name, model.id()),
    });
    named.collect()
}

fn not_started(error: StartError) -> EvalError {
    let remedy = if matches!(error, StartError::Scenes(_)) { "correct the scenes" } else { "" };
    EvalError::new(error.code(), error.to_string(), remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_without_scenes_have_the_configured_ones() {
        let set = |scenes: &[&str]| EvalSet {
            surroundings: Surroundings {
                scenes: scenes.iter().map(Into::into).collect(),
                ..Surroundings::default()
            },
            conversations: Vec::new(),
        };
        let mut config = Config::default();
        let sets = || vec![set(&[]), set(&["library"])];
        assert_eq!(with_configured_scenes(sets(), &config), sets());
        config.scenes.dir = Some("mine".into());
        assert_eq!(with_configured_scenes(sets(), &config), [set(&["mine"]), set(&["library"])]);
    }
}

//! The engine behind the commands.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;

use async_trait::async_trait;
use proscenium::config::{Config, LoadedConfig};
use proscenium::llm::{Gateway, Probe, Worked, offline::OfflineModel};
use proscenium::plan::Plan;
use proscenium::planner::{Command, CommandRefusal, consent};
use proscenium::run::{DocumentId, Envelope, Event, Fault, RunId, RunState, RunStatus, SessionId, TenantId};
use proscenium::sandbox;
use proscenium::scene::Scene;
use proscenium::tools::{DependencyReport, ToolError};
use proscenium::{Answer, Builder, ChatRequest, Engine, RunWatch, StartError, scene};

use super::args::Asking;
use super::assistant::{self, Assistant, CommandExecutor, CommandTarget, CommandWithNote, PrintedDraft};
use super::check::{self, CheckReport, Finding, Level};
use super::document_file::DocumentFile;
use super::failure::Failure;
use super::flows;
use super::follow::{Show, follow, until_done};
use super::signals::Signals;
use crate::shipped;

/// The engine with the scenes that the program ships.
fn builder(loaded: &LoadedConfig) -> Builder {
    builder_of(loaded.config.clone())
}

/// The same for a configuration.
pub fn builder_of(mut config: Config) -> Builder {
    config.sandbox = sandbox_options(&config);
    Engine::builder(config).native_tools(shipped::tools()).builtin_scenes(&shipped::FOLDERS)
}

/// The settings of the sandbox, with this program as the worker where none is named.
pub fn sandbox_options(config: &Config) -> sandbox::Options {
    let worker = config.sandbox.worker.clone().or_else(|| std::env::current_exe().ok());
    sandbox::Options { worker, ..config.sandbox.clone() }
}

/// Starts an engine for a terminal.
pub async fn start(loaded: LoadedConfig, asking: Asking) -> Result<Box<dyn Assistant>, Failure> {
    let engine = Arc::new(engine(loaded).await?);
    match added_documents(&engine, &asking).await {
        Ok(documents) => Ok(Box::new(Ready { engine, asking, documents })),
        Err(failure) => {
            // The error about the files is more useful than one of the shutdown.
            let _ = engine.shut_down().await;
            Err(failure)
        }
    }
}

/// The documents of the files that each message is about.
async fn added_documents(engine: &Engine, asking: &Asking) -> Result<Vec<DocumentId>, Failure> {
    let mut documents = Vec::new();
    for path in &asking.documents {
        documents.push(DocumentFile::open(path, None)?.add_to(engine).await?.id);
    }
    Ok(documents)
}

/// Starts an engine.
pub async fn engine(loaded: LoadedConfig) -> Result<Engine, Failure> {
    builder(&loaded).start().await.map_err(failed)
}

/// Why an engine did not start or reload.
pub fn failed(error: StartError) -> Failure {
    match error {
        StartError::Scenes(faults) => Failure::usage("scene.faults", faults.to_string())
            .help("`proscenium check` shows every fault with its remedy"),
        StartError::Store(error) => error.into(),
        StartError::Other(fault) => failure(fault),
    }
}

/// The current scenes, loaded without starting an engine.
pub fn catalogue(loaded: &LoadedConfig) -> Result<scene::Catalogue, Failure> {
    let found = builder(loaded).load_scenes();
    if found.has_errors() {
        return Err(failed(StartError::Scenes(scene::SceneFaults(found.faults))));
    }
    Ok(scene::Catalogue::new(found.scenes))
}

/// Checks the scenes, and with `live` probes the models and what the scenes depend on.
pub async fn inspect(loaded: &LoadedConfig, live: bool) -> (CheckReport, Vec<Finding>) {
    let scenes = builder(loaded).load_scenes();
    let mut findings: Vec<Finding> = scenes.faults.iter().map(finding).collect();
    let mut found = CheckReport::of(loaded);
    let (flows, own): (Vec<&Scene>, Vec<&Scene>) =
        scenes.scenes.iter().partition(|scene| scene.flow.is_some());
    found.scenes = own.into_iter().map(check::scene).collect();
    found.flows = flows.into_iter().filter_map(|scene| scene.flow.as_deref()).map(check::flow).collect();
    findings.extend(check::idle_policies(&loaded.config, &scenes.scenes));
    findings.extend(check::unfit_consultations(&loaded.config));
    findings.extend(check::unfit_programs(loaded));
    let unusable = check::unusable_settings(loaded, &scenes.scenes, &shipped::tools());
    findings.extend(check::unusable_schemas(&scenes.scenes).await);
    let are_settings_sound = unusable.is_empty();
    findings.extend(unusable);
    if live && are_settings_sound {
        let (reports, more) = dependencies(&scenes.scenes).await;
        found.dependencies = reports;
        findings.extend(more);
        match probe(loaded).await {
            Ok(probes) => {
                for probe in &probes {
                    for model in found.models.iter_mut().filter(|model| model.name == probe.model) {
                        model.live.extend(lines(probe));
                    }
                    findings.extend(unforced(loaded, probe));
                }
            }
            Err(fault) => findings.push(Finding {
                place: "llm".to_owned(),
                level: Level::Error,
                code: fault.code,
                message: fault.message,
                remedy: String::new(),
            }),
        }
    }
    (found, findings)
}

/// Tests what the functions of the scenes depend on: a line each, and what is wrong.
async fn dependencies(scenes: &[Scene]) -> (Vec<String>, Vec<Finding>) {
    let (tools, mut lines, mut findings) = (shipped::tools(), Vec::new(), Vec::new());
    for scene in scenes {
        let Some(dependencies) = tools.dependencies(&scene.name) else { continue };
        for DependencyReport { name, outcome } in dependencies.check(&scene.settings).await {
            let place = format!("{}: {name}", scene.name);
            match outcome {
                Ok(remarks) if remarks.is_empty() => lines.push(format!("{place}: can be used")),
                Ok(remarks) => {
                    lines.extend(remarks.into_iter().map(|remark| format!("{place}: {remark}")));
                }
                Err(ToolError { code, message, .. }) => {
                    findings.push(Finding {
                        place,
                        level: Level::Error,
                        code,
                        message,
                        remedy: String::new(),
                    });
                }
            }
        }
    }
    (lines, findings)
}

/// Why a model gives no reply at all, however it is forced.
fn silence(probe: &Probe) -> Option<&Fault> {
    let mut faults = probe.tried.iter().map(|tried| match &tried.worked {
        Worked::No(fault) if fault.code.starts_with("llm.") => Some(fault),
        _ => None,
    });
    let first = faults.next()??;
    faults.all(|fault| fault.is_some_and(|fault| fault.code == first.code)).then_some(first)
}

/// A model that gives no reply or embedding, or cannot be forced in the configured way.
fn unforced(loaded: &LoadedConfig, probe: &Probe) -> Option<Finding> {
    if let Some(Err(fault)) = &probe.embedding {
        let (place, code) = (format!("model {}", probe.model), fault.code.clone());
        let (message, remedy) = (fault.message.clone(), String::new());
        return Some(Finding { place, level: Level::Error, code, message, remedy });
    }
    let model = loaded.config.llm.models.iter().find(|model| model.name == probe.model)?;
    let tried = probe.tried.iter().find(|tried| tried.forcing == model.forcing)?;
    let Worked::No(fault) = &tried.worked else { return None };
    let place = format!("model {}", probe.model);
    if let Some(Fault { code, message, .. }) = silence(probe) {
        let (code, message, remedy) = (code.clone(), message.clone(), String::new());
        return Some(Finding { place, level: Level::Error, code, message, remedy });
    }
    let (level, remedy) = match probe.recommended {
        Some(forcing) => (Level::Warning, format!("set `forcing = \"{forcing}\"` in its [[llm.models]]")),
        None => (Level::Error, "use another model, or another server for it".to_owned()),
    };
    Some(Finding {
        place,
        level,
        code: "llm.forcing".to_owned(),
        message: format!("it is not forced by \"{}\": {} ({})", model.forcing, fault.message, fault.code),
        remedy,
    })
}

async fn probe(loaded: &LoadedConfig) -> Result<Vec<Probe>, Fault> {
    let gateway = Gateway::new(loaded.config.llm.clone(), Arc::new(OfflineModel))?;
    Ok(gateway.probe().await?)
}

fn finding(fault: &scene::SceneFault) -> Finding {
    Finding {
        place: match fault.line {
            Some(line) => format!("{}:{line}", fault.file),
            None => fault.file.clone(),
        },
        level: match fault.severity {
            scene::Severity::Error => Level::Error,
            scene::Severity::Warning => Level::Warning,
        },
        code: fault.code.clone(),
        message: fault.message.clone(),
        remedy: fault.remedy.clone(),
    }
}

fn failure(fault: Fault) -> Failure {
    Failure::new(&fault.code, fault.message).for_commands()
}

/// The failure of a refused command; the message has what the user had not seen.
fn refused(refused: CommandRefusal) -> Failure {
    let failure = failure(refused.fault);
    match failure.code.as_str() {
        "approval.changed" => failure.help("look at it again, and say which version you approve"),
        "approval.own_request" => failure.help("another user has to decide: use --user NAME"),
        _ => failure,
    }
}

struct Ready {
    engine: Arc<Engine>,
    asking: Asking,
    /// The documents that each message is about.
    documents: Vec<DocumentId>,
}

impl Ready {
    fn tenant(&self) -> TenantId {
        self.engine.default_principal().0
    }

    /// The plan that consists of a flow.
    fn flow_plan(&self, flow: &str, message: &str) -> Result<Plan, Failure> {
        let catalogue = self.engine.catalogue();
        match catalogue.flow(flow) {
            Some(_) => Ok(Plan::of_flow(flow, message)),
            None => Err(flows::unknown(flow, catalogue.flows().map(|flow| flow.name.as_str()))),
        }
    }

    /// A resumed run, followed from behind the event `last_seen`, or else from the last decision.
    async fn taken_up(
        &self,
        run: RunId,
        watch: Option<RunWatch>,
        last_seen: Option<u64>,
    ) -> Result<CommandedRun, Failure> {
        let tenant = self.tenant();
        let mut stored = self.engine.events_of(&tenant, run).await.map_err(failure)?;
        let session = stored.first().map(|event| event.session.clone());
        let session = session.ok_or_else(|| super::stored_runs::unknown(run))?;
        let last_seen = last_seen.unwrap_or_else(|| assistant::before_decided(&stored));
        let news = stored.split_off(stored.partition_point(|event| event.seq <= last_seen));
        let engine = self.engine.clone();
        Ok(CommandedRun {
            engine,
            tenant,
            run,
            session,
            last_seen,
            before: stored,
            stored: news.into(),
            watch,
        })
    }
}

#[async_trait(?Send)]
impl Assistant for Ready {
    async fn ask(
        &self,
        message: &str,
        session: Option<SessionId>,
    ) -> Result<Box<dyn assistant::FollowedTicket>, Failure> {
        let (options, guidance) = (self.asking.options, self.asking.guidance.guidance());
        let plan = self.asking.flow_for(message).map(|flow| self.flow_plan(flow, message)).transpose()?;
        let documents = self.documents.clone();
        let request =
            ChatRequest { options, guidance, plan, documents, ..self.engine.request(message, session) };
        let ticket = self.engine.submit(request).await.map_err(failure)?;
        if consent::parse_consent(message).is_some() {
            // It may have decided an open question: the run is then an earlier one that resumes.
            let watch = Some(ticket.watch());
            return Ok(Box::new(self.taken_up(ticket.run, watch, None).await?));
        }
        Ok(Box::new(PendingRun(ticket)))
    }

    async fn draft(
        &self,
        message: &str,
        signals: &mut Signals,
        mut errors: &mut dyn Write,
    ) -> Result<PrintedDraft, Failure> {
        let plan = self.asking.flow.as_ref().map(|flow| self.flow_plan(flow, message)).transpose()?;
        let guidance = self.asking.guidance.guidance();
        let request = ChatRequest { plan_only: true, plan, guidance, ..self.engine.request(message, None) };
        let mut stop_signal = None;
        let submitted = async { self.engine.submit(request).await.map_err(failure) };
        let ticket = until_done(submitted, signals, &mut stop_signal, &mut errors).await?;
        let answer = follow(Box::new(PendingRun(ticket)), signals, stop_signal, Show::Quiet, &mut errors)
            .await?
            .answer;
        match (answer.plan, answer.error) {
            _ if answer.status == RunStatus::Cancelled => {
                Err(Failure::new("plan.cancelled", "the run that was to make the plan is cancelled"))
            }
            (_, Some(error)) => Err(failure(error)),
            (Some(plan), None) => {
                let state = self.engine.run(&self.tenant(), answer.run_id).await.map_err(failure)?;
                let flows = answer.steps.into_iter().filter_map(|step| step.flow).collect();
                Ok(PrintedDraft { task_id: answer.task_id, plan, flows, usage: state.usage })
            }
            (None, None) => Err(Failure::new("plan.none", "no plan could be made")),
        }
    }

    async fn stop(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.engine.shut_down().await?)
    }
}

#[async_trait(?Send)]
impl CommandExecutor for Ready {
    async fn state(&self, run: RunId) -> Result<RunState, Failure> {
        let state = self.engine.state_of(&self.tenant(), run).await.map_err(failure)?;
        state.ok_or_else(|| super::stored_runs::unknown(run))
    }

    async fn command(
        &self,
        of: CommandTarget,
        command: CommandWithNote,
    ) -> Result<Box<dyn assistant::FollowedTicket>, Failure> {
        let (tenant, by) = self.engine.default_principal();
        let last_seen = self.state(of.run).await?.seq;
        let command = Command { note: command.note, ..Command::new(by, command.action) };
        self.engine.command(&tenant, of.run, command).await.map_err(refused)?;
        // Subscribed before the journal is read, so that no event is missed.
        let watch = self.engine.watch(&tenant, of.run);
        Ok(Box::new(self.taken_up(of.run, watch, Some(last_seen)).await?))
    }
}

/// A run that executes a command.
struct CommandedRun {
    engine: Arc<Engine>,
    tenant: TenantId,
    run: RunId,
    session: SessionId,
    /// The sequence number of the last event that was returned.
    last_seen: u64,
    before: Vec<Envelope<Event>>,
    stored: VecDeque<Envelope<Event>>,
    /// The subscription while it is active.
    watch: Option<RunWatch>,
}

#[async_trait(?Send)]
impl assistant::FollowedTicket for CommandedRun {
    fn session(&self) -> SessionId {
        self.session.clone()
    }

    fn before(&mut self) -> Vec<Envelope<Event>> {
        std::mem::take(&mut self.before)
    }

    async fn next(&mut self) -> Option<Envelope<Event>> {
        loop {
            let event = match self.stored.pop_front() {
                Some(stored) => stored,
                None => self.watch.as_mut()?.next().await?.as_ref().clone(),
            };
            if event.seq > self.last_seen {
                self.last_seen = event.seq;
                return Some(event);
            }
        }
    }

    async fn cancel(&self, by: &str) {
        // A run that has ended has nothing to stop.
        if let Some(watch) = &self.watch {
            watch.cancel(by);
        }
    }

    async fn answer(self: Box<Self>) -> Result<Answer, Failure> {
        self.engine.wait(&self.tenant, self.run).await.map_err(failure)
    }
}

struct PendingRun(proscenium::RunTicket);

#[async_trait(?Send)]
impl assistant::FollowedTicket for PendingRun {
    fn session(&self) -> SessionId {
        self.0.session.clone()
    }

    async fn next(&mut self) -> Option<Envelope<Event>> {
        self.0.next().await.map(|event| event.as_ref().clone())
    }

    async fn cancel(&self, by: &str) {
        self.0.cancel(by).await;
    }

    async fn answer(self: Box<Self>) -> Result<Answer, Failure> {
        self.0.answer().await.map_err(failure)
    }
}

/// The results of a probe, a line each.
fn lines(probe: &Probe) -> Vec<String> {
    if let Some(fault) = silence(probe) {
        return vec![format!("no reply ({})", fault.code)];
    }
    match &probe.embedding {
        Some(Ok(dimensions)) => return vec![format!("embeds texts in {dimensions} dimensions")],
        Some(Err(fault)) => return vec![format!("no embedding ({})", fault.code)],
        None => {}
    }
    let mut lines: Vec<String> = probe
        .tried
        .iter()
        .map(|tried| {
            let went = match &tried.worked {
                Worked::Exactly => "works".to_owned(),
                Worked::Understood => "works, with deviations that the server can read".to_owned(),
                Worked::No(fault) => format!("does not work: {} ({})", fault.message, fault.code),
            };
            format!("forcing = \"{}\" {went} [{} ms]", tried.forcing, tried.millis)
        })
        .collect();
    lines.push(match probe.recommended {
        Some(forcing) => format!("use forcing = \"{forcing}\""),
        None => "no way of forcing works: this model cannot plan".to_owned(),
    });
    lines
}

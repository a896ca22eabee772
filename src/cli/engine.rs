//! The engine behind the commands.

use std::sync::Arc;

use async_trait::async_trait;
use proscenium::config::Loaded;
use proscenium::llm::{Gateway, Probe, Worked, offline::Offline};
use proscenium::run::{Envelope, Event, Fault, SessionId};
use proscenium::{Answer, Builder, ChatRequest, Engine, StartError, scene};

use super::assistant::{self, Assistant, Draft};
use super::check::{self, Finding, Found, Level};
use super::failure::Failure;
use crate::shipped;

/// The engine with the scenes that the program ships.
fn builder(loaded: &Loaded) -> Builder {
    Engine::builder(loaded.config.clone()).native_tools(shipped::tools()).builtin_scenes(&shipped::FOLDERS)
}

/// Starts an engine for a terminal.
pub async fn start(loaded: Loaded) -> Result<Box<dyn Assistant>, Failure> {
    Ok(Box::new(Ready(engine(loaded).await?)))
}

/// Starts an engine.
pub async fn engine(loaded: Loaded) -> Result<Engine, Failure> {
    builder(&loaded).start().await.map_err(failed)
}

/// Why an engine did not start, or did not take another configuration.
pub fn failed(error: StartError) -> Failure {
    match error {
        StartError::Scenes(faults) => {
            let list: Vec<String> = faults.iter().map(ToString::to_string).collect();
            Failure::usage("scene.faults", list.join("\n"))
                .help("`proscenium check` shows every fault with its remedy")
        }
        StartError::Store(error) => Failure::new(error.code(), error.to_string()),
        StartError::Other(fault) => failure(fault),
    }
}

/// The scenes there are now, with nothing started.
pub fn catalogue(loaded: &Loaded) -> Result<scene::Catalogue, Failure> {
    let found = builder(loaded).load_scenes();
    if found.failed() {
        return Err(failed(StartError::Scenes(found.faults)));
    }
    Ok(scene::Catalogue::new(found.scenes))
}

/// Looks at the scenes, and with `live` asks the models.
pub async fn inspect(loaded: &Loaded, live: bool) -> (Found, Vec<Finding>) {
    let scenes = builder(loaded).load_scenes();
    let mut findings: Vec<Finding> = scenes.faults.iter().map(finding).collect();
    let mut found = Found::of(loaded);
    found.scenes = scenes.scenes.iter().map(check::scene).collect();
    if live {
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

/// A model that cannot be forced in the configured way.
fn unforced(loaded: &Loaded, probe: &Probe) -> Option<Finding> {
    let model = loaded.config.llm.models.iter().find(|model| model.name == probe.model)?;
    let tried = probe.tried.iter().find(|tried| tried.forcing == model.forcing)?;
    let Worked::No(fault) = &tried.worked else { return None };
    let (level, remedy) = match probe.recommended {
        Some(forcing) => (Level::Warning, format!("set `forcing = \"{forcing}\"` in its [[llm.models]]")),
        None => (Level::Error, "use another model, or another server for it".to_owned()),
    };
    Some(Finding {
        place: format!("model {}", probe.model),
        level,
        code: "llm.forcing".to_owned(),
        message: format!("it is not forced by \"{}\": {} ({})", model.forcing, fault.message, fault.code),
        remedy,
    })
}

async fn probe(loaded: &Loaded) -> Result<Vec<Probe>, Fault> {
    let gateway = Gateway::new(loaded.config.llm.clone(), Arc::new(Offline))?;
    Ok(gateway.probe().await?)
}

fn finding(fault: &scene::Fault) -> Finding {
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
    Failure::new(&fault.code, fault.message)
}

struct Ready(Engine);

#[async_trait(?Send)]
impl Assistant for Ready {
    async fn ask(
        &self,
        message: &str,
        session: Option<SessionId>,
    ) -> Result<Box<dyn assistant::Ticket>, Failure> {
        let ticket = self.0.submit(self.0.request(message, session)).await.map_err(failure)?;
        Ok(Box::new(Waiting(ticket)))
    }

    async fn draft(&self, message: &str) -> Result<Draft, Failure> {
        let request = ChatRequest { plan_only: true, ..self.0.request(message, None) };
        let answer = self.0.chat(request).await.map_err(failure)?;
        match (answer.plan, answer.error) {
            (Some(plan), _) => {
                let state =
                    self.0.run(&self.0.request("", None).tenant, answer.run_id).await.map_err(failure)?;
                Ok(Draft { task_id: answer.task_id, plan, usage: state.usage })
            }
            (None, Some(error)) => Err(failure(error)),
            (None, None) => Err(Failure::new("plan.none", "no plan could be made")),
        }
    }

    async fn stop(self: Box<Self>) -> Result<(), Failure> {
        self.0.stop().await.map_err(|error| Failure::new(error.code(), error.to_string()))
    }
}

struct Waiting(proscenium::Ticket);

#[async_trait(?Send)]
impl assistant::Ticket for Waiting {
    fn session(&self) -> SessionId {
        self.0.session.clone()
    }

    async fn next(&mut self) -> Option<Envelope<Event>> {
        self.0.next().await.map(|told| told.as_ref().clone())
    }

    async fn cancel(&self, by: &str) {
        self.0.cancel(by).await;
    }

    async fn answer(self: Box<Self>) -> Result<Answer, Failure> {
        self.0.answer().await.map_err(failure)
    }
}

/// What a probe found, a line each.
fn lines(probe: &Probe) -> Vec<String> {
    let mut lines: Vec<String> = probe
        .tried
        .iter()
        .map(|tried| {
            let went = match &tried.worked {
                Worked::Exactly => "works".to_owned(),
                Worked::Understood => "works, with liberties that are understood".to_owned(),
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

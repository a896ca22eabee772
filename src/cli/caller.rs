//! `chat` and `plan` while a server owns the data directory: the server answers, and its runs are shown as if
//! they were executed here.

use std::io::Write;

use async_trait::async_trait;
use proscenium::config::{LoadedConfig, ValueOrigin};
use proscenium::plan::{Plan, TaskId};
use proscenium::planner::consent;
use proscenium::run::{DocumentId, RunId, RunState, SessionId, Usage};
use proscenium::{AnswerFlow, AnswerUsage};
use reqwest::{Method, Response};
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::address::{self, ServerRecord};
use super::args::Asking;
use super::assistant::{
    Assistant, CommandExecutor, CommandTarget, CommandWithNote, FollowedTicket, PrintedDraft, before_decided,
};
use super::document_file::DocumentFile;
use super::failure::Failure;
use super::follow::LEFT;
use super::followed_run::FollowedRun;
use super::remote::RemoteServer;
use super::settings;
use super::signals::Signals;
use super::stored_runs;

/// Sends requests to the server that owns the data directory.
pub struct ServerClient {
    server: RemoteServer,
    asking: Asking,
    /// The documents that each message is about.
    documents: Vec<DocumentId>,
}

impl ServerClient {
    /// A client of the server that owns the data directory; `owned` is the store's error that says so.
    /// `as_user` says that the command line names the user.
    ///
    /// # Errors
    /// `owned` if the owner is not a server; `document.file` and the server's refusal of a document; `usage.user`, `usage.config`, `usage.scenes` and `usage.environment`
    /// if the command line or the environment sets what only the server's own can set.
    pub async fn new(
        loaded: &LoadedConfig,
        owned: Failure,
        asking: Asking,
        as_user: bool,
    ) -> Result<Self, Failure> {
        let address = address::find(&loaded.config.store.data_dir, owned)?;
        same_flags(loaded, &address)?;
        let stored = stored_runs::open(loaded).await?;
        let server = RemoteServer::at(address.url, stored, as_user)?;
        let mut documents = Vec::new();
        for path in &asking.documents {
            documents.push(server.add_document(DocumentFile::open(path, None)?).await?.id);
        }
        Ok(Self { server, asking, documents })
    }
}

/// A server uses the configuration that it was started with. A different one here is an error, before
/// anything is requested.
fn same_flags(loaded: &LoadedConfig, address: &ServerRecord) -> Result<(), Failure> {
    let refuse = |code: &str, flag: &str, theirs: Option<&std::path::Path>| {
        let theirs = theirs.map_or_else(|| "none".to_owned(), |path| path.display().to_string());
        let what = format!(
            "the server at {} owns the data directory and answers with its own {flag} ({theirs}), not with the one given here",
            address.url
        );
        Err(Failure::usage(code, what).help(format!(
            "leave {flag} out, give the server's own, or name another directory with --data-dir"
        )))
    };
    let file = loaded.sources.values().find_map(|origin| match origin {
        ValueOrigin::File { path, .. } => Some(address::whole(path)),
        _ => None,
    });
    if file.is_some() && file != address.config {
        return refuse("usage.config", "--config", address.config.as_deref());
    }
    let named = match loaded.sources.get("scenes.dir") {
        Some(ValueOrigin::Flag(_)) => Some("--scenes"),
        Some(ValueOrigin::Variable(name)) => Some(name.as_str()),
        _ => None,
    };
    let scenes = loaded.config.scenes.dir.as_deref().map(address::whole);
    if let Some(named) = named
        && scenes != address.scenes
    {
        return refuse("usage.scenes", named, address.scenes.as_deref());
    }
    let Some(asked) = &address.asked else { return Ok(()) };
    let differing = settings::differing(loaded, &asked.values);
    if differing.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = differing.iter().map(|(key, name)| format!("{name} (`{key}`)")).collect();
    let what = format!(
        "the server at {} owns the data directory and answers with its own configuration, which differs in: {}",
        address.url,
        names.join(", ")
    );
    Err(Failure::usage("usage.environment", what)
        .help("unset it here, start the server with it, or name another directory with --data-dir"))
}

/// The accepted run, from a reply.
fn run_of(response: &Response) -> Option<RunId> {
    response.headers().get("x-run-id")?.to_str().ok()?.parse().ok()
}

/// The error of a user who did not wait for the server's draft.
fn left_draft() -> Failure {
    Failure::new(LEFT, "left before the end; the server makes the plan and does not execute it")
        .help("`proscenium plans list` shows it")
}

/// The server's reply to a request for a draft.
#[derive(Deserialize)]
struct Drafted {
    task_id: TaskId,
    plan: Plan,
    #[serde(default)]
    flows: Vec<AnswerFlow>,
    usage: AnswerUsage,
}

#[async_trait(?Send)]
impl Assistant for ServerClient {
    async fn ask(
        &self,
        message: &str,
        session: Option<SessionId>,
    ) -> Result<Box<dyn FollowedTicket>, Failure> {
        // Named here: a conversation without a name would not be kept there.
        let session = match session {
            Some(session) => session,
            None => SessionId::new(&Uuid::now_v7().to_string())
                .map_err(|error| Failure::new("session.id", error.to_string()))?,
        };
        let mut body = json!({
            "messages": [{"role": "user", "content": message}],
            "session_id": session,
            "stream": true,
            "require_approval": self.asking.options.require_approval,
            "dry_run": self.asking.options.dry_run,
            "level": self.asking.options.level,
            "mode": self.asking.options.mode,
            "flow": self.asking.flow_for(message),
            "constraints": self.asking.guidance.constraints,
            "current_state": self.asking.guidance.current_state,
        });
        // A server of an earlier release refuses fields that it does not know.
        if !self.documents.is_empty() {
            body["documents"] = json!(self.documents);
        }
        let response = self.server.stream("/api/chat", &body).await?;
        let Some(run) = run_of(&response) else {
            return Err(Failure::new("server.reply", "the server did not say which run it began"));
        };
        let mut before = Vec::new();
        if consent::parse_consent(message).is_some()
            && let Ok(journal) = self.server.stored().journal(run).await
        {
            // It may have decided what waited: the run is then an earlier one, taken up again.
            let last_decided = before_decided(&journal);
            before.extend(journal.into_iter().take_while(|event| event.seq <= last_decided));
        }
        Ok(Box::new(FollowedRun::new(self.server.clone(), run, session, before, Some(response))))
    }

    async fn draft(
        &self,
        message: &str,
        signals: &mut Signals,
        _: &mut dyn Write,
    ) -> Result<PrintedDraft, Failure> {
        let mut body = json!({"message": message});
        // A server of an earlier release refuses fields that it does not know.
        if let Some(flow) = &self.asking.flow {
            body["flow"] = json!(flow);
        }
        if let Some(state) = &self.asking.guidance.current_state {
            body["current_state"] = state.clone();
        }
        let response = tokio::select! {
            biased;
            response = self.server.send(Method::POST, "/api/planning/plan", Some(&body)) => response?,
            // Its reply is the first that says which run it is.
            _ = signals.next() => return Err(left_draft()),
        };
        let Drafted { task_id, plan, flows, usage } = self.server.read(response).await?;
        let usage = Usage {
            calls: usage.llm_calls,
            input_tokens: usage.input_tokens,
            cached_input_tokens: usage.cached_input_tokens,
            output_tokens: usage.output_tokens,
            cost_nano_usd: (usage.cost_usd * 1e9).round() as u64,
        };
        Ok(PrintedDraft { task_id, plan, flows, usage })
    }

    async fn stop(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

#[async_trait(?Send)]
impl CommandExecutor for ServerClient {
    async fn state(&self, run: RunId) -> Result<RunState, Failure> {
        self.server.state(run).await
    }

    async fn command(
        &self,
        of: CommandTarget,
        command: CommandWithNote,
    ) -> Result<Box<dyn FollowedTicket>, Failure> {
        self.server.command(of, command).await
    }
}

#[cfg(test)]
mod tests;

//! The server that owns the data directory: what people want is sent to it, and runs are then followed in
//! the store, which can be read beside it.

use std::time::Duration;

use async_trait::async_trait;
use proscenium::UploadedDocument;
use proscenium::planner::{ApproverChoice, CommandAction};
use proscenium::run::{ApprovalId, RunId, RunState};
use proscenium::store::ErrorCode;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Body, Client, ClientBuilder, Method, RequestBuilder, Response};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::assistant::{CommandExecutor, CommandTarget, CommandWithNote, FollowedTicket};
use super::document_file::DocumentFile;
use super::failure::Failure;
use super::followed_run::FollowedRun;
use super::stored_runs::StoredRuns;

/// The environment variable with the key that is shown to a server.
pub const KEY: &str = "PROSCENIUM_API_KEY";

/// The remedy for a missing or invalid key.
pub const KEY_HELP: &str =
    "set PROSCENIUM_API_KEY to a key of this server; `proscenium keys create` makes one";

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of a reply: a plan may be made again meanwhile, or a run may end.
const REPLY_TIMEOUT: Duration = Duration::from_secs(600);
/// Timeout until a stream of events begins.
const STREAM_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest reply that is read, in bytes.
const MAX_REPLY_BYTES: usize = 64 * 1024 * 1024;

/// The remedy if it is unknown whether a request was carried out.
const UNKNOWN_OUTCOME_HELP: &str = "what was sent may have been carried out: `proscenium runs list` shows it";

/// Returns whether a command failed because another process owns the data directory.
pub fn is_owned(failure: &Failure) -> bool {
    failure.code == ErrorCode::InUse.as_str()
}

/// The API key from the environment, if any.
pub fn key() -> Option<SecretString> {
    let key = std::env::var(KEY).ok().filter(|key| !key.trim().is_empty());
    key.map(|key| SecretString::from(key.trim().to_owned()))
}

/// A client of the server at an address: on this machine or in its network, so no proxy is used.
pub fn client_builder(url: &str) -> ClientBuilder {
    let client = Client::builder().no_proxy().connect_timeout(CONNECT_TIMEOUT);
    // Where nothing is encrypted on the way, the system's root certificates need not be read.
    if url.starts_with("http://") { client.tls_certs_only([]) } else { client }
}

/// A stream of a run's events.
pub enum RemoteStream {
    /// The stream is open.
    Open(Response),
    /// The server did not open the stream.
    Refused,
    /// Nothing listens at its address.
    Unreachable,
}

/// A server, and the store that it works with.
#[derive(Clone)]
pub struct RemoteServer {
    client: Client,
    url: String,
    key: Option<SecretString>,
    stored: StoredRuns,
}

impl RemoteServer {
    /// The server at `url`. `as_user` says that the command line names who asks.
    ///
    /// # Errors
    /// `usage.user` if it does: a server identifies the user by the key. `server.client` if no HTTP client can be
    /// created.
    pub fn at(url: String, stored: StoredRuns, as_user: bool) -> Result<Self, Failure> {
        if as_user {
            let what =
                format!("the server at {url} owns the data directory, and identifies users by their keys");
            return Err(Failure::usage("usage.user", what)
                .help(format!("leave --user out, and set {KEY} to a key of that user")));
        }
        let client = client_builder(&url)
            .build()
            .map_err(|error| Failure::new("server.client", format!("no HTTP client: {error}")))?;
        Ok(Self { client, url, key: key(), stored })
    }

    /// The runs in its store.
    pub fn stored(&self) -> &StoredRuns {
        &self.stored
    }

    /// Asks a run to stop at its next safe point.
    pub async fn cancel(&self, run: RunId) -> Result<(), Failure> {
        self.send(Method::POST, &format!("/api/runs/{run}/cancel"), Some(&json!({}))).await.map(drop)
    }

    /// Opens the server's event stream of a run, from behind the event `last_seen`. The stream is open for as
    /// long as the run is active.
    pub async fn events(&self, run: RunId, last_seen: u64) -> RemoteStream {
        let request = self.request(Method::GET, &format!("/api/runs/{run}/events"));
        let sent = request.header("last-event-id", format!("{last_seen}.0")).send();
        match tokio::time::timeout(STREAM_TIMEOUT, sent).await {
            Ok(Ok(response)) if response.status().is_success() => RemoteStream::Open(response),
            Ok(Err(error)) if error.is_connect() => RemoteStream::Unreachable,
            // It may be at its limits or hang, but it is there.
            Ok(_) | Err(_) => RemoteStream::Refused,
        }
    }

    /// The error if the server exited before the run had ended, or does not resume it.
    pub async fn gone(&self, run: RunId) -> Failure {
        let url = &self.url;
        let (code, what) = if self.stored.is_owned().await {
            (
                "run.not_under_way",
                format!("the server at {url} does not resume run {run}, which has not ended"),
            )
        } else {
            ("server.gone", format!("the server at {url} is gone, and run {run} has not ended"))
        };
        Failure::new(code, what)
            .help("the next `proscenium serve` continues it; `proscenium runs list` shows how far it got")
    }

    /// Deletes a plan with its run.
    pub async fn delete(&self, of: CommandTarget) -> Result<(), Failure> {
        self.send(Method::DELETE, &format!("/api/plans/{}", of.task), None).await.map(drop)
    }

    /// Adds a file to the documents of the key's user.
    pub async fn add_document(&self, file: DocumentFile) -> Result<UploadedDocument, Failure> {
        let name: String = form_urlencoded::byte_serialize(file.name.as_bytes()).collect();
        let media = file.media.name();
        let request = self.request(Method::POST, &format!("/api/documents?name={name}"));
        let request = request.header(CONTENT_TYPE, media).body(Body::wrap_stream(file.pieces()));
        let response = self.sent(request.timeout(REPLY_TIMEOUT)).await?;
        self.read(response).await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.url));
        match &self.key {
            Some(key) => request.bearer_auth(key.expose_secret()),
            None => request,
        }
    }

    /// Sends a request; a reply with an error status is a failure.
    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Response, Failure> {
        let mut request = self.request(method, path).timeout(REPLY_TIMEOUT);
        if let Some(body) = body {
            request = request.json(body);
        }
        self.sent(request).await
    }

    /// The same for a reply that comes for as long as a run is under way.
    pub async fn stream(&self, path: &str, body: &Value) -> Result<Response, Failure> {
        let sent = self.sent(self.request(Method::POST, path).json(body));
        tokio::time::timeout(REPLY_TIMEOUT, sent).await.unwrap_or_else(|_| {
            let what =
                format!("the server at {} did not reply within {} s", self.url, REPLY_TIMEOUT.as_secs());
            Err(Failure::new("server.reply", what).help(UNKNOWN_OUTCOME_HELP))
        })
    }

    async fn sent(&self, request: RequestBuilder) -> Result<Response, Failure> {
        let response = request.send().await.map_err(|error| self.silent(&error))?;
        if response.status().is_success() { Ok(response) } else { Err(self.refusal(response).await) }
    }

    /// The document in a reply.
    pub async fn read<T: DeserializeOwned>(&self, response: Response) -> Result<T, Failure> {
        read(response).await.map_err(|why| {
            let what = format!("the reply of the server at {} is not understood: {why}", self.url);
            Failure::new("server.reply", what)
        })
    }

    fn silent(&self, error: &reqwest::Error) -> Failure {
        let url = &self.url;
        if error.is_connect() {
            let what =
                format!("the server at {url}, which owns the data directory, does not answer: {error}");
            return Failure::new("server.unreachable", what)
                .help("see whether it runs; once it has ended, this command works without it");
        }
        let what = format!("the server at {url} did not reply as it should: {error}");
        Failure::new("server.reply", what).help(UNKNOWN_OUTCOME_HELP)
    }

    /// Why it did not do what it was asked, from its problem document.
    async fn refusal(&self, response: Response) -> Failure {
        let status = response.status();
        let problem: Value = match read(response).await {
            Ok(problem) => problem,
            Err(why) => {
                let what = format!("the server at {} replied with {status}: {why}", self.url);
                return Failure::new("server.reply", what);
            }
        };
        let text = |name: &str| problem[name].as_str().unwrap_or_default().to_owned();
        let code = match text("code") {
            code if code.is_empty() => "server.reply".to_owned(),
            code => code,
        };
        let mut message = text("detail");
        // Lines that the message does not have already.
        for line in problem["difference"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !message.contains(line) {
                message.push('\n');
                message.push_str(line);
            }
        }
        with_remedy(Failure::new(&code, format!("{message} (the server at {})", self.url)))
    }
}

/// A refusal of the server with what a user of the command line can do about it.
fn with_remedy(failure: Failure) -> Failure {
    match failure.code.as_str() {
        "auth.missing" | "auth.key" | "auth.expired" => failure.help(KEY_HELP),
        "plan.version_required" => failure.help("`proscenium plans show` shows the plan in force"),
        "approval.changed" => failure.help("look at it again, and say which version you approve"),
        "approval.own_request" => {
            failure.help(format!("another user has to decide, with their own key in {KEY}"))
        }
        // These messages say where all are listed.
        "flow.unknown" | "fact.unknown" => failure,
        code if code.ends_with(".unknown") || code.ends_with(".not_found") => failure.help(
            "a key reaches only what belongs to its tenant; without a key, that is the server's own tenant",
        ),
        _ => failure.for_commands(),
    }
}

async fn read<T: DeserializeOwned>(response: Response) -> Result<T, String> {
    let bytes = bytes(response, MAX_REPLY_BYTES).await?;
    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
}

/// The body of a reply of at most `longest` bytes.
pub async fn bytes(mut response: Response, longest: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| error.to_string())? {
        if bytes.len() + chunk.len() > longest {
            return Err(format!("its reply has more than {longest} bytes"));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// The path and body of the request that executes a command.
fn command_request(of: CommandTarget, command: &CommandWithNote) -> Result<(String, Value), Failure> {
    let CommandTarget { run, task } = of;
    let note = |name: &str| vec![(name.to_owned(), json!(command.note))];
    let seen = |version: Option<u32>| ("version".to_owned(), json!(version));
    let (path, mut fields) = match &command.action {
        CommandAction::Approve { version, hash, hold } => {
            let fields =
                vec![seen(*version), ("hash".to_owned(), json!(hash)), ("execute".to_owned(), json!(!hold))];
            (format!("/api/plans/{task}/approve"), [fields, note("note")].concat())
        }
        CommandAction::Modify { words, version } => {
            (format!("/api/plans/{task}/modify"), vec![("feedback".to_owned(), json!(words)), seen(*version)])
        }
        CommandAction::Edit { plan, version } => {
            let fields = vec![("plan".to_owned(), json!(plan)), seen(*version)];
            (format!("/api/plans/{task}/modify"), [fields, note("why")].concat())
        }
        CommandAction::Cancel => (format!("/api/plans/{task}/cancel"), note("why")),
        CommandAction::Rate { score } => {
            let fields = vec![("score".to_owned(), json!(score))];
            (format!("/api/plans/{task}/rating"), [fields, note("note")].concat())
        }
        CommandAction::Reopen => (format!("/api/plans/{task}/resume"), Vec::new()),
        CommandAction::Decide { approval, choice, hash } => {
            let (decision, arguments) = match choice {
                ApproverChoice::Yes => ("yes", None),
                ApproverChoice::No => ("no", None),
                ApproverChoice::Edited(arguments) => ("yes", Some(arguments)),
                // A change in words is sent as a message of the conversation, not as a command.
                ApproverChoice::Words(_) => ("words", None),
                ApproverChoice::Done => ("done", None),
                ApproverChoice::NotDone => ("not_done", None),
                ApproverChoice::Again => ("again", None),
            };
            let fields = vec![
                ("decision".to_owned(), json!(decision)),
                ("arguments".to_owned(), json!(arguments)),
                ("hash".to_owned(), json!(hash)),
            ];
            let id = ApprovalId { run, approval: *approval };
            (format!("/api/approvals/{id}"), [fields, note("note")].concat())
        }
        CommandAction::Expire { .. } => {
            return Err(Failure::usage("approval.choice", "an approval expires by itself"));
        }
    };
    fields.retain(|(_, value)| !value.is_null());
    Ok((path, Value::Object(fields.into_iter().collect::<Map<_, _>>())))
}

#[async_trait(?Send)]
impl CommandExecutor for RemoteServer {
    async fn state(&self, run: RunId) -> Result<RunState, Failure> {
        Ok(self.stored.run(run).await?.1)
    }

    async fn command(
        &self,
        of: CommandTarget,
        command: CommandWithNote,
    ) -> Result<Box<dyn FollowedTicket>, Failure> {
        let (before, _) = self.stored.run(of.run).await?;
        let (path, body) = command_request(of, &command)?;
        self.send(Method::POST, &path, Some(&body)).await?;
        let session = before.first().map(|event| event.session.clone());
        let session = session.ok_or_else(|| super::stored_runs::unknown(of.run))?;
        let last_seen = before.last().map_or(0, |event| event.seq);
        let alive = match self.events(of.run, last_seen).await {
            RemoteStream::Open(alive) => Some(alive),
            RemoteStream::Refused | RemoteStream::Unreachable => None,
        };
        Ok(Box::new(FollowedRun::new(self.clone(), of.run, session, before, alive)))
    }
}

#[cfg(test)]
mod tests {
    use proscenium::plan::Plan;
    use proscenium::run::PlanScore;

    use super::super::recorded;
    use super::*;

    #[test]
    fn remedy_fits_what_the_server_does_not_know() {
        let remedy = |code: &str| with_remedy(Failure::new(code, "unknown")).remedy.unwrap_or_default();
        assert_eq!(remedy("flow.unknown"), "", "its message says where all are listed");
        for code in ["plan.unknown", "run.unknown", "document.unknown"] {
            assert!(remedy(code).starts_with("a key reaches only what belongs to its tenant"), "{code}");
        }
    }

    #[test]
    fn each_command_has_its_path_and_only_the_given_fields() {
        let of = CommandTarget { run: recorded::run_id(), task: recorded::task_id() };
        let plan =
            Plan { needs_execution: false, reasoning: String::new(), steps: Vec::new(), ..Plan::default() };
        let request = |action: CommandAction, note: Option<&str>| {
            command_request(of, &CommandWithNote { action, note: note.map(str::to_owned) }).unwrap()
        };
        let plans = |what: &str| format!("/api/plans/{}/{what}", of.task);
        assert_eq!(
            request(CommandAction::Approve { version: Some(2), hash: None, hold: true }, Some("fine")),
            (plans("approve"), json!({"version": 2, "execute": false, "note": "fine"}))
        );
        assert_eq!(
            request(CommandAction::Modify { words: "two days".to_owned(), version: None }, None),
            (plans("modify"), json!({"feedback": "two days"}))
        );
        assert_eq!(
            request(CommandAction::Edit { plan: plan.clone(), version: Some(1) }, Some("less")),
            (plans("modify"), json!({"plan": plan, "version": 1, "why": "less"}))
        );
        assert_eq!(request(CommandAction::Cancel, None), (plans("cancel"), json!({})));
        assert_eq!(
            request(CommandAction::Rate { score: PlanScore::Bad }, Some("wrong day")),
            (plans("rating"), json!({"score": -1, "note": "wrong day"}))
        );
        assert_eq!(request(CommandAction::Reopen, None), (plans("resume"), json!({})));
        let choice = ApproverChoice::Edited(json!({"to": "2026-06-16"}));
        assert_eq!(
            request(CommandAction::Decide { approval: 3, choice, hash: Some("h".to_owned()) }, None),
            (
                format!("/api/approvals/{}.3", of.run),
                json!({"decision": "yes", "arguments": {"to": "2026-06-16"}, "hash": "h"})
            )
        );
    }
}

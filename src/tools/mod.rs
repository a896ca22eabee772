//! Tools: the trait, its context and errors, and each kind of tool.
//!
//! **Invariant:** a tool learns the requester's identity from its context, never from the session.

pub mod bound;
mod documents;
pub mod guard;
pub mod http;
pub mod phrase;
pub mod python;
pub(crate) mod summary;
pub mod tables;
#[cfg(test)]
pub(crate) mod testing;

use std::collections::BTreeMap;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use tables::{CommitTerms, TableSession, TenantTables};

use crate::program::Interpreter;
use crate::run::{FaultClass, RunId, SessionId, TenantId};
use crate::sentences::FailureKind;
use crate::staged::SceneTables;
use crate::trace_context::TraceParent;

pub use documents::{DocumentSource, RunDocuments, ToolDocument};

/// A tool, called with JSON arguments that were validated against its schema.
#[async_trait]
pub trait Tool: Send + Sync {
    /// Executes the call. An error says whether the call may have taken effect, see [`ToolError`].
    async fn call(&self, context: ToolContext, arguments: Value) -> Result<Value, ToolError>;
}

/// The requester: from the API key, or the configured default user on loopback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The tenant that is charged.
    pub tenant: TenantId,
    /// The user's name in the company's directory.
    pub user: String,
}

/// The context of a tool call, beside its arguments.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// The requester.
    pub principal: Principal,
    /// The frozen local time of the run, with its time zone: what "today" means.
    pub now: jiff::Zoned,
    /// The user's language, ISO 639-1, where known.
    pub language: Option<String>,
    /// The session.
    pub session: SessionId,
    /// The run.
    pub run: RunId,
    /// The step.
    pub step: u32,
    /// The idempotency key, for writes only. Derived from run, step and ordinal, and the same in every
    /// attempt.
    pub idempotency_key: Option<String>,
    /// The scene's data.
    pub store: SceneStore,
    /// The documents that the request named.
    pub documents: RunDocuments,
    /// An HTTP client that cannot reach private addresses unless the configuration allows it.
    pub http: reqwest::Client,
    /// What executes tools in Python. None where there is no sandbox.
    pub interpreter: Option<Arc<dyn Interpreter>>,
    /// The scene's settings: `[settings]` of its `scene.toml`, with those of the configuration merged in.
    pub settings: Value,
    /// Fires when the run is cancelled: a read may stop, a write should complete.
    pub cancelled: CancellationToken,
    /// The span of this call, for the header `traceparent` of what the tool requests; `None` without traces.
    pub trace_parent: Option<TraceParent>,
}

impl ToolContext {
    /// Deserializes the scene's settings; the type's defaults if there are none. `scene` is named in the
    /// error message, which is for operators: users read that the service is not available.
    ///
    /// # Errors
    /// `code`, if the settings do not fit the type.
    pub fn settings_as<T: DeserializeOwned + Default>(
        &self,
        scene: &str,
        code: &str,
    ) -> Result<T, ToolError> {
        parse_settings(&self.settings, scene, code)
            .map_err(|error| error.saying(FailureKind::Unavailable.sentence(self.language.as_deref())))
    }
}

/// Deserializes the settings of a scene; the type's defaults if there are none. The error message names the setting.
///
/// # Errors
/// `code`, if the settings do not fit the type.
pub fn parse_settings<T: DeserializeOwned + Default>(
    settings: &Value,
    scene: &str,
    code: &str,
) -> Result<T, ToolError> {
    if settings.is_null() {
        return Ok(T::default());
    }
    serde_path_to_error::deserialize(settings).map_err(|error| {
        let at = match error.path().to_string() {
            whole if whole == "." => String::new(),
            key => format!(".{key}"),
        };
        let why = error.inner();
        ToolError::failed(
            code,
            format!("`scenes.settings.{scene}{at}` of the configuration is invalid: {why}"),
        )
    })
}

/// A scene's tables, defined by its `schema.sql`, in the one SQLite file of the data directory. The scene's
/// statements have to separate the rows of different tenants. Tables that its `scene.toml` declares are read and
/// changed with [`ToolContext::tables`].
#[derive(Debug, Clone)]
pub struct SceneStore {
    pool: sqlx::SqlitePool,
    /// The scene's name and the tables that it declares.
    tables: Option<(String, Arc<SceneTables>)>,
}

impl SceneStore {
    /// Creates a store over an open pool.
    pub fn new(pool: sqlx::SqlitePool) -> Self {
        Self { pool, tables: None }
    }

    /// The same store with the tables that a scene declares.
    #[must_use]
    pub fn with_tables(self, scene: &str, tables: Arc<SceneTables>) -> Self {
        Self { tables: Some((scene.to_owned(), tables)), ..self }
    }

    /// The pool, for `sqlx` queries and transactions. A transaction that reads before it writes must begin
    /// with `BEGIN IMMEDIATE`.
    pub fn pool(&self) -> &sqlx::SqlitePool {
        &self.pool
    }
}

/// Why a tool gave no result, and whether the call may have taken effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// Whether the call took effect.
    pub kind: ToolErrorKind,
    /// A stable code, such as `vacation.overlap`.
    pub code: String,
    /// The problem and what is expected, for the model; and for the user, unless `say` is given.
    pub message: String,
    /// The sentence for end users, in their language.
    pub say: Option<String>,
    /// The status of the HTTP response, if there was one.
    pub status: Option<u16>,
    /// The kind of failure.
    pub class: FaultClass,
    /// The delay after which a retry may succeed, where known.
    pub retry_after: Option<Duration>,
}

/// The kind of a tool's error: whether the failed call took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolErrorKind {
    /// The tool refused the call; it had no effect.
    Refused,
    /// The call failed and had no effect.
    Failed,
    /// The call may have taken effect.
    Unknown,
}

impl ToolError {
    fn new(kind: ToolErrorKind, code: &str, message: String) -> Self {
        Self {
            kind,
            code: code.to_owned(),
            message,
            say: None,
            status: None,
            class: FaultClass::Other,
            retry_after: None,
        }
    }

    /// The tool refused the call; it had no effect.
    pub fn refused(code: &str, message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Refused, code, message.into())
    }

    /// The call failed and had no effect.
    pub fn failed(code: &str, message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Failed, code, message.into())
    }

    /// The same error with the sentence for end users, in their language.
    #[must_use]
    pub fn saying(self, say: impl Into<String>) -> Self {
        Self { say: Some(say.into()), ..self }
    }

    /// The same error with the kind of failure.
    #[must_use]
    pub fn classed(self, class: FaultClass) -> Self {
        Self { class, ..self }
    }

    /// The same error with the delay after which a retry may succeed.
    #[must_use]
    pub fn after(self, retry_after: Option<Duration>) -> Self {
        Self { retry_after, ..self }
    }

    /// The call may have taken effect.
    pub fn unknown(code: &str, message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Unknown, code, message.into())
    }
}

/// Only a database error during a commit leaves the effect unknown; tools that write have to map that case
/// themselves.
impl From<sqlx::Error> for ToolError {
    fn from(error: sqlx::Error) -> Self {
        use sqlx::Error::{Io, Protocol, Tls, WorkerCrashed};
        let message = format!("the scene's data could not be read or written: {error}");
        // The connection broke, perhaps after a commit was sent.
        let error = match error {
            Io(_) | Tls(_) | Protocol(_) | WorkerCrashed => Self::unknown("store.error", message),
            _ => Self::failed("store.error", message),
        };
        error.classed(FaultClass::Unavailable)
    }
}

/// The things that the functions of a scene depend on, such as databases.
#[async_trait]
pub trait Dependencies: Send + Sync {
    /// Tests each of them as `settings`, the scene's settings, say. It changes nothing.
    async fn check(&self, settings: &Value) -> Vec<DependencyReport>;
}

/// How a dependency of a scene was found.
#[derive(Debug)]
pub struct DependencyReport {
    /// Its name in the settings of the scene.
    pub name: String,
    /// Remarks for the person who runs the server, or why it cannot or must not be used.
    pub outcome: Result<Vec<String>, ToolError>,
}

/// Tools written in Rust, by the name that a `scene.toml` uses in `native = "…"`.
#[derive(Clone, Default)]
pub struct NativeTools {
    by_name: BTreeMap<String, Arc<dyn Tool>>,
    dependencies: BTreeMap<String, Arc<dyn Dependencies>>,
    settings: BTreeMap<String, SettingsCheck>,
}

/// Says what is wrong with the settings of a scene.
type SettingsCheck = fn(&Value) -> Result<(), ToolError>;

impl NativeTools {
    /// Creates an empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers a tool under `name`, replacing an earlier one.
    #[must_use]
    pub fn with(mut self, name: &str, tool: impl Tool + 'static) -> Self {
        self.by_name.insert(name.to_owned(), Arc::new(tool));
        self
    }

    /// Registers what `check --live` tests for a scene or flow, replacing what was registered before.
    #[must_use]
    pub fn with_dependencies(mut self, scene: &str, dependencies: impl Dependencies + 'static) -> Self {
        self.dependencies.insert(scene.to_owned(), Arc::new(dependencies));
        self
    }

    /// Registers how `check` tests the settings of a scene or flow, replacing what was registered before.
    #[must_use]
    pub fn with_settings(mut self, scene: &str, check: fn(&Value) -> Result<(), ToolError>) -> Self {
        self.settings.insert(scene.to_owned(), check);
        self
    }

    /// Tests the settings of a scene or flow. Those of a scene that registered no test pass.
    ///
    /// # Errors
    /// What is wrong, with the setting.
    pub fn check_settings(&self, scene: &str, settings: &Value) -> Result<(), ToolError> {
        self.settings.get(scene).map_or(Ok(()), |check| check(settings))
    }

    /// Returns what `check --live` tests for this scene or flow.
    pub fn dependencies(&self, scene: &str) -> Option<Arc<dyn Dependencies>> {
        self.dependencies.get(scene).cloned()
    }

    /// The tool called `name`.
    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.by_name.get(name).cloned()
    }

    /// All names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
}

impl std::fmt::Debug for NativeTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// An async function as a tool: `native(|arguments: Forecast, context| async move { … })`. The JSON
/// arguments are deserialized into the argument type.
pub fn native<A, F, R>(function: F) -> impl Tool
where
    A: DeserializeOwned + Send + 'static,
    F: Fn(A, ToolContext) -> R + Send + Sync,
    R: Future<Output = Result<Value, ToolError>> + Send,
{
    NativeTool { function, arguments: PhantomData }
}

struct NativeTool<A, F> {
    function: F,
    arguments: PhantomData<fn(A)>,
}

#[async_trait]
impl<A, F, R> Tool for NativeTool<A, F>
where
    A: DeserializeOwned + Send + 'static,
    F: Fn(A, ToolContext) -> R + Send + Sync,
    R: Future<Output = Result<Value, ToolError>> + Send,
{
    async fn call(&self, context: ToolContext, arguments: Value) -> Result<Value, ToolError> {
        let arguments = serde_json::from_value(arguments).map_err(|e| {
            ToolError::refused("tool.arguments", format!("the arguments do not fit: {e}"))
                .classed(FaultClass::BadData)
        })?;
        (self.function)(arguments, context).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn user_reads_nothing_of_wrong_settings() {
        let context = ToolContext { settings: serde_json::json!({"days": "many"}), ..testing::context() };
        let wrong = context.settings_as::<BTreeMap<String, u32>>("Leave", "leave.settings").unwrap_err();
        assert!(wrong.message.contains("`scenes.settings.Leave.days`"), "{wrong}");
        assert_eq!(
            wrong.say.as_deref(),
            Some("Il servizio al momento non è disponibile: riprova più tardi.")
        );
    }
}

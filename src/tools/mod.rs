//! Tools: what a tool is, what it is given, what it may answer, and each kind of tool.
//!
//! **Invariant:** a tool learns who asks from its context, never from the conversation.

pub mod bound;
pub mod guard;
pub mod http;
pub mod phrase;
#[cfg(test)]
pub(crate) mod testing;

use std::collections::BTreeMap;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::run::{RunId, SessionId, TenantId};

/// Something that can be called with JSON arguments that were checked against its schema.
#[async_trait]
pub trait Tool: Send + Sync {
    /// Does it. An error says whether anything may have been done, see [`ToolError`].
    async fn call(&self, context: ToolContext, arguments: Value) -> Result<Value, ToolError>;
}

/// Who asks: from the API key, or the configured default user on loopback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// Who pays.
    pub tenant: TenantId,
    /// The user's name in the company's directory.
    pub user: String,
}

/// What a tool gets beside its arguments.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// Who asks.
    pub principal: Principal,
    /// The frozen local time of the run, with its time zone: what "today" means.
    pub now: jiff::Zoned,
    /// The user's language, ISO 639-1, where known.
    pub language: Option<String>,
    /// The conversation.
    pub session: SessionId,
    /// The run.
    pub run: RunId,
    /// The step.
    pub step: u32,
    /// For writes: the key under which doing it twice is doing it once. Derived from run, step and
    /// ordinal; the same in every attempt.
    pub idempotency_key: Option<String>,
    /// The scene's data.
    pub store: SceneStore,
    /// An HTTP client that cannot reach private addresses unless the configuration allows it.
    pub http: reqwest::Client,
    /// The scene's settings: `[settings]` of its `scene.toml`, overlaid by the configuration.
    pub settings: Value,
    /// Fires when the run was cancelled: a read may stop, a write ends what it began.
    pub cancelled: CancellationToken,
}

impl ToolContext {
    /// The scene's settings as a type of its own, with its defaults where nothing is set. `code` and
    /// `scene` are named where they do not fit.
    ///
    /// # Errors
    /// `code`, where the settings do not fit the type.
    pub fn settings_as<T: DeserializeOwned + Default>(
        &self,
        scene: &str,
        code: &str,
    ) -> Result<T, ToolError> {
        if self.settings.is_null() {
            return Ok(T::default());
        }
        T::deserialize(&self.settings).map_err(|error| {
            let message = format!("`scenes.settings.{scene}` of the configuration does not fit: {error}");
            ToolError::failed(code, message)
        })
    }
}

/// A scene's own tables, in the one SQLite file of the data directory. The tables are those of the
/// scene's `schema.sql`; rows of different tenants are kept apart by the scene's own statements.
#[derive(Debug, Clone)]
pub struct SceneStore {
    pool: sqlx::SqlitePool,
}

impl SceneStore {
    /// A store over an open pool.
    pub fn new(pool: sqlx::SqlitePool) -> Self {
        Self { pool }
    }

    /// The pool, for `sqlx` queries and transactions. A transaction that reads before it writes
    /// begins with `BEGIN IMMEDIATE`.
    pub fn pool(&self) -> &sqlx::SqlitePool {
        &self.pool
    }
}

/// Why a tool gave no result, and whether anything may have been done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// Whether anything was done.
    pub kind: ToolErrorKind,
    /// Stable code, such as `vacation.overlap`.
    pub code: String,
    /// What was wrong and what would be right, for the model and the user.
    pub message: String,
}

/// Whether anything was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolErrorKind {
    /// The tool said no and did nothing.
    Refused,
    /// It did not work and nothing was done.
    Failed,
    /// It may have been done.
    Unknown,
}

impl ToolError {
    /// The tool says no and did nothing.
    pub fn refused(code: &str, message: impl Into<String>) -> Self {
        Self { kind: ToolErrorKind::Refused, code: code.to_owned(), message: message.into() }
    }

    /// It did not work and nothing was done.
    pub fn failed(code: &str, message: impl Into<String>) -> Self {
        Self { kind: ToolErrorKind::Failed, code: code.to_owned(), message: message.into() }
    }

    /// It may have been done.
    pub fn unknown(code: &str, message: impl Into<String>) -> Self {
        Self { kind: ToolErrorKind::Unknown, code: code.to_owned(), message: message.into() }
    }
}

/// A database error says nothing of whether the statement took effect only when it struck a commit;
/// tools that write map that case themselves.
impl From<sqlx::Error> for ToolError {
    fn from(error: sqlx::Error) -> Self {
        Self::failed("store.error", format!("the scene's data could not be read or written: {error}"))
    }
}

/// Tools written in Rust, by the name that a `scene.toml` gives in `native = "…"`.
#[derive(Clone, Default)]
pub struct NativeTools {
    by_name: BTreeMap<String, Arc<dyn Tool>>,
}

impl NativeTools {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds (or replaces) one under `name`.
    #[must_use]
    pub fn with(mut self, name: &str, tool: impl Tool + 'static) -> Self {
        self.by_name.insert(name.to_owned(), Arc::new(tool));
        self
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

/// An async function as a tool: `native(|arguments: Forecast, context| async move { … })`, where the
/// arguments' type is what `serde` reads from the JSON.
pub fn native<A, F, R>(function: F) -> impl Tool
where
    A: DeserializeOwned + Send + 'static,
    F: Fn(A, ToolContext) -> R + Send + Sync,
    R: Future<Output = Result<Value, ToolError>> + Send,
{
    Native { function, arguments: PhantomData }
}

struct Native<A, F> {
    function: F,
    arguments: PhantomData<fn(A)>,
}

#[async_trait]
impl<A, F, R> Tool for Native<A, F>
where
    A: DeserializeOwned + Send + 'static,
    F: Fn(A, ToolContext) -> R + Send + Sync,
    R: Future<Output = Result<Value, ToolError>> + Send,
{
    async fn call(&self, context: ToolContext, arguments: Value) -> Result<Value, ToolError> {
        let arguments = serde_json::from_value(arguments)
            .map_err(|e| ToolError::refused("tool.arguments", format!("the arguments do not fit: {e}")))?;
        (self.function)(arguments, context).await
    }
}

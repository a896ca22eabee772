//! What VacationManagement promises. The clock stands at Monday, 4 May 2026, 9 o'clock in Rome.

mod cancelling;
mod making;
mod reading;
mod sequences;
mod texts;

use serde_json::{Value, json};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions};

use proscenium::run::{RunId, SessionId, TenantId};
use proscenium::tools::{
    NativeTools, Principal, RunDocuments, SceneStore, ToolContext, ToolError, ToolErrorKind,
};

/// A user at a database of their own.
#[derive(Clone)]
struct Asker {
    pool: sqlx::SqlitePool,
    http: reqwest::Client,
    tenant: &'static str,
    user: &'static str,
    now: &'static str,
    language: Option<&'static str>,
    settings: Value,
}

impl Asker {
    /// keysersoze, in memory.
    async fn new() -> Self {
        let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await.unwrap();
        Self::at(pool).await
    }

    /// keysersoze, at a file that several connections share.
    async fn on_disk(directory: &std::path::Path) -> Self {
        let options = SqliteConnectOptions::new()
            .filename(directory.join("test.db"))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal);
        Self::at(SqlitePoolOptions::new().max_connections(4).connect_with(options).await.unwrap()).await
    }

    async fn at(pool: sqlx::SqlitePool) -> Self {
        // Twice: it is run at every start.
        for _ in 0..2 {
            sqlx::raw_sql(include_str!("schema.sql")).execute(&pool).await.unwrap();
        }
        let now = "2026-05-04T09:00:00+02:00[Europe/Rome]";
        let http = reqwest::Client::new();
        Self { pool, http, tenant: "acme", user: "keysersoze", now, language: None, settings: json!({}) }
    }

    fn as_user(&self, user: &'static str) -> Self {
        Self { user, ..self.clone() }
    }

    fn context(&self, key: Option<&str>) -> ToolContext {
        ToolContext {
            principal: Principal { tenant: TenantId::new(self.tenant).unwrap(), user: self.user.to_owned() },
            now: self.now.parse().unwrap(),
            language: self.language.map(str::to_owned),
            session: SessionId::new("s").unwrap(),
            run: RunId(uuid::Uuid::now_v7()),
            step: 1,
            idempotency_key: key.map(str::to_owned),
            store: SceneStore::new(self.pool.clone()),
            documents: RunDocuments::default(),
            http: self.http.clone(),
            interpreter: None,
            settings: self.settings.clone(),
            cancelled: tokio_util::sync::CancellationToken::new(),
            trace_parent: None,
        }
    }

    async fn with_key(&self, key: Option<&str>, tool: &str, arguments: Value) -> Result<Value, ToolError> {
        let tools = super::register(NativeTools::new());
        tools.get(&format!("vacation.{tool}")).unwrap().call(self.context(key), arguments).await
    }

    /// A call with a key that no other call has.
    async fn call(&self, tool: &str, arguments: Value) -> Result<Value, ToolError> {
        self.with_key(Some(&uuid::Uuid::now_v7().to_string()), tool, arguments).await
    }

    async fn ok(&self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments).await.unwrap()
    }

    async fn book(&self, from: &str, to: &str) -> Result<Value, ToolError> {
        self.call("make_request", json!({"from": from, "to": to})).await
    }

    /// The error of a call that must do nothing.
    async fn refused(&self, tool: &str, arguments: Value) -> ToolError {
        let before = self.rows().await;
        let error = self.call(tool, arguments).await.unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Refused, "{error}");
        assert_eq!(self.rows().await, before, "a refused call changes nothing");
        error
    }

    /// Days left in a year.
    async fn left(&self, year: i16) -> i64 {
        self.ok("get_balance", json!({"year": year})).await["remaining_days"].as_i64().unwrap()
    }

    /// All requests of everybody: user, days, whether cancelled.
    async fn rows(&self) -> Vec<(String, String, String, bool)> {
        let sql =
            "SELECT user, first_day, last_day, cancelled_at IS NOT NULL FROM vacation_requests ORDER BY id";
        sqlx::query_as(sql).fetch_all(&self.pool).await.unwrap()
    }
}

//! The databases that are open: each is opened at its first question, and closed when it was not used for long.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};
use proscenium::run::FaultClass;
use proscenium::sql_engine::{
    QueryLimits, SqlDatabase, SqlDatabaseKind, SqlDatabaseSettings, SqlEngineError, SqlErrorCode,
};
use proscenium::tools::{Dependencies, DependencyReport, SceneStore, ToolContext, ToolError};
use secrecy::SecretString;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::description_file::{described, unknown_sensitive};
use super::known_values::add_known_values;
use super::phrases::Speech;
use super::rules::Vocabularies;
use super::rules::description::DatabaseDescription;
use super::settings::{AskPolicy, DatabaseEntry, DatabaseSource, SETTINGS, TextToSqlSettings};

/// Databases that are open at the same time; the one that was not used for longest is closed for another.
const MAX_OPEN: usize = 16;
/// How long a database is used before it is opened again, so that changes of its tables are seen.
const MAX_AGE: Duration = Duration::from_secs(600);
/// Bytes of a cell that is returned.
const MAX_CELL_CHARS: usize = 2_000;
/// Bytes of a description file.
const MAX_DESCRIPTION_BYTES: u64 = 4 * 1024 * 1024;

/// The sample database, which is a part of the program.
const SHOP_SQL: &str = include_str!("data/shop.sql");
/// What its tables are called.
const SHOP_WORDS: &str = include_str!("data/shop.toml");

/// A database that is open, with what is known of it.
#[derive(Debug)]
pub struct KnownDatabase {
    /// Its name in the settings.
    pub name: String,
    /// The engine.
    pub database: SqlDatabase,
    /// What it holds.
    pub description: DatabaseDescription,
    /// What the rules call it all.
    pub names: Vocabularies,
}

#[cfg(test)]
impl KnownDatabase {
    /// Opens a database of the settings as its first question does.
    pub(super) async fn open(name: &str, settings: &TextToSqlSettings) -> Self {
        let entry = settings.databases.get(name).expect("it is in the settings");
        match opened(name, entry, settings, None).await {
            Ok(known) => known,
            Err(error) => panic!("{name}: {}", error.into_tool_error(Speech::of(None)).message),
        }
    }
}

/// A database that is being opened. Everyone who needs it waits for the same attempt, so many questions at once make no
/// more connections than one.
type OpeningFuture = BoxFuture<'static, Result<Arc<KnownDatabase>, OpenError>>;

/// The open databases, by name and settings, with the moment of their last use.
#[derive(Debug, Default)]
pub struct OpenDatabases {
    open: Mutex<OpenTable>,
}

#[derive(Debug, Default)]
struct OpenTable {
    used: u64,
    known: BTreeMap<String, OpenEntry>,
    /// The attempts that somebody waits for.
    opening: BTreeMap<String, WeakShared<OpeningFuture>>,
}

#[derive(Debug)]
struct OpenEntry {
    /// Counts uses: a larger number is a later use.
    used: u64,
    opened: Instant,
    database: Arc<KnownDatabase>,
}

impl OpenDatabases {
    /// The database that a call is about.
    ///
    /// # Errors
    /// `text_to_sql.settings`, `text_to_sql.unknown_database`, or why it cannot be opened (`sql.engine.…`).
    pub async fn of(
        &self,
        context: &ToolContext,
        settings: &TextToSqlSettings,
        named: Option<&str>,
    ) -> Result<Arc<KnownDatabase>, ToolError> {
        let (name, entry) = settings.database(context.principal.tenant.as_str(), named)?;
        // Another entry of the same name, after a reload, is another database.
        let key = format!("{name}\n{entry:?}\n{:?}", settings.ask);
        if let Some(known) = self.lock().found(&key) {
            return Ok(known);
        }
        let own = own_file(&context.store).await?;
        let opening = {
            let mut table = self.lock();
            if let Some(known) = table.found(&key) {
                return Ok(known);
            }
            table.join(&key, || open_together(name, entry, settings, own))
        };
        let outcome = opening.await;
        if let Ok(known) = &outcome {
            self.lock().keep(key, known);
        }
        outcome.map_err(|error| error.into_tool_error(Speech::of(context.language.as_deref())))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, OpenTable> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenTable {
    fn found(&mut self, key: &str) -> Option<Arc<KnownDatabase>> {
        self.used += 1;
        let entry = self.known.get_mut(key).filter(|entry| entry.opened.elapsed() < MAX_AGE)?;
        entry.used = self.used;
        Some(Arc::clone(&entry.database))
    }

    /// The attempt to open a database that others wait for, or a new one.
    fn join(&mut self, key: &str, begin: impl FnOnce() -> Shared<OpeningFuture>) -> Shared<OpeningFuture> {
        let current = self.opening.get(key).and_then(WeakShared::upgrade);
        current.unwrap_or_else(|| {
            self.opening.retain(|_, opening| opening.upgrade().is_some());
            let opening = begin();
            self.opening.extend(opening.downgrade().map(|weak| (key.to_owned(), weak)));
            opening
        })
    }

    fn keep(&mut self, key: String, database: &Arc<KnownDatabase>) {
        if self.known.get(&key).is_some_and(|entry| Arc::ptr_eq(&entry.database, database)) {
            return;
        }
        while self.known.len() >= MAX_OPEN && !self.known.contains_key(&key) {
            let oldest = self.known.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { break };
            self.known.remove(&oldest);
        }
        let database = Arc::clone(database);
        self.known.insert(key, OpenEntry { used: self.used, opened: Instant::now(), database });
    }
}

/// Why a database cannot be opened.
#[derive(Debug, Clone)]
enum OpenError {
    Tool(ToolError),
    Engine(SqlEngineError),
}

impl OpenError {
    fn into_tool_error(self, speech: Speech) -> ToolError {
        match self {
            // Its message names keys, files and columns, which are for the operator.
            Self::Tool(error) if error.code == SETTINGS => error.saying(speech.database_unavailable()),
            Self::Tool(error) => error,
            Self::Engine(error) => engine_error(&error, speech),
        }
    }
}

impl From<ToolError> for OpenError {
    fn from(error: ToolError) -> Self {
        Self::Tool(error)
    }
}

impl From<SqlEngineError> for OpenError {
    fn from(error: SqlEngineError) -> Self {
        Self::Engine(error)
    }
}

/// An error of an engine as one of a tool: with its code, and a neutral sentence for the user.
pub fn engine_error(error: &SqlEngineError, speech: Speech) -> ToolError {
    let class = match error.code {
        SqlErrorCode::Connection | SqlErrorCode::Busy => FaultClass::Unavailable,
        SqlErrorCode::Timeout => FaultClass::Timeout,
        SqlErrorCode::Authentication | SqlErrorCode::Role | SqlErrorCode::Permission => FaultClass::Denied,
        _ => FaultClass::Other,
    };
    ToolError::failed(error.code.as_str(), error.to_string())
        .classed(class)
        .saying(speech.database_unavailable())
}

/// Tests the databases of the settings for `check --live`. The sample is a part of the program.
pub struct ConfiguredDatabases;

#[async_trait]
impl Dependencies for ConfiguredDatabases {
    async fn check(&self, settings: &Value) -> Vec<DependencyReport> {
        let settings = match TextToSqlSettings::parse(settings) {
            Ok(settings) => settings,
            Err(error) => return vec![DependencyReport { name: "settings".into(), outcome: Err(error) }],
        };
        let mut reports = Vec::new();
        for (name, entry) in &settings.databases {
            let outcome = match entry.source(name) {
                Ok(DatabaseSource::Sample("shop")) => Ok(vec!["the sample of the program".to_owned()]),
                _ => checked(name, entry, &settings).await,
            };
            reports.push(DependencyReport { name: name.clone(), outcome });
        }
        reports
    }
}

async fn checked(
    name: &str,
    entry: &DatabaseEntry,
    settings: &TextToSqlSettings,
) -> Result<Vec<String>, ToolError> {
    let told = |error: OpenError| error.into_tool_error(Speech::of(None));
    let known = opened(name, entry, settings, None).await.map_err(told)?;
    known.database.check_live().await.map_err(|error| told(error.into()))
}

/// An attempt to open a database, which several callers may wait for.
fn open_together(
    name: &str,
    entry: &DatabaseEntry,
    settings: &TextToSqlSettings,
    own: Option<PathBuf>,
) -> Shared<OpeningFuture> {
    let (name, entry, settings) = (name.to_owned(), entry.clone(), settings.clone());
    async move { opened(&name, &entry, &settings, own).await.map(Arc::new) }.boxed().shared()
}

/// Opens a database. `own` is the file of the product's own data, which is never opened as one.
async fn opened(
    name: &str,
    entry: &DatabaseEntry,
    settings: &TextToSqlSettings,
    own: Option<PathBuf>,
) -> Result<KnownDatabase, OpenError> {
    let mut words = DatabaseDescription::default();
    let kind = match entry.source(name)? {
        DatabaseSource::Sample("shop") => {
            words = parsed(SHOP_WORDS, "shop.toml")?;
            SqlDatabaseKind::Sqlite { path: sample_file("shop", SHOP_SQL, own.as_deref()).await? }
        }
        DatabaseSource::Sample(other) => {
            let message = format!("there is no sample database {other:?}; the only one is \"shop\"");
            return Err(ToolError::failed(SETTINGS, message).into());
        }
        DatabaseSource::SqliteFile(path) => SqlDatabaseKind::Sqlite { path: path.clone() },
        DatabaseSource::PostgresVariable(variable) => SqlDatabaseKind::Postgres { url: address(variable)? },
        DatabaseSource::PostgresAddress(address) => {
            SqlDatabaseKind::Postgres { url: SecretString::from(address) }
        }
    };
    if let Some(path) = &entry.descriptions {
        words = description_file(path).await?;
    }
    let mut asked = SqlDatabaseSettings::new(name, kind);
    if !entry.schemas.is_empty() {
        asked.schemas.clone_from(&entry.schemas);
    }
    asked.withheld.clone_from(&entry.withheld);
    asked.forbidden_paths = own.into_iter().collect();
    asked.limits = limits(settings);
    let database = SqlDatabase::open(asked).await?;
    let schema = database.schema();
    for omitted in &schema.omitted {
        tracing::warn!(database = name, table = %omitted.name, why = %omitted.why, "a table is left out");
    }
    if let Some(written) = unknown_sensitive(&schema, entry) {
        let message = format!(
            "`databases.{name}.sensitive` names {written}, which the database does not have: write `table` or `table.column`, as it names them"
        );
        return Err(ToolError::failed(SETTINGS, message).into());
    }
    let mut description = described(name, &schema, &words, entry);
    // Where a person approves every table, none is read before.
    if settings.ask == AskPolicy::Sensitive {
        add_known_values(&database, &mut description).await;
    }
    let names = Vocabularies::of(&description);
    Ok(KnownDatabase { name: name.to_owned(), database, description, names })
}

/// The bounds of one query.
pub fn limits(settings: &TextToSqlSettings) -> QueryLimits {
    QueryLimits {
        max_rows: settings.max_rows,
        max_bytes: settings.max_bytes,
        max_cell_chars: MAX_CELL_CHARS,
        timeout_ms: settings.timeout_ms,
        ..QueryLimits::default()
    }
}

fn address(variable: &str) -> Result<SecretString, ToolError> {
    let found = std::env::var(variable).ok().filter(|address| !address.trim().is_empty());
    found.map(SecretString::from).ok_or_else(|| {
        let message = format!("the environment variable {variable}, which `url_env` names, is not set");
        ToolError::failed(SETTINGS, message)
    })
}

async fn description_file(path: &Path) -> Result<DatabaseDescription, ToolError> {
    let wrong = |why: String| {
        ToolError::failed(SETTINGS, format!("the descriptions in {} cannot be read: {why}", path.display()))
    };
    let size = tokio::fs::metadata(path).await.map_err(|error| wrong(error.to_string()))?.len();
    if size > MAX_DESCRIPTION_BYTES {
        return Err(wrong(format!("the file has more than {MAX_DESCRIPTION_BYTES} bytes")));
    }
    let text = tokio::fs::read_to_string(path).await.map_err(|error| wrong(error.to_string()))?;
    parsed(&text, &path.display().to_string())
}

/// What the tables of the sample database are called.
pub fn sample_words() -> DatabaseDescription {
    // A test reads the file: it is a part of the program.
    parsed(SHOP_WORDS, "shop.toml").unwrap_or_default()
}

fn parsed(text: &str, file: &str) -> Result<DatabaseDescription, ToolError> {
    toml::from_str(text)
        .map_err(|error| ToolError::failed(SETTINGS, format!("the descriptions in {file}: {error}")))
}

/// The product's own database file, if its data is in one.
async fn own_file(store: &SceneStore) -> Result<Option<PathBuf>, ToolError> {
    let rows: Vec<(i64, String, String)> =
        sqlx::query_as("PRAGMA database_list").fetch_all(store.pool()).await?;
    let main = rows.into_iter().find(|(_, name, _)| name == "main").map(|(_, _, file)| file);
    Ok(main.filter(|file| !file.is_empty()).map(PathBuf::from))
}

/// The file of a sample database. It is written beside the product's own file when it is not there yet, under a name that
/// changes with its content, and only ever opened read-only.
async fn sample_file(name: &str, script: &'static str, own: Option<&Path>) -> Result<PathBuf, ToolError> {
    let unusable = |why: String| {
        ToolError::failed("text_to_sql.sample", format!("the sample database cannot be made: {why}"))
    };
    let data = own.and_then(Path::parent).ok_or_else(|| unusable("there is no data directory".to_owned()))?;
    let folder = data.join("samples");
    let version = data_encoding::HEXLOWER.encode(Sha256::digest(script).get(..6).unwrap_or_default());
    let path = folder.join(format!("{name}-{version}.sqlite"));
    if tokio::fs::try_exists(&path).await.map_err(|error| unusable(error.to_string()))? {
        return Ok(path);
    }
    tokio::fs::create_dir_all(&folder).await.map_err(|error| unusable(error.to_string()))?;
    // Two processes may make it at once: each its own file, of which one stays.
    let draft = folder.join(format!("{name}-{version}.{}.tmp", uuid::Uuid::now_v7()));
    let made = written(&draft, script).await;
    let kept = match made {
        Ok(()) => tokio::fs::rename(&draft, &path).await.map_err(|error| unusable(error.to_string())),
        Err(error) => Err(unusable(error.to_string())),
    };
    if kept.is_err() {
        // What is left of the draft is of no use; that it cannot be removed changes nothing about the error.
        _ = tokio::fs::remove_file(&draft).await;
    }
    kept.map(|()| path)
}

async fn written(path: &Path, script: &'static str) -> Result<(), sqlx::Error> {
    use sqlx::{ConnectOptions as _, Connection as _, Executor as _};
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(sqlx::sqlite::SqliteJournalMode::Delete);
    let mut connection = options.connect().await?;
    let mut transaction = connection.begin().await?;
    transaction.execute(sqlx::raw_sql(script)).await?;
    transaction.commit().await?;
    connection.close().await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn questions_at_once_wait_for_one_attempt_and_a_failed_one_is_not_kept() {
        let dir = tempfile::tempdir().unwrap();
        let own = Some(dir.path().join("proscenium.db"));
        let settings = json!({"databases": {"shop": {"sample": "shop"}, "none": {"sqlite": "/nowhere"}}});
        let settings = TextToSqlSettings::parse(&settings).unwrap();
        let open = OpenDatabases::default();
        let join = |name: &str| {
            open.lock().join(name, || open_together(name, &settings.databases[name], &settings, own.clone()))
        };
        let all = futures::future::join_all((0..20).map(|_| join("shop"))).await;
        let first = all[0].as_ref().unwrap();
        assert!(all.iter().all(|one| Arc::ptr_eq(one.as_ref().unwrap(), first)));
        drop(join("none"));
        let failed = futures::future::join_all([join("none"), join("none")]).await;
        assert!(failed.iter().all(Result::is_err), "{failed:?}");
        assert!(open.lock().opening["none"].upgrade().is_none(), "the next question tries again");
    }

    #[tokio::test]
    async fn misspelt_sensitive_names_are_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("proscenium.db");
        let outcome = async |sensitive: Value| {
            let settings = json!({"databases": {"shop": {"sample": "shop", "sensitive": sensitive}}});
            let settings = TextToSqlSettings::parse(&settings).unwrap();
            let known = opened("shop", &settings.databases["shop"], &settings, Some(own.clone())).await;
            known.map(|_| ()).map_err(|error| error.into_tool_error(Speech::of(Some("en"))))
        };
        assert!(outcome(json!(["customers.EMAIL", "Payments"])).await.is_ok());
        for wrong in ["customers.emial", "costumers", "main.customers"] {
            let error = outcome(json!(["payments", wrong])).await.unwrap_err();
            let named = format!("`databases.shop.sensitive` names {wrong},");
            assert!(error.message.contains(&named), "{error:?}");
            // The user reads nothing about the settings.
            assert_eq!(error.say.as_deref(), Some("The database does not answer at the moment."));
        }
    }
}

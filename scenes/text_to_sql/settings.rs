//! The settings of the scene: which databases there are, and which tenant asks which.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use proscenium::tools::{ToolContext, ToolError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The code of settings that cannot be used.
pub const SETTINGS: &str = "text_to_sql.settings";
/// The code of a database that the tenant does not have.
const UNKNOWN_DATABASE: &str = "text_to_sql.unknown_database";

/// `[settings]` of the flow, with `[scenes.settings.text_to_sql]` of the configuration merged in.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextToSqlSettings {
    /// The databases of a tenant that `tenants` does not name; the first one is the usual one.
    #[serde(default)]
    pub default: Vec<String>,
    /// The databases of each tenant.
    #[serde(default)]
    pub tenants: BTreeMap<String, Vec<String>>,
    /// The databases, by name.
    #[serde(default)]
    pub databases: BTreeMap<String, DatabaseEntry>,
    /// When a person is asked which tables may be read.
    #[serde(default)]
    pub ask: AskPolicy,
    /// Rows of one answer.
    #[serde(default = "default_rows")]
    pub max_rows: usize,
    /// Bytes of one answer, as JSON.
    #[serde(default = "default_bytes")]
    pub max_bytes: usize,
    /// Milliseconds of one query.
    #[serde(default = "default_timeout")]
    pub timeout_ms: u64,
    /// Bytes of the description of tables up to which a model is given all of them.
    #[serde(default = "default_schema_bytes")]
    pub schema_bytes: usize,
}

/// When a person is asked which tables may be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskPolicy {
    /// Where a sensitive table or column would be read.
    #[default]
    Sensitive,
    /// Always.
    Always,
}

/// One database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatabaseEntry {
    /// The name of a sample database that is a part of the program: `shop`.
    pub sample: Option<String>,
    /// A file of SQLite.
    pub sqlite: Option<PathBuf>,
    /// The environment variable with the address of a PostgreSQL database.
    pub url_env: Option<String>,
    /// The address of a PostgreSQL database that needs no password, as over a local socket.
    pub url: Option<String>,
    /// PostgreSQL: the schemas whose tables are offered.
    #[serde(default)]
    pub schemas: Vec<String>,
    /// A file that describes the tables.
    pub descriptions: Option<PathBuf>,
    /// Tables (`table`) and columns (`table.column`) that a person has to approve, besides those of the descriptions.
    #[serde(default)]
    pub sensitive: Vec<String>,
    /// Columns (`table.column`) that are never read.
    #[serde(default)]
    pub withheld: Vec<String>,
}

/// Where a database is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseSource<'a> {
    /// A part of the program.
    Sample(&'a str),
    /// A file of SQLite.
    SqliteFile(&'a PathBuf),
    /// An environment variable with the address of a PostgreSQL database.
    PostgresVariable(&'a str),
    /// The address of a PostgreSQL database.
    PostgresAddress(&'a str),
}

fn default_rows() -> usize {
    200
}

fn default_bytes() -> usize {
    131_072
}

fn default_timeout() -> u64 {
    15_000
}

fn default_schema_bytes() -> usize {
    24_000
}

impl TextToSqlSettings {
    /// The settings of a call.
    ///
    /// # Errors
    /// `text_to_sql.settings`, with the key that is wrong.
    pub fn of(context: &ToolContext) -> Result<Self, ToolError> {
        Self::parse(&context.settings)
    }

    /// The settings of the flow as JSON.
    ///
    /// # Errors
    /// `text_to_sql.settings`, with the key that is wrong.
    pub fn parse(settings: &Value) -> Result<Self, ToolError> {
        let settings = Self::deserialize(settings)
            .map_err(|error| wrong(format!("`scenes.settings.text_to_sql` is invalid: {error}")))?;
        settings.checked()
    }

    fn checked(self) -> Result<Self, ToolError> {
        let named: BTreeSet<&String> = self.default.iter().chain(self.tenants.values().flatten()).collect();
        if let Some(unknown) = named.into_iter().find(|name| !self.databases.contains_key(*name)) {
            let known: Vec<&str> = self.databases.keys().map(String::as_str).collect();
            return Err(wrong(format!(
                "`scenes.settings.text_to_sql` names the database {unknown:?}, which is not in `databases`: {}",
                known.join(", ")
            )));
        }
        for (name, entry) in &self.databases {
            entry.source(name)?;
        }
        for (key, value, most) in [
            ("max_rows", self.max_rows, 10_000),
            ("max_bytes", self.max_bytes, 200_000),
            ("schema_bytes", self.schema_bytes, 200_000),
        ] {
            if value == 0 || value > most {
                return Err(wrong(format!("`scenes.settings.text_to_sql.{key}` must be from 1 to {most}")));
            }
        }
        if self.timeout_ms == 0 || self.timeout_ms > 25_000 {
            return Err(wrong("`scenes.settings.text_to_sql.timeout_ms` must be from 1 to 25000".to_owned()));
        }
        Ok(self)
    }

    /// The databases that a tenant may ask, the usual one first.
    fn databases_of(&self, tenant: &str) -> &[String] {
        self.tenants.get(tenant).unwrap_or(&self.default)
    }

    /// The database that a tenant's request is about: the one that it names, else the usual one.
    ///
    /// # Errors
    /// `text_to_sql.unknown_database`, if the tenant has no database of that name, or none at all. A database of
    /// another tenant is as unknown as one that does not exist.
    pub fn database(&self, tenant: &str, named: Option<&str>) -> Result<(&str, &DatabaseEntry), ToolError> {
        let own = self.databases_of(tenant);
        let found = match named {
            Some(named) => own.iter().find(|name| *name == named),
            None => own.first(),
        };
        let entry = found.and_then(|name| Some((name.as_str(), self.databases.get(name)?)));
        entry.ok_or_else(|| {
            let known = if own.is_empty() { "there is none".to_owned() } else { own.join(", ") };
            let what =
                named.map_or_else(|| "no database".to_owned(), |named| format!("no database {named:?}"));
            ToolError::refused(UNKNOWN_DATABASE, format!("{what} can be asked here; known: {known}"))
        })
    }
}

impl DatabaseEntry {
    /// Where the database called `name` is.
    ///
    /// # Errors
    /// `text_to_sql.settings`, if that is not said, or said twice.
    pub fn source(&self, name: &str) -> Result<DatabaseSource<'_>, ToolError> {
        let places = [
            self.sqlite.as_ref().map(DatabaseSource::SqliteFile),
            self.url_env.as_deref().map(DatabaseSource::PostgresVariable),
            self.url.as_deref().map(DatabaseSource::PostgresAddress),
        ];
        let at = format!("scenes.settings.text_to_sql.databases.{name}");
        let mut places = places.into_iter().flatten();
        let place = match (places.next(), places.next(), &self.sample) {
            (Some(place), None, _) => place,
            (None, _, Some(sample)) => DatabaseSource::Sample(sample),
            _ => {
                let needs = "needs one of `sqlite`, `url_env`, `url` and `sample`";
                return Err(wrong(format!("`{at}` {needs}")));
            }
        };
        match place {
            DatabaseSource::PostgresAddress(address) if has_password(address) => Err(wrong(format!(
                "`{at}.url` has a password: put the address into an environment variable and name it in `url_env`"
            ))),
            place => Ok(place),
        }
    }
}

/// Whether an address has a password, or may have one.
fn has_password(address: &str) -> bool {
    let after_scheme = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = after_scheme.split(['/', '?']).next().unwrap_or_default();
    let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
    user.contains(':') || address.to_ascii_lowercase().contains("password")
}

fn wrong(message: String) -> ToolError {
    ToolError::failed(SETTINGS, message)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn settings(value: Value) -> Result<TextToSqlSettings, ToolError> {
        TextToSqlSettings::deserialize(value).map_err(|error| wrong(error.to_string()))?.checked()
    }

    #[test]
    fn tenant_has_its_own_databases_and_no_others() {
        let databases =
            json!({"shop": {"sample": "shop"}, "sales": {"sqlite": "/s"}, "hr": {"url_env": "HR"}});
        let settings =
            settings(json!({"default": ["shop"], "tenants": {"acme": ["sales"]}, "databases": databases}))
                .unwrap();
        let name = |tenant: &str, named: Option<&str>| {
            settings.database(tenant, named).map(|(name, _)| name.to_owned()).map_err(|error| error.code)
        };
        assert_eq!(name("acme", None), Ok("sales".to_owned()));
        assert_eq!(name("other", None), Ok("shop".to_owned()));
        for unknown in ["hr", "shop", "nothing"] {
            assert_eq!(name("acme", Some(unknown)), Err(UNKNOWN_DATABASE.to_owned()));
        }
    }

    #[test]
    fn faults_name_the_key() {
        for (value, key) in [
            (json!({"default": ["x"]}), "\"x\""),
            (json!({"databases": {"a": {}}}), "databases.a"),
            (json!({"databases": {"a": {"sqlite": "/s", "url_env": "B"}}}), "databases.a"),
            (json!({"databases": {"a": {"url": "postgres://me:secret@host/a"}}}), "databases.a.url"),
            (json!({"databases": {"a": {"url": "postgres://host/a?password=secret"}}}), "databases.a.url"),
            (json!({"max_rows": 0}), "max_rows"),
            (json!({"timeout_ms": 100_000}), "timeout_ms"),
            (json!({"max_row": 5}), "max_row"),
        ] {
            let error = settings(value).unwrap_err();
            assert_eq!(error.code, SETTINGS);
            assert!(error.message.contains(key) && !error.message.contains("secret"), "{error}");
        }
        assert!(settings(json!({"databases": {"a": {"url": "postgres://me@/a?host=/run"}}})).is_ok());
    }
}

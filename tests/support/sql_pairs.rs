//! The sample databases, as files of SQLite or on a server of PostgreSQL, and a flow that asks them.

use std::path::PathBuf;

use proscenium::sql_engine::{SqlDatabase, SqlDatabaseKind, SqlDatabaseSettings};
use tempfile::TempDir;

use super::postgres::PostgresServer;
use super::test_engine::Setup;

pub use super::sql_pair::*;

/// Both databases, as files of SQLite or on a server of PostgreSQL.
pub struct SampleFiles {
    dir: TempDir,
    server: Option<PostgresServer>,
}

impl SampleFiles {
    /// Writes them into a folder of their own.
    pub async fn write() -> Self {
        let files = Self { dir: tempfile::tempdir().unwrap(), server: None };
        for database in SampleDatabase::ALL {
            database.write_sqlite(&files.path(database.name())).await;
        }
        files
    }

    /// Writes them into a server of PostgreSQL; `None` where there is none, which is reported.
    pub async fn write_postgres(test: &str) -> Option<Self> {
        let server = PostgresServer::start(test)?;
        for database in SampleDatabase::ALL {
            let name = database.name();
            server.run("postgres", &format!("CREATE DATABASE {name}")).await;
            server.run(name, &database.script()).await;
            let role = format!("{name}_reader");
            let grants =
                format!("CREATE ROLE {role} LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}");
            server.run(name, &grants).await;
        }
        Some(Self { dir: tempfile::tempdir().unwrap(), server: Some(server) })
    }

    /// Whether they are on a server of PostgreSQL.
    pub fn is_postgres(&self) -> bool {
        self.server.is_some()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(format!("{name}.sqlite"))
    }

    /// Where a database is, as a key of its settings with the value.
    fn place(&self, name: &str) -> (&'static str, String) {
        match &self.server {
            Some(server) => ("url", server.url(&format!("{name}_reader"), name)),
            None => ("sqlite", self.path(name).display().to_string()),
        }
    }

    /// The database, to be asked without the flow.
    pub async fn open(&self, name: &'static str) -> SqlDatabase {
        let kind = match &self.server {
            Some(_) => SqlDatabaseKind::Postgres { url: self.place(name).1.into() },
            None => SqlDatabaseKind::Sqlite { path: self.path(name) },
        };
        SqlDatabase::open(SqlDatabaseSettings::new(name, kind)).await.unwrap()
    }

    /// A setup whose text_to_sql flow asks them, at nine o'clock of a day.
    pub fn setup(&self, setup: Setup, today: &str) -> Setup {
        let mut setup = setup
            .set("execution.fixed_now", format!("{today}T09:00:00+01:00"))
            .set("scenes.settings.text_to_sql.max_rows", 2000)
            .set("scenes.settings.text_to_sql.default", "[\"shop\", \"university\"]");
        for database in SampleDatabase::ALL {
            let (key, place) = self.place(database.name());
            let descriptions = database.descriptions().display().to_string();
            let entry = format!("{{{key}={place:?}, descriptions={descriptions:?}}}");
            setup = setup.set(&format!("scenes.settings.text_to_sql.databases.{}", database.name()), entry);
        }
        setup
    }
}

//! Changes after a backup was taken, as an earlier data directory tells: both databases side by side.

use std::path::Path;

use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{Connection as _, Row as _, SqliteConnection};

use super::super::error::{Error, ErrorCode};
use super::super::{BUSY_TIMEOUT, DATABASE_FILE, Store};
use super::report::{ChangeSinceKind, ChangedSince, ChangesSince, SpentSince};

/// How many changes of a kind are listed.
const MAX_LISTED: usize = 1_000;

/// Whether a switch of the earlier directory is the newest of its name and not in the backup.
const SWITCHED: &str = "SELECT '' AS tenant, o.kind || ' ' || o.name AS id, iif(o.off, 'off', 'on') AS about \
     FROM old.switches AS o WHERE o.id > (SELECT coalesce(max(id), 0) FROM main.switches) AND o.id = \
     (SELECT max(id) FROM old.switches AS n WHERE n.kind = o.kind AND n.name = o.name) ORDER BY o.id";

/// Whether the databases are of one installation.
const RELATED: &str = "SELECT NOT EXISTS (SELECT 1 FROM main.runs) \
     OR EXISTS (SELECT 1 FROM main.runs JOIN old.runs USING (run, created))";
/// The requests that were accepted since, and the decisions in the audit log.
const REQUESTS: &str =
    "SELECT count(*) FROM old.runs AS o WHERE NOT EXISTS (SELECT 1 FROM main.runs AS c WHERE c.run = o.run)";
const DECISIONS: &str = "SELECT count(*) FROM old.audit_chain \
     WHERE seq > (SELECT coalesce(max(seq), 0) FROM main.audit_chain)";

/// The changes of each kind, as rows of tenant, id and more: `main` is the backup, `old` the earlier directory.
const CHANGES: [(ChangeSinceKind, &str); 9] = [
    (
        ChangeSinceKind::ConversationErased,
        "SELECT tenant, session AS id, user AS about FROM main.session_owners AS c WHERE NOT EXISTS \
         (SELECT 1 FROM old.session_owners AS o WHERE o.tenant = c.tenant AND o.session = c.session) ORDER BY 1, 2",
    ),
    (
        ChangeSinceKind::RunErased,
        "SELECT tenant, run AS id, session AS about FROM main.runs AS c WHERE NOT EXISTS \
         (SELECT 1 FROM old.runs AS o WHERE o.run = c.run) AND EXISTS (SELECT 1 FROM old.session_owners AS o \
         WHERE o.tenant = c.tenant AND o.session = c.session) ORDER BY 1, 2",
    ),
    (
        ChangeSinceKind::DocumentDeleted,
        "SELECT tenant, id, user AS about FROM main.documents AS c WHERE NOT EXISTS \
         (SELECT 1 FROM old.documents AS o WHERE o.id = c.id) ORDER BY 1, 2",
    ),
    (
        ChangeSinceKind::DocumentAdded,
        "SELECT tenant, id, user AS about FROM old.documents AS o WHERE NOT EXISTS \
         (SELECT 1 FROM main.documents AS c WHERE c.id = o.id) ORDER BY 1, 2",
    ),
    (
        ChangeSinceKind::KeyRevoked,
        "SELECT c.tenant, c.id, c.user AS about FROM main.api_keys AS c JOIN old.api_keys AS o ON o.id = c.id \
         WHERE c.revoked IS NULL AND o.revoked IS NOT NULL ORDER BY 1, 2",
    ),
    (
        ChangeSinceKind::KeyCreated,
        "SELECT tenant, id, user AS about FROM old.api_keys AS o WHERE o.revoked IS NULL AND NOT EXISTS \
         (SELECT 1 FROM main.api_keys AS c WHERE c.id = o.id) ORDER BY 1, 2",
    ),
    (
        ChangeSinceKind::KeyChanged,
        "SELECT c.tenant, c.id, c.user || ': ' || c.role || ', later ' || o.role AS about FROM main.api_keys AS c \
         JOIN old.api_keys AS o ON o.id = c.id WHERE c.revoked IS NULL AND o.revoked IS NULL \
         AND (c.role IS NOT o.role OR c.expires IS NOT o.expires) ORDER BY 1, 2",
    ),
    (ChangeSinceKind::Switched, SWITCHED),
    (
        ChangeSinceKind::PlanDemoted,
        "SELECT c.tenant, c.template AS id, coalesce(o.demoted, 'deleted') AS about FROM main.learned_plans AS c \
         LEFT JOIN old.learned_plans AS o ON o.tenant = c.tenant AND o.template = c.template \
         WHERE c.demoted IS NULL AND (o.template IS NULL OR o.demoted IS NOT NULL) ORDER BY 1, 2",
    ),
];

/// Compares a restored store, in which nothing was changed yet, with the earlier data directory at `old`.
///
/// # Errors
/// The directory cannot be read, has another schema version, or is that of another installation.
pub(super) async fn changes_since(restored: &Store, old: &Path) -> Result<ChangesSince, Error> {
    let earlier = Store::open_read_only(old).await?;
    let spent = spent_since(restored, &earlier).await;
    earlier.close().await;
    let path = old.join(DATABASE_FILE);
    let failed = |error| Error::database(&path, "compare it with the backup", &error);
    let options =
        SqliteConnectOptions::new().filename(restored.path()).read_only(true).busy_timeout(BUSY_TIMEOUT);
    let mut connection = SqliteConnection::connect_with(&options).await.map_err(failed)?;
    // Attached with the flags of the connection: it is only read.
    let name = path.to_string_lossy();
    sqlx::query("ATTACH ? AS old").bind(name.as_ref()).execute(&mut connection).await.map_err(failed)?;
    let compared = compare(&mut connection).await;
    connection.close().await.map_err(failed)?;
    match compared.map_err(failed)? {
        Some(found) => Ok(ChangesSince { spent: spent?, ..found }),
        None => {
            let what =
                format!("{}: it has no run of the backup, so it is of another installation", old.display());
            Err(Error::new(ErrorCode::Foreign, what))
        }
    }
}

/// The differences of both databases; `None` if they have no run in common.
async fn compare(connection: &mut SqliteConnection) -> Result<Option<ChangesSince>, sqlx::Error> {
    let related: bool = sqlx::query_scalar(RELATED).fetch_one(&mut *connection).await?;
    if !related {
        return Ok(None);
    }
    let mut found = ChangesSince {
        requests: count(connection, REQUESTS).await?,
        decisions: count(connection, DECISIONS).await?,
        ..ChangesSince::default()
    };
    for (kind, sql) in CHANGES {
        let rows = sqlx::query(sql).fetch_all(&mut *connection).await?;
        found.more += rows.len().saturating_sub(MAX_LISTED) as u64;
        for row in rows.iter().take(MAX_LISTED) {
            found.changes.push(changed(kind, row)?);
        }
    }
    Ok(Some(found))
}

async fn count(connection: &mut SqliteConnection, sql: &'static str) -> Result<u64, sqlx::Error> {
    let count: i64 = sqlx::query_scalar(sql).fetch_one(connection).await?;
    Ok(u64::try_from(count).unwrap_or_default())
}

fn changed(kind: ChangeSinceKind, row: &SqliteRow) -> Result<ChangedSince, sqlx::Error> {
    Ok(ChangedSince {
        kind,
        tenant: row.try_get("tenant")?,
        id: row.try_get("id")?,
        about: row.try_get("about")?,
    })
}

/// What each tenant spent since.
async fn spent_since(restored: &Store, earlier: &Store) -> Result<Vec<SpentSince>, Error> {
    let (before, after) = (restored.usage(None, None).await?, earlier.usage(None, None).await?);
    let since = after.into_iter().map(|(tenant, after)| {
        let before = before.get(&tenant).copied().unwrap_or_default();
        SpentSince {
            tenant,
            calls: u64::from(after.calls.saturating_sub(before.calls)),
            cost_nano_usd: after.cost_nano_usd.saturating_sub(before.cost_nano_usd),
        }
    });
    Ok(since.filter(|spent| spent.calls > 0 || spent.cost_nano_usd > 0).collect())
}

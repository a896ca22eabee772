//! The scene's tables: requests and their days. Every statement keeps to one tenant and one user.

use jiff::civil::Date;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use proscenium::tools::ToolError;

use super::desk::Desk;

/// Most requests read at once.
pub const MOST_ROWS: usize = 100;

/// A request as it is stored.
#[derive(Debug)]
pub struct Request {
    /// Its number, as users see it.
    pub id: i64,
    /// First day.
    pub from: Date,
    /// Last day.
    pub to: Date,
    /// The user's own words on it.
    pub note: Option<String>,
    /// Whether it was cancelled.
    pub cancelled: bool,
    /// Working days in all years.
    pub working_days: i64,
    /// What the call that made it answered, as JSON without the id.
    pub answer: String,
}

/// A request as its columns are.
struct Columns {
    id: i64,
    first_day: String,
    last_day: String,
    note: Option<String>,
    cancelled: i64,
    working_days: i64,
    answer: String,
}

impl sqlx::FromRow<'_, SqliteRow> for Columns {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            first_day: row.try_get("first_day")?,
            last_day: row.try_get("last_day")?,
            note: row.try_get("note")?,
            cancelled: row.try_get("cancelled")?,
            working_days: row.try_get("working_days")?,
            answer: row.try_get("answer")?,
        })
    }
}

/// A statement that reads requests of one tenant (`?1`) and user (`?2`), with a further condition.
macro_rules! requests {
    ($rest:literal) => {
        concat!(
            "SELECT id, first_day, last_day, note, cancelled_at IS NOT NULL AS cancelled, answer, ",
            "(SELECT COALESCE(SUM(days), 0) FROM vacation_days WHERE request = id) AS working_days ",
            "FROM vacation_requests WHERE tenant = ?1 AND user = ?2 AND ",
            $rest
        )
    };
}

/// The request that the call with this key made.
pub async fn made_by(
    db: &mut SqliteConnection,
    desk: &Desk,
    key: &str,
) -> Result<Option<Request>, ToolError> {
    let sql = requests!("idempotency_key = ?3");
    let row = sqlx::query_as(sql).bind(desk.tenant()).bind(desk.user()).bind(key).fetch_optional(db).await?;
    row.map(request).transpose()
}

/// The request that the call with this key cancelled.
pub async fn cancelled_by(
    db: &mut SqliteConnection,
    desk: &Desk,
    key: &str,
) -> Result<Option<Request>, ToolError> {
    let sql = requests!("cancel_key = ?3");
    let row = sqlx::query_as(sql).bind(desk.tenant()).bind(desk.user()).bind(key).fetch_optional(db).await?;
    row.map(request).transpose()
}

/// The request with this number, cancelled or not.
pub async fn numbered(db: &mut SqliteConnection, desk: &Desk, id: i64) -> Result<Option<Request>, ToolError> {
    let sql = requests!("id = ?3");
    let row = sqlx::query_as(sql).bind(desk.tenant()).bind(desk.user()).bind(id).fetch_optional(db).await?;
    row.map(request).transpose()
}

/// The request that begins on this day: the standing one, else the one cancelled last.
pub async fn beginning(
    db: &mut SqliteConnection,
    desk: &Desk,
    from: Date,
) -> Result<Option<Request>, ToolError> {
    let sql =
        requests!("first_day = ?3 ORDER BY cancelled_at IS NOT NULL, cancelled_at DESC, id DESC LIMIT 1");
    let row = sqlx::query_as(sql).bind(desk.tenant()).bind(desk.user()).bind(from.to_string());
    row.fetch_optional(db).await?.map(request).transpose()
}

/// The first standing request that shares a day with these.
pub async fn overlapping(
    db: &mut SqliteConnection,
    desk: &Desk,
    from: Date,
    to: Date,
) -> Result<Option<Request>, ToolError> {
    let sql =
        requests!("cancelled_at IS NULL AND first_day <= ?4 AND last_day >= ?3 ORDER BY first_day LIMIT 1");
    let row = sqlx::query_as(sql).bind(desk.tenant()).bind(desk.user());
    let row = row.bind(from.to_string()).bind(to.to_string()).fetch_optional(db).await?;
    row.map(request).transpose()
}

/// Requests that share a day with these, by first day: at most [`MOST_ROWS`] and one more, which
/// tells that there are more.
pub async fn between(
    db: &mut SqliteConnection,
    desk: &Desk,
    from: Date,
    to: Date,
    cancelled_too: bool,
) -> Result<Vec<Request>, ToolError> {
    let sql = requests!(
        "(?5 OR cancelled_at IS NULL) AND first_day <= ?4 AND last_day >= ?3 ORDER BY first_day, id LIMIT 101"
    );
    let rows = sqlx::query_as(sql).bind(desk.tenant()).bind(desk.user());
    let rows = rows.bind(from.to_string()).bind(to.to_string()).bind(cancelled_too).fetch_all(db).await?;
    rows.into_iter().map(request).collect()
}

/// Working days of a year that standing requests take.
pub async fn used(db: &mut SqliteConnection, desk: &Desk, year: i16) -> Result<i64, ToolError> {
    let sql = "SELECT COALESCE(SUM(d.days), 0) FROM vacation_days d \
               JOIN vacation_requests r ON r.id = d.request \
               WHERE r.tenant = ?1 AND r.user = ?2 AND r.cancelled_at IS NULL AND d.year = ?3";
    Ok(sqlx::query_scalar(sql).bind(desk.tenant()).bind(desk.user()).bind(year).fetch_one(db).await?)
}

/// The working days of a request, by year.
pub async fn days_of(db: &mut SqliteConnection, id: i64) -> Result<Vec<(i16, i64)>, ToolError> {
    let sql = "SELECT year, days FROM vacation_days WHERE request = ?1 ORDER BY year";
    Ok(sqlx::query_as(sql).bind(id).fetch_all(db).await?)
}

/// A new request's columns.
pub struct New<'a> {
    /// First day.
    pub from: Date,
    /// Last day.
    pub to: Date,
    /// The user's own words on it.
    pub note: Option<&'a str>,
    /// The call's key.
    pub key: &'a str,
    /// What the call will answer, as JSON without the id.
    pub answer: String,
    /// Working days by year.
    pub days: &'a [(i16, i64)],
}

/// Stores a request and its days; its number.
pub async fn insert(db: &mut SqliteConnection, desk: &Desk, new: New<'_>) -> Result<i64, ToolError> {
    let sql = "INSERT INTO vacation_requests \
               (tenant, user, first_day, last_day, note, requested_at, idempotency_key, answer) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let done = sqlx::query(sql)
        .bind(desk.tenant())
        .bind(desk.user())
        .bind(new.from.to_string())
        .bind(new.to.to_string())
        .bind(new.note)
        .bind(desk.context.now.timestamp().to_string())
        .bind(new.key)
        .bind(new.answer)
        .execute(&mut *db)
        .await?;
    let id = done.last_insert_rowid();
    for (year, days) in new.days {
        let sql = "INSERT INTO vacation_days (request, year, days) VALUES (?1, ?2, ?3)";
        sqlx::query(sql).bind(id).bind(year).bind(days).execute(&mut *db).await?;
    }
    Ok(id)
}

/// Marks a standing request cancelled.
pub async fn cancel(db: &mut SqliteConnection, desk: &Desk, id: i64, key: &str) -> Result<(), ToolError> {
    let sql = "UPDATE vacation_requests SET cancelled_at = ?4, cancel_key = ?5 \
               WHERE tenant = ?1 AND user = ?2 AND id = ?3 AND cancelled_at IS NULL";
    sqlx::query(sql)
        .bind(desk.tenant())
        .bind(desk.user())
        .bind(id)
        .bind(desk.context.now.timestamp().to_string())
        .bind(key)
        .execute(db)
        .await?;
    Ok(())
}

fn request(row: Columns) -> Result<Request, ToolError> {
    Ok(Request {
        id: row.id,
        from: day(&row.first_day)?,
        to: day(&row.last_day)?,
        note: row.note,
        cancelled: row.cancelled != 0,
        working_days: row.working_days,
        answer: row.answer,
    })
}

fn day(text: &str) -> Result<Date, ToolError> {
    text.parse().map_err(|e| {
        ToolError::failed("store.error", format!("{text:?} in vacation_requests is no day: {e}"))
    })
}

/// A transaction that holds the right to write from its beginning, so that what it checks still holds
/// when it inserts.
pub async fn begin(desk: &Desk) -> Result<sqlx::SqliteTransaction<'static>, ToolError> {
    Ok(desk.context.store.pool().begin_with("BEGIN IMMEDIATE").await?)
}

/// Commits. Whether a commit that failed took effect is not known.
pub async fn commit(transaction: sqlx::SqliteTransaction<'static>) -> Result<(), ToolError> {
    transaction.commit().await.map_err(|e| {
        ToolError::unknown(
            "vacation.commit_unknown",
            format!("whether it was stored is not known, the commit did not end well: {e}"),
        )
    })
}

//! What was asked of late by clients that send again without a name.
//!
//! There is no table for it: the mark stands in a run's first event, and a run's id tells by itself when it
//! was accepted. So a request costs nothing more than its mark, which goes with its run when that is
//! erased, and a start reads the end of the list of runs.

use jiff::Timestamp;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;
use uuid::Builder;

use super::Store;
use super::error::Error;
use crate::run::RunId;

// CROSS: one look into the journal for each run, never the other way round.
const QUERY: &str = "SELECT run, created, ended, asked FROM ( \
     SELECT runs.run, created, status NOT IN ('queued', 'running', 'waiting') AS ended, \
     CASE WHEN json_valid(body) THEN CAST(json_extract(body, '$.asked') AS TEXT) END AS asked \
     FROM runs CROSS JOIN journal ON stream = 'run:' || runs.run AND seq = 1 \
     WHERE runs.run >= ?1 AND (status IN ('queued', 'running', 'waiting') OR updated >= ?2) \
     ) WHERE asked IS NOT NULL ORDER BY ended, run DESC LIMIT ?3";

/// A run whose request bears a mark of what was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The run.
    pub run: RunId,
    /// What was asked: `asked` of its `run_queued`.
    pub asked: String,
    /// When it was accepted.
    pub created: Timestamp,
    /// Whether it has ended.
    pub ended: bool,
}

impl Store {
    /// The runs of all tenants that bear such a mark, were accepted at `created` or later, and have not
    /// ended or ended at `ended` or later; the oldest first. Where there are more than `limit`, those that
    /// have not ended come before the others, and newer ones before older ones. Reads the list of runs from
    /// `created` on.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn asked(&self, created: Timestamp, ended: Timestamp, limit: u32) -> Result<Vec<Asked>, Error> {
        let failed = |e| Error::database(self.path(), "look for requests of late", &e);
        let rows = sqlx::query(QUERY)
            .bind(first_id(created).to_string())
            .bind(i64::try_from(ended.as_nanosecond()).unwrap_or(i64::MAX))
            .bind(i64::from(limit))
            .fetch_all(self.pool())
            .await
            .map_err(failed)?;
        let mut asked: Vec<Asked> = rows.iter().map(read).collect::<Result<_, _>>().map_err(failed)?;
        asked.sort_by_key(|asked| asked.run);
        Ok(asked)
    }
}

/// The least id that a run can have that was accepted then: ids sort by time.
fn first_id(at: Timestamp) -> RunId {
    let millis = u64::try_from(at.as_millisecond()).unwrap_or_default();
    RunId(Builder::from_unix_timestamp_millis(millis, &[0; 10]).into_uuid())
}

fn read(row: &SqliteRow) -> Result<Asked, sqlx::Error> {
    let created = i128::from(row.try_get::<i64, _>("created")?);
    Ok(Asked {
        run: row
            .try_get::<&str, _>("run")?
            .parse()
            .map_err(|e: uuid::Error| sqlx::Error::Decode(e.into()))?,
        asked: row.try_get("asked")?,
        created: Timestamp::from_nanosecond(created).map_err(|e| sqlx::Error::Decode(e.into()))?,
        ended: row.try_get("ended")?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{envelope, event, open, session, tenant};
    use super::super::{Record, Row};
    use super::*;
    use crate::run::{Envelope, Event, RunStatus};

    const CREATED: i64 = 1_777_878_000_000;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(CREATED + millis).unwrap()
    }

    /// The id of run `n`, accepted so many milliseconds later than the first can be.
    fn id(n: u8, millis: i64) -> RunId {
        let millis = u64::try_from(CREATED + millis).unwrap();
        RunId(Builder::from_unix_timestamp_millis(millis, &[n; 10]).into_uuid())
    }

    /// A run's first event, and its last where it `ended`, both at its own time.
    fn run(id: RunId, millis: i64, asked: Option<&str>, ended: Option<i64>) -> Vec<Row> {
        let mut first = event(1, 1);
        if let Event::RunQueued(queued) = &mut first.body {
            queued.asked = asked.map(str::to_owned);
        }
        let first = Envelope { run: Some(id), at: at(millis), ..first };
        let end = Event::RunCompleted { status: RunStatus::Completed };
        let end = ended.map(|millis| Envelope { at: at(millis), ..envelope(Some(id), "s1", 2, end) });
        [Some(first), end]
            .into_iter()
            .flatten()
            .map(|event| Record::Run(event.into()).row().unwrap())
            .collect()
    }

    async fn found(store: &Store, created: i64, ended: i64, limit: u32) -> Vec<(String, bool)> {
        let found = store.asked(at(created), at(ended), limit).await.unwrap();
        found.into_iter().map(|asked| (asked.asked, asked.ended)).collect()
    }

    #[tokio::test]
    async fn requests_of_late_are_found_by_their_marks() {
        let tmp = tempfile::tempdir().unwrap();
        let store = open(tmp.path()).await;
        let runs = [
            run(id(1, 0), 0, Some("too old"), None),
            run(id(2, 1000), 1000, Some("cut off"), None),
            run(id(3, 2000), 2000, Some("long ended"), Some(3000)),
            run(id(4, 2000), 2000, Some("just ended"), Some(9000)),
            run(id(5, 8000), 8000, None, None),
            run(id(6, 9000), 9000, Some("cut off"), None),
        ];
        store.write(&runs).await.unwrap();
        let pair = |asked: &str, ended| (asked.to_owned(), ended);
        let all = [pair("cut off", false), pair("just ended", true), pair("cut off", false)];
        assert_eq!(found(&store, 1000, 8000, 10).await, all);
        let asked = store.asked(at(9000), at(9000), 10).await.unwrap();
        let only = Asked { run: id(6, 9000), asked: "cut off".to_owned(), created: at(9000), ended: false };
        assert_eq!(asked, [only]);
        // What has not ended comes first, and then what is new.
        assert_eq!(found(&store, 1000, 8000, 2).await, [pair("cut off", false), pair("cut off", false)]);
        assert_eq!(store.asked(at(1000), at(8000), 1).await.unwrap()[0].run, id(6, 9000));
    }

    #[tokio::test]
    async fn a_mark_goes_with_its_conversation_and_a_damaged_one_is_none() {
        let tmp = tempfile::tempdir().unwrap();
        let store = open(tmp.path()).await;
        store.write(&[run(id(1, 0), 0, Some("a mark"), Some(1))]).await.unwrap();
        assert_eq!(found(&store, 0, 0, 10).await.len(), 1);
        assert!(store.erase_session(&tenant(), &session("s1")).await.unwrap());
        assert_eq!(found(&store, 0, 0, 10).await, []);
        store.write(&[run(id(2, 0), 0, Some("a mark"), None)]).await.unwrap();
        sqlx::query("UPDATE journal SET body = substr(body, 2)").execute(store.pool()).await.unwrap();
        assert_eq!(found(&store, 0, 0, 10).await, []);
    }

    #[tokio::test]
    async fn only_the_end_of_the_list_of_runs_is_read() {
        let tmp = tempfile::tempdir().unwrap();
        let store = open(tmp.path()).await;
        let plan = sqlx::query(sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {QUERY}")))
            .bind("")
            .bind(0)
            .bind(0)
            .fetch_all(store.pool())
            .await
            .unwrap();
        let plan: Vec<String> = plan.iter().map(|row| row.get("detail")).collect();
        let searches = |what: &str| plan.iter().any(|line| line.contains(what));
        assert!(searches("SEARCH runs USING PRIMARY KEY (run>?)"), "{plan:#?}");
        assert!(searches("SEARCH journal USING INDEX") && searches("(stream=? AND seq=?)"), "{plan:#?}");
        assert!(!searches("SCAN runs") && !searches("SCAN journal"), "{plan:#?}");
    }
}

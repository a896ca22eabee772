//! Recent requests of clients that retry without an idempotency key.
//!
//! There is no separate table. The fingerprint of a request that started a run is stored in the run's first
//! event, and the run's id encodes when it was accepted. So a request costs only its fingerprint, which is
//! erased with the run, and startup reads only the end of the list of runs. The fingerprint of a request
//! that decided an approval is stored with that approval.

use std::cmp::Reverse;

use jiff::Timestamp;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;
use uuid::Builder;

use super::Store;
use super::error::Error;
use crate::run::RunId;

// A run that had not ended when the previous process did was interrupted by that, whatever the clock says.
// The end time matters only for the others. After the clock was set forward, a run's id may look too old:
// so the end of the journal also shows which runs were active last.
// CROSS JOIN forces one lookup in the journal per run, never the other way round. Only with the condition of the index of
// unfinished runs, `status IN ('queued', 'running', 'waiting')`, does SQLite read them by it.
const STARTED_REQUESTS: &str = "SELECT run, created, ended, asked FROM ( \
     SELECT runs.run, created, status NOT IN ('queued', 'running', 'waiting') AS ended, \
     CASE WHEN json_valid(body) THEN CAST(json_extract(body, '$.asked') AS TEXT) END AS asked \
     FROM ( \
     SELECT run FROM runs WHERE status IN ('queued', 'running', 'waiting') AND status <> 'waiting' \
     UNION SELECT run FROM runs WHERE run >= ?1 AND (status = 'waiting' OR updated >= ?2) \
     UNION SELECT substr(stream, 5) FROM journal \
     WHERE rowid > (SELECT max(rowid) FROM journal) - 10000 AND substr(stream, 1, 4) = 'run:' \
     ) AS late \
     CROSS JOIN runs ON runs.run = late.run \
     AND (late.run >= ?1 OR updated >= ?2 OR status IN ('queued', 'running')) \
     CROSS JOIN journal ON stream = 'run:' || runs.run AND seq = 1 \
     WHERE status IN ('queued', 'running', 'waiting') OR updated >= ?2 \
     ) WHERE asked IS NOT NULL ORDER BY ended, run DESC LIMIT ?3";

// A run that waits again has replied to the request that decided.
const DECISION_REQUESTS: &str = "SELECT run, created, ended, asked FROM ( \
     SELECT approvals.run, decided AS created, 0 AS ended, asked FROM runs CROSS JOIN approvals USING (run) \
     WHERE status IN ('queued', 'running', 'waiting') AND status <> 'waiting' AND asked IS NOT NULL \
     UNION ALL \
     SELECT approvals.run, decided AS created, 1 AS ended, asked FROM approvals CROSS JOIN runs USING (run) \
     WHERE asked IS NOT NULL AND decided >= ?1 AND status NOT IN ('queued', 'running') AND updated >= ?2 \
     ) ORDER BY ended, created DESC LIMIT ?3";

/// A request with a fingerprint, and the run that it started or decided about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentRequest {
    /// The run.
    pub run: RunId,
    /// The request's fingerprint: `asked` of `run_queued`, or of the `word` of a `decided` event.
    pub fingerprint: String,
    /// When it was accepted.
    pub created: Timestamp,
    /// Whether the run has since ended, or waits for a person again.
    pub ended: bool,
}

impl Store {
    /// The requests with a fingerprint, of all tenants, oldest first: those whose runs were active, however
    /// long ago they started, and those accepted at `created` or later whose runs wait, or ended at `ended`
    /// or later. If there are more than `limit`, requests of unfinished runs take precedence, then newer
    /// ones. Reads the lists of runs and decisions from `created` on, and the end of the journal.
    ///
    /// # Errors
    /// Database errors.
    pub async fn recent_requests(
        &self,
        created: Timestamp,
        ended: Timestamp,
        limit: u32,
    ) -> Result<Vec<RecentRequest>, Error> {
        let failed = |e| Error::database(self.path(), "read the recent requests", &e);
        let nanos = |at: Timestamp| i64::try_from(at.as_nanosecond()).unwrap_or(i64::MAX);
        let began = sqlx::query(STARTED_REQUESTS).bind(first_run_id(created).to_string());
        let decided = sqlx::query(DECISION_REQUESTS).bind(nanos(created));
        let mut asked: Vec<RecentRequest> = Vec::new();
        for query in [began, decided] {
            let query = query.bind(nanos(ended)).bind(i64::from(limit));
            let rows = query.fetch_all(self.pool()).await.map_err(failed)?;
            let rows: Vec<RecentRequest> =
                rows.iter().map(read_request).collect::<Result<_, _>>().map_err(failed)?;
            asked.extend(rows);
        }
        asked.sort_by_key(|asked| (asked.ended, Reverse(asked.created)));
        asked.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        asked.sort_by_key(|asked| (asked.created, asked.run));
        Ok(asked)
    }
}

impl Store {
    /// The time of the last event in the journal; `None` if the journal is empty.
    ///
    /// # Errors
    /// Database errors.
    pub async fn last_event_at(&self) -> Result<Option<Timestamp>, Error> {
        let failed = |e| Error::database(self.path(), "read the time of the last event", &e);
        let at: Option<i64> = sqlx::query_scalar("SELECT at FROM journal ORDER BY rowid DESC LIMIT 1")
            .fetch_optional(self.pool())
            .await
            .map_err(failed)?;
        Ok(at.and_then(|at| Timestamp::from_nanosecond(i128::from(at)).ok()))
    }
}

/// The smallest id of a run accepted at `at`: ids sort by time.
pub(super) fn first_run_id(at: Timestamp) -> RunId {
    let millis = u64::try_from(at.as_millisecond()).unwrap_or_default();
    RunId(Builder::from_unix_timestamp_millis(millis, &[0; 10]).into_uuid())
}

fn read_request(row: &SqliteRow) -> Result<RecentRequest, sqlx::Error> {
    let created = i128::from(row.try_get::<i64, _>("created")?);
    Ok(RecentRequest {
        run: row
            .try_get::<&str, _>("run")?
            .parse()
            .map_err(|e: uuid::Error| sqlx::Error::Decode(e.into()))?,
        fingerprint: row.try_get("asked")?,
        created: Timestamp::from_nanosecond(created).map_err(|e| sqlx::Error::Decode(e.into()))?,
        ended: row.try_get("ended")?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{envelope, event, fresh, session, tenant};
    use super::super::{JournalRow, Record};
    use super::*;
    use crate::run::{ApprovalSubject, Decision, Envelope, Event, RequestIdentity, RunStatus};

    const CREATED: i64 = 1_777_878_000_000;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(CREATED + millis).unwrap()
    }

    /// The id of run `n`, accepted `millis` after [`CREATED`].
    fn id(n: u8, millis: i64) -> RunId {
        let millis = u64::try_from(CREATED + millis).unwrap();
        RunId(Builder::from_unix_timestamp_millis(millis, &[n; 10]).into_uuid())
    }

    /// A run's first event and, if `ended` is set, its last one, each at its own time.
    fn run(id: RunId, millis: i64, asked: Option<&str>, ended: Option<i64>) -> Vec<JournalRow> {
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
            .map(|event| Record::Run(event.into()).to_row().unwrap())
            .collect()
    }

    async fn found(store: &Store, created: i64, ended: i64, limit: u32) -> Vec<(String, bool)> {
        let found = store.recent_requests(at(created), at(ended), limit).await.unwrap();
        found.into_iter().map(|asked| (asked.fingerprint, asked.ended)).collect()
    }

    #[tokio::test]
    async fn recent_requests_are_found_by_fingerprint() {
        let (_tmp, store) = fresh().await;
        let runs = [
            run(id(1, 0), 0, Some("under way for long"), None),
            run(id(2, 1000), 1000, Some("cut off"), None),
            run(id(3, 2000), 2000, Some("long ended"), Some(3000)),
            run(id(4, 2000), 2000, Some("just ended"), Some(9000)),
            run(id(5, 8000), 8000, None, None),
            run(id(6, 9000), 9000, Some("cut off"), None),
        ];
        store.write(&runs).await.unwrap();
        let pair = |asked: &str, ended| (asked.to_owned(), ended);
        let cut_off = [pair("under way for long", false), pair("cut off", false), pair("cut off", false)];
        let all = [cut_off[0].clone(), cut_off[1].clone(), pair("just ended", true), cut_off[2].clone()];
        assert_eq!(found(&store, 1000, 8000, 10).await, all);
        // The clock was set forward: active runs were still interrupted, and a run that ended after that
        // counts as just ended, however old it looks.
        assert_eq!(found(&store, 900_000, 890_000, 10).await, cut_off);
        assert_eq!(found(&store, 900_000, 8500, 10).await, all);
        let asked = store.recent_requests(at(9000), at(9500), 10).await.unwrap();
        let last = RecentRequest {
            run: id(6, 9000),
            fingerprint: "cut off".to_owned(),
            created: at(9000),
            ended: false,
        };
        assert_eq!(asked[2], last);
        // Unfinished runs take precedence, then newer ones.
        assert_eq!(found(&store, 1000, 8000, 2).await, [pair("cut off", false), pair("cut off", false)]);
        assert_eq!(store.recent_requests(at(1000), at(8000), 1).await.unwrap()[0].run, id(6, 9000));
    }

    #[tokio::test]
    async fn erased_or_damaged_fingerprints_are_not_found() {
        let (_tmp, store) = fresh().await;
        store.write(&[run(id(1, 0), 0, Some("a mark"), Some(1))]).await.unwrap();
        assert_eq!(found(&store, 0, 0, 10).await.len(), 1);
        assert!(store.erase_session(&tenant(), &session("s1")).await.unwrap());
        assert_eq!(found(&store, 0, 0, 10).await, []);
        store.write(&[run(id(2, 0), 0, Some("a mark"), None)]).await.unwrap();
        sqlx::query("UPDATE journal SET body = substr(body, 2)").execute(store.pool()).await.unwrap();
        assert_eq!(found(&store, 0, 0, 10).await, []);
    }

    #[tokio::test]
    async fn recent_decisions_are_found_by_fingerprint() {
        let (_tmp, store) = fresh().await;
        let about = ApprovalSubject::Plan { version: 1 };
        let put = || Event::ApprovalRequired {
            approval: 1,
            matter: about,
            needed: crate::run::RequiredApproval::default(),
        };
        let yes = |asked: Option<&str>| {
            let word = RequestIdentity { idempotency: None, asked: asked.map(str::to_owned) };
            let decision = Decision::Yes { hold: false };
            Event::Decided {
                approval: 1,
                matter: about,
                decision,
                by: "b".to_owned(),
                note: None,
                word: Some(word),
            }
        };
        // Decisions about runs that are older than the requested period.
        let decided = |n: u8, millis: i64, asked: Option<&str>, then: Option<Event>| {
            let events = [(0, put()), (0, Event::RunWaiting {}), (millis, yes(asked))];
            let then = then.map(|event| (millis + 1, event));
            let rows = events.into_iter().chain(then).zip(2..).map(|((millis, body), seq)| {
                let event = Envelope { at: at(millis), ..envelope(Some(id(n, 0)), "s1", seq, body) };
                Record::Run(event.into()).to_row().unwrap()
            });
            run(id(n, 0), 0, None, None).into_iter().chain(rows).collect::<Vec<_>>()
        };
        let end = || Some(Event::RunCompleted { status: RunStatus::Completed });
        store
            .write(&[
                decided(1, 900, Some("under way for long"), None),
                decided(2, 2000, Some("cut off"), None),
                decided(3, 2000, Some("long ended"), end()),
                decided(4, 8000, Some("just ended"), end()),
                decided(5, 8000, None, end()),
                decided(6, 8500, Some("waits again"), Some(Event::RunWaiting {})),
                decided(7, 3000, Some("waits for long"), Some(Event::RunWaiting {})),
                run(id(8, 8200), 8200, Some("began"), None),
            ])
            .await
            .unwrap();
        let pair = |asked: &str, ended| (asked.to_owned(), ended);
        let all = [
            pair("under way for long", false),
            pair("cut off", false),
            pair("just ended", true),
            pair("began", false),
            pair("waits again", true),
        ];
        assert_eq!(found(&store, 1000, 8000, 10).await, all);
        let without = |which: usize| {
            all.iter().enumerate().filter(move |(at, _)| *at != which).map(|(_, one)| one.clone())
        };
        assert_eq!(found(&store, 1000, 8000, 4).await, without(2).collect::<Vec<_>>());
        store.erase_run(&tenant(), id(4, 0)).await.unwrap();
        assert_eq!(found(&store, 1000, 8000, 10).await, without(2).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn recent_requests_query_reads_only_list_ends() {
        let (_tmp, store) = fresh().await;
        let lines = async |query: &str| -> Vec<String> {
            let plan = sqlx::query(sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {query}")))
                .bind("")
                .bind(0)
                .bind(0)
                .fetch_all(store.pool())
                .await
                .unwrap();
            plan.iter().map(|row| row.get("detail")).collect()
        };
        for (query, first, then) in [
            (STARTED_REQUESTS, "SEARCH runs USING PRIMARY KEY (run>?)", "SEARCH journal USING INDEX"),
            (
                DECISION_REQUESTS,
                "SEARCH approvals USING INDEX approvals_asked",
                "SEARCH runs USING PRIMARY KEY (run=?)",
            ),
        ] {
            let plan = lines(query).await;
            let has = |what: &str| plan.iter().any(|line| line.contains(what));
            assert!(has(first) && has(then), "{plan:#?}");
            // Unfinished runs have their own index.
            let scans =
                |line: &&String| line.contains("SCAN runs") && !line.contains("INDEX runs_unfinished");
            assert!(plan.iter().find(scans).is_none(), "{plan:#?}");
            assert!(!has("SCAN journal") && !has("SCAN approvals"), "{plan:#?}");
        }
        assert!(lines(STARTED_REQUESTS).await.iter().any(|line| line.contains("(stream=? AND seq=?)")));
    }
}

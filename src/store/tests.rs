mod approvals;
mod audit;
mod learned;
mod missing_nodes;
mod plans;

use std::path::Path;

use jiff::Timestamp;
use uuid::Uuid;

use super::*;
use crate::plan::TaskId;
use crate::run::{
    Envelope, Event, Fault, RunId, RunQueued, RunStatus, SCHEMA, SessionEvent, SessionId, TenantId, Turn,
    Usage,
};

pub(crate) fn tenant() -> TenantId {
    TenantId::new("acme").unwrap()
}

pub(crate) fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

pub(crate) fn run_id(n: u128) -> RunId {
    RunId(Uuid::from_u128(n))
}

pub(crate) fn envelope<B>(run: Option<RunId>, session_name: &str, seq: u64, body: B) -> Envelope<B> {
    Envelope {
        seq,
        run,
        session: session(session_name),
        tenant: tenant(),
        at: Timestamp::from_nanosecond(1_777_878_000_000_000_000 + i128::from(seq) * 1_000_001).unwrap(),
        epoch: 1,
        schema: SCHEMA,
        body,
    }
}

/// Event `seq` of run `n` in session `s1`: the request first, then steps.
pub(crate) fn event(n: u128, seq: u64) -> Envelope<Event> {
    let body = match seq {
        1 => {
            Event::RunQueued(RunQueued::new(format!("request {n}"), "keysersoze", TaskId(Uuid::from_u128(n))))
        }
        seq => Event::StepStarted { step: u32::try_from(seq).unwrap() },
    };
    envelope(Some(run_id(n)), "s1", seq, body)
}

pub(crate) fn record(n: u128, seq: u64) -> Record {
    Record::Run(event(n, seq).into())
}

/// An empty store in a temporary directory.
pub(crate) async fn fresh() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    (dir, store)
}

pub(crate) async fn open(path: &Path) -> Store {
    Store::open(DataDir::open(path).unwrap()).await.unwrap()
}

/// Appends each record as its own group; returns the first failure.
async fn write(store: &Store, records: impl IntoIterator<Item = Record>) -> Result<(), Error> {
    let groups: Vec<Vec<JournalRow>> = records.into_iter().map(|r| vec![r.to_row().unwrap()]).collect();
    for outcome in store.write(&groups).await? {
        if let Some((_, error)) = outcome.failures.into_iter().next() {
            return Err(error);
        }
    }
    Ok(())
}

fn turn_ended() -> SessionEvent {
    SessionEvent::TurnEnded {
        turn: Turn {
            run: None,
            request: "r".to_owned(),
            answer: "a".to_owned(),
            status: RunStatus::Completed,
            calls: Vec::new(),
        },
        pending: None,
        usage: Usage::default(),
        origin: None,
    }
}

#[tokio::test]
async fn written_events_read_back_equal() {
    let (_tmp, store) = fresh().await;
    let events: Vec<Envelope<Event>> = (1..=150).map(|seq| event(7, seq)).collect();
    write(&store, events.iter().cloned().map(|event| Record::Run(event.into()))).await.unwrap();
    assert_eq!(store.run_events(&tenant(), run_id(7)).await.unwrap(), events);
    let turns = envelope(None, "s1", 1, turn_ended());
    write(&store, [Record::Session(turns.clone())]).await.unwrap();
    assert_eq!(store.session_events(&tenant(), &session("s1")).await.unwrap(), [turns]);
}

#[tokio::test]
async fn reopened_store_keeps_its_data() {
    let (tmp, store) = fresh().await;
    write(&store, [record(1, 1), record(1, 2)]).await.unwrap();
    store.close().await;
    drop(store);
    let store = open(tmp.path()).await;
    assert_eq!(store.run_events(&tenant(), run_id(1)).await.unwrap().len(), 2);
    write(&store, [record(1, 3)]).await.unwrap();
}

#[tokio::test]
async fn directory_stays_locked_until_last_store_clone_drops() {
    let (tmp, store) = fresh().await;
    let clone = store.clone();
    drop(store);
    assert_eq!(DataDir::open(tmp.path()).unwrap_err().code(), "store.in_use");
    drop(clone);
    DataDir::open(tmp.path()).unwrap();
}

/// Copies the files as a killed process leaves them, without a checkpoint of the log.
async fn killed(from: &Path, to: &Path) {
    for name in [DATABASE_FILE, "proscenium.db-wal"] {
        std::fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

#[tokio::test]
async fn committed_events_survive_a_kill() {
    let (tmp, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = open(tmp.path()).await;
    for seq in 1..=20 {
        write(&store, [record(1, seq)]).await.unwrap();
    }
    killed(tmp.path(), other.path()).await;
    let revived = open(other.path()).await;
    assert_eq!(
        revived.run_events(&tenant(), run_id(1)).await.unwrap(),
        store.run_events(&tenant(), run_id(1)).await.unwrap()
    );
}

#[tokio::test]
async fn torn_log_loses_only_its_end_and_accepts_appends() {
    let (tmp, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = open(tmp.path()).await;
    for seq in 1..=20 {
        write(&store, [record(1, seq)]).await.unwrap();
    }
    killed(tmp.path(), other.path()).await;
    let log = std::fs::File::options().write(true).open(other.path().join("proscenium.db-wal")).unwrap();
    let length = log.metadata().unwrap().len();
    for cut in [length - 5, length * 3 / 4] {
        log.set_len(cut).unwrap();
        // A fresh directory each time, because opening checkpoints the log.
        let third = tempfile::tempdir().unwrap();
        killed(other.path(), third.path()).await;
        let revived = open(third.path()).await;
        let events = revived.run_events(&tenant(), run_id(1)).await.unwrap();
        assert!((1..20).contains(&events.len()), "{} events of a log cut to {cut}", events.len());
        let next = events.len() as u64 + 1;
        assert_eq!(revived.run(&tenant(), run_id(1)).await.unwrap().unwrap().last_seq, next - 1);
        write(&revived, [record(1, next)]).await.unwrap();
    }
}

#[tokio::test]
async fn non_database_file_is_reported_as_corrupt() {
    let tmp = tempfile::tempdir().unwrap();
    std::fs::write(
        tmp.path().join(DATABASE_FILE),
        "this is not a database, whatever it was before".repeat(50),
    )
    .unwrap();
    let error = Store::open(DataDir::open(tmp.path()).unwrap()).await.unwrap_err();
    assert_eq!(error.code(), "store.corrupt");
    let message = error.to_string();
    assert!(message.contains(DATABASE_FILE) && message.contains("backup"), "{message}");
    assert_eq!(Store::open_read_only(tmp.path()).await.unwrap_err().code(), "store.corrupt");
}

#[tokio::test]
async fn database_damaged_in_the_middle_is_reported_as_corrupt() {
    let (tmp, store) = fresh().await;
    write(&store, (1..=400).map(|seq| record(1, seq))).await.unwrap();
    store.close().await;
    drop(store);
    let path = tmp.path().join(DATABASE_FILE);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4096..].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    let error = match Store::open(DataDir::open(tmp.path()).unwrap()).await {
        Ok(store) => store.run_events(&tenant(), run_id(1)).await.unwrap_err(),
        Err(error) => error,
    };
    assert_eq!(error.code(), "store.corrupt", "{error}");
}

#[tokio::test]
async fn newer_schema_is_refused() {
    let (tmp, store) = fresh().await;
    sqlx::query("PRAGMA user_version = 99").execute(store.pool()).await.unwrap();
    store.close().await;
    drop(store);
    let error = Store::open(DataDir::open(tmp.path()).unwrap()).await.unwrap_err();
    assert_eq!(error.code(), "store.newer_schema");
    assert!(error.to_string().contains("schema version 99"), "{error}");
    assert_eq!(Store::open_read_only(tmp.path()).await.unwrap_err().code(), "store.newer_schema");
}

#[tokio::test]
async fn older_schema_is_migrated_and_keeps_its_data() {
    let (tmp, store) = fresh().await;
    write(&store, [record(1, 1)]).await.unwrap();
    store.close().await;
    drop(store);
    let newer =
        [schema::MIGRATIONS, &["CREATE TABLE later (x INTEGER) STRICT; INSERT INTO later VALUES (1)"]]
            .concat();
    for _ in 0..2 {
        let store = Store::open_with(DataDir::open(tmp.path()).unwrap(), &newer).await.unwrap();
        let rows: i64 =
            sqlx::query_scalar("SELECT count(*) FROM later").fetch_one(store.pool()).await.unwrap();
        assert_eq!(rows, 1);
        assert_eq!(store.run_events(&tenant(), run_id(1)).await.unwrap().len(), 1);
        store.close().await;
    }
}

#[tokio::test]
async fn failed_migration_leaves_file_unchanged() {
    let tmp = tempfile::tempdir().unwrap();
    open(tmp.path()).await.close().await;
    let newer =
        [schema::MIGRATIONS, &["CREATE TABLE later (x INTEGER); SELECT nonsense FROM nowhere"]].concat();
    assert!(Store::open_with(DataDir::open(tmp.path()).unwrap(), &newer).await.is_err());
    let store = open(tmp.path()).await;
    let later: i64 = sqlx::query_scalar("SELECT count(*) FROM sqlite_schema WHERE name = 'later'")
        .fetch_one(store.pool())
        .await
        .unwrap();
    assert_eq!(later, 0);
}

#[tokio::test]
async fn foreign_database_is_refused_and_unchanged() {
    let tmp = tempfile::tempdir().unwrap();
    let options =
        SqliteConnectOptions::new().filename(tmp.path().join(DATABASE_FILE)).create_if_missing(true);
    let other = pool(1).connect_with(options).await.unwrap();
    sqlx::query("CREATE TABLE theirs (x)").execute(&other).await.unwrap();
    other.close().await;
    let error = Store::open(DataDir::open(tmp.path()).unwrap()).await.unwrap_err();
    assert_eq!(error.code(), "store.foreign");
}

#[tokio::test]
async fn read_only_store_reads_beside_owner_but_cannot_write() {
    let tmp = tempfile::tempdir().unwrap();
    assert_eq!(Store::open_read_only(tmp.path()).await.unwrap_err().code(), "store.absent");
    let store = open(tmp.path()).await;
    write(&store, [record(1, 1)]).await.unwrap();
    let reading = Store::open_read_only(tmp.path()).await.unwrap();
    assert_eq!(reading.run_events(&tenant(), run_id(1)).await.unwrap().len(), 1);
    assert_eq!(write(&reading, [record(1, 2)]).await.unwrap_err().code(), "store.read_only");
    write(&store, [record(1, 2)]).await.unwrap();
    assert_eq!(reading.run_events(&tenant(), run_id(1)).await.unwrap().len(), 2);
}

#[tokio::test]
async fn interrupted_append_does_not_block_other_writers() {
    let (_tmp, store) = fresh().await;
    let mut writing = store.writer("test").await.unwrap();
    writing.journal().unwrap().0.execute_batch("BEGIN IMMEDIATE").unwrap();
    drop(writing);
    let mut writing = store.writer("test").await.unwrap();
    assert!(writing.journal().unwrap().0.is_autocommit());
}

/// Limits the number of pages of the journal's file, until its connection is reopened.
pub(crate) async fn pages(store: &Store, max: u32) {
    let mut writing = store.writer("test").await.unwrap();
    writing.journal().unwrap().0.pragma_update(None, "max_page_count", max).unwrap();
}

#[tokio::test]
async fn full_disk_is_reported_and_stores_nothing_partially() {
    let (_tmp, store) = fresh().await;
    write(&store, [record(1, 1)]).await.unwrap();
    pages(&store, 20).await;
    let error = write(&store, (2..=2000).map(|seq| record(1, seq))).await.unwrap_err();
    assert_eq!(error.code(), "store.full", "{error}");
    assert_eq!(store.run_events(&tenant(), run_id(1)).await.unwrap().len(), 1);
    pages(&store, 100000).await;
    write(&store, [record(1, 2)]).await.unwrap();
}

#[tokio::test]
async fn wrong_sequence_number_is_refused_without_affecting_other_streams() {
    let (_tmp, store) = fresh().await;
    write(&store, [record(1, 1), record(2, 1)]).await.unwrap();
    let groups: Vec<Vec<JournalRow>> = [(1, 2), (2, 3), (1, 3), (2, 2), (3, 1), (4, 2)]
        .map(|(n, seq)| vec![record(n, seq).to_row().unwrap()])
        .into();
    let outcomes = store.write(&groups).await.unwrap();
    let codes: Vec<Option<&str>> =
        outcomes.iter().map(|o| o.failures.first().map(|(_, error)| error.code())).collect();
    // Run 2 jumped to 3, so its later event 2 fails too; run 4 does not start at 1.
    let conflict = Some("store.conflict");
    assert_eq!(codes, [None, conflict, None, conflict, None, conflict]);
    for (n, events) in [(1, 3), (2, 1), (3, 1), (4, 0)] {
        assert_eq!(store.run_events(&tenant(), run_id(n)).await.unwrap().len(), events, "run {n}");
    }
}

#[tokio::test]
async fn records_of_one_stream_in_one_append_are_atomic() {
    let (_tmp, store) = fresh().await;
    let group: Vec<JournalRow> =
        [(1, 1), (2, 1), (1, 3)].map(|(n, seq)| record(n, seq).to_row().unwrap()).into();
    let outcomes = store.write(&[group]).await.unwrap();
    assert_eq!(outcomes[0].failures.len(), 1);
    assert!(store.run_events(&tenant(), run_id(1)).await.unwrap().is_empty());
    assert_eq!(store.run_events(&tenant(), run_id(2)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn stored_stream_head_overrides_cached_head() {
    let (_tmp, store) = fresh().await;
    write(&store, [record(1, 1), record(2, 1)]).await.unwrap();
    // Another writer has changed two streams, one of which is new according to the cache.
    for (n, seq) in [(1, 2), (3, 1)] {
        let row = record(n, seq).to_row().unwrap();
        let stream = row.stream.to_string();
        sqlx::query("INSERT INTO journal VALUES (?, ?, 's1', 'acme', 0, 1, 1, ?)")
            .bind(&stream)
            .bind(seq as i64)
            .bind(&row.body)
            .execute(store.pool())
            .await
            .unwrap();
        sqlx::query("INSERT INTO runs VALUES (?, 'acme', 's1', '', 'running', 0, 0, 1, ?) ON CONFLICT DO UPDATE SET last_seq = 2")
            .bind(run_id(n).to_string())
            .bind(seq as i64)
            .execute(store.pool())
            .await
            .unwrap();
    }
    let groups: Vec<Vec<JournalRow>> =
        [(1, 2), (2, 2), (3, 1)].map(|(n, seq)| vec![record(n, seq).to_row().unwrap()]).into();
    let outcomes = store.write(&groups).await.unwrap();
    let codes: Vec<Option<&str>> =
        outcomes.iter().map(|o| o.failures.first().map(|(_, error)| error.code())).collect();
    assert_eq!(codes, [Some("store.conflict"), None, Some("store.conflict")]);
    write(&store, [record(1, 3), record(2, 3), record(3, 2)]).await.unwrap();
    assert_eq!(store.run_events(&tenant(), run_id(1)).await.unwrap().len(), 3);
}

#[tokio::test]
async fn erased_conversation_can_start_again() {
    let (_tmp, store) = fresh().await;
    let turns = |seq| Record::Session(envelope(None, "s1", seq, turn_ended()));
    write(&store, [turns(1), turns(2)]).await.unwrap();
    assert!(store.erase_session(&tenant(), &session("s1")).await.unwrap());
    assert_eq!(write(&store, [turns(3)]).await.unwrap_err().code(), "store.conflict");
    write(&store, [turns(1), turns(2)]).await.unwrap();
    assert_eq!(store.session_events(&tenant(), &session("s1")).await.unwrap().len(), 2);
}

#[tokio::test]
async fn texts_are_stored_byte_for_byte() {
    let (_tmp, store) = fresh().await;
    let words = "Città \u{0}\u{1f600} \"quoted\" \\ \u{7f}\u{2028} fin";
    let asked = |n| {
        let mut first = event(n, 1);
        if let Event::RunQueued(queued) = &mut first.body {
            queued.request = format!("{words} {n}");
        }
        first
    };
    write(&store, [1, 2].map(|n| Record::Run(asked(n).into()))).await.unwrap();
    for n in [1, 2] {
        assert_eq!(store.run_events(&tenant(), run_id(n)).await.unwrap(), [asked(n)]);
        let row = store.run(&tenant(), run_id(n)).await.unwrap().unwrap();
        let line: Vec<&str> = words.split_whitespace().collect();
        assert_eq!(row.request, format!("{} {n}", line.join(" ")));
    }
}

#[tokio::test]
async fn writer_of_older_epoch_is_refused() {
    let (_tmp, store) = fresh().await;
    let with_epoch = |seq, epoch| Record::Run(Envelope { epoch, ..event(1, seq) }.into());
    write(&store, [with_epoch(1, 1), with_epoch(2, 2)]).await.unwrap();
    let error = write(&store, [with_epoch(3, 1)]).await.unwrap_err();
    assert_eq!(error.code(), "store.conflict");
    assert!(error.to_string().contains("epoch 2 has taken over"), "{error}");
    write(&store, [with_epoch(3, 2)]).await.unwrap();
}

#[tokio::test]
async fn a_run_cannot_change_its_session_or_tenant() {
    let (_tmp, store) = fresh().await;
    write(&store, [record(1, 1)]).await.unwrap();
    let moved = Record::Run(Envelope { session: session("s2"), ..event(1, 2) }.into());
    assert_eq!(write(&store, [moved]).await.unwrap_err().code(), "store.conflict");
}

#[tokio::test]
async fn data_of_another_tenant_is_invisible() {
    let (_tmp, store) = fresh().await;
    let ours = envelope(None, "s1", 1, SessionEvent::SessionStarted {});
    let theirs = Envelope { tenant: TenantId::new("other").unwrap(), ..ours.clone() };
    write(&store, [record(1, 1), Record::Session(ours), Record::Session(theirs.clone())]).await.unwrap();
    let other = TenantId::new("other").unwrap();
    assert!(store.run_events(&other, run_id(1)).await.unwrap().is_empty());
    assert_eq!(store.run(&other, run_id(1)).await.unwrap(), None);
    assert!(store.runs(&other, &RunFilter::default(), &Page::default()).await.unwrap().is_empty());
    // The same name, but a different session.
    assert_eq!(store.session_events(&other, &session("s1")).await.unwrap(), [theirs]);
    assert!(!store.erase_session(&other, &session("s9")).await.unwrap());
    assert!(store.erase_session(&other, &session("s1")).await.unwrap());
    assert_eq!(store.session_events(&tenant(), &session("s1")).await.unwrap().len(), 1);
}

#[tokio::test]
async fn missing_event_error_names_run_and_sequence_number() {
    let (_tmp, store) = fresh().await;
    for (missing, n) in [(2, 1), (1, 2), (5, 3)] {
        write(&store, (1..=5).map(|seq| record(n, seq))).await.unwrap();
        sqlx::query("DELETE FROM journal WHERE stream = ? AND seq = ?")
            .bind(StreamId::Run(run_id(n)).to_string())
            .bind(missing)
            .execute(store.pool())
            .await
            .unwrap();
        let error = store.run_events(&tenant(), run_id(n)).await.unwrap_err();
        assert_eq!(error.code(), "store.gap");
        assert!(error.to_string().contains(&format!("run:{}: event {missing} ", run_id(n))), "{error}");
    }
}

#[tokio::test]
async fn unreadable_event_error_names_run_and_sequence_number() {
    let (_tmp, store) = fresh().await;
    for (n, change) in [
        (1, "UPDATE journal SET body = '{\"type\":\"never_heard_of\"}' WHERE stream = ? AND seq = 2"),
        (2, "UPDATE journal SET body = '{' WHERE stream = ? AND seq = 2"),
        (3, "UPDATE journal SET schema = 999 WHERE stream = ? AND seq = 2"),
    ] {
        write(&store, [record(n, 1), record(n, 2)]).await.unwrap();
        let stream = StreamId::Run(run_id(n)).to_string();
        sqlx::query(change).bind(&stream).execute(store.pool()).await.unwrap();
        let error = store.run_events(&tenant(), run_id(n)).await.unwrap_err();
        assert_eq!(error.code(), "store.unreadable");
        assert!(error.to_string().contains(&format!("{stream}: event 2 cannot be read")), "{error}");
    }
}

#[tokio::test]
async fn run_list_follows_events_newest_first_and_pages() {
    let (_tmp, store) = fresh().await;
    write(&store, (1..=5).map(|n| record(n, 1))).await.unwrap();
    let end = |n, body| Record::Run(envelope(Some(run_id(n)), "s1", 2, body).into());
    write(
        &store,
        [
            end(1, Event::RunCompleted { status: RunStatus::NeedsInput }),
            end(2, Event::RunFailed { error: Fault::new("x", "y") }),
            end(3, Event::RunCancelled { by: "user".to_owned() }),
        ],
    )
    .await
    .unwrap();
    let list = async |filter: RunFilter, page: Page<RunId>| {
        store
            .runs(&tenant(), &filter, &page)
            .await
            .unwrap()
            .into_iter()
            .map(|row| row.run)
            .collect::<Vec<_>>()
    };
    let all = list(RunFilter::default(), Page::default()).await;
    assert_eq!(all, [5, 4, 3, 2, 1].map(run_id));
    let first = list(RunFilter::default(), Page { limit: 2, after: None }).await;
    let second = list(RunFilter::default(), Page { limit: 2, after: first.last().copied() }).await;
    assert_eq!((first, second), ([5, 4].map(run_id).into(), [3, 2].map(run_id).into()));
    let failed =
        RunFilter { status: Some(RunStatus::Failed), session: Some(session("s1")), ..RunFilter::default() };
    assert_eq!(list(failed, Page::default()).await, [run_id(2)]);
    let elsewhere = RunFilter { session: Some(session("s2")), ..RunFilter::default() };
    assert!(list(elsewhere, Page::default()).await.is_empty());
    let row = store.run(&tenant(), run_id(1)).await.unwrap().unwrap();
    assert_eq!((row.status, row.last_seq, row.request.as_str()), (RunStatus::NeedsInput, 2, "request 1"));
    assert_eq!((row.created, row.updated), (event(1, 1).at, event(1, 2).at));
    let unfinished: Vec<RunId> =
        store.unfinished_runs().await.unwrap().into_iter().map(|row| row.run).collect();
    assert_eq!(unfinished, [4, 5].map(run_id));
}

#[tokio::test]
async fn session_list_counts_turns_and_sorts_by_last_change() {
    let (_tmp, store) = fresh().await;
    let started = |name| Record::Session(envelope(None, name, 1, SessionEvent::SessionStarted {}));
    let ended = |name, seq| Record::Session(envelope(None, name, seq, turn_ended()));
    write(&store, [started("a"), started("b"), started("c"), ended("a", 2), ended("a", 3), ended("b", 2)])
        .await
        .unwrap();
    let rows = store.sessions(&tenant(), &Page::default()).await.unwrap();
    let seen: Vec<(&str, u64)> = rows.iter().map(|row| (row.session.as_str(), row.turns)).collect();
    assert_eq!(seen, [("a", 2), ("b", 1), ("c", 0)]);
    let page = Page { limit: 1, after: Some(session("a")) };
    assert_eq!(store.sessions(&tenant(), &page).await.unwrap(), rows[1..2]);
    assert_eq!(store.session(&tenant(), &session("b")).await.unwrap().as_ref(), Some(&rows[1]));
}

#[tokio::test]
async fn erased_session_leaves_no_text_in_the_files() {
    let (tmp, store) = fresh().await;
    let secret = "myverysecretword";
    let mut first = event(1, 1);
    if let Event::RunQueued(queued) = &mut first.body {
        queued.request = secret.to_owned();
    }
    let mut said = turn_ended();
    if let SessionEvent::TurnEnded { turn, .. } = &mut said {
        turn.request = secret.to_owned();
    }
    write(&store, [Record::Run(first.into()), Record::Session(envelope(None, "s1", 1, said))]).await.unwrap();
    let held = || {
        [DATABASE_FILE, "proscenium.db-wal"].iter().any(|name| {
            let bytes = std::fs::read(tmp.path().join(name)).unwrap_or_default();
            bytes.windows(secret.len()).any(|window| window == secret.as_bytes())
        })
    };
    assert!(held());
    let error = store.erase_session(&tenant(), &session("s1")).await.unwrap_err();
    assert_eq!(error.code(), "store.session_busy");
    let end = Event::RunCompleted { status: RunStatus::Completed };
    write(&store, [Record::Run(envelope(Some(run_id(1)), "s1", 2, end).into())]).await.unwrap();
    assert!(store.erase_session(&tenant(), &session("s1")).await.unwrap());
    assert!(!held());
    assert!(store.run_events(&tenant(), run_id(1)).await.unwrap().is_empty());
    assert!(store.sessions(&tenant(), &Page::default()).await.unwrap().is_empty());
    // The name can be used again.
    write(&store, [Record::Session(envelope(None, "s1", 1, SessionEvent::SessionStarted {}))]).await.unwrap();
}

/// How a connection treats what it deletes: 0 leaves it, 1 overwrites it.
async fn secure_delete(connection: &mut sqlx::SqliteConnection) -> i64 {
    sqlx::query_scalar("PRAGMA secure_delete").fetch_one(connection).await.unwrap()
}

#[tokio::test]
async fn every_connection_overwrites_what_it_deletes_from_its_start() {
    let (tmp, store) = fresh().await;
    let shared = Store::open_shared(tmp.path()).await.unwrap();
    for (store, connections) in [(&store, POOL_SIZE), (&shared, 1)] {
        let mut held = Vec::new();
        for _ in 0..connections {
            held.push(store.pool().acquire().await.unwrap());
        }
        for connection in &mut held {
            assert_eq!(secure_delete(connection).await, 1);
        }
        let mut writing = store.writer("test").await.unwrap();
        assert_eq!(secure_delete(writing.connection().await.unwrap()).await, 1);
        let (journal, _) = writing.journal().unwrap();
        let of_journal = journal.query_row("PRAGMA secure_delete", [], |row| row.get::<_, i64>(0));
        assert_eq!(of_journal.unwrap(), 1);
    }
}

#[tokio::test]
async fn row_deleted_or_replaced_before_any_erasure_leaves_no_text_in_the_file() {
    let (tmp, store) = fresh().await;
    let sql = "CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, note TEXT) STRICT;";
    store.apply_scene_schema("Garden", sql).await.unwrap();
    let secret = "myverysecretword".repeat(8);
    let sql = "INSERT INTO notes VALUES (1, ?1), (2, ?1)";
    sqlx::query(sql).bind(&secret).execute(store.pool()).await.unwrap();
    sqlx::query("DELETE FROM notes WHERE id = 1").execute(store.pool()).await.unwrap();
    sqlx::query("UPDATE notes SET note = 'x' WHERE id = 2").execute(store.pool()).await.unwrap();
    store.close().await;
    let bytes = std::fs::read(tmp.path().join(DATABASE_FILE)).unwrap();
    assert!(!bytes.windows(16).any(|window| window == b"myverysecretword"));
}

#[tokio::test]
async fn scene_tables_are_created_once_and_usable_through_pool() {
    let (_tmp, store) = fresh().await;
    let sql = "CREATE TABLE IF NOT EXISTS vacation_requests (id TEXT PRIMARY KEY, days INTEGER) STRICT;";
    store.apply_scene_schema("VacationManagement", sql).await.unwrap();
    store.apply_scene_schema("VacationManagement", sql).await.unwrap();
    let scene = crate::tools::SceneStore::new(store.pool().clone());
    sqlx::query("INSERT INTO vacation_requests VALUES ('k', 3)").execute(scene.pool()).await.unwrap();
}

#[tokio::test]
async fn faulty_scene_schema_names_scene_and_applies_nothing() {
    let (_tmp, store) = fresh().await;
    for sql in [
        "CREATE TABLE IF NOT EXISTS mine (x); CREATE TABEL oops (y);",
        "CREATE TABLE IF NOT EXISTS mine (x); DROP TABLE journal;",
        "CREATE TABLE IF NOT EXISTS mine (x); ALTER TABLE runs ADD COLUMN mine TEXT;",
        "CREATE TABLE IF NOT EXISTS mine (x); PRAGMA user_version = 555;",
    ] {
        let error = store.apply_scene_schema("Garden", sql).await.unwrap_err();
        assert_eq!(error.code(), "store.scene_schema", "{sql}: {error}");
        assert!(error.to_string().contains("Garden"), "{error}");
        assert!(sqlx::query("SELECT * FROM mine").execute(store.pool()).await.is_err(), "{sql}");
    }
    write(&store, [record(1, 1)]).await.unwrap();
}

#[test]
fn out_of_range_options_are_named() {
    assert!(Options::default().problems().is_empty());
    let options = Options {
        data_dir: "".into(),
        max_pending: 0,
        max_batch: 0,
        keep_sessions_days: 36_501,
        max_tenant_bytes: Some(0),
    };
    assert_eq!(options.problems().len(), 5);
    assert!(serde_json::from_str::<Options>(r#"{"max_pendig": 1}"#).is_err());
}

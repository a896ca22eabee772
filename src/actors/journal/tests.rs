use std::path::Path;

use super::*;
use crate::run::{Envelope, Event, RunStatus, SessionEvent};
use crate::store::DataDir;
use crate::store::tests::{envelope, event, open, pages, record, run_id, session, tenant};

/// Runs a test in an actix system, over a fresh data directory.
fn run_in_system<F: Future<Output = ()>>(test: impl FnOnce(tempfile::TempDir) -> F) {
    System::new().block_on(test(tempfile::tempdir().unwrap()));
}

async fn start(path: &Path, options: &Options) -> (Store, Handle) {
    let store = open(path).await;
    (store.clone(), Journal::start(store, options).await.unwrap())
}

#[test]
fn durable_append_is_on_disk_when_it_returns() {
    run_in_system(async |tmp| {
        let (_, journal) = start(tmp.path(), &Options::default()).await;
        journal.append(vec![record(1, 1), record(1, 2)], true).await.unwrap();
        let reading = Store::open_read_only(tmp.path()).await.unwrap();
        assert_eq!(reading.run_events(&tenant(), run_id(1)).await.unwrap(), [event(1, 1), event(1, 2)]);
    });
}

#[test]
fn non_durable_appends_keep_order_and_survive_flush() {
    run_in_system(async |tmp| {
        let (store, journal) = start(tmp.path(), &Options::default()).await;
        for seq in 1..=1000 {
            journal.append(vec![record(1, seq)], false).await.unwrap();
        }
        journal.flush().await.unwrap();
        let events = store.run_events(&tenant(), run_id(1)).await.unwrap();
        assert_eq!(events, (1..=1000).map(|seq| event(1, seq)).collect::<Vec<_>>());
    });
}

#[test]
fn concurrent_durable_appends_share_commits() {
    run_in_system(async |tmp| {
        let (store, journal) = start(tmp.path(), &Options::default()).await;
        let appenders = (1..=100).map(|n| {
            let journal = journal.clone();
            async move {
                for seq in 1..=10 {
                    journal.append(vec![record(n, seq)], true).await.unwrap();
                }
            }
        });
        futures::future::join_all(appenders).await;
        let stats = journal.stats();
        assert_eq!((stats.events, stats.failed_commits, stats.pending), (1000, 0, 0));
        assert!(stats.commits < 500, "{stats:?}");
        assert!(stats.largest_batch > 10, "{stats:?}");
        assert_eq!(store.run_events(&tenant(), run_id(100)).await.unwrap().len(), 10);
    });
}

#[test]
fn pending_events_never_exceed_queue_capacity() {
    run_in_system(async |tmp| {
        let options = Options { max_pending: 16, max_batch: 4, ..Options::default() };
        let (store, journal) = start(tmp.path(), &options).await;
        // More at once than the queue holds, and one append larger than the whole queue.
        let many = (1..=200).map(|n| journal.append(vec![record(n, 1)], false));
        for result in futures::future::join_all(many).await {
            result.unwrap();
            assert!(journal.stats().pending <= 16);
        }
        journal.append((1..=40).map(|seq| record(500, seq)).collect(), true).await.unwrap();
        journal.flush().await.unwrap();
        assert_eq!(store.unfinished_runs().await.unwrap().len(), 201);
        assert_eq!(journal.stats().pending, 0);
    });
}

#[test]
fn append_waits_for_queue_room_while_disk_is_busy() {
    run_in_system(async |tmp| {
        let options = Options { max_pending: 2, ..Options::default() };
        let (store, journal) = start(tmp.path(), &options).await;
        // A scene's transaction holds the database, so no commit can end.
        let held = store.pool().begin_with("BEGIN IMMEDIATE").await.unwrap();
        journal.append(vec![record(1, 1)], false).await.unwrap();
        journal.append(vec![record(1, 2)], false).await.unwrap();
        let mut third = std::pin::pin!(journal.append(vec![record(1, 3)], false));
        assert!(futures::poll!(third.as_mut()).is_pending(), "the queue is full");
        assert_eq!(journal.stats().pending, 2);
        held.rollback().await.unwrap();
        third.await.unwrap();
        journal.flush().await.unwrap();
        assert_eq!(store.run_events(&tenant(), run_id(1)).await.unwrap().len(), 3);
    });
}

#[test]
fn failed_stream_refuses_appends_until_reopened() {
    run_in_system(async |tmp| {
        let (store, journal) = start(tmp.path(), &Options::default()).await;
        journal.append(vec![record(1, 1)], true).await.unwrap();
        // Queued without waiting and refused by the store: the next append gets the error.
        journal.append(vec![record(1, 3)], false).await.unwrap();
        journal.append(vec![record(2, 1)], true).await.unwrap();
        for durable in [false, true] {
            let error = journal.append(vec![record(1, 2)], durable).await.unwrap_err();
            assert_eq!(error.code(), "store.conflict");
        }
        assert_eq!(store.run_events(&tenant(), run_id(1)).await.unwrap().len(), 1);
        journal.reopen(StreamId::Run(run_id(1))).await.unwrap();
        journal.append(vec![record(1, 2)], true).await.unwrap();
        assert_eq!(store.run_events(&tenant(), run_id(1)).await.unwrap().len(), 2);
    });
}

#[test]
fn appends_queued_behind_a_failure_fail_too() {
    run_in_system(async |tmp| {
        let (store, journal) = start(tmp.path(), &Options { max_batch: 1, ..Options::default() }).await;
        let appends =
            [(1, 1), (1, 3), (1, 2), (2, 1)].map(|(n, seq)| journal.append(vec![record(n, seq)], true));
        let results = futures::future::join_all(appends).await;
        let ok: Vec<bool> = results.iter().map(Result::is_ok).collect();
        assert_eq!(ok, [true, false, false, true]);
        assert_eq!(store.run_events(&tenant(), run_id(1)).await.unwrap().len(), 1);
    });
}

#[test]
fn failed_commit_reaches_every_waiter_and_stream_of_its_batch() {
    run_in_system(async |tmp| {
        let (store, journal) = start(tmp.path(), &Options::default()).await;
        journal.append(vec![record(1, 1)], true).await.unwrap();
        sqlx::query("DROP TABLE journal").execute(store.pool()).await.unwrap();
        journal.append(vec![record(3, 1)], false).await.unwrap();
        let waiting = [journal.append(vec![record(1, 2)], true), journal.append(vec![record(2, 1)], true)];
        for result in futures::future::join_all(waiting).await {
            assert_eq!(result.unwrap_err().code(), "store.failed");
        }
        assert_eq!(journal.append(vec![record(3, 2)], false).await.unwrap_err().code(), "store.failed");
        assert_eq!(journal.flush().await.unwrap_err().code(), "store.failed");
        assert!(journal.flush().await.is_ok(), "the error is reported once");
        assert!(journal.stats().failed_commits >= 1);
    });
}

/// An append that does not fit into a file whose pages are used up.
fn large_append(n: u128, seq: u64) -> Vec<Record> {
    (seq..seq + 400).map(|seq| record(n, seq)).collect()
}

#[test]
fn full_disk_refuses_new_runs_and_retries_others() {
    run_in_system(async |tmp| {
        let options = Options { max_pending: 400, ..Options::default() };
        let (store, journal) = start(tmp.path(), &options).await;
        journal.append(vec![record(1, 1)], true).await.unwrap();
        // The connection that is opened after the failure does not have this limit.
        pages(&store, 1).await;
        // The first takes the whole queue, so the second waits for room, and the third for the second.
        let (old, new, other) = futures::join!(
            journal.append(large_append(1, 2), true),
            journal.append(vec![record(2, 1)], true),
            journal.append(vec![record(1, 402)], true)
        );
        old.unwrap();
        assert_eq!(new.unwrap_err().code(), "store.full");
        other.unwrap();
        assert_eq!(store.run_events(&tenant(), run_id(1)).await.unwrap().len(), 402);
        assert!(store.run_events(&tenant(), run_id(2)).await.unwrap().is_empty());
        assert_eq!(journal.stats().failed_commits, 1);
        // A refused caller may retry.
        journal.append(large_append(2, 1), true).await.unwrap();
        journal.flush().await.unwrap();
    });
}

#[test]
fn session_stream_accepts_appends_after_a_failed_one() {
    run_in_system(async |tmp| {
        let (store, journal) = start(tmp.path(), &Options::default()).await;
        let started = |seq| Record::Session(envelope(None, "s1", seq, SessionEvent::SessionStarted {}));
        journal.append(vec![started(1)], true).await.unwrap();
        assert_eq!(journal.append(vec![started(3)], true).await.unwrap_err().code(), "store.conflict");
        journal.append(vec![started(2)], true).await.unwrap();
        assert_eq!(store.session_events(&tenant(), &session("s1")).await.unwrap().len(), 2);
    });
}

#[test]
fn stop_writes_pending_appends_and_refuses_later_ones() {
    run_in_system(async |tmp| {
        let (store, journal) = start(tmp.path(), &Options { max_batch: 8, ..Options::default() }).await;
        for seq in 1..=100 {
            journal.append(vec![record(1, seq)], false).await.unwrap();
        }
        journal.stop().await.unwrap();
        assert_eq!(store.run_events(&tenant(), run_id(1)).await.unwrap().len(), 100);
        for durable in [false, true] {
            let error = journal.append(vec![record(1, 101)], durable).await.unwrap_err();
            assert_eq!(error.code(), "store.stopped");
        }
        assert_eq!(journal.flush().await.unwrap_err().code(), "store.stopped");
        assert_eq!(journal.stop().await.unwrap_err().code(), "store.stopped");
    });
}

#[test]
fn dropping_last_handle_writes_pending_and_releases_directory() {
    run_in_system(async |tmp| {
        let (store, journal) = start(tmp.path(), &Options { max_batch: 8, ..Options::default() }).await;
        for seq in 1..=100 {
            journal.append(vec![record(1, seq)], false).await.unwrap();
        }
        drop(journal);
        drop(store);
        // The actor holds the store, and with it the directory lock, until it has stopped.
        let dir = loop {
            match DataDir::open(tmp.path()) {
                Ok(dir) => break dir,
                Err(error) => assert_eq!(error.code(), "store.in_use"),
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        };
        let store = Store::open(dir).await.unwrap();
        assert_eq!(store.run_events(&tenant(), run_id(1)).await.unwrap().len(), 100);
    });
}

#[test]
fn append_is_written_after_its_caller_is_dropped() {
    run_in_system(async |tmp| {
        let (store, journal) = start(tmp.path(), &Options::default()).await;
        {
            let mut append = std::pin::pin!(journal.append(vec![record(1, 1)], true));
            assert!(futures::poll!(append.as_mut()).is_pending());
        }
        journal.flush().await.unwrap();
        assert_eq!(store.run_events(&tenant(), run_id(1)).await.unwrap().len(), 1);
    });
}

#[test]
fn one_append_commits_run_end_and_turn_together() {
    run_in_system(async |tmp| {
        let (store, journal) = start(tmp.path(), &Options::default()).await;
        let end = Event::RunCompleted { status: RunStatus::Completed };
        let records = vec![
            record(1, 1),
            Record::Session(envelope(None, "s1", 1, SessionEvent::SessionStarted {})),
            Record::Run(envelope(Some(run_id(1)), "s1", 2, end).into()),
        ];
        journal.append(records, true).await.unwrap();
        assert_eq!(store.run_events(&tenant(), run_id(1)).await.unwrap().len(), 2);
        assert_eq!(store.session_events(&tenant(), &session("s1")).await.unwrap().len(), 1);
        assert_eq!(journal.stats().commits, 1);
    });
}

#[test]
fn record_without_stream_is_refused_before_queueing() {
    run_in_system(async |tmp| {
        let (_, journal) = start(tmp.path(), &Options::default()).await;
        let lost = Record::Run(Envelope { run: None, ..event(1, 1) }.into());
        assert_eq!(journal.append(vec![lost], false).await.unwrap_err().code(), "store.bad_record");
        assert_eq!(journal.stats().pending, 0);
    });
}

#[test]
fn start_without_actix_system_is_an_error() {
    let tmp = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let error = Journal::start(open(tmp.path()).await, &Options::default()).await.unwrap_err();
        assert_eq!(error.code(), "store.stopped");
    });
}

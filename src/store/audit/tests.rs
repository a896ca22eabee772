//! The record of decisions: what is in it, what breaks it, and what erasure leaves of it.

use super::*;
use crate::run::{Matter, RunStatus};
use crate::store::Record;
use crate::store::tests::{envelope, open, record, run_id, tenant};

/// A run in which somebody approves a plan in their own words.
async fn decided(store: &Store, n: u128, by: &str) {
    let decision = Event::Decided {
        approval: 1,
        matter: Matter::Plan { version: 1 },
        decision: Decision::Yes { hold: false },
        by: by.to_owned(),
        note: Some("a secret reason".to_owned()),
        word: None,
    };
    let end = Event::RunCompleted { status: RunStatus::Completed };
    let rows = [(2, decision), (3, end)]
        .map(|(seq, event)| Record::Run(envelope(Some(run_id(n)), "s1", seq, event).into()));
    let mut group = vec![record(n, 1).row().unwrap()];
    group.extend(rows.map(|row| row.row().unwrap()));
    for outcome in store.write(&[group]).await.unwrap() {
        assert!(outcome.failures.is_empty(), "{outcome:?}");
    }
}

async fn change(store: &Store, sql: &'static str) -> Result<(), sqlx::Error> {
    let mut writing = store.writer("change").await.unwrap();
    sqlx::raw_sql(sql).execute(writing.connection().await?).await.map(|_| ())
}

#[tokio::test]
async fn decisions_are_chained_and_proven_and_outlive_the_erasure_of_their_run() {
    let tmp = tempfile::tempdir().unwrap();
    let store = open(tmp.path()).await;
    for (n, by) in [(1, "ann"), (2, "bob"), (3, "ann")] {
        decided(&store, n, by).await;
    }
    let rows = store.audit(0).await.unwrap();
    let told: Vec<_> = rows.iter().map(|row| (row.seq, row.by.as_str(), row.decision.as_str())).collect();
    assert_eq!(told, [(1, "ann", "yes"), (2, "bob", "yes"), (3, "ann", "yes")]);
    assert!(!format!("{rows:?}").contains("secret"), "{rows:?}");
    let found = store.audited().await.unwrap();
    assert_eq!((found.rows, found.proven, found.erased, found.broken), (3, 3, 0, None));
    assert_eq!(found.head, rows[2].hash);

    assert!(store.erase_run(&tenant(), run_id(2)).await.unwrap());
    let after = store.audited().await.unwrap();
    assert_eq!((after.rows, after.proven, after.erased, after.broken), (3, 2, 1, None));
    assert_eq!((after.head, store.audit(0).await.unwrap()), (found.head, rows));
    let keys: i64 =
        sqlx::query_scalar("SELECT count(*) FROM audit_keys").fetch_one(store.pool()).await.unwrap();
    assert_eq!(keys, 2);
}

#[tokio::test]
async fn whatever_is_changed_left_out_or_put_in_is_found() {
    for (sql, number, why) in [
        ("UPDATE audit SET decided_by = 'eve' WHERE seq = 2", 2, "it was changed"),
        ("UPDATE audit SET at = at + 1 WHERE seq = 1", 1, "it was changed"),
        ("DELETE FROM audit WHERE seq = 2", 3, "rows before it are missing"),
        ("DELETE FROM audit WHERE seq = 2; UPDATE audit SET seq = 2 WHERE seq = 3", 2, "does not follow"),
        (
            "UPDATE journal SET body = replace(body, 'secret', 'better') WHERE seq = 2",
            1,
            "its event was changed",
        ),
        ("DELETE FROM journal WHERE seq = 2", 1, "its event is gone"),
    ] {
        let tmp = tempfile::tempdir().unwrap();
        let store = open(tmp.path()).await;
        for n in 1..=3 {
            decided(&store, n, "ann").await;
        }
        // The database itself refuses at first.
        if sql.contains(" audit ") {
            let refused = change(&store, sql).await.unwrap_err().to_string();
            assert!(refused.contains("the record of decisions is never"), "{refused}");
        }
        change(&store, "DROP TRIGGER audit_is_not_changed; DROP TRIGGER audit_is_not_erased").await.unwrap();
        change(&store, sql).await.unwrap();
        let broken = store.audited().await.unwrap().broken.unwrap_or_default();
        assert!(broken.starts_with(&format!("row {number},")) && broken.contains(why), "{sql}: {broken}");
    }
}

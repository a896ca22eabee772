//! The audit log: a decision and its audit row are written atomically.

use super::*;
use crate::run::{ApprovalSubject, Decision, RequiredApproval};

fn asked(n: u128) -> Record {
    let needed = RequiredApproval { hash: "h".to_owned(), ..RequiredApproval::default() };
    let body = Event::ApprovalRequired { approval: 1, matter: ApprovalSubject::Call { call: 1 }, needed };
    Record::Run(envelope(Some(run_id(n)), "s1", 2, body).into())
}

fn decided(n: u128) -> Record {
    let body = Event::Decided {
        approval: 1,
        matter: ApprovalSubject::Call { call: 1 },
        decision: Decision::No,
        by: "lucia".to_owned(),
        note: Some("not this week".to_owned()),
        word: None,
    };
    Record::Run(envelope(Some(run_id(n)), "s1", 3, body).into())
}

#[tokio::test]
async fn decisions_of_one_transaction_are_recorded_in_order() {
    let (_dir, store) = fresh().await;
    let records = [1, 2].map(|n| [record(n, 1), asked(n), decided(n)]);
    write(&store, records.into_iter().flatten()).await.unwrap();
    let rows = store.audit_rows(None, 10).await.unwrap();
    let told = rows.iter().map(|row| (row.seq, row.run, row.event, row.who.as_str(), row.approval));
    let expected = [(2, run_id(2), 3, "lucia", Some(1)), (1, run_id(1), 3, "lucia", Some(1))];
    assert_eq!(told.collect::<Vec<_>>(), expected);
    let asked: Vec<i64> =
        sqlx::query_scalar("SELECT asked FROM audit_chain").fetch_all(store.pool()).await.unwrap();
    assert_eq!(asked, [2, 2]);
    let audit = store.verify_audit(None).await.unwrap();
    assert_eq!((audit.rows, audit.broken), (2, None));
    // Equal decisions of two runs have different HMACs.
    let what: Vec<Vec<u8>> =
        sqlx::query_scalar("SELECT DISTINCT what FROM audit_chain").fetch_all(store.pool()).await.unwrap();
    assert_eq!(what.len(), 2);
}

#[tokio::test]
async fn unrecordable_decision_is_not_stored() {
    let (_dir, store) = fresh().await;
    write(&store, [record(1, 1), asked(1)]).await.unwrap();
    let full = "CREATE TRIGGER full BEFORE INSERT ON audit_chain BEGIN SELECT RAISE(ABORT, 'full'); END";
    sqlx::query(full).execute(store.pool()).await.unwrap();
    write(&store, [decided(1)]).await.unwrap_err();
    assert_eq!(store.run_events(&tenant(), run_id(1)).await.unwrap().len(), 2);
    sqlx::query("DROP TRIGGER full").execute(store.pool()).await.unwrap();
    write(&store, [decided(1)]).await.unwrap();
    assert_eq!(store.run_events(&tenant(), run_id(1)).await.unwrap().len(), 3);
    let audit = store.verify_audit(None).await.unwrap();
    assert_eq!((audit.rows, audit.broken), (1, None));
}

#[tokio::test]
async fn verification_reads_more_than_one_page() {
    let (_dir, store) = fresh().await;
    let groups: Vec<Vec<JournalRow>> = (1..=501)
        .map(|n| [record(n, 1), asked(n), decided(n)].map(|record| record.to_row().unwrap()).to_vec())
        .collect();
    assert!(store.write(&groups).await.unwrap().iter().all(|outcome| outcome.failures.is_empty()));
    assert_eq!(store.verify_audit(None).await.unwrap().rows, 501);
    sqlx::raw_sql(
        "DROP TRIGGER audit_chain_unchanged; UPDATE audit_chain SET decision = 'yes' WHERE seq = 501",
    )
    .execute(store.pool())
    .await
    .unwrap();
    let audit = store.verify_audit(None).await.unwrap();
    assert_eq!((audit.rows, audit.broken.map(|broken| broken.seq)), (500, Some(501)));
}

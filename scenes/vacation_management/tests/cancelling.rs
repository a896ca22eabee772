//! A request is cancelled once, whole, by its owner.

use super::*;

#[tokio::test]
async fn cancelling_gives_the_days_back_and_frees_the_dates() {
    let asker = Asker::new().await;
    asker.book("2026-06-15", "2026-06-17").await.unwrap();
    let done = asker.ok("cancel_request", json!({"from": "2026-06-15"})).await;
    assert_eq!(
        done,
        json!({
            "request_id": 1,
            "for": {"username": "keysersoze", "name": "Alessandro Rapiti"},
            "from": "2026-06-15",
            "to": "2026-06-17",
            "returned_days": 3,
            "remaining_days": 26,
            "years": [{"year": 2026, "returned_days": 3, "remaining_days": 26}],
            "status": "cancelled",
            "already_cancelled": false,
        })
    );
    assert_eq!(asker.left(2026).await, 26);
    assert_eq!(asker.book("2026-06-16", "2026-06-18").await.unwrap()["request_id"], 2);
}

#[tokio::test]
async fn cancelling_twice_changes_nothing_and_says_so() {
    let asker = Asker::new().await;
    asker.book("2026-06-15", "2026-06-17").await.unwrap();
    asker.ok("cancel_request", json!({"request_id": 1})).await;
    for which in [json!({"request_id": 1}), json!({"from": "2026-06-15"})] {
        let again = asker.ok("cancel_request", which).await;
        assert_eq!((&again["already_cancelled"], &again["remaining_days"]), (&json!(true), &json!(26)));
    }
}

#[tokio::test]
async fn the_same_key_again_never_cancels_another_request() {
    let asker = Asker::new().await;
    asker.book("2026-06-15", "2026-06-17").await.unwrap();
    let which = json!({"from": "2026-06-15"});
    let first = asker.with_key(Some("c"), "cancel_request", which.clone()).await.unwrap();
    asker.book("2026-06-15", "2026-06-16").await.unwrap();
    let again = asker.with_key(Some("c"), "cancel_request", which.clone()).await.unwrap();
    assert_eq!((&again["request_id"], &again["already_cancelled"]), (&first["request_id"], &json!(false)));
    assert_eq!(asker.left(2026).await, 24);
    // A new call means the request that stands, not the one cancelled before.
    assert_eq!(asker.ok("cancel_request", which).await["request_id"], 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn cancelled_at_the_same_time_the_days_come_back_once() {
    let directory = tempfile::tempdir().unwrap();
    let asker = Asker::on_disk(directory.path()).await;
    asker.book("2026-06-15", "2026-06-17").await.unwrap();
    let calls = (0..6).map(|_| asker.call("cancel_request", json!({"request_id": 1})));
    let done: Vec<_> = futures::future::join_all(calls).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(done.iter().filter(|answer| answer["already_cancelled"] == json!(false)).count(), 1);
    assert_eq!(asker.left(2026).await, 26);
}

#[tokio::test]
async fn a_request_of_another_is_as_if_it_did_not_exist() {
    let asker = Asker::new().await;
    asker.book("2026-06-15", "2026-06-17").await.unwrap();
    for other in [asker.as_user("mrossi"), Asker { tenant: "umbrella", ..asker.clone() }] {
        let theirs = other.refused("cancel_request", json!({"request_id": 1})).await;
        let nobodys = other.refused("cancel_request", json!({"request_id": 9})).await;
        assert_eq!((theirs.code.as_str(), &theirs.code), ("vacation.no_such_number", &nobodys.code));
        assert_eq!(theirs.message.replace('1', "9"), nobodys.message);
        let by_day = other.refused("cancel_request", json!({"from": "2026-06-15"})).await;
        assert_eq!(by_day.code, "vacation.no_such_day");
        assert!(by_day.message.contains("none"), "{by_day}");
    }
    assert_eq!(asker.left(2026).await, 23);
}

#[tokio::test]
async fn what_does_not_name_one_whole_request_is_refused_and_names_those_there_are() {
    let asker = Asker::new().await;
    asker.book("2026-06-15", "2026-06-17").await.unwrap();
    asker.book("2026-07-06", "2026-07-06").await.unwrap();
    let cases = [
        (json!({}), "which", "1 (15–17 June 2026), 2 (6 July 2026)"),
        (json!({"from": "2026-08-01"}), "no_such_day", "1 (15–17 June 2026)"),
        (json!({"from": "2026-06-16"}), "whole_only", "request no. 1"),
        (json!({"from": "2026-06-15", "to": "2026-06-16"}), "whole_only", "15–17 June 2026"),
        (json!({"request_id": 1, "from": "2026-07-06"}), "whole_only", "request no. 1"),
    ];
    for (which, reason, says) in cases {
        let error = asker.refused("cancel_request", which.clone()).await;
        assert_eq!(error.code, format!("vacation.{reason}"), "{which}");
        assert!(error.message.contains(says), "{which}: {error}");
    }
    let whole = json!({"from": "2026-06-15", "to": "2026-06-17"});
    assert_eq!(asker.ok("cancel_request", whole).await["request_id"], 1);
}

#[tokio::test]
async fn a_vacation_that_has_begun_gives_no_days_back() {
    let asker = Asker::new().await;
    asker.book("2026-06-15", "2026-06-17").await.unwrap();
    let on = |now| Asker { now, ..asker.clone() };
    let second_day = on("2026-06-16T00:30:00+02:00[Europe/Rome]");
    let error = second_day.refused("cancel_request", json!({"request_id": 1})).await;
    assert_eq!(error.code, "vacation.begun");
    assert!(error.message.contains("Lucia Ferrari, Sara Bianchi"), "{error}");
    let first_day = on("2026-06-15T07:00:00+02:00[Europe/Rome]");
    assert_eq!(first_day.ok("cancel_request", json!({"request_id": 1})).await["remaining_days"], 26);
    assert_eq!(second_day.ok("cancel_request", json!({"request_id": 1})).await["already_cancelled"], true);
}

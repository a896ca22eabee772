//! Requests are stored once, for the principal, or refused with the reason.

use super::*;

#[tokio::test]
async fn three_days_in_june_are_stored_for_the_principal_and_leave_twenty_three() {
    let asker = Asker::new().await;
    assert_eq!(asker.left(2026).await, 26);
    let made = asker.book("2026-06-15", "2026-06-17").await.unwrap();
    assert_eq!(
        made,
        json!({
            "request_id": 1,
            "for": {"username": "keysersoze", "name": "Alessandro Rapiti"},
            "from": "2026-06-15",
            "to": "2026-06-17",
            "working_days": 3,
            "remaining_days": 23,
            "years": [{"year": 2026, "working_days": 3, "remaining_days": 23}],
            "status": "pending approval",
            "approvers": [
                {"username": "lferrari", "name": "Lucia Ferrari"},
                {"username": "sbianchi", "name": "Sara Bianchi"},
            ],
        })
    );
    assert_eq!(asker.left(2026).await, 23);
    let row = ("keysersoze".to_owned(), "2026-06-15".to_owned(), "2026-06-17".to_owned(), false);
    assert_eq!(asker.rows().await, [row]);
}

#[tokio::test]
async fn only_working_days_count() {
    let cases =
        [("2026-06-15", "2026-06-19", 5), ("2026-06-10", "2026-06-12", 3), ("2026-06-01", "2026-06-03", 2)];
    for (from, to, days) in cases {
        assert_eq!(Asker::new().await.book(from, to).await.unwrap()["working_days"], days, "{from} {to}");
    }
    assert_eq!(Asker::new().await.book("2026-06-10", "2026-06-20").await.unwrap()["working_days"], 8);
}

#[tokio::test]
async fn the_same_key_again_gives_the_same_result_and_no_second_row() {
    let asker = Asker::new().await;
    let arguments = json!({"from": "2026-06-15", "to": "2026-06-17", "note": "sea"});
    let first = asker.with_key(Some("k"), "make_request", arguments.clone()).await.unwrap();
    asker.book("2026-07-06", "2026-07-06").await.unwrap();
    // Later, when the days are past: it was done, and says so.
    let later = Asker { now: "2026-06-20T09:00:00+02:00[Europe/Rome]", ..asker.clone() };
    assert_eq!(later.with_key(Some("k"), "make_request", arguments).await.unwrap(), first);
    assert_eq!(first["note"], "sea");
    assert_eq!(asker.rows().await.len(), 2);
}

#[tokio::test]
async fn a_key_that_comes_with_other_days_is_refused() {
    let asker = Asker::new().await;
    asker
        .with_key(Some("k"), "make_request", json!({"from": "2026-06-15", "to": "2026-06-17"}))
        .await
        .unwrap();
    let other = json!({"from": "2026-07-15", "to": "2026-07-17"});
    let error = asker.with_key(Some("k"), "make_request", other).await.unwrap_err();
    assert_eq!(error.code, "vacation.key_reused");
}

#[tokio::test]
async fn the_same_key_of_another_tenant_is_another_call() {
    let asker = Asker::new().await;
    let arguments = json!({"from": "2026-06-15", "to": "2026-06-17"});
    asker.with_key(Some("k"), "make_request", arguments.clone()).await.unwrap();
    let elsewhere = Asker { tenant: "umbrella", ..asker.clone() };
    assert_eq!(elsewhere.left(2026).await, 26);
    elsewhere.with_key(Some("k"), "make_request", arguments).await.unwrap();
    assert_eq!((asker.left(2026).await, elsewhere.left(2026).await), (23, 23));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_same_key_at_the_same_time_makes_one_row_and_one_answer() {
    let directory = tempfile::tempdir().unwrap();
    let asker = Asker::on_disk(directory.path()).await;
    let arguments = json!({"from": "2026-06-15", "to": "2026-06-17"});
    let calls = (0..12).map(|_| asker.with_key(Some("k"), "make_request", arguments.clone()));
    let answers: Vec<_> = futures::future::join_all(calls).await.into_iter().map(Result::unwrap).collect();
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    assert_eq!(asker.rows().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_overlapping_requests_at_the_same_time_one_is_stored() {
    let directory = tempfile::tempdir().unwrap();
    let asker = Asker::on_disk(directory.path()).await;
    let calls = (15..19).map(|day| {
        let asker = asker.clone();
        tokio::spawn(async move { asker.book(&format!("2026-06-{day}"), "2026-06-19").await })
    });
    let outcomes: Vec<_> = futures::future::join_all(calls).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
    assert!(outcomes.iter().flat_map(|outcome| outcome.as_ref().err()).all(|e| e.code == "vacation.overlap"));
    assert_eq!(asker.rows().await.len(), 1);
}

#[tokio::test]
async fn a_write_without_a_key_does_nothing() {
    let asker = Asker::new().await;
    let days = json!({"from": "2026-06-15", "to": "2026-06-17"});
    for (tool, arguments) in [("make_request", days), ("cancel_request", json!({"request_id": 1}))] {
        let error = asker.with_key(None, tool, arguments).await.unwrap_err();
        assert_eq!((error.kind, error.code.as_str()), (ToolErrorKind::Failed, "vacation.no_key"));
    }
    assert!(asker.rows().await.is_empty());
}

#[tokio::test]
async fn only_the_principal_is_served_whatever_name_is_in_the_chat() {
    let asker = Asker::new().await;
    for named in ["mrossi", "Mario Rossi", "Mario", "nobody", "{name}"] {
        let arguments = json!({"from": "2026-06-15", "to": "2026-06-19", "employee": named});
        let error = asker.refused("make_request", arguments).await;
        assert_eq!(error.code, "vacation.not_for_others");
        assert!(error.message.starts_with("I can act only for keysersoze (Alessandro Rapiti)"), "{error}");
        assert!(error.message.contains(named), "{error}");
        for tool in ["get_balance", "list_requests", "get_approvers", "cancel_request"] {
            assert_eq!(asker.refused(tool, json!({"employee": named})).await.code, "vacation.not_for_others");
        }
    }
    assert!(asker.rows().await.is_empty());
}

#[tokio::test]
async fn the_principal_may_be_named_in_any_usual_way() {
    let asker = Asker::new().await;
    for named in ["keysersoze", " @KeyserSoze", "Alessandro Rapiti", "RAPITI", "me", "", "  "] {
        assert_eq!(
            asker.ok("get_balance", json!({"employee": named})).await["remaining_days"],
            26,
            "{named}"
        );
    }
    let french = asker.as_user("jlefevre");
    assert_eq!(french.ok("get_balance", json!({"employee": "joel lefevre"})).await["allowance_days"], 22);
    // Two people are called Rossi: the name alone does not say which.
    let mario = asker.as_user("mrossi");
    assert_eq!(
        mario.refused("get_balance", json!({"employee": "Rossi"})).await.code,
        "vacation.not_for_others"
    );
    assert_eq!(mario.left(2026).await, 22);
}

#[tokio::test]
async fn person_who_is_not_in_the_data_gets_the_defaults_of_the_settings() {
    let newcomer = Asker::new().await.as_user("newcomer");
    let made = newcomer.book("2026-06-15", "2026-06-15").await.unwrap();
    assert_eq!((&made["remaining_days"], &made["for"]["name"]), (&json!(25), &json!("newcomer")));
    assert_eq!(made["approvers"], json!([]));
    let settings = json!({"holidays": "IT", "default_days": 2, "default_approvers": ["sbianchi", "boss"]});
    let newcomer = Asker { settings, ..newcomer };
    assert_eq!(newcomer.left(2026).await, 1);
    assert_eq!(
        newcomer.ok("get_approvers", json!({})).await["approvers"],
        json!([{"username": "sbianchi", "name": "Sara Bianchi"}, {"username": "boss", "name": "boss"}])
    );
    let people =
        json!({"people": [{"username": "newcomer", "name": "Ada Neri", "days": 5, "approvers": []}]});
    let own = Asker { settings: people, ..newcomer };
    assert_eq!(
        (own.left(2026).await, own.ok("get_balance", json!({})).await["for"]["name"].clone()),
        (4, json!("Ada Neri"))
    );
}

#[tokio::test]
async fn a_request_that_cannot_be_is_refused_with_its_reason() {
    let asker = Asker::new().await;
    asker.book("2026-06-15", "2026-06-17").await.unwrap();
    let cases = [
        ("2026-06-20", "2026-06-18", "order", "18 June 2026"),
        ("2026-05-03", "2026-05-06", "past", "today is 4 May 2026"),
        ("2025-06-15", "2025-06-17", "past", "15 June 2025"),
        ("2026-06-20", "2026-06-21", "no_working_day", "20–21 June 2026"),
        ("2026-06-02", "2026-06-02", "no_working_day", "public holidays"),
        ("2027-03-27", "2027-03-29", "no_working_day", "27–29 March 2027"),
        ("2026-06-17", "2026-06-19", "overlap", "request no. 1 (15–17 June 2026)"),
        ("2026-06-10", "2026-06-30", "overlap", "request no. 1"),
        ("2026-07-01", "2026-08-31", "balance", "takes 44 vacation days in 2026, and 23 are left"),
        ("2026-07-01", "2027-07-02", "too_long", "367 calendar days"),
        ("2026-07-01", "9999-12-31", "too_long", "366"),
    ];
    for (from, to, reason, says) in cases {
        let error = asker.refused("make_request", json!({"from": from, "to": to})).await;
        assert_eq!(error.code, format!("vacation.{reason}"), "{from} {to}: {error}");
        assert!(error.message.contains(says), "{from} {to}: {error}");
    }
    for arguments in [json!({"from": "2026-06-15"}), json!({"from": "2026-06-31", "to": "2026-07-01"})] {
        assert_eq!(asker.refused("make_request", arguments).await.code, "tool.arguments");
    }
}

#[tokio::test]
async fn today_may_be_taken_and_is_the_day_where_the_user_is() {
    let asker = Asker::new().await;
    assert!(asker.book("2026-05-04", "2026-05-04").await.is_ok());
    // The same moment is 5 May in Tokyo and 4 May in New York.
    let tokyo = Asker { now: "2026-05-05T01:00:00+09:00[Asia/Tokyo]", ..asker.as_user("nweber") };
    assert_eq!(tokyo.book("2026-05-04", "2026-05-04").await.unwrap_err().code, "vacation.past");
    let new_york = Asker { now: "2026-05-04T12:00:00-04:00[America/New_York]", ..tokyo };
    assert!(new_york.book("2026-05-04", "2026-05-04").await.is_ok());
}

#[tokio::test]
async fn a_request_over_new_year_takes_from_each_year_its_own_days() {
    let asker = Asker::new().await;
    let made = asker.book("2026-12-28", "2027-01-08").await.unwrap();
    assert_eq!(made["working_days"], 8);
    assert_eq!(
        made["years"],
        json!([
            {"year": 2026, "working_days": 4, "remaining_days": 22},
            {"year": 2027, "working_days": 4, "remaining_days": 22},
        ])
    );
    assert_eq!((asker.left(2026).await, asker.left(2027).await, asker.left(2028).await), (22, 22, 26));
    // 2026 has days enough, 2027 has not.
    let few = Asker { settings: json!({"people": [], "default_days": 4}), ..Asker::new().await };
    few.book("2027-06-14", "2027-06-14").await.unwrap();
    let error = few.refused("make_request", json!({"from": "2026-12-28", "to": "2027-01-08"})).await;
    assert!(error.message.contains("takes 4 vacation days in 2027, and 3 are left"), "{error}");
    assert_eq!((few.left(2026).await, few.left(2027).await), (4, 3));
}

#[tokio::test]
async fn the_last_day_left_can_be_taken_and_not_one_more() {
    let asker = Asker { settings: json!({"people": [], "default_days": 3}), ..Asker::new().await };
    assert_eq!(asker.book("2026-06-15", "2026-06-17").await.unwrap()["remaining_days"], 0);
    let error = asker.refused("make_request", json!({"from": "2026-06-18", "to": "2026-06-18"})).await;
    assert_eq!(error.code, "vacation.balance");
    let fewer = Asker { settings: json!({"people": [], "default_days": 1}), ..asker };
    assert_eq!(fewer.left(2026).await, 0, "an allowance that was cut leaves nothing, not less");
}

#[tokio::test]
async fn a_commit_that_fails_is_of_unknown_outcome_and_the_same_key_tries_again() {
    let asker = Asker::new().await;
    // A broken promise that is only seen at the commit.
    let fault = "CREATE TABLE parent (id INTEGER PRIMARY KEY); \
                 CREATE TABLE child (id INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED); \
                 CREATE TRIGGER fault AFTER INSERT ON vacation_requests BEGIN INSERT INTO child VALUES (1); END; \
                 CREATE TRIGGER fault2 AFTER UPDATE ON vacation_requests BEGIN INSERT INTO child VALUES (1); END";
    sqlx::raw_sql(fault).execute(&asker.pool).await.unwrap();
    let arguments = json!({"from": "2026-06-15", "to": "2026-06-17"});
    let error = asker.with_key(Some("k"), "make_request", arguments.clone()).await.unwrap_err();
    assert_eq!((error.kind, error.code.as_str()), (ToolErrorKind::Unknown, "vacation.commit_unknown"));
    sqlx::raw_sql("DROP TRIGGER fault").execute(&asker.pool).await.unwrap();
    let made = asker.with_key(Some("k"), "make_request", arguments).await.unwrap();
    assert_eq!(made["remaining_days"], 23);
    let error = asker.with_key(Some("c"), "cancel_request", json!({"from": "2026-06-15"})).await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Unknown);
    assert_eq!(asker.left(2026).await, 23);
}

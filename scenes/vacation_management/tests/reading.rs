//! Balance, requests, approvers, public holidays.

use super::*;

#[tokio::test]
async fn the_balance_is_of_the_principal_and_of_the_present_year_by_default() {
    let asker = Asker::new().await;
    asker.book("2026-06-15", "2026-06-19").await.unwrap();
    assert_eq!(
        asker.ok("get_balance", json!({})).await,
        json!({
            "for": {"username": "keysersoze", "name": "Alessandro Rapiti"},
            "year": 2026, "allowance_days": 26, "requested_days": 5, "remaining_days": 21,
        })
    );
    assert_eq!(asker.ok("get_balance", json!({"year": 2027})).await["remaining_days"], 26);
    assert_eq!(asker.as_user("mrossi").left(2026).await, 22);
}

#[tokio::test]
async fn requests_are_listed_by_day_with_their_notes_and_without_the_cancelled() {
    let asker = Asker::new().await;
    asker
        .call("make_request", json!({"from": "2026-07-06", "to": "2026-07-07", "note": " sea "}))
        .await
        .unwrap();
    asker.book("2026-06-15", "2026-06-17").await.unwrap();
    asker.book("2027-01-07", "2027-01-07").await.unwrap();
    asker.ok("cancel_request", json!({"request_id": 2})).await;
    let ids = |list: &Value| -> Vec<i64> {
        list["requests"].as_array().unwrap().iter().map(|r| r["request_id"].as_i64().unwrap()).collect()
    };
    let standing = asker.ok("list_requests", json!({})).await;
    assert_eq!(ids(&standing), [1, 3]);
    assert_eq!(
        standing["requests"][0],
        json!({"request_id": 1, "from": "2026-07-06", "to": "2026-07-07", "working_days": 2,
               "status": "pending approval", "note": "sea"})
    );
    let all = asker.ok("list_requests", json!({"include_cancelled": true, "year": 2026})).await;
    assert_eq!(ids(&all), [2, 1]);
    assert_eq!(all["requests"][0]["status"], "cancelled");
    assert!(ids(&asker.as_user("mrossi").ok("list_requests", json!({})).await).is_empty());
}

#[tokio::test]
async fn a_long_list_is_cut_and_says_so() {
    let asker = Asker::new().await;
    for _ in 0..102 {
        let made = asker.book("2026-06-15", "2026-06-15").await.unwrap();
        asker.ok("cancel_request", json!({"request_id": made["request_id"]})).await;
    }
    let list = asker.ok("list_requests", json!({"include_cancelled": true})).await;
    assert_eq!((&list["count"], &list["more"]), (&json!(100), &json!(true)));
}

#[tokio::test]
async fn the_approvers_of_the_principal_are_named() {
    let approvers = Asker::new().await.ok("get_approvers", json!({})).await;
    assert_eq!(approvers["approvers"][0], json!({"username": "lferrari", "name": "Lucia Ferrari"}));
    assert_eq!(approvers["for"]["username"], "keysersoze");
}

#[tokio::test]
async fn the_holidays_of_a_year_are_told_in_the_users_language() {
    let asker = Asker { language: Some("it"), ..Asker::new().await };
    let list = asker.ok("get_holidays", json!({})).await;
    assert_eq!(list["year"], 2026);
    let holidays = list["holidays"].as_array().unwrap();
    assert_eq!(holidays.len(), 13);
    let monday = json!({"date": "2026-04-06", "name": "Lunedì dell'Angelo (Pasquetta)", "weekend": false});
    assert!(holidays.contains(&monday), "{list}");
    let next = asker.ok("get_holidays", json!({"year": 2027})).await;
    assert!(next["holidays"].as_array().unwrap().iter().any(|h| h["date"] == "2027-03-29"));
    for year in [1492, 2400] {
        assert_eq!(asker.refused("get_holidays", json!({"year": year})).await.code, "vacation.year");
    }
}

#[tokio::test]
async fn settings_that_do_not_fit_are_named() {
    for (settings, says) in
        [(json!({"holidays": "FR"}), "only the Italian"), (json!({"holydays": "IT"}), "holydays")]
    {
        let asker = Asker { settings, ..Asker::new().await };
        let error = asker.call("get_holidays", json!({})).await.unwrap_err();
        assert_eq!((error.kind, error.code.as_str()), (ToolErrorKind::Failed, "vacation.settings"));
        assert!(error.message.contains(says), "{error}");
    }
}

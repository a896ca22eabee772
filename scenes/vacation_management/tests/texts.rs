//! The sentences and schemas of `scene.toml`.

use super::*;

fn scene() -> toml::Table {
    include_str!("../scene.toml").parse().unwrap()
}

fn said(language: &str, tool: &str, result: &Value) -> String {
    crate::shipped::testing::said(include_str!("../scene.toml"), language, tool, result)
}

#[tokio::test]
async fn a_booking_says_for_whom_when_how_long_what_remains_and_who_approves() {
    let made = Asker::new().await.book("2026-06-15", "2026-06-17").await.unwrap();
    assert_eq!(
        said("it", "MakeRequest", &made),
        "Ho registrato la richiesta di ferie n. 1 per Alessandro Rapiti dal 2026-06-15 al 2026-06-17: \
         3 giorni lavorativi; restano 23 giorni di ferie per il 2026. È in attesa di approvazione da parte di: \
         Lucia Ferrari, Sara Bianchi."
    );
    assert_eq!(
        said("en", "MakeRequest", &made),
        "I have submitted vacation request no. 1 for Alessandro Rapiti, from 2026-06-15 to 2026-06-17: \
         3 working days; 23 vacation days are left in 2026. It waits for the approval of: Lucia Ferrari, Sara Bianchi."
    );
    let one = Asker::new().await.book("2026-06-08", "2026-06-08").await.unwrap();
    assert!(said("it", "MakeRequest", &one).contains("l'2026-06-08: 1 giorno lavorativo;"));
}

#[tokio::test]
async fn every_tool_answers_in_five_languages_with_the_facts() {
    let asker = Asker::new().await;
    let empty = asker.ok("list_requests", json!({})).await;
    let made = asker.book("2026-12-28", "2027-01-08").await.unwrap();
    let list = asker.ok("list_requests", json!({})).await;
    let balance = asker.ok("get_balance", json!({})).await;
    let cancelled = asker.ok("cancel_request", json!({"request_id": 1})).await;
    let again = asker.ok("cancel_request", json!({"request_id": 1})).await;
    let holidays = asker.ok("get_holidays", json!({})).await;
    let approvers = asker.ok("get_approvers", json!({})).await;
    let nobody = json!({"for": {"name": "Ada Neri"}, "approvers": []});
    let cases: [(&str, &Value, &[&str]); 9] = [
        (
            "MakeRequest",
            &made,
            &["Alessandro Rapiti", "2026-12-28", "2027-01-08", "8", "22", "2027", "Sara Bianchi"],
        ),
        ("ListRequests", &list, &["1", "2026-12-28", "2027-01-08", "8"]),
        ("ListRequests", &empty, &["Alessandro Rapiti", "2026-01-01"]),
        ("GetBalance", &balance, &["22", "26", "4", "2026", "Alessandro Rapiti"]),
        ("CancelRequest", &cancelled, &["Alessandro Rapiti", "8", "26", "2026-12-28"]),
        ("CancelRequest", &again, &["26", "2027-01-08"]),
        ("GetHolidays", &holidays, &["2026-04-06 Easter Monday", "2026-12-26"]),
        ("GetApprovers", &approvers, &["Lucia Ferrari, Sara Bianchi"]),
        ("GetApprovers", &nobody, &["Ada Neri"]),
    ];
    for (tool, result, mentions) in cases {
        for language in ["it", "en", "fr", "de", "es"] {
            let sentence = said(language, tool, result);
            assert!(sentence.ends_with('.') && !sentence.contains("  "), "{sentence}");
            for mention in mentions {
                assert!(sentence.contains(mention), "{language} {tool} {mention}: {sentence}");
            }
        }
    }
    for language in ["it", "en", "fr", "de", "es"] {
        assert_ne!(said(language, "CancelRequest", &cancelled), said(language, "CancelRequest", &again));
    }
}

#[tokio::test]
async fn a_refusal_is_in_the_users_language() {
    let asker = Asker { language: Some("it"), ..Asker::new().await };
    let arguments = json!({"from": "2026-06-15", "to": "2026-06-19", "employee": "mrossi"});
    let error = asker.refused("make_request", arguments).await;
    assert!(error.message.starts_with("Posso agire solo per keysersoze (Alessandro Rapiti)"), "{error}");
    let error = asker.refused("make_request", json!({"from": "2026-06-20", "to": "2026-06-21"})).await;
    assert!(error.message.contains("20–21 giugno 2026"), "{error}");
}

#[test]
fn the_scene_names_each_registered_tool_once_and_its_settings_fit() {
    let scene = scene();
    let tools = scene["tools"].as_array().unwrap();
    let mut named: Vec<_> = tools.iter().map(|t| t["native"].as_str().unwrap().to_owned()).collect();
    named.sort();
    assert_eq!(named, super::super::register(NativeTools::new()).names().collect::<Vec<_>>());
    for tool in tools {
        jsonschema::validator_for(&serde_json::to_value(&tool["parameters"]).unwrap()).unwrap();
    }
    let names: Vec<_> = tools.iter().map(|t| t["name"].as_str().unwrap()).collect();
    for example in scene["examples"].as_array().unwrap() {
        assert!(names.contains(&example["tool"].as_str().unwrap()), "{example}");
    }
}

#[tokio::test]
async fn the_shipped_settings_serve_a_newcomer() {
    let settings = serde_json::to_value(&scene()["settings"]).unwrap();
    let newcomer = Asker { settings, ..Asker::new().await.as_user("newcomer") };
    let made = newcomer.book("2026-06-15", "2026-06-17").await.unwrap();
    assert_eq!(
        (&made["remaining_days"], &made["approvers"][0]["name"]),
        (&json!(23), &json!("Sara Bianchi"))
    );
}

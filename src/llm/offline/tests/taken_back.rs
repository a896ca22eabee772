//! Replies that take back what a question is about, and wishes that a question may take back.

use serde_json::{Value, json};

use super::support::World;

#[test]
fn order_to_drop_a_question_undoes_nothing_that_was_done() {
    for (request, question, replies) in [
        (
            "Request vacation on 14 December",
            "Can I take vacation from 15 to 17 June?",
            [
                "Cancel it", "Cancel that", "cancel the request", "No, cancel that please", "never mind",
                "I changed my mind", "nah", "Actually keep it",
            ],
        ),
        (
            "Richiedi ferie per il 14 dicembre",
            "Posso prendere ferie dal 15 al 17 giugno?",
            [
                "annullala",
                "Annulla tutto",
                "annulla la richiesta",
                "lascia perdere",
                "ho cambiato idea",
                "meglio di no",
                "Lasciala",
                "ritira quella richiesta",
            ],
        ),
    ] {
        for reply in replies {
            let mut world = World::shipped_and(&[]);
            let tool = &mut |_: &str, _: &Value| json!({"outcome": "ok", "result": {"request_id": 7}});
            world.ask(request, tool);
            assert!(world.ask(question, tool).question.is_some(), "{question}");
            let outcome = world.ask(reply, tool);
            assert!(outcome.tools().is_empty() && outcome.question.is_none(), "{reply}: {}", outcome.plan);
        }
    }
}

#[test]
fn wish_before_a_question_for_what_is_left_is_asked_about() {
    for request in [
        "I'd like to take vacation from 7 to 11 June, how many days do I have left?",
        "Vorrei prendere ferie dal 7 all'11 giugno, quanti giorni mi restano?",
    ] {
        let outcome =
            World::shipped_and(&[]).ask(request, &mut |_, _| json!({"outcome": "ok", "result": {}}));
        assert!(outcome.question.is_some(), "{request}: {:?}", outcome.calls);
    }
    for request in [
        "I'd like to take vacation from 7 to 11 June and know how many days I have left",
        "Vorrei prendere ferie dal 7 all'11 giugno, e che tempo fa a Milano?",
    ] {
        let outcome =
            World::shipped_and(&[]).ask(request, &mut |_, _| json!({"outcome": "ok", "result": {}}));
        assert!(outcome.tools().contains(&"MakeRequest"), "{request}: {:?}", outcome.question);
    }
}

#[test]
fn place_in_a_list_names_what_is_cancelled() {
    for (list, order) in [
        ("List my vacation requests", "Cancel the second one"),
        ("Mostra le mie richieste di ferie", "Annulla la seconda"),
    ] {
        let mut world = World::shipped_and(&[]);
        let tool = &mut |_: &str, _: &Value| {
            json!({"outcome": "ok", "result": {"requests": [
                {"request_id": 4, "from": "2026-12-14"}, {"request_id": 9, "from": "2026-12-21"}]}})
        };
        world.ask(list, tool);
        let outcome = world.ask(order, tool);
        let known = outcome.question.as_ref().map(|question| question["known"].clone());
        let stated = outcome.calls.first().map(|call| call.1.clone()).or(known).unwrap_or_default();
        assert_eq!(stated["request_id"], 9, "{order}: {:?} {}", outcome.question, outcome.plan);
    }
}

#[test]
fn place_names_nothing_of_what_single_writes_returned() {
    let mut world = World::shipped_and(&[]);
    let mut last = 0;
    let tool = &mut |name: &str, _: &Value| {
        last += u64::from(name == "MakeRequest");
        json!({"outcome": "ok", "result": {"request_id": last, "from": format!("2026-12-{}", 13 + last)}})
    };
    world.ask("Book 14 December off", tool);
    world.ask("Book 15 December off", tool);
    let outcome = world.ask("Cancel the first", tool);
    // The tool asks which one is meant.
    assert!(outcome.calls.iter().all(|call| call.1["request_id"].is_null()), "{:?}", outcome.calls);
}

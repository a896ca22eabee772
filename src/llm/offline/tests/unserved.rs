//! Unserved parts of a request are reported; preambles are not.

use serde_json::{Value, json};

use super::acts::strangers;
use super::domains::{VACATION, WEATHER};
use super::support::World;

#[test]
fn unserved_half_is_reported() {
    let mut wrong = Vec::new();
    for (request, tools, unserved) in [
        ("Book AB123CD for tomorrow and order a pizza", &["book_car"] as &[&str], "order a pizza"),
        ("Cancel appointment 41, and call a taxi", &["cancel_appointment"], "call a taxi"),
        ("What is the weather in Milan? Then bake a cake", &["WeatherForecast_Get"], "bake a cake"),
        ("Cancel appointment 41. Also water the plants.", &["cancel_appointment"], "water the plants"),
        ("Tell me the weather in Rome and sing me a song", &["WeatherForecast_Get"], "sing me a song"),
        ("Ask for vacation on 9 July and play some music", &["MakeRequest"], "play some music"),
        ("Order a pizza and cancel appointment 41", &["cancel_appointment"], "Order a pizza"),
        ("Prenota AB123CD per domani e ordina una pizza", &["book_car"], "ordina una pizza"),
        ("Disdici l'appuntamento 41 e chiama un taxi", &["cancel_appointment"], "chiama un taxi"),
        (
            "Che tempo fa a Milano? Poi raccontami una barzelletta",
            &["WeatherForecast_Get"],
            "raccontami una barzelletta",
        ),
        ("Chiedi ferie il 9 luglio e portami un caffè", &["MakeRequest"], "portami un caffè"),
        ("Dimmi il meteo a Roma, e annaffia le piante", &["WeatherForecast_Get"], "annaffia le piante"),
        ("Cancel appointment 41 and remind me to buy milk", &["cancel_appointment"], "remind me to buy milk"),
        (
            "Disdici l'appuntamento 41 e di' a Marco che arrivo",
            &["cancel_appointment"],
            "di' a Marco che arrivo",
        ),
    ] {
        let mut world = strangers();
        let outcome = world.run(request);
        let named = outcome.plan["unserved"].as_array().cloned().unwrap_or_default();
        let fits = named.len() == 1 && named[0].as_str().is_some_and(|said| said.contains(unserved));
        if outcome.tools() != tools || !fits || !outcome.answer.contains(unserved) {
            wrong.push(format!(
                "{request}: {:?} {named:?} {:?}\n  {}",
                outcome.tools(),
                outcome.purposes,
                outcome.answer
            ));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn greetings_thanks_and_preambles_are_neither_steps_nor_unserved() {
    let mut wrong = Vec::new();
    for (request, tools) in [
        ("Hello! Can you help me? Cancel appointment 41", &["cancel_appointment"] as &[&str]),
        ("I have a question. What is the weather in Rome?", &["WeatherForecast_Get"]),
        ("I'm planning a trip. What is the weather in Rome?", &["WeatherForecast_Get"]),
        ("I need your help. Please cancel appointment 41. Thanks a lot!", &["cancel_appointment"]),
        ("Good morning, I have a request: cancel appointment 12", &["cancel_appointment"]),
        ("Ciao! Mi puoi aiutare? Disdici l'appuntamento 41", &["cancel_appointment"]),
        ("Ho una domanda. Che tempo fa a Roma?", &["WeatherForecast_Get"]),
        ("Sto organizzando un viaggio. Che tempo fa a Roma?", &["WeatherForecast_Get"]),
        ("Ho bisogno di una mano. Disdici l'appuntamento 12. Grazie mille!", &["cancel_appointment"]),
        ("Book AB123CD for tomorrow, please, and let me know", &["book_car"]),
    ] {
        let mut world = strangers();
        let outcome = world.run(request);
        if outcome.tools() != tools || outcome.plan["unserved"] != Value::Null {
            wrong.push(format!(
                "{request}: {:?} {} {:?}",
                outcome.tools(),
                outcome.plan["unserved"],
                outcome.question
            ));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn preamble_alone_gets_no_steps() {
    for request in ["Can you help me?", "I'm planning a trip to Rome", "Ho una domanda", "Mi puoi aiutare?"] {
        let outcome = strangers().run(request);
        assert!(outcome.scenes.is_empty(), "{request}: {:?}", outcome.purposes);
    }
}

#[test]
fn fully_served_request_reports_nothing_unserved() {
    for request in [
        "Voglio sapere il meteo a Milano e poi richiedere 3 giorni di ferie dal 15 al 17 giugno",
        "Book AB123CD for tomorrow and tell me its fuel",
        "Report damage on AB123CD: the door is scratched and the window does not close",
    ] {
        let plan = strangers().plan(request);
        assert_eq!(plan.get("unserved"), None, "{request}: {}", json!(plan));
    }
}

#[test]
fn steps_beyond_those_of_a_plan_are_named_as_not_served() {
    let one = json!({"type": "object", "properties": {"steps": {"type": "array", "maxItems": 1}}});
    let words = "What is the weather in Milan, and how many vacation days do I have left?";
    let plan = World::of(&[WEATHER, VACATION]).planned(words, &[], one);
    assert_eq!(plan["steps"].as_array().unwrap().len(), 1, "{plan:#}");
    assert_eq!(plan["unserved"], json!(["how many vacation days do I have left?"]), "{plan:#}");
}

#[test]
fn question_after_an_order_for_a_story_is_no_part_of_it() {
    for (request, tools) in [
        ("Tell me a joke, and tell me the weather in Rome", &["WeatherForecast_Get"] as &[&str]),
        ("Raccontami una barzelletta e dimmi che tempo fa a Roma", &["WeatherForecast_Get"]),
        ("Tell me a story about Rome and tell me how it is to cancel appointment 41", &[]),
        ("Write me a poem and cancel appointment 41", &[]),
    ] {
        let outcome = strangers().run(request);
        assert_eq!(outcome.tools(), tools, "{request}: {}", outcome.plan);
    }
}

#[test]
fn question_beside_a_declined_action_is_answered_or_named() {
    for (request, named) in [
        ("Don't book anything yet. How would it affect my karma?", "How would it affect my karma"),
        ("Non prenotare nulla. Come cambierebbe il mio karma?", "Come cambierebbe il mio karma"),
    ] {
        let answer = strangers().run(request).answer;
        assert!(answer.lines().count() == 2 && answer.contains(named), "{request}: {answer}");
    }
}

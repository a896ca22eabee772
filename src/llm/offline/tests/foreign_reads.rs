//! Questions in French, German and Spanish over the shipped scenes.

use serde_json::{Value, json};

use super::support::{RequestOutcome, World};

fn answered(request: &str) -> RequestOutcome {
    let mut world = World::shipped_and(&[]);
    world.ask(request, &mut |_, _| json!({"outcome": "ok", "result": {}}))
}

#[test]
fn each_of_several_places_is_looked_up() {
    for (request, places) in [
        ("Quel temps fait-il à Paris et à Rome ?", ["Paris", "Rome"]),
        ("Quel temps fait-il à Paris et Rome ?", ["Paris", "Rome"]),
        ("Wie ist das Wetter in Paris und in Rom?", ["Paris", "Rom"]),
        ("Wie ist das Wetter in Paris und Rom?", ["Paris", "Rom"]),
        ("¿Qué tiempo hace en París y en Roma?", ["París", "Roma"]),
        ("¿Qué tiempo hace en París y Roma?", ["París", "Roma"]),
    ] {
        let calls = answered(request).calls;
        let found: Vec<&Value> = calls.iter().map(|(_, arguments)| &arguments["city"]).collect();
        assert_eq!(found, places, "{request}: {calls:?}");
    }
}

#[test]
fn weather_without_a_place_asks_for_it() {
    for request in ["Quel temps fait-il ?", "¿Qué tiempo hace?", "Wie ist das Wetter?"] {
        let outcome = answered(request);
        let question = outcome.question.as_ref().unwrap_or(&Value::Null);
        assert_eq!(question["missing"], json!(["city"]), "{request}: {:?}", outcome.calls);
    }
}

#[test]
fn what_the_speaker_has_done_is_no_question_about_somebody_else() {
    let outcome = answered("¿Qué solicitudes de vacaciones he hecho?");
    assert_eq!(outcome.tools(), ["ListRequests"], "{:?}", outcome.question);
}

#[test]
fn city_that_is_to_be_added_is_not_merely_looked_up() {
    for request in
        ["Ajoute la ville de Bergame", "Füge die Stadt Bergamo hinzu", "Añade la ciudad de Bérgamo"]
    {
        let outcome = answered(request);
        assert!(!outcome.tools().contains(&"CityExists"), "{request}: {:?}", outcome.calls);
    }
}

#[test]
fn public_holidays_are_no_vacation_in_any_language() {
    for request in [
        "Quels sont les jours fériés ?",
        "Welche Feiertage gibt es?",
        "¿Qué días festivos hay?",
        "Quali sono i giorni festivi?",
    ] {
        let outcome = answered(request);
        assert_eq!(outcome.tools(), ["GetHolidays"], "{request}: {:?} {}", outcome.question, outcome.plan);
    }
}

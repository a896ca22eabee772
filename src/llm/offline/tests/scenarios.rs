//! Named scenarios with scenes similar to the shipped ones.

use serde_json::{Value, json};

use super::support::World;

/// Tools that keep books: a balance of 26 days, a directory of one.
fn office() -> impl FnMut(&str, &Value) -> Value {
    let mut left = 26;
    move |tool, arguments| match tool {
        "WeatherForecast_Get" => {
            json!({"outcome": "ok", "result": {"city": arguments["city"]}, "say": format!("A {}: sole.", arguments["city"].as_str().unwrap())})
        }
        "get_user_name" => {
            json!({"outcome": "ok", "result": {"name": "Alessandro Rapiti"}, "say": "Alessandro Rapiti"})
        }
        "GetBalance" => {
            json!({"outcome": "ok", "result": {"left": left}, "say": format!("Ti restano {left} giorni.")})
        }
        "MakeRequest" => {
            left -= 3;
            json!({"outcome": "ok", "result": {"request_id": 1}, "say": "Richiesta inviata."})
        }
        _ => json!({"outcome": "ok", "result": {"approvers": ["Sara Bianchi"]}}),
    }
}

#[test]
fn read_after_write_sees_the_change() {
    let outcome = World::all().ask(
        "Quanti giorni di ferie ho? Poi chiedi ferie dal 15 al 17 giugno e dimmi quanti me ne restano",
        &mut office(),
    );
    assert_eq!(outcome.tools(), ["GetBalance", "MakeRequest", "GetBalance"], "{:?}", outcome.purposes);
    assert_eq!(outcome.depends, [vec![], vec![1], vec![2]]);
    assert!(outcome.answer.contains("26") && outcome.answer.contains("23"), "{}", outcome.answer);
}

#[test]
fn name_of_the_user_is_remembered() {
    let mut world = World::all();
    let mut office = office();
    let outcome = world.ask("Il mio username è keysersoze", &mut office);
    assert_eq!(outcome.tools(), ["get_user_name"]);
    let outcome = world.ask("Qual è il mio nome completo?", &mut office);
    assert_eq!(outcome.call("get_user_name"), &json!({"username": "keysersoze"}));
    assert!(outcome.answer.contains("Alessandro Rapiti"));
}

#[test]
fn missing_values_are_not_invented() {
    let mut world = World::all();
    let mut office = office();
    let outcome = world.ask("What is the weather in Milan, and then ask for three days off", &mut office);
    assert_eq!(outcome.tools(), ["WeatherForecast_Get"]);
    assert_eq!(outcome.question.as_ref().unwrap()["missing"], json!(["from", "to"]));
    assert!(outcome.answer.contains("Milan") && outcome.answer.contains("date"), "{}", outcome.answer);
    let outcome = world.ask("From 15 to 17 June", &mut office);
    assert_eq!(outcome.tools(), ["MakeRequest"]);
    assert_eq!(outcome.call("MakeRequest"), &json!({"from": "2026-06-15", "to": "2026-06-17"}));
}

#[test]
fn approver_question_after_greeting_and_request_is_answered() {
    let mut world = World::all();
    let mut office = office();
    let outcome = world
        .ask("Ciao! Mi chiamo con username keysersoze e vorrei sapere il meteo a Milano oggi.", &mut office);
    assert_eq!(outcome.scenes, ["Identity", "Weather"]);
    let outcome = world
        .ask("Perfetto! Ora vorrei richiedere 5 giorni di ferie dal 15 giugno al 19 giugno.", &mut office);
    assert_eq!(outcome.call("MakeRequest"), &json!({"from": "2026-06-15", "to": "2026-06-19"}));
    let outcome = world.ask("Chi deve approvare la mia richiesta?", &mut office);
    assert_eq!(outcome.tools(), ["GetApprovers"]);
}

#[test]
fn name_of_another_person_is_passed_to_the_tool() {
    let outcome =
        World::all().ask("Sono mrossi. Chiedi 5 giorni di ferie per me dal 15 al 19 giugno", &mut office());
    assert_eq!(
        outcome.call("MakeRequest"),
        &json!({"from": "2026-06-15", "to": "2026-06-19", "employee": "mrossi"})
    );
    assert_eq!(outcome.calls.len(), 1, "{:?}", outcome.calls);
}

#[test]
fn recap_of_long_conversation_has_its_days() {
    let mut world = World::all();
    let mut office = office();
    for day in 1..=15 {
        let outcome = world.ask(&format!("Che tempo fa a Milano il giorno {day}?"), &mut office);
        let date = outcome.call("WeatherForecast_Get")["date"].as_str().unwrap().to_owned();
        assert!(date.ends_with(&format!("-{day:02}")), "{date}");
    }
    let outcome = world.ask("Riassumimi quello che abbiamo discusso finora", &mut office);
    assert_eq!(outcome.scenes, Vec::<String>::new());
    for day in 1..=15 {
        assert!(outcome.answer.contains(&format!("giorno {day}?")), "{day}: {}", outcome.answer);
    }
    assert!(outcome.answer.contains("Milano"));
}

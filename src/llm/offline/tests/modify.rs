//! Plans changed by feedback: prepared and executed calls follow the feedback, or the plan stays unchanged.

use serde_json::{Value, json};

use super::domains::{IDENTITY, VACATION, WEATHER};
use super::support::{RequestOutcome, World};

const FERIE: &str = "Vorrei richiedere 3 giorni di ferie dal 13 al 15 settembre";
const BOTH: &str = "Dimmi il meteo a Roma e poi richiedi ferie dal 5 al 6 luglio";
const BOTH_EN: &str = "Tell me the weather in Rome and then request vacation from 5 to 6 July";

fn world() -> World {
    World::of(&[WEATHER, IDENTITY, VACATION])
}

/// The plan of a request after words, where they were understood.
fn changed(request: &str, feedback: &str) -> Option<Value> {
    let world = world();
    let plan = world.planned(request, &[], world.preparing());
    let parts = [("plan", plan.to_string()), ("feedback", feedback.to_owned())];
    let parts: Vec<(&str, &str)> = parts.iter().map(|(name, body)| (*name, body.as_str())).collect();
    let after = world.planned(request, &parts, world.preparing());
    if after["steps"] == plan["steps"] {
        assert_eq!(after["reasoning"], "It is not clear what to change.", "{feedback}");
        return None;
    }
    assert_eq!(after["reasoning"], "Changed as was wanted.", "{feedback}");
    Some(after)
}

/// What the changed plan leads to.
fn run(request: &str, feedback: &str) -> RequestOutcome {
    let plan = changed(request, feedback).unwrap_or_else(|| panic!("not understood: {feedback}"));
    let mut yes = |_: &str, _: &Value| json!({"outcome": "ok", "result": {}});
    world().carried_out(request, plan, &mut yes)
}

fn days(from: &str, to: &str) -> Value {
    json!({"from": from, "to": to})
}

/// The vacation is prepared and asked for with these days, and nothing else is in the step's words.
fn asks_for(request: &str, feedback: &str, days: &Value, steps: usize) -> RequestOutcome {
    let outcome = run(request, feedback);
    assert_eq!(outcome.prepared, [("MakeRequest".to_owned(), days.clone())], "{feedback}: {outcome:#?}");
    assert_eq!(outcome.call("MakeRequest"), days, "{feedback}: {outcome:#?}");
    assert_eq!(outcome.scenes.len(), steps, "{feedback}: {outcome:#?}");
    outcome
}

#[test]
fn new_days_replace_the_old_ones_in_prepared_calls() {
    let one = [
        (
            "dal 13 al 14 settembre",
            "Vorrei richiedere 2 giorni di ferie dal 13 al 14 settembre",
            "2026-09-13",
            "2026-09-14",
        ),
        (
            "cambia le date: dal 21 al 22 luglio",
            "Vorrei richiedere 2 giorni di ferie dal 21 al 22 luglio",
            "2026-07-21",
            "2026-07-22",
        ),
        (
            "passo 1: dal 12 al 13 luglio",
            "Vorrei richiedere 2 giorni di ferie dal 12 al 13 luglio",
            "2026-07-12",
            "2026-07-13",
        ),
        (
            "step 1: from 12 to 13 July",
            "Vorrei richiedere 2 giorni di ferie from 12 to 13 July",
            "2026-07-12",
            "2026-07-13",
        ),
        (
            "make it from 5 to 7 July 2027",
            "Vorrei richiedere 3 giorni di ferie from 5 to 7 July 2027",
            "2027-07-05",
            "2027-07-07",
        ),
        (
            "solo dal 13 al 14 settembre",
            "Vorrei richiedere 2 giorni di ferie dal 13 al 14 settembre",
            "2026-09-13",
            "2026-09-14",
        ),
        (
            "solo il 13 settembre",
            "Vorrei richiedere 1 giorno di ferie il 13 settembre",
            "2026-09-13",
            "2026-09-13",
        ),
        (
            "no, 2 giorni dal 14 al 15 settembre",
            "Vorrei richiedere 2 giorni di ferie dal 14 al 15 settembre",
            "2026-09-14",
            "2026-09-15",
        ),
        (
            "non dal 13 al 15 settembre ma dal 20 al 22 settembre",
            "Vorrei richiedere 3 giorni di ferie dal 20 al 22 settembre",
            "2026-09-20",
            "2026-09-22",
        ),
    ];
    for (feedback, purpose, from, to) in one {
        let outcome = asks_for(FERIE, feedback, &days(from, to), 1);
        assert_eq!(outcome.purposes, [purpose], "{feedback}");
    }
    // The example of the README.
    let request = "Vorrei richiedere 3 giorni di ferie dal 15 al 17 giugno";
    let outcome = asks_for(request, "only from 15 to 16 June", &days("2026-06-15", "2026-06-16"), 1);
    assert_eq!(outcome.purposes, ["Vorrei richiedere 2 giorni di ferie from 15 to 16 June"]);

    let july = days("2026-07-12", "2026-07-13");
    for request in [BOTH, BOTH_EN] {
        for feedback in [
            "from 12 to 13 July",
            "dal 12 al 13 luglio",
            "only from 12 to 13 July",
            "solo dal 12 al 13 luglio",
            "not from 5 to 6 July but from 12 to 13 July",
            "non dal 5 al 6 luglio ma dal 12 al 13 luglio",
            "from 12 to 13 July instead of from 5 to 6 July",
            "step 2: from 12 to 13 July",
            "passo 2: dal 12 al 13 luglio",
            "in step 2 make it from 12 to 13 July",
            "cambia le date: dal 12 al 13 luglio",
            "vacation from 12 to 13 July",
            "le ferie dal 12 al 13 luglio",
        ] {
            let outcome = asks_for(request, feedback, &july, 2);
            assert_eq!(outcome.call("WeatherForecast_Get")["city"], mentioned_city(request), "{feedback}");
            for old in ["5", "6"] {
                let words: Vec<&str> = outcome.purposes[1].split_whitespace().collect();
                assert!(!words.contains(&old), "{feedback}: {:?}", outcome.purposes);
            }
        }
    }
}

fn mentioned_city(request: &str) -> &'static str {
    if request.contains("Roma") { "Roma" } else { "Rome" }
}

#[test]
fn new_place_replaces_the_old_one() {
    for (request, feedback, city) in [
        (BOTH, "il meteo a Milano, non a Roma", "Milano"),
        (BOTH, "non a Roma ma a Milano", "Milano"),
        (BOTH, "il meteo a Milano invece di Roma", "Milano"),
        (BOTH, "il meteo a Milano", "Milano"),
        (BOTH, "passo 1: a Milano", "Milano"),
        (BOTH_EN, "the weather in Milan, not in Rome", "Milan"),
        (BOTH_EN, "not Rome but Milan", "Milan"),
        (BOTH_EN, "the weather in Milan instead of Rome", "Milan"),
        (BOTH_EN, "step 1: in Milan", "Milan"),
        ("Che tempo fa a Roma?", "a Milano", "Milano"),
    ] {
        let outcome = run(request, feedback);
        assert_eq!(outcome.call("WeatherForecast_Get"), &json!({"city": city}), "{feedback}");
        assert!(!outcome.purposes[0].contains(mentioned_city(request)), "{feedback}: {:?}", outcome.purposes);
        assert_eq!(outcome.scenes.len(), if request.contains('?') { 1 } else { 2 }, "{feedback}");
        if outcome.scenes.len() == 2 {
            assert_eq!(outcome.call("MakeRequest"), &days("2026-07-05", "2026-07-06"), "{feedback}");
        }
    }
}

#[test]
fn additional_requests_are_further_steps() {
    for (request, feedback, city) in [
        (BOTH_EN, "also the weather in Turin", "Turin"),
        (BOTH_EN, "the weather in Turin too", "Turin"),
        (BOTH, "anche il meteo a Torino", "Torino"),
    ] {
        let outcome = run(request, feedback);
        assert_eq!(outcome.scenes, ["Weather", "VacationManagement", "Weather"], "{feedback}");
        let cities: Vec<&Value> = outcome
            .calls
            .iter()
            .filter(|call| call.0 == "WeatherForecast_Get")
            .map(|call| &call.1["city"])
            .collect();
        assert_eq!(cities, [mentioned_city(request), city], "{feedback}");
    }
    let outcome = run(BOTH, "chiedi ferie dal 12 al 13 luglio, e come mi chiamo? Il mio username è pippo");
    assert_eq!(outcome.scenes, ["Weather", "VacationManagement", "Identity"]);
    assert_eq!(outcome.call("MakeRequest"), &days("2026-07-12", "2026-07-13"));
}

#[test]
fn steps_are_removed_or_kept_alone() {
    for feedback in [
        "senza il meteo",
        "Without the weather please",
        "I don't need the weather",
        "remove step 1",
        "togli il passo 1",
        "Non chiedere il meteo ma solo le ferie",
        "not the weather but the vacation",
        "only the vacation",
        "solo le ferie",
        "tutto tranne il meteo",
        "senza il meteo a Roma",
    ] {
        assert_eq!(run(BOTH, feedback).scenes, ["VacationManagement"], "{feedback}");
    }
    for feedback in [
        "only the weather",
        "solo il passo 1",
        "soltanto il meteo",
        "remove step 2",
        "senza le ferie",
        "without the vacation from 5 to 6 July",
        "just the weather, thanks",
    ] {
        assert_eq!(run(BOTH, feedback).scenes, ["Weather"], "{feedback}");
    }
}

#[test]
fn unclear_feedback_leaves_the_plan_unchanged() {
    for feedback in [
        "fallo viola",
        "make it nicer",
        "make it purple",
        "make it purple from 12 to 13 July",
        "dal 13 al 15 settembre",
        "not from 13 to 15 September",
        "passo 2: dal 12 al 13 luglio",
        "fino al 10 settembre",
        "il 20 settembre",
        "sposta dal 13 settembre al 20 settembre",
        "una settimana dopo",
        "remove everything",
        "senza le ferie",
    ] {
        assert_eq!(changed(FERIE, feedback), None, "{feedback}");
    }
    for feedback in [
        "fallo viola",
        "not from 5 to 6 July",
        "non a Roma",
        "non togliere il meteo",
        "don't remove the weather",
        "non solo il meteo",
        "don't forget the weather",
        "togli tutto tranne il meteo",
        "senza il meteo a Milano",
        "without the vacation from 12 to 13 July",
        "solo le ferie dal 12 al 13 luglio",
        "remove step 7",
        "remove the weather and change the vacation to 12-13 July",
        "togli il meteo e dimmi come mi chiamo",
        "not in Paris but in Milan",
        "anche il meteo a Roma",
        "anche a Torino",
        "annulla le ferie",
        "le ferie solo il 5 luglio",
        "il 12 luglio",
        "until 4 July",
        "approve",
        "passo 1: dal 12 al 13 luglio",
        "step 1: purple",
    ] {
        assert_eq!(changed(BOTH, feedback), None, "{feedback}");
    }
}

#[test]
fn new_end_alone_moves_only_the_end() {
    let plan = changed(BOTH, "fino al 7 luglio").unwrap().to_string();
    assert!(plan.contains(r#"{"from":"2026-07-05","to":"2026-07-07"}"#), "{plan}");
}

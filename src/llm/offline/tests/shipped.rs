//! The shipped scenes, if they are present.

use serde_json::json;

use super::support::World;

fn world() -> Option<World> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes");
    let texts: Vec<String> = ["identity", "vacation_management", "weather"]
        .iter()
        .filter_map(|name| std::fs::read_to_string(root.join(name).join("scene.toml")).ok())
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    (texts.len() == 3).then(|| World::of(&texts))
}

#[test]
fn shipped_scenes_are_routed_planned_and_filled() {
    let Some(_) = world() else { return };
    let mut wrong = Vec::new();
    for (request, want) in [
        (
            "Che tempo fa oggi a Milano?",
            json!([["WeatherForecast_Get", {"city": "Milano", "date": "2026-05-04"}]]),
        ),
        (
            "Il mio username è keysersoze e vorrei sapere il meteo a Milano",
            json!([["get_user_name", {"username": "keysersoze"}], ["WeatherForecast_Get", {"city": "Milano"}]]),
        ),
        (
            "Vorrei richiedere 3 giorni di ferie dal 15 al 17 giugno",
            json!([["MakeRequest", {"from": "2026-06-15", "to": "2026-06-17"}]]),
        ),
        (
            "Voglio prendere ferie dal 10 giugno al 20 giugno",
            json!([["MakeRequest", {"from": "2026-06-10", "to": "2026-06-20"}]]),
        ),
        ("Qual è il mio nome completo?", json!([["get_user_name", {}]])),
        (
            "What is the weather in Milan, and then ask for three days off from 15 to 17 June",
            json!([["WeatherForecast_Get", {"city": "Milan"}], ["MakeRequest", {"from": "2026-06-15", "to": "2026-06-17"}]]),
        ),
        ("Calcola la radice quadrata di 144", json!([])),
        (
            "Ciao! Mi chiamo con username keysersoze e vorrei sapere il meteo a Milano oggi.",
            json!([["get_user_name", {"username": "keysersoze"}], ["WeatherForecast_Get", {"city": "Milano", "date": "2026-05-04"}]]),
        ),
        (
            "Perfetto! Ora vorrei richiedere 5 giorni di ferie dal 15 giugno al 19 giugno.",
            json!([["MakeRequest", {"from": "2026-06-15", "to": "2026-06-19"}]]),
        ),
        ("Chi deve approvare la mia richiesta?", json!([["GetApprovers", {}]])),
        ("Riassumimi quello che abbiamo discusso finora", json!([])),
        (
            "What is the weather in Milan, and then ask for three days off",
            json!([["WeatherForecast_Get", {"city": "Milan"}]]),
        ),
        (
            "Quanti giorni di ferie ho? Poi chiedi ferie dal 15 al 17 giugno e dimmi quanti me ne restano",
            json!([["GetBalance", {}], ["MakeRequest", {"from": "2026-06-15", "to": "2026-06-17"}], ["GetBalance", {}]]),
        ),
        (
            "Sono mrossi. Chiedi 5 giorni di ferie per me dal 15 al 19 giugno",
            // The tool gets the requester and decides for whom it can act; there is no lookup.
            json!([["MakeRequest", {"from": "2026-06-15", "to": "2026-06-19", "employee": "mrossi"}]]),
        ),
        ("Quali sono le festività del 2027?", json!([["GetHolidays", {"year": 2027}]])),
        ("Annulla la richiesta di ferie numero 3", json!([["CancelRequest", {"request_id": 3}]])),
        ("Cancel my vacation from 15 June", json!([["CancelRequest", {"from": "2026-06-15"}]])),
        ("Chi è mrossi?", json!([["get_user_name", {"username": "mrossi"}]])),
        (
            "Aggiungi la città di Cuneo, latitudine 44.39, longitudine 7.55",
            json!([["AddCity", {"name": "Cuneo", "latitude": 44.39, "longitude": 7.55}]]),
        ),
        (
            "Previsioni per Firenze nei prossimi 3 giorni",
            json!([["WeatherForecast_Get", {"city": "Firenze", "days": 3}]]),
        ),
        ("Cerca un collega che si chiama Weber", json!([["find_user", {"name": "Weber"}]])),
        (
            "Che tempo fa a Milano e a Roma?",
            json!([["WeatherForecast_Get", {"city": "Milano"}], ["WeatherForecast_Get", {"city": "Roma"}]]),
        ),
        (
            "Is it warmer in Rome or in Milan?",
            json!([["WeatherForecast_Get", {"city": "Rome"}], ["WeatherForecast_Get", {"city": "Milan"}]]),
        ),
        ("Write a poem about the sea", json!([])),
        ("What is the capital of Mongolia?", json!([])),
        (
            "Will I need an umbrella in Dublin tomorrow? What's the forecast?",
            json!([["WeatherForecast_Get", {"city": "Dublin", "date": "2026-05-05"}]]),
        ),
        (
            "Vorrei due giorni di ferie, il 3 e il 4 agosto, perché mi trasferisco",
            json!([["MakeRequest", {"from": "2026-08-03", "to": "2026-08-04", "note": "mi trasferisco"}]]),
        ),
    ] {
        let mut world = world().unwrap();
        let outcome = world.run(request);
        let calls: Vec<_> = outcome.calls.iter().map(|c| json!([c.0, c.1])).collect();
        if json!(calls) != want {
            wrong.push(format!(
                "{request}\n   want {want}\n   got  {} ask {:?}\n   {:?}",
                json!(calls),
                outcome.question,
                outcome.purposes
            ));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn another_person_is_never_taken_for_the_user() {
    let to = |tool: &str, employee: &str| json!([[tool, {"from": "2026-06-15", "to": "2026-06-17", "employee": employee}]]);
    for (request, want) in [
        ("Request vacation for Sara from 15 to 17 June", to("MakeRequest", "Sara")),
        ("Chiedi ferie per Sara dal 15 al 17 giugno", to("MakeRequest", "Sara")),
        ("Book Lucia's vacation from 15 to 17 June", to("MakeRequest", "Lucia")),
        (
            "Cancel Mario's vacation from 15 June",
            json!([["CancelRequest", {"from": "2026-06-15", "employee": "Mario"}]]),
        ),
        ("How many vacation days does mrossi have left?", json!([["GetBalance", {"employee": "mrossi"}]])),
        ("Quanti giorni di ferie restano a Sara?", json!([["GetBalance", {"employee": "Sara"}]])),
        ("Show Sara's vacation requests", json!([["ListRequests", {"employee": "Sara"}]])),
        ("Which department does Mario work in?", json!([["get_user_profile", {"username": "Mario"}]])),
        ("In quale reparto lavora Mario?", json!([["get_user_profile", {"username": "Mario"}]])),
        ("What department is Sara Bianchi in?", json!([["get_user_profile", {"username": "Sara Bianchi"}]])),
        ("Who is the manager of lferrari?", json!([["get_user_profile", {"username": "lferrari"}]])),
        ("inform my manager", json!([])),
    ] {
        let outcome = world().unwrap().run(request);
        let calls: Vec<_> = outcome.calls.iter().map(|c| json!([c.0, c.1])).collect();
        assert_eq!(json!(calls), want, "{request}");
    }
}

#[test]
fn number_of_days_without_a_last_day_is_asked_about() {
    for (turns, missing) in [
        (vec!["request 3 days off from 18 June"], json!(["to"])),
        (vec!["I want three days off", "15 June"], json!(["to"])),
        (vec!["voglio tre giorni di ferie", "15 giugno"], json!(["to"])),
        // The last day is proposed where it can be counted.
        (vec!["I want three days off", "from 15 June"], json!([])),
        (vec!["je voudrais trois jours de cong\u{e9} \u{e0} partir du 15 juin"], json!([])),
        (vec!["I want a week off from 15 June"], json!(["to"])),
        (vec!["request 3 days off next week"], json!(["from", "to"])),
        (vec!["three days off please, 15 to 16 June"], json!([])),
    ] {
        let mut world = world().unwrap();
        let last = turns.iter().map(|turn| world.run(turn)).last().unwrap();
        let asked = last.question.as_ref().map(|question| question["missing"].clone());
        assert_eq!((last.calls.len(), asked), (0, Some(missing)), "{turns:?}");
    }
    for turns in [
        vec!["I want three days off", "from 15 June", "17 June"],
        vec!["I want three days off", "from 15 to 17 June"],
        vec!["five days off from 15 to 21 June"],
        vec!["I want a day off", "15 June"],
    ] {
        let mut world = world().unwrap();
        let last = turns.iter().map(|turn| world.run(turn)).last().unwrap();
        assert_eq!(last.calls.len(), 1, "{turns:?}: {last:?}");
        assert_eq!(last.call("MakeRequest")["from"], "2026-06-15", "{turns:?}");
    }
}

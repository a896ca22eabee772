//! Requests in everyday words over the shipped scenes and the sample scenes: what they do, ask, or leave undone.

use serde_json::{Value, json};

use super::support::{RequestOutcome, World};
use crate::llm::offline::entities::Entities;
use crate::llm::offline::schema::{self, ArgumentField};
use crate::llm::offline::slots;

fn world() -> World {
    World::shipped_and(&[
        include_str!("../../../../scenes/inventory/shop/scene.toml"),
        include_str!("../../../../scenes/lending/library/scene.toml"),
    ])
}

fn answered(request: &str) -> RequestOutcome {
    world().ask(request, &mut |_, _| json!({"outcome": "ok", "result": {}}))
}

fn calls_of(outcome: &RequestOutcome) -> Value {
    outcome.calls.iter().map(|(tool, arguments)| json!([tool, arguments])).collect()
}

/// The arguments of the first call, made or asked about.
fn stated(outcome: &RequestOutcome) -> Value {
    let known = outcome.question.as_ref().map(|question| question["known"].clone());
    outcome.calls.first().map(|call| call.1.clone()).or(known).unwrap_or_default()
}

/// Requests whose calls are others than those beside them.
fn wrong_calls(requests: &[(&str, Value)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (request, want) in requests {
        let outcome = answered(request);
        if calls_of(&outcome) != *want {
            wrong.push(format!(
                "{request}\n   want {want}\n   got  {} {:?} {}",
                calls_of(&outcome),
                outcome.question,
                outcome.plan
            ));
        }
    }
    wrong
}

#[test]
fn what_somebody_else_does_is_left_undone() {
    let mut wrong = Vec::new();
    for request in [
        "On Monday Ada returns Dune",
        "Martedì Ada restituisce Dune",
        "In the afternoon the boss cancels leave request 5",
        "Domani il capo annulla la richiesta di ferie numero 5",
        "Marco annulla la richiesta di ferie numero 5",
        "domani Marco venderà 3 teiere",
        "Next week Marco renews the loan of Dune",
        // For somebody else: the tools serve only the person who asks.
        "Give my team Friday off",
        "Request vacation on 4 March for my colleague",
        "Book 4 March off for all of us",
        "Richiedi ferie il 4 marzo per tutti",
        "Richiedi ferie il 4 marzo per il mio collega",
        // What was done, or may be, in other languages.
        "Mein Antrag 5 wurde storniert",
        "Ma demande de congés numéro 5 est annulée",
        "Mi solicitud de vacaciones número 5 está cancelada",
        "S'il pleut demain, demande des congés du 8 au 10 février",
        // Taken back without a mark.
        "restock 20 milk jugs – hmm wait, let me check first",
    ] {
        let outcome = answered(request);
        let reads = ["GetPrice", "GetStock", "ListRequests", "GetBalance", "ListLoans"];
        if outcome.tools().iter().any(|tool| !reads.contains(tool)) {
            wrong.push(format!("{request}: {} {}", calls_of(&outcome), outcome.plan));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_the_speaker_asks_for_is_done_beside_other_people() {
    let day = |day: &str| json!([["MakeRequest", {"from": day, "to": day}]]);
    let wrong = wrong_calls(&[
        ("give me Friday off", day("2026-05-08")),
        ("Request vacation on 4 March", day("2027-03-04")),
        ("Lend Dune to Ada", json!([["LendBook", {"title": "Dune", "reader": "Ada"}]])),
    ]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn who_gets_a_thing_is_not_the_thing() {
    let lent = |title: &str, reader: &str| json!([["LendBook", {"title": title, "reader": reader}]]);
    let wrong = wrong_calls(&[
        ("Presta Dune ad Ada", lent("Dune", "Ada")),
        ("Presta Emma ad Anna", lent("Emma", "Anna")),
        ("Presta Dune ad Agnese", lent("Dune", "Agnese")),
        ("Presta Dune a Zorg", lent("Dune", "Zorg")),
        ("Lend Dune to Zorg", lent("Dune", "Zorg")),
        ("Lend Emma to Bob", lent("Emma", "Bob")),
        ("Could you lend Moby Dick to Zorg?", lent("Moby Dick", "Zorg")),
    ]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let asked = answered("if nobody has it, lend Dune to Ada");
    assert_eq!(asked.question.unwrap()["known"], json!({"title": "Dune", "reader": "Ada"}));
}

#[test]
fn order_that_opens_as_an_example_leads_to_its_tool() {
    let price = |item: &str, price: Value| json!([["ChangePrice", {"item": item, "price": price}]]);
    let outcome = answered("Set the price of the espresso cup to 5 euros");
    assert_eq!(stated(&outcome), json!({"item": "espresso cup", "price": 5}), "{outcome:#?}");
    let wrong = wrong_calls(&[
        ("Set the price of the milk jug to 30", price("milk jug", json!(30))),
        ("Set the price of the moka pot to 30", price("moka pot", json!(30))),
        ("Set the price of teapots to 24.50", price("teapots", json!(24.5))),
        ("Porta il prezzo della lattiera a 12 euro", price("lattiera", json!(12))),
        ("How many teapots are there?", json!([["GetStock", {"item": "teapots"}]])),
        ("How many teapots did we sell yesterday?", json!([["ListSales", {"day": "2026-05-03"}]])),
        ("What is the price of the milk jug?", json!([["GetPrice", {"item": "milk jug"}]])),
        (
            "Cosa abbiamo venduto questa settimana?",
            json!([["ListSales", {"from": "2026-05-04", "to": "2026-05-10"}]]),
        ),
        ("What did we sell in March?", json!([["ListSales", {"from": "2026-03-01", "to": "2026-03-31"}]])),
        ("What did we sell last month?", json!([["ListSales", {"from": "2026-04-01", "to": "2026-04-30"}]])),
    ]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn who_somebody_is_is_asked_in_several_languages() {
    let named = |username: &str| json!([["get_user_name", {"username": username}]]);
    let wrong = wrong_calls(&[
        ("Who is mrossi?", named("mrossi")),
        ("Qui est mrossi ?", named("mrossi")),
        ("Wer ist mrossi?", named("mrossi")),
        ("Storniere meinen Urlaubsantrag Nummer 5", json!([["CancelRequest", {"request_id": 5}]])),
        ("¿Quién es mrossi?", named("mrossi")),
    ]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn range_without_a_preposition_has_two_ends() {
    let from_8_to_10 = json!([["MakeRequest", {"from": "2027-02-08", "to": "2027-02-10"}]]);
    let wrong = wrong_calls(&[
        ("Request vacation 8 to 10 February", from_8_to_10.clone()),
        ("Request vacation from 8 to 10 February", from_8_to_10.clone()),
        ("Beantrage Urlaub vom 8. bis 10. Februar", from_8_to_10.clone()),
        ("Beantrage Urlaub vom 8. Februar bis zum 10. Februar", from_8_to_10),
        ("Beantrage Urlaub am 4. März", json!([["MakeRequest", {"from": "2027-03-04", "to": "2027-03-04"}]])),
    ]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for days in ["8 to 10 February", "vom 8. bis 10. Februar"] {
        let mut world = world();
        let tool = &mut |_: &str, _: &Value| json!({"outcome": "ok", "result": {}});
        world.ask("Request vacation", tool);
        let outcome = world.ask(days, tool);
        assert_eq!(
            stated(&outcome),
            json!({"from": "2027-02-08", "to": "2027-02-10"}),
            "{days}: {outcome:#?}"
        );
    }
}

#[test]
fn polite_question_in_another_language_asks_to_act() {
    for request in [
        "Peux-tu demander des congés du 8 au 10 février ?",
        "Könntest du Urlaub vom 8. bis 10. Februar beantragen?",
        "¿Puedes solicitar vacaciones del 8 al 10 de febrero?",
    ] {
        let outcome = answered(request);
        assert_eq!(
            stated(&outcome),
            json!({"from": "2027-02-08", "to": "2027-02-10"}),
            "{request}: {outcome:#?}"
        );
    }
    let wrong = wrong_calls(&[(
        "Wie wird das Wetter morgen in Berlin?",
        json!([["WeatherForecast_Get", {"city": "Berlin", "date": "2026-05-05"}]]),
    )]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_left_is_no_item() {
    for request in ["What's the price of a teapot and how many are left?", "Dimmi quante ne restano"] {
        let outcome = answered(request);
        let is_item = |(_, arguments): &(String, Value)| {
            arguments["item"].as_str().is_some_and(|item| item.contains("left") || item.contains("restano"))
        };
        assert!(!outcome.calls.iter().any(is_item), "{request}: {outcome:#?}");
    }
}

#[test]
fn number_before_a_day_is_a_day_only_in_a_range() {
    let days = |request: &str| -> Vec<String> {
        let found = Entities::in_text(request, jiff::civil::Date::constant(2026, 5, 4));
        found.days.iter().map(|day| day.date.to_string()).collect()
    };
    assert_eq!(days("vacation 8 to 10 February"), ["2027-02-08", "2027-02-10"]);
    assert_eq!(days("Urlaub am 3. und 4. März"), ["2027-03-03", "2027-03-04"]);
    assert_eq!(days("morgen"), ["2026-05-05"]);
    assert_eq!(days("Guten Morgen"), [""; 0]);
    for moved in
        ["Move booking 8 to 10 February", "Reschedule 8 to 10 February", "Appointment 8 to 10 February"]
    {
        assert_eq!(days(moved), ["2027-02-10"], "{moved}");
    }
}

#[test]
fn a_default_does_not_stand_in_for_a_time_that_is_no_day() {
    for request in [
        "What is the weather in Milan in May?",
        "Che tempo fa a Milano a maggio?",
        "What is the weather in Milan around 15 December?",
        "What is the weather in Milan the week after 15 December?",
        "Wie ist das Wetter in Mailand im Sommer?",
        "Quel temps fait-il à Milan cette semaine ?",
        "¿Qué tiempo hará en Milán este mes?",
        "Weather in Milan over Christmas",
    ] {
        let outcome = answered(request);
        let question = outcome.question.as_ref().unwrap_or(&Value::Null);
        assert_eq!(question["missing"], json!(["date"]), "{request}: {:?}", outcome.calls);
    }
    for request in [
        "What is the weather in Milan?",
        "What is the weather in Milan at 5pm?",
        "How is the weather in Milan, may I ask?",
    ] {
        assert_eq!(
            calls_of(&answered(request)),
            json!([["WeatherForecast_Get", {"city": "Milan"}]]),
            "{request}"
        );
    }
}

#[test]
fn both_of_what_is_compared_are_read() {
    let both = |a: &str, b: &str| json!([["WeatherForecast_Get", {"city": a}], ["WeatherForecast_Get", {"city": b}]]);
    let wrong = wrong_calls(&[
        ("Is Rome warmer than Milan?", both("Rome", "Milan")),
        ("Is it warmer in Rome than in Milan?", both("Rome", "Milan")),
        ("Fa più caldo a Roma che a Milano?", both("Roma", "Milano")),
        ("Ist es in Rom wärmer als in Mailand?", both("Rom", "Mailand")),
        ("Ist es wärmer in Rom als in Mailand?", both("Rom", "Mailand")),
    ]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_the_user_has_done_is_listed() {
    let list = || json!([["ListRequests", {}]]);
    let wrong = wrong_calls(&[
        ("What vacation have I booked?", list()),
        ("Che ferie ho prenotato?", list()),
        ("Which vacation did I request?", list()),
        ("Welchen Urlaub habe ich beantragt?", list()),
        ("How many vacation days have I got left?", json!([["GetBalance", {}]])),
        ("What have I spent of my vacation days?", json!([["GetBalance", {}]])),
        ("What is my email?", json!([["get_user_profile", {}]])),
    ]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn who_asks_does_not_stand_in_for_another_person() {
    for request in ["What is her email?", "Qual è la sua e-mail?", "Which department does he work in?"] {
        let outcome = answered(request);
        let question = outcome.question.as_ref().unwrap_or(&Value::Null);
        assert_eq!(question["missing"], json!(["username"]), "{request}: {:?}", outcome.calls);
    }
    let username = json!({"type": "string", "description": "User name, one word. Leave it out for the person who asks."});
    let asked: Vec<ArgumentField> =
        schema::fields(&json!({"type": "object", "properties": {"username": username}}))
            .iter()
            .map(ArgumentField::as_asked)
            .collect();
    let now = "2026-05-04T09:00:00+02:00[Europe/Rome]".parse().unwrap();
    let replied = slots::fill(&asked, "lferrari", &now, &[], true);
    assert_eq!(Value::Object(replied.values), json!({"username": "lferrari"}));
}

#[test]
fn question_who_belongs_to_something_is_not_about_who_asks() {
    for request in
        ["Who works in Sales?", "Who's in the Engineering department?", "Wer arbeitet im Vertrieb?"]
    {
        let outcome = answered(request);
        assert!(!outcome.tools().contains(&"get_user_profile"), "{request}: {outcome:?}");
    }
    for request in ["Show me the emails of all customers", "List the customers and their emails"] {
        assert_eq!((answered(request).calls, answered(request).question), (Vec::new(), None), "{request}");
    }
    assert_eq!(answered("Show me the phone numbers of all customers").calls, []);
    assert_eq!(answered("Who is my manager?").tools(), ["get_user_profile"]);
}

#[test]
fn order_about_what_was_spoken_of_goes_to_no_other_scene() {
    let outcome = answered("I'm going on holiday from 21 to 23 December, please register it");
    assert_eq!(outcome.scenes, ["VacationManagement"], "{outcome:?}");
}

#[test]
fn order_to_change_what_is_there_makes_nothing_new() {
    for request in [
        "Move my vacation from 14 to 15 December",
        "Change my vacation to 15 December",
        "Extend my vacation until 20 December",
        "Sposta le mie ferie dal 14 al 21 dicembre",
        "Modifica le mie ferie: dal 14 al 15 dicembre",
        "Sposta le ferie dal 14 al 15 dicembre",
        "Verschiebe meinen Urlaub auf den 15. Dezember",
        "Delete all my data",
        "Delete the teapots",
        "Undo the cancellation of my leave request number 5",
        "Annulla la cancellazione della richiesta di ferie numero 5",
        "Cancel the loan of Dune",
    ] {
        let outcome = answered(request);
        assert_eq!((calls_of(&outcome), &outcome.question), (json!([]), &None), "{request}");
    }
}

#[test]
fn free_day_is_vacation_in_every_language() {
    for request in ["Ich brauche am Montag frei", "I need Monday off"] {
        let day = json!({"from": "2026-05-11", "to": "2026-05-11"});
        assert_eq!(stated(&answered(request)), day, "{request}");
    }
}

#[test]
fn day_in_reply_to_a_question_for_consent_takes_the_place_of_the_one_asked_about() {
    for (reply, day) in [("no, 15 December", "2026-12-15"), ("Sorry, I meant 15 December", "2026-12-15")] {
        let mut world = world();
        let asked =
            world.ask("Can I get 14 December off?", &mut |_, _| json!({"outcome": "ok", "result": {}}));
        assert_eq!(stated(&asked)["from"], "2026-12-14", "{asked:?}");
        let again = world.ask(reply, &mut |_, _| json!({"outcome": "ok", "result": {}}));
        assert_eq!(
            (stated(&again), calls_of(&again)),
            (json!({"from": day, "to": day}), json!([])),
            "{reply}"
        );
    }
}

#[test]
fn question_about_an_act_is_for_the_read_that_tells_of_it() {
    let wrong = wrong_calls(&[
        (
            "How many teapots did we sell in November?",
            json!([["ListSales", {"from": "2025-11-01", "to": "2025-11-30"}]]),
        ),
        ("Show me the orders of last week", json!([])),
        ("Which cities do you know?", json!([["ListCities", {}]])),
        ("Is tomorrow a holiday?", json!([["GetHolidays", {}]])),
        ("How many vacation days do I still have?", json!([["GetBalance", {}]])),
        ("Quién es mi jefe?", json!([["get_user_profile", {}]])),
        ("Wer ist mein Chef?", json!([["get_user_profile", {}]])),
    ]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn number_that_may_be_a_day_is_asked_about() {
    for request in ["Puoi cancellare la mia richiesta del 14?", "Cancella la mia richiesta del 14"] {
        let outcome = answered(request);
        assert_eq!(
            (calls_of(&outcome), stated(&outcome)),
            (json!([]), json!({"request_id": 14})),
            "{request}"
        );
    }
    let wrong = wrong_calls(&[
        ("Cancella la mia richiesta numero 14", json!([["CancelRequest", {"request_id": 14}]])),
        ("Quanti giorni di ferie ho e chi li approva?", json!([["GetBalance", {}], ["GetApprovers", {}]])),
    ]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn days_that_were_named_before_are_read_again() {
    let weather = |days: Value| json!(["WeatherForecast_Get", days]);
    let wrong = wrong_calls(&[
        (
            "Book vacation from 15 to 17 June and tell me the weather in Paris on those days",
            json!([
                ["MakeRequest", {"from": "2026-06-15", "to": "2026-06-17"}],
                weather(json!({"city": "Paris", "date": "2026-06-15", "days": 3}))
            ]),
        ),
        (
            "Prenota ferie il 15 giugno e dimmi il meteo di Parigi in quel giorno",
            json!([
                ["MakeRequest", {"from": "2026-06-15", "to": "2026-06-15"}],
                weather(json!({"city": "Parigi", "date": "2026-06-15"}))
            ]),
        ),
    ]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_given_back_is_neither_booked_nor_cancelled() {
    let mut world = World::of(&[include_str!("../../../../tests/eval/scenes/cars/scene.toml")]);
    let outcome = world.ask("Return the car", &mut |_, _| json!({"outcome": "ok", "result": {}}));
    assert_eq!((calls_of(&outcome), &outcome.question), (json!([]), &None), "{}", outcome.plan);
    let mut library = World::of(&[include_str!("../../../../scenes/lending/library/scene.toml")]);
    let outcome = library.ask("Return Dune", &mut |_, _| json!({"outcome": "ok", "result": {}}));
    assert_eq!(calls_of(&outcome), json!([["TakeBack", {"title": "Dune"}]]));
    for request in ["Take the car back", "Bring the car back"] {
        let outcome = world.ask(request, &mut |_, _| json!({"outcome": "ok", "result": {}}));
        assert_eq!(calls_of(&outcome), json!([]), "{request}: {}", outcome.plan);
    }
}

#[test]
fn what_was_asked_for_is_taken_back_by_a_cancellation() {
    for request in ["Take back my vacation request", "Take my vacation request back"] {
        let outcome = answered(request);
        assert!(!outcome.plan.to_string().contains("MakeRequest"), "{request}: {}", outcome.plan);
        assert!(outcome.plan.to_string().contains("CancelRequest"), "{request}: {}", outcome.plan);
    }
    let back = answered("Take back 2 teapots");
    assert_eq!(calls_of(&back), json!([["ReturnItems", {"items": "2 teapots"}]]));
}

#[test]
fn act_that_no_tool_does_is_not_done_by_another_one() {
    for request in ["Order 5 teapots", "Ordina 5 teiere", "Buy 3 espresso cups", "Donate 2 teapots"] {
        let outcome = answered(request);
        assert_eq!(calls_of(&outcome), json!([]), "{request}: {}", outcome.plan);
    }
    for (request, tool) in [("Sell 5 teapots", "SellItems"), ("Restock 5 teapots", "RestockItems")] {
        assert_eq!(answered(request).tools(), [tool], "{request}");
    }
}

#[test]
fn thing_stands_before_what_is_asked_of_it() {
    let wrong = wrong_calls(&[
        ("Set the teapot price to 25 euros", json!([["ChangePrice", {"item": "teapot", "price": 25}]])),
        ("What is the teapot price?", json!([["GetPrice", {"item": "teapot"}]])),
        ("What does the milk jug cost?", json!([["GetPrice", {"item": "milk jug"}]])),
    ]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn advice_and_the_first_of_a_kind_are_no_orders() {
    for request in ["Should I take a jacket to Berlin?", "What's the warmest city in Italy?"] {
        let outcome = answered(request);
        let (calls, question) = (calls_of(&outcome), outcome.question.as_ref());
        assert!(calls == json!([]) && question.is_none(), "{request}: {calls} {question:?} {}", outcome.plan);
    }
}

#[test]
fn half_a_day_other_leave_and_contradictory_days_are_asked_about() {
    for request in [
        "Take half a day off on 14 December",
        "Mezza giornata di ferie il 14 dicembre",
        "Book the afternoon of 14 December off",
        "Book 14 December off in the morning",
        "Take 14 December as sick leave",
        "Book Wednesday 14 December 2027 off",
    ] {
        let outcome = answered(request);
        assert_eq!(calls_of(&outcome), json!([]), "{request}");
        assert!(outcome.question.is_some(), "{request}: {}", outcome.plan);
    }
    let wrong = wrong_calls(&[
        (
            "Good morning, book 14 December off",
            json!([["MakeRequest", {"from": "2026-12-14", "to": "2026-12-14"}]]),
        ),
        (
            "Book Tuesday 14 December 2027 off",
            json!([["MakeRequest", {"from": "2027-12-14", "to": "2027-12-14"}]]),
        ),
        ("Can Mario take vacation on Monday?", json!([["ListRequests", {"employee": "Mario"}]])),
        (
            "Book 14 December off for me and Mario",
            json!([["MakeRequest", {"employee": "Mario", "from": "2026-12-14", "to": "2026-12-14"}]]),
        ),
    ]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn range_of_a_reply_takes_the_place_of_the_one_that_was_asked_about() {
    for (request, reply) in [
        ("Can I take vacation from 15 to 17 July?", "no, from 16 to 17 July"),
        ("Can I take vacation from 15 to 17 July?", "yes, but from 16 to 17 July"),
        ("Posso prendere ferie dal 15 al 17 luglio?", "no, dal 16 al 17 luglio"),
        ("Posso prendere ferie dal 15 al 17 luglio?", "sì, ma dal 16 al 17 luglio"),
        ("Puis-je prendre congé du 15 au 17 juillet ?", "oui, mais du 16 au 17 juillet"),
        ("Ich möchte vom 15. bis 17. Juli Urlaub nehmen", "nein, vom 16. bis 17. Juli"),
        ("Quiero vacaciones del 15 al 17 de julio", "sí, pero del 16 al 17 de julio"),
    ] {
        let mut world = world();
        let tool = &mut |_: &str, _: &Value| json!({"outcome": "ok", "result": {}});
        world.ask(request, tool);
        let outcome = world.ask(reply, tool);
        assert_eq!(
            stated(&outcome),
            json!({"from": "2026-07-16", "to": "2026-07-17"}),
            "{request} {reply}: {outcome:#?}"
        );
    }
}

#[test]
fn question_for_the_state_of_what_was_asked_lists_it() {
    for request in [
        "Am I on vacation on 15 December?",
        "Is my vacation approved?",
        "Sono in ferie il 15 dicembre?",
        "Le mie ferie sono state approvate?",
        "Suis-je en congé le 15 décembre ?",
        "Ist mein Urlaub genehmigt?",
        "¿Estoy de vacaciones el 15 de diciembre?",
        "Show me my pending requests",
    ] {
        let outcome = answered(request);
        assert_eq!(outcome.tools(), ["ListRequests"], "{request}: {:?} {}", outcome.question, outcome.plan);
    }
    for (request, tool) in [
        ("Do I have any vacation days left on 15 December?", "GetBalance"),
        ("Who approves my vacation?", "GetApprovers"),
        ("Is it cold in Berlin on 15 December?", "WeatherForecast_Get"),
    ] {
        assert_eq!(answered(request).tools(), [tool], "{request}");
    }
}

#[test]
fn then_at_the_end_of_a_question_is_the_day_before_it() {
    let outcome = answered("I'd like a day off on 14 December, what's the weather in Milan then?");
    assert_eq!(
        calls_of(&outcome),
        json!([
            ["MakeRequest", {"from": "2026-12-14", "to": "2026-12-14"}],
            ["WeatherForecast_Get", {"city": "Milan", "date": "2026-12-14"}],
        ])
    );
}

#[test]
fn pronoun_at_the_end_of_an_order_is_what_was_asked_for_before() {
    for (request, order) in [
        ("Prenota ferie il 14 giugno", "Annullala"),
        ("Prenota ferie il 14 giugno", "Cancellale, per favore"),
        ("Prenota ferie il 14 giugno", "Puoi annullarla?"),
        ("Réserve un congé le 14 juin", "Annule-le"),
        ("Book 14 June off", "Cancel it"),
    ] {
        let mut world = world();
        let tool = &mut |_: &str, _: &Value| json!({"outcome": "ok", "result": {"request_id": 7}});
        world.ask(request, tool);
        let outcome = world.ask(order, tool);
        assert_eq!(stated(&outcome)["request_id"], 7, "{request} {order}: {}", outcome.plan);
    }
}

#[test]
fn person_of_the_turn_before_is_meant_by_a_pronoun() {
    for (request, question) in
        [("Who is mrossi?", "What is his email?"), ("Chi è mrossi?", "Qual è la sua email?")]
    {
        let mut world = world();
        let tool = &mut |_: &str, _: &Value| json!({"outcome": "ok", "result": {"name": "Mario Rossi"}});
        world.ask(request, tool);
        let outcome = world.ask(question, tool);
        assert_eq!(calls_of(&outcome), json!([["get_user_profile", {"username": "mrossi"}]]), "{question}");
    }
}

#[test]
fn that_day_is_the_day_of_the_turn_before() {
    let mut world = world();
    let tool = &mut |_: &str, _: &Value| json!({"outcome": "ok", "result": {}});
    world.ask("What is the weather in Milan on 14 December?", tool);
    let outcome = world.ask("Book that day off", tool);
    assert_eq!(calls_of(&outcome), json!([["MakeRequest", {"from": "2026-12-14", "to": "2026-12-14"}]]));
}

#[test]
fn what_was_done_last_is_not_undone_by_a_tool_for_something_else() {
    for (request, order) in [("Sell 2 teapots", "Undo that"), ("Vendi una teiera", "Annulla")] {
        let mut world = world();
        let tool = &mut |_: &str, _: &Value| json!({"outcome": "ok", "result": {}});
        world.ask(request, tool);
        let outcome = world.ask(order, tool);
        assert!(outcome.tools().is_empty() && outcome.question.is_none(), "{order}: {}", outcome.plan);
    }
}

#[test]
fn thing_of_a_question_ends_before_its_verb() {
    let wrong = wrong_calls(&[
        ("How many teapots do we have?", json!([["GetStock", {"item": "teapots"}]])),
        ("How many teapots are left?", json!([["GetStock", {"item": "teapots"}]])),
        ("Quante teiere ci sono?", json!([["GetStock", {"item": "teiere"}]])),
    ]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn order_with_another_verb_writes_nothing() {
    let orders = [
        (
            "Print/Confirm/Approve/Review/Copy/Archive/Export/Translate/Compare/Sign/Watch/Remember/Paint",
            "my vacation from 8 to 10 February/vacation request 4/2 teapots/the book Dune",
        ),
        (
            "Stampa/Conferma/Approva/Rivedi/Copia/Archivia/Esporta/Traduci/Confronta/Firma/Guarda/Annota",
            "le mie ferie dall'8 al 10 febbraio/la richiesta di ferie 4/2 teiere/il libro Dune",
        ),
    ];
    let reads = ["Get", "List", "get_", "find_", "Summarize", "WeatherForecast_Get"];
    for (verbs, objects) in orders {
        for verb in verbs.split('/') {
            for object in objects.split('/') {
                let request = format!("{verb} {object}");
                let outcome = answered(&request);
                let is_read = |tool: &&str| reads.iter().any(|read| tool.starts_with(read));
                assert!(outcome.tools().iter().all(is_read), "{request}: {}", calls_of(&outcome));
            }
        }
    }
}

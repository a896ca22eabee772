//! Routing, splitting, arguments: requests in several forms over all domains.

use serde_json::json;

use super::support::{World, check};

#[test]
fn requests_call_the_right_tool_with_arguments() {
    check(
        &World::all(),
        r#"
        Che tempo fa oggi a Milano? => WeatherForecast_Get {"city": "Milano", "date": "2026-05-04"}
        meteo roma => WeatherForecast_Get {"city": "roma"}
        Com'è il meteo a reggio emilia domani? => WeatherForecast_Get {"city": "reggio emilia", "date": "2026-05-05"}
        Will it be sunny in New York on June 3rd? => WeatherForecast_Get {"city": "New York", "date": "2026-06-03"}
        Piove a Londra? => WeatherForecast_Get {"city": "Londra"}
        Il mio username è keysersoze => get_user_name {"username": "keysersoze"}
        Vorrei richiedere 3 giorni di ferie dal 15 al 17 giugno => MakeRequest {"from": "2026-06-15", "to": "2026-06-17"}
        Please submit a vacation request from June 15 to June 19 => MakeRequest {"from": "2026-06-15", "to": "2026-06-19"}
        Quanti giorni di ferie ho? => GetBalance {}
        Chi deve approvare la mia richiesta? => GetApprovers {}
        Annulla la richiesta di ferie numero 12 => CancelRequest {"request_id": 12}
        Prenota un tavolo per 4 persone domani alle 20:30 da Gino
            => reserve_table {"restaurant": "Gino", "date": "2026-05-05", "time": "20:30", "party_size": 4}
        Mi serve un tavolo alla Lanterna venerdì alle 21 per tre, nel dehors, a nome Rossi
            => reserve_table {"restaurant": "Lanterna", "date": "2026-05-08", "time": "21:00", "party_size": 3, "area": "terrace", "guest_name": "Rossi"}
        Could you reserve a table at The Golden Lion for five people on 12 June at 7:30 pm under the name Smith?
            => reserve_table {"restaurant": "The Golden Lion", "date": "2026-06-12", "time": "19:30", "party_size": 5, "guest_name": "Smith"}
        Fammi vedere il menu della Lanterna => get_menu {"restaurant": "Lanterna"}
        Apri un ticket urgente: la stampante del terzo piano non stampa
            => open_ticket {"description": "la stampante del terzo piano non stampa", "priority": "high", "category": "hardware"}
        Please open a high priority ticket because the wifi is down
            => open_ticket {"description": "the wifi is down", "priority": "high", "category": "network"}
        Che stato ha il ticket INC-301? => ticket_status {"ticket_id": "INC-301"}
        How is INC-9 going? What's its status? => ticket_status {"ticket_id": "INC-9"}
        Prendo in prestito "La coscienza di Zeno" per due settimane => borrow_book {"title": "La coscienza di Zeno", "weeks": 2}
        I'd like to borrow Moby Dick for three weeks => borrow_book {"title": "Moby Dick", "weeks": 3}
        Prenotami la sala Rossa giovedì dalle 9 alle 11 per 6 persone con il proiettore
            => book_room {"room": "Rossa", "start": "2026-05-07T09:00:00+02:00", "end": "2026-05-07T11:00:00+02:00", "attendees": 6, "projector": true}
        Reserve room Green tomorrow from 3pm to 4pm without projector
            => book_room {"room": "Green", "start": "2026-05-05T15:00:00+02:00", "end": "2026-05-05T16:00:00+02:00", "projector": false}
        Prenota la sala Blu domani alle 14 per 2 ore
            => book_room {"room": "Blu", "start": "2026-05-05T14:00:00+02:00", "end": "2026-05-05T16:00:00+02:00"}
        Book room Green tomorrow at 2pm for 90 mins
            => book_room {"room": "Green", "start": "2026-05-05T14:00:00+02:00", "end": "2026-05-05T15:30:00+02:00"}
        Ci sono sale libere dopodomani? => free_rooms {"day": "2026-05-06"}
        Traccia la spedizione TRK55501 => track_parcel {"code": "TRK55501"}
        Has my package TRK00077 arrived? Track it please => track_parcel {"code": "TRK00077"}
        Fate consegnare il pacco TRK00042 il 20 maggio nell'armadietto
            => redirect_parcel {"code": "TRK00042", "day": "2026-05-20", "way": "locker"}
    "#,
    );
}

#[test]
fn unserved_request_calls_no_tool_and_lists_capabilities() {
    let mut wrong = Vec::new();
    for request in [
        "Scrivi una poesia sul mare",
        "What is the capital of Mongolia?",
        "Calcola la radice quadrata di 144",
        "Chi ha vinto la partita ieri?",
        "Write a Python function that sorts a list",
        "Quanto fa 12 per 8?",
        "Raccontami una barzelletta sui gatti",
        "Traduci buongiorno in inglese",
        "How many people live in Rome?",
        "Prenota un volo per Parigi",
        "Who wrote the Divine Comedy?",
        "Cosa pensi della politica italiana?",
        "Tell me a story about a dragon",
        "Compra 100 azioni di Apple",
        "What time is it in Tokyo?",
        "Consigliami una ricetta con le zucchine",
        "Send an email to Marco",
        "Ciao!",
        "Grazie mille!",
        "Cosa sai fare?",
        "asdfgh qwerty",
        "42",
        "???",
    ] {
        let mut world = World::all();
        let outcome = world.run(request);
        if outcome.plan["needs_execution"] != json!(false) {
            wrong.push(format!("{request}: {:?} {:?}", outcome.scenes, outcome.calls));
        }
        if !request.starts_with("Grazie") && !outcome.answer.contains("ServiceDesk") {
            wrong.push(format!("{request}: answer {:?}", outcome.answer));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn joined_requests_are_split_in_order() {
    // Words of the request; scenes in order; whether the second waits for the first.
    let cases: Vec<(&str, &[&str], bool)> = vec![
        (
            "Voglio sapere il meteo a Milano e poi richiedere 3 giorni di ferie dal 15 al 17 giugno",
            &["Weather", "VacationManagement"],
            true,
        ),
        (
            "What is the weather in Milan, and then ask for three days off from 15 to 17 June",
            &["Weather", "VacationManagement"],
            true,
        ),
        (
            "Prima dimmi il meteo a Roma, poi prenota un tavolo per due da Gino domani alle 20",
            &["Weather", "Dining"],
            true,
        ),
        (
            "First book a table for two at The Anchor tomorrow at 8pm, then tell me the weather in London",
            &["Dining", "Weather"],
            true,
        ),
        (
            "Apri un ticket: il mouse non funziona. Poi dimmi che tempo fa a Torino",
            &["ServiceDesk", "Weather"],
            true,
        ),
        ("Tell me the weather in Rome and also track parcel TRK00012", &["Weather", "Parcels"], false),
        ("Dimmi il meteo a Bari e anche lo stato del ticket INC-5", &["Weather", "ServiceDesk"], false),
        (
            "Dov'è il pacco TRK00012? Inoltre vorrei sapere che tempo fa a Lecce",
            &["Parcels", "Weather"],
            false,
        ),
        ("Che tempo fa a Pisa e quali sale sono libere domani?", &["Weather", "MeetingRooms"], false),
        ("Il mio username è keysersoze e vorrei sapere il meteo a Milano", &["Identity", "Weather"], false),
        (
            "Prima di prenotare la sala Verdi domani dalle 10 alle 11, dimmi il meteo a Milano",
            &["Weather", "MeetingRooms"],
            true,
        ),
        ("Track parcel TRK00012 after telling me the weather in Oslo", &["Weather", "Parcels"], true),
        (
            "Prenota la sala Verdi domani dalle 10 alle 11, ma prima dimmi che tempo fa a Como",
            &["Weather", "MeetingRooms"],
            true,
        ),
        (
            "Meteo a Milano, stato del ticket INC-5 e dov'è il pacco TRK00012",
            &["Weather", "ServiceDesk", "Parcels"],
            false,
        ),
        (
            "Show me the menu of The Anchor; after that book a table there for 2 on Friday at 8pm",
            &["Dining", "Dining"],
            true,
        ),
        (
            "Vorrei sapere il meteo a Roma, dopodiché chiedere ferie dal 3 al 5 luglio e infine sapere chi le approva",
            &["Weather", "VacationManagement", "VacationManagement"],
            true,
        ),
        (
            "Ciao! Mi chiamo con username keysersoze e vorrei sapere il meteo a Milano oggi.",
            &["Identity", "Weather"],
            false,
        ),
        (
            "Lend me \"Dune\" for two weeks as well as telling me the weather in Milan",
            &["Library", "Weather"],
            false,
        ),
    ];
    let mut wrong = Vec::new();
    for (request, scenes, waits) in &cases {
        let outcome = World::all().run(request);
        let second = outcome.depends.get(1).is_some_and(|d| d.contains(&1));
        if outcome.scenes != *scenes || (scenes.len() > 1 && second != *waits) || outcome.question.is_some() {
            wrong.push(format!(
                "{request}\n   want {scenes:?} {waits}\n   got {:?} {:?} {:?}\n   {:?} {:?}",
                outcome.scenes, outcome.depends, outcome.purposes, outcome.calls, outcome.question
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn single_requests_with_conjunctions_are_not_split() {
    let mut wrong = Vec::new();
    for (request, tools, several) in [
        ("Che tempo fa a Milano e Roma?", "WeatherForecast_Get", 2),
        ("Weather in Rome and Milan", "WeatherForecast_Get", 2),
        ("Meteo a Milano oggi e domani", "WeatherForecast_Get", 2),
        ("Apri un ticket: la stampante e il monitor sono rotti", "open_ticket", 1),
        ("Prenota un tavolo per due adulti e due bambini da Gino e figli domani alle 20", "reserve_table", 1),
        ("Vorrei ferie da lunedì a mercoledì", "MakeRequest", 1),
        (
            "Prenota la sala Verdi domani dalle 10 alle 12. Siamo in otto e serve il proiettore.",
            "book_room",
            1,
        ),
        ("Avete libri di Fruttero e Lucentini?", "search_books", 1),
        ("Open a ticket saying \"first the screen flickers, then it dies\"", "open_ticket", 1),
    ] {
        let outcome = World::all().run(request);
        if outcome.tools() != vec![tools; several] {
            wrong.push(format!(
                "{request}: {:?} {:?} {:?}",
                outcome.purposes, outcome.calls, outcome.question
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn missing_arguments_are_asked_and_the_reply_continues_the_step() {
    let mut world = World::all();
    let outcome = world.run("Prenota un tavolo per 4 da Gino domani");
    assert_eq!(outcome.calls, []);
    let question = outcome.question.unwrap();
    assert_eq!(question["missing"], json!(["time"]));
    assert!(question["question"].as_str().unwrap().contains("l'ora"), "{question}");
    assert!(outcome.answer.contains("l'ora"));
    let outcome = world.run("alle 20:30");
    assert_eq!(
        outcome.call("reserve_table"),
        &json!({"restaurant": "Gino", "date": "2026-05-05", "time": "20:30", "party_size": 4})
    );

    let mut world = World::all();
    let outcome = world.run("I'd like to book a table at The Anchor for tomorrow at 8pm");
    assert_eq!(outcome.question.unwrap()["missing"], json!(["party_size"]));
    assert!(outcome.answer.contains("number") || outcome.answer.contains("guests"), "{}", outcome.answer);
    let outcome = world.run("We are six");
    assert_eq!(outcome.call("reserve_table")["party_size"], json!(6));

    let mut world = World::all();
    let outcome = world.run("Track my parcel");
    assert_eq!(outcome.question.unwrap()["missing"], json!(["code"]));
    // Another request is no reply.
    let outcome = world.run("What is the weather in Rome?");
    assert_eq!(outcome.tools(), ["WeatherForecast_Get"]);

    let mut world = World::all();
    world.run("Lend me \"Dune\"");
    let outcome = world.run("three");
    assert_eq!(outcome.call("borrow_book"), &json!({"title": "Dune", "weeks": 3}));

    let mut world = World::all();
    world.run("Vorrei chiedere delle ferie");
    let outcome = world.run("no, lascia stare");
    assert_eq!(outcome.plan["needs_execution"], json!(false));

    let mut world = World::all();
    world.run("Vorrei chiedere delle ferie");
    let outcome = world.run("dal 15 al 17 giugno, e poi dimmi il meteo a Roma");
    assert_eq!(outcome.tools(), ["MakeRequest", "WeatherForecast_Get"]);
}

#[test]
fn value_that_was_meant_completes_the_previous_request() {
    let mut world = World::all();
    world.run("What is the weather in Rome?");
    let outcome = world.run("I meant tomorrow");
    assert_eq!(outcome.call("WeatherForecast_Get"), &json!({"city": "Rome", "date": "2026-05-05"}));
}

#[test]
fn elliptical_requests_complete_the_previous_request() {
    let mut world = World::all();
    world.run("Che tempo fa oggi a Milano?");
    let outcome = world.run("E a Roma?");
    assert_eq!(outcome.call("WeatherForecast_Get"), &json!({"city": "Roma", "date": "2026-05-04"}));
    let outcome = world.run("E domani?");
    assert_eq!(outcome.call("WeatherForecast_Get"), &json!({"city": "Roma", "date": "2026-05-05"}));
    let outcome = world.run("E a Reggio Calabria il 10 maggio?");
    assert_eq!(
        outcome.call("WeatherForecast_Get"),
        &json!({"city": "Reggio Calabria", "date": "2026-05-10"})
    );

    let mut world = World::all();
    world.run("What is the weather in Milan?");
    let outcome = world.run("And in Rome?");
    assert_eq!(outcome.call("WeatherForecast_Get"), &json!({"city": "Rome"}));
    let outcome = world.run("And Turin?");
    assert_eq!(outcome.call("WeatherForecast_Get"), &json!({"city": "Turin"}));
    let outcome = world.run("And Rome?");
    assert_eq!(outcome.call("WeatherForecast_Get"), &json!({"city": "Rome"}));
    let outcome = world.run("What about tomorrow?");
    assert_eq!(outcome.call("WeatherForecast_Get"), &json!({"city": "Rome", "date": "2026-05-05"}));
    let outcome = world.run("And the day after?");
    assert_eq!(outcome.call("WeatherForecast_Get"), &json!({"city": "Rome", "date": "2026-05-06"}));
    let outcome = world.run("And the day after?");
    assert_eq!(outcome.call("WeatherForecast_Get"), &json!({"city": "Rome", "date": "2026-05-07"}));

    let mut world = World::all();
    world.run("Che tempo fa il 10 maggio a Milano?");
    let outcome = world.run("E il giorno dopo?");
    assert_eq!(outcome.call("WeatherForecast_Get"), &json!({"city": "Milano", "date": "2026-05-11"}));

    let mut world = World::all();
    world.run("A che punto è il ticket INC-1?");
    let outcome = world.run("E INC-2?");
    assert_eq!(outcome.call("ticket_status"), &json!({"ticket_id": "INC-2"}));
}

#[test]
fn refusal_is_reported_with_reason_and_not_retried() {
    let mut world = World::all();
    let outcome = world.ask("Prenota un tavolo per 4 da Gino domani alle 20", &mut |_, _| {
        json!({"outcome": "refused", "error": {"code": "full", "message": "il ristorante è al completo"}})
    });
    assert_eq!(outcome.calls.len(), 1);
    assert!(outcome.answer.contains("il ristorante è al completo"), "{}", outcome.answer);
}

#[test]
fn missing_identifier_is_looked_up() {
    let mut world = World::all();
    let outcome = world.ask("Annulla la mia richiesta di ferie", &mut |tool, _| match tool {
        "ListRequests" => json!({"outcome": "ok", "result": {"requests": [{"request_id": 7, "from": "2026-06-15", "status": "pending"}]}}),
        _ => json!({"outcome": "ok", "result": {}, "say": "Annullata."}),
    });
    assert_eq!(outcome.tools(), ["ListRequests", "CancelRequest"]);
    assert_eq!(outcome.call("CancelRequest"), &json!({"request_id": 7}));
    assert_eq!(outcome.answer.lines().last(), Some("Annullata."));
}

#[test]
fn unserved_part_of_a_request_is_reported() {
    let outcome = World::all().run("Dimmi il meteo a Roma e poi calcola la radice quadrata di 144");
    assert_eq!(outcome.tools(), ["WeatherForecast_Get"]);
    assert!(outcome.answer.contains("radice quadrata"), "{}", outcome.answer);
}

//! Requests as people type them into a chat, over the shipped scenes.

use serde_json::{Value, json};

use super::support::{RequestOutcome, World};

fn asked(world: &mut World, request: &str) -> RequestOutcome {
    world.ask(request, &mut |_, _| json!({"outcome": "ok", "result": {}}))
}

fn answered(request: &str) -> RequestOutcome {
    asked(&mut World::shipped_and(&[]), request)
}

/// The calls that were made, and what the questions knew.
fn said(outcome: &RequestOutcome) -> Value {
    let calls = outcome.calls.iter().map(|(tool, arguments)| json!([tool, arguments]));
    let asked =
        outcome.questions.iter().map(|question| json!([question["tool"], question["known"], "asked"]));
    calls.chain(asked).collect()
}

/// The requests of which something else is said than what is beside them.
fn wrong(requests: &[(&str, Value)]) -> String {
    let differs = |(request, want): &(&str, Value)| {
        let outcome = answered(request);
        let got = said(&outcome);
        (got != *want).then(|| format!("{request}\n   want {want}\n   got  {got} {}", outcome.plan))
    };
    requests.iter().filter_map(differs).collect::<Vec<_>>().join("\n")
}

#[test]
fn who_says_to_be_somebody_else_is_named_in_a_write() {
    for request in [
        "This is mrossi, book 15 June off",
        "It's mrossi here. Please book 15 June off.",
        "mrossi here, book 15 June off",
        "sono mrossi, chiedi ferie il 15 giugno",
    ] {
        let outcome = answered(request);
        assert_eq!(said(&outcome)[0][1]["employee"], "mrossi", "{request}: {}", outcome.plan);
    }
}

#[test]
fn days_beside_each_other_are_single_days_and_no_range() {
    let day = |day: &str| json!(["MakeRequest", {"from": day, "to": day}]);
    let two = json!([day("2026-06-15"), day("2026-06-17")]);
    let requests = [
        "Book 15 June off, and the 17th too",
        "Give me 15 June off and also the 17th",
        "Book 15 June off. Also the 17th of June.",
        "Prenota ferie il 15 giugno e anche il 17",
    ];
    let requests: Vec<(&str, Value)> = requests.into_iter().map(|said| (said, two.clone())).collect();
    assert_eq!(wrong(&requests), "");
}

#[test]
fn question_that_waits_is_asked_again_beside_the_answer_to_another_one() {
    for (reply, tool) in [
        ("yes, and tell me the weather in Rome", "WeatherForecast_Get"),
        ("oui, et dis-moi la météo à Rome", "WeatherForecast_Get"),
        ("what about my balance?", "GetBalance"),
        ("who approves it?", "GetApprovers"),
        ("how many days would I have then?", "GetBalance"),
    ] {
        let mut world = World::shipped_and(&[]);
        let is_french = reply.starts_with("oui");
        asked(
            &mut world,
            if is_french {
                "Puis-je prendre congé le 14 décembre ?"
            } else {
                "Can I take 14 December off?"
            },
        );
        let outcome = asked(&mut world, reply);
        assert_eq!(outcome.tools(), [tool], "{reply}: {}", outcome.plan);
        assert_eq!(outcome.questions[0]["tool"], "MakeRequest", "{reply}: {}", outcome.plan);
    }
}

#[test]
fn write_with_an_afterthought_is_asked_about() {
    let outcome = answered("Book 24 December off. Oh wait, is it a public holiday?");
    assert_eq!(outcome.tools(), ["GetHolidays"]);
    assert_eq!(outcome.questions[0]["tool"], "MakeRequest");
}

#[test]
fn days_of_a_forecast_are_those_that_are_booked() {
    let mut world = World::shipped_and(&[]);
    asked(&mut world, "Weather in Rome for the next 3 days");
    let outcome = asked(&mut world, "book those days off");
    assert_eq!(said(&outcome)[0][1], json!({"from": "2026-05-04", "to": "2026-05-06"}), "{}", outcome.plan);
}

#[test]
fn what_is_the_speakers_own_is_looked_up() {
    let mut wrong = Vec::new();
    for (tool, requests) in [
        (
            "ListRequests",
            &[
                "see my requests",
                "give me my requests",
                "my requests",
                "show my requests",
                "vedi le mie richieste",
                "ver mis solicitudes",
                "mis solicitudes",
                "zeig meine Anträge",
                "voir mes demandes de congé",
                "what did I book?",
                "cosa ho prenotato?",
                "when is my vacation?",
                "quando sono le mie ferie?",
            ] as &[&str],
        ),
        (
            "GetBalance",
            &[
                "how many days do I have",
                "How many days have I got?",
                "quanti giorni ho?",
                "combien de jours j'ai ?",
                "wie viele Tage habe ich noch",
                "do NOT book anything, just tell me how many days I have",
            ],
        ),
        ("get_user_name", &["wer ist mrossi", "qui est mrossi", "quién es mrossi"]),
        ("get_user_profile", &["in che reparto lavora mrossi?", "in welcher Abteilung arbeitet mrossi"]),
    ] {
        for request in requests {
            let outcome = answered(request);
            if outcome.tools() != [tool] {
                wrong.push(format!("{request}: {:?} {:?}", outcome.tools(), outcome.question));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_no_tool_knows_is_not_answered_with_something_else() {
    for request in [
        "how many sick days do I have left",
        "I can't work that day",
        "did it work?",
        "I have to work on Friday",
        "Il 15 giugno non lavoro",
        "I need to leave early on 15 June",
        "I want to leave on 15 June",
    ] {
        let outcome = answered(request);
        assert!(outcome.calls.is_empty() && outcome.question.is_none(), "{request}: {outcome:#?}");
    }
}

#[test]
fn who_asks_whether_they_may_is_asked_whether_to_do_it() {
    for request in [
        "Kann ich vom 15. bis 17. Juni Urlaub nehmen?",
        "¿Puedo tomar vacaciones del 15 al 17 de junio?",
        "Puis-je prendre des congés du 15 au 17 juin ?",
        "Posso prendere ferie dal 15 al 17 giugno?",
    ] {
        let outcome = answered(request);
        let known = json!({"from": "2026-06-15", "to": "2026-06-17"});
        assert_eq!(said(&outcome), json!([["MakeRequest", known, "asked"]]), "{request}: {}", outcome.plan);
    }
}

#[test]
fn days_are_read_as_people_write_them() {
    for (request, from, to) in [
        ("Urlaub beantragen 14.12. - 16.12.", "2026-12-14", "2026-12-16"),
        ("Bitte buche mir vom 14. bis 16. Dezember Urlaub", "2026-12-14", "2026-12-16"),
        ("Demande un congé le lendemain de Noël", "2026-12-26", "2026-12-26"),
        ("Pide vacaciones el día después de Navidad", "2026-12-26", "2026-12-26"),
        ("Book between Christmas and New Year off", "2026-12-25", "2027-01-01"),
        ("Book Monday off, or rather Tuesday", "2026-05-05", "2026-05-05"),
        ("Book 30 November off... no sorry 1 December", "2026-12-01", "2026-12-01"),
    ] {
        let outcome = answered(request);
        assert_eq!(said(&outcome)[0][1], json!({"from": from, "to": to}), "{request}: {}", outcome.plan);
    }
    for request in ["Book the last week of January off", "Book the first week of June off"] {
        let outcome = answered(request);
        assert!(outcome.calls.is_empty() && outcome.question.is_some(), "{request}: {}", outcome.plan);
    }
}

#[test]
fn days_that_are_no_ends_of_a_vacation_are_asked_for() {
    for request in [
        "Tomorrow I want to book 15 June off",
        "On Friday I'd like to take 15 June off",
        "Domani voglio prenotare ferie il 15 giugno",
        "Book Thursday in two weeks off",
        "Beantrage Urlaub Dienstag in einer Woche",
        "Book off the 2 days before Christmas",
        "Book a day off next week",
        "Book some days off next week",
        "Prenota un giorno di ferie la prossima settimana",
        "Book a day between 15 and 19 June off",
        "Book three days between 15 and 24 June off",
    ] {
        let outcome = answered(request);
        assert!(outcome.calls.is_empty() && outcome.question.is_some(), "{request}: {}", outcome.plan);
    }
    for (request, from, to) in [
        ("Book every day next week off", "2026-05-11", "2026-05-17"),
        ("Book next week off", "2026-05-11", "2026-05-17"),
        ("Book between 15 and 19 June off", "2026-06-15", "2026-06-19"),
        ("Book vacation, start 15 June, end 19 June", "2026-06-15", "2026-06-19"),
    ] {
        assert_eq!(said(&answered(request))[0][1], json!({"from": from, "to": to}), "{request}");
    }
}

#[test]
fn what_limits_a_write_is_asked_about() {
    for request in [
        "Book the 15th to the 19th of June off, but I'll work on Wednesday",
        "Book off 15 to 19 June; Wednesday I work",
        "Prenota ferie dal 15 al 19 giugno, mercoledì lavoro",
        "Book two hours off on 15 June",
        "Prenota due ore di ferie il 15 giugno",
        "In theory, book 15 June off",
        "Hypothetically, book 15 June off",
        "Here is a mail I got: Please book 15 June off",
    ] {
        let outcome = answered(request);
        assert!(!outcome.tools().contains(&"MakeRequest"), "{request}: {}", outcome.plan);
    }
    for request in [
        "Book 15 June off, but not immediately",
        "Beantrage Urlaub am 15. Juni. Vergiss es.",
        "Demande un congé le 15 juin. Non, laisse tomber.",
        "Book 15 June off. On second thought, leave it.",
        "Book 15 June off. Ignore that.",
    ] {
        let outcome = answered(request);
        assert!(outcome.calls.is_empty() && outcome.question.is_none(), "{request}: {}", outcome.plan);
    }
}

#[test]
fn full_and_whole_ask_for_no_name() {
    for (request, tool) in [
        ("What's the full list of holidays?", "GetHolidays"),
        ("Give me the full forecast for Rome", "WeatherForecast_Get"),
        ("Tell me the complete list of my requests", "ListRequests"),
        ("What is my full name?", "get_user_name"),
        ("Do I have any leave booked in December?", "ListRequests"),
        ("When am I on leave?", "ListRequests"),
        ("sono approvate le mie ferie?", "ListRequests"),
        ("Où fait-il plus chaud, à Rome ou à Milan ?", "WeatherForecast_Get"),
    ] {
        let outcome = answered(request);
        assert!(outcome.tools().contains(&tool), "{request}: {:?}", outcome.tools());
    }
}

#[test]
fn all_that_is_listed_is_answered() {
    for (request, calls) in [
        ("Weather in Rome, Milan and Naples tomorrow and on Friday", 6),
        ("Weather in Rome tomorrow and Milan on Friday", 2),
        ("Wer ist Rossi?", 1),
        ("who is paola rossi", 1),
    ] {
        assert_eq!(answered(request).calls.len(), calls, "{request}");
    }
    let username = |request: &str| said(&answered(request))[0][1]["username"].clone();
    assert_eq!(username("Wer ist Rossi?"), "Rossi");
    assert_eq!(username("who is rossi"), "rossi");
    assert_eq!(username("who is paola rossi"), "paola rossi");
}

#[test]
fn next_year_is_the_year_that_is_asked_for() {
    for (request, tool, year) in [
        ("What is my balance for next year?", "GetBalance", 2027),
        ("Which public holidays are there next year?", "GetHolidays", 2027),
        ("Quali sono le festività dell'anno prossimo?", "GetHolidays", 2027),
        ("Wie viele Urlaubstage habe ich nächstes Jahr?", "GetBalance", 2027),
        ("¿Cuántos días de vacaciones me quedan el año que viene?", "GetBalance", 2027),
        ("What holidays were there last year?", "GetHolidays", 2025),
    ] {
        assert_eq!(said(&answered(request)), json!([[tool, {"year": year}]]), "{request}");
    }
}

#[test]
fn cancelled_requests_are_shown_to_who_asks_for_them() {
    for request in
        ["Show all my requests including cancelled ones", "List my requests including cancelled ones"]
    {
        let shown = json!([["ListRequests", {"include_cancelled": true}]]);
        assert_eq!(said(&answered(request)), shown, "{request}");
    }
}

#[test]
fn free_days_are_vacation() {
    for request in ["Pide un día libre el 15 de junio", "Mi serve un giorno libero il 15 giugno"] {
        let known = json!({"from": "2026-06-15", "to": "2026-06-15"});
        assert_eq!(said(&answered(request))[0][1], known, "{request}");
    }
}

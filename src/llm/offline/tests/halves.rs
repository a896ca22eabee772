//! Requests whose parts lead to different scenes or to none, with scenes unknown when the rules were written.

use super::support::World;

/// The shipped scenes, and those of a bank, of shared cars and of a clinic.
fn customers() -> World {
    World::shipped_and(&[
        include_str!("../../../../tests/eval/scenes/bank/scene.toml"),
        include_str!("../../../../tests/eval/scenes/cars/scene.toml"),
        include_str!("../../../../tests/eval/scenes/clinic/scene.toml"),
    ])
}

/// What requests lead to, each with the tools that are called and the parts that are named as not served.
fn check(cases: &[(&str, &[&str], &[&str])]) {
    let mut wrong = Vec::new();
    for (request, tools, unserved) in cases {
        let outcome = customers().run(request);
        let named = outcome.plan["unserved"].as_array().cloned().unwrap_or_default();
        let named: Vec<&str> = named.iter().filter_map(serde_json::Value::as_str).collect();
        if outcome.tools() != *tools || named != *unserved {
            wrong.push(format!("{request}: {:?} {named:?} {:?}", outcome.tools(), outcome.purposes));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn unserved_order_is_a_separate_clause() {
    check(&[
        ("Send 40 euros to Rita Neri and feed the cat", &["SendMoney"], &["feed the cat"]),
        ("Lock AB123CD and put a sticker on it", &["LockCar"], &["put a sticker on it"]),
        ("Cancel appointment 12 and call me a plumber", &["CancelAppointment"], &["call me a plumber"]),
        ("Send 40 euros to Rita Neri and order me a pizza", &["SendMoney"], &["order me a pizza"]),
        ("Manda 40 euro a Rita Neri e annaffia i gerani", &["SendMoney"], &["annaffia i gerani"]),
        (
            "Disdici l'appuntamento 12 e chiamami un idraulico",
            &["CancelAppointment"],
            &["chiamami un idraulico"],
        ),
    ]);
}

#[test]
fn each_question_of_a_list_is_a_step() {
    check(&[
        (
            "Tell me the weather in Rome tomorrow, who mrossi is and how much a visit with the cardiologist costs",
            &["WeatherForecast_Get", "get_user_name", "VisitPrice"],
            &[],
        ),
        (
            "Dimmi che tempo fa domani a Roma, chi è mrossi e quanto costa una visita dal cardiologo",
            &["WeatherForecast_Get", "get_user_name", "VisitPrice"],
            &[],
        ),
    ]);
    for request in ["Who are kvogel and jduck?", "Chi sono kvogel e jduck?"] {
        let outcome = customers().run(request);
        let names: Vec<_> =
            outcome.calls.iter().map(|(_, arguments)| arguments["username"].clone()).collect();
        assert_eq!(names, ["kvogel", "jduck"], "{request}: {:?}", outcome.purposes);
    }
    let outcome = customers().run("Tell me the weather in Rome and who kvogel is");
    assert_eq!(outcome.call("get_user_name")["username"], "kvogel");
    let outcome = customers().run("Send 40 euros to Rita Neri. Who are kvogel and jduck?");
    assert_eq!(
        outcome.tools().iter().filter(|tool| **tool == "SendMoney").count(),
        1,
        "{:?}",
        outcome.purposes
    );
}

#[test]
fn who_is_question_accepts_any_name() {
    check(&[
        ("Who is kvogel?", &["get_user_name"], &[]),
        ("Chi è kvogel?", &["get_user_name"], &[]),
        ("Tell me the weather in Rome and who kvogel is", &["WeatherForecast_Get", "get_user_name"], &[]),
        ("Who kvogels The Anchor?", &[], &[]),
        ("Who is the president of France?", &[], &[]),
    ]);
}

#[test]
fn requested_information_is_looked_up_and_not_written() {
    check(&[
        ("Non bloccare il bancomat, dimmi solo il suo limite", &["ListCards"], &[]),
        ("Don't book EF456GH, just tell me how much fuel it has", &["CarInfo"], &[]),
        ("Non prenotare EF456GH, dimmi solo quanto carburante ha", &["CarInfo"], &[]),
        ("Quanto carburante ha EF456GH?", &["CarInfo"], &[]),
    ]);
}

#[test]
fn general_knowledge_questions_call_no_tool() {
    for request in [
        "How do I open a bakery?",
        "How can I book a rocket?",
        "Come si apre una gelateria?",
        "Qual è la banca più antica del mondo?",
        "Which is the fastest car in the world?",
    ] {
        let outcome = customers().run(request);
        assert!(outcome.scenes.is_empty() && outcome.calls.is_empty(), "{request}: {:?}", outcome.purposes);
    }
}

#[test]
fn feminine_agent_nouns_match_the_masculine() {
    check(&[("Aggiungi Lara Conti come guidatrice alla prenotazione 9", &["AddDriver"], &[])]);
}

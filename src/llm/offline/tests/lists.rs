//! Several values of one kind become several calls.

use serde_json::json;

use super::domains::{VACATION, WEATHER};
use super::support::{World, check};

const DESK: &str = r#"
name = "Desk"
description = "Appointments with doctors, and the loans of the library."
examples = [
    { say = "Cancel appointment 12", tool = "CancelAppointment" },
    { say = "Disdici l'appuntamento 12", tool = "CancelAppointment" },
    { say = "Cancel the visit with the cardiologist", tool = "CancelAppointment" },
    { say = "Disdici quello con il cardiologo", tool = "CancelAppointment" },
    { say = "Which appointments do I have?", tool = "ListAppointments" },
    { say = "Renew loan 3", tool = "RenewLoan" },
    { say = "Rinnova il prestito 3", tool = "RenewLoan" },
    { say = "Lend me the book Dracula", tool = "LendBook" },
    { say = "Prestami il libro Dracula", tool = "LendBook" },
    { say = "Where is parcel PK-1001?", tool = "TrackParcel" },
]
[[tools]]
name = "CancelAppointment"
description = "Cancels an appointment."
effect = "write"
parameters.required = ["number"]
parameters.properties = { number = { type = "integer", description = "Number of the appointment" } }
[[tools]]
name = "ListAppointments"
description = "Lists the appointments."
effect = "read"
[[tools]]
name = "RenewLoan"
description = "Renews a loan."
effect = "write"
parameters.required = ["loan"]
parameters.properties = { loan = { type = "integer", description = "Number of the loan" } }
[[tools]]
name = "LendBook"
description = "Lends a book to the user."
effect = "write"
parameters.required = ["title"]
parameters.properties = { title = { type = "string", description = "Title of the book" } }
[[tools]]
name = "TrackParcel"
description = "Where a parcel is."
effect = "read"
parameters.required = ["code"]
parameters.properties = { code = { type = "string", description = "Code of the parcel", examples = ["PK-1001"] } }
"#;

#[test]
fn each_value_of_a_list_gets_its_own_call() {
    check(
        &World::of(&[WEATHER, VACATION, DESK]),
        r#"
        Renew loans 1 and 2 => RenewLoan {"loan": 1}; RenewLoan {"loan": 2}
        Rinnova i prestiti 1, 2 e 5 => RenewLoan {"loan": 1}; RenewLoan {"loan": 2}; RenewLoan {"loan": 5}
        Please renew loan 4, thanks => RenewLoan {"loan": 4}
        Cancel appointments 41 and 43 => CancelAppointment {"number": 41}; CancelAppointment {"number": 43}
        Disdici gli appuntamenti 41 e 43 => CancelAppointment {"number": 41}; CancelAppointment {"number": 43}
        Cancel appointments number 41, 42 and 43 please
            => CancelAppointment {"number": 41}; CancelAppointment {"number": 42}; CancelAppointment {"number": 43}
        Lend me Emma and Persuasion => LendBook {"title": "Emma"}; LendBook {"title": "Persuasion"}
        Prestami Emma e Persuasione per favore => LendBook {"title": "Emma"}; LendBook {"title": "Persuasione"}
        Lend me "Pride and Prejudice" => LendBook {"title": "Pride and Prejudice"}
        Lend me "Emma", "Persuasion" and "Dracula"
            => LendBook {"title": "Emma"}; LendBook {"title": "Persuasion"}; LendBook {"title": "Dracula"}
        Where are parcels PK-1001 and PK-1002? => TrackParcel {"code": "PK-1001"}; TrackParcel {"code": "PK-1002"}
        meteo a Roma, Milano e Torino
            => WeatherForecast_Get {"city": "Roma"}; WeatherForecast_Get {"city": "Milano"}; WeatherForecast_Get {"city": "Torino"}
        weather in Rome and weather in Milan => WeatherForecast_Get {"city": "Rome"}; WeatherForecast_Get {"city": "Milan"}
        meteo a Roma, meteo a Milano e meteo a Torino
            => WeatherForecast_Get {"city": "Roma"}; WeatherForecast_Get {"city": "Milano"}; WeatherForecast_Get {"city": "Torino"}
        What's the weather in Rome and the weather in Milan?
            => WeatherForecast_Get {"city": "Rome"}; WeatherForecast_Get {"city": "Milan"}
        Che tempo fa a Roma e poi a Milano? => WeatherForecast_Get {"city": "Roma"}; WeatherForecast_Get {"city": "Milano"}
        What is the weather in Rome and then in Milan, please?
            => WeatherForecast_Get {"city": "Rome"}; WeatherForecast_Get {"city": "Milan"}
        Che tempo fa a Roma, poi a Milano e infine a Torino?
            => WeatherForecast_Get {"city": "Roma"}; WeatherForecast_Get {"city": "Milano"}; WeatherForecast_Get {"city": "Torino"}
        Where is parcel PK-1001 and then PK-1002? => TrackParcel {"code": "PK-1001"}; TrackParcel {"code": "PK-1002"}
        weather in Rome, not the weather in Milan => WeatherForecast_Get {"city": "Rome"}
        Weather in Paris, France => WeatherForecast_Get {"city": "Paris, France"}
        Weather in Portland, OR and in Paris, France
            => WeatherForecast_Get {"city": "Portland, OR"}; WeatherForecast_Get {"city": "Paris, France"}
    "#,
    );
}

#[test]
fn values_beyond_the_call_limit_are_reported() {
    let numbers: Vec<String> = (1..=18).map(|n| n.to_string()).collect();
    let (last, head) = numbers.split_last().unwrap();
    let words = format!("Renew loans {} and {last}", head.join(", "));
    let outcome = World::of(&[WEATHER, VACATION, DESK]).run(&words);
    assert_eq!(outcome.calls.len(), 16, "{:?}", outcome.questions);
    assert!(outcome.answer.contains("17") && outcome.answer.contains("18"), "{}", outcome.answer);
}

#[test]
fn two_complete_requests_after_one_verb_are_two_calls() {
    let words = "Transfer 500 dollars from savings to Diego and 30 dollars from checking to Amy Wong";
    let outcome = World::of(&[WEATHER, super::services::BANK]).run(words);
    let want = [
        json!({"account_type": "savings", "amount": 500, "recipient_account_name": "Diego"}),
        json!({"account_type": "checking", "amount": 30, "recipient_account_name": "Amy Wong"}),
    ];
    assert_eq!(
        outcome.calls.iter().map(|c| c.1.clone()).collect::<Vec<_>>(),
        want,
        "{:?}",
        outcome.questions
    );
}

#[test]
fn pronoun_one_is_no_number() {
    for words in [
        "Cancel the visit with the dentist, the one on Friday",
        "Disdici quello con il dentista",
        "Cancel the one with the cardiologist",
    ] {
        let outcome = World::of(&[WEATHER, VACATION, DESK]).run(words);
        assert!(
            outcome.calls.iter().all(|(tool, _)| tool != "CancelAppointment"),
            "{words}: {:?}",
            outcome.calls
        );
        for question in &outcome.questions {
            assert_eq!(question["known"].get("number"), None, "{words}: {question}");
        }
    }
}

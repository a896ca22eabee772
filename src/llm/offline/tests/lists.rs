//! Several values of one kind become several calls.

use serde_json::{Value, json};

use super::domains::{VACATION, WEATHER};
use super::support::World;

const DESK: &str = r#"
name = "Desk"
description = "Appointments with doctors, and the loans of the library."
[[examples]]
say = "Cancel appointment 12"
tool = "CancelAppointment"
[[examples]]
say = "Disdici l'appuntamento 12"
tool = "CancelAppointment"
[[examples]]
say = "Cancel the visit with the cardiologist"
tool = "CancelAppointment"
[[examples]]
say = "Disdici quello con il cardiologo"
tool = "CancelAppointment"
[[examples]]
say = "Which appointments do I have?"
tool = "ListAppointments"
[[examples]]
say = "Renew loan 3"
tool = "RenewLoan"
[[examples]]
say = "Rinnova il prestito 3"
tool = "RenewLoan"
[[examples]]
say = "Lend me the book Dracula"
tool = "LendBook"
[[examples]]
say = "Prestami il libro Dracula"
tool = "LendBook"
[[examples]]
say = "Where is parcel PK-1001?"
tool = "TrackParcel"
[[tools]]
name = "CancelAppointment"
description = "Cancels an appointment."
effect = "write"
[tools.parameters]
type = "object"
required = ["number"]
additionalProperties = false
properties = { number = { type = "integer", description = "Number of the appointment" } }
[[tools]]
name = "ListAppointments"
description = "Lists the appointments."
effect = "read"
[[tools]]
name = "RenewLoan"
description = "Renews a loan."
effect = "write"
[tools.parameters]
type = "object"
required = ["loan"]
additionalProperties = false
properties = { loan = { type = "integer", description = "Number of the loan" } }
[[tools]]
name = "LendBook"
description = "Lends a book to the user."
effect = "write"
[tools.parameters]
type = "object"
required = ["title"]
additionalProperties = false
properties = { title = { type = "string", description = "Title of the book" } }
[[tools]]
name = "TrackParcel"
description = "Where a parcel is."
effect = "read"
[tools.parameters]
type = "object"
required = ["code"]
additionalProperties = false
properties = { code = { type = "string", description = "Code of the parcel", examples = ["PK-1001"] } }
"#;

fn calls(words: &str) -> Value {
    let outcome = World::of(&[WEATHER, VACATION, DESK]).run(words);
    assert!(outcome.questions.is_empty(), "{words}: {:?}", outcome.questions);
    json!(outcome.calls.iter().map(|(tool, arguments)| json!([tool, arguments])).collect::<Vec<_>>())
}

fn each(tool: &str, name: &str, values: Value) -> Value {
    json!(values.as_array().unwrap().iter().map(|v| json!([tool, {name: v}])).collect::<Vec<_>>())
}

#[test]
fn each_value_of_a_list_gets_its_own_call() {
    for (words, want) in [
        ("Renew loans 1 and 2", each("RenewLoan", "loan", json!([1, 2]))),
        ("Rinnova i prestiti 1, 2 e 5", each("RenewLoan", "loan", json!([1, 2, 5]))),
        ("Please renew loan 4, thanks", each("RenewLoan", "loan", json!([4]))),
        ("Cancel appointments 41 and 43", each("CancelAppointment", "number", json!([41, 43]))),
        ("Disdici gli appuntamenti 41 e 43", each("CancelAppointment", "number", json!([41, 43]))),
        (
            "Cancel appointments number 41, 42 and 43 please",
            each("CancelAppointment", "number", json!([41, 42, 43])),
        ),
        ("Lend me Emma and Persuasion", each("LendBook", "title", json!(["Emma", "Persuasion"]))),
        ("Prestami Emma e Persuasione per favore", each("LendBook", "title", json!(["Emma", "Persuasione"]))),
        ("Lend me \"Pride and Prejudice\"", each("LendBook", "title", json!(["Pride and Prejudice"]))),
        (
            "Lend me \"Emma\", \"Persuasion\" and \"Dracula\"",
            each("LendBook", "title", json!(["Emma", "Persuasion", "Dracula"])),
        ),
        (
            "Where are parcels PK-1001 and PK-1002?",
            each("TrackParcel", "code", json!(["PK-1001", "PK-1002"])),
        ),
        (
            "meteo a Roma, Milano e Torino",
            each("WeatherForecast_Get", "city", json!(["Roma", "Milano", "Torino"])),
        ),
        (
            "weather in Rome and weather in Milan",
            each("WeatherForecast_Get", "city", json!(["Rome", "Milan"])),
        ),
        (
            "meteo a Roma, meteo a Milano e meteo a Torino",
            each("WeatherForecast_Get", "city", json!(["Roma", "Milano", "Torino"])),
        ),
        (
            "What's the weather in Rome and the weather in Milan?",
            each("WeatherForecast_Get", "city", json!(["Rome", "Milan"])),
        ),
        (
            "Che tempo fa a Roma e poi a Milano?",
            each("WeatherForecast_Get", "city", json!(["Roma", "Milano"])),
        ),
        (
            "What is the weather in Rome and then in Milan, please?",
            each("WeatherForecast_Get", "city", json!(["Rome", "Milan"])),
        ),
        (
            "Che tempo fa a Roma, poi a Milano e infine a Torino?",
            each("WeatherForecast_Get", "city", json!(["Roma", "Milano", "Torino"])),
        ),
        (
            "Where is parcel PK-1001 and then PK-1002?",
            each("TrackParcel", "code", json!(["PK-1001", "PK-1002"])),
        ),
        ("weather in Rome, not the weather in Milan", each("WeatherForecast_Get", "city", json!(["Rome"]))),
        ("Weather in Paris, France", each("WeatherForecast_Get", "city", json!(["Paris, France"]))),
        (
            "Weather in Portland, OR and in Paris, France",
            each("WeatherForecast_Get", "city", json!(["Portland, OR", "Paris, France"])),
        ),
    ] {
        assert_eq!(calls(words), want, "{words}");
    }
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

//! Follow-ups that name another value for what was done, or compare earlier results.

use serde_json::{Value, json};

use super::support::{RequestOutcome, World};

const ROOMS: &str = r#"
name = "MeetingRooms"
description = "Meeting rooms: books them, and moves and cancels bookings."
examples = [
    { say = "Book the room Giotto on 3 December", tool = "BookRoom" },
    { say = "Move room booking 12 to 4 December", tool = "MoveBooking" },
    { say = "Cancel room booking 12", tool = "CancelBooking" },
]
[[tools]]
name = "BookRoom"
description = "Books a meeting room on a day."
effect = "write"
[tools.parameters]
required = ["room", "date"]
properties = { room = { type = "string", description = "Name of the room" }, date = { type = "string", format = "date", description = "The day" } }
[[tools]]
name = "MoveBooking"
description = "Moves the booking of a room to another day."
effect = "write"
[tools.parameters]
required = ["number", "date"]
properties = { number = { type = "integer", description = "Number of the booking" }, date = { type = "string", format = "date", description = "The new day" } }
[[tools]]
name = "CancelBooking"
description = "Cancels the booking of a room."
effect = "write"
[tools.parameters]
required = ["number"]
properties = { number = { type = "integer", description = "Number of the booking" } }
"#;

/// What is answered to a request for another value after a request, without a plan.
fn answered(request: &str, change: &str) -> String {
    let mut world = World::shipped_and(&[ROOMS]);
    world.run(request);
    let answers = json!({"type": "object", "properties": {"answer": {"type": "string"}}});
    world.planned(change, &[], answers)["answer"].as_str().unwrap_or_default().to_owned()
}

/// What the last of some requests of a conversation leads to.
fn last(requests: &[&str]) -> RequestOutcome {
    let mut world = World::shipped_and(&[ROOMS]);
    let mut tool = |name: &str, arguments: &Value| {
        let mut result = arguments.clone();
        if name == "BookRoom" {
            result["number"] = json!(52);
        }
        json!({"outcome": "ok", "result": result})
    };
    let mut outcome = None;
    for request in requests {
        outcome = Some(world.ask(request, &mut tool));
    }
    outcome.unwrap()
}

#[test]
fn tool_that_changes_what_was_done_is_proposed() {
    for change in ["Actually make it 15 December", "no, the 15th of December", "make it 15 December instead"]
    {
        let outcome = last(&["Book the room Giotto on 14 December", change]);
        assert!(outcome.calls.is_empty(), "{change}: {:?}", outcome.calls);
        let question = outcome.question.unwrap_or_else(|| panic!("{change}"));
        assert_eq!(question["tool"], "MoveBooking", "{change}");
        assert_eq!(question["known"], json!({"number": 52, "date": "2026-12-15"}), "{change}");
    }
}

#[test]
fn nothing_is_written_where_nothing_changes_what_was_done() {
    for (request, change, instead) in [
        ("Book 14 December off", "Actually make it 15 December", "Book 15 December off"),
        ("Book 14 December off", "Move it to 15 December", "Book 15 December off"),
        ("Book 14 December off", "not the 14th, the 15th of December", "Book the 15th of December off"),
        ("Prenota ferie il 14 dicembre", "spostale al 15 dicembre", "Prenota ferie il 15 dicembre"),
        ("Demande un congé le 14 décembre", "Déplace-le au 15 décembre", "Demande un congé le 15 décembre"),
        (
            "Beantrage Urlaub am 14. Dezember",
            "Doch lieber am 15. Dezember",
            "Beantrage Urlaub am 15. Dezember",
        ),
        (
            "Beantrage Urlaub am 14. Dezember",
            "Verschiebe ihn auf den 15. Dezember",
            "Beantrage Urlaub am 15. Dezember",
        ),
        (
            "Solicita vacaciones el 14 de diciembre",
            "Muévelas al 15 de diciembre",
            "Solicita vacaciones el 15 de diciembre",
        ),
        ("Request vacation from 14 to 16 December", "Make it two days", "again"),
    ] {
        let outcome = last(&[request, change]);
        assert!(outcome.calls.is_empty() && outcome.question.is_none(), "{change}: {outcome:?}");
        let answer = answered(request, change);
        assert!(answer.contains(instead), "{change}: {answer}");
    }
}

#[test]
fn other_requests_are_no_changes_of_what_was_done() {
    for request in [
        "make it rain",
        "Is 15 December a holiday?",
        "Book 15 December off",
        "And what is the weather in Rome?",
    ] {
        let answer = answered("Book 14 December off", request);
        assert!(!answer.contains("Book 14 December off"), "{request}: {answer}");
    }
}

#[test]
fn order_beside_an_order_to_undo_takes_no_day_of_it() {
    let calls = last(&["Book 14 December off and cancel 16 December"]).calls;
    let booked = json!({"from": "2026-12-14", "to": "2026-12-14"});
    assert!(calls.contains(&("MakeRequest".to_owned(), booked)), "{calls:?}");
    let cancelled = json!({"from": "2026-12-16"});
    assert!(calls.contains(&("CancelRequest".to_owned(), cancelled)), "{calls:?}");
}

#[test]
fn comparison_tells_all_that_was_told() {
    let cities = |outcome: RequestOutcome| -> Vec<Value> {
        outcome.calls.into_iter().map(|(_, arguments)| arguments["city"].clone()).collect()
    };
    let both = [json!("Rome"), json!("Milan")];
    for compare in ["Which one is warmer?", "And which is colder?", "Compare them"] {
        assert_eq!(cities(last(&["What's the weather in Rome and Milan?", compare])), both, "{compare}");
        assert_eq!(cities(last(&["What's the weather in Rome?", "And Milan?", compare])), both, "{compare}");
    }
    for (request, correction) in [
        ("What's the weather in Rome?", "not Rome, Milan"),
        ("Wie ist das Wetter in Rom?", "nein, in Milan"),
        ("Che tempo fa a Roma?", "no, a Milan"),
    ] {
        assert_eq!(cities(last(&[request, correction])), [json!("Milan")], "{correction}");
    }
}

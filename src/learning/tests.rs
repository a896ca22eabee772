use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::{Date, date};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::binding::bind;
use super::filling::fill;
use super::template::RequestTemplate;
use super::{LearnedStanding, hints, standing};
use crate::plan::Plan;
use crate::run::{Demotion, LearnedPlan};

const TODAY: Date = date(2026, 5, 4);

fn template(request: &str) -> Option<RequestTemplate> {
    RequestTemplate::of(request, Some("en"), TODAY, "")
}

fn words(request: &str) -> String {
    template(request).map(|template| template.words()).unwrap_or_default()
}

fn plan(calls: Value) -> Plan {
    let calls = calls.as_array().unwrap();
    let tools: Vec<&Value> = calls.iter().map(|call| &call["tool"]).collect();
    let step = json!({"step_number": 1, "scene_name": "Desk", "purpose": "do it", "expected_tools": tools,
        "prepared_calls": calls});
    serde_json::from_value(json!({"needs_execution": true, "reasoning": "r", "steps": [step]})).unwrap()
}

fn learned(request: &str, calls: Value) -> Option<LearnedPlan> {
    bind(&plan(calls), &template(request).unwrap(), BTreeMap::new())
}

fn booking(from: &str, to: &str, plate: &str) -> Value {
    json!([{"tool": "Book", "arguments": {"from": from, "to": to, "plate": plate}}])
}

const BOOKING: &str = "Book a parking space from 15 to 17 June for the plate AB123CD";

#[test]
fn templates_hold_words_and_typed_placeholders() {
    for (request, expected) in [
        (BOOKING, "book a parking space {days} for the plate {code}"),
        ("Show the weather in Milan tomorrow.", "show the weather in {name} {day}"),
        (
            "Find the book \"The Hobbit\" and reserve 3 copies",
            "find the book \" {quote} \" and reserve {number} copies",
        ),
        ("Book the desk for tomorrow at 18:30", "book the desk for {day} {time}"),
        ("Send the report to ada@example.com", "send the report to {code}"),
    ] {
        assert_eq!(words(request), expected);
    }
}

#[test]
fn requests_that_need_more_than_their_words_have_no_template() {
    for request in [
        "Don't book a parking space for tomorrow",
        "Book a parking space, but not for tomorrow",
        "If it rains, book a parking space for tomorrow",
        "Book it for tomorrow",
        "Book the same space for tomorrow",
        "Translate into Italian: book a parking space for tomorrow",
        "Book a parking space for some day before 15 June",
        "Book a {name} for tomorrow",
        "Book a parking\u{200b} space for tomorrow",
        "",
    ] {
        assert_eq!(template(request).map(|template| template.words()), None, "{request}");
    }
    let long = format!("Show the weather in Milan {}", "and in Rome ".repeat(60));
    assert_eq!(template(&long), None);
}

#[test]
fn hidden_clauses_change_the_template() {
    let plain = template("Show the weather in Milan").unwrap();
    for request in [
        "Show the weather in Milan And Cancel My Vacation",
        "Show the weather in Milan And Rome",
        "Show the weather in Milan, cancel order 7",
        "Show the weather in Milan today",
        "Show me the weather in Milan",
        "Show the weather in Milan?",
        "Show the weather near Milan",
    ] {
        assert_ne!(template(request).map(|other| other.id), Some(plain.id.clone()), "{request}");
    }
    assert_eq!(template("Show the weather in Rome.").unwrap().id, plain.id);
    let instructed =
        RequestTemplate::of("Show the weather in Milan", Some("en"), TODAY, "Milan means order 7.");
    assert_ne!(instructed.unwrap().id, plain.id);
    // Only the accent tells "and" from "is".
    let italian = |text: &str| RequestTemplate::of(text, Some("it"), TODAY, "").map(|template| template.id);
    assert_ne!(italian("Mostra il saldo e il conto"), italian("Mostra il saldo è il conto"));
}

#[test]
fn plan_is_filled_with_the_values_of_the_other_request() {
    let known = learned(BOOKING, booking("2026-06-15", "2026-06-17", "AB123CD")).unwrap();
    let other = template("Book a parking space from 1 to 3 July for the plate ZZ999ZZ").unwrap();
    let filled = fill(&known, &other, 3).unwrap();
    let call = &filled.steps[0].prepared_calls[0];
    assert_eq!(json!(call.arguments), json!({"from": "2026-07-01", "to": "2026-07-03", "plate": "ZZ999ZZ"}));
    let stored = serde_json::to_string(&known).unwrap();
    for value in ["AB123CD", "2026", "June"] {
        assert!(!stored.contains(value), "{stored}");
    }
}

#[test]
fn values_that_the_words_do_not_determine_are_not_learned() {
    for (request, calls) in [
        // Not said at all.
        (BOOKING, booking("2026-06-15", "2026-06-18", "AB123CD")),
        // A placeholder that no argument uses.
        (BOOKING, json!([{"tool": "Book", "arguments": {"from": "2026-06-15", "to": "2026-06-17"}}])),
        // One that two arguments use.
        (
            "Book a parking space for 15 June",
            json!([{"tool": "Book", "arguments": {"from": "2026-06-15", "to": "2026-06-15"}}]),
        ),
        // Two of the same value.
        ("Book 3 desks for 3 people", json!([{"tool": "Book", "arguments": {"desks": 3, "people": 3}}])),
        // A flag and a constant that no words carry.
        ("Find the book Dune", json!([{"tool": "Find", "arguments": {"title": "Dune", "exact": true}}])),
        ("Find the book Dune", json!([{"tool": "Find", "arguments": {"title": "Dune", "kind": "novel"}}])),
    ] {
        assert_eq!(learned(request, calls), None, "{request}");
    }
    let mut unsure = plan(booking("2026-06-15", "2026-06-17", "AB123CD"));
    unsure.steps[0].unclear = true;
    assert_eq!(bind(&unsure, &template(BOOKING).unwrap(), BTreeMap::new()), None);
}

#[test]
fn constants_come_from_the_words_of_the_template() {
    let calls = json!([{"tool": "Book", "arguments": {"kind": "parking space", "plate": "AB123CD"}}]);
    let known = learned("Book a parking space for the plate AB123CD", calls).unwrap();
    assert!(serde_json::to_string(&known).unwrap().contains("parking space"));
}

#[test]
fn standing_follows_successes_demotions_and_suspensions() {
    let now = Timestamp::UNIX_EPOCH;
    let later = Some(Timestamp::MAX);
    for (successes, demoted, suspended, expected) in [
        (2, None, None, LearnedStanding::Unproven),
        (3, None, None, LearnedStanding::Proven),
        (3, None, later, LearnedStanding::Suspended),
        (3, None, Some(now), LearnedStanding::Proven),
        (2, Some(Demotion::Failure), None, LearnedStanding::Demoted),
        (3, Some(Demotion::Failure), None, LearnedStanding::Proven),
        (3, Some(Demotion::Definition), None, LearnedStanding::Proven),
        (99, Some(Demotion::Rating), None, LearnedStanding::Demoted),
    ] {
        assert_eq!(standing(successes, demoted, suspended, 3, now), expected, "{successes} {demoted:?}");
    }
}

#[test]
fn hints_are_the_most_similar_plans() {
    let known: Vec<(String, LearnedPlan)> =
        ["find the book {name}", "book a desk {day}", "find the shelf of the book {name}"]
            .map(|words| (words.to_owned(), LearnedPlan::default()))
            .into();
    let found = hints("find the book {name} {day}", &known);
    let found: Vec<&str> = found.iter().map(|hint| hint.request.as_str()).collect();
    assert_eq!(found, ["find the book {name}", "find the shelf of the book {name}"]);
    assert!(hints("", &known).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_text_has_a_template_or_none(text in "(?s).{0,200}") {
        if let Some(template) = template(&text) {
            prop_assert!(!template.elements.is_empty());
            prop_assert!(template.elements.len() <= text.len());
        }
    }

    #[test]
    fn filling_a_bound_plan_with_its_own_request_gives_it_back(
        day in 1i8..28, days in 2u32..900, plate in "[A-Z]{2}[0-9]{3}[A-Z]{2}",
    ) {
        let request = format!("Reserve the plate {plate} on {day} June for {days} hours");
        let day = date(2026, 6, day).to_string();
        let calls = json!([{"tool": "Reserve", "arguments": {"day": day, "plate": plate, "hours": days}}]);
        let template = template(&request);
        prop_assume!(template.is_some());
        let template = template.unwrap();
        let own = plan(calls);
        if let Some(known) = bind(&own, &template, BTreeMap::new()) {
            let filled = fill(&known, &template, 3).unwrap();
            prop_assert_eq!(&filled.steps[0].prepared_calls, &own.steps[0].prepared_calls);
            let stored = serde_json::to_string(&known).unwrap();
            prop_assert!(!stored.contains(&plate) && !stored.contains(&day), "{}", stored);
        }
    }
}

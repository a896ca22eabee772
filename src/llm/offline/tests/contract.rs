//! The offline model beside other models of a deployment: paraphrased purposes, later rounds, answers and
//! summaries.

use serde_json::{Value, json};

use super::support::{NOW, World, send};
use crate::llm::{Message, Purpose, ToolChoice, ToolSpec, sections};
use crate::run::ReplyCall;

fn make_request() -> ToolSpec {
    ToolSpec {
        name: "MakeRequest".into(),
        description: "Submit a vacation request.".into(),
        parameters: json!({"type": "object", "required": ["from", "to"], "properties": {
            "from": {"type": "string", "format": "date", "description": "First day"},
            "to": {"type": "string", "format": "date", "description": "Last day"}}})
        .into(),
        strict: false,
    }
}

fn ask_user() -> ToolSpec {
    ToolSpec {
        name: "AskUser".into(),
        description: String::new(),
        parameters: json!({"type": "object"}).into(),
        strict: false,
    }
}

fn prompt(parts: &[(&str, &str)]) -> Message {
    let mut text = String::new();
    sections::push(&mut text, "now", NOW);
    for (name, body) in parts {
        sections::push(&mut text, name, body);
    }
    Message::User { text }
}

#[test]
fn only_the_schema_bounds_the_steps_of_a_plan() {
    let request = "Voglio sapere il meteo a Milano e poi richiedere 3 giorni di ferie dal 15 al 17 giugno";
    let mut world = World::all();
    let bounded = |most: u32| json!({"type": "object", "properties": {"steps": {"maxItems": most}}});
    let steps = |world: &World, most: u32| -> usize {
        world.planned(request, &[], bounded(most))["steps"].as_array().unwrap().len()
    };
    assert_eq!(steps(&world, 10), 2);
    assert_eq!(steps(&world, 1), 1);
    world.summary = Some("- Explain it in at most 1 of the steps, please".to_owned());
    assert_eq!(steps(&world, 10), 2, "words of the user are no bound");
}

#[test]
fn paraphrased_purpose_takes_values_from_the_request() {
    let user = prompt(&[
        ("scene", "VacationManagement"),
        ("purpose", "Submit vacation request"),
        ("expected_tools", "GetApprovers\nMakeRequest"),
        ("request", "Voglio sapere il meteo a Milano e poi richiedere 3 giorni di ferie dal 15 al 17 giugno"),
    ]);
    let reply = send(Purpose::Scene, vec![user], vec![make_request(), ask_user()], ToolChoice::Auto);
    assert_eq!(reply.calls[0].name, "MakeRequest");
    let arguments: Value = serde_json::from_str(&reply.calls[0].arguments).unwrap();
    assert_eq!(arguments, json!({"from": "2026-06-15", "to": "2026-06-17"}));
    assert_eq!(reply.model, "offline");
}

#[test]
fn added_step_takes_no_optional_values_from_the_request() {
    let days = "Richiedi ferie dal 15 al 17 giugno e poi dimmi che tempo fa a Roma";
    let cancel = ToolSpec {
        name: "CancelRequest".into(),
        description: "Cancels a vacation request by its number or its first day.".into(),
        parameters: json!({"type": "object", "properties": {
            "request_id": {"type": "integer", "description": "Number of the request"},
            "from": {"type": "string", "format": "date", "description": "First day"},
            "kind": {"const": "vacation"}}})
        .into(),
        strict: false,
    };
    let called = |purpose: &str, expected: &str| -> Value {
        let user = prompt(&[
            ("scene", "VacationManagement"),
            ("purpose", purpose),
            ("expected_tools", expected),
            ("request", days),
        ]);
        let tools = vec![make_request(), cancel.clone(), ask_user()];
        let reply = send(Purpose::Scene, vec![user], tools, ToolChoice::Auto);
        assert_eq!(reply.calls[0].name, expected);
        serde_json::from_str(&reply.calls[0].arguments).unwrap()
    };
    let added = called("Annulla anche quella numero 3 di Natale", "CancelRequest");
    assert_eq!(added, json!({"request_id": 3, "kind": "vacation"}));
    // In a planner's words, without a value of its own, all of them are in the request.
    let worded = called("Withdraw it as the user wishes", "CancelRequest");
    assert_eq!(worded, json!({"from": "2026-06-15", "kind": "vacation"}));
}

#[test]
fn back_references_take_days_from_an_earlier_step() {
    let user = prompt(&[
        ("scene", "VacationManagement"),
        ("purpose", "chiedi le ferie per quei giorni"),
        ("expected_tools", "MakeRequest"),
        ("request", "Dimmi che tempo fa a Roma dal 15 al 17 giugno, poi chiedi le ferie per quei giorni"),
    ]);
    let reply = send(Purpose::Scene, vec![user], vec![make_request(), ask_user()], ToolChoice::Auto);
    let arguments: Value = serde_json::from_str(&reply.calls[0].arguments).unwrap();
    assert_eq!(arguments, json!({"from": "2026-06-15", "to": "2026-06-17"}));
}

#[test]
fn write_takes_no_values_from_other_parts_of_the_request() {
    let user = prompt(&[
        ("scene", "VacationManagement"),
        ("purpose", "chiedi tre giorni di ferie"),
        ("expected_tools", "MakeRequest"),
        ("request", "Dimmi che tempo fa a Roma dal 15 al 17 giugno, poi chiedi tre giorni di ferie"),
    ]);
    let reply = send(Purpose::Scene, vec![user], vec![make_request(), ask_user()], ToolChoice::Auto);
    assert_eq!(reply.calls[0].name, "AskUser");
    let arguments: Value = serde_json::from_str(&reply.calls[0].arguments).unwrap();
    assert_eq!(arguments["missing"], json!(["from", "to"]));
}

#[test]
fn last_round_without_tools_reports_the_results() {
    let user = prompt(&[
        ("scene", "VacationManagement"),
        ("purpose", "chiedi ferie"),
        ("language", "it"),
        ("request", "chiedi ferie"),
    ]);
    let call = ReplyCall { id: "a".into(), name: "MakeRequest".into(), arguments: "{}".into() };
    let messages = vec![
        user,
        Message::Assistant { text: String::new(), calls: vec![call] },
        Message::Tool { call_id: "a".into(), text: json!({"outcome": "skipped", "reason": "fatto", "result": {"days_left": 23, "approvers": ["Sara", "Ugo"], "items": [{"a": 1, "b": true}]}}).to_string() },
    ];
    let reply = send(Purpose::Scene, messages, Vec::new(), ToolChoice::None);
    assert!(reply.calls.is_empty());
    assert_eq!(reply.text, "approvers: Sara, Ugo\ndays left: 23\nitems:\n  - a: 1, b: sì");
}

#[test]
fn answer_reports_failures_and_blocks_and_ends_with_the_question() {
    let executed = [
        json!({"step": 1, "scene": "A", "purpose": "uno", "status": "needs_input", "question": "Quale data?", "calls": []}),
        json!({"step": 2, "scene": "A", "purpose": "due", "status": "failed", "error": "timeout", "calls": []}),
        json!({"step": 3, "scene": "A", "purpose": "tre", "status": "blocked", "calls": []}),
        json!({"step": 4, "scene": "A", "purpose": "quattro", "status": "completed", "result": "Fatto quattro.", "calls": []}),
    ];
    let lines = executed.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    let user = prompt(&[("language", "it"), ("request", "uno due tre quattro"), ("executed", &lines)]);
    let tool = ToolSpec {
        name: "CheckContinuation".into(),
        description: String::new(),
        parameters: json!({"properties": {"answer": {}}}).into(),
        strict: true,
    };
    let reply = send(
        Purpose::Continuation,
        vec![user.clone()],
        vec![tool],
        ToolChoice::Forced("CheckContinuation".into()),
    );
    let verdict: Value = serde_json::from_str(&reply.calls[0].arguments).unwrap();
    assert_eq!(verdict["should_continue"], json!(false));
    assert_eq!(verdict["can_answer_now"], json!(false));
    let answer = verdict["answer"].as_str().unwrap();
    for part in ["due", "timeout", "tre", "Fatto quattro."] {
        assert!(answer.contains(part), "{answer}");
    }
    assert!(answer.ends_with("Quale data?"), "{answer}");
    let reply = send(Purpose::Answer, vec![user], Vec::new(), ToolChoice::None);
    assert_eq!(reply.text, answer);
}

#[test]
fn replan_continues_numbering_and_repeats_no_write() {
    let world = super::support::World::all();
    let scenes = world.scenes.iter().map(super::support::scene_line).collect::<Vec<_>>().join("\n");
    let executed = json!({"step": 1, "scene": "VacationManagement", "purpose": "x", "status": "completed",
        "calls": [{"tool": "MakeRequest", "arguments": {}, "outcome": "ok"}]})
    .to_string();
    let user = prompt(&[
        ("scenes", &scenes),
        ("executed", &executed),
        ("missing", "Che tempo fa a Roma? Poi chiedi ferie dal 15 al 17 giugno"),
        ("number_from", "2"),
        ("request", "qualcosa"),
    ]);
    let tool = ToolSpec {
        name: "CreateExecutionPlan".into(),
        description: String::new(),
        parameters: json!({}).into(),
        strict: true,
    };
    let reply = send(Purpose::Plan, vec![user], vec![tool], ToolChoice::Forced("CreateExecutionPlan".into()));
    let plan: Value = serde_json::from_str(&reply.calls[0].arguments).unwrap();
    assert_eq!(plan["steps"].as_array().unwrap().len(), 1);
    assert_eq!(plan["steps"][0]["step_number"], json!(2));
    assert_eq!(plan["steps"][0]["scene_name"], json!("Weather"));
}

#[test]
fn bounded_summaries_keep_places_and_days() {
    let mut summary = String::new();
    for round in 0..4 {
        let turns: Vec<String> = (1..=15)
            .map(|day| {
                let day = day + round * 15;
                let answer = format!("A Milano il {day}: da 12 a 24 gradi, soleggiato con qualche nuvola nel pomeriggio (valori medi).");
                json!({"words": format!("User: Che tempo fa a Milano il giorno {day}?\nAssistant: {answer}\nWeather.Get {{}} -> {{}}")}).to_string()
            })
            .collect();
        let earlier = summary.lines().map(|line| json!({"words": line}).to_string());
        let facts: Vec<String> = earlier.chain(turns).collect();
        let user = prompt(&[("language", "it"), ("facts", &facts.join("\n"))]);
        let forced = ToolChoice::Forced("WriteSummary".to_owned());
        let reply = send(Purpose::Summary, vec![user], Vec::new(), forced);
        let written: Value = serde_json::from_str(&reply.calls[0].arguments).unwrap();
        summary = written["summary"].as_str().unwrap().to_owned();
        assert!(summary.chars().count() <= 1700, "{}", summary.len());
    }
    assert!(summary.contains("Milano"));
    for day in 1..=60 {
        assert!(summary.contains(&format!(" {day}")), "{day} is lost: {summary}");
    }
}

#[test]
fn answers_use_the_users_language() {
    for (language, sorry) in [
        ("it", "Mi dispiace"),
        ("en", "I am sorry"),
        ("fr", "Désolé"),
        ("de", "Es tut mir leid"),
        ("es", "Lo siento"),
        ("pt", "I am sorry"),
    ] {
        let user = prompt(&[
            ("language", language),
            ("mode", "out_of_scope"),
            ("request", "xyz"),
            ("capabilities", &json!({"scene": "Weather", "description": "Forecasts"}).to_string()),
        ]);
        let text = send(Purpose::Answer, vec![user], Vec::new(), ToolChoice::None).text;
        assert!(text.contains(sorry) && text.contains("Weather: Forecasts"), "{text}");
    }
    for (language, notice) in [("pt", "Entendo"), ("nl", "Ik begrijp"), ("sv", "I understand"), ("en", "")] {
        let about = json!({"scene": "Weather", "about": "Weather: of a city."}).to_string();
        let parts = [("language", language), ("mode", "out_of_scope"), ("request", "help")];
        let user = prompt(&[&parts[..], &[("capabilities", about.as_str())]].concat());
        let text = send(Purpose::Answer, vec![user], Vec::new(), ToolChoice::None).text;
        assert!(text.starts_with(notice) && text.contains("\n- Weather: of a city."), "{text}");
        assert!(!notice.is_empty() || text.starts_with("Here"), "{text}");
    }
}

//! Answers after a plan was changed: removed steps are neither missing nor apologised for.

use serde_json::{Value, json};

use super::support::{NOW, send};
use crate::llm::{Message, Purpose, ToolChoice, ToolSpec, sections};
use crate::plan::{Plan, diff};

const REQUEST: &str =
    "Voglio sapere il meteo a Milano e poi richiedere 3 giorni di ferie dal 15 al 17 giugno";

fn vacation() -> Value {
    json!({"step": 1, "scene": "VacationManagement", "status": "completed", "result": "Richiesta 7 inviata.",
           "purpose": "richiedere 3 giorni di ferie dal 15 al 17 giugno", "calls": []})
}

fn weather() -> Value {
    json!({"step": 1, "scene": "Weather", "status": "completed", "result": "A Milano: sole.",
           "purpose": "Voglio sapere il meteo a Milano", "calls": []})
}

fn message(request: &str, executed: &Value, changed: &str) -> Message {
    let mut text = String::new();
    sections::push(&mut text, "now", NOW);
    sections::push(&mut text, "mode", "answer");
    sections::push(&mut text, "executed", &executed.to_string());
    sections::push(&mut text, "changed", changed);
    sections::push(&mut text, "request", request);
    Message::User { text }
}

/// The verdict of the check, and the answer, which is the same whether the check gives it or a question
/// of its own.
fn run(request: &str, executed: &Value, changed: &str) -> (Value, String) {
    let tool = ToolSpec {
        name: "CheckContinuation".into(),
        description: String::new(),
        parameters: json!({"type": "object", "properties": {"answer": {"type": ["string", "null"]}}}).into(),
        strict: true,
    };
    let asked = vec![message(request, executed, changed)];
    let choice = ToolChoice::Forced("CheckContinuation".into());
    let checked = send(Purpose::Continuation, asked.clone(), vec![tool], choice);
    let verdict: Value = serde_json::from_str(&checked.calls[0].arguments).unwrap();
    let answer = send(Purpose::Answer, asked, Vec::new(), ToolChoice::None).text;
    assert_eq!(verdict["answer"], json!(answer), "{request} {changed}");
    (verdict, answer)
}

#[test]
fn clauses_removed_from_plan_get_no_apology() {
    for changed in [
        "senza il meteo",
        "Without the weather, please",
        "I don't need the weather",
        "togli il passo 1",
        "only the vacation",
        "solo le ferie",
        "Non chiedere il meteo ma solo le ferie",
        "- step 1 Weather: Voglio sapere il meteo a Milano [WeatherForecast_Get]",
        "- step 1 Weather: Get the weather for Milan [WeatherForecast_Get]\n~ step 2 VacationManagement: after 1 -> nothing",
        "- step 1 Weather: Voglio sapere il meteo a Milano\n- step 2 VacationManagement: richiedere ferie, after 1\n\
         + step 1 VacationManagement: richiedere ferie",
        "~ step 1 Weather: purpose \"Voglio sapere il meteo a Milano\" -> \"richiedere ferie\"",
        "make it three days\nohne Wetter",
    ] {
        let (verdict, answer) = run(REQUEST, &vacation(), changed);
        assert_eq!(answer, "Richiesta 7 inviata.", "{changed}");
        assert_eq!(verdict["should_continue"], json!(false));
        assert_eq!(verdict["can_answer_now"], json!(true));
        assert_eq!(verdict["missing_information"], Value::Null);
    }
    for changed in
        ["remove step 2", "without the vacation", "senza ferie", "soltanto il meteo", "only step 1"]
    {
        assert_eq!(run(REQUEST, &weather(), changed).1, "A Milano: sole.", "{changed}");
    }
}

#[test]
fn changes_are_read_as_the_plan_writes_them() {
    let plan = |steps: &[(u32, &str, &str)]| -> Plan {
        let step = |(number, scene, purpose): &(u32, &str, &str)| {
            json!({"step_number": number, "scene_name": scene, "purpose": purpose,
                   "expected_tools": ["find"], "depends_on_step": null})
        };
        let steps: Vec<Value> = steps.iter().map(step).collect();
        serde_json::from_value(json!({"needs_execution": true, "reasoning": "", "steps": steps})).unwrap()
    };
    let weather = (1, "Weather", "Voglio sapere il meteo a Milano");
    let leave = |number| (number, "VacationManagement", "richiedere 3 giorni di ferie dal 15 al 17 giugno");
    let before = plan(&[weather, leave(2)]);
    let reworded = (1, "Weather", "sapere l'ora");
    for after in [plan(&[leave(1)]), plan(&[leave(2)]), plan(&[reworded, leave(2)])] {
        let changed = diff(&before, &after).join("\n");
        assert_eq!(run(REQUEST, &vacation(), &changed).1, "Richiesta 7 inviata.", "{changed}");
    }
    let added = diff(&plan(&[leave(1)]), &plan(&[leave(1), (2, "Weather", weather.2)])).join("\n");
    let answer = run(REQUEST, &vacation(), &added).1;
    assert!(answer.contains("Non posso invece aiutarti con: «Voglio sapere il meteo a Milano»"), "{answer}");
}

#[test]
fn unserved_clauses_are_reported_after_a_change() {
    for changed in [
        "",
        "sposta le ferie di una settimana",
        "senza il treno",
        "solo due giorni",
        "remove step 2",
        "togli il treno, aggiungi il meteo",
        "non a Roma ma il meteo a Milano",
        "- step 3 Trains: Treni per Milano [find_trains]",
        "+ step 2 Weather: Voglio sapere il meteo a Milano",
    ] {
        let (_, answer) = run(REQUEST, &vacation(), changed);
        assert!(
            answer.contains("Non posso invece aiutarti con: «Voglio sapere il meteo a Milano»"),
            "{changed}: {answer}"
        );
    }
    let three =
        "Dimmi il meteo a Roma. Calcola la radice quadrata di 144. Poi richiedi ferie dal 15 al 17 giugno";
    let mut step = vacation();
    step["purpose"] = json!("richiedi ferie dal 15 al 17 giugno");
    let answer = run(three, &step, "senza il meteo").1;
    assert!(answer.contains("«Calcola la radice quadrata di 144»"), "{answer}");
    assert!(!answer.contains("meteo"), "{answer}");
    let answer = run(three, &step, "senza il meteo, la radice").1;
    assert_eq!(answer, "Richiesta 7 inviata.");
}

#[test]
fn failures_and_questions_are_reported_after_a_change() {
    let mut step = vacation();
    step["status"] = json!("needs_input");
    step["question"] = json!("Fino a quando?");
    let (verdict, answer) = run(REQUEST, &step, "senza il meteo");
    assert_eq!(answer, "Fino a quando?");
    assert_eq!(verdict["can_answer_now"], json!(false));
    assert_eq!(verdict["missing_information"], json!("Fino a quando?"));
    step["status"] = json!("failed");
    step["error"] = json!("il servizio non risponde");
    let answer = run(REQUEST, &step, "senza il meteo").1;
    assert!(answer.contains("il servizio non risponde") && !answer.contains("meteo"), "{answer}");
}

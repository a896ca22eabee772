//! Prepared calls: scenes make the writes that the plan has prepared.
//!
//! `World::carried_out` asserts this invariant for every request of these tests.

use serde_json::{Value, json};

use super::support::{RequestOutcome, World};

const LOANS: &str = r#"
name = "ToolShed"
description = "Prestito di attrezzi del condominio / the tool shed of the house: drills, ladders, saws."
examples = [
    { say = "Prestami il trapano dal 3 al 5 marzo", tool = "borrow_tool" },
    { say = "Lend me the ladder from 3 to 5 March", tool = "borrow_tool" },
    { say = "Quali attrezzi ho in prestito?", tool = "my_loans" },
    { say = "Riporto il prestito numero 12", tool = "return_loan" },
    { say = "Give back loan number 12", tool = "return_loan" },
]
[[tools]]
name = "borrow_tool"
description = "Lends a tool of the shed."
effect = "write"
parameters.required = ["tool", "start_date", "end_date"]
[tools.parameters.properties]
tool = { type = "string", enum = ["drill", "ladder", "saw"], description = "drill (trapano), ladder (scala), saw (sega)" }
start_date = { type = "string", format = "date", description = "Day of the beginning" }
end_date = { type = "string", format = "date", description = "Day of return" }
note = { type = "string", description = "A note for the caretaker" }
[[tools]]
name = "return_loan"
description = "Gives a lent tool back."
effect = "write"
parameters.required = ["loan_id"]
parameters.properties = { loan_id = { type = "integer", description = "Number of the loan" } }
[[tools]]
name = "my_loans"
description = "The loans of the user."
effect = "read"
"#;

const BADGES: &str = r#"
name = "Badges"
description = "Badge dell'ufficio: emissione e blocco / office badges."
examples = [
    { say = "Emetti un badge per mrossi", tool = "issue_badge" },
    { say = "Blocca il mio badge", tool = "block_badge" },
]
[[tools]]
name = "issue_badge"
description = "Creates a badge."
effect = "write"
parameters.required = ["username"]
parameters.properties = { username = { type = "string", description = "User name on the badge" } }
[[tools]]
name = "block_badge"
description = "Cancels a badge."
effect = "write"
parameters.required = ["username"]
parameters.properties = { username = { type = "string", description = "User name of the person who asks" } }
"#;

pub(super) const BANK: &str = r#"
name = "Accounts"
description = "Bonifici tra conti e tavoli per ospiti / transfers between accounts, tables for guests."
examples = [
    { say = "Trasferisci 50 euro da conto a risparmio", tool = "transfer" },
    { say = "Transfer 50 from checking to savings", tool = "transfer" },
    { say = "Create a table for 6 and 3", tool = "seat_guests" },
]
[[tools]]
name = "transfer"
description = "Transfers money."
effect = "write"
parameters.required = ["amount", "source", "goal"]
[tools.parameters.properties]
amount = { type = "number" }
source = { type = "string", description = "Account" }
goal = { type = "string", description = "Account" }
[[tools]]
name = "seat_guests"
description = "Creates a table for adults and children."
effect = "write"
parameters.required = ["grown", "children"]
parameters.properties = { grown = { type = "integer" }, children = { type = "integer" } }
"#;

fn shipped() -> World {
    world(&[])
}

/// The shipped scenes and these beside them.
fn world(more: &[&str]) -> World {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes");
    let shipped = ["identity", "vacation_management", "weather"];
    let texts = shipped.map(|name| std::fs::read_to_string(root.join(name).join("scene.toml")).unwrap());
    let all: Vec<&str> = texts.iter().map(String::as_str).chain(more.iter().copied()).collect();
    World::of(&all)
}

/// The calls of a request that are writes of its plan, in canonical form.
fn writes(outcome: &RequestOutcome) -> Vec<String> {
    let shown: Vec<&str> = outcome.prepared.iter().map(|call| call.0.as_str()).collect();
    let calls = outcome.calls.iter().filter(|call| shown.contains(&call.0.as_str()));
    calls.map(|(tool, arguments)| format!("{tool} {arguments}")).collect()
}

fn shown(outcome: &RequestOutcome) -> Vec<String> {
    outcome.prepared.iter().map(|(tool, arguments)| format!("{tool} {arguments}")).collect()
}

fn prepared(plan: &Value) -> Vec<Value> {
    plan["steps"].as_array().unwrap().iter().map(|step| step["prepared_calls"].clone()).collect()
}

#[test]
fn vacation_request_is_prepared_with_its_days() {
    let outcome = shipped().run("Richiedi 3 giorni di ferie dal 15 al 17 giugno");
    assert_eq!(shown(&outcome), [r#"MakeRequest {"from":"2026-06-15","to":"2026-06-17"}"#]);
    assert_eq!(writes(&outcome), shown(&outcome));
}

#[test]
fn scenario_writes_are_called_as_prepared() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/multi-scene.yaml");
    let file: Value = serde_norway::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut seen = Vec::new();
    for scenario in file["scenarios"].as_array().unwrap() {
        let mut world = shipped();
        for turn in scenario["turns"].as_array().into_iter().flatten() {
            let outcome = world.run(turn["say"].as_str().unwrap());
            if outcome.question.is_none() {
                assert_eq!(writes(&outcome), shown(&outcome), "{turn}");
                seen.extend(shown(&outcome).into_iter().map(|call| format!("{}: {call}", scenario["id"])));
            }
        }
    }
    assert_eq!(
        seen,
        [
            r#""vacation-three-days": MakeRequest {"from":"2026-06-15","to":"2026-06-17"}"#,
            r#""vacation-range": MakeRequest {"from":"2026-06-10","to":"2026-06-20"}"#,
            r#""weather-then-vacation": MakeRequest {"from":"2026-06-15","to":"2026-06-17"}"#,
            r#""weather-then-vacation-english": MakeRequest {"from":"2026-06-15","to":"2026-06-17"}"#,
            r#""who-approves": MakeRequest {"from":"2026-06-15","to":"2026-06-19"}"#,
            r#""nothing-is-invented": MakeRequest {"from":"2026-06-15","to":"2026-06-17"}"#,
            r#""a-write-changes-what-is-read": MakeRequest {"from":"2026-06-15","to":"2026-06-17"}"#,
            r#""not-for-somebody-else": MakeRequest {"employee":"mrossi","from":"2026-06-15","to":"2026-06-19"}"#,
        ]
    );
}

#[test]
fn shipped_and_unknown_scene_writes_are_called_as_prepared() {
    let cases = [
        (
            "Vorrei due giorni di ferie, il 3 e il 4 agosto, perché mi trasferisco",
            r#"MakeRequest {"from":"2026-08-03","note":"mi trasferisco","to":"2026-08-04"}"#,
        ),
        (
            "I would like to take vacation from 8 to 10 July",
            r#"MakeRequest {"from":"2026-07-08","to":"2026-07-10"}"#,
        ),
        ("Annulla la richiesta di ferie numero 3", r#"CancelRequest {"request_id":3}"#),
        ("Cancel my vacation from 15 June", r#"CancelRequest {"from":"2026-06-15"}"#),
        (
            "Aggiungi la città di Cuneo, latitudine 44.39, longitudine 7.55",
            r#"AddCity {"latitude":44.39,"longitude":7.55,"name":"Cuneo"}"#,
        ),
        (
            "Prestami la scala dal 3 al 5 giugno",
            r#"borrow_tool {"end_date":"2026-06-05","start_date":"2026-06-03","tool":"ladder"}"#,
        ),
        (
            "What is the weather in Rome, and then lend me the saw from 8 to 9 June",
            r#"borrow_tool {"end_date":"2026-06-09","start_date":"2026-06-08","tool":"saw"}"#,
        ),
        ("Give back loan number 12", r#"return_loan {"loan_id":12}"#),
        ("Riporto il prestito numero 7 e poi dimmi il meteo a Bari", r#"return_loan {"loan_id":7}"#),
    ];
    for (request, want) in cases {
        let outcome = world(&[LOANS]).run(request);
        assert_eq!(shown(&outcome), [want], "{request}");
        assert_eq!(writes(&outcome), [want], "{request}");
    }
}

#[test]
fn user_values_are_omitted_until_the_user_gives_them() {
    let mut world = shipped();
    let outcome = world.run("What is the weather in Milan, and then ask for three days off");
    assert_eq!(shown(&outcome), ["MakeRequest {}"]);
    let outcome = world.run("From 15 to 17 June");
    assert_eq!(shown(&outcome), [r#"MakeRequest {"from":"2026-06-15","to":"2026-06-17"}"#]);
    assert_eq!(writes(&outcome), shown(&outcome));
}

#[test]
fn looked_up_values_are_omitted() {
    let mut loans = |tool: &str, _: &Value| match tool {
        "my_loans" => json!({"outcome": "ok", "result": {"loans": [{"loan_id": 41, "tool": "drill"}]}}),
        _ => json!({"outcome": "ok", "result": {}}),
    };
    let outcome = world(&[LOANS]).ask("Riporto il prestito", &mut loans);
    assert_eq!(shown(&outcome), ["return_loan {}"]);
    assert_eq!(writes(&outcome), [r#"return_loan {"loan_id":41}"#]);
}

#[test]
fn values_of_earlier_steps_are_omitted_despite_earlier_turns() {
    let mut world = world(&[LOANS]);
    world.run("Riporto il prestito numero 12");
    let mut loans = |tool: &str, _: &Value| match tool {
        "my_loans" => json!({"outcome": "ok", "result": {"loans": [{"loan_id": 41, "tool": "drill"}]}}),
        _ => json!({"outcome": "ok", "result": {}}),
    };
    let outcome = world.ask("Quali attrezzi ho in prestito? Poi riporto il prestito", &mut loans);
    assert_eq!(outcome.depends, [vec![], vec![1]]);
    assert_eq!(shown(&outcome), ["return_loan {}"]);
    assert_eq!(writes(&outcome), [r#"return_loan {"loan_id":41}"#]);
}

#[test]
fn prepared_calls_use_only_the_scenes_conversation() {
    let said = ["Il mio username è keysersoze", "Che tempo fa a Milano?", "Che tempo fa a Roma?"];
    let mut of_late = world(&[BADGES]);
    for request in &said[..2] {
        of_late.run(request);
    }
    let outcome = of_late.run("Emetti un badge");
    assert_eq!(shown(&outcome), [r#"issue_badge {"username":"keysersoze"}"#]);
    assert_eq!(writes(&outcome), shown(&outcome));

    // A scene's prompt has the last two turns and its own turns.
    let mut long_ago = world(&[BADGES]);
    for request in said {
        long_ago.run(request);
    }
    let outcome = long_ago.run("Emetti un badge");
    assert_eq!(shown(&outcome), ["issue_badge {}"]);
    assert_eq!(outcome.question.unwrap()["missing"], json!(["username"]));
}

#[test]
fn values_depending_on_argument_order_are_omitted() {
    // The scene's prompt has the source before the goal; the planner's may have no order.
    let cases = [
        ("Transfer 30 from savings to main", r#"transfer {"amount":30}"#, "source", "savings"),
        ("Trasferisci 50 euro \"alfa\" \"beta\"", r#"transfer {"amount":50}"#, "source", "alfa"),
        ("Create a table for 4 and 2", "seat_guests {}", "grown", "4"),
    ];
    for (request, want, argument, value) in cases {
        let mut world = world(&[BANK]);
        world.exact = false;
        let outcome = world.run(request);
        assert_eq!(shown(&outcome), [want], "{request}");
        let called = outcome.calls[0].1[argument].to_string();
        assert_eq!(called.trim_matches('"'), value, "{request}");
        // With the order in the schema's description, the values are prepared as called.
        world.exact = true;
        let outcome = world.run(request);
        assert_eq!(writes(&outcome), shown(&outcome), "{request}");
        assert_eq!(outcome.prepared[0].1[argument].to_string().trim_matches('"'), value, "{request}");
    }
    // Where words tell which is which, the order does not matter.
    let outcome = world(&[BANK]).run("Create a table for 4 grown and 2 children");
    assert_eq!(shown(&outcome), [r#"seat_guests {"children":2,"grown":4}"#]);
    assert_eq!(writes(&outcome), shown(&outcome));
}

#[test]
fn requester_is_prepared_if_the_planner_knows_the_user() {
    let world = world(&[BADGES]);
    let request = "Blocca il mio badge";
    let known = world.planned(request, &[("user", "keysersoze")], world.preparing());
    let call = json!([{"tool": "block_badge", "arguments": {"username": "keysersoze"}}]);
    assert_eq!(prepared(&known), [call]);
    let unknown = world.planned(request, &[], world.preparing());
    assert_eq!(prepared(&unknown), [json!([{"tool": "block_badge", "arguments": {}}])]);
}

#[test]
fn plan_has_prepared_calls_only_if_its_schema_takes_them() {
    let world = shipped();
    let request = "Dimmi il meteo a Roma e poi richiedi ferie dal 15 al 17 giugno";
    assert_eq!(prepared(&world.plan(request)), [Value::Null, Value::Null]);

    let reading = json!([]);
    let writing = json!([{"tool": "MakeRequest", "arguments": {"from": "2026-06-15", "to": "2026-06-17"}}]);
    let plan = world.planned(request, &[], world.preparing());
    assert_eq!(prepared(&plan), [Value::Null, writing.clone()]);

    // A schema that requires them of every step gets an empty list where there are none.
    let mut required = world.preparing();
    for step in required["properties"]["steps"]["items"]["anyOf"].as_array_mut().unwrap() {
        let has = step["properties"].get("prepared_calls").is_some();
        if has {
            step["required"].as_array_mut().unwrap().push(json!("prepared_calls"));
        }
    }
    assert_eq!(prepared(&world.planned(request, &[], required)), [reading, writing]);
}

#[test]
fn changed_plan_prepares_only_changed_steps_again() {
    let mut world = world(&[LOANS]);
    let request = "Richiedi ferie dal 15 al 17 giugno e poi prestami la scala dal 3 al 5 giugno";
    let mut plan = world.planned(request, &[], world.preparing());
    // A person may have put in what the rules would not.
    plan["steps"][1]["prepared_calls"][0]["arguments"]["note"] = json!("grazie");
    let by_hand = plan["steps"][1]["prepared_calls"].clone();
    assert_eq!(by_hand[0]["arguments"]["tool"], "ladder");
    let change = |plan: &Value, feedback: &str, schema: Value| {
        let parts = [("plan", plan.to_string()), ("feedback", feedback.to_owned())];
        let parts: Vec<(&str, &str)> = parts.iter().map(|(name, body)| (*name, body.as_str())).collect();
        world.planned(request, &parts, schema)
    };

    let moved = change(&plan, "Ferie dal 22 al 24 giugno", world.preparing());
    let days = json!([{"tool": "MakeRequest", "arguments": {"from": "2026-06-22", "to": "2026-06-24"}}]);
    assert_eq!(prepared(&moved), [days.clone(), by_hand.clone()]);

    let left = change(&plan, "senza le ferie", world.preparing());
    assert_eq!(prepared(&left)[..], [by_hand.clone()][..]);

    let more = change(&left, "Annulla anche la richiesta di ferie numero 3", world.preparing());
    let cancelled = json!([{"tool": "CancelRequest", "arguments": {"request_id": 3}}]);
    assert_eq!(prepared(&more), [by_hand.clone(), cancelled]);

    let same = change(&plan, "make it nicer", world.preparing());
    assert_eq!(prepared(&same), prepared(&plan));

    // Where nobody has to approve any more, nothing is prepared.
    let bare = change(&plan, "Ferie dal 22 al 24 giugno", json!({"type": "object"}));
    assert_eq!(prepared(&bare), [Value::Null, Value::Null]);

    // The scene of the changed step calls what the changed plan shows, though the request says otherwise.
    let mut yes = |_: &str, _: &Value| json!({"outcome": "ok", "result": {}});
    let mut moved = moved;
    moved["steps"][1]["prepared_calls"][0]["arguments"].as_object_mut().unwrap().remove("note");
    let outcome = world.carried_out(request, moved, &mut yes);
    assert_eq!(writes(&outcome), shown(&outcome));
    assert_eq!(outcome.call("MakeRequest"), &days[0]["arguments"]);
}

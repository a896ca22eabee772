//! `constraints` and `current_state` of a request: they narrow every plan and call of its run.

use proscenium::run::{ConfirmPolicy, PlanConstraints, PlanGuidance, RunStatus};
use proscenium::{ChatRequest, Engine};
use serde_json::{Value, json};

use super::process::Workspace;
use crate::support::planner_engine::{ModelRules, QuestionKind, Town, arguments_of, plan, requests, step};
use crate::support::{Scripted, ScriptedLlm, ServedEngine, Setup, forced_tool, section};

fn constraints(given: Value) -> PlanConstraints {
    serde_json::from_value(given).unwrap()
}

fn request(engine: &Engine, words: &str, guidance: PlanGuidance) -> ChatRequest {
    ChatRequest { guidance: Some(guidance), ..engine.request(words, None) }
}

#[tokio::test]
async fn plan_that_breaks_a_constraint_is_sent_back_and_never_carried_out() {
    let write = plan(json!([step(1, "Parking", &["BookSpace"], Value::Null)]));
    let read = plan(json!([step(1, "Parking", &["FreeSpaces"], Value::Null)]));
    for (given, forbidden) in [
        (json!({"read_only": true}), "BookSpace of Parking"),
        (json!({"without_tools": ["Parking.BookSpace"]}), "BookSpace of Parking"),
        (json!({"max_steps": 1}), "1 steps in all"),
    ] {
        let (first, then) = match given.get("max_steps") {
            Some(_) => {
                let second = step(2, "Canteen", &["Menu"], Value::Null);
                (plan(json!([read["steps"][0], second])), read.clone())
            }
            None => (write.clone(), read.clone()),
        };
        let llm = ModelRules::of(Value::Null)
            .plan(move |request, nth| {
                Scripted::forced(request, if nth == 0 { first.clone() } else { then.clone() })
            })
            .start();
        let town = Town::open(&llm, |_| {}).await;
        let guidance = PlanGuidance { constraints: constraints(given.clone()), ..PlanGuidance::default() };
        let answer =
            town.engine.chat(request(&town.engine, "Book a parking space for tomorrow.", guidance)).await;
        assert_eq!(answer.unwrap().status, RunStatus::Completed, "{given}");
        assert_eq!(town.log.names(), ["FreeSpaces"], "{given}");
        let asked = requests(&llm, QuestionKind::Plan);
        assert!(asked[1].to_string().contains(forbidden), "{given}: {:#}", asked[1]);
        assert!(
            section(&asked[0], "constraints")
                .unwrap()
                .contains(given.as_object().unwrap().keys().next().unwrap())
        );
    }
}

#[tokio::test]
async fn planner_sees_only_what_is_allowed_and_a_scene_cannot_call_the_rest() {
    let llm = ModelRules::of(plan(json!([step(1, "Library", &["ReserveBook"], Value::Null)])))
        .scene(|request, nth| match nth {
            0 => Scripted::call("FindBook", arguments_of("FindBook")),
            1 => Scripted::call("ReserveBook", arguments_of("ReserveBook")),
            _ => Scripted::Text(format!("{} is done.", section(request, "scene").unwrap())),
        })
        .start();
    let town = Town::open(&llm, |_| {}).await;
    let given = constraints(json!({"notes": ["Only what is free."], "without_scenes": ["Canteen"],
        "without_tools": ["Library.FindBook"]}));
    let guidance = PlanGuidance { constraints: given, ..PlanGuidance::default() };
    let words = "Reserve the book Dune for 7 days.";
    let answer = town.engine.chat(request(&town.engine, words, guidance)).await.unwrap();
    assert_eq!(answer.status, RunStatus::Completed, "{answer:#?}");
    assert_eq!(town.log.names(), ["ReserveBook"]);
    assert_eq!(answer.steps[0].tool_calls[0].error.as_ref().unwrap().code, "tool.constraint");
    let asked = &requests(&llm, QuestionKind::Plan)[0];
    let scenes = section(asked, "scenes").unwrap();
    assert!(!scenes.contains("Canteen") && scenes.contains("ReserveBook"), "{scenes}");
    assert!(!scenes.contains("\"name\":\"FindBook\""), "{scenes}");
    assert!(section(asked, "constraints").unwrap().contains("Only what is free."));
}

#[tokio::test]
async fn given_state_reaches_planner_and_scene_and_is_evidence_only_if_vouched_for() {
    for (is_vouched, status) in [(true, RunStatus::Completed), (false, RunStatus::NeedsInput)] {
        let llm = ModelRules::of(plan(json!([step(1, "Parking", &["BookSpace"], Value::Null)]))).start();
        let town = Town::open(&llm, |config| config.execution.confirm = ConfirmPolicy::Unclear).await;
        let current_state = Some(json!({"car": {"plate": "AB123CD"}}));
        let guidance = PlanGuidance { current_state, is_vouched, ..PlanGuidance::default() };
        let words = "Book a parking space for my car for tomorrow.";
        let answer = town.engine.chat(request(&town.engine, words, guidance)).await.unwrap();
        assert_eq!(answer.status, status, "{answer:#?}");
        for kind in [QuestionKind::Plan, QuestionKind::Scene] {
            assert!(section(&requests(&llm, kind)[0], "current_state").unwrap().contains("AB123CD"));
        }
    }
}

#[tokio::test]
async fn invalid_constraints_are_refused_by_name() {
    let served = ServedEngine::start(Setup::offline()).await;
    let send = async |fields: Value| {
        let mut body = json!({"messages": [{"role": "user", "content": "Che tempo fa a Milano?"}]});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        served.post("/api/chat", &body).await
    };
    for (given, named) in [
        (json!({"only_scenes": ["Wether"]}), "Wether"),
        (json!({"without_tools": ["Weather"]}), "Scene.Tool"),
        (json!({"max_steps": 0}), "max_steps"),
        (json!({"notes": ["x".repeat(501)]}), "notes"),
    ] {
        let problem = send(json!({"constraints": given})).await.assert_problem(422, "request.constraints");
        assert!(problem["detail"].as_str().unwrap().contains(named), "{problem:#}");
    }
    send(json!({"constraints": {"readonly": true}})).await.assert_problem(422, "request.body");
    let large = send(json!({"current_state": "x".repeat(20_000)})).await;
    large.assert_problem(422, "request.current_state");
    let reply = send(json!({"constraints": {"only_scenes": ["Weather"]}, "current_state": {"a": 1}})).await;
    assert_eq!(reply.status, 200, "{reply:#?}");
    let made = json!({"message": "Che tempo fa a Milano?", "constraints": {"without_scenes": ["Weather"]}});
    let reply = served.post("/api/plans", &made).await;
    assert!(
        reply.json()["plan"].get("steps").is_none_or(|steps| steps.as_array().unwrap().is_empty()),
        "{reply:#?}"
    );
}

#[test]
fn command_line_takes_constraints_and_refuses_unknown_ones() {
    let words = "Che tempo fa a Milano, e poi richiedi 3 giorni di ferie dal 15 al 17 giugno";
    let ran = Workspace::new().run(&["chat", "--json", "--constraints", r#"{"read_only": true}"#, words]);
    let answer: Value = serde_json::from_str(&ran.out).unwrap();
    // What is not allowed is told, and nothing else is done in its place.
    assert_eq!(answer["status"], "partial", "{answer:#}");
    let told = answer["answer"].as_str().unwrap();
    assert!(told.contains("Non posso invece aiutarti con: «richiedi 3 giorni di ferie"), "{told}");
    let steps = answer["steps"].as_array().unwrap();
    let scenes: Vec<&str> = steps.iter().map(|step| step["scene_name"].as_str().unwrap()).collect();
    assert_eq!(scenes, ["Weather"]);
    for (given, problem) in [(r#"{"read_onl": true}"#, "`read_onl`"), ("{oops", "this is not valid JSON")] {
        let ran = Workspace::new().run(&["chat", "--constraints", given, words]);
        assert!(ran.status == 2 && ran.err.contains(problem), "{ran:#?}");
    }
}

#[test]
fn request_of_which_nothing_is_allowed_says_so() {
    let workspace = Workspace::new();
    let task = "Traduci in inglese: «richiedi ferie dal 15 al 17 giugno»";
    for (given, words, told) in [
        (
            r#"{"read_only": true}"#,
            "Richiedi 3 giorni di ferie dal 15 al 17 giugno",
            Some("Richiedi 3 giorni di ferie"),
        ),
        (r#"{"without_scenes": ["Weather"]}"#, "Che tempo fa a Milano?", Some("Che tempo fa a Milano")),
        // What no scene serves anyway is declined as ever, and so is a task about a text.
        (r#"{"without_scenes": ["Weather"]}"#, "Scrivi una poesia", None),
        (r#"{"read_only": true}"#, task, None),
    ] {
        let ran = workspace.run(&["chat", "--json", "--constraints", given, words]);
        let answer: Value = serde_json::from_str(&ran.out).unwrap();
        let text = answer["answer"].as_str().unwrap();
        let says = text.contains("i vincoli della richiesta non lo consentono");
        assert_eq!(says, told.is_some(), "{words}: {text}");
        assert!(text.contains(told.unwrap_or_default()), "{words}: {text}");
        assert_eq!(answer["status"], if says { "partial" } else { "completed" }, "{words}");
        assert_eq!(answer["steps"].as_array().map_or(0, Vec::len), 0, "{words}");
        // Nothing else is offered in its place.
        assert!(!says || !text.contains("che cosa posso fare"), "{text}");
    }
}

#[tokio::test]
async fn plan_of_a_model_that_names_forbidden_parts_is_reported_after_its_answer() {
    for answer in [Value::Null, json!("Good morning.")] {
        let nothing = json!({"needs_execution": false, "reasoning": "", "steps": [],
            "unserved": ["Book a parking space"], "answer": answer});
        let llm = ModelRules::of(nothing).start();
        let town = Town::open(&llm, |_| {}).await;
        let given = constraints(json!({"read_only": true}));
        let guidance = PlanGuidance { constraints: given, ..PlanGuidance::default() };
        let told =
            town.engine.chat(request(&town.engine, "Hello. Book a parking space.", guidance)).await.unwrap();
        assert_eq!(told.status, RunStatus::Partial, "{told:#?}");
        let sentence =
            "Not done, since the constraints of the request do not allow it: «Book a parking space».";
        let expected = match answer.as_str() {
            Some(answer) => format!("{answer}\n{sentence}"),
            None => sentence.to_owned(),
        };
        assert_eq!(told.answer, expected);
        assert_eq!(requests(&llm, QuestionKind::Answer).len(), 0, "no model words it");
    }
}

#[test]
fn command_line_sends_the_guidance_here_and_over_the_server_that_owns_the_directory() {
    let nothing = json!({"needs_execution": false, "reasoning": "", "steps": []});
    let llm = ScriptedLlm::start(move |request, _| match forced_tool(request) {
        Some("CreateExecutionPlan") => Scripted::forced(request, nothing.clone()),
        _ => Scripted::Text("Hello.".to_owned()),
    });
    let workspace =
        Workspace::new().with("OPENAI_BASE_URL", llm.base_url()).with("OPENAI_MODEL", "some-model");
    let (constraints, state) = (r#"{"notes":["Only by day"]}"#, r#"{"car":"AB123CD"}"#);
    let chat = ["chat", "--quiet", "--constraints", constraints, "--state", state, "Good morning"];
    for with_server in [false, true] {
        llm.forget();
        let server = with_server.then(|| workspace.serve(&[]));
        let ran = workspace.run(&chat);
        assert_eq!(ran.status, 0, "{ran:#?}");
        let plan = llm.request(0);
        assert!(section(&plan, "constraints").unwrap().contains("Only by day"), "{with_server}: {plan:#}");
        assert_eq!(section(&plan, "current_state").as_deref(), Some(state), "{with_server}");
        if let Some(server) = server {
            server.signal("TERM");
            assert_eq!(server.end().status, 0);
        }
    }
}
